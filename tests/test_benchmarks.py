"""The benchmarks run, their contestants agree, and their file holds what the book reads. Nothing here is timed."""

import importlib
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from scipy.special import expit, logit

import softlabel as sl

sys.path.insert(0, str(ROOT))  # the benchmarks are not installed
harness = importlib.import_module("benchmarks.harness")
large_fit = importlib.import_module("benchmarks.large_fit")

PEERS = {
    "cold_start": {
        "NumPy, SciPy and pandas",
        "scikit-learn newton-cholesky",
        "statsmodels GLM",
        "its sampling, and fits by JAX",
    },
    "small_fits": {"JAX, vmap of Newton", "statsmodels GLM", "R glm.fit", "scikit-learn newton-cholesky"},
    "large_fit": {"scikit-learn newton-cholesky", "glum"},
    "votes": {"floor: NumPy's beta and binomial", "SciPy, betabinom.rvs", "SciPy, betaln", "crowd-kit"},
}
UNCOMPARED = {"Import", "Table 1, cold", "10 features"}  # cases that have no answers, or not the same


def check(results, rounds):
    """What the book takes for granted, whatever the figures are."""
    assert results["machine"]["versions"]["numpy"] and results["machine"]["cpu"]
    rows = results["rows"]
    for subject, peers in PEERS.items():
        assert peers <= {row["tool"] for row in rows if row["subject"] == subject}
    for row in rows:
        assert row["case"] and row["cores"] and row["unit"]
        if row["why"]:
            assert "is not installed" in row["why"] and row["seconds"] is None is row["ratio"]
            continue
        assert len(row["ratio"]) == len(row["seconds"]) >= rounds and min(row["seconds"]) > 0
        if row["case"] not in UNCOMPARED and row["tool"] != "floor, in NumPy":
            assert row["difference"] <= row["tolerance"] <= 0.2
            assert row["difference"] > 0 or row["tool"].startswith("softlabel"), "nothing was compared"
    goals = [row["goal"] for row in rows if row["goal"]]
    assert len(goals) >= 15
    for goal in goals:
        assert (goal["measured"] is None) == (goal["met"] is None)
    return rows


def test_labels_made_of_votes_are_compared(monkeypatch):
    """Votes with a lean: labels are as right as the majority is, and some true labels make a better rule."""
    consensus = importlib.import_module("benchmarks.consensus")
    monkeypatch.setattr(consensus, "N_TRUTHS", 200)
    X, y = sl.TwoClassNormal.canonical(2.0).sample(400, rng=0)
    tau = sl.TwoClassNormal.canonical(2.0).posterior(X)[:, 0]
    leaning = expit(logit(tau) + 2)
    positive = sl.sample_votes(np.column_stack([leaning, 1 - leaning]), 3, 5.0, rng=1)[:, 0]
    label = np.where(np.arange(3) < positive[:, None], "yes", "no").ravel()
    votes = pd.DataFrame({"item": np.repeat(np.arange(400), 3), "annotator": np.tile(np.arange(3), 400), "label": label})
    table = consensus.compare(pd.DataFrame(X), y, votes, np.random.default_rng(0))
    of_votes, with_truth = table.loc["softlabel: the votes"], table.loc["softlabel: the votes, and 200 true labels"]
    assert of_votes["labels right"] == np.mean((positive >= 2) == (y == 1))
    assert of_votes["error of the rule"] > 0.25 > 0.2 > with_truth["error of the rule"]


@pytest.mark.slow
def test_a_tiny_run_ends_and_its_contestants_agree(tmp_path):
    path = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--output", str(path)]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    assert not done.returncode, done.stderr
    rows = check(json.loads(path.read_text("utf8")), rounds=1)
    assert all(row["tool"] in done.stdout and (row["why"] or "") in done.stdout for row in rows)
    assert all(row["memory"] >= 1 for row in rows if "memory" in row)
    assert any("memory" in row for row in rows)


def test_the_file_the_book_reads_is_of_a_full_run():
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text("utf8"))
    assert not results["tiny"]
    check(results, rounds=3)


def contestants(answer, **options):
    return {
        "ours": harness.Contestant(lambda: np.array([1.0, 2000.0])),
        "peer": harness.Contestant(lambda: np.asarray(answer), **options),
    }


@pytest.mark.parametrize("answer", [[1.1, 2000], [1, 2201], [1, np.nan]])
def test_a_wrong_answer_is_no_benchmark(answer):
    with pytest.raises(ArithmeticError, match="peer differs from ours"):
        harness.compare("case", "fit", contestants(answer), rounds=1, tolerance=0.05)


def test_differences_are_relative_to_large_values():
    _, peer = harness.compare("case", "fit", contestants([1.0, 2020.0]), rounds=3, tolerance=0.05)
    assert peer["difference"] == pytest.approx(0.01)


def test_a_ratio_is_taken_within_a_round_and_a_goal_is_judged_by_the_median():
    watch = iter([1, 10, 2, 20, 4, 40])  # a machine that gets slower, and a peer that always takes ten times as long
    slow = {name: harness.Contestant(lambda: ([0.0], next(watch))) for name in ("ours", "peer")}
    rows = harness.compare("case", "fit", slow, rounds=2, tolerance=1)
    assert rows[0]["seconds"] == [2, 4]  # the first round is not counted
    assert rows[1]["ratio"] == [10, 10]
    for tool, unit, bound, met in [
        ("peer", "times ours", {"at_least": 10}, True), ("peer", "times ours", {"at_least": 10.1}, False),
        ("ours", "s", {"at_most": 3}, True), ("ours", "s", {"at_most": 2.9}, False),
    ]:  # fmt: skip
        harness.aim(rows, tool, unit, **bound)
        assert next(row["goal"]["met"] for row in rows if row["tool"] == tool) is met


def test_what_is_missing_is_named_with_the_reason():
    rows = harness.compare("case", "fit", contestants([0, 0], needs="no_such_program"), rounds=1, tolerance=0)
    harness.aim(rows, "peer", at_least=1)
    assert rows[1]["seconds"] is None and "no_such_program is not installed" in rows[1]["why"]
    assert rows[1]["goal"]["met"] is None


def greedy(n, p):
    """Memory of a "fit" that needs two arrays of the size of its features."""
    large_fit.TOOLS["greedy"] = ("numpy", lambda X, y: np.ones((2, *X.shape)))
    return large_fit.extra_memory("greedy", n, p)


@pytest.mark.slow
def test_memory_is_seen():
    assert harness.fresh(greedy, 200_000, 20) == pytest.approx(2, abs=0.3)


@pytest.mark.slow
def test_reports_of_growing_tables_are_timed(capsys):
    report = importlib.import_module("benchmarks.report")
    rows = report.main(report.TINY)
    assert [row["votes"] for row in rows] == [300, 600] and all(row["seconds"] > 0 and row["MB"] > 50 for row in rows)
    assert "further 100,000 votes" in capsys.readouterr().out
