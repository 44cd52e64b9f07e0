"""Other ways to make labels of votes, compared by the rules that are trained on them."""

import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd

from softlabel.validation import Array, ConvergenceWarning, SeparationWarning
from softlabel.logistic import fit_logistic

FOLDS = 5
MOST_ITEMS = 2000  # GLAD takes a millisecond an item


def has_crowd_kit() -> bool:
    return find_spec("crowdkit") is not None


def aggregate(item: np.ndarray, annotator: np.ndarray, positive: np.ndarray, n: int) -> dict[str, Array]:
    """Probability of the positive class that each method gives each of n items, all with votes."""
    m, s = np.bincount(item, minlength=n), np.bincount(item[positive], minlength=n)
    labels = {"majority vote": np.where(2 * s == m, 0.5, 2 * s > m)}
    if has_crowd_kit():
        frame = pd.DataFrame({"task": item, "worker": annotator, "label": positive.astype(int)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its libraries
            from crowdkit.aggregation import GLAD, DawidSkene  # optional, and slow to import

            for name, method in (("Dawid-Skene", DawidSkene(n_iter=100)), ("GLAD", GLAD(n_iter=100))):
                table = method.fit_predict_proba(frame)
                labels[name] = table.reindex(index=range(n), columns=[0, 1]).fillna(0)[1].to_numpy(float)
    return labels


def compare(
    X: pd.DataFrame, y: Array, item: np.ndarray, annotator: np.ndarray, positive: np.ndarray, rng: np.random.Generator
) -> pd.DataFrame:
    """Log-loss and accuracy, on items held out, of logistic rules trained on pooled votes, on made labels and on the truth.

    The labels are made once, of the votes on all items: no method sees a true label or a feature, so nothing leaks but what
    the votes on an item that is held out say about its annotators.
    """
    counts = np.column_stack([np.bincount(item[positive], minlength=len(y)), np.bincount(item[~positive], minlength=len(y))])
    made = aggregate(item, annotator, positive, len(y))
    # A fit does not change when all counts are multiplied, so probabilities become counts of a million votes.
    trained = {"pooled votes": counts, **{k: np.rint(1e6 * np.column_stack([p, 1 - p])) for k, p in made.items()}}
    trained["true labels"] = np.column_stack([y, 1 - y])
    fold = rng.permutation(len(y)) % FOLDS
    loss, separated = {}, dict.fromkeys(trained, 0)
    for name, response in trained.items():
        eta = np.empty(len(y))
        for k in range(FOLDS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SeparationWarning)
                warnings.simplefilter("ignore", ConvergenceWarning)
                fit = fit_logistic(X[fold != k], response[fold != k])
            separated[name] += fit.separation != "none"
            eta[fold == k] = fit.coef[0] + X[fold == k].to_numpy() @ fit.coef[1:]
        loss[name] = np.logaddexp(0, np.where(y == 1, -eta, eta)), (eta > 0) == (y == 1)
    base = loss["pooled votes"][0]
    rows = {
        name: {
            "log-loss": values.mean(),
            "more than pooled": (values - base).mean(),
            "standard error": (values - base).std(ddof=1) / np.sqrt(len(y)),
            "accuracy": right.mean(),
            "labels right": np.where(made[name] == 0.5, 0.5, (made[name] > 0.5) == (y == 1)).mean()
            if name in made
            else np.nan,
            "separated folds": separated[name],
        }
        for name, (values, right) in loss.items()
    }
    return pd.DataFrame(rows).T.rename_axis("trained on")
