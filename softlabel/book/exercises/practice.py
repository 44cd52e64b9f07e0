"""Exercises on speed, on large runs and on reports."""

import numpy as np
from scipy import optimize, special, stats

from softlabel.book.exercises.rules import newton
from softlabel.book.exercises.marking import Exercise, Mistake, Unfit, at, call, exercise, floats, formula, numbers
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


# Your own votes


@exercise("own.hand")
def _():
    grid = [(5.0, 1.0, 1.0), (6.5, 1.0, 1.0), (5.0, 10.0, 1.0), (6.1, 1.0, 1.0), (0.2, 1.0, 4.0), (50.0, 3.0, 2.0)]

    def right(alpha0, c0, c1):  # by trying all
        m = np.arange(1, 1000)
        return m[np.argmax(m / (m + alpha0) / (c0 + c1 * m))]

    return Exercise(
        "a function of alpha0, c0 and c1 that gives a whole number of votes",
        formula(grid), at(grid, "alpha0", "c0", "c1"), np.array([right(*args) for args in grid], dtype=float),
        [
            Mistake(lambda a, c0, c1: np.sqrt(a * c0 / c1), "That need not be whole, and can be below 1."),
            Mistake(lambda a, c0, c1: max(np.round(np.sqrt(a * c0 / c1)), 1),
                    "The nearest whole number is not always the best."),
            Mistake(lambda a, c0, c1: max(np.ceil(np.sqrt(a * c0 / c1)), 1), "Solve m (m + 1) = r, and not m m = r."),
            Mistake(lambda a, c0, c1: max(np.floor((np.sqrt(1 + 4 * a * c0 / c1) - 1) / 2), 1),
                    "There the next vote still pays: round up."),
            Mistake(lambda a, c0, c1: np.ceil((np.sqrt(1 + 4 * a * c1 / c0) - 1) / 2), "The costs are exchanged."),
        ],
        "Go on while m (m + 1) is below alpha0 c0 / c1.",
        rtol=0, atol=1e-6,
    )


@exercise("own.code")
def _():
    def worth(votes, alpha0=3):  # the sandwich, item by item
        bread = np.mean(votes)
        return bread**2 / np.mean([k * (k + alpha0) / (1 + alpha0) for k in votes])

    def theorem(m, alpha0=3):
        return m * (1 + alpha0) / (m + alpha0)

    return Exercise(
        "two numbers, the true labels an item is worth, evenly and with every second item",
        numbers(["evenly", "every_second"]), ["evenly", "every second item"], np.array([worth([3, 3]), worth([4, 2])]),
        [
            Mistake((worth([4, 2]), worth([3, 3])), "The two are exchanged."),
            Mistake((None, (theorem(4) + theorem(2)) / 2),
                    "That is the mean of the items' own factors; a pooled fit weighs votes alike."),
            Mistake((None, theorem(3)), "The mean number of votes is not enough: they are unequal."),
            Mistake((theorem(2), None), "That is before the money is spent: there are three votes on each item then."),
        ],
        "Use the formula for unequal numbers, with the votes [3, 3] and [4, 2].",
        rtol=1e-6,
    )


@exercise("own.further")
def _():
    grid = [(tau, alpha0) for tau in (0.9, 0.5, 0.2) for alpha0 in (0.5, 2.0, 50.0)]

    def right(tau, alpha0):  # over the probability of the item
        nodes, weights = special.roots_jacobi(40, alpha0 * (1 - tau) - 1, alpha0 * tau - 1)
        p, w = (1 + nodes) / 2, weights / weights.sum()
        differ = 2 * p * (1 - p)
        return w @ (2 * p + differ * p) / (w @ (2 + differ))

    def mixed(tau, alpha0, third):
        d = 2 * tau * (1 - tau) * alpha0 / (1 + alpha0)
        return (2 * tau + d * third) / (2 + d)

    return Exercise(
        "a function of tau and alpha0 that gives the limit of the share",
        formula(grid), at(grid, "tau", "alpha0"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda tau, a: tau, "That would be so if the number of votes did not depend on the votes."),
            Mistake(lambda tau, a: mixed(tau, a, 0.5),
                    "The third vote knows more than that two disagreed: it still depends on tau."),
            Mistake(lambda tau, a: mixed(tau, 1e12, (a * tau + 1) / (a + 2)),
                    "Votes on an item are correlated: they differ more rarely."),
            Mistake(lambda tau, a: tau + tau * (1 - tau) * a / (1 + a) * (a * tau + 1) / (a + 2),
                    "Divide by the mean number of votes that were asked for, not by two."),
        ],
        "Expected positive votes over expected votes. After one vote of each kind the next has mean (alpha0 tau + 1) / "
        "(alpha0 + 2).",
        rtol=1e-6,
    )


# Reading a report


@exercise("reading.hand")
def _():
    tables = [(np.array([5.0, 5, 5, 4, 3]), np.array([5.0, 3, 1, 2, 1]), 4), (np.array([7.0, 2, 3]), np.array([6.0, 1, 1]), 0)]

    def right(m, s, k):  # over all ways in which he may have voted
        counts = np.ones(1)
        for q in s / m:
            counts = np.convolve(counts, [1 - q, q])
        values = np.arange(len(counts))
        mean = counts @ values
        return (k - mean) / np.sqrt(counts @ (values - mean) ** 2)

    def measure(function):
        return np.array([floats(call(function, m.copy(), s.copy(), k)).sum() for m, s, k in tables])

    def share(m, s):
        return s.sum() / m.sum()

    return Exercise(
        "a function of two arrays m and s and a number k that gives z",
        measure, ["z of the first table", "z of the second table"], np.array([right(*args) for args in tables]),
        [
            Mistake(lambda m, s, k: (k - len(m) * share(m, s)) / np.sqrt(len(m) * share(m, s) * (1 - share(m, s))),
                    "That takes all items to be alike. Each has a share of its own, and unanimous ones have no variance."),
            Mistake(lambda m, s, k: k - (s / m).sum(), "Divide by the standard deviation."),
            Mistake(lambda m, s, k: (k - (s / m).sum()) / (s / m * (1 - s / m)).sum(),
                    "Divide by the standard deviation, not the variance."),
            Mistake(lambda m, s, k: ((s / m).sum() - k) / np.sqrt((s / m * (1 - s / m)).sum()),
                    "The sign: too many positive votes count up."),
        ],
        "The number of his positive votes is a sum of independent ones: add up means and variances.",
        rtol=1e-6,
    )


@exercise("reading.code")
def _():
    grid = [(tau, m) for tau in (0.5, 0.8, 0.99) for m in (2, 3, 10)]

    def right(tau, m):  # votes counted, annotator by annotator
        p = np.r_[0.5, np.full(m - 1, tau)]
        return np.log(p.sum()) - np.log((1 - p).sum())

    return Exercise(
        "a function of tau and m that gives log-odds",
        formula(grid), at(grid, "tau", "m"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda tau, m: ((m - 1) * tau + 0.5) / m, "That is the probability. Take its log-odds."),
            Mistake(lambda tau, m: (m - 1) / m * special.logit(tau), "Probabilities are averaged, not log-odds."),
            Mistake(lambda tau, m: special.logit((m * tau + 0.5) / (m + 1)), "The coin is one of the m, not one more."),
        ],
        "What is the probability that a vote picked at random is positive?",
        rtol=1e-6, atol=1e-9,
    )


@exercise("reading.further")
def _():
    grid = [(0.5, 0.5), (0.7, 0.5), (0.2, 1.0), (0.7, -0.5)]

    def right(tau, b):
        said = special.expit(special.logit(tau) + b)

        def power(n):
            reach = stats.norm.isf(0.025) * np.sqrt(said * (1 - said) / n)
            mean = stats.norm(tau, np.sqrt(tau * (1 - tau) / n))
            return mean.sf(said + reach) + mean.cdf(said - reach) - 0.8

        return optimize.brentq(power, 5, 1e5)

    def simple(tau, b, u=1.959964, v=0.841621, of=lambda tau, said: (said, said)):
        said = special.expit(special.logit(tau) + b)
        one, two = (np.sqrt(p * (1 - p)) for p in of(tau, said))
        return ((u * one + v * two) / (said - tau)) ** 2

    return Exercise(
        "a function of tau and b that gives the number of true labels",
        formula(grid), at(grid, "tau", "b"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda tau, b: simple(tau, b, v=0.0, of=lambda t, s: (s, s)),
                    "That finds it with probability one half only."),
            Mistake(lambda tau, b: simple(tau, b, u=1.644854, of=lambda t, s: (s, t)),
                    "The bias may go either way: test on both sides."),
            Mistake(lambda tau, b: np.sqrt(simple(tau, b, of=lambda t, s: (s, t))),
                    "Square it: the error falls with the root of n."),
        ],
        "The mean of n true labels is tested against what the votes say, and scatters around the truth.",
        rtol=0.005,
    )
