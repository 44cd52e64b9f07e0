"""Checks of arguments, shared by all modules.

Every function returns clean float arrays or raises ``ValueError`` with the name of the argument, the place (row, column,
data set) and what would be valid.
"""

import numbers
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from softlabel.frames import align as align
from softlabel.frames import as_pandas as as_pandas
from softlabel.frames import is_real as is_real
from softlabel.frames import listed as listed
from softlabel.frames import not_among as not_among
from softlabel.frames import places as places
from softlabel.frames import same as same
from softlabel.frames import several as several

Array = NDArray[np.float64]
NUMBER = (numbers.Number, np.bool_)  # NumPy does not call its booleans numbers
MOST_VOTES = 10**7
LARGEST = 2**53  # whole numbers above are not all floats
SHARES = "and proportions must be given as counts of votes (or to SoftLabelClassifier, which takes shares with weights)"


class SeparationWarning(UserWarning):
    """The labels are linearly separable: the maximum likelihood estimate does not exist."""


class ConvergenceWarning(UserWarning):
    """The iteration stopped before it converged."""


def place(name: str, index: tuple[int, ...], labels: list[Any] | None = None) -> str:
    """Words for a position in an argument: ``X[3, 1] (column 'size')``."""
    column = "" if labels is None else f" (column {labels[index[-1]]!r})"
    where = f"[{', '.join(str(int(i)) for i in index)}]" if index else ""
    return f"{name}{where}{column}"


def as_numbers(values: ArrayLike, name: str, ndim: tuple[int, ...], *, copy: bool = True, keep_float32: bool = False) -> Array:
    """A finite float array with one of the given numbers of dimensions, and at least one element.

    Without ``copy`` it may be the caller's own array: never write to it, nor keep it.
    """
    values = as_pandas(values)
    labels = list(values.columns) if isinstance(values, pd.DataFrame) else None
    try:
        array = _real(values, copy, keep_float32)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be an array of real numbers, got {_describe(values)}") from None
    if array.ndim not in ndim:
        wanted = " or ".join(f"{d}-dimensional" for d in ndim)
        raise ValueError(f"{name} must be {wanted}, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} has no elements: its shape is {array.shape}")
    if not (np.isfinite(array.min()) and np.isfinite(array.max())):  # no array as large as this one is made to find out
        bad = np.argwhere(~np.isfinite(array))
        where = place(name, tuple(bad[0]), labels)
        more = f" ({len(bad)} such values in all)" if len(bad) > 1 else ""
        raise ValueError(f"{where} is {array[tuple(bad[0])]}{more}: every value must be finite")
    return array


def _real(values: ArrayLike, copy: bool = True, keep_float32: bool = False) -> Array:
    """Real numbers of any type and shape as floats, missing ones as nan; text is no number, not even "1"."""
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "biufO":
        values = np.ma.filled(values.astype(object), np.nan)  # else the values under the mask would come back
    array = np.asarray(values)
    if array.dtype == object:  # where pandas marks a missing value by pd.NA
        array = np.where(pd.isna(array), np.nan, array)
        if not all(isinstance(value, NUMBER) for value in array.flat):
            raise TypeError
    elif array.dtype.kind not in "biuf":
        raise TypeError
    if keep_float32 and array.dtype == np.float32:
        return array.copy() if copy else array
    if array.dtype == float and not copy:
        return array
    with np.errstate(over="ignore"):  # an extended number beyond the range of a double is infinite, and found so
        return array.astype(float)


def _describe(values: object) -> str:
    """What was passed instead of numbers; names the first column that is not numeric where there is one."""
    if isinstance(values, pd.DataFrame):
        for label in values.columns:
            if not pd.api.types.is_numeric_dtype(values[label]):
                return f"column {label!r} of type {values[label].dtype}"
    dtype = getattr(values, "dtype", None)
    return type(values).__name__ + ("" if dtype is None else f" of type {dtype}")


def as_features(
    X: ArrayLike, name: str = "X", ndim: tuple[int, ...] = (2,), *, keep_float32: bool = False, none: bool = False
) -> tuple[Array, list[str]]:
    """Features as a float array, which may be the caller's own, and the names of their columns.

    With ``none`` there may be no column at all, for a fit of the intercept alone.
    """
    X = as_pandas(X)
    shape = np.shape(X) if none and isinstance(X, np.ndarray | pd.DataFrame) else (0,)
    if len(shape) in ndim and shape[-1] == 0 and all(shape[:-1]):
        return np.empty(shape), []
    array = as_numbers(X, name, ndim, copy=False, keep_float32=keep_float32)
    if not isinstance(X, pd.DataFrame):
        return array, [f"x{k + 1}" for k in range(array.shape[-1])]
    names = pd.Index([str(label) for label in X.columns])
    if not names.is_unique:
        raise ValueError(f"{name} has more than one column named {names[names.duplicated()][0]!r}: names must differ")
    if "intercept" in names:
        raise ValueError(
            f"{name} has a column named 'intercept', and each fit adds an intercept by itself: drop the column if it is "
            "constant, give it another name if it is not"
        )
    return array, list(names)


def as_votes(y_or_counts: ArrayLike, shape: tuple[int, ...], positive: object = None) -> Array:
    """Labels of the given shape, or counts of shape ``shape + (2,)``, as counts; column 0 is the positive class.

    Labels are 0 and 1, or any two values of which ``positive`` is the positive class. The array may be the caller's own.
    """
    votes = as_labels_or_counts(y_or_counts, shape, positive)
    return np.stack([votes, 1 - votes], axis=-1) if votes.ndim == len(shape) else votes


def as_labels_or_counts(y_or_counts: ArrayLike, shape: tuple[int, ...], positive: object = None) -> Array:
    """As :func:`as_votes`, but labels stay labels, 0 and 1."""
    if positive is not None:
        y_or_counts = _is_positive(y_or_counts, len(shape), positive)
    elif words := _labels_that_are_no_numbers(y_or_counts, len(shape)):
        raise ValueError(
            f"y_or_counts has the labels {listed(words)}, which are not numbers: say which is the positive class by positive="
        )
    array = as_numbers(y_or_counts, "y_or_counts", (len(shape), len(shape) + 1), copy=False)
    if array.ndim == len(shape):
        if not ((array == 0) | (array == 1)).all():
            at = tuple(np.argwhere((array != 0) & (array != 1))[0])
            remedy = SHARES if 0 < array[at] < 1 else "or positive= must say which of two labels is the positive class"
            raise ValueError(f"{place('y', at)} is {array[at]:g}: labels must be 0 or 1 (1 is the positive class), {remedy}")
    else:
        array = as_counts(array, "counts")
        if array.shape[-1] != 2:
            raise ValueError(
                f"counts must have 2 columns (positive, negative votes) for logistic regression, got {array.shape[-1]}"
            )
    if array.shape[: len(shape)] != shape:
        raise ValueError(
            f"y_or_counts has {array.shape[: len(shape)]} items but X has {shape}: one label or one row of counts an item"
        )
    return array


def _is_positive(y: ArrayLike, ndim: int, positive: object) -> NDArray[np.bool_]:
    """Which labels are the positive one. It must occur, or be declared, lest a slip of the pen make all labels negative."""
    dtype = getattr(y, "dtype", None)
    y = np.ma.filled(y.astype(object), np.nan) if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
    if y.ndim != ndim:
        raise ValueError(
            f"positive={positive!r} is for labels, but y_or_counts has shape {y.shape}: of counts, column 0 is positive"
        )
    missing = pd.isna(y)
    if missing.any():
        raise ValueError(f"{place('y_or_counts', tuple(np.argwhere(missing)[0]))} is missing: every item must have a label")
    try:
        code, labels = pd.factorize(y.ravel())
    except TypeError:
        raise ValueError(f"y_or_counts must be an array of labels, got {_describe(y)}") from None
    if len(labels) > 2:
        raise ValueError(f"y_or_counts has {len(labels)} different labels ({listed(labels)}): there must be two classes")
    declared = list(labels)
    if isinstance(dtype, pd.CategoricalDtype):
        declared += list(dtype.categories)
    elif y.dtype == bool:
        declared += [False, True]
    if not any(same(label, positive) for label in declared):
        raise ValueError(not_among(positive, labels, "y_or_counts"))
    return np.array([same(label, positive) for label in labels], dtype=bool)[code].reshape(y.shape)


def _labels_that_are_no_numbers(y: ArrayLike, ndim: int) -> list[Any]:
    """The different labels in ``y`` if one of them is text or another object; none if all are numbers."""
    try:
        array = np.asarray(y)
        if array.ndim != ndim or array.dtype.kind not in "OUST":
            return []
        labels = [label for label in pd.unique(array.ravel().astype(object)) if not pd.isna(label)]
    except (TypeError, ValueError):
        return []
    return [] if all(isinstance(label, NUMBER) for label in labels) else labels


def as_counts(counts: ArrayLike, name: str = "counts") -> Array:
    """Votes of each item for each of g >= 2 classes: whole numbers, not negative."""
    labels = list(counts.columns) if isinstance(counts, pd.DataFrame) else None
    array = as_numbers(counts, name, (2, 3), copy=False)
    wrong = (array < 0) | (array > LARGEST) | (array != np.floor(array))
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        most = f" and at most {LARGEST}" if array[at] > LARGEST else f", {SHARES}" if 0 < array[at] < 1 else ""
        raise ValueError(f"{place(name, at, labels)} is {array[at]:g}: vote counts must be whole numbers of at least 0{most}")
    if array.shape[-1] < 2:
        raise ValueError(
            f"{name} must have a column for each of at least 2 classes, got {array.shape[-1]} (labels have no axis of columns)"
        )
    return array


def as_tau(tau: ArrayLike) -> Array:
    """Posterior probabilities of shape (..., n, g), whose rows sum to one."""
    array = as_numbers(tau, "tau", (2, 3), copy=False)
    if array.shape[-1] < 2:
        raise ValueError(f"tau must have a column for each of at least 2 classes, got {array.shape[-1]}")
    if array.min() < 0 or array.max() > 1:
        at = tuple(np.argwhere((array < 0) | (array > 1))[0])
        raise ValueError(f"{place('tau', at)} is {array[at]:g}: probabilities must lie between 0 and 1")
    total = array @ np.ones(array.shape[-1])  # faster than .sum over an axis of two
    wrong = np.abs(total - 1) > 1e-9
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise ValueError(f"row {place('tau', at)} sums to {total[at]:.12g}: the probabilities of an item must sum to 1")
    return array


def as_probabilities(probability: ArrayLike) -> Array:
    """Probabilities (n,) of one class."""
    array = as_numbers(probability, "probability", (1,))
    wrong = (array < 0) | (array > 1)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise ValueError(f"{place('probability', at)} is {array[at]:g}: probabilities must lie between 0 and 1")
    return array


def as_features_and_counts(X: ArrayLike, counts: ArrayLike, *, none: bool = False) -> tuple[Array, list[str], Array]:
    """Features, their names, and votes (n, 2) on the same items; pandas objects are matched by index."""
    counts = align(X, counts, ("X", "counts"))
    X, names = as_features(X, none=none)
    counts = as_counts(counts)
    if counts.shape != (len(X), 2):
        raise ValueError(
            f"counts have shape {counts.shape} but X has {len(X)} items: a row of positive and negative votes for each item"
        )
    return X, names, counts


def as_counts_and_tau(counts: ArrayLike, tau: ArrayLike) -> tuple[Array, Array]:
    """Votes and posterior probabilities of the same items; pandas objects are matched by index."""
    tau = align(counts, tau, ("counts", "tau"))
    counts, tau = as_counts(counts), as_tau(tau)
    if counts.shape != tau.shape or counts.ndim != 2:
        raise ValueError(f"counts have shape {counts.shape} but tau has {tau.shape}: both must be (n, g)")
    return for_a_likelihood(counts), tau


def for_a_likelihood(counts: Array) -> Array:
    """Votes that are not too many for arrays with an element a vote."""
    if counts.max() > MOST_VOTES:
        at = tuple(np.argwhere(counts > MOST_VOTES)[0])
        raise ValueError(f"{place('counts', at)} is {counts[at]:g}: a likelihood takes {MOST_VOTES:,} votes at most")
    return counts


def as_alpha0(alpha0: ArrayLike, scalar: bool = False) -> Array:
    """The overdispersion parameter: positive; infinity is the multinomial model."""
    array = as_parameter(alpha0, "alpha0", scalar)
    wrong = ~(array > 0)
    if wrong.any():
        raise ValueError(f"alpha0 must be positive (inf is the multinomial model), got {_first(array, wrong)}")
    return array


def as_labellers(m: ArrayLike, whole: bool = True, scalar: bool = False) -> Array:
    """Numbers of labellers: at least 1, and whole unless a formula also makes sense between whole numbers."""
    array = as_parameter(m, "m", scalar)
    wrong = ~(np.isfinite(array) & (array >= 1))
    if whole:
        wrong |= (array != np.floor(array)) | (array > LARGEST)
    if wrong.any():
        kind = "a whole number" if whole else "a number"
        most = f" and at most {LARGEST}" if whole and array[wrong].flat[0] > LARGEST else ""
        raise ValueError(f"m, the number of labellers, must be {kind} of at least 1{most}, got {_first(array, wrong)}")
    return array


def as_whole(value: float, name: str, least: int) -> int:
    """A single whole number of at least ``least``; ``name`` may go on after a comma to say what it is."""
    number = single(value)
    if not least <= number <= LARGEST or number != np.floor(number):
        most = f" and at most {LARGEST}" if number > LARGEST else ""
        raise ValueError(f"{name} must be a whole number of at least {least}{most}, got {value!r}")
    return int(number)


def as_positive(value: float, name: str, or_zero: bool = False) -> float:
    """A single positive number, or zero where that makes sense, not infinite."""
    number = single(value)
    if not (0 < number < np.inf or (or_zero and number == 0)):
        raise ValueError(f"{name} must be a positive number{' or 0' if or_zero else ''}, got {value!r}")
    return number


def single(value: object) -> float:
    """A real number of any type as a float; nan for anything else. Half-precision numbers do not compare with large ones."""
    try:
        return float(value) if isinstance(value, numbers.Real) else np.nan
    except OverflowError:
        return np.inf


def as_choice(value: str, name: str, choices: Sequence[str]) -> str:
    """One of several words."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def as_rng(rng: np.random.Generator | int | None) -> np.random.Generator:
    """A source of randomness: a Generator as it is, or one made from a seed."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ValueError(f"rng must be a numpy Generator, a whole number of at least 0 or None, got {rng!r}") from None


def as_level(level: float) -> float:
    """The level of an interval."""
    number = single(level)
    if not 0 < number < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}")
    return number


def as_parameter(value: ArrayLike, name: str, scalar: bool) -> Array:
    try:
        array = _real(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    if scalar and array.ndim:
        raise ValueError(f"{name} must be a single number, got shape {array.shape}")
    return array


def _first(array: Array, wrong: NDArray[np.bool_]) -> str:
    return f"{array[wrong].flat[0]:g}" if array.ndim == 0 else f"{array[wrong].flat[0]:g} at {np.argwhere(wrong)[0].tolist()}"


def as_labellers_and_alpha0(m: ArrayLike, alpha0: ArrayLike) -> tuple[Array, Array]:
    """Both parameters, where a formula takes them between whole numbers and broadcasts them against each other."""
    m, alpha0 = as_labellers(m, whole=False), as_alpha0(alpha0)
    try:
        np.broadcast_shapes(m.shape, alpha0.shape)
    except ValueError:
        raise ValueError(f"m has shape {m.shape} and alpha0 {alpha0.shape}: they do not broadcast") from None
    return m, alpha0


def optional(module: str, extra: str, function: str) -> ModuleType:
    """Import a module that comes with an extra of the package, or say which one the function needs."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = f"{function} needs {module.partition('.')[0]}, which is not installed"
        raise ImportError(f"{missing}: pip install 'softlabel[{extra}]'") from error
