"""Build the slides of one lecture, from the figures and tables of the chapters that the build of the book has executed.

    python teaching/slides.py [FOLDER]     FOLDER/index.html (_build/slides)

In `slides/lecture.md` a picture `![](PAGE.md#NAME)` is the figure or the table NAME of that chapter, and `{eval}` stands
before an expression in the names of the lecture's own cells. What a browser needs comes along: no network is needed.
"""

import ast
import importlib.util
import re
import shutil
import sys
from pathlib import Path

import jupytext
import nbclient
import nbformat
import yaml
from nbconvert import SlidesExporter

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "teaching" / "slides"
SHOWN = re.compile(r"!\[\]\(([^)#]+)\.md#([\w-]+)\)")
EVAL = re.compile(r"\{eval\}`([^`]+)`")


def executed(page):
    """A page of the book as the build has executed it."""
    return nbformat.read(ROOT / "_build" / "jupyter_execute" / "book" / f"{page}.ipynb", as_version=4)


def show(notebook, name, target):
    """A figure, as a file in the folder of the slides, or a table of an executed chapter, as Markdown."""
    for cell in notebook.cells:
        options = cell.metadata.get("mystnb", {})
        for output in cell.get("outputs", []) if options.get("figure", {}).get("name") == name else []:
            if "text/markdown" in output.get("data", {}):
                return f"\n{output.data['text/markdown']}\n"
            if "image/svg+xml" in output.get("data", {}):
                (target / f"{name}.svg").write_text(output.data["image/svg+xml"], encoding="utf8")
                return f'<img src="{name}.svg" alt="{" ".join(options["image"]["alt"].split())}">'
    raise KeyError(f"no cell shows a figure or a table of the name {name}")


def run(lecture):
    """Run the cells, then put the values of the expressions into the text."""
    text = [cell for cell in lecture.cells if cell.cell_type == "markdown"]
    expressions = [found for cell in text for found in EVAL.findall(cell.source)]
    lecture.cells.append(nbformat.v4.new_code_cell(f"[{', '.join(expressions)}]"))
    nbclient.execute(lecture)
    values = iter(ast.literal_eval(lecture.cells.pop().outputs[0].data["text/plain"]))
    for cell in text:
        cell.source = EVAL.sub(lambda _: next(values), cell.source)


def build(target, executed=executed):
    """Write the slides; `executed` gives the notebook of a page of the book."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    lecture = jupytext.read(HERE / "lecture.md", fmt="md:myst")
    run(lecture)
    for cell in lecture.cells:
        if cell.cell_type == "markdown":
            cell.source = SHOWN.sub(lambda match: show(executed(match[1]), match[2], target), cell.source)
            if cell.source.startswith("#"):
                cell.metadata["slideshow"] = {"slide_type": "slide"}
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))
    lecture.metadata["macros"] = config["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]
    exporter = SlidesExporter(template_name="template", extra_template_basedirs=[str(HERE)])
    page, _ = exporter.from_notebook_node(lecture)
    (target / "index.html").write_text(page, encoding="utf8")
    shutil.copy(HERE / "slides.css", target)
    # Both are installed for these files alone, and one has a name that cannot be imported.
    mathjax, reveal = (
        Path(importlib.util.find_spec(name).origin).parent for name in ("sphinx-mathjax-offline", "sphinx_revealjs")
    )
    shutil.copy(mathjax / "static" / "mathjax" / "tex-svg-full.js", target)
    reveal = reveal / "_static" / "revealjs"
    for name in ("LICENSE", "dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js"):
        (target / "reveal" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(reveal / name, target / "reveal" / name)


def main():
    target = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "_build" / "slides"
    build(target)
    site = ROOT / "_build" / "html"
    if len(sys.argv) == 1 and site.exists():  # the lecturer's page links to them
        shutil.copytree(target, site / "slides", dirs_exist_ok=True)
    print(f"The slides: {target / 'index.html'}")


if __name__ == "__main__":
    main()
