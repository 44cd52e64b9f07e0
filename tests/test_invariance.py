"""Properties that hold for every input: order of items and classes, units, swapped labels, merged votes."""

import warnings

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from softlabel import (dm_logpmf, estimate_alpha0, find_separation, fit_logistic, fit_logistic_batch, relative_efficiency,
                       sample_probabilities, sample_votes, variance_inflation)

QUICK = settings(max_examples=60, deadline=None, derandomize=True)
EXACT = {"tol": 1e-14, "max_iter": 100}
ALPHA0 = st.one_of(st.floats(1e-8, 1e300), st.sampled_from([1.0, 1e-8, 1e300, np.inf]))


@st.composite
def data_sets(draw):
    """Features on a coarse grid, so that ties occur, and votes of which some items have none."""
    n, p = draw(st.integers(8, 25)), draw(st.integers(1, 3))
    X = draw(hnp.arrays(float, (n, p), elements=st.integers(-8, 8).map(lambda k: k / 4)))
    votes = draw(hnp.arrays(int, (n, 2), elements=st.integers(0, 4)))
    return X, votes


@st.composite
def fittable(draw):
    """A data set with a maximum that is not next to infinity."""
    X, votes = draw(data_sets())
    voted = X[votes.sum(axis=1) > 0]
    x = np.column_stack([np.ones(len(voted)), voted])
    assume(len(voted) > x.shape[1] and np.linalg.matrix_rank(x) == x.shape[1] and np.linalg.cond(x) < 100)
    assume(find_separation(X, votes) == "none")
    fit = fit_logistic(X, votes, **EXACT)
    assume(np.abs(fit.coef).max() < 10)
    return X, votes, fit


@st.composite
def vote_tables(draw):
    n, g = draw(st.integers(1, 6)), draw(st.integers(2, 4))
    weights = draw(hnp.arrays(float, (n, g), elements=st.floats(0.01, 1)))
    counts = draw(hnp.arrays(int, (n, g), elements=st.integers(0, 9)))
    return counts, weights / weights.sum(axis=1, keepdims=True)


@QUICK
@given(data_sets())
def test_any_data_set_is_fitted_flagged_or_explained(data):
    """Never an exception other than ValueError, never a number that is not finite, never a silent failure."""
    X, votes = data
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit = fit_logistic(X, votes)
        except ValueError as error:
            assert "X" in str(error) or "votes" in str(error)
            return
    assert all("softlabel" in str(w.category) for w in caught), "a warning of NumPy reached the caller"
    assert fit.converged == (fit.separation == "none") == (not caught)
    assert fit.separation == find_separation(X, votes)
    assert np.isfinite(fit.coef).all() and fit.coef.shape == (X.shape[1] + 1,)
    tau = fit.posterior(X)
    assert tau.shape == (len(X), 2) and np.all((tau >= 0) & (tau <= 1))
    if fit.converged:
        assert np.isfinite(fit.stderr()).all() and fit.deviance >= -1e-9
        # At a maximum the votes and their expectations have the same sum, and the same products with X.
        residual = votes[:, 0] - votes.sum(axis=1) * tau[:, 0]
        assert np.abs(residual.sum()) < 1e-6 and np.abs(residual @ X).max() < 1e-6


@QUICK
@given(fittable(), st.randoms(use_true_random=False))
def test_order_of_items(data, random):
    X, votes, fit = data
    order = list(range(len(X)))
    random.shuffle(order)
    other = fit_logistic(X[order], votes[order], **EXACT)
    np.testing.assert_allclose(other.coef, fit.coef, rtol=1e-8, atol=1e-9)  # rounding, ill conditioned at times
    np.testing.assert_allclose(other.cov(), fit.cov(), rtol=1e-7, atol=1e-9)


@QUICK
@given(fittable(), st.integers(-20, 20), st.integers(-50, 50), st.booleans())
def test_units_of_the_features(data, exponent, shift, negative):
    X, votes, fit = data
    scale = (-1 if negative else 1) * 2.0**exponent  # exact in floating point
    other = fit_logistic((X + shift) * scale, votes, **EXACT)
    np.testing.assert_allclose(other.coef[1:] * scale, fit.coef[1:], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(other.coef[0] + shift * scale * other.coef[1:].sum(), fit.coef[0], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(other.stderr()[1:] * abs(scale), fit.stderr()[1:], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(other.log_likelihood, fit.log_likelihood, rtol=1e-9)


@QUICK
@given(fittable())
def test_swapped_labels(data):
    X, votes, fit = data
    other = fit_logistic(X, votes[:, ::-1], **EXACT)
    np.testing.assert_allclose(other.coef, -fit.coef, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(other.posterior(X), fit.posterior(X)[:, ::-1], rtol=1e-7)
    np.testing.assert_allclose(other.cov(), fit.cov(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose([other.deviance, other.dispersion], [fit.deviance, fit.dispersion], rtol=1e-7, atol=1e-9)


@QUICK
@given(fittable())
def test_counts_are_repeated_labels(data):
    X, votes, fit = data
    rows = np.repeat(np.arange(len(X)), votes.sum(axis=1))
    labels = np.concatenate([[1] * s + [0] * f for s, f in votes]).astype(int)
    other = fit_logistic(X[rows], labels, **EXACT)
    np.testing.assert_allclose(other.coef, fit.coef, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(other.log_likelihood, fit.log_likelihood, rtol=1e-10)
    np.testing.assert_allclose(other.cov(kind="model"), fit.cov(kind="model"), rtol=1e-7, atol=1e-9)
    # The sandwich is not the same: it asks which votes belong to one item.


@QUICK
@given(fittable(), st.integers(2, 5))
def test_every_vote_k_times(data, k):
    X, votes, fit = data
    other = fit_logistic(X, k * votes, **EXACT)
    np.testing.assert_allclose(other.coef, fit.coef, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(other.cov(kind="model") * k, fit.cov(kind="model"), rtol=1e-7, atol=1e-9)
    # Copies of a vote add nothing: the sandwich knows.
    np.testing.assert_allclose(other.cov(kind="sandwich"), fit.cov(kind="sandwich"), rtol=1e-7, atol=1e-9)


@QUICK
@given(st.lists(fittable(), min_size=2, max_size=2))
def test_a_batch_is_its_members(pair):
    n, p = (min(d[0].shape[k] for d in pair) for k in (0, 1))
    X, votes = np.stack([d[0][:n, :p] for d in pair]), np.stack([d[1][:n] for d in pair])
    alone = []
    for x, v in zip(X, votes):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                alone.append(fit_logistic(x, v, **EXACT).coef)
        except (ValueError, UserWarning):
            assume(False)
    np.testing.assert_allclose(fit_logistic_batch(X, votes, **EXACT).coef, alone, rtol=1e-8, atol=1e-9)


@QUICK
@given(vote_tables(), ALPHA0, st.randoms(use_true_random=False))
def test_logpmf_of_permuted_classes_and_items(data, alpha0, random):
    counts, tau = data
    value = dm_logpmf(counts, tau, alpha0)
    assert value.shape == (len(counts),) and np.all(value <= 1e-12) and np.isfinite(value).all()
    items, classes = list(range(counts.shape[0])), list(range(counts.shape[1]))
    random.shuffle(items)
    random.shuffle(classes)
    other = dm_logpmf(counts[items][:, classes], tau[items][:, classes], alpha0)
    np.testing.assert_allclose(other, value[items], rtol=1e-12, atol=1e-12)


@QUICK
@given(vote_tables(), ALPHA0)
def test_logpmf_of_merged_classes_is_larger(data, alpha0):
    """Two classes called one: the Dirichlet-multinomial with their probabilities added (aggregation)."""
    counts, tau = data
    assume(counts.shape[1] > 2)
    def merge(a):
        return np.column_stack([a[:, 0] + a[:, 1], a[:, 2:]])
    total = np.full(len(counts), -np.inf)
    pair = counts[:, 0] + counts[:, 1]
    for first in range(pair.max() + 1):
        possible = first <= pair
        each = counts.copy()
        each[:, 0], each[:, 1] = first, pair - first
        total[possible] = np.logaddexp(total[possible], dm_logpmf(each[possible], tau[possible], alpha0))
    np.testing.assert_allclose(dm_logpmf(merge(counts), merge(tau), alpha0), total, rtol=1e-11, atol=1e-11)


@QUICK
@given(vote_tables(), ALPHA0, st.integers(1, 20), st.integers(0, 2**31))
def test_draws_have_their_shape_and_sums(data, alpha0, m, seed):
    _, tau = data
    votes, p = sample_votes(tau, m, alpha0, rng=seed), sample_probabilities(tau, alpha0, rng=seed)
    assert votes.shape == p.shape == tau.shape
    assert np.all(votes >= 0) and np.all(votes.sum(axis=1) == m)
    assert np.all(p >= 0) and np.all(np.abs(p.sum(axis=1) - 1) < 1e-12)


@QUICK
@given(vote_tables())
def test_alpha0_is_a_maximum_or_an_explained_error(data):
    counts, tau = data
    if counts.sum(axis=1).max() < 2:
        return
    fit = estimate_alpha0(counts, tau)
    others = [dm_logpmf(counts, tau, a).sum() for a in [*np.logspace(-8, 10, 73), np.inf]]
    assert fit.log_likelihood >= max(others) - 1e-9 and fit.alpha0 >= 0  # rounding of the sums


@QUICK
@given(st.floats(1, 1e6), ALPHA0)
def test_efficiency_is_bounded(m, alpha0):
    re, inflation = relative_efficiency(m, alpha0), variance_inflation(m, alpha0)
    assert 1 <= re <= min(m, 1 + alpha0) * (1 + 1e-12) and 1 <= inflation <= m
    assert abs(re * inflation / m - 1) < 1e-12
