"""The sharper form of Theorem 1: any votes of mean m tau and variance phi m tau (1 - tau) carry (m / phi) I_LR.

Symbolically, with equally correlated votes that are not Dirichlet-multinomial, and negatively; and the curvature J of the
error rate, f(0) / 4 E[x x' | eta = 0].
"""

import numpy as np
import pytest
import sympy as sp
from scipy import stats
from test_theorems import FAR, GENERAL, MODEL, NEAR, departure, simulate

from softlabel import TwoClassNormal, dm_logpmf, variance_inflation

M, RHO = 4, 0.5
PHI = 1 + (M - 1) * RHO


def common_opinion(tau, labellers, rho, rng):
    """Single votes (..., labellers): with probability rho all repeat the first one, else they are independent."""
    votes = rng.random((*tau.shape[:-1], labellers)) < tau[..., :1]
    repeat = rng.random(tau.shape[:-1]) < rho
    votes[repeat] = votes[repeat][:, :1]
    return votes


def as_counts(votes):
    s = votes.sum(axis=-1)
    return np.stack([s, votes.shape[-1] - s], axis=-1)


# ------------------------------------------------------------------ symbolically


m, rho, a, phi, k = sp.symbols("m rho alpha0 phi k", positive=True)


def three_points():
    """Three feature values with any probabilities and posteriors: expectation of weight x x'."""
    w, t = sp.symbols("w1:4", positive=True), sp.symbols("t1:4", positive=True)
    X = [sp.Matrix([1, x]) for x in (-1, 0, 2)]
    return t, lambda weights: sum((w[j] * weights[j] * X[j] * X[j].T for j in range(3)), sp.zeros(2))


def test_information_symbolically():
    t, expectation = three_points()
    fisher = expectation([s * (1 - s) for s in t])
    H, G = m * fisher, expectation([phi * m * s * (1 - s) for s in t])
    information = H * G.inv() * H
    assert all(sp.simplify(e) == 0 for e in information - m / phi * fisher)
    for altered in (m * phi, m, 1 / phi, m / phi**2, (m / phi) ** 2):
        assert any(sp.simplify(e) != 0 for e in information - altered * fisher), altered


def test_the_model_of_the_paper_and_design_effect_of_kish():
    dirichlet = (m + a) / (1 + a)
    correlated = 1 + (m - 1) * rho
    # The Dirichlet-multinomial is the case alpha0 = 1 / rho - 1.
    assert sp.simplify(correlated.subs(rho, 1 / (1 + a)) - dirichlet) == 0
    assert sp.simplify(dirichlet.subs(a, 1 / rho - 1) - correlated) == 0
    assert sp.simplify(dirichlet.subs(a, 1 / rho) - correlated) != 0
    # Variance of a sum of m votes, each of variance v, each pair of covariance rho v.
    v = sp.symbols("v", positive=True)
    assert sp.simplify(m * v + m * (m - 1) * rho * v - correlated * m * v) == 0
    # Between one labeller and m; 1 / rho at most, however many.
    effective = m / correlated
    assert effective.subs(rho, 0) == m and sp.simplify(effective.subs(rho, 1)) == 1
    assert sp.limit(effective, m, sp.oo) == 1 / rho


def test_converse_symbolically():
    """I_M = c I_LR forces the variance m^2 tau (1 - tau) / c at every point: x x' of three points are independent."""
    t, expectation = three_points()
    c = sp.symbols("c", positive=True)
    v = sp.symbols("v1:4", positive=True)  # any variances
    fisher, G = expectation([s * (1 - s) for s in t]), expectation(v)
    # H G^-1 H = c I_LR with H = m I_LR is m^2 I_LR = c G.
    equations = list(m**2 * fisher - c * G)
    (solution,) = sp.solve(equations, v, dict=True)
    for j in range(3):
        assert sp.simplify(solution[v[j]] - m**2 / c * t[j] * (1 - t[j])) == 0


# ------------------------------------------------------------------ votes that are not Dirichlet-multinomial


@pytest.mark.parametrize("tau", [0.15, 0.5])
def test_pairwise_correlation_of_the_votes_is_rho(tau):
    size = 200_000
    votes = common_opinion(np.tile([tau, 1 - tau], (size, 1)), M, RHO, np.random.default_rng(0))
    # Four standard errors of a mean, and five of a correlation (ten of them; 1.5 allows for the fourth moments).
    assert np.abs(votes.mean(axis=0) - tau).max() < 4 * np.sqrt(tau * (1 - tau) / size)
    correlation = np.corrcoef(votes.T)[np.triu_indices(M, 1)]
    assert np.abs(correlation - RHO).max() < 5 * 1.5 / np.sqrt(size)
    variance = as_counts(votes)[:, 0].var() / (M * tau * (1 - tau))
    assert variance == pytest.approx(PHI, rel=0.02)  # 5 standard errors
    assert PHI == pytest.approx(variance_inflation(M, 1 / RHO - 1), rel=1e-12)  # same two moments ...
    # ... but another distribution.
    every = np.column_stack([np.arange(M + 1), M - np.arange(M + 1)])
    dirichlet = np.exp(dm_logpmf(every, np.tile([tau, 1 - tau], (M + 1, 1)), 1 / RHO - 1))
    seen = np.bincount(as_counts(votes)[:, 0], minlength=M + 1)
    mixture = (1 - RHO) * stats.binom.pmf(np.arange(M + 1), M, tau) + RHO * np.r_[1 - tau, np.zeros(M - 1), tau]
    assert stats.chisquare(seen, size * mixture).pvalue > 1e-3  # fixed seed
    assert stats.chisquare(seen, size * dirichlet).pvalue < 1e-9


ALTERED = {
    "votes taken as independent": M,
    "one labeller": 1,
    "upside down": PHI,
    "m missing": 1 / PHI,
    "m for m - 1": M / (1 + M * RHO),
    "rho squared": M / (1 + (M - 1) * RHO**2),
    "alpha0 = 1 / rho": M * (1 + 1 / RHO) / (M + 1 / RHO),
}


@pytest.fixture(scope="module")
def correlated_fits():
    """8,000 fits know variances to 1.6%: the nearest altered formula is 17% away."""
    return simulate(MODEL, lambda tau, z, rng: as_counts(common_opinion(tau, M, RHO, rng)), seed=21, size=8000)


def test_information_of_correlated_votes(correlated_fits):
    assert departure(correlated_fits, MODEL, M / PHI * MODEL.fisher_information()) < NEAR
    np.testing.assert_allclose(correlated_fits.mean(axis=0), MODEL.coef, atol=0.01)  # bias O(1 / n), as for Theorem 1


@pytest.mark.parametrize("name", ALTERED)
def test_altered_formulas_are_rejected(correlated_fits, name):
    assert departure(correlated_fits, MODEL, ALTERED[name] * MODEL.fisher_information()) > FAR


@pytest.mark.parametrize("labellers, rho_", [(2, 0.9), (20, 0.05), (20, 0.6)])
def test_information_of_correlated_votes_elsewhere(labellers, rho_):
    def votes(tau, z, rng):
        return as_counts(common_opinion(tau, labellers, rho_, rng))

    coef = simulate(GENERAL, votes, seed=22, size=1000)
    effective = labellers / (1 + (labellers - 1) * rho_)
    assert departure(coef, GENERAL, effective * GENERAL.fisher_information()) < NEAR
    assert departure(coef, GENERAL, 2 * effective * GENERAL.fisher_information()) > FAR


# ------------------------------------------------------------------ negative: another variance


def rho_of(tau):
    """Labellers who follow each other on items in doubt, and think for themselves on clear ones."""
    return (4 * tau[..., 0] * tau[..., 1]) ** 3


def sandwich_of(model, labellers):
    """H G^-1 H with phi depending on tau, by two-dimensional averages over a large sample of features."""
    Y, _ = model.sample(1_000_000, np.random.default_rng(99))
    tau, x = model.posterior(Y), np.column_stack([np.ones(len(Y)), Y])
    weight = labellers * tau[:, 0] * tau[:, 1]
    H = (x.T * weight) @ x / len(x)
    G = (x.T * weight * (1 + (labellers - 1) * rho_of(tau))) @ x / len(x)
    return H @ np.linalg.inv(G) @ H


def test_variance_not_proportional_to_tau_one_minus_tau_is_rejected():
    def votes(tau, z, rng):
        return as_counts(common_opinion(tau, 20, rho_of(tau), rng))

    coef = simulate(MODEL, votes, seed=23)
    # The mean is still m tau, so that the estimate is consistent, and the sandwich formula itself holds:
    np.testing.assert_allclose(coef.mean(axis=0), MODEL.coef, atol=0.02)
    assert departure(coef, MODEL, sandwich_of(MODEL, 20)) < NEAR
    # but no multiple of I_LR is the information: the best of a fine grid is still far.
    multiples = np.linspace(0.5, 20, 400)
    assert min(departure(coef, MODEL, c * MODEL.fisher_information()) for c in multiples) > FAR


def test_the_grid_of_multiples_would_find_the_right_one(correlated_fits):
    fisher = MODEL.fisher_information()
    multiples = np.linspace(0.5, 20, 400)
    distances = [departure(correlated_fits, MODEL, c * fisher) for c in multiples]
    assert min(distances) < NEAR and multiples[np.argmin(distances)] == pytest.approx(M / PHI, rel=0.05)


# ------------------------------------------------------------------ J


MODELS = {
    "canonical": MODEL,
    "general": GENERAL,
    "far apart, unequal priors": TwoClassNormal.canonical(4.0, p=1, prior1=0.8),
    "three features": TwoClassNormal([1, 0, 2.0], [0, 0.5, 0], [[2, 0.3, 0.1], [0.3, 1, -0.2], [0.1, -0.2, 0.7]], prior1=0.4),
}


def by_formula(model, constant):
    """constant times f(0) E[x x' | eta = 0] from first principles: the density of eta, and y given eta = 0 by conditioning."""
    b0, b = model.coef[0], model.coef[1:]
    cov, spread = model.cov, b @ model.cov @ b
    total = np.zeros((len(b) + 1, len(b) + 1))
    for prior, mean in ((model.prior1, model.mean1), (1 - model.prior1, model.mean2)):
        eta = b0 + b @ mean
        density = prior * stats.norm.pdf(0, eta, np.sqrt(spread))
        y = mean - cov @ b * eta / spread
        x = np.r_[1, y]
        total += density * np.outer(x, x)
        total[1:, 1:] += density * (cov - np.outer(cov @ b, cov @ b) / spread)
    return constant * total


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_curvature_is_a_quarter_of_f0_times_the_moments_on_the_boundary(model):
    """Half the Hessian of the error rate, which it is, is compared in test_normal.py."""
    J = model.error_curvature()
    size = np.abs(J).max()
    np.testing.assert_allclose(J, by_formula(model, 1 / 4), atol=1e-12 * size, rtol=1e-9)  # rounding
    for wrong in (1 / 2, 1 / 8, 1):
        assert np.abs(by_formula(model, wrong) - J).max() > 0.4 * size
    np.testing.assert_allclose(J @ model.coef, 0, atol=1e-12 * size * np.abs(model.coef).max())
