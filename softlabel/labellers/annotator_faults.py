"""Faults of annotators, each found by a function of its own: what they look like in votes whose truth nobody knows.

The level of a function is its chance to find anything if annotators are interchangeable, whatever the features.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import gammaincc, gammaln, ndtr, ndtri, softmax

from softlabel.labellers.exchangeable import (
    Array,
    Codes,
    Flags,
    Panel,
    Prediction,
    Prior,
    Slopes,
    agreement_weights,
    copying_chance,
    deviation,
    disagreement_chance,
    follow,
    of_others,
    pairs,
    predict,
    together,
)

MOST_PAIRED = 30  # annotators that are compared pair by pair; more are a crowd
MINORITY = 0.35  # of a camp, below which it is called reversed
FOLLOWS = 0.3  # slope on what others predict, from which an annotator counts as following them
SURE = 2.6  # standard errors of a slope
COPIED = 0.65  # share of the disagreements to be expected, gone between two, from which they are said to be no chance
SURELY = 0.95  # posterior probability by which a worker of a crowd is named
SOME = 0.02  # share of a crowd that is worth a word if nobody can be named
REPEATS = 200  # permutations
UNREMARKABLE = 0.1  # chance of a crowd's differences by which none are made
ROUNDS = 12  # of the mixture


# ------------------------------------------------------------------ asked again on disagreement


class Design(NamedTuple):
    """Votes that were asked for where earlier ones disagreed: ``fewest`` to begin with, and the chance without such a rule."""

    fewest: int
    pvalue: float
    always: bool


def asked_again(panel: Panel, prediction: Prediction, level: float) -> Design | None:
    """Were more votes asked for where the first ones disagreed? Then an item's votes are not interchangeable.

    Always: no item with the fewest votes is split, and all with more are. Chance of that: the largest of Dirichlet-multinomial
    votes, whatever their correlation. Or, if some requests were not met, all with more are split, and most of the others are
    not: all of m votes agree with probability at least 2^(1 - m), whatever the item. Or, if third votes have other reasons
    too, items with more votes have some that repel each other, which interchangeable votes never do, and others have not.
    """
    s, m = panel.s, panel.m
    fewest = int(m[m > 1].min())
    few, more = m == fewest, m > fewest
    split = (s > 0) & (s < m)
    if not more.any():
        return None
    if split[more].all() and split[few].mean() < 0.5:
        if always := not split[few].any():
            pvalue = max(float(_as_split(panel, prediction.tau, rho, more)) for rho in np.linspace(0.01, 0.99, 50))
        else:
            pvalue = float(np.exp(np.log1p(-(2.0 ** (1 - m[more]))).sum()))
        return Design(fewest, pvalue, always) if pvalue < level else None
    products, scale = together(s, m, prediction.tau)
    limit = -ndtri(level / 2)
    z = products[more].sum() / np.sqrt((scale * prediction.tau * (1 - prediction.tau))[more].sum())
    rates = [products[group].sum() / scale[group].sum() for group in (few, more)]
    errors = [np.sqrt(((products - r * scale)[g] ** 2).sum()) / scale[g].sum() for r, g in zip(rates, (few, more))]
    if z > -limit or rates[0] - rates[1] < limit * np.hypot(*errors):
        return None
    return Design(fewest, float(2 * ndtr(z)), False)


def _as_split(panel: Panel, tau: Array, rho: float, split: Flags) -> Array:
    """Chance that of the items with two votes and more those are split, and no other, if votes have a correlation."""
    alpha0 = 1 / rho - 1

    def rising(a: Any) -> Array:  # log of a (a + 1) ... (a + m - 1)
        return np.asarray(gammaln(a + panel.m) - gammaln(a))

    alike = np.exp(rising(alpha0 * tau) - rising(alpha0)) + np.exp(rising(alpha0 * (1 - tau)) - rising(alpha0))
    chance = np.clip(np.where(split, 1 - alike, alike), 0, 1)[panel.m > 1]
    return np.asarray(np.prod(chance))


# ------------------------------------------------------------------ contradiction


class Camps(NamedTuple):
    """Annotators who contradict each other: two sides, the larger first, and the chance of it if none did."""

    one: Codes
    other: Codes
    pvalue: float

    @property
    def minority(self) -> float:
        return len(self.other) / (len(self.one) + len(self.other))


def correlations(panel: Panel) -> tuple[Array, float]:
    """Of the votes of each pair of annotators (J, J), and the chance that any is so far below zero if none truly is.

    By Fisher's test of each pair, one-sided: votes on an item are never against each other if they are interchangeable.
    """
    positive, negative = (panel.matrix(values).toarray() for values in (panel.y, 1 - panel.y))
    n11, n10, n00 = positive @ positive.T, positive @ negative.T, negative @ negative.T
    row, column, n = n11 + n10, n11 + n10.T, n11 + n10 + n10.T + n00
    spread = np.sqrt(row * (n - row) * column * (n - column))
    phi = np.divide(n * n11 - row * column, spread, out=np.zeros_like(spread), where=spread > 0)
    np.fill_diagonal(phi, 0)
    first, second = np.nonzero(np.triu(phi < 0))
    chances = [disagreement_chance(n11[a, b], n10[a, b], n10[b, a], n00[a, b]) for a, b in zip(first, second)]
    return phi, min(chances, default=1.0) * len(phi) * (len(phi) - 1) / 2


def camps(panel: Panel, level: float) -> Camps | None:
    """Two sides, if some pair of annotators is against each other.

    The sides are the signs of the leading eigenvector of the correlations; who belongs to none has less than three tenths
    of the largest entry.
    """
    phi, pvalue = correlations(panel)
    if pvalue >= level:
        return None
    side = np.linalg.eigh(phi)[1][:, -1]
    side[np.abs(side) < 0.3 * np.abs(side).max()] = 0
    one, other = np.flatnonzero(side > 0), np.flatnonzero(side < 0)
    if not len(one) or not len(other):
        return None
    return Camps(one, other, pvalue) if len(one) >= len(other) else Camps(other, one, pvalue)


def opposed(panel: Panel) -> float:
    """Of two annotators: the chance that each goes so much against what features and the other say, if neither does.

    The larger of two chances: beside one who guesses, the other may go against anything.
    """
    z = []
    for who in np.flatnonzero(panel.cast):
        other = np.arange(panel.n_annotators) != who
        slopes = follow(panel, of_others(panel, predict(panel.without([who])), other))
        z.append(slopes.slope[who] / slopes.slope_error[who])
    return float(ndtr(max(z)))


# ------------------------------------------------------------------ one by one

Kind = Literal["reversed", "guessing", "leans"]


class Odd(NamedTuple):
    """An annotator unlike the others: ``slope`` and ``lean`` of the votes in the log-odds of what the others predict."""

    who: int
    kind: Kind
    slope: float
    lean: float
    pvalue: float


def kind_of(slopes: Slopes, who: int) -> Kind | None:
    """Reversed, no sign of what the others see, or neither: more timid or bolder votes do no harm."""
    slope, error = slopes.slope[who], slopes.slope_error[who]
    if slope + SURE * error < 0:
        return "reversed"
    return "guessing" if slope < FOLLOWS else None


def one_by_one(panel: Panel, prediction: Prediction, level: float, level_lean: float) -> tuple[list[Odd], Prediction]:
    """Annotators who agree with the others less than interchangeable ones would, or say yes more or less often.

    The one furthest off is taken out, and the others are looked at anew. Kind, slope and lean are in the end beside those
    left over; also what these predict.
    """
    found: dict[int, tuple[Kind, float]] = {}
    harmless: set[int] = set()
    core = panel
    while odd := _furthest(core, prediction, harmless, level, level_lean):
        found[odd[0]] = odd[1:]
        core = panel.without(found)
        prediction = predict(core)
    slopes = follow(panel, of_others(panel, prediction, ~np.isin(np.arange(panel.n_annotators), list(found))))
    alone = (core.cast > 0).sum() == 1  # then there is no other to say more than was said of the two
    answer = []
    for who, (first, pvalue) in found.items():
        kind = first if first == "leans" or alone or constant(panel, who) else kind_of(slopes, who) or first
        answer.append(Odd(who, kind, float(slopes.slope[who]), float(slopes.lean[who]), pvalue))
    return answer, prediction


def _furthest(
    core: Panel, prediction: Prediction, harmless: set[int], level: float, level_lean: float
) -> tuple[int, Kind, float] | None:
    """Who is furthest from the others, how, and the chance; those who only are timid or bold are noted as harmless."""
    n = int((core.cast > 0).sum())
    if n < 2:
        return None
    agreement = deviation(core, agreement_weights(core, prediction))
    lean = deviation(core, np.ones(len(core.y)), step=1.0)
    chance, chance_lean = agreement.low * n, np.minimum(lean.low, lean.high) * 2 * n
    low, leans = chance < level, chance_lean < level_lean
    low[list(harmless)] = False
    if not (low | leans).any():
        return None
    slopes = follow(core, of_others(core, prediction))
    off = np.maximum(np.where(low, np.abs(agreement.z), 0), np.where(leans, np.abs(lean.z), 0))
    for who in map(int, np.argsort(-off)[: int((low | leans).sum())]):
        kind = kind_of(slopes, who) if low[who] else None
        if kind == "guessing" and n == 2 and slopes.slope[who] < -FOLLOWS:
            kind = "reversed"  # the two contradict each other rather than that one shows nothing
        if kind:
            return who, kind, float(chance[who])
        if low[who]:
            harmless.add(who)
        if leans[who]:
            unlike = slopes.slope[who] < FOLLOWS and slopes.slope[who] + SURE * slopes.slope_error[who] < 1
            return who, "guessing" if unlike or constant(core, who) else "leans", float(chance_lean[who])
    return None


def constant(panel: Panel, who: int) -> bool:
    """Whether an annotator's votes are all the same: then there is no slope."""
    return len(np.unique(panel.y[panel.annotator == who])) == 1


# ------------------------------------------------------------------ a crowd


def crowd_differs(panel: Panel, prediction: Prediction, rng: np.random.Generator) -> tuple[float, float]:
    """Chances that interchangeable annotators differ as much, together, in agreement and in lean.

    The sum of squared z values, beside its values when the votes on each item are dealt out anew; a gamma distribution of
    the same mean and variance stands for these. Where a chi-squared distribution finds nothing to look at, it is the answer.
    """
    open_ = panel.only(((panel.s > 0) & (panel.s < panel.m))[panel.item])
    order = np.lexsort([open_.item, open_.m[open_.item]])
    open_ = Panel(open_.item[order], open_.annotator[order], open_.y[order], open_.x, open_.n_annotators)
    if not len(open_.y):
        return 1.0, 1.0
    m = open_.m[open_.item].astype(int)
    ends = np.flatnonzero(np.r_[np.diff(m) > 0, True]) + 1
    starts = np.r_[0, ends[:-1]]
    p = open_.share
    weights = [agreement_weights(open_, prediction), np.ones(len(p))]
    spread = [np.maximum(open_.total(w**2 * p * (1 - p)), 1e-300) for w in weights]

    def sums(y: Array) -> list[float]:
        return [float((open_.total(w * (y - p)) ** 2 / v).sum()) for w, v in zip(weights, spread)]

    seen = np.array(sums(open_.y))
    n = np.array([(v > 1e-300).sum() for v in spread])
    chance = gammaincc(np.maximum(n, 1) / 2, seen / 2)
    if chance.min() > UNREMARKABLE:
        return float(chance[0]), float(chance[1])
    dealt = np.empty((REPEATS, 2))
    for repeat in range(REPEATS):
        y = [rng.permuted(open_.y[a:b].reshape(-1, m[a]), axis=1).ravel() for a, b in zip(starts, ends)]
        dealt[repeat] = sums(np.concatenate(y))
    variance = np.maximum(((dealt - n) ** 2).mean(axis=0), 1e-300)
    chance = gammaincc(n**2 / variance, seen * n / variance)
    return float(chance[0]), float(chance[1])


class Crowd(NamedTuple):
    """Workers by kind: shares of those who follow the others, who show no sign of it, and who reverse, and who they are."""

    shares: Array
    posterior: Array  # (J, 3)

    def named(self, column: int) -> Codes:
        return np.flatnonzero(self.posterior[:, column] > SURELY)


KINDS = (
    Prior(0.5, 1.0, 0.25),
    Prior(1.5, 0.0, 0.05),
    Prior(0.5, -1.0, 0.25),
)  # follow the others, show no sign of it, reverse


def crowd(panel: Panel) -> Crowd:
    """Mixture of workers who follow what the others predict, show no sign of it, or reverse, each with a lean of their own.

    What is predicted comes from those now taken to follow, and from the reversed with their votes turned round.
    """
    posterior = np.tile([1.0, 0.0, 0.0], (panel.n_annotators, 1))
    shares = np.array([0.8, 0.15, 0.05])
    kind = np.zeros(panel.n_annotators, int)
    voted = panel.cast > 0
    for _ in range(ROUNDS):
        turned = panel.turned(np.flatnonzero(kind == 2))
        prediction = predict(turned.without(np.flatnonzero(kind == 1)))
        log_odds = of_others(turned, prediction, kind != 1)
        logs = np.column_stack([follow(panel, log_odds, prior).evidence for prior in KINDS])
        for _ in range(50):
            posterior = softmax(logs + np.log(np.maximum(shares, 1e-12)), axis=1)
            shares = posterior[voted].mean(axis=0)
        before, kind = kind, posterior.argmax(axis=1)
        if (before == kind).all() or not (kind[voted] == 0).any():
            break
    posterior[~voted] = [1.0, 0.0, 0.0]
    return Crowd(shares, posterior)


# ------------------------------------------------------------------ copies


class Copies(NamedTuple):
    """Annotators who vote alike: the share of the disagreements to be expected of them that has gone."""

    who: Codes
    excess: float
    pvalue: float


def copies(panel: Panel, level: float) -> list[Copies]:
    """Groups of annotators who agree far more with each other than votes dealt out among all would."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not len(panel.y):
        return []
    found = pairs(panel)
    likely = np.flatnonzero((found.excess >= COPIED) & (found.z > 3))
    likely = likely[np.argsort(-found.z[likely])[:200]]
    chance = np.array([copying_chance(panel, found.first[k], found.second[k]) for k in likely]) * len(found.z)
    likely, chance = likely[chance < level], chance[chance < level]
    if not len(likely):
        return []
    edges = coo_array((np.ones(len(likely)), (found.first[likely], found.second[likely])), shape=(panel.n_annotators,) * 2)
    _, group = connected_components(edges, directed=False)
    answer = []
    for g in np.unique(group[found.first[likely]]):
        here = group[found.first[likely]] == g
        who = np.flatnonzero(group == g)
        if len(who) < (panel.cast > 0).sum():  # else there is nobody beside whom they are alike
            answer.append(Copies(who, float(found.excess[likely[here]].mean()), float(chance[here].min())))
    return answer
