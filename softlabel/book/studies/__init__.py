"""Simulations that are too long for a chapter: run by ``make studies``, read by chapters from book/studies.

Each other module here is a study: ``CELLS``, the parameters of every row with its seed, and ``cell``, which makes of them what
the row holds beside them.
"""

import ast
import hashlib
import importlib
from pathlib import Path
from typing import Any

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


def run(name: str, folder: Path = ROOT / "book" / "studies", n_jobs: int = -1) -> None:
    """Write a study's file; rows that it has already, by the same code, stay."""
    import joblib
    from tqdm import tqdm

    study = importlib.import_module(f"softlabel.book.studies.{name}")
    path = folder / f"{name}.csv"
    lines = path.read_text("utf8").splitlines(keepends=True) if path.exists() else []
    if lines[:1] != [head(name)]:
        lines = [head(name)]
    if not lines[-1].endswith("\n"):  # half a row, where the study was interrupted
        lines.pop()
    done = max(len(lines) - 2, 0)  # beside the hash and the names of the columns
    left = study.CELLS[done:]
    if not left:
        return
    with path.open("w", encoding="utf8") as file:
        file.writelines(lines)
        results = joblib.Parallel(n_jobs, return_as="generator")(joblib.delayed(study.cell)(**cell) for cell in left)
        for cell, result in zip(left, tqdm(results, name, len(study.CELLS), initial=done), strict=True):
            row = cell | result
            if len(lines) == 1:
                lines.append(",".join(row) + "\n")
                file.write(lines[-1])
            file.write(",".join(_text(value) for value in row.values()) + "\n")
            file.flush()


def _text(value: Any) -> str:
    """Six digits: the last ones may differ between machines."""
    return format(value, ".6g") if isinstance(value, float) else str(value)
