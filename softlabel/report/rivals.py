"""Other ways to make labels of votes, compared by the rules that are trained on them."""

import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softlabel.labellers import dawid_skene
from softlabel.patient import fit_patiently
from softlabel.two_way import Who
from softlabel.validation import Array

FOLDS = 5
MOST_ITEMS = 2000  # GLAD takes a millisecond an item


def has_crowd_kit() -> bool:
    """Is there GLAD?"""
    return find_spec("crowdkit") is not None


def glad(who: Who, n: int) -> Array:
    """Probability of the positive class of each of n items by GLAD (Whitehill et al. 2009)."""
    with warnings.catch_warnings(action="ignore"):  # of its libraries
        from crowdkit.aggregation import GLAD  # optional, and slow to import

        votes = pd.DataFrame({"task": who.item, "worker": who.annotator, "label": who.positive.astype(int)})
        table = GLAD(n_iter=100).fit_predict_proba(votes)
    return np.asarray(table.reindex(index=range(n), columns=[0, 1]).fillna(0)[1], float)


def aggregate(who: Who, counts: Array) -> dict[str, Array]:
    """Probability of the positive class that each method gives each item, all with votes."""
    yes, no = counts.T
    labels = {
        "majority vote": np.where(yes == no, 0.5, yes > no),
        "Dawid-Skene": dawid_skene(who.item, pd.factorize(who.annotator)[0], (~who.positive).astype(int)).posterior[:, 0],
    }
    return labels | {"GLAD": glad(who, len(counts))} if has_crowd_kit() else labels


def held_out(X: pd.DataFrame, response: Array, fold: NDArray[np.intp]) -> tuple[Array, int]:
    """Log-odds of each item by a rule trained on the other folds; in how many folds the labels were separated."""
    eta, separated = np.empty(len(X)), 0
    for k in range(FOLDS):
        fit = fit_patiently(X[fold != k], response[fold != k])
        separated += fit.separation != "none"
        eta[fold == k] = fit.coef[0] + X[fold == k].to_numpy() @ fit.coef[1:]
    return eta, separated


def compare(X: pd.DataFrame, y: Array, who: Who, rng: np.random.Generator) -> pd.DataFrame:
    """Log-loss and accuracy, on items held out, of logistic rules trained on pooled votes, on made labels and on the truth.

    The labels are made once, of the votes on all items: no method sees a true label or a feature, so nothing leaks but what
    the votes on an item that is held out say about its annotators.
    """
    counts = np.column_stack([np.bincount(who.item[voted], minlength=len(y)) for voted in (who.positive, ~who.positive)])
    made = aggregate(who, counts.astype(float))
    # A fit does not change when all counts are multiplied, so probabilities become counts of a million votes.
    trained = {"pooled votes": counts, **{name: np.rint(1e6 * np.column_stack([p, 1 - p])) for name, p in made.items()}}
    trained["true labels"] = np.column_stack([y, 1 - y])
    fold = rng.permutation(len(y)) % FOLDS
    rows, base = {}, np.empty(0)
    for name, response in trained.items():
        eta, separated = held_out(X, response, fold)
        loss = np.logaddexp(0, np.where(y == 1, -eta, eta))
        base = loss if name == "pooled votes" else base
        rows[name] = {
            "log-loss": loss.mean(),
            "more than pooled": (loss - base).mean(),
            "standard error": (loss - base).std(ddof=1) / np.sqrt(len(y)),
            "accuracy": ((eta > 0) == (y == 1)).mean(),
            "labels right": share_right(made[name], y) if name in made else np.nan,
            "separated folds": separated,
        }
    return pd.DataFrame(rows).T.rename_axis("trained on")


def share_right(p: Array, y: Array) -> float:
    """Share of labels that are true; a tie is half right."""
    return float(np.where(p == 0.5, 0.5, (p > 0.5) == (y == 1)).mean())
