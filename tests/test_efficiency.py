"""Efficiency of votes: the formula, its limits and the paper's values; designs against a search; limits of other responses."""

import functools
from fractions import Fraction as F
from math import floor, inf, sqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit
from strategies import ALPHA0, answered, attempt, examples
from test_sharper_theorem import forced_variance
from test_sharper_theorem import m as labellers

import softlabel as sl

PAIR = sl.TwoClassNormal.canonical(2.0)
SKEWED = sl.TwoClassNormal([1.0, -0.5], [-0.3, 0.4], [[1.5, 0.6], [0.6, 0.8]], prior1=0.3)


def test_values_by_hand():
    assert sl.relative_efficiency(5, 1) == pytest.approx(5 * 2 / 6, rel=1e-15)
    assert sl.relative_efficiency(10, 10) == pytest.approx(5.5, rel=1e-15)
    assert sl.relative_efficiency(1, 3.7) == 1  # one noisy label is worth one true label
    assert sl.relative_efficiency(3, 1) == pytest.approx(1.5, rel=1e-15)
    assert type(sl.relative_efficiency(5, 1)) is float


def test_limits_of_remark_1():
    m, alpha0 = [1e300, 1e300, 1e300, 1e300, 50, 50], [10.0, 1e300, np.inf, 1e-300, 1e300, 1e-300]
    np.testing.assert_allclose(sl.relative_efficiency(m, alpha0), [11, 5e299, 1e300, 1, 50, 1], rtol=1e-15)
    # The first order of the approach: (m - 1) alpha0 / m, which an answer rounded to 1 would not have.
    assert sl.relative_efficiency(5, 1e-9) - 1 == pytest.approx(4e-9 / 5, rel=1e-6)


@examples(200)
@given(st.one_of(st.floats(1, 1e6), st.sampled_from([1, 2, 1e15])), ALPHA0)
def test_efficiency_is_exact_and_bounded(m, alpha0):
    """Against rational arithmetic, in which nothing is rounded."""
    if np.isinf(alpha0):
        efficiency, inflation = F(m), F(1)
    else:
        efficiency = F(m) * (1 + F(alpha0)) / (F(m) + F(alpha0))
        inflation = (F(m) + F(alpha0)) / (1 + F(alpha0))
    ours = answered(sl.relative_efficiency, m, alpha0)
    assert ours == pytest.approx(float(efficiency), rel=1e-12) and 1 <= ours <= min(m, 1 + alpha0) * (1 + 1e-12)
    assert answered(sl.variance_inflation, m, alpha0) == pytest.approx(float(inflation), rel=1e-12)
    information = answered(sl.godambe_information, [[2.0, 1.0], [1.0, 3.0]], m, alpha0)
    if float(efficiency) < 1e300:
        np.testing.assert_allclose(information, float(efficiency) * np.array([[2, 1], [1, 3]]), rtol=1e-12)


@pytest.mark.parametrize("m, alpha0", [([3, 4], 1.0), (3, [1.0, 2.0])])
def test_godambe_information_of_several_m_is_no_mixture_of_columns(m, alpha0):
    with pytest.raises(ValueError, match=r"^(m|alpha0) must be a"):
        sl.godambe_information(np.eye(2), m, alpha0)


# ------------------------------------------------------------------ by enumeration of the votes, and quadrature


def features(model):
    """x = (1, y) and its probabilities: a product rule over both classes."""
    node, mass = np.polynomial.hermite_e.hermegauss(50)
    y = np.stack(np.meshgrid(node, node), axis=-1).reshape(-1, 2) @ np.linalg.cholesky(model.cov).T
    mass = np.outer(mass, mass).ravel() / mass.sum() ** 2
    x = np.vstack([y + model.mean1, y + model.mean2])
    return np.insert(x, 0, 1, axis=1), np.concatenate([model.prior1 * mass, (1 - model.prior1) * mass])


def enumerated(model, numbers, alpha0):
    """I, and H and G of votes in these numbers, by SciPy's probabilities of all counts."""
    x, w = features(model)
    tau, rest = expit(x @ model.coef), expit(-x @ model.coef)
    square, total = np.zeros(len(x)), 0
    for m in numbers:
        s = np.arange(m + 1)[:, None]
        pmf = stats.binom.pmf(s, m, tau) if np.isinf(alpha0) else stats.betabinom.pmf(s, m, alpha0 * tau, alpha0 * rest)
        square, total = square + ((s - m * tau) ** 2 * pmf).sum(axis=0) / len(numbers), total + m / len(numbers)
    one, G = ((x.T * w * weight) @ x for weight in (tau * rest, square))
    return one, total * one, G


@pytest.mark.parametrize("m, alpha0", [(1, 0.4), (5, 2.0), (12, 0.3), (7, 30.0), (4, np.inf)])
def test_godambe_information_by_enumeration(m, alpha0):
    """Theorem 1 in general position: H G^-1 H from the definition of each."""
    one, H, G = enumerated(SKEWED, [m], alpha0)
    np.testing.assert_allclose(one, SKEWED.fisher_information(), rtol=1e-6)
    ours = sl.godambe_information(SKEWED.fisher_information(), m, alpha0)
    np.testing.assert_allclose(ours, H @ np.linalg.solve(G, H), rtol=1e-6)
    # Negative: H itself, with one labeller or independent votes alone.
    assert np.allclose(ours, H, rtol=1e-3) == (m == 1 or np.isinf(alpha0))


@pytest.mark.parametrize("m, alpha0", [(5, 2.0), (12, 0.3), (7, 30.0), (4, np.inf)])
def test_relative_efficiency_by_enumeration(m, alpha0):
    """Theorem 2: the traces of the excess error, J by differences of the exact error rate."""
    one, H, G = enumerated(SKEWED, [m], alpha0)
    e, err, b = 1e-3 * np.eye(3), SKEWED.error_rate, SKEWED.coef
    up, down = e[:, None] + e, e[:, None] - e
    J = (err(b + up) - err(b + down) - err(b - down) + err(b - up)) / 8e-6
    truth, votes = np.trace(J @ np.linalg.inv(one)), np.trace(J @ np.linalg.inv(H) @ G @ np.linalg.inv(H))
    assert SKEWED.excess_error() == pytest.approx(truth, rel=1e-4)  # differences
    assert sl.relative_efficiency(m, alpha0) == pytest.approx(truth / votes, rel=1e-6)


def test_variance_forced_by_the_information():
    """The converse: at three points the variances for which H G^-1 H is c times the Fisher information, by three equations."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, tau, mass, c = rng.normal(size=3), rng.random(3), rng.dirichlet([1, 1, 1]), rng.uniform(1, 4)
        products = mass * np.array([x**0, x, x**2])
        variance = np.linalg.solve(c * products, 4**2 * products @ (tau * (1 - tau)))
        np.testing.assert_allclose([float(forced_variance(t, c).subs(labellers, 4)) for t in tau], variance, rtol=1e-6)


@pytest.mark.parametrize("alpha0", [0.3, 5.0, np.inf])
def test_pooled_votes_by_enumeration(alpha0):
    numbers = [1] * 4 + [2] * 3 + [7] * 2 + [20]
    one, H, G = enumerated(SKEWED, numbers, alpha0)
    np.testing.assert_allclose(sl.pooled_efficiency(numbers, alpha0) * one, H @ np.linalg.solve(G, H), rtol=1e-6)
    agreed = enumerated(SKEWED, numbers, 1e-9)[2]  # votes that always agree
    np.testing.assert_allclose(sl.pooled_efficiency(numbers, 0) * agreed, H @ np.linalg.solve(one, H), rtol=1e-6)


# ------------------------------------------------------------------ designs


def worth(n, m, alpha0):
    return F(n * m) if alpha0 == "inf" else n * m * (1 + F(alpha0)) / (m + F(alpha0))


@functools.cache
def brute(budget, item, vote, alpha0, n_items=None, cost_truth=None, min_items=1):
    """Every pair of whole numbers that the budget pays for; amounts are decimal strings, so nothing is rounded."""
    budget, item, vote = F(budget), F(item), F(vote)
    top = floor(budget / vote)
    most_items = {m: min(n_items or top, floor(budget / (item + m * vote))) for m in range(1, top + 1)}
    pairs = [(n, m) for m, most in most_items.items() for n in range(min_items, most + 1)]
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
    for budget in ("12", "60", "100.3")
    for item in ("0", "0.1", "2", "7.3")
    for vote in ("0.3", "1", "2.5")
    for alpha0 in ("0.7", "5", "inf")
    for n_items, truth, least in ((None, None, 1), (4, "1.1", 1), (None, "6", 3), (9, "40", 2))
    if int(least) * (F(item) + F(vote)) <= F(budget)
]


def differences(design):
    """The cases in which a calculator does not find what the search finds."""
    wrong = []
    for case in CASES:
        n, m, most, cost, truth = brute(*case)
        budget, item, vote, alpha0, n_items, price, least = case
        amounts = {"budget": float(budget), "cost_item": float(item), "cost_vote": float(vote), "alpha0": float(alpha0)}
        got = design(**amounts, n_items=n_items, cost_truth=None if price is None else float(price), min_items=least)
        same = (got.n_items, got.m, got.n_truth) == (n, m, truth)
        if not same or (got.worth, got.cost) != pytest.approx((float(most), float(cost)), rel=1e-12):
            wrong.append((case, got, (n, m)))
    return wrong


def test_is_the_best_of_all_designs():
    assert len(CASES) > 300
    assert differences(sl.design_votes) == []


def rounded(budget, cost_item, cost_vote, alpha0, n_items, cost_truth, min_items, whole=(np.floor, np.ceil)):
    """The textbook's way: the root rounded down and up, then as many items as the money buys."""
    root = max(1, sqrt(alpha0 * cost_item / cost_vote)) if cost_item else 1
    root = min(root, budget / cost_vote)
    best = sl.VoteDesign(0, 0, 0.0, 0.0, root)
    for m in {max(1, int(f(root))) for f in whole}:
        n = min(n_items or inf, budget // (cost_item + m * cost_vote))
        if n * sl.relative_efficiency(m, alpha0) > best.worth:
            best = sl.VoteDesign(int(n), m, n * sl.relative_efficiency(m, alpha0), n * (cost_item + m * cost_vote), root)
    return best


def test_rounding_the_root_is_not_enough():
    whole = [case for case in CASES if case[4:] == (None, None, 1)]
    missed = [case for case, *_ in differences(rounded) if case in whole]
    assert len(missed) > len(whole) / 4


@examples(200)
@given(
    st.fractions(1, 60, max_denominator=20),
    st.fractions(0, 9, max_denominator=20),
    st.fractions("1/4", 9, max_denominator=20),
    ALPHA0,
    st.one_of(st.none(), st.integers(1, 9)),
)
def test_no_design_is_better(budget, item, vote, alpha0, n_items):
    amounts = {"budget": float(budget), "cost_item": float(item), "cost_vote": float(vote)}
    design = attempt(sl.design_votes, **amounts, alpha0=alpha0, n_items=n_items)
    assert (design is None) == (item + vote > budget)
    if design is not None:
        n = [min(n_items or np.inf, budget // (item + m * vote)) for m in range(1, int(budget / vote) + 1)]
        most = max(k * attempt(sl.relative_efficiency, m, alpha0) for m, k in enumerate(n, 1))
        assert design.worth == pytest.approx(most, rel=1e-12)
        assert design.n_items * (item + design.m * vote) <= budget
        assert design.worth == design.n_items * attempt(sl.relative_efficiency, design.m, alpha0)


def test_decimal_amounts_are_affordable():
    for k in range(1, 300):
        for price in (0.1, 0.07, 1.1, 0.35):
            design = sl.design_votes(budget=float(F(str(price)) * k), cost_item=0, cost_vote=price, alpha0=2)
            assert (design.n_items, design.m) == (k, 1)
    assert sl.design_votes(budget=0.3, cost_item=0, cost_vote=0.1, alpha0=2).cost == 0.3  # 3 * 0.1 is more than 0.3
    assert sl.design_votes(budget=np.nextafter(3, 0) - 1e-13, cost_item=0, cost_vote=1, alpha0=2).n_items == 2


@pytest.mark.parametrize("alpha0", [0.3, 2.0, 30.0])
@pytest.mark.parametrize("item", [0.5, 4.0, 90.0])
def test_large_budgets_approach_the_closed_forms(alpha0, item):
    design = sl.design_votes(budget=1e9, cost_item=item, cost_vote=1, alpha0=alpha0)
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
    one = sl.design_votes(budget=1000, cost_item=1, cost_vote=1, alpha0=1e-12)  # the second vote repeats the first
    assert (one.n_items, one.m) == (500, 1) and one.worth == 500
    none = sl.design_votes(budget=1000, cost_item=1, cost_vote=1, alpha0=inf)
    assert (none.n_items, none.m, none.root) == (1, 999, inf)
    least = sl.design_votes(budget=1000, cost_item=1, cost_vote=1, alpha0=inf, min_items=50)
    assert (least.n_items, least.m, least.worth) == (50, 19, 950)
    free = sl.design_votes(budget=1000, cost_item=0, cost_vote=1, alpha0=inf)
    assert (free.n_items, free.m, free.root) == (1000, 1, 0)  # all designs cost and are worth the same: most items


def test_large_budgets():
    design = sl.design_votes(budget=1e12, cost_item=3, cost_vote=1, alpha0=5)
    assert design.m == 4 and design.n_items == 10**12 // 7
    pool = sl.design_votes(budget=1e12, cost_item=3, cost_vote=1, alpha0=5, n_items=2)
    assert (pool.n_items, pool.m) == (2, 5 * 10**11 - 3)


def test_a_design_reads_well():
    design = sl.design_votes(budget=4, cost_item=1, cost_vote=3, alpha0=2, cost_truth=1)
    assert repr(design).startswith("VoteDesign(1 item with 1 vote each") and "np.float64" not in repr(design)


# ------------------------------------------------------------------ limits of fits to another response


def flipped(e1, e2):
    return lambda eta: e2 + (1 - e1 - e2) * expit(eta)


def test_pooled_votes_are_theorem_2():
    for m, alpha0 in ((5, 2.0), (3, np.inf)):
        kappa = sl.relative_efficiency(m, alpha0)
        limit = sl.fit_limit(SKEWED, expit, lambda eta, kappa=kappa: expit(eta) * expit(-eta) / kappa)
        assert limit.relative_efficiency == pytest.approx(kappa, rel=1e-8)
        assert limit.break_even == np.inf


def test_rate_is_that_of_numerical_derivatives():
    """C = gradient' bias + trace(Hessian V) / 2 of the exact error rate."""
    for model in (SKEWED, sl.TwoClassNormal.canonical(1.5, p=3, prior1=0.8)):
        limit = sl.fit_limit(model, flipped(0.05, 0.25))
        h = 1e-3
        e, err, b = h * np.eye(len(limit.coef)), model.error_rate, limit.coef
        gradient = (err(b + e) - err(b - e)) / (2 * h)
        up, down = e[:, None] + e, e[:, None] - e
        hessian = (err(b + up) - err(b + down) - err(b - down) + err(b - up)) / (4 * h * h)
        C = gradient @ limit.bias + np.trace(hessian @ limit.cov) / 2
        assert limit.rate == pytest.approx(C, rel=1e-4)
        assert abs(gradient @ limit.bias) > 20e-4 * limit.rate  # so the bias is tested too


@pytest.mark.parametrize("q", [flipped(0.05, 0.25), lambda eta: expit(eta / 2 + 0.7)])
def test_covariance_and_bias_by_quadrature(q):
    """H^-1 G H^-1 and the bias of order 1 / n (Cox and Snell 1968) over all features, in no special coordinates."""
    (x, w), limit = features(SKEWED), sl.fit_limit(SKEWED, q, lambda eta: q(eta) * (1 - q(eta)) / 3)
    response, tau = q(x @ SKEWED.coef), expit(x @ limit.coef)
    np.testing.assert_allclose(x.T @ (w * (response - tau)), 0, atol=1e-8)

    def moment(weight):
        return (x.T * w * weight) @ x

    curved, inverse = tau * (1 - tau), np.linalg.inv(moment(tau * (1 - tau)))
    cov = inverse @ moment(response * (1 - response) / 3 + (response - tau) ** 2) @ inverse
    np.testing.assert_allclose(limit.cov, cov, rtol=1e-6, atol=1e-9)
    forms = [np.einsum("ja,ab,jb->j", x, A, x) for A in (inverse, cov)]
    pulls = w * curved * ((response - tau) * forms[0] + (1 - 2 * tau) * forms[1] / 2)
    np.testing.assert_allclose(limit.bias, -inverse @ x.T @ pulls, rtol=1e-5)


def test_break_even():
    lean = sl.fit_limit(PAIR, lambda eta: expit(eta + 0.25), lambda eta: expit(eta + 0.25) * expit(-eta - 0.25) / 4)
    n = lean.break_even
    assert lean.floor + lean.rate / n == pytest.approx(lean.truth / n)
    assert sl.fit_limit(PAIR, flipped(0.1, 0.2)).break_even == 0


@examples(60)
@example(delta=1.0, p=1, prior1=0.1875, s=0.5, c=-1.5982012364975424e-09, share=0.0)  # a floor of rounding size
@given(st.floats(0.3, 5), st.integers(1, 4), st.floats(0.02, 0.98), st.floats(0.1, 4), st.floats(-2, 2), st.floats(0, 1))
def test_limit_of_a_distorted_response(delta, p, prior1, s, c, share):
    """Votes of log-odds s eta + c have a limit in closed form, and fewer of them a larger variance."""
    model = sl.TwoClassNormal.canonical(delta, p, prior1)

    def mean(eta):
        return expit(s * eta + c)

    limit = attempt(sl.fit_limit, model, mean, lambda eta: share * mean(eta) * (1 - mean(eta)))
    np.testing.assert_allclose(limit.coef, s * model.coef + np.eye(p + 1)[0] * c, rtol=1e-6, atol=1e-6)
    assert limit.floor >= 0 and limit.truth == pytest.approx(attempt(model.excess_error))
    assert np.linalg.eigvalsh(limit.cov).min() >= -1e-9 * np.abs(limit.cov).max()
    assert limit.break_even >= 0 and limit.relative_efficiency >= 0
    assert "np.float64" not in repr(limit)


@pytest.mark.parametrize("delta", [6.0, 9.0])
def test_limit_where_next_to_no_class_is_uncertain(delta):
    limit = sl.fit_limit(sl.TwoClassNormal.canonical(delta), expit)
    np.testing.assert_allclose(limit.coef, [0, delta, 0], atol=1e-6)
    with pytest.raises(ValueError, match="next to no items are of uncertain class"):
        sl.fit_limit(sl.TwoClassNormal.canonical(30.0), expit)
