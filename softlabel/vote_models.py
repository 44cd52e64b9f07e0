"""Vote models: how the votes of m labellers on an item scatter about its posterior probabilities tau.

In every model here the labellers of an item share one vector of probabilities p with mean tau, and each vote is a draw from p.
What the labellers share correlates their votes. A model is one object, which says how p is drawn, how strongly two votes are
correlated, and how likely vote counts are.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softlabel.validation import (
    Array,
    as_alpha0,
    as_counts_and_tau,
    as_labellers,
    as_labellers_and_alpha0,
    as_level,
    as_probabilities,
    as_rng,
    as_tau,
)

FEW = 16  # votes
MANY = 1 << 15  # votes, whose arrays a core keeps at hand

Votes = NDArray[np.int64]


class VoteModel(ABC):
    """A distribution of the votes on an item, given its posterior probabilities.

    A model of one's own is a subclass with the three abstract members; sampling, moments and prediction bands follow.
    """

    @property
    @abstractmethod
    def correlation(self) -> float:
        """Correlation of two votes on the same item, for the same class."""

    @abstractmethod
    def draw_probabilities(self, tau: Array, rng: np.random.Generator) -> Array:
        """p, the probabilities (..., n, g) with which the labellers of each item vote; their mean is tau."""

    @abstractmethod
    def log_probability(self, counts: Array, tau: Array) -> Array:
        """Log-probability (n,) of vote counts (n, g)."""

    def variance_inflation(self, m: ArrayLike) -> Array | float:
        """Variance of a vote count of m votes, divided by that of independent votes: 1 + (m - 1) correlation."""
        factor = 1 + (as_labellers(m, whole=False) - 1) * self.correlation
        return factor if factor.ndim else float(factor)

    def sample(self, tau: ArrayLike, m: ArrayLike, rng: np.random.Generator | int | None = None) -> Votes:
        """Draw the votes of m labellers on each item; shapes as in :func:`sample_votes`."""
        m, tau, rng = as_labellers(m).astype(np.int64), as_tau(tau), as_rng(rng)
        p = self.draw_probabilities(tau, rng)
        try:
            left = np.broadcast_to(m, p.shape[:-1])
        except ValueError:
            raise ValueError(f"m has shape {m.shape}, which does not broadcast to the items of tau, {p.shape[:-1]}") from None
        votes = np.empty(p.shape, np.int64)
        for i, (here, later) in enumerate(zip(np.moveaxis(p, -1, 0)[:-1], later_classes(p))):
            total = here + later
            votes[..., i] = _binomial(left, here / np.where(total > 0, total, 1), rng)
            left = left - votes[..., i]
        votes[..., -1] = left
        return votes

    def band(self, probability: ArrayLike, m: int, level: float = 0.95) -> tuple[Array, Array]:
        """Limits between which the number of positive votes lies; arguments and limits as of :func:`prediction_band`."""
        p, m, level = as_probabilities(probability), int(as_labellers(m, scalar=True)), as_level(level)
        up_to = self.count_probabilities(p, m).cumsum(axis=1)
        # A sum of probabilities that reaches the tail but for rounding has reached it.
        low, high = ((up_to < tail * (1 - 1e-12)).sum(axis=1) for tail in ((1 - level) / 2, (1 + level) / 2))
        return low.astype(float), np.minimum(high, m).astype(float)

    def count_probabilities(self, p: Array, m: int) -> Array:
        """Probabilities (n, m + 1) of 0, ..., m positive votes, where p (n,) is the posterior of the positive class."""
        k = np.arange(m + 1.0)
        counts = np.tile(np.column_stack([k, m - k]), (len(p), 1))
        tau = np.repeat(np.column_stack([p, 1 - p]), m + 1, axis=0)
        return np.exp(self.log_probability(counts, tau)).reshape(len(p), m + 1)


@dataclass(frozen=True)
class DirichletMultinomial(VoteModel):
    """Labellers who share p ~ Dirichlet(alpha0 tau); at ``alpha0 = inf`` p is tau, and the votes are multinomial.

    Section 2.3 of Ahfock & McLachlan (2021); Mosimann (1962).

    Parameters
    ----------
    alpha0 : float
        Overdispersion parameter, positive; ``inf`` is the multinomial.

    Raises
    ------
    ValueError
        If alpha0 <= 0.

    Examples
    --------
    >>> model = DirichletMultinomial(alpha0=1.0)
    >>> model.correlation, model.variance_inflation(5)
    (0.5, 3.0)
    """

    alpha0: float = np.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha0", float(as_alpha0(self.alpha0, scalar=True)))

    @property
    def correlation(self) -> float:
        """1 / (1 + alpha0)."""
        return 1 / (1 + self.alpha0)

    def draw_probabilities(self, tau: Array, rng: np.random.Generator) -> Array:
        """By breaking a stick: class i takes a Beta(alpha0 tau_i, alpha0 (tau_{i+1} + ... + tau_g)) share of what is left.

        Unlike normalised gamma variables this does not end in 0 / 0 when alpha0 is small.
        """
        if np.isinf(self.alpha0):
            return tau.copy()
        p, left = np.empty_like(tau), np.ones(tau.shape[:-1])
        alpha0 = max(self.alpha0, 1e-200)  # below, the labellers agree to the last digit, and alpha0 tau underflows
        for i, (here, later) in enumerate(zip(np.moveaxis(tau, -1, 0)[:-1], later_classes(tau))):
            share = _beta(alpha0 * here, alpha0 * later, rng)
            p[..., i] = left * share
            left = left * (1 - share)
        p[..., -1] = left
        return p

    def count_probabilities(self, p: Array, m: int) -> Array:
        """As the base class, in one pass over the counts: see :meth:`log_probability`."""
        (scale, step), k = self._scale_and_step, np.arange(float(m))

        def votes_in_a_row(t: Array) -> Array:
            # Below these bounds the labellers agree, and a class has no votes, to the last digit.
            factors = (max(scale, 1e-200) * np.maximum(t, 1e-100)[:, None] + k * step) / (k + 1)
            return np.cumsum(np.pad(np.log(factors), ((0, 0), (1, 0))), axis=1)

        return np.exp(votes_in_a_row(p) + votes_in_a_row(1 - p)[:, ::-1] - votes_in_a_row(np.ones(1))[:, -1:])

    @property
    def _scale_and_step(self) -> tuple[float, float]:
        """alpha0 and 1, both divided by alpha0 (when above 1)."""
        return (1.0, 1 / self.alpha0) if self.alpha0 > 1 else (self.alpha0, 1.0)

    def log_probability(self, counts: Array, tau: Array) -> Array:
        """An urn: after k votes for class i of j in all, the next is for i with probability (alpha0 tau_i + k) / (alpha0 + j).

        The factorials of the binomial coefficient are shared out among the votes, as 1 / (k + 1) and j + 1. Both factors are
        divided by alpha0 (when above 1), so that the multinomial is the value at 1 / alpha0 = 0 and not a limit. The usual
        form, differences of log-gamma functions, loses all digits when alpha0 is large.
        """
        scale, step = self._scale_and_step
        m = counts.sum(axis=1).astype(np.int64)
        j = np.arange(1.0, m.max())
        answer: Array = -np.cumsum(np.append([0.0, 0.0], np.log((scale + j * step) / (j + 1))))[m]
        # The first vote for each class has alpha0 tau_i, of which one alpha0 cancels: their product may underflow.
        answer += np.maximum((counts > 0).sum(axis=1) - 1, 0) * np.log(scale)
        with np.errstate(divide="ignore"):  # a vote for a class of probability zero
            for items in parts_of_votes(m):
                t = tau[items].ravel()
                entry, k = votes_in_order(counts[items].ravel())
                base = np.where(k == 0, t[entry], scale * t[entry] + k * step)
                logs = np.log(base / (k + 1))
                if (small := base < 1e-290).any():  # divided, they lose digits
                    logs[small] = np.log(base[small]) - np.log(k[small] + 1)
                answer[items] += np.bincount(entry // tau.shape[1], logs, len(m[items]))
        return answer


def votes_in_order(counts: Array) -> tuple[NDArray[np.int64], Array]:
    """For each vote the entry of ``counts`` (n,) that it belongs to, and k, the number of votes there before it."""
    votes = counts.astype(np.int64)
    entry = np.repeat(np.arange(len(votes)), votes)
    return entry, np.arange(float(len(entry))) - np.repeat(np.cumsum(votes) - votes, votes)


def parts_of_votes(m: Array) -> list[slice]:
    """Items in parts of some thousand votes, whose arrays with an element a vote are small."""
    part = (np.cumsum(m) // MANY).astype(np.int64)
    edges = [0, *(np.flatnonzero(np.diff(part)) + 1), len(m)]
    return [slice(i, j) for i, j in pairwise(edges)]


def later_classes(tau: Array) -> list[Array]:
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


def _binomial(n: Votes, p: Array, rng: np.random.Generator) -> Votes:
    """Binomial(n, p); few votes are faster drawn one by one."""
    if n.max() > FEW:
        return rng.binomial(n, p)
    count, uniform = np.zeros(p.shape, np.uint8), np.empty(p.shape)
    for vote in range(n.max()):
        rng.random(out=uniform)
        count += ((uniform < p) & (vote < n)).view(np.uint8)
    return count.astype(np.int64)


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
    return DirichletMultinomial(alpha0).draw_probabilities(as_tau(tau), as_rng(rng))


def sample_votes(tau: ArrayLike, m: ArrayLike, alpha0: float = np.inf, rng: np.random.Generator | int | None = None) -> Votes:
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
    return DirichletMultinomial(alpha0).sample(tau, m, rng)


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

        m! / (s_1! ... s_g!) x prod_i prod_{k < s_i} (alpha0 tau_i + k) / prod_{k < m} (alpha0 + k).

    The usual form, differences of log-gamma functions, loses all digits when alpha0 is large. These products lose none: each
    factor is divided by alpha0 (when above 1), so that the multinomial is the value at 1 / alpha0 = 0 and not a limit.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(dm_logpmf([[2, 0], [1, 1], [0, 2]], [[0.5, 0.5]] * 3, alpha0=1.0))
    array([0.375, 0.25 , 0.375])
    """
    model = DirichletMultinomial(alpha0)
    return model.log_probability(*as_counts_and_tau(counts, tau))


def prediction_band(probability: ArrayLike, m: int, alpha0: float, level: float = 0.95) -> tuple[Array, Array]:
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
        Quantiles of the beta-binomial at (1 - level) / 2 and (1 + level) / 2. Counts are whole numbers, so the band holds more
        than ``level``: it is conservative.

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
    return DirichletMultinomial(alpha0).band(probability, m, level)


def share_in_band(counts: ArrayLike, tau: ArrayLike, alpha0: float, level: float = 0.95) -> float:
    """Share of the items whose positive votes lie within :func:`prediction_band`.

    Parameters
    ----------
    counts, tau : (n, g) array_like
        Votes and posterior probabilities, column 0 the positive class. Items without votes are left out.
    alpha0, level
        As in :func:`prediction_band`.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is not valid, or no item has a vote.

    Examples
    --------
    >>> share_in_band([[7, 0], [3, 4], [0, 7], [1, 1]], [[0.99, 0.01], [0.5, 0.5], [0.99, 0.01], [0.5, 0.5]], alpha0=5.0)
    0.75
    """
    counts, tau = as_counts_and_tau(counts, tau)
    if not counts.any():
        raise ValueError("no item has a vote: counts are all 0")
    inside = []
    for votes in np.unique(counts.sum(axis=1)[counts.sum(axis=1) > 0]):
        at = counts.sum(axis=1) == votes
        low, high = prediction_band(tau[at, 0], int(votes), alpha0, level)
        inside.append((counts[at, 0] >= low) & (counts[at, 0] <= high))
    return float(np.concatenate(inside).mean())
