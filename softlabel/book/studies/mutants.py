"""Formulas altered one at a time: do the tests see it?

`tests/mutants.yml` says, for each box of a theorem and each function that states a formula, what is altered. A cell copies the
package and the tests, alters the text, and runs the tests that should see it. The hash of a row is over the altered file and
those tests, so that a row is computed anew where one of these has changed, and not with every change of the package.
"""

import os
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ET
from ast import ClassDef, FunctionDef, get_source_segment, parse
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import yaml

from softlabel.book.studies import ROOT, code

MARKS = yaml.safe_load((ROOT / "book" / "_ext" / "box_tests.yml").read_text("utf8"))
GROUPS = {(g["of"], g["by"], g["place"]): g for g in yaml.safe_load((ROOT / "tests" / "mutants.yml").read_text("utf8"))}
read = cache(code)


def tests_of(group: dict[str, Any]) -> list[str]:
    """The tests that should see a group's mutants: a function's are named beside it, a box's are those behind its mark."""
    return group["tests"].split() if group["by"] == "tests" else MARKS[group["of"]][group["by"]]  # type: ignore[no-any-return]


def hash_of(group: dict[str, Any]) -> str:
    tests = tests_of(group)
    files = sorted({name.partition("::")[0] for name in [group["place"], *tests]})
    parts = [group.get("look", ""), *tests, *(read(ROOT / file) for file in files)]
    return sha256("\0".join(parts).encode()).hexdigest()[:8]


def __getattr__(name: str) -> Any:
    """``CELLS`` when they are first asked for: to hash what they depend on takes a second."""
    if name != "CELLS":
        raise AttributeError(name)
    globals()[name] = [
        dict(of=of, by=by, place=place, kind=kind, old=old, new=new, code=hash_of(group))
        for (of, by, place), group in GROUPS.items()
        for kind, old, new in group["mutants"]
    ]
    return globals()[name]


def altered(place: str, old: str, new: str) -> str:
    """Text of a file in which ``old``, which stands once in the place, is ``new``."""
    file, _, name = place.partition("::")
    text = part = (ROOT / file).read_text("utf8")
    tree: Any = parse(text)
    for step in filter(None, name.split("::")):
        (tree,) = (n for n in tree.body if isinstance(n, FunctionDef | ClassDef) and n.name == step)
        part = get_source_segment(text, tree) or ""
    if part.count(old) != 1 or text.count(part) != 1:
        raise ValueError(f"{place} has {old!r} {part.count(old)} times: it must be there once")
    return text.replace(part, part.replace(old, new))


def change(file: str, look: str, text: str) -> float:
    """Largest relative change of what the check looks at; where that is zero, in units of its largest value."""

    def value(source: str) -> np.ndarray:
        module = ModuleType("altered")
        exec(compile(source, file, "exec"), vars(module))
        return np.array(eval(look, vars(module)), float)

    sys.path[:0] = [str(ROOT / "tests")]  # which import each other
    right, wrong = (value(source) for source in ((ROOT / file).read_text("utf8"), text))
    sys.path.pop(0)
    return float((np.abs(wrong - right) / np.where(right == 0, np.abs(right).max(), np.abs(right))).max())


def _run(folder: Path, arguments: list[str]) -> None:
    """In a process of its own: pytest in a folder, with the package and the tests from there."""
    import pytest

    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith((str(ROOT / "softlabel"), str(ROOT / "tests"))):
            del sys.modules[name]
    os.chdir(folder)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.path[:0] = [str(folder)]
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        pytest.main(arguments)


def failed(file: str, text: str, tests: list[str]) -> list[str]:
    """Names of the tests that fail by an assertion, and by no other error, where a file has another text."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("softlabel", "tests", "book/_ext"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        (folder / file).write_text(text, "utf8")
        options = ["-q", "--tb=no", "-p", "no:cacheprovider", "--junitxml=report.xml"]
        process = get_context("fork").Process(
            target=_run, args=(folder, [*options, *tests])
        )  # what is imported need not be again
        process.start()
        process.join(300)
        process.kill()
        report = ET.parse(folder / "report.xml")
    names = []
    for case in report.iter("testcase"):
        for problem in (*case.iter("failure"), *case.iter("error")):
            if problem.get("message", "").startswith(("assert", "AssertionError", "Failed: DID NOT")):
                names.append(case.get("name", "").partition("[")[0])  # noqa: PERF401  # two conditions read better
    return list(dict.fromkeys(names))


def cell(of: str, by: str, place: str, kind: str, old: str, new: str, code: str) -> dict[str, Any]:
    """Change of the formula where the check looks, and the tests that see it."""
    group, file, text = GROUPS[of, by, place], place.partition("::")[0], altered(place, old, new)
    moved = change(file, group["look"], text) if "look" in group else ""
    names = failed(file, text, tests_of(group))
    return {"change": moved, "killed": int(bool(names)), "killers": " ".join(names)}
