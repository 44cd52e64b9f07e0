"""Simulations that are too long for a chapter: run by ``make studies``, read by chapters from book/studies.

Each other module here is a study: ``CELLS``, the parameters of every row with its seed, and ``cell``, which makes of them what
the row holds beside them.
"""

import ast
import csv
import hashlib
import importlib
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[3]
NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def code(path: Path) -> str:
    """A module without its docstrings and comments; another file as it is."""
    text = path.read_text("utf8")
    if path.suffix != ".py":
        return text
    module = ast.parse(text)
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return repr(_plain(module))


def _plain(node: Any) -> Any:
    """A syntax tree without empty fields, of which newer versions of Python have more."""
    if isinstance(node, list):
        return [_plain(part) for part in node]
    if isinstance(node, ast.AST):
        return type(node).__name__, [(name, _plain(value)) for name, value in ast.iter_fields(node) if value not in (None, [])]
    return node


def modules(name: str, root: Path = ROOT) -> list[Path]:
    """Files of a study and of the package's modules that it imports, itself or by others."""
    waiting = [f"softlabel.book.studies.{name}"]
    found: set[Path] = set()
    while waiting:
        place = root.joinpath(*waiting.pop().split("."))
        for path in {place.with_suffix(".py"), place / "__init__.py"} - found:
            if path.exists():
                found.add(path)
                for node in ast.walk(ast.parse(path.read_text("utf8"))):
                    names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
                    if isinstance(node, ast.ImportFrom):
                        names = [f"{node.module}", *(f"{node.module}.{name}" for name in names)]
                    waiting += [name for name in names if name.split(".")[0] == "softlabel"]
    return sorted(found)


def head(name: str, root: Path = ROOT) -> str:
    """First line of a study's file: a hash of the code that its rows depend on."""
    parts = [f"{path.relative_to(root).as_posix()}\0{code(path)}\0" for path in modules(name, root)]
    return f"# code {hashlib.sha256(''.join(parts).encode()).hexdigest()[:16]}\n"


def is_of_present_code(name: str, first: str) -> bool:
    """Whether a first line says that the rows are of the present code, or that some of them were computed again by it."""
    return first.partition(";")[0].strip() == head(name).strip()


def confirm(name: str, folder: Path = ROOT / "book" / "studies", n_jobs: int = -1) -> None:
    """After a change of code that should change no row, compute every twentieth again; the file says so if all are alike.

    At least ten rows are, or all of a file that has fewer than twenty; with other code, others. Rows of cells that are gone
    are left out, and those of new cells are left to ``run``.

    Raises
    ------
    ValueError
        If a row differs by more than 1e-5 of a number: then ``run``.
    """
    import joblib

    study = importlib.import_module(f"softlabel.book.studies.{name}")
    path = folder / f"{name}.csv"
    first, *lines = path.read_text("utf8").splitlines(keepends=True)
    if is_of_present_code(name, first):
        return
    names, *rows = csv.reader(lines)
    cells = {tuple(map(_text, cell.values())): cell for cell in study.CELLS}
    stored = {key: row for row in rows if (key := tuple(row[: len(study.CELLS[0])])) in cells}
    present = head(name).split()[-1]
    step = max(1, min(20, len(stored) // 10))
    again = list(stored)[int(present, 16) % step :: step]
    results = joblib.Parallel(n_jobs)(joblib.delayed(study.cell)(**cells[key]) for key in again)
    for key, result in zip(again, results, strict=True):
        for column, old, new in zip(names, stored[key], [*key, *map(_text, result.values())], strict=True):
            if old != new and not _close(old, new):
                raise ValueError(f"{path.name}, {', '.join(key)}: {column} was {old} and is {new} now: run the study")
    made_by = first.split()[-1]
    with path.open("w", encoding="utf8") as file:
        file.write(f"# code {present}; {len(again)} of {len(stored)} rows computed again, all made by code {made_by}\n")
        csv.writer(file, lineterminator="\n").writerows([names, *stored.values()])


def _close(old: str, new: str) -> bool:
    try:
        return abs(float(old) - float(new)) <= 1e-5 * abs(float(old))
    except ValueError:
        return False


def run(name: str, folder: Path = ROOT / "book" / "studies", n_jobs: int = -1) -> None:
    """Write a study's file; rows of its cells that it has already, by the same code, stay."""
    import joblib
    from tqdm import tqdm

    cells = {tuple(map(_text, c.values())): c for c in importlib.import_module(f"softlabel.book.studies.{name}").CELLS}
    columns = len(next(iter(cells)))  # of the parameters
    path = folder / f"{name}.csv"
    lines = path.read_text("utf8").splitlines(keepends=True) if path.exists() else []
    if not lines or not is_of_present_code(name, lines[0]):
        lines = [head(name)]
    if not lines[-1].endswith("\n"):  # half a row, where the study was interrupted
        lines.pop()
    names, *stored = list(csv.reader(lines[1:])) or [[]]
    rows = {key: row for row in stored if (key := tuple(row[:columns])) in cells}
    left = [key for key in cells if key not in rows]
    if list(cells) == [tuple(row[:columns]) for row in stored]:
        return
    study = importlib.import_module(f"softlabel.book.studies.{name}")

    def write(file: TextIO, *rows: list[str]) -> None:
        csv.writer(file, lineterminator="\n").writerows(rows)
        file.flush()

    with path.open("w", encoding="utf8") as file:
        file.write(lines[0])
        write(file, *[names] * bool(names), *rows.values())
        results = joblib.Parallel(n_jobs, return_as="generator")(joblib.delayed(study.cell)(**cells[key]) for key in left)
        for key, result in zip(left, tqdm(results, name, len(cells), initial=len(rows)), strict=True):
            if not names:
                names = [*cells[key], *result]
                write(file, names)
            rows[key] = [*key, *map(_text, result.values())]
            write(file, rows[key])
    with path.open("w", encoding="utf8") as file:  # in the order of the cells
        file.write(lines[0])
        write(file, names, *(rows[key] for key in cells))


def _text(value: Any) -> str:
    """Six digits: the last ones may differ between machines."""
    return format(value, ".6g") if isinstance(value, float) else str(value)
