"""What every report on votes can do: show itself, save a page, and give its numbers to other programs."""

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from softlabel.labellers import Finding, LabellerFindings
from softlabel.report.parts import QUESTIONS, Headline, Interval
from softlabel.tables import VoteTable
from softlabel.validation import optional

SCHEMA = "softlabel report 1"


def made_today(rng: np.random.Generator | int | None) -> dict[str, str]:
    """Date, version and seed, for whoever wants to make a report again."""
    try:
        number = version("softlabel")
    except PackageNotFoundError:  # run from its folder
        number = "unknown"
    seed = str(rng) if isinstance(rng, Integral) else "a generator of the caller"
    seed = "none: other draws each time" if rng is None else seed
    return {"date": date.today().isoformat(), "version": number, "seed": seed}


def counted(table: VoteTable, used: int, items: dict[str, int]) -> dict[str, int]:
    """What there was, and what became of it."""
    return {
        "votes read": table.n_rows,
        "missing votes": table.n_missing,
        "repeated votes": table.n_repeats,
        "votes used": used,
        **items,
        "annotators": len(table.annotators),
        "annotators without a vote": table.n_silent,
        "contradictory repeats": table.n_contradictions,
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class Report(ABC):
    """What :class:`VoteReport` and :class:`AgreementReport` have in common.

    Attributes
    ----------
    items, annotators : DataFrame
        One row each.
    counted : dict
        Rows, items, votes, missing votes, repeats and so on, as they were found.
    agreement : Interval or None
        Krippendorff's alpha of the votes: 1 if votes on an item always agree, 0 if as often as by chance. None if there is
        nothing to compare; nan for an interval that cannot be had. ``agreement_lacks`` says why.
    alpha0 : Interval
        Overdispersion parameter: value, low, high; ``nan``, 0 and ``inf`` where no item has two votes, and 0 and ``inf``
        where no interval can be had. ``alpha0_lacks`` says why.
    findings : LabellerFindings or None
        What :func:`examine_labellers` has found; None, without features, of one label or of three and more.
    notes : tuple of str
        What was guessed or done where the tables were read.
    files, made : dict
        Names of the files; date, version of softlabel, and seed.
    positive, repeats, level
        Arguments.
    """

    kind: ClassVar[str] = "votes and features"

    items: pd.DataFrame
    annotators: pd.DataFrame
    counted: dict[str, int]
    agreement: Interval | None
    agreement_lacks: str
    alpha0: Interval
    alpha0_lacks: str
    findings: LabellerFindings | None
    notes: tuple[str, ...]
    files: dict[str, str]
    made: dict[str, str]
    positive: object
    repeats: Literal["first", "keep"]
    level: float

    @property
    @abstractmethod
    def headline(self) -> Headline:
        """Three answers in words."""

    @property
    @abstractmethod
    def details(self) -> tuple[str, ...]:
        """More findings in words."""

    @property
    @abstractmethod
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to believe a number, gravest first."""

    @property
    @abstractmethod
    def methods(self) -> str:
        """A paragraph for the methods section of a paper."""

    @property
    def found(self) -> tuple[Finding, ...]:
        """What was found of annotators and features."""
        return self.findings.findings if self.findings else ()

    @property
    def kinds(self) -> set[str]:
        """Kinds of these."""
        return {finding.kind for finding in self.found}

    @property
    def set_aside(self) -> tuple[str, ...]:
        """What was not used, and why."""
        found = list(self.notes)
        if missing := self.counted["missing votes"]:
            found.append(f"Votes without a label, not used: {missing:,}.")
        if repeated := self.counted["repeated votes"]:
            what = "not used" if self.repeats == "first" else "used like any other"
            found.append(
                f"Further votes of an annotator on the same item, {what}: {repeated:,}; "
                f"of them contradict the first: {self.counted['contradictory repeats']:,}."
            )
        if silent := self.counted["annotators without a vote"]:
            found.append(f"Annotators with a name in the table but no vote, not counted: {silent:,}.")
        return tuple(found)

    def table(self) -> pd.DataFrame:
        """The main numbers: a row each, with the ends of the interval where there is one."""
        value, low, high = self.alpha0
        numbers: dict[str, Any] = {
            **self.counted,
            "votes an item": self.counted["votes used"] / self.counted.get("items used", self.counted["items"]),
            "Krippendorff's alpha": self.agreement,
            "alpha0": self.alpha0,
            "correlation of two votes": (1 / (1 + value), 1 / (1 + high), 1 / (1 + low)),
            **self._numbers(),
        }
        known = {name: row for name, row in numbers.items() if row is not None}
        ends = {name: row if isinstance(row, tuple) else (row, np.nan, np.nan) for name, row in known.items()}
        return pd.DataFrame(ends, index=["value", "low", "high"]).T.rename_axis("quantity")

    @abstractmethod
    def _numbers(self) -> dict[str, Any]:
        """Further numbers for :meth:`table`."""

    def _tables(self) -> dict[str, pd.DataFrame]:
        """Tables for :meth:`to_dict`."""
        return {"annotators": self.annotators, "items": self.items}

    def sentences(self) -> list[str]:
        """The findings in words: the three answers first."""
        return [*self.headline, *self.details]

    def to_dict(self) -> dict[str, Any]:
        """All that is on the page as numbers and text; ``softlabel/report/schema.json`` describes it.

        An infinite number is "inf", and one that is not known None.
        """
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "made": {**self.made, "files": self.files, "level": self.level, "repeats": self.repeats},
            "positive": _plain(self.positive),
            "headline": self.headline._asdict(),
            "details": list(self.details),
            "warnings": list(self.warnings),
            "set_aside": list(self.set_aside),
            "findings": [{name: _plain(value) for name, value in finding._asdict().items()} for finding in self.found],
            "numbers": _rows(self.table()),
            "tables": {name: _rows(frame) for name, frame in self._tables().items()},
            "methods": self.methods,
        }

    def to_json(self) -> str:
        """:meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)

    def __repr__(self) -> str:
        asked = [f"{question} {answer}" for question, answer in zip(QUESTIONS, self.headline)]
        doubts = [f"WARNING: {text}" for text in self.warnings]
        return "\n  ".join([type(self).__name__, *asked, *self.details, *self.set_aside, *doubts])

    def _repr_html_(self) -> str:
        optional("matplotlib", "report", f"{type(self).__name__}.to_html")
        from softlabel.report.page import fragment  # matplotlib takes longer to import than the rest of the package

        return fragment(self)

    def to_html(self) -> str:
        """The whole report as one page that needs no other file and no network."""
        optional("matplotlib", "report", f"{type(self).__name__}.to_html")
        from softlabel.report.page import page

        return page(self)

    def save(self, path: str | Path) -> None:
        """Write :meth:`to_html` to a file."""
        Path(path).write_text(self.to_html(), encoding="utf-8")


def _plain(value: Any) -> Any:
    """A value of JSON."""
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return None if value is pd.NA else str(value)


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A row of a table each, its label first."""
    names: list[Hashable] = [frame.index.name or "row", *frame.columns]
    return [
        {str(name): _plain(value) for name, value in zip(names, row)} for row in frame.astype(object).itertuples(name=None)
    ]
