"""What a caller may pass instead of float arrays: pandas objects, lists, booleans, objects; and what not."""

import numpy as np
import pandas as pd
import pytest

from softlabel import dm_logpmf, estimate_alpha0, find_separation, fit_logistic, fit_logistic_batch

X = [[0.0, 1], [1, 0], [2, 5], [3, 1], [4, -1], [2, 2]]
Y = [0, 1, 0, 1, 0, 1]
C = [[1, 2], [2, 2], [0, 3], [3, 0], [1, 1], [0, 0]]
NAMES = list("uvwxyz")
FRAME = pd.DataFrame(X, columns=["size", "shape"], index=NAMES)
LABELS = pd.Series(Y, index=NAMES)
COUNTS = pd.DataFrame(C, columns=["pos", "neg"], index=NAMES)
COEF = fit_logistic(X, Y).coef


@pytest.mark.parametrize("features", [X, tuple(map(tuple, X)), np.array(X), np.array(X, dtype=object), FRAME,
                                      FRAME.astype("float32"), FRAME.astype("Float64"), FRAME.astype("Int64"),
                                      FRAME.astype(object), np.asfortranarray(X)])
def test_features_accepted(features):
    np.testing.assert_allclose(fit_logistic(features, Y).coef, COEF, rtol=1e-12)
    assert find_separation(features, Y) == "none"


@pytest.mark.parametrize("labels", [Y, tuple(Y), np.array(Y, bool), np.array(Y, float), np.array(Y, "uint8"), LABELS,
                                    LABELS.astype(bool), LABELS.astype("boolean"), LABELS.astype("Int64"),
                                    LABELS.astype(object), LABELS.astype(float)])
def test_labels_accepted(labels):
    for features in (X, FRAME):
        np.testing.assert_array_equal(fit_logistic(features, labels).coef, COEF)
    assert find_separation(X, labels) == "none"


def test_counts_accepted():
    expected = fit_logistic(X, C).coef
    for counts in (np.array(C), COUNTS, COUNTS.astype("Int64"), COUNTS.astype(float), np.array(C, "uint8")):
        np.testing.assert_allclose(fit_logistic(FRAME, counts).coef, expected, rtol=1e-12)


def test_small_unsigned_counts_do_not_wrap():
    """200 + 100 votes in uint8 would add up to 44."""
    votes = np.array([[200, 100], [50, 250], [120, 180]], dtype="uint8")
    x = [[0.0], [1.0], [3.0]]
    np.testing.assert_allclose(fit_logistic(x, votes).coef, fit_logistic(x, votes.astype(float)).coef, rtol=1e-12)
    tau = [[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]]
    np.testing.assert_array_equal(dm_logpmf(votes, tau, 2.0), dm_logpmf(votes.astype(float), tau, 2.0))


def test_batch_accepts_lists_and_booleans():
    expected = fit_logistic_batch(np.array([X, X]), np.array([Y, Y])).coef
    np.testing.assert_array_equal(fit_logistic_batch([X, X], [Y, Y]).coef, expected)
    np.testing.assert_array_equal(fit_logistic_batch([X, X], np.array([Y, Y], bool)).coef, expected)


def test_names_are_carried_into_the_result():
    fit = fit_logistic(FRAME, LABELS)
    assert fit.feature_names == ["size", "shape"] and "shape" in repr(fit)
    assert list(fit.summary().index[1:]) == ["size", "shape"]
    assert len(set(fit_logistic(X, Y).feature_names)) == 2


def test_rows_are_matched_by_index():
    order = [3, 0, 5, 1, 4, 2]
    for other in (LABELS, COUNTS):
        plain = fit_logistic(FRAME, other)
        np.testing.assert_allclose(fit_logistic(FRAME, other.iloc[order]).coef, plain.coef, rtol=1e-10)
        np.testing.assert_allclose(fit_logistic(FRAME.iloc[order], other).coef, plain.coef, rtol=1e-10)
        assert find_separation(FRAME, other.iloc[order]) == find_separation(FRAME, other)
    # Matched by position the answer would be another one.
    assert np.abs(fit_logistic(X, np.array(Y)[order]).coef - COEF).max() > 0.1


@pytest.mark.parametrize("function", [fit_logistic, find_separation])
def test_indices_that_do_not_match(function):
    with pytest.raises(ValueError, match="y_or_counts.*'z'"):
        function(FRAME, LABELS.rename({"z": "q"}))
    with pytest.raises(ValueError, match="y_or_counts.*'z'"):
        function(FRAME, LABELS.drop("z"))
    with pytest.raises(ValueError, match="y_or_counts.*'w'"):
        function(FRAME.drop("w"), LABELS)
    with pytest.raises(ValueError, match="index.*'u' more than once"):
        function(FRAME.set_axis(list("uuwxyz")), LABELS.set_axis(list("uwuxyz")))


def test_columns_of_new_items_are_matched_by_name():
    fit = fit_logistic(FRAME, LABELS)
    expected = fit.posterior(X)
    np.testing.assert_allclose(fit.posterior(FRAME), expected, rtol=1e-15)  # a product in another order
    np.testing.assert_allclose(fit.posterior(FRAME[["shape", "size"]]), expected, rtol=1e-15)  # a product in another order
    np.testing.assert_array_equal(fit.predict(FRAME[["shape", "size"]]), fit.predict(X))
    with pytest.raises(ValueError, match="X.*shape"):
        fit.posterior(FRAME.rename(columns={"shape": "colour"}))


@pytest.mark.parametrize("frame, words", [
    (FRAME.assign(shape=list("abcdef")), ["X", "shape"]),
    (FRAME.assign(shape=pd.Categorical(list("aabbcc"))), ["X", "shape"]),
    (FRAME.assign(shape=pd.date_range("2020-01-01", periods=6)), ["X", "shape"]),
    (FRAME.assign(shape=[1, 2, 3, 4, 5, np.nan]), ["X[5, 1]", "shape", "nan"]),
    (FRAME.assign(shape=pd.array([1, 2, None, 4, 5, 6], dtype="Int64")), ["X[2, 1]", "shape"]),
    (FRAME.assign(shape=pd.array([1, 2, None, 4, 5, 6], dtype="Float64")), ["X[2, 1]", "shape"]),
    (FRAME.assign(shape=1.0), ["X", "column 1", "shape", "constant"]),
    (FRAME.assign(copy=FRAME["size"] * 2), ["X", "column 2", "copy", "size"]),
    (FRAME + 0j, ["X", "real"]),
])
def test_frames_that_are_rejected_with_the_column(frame, words):
    with pytest.raises(ValueError) as caught:
        fit_logistic(frame, LABELS)
    for word in words:
        assert word in str(caught.value), f"{word} is not in: {caught.value}"


@pytest.mark.parametrize("features", [[["a", "b"]] * 6, np.array(X) + 1j, [[1, 2], [3]], [[{}, 1]] * 6,
                                      np.array([["2020-01-01"]] * 6, "M8[D]")])
def test_features_that_are_not_numbers(features):
    with pytest.raises(ValueError, match="X"):
        fit_logistic(features, Y)


def test_none_among_objects_is_missing():
    array = np.array(X, dtype=object)
    array[2, 1] = None
    with pytest.raises(ValueError, match=r"X\[2, 1\]"):
        fit_logistic(array, Y)


@pytest.mark.parametrize("labels, words", [
    (list("abcabc"), ["y", "numbers"]),
    (np.array(Y) + 0j, ["y", "real"]),
    (LABELS.astype("Int64").where(LABELS.index != "w"), ["[2]"]),
    (LABELS.astype("boolean").where(LABELS.index != "w"), ["[2]"]),
    (LABELS.astype(float).where(LABELS.index != "w"), ["[2]", "nan"]),
    (COUNTS.astype("Int64").where(COUNTS != 3), ["[2, 1]"]),
    (LABELS.map({0: "no", 1: "yes"}), ["y"]),
])
def test_labels_that_are_rejected_with_the_place(labels, words):
    with pytest.raises(ValueError) as caught:
        fit_logistic(FRAME, labels)
    for word in words:
        assert word in str(caught.value), f"{word} is not in: {caught.value}"


def test_estimate_alpha0_names_columns_and_places():
    tau = pd.DataFrame([[0.5, 0.5], [0.2, 0.8]], columns=["pos", "neg"])
    with pytest.raises(ValueError, match=r"counts\[1, 0\].*pos.*is -1"):
        estimate_alpha0(pd.DataFrame([[3, 1], [-1, 2]], columns=["pos", "neg"]), tau)
    with pytest.raises(ValueError, match=r"counts\[1, 0\]"):
        estimate_alpha0(pd.DataFrame({"pos": pd.array([3, None], dtype="Int64"), "neg": [1, 2]}), tau)


def test_dm_logpmf_of_frames():
    counts = pd.DataFrame([[3, 1], [1, 2]], index=["a", "b"])
    tau = pd.DataFrame([[0.5, 0.5], [0.2, 0.8]], index=["a", "b"])
    expected = dm_logpmf(counts.to_numpy(), tau.to_numpy(), 2.0)
    np.testing.assert_array_equal(dm_logpmf(counts, tau, 2.0), expected)
    np.testing.assert_array_equal(dm_logpmf(counts, tau.loc[["b", "a"]], 2.0), expected)
