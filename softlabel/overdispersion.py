"""How much the votes on an item vary beyond chance: the overdispersion parameter alpha0, given tau or a fit of it.

The search is over omega = 1 / alpha0 >= 0, on which the multinomial, omega = 0, is an ordinary point. After k votes for class
i an item's next one is for i with probability proportional to tau_i + k omega, so that the log-likelihood, less its value at
omega = 0, sums log(1 + k omega / tau_i) over all votes for i that have k before them, less log(1 + j omega) over all votes
that have j before them on their item.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, chdtri

from softlabel.patient import explain_no_convergence, fit_patiently
from softlabel.separation import design
from softlabel.validation import (
    Array,
    align,
    as_choice,
    as_counts_and_tau,
    as_features,
    as_level,
    as_rng,
    as_whole,
    place,
)
from softlabel.vote_models import DirichletMultinomial, parts_of_votes, votes_in_order

# Values of omega at which likelihoods are compared before the best is refined: the multinomial, 1e-6 to 1e6, and beyond.
# Each term of a likelihood changes over more than a decade, so that two values a decade miss no maximum.
FINE_GRID = np.concatenate([[0.0], np.logspace(-6, 6, 577), [1e12]])
GRID = FINE_GRID[[0, *range(1, 578, 24), 578]]
SMALLEST = 1e-280  # probability, so that what is divided by it stays finite
MANY = 40_000  # items
FEWEST = 3  # items of the rarer class for each coefficient
SAME = 1e-4  # between probabilities of the same fit, by whatever program
KEPT = 1 << 25  # votes, of which each takes eight bytes


@dataclass(frozen=True, eq=False)
class Alpha0Fit:
    """Maximum likelihood estimate of alpha0 with the posterior probabilities held fixed.

    Attributes
    ----------
    alpha0 : float
        The estimate. ``inf``: the votes vary no more than independent ones would. ``0.0``: every item is unanimous, and the
        likelihood rises as alpha0 falls to 0.
    log_likelihood : float
        Log-likelihood at the estimate, binomial coefficients included.
    multinomial_log_likelihood : float
        Log-likelihood at alpha0 = inf.
    """

    alpha0: float
    log_likelihood: float
    multinomial_log_likelihood: float

    def __repr__(self) -> str:
        gain = f"{self.log_likelihood - self.multinomial_log_likelihood:.4g} above the multinomial"
        return f"Alpha0Fit(alpha0 = {self.alpha0:.6g}; log-likelihood {self.log_likelihood:.6g}, {gain})"


class OverdispersionTest(NamedTuple):
    """Likelihood ratio statistic and its p-value."""

    statistic: float
    pvalue: float


def estimate_alpha0(counts: ArrayLike, tau: ArrayLike) -> Alpha0Fit:
    """Estimate the overdispersion parameter alpha0 by maximum likelihood with tau held fixed.

    Parameters
    ----------
    counts : (n, g) array_like
        Votes of each item for each class, column 0 the positive class. Items with no vote or one say nothing about alpha0.
    tau : (n, g) array_like
        Posterior probabilities of each item, such as ``fit_logistic(...).posterior(X)``.

    Returns
    -------
    Alpha0Fit

    Raises
    ------
    ValueError
        If counts or tau are not valid, their shapes differ, a class with probability zero has a vote, or no item has two
        votes.

    Notes
    -----
    Section 5.1 of Ahfock & McLachlan (2021). The likelihood may have several maxima: it is compared on a grid over 24 decades,
    both ends included, before the best value is refined.

    ``alpha0`` is large if labellers share little beyond what ``tau`` explains, or differ in strictness. That is no mark of
    good labellers: it does not tell how far the mean of their votes is from the truth.

    Examples
    --------
    >>> counts = [[7, 0], [6, 1], [2, 5], [0, 7], [7, 0], [1, 6]]
    >>> tau = [[0.8, 0.2], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.7, 0.3], [0.5, 0.5]]
    >>> round(estimate_alpha0(counts, tau).alpha0, 3)
    1.364
    """
    return _estimate(*_checked(counts, tau))


def _estimate(counts: Array, tau: Array) -> Alpha0Fit:
    alpha0 = _inverse(best_omega(counts, tau))
    return Alpha0Fit(alpha0, _log_likelihood(counts, tau, alpha0), _log_likelihood(counts, tau, np.inf))


def bootstrap_alpha0(
    counts: ArrayLike, tau: ArrayLike, n_resamples: int = 500, rng: np.random.Generator | int | None = None
) -> Array:
    """Estimates of alpha0 on resampled items, with tau held fixed.

    Parameters
    ----------
    counts, tau
        As in :func:`estimate_alpha0`.
    n_resamples : int
        Number of resamples.
    rng : Generator, int or None
        Source of randomness.

    Returns
    -------
    (n_resamples,) ndarray
        Each with a relative error below 1e-4 (a bootstrap needs no more) between 1e-5 and 1e5; ``inf`` and ``0`` as in
        :class:`Alpha0Fit`. A resample in which no item has two votes says nothing about alpha0, and counts as ``inf``.

    Raises
    ------
    ValueError
        As :func:`estimate_alpha0`, or if ``n_resamples`` is not a whole number of at least 1.

    Notes
    -----
    Figure 3(c) of Ahfock & McLachlan (2021). A resample is a vector of weights on the items, so the terms of the items are
    computed once, on a grid of omega, and all resamples share them. The grid is fine where a coarse one has their maxima.

    Examples
    --------
    >>> counts = [[7, 0], [6, 1], [2, 5], [0, 7], [7, 0], [1, 6]]
    >>> tau = [[0.8, 0.2], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.7, 0.3], [0.5, 0.5]]
    >>> bootstrap_alpha0(counts, tau, n_resamples=3, rng=1).round(2)
    array([0.81, 2.41, 1.55])
    """
    counts, tau = _checked(counts, tau)
    n_resamples, rng = as_whole(n_resamples, "n_resamples", 1), as_rng(rng)

    def resampled(grid: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Log-likelihood and score of each resample at each omega."""
        log_likelihood, score = np.zeros((2, n_resamples, len(grid)))
        left = np.full(n_resamples, len(counts))
        for items in parts_of_votes(np.maximum(counts.sum(axis=1), 8)):
            # How often each resample has each of these items: those that fall among them, and then where.
            size, rest = len(counts[items]), len(counts) - items.start
            here = left if size == rest else rng.binomial(left, size / rest)
            left = left - here
            times = np.array([np.bincount(rng.integers(size, size=k), minlength=size) for k in here], float)
            logs, slopes = zip(*map(VoteTerms(counts[items], tau[items]).of_items, grid))
            log_likelihood, score = log_likelihood + times @ np.transpose(logs), score + times @ np.transpose(slopes)
        return log_likelihood, score

    # The resamples are drawn twice, by the same numbers: kept, they would need more memory than all else.
    coarse = np.argmax(resampled(GRID, deepcopy(rng))[0], axis=1)
    low, high = GRID[max(coarse.min() - 1, 0)], GRID[min(coarse.max() + 1, len(GRID) - 1)]
    grid = FINE_GRID[(low <= FINE_GRID) & (high >= FINE_GRID)]
    log_likelihood, score = resampled(grid, rng)
    best = np.argmax(log_likelihood, axis=1)

    # Between the points of the grid the score is a smooth function of log omega: its root by a parabola.
    omega = grid[best]
    at = np.clip(best, 1, len(grid) - 2)[:, None] + np.arange(-1, 2)
    slope = grid[at] * np.take_along_axis(score, at, axis=1)
    inner = (at[:, 1] == best) & (slope[:, 0] > 0) & (slope[:, 2] < 0)
    omega[inner] = np.exp(_root(np.log(grid[at[inner]]), slope[inner]))
    with np.errstate(divide="ignore"):
        return np.where(omega == GRID[-1], 0.0, 1 / omega)


def _root(x: Array, f: Array) -> Array:
    """Root of the parabola through three points (.., 3) of a falling function that crosses zero between the outer two."""
    (x0, x1, x2), (f0, f1, f2) = np.moveaxis(x, -1, 0), np.moveaxis(f, -1, 0)
    slope01, slope12 = (f1 - f0) / (x1 - x0), (f2 - f1) / (x2 - x1)
    curve = (slope12 - slope01) / (x2 - x0)
    slope = slope01 + curve * (x1 - x0)  # at x1
    root: Array = x1 - 2 * f1 / (slope - np.sqrt(np.maximum(slope**2 - 4 * curve * f1, 0)))
    return root


def alpha0_interval(
    counts: ArrayLike,
    tau: ArrayLike,
    *,
    X: ArrayLike | None = None,
    level: float = 0.95,
    method: Literal["cox-reid", "bootstrap", "likelihood"] = "cox-reid",
    n_resamples: int = 500,
    rng: np.random.Generator | int | None = None,
) -> tuple[float, float]:
    """Confidence interval for alpha0.

    Parameters
    ----------
    counts, tau
        As in :func:`estimate_alpha0`. For "cox-reid" there are two classes, and ``tau`` is
        ``fit_logistic(X, counts).posterior(X)``.
    X : (n, p) array_like or DataFrame
        Features that the coefficients were fitted to, for "cox-reid".
    level : float
        Coverage, strictly between 0 and 1.
    method : {"cox-reid", "bootstrap", "likelihood"}
        All values whose log-likelihood is within half a chi-square quantile of the largest: "cox-reid" with the adjustment
        below for the fitted coefficients, "likelihood" without it. Or percentiles of :func:`bootstrap_alpha0`. The last two
        take ``tau`` as known, whatever it is.
    n_resamples, rng
        For the bootstrap.

    Returns
    -------
    low, high : float
        ``high`` is ``inf`` where the multinomial is within the interval.

    Raises
    ------
    ValueError
        As :func:`estimate_alpha0`, or if ``level`` or ``method`` is not valid. With "cox-reid" also as :func:`fit_logistic`,
        if ``X`` is missing, if ``tau`` is not the fit of ``counts`` on ``X``, if the features separate the votes or the fit
        does not converge, or if there are fewer than 3 items of the rarer class for each coefficient: no method here can then
        be relied on. With "bootstrap" if nearly all resamples have the same estimate, infinite or 0.

    Notes
    -----
    Fitted coefficients explain part of the scatter, so that the likelihood with ``tau`` held fixed is largest where alpha0 is
    too high. Cox & Reid (1987) subtract half the log-determinant of the information on the coefficients, here X'WX with
    W = m tau (1 - tau) / phi and phi = (m + alpha0) / (1 + alpha0). If all items have the same number of votes, this adds
    log(phi) (p + 1) / 2, and nothing else. (So it would for g classes, with (g - 1)(p + 1) coefficients of a multinomial
    fit.) If not, the coefficients are fitted anew with weights 1 / phi, lest the few items with many votes outweigh all
    others.

    Section 5.1 of Ahfock & McLachlan (2021) has the percentile bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> from softlabel import TwoClassNormal, fit_logistic, sample_votes
    >>> model = TwoClassNormal.canonical(2)
    >>> X, _ = model.sample(100, rng=1)
    >>> counts = sample_votes(model.posterior(X), 5, alpha0=5, rng=2)
    >>> low, high = alpha0_interval(counts, fit_logistic(X, counts).posterior(X), X=X)
    >>> round(low, 2), round(high, 2)
    (2.49, 15.55)
    """
    level, n_resamples, rng = as_level(level), as_whole(n_resamples, "n_resamples", 1), as_rng(rng)
    if as_choice(method, "method", ("cox-reid", "bootstrap", "likelihood")) == "bootstrap":
        estimates = bootstrap_alpha0(counts, tau, n_resamples, rng)
        # "higher": between a finite estimate and infinity there is nothing to interpolate
        tails = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(estimates, tails, method="linear" if np.isfinite(estimates).all() else "higher")
        if low == high and low in (0, np.inf):
            raise ValueError(
                f"nearly all resamples of counts have the same estimate of alpha0, {low:g}: their percentiles are one point "
                "and no interval; name method='cox-reid' or 'likelihood', which have one here"
            )
        return float(low), float(high)
    X = X if X is None else align(counts, X, ("counts", "X"))
    counts, tau = _checked(counts, tau)
    if method == "likelihood":
        return likelihood_interval(VoteTerms(counts, tau).log_likelihood, level)
    if X is None:
        raise ValueError(
            "X is missing: method='cox-reid' needs the features that the coefficients were fitted to; 'likelihood' and "
            "'bootstrap' do without and take tau as known"
        )
    likelihood = adjusted_likelihood(counts, tau, X)
    rarer, q = rarer_items(counts), as_features(X, none=True)[0].shape[1] + 1
    if rarer < FEWEST * q:
        raise ValueError(
            f"{rarer:.3g} items' worth of votes for the rarer class, coefficients: {q}; below {FEWEST} for each no interval "
            "for alpha0 can be relied on, and method='likelihood' and 'bootstrap' less than this; use fewer features"
        )
    return likelihood_interval(likelihood, level)


def rarer_items(counts: Array) -> float:
    """Items of the rarer class, where an item is shared out by its votes."""
    voted = counts[counts.any(axis=1)]
    return float((voted / voted.sum(axis=1, keepdims=True)).sum(axis=0).min())


def adjusted_likelihood(counts: Array, tau: Array, X: ArrayLike) -> Callable[[float], float]:
    """The log-likelihood of omega with the adjustment of Cox & Reid (1987), but for a constant.

    See :func:`alpha0_interval`.
    """
    if counts.shape[1] != 2:
        raise ValueError(
            f"method='cox-reid' takes two classes, as the logistic fit does, and counts have {counts.shape[1]}: name "
            "method='likelihood' or 'bootstrap'"
        )
    fitted = _posterior(X, counts)
    if np.abs(fitted - tau).max() > SAME:
        raise ValueError(
            "tau is not fit_logistic(X, counts).posterior(X): method='cox-reid' allows for the error of that fit only; for "
            "another tau name method='likelihood' or 'bootstrap', which take it as known"
        )
    X, _ = as_features(X, none=True)
    voted = counts.any(axis=1)
    X, counts, tau = X[voted], counts[voted], tau[voted]
    (m, which), q = np.unique(counts.sum(axis=1), return_inverse=True), X.shape[1] + 1
    likelihood: Callable[[float], float] = VoteTerms(counts, tau).log_likelihood
    if len(m) == 1:
        return lambda omega: likelihood(omega) + q / 2 * float(np.log(_phi(m, omega)[0]))

    x = design(X)
    for _ in range(2):  # a third time changes nothing
        weighted = counts / _phi(m, _highest(likelihood)[0])[which, None]
        # fit_logistic takes whole numbers, of which only the ratios matter
        tau = _posterior(X, np.rint(weighted * (2.0**50 / weighted.max())))
        w = m[which] * tau.prod(axis=1)
        parts = np.array([(x[which == k].T * w[which == k]) @ x[which == k] for k in range(len(m))])
        likelihood = _less_log_det(VoteTerms(counts, tau).log_likelihood, parts, m)
    return likelihood


def _posterior(X: ArrayLike, votes: Array) -> Array:
    """Of a fit, which there must be."""
    fit = fit_patiently(X, votes)
    if fit.separation != "none":
        raise ValueError("the features separate the votes: there is no fit, and no interval for alpha0")
    if not fit.converged:
        raise ValueError(f"{explain_no_convergence(fit, 'counts')}. Without a fit there is no interval for alpha0")
    return fit.posterior(X)


def _phi(m: Array, omega: float) -> Array:
    return (1 + m * omega) / (1 + omega)


def _less_log_det(likelihood: Callable[[float], float], parts: Array, m: Array) -> Callable[[float], float]:
    """Less half the log-determinant of the information, made of a part for each number of votes."""
    return lambda omega: likelihood(omega) - np.linalg.slogdet(np.tensordot(1 / _phi(m, omega), parts, 1))[1] / 2


def likelihood_interval(likelihood: Callable[[float], float], level: float) -> tuple[float, float]:
    """Ends for alpha0: all omega whose log-likelihood is within half a chi-square quantile of the largest."""
    from scipy.optimize import brentq

    omega, top = _highest(likelihood)
    lowest = top - chdtri(1, 1 - level) / 2

    def end(side: Array, otherwise: float) -> float:
        beyond = next((w for w in side if likelihood(w) < lowest), None)
        if beyond is None:
            return otherwise
        return _inverse(brentq(lambda w: likelihood(w) - lowest, *sorted((beyond, omega))))

    return end(GRID[omega < GRID], 0.0), end(GRID[omega > GRID][::-1], np.inf)


def _highest(likelihood: Callable[[float], float]) -> tuple[float, float]:
    """omega where a log-likelihood is largest, and its value there; for the limit stands the end of the grid."""
    from scipy.optimize import minimize_scalar

    values = np.array([likelihood(omega) for omega in GRID])
    best = int(np.argmax(values))
    if best == len(GRID) - 1:
        return float(GRID[best]), float(values[best])
    # On a scale that is linear near the multinomial and logarithmic further on.
    near = np.arcsinh(1e6 * GRID[[max(best - 1, 0), best + 1]])
    found = minimize_scalar(lambda t: -likelihood(np.sinh(t) / 1e6), bounds=near, method="bounded", options={"xatol": 1e-6})
    if -found.fun > values[best]:
        return float(np.sinh(found.x) / 1e6), float(-found.fun)
    return float(GRID[best]), float(values[best])


def _inverse(omega: float) -> float:
    return 1 / omega if omega else np.inf


def overdispersion_test(counts: ArrayLike, tau: ArrayLike) -> OverdispersionTest:
    """Test whether the votes vary more than independent votes would (alpha0 = inf), with tau held fixed.

    Parameters
    ----------
    counts, tau
        As in :func:`estimate_alpha0`.

    Returns
    -------
    statistic : float
        Twice the log-likelihood ratio of the best alpha0 to the multinomial.
    pvalue : float
        The multinomial is a boundary point: under it the statistic is 0 in half of the samples, and chi-square with one degree
        of freedom in the others.

    Raises
    ------
    ValueError
        As :func:`estimate_alpha0`.

    Notes
    -----
    Self & Liang (1987), case 5, for the distribution on the boundary.

    Examples
    --------
    >>> counts = [[7, 0], [6, 1], [2, 5], [0, 7], [7, 0], [1, 6]]
    >>> tau = [[0.8, 0.2], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.7, 0.3], [0.5, 0.5]]
    >>> overdispersion_test(counts, tau).pvalue < 0.01
    True
    """
    fit = estimate_alpha0(counts, tau)
    statistic = max(2 * (fit.log_likelihood - fit.multinomial_log_likelihood), 0.0)
    return OverdispersionTest(statistic, float(chdtrc(1, statistic) / 2) if statistic > 0 else 1.0)


def _checked(counts: ArrayLike, tau: ArrayLike) -> tuple[Array, Array]:
    counts, tau = as_counts_and_tau(counts, tau)
    impossible = (counts > 0) & (tau == 0)
    if impossible.any():
        at = tuple(np.argwhere(impossible)[0])
        raise ValueError(f"{place('counts', at)} is {counts[at]:g} but tau is 0 there: a class with a vote needs tau > 0")
    need_repeated_votes(counts)
    if not np.any((counts.sum(axis=1) > 1) & (tau.max(axis=1) < 1)):
        raise ValueError("tau is 0 or 1 on every item with more than one vote: every alpha0 fits, none can be estimated")
    return counts, tau


def need_repeated_votes(counts: Array) -> None:
    """An error where no item has two votes."""
    if counts.sum(axis=1).max() < 2:
        raise ValueError("no item has more than one vote: alpha0 cannot be estimated, since it only shows in repeated votes")


def _log_likelihood(counts: Array, tau: Array, alpha0: float) -> float:
    if alpha0 == 0:  # the labellers of an item agree: the first vote decides, and it is a draw from tau
        return float(np.log(tau[counts > 0]).sum())
    return float(DirichletMultinomial(alpha0).log_probability(counts, tau).sum())


def best_omega(counts: Array, tau: Array) -> float:
    """omega where the log-likelihood is largest; 0 and ``inf`` are values like any other."""
    from scipy.optimize import brentq  # takes as long to import as all of the package

    terms = VoteTerms(counts, tau)

    def root(low: float, high: float) -> float:
        return float(brentq(terms.score, low, high, xtol=1e-300, rtol=1e-14))

    if len(counts) > MANY:  # a few of the items say where to look
        few = slice(None, None, len(counts) // (MANY // 2))
        guess = best_omega(counts[few], tau[few])
        if 0 < guess < np.inf and terms.score(guess / 1.2) > 0 > terms.score(guess * 1.2):
            return root(guess / 1.2, guess * 1.2)
    best = int(np.argmax([terms.log_likelihood(omega) for omega in GRID]))
    low, high = GRID[max(best - 1, 0)], GRID[min(best + 1, len(GRID) - 1)]
    if terms.score(low) > 0 > terms.score(high):
        return root(low, high)
    return 0.0 if best == 0 else np.inf


class VoteTerms:
    """What the log-likelihood of omega is made of: an element for each vote that is not the first for its class.

    The log-likelihood is less its value at omega = 0; the score is its derivative.
    """

    def __init__(self, counts: Array, tau: Array) -> None:
        self.counts, self.tau, self.m = counts, tau, counts.sum(axis=1).astype(np.int64)
        self.j = np.arange(float(self.m.max()))  # votes before the next one on an item, whatever they are for
        up_to_j = np.cumsum(np.bincount(self.m, minlength=len(self.j) + 1))[:-1]  # items with at most j votes
        self.cast = len(self.m) - up_to_j
        self.kept = list(self._parts()) if self.m.sum() <= KEPT else None

    def _parts(self) -> Iterator[tuple[Array, NDArray[np.int64], NDArray[np.int64]]]:
        """In parts of the items: k / tau_i of each vote, and at which of them which item begins."""
        for items in parts_of_votes(self.m):
            entry, k = votes_in_order(self.counts[items].ravel())
            later = k > 0
            entry, k = entry[later], k[later]
            item = items.start + entry // self.tau.shape[1]
            begins = np.flatnonzero(np.diff(item, prepend=-1))
            yield k / np.maximum(self.tau[items].ravel()[entry], SMALLEST), begins, item[begins]

    @property
    def parts(self) -> Iterable[tuple[Array, NDArray[np.int64], NDArray[np.int64]]]:
        """Of very many votes, parts are made anew each time."""
        return self._parts() if self.kept is None else self.kept

    def log_likelihood(self, omega: float) -> float:
        votes = sum(np.log1p(omega * ratio).sum() for ratio, *_ in self.parts)
        return float(votes - self.cast @ np.log1p(omega * self.j))

    def score(self, omega: float) -> float:
        votes = sum((ratio / (1 + omega * ratio)).sum() for ratio, *_ in self.parts)
        return float(votes - self.cast @ (self.j / (1 + omega * self.j)))

    def of_items(self, omega: float) -> tuple[Array, Array]:
        """The terms (n,) of the items in the log-likelihood and in the score."""
        of_all = np.cumsum([np.log1p(omega * self.j), self.j / (1 + omega * self.j)], axis=1)
        logs, slopes = -of_all[:, np.maximum(self.m - 1, 0)]
        for ratio, begins, item in self.parts:
            scaled = 1 + omega * ratio
            logs[item] += np.add.reduceat(np.log(scaled), begins)
            slopes[item] += np.add.reduceat(ratio / scaled, begins)
        return logs, slopes
