"""Estimating alpha0: once from a million items, and ten thousand times on resamples of a thousand."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betaln
from scipy.stats import betabinom

import softlabel as sl
from benchmarks.harness import Contestant, compare

TOLERANCE = 1e-5  # of an estimate, relative
OF_MEANS = 0.1  # of log alpha0, over resamples: several standard errors of a mean of 20


def make(n):
    """Votes of 1 to 100 labellers on each of n items."""
    rng = np.random.default_rng(1)
    tau = rng.beta(1, 1, n)
    tau = np.column_stack([tau, 1 - tau])
    return sl.sample_votes(tau, rng.integers(1, 101, n), 5.0, rng), tau


def best_alpha0(log_likelihood):
    """Where a function of alpha0 is largest, between 1e-3 and 1e6."""
    options = {"bounds": np.log([1e-3, 1e6]), "method": "bounded", "options": {"xatol": 1e-6}}
    return np.exp(minimize_scalar(lambda log_alpha0: -log_likelihood(np.exp(log_alpha0)), **options).x)


def by_betabinom(counts, tau, weights=1.0):
    m = counts.sum(axis=1)
    return best_alpha0(
        lambda alpha0: np.sum(weights * betabinom.logpmf(counts[:, 0], m, alpha0 * tau[:, 0], alpha0 * tau[:, 1]))
    )


def by_betaln(counts, tau, weights=1.0):
    """The same without the binomial coefficients, which do not depend on alpha0, and without checks."""
    (s, f), (t, u) = counts.T, tau.T
    return best_alpha0(
        lambda a: np.sum(weights * (betaln(s + a * t, f + a * u) - betaln(a * t, a * u)))
    )


def run(all_cores, tiny=False):
    """Rows of the table."""
    rounds = 1 if tiny else 3
    n, resamples, few = (2000, 50, 5) if tiny else (1_000_000, 10_000, 20)
    counts, tau = make(n)
    once = {
        "softlabel": Contestant(lambda: sl.estimate_alpha0(counts, tau).alpha0),
        "SciPy, betabinom.logpmf": Contestant(lambda: by_betabinom(counts, tau)),
        "SciPy, betaln": Contestant(lambda: by_betaln(counts, tau)),
    }
    sl.estimate_alpha0(counts[:100], tau[:100])  # loads and compiles
    rows = compare("One estimate", "estimate", once, rounds, TOLERANCE, warm_up=False)

    items, tau_of_items = make(1000)
    # Each contestant draws its own resamples, and means are compared.
    weights = np.random.default_rng(1).multinomial(1000, np.full(1000, 1 / 1000), size=few)
    boot = {
        "softlabel": Contestant(lambda: sl.bootstrap_alpha0(items, tau_of_items, resamples, rng=1), resamples, mean_log),
        "SciPy, betabinom.logpmf": Contestant(
            lambda: [by_betabinom(items, tau_of_items, w) for w in weights], few, mean_log
        ),
        "SciPy, betaln": Contestant(lambda: [by_betaln(items, tau_of_items, w) for w in weights], few, mean_log),
    }
    rows += compare("Bootstrap", "resample", boot, rounds, OF_MEANS)
    return [{**row, "n": n, "resamples": resamples} for row in rows]


def mean_log(estimates):
    return np.mean(np.log(estimates))
