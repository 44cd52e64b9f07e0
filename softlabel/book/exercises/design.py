"""What the exercises of design.yml need beyond a formula: planning, correlated errors, small samples, budgets."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

from softlabel.book.exercises.marking import Names
from softlabel.book.exercises.quantities import mean_over_items, weight, worth
from softlabel.validation import Array

# How many labellers, how many items?


def per_unit(m: float, c0: float, c1: float, alpha0: float) -> float:
    """True labels that a unit of money is worth."""
    return float(worth(m, alpha0)) / (c0 + c1 * m)


def best_votes(c0: float, c1: float, alpha0: float) -> float:
    found = optimize.minimize_scalar(
        lambda t: -np.log(per_unit(np.exp(t), c0, c1, alpha0)), bounds=(0, 20), method="bounded", options={"xatol": 1e-10}
    )
    return float(np.exp(found.x))


def ex_budget_hand() -> Names:
    m = best_votes(0.5, 1, 8)
    unit = per_unit(m, 0.5, 1, 8)
    return locals()


def root(budget: float, c0: float, c1: float, alpha0: float, whole: Callable[[float], float] = float) -> float:
    return max(1, whole(min(np.sqrt(alpha0 * c0 / c1), (budget - c0) / c1)))


def rounded(budget: float, c0: float, c1: float, alpha0: float, whole: Callable[[float], float]) -> tuple[float, float]:
    m = root(budget, c0, c1, alpha0, whole)
    return budget // (c0 + c1 * m), m


@cache
def ex_budget_code(budget: float, c0: float, c1: float, alpha0: float) -> Array:
    plans = [(n, m) for n in range(1, 400) for m in range(1, 400) if n * (c0 + c1 * m) <= budget]
    value = {(n, m): n * float(worth(m, alpha0)) for n, m in plans}
    most = max(value.values())
    _, m, n = min((n * (c0 + c1 * m), m, n) for n, m in plans if value[n, m] > most * (1 - 1e-12))
    return np.array([n, m])


def ex_budget_further() -> Names:
    def gain(c0: float, votes: tuple[float, float]) -> float:
        return per_unit(votes[1], c0, 6, 20) - per_unit(votes[0], c0, 1, 2)

    def best(c0: float) -> tuple[float, float]:
        return best_votes(c0, 1, 2), best_votes(c0, 6, 20)

    even = optimize.brentq(lambda c0: gain(c0, best(c0)), 1, 200)
    crowd, experts = best(even)
    one = optimize.brentq(lambda c0: gain(c0, (5, 5)), 1, 200)
    return locals()


# When errors go together


def ex_correlated_hand() -> Names:
    sizes = [(n, 400 // n) for n in range(1, 401) if 400 % n == 0]
    variance, n, labellers = min((4 / n + 1 / k + 4 / 400, n, k) for n, k in sizes)
    return locals()


def ex_correlated_code() -> Names:
    rng = np.random.default_rng(7)
    X, coef = rng.standard_normal((30, 2)), np.array([0.2, 1.0, -0.5])
    chance = rng.random((30, 4))
    leaning = (coef[0] + X @ coef[1:])[:, None] + rng.standard_normal(4)
    grid = [(X, (chance < special.expit(leaning)).astype(float), coef)]

    def right(X: Array, votes: Array, coef: Array, signs: tuple[int, int, int] = (1, 1, -1), square: bool = False) -> Array:
        x = np.column_stack([np.ones(len(X)), X])
        tau = special.expit(x @ coef)
        rest = votes - tau[:, None]
        parts = (x.T * rest.sum(axis=1) ** 2) @ x, (x.T @ rest) @ (x.T @ rest).T, (x.T * (rest**2).sum(axis=1)) @ x
        bread = np.linalg.inv(votes.shape[1] * (x.T * (tau * (1 - tau))) @ x)
        variance = np.diag(bread @ sum(s * part for s, part in zip(signs, parts)) @ bread)
        return variance if square else np.sqrt(variance)

    return locals()


def ex_correlated_further(n: int, K: int, L: int, A: float, B: float, E: float) -> float:
    people = np.arange(n * K) % L  # in turn: an item's K votes are K people's, and each has equally many
    items = np.repeat(np.arange(n), K)
    same_item, same_person = items[:, None] == items, people[:, None] == people
    return float((A * same_item + B * same_person + E * np.eye(n * K)).mean())


# How small is too small?


def separated(n: ArrayLike, p: int) -> Array:
    """Probability that coins on n items are separated, by the chance that fewer than p + 1 of n - 1 coins fall on one side."""
    return np.asarray(stats.binom.cdf(p, np.asarray(n) - 1, 0.5))


def ex_small_hand() -> Names:
    def seldom(p: int) -> int:
        sizes = np.arange(1, 60)
        return int(sizes[separated(sizes, p) < 0.01].min())

    return locals()


def unanimous(tau1: float, m: int, alpha0: float) -> float:
    return tau1**m if np.isinf(alpha0) else float(np.prod([(alpha0 * tau1 + k) / (alpha0 + k) for k in range(m)]))


def ex_small_code(tau1: float, m: int, alpha0: float) -> float:
    return 1 - unanimous(tau1, m, alpha0) - unanimous(1 - tau1, m, alpha0)


def parts(delta: float, p: int) -> tuple[float, float]:
    """Items that either condition asks for."""
    w0 = mean_over_items(delta, weight)
    limit = p * stats.norm.pdf(delta / 2) / delta / 4 / w0  # p directions count, each with variance 1 / w0
    return (p + 1) / w0, float(20 * limit / (0.5 - stats.norm.cdf(-delta / 2)))
