"""What votes of interchangeable annotators do, given how many of them on each item are positive.

Of m votes on an item s are positive. Whatever made them so, if annotators are interchangeable each of the m votes is equally
likely to be one of the s. So a sum over an annotator's votes, of any function of the vote and of the features and counts of
its item, has a known distribution given the counts, and no error of a fitted mean can make it look guilty.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, logit, ndtr

CLIP = 0.01  # no prediction of a vote is surer
DOUBT = 0.5  # penalty on the distance of an intercept from the logit of the share of positive votes
# Types are named here and not imported, so that a long study does not become stale with the wording of an error.
Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Panel:
    """Votes as codes of n items and J annotators, 1 and 0, and standardised features (n, p), p = 0 if there are none."""

    item: Codes
    annotator: Codes
    y: Array
    x: Array
    n_annotators: int

    @property
    def n_items(self) -> int:
        return len(self.x)

    @cached_property
    def m(self) -> Array:
        """Votes on each item."""
        return np.bincount(self.item, minlength=self.n_items).astype(float)

    @cached_property
    def s(self) -> Array:
        """Positive votes on each item."""
        return np.asarray(np.bincount(self.item, weights=self.y, minlength=self.n_items), float)

    @cached_property
    def share(self) -> Array:
        """s / m for each vote: its probability to be positive, given the counts."""
        return (self.s / np.maximum(self.m, 1))[self.item]

    @cached_property
    def cast(self) -> Array:
        """Votes of each annotator."""
        return self.total(np.ones(len(self.y)))

    def total(self, values: NDArray[Any]) -> Array:
        """Sum over the votes of each annotator."""
        return np.asarray(np.bincount(self.annotator, weights=values, minlength=self.n_annotators), float)

    def without(self, annotators: Any) -> "Panel":
        """The votes of all others."""
        out = np.zeros(self.n_annotators, bool)
        out[list(annotators)] = True
        return self.only(~out[self.annotator])

    def only(self, votes: Flags) -> "Panel":
        return Panel(self.item[votes], self.annotator[votes], self.y[votes], self.x, self.n_annotators)

    def turned(self, annotators: Any) -> "Panel":
        """The same with each vote of these the other way round."""
        return replace(self, y=np.where(np.isin(self.annotator, annotators), 1 - self.y, self.y))

    def without_feature(self, k: int) -> "Panel":
        return replace(self, x=np.delete(self.x, k, axis=1))

    def matrix(self, values: NDArray[Any]) -> Any:
        """A number for each vote as a sparse matrix (J, n)."""
        from scipy.sparse import csr_array  # takes long to import

        return csr_array((values, (self.annotator, self.item)), shape=(self.n_annotators, self.n_items))


def standardise(X: Array) -> Array:
    """Columns of mean 0 and variance 1, whatever their units; a constant one is 0 everywhere."""
    with np.errstate(under="ignore"):
        largest = np.abs(X).max(axis=0)
        x = X / np.where(largest > 0, largest, 1.0)
        x -= x.mean(axis=0)
        sd = x.std(axis=0)
    return np.asarray(np.where(sd > 1e-12, x / np.where(sd > 1e-12, sd, 1.0), 0.0))


# ------------------------------------------------------------------ What votes on an item are expected to be


def ridge(x: Array, s: Array, m: Array) -> tuple[Array, Array]:
    """Log-odds (n,) by a logistic regression of s of m votes, shrunk towards the share of positive votes: two for each item.

    The first are fitted to all items, the second to all others, by one step of Newton's method from the first. The penalty
    is that of one half of a pseudo-vote for p up to 4 slopes, and grows with p, as the sum of many may be large.
    """
    design = np.column_stack([np.ones(len(x)), x])
    middle = np.r_[logit((s.sum() + 0.5) / (m.sum() + 1)), np.zeros(x.shape[1])]
    penalty = np.r_[DOUBT, np.full(x.shape[1], max(1.0, x.shape[1] / 4))]
    beta = middle.copy()
    for _ in range(50):
        eta = design @ beta
        tau = expit(eta)
        w, residual = m * tau * (1 - tau), s - m * tau
        hessian = (design.T * w) @ design + np.diag(penalty)
        step = np.linalg.solve(hessian, design.T @ residual - penalty * (beta - middle))
        moved = np.abs(design @ step).max(initial=0.0)
        if moved < 1e-4:
            break
        beta += step * min(1.0, 3.0 / moved)
    leverage = np.einsum("ij,ji->i", design, np.linalg.solve(hessian, design.T))
    return eta, eta - leverage * residual / (1 - w * leverage)


class Prediction(NamedTuple):
    """Probability of a positive vote on each item, from the votes on others, and how votes on an item hang together.

    ``tau`` (n,) is that of features; ``rho`` the correlation of two votes on an item beyond it, 1 / (1 + alpha0).
    """

    tau: Array
    rho: float

    @property
    def alpha0(self) -> float:
        return 1 / self.rho - 1


def predict(panel: Panel) -> Prediction:
    """Features' probabilities, each from the votes on other items, and the correlation beyond them."""
    _, eta = ridge(panel.x, panel.s, panel.m)
    tau = expit(np.clip(eta, -12, 12))
    products, scale = together(panel.s, panel.m, tau)
    return Prediction(tau, float(np.clip(products.sum() / max(scale.sum(), 1e-300), 0.01, 0.99)))


def together(s: Array, m: Array, tau: Array) -> tuple[Array, Array]:
    """Sum over the pairs of votes on each item of the products of their residuals, and what it would be at correlation 1."""
    own = s * (1 - tau) ** 2 + (m - s) * tau**2
    return ((s - m * tau) ** 2 - own) / 2, m * (m - 1) / 2 * tau * (1 - tau)


def of_others(panel: Panel, prediction: Prediction, core: Flags | None = None) -> Array:
    """Log-odds (votes,) that a vote is positive, by features and by the others' votes on the item.

    With Dirichlet-multinomial votes, s of m others leave the odds (s + alpha0 tau) to (m - s + alpha0 (1 - tau)). ``core``
    says which annotators count among the others; all by default.
    """
    counted = np.ones(len(panel.y)) if core is None else core[panel.annotator].astype(float)
    m = np.bincount(panel.item, weights=counted, minlength=panel.n_items)[panel.item] - counted
    s = np.bincount(panel.item, weights=counted * panel.y, minlength=panel.n_items)[panel.item] - counted * panel.y
    tau, alpha0 = prediction.tau[panel.item], prediction.alpha0
    return np.asarray(logit(np.clip((s + alpha0 * tau) / (m + alpha0), CLIP, 1 - CLIP)))


# ------------------------------------------------------------------ Sums with a known distribution


class Deviation(NamedTuple):
    """Of each annotator: a sum of weights times (vote - s / m), in its standard deviations, and chances to be as low, as high.

    Without a vote on an item on which votes differ, the sum says nothing: z is 0 and the chances are 1.
    """

    z: Array
    low: Array
    high: Array


def deviation(panel: Panel, weight: Array, step: float = 0.0) -> Deviation:
    """How far sums of ``weight`` (votes,) times (vote - s / m) are from 0, given the counts, by saddlepoint.

    ``step`` is the distance between neighbouring values of the sum, 1 for weights of 1: half of it is taken off.
    """
    p, a, y = panel.share, weight, panel.y
    variance = panel.total(a**2 * p * (1 - p))
    t = panel.total(a * (y - p))
    z = np.divide(t, np.sqrt(variance), out=np.zeros_like(t), where=variance > 0)
    inward = t - np.sign(t) * step / 2
    outer = saddlepoint(a, p, panel.annotator, inward)
    inside = np.abs(t) <= step / 2
    outer = np.where(inside | (variance <= 0), 1.0, outer)
    return Deviation(z, np.where(t < 0, outer, 1.0), np.where(t > 0, outer, 1.0))


def saddlepoint(a: Array, p: Array, group: Codes, t: Array) -> Array:
    """Chance (groups,) that sum a (Y - p) over a group is as far from 0 as t, on its side; Y are independent, P(Y = 1) = p.

    Formula of Lugannani and Rice (1980). At the end of the range it is the chance of that one value.
    """
    size = len(t)

    def total(values: Array) -> Array:
        return np.asarray(np.bincount(group, weights=values, minlength=size), float)

    use = (a != 0) & (p > 0) & (p < 1)
    a, p, group = a[use], p[use], group[use]
    side = np.sign(t)
    toward = a * side[group] > 0  # a positive vote leads to the end of the range
    end = total(np.abs(a) * np.where(toward, 1 - p, p))
    at_end = np.exp(total(np.log(np.where(toward, p, 1 - p))))
    largest = np.ones(size)
    np.maximum.at(largest, group, np.abs(a))
    spread = total(a**2 * p * (1 - p))
    target, b = np.abs(t), a * side[group]
    inside = (target < end * (1 - 1e-9)) & (spread > 0)
    u = np.where(inside, target / np.where(spread > 0, spread, 1), 0.0)
    low, high = np.zeros(size), np.full(size, np.inf)
    for _ in range(60):  # Newton's method between bounds
        q = expit(logit(p) + u[group] * b)
        slope, curve = total(b * (q - p)), total(b**2 * q * (1 - q))
        low, high = np.where(slope < target, u, low), np.where(slope >= target, u, high)
        step = (target - slope) / np.maximum(curve, 1e-300)
        new = u + step
        middle = np.where(np.isinf(high), 2 * u + 1 / largest, (low + high) / 2)
        new = np.where((new > low) & (new < high), new, middle)
        done = np.abs(slope - target) <= 1e-10 * np.maximum(target, 1e-3)
        u = np.where(done | ~inside, u, new)
        if (done | ~inside).all():
            break
    # log(1 - p + p exp(u b)) without overflow
    k = total(np.logaddexp(np.log1p(-p), np.log(p) + u[group] * b) - u[group] * b * p)
    r = np.sqrt(np.maximum(2 * (u * target - k), 0))
    v = u * np.sqrt(curve)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = ndtr(-r) + np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi) * (1 / v - 1 / r)
    chance = np.where(r > 1e-3, chance, ndtr(-target / np.sqrt(np.maximum(spread, 1e-300))))
    return np.asarray(np.clip(np.where(inside, chance, at_end), 0, 1))


def agreement_weights(panel: Panel, prediction: Prediction) -> Array:
    """Log-odds (votes,) of the likelihood that a vote follows the others rather than a coin, if positive and if negative.

    A positive vote leaves s - 1 positive ones to the others, a negative one s: so the weight is a function of counts and
    features, and not of the vote.
    """
    s, m = panel.s[panel.item], panel.m[panel.item]
    tau, alpha0 = prediction.tau[panel.item], prediction.alpha0
    positive = (s - 1 + alpha0 * tau) / np.maximum(m - 1 + alpha0, CLIP)
    negative = (m - s - 1 + alpha0 * (1 - tau)) / np.maximum(m - 1 + alpha0, CLIP)
    positive, negative = (np.clip(q, CLIP, 1 - CLIP) for q in (positive, negative))
    return np.where((s > 0) & (s < m), np.log(positive / negative), 0.0)


class Prior(NamedTuple):
    """Normal priors of how votes follow others: standard deviation of the lean, mean and standard deviation of the slope."""

    lean: float
    slope: float
    spread: float


UNKNOWN = Prior(2.0, 0.5, 1.0)


class Slopes(NamedTuple):
    """Logistic regression of each annotator's votes on what others predict: a 1 of ``slope`` and 0 of ``lean`` are theirs.

    ``evidence`` is the logarithm of the chance of the votes over the prior, by Laplace's approximation.
    """

    lean: Array
    slope: Array
    lean_error: Array
    slope_error: Array
    evidence: Array


def follow(panel: Panel, log_odds: Array, prior: Prior = UNKNOWN) -> Slopes:
    """How each annotator's votes follow the log-odds (votes,) of the others: the mode of the posterior."""
    y, group, J = panel.y, panel.annotator, panel.n_annotators
    p0, p1 = prior.lean**-2, prior.spread**-2
    lean, slope = np.zeros(J), np.full(J, prior.slope)
    for _ in range(50):
        q = expit(lean[group] + slope[group] * log_odds)
        w, r = q * (1 - q), y - q
        g0, g1 = panel.total(r) - p0 * lean, panel.total(r * log_odds) - p1 * (slope - prior.slope)
        h00, h01, h11 = panel.total(w) + p0, panel.total(w * log_odds), panel.total(w * log_odds**2) + p1
        det = h00 * h11 - h01**2
        move = np.array([h11 * g0 - h01 * g1, h00 * g1 - h01 * g0]) / det
        move *= np.minimum(1, 1 / np.maximum(np.abs(move).max(axis=0), 1e-300))
        lean, slope = lean + move[0], slope + move[1]
        if np.abs(move).max() < 1e-6:
            break
    eta = lean[group] + slope[group] * log_odds
    logs = panel.total(-np.logaddexp(0, np.where(y > 0, -eta, eta)))
    logs += (np.log(p0 * p1 / det) - p0 * lean**2 - p1 * (slope - prior.slope) ** 2) / 2
    return Slopes(lean, slope, np.sqrt(h11 / det), np.sqrt(h00 / det), logs)


# ------------------------------------------------------------------ Two annotators beside each other


class Pairs(NamedTuple):
    """Pairs of annotators with items in common on which votes differ: on how many they agree, and on how many by chance.

    Chance: given the counts, two of m votes agree with probability (s (s - 1) + (m - s) (m - s - 1)) / (m (m - 1)).
    """

    first: Codes
    second: Codes
    shared: Array
    agree: Array
    expected: Array
    variance: Array

    @property
    def excess(self) -> Array:
        """Share, of the disagreements by chance, that have gone: 1 if they always agree, 0 by chance."""
        return np.asarray((self.agree - self.expected) / np.maximum(self.shared - self.expected, 1e-300))

    @property
    def z(self) -> Array:
        return np.asarray((self.agree - self.expected) / np.sqrt(self.variance))


def agreement_chance(s: Array, m: Array) -> Array:
    """Chance that two of m votes, of which s are positive, agree."""
    return np.asarray((s * (s - 1) + (m - s) * (m - s - 1)) / np.maximum(m * (m - 1), 1))


def pairs(panel: Panel) -> Pairs:
    """Agreement of each pair on the items on which votes differ, three at least: of two that differ, each is no surprise."""
    from scipy.sparse import triu

    s, m = panel.s[panel.item], panel.m[panel.item]
    open_ = panel.only((s > 0) & (s < m) & (m > 2))
    chance = agreement_chance(panel.s, panel.m)
    voted, signed = open_.matrix(np.ones(len(open_.y))), open_.matrix(2 * open_.y - 1)

    def over_items(left: Any, right: Any, of_item: Array) -> Any:
        return triu((left * of_item[None, :]) @ right.T, 1).tocsr()

    ones = np.ones(panel.n_items)
    shared = over_items(voted, voted, ones).tocoo()
    if not shared.nnz:
        nobody = np.zeros(0, np.intp)
        return Pairs(nobody, nobody, *np.zeros((4, 0)))
    first, second = shared.coords
    expected, variance, product = (
        np.asarray(matrix[first, second]).ravel()
        for matrix in (
            over_items(voted, voted, chance),
            over_items(voted, voted, chance * (1 - chance)),
            over_items(signed, signed, ones),
        )
    )
    agree = (shared.data + product) / 2
    keep = variance > 0
    return Pairs(*(np.asarray(part)[keep] for part in (first, second, shared.data, agree, expected, variance)))


def copying_chance(panel: Panel, first: int, second: int) -> float:
    """Chance of at least so many agreements of a pair, given the counts, by saddlepoint."""
    s, m = panel.s[panel.item], panel.m[panel.item]
    open_ = (s > 0) & (s < m) & (m > 2)
    votes = np.full((2, panel.n_items), np.nan)
    for row, who in enumerate((first, second)):
        mine = open_ & (panel.annotator == who)
        votes[row, panel.item[mine]] = panel.y[mine]
    both = ~np.isnan(votes).any(axis=0)
    p = agreement_chance(panel.s, panel.m)[both]
    t = float((votes[0, both] == votes[1, both]).sum() - p.sum())
    if t <= 0.5:
        return 1.0
    return float(saddlepoint(np.ones(len(p)), p, np.zeros(len(p), np.intp), np.array([t - 0.5]))[0])


def disagreement_chance(n11: float, n10: float, n01: float, n00: float) -> float:
    """Chance of at most so many common positive votes of two who vote independently, given how many each has (Fisher)."""
    row, column, n = n11 + n10, n11 + n01, n11 + n10 + n01 + n00
    k = np.arange(max(0.0, row + column - n), n11 + 1)

    def choose(a: Any, b: Any) -> Any:
        return gammaln(a + 1) - gammaln(b + 1) - gammaln(a - b + 1)

    return float(np.exp(choose(row, k) + choose(n - row, column - k) - choose(n, column)).sum().clip(0, 1))
