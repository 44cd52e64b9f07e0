"""Intervals and tests of Firth fits: closed forms, brute force, coverage of separated labels, and units of the features."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from scipy.special import chdtrc, expit, log_expit
from test_logistic import penalised

from softlabel import fit_logistic, sample_votes

CUT = 3.841458820694124  # the 95% quantile of chi-square with one degree


def fall(fit, X, counts, k, value):
    """Twice the fall from the fit to the best with coefficient k held, by a search without derivatives from several starts."""
    free, likelihood = np.arange(len(fit.coef)) != k, penalised(X, counts)

    def cost(rest):
        beta = np.full(len(fit.coef), float(value))
        beta[free] = rest
        return -likelihood(beta)

    starts = [fit.coef[free] * factor for factor in (1, 0.3, 3)]
    options = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 5000, "maxfev": 5000}
    best = min(optimize.minimize(cost, start, method="Nelder-Mead", options=options).fun for start in starts)
    return 2 * (likelihood(fit.coef) + best)


def signs(seed):
    """The review of 12 of 120 items that carry a sign, all of them positive: its coefficient is 2."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=120), "sign": (np.arange(120) < 12) * 1.0})
    y = (rng.random(120) < expit(-0.4 + 0.5 * X["a"] + 2 * X["sign"])).astype(int)
    y[:12] = 1
    return X, y.to_numpy(copy=True)


@pytest.mark.parametrize("positive, negative", [(7, 2), (9, 0), (0, 1), (40, 60)])
def test_a_proportion_by_its_closed_form(positive, negative):
    """Without features the penalised likelihood is tau^(s + 1/2) (1 - tau)^(f + 1/2), a beta density of Jeffreys."""
    s, f = positive + 0.5, negative + 0.5
    fit = fit_logistic(np.empty((positive + negative, 0)), np.repeat([1, 0], [positive, negative]), method="firth")

    def twice_the_fall(beta):
        return 2 * (s * np.log(s / (s + f)) + f * np.log(f / (s + f)) - s * log_expit(beta) - f * log_expit(-beta))

    best = np.log(s / f)
    ends = [optimize.brentq(lambda b: twice_the_fall(b) - CUT, best, best + far) for far in (-60, 60)]
    np.testing.assert_allclose(fit.coef, [best], atol=1e-7)
    np.testing.assert_allclose(fit.conf_int()[0], ends, atol=1e-5)
    row = fit.summary().loc["intercept"]
    assert row["z"] == pytest.approx(np.sign(best) * np.sqrt(twice_the_fall(0)), abs=1e-5)
    assert row["pvalue"] == pytest.approx(chdtrc(1, twice_the_fall(0)), rel=1e-4)
    # Negative: not the likelihood without a penalty, nor with twice as much.
    for wrong in (0, 1):
        s, f = max(positive + wrong, 1e-9), max(negative + wrong, 1e-9)
        assert np.abs([twice_the_fall(end) - CUT for end in ends]).max() > 0.01


@pytest.mark.parametrize("separated", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_ends_and_roots_by_brute_force(separated, seed):
    X, y = signs(seed)
    X, y = X.to_numpy()[:40], np.where(np.arange(40) < 12, np.arange(40) % 3 > 0, y[:40]) * 1 if not separated else y[:40]
    counts = np.column_stack([y, 1 - y])
    fit = fit_logistic(X, y, method="firth")
    assert (fit.separation != "none") == separated
    ends, z = fit.conf_int(), fit.summary()["z"]
    for k in range(3):
        assert ends[k, 0] < fit.coef[k] < ends[k, 1]
        for end in ends[k]:
            assert fall(fit, X, counts, k, end) == pytest.approx(CUT, abs=1e-4)
        assert z.iloc[k] * abs(z.iloc[k]) == pytest.approx(np.sign(fit.coef[k]) * fall(fit, X, counts, k, 0), abs=1e-4)
    wider = fit.conf_int(level=0.99)
    assert (wider[:, 0] < ends[:, 0]).all() and (ends[:, 1] < wider[:, 1]).all()


def test_of_several_tops_the_highest_counts():
    """Fourteen items, completely separated: with the last coefficient held at 4.2, a search from nearby finds a lower top."""
    rng = np.random.default_rng(3)
    X = rng.normal((2, 0), size=(14, 2))
    y = (X[:, 0] + 0.5 * X[:, 1] > 2).astype(int)
    fit = fit_logistic(X, y, method="firth")
    counts = np.column_stack([y, 1 - y])
    low, high = fit.conf_int()[2]
    assert (low, high) == pytest.approx((-0.082, 12.056), abs=1e-3)
    assert fall(fit, X, counts, 2, 4.192) < 1 and fall(fit, X, counts, 2, high) == pytest.approx(CUT, abs=1e-3)


def test_an_end_that_rounding_hides_is_infinite():
    """Of votes that scatter far too much the fall, over the dispersion, is too small as far out as H can be told."""
    counts = np.array([[0, 40], [40, 0], [0, 40], [6, 34], [39, 1], [3, 37]])
    fit = fit_logistic(X := np.array([[-1.0], [1.0], [-1.0], [0.0], [0.0], [0.0]]), counts, method="firth")
    low, high = fit.conf_int("profile")[1]
    assert fit.separation == "quasi" and fit.dispersion > 10 and high == np.inf
    assert fall(fit, X, counts, 1, low) / fit.dispersion == pytest.approx(CUT, abs=1e-3)
    assert fall(fit, X, counts, 1, 25.0) / fit.dispersion < CUT  # where weights are still 1e-11


def test_intervals_of_separated_labels_hold_the_coefficient():
    """In at least 93% of data sets; two standard errors of 60 are 7 points. Those of the sandwich hold it in none."""
    held = dict.fromkeys(("profile", "sandwich"), 0)
    for seed in range(60):
        X, y = signs(seed)
        fit = fit_logistic(X, y, method="firth")
        assert fit.separation == "quasi"
        for kind in held:
            low, high = fit.conf_int(kind)[2]
            held[kind] += low <= 2 <= high
    assert held["profile"] >= 0.86 * 60 and held["sandwich"] == 0
    one = fit.summary()
    pd.testing.assert_frame_equal(one, fit.summary("profile"))
    np.testing.assert_array_equal(one[["lower", "upper"]], fit.conf_int())
    np.testing.assert_array_equal(one["stderr"], fit.stderr("model"))
    assert 1 < one.loc["sign", "lower"] < 2.2 and 7 < one.loc["sign", "upper"] < 10 and one.loc["sign", "pvalue"] > 1e-6


def test_votes_that_scatter_too_much_have_wider_intervals():
    """Twice the fall is divided by the dispersion, if that is above one and items have several votes."""
    X = np.random.default_rng(0).normal(size=(80, 1))
    tau = expit(X)
    counts = sample_votes(np.hstack([tau, 1 - tau]), 5, 0.5, rng=1)
    fit = fit_logistic(X, counts, method="firth")
    assert fit.dispersion > 2.5
    for k in range(2):
        for end in fit.conf_int()[k]:
            assert fall(fit, X, counts, k, end) == pytest.approx(CUT * fit.dispersion, abs=1e-3)
    np.testing.assert_allclose(np.diff(fit.conf_int()), np.diff(fit.conf_int("sandwich")), rtol=0.3)
    even = np.column_stack([np.full(80, 3), np.full(80, 2)])  # less than by chance: divided by nothing
    fit = fit_logistic(X, even, method="firth")
    assert fit.dispersion < 0.1 and fall(fit, X, even, 1, fit.conf_int()[1, 1]) == pytest.approx(CUT, abs=1e-4)
    y = (X[:, 0] > 0) * 1
    y[[X.argmax(), X.argmin()]] = [0, 1]  # single votes, two of them outliers
    fit = fit_logistic(X, y, method="firth")
    assert fit.dispersion > 1.1
    assert fall(fit, X, np.column_stack([y, 1 - y]), 1, fit.conf_int()[1, 0]) == pytest.approx(CUT, abs=1e-3)


def test_units_do_not_matter_and_the_data_are_kept():
    X, y = signs(5)
    fit = fit_logistic(X, y, method="firth")
    for scale in (1e-200, 1e-3, 1e6, 1e200):
        other = fit_logistic(X * scale, y, method="firth")
        np.testing.assert_allclose(other.conf_int()[1:] * scale, fit.conf_int()[1:], rtol=1e-5)
        np.testing.assert_allclose(other.summary()["z"], fit.summary()["z"], rtol=1e-5)
    moved = fit_logistic(X.assign(a=X["a"] + 100), y, method="firth")  # an intercept far from all items is another number
    np.testing.assert_allclose(moved.conf_int()[1:], fit.conf_int()[1:], rtol=1e-4)
    assert moved.conf_int()[0, 0] < fit.coef[0] - 100 * fit.coef[1] < moved.conf_int()[0, 1]
    before, values = fit.conf_int(), X.to_numpy(copy=True)
    again = fit_logistic(values, y, method="firth")
    values *= 2
    y[:] = 1 - y
    np.testing.assert_allclose(again.conf_int(), before, rtol=1e-6)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fit)).conf_int(), before)


def test_what_has_no_profile():
    X, y = signs(1)
    fit = fit_logistic(X[["a"]], y)
    np.testing.assert_array_equal(fit.conf_int(), fit.conf_int("sandwich"))
    reach = 1.959963984540054 * fit.stderr()
    np.testing.assert_allclose(fit.conf_int(), np.column_stack([fit.coef - reach, fit.coef + reach]), rtol=1e-12)
    with pytest.raises(ValueError, match="kind='profile' is for fits by method='firth'"):
        fit.summary("profile")


def test_large_fits_have_a_profile_only_when_asked():
    """n (p + 1)^3 of more than two million: errors of "model" if separated, which are too wide, and else of the sandwich."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(1300, 10)), np.arange(1300) < 50])
    y = (rng.random(1300) < expit(X[:, 0])) * 1
    fit = fit_logistic(X, y, method="firth")
    assert fit.separation == "none"
    np.testing.assert_array_equal(fit.conf_int(), fit.conf_int("sandwich"))
    y[:50] = 1
    fit = fit_logistic(X, y, method="firth")
    assert fit.separation == "quasi"
    np.testing.assert_array_equal(fit.conf_int(), fit.conf_int("model"))
    pd.testing.assert_frame_equal(fit.summary(), fit.summary("model"))
    smaller = fit_logistic(X[:1100], y[:1100], method="firth")
    ends = smaller.conf_int()
    np.testing.assert_array_equal(ends[11], smaller.conf_int("profile")[11])
    assert ends[11, 0] > smaller.conf_int("model")[11, 0]
