"""Checks of theorem boxes that the other files lack; book/_ext/box_tests.yml says which test stands behind which mark."""

from functools import cache
from itertools import product

import numpy as np
import pytest
import sympy as sp
from scipy import optimize, special, stats
from scipy.integrate import cumulative_trapezoid
from test_theorems import (
    ALTERED,
    FACTOR,
    GENERAL,
    MODEL,
    draw_labels,
    excess,
    is_zero,
    joint_pvalue,
    moved_labels,
    simulate,
)

from softlabel import fit_logistic_batch, godambe_information, sample_votes

m, a = sp.symbols("m alpha0", positive=True)


# ------------------------------------------------------------------ Harmless noise


def dependence(together, seed=31, size=200_000):
    """Correlation of what the posterior leaves open in the labels of two items, in standard errors."""
    rng = np.random.default_rng(seed)
    Y, _ = MODEL.sample(size, rng, size=2)
    tau = MODEL.posterior(Y)[..., 0]
    u = rng.random((2, size))
    rest = ((u[:1] if together else u) < tau) - tau
    return abs((rest[0] * rest[1]).mean()) / (rest[0] * rest[1]).std() * np.sqrt(size)


def test_labels_that_break_a_condition_are_told_from_the_truth():
    """Negative: errors that ignore the posterior (condition 2), and items labelled together (its last words)."""
    assert joint_pvalue(moved_labels, seed=6) < 1e-6
    assert joint_pvalue(draw_labels, seed=6) > 1e-3
    assert dependence(together=True) > 8
    assert dependence(together=False) < 4


# ------------------------------------------------------------------ Moments of the votes


@cache
def covariance_of_three_classes():
    """cov(S) from p ~ Dirichlet, S | p ~ multinomial, and the multinomial covariance."""
    tau = sp.Matrix([*sp.symbols("tau1 tau2", positive=True), 1 - sum(sp.symbols("tau1 tau2", positive=True))])
    mean = tau  # E p_i = (alpha0 tau_i) / alpha0
    square = sp.Matrix(3, 3, lambda i, k: a * tau[i] * (a * tau[k] + (1 if i == k else 0)) / (a * (a + 1)))  # E p p'
    within = m * (sp.diag(*mean) - square)
    between = m**2 * (square - mean * mean.T)
    return within + between, m * (sp.diag(*tau) - tau * tau.T)


def test_moments_of_three_classes_symbolically():
    cov, multinomial = covariance_of_three_classes()
    assert is_zero(cov - m / FACTOR * multinomial)


def test_other_factors_are_not_that_of_the_covariance():
    """Negative: m over each altered form of m (1 + alpha0) / (m + alpha0)."""
    cov, multinomial = covariance_of_three_classes()
    for name, altered in ALTERED.items():
        assert not is_zero(cov - m / altered(m, a) * multinomial), name


# ------------------------------------------------------------------ Floor and ceiling


def bounds(mean, most):
    """Least and largest variance of a count between 0 and ``most``, by its mean."""
    return mean - mean**2, most * mean - mean**2


def test_floor_and_ceiling_symbolically():
    """Five labellers and any distribution of their count; whole numbers between 0 and m give both bounds."""
    p = sp.symbols("p1:6")
    first, second = (sum(p[s - 1] * s**r for s in range(1, 6)) for r in (1, 2))
    variance = second - first**2
    least, largest = bounds(first, 5)
    for gap in (variance - least, largest - variance):  # no negative coefficient, so never negative
        assert min(sp.Poly(sp.expand(gap), *p).coeffs()) > 0
    tau, phi = sp.symbols("tau phi", positive=True)
    assert [sp.limit(bound / (m * tau * (1 - tau)), tau, 0) for bound in bounds(m * tau, m)] == [1, m]
    (alpha0,) = sp.solve(sp.Eq(phi, (m + a) / (1 + a)), a)
    assert is_zero(alpha0 - (m - phi) / (phi - 1))


def smallest_gain(tau, x, variance, labellers):
    """Least eigenvalue of I_M - I_LR, over items that are equally likely, in units of I_LR."""
    fisher = (x.T * tau * (1 - tau)) @ x / len(x)
    G = (x.T * variance) @ x / len(x)
    half = np.linalg.inv(np.linalg.cholesky(fisher))
    gain = labellers**2 * fisher @ np.linalg.inv(G) @ fisher - fisher
    return np.linalg.eigvalsh(half @ gain @ half.T).min()


def items(seed, size=60):
    rng = np.random.default_rng(seed)
    Y, _ = GENERAL.sample(size, rng)
    return rng, GENERAL.posterior(Y)[:, 0], np.column_stack([np.ones(size), Y])


def test_floor_and_ceiling_numerically():
    """Random distributions of the count, with mean m tau, another one for each item."""
    rng, tau, x = items(41)
    s = np.arange(7)
    variance = np.empty(len(tau))
    for j, t in enumerate(tau):
        weight = rng.dirichlet(np.full(7, 0.3)) + 1e-12

        def tilted(theta, weight=weight):
            p = weight * np.exp(theta * (s - 3))
            return p / p.sum()

        theta = optimize.brentq(lambda th, t=t: s @ tilted(th) - 6 * t, -200, 200)
        variance[j] = s**2 @ tilted(theta) - (6 * t) ** 2
    assert smallest_gain(tau, x, variance, 6) > -1e-9  # rounding
    # All or nothing is the floor itself.
    assert smallest_gain(tau, x, 36 * tau * (1 - tau), 6) == pytest.approx(0, abs=1e-9)


def three_point(tau, phi):
    """P(S = 0, 1, 2) of mean 2 tau and variance 2 phi tau (1 - tau): there is no other."""
    mean = 2 * tau
    two = (2 * phi * tau * (1 - tau) + mean**2 - mean) / 2
    one = mean - 2 * two
    return 1 - one - two, one, two


def test_floor_and_ceiling_need_their_conditions():
    """Negative: a count that may exceed m falls below the floor; a posterior away from 0 and 1 lifts the ceiling."""
    _, tau, x = items(41)
    assert smallest_gain(tau, x, 1.5 * 36 * tau * (1 - tau), 6) < -0.3
    assert np.min(three_point(np.linspace(0.4, 0.6), phi=0.5)) > 0  # two labellers who are worth four
    assert np.min(three_point(0.01, phi=0.5)) < 0  # not near zero


# ------------------------------------------------------------------ Converse


def test_converse_needs_every_distribution_of_the_features():
    """Negative: with one distribution on four points, G = phi H holds for a variance of another form."""
    t, w, phi, eps = sp.symbols("t1:5"), sp.symbols("w1:5", positive=True), *sp.symbols("phi epsilon")
    X = [sp.Matrix([1, x]) for x in (-1, 0, 1, 2)]
    H = sum((w[j] * m * t[j] * (1 - t[j]) * X[j] * X[j].T for j in range(4)), sp.zeros(2))

    def G(weights):
        v = [phi * m * t[j] * (1 - t[j]) + eps * (1, -3, 3, -1)[j] / w[j] for j in range(4)]
        return sum((weights[j] * v[j] * X[j] * X[j].T for j in range(4)), sp.zeros(2))

    assert is_zero(G(w) - phi * H)
    # Another distribution on the same points gives it away.
    other = (w[0], w[1], w[2], 2 * w[3])
    doubled = H + w[3] * m * t[3] * (1 - t[3]) * X[3] * X[3].T
    assert not is_zero(G(other) - phi * doubled)


def point_variances(variance):
    """G_ij, for one feature on three points and a variance that is a function of the point and of eta."""
    beta, w = sp.symbols("beta0 beta1", real=True), sp.symbols("w1:4", positive=True)
    X = [sp.Matrix([1, x]) for x in (-1, 0, 2)]
    return beta, sum((w[j] * variance(j, beta[0] + beta[1] * x[1], beta) * x * x.T for j, x in enumerate(X)), sp.zeros(2))


def asymmetry(G, beta):
    """The derivatives of G_ij by beta_k less those of G_kj by beta_i, i, j, k = 0, 1."""
    return [sp.expand(G[0, j].diff(beta[1]) - G[1, j].diff(beta[0])) for j in (0, 1)]


def changes_of_worth(phi_0, phi_1, H):
    """What of the asymmetry of G = phi H is left."""
    return [phi_1 * H[0, j] - phi_0 * H[1, j] for j in (0, 1)]


def test_converse_for_all_coefficients_symbolically():
    """Part (b): G and H are symmetric in that sense, so phi H is; and then phi does not change with beta."""
    v = [sp.Function(f"v{j}") for j in range(3)]
    beta, G = point_variances(lambda j, eta, beta: v[j](eta))
    assert [sp.simplify(term.doit()) for term in asymmetry(G, beta)] == [0, 0]
    phi = sp.Function("phi")(*beta)
    _, H = point_variances(lambda j, eta, beta: sp.exp(eta) / (1 + sp.exp(eta)) ** 2)
    left = changes_of_worth(phi.diff(beta[0]), phi.diff(beta[1]), H)
    assert [sp.expand(x - y) for x, y in zip(asymmetry(phi * H, beta), left)] == [0, 0]
    phi_0, phi_1, h00, h01, h11 = sp.symbols("phi_0 phi_1 h00 h01 h11")
    equations, _ = sp.linear_eq_to_matrix(changes_of_worth(phi_0, phi_1, sp.Matrix([[h00, h01], [h01, h11]])), phi_0, phi_1)
    assert sp.expand(equations.det() - (h00 * h11 - h01**2)) == 0  # which is not zero


def test_converse_needs_a_variance_that_follows_the_posterior():
    """Negative: with v = phi(beta) m tau (1 - tau) the worth is one number at every beta, but not the same one."""
    phi = sp.Function("phi")
    beta, G = point_variances(lambda j, eta, beta: phi(*beta) * sp.exp(eta) / (1 + sp.exp(eta)) ** 2)
    _, H = point_variances(lambda j, eta, beta: sp.exp(eta) / (1 + sp.exp(eta)) ** 2)
    assert is_zero(G - phi(*beta) * H)
    assert not any(is_zero(term) for term in asymmetry(G, beta))  # rational in exp(beta)
    assert asymmetry(H, beta) == [0, 0]


def eta_of(intercept, slope, place):
    return intercept + slope * place


def variances_left(slopes, most=3):
    """Dimension of the delta(place, eta), whole eta up to ``most``, whose mean is zero for all intercepts and these slopes."""
    places = (-1, 0, 2)
    unknown = list(product(places, range(-most, most + 1)))
    rows = []
    for intercept, slope in product(range(-20, 21), slopes):
        met = [(place, eta_of(intercept, slope, place)) for place in places]
        rows.append([places.index(u[0]) + 1 if u in met else 0 for u in unknown])  # probabilities 1/6, 2/6, 3/6
    return len(unknown) - sp.Matrix(rows).rank()


def test_converse_for_all_coefficients_leaves_one_variance():
    """Part (b), its second half, for finitely many features and eta: v - phi m tau (1 - tau) can only be zero."""
    assert variances_left(range(-4, 5)) == 0


def test_converse_needs_more_than_one_slope():
    """Negative: for one slope there are other variances."""
    assert variances_left([1]) > 0
    assert variances_left([0]) > 0


# ------------------------------------------------------------------ Theorem 2


def test_theorem_2_needs_votes_around_the_posterior():
    """Negative: each vote flipped with probability 0.1. With unequal priors the boundary itself moves."""
    right = np.trace(GENERAL.error_curvature() @ np.linalg.inv(godambe_information(GENERAL.fisher_information(), 5, 2.0)))
    for flip, far in ((0.0, False), (0.1, True)):

        def votes(tau, z, rng, flip=flip):
            return sample_votes((1 - flip) * tau + flip * tau[..., ::-1], 5, 2.0, rng=rng)

        mean, se = excess(simulate(GENERAL, votes, seed=51, size=500), GENERAL)
        assert bool(abs(mean - right) > 8 * se + 0.02 * right) == far


# ------------------------------------------------------------------ No mass escapes


def moments_of_the_score(n, G, fourth):
    """Mean of n |U|^2 and of its square, U the mean of n vectors of mean zero, covariance G and E|u|^4 = fourth."""
    mean, limit = G.trace(), G.trace() ** 2 + 2 * (G * G).trace()
    return mean, limit + (fourth - limit) / n


def largest_excess(B, c, score):
    """n times the excess error, at most, where n |U|^2 = score: excess <= B |d|^2, curvature of the likelihood >= c."""
    return 4 * B / c**2 * score


def test_excess_is_bounded_by_an_integrable_score_symbolically():
    """(b) to (d) of the proof. A mean square that is bounded in n makes n |U|^2 uniformly integrable."""
    B, c, d, U, n, fourth = sp.symbols("B c d U n fourth", positive=True)
    (farthest,) = sp.solve(U * d - c / 2 * d**2, d)  # the likelihood falls beyond
    assert is_zero(n * B * farthest**2 - largest_excess(B, c, n * U**2))
    u = [sp.Matrix(v) for v in ((1, 2), (-2, 0), (0, -1))]
    q = sp.sympify("1/4, 1/8, 5/8")
    u = [v - sum((k * x for k, x in zip(q, u)), sp.zeros(2, 1)) for v in u]
    G = sum((k * v * v.T for k, v in zip(q, u)), sp.zeros(2))

    def drawn(size, vectors):  # by all outcomes
        chance = [(sp.prod([q[i] for i in o]), sum((vectors[i] for i in o), sp.zeros(2, 1))) for o in outcomes(size)]
        squares = [(p, s.dot(s) / size) for p, s in chance]
        return tuple(sum(p * square**r for p, square in squares) for r in (1, 2))

    def outcomes(size):
        return product(range(3), repeat=size)

    at = sum(k * v.dot(v) ** 2 for k, v in zip(q, u))
    for size in (1, 2, 3, 4):
        assert drawn(size, u) == moments_of_the_score(size, G, at)
    # In the limit that of a normal vector, whatever E|u|^4.
    assert sp.limit(moments_of_the_score(n, G, fourth)[1], n, sp.oo) == G.trace() ** 2 + 2 * (G * G).trace()
    # Negative: not if the mean is not zero.
    moved = [v + sp.Matrix([1, 0]) for v in u]
    around = sum((k * v * v.T for k, v in zip(q, moved)), sp.zeros(2))
    assert drawn(3, moved)[0] != around.trace()


@pytest.fixture(scope="module")
def excess_errors():
    """n times the excess error of many rules, at three n: standard errors of the means are 1.1 to 1.4 per cent."""
    found = {}
    for n, size in ((100, 8000), (300, 4800), (900, 4800)):
        rng = np.random.default_rng(n)
        samples = (MODEL.sample(n, rng, size=800) for _ in range(size // 800))
        errors = np.concatenate([MODEL.error_rate(fit_logistic_batch(Y, z).coef) for Y, z in samples])
        found[n] = n * (errors - MODEL.bayes_error())
    return found


def tail(values):
    """E X 1{X > 12 limits}, in limits."""
    limit = MODEL.excess_error()
    return np.mean(values * (values > 12 * limit)) / limit


def test_tails_of_the_excess_vanish(excess_errors):
    # An exponential variable, the limit at p = 2, leaves 13 exp(-12), below 1e-4; 1% is room for n = 100.
    assert max(tail(values) for values in excess_errors.values()) < 0.01
    for n, values in excess_errors.items():  # so the means are those of the limit
        assert values.mean() == pytest.approx(MODEL.excess_error(), rel=0.05 + 10 / n)


def heavy_limit(grid, f):
    """tr(J I^-1) for y with density f and eta = 1/2 + y: a quarter of f at the boundary times x x' there."""
    weight = f(grid) * special.expit(0.5 + grid) * special.expit(-0.5 - grid)
    fisher = np.array([[np.trapezoid(weight * grid ** (i + k), grid) for i in (0, 1)] for k in (0, 1)])
    on_boundary = np.array([1, -0.5])
    return f(-0.5) / 4 * on_boundary @ np.linalg.solve(fisher, on_boundary)


def test_tails_vanish_without_a_third_moment():
    """The proposition asks for second moments only: features with a t distribution of 5/2 degrees of freedom."""
    grid = np.concatenate([-np.geomspace(1e4, 20, 4000), np.linspace(-20, 20, 40_001)[1:-1], np.geomspace(20, 1e4, 4000)])
    f = stats.t(2.5).pdf
    cost = cumulative_trapezoid(f(grid) * np.tanh(abs(0.5 + grid) / 2), grid, initial=0)
    limit = heavy_limit(grid, f)
    rng = np.random.default_rng(71)
    for n, size in ((100, 4000), (300, 12_000), (600, 4000)):
        y = rng.standard_t(2.5, size=(size, n))
        coef = fit_logistic_batch(y[..., None], rng.random(y.shape) < special.expit(0.5 + y)).coef
        between = abs(np.interp(-coef[:, 0] / coef[:, 1], grid, cost) - np.interp(-0.5, grid, cost))
        values = n * np.where(coef[:, 1] > 0, between, cost[-1] - between) / limit
        # In the limit chi-square with one degree of freedom: E X 1{X > 12} is 0.7%, and four standard errors are 2% at most.
        assert np.mean(values * (values > 12)) < stats.chi2.sf(12, 3) + 0.02 + 5 / n
        assert abs(values.mean() - 1) < 4 * stats.sem(values) + 5 / n


def test_tails_of_a_spoilt_rule_do_not_vanish(excess_errors):
    """Negative: one rule in n is turned round. The limit in distribution is the same, the tail stays."""
    for n, values in excess_errors.items():
        spoilt, turned = values.copy(), round(len(values) / n)
        spoilt[:turned] = n * (1 - 2 * MODEL.bayes_error()) - values[:turned]  # right where the rule errs
        assert tail(values) < 0.01 < 0.5 < tail(spoilt)
        # The median is that of the limit, an exponential variable at p = 2: its standard error is 3%.
        assert np.median(spoilt) == pytest.approx(np.log(2) * MODEL.excess_error(), rel=0.1 + 10 / n)
