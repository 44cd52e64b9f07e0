"""What real votes are worth: error rates of rules from n items with m votes each, beside true labels of the same items.

Beside each data set its control: votes and true labels simulated on the same features, by the rule fitted to all true labels.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from softlabel.belief import signed_roots
from softlabel.book.real_votes import (
    LOADERS,
    Source,
    coefficients,
    labels_of,
    learn,
    limit_errors,
    load,
    samples,
    truths_of,
    varied,
    votes_of,
)
from softlabel.logistic import fit_logistic
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

    ``predicted`` is ``re`` by the theory, from the fits to all votes and all true labels. ``direction`` has the truths' rules
    for the numerator, ``variance`` rules from one label each that obeys the votes' rule.
    """
    source = load(name)
    rng = np.random.default_rng([*name.encode(), simulated, n, m, annotators])

    def draw(replace: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if annotators:
            return of_whole_annotators(source, n, m, n_sets, replace, rng)
        if replace:
            rows = rng.integers(len(source.counts), size=(n_sets, n))
            rows = rows[varied(source, rows)]
        else:
            rows = samples(source, n, n_sets, len(source.counts), rng)
        return rows, votes_of(source, rows, m, simulated, rng)

    rows, votes = draw(replace=False)
    of_votes = learn(source, rows, votes, simulated)
    of_truths = learn(source, rows, truths_of(source, rows, simulated, rng), simulated)
    best = limit_errors(name, of_votes=False, simulated=simulated)
    re, re_se = ratio(of_truths.by_set - best.mean(), of_votes.by_set - best.mean())
    _, re_se_items = ratio(of_truths.by_item - best, of_votes.by_item - best)  # had there been other items to try them on

    # With replacement, items in hand scatter as new ones would.
    rows, votes = draw(replace=True)
    own = labels_of((source.posterior if simulated else source.votes_posterior)[rows], rng)
    by_votes, by_truths, by_own = (
        spread(source, coefficients(source, rows, target)[0])
        for target in (votes, truths_of(source, rows, simulated, rng), own)
    )
    direction, direction_se = ratio(by_truths, by_votes)
    variance, variance_se = ratio(by_own, by_votes)
    return {
        "alpha0": source.alpha0,
        "truths_error": of_truths.by_set.mean(),
        "votes_error": of_votes.by_set.mean(),
        "re": re,
        "re_se": re_se,
        "re_se_items": 0.0 if simulated else re_se_items,
        "predicted": predict(source, simulated, n, m),
        "direction": direction,
        "direction_se": direction_se,
        "variance": variance,
        "variance_se": variance_se,
        "unfitted": 1 - of_truths.converged.mean(),
    }


def predict(source: Source, simulated: bool, n: int, m: int) -> float:
    """Ratio of the expected excess errors of nearly normal rules, by the likelihood ratio instead of Wald's."""
    truth = fit_logistic(source.X, source.y).coef
    x = np.insert(source.X, 0, 1, axis=1)
    x = x[np.argsort(x @ truth)]
    points, references = (x[np.linspace(0, len(x) - 1, k).astype(int)] for k in (1200, 600))
    tau = expit(points @ truth)

    def excess(roots: Array) -> float:
        positive = ndtr(np.sqrt(n - source.X.shape[1]) * roots)
        return float((tau * (1 - positive) + (1 - tau) * positive - np.minimum(tau, 1 - tau)).mean())

    of_truth = signed_roots(points, references, truth)[0]
    if simulated:
        inflation = (m + source.alpha0) / (m * (1 + source.alpha0))
        return excess(of_truth) / excess(of_truth / np.sqrt(inflation))
    votes = fit_logistic(source.X[: len(source.counts)], source.counts).coef
    roots, form = signed_roots(points, references, votes)
    cov = sandwich(source, votes, m)
    return excess(of_truth) / excess(roots * np.sqrt(form / np.sum(points @ cov * points, axis=1)))


def sandwich(source: Source, coef: Array, m: int) -> Array:
    """Covariance (p + 1, p + 1) of the coefficients from m votes on one item: parts between items, and within them."""
    x = np.insert(source.X[: len(source.counts)], 0, 1, axis=1)
    votes, tau = source.counts.sum(axis=1), expit(x @ coef)
    share = source.counts[:, 0] / votes
    within = share * (1 - share) / (1 - 1 / votes)  # unbiased for the P (1 - P) of an item
    between = (share - tau) ** 2 - within / votes
    bread = np.linalg.inv((x.T * (tau * (1 - tau))) @ x / len(x))
    cov: Array = bread @ ((x.T * (between + within / m)) @ x / len(x)) @ bread
    return cov


def ratio(a: Array, b: Array) -> tuple[float, float]:
    """Ratio of the means of pairs, and its standard error."""
    value = a.mean() / b.mean()
    return float(value), float((a - value * b).std() / b.mean() / np.sqrt(len(a)))


def spread(source: Source, coef: Array) -> Array:
    """Squared distance (R,) of each linear predictor from their mean, all scaled to unit variance over the items."""
    root = np.linalg.cholesky(np.cov(source.X.T, bias=True).reshape(source.X.shape[1], -1))
    centred = np.column_stack([coef[:, 0], coef[:, 1:] @ root])
    centred /= np.linalg.norm(centred[:, 1:], axis=1, keepdims=True)
    squared: Array = ((centred - centred.mean(axis=0)) ** 2).sum(axis=1)
    return squared


def of_whole_annotators(
    source: Source, n: int, m: int, n_sets: int, replace: bool, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows (n_sets, n) of whole groups of items, and all votes on them of m of the group's annotators."""
    annotator: Any = source.annotator
    item: Any = source.item
    table: Any = np.full((annotator.max() + 1, item.max() + 1), -1)
    table[annotator, item] = source.label
    _, group = np.unique(table >= 0, axis=0, return_inverse=True)
    members = [np.flatnonzero(group == g) for g in range(group.max() + 1)]
    items = [np.flatnonzero(table[who[0]] >= 0) for who in members]
    rows: list[NDArray[np.int64]] = []
    votes: list[NDArray[np.int64]] = []
    while len(rows) < n_sets:
        chosen = rng.choice(len(members), n // len(items[0]), replace)
        row = np.concatenate([items[g] for g in chosen])
        if varied(source, row):
            positive = np.concatenate([table[rng.choice(members[g], m, replace)][:, items[g]].sum(axis=0) for g in chosen])
            rows.append(row)
            votes.append(np.stack([positive, m - positive], axis=-1))
    return np.array(rows), np.array(votes)
