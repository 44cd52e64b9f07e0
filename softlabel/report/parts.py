"""The pieces of a report on votes: each takes arrays and returns numbers or a table."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtr, ndtri

from softlabel.validation import Array
from softlabel.tables import VoteTable
from softlabel.vote_models import dm_logpmf
from softlabel.logistic import LogisticFit
from softlabel.overdispersion import alpha0_interval, estimate_alpha0, overdispersion_test, VoteTerms

BOOTSTRAP_ITEMS = 5000  # above, the bootstrap's limit in closed form
RESAMPLES = 2000  # so that the ends of an interval hardly depend on the seed
CONTESTED = 10  # items on which an annotator must have voted, and votes differ, for a z value


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{shown(self.value)} ({shown(self.low)} to {shown(self.high)})"


class GoodnessOfFit(NamedTuple):
    """Votes against expectation in groups of items with similar posterior (Hosmer & Lemeshow 1980), and in the 95% band."""

    statistic: float
    df: int
    pvalue: float
    share_in_band: float


class TruthTest(NamedTuple):
    """Score test of the votes' coefficients on the true labels, and how often the rule from the votes is right."""

    n_items: int
    statistic: float
    pvalue: float
    accuracy: float


def shown(x: float) -> str:
    """Three significant digits, for reading."""
    if np.isnan(x):
        return "unknown"
    if np.isinf(x):
        return "infinite"
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def pooled_efficiency(m: Array, omega: float) -> float:
    """True labels that the votes on an item are worth, m votes on each, alpha0 = 1 / omega."""
    mean, square = m.mean(), (m**2).mean()
    return float(mean**2 / square if np.isinf(omega) else mean**2 * (1 + omega) / (mean + square * omega))


def direct_efficiency(fit: LogisticFit, X: pd.DataFrame, tau: Array) -> float:
    """The same with the sandwich in place of a model of the votes' variance: a mean over directions, by determinants."""
    x = (X - X.mean()) / X.std(ddof=0)  # determinants of both change alike
    x = np.column_stack([np.ones(len(x)), x])
    information = (x * tau.prod(axis=1)[:, None]).T @ x
    to_standard = np.diag(np.r_[1.0, X.std(ddof=0)])
    to_standard[0, 1:] = X.mean()
    cov = to_standard @ fit.cov() @ to_standard.T
    return float(np.exp(-(np.linalg.slogdet(information)[1] + np.linalg.slogdet(cov)[1]) / len(cov)))


def overdispersion(counts: Array, tau: Array, level: float, rng: np.random.Generator):
    """alpha0 with its interval, and the test of alpha0 = inf; nan, 0 and inf where no item has two votes."""
    if counts.sum(axis=1).max() < 2:
        return Interval(np.nan, 0.0, np.inf), None
    best = estimate_alpha0(counts, tau).alpha0
    if len(counts) <= BOOTSTRAP_ITEMS:
        ends = alpha0_interval(counts, tau, level, n_resamples=RESAMPLES, rng=rng)
    elif not 0 < best < np.inf:
        ends = alpha0_interval(counts, tau, level, "likelihood")
    else:  # item scores and their slope, on the scale of log alpha0
        omega, step, terms = 1 / best, 1e-4, VoteTerms(counts, tau)
        slope = (terms.of_items(omega * (1 + step))[1] - terms.of_items(omega * (1 - step))[1]).sum() / (
            2 * step
        )
        reach = -ndtri((1 - level) / 2) * np.sqrt((terms.of_items(omega)[1] ** 2).sum()) / abs(slope)
        ends = best * np.exp(-reach), best * np.exp(reach)
    return Interval(best, float(ends[0]), float(ends[1])), overdispersion_test(counts, tau)


def calibration(counts: Array, tau: Array, omega: float) -> tuple[pd.DataFrame, float, int, float]:
    """Observed against expected positive votes in up to ten groups of items, lowest posterior first, and their test."""
    m, n_groups = counts.sum(axis=1), int(np.clip(len(tau) // 10, 3, 10))
    rho = omega / (1 + omega) if np.isfinite(omega) else 1.0
    variance = m * tau.prod(axis=1) * (1 + (m - 1) * rho)
    group = np.argsort(np.argsort(tau[:, 0], kind="stable")) * n_groups // len(tau)
    sums = pd.DataFrame({"items": 1, "votes": m, "observed": counts[:, 0], "expected": m * tau[:, 0], "variance": variance})
    table = sums.groupby(group).sum().rename_axis("group")
    statistic = float(((table["observed"] - table["expected"]) ** 2 / table["variance"]).sum())
    table["stderr"] = np.sqrt(table.pop("variance"))
    return table, statistic, n_groups - 2, float(chdtrc(n_groups - 2, statistic))


def spread_of_votes(counts: Array, tau: Array, omega: float) -> tuple[pd.DataFrame, float]:
    """Items by positive votes at the commonest number of votes, beside the models; share of items in the 95% band."""
    m, s = counts.sum(axis=1).astype(int), counts[:, 0]
    alpha0 = np.clip(1 / omega if omega else np.inf, 1e-9, np.inf)
    common = int(np.bincount(m).argmax())
    expected, binomial = np.zeros(common + 1), np.zeros(common + 1)
    below, up_to = np.zeros(len(m)), np.zeros(len(m))
    for k in range(m.max() + 1):
        at = np.flatnonzero(m >= k)
        votes = np.column_stack([np.full(len(at), k), m[at] - k])
        p = np.exp(dm_logpmf(votes, tau[at], alpha0))
        below[at] += p * (k < s[at])
        up_to[at] += p * (k <= s[at])
        if k <= common:
            same = m[at] == common
            expected[k] = p[same].sum()
            binomial[k] = np.exp(dm_logpmf(votes[same], tau[at][same], np.inf)).sum()
    observed = np.bincount(s[m == common].astype(int), minlength=common + 1)
    table = pd.DataFrame({"observed": observed, "expected": expected, "independent votes": binomial})
    return table.rename_axis("positive votes"), float(((up_to >= 0.025) & (below < 0.975)).mean())


def spending(m: Array, omegas: Array, cost_item: float, cost_vote: float) -> tuple[pd.DataFrame, str, Interval]:
    """Gain of one more vote an item, and of the same money on new items; what to buy; the best number of votes afresh.

    With m votes on each item another one gains alpha0 / (m (m + 1 + alpha0)), and new items gain c1 / (c0 + c1 m): the vote is
    better as long as m (m + 1) < alpha0 c0 / c1.
    """
    known = np.where(np.isnan(omegas), [0.0, np.inf, 0.0], omegas)
    votes = [pooled_efficiency(m + 1, w) / pooled_efficiency(m, w) - 1 for w in known]
    ratio = cost_item / cost_vote
    items = 1 / (ratio + m.mean())
    value = np.nan if np.isnan(omegas[0]) else votes[0]
    table = pd.DataFrame(
        {"one more vote an item": (value, min(votes), max(votes)), "new items for the same money": (items,) * 3},
        index=["gain", "low", "high"],
    ).T.rename_axis("spending")
    advice = "more votes" if min(votes) > items else "more items" if max(votes) < items else "either"
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.nan_to_num(ratio / omegas, nan=0.0 if cost_item == 0 else np.nan, posinf=np.inf)
    best = np.maximum(np.ceil((np.sqrt(1 + 4 * worth) - 1) / 2), 1)
    return table, advice, Interval(*(float(b) for b in best))


def annotators(table: VoteTable, truth: Array | None) -> pd.DataFrame:
    """Each annotator beside all votes on the same items; truth is by item of the table, nan where unknown.

    Of m votes on an item s are positive. Among exchangeable annotators each of the m votes is equally likely to be the one in
    hand: it is positive with probability s / m, and then agrees with (s - 1) / (m - 1) of the others.
    """
    n_annotators = len(table.annotators)
    item, who, positive = table.item, table.annotator, table.positive
    m, s = (c[item].astype(float) for c in table.count())

    def total(values: Array) -> Array:
        return np.bincount(who, weights=values, minlength=n_annotators)

    share = s / m
    variance = share * (1 - share)
    votes, contested = total(np.ones(len(item))), total(variance > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        agrees, if_positive, if_negative = (
            np.where(positive, s - 1, m - s - 1) / (m - 1),
            (s - 1) / (m - 1),
            (m - s - 1) / (m - 1),
        )
        expected = share * if_positive + (1 - share) * if_negative
        shared = m > 1
        agrees, expected, step = (np.where(shared, x, 0) for x in (agrees, expected, if_positive - if_negative))
        n_shared = total(shared)
        out = {
            "votes": votes.astype(int),
            "positive": total(positive) / votes,
            "positive of all": total(share) / votes,
            "z positive": total(positive - share) / np.sqrt(total(variance)),
            "agreement": total(agrees) / n_shared,
            "agreement of all": total(expected) / n_shared,
            "z agreement": total(agrees - expected) / np.sqrt(total(variance * step**2)),
        }
        if truth is not None:
            known = ~np.isnan(truth[item])
            out["accuracy"] = total(known & (positive == (truth[item] == 1))) / total(known)
    frame = pd.DataFrame(out, index=table.annotators.rename("annotator"))
    few = contested < CONTESTED
    frame.loc[few, ["z positive", "z agreement"]] = np.nan
    return frame


def differing(frame: pd.DataFrame, p: float) -> list:
    """Annotators with a z value too large for chance, all of them considered (Bonferroni), the largest first."""
    largest = frame[["z positive", "z agreement"]].abs().max(axis=1).dropna()
    tests = frame[["z positive", "z agreement"]].notna().to_numpy().sum()
    return list(largest[2 * ndtr(-largest) * max(tests, 1) < p].sort_values(ascending=False).index)


def against_truth(fit: LogisticFit, X: pd.DataFrame, tau: Array, y: Array) -> TruthTest | None:
    """Do the true labels have the coefficients of the votes? None without a true label.

    The score U of the true labels at the votes' coefficients has covariance I + I C I, with C the sandwich, if true labels and
    votes are independent given the features. Where they are positively dependent it has less, and the test is conservative.
    """
    at = ~np.isnan(y)
    if not at.any():
        return None
    scale = np.r_[1.0, X.abs().max().to_numpy()]
    x = np.column_stack([np.ones(at.sum()), X[at]]) / scale
    information = (x * tau[at].prod(axis=1)[:, None]).T @ x
    score = x.T @ (y[at] - tau[at, 0])
    cov = information + information @ (fit.cov() * np.outer(scale, scale)) @ information
    statistic = float(score @ np.linalg.pinv(cov, hermitian=True) @ score)
    rank = np.linalg.matrix_rank(cov, hermitian=True)
    return TruthTest(
        int(at.sum()), statistic, float(chdtrc(rank, statistic)), float(((tau[at, 0] > 0.5) == (y[at] == 1)).mean())
    )
