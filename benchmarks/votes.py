"""Votes: sampling them, their overdispersion, and the labels that Dawid and Skene's method makes of them."""

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import betaln
from scipy.stats import betabinom

import softlabel as sl
from benchmarks.harness import Contestant, aim, compare
from softlabel.labellers import dawid_skene

OF_MOMENTS = 0.02  # several standard errors of their differences at a million items
OF_MEANS = 0.1  # of log alpha0, over resamples: several standard errors of a mean of 20
OF_PROBABILITIES = 0.01  # the two may stop an iteration apart


def run(all_cores, tiny=False):
    """Rows of the table."""
    n, rounds = (20_000, 1) if tiny else (1_000_000, 5)
    rows = [row for m in (5, 50) for row in sampling(m, 10.0, n, rounds)]
    return rows + overdispersion(*((50, 5) if tiny else (500, 20)), rounds) + annotators(100 if tiny else 5000, rounds)


def sampling(m, alpha0, n, rounds):
    """NumPy's own generators are the floor for a sampler built on them."""
    rng = np.random.default_rng(1)
    tau = rng.uniform(0.05, 0.95, n)
    pairs = np.column_stack([tau, 1 - tau])

    def moments(votes):
        """Mean share of positive votes, and the variance of a number of votes divided by theory's."""
        theory = m * tau * (1 - tau) * sl.variance_inflation(m, alpha0)
        return [votes.mean() / m, np.mean((votes - m * tau) ** 2 / theory)]

    samplers = {
        "softlabel": lambda: sl.sample_votes(pairs, m, alpha0, rng)[:, 0],
        "floor: NumPy's beta and binomial": lambda: rng.binomial(m, rng.beta(alpha0 * tau, alpha0 * (1 - tau))),
        "SciPy, betabinom.rvs": lambda: betabinom.rvs(m, alpha0 * tau, alpha0 * (1 - tau), random_state=rng),
    }
    contestants = {name: Contestant(sample, n, moments) for name, sample in samplers.items()}
    return compare(f"Sampling {m} votes", "item", contestants, rounds, OF_MOMENTS * np.sqrt(1e6 / n))


def overdispersion(resamples, few, rounds):
    """An estimate of alpha0 and its resamples; SciPy makes a few of them. Each draws its own, and means are compared."""
    rng = np.random.default_rng(1)
    tau = rng.beta(1, 1, 1000)
    tau = np.column_stack([tau, 1 - tau])
    counts = sl.sample_votes(tau, rng.integers(1, 101, 1000), 5.0, rng)
    weights = rng.multinomial(1000, np.full(1000, 1 / 1000), size=few)
    (s, f), (t, u) = counts.T, tau.T

    def ours():
        sl.estimate_alpha0(counts, tau)
        return sl.bootstrap_alpha0(counts, tau, resamples, rng=1)

    def by_betaln():
        """Without the binomial coefficients, which do not depend on alpha0, and without checks."""

        def loss(log_alpha0, w):
            a = np.exp(log_alpha0)
            return -np.sum(w * (betaln(s + a * t, f + a * u) - betaln(a * t, a * u)))

        options = {"bounds": np.log([1e-3, 1e6]), "method": "bounded", "options": {"xatol": 1e-6}}
        return np.exp([minimize_scalar(loss, args=(w,), **options).x for w in weights])

    def mean_log(estimates):
        return np.mean(np.log(estimates))

    contestants = {
        "softlabel": Contestant(ours, 1, mean_log),
        "SciPy, betaln": Contestant(by_betaln, few / (1 + resamples), mean_log),
    }
    rows = compare("alpha0 with 500 resamples", "call", contestants, rounds, OF_MEANS)
    aim(rows, "softlabel", "s", at_most=0.1)
    return rows


def annotators(n, rounds):
    """Ten votes of 50 annotators on each of n items; an annotator is right with a probability of their own."""
    rng = np.random.default_rng(1)
    z, item = rng.random(n) < 0.4, np.repeat(np.arange(n), 10)
    annotator = rng.random((n, 50)).argpartition(10)[:, :10].ravel()
    label = (z[item] ^ (rng.random(10 * n) > rng.uniform(0.6, 0.95, 50)[annotator])).astype(int)
    frame = pd.DataFrame({"task": item, "worker": annotator, "label": label})

    def crowd_kit():
        from crowdkit.aggregation import DawidSkene

        return DawidSkene(n_iter=100).fit_predict_proba(frame)[1].sort_index()

    contestants = {
        "softlabel": Contestant(lambda: dawid_skene(item, annotator, label).posterior[:, 1]),
        "crowd-kit": Contestant(crowd_kit, needs="crowdkit"),
    }
    return compare("Dawid-Skene", "call", contestants, rounds, OF_PROBABILITIES)
