"""Exercises on rules and on the paper's studies: chapters 5 to 8."""

import warnings
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
from scipy import optimize, special, stats

from softlabel import datasets
from softlabel.book import standin
from softlabel.validation import SeparationWarning
from softlabel.book.exercises.votes import votes_pmf
from softlabel.vote_models import dm_logpmf
from softlabel.book.exercises.marking import Exercise, Mistake, Unfit, at, call, exercise, floats, formula, numbers
from softlabel.logistic import fit_logistic
from softlabel.normal import TwoClassNormal
from softlabel.separation import find_separation


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
            Mistake((10 / (f @ phi), None),
                    "That is the plain mean of phi over all items. Items near the boundary tell more."),
            Mistake((10 * (f @ (w / phi)) / (f @ w), None),
                    "That is the mean of 1/phi. H and G are averaged before the division."),
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
        "a function of the loss (Efron's efficiency) and alpha0 that gives the smallest m, or infinity if there is none",
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
            Mistake(lambda n, m: excess(n, m, cost=1),
                    "A wrong majority does not cost 1: it is still right two times in five."),
            Mistake(lambda n, m: excess(n, m, cost=2 / 5),
                    "What does the wrong answer for a kind cost *more* than the right one?"),
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
    rel = {p: np.sqrt(2 * stats.chi2(p).var() / 2000) / p for p in (2, 6)}  # ratio of two chi-squared means

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
                    "re_se is a standard error already; do not divide by the root of the runs again.", parts=[2]),
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
        'three values: how many more fits, "larger" or "smaller" for the standard error of a cell, "shared" or "separate" for '
        "the design you would use for a ratio of two cells",
        numbers(["fits", "se", "design"], words),
        ["the number of fits", "the standard error of a cell", "the design for a ratio"],
        np.array([separate - shared, 0, 0]),
        [
            Mistake((separate, None, None), "That is the whole cost of the separate design. How many *more* are they?"),
            Mistake(((separate - shared) / deltas, None, None), "That is for one class distance. Table 1 has four."),
            Mistake((deltas * runs * cells, None, None),
                    "The shared design already has one of the truth fits for each training set."),
            Mistake((None,
                    "smaller", None), "Errors of numerator and denominator that go together partly cancel in their ratio."),
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
        return votes_pmf(m, tau, a) @ score

    return Exercise(
        "a function of m, tau1 and alpha0 that gives the mean of the score of one lesion",
        formula(grid), at(grid, "m", "tau1", "alpha0"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda m, tau, a: 0, "That is the mean for multinomial votes, alpha0 = infinity."),
            Mistake(lambda m, tau, a: comb(m, 2) * (1 + 1 / (1 + a)),
                    "The last term of the score is missing: at alpha0 = infinity the mean is 0."),
            Mistake(lambda m, tau, a: comb(m, 2) / a, "The correlation of two votes is not 1 / alpha0."),
            Mistake(lambda m, tau, a: m * (m - 1) / (1 + a), "How many pairs have m votes?"),
            Mistake(lambda m, tau, a: comb(m, 2) / (1 + a) * tau * (1 - tau),
                    "Each term is divided by the posterior of its class."),
        ],
        "The mean of S(S - 1) / 2 is the number of pairs times the probability that both votes of a pair are for the class.",
        atol=1e-8,
    )


@exercise("07.code")
def _():
    try:
        data = datasets.load_gastroenterology()
    except datasets.DataFileError:
        data = standin.gastroenterology_stand_in()
    X = data.X[standin.GASTRO_FEATURES]
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
            Mistake([alpha0(counts, truth) for counts in (first, last)],
                    "The coefficients are those of the true labels. Hold those of the votes."),
            Mistake(own, "The coefficients were fitted to each group's votes. Hold those of the fit to all votes."),
            Mistake(2 * [alpha0(data.counts.to_numpy(), tau)],
                    "That is the estimate from all seven. Count the votes of a group only."),
        ],
        "For each group count its own positive votes, then call estimate_alpha0 with the posterior of the fit to all votes.",
        rtol=0.015,
    )


@exercise("07.further")
def _():
    def measure(answer):
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise Unfit("There are not two arrays.")
        counts, tau = (floats(a) for a in answer)
        if counts.ndim != 2 or counts.shape[1] != 2 or tau.shape != (len(counts),):
            raise Unfit(f"The shapes are {counts.shape} and {tau.shape}.")
        if not ((tau > 0) & (tau < 1)).all() or not (counts >= 0).all() or not (counts.sum(axis=1) > 0).all():
            raise Unfit("Posteriors lie between 0 and 1, and each item needs votes that are not negative.")
        omega = np.geomspace(1e-5, 1e3, 4001)
        slope = np.zeros_like(omega)
        for s, t in zip(counts, tau):
            k = np.arange(1, s.sum())[:, None]
            slope -= (k / (1 + k * omega)).sum(axis=0)
            for v, p in ((s[0], t), (s[1], 1 - t)):
                agree = np.arange(1, v)[:, None]
                slope += (agree / (p + agree * omega)).sum(axis=0)
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
            Mistake((np.array([[2, 1], [1, 2]]), np.full(2, 0.5)),
                    "This score is negative everywhere: the votes are split and none agree."),
            Mistake((np.array([[7, 0], [0, 7]]), np.full(2, 0.5)),
                    "This score has no root at all: add items whose votes are split."),
        ],
        "Some items should speak against agreement near omega = 0 and fall silent soon, others speak for it farther out.",
    )


# Chapter 8


@exercise("08.hand")
def _():
    def measure(answer):
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise Unfit("There are not two arrays.")
        X, counts = (floats(a) for a in answer)
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
            Mistake((corners, pure),
                    "These votes are separated, so there is no maximum. Can an item have a vote on each side?", parts=[0]),
            Mistake((corners, [[1, 1], [1, 1], [2, 0]]),
                    "Some line has no vote on its wrong side: it runs through the split items.", parts=[0]),
            Mistake((line, split),
                    "The items lie on a line, so different coefficients give the same fit: one maximum is many.", parts=[1]),
            Mistake((square, np.array([[1, 0], [1, 0], [0, 1], [0, 1]])), "There is one maximum. Fewer items are enough."),
        ],
        "Every line in the plane of the two features must have a vote on its wrong side.",
        rtol=0, atol=0.1,
    )


def _tumours():
    data = datasets.load_breast_cancer()
    X = data.X.filter(like="mean ")
    return ((X - X.mean()) / X.std()).to_numpy(), data.y.to_numpy()


def newton(X, y, steps, ridge=0.0):
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeparationWarning)
        # How the steps are taken is the package's choice, and so is the number.
        b = {steps: fit_logistic(X[:50], y[:50], max_iter=steps).coef for steps in (10, 25)}
    growth = np.abs(b[25]).max() / np.abs(b[10]).max()
    return Exercise(
        "two numbers: the largest coefficient at 25 steps over that at 10, and how many standard errors of the second fit are "
        "finite",
        numbers(["growth", "finite"]), ["the growth of the largest coefficient", "the number of finite standard errors"],
        np.array([growth, 0]),
        [
            Mistake((1 / growth, None), "Upside down: 25 steps over 10."),
            Mistake((1, None), "The two fits are the same. Did max_iter reach both?"),
            Mistake((np.abs(b[25] - b[10]).max(), None), "That is a difference; give the ratio."),
            Mistake((None, 11),
                    "Where there is no maximum there is no standard error. Look at the values that stderr returns."),
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
            b = newton(X[s[:50]], y[s[:50]], 12, strength)
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
        "three numbers: the error of the best ridge on true labels, that of the best rule from votes, and their efficiency",
        measure, ["the error of the best ridge", "the best error from votes", "the relative efficiency"],
        np.array([best, 1, 1]),
        [
            Mistake((tuned[100.0], 0.06, 1), "That is the strongest ridge, which is not the best.", parts=[0]),
            Mistake((tuned[0.1], 0.06, 1), "That is the weakest ridge, which is not the best.", parts=[0]),
            Mistake((1 - best, 0.06, 1),
                    "That is the share of right answers; score gives it, the error is one minus it.", parts=[0]),
            Mistake((best, best + 0.01, 1), "The best rule from votes must do better than that.", parts=[1]),
            Mistake((best, 0.06, 1 / excess(0.06)), "Upside down: the error of the truth stands above.", parts=[2]),
        ],
        "Efficiency compares excess errors: take the Bayes error off both first.",
        rtol=[0.02, 0, 0.03], atol=[0, 1e-6, 0],
    )
