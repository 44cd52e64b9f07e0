"""Sphinx extension: three marks on each theorem box, which lead to its tests.

`box_tests.yml` names the tests of a box: symbolic, numeric, negative. It is tested that each exists, and that each symbolic or
numeric one fails on a wrong formula.
"""

import ast
from functools import cache
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.util.logging import getLogger

KINDS = ("symbolic", "numeric", "negative")
BOXES = ("theorem", "proposition", "lemma", "corollary")


@cache
def tests_by_box(root):
    """The tests behind each box, by label and kind."""
    return yaml.safe_load((root / "book" / "_ext" / "box_tests.yml").read_text("utf8"))


@cache
def lines_of(path):
    """Line on which each function of a file begins."""
    tree = ast.parse(path.read_text("utf8"))
    return {n.name: n.lineno for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


def marks(root, config, label):
    """The line of marks under the title of the box."""
    options = config.html_theme_options
    line = nodes.paragraph(classes=["box-tests"])
    for kind in KINDS:
        tests = tests_by_box(root).get(label, {}).get(kind, [])
        if not tests:
            getLogger(__name__).warning("%s: no %s test is named in box_tests.yml", label, kind)
            continue
        path, _, function = tests[0].partition("::")
        address = f"{options['repository_url']}/blob/{options['repository_branch']}/{path}"
        at = f"#L{lines_of(root / path)[function]}"
        names = ", ".join(test.partition("::")[2] for test in tests)
        line += [nodes.reference("", kind, refuri=address + at, classes=["box-test"], reftitle=names), nodes.Text(" ")]
    return line


def add_marks(app, doctree, docname):
    for box in list(doctree.findall(nodes.Admonition)):
        if box.get("realtype") in BOXES:
            box.insert(1, marks(Path(app.srcdir), app.config, box["label"]))


def note_lines(app, config):
    """Where the tests stand; if that changes, pages are written anew."""
    root = Path(app.srcdir)
    names = sorted({name for kinds in tests_by_box(root).values() for tests in kinds.values() for name in tests})
    places = [(name, lines_of(root / name.partition("::")[0])[name.partition("::")[2]]) for name in names]
    config.box_tests = repr((places, tests_by_box(root)))


def setup(app):
    app.add_config_value("box_tests", "", "html", [str])
    app.connect("config-inited", note_lines)
    app.connect("doctree-resolved", add_marks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
