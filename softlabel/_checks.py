"""Checks of arguments, shared by all modules.

Every function returns clean float arrays or raises ``ValueError`` with the name of the argument, the place (row, column,
data set) and what would be valid.
"""

import numbers
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class SeparationWarning(UserWarning):
    """The labels are linearly separable: the maximum likelihood estimate does not exist."""


class ConvergenceWarning(UserWarning):
    """The iteration stopped before it converged."""


def place(name: str, index: tuple[int, ...], labels: list[Any] | None = None) -> str:
    """Words for a position in an argument: ``X[3, 1] (column 'size')``."""
    column = "" if labels is None else f" (column {labels[index[-1]]!r})"
    where = f"[{', '.join(str(int(i)) for i in index)}]" if index else ""
    return f"{name}{where}{column}"


def as_numbers(values: ArrayLike, name: str, ndim: tuple[int, ...]) -> Array:
    """A finite float array with one of the given numbers of dimensions, and at least one element."""
    labels = list(values.columns) if isinstance(values, pd.DataFrame) else None
    try:
        array = np.asarray(values)
        if np.iscomplexobj(array):
            raise TypeError
        if array.dtype == object:  # where pandas marks a missing value by pd.NA
            array = np.where(pd.isna(array), np.nan, array)
        array = array.astype(float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of real numbers, got {_describe(values)}") from None
    if array.ndim not in ndim:
        wanted = " or ".join(f"{d}-dimensional" for d in ndim)
        raise ValueError(f"{name} must be {wanted}, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} has no elements: its shape is {array.shape}")
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))
        where = place(name, tuple(bad[0]), labels)
        more = f" ({len(bad)} such values in all)" if len(bad) > 1 else ""
        raise ValueError(f"{where} is {array[tuple(bad[0])]}{more}: every value must be finite")
    return array


def _describe(values: object) -> str:
    """What was passed instead of numbers; names the first column that is not numeric where there is one."""
    if isinstance(values, pd.DataFrame):
        for label in values.columns:
            if not pd.api.types.is_numeric_dtype(values[label]):
                return f"column {label!r} of type {values[label].dtype}"
    dtype = getattr(values, "dtype", None)
    return type(values).__name__ + ("" if dtype is None else f" of type {dtype}")


def as_features(X: ArrayLike, name: str = "X", ndim: tuple[int, ...] = (2,)) -> tuple[Array, list[str]]:
    """Features as a float array, and the names of their columns."""
    array = as_numbers(X, name, ndim)
    if isinstance(X, pd.DataFrame):
        return array, [str(label) for label in X.columns]
    return array, [f"x{k + 1}" for k in range(array.shape[-1])]


def as_votes(y_or_counts: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Labels 0/1 of the given shape, or counts of shape ``shape + (2,)``, as counts; column 0 is the positive class."""
    array = as_numbers(y_or_counts, "y_or_counts", (len(shape), len(shape) + 1))
    if array.ndim == len(shape):
        wrong = (array != 0) & (array != 1)
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0])
            raise ValueError(f"{place('y', at)} is {array[at]:g}: labels must be 0 or 1 (1 is the positive class)")
        counts = np.stack([array, 1 - array], axis=-1)
    else:
        counts = as_counts(array, "counts")
        if counts.shape[-1] != 2:
            raise ValueError(
                f"counts must have 2 columns (positive, negative votes) for logistic regression, got {counts.shape[-1]}"
            )
    if counts.shape[:-1] != shape:
        raise ValueError(
            f"y_or_counts has {counts.shape[:-1]} items but X has {shape}: one label or one row of counts an item"
        )
    return counts


def as_counts(counts: ArrayLike, name: str = "counts") -> Array:
    """Votes of each item for each of g >= 2 classes: whole numbers, not negative."""
    labels = list(counts.columns) if isinstance(counts, pd.DataFrame) else None
    array = as_numbers(counts, name, (2, 3))
    wrong = (array < 0) | (array != np.floor(array))
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise ValueError(f"{place(name, at, labels)} is {array[at]:g}: vote counts must be whole numbers of at least 0")
    if array.shape[-1] < 2:
        raise ValueError(f"{name} must have a column for each of at least 2 classes, got {array.shape[-1]}")
    return array


def as_tau(tau: ArrayLike) -> Array:
    """Posterior probabilities of shape (..., n, g), whose rows sum to one."""
    array = as_numbers(tau, "tau", (2, 3))
    if array.shape[-1] < 2:
        raise ValueError(f"tau must have a column for each of at least 2 classes, got {array.shape[-1]}")
    wrong = (array < 0) | (array > 1)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise ValueError(f"{place('tau', at)} is {array[at]:g}: probabilities must lie between 0 and 1")
    total = array @ np.ones(array.shape[-1])  # faster than .sum over an axis of two
    wrong = np.abs(total - 1) > 1e-9
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise ValueError(f"row {place('tau', at)} sums to {total[at]:.12g}: the probabilities of an item must sum to 1")
    return array


def as_counts_and_tau(counts: ArrayLike, tau: ArrayLike) -> tuple[Array, Array]:
    """Votes and posterior probabilities of the same items; pandas objects are matched by index."""
    tau = align(counts, tau, ("counts", "tau"))
    counts, tau = as_counts(counts), as_tau(tau)
    if counts.shape != tau.shape or counts.ndim != 2:
        raise ValueError(f"counts have shape {counts.shape} but tau has {tau.shape}: both must be (n, g)")
    return counts, tau


def as_alpha0(alpha0: ArrayLike, scalar: bool = False) -> Array:
    """The overdispersion parameter: positive; infinity is the multinomial model."""
    array = _as_parameter(alpha0, "alpha0", scalar)
    wrong = ~(array > 0)
    if wrong.any():
        raise ValueError(f"alpha0 must be positive (inf is the multinomial model), got {_first(array, wrong)}")
    return array


def as_labellers(m: ArrayLike, whole: bool = True, scalar: bool = False) -> Array:
    """Numbers of labellers: at least 1, and whole unless a formula also makes sense between whole numbers."""
    array = _as_parameter(m, "m", scalar)
    wrong = ~(np.isfinite(array) & (array >= 1) & ((array == np.floor(array)) | (not whole)))
    if wrong.any():
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"m, the number of labellers, must be {kind} of at least 1, got {_first(array, wrong)}")
    return array


def as_whole(value: float, name: str, least: int) -> int:
    """A single whole number of at least ``least``; ``name`` may go on after a comma to say what it is."""
    if not isinstance(value, numbers.Real) or not np.isfinite(value) or value < least or value != int(value):
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def as_level(level: float) -> float:
    """The level of an interval."""
    if not isinstance(level, numbers.Real) or not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}")
    return float(level)


def _as_parameter(value: ArrayLike, name: str, scalar: bool) -> Array:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    if scalar and array.ndim:
        raise ValueError(f"{name} must be a single number, got shape {array.shape}")
    return array


def _first(array: Array, wrong: NDArray[np.bool_]) -> str:
    return f"{array[wrong].flat[0]:g}" if array.ndim == 0 else f"{array[wrong].flat[0]:g} at {np.argwhere(wrong)[0].tolist()}"


def align(first: object, second: object, names: tuple[str, str]) -> object:
    """``second`` in the row order of ``first`` where both are pandas objects; anything else comes back as it is."""
    pandas_types = (pd.DataFrame, pd.Series)
    if not (isinstance(first, pandas_types) and isinstance(second, pandas_types)) or first.index.equals(second.index):
        return second
    for name, thing in zip(names, (first, second)):
        if not thing.index.is_unique:
            twice = thing.index[thing.index.duplicated()][0]
            raise ValueError(f"the index of {name} has {twice!r} more than once: rows cannot be matched to {names[1]}")
    missing = first.index.difference(second.index)
    if len(missing):
        raise ValueError(f"{names[1]} has no row for {missing[0]!r}, which is in the index of {names[0]}")
    extra = second.index.difference(first.index)
    if len(extra):
        raise ValueError(f"{names[1]} has a row for {extra[0]!r}, which is not in the index of {names[0]}")
    return second.loc[first.index]


def as_labellers_and_alpha0(m: ArrayLike, alpha0: ArrayLike) -> tuple[Array, Array]:
    """Both parameters, where a formula takes them between whole numbers and broadcasts them against each other."""
    m, alpha0 = as_labellers(m, whole=False), as_alpha0(alpha0)
    try:
        np.broadcast_shapes(m.shape, alpha0.shape)
    except ValueError:
        raise ValueError(f"m has shape {m.shape} and alpha0 {alpha0.shape}: they do not broadcast") from None
    return m, alpha0
