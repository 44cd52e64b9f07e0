"""Exercises on planning and on what the paper leaves open: correlated errors, small samples, budgets."""

from functools import cache

import numpy as np
from scipy import optimize, special, stats

from softlabel.book.exercises.marking import Exercise, Mistake, at, exercise, formula, numbers


# How many labellers, how many items?


def per_unit(m, c0, c1, alpha0):
    """True labels that a unit of money is worth."""
    return m * (1 + alpha0) / (m + alpha0) / (c0 + c1 * m)


def best_votes(c0, c1, alpha0):
    found = optimize.minimize_scalar(lambda t: -np.log(per_unit(np.exp(t), c0, c1, alpha0)), bounds=(0, 20), method="bounded",
                                     options={"xatol": 1e-10})
    return np.exp(found.x)


@exercise("budget.hand")
def _():
    m = best_votes(0.5, 1, 8)
    worth = per_unit(m, 0.5, 1, 8)
    return Exercise(
        "three numbers: votes an item, true labels a unit of money is worth, and the price of a true label",
        numbers(["votes", "worth", "price"]), ["the number of votes", "the worth", "the price"],
        np.array([m, worth, 1 / worth - 0.5]),
        [
            Mistake((4, None, None), "Take the root of alpha0 c0 / c1, and an item costs half as much as a vote.", (0,)),
            Mistake((None, None, 1 / worth), "That is what an item and its label may cost together.", (2,)),
            Mistake((None, None, 1), "One vote is worth a true label, but here two votes share the price of the item.", (2,)),
            Mistake((None, 1 / worth, None), "Upside down: that is the price of one true label's worth.", (1,)),
        ],
        "Put the best m into (1 + alpha0) / ((1 + alpha0/m) (c0 + c1 m)), and compare with 1 / (c0 + price).",
        rtol=1e-4,
    )


@exercise("budget.code")
def _():
    grid = [(50, 8, 1, 5), (100, 8, 1, 5), (60, 3, 2, 1), (97, 1, 1, 30),
            (30, 0.5, 1, 0.2), (200, 20, 1, 3), (200, 20, 1, np.inf)]

    @cache
    def right(budget, c0, c1, a):
        plans = [(n, m) for n in range(1, 400) for m in range(1, 400) if n * (c0 + c1 * m) <= budget]
        worth = {(n, m): n * m if np.isinf(a) else n * m * (1 + a) / (m + a) for n, m in plans}
        most = max(worth.values())
        return min((n * (c0 + c1 * m), m, n) for n, m in plans if worth[n, m] > most * (1 - 1e-12))[:0:-1]

    def root(budget, c0, c1, a, whole):
        m = max(1, whole(min(np.sqrt(a * c0 / c1), (budget - c0) / c1)))
        return budget // (c0 + c1 * m), m

    return Exercise(
        "a function of budget, c0, c1 and alpha0 that gives two whole numbers, items and votes an item",
        formula(grid, 2), [f"{name} at {args}" for args in grid for name in ("items", "votes")],
        np.concatenate([right(*args) for args in grid]).astype(float),
        [
            Mistake(lambda *args: root(*args, round),
                    "The rounded root is not always best: whole items have gaps in between."),
            Mistake(lambda *args: root(*args, np.floor), "The root rounded down is not always best: try every m."),
            Mistake(lambda *args: root(*args, np.ceil), "The root rounded up is not always best: try every m."),
            Mistake(lambda *args: right(*args)[::-1], "Items first, then votes."),
            Mistake(lambda b, c0, c1, a: (b / (c0 + c1 * (m := max(1, min(np.sqrt(a * c0 / c1), (b - c0) / c1)))), m),
                    "Both numbers must be whole."),
        ],
        "For each m, buy as many whole items as the money allows, and compare n times the efficiency.",
    )


@exercise("budget.further")
def _():
    def gain(c0):
        crowd, experts = best_votes(c0, 1, 2), best_votes(c0, 6, 20)
        return per_unit(experts, c0, 6, 20) - per_unit(crowd, c0, 1, 2)

    even = optimize.brentq(gain, 1, 200)
    crowd, experts = best_votes(even, 1, 2), best_votes(even, 6, 20)
    one = optimize.brentq(lambda c0: per_unit(5, c0, 6, 20) - per_unit(5, c0, 1, 2), 1, 200)
    return Exercise(
        "three numbers: the price of an item, and the best numbers of votes of the crowd and of the experts",
        numbers(["price", "crowd", "experts"]), ["the price", "the crowd's votes", "the experts' votes"],
        np.array([even, crowd, experts]),
        [
            Mistake((None, experts, crowd), "The numbers of votes are exchanged.", (1, 2)),
            Mistake((np.sqrt(even), None, None), "That is the root of the price: square it.", (0,)),
            Mistake((one, None, None), "That compares both with five votes. Each should have its own best number.", (0,)),
            Mistake((None, None, np.sqrt(20 * even)), "A vote of an expert costs 6: divide by it under the root.", (2,)),
        ],
        "Equate (1 + alpha0) / (sqrt(c0) + sqrt(alpha0 c1))^2 of the two. It is linear in the root of c0.",
        rtol=1e-3,
    )


# When errors go together


@exercise("correlated.hand")
def _():
    sizes = [(n, 400 // n) for n in range(1, 401) if 400 % n == 0]
    variance, n, labellers = min((4 / n + 1 / k + 4 / 400, n, k) for n, k in sizes)
    return Exercise(
        "three numbers: items, labellers, and the variance of the mean",
        numbers(["n", "L", "variance"]), ["the number of items", "the number of labellers", "the variance"],
        np.array([n, labellers, variance]),
        [
            Mistake((20, 20, None), "Items vary more than labellers, so you need more of them.", (0, 1)),
            Mistake((labellers, n, None), "The two are exchanged.", (0, 1)),
            Mistake((n, labellers, variance - 4 / 400), "The third part of each number is left over: 4 over 400.", (2,)),
            Mistake((100, 4, None), "That is the ratio of n to L as if it were 25: equate 4/n and 1/L.", (0, 1)),
        ],
        "The variance is 4/n + 1/L + 4/(nL). With nL fixed, when is the sum of the first two least?",
    )


@exercise("correlated.code")
def _():
    rng = np.random.default_rng(7)
    X, coef = rng.standard_normal((30, 2)), np.array([0.2, 1.0, -0.5])
    votes = (rng.random((30, 4)) < special.expit(coef[0] + (X @ coef[1:])[:, None] + rng.standard_normal(4))).astype(float)

    def errors(X, votes, coef, signs=(1, 1, -1), square=False):
        x = np.column_stack([np.ones(len(X)), X])
        tau = special.expit(x @ coef)
        rest, k = votes - tau[:, None], votes.shape[1]
        parts = (x.T * rest.sum(axis=1) ** 2) @ x, (x.T @ rest) @ (x.T @ rest).T, (x.T * (rest**2).sum(axis=1)) @ x
        bread = np.linalg.inv(k * (x.T * (tau * (1 - tau))) @ x)
        var = np.diag(bread @ sum(s * part for s, part in zip(signs, parts)) @ bread)
        return var if square else np.sqrt(var)

    return Exercise(
        "a function of X, votes and coef that gives one standard error a coefficient",
        formula([(X, votes, coef)], 3), [f"the standard error of {name}" for name in ("the intercept", "x1", "x2")],
        errors(X, votes, coef),
        [
            Mistake(lambda *args: errors(*args, signs=(1, 0, 0)),
                    "That is the sandwich by item: pairs of one labeller are left out."),
            Mistake(lambda *args: errors(*args, signs=(0, 1, 0)),
                    "Only pairs of one labeller: those of one item are left out."),
            Mistake(lambda *args: errors(*args, signs=(1, 1, 0)), "A vote shares both with itself, and you count it twice."),
            Mistake(lambda *args: errors(*args, signs=(0, 0, 1)),
                    "Each vote with itself only: that takes all votes as independent."),
            Mistake(lambda *args: errors(*args, square=True), "Those are variances: take the root."),
        ],
        "Make one row of scores x (v - tau) a vote, and the matrix of pairs that share an item or a labeller.",
    )


@exercise("correlated.further")
def _():
    grid = [(6, 2, 3, 4.0, 1.0, 4.0), (20, 3, 10, 1.0, 2.0, 0.5), (12, 4, 6, 0.0, 1.0, 3.0)]

    def right(n, k, size, a, b, e):
        people = np.arange(n * k) % size  # in turn: an item's k votes are k people's, and each has equally many
        items = np.repeat(np.arange(n), k)
        same_item, same_person = items[:, None] == items, people[:, None] == people
        return (a * same_item + b * same_person + e * np.eye(n * k)).mean()

    return Exercise(
        "a function of n, K, L and the three variances that gives the variance of the mean",
        formula(grid), at(grid, "n", "K", "L", "A", "B", "E"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda n, k, size, a, b, e: a / n + b / k + e / (n * k),
                    "All L labellers take part, not the K of one item."),
            Mistake(lambda n, k, size, a, b, e: a / n + b / size + e / (n * size), "There are nK votes, not nL."),
            Mistake(lambda n, k, size, a, b, e: a / n + b / (n * k) + e / (n * k),
                    "A labeller's part is the same in all their votes."),
            Mistake(lambda n, k, size, a, b, e: a / n + e / (n * k), "The labellers' part is missing."),
        ],
        "The mean of all votes is a mean of n, of L and of nK independent numbers.",
    )


# How small is too small?


def separated(n, p):
    """Probability that coins on n items are separated, by the chance that fewer than p + 1 of n - 1 coins fall on one side."""
    return stats.binom.cdf(p, n - 1, 0.5)


@exercise("small.hand")
def _():
    sizes = np.arange(1, 60)
    certain = sizes[np.isclose(separated(sizes, 10), 1, rtol=1e-12)].max()
    half = sizes[np.argmin(np.abs(separated(sizes, 10) - 0.5))]
    return Exercise(
        "three numbers: items separated for certain, items separated with probability one half, and the probability at fifty",
        numbers(["certain", "half", "fifty"]), ["the first number", "the second number", "the probability"],
        np.array([certain, half, separated(50, 10)], dtype=float),
        [
            Mistake((10, None, None), "The intercept is one more coefficient.", (0,)),
            Mistake((None, 20, None), "Count the intercept: twice the number of coefficients.", (1,)),
            Mistake((None, None, separated(50, 9)), "The sum goes up to k = p.", (2,)),
            Mistake((None, None, separated(51, 10)), "The binomial coefficients are of n - 1, not of n.", (2,)),
            Mistake((None, None, separated(50, 10) / 2),
                    "A labelling and its opposite are both separated: twice as many.", (2,)),
        ],
        "When does the sum hold all binomial coefficients, and when just half of them?",
        rtol=1e-3, atol=0,
    )


@exercise("small.code")
def _():
    grid = [(t, m, a) for t in (0.1, 0.5, 0.8) for m in (1, 2, 5) for a in (0.5, 10.0, np.inf)]

    def unanimous(t, m, a):
        return t**m if np.isinf(a) else np.prod([(a * t + k) / (a + k) for k in range(m)])

    def right(t, m, a):
        return 1 - unanimous(t, m, a) - unanimous(1 - t, m, a)

    return Exercise(
        "a function of tau1, m and alpha0 that gives a probability",
        formula(grid), at(grid, "tau1", "m", "alpha0"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda t, m, a: right(t, m, np.inf), "Those are independent votes: labellers share their misjudgement."),
            Mistake(lambda t, m, a: 1 - right(t, m, a), "That is the probability that they agree."),
            Mistake(lambda t, m, a: 1 - unanimous(t, m, a), "All votes may go to the other side as well."),
            Mistake(lambda t, m, a: 2 * t * (1 - t) * (1 if np.isinf(a) else a / (1 + a)),
                    "That is right for two votes only."),
        ],
        "Subtract the probabilities of m and of 0 positive votes from 1.",
        atol=1e-9,
    )


@exercise("small.further")
def _():
    grid = [(delta, p) for delta in (1.0, 2.0, 3.0, 4.0) for p in (2, 10)]

    def parts(delta, p):
        y = np.linspace(-14, 14, 20_001)
        density = (stats.norm.pdf(y, delta / 2) + stats.norm.pdf(y, -delta / 2)) / 2
        w0 = (density * special.expit(delta * y) * special.expit(-delta * y)).sum() * (y[1] - y[0])
        limit = p * stats.norm.pdf(delta / 2) / delta / 4 / w0  # p directions count, each with variance 1 / w0
        return (p + 1) / w0, 20 * limit / (0.5 - stats.norm.cdf(-delta / 2))

    return Exercise(
        "a function of delta and p that gives a whole number of items",
        formula(grid), at(grid, "delta", "p"), np.array([np.ceil(max(parts(*args))) for args in grid]),
        [
            Mistake(lambda *args: np.ceil(parts(*args)[0]), "That is the condition on u alone."),
            Mistake(lambda *args: np.ceil(parts(*args)[1]), "That is the condition on s alone."),
            Mistake(lambda *args: np.ceil(min(parts(*args))), "Both conditions must hold: take the larger number."),
            Mistake(lambda *args: np.floor(max(parts(*args))), "Round up: with fewer items a condition fails."),
            Mistake(lambda delta, p: np.ceil(max(parts(delta, p)[0] * p / (p + 1), parts(delta, p)[1])),
                    "The intercept is a coefficient too: p + 1."),
        ],
        "u = n w0 / (p + 1) is at least 1, s is at most 1/20. Solve each for n, and w0 is an entry of the Fisher information.",
        rtol=0, atol=0.5,
    )
