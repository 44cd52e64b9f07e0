"""Assignments pay right answers in full and wrong ones as they say, with nbgrader itself; slides load nothing from outside."""

import ast
import builtins
import copy
import csv
import functools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import nbconvert
import nbformat
import numpy as np
import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import ROOT, run
from reference import gastro
from test_site import find_outside

import softlabel as sl
from softlabel import datasets
from softlabel.book import exercises, standin

sys.path.insert(0, str(ROOT / "teaching"))
import classes
import judge
import sandbox
import sheets

import course
import slides

NOISE, CLINICIANS = sheets.SOURCES


def is_test(cell):
    return (sheets.id_of(cell) or "").startswith("test-")


@functools.cache
def code_cells(name, student=""):
    """For those who change nothing in them."""
    return [cell for cell in sheets.notebook(name, student).cells if cell.cell_type == "code"]


def without_data():
    raise datasets.DataFileError("not there")


@functools.cache
def solved(name, stand_in, student=""):
    """Run the solutions; for each cell, the names that were there before it, and those of the given cells alone."""
    namespace, given, before = {"__name__": "__main__"}, {"__name__": "__main__"}, []
    with pytest.MonkeyPatch.context() as patch:
        if stand_in:
            patch.setattr(sl, "load_gastroenterology", without_data)
        for cell in code_cells(name, student):
            before.append((dict(namespace), dict(given)))
            if (sheets.id_of(cell) or "").startswith("given-"):
                run(cell.source, given)
            if not is_test(cell):
                run(cell.source, namespace)
    return before


class Direct:
    """Stands for the sandbox: the names of a sheet, without another process."""

    def __init__(self, names):
        self.names = names

    def ask(self, name):
        if name not in self.names:
            raise judge.Refused(f"The sheet defines no {name}.")
        return self.names[name]


def points(name, answer, old="", new="", stand_in=True, student="", write=None):
    """What a sheet gets for one answer, with `old` replaced by `new` in its solution, or with another one."""
    cells = code_cells(name, student)
    keys = [sheets.id_of(cell) for cell in cells]
    at, test = keys.index(answer), cells[keys.index(f"test-{answer}")]
    written = cells[at]
    assert old in written.source
    namespace = dict(solved(name, stand_in, student)[at][0])
    run(written.source.replace(old, new) if write is None else write, namespace)
    given = dict(solved(name, stand_in, student)[keys.index(f"test-{answer}")][1])
    wanted = written.metadata.get("names", answer).split(", ")
    (said,) = judge.judge(test.source, given, Direct(namespace), wanted) or [{}]
    if said.get("output_type") == "error":
        assert said.evalue.endswith((".", "?")) and "\n" not in said.evalue  # a sentence for the student
        return 0
    return float(said["data"]["text/plain"]) if said else test.metadata.nbgrader.points


ANSWERS = [
    (name, sheets.id_of(cell).removeprefix("test-"), cell.metadata.nbgrader.points)
    for name in sheets.SOURCES
    for cell in code_cells(name)
    if is_test(cell)
]


@pytest.mark.parametrize(("name", "answer", "most"), ANSWERS)
def test_solution_gets_all_points(name, answer, most):
    assert points(name, answer) == most
    assert points(name, answer, student="a student") == most


@pytest.mark.parametrize(("name", "answer", "most"), [a for a in ANSWERS if a[0] == CLINICIANS])
def test_solution_gets_all_points_on_the_real_data(name, answer, most):
    gastro()  # skips where the files cannot be had
    assert points(name, answer, stand_in=False) == most


DRAWN = "draw(classes.posterior(Y)[..., 0], z, rng)"
WRONG = [
    # her best guess; one random number for all; the other class; never looks; always; looks up the first items; every fifth;
    # a generator of her own
    (NOISE, "draw_labels", "rng.random(tau1.shape) < tau1", "0.5 <= tau1", 0),
    (NOISE, "draw_labels", "rng.random(tau1.shape) < tau1", "rng.uniform(1e-9, 1) < tau1", 0),
    (NOISE, "draw_labels", "< tau1", ">= tau1", 0),
    (NOISE, "draw_labels", "looked, z", "looked, drawn", 0),
    (NOISE, "draw_labels", "looked, z, drawn", "looked, z, z", 0),
    (NOISE, "draw_labels", "rng.random(tau1.shape) < 0.2", "(np.arange(tau1.size).reshape(tau1.shape) < 0.2 * tau1.size)", 0),
    (NOISE, "draw_labels", "rng.random(tau1.shape) < 0.2", "(np.arange(tau1.size).reshape(tau1.shape) % 5 == 0)", 0),
    (NOISE, "draw_labels", "    drawn =", "    rng = np.random.default_rng(7)\n    drawn =", 0),
    (NOISE, "draw_labels", "    drawn =", "    rng = np.random.default_rng()\n    drawn =", 0),
    # all labels drawn; one of the two ways to differ; agreement on one class left out; the Bayes error
    (NOISE, "share_wrong", "(1 - 0.2) * ", "", 0),
    (NOISE, "share_wrong", "2 * tau1", "tau1", 0),
    (NOISE, "share_wrong", "2 * tau1 * (1 - tau1)", "1 - tau1**2", 0),
    (NOISE, "share_wrong", "2 * tau1 * (1 - tau1)", "np.minimum(tau1, 1 - tau1)", 0),
    # flips at random; the truth again; half of it; every fifth item; the other class; labels of one's own; another's
    (NOISE, "two_fits", DRAWN, "np.where(rng.random(z.shape) < 0.22, 1 - z, z)", 0),
    (NOISE, "two_fits", DRAWN, "z", 0),
    (NOISE, "two_fits", DRAWN, f"np.where(rng.random(z.shape) < 0.5, z, {DRAWN})", 0),
    (NOISE, "two_fits", DRAWN, f"np.where(np.arange(z.shape[1]) % 5, {DRAWN}, z)", 0),
    (NOISE, "two_fits", "[..., 0], z, rng", "[..., 1], z, rng", 0),
    (NOISE, "two_fits", DRAWN, "rng.random(z.shape) < classes.posterior(Y)[..., 0]", 0),
    (NOISE, "two_fits", DRAWN, "draw_labels(classes.posterior(Y)[..., 0], z, rng)", 0),
    # all items; the last ones; a generator of one's own; the two fits in the wrong order
    (NOISE, "two_fits", "[:, :500]", "", 0),
    (NOISE, "two_fits", "[:, :500]", "[:, -500:]", 0),
    (NOISE, "two_fits", "z, rng)", "z, np.random.default_rng(7))", 0),
    (NOISE, "two_fits", "coef_true, coef_noisy", "coef_noisy, coef_true", 0),
    # columns swapped; independent votes; logarithms; nothing for infinite alpha0; the other class
    (NOISE, "vote_probs", "[tau1, 1 - tau1]", "[1 - tau1, tau1]", 0),
    (NOISE, "vote_probs", "tau, alpha0", "tau, np.inf", 0),
    (NOISE, "vote_probs", "np.exp", "", 0),
    (NOISE, "vote_probs", "return p", "return p * np.isfinite(alpha0)", 0),
    (NOISE, "vote_probs", "[::-1]", "", 0),
    # around m tau and not the mean; votes counted from 1; a standard deviation
    (NOISE, "inflation", "(k - mean)", "(k - (len(p) - 1) * tau1)", 2),
    (NOISE, "inflation", "(len(p) - 1)", "len(p)", 0),
    (NOISE, "inflation", "** 2 / (", "** 2 / np.sqrt(", 0),
    # independent votes; upside down; variances; columns swapped; too few votes; another fit
    (NOISE, "standard_errors", "7, 2, rng", "7, rng=rng", 0),
    (NOISE, "standard_errors", 'stderr("sandwich") / fit.stderr("model")', 'stderr("model") / fit.stderr("sandwich")', 0),
    (NOISE, "standard_errors", 'stderr("model")', 'stderr("model") * 0 + 3', 0),
    (NOISE, "standard_errors", "7, 2, rng)", "7, 2, rng)[:, ::-1]", 0),
    (NOISE, "standard_errors", "7, 2, rng", "5, 2, rng", 0),
    (NOISE, "standard_errors", "= fit.coef", "= 1.1 * fit.coef", 0),
    # upside down; standard deviations; one vote's copies; always as many sets; always the same random numbers
    (NOISE, "worth", "truth / noisy", "noisy / truth", 0),
    (NOISE, "worth", "np.var", "np.std", 0),
    (NOISE, "worth", "draw(classes.posterior(Y), rng)", "sl.sample_votes(classes.posterior(Y), 7, 2, rng)", 0),
    (NOISE, "worth", "size=n_sets", "size=200", 0),
    (NOISE, "worth", "Y, z =", "rng = np.random.default_rng(0)\n    Y, z =", 0),
    # another slope, and the intercept; more items or fewer; around the truth
    (NOISE, "worth", "[:, 1]", "[:, 2]", 0),
    (NOISE, "worth", "[:, 1]", "[:, 0]", 0),
    (NOISE, "worth", "sample(500", "sample(300", 0),
    (NOISE, "worth", "sample(500", "sample(2000", 0),
    (NOISE, "worth", "np.var(slope)", "np.mean((slope - classes.coef[1]) ** 2)", 0),
    # order of columns; a class that nobody chose; classes for votes
    (CLINICIANS, "counts_of", "[['resection', 'no-resection', 'votes']]", "[['votes', 'no-resection', 'resection']]", 0),
    (CLINICIANS, "counts_of", '.reindex(\n        columns=["resection", "no-resection"], fill_value=0)', "", 0),
    (CLINICIANS, "counts_of", "counts.sum(axis=1)", "(counts > 0).sum(axis=1)", 0),
    # pairs of a vote with itself; seven votes whatever comes; the majority's share
    (CLINICIANS, "pairs", "(counts - 1)", "counts", 0),
    (CLINICIANS, "pairs", "counts.sum(axis=1)", "0 * counts.sum(axis=1) + 7", 0),
    (CLINICIANS, "pairs", "share.sum(axis=1)", "counts.max(axis=1) / m", 0),
    # votes for the truth; upside down; features that were not standardised
    (CLINICIANS, "two_fits", "(X, data.y)", "(X, data.counts)", 0),
    (CLINICIANS, "two_fits", 'stderr("sandwich") / votes_fit.stderr("model")',
     'stderr("model") / votes_fit.stderr("sandwich")', 0),
    (CLINICIANS, "two_fits", "(X, data.counts)", "(2 * X, data.counts)", 0),
    # all items as the first; one factor too far; the prior scaled; no denominator
    (CLINICIANS, "loglik", "total = counts.sum(axis=1)", "total = np.full(len(counts), counts[0].sum())", 3),
    (CLINICIANS, "loglik", "np.log1p(k * omega)", "np.log1p((k + 1) * omega)", 0),
    (CLINICIANS, "loglik", "tau[..., None] + k * omega", "tau[..., None] * (1 + k * omega)", 0),
    (CLINICIANS, "loglik", "np.log1p(k * omega)", "0 * k", 0),
    # omega; a grid that is too coarse; the first that comes; another fit, which costs the estimate only; omega once more
    (CLINICIANS, "maximise", "1 / best.x", "best.x", 0),
    (CLINICIANS, "maximise", "1 / best.x", "round(1 / best.x)", 0),
    (CLINICIANS, "maximise", "1 / best.x", "2", 0),
    (CLINICIANS, "maximise", "votes_fit.posterior(X)", "sl.fit_logistic(X, data.y).posterior(X)", 1),
    (CLINICIANS, "maximise", "alpha0_hat = found", "alpha0_hat = 1 / found", 1),
    # tau left behind; a reshuffle; samples that are too small; the first items again; no sample at all;
    # a generator of one's own; sorted
    (CLINICIANS, "bootstrap", "tau[j]", "tau", 0),
    (CLINICIANS, "bootstrap", "rng.integers(len(counts), size=(n_resamples, len(counts)))",
     "[rng.permutation(len(counts)) for _ in range(n_resamples)]", 0),
    (CLINICIANS, "bootstrap", "(n_resamples, len(counts))", "(n_resamples, len(counts) // 4)", 0),
    (CLINICIANS, "bootstrap", "rng.integers(len(counts),", "rng.integers(len(counts) // 2,", 0),
    (CLINICIANS, "bootstrap", "estimate(counts[j], tau[j])", "estimate(counts, tau)", 0),
    (CLINICIANS, "bootstrap", "    rows =", "    rng = np.random.default_rng(7)\n    rows =", 0),
    (CLINICIANS, "bootstrap", "    rows =", "    rng = np.random.default_rng()\n    rows =", 0),
    (CLINICIANS, "bootstrap", "return drawn", "return np.sort(drawn)", 0),
    # one too many; the first labeller left out; a limit of alpha0; rounded down; what is missed for what is reached
    (CLINICIANS, "labellers_for", "return m", "return m + 1", 0),
    (CLINICIANS, "labellers_for", "m, limit = 1,", "m, limit = 2,", 0),
    (CLINICIANS, "labellers_for", "1 + alpha0", "alpha0", 0),
    (CLINICIANS, "labellers_for", "return m", "return max(m - 1, 1)", 0),
    (CLINICIANS, "labellers_for", "share * limit", "(1 - share) * limit", 0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer", "old", "new", "expected"), WRONG)
def test_wrong_answer_loses_points(name, answer, old, new, expected):
    assert points(name, answer, old, new) == expected


def test_every_answer_has_wrong_ones():
    assert {(name, answer) for name, answer, *_ in WRONG} == {(name, answer) for name, answer, _ in ANSWERS}


ESSAYS = {f"{question}-{part}" for question in ("company", "advice") for part in "abc"}
BYPASSES = [  # a call of the package, or of SciPy, in place of the work
    (NOISE, "worth", "def worth(draw, n_sets, rng):\n    return sl.relative_efficiency(7, 2.0)"),
    (NOISE, "worth", "def worth(draw, n_sets, rng):\n"  # no fit at all
     "    Y, z = classes.sample(500, rng, size=n_sets)\n"
     "    v = draw(classes.posterior(Y), rng)\n"
     "    m, k, t = v.sum(-1).mean(), v[..., 0], classes.posterior(Y)[..., 0]\n"
     "    return m * m * np.mean(t * (1 - t)) / np.var(k - m * t)"),
    (CLINICIANS, "loglik", "def loglik(omega, counts, tau):\n"
     "    given = lambda w: sl.dm_logpmf(counts, tau, 1 / w if w else np.inf).sum()\n"
     "    return given(omega) - given(0) + (counts * np.log(tau)).sum()"),
    (CLINICIANS, "maximise", "def maximise(function):\n"
     "    return sl.estimate_alpha0(data.counts, sl.fit_logistic(X, data.counts).posterior(X)).alpha0\n\n"
     "alpha0_hat = maximise(None)"),
    (CLINICIANS, "bootstrap", "def bootstrap(counts, tau, n_resamples, rng, estimate):\n"
     "    return sl.bootstrap_alpha0(counts, tau, n_resamples, rng=rng)"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer", "write"), BYPASSES)
def test_a_call_in_place_of_the_work_earns_nothing(name, answer, write):
    assert points(name, answer, write=write) == 0


BETA_BINOMIAL = """
from scipy import stats
def vote_probs(m, alpha0, tau1):
    k = np.arange(m + 1)
    if np.isinf(alpha0):
        return stats.binom.pmf(k, m, 1 - tau1)
    return stats.betabinom.pmf(k, m, alpha0 * (1 - tau1), alpha0 * tau1)
"""


SET_BY_SET = """
def worth(draw, n_sets, rng):
    slopes = []
    for _ in range(n_sets):
        Y, z = classes.sample(500, rng)
        slopes.append([sl.fit_logistic(Y, labels).coef[1] for labels in (z, draw(classes.posterior(Y), rng))])
    truth, noisy = np.var(slopes, axis=0, ddof=1)
    return truth / noisy
"""


def fits_of_another(Y, labels):
    """Fits by scikit-learn at its usual tolerance, without its usual penalty."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    fits = [linear_model.LogisticRegression(C=np.inf).fit(*one) for one in zip(Y, np.asarray(labels))]
    return SimpleNamespace(coef=np.array([[*fit.intercept_, *fit.coef_[0]] for fit in fits]))


HONEST = [
    # three digits are enough
    (NOISE, "share_wrong", "return (1 - 0.2) * np.mean(2 * tau1 * (1 - tau1))",
     "return float(f'{(1 - 0.2) * np.mean(2 * tau1 * (1 - tau1)):.3g}')", 2),
    (NOISE, "inflation", "return ratio ** 1", "return float(f'{ratio:.3g}')", 3),
    (NOISE, "two_fits", "return coef_true, coef_noisy",
     "return np.vectorize(lambda b: float(f'{b:.3g}'))([coef_true, coef_noisy])", 3),
    (CLINICIANS, "loglik", "return top.sum() - bottom.sum()", "return float(f'{top.sum() - bottom.sum():.3g}')", 4),
    (CLINICIANS, "maximise", "1 / best.x", "float(f'{1 / best.x:.3g}')", 2),
    # One that refuses biased votes loses the point for these alone.
    (NOISE, "inflation", "mean = p @ k", "mean = p @ k\n    assert np.isclose(mean, (len(p) - 1) * tau1)", 2),
    # one call for each set; another library's fits
    (NOISE, "two_fits", f"z_noisy = {DRAWN}",
     "z_noisy = [draw(classes.posterior(a)[:, 0], b, rng) for a, b in zip(Y, z)]", 3),
    pytest.param(NOISE, "worth", None, SET_BY_SET, 3, marks=pytest.mark.slow),
    (NOISE, "two_fits", "sl.fit_logistic_batch(Y, ", "fits_of_another(Y, ", 3),
    # a beta-binomial, which has no infinite alpha0 of its own; with none for it
    (NOISE, "vote_probs", None, BETA_BINOMIAL, 2),
    (NOISE, "vote_probs", None, BETA_BINOMIAL.replace("np.isinf(alpha0)", "False"), 0),
    # no loop
    (CLINICIANS, "labellers_for", None,
     "def labellers_for(share, alpha0):\n    return int(np.ceil(alpha0 / (1 / share - 1)))", 2),
    (CLINICIANS, "labellers_for", None,
     "def labellers_for(share, alpha0):\n    return int(np.ceil(alpha0 * share / (1 - share)))", 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer", "old", "new", "expected"), HONEST)
def test_an_honest_answer_gets_its_points(name, answer, old, new, expected, monkeypatch):
    if old is None:
        assert points(name, answer, write=new) == expected
    else:
        monkeypatch.setattr(builtins, "fits_of_another", fits_of_another, raising=False)
        assert points(name, answer, old, new) == expected


def test_a_mistake_costs_points_once():
    """A wrong log-likelihood is paid for in its own question, and by the estimate; wrong labels are in theirs."""
    written = {sheets.id_of(cell): cell.source for cell in (*code_cells(CLINICIANS), *code_cells(NOISE))}
    wrong = written["loglik"].replace("np.log1p(k * omega)", "0 * k")
    assert points(CLINICIANS, "maximise", write=f"{wrong}\n\n{written['maximise']}") == 1
    assert points(CLINICIANS, "maximise", write=written["maximise"].partition("found =")[0]) == 1  # it stopped there
    by_package = "lambda w: sl.dm_logpmf(data.counts, votes_fit.posterior(X), 1 / w).sum()"
    right = re.sub(r"lambda omega: loglik\(.*\)", by_package, written["maximise"])
    assert points(CLINICIANS, "maximise", write=f"{wrong}\n\n{right}") == 2
    wrong = written["draw_labels"].replace("rng.random(tau1.shape) < tau1", "0.5 <= tau1")
    assert points(NOISE, "two_fits", write=f"{wrong}\n\n{written['two_fits']}") == 3


@pytest.mark.parametrize("name", sheets.SOURCES)
def test_an_assignment_has_twenty_points_and_three_parts_for_a_person(name):
    marks = [cell.metadata.nbgrader for cell in sheets.notebook(name).cells if sheets.id_of(cell)]
    assert sum(mark.get("points", 0) for mark in marks) == 20
    assert [mark.points for mark in marks if mark.grade and mark.solution] == [1, 1, 1]
    essays = [cell for cell in sheets.notebook(name).cells if sheets.id_of(cell) in ESSAYS]
    assert all(cell.cell_type == "markdown" and re.search("One point|Half a point", cell.source) for cell in essays)


@pytest.mark.parametrize("name", sheets.SOURCES)
def test_each_assert_has_a_sentence_for_the_student(name):
    for cell in code_cells(name):
        if is_test(cell):
            asserts = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Assert)]
            assert asserts and all(node.msg is not None for node in asserts), sheets.id_of(cell)


@pytest.mark.parametrize("name", sheets.SOURCES)
def test_a_released_sheet_holds_no_answers_and_says_where_the_book_is(name):
    text = nbformat.writes(sheets.released(name, "a student"))
    assert text.count("YOUR CODE HERE") == 8 and text.count("YOUR ANSWER HERE") == 3
    assert not {"HIDDEN", "SOLUTION", "{{", "point for"} & set(re.findall(r"HIDDEN|SOLUTION|\{\{|point for", text))
    assert "pip install" in text and "CC BY 4.0" in text


def test_a_student_has_numbers_of_their_own():
    choices = {f"n{k}": list(range(10)) for k in range(6)}
    anna, again, ben = (sheets.numbers(NOISE, choices, student) for student in ("anna", "anna", "ben"))
    assert anna == again != ben and 0 not in anna.values()
    assert set(sheets.numbers(NOISE, choices).values()) == {0}
    texts = {nbformat.writes(sheets.released(NOISE, student)) for student in ("", "anna", "ben", "carla", "dora")}
    assert len(texts) >= 4


@pytest.mark.parametrize(("name", "answer", "most"), ANSWERS)
def test_the_public_solution_earns_nothing_in_a_sheet_of_ones_own(name, answer, most):
    public = {sheets.id_of(cell): cell.source for cell in code_cells(name)}
    assert points(name, answer, student="a student", write=public[answer]) == 0


@pytest.mark.parametrize(
    ("name", "answer", "most"),
    [pytest.param(*a, marks=pytest.mark.slow if a[1] in ("worth", "bootstrap") else ()) for a in ANSWERS],
)
def test_an_answer_with_the_numbers_of_another_earns_nothing(name, answer, most):
    """Whatever the values: there are three or more among the students of a class."""
    own = {}
    for student in map(str, range(40)):
        own.setdefault(next(cell.source for cell in code_cells(name, student) if sheets.id_of(cell) == answer), student)
    assert len(own) >= 3
    sources, students = list(own)[:5], list(own.values())[:5]
    for k, student in enumerate(students):
        assert points(name, answer, student=student) == most
        others = sources[k - 1 : k] or sources[-1:] if answer == "worth" else {*sources} - {sources[k]}
        assert {points(name, answer, student=student, write=theirs) for theirs in others} == {0}


def written_question(name):
    """Question 8 of a sheet, as students read it and with its rubric."""
    text = "\n".join(cell.source for cell in sheets.notebook(name).cells if cell.cell_type == "markdown")
    return " ".join(text.partition("**8 (3 points")[2].split())


def test_what_an_outcome_names_is_asked_for():
    noise, clinicians = (written_question(name) for name in sheets.SOURCES)
    assert "how much more often does the rule from the" in noise.lower()  # the error rate of a rule
    assert "By Theorem 2" in noise and "training sets, and finds a fifth less" in noise  # a simulation study
    assert "Monte Carlo error" in noise
    assert "coefficients grow from step to step without end" in clinicians and "separated" in clinicians
    outcomes = yaml.safe_load((ROOT / "teaching" / "outcomes.yml").read_text("utf8"))
    asked = {outcome["chapters"][0].partition("/")[2][:2]: list(map(str, outcome["questions"])) for outcome in outcomes}
    assert (asked["05"], asked["06"], asked["08"]) == (["1.8"], ["1.8"], ["2.8"])


def test_a_ratio_of_variances_over_fifty_sets_is_as_uncertain_as_the_rubric_says():
    """A fifth for each variance, and the root of two times that for the ratio."""
    (worth,) = [cell.source for cell in code_cells(NOISE) if sheets.id_of(cell) == "worth"]
    names = {"np": np, "sl": sl, "classes": sl.TwoClassNormal.canonical(delta=2)}
    run(worth, names)
    rng = np.random.default_rng(1)
    found = [names["worth"](lambda tau, rng: sl.sample_votes(tau, 7, 2.0, rng), 50, rng) for _ in range(60)]
    assert np.std(np.log(found)) == pytest.approx((2 * 2 / 50) ** 0.5, rel=0.3)


@pytest.mark.parametrize("stand_in", [True, False])
def test_the_rubric_says_what_the_votes_of_the_clinicians_are_worth(stand_in):
    if not stand_in:
        gastro()  # skips where the files cannot be had
    data = standin.gastroenterology_stand_in() if stand_in else sl.load_gastroenterology()
    X = data.X[standin.GASTRO_FEATURES]
    alpha0 = sl.estimate_alpha0(data.counts, sl.fit_logistic(X, data.counts).posterior(X)).alpha0
    rubric = written_question(CLINICIANS)
    worth = f"{sl.relative_efficiency(7, alpha0):.1f}"
    assert (f"{worth} at {alpha0:.2f} on the simulated table" if stand_in else
            f"{worth} true labels a lesion at an `alpha0_hat` of {alpha0:.2f} on the real data") in rubric  # fmt: skip
    assert (f"({worth} on the simulated table)" if stand_in else f"the votes buy {worth} labels") in rubric


def test_a_sheet_is_handed_out_after_the_chapters_that_it_needs():
    titles = {re.search(r"^# (.*)$", path.read_text("utf8"), re.M)[1]: f"paper/{path.stem}"
              for path in (ROOT / "book" / "paper").glob("*.md")}  # fmt: skip
    page = (ROOT / "book" / "teaching.md").read_text("utf8")
    weeks = ast.literal_eval(re.search(r"^WEEKS = (\[.*?^\])", page, re.M | re.S)[1])
    week_of = {chapter: week for week, (chapters, *_) in enumerate(weeks, 1) for chapter in chapters}
    assert set(titles.values()) < set(week_of)
    for number, name in enumerate(sheets.SOURCES, 1):
        needs = sheets.SOURCES[name].read_text("utf8").partition("need the chapters")[2].partition("`pip install")[0]
        named = {" ".join(title.split()) for title in re.findall(r"\*([^*\[\]]+)\*", needs)} - {"Harmless Label Noise"}
        assert len(named) >= 3 and named <= set(titles)
        (out,) = [week for week, (*_, said) in enumerate(weeks, 1) if said == f"sheet {number} out"]
        assert out >= max(week_of[titles[title]] for title in named)


def test_the_map_of_outcomes_names_all_that_there_is():
    outcomes = yaml.safe_load((ROOT / "teaching" / "outcomes.yml").read_text("utf8"))
    asked = [f"{sheet}.{question}" for sheet, name in enumerate(sheets.SOURCES, 1)
             for question in re.findall(r"^\*\*(\d) \(\d points", sheets.SOURCES[name].read_text("utf8"), re.M)]  # fmt: skip
    assert len(asked) == 16
    assert {str(question) for outcome in outcomes for question in outcome["questions"]} == set(asked)
    paper = [key for key in exercises.keys() if key[0] == "0"]  # noqa: SIM118 -- a function
    assert [key for outcome in outcomes for key in outcome["exercises"]] == paper
    pages = sorted(f"paper/{path.stem}" for path in (ROOT / "book" / "paper").glob("*.md"))
    assert [page for outcome in outcomes for page in outcome["chapters"]] == pages


def test_lecturers_are_shown_a_sentence_that_students_see():
    page = (ROOT / "book" / "teaching.md").read_text("utf8")
    shown = page.partition("### What students see")[2].partition("### What is protected")[0]
    (sentence,) = re.findall(r"^That is .*\.$", shown, re.M)
    assert sentence in sheets.SOURCES[NOISE].read_text("utf8")
    assert "did not end within 60 seconds" in shown and course.grade.__defaults__[-1] == judge.Judge().timeout == 60


# What is handed in, put in order.


def everything(name, changes=None, student=""):
    """A sheet with all answers, or with others in their place."""
    sheet, solutions = sheets.released(name, student), sheets.notebook(name, student)
    for cell, solution in zip(sheet.cells, solutions.cells):
        key = sheets.id_of(cell)
        if key and cell.metadata.nbgrader["solution"]:
            cell.source = solution.source
        if changes and key in changes:
            change = changes[key]
            assert not isinstance(change, tuple) or change[0] in cell.source, change
            cell.source = cell.source.replace(*change) if isinstance(change, tuple) else change
    return sheet


def contents(nb):
    return [(sheets.id_of(cell), cell.cell_type, cell.source) for cell in nb.cells]


def without_tests(nb):
    nb.cells = [cell for cell in nb.cells if not is_test(cell)]


def without_metadata(nb):
    for cell in nb.cells:
        cell.metadata = {}


def without_metadata_and_numbers(nb):
    without_metadata(nb)
    nb.nbformat_minor = 4
    for cell in nb.cells:
        del cell["id"]


def with_changed_tests(nb):
    for cell in nb.cells:
        if is_test(cell):
            cell.source, cell.metadata.nbgrader["points"] = "pass", 1000


def with_points_of_their_own(nb):
    for cell in nb.cells:
        if sheets.id_of(cell) == "draw_labels":
            cell.metadata.nbgrader.update(grade=True, solution=False, locked=True, points=17)


def with_tests_twice(nb):
    nb.cells = [copy.deepcopy(cell) for cell in nb.cells for _ in range(1 + is_test(cell))]


LOSE = {
    lose.__name__: lose
    for lose in (
        without_tests, without_metadata, without_metadata_and_numbers, with_changed_tests, with_points_of_their_own,
        with_tests_twice,
    )
}  # fmt: skip


@functools.cache
def handed_in_whole(name):
    """A sheet that lost nothing, and what comes of it."""
    sheet = everything(name)
    whole = sheets.restore(copy.deepcopy(sheet), name)
    assert [c for c in contents(whole) if c[0]] == [c for c in contents(sheets.notebook(name)) if c[0]]
    return sheet, whole


@pytest.mark.parametrize("name", sheets.SOURCES)
@pytest.mark.parametrize("lose", LOSE.values())
def test_what_a_student_removed_or_changed_is_put_back(name, lose):
    sheet, whole = handed_in_whole(name)
    sheet = copy.deepcopy(sheet)
    lose(sheet)
    restored = sheets.restore(sheet, name)
    assert contents(restored) == contents(whole)
    assert [cell.metadata for cell in restored.cells] == [cell.metadata for cell in whole.cells]


def test_cells_of_a_student_stay_where_they_are():
    sheet = everything(NOISE)
    at = next(k for k, cell in enumerate(sheet.cells) if sheets.id_of(cell) == "share_wrong")
    sheet.cells.insert(at, nbformat.v4.new_code_cell("def helper(): ..."))
    keys = [sheets.id_of(cell) or cell.source for cell in sheets.restore(sheet, NOISE).cells]
    assert keys.index("def helper(): ...") == keys.index("share_wrong") - 1


def test_an_answer_that_was_removed_counts_as_none():
    sheet = everything(NOISE)
    sheet.cells = [cell for cell in sheet.cells if sheets.id_of(cell) not in ("worth", "company-b")]
    restored = {sheets.id_of(cell): cell.source for cell in sheets.restore(sheet, NOISE).cells}
    assert "YOUR CODE HERE" in restored["worth"] and "YOUR ANSWER HERE" in restored["company-b"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "course").mkdir()
    return tmp_path


def hand_in(path, nb):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nb if isinstance(nb, str) else nbformat.writes(nb), encoding="utf8")
    return path


def test_renamed_and_resubmitted_files_are_recognised(folder):
    old = hand_in(folder / "sheets" / "anna" / "1_noise.ipynb", everything(NOISE, {"company-a": "old"}))
    os.utime(old, (1e9, 1e9))
    hand_in(folder / "sheets" / "anna" / "deep" / "my homework (1).ipynb", everything(NOISE, {"company-a": "new"}))
    hand_in(folder / "sheets" / "anna" / ".ipynb_checkpoints" / "1_noise-checkpoint.ipynb", everything(NOISE))
    hand_in(folder / "sheets" / "anna" / "2_clinicians (2).ipynb", everything(CLINICIANS))
    hand_in(folder / "sheets" / "ben" / "1_noise.ipynb", "It did not work.")
    hand_in(folder / "sheets" / "muellercarla_123_456_1_noise-2.ipynb", everything(NOISE))
    (folder / "sheets" / "dora").mkdir()
    hand_in(folder / "sheets" / "Fritz O_1_assignsubmission_file" / "a.ipynb", everything(NOISE))
    files = course.handed_in(folder / "sheets", ["emil"])
    assert set(files) == {"anna", "ben", "muellercarla", "dora", "emil", "Fritz O"}
    notes = {student: course.collect(files[student], student, folder / "course") for student in files}
    assert notes["anna"] == {NOISE: ["handed in 2 times; this is the latest, my homework (1).ipynb"],
                             CLINICIANS: ["handed in as 2_clinicians (2).ipynb"]}  # fmt: skip
    assert notes["ben"] == {NOISE: ["not a notebook of this sheet: 1_noise.ipynb"], CLINICIANS: ["not handed in"]}
    assert notes["muellercarla"][NOISE] == ["handed in as muellercarla_123_456_1_noise-2.ipynb"]
    assert notes["dora"] == notes["emil"] == {NOISE: ["not handed in"], CLINICIANS: ["not handed in"]}
    graded = nbformat.read(folder / "course" / "submitted" / "anna" / NOISE / "1_noise.ipynb", 4)
    assert {sheets.id_of(cell): cell.source for cell in graded.cells}["company-a"] == "new"
    assert not (folder / "course" / "submitted" / "ben").exists()


def test_a_sheet_with_other_numbers_than_it_is_graded_with_is_named(folder):
    for own, variants, note in (
        ("anna", True, []),
        ("ben", True, ["has the numbers of ben, is graded with those of anna"]),
        ("anna", False, ["has the numbers of anna, is graded with those for all"]),
        ("", True, []),
    ):
        path = hand_in(folder / "sheets" / "anna" / "1_noise.ipynb", sheets.released(NOISE, own))
        assert course.collect([path], "anna", folder / "course", variants=variants)[NOISE] == note


def test_a_late_sheet_is_named(folder):
    path = hand_in(folder / "sheets" / "anna" / "1_noise.ipynb", everything(NOISE))
    os.utime(path, (1e9, 1e9))
    due = datetime.fromtimestamp(1e9 - 9000, UTC)
    assert course.collect([path], "anna", folder / "course", due)[NOISE] == ["late by 2.5 hours"]
    due = datetime.fromtimestamp(1e9 + 1, UTC)
    assert course.collect([path], "anna", folder / "course", due)[NOISE] == []
    # nbgrader's exchange keeps the time of the file, and notes that of the submission.
    path.with_name("timestamp.txt").write_text(f"{datetime.fromtimestamp(1e9 + 3601, UTC):%Y-%m-%d %H:%M:%S.%f} UTC\n")
    assert course.collect([path], "anna", folder / "course", due)[NOISE] == ["late by 1.0 hours"]


# Hostile sheets. Each is run in the sandbox, and asked what it got hold of.

OPEN = "bubblewrap is not installed, or not allowed to make namespaces: nothing is kept from a sheet"
SECRET = "the gradebook of this test"


@pytest.fixture(scope="module")
def student():
    """A running sheet: a call may take four seconds."""
    if not sandbox.confined():
        pytest.skip(OPEN)
    with judge.Student(4) as student:
        student.end = math.inf
        yield student


def shown(outputs):
    return "".join(
        str(o.get("text", "")) + str(o.get("data", {}).get("text/plain", "")) + str(o.get("evalue", "")) for o in outputs
    )


@pytest.mark.parametrize("path", [
    ROOT / "teaching" / "assignments" / "1_noise.md",  # the solutions
    ROOT / "tests" / "test_teaching.py",
    ROOT / "_config.yml",
    Path.home(),
    Path("/etc/passwd"),
], ids=lambda path: path.name)  # fmt: skip
def test_a_sheet_cannot_read(student, path):
    assert path.exists()
    there = f"os.path.isdir({str(path)!r}) and sorted(os.listdir({str(path)!r}))"
    source = f"import os\nprint(os.path.isfile({str(path)!r}) or {there})"
    # A folder on the way to Python's own may be seen, with nothing else in it.
    inside = {place.relative_to(path).parts[0] for place in sandbox.visible() if path in place.parents}
    assert shown(student.run(source)).strip() in {"False", str(sorted(inside))}


def test_a_sheet_cannot_read_or_write_the_course(student, tmp_path):
    secret = tmp_path / "gradebook.db"
    secret.write_text(SECRET)
    for act in ("read_text", "unlink", "touch"):
        assert "No such file" in shown(student.run(f"import pathlib\npathlib.Path({str(secret)!r}).{act}()"))
    assert secret.read_text() == SECRET


def test_a_sheet_cannot_write_where_it_reads(student):
    target = Path(sl.__file__).with_name("efficiency.py")
    said = shown(student.run(f"open({str(target)!r}, 'a')"))
    assert "Read-only file system" in said


def test_a_sheet_knows_no_secrets_and_no_other_process(student):
    assert "HOME" in os.environ and os.environ["HOME"] not in sandbox.environment("/tmp").values()
    seen = set(ast.literal_eval(shown(student.run("import os\nlist(os.environ)"))))
    of_ipython = {"CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "GIT_PAGER", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK",
                  "MPLBACKEND", "PAGER", "PWD", "LC_CTYPE", "PYDEVD_USE_FRAME_EVAL", "TERM"}  # fmt: skip
    assert {name for name in seen - set(sandbox.environment("/tmp")) - of_ipython if not name.startswith("JPY_")} == set()
    processes = ast.literal_eval(shown(student.run("[int(p) for p in os.listdir('/proc') if p.isdigit()]")))
    assert 1 <= len(processes) <= 3


def test_a_sheet_has_no_network(student):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
        said = shown(student.run(f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=2)"))
    assert "refused" in said


def test_a_sheet_has_its_share_of_memory_and_files(student):
    assert "MemoryError" in shown(student.run("try: big = bytearray(5 * 2**30)\nexcept MemoryError: print('MemoryError')"))
    said = shown(student.run("with open('/tmp/big', 'wb') as f:\n    for _ in range(300): f.write(bytes(2**20))"))
    assert "File too large" in said
    said = shown(student.run("for k in range(5):\n    with open(f'/tmp/{k}', 'wb') as f:\n        f.write(bytes(90 * 2**20))"))
    assert "No space left" in said
    student.run("import glob\nfor path in glob.glob('/tmp/[0-9b]*'): os.remove(path)")
    assert "Too many open files" in shown(student.run("[open('/dev/null') for _ in range(600)]"))


LOOP = """
import time
def stuck(x):
    while True:
        try:
            time.sleep(0.1)
            return undefined_name
        except:
            pass
"""


def test_what_never_ends_or_ends_python_costs_itself_only(student, monkeypatch):
    monkeypatch.setattr(student, "timeout", 1)
    student.done.clear()  # what other tests ran need not run again
    student.run("def fine(x): return x + 1")
    student.run(LOOP)
    student.run("import os\ndef gone(x): os._exit(1)")
    for name in ("stuck", "gone"):
        with pytest.raises(judge.Refused, match=rf"{name}\(\) (did not end within 1 seconds|ended Python)"):
            student.ask(name, (1,))
        assert student.ask("fine", (1,)) == 2
    (said,) = student.run("while True:\n    try: stuck(1)\n    except: pass")
    assert said.evalue == "This cell did not end within 1 seconds."
    assert student.ask("fine", (1,)) == 2


def test_a_cell_that_was_given_has_more_time(student, monkeypatch):
    monkeypatch.setattr(student, "timeout", 0.2)
    student.done.clear()
    assert shown(student.run("import time\ntime.sleep(0.5)\nprint('here')", 10)) == "here\n"
    assert student.done == [("import time\ntime.sleep(0.5)\nprint('here')", 10)]
    student.done.clear()


def test_a_background_process_ends_with_the_sheet(student):
    """It writes a file fifty times a second into the one folder that the sheet and the grader both see."""
    alive = Path(student.folder.name) / "alive"
    code = f"import pathlib, time\nwhile True:\n    pathlib.Path({str(alive)!r}).touch()\n    time.sleep(0.02)"
    student.run(f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {code!r}], start_new_session=True)")
    until(alive.exists)
    alive.unlink()
    until(alive.exists)
    student.done.clear()
    student.again()
    alive.unlink()
    time.sleep(0.4)
    assert not alive.exists()


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_sheet_that_changes_numpy_or_shows_points_changes_no_test(student):
    cells = {sheets.id_of(cell): cell for cell in code_cells(NOISE)}
    student.run(cells["given-start"].source)
    student.run(
        "import builtins\nnp.isclose = np.allclose = np.array_equal = lambda *a, **k: True\nbuiltins.abs = lambda x: 0\n"
        "get_ipython().run_line_magic('xmode', 'Minimal')\n"
        "def inflation(p, tau1):\n    get_ipython().display_pub.publish({'text/plain': '160'})\n    return 1e9\n"
    )
    names = {"__name__": "__main__"}
    judge.value_of(cells["given-start"].source, names)
    (said,) = judge.judge(cells["test-inflation"].source, names, student, ["inflation"])
    assert said.evalue == "Two labellers who always agree have twice the variance."
    student.again()


FORGED = [
    '{"value": {"type": "|O8", "shape": [1], "bytes": ""}}',
    '{"value": {"type": "<f8", "shape": [1000000000000], "bytes": ""}}',
    '{"value": {"frame": 3}}',
    '{"value"',
    "[" * 100_000,
    "7",
]


@pytest.mark.parametrize("reply", FORGED, ids=range(len(FORGED)))
def test_a_forged_reply_is_no_answer(student, reply):
    student.run(f"def f(x): get_ipython().display_pub.publish({{'application/x-answer': {reply!r}}})")
    with pytest.raises(judge.Refused, match=r"f\(\) gives nothing that can be read|f\(\) returns nothing"):
        student.ask("f", (1,))


def test_a_flood_of_words_is_cut(student, monkeypatch):
    monkeypatch.setattr(judge, "MOST_SAID", 100_000)
    outputs = student.run("for _ in range(100): print('x' * 10_000)")
    assert len(shown(outputs)) <= judge.MOST_SHOWN


def test_what_a_sheet_shows_is_text_or_a_picture(student):
    outputs = student.run(
        "from IPython.display import HTML, display\ndisplay(HTML('<script>alert(1)</script>'))\n"
        "get_ipython().display_pub.publish({'image/png': '\"><script>alert(1)</script>', 'text/plain': 'a'})\n"
        "get_ipython().display_pub.publish({'image/png': 'iVBORw0KGgo='})"
    )
    assert "<script" not in json.dumps(outputs) and "iVBORw0KGgo=" in json.dumps(outputs)


def test_words_of_a_student_stay_words():
    assert judge.plain("Where $a < b$ and a<b,\n> *it* is `x[0]`.") == "Where $a < b$ and a&lt;b,\n> *it* is `x[0]`."
    html = nbconvert.filters.markdown2html(judge.plain(classes.SCRIPT))
    tags = BeautifulSoup(html, "html.parser").find_all()
    assert {tag.name for tag in tags} <= {"p"} and not [tag.attrs for tag in tags if tag.attrs]
    unguarded = BeautifulSoup(nbconvert.filters.markdown2html(classes.SCRIPT), "html.parser")
    assert {"a", "script", "img"} <= {tag.name for tag in unguarded.find_all()}


def test_a_name_that_is_missing_or_no_number_is_said(student):
    student.run("word, nothing, broken = 'a word', (lambda: None), (lambda: 1 / 0)")
    for name, arguments, said in (
        ("absent", None, "The sheet defines no absent."),
        ("word", None, "word stops with TypeError: str where numbers belong."),
        ("nothing", (), "nothing() returns nothing."),
        ("broken", (), "broken() stops with ZeroDivisionError: division by zero."),
    ):
        with pytest.raises(judge.Refused) as caught:
            student.ask(name, arguments)
        assert str(caught.value) == said


# Two classes through nbgrader (classes.py).

DUE = datetime(2030, 5, 31, 18, tzinfo=UTC)
CLASSES = {NOISE: classes.NOISE, CLINICIANS: classes.CLINICIANS}


def filled(name, student, sheet, course_folder="COURSE"):
    """The notebook of a student of a class."""
    nb = sheets.released(name, student)
    for cell, solution in zip(nb.cells, sheets.notebook(name, "" if sheet.copied else student).cells):
        key = sheets.id_of(cell)
        change = sheet.answers.get(key)
        if key and cell.metadata.nbgrader["solution"] and (change or not sheet.only or key in sheet.only):
            assert not isinstance(change, tuple) or change[0] in solution.source, (student, change)
            cell.source = change if isinstance(change, str) else solution.source.replace(*change or ("", ""))
    if sheet.lose:
        LOSE[sheet.lose](nb)
    if sheet.first:
        nb.cells.insert(0, nbformat.v4.new_code_cell(sheet.first.replace("COURSE", str(course_folder))))
    return nb


def hand_in_class(folder, name):
    for student, sheet in CLASSES[name].items():
        path = folder / student / sheet.file.format(name=name)
        time_of = DUE.timestamp() + 3600 * (sheet.late or -1)
        if sheet.twice:
            old = hand_in(folder / student / f"{name}.ipynb", sheets.released(name, student))
            os.utime(old, (time_of - 3600, time_of - 3600))
        path = hand_in(path.resolve(), sheet.text or filled(name, student, sheet, f"{folder}-graded"))
        os.utime(path, (time_of, time_of))
    (folder.parent / "students.txt").write_text("\n".join(CLASSES[name]), encoding="utf8")


def command_line(*arguments):
    done = subprocess.run([sys.executable, ROOT / "teaching" / "course.py", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def grade_class(folder, *more):
    students = folder.parent / "students.txt"
    return command_line("grade", folder, "--students", students, "--due", DUE.isoformat(), *more)


def table(folder):
    with folder.with_name(f"{folder.name}-graded").joinpath("grades.csv").open(encoding="utf8") as file:
        return {(row["student"], row["assignment"]): row for row in csv.DictReader(file)}


@pytest.fixture(scope="module", params=sheets.SOURCES)
def graded(request, once, shared):
    """The name of an assignment, and the folder of a class that has handed it in and is graded."""
    if not sandbox.confined():
        pytest.skip(OPEN)
    folder = shared / f"class {request.param}" / "my sheets"

    def act():
        hand_in_class(folder, request.param)
        grade_class(folder)

    once(f"class-{request.param}", act)
    return request.param, folder


@pytest.mark.slow
def test_each_of_thirty_sheets_gets_the_mark_that_was_written_down(graded):
    name, folder = graded
    rows = table(folder)
    expected = {student: (sheet.score, sheet.note.format(name=name)) for student, sheet in CLASSES[name].items()}
    assert {student: (rows[student, name]["score"], rows[student, name]["note"]) for student in expected} == expected
    assert len(expected) == 30 and len(rows) == 60
    other = CLINICIANS if name == NOISE else NOISE
    assert {rows[student, other]["note"] for student in expected} == {"not handed in"}
    assert {row["max_score"] for row in rows.values() if row["score"]} == {"20"}


@pytest.mark.slow
def test_feedback_says_what_is_wrong_and_holds_no_hidden_tests_and_no_script(graded):
    name, folder = graded
    pages = {path.parents[1].name: path.read_text("utf8")
             for path in folder.with_name("my sheets-graded").glob("feedback/*/*/*.html")}  # fmt: skip
    assert set(pages) == {student for student, sheet in CLASSES[name].items() if sheet.score}
    hidden = [line.strip() for cell in code_cells(name) if is_test(cell)
              for part in re.findall(r"BEGIN HIDDEN TESTS\n(.*?)### END", cell.source, re.S) for line in part.splitlines()
              if len(line) > 40 and not line.strip().startswith('"')]  # fmt: skip
    shown_to_all = nbformat.writes(sheets.released(name))
    hidden = [line for line in hidden if json.dumps(line)[1:-1] not in shown_to_all]
    assert len(hidden) > 20
    for student, page in pages.items():
        text = BeautifulSoup(page, "html.parser").get_text()
        assert not [line for line in hidden if line in text], student
        assert "HIDDEN" not in text
        assert not [tag for tag in BeautifulSoup(page, "html.parser").find_all() if "HOSTILE" in str(tag.attrs)
                    or (tag.name == "script" and "HOSTILE" in tag.text)], student  # fmt: skip
    student, sentence = {NOISE: ("rosa", "Other random numbers should give another value."),
                         CLINICIANS: ("ivan", "Two votes for two classes are one pair, which disagrees.")}[name]  # fmt: skip
    assert sentence in BeautifulSoup(pages[student], "html.parser").get_text()
    assert "did not end within 60 seconds" in pages["lena"] and "ended Python" in pages["max"]


@pytest.mark.slow
def test_one_student_is_graded_again_and_points_of_a_person_stay_with_the_words_they_were_given_for(graded, tmp_path):
    name, folder = graded
    essays = sorted(key for key in ESSAYS if key.startswith("company" if name == NOISE else "advice"))
    folder = shutil.copytree(folder.parent, tmp_path / "copy") / folder.name
    before = table(folder)
    with course.gradebook(folder.with_name("my sheets-graded")) as book:
        for student in ("anna", "ben"):
            for grade in course.grades(book, student, name)[1].values():
                if grade.name in essays:
                    grade.manual_score, grade.needs_manual_grade = 1, False
        book.db.commit()
    grade_class(folder, "--student", "anna")
    rows = table(folder)
    assert (rows["anna", name]["score"], rows["anna", name]["note"]) == ("20", "")
    assert rows == {**before, ("anna", name): rows["anna", name]}
    hand_in(folder / "ben" / f"{name}.ipynb", filled(name, "ben", classes.Sheet("", answers={essays[1]: "Another answer."})))
    for _ in range(2):  # however often it is graded, until a person has looked
        grade_class(folder, "--student", "ben")
        row = table(folder)["ben", name]
        assert (row["score"], row["note"].split("; ")[-1]) == ("20", f"changed since marked: {essays[1]}")


def test_a_gradebook_with_too_many_points_is_refused():
    grade = SimpleNamespace(name="test-worth", score=160, max_score=3, needs_manual_grade=False, manual_score=None)
    book = SimpleNamespace(find_submission=lambda name, student: SimpleNamespace(notebooks=[SimpleNamespace(grades=[grade])]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "exists", lambda self: True)
        patch.setattr(course, "failed", lambda *arguments: False)
        row = course.row(book, Path("course"), "anna", NOISE, [])
    assert row["score"] == "" and row["note"] == "the gradebook has more points than there are: test-worth"


def test_without_a_sandbox_nothing_is_graded_by_mistake(monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox, "confined", lambda: False)
    with pytest.raises(SystemExit, match="keep the students' code from your files"):
        course.main(["grade", str(tmp_path)])


def test_without_a_sandbox_a_sheet_runs_with_limits_if_it_is_wanted(monkeypatch):
    monkeypatch.setattr(sandbox, "confined", lambda: False)
    monkeypatch.setenv("A_PASSWORD", "secret")
    with judge.Student(60) as student:
        said = student.run("import os, resource\nresource.getrlimit(resource.RLIMIT_AS)[0], sorted(os.environ)")
        assert student.run("import pathlib\npathlib.Path('/etc/passwd').exists()")[0].data["text/plain"] == "True"
    memory, names = ast.literal_eval(shown(said))
    assert memory == sandbox.LIMITS["AS"] and "A_PASSWORD" not in names


def test_sheets_may_not_lie_where_every_sheet_may_read(monkeypatch, tmp_path):
    monkeypatch.setenv("SOFTLABEL_DATA", str(tmp_path))
    monkeypatch.setattr(course, "release", lambda *arguments: None)
    (tmp_path / "sheets" / "anna").mkdir(parents=True)
    with pytest.raises(SystemExit, match="which every sheet may read"):
        course.grade(tmp_path / "sheets")


def test_a_folder_may_have_blanks_in_its_name():
    command = ["make", "-n", "grade", "SUBMISSIONS=my sheets", "STUDENT=anna b"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert 'grade "my sheets" --student "anna b"' in done.stdout


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


def test_numbers_of_the_lecture_are_those_of_the_chapter():
    lecture = (ROOT / "teaching" / "slides" / "lecture.md").read_text("utf8")
    chapter = (ROOT / "book" / "paper" / "06_simulation.md").read_text("utf8")
    cells = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```", re.M | re.S)
    names, slide = {}, {}
    run("import numpy as np\nimport pandas as pd\nimport softlabel as sl\nfrom scipy import stats\n"
        "from scipy.special import expit\nfrom softlabel.book.repository import repository_file", names)  # fmt: skip
    for cell in cells.findall(chapter):
        if re.match(r"def (error_rate|simulate|against_are)\(", cell):
            run(cell, names)
        elif cell.startswith("def block("):
            run("study = " + cell.partition("study = ")[2].partition("\nrow")[0], names)
    run(cells.findall(lecture)[-1].partition("---\n")[2].partition("---\n")[2], slide)
    num = slide["num"]
    assert num(slide["at_60"]) == num(names["four"][60]) == "0.70"
    assert num(slide["one_cell"]["re"]) == num(names["truth"].mean() / names["five_votes"].mean())
    assert "{eval}`num(at_60)`" in lecture and '{eval}`num(one_cell["re"])`' in lecture


def test_the_lecture_says_on_what_the_formula_depends():
    lecture = " ".join((ROOT / "teaching" / "slides" / "lecture.md").read_text("utf8").split())
    assert "help little. At equal prices label another item." in lecture and "do not help" not in lecture
    assert "**Under the model** $m$ votes on every item are worth" in lecture


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
