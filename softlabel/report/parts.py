"""The pieces of a report on votes: each takes arrays and returns numbers or a table."""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import chdtrc, fdtrc, ndtr, ndtri, stdtr, stdtrit

from softlabel.fits import LogisticFit, LogisticRule
from softlabel.overdispersion import (
    FEWEST,
    OverdispersionTest,
    alpha0_interval,
    estimate_alpha0,
    overdispersion_test,
    rarer_items,
)
from softlabel.two_way import Who, between_annotators
from softlabel.validation import Array
from softlabel.vote_models import dm_logpmf, share_in_band
from softlabel.worth import TruthWarning, WorthOfVotes, worth_of_votes

BOOK = "https://harmless-label-noise.github.io/harmless-label-noise/book/"
CHAPTER = f"{BOOK}beyond/10_real_votes.html"
SMALLEST = 1e-9  # alpha0 of unanimous votes, for probabilities
MOST_PRODUCTS = 10**8  # of features, of all items, for errors over annotators
HIGHEST = 0.95  # leverage of an item, above which its residual says nothing
MOST = 1e6  # true labels, beyond which an end of an interval is no number


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{shown(self.value)} ({self.ends()})"

    def ends(self) -> str:
        """The interval in words; (0, inf) stands for none, and both ends at infinity say no more, nor do both at 0."""
        if self.low == self.high == 0:
            return "none seen"
        if np.isinf(self.high):
            return "no interval" if self.low == 0 or np.isinf(self.low) else f"at least {shown(self.low)}"
        return f"{shown(self.low)} to {shown(self.high)}"


class Headline(NamedTuple):
    """Three answers in words: can I use these votes, what are they worth, and what next?"""

    use: str
    worth: str
    next: str


QUESTIONS = Headline("Can I use these votes?", "What are they worth?", "What next?")


class GoodnessOfFit(NamedTuple):
    """Votes against expectation in groups of items with similar posterior (Hosmer & Lemeshow 1980), and in the 95% band."""

    statistic: float
    df: int
    pvalue: float
    share_in_band: float
    calibration: pd.DataFrame
    histogram: pd.DataFrame


class TruthTest(NamedTuple):
    """Score test of the votes' coefficients, up to a factor, on the true labels; how often the votes' rule is right.

    Where there is no test, ``statistic`` and ``pvalue`` are ``nan``, ``df`` is 0, and ``lacks`` says why.
    """

    n_items: int
    statistic: float
    df: int
    pvalue: float
    accuracy: float
    lacks: str = ""


def equal_number(worth: WorthOfVotes) -> Interval:
    """Two digits, which is what draws give, of the number of true labels to which the votes are equal."""
    return Interval(*(np.inf if x > MOST else float(f"{x:.2g}") for x in worth.equal_number))


def equal_number_in_words(worth: WorthOfVotes, n_coef: int) -> str:
    """The number with its interval, or a bound: no rule can be had from n_coef true labels, so that one more is the least."""
    number = equal_number(worth)
    if number.high <= n_coef + 1:
        return f"at most {n_coef + 1}"
    return str(number) if np.isfinite(number.value) else f"at least {shown(number.low)}"


def in_percent(estimate: tuple[float, float, float]) -> str:
    """An estimate of a rate and its interval."""
    value, low, high = estimate
    return f"{value:.1%} ({low:.1%} to {high:.1%})"


def wilson(rate: float, n: int, level: float) -> tuple[float, float]:
    """Interval of Wilson (1927) for a rate that was counted n times."""
    z = -float(ndtri((1 - level) / 2))
    middle, reach = rate + z**2 / (2 * n), z * np.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    return float((middle - reach) / (1 + z**2 / n)), float((middle + reach) / (1 + z**2 / n))


def to_decimals(estimate: tuple[float, float, float]) -> Interval:
    """An estimate with two decimals and no negative zero."""
    return Interval(*(round(x, 2) + 0.0 for x in estimate))


def shown(x: float) -> str:
    """Three significant digits, for reading."""
    if np.isnan(x):
        return "unknown"
    if np.isinf(x):
        return "infinite"
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def items_worth(votes: float) -> str:
    """How many items' worth of votes there are, an item being one however many votes it has."""
    return "1 item's worth" if shown(votes) == "1" else f"{shown(votes)} items' worth"


def p_value(p: float) -> str:
    """A p-value in words; one that is smaller than any number is below the smallest."""
    return f"p = {shown(p)}" if p else "p below 1e-300"


def direct_efficiency(fit: LogisticFit, X: pd.DataFrame, tau: Array) -> float:
    """True labels an item is worth, by the sandwich and no model of the votes' variance: a mean over directions."""
    mean, sd = X.mean().to_numpy(), X.std(ddof=0).to_numpy()
    x = np.column_stack([np.ones(len(X)), (X - mean) / sd])  # determinants of both change alike
    information = (x * tau.prod(axis=1)[:, None]).T @ x
    to_standard = np.diag(np.r_[1.0, sd])
    to_standard[0, 1:] = mean
    cov = to_standard @ fit.cov() @ to_standard.T
    return float(np.exp(-(np.linalg.slogdet(information)[1] + np.linalg.slogdet(cov)[1]) / len(cov)))


def coefficients(fit: LogisticRule, X: pd.DataFrame, counts: Array, who: Who, level: float) -> pd.DataFrame:
    """Coefficients with errors over items and annotators, where two or more are known; else over items.

    A t quantile with L - 1 degrees of freedom for L annotators, whose part of the variance is estimated from L numbers. A
    penalised fit has no errors, and one of separated votes those of its penalised likelihood.
    """
    if not isinstance(fit, LogisticFit):
        return pd.DataFrame({"coef": fit.coef}, index=pd.Index(["intercept", *fit.feature_names], name="feature"))
    table, L = fit.summary(level=level), len(np.unique(who.annotator))
    if fit.separation != "none" or L < 2 or len(X) * len(fit.coef) ** 2 > MOST_PRODUCTS:
        return table
    cov = fit.cov() + between_annotators(X.to_numpy(), fit.coef, counts, who)
    table["stderr"] = np.sqrt(np.maximum(np.diag(cov), 0))
    with np.errstate(divide="ignore", invalid="ignore"):  # no residual at all
        table["z"] = table["coef"] / table["stderr"]
    table["pvalue"] = 2 * stdtr(L - 1, -np.abs(table["z"].to_numpy()))
    reach = -stdtrit(L - 1, (1 - level) / 2) * table["stderr"]
    table["lower"], table["upper"] = table["coef"] - reach, table["coef"] + reach
    return table.rename(columns={"z": "t"})


def overdispersion(
    fit: LogisticRule, X: pd.DataFrame, counts: Array, tau: Array, level: float
) -> tuple[Interval, OverdispersionTest | None, str]:
    """alpha0 with its interval, the test of alpha0 = inf, and why there is no interval.

    The ends are then 0 and inf, and alpha0 is nan where no item has two votes.
    """
    if counts.sum(axis=1).max() < 2:
        return Interval(np.nan, 0.0, np.inf), None, "no item has two votes"
    value, rarer, q = estimate_alpha0(counts, tau).alpha0, rarer_items(counts), len(fit.coef)
    alone = Interval(value, 0.0, np.inf)
    if not isinstance(fit, LogisticFit):
        return alone, None, f"the fit of {q} coefficients is penalised, and its errors are not known"
    test = overdispersion_test(counts, tau)
    if fit.separation != "none":
        return alone, test, "the features separate the votes"
    if rarer < FEWEST * q:
        return alone, test, f"the rarer class has {items_worth(rarer)} of votes, fewer than {FEWEST} for each coefficient"
    return Interval(value, *alpha0_interval(counts, tau, X=X, level=level)), test, ""


def goodness_of_fit(counts: Array, tau: Array, alpha0: float) -> GoodnessOfFit:
    """Observed against expected positive votes in up to ten groups of items, lowest posterior first; and items by votes."""
    m, n_groups = counts.sum(axis=1), int(np.clip(len(tau) // 10, 3, 10))
    variance = m * tau.prod(axis=1) * (1 + (m - 1) / (1 + alpha0))
    group = np.argsort(np.argsort(tau[:, 0], kind="stable")) * n_groups // len(tau)
    sums = pd.DataFrame({"items": 1, "votes": m, "observed": counts[:, 0], "expected": m * tau[:, 0], "variance": variance})
    table = sums.groupby(group).sum().rename_axis("group")
    statistic = float(((table["observed"] - table["expected"]) ** 2 / table["variance"]).sum())
    table["stderr"] = np.sqrt(table.pop("variance"))
    pvalue, share = float(chdtrc(n_groups - 2, statistic)), share_in_band(counts, tau, max(alpha0, SMALLEST))
    return GoodnessOfFit(statistic, n_groups - 2, pvalue, share, table, histogram(counts, tau, alpha0))


def histogram(counts: Array, tau: Array, alpha0: float) -> pd.DataFrame:
    """Items by positive votes at the commonest number of votes, beside the models."""
    common = int(np.bincount(counts.sum(axis=1).astype(int)).argmax())
    counts, tau = (array[counts.sum(axis=1) == common] for array in (counts, tau))
    votes = [np.tile([k, common - k], (len(tau), 1)) for k in range(common + 1)]
    columns: dict[str, object] = {"observed": np.bincount(counts[:, 0].astype(int), minlength=common + 1)}
    for name, value in (("expected", max(alpha0, SMALLEST)), ("independent votes", np.inf)):
        columns[name] = [np.exp(dm_logpmf(v, tau, value)).sum() for v in votes]
    return pd.DataFrame(columns).rename_axis("positive votes")


def unlike(values: "pd.Series[float]", known: "pd.Series[bool]") -> float:
    """Chance, if items are drawn at random, that ranks of those drawn differ so much from the others' (normal limit)."""
    ranks, k, n = values.rank(), int(known.sum()), len(known)
    variance = float(ranks.var()) * (1 / k - 1 / n) if 0 < k < n else 0.0
    return float(2 * ndtr(-abs(ranks[known].mean() - ranks.mean()) / np.sqrt(variance))) if variance > 0 else 1.0


def against_truth(fit: LogisticRule, X: pd.DataFrame, tau: Array, counts: Array, truth: Array) -> TruthTest | None:
    """Do the true labels have the coefficients of the votes, but for a common factor? None without a true label.

    The score U of the true labels at the votes' coefficients b has covariance V = I + I C I, with C the covariance of b, if
    true labels and votes are independent given the features; where they are positively dependent it has less, and the test is
    conservative. U'V^-1 U less its part along I b, which a change of scale would move, is the statistic: a positive factor
    moves no decision, and it is also what fitted coefficients exaggerate where items are few. (A negative factor, votes that
    go against the true labels, this does not see: the scale in :class:`WorthOfVotes` tells.) For the same reason C is made
    of residuals as they would be without the item (HC3), and the statistic is referred to F.
    """
    known = ~np.isnan(truth)
    if not known.any():
        return None
    y = truth[known]
    right = float(((tau[known, 0] > 0.5) == (y == 1)).mean())
    not_tested = TruthTest(len(y), np.nan, 0, np.nan, right)
    if not isinstance(fit, LogisticFit):
        return not_tested._replace(lacks="the fit is penalised")
    if fit.separation != "none":
        return not_tested._replace(lacks="the features separate the votes")
    scale = np.r_[1.0, X.abs().max().to_numpy()]
    x, m = np.column_stack([np.ones(len(X)), X]) / scale, counts.sum(axis=1)
    bread = fit.cov("model") * np.outer(scale, scale)
    leverage = np.einsum("ij,jk,ik->i", x, bread, x) * m * tau.prod(axis=1)
    freedom = int((m > 0).sum()) - x.shape[1]
    if freedom < 1 or leverage.max() > HIGHEST:
        return not_tested._replace(lacks=f"items are too few, or too far from all others, for {x.shape[1]} coefficients")
    scores = x * ((counts[:, 0] - m * tau[:, 0]) / (1 - leverage))[:, None]
    x, tau = x[known], tau[known]
    information = (x * tau.prod(axis=1)[:, None]).T @ x
    middle = scores @ (bread @ information)
    cov = information + middle.T @ middle
    inverse, rank = np.linalg.pinv(cov, hermitian=True), int(np.linalg.matrix_rank(cov, hermitian=True))
    score, along = x.T @ (y - tau[:, 0]), information @ (fit.coef * scale)
    statistic = score @ inverse @ score - (along @ inverse @ score) ** 2 / (along @ inverse @ along)
    if rank < 2:
        return not_tested._replace(lacks="one true label, or several of items that are all alike, tell no direction")
    pvalue = float(fdtrc(rank - 1, freedom, statistic / (rank - 1)))
    return TruthTest(len(y), float(statistic), rank - 1, pvalue, right)


def worth(
    X: pd.DataFrame, counts: Array, y: Array, votes: pd.DataFrame | None, level: float, rng: np.random.Generator
) -> WorthOfVotes | None:
    """What the true labels say that the votes are worth; None without a true label."""
    if np.isnan(y).all():
        return None
    # Its reservations are said in the report, and so is separation.
    with warnings.catch_warnings(action="ignore", category=TruthWarning):
        return worth_of_votes(X.to_numpy(), counts, y, votes=votes, level=level, rng=rng)
