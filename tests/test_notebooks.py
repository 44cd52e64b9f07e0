"""The notebooks that a reader downloads: whole, plain, with outputs, and recomputing where only the package is."""

import importlib.metadata
import json
import os
import re
import sys
import tomllib
import types
import zipfile
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit
from urllib.request import Request, urlopen

import nbformat
import pytest
import yaml
from conftest import ROOT, soup_of
from IPython.core.inputtransformer2 import TransformerManager
from nbclient import NotebookClient
from packaging.requirements import Requirement
from sphinx_external_toc.parsing import parse_toc_yaml
from test_chapters import MACROS, tree_of

import notebooks
import publish
from softlabel.book import claims


def names_of(page):
    """The notebooks of a page: the chapter, and its exercises if there are some."""
    text, name = (ROOT / f"{page}.md").read_text("utf8"), page.removeprefix("book/")
    with_code = [f"{name}.ipynb"] if "{code-cell}" in text else []
    return with_code + [f"{name}_exercises.ipynb"] * ("{exercise}" in text)


PAGES = {page: names for page in parse_toc_yaml(ROOT / "_toc.yml") if (names := names_of(page))}
NAMES = [name for names in PAGES.values() for name in names]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
REPOSITORY = CONFIG["repository"]["url"]
OPTIONS = types.SimpleNamespace(html_theme_options={"repository_url": REPOSITORY})
INSTALL = notebooks.install(OPTIONS, ROOT)


@pytest.fixture(scope="module")
def folder(site):
    return site / "notebooks"


def read(folder, name):
    notebook = nbformat.read(folder / name, as_version=4)
    nbformat.validate(notebook)
    return notebook


# Plain Markdown: nothing of MyST, of Sphinx or of the book's macros.

RAW = {  # what must not be there, and texts in which it is
    "a role": (r"\{[a-z]+(:[a-z]+)?\}`", ["See {numref}`fig-a`.", "It is {glue:text}`x`."]),
    "a directive": (r"^[ >]*(:{3,}|`{3,}\s*\{)", [":::{table} A", "```{math}\nx\n```", "> ```{glue:md} x", ":::"]),
    "an option": (r"^[ >]*:[\w-]+: ?\S*$", [":label: ex-02-hand", "> :name: tab-a", ":nowrap:"]),
    "options of a cell": (r"^---\n(mystnb|tags):", ["---\nmystnb:\n  figure:\n---\nx = 1", "---\ntags: [hide-input]\n---"]),
    "a target": (r"^\([\w-]+\)=$", ["(run)="]),
    "a substitution": (r"\{\{ \w+ \}\}", ["Version {{ version }}"]),
    "a macro": (rf"\\(?:{'|'.join(MACROS)})(?![A-Za-z])", [r"$\vect{y}$", r"$\vect\beta$", r"$x\T y$", r"$\E(Y)$"]),
    "a link that leads nowhere": (
        r"\]\((?!https?://)|\]\([^)]*\.md",
        ["[Notation](../notation.html)", "[a](#fig-a)", "[a](https://a.example/notation.md)"],
    ),
    "a number that is missing": (
        r"\*\*(Figure|Table|Theorem|Exercise|Definition) ?[.(]|\(\)|\?\?|  +[.,;]",
        ["**Figure .** A", "**Theorem (Harmless noise).**", "See ().", "Table ??", "a share of  , or"],
    ),
    "an object's repr": (r"np\.(float|int|bool|str)\w*\(|<[\w.]+ object", ["It is np.float64(2.0).", "<a.Markdown object>"]),
    "an unknown number": (r"(?<![\w.])nan(?!\w)", ["A share of nan."]),
}
# A code span may say what it likes, and so may an operator of TeX.
EXEMPT = re.compile(r"(?<![`}])`[^`\n{]+`(?!`)|\\operatorname\{\w+\}")
PLAIN = r"""**Figure 2.1.** A $\operatorname{E}(\boldsymbol{y})^{\mathsf{T}}$, [Notation](https://a.example/notation.html#a),
`f()`.

> **Theorem 2.1 (Harmless noise).**
>
> $$x \tag{2.1}$$

```bash
make lab
```

- a list: of *words*, at 10:30 (in all)
"""


def find_raw(text):
    text = EXEMPT.sub("", text)
    patterns = {kind: re.compile(pattern, re.MULTILINE) for kind, (pattern, _) in RAW.items()}
    return [f"{kind}: {match[0]!r}" for kind, pattern in patterns.items() for match in pattern.finditer(text)]


def test_what_is_raw_is_seen_and_what_is_plain_passes():
    for kind, (_, texts) in RAW.items():
        for text in texts:
            assert any(found.startswith(f"{kind}: ") for found in find_raw(f"Before.\n\n{text}\n\nAfter.")), text
    assert find_raw(PLAIN) == []


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_valid_and_plain(folder, name):
    cells = read(folder, name).cells
    words = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert find_raw(words) == []
    assert words.startswith("# ")
    is_sheet = name.endswith("_exercises.ipynb")
    assert is_sheet or ((len(re.findall("^## ", words, re.M)) >= 3 or name == "practice/sheet.ipynb") and len(words) > 1000)
    assert not is_sheet or words.count("*Check.*") >= 3
    assert not any(re.match(RAW["options of a cell"][0], cell.source) for cell in cells)
    assert not (is_sheet and any(cell.outputs for cell in cells if cell.cell_type == "code"))
    assert is_sheet or notebooks.LIVE in words
    opened, closed = words.count("<details>"), words.count("</details>")
    assert opened == closed == words.count("<summary>")


# The code is what the build has executed.


@pytest.mark.parametrize("page", PAGES)
def test_code_and_outputs_are_those_of_the_build(folder, executed_chapters, page):
    first, *cells = [c for c in read(folder, PAGES[page][0]).cells if c.cell_type == "code"]
    executed = [c for c in executed_chapters[page].cells if c.cell_type == "code"]
    # In a solution below a line that says so, since a folded cell shows its first line.
    said = re.compile(r"\A# Solution of exercise [\w.]+\n")
    assert [said.sub("", c.source) for c in cells] == [c.source for c in executed]
    assert first.source == INSTALL
    for cell, theirs in zip(cells, executed):
        kinds = [sorted(o.get("data", {})) for o in cell.outputs]
        assert kinds == [sorted(o.get("data", {})) for o in theirs.outputs]
    # What the page folds is folded: imports, drawings and solutions.
    folded = [c.metadata.get("jupyter", {}).get("source_hidden", False) for c in cells]
    tagged = ["hide-input" in c.metadata.get("tags", []) for c in executed]
    assert folded == [tag or bool(said.match(c.source)) for tag, c in zip(tagged, cells)]
    assert all(said.match(c.source) for c in cells if re.search(r"^exercises\.mark\(", c.source, re.M))
    assert not all(folded)


def plain(text):
    """The words of a text in Markdown: no links, code spans, emphasis, quotes or bullets."""
    text = re.sub(r"\[((?:\\.|[^\]\\])*)\]\([^)\s]*\)", r"\1", text)
    text = re.sub(r"(?<!\\)(`|\*{1,2})", "", text)
    text = re.sub(r"^[> ]+|^ *(- |\d+\. )", "", text, flags=re.MULTILINE)
    return " ".join(re.sub(r"\\([\\`*_\[\]<$.)])", r"\1", text).split())


@pytest.fixture(scope="module")
def articles(folder, site):
    """By name of a chapter's notebook: the article of its page, and what the notebook says."""
    found = {}
    for page, (name, *_) in PAGES.items():
        said = "\n".join(cell.source for cell in read(folder, name).cells if cell.cell_type == "markdown")
        found[name] = soup_of((site / f"{page}.html").read_text("utf8")).find("article"), said
    return found


def test_the_same_text_as_on_the_page(articles):
    """Words and numbers of all paragraphs of a chapter that have no formula, in the notebook and on the page."""
    for name, (article, said) in articles.items():
        words = plain(said)
        paragraphs = [
            p
            for p in article.find_all("p", class_=False)
            if not p.find(class_=["katex", "math"])
            and not p.find("img")
            and not p.find_parent(["td", "th"])
            and not p.find_parent(class_="cell_output")
        ]
        shown = [
            " ".join("".join(t for t in p.strings if t.parent.get("class") != ["headerlink"]).split()) for p in paragraphs
        ]
        assert [text for text in shown if text.replace("*", "") not in words] == [], name
        assert any(text not in words[: len(words) // 2] for text in shown), "nothing was compared"
        outputs = [s for s in article.find_all("span", class_="output") if "text_plain" in s["class"] and s.find_parent("p")]
        values = [s.get_text(strip=True) for s in outputs]
        assert [v for v in values if not re.search(r"[$\\|]", v) and v not in words] == [], name


def test_numbers_are_those_of_the_page(articles):
    kinds = "Figure|Table|Theorem|Definition|Proposition|Lemma|Corollary|Assumption|Algorithm|Exercise"
    for name, (article, said) in articles.items():
        text = "\n".join(e.get_text() for e in article.find_all(class_=["caption-number", "admonition-title"]))
        theirs = re.findall(rf"^\s*((?:{kinds}) \d+\.\d+)", text, re.M)
        ours = re.findall(rf"^(?:> )*\*\*((?:{kinds}) \d+\.\d+)", said, re.M)
        assert sorted(ours) == sorted(set(theirs)), name
        equations = [e.get_text() for e in article.find_all(class_="eqno")]
        assert re.findall(r"\\tag\{([\d.]+)\}", said) == [re.search(r"[\d.]+", e)[0] for e in equations], name


# Text, piece by piece.


@pytest.mark.parametrize("html, expected", [
    ("<p>1 * 2 &lt; a_b</p>", r"1 \* 2 < a\_b"),
    ('<p><span class="math">\\(x % y\n + \\vect{z}\\)</span>.</p>', r"$x + \boldsymbol{z}$."),
    ('<p><a href="../d.html#e">d</a></p>', "[d](https://a.example/d.html#e)"),
    ('<div class="math"><span class="eqno">(1.2)<a class="headerlink">#</a></span>\\[a\n> b\\]</div>', r"$$a > b \tag{1.2}$$"),
    ('<div class="proof admonition"><p class="admonition-title"><span class="caption-number">Theorem 1.1 </span> (A)</p>'
     '<p class="box-tests">marks</p><section><p>Text.</p></section></div>', "> **Theorem 1.1  (A)**\n>\n> Text."),
    ("<p>a</p><script>let a</script><style>b</style>", "a"),
    ('<table><caption><span class="caption-number">Table 1.1 </span>A</caption><thead><tr><th>a</th></tr></thead>'
     "<tbody><tr><td>1</td></tr></tbody></table>", "**Table 1.1** A\n\n| a |\n| --- |\n| 1 |"),
    ('<div class="highlight-bash"><pre>make lab</pre></div>', "```bash\nmake lab\n```"),
])  # fmt: skip
def test_markdown_of_html(html, expected):
    assert notebooks.markdown(html, "https://a.example/b/c.html", {"vect": [r"\boldsymbol{#1}", 1]}) == expected


PAGE = """<h1>7. A</h1><p>Begin.</p><div class="cell">code</div><div class="cell">code<figure><figcaption><p>
<span class="caption-number">Figure 7.1 </span>What.</p></figcaption></figure></div><h2>7.1. Exercises</h2>
<div class="exercise admonition" id="ex-02-hand"><p class="admonition-title">Exercise 7.1</p>
<p>Do.</p></div><div class="solution dropdown admonition"><p class="admonition-title">Solution</p><section><p>Because.</p>
<div class="cell">code</div><p>So.</p></section></div><h2>Summary</h2>"""


def test_notebooks_of_a_page():
    executed = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"x = {k}") for k in range(3)])
    text = notebooks.markdown(PAGE, "https://a.example/c.html", {})
    arguments = (text, executed, "https://a.example/c.html", "first")
    chapter, sheet = notebooks.chapter_notebook(*arguments), notebooks.exercise_notebook(*arguments)
    sources = [c.source for c in chapter.cells]
    assert sources[1].startswith("# 7. A\n\n*The page of this notebook: <https://a.example/c.html>. Change a number")
    assert sources[2:4] == ["x = 0", "x = 1"]
    assert sources[4].startswith("**Figure 7.1** What.\n\n## 7.1. Exercises")
    assert sources[5:8] == [
        "<details>\n<summary>Solution</summary>\n\nBecause.\n\n</details>", "# Solution of exercise 02.hand\nx = 2",
        "<details>\n<summary>Solution</summary>\n\nSo.\n\n</details>",
    ]  # fmt: skip
    assert sources[8] == "## Summary"
    # The sheet: the code of the chapter, the exercise, no solution.
    code = [c.source for c in sheet.cells if c.cell_type == "code"]
    assert code == ["first", "x = 0", "x = 1", 'exercises.mark("02.hand", ...)']
    words = "\n".join(c.source for c in sheet.cells if c.cell_type == "markdown")
    assert "> Do." in words and "Because" not in words and "Summary" not in words and "@@" not in words


def test_a_table_of_verdicts_is_that_of_the_ledger_now(monkeypatch):
    old = "| Verdict | Claim | Paper |\n|---|---|---|\n| differs | items (`fig1.gastro.n`) | 75 |"
    output = nbformat.v4.new_output("execute_result", {"text/markdown": old})
    monkeypatch.setattr(notebooks, "FOUND", {"fig1.gastro.n": {"value": 76.0, "se": 0.0}})
    new = notebooks.judged(output)["data"]["text/markdown"]
    assert "agrees" in new and f"| {claims.printed('fig1.gastro.n')} " in " ".join(new.split())
    other = nbformat.v4.new_output("execute_result", {"text/markdown": "| a |\n|---|\n| b (`c`) |"})
    assert "(`c`)" in notebooks.judged(other)["data"]["text/markdown"]


# The first cell, and a machine that has the package only.


@pytest.mark.parametrize("installed", [True, False])
def test_first_cell_installs_where_the_package_is_missing(monkeypatch, installed):
    calls = []
    shell = types.SimpleNamespace(run_line_magic=lambda *call: calls.append(call))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if installed else None)
    exec(TransformerManager().transform_cell(INSTALL), {"get_ipython": lambda: shell})
    version = publish.version(ROOT)
    assert calls == [] if installed else [("pip", f'install --quiet "softlabel[book] @ git+{REPOSITORY}@v{version}"')]


def declared():
    """What the first cell installs beside the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    return [Requirement(d) for d in [*project["dependencies"], *project["optional-dependencies"]["book"]]]


def imports_of(notebook):
    trees = [tree_of(cell) for cell in notebook.cells[1:] if cell.cell_type == "code"]
    found = [node for tree in trees for node in tree.body]
    names = [a.name for node in found if type(node).__name__ == "Import" for a in node.names]
    names += [node.module for node in found if type(node).__name__ == "ImportFrom"]
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names)


def test_what_the_chapters_import_is_what_the_first_cell_installs(folder):
    names = {requirement.name.lower() for requirement in declared()} | {"softlabel", "ipython"}
    owner = importlib.metadata.packages_distributions()
    foreign = {name: imports_of(read(folder, name)) for name in NAMES}
    lacking = {
        name: found for name, modules in foreign.items()
        if (found := [m for m in modules if not {d.lower() for d in owner.get(m, [m])} & names])
    }  # fmt: skip
    assert lacking == {}


def test_chapters_need_no_file_of_the_repository(folder):
    files = re.compile(r"""["'](\.{1,2}/|_static|book/)""")
    assert files.search('plt.style.use("../_static/book.mplstyle")')
    found = {name: files.findall(cell.source) for name in NAMES for cell in read(folder, name).cells}
    assert {name for name, hits in found.items() if hits} == set()


def needed_by(requirements):
    """Distributions that these need, and these."""
    found, waiting = set(), list(requirements)
    while waiting:
        requirement = waiting.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if (name, extras := frozenset(requirement.extras)) in found:
            continue
        found.add((name, extras))
        try:
            inner = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        waiting += [
            line for line in map(Requirement, inner)
            if not line.marker or any(line.marker.evaluate({"extra": e}) for e in ("", *extras))
        ]  # fmt: skip
    return {name for name, _ in found}


@pytest.fixture(scope="module")
def package_only(tmp_path_factory):
    """Environment of a process that can import the package, what it needs, and a kernel; nothing else of the book's tools."""
    kept = needed_by([*declared(), Requirement("softlabel"), Requirement("ipykernel")])
    hidden = {
        module for module, owners in importlib.metadata.packages_distributions().items()
        if not {re.sub(r"[-_.]+", "-", name).lower() for name in owners} & kept
    }  # fmt: skip
    assert {"myst_nb", "sphinx", "jupyter_book", "nbgrader"} & hidden and not {"numpy", "sympy", "statsmodels", "zmq"} & hidden
    place = tmp_path_factory.mktemp("package only")
    (place / "sitecustomize.py").write_text(
        "import sys\n\n\nclass Hidden:\n    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] in {sorted(hidden)!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "\n\nsys.meta_path.insert(0, Hidden())\n"
    )
    path = os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "TQDM_DISABLE": "1"}


def tables_of(notebook):
    data = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    return [kinds["text/markdown"] for kinds in data if "text/markdown" in kinds]


def test_a_download_recomputes_where_only_the_package_is(folder, package_only, tmp_path):
    """With another share of hard items another table, in a notebook run from a folder of its own."""
    published, changed = read(folder, "paper/02_harmless_noise.ipynb"), read(folder, "paper/02_harmless_noise.ipynb")
    for old, new in (('"hard": 0.5', '"hard": 0.7'), ("n_sets=10_000", "n_sets=200")):
        (cell,) = [cell for cell in changed.cells if old in cell.source]
        cell.source = cell.source.replace(old, new)
    # What needs the tools of the book fails there.
    changed.cells.append(nbformat.v4.new_code_cell("from myst_nb import glue", metadata={"tags": ["raises-exception"]}))
    NotebookClient(changed, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute(env=package_only)
    assert changed.cells.pop().outputs[0].evalue == "No module named 'myst_nb'"
    assert not any(o.output_type == "stream" and o.name == "stderr" for c in changed.cells for o in c.get("outputs", []))
    before, after = tables_of(published), tables_of(changed)
    hard = [re.findall(r"(\d+\.\d)%", table)[2] for table in (before[0], after[0])]
    assert [round(float(value)) for value in hard] == [50, 70]
    assert before[1:3] == after[1:3]  # what does not rest on it stays to the digit


# The links.


def buttons(page, group):
    soup = soup_of(page.read_text("utf8"))
    return {a.get_text(strip=True): a["href"] for a in soup.select(f".dropdown-{group} a")}


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_give_its_notebooks(site, served, folder, page):
    found = buttons(site / f"{page}.html", "download-buttons")
    links = [urljoin(f"{served}/{page}.html", href) for text, href in found.items() if text.endswith(".ipynb")]
    assert [urlsplit(link).path for link in links] == [f"/notebooks/{name}" for name in PAGES[page]]
    for link in links:
        with urlopen(link) as answer:
            assert answer.status == 200
            nbformat.validate(json.load(answer))
    archive = Request(urljoin(f"{served}/{page}.html", found["all notebooks .zip"]), method="HEAD")
    with urlopen(archive) as answer:
        assert answer.status == 200 and urlsplit(answer.url).path == f"/notebooks/{notebooks.ARCHIVE}"
    # Elsewhere: the branch that the workflow writes has what is in the folder.
    places = buttons(site / f"{page}.html", "launch-buttons")
    owner = urlsplit(REPOSITORY).path
    colab, binder = (urlsplit(places[name]) for name in ("Colab", "Binder"))
    assert (colab.netloc, binder.netloc) == ("colab.research.google.com", "mybinder.org")
    name = colab.path.removeprefix(f"/github{owner}/blob/{notebooks.BRANCH}/")
    assert name == PAGES[page][0] and (folder / name).exists()
    assert binder.path == f"/v2/gh{owner}/{notebooks.BRANCH}"
    assert parse_qs(binder.query) == {"urlpath": [f"lab/tree/{name}"]}


def test_archive_holds_them_all(folder):
    with zipfile.ZipFile(folder / notebooks.ARCHIVE) as archive:
        stem = Path(notebooks.ARCHIVE).stem
        assert sorted(archive.namelist()) == sorted(f"{stem}/{name}" for name in NAMES)
        assert all(archive.read(f"{stem}/{name}") == (folder / name).read_bytes() for name in NAMES)


def test_binder_gets_the_versions_of_the_book(folder):
    lines = (folder / "binder" / "requirements.txt").read_text("utf8").splitlines()
    assert lines[:2] == ["-c constraints.txt", "jupyterlab"]
    assert lines[2] in INSTALL and Requirement(lines[2]).extras == {"book"}
    assert (folder / "binder" / "constraints.txt").read_bytes() == (ROOT / "requirements.txt").read_bytes()


def test_the_workflow_publishes_the_branch_and_the_version():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text("utf8"))["jobs"]
    uploads = [s["with"]["path"] for s in jobs["book"]["steps"] if "upload-artifact" in s.get("uses", "")]
    assert uploads == ["_build/html/notebooks"]
    script = "\n".join(step.get("run", "") for step in jobs["publish"]["steps"])
    assert f"refs/heads/{notebooks.BRANCH}\n" in script
    assert '"v$version"' in script and jobs["publish"]["permissions"]["contents"] == "write"


def test_other_pages_offer_no_notebook(site):
    for name in ("notation", "references"):
        page = site / "book" / f"{name}.html"
        assert not any(".ipynb" in href for href in buttons(page, "download-buttons").values())
        assert buttons(page, "launch-buttons") == {}
