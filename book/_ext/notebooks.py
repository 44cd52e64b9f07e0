"""The chapters as notebooks: a Sphinx extension that writes them beside the pages, and a command that runs them all.

    python book/_ext/notebooks.py     runs the notebooks of the built site, exercises with their solutions

The text is that of the finished page, in which numbers, references and boxes are resolved, as Markdown that any notebook
program shows. The code is that of the cells that the build has executed. What the page holds and a notebook cannot show is an
error of the build. Notebooks, and what Binder needs, are in `notebooks/`; the workflow publishes that folder as the branch
`notebooks`, where Colab and Binder find it.
"""

import functools
import re
import shutil
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import nbclient
import nbformat
from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.errors import SphinxError
from sphinx_exercise.nodes import solution_node

import chapters
import sheets

BRANCH = "notebooks"
ARCHIVE = "harmless-label-noise-notebooks.zip"
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
# Folded in JupyterLab, and in Colab.
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}


class NotebookError(SphinxError):
    category = "A chapter cannot be made a notebook"


class Text:
    """Markdown of the nodes of a page; a method for each kind of node.

    Parameters
    ----------
    address : str
        Address of the page, to which its links are relative.
    macros : dict
        The TeX macros of the book.
    numbers : dict
        Numbers of the page's figures, tables, equations and boxes: by kind, then by id.
    chapter : str
        Number of the chapter, if it has one.
    """

    def __init__(self, address, macros, numbers, chapter=""):
        self.address, self.macros, self.numbers, self.chapter = address, macros, numbers, chapter

    def of(self, node):
        for kind in type(node).__mro__:
            if method := getattr(self, f"as_{kind.__name__}", None):
                return method(node)
        raise NotebookError(f"{self.address}: no Markdown for {type(node).__name__}: {node.astext()[:60]!r}")

    def inline(self, node):
        return "".join(map(self.of, node.children))

    def blocks(self, node):
        return "\n\n".join(filter(None, map(self.of, node.children)))

    def number(self, kind, node):
        found = [self.numbers[kind][i] for i in node["ids"] if i in self.numbers.get(kind, {})]
        return ".".join(map(str, found[0])) if found else ""

    # Within a line

    def as_Text(self, node):
        text = re.sub(r"([\\`*_\[\]<$])", r"\\\1", node.astext())
        return re.sub(r"\s*\n\s*", " ", text)

    def as_math(self, node):
        return f"${self.tex(node)}$"

    def tex(self, node):
        return sheets.expand(" ".join(re.sub(r"(?<!\\)%.*", "", node.astext()).split()), self.macros)

    def as_literal(self, node):
        text = node.astext()
        return f"`` {text} ``" if "`" in text else f"`{text}`"

    def as_emphasis(self, node):
        return f"*{self.inline(node)}*"

    def as_strong(self, node):
        return f"**{self.inline(node)}**"

    def as_inline(self, node):
        return f"*{self.inline(node)}*" if "proof-word" in node["classes"] else self.inline(node)

    def as_reference(self, node):
        """Within the page its number or title is enough; elsewhere it leads to the site."""
        if "refuri" not in node:
            return self.inline(node)
        return f"[{self.inline(node)}]({urljoin(self.address, node['refuri'])})"

    as_number_reference = as_reference

    # Blocks

    def as_paragraph(self, node):
        # The marks of a theorem tell what the build of the page tested.
        return "" if "box-tests" in node["classes"] else re.sub(r"^(\d+)([.)] )", r"\1\\\2", self.inline(node))

    def as_math_block(self, node):
        tex = self.tex(node)
        if node["nowrap"]:
            return tex
        if r"\\" in tex:
            tex = rf"\begin{{split}}{tex}\end{{split}}"
        number = self.number("displaymath", node)
        # In one line, for a line of its own that begins with ">" would have it in the formula.
        return f"$${tex} \\tag{{{number}}}$$" if number else f"$${tex}$$"

    def as_literal_block(self, node):
        return f"```{node.get('language', '')}\n{node.astext()}\n```"

    def as_bullet_list(self, node):
        return self.list(node, lambda k: "- ")

    def as_enumerated_list(self, node):
        return self.list(node, lambda k: f"{node.get('start', 1) + k}. ")

    def list(self, node, mark):
        items = []
        for k, item in enumerate(node.children):
            lines = self.blocks(item).replace("\n", "\n" + " " * len(mark(k)))
            items.append(mark(k) + lines)
        return re.sub(r"[ ]+$", "", "\n".join(items), flags=re.M)

    def as_definition_list(self, node):
        return "\n".join(
            f"- **{self.inline(item.children[0])}**: {self.blocks(item.children[-1])}".replace("\n", "\n  ")
            for item in node.children
        )

    def as_block_quote(self, node):
        return self.quoted(self.blocks(node))

    def quoted(self, text):
        return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))

    def as_table(self, node):
        title, group = node.children if isinstance(node.children[0], nodes.title) else (None, node.children[0])
        rows = [[re.sub(r"\s*\n\s*", "<br>", self.cell(entry)) for entry in row.children] for row in group.findall(nodes.row)]
        right = ["text-right" in entry["classes"] for entry in next(group.findall(nodes.row)).children]
        rows.insert(1, ["---:" if r else "---" for r in right])
        text = "\n".join("| " + " | ".join(row) + " |" for row in rows)
        return f"{self.caption('table', node, title)}\n\n{text}" if title else text

    def cell(self, entry):
        """A bar would end the cell."""
        for part in list(entry.findall(nodes.Text)):
            bars = (r"\Vert ", r"\vert ") if isinstance(part.parent, nodes.math) else (r"\|", "&#124;")
            part.parent.replace(part, nodes.Text(part.replace(r"\|", bars[0]).replace("|", bars[1])))
        return self.blocks(entry)

    def caption(self, kind, node, title):
        return f"**{kind.capitalize()} {self.number(kind, node)}.** {self.inline(title)}"

    def as_figure(self, node):
        """The caption; the picture is drawn by the cell above."""
        return self.caption("figure", node, next(node.findall(nodes.caption)))

    def as_Admonition(self, node):
        """A box: its name, number and title, then what it says."""
        kind = node.get("realtype") or node.get("type") or ""
        number = self.number(node.get("countertype") or kind, node)
        title, body = "", node.children
        if isinstance(body[0], nodes.title):
            title, body = self.inline(body[0]), body[1:]
        name = f"{kind.capitalize()} {number}{' ' if number else ''}{title.strip()}".strip()
        head = [f"**{name}.**"] if name else []
        return self.quoted("\n\n".join(filter(None, [*head, *map(self.of, body)])))

    def as_section(self, node):
        """Within a box; the sections of the page are taken apart by `parts`."""
        return self.blocks(node)

    as_proof_node = as_section

    def as_target(self, node):
        return ""

    as_comment = as_index = as_target

    def as_raw(self, node):
        """Scripts and styles are for the site; anything else would be missed."""
        soup = BeautifulSoup(node.astext(), "html.parser")
        for tag in soup(["script", "link", "style"]):
            tag.decompose()
        if soup.get_text(strip=True) or soup.find(True):
            raise NotebookError(f"{self.address}: a notebook cannot show {node.astext()[:60]!r}")
        return ""


def parts(node, text, level=0):
    """What a page is made of, in order: texts, and for a code cell its number among the cells and what it solves."""
    for child in node.children:
        if isinstance(child, nodes.section):
            yield from parts(child, text, level + 1)
        elif isinstance(child, nodes.title):
            number = f"{text.chapter}. " if level == 1 and text.chapter else ""
            yield f"{'#' * level} {number}{text.inline(child)}"
        elif isinstance(child, solution_node):
            yield from solution(child, text)
        elif isinstance(child, nodes.container):
            if "cell_index" in child:
                yield child["cell_index"], ""
                yield from map(text.of, child.findall(nodes.figure))
            else:
                yield from parts(child, text, level)
        elif block := text.of(child):
            yield block


def solution(node, text):
    """Folded: the words one by one between the cells, the code by its own fold."""
    name = f"Solution of exercise {'.'.join(map(str, text.numbers['exercise'][node['target_label']]))}"
    summary = name
    for is_text, group in grouped(parts(node.children[-1], text)):
        if is_text:
            yield f"<details>\n<summary>{summary}</summary>\n\n" + "\n\n".join(group) + "\n\n</details>"
            summary = f"{name}, continued"
        else:
            yield from ((index, name) for index, _ in group)


def grouped(found):
    """Texts that follow each other, a heading first, and the code cells in between, each as a list."""
    group = []
    for part in found:
        is_text = isinstance(part, str)
        if group and (is_text != isinstance(group[-1], str) or (is_text and part.startswith("#"))):
            yield isinstance(group[-1], str), group
            group = []
        group.append(part)
    if group:
        yield isinstance(group[-1], str), group


def chapter_notebook(doctree, executed, text, first):
    """Make the notebook of a chapter.

    Parameters
    ----------
    doctree : document
        The page, resolved.
    executed : NotebookNode
        The chapter as the build has executed it.
    text : Text
        How to write the page's nodes.
    first : str
        Source of the first cell.

    Raises
    ------
    NotebookError
        If the page holds what a notebook cannot show, or other code than was executed.
    """
    code = {k: cell for k, cell in enumerate(executed.cells) if cell.cell_type == "code"}
    cells, waiting = [("code", "install", first)], list(code)

    def take(index, solves=""):
        cell = code[index]
        fold = solves or HIDDEN & set(cell.metadata.get("tags", []))
        # A folded cell shows its first line, which must not be the solution.
        source = f"# {solves}\n{cell.source}" if solves else cell.source
        cells.append(("code", f"code-{index}", source, FOLDED if fold else {}))

    for is_text, group in grouped(parts(doctree, text)):
        if is_text:
            cells.append(("markdown", f"text-{len(cells)}", "\n\n".join(group)))
            continue
        for index, solves in group:
            # Cells that the page does not show stand before the next one that it does.
            while waiting and waiting[0] < index:
                take(waiting.pop(0))
            if not waiting or waiting.pop(0) != index:
                raise NotebookError(f"{text.address}: cell {index} of the page is not the one that was executed")
            take(index, solves)
    for index in waiting:
        take(index)
    title = next(k for k, cell in enumerate(cells) if cell[0] == "markdown")
    kind, name, source = cells[title]
    cells[title] = kind, name, f"{source}\n\n*The page of this notebook, with its figures: <{text.address}>.*"
    return sheets.assemble(cells)


# In the build of the site


@functools.cache
def notebooks_of(root):
    """Files of the notebooks that a page has: the chapter, and its exercises if there are some."""
    with_sheet = sheets.sources(root)
    found = {}
    for path in chapters.chapters(root):
        page = path.relative_to(root).with_suffix("").as_posix()
        name = f"{page.removeprefix('book/')}.ipynb"
        sheet = [str(Path(name).with_name(sheets.notebook_name(path)))] if path in with_sheet else []
        found[page] = [name, *sheet]
    return found


def write_notebooks(app, pagename, templatename, context, doctree):
    """Write the notebooks of a page, and buttons that lead to them."""
    root = Path(app.srcdir)
    names = notebooks_of(root).get(pagename)
    if app.builder.name != "html" or not names:
        return
    path = root / f"{pagename}.md"
    chapter = ".".join(map(str, app.env.toc_secnumbers.get(pagename, {}).get("", ())))
    address = f"{app.config.html_baseurl}{pagename}.html"
    text = Text(address, sheets.macros(root), app.env.toc_fignumbers.get(pagename, {}), chapter)
    made = [chapter_notebook(doctree.deepcopy(), chapters.executed(path, root), text, sheets.install(root))]
    made += [sheets.exercise_notebook(path, root)] * (len(names) - 1)
    for name, notebook in zip(names, made):
        target = Path(app.outdir) / "notebooks" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, target)
    add_buttons(context, names, urlsplit(app.config.html_theme_options["repository_url"]).path)


def add_buttons(context, names, repository):
    """First in the menu of downloads, and a menu of places where the notebook runs."""

    def link(url, text, tooltip, icon):
        return {"type": "link", "url": url, "text": text, "tooltip": tooltip, "icon": icon}

    labels = [(".ipynb", "Download this chapter as a notebook"), ("exercises .ipynb", "Download its exercises as a notebook")]
    downloads = [link(context["pathto"](f"notebooks/{name}", 1), *label, "fas fa-code") for name, label in zip(names, labels)]
    archive = context["pathto"](f"notebooks/{ARCHIVE}", 1)
    downloads.append(link(archive, "all notebooks .zip", "Download the notebooks of all chapters", "fas fa-file-archive"))
    groups = context["header_buttons"]
    next(group for group in groups if group.get("label") == "download-buttons")["buttons"][:0] = downloads
    places = [
        ("Colab", f"https://colab.research.google.com/github{repository}/blob/{BRANCH}/{names[0]}", "logo_colab.png"),
        ("Binder", f"https://mybinder.org/v2/gh{repository}/{BRANCH}?urlpath=lab/tree/{names[0]}", "logo_binder.svg"),
    ]
    groups.insert(0, {
        "type": "group",
        "tooltip": "Run this chapter elsewhere",
        "icon": "fas fa-rocket",
        "label": "launch-buttons",
        "buttons": [link(url, name, f"Run on {name}", f"_static/images/{logo}") for name, url, logo in places],
    })  # fmt: skip


def finish(app, exception):
    """Pack the notebooks, and put beside them what Binder needs: the package, in the versions of the book."""
    folder = Path(app.outdir) / "notebooks"
    if exception or app.builder.name != "html":
        return
    root = Path(app.srcdir)
    names = [name for names in notebooks_of(root).values() for name in names]
    with zipfile.ZipFile(folder / ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(names):
            archive.write(folder / name, f"{Path(ARCHIVE).stem}/{name}")
    binder = folder / "binder"
    binder.mkdir(exist_ok=True)
    package = re.search(r'"(.*)"$', sheets.install(root))[1]
    (binder / "requirements.txt").write_text(f"-c constraints.txt\njupyterlab\n{package}\n")
    (binder / "runtime.txt").write_text("python-3.11\n")
    shutil.copy(root / "requirements.txt", binder / "constraints.txt")


def setup(app):
    # After the theme, which makes the menus.
    app.connect("html-page-context", write_notebooks, priority=850)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# A reader's run


def problem_of(name, sheet, folder):
    """Run a notebook as a reader would who has downloaded it; what went wrong, or nothing."""
    notebook = nbformat.read(folder / name, as_version=4)
    if sheet:
        sheets.solve(notebook, sheet)
    with tempfile.TemporaryDirectory() as downloads:
        try:
            nbclient.execute(notebook, cwd=downloads, timeout=600)
        except nbclient.exceptions.CellExecutionError as error:
            return f"{error.ename}: {error.evalue}"
    answers = sheets.said(notebook) if sheet else []
    return "" if all(answer == "Right." for answer in answers) else f"the solutions are said to be {answers}"


def main(root=sheets.ROOT):
    folder, failed = root / "_build" / "html" / "notebooks", 0
    for page, names in notebooks_of(root).items():
        for name, sheet in zip(names, (None, root / f"{page}.md")):
            start = time.perf_counter()
            problem = problem_of(name, sheet, folder)
            print(f"{name}: {time.perf_counter() - start:.0f} s {problem}".rstrip(), flush=True)
            failed += bool(problem)
    if failed:
        sys.exit(f"{failed} notebooks failed")


if __name__ == "__main__":
    main()
