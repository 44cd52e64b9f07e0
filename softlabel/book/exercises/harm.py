"""Exercises on majority votes and on harmful noise."""

from math import comb

import numpy as np
from scipy import integrate, optimize, special, stats

from softlabel.book.exercises.marking import Exercise, Mistake, at, exercise, formula, numbers


def mean_over_items(delta, function):
    """E function(eta) for two normal classes with equal priors, by the trapezoidal rule: for these it is near exact."""
    y, step = np.linspace(-delta / 2 - 9, delta / 2 + 9, 2001, retstep=True)
    f = (stats.norm.pdf(y, delta / 2) + stats.norm.pdf(y, -delta / 2)) / 2
    return f @ function(delta * y) * step


def label_worth(delta, q, label=True):
    """Worth of a response with odd link: a 0/1 label, or its mean known exactly."""
    tau = special.expit

    def score(stretch):
        return mean_over_items(delta, lambda e: e * (q(e) - tau(stretch * e)))

    c = optimize.brentq(score, 0.01, 30)
    h = mean_over_items(delta, lambda e: tau(c * e) * tau(-c * e))
    g = mean_over_items(delta, lambda e: (q(e) * (1 - q(e)) if label else 0) + (q(e) - tau(c * e)) ** 2)
    return (c * h) ** 2 / (mean_over_items(delta, lambda e: tau(e) * tau(-e)) * g)


# A majority vote


@exercise("majority.hand")
def _():
    def positive(m, tie=0.5, t=0.7):
        p = [comb(m, s) * t**s * (1 - t) ** (m - s) for s in range(m + 1)]
        return sum(p[s] for s in range(m + 1) if 2 * s > m) + (tie * p[m // 2] if m % 2 == 0 else 0)

    return Exercise(
        "four numbers: the probabilities for two, three and four labellers, and the worth of the majority of two",
        numbers(["q2", "q3", "q4", "worth"]),
        ["the probability for two", "that for three", "that for four", "the worth of the majority of two"],
        np.array([positive(2), positive(3), positive(4), 1]),
        [
            Mistake((positive(2, 0), None, positive(4, 0), None), "A tie is lost only half of the time."),
            Mistake((positive(2, 1), None, positive(4, 1), None), "A tie is won only half of the time."),
            Mistake((None, None, None, 2), "That is the worth of both votes pooled. What is the label of a majority of two?"),
            Mistake((None, None, None, np.sqrt(2)),
                    "The root is for large groups. Compare the first probability with that of a single vote."),
        ],
        "List the outcomes: a clear majority of positive votes, and half of the ties.",
    )


@exercise("majority.code")
def _():
    grid = [(1, 2.0), (3, 1.0), (5, 2.0), (9, 3.0)]

    def q(m):
        return lambda eta: stats.binom.sf(m // 2, m, special.expit(eta))

    return Exercise(
        "a function of m and delta that gives the worth",
        formula(grid), at(grid, "m", "delta"), np.array([label_worth(delta, q(m)) for m, delta in grid]),
        [
            Mistake(lambda m, delta: m, "That is the worth of the pooled votes."),
            Mistake(lambda m, delta: np.sqrt(m), "The root is an approximation; solve for the stretch and use the formula."),
            Mistake(lambda m, delta: label_worth(delta, q(m), label=False),
                    "The label itself varies: its variance q (1 - q) is missing."),
            Mistake(lambda m, delta: 1 / label_worth(delta, q(m)), "Upside down."),
        ],
        "Is q the probability of more than m/2 positive votes, as a function of eta?",
        rtol=1e-4,
    )


@exercise("majority.further")
def _():
    tau = special.expit
    w0 = mean_over_items(2, lambda e: tau(e) * tau(-e))
    stay = mean_over_items(2, lambda e: tau(e) ** 2 + tau(-e) ** 2)
    drop = 4 * mean_over_items(2, lambda e: (tau(e) * tau(-e)) ** 2 / (tau(e) ** 2 + tau(-e) ** 2)) / w0
    sharp = 4 * mean_over_items(2, lambda e: tau(2 * e) * tau(-2 * e)) / w0
    return Exercise(
        "three numbers, the worth with a coin, after dropping, and with one half",
        numbers(["coin", "drop", "half"]),
        ["the worth with a coin", "the worth after dropping", "the worth with one half"], np.array([1, drop, 2]),
        [
            Mistake((None, sharp, None), "Only items without a tie are left: weight by the probability that one stays."),
            Mistake((None, drop / stay, None), "That is the worth of an item that stays. It should be per item shown."),
            Mistake((None, drop / 4, None), "The stretch is 2, and its square belongs into the worth."),
            Mistake((None, None, 1), "With one half for a tie the response is the share of positive votes."),
            Mistake((2, None, None), "With a coin, what is the probability of a positive label?"),
        ],
        "Find the probability of a positive label in each case, and which items are left.",
        rtol=1e-4,
    )


# Harmful noise


@exercise("harm.hand")
def _():
    def excess(cut):  # by integration of what is lost between the cut and 0
        lost = integrate.quad(lambda y: stats.norm.pdf(y, 1) - stats.norm.pdf(y, -1), 0, cut, epsabs=1e-13)[0]
        return lost / 2

    return Exercise(
        "three numbers: the intercept, the slope, and the excess error as a probability",
        numbers(["intercept", "slope", "excess"]), ["the intercept", "the slope", "the excess error"],
        np.array([1 / 2, 1, excess(-1 / 2)]),
        [
            Mistake((None, 1 / 2, None), "That is the factor of eta. What is eta in terms of y_1?"),
            Mistake((0, 2, 0), "Those are the true coefficients. The votes follow another logistic regression."),
            Mistake((None, None, excess(-1)), "The rule cuts at eta = -1. At which y_1 is that?"),
            Mistake((None, None, excess(-1 / 2) + stats.norm.sf(1)), "That is the error rate. Subtract the best one."),
            Mistake((None, None, 2 * excess(-1 / 2)), "Each class has half of the items."),
        ],
        "The model of a logistic regression is right for these votes. With which coefficients?",
        rtol=1e-5,
    )


@exercise("harm.code")
def _():
    def weight(s):
        return mean_over_items(2, lambda e: special.expit(s * e) * special.expit(-s * e))

    def smallest(s, alpha0, power=2):
        one = s**power * weight(s) / weight(1)
        m = np.arange(1, 400)
        kappa = m if np.isinf(alpha0) else m * (1 + alpha0) / (m + alpha0)
        return next(iter(m[kappa * one >= 1]), np.inf)

    grid = [(0.5, 10.0), (0.5, 1.0), (0.25, np.inf), (0.75, 2.0), (2.0, 1.0)]
    return Exercise(
        "a function of s and alpha0 that gives the smallest m, or infinity if there is none",
        formula(grid), at(grid, "s", "alpha0"), np.array([smallest(*args) for args in grid], dtype=float),
        [
            Mistake(lambda s, a: smallest(s, np.inf), "That is for independent opinions. These are correlated."),
            Mistake(lambda s, a: smallest(s, a, power=1), "The stretch enters as a square."),
            Mistake(lambda s, a: m - 1 if 1 < (m := smallest(s, a)) < np.inf else m,
                    "You round down: with that many it is not yet as good."),
            Mistake(lambda s, a: m if (m := smallest(s, a)) < np.inf else 1, "Where A is at least 1 there is no such m."),
        ],
        "Find k, then the smallest m with k (rho + (1 - rho) / m) at most 1.",
    )


@exercise("harm.further")
def _():
    tau = special.expit

    def q(e, g=1 / 5):
        return g / 2 + (1 - g) * tau(e)

    w0 = mean_over_items(2, lambda e: tau(e) * tau(-e))
    ratio = mean_over_items(2, lambda e: (tau(e) * tau(-e)) ** 2 / (q(e) * (1 - q(e)))) / w0
    logistic, known = label_worth(2, q), (4 / 5) ** 2 * ratio
    flips = label_worth(2, lambda e: q(e, 2 / 5))
    return Exercise(
        "two numbers, the worth with the logistic curve and with the true mean",
        numbers(["logistic", "known"]), ["the worth with the logistic curve", "the worth with the true mean"],
        np.array([logistic, known]),
        [
            Mistake((known, logistic), "The two are exchanged."),
            Mistake((None, ratio), "The derivative of q has a factor 1 - g, and it enters as a square."),
            Mistake((flips, None), "A guess is wrong half of the time: an error rate of g / 2."),
            Mistake((None, 4 / 5 * ratio), "The derivative of q enters as a square."),
            Mistake((None, 1), "It is known how many votes are guesses, not which: something is lost."),
        ],
        "For the true mean, weight x x' by q'^2 / (q (1 - q)), and compare with tau (1 - tau).",
        rtol=1e-4,
    )
