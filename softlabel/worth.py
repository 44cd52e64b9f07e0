"""What votes are worth, given some true labels; one rule from votes and truths.

Inside, items are points z = (1, eta, T): eta is the linear predictor of the votes' rule, T are combinations of the features
that are uncorrelated with it and with each other, of unit variance. The truth is modelled by logit tau = theta'z with
theta = (a, s, d): votes lean by a, are off scale by s, are tilted by d. Votes whose mean is right have theta = (0, 1, 0).
"""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, logsumexp, ndtr

from softlabel.fits import LogisticRule
from softlabel.logistic import fit_logistic
from softlabel.separation import separation_of
from softlabel.validation import (
    Array,
    TruthWarning,
    align,
    as_counts,
    as_features,
    as_inclusion,
    as_labellers,
    as_level,
    as_rng,
    as_truth,
    as_whole,
)

# Standard deviations, beforehand, of a, of s - 1 and of each entry of d, beside the sampling error of the votes. Each
# combination is a model. With probability RIGHT there is neither lean nor tilt, with RARE one of them is the largest.
LEANS, SCALE, TILTS = (0.0, 0.25, 0.7, 2.0), 0.7, (0.0, 0.15, 0.4, 1.0)
RIGHT, RARE = 0.2, 0.1
FEW = 10  # true labels of a class, below which an answer has a reservation
DRAWS, COSTLY_DRAWS = 2000, 200  # from the posterior; of which so many are used where each one costs
AVERAGED, POINTS, REFERENCES = 2000, 200, 150  # items, at most, over which averages are taken; the last two costly ones
TAIL = 8  # degrees of freedom of the proposals, whose tails are to be no lighter than those of the posterior


@dataclass(frozen=True, eq=False)
class CombinedFit(LogisticRule):
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
        """Covariance (p + 1, p + 1) of the coefficients: what votes, true labels and priors leave open."""
        return self._cov.copy()

    def stderr(self) -> Array:
        """Standard errors (p + 1,) of the coefficients."""
        return np.sqrt(np.diag(self._cov))

    def __repr__(self) -> str:
        return self.describe(f"{self.n_truths} true labels")


def fit_votes_and_truth(X: ArrayLike, counts: ArrayLike, truth: ArrayLike) -> CombinedFit:
    """Fit one rule to votes and to the true labels of some items: the truths' rule, shrunk towards that of the votes.

    Parameters
    ----------
    X : (n, p) array_like or DataFrame
        Features, without a column for the intercept.
    counts : (n, 2) array_like
        Votes for the positive and the negative class.
    truth : (n,) array_like
        True labels, 1 for the positive class and 0; nan where unknown. They may be on items with or without votes.

    Returns
    -------
    CombinedFit

    Raises
    ------
    ValueError
        If an argument is not valid, or there are neither votes nor true labels.

    Warns
    -----
    TruthWarning
        If all true labels are of one class; or if the features separate the votes, whose maximum likelihood estimate then does
        not exist: Firth's takes its place.

    Notes
    -----
    The true labels follow logit tau = a + s eta + d'T, where eta is the linear predictor of the votes' rule and T are the
    other directions of the features. Beforehand (a, s, d) is normal with mean (0, 1, 0). Its covariance is that of the
    votes' estimate, plus squared amounts by which the votes' mean may be wrong: 0, 0.25 or 0.7 for a, 0.7 for s, and 0, 0.15
    or 0.4 for each entry of d. The coefficients are averaged over these nine models, with weights by their marginal
    likelihood (Laplace's approximation); that with neither lean nor tilt has probability 0.2 beforehand.

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
    CombinedFit(300 items; ...; 50 true labels; converged)
    """
    X, counts, truth, names = _arguments(X, counts, truth)
    known = ~np.isnan(truth)
    converged = True
    if counts.any():
        if known.any() and np.ptp(truth[known]) == 0:
            _warn(f"all true labels in truth are {truth[known][0]:g}: the rule is that of the votes, moved by its prior")
        belief = _Belief.of(X, counts, truth, known.astype(float))
        coef, cov = belief.coef_and_cov()
    elif known.any():
        fit = fit_logistic(X[known], truth[known], method="firth")
        coef, cov, converged = fit.coef, fit.cov("model"), fit.converged
    else:
        raise ValueError("counts has no vote and truth no true label: there is nothing to fit")
    eta = coef[0] + X[known] @ coef[1:]
    n_items = int(np.count_nonzero(counts.any(axis=1) | known))
    return CombinedFit(
        coef=coef,
        converged=converged,
        n_iter=0,
        separation="none",
        log_likelihood=float(log_expit(np.where(truth[known] == 1, eta, -eta)).sum()),
        n_items=n_items,
        n_without_votes=len(X) - n_items,
        feature_names=names,
        n_truths=int(known.sum()),
        _cov=cov,
    )


class Estimate(NamedTuple):
    """A number and its interval.

    Attributes
    ----------
    value : float
        Median of what is known about it.
    low, high : float
        Ends of the interval.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return "{:.3g} ({:.3g} to {:.3g})".format(*self)


@dataclass(frozen=True, eq=False)
class WorthOfVotes:
    """What votes are worth; made by :func:`worth_of_votes`.

    Attributes
    ----------
    error : Estimate
        Error rate of the votes' rule on new items.
    lean : Estimate
        How much the logit of the truth exceeds that of the votes at their rule's boundary, whatever the number of votes.
    scale : Estimate
        Slope of the truth's logit on that of the votes: below 1 votes are too extreme, above 1 too timid, below 0 inverted.
    tilt : Estimate
        Standard deviation, over the items, of the part of the truth's logit that is uncorrelated with that of the votes.
    floor : Estimate
        Excess of the error rate that remains with any number of votes.
    equal_number : Estimate
        Number of true labels that give the same expected error as the votes.
    level : float
        Of the intervals.
    n_items : int
        Number of items voted on.
    m : float
        Number of votes an item, on average.
    n_truths : int
        Number of true labels.
    reservations : tuple of str
        What makes the answer less certain than it looks.
    """

    error: Estimate
    lean: Estimate
    scale: Estimate
    tilt: Estimate
    floor: Estimate
    equal_number: Estimate
    level: float
    n_items: int
    m: float
    n_truths: int
    reservations: tuple[str, ...]

    def __repr__(self) -> str:
        head = f"{self.n_items:,} items, {self.m:.3g} votes each; {self.n_truths:,} true labels; {self.level:.0%} intervals"
        names = {
            "error of the votes' rule": self.error,
            "lean (0: none)": self.lean,
            "scale (1: right)": self.scale,
            "tilt (0: none)": self.tilt,
            "floor of the excess error": self.floor,
            "equal number of true labels": self.equal_number,
        }
        lines = [f"  {name:<28} {estimate}" for name, estimate in names.items()]
        return "\n".join([f"WorthOfVotes({head}", *lines, *(f"  but: {text}" for text in self.reservations)]) + ")"


def worth_of_votes(
    X: ArrayLike,
    counts: ArrayLike,
    truth: ArrayLike,
    *,
    inclusion: ArrayLike | None = None,
    n_items: int | None = None,
    m: float | None = None,
    level: float = 0.9,
    rng: np.random.Generator | int | None = None,
) -> WorthOfVotes:
    """Predict, from votes and the true labels of some items, how well the votes' rule does and what the votes are worth.

    Parameters
    ----------
    X : (n, p) array_like or DataFrame
        Features, without a column for the intercept.
    counts : (n, 2) array_like
        Votes for the positive and the negative class.
    truth : (n,) array_like
        True labels, 1 for the positive class and 0; nan where unknown. Items must have been chosen for them at random.
    inclusion : (n,) array_like, optional
        Probability of each item to be chosen for a true label, if they differ; read where ``truth`` is known.
    n_items, m : int and float, optional
        Number of items, and of votes on each, to predict for. By default those in hand; ``error`` is then that of the votes'
        rule in hand, and otherwise the mean over such samples.
    level : float
        Of the intervals.
    rng : Generator, int or None
        Source of randomness.

    Returns
    -------
    WorthOfVotes

    Raises
    ------
    ValueError
        If an argument is not valid, there is no vote or no true label, or another ``m`` is asked for while no item has two
        votes.

    Warns
    -----
    TruthWarning
        With each of the ``reservations``: fewer than ten true labels of a class, true labels that the features separate, or
        that are on items without votes; and votes that the features separate.

    Notes
    -----
    The model of :func:`fit_votes_and_truth`; its posterior by importance sampling. A rule that is estimated from n true
    labels and tends to coefficients b answers yes at x with a probability of about Phi(sqrt(n - p) r), where r is the signed
    root of twice the mean log-likelihood ratio of b to the best rule with x'b = 0. For votes r is multiplied by the
    standard error of x'b from as many true labels over that from the votes, a sandwich; for another m that is made of
    the variances between items and within them. Floor and equal number follow, draw by draw. Lean, scale, tilt and floor
    are those of the votes' limit: what their sampling error adds is taken off.

    Examples
    --------
    >>> from softlabel import TwoClassNormal, sample_votes
    >>> model = TwoClassNormal.canonical(2.0)
    >>> X, y = model.sample(500, rng=0)
    >>> counts = sample_votes(model.posterior(X), 5, 3.0, rng=1)
    >>> truth = np.where(np.arange(500) < 200, y, np.nan)
    >>> worth_of_votes(X, counts, truth, rng=2)
    """
    X, counts, truth, _ = _arguments(X, counts, truth)
    level, rng = as_level(level), as_rng(rng)
    known, voted = ~np.isnan(truth), counts.sum(axis=1) > 0
    if not known.any():
        raise ValueError("truth has no true label: without one, nothing tells what the votes are worth")
    if not voted.any():
        raise ValueError("counts has no votes: there is nothing whose worth could be told")
    weight = _weights(known, inclusion)
    size = int(voted.sum()) if n_items is None else as_whole(n_items, "n_items", X.shape[1] + 2)
    votes = None if m is None else float(as_labellers(m, whole=False, scalar=True))
    reservations = _reservations(X, truth, known, voted)
    for text in reservations:
        _warn(text)
    belief = _Belief.of(X, counts, truth, weight)
    cov = _cov_of_votes(belief.z[voted], counts[voted], votes, rng)
    draws = belief.quantities(cov, size, rng, in_hand=n_items is None and m is None)
    tails = [0.5, (1 - level) / 2, (1 + level) / 2]
    estimates = {name: Estimate(*map(float, np.quantile(values, tails))) for name, values in draws.items()}
    average = counts[voted].sum() / voted.sum() if votes is None else votes
    return WorthOfVotes(
        **estimates, level=level, n_items=size, m=float(average), n_truths=int(known.sum()), reservations=reservations
    )


def _arguments(X: ArrayLike, counts: ArrayLike, truth: ArrayLike) -> tuple[Array, Array, Array, list[str]]:
    counts, truth = align(X, counts, ("X", "counts")), align(X, truth, ("X", "truth"))
    X, names = as_features(X)
    counts = as_counts(counts)
    if counts.shape != (len(X), 2):
        raise ValueError(
            f"counts have shape {counts.shape} but X has {len(X)} items: a row of positive and negative votes for each item"
        )
    return X, counts, as_truth(truth, len(X)), names


def _warn(text: str) -> None:
    warnings.warn(text, TruthWarning, stacklevel=3)


def _weights(known: NDArray[np.bool_], inclusion: ArrayLike | None) -> Array:
    """Weights of the true labels (n,): inverse probabilities, in all as much as equal labels of the same precision."""
    weight = known.astype(float)
    if inclusion is not None:
        weight[known] = 1 / as_inclusion(inclusion, known)[known]
        weight *= weight.sum() / (weight**2).sum()
    return weight


def _reservations(X: Array, truth: Array, known: NDArray[np.bool_], voted: NDArray[np.bool_]) -> tuple[str, ...]:
    y = truth[known]
    found = [f"truth has only {k} true labels of class {c}" for c in (1, 0) if (k := int(np.sum(y == c))) < FEW]
    if 0 < y.sum() < len(y) and separation_of(X[known], np.column_stack([y, 1 - y])) != "none":
        found.append("the features separate the true labels in truth: the scale is known by its prior alone")
    if outside := int(np.sum(known & ~voted)):
        found.append(f"{outside} true labels in truth are on items without votes: they count as if chosen like the others")
    return tuple(found)


def _votes_rule(X: Array, counts: Array) -> tuple[Array, Array]:
    """Coefficients (p + 1,) of the votes' rule, and their covariance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of separation, which is said below
        fit = fit_logistic(X, counts)
    cov = fit.cov()
    if fit.separation != "none":
        _warn("the features separate the votes in counts: Firth's estimate takes the place of the votes' rule")
        fit = fit_logistic(X, counts, method="firth")
        cov = fit.cov("model")
    if not np.isfinite(cov).all():
        raise ValueError("X has a column so small that the variance of its coefficient is no number: change its unit")
    return fit.coef, cov


def _coordinates(X: Array, coef: Array) -> tuple[Array, Array]:
    """Coefficients (q, p + 1) of 1, eta and each T; and the matrix (q, p + 1) from coefficients to theta."""
    centre = X.mean(axis=0)
    scale = np.abs(X - centre).max(axis=0)
    units = (X - centre) / scale
    R = np.linalg.cholesky(units.T @ units / len(X)).T  # unlike that of a QR decomposition, it has no sign to choose
    along = R @ (coef[1:] * scale)  # slopes on uncorrelated features of unit variance
    length = np.linalg.norm(along)
    T = np.linalg.svd(along[None])[2][1:] if length > 1e-8 else np.eye(len(along))  # votes without slope have no direction
    slopes = np.linalg.solve(R, T.T).T / scale
    to_coef = np.vstack([np.eye(1, len(coef)), coef, np.column_stack([-slopes @ centre, slopes])])
    onto = np.vstack([along / length**2 if length > 1e-8 else 0 * along, T]) @ (R * scale)
    to_theta = np.column_stack([np.zeros(len(to_coef)), np.vstack([0 * along, onto])])
    to_theta[0] = np.r_[1, centre] - (coef[0] + centre @ coef[1:]) * to_theta[1]
    return to_coef, to_theta


def _cov_of_votes(z: Array, counts: Array, m: float | None, rng: np.random.Generator) -> Array:
    """Covariances (COSTLY_DRAWS, q, q) of the votes' estimate of theta from one item, as uncertain as items make them.

    With ``m`` votes an item, from the variances between items and within them; else with the votes in hand.
    """
    votes = counts.sum(axis=1)
    share, tau = counts[:, 0] / votes, expit(z[:, 1])
    squared, several = (share - tau) ** 2, votes > 1
    if m is None:
        load = votes / votes.mean()  # a vote counts the same on any item
        between, within = (load * (share - tau)) ** 2, 0 * load
    elif several.any():
        z, share, votes, tau = z[several], share[several], votes[several], tau[several]
        load, variance = np.ones(len(z)), share * (1 - share) / (votes - 1)  # of the share, about the item's own probability
        between, within = squared[several] - variance, variance * votes / m
    elif m == 1:
        load, between, within = np.ones(len(z)), squared, 0 * squared
    else:
        raise ValueError("no item in counts has more than one vote: what another m is worth cannot be told")
    covs = np.empty((COSTLY_DRAWS, z.shape[1], z.shape[1]))
    for cov in covs:
        weight = rng.standard_exponential(len(z))  # the Bayesian bootstrap
        weight /= weight.sum()
        bread = np.linalg.pinv((z.T * (weight * load * tau * (1 - tau))) @ z, hermitian=True)
        value, vector = np.linalg.eigh((z.T * (weight * between)) @ z)
        meat = (vector * np.maximum(value, 0)) @ vector.T + (z.T * (weight * within)) @ z
        cov[:] = bread @ meat @ bread + 1e-12 * np.eye(len(cov))  # not singular, even if each vote is met exactly
    return covs


@dataclass(frozen=True)
class _Belief:
    """What is known of theta: a normal distribution in each of H models, and the weights of the models."""

    z: Array  # (n, q), the items
    to_coef: Array  # (q, p + 1)
    sampling: Array  # (q, q), covariance of the votes' estimate, on their scale
    scale: float  # on the scale of the truth their error is so many times as large
    precision: Array  # (H, q, q), beforehand
    labels: tuple[Array, Array, Array]  # items (k, q) with true labels (k,), which count so many times (k,)
    mode: Array  # (H, q)
    hessian: Array  # (H, q, q)
    log_weight: Array  # (H,)

    @classmethod
    def of(cls, X: Array, counts: Array, truth: Array, weight: Array) -> "_Belief":
        coef, cov = _votes_rule(X, counts)
        to_coef, to_theta = _coordinates(X, coef)
        z = to_coef[:, :1].T + X @ to_coef[:, 1:].T
        q = z.shape[1]
        sampling = to_theta @ (cov + cov.T) @ to_theta.T / 2
        sampling = sampling + 1e-12 * np.eye(q)  # not singular, even if the rule meets each vote exactly
        known = weight > 0
        labels = z[known], truth[known], np.asarray(weight[known], float)
        drift, log_prior = _models(q)
        scale = 1.0
        for last in (False, True):  # the scale is found in the first round
            precision = np.asarray(np.linalg.inv(drift[:, :, None] ** 2 * np.eye(q) + scale**2 * sampling), float)
            mode, hessian, peak = _modes(*labels, precision)
            log_weight = log_prior + peak + (np.linalg.slogdet(precision)[1] - np.linalg.slogdet(hessian)[1]) / 2
            log_weight = log_weight - logsumexp(log_weight)
            if not last:
                scale = max(0.1, abs(float(np.exp(log_weight) @ mode[:, 1])))
        return cls(z, to_coef, sampling, scale, precision, labels, mode, hessian, log_weight)

    def coef_and_cov(self) -> tuple[Array, Array]:
        """Mean (p + 1,) of the coefficients and their covariance."""
        weight = np.exp(self.log_weight)
        coefs = self.mode @ self.to_coef
        coef = weight @ coefs
        within = self.to_coef.T @ np.tensordot(weight, np.linalg.inv(self.hessian), 1) @ self.to_coef
        return coef, within + (coefs - coef).T @ ((coefs - coef) * weight[:, None])

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array, NDArray[np.intp]]:
        """Draws of theta, of the part of theta that is the error of the votes' estimate, both (DRAWS, q), and their models."""
        H, q = self.mode.shape
        grid = (np.arange(DRAWS) + 0.5) / DRAWS
        of_model = np.searchsorted(np.cumsum(np.exp(self.log_weight)), grid).clip(max=H - 1)
        root = np.linalg.inv(np.linalg.cholesky(self.hessian)).swapaxes(1, 2)
        steps = rng.standard_normal((DRAWS, q)) / np.sqrt(rng.chisquare(TAIL, DRAWS) / TAIL)[:, None]
        theta = self.mode[of_model] + (root[of_model] @ steps[..., None])[..., 0]
        # Importance sampling: the proposals are a mixture of t distributions, the posterior one of products.
        form, det = _forms(theta[:, None] - self.mode, self.hessian), np.linalg.slogdet(self.hessian)[1]
        proposal = logsumexp(self.log_weight + det / 2 - (TAIL + q) / 2 * np.log1p(form / TAIL), axis=1)
        prior = _models(q)[1] + np.linalg.slogdet(self.precision)[1] / 2
        prior = prior - _forms((theta - _right(q))[:, None], self.precision) / 2
        z, y, w = self.labels
        weight = _log_likelihood(theta, z, y, w) + logsumexp(prior, axis=1) - proposal
        weight = np.exp(weight - weight.max())
        weight = np.minimum(weight, np.sqrt(DRAWS) * weight.mean())  # no draw alone decides (Ionides 2008)
        kept = rng.permutation(np.searchsorted(np.cumsum(weight / weight.sum()), grid).clip(max=DRAWS - 1))
        theta, prior = theta[kept], prior[kept]
        chance = np.exp(prior - logsumexp(prior, axis=1, keepdims=True)).cumsum(axis=1)
        model = (chance < rng.random((DRAWS, 1))).sum(axis=1).clip(max=H - 1)
        # theta is a sum of drift and error, both normal: the error given the sum.
        spread = self.sampling * self.scale**2
        gain = spread @ self.precision
        value, vector = np.linalg.eigh(spread - gain @ spread)
        root = (vector * np.sqrt(np.maximum(value, 0))[:, None]) @ vector.swapaxes(1, 2)
        error = gain[model] @ (theta - _right(q))[..., None] + root[model] @ rng.standard_normal((DRAWS, q, 1))
        return theta, error[..., 0], model

    def quantities(self, cov: Array, size: int, rng: np.random.Generator, in_hand: bool) -> dict[str, Array]:
        """Draws of what :class:`WorthOfVotes` reports, for ``size`` items, each as informative as ``cov`` says."""
        theta, error, model = self.draw(rng)
        q = theta.shape[1]
        none = _models(q)[0][model] == 0
        drift = np.where(none, 0, theta - error)
        limit = _right(q) + error / self.scale
        order = np.lexsort(self.z[:, :0:-1].T)  # by eta: neither the order of the items nor chance decides which are used
        z, points, references = (
            self.z[order[np.linspace(0, len(order) - 1, min(len(order), k)).astype(int)]]
            for k in (AVERAGED, POINTS, REFERENCES)
        )
        tau = expit(theta @ z.T)
        share = rng.standard_exponential(tau.shape)  # of each item among new ones: the Bayesian bootstrap (Rubin 1981)
        share /= share.sum(axis=1, keepdims=True)
        bayes = (np.minimum(tau, 1 - tau) * share).sum(axis=1)
        floor = _error(limit @ z.T > 0, tau, share) - bayes
        floor[none[:, [0, *range(2, q)]].all(axis=1) & (theta[:, 1] > 0)] = 0
        costly = np.linspace(0, DRAWS - 1, COSTLY_DRAWS).astype(int)
        excess, number = np.transpose([_equal(points, references, theta[k], limit[k], c, size) for k, c in zip(costly, cov)])
        return {
            "error": _error(z[:, 1] > 0, tau, share) if in_hand else bayes[costly] + excess,
            "lean": drift[:, 0],
            "scale": drift[:, 1],
            "tilt": np.linalg.norm(drift[:, 2:], axis=1),
            "floor": floor,
            "equal_number": number,
        }


def _models(q: int) -> tuple[Array, Array]:
    """Standard deviations (H, q) of theta in each model, and the logarithms of the models' probabilities."""
    lean, tilt = (a.ravel() for a in np.meshgrid(LEANS, TILTS if q > 2 else TILTS[:1]))
    right, rare = (lean == 0) & (tilt == 0), (lean == LEANS[-1]) | (tilt == TILTS[-1])
    other = ~(right | rare)
    prior = RIGHT * right + RARE * rare / rare.sum() + (1 - RIGHT - RARE) * other / other.sum()
    return np.column_stack([lean, np.full(len(lean), SCALE), np.tile(tilt[:, None], q - 2)]), np.log(prior)


def _right(q: int) -> Array:
    """The theta of votes whose mean is right."""
    right: Array = np.eye(1, q, 1)[0]
    return right


def _forms(x: Array, matrices: Array) -> Array:
    """x' M x (n, H) of points (n, H, q) or (n, 1, q) and matrices (H, q, q)."""
    x = x.swapaxes(0, 1)
    forms: Array = ((x @ matrices) * x).sum(axis=-1)
    return forms.T


def _log_likelihood(theta: Array, z: Array, y: Array, w: Array) -> Array:
    eta = theta @ z.T
    log_likelihood: Array = log_expit(np.where(y == 1, eta, -eta)) @ w
    return log_likelihood


def _error(positive: NDArray[np.bool_], tau: Array, share: Array) -> Array:
    """Error rates of rules that say which items are positive."""
    rates: Array = (np.where(positive, 1 - tau, tau) * share).sum(axis=-1)
    return rates


def _modes(z: Array, y: Array, w: Array, precision: Array, max_iter: int = 100) -> tuple[Array, Array, Array]:
    """Posterior modes (H, q) of theta, minus the second derivatives (H, q, q) there, and the log posteriors (H,)."""
    right = _right(z.shape[1])
    theta = np.tile(right, (len(precision), 1))

    def log_posterior(theta: Array) -> Array:
        away = theta - right
        value: Array = _log_likelihood(theta, z, y, w) - np.einsum("hi,hij,hj->h", away, precision, away) / 2
        return value

    value = log_posterior(theta)
    for _ in range(max_iter):
        eta = theta @ z.T
        gradient = (w * (y - expit(eta))) @ z - (precision @ (theta - right)[..., None])[..., 0]
        curved = w * expit(eta) * expit(-eta)
        hessian = (z.T * curved[:, None]) @ z + precision
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        rise = np.einsum("hi,hi->h", gradient, step)
        moved = log_posterior(theta + step)
        for _ in range(30):  # half the step where it leads down
            down = moved < value - 1e-9 * (1 + np.abs(value))
            if not down.any():
                break
            step[down] /= 2
            moved = log_posterior(theta + step)
        theta, value = theta + step, moved
        if rise.max() < 1e-12:
            break
    return theta, hessian, value


def _signed_roots(points: Array, references: Array, theta: Array) -> tuple[Array, Array]:
    """Signed root (n,) of twice the mean log-likelihood ratio of theta to the best rule with z'theta = 0, at each point.

    Also z' A^-1 z, where A is the information of one true label. The constrained maximum is found by two Newton steps.
    """
    odds = np.exp(np.clip(references @ theta, -700, 700))
    tau, n = odds / (1 + odds), len(references)
    A = (references.T * (tau / (1 + odds))) @ references / n
    ridge = 1e-9 * np.trace(A) * np.eye(len(A))
    steepest = points @ np.linalg.inv(A + ridge)
    form = np.sum(steepest * points, axis=1)
    along = points @ theta
    rules = theta - (along / form)[:, None] * steepest
    target = tau @ references / n  # the mean log-likelihood of rule b is target'b less the mean of log(1 + odds)
    best = target @ theta - np.log1p(odds).mean()
    products = (references[:, :, None] * references[:, None]).reshape(n, -1) / n
    odds = np.exp(np.clip(rules @ references.T, -700, 700))
    ratio = best - rules @ target + np.log1p(odds).mean(axis=1)
    probability = odds / (1 + odds)
    hessian = ((probability / (1 + odds)) @ products).reshape(len(rules), *A.shape) + ridge
    gradient = probability @ references / n - target
    by_gradient, by_point = np.moveaxis(np.linalg.solve(hessian, np.stack([gradient, points], axis=-1)), -1, 0)
    multiplier = np.sum(points * by_gradient, axis=1) / np.sum(points * by_point, axis=1)
    rules = rules - by_gradient + multiplier[:, None] * by_point
    second = best - rules @ target + np.log1p(np.exp(np.clip(rules @ references.T, -700, 700))).mean(axis=1)
    return np.sign(along) * np.sqrt(2 * np.maximum(np.minimum(ratio, second), 0)), form


def _equal(points: Array, references: Array, theta: Array, limit: Array, cov: Array, size: int) -> tuple[float, float]:
    """Expected excess error of votes on ``size`` items, and the number of true labels with the same."""
    tau, p = expit(points @ theta), len(theta) - 1
    loss = np.abs(2 * tau - 1)  # of a wrong decision
    votes, form = _signed_roots(points, references, limit)
    votes *= np.sqrt(form / np.sum(points @ cov * points, axis=1))
    excess = float((loss * ndtr(-np.sign(tau - 0.5) * votes * np.sqrt(size - p))).mean())
    truths = np.abs(_signed_roots(points, references, theta)[0])
    n = np.geomspace(p + 2, 1e7, 60)
    of_truths = (loss * ndtr(-truths * np.sqrt(n - p)[:, None])).mean(axis=1)
    log = np.log(np.maximum([excess, *of_truths], 1e-300))
    return excess, float(np.exp(np.interp(-log[0], -log[1:], np.log(n))))
