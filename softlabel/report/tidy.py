"""Tables as people have them under usual names; what was guessed is said."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softlabel.report.cells import WHOLE, find_label, ids, is_text, stripped, unmarked, with_numbers, with_points
from softlabel.report.classes import cells
from softlabel.report.columns import (
    KNOWN,
    find_column,
    is_in,
    must_be_annotators,
    must_be_features,
    must_be_labels,
    must_be_there,
    names,
    plain,
)
from softlabel.report.files import Source, read
from softlabel.tables import ROLES, where
from softlabel.validation import listed, same

UNKNOWN = "not known"  # who gave a vote that was only counted


@dataclass(frozen=True, eq=False)
class Tables:
    """Votes and features under their usual names, the truth and the positive label in their words, and what was done."""

    votes: pd.DataFrame
    features: pd.DataFrame | None
    truth: object
    positive: object
    notes: tuple[str, ...]
    files: dict[str, str]
    annotators_known: bool


def tidy(
    votes: Any,
    features: Any,
    roles: dict[str, Hashable],
    *,
    positive: object,
    truth: object,
    columns: Sequence[Hashable] | None,
    exclude: Sequence[Hashable],
    counts: Sequence[Hashable],
    missing: Iterable[object],
) -> Tables:
    """Both tables, as :func:`softlabel.analyse_votes` is given them."""
    voted = read(votes, "votes")
    sources, known = {"votes": voted}, None
    if features is not None:
        known = sources["features"] = read(features, "features")
    must_be_there(exclude, [source.frame for source in sources.values()])
    one = known is not None and known.frame.equals(voted.frame)
    own = _tidy_votes(voted, roles, counts, missing, exclude)
    if known is not None:
        if one:
            _leave_out_votes(known, own, columns, truth)
        _tidy_features(known, roles["item"], columns, truth, exclude, own)
        truth = _same_kind(voted, known, truth)
        _must_not_lack_zeros(voted.frame, known.frame)
    labels = voted.frame[cells(voted.frame)]
    words = pd.Series(labels.to_numpy(object).ravel()).dropna().unique()
    _must_read_differently(voted.frame, labels, words)
    if positive is not None:
        positive = find_label(words, positive)
        if "label" not in voted.frame and not any(same(word, positive) for word in words) and is_in(positive, labels):
            raise ValueError(
                f"positive={positive!r} is no label but a column of votes: if such columns count the votes for a label, name "
                "them by count_columns= (--counts)"
            )
        text = all(map(pd.api.types.is_string_dtype, labels.dtypes))  # else a column may declare what does not occur
        if voted.file and text and len(words) and not any(same(word, positive) for word in words):
            raise ValueError(
                f"positive={positive!r} is not among the labels of votes ({listed(words)}): name one of them by positive= "
                "(--positive)"
            )
    if known is not None:
        truth = _in_words(known, truth, words)
    return Tables(
        votes=voted.frame,
        features=None if known is None else known.frame,
        truth=truth,
        positive=positive,
        notes=tuple(dict.fromkeys(text for source in sources.values() for text in source.notes)),
        files={name: source.file for name, source in sources.items() if source.file},
        annotators_known=not len(counts),
    )


def _tidy_votes(
    source: Source,
    given: dict[str, Hashable],
    counts: Sequence[Hashable],
    missing: Iterable[object],
    exclude: Sequence[Hashable],
) -> list[Hashable]:
    """Votes as :func:`softlabel.tables.read_votes` takes them: long, or wide with the items in a column or in the index.

    The answer are the columns that hold votes, in a table that may have others.
    """
    frame = _plain_frame(source.frame, "votes").drop(columns=list(exclude), errors="ignore")
    marks: list[object] = [missing] if isinstance(missing, str) else list(missing)
    if len(counts):
        if len(marks):
            raise ValueError(
                "missing is for votes with a label each: of votes that are counted, leave the column of such a label out of "
                "count_columns (--counts)"
            )
        columns_of_counts = names(counts, "count_columns", frame, "votes")
        if len(set(columns_of_counts)) < 2:
            raise ValueError(f"count_columns must be a column of votes for each of at least two labels, got {list(counts)!r}")
        _from_counts(source, frame, find_column(frame, "item", given["item"], "votes"), columns_of_counts)
        return columns_of_counts
    found = {role: column for role in given if (column := find_column(frame, role, given[role], "votes")) is not None}
    if len(found) == 2:
        role = next(role for role in given if role not in found)
        raise ValueError(
            f"votes has no column for the {role} that is known by its name: say which it is by {role}= (--{role}). Its "
            f"columns are {listed(frame.columns)}"
        )
    if len(found) == 3:
        if guessed := [f"{c!r} is the {role}" for role, c in found.items() if given[role] is None and c not in ROLES[role]]:
            source.notes.append(f"Columns of votes, by their names: {', '.join(guessed)}.")
        frame, labels = frame[list(found.values())].set_axis(list(found), axis=1), ["label"]
    else:
        frame = _with_items(source, frame, found.get("item"))
        labels = [column for column in frame.columns if column != "item"]
    columns = {name: frame[name] for name in frame.columns}
    for role in [role for role in ("item", "annotator") if role in columns]:
        columns[role] = ids(columns[role], f"{role}s of votes", source.notes)
    given_labels = {name: stripped(columns[name], "labels of votes", source.notes) for name in labels}
    columns |= unmarked(given_labels, marks, source.notes)
    source.frame = pd.DataFrame(columns, index=ids(frame.index, "items of votes", source.notes))
    if len(found) < 3:
        must_be_annotators(source.frame[labels], source.file)
    return [column for role, column in found.items() if role != "item"]


def _leave_out_votes(features: Source, own: list[Hashable], columns: Sequence[Hashable] | None, truth: object) -> None:
    """Of a table that holds both votes and features, those columns that hold the votes."""
    for argument, given in (("truth", [truth]), ("columns", [] if columns is None else columns)):
        if named := [column for column in own if any(same(column, name) for name in given)]:
            raise ValueError(
                f"{argument}: column {named[0]!r} holds the votes themselves, as votes and features are one table; "
                "true labels and features take columns of their own"
            )
    features.frame = features.frame.drop(columns=own)
    if own and columns is None:
        features.notes.append(f"Votes and features are one table; of the votes, and no features, are {listed(own)}.")


def _tidy_features(
    source: Source,
    item: Hashable,
    columns: Sequence[Hashable] | None,
    truth: object,
    exclude: Sequence[Hashable],
    own: list[Hashable],
) -> None:
    """Features as :func:`softlabel.tables.read_features` takes them, with the truth if it is a column of theirs."""
    frame = _plain_frame(source.frame, "features").drop(columns=list(exclude), errors="ignore")
    frame = _with_items(source, frame, find_column(frame, "item", item, "features"))
    if truth is not None and isinstance(truth, Hashable):
        names([truth], "truth", frame, "features")
    others = [column for column in ("item", truth) if isinstance(column, Hashable) and column in frame.columns]
    features = (
        [c for c in frame.columns if c not in others] if columns is None else names(columns, "columns", frame, "features")
    )
    numbers = with_numbers(frame[list(dict.fromkeys(features))], source.notes)
    if columns is None:
        must_be_features(numbers, truth is None, own)
    out = {name: frame[name] for name in dict.fromkeys([*others, *features])}
    if "item" in out:
        out["item"] = ids(out["item"], "items of features", source.notes)
    out |= dict(with_points(numbers, source).items())
    out |= {name: stripped(out[name], f"{name!r} of features", source.notes) for name in others if name != "item"}
    source.frame = pd.DataFrame(out, index=ids(frame.index, "items of features", source.notes))
    if "item" in out and (again := source.frame.duplicated()).any():  # as in a file of votes, which has features in each
        source.notes.append(f"Rows of features that repeat one above, counted once: {again.sum():,}.")
        source.frame = source.frame[~again]


def _same_kind(votes: Source, features: Source, truth: object) -> object:
    """Items of both tables, and of the truth, as text where those of one table are text and those of the other are not."""
    tables = [_items(source.frame) for source in (votes, features)]
    if isinstance(truth, pd.Series) and len(truth):
        tables.append(truth.index)
    if len({is_text(items) for items in tables}) < 2 or any(pd.api.types.is_float_dtype(items.dtype) for items in tables):
        return truth
    for source in (votes, features):
        items = _items(source.frame)
        if "item" in source.frame:
            source.frame = source.frame.assign(item=items.astype(object).map(_as_text))
        else:
            source.frame = source.frame.set_axis(pd.Index(items).astype(object).map(_as_text).rename(items.name))
    votes.notes.append("Items are numbers in one table and text in another, and were matched as text.")
    return truth.set_axis(truth.index.astype(object).map(_as_text)) if isinstance(truth, pd.Series) else truth


def _must_not_lack_zeros(votes: pd.DataFrame, features: pd.DataFrame) -> None:
    """An error where items of one table alone are those of the other but for zeros in front, which spreadsheets drop."""
    if not all(is_text(_items(frame)) for frame in (votes, features)):
        return
    voted, known = (pd.Series(_items(frame)).reset_index(drop=True).drop_duplicates() for frame in (votes, features))
    lone = [own[~own.isin(other)].astype(str) for own, other in ((voted, known), (known, voted))]
    short, others = (items[items.str.fullmatch("[0-9]+")].str.lstrip("0") for items in lone)
    alike = short[short.isin(others)]
    if len(alike):
        k, other = alike.index[0], others.index[others == alike.iloc[0]][0]
        beside = f"{known[other]!r} in {where(features, 'features', other)}"
        raise ValueError(
            f"{where(votes, 'votes', k)}: item {voted[k]!r} is {beside} (such items in all: {len(alike)}): write them alike "
            "in both tables, or read items as text in both. Numbers lose zeros in front, in a spreadsheet as well"
        )


def _must_read_differently(votes: pd.DataFrame, labels: pd.DataFrame, words: NDArray[Any]) -> None:
    """Labels that are the same but for capitals, or as 1 and 1.0, are not two classes."""
    first: dict[str, object] = {}
    for word in words:
        text = str(word).casefold()
        other = first.setdefault(text.removesuffix(".0") if WHOLE.fullmatch(text) else text, word)
        if other is not word:
            row = int((labels.astype(object) == word).any(axis=1).argmax())
            raise ValueError(
                f"votes has the labels {listed([other, word])}, which read alike and cannot be two classes: write them in one "
                f"way. {listed([word])} is first in {where(votes, 'votes', row)}"
            )


def _in_words(features: Source, truth: Any, words: NDArray[Any]) -> Any:
    """True labels in the words of the votes, where they differ from them in capitals alone."""
    if isinstance(truth, pd.Series):
        meant = {word.casefold(): word for word in words if isinstance(word, str)}
        return truth.astype(object).map(lambda value: meant.get(value.casefold(), value) if isinstance(value, str) else value)
    if truth is not None and isinstance(truth, Hashable) and truth in features.frame.columns:
        features.frame = features.frame.copy(deep=False)
        features.frame[truth] = _in_words(features, features.frame[truth], words)
    return truth


def _items(frame: pd.DataFrame) -> Any:
    return frame.get("item", frame.index)


def _as_text(item: Any) -> Any:
    return item if isinstance(item, str) or pd.isna(item) else str(item)


def _plain_frame(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """A table with one name for each column and each row; of a long one with its items in the index, these as a column."""
    if frame.index.nlevels > 1:
        raise ValueError(
            f"{name} has an index of several levels ({listed(frame.index.names)}): name the items by one column, 'item'"
        )
    if frame.columns.nlevels > 1:
        raise ValueError(f"{name} has names of columns with several levels: give them one")
    if not frame.columns.is_unique:
        raise ValueError(f"{name} has more than one column named {frame.columns[frame.columns.duplicated()][0]!r}")
    long = any(plain(column) in KNOWN["label"] for column in frame.columns)
    return frame.reset_index() if name == "votes" and long and frame.index.name in ROLES["item"] else frame


def _with_items(source: Source, frame: pd.DataFrame, column: Hashable) -> pd.DataFrame:
    """Items under their usual name; a file without a column known for them has them in its first, a frame in its index."""
    if column is None and source.file is not None:
        column = frame.columns[0]
    return frame if column is None else frame.rename(columns={column: "item"})


def _from_counts(source: Source, frame: pd.DataFrame, item: Hashable, columns: list[Hashable]) -> None:
    """A row for each vote, of annotators who are not known."""
    frame = _with_items(source, frame, item)
    rows = ids(frame["item"] if "item" in frame else frame.index.to_series(), "items of votes", source.notes)
    if rows.duplicated().any():
        raise ValueError(f"votes has more than one row of counts for item {listed(rows[rows.duplicated()][:1])}")
    times = np.column_stack([pd.to_numeric(frame[c], errors="coerce").to_numpy(float, na_value=np.nan) for c in columns])
    wrong = ~((times >= 0) & (times == np.floor(times)) & (times < 2**31))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        place = f"{frame.index.name or 'row'} {listed(frame.index[[row]])}, column {columns[column]!r}"
        raise ValueError(
            f"votes, {place} is {listed(frame[columns[column]].iloc[[row]])}: numbers of votes must be whole, and 0 for none"
        )
    must_be_labels(columns, times)
    row, column = np.divmod(np.repeat(np.arange(times.size), times.astype(int).ravel()), len(columns))
    long = {"item": np.asarray(rows)[row], "annotator": UNKNOWN, "label": np.array(columns, object)[column]}
    source.frame = pd.DataFrame(long, index=frame.index[row])
    source.notes.append("Votes came counted, so that nothing can be said of annotators.")
