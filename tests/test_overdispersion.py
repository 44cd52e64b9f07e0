"""alpha0: the maximum of the likelihood, both ends of the range as values; bootstrap, intervals, and the test of alpha0 = inf.

Against R, mpmath, SciPy's beta-binomial, explicit resamples and simulation.
"""

import itertools

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from reference import R_ALPHA0, exact_logpmf, gastro
from scipy import optimize, stats
from scipy.special import expit
from strategies import SEED, answered, attempt, examples, tables

import softlabel as sl
from softlabel import overdispersion, vote_models

UNANIMOUS = ([[5, 0], [0, 5], [5, 0], [5, 0]], [[0.5, 0.5], [0.4, 0.6], [0.7, 0.3], [0.6, 0.4]])
EVEN = ([[5, 5]] * 4, [[0.5, 0.5]] * 4)  # less spread than independent votes have
PER_CENT = 2.5, 97.5


def survey(seed, alpha0, n=60, m=7, g=2):
    rng = np.random.default_rng(seed)
    tau = rng.dirichlet(np.full(g, 0.8), size=n)
    return sl.sample_votes(tau, m, alpha0, rng=rng), tau


def exact_root(counts, tau, start):
    """Root of the derivative of the log-likelihood in log alpha0, by mpmath."""
    with mpmath.workdps(30):

        def score(log_alpha0):
            a = mpmath.exp(log_alpha0)
            total = mpmath.mpf(0)
            for s, t in zip(counts, tau):
                total -= sum(1 / (a + k) for k in range(int(sum(s))))
                for s_i, t_i in zip(s, t):
                    p = mpmath.mpf(float(t_i))
                    total += sum(p / (a * p + k) for k in range(int(s_i)))
            return total

        return float(mpmath.exp(mpmath.findroot(score, mpmath.log(start))))


def betabinom_log_likelihood(counts, tau, alpha0):
    """Of two classes, by SciPy; alpha0 = inf is the binomial."""
    s, m, t, u = counts[:, 0], counts.sum(axis=1), tau[:, 0], tau[:, 1]
    if np.isinf(alpha0):
        return stats.binom.logpmf(s, m, t).sum()
    return stats.betabinom.logpmf(s, m, alpha0 * t, alpha0 * u).sum()


def highest(value, low, high):
    """The top of a function of alpha0 and where it is, sought between exp(low) and exp(high)."""
    options = {"xatol": 1e-9}
    best = optimize.minimize_scalar(lambda log: -value(np.exp(log)), bounds=(low, high), method="bounded", options=options)
    return -best.fun, np.exp(best.x)


def by_resample(counts, tau, size, seed):
    """Estimates on items drawn with replacement, as the same generator draws them for the bootstrap."""
    rows = np.random.default_rng(seed).integers(len(counts), size=(size, len(counts)))
    return [sl.estimate_alpha0(counts[r], tau[r]).alpha0 for r in rows]


def relative_difference(a, b):
    """Zero where both are 0 or both infinite."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(a == b, 0.0, np.abs(a / b - 1))


# ------------------------------------------------------------------ the estimate


@pytest.mark.parametrize("labels, alpha0, printed", [("truth", 5.4739326, 5.47), ("votes", 5.1678575, 5.17)])
def test_gastroenterology(labels, alpha0, printed):
    X, counts, y = gastro()
    tau = sl.fit_logistic(X, y if labels == "truth" else counts, tol=1e-14).posterior(X)
    fit = sl.estimate_alpha0(counts, tau)
    # 5e-8: the exact root of the score, by mpmath, is quoted to seven decimals.
    assert fit.alpha0 == pytest.approx(alpha0, abs=5.1e-8)
    assert fit.alpha0 == pytest.approx(exact_root(np.asarray(counts), tau, 5), rel=1e-11)
    # 1e-6 relative: R's optimize() stops when log(alpha0) is within its default tolerance.
    assert fit.alpha0 == pytest.approx(R_ALPHA0[labels]["alpha0"], rel=1e-6)
    # 1e-9: the likelihood is flat there, so R's value has nearly all its digits.
    assert fit.log_likelihood == pytest.approx(R_ALPHA0[labels]["log_likelihood"], rel=1e-9)
    assert round(fit.alpha0, 2) == printed
    assert sl.overdispersion_test(counts, tau).pvalue < 1e-6  # "little evidence" for infinity


@pytest.mark.parametrize("g", [2, 3])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha0", [0.1, 3.0, 40.0, np.inf])
def test_is_a_root_of_the_score(seed, alpha0, g):
    counts, tau = survey(seed, alpha0, g=g)
    fit = sl.estimate_alpha0(counts, tau)
    assert fit.multinomial_log_likelihood == pytest.approx(sl.dm_logpmf(counts, tau, np.inf).sum(), rel=1e-13)
    expected = sum(float(exact_logpmf(s, t, fit.alpha0)) for s, t in zip(counts, tau))
    assert fit.log_likelihood == pytest.approx(expected, rel=1e-12)
    if 0 < fit.alpha0 < np.inf:
        assert fit.alpha0 == pytest.approx(exact_root(counts, tau, fit.alpha0), rel=1e-8)


@examples(60)
@given(tables(), SEED)
def test_estimate_is_the_maximum_and_inside_its_intervals(data, seed):
    counts, tau = data
    fit = attempt(sl.estimate_alpha0, counts, tau)
    test = attempt(sl.overdispersion_test, counts, tau)
    estimates = attempt(sl.bootstrap_alpha0, counts, tau, 10, seed)
    interval = attempt(sl.alpha0_interval, counts, tau, level=0.9, method="likelihood")
    ends = attempt(sl.alpha0_interval, counts, tau, level=0.9, method="bootstrap", n_resamples=10, rng=seed)
    assert len({answer is None for answer in (fit, test, estimates, interval)}) == 1
    answered(sl.estimate_alpha0, counts, tau)
    others = [sl.dm_logpmf(counts, tau, a).sum() for a in [*np.logspace(-8, 10, 19), np.inf]]
    rounding = 1e-9 + 1e-12 * abs(min(others))
    assert fit.log_likelihood >= max(others) - rounding and 0 <= fit.alpha0 <= np.inf
    assert fit.multinomial_log_likelihood == pytest.approx(others[-1], rel=1e-12)
    assert "alpha0 = " in repr(fit) and "np.float64" not in repr(fit)
    assert test.statistic == pytest.approx(2 * (fit.log_likelihood - others[-1]), abs=2 * rounding) and 0 <= test.pvalue <= 1
    assert estimates.shape == (10,) and np.all(estimates >= 0)
    assert interval[0] <= fit.alpha0 * (1 + 1e-6) and fit.alpha0 <= interval[1] * (1 + 1e-6)
    if ends is None:
        assert np.all(estimates == 0) or np.isinf(estimates).sum() >= len(estimates) - 1
    else:
        assert estimates.min() <= ends[0] <= ends[1] <= estimates.max()


def test_a_closed_form():
    """Pairs of votes at tau = 1/2: P(agree) = 1 - (a / (1 + a)) / 2, so a = 2 q / (1 - 2 q) for a share q of splits."""
    pairs = [[2, 0]] * 40 + [[0, 2]] * 35 + [[1, 1]] * 25
    fit = sl.estimate_alpha0(pairs, [[0.5, 0.5]] * 100)
    assert fit.alpha0 == pytest.approx(2 * 0.25 / (1 - 2 * 0.25), rel=1e-10)
    # Half of the pairs split: exactly what independent votes do; more: still infinity.
    for agree in (50, 40):
        pairs = [[2, 0]] * agree + [[1, 1]] * (100 - agree)
        assert sl.estimate_alpha0(pairs, [[0.5, 0.5]] * 100).alpha0 > 1e6


def test_large_and_small_estimates_are_found():
    # From the closed form with 2 N pairs of which N - d split: a = (N - d) / d; and with a share of q: a = 2 q / (1 - 2 q).
    for same, split in [(5005, 4995), (100_001, 99_999), (99_999, 1)]:
        counts = np.repeat([[2, 0], [1, 1]], [same, split], axis=0)
        right = 2 * split / (same - split)
        # 1e-6: the likelihood is flat, its score near the root has lost as many digits.
        assert sl.estimate_alpha0(counts, np.full((same + split, 2), 0.5)).alpha0 == pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize(
    "counts, tau",
    [
        ([[3, 0], [0, 2]], [[1.0, 0.0], [0.0, 1.0]]),  # nothing is in doubt: every alpha0 gives probability one
        ([[3, 0], [0, 1]], [[1.0, 0.0], [0.5, 0.5]]),  # the only item in doubt has one vote
    ],
)
def test_data_that_cannot_tell_alpha0_are_an_error(counts, tau):
    with pytest.raises(ValueError, match="alpha0"):
        sl.estimate_alpha0(counts, tau)


def test_unequal_numbers_of_votes_in_every_function():
    rng = np.random.default_rng(5)
    tau = rng.dirichlet([1, 1], size=300)
    votes = sl.sample_votes(tau, rng.integers(1, 15, 300), 2.0, rng=rng)
    votes[::10] = 0
    few, likelihood = votes.sum(axis=1) < 2, sl.dm_logpmf(votes, tau, 2.0)
    assert {0, 1, 2} <= set(votes.sum(axis=1))
    for function in (
        lambda c, t: sl.estimate_alpha0(c, t).alpha0,
        lambda c, t: sl.overdispersion_test(c, t).statistic,
        lambda c, t: sl.alpha0_interval(c, t, method="likelihood"),
    ):
        # Items with no vote or one say nothing about alpha0.
        np.testing.assert_allclose(function(votes, tau), function(votes[~few], tau[~few]), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(likelihood[votes.sum(axis=1) == 0], 0)
    fit, other = sl.estimate_alpha0(votes, tau), sl.estimate_alpha0(votes[~few], tau[~few])
    assert 1 < fit.alpha0 < 4 and fit.alpha0 == pytest.approx(exact_root(votes, tau, fit.alpha0), rel=1e-9)
    # They do count in the likelihood, with the probability of their one vote.
    assert fit.log_likelihood == pytest.approx(other.log_likelihood + likelihood[few].sum(), rel=1e-10)


def test_unanimous_votes_in_every_function():
    counts, tau = [[9, 0], [0, 9], [9, 0], [4, 0]], [[0.7, 0.3], [0.4, 0.6], [0.5, 0.5], [0.9, 0.1]]
    assert sl.estimate_alpha0(counts, tau).alpha0 == 0
    np.testing.assert_array_equal(sl.bootstrap_alpha0(counts, tau, 20, rng=0), 0)
    with pytest.raises(ValueError, match=r"same estimate of alpha0, 0: .*one point and no interval"):
        sl.alpha0_interval(counts, tau, method="bootstrap", rng=0)
    statistic, pvalue = sl.overdispersion_test(counts, tau)
    # At alpha0 = 0 one vote of an item stands for all: 8, 8, 8 and 3 factors less.
    assert statistic == pytest.approx(-2 * np.log(0.7**8 * 0.6**8 * 0.5**8 * 0.9**3), rel=1e-10) and pvalue < 1e-5


def test_votes_less_dispersed_than_multinomial_in_every_function():
    counts, tau = [[5, 5], [5, 5], [5, 5], [2, 8]] * 5, ([[0.5, 0.5]] * 3 + [[0.2, 0.8]]) * 5
    assert sl.estimate_alpha0(counts, tau).alpha0 == np.inf
    assert np.isinf(sl.bootstrap_alpha0(counts, tau, 20, rng=0)).all()
    with pytest.raises(ValueError, match=r"resamples of counts have the same estimate of alpha0, inf: .*one point"):
        sl.alpha0_interval(counts, tau, method="bootstrap", rng=0)
    assert sl.overdispersion_test(counts, tau) == (0.0, 1.0)


@pytest.mark.parametrize("tiny", [5e-324, 1e-310])
def test_probabilities_below_the_normal_floats(tiny):
    """No warning of NumPy, and the value at 1e-300, from which the estimate of alpha0 no longer depends on tau."""
    counts = [[2, 1], [0, 2], [4, 0]]
    tau, near = ([[small, 1.0], [0.5, 0.5], [1.0, small]] for small in (tiny, 1e-300))
    assert sl.estimate_alpha0(counts, tau).alpha0 == pytest.approx(sl.estimate_alpha0(counts, near).alpha0, rel=1e-9)
    for method in ("bootstrap", "likelihood"):
        ends = (sl.alpha0_interval(counts, t, method=method, n_resamples=50, rng=0) for t in (tau, near))
        np.testing.assert_allclose(*ends, rtol=1e-9)


def test_results_are_frozen_plain_numbers():
    fit, test = sl.estimate_alpha0(*survey(8, 2.0)), sl.overdispersion_test(*survey(0, 3.0))
    with pytest.raises(AttributeError):
        fit.alpha0 = 1
    assert (test.statistic, test.pvalue) == tuple(test)
    ends = [sl.alpha0_interval(*survey(8, 2.0), method=method) for method in ("likelihood", "bootstrap")]
    assert {type(x) for x in (fit.alpha0, fit.log_likelihood, *test, *ends[0], *ends[1])} == {float}


# ------------------------------------------------------------------ the bootstrap


@pytest.mark.parametrize("alpha0, g", [(0.1, 2), (3.0, 2), (3.0, 3), (40.0, 2), (40.0, 3), (np.inf, 2), (np.inf, 3)])
def test_bootstrap_is_the_estimate_on_resampled_rows(alpha0, g):
    counts, tau = survey(11, alpha0, n=40, m=9, g=g)
    expected = by_resample(counts, tau, 60, 5)
    # 1e-4: the accuracy that bootstrap_alpha0 promises.
    assert relative_difference(sl.bootstrap_alpha0(counts, tau, 60, rng=5), expected).max() < 1e-4
    # The estimates do vary, so that equality says something (0.1 is far above 1e-4).
    inner = [a for a in expected if 0 < a < np.inf]
    assert len(inner) < 30 or np.std(np.log(inner)) > 0.1


@pytest.mark.parametrize("seed", range(8))
def test_accuracy_of_the_bootstrap_where_the_likelihood_is_flat(seed):
    """Many labellers, three classes and nearly independent votes: large estimates, found to 1e-4 as promised."""
    rng = np.random.default_rng(seed)
    tau = rng.dirichlet([0.3, 0.3, 0.3], size=50)
    tau = np.clip(tau, 1e-12, 1) / np.clip(tau, 1e-12, 1).sum(axis=1, keepdims=True)
    counts = sl.sample_votes(tau, 22, rng=rng)
    values = sl.bootstrap_alpha0(counts, tau, 10, rng=seed)
    assert relative_difference(values, by_resample(counts, tau, 10, seed)).max() < 1e-4


def test_bootstrap_of_many_items_in_parts(monkeypatch):
    """Parts of the items share out a resample: the estimates are spread as those of resamples drawn at once."""
    counts, tau = survey(1, 3.0, n=10)
    whole = sl.bootstrap_alpha0(counts, tau, 20_000, rng=2)
    monkeypatch.setattr(vote_models, "MANY", 2500)  # three items or so
    assert len(vote_models.parts_of_votes(len(overdispersion.FINE_GRID) / 8 * (1 + counts.sum(axis=1)))) > 2
    assert stats.ks_2samp(sl.bootstrap_alpha0(counts, tau, 20_000, rng=1), whole).pvalue > 1e-4
    # Negative: resamples of eight items in place of ten would be seen.
    assert stats.ks_2samp(sl.bootstrap_alpha0(counts[:8], tau[:8], 20_000, rng=1), whole).pvalue < 1e-9


def test_items_are_evaluated_on_a_grid_and_not_for_each_resample(monkeypatch):
    """What makes 500 resamples cheap: all share the work on the items, and the fine grid is only where they need it."""
    calls, original = [], overdispersion.VoteTerms.of_items
    monkeypatch.setattr(overdispersion.VoteTerms, "of_items", lambda *args: calls.append(args) or original(*args))
    numbers = []
    for size in (10, 1000):
        calls.clear()
        sl.bootstrap_alpha0(*survey(1, 3.0), n_resamples=size, rng=0)
        numbers.append(len(calls))
    assert 0 < numbers[0] <= numbers[1] < len(overdispersion.GRID) + len(overdispersion.FINE_GRID) / 4


def test_bootstrap_draws_items_with_replacement_and_equal_probability():
    """Four items have 35 multisets: every value is one of their estimates, as often as the multinomial says."""
    counts, tau = np.array([[6, 1], [2, 5], [0, 7], [5, 2]]), np.array([[0.6, 0.4], [0.5, 0.5], [0.3, 0.7], [0.9, 0.1]])
    sets = list(itertools.combinations_with_replacement(range(4), 4))
    possible = np.array([sl.estimate_alpha0(counts[list(s)], tau[list(s)]).alpha0 for s in sets])
    chance = np.array([stats.multinomial.pmf(np.bincount(s, minlength=4), 4, [0.25] * 4) for s in sets])
    size = 20_000
    values = sl.bootstrap_alpha0(counts, tau, size, rng=1)
    difference = relative_difference(values[:, None], possible)
    assert difference.min(axis=1).max() < 1e-4  # the promised accuracy
    # Multisets with the same estimate (several infinite ones) are counted together.
    different, group = np.unique(possible, return_inverse=True)
    assert relative_difference(different[1:], different[:-1]).min() > 1e-3  # or the count below would be of noise
    seen = np.bincount(group[difference.argmin(axis=1)], minlength=len(different))
    expected = np.bincount(group, chance)
    assert stats.chisquare(seen, size * expected).pvalue > 1e-3  # fixed seed
    # Negative: every multiset equally often (weights drawn by stars and bars).
    assert stats.chisquare(seen, size * np.bincount(group) / len(sets)).pvalue < 1e-9


def test_items_of_every_part_are_resampled_alike():
    """The terms of 12,000 items are made in parts: were the later ones drawn less often, their agreement would be missed."""
    counts = np.repeat([[3, 3], [6, 0], [0, 6]], [6000, 3000, 3000], axis=0)
    tau = np.full(counts.shape, 0.5)
    estimates = sl.bootstrap_alpha0(counts, tau, 40, rng=1)
    # A standard error of 2% in each resample, 0.3% in their mean.
    assert np.log(estimates).mean() == pytest.approx(np.log(sl.estimate_alpha0(counts, tau).alpha0), abs=0.015)


@pytest.mark.parametrize("labels, low, high", [("truth", 3.3, 11.3), ("votes", 3.0, 10.6)])
def test_interval_ends_on_the_real_data(labels, low, high):
    X, counts, y = gastro()
    tau = sl.fit_logistic(X, y if labels == "truth" else counts).posterior(X)
    values = sl.bootstrap_alpha0(counts, tau, 20_000, rng=2)
    ends = np.percentile(values, PER_CENT)
    # Half a unit of the last digit, and three Monte Carlo errors: at the upper end 0.6 for 500 resamples, so 0.1 for 20,000;
    # at the lower end a sixth of that.
    assert abs(ends[0] - low) < 0.05 + 0.05 and abs(ends[1] - high) < 0.05 + 0.3
    # The error quoted for 500 resamples is right to a third (40 batches know it to 11%).
    batches = np.percentile(values.reshape(40, 500), PER_CENT[1], axis=1)
    assert batches.std(ddof=1) == pytest.approx(0.6, rel=1 / 3)


def test_bootstrap_interval_is_made_of_percentiles():
    counts, tau = survey(1, 3.0)
    values = sl.bootstrap_alpha0(counts, tau, 300, rng=3)
    assert np.isfinite(values).all()
    for level, tails in [(0.95, PER_CENT), (0.5, (25, 75)), (0.9, (5, 95))]:
        interval = sl.alpha0_interval(counts, tau, level=level, method="bootstrap", n_resamples=300, rng=3)
        assert interval == pytest.approx(np.percentile(values, tails), rel=1e-12)  # rounding


def test_zero_is_a_value():
    """One split pair among unanimous ones: 0 exactly where no resampled item is split."""
    counts, tau = np.array([[5, 0]] * 5 + [[3, 2]]), np.full((6, 2), 0.5)
    values = sl.bootstrap_alpha0(counts, tau, 200, rng=4)
    split = (np.random.default_rng(4).integers(6, size=(200, 6)) == 5).any(axis=1)
    np.testing.assert_array_equal(values == 0, ~split)
    assert 0.2 < (values == 0).mean() < 0.5  # (5/6)^6 = 0.33, four standard errors


def test_bootstrap_intervals_with_infinity():
    """Many resamples infinite: the upper end is, the lower one is a percentile; nothing is interpolated."""
    counts, tau = survey(9, 30.0)
    values = sl.bootstrap_alpha0(counts, tau, 500, rng=0)
    assert 0.03 < np.isinf(values).mean() < 0.5
    low, high = sl.alpha0_interval(counts, tau, method="bootstrap", rng=0)
    assert high == np.inf and low in values
    assert abs(np.mean(values < low) - 0.025) <= 1 / 500  # one resample


# ------------------------------------------------------------------ the likelihood interval


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_likelihood_ends_satisfy_the_likelihood_ratio_equation(seed, level):
    counts, tau = survey(seed, [1.0, 5.0][seed % 2], n=80)

    def value(a):
        return betabinom_log_likelihood(counts, tau, a)

    top, best = highest(value, -5, 9)
    ends = sl.alpha0_interval(counts, tau, level=level, method="likelihood")
    for end, side in zip(ends, (-1, 1)):
        if side == 1 and 2 * (top - value(1e9)) < stats.chi2.ppf(level, 1):
            assert end == np.inf  # the multinomial is within
            continue
        assert side * (end - best) > 0 and np.isfinite(end)
        # Twice the fall of the log-likelihood is the chi-square quantile; 1e-6 is rounding of betaln in a sum of 80.
        assert 2 * (top - value(end)) == pytest.approx(stats.chi2.ppf(level, 1), abs=1e-6)


@pytest.mark.parametrize("data, at, best", [(EVEN, 1, np.inf), (UNANIMOUS, 0, 0.0)])
def test_ends_of_the_likelihood_interval_on_the_boundary(data, at, best):
    ends = sl.alpha0_interval(*data, method="likelihood")
    assert ends[at] == best
    counts, tau = (np.array(a, float) for a in data)
    # At alpha0 = 0 the first vote decides; 1e-6 as above.
    top = betabinom_log_likelihood(counts, tau, best) if best else np.log(0.5 * 0.6 * 0.7 * 0.6)
    fall = top - betabinom_log_likelihood(counts, tau, ends[1 - at])
    assert 2 * fall == pytest.approx(stats.chi2.ppf(0.95, 1), abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_upper_end_is_infinite_exactly_where_the_multinomial_is_inside(seed):
    counts, tau = survey(seed, 60.0, n=30)
    fit = sl.estimate_alpha0(counts, tau)
    fall = 2 * (fit.log_likelihood - fit.multinomial_log_likelihood)
    for level in (0.2, 0.5, 0.8, 0.95):
        high = sl.alpha0_interval(counts, tau, level=level, method="likelihood")[1]
        assert (high == np.inf) == (fall <= stats.chi2.ppf(level, 1))


@pytest.mark.parametrize("method", ["cox-reid", "likelihood", "bootstrap"])
def test_intervals_widen_with_their_level(method):
    X, counts, tau = fitted_survey(2, 5.0)
    ends = [sl.alpha0_interval(counts, tau, X=X, level=level, method=method, rng=0) for level in (0.1, 0.5, 0.8, 0.95, 0.99)]
    low, high = np.transpose(ends)
    assert np.all(np.diff(low) < 0) and np.all(np.diff(high) > 0) and low[0] < high[0]
    assert sl.alpha0_interval(counts, tau, X=X, method=method, rng=0) == ends[3]  # the default level


def test_a_tiny_level_is_an_interval_around_the_estimate():
    counts, tau = [[7, 0], [6, 1], [2, 5], [0, 7]], [[0.8, 0.2], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8]]
    estimate = sl.estimate_alpha0(counts, tau).alpha0
    for level in (1e-300, 1e-12):
        low, high = sl.alpha0_interval(counts, tau, level=level, method="likelihood")
        assert low == pytest.approx(estimate, rel=1e-4) and high == pytest.approx(estimate, rel=1e-4) and low <= high


# ------------------------------------------------------------------ the interval of Cox and Reid


def fitted_survey(seed, alpha0, n=120, p=3, m=5):
    """Features, votes, and the posterior probabilities of the fit to them; m is a number or one for each item."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    eta = X @ np.r_[1, -1, 0.5, np.zeros(p)][:p]
    counts = sl.sample_votes(np.column_stack([expit(eta), expit(-eta)]), m, alpha0, rng)
    return X, counts, sl.fit_logistic(X, counts).posterior(X)


def uneven(n):
    return np.where(np.arange(n) < n // 10, 20, 1)


def check_ends(ends, value, top, within):
    """A fall by half a chi-square quantile at each end, or the end of the range and a smaller fall."""
    for end in ends:
        fall = 2 * (top - value(end))
        if np.isinf(end):
            assert fall < stats.chi2.ppf(0.95, 1)
        else:
            assert fall == pytest.approx(stats.chi2.ppf(0.95, 1), abs=within)


@pytest.mark.parametrize("seed, alpha0, m", [(1, 0.5, 5), (2, 5.0, 2), (3, 5.0, 9), (4, np.inf, 5), (5, 0.05, 3)])
def test_equal_votes_add_the_logarithm_of_phi_for_each_two_coefficients(seed, alpha0, m):
    X, counts, tau = fitted_survey(seed, alpha0, m=m)

    def value(a):
        phi = 1.0 if np.isinf(a) else (m + a) / (1 + a)
        return betabinom_log_likelihood(counts, tau, a) + 4 / 2 * np.log(phi)

    ends = sl.alpha0_interval(counts, tau, X=X)
    logs = np.linspace(-6, 9, 31)
    start = logs[np.argmax([value(np.exp(log)) for log in logs])]
    top = max(highest(value, start - 0.5, start + 0.5)[0], value(np.inf))
    check_ends(ends, value, top, within=1e-6)  # rounding of betaln in a sum of 120
    assert ends[0] < ends[1] and all(type(end) is float for end in ends)
    # Negative: the interval without the adjustment has other ends.
    plain = sl.alpha0_interval(counts, tau, method="likelihood")
    assert abs(2 * (top - value(plain[0])) - stats.chi2.ppf(0.95, 1)) > 0.01


@pytest.mark.parametrize("seed, alpha0, n, p", [(1, 0.5, 300, 8), (2, 5.0, 300, 3), (3, 40.0, 200, 2), (4, np.inf, 200, 2)])
def test_unequal_votes_against_statsmodels(seed, alpha0, n, p):
    """Fit with weights 1 / phi, the best alpha0 given it, and again until nothing changes; no code is shared."""
    sm = pytest.importorskip("statsmodels.api")
    X, counts, tau = fitted_survey(seed, alpha0, n=n, p=p, m=uneven(n))
    x, m, a = sm.add_constant(X), counts.sum(axis=1), 1.0

    def phi(a):
        return np.ones(n) if np.isinf(a) else (m + a) / (1 + a)

    for _ in range(30):
        model = sm.GLM(counts[:, 0] / m, x, family=sm.families.Binomial(), var_weights=m / phi(a))
        t = model.fit(tol=1e-12).fittedvalues
        t = np.column_stack([t, 1 - t])

        def value(a, t=t):
            w = m * t[:, 0] * t[:, 1] / phi(a)
            return betabinom_log_likelihood(counts, t, a) - np.linalg.slogdet((x.T * w) @ x)[1] / 2

        top, a = highest(value, -4, 14)
        a = np.inf if value(np.inf) > top else a
    ends = np.array(sl.alpha0_interval(counts, tau, X=X))
    # The package stops after the second round: what is left moves the fall at its ends by little.
    check_ends(ends, value, value(a), within=0.02)
    # Negative: with every vote once it is another interval.
    pooled = sl.alpha0_interval(counts, tau, method="likelihood")
    assert max(abs(2 * (value(a) - value(end)) - stats.chi2.ppf(0.95, 1)) for end in pooled) > 0.1


def test_the_interval_of_cox_and_reid_on_the_boundary():
    X = np.random.default_rng(0).normal(size=(60, 2))
    labels = (X[:, 0] + np.random.default_rng(1).normal(size=60) > 0).astype(int)
    unanimous = 5 * np.column_stack([labels, 1 - labels])
    low, high = sl.alpha0_interval(unanimous, sl.fit_logistic(X, unanimous).posterior(X), X=X)
    assert low == 0 < high < 1
    even = np.tile([[5, 5], [4, 6], [6, 4]], (20, 1))  # less spread than independent votes have
    low, high = sl.alpha0_interval(even, sl.fit_logistic(X, even).posterior(X), X=X)
    assert 5 < low < high == np.inf
    for counts in (unanimous, even):
        m = counts.sum(axis=1, keepdims=True)
        more = np.where(np.arange(60)[:, None] < 6, counts * 2, counts)  # unequal numbers
        assert len(np.unique(m)) == 1 < len(np.unique(more.sum(axis=1)))
        ends = sl.alpha0_interval(more, sl.fit_logistic(X, more).posterior(X), X=X)
        assert (ends[0] == 0) == (counts is unanimous) and np.isinf(ends[1]) == (counts is even)


def test_what_does_not_change_the_interval_of_cox_and_reid():
    """Units of the features, items without votes, the order of the items; and a fit by another program."""
    for m in (5, uneven(120)):
        X, counts, tau = fitted_survey(6, 5.0, m=m)
        usual = sl.alpha0_interval(counts, tau, X=X)
        assert sl.alpha0_interval(counts, tau, X=X * [1e6, 1, 1e-6] + [0, 1e3, 1]) == pytest.approx(usual, rel=1e-5)
        longer = np.vstack([counts, [[0, 0]]]), np.vstack([tau, [[0.5, 0.5]]]), np.vstack([X, [[0, 0, 0]]])
        longer[1][-1] = sl.fit_logistic(X, counts).posterior(longer[2][-1:])
        assert sl.alpha0_interval(*longer[:2], X=longer[2]) == pytest.approx(usual, rel=1e-6)
        frame = pd.DataFrame(X).sample(frac=1, random_state=1)
        assert sl.alpha0_interval(pd.DataFrame(counts), tau, X=frame) == pytest.approx(usual, rel=1e-6)
        rounded = np.column_stack([tau[:, 0].round(6), 1 - tau[:, 0].round(6)])
        assert sl.alpha0_interval(counts, rounded, X=X) == pytest.approx(usual, rel=1e-4)


def test_too_few_items_or_another_fit_have_no_interval_of_cox_and_reid():
    X, counts, tau = fitted_survey(7, 5.0, n=150, p=20)
    assert sl.alpha0_interval(counts, tau, X=X)[0] > 0
    X, counts, tau = fitted_survey(7, 5.0, n=110, p=20)
    with pytest.raises(ValueError, match="items' worth of votes for the rarer class, coefficients: 21; below 3 for each"):
        sl.alpha0_interval(counts, tau, X=X)
    truth = expit(X @ np.r_[1, -1, 0.5, np.zeros(17)])
    with pytest.raises(ValueError, match="tau is not fit_logistic"):
        sl.alpha0_interval(counts, np.column_stack([truth, 1 - truth]), X=X)
    with pytest.raises(ValueError, match="tau is not fit_logistic"):
        sl.alpha0_interval(counts, sl.fit_logistic(X, counts, method="firth").posterior(X), X=X)
    with pytest.raises(ValueError, match="takes two classes"):
        sl.alpha0_interval(*survey(1, 3.0, g=3), X=np.zeros((60, 1)))


# ------------------------------------------------------------------ the test of alpha0 = inf


def test_statistic_is_twice_the_gain_in_log_likelihood():
    for seed, alpha0 in itertools.product(range(6), (3.0, 40.0, np.inf)):
        counts, tau = survey(seed, alpha0)
        fit = sl.estimate_alpha0(counts, tau)
        statistic, pvalue = sl.overdispersion_test(counts, tau)
        gain = betabinom_log_likelihood(counts, tau, fit.alpha0) - betabinom_log_likelihood(counts, tau, np.inf)
        assert statistic == pytest.approx(2 * gain, abs=1e-6)  # rounding of betaln at large alpha0
        # Half a chi-square with one degree of freedom, that is a one-sided normal test; 1e-12: rounding.
        expected = stats.norm.sf(np.sqrt(statistic)) if statistic > 0 else 1
        assert pvalue == pytest.approx(expected, rel=1e-12)


def test_size_of_the_test_under_the_multinomial():
    size = 800
    tau = np.random.default_rng(2).dirichlet([2, 2], size=800)
    rng = np.random.default_rng(3)
    pvalues = np.array([sl.overdispersion_test(sl.sample_votes(tau, 5, rng=rng), tau).pvalue for _ in range(size)])
    one = pvalues == 1
    # Four Monte Carlo errors (7 points), within which 800 items are infinitely many.
    assert abs(one.mean() - 0.5) < 4 * 0.5 / np.sqrt(size)
    others = pvalues[~one]
    assert np.all(others < 0.5) and stats.kstest(others, stats.uniform(0, 0.5).cdf).pvalue > 1e-3  # fixed seed
    assert abs(np.mean(pvalues < 0.05) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / size)
    # Negative: without the half, p-values would be uniform on (0, 1).
    assert stats.kstest(others, stats.uniform(0, 1).cdf).pvalue < 1e-9


def test_no_interval_without_a_fit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    counts = sl.sample_votes(np.column_stack([expit(3 * X), expit(-3 * X)]), 2, rng=rng)
    X[0] = 1e7
    with pytest.warns(sl.ConvergenceWarning):
        tau = sl.fit_logistic(X, counts).posterior(X)
    with pytest.raises(ValueError, match="fit to counts has not converged"):
        sl.alpha0_interval(counts, tau, X=X)
