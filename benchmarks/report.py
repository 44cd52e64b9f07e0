"""How long a report takes in a terminal, from files to a page, and how much memory: does it grow as the votes do?

Run as ``python -m benchmarks.report``. Times hold all of it: the start of Python, the import of the package, reading and
writing.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from tabulate import tabulate

from softlabel import TwoClassNormal, sample_votes

SIZES = [(400, 5, 8), (12_000, 10, 300), (100_000, 10, 1000)]  # items, votes on each, annotators
TINY = [(100, 3, 3), (200, 3, 5)]
GOALS = {2_000: (4, 2000), 120_000: (10, 2000), 1_000_000: (60, 2000)}  # seconds, megabytes
RUN = """
import resource, sys
from softlabel.report.command import main
status = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
sys.exit(status)
"""


def write(folder, n, m, n_annotators):
    """A file of votes and one of features."""
    rng = np.random.default_rng(1)
    model = TwoClassNormal.canonical(2, p=5)
    X, _ = model.sample(n, rng)
    s = sample_votes(model.posterior(X), m, 5.0, rng)[:, :1]
    who = (rng.integers(n_annotators, size=(n, 1)) + np.arange(m)) % n_annotators
    said = np.where(rng.permuted(np.arange(m) < s, axis=1), "yes", "no")
    votes = {"item": np.repeat(np.arange(n), m), "annotator": who.ravel(), "label": said.ravel()}
    pd.DataFrame(votes).to_csv(folder / "votes.csv", index=False)
    pd.DataFrame(X.round(4), columns=list("abcde")).rename_axis("item").to_csv(folder / "features.csv")


def measure(n, m, n_annotators):
    """Seconds and megabytes of one report."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, n, m, n_annotators)
        arguments = "report --votes votes.csv --features features.csv --positive yes -q".split()
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", RUN, *arguments], cwd=folder, text=True, capture_output=True, check=True)
        return time.perf_counter() - start, float(done.stderr.splitlines()[-1])


def main(sizes):
    """A table: a row for each number of votes."""
    rows = []
    for n, m, n_annotators in sizes:
        spent, memory = measure(n, m, n_annotators)
        row = {"items": n, "votes": n * m, "annotators": n_annotators, "seconds": round(spent, 1), "MB": round(memory)}
        if goal := GOALS.get(n * m):
            row |= {"goal": f"{goal[0]} s, {goal[1]} MB", "met": "yes" if spent <= goal[0] and memory <= goal[1] else "NO"}
        rows.append(row)
    print(tabulate(rows, headers="keys"))
    first, last = rows[0], rows[-1]
    more = (last["seconds"] - first["seconds"]) / (last["votes"] - first["votes"])
    print(f"{1e5 * more:.2g} seconds for each further 100,000 votes")
    return rows


if __name__ == "__main__":
    main(TINY if "--tiny" in sys.argv else SIZES)
