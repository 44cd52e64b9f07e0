"""Newton's method, one data set or thousands, and Firth's penalty: closed forms, statsmodels, R, invariance, hard data."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reference import R_TRUTH, R_VOTES, gastro, logistic_data
from scipy import optimize, stats
from scipy.special import expit
from strategies import ODD, attempt, examples, features, fittable, items, rounding
from threadpoolctl import threadpool_info, threadpool_limits

import softlabel as sl

EXACT = {"tol": 1e-14, "max_iter": 100}  # leaves rounding only
X6 = np.array([[0.0, 1], [1, 0], [2, 5], [3, 1], [4, -1], [2, 2]])
Y6 = np.array([0, 1, 0, 1, 0, 1])
TABLE = [(7, 3), (2, 9)]  # positive and negative votes where x = 0 and where x = 1


ITEMS = np.repeat([[0.0], [0.0], [1.0], [1.0]], np.ravel(TABLE), axis=0), np.repeat([1, 0, 1, 0], np.ravel(TABLE))


def as_counts(votes):
    votes = np.asarray(votes, float)
    return votes if votes.ndim == 2 else np.column_stack([votes, 1 - votes])


def log_likelihood(eta, votes):
    return -(votes[:, 0] @ np.logaddexp(0, -eta) + votes[:, 1] @ np.logaddexp(0, eta))


def glm(X, votes, cov_type="nonrobust"):
    """The same fit by statsmodels, which cannot take items without votes."""
    counts = as_counts(votes)
    voted = counts.sum(axis=1) > 0
    model = sm.GLM(counts[voted], sm.add_constant(np.asarray(X)[voted]), family=sm.families.Binomial())
    return model.fit(tol=1e-14, maxiter=200, cov_type=cov_type)


# ------------------------------------------------------------------ closed forms and other programs


@pytest.mark.parametrize("X, votes", [ITEMS, ([[0.0], [1.0]], TABLE)])
def test_two_by_two_table_has_log_odds_and_odds_ratio(X, votes):
    fit = sl.fit_logistic(X, votes, tol=1e-14)
    (a, b), (c, d) = TABLE
    # 1e-12: with this tol only rounding is left.
    np.testing.assert_allclose(fit.coef, [np.log(a / b), np.log(c * b / (d * a))], rtol=1e-12)
    variance = [1 / a + 1 / b, 1 / a + 1 / b + 1 / c + 1 / d]
    np.testing.assert_allclose(fit.stderr(kind="model") ** 2, variance, rtol=1e-10)
    p0, p1 = a / (a + b), c / (c + d)
    log_likelihood = sum(s * np.log(p) for s, p in [(a, p0), (b, 1 - p0), (c, p1), (d, 1 - p1)])
    np.testing.assert_allclose(fit.log_likelihood, log_likelihood, rtol=1e-13)


@pytest.mark.parametrize("table", [[[10**9, 3], [10**9, 1]], [[5, 5], [1, 10**9]], [[1, 10**6], [10**6, 1]], [[1, 1], [1, 1]]])
def test_one_vote_in_a_billion(table):
    counts = np.array(table)
    fit = sl.fit_logistic([[0.0], [1.0]], table)
    # 1e-8: the largest error left in a linear predictor.
    np.testing.assert_allclose([fit.coef[0], fit.coef.sum()], np.log(counts[:, 0] / counts[:, 1]), atol=1e-8, rtol=0)


def test_tol_bounds_the_error_of_the_linear_predictor():
    for seed in range(40):
        X, votes = logistic_data(seed, n=25, labels=seed % 2 == 0)
        exact = sl.fit_logistic(X, votes, tol=1e-14).coef
        for tol in (1e-3, 1e-5, 1e-8):
            error = sl.fit_logistic(X, votes, tol=tol).coef - exact
            # The docstring: "largest error left in a linear predictor".
            assert np.abs(error[0] + X @ error[1:]).max() <= tol


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_statsmodels(labels, seed):
    X, votes = logistic_data(seed, labels=labels)
    if not labels:
        assert (votes.sum(axis=1) == 0).any() and len(set(votes.sum(axis=1))) > 3
    ours, theirs = sl.fit_logistic(X, votes), glm(X, votes)
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


@pytest.mark.parametrize("labels, expected", [("truth", R_TRUTH), ("votes", R_VOTES)])
def test_agrees_with_r_on_the_gastroenterology_data(labels, expected):
    X, counts, y = gastro()
    fit = sl.fit_logistic(X, y if labels == "truth" else counts)
    # 1e-6 on coefficients as asked; R prints 12 digits, its standard errors carry IWLS weights
    # of the last but one step, hence 1e-6 too.
    np.testing.assert_allclose(fit.coef, expected["coef"], atol=1e-6)
    np.testing.assert_allclose(fit.stderr(kind="model"), expected["stderr"], atol=1e-6)
    np.testing.assert_allclose(fit.deviance, expected["deviance"], rtol=1e-9)
    assert fit.converged and fit.separation == "none" and fit.n_items == 76


def test_a_fit_that_meets_every_vote_has_a_sandwich_of_zero_and_a_summary():
    """Every item at its expectation: no residual, and no warning of NumPy about 0 / 0 or the root of a rounding error."""
    rare = np.zeros((12, 1))
    rare[[4, 8]] = 1e6
    split = np.ones((12, 2), int)
    split[8] = [0, 1]
    for X, votes in (([[0.0], [1.0]], [[1, 1], [1, 1]]), (rare, split)):
        fit = sl.fit_logistic(X, votes)
        assert np.all(fit.stderr() >= 0) and (fit.stderr() < 1e-6).any()
        assert list(fit.summary().index) == ["intercept", "x1"]


def test_posterior_columns_do_not_round_to_zero():
    fit = sl.fit_logistic(*logistic_data(3, p=1))
    x = (np.array([-600.0, -50.0, 0.0, 50.0, 600.0]) - fit.coef[0]) / fit.coef[1]
    tau = fit.posterior(x[:, None])
    eta = fit.coef[0] + fit.coef[1] * x
    # rtol 1e-12: exp multiplies the rounding of eta (1e-13 at 600) by itself.
    np.testing.assert_allclose(tau[0, 0], np.exp(eta[0]), rtol=1e-12)
    np.testing.assert_allclose(tau[3, 1], np.exp(-eta[3]), rtol=1e-12)
    np.testing.assert_allclose(tau[4, 1], np.exp(-eta[4]), rtol=1e-12)
    np.testing.assert_allclose(tau[2], [0.5, 0.5], rtol=1e-12)
    np.testing.assert_allclose(tau.sum(axis=1), 1, rtol=1e-15)


def test_linear_predictors_of_ten_thousand():
    fit = sl.fit_logistic(np.linspace(-1, 1, 40)[:, None], [0, 1] * 20)
    for X in ([[1e4 / fit.coef[1]], [-1e4 / fit.coef[1]]], [[1e300], [-1e300]], [[1e308], [-1e308]]):
        tau = fit.posterior(X)
        np.testing.assert_array_equal(tau, [[1, 0], [0, 1]])
        assert fit.predict(X).tolist() == [1, 0]


@pytest.mark.parametrize("scale", [1e-320, 1e-310, 1e307, 3e307])
def test_units_at_the_ends_of_the_float_range(scale):
    try:
        fit = sl.fit_logistic(X6 * scale, Y6)
    except ValueError as error:
        assert "X" in str(error)  # noqa: PT017
    else:
        np.testing.assert_allclose(fit.posterior(X6 * scale), sl.fit_logistic(X6, Y6).posterior(X6), atol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "uint64", "float32"])
def test_small_and_unsigned_counts_do_not_wrap(dtype):
    """m - s and s - m tau must not be taken in the type of the counts."""
    most = 120 if dtype == "int8" else 250
    votes = np.array([[most, 100], [50, most], [120, 90], [0, 3], [7, 0]])
    x = np.array([[0.0], [1.0], [3.0], [2.0], [5.0]])
    tau = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    small = votes.astype(dtype)
    ours, right = sl.fit_logistic(x, small), sl.fit_logistic(x, votes)
    for name in ("coef", "log_likelihood", "deviance", "dispersion", "n_items"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(right, name))
    np.testing.assert_array_equal(ours.cov(), right.cov())
    np.testing.assert_array_equal(sl.fit_logistic_batch([x], [small]).coef, sl.fit_logistic_batch([x], [votes]).coef)
    assert sl.find_separation(x, small) == sl.find_separation(x, votes) == "none"
    assert sl.estimate_alpha0(small, tau).alpha0 == sl.estimate_alpha0(votes, tau).alpha0
    np.testing.assert_array_equal(sl.dm_logpmf(small, tau, 2.0), sl.dm_logpmf(votes, tau, 2.0))
    np.testing.assert_array_equal(sl.bootstrap_alpha0(small, tau, 5, rng=0), sl.bootstrap_alpha0(votes, tau, 5, rng=0))


def test_predict_is_one_where_the_positive_class_is_more_likely():
    X, y = logistic_data(4)
    fit = sl.fit_logistic(X, y)
    labels = fit.predict(X)
    np.testing.assert_array_equal(labels, fit.coef[0] + X @ fit.coef[1:] > 0)
    assert set(labels) == {0, 1} and labels.dtype.kind in "iu"


def test_summary_holds_wald_tests_and_intervals():
    X, votes = logistic_data(6, labels=False)
    frame = pd.DataFrame(X, columns=["size", "shape"])
    fit = sl.fit_logistic(frame, votes)
    for kind in ("sandwich", "model"):
        table = fit.summary(kind=kind, level=0.9)
        assert len(table) == 3 and list(table.index[1:]) == ["size", "shape"]
        numbers = table.to_numpy(dtype=float)
        se = fit.stderr(kind=kind)
        z = fit.coef / se
        half = stats.norm.ppf(0.95) * se
        columns = {"coef": fit.coef, "se": se, "z": z, "p": 2 * stats.norm.sf(np.abs(z))}
        # Every column is one of these, whatever its heading.
        for name, column in {**columns, "lower": fit.coef - half, "upper": fit.coef + half}.items():
            close = np.isclose(numbers, column[:, None], rtol=1e-10).all(axis=0)
            assert close.any(), f"no column of the summary holds {name}"


def test_results_are_frozen_and_readable():
    fit = sl.fit_logistic(pd.DataFrame({"size": [0.0, 1, 2, 3, 1]}), [0, 1, 0, 1, 0])
    with pytest.raises(AttributeError):
        fit.coef = None
    assert fit.feature_names == ["size"]
    assert "size" in repr(fit) and "np.float64" not in repr(fit) and len(repr(fit)) < 300


# ------------------------------------------------------------------ many data sets at once


def batch_data(size, n, p=2, seed=0, counts=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(size, n, p))
    tau = 1 / (1 + np.exp(-(0.3 + X[..., 0])))
    if not counts:
        return X, (rng.random((size, n)) < tau).astype(int)
    m = rng.integers(0, 8, (size, n))
    s = rng.binomial(m, tau)
    return X, np.stack([s, m - s], axis=-1)


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("method", ["mle", "firth"])
def test_equals_the_single_fit(counts, method):
    X, votes = batch_data(40, 50, p=3, seed=11, counts=counts)
    batch = sl.fit_logistic_batch(X, votes, method=method, **EXACT)
    assert batch.coef.shape == (40, 4) and batch.converged.shape == batch.n_iter.shape == (40,)
    for r in range(40):
        fit = sl.fit_logistic(X[r], votes[r], method=method, **EXACT)
        # Rounding only: the data sets must not mix, and R = 1 takes other BLAS routines.
        np.testing.assert_allclose(batch.coef[r], fit.coef, rtol=1e-10, atol=1e-12)
        assert abs(batch.n_iter[r] - fit.n_iter) <= 1  # at this tolerance rounding decides on the last step
    single = X.astype("float32")
    np.testing.assert_allclose(sl.fit_logistic_batch(single, votes, method=method).coef, batch.coef, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size, n", [(1, 30), (2, 30), (65, 500), (66, 500), (199, 330), (700, 100), (3, 40_000)])
def test_chunks_join_without_a_seam(size, n):
    """Sizes around a chunk of the cache, down to data sets larger than one: each data set as if alone."""
    X, y = batch_data(size, n, seed=size)
    batch = sl.fit_logistic_batch(X, y, **EXACT)
    for r in {0, size // 3, size // 2, size - 1}:
        alone = sl.fit_logistic_batch(X[r : r + 1], y[r : r + 1], **EXACT)
        np.testing.assert_allclose(batch.coef[r], alone.coef[0], rtol=1e-10, atol=1e-12)  # rounding
    # The score is zero at every estimate: no data set is left out or given another's labels.
    eta = batch.coef[:, :1] + np.einsum("rnp,rp->rn", X, batch.coef[:, 1:])
    residual = y - 1 / (1 + np.exp(-eta))
    score = np.einsum("rn,rnp->rp", residual, X)
    assert np.abs(residual.sum(axis=1)).max() < 1e-8 * n and np.abs(score).max() < 1e-8 * n


@pytest.mark.parametrize("n, p", [(60_000, 3), (6_000, 40)])
def test_one_large_data_set_and_many_features(n, p):
    """Items by the block and features by the dozen: estimate, covariances and dispersion by their formulas."""
    X, votes = logistic_data(3, n=n, p=p, labels=False)
    fit, batch = sl.fit_logistic(X, votes, **EXACT), sl.fit_logistic_batch([X, X[::-1]], [votes, votes[::-1]], **EXACT)
    np.testing.assert_allclose(batch.coef, [fit.coef] * 2, rtol=1e-9, atol=1e-11)
    x, m, tau = np.column_stack([np.ones(n), X]), votes.sum(axis=1), fit.posterior(X)[:, 0]
    residual, weight = votes[:, 0] - m * tau, m * tau * (1 - tau)
    assert np.abs(residual @ x).max() < 1e-9 * n
    model = np.linalg.inv((x.T * weight) @ x)
    np.testing.assert_allclose(fit.cov("model"), model, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fit.cov(), model @ (x.T * residual**2) @ x @ model, rtol=1e-8, atol=1e-12)
    pearson = (residual[m > 0] ** 2 / weight[m > 0]).sum()
    assert fit.dispersion == pytest.approx(pearson / ((m > 0).sum() - p - 1), rel=1e-9)


def test_one_class_only_in_one_data_set_of_a_batch():
    X = np.random.default_rng(4).normal(size=(3, 40, 2))
    y = np.random.default_rng(5).integers(0, 2, (3, 40))
    clean = sl.fit_logistic_batch(X, y)
    y[1] = 0
    with pytest.warns(UserWarning, match="1 of 3 fits did not converge .the first is data set 1"):
        batch = sl.fit_logistic_batch(X, y)
    np.testing.assert_array_equal(batch.converged, [True, False, True])
    np.testing.assert_allclose(batch.coef[[0, 2]], clean.coef[[0, 2]], rtol=1e-12)


# ------------------------------------------------------------------ where undamped steps fail


# Lopsided votes and outliers. Without taking back half a step that was too long, the first three have no answer within 25
# steps; without a limit to the step the next three; without both, the last two.
HARD = [
    ([3, 0, -1], [[1, 1], [1, 47350], [1, 12539]]),
    ([1, 0, 300], [[0, 1], [1, 8030], [9, 1]]),
    ([-3, -1, 2, 3, 2, -30], [[62, 1], [33, 1], [82, 1], [66, 1], [60, 1], [26, 302]]),
    ([-2, 2, 10], [[1, 43], [1, 4], [43, 1]]),
    ([0, -1, 10], [[1, 678], [1, 1], [45322, 1]]),
    ([4, 2, 300], [[466, 1], [571, 1], [1, 4633]]),
    ([0, 0, 1, 1], [[1, 1], [9963, 1], [1, 1], [1, 15133]]),
    ([-4, 0, 3], [[4734, 31], [62247, 1], [1, 77]]),
]


def undamped_newton_converges(x, counts, steps=25):
    """Textbook Newton from the first step that the package takes: from zero, stretched to Fisher's discriminant."""
    x = np.column_stack([np.ones(len(x)), (x - np.mean(x)) / np.abs(x - np.mean(x)).max()])
    s, m, beta = counts[:, 0], counts.sum(axis=1), np.zeros(2)
    for step in range(steps):
        tau = expit(x @ beta)
        H, gradient = (x.T * (m * tau * (1 - tau))) @ x, x.T @ (s - m * tau)
        if not np.isfinite(H).all() or np.linalg.cond(H) > 1e14:
            return False
        direction = np.linalg.solve(H, gradient)
        if step == 0:
            total = m.sum() - 4 * gradient[0] ** 2 / m.sum()
            direction /= max((m.sum() - gradient @ direction) / total, 0.1)
        beta = beta + direction
        if np.abs(direction).sum() < 1e-4:
            return True
    return False


@pytest.mark.parametrize("x, counts", HARD)
def test_converges_where_undamped_newton_does_not(x, counts):
    x, counts = np.array(x, float), np.array(counts)
    assert not undamped_newton_converges(x, counts)
    fit, batch = sl.fit_logistic(x[:, None], counts), sl.fit_logistic_batch([x[:, None]] * 2, [counts] * 2)
    assert fit.converged and batch.converged.all()
    # It is the maximum: the score, which no program is needed for, vanishes.
    residual = counts[:, 0] - counts.sum(axis=1) * fit.posterior(x[:, None])[:, 0]
    z = (x - x.mean()) / np.abs(x).max()
    np.testing.assert_allclose([residual.sum(), residual @ z], 0, atol=1e-9 * counts.sum())
    np.testing.assert_allclose(batch.coef, [fit.coef] * 2, rtol=1e-6)


def test_an_outlier_far_against_the_rule_has_a_finite_likelihood():
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=400), [-4e3]])[:, None]
    votes = np.column_stack([np.where(x[:, 0] > 0, 990, 10), np.where(x[:, 0] > 0, 10, 990)])
    votes[-1] = [1, 0]
    fit = sl.fit_logistic(x, votes, max_iter=200)
    eta = fit.coef[0] + x[:, 0] * fit.coef[1]
    assert fit.converged and np.isfinite([fit.log_likelihood, fit.deviance, fit.dispersion]).all()
    assert fit.log_likelihood == pytest.approx(log_likelihood(eta, votes), rel=1e-12)
    assert np.abs(eta).max() > 1e3  # or nothing was extreme
    assert np.isfinite(fit.stderr()).all()


def test_too_few_steps_are_a_convergence_warning():
    X, y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [0, 0, 1, 0, 1, 1]
    with pytest.warns(sl.ConvergenceWarning, match="max_iter") as caught:
        fit = sl.fit_logistic(X, y, max_iter=1)
    assert caught[0].filename == __file__
    assert not fit.converged and fit.separation == "none" and fit.n_iter == 1 and "NOT converged" in repr(fit)
    with pytest.warns(sl.ConvergenceWarning):
        batch = sl.fit_logistic_batch([X], [y], max_iter=1)
    assert not batch.converged[0] and batch.n_iter[0] == 1


# ------------------------------------------------------------------ units of the features


@pytest.mark.parametrize("method", ["mle", "firth"])
@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize(
    "scale, shift",
    [
        ((1e-100, 1e100), 0),
        ((1e100, 1e100), 0),
        ((1e-100, 1e-100), 0),
        ((1e8, 1e-8), 1e6),
        ((1, 1), 2.0**30),
        ((1e-100, 1), -(2.0**30)),
    ],
)
def test_shifted_and_scaled_features(scale, shift, labels, method):
    X, votes = logistic_data(8, labels=labels)
    X = np.round(X * 64) / 64  # so that X + 2^30 is exact
    Z = (X + shift) * scale
    plain, other = (sl.fit_logistic(x, votes, method=method, **EXACT) for x in (X, Z))
    batch = sl.fit_logistic_batch(np.stack([X, Z]), np.stack([votes, votes]), method=method, **EXACT).coef
    # 1e-7: a mean near 1e9 is rounded to 1e-7, which moves the centre but not the slopes; the
    # slopes lose digits only in solving.
    rtol, atol = (1e-7, 1e-6) if shift else (1e-9, 1e-9)
    for one, two in ((plain.coef, other.coef), batch):
        np.testing.assert_allclose(two[1:] * scale, one[1:], rtol=rtol)
        np.testing.assert_allclose(two[0] + shift * (scale * two[1:]).sum(), one[0], atol=atol)
    for kind in ("model", "sandwich"):
        np.testing.assert_allclose(other.stderr(kind)[1:] * scale, plain.stderr(kind)[1:], rtol=10 * rtol)
    assert other.converged and other.separation == "none"
    assert other.log_likelihood == pytest.approx(plain.log_likelihood, rel=rtol)
    np.testing.assert_allclose(other.posterior(Z), plain.posterior(X), atol=atol)
    if not shift:
        assert other.n_iter == plain.n_iter and other.stderr() == pytest.approx(plain.stderr() / [1, *scale], rel=1e-8)


# ------------------------------------------------------------------ whatever the data


@examples(100)
@given(fittable(), st.randoms(use_true_random=False), st.integers(2, 5))
def test_what_leaves_the_estimate_as_it_is(data, random, k):
    """The order of the items, the names of the classes, votes one by one, and every vote k times."""
    X, votes, fit = data
    order = list(range(len(X)))
    random.shuffle(order)
    rows = np.repeat(np.arange(len(X)), votes.sum(axis=1))
    labels = np.concatenate([[1] * s + [0] * f for s, f in votes]).astype(int)
    # Factors of the estimate and of the two covariances. The sandwich asks which votes belong to one item, and is not moved
    # by copies of a vote; the covariance of the model takes each for another.
    for Z, v, sign, model, sandwich in (
        (X[order], votes[order], 1, 1, 1),
        (X, votes[:, ::-1], -1, 1, 1),
        (X[rows], labels, 1, 1, None),
        (X, k * votes, 1, k, 1),
    ):
        other = sl.fit_logistic(Z, v, **EXACT)
        np.testing.assert_allclose(other.coef, sign * fit.coef, rtol=1e-8, atol=1e-9)  # rounding, ill conditioned at times
        np.testing.assert_allclose(other.log_likelihood, model * fit.log_likelihood, rtol=1e-9)
        np.testing.assert_allclose(other.cov("model") * model, fit.cov("model"), rtol=1e-7, atol=1e-9)
        if sandwich:
            np.testing.assert_allclose(other.cov(), fit.cov(), rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(other.dispersion, model * fit.dispersion, rtol=1e-7, atol=1e-9)


@examples(60)
@given(fittable(), st.integers(-20, 20), st.integers(-50, 50), st.booleans())
def test_units_of_the_features(data, exponent, shift, negative):
    X, votes, fit = data
    scale = (-1 if negative else 1) * 2.0**exponent  # exact in floating point
    other = sl.fit_logistic((X + shift) * scale, votes, **EXACT)
    np.testing.assert_allclose(other.coef[1:] * scale, fit.coef[1:], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(other.coef[0] + shift * scale * other.coef[1:].sum(), fit.coef[0], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(other.stderr()[1:] * abs(scale), fit.stderr()[1:], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(other.log_likelihood, fit.log_likelihood, rtol=1e-9)


def check_fit(fit, X, y, firth=False):
    """What every fit must satisfy, whether or not there is a maximum."""
    X, votes = np.asarray(X, dtype=float), as_counts(y)
    m = votes.sum(axis=1)
    assert np.isfinite(fit.coef).all() and fit.coef.shape == (X.shape[1] + 1,)
    assert fit.separation in ("none", "quasi", "complete") and fit.n_items == (m > 0).sum()
    assert repr(fit).startswith("LogisticFit(")
    with np.errstate(over="ignore", invalid="ignore"):
        eta = fit.coef[0] + X @ fit.coef[1:]
        size = np.abs(fit.coef[0]) + np.abs(X) @ np.abs(fit.coef[1:])
    assert np.isfinite(fit.log_likelihood) and fit.log_likelihood <= 0 and fit.deviance >= -1e-9 * (1 + m.sum())
    if not np.isfinite(size).all():
        return
    rounding = 1e-14 * size.max()
    assert fit.log_likelihood == pytest.approx(log_likelihood(eta, votes), rel=1e-9, abs=(1e-12 + rounding) * (1 + m.sum()))
    if fit.converged and not firth:
        assert fit.separation == "none"
        # The score vanishes: votes and their expectations have the same sum, and the same products with the features.
        residual = votes[:, 0] - m / (1 + np.exp(-np.clip(eta, -700, 700)))
        z = X - X.mean(axis=0)
        z = np.column_stack([np.ones(len(X)), z / np.maximum(np.abs(z).max(axis=0), 1e-300)])
        assert np.abs(residual @ z).max() <= (1e-6 + rounding) * m.sum()


@examples(200)
@given(items(), st.data())
def test_fit_of_plausible_data(data, more):
    X, y = data
    kwargs = more.draw(st.sampled_from([{}, {}, {"method": "firth"}, {"max_iter": 3}, {"tol": 1e-12}]))
    fit = attempt(sl.fit_logistic, X, y, **kwargs)
    kind = attempt(sl.find_separation, X, y)
    if fit is not None:
        check_fit(fit, X, y, firth="method" in kwargs)
        assert fit.separation == kind or np.linalg.cond(np.column_stack([np.ones(len(X)), X])) > 1e6
        if kind != "none" and "method" not in kwargs:
            assert not fit.converged


@examples(120)
@given(items(), st.one_of(ODD, st.sampled_from(["model", "sandwich"])), st.one_of(ODD, st.floats(0, 1)))
def test_uncertainty_of_a_fit(data, kind, level):
    X, y = data
    fit = attempt(sl.fit_logistic, X, y)
    if fit is None:
        fit = sl.fit_logistic(X6, Y6)
    cov, stderr = attempt(fit.cov, kind), attempt(fit.stderr, kind)
    table = attempt(fit.summary, level=level)
    if cov is not None and np.isfinite(cov).all():
        d = np.sqrt(np.maximum(np.diag(cov), 0))  # where every vote is met exactly, zero up to rounding
        np.testing.assert_array_equal(stderr, d)
        scaled = cov / np.where(d > 0, d, 1) / np.where(d > 0, d, 1)[:, None]
        np.testing.assert_allclose(scaled, scaled.T, atol=1e-6)
        if kind == "model" and fit.converged:
            assert np.linalg.eigvalsh(scaled).min() > -1e-6
    if table is not None:
        known = np.isfinite(table["stderr"])
        assert (table["lower"] <= table["coef"])[known].all() and (table["coef"] <= table["upper"])[known].all()
        assert table["pvalue"][known & np.isfinite(table["z"])].between(0, 1).all()


@examples(60)
@given(st.data())
def test_a_batch_is_its_single_fits(data):
    X = np.stack([data.draw(features(n=12, p=2)) for _ in range(3)])
    y = data.draw(hnp.arrays(int, (3, 12), elements=st.integers(0, 1)))
    batch = attempt(sl.fit_logistic_batch, X, y)
    single = [attempt(sl.fit_logistic, *pair) for pair in zip(X, y)]
    assert (batch is None) == any(fit is None for fit in single)
    if batch is not None:
        assert repr(batch).startswith("BatchFit(3 data sets")
        for k, fit in enumerate(single):
            assert batch.converged[k] == fit.converged
            if fit.converged:
                tau = 1 / (1 + np.exp(-(batch.coef[k, 0] + X[k] @ batch.coef[k, 1:])))
                error = np.abs(tau - fit.posterior(X[k])[:, 0])
                assert (error <= 1e-6 + rounding(X[k], fit.coef) / 4).all()


# ------------------------------------------------------------------ Firth's penalty


FOUR = [[1.0], [2.0], [3.0], [4.0]]
SEPARATED = [
    # features, labels or counts
    (FOUR, [0, 0, 1, 1]),
    ([[1.0], [2.0], [2.0], [3.0]], [0, 0, 1, 1]),
    ([[0.0], [0.0], [1.0], [1.0]], [0, 0, 0, 1]),
    ([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 1.0]], [0, 1, 1, 1, 1]),
    (FOUR, [1, 1, 1, 1]),  # one class only
    (FOUR, [[7, 0], [300, 0], [0, 4], [0, 9]]),
    (FOUR, [[7, 0], [3, 0], [1, 1], [0, 9]]),
]


def as_arrays(X, votes):
    return np.column_stack([np.ones(len(X)), X]), as_counts(votes)


def penalised(X, votes, penalty=0.5):
    """The log-likelihood plus ``penalty`` times log det of the information, as a function of the coefficients."""
    x, counts = as_arrays(X, votes)

    def value(beta):
        eta = x @ beta
        weight = counts.sum(axis=1) * expit(eta) * expit(-eta)
        sign, log_det = np.linalg.slogdet((x.T * weight) @ x)
        assert sign > 0
        return log_likelihood(eta, counts) + penalty * log_det

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
    options = {"xatol": 1e-6, "fatol": 1e-10, "maxiter": 20_000, "maxfev": 20_000}
    found = [optimize.minimize(lambda b: -value(b), start, method="Nelder-Mead", options=options) for start in starts]
    best = min(found, key=lambda f: f.fun)
    root = optimize.root(lambda b: modified_score(X, votes, b), best.x, tol=1e-13)
    return root.x, value(root.x), -best.fun


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_is_the_maximum_of_the_penalised_likelihood(labels, seed):
    X, votes = logistic_data(seed, n=25, p=1 + seed % 3, labels=labels)
    fit = sl.fit_logistic(X, votes, method="firth")
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
    fit = sl.fit_logistic(X, votes, method="firth")
    assert fit.converged and np.isfinite(fit.coef).all()
    assert fit.separation == sl.find_separation(X, votes) != "none"
    assert np.abs(modified_score(X, votes, fit.coef)).max() < 1e-6
    np.testing.assert_allclose(fit.coef, climb(X, votes)[0], atol=1e-6)  # tol times the flatter curvature here
    assert np.isfinite(fit.stderr("model")).all() and np.all(fit.stderr("model") > 0)
    assert fit.separation in repr(fit) and "NOT" not in repr(fit)
    with pytest.warns(sl.SeparationWarning):  # where maximum likelihood fails
        sl.fit_logistic(X, votes)


@pytest.mark.parametrize("seed", range(16))
def test_always_converges_on_small_separated_samples(seed):
    rng = np.random.default_rng(seed)
    p = 1 + seed % 8
    X = rng.normal(size=(p + 3 + seed % 5, p)) * 10.0 ** rng.integers(-2, 3, p)
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)  # the first feature separates
    fit = sl.fit_logistic(X, y, method="firth")
    assert fit.converged and fit.separation == "complete"
    unit = X / np.abs(X).max(axis=0)
    # 1e-6 on features of size one, as asked for.
    assert np.abs(modified_score(unit, y, np.r_[fit.coef[0], fit.coef[1:] * np.abs(X).max(axis=0)])).max() < 1e-6


@pytest.mark.parametrize(
    "table",
    [
        [[3, 5], [9, 2]],
        [[0, 5], [9, 2]],
        [[0, 5], [9, 0]],
        [[1, 0], [0, 1]],
        [[1000, 1], [30, 7]],
        [[3, 5], [9, 2], [4, 4]],
        [[0, 8], [9, 0], [4, 4]],
        [[1, 2], [0, 3], [6, 0], [2, 2]],
    ],
)
def test_saturated_tables_have_half_a_vote_added_to_each_cell(table):
    """Closed form: each group's log-likelihood gains log(tau (1 - tau)) / 2, half a vote for and half against."""
    table = np.array(table)
    X = np.eye(len(table))[:, 1:]
    logits = np.log((table[:, 0] + 0.5) / (table[:, 1] + 0.5))
    fit = sl.fit_logistic(X, table, method="firth")
    # 1e-7: tol = 1e-8 on each linear predictor, of which two are subtracted.
    np.testing.assert_allclose(fit.coef, np.r_[logits[0], logits[1:] - logits[0]], atol=1e-7)
    np.testing.assert_allclose(fit.posterior(X)[:, 0], (table[:, 0] + 0.5) / (table.sum(axis=1) + 1), atol=1e-8)
    # The log-likelihood reported is that of the data, without penalty and without the added halves.
    expected = (table * np.log((table + 0.5) / (table.sum(axis=1, keepdims=True) + 1))).sum()
    assert fit.log_likelihood == pytest.approx(expected, abs=1e-7)


def test_covariance_is_that_of_the_data_at_the_estimate():
    X, counts = logistic_data(1, n=40, labels=False)
    fit = sl.fit_logistic(X, counts, method="firth")
    x, _ = as_arrays(X, counts)
    m, tau = counts.sum(axis=1), expit(x @ fit.coef)
    np.testing.assert_allclose(fit.cov("model"), np.linalg.inv((x.T * (m * tau * (1 - tau))) @ x), rtol=1e-9)


def test_too_few_steps_of_firth():
    """Ten times max_iter is allowed; a tolerance below rounding is never met."""
    X, y = logistic_data(6, n=25)
    with pytest.warns(sl.ConvergenceWarning, match="no convergence after 10 steps"):
        fit = sl.fit_logistic(X, y, method="firth", max_iter=1, tol=1e-300)
    assert not fit.converged and "NOT converged" in repr(fit)


def test_tol_of_firth_bounds_the_error_of_the_linear_predictor():
    """As documented: the error left, and not the last step, which is smaller where the iteration converges slowly."""
    for X, votes in SEPARATED:
        beta = climb(X, votes)[0]
        for tol in (1e-2, 1e-4, 1e-6):
            fit = sl.fit_logistic(X, votes, method="firth", tol=tol)
            assert np.abs((fit.coef[0] + X @ fit.coef[1:]) - (beta[0] + X @ beta[1:])).max() <= tol


# ------------------------------------------------------------------ cores, blocks and the ends of the float range


def threads_of_algebra():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_threads_that_fit_at_the_same_time_leave_linear_algebra_as_it_was():
    X, y = logistic_data(3, n=200_000, p=3)
    with threadpool_limits(2, user_api="blas"):
        before = threads_of_algebra()
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(lambda _: sl.fit_logistic(X, y), range(6)))
        assert threads_of_algebra() == before
        with pytest.raises(ValueError, match="constant"):
            sl.fit_logistic(np.c_[X, np.ones(len(X))], y)
        assert threads_of_algebra() == before


def test_no_digit_depends_on_the_threads_of_linear_algebra():
    X, y = logistic_data(4, n=6000, p=12)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            fit, batch = sl.fit_logistic(X, y), sl.fit_logistic_batch(X[None], y[None])
            found.append((fit.coef.tobytes(), fit.cov().tobytes(), batch.coef.tobytes()))
    assert found[0] == found[1]


def test_values_too_large_to_be_added_up_are_named_with_their_data_set():
    X, y = np.random.default_rng(0).normal(size=(200, 1000, 1)), np.tile([0, 1], (200, 500))
    X[150, :, 0] = 1.7e308
    with pytest.raises(ValueError, match="data set 150: X column 0 has values too large"):
        sl.fit_logistic_batch(X, y)
    for far in (np.tile([1e303, 2e303], 150_000), np.repeat([1e304, -1e304], 150_000)):  # in the sum over the blocks only
        with pytest.raises(ValueError, match="X column 0 has values too large"):
            sl.fit_logistic(far[:, None], np.arange(300_000) % 3 == 0)


def test_the_deviance_is_finite_where_a_vote_is_lost_in_the_number_of_all():
    counts = np.array([[2.0**53, 1], [1, 2.0**53], [2.0**52, 2.0**52], [3, 5]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl.ConvergenceWarning)
        assert np.isfinite(sl.fit_logistic([[1.0], [-1.0], [0.1], [0.3]], counts).deviance)
