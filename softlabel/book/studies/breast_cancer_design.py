"""The design of the breast cancer study taken apart: fixed labels, apparent error and finite population, in blocks of runs."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from softlabel.experiments import fit_as_r, nested_votes, tumours
from softlabel.logistic import fit_logistic
from softlabel.validation import Array

RUNS = 125
NAMES = ("truth", "votes", "truth_exact", "votes_exact", "drawn_exact", "truth_iid", "votes_iid")
CELLS = [
    dict(n=n, m=m, alpha0=alpha0, seed=seed)
    for n, (m, alpha0), seed in product((50, 100, 200, 400), ((5, 1), (5, 1000), (100, 1000)), range(20))
]


def cell(n: int, m: int, alpha0: int, seed: int) -> dict[str, float]:
    """Means over runs: test errors on the real labels, and excess error rates when the full fit is the truth.

    ``truth`` and ``votes`` are the test errors of the paper's design. The others are excess error rates, exact given the rule:
    ``*_exact`` of the same two rules, on the test items; ``drawn_exact`` of the rule from labels that are drawn from the
    posterior, as the votes are; ``*_iid`` of rules trained on items that are drawn with replacement, on all items.
    """
    X, y = tumours()
    tau = fit_logistic(X, y).posterior(X)

    def positive(items: NDArray[np.int64], counts: Array) -> NDArray[np.bool_]:
        """Where the rule from these items is on the positive side."""
        coef = fit_as_r(X[items], counts)
        return np.asarray(coef[0] + X @ coef[1:] > 0)

    def drawn(items: NDArray[np.int64], votes: int, alpha: float) -> Array:
        return nested_votes(tau[items], np.array([votes]), alpha, rng)[0]

    best, loss = tau[:, 0] > 0.5, abs(tau[:, 0] - tau[:, 1])  # what a wrong side costs, beyond the Bayes error
    total = dict.fromkeys(NAMES, 0.0)
    for child in np.random.SeedSequence([n, m, alpha0, seed]).spawn(RUNS):
        rng = np.random.default_rng(child)
        order, again = rng.permutation(len(X)), rng.integers(len(X), size=n)
        train, test = order[:n], order[n:]
        truth = positive(train, np.column_stack([y, 1 - y])[train])
        votes = positive(train, drawn(train, m, alpha0))
        drawn_truth = positive(train, drawn(train, 1, np.inf))
        lost = [loss * (rule != best) for rule in (truth, votes, drawn_truth)]
        again_truth, again_votes = positive(again, drawn(again, 1, np.inf)), positive(again, drawn(again, m, alpha0))
        values = [np.mean((rule != y)[test]) for rule in (truth, votes)]
        values += [np.mean(part[test]) for part in lost]
        values += [np.mean(loss * (rule != best)) for rule in (again_truth, again_votes)]
        for name, value in zip(NAMES, values, strict=True):
            total[name] += float(value) / RUNS
    return total
