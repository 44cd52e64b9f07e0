"""Goodness of fit: the numbers by hand, from exact probabilities and by simulation; the figures show the numbers."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from reference import exact_logpmf, gastro

from softlabel import fit_logistic, sample_votes
from softlabel.book.diagnostics import average_posterior, joint_test, plot_votes_against_expectation
from softlabel.vote_models import prediction_band, share_in_band

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

COUNTS = np.array([[0, 3], [3, 0], [3, 0], [1, 2], [1, 2], [1, 2]])
TAU = np.array([[0.1, 0.9], [0.8, 0.2], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.2, 0.8]])


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


# ------------------------------------------------------------------ average posterior


def test_average_posterior_by_hand():
    table = average_posterior(COUNTS, TAU)
    assert list(table.columns) == ["items", "mean", "stderr"] and table.index.name == "votes"
    assert list(table.index) == [0, 1, 2, 3] and list(table["items"]) == [1, 3, 0, 2]
    assert table["items"].dtype.kind == "i"
    # Votes 3: (0.8 + 0.6) / 2, sd 0.1 sqrt(2); votes 1: 0.9 / 3, squares 0.04 + 0.01 + 0.01 over 2. Rounding only.
    np.testing.assert_allclose(table["mean"], [0.1, 0.3, np.nan, 0.7], rtol=1e-12)
    np.testing.assert_allclose(table["stderr"], [np.nan, np.sqrt(0.03 / 3), np.nan, 0.1], rtol=1e-12)


def test_average_posterior_matches_pandas_by_index():
    index = list("abcdef")
    counts, tau = pd.DataFrame(COUNTS, index), pd.DataFrame(TAU, index)
    pd.testing.assert_frame_equal(average_posterior(counts, tau.iloc[::-1]), average_posterior(COUNTS, TAU))


def test_average_posterior_of_more_classes_is_that_of_the_first():
    tau = np.column_stack([TAU[:, 0], TAU[:, 1] / 4, 3 * TAU[:, 1] / 4])
    counts = np.column_stack([COUNTS[:, 0], np.zeros(6, int), COUNTS[:, 1]])
    pd.testing.assert_frame_equal(average_posterior(counts, tau), average_posterior(COUNTS, TAU))


def test_average_posterior_of_the_real_data():
    X, counts, y = gastro()
    tau = fit_logistic(X, y).posterior(X)
    table = average_posterior(counts, tau)
    assert list(table["items"]) == [4, 4, 6, 3, 7, 7, 13, 32]
    for v in range(8):
        group = tau[np.asarray(counts)[:, 0] == v, 0]
        assert table.at[v, "mean"] == pytest.approx(group.mean(), rel=1e-12)  # rounding
        assert table.at[v, "stderr"] == pytest.approx(group.std(ddof=1) / np.sqrt(len(group)), rel=1e-12)
    assert table.at[0, "mean"] < 0.5 < 0.9 < table.at[7, "mean"]


# ------------------------------------------------------------------ prediction band


def exact_pmf(t, m, alpha0):
    return np.array([float(np.exp(float(exact_logpmf([s, m - s], [t, 1 - t], alpha0)))) for s in range(m + 1)])


@pytest.mark.parametrize("alpha0", [1e-3, 0.3, 5.47, 60.0, 1e6, 1e12, np.inf])
@pytest.mark.parametrize("m", [1, 7, 25])
def test_band_is_made_of_exact_quantiles(m, alpha0):
    for level in (0.5, 0.8, 0.95):
        t = np.array([1e-6, 0.013, 0.21, 0.487, 0.73, 0.951, 1 - 1e-6])
        low, high = prediction_band(t, m, alpha0, level)
        for k in range(len(t)):
            below = np.cumsum(exact_pmf(t[k], m, alpha0))
            # The first count at which the distribution function reaches the tail; none is within 1e-9 of it.
            tails = (1 - level) / 2, (1 + level) / 2
            assert np.abs(below[:, None] - tails).min() > 1e-9
            assert [low[k], high[k]] == [int(np.argmax(below >= tail)) for tail in tails], t[k]
    if m > 1 and 0.1 < alpha0 < 1e3:  # negative: not the band of the binomial, nor of half or double alpha0
        t = np.linspace(0.01, 0.99, 99)
        for other in (np.inf, alpha0 / 2, 2 * alpha0):
            assert (prediction_band(t, m, alpha0)[0] != prediction_band(t, m, other)[0]).any()


@pytest.mark.parametrize("alpha0", [0.5, 5.47, np.inf])
def test_band_covers_simulated_votes(alpha0):
    rng = np.random.default_rng(0)
    tau = rng.dirichlet([1, 1], size=3000)
    counts = sample_votes(tau, 7, alpha0, rng=rng)
    for level in (0.5, 0.8, 0.95):
        low, high = prediction_band(tau[:, 0], 7, alpha0, level)
        inside = np.mean((counts[:, 0] >= low) & (counts[:, 0] <= high))
        assert inside > level - 4 * np.sqrt(level * (1 - level) / 3000)  # four Monte Carlo errors
        assert inside == share_in_band(counts, tau, alpha0, level)
    # Not by being the whole range: the binomial band does not hold overdispersed votes.
    if alpha0 < np.inf:
        assert share_in_band(counts, tau, np.inf) < share_in_band(counts, tau, alpha0) - 0.02


def test_band_at_certainty():
    for alpha0 in (1e-3, 5.0, np.inf):
        np.testing.assert_array_equal(prediction_band([0.0, 1.0], 7, alpha0), [[0, 7], [0, 7]])


def test_share_in_band_by_hand():
    # Binomial, m = 3, t = 1/2: P(0) = 1/8, so that the band of level 0.5 is 1 .. 2, and that of 0.8 is all of 0 .. 3.
    counts, tau = [[0, 3], [1, 2], [2, 1], [3, 0]], [[0.5, 0.5]] * 4
    assert share_in_band(counts, tau, np.inf, level=0.5) == 0.5
    assert share_in_band(counts, tau, np.inf, level=0.8) == 1
    # Unequal numbers of votes: each item against its own band. m = 1 holds everything, m = 3 as above.
    assert share_in_band([*counts, [1, 0]], [*tau, [0.5, 0.5]], np.inf, level=0.5) == 3 / 5
    # An item without votes says nothing, and is not counted.
    assert share_in_band([*counts, [0, 0]], [*tau, [0.5, 0.5]], np.inf, level=0.5) == 0.5


# ------------------------------------------------------------------ a table as a whole


def test_joint_test_by_hand():
    # Apart, the squares of z-values add up: 1 + 4. Correlated by .6: (1 - 2 * .6 * 2 + 4) / (1 - .36), z-values 1 and 2.
    assert joint_test([3, -4], np.diag([9, 4])) == pytest.approx((5, 2, np.exp(-5 / 2)), rel=1e-12)
    small = 1e-4  # errors of percentages: their covariance is no rounding error
    cov = small**2 * np.array([[9, 3.6], [3.6, 4]])
    assert joint_test([3 * small, 4 * small], cov) == pytest.approx((2.6 / 0.64, 2, np.exp(-1.3 / 0.64)), rel=1e-12)


def test_joint_test_keeps_its_level_and_takes_the_correlations_into_account():
    """Four cells over one numerator: uniform p-values with their covariance, and not with its diagonal."""
    rng = np.random.default_rng(3)
    cov = 0.8 + 0.2 * np.eye(4)
    draws = rng.multivariate_normal(np.zeros(4), cov, size=4000)
    pvalues = np.array([joint_test(d, cov).pvalue for d in draws])
    for level in (0.05, 0.5):  # four standard errors
        assert abs(np.mean(pvalues < level) - level) < 4 * np.sqrt(level * (1 - level) / 4000)
    apart = np.array([joint_test(d, np.diag(np.diag(cov))).pvalue for d in draws])
    assert np.mean(apart < 0.05) > 0.08
    # A shift against the correlation is seen, one of the same size along it is not.
    assert joint_test([1, -1, 1, -1], cov).pvalue < 0.001 and joint_test([1, 1, 1, 1], cov).pvalue > 0.5


@pytest.mark.parametrize("difference, cov, message", [
    ([1, 2], np.eye(3), r"2 by 2.*\(3, 3\)"),
    ([1, 2], [[1, 1], [1, 1]], "positive definite"), ([1, 2], [[1, 0.5], [0, 1]], "symmetric"),
    ([1e-4, 2e-4], [[1e-9, 5e-10], [0, 1e-9]], "symmetric"), ([1, 2], -np.eye(2), "positive definite"),
    ([1, np.nan], np.eye(2), r"difference\[1\] is nan"), ([1, 2], [1, 2], "cov.*2-dimensional"),
])  # fmt: skip
def test_bad_arguments_of_a_joint_test(difference, cov, message):
    with pytest.raises(ValueError, match=message):
        joint_test(difference, cov)


# ------------------------------------------------------------------ figures


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("alpha0", [5.47, np.inf])
def test_plot_of_votes_shows_points_mean_and_band(ax, alpha0, level):
    rng = np.random.default_rng(0)
    tau = rng.dirichlet([1, 1], size=30)
    counts = sample_votes(tau, 7, 5.0, rng=rng)
    plot_votes_against_expectation(counts, tau, alpha0, ax, level=level)
    lines = ax.get_lines()
    points = [line for line in lines if line.get_linestyle() == "None"]
    dashed = [line for line in lines if line.get_linestyle() == "--"]
    (mean,) = [line for line in lines if line.get_linestyle() == "-"]
    assert len(points) == 1 and len(dashed) == 2
    order = np.argsort(points[0].get_xdata())
    by_expectation = np.argsort(tau[:, 0])
    np.testing.assert_allclose(points[0].get_xdata()[order], 7 * tau[by_expectation, 0], rtol=1e-12)
    np.testing.assert_array_equal(points[0].get_ydata()[order], counts[by_expectation, 0])
    np.testing.assert_array_equal(mean.get_xdata(), mean.get_ydata())  # the theoretical mean is the diagonal
    assert mean.get_xdata().min() < 0.05 and mean.get_xdata().max() > 6.95
    t = dashed[0].get_xdata() / 7
    low, high = prediction_band(t, 7, alpha0, level)
    drawn = sorted((line.get_ydata() for line in dashed), key=np.sum)
    np.testing.assert_array_equal(drawn[0], low)
    np.testing.assert_array_equal(drawn[1], high)
    assert len(t) > 100 and t.min() < 0.01 and t.max() > 0.99
    assert list(ax.get_xticks()) == list(range(8)) and "expected" in ax.get_xlabel() and "observed" in ax.get_ylabel()


def test_the_plot_keeps_to_its_axes():
    before = plt.get_fignums()
    axes = Figure().subplots()
    assert plot_votes_against_expectation(COUNTS, TAU, 5.0, axes) is None
    assert axes.has_data() and plt.get_fignums() == before


# ------------------------------------------------------------------ bad input


FUNCTIONS = {
    "average_posterior": average_posterior,
    "plot_votes_against_expectation": lambda c, t: plot_votes_against_expectation(c, t, 5.0, Figure().subplots()),
    "share_in_band": lambda c, t: share_in_band(c, t, 5.0),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bad_votes_and_probabilities(name):
    function = FUNCTIONS[name]
    unequal = np.array([[0, 3], [3, 0], [3, 1], [1, 2], [1, 2], [1, 2]])
    cases = [
        (COUNTS - 1, TAU, r"counts\[0, 0\] is -1.*whole numbers"),
        (COUNTS, TAU / 2, r"tau\[0\] sums to 0.5.*sum to 1"),
        (COUNTS[:3], TAU, r"\(3, 2\).*\(6, 2\)|\(6, 2\).*\(3, 2\)"),
    ]
    if name != "share_in_band":
        cases.append((unequal, TAU, r"counts\[2\] has 4 votes.*counts\[0\] has 3.*same number"))
    else:
        cases.append((np.zeros((6, 2)), TAU, "no item has a vote"))
    for counts, tau, message in cases:
        with pytest.raises(ValueError, match=message):
            function(counts, tau)


@pytest.mark.parametrize("argument, bad, message", [
    *(("level", bad, f"level.*between 0 and 1.*{bad}") for bad in (0, 1, -0.5, 95, np.nan, "0.95", None)),
    *(("alpha0", bad, "alpha0") for bad in (0, -1, np.nan, "x", None, [1.0, 2.0])),
    *(("m", bad, r"\bm\b") for bad in (0, -1, 2.5, np.nan, np.inf, "x", None, [3, 4])),
    ("probability", [0.5, 1.5], r"probability\[1\] is 1.5.*between 0 and 1"),
    ("probability", [0.5, -0.1], r"probability\[1\] is -0.1"), ("probability", [0.5, np.nan], r"probability\[1\] is nan"),
    ("probability", [], "probability.*no elements"), ("probability", 0.5, "probability.*1-dimensional"),
    ("probability", [[0.5]], "probability.*1-dimensional"), ("probability", ["x"], "probability.*numbers"),
])  # fmt: skip
def test_bad_arguments_of_a_band(argument, bad, message):
    with pytest.raises(ValueError, match=message):
        prediction_band(**{"probability": [0.5], "m": 7, "alpha0": 5.0, argument: bad})
    if argument in ("level", "alpha0"):
        with pytest.raises(ValueError, match=argument):
            share_in_band(COUNTS, TAU, **{"alpha0": 5.0, argument: bad})
