"""Three marks on each theorem box: what became of its tests in this build.

`box_tests.yml` names the tests: symbolic, numeric, negative. They are run before
the pages are written, and again only when the package or the tests change.
"""

import ast
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import yaml
from docutils import nodes
from sphinx.util import logging

KINDS = ("symbolic", "numeric", "negative")
BOXES = ("theorem", "proposition", "lemma", "corollary")
SIGNS = {"passed": "✓", "failed": "✗", "not run": "–"}

logger = logging.getLogger(__name__)


def tests_by_box(root):
    """The tests behind each box, by label and kind, from `box_tests.yml`."""
    return yaml.safe_load((root / "book" / "_ext" / "box_tests.yml").read_text("utf8"))


def names_of(root):
    """All tests that stand behind some box."""
    boxes = tests_by_box(root).values()
    return sorted({t for kinds in boxes for tests in kinds.values() for t in tests})


def key(root, names):
    """Hash of all that the outcomes depend on."""
    digest = hashlib.sha256("\0".join(names).encode())
    for path in sorted(
        {
            root / "requirements.txt",
            root / "pyproject.toml",
            root / "tests" / "conftest.py",
            *(root / name.split("::")[0] for name in names),
            *(root / "softlabel").rglob("*.py"),
            *(root / "softlabel").rglob("*.yml"),
        }
    ):
        if path.exists():
            digest.update(f"{path.relative_to(root)}\0".encode())
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def outcomes(root):
    """Run the tests; map each to "passed", "failed" or "not run"."""
    names = names_of(root)
    kept, now = root / "_build" / "box_tests.json", key(root, names)
    if kept.exists() and (old := json.loads(kept.read_text("utf8")))["key"] == now:
        return old["tests"]
    found = run(root, names)
    # What did not run may run next time: only complete outcomes are kept.
    if "not run" not in found.values():
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps({"key": now, "tests": found}, indent=1) + "\n", "utf8")
    return found


def run(root, names):
    """Run tests by their names `tests/file.py::function`, all parameters."""
    # A name that is not there would keep pytest from running the others.
    there = [name for name in names if line_of(root / name.split("::")[0], name)]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "-o",
                "junit_family=xunit1",
                f"--junitxml={report}",
                *there,
            ],
            cwd=root,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        cases = ElementTree.parse(report).iter("testcase") if report.exists() else []
        seen = {}
        for case in cases:
            name = f"{case.get('file')}::{case.get('name').partition('[')[0]}"
            seen.setdefault(name, []).append(outcome(case))
    return {name: worst(seen.get(name, ["not run"])) for name in names}


def outcome(case):
    """The outcome of one test of a report in JUnit's form."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "not run" if case.find("skipped") is not None else "passed"


def worst(found):
    return next(o for o in ("failed", "not run", "passed") if o in found)


@cache
def functions(path):
    if not path.exists():
        return {}
    tree = ast.parse(path.read_text("utf8"))
    return {n.name: n.lineno for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


def line_of(path, name):
    """Line on which the test `...::function` begins, or None."""
    return functions(path).get(name.split("::")[1])


def repository(config):
    """Address of the folder of the repository in which the files stand."""
    options = config.html_theme_options
    return f"{options['repository_url']}/blob/{options['repository_branch']}"


def marks(root, config, label):
    """The line of marks under the title of the box."""
    line = nodes.paragraph(classes=["box-tests"])
    for kind in KINDS:
        tests = tests_by_box(root).get(label, {}).get(kind, [])
        found = worst([config.box_tests.get(t, "not run") for t in tests] or ["not run"])
        word = f"{SIGNS[found]} {kind}" + ("" if found == "passed" else f": {found}")
        css = ["box-test", found.replace(" ", "-")]
        if tests:
            path = tests[0].split("::")[0]
            at = line_of(root / path, tests[0])
            address = f"{repository(config)}/{path}" + (f"#L{at}" if at else "")
            names = ", ".join(t.split("::")[1] for t in tests)
            mark = nodes.reference("", word, refuri=address, classes=css, reftitle=names)
        else:
            mark = nodes.inline("", word, classes=css)
        line += [mark, nodes.Text(" ")]
        if found != "passed":
            logger.warning("%s: the %s test is %s", label, kind, found)
    line.pop()
    return line


def run_tests(app, config):
    """Before Sphinx compares configurations: other outcomes, other pages."""
    config.box_tests = outcomes(Path(app.srcdir))


def add_marks(app, doctree, docname):
    root = Path(app.srcdir)
    for box in list(doctree.findall(nodes.Admonition)):
        if box.get("realtype") in BOXES:
            box.insert(1, marks(root, app.config, box["label"]))


def setup(app):
    app.add_config_value("box_tests", {}, "env", types=frozenset({dict}))
    app.connect("config-inited", run_tests)
    app.connect("doctree-resolved", add_marks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
