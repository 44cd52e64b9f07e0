"""Separated labels: found by find_separation, flagged by the fits, and never a silent success."""

import warnings
from collections import Counter

import numpy as np
import pytest
from scipy.special import expit

from softlabel import ConvergenceWarning, SeparationWarning, find_separation, fit_logistic, fit_logistic_batch, separation

LINE = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]
SQUARE = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
CASES = [
    # features, labels or counts, what a reader sees from a drawing of them
    (LINE, [0, 0, 0, 1, 1, 1], "complete"),
    (LINE, [1, 1, 1, 1, 0, 0], "complete"),
    (LINE, [0, 0, 1, 0, 1, 1], "none"),
    ([[1.0], [2.0], [3.0], [3.0], [4.0], [5.0]], [0, 0, 0, 1, 1, 1], "quasi"),
    ([[0.0], [0.0], [1.0], [1.0]], [0, 0, 0, 1], "quasi"),  # an empty cell of a 2 x 2 table
    (SQUARE, [0, 1, 1, 1], "complete"),
    (SQUARE, [0, 1, 1, 0], "none"),
    ([*SQUARE, [0.5, 0.5], [0.5, 0.5]], [0, 0, 1, 1, 0, 1], "quasi"),
    (LINE, [1] * 6, "complete"),  # one class only: the intercept alone separates
    (LINE, [0] * 6, "complete"),
    (LINE, [[7, 0], [3, 0], [1, 0], [0, 2], [0, 9], [0, 1]], "complete"),
    (LINE, [[7, 0], [3, 0], [1, 1], [0, 2], [0, 9], [0, 1]], "quasi"),  # one item with votes for both
    (LINE, [[7, 0], [3, 0], [1, 1], [1, 1], [0, 9], [0, 1]], "none"),  # two of them, apart
    (LINE, [[7, 0], [3, 0], [0, 0], [0, 2], [0, 9], [0, 1]], "complete"),  # no votes: no obstacle
    (LINE, [[1, 6], [2, 5], [3, 4], [4, 3], [5, 2], [6, 1]], "none"),
    (LINE, [[1, 1], [2, 5], [3, 4], [4, 3], [5, 2], [6, 1]], "none"),
]
SEPARATED = [case for case in CASES if case[2] != "none"]


@pytest.mark.parametrize("X, votes, kind", CASES)
def test_find_separation(X, votes, kind):
    assert find_separation(X, votes) == kind


@pytest.mark.parametrize("X, votes, kind", CASES)
@pytest.mark.parametrize("scale, shift", [(1e-100, 0), (1e100, 0), (1, 2.0**30)])
def test_find_separation_does_not_depend_on_units(X, votes, kind, scale, shift):
    # A power of two, so that the shifted features are exact.
    assert find_separation(np.array(X) * scale + shift, votes) == kind


@pytest.mark.parametrize("X, votes, kind", CASES)
def test_find_separation_of_swapped_classes(X, votes, kind):
    votes = np.array(votes)
    swapped = 1 - votes if votes.ndim == 1 else votes[:, ::-1]
    assert find_separation(X, swapped) == kind


@pytest.mark.parametrize("X, votes, kind", SEPARATED)
@pytest.mark.parametrize("max_iter", [5, 25, 100, 2000])
def test_separated_labels_give_a_flagged_fit_and_a_warning(X, votes, kind, max_iter):
    with pytest.warns(SeparationWarning, match=f"{kind} separation"):
        fit = fit_logistic(X, votes, max_iter=max_iter)
    assert fit.separation == kind and not fit.converged
    assert np.isfinite(fit.coef).all() and np.isfinite(fit.log_likelihood)
    # A silent success would show here: what a person reads must say it.
    assert kind in repr(fit) and "NOT converged" in repr(fit)


@pytest.mark.parametrize("X, votes, kind", SEPARATED)
def test_methods_of_a_separated_fit_do_not_raise(X, votes, kind):
    with pytest.warns(SeparationWarning):
        fit = fit_logistic(X, votes)
    assert np.isfinite(fit.posterior(X)).all()
    fit.predict(X)
    for kind in ("model", "sandwich"):
        assert fit.cov(kind=kind).shape == (len(fit.coef),) * 2
    fit.summary()


def test_complete_separation_predicts_every_label():
    with pytest.warns(SeparationWarning):
        fit = fit_logistic(LINE, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(fit.predict(LINE), [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("X, votes, kind", [case for case in CASES if case[2] == "none"])
def test_overlapping_labels_fit_without_a_warning(X, votes, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = fit_logistic(X, votes)
    assert fit.converged and fit.separation == "none" and "NOT" not in repr(fit)


def test_too_few_steps_are_a_convergence_warning():
    X, y = LINE, [0, 0, 1, 0, 1, 1]
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        fit = fit_logistic(X, y, max_iter=1)
    assert not fit.converged and fit.separation == "none" and fit.n_iter == 1
    with pytest.warns(ConvergenceWarning):
        batch = fit_logistic_batch([X], [y], max_iter=1)
    assert not batch.converged[0] and batch.n_iter[0] == 1


def test_the_two_warnings_are_user_warnings_and_not_each_other():
    assert issubclass(SeparationWarning, UserWarning) and issubclass(ConvergenceWarning, UserWarning)
    assert not issubclass(SeparationWarning, ConvergenceWarning)
    assert not issubclass(ConvergenceWarning, SeparationWarning)


@pytest.mark.parametrize("function", [fit_logistic, find_separation])
def test_the_warning_points_at_the_caller(function):
    if function is find_separation:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert function(LINE, [0, 0, 0, 1, 1, 1]) == "complete"  # asked for: no warning
        return
    with pytest.warns(SeparationWarning) as caught:
        function(LINE, [0, 0, 0, 1, 1, 1])
    assert caught[0].filename == __file__


@pytest.mark.parametrize("max_iter", [25, 2000])
def test_separated_data_sets_of_a_batch_are_flagged_and_leave_the_others_alone(max_iter):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 40, 2))
    y = (rng.random((30, 40)) < 1 / (1 + np.exp(-X[..., 0]))).astype(int)
    clean = fit_logistic_batch(X, y, max_iter=max_iter)
    assert clean.converged.all()
    separated = [0, 7, 8, 29]
    mixed = y.copy()
    mixed[separated] = X[separated, :, 1] > 0.1
    with pytest.warns(ConvergenceWarning, match="4 of 30"):
        batch = fit_logistic_batch(X, mixed, max_iter=max_iter)
    np.testing.assert_array_equal(np.flatnonzero(~batch.converged), separated)
    others = batch.converged
    # Dropping data sets from the iteration must not reach the others: rounding of the products only.
    np.testing.assert_allclose(batch.coef[others], clean.coef[others], rtol=1e-12, atol=1e-13)
    assert np.isfinite(batch.coef).all()
    assert f"{26} converged" in repr(batch)


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_brute_force_in_one_dimension(seed):
    """With one feature the classes are apart if their ranges are; whole numbers make ties frequent."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 6, 6), rng.integers(0, 2, 6)
    x[0], x[1] = 0, 5
    a, b = x[y == 1], x[y == 0]
    if not len(a) or not len(b) or a.min() > b.max() or b.min() > a.max():
        kind = "complete"
    elif a.min() >= b.max() or b.min() >= a.max():
        kind = "quasi"
    else:
        kind = "none"
    assert find_separation(x[:, None].astype(float), y) == kind


def test_what_is_proved_without_a_programme_is_what_the_programme_finds():
    """Small data sets with ties, repeated items, items without votes, and features that are combinations of others."""
    rng = np.random.default_rng(11)
    found = Counter()
    for kind in range(1500):
        n, p = rng.integers(3, 30), rng.integers(1, 5)
        X = rng.integers(0, 3, (n, p)).astype(float) if kind % 2 else rng.normal(size=(n, p))
        if kind % 5 == 0:
            X[:, -1] = X[:, 0]
        m = rng.integers(kind % 3 > 0, 4, n)  # a third has items without votes
        s = rng.binomial(m, expit(np.clip(X @ rng.normal(size=p) * 3.0 ** rng.integers(-2, 4), -700, 700)))
        x, counts = separation._design(X), np.column_stack([s, m - s])
        proved = separation._proved(x, counts)
        if m.any() and proved:
            assert proved == separation._programmed(x, counts), (X, counts)
            found[proved] += 1
    assert min(found["none"], found["quasi"], found["complete"]) > 150
