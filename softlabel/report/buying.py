"""What to do next: what costs nothing, and what the same money buys as votes, items or true labels."""

from itertools import product
from typing import Literal

import numpy as np
import pandas as pd

from softlabel.efficiency import pooled_efficiency
from softlabel.report.parts import SMALLEST, Interval
from softlabel.validation import Array

Purchase = Literal["more votes", "more items", "true labels", "either", "none"]
VOTE, ITEMS, LABELS = "one more vote an item", "new items for the same money", "true labels for the same money"
BUYS: dict[str, Purchase] = {VOTE: "more votes", ITEMS: "more items", LABELS: "true labels"}


def weighted_efficiency(m: Array, alpha0: float) -> float:
    """What unequal numbers of votes are worth with weights 1 / phi, as true labels an item: (1 + alpha0) E[M / (M + alpha0)].

    The best that weights can do; without them it is :func:`softlabel.pooled_efficiency`.
    """
    return float(m.mean() if np.isinf(alpha0) else (1 + alpha0) * np.mean(m / (m + max(alpha0, SMALLEST))))


def best_votes(alpha0: Interval, cost_item: float, cost_vote: float, most: float) -> Interval:
    """Best number of votes an item for a study that starts afresh, at most ``most``.

    The worth is a limit for many items. So their number must not fall without end, as it would for independent votes.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.array(alpha0) * (cost_item / cost_vote) if cost_item else np.zeros(3)
        best = np.maximum(np.ceil((np.sqrt(1 + 4 * product) - 1) / 2), 1)
    return Interval(*np.minimum(best, max(most, 1.0)).tolist())


def _ceiling(promised: float, equal: float) -> float:
    """Number of true labels that votes never reach, if they promise so many and are equal to fewer."""
    return np.inf if equal >= promised else 1 / (1 / max(equal, SMALLEST) - 1 / promised)


def gains(
    m: Array,
    alpha0: Interval,
    cost_item: float,
    cost_vote: float,
    *,
    weighted: bool = False,
    cost_truth: float | None = None,
    n_truths: int = 0,
    n_unknown: float = np.inf,
    equal: Interval | None = None,
) -> pd.DataFrame:
    """Gain by the price of one more vote on each item, spent in each way: at the estimates, and at the ends of intervals.

    With m votes on each item another one gains alpha0 / (m (m + 1 + alpha0)), and new items gain c1 / (c0 + c1 m): the vote is
    better as long as m (m + 1) < alpha0 c0 / c1. If all votes promise W true labels and by k of these are equal to fewer,
    they have a ceiling, 1 / (1 / equal - 1 / W), and what counts is k + W / (1 + W / ceiling), as in
    :func:`softlabel.split_budget`. Weights change W and not the ceiling, as ``equal`` is of pooled votes. True labels are
    those of the ``n_unknown`` items that have none, at most.
    """
    efficiency = weighted_efficiency if weighted else pooled_efficiency
    new_items = 1 + 1 / (cost_item / cost_vote + m.mean())
    equal = equal or Interval(np.inf, np.inf, np.inf)
    columns = []
    for given, e in [(alpha0.value, equal.value), *product(alpha0[1:], equal[1:])]:
        known = not np.isnan(given)
        a = given if known else np.inf
        promised, more = len(m) * efficiency(m, a), len(m) * efficiency(m + 1, a)
        ceiling = _ceiling(len(m) * pooled_efficiency(m, a), e)

        def worth(votes: float, ceiling: float = ceiling) -> float:
            return n_truths + votes / (1 + votes / ceiling)

        now = worth(promised)
        column = {VOTE: worth(more) / now - 1 if known else np.nan, ITEMS: worth(promised * new_items) / now - 1}
        if cost_truth is not None and n_unknown:
            column[LABELS] = min(len(m) * cost_vote / cost_truth, n_unknown) / now
        columns.append(pd.Series(column))
    return pd.concat(columns, axis=1).rename_axis("spending")


def spending(gained: pd.DataFrame) -> pd.DataFrame:
    """The gain at the estimates, and its smallest and largest at the ends."""
    ends = gained.iloc[:, 1:]
    return pd.DataFrame({"gain": gained[0], "low": ends.min(axis=1), "high": ends.max(axis=1)})


def advice(gained: pd.DataFrame) -> Purchase:
    """What to buy: what is best at the ends of all intervals; "either" where these leave it open."""
    ends = gained.iloc[:, 1:]
    for way in gained.index:
        if (ends.loc[way] > ends.drop(index=way)).all(axis=None):
            return BUYS[way]
    return "either"
