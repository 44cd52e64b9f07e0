"""Tables of votes and of features as people keep them, read into codes and numbers; every row is used or counted."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softlabel.validation import LARGEST, Array, as_choice, as_pandas, is_real, listed, not_among, places, same

ROLES = {"item": ("item", "task"), "annotator": ("annotator", "worker"), "label": ("label",)}
NUMBERS = {"0": 0, "0.0": 0, "false": 0, "1": 1, "1.0": 1, "true": 1}  # truth; a file with gaps may have decimals
Codes = NDArray[np.intp]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class VoteTable:
    """Votes as codes into ``items`` and ``annotators``, one element a vote that counts.

    ``annotators`` are those who have voted; ``n_silent`` more have a name in the table but no vote. ``labels`` are those that
    occur, and those that a categorical or boolean column declares if that makes two.
    """

    items: "pd.Index[Any]"
    annotators: "pd.Index[Any]"
    labels: list[Any]
    item: Codes
    annotator: Codes
    positive: Flags
    n_rows: int
    n_missing: int
    n_repeats: int
    n_contradictions: int
    n_silent: int

    def count(self) -> tuple[Codes, Codes]:
        """Votes, and positive votes, on each item."""
        n = len(self.items)
        return np.bincount(self.item, minlength=n), np.bincount(self.item[self.positive], minlength=n)


def where(table: pd.DataFrame, name: str, k: int) -> str:
    """Words for a row: its index, under the index's own name (such as "line", of a file) where it has one."""
    return f"{name}, {table.index.name or 'row'} {listed(table.index[[k]])}"


def read_votes(votes: pd.DataFrame, positive: object, repeats: str) -> VoteTable:
    """Votes from a long table (item, annotator, label), or from a wide one with an annotator in each column."""
    votes = as_pandas(votes)
    if not isinstance(votes, pd.DataFrame):
        raise ValueError(f"votes must be a DataFrame, got {type(votes).__name__}")
    as_choice(repeats, "repeats", ("first", "keep"))
    if not votes.size:
        raise ValueError(f"votes has no elements: its shape is {votes.shape}")
    columns = _long_columns(votes)
    values, item, items, annotator, annotators = _wide(votes) if columns is None else _long(votes, columns)
    label, found = pd.factorize(values)
    labels = _with_declared(list(found), by_item(votes, "votes") if columns is None else votes[[columns["label"]]])
    there = label >= 0
    is_positive = _which_positive(votes, 1 if columns else len(annotators), label, list(found), labels, positive)

    item, annotator, vote = item[there], annotator[there], is_positive[label[there]]
    voted = np.unique(annotator)
    annotator = np.searchsorted(voted, annotator)
    pair, _ = pd.factorize(item.astype(np.int64) * len(voted) + annotator)
    again = pd.Series(pair).duplicated().to_numpy()
    keep = ~again if repeats == "first" else np.full(len(pair), True)
    return VoteTable(
        items=_plain(items),
        annotators=_plain(annotators)[voted],
        labels=[label.item() if isinstance(label, np.generic) else label for label in labels],
        item=item[keep],
        annotator=annotator[keep],
        positive=vote[keep],
        n_rows=len(there),
        n_missing=int((~there).sum()),
        n_repeats=int(again.sum()),
        n_contradictions=int((vote[again] != vote[~again][pair[again]]).sum()),
        n_silent=len(annotators) - len(voted),
    )


Read = tuple[Any, Codes, "pd.Index[Any]", Codes, "pd.Index[Any]"]


def _wide(votes: pd.DataFrame) -> Read:
    """Labels, and codes and names of their items and annotators, row by row."""
    wide = by_item(votes, "votes")
    n, width = wide.shape
    item, items = pd.factorize(wide.index.repeat(width))
    return wide.to_numpy(object).ravel(), item, items, np.tile(np.arange(width), n), wide.columns


def _long(votes: pd.DataFrame, columns: dict[str, Hashable]) -> Read:
    for role in ("item", "annotator"):
        _must_name(votes[columns[role]], role, votes, "votes")
    return votes[columns["label"]], *pd.factorize(votes[columns["item"]]), *pd.factorize(votes[columns["annotator"]])


def _plain(values: "pd.Index[Any]") -> "pd.Index[Any]":
    """An index of the values themselves, where pandas would keep categories."""
    return pd.Index(values.astype(values.categories.dtype)) if isinstance(values, pd.CategoricalIndex) else values


def _long_columns(votes: pd.DataFrame) -> dict[str, Hashable] | None:
    """The column of each role; None if the table is wide."""
    found = {role: [name for name in names if name in votes.columns] for role, names in ROLES.items()}
    for role, names in found.items():
        if len(names) > 1:
            raise ValueError(f"votes has columns {names[0]!r} and {names[1]!r}, but only one can be the {role}")
    if not votes.columns.is_unique:
        raise ValueError(f"votes has more than one column named {votes.columns[votes.columns.duplicated()][0]!r}")
    absent = [role for role, names in found.items() if not names]
    if len(absent) > 1:
        return None
    if absent:
        wanted = " or ".join(map(repr, ROLES[absent[0]]))
        raise ValueError(f"votes has no column for the {absent[0]} ({wanted}); its columns are {listed(votes.columns)}")
    return {role: names[0] for role, names in found.items()}


def by_item(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """A table with the items in its index.

    They are there already if it is named item or task, and then a column of the other name is like any other. Else they are
    those of a column item or, without one, task; else those of the index, whatever its name.
    """
    if table.index.nlevels > 1:
        raise ValueError(
            f"{name} has an index of several levels ({listed(table.index.names)}): name the items by one column, 'item'"
        )
    names = [c for c in ROLES["item"] if c in table.columns]
    if table.index.name in ROLES["item"]:
        if table.index.name in names:
            raise ValueError(f"{name} has both an index and a column named {table.index.name!r}: drop or rename one")
        names = []
    _must_name(table[names[0]] if names else table.index, "item", table, name)
    return table.set_index(names[0]).rename_axis("item") if names else table


def _must_name(values: "pd.Index[Any] | pd.Series[Any]", role: str, table: pd.DataFrame, name: str) -> None:
    """An error where names are missing, or are numbers that have lost their last digits."""
    missing = np.asarray(values.isna())
    if missing.any():
        raise ValueError(f"{where(table, name, int(missing.argmax()))}: the {role} is missing{_more(missing)}")
    if pd.api.types.is_float_dtype(values.dtype):
        large = np.abs(np.asarray(values, float)) > LARGEST
        if large.any():
            k = int(large.argmax())
            raise ValueError(
                f"{where(table, name, k)}: the {role} {listed(np.asarray(values)[[k]])} is a number of so many digits that "
                f"others are rounded to the same one: read the column of the {role} as text{_more(large)}"
            )


def _more(wrong: Flags, what: str = "rows") -> str:
    return f" ({wrong.sum()} such {what} in all)" if wrong.sum() > 1 else ""


def _with_declared(found: list[Any], columns: pd.DataFrame) -> list[Any]:
    """Labels that occur, and categories or truth values that columns declare beside, as long as they are two."""
    declared: list[Any] = []
    for dtype in columns.dtypes:
        if isinstance(dtype, pd.CategoricalDtype):
            declared += list(dtype.categories)
        elif pd.api.types.is_bool_dtype(dtype):
            declared += [True, False]
    labels = list(dict.fromkeys([*found, *declared]))
    return labels if len(labels) == 2 else found


def _which_positive(
    votes: pd.DataFrame, width: int, label: Codes, found: list[Any], labels: list[Any], positive: object
) -> Flags:
    """Which of the labels found are the positive one, which may be among the others; ``width`` entries stand in a row."""
    if not found:
        raise ValueError("votes has no label at all: every one is missing")
    if len(found) > 2:
        times = np.bincount(label[label >= 0])
        rare = int(times.argmin())
        k = int((label == rare).argmax())
        long = "; if each row is a vote, name its columns item, annotator and label" if width > 1 else ""
        raise ValueError(
            f"votes has {len(found)} different labels ({listed(found)}): there must be two classes. The rarest, "
            f"{listed(found[rare:][:1])} (votes: {times[rare]}), is first in {where(votes, 'votes', k // width)}; "
            f"mend it, recode it, or leave it empty (a missing vote){long}"
        )
    if positive is None:
        raise ValueError(f"positive is missing: name the label of the positive class, one of {listed(labels)}")
    if not any(same(value, positive) for value in labels):
        raise ValueError(not_among(positive, found, "votes"))
    return np.array([same(value, positive) for value in found], dtype=bool)


def read_features(features: pd.DataFrame, truth: object) -> "tuple[pd.DataFrame, pd.Series[Any] | None]":
    """Features as floats, nan where missing, items in the index; and the truth, taken out of them if it is a column."""
    features = as_pandas(features)
    if not isinstance(features, pd.DataFrame):
        raise ValueError(f"features must be a DataFrame, got {type(features).__name__}")
    X = by_item(features, "features")
    twice = X.index.duplicated()
    if twice.any():
        k = int(twice.argmax())
        first = int((X.index == X.index[k]).argmax())
        pair = X.iloc[[first, k]].astype(str)
        differ = pair.columns[(pair.iloc[0] != pair.iloc[1]).to_numpy()]
        how = f"differ in {listed(differ)}: leave out what is not of the item" if len(differ) else "are alike: leave one out"
        rows = X is features or pd.api.types.is_integer_dtype(features.index)  # whose numbers name no item
        hint = "" if rows else ". Items are named by a column here: if it is the index, name the index 'item'"
        raise ValueError(
            f"item {listed(X.index[[k]])} has two rows: {where(features, 'features', first)} and "
            f"{where(features, 'features', k)}, which {how}{hint}"
        )
    if not X.columns.is_unique:
        raise ValueError(f"features has more than one column named {X.columns[X.columns.duplicated()][0]!r}")
    if isinstance(truth, Hashable) and truth is not None:
        if truth not in X.columns:
            raise ValueError(f"truth: features has no column {truth!r}; its columns are {listed(X.columns)}")
        X, truth = X.drop(columns=[truth]), X[truth]
    if not X.size:
        raise ValueError(f"features has no numbers: {len(X)} items and {X.shape[1]} columns of features")
    return pd.DataFrame({name: _floats(X[name], name, features) for name in X.columns}, index=X.index.rename("item")), truth


def _floats(column: "pd.Series[Any]", name: Hashable, features: pd.DataFrame) -> Array:
    if not is_real(column):
        raise ValueError(
            f"features, column {name!r} is of type {column.dtype}: features must be real numbers, such as of days for dates"
        )
    numbers: Array = pd.to_numeric(column, errors="coerce").to_numpy(float, na_value=np.nan)
    wrong = (np.isnan(numbers) & column.notna().to_numpy()) | np.isinf(numbers)
    if wrong.any():
        k = int(wrong.argmax())
        item = "" if column.index.equals(features.index) else f" (item {listed(column.index[[k]])})"
        raise ValueError(
            f"{where(features, 'features', k)}{item}, column {name!r} is {listed(column.iloc[[k]])}: features must be finite "
            f"numbers{_more(wrong)}"
        )
    most = np.abs(numbers).max(initial=0, where=~np.isnan(numbers))
    if most and not 1e-100 < most < 1e100:
        raise ValueError(
            f"features, column {name!r} holds numbers of at most {most:.2g}, with squares beyond all that can be computed: "
            "change its unit"
        )
    return numbers


def read_truth(truth: "pd.Series[Any]", items: "pd.Index[Any]", labels: list[Any], positive: object) -> Array:
    """True labels in the order of the items as 1 and 0, nan where unknown: in the words of the votes, or 1 and 0."""
    if not isinstance(truth, pd.Series):
        raise ValueError(f"truth must be the name of a column of features, or a Series by item, got {type(truth).__name__}")
    if truth.index.has_duplicates:
        raise ValueError(f"truth has item {listed(truth.index[truth.index.duplicated()][:1])} more than once")
    known = truth.dropna()
    strange = places(items, known.index) < 0
    if strange.any():
        raise ValueError(
            f"truth has item {listed(known.index[strange][:1])}, which is not in features{_more(strange, 'items')}; its items "
            f"are {listed(items)}"
        )
    values = known.astype(object)
    as_number = values.map(lambda value: NUMBERS.get(str(value).lower()))
    word, number = values.isin(labels), as_number.notna()
    if word.all():
        answer = values.map(lambda value: same(value, positive))
    elif number.all():
        _must_mean_one_thing(values, labels, positive)
        answer = as_number
    else:
        wrong = ~(word | number)
        mixed = not wrong.any()  # each would do, but not both kinds
        k = int((~word if mixed else wrong).to_numpy().argmax())
        name, value = listed(values.index[[k]]), values.iloc[k]
        blank = " (a text without a letter, which is not missing)" if isinstance(value, str) and not value.strip() else ""
        other = f" and that of item {listed(values.index[word][:1])} {listed(values[word][:1])}" if mixed else ""
        raise ValueError(
            f"truth of item {name} is {listed([value])}{blank}{other}: each must be one of the labels of the votes "
            f"({listed(labels)}), or each 0 or 1, and None or nan where it is unknown"
        )
    return np.asarray(answer.astype(float).reindex(items))


def _must_mean_one_thing(truth: "pd.Series[Any]", labels: list[Any], positive: object) -> None:
    """Where truth is in 0 and 1 and votes are not, 1 is the positive class; not so if the votes' word for it is like 0."""
    for label in labels:
        number, what = (0, "positive") if same(label, positive) else (1, "negative")
        if str(label).lower().removesuffix(".0") in (str(number), str(bool(number)).lower()):
            raise ValueError(
                f"truth of item {listed(truth.index[:1])} is {listed(truth[:1])}, where 1 would stand for the positive class, "
                f"but the votes' label of the {what} class is {label!r}: write truth in the labels of the votes "
                f"({listed(labels)})"
            )
