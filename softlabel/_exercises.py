"""What is asked in each chapter; :mod:`softlabel.exercises` marks the answers."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
from scipy import optimize, special, stats

from softlabel import datasets
from softlabel.dirichlet_multinomial import dm_logpmf
from softlabel.exercises import Exercise, Mistake, Unfit, at, call, exercise, formula, numbers
from softlabel.logistic import find_separation, fit_logistic
from softlabel.normal import TwoClassNormal


def _votes_pmf(m, tau, alpha0):
    """Probabilities of 0 to m positive votes."""
    k = np.arange(m + 1)
    return np.exp(dm_logpmf(np.column_stack([k, m - k]), np.tile([tau, 1 - tau], (m + 1, 1)), alpha0))


def _mean_var(p):
    k = np.arange(len(p))
    return p @ k, p @ k**2 - (p @ k) ** 2


def _inflation(m, alpha0, tau=0.3):
    """Variance of the votes over the binomial's, by summing over all counts."""
    return _mean_var(_votes_pmf(m, tau, alpha0))[1] / (m * tau * (1 - tau))


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
                    "The pairs of an item share labellers, so they are not independent and their variances do not just add up."),
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
            Mistake((None, ratio(full, 39)), "That is the spread ratio of all 39 votes. With seven kept, m is 7 there as well."),
            Mistake((full.mean() * 38 / 39, None),
                    "Votes must be kept without replacement: the same person's vote cannot be picked twice."),
            Mistake((full.mean() * 42 / 49, None), "The share is of pairs of different votes; there are 21 of them, not 49."),
            Mistake((None, ratio(mean, 7)), "The kept votes of one image vary from draw to draw. That belongs to the spread too."),
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
            Mistake(lambda mean, v: 1 - root(2 * mean * (1 - mean) - 2 * v), "That is the other root, of a crowd that is mostly wrong."),
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
        ["the share of easy items labelled wrongly", "the share of all items labelled wrongly", "whether the noise is harmless"],
        np.array([wrong[0], share @ wrong, harmless]),
        [
            Mistake((None, None, True),
                    "Fewer wrong labels are not the condition. Compare the joint distribution of kind and label with that of the truth."),
            Mistake((0.18, None, None), "Eighteen in a hundred belongs to the labeller who draws; this one always says positive."),
            Mistake((0.9, None, None), "That is how often she is right about easy items."),
            Mistake((None, wrong.mean(), None), "Six in ten items are easy: weight the two kinds by how common they are."),
            Mistake((None, share @ (2 * tau * (1 - tau)), None), "That is the share for the labeller who draws from the posterior."),
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
            Mistake(lambda tau, z, rng: rng.random(tau.shape) < tau, "She never copies: she is wrong as often as one who draws every label."),
            Mistake(lambda tau, z, rng: z, "She always copies: no label is ever wrong."),
            Mistake(copy_and(lambda tau, rng: rng.random(tau.shape) < 0.5),
                    "Where she does not copy she tosses a coin. She should draw from the posterior."),
            Mistake(copy_and(lambda tau, rng: tau > 0.5), "Where she does not copy she gives her best guess. She should draw."),
            Mistake(lambda tau, z, rng: np.where(np.arange(tau.shape[-1]) < tau.shape[-1] // 2, z, rng.random(tau.shape) < tau),
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
            Mistake(lambda r: 2 * r * (1 - r), "That is the share of wrong labels. Divide it by the Bayes error of such items."),
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
            Mistake(agree(lambda a: 1 / (1 + a), rest=False), "With rho = 1 they always agree, but your formula gives more than 1."),
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
        return 100_000 * _votes_pmf(7, tau, alpha0)

    return Exercise(
        "eight numbers: how many items got 0, 1, ..., 7 positive votes",
        measure, [f"the share of items with {k} positive votes" for k in range(8)], _votes_pmf(7, 0.7, 2.0),
        [
            Mistake(sampled(np.inf), "These votes are independent. After each draw, is another ball of its colour put in?"),
            Mistake(sampled(1.0), "That is alpha0 = 1. With how many balls does the urn start, and how many are added each time?"),
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
        return _mean_var(_votes_pmf(7, tau, alpha0) @ keep)[1]

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
            Mistake(variance(None, lambda k, m, a: k * (1 + a) / (k + a)), "The inflation is upside down: shared judgement adds variance."),
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
            Mistake(lambda r, a: r * (1 + a), "That is the effective number that is to be reached. How many labellers reach it?"),
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
        phi = np.array([_inflation(k, a) for k in m])
        H, G = p * m, np.diag(p * phi * m)
        return [H.sum() ** 2 / G.sum(), H @ np.linalg.solve(G, H)]  # all weights one, and the best ones

    def phi(m, a):
        return (m + a) / (1 + a)

    return Exercise(
        "a function of the possible numbers of votes, their probabilities and alpha0 that returns two numbers: the worth with "
        "equal weights, and with the best ones",
        formula(grid, size=2),
        [f"the worth with {w} weights, {name[13:]}" for name in at(grid, "m", "prob", "alpha0") for w in ("equal", "the best")],
        np.ravel([right(*args) for args in grid]),
        [
            Mistake(lambda m, p, a: 2 * [p @ m / phi(p @ m, a)],
                    "That puts the mean number of votes into the formula. Average H and G over M instead."),
            Mistake(lambda m, p, a: [p @ m / (p @ phi(m, a)), np.nan], "In G the inflation stands together with M, under one mean."),
            Mistake(lambda m, p, a: 2 * [p @ (m / phi(m, a))],
                    "With equal weights an item with many votes that hang together counts too much. That has a price."),
            Mistake(lambda m, p, a: right(m, p, a)[::-1], "The other way round: the best weights cannot be worth less."),
        ],
        "Find H = E(aM) and G = E(a^2 phi M), in units of the information of a label, for each choice of weights a.",
    )


# Chapter 5


@exercise("05.hand")
def _():
    y = np.linspace(-12, 12, 20_001)  # first canonical coordinate, delta = 2, so that eta = 2 y
    f = (stats.norm.pdf(y, 1) + stats.norm.pdf(y, -1)) / 2 * (y[1] - y[0])
    w = special.expit(2 * y) * special.expit(-2 * y)
    phi = 1 + 9 * (4 * w) ** 2

    def moment(weight):  # of x = (1, y, y2), where y2 is independent with variance 1
        m0, m2 = f @ weight, f @ (weight * y**2)
        return np.diag([m0, m2, m0])

    model = TwoClassNormal.canonical(2)
    J, fisher, inv = model.error_curvature(), model.fisher_information(), np.linalg.inv
    truth, votes = inv(fisher), inv(10 * fisher) @ moment(10 * phi * w) @ inv(10 * fisher)
    rule, slope = np.trace(J @ truth) / np.trace(J @ votes), truth[1, 1] / votes[1, 1]
    return Exercise(
        "two numbers, the relative efficiency of the rule and that of the slope",
        numbers(["rule", "slope"]), ["the efficiency of the rule", "the efficiency of the slope"], np.array([rule, slope]),
        [
            Mistake((slope, rule), "The two are exchanged."),
            Mistake((None, rule), "The slope's mean is another one: its entry in H and G has a square of the feature in it."),
            Mistake((10 / (f @ phi), None), "That is the plain mean of phi over all items. Items near the boundary tell more."),
            Mistake((10 * (f @ (w / phi)) / (f @ w), None), "That is the mean of 1/phi. H and G are averaged before the division."),
            Mistake((1 / rule, None), "Upside down."),
            Mistake((rule / 10, None), "That is one over the mean of phi. There are ten votes."),
        ],
        "Weight phi by tau1 tau2 for the rule, and for the slope by tau1 tau2 times the square of the feature.",
        rtol=2e-3,
    )


@exercise("05.code")
def _():
    grid = list(product((0.995, 0.899, 0.641, 0.343), (1.0, 10.0, np.inf)))

    def right(loss, alpha0):
        if np.isinf(alpha0):
            return np.ceil(1 / loss)
        a, loss = Fraction(alpha0), Fraction(loss)
        return next((m for m in range(1, 2000) if m * (1 + a) * loss >= m + a), np.inf)

    def solved(loss, a):
        """The real number of labellers; negative or infinite where none are enough."""
        return 1 / loss if np.isinf(a) else a / ((1 + a) * loss - 1) if (1 + a) * loss != 1 else np.inf

    kinds = formula(grid)

    def measure(function):
        return kinds(lambda *args: np.inf if (m := call(function, *args)) is None else m)

    return Exercise(
        "a function of the normal rule's loss (Efron's efficiency) and alpha0 that gives the smallest m, or infinity if there is none",
        measure, at(grid, "loss", "alpha0"), np.array([right(*args) for args in grid], dtype=float),
        [
            Mistake(lambda loss, a: np.floor(m) if (m := solved(loss, a)) > 0 else np.inf,
                    "You round down: with that many labellers it is not yet as good."),
            Mistake(lambda loss, a: 1, "Compare with the reciprocal of the loss, which is more than 1."),
            Mistake(lambda loss, a: m if (m := right(loss, a)) < np.inf else 1,
                    "Where no number of labellers is enough, you answer 1: argmax of an array of False is 0."),
            Mistake(lambda loss, a: m if (m := solved(loss, a)) > 0 else np.inf, "The number of labellers must be whole."),
        ],
        "How large can the worth become for this alpha0? Is the least worth that is needed below that?",
    )


@exercise("05.further")
def _():
    grid = list(product((4, 20, 40), (1, 5)))

    def excess(n, m, tie=0.5, cost=1 / 5, share=2):
        votes = m * n // share
        p = stats.binom.pmf(np.arange(votes + 1), votes, 3 / 5)
        positive = np.arange(votes + 1)
        return cost * (p[2 * positive < votes].sum() + tie * p[2 * positive == votes].sum())

    return Exercise(
        "a function of n and m that gives the excess error",
        formula(grid), at(grid, "n", "m"), np.array([excess(*args) for args in grid]),
        [
            Mistake(lambda n, m: excess(n, m, tie=1), "A tie is not always lost: one of two answers is right."),
            Mistake(lambda n, m: excess(n, m, tie=0), "A tie is not always won."),
            Mistake(lambda n, m: excess(n, m, cost=1), "A wrong majority does not cost 1: it is still right two times in five."),
            Mistake(lambda n, m: excess(n, m, cost=2 / 5), "What does the wrong answer for a kind cost *more* than the right one?"),
            Mistake(lambda n, m: excess(n, m, share=1), "Each kind has half of the items, so half of the votes."),
        ],
        "How often does the majority of a kind's votes go wrong, and what does that cost? Both kinds are alike.",
    )


# Chapter 6


@exercise("06.hand")
def _():
    chi2 = stats.chi2(2)
    c = chi2.std() / chi2.mean() / np.sqrt(1000)
    return Exercise(
        "one number, the relative standard error of the ratio",
        numbers(["se"]), ["the relative standard error"], np.array([np.hypot(c, c)]),
        [
            Mistake(2 * c**2, "That is a relative variance; the standard error is its square root."),
            Mistake(c, "That is the relative standard error of one mean. Both means vary."),
            Mistake(2 * c, "Independent errors add up in squares."),
            Mistake(np.sqrt(2) * c * chi2.mean(), "Relative to the mean, which is 2 for two degrees of freedom."),
            Mistake(np.sqrt(2) * c * np.sqrt(1000), "That is for a single run. A mean of 1,000 runs is sharper."),
        ],
        "Find the relative standard error of each mean first.",
        rtol=0.02,
    )


@exercise("06.code")
def _():
    limit = 5 * 11 / 15
    rel = {p: np.sqrt(2 * stats.chi2(p).var() / 2000) / p for p in (2, 6)}  # of the ratio of two means of chi-squared variables

    def measure(answer):
        re, se, z = numbers(range(3))(answer)
        return np.array([re, se, z if np.isnan(z) or np.isnan(se) else abs(z) * se / max(abs(re - limit), 1e-9)])

    def reported(p, runs=2000, distance=lambda re, se: (re - limit) / se):
        se = rel[p] * np.sqrt(2000 / runs) * limit
        return (limit + se, se, distance(limit + se, se))

    return Exercise(
        "three numbers: the relative efficiency, its standard error, and the distance from the limit in standard errors",
        measure, ["the relative efficiency", "its standard error", "the distance in standard errors"],
        np.array([limit, rel[6] * limit, 1]),
        [
            Mistake(reported(2), "The standard error is that of two features. Set p = 6.", parts=[1]),
            Mistake(reported(6, 1000), "The standard error is that of 1,000 training sets.", parts=[1]),
            Mistake(reported(6, distance=lambda re, se: re - limit), "Divide the distance by the standard error.", parts=[2]),
            Mistake(reported(6, distance=lambda re, se: (re - limit) / (se / np.sqrt(2000))),
                    "re_se is already the standard error of the mean ratio; do not divide by the root of the runs again.", parts=[2]),
        ],
        "Call simulate_relative_efficiency with one delta, one m and one alpha0; the frame has re, re_se and are.",
        rtol=[0, 0.17, 0.08], atol=[4 * rel[6] * limit, 0, 0],
    )


@exercise("06.further")
def _():
    deltas, cells, runs = 4, 12, 1000
    shared, separate = deltas * runs * (cells + 1), deltas * runs * cells * 2
    words = {1: ["larger", "smaller"], 2: ["shared", "separate"]}
    return Exercise(
        'three values: how many more fits, "larger" or "smaller" for the standard error of a cell, "shared" or "separate" for the '
        "design you would use for a ratio of two cells",
        numbers(["fits", "se", "design"], words), ["the number of fits", "the standard error of a cell", "the design for a ratio"],
        np.array([separate - shared, 0, 0]),
        [
            Mistake((separate, None, None), "That is the whole cost of the separate design. How many *more* are they?"),
            Mistake(((separate - shared) / deltas, None, None), "That is for one class distance. Table 1 has four."),
            Mistake((deltas * runs * cells, None, None), "The shared design already has one of the truth fits for each training set."),
            Mistake((None, "smaller", None), "Errors of numerator and denominator that go together partly cancel in their ratio."),
            Mistake((None, None, "separate"), "In a ratio of two cells with one numerator, what happens to that numerator?"),
        ],
        "Count the fits for one training set first.",
        rtol=1e-9,
    )


# Chapter 7


@exercise("07.hand")
def _():
    grid = [(m, tau, a) for m in (2, 7) for tau in (0.3, 0.9) for a in (1.0, 5.0, np.inf)]

    def right(m, tau, a):
        k = np.arange(m + 1)
        score = special.comb(k, 2) / tau + special.comb(m - k, 2) / (1 - tau) - comb(m, 2)
        return _votes_pmf(m, tau, a) @ score

    return Exercise(
        "a function of m, tau1 and alpha0 that gives the mean of the score of one lesion",
        formula(grid), at(grid, "m", "tau1", "alpha0"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda m, tau, a: 0, "That is the mean for multinomial votes, alpha0 = infinity."),
            Mistake(lambda m, tau, a: comb(m, 2) * (1 + 1 / (1 + a)), "The last term of the score is missing: at alpha0 = infinity the mean is 0."),
            Mistake(lambda m, tau, a: comb(m, 2) / a, "The correlation of two votes is not 1 / alpha0."),
            Mistake(lambda m, tau, a: m * (m - 1) / (1 + a), "How many pairs have m votes?"),
            Mistake(lambda m, tau, a: comb(m, 2) / (1 + a) * tau * (1 - tau), "Each term is divided by the posterior of its class."),
        ],
        "The mean of S(S - 1) / 2 is the number of pairs times the probability that both votes of a pair are for the class.",
        atol=1e-8,
    )


@exercise("07.code")
def _():
    try:
        data = datasets.load_gastroenterology()
    except datasets.DataFileError:
        data = datasets.gastroenterology_stand_in()
    X = data.X[datasets.GASTRO_FEATURES]
    X = (X - X.mean()) / X.std()
    labels = data.votes.pivot(index="item", columns="annotator", values="label").loc[X.index] == "resection"

    def votes(columns):
        k = labels[columns].sum(axis=1).to_numpy()
        return np.column_stack([k, len(columns) - k])

    def alpha0(counts, tau):
        loss = lambda log: -dm_logpmf(counts, tau, np.exp(log)).sum()  # noqa: E731
        return np.exp(optimize.minimize_scalar(loss, bounds=(-4, 12), method="bounded", options={"xatol": 1e-8}).x)

    first, last = votes(labels.columns[:3]), votes(labels.columns[3:])
    tau = fit_logistic(X, data.counts).posterior(X)
    truth = fit_logistic(X, data.y).posterior(X)
    right = [alpha0(counts, tau) for counts in (first, last)]
    own = [alpha0(counts, fit_logistic(X, counts).posterior(X)) for counts in (first, last)]
    return Exercise(
        "two numbers, alpha0 of the beginners and of the experts",
        numbers(["beginners", "experts"]), ["the beginners", "the experts"], np.array(right),
        [
            Mistake(right[::-1], "The groups are exchanged: clinicians 1 to 3 are the beginners."),
            Mistake([alpha0(counts, truth) for counts in (first, last)], "The coefficients are those of the true labels. Hold those of the votes."),
            Mistake(own, "The coefficients were fitted to each group's votes. Hold those of the fit to all votes."),
            Mistake(2 * [alpha0(data.counts.to_numpy(), tau)], "That is the estimate from all seven. Count the votes of a group only."),
        ],
        "For each group count its own positive votes, then call estimate_alpha0 with the posterior of the fit to all votes.",
        rtol=0.015,
    )


@exercise("07.further")
def _():
    def measure(answer):
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise Unfit("There are not two arrays.")
        counts, tau = (np.atleast_1d(np.asarray(a, dtype=float)) for a in answer)
        if counts.ndim != 2 or counts.shape[1] != 2 or tau.shape != (len(counts),):
            raise Unfit(f"The shapes are {counts.shape} and {tau.shape}.")
        if not ((tau > 0) & (tau < 1)).all() or not (counts >= 0).all() or not (counts.sum(axis=1) > 0).all():
            raise Unfit("Posteriors lie between 0 and 1, and each item needs votes that are not negative.")
        omega = np.geomspace(1e-5, 1e3, 4001)
        slope = np.zeros_like(omega)
        for s, t in zip(counts, tau):
            k = np.arange(1, s.sum())[:, None]
            up = sum((j / (p + j * omega)).sum(axis=0) for v, p in ((s[0], t), (s[1], 1 - t)) if len(j := k[: max(int(v) - 1, 0)]))
            slope += up - (k / (1 + k * omega)).sum(axis=0)
        if np.abs(slope).max() < 1e-9:
            raise Unfit("Single votes say nothing about alpha0.")
        signs = np.sign(slope)
        changes = (signs[1:] != signs[:-1]).sum()
        return np.array([float(changes > 1), float(changes == 1), float(changes == 0 and slope[0] < 0)])

    return Exercise(
        "two arrays: votes (n, 2), and the posterior (n,) of the first class, for which the score has several roots",
        measure, ["the score has fewer than two roots"] * 3, np.array([1.0, 0.0, 0.0]),
        [
            Mistake((np.array([[7, 0], [0, 7], [4, 3]]), np.full(3, 0.5)),
                    "This score has one root. Items with equally many votes hardly ever give more: let their numbers differ."),
            Mistake((np.array([[2, 1], [1, 2]]), np.full(2, 0.5)), "This score is negative everywhere: the votes are split and none agree."),
            Mistake((np.array([[7, 0], [0, 7]]), np.full(2, 0.5)), "This score has no root at all: add items whose votes are split."),
        ],
        "Some items should speak against agreement near omega = 0 and fall silent soon, others speak for it farther out.",
    )


# Chapter 8


@exercise("08.hand")
def _():
    def measure(answer):
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise Unfit("There are not two arrays.")
        X, counts = (np.asarray(a, dtype=float) for a in answer)
        if X.ndim != 2 or X.shape[1] != 2 or counts.shape != X.shape:
            raise Unfit(f"The shapes are {X.shape} and {counts.shape}.")
        try:
            kind = find_separation(X, counts)
        except ValueError as error:
            raise Unfit(f"{error}.") from None
        rank = np.linalg.matrix_rank(np.column_stack([np.ones(len(X)), X]))
        return np.array([["none", "quasi", "complete"].index(kind), 3 - rank, len(X)])

    corners, line = np.array([[0.0, 0.0], [1, 0], [0, 1]]), np.array([[0.0, 0.0], [1, 1], [2, 2]])
    split, pure = np.ones((3, 2)), np.array([[2, 0], [0, 2], [2, 0]])
    square = np.array([[0.0, 0.0], [1, 1], [0, 1], [1, 0]])
    return Exercise(
        "two arrays of equally many rows: features (n, 2) and votes (n, 2)",
        measure, ["whether there is a maximum", "whether there is only one", "the number of items"], np.array([0, 0, 3]),
        [
            Mistake((corners, pure), "These votes are separated, so there is no maximum. Can an item have a vote on each side?", parts=[0]),
            Mistake((corners, [[1, 1], [1, 1], [2, 0]]), "Some line has no vote on its wrong side: it runs through the split items.",
                    parts=[0]),
            Mistake((line, split), "The items lie on a line, so different coefficients give the same fit: one maximum is many.", parts=[1]),
            Mistake((square, np.array([[1, 0], [1, 0], [0, 1], [0, 1]])), "There is one maximum. Fewer items are enough.", parts=[0, 1, 2]),
            Mistake((np.vstack([corners, [[1, 1]]]), np.ones((4, 2))), "There is one maximum. Fewer items are enough."),
        ],
        "Every line in the plane of the two features must have a vote on its wrong side.",
        rtol=0, atol=0.1,
    )


def _tumours():
    data = datasets.load_breast_cancer()
    X = data.X.filter(like="mean ")
    return ((X - X.mean()) / X.std()).to_numpy(), data.y.to_numpy()


def _newton(X, y, steps, ridge=0.0):
    """Plain Newton from zero; the ridge leaves the intercept alone."""
    x = np.column_stack([np.ones(len(X)), X])
    penalty = np.diag([0.0] + [ridge] * X.shape[1])
    b = np.zeros(x.shape[1])
    for _ in range(steps):
        tau = special.expit(x @ b)
        b += np.linalg.solve((x.T * (tau * (1 - tau))) @ x + penalty, x.T @ (y - tau) - penalty @ b)
    return b


@exercise("08.code")
def _():
    X, y = _tumours()
    b = {steps: _newton(X[:50], y[:50], steps) for steps in (10, 25)}
    growth = np.abs(b[25]).max() / np.abs(b[10]).max()
    return Exercise(
        "two numbers: the largest coefficient at 25 steps over that at 10, and how many standard errors of the second fit are finite",
        numbers(["growth", "finite"]), ["the growth of the largest coefficient", "the number of finite standard errors"],
        np.array([growth, 0]),
        [
            Mistake((1 / growth, None), "Upside down: 25 steps over 10."),
            Mistake((1, None), "The two fits are the same. Did max_iter reach both?"),
            Mistake((np.abs(b[25] - b[10]).max(), None), "That is a difference; give the ratio."),
            Mistake((None, 11), "Where there is no maximum there is no standard error. Look at the values that stderr returns."),
        ],
        "Use fit_logistic(X[first], y[first], max_iter=...), with the coefficients' absolute values.",
        rtol=0.03, atol=1e-6,
    )


@exercise("08.further")
def _():
    X, y = _tumours()
    rng = np.random.default_rng(50)
    splits = [rng.permutation(len(X)) for _ in range(100)]
    bayes = (fit_logistic(X, y).predict(X) != y).mean()

    def error(strength):
        wrong = []
        for s in splits:
            b = _newton(X[s[:50]], y[s[:50]], 12, strength)
            wrong.append(((b[0] + X[s[50:]] @ b[1:] > 0) != y[s[50:]]).mean())
        return np.mean(wrong)

    tuned = {strength: error(strength) for strength in np.geomspace(0.1, 100, 7)}
    best = min(tuned.values())

    def measure(answer):
        truth, votes, re = numbers(range(3))(answer)
        return np.array([truth, float(bayes < votes < truth), re * (votes - bayes) / (truth - bayes)])

    def excess(votes):
        return (best - bayes) / (votes - bayes)

    return Exercise(
        "three numbers: the error of the best ridge on true labels, the error of the best rule from votes, and their relative efficiency",
        measure, ["the error of the best ridge", "the best error from votes", "the relative efficiency"], np.array([best, 1, 1]),
        [
            Mistake((tuned[100.0], 0.06, 1), "That is the strongest ridge, which is not the best.", parts=[0]),
            Mistake((tuned[0.1], 0.06, 1), "That is the weakest ridge, which is not the best.", parts=[0]),
            Mistake((1 - best, 0.06, 1), "That is the share of right answers; score gives it, the error is one minus it.", parts=[0]),
            Mistake((best, best + 0.01, 1), "The best rule from votes must do better than that.", parts=[1]),
            Mistake((best, 0.06, 1 / excess(0.06)), "Upside down: the error of the truth stands above.", parts=[2]),
        ],
        "Efficiency compares excess errors: take the Bayes error off both first.",
        rtol=[0.02, 0, 0.03], atol=[0, 1e-6, 0],
    )


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
        b = np.asarray(call(function, X.copy(), z.copy()), dtype=float)
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
            Mistake(each(lambda a, b: _newton(a, b, 1)), "That is one step. Go on until nothing changes."),
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
            Mistake(lambda T, o, W: o * W, "That is where the maximum in the chapter's formula switches. Here nothing is hidden."),
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
