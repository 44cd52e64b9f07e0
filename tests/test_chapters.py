"""The chapters keep the rules that a program can check, and the build does what it promises.

Each `find_*` function takes a chapter and returns what is wrong with it. Each
is first shown a bad sample.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import nbformat
import pytest
import yaml
from conftest import ROOT
from myst_nb.core.read import read_myst_markdown_notebook
from sphinx_external_toc.parsing import parse_toc_yaml

from softlabel.book import claims

MACROS = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]

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
        text = re.sub(r"^(`{3,}|~{3,})\{?(code|code-cell|math|index)\b.*?^\1[`~]*$", "", text, flags=re.S | re.M)
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

    Numbers are evaluated where they stand; formulas may hold constants.
    """
    return DECIMAL.findall(NAMES.sub("", words_of(chapter)))


def words_of(chapter):
    """Prose, captions and alt texts."""
    options = [figure_options(cell) for cell in chapter.code]
    words = [o[key] for o in options for key in ("caption", "alt") if o[key]]
    return chapter.prose + "\n" + re.sub(r"\$.*?\$|`.*?`", "", "\n".join(words))


COUNTED = re.compile(
    r"\b(?:all|none of(?: the)?|\d+ of(?: the)?) \d+\b|\b\d+ (?:cells|verdicts|claims)\b"
    r"|\b(?:all|none) of the \d+\b|\b(?!(?:50|80|90|95|99)%)\d+%"
    r"|\b(?:about|almost|nearly|roughly|some) "
    r"(?:half|an? (?:third|quarter|fifth|tenth)|\w+ in ten)\b",
    re.I,
)


def find_typed_counts(chapter):
    """Counts of cells, verdicts and claims, and shares, typed by hand; levels of confidence are constants."""
    return COUNTED.findall(words_of(chapter).replace("\n", " "))


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
        if any(map(shows_table, cell.get("outputs", []))) or re.search(r"^(show|claims\.check)\(", cell.source, re.M):
            continue  # a table
        lacking = [k for k, v in figure_options(cell).items() if not v]
        pictures = [kind for output in cell.get("outputs", []) for kind in output.get("data", {}) if kind.startswith("image/")]
        if figure_options(cell)["alt"] and cell.get("execution_count") and not pictures:
            problems.append(f"cell {number}: a figure without a picture")
        if draws and lacking:
            problems.append(f"cell {number}: no {', '.join(lacking)}")
    return problems


def find_bare_tables(chapter):
    """Tables without caption and name, and those that cells show raw."""
    problems = []
    table = r"^(?P<fence>[:`]{3,})\{(?:table|list-table|csv-table)\}(?P<caption>[^\n]*)\n(?P<body>.*?)^(?P=fence)$"
    directive = re.compile(table, re.S | re.M)
    for match in directive.finditer(chapter.text):
        caption = match["caption"].strip()
        if not caption or not re.search(r"^:name: \S", match["body"], re.M):
            problems.append(f"no caption or no name: {caption or match['body'][:40]}")
    rest = directive.sub("", chapter.text)
    rest = re.sub(r"^(`{3,})\{code-cell\}.*?^\1$", "", rest, flags=re.S | re.M)
    problems += re.findall(r"^\|[ :|-]+\|$", rest, flags=re.M)
    problems += [
        f"cell {number} shows a table without caption or name"
        for number, cell in enumerate(chapter.code, 1)
        for output in cell.get("outputs", [])
        if "<table" in "".join(output.get("data", {}).get("text/html", "")) or shows_table(output)
        if not (figure_options(cell)["caption"] and figure_options(cell)["name"])
    ]
    return problems


def shows_table(output):
    return re.search(r"^\|[ :|-]+\|$", "".join(output.get("data", {}).get("text/markdown", "")), re.M)


HIDDEN = {"hide-input", "hide-cell", "hide-output", "remove-input", "remove-cell", "remove-output"}


def find_hidden_cells(chapter):
    """Cells that are hidden, but for the imports and for the drawing of figures, which are folded."""
    problems = []
    for number, cell in enumerate(chapter.code, 1):
        hidden = HIDDEN & set(cell.metadata.get("tags", []))
        imports = any(isinstance(node, ast.Import | ast.ImportFrom) for node in tree_of(cell).body)
        if hidden - {"hide-input"} or (hidden and not imports and not figure_options(cell)["alt"]):
            problems.append(f"cell {number}: {', '.join(sorted(hidden))}")
    return problems


def find_foreign_macros(chapter):
    """Macros of the book that the page uses and JupyterLab is not told of, or told otherwise."""
    found = re.search(r"^```yaml\n(math:.*?)^```$", chapter.text, re.S | re.M)
    told = yaml.safe_load(found[1])["math"] if found else {}
    book = {"\\" + name: body[0] if isinstance(body, list) else body for name, body in MACROS.items()}
    text = chapter.text.replace(found[0] if found else "", "")
    used = {name for name in book if re.search(re.escape(name) + r"(?![A-Za-z])", text)}
    wrong = [name for name, body in told.items() if book.get(name) != body]
    return wrong + (sorted(used ^ set(told)) if chapter.code else [])


def find_glue(chapter):
    """Numbers that do not stand in their sentence."""
    return re.findall(r"\bglue\b.*", chapter.text)


SECTIONS = ["where it stops being true", "exercises", "summary"]
LINES = ["**You will be able to** ", "**You need** "]


def find_missing_sections(chapter):
    """Sections that every chapter on the paper has, and two lines, which come after its first section."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", chapter.text, flags=re.S | re.M)
    headings = " / ".join(re.findall(r"^#{1,4}\s+(.*)$", text, flags=re.M)).lower()
    missing = [name for name in SECTIONS if name not in headings] + [line for line in LINES if f"\n{line}" not in text]
    return missing + ["a hook"] * ("\n## " not in text.partition(f"\n{LINES[0]}")[0])


def find_unsolved_exercises(chapter):
    """Exercises without label or without solution."""
    exercise = re.compile(r"^\s*[:`]{3,}\{exercise(?:-start)?\}.*\n((?:\s*:[\w-]+:.*\n)*)", re.M)
    solution = re.compile(r"^\s*[:`]{3,}\{solution(?:-start)?\}\s+(\S+)", re.M)
    solved = set(solution.findall(chapter.text))
    labels = [(re.findall(r":label:\s*(\S+)", options) or ["no label"])[0] for options in exercise.findall(chapter.text)]
    return [label for label in labels if label not in solved]


def find_unknown_claims(chapter):
    """Claims that a cell checks and the ledger does not hold."""
    call = re.compile(r"""\b(?:claim|printed)\(\s*["']([^"']+)["']""")
    return [key for key in call.findall(chapter.text) if key not in claims.ledger()]


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
    find_missing_sections: [
        "# A\n\n## Summary\n",
        "# A\n\n```\n## Exercises\n```\n",
        "# A\n\n**You will be able to** b.\n\n**You need** c.\n\n## Where it stops being true\n\n## Exercises\n\n## Summary\n",
    ],
    find_unsolved_exercises: [
        ":::{exercise}\n:label: a\n\nDo it.\n:::\n",
        ":::{exercise-start}\n\nDo it.\n:::\n",
        ":::{exercise}\n:label: a\n\nDo.\n:::\n\n:::{solution} b\nDone.\n:::\n",
    ],
    find_unknown_claims: ["# A\n\n" + cell('claims.claim("no.such")'), "# A\n\n{eval}`claims.printed('no.such')`\n"],
    find_typed_counts: [
        f"# A\n\nIn {words} it holds.\n"
        for words in "all 48 cells, 46 of the 48, none of 20, 20 cells, 18% of it, about half, nearly nine in ten".split(", ")
    ],
    find_hidden_cells: [
        "# A\n\n" + cell("x = 1", "tags: [hide-input]"),
        "# A\n\n" + cell("import math", "tags: [remove-cell]"),
        "# A\n\n" + cell("show(x)", FIGURE.format(caption="a", name="b", alt="") + "\ntags: [hide-input]"),
    ],
    find_foreign_macros: [
        "# A\n\n$\\vect{y}$\n\n" + cell("x"),
        "```yaml\nmath:\n  '\\vect': '\\mathbf{#1}'\n```\n\n# A\n\n$\\vect{y}$\n\n" + cell("x"),
        "```yaml\nmath:\n  '\\vect': '\\boldsymbol{#1}'\n```\n\n# A\n\n" + cell("x"),
    ],
    find_glue: ["# A\n\n{glue:text}`x`\n", "# A\n\n" + cell("claims.glue('x', '1')")],
}
GOOD_CHAPTER = (
    "```yaml\nmath:\n  '\\E': '\\operatorname{E}'\n```\n\n# A\n\nThe level is 95%, $\\E(y)$.\n\n"
    "## A hook\n\nSection 2.2 and sections 2.2 and 2.3, "
    "with $\\Delta = 1.5$\nand {eval}`num(x)` and `0.5`, in 3 lines "
    "([source](https://a.example/1.5)).\n\n$$\n0.5\n$$\n\n**You will be able to** b.\n\n**You need** c.\n\n"
    + cell("import numpy as np\n%config X = [1.5]\nnp.set_printoptions(precision=2)")
    + "## Where it stops being true\n\n"
    + cell("x = 0.5", FIGURE.format(caption="A $0.5$", name="fig-a", alt="A line"))
    + cell("show(x)", FIGURE.format(caption="A table", name="tab-a", alt=""))
    + "## Exercises\n\n:::{exercise} Two\n:label: ex-a\n\nDo it.\n:::\n\n"
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


# The build, on a copy of the book with three of its pages and a new one.

NEW = """---
description: A chapter that was added.
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A new chapter

```{code-cell} ipython3
from softlabel.book import claims
from softlabel.book.numbers import num

x = 0.25
```

```{code-cell} ipython3
---
mystnb:
  figure:
    caption: A line.
    name: fig-new
  image:
    alt: A line.
---
import matplotlib.pyplot as plt

plt.style.use("softlabel.book.style")
%config InlineBackend.figure_formats = ["svg"]
plt.plot([0, x]);
```

The number is {eval}`num(x)`.

```{code-cell} ipython3
---
mystnb:
  figure:
    caption: A claim.
    name: tab-new
---
claims.check({"wisconsin.halves": x})
```
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The copy; its pages are built by the command of the Makefile."""
    root = tmp_path_factory.mktemp("book")
    files = "_config.yml", "CITATION.cff", "pyproject.toml", "CHANGELOG.md", "requirements.txt"
    for name in ("book", "softlabel", "tests", *files):
        source = ROOT / name
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, root / name, ignore=ignore) if source.is_dir() else shutil.copy(source, root / name)
    pages = ("verdicts", "new")
    for path in (root / "book").rglob("*.md"):
        if path.stem not in ("notation", *pages):
            path.unlink()
    # What only the whole book can resolve.
    notation = root / "book" / "notation.md"
    notation.write_text("---\ndescription: Notation.\n---\n\n# Notation\n")
    verdicts = root / "book" / "verdicts.md"
    verdicts.write_text(re.sub(r"\[[^]]*\]\([^)]*#cite-[^)]*\)", "the paper", verdicts.read_text("utf8")))
    (root / "book" / "new.md").write_text(NEW)
    files = "".join(f"      - file: book/{page}\n" for page in pages)
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: book/notation\nparts:\n  - numbered: true\n    chapters:\n{files}")
    return root


def make(root, builder="html"):
    """Build; the pages that were executed."""
    run = {"cwd": root, "check": True, "capture_output": True, "text": True}
    subprocess.run([Path(sys.executable).with_name("jupyter-book"), "config", "sphinx", "."], **run)
    recipe = re.search(r"^SPHINX := .*?(sphinx-build .*)$", (ROOT / "Makefile").read_text(), re.M)[1]
    env = {**os.environ, "PYTHONPATH": f"book/_ext:{root}"}
    command = [sys.executable, "-m", "sphinx", *recipe.split()[1:], "-b", builder, ".", f"_build/{builder}"]
    done = subprocess.run(command, **{**run, "check": False}, env=env)
    assert done.returncode == 0, done.stderr
    return sorted(re.findall(r"(\w+)\.md: Executed notebook", done.stdout + done.stderr))


def page_of(root, name):
    return (root / "_build" / "html" / "book" / f"{name}.html").read_text("utf8")


@pytest.mark.slow
def test_a_new_chapter_needs_its_file_and_a_line(copied):
    assert make(copied) == ["new", "verdicts"]
    assert "The number is <span" in page_of(copied, "new") and ">0.25</span>" in page_of(copied, "new")
    assert "differs" in page_of(copied, "new") and "differs" in page_of(copied, "verdicts")

    # The same sources: no file changes.
    def state():
        return {path: path.read_bytes() for path in sorted((copied / "_build" / "html").rglob("*")) if path.is_file()}

    before = state()
    assert make(copied) == []
    assert state() == before
    shutil.rmtree(copied / "_build")
    assert make(copied) == ["new", "verdicts"]
    after = state()
    assert [name for name in before | after if before.get(name) != after.get(name)] == []

    # A printed value: pages are written anew, nothing is executed.
    ledger = copied / "softlabel" / "book" / "claims.yml"
    text = ledger.read_text("utf8")
    line = next(line for line in text.splitlines() if "id: wisconsin.halves" in line)
    ledger.write_text(text.replace(line, line.replace('"0.5"', '"0.3"')), "utf8")
    assert make(copied) == []
    row = page_of(copied, "new").partition("tab-new")[2]
    assert "0.3" in row and "agrees" in row and "differs" not in row.partition("</table>")[0]

    # A docstring: nothing; the code of the package: everything.
    module = copied / "softlabel" / "separation.py"
    code = module.read_text("utf8")
    module.write_text(code.replace('"""', '"""Another beginning. ', 1), "utf8")
    assert make(copied) == []
    module.write_text(code + "\nx = 1\n", "utf8")
    assert make(copied) == ["new", "verdicts"]


@pytest.mark.slow
def test_what_is_wrong_fails_the_build(copied):
    page = copied / "book" / "new.md"
    good = page.read_text()
    bad = {
        "a cell that raises": good.replace("x = 0.25", "x = 1 / 0"),
        "a number that nobody knows": good.replace("num(x)", "num(y)"),
        "a name with two meanings": good + "\n```{code-cell} ipython3\nx = 3\n```\n",
        "a claim that nobody made": good.replace("wisconsin.halves", "wisconsin.nothing"),
        "a page without description": good.replace("description: A chapter that was added.\n", ""),
    }
    for text in bad.values():
        page.write_text(text)
        for _ in range(2):  # and again, though nothing has changed
            with pytest.raises(AssertionError, match="WARNING"):
                make(copied)
    page.write_text(good)
    assert make(copied) == ["new"]
