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
from numpy.testing import assert_array_equal

from softlabel.book import exercises
from softlabel.book.exercises import marking

KEYS = exercises.keys()
PAPER = sorted((ROOT / "book" / "paper").glob("*.md"))
# Exercises whose function gets an array, which it could change.
ARRAYS = {"02.code", "03.hand", "04.further", "unequal.code", "correlated.code", "reading.hand"}


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


@pytest.mark.parametrize("key", KEYS)
def test_a_function_that_changes_its_arguments_changes_nothing_else(key):
    exercise = exercises.find(key)
    if not isinstance(exercise.mistakes[0].answer, types.FunctionType):
        return
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
        assert_array_equal(exercise.measure(hostile), before[0])
    for answer, row in zip(answers, before):
        assert_array_equal(exercise.measure(answer), row)
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


@pytest.mark.parametrize("key", KEYS)
def test_three_digits_are_enough_and_fewer_are_asked_for(key):
    exercise = exercises.find(key)
    if not exercise.rounded.any():
        return
    choices = marking._entries()[key][1].get("choices", {})

    def rounded(digits, down=0):
        """The right answer to so many digits, or one off in the last of them."""
        answer = []
        for k, (value, free) in enumerate(zip(exercise.right, exercise.rounded)):
            unit = 10 ** (np.floor(np.log10(abs(value))) + 1 - digits) if free else 0
            number = float(f"{value:.{digits}g}") - down * unit if free else value
            answer.append(choices[k][int(value)] if k in choices else number)
        return tuple(answer)

    for digits in (3, 4, 8):
        assert exercises.mark(key, rounded(digits)), digits
    few = exercises.mark(key, rounded(1))
    assert few or "digits" in repr(few) or any(mistake.why in repr(few) for mistake in exercise.mistakes)
    assert repr(exercises.mark(key, ...)).endswith("Three digits are enough.")
    if (np.where(exercise.rounded, exercise.rtol, 0) < 1e-3).all():
        assert not exercises.mark(key, rounded(3, down=2))


@pytest.mark.parametrize("key, answer", [
    ("harm.hand", (0.5, 1, 0.029)), ("harm.hand", (0.5, 1, 0.02902)), ("own.code", (2, 1.895)),
    ("majority.further", (1, 1.21, 2)), ("majority.further", (1, 1.212, 2)),
])  # fmt: skip
def test_answers_that_were_called_wrong_because_they_are_rounded(key, answer):
    exercise = exercises.find(key)
    answer = tuple(right if np.isclose(right, np.rint(right)) else part for part, right in zip(answer, exercise.right))
    assert exercises.mark(key, answer), exercises.mark(key, answer)


@pytest.mark.parametrize("key, answer, said", [
    ("03.hand", lambda tau, alpha0: 1 / 0, "Your function stops at tau = [0.7, 0.3], alpha0 = 0.5 with ZeroDivisionError:"),
    ("budget.code", lambda budget, c0, c1, alpha0: np.ones(0 if np.isinf(alpha0) else 2), "0 numbers at budget = 200"),
    ("02.hand", (0.1, 0.9, False), "Wrong: the share of wrong labels in all."),
    ("02.hand", (0.3, 0.9, False), "and 1 more of 3"),
    ("02.hand", (0.1, 0.26, False), "Right."),
    ("04.hand", lambda r, alpha0: -1, "Wrong: the value at r = 0.5, alpha0 = 1."),
    ("02.concept", "e", "'e' is not one of 'a' and 'b' and 'c' and 'd'."),
    ("harm.hand", (0.5, 1, 0.03), "rounded too much: give three digits."),
    # Wrong answers near the right one, with digits enough.
    ("01.code", (0.412, 1.5), "Wrong: the spread ratio."),
    ("02.hand", (0.1, 0.2437, False), "Wrong: the share of wrong labels in all."),
    ("06.hand", 0.0412345, "Wrong: the relative standard error."),
    ("own.code", (2, 1.6), "Wrong: every second item."),
    ("joint.code", (0.832, 0.8999), "Wrong: the efficiency."),
    ("05.hand", (1.6328, 3.4142), "Wrong: the efficiency of the slope."),
    ("majority.hand", (0.7, 0.8319, 0.784, 1), "Wrong: that for three."),
    ("budget.further", (22.3, 6.2, 8), "Wrong: the price"),
    ("07.code", (2.6, 6.6), "Wrong: the beginners"),
    ("majority.hand", (0.7, 0.784, 0.784, 1.414), "The root is for large groups."),
    # Other units, and answers of another kind.
    ("06.hand", 4.47, "in percent"),
    ("02.hand", (10, 26, False), "in percent"),
    ("03.code", np.ones(8) / 8, "These are shares and not numbers of items."),
])  # fmt: skip
def test_what_is_said(key, answer, said):
    assert said in repr(exercises.mark(key, answer))


CORNERS, SPLIT = [[0.0, 0.0], [1, 0], [0, 1]], [[1, 1], [1, 1], [1, 1]]
ROOTS = [[[20, 20], *[[2, 0]] * 10], np.full((11, 1), 0.5)]


@pytest.mark.parametrize("key, answer", [
    ("02.concept", "B"), ("02.concept", " b"), ("02.concept", "(b)"), ("06.hand", np.array([[0.0447]])),
    ("own.code", np.array([[2.0], [1.895]])), ("own.code", [2, 1.895]),
    ("06.code", (3.70, 0.0669, 0.571)), ("06.code", (3.62, 0.067, -0.638)), ("06.code", (3.66, 0.067, -0.173)),
    ("04.code", -0.393), ("04.code", -0.679), ("08.hand", [CORNERS, SPLIT]), ("07.further", ROOTS),
])  # fmt: skip
def test_right_answers_in_other_forms(key, answer):
    assert exercises.mark(key, answer), exercises.mark(key, answer)


@pytest.mark.parametrize("key", ["harm.code", "limits.code"])
def test_none_says_that_no_number_is_enough(key):
    rows = iter(exercises.find(key).right.tolist())
    assert exercises.mark(key, lambda *args: None if np.isinf(number := next(rows)) else number)


def test_an_unknown_key_names_near_ones():
    with pytest.raises(ValueError, match=r"no exercise '02\.hnad'; there is 02\.hand"):
        exercises.mark("02.hnad", 1)


def test_feedback_in_a_notebook_is_text_even_if_it_looks_like_markup():
    feedback = exercises.mark("limits.code", lambda loss, alpha0: "<b>")
    assert "&lt;b&gt;" in feedback._repr_html_() and "<b>" not in feedback._repr_html_()


# Solutions and notebooks

EXERCISE = re.compile(
    r"^:::\{exercise\} (?P<title>[^\n]+)\n:label: ex-(?P<chapter>\w+)-(?P<part>\w+)\n\n(?P<text>.*?)^:::$"
    r"\s+:::\{solution-start\} ex-(?P=chapter)-(?P=part)\n:class: dropdown\n:::\n(?P<solution>.*?)^:::\{solution-end\}$",
    re.S | re.M,
)
SHEETS = {
    path.relative_to(ROOT).with_suffix("").as_posix(): list(EXERCISE.finditer(text))
    for path in sorted((ROOT / "book").rglob("*.md"))
    if "{exercise}" in (text := path.read_text("utf8"))
}


def key_of(match):
    return f"{match['chapter']}.{match['part']}"


def test_every_chapter_has_its_exercises_with_levels_and_checks():
    assert {f"book/paper/{path.stem}" for path in PAPER} <= set(SHEETS)
    assert sorted(key_of(match) for found in SHEETS.values() for match in found) == sorted(KEYS)
    for page, found in SHEETS.items():
        assert len(found) == len(re.findall(r"^:::+\{exercise", (ROOT / f"{page}.md").read_text("utf8"), re.M)), page
        titles = [match["title"] for match in found]
        kinds = ["By hand", "With code", "Further"]
        if page.startswith("book/paper/"):
            kinds = ["In two minutes", *kinds]
        assert [title.split(" · ")[0] for title in titles] == kinds, page
        assert all(title.split(" · ")[1] in {"easy", "medium", "hard"} for title in titles), page
        for match in found:
            call = f'exercises.mark("{key_of(match)}", '
            assert call in " ".join(match["text"].split()), f"{page}: a text does not say how to check"
            # The solution marks its own exercise, once, at the end of a cell that the page shows.
            assert re.findall(r'exercises\.mark\(\s*("[\w.]+"),', match["solution"]) == [f'"{key_of(match)}"'], page
            assert "{eval}" not in match["text"], f"{page}: a number of a text is given, not computed"


@pytest.fixture(scope="module")
def fresh():
    """Calls a function in a process that has imported nothing but the package: a kernel takes seconds to get there."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["softlabel", "conftest"])

    def call(function, *arguments):
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            return pool.submit(function, *arguments).result()

    return call


@pytest.mark.parametrize("page", SHEETS)
def test_what_cannot_be_marked_has_an_answer_to_compare_with(page):
    """Where an exercise asks for a proof or a reason its solution has at least forty words."""
    text = (ROOT / f"{page}.md").read_text("utf8")
    blocks = r"^:::\{exercise\}[^\n]*\n:label: (\S+)\n(.*?)^:::$.*?\{solution-start\} \1\n(.*?)^:::\{solution-end\}"
    found = re.findall(blocks, text, re.S | re.M)
    assert len(found) == len(SHEETS[page])
    short = {
        label
        for label, question, answer in found
        if re.search(r"show\s+that|\bwhy\b|derive", question, re.I)
        and len(re.sub(r"^```.*?^```$", "", answer, flags=re.S | re.M).split()) < 40
    }
    assert short == set()


@pytest.mark.parametrize("page", SHEETS)
def test_the_solutions_are_right(page, executed_chapters):
    said = [
        cell.outputs[-1].data["text/plain"] for cell in executed_chapters[page].cells
        if cell.cell_type == "code" and re.search(r"^exercises\.mark\(", cell.source, re.M)
    ]  # fmt: skip
    assert said == ["Right."] * len(SHEETS[page])


@pytest.mark.slow
def test_a_sheet_runs_and_asks_for_answers(site, tmp_path, monkeypatch):
    monkeypatch.setenv("TQDM_DISABLE", "1")
    notebook = nbformat.read(site / "notebooks" / "paper" / "03_group_labels_exercises.ipynb", 4)
    nbclient.execute(notebook, cwd=str(tmp_path), timeout=600, shutdown_kernel="immediate")
    said = [cell.outputs[-1].data["text/plain"] for cell in notebook.cells if cell.id.endswith("-answer")]
    assert len(said) == 4 and all(text.startswith("No answer yet.") for text in said)


@pytest.mark.parametrize("page", SHEETS)
def test_a_sheet_asks_all_and_holds_no_solution(page, site):
    notebook = nbformat.read(site / "notebooks" / f"{page.removeprefix('book/')}_exercises.ipynb", 4)
    nbformat.validate(notebook)
    asked = [cell.source for cell in notebook.cells if cell.id.endswith("-answer")]
    assert asked == [f'exercises.mark("{key_of(match)}", ...)' for match in SHEETS[page]]
    text = "\n".join(cell.source for cell in notebook.cells).splitlines()
    for match in SHEETS[page]:
        lines = [line for line in match["solution"].splitlines() if len(line) > 30 and not line.startswith("```")]
        # Code that a solution shares with the chapter stands in both.
        before = (ROOT / f"{page}.md").read_text("utf8").partition("\n## Exercises\n")[0].splitlines()
        assert lines and not [line for line in lines if line in text and line not in before], page
