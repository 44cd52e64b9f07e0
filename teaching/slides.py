"""Build the slides of one lecture, from the figures and numbers of the chapters.

    python teaching/slides.py [FOLDER]     FOLDER/index.html (_build/slides)

In `slides/lecture.md` a picture `![](PAGE.md#NAME)` is the figure NAME of that
chapter, `{glue:text}`PAGE.md::KEY`` a number and `{glue:md}`PAGE.md::KEY`` a table
that the chapter glued. Chapters that are not in the cache are executed first.
What a browser needs comes along: the folder works without a network.
"""

import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path

import jupytext
import nbclient
import yaml
from nbconvert import SlidesExporter

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "teaching" / "slides"
PASTED = re.compile(r"\{glue:(text|md)\}`([^`:]+\.md)::([^`]+)`")
PICTURE = re.compile(r"!\[\]\(([^)#]+\.md)#([\w-]+)\)")


def outputs_of(notebook):
    """Data and metadata of each output of an executed chapter."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            yield cell, output.get("data", {}), output.get("metadata", {})


def glued(notebook, key):
    """What a chapter glued under a key, as Markdown."""
    for _, data, metadata in outputs_of(notebook):
        scrap = metadata.get("scrapbook", {})
        if scrap.get("name") == key:
            return data[f"{scrap['mime_prefix']}text/markdown"]
    raise KeyError(f"nothing is glued as {key}")


def figure(notebook, name):
    """A chapter's figure as SVG, and its alternative text."""
    for cell, data, _ in outputs_of(notebook):
        options = cell.metadata.get("mystnb", {})
        if options.get("figure", {}).get("name") == name and "image/svg+xml" in data:
            return data["image/svg+xml"], options["image"]["alt"]
    raise KeyError(f"no figure is named {name}")


def fill(text, executed, target):
    """Put figures and numbers into the Markdown of a slide."""

    def draw(match):
        page, name = match.groups()
        svg, alt = figure(executed(page), name)
        (target / f"{name}.svg").write_text(svg, encoding="utf8")
        return f'<img src="{name}.svg" alt="{" ".join(alt.split())}">'

    def paste(match):
        kind, page, key = match.groups()
        value = glued(executed(page), key)
        return f"\n{value}\n" if kind == "md" else value

    return PASTED.sub(paste, PICTURE.sub(draw, text))


def build(target, executed):
    """Write the slides; `executed` gives the notebook of a page of the book."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    lecture = jupytext.read(HERE / "lecture.md", fmt="md:myst")
    for cell in lecture.cells:
        if cell.cell_type == "markdown":
            cell.source = fill(cell.source, executed, target)
            if cell.source.startswith("#"):
                cell.metadata["slideshow"] = {"slide_type": "slide"}
    nbclient.execute(lecture)
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
    sys.path.insert(0, str(ROOT / "book" / "_ext"))
    os.chdir(ROOT)
    import chapters

    target = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "_build" / "slides"
    chapters.execute(report=print)
    build(target, lambda page: chapters.executed(ROOT / "book" / page))
    site = ROOT / "_build" / "html"
    if len(sys.argv) == 1 and site.exists():  # the lecturer's page links to them
        shutil.copytree(target, site / "slides", dirs_exist_ok=True)
    print(f"The slides: {target / 'index.html'}")


if __name__ == "__main__":
    main()
