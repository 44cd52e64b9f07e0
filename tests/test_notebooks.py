"""The notebooks that a reader downloads: whole, plain, what the build has executed, and running where only the package is."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import types
import zipfile
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit
from urllib.request import urlopen

import nbformat
import pytest
import yaml
from conftest import ROOT, soup_of
from docutils import nodes
from IPython.core.inputtransformer2 import TransformerManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from packaging.requirements import Requirement
from test_chapters import tree_of

import chapters
import notebooks
import publish
import sheets

PAGES = notebooks.notebooks_of(ROOT)
NAMES = [name for names in PAGES.values() for name in names]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
REPOSITORY = CONFIG["repository"]["url"]


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
    "a macro": (rf"\\(?:{'|'.join(sheets.macros())})(?![A-Za-z])", [r"$\vect{y}$", r"$\vect\beta$", r"$x\T y$", r"$\E(Y)$"]),
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
    assert len(re.findall("^## ", words, re.M)) >= 3 and (name.endswith("_exercises.ipynb") or len(words) > 1000)
    assert not name.endswith("_exercises.ipynb") or words.count("*Check.*") >= 3
    assert not any(re.match(RAW["options of a cell"][0], cell.source) for cell in cells)
    assert all(not cell.outputs for cell in cells if cell.cell_type == "code")
    opened, closed = words.count("<details>"), words.count("</details>")
    assert opened == closed == words.count("<summary>")


# The code is what the build has executed.


@pytest.mark.parametrize("page", PAGES)
def test_code_is_that_of_the_build(folder, page):
    first, *cells = [c for c in read(folder, PAGES[page][0]).cells if c.cell_type == "code"]
    executed = [c for c in chapters.executed(ROOT / f"{page}.md").cells if c.cell_type == "code"]
    # In a solution below a line that says so, since a folded cell shows its first line.
    said = re.compile(r"\A# Solution of exercise \d+\.\d\n")
    assert [said.sub("", c.source) for c in cells] == [c.source for c in executed]
    assert all(c.execution_count for c in executed)
    assert first.source == sheets.install()
    # What the page folds is folded: cells with such a tag, and solutions.
    folded = [c.metadata.get("jupyter", {}).get("source_hidden", False) for c in cells]
    tagged = [bool(notebooks.HIDDEN & set(c.metadata.get("tags", []))) for c in executed]
    assert all(f >= t for f, t in zip(folded, tagged))
    assert all(f >= bool(said.match(c.source)) for f, c in zip(folded, cells))
    assert all(said.match(c.source) for c in cells if re.search(r"^exercises\.mark\(", c.source, re.M))
    assert not all(folded)


def plain(text):
    """The words of a text in Markdown: no links, code spans, emphasis, quotes or bullets."""
    text = re.sub(r"\[((?:\\.|[^\]\\])*)\]\([^)\s]*\)", r"\1", text)
    text = re.sub(r"(?<!\\)(`|\*{1,2})", "", text)
    text = re.sub(r"^[> ]+|^ *(- |\d+\. )", "", text, flags=re.MULTILINE)
    return " ".join(re.sub(r"\\([\\`*_\[\]<$.)])", r"\1", text).split())


def test_the_same_text_as_on_the_page(folder, site):
    """Words and numbers of all paragraphs of a chapter that have no formula, in the notebook and on the page."""
    for page, (name, *_) in PAGES.items():
        soup = soup_of((site / f"{page}.html").read_text("utf8")).find("article")
        words = plain("\n".join(c.source for c in read(folder, name).cells if c.cell_type == "markdown"))
        paragraphs = [
            p
            for p in soup.find_all("p")
            if not p.get("class")
            and not p.select_one(".math, img")
            and not p.find_parent(["td", "th"])
            and not p.find_parent(class_="cell_output")
        ]
        shown = [" ".join(p.get_text().split()) for p in paragraphs]
        assert [text for text in shown if text not in words] == [], name
        assert any(text not in words[: len(words) // 2] for text in shown), "nothing was compared"
        values = [s.get_text(strip=True) for s in soup.select("span.pasted-text")]
        assert [v for v in values if not re.search(r"[$\\|]", v) and v not in words] == [], name


def test_numbers_are_those_of_the_page(folder, site):
    kinds = "Figure|Table|Theorem|Definition|Proposition|Corollary|Assumption|Algorithm|Exercise"
    for page, (name, *_) in PAGES.items():
        soup = soup_of((site / f"{page}.html").read_text("utf8")).find("article")
        text = "\n".join(e.get_text() for e in soup.select(".caption-number, p.admonition-title"))
        words = "\n".join(c.source for c in read(folder, name).cells if c.cell_type == "markdown")
        theirs = re.findall(rf"^\s*((?:{kinds}) \d+\.\d+)", text, re.M)
        ours = re.findall(rf"^(?:> )?\*\*((?:{kinds}) \d+\.\d+)", words, re.M)
        assert sorted(ours) == sorted(set(theirs)), name
        equations = [e.get_text() for e in soup.select(".eqno")]
        assert re.findall(r"\\tag\{([\d.]+)\}", words) == [re.search(r"[\d.]+", e)[0] for e in equations], name


# Text node by node.


def text_of(*children, numbers=None):
    return notebooks.Text("https://a.example/b/c.html", {"vect": [r"\boldsymbol{#1}", 1]}, numbers or {}).blocks(
        nodes.container("", *children)
    )


def paragraph(*children):
    return nodes.paragraph("", "", *(nodes.Text(c) if isinstance(c, str) else c for c in children))


@pytest.mark.parametrize("node, expected", [
    (paragraph("1 * 2 < $3\nand a_b [c]"), r"1 \* 2 \< \$3 and a\_b \[c\]"),
    (paragraph("2. of a kind"), r"2\. of a kind"),
    (paragraph(nodes.literal("", "a`b")), "`` a`b ``"),
    (paragraph(nodes.math("", "x % y\n + \\vect{z}")), r"$x + \boldsymbol{z}$"),
    (paragraph(nodes.reference("", "d", refuri="../d.html#e")), "[d](https://a.example/d.html#e)"),
    (paragraph(nodes.reference("", "Figure 1.1", refid="e")), "Figure 1.1"),
    (nodes.math_block("", "a &= b \\\\\n c", nowrap=False, ids=["e"]),
     "$$\\begin{split}a &= b \\\\ c\\end{split} \\tag{1.2}$$"),
    (nodes.bullet_list("", nodes.list_item("", paragraph("a"), paragraph("b")), nodes.list_item("", paragraph("c"))),
     "- a\n\n  b\n- c"),
    (nodes.enumerated_list(
        "", nodes.list_item("", paragraph("a"), nodes.bullet_list("", nodes.list_item("", paragraph("b"))))
    ), "1. a\n\n   - b"),
    (nodes.note("", nodes.title("", "Note"), paragraph("a"), nodes.math_block("", "b", nowrap=False)),
     "> **Note.**\n>\n> a\n>\n> $$b$$"),
    (nodes.raw("", "<script>let a</script><link href='a'>", format="html"), ""),
])  # fmt: skip
def test_markdown_of_a_node(node, expected):
    assert text_of(node, numbers={"displaymath": {"e": (1, 2)}}) == expected


def test_bars_in_a_table_do_not_end_its_cells():
    def row(*cells):
        return nodes.row("", *(nodes.entry("", paragraph(c), classes=["text-right"]) for c in cells))

    body = [nodes.thead("", row("a|b")), nodes.tbody("", row(nodes.math("", r"|x| + \|y\|")))]
    table = nodes.table("", nodes.title("", "A caption"), nodes.tgroup("", *body), ids=["t"])
    assert text_of(table, numbers={"table": {"t": (4, 1)}}) == (
        "**Table 4.1.** A caption\n\n| a&#124;b |\n| ---: |\n| $\\vert x\\vert + \\Vert y\\Vert$ |"
    )


@pytest.mark.parametrize("node, message", [
    (nodes.raw("", "<p>Words</p>", format="html"), "cannot show '<p>Words"),
    (nodes.raw("", "<img src='a.png'>", format="html"), "cannot show"),
    (nodes.footnote("", paragraph("a")), "no Markdown for footnote"),
])  # fmt: skip
def test_what_a_notebook_cannot_show_is_an_error(node, message):
    with pytest.raises(notebooks.NotebookError, match=message):
        text_of(node)


def page_of(*indices):
    """A page of a title and of the code cells with these numbers, and the chapter of three cells."""
    cells = [nodes.container("", cell_index=k) for k in indices]
    doctree = nodes.container("", nodes.section("", nodes.title("", "A"), *cells))
    executed = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"x = {k}") for k in range(3)])
    return doctree, executed, notebooks.Text("https://a.example/c.html", {}, {}, "7")


@pytest.mark.parametrize("shown", [(0, 1, 2), (1,), (0, 2), ()])
def test_cells_that_the_page_does_not_show_are_there(shown):
    notebook = notebooks.chapter_notebook(*page_of(*shown), "first")
    assert [c.source for c in notebook.cells if c.cell_type == "code"] == ["first", "x = 0", "x = 1", "x = 2"]
    assert notebook.cells[1].source.startswith("# 7. A\n")


@pytest.mark.parametrize("shown", [(1, 0), (0, 0), (3,)])
def test_cells_of_another_chapter_are_an_error(shown):
    with pytest.raises(notebooks.NotebookError, match="not the one that was executed"):
        notebooks.chapter_notebook(*page_of(*shown), "first")


# The first cell, and a machine that has the package only.


@pytest.mark.parametrize("installed", [True, False])
def test_first_cell_installs_where_the_package_is_missing(monkeypatch, installed):
    calls = []
    shell = types.SimpleNamespace(run_line_magic=lambda *call: calls.append(call))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if installed else None)
    exec(TransformerManager().transform_cell(sheets.install()), {"get_ipython": lambda: shell})
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
    assert {"myst_nb", "sphinx", "jupyter_book", "statsmodels"} <= hidden and not {"numpy", "sympy", "zmq"} & hidden
    place = tmp_path_factory.mktemp("package only")
    (place / "sitecustomize.py").write_text(
        "import sys\n\n\nclass Hidden:\n    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] in {sorted(hidden)!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "\n\nsys.meta_path.insert(0, Hidden())\n"
    )
    path = os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "TQDM_DISABLE": "1"}


def run(notebook, env, cwd):
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(cwd)}})
    return client.execute(env=env)


@pytest.mark.parametrize("name", ["explore.ipynb", "paper/01_votes.ipynb"])
def test_runs_where_only_the_package_is(folder, name, package_only, tmp_path):
    notebook = run(read(folder, name), package_only, tmp_path)
    pictures = [o for c in notebook.cells for o in c.get("outputs", []) if "image/svg+xml" in o.get("data", {})]
    assert len(pictures) >= 3
    assert not any(o.output_type == "stream" and o.name == "stderr" for c in notebook.cells for o in c.get("outputs", []))


def test_a_notebook_that_needs_the_tools_of_the_book_fails_there(package_only, tmp_path):
    cells = [nbformat.v4.new_code_cell("import softlabel"), nbformat.v4.new_code_cell("from myst_nb import glue")]
    with pytest.raises(CellExecutionError, match="No module named 'myst_nb'"):
        run(nbformat.v4.new_notebook(cells=cells), package_only, tmp_path)


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
    with urlopen(urljoin(f"{served}/{page}.html", found["all notebooks .zip"])) as answer:
        assert answer.status == 200 and answer.read(2) == b"PK"
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
    assert lines[2] in sheets.install() and Requirement(lines[2]).extras == {"book"}
    assert (folder / "binder" / "constraints.txt").read_bytes() == (ROOT / "requirements.txt").read_bytes()


def test_the_workflow_publishes_the_branch_and_the_version():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text("utf8"))["jobs"]
    uploads = [s["with"]["path"] for s in jobs["book"]["steps"] if "upload-artifact" in s.get("uses", "")]
    assert uploads == ["_build/html/notebooks"]
    script = "\n".join(step.get("run", "") for step in jobs["publish"]["steps"])
    assert f"refs/heads/{notebooks.BRANCH}\n" in script
    assert '"v$version"' in script and jobs["publish"]["permissions"]["contents"] == "write"


def test_other_pages_offer_no_notebook(site):
    for name in ("index", "notation", "verdicts"):
        page = site / "book" / f"{name}.html"
        assert not any(".ipynb" in href for href in buttons(page, "download-buttons").values())
        assert buttons(page, "launch-buttons") == {}


@pytest.fixture
def lab(folder, driver, tmp_path):
    """Address of a JupyterLab, with its token, in a folder of downloaded notebooks."""
    pytest.importorskip("jupyterlab", reason="needs JupyterLab (requirements.txt has it)")
    shutil.copy(folder / "explore.ipynb", tmp_path)
    # All cells are drawn, also those out of sight, so that the test can look at the last one.
    settings = tmp_path / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    places = {f"JUPYTER_{name}_DIR": str(tmp_path / name.lower()) for name in ("CONFIG", "RUNTIME")}
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--allow-root",
            "--ServerApp.port=0",
            "--IdentityProvider.token=a1b2",
            f"--ServerApp.root_dir={tmp_path}",
        ],
        env={**os.environ, **places, "JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            if found := list((tmp_path / "runtime").glob("jpserver-*.json")):
                break
            assert server.poll() is None, "JupyterLab ended"
            time.sleep(0.1)
        time.sleep(0.2)  # the file is written in one go, but after it was made
        yield json.loads(found[0].read_text())["url"]
        driver.get("about:blank")  # a page without its server would fill the console
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.slow
def test_a_chapter_runs_in_jupyterlab(lab, driver):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(driver, 60)

    def click(selector, text=""):
        def found(driver):
            return [e for e in driver.find_elements(By.CSS_SELECTOR, selector) if text in e.text and e.is_displayed()]

        wait.until(found)[0].click()

    driver.set_window_size(1400, 1000)
    driver.get(f"{lab}lab/tree/explore.ipynb?token=a1b2&reset")
    # The kernel is there.
    wait.until(lambda d: d.find_elements(By.CSS_SELECTOR, ".jp-Notebook-ExecutionIndicator[data-status='idle']"))
    last = "return [...document.querySelectorAll('.jp-CodeCell')].at(-1)"
    output = f"{last}.querySelector('.jp-OutputArea-output img, .jp-OutputArea-output svg')"
    assert driver.execute_script(output) is None, "an output before anything has run"
    click(".lm-MenuBar-itemLabel", "Run")
    click(".lm-Menu-itemLabel", "Run All Cells")
    picture = wait.until(lambda d: d.execute_script(output))
    wait.until(lambda d: picture.size["width"] > 300)
    # What was written for Markdown is shown as such.
    shown = driver.find_element(By.CSS_SELECTOR, ".jp-Notebook").text
    assert re.search(r"Figure \d+\.1\. The number", shown.replace("\n", " ")) and "**" not in shown and "](" not in shown
    wait.until(lambda d: d.find_elements(By.CSS_SELECTOR, ".jp-MarkdownCell mjx-container"))
    assert not driver.find_elements(By.CSS_SELECTOR, ".jp-MarkdownCell mjx-merror, .jp-RenderedText[data-mime-type*='stderr']")
