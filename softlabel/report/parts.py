"""The pieces of a report on votes: each takes arrays and returns numbers or a table."""

import warnings
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from softlabel.efficiency import pooled_efficiency
from softlabel.fits import LogisticFit
from softlabel.overdispersion import (
    FEWEST,
    OverdispersionTest,
    alpha0_interval,
    estimate_alpha0,
    overdispersion_test,
    rarer_items,
)
from softlabel.validation import Array
from softlabel.vote_models import dm_logpmf, share_in_band
from softlabel.worth import TruthWarning, WorthOfVotes, worth_of_votes

CHAPTER = "https://harmless-label-noise.github.io/harmless-label-noise/book/beyond/10_real_votes.html"
SMALLEST = 1e-9  # alpha0 of unanimous votes, for probabilities
MOST = 1e6  # true labels, beyond which an end of an interval is no number


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{shown(self.value)} ({self.ends()})"

    def ends(self) -> str:
        """The interval in words; (0, inf) stands for none, and both ends at infinity say no more."""
        if np.isinf(self.high):
            return "no interval" if self.low == 0 or np.isinf(self.low) else f"at least {shown(self.low)}"
        return f"{shown(self.low)} to {shown(self.high)}"


class GoodnessOfFit(NamedTuple):
    """Votes against expectation in groups of items with similar posterior (Hosmer & Lemeshow 1980), and in the 95% band."""

    statistic: float
    df: int
    pvalue: float
    share_in_band: float
    calibration: pd.DataFrame
    histogram: pd.DataFrame


class TruthTest(NamedTuple):
    """Score test of the votes' coefficients on the true labels, and how often the rule from the votes is right."""

    n_items: int
    statistic: float
    pvalue: float
    accuracy: float


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


def direct_efficiency(fit: LogisticFit, X: pd.DataFrame, tau: Array) -> float:
    """True labels an item is worth, by the sandwich and no model of the votes' variance: a mean over directions."""
    mean, sd = X.mean().to_numpy(), X.std(ddof=0).to_numpy()
    x = np.column_stack([np.ones(len(X)), (X - mean) / sd])  # determinants of both change alike
    information = (x * tau.prod(axis=1)[:, None]).T @ x
    to_standard = np.diag(np.r_[1.0, sd])
    to_standard[0, 1:] = mean
    cov = to_standard @ fit.cov() @ to_standard.T
    return float(np.exp(-(np.linalg.slogdet(information)[1] + np.linalg.slogdet(cov)[1]) / len(cov)))


def overdispersion(
    fit: LogisticFit, X: pd.DataFrame, counts: Array, tau: Array, level: float
) -> tuple[Interval, OverdispersionTest | None]:
    """alpha0 with its interval, and the test of alpha0 = inf; nan, 0 and inf where no item has two votes.

    0 and inf are also the ends where there is no maximum of the likelihood or too few items for an interval.
    """
    if counts.sum(axis=1).max() < 2:
        return Interval(np.nan, 0.0, np.inf), None
    enough = fit.separation == "none" and rarer_items(counts) >= FEWEST * len(fit.coef)
    ends = alpha0_interval(counts, tau, X=X, level=level) if enough else (0.0, np.inf)
    return Interval(estimate_alpha0(counts, tau).alpha0, *ends), overdispersion_test(counts, tau)


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


def spending(m: Array, alpha0: Interval, cost_item: float, cost_vote: float) -> pd.DataFrame:
    """Gain of information by one more vote an item, and by the same money on new items.

    With m votes on each item another one gains alpha0 / (m (m + 1 + alpha0)), and new items gain c1 / (c0 + c1 m): the vote is
    better as long as m (m + 1) < alpha0 c0 / c1.
    """
    # nan: items with one vote each, of which any value is right
    gains = [pooled_efficiency(m + 1, a) / pooled_efficiency(m, a) - 1 for a in np.where(np.isnan(alpha0), np.inf, alpha0)]
    rows = {
        "one more vote an item": [np.nan if np.isnan(alpha0.value) else gains[0], min(gains), max(gains)],
        "new items for the same money": [1 / (cost_item / cost_vote + m.mean())] * 3,
    }
    return pd.DataFrame(rows, index=["gain", "low", "high"]).T.rename_axis("spending")


def advice(spending: pd.DataFrame) -> Literal["more votes", "more items", "either"]:
    """What to buy; "either" where the interval leaves it open."""
    (_, low, high), (items, _, _) = spending.to_numpy()
    return "more votes" if low > items else "more items" if high < items else "either"


def best_votes(alpha0: Interval, cost_item: float, cost_vote: float) -> Interval:
    """Best number of votes an item for a study that starts afresh."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.array(alpha0) * (cost_item / cost_vote) if cost_item else np.zeros(3)
        best = np.maximum(np.ceil((np.sqrt(1 + 4 * product) - 1) / 2), 1)
    return Interval(*best.tolist())


def against_truth(fit: LogisticFit, X: pd.DataFrame, tau: Array, y: Array) -> TruthTest | None:
    """Do the true labels have the coefficients of the votes? None without a true label.

    The score U of the true labels at the votes' coefficients has covariance I + I C I, with C the sandwich, if true labels and
    votes are independent given the features. Where they are positively dependent it has less, and the test is conservative.
    """
    known = ~np.isnan(y)
    if not known.any():
        return None
    scale = np.r_[1.0, X.abs().max().to_numpy()]
    x, tau, y = np.column_stack([np.ones(len(X)), X])[known] / scale, tau[known], y[known]
    information = (x * tau.prod(axis=1)[:, None]).T @ x
    score = x.T @ (y - tau[:, 0])
    cov = information + information @ (fit.cov() * np.outer(scale, scale)) @ information
    statistic = float(score @ np.linalg.pinv(cov, hermitian=True) @ score)
    rank = np.linalg.matrix_rank(cov, hermitian=True)
    return TruthTest(len(y), statistic, float(chdtrc(rank, statistic)), float(((tau[:, 0] > 0.5) == (y == 1)).mean()))


def worth(
    X: pd.DataFrame, counts: Array, y: Array, votes: pd.DataFrame | None, level: float, rng: np.random.Generator
) -> WorthOfVotes | None:
    """What the true labels say that the votes are worth; None without a true label."""
    if np.isnan(y).all():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruthWarning)  # its reservations are said in the report, and so is separation
        return worth_of_votes(X.to_numpy(), counts, y, votes=votes, level=level, rng=rng)
