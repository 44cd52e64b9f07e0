"""Two normal classes: published numbers, and quadrature, mpmath and Monte Carlo in general position."""

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import integrate, stats
from strategies import SEED, answered, examples

from softlabel import TwoClassNormal

GENERAL = [
    TwoClassNormal([1.0, -0.5], [-0.3, 0.4], [[1.5, 0.6], [0.6, 0.8]], prior1=0.3),
    TwoClassNormal([2.0], [0.5], [[0.49]], prior1=0.8),
    TwoClassNormal([0.2, 1, 3], [1, 1, 2], [[2, 0.3, 0], [0.3, 1, -0.2], [0, -0.2, 0.7]], prior1=0.55),
]
ids = ["p=2", "p=1", "p=3"]


def exact_error_rate(model, coef):
    """pi_1 Phi(-eta(mu_1) / s) + pi_2 Phi(eta(mu_2) / s), s^2 = b' Sigma b, with 40 digits."""
    b = [mpmath.mpf(c) for c in coef[1:]]
    p = len(b)
    s = mpmath.sqrt(sum(b[i] * b[k] * mpmath.mpf(float(model.cov[i, k])) for i in range(p) for k in range(p)))
    at = [coef[0] + sum(b[i] * mpmath.mpf(float(mean[i])) for i in range(p)) for mean in (model.mean1, model.mean2)]
    prior = mpmath.mpf(model.prior1)
    return prior * mpmath.ncdf(-at[0] / s) + (1 - prior) * mpmath.ncdf(at[1] / s)


def density(model, y):
    one = stats.multivariate_normal(model.mean1, model.cov).pdf(y)
    two = stats.multivariate_normal(model.mean2, model.cov).pdf(y)
    return model.prior1 * one, (1 - model.prior1) * two


# ------------------------------------------------------------------ published numbers


@pytest.mark.parametrize("delta, i00, i11", [(1, 0.19898643, 0.16418401), (3, 0.04931063, 0.02103924)])
def test_fisher_information_of_the_canonical_pair(delta, i00, i11):
    info = TwoClassNormal.canonical(delta).fisher_information()
    np.testing.assert_allclose([info[0, 0], info[1, 1]], [i00, i11], atol=5.1e-9)  # last printed digit
    # By symmetry: the other direction is standard normal and independent, all cross terms vanish.
    np.testing.assert_allclose(info, np.diag([i00, i11, i00]), atol=5.1e-9)


@pytest.mark.parametrize("delta, expected", [(1, 0.884647), (2, 0.538192), (3, 0.437761), (4, 0.393535)])
def test_limit_of_the_excess_error(delta, expected):
    model = TwoClassNormal.canonical(delta, p=2)
    assert model.excess_error() == pytest.approx(expected, abs=5.1e-7)  # last printed digit
    J, info = model.error_curvature(), model.fisher_information()
    assert model.excess_error() == pytest.approx(np.trace(J @ np.linalg.inv(info)), rel=1e-12)


@pytest.mark.parametrize(
    "delta, efficiency", [(1, 0.995), (1.5, 0.968), (2, 0.899), (2.5, 0.786), (3, 0.641), (3.5, 0.486), (4, 0.343)]
)
def test_efron_1975(delta, efficiency):
    """Efficiency of logistic regression to the normal discriminant rule, three printed digits."""
    i00 = TwoClassNormal.canonical(delta).fisher_information()[0, 0]
    assert (1 + delta**2 / 4) * 4 * i00 == pytest.approx(efficiency, abs=5.1e-4)


@pytest.mark.parametrize("delta", [0.01, 2, 20])
@pytest.mark.parametrize("p", [1, 5])
def test_bayes_error_is_phi_of_minus_half_delta(delta, p):
    model = TwoClassNormal.canonical(delta, p=p)
    assert model.bayes_error() == pytest.approx(stats.norm.cdf(-delta / 2), rel=1e-13)
    assert model.error_rate(model.coef) == pytest.approx(model.bayes_error(), rel=1e-13)
    np.testing.assert_allclose(model.coef, [0, delta] + [0] * (p - 1), atol=1e-15)


# ------------------------------------------------------------------ general position


def test_posterior_columns_do_not_round_to_zero():
    model = TwoClassNormal.canonical(2.0, p=1)
    tau = model.posterior([[30.0], [-30.0]])  # eta = 60 and -60: 1 - tau would be 0
    np.testing.assert_allclose([tau[0, 1], tau[1, 0]], np.exp(-60), rtol=1e-12)


@pytest.mark.parametrize("model", GENERAL, ids=ids)
def test_posterior_is_that_of_the_densities(model):
    Y, _ = model.sample(20, rng=1)
    both = np.column_stack(density(model, Y))
    np.testing.assert_allclose(model.posterior(Y), both / both.sum(axis=1, keepdims=True), rtol=1e-10)
    np.testing.assert_allclose(model.coef[0] + Y @ model.coef[1:], np.log(both[:, 0] / both[:, 1]), rtol=1e-10)
    assert model.prior_logit == pytest.approx(np.log(model.prior1 / (1 - model.prior1)), rel=1e-12)
    gap = model.mean1 - model.mean2
    assert model.delta == pytest.approx(np.sqrt(gap @ np.linalg.inv(model.cov) @ gap), rel=1e-12)


@pytest.mark.parametrize("model", GENERAL, ids=ids)
def test_canonical_coordinates(model):
    """There the classes have mean (+-delta / 2, 0, ..., 0) and no correlation."""
    B, side = model.from_canonical, np.eye(len(model.mean1))[0] * model.delta / 2
    for t, mean in ((side, model.mean1), (-side, model.mean2)):
        np.testing.assert_allclose(B @ np.r_[1, t], np.r_[1, mean], rtol=1e-10)
    np.testing.assert_allclose(B[1:, 1:] @ B[1:, 1:].T, model.cov, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("model", GENERAL, ids=ids)
def test_error_rate_is_the_exact_formula(model):
    rng = np.random.default_rng(1)
    coef = rng.normal(size=(20, len(model.coef)))
    with mpmath.workdps(40):
        expected = [float(exact_error_rate(model, [mpmath.mpf(c) for c in b])) for b in coef]
    np.testing.assert_allclose(model.error_rate(coef), expected, rtol=1e-12)  # rounding


@pytest.mark.parametrize("model", GENERAL, ids=ids)
def test_error_rate_of_many_rules_and_of_the_opposite_ones(model):
    coef = np.random.default_rng(3).normal(size=(4, 3, len(model.coef)))
    rate = model.error_rate(coef)
    assert rate.shape == (4, 3) and type(model.error_rate(coef[0, 0])) is float
    np.testing.assert_allclose(model.error_rate(-coef), 1 - rate, rtol=1e-10)  # the opposite rule
    assert np.all(rate >= model.bayes_error())


def test_error_rate_of_rules_without_slopes():
    model = TwoClassNormal.canonical(2.0, prior1=0.3)
    # Always positive errs on the negatives, always negative on the positives; "> 0" makes zero negative.
    np.testing.assert_array_equal(model.error_rate([[1, 0, 0], [-1, 0, 0], [0, 0, 0]]), [0.7, 0.3, 0.3])


@pytest.mark.parametrize("model", GENERAL, ids=ids)
def test_error_curvature_is_half_the_hessian_of_the_error_rate(model):
    q = len(model.coef)
    # The exact rate differentiated with 40 digits at the rule in double precision.
    with mpmath.workdps(40):
        b = [mpmath.mpf(float(c)) for c in model.coef]
        H = np.empty((q, q))
        for i in range(q):
            for k in range(q):
                order = tuple(int(j == i) + int(j == k) for j in range(q))
                H[i, k] = float(mpmath.diff(lambda *c: exact_error_rate(model, c), tuple(b), order))
    J = model.error_curvature()
    np.testing.assert_allclose(J, H / 2, atol=1e-10)  # the rule itself is rounded to 1e-16
    np.testing.assert_allclose(J @ model.coef, 0, atol=1e-14)  # a multiple of a rule is the same rule


def test_fisher_information_by_double_quadrature_p2():
    model = GENERAL[0]
    one, two = (stats.multivariate_normal(mean, model.cov) for mean in (model.mean1, model.mean2))

    def weight(y):
        a, b = 0.3 * one.pdf(y), 0.7 * two.pdf(y)
        return a * b / (a + b)

    # Trapezium in both directions: exact to rounding for such functions, and quicker than dblquad.
    u, v = np.linspace(-10, 10, 401), np.linspace(-8, 8, 401)
    grid = np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1)
    w = weight(grid) * (u[1] - u[0]) * (v[1] - v[0])
    x = np.concatenate([np.ones((401, 401, 1)), grid], axis=-1)
    expected = np.einsum("uv,uvi,uvk->ik", w, x, x)
    np.testing.assert_allclose(model.fisher_information(), expected, rtol=1e-9)
    # One entry by dblquad, to vouch for the grid.
    value = integrate.dblquad(lambda s, r: weight([r, s]), -10, 10, -8, 8, epsabs=1e-7, epsrel=1e-7)[0]
    assert value == pytest.approx(expected[0, 0], rel=1e-6)


@pytest.mark.parametrize("model", GENERAL, ids=ids)
def test_fisher_information_by_monte_carlo(model):
    size = 200_000
    Y, z = model.sample(size, rng=4)
    x = np.column_stack([np.ones(size), Y])
    score = x * (z - model.posterior(Y)[:, 0])[:, None]
    products = score[:, :, None] * score[:, None, :]
    error = products.std(axis=0) / np.sqrt(size)
    # Covariance of the score of a true label, drawn and not derived: five standard errors.
    assert np.all(np.abs(products.mean(axis=0) - model.fisher_information()) < 5 * error)
    assert np.all(error < 0.015 * np.sqrt(np.outer(*[np.diag(model.fisher_information())] * 2)) * 2)


@pytest.mark.parametrize("delta", [1e-3, 8.0, 20.0, 40.0])
def test_information_and_curvature_at_extreme_distances(delta):
    info = TwoClassNormal.canonical(delta).fisher_information()
    with mpmath.workdps(30):

        def integrand(t):
            return mpmath.npdf(t, mpmath.mpf(delta) / 2) / 2 / (1 + mpmath.exp(delta * t))

        expected = [
            float(2 * mpmath.quad(lambda t: t**k * integrand(t), [*(j / delta for j in range(0, 41, 2)), 60]))
            if delta > 1
            else float(mpmath.quad(lambda t: t**k * integrand(t), range(-40, 41, 4)))
            for k in (0, 2)
        ]
    # Relative 1e-8: the entries fall to 1e-89, where an absolute tolerance would compare nothing.
    np.testing.assert_allclose([info[0, 0], info[1, 1]], expected, rtol=1e-8)
    assert np.isfinite(TwoClassNormal.canonical(delta).excess_error())


# ------------------------------------------------------------------ invariance


@pytest.mark.parametrize("model", GENERAL, ids=ids)
def test_affine_maps_of_the_features_change_nothing_that_matters(model):
    p = len(model.mean1)
    rng = np.random.default_rng(5)
    for A, b in [
        (rng.normal(size=(p, p)) + 2 * np.eye(p), rng.normal(size=p)),
        (1e4 * np.eye(p), np.full(p, 7.0)),
        (np.diag(np.logspace(-2, 2, p)), np.zeros(p)),
    ]:
        cov = A @ model.cov @ A.T
        other = TwoClassNormal(A @ model.mean1 + b, A @ model.mean2 + b, (cov + cov.T) / 2, model.prior1)
        # 1e-8: rounding, enlarged by the condition of A.
        assert other.bayes_error() == pytest.approx(model.bayes_error(), rel=1e-8)
        assert other.excess_error() == pytest.approx(model.excess_error(), rel=1e-8)
        Y, _ = model.sample(20, rng=6)
        np.testing.assert_allclose(other.posterior(Y @ A.T + b), model.posterior(Y), rtol=1e-8)
        # x -> L x for x = (1, y), so the information becomes L I L'.
        L = np.block([[np.ones((1, 1)), np.zeros((1, p))], [b[:, None], A]])
        np.testing.assert_allclose(other.fisher_information(), L @ model.fisher_information() @ L.T, rtol=1e-7)


def test_more_features_cost_more():
    """The limit is linear in p for the canonical pair: each spare direction adds J_22 / I_22."""
    values = [TwoClassNormal.canonical(2.0, p=p).excess_error() for p in (1, 2, 3, 6)]
    step = values[1] - values[0]
    np.testing.assert_allclose(values, values[0] + step * np.array([0, 1, 2, 5]), rtol=1e-10)
    assert step > 0.1


# ------------------------------------------------------------------ draws


@pytest.mark.parametrize("model", GENERAL, ids=ids)
def test_sample_has_the_moments_of_its_classes(model):
    size = 100_000
    Y, z = model.sample(size, rng=8)
    assert abs(z.mean() - model.prior1) < 5 * np.sqrt(model.prior1 * (1 - model.prior1) / size)
    for label, mean in ((1, model.mean1), (0, model.mean2)):
        part = Y[z == label] - mean
        n = len(part)
        assert np.all(np.abs(part.mean(axis=0)) < 5 * np.sqrt(np.diag(model.cov) / n))
        products = part[:, :, None] * part[:, None, :]
        assert np.all(np.abs(products.mean(axis=0) - model.cov) < 5 * products.std(axis=0) / np.sqrt(n))


def test_sample_shapes_and_seeds():
    model = GENERAL[0]
    Y, z = model.sample(7, rng=0)
    assert Y.shape == (7, 2) and z.shape == (7,) and z.dtype.kind in "iu" and set(z) <= {0, 1}
    Y3, z3 = model.sample(7, rng=0, size=3)
    assert Y3.shape == (3, 7, 2) and z3.shape == (3, 7) and len(np.unique(Y3)) == 42
    np.testing.assert_array_equal(model.sample(7, rng=0)[0], Y)
    np.testing.assert_array_equal(model.sample(7, np.random.default_rng(0))[0], Y)
    assert (model.sample(7, rng=1)[0] != Y).all()


def test_is_frozen_and_readable():
    with pytest.raises(AttributeError):
        GENERAL[0].prior1 = 0.1
    assert "np.float64" not in repr(GENERAL[0])


# ------------------------------------------------------------------ extremes


@pytest.mark.parametrize("factor", [5e-324, 1e-310, 1e-200, 1e-160, 1e160, 1e200, 1e300])
def test_error_rate_of_rules_of_any_length(factor):
    """A rule multiplied by a positive number is the same rule, also where its squares underflow or overflow."""
    model = TwoClassNormal([2.0, 0.5], [-1.0, 0.0], [[2.0, 0.3], [0.3, 1.0]], prior1=0.3)
    for rule in ([1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [-2.0, 1.0, 3.0]):
        assert model.error_rate(np.array(rule) * factor) == pytest.approx(model.error_rate(rule), rel=1e-12)


@pytest.mark.parametrize("delta", [1e-300, 1e-160, 100, 1e3, 1e200, 1e308])
def test_classes_almost_equal_or_far_apart(delta):
    """Right values, or an error that names delta: no division by zero and no singular matrix."""
    half_error = stats.norm.cdf(-delta / 2)
    try:
        model = TwoClassNormal.canonical(delta)
        assert model.delta == pytest.approx(delta, rel=1e-12)
        assert model.bayes_error() == pytest.approx(half_error, rel=1e-9)
        assert model.excess_error() >= 0
    except ValueError as error:
        assert "delta" in str(error) or "mean" in str(error)  # noqa: PT017


@st.composite
def models(draw):
    p = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(SEED))
    root = rng.normal(size=(p, p)) + 2 * np.eye(p)
    unit = 10.0 ** draw(st.integers(-6, 6))
    prior1 = draw(st.one_of(st.floats(0.01, 0.99), st.sampled_from([1e-12, 0.5])))
    mean1, mean2, cov = unit * rng.normal(size=p), unit * rng.normal(size=p), unit**2 * root @ root.T
    return mean1, mean2, (cov + cov.T) / 2, prior1


@examples(60)
@given(models(), st.integers(1, 20), SEED)
def test_two_normal_classes(parameters, n, seed):
    mean1, mean2, cov, prior1 = parameters
    model = answered(TwoClassNormal, *parameters)
    assume(model.delta < 30)
    Y, z = answered(model.sample, n, seed)
    assert Y.shape == (n, len(mean1)) and set(z) <= {0, 1}
    tau = answered(model.posterior, Y)
    one, two = (stats.multivariate_normal(mean, cov).logpdf(Y) for mean in (mean1, mean2))
    logit = np.log(prior1) - np.log1p(-prior1) + one - two
    np.testing.assert_allclose(np.log(tau[:, 0]) - np.log(tau[:, 1]), logit, rtol=1e-6, atol=1e-6)
    best = answered(model.bayes_error)
    cut = np.log(prior1 / (1 - prior1)) / model.delta
    right = prior1 * stats.norm.cdf(-model.delta / 2 - cut) + (1 - prior1) * stats.norm.cdf(-model.delta / 2 + cut)
    assert best == pytest.approx(right, rel=1e-6)
    rng = np.random.default_rng(seed)
    rules = rng.normal(size=(5, len(mean1) + 1)) * 10.0 ** rng.integers(-200, 200)
    errors = answered(model.error_rate, rules)
    assert np.all((errors >= best * (1 - 1e-9)) & (errors <= 1))
    information, curvature = answered(model.fisher_information), answered(model.error_curvature)
    unit = np.sqrt(np.diag(information))
    assert np.linalg.eigvalsh(information / unit / unit[:, None]).min() > 0
    assert np.all(np.abs(curvature @ model.coef) <= 1e-7 * (np.abs(curvature) @ np.abs(model.coef)))
    assert answered(model.excess_error) >= 0
