"""Tables of other libraries as DataFrames, rows of two tables matched by their indices, and labels in words."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray


def as_pandas(table: Any) -> Any:
    """A table of polars, pyarrow or the like, known by its Arrow interface, as a DataFrame with its names; others as they are.

    Its columns are read one by one through NumPy, which takes neither library.
    """
    if isinstance(table, pd.DataFrame | pd.Series | np.ndarray) or not hasattr(table, "__arrow_c_stream__"):
        return table
    names = getattr(table, "column_names", getattr(table, "columns", None))
    return table if names is None else pd.DataFrame({name: np.asarray(table[name]) for name in names})


def is_real(column: "pd.Series[Any]") -> bool:
    """Whether a column can be of real numbers or their text: not dates, durations and the like, made numbers in silence."""
    dtype = column.dtype.categories.dtype if isinstance(column.dtype, pd.CategoricalDtype) else column.dtype
    return dtype.kind not in "mMc" and not isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype)


def align(first: ArrayLike, second: ArrayLike, names: tuple[str, str]) -> ArrayLike:
    """``second`` in the row order of ``first`` where both are pandas objects; anything else comes back as it is."""
    pandas_types = (pd.DataFrame, pd.Series)
    if not (isinstance(first, pandas_types) and isinstance(second, pandas_types)):
        return second
    if first.index.equals(second.index) and first.index.dtype == second.index.dtype:  # else long ids may differ by rounding
        return second
    for name, other, thing in zip(names, names[::-1], (first, second)):
        if not thing.index.is_unique:
            twice = listed(thing.index[thing.index.duplicated()][:1])
            raise ValueError(f"the index of {name} has {twice} more than once: rows cannot be matched to {other}")
    rows, back = places(second.index, first.index), places(first.index, second.index)
    if (rows < 0).any():
        raise ValueError(f"{names[1]} has no row for {listed(first.index[rows < 0][:1])}, which is in the index of {names[0]}")
    if (back < 0).any():
        extra = listed(second.index[back < 0][:1])
        raise ValueError(f"{names[1]} has a row for {extra}, which is not in the index of {names[0]}")
    return second.iloc[rows]


def places(index: "pd.Index[Any]", items: "pd.Index[Any]") -> NDArray[np.intp]:
    """Where in a unique index the items are, -1 where they are not; so are all of a kind that pandas does not compare."""
    try:
        return index.get_indexer(items)
    except (TypeError, ValueError, NotImplementedError, pd.errors.InvalidIndexError):  # such as an index of several levels
        return np.full(len(items), -1)


def several(count: int, what: str) -> str:
    """A count in words: "1 item", "2,000 items"."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def listed(labels: Any) -> str:
    """At most six labels in words, as Python shows them and not as NumPy does."""
    shown = [repr(label.item() if isinstance(label, np.generic) else label) for label in list(labels)[:6]]
    return ", ".join(shown) + (", ..." if len(labels) > 6 else "")


def not_among(positive: object, labels: Any, name: str) -> str:
    """Words for a positive class that is neither among the labels nor declared; they may differ by their type alone."""
    alike = [label for label in labels if str(label) == str(positive)]
    if alike:
        kinds = ("text", "not text") if isinstance(positive, str) else ("not text", "text")
        hint = f"; it is {kinds[0]} and the label {kinds[1]}: write positive={listed(alike)}"
    else:
        hint = "; if truly none is positive, give a pandas.Categorical that has it as a category"
    return f"positive={positive!r} is not among the labels of {name} ({listed(labels)}){hint}"


def same(label: object, other: object) -> bool:
    try:
        return bool(label == other)
    except (TypeError, ValueError, OverflowError):  # arrays and the like; whole numbers beyond NumPy's
        return False
