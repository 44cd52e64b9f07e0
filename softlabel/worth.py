"""What votes are worth, given some true labels; one rule from votes and truths.

Inside, items are points (1, eta, T): eta is the linear predictor of the votes' rule, T are combinations of the features
that are uncorrelated with it and with each other, of unit variance. The model of the truth is logit tau = a + s eta + d'T: the
votes lean by a, their scale is off by s, they are tilted by d. Votes whose mean is right have a = 0, s = 1, d = 0.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logsumexp

from softlabel.fits import LogisticRule
from softlabel.logistic import fit_logistic
from softlabel.validation import Array, TruthWarning, align, as_features, as_truth, as_votes

# Standard deviations of a, of log s and of each entry of d: every combination is a model, of equal probability beforehand. The
# smallest stand for votes that do not lean, are not off scale, are not tilted.
LEANS, SCALES, TILTS = (0.01, 0.25, 0.7, 2.0), (0.01, 1.0), (0.01, 0.15, 0.4, 1.0)


@dataclass(frozen=True, eq=False)
class SharedFit(LogisticRule):
    """A rule from votes and true labels; made by :func:`fit_votes_and_truth`.

    The attributes of :class:`~softlabel.fits.LogisticRule`; the log-likelihood is that of the true labels.

    Attributes
    ----------
    n_truths : int
        Number of true labels.
    """

    n_truths: int
    _cov: Array

    def cov(self) -> Array:
        """Covariance (p + 1, p + 1) of the coefficients: what votes, true labels and the priors leave open."""
        return self._cov.copy()

    def stderr(self) -> Array:
        """Standard errors (p + 1,) of the coefficients."""
        return np.sqrt(np.diag(self._cov))

    def __repr__(self) -> str:
        return self.describe(f"{self.n_truths} true labels")


def fit_votes_and_truth(X: ArrayLike, counts: ArrayLike, truth: ArrayLike) -> SharedFit:
    """Fit one rule to votes and to the true labels of some items: the truths' rule, shrunk towards that of the votes.

    Parameters
    ----------
    X : (n, p) array_like or DataFrame
        Features, without a column for the intercept.
    counts : (n, 2) array_like
        Votes for the positive and the negative class.
    truth : (n,) array_like
        True labels, 1 for the positive class and 0; nan where unknown.

    Returns
    -------
    SharedFit

    Raises
    ------
    ValueError
        If an argument is not valid, or there are neither votes nor true labels.

    Warns
    -----
    TruthWarning
        If the features separate the votes: they have no maximum likelihood estimate then, and Firth's takes its place.

    Notes
    -----
    The true labels follow logit tau = a + s eta + d'T, eta the linear predictor of the votes' rule, T the other directions of the
    features. Beforehand a, log s and d are normal with mean 0. Their variance is that of the votes' estimate plus the square of
    an amount by which the votes' mean may be wrong, which takes the values ``LEANS``, ``SCALES`` and ``TILTS``; the
    coefficients are averaged over these with weights by their marginal likelihood (Laplace's approximation).

    Without true labels this is the votes' rule; without votes it is Firth's estimate from the true labels alone.

    Examples
    --------
    >>> import numpy as np
    >>> from softlabel import TwoClassNormal, sample_votes
    >>> model = TwoClassNormal.canonical(2.0)
    >>> X, y = model.sample(300, rng=0)
    >>> counts = sample_votes(model.posterior(X), 5, 3.0, rng=1)
    >>> truth = np.where(np.arange(300) < 50, y, np.nan)
    >>> fit_votes_and_truth(X, counts, truth)
    """
    return _combine(*_arguments(X, counts, truth))


def _arguments(X: ArrayLike, counts: ArrayLike, truth: ArrayLike) -> tuple[Array, Array, Array, list[str]]:
    counts, truth = align(X, counts, ("X", "counts")), align(X, truth, ("X", "truth"))
    X, names = as_features(X)
    return X, as_votes(counts, X.shape[:1]), as_truth(truth, len(X)), names


def _combine(X: Array, counts: Array, truth: Array, names: list[str]) -> SharedFit:
    known = ~np.isnan(truth)
    if not counts.any():
        if not known.any():
            raise ValueError("counts and truth: no item has a vote, and none a true label")
        fit = fit_logistic(X[known], truth[known], method="firth")
        coef, cov = fit.coef, fit.cov("model")
    else:
        belief = _Belief.of(X, counts, truth, known.astype(float))
        coef, cov = belief.coef_and_cov()
    eta = coef[0] + X[known] @ coef[1:]
    n_items = int(np.count_nonzero(counts.any(axis=1) | known))
    return SharedFit(
        coef=coef,
        converged=True,
        n_iter=0,
        separation="none",
        log_likelihood=float(log_expit(np.where(truth[known] == 1, eta, -eta)).sum()),
        n_items=n_items,
        n_without_votes=len(X) - n_items,
        feature_names=names,
        n_truths=int(known.sum()),
        _cov=cov,
    )


def _votes_rule(X: Array, counts: Array) -> tuple[Array, Array]:
    """Coefficients (p + 1,) of the votes' rule, and their covariance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said below
        fit = fit_logistic(X, counts)
    if fit.separation != "none":
        warnings.warn("the features separate the votes in counts: Firth's estimate stands for theirs", TruthWarning, stacklevel=5)
        fit = fit_logistic(X, counts, method="firth")
        return fit.coef, fit.cov("model")
    return fit.coef, fit.cov()


@dataclass(frozen=True)
class _Belief:
    """What is known of (a, log s, d): a normal distribution for each model, and the weights of the models.

    ``z`` (n, q) are the items, ``to_coef`` (q, p + 1) the coefficients of each coordinate, ``drift`` (H, q) the prior variances
    of what is wrong with the votes' mean, ``sampling`` (q, q) the covariance of the votes' estimate.
    """

    z: Array
    to_coef: Array
    y: Array  # (k,), at the items z_k (k, q), which count as w (k,) labels each
    z_k: Array
    w: Array
    drift: Array
    sampling: Array
    precision: Array  # (H, q, q) beforehand
    mode: Array  # (H, q)
    hessian: Array  # (H, q, q)
    log_weight: Array  # (H,)

    @classmethod
    def of(cls, X: Array, counts: Array, truth: Array, weight: Array) -> "_Belief":
        coef, cov = _votes_rule(X, counts)
        to_coef, from_coef = _coordinates(X, coef)
        z = np.column_stack([np.ones(len(X)), X]) @ to_coef.T
        sampling = from_coef @ cov @ from_coef.T
        sampling = (sampling + sampling.T) / 2
        known = weight > 0
        y, z_k, w = truth[known], z[known], weight[known]
        grid = np.stack(np.meshgrid(LEANS, SCALES, TILTS, indexing="ij"), axis=-1).reshape(-1, 3) ** 2
        drift = np.column_stack([grid[:, :2], np.repeat(grid[:, 2:], z.shape[1] - 2, axis=1)])
        precision = np.linalg.inv(drift[:, :, None] * np.eye(z.shape[1]) + sampling)
        mode, hessian, peak = _modes(z_k, y, w, precision)
        log_weight = peak + (np.linalg.slogdet(precision)[1] - np.linalg.slogdet(hessian)[1]) / 2
        log_weight -= logsumexp(log_weight)
        return cls(z, to_coef, y, z_k, w, drift, sampling, precision, mode, hessian, log_weight)

    def coef_and_cov(self) -> tuple[Array, Array]:
        weight = np.exp(self.log_weight)
        linear = _linear(self.mode)  # (H, q)
        at = linear @ self.to_coef
        coef = weight @ at
        change = np.ones_like(linear)
        change[:, 1] = linear[:, 1]
        cov = np.linalg.inv(self.hessian) * change[:, :, None] * change[:, None]
        within = self.to_coef.T @ np.tensordot(weight, cov, 1) @ self.to_coef
        return coef, within + (at - coef).T @ ((at - coef) * weight[:, None])


def _linear(theta: Array) -> Array:
    """(a, s, d) from (a, log s, d)."""
    linear = theta.copy()
    linear[..., 1] = np.exp(theta[..., 1])
    return linear


def _coordinates(X: Array, coef: Array) -> tuple[Array, Array]:
    """Coefficients (q, p + 1) of 1, eta and each T; and the matrix from coefficients to (a, s, d)."""
    centre = X.mean(axis=0)
    scale = np.abs(X - centre).max(axis=0)
    R = np.linalg.qr((X - centre) / scale, mode="r") / np.sqrt(len(X))
    along = R @ (coef[1:] * scale)  # slope in uncorrelated features of unit variance
    length = np.linalg.norm(along)
    basis = np.linalg.svd(along[None])[2][1:] if length > 1e-10 else np.eye(len(along))
    T = np.linalg.solve(R, basis.T).T / scale
    to_coef = np.vstack([np.r_[1, np.zeros(len(along))], coef, np.column_stack([-T @ centre, T])])
    # The slopes of (1, eta, T) on these features are known, so that nothing ill-conditioned is inverted.
    onto = np.vstack([along / length**2, basis]) @ (R * scale) if length > 1e-10 else np.vstack([0 * along, basis @ (R * scale)])
    from_coef = np.column_stack([np.zeros(len(onto) + 1), np.vstack([np.zeros(len(along)), onto])])
    from_coef[0] = np.r_[1, centre] - (coef[0] + centre @ coef[1:]) * from_coef[1]
    return to_coef, from_coef


def _modes(z: Array, y: Array, w: Array, precision: Array, max_iter: int = 100) -> tuple[Array, Array, Array]:
    """Posterior modes (H, q) of (a, log s, d), minus the second derivatives (H, q, q) there, and the log posteriors (H,)."""
    theta = np.zeros(precision.shape[:2])

    def log_posterior(theta: Array) -> Array:
        eta = _linear(theta) @ z.T
        prior = np.einsum("hi,hij,hj->h", theta, precision, theta)
        return log_expit(np.where(y == 1, eta, -eta)) @ w - prior / 2

    value = log_posterior(theta)
    for _ in range(max_iter):
        linear = _linear(theta)
        eta, change = linear @ z.T, np.ones_like(theta)
        change[:, 1] = linear[:, 1]
        residual, curved = w * (y - expit(eta)), w * expit(eta) * expit(-eta)
        pull = np.einsum("hij,hj->hi", precision, theta)
        gradient = residual @ z * change - pull
        information = (z.T * curved[:, None]) @ z * change[:, :, None] * change[:, None] + precision
        step = np.linalg.solve(information, gradient[..., None])[..., 0]
        step *= np.minimum(1, 2 / np.maximum(np.abs(step[:, 1]), 1e-300))[:, None]
        for _ in range(30):  # half the step where it leads down
            moved = log_posterior(theta + step)
            down = moved < value - 1e-10 * (1 + np.abs(value))
            if not down.any():
                break
            step[down] /= 2
        theta, value = theta + step, moved
        if np.abs(step).max() < 1e-8:
            break
    second = information.copy()
    second[:, 1, 1] -= (residual @ z * change)[:, 1]
    bent = np.linalg.eigvalsh(second)[:, 0] <= 1e-3 * np.linalg.eigvalsh(information)[:, 0]
    second[bent] = information[bent]
    return theta, second, value
