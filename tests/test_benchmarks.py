"""The benchmarks run, their contestants agree, and their file holds what the book reads. Nothing here is timed."""

import importlib
import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT))  # the benchmarks are not installed
harness = importlib.import_module("benchmarks.harness")
large_fit = importlib.import_module("benchmarks.large_fit")

FIELDS = {"subject", "case", "tool", "cores", "unit", "seconds", "ratio", "difference", "tolerance"}
MACHINE = {"cpu", "cores", "memory_gb", "system", "date", "versions"}
PEERS = {
    "small_fits": [
        "JAX, vmap of Newton", "statsmodels GLM", "statsmodels Logit", "scikit-learn lbfgs", "scikit-learn newton-cholesky",
        "SciPy minimize (BFGS)", "R glm.fit",
    ],
    "large_fit": ["softlabel, float32 features", "scikit-learn newton-cholesky", "glum", "statsmodels GLM"],
    "alpha0": ["SciPy, betabinom.logpmf", "SciPy, betaln"],
    "sampling": ["floor: NumPy's beta and binomial", "SciPy, betabinom.rvs"],
}  # fmt: skip


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Results of all subjects at sizes at which the times mean nothing."""
    path = tmp_path_factory.mktemp("benchmarks") / "results.json"
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--output", str(path)]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    assert not done.returncode, done.stderr
    return {"printed": done.stdout, **json.loads(path.read_text("utf8"))}


@pytest.mark.slow
@pytest.mark.parametrize("subject, tool", [(s, tool) for s, tools in PEERS.items() for tool in tools])
def test_peers_agree_with_ours(tiny, subject, tool):
    rows = [row for row in tiny["rows"] if (row["subject"], row["tool"]) == (subject, tool)]
    assert rows
    if rows[0]["seconds"] is None:
        pytest.skip(f"{tool} is not installed")
    for row in rows:
        assert 0 <= row["difference"] <= row["tolerance"] <= 0.2, row
        assert row["difference"] > 0, "nothing was compared"


@pytest.mark.slow
def test_results_have_the_promised_fields(tiny):
    assert set(tiny["machine"]) == MACHINE
    assert tiny["machine"]["versions"]["numpy"] == np.__version__
    assert {row["subject"] for row in tiny["rows"]} == set(PEERS)
    for row in tiny["rows"]:
        assert set(row) >= FIELDS
        assert row["tool"] in tiny["printed"]
        if row["ratio"]:
            assert len(row["ratio"]) == len(row["seconds"])
    memory = [row for row in tiny["rows"] if row.get("extra_memory") is not None]
    assert {row["tool"] for row in memory} >= {"softlabel", "statsmodels GLM"}


def test_the_file_the_book_reads_is_of_a_full_run():
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text("utf8"))
    assert set(results["machine"]) == MACHINE
    assert results["machine"]["cpu"]
    for subject, tools in PEERS.items():
        rows = [row for row in results["rows"] if row["subject"] == subject]
        assert {row["tool"] for row in rows} >= {"softlabel", *tools}
        assert max(len(row["seconds"] or []) for row in rows) >= 3
        assert all(row["difference"] <= row["tolerance"] for row in rows if row["difference"] is not None)


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
    assert len(peer["seconds"]) == len(peer["ratio"]) == 3


def test_a_ratio_is_taken_within_a_round():
    watch = iter([1, 10, 2, 20, 4, 40])  # a machine that gets slower, and a peer that always takes ten times as long
    slow = {name: harness.Contestant(lambda: ([0.0], next(watch))) for name in ("ours", "peer")}
    ours, peer = harness.compare("case", "fit", slow, rounds=2, tolerance=1)
    assert ours["seconds"] == [2, 4]  # the first round is not counted
    assert peer["ratio"] == [10, 10]


def test_what_is_missing_is_listed():
    _, peer = harness.compare("case", "fit", contestants([0, 0], needs="no_such_program"), rounds=1, tolerance=0)
    assert peer["seconds"] is None and peer["ratio"] is None


def greedy(n, p):
    """Memory of a "fit" that needs two arrays of the size of its features."""
    large_fit.TOOLS["greedy"] = ("numpy", lambda X, y: np.ones((2, *X.shape)), np.float64)
    return large_fit.extra_memory("greedy", n, p)


def test_memory_is_seen():
    assert harness.fresh(greedy, 200_000, 20) == pytest.approx(2, abs=0.3)
