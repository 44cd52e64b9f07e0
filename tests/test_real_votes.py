"""What votes are worth when their mean is wrong: the theorem of book/beyond/10.

The negative checks put an altered formula, or a broken condition, through the function that accepts the right one.
"""

import warnings
from itertools import product

import numpy as np
import pytest
import sympy as sp
from scipy import optimize, special, stats
from test_efficiency import PAIR, SKEWED
from test_efficiency import features as items_of
from test_theorems import is_zero

from softlabel import ConvergenceWarning, fit_limit, fit_logistic_batch, relative_efficiency, sample_votes

expit, ndtr = special.expit, special.ndtr


# ------------------------------------------------------------------ The formulas


def parts_of_truth(truth, votes, mean, cov):
    """Lean, scale, and the square of the tilt."""
    scale = (truth[1:] @ cov @ votes[1:]) / (votes[1:] @ cov @ votes[1:])
    rest = truth - scale * votes
    return rest[0] + rest[1:] @ mean, scale, rest[1:] @ cov @ rest[1:]


def squared_residual(u, mu, t, m):
    """E (R - t)^2, what stands between x x' in B_1 + B_2 / m."""
    return u + (mu - t) ** 2 + (mu * (1 - mu) - u) / m


def worth_of_direction(of_truth, of_votes, s):
    """Part (b), from the traces of J C."""
    return of_truth / (s**2 * of_votes)


def quick_floor(J, delta):
    return delta @ J @ delta


def most_worth(of_truth, floor):
    return of_truth / floor


def chance_of_error(tau, positive):
    """At an item, of a rule that says yes with probability ``positive``."""
    return tau * (1 - positive) + (1 - tau) * positive


# ------------------------------------------------------------------ Quadrature and simulation


def moments_of(model):
    x, w = items_of(model)
    mean = w @ x[:, 1:]
    return mean, (x[:, 1:].T * w) @ x[:, 1:] - np.outer(mean, mean)


def limit_of(x, w, mu):
    """Coefficients to which responses of mean mu tend, by a search that knows nothing of directions."""
    found = optimize.root(lambda b: x.T @ (w * (mu - expit(x @ b))), np.zeros(x.shape[1]), tol=1e-12)
    assert found.success
    return found.x


def sandwich(x, w, b, u, mu, m):
    t = expit(x @ b)
    bread = np.linalg.inv((x.T * (w * t * (1 - t))) @ x)
    return bread @ (x.T * (w * squared_residual(u, mu, t, m))) @ x @ bread


def bias_of(x, w, b, V, mu):
    """Limit of n E(estimate - b), from the expansion of the score to second order."""
    t = expit(x @ b)
    bread = np.linalg.inv((x.T * (w * t * (1 - t))) @ x)
    forms = [np.sum(x @ M * x, axis=1) for M in (bread, V)]
    return -bread @ x.T @ (w * t * (1 - t) * ((mu - t) * forms[0] + (1 - 2 * t) * forms[1] / 2))


def logistic_votes(model, b, m, alpha0):
    """V_m of votes with mean expit(b'x) and correlation 1 / (1 + alpha0)."""
    x, w = items_of(model)
    mu = expit(x @ b)
    return sandwich(x, w, b, mu * (1 - mu) / (1 + alpha0), mu, m)


def coefficients(model, respond, n, size, seed):
    """(size, 3), from responses respond(Y, z, rng)."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(size // 250):
        Y, z = model.sample(n, rng, size=250)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found.append(fit_logistic_batch(Y, respond(Y, z, rng)).coef)
    return np.concatenate(found)


def voting(b, m, alpha0):
    def respond(Y, z, rng):
        eta = b[0] + Y @ b[1:]
        return sample_votes(np.stack([expit(eta), expit(-eta)], axis=-1), m, alpha0, rng=rng)

    return respond


def distance(model, coef, excess):
    """How many standard errors the mean excess error lies from a value."""
    found = model.error_rate(coef) - model.bayes_error()
    return (found.mean() - excess) / stats.sem(found)


def expected_excess(b, V, n):
    """Of PAIR, by the first term of part (d): the midpoint rule along the discriminant, Gauss and Hermite across."""
    node, mass = np.polynomial.hermite_e.hermegauss(40)
    y = np.arange(-8, 8, 0.005) + 0.0025
    f = (stats.norm.pdf(y, 1) + stats.norm.pdf(y, -1)) / 2 * 0.005
    x = np.stack(np.broadcast_arrays(1.0, y[:, None], node), axis=-1)
    z = np.sqrt(n) * (x @ b) / np.sqrt(np.einsum("...i,ij,...j", x, V, x))
    errors = chance_of_error(expit(x @ PAIR.coef), ndtr(z))
    return f @ errors @ mass / mass.sum() - PAIR.bayes_error()


# ------------------------------------------------------------------ Symbolic


def test_the_parts_of_the_truth_are_uncorrelated_symbolically():
    c = sp.symbols("c1:4")
    truth, votes, mean = (np.array(sp.symbols(f"{name}0:{k}")) for name, k in (("t", 3), ("v", 3), ("m", 2)))
    cov = np.array([[c[0], c[1]], [c[1], c[2]]])
    lean, scale, tilt2 = parts_of_truth(truth, votes, mean, cov)
    rest = truth[1:] - scale * votes[1:]  # slopes of what is left, which has mean zero beside the lean
    assert is_zero(rest @ cov @ votes[1:])
    assert is_zero(truth[0] + truth[1:] @ mean - lean - scale * (votes[0] + votes[1:] @ mean))
    variance = truth[1:] @ cov @ truth[1:]
    assert is_zero(variance - scale**2 * (votes[1:] @ cov @ votes[1:]) - tilt2)


def test_the_two_parts_of_a_residual_symbolically():
    """By enumeration of the votes; the item's probability has three values."""
    p, q, t = sp.symbols("p1:4"), sp.symbols("q1:3"), sp.symbols("t")
    q = (*q, 1 - sum(q))
    mu = sum(a * b for a, b in zip(q, p))
    u = sum(a * b**2 for a, b in zip(q, p)) - mu**2
    for m in (1, 2, 3):
        squared = sum(
            a * sp.binomial(m, k) * b**k * (1 - b) ** (m - k) * (sp.Rational(k, m) - t) ** 2
            for a, b in zip(q, p)
            for k in range(m + 1)
        )
        assert sp.expand(squared - squared_residual(u, mu, t, m)) == 0


def test_the_scale_enters_as_a_square_symbolically():
    """The second derivatives of an error rate at beta / s are s^2 times those at beta; then the formula of the right mean."""
    b0, b1, s, beta, m, a, w0 = sp.symbols("b0 b1 s beta m alpha0 w0", positive=True)

    def cdf(z):
        return (1 + sp.erf(z / sp.sqrt(2))) / 2

    error = sp.Rational(1, 3) * cdf(-(b0 + b1) / b1) + sp.Rational(2, 3) * cdf((b0 - b1) / b1)
    second = sp.hessian(error, (b0, b1))
    at_truth, at_votes = (second.subs({b0: -sp.log(2) / k, b1: beta / k}) for k in (1, s))
    cov = sp.Matrix(2, 2, sp.symbols("v1 v2 v2 v3"))
    excess = (at_votes * cov).trace()
    assert sp.simplify(worth_of_direction(1, (at_truth * cov).trace(), s) * excess - 1) == 0
    # Equal correlations: the meat is the bread times (m + alpha0) / (m (1 + alpha0)), so the factor splits off.
    u = w0 / (1 + a)  # w0 = mu (1 - mu)
    mu = sp.symbols("mu")
    meat = squared_residual(u, mu, mu, m).subs(mu * (1 - mu), w0)
    assert is_zero(worth_of_direction(w0, meat, 1) - m * (1 + a) / (m + a))
    assert is_zero(worth_of_direction(w0, meat, s) - m * (1 + a) / (m + a) / s**2)


def test_errors_near_the_boundary_and_the_most_that_votes_are_worth_symbolically():
    """Part (d) contains part (b): integrated over eta it gives a quarter of s sigma^2 / n. And c / n = F has one solution."""
    tau, phi, c, F, n = sp.symbols("tau phi c F n", positive=True)
    s, v, sigma = sp.symbols("s v sigma", positive=True)
    for positive, best in ((1 - phi, 1 - tau), (phi, tau)):  # on either side the wrong decision has the chance phi
        loss = sp.expand(chance_of_error(tau, positive) - best)
        assert sp.expand(loss - phi * (2 * tau - 1) * (1 if best == 1 - tau else -1)) == 0
    wrong = sp.erfc(sp.sqrt(n) * v / sigma / sp.sqrt(2)) / 2
    loss = (chance_of_error(tau, 1 - phi) - (1 - tau)).subs({tau: sp.Rational(1, 2) + s * v / 4, phi: wrong})
    total = sp.integrate(2 * sp.expand(loss), (v, 0, sp.oo))
    assert sp.simplify(total - s * sigma**2 / (4 * n)) == 0
    assert sp.solve(c / n - F, n) == [most_worth(c, F)]


# ------------------------------------------------------------------ Numeric


def two_minds(x):
    """Mean of votes of which half follow another feature, and covariance of two votes on items over- or underrated."""
    mu = (expit(x @ SKEWED.coef) + expit(0.5 - 2 * x[..., 2])) / 2
    return mu, (0.9 * np.minimum(mu, 1 - mu)) ** 2


def farthest_entry(away, V):
    """Standard errors by which the covariance of the estimates, whitened by V, departs from the unit matrix."""
    white = (away - away.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(V)).T
    products = white[:, :, None] * white[:, None, :]
    return np.abs((products.mean(axis=0) - np.eye(3)) / (products.std(axis=0) / np.sqrt(len(away)))).max()


def test_limit_and_covariance_with_a_wrong_mean_numerically():
    """A mean that is no logistic curve, items whose probability is mu plus or minus something: no beta distribution."""
    m, n = 3, 1000
    x, w = items_of(SKEWED)
    mu, u = two_minds(x)

    b = limit_of(x, w, mu)

    def respond(Y, z, rng):
        mean, variance = two_minds(np.insert(Y, 0, 1, axis=-1))
        p = mean + np.sqrt(variance) * rng.choice([-1, 1], size=mean.shape)
        s = rng.binomial(m, p)
        return np.stack([s, m - s], axis=-1)

    away = np.sqrt(n) * (coefficients(SKEWED, respond, n, 4000, 1) - b)
    V = sandwich(x, w, b, u, mu, m)
    off = away.mean(axis=0) - bias_of(x, w, b, V, mu) / np.sqrt(n)
    assert np.abs(off / stats.sem(away)).max() < 4
    squares = np.einsum("ri,ij,rj->r", away, np.linalg.inv(V), away) / 3
    assert abs(squares.mean() - 1) < 4 * stats.sem(squares)
    # Negative: the dispersion as one number, which would do if B were a multiple of A.
    t = expit(x @ b)
    A = (x.T * (w * t * (1 - t))) @ x
    assert farthest_entry(away, V) < 5 and farthest_entry(away, np.trace(A @ V) / 3 * np.linalg.inv(A)) > 8


@pytest.mark.parametrize("s, seed", [(0.5, 2), (2.0, 3)])
def test_worth_of_votes_off_scale_numerically(s, seed):
    m, alpha0, n = 5, 4.0, 1000
    b, J, of_truth = SKEWED.coef / s, SKEWED.error_curvature(), SKEWED.excess_error()
    worth = worth_of_direction(of_truth, np.trace(J @ logistic_votes(SKEWED, b, m, alpha0)), s)
    coef = coefficients(SKEWED, voting(b, m, alpha0), n, 1500, seed)
    assert abs(distance(SKEWED, coef, of_truth / worth / n)) < 4
    # Elsewhere it is the limit of a response whose mean is a function of eta; without a scale that of the paper.
    limit = fit_limit(
        SKEWED, lambda eta: expit(eta / s), lambda eta: expit(eta / s) * expit(-eta / s) / relative_efficiency(m, alpha0)
    )
    assert worth == pytest.approx(limit.relative_efficiency, rel=1e-3)


def test_the_factor_of_the_scale_is_the_same_for_all_m():
    J, of_truth = SKEWED.error_curvature(), SKEWED.excess_error()
    for s in (0.5, 1.0, 2.0):
        factors = [
            worth_of_direction(of_truth, np.trace(J @ logistic_votes(SKEWED, SKEWED.coef / s, m, 4.0)), s)
            / relative_efficiency(m, 4.0)
            for m in (1, 5, 50)
        ]
        np.testing.assert_allclose(factors, factors[0], rtol=1e-9)
        assert (abs(factors[0] - 1) < 1e-3) == (s == 1)


DIRECTIONS = [(0.06, 0.0), (0.0, 0.05), (0.04, -0.05)]


@pytest.mark.parametrize("lean, slope", DIRECTIONS)
def test_a_small_floor_is_a_form_of_lean_and_tilt_and_not_of_scale(lean, slope):
    """By the sum over the items on which the rules disagree; SKEWED has a covariance and priors of no special kind."""
    J, moments = SKEWED.error_curvature(), moments_of(SKEWED)
    for s in (0.4, 1.0, 3.0):
        gaps = []
        for part in (4, 1):
            votes = (SKEWED.coef + np.array([lean, 0, slope]) / part) / s
            a, scale, tilt2 = parts_of_truth(SKEWED.coef, votes, *moments)
            delta = SKEWED.coef - scale * votes
            gaps.append(quick_floor(J, delta) / (SKEWED.error_rate(votes) - SKEWED.bayes_error()) - 1)
        assert abs(gaps[1]) < 0.015 and abs(gaps[0]) < 0.4 * abs(gaps[1])
        # delta'x has mean a, and variance |d|^2.
        x, w = items_of(SKEWED)
        assert w @ (x @ delta) == pytest.approx(a, abs=1e-12)
        assert w @ (x @ delta - a) ** 2 == pytest.approx(tilt2, abs=1e-12)


@pytest.mark.parametrize("lean, slope", [(0.5, 0.0), (0.0, 0.25), (-0.3, 0.5)])
def test_the_floor_is_what_is_lost_where_the_rules_disagree(lean, slope):
    votes = PAIR.coef + np.array([lean, 0, slope])
    node, mass = np.polynomial.hermite_e.hermegauss(80)
    half, weight = np.polynomial.legendre.leggauss(60)
    cut = -(votes[0] + votes[2] * node) / votes[1]  # between 0 and the cut, at each y_2
    y = cut[:, None] * (half + 1) / 2
    f = (stats.norm.pdf(y, 1) + stats.norm.pdf(y, -1)) / 2
    lost = np.abs(chance_of_error(expit(2 * y), 0) - chance_of_error(expit(2 * y), 1)) * f @ weight * np.abs(cut) / 2
    assert lost @ mass / mass.sum() == pytest.approx(PAIR.error_rate(votes) - PAIR.bayes_error(), rel=1e-9)


def test_votes_with_a_floor_are_worth_a_fixed_number_of_true_labels():
    """So many true labels have the floor as their expected excess error, more nearly the more they are."""
    of_truth = PAIR.excess_error()
    for tilt, seed, size in ((0.2, 4, 6000), (0.1, 5, 5000)):
        floor = PAIR.error_rate([0, 2, tilt]) - PAIR.bayes_error()
        n = round(most_worth(of_truth, floor))
        coef = coefficients(PAIR, lambda Y, z, rng: z, n, size, seed)
        assert abs(distance(PAIR, coef, floor)) < 4
        assert abs(distance(PAIR, coef, 0.9 * floor)) > 6


KINDS = {"lean": np.array([0.5, 2, 0]), "scale": np.array([0.0, 4, 0]), "tilt": np.array([0, 2, 0.5])}


@pytest.mark.parametrize("kind", KINDS)
def test_expected_error_at_any_number_of_items(kind):
    b = KINDS[kind]
    V = logistic_votes(PAIR, b, 5, 4.0)
    for n, size in ((200, 8000), (1000, 2000)):
        coef = coefficients(PAIR, voting(b, 5, 4.0), n, size, n)
        assert abs(distance(PAIR, coef, expected_excess(b, V, n))) < 4
    # Exact for normal coefficients, by a product rule over the three.
    node, mass = (np.array([*product(values, repeat=3)]) for values in np.polynomial.hermite_e.hermegauss(24))
    errors = PAIR.error_rate(b + node @ np.linalg.cholesky(V / 50).T) @ mass.prod(axis=1) / mass.prod(axis=1).sum()
    assert errors - PAIR.bayes_error() == pytest.approx(expected_excess(b, V, 50), rel=1e-4)


def test_what_the_first_term_leaves_out_is_the_bias():
    """n times what remains tends to zero. The part of the excess that is linear in the estimate has the mean of the bias."""
    b, h = np.array([1.0, 2, 0]), 1e-5
    V = logistic_votes(PAIR, b, 1, 4.0)
    gradient = np.array([PAIR.error_rate(b + e) - PAIR.error_rate(b - e) for e in h * np.eye(3)]) / (2 * h)
    x, w = items_of(PAIR)
    shift = gradient @ bias_of(x, w, b, V, expit(x @ b))
    n = 400
    coef = coefficients(PAIR, voting(b, 1, 4.0), n, 10_000, n)
    linear = (coef - b) @ gradient
    assert abs(n * linear.mean() - shift) < 4 * n * stats.sem(linear)
    curved = PAIR.error_rate(coef) - PAIR.bayes_error() - linear
    assert abs(curved.mean() - expected_excess(b, V, n)) < 4 * stats.sem(curved)


def test_bias_where_the_mean_is_no_logistic_curve():
    """Votes that follow the square of the only feature: both terms of the bias are large. The linear part has mean zero."""
    node, mass = np.polynomial.hermite_e.hermegauss(80)
    x, w = np.column_stack([np.ones(80), node]), mass / mass.sum()

    def mean(y):
        return expit(y**2 - 0.5 + 0.5 * y)

    mu = mean(node)
    b = limit_of(x, w, mu)
    t = expit(x @ b)
    bread = np.linalg.inv((x.T * (w * t * (1 - t))) @ x)
    rng, n, found = np.random.default_rng(9), 400, []
    for _ in range(16):
        y = rng.standard_normal((500, n, 1))
        label = (rng.random((500, n)) < mean(y[..., 0])).astype(float)
        left = label - expit(b[0] + b[1] * y[..., 0])
        score = np.stack([left.mean(axis=1), (left * y[..., 0]).mean(axis=1)], axis=-1)
        found.append(n * (fit_logistic_batch(y, label).coef - b - score @ bread))
    found = np.concatenate(found)
    away = (found.mean(axis=0) - bias_of(x, w, b, sandwich(x, w, b, 0, mu, 1), mu)) / stats.sem(found)
    assert np.abs(away).max() < 4


# ------------------------------------------------------------------ Negative


def test_other_powers_of_the_scale_are_rejected():
    s, n = 0.5, 2000
    b, J = SKEWED.coef / s, SKEWED.error_curvature()
    of_votes = np.trace(J @ logistic_votes(SKEWED, b, 5, 4.0))
    coef = coefficients(SKEWED, voting(b, 5, 4.0), n, 500, 7)
    for power in (-2, 0, 1, 3):
        assert abs(distance(SKEWED, coef, s**power * of_votes / n)) > 8


@pytest.mark.parametrize("b, right", [([0.0, 4, 0], True), ([0.3, 2, 0], False), ([0.0, 2, 0.3], False)])
def test_a_lean_or_a_tilt_leaves_no_relative_efficiency(b, right):
    """Negative: with either, n times the excess error grows with n."""
    b, means = np.array(b), []
    for n in (500, 4000):
        coef = coefficients(PAIR, voting(b, 5, 4.0), n, 250, n)
        means.append(n * (PAIR.error_rate(coef) - PAIR.bayes_error()).mean())
    assert (means[1] < 1.5 * means[0]) == right


def test_votes_that_follow_one_another_are_no_item_of_their_own():
    """Negative: where items share what misleads them (condition 3), the covariance is another one."""
    b, n = SKEWED.coef, 500
    V = logistic_votes(SKEWED, b, 5, 4.0)

    def respond(Y, z, rng):
        alone = rng.standard_normal(Y.shape[:-1])
        shared = rng.standard_normal((len(Y), 1))
        mixed = 0.8 * shared + 0.6 * alone
        p = special.betaincinv(4 * expit(b[0] + Y @ b[1:]), 4 * expit(-b[0] - Y @ b[1:]), ndtr(mixed))
        s = rng.binomial(5, p)
        return np.stack([s, 5 - s], axis=-1)

    away = np.sqrt(n) * (coefficients(SKEWED, respond, n, 500, 8) - b)
    squares = np.einsum("ri,ij,rj->r", away, np.linalg.inv(V), away) / 3
    assert squares.mean() > 2
