"""What the exercises of practice.yml need beyond a formula: own votes and reports."""

import numpy as np
from scipy import optimize, special, stats

from softlabel.book.exercises.quantities import moments, votes_pmf, worth  # noqa: F401 -- practice.yml needs them
from softlabel.validation import Array

# Your own votes


def ex_own_hand(share: float) -> float:
    if share <= 1 / 2:
        return float(np.inf)
    found = optimize.brentq(lambda log: votes_pmf(2, 0.5, np.exp(log))[[0, 2]].sum() - share, -30, 30)
    return float(np.exp(found))


def pooled(votes: list[int], alpha0: float = 3) -> float:  # the sandwich, item by item
    return float(np.mean(votes)) ** 2 / float(np.mean([k * (k + alpha0) / (1 + alpha0) for k in votes]))


def ex_own_further(tau: float, alpha0: float) -> float:
    p = votes_pmf(2, tau, alpha0)
    return float(p[2] / (p[0] + p[2]))


# Reading a report


def share(m: Array, s: Array) -> float:
    return float(s.sum() / m.sum())


def ex_reading_hand(m: Array, s: Array, k: int) -> float:  # over all ways in which he may have voted
    counts = np.ones(1)
    for q in s / m:
        counts = np.convolve(counts, [1 - q, q])
    mean, variance = moments(counts)
    return float((k - mean) / np.sqrt(variance))


def ex_reading_code(tau: float, m: int) -> float:
    p = np.r_[0.5, np.full(m - 1, tau)]  # votes counted, annotator by annotator
    return float(np.log(p.sum()) - np.log((1 - p).sum()))


def simple(tau: float, b: float, u: float = 1.959964, v: float = 0.841621) -> float:
    said = special.expit(special.logit(tau) + b)
    return float((u * np.sqrt(said * (1 - said)) + v * np.sqrt(tau * (1 - tau))) / (said - tau)) ** 2


def ex_reading_further(tau: float, b: float) -> float:
    said = special.expit(special.logit(tau) + b)

    def power(n: float) -> float:
        reach = stats.norm.isf(0.025) * np.sqrt(said * (1 - said) / n)
        mean = stats.norm(tau, np.sqrt(tau * (1 - tau) / n))
        return float(mean.sf(said + reach) + mean.cdf(said - reach) - 0.8)

    return float(optimize.brentq(power, 5, 1e5))
