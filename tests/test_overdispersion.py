"""estimate_alpha0: the maximum of the likelihood, with both ends of the range as values."""

import mpmath
import numpy as np
import pandas as pd
import pytest
from reference import R_ALPHA0, exact_logpmf, gastro
from scipy import stats

from softlabel import dm_logpmf, estimate_alpha0, fit_logistic, sample_votes

GRID = np.logspace(-6, 8, 141)


def votes_like_a_survey(seed, alpha0, n=60, m=7, g=2):
    rng = np.random.default_rng(seed)
    tau = rng.dirichlet(np.full(g, 0.8), size=n)
    return sample_votes(tau, m, alpha0, rng=rng), tau


def exact_root(counts, tau, start):
    """Root of the derivative of the log-likelihood in log alpha0, by mpmath."""
    with mpmath.workdps(30):
        def score(log_alpha0):
            a = mpmath.exp(log_alpha0)
            total = mpmath.mpf(0)
            for s, t in zip(counts, tau):
                total -= sum(1 / (a + k) for k in range(int(sum(s))))
                for s_i, t_i in zip(s, t):
                    t_i = mpmath.mpf(float(t_i))
                    total += sum(t_i / (a * t_i + k) for k in range(int(s_i)))
            return total
        return float(mpmath.exp(mpmath.findroot(score, mpmath.log(start))))


@pytest.mark.parametrize("labels, alpha0, printed", [("truth", 5.4739326, 5.47), ("votes", 5.1678575, 5.17)])
def test_gastroenterology(labels, alpha0, printed):
    X, counts, y = gastro()
    tau = fit_logistic(X, y if labels == "truth" else counts, tol=1e-14).posterior(X)
    fit = estimate_alpha0(counts, tau)
    # 5e-8: the exact root of the score, by mpmath, is quoted to seven decimals.
    assert fit.alpha0 == pytest.approx(alpha0, abs=5.1e-8)
    assert fit.alpha0 == pytest.approx(exact_root(np.asarray(counts), tau, 5), rel=1e-11)
    # 1e-6 relative: R's optimize() stops when log(alpha0) is within its default tolerance.
    assert fit.alpha0 == pytest.approx(R_ALPHA0[labels]["alpha0"], rel=1e-6)
    # 1e-9: the likelihood is flat there, so R's value has nearly all its digits.
    assert fit.log_likelihood == pytest.approx(R_ALPHA0[labels]["log_likelihood"], rel=1e-9)
    assert round(fit.alpha0, 2) == printed


@pytest.mark.parametrize("g", [2, 3])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("alpha0", [0.1, 3.0, 40.0, np.inf])
def test_no_value_on_a_grid_is_better(seed, alpha0, g):
    counts, tau = votes_like_a_survey(seed, alpha0, g=g)
    fit = estimate_alpha0(counts, tau)
    others = [dm_logpmf(counts, tau, a).sum() for a in [*GRID, np.inf]]
    # 1e-10: rounding of a sum of 60 log-probabilities.
    assert fit.log_likelihood >= max(others) - 1e-10
    assert fit.multinomial_log_likelihood == pytest.approx(others[-1], rel=1e-13)
    if 0 < fit.alpha0 < np.inf:
        assert fit.log_likelihood == pytest.approx(dm_logpmf(counts, tau, fit.alpha0).sum(), rel=1e-13)
        # A maximum and not just a high point: the score of mpmath vanishes here.
        assert fit.alpha0 == pytest.approx(exact_root(counts, tau, fit.alpha0), rel=1e-8)


@pytest.mark.parametrize("alpha0", [0.3, 1.0, 10.0, 50.0])
@pytest.mark.parametrize("g", [2, 3])
def test_recovers_the_alpha0_that_made_the_votes(alpha0, g):
    counts, tau = votes_like_a_survey(1, alpha0, n=4000, m=20, g=g)
    estimate = estimate_alpha0(counts, tau).alpha0
    h = 0.05  # second difference of the log-likelihood in log alpha0: its curvature gives the standard error
    at = [dm_logpmf(counts, tau, alpha0 * np.exp(k * h)).sum() for k in (-1, 0, 1)]
    error = 1 / np.sqrt(-(at[0] - 2 * at[1] + at[2]) / h**2)
    # Five standard errors, and the standard error is small enough to tell alpha0 from 1 + alpha0 or alpha0 / 2.
    assert error < 0.1 and abs(np.log(estimate / alpha0)) < 5 * error


def test_infinite_where_the_votes_vary_less_than_chance():
    counts = [[5, 5], [5, 5], [5, 5], [2, 8]]
    fit = estimate_alpha0(counts, [[0.5, 0.5]] * 3 + [[0.2, 0.8]])
    assert fit.alpha0 == np.inf and fit.log_likelihood == fit.multinomial_log_likelihood
    expected = stats.binom.logpmf([5, 5, 5, 2], 10, [0.5, 0.5, 0.5, 0.2]).sum()
    assert fit.log_likelihood == pytest.approx(expected, rel=1e-12)


def test_zero_where_every_item_is_unanimous():
    tau = np.array([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])
    fit = estimate_alpha0([[9, 0], [0, 9], [9, 0]], tau)
    assert fit.alpha0 == 0
    # The limit: the first vote decides.
    assert fit.log_likelihood == pytest.approx(np.log(0.7 * 0.6 * 0.5), rel=1e-12)


def test_a_closed_form():
    """Pairs of votes at tau = 1/2: P(agree) = 1 - (a / (1 + a)) / 2, so a = 2 q / (1 - 2 q) for a share q of splits."""
    pairs = [[2, 0]] * 40 + [[0, 2]] * 35 + [[1, 1]] * 25
    fit = estimate_alpha0(pairs, [[0.5, 0.5]] * 100)
    assert fit.alpha0 == pytest.approx(2 * 0.25 / (1 - 2 * 0.25), rel=1e-10)
    # Half of the pairs split: exactly what independent votes do; more: still infinity.
    for agree in (50, 40):
        pairs = [[2, 0]] * agree + [[1, 1]] * (100 - agree)
        assert estimate_alpha0(pairs, [[0.5, 0.5]] * 100).alpha0 > 1e6


def test_large_but_finite_estimates_are_found():
    # From the closed form with 2 N pairs of which N - d split: a = 2 (N - d) / (2 d) = (N - d) / d.
    for N, d in [(5000, 5), (100_000, 1)]:
        counts = np.repeat([[2, 0], [1, 1]], [N + d, N - d], axis=0)
        # 1e-6: the likelihood is flat, its score near the root has lost as many digits.
        assert estimate_alpha0(counts, np.full((2 * N, 2), 0.5)).alpha0 == pytest.approx((N - d) / d, rel=1e-6)


def test_small_but_positive_estimates_are_found():
    counts = np.repeat([[2, 0], [1, 1]], [999_999, 1], axis=0)
    alpha0 = estimate_alpha0(counts, np.full((1_000_000, 2), 0.5)).alpha0
    assert alpha0 == pytest.approx(2e-6 / (1 - 2e-6), rel=1e-6)  # closed form above, q = 1e-6


def test_items_with_no_vote_or_one_carry_no_information():
    counts, tau = votes_like_a_survey(3, 2.0)
    few = np.vstack([counts, [[0, 0], [1, 0], [0, 1]]])
    more = np.vstack([tau, [[0.3, 0.7], [0.9, 0.1], [0.5, 0.5]]])
    fit, other = estimate_alpha0(counts, tau), estimate_alpha0(few, more)
    assert other.alpha0 == pytest.approx(fit.alpha0, rel=1e-10)
    # They do count in the likelihood, with the probability of their one vote.
    assert other.log_likelihood == pytest.approx(fit.log_likelihood + np.log(0.9 * 0.5), rel=1e-10)


def test_order_and_repetition_of_items_and_order_of_classes_do_not_matter():
    counts, tau = votes_like_a_survey(4, 2.0, g=3)
    alpha0 = estimate_alpha0(counts, tau).alpha0
    order = np.random.default_rng(0).permutation(len(counts))
    for c, t in [(counts[order], tau[order]), (np.vstack([counts] * 3), np.vstack([tau] * 3)),
                 (counts[:, [2, 0, 1]], tau[:, [2, 0, 1]])]:
        assert estimate_alpha0(c, t).alpha0 == pytest.approx(alpha0, rel=1e-10)  # rounding
    # With the classes of tau alone reversed the estimate must move.
    assert abs(estimate_alpha0(counts, tau[:, [2, 0, 1]]).alpha0 / alpha0 - 1) > 0.05


def test_unequal_numbers_of_votes():
    rng = np.random.default_rng(5)
    tau = rng.dirichlet([1, 1], size=300)
    counts = sample_votes(tau, rng.integers(1, 15, 300), 2.0, rng=rng)
    fit = estimate_alpha0(counts, tau)
    assert fit.alpha0 == pytest.approx(exact_root(counts, tau, fit.alpha0), rel=1e-9)
    assert 1 < fit.alpha0 < 4


def test_log_likelihood_has_the_binomial_coefficients():
    counts, tau = votes_like_a_survey(6, 2.0, n=20)
    fit = estimate_alpha0(counts, tau)
    expected = sum(float(exact_logpmf(s, t, fit.alpha0)) for s, t in zip(counts, tau))
    assert fit.log_likelihood == pytest.approx(expected, rel=1e-12)


def test_tiny_probabilities():
    """A vote for a class of probability 1e-12 says that alpha0 is finite, and breaks nothing."""
    counts = [[7, 0], [6, 1], [7, 0]]
    fit = estimate_alpha0(counts, [[1.0, 1e-300], [1.0, 1e-12], [1 - 1e-9, 1e-9]])
    assert np.isfinite(fit.log_likelihood) and fit.log_likelihood >= fit.multinomial_log_likelihood


@pytest.mark.parametrize("counts, tau", [
    ([[1, 0], [0, 1], [0, 0]], [[0.5, 0.5], [0.3, 0.7], [0.5, 0.5]]),  # one vote an item
    ([[3, 0], [0, 2]], [[1.0, 0.0], [0.0, 1.0]]),  # nothing is in doubt: every alpha0 gives probability one
    ([[3, 0], [0, 1]], [[1.0, 0.0], [0.5, 0.5]]),  # the only item in doubt has one vote
])
def test_data_that_cannot_tell_alpha0_are_an_error(counts, tau):
    with pytest.raises(ValueError, match="alpha0"):
        estimate_alpha0(counts, tau)


def test_pandas_is_aligned_by_index():
    counts, tau = votes_like_a_survey(7, 2.0, n=30)
    names = [f"item{k}" for k in range(30)]
    C, T = pd.DataFrame(counts, index=names), pd.DataFrame(tau, index=names)
    alpha0 = estimate_alpha0(counts, tau).alpha0
    assert estimate_alpha0(C, T.sample(frac=1, random_state=0)).alpha0 == alpha0
    with pytest.raises(ValueError, match="item3"):
        estimate_alpha0(C, T.drop(index="item3"))


def test_result_is_frozen_and_readable():
    fit = estimate_alpha0(*votes_like_a_survey(8, 2.0))
    with pytest.raises(AttributeError):
        fit.alpha0 = 1
    assert type(fit.alpha0) is float and type(fit.log_likelihood) is float
    assert "alpha0" in repr(fit) and "np.float64" not in repr(fit)
