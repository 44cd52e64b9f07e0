"""How often the report's interval for alpha0 = 5 holds it: a thousand tables of five votes for each number of items."""

from itertools import product

import numpy as np
from scipy.special import expit

from softlabel.logistic import fit_logistic
from softlabel.overdispersion import alpha0_interval, estimate_alpha0
from softlabel.vote_models import sample_probabilities

CELLS = [dict(n=n, seed=seed) for n, seed in product((30, 90, 300), range(1000))]


def cell(n: int, seed: int) -> dict[str, float]:
    """Ends of the interval, and the estimate."""
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 3))
    p = expit(X @ [1.0, -1.0, 0.5])
    p = sample_probabilities(np.column_stack([p, 1 - p]), 5.0, rng)[:, :1]
    k = (rng.random((n, 5)) < p).sum(axis=1)
    counts = np.column_stack([k, 5 - k])
    tau = fit_logistic(X, counts).posterior(X)
    low, high = alpha0_interval(counts, tau, n_resamples=200, rng=seed)
    return {"low": low, "high": high, "estimate": estimate_alpha0(counts, tau).alpha0}
