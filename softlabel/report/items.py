"""What features and votes say together of each item, and which items to look at again."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betainc

from softlabel.report.parts import SMALLEST, Interval
from softlabel.validation import Array

LARGEST = 1e9  # alpha0 of independent votes, whose items have tau as their own probability


def given_votes(counts: Array, tau: Array, alpha0: float) -> Array:
    """Probability (n, g) of each label for one more vote on each item, given its features and its votes.

    An item's own probabilities are Dirichlet with parameters alpha0 tau beforehand, and alpha0 tau + s after votes s. If the
    truth of an item is like one more vote, this is the posterior probability of the truth.
    """
    if np.isinf(alpha0):
        return np.array(tau)
    return np.asarray((alpha0 * tau + counts) / np.maximum(alpha0 + counts.sum(axis=1, keepdims=True), SMALLEST))


def majority(counts: Array, tau: Array, alpha0: float) -> Array:
    """Probability (n,) that of ever more votes on an item most would be positive: the upper half of its beta distribution."""
    a, b = (np.clip(alpha0, SMALLEST, LARGEST) * tau + counts).T
    return np.asarray(betainc(b, a, 0.5))


def gain_of_a_vote(counts: Array, tau: Array, alpha0: float) -> Array:
    """By how much (n,) one more vote raises the probability that the likelier verdict on an item is that of most."""
    yes = given_votes(counts, tau, alpha0)[:, 0]
    now, if_yes, if_no = (_right(majority(counts + more, tau, alpha0)) for more in ([0, 0], [1, 0], [0, 1]))
    return np.asarray(np.maximum(yes * if_yes + (1 - yes) * if_no - now, 0))


def _right(p: Array) -> Array:
    return np.maximum(p, 1 - p)


def describe(counts: Array, tau: Array, alpha0: Interval, index: "pd.Index[Any]") -> pd.DataFrame:
    """A row for each item; nan where alpha0 is not known.

    ``given votes`` is the probability that one more vote is positive, ``low`` and ``high`` its range over the interval of
    alpha0, ``most`` that most of ever more votes are, ``doubt``
    that most are not what now looks likelier, ``disagreement`` that two more votes differ, and ``relabel`` the order in which
    one more vote helps most.
    """
    ends = np.array([given_votes(counts, tau, a)[:, 0] for a in alpha0[1:]])
    columns = {"posterior": tau[:, 0], "given votes": np.nan, "low": ends.min(axis=0), "high": ends.max(axis=0)}
    if np.isnan(alpha0.value):
        nothing = dict.fromkeys(("most", "doubt", "disagreement", "relabel"), np.nan)
        return pd.DataFrame(columns | nothing, index=index)
    total = min(alpha0.value, LARGEST) + counts.sum(axis=1)
    yes, most = given_votes(counts, tau, alpha0.value)[:, 0], majority(counts, tau, alpha0.value)
    doubt, gain = np.minimum(most, 1 - most), gain_of_a_vote(counts, tau, alpha0.value)
    rank = np.argsort(np.lexsort((-doubt, -np.round(gain, 12)))) + 1.0
    differ = 2 * yes * (1 - yes) * total / (total + 1)
    return pd.DataFrame(
        columns | {"given votes": yes, "most": most, "doubt": doubt, "disagreement": differ, "relabel": rank}, index=index
    )
