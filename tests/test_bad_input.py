"""Bad input gets a ValueError that names the argument, the place, and what would be valid."""

import re

import numpy as np
import pytest

from softlabel import (TwoClassNormal, dm_logpmf, estimate_alpha0, find_separation, fit_logistic, fit_logistic_batch,
                       godambe_information, relative_efficiency, sample_probabilities, sample_votes,
                       simulate_relative_efficiency, variance_inflation)

nan, inf = np.nan, np.inf
X = np.array([[0.0, 1], [1, 0], [2, 5], [3, 1], [4, -1], [2, 2]])
Y = np.array([0, 1, 0, 1, 0, 1])
C = np.array([[1, 2], [2, 2], [0, 3], [3, 0], [1, 1], [0, 0]])
TAU = np.array([[0.5, 0.5], [0.2, 0.8], [1.0, 0.0]])
VOTES = np.array([[3, 1], [0, 2], [4, 0]])


def put(array, at, value):
    changed = np.array(array, dtype=float)
    changed[at] = value
    return changed


def rejects(function, *patterns):
    with pytest.raises(ValueError) as caught:
        function()
    for pattern in patterns:
        assert re.search(pattern, str(caught.value)), f"{caught.value} does not match {pattern}"


FITS = {
    "fit_logistic": (fit_logistic, ""),
    "find_separation": (find_separation, ""),
    "fit_logistic_batch": (lambda x, y: fit_logistic_batch([X, x], [C if np.ndim(y) == 2 else Y, y]), "1, "),
}


@pytest.mark.parametrize("fit, batch", FITS.values(), ids=FITS)
@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_fits_reject_values_that_are_not_finite(fit, batch, bad):
    rejects(lambda: fit(put(X, (2, 1), bad), Y), rf"X\[{batch}2, 1\] is {bad}", "finite")
    rejects(lambda: fit(X, put(Y, 3, bad)), rf"y(_or_counts)?\[{batch}3\] is {bad}", "finite")
    rejects(lambda: fit(X, put(C, (1, 1), bad)), rf"counts\[{batch}1, 1\] is {bad}", "finite")


@pytest.mark.parametrize("fit, batch", FITS.values(), ids=FITS)
@pytest.mark.parametrize("bad", [2, -1, 0.5, 1e-9])
def test_fits_reject_labels_other_than_0_and_1(fit, batch, bad):
    rejects(lambda: fit(X, put(Y, 3, bad)), rf"y\[{batch}3\] is {bad}", "0 or 1")


@pytest.mark.parametrize("fit, batch", FITS.values(), ids=FITS)
@pytest.mark.parametrize("bad", [-1, 2.5])
def test_fits_reject_counts_that_are_not_counts(fit, batch, bad):
    rejects(lambda: fit(X, put(C, (1, 0), bad)), rf"counts\[{batch}1, 0\] is {bad}", "whole numbers")


@pytest.mark.parametrize("fit, batch", FITS.values(), ids=FITS)
def test_fits_reject_wrong_shapes(fit, batch):
    stack = (lambda a: np.array([a, a])) if batch else np.array
    fit = fit_logistic_batch if batch else fit
    rejects(lambda: fit(stack(X), stack(Y[:5])), "y_or_counts", "X")
    rejects(lambda: fit(stack(X), stack(C[:5])), "y_or_counts|counts", "X")
    rejects(lambda: fit(stack(X), stack(np.ones((6, 3)))), "counts", "2 columns", "got 3")
    rejects(lambda: fit(stack(X), stack(np.ones((6, 1)))), "counts", "got 1")
    rejects(lambda: fit(stack(X[:, 0]), stack(Y)), "X")
    rejects(lambda: fit(stack(X)[None], stack(Y)), "X")


@pytest.mark.parametrize("fit", [fit_logistic, find_separation])
def test_fits_reject_nothing(fit):
    rejects(lambda: fit(np.zeros((0, 2)), []), "X", r"\(0, 2\)")
    rejects(lambda: fit(np.zeros((6, 0)), Y), "X", r"\(6, 0\)")
    rejects(lambda: fit([], []), "X")


def test_batch_rejects_nothing_and_too_few_dimensions():
    rejects(lambda: fit_logistic_batch(np.zeros((0, 5, 2)), np.zeros((0, 5))), "X", r"\(0, 5, 2\)")
    rejects(lambda: fit_logistic_batch(X, Y), "X", "3-dimensional")
    rejects(lambda: fit_logistic_batch([X, X], [Y]), "y_or_counts")


@pytest.mark.parametrize("columns, patterns", [
    (np.column_stack([X[:, 0], np.full(6, 3.0)]), ["column 1", "x2", "constant"]),
    (np.column_stack([np.full(6, 1e9), X[:, 0]]), ["column 0", "x1", "constant"]),
    (X[:, [0, 0]], ["column 1", "x2", "x1", "same"]),
    (np.column_stack([X, X[:, 0] + 2 * X[:, 1] - 7]), ["column 2", "x3", "x1", "x2"]),
    (np.column_stack([X[:, 0], 1e-100 * X[:, 0]]), ["column 1", "x2", "x1"]),
    (np.column_stack([X[:, 0], 1e9 + X[:, 0]]), ["column 1", "x2", "x1"]),
])
def test_fits_reject_columns_without_information(columns, patterns):
    for votes in (Y, C):
        rejects(lambda: fit_logistic(columns, votes), "X", *patterns)
        good = np.random.default_rng(0).normal(size=columns.shape)
        rejects(lambda: fit_logistic_batch([good, columns], [votes, votes]), "data set 1", "X", *patterns)


def test_a_column_that_varies_only_where_there_are_no_votes_is_constant():
    column = np.array([1.0, 1, 1, 1, 1, 5])  # the last item has no votes
    rejects(lambda: fit_logistic(np.column_stack([X[:, 0], column]), C), "column 1", "constant")


def test_fits_reject_no_votes_and_too_few_items():
    rejects(lambda: fit_logistic(X, np.zeros((6, 2))), "counts", "no votes")
    rejects(lambda: fit_logistic_batch([X, X], [C, np.zeros((6, 2))]), "data set 1", "no votes")
    rejects(lambda: fit_logistic(np.random.default_rng(0).normal(size=(3, 5)), [0, 1, 0]), "X", "5 columns", "3 items")


@pytest.mark.parametrize("bad", [0, -1, 1.5, nan])
def test_fits_reject_max_iter(bad):
    rejects(lambda: fit_logistic(X, Y, max_iter=bad), "max_iter", "at least 1")
    rejects(lambda: fit_logistic_batch([X], [Y], max_iter=bad), "max_iter", "at least 1")


@pytest.mark.parametrize("bad", [0, -1e-8, nan])
def test_fits_reject_tol(bad):
    rejects(lambda: fit_logistic(X, Y, tol=bad), "tol", "positive")
    rejects(lambda: fit_logistic_batch([X], [Y], tol=bad), "tol", "positive")


def test_fits_reject_unknown_choices():
    rejects(lambda: fit_logistic(X, Y, method="ml"), "method", "'ml'", "mle")
    fit = fit_logistic(X, Y)
    for method in (fit.cov, fit.stderr, fit.summary):
        rejects(lambda: method(kind="HC0"), "kind", "HC0", "sandwich", "model")
    for level in (0, 1, 95, nan):
        rejects(lambda: fit.summary(level=level), "level")


def test_batch_rejects_start():
    rejects(lambda: fit_logistic_batch([X, X], [Y, Y], start=[1, 2]), "start", r"\(2,\)")
    rejects(lambda: fit_logistic_batch([X, X], [Y, Y], start=np.zeros((3, 3))), "start", r"\(3, 3\)")
    rejects(lambda: fit_logistic_batch([X, X], [Y, Y], start=[1, nan, 0]), r"start\[1\]", "nan")


def test_posterior_and_predict_reject_other_features():
    fit = fit_logistic(X, Y)
    for method in (fit.posterior, fit.predict):
        rejects(lambda: method(np.ones((4, 3))), "X", "3 columns")
        rejects(lambda: method([1.0, 2.0]), "X", "2-dimensional")
        rejects(lambda: method([[1.0, 2.0], [nan, 1.0]]), r"X\[1, 0\]", "nan")


# ------------------------------------------------------------------ votes, tau, alpha0, m

WITH_TAU = {
    "dm_logpmf": lambda tau: dm_logpmf(VOTES, tau, 1.0),
    "sample_votes": lambda tau: sample_votes(tau, 3, 1.0, rng=0),
    "sample_probabilities": lambda tau: sample_probabilities(tau, 1.0, rng=0),
    "estimate_alpha0": lambda tau: estimate_alpha0(VOTES, tau),
}
WITH_COUNTS = {"dm_logpmf": lambda c: dm_logpmf(c, TAU, 1.0), "estimate_alpha0": lambda c: estimate_alpha0(c, TAU)}
WITH_ALPHA0 = {
    "dm_logpmf": lambda a: dm_logpmf(VOTES, TAU, a),
    "sample_votes": lambda a: sample_votes(TAU, 3, a, rng=0),
    "sample_probabilities": lambda a: sample_probabilities(TAU, a, rng=0),
    "variance_inflation": lambda a: variance_inflation(3, a),
    "relative_efficiency": lambda a: relative_efficiency(3, a),
    "godambe_information": lambda a: godambe_information(np.eye(2), 3, a),
    "simulate": lambda a: simulate_relative_efficiency([1], [5], [a], n=50, n_sims=10, rng=0),
}
WITH_M = {
    "sample_votes": lambda m: sample_votes(TAU, m, 1.0, rng=0),
    "variance_inflation": lambda m: variance_inflation(m, 1.0),
    "relative_efficiency": lambda m: relative_efficiency(m, 1.0),
    "godambe_information": lambda m: godambe_information(np.eye(2), m, 1.0),
    "simulate": lambda m: simulate_relative_efficiency([1], [m], [1], n=50, n_sims=10, rng=0),
}


@pytest.mark.parametrize("function", WITH_TAU.values(), ids=WITH_TAU)
def test_tau_must_be_distributions(function):
    rejects(lambda: function(put(TAU, (1, 0), nan)), r"tau\[1, 0\]", "nan")
    rejects(lambda: function(put(TAU, (1, 0), inf)), r"tau\[1, 0\]", "inf")
    rejects(lambda: function(put(TAU, 1, [1.2, -0.2])), r"tau\[1, 0\] is 1.2", "between 0 and 1")
    rejects(lambda: function(put(TAU, 1, [-0.2, 1.2])), r"tau\[1, 0\] is -0.2", "between 0 and 1")
    rejects(lambda: function(put(TAU, 1, [0.2, 0.7])), r"tau\[1\] sums to 0.9", "sum to 1")
    rejects(lambda: function(np.zeros((0, 2))), "tau|counts", r"\(0, 2\)")
    rejects(lambda: function(TAU[:, :1]), "tau")
    rejects(lambda: function(TAU[:, 0]), "tau")


@pytest.mark.parametrize("function", WITH_COUNTS.values(), ids=WITH_COUNTS)
def test_counts_must_be_counts(function):
    for bad in (-1, 1.5, nan, inf):
        rejects(lambda: function(put(VOTES, (1, 0), bad)), rf"counts\[1, 0\] is {bad}")
    rejects(lambda: function(VOTES[:2]), "counts", "tau", r"\(2, 2\)", r"\(3, 2\)")
    rejects(lambda: function(np.ones((3, 3))), "counts", "tau", r"\(3, 3\)", r"\(3, 2\)")
    rejects(lambda: function(np.zeros((0, 2))), "counts", r"\(0, 2\)")
    rejects(lambda: function([3, 1]), "counts")


@pytest.mark.parametrize("function", WITH_ALPHA0.values(), ids=WITH_ALPHA0)
@pytest.mark.parametrize("bad", [0, 0.0, -1, -inf, nan])
def test_alpha0_must_be_positive(function, bad):
    rejects(lambda: function(bad), "alpha0 must be positive", f"got {bad:g}")


@pytest.mark.parametrize("function", WITH_M.values(), ids=WITH_M)
@pytest.mark.parametrize("bad", [0, 0.5, -3, nan, -inf])
def test_m_must_be_at_least_one(function, bad):
    rejects(lambda: function(bad), "m, the number of labellers", "at least 1", f"got {bad:g}")


def test_draws_need_whole_and_finite_m():
    for bad in (1.5, inf):
        rejects(lambda: sample_votes(TAU, bad, 1.0), "m, the number", "whole", f"got {bad:g}")
        rejects(lambda: simulate_relative_efficiency([1], [bad], [1]), "m, the number", "whole", f"got {bad:g}")


def test_arrays_of_parameters_name_the_place():
    rejects(lambda: sample_votes(TAU, [3, 0, 2], 1.0), "m, ", r"got 0 at \[1\]")
    rejects(lambda: sample_votes(TAU, [3, 2], 1.0), "m has shape", r"\(2,\)", r"\(3,\)")
    rejects(lambda: relative_efficiency([3, 4], [1, nan]), "alpha0", r"nan at \[1\]")
    rejects(lambda: variance_inflation([[3, 0.2]], 1), "m, ", r"0.2 at \[0, 1\]")
    rejects(lambda: simulate_relative_efficiency([1], [5], [1, -2]), "alpha0", r"-2 at \[1\]")
    rejects(lambda: simulate_relative_efficiency([1], [5, 0], [1]), "m, ", r"0 at \[1\]")
    rejects(lambda: dm_logpmf(VOTES, TAU, [1.0, 2.0]), "alpha0 must be a single number", r"\(2,\)")
    rejects(lambda: dm_logpmf(VOTES, TAU, "one"), "alpha0 must be a number", "'one'")
    for function in (relative_efficiency, variance_inflation):
        rejects(lambda: function([1, 2], [1, 2, 3]), r"\bm\b", "alpha0", r"\(2,\)", r"\(3,\)")


def test_estimate_alpha0_rejects_votes_that_cannot_be():
    rejects(lambda: estimate_alpha0([[3, 1]], [[1.0, 0.0]]), r"counts\[0, 1\] is 1", "tau is 0")


# ------------------------------------------------------------------ the normal model and the study


def test_two_class_normal_rejects():
    eye = np.eye(2)
    rejects(lambda: TwoClassNormal([1, 0], [0], eye), "mean1", "mean2", r"\(2,\)", r"\(1,\)")
    rejects(lambda: TwoClassNormal([1, 0], [0, 0], np.eye(3)), "cov", r"\(3, 3\)")
    rejects(lambda: TwoClassNormal([1, 0], [1, 0], eye), "mean1 and mean2 are equal")
    rejects(lambda: TwoClassNormal([1, 0], [0, 0], [[1, 0.5], [0.2, 1]]), "cov must be symmetric")
    rejects(lambda: TwoClassNormal([1, 0], [0, 0], [[1, 2], [2, 1]]), "cov must be positive definite")
    rejects(lambda: TwoClassNormal([1, 0], [0, 0], [[1, 1], [1, 1]]), "cov must be positive definite")
    rejects(lambda: TwoClassNormal([1, nan], [0, 0], eye), r"mean1\[1\] is nan")
    rejects(lambda: TwoClassNormal([1, 0], [inf, 0], eye), r"mean2\[0\] is inf")
    rejects(lambda: TwoClassNormal([1, 0], [0, 0], [[1, nan], [nan, 1]]), r"cov\[0, 1\] is nan")
    for prior in (0, 1, -0.1, 2, nan):
        rejects(lambda: TwoClassNormal([1, 0], [0, 0], eye, prior), "prior1", f"{prior:g}")
    for delta in (0, -1, nan, inf):
        rejects(lambda: TwoClassNormal.canonical(delta), r"delta(?!\[\])", f"{delta:g}")
    for p in (0, 1.5, -1):
        rejects(lambda: TwoClassNormal.canonical(1, p=p), r"\bp\b", "at least 1", f"{p:g}")


def test_methods_of_two_class_normal_reject():
    model = TwoClassNormal.canonical(1.0)
    for n in (0, -1, 1.5):
        rejects(lambda: model.sample(n), r"\bn\b", "at least 1", f"{n:g}")
    for size in (-1, 1.5):
        rejects(lambda: model.sample(3, size=size), "size")
    rejects(lambda: model.error_rate([1, 2]), "coef", "3 entries", r"\(2,\)")
    rejects(lambda: model.error_rate([[1, 2, 0], [1, nan, 0]]), "coef", r"\[1, 1\]")
    rejects(lambda: model.posterior([[1, 2, 3]]), "Y", "3 features")
    rejects(lambda: model.posterior([[1, 0], [nan, 0]]), r"Y\[1, 0\] is nan")


def test_godambe_information_rejects():
    rejects(lambda: godambe_information([[1, 2], [3, 4]], 3, 1), "fisher", "symmetric")
    rejects(lambda: godambe_information(np.ones((2, 3)), 3, 1), "fisher", r"\(2, 3\)")
    rejects(lambda: godambe_information([1, 2], 3, 1), "fisher", r"\(2,\)")
    rejects(lambda: godambe_information([[1, nan], [nan, 1]], 3, 1), r"fisher\[0, 1\] is nan")


@pytest.mark.parametrize("changed, patterns", [
    ({"deltas": [1, 0]}, ["delta", "0"]),
    ({"deltas": [1, nan]}, [r"deltas\[1\] is nan"]),
    ({"deltas": []}, ["deltas", r"\(0,\)"]),
    ({"ms": []}, [r"\bms?\b"]),
    ({"alphas": []}, ["alpha"]),
    ({"n": 0}, [r"\bn\b", "at least 1"]),
    ({"n": 2.5}, [r"\bn\b", "whole"]),
    ({"p": 0}, [r"\bp\b", "at least 1"]),
    ({"n_sims": 0}, ["n_sims", "at least 2"]),
    ({"n_sims": 1}, ["n_sims", "at least 2"]),
    ({"n_sims": 10.5}, ["n_sims", "whole"]),
    ({"n_jobs": 0}, ["n_jobs"]),
])
def test_simulation_rejects(changed, patterns):
    good = dict(deltas=[1], ms=[5], alphas=[1], n=50, p=2, n_sims=10, rng=0)
    rejects(lambda: simulate_relative_efficiency(**(good | changed)), *patterns)
