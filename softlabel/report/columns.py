"""Which column of a table holds what, by its name, and which cannot hold what it would have to."""

import re
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softlabel.report.cells import is_text
from softlabel.tables import ROLES
from softlabel.validation import listed, same

# Names of columns without capitals, blanks and signs; those of softlabel.tables need no remark.
ALIASES = {
    "item": "itemid taskid unit unitid hitid assignmenttaskid example exampleid questionid",
    "annotator": "annotatorid workerid performer assignmentworkerid user userid rater raterid coder labeler labeller "
    "labelerid labellerid completedby",
    "label": "answer response vote choice annotation judgment judgement",
}
KNOWN = {role: {*ROLES[role], *aliases.split()} for role, aliases in ALIASES.items()}
ANSWERS = re.compile("(?:answer|output)[.:].+", re.IGNORECASE)  # of Mechanical Turk and of Toloka
TOTALS = re.compile(
    "((n|num|number|count|sum|total)?(of)?(total|sum|all|votes?|voters|annotators|raters|labels|ratings|annotations|answers)"
    "(total|sum|count|n)?)|count|size"
)
MANY = 20  # items
NAMELESS = re.compile(r"Unnamed: (\d+)")  # as pandas calls a column without a name, by its place from 0
TRUTHS = re.compile("(is)?(true|truth|gold|golden|groundtruth|target|y|ytrue|gt)(labels?|class|standard)?|labels?|class")


def is_in(name: object, frame: pd.DataFrame) -> bool:
    return any(same(column, name) for column in frame.columns)


def names(columns: Any, argument: str, frame: pd.DataFrame, name: str) -> list[Hashable]:
    """Columns that must be there."""
    if isinstance(columns, str | bytes) or not pd.api.types.is_list_like(columns):
        raise ValueError(f"{argument} must be a list of columns of {name}, got {columns!r}")
    for column in columns:
        if not isinstance(column, Hashable) or column not in frame.columns:
            raise ValueError(f"{argument}: {name} has no column {column!r}; its columns are {listed(frame.columns)}")
    return list(columns)


def must_be_there(exclude: Sequence[Hashable], frames: list[pd.DataFrame]) -> None:
    """A column that is to be left out is in one table at least."""
    if isinstance(exclude, str | bytes):
        raise ValueError(f"exclude must be a list of columns, got {exclude!r}")
    for name in exclude:
        if not any(is_in(name, frame) for frame in frames):
            columns = dict.fromkeys(column for frame in frames for column in frame.columns)
            raise ValueError(f"exclude: there is no column {name!r}; columns are {listed(columns)}")


def find_column(frame: pd.DataFrame, role: str, given: Hashable, name: str) -> Hashable:
    """The column of a role, as it was named or by the names that are common for it; None if there is none.

    The items of features may go by another name than those of votes, if it is a common one.
    """
    if given is not None and (name == "votes" or is_in(given, frame)):
        return names([given], role, frame, name)[0]
    if role == "item" and plain(frame.index.name) in KNOWN[role]:  # a column called task is something else
        return None
    if name == "features" and "item" in frame.columns:  # and a task may be a feature
        return "item"
    known = [column for column in frame.columns if plain(column) in KNOWN[role]]
    if role == "item" and not known and "annotation_id" in frame.columns:  # of Label Studio
        known = [column for column in frame.columns if column == "id"]
    if role == "label" and not known:
        known = [column for column in frame.columns if ANSWERS.fullmatch(str(column))]
    if len(known) > 1:
        raise ValueError(f"{name} has columns {listed(known)}, but only one can be the {role}: name it by {role}= (--{role})")
    if given is not None and not known:
        raise ValueError(
            f"{role}: {name} has no column {given!r}, as votes has, nor one known for the {role}: give both tables the same; "
            f"its columns are {listed(frame.columns)}"
        )
    return known[0] if known else None


def plain(name: Hashable) -> str:
    return re.sub("[^a-z0-9]", "", str(name).lower())


def must_be_annotators(wide: pd.DataFrame, file: str | None) -> None:
    """A column of a wide table that shares no label with another is something else, such as a text, and so is the truth.

    So may one be that has no name.
    """
    for column in wide.columns:
        if found := NAMELESS.fullmatch(str(column)):
            held = listed(list(wide[column].dropna().unique()))
            raise ValueError(
                f"{'votes, ' + file if file else 'votes'} has a column without a name (column {int(found[1]) + 1}, which "
                f"holds {held}): name its annotator, or leave it out by exclude=[{column!r}] (--exclude {str(column)!r})"
            )
    labels = {column: set(wide[column].dropna().unique()) for column in wide.columns}
    few = len(set().union(*labels.values())) < 3
    for column, own in labels.items():
        if not few and own and not own & set().union(*(labels[other] for other in labels if other != column)):
            raise ValueError(
                f"votes, column {column!r} holds {listed(sorted(own, key=str))}, which no other column does. If it is no "
                f"annotator, leave it out by exclude=[{column!r}] (--exclude {column}); if each row is a vote, name its "
                "columns by item=, annotator= and label= (--item, --annotator, --label)"
            )
    for column in labels:
        if len(plain(column)) > 2 and TRUTHS.fullmatch(plain(column)):  # shorter ones may be initials
            raise ValueError(
                f"votes has a column {column!r}, which looks like true labels and not like an annotator: leave it out by "
                f"exclude=[{column!r}] (--exclude {column}), and give true labels with the features; an annotator of that "
                "name must get another"
            )


def must_be_labels(columns: list[Hashable], times: NDArray[np.float64]) -> None:
    """A column of counts that holds the sum of the others is no label.

    So it is taken to be where it is nowhere below that sum, and is called a total; or, over many items, always equals the sum
    of two others and more, or is the same number for all items where that sum is not.
    """
    many = len(times) >= MANY
    for column, own in zip(columns, times.T):
        others = times.sum(axis=1) - own
        is_sum = many and len(columns) > 2 and (own == others).all()
        is_fixed = many and (own == own[0]).all() and not (others == others[0]).all()
        if (own >= others).all() and (TOTALS.fullmatch(plain(column)) or is_sum or is_fixed):
            raise ValueError(
                f"count_columns: column {column!r} is in no row below the sum of the others, and looks like the number of all "
                "votes: give a column for each label (--counts), of which the last is the difference; a label by such a name "
                "must get another"
            )


def must_be_features(frame: pd.DataFrame, no_truth: bool, own: list[Hashable]) -> None:
    """No numbers of rows, no truth that was not named, no text."""
    text = []
    for column in frame.columns:
        if NAMELESS.fullmatch(str(column)):
            raise ValueError(
                f"features has a column without a name, which begins with {listed(list(frame[column][:3]))} and looks like "
                f"numbers of rows: leave it out by exclude=[{column!r}] (--exclude {str(column)!r})"
            )
        if no_truth and TRUTHS.fullmatch(plain(column)):
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
