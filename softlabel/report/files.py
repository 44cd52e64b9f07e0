"""Files and frames of any kind to pandas: what is in a file stays text, and its rows are labelled with their lines."""

import codecs
import csv
import io
import json
import re
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from softlabel.validation import as_pandas, optional

SEPARATORS = ",;\t|"
EMPTY = ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>"]  # cells of a file that hold nothing


@dataclass
class Source:
    """A table, the name of its file if it came from one and what parts its columns there, and what was done with it."""

    frame: pd.DataFrame
    file: str | None = None
    separator: str | None = None
    notes: list[str] = field(default_factory=list)


def read(table: Any, name: str) -> Source:
    """A pandas frame as it is, a frame of another library, or a file; ``name`` is the argument's."""
    if not isinstance(table, str | PathLike):
        frame = as_pandas(table)
        if not isinstance(frame, pd.DataFrame):
            raise ValueError(f"{name} must be a DataFrame or the path of a file, got {type(table).__name__}")
        return Source(frame)
    path = Path(table)
    if not path.exists():
        raise ValueError(f"{name}: there is no file {path}")
    kind = path.suffix.lower()
    if kind in (".xlsx", ".xls", ".ods"):
        raise ValueError(f"{name}: {path} is a workbook: save its sheet as CSV")
    if kind == ".parquet":
        optional("pyarrow", "parquet", f"a file in Parquet ({path})")
        frame = pd.read_parquet(path)
        return _labelled(frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index(), path, "row", 1)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{name}: {path} cannot be read: {error.strerror}") from None
    if kind in (".json", ".jsonl"):
        return _labelled(_from_json(path, data, name), path, "record", 1)
    return _from_text(path, data, name)


def _labelled(frame: pd.DataFrame, path: Path, word: str, first: int) -> Source:
    frame.index = pd.RangeIndex(first, len(frame) + first, name=f"{path.name} {word}")
    return Source(frame, path.name)


def _from_json(path: Path, data: bytes, name: str) -> pd.DataFrame:
    """A list of records, or a record in each line; a column of lists and the like is left out."""
    try:
        text = data.decode("utf-8-sig")
        by_lines = path.suffix.lower() == ".jsonl"
        records = [json.loads(line) for line in text.splitlines() if line.strip()] if by_lines else json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name}: {path} cannot be read as JSON in UTF-8: {error}") from None
    if not (isinstance(records, list) and records and all(isinstance(record, dict) for record in records)):
        raise ValueError(f"{name}: {path} must hold a list of records, as JSON-MIN of Label Studio does")
    if "annotations" in records[0]:
        raise ValueError(f"{name}: {path} holds tasks with their annotations inside: export JSON-MIN or CSV instead")
    frame = pd.DataFrame(records)
    nested = frame.map(lambda cell: isinstance(cell, dict | list))
    mixed = nested.any() & ~(nested | frame.isna()).all()
    if mixed.any():
        column = mixed.idxmax()
        place = f"{path}, record {int(nested[column].to_numpy().argmax()) + 1}, column {column!r}"
        raise ValueError(f"{name}: {place} holds several values, where others hold one")
    return frame.loc[:, ~nested.any()].map(lambda cell: None if pd.isna(cell) else str(cell)).replace(EMPTY, None)


def _from_text(path: Path, data: bytes, name: str) -> Source:
    """A table as text: its encoding and its separator are found."""
    encoding, notes = "utf-8-sig", []
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in data:
        raise ValueError(f"{name}: {path} cannot be read as a table: it is no text in UTF-8, nor in UTF-16 with its mark")
    else:
        try:
            data.decode(encoding)
        except UnicodeDecodeError:
            encoding = "cp1252"
            notes.append(f"{path.name} is not in UTF-8, and was read as Windows-1252 (Latin-1).")
    lines = data[:1_000_000].decode(encoding, "replace").splitlines()
    # Excel takes the separator from a line above the names.
    said = re.fullmatch(f'"?sep=([{SEPARATORS}])"?', lines[0]) if lines else None
    skipped = int(said is not None)
    first = lines[skipped] if len(lines) > skipped else ""
    if not first.strip():
        raise ValueError(f"{name}: {path} cannot be read as a table: its first line, with the names of columns, is empty")
    marks = said[1] if said else SEPARATORS
    heads = {mark: next(csv.reader([first], delimiter=mark, skipinitialspace=True), []) for mark in marks}
    separator = max(marks, key=lambda mark: len(heads[mark]))
    form: dict[str, Any] = {"sep": separator, "encoding": encoding, "dtype": str, "skipinitialspace": True, "na_values": EMPTY}
    try:  # from the bytes, as a pipe is read but once
        frame = pd.read_csv(io.BytesIO(data), **form, keep_default_na=False, skip_blank_lines=False, skiprows=skipped)
    except (UnicodeError, pd.errors.ParserError) as error:
        raise ValueError(f"{name}: {path} cannot be read as a table in text: {_in_words(str(error))}") from None
    if not isinstance(frame.index, pd.RangeIndex):
        long = f"line {skipped + 2} has more cells than there are names in line {skipped + 1}"
        raise ValueError(f"{name}: {path}, {long}: name each column, or take away separators at the ends of lines")
    names = pd.Index(heads[separator])
    twice = names[names.duplicated() & (names != "")]
    if len(twice):
        raise ValueError(f"{name}: {path} has more than one column named {twice[0]!r}")
    nothing = [c for k, c in enumerate(frame.columns) if k and c == f"Unnamed: {k}" and frame[c].isna().all()]
    frame = frame.drop(columns=nothing)  # commas at the ends of all lines, as spreadsheets leave them
    _labelled(frame, path, "line", skipped + 2)
    blank = frame.isna().all(axis=1)
    if blank.all():
        raise ValueError(f"{name}: {path} has a line with the names of columns, and no rows")
    return Source(frame[~blank] if blank.any() else frame, path.name, separator, notes)


def _in_words(error: str) -> str:
    """What the parser of pandas says, without its words; lines count from 1."""
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", error):
        return f"line {found[2]} has {found[3]} cells, where those above have {found[1]}"
    if found := re.search(r"EOF inside string starting at row (\d+)", error):
        return f"a quotation mark in line {int(found[1]) + 1} is not closed"
    return error.strip()
