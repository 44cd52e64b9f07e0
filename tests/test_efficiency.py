"""relative_efficiency and godambe_information against the formula, its limits and the paper's printed values."""

import numpy as np
import pytest

from softlabel import TwoClassNormal, godambe_information, relative_efficiency, variance_inflation


def test_values_by_hand():
    assert relative_efficiency(5, 1) == pytest.approx(5 * 2 / 6, rel=1e-15)
    assert relative_efficiency(10, 10) == pytest.approx(5.5, rel=1e-15)
    assert relative_efficiency(1, 3.7) == 1  # one noisy label is worth one true label
    assert relative_efficiency(3, 1) == pytest.approx(1.5, rel=1e-15)
    assert type(relative_efficiency(5, 1)) is float


def test_formula_on_a_grid():
    m, a = np.array([[1.0], [2], [5], [100]]), np.array([1e-3, 0.5, 1, 7, 1e4])
    np.testing.assert_allclose(relative_efficiency(m, a), m * (1 + a) / (m + a), rtol=1e-13)  # rounding
    assert relative_efficiency([1, 5], 2.0).shape == (2,)


def test_is_m_divided_by_the_inflation_of_the_variance():
    m, a = np.array([[1.0], [2], [5], [100]]), np.array([1e-3, 0.5, 1, 7, 1e4, np.inf])
    np.testing.assert_allclose(relative_efficiency(m, a) * variance_inflation(m, a), np.broadcast_to(m, (4, 6)), rtol=1e-13)


def test_limits_of_remark_1():
    for alpha0 in (0.5, 1.0, 10.0):
        assert relative_efficiency(1e15, alpha0) == pytest.approx(1 + alpha0, rel=1e-12)
        assert relative_efficiency(1e300, alpha0) == pytest.approx(1 + alpha0, rel=1e-15)
    for m in (1, 5, 50):
        assert relative_efficiency(m, 1e-300) == 1
        assert relative_efficiency(m, 1e300) == relative_efficiency(m, np.inf) == m
    # The first order of the approach: (m - 1) alpha0 / m, which an answer rounded to 1 would not have.
    assert relative_efficiency(5, 1e-9) - 1 == pytest.approx(4e-9 / 5, rel=1e-6)


def test_extremes_meet_without_nan():
    assert relative_efficiency(1e300, 1e300) == pytest.approx(5e299, rel=1e-12)
    assert relative_efficiency(1e300, np.inf) == 1e300
    assert relative_efficiency(1e300, 1e-300) == 1


def test_rises_with_both_and_stays_within_its_bounds():
    m, a = np.arange(1.0, 60)[:, None], np.logspace(-6, 6, 61)
    re = relative_efficiency(m, a)
    assert np.all(re >= 1) and np.all(re <= np.minimum(m, 1 + a) * (1 + 1e-15))
    assert np.all(np.diff(re[1:], axis=1) > 0) and np.all(np.diff(re, axis=0) > 0)


@pytest.mark.parametrize("m, row", [
    # Limits printed in Tables 1 and 3 of the paper, alpha0 = 1, 10, 100, 1000.
    (5, [1.67, 3.67, 4.81, 4.98]),
    (10, [1.82, 5.50, 9.18, 9.91]),
    (20, [1.90, 7.33, 16.83, 19.63]),
    (50, [1.96, 9.17, 33.67, 47.67]),
    (100, [1.98, 10.00, 50.50, 91.00]),
])
def test_printed_limits(m, row):
    # Half a unit of the last printed digit.
    np.testing.assert_allclose(relative_efficiency(m, [1, 10, 100, 1000]), row, atol=0.005 + 1e-12)


def test_godambe_information_is_the_multiple_of_theorem_1():
    fisher = TwoClassNormal.canonical(2.0).fisher_information()
    for m, a in [(1, 0.3), (5, 1.0), (50, 1000.0)]:
        np.testing.assert_allclose(godambe_information(fisher, m, a), m * (1 + a) / (m + a) * fisher, rtol=1e-13)
    np.testing.assert_allclose(godambe_information(fisher, 7, np.inf), 7 * fisher, rtol=1e-15)


def test_godambe_information_leaves_its_input_alone():
    fisher = np.array([[2.0, 0.5], [0.5, 1.0]])
    result = godambe_information(fisher, 1, 2.0)
    result[0, 0] = -1
    np.testing.assert_array_equal(fisher, [[2.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize("m, alpha0", [([3, 4], 1.0), (3, [1.0, 2.0])])
def test_godambe_information_of_several_m_is_no_mixture_of_columns(m, alpha0):
    """A matrix for each, or an error: never columns scaled by different factors."""
    try:
        result = godambe_information(np.eye(2), m, alpha0)
    except ValueError as error:
        assert "m" in str(error) or "alpha0" in str(error)
        return
    expected = [godambe_information(np.eye(2), *pair) for pair in np.broadcast(m, alpha0)]
    np.testing.assert_allclose(result, expected)
