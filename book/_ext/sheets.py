"""Exercise notebooks, made from the chapters: the questions, cells to answer in, no solutions.

    python book/_ext/sheets.py               write all into _build/exercises

What a notebook runs before an exercise is read off the solution: the statements of the chapter that the solution's answer
rests on, and no others. The solution ends in a call `exercises.mark(key, answer)`, so an exercise that has none, or whose key
is not that of its label, is an error here.
"""

import ast
import builtins
import functools
import re
import symtable
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml
from myst_nb.core.read import read_myst_markdown_notebook
from sphinx_external_toc.parsing import parse_toc_yaml

import publish

ROOT = Path(__file__).resolve().parents[2]
SECTION = "\n## Exercises\n"
FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.S | re.M)
EXERCISE = re.compile(
    r"^:::\{exercise\} (?P<title>[^\n]+)\n:label: ex-(?P<chapter>\w+)-(?P<part>\w+)\n\n(?P<text>.*?)^:::$", re.S | re.M
)
SOLUTION = r"^:::\{{solution-start\}} {label}\n:class: dropdown\n:::\n(.*?)^:::\{{solution-end\}}$"
ANSWER = "answer = ..."


class ExerciseError(Exception):
    """A section on exercises that no notebook can be made from."""


@dataclass(frozen=True)
class Exercise:
    """An exercise, and the statements that its solution's answer needs."""

    key: str
    title: str
    text: str
    setup: list[str]  # of the chapter, in its order
    solution: list[str]  # of the solution; the last one sets `answer`


@dataclass(frozen=True)
class Statement:
    """A statement of a chapter, with its comments; the names that it sets, and those that it needs."""

    source: str
    sets: frozenset
    closes: frozenset  # of these, the ones that owe nothing to what they were before
    needs: frozenset

    @property
    def is_call(self):
        return isinstance(ast.parse(self.source).body[0], ast.Expr)


def sources(root=ROOT):
    """Files of `_toc.yml` that have exercises."""
    paths = (root / f"{name}.md" for name in parse_toc_yaml(root / "_toc.yml"))
    return [path for path in paths if path.exists() and SECTION in path.read_text("utf8")]


def exercises_of(path):
    """List the exercises of a chapter."""
    text = Path(path).read_text("utf8")
    before, _, section = text.partition(SECTION)
    chapter = _statements(before)
    found = []
    for match in EXERCISE.finditer(section):
        key = f"{match['chapter']}.{match['part']}"
        label = f"ex-{match['chapter']}-{match['part']}"
        solution = re.search(SOLUTION.format(label=label), section, re.S | re.M)
        if not solution:
            raise ExerciseError(f"{path}: {label} has no solution that cells can stand in")
        front = FRONT_MATTER.match(text)
        statements = _statements((front[0] if front else "") + solution[1])
        answer = _answer(key, statements, path)
        worked, needed = _slice(statements, answer.needs)
        # Calls for their effect count too, if they use nothing else: new_blocks(...), but not claims.glue(...).
        used = needed | {name for s in statements if s.source in worked for name in s.sets}
        worked = [s.source for s in statements if s.source in worked or (s.is_call and s.needs <= used)]
        # What the solution asserts a reader should be able to try.
        asserted = {name for s in statements if s.source.startswith(("assert ", "np.testing")) for name in s.needs}
        # And what the text names in code, if the solution takes it from the chapter.
        named = set(re.findall(r"`(\w+)`", match["text"])) & {name for s in statements for name in s.needs}
        setup, missing = _slice(chapter, needed | _slice(statements, asserted | named)[1])
        if missing := missing - set(dir(builtins)):
            raise ExerciseError(f"{path}: the solution of {label} needs {', '.join(sorted(missing))}")
        found.append(Exercise(key, match["title"], match["text"], setup, [*worked, answer.source]))
    if len(found) != len(re.findall(r"^\s*:::+\{exercise", section, re.M)):
        raise ExerciseError(f"{path}: an exercise has no title or no label such as ex-02-hand")
    return found


def _answer(key, statements, path):
    """The solution's answer, as a statement; it is what the solution marks."""
    for statement in statements:
        node = ast.parse(statement.source).body[0]
        call = getattr(node, "value", None)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "exercises.mark":
            if ast.unparse(call.args[0]) != repr(key):
                raise ExerciseError(f"{path}: the solution of {key} marks {ast.unparse(call.args[0])}")
            source = ast.get_source_segment(statement.source, call.args[1])
            return _statement(f"answer = {source}")
    raise ExerciseError(f"{path}: the solution of {key} does not mark its answer")


@functools.cache  # a chapter's are asked for with each of its exercises, notebooks and solutions
def _statements(text):
    """The statements of a text's code cells, one by one; magics are left out."""
    found = []
    for cell in read_myst_markdown_notebook(text).cells:
        if cell.cell_type == "code":
            lines = ["" if line.startswith(("%", "!")) else line for line in cell.source.split("\n")]
            end = 0
            for node in ast.parse("\n".join(lines)).body:
                start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
                while start > end and lines[start - 1].startswith("#"):
                    start -= 1
                end = node.end_lineno
                found.append(_statement("\n".join(lines[start:end]).rstrip(";")))
    return found


def _statement(source):
    node = ast.parse(source).body[0]
    sets, needs = set(), set()

    def look(scope, top=False):
        for symbol in scope.get_symbols():
            if top and (symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()):
                sets.add(symbol.get_name())
            if symbol.is_referenced() and (top or symbol.is_global()):
                needs.add(symbol.get_name())
        for child in scope.get_children():
            look(child)

    table = symtable.symtable(source, "chapter", "exec")
    look(table, top=True)
    top_names = set(table.get_identifiers())
    changed = set()  # x[i] = ..., x.a = ... and x += ... change what was there
    for inner in ast.walk(node):
        base = inner.target if isinstance(inner, ast.AugAssign) else inner
        if base is not inner or isinstance(getattr(inner, "ctx", None), ast.Store):
            while isinstance(base, ast.Subscript | ast.Attribute):
                base = base.value
            if isinstance(base, ast.Name) and base is not inner:
                changed.add(base.id)
    changed &= top_names  # and not what a function does with its own
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Assert):
        needs -= sets - changed  # what a loop or a function sets for itself
    whole = isinstance(node, ast.Assign | ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)
    closes = sets - changed if whole else set()
    return Statement(source, frozenset(sets | (changed & needs)), frozenset(closes), frozenset(needs | changed))


def _slice(statements, names):
    """Sources of the statements that these names rest on, in order, and the names that none of them sets."""
    kept, wanted, found = [], set(names), set()
    for statement in reversed(statements):
        if statement.sets & wanted:
            kept.append(statement.source)
            found |= statement.sets
            wanted = (wanted - statement.closes) | statement.needs
    return kept[::-1], wanted - found


# From MyST to the Markdown of a notebook


def macros(root=ROOT):
    """The book's TeX macros, which a notebook does not know."""
    config = yaml.safe_load((root / "_config.yml").read_text("utf8"))
    return config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]


def expand(text, table):
    """Write the macros out."""
    for name, body in table.items():
        if isinstance(body, str):
            text = re.sub(rf"\\{name}(?![A-Za-z])", lambda m, body=body: body, text)
        else:
            argument = r"(?:\{((?:[^{}]|\{[^{}]*\})*)\}|\s*(\\[A-Za-z]+|\w))"
            text = re.sub(rf"\\{name}(?![A-Za-z]){argument}", lambda m, body=body: body[0].replace("#1", m[1] or m[2]), text)
    return text


def plain(text, chapter, path, table):
    """Text without roles: what they point to is named, and equations are quoted below."""
    quoted = []

    def equation(label):
        match = re.search(rf"^```\{{math\}}\n:label: {label}\n+(.*?)^```$", chapter, re.S | re.M)
        if not match:
            raise ExerciseError(f"{path}: no equation {label}")
        if match[1] not in quoted:
            quoted.append(match[1])
        return f"equation ({quoted.index(match[1]) + 1})"

    def title(label):
        match = re.search(r"^[:`]{3,}\{(prf:)?(\w+)\} *(.*)\n:(?:label|name): " + f"{label}$", chapter, re.M)
        if match:
            name = match[3].split(". ")[0].rstrip(".") if match[1] is None else match[3]
            return f"the chapter's {match[2]} *{name}*"
        match = re.search(rf"caption: \|\n +(.*?)\.\s(?:(?!```).)*?name: {label}$", chapter, re.S | re.M)
        if not match:
            raise ExerciseError(f"{path}: nothing is named {label}")
        return f"the chapter's figure *{' '.join(match[1].split())}*"

    def page(name):
        other = (Path(path).parent / f"{name}.md").resolve()
        return f"the chapter *{re.search(r'^# (.*)$', other.read_text('utf8'), re.M)[1]}*"

    roles = {"eq": equation, "numref": title, "prf:ref": title, "doc": page}

    def resolve(match):
        if match[1] not in roles:
            raise ExerciseError(f"{path}: a notebook cannot show {match[0]}")
        return roles[match[1]](match[2])

    text = re.sub(r"\{([\w:]+)\}`([^`]+)`", resolve, text).strip()
    text = re.sub(r"`exercises\.mark\(\S+ (?!answer\))([^`]*)\)`", r"`answer = \1`", text)
    for number, body in enumerate(quoted, 1):
        text += f"\n\n$$\n{body.strip()} \\tag{{{number}}}\n$$"
    return expand(text, table)


# What every notebook of the book has


def install(root=ROOT):
    """The first cell: the package as it was released, where it is not there yet, such as on Colab."""
    url = yaml.safe_load((root / "_config.yml").read_text("utf8"))["repository"]["url"]
    return (
        "from importlib.util import find_spec\n\n"
        'if not find_spec("softlabel"):\n'
        f'    %pip install --quiet "softlabel[book] @ git+{url}@v{publish.version(root)}"'
    )


def assemble(cells):
    """A notebook of cells, each given as its kind, name, source and, where it has some, metadata."""
    notebook = nbformat.v4.new_notebook(
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for kind, name, source, *metadata in cells:
        new = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
        # A fixed id, so that a notebook is the same every time.
        notebook.cells.append(new(source.rstrip("\n"), id=name, metadata=metadata[0] if metadata else {}))
    return notebook


def exercise_notebook(path, root=ROOT):
    """Make the exercise notebook of one chapter.

    Parameters
    ----------
    path : path
        The chapter, such as `book/paper/02_harmless_noise.md`.

    Returns
    -------
    NotebookNode
        An installation cell, the imports, and for each exercise its text, what it needs of the chapter, an empty answer and
        the cell that marks it.

    Raises
    ------
    ExerciseError
        If an exercise lacks a label, a solution, or a marked answer, or refers to what is not there.
    """
    path = Path(path)
    chapter, table = path.read_text("utf8"), macros(root)
    title = re.search(r"^# (.*)$", chapter, re.M)[1]
    cells = [
        ("code", "install", install(root)),
        (
            "markdown",
            "title",
            f"# {title}: exercises\n\nPut your answers in place of the dots. The cell below each answer "
            "says whether it is right, or what went wrong. Solutions are in the chapter.",
        ),
    ]
    imports, done, bodies = ["import numpy as np"], set(), []
    for item in exercises_of(path):
        name = item.key.replace(".", "-")
        bodies.append(("markdown", name, f"## {item.title}\n\n{plain(item.text, chapter, path, table)}"))
        setup = [source for source in item.setup if source not in done]
        done |= set(setup)
        imports += [source for source in setup if _is_import(source) and source not in imports]
        if definitions := [source for source in setup if not _is_import(source)]:
            bodies.append(("code", f"{name}-setup", "# From the chapter.\n" + _join(definitions)))
        bodies.append(("code", f"{name}-answer", ANSWER))
        bodies.append(("code", f"{name}-mark", f'exercises.mark("{item.key}", answer)'))
    if not any(re.search(r"\bexercises\b", line) for line in imports):
        imports.append("from softlabel.book import exercises")
    order = [statement.source for statement in _statements(chapter.partition(SECTION)[0]) if _is_import(statement.source)]
    imports.sort(key=lambda line: order.index(line) if line in order else len(order))
    cells.append(("code", "imports", "\n".join(imports)))
    return assemble(cells + bodies)


def solve(notebook, path):
    """Put the solutions of the chapter in place of the dots."""
    solutions = {f"{item.key.replace('.', '-')}-answer": item.solution for item in exercises_of(path)}
    for cell in notebook.cells:
        if cell.id in solutions:
            assert cell.source == ANSWER
            cell.source = "\n".join(solutions[cell.id])
    return notebook


def said(notebook):
    """What the cells that mark an answer say, in an executed notebook."""
    return [cell.outputs[-1].data["text/plain"] for cell in notebook.cells if cell.id.endswith("-mark")]


def _is_import(source):
    return isinstance(ast.parse(source).body[0], ast.Import | ast.ImportFrom)


def _join(sources):
    """Statements below one another, functions set apart."""
    text = ""
    for source in sources:
        wide = re.match(r"def |class |@", source)
        text += ("\n\n" if wide and text else "") + source + ("\n\n\n" if wide else "\n")
    return re.sub(r"\n{4,}", "\n\n\n", text).strip("\n")


def notebook_name(path):
    """Name of a chapter's exercise notebook: `02_harmless_noise_exercises.ipynb`."""
    return f"{Path(path).stem}_exercises.ipynb"


def write_all(outdir=ROOT / "_build" / "exercises", root=ROOT):
    """Write the notebook of every chapter that has exercises; return their paths by chapter."""
    outdir = Path(outdir)
    outdir.mkdir(parents=True, exist_ok=True)
    written = {}
    for path in sources(root):
        target = outdir / notebook_name(path)
        nbformat.write(exercise_notebook(path, root), target)
        written[path] = target
    return written


if __name__ == "__main__":
    for target in write_all(*sys.argv[1:2]).values():
        print(target)
