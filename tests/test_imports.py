"""The house keeps its plan: who imports whom, what comes with `import softlabel`, and how long a module may be."""

import ast
import importlib
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from itertools import chain

import pytest
from conftest import ROOT

from softlabel import VoteReport, datasets

PACKAGE = ROOT / "softlabel"
STATISTICS = {"validation", "threads", "fits", "vote_models", "normal", "separation", "logistic", "patient"}
STATISTICS |= {"overdispersion", "joint", "efficiency"}
MAY_IMPORT = {  # beside themselves; `labellers`, `report` and `book` stand for all modules of the room
    "frames": set(),
    "validation": {"frames"},
    "threads": set(),
    "profiles": {"validation", "separation"},
    "fits": {"validation", "separation", "profiles"},
    "vote_models": {"validation"},
    "normal": {"validation"},
    "separation": {"validation"},
    "logistic": {"validation", "threads", "profiles", "fits", "separation"},
    "patient": {"logistic", "fits"},
    "overdispersion": {"validation", "separation", "vote_models", "patient"},
    "joint": {"validation", "fits", "separation", "vote_models", "logistic", "patient", "overdispersion"},
    "efficiency": {"validation", "normal", "vote_models", "logistic"},
    "budget": {"validation", "efficiency"},
    "datasets": {"validation"},
    "tables": {"validation"},
    "experiments": STATISTICS | {"datasets"},
    "two_way": {"validation", "fits", "tables"},
    "belief": {"validation", "two_way"},
    "worth": STATISTICS | {"belief", "two_way"},
    "labellers": {"validation", "tables"},
    "classifier": STATISTICS | {"worth"},
}
MAY_IMPORT["report"] = MAY_IMPORT["book"] = set(MAY_IMPORT)
MAY_IMPORT["__init__"] = {*MAY_IMPORT, "report"} - {"book"}
MAY_IMPORT["__main__"] = {"report"}
LONGEST = 270  # lines of code, in a format that gives long calls a line for each argument; about 250 is meant


def modules(package):
    """Source of each module by its name without `softlabel.`; a folder's own is `folder.__init__`."""
    paths = sorted(package.rglob("*.py"))
    return {".".join(path.relative_to(package).with_suffix("").parts): path.read_text("utf8") for path in paths}


def target(name, names):
    """The module that a dotted name (without `softlabel.`) lies in."""
    parts = name.split(".") if name else []
    for k in range(len(parts), -1, -1):
        for module in (".".join(parts[:k]), ".".join([*parts[:k], "__init__"])):
            if module in names:
                return module
    return None


def imports(source, names):
    """Modules of the package that a module imports, anywhere in it, and the private names that it reaches for."""
    found, private, bound = set(), set(), {}
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            dotted = [(alias.name, alias.asname or alias.name.split(".")[0]) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports within the package are absolute"
            dotted = [(f"{node.module}.{alias.name}", alias.asname or alias.name) for alias in node.names]
        else:
            continue
        for name, local in dotted:
            if name.split(".")[0] == "softlabel":
                inner = name.partition(".")[2]
                module = target(inner, names)
                found.add(module)
                if inner == module.removesuffix(".__init__"):
                    bound[local] = module
                elif inner.rpartition(".")[2].startswith("_"):
                    private.add(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr):
            owner = bound.get(ast.unparse(node.value))
            private |= {f"{owner}.{node.attr}"} if owner else set()
    return found, private


def at_run_time(source):
    """The source without what only type checkers read."""

    class Run(ast.NodeTransformer):
        def visit_If(self, node):
            return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)

    return ast.unparse(Run().visit(ast.parse(source)))


def code_lines(source):
    """Lines that hold code: neither blank, nor a comment, nor a docstring."""
    nothing = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in nothing:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def circles(arrows):
    """Modules from which the arrows lead back to themselves."""

    def reached(start):
        seen, waiting = set(), [start]
        while waiting:
            waiting += (more := arrows[waiting.pop()] - seen)
            seen |= more
        return seen

    return {module for module in arrows if module in reached(module)}


def faults(package):
    """All that breaks the plan, in words."""
    sources = modules(package)
    found, arrows = [], {}
    for name, source in sources.items():
        room = name.split(".")[0]
        targets, private = imports(source, sources)
        targets -= {name}
        arrows[name] = imports(at_run_time(source), sources)[0] - {name}
        if room not in MAY_IMPORT:
            found.append(f"{name} has no place in the plan")
        else:
            wrong = {other for other in targets if other.split(".")[0] not in MAY_IMPORT[room] | {room}}
            found += [f"{name} imports {other}" for other in sorted(wrong)]
        found += [f"{name} reaches for {thing}" for thing in sorted(private)]
        if (length := code_lines(source)) > LONGEST:
            found.append(f"{name} has {length} lines of code")
        if room != "book" and "claims.yml" in source:
            found.append(f"{name} knows the ledger")
    return found + [f"{name} imports itself, by others" for name in sorted(circles(arrows))]


def test_the_plan_holds():
    assert faults(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "source", "fault"),
    [
        ("separation.py", "from softlabel.logistic import fit_logistic", "separation imports logistic"),
        ("separation.py", "def f():\n    import softlabel.logistic", "separation imports logistic"),
        ("logistic.py", "from softlabel.book import claims", "logistic imports book.claims"),
        ("logistic.py", "from softlabel import fit_logistic", "logistic imports __init__"),
        ("book/claims.py", "from softlabel.report import analysis", "book.claims imports report.analysis"),
        ("report/page.py", "from softlabel.separation import _help", "report.page reaches for softlabel.separation._help"),
        ("report/page.py", "from softlabel import separation as s\ns._help()", "report.page reaches for separation._help"),
        ("report/page.py", "from softlabel.report.analysis import x", "report.page imports itself, by others"),
        ("tables.py", "if TYPE_CHECKING:\n    from softlabel.report import page", "tables imports report.page"),
        ("tables.py", "open('claims.yml')", "tables knows the ledger"),
        ("helpers.py", "", "helpers has no place in the plan"),
        ("tables.py", "x = 1\n" * (LONGEST - 1), f"tables has {LONGEST + 1} lines of code"),
        ("tables.py", "x = '''\n" + "text\n" * (LONGEST - 3) + "'''", f"tables has {LONGEST + 1} lines of code"),
    ],
)
def test_a_fault_is_found(tmp_path, file, source, fault):
    house = {
        "__init__": "from softlabel.logistic import fit_logistic",
        "validation": "",
        "separation": "from softlabel.validation import Array\ndef _help(): pass",
        "logistic": '"""Long text."""\n# and comments\n\n' * 300 + "from softlabel.separation import find\n",
        "tables": "from softlabel import validation\nvalidation.__name__",
        "report/__init__": "from softlabel.report.analysis import report",
        "report/analysis": "def f():\n    from softlabel.report import page",
        "report/page": "from softlabel.logistic import fit\nif TYPE_CHECKING:\n    from softlabel.report.analysis import x",
        "book/__init__": "",
        "book/claims": "import softlabel.logistic\nopen('claims.yml')",
    }
    for name, text in house.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    assert faults(tmp_path) == []
    path = tmp_path / file
    path.write_text((path.read_text() if path.exists() else "") + f"\n{source}\n")
    assert fault in faults(tmp_path)


# ------------------------------------------------------------------ other libraries

LATER = set("sklearn statsmodels matplotlib joblib pooch tqdm yaml rdata tabulate distributed numba crowdkit".split())


def test_the_package_imports_only_what_its_statistics_need():
    """And a library that is imported after it is seen."""
    tell = "print(*{name.split('.')[0] for name in sys.modules})"
    code = f"import sys, softlabel; {tell}; import joblib; {tell}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [set(line.split()) & LATER for line in done.stdout.splitlines()] == [set(), {"joblib"}]


def import_anew(module):
    """What imports a module although it is loaded, and leaves the loaded one in its place."""

    def call():
        before = sys.modules.pop(module, None)
        try:
            importlib.import_module(module)
        finally:
            sys.modules.pop(module, None)
            if before:
                sys.modules[module] = before

    return call


EMPTY_REPORT = object.__new__(VoteReport)  # it asks for matplotlib before it looks at itself
DISTRIBUTION = {"sklearn": "scikit-learn", "yaml": "PyYAML", "crowdkit": "crowd-kit"}


def foreign(source):
    """Distributions that a module imports, and those that it asks for by `optional`, each with the extra it names."""
    found, asked = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "optional":
            asked.add(tuple(argument.value for argument in node.args[:2]))
    found = {name.split(".")[0] for name in found} - set(sys.stdlib_module_names) - {"softlabel"}
    asked = {(name.split(".")[0], extra) for name, extra in asked}
    return {DISTRIBUTION.get(name, name) for name in found}, {(DISTRIBUTION.get(name, name), extra) for name, extra in asked}


def test_every_import_is_declared():
    # A package that comes along with another one, such as the book's tools, is missing after a plain "pip install .".
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    extras = {
        name: {re.split("[>=]", requirement)[0] for requirement in requirements}
        for name, requirements in {"": project["dependencies"], **project["optional-dependencies"]}.items()
    }
    used = {room: set() for room in ("", "report", "book")}
    for name, source in modules(PACKAGE).items():
        room = name.rpartition(".")[0].partition(".")[0].replace("labellers", "")  # which are statistics, too
        found, asked = foreign(source)
        # The report asks whether crowd-kit is there, the book whether IPython is: they do without. A study runs
        # pytest, another its peer, which `make studies` installs.
        book = extras["book"] | {"IPython", "pytest", "ppi_py"}
        found -= {distribution for distribution, _ in asked}  # imported where `optional` has found it
        allowed = extras[""] | {"": set(), "report": extras["report"] | extras["crowd"], "book": book}[room]
        assert found <= allowed, f"{name} imports {found - allowed} without `optional`"
        assert all(distribution in extras[extra] for distribution, extra in asked), (name, asked)
        used[room] |= found | {distribution for distribution, _ in asked}
    assert extras[""] <= used[""], "no module of the core needs it"
    assert extras["report"] <= used["report"]


def test_the_same_lower_bound_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    bounds = {}
    for requirement in chain(project["dependencies"], *project["optional-dependencies"].values()):
        name, _, bound = requirement.partition(">=")
        assert bounds.setdefault(name, bound) == bound
        assert bound or name.startswith("softlabel["), f"{name} has no lower bound"


@pytest.mark.parametrize(
    ("module", "name", "call", "extra"),
    [
        ("rdata", "load_gastroenterology", datasets.load_gastroenterology, "book"),
        ("sklearn.datasets", "load_breast_cancer", datasets.load_breast_cancer, "sklearn"),
        ("sklearn", "SoftLabelClassifier", import_anew("softlabel.classifier"), "sklearn"),
        ("matplotlib", "VoteReport.to_html", EMPTY_REPORT.to_html, "report"),
        ("matplotlib", "VoteReport.to_html", EMPTY_REPORT._repr_html_, "report"),
    ],
)
def test_what_an_extra_brings_is_named_where_it_is_missing(monkeypatch, tmp_path, module, name, call, extra):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setenv("SOFTLABEL_DATA", str(tmp_path))  # nothing is fetched before
    with pytest.raises(ImportError, match=rf"^{name} needs {module.split('.')[0]}, .*pip install 'softlabel\[{extra}\]'$"):
        call()
