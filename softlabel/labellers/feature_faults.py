"""Faults of features and of the model that joins them to votes: leaks, repeated items, guesses by all, a missing square."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtrc, chdtrc, expit, fdtrc, logit, ndtr

from softlabel.labellers.exchangeable import Array, Panel, Prediction, agreement_weights, ridge, saddlepoint, together

SAME = 0.97  # correlation of a feature with votes, from which it is said to be made of them
PAIRS = 5  # of votes that agree beyond chance, and votes for the rarer label, without which nothing would show
RARER = 10
ENOUGH = 20  # items of the rarer class for each coefficient, below which a model is not tested
NEIGHBOURS = 8
LEVINA_BICKEL = 0.4304  # d times the mean of log(d_8 / d_k), k = 4 to 7, of points spread evenly in d dimensions
TINY = 0.002  # share of the volume up to the eighth neighbour in which the first stands, if it is a copy
RARE = 0.001  # chance of as many copies in points without any
ASKED = 2000  # items of which neighbours are looked for


# ------------------------------------------------------------------ does anything show?


class Signal(NamedTuple):
    """Chances, if labels mean nothing, of what features explain and of how votes agree; nan where it cannot be looked at."""

    features: float
    agreement: float


def signal(panel: Panel) -> Signal:
    """Do features explain votes (F test), and do votes on an item agree more than each annotator's shuffled ones would?"""
    return Signal(_explained(panel), _agreement(panel))


def _explained(panel: Panel) -> float:
    """Chance of the F test, nan where none can be made."""
    m, s = panel.m, panel.s
    voted = m > 0
    root = np.sqrt(m[voted])
    target = (s[voted] - m[voted] * s.sum() / m.sum()) / root
    x = np.column_stack([np.ones(int(voted.sum())), panel.x[voted]]) * root[:, None]
    rank = int(np.linalg.matrix_rank(x))
    alone = target - root * (root @ target) / (root @ root)
    rest = target - x @ np.linalg.lstsq(x, target)[0]
    within, total = rest @ rest, alone @ alone
    return float("nan") if total <= 1e-12 * len(target) else _of_share(1 - within / total, rank, len(target))


def _of_share(explained: float, rank: int, n: int) -> float:
    """Chance that features of this rank, with the intercept, explain so large a share of the variance of n items' votes."""
    left = n - rank
    if rank < 2 or left < 10:
        return float("nan")
    return float(fdtrc(rank - 1, left, max(explained, 0) / (rank - 1) / max((1 - explained) / left, 1e-300)))


def would_show(panel: Panel, level: float) -> bool:
    """Whether a weak sign would have a chance below ``level``.

    Votes that agree a quarter as far as these could, where that is by enough pairs, or features that explain a tenth of the
    variance of enough votes for the rarer label.
    """
    residual, spread = _residual_and_spread(panel)
    quarter = ((panel.m[panel.item] - 1) * residual**2).sum() / 8
    by_votes = quarter >= PAIRS and spread > 0 and ndtr(-quarter / np.sqrt(spread)) < level
    rank = int(np.linalg.matrix_rank(np.column_stack([np.ones(panel.n_items), panel.x])[panel.m > 0]))
    by_features = _of_share(0.1, rank, int((panel.m > 0).sum())) < level
    rarer = min(panel.s.sum(), (panel.m - panel.s).sum())
    return bool(by_votes or (by_features and rarer >= RARER))


def _agreement(panel: Panel) -> float:
    residual, spread = _residual_and_spread(panel)
    return float(ndtr(-_of_pairs(panel, residual).sum() / np.sqrt(spread))) if spread > 0 else float("nan")


def _residual_and_spread(panel: Panel) -> tuple[Array, float]:
    """Votes less the annotator's share, and the variance of the sum of their products if votes are shuffled."""
    own = panel.total(panel.y) / np.maximum(panel.cast, 1)
    residual = panel.y - own[panel.annotator]
    variance = (own * (1 - own) * panel.cast / np.maximum(panel.cast - 1, 1))[panel.annotator]
    return residual, float(_of_pairs(panel, variance).sum())


def _of_pairs(panel: Panel, values: Array) -> Array:
    """Over the items, the sum of products of two different votes."""
    total, squares = (np.bincount(panel.item, weights=v, minlength=panel.n_items) for v in (values, values**2))
    return np.asarray((total**2 - squares) / 2)


# ------------------------------------------------------------------ leaks


class Leak(NamedTuple):
    """A feature that goes with one annotator's votes."""

    feature: int
    who: int
    correlation: float
    pvalue: float


def vote_as_feature(panel: Panel, level: float) -> Leak | None:
    """A feature that is an annotator's vote, up to shift and scale: all but equal, and more so than the counts explain."""
    if not panel.x.shape[1]:
        return None
    counted, yes = (panel.matrix(values) for values in (np.ones(len(panel.y)), panel.y))
    n, k, sums, squares = panel.cast[:, None], panel.total(panel.y)[:, None], counted @ panel.x, counted @ panel.x**2
    spread = (n * squares - sums**2) * (n * k - k**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.where(spread > 1e-9, (n * (yes @ panel.x) - sums * k) / np.sqrt(np.maximum(spread, 1e-300)), 0.0)
    correlation[np.minimum(k, n - k)[:, 0] < 3] = 0
    for who, feature in zip(*np.nonzero(np.abs(correlation) > SAME)):
        chance = _conditional(panel, panel.x[panel.item, feature], int(who), [np.ones(len(panel.y))])
        if chance * correlation.size < level:
            return Leak(int(feature), int(who), float(correlation[who, feature]), chance * correlation.size)
    return None


def tilted_feature(panel: Panel, prediction: Prediction, level: float) -> Leak | None:
    """The feature that goes most with one annotator's votes, given the counts, beyond lean and agreement with the others."""
    if not panel.x.shape[1] or not len(panel.y):
        return None
    p, agree = panel.share, agreement_weights(panel, prediction)
    v, r = p * (1 - p), panel.y - p
    x = panel.x

    def sums(values: Array) -> Any:
        return panel.matrix(values) @ x

    # Least squares with weights v of each feature on 1 and agreement, for each annotator.
    w0, w1, w2 = panel.total(v)[:, None], panel.total(v * agree)[:, None], panel.total(v * agree**2)[:, None]
    f0, f1, f2 = sums(v), sums(v * agree), panel.matrix(v) @ x**2
    det = np.maximum(w0 * w2 - w1**2, 1e-9)
    level_part, slope = (w2 * f0 - w1 * f1) / det, (w0 * f1 - w1 * f0) / det
    variance = f2 - level_part * f0 - slope * f1
    t = sums(r) - level_part * panel.total(r)[:, None] - slope * panel.total(r * agree)[:, None]
    usable = variance > 1e-6 * np.maximum(f2, 1e-300)
    z = np.where(usable & (f2 > 0), t / np.sqrt(np.where(usable, np.maximum(variance, 1e-300), 1.0)), 0.0)
    who, feature = np.unravel_index(np.abs(z).argmax(), z.shape)
    chance = _conditional(panel, x[panel.item, feature], int(who), [np.ones(len(p)), agree]) * z.size
    if chance >= level:
        return None
    mine = panel.annotator == who
    correlation = np.corrcoef(panel.y[mine], x[panel.item[mine], feature])[0, 1]
    return Leak(int(feature), int(who), float(correlation), chance)


def _conditional(panel: Panel, feature: Array, who: int, beside: list[Array]) -> float:
    """Chance, given the counts, that an annotator's votes go with a feature as much, whichever way, beyond other weights."""
    mine = panel.annotator == who
    p, y, weight = panel.share[mine], panel.y[mine], feature[mine]
    root = np.sqrt(p * (1 - p))
    others = np.column_stack([b[mine] for b in beside])
    weight = weight - others @ np.linalg.lstsq(others * root[:, None], weight * root)[0]
    t = float(weight @ (y - p))
    return float(min(1.0, 2 * saddlepoint(weight, p, np.zeros(len(p), np.intp), np.array([t]))[0]))


def consensus_as_feature(panel: Panel, prediction: Prediction, level: float) -> float | None:
    """Do votes on an item repel each other at the probability that features predict? Chance of that, if so.

    Interchangeable votes never do, whatever features leave out: only features made of the votes can know that one is yes and
    another no. Each annotator's own mean is taken off, as those who lean apart repel each other too.
    """
    tau = prediction.tau[panel.item]
    residual = panel.y - tau
    own = panel.total(residual) / np.maximum(panel.cast, 1)
    residual = residual - np.where(panel.cast >= ENOUGH, own, 0)[panel.annotator]
    total, squares = (np.bincount(panel.item, weights=v, minlength=panel.n_items) for v in (residual, residual**2))
    products = (total**2 - squares) / 2
    _, scale = together(panel.s, panel.m, prediction.tau)
    variance = float((scale * prediction.tau * (1 - prediction.tau)).sum())
    if variance <= 0:
        return None
    chance = float(ndtr(products.sum() / np.sqrt(variance)))
    return chance if chance < level else None


def nearest_to_shares(panel: Panel) -> tuple[int, float]:
    """The feature that correlates most with the shares of positive votes."""
    voted = panel.m > 0
    x, share = panel.x[voted], panel.s[voted] / panel.m[voted]
    share = share - share.mean()
    spread = np.sqrt(((x - x.mean(axis=0)) ** 2).sum(axis=0) * (share @ share))
    correlation = (x.T @ share) / np.where(spread > 0, spread, np.inf)
    k = int(np.abs(correlation).argmax())
    return k, float(correlation[k])


# ------------------------------------------------------------------ repeated items


def near_copies(x: Array, rng: np.random.Generator) -> float | None:
    """Share of items whose nearest neighbour is far nearer than neighbours are, or None if that is no more than chance.

    Of points spread evenly in d dimensions, (d_1 / d_8)^d, the share of the volume up to the eighth neighbour in which the
    first stands, has the distribution Beta(1, 7). The dimension d is estimated from neighbours four to eight (Levina & Bickel
    2005), as features may be dependent; it is at most 10, as in more dimensions density is nowhere even. Where features are
    rounded (:func:`is_continuous`), items that are the same are no surprise.
    """
    n, p = x.shape
    if n < 5 * NEIGHBOURS or not is_continuous(x):
        return None
    asked = np.arange(n) if n <= ASKED else rng.choice(n, ASKED, replace=False)
    distance = _distances(x, asked)
    first, far = distance[:, 0], distance[:, NEIGHBOURS - 1]
    usable = far > 1e-9 * np.sqrt(p)
    if usable.sum() < 5 * NEIGHBOURS:
        return None
    first, near, far = first[usable], distance[usable, NEIGHBOURS // 2 - 1 : NEIGHBOURS - 1], far[usable]
    logs = np.log(far[:, None] / np.maximum(near, 1e-12 * far[:, None]))
    dimension = float(np.clip(LEVINA_BICKEL / max(logs.mean(), 1e-3), 1, min(p, 10)))
    close = int(((first / far) ** dimension < TINY).sum())
    chance = 1 - (1 - TINY) ** (NEIGHBOURS - 1)
    # A pair is close twice.
    if close < max(4, 0.05 * len(first)) or bdtrc(close // 2 - 1, len(first), chance) > RARE:
        return None
    return close / len(asked)


def is_continuous(x: Array) -> bool:
    """Whether two features have a value of their own for nearly each item that is not wholly the same as another.

    One that is rounded makes items the same, and no copies; so do all features that are functions of one. Along it their ranks
    hardly change from an item to the next, where those of n independent values change by n / sqrt(6).
    """
    different = np.unique(x, axis=0)
    own = [column for column in different.T if len(np.unique(column)) >= 0.9 * len(different)]
    if len(own) < 2 or len(different) < 2:
        return False
    ranks = np.argsort(np.argsort(np.array(own)[1:, np.argsort(own[0])]))
    return bool((np.diff(ranks) ** 2).mean(axis=1).max() > 0.05 * len(different) ** 2 / 6)


def _distances(x: Array, asked: Any) -> Array:
    """From items to their nearest neighbours, the nearest first."""
    if x.shape[1] <= 10:
        from scipy.spatial import cKDTree

        return np.asarray(cKDTree(x).query(x[asked], NEIGHBOURS + 1)[0][:, 1:])
    squares = (x**2).sum(axis=1)
    answer = np.empty((len(asked), NEIGHBOURS))
    for begin in range(0, len(asked), 200):
        rows = asked[begin : begin + 200]
        square = squares[rows, None] - 2 * x[rows] @ x.T + squares
        square[np.arange(len(rows)), rows] = np.inf
        nearest = np.argpartition(square, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
        exact = np.stack([((x[row] - x[near]) ** 2).sum(axis=1) for row, near in zip(rows, nearest)])  # no cancellation
        answer[begin : begin + 200] = np.sqrt(np.sort(exact, axis=1))
    return answer


# ------------------------------------------------------------------ the shape of the mean


def can_be_tested(panel: Panel) -> bool:
    """Whether there are items enough, of the rarer class, for each coefficient."""
    share = panel.s[panel.m > 0] / panel.m[panel.m > 0]
    rarer = min(share.sum(), (1 - share).sum())
    return bool(panel.x.shape[1] and rarer >= ENOUGH * (panel.x.shape[1] + 1))


class Guesses(NamedTuple):
    """Votes at random whatever the item: shares of all votes that are positive, and negative, by guess."""

    positive: float
    negative: float
    pvalue: float

    @property
    def share(self) -> float:
        return self.positive + self.negative


def guesses(panel: Panel, prediction: Prediction, level: float) -> Guesses | None:
    """Do votes level off at a floor above 0 and a ceiling below 1, where features are sure? Votes by guess do that.

    Likelihood ratio, over its dispersion, of lo + (1 - lo - hi) expit(a + b eta), with eta fitted to other items: of one rate
    lo = hi, as of a coin, with one degree of freedom, and of two with two; the smaller chance, twice. The shares are those of
    a coin unless two rates are better by a chance of .001 and probabilities reach both ends, as else one cannot be told.
    """
    from scipy.optimize import minimize

    voted = panel.m > 0
    s, m, eta = panel.s[voted], panel.m[voted], logit(prediction.tau[voted])
    if eta.std() <= 1e-6:
        return None

    def loss(theta: Array) -> tuple[float, Array]:
        a, b, lo, hi = theta
        q = expit(a + b * eta)
        mean = np.clip(lo + (1 - lo - hi) * q, 1e-12, 1 - 1e-12)
        slope = (s - m * mean) / (mean * (1 - mean))
        dq = (1 - lo - hi) * q * (1 - q)
        value = -float(s @ np.log(mean) + (m - s) @ np.log1p(-mean))
        return value, -np.array([slope @ dq, slope @ (dq * eta), slope @ (1 - q), -(slope @ q)])

    def fit(start: Array, most: float) -> Any:
        return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(-30, 30), (0, 30), (0, most), (0, most)])

    def of_a_coin(theta: Array) -> tuple[float, Array]:
        value, slope = loss(theta[[0, 1, 2, 2]])
        return value, np.r_[slope[:2], slope[2] + slope[3]]

    plain = fit(np.array([0.0, 1.0, 0.0, 0.0]), 0.0)
    coin = minimize(
        of_a_coin, np.r_[1.5 * plain.x[:2], 0.05], jac=True, method="L-BFGS-B", bounds=[(-30, 30), (0, 30), (0, 0.49)]
    )
    two = min((fit(start, 0.49) for start in (coin.x[[0, 1, 2, 2]], np.r_[plain.x[:2], 0, 0])), key=lambda f: float(f.fun))
    mean = expit(plain.x[0] + plain.x[1] * eta)
    weight = m * mean * (1 - mean)
    dispersion = float((weight * (1 + (m - 1) * prediction.rho)).sum() / weight.sum())
    of_coin, of_two, more = (2 * max(a.fun - b.fun, 0) / dispersion for a, b in ((plain, coin), (plain, two), (coin, two)))
    chance = min(1.0, 2 * min(float(chdtrc(1, of_coin)) / 2, float(chdtrc(2, of_two))))
    if chance >= level:
        return None
    low, high = np.quantile(mean, (0.01, 0.99))
    lo, hi = two.x[2:] if chdtrc(1, more) < 0.001 and low < 0.2 and high > 0.8 else coin.x[[2, 2]]
    return Guesses(float(lo), float(hi), chance)


class Square(NamedTuple):
    """A feature whose square belongs in the rule, with the square's coefficient, somewhat shrunk towards 0."""

    feature: int
    size: float
    pvalue: float


def missing_square(panel: Panel, prediction: Prediction, level: float) -> Square | None:
    """The feature whose square belongs in the rule most, by score tests, if there is one.

    The variance of a score is the larger of the model's, with the correlation of votes on an item, and the empirical one.
    """
    voted = panel.m > 0
    x, s, m = panel.x[voted], panel.s[voted], panel.m[voted]
    mean = expit(ridge(x, s, m)[0])
    w, design = m * mean * (1 - mean), np.column_stack([np.ones(len(x)), x])
    squares = x**2
    rest = squares - design @ np.linalg.lstsq(design * np.sqrt(w)[:, None], squares * np.sqrt(w)[:, None])[0]
    kept = (rest**2 * w[:, None]).sum(axis=0) > 1e-6 * (squares**2 * w[:, None]).sum(axis=0)  # not of two values
    score = rest.T @ (s - m * mean)
    model = (rest**2).T @ (w * (1 + (m - 1) * prediction.rho))
    variance = np.maximum(model, (rest**2).T @ (s - m * mean) ** 2)
    z = np.where(kept, np.abs(score) / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
    k = int(z.argmax())
    chance = float(min(1.0, 2 * ndtr(-z[k]) * len(z)))
    if chance >= level:
        return None
    design = np.column_stack([design, squares[:, k]])
    size = np.linalg.lstsq(design, ridge(design[:, 1:], s, m)[0])[0][-1]
    return Square(k, float(size), chance)
