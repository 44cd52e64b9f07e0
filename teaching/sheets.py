"""The assignments: from their sources to notebooks for nbgrader, with each student's numbers; and back from what is handed in.

A cell of a source says `:given: ID` for what a student may not change; `:answer: ID` and, if it is not one function of that
name, `:names: A, B?` for what a student writes (`?`: the test can do without it); `:test: ID` and `:points: N` for what grades
it; `manual` and `points` for an answer in words, which a person reads. `numbers:` above the first cell lists the values that a
name can take: a sheet for all gets the first ones, and each student some of the others. `{{...}}` stands for such a value, or
for what Python makes of them.
"""

import copy
import functools
import os
import random
import re
from pathlib import Path

import jupytext
import nbformat
import yaml
from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions

from softlabel.book.repository import site_address

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("ASSIGNMENTS") or Path(__file__).parent / "assignments").resolve()
SOURCES = {path.stem: path for path in sorted(FOLDER.glob("*.md"))}
STUB = "# YOUR CODE HERE\nraise NotImplementedError"


def id_of(cell):
    """Name by which nbgrader knows a cell, or None."""
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def label(cell):
    """Give a cell nbgrader's metadata."""
    kind = next((k for k in ("given", "answer", "test", "manual") if k in cell.metadata), None)
    if kind is None:
        return
    name = cell.metadata.pop(kind)
    cell.metadata["nbgrader"] = {
        "grade_id": name if kind in ("answer", "manual") else f"{kind}-{name}",
        "solution": kind in ("answer", "manual"),
        "grade": kind in ("test", "manual"),
        "locked": kind in ("given", "test"),
        "task": False,
        "schema_version": 3,
    }
    if "points" in cell.metadata:
        cell.metadata["nbgrader"]["points"] = cell.metadata.pop("points")


def book():
    """What every sheet says of the book: its address, and what pip installs its package from."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text("utf8"), re.M)[1]
    package = f"softlabel[book] @ git+{config['repository']['url']}@v{version}"
    return {"site": config["html"]["baseurl"] or site_address(config["repository"]["url"]), "install": package}


def numbers(name, choices, student=""):
    """The values of the names in the sheet of a student."""
    draw = random.Random(f"{name} of {student}")  # the same in every version of Python
    return {key: draw.choice(values[1:]) if student else values[0] for key, values in choices.items()}


def notebook(name, student=""):
    """An assignment with its solutions and hidden tests, for one student or for all."""
    text = SOURCES[name].read_text("utf8")
    choices = jupytext.reads(text, fmt="md:myst").metadata.get("numbers", {})
    values = book() | numbers(name, choices, student)
    nb = jupytext.reads(re.sub(r"\{\{(.+?)\}\}", lambda found: str(eval(found[1], {}, values)), text), fmt="md:myst")
    for number, cell in enumerate(nb.cells):
        label(cell)
        cell["id"] = f"{name}-{number}"  # else every conversion makes up new ones
    for key in ("jupytext", "numbers"):
        nb.metadata.pop(key, None)
    nb.nbformat, nb.nbformat_minor = 4, 5
    return nb


def released(name, student="", hidden=False):
    """An assignment as students get it; `hidden` leaves the hidden tests in."""
    nb, _ = ClearSolutions(code_stub={"python": STUB}).preprocess(notebook(name, student), {})
    if student:
        nb.metadata["student"] = student
    return nb if hidden else ClearHiddenTests().preprocess(nb, {})[0]


@functools.cache
def texts(name):
    """The text by which a cell is known that has lost its metadata: an answer by its first line, another cell by the whole."""
    cells = {id_of(cell): cell for cell in released(name).cells if id_of(cell)}
    answers = {key for key, cell in cells.items() if cell.metadata.nbgrader["solution"]}
    return {key: cell.source.partition("\n")[0] if key in answers else cell.source for key, cell in cells.items()}, answers


def known_by_text(cell, name):
    """Names of the cells of a sheet that this could be, by its text alone."""
    known, answers = texts(name)
    return [key for key, text in known.items() if (text in cell.source if key in answers else text == cell.source)]


def recognise(path):
    """The assignment that a notebook answers, whatever its file is called, and the notebook; None for any other file."""
    try:
        nb = nbformat.read(path, as_version=4)
        known = {name: sum(bool(known_by_text(cell, name)) for cell in nb.cells) for name in SOURCES}
    except Exception:  # a text, half a file, another program's: nbformat raises whatever it meets
        return None, None
    best = max(known, key=known.get)
    return (best, nb) if known[best] >= 3 else (None, None)


def restore(handed_in, name):
    """The sheet as nbgrader wants it: the student's answers and own cells, and all else as it was released.

    A cell is known by nbgrader's name for it, by its number in the released notebook, or by its text.
    """
    new = released(name, hidden=True)
    own = {id_of(cell): cell for cell in new.cells if id_of(cell)}
    numbers = {cell.id: key for key, cell in own.items()}
    keys = {}  # the place of each cell of the sheet in what was handed in
    for places in (
        [(id_of(cell), k) for k, cell in enumerate(handed_in.cells)],
        [(numbers.get(cell.get("id")), k) for k, cell in enumerate(handed_in.cells)],
        [(key, k) for k, cell in enumerate(handed_in.cells) for key in known_by_text(cell, name)],
    ):
        for key, k in places:
            if key in own and key not in keys and k not in keys.values():
                keys[key] = k
    by_place = {k: key for key, k in keys.items()}
    cells, order = [], []
    for k, cell in enumerate(handed_in.cells):
        key = by_place.get(k)
        if key:
            restored = copy.deepcopy(own[key])
            if restored.metadata.nbgrader["solution"]:
                restored.source = cell.source
        elif id_of(cell) in own and own[id_of(cell)].metadata.nbgrader["locked"]:
            continue  # one more copy of a test
        else:
            make = nbformat.v4.new_code_cell if cell.cell_type == "code" else nbformat.v4.new_markdown_cell
            restored = make(cell.source)
        cells.append(restored)
        order.append(key)
    for before, key in zip([None, *own], own):
        if key not in order:
            at = order.index(before) + 1 if before else 0
            cells.insert(at, copy.deepcopy(own[key]))
            order.insert(at, key)
    for number, cell in enumerate(cells):
        cell["id"] = f"{name}-{number}"
    return nbformat.v4.new_notebook(cells=cells, metadata=new.metadata, nbformat_minor=5)
