"""What rules from the truth and from five votes err beyond the best one, on the way to the limit: blocks of 5,000 sets."""

from itertools import product

import numpy as np

from softlabel.experiments import excess_errors
from softlabel.normal import TwoClassNormal

SIZES = [*product((60, 100, 180, 300), (1, 4)), *product((500,), (1, 2, 3, 4))]
CELLS = [dict(n=n, delta=delta, seed=seed) for seed, ((n, delta), _) in enumerate(product(SIZES, range(20)))]


def cell(n: int, delta: int, seed: int) -> dict[str, float]:
    """Mean excess error of the rules from the truth, and from votes."""
    pair, rng = TwoClassNormal.canonical(delta), np.random.default_rng(seed)
    truth, votes, _ = excess_errors(pair, 5000, n, np.array([5]), np.array([10.0]), rng)
    return {"truth": truth.mean(), "votes": votes.mean()}
