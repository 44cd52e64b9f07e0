"""Labels of more than two classes: one of them against the rest, or each for itself."""

import re
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softlabel.tables import NUMBERS, VoteTable, read_votes, where
from softlabel.validation import listed, same

MOST = 50  # classes
OFTEN = 10  # votes, below which a third label is taken for a slip
NONE = re.compile(  # words that are no class
    r"(i am |i'm |im )?(not sure|unsure|uncertain|undecided)|(i )?(don'?t|do not|can'?t|can ?not) (know|tell|say|decide|judge)"
    r"|skip(ped)?|unknown|unclear|not clear|no (idea|answer|opinion)|idk|\?+"
)
DOUBTFUL = re.compile(r"none|n/?a|not applicable|-1(\.0)?")  # and those that may be one


def cells(votes: pd.DataFrame) -> list[Any]:
    """The columns of a tidy table that hold labels: that of a long one, or one for each annotator."""
    return ["label"] if {"annotator", "label"} <= set(votes.columns) else [name for name in votes.columns if name != "item"]


def labels_of(votes: pd.DataFrame) -> "pd.Series[int]":
    """The different labels and how many votes each has, most first."""
    if not votes.size:
        return pd.Series(dtype=int)  # read_votes says what is wrong
    counted = pd.concat([votes[name].astype(object).value_counts() for name in cells(votes)])
    counts: pd.Series[int] = counted.groupby(level=0, sort=False).sum().sort_values(ascending=False, kind="stable")
    return counts


def doubtful(labels: "pd.Series[int]", positive: object) -> tuple[str, ...]:
    """A note on labels of three or more that are taken as they are, and may say that there is none."""
    found = [label for label in labels.index if DOUBTFUL.fullmatch(str(label).lower()) and not same(label, positive)]
    if not found or len(labels) < 3:
        return ()
    counted = ", ".join(f"{label!r} (votes: {labels[label]})" for label in found)
    return (
        f"Taken for a class is {counted}: if it says that there is none, leave it out by "
        f"missing=[{listed(found)}] (--missing).",
    )


def are_several(votes: pd.DataFrame, labels: "pd.Series[int]", positive: object) -> bool:
    """Whether there are three classes or more; an error if a third label is a slip of the pen, a number, or no label.

    The positive one was named, and is none of these.
    """
    if len(labels) < 3:
        return False
    found = f"votes has {len(labels)} different labels ({listed(labels.index)})"
    others = labels[[not same(label, positive) for label in labels.index]]
    signs = any(NUMBERS.get(str(label).lower()) == 1 for label in labels.index)  # of which -1 is the opposite
    plain = {label: str(label).lower().replace("’", "'").strip(" .") for label in others.index}
    if none := [label for label, text in plain.items() if NONE.fullmatch(text) or (text in ("-1", "-1.0") and not signs)]:
        counted = ", ".join(f"{label!r} (votes: {labels[label]})" for label in none)
        raise ValueError(
            f"{found}. No class is {counted}: leave it out by missing=[{listed(none)}] (--missing), or give it another name "
            "if it is a class"
        )
    if len(labels) > MOST or others.iloc[-1] < OFTEN:
        rare = others.index[-1]
        row = np.any([votes[name].astype(object) == rare for name in cells(votes)], axis=0).argmax()
        raise ValueError(
            f"{found}: there must be two classes, or at most {MOST} of {OFTEN} votes each. The rarest, {rare!r} (votes: "
            f"{others.iloc[-1]}), is first in {where(votes, 'votes', int(row))}; mend it, recode it, or leave it empty (a "
            "missing vote)"
        )
    return True


def first(labels: "pd.Series[int]", positive: object) -> "pd.Series[int]":
    """The labels with the positive one first; an error if it is not among them."""
    is_other = np.array([not same(label, positive) for label in labels.index], bool)
    if is_other.all():
        raise ValueError(f"positive={positive!r} is not among the labels of votes ({listed(labels.index)})")
    return labels.iloc[np.argsort(is_other, kind="stable")]


def rest_of(labels: "pd.Series[int]", positive: object) -> str:
    """A word for all labels but one of them, which is none of them."""
    first(labels, positive)  # an error if it is none of them
    word = f"not {positive}"
    while word in labels.index:
        word = f"({word})"
    return word


def against_the_rest(values: "pd.Series[Any]", positive: object, rest: str) -> "pd.Series[Any]":
    """Labels with ``rest`` in the place of all but the positive one."""
    code, words = pd.factorize(values.astype(object))
    new = np.array([word if same(word, positive) else rest for word in words] + [np.nan], dtype=object)
    return pd.Series(new[code], values.index, name=values.name)


def what_it_is_on(labels: "pd.Series[int]", positive: object) -> str:
    """What a report on one of several classes is on, in words."""
    counted = ", ".join(f"{label!r} {count:,}" for label, count in labels.items())
    return f"Votes have {len(labels)} labels ({counted}): this report is on {positive!r} against all others together."


def truth_against_the_rest(truth: "pd.Series[Any]", labels: "pd.Index[Any]", positive: object, rest: str) -> "pd.Series[Any]":
    """The same of true labels, where they are in the words of the votes; an error where 1 may mean a label or yes."""
    known = truth.dropna()
    numbers, words = ({NUMBERS.get(str(value).lower()) for value in values} for values in (known.unique(), labels))
    if numbers and None not in numbers and numbers <= words and NUMBERS.get(str(positive).lower()) != 1:
        raise ValueError(
            f"truth of item {listed(known.index[:1])} is {listed(known[:1])}, and all of truth is 0 or 1: labels of the "
            f"votes, or 1 for {positive!r}? Write truth as {positive!r} and {rest!r}"
        )
    return against_the_rest(truth, positive, rest) if known.astype(object).isin(labels).all() else truth


def one_against_the_rest(votes: pd.DataFrame, positive: object, rest: str) -> pd.DataFrame:
    """A table of votes with two labels."""
    votes = votes.copy(deep=False)
    for name in cells(votes):
        votes[name] = against_the_rest(votes[name], positive, rest)
    return votes


def read_classes(
    votes: pd.DataFrame, positive: object, repeats: Literal["first", "keep"]
) -> tuple[VoteTable, NDArray[np.intp], "pd.Index[Any]"]:
    """Votes as codes, the code of each label, and the labels, most frequent first; the positive one before them."""
    labels = labels_of(votes)
    several = are_several(votes, labels, positive)
    labels = labels if positive is None or labels.empty else first(labels, positive)
    if not several:
        table = read_votes(votes, labels.index[0] if len(labels) else None, repeats)
        return table, np.where(table.positive, 0, 1), labels.index
    rest = rest_of(labels, labels.index[0])
    tables = [read_votes(one_against_the_rest(votes, word, rest), word, repeats) for word in labels.index]
    code = np.argmax([table.positive for table in tables], axis=0)
    wrong = sum(table.n_contradictions for table in tables) // 2  # a repeat by another label differs for two of the labels
    return replace(tables[0], n_contradictions=wrong, labels=labels.index.tolist()), code, labels.index


def with_pseudonyms(table: VoteTable) -> VoteTable:
    """Annotators as A1, A2, ... in the order in which they first appear."""
    return replace(table, annotators=pd.Index([f"A{k + 1}" for k in range(len(table.annotators))]))
