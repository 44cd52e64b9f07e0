"""The chapters run, and keep the rules that a program can check.

Each `find_*` function takes a chapter and returns what is wrong with it. Each
is first shown a bad sample.
"""

import ast
import json
import re
import subprocess
import types
from collections import Counter

import nbformat
import pytest
from conftest import ROOT
from myst_nb.core.read import read_myst_markdown_notebook
from sphinx_external_toc.parsing import parse_toc_yaml

import chapters
import house
from softlabel.book import claims

FRONT_MATTER = """---
jupytext:
  text_representation:
    format_name: myst
kernelspec:
  name: python3
---

"""


class Chapter:
    """The source of a chapter, its cells, and its outputs if it was run."""

    def __init__(self, text, executed=None):
        self.text = text
        self.cells = (executed or read_myst_markdown_notebook(text)).cells
        self.code = [c for c in self.cells if c.cell_type == "code"]

    @property
    def prose(self):
        """The text without front matter, code, formulas, roles, addresses."""
        text = re.sub(r"\A---\n.*?\n---\n", "", self.text, flags=re.S)
        text = re.sub(r"^(`{3,}|~{3,})\{?(code|code-cell|math|bibliography)\b.*?^\1[`~]*$", "", text, flags=re.S | re.M)
        text = re.sub(r"^(`{3,}|~{3,})\w*$.*?^\1[`~]*$", "", text, flags=re.S | re.M)
        text = re.sub(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", "", text, flags=re.S)
        text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.S)
        text = re.sub(r"(?<!\\)\$.*?(?<!\\)\$", "", text, flags=re.S)
        text = re.sub(r"(`+).*?\1", "", text, flags=re.S)
        text = re.sub(r"<!--.*?-->|^%.*$", "", text, flags=re.S | re.M)
        return re.sub(r"\]\([^)]*\)|<[^>]*>|https?://\S+", "", text)


def figure_options(cell):
    """Caption, name and alt text of the figure that a cell draws."""
    options = cell.metadata.get("mystnb", {})
    figure = options.get("figure", {})
    alt = options.get("image", {}).get("alt")
    return {"caption": figure.get("caption"), "name": figure.get("name"), "alt": alt}


def tree_of(cell):
    """The cell as a syntax tree, magics left out."""
    lines = ["" if s.startswith(("%", "!")) else s for s in cell.source.split("\n")]
    return ast.parse("\n".join(lines))


def find_long_cells(chapter):
    """Cells of more than 25 lines of code (comments and blanks are free), and lines of more than 79 characters."""
    lines = [(number, line) for number, cell in enumerate(chapter.code, 1) for line in cell.source.splitlines()]
    code = Counter(number for number, line in lines if line.strip() and not line.strip().startswith("#"))
    long = [f"cell {number}: {n} lines" for number, n in code.items() if n > 25]
    return long + [f"cell {number}: {line[:40]}..." for number, line in lines if len(line) > 79]


def find_work_in_first_cell(chapter):
    """In the first cell, anything but imports and settings; in all others, imports.

    A setting is a call whose result is not kept (`plt.style.use(...)`), or a
    name given to a constant or to a generator of random numbers.
    """

    def is_setting(node):
        value = getattr(node, "value", None)
        return (
            isinstance(node, ast.Import | ast.ImportFrom)
            or (isinstance(node, ast.Expr | ast.Assign) and isinstance(value, ast.Constant))
            or (isinstance(node, ast.Expr) and isinstance(value, ast.Call))
            or (isinstance(node, ast.Assign) and "default_rng" in ast.unparse(node))
        )

    work = [node for cell in chapter.code[:1] for node in tree_of(cell).body if not is_setting(node)]
    others = [node for cell in chapter.code[1:] for node in ast.walk(tree_of(cell))]
    return [ast.unparse(node) for node in work + [n for n in others if isinstance(n, ast.Import | ast.ImportFrom)]]


# "sections 2.2 and 2.3", "Table 1.1", "Python 3.11", "CC BY 4.0" are names.
NAMES = re.compile(
    r"(?:sections?|chapters?|§+|tables?|figures?|equations?|theorems?|remarks?|"
    r"exercises?|python|version|(?-i:BY))\s+\d+(?:\.\d+)*"
    r"(?:(?:,|\s+and|\s+or|\s+to|–|-)\s*\d+(?:\.\d+)*)*",
    re.I,
)
DECIMAL = re.compile(r"(?<![\w.])[-+]?\d*\.\d+(?:%|\b)")


def find_typed_decimals(chapter):
    """Decimal numbers typed into prose, captions or alt texts.

    Numbers come from cells, by glue; formulas may hold constants.
    """
    options = [figure_options(cell) for cell in chapter.code]
    words = [o[key] for o in options for key in ("caption", "alt") if o[key]]
    text = chapter.prose + "\n" + re.sub(r"\$.*?\$|`.*?`", "", "\n".join(words))
    return DECIMAL.findall(NAMES.sub("", text))


def find_bare_figures(chapter):
    """Figures without caption, name or alt text.

    A cell draws one if it has a picture among its outputs, or says so.
    """
    problems = []
    for number, cell in enumerate(chapter.code, 1):
        draws = "figure" in cell.metadata.get("mystnb", {}) or any(
            kind.startswith("image/")
            for output in cell.get("outputs", [])
            if output.output_type in {"display_data", "execute_result"}
            for kind in output.data
        )
        lacking = [k for k, v in figure_options(cell).items() if not v]
        if draws and lacking:
            problems.append(f"cell {number}: no {', '.join(lacking)}")
    return problems


def find_bare_tables(chapter):
    """Tables without caption and name, and those that cells show raw."""
    problems = []
    directive = re.compile(
        r"^(?P<fence>[:`]{3,})\{(?:table|list-table|csv-table)\}(?P<caption>[^\n]*)\n"
        r"(?P<body>.*?)^(?P=fence)$",
        re.S | re.M,
    )
    for match in directive.finditer(chapter.text):
        caption = match["caption"].strip()
        if not caption or not re.search(r"^:name: \S", match["body"], re.M):
            problems.append(f"no caption or no name: {caption or match['body'][:40]}")
    rest = directive.sub("", chapter.text)
    rest = re.sub(r"^(`{3,})\{code-cell\}.*?^\1$", "", rest, flags=re.S | re.M)
    problems += re.findall(r"^\|[ :|-]+\|$", rest, flags=re.M)
    problems += [
        f"cell {number} shows a table: glue it into a table directive"
        for number, cell in enumerate(chapter.code, 1)
        for output in cell.get("outputs", [])
        if "<table" in "".join(output.get("data", {}).get("text/html", ""))
    ]
    return problems


SECTIONS = ["what you will be able to do", "what you need first", "where it stops being true", "exercises", "summary"]


def find_missing_sections(chapter):
    """Sections that every chapter on the paper has."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", chapter.text, flags=re.S | re.M)
    headings = " / ".join(re.findall(r"^#{1,4}\s+(.*)$", text, flags=re.M)).lower()
    return [name for name in SECTIONS if name not in headings]


def find_unsolved_exercises(chapter):
    """Exercises without label or without solution."""
    exercise = re.compile(r"^\s*[:`]{3,}\{exercise(?:-start)?\}.*\n((?:\s*:[\w-]+:.*\n)*)", re.M)
    solution = re.compile(r"^\s*[:`]{3,}\{solution(?:-start)?\}\s+(\S+)", re.M)
    solved = set(solution.findall(chapter.text))
    labels = [(re.findall(r":label:\s*(\S+)", options) or ["no label"])[0] for options in exercise.findall(chapter.text)]
    return [label for label in labels if label not in solved]


def find_unknown_claims(chapter):
    """Claims that a cell checks and the ledger does not hold."""
    call = re.compile(r"""\b(?:check|skip|claim)\(\s*["']([^"']+)["']""")
    return [key for cell in chapter.code for key in call.findall(cell.source) if key not in claims.ledger()]


def cell(source, options=""):
    options = f"---\n{options}\n---\n" if options else ""
    return f"```{{code-cell}} ipython3\n{options}{source}\n```\n\n"


FIGURE = """mystnb:
  figure:
    caption: {caption}
    name: {name}
  image:
    alt: {alt}"""

BAD_CHAPTERS = {
    find_long_cells: ["# A\n\n" + cell("\n".join(["x = 1"] * 26)), "# A\n\n" + cell("x = " + "1" * 76)],
    find_work_in_first_cell: [
        "# A\n\n" + cell("import numpy as np\nx = np.ones(3)"),
        "# A\n\n" + cell("for i in range(3):\n    print(i)"),
        "# A\n\n" + cell("import math") + cell("import numpy"),
    ],
    find_typed_decimals: [
        "# A\n\nThe share is 0.2248.\n",
        "# A\n\nIt rose by 24.5% in section 2.2.\n",
        "# A\n\n| a |\n|---|\n| 1.5 |\n",
        "# A\n\n:::{exercise}\n:label: a\n\nShow that it is -1.5.\n:::\n",
        "# A\n\n" + cell("x", FIGURE.format(caption="At 2.5.", name="a", alt="b")),
        "# A\n\n" + cell("x", FIGURE.format(caption="b", name="a", alt="At 2.5.")),
    ],
    find_bare_figures: [
        "# A\n\n" + cell("x", FIGURE.format(caption="", name="a", alt="b")),
        "# A\n\n" + cell("x", FIGURE.format(caption="a", name="", alt="b")),
        "# A\n\n" + cell("x", FIGURE.format(caption="a", name="b", alt="")),
    ],
    find_bare_tables: [
        "# A\n\n| a |\n|---|\n| 1 |\n",
        "# A\n\n:::{table}\n:name: a\n\n| a |\n|---|\n| 1 |\n:::\n",
        "# A\n\n:::{table} Caption\n\n| a |\n|---|\n| 1 |\n:::\n",
    ],
    find_missing_sections: ["# A\n\n## Summary\n", "# A\n\n```\n## Exercises\n```\n"],
    find_unsolved_exercises: [
        ":::{exercise}\n:label: a\n\nDo it.\n:::\n",
        ":::{exercise-start}\n\nDo it.\n:::\n",
        ":::{exercise}\n:label: a\n\nDo.\n:::\n\n:::{solution} b\nDone.\n:::\n",
    ],
    find_unknown_claims: ["# A\n\n" + cell('claims.check("no.such", 1)')],
}
GOOD_CHAPTER = (
    "# A\n\n## What you will be able to do\n\nSection 2.2 and sections 2.2 and 2.3, "
    "with $\\Delta = 1.5$\nand {glue:text}`x` and `0.5`, in 3 lines "
    "([source](https://a.example/1.5)).\n\n$$\n0.5\n$$\n\n## What you need first\n\n"
    + cell("import numpy as np\n%config X = [1.5]\nnp.set_printoptions(precision=2)")
    + "## Where it stops being true\n\n"
    + cell("x = 0.5", FIGURE.format(caption="A $0.5$", name="fig-a", alt="A line"))
    + ":::{table} Caption\n:name: tab-a\n\n```{glue:md} a\n:format: myst\n```\n:::\n\n"
    "## Exercises\n\n:::{exercise} Two\n:label: ex-a\n\nDo it.\n:::\n\n"
    ":::{solution} ex-a\n:class: dropdown\n\nDone.\n:::\n\n## Summary\n"
)


@pytest.mark.parametrize("find, text", [(find, text) for find, texts in BAD_CHAPTERS.items() for text in texts])
def test_rule_sees_a_bad_chapter(find, text):
    assert find(Chapter(FRONT_MATTER + text))


@pytest.mark.parametrize("find", BAD_CHAPTERS)
def test_rule_passes_a_good_chapter(find):
    assert find(Chapter(FRONT_MATTER + GOOD_CHAPTER)) == []


def test_rules_see_outputs():
    """A picture and a table among the outputs of a cell without options."""
    notebook = read_myst_markdown_notebook(FRONT_MATTER + cell("x"))
    output = {"output_type": "display_data", "metadata": {}}
    notebook.cells[-1].outputs = [
        nbformat.from_dict({**output, "data": {"image/svg+xml": "<svg/>"}}),
        nbformat.from_dict({**output, "data": {"text/html": "<table></table>"}}),
    ]
    chapter = Chapter("", executed=notebook)
    assert find_bare_figures(chapter)
    assert find_bare_tables(chapter)


# The chapters themselves.

PAPER_ONLY = {find_missing_sections, find_bare_tables, find_work_in_first_cell}


@pytest.mark.slow
@pytest.mark.parametrize("find", BAD_CHAPTERS)
def test_chapters_keep_the_rule(executed_chapters, find):
    problems = {
        name: found
        for name, notebook in executed_chapters.items()
        if (name.startswith("book/paper/") or find not in PAPER_ONLY)
        and (found := find(Chapter((ROOT / f"{name}.md").read_text("utf8"), notebook)))
    }
    assert problems == {}


@pytest.mark.parametrize("name", sorted(parse_toc_yaml(ROOT / "_toc.yml")))
def test_no_decimal_is_typed_on_any_page(name):
    assert find_typed_decimals(Chapter((ROOT / f"{name}.md").read_text("utf8"))) == []


# The execution of chapters, on a book of two pages.


def write_book(root, **pages):
    (root / "softlabel").mkdir()
    (root / "softlabel" / "a.py").write_text("x = 1\n")
    (root / "requirements.txt").write_text("numpy==2\n")
    files = "".join(f"  - file: {name}\n" for name in pages)
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:\n{files}")
    (root / "index.md").write_text("# Index\n")
    for name, text in pages.items():
        (root / f"{name}.md").write_text(FRONT_MATTER + text)


PUBLISH = (
    "from IPython.display import display\n"
    f"display({{{{'{claims.MIME}': {{{{'id': '{{key}}', 'verdict': 'agrees'}}}}}}}}, raw=True)"
)


def test_executes_once_and_collects_verdicts(tmp_path):
    write_book(
        tmp_path,
        one="# One\n\n" + cell(PUBLISH.format(key="b")),
        two="# Two\n\n" + cell("x = 1") + cell(PUBLISH.format(key="a")),
        text="# Text without code\n",
    )
    first = chapters.execute(tmp_path)
    assert [path.name for path in first] == ["one.md", "two.md"]
    written = (tmp_path / "_build" / "verdicts.json").read_text()
    assert [v["id"] for v in json.loads(written)] == ["a", "b"]
    assert json.loads(written)[0]["chapter"] == "two"
    assert chapters.execute(tmp_path) == []
    assert (tmp_path / "_build" / "verdicts.json").read_text() == written

    # A change in the package runs all of them again, and forgets the old.
    (tmp_path / "softlabel" / "a.py").write_text("x = 2\n")
    assert len(chapters.execute(tmp_path)) == 2
    assert len(list((tmp_path / "_build" / ".jupyter_cache").iterdir())) == 1


def test_leaves_summaries_to_sphinx(tmp_path):
    write_book(tmp_path, one="# One\n\n" + cell("x = 1"))
    page = tmp_path / "one.md"
    forced = "---\nmystnb:\n  execution_mode: force\n"
    page.write_text(page.read_text().replace("---\n", forced, 1))
    assert chapters.execute(tmp_path) == []
    assert chapters.summaries(tmp_path) == [page]


@pytest.mark.parametrize("cells, message", [
    (["x = 1", "x = x / 0\ny = 2"], "    x = x / 0\n    y = 2\nZeroDivisionError: division by zero"),
    (["import time", "time.sleep(60)"], "after 2 seconds"),
    (["import os", "os._exit(1)"], "Kernel died"),
])  # fmt: skip
def test_names_chapter_cell_and_error(tmp_path, cells, message):
    write_book(tmp_path, one="# One\n\n" + "".join(map(cell, cells)))
    with pytest.raises(chapters.ChapterError, match=r"^one\.md, code cell 2") as caught:
        chapters.execute(tmp_path, timeout=2 if "seconds" in message else 60)
    assert message in str(caught.value)


def test_a_claim_is_checked_once(tmp_path):
    page = "# A\n\n" + cell(PUBLISH.format(key="a"))
    write_book(tmp_path, one=page, two=page + cell("x = 1"))
    with pytest.raises(chapters.ChapterError, match="a is checked twice"):
        chapters.execute(tmp_path)


@pytest.fixture
def strict_builds(monkeypatch, tmp_path):
    """A small book, and the commands that were to build it."""
    write_book(tmp_path, one="# One\n")
    (tmp_path / "book" / "_ext").mkdir(parents=True)
    (tmp_path / "book" / "_ext" / "box_tests.yml").write_text("thm: {numeric: [tests/test_a.py::test_b]}\n")
    commands = []

    def run(command, cwd, check):
        assert (cwd, check) == (tmp_path, True)
        (tmp_path / "_build").mkdir(exist_ok=True)
        commands.append(command)

    monkeypatch.setattr("publish.released", lambda root: "2026-01-31")
    monkeypatch.setattr("subprocess.run", run)
    return commands


@pytest.mark.parametrize("changed", ["one.md", "softlabel/a.py", "new/page.md", "_toc.yml", "tests/test_a.py"])
def test_pages_are_written_again_when_a_file_changes(tmp_path, strict_builds, changed):
    for _ in range(2):
        chapters.build(tmp_path)
    assert len(strict_builds) == 1 and "-W" in strict_builds[0] and "--all" in strict_builds[0]
    path = tmp_path / changed
    path.parent.mkdir(exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + "# More\n")
    for _ in range(2):
        chapters.build(tmp_path)
    assert len(strict_builds) == 2
    path.unlink()
    chapters.build(tmp_path)
    assert len(strict_builds) == 3


def test_pages_are_written_again_when_the_day_or_the_data_change(tmp_path, strict_builds, monkeypatch):
    """And not for a test that is behind no theorem."""
    (tmp_path / "tests").mkdir()
    changes = {
        "first": lambda: None,
        "test": lambda: (tmp_path / "tests" / "test_c.py").write_text("x = 1\n"),
        "day": lambda: monkeypatch.setattr("publish.released", lambda root: "2026-02-01"),
        "data": lambda: monkeypatch.setattr(chapters, "data_files", lambda: ["another.csv"]),
    }
    builds = {}
    for name, change in changes.items():
        change()
        chapters.build(tmp_path)
        builds[name] = len(strict_builds)
    assert builds == {"first": 1, "test": 1, "day": 2, "data": 3}


def test_pages_of_any_other_build_are_written_again(tmp_path, strict_builds):
    """As Sphinx calls it: before it writes, whoever started it."""
    connected = {}
    app = types.SimpleNamespace(srcdir=tmp_path, connect=lambda event, function, **_: connected.update({event: function}))
    house.setup(app)
    chapters.build(tmp_path)
    connected["builder-inited"](app)
    chapters.build(tmp_path)
    assert len(strict_builds) == 2


def test_a_failed_build_is_not_taken_for_a_good_one(tmp_path, strict_builds, monkeypatch):
    error = subprocess.CalledProcessError(1, "jupyter-book")
    with monkeypatch.context() as patch:
        patch.setattr("subprocess.run", lambda *_, **__: (_ for _ in ()).throw(error))
        with pytest.raises(subprocess.CalledProcessError):
            chapters.build(tmp_path)
    chapters.build(tmp_path)
    assert len(strict_builds) == 1
