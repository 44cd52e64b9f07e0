"""Assignments pay right answers in full and wrong ones as they say, with nbgrader itself; slides load nothing from outside."""

import csv
import functools
import shutil
import subprocess
import sys

import nbformat
import pytest
from bs4 import BeautifulSoup
from conftest import ROOT, run
from reference import gastro
from test_site import find_outside

import softlabel as sl
from softlabel import datasets

sys.path.insert(0, str(ROOT / "teaching"))
import course
import slides

NOISE, CLINICIANS = course.SOURCES


def code_cells(name):
    return [cell for cell in course.notebook(name).cells if cell.cell_type == "code"]


def id_of(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def without_data():
    raise datasets.DataFileError("not there")


@functools.cache
def solved(name, stand_in):
    """Run the solutions; for each cell, the names that were there before it."""
    namespace, before = {}, []
    with pytest.MonkeyPatch.context() as patch:
        if stand_in:
            patch.setattr(sl, "load_gastroenterology", without_data)
        for cell in code_cells(name):
            before.append(dict(namespace))
            run(cell.source, namespace)
    return before


def points(name, answer, old="", new="", stand_in=True):
    """What a sheet gets for one answer, with `old` replaced by `new` in its solution."""
    cells = code_cells(name)
    at = [id_of(cell) for cell in cells].index(answer)
    written, test = cells[at : at + 2]
    assert id_of(test) == f"test-{answer}" and old in written.source
    namespace = dict(solved(name, stand_in)[at])
    run(written.source.replace(old, new), namespace)
    try:
        value = run(test.source, namespace)
    except AssertionError:
        return 0
    return test.metadata.nbgrader.points if value is None else value


ANSWERS = [
    (name, id_of(cell), after.metadata.nbgrader.points)
    for name in course.SOURCES
    for cell, after in zip(code_cells(name), code_cells(name)[1:])
    if id_of(after) == f"test-{id_of(cell)}"
]


@pytest.mark.parametrize(("name", "answer", "most"), ANSWERS)
def test_solution_gets_all_points(name, answer, most):
    assert points(name, answer) == most


@pytest.mark.parametrize(("name", "answer", "most"), [a for a in ANSWERS if a[0] == CLINICIANS])
def test_solution_gets_all_points_on_the_real_data(name, answer, most):
    gastro()  # skips where the files cannot be had
    assert points(name, answer, stand_in=False) == most


WRONG = [
    # her best guess; one random number for all; the other class
    (NOISE, "draw_labels", "rng.random(tau1.shape) <", "0.5 <=", 0),
    (NOISE, "draw_labels", "rng.random(tau1.shape)", "rng.uniform(1e-9, 1)", 0),
    (NOISE, "draw_labels", "< tau1", ">= tau1", 0),
    # the Bayes error; one of the two ways to differ; agreement on one class left out
    (NOISE, "share_wrong", "2 * tau1 * (1 - tau1)", "np.minimum(tau1, 1 - tau1)", 0),
    (NOISE, "share_wrong", "2 * tau1", "tau1", 0),
    (NOISE, "share_wrong", "2 * tau1 * (1 - tau1)", "1 - tau1**2", 0),
    # flips at random; the truth again; half of it; the other class
    (NOISE, "two_fits", "z_noisy = draw_labels(model.posterior(Y)[..., 0], rng)",
     "z_noisy = np.where(rng.random(z.shape) < 0.22, 1 - z, z)", 0),
    (NOISE, "two_fits", "draw_labels(model.posterior(Y)[..., 0], rng)", "z", 0),
    (NOISE, "two_fits", "draw_labels(model.posterior(Y)[..., 0], rng)",
     "np.where(rng.random(z.shape) < 0.5, z, draw_labels(model.posterior(Y)[..., 0], rng))", 0),
    (NOISE, "two_fits", "[..., 0], rng", "[..., 1], rng", 0),
    # columns swapped; independent votes; logarithms
    (NOISE, "vote_pmf", "[tau1, 1 - tau1]", "[1 - tau1, tau1]", 0),
    (NOISE, "vote_pmf", "tau, alpha0", "tau, np.inf", 0),
    (NOISE, "vote_pmf", "np.exp", "", 0),
    # around m tau and not the mean; votes counted from 1; a standard deviation
    (NOISE, "inflation", "(k - mean)", "(k - (len(p) - 1) * tau1)", 2),
    (NOISE, "inflation", "(len(p) - 1)", "len(p)", 0),
    (NOISE, "inflation", "** 2 / (", "** 2 / np.sqrt(", 0),
    # independent votes; upside down; variances; columns swapped; too few votes
    (NOISE, "standard_errors", "7, 2, rng", "7, rng=rng", 0),
    (NOISE, "standard_errors", 'stderr("sandwich") / fit.stderr("model")', 'stderr("model") / fit.stderr("sandwich")', 0),
    (NOISE, "standard_errors", 'stderr("model")', 'stderr("model") * 0 + 3', 0),
    (NOISE, "standard_errors", "7, 2, rng)", "7, 2, rng)[:, ::-1]", 0),
    (NOISE, "standard_errors", "7, 2, rng", "5, 2, rng", 0),
    # upside down; standard deviations; independent votes; one vote
    (NOISE, "worth", "truth / noisy", "noisy / truth", 0),
    (NOISE, "worth", "np.var", "np.std", 0),
    (NOISE, "worth", "m, alpha0, rng", "m, np.inf, rng", 0),
    (NOISE, "worth", "m, alpha0, rng", "1, alpha0, rng", 0),
    # order of columns; a class that nobody chose
    (CLINICIANS, "counts_of", '["resection", "no-resection"]', '["no-resection", "resection"]', 0),
    (CLINICIANS, "counts_of", 'reindex(columns=["resection", "no-resection"], fill_value=0)', "loc[:, ::-1]", 0),
    # pairs of a vote with itself; seven votes whatever comes; the majority's share
    (CLINICIANS, "agreement", "(counts - 1)", "counts", 0),
    (CLINICIANS, "agreement", "counts.sum(axis=1)", "7", 0),
    (CLINICIANS, "agreement", "(counts * (counts - 1)).sum(axis=1) / (m * (m - 1))", "counts.max(axis=1) / m", 0),
    # votes for the truth; upside down; features that were not standardised
    (CLINICIANS, "two_fits", "(X, data.y)", "(X, data.counts)", 0),
    (CLINICIANS, "two_fits", 'stderr("sandwich") / votes_fit.stderr("model")',
     'stderr("model") / votes_fit.stderr("sandwich")', 0),
    (CLINICIANS, "two_fits", "(X, data.counts)", "(2 * X, data.counts)", 0),
    # all items as the first; one factor too far; the prior scaled; no denominator
    (CLINICIANS, "loglik", "counts.sum(axis=1)", "np.full(len(counts), counts[0].sum())", 3),
    (CLINICIANS, "loglik", "np.log1p(k * omega)", "np.log1p((k + 1) * omega)", 0),
    (CLINICIANS, "loglik", "tau[..., None] + k * omega", "tau[..., None] * (1 + k * omega)", 0),
    (CLINICIANS, "loglik", "np.log1p(k * omega)", "0 * k", 0),
    # omega; the other fit; a grid that is too coarse
    (CLINICIANS, "alpha0_hat", "1 / best.x", "best.x", 0),
    (CLINICIANS, "alpha0_hat", "votes_fit", "truth_fit", 0),
    (CLINICIANS, "alpha0_hat", "1 / best.x", "round(1 / best.x)", 0),
    # tau left behind; a reshuffle; samples that are too small
    (CLINICIANS, "bootstrap", "tau[j]", "tau", 0),
    (CLINICIANS, "bootstrap", "rng.integers(len(counts), size=(n_resamples, len(counts)))",
     "[rng.permutation(len(counts)) for _ in range(n_resamples)]", 0),
    (CLINICIANS, "bootstrap", "(n_resamples, len(counts))", "(n_resamples, len(counts) // 4)", 0),
    # more than the share; the first labeller left out; a limit of alpha0; rounded down
    (CLINICIANS, "labellers_for", "< share", "<= share", 0),
    (CLINICIANS, "labellers_for", "m = 1", "m = 2", 0),
    (CLINICIANS, "labellers_for", "(1 + alpha0)", "alpha0", 0),
    (CLINICIANS, "labellers_for", "return m", "return max(m - 1, 1)", 0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer", "old", "new", "expected"), WRONG)
def test_wrong_answer_loses_points(name, answer, old, new, expected):
    assert points(name, answer, old, new) == expected


def test_every_answer_has_wrong_ones():
    assert {(name, answer) for name, answer, *_ in WRONG} == {(name, answer) for name, answer, _ in ANSWERS}


@pytest.mark.parametrize("name", course.SOURCES)
def test_an_assignment_has_twenty_points_and_one_question_for_a_person(name):
    marks = [cell.metadata.nbgrader for cell in code_cells(name) if id_of(cell)]
    assert sum(mark.get("points", 0) for mark in marks) == 20
    assert sum(mark.grade and mark.solution for mark in marks) == 1


# Three submissions through nbgrader.

HALF = {  # the answers given; a pair is a replacement that makes the answer wrong
    # 2 points, 0 of 2, 3, and 2 of 3
    NOISE: {"draw_labels": (), "share_wrong": ("2 * tau1 * (1 - tau1)", "np.minimum(tau1, 1 - tau1)"), "two_fits": (),
            "inflation": ("(k - mean)", "(k - (len(p) - 1) * tau1)")},
    # 2 points, 2, 3 of 4, and 2
    CLINICIANS: {"counts_of": (), "two_fits": (), "alpha0_hat": (),
                 "loglik": ("counts.sum(axis=1)", "np.full(len(counts), counts[0].sum())")},
}  # fmt: skip
SCORES = {
    (student, name): score
    for student, scores in {"right": (17, 17), "half": (7, 9), "empty": (0, 0)}.items()
    for name, score in zip((NOISE, CLINICIANS), scores)
}


def hand_in(released, target, answers):
    """A released sheet with some answers, as replacements in the solutions, filled in."""
    sheet = nbformat.read(released, as_version=4)
    solutions = {id_of(cell): cell.source for cell in code_cells(released.stem)}
    for cell in sheet.cells:
        if (key := id_of(cell)) in answers:
            cell.source = solutions[key].replace(*answers[key]) if answers[key] else solutions[key]
        elif key == "test-worth":
            cell.source = "pass  # a student may try"
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(sheet, target)


@pytest.fixture(scope="module")
def graded(once, shared):
    """Folder of a course with three graded students, and a fourth who handed in a text."""
    folder = shared / "teaching"
    once("teaching", lambda: hand_in_and_grade(folder / "sheets", folder / "sheets-graded"))
    return folder / "sheets-graded"


def hand_in_and_grade(submissions, graded):
    course.release(graded)
    for name in course.SOURCES:
        released = graded / "release" / name / f"{name}.ipynb"
        everything = {id_of(cell): () for cell in code_cells(name) if id_of(cell) and cell.metadata.nbgrader.solution}
        hand_in(released, submissions / "right" / f"{name}.ipynb", everything)
        hand_in(released, submissions / "half" / "deep" / f"{name}.ipynb", HALF[name])
        (submissions / "empty").mkdir(exist_ok=True)
        shutil.copy(released, submissions / "empty")
    (submissions / "text").mkdir()
    (submissions / "text" / f"{NOISE}.ipynb").write_text("It did not work.")
    done = subprocess.run(
        [sys.executable, ROOT / "teaching" / "course.py", "grade", submissions], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def table(graded):
    with (graded / "grades.csv").open() as file:
        return {(row["student"], row["assignment"]): row for row in csv.DictReader(file)}


@pytest.mark.slow
def test_release_holds_no_answers(graded):
    for name in course.SOURCES:
        text = (graded / "release" / name / f"{name}.ipynb").read_text("utf8")
        assert "YOUR CODE HERE" in text and "HIDDEN" not in text and "SOLUTION" not in text


@pytest.mark.slow
def test_grades(graded):
    rows = table(graded)
    assert {key: float(rows[key]["score"]) for key in SCORES} == SCORES
    assert {rows[key]["max_score"] for key in SCORES} == {"20"}
    waiting = {key for key, row in rows.items() if row["note"] == "3 points to be given by a person"}
    assert waiting == {("right", NOISE), ("right", CLINICIANS)}
    assert rows["text", NOISE]["note"] == "could not be graded"
    assert rows["text", CLINICIANS]["note"] == "not handed in"


@pytest.mark.slow
def test_points_given_by_a_person_count(graded, tmp_path):
    graded = shutil.copytree(graded, tmp_path / "sheets-graded")
    give = (
        "import sys; from nbgrader.api import Gradebook\n"
        "with Gradebook(sys.argv[1]) as book:\n"
        "    grade = book.find_grade('company', sys.argv[2], sys.argv[2], 'right')\n"
        "    grade.manual_score, grade.needs_manual_grade = 3, False\n"
        "    book.db.commit()\n"
        "sys.path.insert(0, sys.argv[3]); import course, pathlib\n"
        "course.write_table(pathlib.Path(sys.argv[4]), ['right'])\n"
    )
    subprocess.run(
        [sys.executable, "-c", give, f"sqlite:///{graded}/gradebook.db", NOISE, ROOT / "teaching", graded], check=True
    )
    row = table(graded)["right", NOISE]
    assert (row["score"], row["note"]) == ("20", "")


# The slides.

PICTURE = nbformat.v4.new_output("display_data", {"image/svg+xml": "<svg/>"})
TABLE = nbformat.v4.new_output("execute_result", {"text/markdown": "| a |\n|---|\n| 1 |"})
CHAPTER = nbformat.v4.new_notebook(cells=[
    nbformat.v4.new_code_cell(
        metadata={"mystnb": {"figure": {"name": "fig-a"}, "image": {"alt": "a\nline"}}}, outputs=[PICTURE]),
    nbformat.v4.new_code_cell(metadata={"mystnb": {"figure": {"name": "tab-a"}}}, outputs=[TABLE]),
])  # fmt: skip


def test_figures_and_tables_of_a_chapter_are_put_in(tmp_path):
    assert slides.show(CHAPTER, "fig-a", tmp_path) == '<img src="fig-a.svg" alt="a line">'
    assert (tmp_path / "fig-a.svg").read_text() == "<svg/>"
    assert "| 1 |" in slides.show(CHAPTER, "tab-a", tmp_path)
    with pytest.raises(KeyError, match="fig-b"):
        slides.show(CHAPTER, "fig-b", tmp_path)


def test_numbers_of_a_lecture_are_computed():
    cells = [nbformat.v4.new_code_cell("x = 2"), nbformat.v4.new_markdown_cell("Of {eval}`f'{x:.1f}'` and {eval}`str(x)`.")]
    lecture = nbformat.v4.new_notebook(cells=cells)
    slides.run(lecture)
    assert lecture.cells[1].source == "Of 2.0 and 2."


@pytest.mark.slow
def test_slides(executed_chapters, tmp_path):
    slides.build(tmp_path / "slides", lambda page: executed_chapters[f"book/{page}"])
    html = (tmp_path / "slides" / "index.html").read_text("utf8")
    page = BeautifulSoup(html, "html.parser")
    assert 12 <= len(page.select(".slides > section:has(h1, h2)")) <= 15
    assert find_outside(html) == []
    assert "{eval}" not in html and "Traceback" not in html
    for tag, key in (("img", "src"), ("script", "src"), ("link", "href")):
        for address in (node[key] for node in page.find_all(tag) if node.get(key)):
            assert address.startswith("data:") or (tmp_path / "slides" / address).exists(), address
    assert all(len(image["alt"]) > 30 for image in page.find_all("img"))
