"""Studies: their files are of the present code, whole, and the same however often a run was interrupted."""

import csv
import shutil
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from conftest import ROOT

from softlabel.book import studies
from softlabel.book.studies import alpha0_coverage

FOLDER = ROOT / "book" / "studies"
code = cache(studies.code)  # of files that stay as they are


@pytest.mark.parametrize("name", studies.NAMES)
def test_a_file_is_of_the_present_code_and_whole(name, monkeypatch):
    monkeypatch.setattr(studies, "code", code)
    first, *rows = (FOLDER / f"{name}.csv").read_text("utf8").splitlines(keepends=True)
    assert studies.is_of_present_code(name, first), "stale: make studies"
    cells = import_module(f"softlabel.book.studies.{name}").CELLS
    stored = [{key: row[key] for key in cell} for cell, row in zip(cells, csv.DictReader(rows), strict=True)]
    assert stored == [{key: studies._text(value) for key, value in cell.items()} for cell in cells], "unfinished: make studies"


def test_every_file_has_its_study_and_a_chapter_that_reads_it():
    assert sorted(path.name for path in FOLDER.iterdir()) == [f"{name}.csv" for name in studies.NAMES]
    texts = "".join(path.read_text("utf8") for path in (ROOT / "book").rglob("*.md"))
    for name in studies.NAMES:
        assert f'repository_file("book/studies/{name}.csv")' in texts


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the package, to change, and the first line of a study's file by it."""
    folder = tmp_path_factory.mktemp("copied")
    shutil.copytree(ROOT / "softlabel", folder / "softlabel", ignore=shutil.ignore_patterns("__pycache__"))
    head = studies.head("alpha0_coverage", folder)
    assert head == studies.head("alpha0_coverage")
    return folder, head


@pytest.mark.parametrize(
    "module, old, new, stale",
    [
        ("book/studies/alpha0_coverage.py", "n_resamples=200", "n_resamples=100", True),  # its own
        ("overdispersion.py", "MANY = 40_000", "MANY = 50_000", True),  # imported
        ("threads.py", "1 << 17", "1 << 16", True),  # imported by logistic.py
        ("normal.py", "import numpy", "x = 1\nimport numpy", False),  # not imported
        ("book/studies/approach.py", "5000", "6000", False),  # another study
        ("overdispersion.py", '"""How much the votes', '"""How far the votes', False),
        ("threads.py", '"""Rows of an array', '"""Lines of an array', False),  # a function's docstring
        ("threads.py", "# numbers in an array", "# and its size", False),
    ],
)
def test_what_makes_a_study_stale(copied, module, old, new, stale):
    folder, head = copied
    path = folder / "softlabel" / module
    text = path.read_text("utf8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf8")
    assert (studies.head("alpha0_coverage", folder) != head) == stale
    path.write_text(text, "utf8")


@pytest.fixture
def small(monkeypatch):
    """Six cells of a study, with quick rows: where to stop, if anywhere, and which were computed."""
    stop, computed = [], []

    def noted(seed, n, **kind):
        if seed in stop:
            raise KeyboardInterrupt
        computed.append(seed)
        return {"value": n + seed / 7}

    monkeypatch.setattr(studies, "code", code)
    monkeypatch.setattr(alpha0_coverage, "CELLS", alpha0_coverage.CELLS[:6])
    monkeypatch.setattr(alpha0_coverage, "cell", noted)
    return stop, computed


@pytest.fixture
def interrupted(small, tmp_path):
    """File of a run that stopped before its fourth row, in a folder of its own."""
    stop, computed = small
    folder = tmp_path / "interrupted"
    folder.mkdir()
    stop.append(3)
    with pytest.raises(KeyboardInterrupt):
        studies.run("alpha0_coverage", folder, n_jobs=1)
    assert computed == [0, 1, 2]
    stop.clear()
    computed.clear()
    return folder / "alpha0_coverage.csv"


@pytest.mark.parametrize("cut, computed", [(None, [3, 4, 5]), (-9, [2, 3, 4, 5])])  # -9: in the middle of a row
def test_an_interrupted_run_goes_on_where_it_stopped(small, interrupted, tmp_path, cut, computed):
    interrupted.write_text(interrupted.read_text()[:cut])
    studies.run("alpha0_coverage", interrupted.parent, n_jobs=1)
    assert small[1] == computed
    studies.run("alpha0_coverage", tmp_path, n_jobs=1)
    assert interrupted.read_bytes() == (tmp_path / interrupted.name).read_bytes()
    written = interrupted.stat().st_mtime_ns
    studies.run("alpha0_coverage", interrupted.parent, n_jobs=1)
    assert interrupted.stat().st_mtime_ns == written  # nothing is left to do


def test_rows_of_other_code_are_computed_anew(small, interrupted):
    interrupted.write_text(interrupted.read_text().replace("# code ", "# code 0"))
    studies.run("alpha0_coverage", interrupted.parent, n_jobs=1)
    assert small[1] == [0, 1, 2, 3, 4, 5]


def test_a_change_that_changes_no_row_is_confirmed_by_some_of_them(small, tmp_path, monkeypatch):
    monkeypatch.setattr(alpha0_coverage, "CELLS", [alpha0_coverage.CELLS[0] | {"seed": seed} for seed in range(40)])
    studies.run("alpha0_coverage", tmp_path, n_jobs=1)
    path = tmp_path / "alpha0_coverage.csv"
    text, present = path.read_text(), studies.head("alpha0_coverage").split()[-1]
    studies.confirm("alpha0_coverage", tmp_path, n_jobs=1)
    assert path.read_text() == text and len(small[1]) == 40  # nothing is to be confirmed
    path.write_text(text.replace(present, "0123456789abcdef"))
    studies.confirm("alpha0_coverage", tmp_path, n_jobs=1)
    first, *rows = path.read_text().splitlines(keepends=True)
    assert first == f"# code {present}; 10 of 40 rows computed again, all made by code 0123456789abcdef\n"
    assert "".join(rows) == text.partition("\n")[2] and len(small[1]) == 50
    assert studies.is_of_present_code("alpha0_coverage", first)
    studies.run("alpha0_coverage", tmp_path, n_jobs=1)
    assert path.read_text().startswith(first) and len(small[1]) == 50
    changed = small[1][-1]  # a row that has been computed again, and comes out otherwise now
    monkeypatch.setattr(
        alpha0_coverage, "cell", lambda seed, n, **kind: {"value": n + seed / 7 * (1 + 1e-4 * (seed == changed))}
    )
    path.write_text(text.replace(present, "0123456789abcdef"))
    with pytest.raises(ValueError, match=r"alpha0_coverage.csv, 25, .*: value was .* and is .* now: run the study"):
        studies.confirm("alpha0_coverage", tmp_path, n_jobs=1)


def test_rows_of_new_cells_are_left_to_a_run_and_those_of_old_ones_left_out(small, tmp_path, monkeypatch):
    """Rows that stay are confirmed, and the file then holds what a run from the beginning would make."""
    studies.run("alpha0_coverage", tmp_path, n_jobs=1)
    path = tmp_path / "alpha0_coverage.csv"
    path.write_text(path.read_text().replace("# code ", "# code 0"))
    monkeypatch.setattr(alpha0_coverage, "CELLS", [*alpha0_coverage.CELLS[1:], alpha0_coverage.CELLS[0] | {"seed": 100}])
    small[1].clear()
    studies.confirm("alpha0_coverage", tmp_path, n_jobs=1)
    assert len(path.read_text().splitlines()) == 2 + 5
    studies.run("alpha0_coverage", tmp_path, n_jobs=1)
    assert sorted(small[1]) == [1, 2, 3, 4, 5, 100]
    rows = list(csv.DictReader(path.read_text().splitlines()[1:]))
    assert [row["seed"] for row in rows] == ["1", "2", "3", "4", "5", "100"]


def test_only_cells_that_are_new_are_computed(small, tmp_path, monkeypatch):
    """A cell that has changed in the middle, and one that is gone: the file is in the order of the cells all the same."""
    studies.run("alpha0_coverage", tmp_path, n_jobs=1)
    small[1].clear()
    cells = [alpha0_coverage.CELLS[0] | {"seed": 100}, *alpha0_coverage.CELLS[2:]]
    monkeypatch.setattr(alpha0_coverage, "CELLS", cells)
    studies.run("alpha0_coverage", tmp_path, n_jobs=1)
    assert small[1] == [100]
    rows = list(csv.DictReader((tmp_path / "alpha0_coverage.csv").read_text().splitlines()[1:]))
    assert [row["seed"] for row in rows] == ["100", "2", "3", "4", "5"]


def test_rows_do_not_depend_on_the_number_of_processes(monkeypatch, tmp_path):
    monkeypatch.setattr(alpha0_coverage, "CELLS", alpha0_coverage.CELLS[:2])
    studies.run("alpha0_coverage", tmp_path, n_jobs=2)
    ours, stored = (np.loadtxt(folder / "alpha0_coverage.csv", delimiter=",", skiprows=2) for folder in (tmp_path, FOLDER))
    np.testing.assert_allclose(ours, stored[:2], rtol=1e-5)  # six digits are stored
