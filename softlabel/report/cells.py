"""Cells as they were meant: names without blanks, labels without marks for none, decimal commas; what was mended is said."""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from softlabel.report.files import EMPTY, Source
from softlabel.validation import listed, same

WHOLE = re.compile(r"[+-]?\d+\.0")
NUMBER = r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?"
THOUSANDS = r"[+-]?([1-9]\d{0,2}([.,]\d{3})*|0)"
EXACT = 2**53  # whole numbers above are not all floats


def is_text(values: Any) -> bool:
    dtype = values.dtype.categories.dtype if isinstance(values.dtype, pd.CategoricalDtype) else values.dtype
    return pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)


def ids(values: Any, what: str, notes: list[str]) -> Any:
    """Names of items or annotators: text without blanks around it, whole numbers without a decimal point."""
    if pd.api.types.is_float_dtype(values.dtype):
        known = np.asarray(values[~np.asarray(values.isna())], float)
        if not len(known) or not (known == np.floor(known)).all():
            return values
        return values if np.abs(known).max() > EXACT else values.astype("Int64")  # larger ones are refused with their rows
    values = stripped(values, what, notes)
    if is_text(values):
        different = pd.unique(np.asarray(values.dropna(), object))
        if len(different) and all(isinstance(value, str) and WHOLE.fullmatch(value) for value in different):
            notes.append(f"The {what} end in .0, which was taken away.")
            return values.map(lambda value: value.removesuffix(".0") if isinstance(value, str) else value)
    return values


def stripped(values: Any, what: str, notes: list[str]) -> Any:
    """Text without blanks around it; categories stay, unless one has blanks."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        if all(not isinstance(word, str) or word == word.strip() for word in values.dtype.categories):
            return values
        values = values.astype(values.dtype.categories.dtype)
    if not is_text(values):
        return values
    code, different = pd.factorize(values)
    trimmed = [value.strip() if isinstance(value, str) else value for value in different]
    changed = np.array([old is not new and old != new for old, new in zip(different, trimmed)] + [False], bool)
    if not changed.any():
        return values
    notes.append(f"Blanks around {what} were taken away in {changed[code].sum():,} cells.")  # no name: it may be a secret
    out = np.array([*trimmed, None], object)[code]
    return pd.Index(out, name=values.name) if isinstance(values, pd.Index) else pd.Series(out, values.index, name=values.name)


def unmarked(labels: dict[str, Any], marks: list[object], notes: list[str]) -> dict[str, Any]:
    """Columns of labels without those that say that there is none, in any capitals, or as a number."""
    found: set[int] = set()
    out = dict(labels)
    for name, column in labels.items():
        code, different = pd.factorize(column)
        meant = [{k for k, mark in enumerate(marks) if _is_meant(label, mark)} for label in different]
        found.update(*meant)
        if any(meant):
            out[name] = column.mask(np.array([bool(those) for those in meant] + [False])[code])
    if nowhere := [mark for k, mark in enumerate(marks) if k not in found and str(mark) not in EMPTY]:
        notes.append(f"No label is {listed(nowhere)}, which missing names.")
    return out


def _is_meant(label: Any, mark: Any) -> bool:
    number = _as_number(mark)
    return (
        same(label, mark)
        or str(label).casefold() == str(mark).strip().casefold()
        or (number is not None and _as_number(label) == number)
    )


def with_numbers(features: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Columns of text that hold TRUE and FALSE alone as 1 and 0."""
    features, read = features.copy(deep=False), []
    for name in features.columns:
        known = features[name].notna()
        if is_text(features[name]) and known.any():
            text = features[name].astype(str).str.strip().str.upper()
            if text[known].isin(["TRUE", "FALSE"]).all():
                features[name] = (text == "TRUE").astype(float).where(known)
                read.append(name)
    if read:
        notes.append(f"TRUE and FALSE were read as 1 and 0 in features {listed(read)}.")
    return features


def with_points(features: pd.DataFrame, source: Source) -> pd.DataFrame:
    """Numbers with decimal commas, where commas do not part the columns of a file."""
    if source.separator in (None, ","):
        return features
    cells = {name: features[name].dropna().str.strip() for name in features.columns if is_text(features[name])}
    for name, known in cells.items():
        number = known.str.fullmatch(NUMBER)
        comma = number & known.str.contains(",", regex=False)
        odd = known[~number | known.str.contains(".", regex=False)]
        if 0 < len(odd) < comma.sum():
            raise ValueError(
                f"features, {source.frame.index.name} {odd.index[0]}, column {name!r} is {odd.iloc[0]!r}, where others of the "
                f"column are numbers with decimal commas, such as {known[comma].iloc[0]!r} (such cells in all: {len(odd)}): "
                "write numbers so, without a sign between thousands"
            )
    cells = {name: known for name, known in cells.items() if known.str.fullmatch(NUMBER).all()}
    signs = {name: [sign for sign in ",." if known.str.contains(sign, regex=False).any()] for name, known in cells.items()}
    thousands = {name: bool(signs[name]) and known.str.fullmatch(THOUSANDS).all() for name, known in cells.items()}
    for name in [name for name in cells if thousands[name]]:
        signed = cells[name].str.contains("[.,]")
        first = cells[name][signed]
        other = next((other for other, found in signs.items() if found and found != signs[name]), None)
        if other is not None:
            beside = f"column {other!r} has {cells[other][cells[other].str.contains('[.,]')].iloc[0]!r}"
        elif not signed.all() and all(thousands[other] for other, found in signs.items() if found):  # 1,234 beside 987
            whole = cells[name][~signed]
            beside = f"{source.frame.index.name} {whole.index[0]} is {whole.iloc[0]!r}"
        else:
            continue
        raise ValueError(
            f"features, {source.frame.index.name} {first.index[0]}, column {name!r} is {first.iloc[0]!r}, and {beside}: "
            "thousands or decimals? Write thousands without a sign between them, and decimals with the same sign in all "
            "columns and as many digits in all rows"
        )
    commas = [name for name, found in signs.items() if found == [","]]
    if commas:
        source.notes.append("Commas in the numbers of features were read as decimal commas.")
    return features.assign(**{name: features[name].str.replace(",", ".", regex=False) for name in commas})


def find_label(labels: Iterable[Any], wanted: object) -> Any:
    """The one label that is meant by ``wanted``, in any capitals, or as a number; ``wanted`` itself if that is not clear."""
    labels = list(labels)
    number = _as_number(wanted)
    for found in (
        [label for label in labels if same(label, wanted)],
        [label for label in labels if str(label) == str(wanted)],
        [label for label in labels if str(label).casefold() == str(wanted).casefold()],
        [label for label in labels if number is not None and _as_number(label) == number],
    ):
        if len(found) == 1:
            return found[0]
    return wanted


def _as_number(label: Any) -> float | None:
    try:
        return float(label)
    except (TypeError, ValueError, OverflowError):
        return None
