"""Maximum likelihood of the Dirichlet-multinomial: the coefficients and the overdispersion together."""

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, gammaln, log_expit

from softlabel.fits import LogisticRule
from softlabel.logistic import inverse
from softlabel.overdispersion import VoteTerms, best_omega, need_repeated_votes
from softlabel.patient import fit_patiently
from softlabel.separation import centre_and_scale, column_sums, explain_separation, way_back
from softlabel.validation import (
    Array,
    ConvergenceWarning,
    SeparationWarning,
    as_features_and_counts,
    as_positive,
    as_whole,
    for_a_likelihood,
)
from softlabel.vote_models import parts_of_votes, votes_in_order

RARE = 1e-100  # probability, so that squares of its reciprocal stay finite


@dataclass(frozen=True, eq=False)
class JointFit(LogisticRule):
    """Coefficients and overdispersion fitted together; made by :func:`fit_dirichlet_multinomial`.

    The attributes of :class:`~softlabel.fits.LogisticRule`; steps are counted after a start at the logistic fit, and the
    log-likelihood includes binomial coefficients; where alpha0 is 0, it is the limit.

    Attributes
    ----------
    alpha0 : float
        Overdispersion parameter. ``inf``: the votes vary no more than independent ones would. ``0.0``: every item is
        unanimous, and the likelihood rises as alpha0 falls to 0.
    """

    alpha0: float
    _cov: Array = field(repr=False)

    def cov(self) -> Array:
        """Covariance (p + 1, p + 1) of the coefficients, which allows for the estimation of alpha0.

        A block of the inverse of the observed information on (beta, 1 / alpha0); where alpha0 is ``inf`` or 0, on beta alone.
        Right if the votes are Dirichlet-multinomial, and not otherwise.
        """
        return self._cov.copy()

    def stderr(self) -> Array:
        """Standard errors (p + 1,) of the coefficients."""
        return np.sqrt(np.diag(self._cov))

    def __repr__(self) -> str:
        return self.describe(f"alpha0 = {self.alpha0:.4g}", f"log-likelihood {self.log_likelihood:.6g}")


def fit_dirichlet_multinomial(X: ArrayLike, counts: ArrayLike, *, max_iter: int = 100, tol: float = 1e-8) -> JointFit:
    """Fit coefficients and overdispersion to votes by maximum likelihood of the Dirichlet-multinomial.

    Parameters
    ----------
    X : (n, p) array_like or DataFrame
        Features, without a column for the intercept; of no column, only the intercept is fitted.
    counts : (n, 2) array_like
        Votes for the positive and the negative class. An item without votes contributes nothing; items with one vote tell
        about the coefficients only. Pandas objects are matched to ``X`` by index.
    max_iter : int
        Largest number of steps.
    tol : float
        Largest rise of the log-likelihood that the last step may have promised; what is left after it is far smaller.

    Returns
    -------
    JointFit

    Raises
    ------
    ValueError
        If an argument is not valid, as in :func:`fit_logistic`, or if no item has two votes: then alpha0 cannot be estimated.

    Warns
    -----
    SeparationWarning
        If the features separate the labels: no maximum exists, and ``coef`` is where the logistic fit stopped.
    ConvergenceWarning
        If ``max_iter`` steps were not enough.

    Notes
    -----
    With omega = 1 / alpha0 the log-likelihood of an item is, but for a constant,

        sum_{k < s_1} log(tau_1 + k omega) + sum_{k < s_2} log(tau_2 + k omega) - sum_{k < m} log(1 + k omega),

    the model of Section 2.3 of Ahfock & McLachlan (2021), who estimate alpha0 with beta held fixed at the logistic estimate.
    A maximum exists just when the logistic fit has one. Unlike that fit, this one needs the whole distribution of the votes to
    be right, not only their mean.

    Newton's steps start at the logistic fit; where the likelihood is not concave, squared scores stand in for its curvature
    (Berndt, Hall, Hall & Hausman, 1974).

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> fit = fit_dirichlet_multinomial(X, [[0, 7], [4, 3], [1, 6], [7, 0], [3, 4], [7, 0]])
    >>> fit.coef.round(3), round(fit.alpha0, 3)
    (array([-1.893,  0.875]), 1.617)
    """
    max_iter, tol = as_whole(max_iter, "max_iter", 1), as_positive(tol, "tol")
    X, names, counts = as_features_and_counts(X, counts, none=True)
    need_repeated_votes(for_a_likelihood(counts))

    unanimous = not np.any(counts.min(axis=1) > 0)
    # Of labellers who always agree, the first says it all.
    start = fit_patiently(X, np.minimum(counts, 1) if unanimous else counts)
    coef, cov, alpha0 = start.coef, start.cov("model"), 0.0
    log_likelihood, converged, n_iter = start.log_likelihood, start.converged, 0
    if start.separation != "none":
        warnings.warn(
            f"{explain_separation(start.separation, X, counts, names)}; use more items or fewer features",
            SeparationWarning,
            stacklevel=2,
        )
    if not unanimous:
        centre, scale = centre_and_scale(len(X), *column_sums(X.T))
        x, back = np.column_stack([np.ones(len(X)), (X - centre) / scale]), way_back(centre, scale)
        omega = best_omega(counts, start.posterior(X))
        theta = np.r_[start.coef[0] + centre @ start.coef[1:], scale * start.coef[1:], omega]
        if start.separation == "none":
            theta, log_likelihood, converged, n_iter, cov = _newton(x, counts, theta, max_iter, tol)
            with np.errstate(over="ignore", invalid="ignore"):  # features of 1e-300 have coefficients of infinite variance
                coef, cov = back @ theta[:-1], back @ cov @ back.T
        else:
            log_likelihood = _sums(x, counts, theta)[0]
        alpha0 = 1 / theta[-1] if theta[-1] else np.inf
        ways = gammaln(counts.sum(axis=1) + 1) - gammaln(counts + 1).sum(axis=1)
        log_likelihood += ways.sum()
    if not converged and start.separation == "none":
        warnings.warn(
            f"no convergence after {n_iter} steps (max_iter={max_iter}, tol={tol:g}); raise max_iter",
            ConvergenceWarning,
            stacklevel=2,
        )
    return JointFit(
        coef=coef,
        alpha0=float(alpha0),
        log_likelihood=float(log_likelihood),
        converged=bool(converged),
        n_iter=int(n_iter),
        separation=start.separation,
        n_items=start.n_items,
        n_without_votes=start.n_without_votes,
        feature_names=names,
        _cov=cov,
    )


def _newton(x: Array, counts: Array, theta: Array, max_iter: int, tol: float) -> tuple[Array, float, bool, int, Array]:
    """Maximum over theta = (beta, omega): where, its log-likelihood, whether it is one, steps taken, covariance of beta."""
    q = len(theta) - 1
    value, score, H, squares = _sums(x, counts, theta)
    converged, n_iter = False, 0
    while not converged and n_iter < max_iter:
        step, concave = _step(score, H, squares)
        if theta[q] == 0 and min(score[q], step[q]) <= 0:  # on the boundary, and not about to leave it: only beta moves
            step, concave = _step(score[:q], H[:q, :q], squares[:q, :q])
            step = np.r_[step, 0.0]
        promise = score @ step / 2
        for _ in range(60):
            trial = theta + step
            trial[q] = max(trial[q], 0.0)
            there = _sums(x, counts, trial)
            if there[0] >= value - 1e-12 * abs(value):  # up to rounding, no fall
                break
            step = step / 2
        theta, (value, score, H, squares) = trial, there
        converged, n_iter = bool(concave and promise <= tol), n_iter + 1
    moves = q + (theta[q] > 0)
    return theta, value, converged, n_iter, _inverse(H[:moves, :moves])[:q, :q]


def _step(score: Array, H: Array, squares: Array) -> tuple[Array, bool]:
    """Newton's step, and whether the likelihood is concave here; else a step uphill by the squared scores."""
    d = 1 / np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-200))
    concave = bool(np.linalg.eigvalsh(d[:, None] * H * d).min() > 1e-12)
    return _inverse(H if concave else squares) @ score, concave


def _inverse(H: Array) -> Array:
    return inverse(H[None])[0].squeeze(0)


def _sums(x: Array, counts: Array, theta: Array) -> tuple[float, Array, Array, Array]:
    """Log-likelihood at theta = (beta, omega) without binomial coefficients, score, negative Hessian, squared scores."""
    value, score, H, squares = zip(*(_sums_of(x[part], counts[part], theta) for part in parts_of_votes(counts.sum(axis=1))))
    return sum(value), np.sum(score, axis=0), np.sum(H, axis=0), np.sum(squares, axis=0)


def _sums_of(x: Array, counts: Array, theta: Array) -> tuple[float, Array, Array, Array]:
    eta, omega = x @ theta[:-1], theta[-1]
    tau = np.maximum(np.column_stack([expit(eta), expit(-eta)]), RARE)
    extra, by_omega = VoteTerms(counts, tau).of_items(omega)
    by_eta, eta_eta, eta_omega, omega_omega = _derivatives(counts, tau, omega)
    independent = counts[:, 0] @ log_expit(eta) + counts[:, 1] @ log_expit(-eta)
    score = np.r_[x.T @ by_eta, by_omega.sum()]
    H = np.empty((len(theta), len(theta)))
    H[:-1, :-1] = (x.T * eta_eta) @ x
    H[:-1, -1] = H[-1, :-1] = x.T @ eta_omega
    H[-1, -1] = omega_omega.sum()
    each = np.column_stack([x * by_eta[:, None], by_omega])
    return float(independent + extra.sum()), score, H, each.T @ each


def _derivatives(counts: Array, tau: Array, omega: float) -> tuple[Array, ...]:
    """For each item (n,) the first derivative of the log-likelihood by eta, and the negative second ones by eta and omega.

    A vote for a class with probability t that has k votes already has the term log(t + k omega). With r = t / (t + k omega)
    and eta = logit(t), its derivative is (1 - t) r.
    """
    entry, k = votes_in_order(counts.ravel())
    item, sign = entry // 2, 1 - 2 * (entry % 2)
    t, rest = tau.ravel()[entry], tau[:, ::-1].ravel()[entry]
    inverse_t = 1 / (t + k * omega)
    r = t * inverse_t
    m, j = counts.sum(axis=1).astype(np.int64), np.arange(counts.sum(axis=1).max())
    of_all = np.append(0, np.cumsum((j / (1 + j * omega)) ** 2))[m]

    def total(values: Array) -> Array:
        return np.bincount(item, values, len(counts))  # type: ignore[return-value]  # NumPy's stubs forget weights

    return (
        total(sign * rest * r),
        total(rest * r * (t * r - (rest - t) * k * omega * inverse_t)),
        total(sign * rest * r * k * inverse_t),
        total((k * inverse_t) ** 2) - of_all,
    )
