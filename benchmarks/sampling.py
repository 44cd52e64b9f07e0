"""Sampling votes, against NumPy's own generators, below which no sampler built on them can go."""

import numpy as np
from scipy.stats import betabinom

import softlabel as sl
from benchmarks.harness import Contestant, compare

TOLERANCE = 0.02  # of the two moments below: several standard errors of their differences at the full size


def run(all_cores, tiny=False):
    """Rows of the table."""
    n, rounds = (20_000, 1) if tiny else (1_000_000, 5)
    tau = np.random.default_rng(1).uniform(0.05, 0.95, n)
    pairs = np.column_stack([tau, 1 - tau])
    rng = np.random.default_rng(2)

    def moments(votes, m):
        """Mean share of positive votes, and the variance of a vote count divided by the multinomial's and by theory."""
        residual = votes - m * tau
        return [votes.mean() / m, np.mean(residual**2 / (m * tau * (1 - tau)))]

    rows = []
    for m, alpha0 in [(5, 10.0), (50, 10.0), (50, np.inf)]:
        inflation = sl.variance_inflation(m, alpha0)

        def pick(votes, m=m, inflation=inflation):
            mean, ratio = moments(votes, m)
            return [mean, ratio / inflation]

        def ours(m=m, alpha0=alpha0):
            return sl.sample_votes(pairs, m, alpha0, rng)[:, 0]

        def numpy(m=m, alpha0=alpha0):
            p = tau if np.isinf(alpha0) else rng.beta(alpha0 * tau, alpha0 * (1 - tau))
            return rng.binomial(m, p)

        def scipy(m=m, alpha0=alpha0):
            return betabinom.rvs(m, alpha0 * tau, alpha0 * (1 - tau), random_state=rng)

        samplers = {"softlabel": Contestant(ours, n, pick), "floor: NumPy's beta and binomial": Contestant(numpy, n, pick)}
        if np.isfinite(alpha0):
            samplers["SciPy, betabinom.rvs"] = Contestant(scipy, n, pick)
        size = "" if np.isfinite(alpha0) else ", alpha0 = inf"
        tolerance = TOLERANCE * np.sqrt(1_000_000 / n)
        rows += compare(f"votes, m = {m}{size}", "item", samplers, rounds, tolerance)
    return rows
