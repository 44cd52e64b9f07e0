"""The paper's published values, and the verdict on each.

The ledger ``claims.yml`` holds every checkable statement of Ahfock & McLachlan (2021). A chapter that recomputes one calls
:func:`check`; the built book collects what was checked, and judges it when the pages are written.

The rule: a value *agrees* if |difference| <= half a unit of the last printed digit + 3 sqrt(se_ours^2 + se_paper^2). Its power
is this tolerance as a share of the printed value: no smaller change would have been noticed. With a power of more than a fifth
it *agrees weakly*.
"""

import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
import yaml

from softlabel.book.numbers import show
from softlabel.datasets import VoteData

#: What this process has checked, by id: value and standard error, or the reason why there is none. The build of the book asks
#: for it when a chapter has run, and judges when it writes the pages.
recorded: dict[str, dict[str, Any]] = {}
#: The printed values that this process has looked up: if one changes, what was computed from it is out of date.
looked_up: dict[str, str] = {}

#: A check that would accept a value off by more than this share says little.
WEAK = 0.2
KINDS = ("agrees", "agrees weakly", "differs", "not checked")
RESULTS = ("proved", "recomputed", "weakly", "differs", "not checked")


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, as in ``claims.yml``; ``printed`` and ``se`` are the digits on the page."""

    id: str
    where: str
    statement: str
    printed: str | None = None
    se: str | None = None
    reason: str | None = None
    condition: str | None = None
    proved: bool = False

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
    """The verdict on one claim, one of :data:`KINDS`; ``power`` is the smallest relative change that would be noticed."""

    id: str
    verdict: str
    value: float | bool | None = None
    se: float = 0.0
    tolerance: float | None = None
    power: float | None = None
    reason: str | None = None

    def __repr__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        printed = ledger()[self.id].printed
        if printed is None or self.value is None:
            return f"{self.id}: {self.verdict}{reason}"
        return f"{self.id}: {self.verdict}, {self.value:.6g} here, {printed} printed, tolerance {self.tolerance:.2g}{reason}"


@cache
def _file() -> list[Any]:
    return list(yaml.safe_load_all(files("softlabel.book").joinpath("claims.yml").read_text(encoding="utf-8")))


@cache
def ledger() -> dict[str, Claim]:
    """All claims by their id, in the order of the paper.

    Examples
    --------
    >>> ledger()["gastro.alpha0.truth"].printed
    '5.47'
    """
    _, entries = _file()
    claims = {entry["id"]: Claim(**entry) for entry in entries}
    if len(claims) != len(entries):
        raise ValueError("claims.yml lists an id twice")
    return claims


def claim(id: str) -> Claim:
    """The claim with this id; an unknown id is a ``ValueError``."""
    entry = _entry(id)
    looked_up[id] = f"{entry.printed} {entry.se}"
    return entry


def _entry(id: str) -> Claim:
    try:
        return ledger()[id]
    except KeyError:
        raise ValueError(f"no claim {id!r} in claims.yml") from None


def check(values: Mapping[str, Any], data: VoteData | None = None) -> "Checked":
    """Record recomputed values beside the printed ones.

    Parameters
    ----------
    values : mapping
        By the id in ``claims.yml``: the value, as a fraction where the paper prints a percentage, or a pair of the value and
        its standard error; for a statement without a number, whether it holds, or a pair of that and the power of its check.
        The standard error is that of the comparison beyond the one that the paper prints: the Monte Carlo error of the value,
        and the sampling error of the paper's number where it prints none.
    data : VoteData, optional
        What the values were computed from: if it is a stand-in, the claims count as not checked.

    Returns
    -------
    Checked
        The verdicts; in a notebook, a table of paper and book.

    Raises
    ------
    ValueError
        If an id is unknown, a value is not finite, or its kind does not fit the claim.

    Examples
    --------
    >>> check({"gastro.alpha0.truth": 5.4739, "table1.m5.alpha1.delta1": (1.70, 0.08)})
    gastro.alpha0.truth: agrees, 5.4739 here, 5.47 printed, tolerance 0.005
    table1.m5.alpha1.delta1: agrees weakly, 1.7 here, 1.58 printed, tolerance 0.32
    """
    if not values:
        raise ValueError("values is empty: it needs at least one claim, by its id")
    found = {}
    for id, value in values.items():
        pair = value if isinstance(value, tuple) else (value, 0.0)
        if len(pair) != 2:
            raise ValueError(f"claim {id!r} needs a value, or a pair of a value and its standard error, got {value!r}")
        found[id] = _record(id, *pair)
    if data is not None and data.source.startswith("simulated"):
        found = {id: {"reason": "the data files could not be had"} for id in found}
    recorded.update(found)
    return Checked([judge(id, **record) for id, record in found.items()])


def _record(id: str, value: Any, se: float) -> dict[str, Any]:
    entry = _entry(id)
    if isinstance(value, bool | np.bool_) != (entry.printed is None):
        kind = "True or False" if entry.printed is None else "a number"
        raise ValueError(f"claim {id!r} needs {kind}, got {value!r}")
    if not isinstance(value, numbers.Real | np.bool_):
        raise ValueError(f"claim {id!r} needs a number, got {value!r}")
    if not (np.isfinite(float(value)) and np.isfinite(se) and se >= 0):
        raise ValueError(f"claim {id!r}: value and se must be finite and se not negative, got {value!r} and {se!r}")
    if entry.printed is None:
        return {"value": bool(value), "power": float(se) or None}
    return {"value": float(value), "se": float(se)}


def judge(
    id: str,
    value: float | bool | None = None,
    se: float = 0.0,
    power: float | None = None,
    reason: str | None = None,
    **_: object,
) -> Verdict:
    """The verdict on a recorded value, by the ledger as it is now; further fields of the record do not matter."""
    entry = _entry(id)
    if value is None:
        return Verdict(id, "not checked", reason=reason or "no chapter recomputes it")
    tolerance = None
    if entry.printed is None:
        holds = bool(value)
    else:
        tolerance = entry.half_unit + 3 * float(np.hypot(se, _number(entry.se) if entry.se else 0.0))
        power = None if entry.proved else tolerance / abs(entry.value)  # a proof does not depend on the printed digits
        # A value on the edge of the tolerance must not fail for the rounding of 0.47 in binary.
        holds = abs(value - entry.value) <= tolerance * (1 + 1e-9)
    if not holds:
        return Verdict(id, "differs", value, se, tolerance, power, entry.reason or "unexplained")
    condition = f"under a condition that the paper lacks: {entry.condition}" if entry.condition else None
    return Verdict(id, "agrees weakly" if (power or 0) > WEAK else "agrees", value, se, tolerance, power, condition)


class Checked(list[Verdict]):
    """Verdicts; as the output of a cell, a table of paper and book that the build of the book judges anew."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_markdown_(self) -> str:
        frame = comparison(self)
        frame["Claim"] += [f" (`{v.id}`)" for v in self]
        return show(frame)._repr_markdown_()


def printed(id: str) -> str:
    """What the paper prints, as text.

    Examples
    --------
    >>> printed("fig2.error_share")
    '24%'
    """
    return _entry(id)._digits


def count(verdict: str, *patterns: str, found: Mapping[str, Any] | None = None) -> int:
    """How many claims have this verdict, or "all"; in a notebook, of those that it has checked itself.

    Those that agree weakly count among those that agree.

    Examples
    --------
    >>> count("all", "table1.*.are")
    12
    """
    records = recorded if found is None else found
    if verdict not in (*KINDS, "all"):
        raise ValueError(f"verdict must be one of {', '.join(map(repr, KINDS))} or 'all', got {verdict!r}")
    for pattern in patterns:
        if not any(fnmatch(id, pattern) for id in ledger()):
            raise ValueError(f"no claim in claims.yml fits {pattern!r}")
    ids = [id for id in ledger() if any(fnmatch(id, pattern) for pattern in patterns or ["*"])]
    return sum(verdict == "all" or judge(id, **records.get(id, {})).verdict.startswith(verdict) for id in ids)


def count_results(kind: str, found: Mapping[str, Any] | None = None) -> int:
    """How many results are of this kind, one of those of :func:`results`, or "all".

    Examples
    --------
    >>> count_results("all") == len(results({}))
    True
    """
    if kind not in (*RESULTS, "all"):
        raise ValueError(f"kind must be one of {', '.join(map(repr, RESULTS))} or 'all', got {kind!r}")
    return sum(kind in (found_kind, "all") for found_kind in results(recorded if found is None else found).values())


def results(found: Mapping[str, Any]) -> dict[str, str]:
    """What has been found on each result: claims that stand or fall together are one, as ``claims.yml`` lists them.

    A result "differs" if one of its claims does, and is "not checked" if one is not. Else it is "proved" (and checked) if all
    are, "recomputed" if one of its checks has power, and "weakly" recomputed if none has.

    Examples
    --------
    >>> results({"table3.m5.alpha1.are": {"value": 5 * 2 / 6}})["the efficiencies by the formula"]
    'not checked'
    """
    groups, _ = _file()
    members: dict[str, list[Verdict]] = {}
    for id in ledger():
        name = next((name for name, patterns in groups.items() if any(fnmatch(id, p) for p in patterns)), id)
        members.setdefault(name, []).append(judge(id, **found.get(id, {})))
    return {name: _together(verdicts) for name, verdicts in members.items()}


def _together(verdicts: list[Verdict]) -> str:
    kinds = {verdict.verdict for verdict in verdicts}
    for kind in ("differs", "not checked"):
        if kind in kinds:
            return kind
    if all(ledger()[verdict.id].proved for verdict in verdicts):
        return "proved"
    return "recomputed" if "agrees" in kinds else "weakly"


def comparison(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """The paper's values beside ours, as a table of texts."""
    rows = []
    for v in verdicts:
        entry = _entry(v.id)
        rows.append(
            {
                "Verdict": v.verdict + (f": {v.reason}" if v.reason else ""),
                "Claim": entry.statement,
                "Paper": (entry.printed or "holds") + (f" ({entry.se})" if entry.se else ""),
                "Book": format_like(v.value, entry.printed) + (f" ({format_like(v.se, entry.printed)})" if v.se else ""),
                "Power": "" if v.power is None else f"{v.power:.{0 if v.power >= 0.095 else 1}%}",
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
