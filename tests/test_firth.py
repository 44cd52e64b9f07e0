"""Firth's penalised likelihood: its maximum, found directly; its closed forms; separated labels; its smaller bias."""

import warnings

import numpy as np
import pytest
from reference import logistic_data
from scipy import optimize
from scipy.special import expit, log_expit

from softlabel import ConvergenceWarning, SeparationWarning, find_separation, fit_logistic

SEPARATED = [
    # features, labels or counts
    ([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]),
    ([[1.0], [2.0], [2.0], [3.0]], [0, 0, 1, 1]),
    ([[0.0], [0.0], [1.0], [1.0]], [0, 0, 0, 1]),
    ([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 1.0]], [0, 1, 1, 1, 1]),
    ([[1.0], [2.0], [3.0], [4.0]], [1, 1, 1, 1]),  # one class only
    ([[1.0], [2.0], [3.0], [4.0]], [[7, 0], [300, 0], [0, 4], [0, 9]]),
    ([[1.0], [2.0], [3.0], [4.0]], [[7, 0], [3, 0], [1, 1], [0, 9]]),
]


def as_arrays(X, votes):
    votes = np.asarray(votes, float)
    counts = votes if votes.ndim == 2 else np.column_stack([votes, 1 - votes])
    return np.column_stack([np.ones(len(X)), X]), counts


def penalised(X, votes, penalty=0.5):
    """The log-likelihood plus ``penalty`` times log det of the information, as a function of the coefficients."""
    x, counts = as_arrays(X, votes)

    def value(beta):
        eta = x @ beta
        weight = counts.sum(axis=1) * expit(eta) * expit(-eta)
        sign, log_det = np.linalg.slogdet((x.T * weight) @ x)
        assert sign > 0
        return counts[:, 0] @ log_expit(eta) + counts[:, 1] @ log_expit(-eta) + penalty * log_det

    return value


def modified_score(X, votes, beta, penalty=0.5):
    """Firth's: votes less their expectation, plus leverage times (1/2 - tau); ``penalty`` 0 is maximum likelihood."""
    x, counts = as_arrays(X, votes)
    m, tau = counts.sum(axis=1), expit(x @ beta)
    weight = m * tau * (1 - tau)
    leverage = weight * np.einsum("ji,ik,jk->j", x, np.linalg.inv((x.T * weight) @ x), x)
    return x.T @ (counts[:, 0] - m * tau + 2 * penalty * leverage * (0.5 - tau))


def climb(X, votes):
    """The best of several searches, each polished by the roots of the modified score."""
    value = penalised(X, votes)
    q = np.shape(X)[1] + 1
    rng = np.random.default_rng(0)
    starts = [np.zeros(q), *rng.normal(size=(4, q))]
    found = [optimize.minimize(lambda b: -value(b), s, method="Nelder-Mead",
                               options={"xatol": 1e-6, "fatol": 1e-10, "maxiter": 20_000, "maxfev": 20_000}) for s in starts]
    best = min(found, key=lambda f: f.fun)
    root = optimize.root(lambda b: modified_score(X, votes, b), best.x, tol=1e-13)
    return root.x, value(root.x), -best.fun


def test_modified_score_is_the_derivative_of_the_penalised_likelihood():
    """The two helpers of this file agree with each other, so that either may judge the package."""
    for labels in (True, False):
        X, votes = logistic_data(3, n=20, labels=labels)
        beta = np.array([0.3, -0.7, 0.5])
        for penalty in (0, 0.5, 0.25):
            slopes = optimize.approx_fprime(beta, penalised(X, votes, penalty), 1e-6)
            # 1e-4: forward differences.
            np.testing.assert_allclose(modified_score(X, votes, beta, penalty), slopes, atol=1e-4)


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_is_the_maximum_of_the_penalised_likelihood(labels, seed):
    X, votes = logistic_data(seed, n=25, p=1 + seed % 3, labels=labels)
    fit = fit_logistic(X, votes, method="firth")
    beta, top, searched = climb(X, votes)
    # 1e-7: tol = 1e-8 on the linear predictor, and features of size one.
    np.testing.assert_allclose(fit.coef, beta, atol=1e-7)
    # 1e-9: flat at the top; the search by values alone ends no higher.
    assert penalised(X, votes)(fit.coef) == pytest.approx(top, abs=1e-9) and searched <= top + 1e-9
    assert np.abs(modified_score(X, votes, fit.coef)).max() < 1e-6
    # Negative: not the maximum of another penalty, half or double, nor of none.
    for penalty in (0, 0.25, 1):
        assert np.abs(modified_score(X, votes, fit.coef, penalty)).max() > 1e-3, penalty


@pytest.mark.parametrize("X, votes", SEPARATED)
def test_separated_labels_have_a_finite_estimate(X, votes):
    """And no warning: every warning is an error in these tests."""
    fit = fit_logistic(X, votes, method="firth")
    assert fit.converged and np.isfinite(fit.coef).all()
    assert fit.separation == find_separation(X, votes) != "none"
    assert np.abs(modified_score(X, votes, fit.coef)).max() < 1e-6
    np.testing.assert_allclose(fit.coef, climb(X, votes)[0], atol=1e-6)  # tol times the flatter curvature here
    assert np.isfinite(fit.stderr("model")).all() and np.all(fit.stderr("model") > 0)
    assert fit.separation in repr(fit) and "NOT" not in repr(fit)
    with pytest.warns(SeparationWarning):  # where maximum likelihood fails
        fit_logistic(X, votes)


@pytest.mark.parametrize("seed", range(40))
def test_always_converges_on_small_separated_samples(seed):
    rng = np.random.default_rng(seed)
    p = 1 + seed % 8
    X = rng.normal(size=(p + 3 + seed % 5, p)) * 10.0 ** rng.integers(-2, 3, p)
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)  # the first feature separates
    fit = fit_logistic(X, y, method="firth")
    assert fit.converged and fit.separation == "complete"
    unit = X / np.abs(X).max(axis=0)
    # 1e-6 on features of size one, as asked for.
    assert np.abs(modified_score(unit, y, np.r_[fit.coef[0], fit.coef[1:] * np.abs(X).max(axis=0)])).max() < 1e-6


def test_breast_cancer_sized_problem():
    """Fifty items and ten features, most often separated: the case for which the book needs it."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50, 10))
        y = (X @ np.linspace(3, 0, 10) + rng.logistic(size=50) > 0).astype(int)
        fit = fit_logistic(X, y, method="firth")
        assert fit.converged and np.abs(modified_score(X, y, fit.coef)).max() < 1e-6


@pytest.mark.parametrize("table", [
    [[3, 5], [9, 2]], [[0, 5], [9, 2]], [[0, 5], [9, 0]], [[1, 0], [0, 1]], [[1000, 1], [30, 7]],
    [[3, 5], [9, 2], [4, 4]], [[0, 8], [9, 0], [4, 4]], [[1, 2], [0, 3], [6, 0], [2, 2]],
])
def test_saturated_tables_have_half_a_vote_added_to_each_cell(table):
    """Closed form: each group's log-likelihood gains log(tau (1 - tau)) / 2, half a vote for and half against."""
    table = np.array(table)
    X = np.eye(len(table))[:, 1:]
    logits = np.log((table[:, 0] + 0.5) / (table[:, 1] + 0.5))
    fit = fit_logistic(X, table, method="firth")
    # 1e-7: tol = 1e-8 on each linear predictor, of which two are subtracted.
    np.testing.assert_allclose(fit.coef, np.r_[logits[0], logits[1:] - logits[0]], atol=1e-7)
    np.testing.assert_allclose(fit.posterior(X)[:, 0], (table[:, 0] + 0.5) / (table.sum(axis=1) + 1), atol=1e-8)
    # The log-likelihood reported is that of the data, without penalty and without the added halves.
    expected = (table * np.log((table + 0.5) / (table.sum(axis=1, keepdims=True) + 1))).sum()
    assert fit.log_likelihood == pytest.approx(expected, abs=1e-7)


def test_covariance_is_that_of_the_data_at_the_estimate():
    X, counts = logistic_data(1, n=40, labels=False)
    fit = fit_logistic(X, counts, method="firth")
    x, _ = as_arrays(X, counts)
    m, tau = counts.sum(axis=1), expit(x @ fit.coef)
    np.testing.assert_allclose(fit.cov("model"), np.linalg.inv((x.T * (m * tau * (1 - tau))) @ x), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_repeated_labels(seed):
    X, counts = logistic_data(seed, n=30, labels=False)
    rows = np.repeat(np.arange(30), counts.sum(axis=1))
    y = np.concatenate([[1] * s + [0] * r for s, r in counts]).astype(int)
    one, other = fit_logistic(X, counts, method="firth"), fit_logistic(X[rows], y, method="firth")
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-7)  # tol of each
    assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-7)
    # Each vote twice is not the same estimate: the penalty stays while the votes double.
    assert np.abs(fit_logistic(X, 2 * counts, method="firth").coef - one.coef).max() > 1e-3


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("scale, shift", [(1e-6, 0), (1e6, 0), (1, 1e3), (-2.5, 7), ([1e-4, 1e4], [1, -1e4])])
def test_units_of_the_features_do_not_matter(labels, scale, shift):
    X, votes = logistic_data(2, n=25, labels=labels)
    fit, other = fit_logistic(X, votes, method="firth"), fit_logistic(X * scale + shift, votes, method="firth")
    # 1e-7: tol of the two fits, and rounding of the shifted features.
    np.testing.assert_allclose(other.posterior(X * scale + shift), fit.posterior(X), atol=1e-7)
    np.testing.assert_allclose(other.coef[1:] * scale, fit.coef[1:], atol=1e-6)


def test_swapped_classes_and_order_of_items():
    X, y = logistic_data(4, n=25)
    fit = fit_logistic(X, y, method="firth")
    np.testing.assert_allclose(fit_logistic(X, 1 - y, method="firth").coef, -fit.coef, atol=1e-7)  # tol of each
    order = np.random.default_rng(0).permutation(25)
    np.testing.assert_allclose(fit_logistic(X[order], y[order], method="firth").coef, fit.coef, atol=1e-7)


def test_bias_is_smaller_than_that_of_maximum_likelihood():
    """Forty items, slope 1: maximum likelihood overshoots by about a tenth, Firth's estimate by next to nothing."""
    rng = np.random.default_rng(0)
    true, slopes = np.array([0.5, 1.0]), []
    for _ in range(1500):
        X = rng.normal(size=(40, 1))
        y = (rng.random(40) < expit(true[0] + true[1] * X[:, 0])).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("error", SeparationWarning)  # none of these samples is separated: both estimates exist
            slopes.append([fit_logistic(X, y, method=method).coef[1] for method in ("mle", "firth")])
    (mle, firth), error = np.mean(slopes, axis=0) - true[1], np.std(slopes, axis=0) / np.sqrt(len(slopes))
    assert mle > 5 * error[0]
    # Four standard errors (5 points) and a term of second order, (1/40)^2 times some tens.
    assert abs(firth) < 4 * error[1] + 0.02 and abs(firth) < mle / 3


def test_estimates_come_together_as_votes_grow():
    X, _ = logistic_data(5, n=30)
    votes = np.random.default_rng(5).binomial(1000, expit(0.3 + X[:, 0]))
    counts = np.column_stack([votes, 1000 - votes])
    mle, firth = (fit_logistic(X, counts, method=method).coef for method in ("mle", "firth"))
    # The penalty is worth half a vote a coefficient, of 30,000.
    assert 1e-6 < np.abs(mle - firth).max() < 1e-3


def test_too_few_steps_are_a_convergence_warning():
    """Ten times max_iter is allowed; a tolerance below rounding is never met."""
    X, y = logistic_data(6, n=25)
    with pytest.warns(ConvergenceWarning, match="no convergence after 10 steps"):
        fit = fit_logistic(X, y, method="firth", max_iter=1, tol=1e-300)
    assert not fit.converged and "NOT converged" in repr(fit)


def test_tol_bounds_the_error_of_the_linear_predictor():
    """As documented: the error left, and not the last step, which is smaller where the iteration converges slowly."""
    for X, votes in SEPARATED:
        beta = climb(X, votes)[0]
        for tol in (1e-2, 1e-4, 1e-6):
            fit = fit_logistic(X, votes, method="firth", tol=tol)
            assert np.abs((fit.coef[0] + X @ fit.coef[1:]) - (beta[0] + X @ beta[1:])).max() <= tol
