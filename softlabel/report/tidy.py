"""Which column of a table holds what; what was guessed is said."""

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softlabel.report.cells import WHOLE, find_label, ids, is_text, stripped, unmarked, with_points
from softlabel.report.files import Source, read
from softlabel.tables import where
from softlabel.validation import listed, same

# Names of columns without capitals, blanks and signs; those of the first lines need no remark.
USUAL = {"item": ("item", "task"), "annotator": ("annotator", "worker"), "label": ("label",)}
ALIASES = {
    "item": ("itemid", "taskid", "unit", "unitid", "hitid", "assignmenttaskid", "example", "exampleid", "questionid"),
    "annotator": (
        *("annotatorid", "workerid", "performer", "assignmentworkerid", "user", "userid", "rater", "raterid", "coder"),
        *("labeler", "labeller", "labelerid", "labellerid", "completedby"),
    ),
    "label": ("answer", "response", "vote", "choice", "annotation", "judgment", "judgement"),
}
ANSWERS = re.compile("(?:answer|output)[.:].+", re.IGNORECASE)  # of Mechanical Turk and of Toloka
TRUTHS = re.compile("(is)?(true|truth|gold|golden|groundtruth|target|y|ytrue|gt)(labels?|class|standard)?|labels?|class")
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
    _must_be_there(exclude, [source.frame for source in sources.values()])
    one = known is not None and known.frame.equals(voted.frame)
    own = _tidy_votes(voted, roles, counts, missing, exclude)
    if known is not None:
        if one:
            _leave_out_votes(known, own, columns, truth)
        _tidy_features(known, roles["item"], columns, truth, exclude, own)
        truth = _same_kind(voted, known, truth)
    labels = voted.frame[["label"]] if "label" in voted.frame else voted.frame.drop(columns="item", errors="ignore")
    words = pd.Series(labels.to_numpy(object).ravel()).dropna().unique()
    _must_read_differently(voted.frame, labels, words)
    if positive is not None:
        positive = find_label(words, positive)
        if "label" not in voted.frame and not any(same(word, positive) for word in words) and _is_in(positive, labels):
            raise ValueError(
                f"positive={positive!r} is no label but a column of votes: if such columns count the votes for a label, name "
                "them by count_columns= (--counts)"
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
    frame = without(_plain_frame(source.frame, "votes"), exclude)
    if len(counts):
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
        if guessed := [f"{c!r} is the {role}" for role, c in found.items() if given[role] is None and c not in USUAL[role]]:
            source.notes.append(f"Columns of votes, by their names: {', '.join(guessed)}.")
        frame, labels = frame[list(found.values())].set_axis(list(found), axis=1), ["label"]
    else:
        frame = _with_items(source, frame, found.get("item"))
        labels = [column for column in frame.columns if column != "item"]
    marks: list[object] = [missing] if isinstance(missing, str) else list(missing)
    columns = {name: frame[name] for name in frame.columns}
    for role in {"item", "annotator"} & set(columns):
        columns[role] = ids(columns[role], f"{role}s of votes", source.notes)
    for name in labels:
        columns[name] = unmarked(stripped(columns[name], "labels of votes", source.notes), marks)
    source.frame = pd.DataFrame(columns, index=ids(frame.index, "items of votes", source.notes))
    if len(found) < 3:
        _must_be_annotators(source.frame[labels])
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
    frame = without(_plain_frame(source.frame, "features"), exclude)
    frame = _with_items(source, frame, find_column(frame, "item", item, "features"))
    others = [column for column in ("item", truth) if isinstance(column, Hashable) and column in frame.columns]
    features = (
        [c for c in frame.columns if c not in others] if columns is None else names(columns, "columns", frame, "features")
    )
    if columns is None:
        _must_be_features(frame[features], truth is None, own)
    out = {name: frame[name] for name in dict.fromkeys([*others, *features])}
    if "item" in out:
        out["item"] = ids(out["item"], "items of features", source.notes)
    out |= dict(with_points(frame[list(dict.fromkeys(features))], source).items())
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
        features.frame[truth] = _in_words(features, features.frame[truth], words)
    return truth


def _is_in(name: object, frame: pd.DataFrame) -> bool:
    return any(same(column, name) for column in frame.columns)


def _items(frame: pd.DataFrame) -> Any:
    return frame.get("item", frame.index)


def _as_text(item: Any) -> Any:
    return item if isinstance(item, str) or pd.isna(item) else str(item)


def names(columns: Any, argument: str, frame: pd.DataFrame, name: str) -> list[Hashable]:
    """Columns that must be there."""
    if isinstance(columns, str | bytes) or not pd.api.types.is_list_like(columns):
        raise ValueError(f"{argument} must be a list of columns of {name}, got {columns!r}")
    for column in columns:
        if not isinstance(column, Hashable) or column not in frame.columns:
            raise ValueError(f"{argument}: {name} has no column {column!r}; its columns are {listed(frame.columns)}")
    return list(columns)


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
    long = any(_plain(column) in USUAL["label"] + ALIASES["label"] for column in frame.columns)
    return frame.reset_index() if name == "votes" and long and frame.index.name in ("item", "task") else frame


def _must_be_there(exclude: Sequence[Hashable], frames: list[pd.DataFrame]) -> None:
    """A column that is to be left out is in one table at least."""
    if isinstance(exclude, str | bytes):
        raise ValueError(f"exclude must be a list of columns, got {exclude!r}")
    for name in exclude:
        if not any(_is_in(name, frame) for frame in frames):
            columns = dict.fromkeys(column for frame in frames for column in frame.columns)
            raise ValueError(f"exclude: there is no column {name!r}; columns are {listed(columns)}")


def without(frame: pd.DataFrame, exclude: Sequence[Hashable]) -> pd.DataFrame:
    """A column that is to be left out may be in either table."""
    return frame.drop(columns=[column for column in exclude if column in frame.columns])


def find_column(frame: pd.DataFrame, role: str, given: Hashable, name: str) -> Hashable:
    """The column of a role, as it was named or by the names that are common for it; None if there is none."""
    if given is not None:
        return names([given], role, frame, name)[0]
    if role == "item" and _plain(frame.index.name) in USUAL[role] + ALIASES[role]:  # a column called task is something else
        return None
    if name == "features" and "item" in frame.columns:  # and a task may be a feature
        return "item"
    known = [column for column in frame.columns if _plain(column) in USUAL[role] + ALIASES[role]]
    if role == "item" and not known and "annotation_id" in frame.columns:  # of Label Studio
        known = [column for column in frame.columns if column == "id"]
    if role == "label" and not known:
        known = [column for column in frame.columns if ANSWERS.fullmatch(str(column))]
    if len(known) > 1:
        raise ValueError(f"{name} has columns {listed(known)}, but only one can be the {role}: name it by {role}= (--{role})")
    return known[0] if known else None


def _plain(name: Hashable) -> str:
    return re.sub("[^a-z0-9]", "", str(name).lower())


def _with_items(source: Source, frame: pd.DataFrame, column: Hashable) -> pd.DataFrame:
    """Items under their usual name; a file without a column known for them has them in its first, a frame in its index."""
    if column is None and source.file is not None:
        column = frame.columns[0]
    return frame if column is None else frame.rename(columns={column: "item"})


def _must_be_annotators(wide: pd.DataFrame) -> None:
    """No truth, and no column that shares no label with another: such an address or a text."""
    for column in wide.columns:
        if len(_plain(column)) > 2 and TRUTHS.fullmatch(_plain(column)):  # shorter ones may be initials
            raise ValueError(
                f"votes has a column {column!r}, which looks like true labels and not like an annotator: leave it out by "
                f"exclude=[{column!r}] (--exclude {column}), and give true labels with the features; an annotator of that "
                "name must get another"
            )
    labels = {column: set(wide[column].dropna().unique()) for column in wide.columns}
    if len(set().union(*labels.values())) < 3:
        return
    for column, own in labels.items():
        if own and not own & set().union(*(labels[other] for other in labels if other != column)):
            raise ValueError(
                f"votes, column {column!r} holds {listed(sorted(own, key=str))}, which no other column does. If it is no "
                f"annotator, leave it out by exclude=[{column!r}] (--exclude {column}); if each row is a vote, name its "
                "columns by item=, annotator= and label= (--item, --annotator, --label)"
            )


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
    each = times.astype(int).ravel()
    long = {"item": rows, "line": frame.index}
    cells = {name: np.repeat(np.repeat(np.asarray(values), len(columns)), each) for name, values in long.items()}
    label = np.repeat(np.tile(np.array(columns, object), len(frame)), each)
    index = pd.Index(cells.pop("line"), name=frame.index.name)
    source.frame = pd.DataFrame(cells | {"annotator": UNKNOWN, "label": label}, index=index)
    source.notes.append("Votes came counted, so that nothing can be said of annotators.")


def _must_be_features(frame: pd.DataFrame, no_truth: bool, own: list[Hashable]) -> None:
    """No numbers of rows, no truth that was not named, no text."""
    text = []
    for column in frame.columns:
        if str(column).startswith("Unnamed: "):
            raise ValueError(
                f"features has a column without a name, which begins with {listed(list(frame[column][:3]))} and looks like "
                f"numbers of rows: leave it out by exclude=[{column!r}] (--exclude {str(column)!r})"
            )
        if no_truth and TRUTHS.fullmatch(_plain(column)):
            without_it = "" if column in own else f"leave it out by exclude=[{column!r}] (--exclude {column}), or "
            raise ValueError(
                f"features has a column {column!r}, which looks like true labels: say truth={column!r} (--truth {column}), or "
                f"{without_it}list the features by columns= (--columns)"
            )
        known = frame[column].dropna()
        if len(known) and is_text(known):
            number = pd.to_numeric(known.astype(str).str.strip().str.replace(",", ".", regex=False), errors="coerce")
            if number.isna().all():
                text.append(column)
    if text:
        raise ValueError(
            f"features has text, not numbers, in {listed(text)}: leave it out by exclude= (--exclude), or list the features "
            "by columns= (--columns)"
        )
