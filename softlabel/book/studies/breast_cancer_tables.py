"""The breast cancer tables under several hypotheses about how they were made: means of all cells, and their covariance."""

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

from softlabel.experiments import FITS, fit_as_r, nested_votes, tumours
from softlabel.logistic import fit_logistic
from softlabel.validation import Array

SPLITS, MS, ALPHAS = 250, (5, 10, 20, 50, 100), (1, 10, 100, 1000)
MADE_BY: dict[str, tuple[Callable[[Array, Array], Array], float]] = {  # the fit, and a factor on every alpha0
    "r": (fit_as_r, 1),
    "r_5_steps": (partial(fit_as_r, max_iter=5), 1),
    "r_10_steps": (partial(fit_as_r, max_iter=10), 1),
    "r_100_steps": (partial(fit_as_r, max_iter=100), 1),
    "firth": (FITS["firth"], 1),
    "alpha0_half": (fit_as_r, 0.5),
    "alpha0_more": (fit_as_r, 1.5),
    "alpha0_double": (fit_as_r, 2),
}
CELLS = [dict(made_by=name, seed=seed) for name, seed in product(MADE_BY, range(8))]


def cell(made_by: str, seed: int) -> dict[str, float]:
    """Over splits, means of the test errors, ``mean0`` of true labels and then row by row, and covariances ``cov0_1`` ..."""
    fit, factor = MADE_BY[made_by]
    X, y = tumours()
    labels, tau = np.column_stack([y, 1 - y]), fit_logistic(X, y).posterior(X)
    errors = []
    for child in np.random.SeedSequence(seed).spawn(SPLITS):
        rng = np.random.default_rng(child)
        order = rng.permutation(len(X))
        train, test = order[:50], order[50:]
        counts = [labels[train]]
        for alpha0 in ALPHAS:
            counts += nested_votes(tau[train], np.array(MS), factor * alpha0, rng)
        coef = np.array([fit(X[train], c) for c in counts])
        errors.append(np.mean((coef[:, :1] + coef[:, 1:] @ X[test].T > 0) != y[test], axis=1))
    cov = np.cov(np.transpose(errors))
    means = {f"mean{i}": value for i, value in enumerate(np.mean(errors, axis=0))}
    return means | {f"cov{i}_{j}": cov[i, j] for i, j in zip(*np.triu_indices(len(cov)))}
