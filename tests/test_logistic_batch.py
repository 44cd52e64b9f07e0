"""The Newton core: thousands of fits at once, hard starts, badly shifted and scaled features."""

import numpy as np
import pytest
from reference import logistic_data

from softlabel import fit_logistic, fit_logistic_batch

EXACT = {"tol": 1e-14}  # leaves rounding only
LOPSIDED = (np.array([[-1.0], [0.0], [1.0], [2.0], [30.0]]), np.array([[1, 60], [1, 50], [2, 40], [9, 9], [12, 1]]))


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
@pytest.mark.parametrize("seed", [0, 11, 12])
def test_equals_the_single_fit(counts, seed):
    X, votes = batch_data(40, 50, p=3, seed=seed, counts=counts)
    batch = fit_logistic_batch(X, votes, **EXACT)
    assert batch.coef.shape == (40, 4) and batch.converged.shape == batch.n_iter.shape == (40,)
    for r in range(40):
        fit = fit_logistic(X[r], votes[r], **EXACT)
        # Rounding only: the data sets must not mix, and R = 1 takes other BLAS routines.
        np.testing.assert_allclose(batch.coef[r], fit.coef, rtol=1e-10, atol=1e-12)
        assert batch.n_iter[r] == fit.n_iter


@pytest.mark.parametrize("size, n", [(1, 30), (2, 30), (65, 500), (66, 500), (199, 330), (700, 100), (3, 40_000)])
def test_chunks_join_without_a_seam(size, n):
    """Sizes around a chunk of the cache, down to data sets larger than one: each data set as if alone."""
    X, y = batch_data(size, n, seed=size)
    batch = fit_logistic_batch(X, y, **EXACT)
    for r in {0, size // 3, size // 2, size - 1}:
        alone = fit_logistic_batch(X[r : r + 1], y[r : r + 1], **EXACT)
        np.testing.assert_allclose(batch.coef[r], alone.coef[0], rtol=1e-10, atol=1e-12)  # rounding
    # The score is zero at every estimate: no data set is left out or given another's labels.
    eta = batch.coef[:, :1] + np.einsum("rnp,rp->rn", X, batch.coef[:, 1:])
    residual = y - 1 / (1 + np.exp(-eta))
    score = np.einsum("rn,rnp->rp", residual, X)
    assert np.abs(residual.sum(axis=1)).max() < 1e-8 * n and np.abs(score).max() < 1e-8 * n


def test_order_of_data_sets_does_not_matter():
    X, y = batch_data(150, 300)
    order = np.random.default_rng(1).permutation(150)
    one, two = fit_logistic_batch(X, y, **EXACT), fit_logistic_batch(X[order], y[order], **EXACT)
    np.testing.assert_allclose(two.coef, one.coef[order], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", ["shared", "each"])
def test_start_changes_the_path_and_not_the_answer(shape):
    X, y = batch_data(20, 60)
    zero = fit_logistic_batch(X, y, **EXACT)
    rng = np.random.default_rng(2)
    start = rng.normal(size=3 if shape == "shared" else (20, 3), scale=3)
    far = fit_logistic_batch(X, y, start=start, max_iter=100, **EXACT)
    np.testing.assert_allclose(far.coef, zero.coef, rtol=1e-9, atol=1e-11)  # rounding at the maximum
    assert far.converged.all() and (far.n_iter != zero.n_iter).any()


def test_start_at_the_answer_takes_one_step():
    X, y = batch_data(20, 60)
    coef = fit_logistic_batch(X, y, **EXACT).coef
    again = fit_logistic_batch(X, y, start=coef)
    assert (again.n_iter == 1).all()
    np.testing.assert_allclose(again.coef, coef, rtol=1e-9, atol=1e-11)


def undamped_newton(X, counts, beta, steps=50):
    """Textbook Newton; returns the largest |coefficient| it met, infinite if it broke down."""
    x = np.column_stack([np.ones(len(X)), X])
    m, worst = counts.sum(axis=1), 0.0
    for _ in range(steps):
        with np.errstate(all="ignore"):
            tau = 1 / (1 + np.exp(-x @ beta))
            H = (x * (m * tau * (1 - tau))[:, None]).T @ x
            gradient = x.T @ (counts[:, 0] - m * tau)
        if not np.isfinite(H).all() or np.linalg.cond(H) > 1e14:
            return np.inf
        beta = beta + np.linalg.solve(H, gradient)
        worst = max(worst, np.abs(beta).max())
    return worst


@pytest.mark.parametrize("start", [(0, 5), (3, 3), (10, -2), (-30, 1), (0, 40), (-5, -40)])
def test_converges_where_undamped_newton_diverges(start):
    X, counts = LOPSIDED
    assert undamped_newton(X, counts, np.array(start, float)) > 1e3
    reference = fit_logistic(X, counts, max_iter=100, **EXACT)
    batch = fit_logistic_batch(X[None], counts[None], start=start, max_iter=200, **EXACT)
    assert batch.converged[0]
    np.testing.assert_allclose(batch.coef[0], reference.coef, rtol=1e-9)  # rounding
    # And that is the maximum: the score vanishes.
    tau = reference.posterior(X)[:, 0]
    residual = counts[:, 0] - counts.sum(axis=1) * tau
    np.testing.assert_allclose([residual.sum(), residual @ X[:, 0]], 0, atol=1e-9)


@pytest.mark.parametrize("votes", [1, 10_000, 10**6])
def test_lopsided_votes_converge_from_the_default_start(votes):
    """One dissenting vote against very many: the estimate is far out, the log odds of a saturated fit."""
    X = np.array([[0.0], [1.0]])
    fit = fit_logistic(X, [[1, votes], [votes, 1]], max_iter=100, **EXACT)
    # 1e-9: a million votes leave ten digits to the one that dissents.
    np.testing.assert_allclose(fit.coef, [-np.log(votes), 2 * np.log(votes)], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("shift", [0.0, 1e3, 2.0**30, -(2.0**30)])
def test_shifted_features(labels, shift):
    X, votes = logistic_data(8, labels=labels)
    X = np.round(X * 64) / 64  # so that X + 2^30 is exact
    plain, shifted = fit_logistic(X, votes, **EXACT), fit_logistic(X + shift, votes, **EXACT)
    assert shifted.converged
    # 1e-7: a mean near 1e9 is rounded to 1e-7, which moves the centre but not the slopes; the
    # slopes lose digits only in solving.
    np.testing.assert_allclose(shifted.coef[1:], plain.coef[1:], rtol=1e-7)
    np.testing.assert_allclose(shifted.coef[0] + shift * shifted.coef[1:].sum(), plain.coef[0], atol=1e-6)
    np.testing.assert_allclose(shifted.stderr()[1:], plain.stderr()[1:], rtol=1e-6)
    assert shifted.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-7)
    np.testing.assert_allclose(shifted.posterior(X + shift), plain.posterior(X), atol=1e-6)


@pytest.mark.parametrize("scale", [(1e-100, 1e100), (1e100, 1e100), (1e-100, 1e-100), (1e-8, 1e8)])
def test_scaled_features(scale):
    X, votes = logistic_data(9, labels=False)
    plain, scaled = fit_logistic(X, votes, **EXACT), fit_logistic(X * scale, votes, **EXACT)
    factor = np.array([1, *scale])
    assert scaled.converged and scaled.n_iter == plain.n_iter
    np.testing.assert_allclose(scaled.coef * factor, plain.coef, rtol=1e-9)  # rounding
    for kind in ("model", "sandwich"):
        np.testing.assert_allclose(scaled.stderr(kind=kind) * factor, plain.stderr(kind=kind), rtol=1e-8)
    np.testing.assert_allclose(scaled.posterior(X * scale), plain.posterior(X), rtol=1e-9)


def test_shift_and_scale_in_a_batch():
    X, y = batch_data(30, 50)
    X = np.round(X * 64) / 64
    plain = fit_logistic_batch(X, y, **EXACT)
    other = fit_logistic_batch(X * [1e-100, 1] + [0, 2.0**30], y, **EXACT)
    np.testing.assert_allclose(other.coef[:, 1] * 1e-100, plain.coef[:, 1], rtol=1e-7)
    np.testing.assert_allclose(other.coef[:, 2], plain.coef[:, 2], rtol=1e-7)  # as above: digits lost to 1e9


def test_many_features():
    X, y = batch_data(3, 2000, p=40, seed=4)
    batch = fit_logistic_batch(X, y)
    assert batch.converged.all() and batch.coef.shape == (3, 41)
    residual = y - 1 / (1 + np.exp(-(batch.coef[:, :1] + np.einsum("rnp,rp->rn", X, batch.coef[:, 1:]))))
    # tol = 1e-8 in each linear predictor, times weights summing to at most 500 and |x| below 5.
    assert np.abs(np.einsum("rn,rnp->rp", residual, X)).max() < 2.5e-5


def test_does_not_touch_its_input():
    X, y = batch_data(5, 30)
    before = X.copy(), y.copy()
    fit_logistic_batch(X, y, start=[0.1, 0.2, 0.3])
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
