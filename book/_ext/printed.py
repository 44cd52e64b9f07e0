"""Sphinx extension: the book in print.

    python book/_ext/printed.py     names what this machine lacks for it
"""

import shutil
import subprocess
import sys
from pathlib import Path

from docutils import nodes

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
        "releasename": "Version",
        "preamble": PREAMBLE + f"\\AtBeginDocument{{{lines}}}\n",
    }


def number_within_chapters(app):
    """Theorem 4.1, as on screen. Jupyter Book would have 4.4.1 in print."""
    app.config.numfig_secnum_depth = 1


def count_within_chapters(app, env):
    """Figure 4.1, by LaTeX's own counters, to which a part is a level too."""
    if app.builder.name == "latex":
        app.config.numfig_secnum_depth = 2


def fit_long_tables(app, doctree, docname):
    """Columns as wide as their text asks for; LaTeX breaks no line in a long table."""
    if app.builder.name != "latex":
        return
    for table in doctree.findall(nodes.table):
        group = next(table.findall(nodes.tgroup))
        columns = list(zip(*([len(entry.astext()) for entry in row.children] for row in group.findall(nodes.row))))
        if max(map(len, columns)) > 30:
            table["classes"].append("colwidths-given")
            for spec, lengths in zip(group.findall(nodes.colspec), columns):
                spec["colwidth"] = min(max(8, *lengths), 40)


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
    app.connect("builder-inited", number_within_chapters, priority=900)
    app.connect("doctree-resolved", fit_long_tables)
    app.connect("env-check-consistency", count_within_chapters)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    main()
