"""Labels that crowd-kit and cleanlab make of votes, and what a rule learns from them, beside the votes themselves.

Run as ``python -m benchmarks.consensus``; it needs the votes on recidivism. No method sees a true label but the last, which
is given those of 200 items. A rule is the same logistic regression on each method's probabilities, and is judged on the true
labels of items held out, in five folds.
"""

import sys

import numpy as np
import pandas as pd
from scipy.special import xlogy
from sklearn.model_selection import KFold
from tabulate import tabulate

import softlabel as sl
from benchmarks.harness import installed
from softlabel.classifier import SoftLabelClassifier

N_TRUTHS = 200


def held_out(X, y, folds, truth=None):
    """Probabilities of no and yes by rules that were trained on the other folds; ``cross_val_predict`` would recode y."""
    p = np.empty((len(X), 2))
    for train, test in folds.split(X):
        known = None if truth is None else truth[train]
        p[test] = SoftLabelClassifier().fit(X.iloc[train], y.iloc[train], truth=known).predict_proba(X.iloc[test])
    return p


def made_labels(X, votes, folds):
    """Probabilities of the labels no and yes of each item, by each method that is installed."""
    counts = pd.crosstab(votes["item"], votes["label"])
    made = {"softlabel: the votes": counts}
    if installed("crowdkit"):
        from crowdkit.aggregation import GLAD, DawidSkene, MajorityVote

        table = votes.rename(columns={"item": "task", "annotator": "worker"})
        for method in (MajorityVote(), DawidSkene(n_iter=100), GLAD(n_iter=100)):
            made[f"crowd-kit: {type(method).__name__}"] = method.fit_predict_proba(table)[counts.columns].loc[counts.index]
    if installed("cleanlab"):
        from cleanlab.multiannotator import get_label_quality_multiannotator

        codes = (votes["label"] == "yes").astype(float)
        wide = votes.assign(label=codes).pivot(index="item", columns="annotator", values="label")
        predicted = held_out(X, counts, folds)
        found = get_label_quality_multiannotator(wide, predicted, verbose=False)["label_quality"]
        sure, label = found["consensus_quality_score"], found["consensus_label"]
        yes = np.where(label == 1, sure, 1 - sure)
        made["cleanlab: CROWDLAB"] = pd.DataFrame({"no": 1 - yes, "yes": yes}, index=counts.index)
    return made


def compare(X, y, votes, rng):
    """Share of right labels, and error rate and log loss of the rules on items held out; one row a method."""
    folds = KFold(5, shuffle=True, random_state=0)
    rows = {}
    truth = np.where(rng.permutation(len(y)) < N_TRUTHS, np.where(y == 1, "yes", "no"), None)
    made = made_labels(X, votes, folds)
    counts = made["softlabel: the votes"]
    for name, label, params in [
        *((name, label, {}) for name, label in made.items()),
        (f"softlabel: the votes, and {N_TRUTHS} true labels", counts, {"truth": truth}),
    ]:
        p = held_out(X, label, folds, **params)[:, 1]
        right = np.where(label["yes"] == label["no"], 0.5, (label["yes"] > label["no"]) == (y == 1))
        rows[name] = {
            "labels right": right.mean() if not params else np.nan,
            "error of the rule": ((p > 0.5) != (y == 1)).mean(),
            "log loss of the rule": -(xlogy(y, p) + xlogy(1 - y, 1 - p)).mean(),
        }
    return pd.DataFrame(rows).T


def main():
    missing = [name for name in ("crowdkit", "cleanlab") if not installed(name)]
    if missing:
        print(f"left out, because not installed: {', '.join(missing)}", file=sys.stderr)
    data, rng = sl.load_recidivism(), np.random.default_rng(0)
    order = rng.permutation(len(data.votes))
    few = data.votes.iloc[order].groupby("item").head(3)
    for title, votes in [("three votes an item", few), ("all votes, about 20 an item", data.votes)]:
        print(f"\n{title}\n")
        print(tabulate(compare(data.X, data.y.to_numpy(), votes, rng), headers="keys", floatfmt=".3f"))


if __name__ == "__main__":
    main()
