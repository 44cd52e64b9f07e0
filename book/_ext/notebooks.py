"""Sphinx extension: each chapter as a notebook beside its page, and its exercises as another.

The text is that of the finished page, as Markdown that any notebook program shows; the code and its outputs are those of the
build. Notebooks, and what Binder needs, are in `notebooks/`; the workflow publishes that folder as the branch `notebooks`,
where Colab and Binder find it.
"""

import re
import shutil
import zipfile
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import nbformat
from bs4 import BeautifulSoup
from markdownify import MarkdownConverter

import publish
import verdicts
from softlabel.book import claims

BRANCH = "notebooks"
ARCHIVE = "harmless-label-noise-notebooks.zip"
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # in JupyterLab, and in Colab
MARK = re.compile(r"^@@(\w+) (\S+)$", re.M)  # where a code cell, a solution or an exercise stands in the text
LIVE = "Change a number in a cell and run those below it: tables and figures move. Numbers in sentences are the page's."


class Converter(MarkdownConverter):
    def convert_span(self, el, text, parent_tags):
        return self.formula(el, "$") if {"katex", "math"} & set(el.get("class", [])) else text

    def convert_div(self, el, text, parent_tags):
        if "math" in el.get("class", []):
            return f"\n\n{self.formula(el, '$$')}\n\n"
        return super().convert_div(el, text, parent_tags)

    def formula(self, el, fence):
        number = el.find(class_="eqno")
        tag = rf" \tag{{{number.extract().get_text().strip('()#')}}}" if number else ""
        source = el.find("annotation") or el  # as KaTeX keeps it, or as it was left to MathJax
        tex = re.sub(r"^\s*\\[(\[]|\\[)\]]\s*$", "", source.get_text())
        # In one line, for a line of its own that begins with ">" would be a quotation.
        return fence + " ".join(re.sub(r"(?<!\\)%.*", "", expand(tex, self.options["macros"])).split()) + tag + fence


def expand(tex, macros):
    """Formulas without the book's own macros.

    >>> expand(r"\\vect{y}\\T \\vect\\beta", {"vect": [r"\\mathbf{#1}", 1], "T": "^T"})
    '\\\\mathbf{y}^T \\\\mathbf{\\\\beta}'
    """
    for name, body in macros.items():
        if isinstance(body, str):
            tex = re.sub(rf"\\{name}(?![A-Za-z])", lambda m, body=body: body, tex)
        else:
            argument = r"(?:\{((?:[^{}]|\{[^{}]*\})*)\}|\s*(\\[A-Za-z]+|\w))"
            tex = re.sub(rf"\\{name}(?![A-Za-z]){argument}", lambda m, body=body: body[0].replace("#1", m[1] or m[2]), tex)
    return tex


def markdown(body, address, macros):
    """Text of a page in Markdown, code cells as marks `@@cell k`."""
    soup = BeautifulSoup(body, "html.parser")
    for junk in soup.select("a.headerlink, .box-tests, .roadmap, script, style, link, button"):
        junk.decompose()
    for words in soup.find_all(string=re.compile("\n")):
        if not words.find_parent(["pre", "script"]) and not words.find_parent(
            class_=["katex", "math"]
        ):  # elsewhere a line that begins with "1." would be a list
            words.replace_with(re.sub(r"\s*\n\s*", " ", words))
    for a in soup.select("a[href]"):
        a["href"] = urljoin(address, a["href"])
    for k, cell in enumerate(soup.select("div.cell")):
        captions = [paragraph(soup, *title.contents) for title in cell.select("figcaption > p, caption")]
        cell.replace_with(paragraph(soup, f"@@cell {k}"), *captions)
    for figure in soup.select("figure"):  # not of a cell
        figure.img["src"] = urljoin(address, figure.img["src"])
        figure.replace_with(paragraph(soup, figure.img.extract()), *[paragraph(soup, *p.contents) for p in figure.select("p")])
    for title in soup.select("table > caption"):
        title.find_parent("table").insert_before(paragraph(soup, *title.extract().contents))
    for number in soup.select(":not(.admonition-title) > .caption-number, .admonition-title"):
        number.name = "strong"
    for title in soup.select("div.admonition > strong"):
        title.wrap(soup.new_tag("p"))
    for box in soup.select("div.solution"):
        exercise = box.find_previous("div", class_="exercise")
        box.strong.parent.replace_with(paragraph(soup, f"@@solution {exercise['id']}"))
        box.append(paragraph(soup, "@@end ."))
    for box in soup.select("div.admonition:not(.solution)"):
        box.name = "blockquote"
    text = Converter(heading_style="ATX", bullets="-", code_language_callback=language, macros=macros).convert_soup(soup)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def paragraph(soup, *contents):
    tag = soup.new_tag("p")
    tag.extend(contents)
    return tag


def language(pre):
    name = next(c for c in pre.find_parent("div", class_=re.compile("^highlight-"))["class"] if c.startswith("highlight-"))
    return name.removeprefix("highlight-")


def chapter_notebook(text, executed, address, first):
    """The whole chapter, with the outputs of the build; solutions are folded."""
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    new, solves = [cell_of(first, "install")], ""
    for kind, value, said in pieces(text):
        words = said
        if kind == "cell":
            cell = code[int(value)]
            fold = solves or "hide-input" in cell.metadata.get("tags", [])
            # A folded cell shows its first line, which must not be the solution.
            source = f"# Solution of exercise {solves}\n{cell.source}" if solves else cell.source
            new.append(cell_of(source, f"code-{value}", FOLDED if fold else {}, [judged(o) for o in cell.outputs]))
        elif kind in ("solution", "end"):
            solves = value.removeprefix("ex-").replace("-", ".") if kind == "solution" else ""
        if words and solves:
            words = f"<details>\n<summary>Solution</summary>\n\n{words}\n\n</details>"
        elif words and kind == "start":
            heading, _, rest = words.partition("\n")
            words = f"{heading}\n\n*The page of this notebook: <{address}>. {LIVE}*\n{rest}"
        new += [nbformat.v4.new_markdown_cell(words, id=f"text-{len(new)}")] if words else []
    return notebook_of(new)


def exercise_notebook(text, executed, address, first):
    """The exercises, each with a cell that marks an answer, after the code of the chapter."""
    title = text.partition("\n")[0]
    before, _, section = re.split(r"(^## [\d.]*\s*Exercises$)", text, maxsplit=1, flags=re.M)
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    words = (
        f"{title}: exercises\n\nPut your answer in place of the dots and run the cell: it says whether the answer is right, "
        f"or what went wrong. Three digits of a number are enough. Solutions are in [the chapter]({address}). Its code comes "
        "first; run it once."
    )
    new = [cell_of(first, "install"), nbformat.v4.new_markdown_cell(words, id="title")]
    new += [cell_of(code[int(k)].source, f"code-{k}", FOLDED) for kind, k in MARK.findall(before) if kind == "cell"]
    solution = re.compile(r"^@@solution ex-(\w+)-(\w+)$.*?^@@end \.$", re.M | re.S)
    parts = solution.split(section)
    for words, chapter, name in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        new.append(nbformat.v4.new_markdown_cell(words.strip(), id=f"{chapter}-{name}"))
        new.append(cell_of(f'exercises.mark("{chapter}.{name}", ...)', f"{chapter}-{name}-answer"))
    return notebook_of(new)


def pieces(text):
    """Marks of a text, each with the words that follow it."""
    found = MARK.split(f"@@start .\n{text}")[1:]
    return [(kind, value, words.strip()) for kind, value, words in zip(found[::3], found[1::3], found[2::3], strict=True)]


def judged(output):
    """A table of verdicts as the ledger has it now."""
    ids = re.findall(r"\(`([\w.]+)`\) *\|", "".join(output.get("data", {}).get("text/markdown", "")))
    if ids and set(ids) <= set(claims.ledger()):
        now = claims.Checked(claims.judge(id, **FOUND.get(id, {})) for id in ids)
        output["data"]["text/markdown"] = now._repr_markdown_()
    return output


FOUND = {}  # what the chapters have recorded


def cell_of(source, name, metadata=(), outputs=()):
    # A fixed id, so that a notebook is the same every time.
    return nbformat.v4.new_code_cell(source, id=name, metadata=dict(metadata), outputs=list(outputs))


def notebook_of(cells):
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def install(config, root):
    """The first cell: the package as it was released, where it is not there yet, such as on Colab."""
    url = config.html_theme_options["repository_url"]
    return (
        "from importlib.util import find_spec\n\n"
        'if not find_spec("softlabel"):\n'
        f'    %pip install --quiet "softlabel[book] @ git+{url}@v{publish.version(root)}"'
    )


def write_notebooks(app, pagename, templatename, context, doctree):
    """Write the notebooks of a page, and buttons that lead to them."""
    executed = Path(app.outdir).parent / "jupyter_execute" / f"{pagename}.ipynb"
    if app.builder.name != "html" or not pagename.startswith("book/") or not executed.exists():
        return
    address = f"{app.config.html_baseurl}{pagename}.html"
    text = markdown(f"<h1>{context['title']}</h1>" if "<h1" not in context["body"] else context["body"], address,
                    app.config.mathjax3_config["tex"]["macros"])  # fmt: skip
    FOUND.update(verdicts.recorded(app.env))
    name = pagename.removeprefix("book/")
    made = {f"{name}.ipynb": chapter_notebook}
    if "@@solution" in text:
        made[f"{name}_exercises.ipynb"] = exercise_notebook
    for name, make in made.items():
        target = Path(app.outdir) / "notebooks" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(make(text, nbformat.read(executed, 4), address, install(app.config, Path(app.srcdir))), target)
    add_buttons(context, list(made), urlsplit(app.config.html_theme_options["repository_url"]).path)


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
    buttons = [link(url, name, f"Run on {name}", f"_static/images/{logo}") for name, url, logo in places]
    menu = {"type": "group", "tooltip": "Run this chapter elsewhere", "icon": "fas fa-rocket", "label": "launch-buttons"}
    groups.insert(0, {**menu, "buttons": buttons})


def finish(app, exception):
    """Pack the notebooks, and put beside them what Binder needs: the package, in the versions of the book."""
    folder, root = Path(app.outdir) / "notebooks", Path(app.srcdir)
    if exception or app.builder.name != "html":
        return
    with zipfile.ZipFile(folder / ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*.ipynb")):
            name = f"{Path(ARCHIVE).stem}/{path.relative_to(folder).as_posix()}"
            archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    binder = folder / "binder"
    binder.mkdir(exist_ok=True)
    package = re.search(r'"(.*)"$', install(app.config, root))[1]
    (binder / "requirements.txt").write_text(f"-c constraints.txt\njupyterlab\n{package}\n")
    (binder / "runtime.txt").write_text("python-3.11\n")
    shutil.copy(root / "requirements.txt", binder / "constraints.txt")


def setup(app):
    # After the theme, which makes the menus.
    app.connect("html-page-context", write_notebooks, priority=850)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
