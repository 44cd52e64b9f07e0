"""Each solution passes its check, each usual mistake is told apart, and the notebooks are made from the chapters."""

import importlib
import multiprocessing
import re
import types
from concurrent.futures import ProcessPoolExecutor

import nbclient
import nbformat
import numpy as np
import pytest
from conftest import ROOT, run_all

import sheets
from softlabel.book import exercises
from softlabel.book.exercises import marking

KEYS = exercises.keys()
PAPER = sorted((ROOT / "book" / "paper").glob("*.md"))
SHEETS = sheets.sources()
# Exercises whose function gets an array, which it could change.
ARRAYS = {"02.code", "03.hand", "04.further", "unequal.code", "correlated.code", "speed.code", "reading.hand"}


def filled(key, answer):
    """A mistake with its open numbers answered rightly; words where the exercise wants words."""
    if not isinstance(answer, tuple) or None not in [part if part is None else 0 for part in answer]:
        return answer
    choices = marking._entries()[key][1].get("choices", {})
    right = exercises.find(key).right
    return tuple(
        part if part is not None else choices[k][int(right[k])] if k in choices else right[k] for k, part in enumerate(answer)
    )


@pytest.mark.parametrize("key", KEYS)
def test_an_exercise_knows_its_mistakes_and_does_not_give_itself_away(key):
    exercise = exercises.find(key)
    for mistake in exercise.mistakes:
        feedback = exercises.mark(key, filled(key, mistake.answer))
        assert not feedback and repr(feedback) == f"Not yet. {mistake.why}"
    assert len({mistake.why for mistake in exercise.mistakes}) == len(exercise.mistakes) >= 2
    assert len(exercise.names) == len(exercise.right)
    said = " ".join([exercise.hint, exercise.wanted, *(mistake.why for mistake in exercise.mistakes)])
    told = {f"{value:.{digits}g}" for value in exercise.right for digits in (3, 4) if not float(value).is_integer()}
    assert not told & set(re.findall(r"\d+\.\d+", said))


def test_the_tables_and_the_modules_speak_of_the_same_exercises():
    fields = {"wanted", "arguments", "grid", "returns", "names", "choices", "right", "rtol", "atol", "hint", "mistakes"}
    assert {field for _, entry in marking._entries().values() for field in entry} == fields
    for part in marking.PARTS:
        own = {name for name in vars(importlib.import_module(f"softlabel.book.exercises.{part}")) if name.startswith("ex_")}
        assert own <= {f"ex_{key.replace('.', '_')}" for key, (where, _) in marking._entries().items() if where == part}


def test_nothing_is_built_before_it_is_asked_for(fresh):
    modules = fresh(run_all, [
        "from softlabel.book import exercises", "import sys", "exercises.keys()",
        f"[p for p in {marking.PARTS!r} if f'softlabel.book.exercises.{{p}}' in sys.modules]",
    ])  # fmt: skip
    assert modules[-1] == "[]"


FUNCTIONS = [key for key in KEYS if isinstance(exercises.find(key).mistakes[0].answer, types.FunctionType)]


@pytest.mark.parametrize("key", FUNCTIONS)
def test_a_function_that_changes_its_arguments_changes_nothing_else(key):
    exercise = exercises.find(key)
    answers = [mistake.answer for mistake in exercise.mistakes]
    before = [exercise.measure(answer) for answer in answers]
    touched = []

    def hostile(*args):
        value = np.copy(answers[0](*args))
        for arg in args:
            if isinstance(arg, np.ndarray):
                arg[...] = 1
                touched.append(key)
            elif isinstance(arg, np.random.Generator):
                arg.random(7)
        return value

    for _ in range(2):
        np.testing.assert_array_equal(exercise.measure(hostile), before[0])
    for answer, row in zip(answers, before):
        np.testing.assert_array_equal(exercise.measure(answer), row)
    assert bool(touched) == (key in ARRAYS)


@pytest.mark.parametrize("blank", [..., None, (), (..., ...), ""], ids=repr)
def test_a_blank_answer_gets_a_hint(blank):
    for key in KEYS:
        feedback = exercises.mark(key, blank)
        assert not feedback and repr(feedback).startswith("No answer yet. It should be "), key


ODD = {
    "word": "a word", "dict": {"a": 1}, "five": (1, 2, 3, 4, 5), "nan": np.nan, "huge": 10**5000, "words": (["a"], ["b"]),
    "matrix": np.full((2, 3), 7.0), "arrays": ([[1, 2]], [0.5]), "object": object(), "no arguments": lambda: 1,
    "raises": lambda *args: 1 / 0, "returns None": lambda *args: None, "returns a word": lambda *args: "a word",
    "returns three": lambda *args: np.ones(3), "returns a huge number": lambda *args: 10**5000,
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_odd_answer_is_never_right_and_never_an_error(odd):
    assert [key for key in KEYS if exercises.mark(key, odd)] == []


@pytest.mark.parametrize("key, answer, said", [
    ("03.hand", lambda tau, alpha0: 1 / 0, "Your function stops with ZeroDivisionError: division by zero."),
    ("02.hand", (0.1, 0.9, False), "Wrong: the share of wrong labels in all."),
    ("02.hand", (0.3, 0.9, False), "and 1 more of 3"),
    ("02.hand", (0.1, 0.26, False), "Right."),
    ("04.hand", lambda r, alpha0: -1, "Wrong: the value at r = 0.5, alpha0 = 1."),
    ("06.further", (44_000, "less", "shared"), "'less' is not one of 'larger' and 'smaller'."),
])  # fmt: skip
def test_what_is_said(key, answer, said):
    assert said in repr(exercises.mark(key, answer))


def test_an_unknown_key_names_near_ones():
    with pytest.raises(ValueError, match=r"no exercise '02\.hnad'; there is 02\.hand"):
        exercises.mark("02.hnad", 1)


def test_feedback_in_a_notebook_is_text_even_if_it_looks_like_markup():
    feedback = exercises.mark("limits.code", lambda loss, alpha0: "<b>")
    assert "&lt;b&gt;" in feedback._repr_html_() and "<b>" not in feedback._repr_html_()


# Solutions and notebooks


def test_every_chapter_has_three_exercises_with_levels_and_checks():
    assert set(PAPER) <= set(SHEETS)
    found = [item for path in SHEETS for item in sheets.exercises_of(path)]
    assert sorted(item.key for item in found) == sorted(KEYS)
    for path in SHEETS:
        titles = [item.title for item in sheets.exercises_of(path)]
        assert [title.split(" · ")[0] for title in titles] == ["By hand", "With code", "Further"]
        assert all(title.split(" · ")[1] in {"easy", "medium", "hard"} for title in titles)
    assert all(f'exercises.mark("{item.key}", ' in item.text for item in found), "a text does not say how to check"


@pytest.fixture(scope="module")
def fresh():
    """Calls a function in a process that has imported nothing but the package: a kernel takes seconds to get there."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["softlabel", "conftest"])

    def call(function, *arguments):
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            return pool.submit(function, *arguments).result()

    return call


@pytest.mark.parametrize("path", SHEETS, ids=lambda p: p.stem)
def test_the_solutions_are_right(path, fresh):
    cells = sheets.solve(sheets.exercise_notebook(path), path).cells[1:]  # the first installs the package
    said = fresh(run_all, [cell.source for cell in cells if cell.cell_type == "code"])
    assert [text for text in said if text != "None"] == ["Right."] * 3


@pytest.mark.parametrize("solved", [True, False])
def test_a_notebook_runs_in_a_kernel(solved, tmp_path, monkeypatch):
    monkeypatch.setenv("TQDM_DISABLE", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a kernel that is not asked to leave clears nothing up, but goes at once
    notebook = sheets.exercise_notebook(PAPER[2])
    if solved:
        sheets.solve(notebook, PAPER[2])
    nbclient.execute(notebook, cwd=str(tmp_path), timeout=600, shutdown_kernel="immediate")
    assert all(text.startswith("Right." if solved else "No answer yet.") for text in sheets.said(notebook))


@pytest.mark.parametrize("path", SHEETS, ids=lambda p: p.stem)
def test_notebook_is_valid_readable_and_holds_no_solution(path):
    notebook = sheets.exercise_notebook(path)
    nbformat.validate(notebook)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert notebook.cells[0].source.splitlines()[-1].strip().startswith("%pip install")
    assert text.count("answer = ...") == 3
    # No MyST, and none of the book's macros.
    assert not re.findall(r"\{[\w:]+\}`|:::|^:\w+:|\{code-cell\}", text, re.M)
    assert not re.findall(rf"\\(?:{'|'.join(sheets.macros())})(?![A-Za-z])", re.sub(r"\\operatorname\{\w+\}", "", text))
    section = path.read_text("utf8").partition(sheets.SECTION)[2]
    for solution in re.findall(r"^:::\{solution-start\}.*?^:::\{solution-end\}", section, re.S | re.M):
        lines = [line for line in solution.splitlines()[3:-1] if len(line) > 30 and not line.startswith("```")]
        # Code that a solution shares with the chapter may stand in both.
        assert not [line for line in lines if line in text.splitlines()]
    for item in sheets.exercises_of(path):
        assert not [c.id for c in notebook.cells if c.cell_type == "code" and item.solution[-1] in c.source]


def test_write_all_is_the_same_twice(tmp_path):
    first, second = (sheets.write_all(tmp_path / name) for name in "ab")
    assert list(first) == SHEETS
    assert [p.name for p in first.values()] == [f"{p.stem}_exercises.ipynb" for p in SHEETS]
    assert all(first[path].read_bytes() == second[path].read_bytes() for path in SHEETS)


CHAPTER = """---
jupytext:
  text_representation:
    format_name: myst
kernelspec:
  name: python3
---

# A chapter

```{code-cell} ipython3
import math
import numpy as np
from softlabel.book import claims, exercises
```

```{code-cell} ipython3
x = 1
unused = 5
# Twice x.
y = 2 * x
x = 7


def scale(a):
    total = a
    total *= y
    return total
```

## Exercises

:::{exercise} By hand · easy
:label: ex-02-hand

Do it, $\\vect\\tau = \\vect{a_{1}}\\T$.
:::

:::{solution-start} ex-02-hand
:class: dropdown
:::

```{code-cell} ipython3
secret = scale(3)
claims.glue("s", f"{secret}")
exercises.mark("02.hand", (secret, 1, True))
```

:::{solution-end}
:::
"""


@pytest.fixture
def book(tmp_path):
    for name in ("_config.yml", "pyproject.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text("utf8"))
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: a\n")

    def write(text):
        (tmp_path / "a.md").write_text(text, encoding="utf8")
        return tmp_path / "a.md"

    return write


def test_setup_holds_what_the_solution_rests_on(book):
    (item,) = sheets.exercises_of(book(CHAPTER))
    setup = [source.split("\n")[0] for source in item.setup if not source.startswith(("import", "from"))]
    assert setup == ["x = 1", "# Twice x.", "def scale(a):"]
    assert item.solution == ["secret = scale(3)", "answer = (secret, 1, True)"]
    cells = sheets.exercise_notebook(book(CHAPTER), book(CHAPTER).parent).cells
    assert cells[3].source == "## By hand · easy\n\nDo it, $\\boldsymbol{\\tau} = \\boldsymbol{a_{1}}^{\\mathsf{T}}$."
    assert "import math" not in cells[2].source


@pytest.mark.parametrize("old, new, message", [
    ("exercises.mark(", "print(", "does not mark its answer"), ('mark("02.hand"', 'mark("03.hand"', "marks '03.hand'"),
    ("scale(3)", "other(3)", "needs other"), (":label: ex-02-hand\n", ":label: hand\n", "no label such as"),
    (":::{solution-start} ex-02-hand", ":::{solution-start} ex-02-code", "has no solution"),
    ("Do it,", "See {eq}`eq-none`,", "no equation eq-none"), ("Do it,", "See {glue:text}`x`,", "cannot show"),
    ("Do it,", "See {numref}`tab-none`,", "nothing is named tab-none"),
])  # fmt: skip
def test_a_chapter_that_drifted_is_an_error(book, old, new, message):
    assert old in CHAPTER
    path = book(CHAPTER.replace(old, new))
    with pytest.raises(sheets.ExerciseError, match=message):
        sheets.exercise_notebook(path, path.parent)
