"""Votes given counts: sums with a known distribution, beside all ways to deal the votes out, and other programs' answers."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import binom, fisher_exact

from softlabel.labellers import exchangeable as ex


def panel(seed=0, n=60, J=5, m=None, p=2, alpha0=2.0):
    """Interchangeable annotators; ``m`` of them on each item."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    tau = expit(x @ np.ones(p)) if p else np.full(n, 0.4)
    chance = rng.beta(alpha0 * tau, alpha0 * (1 - tau))
    who = rng.permuted(np.tile(np.arange(J), (n, 1)), axis=1)[:, : m or J]
    item = np.repeat(np.arange(n), who.shape[1])
    y = (rng.random(len(item)) < chance[item]).astype(float)
    return ex.Panel(item, who.ravel(), y, x, J)


def deals(small):
    """All panels with the same counts, which are equally likely if annotators are interchangeable."""
    ways = []
    for i in range(small.n_items):
        votes = np.flatnonzero(small.item == i)
        ways.append([set(votes[list(c)]) for c in combinations(range(len(votes)), int(small.s[i]))])
    for chosen in product(*ways):
        y = np.zeros(len(small.y))
        y[list(set().union(*chosen))] = 1
        yield ex.Panel(small.item, small.annotator, y, small.x, small.n_annotators)


SMALL = ex.Panel(
    np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 3]),
    np.array([0, 1, 2, 0, 1, 2, 3, 0, 1, 0, 2, 3]),
    np.array([1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0.0]),
    np.array([[0.5], [-1.0], [0.3], [1.2]]),
    4,
)


# ------------------------------------------------------------------ sums


def test_a_deviation_has_the_moments_of_all_deals():
    weight = np.array([0.3, -1.2, 2, 0.7, 1.1, 0.4, 0.9, -0.5, 1.3, 0.2, 0.8, -0.6])
    z = np.array([ex.deviation(deal, weight).z for deal in deals(SMALL)])
    assert len(z) == 3 * 6 * 2 * 3
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose((z**2).mean(axis=0), 1, rtol=1e-12)


def test_of_weights_that_are_functions_of_counts_too():
    prediction = ex.Prediction(np.array([0.3, 0.6, 0.5, 0.8]), 0.2)
    weights = [ex.agreement_weights(deal, prediction) for deal in deals(SMALL)]
    np.testing.assert_allclose(weights, [weights[0]] * len(weights))  # a vote does not move its own weight


@pytest.mark.parametrize("t", [-1, -2, -2.5, -3, 1, 2, 3])
def test_saddlepoint_beside_all_outcomes(t):
    a = np.array([0.3, -1.2, 2, 0.7, 1.1, 0.4, 0.9, -0.5, 1.3, 0.2, 0.61, 0.83, -0.97])
    p = np.array([0.2, 0.4, 0.6, 0.8, 0.2, 0.4, 0.6, 0.2, 0.4, 0.8, 0.5, 0.33, 0.25])
    y = np.array(list(product([0, 1], repeat=len(a))))
    chance, sums = np.prod(np.where(y, p, 1 - p), axis=1), (y - p) @ a
    exact = chance[sums <= t].sum() if t < 0 else chance[sums >= t].sum()
    found = ex.saddlepoint(a, p, np.zeros(len(a), int), np.array([float(t)]))
    np.testing.assert_allclose(found, exact, rtol=0.05)
    two = ex.saddlepoint(np.r_[a, a], np.r_[p, p], np.repeat([0, 1], len(a)), np.array([float(t), 0.7]))
    np.testing.assert_allclose(two[:1], found, rtol=1e-8)  # groups do not disturb each other


@pytest.mark.parametrize("n, p", [(12, 0.5), (40, 0.3), (3000, 0.05)])
def test_saddlepoint_far_out(n, p):
    """With a half step, chances of a binomial down to 1e-12, where a normal distribution is off by powers of ten."""
    for chance in (1e-2, 1e-4, 1e-8, 1e-12):
        k = binom.isf(chance, n, p)
        if k < n:
            found = ex.saddlepoint(np.ones(n), np.full(n, p), np.zeros(n, int), np.array([k - n * p - 0.5]))
            np.testing.assert_allclose(found, binom.sf(k - 1, n, p), rtol=0.35)
    ends = [ex.saddlepoint(np.ones(n), np.full(n, p), np.zeros(n, int), np.array([t]))[0] for t in (n - n * p, -n * p)]
    np.testing.assert_allclose(ends, [p**n, (1 - p) ** n], rtol=1e-9)


def test_who_has_no_contested_item_has_nothing_to_show():
    item, who, y = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 2, 3]), np.array([1, 1, 0, 1, 0.0])
    unanimous = ex.Panel(item, who, y, np.zeros((2, 0)), 5)
    for found in (ex.deviation(unanimous, np.ones(5)), ex.deviation(unanimous, np.ones(5), step=1.0)):
        assert found.z[0] == found.z[4] == 0
        assert found.low[0] == found.high[0] == found.low[4] == 1


def test_chances_of_a_lean_are_at_most_nominal():
    """With a half step; without, those of few votes are too small."""
    low = np.concatenate([ex.deviation(q, np.ones(len(q.y)), step=1.0).low for q in (panel(s, n=25, m=3) for s in range(500))])
    for level in (0.1, 0.01):
        assert (low < level).mean() < level + 4 * np.sqrt(level / 500)


# ------------------------------------------------------------------ what is predicted


def test_log_odds_of_others_by_hand():
    prediction = ex.Prediction(np.array([0.3, 0.6, 0.5, 0.8]), 1 / 3)  # alpha0 = 2
    found = expit(ex.of_others(SMALL, prediction))
    assert found[0] == pytest.approx((0 + 2 * 0.3) / (2 + 2))  # others: 0 of 2
    assert found[5] == pytest.approx((2 + 2 * 0.6) / (3 + 2))  # 2 of 3
    core = np.array([True, False, True, True])
    assert expit(ex.of_others(SMALL, prediction, core))[1] == pytest.approx((1 + 0.6) / (2 + 2))  # who is out has both others
    assert expit(ex.of_others(SMALL, prediction, core))[0] == pytest.approx((0 + 0.6) / (1 + 2))


def test_agreement_weights_by_hand():
    prediction = ex.Prediction(np.array([0.3, 0.6, 0.5, 0.8]), 1 / 3)
    found = ex.agreement_weights(SMALL, prediction)
    # Of 2 of 4 votes: a positive one leaves 1 of 3 positive, a negative one 1 of 3 negative.
    assert found[3] == pytest.approx(np.log((1 + 1.2) / 5) - np.log((1 + 0.8) / 5))
    other = ex.Panel(SMALL.item, SMALL.annotator, 1 - SMALL.y, SMALL.x, 4)
    np.testing.assert_allclose(ex.agreement_weights(other, prediction._replace(tau=1 - prediction.tau)), -found)


def penalised(q, use):
    """Log-odds of all items by the maximum of the penalised likelihood of some."""
    p, s, m = q.x.shape[1], q.s[use], q.m[use]
    start = np.r_[logit((q.s.sum() + 0.5) / (q.m.sum() + 1)), np.zeros(p)]
    penalty = np.r_[0.5, np.full(p, max(1, p / 4))]
    design = np.column_stack([np.ones(len(q.x)), q.x])

    def loss(beta):
        eta, away = design[use] @ beta, beta - start
        gradient = design[use].T @ (m * expit(eta) - s) + penalty * away
        return m @ np.logaddexp(0, eta) - s @ eta + penalty @ away**2 / 2, gradient

    return design @ minimize(loss, start, jac=True, tol=1e-10).x


def test_ridge_is_the_maximum_of_its_penalised_likelihood():
    q = panel(3, p=6)
    np.testing.assert_allclose(ex.ridge(q.x, q.s, q.m)[0], penalised(q, np.full(60, True)), atol=1e-4)


@pytest.mark.parametrize("n, p", [(60, 2), (60, 20)])
def test_an_item_is_predicted_by_the_others(n, p):
    """As by a fit to all others, from which the fit to all items is far."""
    q = panel(4, n=n, p=p)
    whole, others = ex.ridge(q.x, q.s, q.m)
    exact = np.array([penalised(q, np.arange(n) != i)[i] for i in range(n)])
    assert np.abs(others - exact).max() < 0.1 * np.abs(whole - exact).max()


def test_products_of_pairs_by_hand():
    tau = np.array([0.3, 0.6, 0.5, 0.8])
    products, scale = ex.together(SMALL.s, SMALL.m, tau)
    for i in range(4):
        r = SMALL.y[SMALL.item == i] - tau[i]
        assert products[i] == pytest.approx(sum(a * b for a, b in combinations(r, 2)))
        assert scale[i] == pytest.approx(len(r) * (len(r) - 1) / 2 * tau[i] * (1 - tau[i]))


@pytest.mark.parametrize("alpha0", [0.5, 5.0])
def test_the_correlation_of_votes_is_recovered(alpha0):
    found = ex.predict(panel(1, n=20_000, alpha0=alpha0))
    assert found.alpha0 == pytest.approx(alpha0, rel=0.06)


def test_predictions_are_of_the_votes_on_other_items():
    """In 25 features that mean nothing a fit to all finds some of the votes; a prediction goes with none."""
    products = []
    for seed in range(40):
        q = panel(seed, n=60, p=25)
        q = ex.Panel(q.item, q.annotator, np.random.default_rng(seed).integers(0, 2, len(q.y)).astype(float), q.x, 5)
        products.append(np.corrcoef(ex.predict(q).tau, q.s)[0, 1])
    assert abs(np.mean(products)) < 0.1  # of the fit to all it is 0.6


@pytest.mark.parametrize("lean, slope", [(0.0, 1.0), (1.0, 0.5), (0.0, -1.0)])
def test_how_votes_follow(lean, slope):
    rng = np.random.default_rng(4)
    item, who = np.repeat(np.arange(4000), 2), np.tile([0, 1], 4000)
    log_odds = 1.5 * rng.normal(size=8000)
    y = (rng.random(8000) < expit(np.where(who == 0, lean + slope * log_odds, log_odds))).astype(float)
    found = ex.follow(ex.Panel(item, who, y, np.zeros((4000, 0)), 2), log_odds)
    assert abs(found.lean[0] - lean) < 4 * found.lean_error[0] < 0.25
    assert abs(found.slope[0] - slope) < 4 * found.slope_error[0] < 0.25
    assert abs(found.slope[1] - 1) < 4 * found.slope_error[1]


def test_few_votes_stay_at_the_prior():
    """No vote leaves it as it is; of three, mode and evidence are those found by minimising and by integrating."""
    few = ex.Panel(np.zeros(3, int), np.zeros(3, int), np.array([1.0, 1, 0]), np.zeros((1, 0)), 2)
    log_odds, prior = np.array([0.1, 2, 1]), ex.Prior(2.0, 0.5, 0.7)
    found = ex.follow(few, log_odds, prior)
    assert found.slope[1] == pytest.approx(0.5) and found.slope_error[1] == pytest.approx(0.7)
    assert found.lean[1] == 0 and found.lean_error[1] == pytest.approx(2)
    assert found.evidence[1] == pytest.approx(0)

    def loss(theta):
        eta = theta[0] + theta[1] * log_odds
        return -(few.y @ eta - np.logaddexp(0, eta).sum()) + theta[0] ** 2 / 8 + (theta[1] - 0.5) ** 2 / (2 * 0.7**2)

    mode = minimize(loss, np.zeros(2), tol=1e-10)
    np.testing.assert_allclose([found.lean[0], found.slope[0]], mode.x, atol=1e-5)
    cov = np.linalg.inv(hessian(loss, mode.x))
    np.testing.assert_allclose([found.lean_error[0], found.slope_error[0]], np.sqrt(np.diag(cov)), rtol=1e-4)
    evidence = -mode.fun + np.log(np.linalg.det(cov)) / 2 - np.log(2 * 0.7)
    assert found.evidence[0] == pytest.approx(evidence, abs=1e-5)
    a, b = np.meshgrid(np.linspace(-12, 12, 400), np.linspace(-4, 5, 400))
    mass = np.exp(-np.array([loss(theta) for theta in zip(a.ravel(), b.ravel())])).sum() * 24 / 399 * 9 / 399
    assert found.evidence[0] == pytest.approx(np.log(mass / (2 * np.pi * 2 * 0.7)), abs=0.1)


def hessian(function, x, h=1e-4):
    e = h * np.eye(len(x))
    f = function
    return np.array([[f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b) for b in e] for a in e]) / (4 * h**2)


# ------------------------------------------------------------------ pairs


def test_agreement_of_pairs_over_all_deals():
    """Expectation and variance of each pair's agreement are those over all deals; items with two votes do not count."""
    every = list(deals(SMALL))
    found = [ex.pairs(deal) for deal in every]
    first = found[0]
    agree = np.array([f.agree for f in found])
    np.testing.assert_allclose(agree.mean(axis=0), first.expected)
    np.testing.assert_allclose(agree.var(axis=0), first.variance)
    at = {pair: k for k, pair in enumerate(zip(first.first, first.second))}
    assert first.shared[at[0, 1]] == 2 and first.shared[at[0, 3]] == 2 and (1, 3) in at

    np.testing.assert_allclose((first.agree - first.expected)[0] / np.sqrt(first.variance[0]), first.z[0])
    assert not len(ex.pairs(ex.Panel(SMALL.item, SMALL.annotator, np.ones(12), SMALL.x, 4)).z)


def test_excess_is_the_share_of_disagreements_gone():
    q = panel(6, n=400, J=4)
    y = q.y.copy()
    y[q.annotator == 1] = y[q.annotator == 0][np.argsort(q.item[q.annotator == 0])][q.item[q.annotator == 1]]
    found = ex.pairs(ex.Panel(q.item, q.annotator, y, q.x, 4))
    at = {pair: k for k, pair in enumerate(zip(found.first, found.second))}
    assert found.excess[at[0, 1]] == pytest.approx(1) and found.excess[at[2, 3]] < 0.3
    honest = ex.pairs(panel(6, n=4000, J=4)).excess
    assert np.abs(honest).max() < 0.1


def test_chance_of_copying_is_that_of_independent_items():
    q = panel(8, n=40, J=5, p=0)
    s, m = q.s, q.m
    p = ((s * (s - 1) + (m - s) * (m - s - 1)) / (m * (m - 1)))[(s > 0) & (s < m)]
    votes = np.zeros((5, 40))
    votes[q.annotator, q.item] = q.y
    differ = votes[:, (s > 0) & (s < m)]
    agree, one, two = max(((differ[j] == differ[k]).sum(), j, k) for j, k in combinations(range(5), 2))
    number = np.ones(1)
    for chance in p:
        number = np.convolve(number, [1 - chance, chance])
    exact = number[agree:].sum()
    assert 0.001 < exact < 0.4
    assert ex.copying_chance(q, one, two) == pytest.approx(exact, rel=0.05)
    assert min(ex.copying_chance(q, j, k) for j, k in combinations(range(5), 2)) == ex.copying_chance(q, one, two)


@pytest.mark.parametrize("table", [(3, 9, 8, 2), (0, 10, 12, 1), (5, 2, 3, 30), (0, 0, 4, 5), (20, 61, 55, 31)])
def test_disagreement_is_fishers_test(table):
    exact = fisher_exact(np.reshape(table, (2, 2)), alternative="less").pvalue
    assert ex.disagreement_chance(*map(float, table)) == pytest.approx(exact, rel=1e-8)


def test_features_are_standardised_whatever_their_unit():
    X = np.random.default_rng(0).normal(size=(50, 3))
    found = ex.standardise(np.column_stack([X[:, 0] * 1e300 + 1e299, X[:, 1] * 1e-290, np.full(50, 7.0)]))
    np.testing.assert_allclose(found[:, :2], (X[:, :2] - X[:, :2].mean(axis=0)) / X[:, :2].std(axis=0), rtol=1e-9)
    assert (found[:, 2] == 0).all()
