"""Conditions of theorems beyond the paper: what is false without them, and true with them."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from scipy.special import betaln
from test_beyond_models import EVEN, REGULAR, RULES, fit_three_classes, points_of, uniform_errors, urn, weight

# ------------------------------------------------------------------ More classes


def away_from_a_multiple(means, var):
    """How far uniform errors move the limit of the fit from the multiples of the true coefficients, for unequal variances."""
    root = np.sqrt(var)
    x, mass, tau = points_of(means / root, EVEN)
    x[:, 1:] *= root
    full = np.column_stack([-(means**2 / var).sum(axis=1) / 2, means / var])
    right = (full - full[2])[:2].ravel()
    found = fit_three_classes(x, uniform_errors(tau), mass).ravel()
    return np.abs(found - found @ right / (right @ right) * right).max() / np.abs(right).max()


def spread_of_distances(means):
    sides = np.linalg.norm(means - np.roll(means, 1, axis=0), axis=1)
    return np.ptp(sides) / sides.max()


def test_equal_distances_are_those_of_mahalanobis():
    """Equal plain distances do not keep the rule where the features have unlike variances; equal ones of Mahalanobis do."""
    var = np.array([1.0, 4.0])
    plain, mahalanobis = 1.6 * REGULAR, REGULAR * np.sqrt(var)
    assert spread_of_distances(plain) < 1e-12 < 0.1 < spread_of_distances(mahalanobis)
    assert away_from_a_multiple(plain, var) > 0.01
    assert away_from_a_multiple(mahalanobis, var) < 1e-6
    assert away_from_a_multiple(plain, np.ones(2)) < 1e-6


# ------------------------------------------------------------------ Unequal numbers of votes


@pytest.mark.parametrize("name", RULES)
def test_who_asks_on_has_no_dirichlet_multinomial_counts(name):
    """Given their number the votes have another law, so the condition on counts and such a rule contradict each other."""
    alpha0, tau = sp.sympify("2, 1/3")
    stopped, other = urn(RULES[name], alpha0, tau), []
    for k in {k for _, k in stopped}:
        here = {s: p for (s, number), p in stopped.items() if number == k}
        fixed = {s: p for (s, _), p in urn(lambda s, j, k=k: j < k, alpha0, tau, most=k).items()}
        total = sum(here.values())
        other += [s for s in fixed if here.get(s, 0) != fixed[s] * total]
    assert other
    if name == "third where two disagree":
        assert (1, 2) not in stopped


def until_positive_votes_lead(most):
    """Independent votes at tau = 1/2, at most so many: P(M = k) by the lead, and the leads left over."""
    left, stopped = {0: Fraction(1)}, {}
    for k in range(1, most + 1):
        moved = {}
        for lead, p in left.items():
            for step in (1, -1):
                moved[lead + step] = moved.get(lead + step, 0) + p / 2
        stopped[k] = moved.pop(1, Fraction(0))
        left = moved
    return stopped, left


def test_independent_votes_need_a_mean_number():
    """The score S - M / 2 is half of the lead: 1/2 whenever one stops, and one always stops. Its mean is 0 if M is bounded."""
    left_over, numbers = [], []
    for most in (25, 100, 400):
        stopped, left = until_positive_votes_lead(most)
        assert sum(stopped.values()) / 2 + sum(lead * p / 2 for lead, p in left.items()) == 0
        left_over.append(float(sum(left.values())))
        numbers.append(float(sum(k * p for k, p in stopped.items())))
    assert left_over[-1] < 0.05 and np.allclose(np.divide(left_over[:-1], left_over[1:]), 2, rtol=0.05)  # to zero, like a root
    assert np.allclose(np.divide(numbers[1:], numbers[:-1]), 2, rtol=0.2)  # to infinity


def test_correlated_votes_need_none():
    """Ask until votes differ, alpha0 = 1: E(M) is infinite, and the mean score with weights 1 / phi tends to 0."""
    alpha0, tau, k = 1.0, 1 / 3, np.arange(2, 1_000_001)
    a, b = alpha0 * tau, alpha0 * (1 - tau)
    chance = [np.exp(betaln(a + up, b + down) - betaln(a, b)) for up, down in ((k - 1, 1), (1, k - 1))]
    score = weight(k, alpha0) * (chance[1] * (1 - k * tau) + chance[0] * (k - 1 - k * tau))
    size, number = np.abs(np.cumsum(score)), np.cumsum(k * (chance[0] + chance[1]))
    at = np.array([10**2, 10**4, 10**6]) - 2
    assert np.all(np.diff(size[at]) < 0) and size[at[-1]] < 0.02
    assert np.all(number[at][1:] > 5 * number[at][:-1])
