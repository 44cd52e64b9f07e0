"""design_votes against a search over all designs in rational arithmetic, and the closed forms where nothing is rounded."""

from fractions import Fraction as F
from math import floor, inf, sqrt

import numpy as np
import pytest

from softlabel import VoteDesign, design_votes, relative_efficiency


def worth(n, m, alpha0):
    return F(n * m) if alpha0 == "inf" else n * m * (1 + F(alpha0)) / (m + F(alpha0))


def brute(budget, item, vote, alpha0, n_items=None, cost_truth=None, min_items=1):
    """Every pair of whole numbers that the budget pays for; amounts are decimal strings, so nothing is rounded."""
    budget, item, vote = F(budget), F(item), F(vote)
    top = floor(budget / vote)
    pairs = [(n, m) for m in range(1, top + 1) for n in range(min_items, min(n_items or top, floor(budget / (item + m * vote))) + 1)]
    most = max(worth(n, m, alpha0) for n, m in pairs)
    tied = [(n * (item + m * vote), m, n) for n, m in pairs if worth(n, m, alpha0) == most]
    cost, m, n = min(tied)
    truth = None
    if cost_truth is not None:
        truth = min(n_items or inf, floor(budget / (item + F(cost_truth))))
        truth = truth if truth >= min_items else 0
    return n, m, most, cost, truth


CASES = [
    (budget, item, vote, alpha0, n_items, truth, least)
    for budget in ("12", "60", "100.3") for item in ("0", "0.1", "2", "7.3") for vote in ("0.3", "1", "2.5")
    for alpha0 in ("0.01", "0.7", "5", "100", "inf") for n_items, truth, least in (
        (None, None, 1), (4, "1.1", 1), (None, "6", 3), (9, "40", 2))
    if int(least) * (F(item) + F(vote)) <= F(budget)
]


def differences(design):
    """The cases in which a calculator does not find what the search finds."""
    wrong = []
    for case in CASES:
        n, m, most, cost, truth = brute(*case)
        budget, item, vote, alpha0, n_items, price, least = case
        got = design(budget=float(budget), cost_item=float(item), cost_vote=float(vote), alpha0=float(alpha0), n_items=n_items,
                     cost_truth=None if price is None else float(price), min_items=least)
        if (got.n_items, got.m, got.n_truth) != (n, m, truth) or got.worth != pytest.approx(float(most), rel=1e-12) \
                or got.cost != pytest.approx(float(cost), rel=1e-12):
            wrong.append((case, got, (n, m)))
    return wrong


def test_is_the_best_of_all_designs():
    assert len(CASES) > 500
    assert differences(design_votes) == []


def rounded(budget, cost_item, cost_vote, alpha0, n_items, cost_truth, min_items, whole=(np.floor, np.ceil)):
    """The textbook's way: the root rounded down and up, then as many items as the money buys."""
    root = max(1, sqrt(alpha0 * cost_item / cost_vote)) if cost_item else 1
    root = min(root, budget / cost_vote)
    best = VoteDesign(0, 0, 0.0, 0.0, root)
    for m in {max(1, int(f(root))) for f in whole}:
        n = min(n_items or inf, budget // (cost_item + m * cost_vote))
        if n * relative_efficiency(m, alpha0) > best.worth:
            best = VoteDesign(int(n), m, n * relative_efficiency(m, alpha0), n * (cost_item + m * cost_vote), root)
    return best


def test_rounding_the_root_is_not_enough():
    whole = [case for case in CASES if case[4:] == (None, None, 1)]
    missed = [case for case, *_ in differences(rounded) if case in whole]
    assert len(missed) > len(whole) / 4


def test_decimal_amounts_are_affordable():
    for k in range(1, 300):
        for price in (0.1, 0.07, 1.1, 0.35):
            design = design_votes(budget=float(F(str(price)) * k), cost_item=0, cost_vote=price, alpha0=2)
            assert (design.n_items, design.m) == (k, 1)
    assert design_votes(budget=0.3, cost_item=0, cost_vote=0.1, alpha0=2).cost == 0.3  # 3 * 0.1 is more than 0.3
    assert design_votes(budget=np.nextafter(3, 0) - 1e-13, cost_item=0, cost_vote=1, alpha0=2).n_items == 2


@pytest.mark.parametrize("alpha0", [0.3, 2.0, 30.0])
@pytest.mark.parametrize("item", [0.5, 4.0, 90.0])
def test_large_budgets_approach_the_closed_forms(alpha0, item):
    design = design_votes(budget=1e9, cost_item=item, cost_vote=1, alpha0=alpha0)
    root = sqrt(alpha0 * item)
    assert design.root == pytest.approx(root, rel=1e-14)
    assert design.m in {max(1, floor(root)), floor(root) + 1}
    bound = 1e9 * (1 + alpha0) / (sqrt(item) + sqrt(alpha0)) ** 2
    if root >= 1:  # no design beats the bound, and one of two whole numbers is near the root
        steps = [k / root for k in (floor(root), floor(root) + 1)]
        flat = [(sqrt(item) + sqrt(alpha0)) ** 2 / (item + alpha0 + root * (s + 1 / s)) for s in steps]
        assert design.worth == pytest.approx(bound * max(flat), rel=1e-6)
        assert design.worth <= bound * (1 + 1e-12)
    else:
        assert design.worth == 1e9 // (item + 1)


def test_boundaries():
    one = design_votes(budget=1000, cost_item=1, cost_vote=1, alpha0=1e-12)  # the second vote repeats the first
    assert (one.n_items, one.m) == (500, 1) and one.worth == 500
    none = design_votes(budget=1000, cost_item=1, cost_vote=1, alpha0=inf)
    assert (none.n_items, none.m, none.root) == (1, 999, inf)
    least = design_votes(budget=1000, cost_item=1, cost_vote=1, alpha0=inf, min_items=50)
    assert (least.n_items, least.m, least.worth) == (50, 19, 950)
    free = design_votes(budget=1000, cost_item=0, cost_vote=1, alpha0=inf)
    assert (free.n_items, free.m, free.root) == (1000, 1, 0)  # all designs cost and are worth the same: most items


def test_a_pool_is_used_up_before_the_root_counts():
    free = design_votes(budget=1000, cost_item=1, cost_vote=1, alpha0=9)
    assert free.m == 3
    pool = design_votes(budget=1000, cost_item=1, cost_vote=1, alpha0=9, n_items=100)
    assert (pool.n_items, pool.m, pool.worth) == (100, 9, 500)
    assert design_votes(budget=1000, cost_item=1, cost_vote=1, alpha0=9, n_items=250) == free


def test_price_of_the_truth():
    costs = dict(budget=1e6, cost_item=4, cost_vote=1, alpha0=4)
    even = (2 + 2) ** 2 / 5 - 4
    assert even < 0  # one true label an item is too little for a dear item, even as a gift
    assert design_votes(**costs, cost_truth=1e-3).n_truth < design_votes(**costs).worth
    costs["cost_item"], even = 1, (1 + 2) ** 2 / 5 - 1
    for factor in (0.99, 1.01):
        design = design_votes(**costs, cost_truth=even * factor)
        assert (design.n_truth > design.worth) == (factor < 1)
    assert design_votes(**costs, n_items=10, cost_truth=3).n_truth == 10
    assert design_votes(budget=10, cost_item=1, cost_vote=1, alpha0=4, cost_truth=10).n_truth == 0


def test_large_budgets():
    design = design_votes(budget=1e12, cost_item=3, cost_vote=1, alpha0=5)
    assert design.m == 4 and design.n_items == 10**12 // 7
    pool = design_votes(budget=1e12, cost_item=3, cost_vote=1, alpha0=5, n_items=2)
    assert (pool.n_items, pool.m) == (2, 5 * 10**11 - 3)


@pytest.mark.parametrize("name, bad, words", [
    ("budget", 0, "budget must be a positive number, got 0"), ("budget", inf, "budget must be"), ("budget", "9", "budget must be"),
    ("cost_item", -1, "cost_item must be a positive number or 0, got -1"), ("cost_vote", 0, "cost_vote must be"),
    ("alpha0", 0, "alpha0 must be positive"), ("alpha0", [1, 2], "single number"), ("n_items", 2.5, "n_items must be a whole"),
    ("n_items", 0, "n_items must be a whole number of at least 1"), ("cost_truth", 0, "cost_truth must be"),
    ("min_items", 0, "min_items must be"), ("min_items", 11, "min_items is 11, but there are only n_items = 10"),
    ("budget", 2, r"budget 2 does not pay for min_items = 1 with one vote each, which cost 3"),
    ("min_items", 9, "budget 20 does not pay for min_items = 9 .* which cost 27"),
    ("budget", 1e13, r"budget 1e\+13 pays for 1e\+13 votes: at most"), ("cost_truth", 1e-12, "2e.13 true labels"),
])
def test_bad_arguments_are_named(name, bad, words):
    good = dict(budget=20, cost_item=2, cost_vote=1, alpha0=5, n_items=10)
    design_votes(**good)
    with pytest.raises(ValueError, match=words):
        design_votes(**(good | {name: bad}))


def test_reads_well():
    design = design_votes(budget=4, cost_item=1, cost_vote=3, alpha0=2, cost_truth=1)
    assert repr(design) == (
        "VoteDesign(1 item with 1 vote each, worth 1 true labels; cost 4; root 0.8165; true labels for the money: 2)"
    )
