"""Exercises on speed and on large runs."""

import numpy as np
from scipy import optimize, special, stats

from softlabel._exercises_rules import newton
from softlabel.exercises import Exercise, Mistake, Unfit, at, call, exercise, floats, formula, numbers
from softlabel.normal import TwoClassNormal


# Speed


@exercise("speed.hand")
def _():
    grid = [(k,) for k in (10.0, 20.0, 50.0, 200.0)]

    def right(k):
        return optimize.brentq(lambda p: (p + 1) * (p + 2) / 2 - k, 0, 1000)

    return Exercise(
        "a function of k that gives the number of features p at which both take equally long",
        formula(grid), at(grid, "k"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda k: np.sqrt(k) - 1, "That counts the whole Gram matrix. It is symmetric, so half of it is enough."),
            Mistake(lambda k: np.sqrt(2 * k + 0.25) - 0.5, "That is the number of columns. One of them is the intercept."),
            Mistake(lambda k: np.sqrt(2 * k), "Keep the terms of lower order: there are few features."),
            Mistake(lambda k: k / 2, "The number of products grows with the square of the number of columns."),
        ],
        "Count the entries on and below the diagonal of a matrix with p + 1 rows.",
        rtol=0.03,
    )


@exercise("speed.code")
def _():
    model = TwoClassNormal.canonical(2)
    X, z = model.sample(120, np.random.default_rng(3), size=6)

    def gradient(X, y, b):
        x = np.column_stack([np.ones(len(X)), X])
        return x.T @ (special.expit(x @ b) - y)

    def search(X, y):
        return optimize.root(lambda b: gradient(X, y, b), np.zeros(X.shape[1] + 1), tol=1e-12).x

    def measure(function):
        b = floats(call(function, X.copy(), z.copy()))
        if b.shape != (6, 3):
            raise Unfit(f"Your function returns shape {b.shape} for 6 data sets with 2 features; (6, 3) belongs there.")
        return b.ravel()

    def each(fit):
        return lambda X, y: np.array([fit(a, b) for a, b in zip(X, y)])

    pooled = np.tile(search(X.reshape(-1, 2), z.ravel()), (6, 1))
    return Exercise(
        "a function of X (R, n, p) and y (R, n) that returns the coefficients (R, p + 1)",
        measure, [f"coefficient {k} of data set {r}" for r in range(6) for k in range(3)],
        np.ravel([search(a, b) for a, b in zip(X, z)]),
        [
            Mistake(each(lambda a, b: newton(a, b, 1)), "That is one step. Go on until nothing changes."),
            Mistake(lambda X, y: pooled, "All data sets get the same coefficients. Each has its own Hessian and gradient."),
            Mistake(each(lambda a, b: np.roll(search(a, b), -1)), "The intercept comes first."),
            Mistake(each(lambda a, b: -search(a, b)), "The sign: y = 1 is the class whose probability the fit gives."),
        ],
        "Prepend a column of ones, and solve one small system for each data set in every step.",
        rtol=1e-5, atol=1e-6,
    )


@exercise("speed.further")
def _():
    rounds = np.arange(10)
    cov = 0.01 * (1 + np.minimum.outer(rounds, rounds))  # of a random walk
    draws = stats.multivariate_normal(cov=cov, seed=np.random.default_rng(1)).rvs(100_000)
    still = stats.norm.rvs(scale=0.1, size=(100_000, 10), random_state=2)

    def spread(log):
        slow = np.exp(log)
        blocks = 2 * np.median(slow[:, 5:], axis=1) / np.median(slow[:, :5], axis=1)
        turns = np.median(2 * slow[:, 1::2] / slow[:, ::2], axis=1)
        return np.array([blocks.std(), turns.std()])

    right = spread(draws)
    return Exercise(
        "two numbers, the standard deviation of the ratio in blocks and in turns",
        numbers(["blocks", "turns"]), ["the scatter in blocks", "the scatter in turns"], right,
        [
            Mistake(right[::-1], "The two are exchanged."),
            Mistake(spread(still), "The slowdown does not wander: sum the steps up."),
            Mistake(right / 4, "B takes twice as long as A, so the ratio is near 2; yours is near one half."),
            Mistake(right / 2, "The machine slows both down, but B still takes twice as long: the ratio is near 2."),
            Mistake(right**2, "That is the variance."),
        ],
        "Rounds in turns are neighbours: A first, then B. Take the median over five.",
        rtol=0.05,
    )


# Large runs


@exercise("large.hand")
def _():
    grid = [(1e5, 1e-3, 10), (1e5, 1e-3, 1000), (4e4, 2e-3, 64)]

    def right(T, o, W):
        return np.exp(optimize.minimize_scalar(lambda log: T / W + o * T * np.exp(-log) + np.exp(log) / 2, bounds=(-5, 10),
                                               method="bounded", options={"xatol": 1e-9}).x)

    return Exercise(
        "a function of T, o and W that gives the best t",
        formula(grid), at(grid, "T", "o", "W"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda T, o, W: np.sqrt(o * T), "Differentiate again: the last term is t / 2."),
            Mistake(lambda T, o, W: np.sqrt(o * T / 2), "That is the loss at the best t, not t."),
            Mistake(lambda T, o, W: 2 * o * T, "Where the derivative vanishes there is a square of t."),
            Mistake(lambda T, o, W: o * W,
                    "That is where the maximum in the chapter's formula switches. Here nothing is hidden."),
            Mistake(lambda T, o, W: np.sqrt(2 * o * T * W), "Does the term with W depend on t?"),
        ],
        "Set the derivative by t to zero.",
        rtol=1e-3,
    )


@exercise("large.code")
def _():
    # Blocks of 100 sets, and a seed for each block: dealt to the first distance, then to the second.
    def seeds(deltas, sets):
        place = iter(range(1000))
        return {(delta, next(place)) for delta in range(deltas) for _ in range(sets // 100)}

    right = [len(seeds(k, 500) - seeds(k, 200)) for k in (1, 2)]
    return Exercise(
        "two numbers, the new blocks of the longer study with one distance and with two",
        numbers(["one", "two"]), ["the blocks with one distance", "the blocks with two"], np.array(right, dtype=float),
        [
            Mistake((5, None), "Two of the five are already in the folder."),
            Mistake((None, 2 * right[0]), "That would be so if each distance had the seeds that it had in the shorter study."),
            Mistake((None, 10), "Something is reused: which blocks have the distance and the seed that they had?"),
            Mistake((300, None), "That counts training sets. A block has 100."),
        ],
        "Count with new_blocks, the shorter study first.",
        rtol=0, atol=0.1,
    )


@exercise("large.further")
def _():
    factor = (np.sqrt(2 / 1000) / 0.01) ** 2
    return Exercise(
        "one number, by which factor the core-hours grow",
        numbers(["factor"]), ["the factor"], np.array([factor]),
        [
            Mistake(np.sqrt(factor), "The error falls with the square root of the number of training sets."),
            Mistake(1 / factor, "A smaller error takes more work, not less."),
            Mistake(factor**2, "Once squared is enough."),
        ],
        "How do the standard error and the number of training sets hang together?",
        rtol=0.06,
    )
