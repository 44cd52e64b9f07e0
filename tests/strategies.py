"""Arbitrary input for the tests by Hypothesis, and the one way in which they call a function with it."""

import inspect
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import softlabel as sl
from softlabel.datasets import DataFileError

OURS = (sl.SeparationWarning, sl.ConvergenceWarning, sl.TruthWarning)
# What else an argument may be called by: its parts.
OTHER_WORDS = {
    "y_or_counts": ["y", "counts", "votes?"],
    "counts": ["votes?"],
    "ms": ["m"],
    "alphas": ["alpha0"],
    "deltas": ["delta"],
    "delta": ["mean1"],
}


def examples(number):
    return settings(max_examples=number, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def attempt(function, *args, **kwargs):
    """The answer, or None after an error of ours that names an argument of the function.

    Nothing else passes: no other exception, not even a subclass of ValueError from a library, no warning of NumPy, and none of
    ours that points into the package.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = function(*args, **kwargs)
        except ValueError as error:
            if isinstance(error, DataFileError):
                pytest.skip("needs the data files")
            names = {*inspect.signature(function).parameters}
            for name, words in OTHER_WORDS.items():
                names |= set(words) if name in names else set()
            assert type(error) is ValueError, f"{type(error).__name__} is not ours: {error}"  # noqa: PT017
            assert re.search(rf"\b({'|'.join(names)})\b", str(error)), f"names none of {sorted(names)}: {error}"  # noqa: PT017
            answer = None
    foreign = [w for w in caught if not (issubclass(w.category, OURS) and Path(w.filename).parent == Path(__file__).parent)]
    assert not foreign, f"{foreign[0].category.__name__} escaped from {foreign[0].filename}: {foreign[0].message}"
    return answer


def answered(function, *args, **kwargs):
    """The answer; an example without one does not count, and a test without any example that does fails."""
    answer = attempt(function, *args, **kwargs)
    assume(answer is not None)
    return answer


FLOATS = [np.nan, np.inf, -np.inf, -1, 0, -0.0, 0.5, 1.5, 5e-324, 1e-310, 1e308, 1e300, 10**400, 2**64, True, False, 1j]
TEXTS = [None, "a", "", "1", b"1", np.datetime64("2020-01-01"), pd.NA, pd.NaT, pd.Timestamp("2020")]
SINGLE = [Decimal("0.5"), Fraction(3, 2), np.array(3), np.array([1j]), np.float16(3), np.float32(0.5), np.int8(3)]
SEVERAL = [[], [1, 2], [[]], [[1], [1, 2]], {}, {"a": 1}, (), range(3), slice(2), np.array(["mle", "firth"]), [None], ["a"]]
ODD = st.sampled_from([*FLOATS, *TEXTS, *SINGLE, *SEVERAL, object()])
DTYPES = st.sampled_from(["?", "i1", "u1", "i8", "u8", "f2", "f4", "f8", "g", ">f8", "c16", "U3", "S3", "M8[D]", "m8[s]"])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


@st.composite
def anything(draw):
    """An array of any type and shape, or something that is none, or one in a pandas object."""
    kind = draw(st.sampled_from(["odd", "array", "object", "frame", "masked"]))
    if kind == "odd":
        return draw(ODD)
    if kind == "object":
        values = draw(st.lists(ODD, max_size=4))
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array if draw(st.booleans()) else values
    array = draw(hnp.arrays(draw(DTYPES), draw(SHAPES)))
    if kind == "masked":
        return np.ma.array(array, mask=draw(hnp.arrays(bool, array.shape)))
    # Half precision: pandas itself warns when it prints such a table.
    framed = kind == "frame" and array.ndim == 2 and array.dtype.kind not in "Mmcg" and array.dtype != np.float16
    return pd.DataFrame(array) if framed else array


@st.composite
def spoilt(draw, array):
    """A good array as it is, in another type or container, or with one bad value, one row less or one axis more."""
    array = np.array(array)
    change = draw(st.sampled_from(["nothing"] * 3 + ["value"] * 4 + ["row", "axis", "type", "container", "order"]))
    if change == "value" and array.size:
        array, bad = array.astype(float), st.sampled_from([-1, -1e-300, 0.5, 2, 1e17, 1e300, np.nan, np.inf])
        array.flat[draw(st.integers(0, array.size - 1))] = draw(bad)
    elif change == "row":
        array = array[: draw(st.integers(0, len(array)))]
    elif change == "axis":
        array = draw(st.sampled_from([array[None], array[..., None], array[..., 0], array.ravel()]))
    elif change == "type":
        with np.errstate(all="ignore"):
            array = array.astype(draw(st.sampled_from(["f4", "f2", "i8", "u1", "?", object, str, complex, "g"])))
    elif change == "container" and array.ndim <= 2:
        return draw(st.sampled_from([pd.DataFrame, np.ndarray.tolist, np.asfortranarray, np.ma.array]))(array)
    elif change == "order":
        return array[::-1]
    return array


NUMBERS = st.one_of(
    st.integers(-4, 4).map(float),
    st.floats(-1e3, 1e3),
    st.sampled_from([0.0, 1e-300, 1e-8, 1e6, 1e8, 1e150, -1e150, 1e300, 1e-310, 1.7e308]),
)
ALPHA0 = st.one_of(st.floats(1e-12, 1e12), st.sampled_from([5e-324, 1e-310, 1e-300, 1e-12, 1.0, 1e300, 1.7e308, np.inf]))
SEED = st.integers(0, 2**32)


@st.composite
def features(draw, n=None, p=None):
    n, p = n or draw(st.integers(1, 14)), p or draw(st.integers(1, 3))
    if draw(st.booleans()):  # well behaved, in units of any size
        rng = np.random.default_rng(draw(SEED))
        return rng.normal(size=(n, p)) * 10.0 ** draw(st.integers(-9, 9)) + draw(st.sampled_from([0.0, 1.0, 1e6]))
    return draw(hnp.arrays(float, (n, p), elements=draw(st.sampled_from([st.integers(-4, 4).map(float), NUMBERS]))))


@st.composite
def items(draw):
    """Features and labels or votes of as many items."""
    X = draw(features())
    shape = draw(st.sampled_from([(len(X),), (len(X), 2)]))
    most = 1 if len(shape) == 1 else draw(st.sampled_from([1, 5, 200]))
    return X, draw(hnp.arrays(int, shape, elements=st.integers(0, most)))


@st.composite
def fittable(draw):
    """Features on a coarse grid, so that ties occur, and votes with a maximum that is not next to infinity; and their fit."""
    n, p = draw(st.integers(8, 25)), draw(st.integers(1, 3))
    X = draw(hnp.arrays(float, (n, p), elements=st.integers(-8, 8).map(lambda k: k / 4)))
    votes = draw(hnp.arrays(int, (n, 2), elements=st.integers(0, 4)))
    voted = X[votes.sum(axis=1) > 0]
    x = np.column_stack([np.ones(len(voted)), voted])
    assume(len(voted) > x.shape[1] and np.linalg.matrix_rank(x) == x.shape[1] and np.linalg.cond(x) < 100)
    assume(sl.find_separation(X, votes) == "none")
    fit = sl.fit_logistic(X, votes, tol=1e-14, max_iter=100)
    assume(np.abs(fit.coef).max() < 10)
    return X, votes, fit


def rounding(X, coef):
    """Error (n,) of linear predictors computed twice: each, and its intercept, is a sum of p + 1 such terms.

    Of features of 1e6 that differ by 1e-5, whose coefficients are near 1e5, five digits are left.
    """
    return 4 * len(coef) * np.finfo(float).eps * (abs(coef[0]) + np.abs(X) @ np.abs(coef[1:]))


@st.composite
def probabilities(draw, n=None, g=None):
    """Rows that sum to one, some of them with zeros or with values that are hardly above zero."""
    n, g = n or draw(st.integers(1, 6)), g or draw(st.integers(2, 4))
    tau = draw(hnp.arrays(float, (n, g), elements=st.floats(0.01, 1)))
    tau /= tau.sum(axis=1, keepdims=True)
    for row in range(n):
        if draw(st.integers(0, 3)) == 0:
            tau[row] = 0.0
            tau[row, -1] = draw(st.sampled_from([0.0, 5e-324, 1e-310, 1e-300, 1e-17]))
            tau[row, draw(st.integers(0, g - 2))] = 1.0
    return tau


@st.composite
def tables(draw):
    tau = draw(probabilities())
    return draw(hnp.arrays(int, tau.shape, elements=st.integers(0, draw(st.sampled_from([1, 3, 12]))))), tau
