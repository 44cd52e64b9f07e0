"""The vote model: the Dirichlet-multinomial distribution of the votes of m labellers.

The labellers of an item share one vector of probabilities p, drawn from Dirichlet(alpha0 tau) around the posterior
probabilities tau of the item; each vote is then a draw from p. At ``alpha0 = inf`` there is no noise in p, and the votes are
multinomial.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from softlabel.validation import (
    Array, as_alpha0, as_counts_and_tau, as_labellers, as_labellers_and_alpha0, as_level, as_numbers, as_rng, as_tau, place,
)
from softlabel._parallel import compiled, over_parts

FEW = 16  # votes


def variance_inflation(m: ArrayLike, alpha0: ArrayLike) -> Array | float:
    """Variance of a vote count under the Dirichlet-multinomial, divided by its variance under the multinomial.

    Parameters
    ----------
    m : array_like
        Number of labellers, at least 1.
    alpha0 : array_like
        Overdispersion parameter, positive; ``inf`` is the multinomial. Broadcast against ``m``.

    Returns
    -------
    float or ndarray
        (m + alpha0) / (1 + alpha0), between 1 and m.

    Raises
    ------
    ValueError
        If m < 1 or alpha0 <= 0.

    Notes
    -----
    The factor in the proof of Theorem 1 of Ahfock & McLachlan (2021); Mosimann (1962).

    Examples
    --------
    >>> variance_inflation(5, 1)
    3.0
    >>> variance_inflation(5, [1, 10, float("inf")])
    array([3.        , 1.36363636, 1.        ])
    """
    m, alpha0 = as_labellers_and_alpha0(m, alpha0)
    factor = 1 + (m - 1) / (1 + alpha0)
    return factor if factor.ndim else float(factor)


def sample_probabilities(tau: ArrayLike, alpha0: float = np.inf, rng: np.random.Generator | int | None = None) -> Array:
    """Draw the probabilities with which the labellers of each item vote: p ~ Dirichlet(alpha0 tau).

    Parameters
    ----------
    tau : (n, g) or (R, n, g) array_like
        Posterior probabilities of the classes.
    alpha0 : float
        Overdispersion parameter; at ``inf`` the draw is ``tau`` itself.
    rng : Generator, int or None
        Source of randomness.

    Returns
    -------
    ndarray, the shape of ``tau``

    Raises
    ------
    ValueError
        If a row of ``tau`` is not a probability distribution, or alpha0 <= 0.

    Notes
    -----
    First line of the hierarchical form in Section 2.3 of Ahfock & McLachlan (2021). The Dirichlet is drawn by breaking a
    stick: class i takes a Beta(alpha0 tau_i, alpha0 (tau_{i+1} + ... + tau_g)) share of what is left. Unlike normalised
    gamma variables this does not end in 0 / 0 when alpha0 is small.

    Examples
    --------
    >>> sample_probabilities([[0.7, 0.2, 0.1]], alpha0=1e6, rng=0).round(2)
    array([[0.7, 0.2, 0.1]])
    """
    tau, alpha0, rng = as_tau(tau), float(as_alpha0(alpha0, scalar=True)), as_rng(rng)
    if np.isinf(alpha0):
        return tau.copy()
    p = np.empty_like(tau)
    left = np.ones(tau.shape[:-1])
    alpha0 = max(alpha0, 1e-200)  # below, the labellers agree to the last digit, and alpha0 tau underflows
    for i, (here, later) in enumerate(zip(np.moveaxis(tau, -1, 0)[:-1], _later_classes(tau))):
        share = _beta(alpha0 * here, alpha0 * later, rng)
        p[..., i] = left * share
        left = left * (1 - share)
    p[..., -1] = left
    return p


def _later_classes(tau: Array) -> list[Array]:
    """For each class but the last, the probability of all later ones: a sum, since 1 - tau would lose small values."""
    later = [tau[..., -1]]
    for i in range(tau.shape[-1] - 2, 0, -1):
        later.append(later[-1] + tau[..., i])
    return later[::-1]


def _beta(a: Array, b: Array, rng: np.random.Generator) -> Array:
    """Beta(a, b) where a = 0 puts all mass on 0 and b = 0 all mass on 1; NumPy takes positive parameters only."""
    tiny = np.finfo(float).tiny
    draw = rng.beta(np.maximum(a, tiny), np.maximum(b, tiny))
    return np.where(a < tiny, 0.0, np.where(b < tiny, 1.0, draw))


def sample_votes(
    tau: ArrayLike, m: ArrayLike, alpha0: float = np.inf, rng: np.random.Generator | int | None = None
) -> Array:
    """Draw the votes of m labellers on each item: Dirichlet-Multinomial(m, alpha0 tau).

    Parameters
    ----------
    tau : (n, g) or (R, n, g) array_like
        Posterior probabilities of the classes, column 0 the positive class.
    m : int or array_like that broadcasts to (n,) or (R, n)
        Number of labellers of each item, at least 1.
    alpha0 : float
        Overdispersion parameter; ``inf`` is the multinomial, small values make the labellers of an item agree.
    rng : Generator, int or None
        Source of randomness.

    Returns
    -------
    ndarray of int64, the shape of ``tau``
        Vote counts; each row sums to ``m``.

    Raises
    ------
    ValueError
        If a row of ``tau`` is not a probability distribution, alpha0 <= 0, or m is not a whole number of at least 1.

    Notes
    -----
    Equation (dir-multinomial) of Section 2.3 of Ahfock & McLachlan (2021), drawn in its hierarchical form.

    Examples
    --------
    >>> sample_votes([[0.9, 0.1], [0.5, 0.5]], m=7, alpha0=5.0, rng=1)
    array([[7, 0],
           [6, 1]])
    """
    rng = as_rng(rng)
    m = as_labellers(m).astype(np.int64)
    p = sample_probabilities(tau, alpha0, rng)
    try:
        left = np.broadcast_to(m, p.shape[:-1])
    except ValueError:
        raise ValueError(f"m has shape {m.shape}, which does not broadcast to the items of tau, {p.shape[:-1]}") from None
    votes = np.empty(p.shape, dtype=np.int64)
    for i, (here, later) in enumerate(zip(np.moveaxis(p, -1, 0)[:-1], _later_classes(p))):
        total = here + later
        votes[..., i] = _binomial(left, here / np.where(total > 0, total, 1), rng)
        left = left - votes[..., i]
    votes[..., -1] = left
    return votes


def _binomial(n: Array, p: Array, rng: np.random.Generator) -> Array:
    """Binomial(n, p); few votes are faster drawn one by one."""
    if n.max() > FEW:
        return rng.binomial(n, p)
    count = np.empty(p.shape, dtype=np.int64)
    with rng.bit_generator.lock:
        _count_draws(rng, np.ascontiguousarray(n).ravel(), p.ravel(), count.ravel())
    return count


@compiled
def _count_draws(rng, n, p, count):
    for j in range(len(p)):
        count[j] = 0
        for _ in range(n[j]):
            count[j] += rng.random() < p[j]


def dm_logpmf(counts: ArrayLike, tau: ArrayLike, alpha0: float) -> Array:
    """Log-probability of the votes on each item under the Dirichlet-multinomial model.

    Parameters
    ----------
    counts : (n, g) array_like
        Votes for each class; a row may sum to anything, a row of zeros has probability one.
    tau : (n, g) array_like
        Posterior probabilities of the classes.
    alpha0 : float
        Overdispersion parameter, positive; ``inf`` is the multinomial.

    Returns
    -------
    (n,) ndarray
        Natural logarithm of the probability; ``-inf`` where a class with probability zero has a vote.

    Raises
    ------
    ValueError
        If counts are not whole numbers of at least 0, tau is not a distribution in each row, the shapes differ, or
        alpha0 <= 0.

    Notes
    -----
    With s_i votes for class i and m in all, the probability of Section 2.3 of Ahfock & McLachlan (2021) is

        m! / (s_1! ... s_g!)  x  prod_i prod_{k < s_i} (alpha0 tau_i + k)  /  prod_{k < m} (alpha0 + k).

    The usual form, differences of log-gamma functions, loses all digits when alpha0 is large. These products lose none: each
    factor is divided by alpha0 (when above 1), so that the multinomial is the value at 1 / alpha0 = 0 and not a limit.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(dm_logpmf([[2, 0], [1, 1], [0, 2]], [[0.5, 0.5]] * 3, alpha0=1.0))
    array([0.375, 0.25 , 0.375])
    """
    counts, tau = as_counts_and_tau(counts, tau)
    alpha0 = float(as_alpha0(alpha0, scalar=True))
    m = counts.sum(axis=-1)
    # alpha0 tau + k and alpha0 + k, both divided by max(alpha0, 1)
    scale, step = (1.0, 1 / alpha0) if alpha0 > 1 else (alpha0, 1.0)
    log_ways = gammaln(m + 1) - gammaln(counts + 1).sum(axis=-1)
    in_order = over_parts(lambda counts, tau: _log_probability(counts, tau, scale, step), counts, tau)
    return log_ways + np.concatenate(in_order)


@compiled
def _log_probability(counts, tau, scale, step):
    """Log-probability (n,) of the votes in one order; scale and step as in :func:`_log_rising`."""
    n, g = counts.shape
    answer = np.empty(n)
    for j in range(n):
        m = 0
        answer[j] = 0.0
        for i in range(g):
            answer[j] += _log_rising(tau[j, i], scale, step, int(counts[j, i]))
            m += int(counts[j, i])
        answer[j] -= _log_rising(1.0, scale, step, m)
    return answer


@compiled
def _log_rising(start, scale, step, count):
    """log of (scale start) (scale start + step) (scale start + 2 step) ... with ``count`` factors.

    One logarithm serves 64 factors, each divided by the largest of them, so that their product does not underflow.
    """
    if count == 0:
        return 0.0
    if start == 0:
        return -np.inf
    answer = math.log(start) + math.log(scale)  # the product of the two may underflow
    for first in range(1, count, 64):
        n = min(64, count - first)
        largest, product = scale * start + (first + n - 1) * step, 1.0
        for i in range(n):
            product *= (scale * start + (first + i) * step) / largest
        answer += math.log(product) + n * math.log(largest)
    return answer


def prediction_band(
    probability: ArrayLike, m: int, alpha0: float, level: float = 0.95
) -> tuple[Array, Array]:
    """Limits between which the number of positive votes lies with at least the given probability.

    Parameters
    ----------
    probability : (n,) array_like
        Posterior probability of the positive class.
    m : int
        Number of labellers.
    alpha0 : float
        Overdispersion parameter; ``inf`` is the binomial.
    level : float
        Strictly between 0 and 1.

    Returns
    -------
    low, high : (n,) ndarray
        Quantiles of the beta-binomial at (1 - level) / 2 and (1 + level) / 2. Counts are whole numbers, so the band holds more than
        ``level``: it is conservative.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Dashed lines in column (b) of Figure 3 of Ahfock & McLachlan (2021).

    Examples
    --------
    >>> prediction_band([0.5, 0.99], m=7, alpha0=5.0)
    (array([0., 6.]), array([7., 7.]))
    """
    probability = as_numbers(probability, "probability", (1,))
    wrong = (probability < 0) | (probability > 1)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise ValueError(f"{place('probability', at)} is {probability[at]:g}: probabilities must lie between 0 and 1")
    m, alpha0, level = int(as_labellers(m, scalar=True)), float(as_alpha0(alpha0, scalar=True)), as_level(level)
    omega, inside = 1 / max(alpha0, 1e-200), np.clip(probability, 1e-12, 1 - 1e-12)  # so that all factors are finite
    log_p = np.zeros(len(inside))
    for s in range(m):
        log_p += np.log((1 - inside + s * omega) / (1 + s * omega))  # of no positive vote
    up_to, limits = np.zeros(len(inside)), np.zeros((2, len(inside)))
    tails = np.array([[(1 - level) / 2], [(1 + level) / 2]])
    for s in range(m):  # a quantile is the number of s with P(S <= s) below it
        up_to += np.exp(log_p)
        limits += up_to < tails
        log_p += np.log((m - s) / (s + 1) * (inside + s * omega) / (1 - inside + (m - s - 1) * omega))
    return limits[0], limits[1]


def share_in_band(counts: ArrayLike, tau: ArrayLike, alpha0: float, level: float = 0.95) -> float:
    """Share of the items whose positive votes lie within :func:`prediction_band`."""
    counts, tau = as_counts_and_tau(counts, tau)
    if not counts.any():
        raise ValueError("no item has a vote: counts are all 0")
    inside = []
    for votes in np.unique(counts.sum(axis=1)[counts.sum(axis=1) > 0]):
        at = counts.sum(axis=1) == votes
        low, high = prediction_band(tau[at, 0], int(votes), alpha0, level)
        inside.append((counts[at, 0] >= low) & (counts[at, 0] <= high))
    return float(np.concatenate(inside).mean())
