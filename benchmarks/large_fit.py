"""One large fit: time, peak memory, and whether the cost is linear in the number of items."""

import resource
import sys
from pathlib import Path

import numpy as np
from scipy.special import expit

import softlabel as sl
from benchmarks.harness import Contestant, compare, fresh, installed

TOLERANCE = 1e-4


def make(n, p, dtype=np.float64):
    """Features (n, p) and labels, without work arrays of the size of the features."""
    rng = np.random.default_rng(1)
    X = np.empty((n, p), dtype)
    rng.standard_normal(dtype=dtype, out=X)
    beta = rng.normal(size=p).astype(dtype) * 2 / np.sqrt(p)
    return X, (rng.random(n) < expit(X @ beta)).astype(np.int8)


def with_intercept(X):
    """For a peer that wants a column of ones; made before the clock starts."""
    x = np.empty((X.shape[0], X.shape[1] + 1), X.dtype)
    x[:, 0], x[:, 1:] = 1, X
    return x


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


def statsmodels_glm(x, y):
    import statsmodels.api as sm

    return sm.GLM(y, x, family=sm.families.Binomial()).fit().params


TOOLS = {  # what it needs, how it fits, its features
    "softlabel": ("softlabel", softlabel, np.float64),
    "softlabel, float32 features": ("softlabel", softlabel, np.float32),
    "scikit-learn newton-cholesky": ("sklearn", scikit_learn, np.float64),
    "glum": ("glum", glum, np.float64),
    "statsmodels GLM": ("statsmodels", statsmodels_glm, np.float64),
}


def extra_memory(tool, n, p):
    """Peak memory of a fit beyond what was there before, as a multiple of the features. To be called in a fresh process.

    A small fit comes first: what a tool loads and compiles is not counted.
    """
    _, fit, dtype = TOOLS[tool]
    prepare = with_intercept if fit is statsmodels_glm else np.asarray
    for rows in (2000, n):
        X, y = make(rows, p, dtype)
        X = prepare(X)
        before = peak_memory()
        fit(X, y)
    return (peak_memory() - before) / X.nbytes


def peak_memory():
    """Bytes this process has had at most. On Linux ``ru_maxrss`` would count its parent's too."""
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * int(status.read_text().split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def run(all_cores, tiny=False):
    """Rows of the table; memory and the cost of more items with all cores only."""
    sizes = [(4000, 5)] if tiny else [(1_000_000, 50), (100_000, 200)]
    rounds, rows = 1 if tiny else 3, []
    for n, p in sizes:
        memory = {}
        if all_cores:
            memory = {tool: fresh(extra_memory, tool, n, p) for tool, (needs, *_) in TOOLS.items() if installed(needs)}
        rows += [{**row, "extra_memory": memory.get(row["tool"])} for row in one_size(n, p, rounds)]
    return rows + (more_items(rounds, [1000, 4000] if tiny else [10**4, 10**5, 10**6, 10**7]) if all_cores else [])


def one_size(n, p, rounds):
    X, y = make(n, p)
    features = {"column of ones": with_intercept(X), np.float32: X.astype(np.float32), np.float64: X}
    contestants = {}
    for tool, (needs, fit, dtype) in TOOLS.items():
        x = features["column of ones" if fit is statsmodels_glm else dtype]
        if installed(needs):
            fit(x[:2000], y[:2000])  # loads and compiles
        contestants[tool] = Contestant(lambda fit=fit, x=x: fit(x, y), needs=needs)
    return compare(f"n = {n:,}, p = {p}", "fit", contestants, rounds, TOLERANCE, warm_up=False)


def more_items(rounds, sizes):
    rows = []
    for n in sizes:
        X, y = make(n, 10, np.float32)
        ours = {"softlabel": Contestant(lambda X=X, y=y: sl.fit_logistic(X, y).coef)}
        rows += [{**row, "n": n} for row in compare(f"n = {n:,}, p = 10", "fit", ours, rounds, TOLERANCE)]
    return rows
