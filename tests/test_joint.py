"""The joint fit of coefficients and overdispersion: a search without derivatives, finite differences, edges, and coverage."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import exact_logpmf, gastro, logistic_data
from scipy import optimize
from scipy.special import expit
from strategies import SEED, answered, attempt, examples, features, rounding

import softlabel as sl

MODEL = sl.TwoClassNormal.canonical(2.0)


def log_likelihood(X, counts, coef, omega):
    eta = coef[0] + X @ coef[1:]
    tau = np.column_stack([expit(eta), expit(-eta)])
    return sl.dm_logpmf(counts, tau, 1 / omega if omega else np.inf).sum()


def votes(seed, n=150, alpha0=3.0, most=8):
    """Unequal numbers of votes, some of none."""
    rng = np.random.default_rng(seed)
    Y, _ = MODEL.sample(n, rng)
    counts = sl.sample_votes(MODEL.posterior(Y), rng.integers(1, most + 1, n), alpha0, rng)
    counts[::10] = 0
    return Y, counts


@pytest.mark.parametrize("seed, alpha0", [(1, 0.05), (2, 0.5), (3, 3.0), (4, 40.0), (5, np.inf), (6, 2.0)])
def test_against_a_search_without_derivatives(seed, alpha0):
    X, counts = votes(seed, alpha0=alpha0)
    fit = sl.fit_dirichlet_multinomial(X, counts)

    def minus(b):
        return -log_likelihood(X, counts, b[:3], b[3] ** 2)

    options = {"maxiter": 9000, "maxfev": 9000, "xatol": 1e-10, "fatol": 1e-12}
    found = [optimize.minimize(minus, [0, 0, 0, start], method="Nelder-Mead", options=options) for start in (0.1, 1, 5)]
    best = min(found, key=lambda f: f.fun)
    omega = 1 / fit.alpha0 if fit.alpha0 < np.inf else 0.0
    assert fit.converged
    assert fit.log_likelihood == pytest.approx(log_likelihood(X, counts, fit.coef, omega), abs=1e-9)
    assert fit.log_likelihood == pytest.approx(-best.fun, abs=1e-8)  # 1e-4 standard errors from the maximum
    np.testing.assert_allclose(fit.coef, best.x[:3], atol=1e-4)
    assert omega == pytest.approx(best.x[3] ** 2, rel=1e-3, abs=1e-5)


def hessian(f, theta, h):
    """Second derivatives by central differences."""
    e = np.diag(h)
    four = [[f(theta + u + v) - f(theta + u - v) - f(theta - u + v) + f(theta - u - v) for v in e] for u in e]
    return np.array(four) / (4 * np.outer(h, h))


@pytest.mark.parametrize("seed, alpha0", [(7, 0.05), (7, 3.0), (8, 20.0)])
def test_covariance_is_that_of_the_observed_information(seed, alpha0):
    """The curvature of the log-likelihood in beta and omega, by finite differences, and a score of zero."""
    X, counts = votes(seed, alpha0=alpha0, n=400)
    fit = sl.fit_dirichlet_multinomial(X, counts)
    theta = np.r_[fit.coef, 1 / fit.alpha0]

    def value(t):
        return log_likelihood(X, counts, t[:3], t[3])

    h = 1e-3 * np.r_[1, 1, 1, theta[3]]
    inverse = np.linalg.inv(-hessian(value, theta, h))
    # 1e-4: rounding of a log-likelihood near 1000 over h^2, and the fourth derivatives.
    np.testing.assert_allclose(fit.cov(), inverse[:3, :3], rtol=1e-4, atol=1e-4 * np.abs(inverse).max())
    for k, step in enumerate(np.diag(h)):
        slope = (value(theta + step) - value(theta - step)) / (2 * h[k])
        assert abs(slope) * np.sqrt(inverse[k, k]) < 1e-4  # in standard errors


def test_standard_errors_are_roots_of_variances():
    fit = sl.fit_dirichlet_multinomial(*votes(1))
    assert fit.stderr() == pytest.approx([fit.cov()[k, k] ** 0.5 for k in range(3)], rel=1e-12)


def test_expected_information_on_the_real_votes_is_that_of_vgam():
    """VGAM's vglm(..., betabinomial) prints errors by the expected information, here by enumeration; ours are others."""
    X, counts, _ = gastro()
    fit = sl.fit_dirichlet_multinomial(X, counts)
    theta, x = np.r_[fit.coef, 1 / fit.alpha0], np.column_stack([np.ones(len(X)), X])
    s = np.arange(8)
    votes, h = np.column_stack([s, 7 - s]), 1e-5

    def logs(eta, omega):
        return sl.dm_logpmf(votes, np.tile([expit(eta), expit(-eta)], (8, 1)), 1 / omega)

    expected = np.zeros((7, 7))
    for row in x:
        eta, omega = row @ fit.coef, theta[-1]
        by_eta = (logs(eta + h, omega) - logs(eta - h, omega)) / (2 * h)
        by_omega = (logs(eta, omega + h) - logs(eta, omega - h)) / (2 * h)
        scores = np.column_stack([by_eta[:, None] * row, by_omega])
        expected += (scores.T * np.exp(logs(eta, omega))) @ scores
    errors = np.sqrt(np.diag(np.linalg.inv(expected)))
    errors[-1] /= theta[-1]  # of logit rho = log omega
    printed = [0.1911, 0.1666, 0.2826, 0.2193, 0.1921, 0.1976, 0.3720]
    np.testing.assert_allclose(errors, printed, atol=0.5001e-4, rtol=0)
    np.testing.assert_allclose(fit.stderr(), [0.1923, 0.1670, 0.2911, 0.2216, 0.1948, 0.1986], atol=0.5001e-4, rtol=0)


def test_far_out_the_likelihood_is_still_right():
    """Posterior probabilities of 1e-20, which 1 - tau would lose; by exact arithmetic."""
    X = np.array([[-1.0], [0.0], [1.0], [1.0], [-1.0], [0.0]])
    counts = np.array([[0, 9], [4, 5], [9, 0], [9, 0], [0, 9], [6, 3]])
    counts[:, 0] += [0, 0, 10**5, 0, 0, 0]
    counts[:, 1] += [10**5, 0, 0, 0, 0, 0]
    counts[[2, 0], [1, 0]] = 1  # one dissenting vote each
    fit = sl.fit_dirichlet_multinomial(X, counts)
    some = [1, 3, 4, 5]
    eta = fit.coef[0] + X[some, 0] * fit.coef[1]
    exact = sum(float(exact_logpmf(s, [expit(e), expit(-e)], fit.alpha0)) for s, e in zip(counts[some], eta))
    ours = sl.dm_logpmf(counts[some], fit.posterior(X[some]), fit.alpha0).sum()
    assert ours == pytest.approx(exact, rel=1e-10)


def test_votes_less_varied_than_independent_ones_give_the_logistic_fit():
    X, _ = votes(8, n=60)
    tau = MODEL.posterior(X)[:, 0]
    s = np.rint(9 * tau)  # no noise but rounding
    counts = np.column_stack([s, 9 - s])
    fit, pooled = sl.fit_dirichlet_multinomial(X, counts), sl.fit_logistic(X, counts)
    assert fit.alpha0 == np.inf and fit.converged
    np.testing.assert_allclose(fit.coef, pooled.coef, rtol=1e-7)
    np.testing.assert_allclose(fit.cov(), pooled.cov("model"), rtol=1e-6)


def test_labellers_who_always_agree_count_once():
    X, labels = logistic_data(3)
    counts = np.column_stack([labels, 1 - labels]) * np.arange(1, 61)[:, None]
    fit, one = sl.fit_dirichlet_multinomial(X, counts), sl.fit_logistic(X, labels)
    assert fit.alpha0 == 0 and fit.converged
    np.testing.assert_allclose(fit.coef, one.coef, rtol=1e-9)
    np.testing.assert_allclose(fit.cov(), one.cov("model"), rtol=1e-9)
    assert fit.log_likelihood == pytest.approx(one.log_likelihood)
    # It is the limit of alpha0 -> 0, and no alpha0 is better.
    values = [log_likelihood(X, counts, one.coef, omega) for omega in (0, 1, 1e3, 1e9)]
    assert np.all(np.diff(values) > 0) and values[-1] == pytest.approx(fit.log_likelihood, abs=1e-4)


def test_units_of_the_features():
    X, counts = votes(10)
    fit = sl.fit_dirichlet_multinomial(X, counts)
    Z = X * [1e-6, 1e9] + [5, -3e9]
    other = sl.fit_dirichlet_multinomial(Z, counts)
    np.testing.assert_allclose(other.coef[1:] * [1e-6, 1e9], fit.coef[1:], rtol=1e-6)
    np.testing.assert_allclose(other.stderr()[1:] * [1e-6, 1e9], fit.stderr()[1:], rtol=1e-5)
    np.testing.assert_allclose(other.posterior(Z), fit.posterior(X), rtol=1e-6)
    assert other.alpha0 == pytest.approx(fit.alpha0, rel=1e-6)
    assert other.log_likelihood == pytest.approx(fit.log_likelihood, rel=1e-10)


def test_items_without_votes_count_for_nothing():
    X, counts = votes(11)
    voted = counts.any(axis=1)
    fit, without = sl.fit_dirichlet_multinomial(X, counts), sl.fit_dirichlet_multinomial(X[voted], counts[voted])
    np.testing.assert_allclose(fit.coef, without.coef, rtol=1e-8)
    assert (fit.n_items, fit.n_without_votes) == (voted.sum(), (~voted).sum())
    assert f"{(~voted).sum()} more without votes" in repr(fit)


@pytest.mark.parametrize(
    "counts, kind", [([[0, 2], [0, 3], [2, 0], [1, 0]], "complete"), ([[0, 2], [1, 3], [2, 0], [1, 0]], "quasi")]
)
def test_separation_is_said_and_not_fitted(counts, kind):
    X = [[0.0], [1.0], [2.0], [3.0]]
    with pytest.warns(sl.SeparationWarning, match=f"{kind} separation") as caught:
        fit = sl.fit_dirichlet_multinomial(X, counts)
    assert caught[0].filename == __file__ and len(caught) == 1
    assert fit.separation == kind and not fit.converged and f"NOT converged, {kind} separation" in repr(fit)
    assert np.isnan(fit.cov()).all() and np.isnan(fit.stderr()).all()
    # There is no maximum: farther out along the slope the likelihood is higher.
    X, counts, coef = np.array(X), np.array(counts), fit.coef
    omega = 1 / fit.alpha0 if fit.alpha0 else 1e6
    edge = -coef[0] / coef[1] if kind == "complete" else 1.0
    values = [log_likelihood(X, counts, np.array([-edge * b, b]), omega) for b in (5, 10, 20)]
    assert np.all(np.diff(values) > 0)


def test_too_few_steps():
    X, counts = votes(13)
    with pytest.warns(sl.ConvergenceWarning, match="no convergence after 1 steps") as caught:
        fit = sl.fit_dirichlet_multinomial(X, counts, max_iter=1)
    assert caught[0].filename == __file__ and not fit.converged and "NOT converged" in repr(fit)


@pytest.mark.parametrize(
    "labellers, alpha0, slope", [(1000, 3.0, 8.0), (3000, 0.05, 4.0), (1000, np.inf, 3.0), (3, 1e5, 1.0), (5, 0.01, 2.0)]
)
def test_extreme_votes(labellers, alpha0, slope):
    rng = np.random.default_rng(14)
    X = rng.normal(size=(300, 2))
    tau = np.column_stack([expit(slope * X[:, 0]), expit(-slope * X[:, 0])])
    counts = sl.sample_votes(tau, labellers, alpha0, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = sl.fit_dirichlet_multinomial(X, counts)
    # A maximum: a hundredth of a standard error away on either side, the log-likelihood is lower by 1/20000 or more.
    omega, size = 1 / fit.alpha0, fit.stderr()
    here = log_likelihood(X, counts, fit.coef, omega)
    assert here == pytest.approx(fit.log_likelihood, rel=1e-9)  # rounding of sums of 3,000 logarithms an item
    for k in range(3):
        step = np.eye(3)[k] * np.sqrt(1 / np.linalg.inv(fit.cov())[k, k]) / 100
        for sign in (-1, 1):
            assert here - log_likelihood(X, counts, fit.coef + sign * step, omega) > 0.9 / 20_000
    for factor in (0.9, 1.1):
        assert log_likelihood(X, counts, fit.coef, factor * omega + 1e-9) < here
    assert np.abs((fit.coef - [0, slope, 0]) / size).max() < 4.5  # fixed seed


def test_single_precision_and_large_offsets():
    X, counts = votes(16)
    fit = sl.fit_dirichlet_multinomial(X.astype("float32"), counts)
    np.testing.assert_allclose(fit.coef, sl.fit_dirichlet_multinomial(X, counts).coef, rtol=1e-5)


@examples(60)
@given(features(), st.integers(2, 30), SEED)
def test_no_parameters_are_more_likely_than_the_joint_fit(X, m, seed):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, m + 1, len(X))
    counts = np.column_stack([s, m - s])
    fit = answered(sl.fit_dirichlet_multinomial, X, counts)
    assume(fit.separation == "none" and fit.converged and fit.alpha0 > 0)
    tau = attempt(fit.posterior, X)
    here = attempt(sl.dm_logpmf, counts, tau, fit.alpha0).sum()
    lost = m * rounding(X, fit.coef).sum()  # no vote's score exceeds 1
    assert fit.log_likelihood == pytest.approx(here, abs=1e-9 + lost)
    pooled = attempt(sl.fit_logistic, X, counts).posterior(X)
    alpha0 = attempt(sl.estimate_alpha0, counts, pooled).alpha0
    if alpha0 > 0:
        assert here >= attempt(sl.dm_logpmf, counts, pooled, alpha0).sum() - 1e-6 - 2 * lost
    cov = attempt(fit.cov)
    np.testing.assert_allclose(attempt(fit.stderr) ** 2, np.diag(cov), rtol=1e-9)


def test_features_of_1e_250_have_a_covariance_beyond_the_floats_and_no_warning():
    X, counts = np.array([[0.0], [1], [2], [3], [4], [5]]), [[0, 7], [4, 3], [1, 6], [7, 0], [3, 4], [7, 0]]
    tiny, plain = sl.fit_dirichlet_multinomial(X * 1e-250, counts), sl.fit_dirichlet_multinomial(X, counts)
    assert tiny.alpha0 == pytest.approx(plain.alpha0, rel=1e-6) and np.isinf(tiny.cov()[1, 1])


# ------------------------------------------------------------------ the intercept alone


CONTROL = [13, 12, 9, 9, 8, 8, 13, 12, 10, 10, 9, 13, 5, 7, 10, 10], [13, 12, 9, 9, 8, 8, 12, 11, 9, 9, 8, 11, 4, 5, 7, 7]
TREATED = [12, 11, 10, 9, 11, 10, 10, 9, 9, 5, 9, 7, 10, 6, 10, 7], [12, 11, 10, 9, 10, 9, 9, 8, 8, 4, 7, 4, 5, 3, 3, 0]


@pytest.mark.parametrize("columns", [np.empty((16, 0)), pd.DataFrame(index=range(16)), np.empty((16, 0), np.float32)])
@pytest.mark.parametrize("litters, mean, alpha0", [(CONTROL, 0.89798, 48.514), (TREATED, 0.74001, 2.1502)])
def test_litters_of_weil(litters, mean, alpha0, columns):
    """Pups born and alive after 21 days in 16 litters each (Weil 1970), a beta-binomial without features; printed digits."""
    born, alive = np.array(litters)
    counts = np.column_stack([alive, born - alive])
    fit = sl.fit_dirichlet_multinomial(columns, counts)
    assert expit(fit.coef[0]) == pytest.approx(mean, abs=5e-6) and fit.alpha0 == pytest.approx(alpha0, rel=2.4e-5)
    np.testing.assert_array_equal(fit.posterior(columns), np.tile(fit.posterior(columns)[:1], (16, 1)))
    assert fit.log_likelihood == pytest.approx(log_likelihood(np.empty((16, 0)), counts, fit.coef, 1 / fit.alpha0), abs=1e-9)


def test_intercept_alone_in_every_fit():
    born, alive = np.array(TREATED)
    counts, columns = np.column_stack([alive, born - alive]), np.empty((16, 0))
    share = alive.sum() / born.sum()
    fit = sl.fit_logistic(columns, counts)
    assert fit.coef == pytest.approx([np.log(share / (1 - share))], rel=1e-9) and fit.feature_names == []
    assert fit.stderr("model") == pytest.approx([1 / np.sqrt(born.sum() * share * (1 - share))], rel=1e-9)
    scores = np.sum((alive - born * share) ** 2)
    assert fit.stderr() == pytest.approx([np.sqrt(scores) / (born.sum() * share * (1 - share))], rel=1e-9)
    assert list(fit.summary().index) == ["intercept"]
    batch = sl.fit_logistic_batch(np.stack([columns] * 2), np.stack([counts, counts[:, ::-1]]))
    np.testing.assert_allclose(batch.coef, [fit.coef, -fit.coef], rtol=1e-9)
    assert sl.find_separation(columns, counts) == "none" and sl.find_separation(columns, np.ones(16)) == "complete"
    with pytest.warns(sl.SeparationWarning, match="the intercept alone, since all votes are for one class, tells the labels"):
        sl.fit_logistic(columns, np.ones(16))
    low, high = sl.alpha0_interval(counts, fit.posterior(columns), X=columns)
    assert low < 2.1502 < high < 10
    with pytest.raises(ValueError, match="X has 1 columns but the model was fitted to"):
        fit.posterior(np.ones((3, 1)))
    np.testing.assert_allclose(fit.posterior(pd.DataFrame({"any": [1.0, 2.0]}))[:, 0], share)
    with pytest.raises(ValueError, match=r"X has no elements: its shape is \(0, 0\)"):
        sl.fit_logistic(np.empty((0, 0)), np.ones(0))
