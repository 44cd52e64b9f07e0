"""Exercises on votes and what they are worth: chapters 1 to 4."""

from itertools import product
from math import comb

import numpy as np
from scipy import optimize, stats

from softlabel import datasets
from softlabel.vote_models import dm_logpmf
from softlabel.book.exercises.marking import Exercise, Mistake, Unfit, at, call, exercise, formula, numbers


def votes_pmf(m, tau, alpha0):
    """Probabilities of 0 to m positive votes."""
    k = np.arange(m + 1)
    return np.exp(dm_logpmf(np.column_stack([k, m - k]), np.tile([tau, 1 - tau], (m + 1, 1)), alpha0))


def mean_var(p):
    k = np.arange(len(p))
    return p @ k, p @ k**2 - (p @ k) ** 2


def inflation(m, alpha0, tau=0.3):
    """Variance of the votes over the binomial's, by summing over all counts."""
    return mean_var(votes_pmf(m, tau, alpha0))[1] / (m * tau * (1 - tau))


# Chapter 1


@exercise("01.hand")
def _():
    def moments(rates, m):
        w = np.arange(m + 1)
        U, p = w * (m - w) / comb(m, 2), stats.binom.pmf(w, m, rates[:, None]).mean(axis=0)
        return p @ U, p @ U**2 - (p @ U) ** 2

    crowds = [np.array(rates) for rates in ([0.2], [0.0, 0.5], [0.05, 0.1, 0.4])]
    cases = [(*moments(rates, m), m) for rates in crowds for m in (2, 3)]
    grid = [(D, m) for D, _, m in cases]
    top = {2: 1, 3: 2 / 3}
    return Exercise(
        "a function of D and m that gives the variance of U for m = 2 and m = 3",
        formula(grid), at(grid, "D", "m"), np.array([v for _, v, _ in cases]),
        [
            Mistake(lambda D, m: D * (1 - D), "That is right for two votes. Which values can U take with three?"),
            Mistake(lambda D, m: top[m] ** 2 * D * (1 - D),
                    "D is the mean of U. It is the probability that U is not zero only if the other value of U is 1."),
            Mistake(lambda D, m: np.sqrt(D * (top[m] - D)), "That is the standard deviation."),
            Mistake(lambda D, m: D * (1 - D) / comb(m, 2),
                    "The pairs of an item share labellers, so their variances do not just add up."),
        ],
        "List the values that U can take, and their probabilities in terms of D.",
    )


@exercise("01.code")
def _():
    h = datasets.shipped_histograms()["bluebirds"]
    s = np.repeat(h["positive"].to_numpy(), h["items"].to_numpy())

    def ratio(U, m, within=0.0):
        D = U.mean()
        one_rate = (D * (1 - D) + (m - 2) * D * (1 - 2 * D)) / comb(m, 2)
        return (within + U.var(ddof=1)) / one_rate

    k = np.arange(8)
    p = stats.hypergeom.pmf(k, 39, s[:, None], 7)  # exact: no votes are drawn here
    U = k * (7 - k) / 21
    mean = p @ U
    full = s * (39 - s) / comb(39, 2)
    return Exercise(
        "two numbers, the average disagreement and the average spread ratio",
        numbers(["average disagreement", "spread ratio"]), ["the average disagreement", "the spread ratio"],
        np.array([full.mean(), ratio(mean, 7, (p @ U**2 - mean**2).mean())]),
        [
            Mistake((None, ratio(full, 39)),
                    "That is the spread ratio of all 39 votes. With seven kept, m is 7 there as well."),
            Mistake((full.mean() * 38 / 39, None),
                    "Votes must be kept without replacement: the same person's vote cannot be picked twice."),
            Mistake((full.mean() * 42 / 49, None), "The share is of pairs of different votes; there are 21 of them, not 49."),
            Mistake((None, ratio(mean, 7)),
                    "The kept votes of one image vary from draw to draw. That belongs to the spread too."),
        ],
        "Draw from the hypergeometric distribution, and call spread_ratio with m = 7.",
        rtol=[0.008, 0.025],
    )


@exercise("01.further")
def _():
    def disagreement(mean, v):
        rates = mean + np.sqrt(v) * np.array([-1, 1])  # half of the items each
        return np.mean(2 * rates * (1 - rates))

    grid = [(0.2, 0.0), (0.2, 0.02), (0.2, 0.04), (0.3, 0.01), (0.1, 0.005)]
    right = [np.roots([2, -2, disagreement(*args)]).real.min() for args in grid]

    def root(D):
        return (1 - np.sqrt(1 - 2 * D)) / 2

    return Exercise(
        "a function of the mean and the variance v of the error rates that gives the rate found from votes",
        formula(grid), at(grid, "mean", "v"), np.array(right),
        [
            Mistake(lambda mean, v: mean, "That holds for v = 0 only. What does the variance do to the average of 2e(1 - e)?"),
            Mistake(lambda mean, v: root(2 * mean * (1 - mean) + 2 * v),
                    "The sign: 2e(1 - e) is concave in e, so spreading the rates out lowers its average."),
            Mistake(lambda mean, v: root(2 * mean * (1 - mean) - v), "How often does the variance enter? Expand 2e(1 - e)."),
            Mistake(lambda mean, v: 1 - root(2 * mean * (1 - mean) - 2 * v),
                    "That is the other root, of a crowd that is mostly wrong."),
        ],
        "Write the average disagreement D in terms of the mean and v, then solve for the rate.",
    )


# Chapter 2


@exercise("02.hand")
def _():
    share, tau, answer = np.array([0.6, 0.4]), np.array([0.9, 0.5]), np.array([1.0, 0.5])  # easy, hard
    wrong = tau * (1 - answer) + (1 - tau) * answer
    harmless = np.allclose(answer, tau)
    return Exercise(
        "three values: the share of easy items labelled wrongly, the share of all items labelled wrongly, and True or False "
        "for whether the noise is harmless",
        numbers(["easy", "all", "harmless"]),
        ["the share of wrong labels on easy items", "the share of wrong labels in all", "whether the noise is harmless"],
        np.array([wrong[0], share @ wrong, harmless]),
        [
            Mistake((None, None, True),
                    "That there are fewer wrong labels is not enough. Compare the joint distributions of kind and label."),
            Mistake((0.18, None, None),
                    "Eighteen in a hundred belongs to the labeller who draws; this one always says positive."),
            Mistake((0.9, None, None), "That is how often she is right about easy items."),
            Mistake((None, wrong.mean(), None), "Six in ten items are easy: weight the two kinds by how common they are."),
            Mistake((None, share @ (2 * tau * (1 - tau)), None),
                    "That is the share for the labeller who draws from the posterior."),
        ],
        "Go kind by kind: what does she say, and how often is the truth something else?",
        rtol=1e-3,
    )


@exercise("02.code")
def _():
    taus, n = np.array([0.1, 0.3, 0.5, 0.8]), 40_000
    tau = np.repeat(taus[:, None], n, axis=1)
    z = (np.random.default_rng(1).random(tau.shape) < tau).astype(int)

    def measure(draw):
        labels = np.asarray(call(draw, tau.copy(), z.copy(), np.random.default_rng(2)))
        if labels.shape != tau.shape:
            raise Unfit(f"Your function returns shape {labels.shape} for tau of shape {tau.shape}.")
        if not np.isin(labels, [0, 1]).all():
            raise Unfit("Your function returns labels other than 0 and 1.")
        wrong = labels != z
        half = n // 2
        return np.concatenate([labels.mean(axis=1), wrong.mean(axis=1), [wrong[2, :half].mean() - wrong[2, half:].mean()]])

    def copy_and(rest):
        return lambda tau, z, rng: np.where(rng.random(tau.shape) < 0.5, z, rest(tau, rng))

    return Exercise(
        "a function of tau, z and rng that returns her labels, an array shaped like tau",
        measure,
        [f"the share of {what} labels where tau = {t}" for what in ("positive", "wrong") for t in taus]
        + ["the first and the second half of the items, which should be alike"],
        np.concatenate([taus, taus * (1 - taus), [0]]),
        [
            Mistake(lambda tau, z, rng: rng.random(tau.shape) < tau,
                    "She never copies: she is wrong as often as one who draws every label."),
            Mistake(lambda tau, z, rng: z, "She always copies: no label is ever wrong."),
            Mistake(copy_and(lambda tau, rng: rng.random(tau.shape) < 0.5),
                    "Where she does not copy she tosses a coin. She should draw from the posterior."),
            Mistake(copy_and(lambda tau, rng: tau > 0.5),
                    "Where she does not copy she gives her best guess. She should draw."),
            Mistake(lambda tau, z, rng: np.where(np.arange(n) < n // 2, z, rng.random(tau.shape) < tau),
                    "She copies the first half of the items. Toss a coin for each item instead."),
        ],
        "For each item: a coin decides whether the label is z or a draw with probability tau.",
        rtol=0, atol=[0.016] * 8 + [0.03],
    )


@exercise("02.further")
def _():
    grid = [(r,) for r in (0.01, 0.1, 0.25, 0.4, 0.5)]

    def right(r):
        p = [1 - r, r]
        return sum(p[i] * p[k] for i, k in product(range(2), repeat=2) if i != k) / min(p)

    return Exercise(
        "a function of r, the smaller posterior probability, that gives the share of wrong labels over the Bayes error",
        formula(grid), at(grid, "r"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda r: 2 * r * (1 - r),
                    "That is the share of wrong labels. Divide it by the Bayes error of such items."),
            Mistake(lambda r: 1 - r, "There are two ways to be wrong: truth 1 and label 2, and the other way round."),
            Mistake(lambda r: 1 / (2 * (1 - r)), "That is upside down."),
            Mistake(lambda r: 1.0, "The best guess is wrong with probability r. A label that is drawn is wrong in two ways."),
        ],
        "What is the Bayes error if the smaller posterior is r everywhere? How often do two independent draws differ?",
    )


# Chapter 3


@exercise("03.hand")
def _():
    taus = ([0.7, 0.3], [0.5, 0.3, 0.2], [0.98, 0.02])
    grid = [(np.array(tau), alpha0) for tau in taus for alpha0 in (0.5, 2.0, 20.0)]

    def right(tau, alpha0):
        both = 2 * np.eye(len(tau), dtype=int)  # two votes for one class
        return np.exp(dm_logpmf(both, np.tile(tau, (len(tau), 1)), alpha0)).sum()

    def agree(rho, rest=True):
        return lambda tau, a: (q := (np.asarray(tau) ** 2).sum()) + rho(a) * (1 - q if rest else 1)

    return Exercise(
        "a function of the vector tau and of alpha0 that gives the probability of agreement",
        formula(grid), at(grid, "tau", "alpha0"), np.array([right(*args) for args in grid]),
        [
            Mistake(agree(lambda a: 0), "That is for labellers who vote independently. These share p."),
            Mistake(agree(lambda a: a / (1 + a)), "Large alpha0 means nearly independent votes; your rho grows with it."),
            Mistake(agree(lambda a: 1 / a), "Check small alpha0: your probability goes beyond 1."),
            Mistake(agree(lambda a: 1 / (1 + a), rest=False),
                    "With rho = 1 they always agree, but your formula gives more than 1."),
        ],
        "Try the two ends: independent votes, and labellers who always say the same.",
    )


@exercise("03.code")
def _():
    def measure(drawn):
        row = numbers(range(8))(drawn)
        if row.min() < 0 or row.sum() < 20_000:
            raise Unfit(f"There are {row.sum():.0f} items; draw at least 20,000, so that chance does not decide.")
        return row / row.sum()

    def sampled(alpha0=2.0, tau=0.7):
        return 100_000 * votes_pmf(7, tau, alpha0)

    return Exercise(
        "eight numbers: how many items got 0, 1, ..., 7 positive votes",
        measure, [f"the share of items with {k} positive votes" for k in range(8)], votes_pmf(7, 0.7, 2.0),
        [
            Mistake(sampled(np.inf), "These votes are independent. After each draw, is another ball of its colour put in?"),
            Mistake(sampled(1.0),
                    "That is alpha0 = 1. With how many balls does the urn start, and how many are added each time?"),
            Mistake(sampled(tau=0.3), "The classes are exchanged: positive votes have posterior 7/10."),
            Mistake(sampled(4.0), "That is alpha0 = 4. With how many balls does the urn start?"),
        ],
        "The urn starts with alpha0 * tau balls, and each vote adds one ball of its own colour.",
        rtol=0, atol=0.012,
    )


@exercise("03.further")
def _():
    grid = [(k, tau, alpha0) for k in (1, 3, 5) for tau, alpha0 in ((0.7, 2.0), (0.2, 10.0))]

    def thinned(kept, tau, alpha0):
        s = np.arange(8)  # seven votes, of which some are kept at random
        keep = stats.hypergeom.pmf(np.arange(kept + 1), 7, s[:, None], kept)
        return mean_var(votes_pmf(7, tau, alpha0) @ keep)[1]

    def variance(m, factor):
        return lambda k, tau, a: factor(k, m or k, a) * tau * (1 - tau)

    return Exercise(
        "a function of the number of kept votes, tau1 and alpha0 that gives the variance of the kept positive votes",
        formula(grid), at(grid, "kept", "tau1", "alpha0"), np.array([thinned(*args) for args in grid]),
        [
            Mistake(variance(7, lambda k, m, a: k * (m + a) / (1 + a)),
                    "That inflates the variance as for seven votes. Seven were cast, but how many are left to hang together?"),
            Mistake(variance(None, lambda k, m, a: k), "That is the variance of independent votes."),
            Mistake(variance(7, lambda k, m, a: (k / m) ** 2 * m * (m + a) / (1 + a)),
                    "Dropping votes does not just scale the count: which votes are dropped is random too."),
            Mistake(variance(None, lambda k, m, a: k * (1 + a) / (k + a)),
                    "The inflation is upside down: shared judgement adds variance."),
            Mistake(lambda k, tau, a: np.sqrt(k * (k + a) / (1 + a) * tau * (1 - tau)), "That is the standard deviation."),
        ],
        "One kept vote must behave like any single vote. Then use what the exercise shows.",
    )


# Chapter 4


@exercise("04.hand")
def _():
    grid = list(product((0.5, 0.9, 0.75), (1.0, 4.0, 10.0)))

    def right(r, a):
        return optimize.brentq(lambda m: m * (1 + a) / (m + a) - r * (1 + a), 1e-9, 1e6, xtol=1e-12)

    return Exercise(
        "a function of the share r and of alpha0 that gives the number of labellers",
        formula(grid), at(grid, "r", "alpha0"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda r, a: a * (1 - r) / r, "Upside down: a larger share of the limit must take more labellers."),
            Mistake(lambda r, a: r * (1 + a),
                    "That is the effective number that is to be reached. How many labellers reach it?"),
            Mistake(lambda r, a: (1 + a) * r / (1 - r), "Check the algebra: m + alpha0 and 1 + alpha0 are not the same."),
            Mistake(lambda r, a: a * r, "Solve for m on both sides: it stands in the denominator too."),
        ],
        "Set the effective number m (1 + alpha0) / (m + alpha0) equal to r times its limit.",
    )


@exercise("04.code")
def _():
    stated = stats.beta(2 * 0.3, 2 * 0.7)
    worth = 0.3 * 0.7 / stated.var()
    return Exercise(
        "two numbers, the worth by the theorem and the worth in your simulation",
        numbers(["theorem", "simulation"]), ["the worth by the theorem", "the worth in the simulation"],
        np.array([worth, worth]),
        [
            Mistake((1 / worth, None), "That is the factor of the variance. The worth is m divided by it, and m is 1."),
            Mistake((2, None), "Close: what is the variance of a Beta variable, over its mean times one minus its mean?"),
            Mistake((1, None), "One *vote* is worth one true label. A stated probability scatters less than a vote."),
            Mistake((None, 1), "The simulation counts a vote drawn with her probability. Pass the probability itself."),
            Mistake((None, 1 / worth), "That is the variance relative to true labels. The worth is its reciprocal."),
        ],
        "The theorem asks for the mean and the variance of the label only.",
        rtol=0, atol=[0.02, 0.45],
    )


@exercise("04.further")
def _():
    designs = [(np.array([1, 9]), np.array([0.5, 0.5])), (np.array([2, 3, 10]), np.array([0.2, 0.5, 0.3]))]
    grid = [(*design, alpha0) for design in designs for alpha0 in (0.5, 4.0)]

    def right(m, p, a):
        phi = np.array([inflation(k, a) for k in m])
        H, G = p * m, np.diag(p * phi * m)
        return [H.sum() ** 2 / G.sum(), H @ np.linalg.solve(G, H)]  # all weights one, and the best ones

    def phi(m, a):
        return (m + a) / (1 + a)

    return Exercise(
        "a function of the possible numbers of votes, their probabilities and alpha0 that returns two numbers: the worth with "
        "equal weights, and with the best ones",
        formula(grid, size=2),
        [f"{name}, {w} weights" for name in at(grid, "m", "prob", "alpha0") for w in ("equal", "the best")],
        np.ravel([right(*args) for args in grid]),
        [
            Mistake(lambda m, p, a: 2 * [p @ m / phi(p @ m, a)],
                    "That puts the mean number of votes into the formula. Average H and G over M instead."),
            Mistake(lambda m, p, a: [p @ m / (p @ phi(m, a)), np.nan],
                    "In G the inflation stands together with M, under one mean."),
            Mistake(lambda m, p, a: 2 * [p @ (m / phi(m, a))],
                    "With equal weights an item with many votes that hang together counts too much. That has a price."),
            Mistake(lambda m, p, a: right(m, p, a)[::-1], "The other way round: the best weights cannot be worth less."),
        ],
        "Find H = E(aM) and G = E(a^2 phi M), in units of the information of a label, for each choice of weights a.",
    )
