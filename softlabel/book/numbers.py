"""How the book prints a number, in a sentence and in a table."""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd
from tabulate import tabulate

#: Stands after every number of a chapter that had to use a stand-in for data that could not be had.
mark = ""

MINUS = "\N{MINUS SIGN}"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
WORDS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def num(value: float, spec: str = ".2f") -> str:
    """A number by a format specification, with a proper minus sign and powers of ten.

    Examples
    --------
    >>> num(-0.254), num(1.52e-8, ".1e"), num(12345, ",d"), num(0.183, ".0%"), num(float("inf"))
    ('−0.25', '1.5 × 10⁻⁸', '12,345', '18%', '∞')
    """
    text = "∞" if value == np.inf else f"-{'∞'}" if value == -np.inf else format(value, spec)
    if power := re.fullmatch(r"(-?[\d.]+)e([+-]\d+)", text):
        text = f"{power[1]} × 10{str(int(power[2])).translate(SUPERSCRIPTS)}"
    text = re.sub(r"^-(?=[0.,]+%?$)", "", text)  # minus nothing
    return text.replace("-", MINUS, 1) + mark


def percent(value: float, digits: int = 0) -> str:
    """A share in percent.

    Examples
    --------
    >>> percent(0.183), percent(0.1826, 1)
    ('18%', '18.3%')
    """
    return num(value, f".{digits}%")


def interval(limits: tuple[float, float], spec: str = ".3g") -> str:
    """An interval in words, with three digits that tell unless another format is named.

    Examples
    --------
    >>> interval((2.971, 10.62)), interval((0.1, 0.25), ".0%"), interval((9.5, float("inf")))
    ('2.97 to 10.6', '10% to 25%', '9.5 to ∞')
    """
    low, high = limits
    return f"{num(low, spec)} to {num(high, spec)}"


def with_se(value: float, se: float, spec: str = ".2f") -> str:
    """A value with its standard error in parentheses.

    Examples
    --------
    >>> with_se(-1.584, 0.071)
    '−1.58 (0.07)'
    """
    return f"{num(value, spec)} ({num(se, spec)})"


def in_words(count: int) -> str:
    """A count up to twelve as a word.

    Examples
    --------
    >>> in_words(8), in_words(48), in_words(0)
    ('eight', '48', 'none')
    """
    return WORDS[count] + mark if 0 <= count < len(WORDS) else num(count, "d")


def how_many(count: int, total: int) -> str:
    """How many of all, in words where these are short.

    Examples
    --------
    >>> how_many(48, 48), how_many(46, 48), how_many(0, 48)
    ('all 48', '46 of 48', 'none of 48')
    """
    if count == total:
        return f"all {num(total, 'd')}"
    return f"none of {num(total, 'd')}" if count == 0 else f"{num(count, 'd')} of {num(total, 'd')}"


class show:
    """A data frame as the output of a cell: one table, in a notebook and on the page.

    Parameters
    ----------
    frame : DataFrame
        Its columns hold numbers or texts; those of numbers, with a dash where there is none, stand at the right. An index
        that has a name becomes the first columns.
    formats : str or mapping
        Format specification of the numbers that are not whole (see :func:`num`), for all columns or by column.

    Examples
    --------
    >>> show(pd.DataFrame({"n": [50, 100], "excess error": [-0.0213, 0.0125], "paper": ["–", "1.3%"]}), ".1%")
      n    excess error    paper
    ---  --------------  -------
     50           −2.1%        –
    100            1.2%     1.3%
    """

    def __init__(self, frame: pd.DataFrame, formats: str | Mapping[str, str] = ".2f") -> None:
        frame = frame.reset_index() if any(frame.index.names) else frame
        self.head = [str(name) for name in frame.columns]
        columns = []
        for position, name in enumerate(frame.columns):
            of_whole = formats.get(name, "d") if isinstance(formats, Mapping) else "d"
            spec = formats if isinstance(formats, str) else formats.get(name, ".2f")
            columns.append([_text(value, spec, of_whole) for value in frame.iloc[:, position]])
        self.rows = [list(row) for row in zip(*columns, strict=True)]
        numeric = [all(re.match(r"[−+<]?\s*[\d∞]|–?$", text) for text in column) for column in columns]
        self.align = ["right" if right else "left" for right in numeric]

    def _table(self, kind: str) -> str:
        return str(tabulate(self.rows, headers=self.head, tablefmt=kind, disable_numparse=True, colalign=self.align))

    def _repr_markdown_(self) -> str:
        return self._table("pipe")

    def __repr__(self) -> str:
        return self._table("simple")


def _text(value: object, spec: str, of_whole: str) -> str:
    if isinstance(value, str):
        text = re.sub(r"^-(?=\d)", MINUS, value)
        return text if not re.match(r"[−+<]?\s*[\d∞]", text) or (mark and mark in text) else text + mark
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return num(int(value), of_whole)
    if isinstance(value, float | np.floating):
        return num(float(value), spec)
    return str(value)
