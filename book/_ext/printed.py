"""Sphinx extension: the book in print.

python book/_ext/printed.py     names what this machine lacks for it
"""

import shutil
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import number_reference

import publish

# Programs, and files that only LaTeX sees, with the package of each in Debian.
PROGRAMS = {
    "xelatex": "texlive-xetex",
    "latexmk": "latexmk",
    "xindy": "xindy",
    "rsvg-convert": "librsvg2-bin",
}
FILES = {
    "unicode-math.sty": "texlive-latex-recommended",
    "tabulary.sty": "texlive-latex-extra",
    "pzdr.tfm": "texlive-fonts-recommended",
    "latinmodern-math.otf": "fonts-lmodern",
    "FreeSerif.otf": "fonts-freefont-otf",
}
PREAMBLE = r"""
\PassOptionsToPackage{bold-style=ISO}{unicode-math}
\setcounter{tocdepth}{1}
% Code of 79 characters fits the line.
\fvset{fontsize=\footnotesize}
"""


def macro(name, value):
    r"""One macro of MathJax's configuration as LaTeX, bold letters as unicode-math has them.

    >>> macro("vect", [r"\boldsymbol{#1}", 1])
    '\\providecommand{\\vect}{}\\renewcommand{\\vect}[1]{\\symbf{#1}}'
    """
    body, count = value if isinstance(value, list) else (value, 0)
    body = body.replace(r"\boldsymbol", r"\symbf")
    arguments = f"[{count}]" if count else ""
    return f"\\providecommand{{\\{name}}}{{}}\\renewcommand{{\\{name}}}{arguments}{{{body}}}"


def set_latex(app, config):
    config.release = publish.version(Path(app.srcdir))
    config.latex_additional_files = ["book/_ext/latex/bbm.sty"]
    macros = config.mathjax3_config["tex"]["macros"]
    lines = "%\n".join(macro(name, value) for name, value in macros.items())
    config.latex_elements = {
        **config.latex_elements,
        "papersize": "a4paper",
        "pointsize": "10pt",
        "extraclassoptions": "openany,oneside",
        "figure_align": "H",  # in a box, as that of a solution, nothing can float
        "releasename": "Version",
        "preamble": PREAMBLE + f"\\AtBeginDocument{{{lines}}}\n",
    }


def name_document(app):
    """By the name of the book, which Jupyter Book alone would give it too late for `sphinx-build`."""
    app.config.latex_documents = [
        (app.config.root_doc, "harmless-label-noise.tex", app.config.html_title, app.config.author, app.config.latex_theme)
    ]


def number_within_chapters(app, *_):
    """Theorem 4.1, as on screen. Jupyter Book would have 4.4.1 in print.

    It is so again at the end, before the environment may be written: a setting that has changed would execute all pages anew.
    """
    app.config.numfig_secnum_depth = 1


def print_page(app, doctree, docname):
    if app.builder.name == "latex":
        # Figure 4.1, by LaTeX's own counters, to which a part is a level too. Sphinx has given its numbers by now.
        app.config.numfig_secnum_depth = 2
        fit_long_tables(doctree)
        number_exercises(app, doctree)


def fit_long_tables(doctree):
    """Columns as wide as their text asks for; LaTeX breaks no line in a long table."""
    for table in doctree.findall(nodes.table):
        group = next(table.findall(nodes.tgroup))
        rows = [row for row in group.findall(nodes.row) if len(row) == group["cols"]]  # not those of spanning heads
        columns = list(zip(*([len(entry.astext()) for entry in row] for row in rows)))
        if max(map(len, columns)) > 30:
            table["classes"].append("colwidths-given")
            for spec, lengths in zip(group.findall(nodes.colspec), columns):
                spec["colwidth"] = min(max(8, *lengths), 40)


def number_exercises(app, doctree):
    """References to exercises by their numbers; LaTeX does not count exercises."""
    numbers = {name: number for kinds in app.env.toc_fignumbers.values() for name, number in kinds.get("exercise", {}).items()}
    for node in list(doctree.findall(number_reference)):
        name = node.get("refid") or node["refuri"].partition("#")[2]
        if name in numbers:
            words = node["title"] % ".".join(map(str, numbers[name]))
            node.replace_self(nodes.raw("", rf"\hyperref[exercise:{name}]{{{words}}}", format="latex"))


def missing():
    """Debian packages without which the book cannot be printed."""
    lacking = [package for name, package in PROGRAMS.items() if not shutil.which(name)]
    if shutil.which("kpsewhich"):
        found = subprocess.run(["kpsewhich", *FILES], capture_output=True, text=True).stdout
        there = {Path(line).name for line in found.splitlines()}
        lacking += [package for name, package in FILES.items() if name not in there]
    else:
        lacking += FILES.values()
    return lacking


def main():
    if packages := missing():
        sys.exit(
            "The printed book is made by LaTeX, and this machine lacks a part of it."
            "\nOn Debian or Ubuntu:\n\n  apt-get install "
            + " ".join(packages)
            + "\n\nThe offline edition needs nothing of this: make site-zip."
        )


def setup(app):
    app.connect("config-inited", set_latex)
    app.connect("builder-inited", name_document)
    app.connect("builder-inited", number_within_chapters, priority=900)
    app.connect("doctree-resolved", print_page)
    app.connect("build-finished", number_within_chapters, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    main()
