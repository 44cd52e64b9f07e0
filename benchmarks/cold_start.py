"""What a process pays before anything is warm: imports, its first fit, and Table 1 as a whole."""

import statistics

import numpy as np

import softlabel as sl
from benchmarks.harness import Contestant, aim, compare, new_interpreter
from benchmarks.small_fits import TOLERANCE, jax_newton

DELTAS, ALPHAS = [1, 2, 3, 4], [1, 10, 100, 1000]
DATA = """
import numpy as np
X = np.random.default_rng(0).normal(size=(500, 2))
y = (X[:, 0] > X[::-1, 1]).astype(int)
"""
IMPORTS = {  # what it needs, and the import
    "softlabel": ("softlabel", "import softlabel"),
    "NumPy, SciPy and pandas": ("pandas", "import numpy, scipy, pandas"),
    "scikit-learn": ("sklearn", "import sklearn.linear_model"),
    "statsmodels": ("statsmodels", "import statsmodels.api"),
}
FITS = {  # what it needs, what is imported before the clock starts, and the fit
    "softlabel": ("softlabel", "import softlabel as sl", "b = sl.fit_logistic(X, y).coef"),
    "scikit-learn newton-cholesky": (
        "sklearn",
        "from sklearn.linear_model import LogisticRegression as Fit",
        "fit = Fit(C=np.inf, solver='newton-cholesky', tol=1e-7).fit(X, y); b = [*fit.intercept_, *fit.coef_[0]]",
    ),
    "statsmodels GLM": (
        "statsmodels",
        "import statsmodels.api as sm",
        "b = sm.GLM(y, np.c_[np.ones(500), X], family=sm.families.Binomial()).fit().params",
    ),
}


def timed(before, code, answer="None"):
    """Run code in a new interpreter, which holds the watch."""
    lines = ["import json, time", before, "start = time.perf_counter()", code, "spent = time.perf_counter() - start"]
    return lambda: new_interpreter("\n".join([*lines, f"print(json.dumps([{answer}, spent]))"]))


def samples(n_sims):
    """What Table 1 samples: features and labels, then votes of 5, of 5 more and of 40 more labellers for each alpha0."""
    rng = np.random.default_rng(1)
    for delta in DELTAS:
        model = sl.TwoClassNormal.canonical(delta)
        for _ in range(0, n_sims, 100):
            X, z = model.sample(500, rng, size=min(100, n_sims))
            yield X, z.astype(float), 1
            tau = model.posterior(X)
            for alpha in ALPHAS:
                p, s = sl.sample_probabilities(tau, alpha, rng), 0.0
                for m, more in ((5, 5), (10, 5), (50, 40)):
                    s = s + sl.sample_votes(p, more, rng=rng)[..., 0]
                    yield X, s, m


def fits_by_jax(n_sims):
    """The fits of Table 1 on the same samples; no error rates, no bootstrap."""
    for X, s, m in samples(n_sims):
        jax_newton(X, s, m)()


def run(all_cores, tiny=False):
    """Rows of the table. Files are in the system's cache: the first round is not counted."""
    rounds, n_sims = (1, 20) if tiny else (9, 1000)
    table_1 = f"sl.simulate_relative_efficiency({DELTAS}, [5, 10, 50], {ALPHAS}, n_sims={n_sims}, rng=1)"
    ours = "from benchmarks import cold_start as c\n"
    whole = {
        "softlabel": Contestant(lambda: new_interpreter(f"import softlabel as sl; {table_1}")),
        "its sampling alone, one thread": Contestant(lambda: new_interpreter(f"{ours}for _ in c.samples({n_sims}): pass")),
        "its sampling, and fits by JAX": Contestant(lambda: new_interpreter(f"{ours}c.fits_by_jax({n_sims})"), needs="jax"),
    }
    rows = compare("Table 1, cold", "process", whole, min(rounds, 3), None, not tiny)
    if not all_cores:
        return rows
    aim(rows, "softlabel", "s", at_most=3.5)
    imports = {tool: Contestant(timed("", code), needs=needs) for tool, (needs, code) in IMPORTS.items()}
    loads = compare("Import", "process", imports, rounds, None, not tiny)
    more = statistics.median(a - b for a, b in zip(loads[0]["seconds"], loads[1]["seconds"]))
    aim(loads, "softlabel", "s more", at_most=0.15, measured=more)
    fits = {
        tool: Contestant(timed(before + DATA, code, "list(b)"), needs=needs) for tool, (needs, before, code) in FITS.items()
    }
    first = compare("First fit of a process", "fit", fits, rounds, TOLERANCE, not tiny)
    aim(first, "softlabel", "s", at_most=0.1)
    return loads + first + rows
