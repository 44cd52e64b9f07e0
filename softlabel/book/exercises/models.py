"""Exercises on other models of votes: more classes, unequal numbers of votes, the joint likelihood."""

from functools import cache
from itertools import product

import numpy as np
from scipy import optimize, special, stats

from softlabel.book.exercises.marking import Exercise, Mistake, at, exercise, formula, numbers


# More classes


@exercise("classes.hand")
def _():
    grid = list(product((0.2, 0.5), (0.1, 0.4), (1, 5), (0.5, 10.0)))

    def worth(m, a):
        return m * m / (m + m * (m - 1) / (1 + a))  # one over the variance of the mean of m votes of correlation 1 / (1 + a)

    def right(t1, tg, m, a):  # delta method on log(mean S_1 / mean S_g)
        cov = np.array([[t1 * (1 - t1), -t1 * tg], [-t1 * tg, tg * (1 - tg)]])
        slope = np.array([1 / t1, -1 / tg])
        return slope @ cov @ slope / worth(m, a)

    return Exercise(
        "a function of tau1, taug, m and alpha0 that gives n times the variance of the first intercept",
        formula(grid), at(grid, "tau1", "taug", "m", "alpha0"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda t1, tg, m, a: (1 / t1 + 1 / tg) / m, "That is for independent votes."),
            Mistake(lambda t1, tg, m, a: (1 / t1 + 1 / tg) * worth(m, a), "More votes must make the variance smaller."),
            Mistake(lambda t1, tg, m, a: 1 / (t1 * (1 - t1)) / worth(m, a),
                    "That is the log-odds of class 1 against all others. The intercept compares it with the last class."),
            Mistake(lambda t1, tg, m, a: t1 * (1 - t1) / worth(m, a),
                    "That is the variance of the share of class 1, not of its log ratio to the last class."),
            Mistake(lambda t1, tg, m, a: 1 / t1 + 1 / tg, "That is for one true label."),
        ],
        "The first diagonal element of the inverse of V, over the worth of the votes.",
    )


@exercise("classes.code")
def _():
    means = np.array([[1.2, 0.2], [-0.8, 1.0], [0.0, -1.0]])
    prior = np.array([0.3, 0.3, 0.4])
    axis = np.linspace(-7, 7, 281)
    x = np.array([(1.0, u, v) for u in axis for v in axis])
    joint = np.exp(-((x[:, None, 1:] - means) ** 2).sum(axis=2) / 2) / (2 * np.pi) * prior
    f = joint.sum(axis=1) * (axis[1] - axis[0]) ** 2
    t = joint / joint.sum(axis=1, keepdims=True)

    def information(weight):
        return (x.T * (f * weight)) @ x

    def first(info):
        return np.diag(np.linalg.inv(info))[:3]

    blocks = [[information(t[:, i] * ((i == k) - t[:, k])) for k in range(2)] for i in range(2)]
    full, pair = first(np.block(blocks)), first(information(t[:, 0] * t[:, 2] / (t[:, 0] + t[:, 2])))
    share = t[:, 0] / (t[:, 0] + t[:, 2])
    return Exercise(
        "three numbers, the ratios of variances for the intercept and the two slopes of class 1",
        numbers(range(3)), ["the intercept", "the first slope", "the second slope"], full / pair,
        [
            Mistake(pair / full, "Upside down: who uses less has the larger variance."),
            Mistake(np.sqrt(full / pair), "Those are ratios of standard errors."),
            Mistake(full / first(information(share * (1 - share))),
                    "Items of class 2 are not in her data: the share of classes 1 and 3 belongs in the weight."),
            Mistake(full / first(information(t[:, 0] * (1 - t[:, 0]))),
                    "That compares class 1 with all others, which is another regression."),
            Mistake(np.diag(information(t[:, 0] * t[:, 2] / (t[:, 0] + t[:, 2]))) / np.diag(blocks[0][0]),
                    "Invert the information matrices; a diagonal element alone is as if other coefficients were known."),
        ],
        "The binary fit sees an item with probability tau1 + tau3; its weight is then r (1 - r), r = tau1 / (tau1 + tau3).",
        rtol=1e-3,
    )


@exercise("classes.further")
def _():
    grid = list(product((0.1, 0.4, 0.8), (0.5, 1.0, 20.0)))

    def right(t1, a):  # the Betas that have the means and variances of the Dirichlet's shares
        rest = a * (1 - t1)
        first = t1 * (1 - t1) / stats.beta(a * t1, rest).var() - 1
        second = 0.25 / stats.beta(rest / 2, rest / 2).var() - 1
        return first, second

    return Exercise(
        "a function of tau1 and alpha0 that gives the two numbers (alpha_a, alpha_b)",
        formula(grid, 2), [name for one in at(grid, "tau1", "alpha0") for name in (one, one)],
        np.concatenate([right(*args) for args in grid]),
        [
            Mistake(lambda t1, a: (a, a),
                    "Then a small rest would be split too finely: what are the parameters of its shares?"),
            Mistake(lambda t1, a: (a * t1, a * (1 - t1)),
                    "The first share has all of alpha0: its two parameters add up to it."),
            Mistake(lambda t1, a: (a, a / (1 - t1)),
                    "Upside down: the parameters of classes 2 and 3 add up to less than alpha0."),
            Mistake(lambda t1, a: (a, a * t1), "The rest is what class 1 leaves."),
        ],
        "What are the parameters of the share of class 2 in the rest, when the whole is a Dirichlet? Add them.",
        rtol=1e-6,
    )


# Unequal numbers of votes


def variance_of_sum(m, alpha0):
    """Of m votes, in units of tau (1 - tau): pair by pair."""
    return m + m * (m - 1) / (1 + alpha0)


def counted_once(m, prob, alpha0):
    return (prob @ m) ** 2 / (prob @ variance_of_sum(m, alpha0))


@exercise("unequal.hand")
def _():
    grid = list(product((0.5, 2.0, 12.0), (0.5, 3.0, 50.0)))

    def right(lam, a):
        m = np.arange(200.0)
        return counted_once(m, stats.poisson.pmf(m, lam), a)

    def equal(lam, a):
        return lam * (1 + a) / (lam + a)

    def best_weights(lam, a):
        m = np.arange(200.0)
        return stats.poisson.pmf(m, lam) @ (m * (1 + a) / (m + a))

    return Exercise(
        "a function of the mean number lam and alpha0 that gives the worth of an item",
        formula(grid), at(grid, "lam", "alpha0"), np.array([right(*args) for args in grid]),
        [
            Mistake(equal, "That is for exactly lam votes on each item. The square of M has a larger mean than lam squared."),
            Mistake(lambda lam, a: lam**2 * (1 + a) / (lam + a * lam),
                    "The variance of a Poisson number is lam; its mean square is larger by lam squared."),
            Mistake(best_weights, "That is with the best weights."),
            Mistake(lambda lam, a: equal(lam, a) * -np.expm1(-lam), "Items without votes are in the mean of M already."),
        ],
        "Put the first two moments of a Poisson number into (a).",
    )


@exercise("unequal.code")
def _():
    cases = [([0, 1, 2, 20], [0.1, 0.4, 0.3, 0.2], 0.25), ([1, 10], [0.5, 0.5], 1.0), ([1, 3, 50], [0.6, 0.3, 0.1], 4.0),
             ([2, 5], [0.5, 0.5], 30.0)]
    grid = [(np.array(m), np.array(prob), a) for m, prob, a in cases]

    def search(m, prob, a, value=lambda m, c, prob, a: counted_once(np.minimum(m, c), prob, a)):
        worth = [round(value(m, c, prob, a), 12) for c in range(1, m.max() + 1)]
        return 1 + worth.index(max(worth)), max(worth)

    def left_out(m, c, prob, a):
        return counted_once(np.where(m > c, 0, m), prob, a) if (prob @ np.where(m > c, 0, m)) > 0 else 0.0

    def best_weights(m, c, prob, a):
        return prob @ (np.minimum(m, c) * (1 + a) / (np.minimum(m, c) + a))

    return Exercise(
        "a function of m, prob and alpha0 that gives two numbers, the best cap and the worth",
        formula(grid, 2), [f"{what} for m = {m}" for m, *_ in cases for what in ("the cap", "the worth")],
        np.concatenate([search(*args) for args in grid]),
        [
            Mistake(lambda m, prob, a: (m.max(), counted_once(m, prob, a)), "Nothing is thrown away: try smaller caps."),
            Mistake(lambda m, prob, a: (search(m, prob, a)[0] - 1, search(m, prob, a)[1]),
                    "The cap is one too small: Python counts from 0, caps from 1."),
            Mistake(lambda m, prob, a: search(m, prob, a, left_out),
                    "An item with more than c votes is not left out; it keeps c of them."),
            Mistake(lambda m, prob, a: search(m, prob, a, best_weights),
                    "That is with the best weights, for which no vote is ever too many. Every vote counts once here."),
        ],
        "Replace m by the smaller of m and c in (a), for each c from 1 to the largest m.",
    )


@exercise("unequal.further")
def _():
    grid = list(product((0.1, 0.5, 0.7), (0.5, 2.0, 20.0)))

    def right(t, a):  # over p ~ Beta, by quadrature in the quantile
        u, w = special.roots_jacobi(40, a * (1 - t) - 1, a * t - 1)
        p, w = (u + 1) / 2, w / w.sum()
        split = 2 * p * (1 - p)
        return w @ (2 * p + split * p - (2 + split) * t)

    def after(t, a, third):
        return 2 * a * t * (1 - t) / (1 + a) * (third - t)

    return Exercise(
        "a function of tau and alpha0 that gives the mean of S1 - M tau",
        formula(grid), at(grid, "tau", "alpha0"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda t, a: 0,
                    "That is so for independent votes. After a split, the third vote no longer has the mean tau."),
            Mistake(lambda t, a: after(t, a, 0.5), "After a split the third vote is not a fair coin: tau still counts."),
            Mistake(lambda t, a: after(t, a, (1 + a * t) / (2 + a)) * (1 + a) / a,
                    "Correlated votes disagree less often than with probability 2 tau (1 - tau)."),
            Mistake(lambda t, a: after(t, a, (1 + a * t) / (2 + a)) / 2,
                    "There are two orders in which two votes can disagree."),
            Mistake(lambda t, a: -after(t, a, (1 + a * t) / (2 + a)),
                    "The sign: is the third vote nearer to one half, or farther?"),
        ],
        "The first two votes have mean 2 tau. How likely is the third asked for, and how likely is it positive then?",
    )


# The joint likelihood


def joint_information(eta, m, alpha0, h=1e-4):
    """Mean square of the derivative of the log-probability by eta, over all counts: by log-gamma functions and differences."""
    s = np.arange(m + 1)

    def logpmf(eta):
        a, b = alpha0 * special.expit(eta), alpha0 * special.expit(-eta)
        return np.log(special.comb(m, s)) + special.betaln(a + s, b + m - s) - special.betaln(a, b)

    return np.exp(logpmf(eta)) @ ((logpmf(eta + h) - logpmf(eta - h)) / (2 * h)) ** 2


def logistic_information(eta, m, alpha0):
    return m**2 / variance_of_sum(m, alpha0) * special.expit(eta) * special.expit(-eta)


@exercise("joint.hand")
def _():
    grid = list(product((0.05, 0.5, 0.8), (0.2, 1.0, 10.0)))

    def right(t, a):
        return logistic_information(special.logit(t), 2, a) / joint_information(special.logit(t), 2, a)

    def information(t, a):
        return right(t, a), joint_information(special.logit(t), 2, a)

    return Exercise(
        "a function of tau and alpha0 that gives the efficiency with two votes",
        formula(grid), at(grid, "tau", "alpha0"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda t, a: 1 / right(t, a), "Upside down: the likelihood is the sharper of the two."),
            Mistake(lambda t, a: information(t, a)[1], "That is the information; compare it with that of the logistic score."),
            Mistake(lambda t, a: right(t, a) * (2 + a) / (1 + a), "The variance of two correlated votes is larger by phi."),
            Mistake(lambda t, a: right(t, 1 / a), "Here omega is 1 / alpha0, not alpha0."),
            Mistake(lambda t, a: 1, "That is so at tau = 1/2. Elsewhere the score is not linear in the votes."),
            Mistake(lambda t, a: right(t, a) * t * (1 - t), "There is q squared in the information, and one q above."),
        ],
        "The information has four terms: a first and a second vote for either class.",
        rtol=1e-5,
    )


@exercise("joint.code")
def _():
    y = np.linspace(-7, 7, 281)
    f = stats.norm.pdf(y, 1) + stats.norm.pdf(y, -1)

    def efficiency(a, weight=1.0):
        votes = sum(f * weight * logistic_information(2 * y, 7, a))
        return votes / (f * weight @ np.array([joint_information(2 * v, 7, a) for v in y]))

    def lowest(weight=1.0):
        found = optimize.minimize_scalar(lambda log: efficiency(np.exp(log), weight), bounds=(-2, 3), method="bounded",
                                         options={"xatol": 1e-4})
        return np.exp(found.x), found.fun

    alpha0, least = lowest()
    return Exercise(
        "two numbers, alpha0 where the most is lost and the efficiency there",
        numbers(["alpha0", "efficiency"]), ["alpha0", "the efficiency"], np.array([alpha0, least]),
        [
            Mistake(lowest(y**2),
                    "That is for a slope whose alpha0 is known. The rule depends on the intercept and the tilts."),
            Mistake((1 / alpha0, None), "That is omega.", parts=[0]),
            Mistake((np.log(alpha0), None), "That is the logarithm of alpha0.", parts=[0]),
            Mistake((None, 1 - least), "That is what is lost, not what is kept.", parts=[1]),
            Mistake((None, 1 / least), "Upside down: the logistic fit is the less efficient.", parts=[1]),
        ],
        "Minimise the first value of `efficiencies` over the logarithm of alpha0.",
        rtol=[0.03, 2e-3],
    )


@exercise("joint.further")
def _():
    grid = list(product((0.05, 0.5, 0.8), (0.5, 1.0, 10.0)))

    @cache
    def right(t, a):  # logit P by quadrature
        z = np.linspace(-60 / (a * min(t, 1 - t)), 60 / (a * min(t, 1 - t)), 20_001)
        p = np.exp(a * t * special.log_expit(z) + a * (1 - t) * special.log_expit(-z))
        p /= p.sum()
        return (1 + a) / (a**2 * t * (1 - t) * (p @ (z - p @ z) ** 2))

    return Exercise(
        "a function of tau and alpha0 that gives the limit of the efficiency",
        formula(grid), at(grid, "tau", "alpha0"), np.array([right(*args) for args in grid]),
        [
            Mistake(lambda t, a: 1 / right(t, a), "Upside down: the likelihood is the sharper of the two."),
            Mistake(lambda t, a: right(t, a) * a**2,
                    "alpha0 tau, not tau, is the parameter: alpha0 squared is in the information."),
            Mistake(lambda t, a: right(t, a) * t * (1 - t),
                    "By eta and not by tau: q squared is in the information, and one q above."),
            Mistake(lambda t, a: right(t, a) / (1 + a),
                    "Even infinitely many votes of this kind are worth 1 + alpha0 labels."),
            Mistake(lambda t, a: 1, "The mean share is not all that the share tells."),
        ],
        "Differentiate the log-density of the Beta by tau; what is left is logit P less its mean.",
        rtol=1e-5,
    )
