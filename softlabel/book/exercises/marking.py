"""The answers to the book's exercises, marked: what is right, and what went wrong.

A chapter asks; :func:`mark` says "Right." or explains the mistake. What is right is computed by another route than the
solution's: by summing over all outcomes, by quadrature, by an optimiser. Each exercise also knows some usual mistakes.

An exercise is an entry of a table such as ``votes.yml``, under its key:

- ``wanted``: what the answer should be, in words; ``hint``: what to say of a mistake that is none of the usual ones;
- for an answer that is a function: ``arguments`` and the ``grid`` of rows at which it is called, or a ``grid`` with the values
  of each argument, all combinations of which are tried; ``returns`` names its numbers if it returns several;
- for other answers: ``names`` of their numbers, and ``choices`` for those that are one of several words;
- ``right``: the right answer, in Python; ``rtol`` and ``atol``: how near an answer must come. Of numbers that need not be
  exact three digits are enough, whatever ``rtol`` is;
- ``mistakes``: usual wrong answers, in Python, each with what to say; ``None`` in place of a number stands for any.

An expression may use the names of ``votes.py``, and those that a function ``ex_01_hand()`` there returns, if exercise 01.hand
has one; a function with arguments, such as ``ex_02_further(r)``, is the right answer itself. ``right``, ``measure``,
``names``, ``grid`` and ``read`` (what a returned value counts as) among these names stand for what the entry lacks.
``about(k, answer)`` is a mistake that only the k-th number tells. An exercise is built when it is first asked for.
"""

import copy
import difflib
import html
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from softlabel.validation import Array

PARTS = ("votes", "rules", "models", "harm", "design", "practice")
Names = dict[str, Any]
Measure = Callable[[object], Array]


@dataclass(frozen=True)
class Feedback:
    """What :func:`mark` says about an answer; true if the answer is right."""

    key: str
    right: bool
    message: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.message

    def _repr_html_(self) -> str:
        sign = "\N{CHECK MARK}" if self.right else "\N{MULTIPLICATION X}"
        return f'<p class="exercise-feedback">{sign} {html.escape(self.message)}</p>'


@dataclass(frozen=True)
class Mistake:
    """A wrong answer and what to say about it; ``None`` in place of a number, or another ``part`` than this, is anything."""

    answer: object
    why: str
    part: int | None = None


@dataclass(frozen=True)
class Exercise:
    """What an answer must be.

    ``measure`` turns an answer into one row of numbers, or raises :class:`Unfit`. ``right`` is that row for a right answer,
    and ``names`` says what each number is.
    """

    wanted: str
    measure: Measure
    names: Sequence[str]
    right: Array
    mistakes: Sequence[Mistake]
    hint: str
    rtol: Array
    atol: Array
    loose: NDArray[np.bool_]  # which numbers may be rounded, if they are not whole

    @property
    def rounded(self) -> NDArray[np.bool_]:
        """Which numbers of the right answer may be rounded."""
        return not_whole(self.right) & self.loose

    def close(self, got: Array, to: Array) -> NDArray[np.bool_]:
        """Which numbers agree; two infinities do."""
        size = np.where(np.isfinite(to), np.abs(to), 0)
        with np.errstate(invalid="ignore"):
            return np.asarray((got == to) | (np.abs(got - to) <= self.atol + self.rtol * size))

    def vague(self, got: Array) -> bool:
        """Whether an answer has one or two digits and would be right, had it three."""
        near = self.close(got, self.right)
        for digits in (1, 2):
            short = np.array([value == float(f"{value:.{digits}g}") for value in got])
            near |= short & self._is_rounded(got, self.right, digits)
        return bool(near.all())

    def _is_rounded(self, got: Array, to: Array, digits: int) -> NDArray[np.bool_]:
        with np.errstate(invalid="ignore"):
            return self.loose & not_whole(to) & (np.abs(got - to) <= half_a_unit(to, digits))

    def explains(self, mistake: Mistake, got: Array) -> bool:
        """Whether an answer is this mistake, in the parts that the mistake is about."""
        wrong = self.measure(mistake.answer)
        about = np.logical_not(np.isnan(wrong))
        if mistake.part is not None:
            about &= np.arange(len(wrong)) == mistake.part
        return bool((self.close(got, wrong) | self._is_rounded(got, wrong, 3))[about].all())


class Unfit(Exception):
    """An answer that is not of the kind the exercise asks for; the message says what is."""


def mark(key: str, answer: object) -> Feedback:
    """Mark the answer to an exercise of the book.

    Parameters
    ----------
    key : str
        Chapter and exercise, such as ``"02.hand"``.
    answer : number, sequence or function
        Whatever the exercise asks for. A function is called on inputs of its own.

    Returns
    -------
    Feedback
        Shows as "Right.", or as a remark on what went wrong that does not give the answer away.

    Raises
    ------
    ValueError
        If there is no such exercise.

    Examples
    --------
    >>> mark("06.hand", 2 / 1000)
    Not yet. That is a relative variance; the standard error is its square root.
    >>> mark("06.hand", ...)
    No answer yet. It should be one number, the relative standard error of the ratio. Three digits are enough.
    """
    exercise = find(key)
    if _is_blank(answer):
        digits = " Three digits are enough." if exercise.rounded.any() else ""
        return Feedback(key, False, f"No answer yet. It should be {exercise.wanted}.{digits}")
    try:
        got = exercise.measure(answer)
    except Unfit as error:
        return Feedback(key, False, f"Not yet. {error} The answer should be {exercise.wanted}.")
    off = np.flatnonzero(~exercise.close(got, exercise.right))
    if not len(off):
        return Feedback(key, True, "Right.")
    for mistake in exercise.mistakes:
        if exercise.explains(mistake, got):
            return Feedback(key, False, f"Not yet. {mistake.why}")
    if exercise.vague(got):
        return Feedback(key, False, "Not yet. That may be right, but it is rounded too much: give three digits.")
    if (exercise.close(got, exercise.right) | exercise.close(got / 100, exercise.right)).all():
        return Feedback(key, False, "Not yet. That is in percent: give shares as numbers from 0 to 1.")
    more = f", and {len(off) - 1} more of {len(got)}" if len(off) > 1 else ""
    where = f"Wrong: {exercise.names[int(off[0])]}{more}"
    return Feedback(key, False, f"Not yet. {where}. {exercise.hint}")


@cache
def find(key: str) -> Exercise:
    """The exercise with this key; an unknown key is a ``ValueError``."""
    if key not in _entries():
        near = difflib.get_close_matches(key, keys(), n=3) or keys()
        raise ValueError(f"no exercise {key!r}; there is {', '.join(near)}")
    return _build(key, *_entries()[key])


def keys() -> list[str]:
    """Keys of all exercises, in the order of the book.

    Examples
    --------
    >>> keys()[:3]
    ['01.concept', '01.hand', '01.code']
    """
    return list(_entries())


@cache
def _entries() -> dict[str, tuple[str, Names]]:
    """The table that an exercise is in, and its entry there, by key."""
    tables = {part: yaml.safe_load(files(__package__).joinpath(f"{part}.yml").read_text(encoding="utf-8")) for part in PARTS}
    return {key: (part, entry) for part, table in tables.items() for key, entry in table.items()}


def _build(key: str, part: str, entry: Names) -> Exercise:
    """Make an exercise of its entry and of what the module of that name adds to it."""
    module = import_module(f"{__package__}.{part}")
    names = {**vars(module), "about": lambda part, answer: Mistake(answer, "", part)}
    if own := getattr(module, f"ex_{key.replace('.', '_')}", None):
        names |= {"right": own} if inspect.signature(own).parameters else own()

    def value(expression: object, arguments: Sequence[str] = ()) -> Any:
        head = f"lambda {', '.join(arguments)}: " if arguments else ""
        return eval(f"{head}({expression})", names)  # the tables are the package's own, and no reader's

    def tolerance(field: str, usual: float) -> Array:
        given = entry.get(field, usual)
        return np.array([value(one) for one in given] if isinstance(given, list) else value(given), dtype=float)

    grid: Any = entry.get("grid", names.get("grid"))
    arguments = entry.get("arguments", ())
    if isinstance(grid, dict):
        grid, arguments = list(product(*grid.values())), list(grid)
    takes_grid = grid is not None and "measure" not in names
    right = value(entry["right"], arguments if takes_grid else ()) if "right" in entry else names["right"]
    if takes_grid:
        grid = [tuple(np.array(a) if isinstance(a, list) else a for a in args) for args in grid]
        parts = entry.get("returns", ["the value"])
        places = at(grid, arguments)
        measure = formula(grid, places, len(parts), names.get("read", lambda value: value))
        called = [f"{part} at {place}" for place in places for part in parts] if len(grid) > 1 else parts
        right = np.concatenate([np.ravel(right(*args)) for args in grid])
    else:
        called = entry["names"] if "names" in entry else names["names"]
        measure = names["measure"] if "measure" in names else numbers(called, entry.get("choices"))

    def mistake(expression: object, why: str) -> Mistake:
        wrong = value(expression, arguments)
        return Mistake(wrong.answer, why, wrong.part) if isinstance(wrong, Mistake) else Mistake(wrong, why)

    right = np.atleast_1d(np.asarray(right, dtype=float))
    rtol, atol = tolerance("rtol", 1e-6), tolerance("atol", 1e-9)
    loose = np.broadcast_to((rtol >= 1e-6) & (not takes_grid and "measure" not in names), right.shape)
    return Exercise(
        entry["wanted"],
        measure,
        called,
        right,
        [mistake(*one) for one in entry["mistakes"].items()],
        entry["hint"],
        rtol,
        np.where(loose & not_whole(right), np.maximum(atol, half_a_unit(right, 3)), atol),
        loose,
    )


def not_whole(value: Array) -> NDArray[np.bool_]:
    return np.asarray(value != np.rint(value))


def half_a_unit(value: Array, digits: int) -> Array:
    """Half a unit of the last of so many significant digits, and a little more."""
    size = np.where(np.isfinite(value) & (value != 0), np.abs(value), 1)
    return np.asarray(0.501 * 10 ** (np.floor(np.log10(size)) + 1 - digits))


def _is_blank(answer: object) -> bool:
    if isinstance(answer, tuple | list):
        return len(answer) == 0 or any(_is_blank(part) for part in answer)
    return answer is None or answer is Ellipsis or (isinstance(answer, str) and not answer.strip())


def _shown(value: object) -> str:
    """What a reader has given, in at most 60 characters."""
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python prints
        return f"the {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def numbers(names: Sequence[object], choices: dict[int, Sequence[str]] | None = None) -> Measure:
    """Measure of an answer that is one number for each name; or, at some places, one of several words."""
    choices = choices or {}

    def one(place: int, part: Any) -> float:
        if place in choices and part is not None:
            word = part.strip(" ().").lower() if isinstance(part, str) else part
            if word not in choices[place]:
                raise Unfit(f"{_shown(part)} is not one of {' and '.join(map(repr, choices[place]))}.")
            return float(choices[place].index(word))
        try:
            return np.nan if part is None else float(part)
        except (TypeError, ValueError, OverflowError):
            raise Unfit(f"{_shown(part)} is not a number.") from None

    def measure(answer: Any) -> Array:
        if not isinstance(answer, tuple | list):
            answer = np.ravel(answer) if np.ndim(answer) else [answer]
        parts = list(answer)
        if len(parts) != len(names):
            raise Unfit(f"There are {len(parts)} values where {len(names)} belong.")
        return np.array([one(place, part) for place, part in enumerate(parts)])

    return measure


def call(function: object, *args: object, place: str = "") -> object:
    """The reader's function at copies of these arguments, which it may change; an error in it is the reader's."""
    if not callable(function):
        raise Unfit(f"{_shown(function)} cannot be called.")
    try:
        return function(*copy.deepcopy(args))
    except Exception as error:
        raise Unfit(f"Your function stops{place} with {type(error).__name__}: {error}.") from None


def floats(value: object) -> Array:
    """A part of an answer as an array of numbers."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise Unfit(f"{_shown(value)} does not consist of numbers.") from None


def none_is_infinite(value: object) -> object:
    """A returned value, of a function that may say that there is no such number."""
    return np.inf if value is None else value


def formula(grid: Sequence[tuple[object, ...]], places: Sequence[str], size: int, read: Callable[[object], object]) -> Measure:
    """Measure of an answer that is a function, by its values (``size`` of them each) on a grid of arguments."""

    def measure(function: object) -> Array:
        values = []
        for args, place in zip(grid, places, strict=True):
            value = read(call(function, *args, place=f" at {place}"))
            if value is None or value is Ellipsis:
                raise Unfit(f"Your function returns nothing at {place}.")
            row = floats(value).ravel()
            if row.size != size:
                raise Unfit(f"Your function returns {row.size} numbers at {place}, where {size} belong.")
            values.append(row)
        return np.concatenate(values)

    return measure


def at(grid: Iterable[tuple[object, ...]], arguments: Sequence[str]) -> list[str]:
    """The rows of a grid in words: ``m = 2, D = 0.3``."""

    def text(value: object) -> str:
        return np.array2string(np.asarray(value), precision=3, separator=", ")

    return [", ".join(f"{name} = {text(a)}" for name, a in zip(arguments, args)) for args in grid]
