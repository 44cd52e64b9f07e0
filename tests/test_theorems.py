"""Each theorem of the paper three ways: symbolically, numerically, and negatively.

The negative checks put an altered formula, or data that break an assumption, through the very function that accepts the
right one.
"""

from fractions import Fraction
from functools import cache
from math import comb

import numpy as np
import pytest
import sympy as sp
from scipy import integrate, special, stats

from softlabel import TwoClassNormal, fit_logistic_batch, godambe_information, relative_efficiency, sample_votes

M, ALPHA0, N, R = 5, 2.0, 2000, 2000
MODEL = TwoClassNormal.canonical(2.0)
GENERAL = TwoClassNormal([1.0, -0.5], [-0.3, 0.4], [[1.5, 0.6], [0.6, 0.8]], prior1=0.3)

m, a = sp.symbols("m alpha0", positive=True)
FACTOR = m * (1 + a) / (m + a)


# Formulas that a slip of the pen makes of m (1 + alpha0) / (m + alpha0).
ALTERED = {
    "numerator and denominator swapped": lambda m, a: m * (m + a) / (1 + a),
    "m missing": lambda m, a: (1 + a) / (m + a),
    "1 / alpha0 for alpha0": lambda m, a: m * (1 + 1 / a) / (m + 1 / a),
    "votes taken as independent": lambda m, a: m,
    "one label": lambda m, a: m / m,
    "inverse": lambda m, a: (m + a) / (m * (1 + a)),
    "limit in m": lambda m, a: 1 + a,
}


# ------------------------------------------------------------------ symbolically


@cache
def beta_binomial_moments():
    """Mean and variance of one class count, from the hierarchy p ~ Beta(a tau, a (1 - tau)), s | p ~ Binomial(m, p)."""
    tau = sp.symbols("tau", positive=True)

    def raw(r):  # E p^r, a ratio of beta functions
        return sp.prod([(a * tau + k) / (a + k) for k in range(r)])

    mean = m * raw(1)
    within = m * (raw(1) - raw(2))  # E var(s | p) = m E p (1 - p)
    between = m**2 * (raw(2) - raw(1) ** 2)  # var E(s | p)
    return tau, sp.simplify(mean), sp.factor(within + between)


@cache
def sandwich():
    """I_LR, H and G for one feature on three points with any probabilities w_j and posteriors tau_j."""
    tau, _, variance = beta_binomial_moments()
    eta, s = sp.symbols("eta s", real=True)
    log_likelihood = s * eta - m * sp.log(1 + sp.exp(eta))
    odds = tau / (1 - tau)
    hessian = sp.simplify(-sp.diff(log_likelihood, eta, 2).subs(eta, sp.log(odds)))
    assert sp.simplify(hessian - m * tau * (1 - tau)) == 0
    score = sp.simplify(sp.diff(log_likelihood, eta).subs(eta, sp.log(odds)))
    assert sp.simplify(score - (s - m * tau)) == 0  # its mean is zero, as E s = m tau: consistency
    w, t = sp.symbols("w1:4", positive=True), sp.symbols("t1:4", positive=True)
    X = [sp.Matrix([1, x]) for x in (-1, 0, 2)]

    def expectation(weight):
        return sum((w[j] * weight.subs(tau, t[j]) * X[j] * X[j].T for j in range(3)), sp.zeros(2))

    return expectation(tau * (1 - tau)), expectation(hessian), expectation(variance)


def is_zero(term):
    """A rational function, exactly: its numerator vanishes. A matrix, all of its entries."""
    return all(sp.expand(sp.numer(sp.together(entry))) == 0 for entry in np.ravel(term))


def test_votes_have_mean_m_tau_and_inflated_variance():
    tau, mean, variance = beta_binomial_moments()
    assert is_zero(mean - m * tau)
    assert is_zero(variance - m * tau * (1 - tau) * m / FACTOR)
    # Negative: neither the binomial variance nor the factor upside down.
    assert not is_zero(variance - m * tau * (1 - tau))
    assert not is_zero(variance - m * tau * (1 - tau) * (1 + a) / (m + a))


def test_theorem_1_symbolically():
    fisher, H, G = sandwich()
    assert is_zero(H * G.adjugate() * H - FACTOR * G.det() * fisher)  # H G^-1 H = c I_LR without an inverse
    # Different at one point, hence different formulas; fractions, so that nothing is rounded.
    symbols = sorted(G.free_symbols, key=str)
    point = dict(zip(symbols, sp.sympify("2/7, 1/3, 1/5, 3/4, 5/8, 5, 11/13, 1/9"), strict=True))
    H, G, fisher, factor = (thing.subs(point) for thing in (H, G, fisher, FACTOR))
    for name, altered in ALTERED.items():
        assert not is_zero(H * G.inv() * H - sp.sympify(altered(m, a)).subs(point) * fisher), name
    # In one place the paper prints H^-1 G H^-1 for the information; that is its inverse.
    assert not is_zero(H.inv() * G * H.inv() - factor * fisher)
    assert is_zero((H.inv() * G * H.inv()).inv() - factor * fisher)


def curvature(delta, cut):
    """J = f(0) / 4 E[x x' | eta = 0] in canonical coordinates, for classes whose boundary is at t = cut."""
    prior = 1 / (1 + sp.exp(delta * cut))
    f = sum(q * sp.exp(-((cut - mean) ** 2) / 2) for q, mean in ((prior, delta / 2), (1 - prior, -delta / 2)))
    density = f / (sp.sqrt(2 * sp.pi) * delta)
    return density / 4 * sp.Matrix([[1, cut, 0], [cut, cut**2, 0], [0, 0, 1]])


def test_theorem_2_symbolically():
    """J is half the second derivative of the error rate, and the ratio of the traces that of the votes' sandwich."""
    b, delta, cut = sp.symbols("b1:4", real=True), sp.symbols("delta", positive=True), sp.symbols("cut", real=True)
    prior, spread = 1 / (1 + sp.exp(delta * cut)), sp.sqrt(b[1] ** 2 + b[2] ** 2)

    def below(z):  # the normal distribution function
        return (1 + sp.erf(z / sp.sqrt(2))) / 2

    error = prior * below(-(b[0] + b[1] * delta / 2) / spread) + (1 - prior) * below((b[0] - b[1] * delta / 2) / spread)
    best = dict(zip(b, (-delta * cut, delta, 0)))
    assert all(sp.simplify(error.diff(bi).subs(best)) == 0 for bi in b)
    assert sp.simplify(sp.hessian(error, b).subs(best) / 2 - curvature(delta, cut)) == sp.zeros(3)
    # Any J, and fractions for the distribution of the features.
    fisher, H, G = sandwich()
    free = sorted(fisher.free_symbols, key=str)
    fisher, H, G = (M.subs(dict(zip(free, sp.sympify("5/8, 11/13, 1/9, 2/7, 1/3, 1/5")))) for M in (fisher, H, G))
    j11, j12, j22 = sp.symbols("j11 j12 j22")
    J = sp.Matrix([[j11, j12], [j12, j22]])
    ratio = sp.cancel((J * fisher.inv()).trace() / (J * H.inv() * G * H.inv()).trace())
    assert is_zero(ratio - FACTOR)
    for name, altered in ALTERED.items():
        assert not is_zero(ratio - altered(m, a)), name


def test_remark_1_symbolically():
    assert sp.limit(FACTOR, m, sp.oo) == 1 + a
    assert sp.limit(FACTOR, a, 0, "+") == 1
    assert sp.limit(FACTOR, a, sp.oo) == m
    # At least one, and strictly more as soon as there is a second labeller.
    assert sp.simplify(FACTOR - 1 - a * (m - 1) / (m + a)) == 0
    assert FACTOR.subs(m, 1).simplify() == 1
    # Negative: an altered formula fails at least one of the three limits.
    for name, altered in ALTERED.items():
        limits = (sp.limit(altered(m, a), m, sp.oo), sp.limit(altered(m, a), a, 0, "+"), sp.limit(altered(m, a), a, sp.oo))
        assert limits != (1 + a, 1, m), name


def joint_distributions(labeller):
    """P(Y = y, Z = i) and P(Y = y, Z' = i) on three feature values and three classes, all probabilities free."""
    pi = sp.symbols("pi1:4", positive=True)
    f = [sp.symbols(f"f{i}_1:4", positive=True) for i in range(3)]  # f[i][y] = P(Y = y | class i)
    truth = sp.Matrix(3, 3, lambda y, i: pi[i] * f[i][y])
    density = [sum(truth.row(y)) for y in range(3)]
    labels = sp.Matrix(3, 3, lambda y, i: density[y] * labeller([truth[y, k] / density[y] for k in range(3)])[i])
    return truth, labels


def test_joint_distribution_symbolically():
    eps = sp.Rational(1, 10)
    truth, labels = joint_distributions(lambda tau: tau)
    assert is_zero(truth - labels)

    # Negative: a share of labels moved on by one class, and a tempered posterior.
    def moved(tau):
        return [(1 - eps) * tau[i] + eps * tau[i - 1] for i in range(3)]

    def tempered(tau):
        return [t**2 / sum(s**2 for s in tau) for t in tau]

    for other in (moved, tempered):
        assert not is_zero(truth - joint_distributions(other)[1])


# ------------------------------------------------------------------ numerically: Theorems 1 and 2


def simulate(model, votes, seed, n=N, size=R):
    """Estimates from ``size`` training sets of n items; ``votes`` draws counts from (tau, z, rng)."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(size // 250):
        Y, z = model.sample(n, rng, size=250)
        parts.append(fit_logistic_batch(Y, votes(model.posterior(Y), z, rng)).coef)
    return np.concatenate(parts)


@pytest.fixture(scope="module")
def votes_fits():
    return simulate(MODEL, lambda tau, z, rng: sample_votes(tau, M, ALPHA0, rng=rng), seed=1)


@pytest.fixture(scope="module")
def truth_fits():
    return simulate(MODEL, lambda tau, z, rng: z, seed=2)


def departure(coef, model, information, n=N):
    """How many standard errors n cov(estimate) lies from inverse(information): the largest over all entries.

    Whitened by L, information = L L', the products of errors must average to the identity.
    """
    errors = np.sqrt(n) * (coef - model.coef) @ np.linalg.cholesky(information)
    products = errors[:, :, None] * errors[:, None, :]
    standard_error = products.std(axis=0) / np.sqrt(len(coef))
    return (np.abs(products.mean(axis=0) - np.eye(len(information))) / standard_error).max()


# Five standard errors: six entries, fixed seed, and up to one standard error for n = 2000 not being infinite.
NEAR, FAR = 5, 8


def test_theorem_1_numerically(votes_fits, truth_fits):
    fisher = MODEL.fisher_information()
    assert departure(truth_fits, MODEL, fisher) < NEAR
    assert departure(votes_fits, MODEL, godambe_information(fisher, M, ALPHA0)) < NEAR
    # Consistent: within 0.5% of beta, where bias is O(1 / n) and one standard error of the mean 0.1%.
    np.testing.assert_allclose(votes_fits.mean(axis=0), MODEL.coef, atol=0.01)


@pytest.mark.parametrize("name", ALTERED)
def test_theorem_1_rejects_altered_formulas(votes_fits, name):
    assert departure(votes_fits, MODEL, ALTERED[name](M, ALPHA0) * MODEL.fisher_information()) > FAR


@pytest.mark.parametrize("labellers, alpha0", [(1, 0.5), (10, 0.05), (10, 20.0), (4, np.inf)])
def test_theorem_1_elsewhere(labellers, alpha0):
    """Unequal priors, correlated features, other m and alpha0."""
    n = 1000
    coef = simulate(GENERAL, lambda tau, z, rng: sample_votes(tau, labellers, alpha0, rng=rng), seed=3, n=n, size=1000)
    fisher = GENERAL.fisher_information()
    assert departure(coef, GENERAL, godambe_information(fisher, labellers, alpha0), n) < NEAR
    assert departure(coef, GENERAL, 2 * godambe_information(fisher, labellers, alpha0), n) > FAR


def test_theorem_1_needs_votes_around_the_posterior():
    """Errors that ignore the difficulty of an item: each vote flipped with probability 0.1. No longer consistent."""

    def flipped(tau, z, rng):
        return sample_votes(0.9 * tau + 0.1 * tau[..., ::-1], M, ALPHA0, rng=rng)

    coef = simulate(MODEL, flipped, seed=4, size=500)
    assert departure(coef, MODEL, godambe_information(MODEL.fisher_information(), M, ALPHA0)) > FAR
    assert coef[:, 1].mean() < 0.8 * MODEL.coef[1]  # drawn to zero, by far more than 1%


def excess(coef, model=MODEL, n=N):
    """n times the excess errors: their mean and its standard error."""
    values = n * (model.error_rate(coef) - model.bayes_error())
    return values.mean(), values.std() / np.sqrt(len(values))


def test_theorem_2_numerically(votes_fits, truth_fits):
    J, fisher = MODEL.error_curvature(), MODEL.fisher_information()

    def limit(information):
        return np.trace(J @ np.linalg.inv(information))

    (truth, truth_se), (votes, votes_se) = excess(truth_fits), excess(votes_fits)
    right = limit(godambe_information(fisher, M, ALPHA0))
    # Four standard errors (2% each) and 1% for n = 2000 not being infinite.
    assert abs(truth - limit(fisher)) < 4 * truth_se + 0.01 * truth
    assert abs(votes - right) < 4 * votes_se + 0.01 * votes
    ratio = truth / votes
    ratio_se = ratio * np.hypot(truth_se / truth, votes_se / votes)  # independent training sets
    assert abs(ratio - relative_efficiency(M, ALPHA0)) < 4 * ratio_se + 0.01 * ratio
    # Negative, by the same comparisons: altered formulas, and J without its one half.
    for name, altered in ALTERED.items():
        assert abs(votes - limit(altered(M, ALPHA0) * fisher)) > 8 * votes_se + 0.01 * votes, name
        assert abs(ratio - altered(M, ALPHA0)) > 8 * ratio_se + 0.01 * ratio, name
    assert abs(votes - 2 * right) > 8 * votes_se + 0.01 * votes


# ------------------------------------------------------------------ numerically: Section 2.2


def draw_labels(tau, z, rng):
    return sample_votes(tau, 1, rng=rng)[..., 0]


def moved_labels(tau, z, rng):
    return np.where(rng.random(z.shape) < 0.1, 1 - z, z)


def tempered_labels(tau, z, rng):
    return sample_votes(tau**2 / (tau**2).sum(axis=-1, keepdims=True), 1, rng=rng)[..., 0]


def joint_pvalue(labels, seed, size=100_000):
    """Two-sample chi-square of (Y, label) in 4 x 4 cells of the features by 2 labels, independent samples."""
    rng = np.random.default_rng(seed)
    tables = []
    for draw in (lambda tau, z, rng: z, labels):
        Y, z = GENERAL.sample(size, rng)
        cell = [np.digitize(Y[:, k], [-0.7, 0.1, 0.9]) for k in (0, 1)]
        tables.append(np.bincount((cell[0] * 4 + cell[1]) * 2 + draw(GENERAL.posterior(Y), z, rng), minlength=32))
    table = np.array(tables)
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


def test_joint_distribution_numerically():
    assert joint_pvalue(draw_labels, seed=6) > 1e-3  # fixed seed
    for wrong in (moved_labels, tempered_labels):
        assert joint_pvalue(wrong, seed=6) < 1e-6


def estimate_pvalues(labels, seed):
    """Two-sample Kolmogorov-Smirnov of each coefficient and of the error rate, fits to true labels and to ``labels``."""
    one = simulate(MODEL, lambda tau, z, rng: z, seed=seed, n=200)
    two = simulate(MODEL, labels, seed=seed + 1, n=200)
    pairs = [*zip(one.T, two.T), (MODEL.error_rate(one), MODEL.error_rate(two))]
    return [stats.ks_2samp(x, y).pvalue for x, y in pairs]


def test_estimates_and_error_rates_have_the_same_distribution():
    assert min(estimate_pvalues(draw_labels, seed=7)) > 1e-3  # four tests, fixed seed
    for wrong in (moved_labels, tempered_labels):
        assert min(estimate_pvalues(wrong, seed=7)) < 1e-6


def test_labels_from_the_posterior_are_often_wrong_and_yet_harmless():
    """More than a fifth of the labels err, and the truth-label limit of the excess error still holds."""
    rng = np.random.default_rng(9)
    Y, z = MODEL.sample(100_000, rng)
    assert (draw_labels(MODEL.posterior(Y), z, rng) != z).mean() > 0.2
    mean, se = excess(simulate(MODEL, draw_labels, seed=10))
    assert abs(mean - MODEL.excess_error()) < 4 * se + 0.01 * mean  # as for Theorem 2


# ------------------------------------------------------------------ the error rate near the boundary


def curvature_of(density, on_boundary, spread):
    """J = f(0) / 4 E[x x' | eta = 0] from the density of eta at 0 and the mean and covariance of x there."""
    return density / 4 * (np.outer(on_boundary, on_boundary) + np.diag([0, 0, spread]))


def curvature_is(J):
    """Is half the second derivative d' J d, for a t-distributed y1, y2 normal around y1 / 2, and eta = 1/2 + y1?"""
    y1, step = np.linspace(-100.5, 99.5, 400_001, retstep=True)
    cost = step * stats.t.pdf(y1, 5) * np.tanh(abs(0.5 + y1) / 2)

    def excess(d):
        score = 0.5 + y1 + d[0] + (d[1] + d[2] / 2) * y1  # its mean, given y1
        return cost @ stats.norm.cdf(-np.sign(0.5 + y1) * score / abs(d[2]))

    for d in np.array([[0.3, -0.5, 1], [0.8, 0.5, -0.5], [-0.4, 0.9, 0.7]]):
        coarse, fine = ((excess(h * d) + excess(-h * d)) / (2 * h**2) / (d @ J @ d) for h in (1 / 20, 1 / 40))
        if abs((4 * fine - coarse) / 3 - 1) > 1e-3:
            return False
    return True


def test_curvature_without_normal_classes():
    assert curvature_is(curvature_of(stats.t.pdf(-0.5, 5), [1, -0.5, -0.25], 1))


def test_curvature_rejects_altered_formulas():
    density, on_boundary = stats.t.pdf(-0.5, 5), np.array([1, -0.5, -0.25])
    right = curvature_of(density, on_boundary, 1)
    assert not curvature_is(2 * right)  # the one half forgotten
    assert not curvature_is(curvature_of(density, [1, -0.5, 0.25], 1))
    assert not curvature_is(curvature_of(density, on_boundary, 1.1))
    assert not curvature_is(density / 4 * np.outer(on_boundary, on_boundary))


def majority_excess(n, m):
    """Excess error for one binary feature with posteriors 3/5 and 2/5 and m independent votes, over all numbers of items.

    Apart from the errata's convolutions: the votes on the items of one kind are one binomial count.
    """
    total = Fraction(0)
    for items in range(n + 1):
        votes = items * m
        wrong = sum(comb(votes, s) * 3**s * 2 ** (votes - s) for s in range((votes + 1) // 2))
        if votes % 2 == 0:
            wrong += Fraction(comb(votes, votes // 2) * 6 ** (votes // 2), 2)
        total += comb(n, items) * Fraction(wrong) / 5**votes / 2**n
    return total / 5


def test_theorem_2_is_false_under_assumption_1_alone():
    """Independent features with a variance and a logistic posterior: the efficiency is not 5, it has no limit."""
    found = [float(majority_excess(n, 1) / majority_excess(n, 5)) for n in (20, 50, 100)]
    assert found == pytest.approx([3.2629, 12.037, 94.529], rel=1e-4)
    # By all 2^n labels and all kinds of items, at n = 4, and the rule that logistic regression fits.
    tau = np.array([0.6, 0.4])
    total = 0.0
    for kinds in np.ndindex(2, 2, 2, 2):
        for z in np.ndindex(2, 2, 2, 2):
            chance = np.prod([(t if label else 1 - t) / 2 for label, t in zip(z, tau[list(kinds)])])
            for kind in (0, 1):
                lead = sum(2 * label - 1 for label, k in zip(z, kinds) if k == kind)
                wrong = 1 / 2 if lead == 0 else (lead < 0) == (kind == 0)
                total += chance * wrong * 0.2 / 2
    assert total == pytest.approx(float(majority_excess(4, 1)), rel=1e-12)


def smooth_mass():
    """Integral of exp(-y1^2 / 2 - y1^2 y2^2) (1 + y2^2)^(-3/2) over the plane; that over y1 is a normal one."""
    return 2 * integrate.quad(lambda y: (1 + y**2) ** -1.5 * (1 + 2 * y**2) ** -0.5, 0, np.inf)[0] * np.sqrt(2 * np.pi)


def strip_excess(law, h):
    """Excess error of the rule y1 + h y2 > 0 where y1 > 0 is best, in other coordinates than in the chapter."""
    if law == "wide":  # y2 = z |y1|^(-1/4), z normal: the strip is |y1| < (h z)^(4/5)

        def given(z):
            inner = integrate.quad(lambda u: stats.norm.pdf(u) * np.tanh(u / 2), 0, (h * z) ** 0.8, epsabs=0)[0]
            return stats.norm.pdf(z) * inner

        return 2 * integrate.quad(given, 0, 12, epsabs=0)[0]

    def at(log_y):
        y = np.exp(log_y)
        root = np.sqrt(1 + 2 * y**2)
        inner = integrate.quad(lambda v: np.exp(-(v**2) / 2) * np.tanh(v / root / 2), 0, min(h * y * root, 12), epsabs=0)[0]
        return y * (1 + y**2) ** -1.5 / root * inner  # y1 = v / root

    return 2 * integrate.quad(at, -12, 12, epsabs=0, epsrel=1e-6, limit=400)[0] / smooth_mass()


def test_a_continuous_density_does_not_give_a_second_order_expansion():
    """Step 2 needs its integrable bound: without it the excess is of order h^1.6, or h^2 log(1 / h)."""
    steps = 10.0 ** -np.arange(1, 5)
    wide = np.array([strip_excess("wide", h) for h in steps])
    # From the first term of the inner integral: density at 0 times E |z|^1.6 / 4.
    leading = stats.norm.pdf(0) / 4 * 2**0.8 * special.gamma(1.3) / np.sqrt(np.pi)
    assert wide[2:] / steps[2:] ** 1.6 == pytest.approx([leading, leading], rel=1e-4)
    assert not np.allclose(wide[2:] / steps[2:] ** 2, leading, rtol=0.5)
    smooth = np.array([strip_excess("smooth", h) for h in steps]) / steps**2
    assert smooth == pytest.approx([0.1420, 0.2954, 0.4558, 0.6170], rel=1e-3)
    # E(y2^2 | y1 = 0) f(0) / 4, cut off where y2 is about h^(-1/2): a tenth of h adds the same each time.
    assert np.diff(smooth)[1:] == pytest.approx(np.full(2, np.log(10) / 4 / smooth_mass()), rel=0.01)


def test_efficiency_where_the_density_is_wide_at_the_boundary():
    """At 1,000 items simulated fits have the efficiency by the limit law of the coefficients, not that of Theorem 2."""
    rng = np.random.default_rng(61)
    u = np.geomspace(1e-9, 9, 600)

    def error(coef):  # the exact excess error of rules
        spread = abs(coef[:, 2:]) * u**-0.25
        wrong = special.ndtr(-(coef[:, :1] + coef[:, 1:2] * u) / spread)
        wrong += special.ndtr((coef[:, :1] - coef[:, 1:2] * u) / spread)
        return np.trapezoid(stats.norm.pdf(u) * np.tanh(u / 2) * wrong * u, np.log(u), axis=1)

    def fits(labels, n=1000, size=500):
        y1 = rng.normal(size=(size, n))
        Y = np.stack([y1, rng.normal(size=(size, n)) * abs(y1) ** -0.25], axis=-1)
        tau = special.expit(y1)
        return error(fit_logistic_batch(Y, sample_votes(np.stack([tau, 1 - tau], axis=-1), *labels, rng=rng)).coef)

    def by_limit_law(items):  # E over the normal errors of intercept and tilt, by Gauss and Hermite
        weight = stats.norm.pdf(u) * special.expit(u) * special.expit(-u)
        level, tilt = (1 / (2 * np.trapezoid(weight * u**k * u, np.log(u))) for k in (0, -0.5))
        nodes, weights = np.polynomial.hermite_e.hermegauss(24)
        draws = np.array([[np.sqrt(level / items) * a, 1, np.sqrt(tilt / items) * b] for a in nodes for b in nodes])
        return np.outer(weights, weights).ravel() @ error(draws) / (2 * np.pi)

    theory = by_limit_law(1000) / by_limit_law(1000 * relative_efficiency(5, 10.0))
    assert theory == pytest.approx(3.094, rel=0.002)
    truths, votes = (np.concatenate([fits(labels) for _ in range(6)]) for labels in ((1,), (5, 10.0)))
    ratio = truths.mean() / votes.mean()
    se = ratio * np.hypot(stats.sem(truths) / truths.mean(), stats.sem(votes) / votes.mean())
    assert abs(ratio - theory) < 3 * se + 0.03 * ratio  # 3% for n = 1000 not being infinite
    assert relative_efficiency(5, 10.0) - ratio > 4 * se
    far = by_limit_law(1e12) / by_limit_law(1e12 * relative_efficiency(5, 10.0))
    assert far == pytest.approx(relative_efficiency(5, 10.0) ** 0.8, rel=0.005)
