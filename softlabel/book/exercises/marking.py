"""The answers to the book's exercises, marked: what is right, and what went wrong.

A chapter asks; :func:`mark` says "Right." or explains the mistake. What is right is computed by another route than the
solution's: by summing over all outcomes, by quadrature, by an optimiser. Each exercise also knows some usual mistakes.
"""

import difflib
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import numpy as np

_BUILDERS: dict[str, Callable] = {}


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
    """A wrong answer and what to say about it; ``None`` in place of a part, or a part not in ``parts``, matches anything."""

    answer: object
    why: str
    parts: Sequence[int] | None = None


@dataclass(frozen=True)
class Exercise:
    """What an answer must be.

    ``measure`` turns an answer into one row of numbers, or raises :class:`Unfit`. ``right`` is that row for a right answer,
    and ``names`` says what each number is.
    """

    wanted: str
    measure: Callable[[object], np.ndarray]
    names: Sequence[str]
    right: np.ndarray
    mistakes: Sequence[Mistake]
    hint: str
    rtol: float | Sequence[float] = 1e-6
    atol: float | Sequence[float] = 1e-9

    def close(self, got: np.ndarray, to: np.ndarray) -> np.ndarray:
        """Which numbers agree; two infinities do."""
        size = np.where(np.isfinite(to), np.abs(to), 0)
        with np.errstate(invalid="ignore"):
            return (got == to) | (np.abs(got - to) <= np.asarray(self.atol) + np.asarray(self.rtol) * size)

    def explains(self, mistake: Mistake, got: np.ndarray) -> bool:
        """Whether an answer is this mistake, in the parts that the mistake is about."""
        wrong = self.measure(mistake.answer)
        about = ~np.isnan(wrong)
        if mistake.parts is not None:
            about &= np.isin(np.arange(len(wrong)), mistake.parts)
        return bool(self.close(got, wrong)[about].all())


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
    No answer yet. It should be one number, the relative standard error of the ratio.
    """
    exercise = find(key)
    if _is_blank(answer):
        return Feedback(key, False, f"No answer yet. It should be {exercise.wanted}.")
    try:
        got = exercise.measure(answer)
    except Unfit as error:
        return Feedback(key, False, f"Not yet. {error} The answer should be {exercise.wanted}.")
    off = ~exercise.close(got, exercise.right)
    if not off.any():
        return Feedback(key, True, "Right.")
    for mistake in exercise.mistakes:
        if exercise.explains(mistake, got):
            return Feedback(key, False, f"Not yet. {mistake.why}")
    first = exercise.names[off.argmax()]
    where = f"Wrong: {first}" + (f", and {off.sum() - 1} more of {len(off)}" if off.sum() > 1 else "")
    return Feedback(key, False, f"Not yet. {where}. {exercise.hint}")


@cache
def find(key: str) -> Exercise:
    """The exercise with this key; an unknown key is a ``ValueError``."""
    known = keys()
    if key not in known:
        near = difflib.get_close_matches(key, known, n=3) or known
        raise ValueError(f"no exercise {key!r}; there is {', '.join(near)}")
    return _BUILDERS[key]()


def keys() -> list[str]:
    """Keys of all exercises, in the order of the book.

    Examples
    --------
    >>> keys()[:3]
    ['01.hand', '01.code', '01.further']
    """
    parts = [import_module(f"softlabel.book.exercises.{part}") for part in ("votes", "rules", "models", "harm", "design", "practice")]
    names = [part.__name__ for part in parts]
    return sorted(_BUILDERS, key=lambda key: names.index(_BUILDERS[key].__module__))  # however they came to be imported


def exercise(key: str) -> Callable:
    """Register a function that builds the exercise, when it is first asked for."""

    def register(build: Callable[[], Exercise]) -> Callable[[], Exercise]:
        _BUILDERS[key] = build
        return build

    return register


def _is_blank(answer: object) -> bool:
    if isinstance(answer, tuple | list):
        return len(answer) == 0 or any(_is_blank(part) for part in answer)
    return answer is None or answer is Ellipsis or (isinstance(answer, str) and not answer.strip())


def numbers(names: Sequence[str], choices: dict[int, Sequence[str]] | None = None) -> Callable[[object], np.ndarray]:
    """Measure of an answer that is one number for each name; or, at some places, one of several words."""
    choices = choices or {}

    def one(place, part):
        if place in choices and part is not None:
            if part not in choices[place]:
                raise Unfit(f"{part!r} is not one of {' and '.join(map(repr, choices[place]))}.")
            return float(choices[place].index(part))
        try:
            return np.nan if part is None else float(part)
        except (TypeError, ValueError):
            raise Unfit(f"{part!r} is not a number.") from None

    def measure(answer):
        parts = list(answer) if isinstance(answer, tuple | list) or np.ndim(answer) == 1 else [answer]
        if len(parts) != len(names):
            raise Unfit(f"There are {len(parts)} values where {len(names)} belong.")
        return np.array([one(place, part) for place, part in enumerate(parts)])

    return measure


def call(function: object, *args: object) -> object:
    """The reader's function at these arguments; an error in it is the reader's."""
    if not callable(function):
        raise Unfit(f"{function!r} cannot be called.")
    try:
        return function(*args)
    except Exception as error:  # whatever it is, the reader should see it
        raise Unfit(f"Your function stops with {type(error).__name__}: {error}.") from None


def floats(value: object) -> np.ndarray:
    """A part of an answer as an array of numbers."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise Unfit(f"{value!r} does not consist of numbers.") from None


def formula(grid: Sequence[tuple], size: int = 1) -> Callable[[object], np.ndarray]:
    """Measure of an answer that is a function, by its values (``size`` of them each) on a grid of arguments."""

    def measure(function):
        values = []
        for args in grid:
            value = call(function, *args)
            if value is None or value is Ellipsis:
                raise Unfit("Your function returns nothing.")
            row = floats(value).ravel()
            if row.size != size:
                raise Unfit(f"Your function returns {row.size} numbers where {size} belong.")
            values.append(row)
        return np.concatenate(values)

    return measure


def at(grid: Sequence[tuple], *arguments: str) -> list[str]:
    """Names of a formula's values, by the arguments: ``the value at m = 2, D = 0.3``."""

    def text(value):
        return np.array2string(np.asarray(value), precision=3, separator=", ")

    return ["the value at " + ", ".join(f"{name} = {text(a)}" for name, a in zip(arguments, args)) for args in grid]
