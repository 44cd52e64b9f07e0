"""fit_logistic: estimates and covariances against closed forms, statsmodels and R."""

import mpmath
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from reference import R_TRUTH, R_VOTES, gastro, logistic_data
from scipy import stats

from softlabel import find_separation, fit_logistic

TABLE = [(7, 3), (2, 9)]  # positive and negative votes where x = 0 and where x = 1


def glm(X, counts, cov_type="nonrobust"):
    """The same fit by statsmodels, which cannot take items without votes."""
    counts = np.asarray(counts)
    counts = counts if counts.ndim == 2 else np.column_stack([counts, 1 - counts])
    voted = counts.sum(axis=1) > 0
    model = sm.GLM(counts[voted], sm.add_constant(np.asarray(X)[voted]), family=sm.families.Binomial())
    return model.fit(tol=1e-14, maxiter=200, cov_type=cov_type)


def table_items():
    """The 2 x 2 table as one label an item."""
    x = np.repeat([0.0, 0.0, 1.0, 1.0], np.ravel(TABLE))
    y = np.repeat([1, 0, 1, 0], np.ravel(TABLE))
    return x[:, None], y


def table_counts():
    return np.array([[0.0], [1.0]]), np.array(TABLE)


@pytest.mark.parametrize("data", [table_items, table_counts])
def test_two_by_two_table_has_log_odds_and_odds_ratio(data):
    fit = fit_logistic(*data(), tol=1e-14)
    (a, b), (c, d) = TABLE
    # 1e-12: with this tol only rounding is left.
    np.testing.assert_allclose(fit.coef, [np.log(a / b), np.log(c * b / (d * a))], rtol=1e-12)
    variance = [1 / a + 1 / b, 1 / a + 1 / b + 1 / c + 1 / d]
    np.testing.assert_allclose(fit.stderr(kind="model") ** 2, variance, rtol=1e-10)
    p0, p1 = a / (a + b), c / (c + d)
    log_likelihood = sum(s * np.log(p) for s, p in
                         [(a, p0), (b, 1 - p0), (c, p1), (d, 1 - p1)])
    np.testing.assert_allclose(fit.log_likelihood, log_likelihood, rtol=1e-13)


def test_tol_bounds_the_error_of_the_linear_predictor():
    for seed in range(40):
        X, votes = logistic_data(seed, n=25, labels=seed % 2 == 0)
        exact = fit_logistic(X, votes, tol=1e-14).coef
        for tol in (1e-3, 1e-5, 1e-8):
            error = fit_logistic(X, votes, tol=tol).coef - exact
            # The docstring: "largest error left in a linear predictor".
            assert np.abs(error[0] + X @ error[1:]).max() <= tol


def test_deviance_of_labels_is_minus_twice_the_log_likelihood_and_of_a_saturated_fit_zero():
    fit = fit_logistic(*table_items())
    np.testing.assert_allclose(fit.deviance, -2 * fit.log_likelihood, rtol=1e-13)
    # 1e-12 absolute: what remains when two equal log-likelihoods near 12 are subtracted.
    np.testing.assert_allclose(fit_logistic(*table_counts()).deviance, 0, atol=1e-12)


def test_sandwich_of_grouped_votes_is_the_spread_between_items():
    # Two groups, so the fit is the pooled share of each, and the sandwich is
    # sum_j (s_j - m_j p)^2 / (M p q)^2 in each group: worked out by hand.
    votes = np.array([[3, 1], [1, 3], [5, 2], [0, 4], [2, 6], [3, 1]])
    group = np.array([0, 0, 0, 1, 1, 1])
    variances = []
    for k in (0, 1):
        s, m = votes[group == k, 0], votes[group == k].sum(axis=1)
        p = s.sum() / m.sum()
        variances.append(((s - m * p) ** 2).sum() / (m.sum() * p * (1 - p)) ** 2)
    cov = fit_logistic(group[:, None].astype(float), votes).cov(kind="sandwich")
    expected = [[variances[0], -variances[0]], [-variances[0], sum(variances)]]
    np.testing.assert_allclose(cov, expected, rtol=1e-10)  # rounding


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_statsmodels(labels, seed):
    X, votes = logistic_data(seed, labels=labels)
    if not labels:
        assert (votes.sum(axis=1) == 0).any() and len(set(votes.sum(axis=1))) > 3
    ours, theirs = fit_logistic(X, votes), glm(X, votes)
    # 1e-8: what is asked of the package; both iterate far below it.
    np.testing.assert_allclose(ours.coef, theirs.params, atol=1e-8)
    np.testing.assert_allclose(ours.cov(kind="model"), theirs.cov_params(), atol=1e-8)
    robust = glm(X, votes, cov_type="HC0")
    np.testing.assert_allclose(ours.cov(kind="sandwich"), robust.cov_params(), atol=1e-8)
    np.testing.assert_allclose(ours.stderr(kind="sandwich"), robust.bse, atol=1e-8)
    np.testing.assert_allclose(ours.deviance, theirs.deviance, rtol=1e-10)
    np.testing.assert_allclose(ours.dispersion, theirs.pearson_chi2 / theirs.df_resid, rtol=1e-8)
    # The two covariances must differ, or the test could not tell them apart.
    assert np.abs(robust.cov_params() - theirs.cov_params()).max() > 1e-4


@pytest.mark.parametrize("labels", [True, False])
def test_log_likelihood_is_the_formula_of_section_3(labels):
    X, votes = logistic_data(5, labels=labels)
    fit = fit_logistic(X, votes)
    s, m = (votes, np.ones(len(votes))) if labels else (votes[:, 0], votes.sum(axis=1))
    eta = fit.coef[0] + X @ fit.coef[1:]
    expected = np.sum(s * eta - m * np.log1p(np.exp(eta)))
    np.testing.assert_allclose(fit.log_likelihood, expected, rtol=1e-12)  # rounding of 60 terms


def test_sandwich_is_the_default():
    fit = fit_logistic(*logistic_data(1, labels=False))
    np.testing.assert_array_equal(fit.cov(), fit.cov(kind="sandwich"))
    np.testing.assert_array_equal(fit.stderr(), np.sqrt(np.diag(fit.cov())))


@pytest.mark.parametrize("labels, expected", [("truth", R_TRUTH), ("votes", R_VOTES)])
def test_agrees_with_r_on_the_gastroenterology_data(labels, expected):
    X, counts, y = gastro()
    fit = fit_logistic(X, y if labels == "truth" else counts)
    # 1e-6 on coefficients as asked; R prints 12 digits, its standard errors carry IWLS weights
    # of the last but one step, hence 1e-6 too.
    np.testing.assert_allclose(fit.coef, expected["coef"], atol=1e-6)
    np.testing.assert_allclose(fit.stderr(kind="model"), expected["stderr"], atol=1e-6)
    np.testing.assert_allclose(fit.deviance, expected["deviance"], rtol=1e-9)
    assert fit.converged and fit.separation == "none" and fit.n_items == 76


def test_items_without_votes_are_kept_and_contribute_nothing():
    X, votes = logistic_data(2, labels=False)
    voted = votes.sum(axis=1) > 0
    every, some = fit_logistic(X, votes), fit_logistic(X[voted], votes[voted])
    np.testing.assert_allclose(every.coef, some.coef, rtol=1e-12)
    np.testing.assert_allclose(every.cov(), some.cov(), rtol=1e-10)
    assert every.dispersion == pytest.approx(some.dispersion, rel=1e-10)
    assert every.n_items == voted.sum() < len(X)
    assert len(every.posterior(X)) == len(X)


def test_posterior_columns_do_not_round_to_zero():
    fit = fit_logistic(*logistic_data(3, p=1))
    x = (np.array([-600.0, -50.0, 0.0, 50.0, 600.0]) - fit.coef[0]) / fit.coef[1]
    tau = fit.posterior(x[:, None])
    eta = fit.coef[0] + fit.coef[1] * x
    # rtol 1e-12: exp multiplies the rounding of eta (1e-13 at 600) by itself.
    np.testing.assert_allclose(tau[0, 0], np.exp(eta[0]), rtol=1e-12)
    np.testing.assert_allclose(tau[3, 1], np.exp(-eta[3]), rtol=1e-12)
    np.testing.assert_allclose(tau[4, 1], np.exp(-eta[4]), rtol=1e-12)
    np.testing.assert_allclose(tau[2], [0.5, 0.5], rtol=1e-12)
    np.testing.assert_allclose(tau.sum(axis=1), 1, rtol=1e-15)


def test_posterior_and_predict_survive_any_finite_feature():
    fit = fit_logistic(*logistic_data(3, p=1))
    assert fit.coef[1] > 0
    np.testing.assert_array_equal(fit.posterior([[1e300], [-1e300]]), [[1, 0], [0, 1]])
    np.testing.assert_array_equal(fit.predict([[1e300], [-1e300]]), [1, 0])


def test_predict_is_one_where_the_positive_class_is_more_likely():
    X, y = logistic_data(4)
    fit = fit_logistic(X, y)
    labels = fit.predict(X)
    np.testing.assert_array_equal(labels, fit.coef[0] + X @ fit.coef[1:] > 0)
    assert set(labels) == {0, 1} and labels.dtype.kind in "iu"


def test_summary_holds_wald_tests_and_intervals():
    X, votes = logistic_data(6, labels=False)
    frame = pd.DataFrame(X, columns=["size", "shape"])
    fit = fit_logistic(frame, votes)
    for kind in ("sandwich", "model"):
        table = fit.summary(kind=kind, level=0.9)
        assert len(table) == 3 and list(table.index[1:]) == ["size", "shape"]
        numbers = table.to_numpy(dtype=float)
        se = fit.stderr(kind=kind)
        z = fit.coef / se
        half = stats.norm.ppf(0.95) * se
        # Every column is one of these, whatever its heading.
        for name, column in {"coef": fit.coef, "se": se, "z": z, "p": 2 * stats.norm.sf(np.abs(z)),
                             "lower": fit.coef - half, "upper": fit.coef + half}.items():
            close = np.isclose(numbers, column[:, None], rtol=1e-10).all(axis=0)
            assert close.any(), f"no column of the summary holds {name}"


def test_results_are_frozen_and_readable():
    fit = fit_logistic(pd.DataFrame({"size": [0.0, 1, 2, 3, 1]}), [0, 1, 0, 1, 0])
    with pytest.raises(AttributeError):
        fit.coef = None
    assert fit.feature_names == ["size"]
    assert "size" in repr(fit) and "np.float64" not in repr(fit) and len(repr(fit)) < 300


def test_does_not_touch_its_input():
    X, votes = logistic_data(7, labels=False)
    before = X.copy(), votes.copy()
    fit_logistic(X, votes)
    find_separation(X, votes)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(votes, before[1])


def test_later_changes_of_the_input_do_not_change_the_fit():
    X, votes = logistic_data(7, labels=False)
    votes = votes.astype(float)
    fit = fit_logistic(X, votes)
    cov = fit.cov().copy()
    X *= 7
    votes += 3
    np.testing.assert_array_equal(fit.cov(), cov)


def test_wrong_formulas_would_be_seen():
    """The 2 x 2 table tells the odds ratio from its inverse, and columns of counts from each other."""
    X, counts = table_counts()
    swapped = fit_logistic(X, counts[:, ::-1])
    np.testing.assert_allclose(swapped.coef, -fit_logistic(X, counts).coef, rtol=1e-12)
    assert abs(swapped.coef[1] - fit_logistic(X, counts).coef[1]) > 1


def test_exponential_in_vector_registers():
    """Half a million numbers against NumPy's, and some against 40 digits; a high or low part of log 2 left out is seen."""
    from softlabel._newton import decay

    eta = np.concatenate([np.linspace(-708, 708, 400_001), np.logspace(-300, 2, 100_000), [0.0, -0.0, 1e4, -1e308, np.inf]])
    out = np.empty_like(eta)
    decay(eta, out)
    inside = np.abs(eta) <= 708
    # 5e-16: two roundings, ours and NumPy's, of at most 2.2e-16 each.
    np.testing.assert_allclose(out[inside], np.exp(-np.abs(eta[inside])), rtol=5e-16, atol=0)
    np.testing.assert_array_equal(out[~inside], out[0])  # so small that nothing depends on it
    with mpmath.workdps(40):
        for j in range(0, 400_001, 4001):
            exact = mpmath.exp(-abs(mpmath.mpf(eta[j])))
            assert abs(out[j] - exact) <= 3e-16 * exact
    decay(np.array([np.nan]), out)
    assert np.isnan(out[0])
