"""How much the votes on an item vary beyond chance: the overdispersion parameter alpha0, with tau held fixed.

The search is over omega = 1 / alpha0 >= 0, on which the multinomial, omega = 0, is an ordinary point.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import chdtrc, chdtri

from softlabel.validation import Array, as_counts_and_tau, as_level, as_rng, as_whole, place
from softlabel._parallel import compiled, over_parts
from softlabel.vote_models import dm_logpmf

# Values of omega at which likelihoods are compared before the best is refined: the multinomial, 1e-6 to 1e6, and beyond.
# Each term of a likelihood changes over more than a decade, so that two values a decade miss no maximum.
GRID = np.concatenate([[0.0], np.logspace(-6, 6, 25), [1e12]])
FINE_GRID = np.concatenate([[0.0], np.logspace(-6, 6, 769), [1e12]])
SMALLEST = 1e-290  # probability, so that a factor divided by it stays finite
MANY = 40_000  # items
ITEMS = 1 << 12  # whose terms a bootstrap keeps at a time


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
        gain = self.log_likelihood - self.multinomial_log_likelihood
        return (
            f"Alpha0Fit(alpha0 = {self.alpha0:.6g}; log-likelihood {self.log_likelihood:.6g}, {gain:.4g} above the multinomial)"
        )


class OverdispersionTest(NamedTuple):
    """Likelihood ratio statistic and its p-value."""

    statistic: float
    pvalue: float


def estimate_alpha0(counts: ArrayLike, tau: ArrayLike) -> Alpha0Fit:
    """Estimate the overdispersion parameter alpha0 by maximum likelihood with tau held fixed.

    Parameters
    ----------
    counts : (n, g) array_like
        Votes of each item for each class, column 0 the positive class. Items with no vote or one carry no information on alpha0.
    tau : (n, g) array_like
        Posterior probabilities of each item, such as ``fit_logistic(...).posterior(X)``.

    Returns
    -------
    Alpha0Fit

    Raises
    ------
    ValueError
        If counts or tau are not valid, their shapes differ, a class with probability zero has a vote, or no item has two votes.

    Notes
    -----
    Section 5.1 of Ahfock & McLachlan (2021). The likelihood may have several maxima: it is compared on a grid over 24 decades,
    both ends included, before the best value is refined.

    Examples
    --------
    >>> counts = [[7, 0], [6, 1], [2, 5], [0, 7], [7, 0], [1, 6]]
    >>> tau = [[0.8, 0.2], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.7, 0.3], [0.5, 0.5]]
    >>> round(estimate_alpha0(counts, tau).alpha0, 3)
    1.364
    """
    counts, tau = _check(counts, tau)
    omega = best_omega(counts, tau)
    alpha0 = 1 / omega if omega else np.inf
    return Alpha0Fit(float(alpha0), _log_likelihood(counts, tau, alpha0), _log_likelihood(counts, tau, np.inf))


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
    computed once, on a grid of omega, and all resamples share them.

    Examples
    --------
    >>> counts = [[7, 0], [6, 1], [2, 5], [0, 7], [7, 0], [1, 6]]
    >>> tau = [[0.8, 0.2], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.7, 0.3], [0.5, 0.5]]
    >>> bootstrap_alpha0(counts, tau, n_resamples=3, rng=1).round(2)
    array([0.81, 2.41, 1.55])
    """
    counts, tau = _check(counts, tau)
    n_resamples = as_whole(n_resamples, "n_resamples", 1)
    log_likelihood = score = 0.0
    for items, weights in _resamples(len(counts), n_resamples, as_rng(rng)):
        of_likelihood, of_score = zip(*(vote_terms(counts[items], tau[items], omega) for omega in FINE_GRID))
        log_likelihood, score = log_likelihood + weights @ np.transpose(of_likelihood), score + weights @ np.transpose(of_score)
    best = np.argmax(log_likelihood, axis=1)

    # Between the points of the grid the score is a smooth function of log omega: its root by a parabola.
    omega = FINE_GRID[best]
    at = np.clip(best, 2, len(FINE_GRID) - 3)[:, None] + np.arange(-1, 2)
    slope = FINE_GRID[at] * np.take_along_axis(score, at, axis=1)
    inner = (at[:, 1] == best) & (slope[:, 0] > 0) & (slope[:, 2] < 0)
    omega[inner] = np.exp(_root(np.log(FINE_GRID[at[inner]]), slope[inner]))
    with np.errstate(divide="ignore"):
        return np.where(best == len(FINE_GRID) - 1, 0.0, 1 / omega)


def _resamples(n: int, n_resamples: int, rng: np.random.Generator) -> Iterator[tuple[slice, Array]]:
    """How often each resample of n items has each of them: slices of items, and (n_resamples, items) for each slice."""
    left = np.full(n_resamples, n)
    for first in range(0, n, ITEMS):
        size = min(ITEMS, n - first)
        here = left if size == n - first else rng.binomial(left, size / (n - first))
        left = left - here
        yield slice(first, first + size), np.array([np.bincount(rng.integers(size, size=k), minlength=size) for k in here], float)


def _root(x: Array, f: Array) -> Array:
    """Root of the parabola through three points (.., 3) of a falling function that crosses zero between the outer two."""
    (x0, x1, x2), (f0, f1, f2) = np.moveaxis(x, -1, 0), np.moveaxis(f, -1, 0)
    slope01, slope12 = (f1 - f0) / (x1 - x0), (f2 - f1) / (x2 - x1)
    curve = (slope12 - slope01) / (x2 - x0)
    slope = slope01 + curve * (x1 - x0)  # at x1
    return x1 - 2 * f1 / (slope - np.sqrt(np.maximum(slope**2 - 4 * curve * f1, 0)))


def alpha0_interval(
    counts: ArrayLike,
    tau: ArrayLike,
    level: float = 0.95,
    method: Literal["bootstrap", "likelihood"] = "bootstrap",
    n_resamples: int = 500,
    rng: np.random.Generator | int | None = None,
) -> tuple[float, float]:
    """Confidence interval for alpha0 with tau held fixed.

    Parameters
    ----------
    counts, tau
        As in :func:`estimate_alpha0`.
    level : float
        Coverage, strictly between 0 and 1.
    method : {"bootstrap", "likelihood"}
        Percentiles of :func:`bootstrap_alpha0`, or all values whose log-likelihood is within half a chi-square quantile of the
        largest.
    n_resamples, rng
        For the bootstrap.

    Returns
    -------
    low, high : float
        ``high`` is ``inf`` where the multinomial is within the interval.

    Raises
    ------
    ValueError
        As :func:`estimate_alpha0`, or if ``level`` or ``method`` is not valid.

    Notes
    -----
    Section 5.1 of Ahfock & McLachlan (2021) for the percentile bootstrap. Neither method allows for the error in tau.

    Examples
    --------
    >>> counts = [[7, 0], [6, 1], [2, 5], [0, 7], [7, 0], [1, 6]]
    >>> tau = [[0.8, 0.2], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.7, 0.3], [0.5, 0.5]]
    >>> low, high = alpha0_interval(counts, tau, method="likelihood")
    >>> round(low, 3), round(high, 3)
    (0.237, 11.025)
    """
    level = as_level(level)
    if not isinstance(method, str) or method not in ("bootstrap", "likelihood"):
        raise ValueError(f"method must be 'bootstrap' or 'likelihood', got {method!r}")
    if method == "bootstrap":
        estimates = bootstrap_alpha0(counts, tau, n_resamples, rng)
        # "higher": between a finite estimate and infinity there is nothing to interpolate
        tails = [(1 - level) / 2, (1 + level) / 2]
        kind = "linear" if np.isfinite(estimates).all() else "higher"
        return tuple(float(q) for q in np.quantile(estimates, tails, method=kind))
    best = estimate_alpha0(counts, tau)
    counts, tau = _check(counts, tau)
    lowest = best.log_likelihood - best.multinomial_log_likelihood - chdtri(1, 1 - level) / 2

    def excess(omega: float) -> float:
        return likelihood_and_score(counts, tau, omega)[0] - lowest

    omega = GRID[-1] if best.alpha0 == 0 else 1 / best.alpha0
    lowest = min(lowest, likelihood_and_score(counts, tau, omega)[0])  # a tiny level is an interval of one point
    smaller, larger = GRID[GRID < omega][::-1], GRID[GRID > omega]
    high, low = (
        next((_inverse(brentq(excess, *sorted((w, omega)))) for w in side if excess(w) < 0), edge)
        for side, edge in ((smaller, np.inf), (larger, 0.0))
    )
    return low, high


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
        The multinomial is a boundary point: under it the statistic is 0 in half of the samples, and chi-square with one degree of
        freedom in the others.

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


def _check(counts: ArrayLike, tau: ArrayLike) -> tuple[Array, Array]:
    counts, tau = as_counts_and_tau(counts, tau)
    impossible = (counts > 0) & (tau == 0)
    if impossible.any():
        at = tuple(np.argwhere(impossible)[0])
        raise ValueError(f"{place('counts', at)} is {counts[at]:g} but tau is 0 there: a class with a vote needs tau > 0")
    if counts.sum(axis=1).max() < 2:
        raise ValueError("no item has more than one vote: alpha0 cannot be estimated, since it only shows in repeated votes")
    if not np.any((counts.sum(axis=1) > 1) & (tau.max(axis=1) < 1)):
        raise ValueError("tau is 0 or 1 on every item with more than one vote: every alpha0 fits, none can be estimated")
    return counts, tau


def _log_likelihood(counts: Array, tau: Array, alpha0: float) -> float:
    if alpha0 == 0:  # the labellers of an item agree: the first vote decides, and it is a draw from tau
        return float(np.log(tau[counts > 0]).sum())
    return float(dm_logpmf(counts, tau, alpha0).sum())


def best_omega(counts: Array, tau: Array) -> float:
    """omega where the log-likelihood is largest; 0 and ``inf`` are values like any other."""

    def score(omega: float) -> float:
        return likelihood_and_score(counts, tau, omega)[1]

    def root(low: float, high: float) -> float:
        return brentq(score, low, high, xtol=1e-300, rtol=1e-14)

    if len(counts) > MANY:  # a few of the items say where to look
        few = slice(None, None, len(counts) // (MANY // 2))
        guess = best_omega(counts[few], tau[few])
        if 0 < guess < np.inf and score(guess / 1.2) > 0 > score(guess * 1.2):
            return root(guess / 1.2, guess * 1.2)
    best = int(np.argmax([likelihood_and_score(counts, tau, omega)[0] for omega in GRID]))
    low, high = GRID[max(best - 1, 0)], GRID[min(best + 1, len(GRID) - 1)]
    if score(low) > 0 > score(high):
        return root(low, high)
    return 0.0 if best == 0 else np.inf


def likelihood_and_score(counts: Array, tau: Array, omega: float) -> tuple[float, float]:
    """Log-likelihood at omega, less its value at omega = 0, and its derivative."""
    sums = over_parts(lambda counts, tau: [terms.sum() for terms in vote_terms(counts, tau, omega)], counts, tau)
    log_likelihood, score = np.sum(sums, axis=0)
    return float(log_likelihood), float(score)


@compiled
def vote_terms(counts, tau, omega):
    """The terms (n,) of the items in the log-likelihood, less those at omega = 0, and in its derivative.

    With tau fixed, a term is the sum of log(1 + k omega / tau_i) over the second, third, ... vote for class i (k = 1, 2, ...),
    less the sum of log(1 + k omega) over the second, third, ... vote on the item.
    """
    n, g = counts.shape
    m = np.zeros(n, np.int64)
    for j in range(n):
        for i in range(g):
            m[j] += int(counts[j, i])
    total_logs, total_slope = np.zeros(m.max() + 1), np.zeros(m.max() + 1)
    for k in range(1, m.max()):
        total_logs[k + 1] = total_logs[k] + math.log1p(k * omega)
        total_slope[k + 1] = total_slope[k] + k / (1 + k * omega)
    log_likelihood, score = np.empty(n), np.empty(n)
    for j in range(n):
        log_likelihood[j], score[j] = -total_logs[m[j]], -total_slope[m[j]]
        for i in range(g):
            logs, slope = rising(max(tau[j, i], SMALLEST), omega, int(counts[j, i]))
            log_likelihood[j] += logs
            score[j] += slope
    return log_likelihood, score


@compiled
def rising(tau, omega, count):
    """Sum of log(1 + k omega / tau) over k = 1, ..., count - 1, and its derivative with respect to omega.

    One logarithm serves 64 factors, each divided by the largest of them, so that their product does not underflow.
    """
    logs = slope = 0.0
    for first in range(1, count, 64):
        n = min(64, count - first)
        largest, product = tau + (first + n - 1) * omega, 1.0
        for i in range(n):
            factor = tau + (first + i) * omega
            product *= factor / largest
            slope += (first + i) / factor
        logs += math.log(product) + n * (math.log(largest) - math.log(tau))
    return logs, slope
