"""One large fit: time, peak memory, and whether the cost is linear in the number of items."""

import resource
import sys
from pathlib import Path

import numpy as np
from scipy.special import expit

import softlabel as sl
from benchmarks.harness import Contestant, aim, compare, fresh, installed

TOLERANCE = 1e-4


def make(n, p):
    """Features (n, p) and labels, without work arrays of the size of the features."""
    rng = np.random.default_rng(1)
    X = np.empty((n, p))
    rng.standard_normal(out=X)
    beta = rng.normal(size=p) * 2 / np.sqrt(p)
    return X, (rng.random(n) < expit(X @ beta)).astype(np.int8)


def softlabel(X, y):
    return sl.fit_logistic(X, y).coef


def scikit_learn(X, y):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-6).fit(X, y)
    return np.r_[model.intercept_, model.coef_[0]]


def glum(X, y):
    from glum import GeneralizedLinearRegressor

    model = GeneralizedLinearRegressor(family="binomial", alpha=0, gradient_tol=1e-6).fit(X, y)
    return np.r_[model.intercept_, model.coef_]


TOOLS = {  # what it needs, and how it fits
    "softlabel": ("softlabel", softlabel),
    "scikit-learn newton-cholesky": ("sklearn", scikit_learn),
    "glum": ("glum", glum),
}


def extra_memory(tool, n, p):
    """Peak memory of a fit beyond what was there before, as a multiple of the features. To be called in a fresh process.

    A small fit comes first: what a tool loads is not counted.
    """
    for rows in (2000, n):
        X, y = make(rows, p)
        before = peak_memory()
        TOOLS[tool][1](X, y)
    return (peak_memory() - before) / X.nbytes


def peak_memory():
    """Bytes this process has had at most. On Linux ``ru_maxrss`` would count its parent's too."""
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(status.read_text().split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def run(all_cores, tiny=False):
    """Rows of the table; memory and the cost of more items with all cores only."""
    rounds, less = (1, 250) if tiny else (3, 1)
    rows = []
    for n, p in [(1_000_000, 50), (100_000, 200)]:
        rows += one_size(f"{n:,} items, {p} features", n // less, p // (10 if tiny else 1), rounds, all_cores)
    return rows + (more_items(rounds, less) if all_cores else [])


def one_size(case, n, p, rounds, all_cores):
    X, y = make(n, p)
    contestants = {}
    for tool, (needs, fit) in TOOLS.items():
        if installed(needs):
            fit(X[:2000], y[:2000])  # loads
        contestants[tool] = Contestant(lambda fit=fit: fit(X, y), needs=needs)
    rows = compare(case, "fit", contestants, rounds, TOLERANCE, warm_up=False)
    for tool in ("scikit-learn newton-cholesky", "glum"):
        aim(rows, tool, at_least=1)
    if all_cores:
        del X, y
        for row in rows:
            if row["seconds"]:
                row["memory"] = 1 + fresh(extra_memory, row["tool"], n, p)
        aim(rows, "softlabel", "of the data", at_most=1.3, measured=rows[0]["memory"])
    return rows


def more_items(rounds, less):
    """Ten times as many items: is the time of an item the same?"""
    contestants = {}
    for n in (1_000_000, 10_000_000):
        X, y = make(n // less, 10)
        contestants[f"softlabel, {n:,} items"] = Contestant(lambda X=X, y=y: softlabel(X, y), n // less)
    rows = compare("10 features", "item", contestants, rounds, None)
    aim(rows, "softlabel, 10,000,000 items", "times", at_most=1.25)
    return rows
