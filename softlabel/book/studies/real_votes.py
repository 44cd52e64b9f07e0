"""What real votes are worth: error rates of rules from n items with m votes each, beside true labels of the same items.

Beside each data set its control: votes and true labels simulated on the same features, by the rule fitted to all true labels.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softlabel.book.real_votes import (
    LOADERS,
    Rules,
    Source,
    labels_of,
    learn,
    limit_errors,
    load,
    samples,
    truths_of,
    votes_of,
)
from softlabel.validation import Array

SETS = 2000
MS = dict(zip(LOADERS, ((1, 2, 3, 5, 10, 20), (1, 2, 5, 10, 30), (1, 2, 3, 6), (1, 2, 3, 6)), strict=True))
CELLS = [
    dict(name=name, simulated=simulated, n=n, m=m, annotators=False)
    for name in LOADERS
    for simulated in (False, True)
    for n in (50, 100, 400)
    for m in MS[name]
]
# In the first data set, each annotator voted on the same fifty items as nineteen others: they can be drawn whole.
CELLS += [dict(name="recidivism", simulated=False, n=100, m=m, annotators=True) for m in MS["recidivism"]]


def cell(name: str, simulated: bool, n: int, m: int, annotators: bool, n_sets: int = SETS) -> dict[str, float]:
    """Error rates of rules from true labels and votes; and ratios: of their excesses (``re``), and of the rules' variances.

    ``direction`` has the truths' rules for the numerator, ``variance`` rules from one label each that obeys the votes' rule.
    """
    source = load(name)
    rng = np.random.default_rng([*name.encode(), simulated, n, m, annotators])
    if annotators:
        rows, votes = of_whole_annotators(source, n, m, n_sets, rng)
    else:
        rows = samples(source, n, n_sets, len(source.counts), rng)
        votes = votes_of(source, rows, m, simulated, rng)
    of_votes = learn(source, rows, votes, simulated)
    of_truths = learn(source, rows, truths_of(source, rows, simulated, rng), simulated)
    best = limit_errors(name, of_votes=False, simulated=simulated)
    re, re_se = ratio(of_truths.by_set - best.mean(), of_votes.by_set - best.mean())
    _, re_se_items = ratio(of_truths.by_item - best, of_votes.by_item - best)  # had there been other items to try them on
    own = learn(source, rows, labels_of((source.posterior if simulated else source.votes_posterior)[rows], rng), simulated)
    direction, direction_se = ratio(spread(source, of_truths), spread(source, of_votes))
    variance, variance_se = ratio(spread(source, own), spread(source, of_votes))
    return {
        "alpha0": source.alpha0,
        "truths_error": of_truths.by_set.mean(),
        "votes_error": of_votes.by_set.mean(),
        "re": re,
        "re_se": re_se,
        "re_se_items": 0.0 if simulated else re_se_items,
        "direction": direction,
        "direction_se": direction_se,
        "variance": variance,
        "variance_se": variance_se,
        "unfitted": 1 - of_truths.converged.mean(),
    }


def ratio(a: Array, b: Array) -> tuple[float, float]:
    """Ratio of the means of pairs, and its standard error."""
    value = a.mean() / b.mean()
    return float(value), float((a - value * b).std() / b.mean() / np.sqrt(len(a)))


def spread(source: Source, rules: Rules) -> Array:
    """Squared distance (R,) of each linear predictor from their mean, all scaled to unit variance over the items."""
    root = np.linalg.cholesky(np.cov(source.X.T, bias=True).reshape(source.X.shape[1], -1))
    centred = np.column_stack([rules.coef[:, 0], rules.coef[:, 1:] @ root])
    centred /= np.linalg.norm(centred[:, 1:], axis=1, keepdims=True)
    squared: Array = ((centred - centred.mean(axis=0)) ** 2).sum(axis=1)
    return squared


def of_whole_annotators(
    source: Source, n: int, m: int, n_sets: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows (n_sets, n) of whole groups of items, and all votes on them of m of the group's annotators."""
    annotator, item, label = source.annotator, source.item, source.label
    table: Any = np.full((annotator.max() + 1, item.max() + 1), -1)
    table[annotator, item] = label
    _, group = np.unique(table >= 0, axis=0, return_inverse=True)
    members = [np.flatnonzero(group == g) for g in range(group.max() + 1)]
    items = [np.flatnonzero(table[who[0]] >= 0) for who in members]
    rows, votes = [], []
    while len(rows) < n_sets:
        chosen = rng.permutation(len(members))[: n // len(items[0])]
        row = np.concatenate([items[g] for g in chosen])
        if (np.ptp(source.X[row], axis=0) > 0).all():
            positive = np.concatenate([table[rng.permutation(members[g])[:m]][:, items[g]].sum(axis=0) for g in chosen])
            rows.append(row)
            votes.append(np.stack([positive, m - positive], axis=-1))
    return np.array(rows), np.array(votes)
