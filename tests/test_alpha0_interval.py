"""Bootstrap, intervals and the test of alpha0 = inf, against explicit resamples, SciPy's beta-binomial and simulation."""

import itertools
import re

import numpy as np
import pytest
from reference import gastro
from scipy import optimize, stats

from softlabel import (alpha0_interval, bootstrap_alpha0, estimate_alpha0, fit_logistic, overdispersion,
                       overdispersion_test, sample_votes)

UNANIMOUS = ([[5, 0], [0, 5], [5, 0], [5, 0]], [[0.5, 0.5], [0.4, 0.6], [0.7, 0.3], [0.6, 0.4]])
EVEN = ([[5, 5]] * 4, [[0.5, 0.5]] * 4)  # less spread than independent votes have
PER_CENT = 2.5, 97.5


def survey(seed, alpha0, n=60, m=7, g=2):
    rng = np.random.default_rng(seed)
    tau = rng.dirichlet(np.full(g, 0.8), size=n)
    return sample_votes(tau, m, alpha0, rng=rng), tau


def betabinom_log_likelihood(counts, tau, alpha0):
    """Of two classes, by SciPy; alpha0 = inf is the binomial."""
    s, m, t, u = counts[:, 0], counts.sum(axis=1), tau[:, 0], tau[:, 1]
    if np.isinf(alpha0):
        return stats.binom.logpmf(s, m, t).sum()
    return stats.betabinom.logpmf(s, m, alpha0 * t, alpha0 * u).sum()


def relative_difference(a, b):
    """Zero where both are 0 or both infinite."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(a == b, 0.0, np.abs(a / b - 1))


# ------------------------------------------------------------------ the bootstrap


@pytest.mark.parametrize("alpha0, g", [(0.1, 2), (3.0, 2), (3.0, 3), (40.0, 2), (40.0, 3), (np.inf, 2), (np.inf, 3)])
def test_bootstrap_is_the_estimate_on_resampled_rows(alpha0, g):
    counts, tau = survey(11, alpha0, n=40, m=9, g=g)
    values = bootstrap_alpha0(counts, tau, 60, rng=5)
    # A resample is 40 items drawn with replacement; the same generator gives the same items here.
    rows = np.random.default_rng(5).integers(40, size=(60, 40))
    expected = [estimate_alpha0(counts[r], tau[r]).alpha0 for r in rows]
    # 1e-4: the accuracy that bootstrap_alpha0 promises.
    assert relative_difference(values, expected).max() < 1e-4
    # The estimates do vary, so that equality says something (0.1 is far above 1e-4).
    inner = [a for a in expected if 0 < a < np.inf]
    assert len(inner) < 30 or np.std(np.log(inner)) > 0.1


@pytest.mark.parametrize("seed", range(20))
def test_accuracy_of_the_bootstrap_where_the_likelihood_is_flat(seed):
    """Many labellers, three classes and nearly independent votes: large estimates, found to 1e-4 as promised."""
    rng = np.random.default_rng(seed)
    tau = rng.dirichlet([0.3, 0.3, 0.3], size=50)
    tau = np.clip(tau, 1e-12, 1) / np.clip(tau, 1e-12, 1).sum(axis=1, keepdims=True)
    counts = sample_votes(tau, 22, rng=rng)
    values = bootstrap_alpha0(counts, tau, 10, rng=seed)
    rows = np.random.default_rng(seed).integers(50, size=(10, 50))
    expected = [estimate_alpha0(counts[r], tau[r]).alpha0 for r in rows]
    assert relative_difference(values, expected).max() < 1e-4


def test_bootstrap_of_many_items_in_slices(monkeypatch):
    """Slices share out a resample: every item is drawn once in the mean, with the multinomial's variance and covariance."""
    monkeypatch.setattr(overdispersion, "ITEMS", 4)
    drawn = list(overdispersion._resamples(10, 20_000, np.random.default_rng(0)))
    assert [(s.start, s.stop) for s, _ in drawn] == [(0, 4), (4, 8), (8, 10)]
    weights = np.hstack([w for _, w in drawn])
    np.testing.assert_array_equal(weights.sum(axis=1), 10)
    expected = np.eye(10) - 1 / 10
    # Five standard errors: of a mean 1 / sqrt(20000), of a covariance at most sqrt(3) times as much.
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=5 / 141)
    np.testing.assert_allclose(np.cov(weights.T), expected, atol=5 * 1.73 / 141)
    counts, tau = survey(1, 3.0, n=10)
    values = bootstrap_alpha0(counts, tau, 20_000, rng=1)
    monkeypatch.undo()
    whole = bootstrap_alpha0(counts, tau, 20_000, rng=2)
    assert stats.ks_2samp(values, whole).pvalue > 1e-4


def test_bootstrap_draws_items_with_replacement_and_equal_probability():
    """Four items have 35 multisets: every value is one of their estimates, as often as the multinomial says."""
    counts, tau = np.array([[6, 1], [2, 5], [0, 7], [5, 2]]), np.array([[0.6, 0.4], [0.5, 0.5], [0.3, 0.7], [0.9, 0.1]])
    sets = list(itertools.combinations_with_replacement(range(4), 4))
    possible = np.array([estimate_alpha0(counts[list(s)], tau[list(s)]).alpha0 for s in sets])
    chance = np.array([stats.multinomial.pmf(np.bincount(s, minlength=4), 4, [0.25] * 4) for s in sets])
    size = 20_000
    values = bootstrap_alpha0(counts, tau, size, rng=1)
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


@pytest.mark.parametrize("labels, low, high", [("truth", 3.3, 11.3), ("votes", 3.0, 10.6)])
def test_interval_ends_on_the_real_data(labels, low, high):
    X, counts, y = gastro()
    tau = fit_logistic(X, y if labels == "truth" else counts).posterior(X)
    values = bootstrap_alpha0(counts, tau, 20_000, rng=2)
    ends = np.percentile(values, PER_CENT)
    # Half a unit of the last digit, and three Monte Carlo errors: at the upper end 0.6 for 500 resamples, so 0.1 for 20,000;
    # at the lower end a sixth of that.
    assert abs(ends[0] - low) < 0.05 + 0.05 and abs(ends[1] - high) < 0.05 + 0.3
    # The error quoted for 500 resamples is right to a third (40 batches know it to 11%).
    batches = np.percentile(values.reshape(40, 500), PER_CENT[1], axis=1)
    assert batches.std(ddof=1) == pytest.approx(0.6, rel=1 / 3)
    assert alpha0_interval(counts, tau, n_resamples=20_000, rng=2) == pytest.approx(ends, rel=1e-12)  # rounding


def test_bootstrap_interval_is_made_of_percentiles():
    counts, tau = survey(1, 3.0)
    values = bootstrap_alpha0(counts, tau, 300, rng=3)
    assert np.isfinite(values).all()
    for level, tails in [(0.95, PER_CENT), (0.5, (25, 75)), (0.9, (5, 95))]:
        interval = alpha0_interval(counts, tau, level=level, n_resamples=300, rng=3)
        assert interval == pytest.approx(np.percentile(values, tails), rel=1e-12)  # rounding


def test_bootstrap_is_reproducible():
    counts, tau = survey(1, 3.0)
    one = bootstrap_alpha0(counts, tau, 50, rng=7)
    assert one.shape == (50,) and bootstrap_alpha0(counts, tau).shape == (500,)
    np.testing.assert_array_equal(one, bootstrap_alpha0(counts, tau, 50, rng=7))
    np.testing.assert_array_equal(one, bootstrap_alpha0(counts, tau, 50, rng=np.random.default_rng(7)))
    assert not np.array_equal(one, bootstrap_alpha0(counts, tau, 50, rng=8))
    assert not np.array_equal(bootstrap_alpha0(counts, tau, 50), bootstrap_alpha0(counts, tau, 50))
    assert alpha0_interval(counts, tau, rng=7) == alpha0_interval(counts, tau, rng=7) != alpha0_interval(counts, tau, rng=8)


def test_items_are_evaluated_once_and_not_once_a_resample(monkeypatch):
    """What makes 500 resamples cheap: their number does not change the work on the items."""
    calls = []
    original = overdispersion.vote_terms
    monkeypatch.setattr(overdispersion, "vote_terms", lambda *args: calls.append(args) or original(*args))
    numbers = []
    for size in (10, 1000):
        calls.clear()
        bootstrap_alpha0(*survey(1, 3.0), n_resamples=size, rng=0)
        numbers.append(len(calls))
    assert numbers[0] == numbers[1] > 0


def test_zero_and_infinity_are_values():
    np.testing.assert_array_equal(bootstrap_alpha0(*UNANIMOUS, n_resamples=30, rng=0), 0)
    np.testing.assert_array_equal(bootstrap_alpha0(*EVEN, n_resamples=30, rng=0), np.inf)
    # One split pair among unanimous ones: 0 exactly where no resampled item is split.
    counts, tau = np.array([[5, 0]] * 5 + [[3, 2]]), np.full((6, 2), 0.5)
    values = bootstrap_alpha0(counts, tau, 200, rng=4)
    split = (np.random.default_rng(4).integers(6, size=(200, 6)) == 5).any(axis=1)
    np.testing.assert_array_equal(values == 0, ~split)
    assert 0.2 < (values == 0).mean() < 0.5  # (5/6)^6 = 0.33, four standard errors


def test_bootstrap_intervals_with_zero_or_infinity():
    assert alpha0_interval(*UNANIMOUS, rng=0) == (0, 0)
    assert alpha0_interval(*EVEN, rng=0) == (np.inf, np.inf)
    # Many resamples infinite: the upper end is, the lower one is a percentile; nothing is interpolated.
    counts, tau = survey(9, 30.0)
    values = bootstrap_alpha0(counts, tau, 500, rng=0)
    assert 0.03 < np.isinf(values).mean() < 0.5
    low, high = alpha0_interval(counts, tau, rng=0)
    assert high == np.inf and low in values
    assert abs(np.mean(values < low) - 0.025) <= 1 / 500  # one resample


# ------------------------------------------------------------------ the likelihood interval


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_likelihood_ends_satisfy_the_likelihood_ratio_equation(seed, level):
    counts, tau = survey(seed, [1.0, 5.0][seed % 2], n=80)

    def minus(log_alpha0):
        return -betabinom_log_likelihood(counts, tau, np.exp(log_alpha0))

    best = optimize.minimize_scalar(minus, bounds=(-5, 9), method="bounded", options={"xatol": 1e-9})
    ends = alpha0_interval(counts, tau, level=level, method="likelihood")
    for end, side in zip(ends, (-1, 1)):
        if side == 1 and 2 * (minus(np.log(1e9)) - best.fun) < stats.chi2.ppf(level, 1):
            assert end == np.inf  # the multinomial is within: once in 24
            continue
        assert side * (np.log(end) - best.x) > 0 and np.isfinite(end)
        # Twice the fall of the log-likelihood is the chi-square quantile; 1e-6 is rounding of betaln in a sum of 80.
        assert 2 * (minus(np.log(end)) - best.fun) == pytest.approx(stats.chi2.ppf(level, 1), abs=1e-6)


def test_likelihood_interval_on_the_real_data():
    X, counts, y = gastro()
    tau = fit_logistic(X, y).posterior(X)
    low, high = alpha0_interval(counts, tau, method="likelihood")
    at = [betabinom_log_likelihood(np.asarray(counts), tau, a) for a in (low, high)]
    # 1e-6: R's log-likelihood at the maximum is quoted to nine decimals.
    np.testing.assert_allclose(at, -132.892933085 - stats.chi2.ppf(0.95, 1) / 2, atol=1e-6, rtol=0)
    assert low < 5.473936 < high < np.inf


def test_ends_of_the_likelihood_interval_on_the_boundary():
    low, high = alpha0_interval(*EVEN, method="likelihood")
    counts, tau = (np.array(a, float) for a in EVEN)
    top = betabinom_log_likelihood(counts, tau, np.inf)
    # Here the best value is infinity itself; 1e-6 as above.
    assert high == np.inf
    assert 2 * (top - betabinom_log_likelihood(counts, tau, low)) == pytest.approx(stats.chi2.ppf(0.95, 1), abs=1e-6)
    low, high = alpha0_interval(*UNANIMOUS, method="likelihood")
    counts, tau = (np.array(a, float) for a in UNANIMOUS)
    top = np.log(0.5 * 0.6 * 0.7 * 0.6)  # alpha0 = 0: the first vote decides
    assert low == 0
    assert 2 * (top - betabinom_log_likelihood(counts, tau, high)) == pytest.approx(stats.chi2.ppf(0.95, 1), abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_upper_end_is_infinite_exactly_where_the_multinomial_is_inside(seed):
    counts, tau = survey(seed, 60.0, n=30)
    fit = estimate_alpha0(counts, tau)
    fall = 2 * (fit.log_likelihood - fit.multinomial_log_likelihood)
    for level in (0.2, 0.5, 0.8, 0.95):
        high = alpha0_interval(counts, tau, level=level, method="likelihood")[1]
        assert (high == np.inf) == (fall <= stats.chi2.ppf(level, 1))


@pytest.mark.parametrize("method", ["likelihood", "bootstrap"])
@pytest.mark.parametrize("seed, alpha0", [(1, 0.5), (2, 5.0), (3, 100.0)])
def test_intervals_widen_with_their_level(method, seed, alpha0):
    counts, tau = survey(seed, alpha0)
    ends = [alpha0_interval(counts, tau, level=level, method=method, rng=0) for level in (0.1, 0.5, 0.8, 0.95, 0.99)]
    low, high = np.transpose(ends)
    assert np.all(np.diff(low) < 0)
    assert np.all((high[1:] > high[:-1]) | np.isinf(high[1:])) and low[0] < high[0]
    assert alpha0_interval(counts, tau, method=method, rng=0) == ends[3]  # the default level
    assert all(type(end) is float for end in ends[0])


def test_coverage_of_the_likelihood_interval():
    size, true = 3000, 5.0
    tau = np.random.default_rng(0).dirichlet([0.8, 0.8], size=76)
    rng = np.random.default_rng(1)
    draws = [sample_votes(tau, 7, true, rng=rng) for _ in range(size)]
    ends = np.array([alpha0_interval(votes, tau, method="likelihood") for votes in draws])
    covered = np.mean((ends[:, 0] <= true) & (true <= ends[:, 1]))
    # Four Monte Carlo errors, 1.6 points. Quantiles of wrong levels, or not halved, would be at 0.90 or 0.99.
    error = np.sqrt(0.95 * 0.05 / size)
    assert abs(covered - 0.95) < 4 * error < 0.02
    # And the two tails share what is left, within a factor of three (n = 76 is not infinite).
    tails = np.mean(ends[:, 0] > true), np.mean(ends[:, 1] < true)
    assert max(tails) < 3 * min(tails)


# ------------------------------------------------------------------ the test of alpha0 = inf


def test_statistic_is_twice_the_gain_in_log_likelihood():
    for seed, alpha0 in itertools.product(range(6), (3.0, 40.0, np.inf)):
        counts, tau = survey(seed, alpha0)
        fit = estimate_alpha0(counts, tau)
        statistic, pvalue = overdispersion_test(counts, tau)
        gain = betabinom_log_likelihood(counts, tau, fit.alpha0) - betabinom_log_likelihood(counts, tau, np.inf)
        assert statistic == pytest.approx(2 * gain, abs=1e-6)  # rounding of betaln at large alpha0
        # Half a chi-square with one degree of freedom, that is a one-sided normal test; 1e-12: rounding.
        expected = stats.norm.sf(np.sqrt(statistic)) if statistic > 0 else 1
        assert pvalue == pytest.approx(expected, rel=1e-12)


def test_result_has_names_and_unpacks():
    result = overdispersion_test(*survey(0, 3.0))
    assert (result.statistic, result.pvalue) == tuple(result)
    assert type(result.statistic) is float and type(result.pvalue) is float


def test_boundary_of_the_test():
    assert overdispersion_test(*EVEN) == (0, 1)
    # Unanimous items: the likelihood at alpha0 = 0 is the product of tau of the first vote, and not its fifth power.
    first = np.log([0.5, 0.6, 0.7, 0.6]).sum()
    assert overdispersion_test(*UNANIMOUS).statistic == pytest.approx(2 * (first - 5 * first), rel=1e-9)


def test_size_of_the_test_under_the_multinomial():
    size = 1500
    tau = np.random.default_rng(2).dirichlet([2, 2], size=800)
    rng = np.random.default_rng(3)
    pvalues = np.array([overdispersion_test(sample_votes(tau, 5, rng=rng), tau).pvalue for _ in range(size)])
    one = pvalues == 1
    # Four Monte Carlo errors (5 points), within which 800 items are infinitely many.
    assert abs(one.mean() - 0.5) < 4 * 0.5 / np.sqrt(size)
    others = pvalues[~one]
    assert np.all(others < 0.5) and stats.kstest(others, stats.uniform(0, 0.5).cdf).pvalue > 1e-3  # fixed seed
    assert abs(np.mean(pvalues < 0.05) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / size)
    # Negative: without the half, p-values would be uniform on (0, 1).
    assert stats.kstest(others, stats.uniform(0, 1).cdf).pvalue < 1e-9


def test_power_of_the_test():
    tau = np.random.default_rng(4).dirichlet([2, 2], size=100)
    rng = np.random.default_rng(5)
    power = [np.mean([overdispersion_test(sample_votes(tau, 7, a, rng=rng), tau).pvalue < 0.05 for _ in range(300)])
             for a in (200.0, 40.0, 5.0)]
    # Phi(z - 1.64) with z = sqrt(n (m - 1) m / 2) / (1 + alpha0), the score test's expansion; 0.1 for its being one, and noise.
    z = np.sqrt(100 * 7 * 6 / 2) / (1 + np.array([200.0, 40.0, 5.0]))
    np.testing.assert_allclose(power, stats.norm.cdf(z - stats.norm.isf(0.05)), atol=0.1)
    assert power[0] < power[1] < power[2] > 0.99
    X, counts, y = gastro()
    assert overdispersion_test(counts, fit_logistic(X, y).posterior(X)).pvalue < 1e-9  # "little evidence" for infinity


# ------------------------------------------------------------------ bad input


def rejects(function, *patterns):
    with pytest.raises(ValueError) as caught:
        function()
    for pattern in patterns:
        assert re.search(pattern, str(caught.value)), f"{caught.value} does not match {pattern}"


@pytest.mark.parametrize("function", [
    bootstrap_alpha0, alpha0_interval, overdispersion_test, lambda c, t: alpha0_interval(c, t, method="likelihood"),
], ids=["bootstrap_alpha0", "alpha0_interval", "overdispersion_test", "likelihood"])
def test_bad_votes_and_probabilities(function):
    counts, tau = [[3, 1], [0, 2], [4, 0]], [[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]]
    rejects(lambda: function([[3, 1], [0, -2], [4, 0]], tau), r"counts\[1, 1\] is -2", "whole numbers")
    rejects(lambda: function([[3, 1], [0, 2.5], [4, 0]], tau), r"counts\[1, 1\] is 2.5", "whole numbers")
    rejects(lambda: function([[3, 1], [0, np.nan], [4, 0]], tau), r"counts\[1, 1\] is nan", "finite")
    rejects(lambda: function(counts, [[0.5, 0.5], [0.2, 0.7], [0.9, 0.1]]), r"tau\[1\] sums to 0.9", "sum to 1")
    rejects(lambda: function(counts, tau[:2]), r"\(3, 2\)", r"\(2, 2\)")
    rejects(lambda: function(counts, [[0.5, 0.5], [1.0, 0.0], [0.9, 0.1]]), r"counts\[1, 1\] is 2", "tau is 0")
    rejects(lambda: function([[1, 0], [0, 1], [0, 0]], tau), "alpha0", "more than one vote")
    rejects(lambda: function([[2, 0], [0, 2], [1, 0]], [[1, 0], [0, 1], [0.9, 0.1]]), "alpha0", "0 or 1")


@pytest.mark.parametrize("bad", [0, -3, 2.5, np.nan, np.inf, "many", None])
def test_bad_number_of_resamples(bad):
    rejects(lambda: bootstrap_alpha0(*UNANIMOUS, n_resamples=bad), "n_resamples", "whole number of at least 1", str(bad))
    rejects(lambda: alpha0_interval(*UNANIMOUS, n_resamples=bad), "n_resamples", str(bad))


@pytest.mark.parametrize("method", ["likelihood", "bootstrap"])
@pytest.mark.parametrize("bad", [0, 1, -0.5, 95, np.nan, "0.95", None])
def test_bad_level(method, bad):
    rejects(lambda: alpha0_interval(*UNANIMOUS, level=bad, method=method), "level", "between 0 and 1", str(bad))


@pytest.mark.parametrize("bad", ["wald", "", None, 1])
def test_bad_method(bad):
    rejects(lambda: alpha0_interval(*UNANIMOUS, method=bad), "method", "bootstrap", "likelihood", str(bad))
