"""What the exercises of practice.yml need beyond a formula: speed, large runs and reports."""

from collections.abc import Callable

import numpy as np
from scipy import optimize, special, stats

from softlabel.book.exercises.marking import Names, Unfit, call, floats
from softlabel.book.exercises.quantities import moments, newton, worth  # noqa: F401 -- practice.yml needs them
from softlabel.normal import TwoClassNormal
from softlabel.validation import Array

# Speed


def ex_speed_hand(k: float) -> float:
    return float(optimize.brentq(lambda p: (p + 1) * (p + 2) / 2 - k, 0, 1000))


def ex_speed_code() -> Names:
    X, z = TwoClassNormal.canonical(2).sample(120, np.random.default_rng(3), size=6)

    def search(X: Array, y: Array) -> Array:
        x = np.column_stack([np.ones(len(X)), X])
        return np.asarray(optimize.root(lambda b: x.T @ (special.expit(x @ b) - y), np.zeros(x.shape[1]), tol=1e-12).x)

    def measure(function: object) -> Array:
        b = floats(call(function, X, z))
        if b.shape != (6, 3):
            raise Unfit(f"Your function returns shape {b.shape} for 6 data sets with 2 features; (6, 3) belongs there.")
        return b.ravel()

    def each(fit: Callable[..., Array], X: Array, y: Array, *more: float) -> Array:
        return np.array([fit(a, b, *more) for a, b in zip(X, y)])

    pooled = np.tile(search(X.reshape(-1, 2), z.ravel()), (6, 1))
    right = each(search, X, z).ravel()
    names = [f"coefficient {k} of data set {r}" for r in range(6) for k in range(3)]
    return locals()


def ex_speed_further() -> Names:
    rounds = np.arange(10)
    cov = 0.01 * (1 + np.minimum.outer(rounds, rounds))  # of a random walk
    draws = stats.multivariate_normal(cov=cov, seed=np.random.default_rng(1)).rvs(100_000)
    still = stats.norm.rvs(scale=0.1, size=(100_000, 10), random_state=2)

    def spread(log: Array) -> Array:
        slow = np.exp(log)
        blocks = 2 * np.median(slow[:, 5:], axis=1) / np.median(slow[:, :5], axis=1)
        turns = np.median(2 * slow[:, 1::2] / slow[:, ::2], axis=1)
        return np.array([blocks.std(), turns.std()])

    right = spread(draws)
    return locals()


# Large runs


def ex_large_hand(T: float, o: float, W: float) -> float:
    found = optimize.minimize_scalar(
        lambda log: T / W + o * T * np.exp(-log) + np.exp(log) / 2, bounds=(-5, 10), method="bounded", options={"xatol": 1e-9}
    )
    return float(np.exp(found.x))


def ex_large_code() -> Names:
    # Blocks of 100 sets, and a seed for each block: dealt to the first distance, then to the second.
    def seeds(deltas: int, sets: int) -> set[tuple[int, int]]:
        place = iter(range(1000))
        return {(delta, next(place)) for delta in range(deltas) for _ in range(sets // 100)}

    new = [len(seeds(k, 500) - seeds(k, 200)) for k in (1, 2)]
    return locals()


def ex_large_further() -> Names:
    return {"factor": (np.sqrt(2 / 1000) / 0.01) ** 2}


# Your own votes


def ex_own_hand(alpha0: float, c0: float, c1: float) -> float:
    m = np.arange(1, 1000)  # try all
    return float(m[np.argmax(m / (m + alpha0) / (c0 + c1 * m))])


def ex_own_code() -> Names:
    def pooled(votes: list[int], alpha0: float = 3) -> float:  # the sandwich, item by item
        return float(np.mean(votes)) ** 2 / float(np.mean([k * (k + alpha0) / (1 + alpha0) for k in votes]))

    return locals()


def ex_own_further() -> Names:
    def right(tau: float, alpha0: float) -> float:  # over the probability of the item
        nodes, weights = special.roots_jacobi(40, alpha0 * (1 - tau) - 1, alpha0 * tau - 1)
        p, w = (1 + nodes) / 2, weights / weights.sum()
        differ = 2 * p * (1 - p)
        return float(w @ (2 * p + differ * p) / (w @ (2 + differ)))

    def mixed(tau: float, alpha0: float, third: float) -> float:
        d = 2 * tau * (1 - tau) * alpha0 / (1 + alpha0)
        return (2 * tau + d * third) / (2 + d)

    return locals()


# Reading a report


def ex_reading_hand() -> Names:
    def right(m: Array, s: Array, k: int) -> float:  # over all ways in which he may have voted
        counts = np.ones(1)
        for q in s / m:
            counts = np.convolve(counts, [1 - q, q])
        mean, variance = moments(counts)
        return float((k - mean) / np.sqrt(variance))

    def share(m: Array, s: Array) -> float:
        return float(s.sum() / m.sum())

    return locals()


def ex_reading_code(tau: float, m: int) -> float:
    p = np.r_[0.5, np.full(m - 1, tau)]  # votes counted, annotator by annotator
    return float(np.log(p.sum()) - np.log((1 - p).sum()))


def ex_reading_further() -> Names:
    def right(tau: float, b: float) -> float:
        said = special.expit(special.logit(tau) + b)

        def power(n: float) -> float:
            reach = stats.norm.isf(0.025) * np.sqrt(said * (1 - said) / n)
            mean = stats.norm(tau, np.sqrt(tau * (1 - tau) / n))
            return float(mean.sf(said + reach) + mean.cdf(said - reach) - 0.8)

        return float(optimize.brentq(power, 5, 1e5))

    def simple(tau: float, b: float, u: float = 1.959964, v: float = 0.841621) -> float:
        said = special.expit(special.logit(tau) + b)
        return float((u * np.sqrt(said * (1 - said)) + v * np.sqrt(tau * (1 - tau))) / (said - tau)) ** 2

    return locals()
