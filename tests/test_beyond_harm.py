"""Majority votes and harmful noise: the theorems of book/beyond/04 and 05, and fit_limit.

The negative checks put an altered formula, or a broken condition, through the function that accepts the right one.
"""

import numpy as np
import pytest
import sympy as sp
from scipy import integrate, optimize, special, stats
from test_efficiency import PAIR, SKEWED, features, flipped
from test_real_votes import coefficients, limit_of
from test_theorems import is_zero

from softlabel import TwoClassNormal, fit_limit, relative_efficiency, sample_probabilities, sample_votes

expit = special.expit


def majority(m, alpha0):
    """Probability of a positive majority at eta, a tie settled by a coin; by Polya's urn."""
    s, k = np.arange(m + 1), np.arange(m) / alpha0

    def mean(eta):
        yes, no = (np.insert(np.log(expit(side)[:, None] + k).cumsum(axis=1), 0, 0, axis=1) for side in (eta, -eta))
        pmf = np.exp(yes + no[:, ::-1] - np.log1p(k).sum() + np.log(special.comb(m, s)))
        return pmf @ ((np.sign(2 * s - m) + 1) / 2)

    return mean


def draw(model, votes, n, size, seed):
    """Coefficients from responses; votes(eta, z, rng) gives 0/1 labels or counts (..., 2)."""
    return coefficients(model, lambda Y, z, rng: votes(model.coef[0] + Y @ model.coef[1:], z, rng), n, size, seed)


def distance(model, coef, n, value):
    """How many standard errors n times the mean excess error lies from a value."""
    excess = n * (model.error_rate(coef) - model.bayes_error())
    return (excess.mean() - value) / stats.sem(excess)


# ------------------------------------------------------------------ A response with another link


def regression(eta, a, c):
    """Of any other feature on eta: condition 3."""
    return a + c * eta


def test_direction_survives_symbolically():
    """Two equations suffice: with E(x | eta) linear, the score along any other feature vanishes with those of 1 and eta."""
    a, c, q1, q2, q3, t1, t2, t3, w1, w2, w3 = sp.symbols("a c q1:4 t1:4 w1:4")
    etas, rest = (-1, 0, 2), [w1 * (q1 - t1), w2 * (q2 - t2), w3 * (q3 - t3)]
    first, second = sum(rest), sum(e * r for e, r in zip(etas, rest))
    other = sum(regression(e, a, c) * r for e, r in zip(etas, rest))
    assert sp.expand(other - a * first - c * second) == 0
    # Negative: not with a curved regression.
    curved = sum((a + c * e**2) * r for e, r in zip(etas, rest))
    assert sp.expand(curved - a * first - c * second) != 0


def worth_of_link(lam, h, w0, g):
    return (lam * h) ** 2 / (w0 * g)


def test_worth_symbolically():
    """trace(J I^-1) / trace(J V / lambda^2) in canonical coordinates is (lambda h)^2 / (w0 g), and no slip of it is."""
    f, lam, h, g, w0, h2, g2, w2 = sp.symbols("f lambda h g w0 h2 g2 w2", positive=True)
    for p in (1, 2, 3):

        def diagonal(entry, along, p=p):
            return sp.diag(entry, along, *[entry] * (p - 1))

        J, fisher = f * diagonal(1, 0), diagonal(w0, w2)
        H, G = diagonal(h, h2), diagonal(g, g2)
        omega = (J * fisher.inv()).trace() / (J / lam**2 * H.inv() * G * H.inv()).trace()
        assert is_zero(omega - worth_of_link(lam, h, w0, g))
        for slip in (lam * h**2 / (w0 * g), h**2 / (w0 * g), (lam * h) ** 2 / g, w0 * g / (lam * h) ** 2):
            assert not is_zero(omega - slip)


@pytest.mark.parametrize("q", [majority(5, 10.0), flipped(0.1, 0.25), lambda eta: expit(eta / 2 + 0.7)])
def test_limit_solves_all_score_equations(q):
    """By a product rule over both features."""
    x, w = features(SKEWED)
    found = limit_of(x, w, q(x @ SKEWED.coef))
    limit = fit_limit(SKEWED, q)
    np.testing.assert_allclose(limit.coef, found, rtol=1e-5)
    np.testing.assert_allclose(limit.coef[1:], limit.stretch * SKEWED.coef[1:], rtol=1e-10)
    floor = SKEWED.error_rate(found) - SKEWED.bayes_error()
    assert limit.floor == pytest.approx(floor, rel=1e-3, abs=1e-9)


def means_over_eta(*functions):
    """E f(eta) for PAIR, whose eta is twice its first feature."""
    y = np.linspace(-11, 11, 8001)
    f = stats.norm.pdf(y, 1) + stats.norm.pdf(y, -1)
    return [f @ g(2 * y) / f.sum() for g in functions]


def parts_of_link(lam, q, *variances):
    """w_0, h, and g for each variance of the response."""

    def spread(e):
        return expit(lam * e) * expit(-lam * e)

    def square(v):
        return lambda e: v(e) + (q(e) - expit(lam * e)) ** 2

    return means_over_eta(lambda e: expit(e) * expit(-e), spread, *map(square, variances))


@pytest.mark.parametrize("m, alpha0", [(1, 1.0), (5, np.inf), (9, 3.0)])
def test_worth_by_means_over_eta(m, alpha0):
    """(b) and (c) as printed: h, g and w_0 by a sum over eta, at the stretch of the fit."""
    q = majority(m, alpha0)
    for v in (lambda e: q(e) * (1 - q(e)), lambda e: q(e) * (1 - q(e)) / 4):
        limit = fit_limit(PAIR, q, v)
        lam = limit.stretch
        w0, h, g = parts_of_link(lam, q, v)
        assert lam > 0 and limit.coef == pytest.approx(lam * PAIR.coef, abs=1e-9) and limit.floor == 0
        assert limit.relative_efficiency == pytest.approx(worth_of_link(lam, h, w0, g), rel=1e-6)
        assert means_over_eta(lambda e, lam=lam: e * (q(e) - expit(lam * e)))[0] == pytest.approx(0, abs=1e-9)


def test_worth_of_majorities_numerically():
    for (m, alpha0), seed in (((5, np.inf), 1), ((9, 3.0), 2)):

        def labels(eta, z, rng, m=m, alpha0=alpha0):
            return sample_votes(expit(np.stack([eta, -eta], -1)), m, alpha0, rng=rng)[..., 0] > m / 2

        limit = fit_limit(PAIR, majority(m, alpha0))
        coef = draw(PAIR, labels, 1000, 1000, seed)
        assert abs(distance(PAIR, coef, 1000, limit.rate)) < 4
        # Negative: neither the rate of pooled votes, nor that without the square of the stretch.
        kappa = relative_efficiency(m, alpha0)
        for altered in (limit.truth / kappa, limit.rate * limit.stretch, limit.truth):
            assert abs(distance(PAIR, coef, 1000, altered)) > 6


def test_a_curved_regression_tilts_the_boundary():
    """Negative: y_2 = y_1^2 + noise breaks condition 3, and labels with another link give y_2 a slope; true ones do not."""
    node, weight = np.polynomial.hermite_e.hermegauss(24)
    y1 = np.repeat(np.linspace(-7, 7, 401), 24)
    w = stats.norm.pdf(y1) * np.tile(weight, 401)
    w /= w.sum()
    for second, curved in ((y1**2, True), (y1, False)):
        x = np.column_stack([np.ones_like(y1), y1, second + np.tile(node, 401) / 2])
        for q, other_link in ((majority(5, np.inf), True), (expit, False)):

            def score(b, x=x, q=q):
                return x.T @ (w * (q(1 + y1) - expit(x @ b)))

            found = optimize.root(score, [1.5, 1.5, 0], tol=1e-12)
            assert found.success
            assert bool(abs(found.x[2]) > 0.04) == (curved and other_link)
            assert bool(abs(found.x[2]) > 1e-6) == (curved and other_link)


# ------------------------------------------------------------------ The square root


def beta_binomial(m, s, tau, a):
    return (
        sp.binomial(m, s)
        * sp.prod([a * tau + i for i in range(s)])
        * sp.prod([a * (1 - tau) + i for i in range(m - s)])
        / sp.prod([a + i for i in range(m)])
    )


HALF = sp.Rational(1, 2)
STRETCH = sp.pi / sp.sqrt(3)  # of the slope of a majority, in roots of the pooled worth


def test_last_vote_and_stretch_symbolically():
    tau, a, k = sp.symbols("tau alpha0 k", positive=True)

    def positive(m, tie=HALF):
        return sum(beta_binomial(m, s, tau, a) * (1 if 2 * s > m else tie) for s in range((m + 1) // 2, m + 1))

    for m in (2, 4, 6):
        assert is_zero(positive(m) - positive(m - 1))
        assert not is_zero(positive(m, tie=0) - positive(m - 1))  # negative
    assert not is_zero(positive(3) - positive(1))  # negative: an odd vote does count
    # Distance of both curves from the step: half the variance of a normal and of a logistic variable with scale 1 / k.
    u = sp.symbols("u", positive=True)
    normal = 2 * sp.integrate(u * sp.erfc(u / sp.sqrt(2)) / 2, (u, 0, sp.oo))
    logistic = 2 * sp.Sum((-1) ** (sp.Symbol("j") + 1) / sp.Symbol("j") ** 2, (sp.Symbol("j"), 1, sp.oo)).doit() / k**2
    assert sp.simplify(normal - sp.Rational(1, 2)) == 0 and sp.simplify(logistic - sp.pi**2 / (6 * k**2)) == 0
    assert sp.solve(normal - logistic, k) == [STRETCH]


def root_constant(model):
    k = float(STRETCH)
    g0 = integrate.quad(lambda u: special.ndtr(u) * (1 - 2 * expit(k * u)) + expit(k * u) ** 2, -30, 30)[0]
    f0 = stats.norm.pdf(model.delta / 2) / model.delta
    return f0 / (2 * g0 * model.fisher_information()[0, 0])


@pytest.mark.parametrize("delta", [1.0, 2.0, 3.0])
def test_a_majority_is_worth_a_square_root(delta):
    model = TwoClassNormal.canonical(delta)
    ratios = []
    for m in (12, 48, 192):
        alpha0 = 5.0 * m
        worth = fit_limit(model, majority(m + 1, alpha0)).relative_efficiency
        ratios.append(worth / np.sqrt(relative_efficiency(m + 1, alpha0)))
    gaps = np.abs(np.array(ratios) - root_constant(model))
    assert gaps[0] > gaps[1] > gaps[2]  # and like one over the pooled worth
    assert gaps[2] < 0.02 * root_constant(model)


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.5])
def test_power_of_a_majority_follows_the_density_at_the_boundary(beta):
    """Cheng, Asi and Duchi (2022): m to the power 1 - beta / 2 if eta has the density |eta|^(beta - 1) there."""
    # eta = v^(1 / beta) takes the pole away; the other features are independent of eta.
    v = np.linspace(0, 6**beta, 40_001)[1:]
    eta = v ** (1 / beta)
    weight = np.exp(-(eta**2) / 2)

    def worth(m):
        q = stats.binom.sf(m // 2, m, expit(eta))
        stretch = optimize.brentq(lambda s: weight @ (eta * (q - expit(s * eta))), 0.1, 500)
        t = expit(stretch * eta)
        h, g = weight @ (t * (1 - t)), weight @ (q * (1 - q) + (q - t) ** 2)
        return (stretch * h) ** 2 / g

    power = np.log(worth(1601) / worth(401)) / np.log(1601 / 401)
    assert abs(power - (1 - beta / 2)) < 0.01
    # Negative: it is the root for a positive density only.
    assert (abs(power - 0.5) < 0.02) == (beta == 1)


def test_other_powers_are_not_that_of_a_majority():
    """Negative: the ratio to another power of the pooled worth drifts by far more than to the root, from m to 4 m."""
    worths, kappas = [], []
    for m in (51, 201):
        worths.append(fit_limit(PAIR, majority(m, np.inf)).relative_efficiency)
        kappas.append(m)
    power = np.log(worths[1] / worths[0]) / np.log(kappas[1] / kappas[0])
    assert abs(power - 1 / 2) < 0.005
    for other in (1 / 3, 2 / 3, 1):
        assert abs(power - other) > 0.1
    # Nor is it a root if labellers err together: alpha0 must grow.
    worth = fit_limit(PAIR, majority(201, 1.0)).relative_efficiency
    assert worth < 0.9 * root_constant(PAIR) * np.sqrt(relative_efficiency(201, 1.0))


# ------------------------------------------------------------------ What harm is


def habit(kind, s_or_e, alpha0):
    """Mean, covariance of two votes, and a sampler of m votes that knows neither."""
    rho = 1 / (1 + alpha0)
    if kind == "distorter":

        def q(eta):
            return expit(s_or_e * eta)

        def votes(eta, z, rng, m):
            return sample_votes(np.stack([q(eta), q(-eta)], -1), m, alpha0, rng=rng)[..., 0]

        return q, lambda eta: rho * q(eta) * q(-eta), votes
    q = flipped(s_or_e, s_or_e)
    size = (1 - 2 * s_or_e) ** 2

    def copied(eta, z, rng, m):
        return (rng.random((*z.shape, m)) < np.where(z == 1, 1 - s_or_e, s_or_e)[..., None]).sum(axis=-1)

    def guessed(eta, z, rng, m):
        p = sample_probabilities(expit(np.stack([eta, -eta], -1)), alpha0, rng=rng)[..., :1]
        coin = rng.random((*z.shape, m)) < 2 * s_or_e
        return (rng.random(coin.shape) < np.where(coin, 0.5, p)).sum(axis=-1)

    common = size if kind == "copyist" else size * rho
    return q, lambda eta: common * expit(eta) * expit(-eta), copied if kind == "copyist" else guessed


def response_variance(q, u, m):
    return lambda eta: u(eta) + (q(eta) * (1 - q(eta)) - u(eta)) / m


def constants_of_harm(lam, q, u):
    """A and B of 1 / worth = A + B / m, for PAIR."""
    w0, h, lack = parts_of_link(lam, q, u)
    (spread,) = means_over_eta(lambda e: q(e) * (1 - q(e)) - u(e))
    return w0 * lack / (lam * h) ** 2, w0 * spread / (lam * h) ** 2


def distorters_k(s):
    """E tau (1 - tau) / (s^2 E q (1 - q)), for PAIR."""
    of_truth, of_votes = means_over_eta(lambda e: expit(e) * expit(-e), lambda e: expit(s * e) * expit(-s * e))
    return of_truth / (s**2 * of_votes)


def crossing(A, B):
    """The m from which on votes are worth more than true labels, 1 / worth = A + B / m."""
    return B / (1 - A)


HABITS = [("distorter", 0.5), ("copyist", 0.2), ("guesser", 0.2)]


def test_variance_and_crossing_symbolically():
    q, u, A, B, k, rho, alpha = sp.symbols("q u A B k rho alpha0", positive=True)
    tau, e1, e2, g = sp.symbols("tau e1 e2 g", positive=True)
    m = sp.symbols("m", positive=True)
    v = response_variance(lambda eta: q, lambda eta: u, m)(None)
    assert is_zero(v - (m * q * (1 - q) + m * (m - 1) * u) / m**2)
    assert is_zero(sp.solve(A + B / m - 1, m)[0] - crossing(A, B))
    # The distorter: ARE / k.
    worth = 1 / (k * (rho + (1 - rho) / m)).subs(rho, 1 / (1 + alpha))
    assert is_zero(worth - m * (1 + alpha) / (m + alpha) / k)
    assert not is_zero(worth - m * (1 + alpha) / (m + alpha) * k)  # negative
    # The copyist and the guesser: two votes are both 1 with probability q^2 + u.
    both = tau * (1 - e1) ** 2 + (1 - tau) * e2**2
    mean = tau * (1 - e1) + (1 - tau) * e2
    assert sp.expand(both - mean**2 - (1 - e1 - e2) ** 2 * tau * (1 - tau)) == 0
    pair = tau**2 + rho * tau * (1 - tau)  # two opinions
    both = (1 - g) ** 2 * pair + 2 * g * (1 - g) * tau / 2 + g**2 / 4
    mean = g / 2 + (1 - g) * tau
    assert sp.expand(both - mean**2 - (1 - g) ** 2 * rho * tau * (1 - tau)) == 0
    assert sp.expand(both - mean**2 - (1 - g) * rho * tau * (1 - tau)) != 0  # negative


@pytest.mark.parametrize("kind, size", HABITS)
def test_worth_of_bad_habits_numerically(kind, size):
    alpha0, m, n = 0.5, 5, 2000
    q, u, votes = habit(kind, size, alpha0)

    def counts(eta, z, rng):
        s = votes(eta, z, rng, m)
        return np.stack([s, m - s], axis=-1)

    limit = fit_limit(PAIR, q, response_variance(q, u, m))
    coef = draw(PAIR, counts, n, 1000, seed=5)
    assert abs(distance(PAIR, coef, n, limit.rate)) < 4
    # Negative: five votes taken as independent; one; and without the lack of fit or the stretch.
    for other in (response_variance(q, lambda e: 0 * e, m), response_variance(q, u, 1)):
        assert abs(distance(PAIR, coef, n, fit_limit(PAIR, q, other).rate)) > 5
    assert abs(distance(PAIR, coef, n, limit.rate * limit.stretch**2)) > 6


@pytest.mark.parametrize("kind, size", HABITS)
def test_response_variance_by_enumeration(kind, size):
    """Mean and variance of the share of m votes, from the distribution of their number: no covariance of two votes is used."""
    alpha0, s = 0.5, np.arange(6)[:, None]
    q, u, _ = habit(kind, size, alpha0)
    for eta in (-1.0, 0.3, 2.0):
        tau = expit(eta)
        if kind == "distorter":
            p = stats.betabinom.pmf(s, 5, alpha0 * q(eta), alpha0 * q(-eta))[:, 0]
        elif kind == "copyist":  # all see the true class
            p = (stats.binom.pmf(s, 5, [1 - size, size]) * [tau, 1 - tau]).sum(axis=1)
        else:  # opinions, by Gauss and Jacobi
            node, mass = special.roots_jacobi(40, alpha0 * (1 - tau) - 1, alpha0 * tau - 1)
            p = stats.binom.pmf(s, 5, size + (1 - 2 * size) * (1 + node) / 2) @ mass / mass.sum()
        mean = p @ s[:, 0] / 5
        assert mean == pytest.approx(q(eta), rel=1e-9)
        assert p @ (s[:, 0] / 5) ** 2 - mean**2 == pytest.approx(response_variance(q, u, 5)(eta), rel=1e-9)


@pytest.mark.parametrize("kind, size", HABITS)
def test_worth_is_harmonic_in_m(kind, size):
    """1 / worth is A + B / m; votes overtake at B / (1 - A), and never if A >= 1."""
    for alpha0 in (1.0, 10.0):
        q, u, _ = habit(kind, size, alpha0)

        def worth(m, q=q, u=u):
            return fit_limit(PAIR, q, response_variance(q, u, m)).relative_efficiency

        A, B = constants_of_harm(fit_limit(PAIR, q).stretch, q, u)
        for m in (1, 3, 50, 1e12):
            assert 1 / worth(m) == pytest.approx(A + B / m, rel=1e-6)
        if kind == "distorter":
            rho, k = 1 / (1 + alpha0), distorters_k(size)
            np.testing.assert_allclose([A, B], [rho * k, (1 - rho) * k], rtol=1e-6)
        if A < 1:
            assert worth(crossing(A, B) * 0.99) < 1 < worth(crossing(A, B) * 1.01)
        else:
            assert worth(1e9) < 1
    assert A < 1


def test_distorter_in_closed_form():
    for s, c in ((0.5, 0.5), (3.0, -1.0), (1.0, 0.0)):
        limit = fit_limit(SKEWED, lambda eta, s=s, c=c: expit(s * eta + c))
        np.testing.assert_allclose(limit.coef, s * SKEWED.coef + np.array([c, 0, 0]), rtol=1e-9)
        assert (limit.floor == 0) == (c == 0)
        assert (limit.relative_efficiency > 0) == (c == 0)
        floor = SKEWED.error_rate(s * SKEWED.coef + np.array([c, 0, 0])) - SKEWED.bayes_error()
        assert limit.floor == pytest.approx(floor, abs=1e-12)


def test_harm_needs_its_conditions():
    """Negative: unequal priors or unequal errors move the boundary, and coefficients are never right."""
    assert fit_limit(PAIR, flipped(0.1, 0.1)).floor == 0
    assert fit_limit(PAIR, flipped(0.1, 0.2)).floor > 0.005
    assert fit_limit(TwoClassNormal.canonical(2.0, prior1=0.9), flipped(0.1, 0.1)).floor > 0.003
    for e1, e2 in ((0.1, 0.1), (0.02, 0.3), (0.3, 0.0)):
        assert np.abs(fit_limit(SKEWED, flipped(e1, e2)).coef - SKEWED.coef).max() > 0.1


def test_careless_copies_are_the_normal_discriminant():
    """As the error rate tends to one half: Efron's efficiency (1975), printed to three digits in his Table 1."""
    for delta, efron in ((1.0, 0.995), (2.0, 0.899), (3.0, 0.641), (4.0, 0.343)):
        model = TwoClassNormal.canonical(delta)
        near, far = (fit_limit(model, *habit("copyist", e, 1.0)[:2]).relative_efficiency for e in (0.49, 0.1))
        assert 1 / near == pytest.approx(efron, abs=0.001)
        assert delta == 1 or abs(1 / far - efron) > 0.01  # negative


# ------------------------------------------------------------------ Who knows more, and the root for any labeller


def hidden_signal_covariance(eta, d):
    """Of two votes on an item, from the posterior given the features and a signal with means d apart; by a product rule."""
    node, weight = np.polynomial.hermite_e.hermegauss(120)
    weight = weight / weight.sum()
    up, down = (expit(eta[:, None] + d * (node + sign * d / 2)) for sign in (1, -1))
    tau = expit(eta)
    mean, square = (tau * (up**k @ weight) + (1 - tau) * (down**k @ weight) for k in (1, 2))
    np.testing.assert_allclose(mean, tau, atol=1e-7)
    return square - tau**2


def intercept_information(delta):
    return TwoClassNormal.canonical(delta).fisher_information()[0, 0]


@pytest.mark.parametrize("d", [0.5, 1.0, 2.0])
def test_labellers_who_know_more_have_a_smaller_alpha0(d):
    wider = intercept_information(np.hypot(2, d))
    alpha0 = wider / (intercept_information(2) - wider)
    for m in (1, 2, 7):

        def variance(eta, m=m):
            u = hidden_signal_covariance(eta, d)
            return u + (expit(eta) * expit(-eta) - u) / m

        worth = fit_limit(PAIR, expit, variance).relative_efficiency
        assert worth == pytest.approx(relative_efficiency(m, alpha0), rel=1e-5)
        # Negative: not with the correlation in place of alpha0, nor with the signal alone.
        alone = intercept_information(d) / (intercept_information(2) - wider)
        for altered in (1 / (1 + alpha0), alone):
            assert (abs(worth / relative_efficiency(m, altered) - 1) > 0.02) == (m > 1)


def test_votes_of_those_who_know_more_by_simulation():
    d, m = 2.0, 5

    def votes(eta, z, rng):
        signal = rng.normal(d * (z - 0.5))
        s = rng.binomial(m, expit(eta + d * signal))
        return np.stack([s, m - s], axis=-1)

    wider = intercept_information(np.hypot(2, d))
    worth = relative_efficiency(m, wider / (intercept_information(2) - wider))
    coef = draw(PAIR, votes, 1000, 1000, 7)
    assert abs(distance(PAIR, coef, 1000, PAIR.excess_error() / worth)) < 4
    assert abs(distance(PAIR, coef, 1000, PAIR.excess_error() / m)) > 10  # negative: they are not independent


@pytest.mark.parametrize("kind, size", HABITS)
def test_root_for_any_labeller(kind, size):
    """Worth for money is best at the whole number of votes that the root of B c0 / (A c1) says, B / A for alpha0."""
    q, u, _ = habit(kind, size, 5.0)
    votes = np.arange(1, 41)
    worth = np.array([fit_limit(PAIR, q, response_variance(q, u, m)).relative_efficiency for m in votes])
    A = 1 / fit_limit(PAIR, q, response_variance(q, u, 1e12)).relative_efficiency
    B = 1 / worth[0] - A
    for c0, c1 in ((8.0, 1.0), (90.0, 2.0)):
        best = votes[(worth / (c0 + c1 * votes)).argmax()]
        assert best == votes[votes * (votes + 1) >= B * c0 / (A * c1)][0]
        assert best != votes[votes * (votes + 1) >= B * c1 / (A * c0)][0]  # negative
