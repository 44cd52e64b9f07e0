"""The paper's published values, and the verdict on each.

The ledger ``claims.yml`` holds every checkable statement of Ahfock & McLachlan (2021). A chapter that recomputes one calls
:func:`check`; the built book collects what was checked and lists every verdict.

The rule: a value *agrees* if |difference| <= half a unit of the last printed digit + 3 sqrt(se_ours^2 + se_paper^2).
"""

import json
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from tabulate import tabulate

MIME = "application/vnd.softlabel.verdict+json"


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, as in ``claims.yml``; ``printed`` and ``se`` are the digits on the page."""

    id: str
    where: str
    statement: str
    printed: str | None = None
    se: str | None = None
    reason: str | None = None

    @property
    def value(self) -> float:
        """The printed value as a number."""
        return _number(self._digits)

    @property
    def half_unit(self) -> float:
        """Half a unit of the last printed digit."""
        places = len(self._digits.rstrip("%").partition(".")[2])
        return 0.5 * 10.0**-places * (0.01 if self._digits.endswith("%") else 1)

    @property
    def _digits(self) -> str:
        if self.printed is None:
            raise ValueError(f"claim {self.id!r} is a statement without a number")
        return self.printed


def _number(printed: str) -> float:
    return float(printed.rstrip("%")) / (100 if printed.endswith("%") else 1)


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim: "agrees", "differs" or "not checked"."""

    id: str
    verdict: str
    value: float | bool | None
    se: float
    printed: str | None
    tolerance: float | None
    reason: str | None

    def __repr__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        if self.printed is None or self.value is None:
            return f"{self.id}: {self.verdict}{reason}"
        values = f"{self.value:.6g} here, {self.printed} printed, tolerance {self.tolerance:.2g}"
        return f"{self.id}: {self.verdict}, {values}{reason}"


@cache
def ledger() -> dict[str, Claim]:
    """All claims by their id, in the order of the paper.

    Examples
    --------
    >>> ledger()["gastro.alpha0.truth"].printed
    '5.47'
    """
    entries = yaml.safe_load(files("softlabel.book").joinpath("claims.yml").read_text(encoding="utf-8"))
    claims = {entry["id"]: Claim(**entry) for entry in entries}
    if len(claims) != len(entries):
        raise ValueError("claims.yml lists an id twice")
    return claims


def claim(id: str) -> Claim:
    """The claim with this id; an unknown id is a ``ValueError``."""
    try:
        return ledger()[id]
    except KeyError:
        raise ValueError(f"no claim {id!r} in claims.yml") from None


def check(id: str, value: float | bool, se: float = 0.0) -> Verdict:
    """Compare a recomputed value with the printed one, and record the verdict in the executed chapter.

    Parameters
    ----------
    id : str
        Key in ``claims.yml``.
    value : float or bool
        The value, as a fraction where the paper prints a percentage. For a statement without a number: whether it holds.
    se : float
        Standard error of the comparison beyond the one the paper prints: the Monte Carlo error of ``value``, and the sampling
        error of the paper's number where it prints none.

    Returns
    -------
    Verdict

    Raises
    ------
    ValueError
        If the id is unknown, the value is not finite, or its kind does not fit the claim.

    Examples
    --------
    >>> check("gastro.alpha0.truth", 5.4739)
    gastro.alpha0.truth: agrees, 5.4739 here, 5.47 printed, tolerance 0.005
    >>> check("table1.m5.alpha1.delta1", 1.70, se=0.08).verdict
    'agrees'
    """
    entry = claim(id)
    if isinstance(value, bool | np.bool_) != (entry.printed is None):
        kind = "True or False" if entry.printed is None else "a number"
        raise ValueError(f"claim {id!r} needs {kind}, got {value!r}")
    if entry.printed is not None and not isinstance(value, numbers.Real):
        raise ValueError(f"claim {id!r} needs a number, got {value!r}")
    if not (np.isfinite(value) and np.isfinite(se) and se >= 0):
        raise ValueError(f"claim {id!r}: value and se must be finite and se not negative, got {value!r} and {se!r}")
    if entry.printed is None:
        holds, value, tolerance = bool(value), bool(value), None
    else:
        value, se_paper = float(value), _number(entry.se) if entry.se else 0.0
        tolerance = entry.half_unit + 3 * float(np.hypot(se, se_paper))
        # A value on the edge of the tolerance must not fail for the rounding of 0.47 in binary.
        holds = abs(value - entry.value) <= tolerance * (1 + 1e-9)
    reason = None if holds else entry.reason or "unexplained"
    return _record(Verdict(id, "agrees" if holds else "differs", value, float(se), entry.printed, tolerance, reason))


def skip(id: str, reason: str) -> Verdict:
    """Record that a claim could not be checked, and why (such as a data file that could not be had)."""
    return _record(Verdict(id, "not checked", None, 0.0, claim(id).printed, None, reason))


def _record(verdict: Verdict) -> Verdict:
    """In a notebook, keep the verdict among the outputs of the cell, where the build of the book finds it."""
    _publish({MIME: asdict(verdict)})
    return verdict


def _publish(data: Mapping[str, object], metadata: Mapping[str, object] | None = None) -> None:
    """Attach data to the outputs of the running cell; outside a notebook do nothing."""
    try:
        from IPython import get_ipython
    except ImportError:
        return
    if (shell := get_ipython()) is not None:
        shell.display_pub.publish(data, metadata or {})


def glue(name: str, text: str | pd.DataFrame) -> None:
    """Keep a piece of text, or a table, under a name by which the prose of the chapter can paste it.

    Parameters
    ----------
    name : str
        Key for MyST-NB's ``{glue:text}`` (text) and ``{glue:md}`` (tables, pasted as Markdown).
    text : str or DataFrame
        Text that is already formatted, or a table of such texts. Columns that hold numbers stand right.

    Raises
    ------
    TypeError
        If a bare number is passed: its digits would be anybody's choice.
    """
    if isinstance(text, pd.DataFrame):
        text = text.replace(r"^-(?=\d)", "\N{MINUS SIGN}", regex=True)
        align = ["right" if text[column].str.match(r"[\N{MINUS SIGN}+<]?\s*\d").any() else "left" for column in text]
        columns = text.to_dict("list")
        text = tabulate(columns, headers="keys", tablefmt="pipe", disable_numparse=True, colalign=align)
    if not isinstance(text, str):
        raise TypeError(f"glue({name!r}, ...) needs formatted text, got {type(text).__name__}")
    prefix = "application/papermill.record/"  # MyST-NB's convention, so that the book's pages need not import it
    # It evaluates plain text as a Python literal: without quotes "0.50" would lose its zero.
    record = {f"{prefix}text/plain": repr(text), f"{prefix}text/markdown": text}
    _publish(record, {"scrapbook": {"name": name, "mime_prefix": prefix}})


def comparison(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """The paper's values beside ours, as a table of texts for :func:`glue`."""
    rows = [
        {
            "Claim": claim(v.id).statement,
            "Paper": (v.printed or "holds") + (f" ({claim(v.id).se})" if claim(v.id).se else ""),
            "Book": format_like(v.value, v.printed) + (f" ({format_like(v.se, v.printed)})" if v.se else ""),
            "Verdict": v.verdict + (f": {v.reason}" if v.reason else ""),
        }
        for v in verdicts
    ]
    return pd.DataFrame(rows)


def verdict_table(path: str | Path) -> pd.DataFrame:
    """Every claim with its verdict, from the file ``verdicts.json`` that a build of the book writes.

    Parameters
    ----------
    path : path
        The file; if there is none, no claim has been checked.

    Returns
    -------
    DataFrame
        Columns id, where, statement, printed, printed_se, book, se, verdict, reason, chapter; one row a claim, in the order
        of the paper.
    """
    path = Path(path)
    checked = {v["id"]: v for v in json.loads(path.read_text(encoding="utf-8"))} if path.exists() else {}
    rows = []
    for entry in ledger().values():
        v = checked.get(entry.id, {"verdict": "not checked", "reason": "no chapter recomputes it yet"})
        book = v.get("value")
        rows.append(
            {
                "id": entry.id,
                "where": entry.where,
                "statement": entry.statement,
                "printed": entry.printed or "",
                "printed_se": entry.se or "",
                "book": format_like(book, entry.printed),
                "se": format_like(v.get("se") or None, entry.printed),
                "verdict": v["verdict"],
                "reason": v.get("reason") or "",
                "chapter": v.get("chapter", ""),
            }
        )
    return pd.DataFrame(rows)


def format_like(value: float | bool | None, printed: str | None) -> str:
    """A number with one digit more than the printed one, and its percent sign.

    Examples
    --------
    >>> format_like(5.4739, "5.47"), format_like(0.2248, "24%"), format_like(True, None)
    ('5.474', '22.5%', 'holds')
    """
    if value is None:
        return ""
    if printed is None:
        return "holds" if value else "fails"
    percent = printed.endswith("%")
    digits = len(printed.rstrip("%").partition(".")[2])
    if not digits and not percent and float(value).is_integer():
        return f"{value:.0f}"
    return f"{value * 100:.{digits + 1}f}%" if percent else f"{value:.{digits + 1}f}"
