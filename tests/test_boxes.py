"""Checks of theorem boxes that the other files lack; book/_ext/box_tests.yml says which test stands behind which mark."""

from itertools import product

import numpy as np
import pytest
import sympy as sp
from scipy import optimize
from test_theorems import ALTERED, GENERAL, MODEL, draw_labels, excess, joint_pvalue, moved_labels, simulate

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
    assert sp.simplify(cov - (m + a) / (1 + a) * multinomial) == sp.zeros(3)


def test_other_factors_are_not_that_of_the_covariance():
    """Negative: m over each altered form of m (1 + alpha0) / (m + alpha0)."""
    cov, multinomial = covariance_of_three_classes()
    for name, altered in ALTERED.items():
        assert sp.simplify(cov - m / altered(m, a) * multinomial) != sp.zeros(3), name


# ------------------------------------------------------------------ Floor and ceiling


def test_floor_and_ceiling_symbolically():
    """Five labellers and any distribution of their count; whole numbers between 0 and m give both bounds."""
    p = sp.symbols("p1:6")
    first, second = (sum(p[s - 1] * s**r for s in range(1, 6)) for r in (1, 2))
    variance = second - first**2
    upper = sp.Poly(sp.expand(5 * first - first**2 - variance), *p)  # m m tau - (m tau)^2 - var
    lower = sp.Poly(sp.expand(variance - (first - first**2)), *p)  # var - m tau + (m tau)^2
    for bound in (upper, lower):  # no negative coefficient, so never negative
        assert min(bound.coeffs()) > 0
    tau, phi = sp.symbols("tau phi", positive=True)
    assert sp.limit((m * tau - (m * tau) ** 2) / (m * tau * (1 - tau)), tau, 0) == 1
    (alpha0,) = sp.solve(sp.Eq(phi, (m + a) / (1 + a)), a)
    assert sp.simplify(alpha0 - (m - phi) / (phi - 1)) == 0


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
    """P(S = 0, 1, 2) of mean 2 tau and variance 2 phi tau (1 - tau)."""
    mean = 2 * tau
    two = (2 * phi * tau * (1 - tau) + mean**2 - mean) / 2
    one = mean - 2 * two
    return np.array([1 - one - two, one, two])


def test_floor_and_ceiling_need_their_conditions():
    """Negative: a count that may exceed m falls below the floor; a posterior away from 0 and 1 lifts the ceiling."""
    _, tau, x = items(41)
    assert smallest_gain(tau, x, 1.5 * 36 * tau * (1 - tau), 6) < -0.3
    assert three_point(np.linspace(0.4, 0.6), phi=0.5).min() > 0  # two labellers who are worth four
    assert three_point(np.array([0.01]), phi=0.5).min() < 0  # not near zero


# ------------------------------------------------------------------ Converse


def test_converse_needs_every_distribution_of_the_features():
    """Negative: with one distribution on four points, G = phi H holds for a variance of another form."""
    t, w, phi, eps = sp.symbols("t1:5"), sp.symbols("w1:5", positive=True), *sp.symbols("phi epsilon")
    X = [sp.Matrix([1, x]) for x in (-1, 0, 1, 2)]
    H = sum((w[j] * m * t[j] * (1 - t[j]) * X[j] * X[j].T for j in range(4)), sp.zeros(2))

    def G(weights):
        v = [phi * m * t[j] * (1 - t[j]) + eps * (1, -3, 3, -1)[j] / w[j] for j in range(4)]
        return sum((weights[j] * v[j] * X[j] * X[j].T for j in range(4)), sp.zeros(2))

    assert sp.simplify(G(w) - phi * H) == sp.zeros(2)
    # Another distribution on the same points gives it away.
    other = (w[0], w[1], w[2], 2 * w[3])
    doubled = H + w[3] * m * t[3] * (1 - t[3]) * X[3] * X[3].T
    assert sp.simplify(G(other) - phi * doubled) != sp.zeros(2)


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


def test_mean_square_of_the_score_symbolically():
    """n E|U|^2 = trace(G) for a mean U of n = 3 independent vectors of mean zero, three values each."""
    q = sp.symbols("q1 q2", positive=True)
    q = (*q, 1 - sum(q))
    u = [sp.Matrix(sp.symbols(f"u{i}_1:3", real=True)) for i in (1, 2)]
    u.append(-(q[0] * u[0] + q[1] * u[1]) / q[2])
    trace = sum(q[i] * u[i].dot(u[i]) for i in range(3))

    def mean_square(drawn):
        total = 0
        for outcome in product(range(3), repeat=3):
            U = sum((drawn[i] for i in outcome), sp.zeros(2, 1)) / 3
            total += sp.prod([q[i] for i in outcome]) * U.dot(U)
        return 3 * total

    assert sp.simplify(mean_square(u) - trace) == 0
    # Negative: not if the mean is not zero.
    moved = [v + sp.Matrix([1, 0]) for v in u]
    assert sp.simplify(mean_square(moved) - sum(q[i] * moved[i].dot(moved[i]) for i in range(3))) != 0


@pytest.fixture(scope="module")
def excess_errors():
    """n times the excess error of 2,000 rules, at three n."""
    found = {}
    for n in (100, 400, 1600):
        rng = np.random.default_rng(n)
        Y, z = MODEL.sample(n, rng, size=2000)
        found[n] = n * (MODEL.error_rate(fit_logistic_batch(Y, z).coef) - MODEL.bayes_error())
    return found


def tail(values):
    """E X 1{X > 12 limits}, in limits."""
    limit = MODEL.excess_error()
    return np.mean(values * (values > 12 * limit)) / limit


def test_tails_of_the_excess_vanish(excess_errors):
    # An exponential variable, the limit at p = 2, leaves 13 exp(-12), below 1e-4; 1% is room for n = 100.
    assert max(tail(values) for values in excess_errors.values()) < 0.01
    for n, values in excess_errors.items():  # so the means are those of the limit
        assert values.mean() == pytest.approx(MODEL.excess_error(), rel=0.1 + 10 / n)


def test_tails_of_a_spoilt_rule_do_not_vanish(excess_errors):
    """Negative: with probability 1 / n the rule is turned round. The limit in distribution is the same, the mean is not."""
    reversed_rule = MODEL.error_rate(-MODEL.coef) - MODEL.bayes_error()
    for n, values in excess_errors.items():
        assert (1 - 1 / n) * tail(values) + reversed_rule / MODEL.excess_error() > 0.1
