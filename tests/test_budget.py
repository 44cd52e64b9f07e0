"""Votes and true labels for one budget: `split_budget` against all whole plans; what the chapter on budgets says of both."""

import functools
from fractions import Fraction as F
from itertools import product
from math import floor, inf, isinf, sqrt

import numpy as np
import pytest
import sympy as sp
from scipy import stats
from scipy.special import expit
from test_theorems import is_zero

from softlabel import TwoClassNormal, design_votes, fit_logistic_batch, relative_efficiency, sample_votes, split_budget

# ------------------------------------------------------------------ the calculator


def worth(k, n, m, alpha0, ceiling):
    """k true labels, and m votes on each of n items."""
    votes = F(n * m) if alpha0 == "inf" else n * m * (1 + F(alpha0)) / (m + F(alpha0))
    return k + votes if ceiling == "inf" else k + votes / (1 + votes / F(ceiling))


@functools.cache
def brute(budget, item, vote, truth, alpha0, ceiling):
    """Largest worth of all plans that the budget pays for, the least cost at it, votes alone and truth alone.

    On the same items more votes are worth more, so of the plans with n of them only that with the most votes is looked at.
    """
    budget, item, vote, truth = map(F, (budget, item, vote, truth))
    plans = []
    for k in range(floor(budget / (item + truth)) + 1):
        plans.append((k, k * (item + truth), k, 0, 0))
        for n in range(1, floor((budget - k * truth) / vote) + 1):
            most = floor((budget - k * truth - max(n, k) * item) / (n * vote))
            if most >= 1:
                cost = max(n, k) * item + n * most * vote + k * truth
                plans.append((worth(k, n, most, alpha0, ceiling), cost, k, n, most))
            elif n > k:
                break
    best = max(plan[0] for plan in plans)
    tied = [plan for plan in plans if plan[0] == best]
    least = min(plan[1] for plan in tied)
    alone = max(plan[0] for plan in plans if plan[2] == 0), max(plan[0] for plan in plans if plan[4] == 0)
    return float(best), float(least), {plan[2:] for plan in tied if plan[1] == least}, *map(float, alone)


CASES = [
    case
    for case in product(
        ("2.5", "12", "25.3"),
        ("0", "0.1", "2", "7.3"),
        ("0.7", "1"),
        ("0.6", "3", "10"),
        ("0.7", "5", "inf"),
        ("4", "30", "inf"),
    )
    if F(case[1]) + min(F(case[2]), F(case[3])) <= F(case[0])
]
NAMES = ("budget", "cost_item", "cost_vote", "cost_truth", "alpha0", "ceiling")


def test_is_the_best_of_all_plans():
    assert len(CASES) > 350
    for case in CASES:
        best, least, plans, all_votes, all_truth = brute(*case)
        got = split_budget(**dict(zip(NAMES, map(float, case))))
        assert (got.worth, got.cost) == pytest.approx((best, least), rel=1e-12), case
        assert (got.n_truth, got.n_items, got.m) in plans, case
        assert (got.all_votes, got.all_truth) == pytest.approx((all_votes, all_truth), rel=1e-12), case


def test_the_plans_are_of_all_kinds():
    """Votes alone, truth alone; more items with votes than true labels, as many, and fewer."""
    plans = [next(iter(brute(*case)[2])) for case in CASES]
    assert min(sum(kind) for kind in zip(*((k == 0, n == 0, 0 < k < n, k == n, 0 < n < k) for k, n, _ in plans))) > 10


@pytest.mark.parametrize("item", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("alpha0", [0.4, 6.0, inf])
@pytest.mark.parametrize("budget", [20.0, 333.3])
def test_without_a_ceiling_or_a_true_label_it_is_design_votes(budget, alpha0, item):
    votes = design_votes(budget=budget, cost_item=item, cost_vote=1, alpha0=alpha0)
    for ceiling in (inf, 25.0):
        dear = split_budget(budget=budget, cost_item=item, cost_vote=1, cost_truth=budget + 1, alpha0=alpha0, ceiling=ceiling)
        worth = votes.worth / (1 + votes.worth / ceiling)
        assert (dear.n_truth, dear.all_truth) == (0, 0) and dear.worth == dear.all_votes == pytest.approx(worth, rel=1e-14)
        if isinf(ceiling):  # with one, a cheaper plan may be worth as much
            assert (dear.n_items, dear.m, dear.cost) == (votes.n_items, votes.m, votes.cost)
    # By the theorem on budgets true labels in place of votes seldom pay, but beside them each adds itself.
    both = split_budget(budget=budget, cost_item=item, cost_vote=1, cost_truth=2, alpha0=alpha0, ceiling=inf)
    rest = design_votes(budget=budget, cost_item=item, cost_vote=1, alpha0=alpha0, cost_truth=2)
    assert both.all_truth == rest.n_truth and both.all_votes == rest.worth and both.worth >= max(rest.worth, rest.n_truth)


def test_the_ceiling_from_an_equal_number():
    """As the docstring has it: votes worth v by the formula, and in fact e."""
    v, e = 240.0, 60.0
    plan = split_budget(budget=240, cost_item=0, cost_vote=1, cost_truth=1e3, alpha0=5, ceiling=1 / (1 / e - 1 / v))
    assert plan.n_items * plan.m == 240 and plan.worth == pytest.approx(e, rel=1e-14)


def test_boundaries():
    costs = dict(cost_item=2, cost_vote=1, cost_truth=4, alpha0=5)
    one_vote = split_budget(budget=3, **costs, ceiling=10)
    assert (one_vote.n_items, one_vote.m, one_vote.n_truth, one_vote.cost) == (1, 1, 0, 3)
    assert (one_vote.worth, one_vote.all_truth) == (pytest.approx(10 / 11), 0)
    one_truth = split_budget(budget=3, **costs | dict(cost_vote=4, cost_truth=1), ceiling=10)
    assert (one_truth.n_items, one_truth.m, one_truth.n_truth, one_truth.worth, one_truth.all_votes) == (0, 0, 1, 1, 0)
    worthless = split_budget(budget=600, **costs, ceiling=1e-9)
    assert (worthless.n_truth, worthless.worth) == (100, pytest.approx(100, rel=1e-9))
    assert split_budget(budget=0.3, cost_item=0, cost_vote=0.1, cost_truth=1, alpha0=2, ceiling=inf).n_items == 3
    tenths = split_budget(budget=0.4, cost_item=0, cost_vote=0.1, cost_truth=0.3, alpha0=2, ceiling=1e-3)
    assert (tenths.n_items, tenths.m, tenths.n_truth, tenths.cost) == (1, 1, 1, 0.4)


def test_a_plan_reads_well():
    assert repr(split_budget(budget=7, cost_item=2, cost_vote=1, cost_truth=4, alpha0=0.1, ceiling=10)) == (
        "BudgetSplit(1 item with 1 vote each, 1 true label: worth 1.90909; all votes 1.66667; all truth 1; cost 7)"
    )


# ------------------------------------------------------------------ together: a weighted mean of two estimates

k, v, ceiling, w = sp.symbols("k v kappa w", positive=True)


def squared_error(w):
    """Excess error of (1 - w) times the truths' coefficients plus w times the votes', in units of one true label's."""
    return (1 - w) ** 2 / k + w**2 * (1 / v + 1 / ceiling)


WEIGHTS = {
    "right": v / (1 + v / ceiling) / (k + v / (1 + v / ceiling)),
    "by numbers": v / (k + v),
    "by the ceiling": ceiling / (k + ceiling),
    "half": sp.Rational(1, 2),
}


def together():
    """Worth of both at the best weight."""
    return k + v / (1 + v / ceiling)


def test_together_symbolically():
    for name, weight in WEIGHTS.items():
        assert is_zero(sp.diff(squared_error(w), w).subs(w, weight)) == (name == "right"), name
    assert is_zero(squared_error(WEIGHTS["right"]) * together() - 1)
    assert sp.diff(squared_error(w), w, 2).is_positive
    assert sp.limit(together() - k, v, sp.oo) == ceiling  # what votes never reach


def roots(price, truth):
    """Votes' worth v up to which votes are the better buy, by the prices of what is worth one true label in either."""
    return ceiling * (sp.sqrt(truth / price) - 1)


def best_split(budget, price, truth):
    return budget / truth + ceiling * (1 - sp.sqrt(price / truth)) ** 2


def test_split_symbolically():
    budget, root_price, root_truth = sp.symbols("B r s", positive=True)
    price, truth = root_price**2, root_truth**2  # so that roots are symbols
    whole = (budget - price * v) / truth + v / (1 + v / ceiling)
    best = roots(price, truth)
    assert is_zero(sp.diff(whole, v).subs(v, best))
    assert is_zero(whole.subs(v, best) - best_split(budget, price, truth))
    assert sp.factor(sp.diff(whole, v, 2)).is_negative  # so there is no other
    spent = ceiling * (root_price * root_truth - price)
    assert is_zero(price * best - spent)
    # Up to that budget votes alone are best, and from there on the two plans' worths part at a square.
    alone = budget / price / (1 + budget / price / ceiling)
    assert is_zero((best_split(budget, price, truth) - alone).subs(budget, spent))
    # The excess at the best split over that of any other v is a square.
    gap = best_split(budget, price, truth) - whole
    assert is_zero(gap - (root_price * (1 + v / ceiling) - root_truth) ** 2 * ceiling / (1 + v / ceiling) / truth)


PAIR = TwoClassNormal.canonical(2.0)
N, M, ALPHA0, K, CEILING = 1000, 5, 5.0, 400, 400


@functools.cache
def coefficients(share, sets=3000):
    """By votes and by true labels.

    The votes' mean is wrong by a lean and a tilt that give the ceiling. In a share of the items labellers have seen the truth.
    """
    rng = np.random.default_rng(1)
    curved = PAIR.error_curvature()
    off = np.array([1.0, 0.0, 1.0])
    off *= sqrt(PAIR.excess_error() / CEILING / (off @ curved @ off))
    Y, z = PAIR.sample(N, rng, size=sets)
    q = expit(PAIR.coef[0] + off[0] + Y @ (PAIR.coef + off)[1:])
    votes = sample_votes(np.stack([q, 1 - q], -1), M, ALPHA0, rng)
    seen = rng.random(z.shape) < share
    votes[seen] = M * np.stack([z[seen], 1 - z[seen]], -1)
    return fit_logistic_batch(Y, votes).coef, fit_logistic_batch(Y[:, :K], z[:, :K]).coef


def excess_errors(weights, share=0.0):
    """Mean excess error and standard error of (1 - w) truths' + w votes' coefficients, as true labels' inverse number."""
    by_votes, by_truth = coefficients(share)
    excess = [(PAIR.error_rate((1 - w) * by_truth + w * by_votes) - PAIR.bayes_error()) / PAIR.excess_error() for w in weights]
    return np.mean(excess, axis=1), stats.sem(excess, axis=1)


def predicted(weights):
    values = {k: K, v: N * relative_efficiency(M, ALPHA0), ceiling: CEILING}
    return np.array([float(squared_error(x).subs(values)) for x in weights])


def weight(name):
    return float(WEIGHTS[name].subs({k: K, v: N * relative_efficiency(M, ALPHA0), ceiling: CEILING}))


def test_together_numerically():
    """The parabola in the weight, and the worth at its bottom: 5 standard errors, and a term of order 1 / k."""
    weights = [0, 0.25, weight("right"), 0.75, 1]
    mean, se = excess_errors(weights)
    off = mean / predicted(weights) - 1
    assert (np.abs(off) < 5 * se / mean + 8 / K).all(), off
    votes = N * relative_efficiency(M, ALPHA0)
    assert 1 / mean[2] == pytest.approx(K + votes / (1 + votes / CEILING), rel=5 * se[2] / mean[2] + 8 / K)


def test_the_weights_of_a_right_mean_are_too_large():
    """Negative: with weights by variance alone the error is larger, by as much as the formula says; so no worths add up."""
    weights = [weight("right"), weight("by numbers")]
    mean, se = excess_errors(weights)
    assert mean[1] - mean[0] > 10 * se.max()
    assert mean[1] == pytest.approx(predicted(weights)[1], rel=0.06)
    assert 1 / mean[1] < 0.6 * (K + N * relative_efficiency(M, ALPHA0))


def test_labellers_who_know_the_truth_share_it():
    """Negative: truth and votes that depend on each other, given the features, are worth less than their sum at any weight."""
    mean, se = excess_errors(np.linspace(0, 1, 21), share=0.5)
    assert se[mean.argmin()] < 0.02 * mean.min()
    assert 1 / mean.min() < 0.85 * (K + 1 / mean[-1])


def best_of_grid(budget, c0, c1, truth, alpha0, top):
    """Largest worth over fractions of items, votes and true labels, and what it is made of: by the definition alone."""
    m = np.geomspace(1, 60, 300)[:, None]
    labels = np.linspace(0, budget / (c0 + truth), 4001)
    rest = budget - labels * truth
    n = np.maximum(0, np.where(rest / (c0 + m) >= labels, rest / (c0 + c1 * m), (rest - labels * c0) / (c1 * m)))
    votes = n * relative_efficiency(m, alpha0)
    total = labels + votes / (1 + votes / top)
    i, j = np.unravel_index(total.argmax(), total.shape)
    return total[i, j], labels[j], n[i, j], m[i, 0], votes[i, j]


def price_of_votes(c0, c1, alpha0):
    root = sqrt(alpha0 * c0 / c1)
    return (sqrt(c0) + sqrt(alpha0 * c1)) ** 2 / (1 + alpha0) if root >= 1 else c0 + c1


@pytest.mark.parametrize("c0, alpha0, truth, top", [(8.0, 5.0, 25.0, 100.0), (0.1, 2.0, 5.0, 60.0), (20.0, 1.0, 80.0, 30.0)])
def test_split_numerically(c0, alpha0, truth, top):
    price = price_of_votes(c0, 1.0, alpha0)
    values = {ceiling: top}
    most = float(roots(price, truth).subs(values))
    for part in (0.5, 0.95):  # not yet a true label
        found, labels, _, _, votes = best_of_grid(part * price * most, c0, 1.0, truth, alpha0, top)
        assert labels == 0 and votes == pytest.approx(part * most, rel=1e-3)
    items = most / relative_efficiency(max(1.0, sqrt(alpha0 * c0)), alpha0)
    for part in (0.2, 0.9):  # as long as true labels are on items with votes
        budget = price * most + part * items * truth
        found, labels, n, m, votes = best_of_grid(budget, c0, 1.0, truth, alpha0, top)
        assert found == pytest.approx(float(best_split(budget, price, truth).subs(values)), rel=1e-4)
        assert votes == pytest.approx(most, rel=0.03) and labels < n
    last = float(roots(1.0, c0 + truth).subs(values))
    budget = 3 * (c0 + truth) * last
    found, labels, n, m, votes = best_of_grid(budget, c0, 1.0, truth, alpha0, top)
    assert m == 1 and n == pytest.approx(last, rel=0.03) and labels > n
    assert found == pytest.approx(float(best_split(budget, 1.0, c0 + truth).subs(values)), rel=1e-4)


def test_large_budgets_approach_the_closed_forms():
    """Whole numbers, against the continuous forms: in the middle, and at the end."""
    costs = dict(cost_item=8, cost_vote=1, cost_truth=25, alpha0=5, ceiling=3000)
    price = price_of_votes(8, 1, 5)
    plan = split_budget(budget=36_000, **costs)
    best = 36_000 / 25 + 3000 * (1 - sqrt(price / 25)) ** 2
    assert 0.998 * best < plan.worth <= best * (1 + 1e-12) and 0 < plan.n_truth < plan.n_items
    end = split_budget(budget=240_000, **costs | dict(ceiling=1000))
    assert end.m == 1 and end.n_items == pytest.approx(1000 * (sqrt(33) - 1), rel=0.01) and end.n_truth > end.n_items
    assert end.worth == pytest.approx(240_000 / 33 + 1000 * (1 - sqrt(1 / 33)) ** 2, rel=1e-4)


def test_the_split_needs_its_prices():
    """Negative: other plausible stopping points of votes are worth less."""
    c0, alpha0, truth, top, budget = 8.0, 5.0, 25.0, 100.0, 1200.0
    price = price_of_votes(c0, 1.0, alpha0)
    best = best_of_grid(budget, c0, 1.0, truth, alpha0, top)[0]

    def stopped(at):
        return (budget - price * at) / truth + at / (1 + at / top)

    right = top * (sqrt(truth / price) - 1)
    assert stopped(right) == pytest.approx(best, rel=1e-3)
    for wrong in (top * (truth / price - 1), top * sqrt(truth / price), top, top * (sqrt((c0 + truth) / (c0 + 1)) - 1)):
        assert stopped(wrong) < 0.995 * best
