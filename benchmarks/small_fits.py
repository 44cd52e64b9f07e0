"""Many small fits: the 52,000 logistic regressions of Table 1, on labels and on votes."""

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from threadpoolctl import threadpool_limits

import softlabel as sl
from benchmarks.floor import Floor
from benchmarks.harness import Contestant, compare

DELTAS, MS, ALPHAS = [1, 2, 3, 4], [5, 10, 50], [1, 10, 100, 1000]
TOLERANCE = 1e-4  # of a coefficient, relative where it exceeds 1


class Fits:
    """Data sets X (sets, n, p), and several responses for each: labels, then votes for each alpha0 and m."""

    def __init__(self, sets, n=500, p=2, ms=MS, alphas=ALPHAS):
        rng = np.random.default_rng(1)
        models = [sl.TwoClassNormal.canonical(delta, p) for delta in DELTAS]
        drawn = [model.sample(n, rng, size=-(-sets // len(DELTAS))) for model in models]
        tau = np.concatenate([model.posterior(Y) for model, (Y, _) in zip(models, drawn)])[:sets]
        self.X = np.concatenate([Y for Y, _ in drawn])[:sets]
        self.labels = np.concatenate([z for _, z in drawn])[:sets]
        self.votes = [sl.sample_votes(tau, m, alpha, rng) for alpha in alphas for m in ms]

    def every(self, step):
        """Each step-th data set, with its responses."""
        few = object.__new__(Fits)
        few.X, few.labels, few.votes = self.X[::step], self.labels[::step], [v[::step] for v in self.votes]
        return few

    def __len__(self):
        return len(self.X) * (1 + len(self.votes))

    @property
    def designs(self):
        return np.concatenate([np.ones_like(self.X[..., :1]), self.X], axis=-1)

    @property
    def counts(self):
        """All responses as votes, (responses, sets, n, 2)."""
        labels = np.stack([self.labels, 1 - self.labels], axis=-1)
        return np.stack([labels, *self.votes]).astype(float)


def softlabel(data):
    return lambda: np.stack([sl.fit_logistic_batch(data.X, y).coef for y in (data.labels, *data.votes)])


def loop(data, prepare, fit):
    """A loop of ``fit(*arguments)`` with arguments that ``prepare(X, design, counts)`` makes before the clock starts.

    On one thread: on so little data more threads only stand in each other's way.
    """
    cases = [[prepare(*case) for case in zip(data.X, data.designs, counts)] for counts in data.counts]

    def run():
        with threadpool_limits(1):
            return np.array([[fit(*arguments) for arguments in row] for row in cases])

    return run


def statsmodels_glm(data):
    import statsmodels.api as sm

    family = sm.families.Binomial()

    def prepare(X, design, counts):
        return design, counts[:, 0] if counts.sum() == len(counts) else counts

    return loop(data, prepare, lambda x, y: sm.GLM(y, x, family=family).fit().params)


def statsmodels_logit(data):
    """All items of a data set have the same number of votes, so that shares of votes have the same estimate."""
    from statsmodels.api import Logit

    def prepare(X, design, counts):
        return design, counts[:, 0] / counts.sum(axis=1)

    return loop(data, prepare, lambda x, y: Logit(y, x).fit(disp=0).params)


def scikit_learn(solver):
    def make(data):
        from sklearn.linear_model import LogisticRegression

        def prepare(X, design, counts):
            if counts.sum() == len(counts):
                return X, counts[:, 0], None
            return np.vstack([X, X]), np.repeat([1, 0], len(X)), counts.T.ravel()

        def fit(X, y, weight):
            model = LogisticRegression(C=np.inf, solver=solver, tol=1e-7, max_iter=1000).fit(X, y, weight)
            return np.r_[model.intercept_, model.coef_[0]]

        return loop(data, prepare, fit)

    return make


def scipy_minimize(data):
    def prepare(X, design, counts):
        return design, counts[:, 0], counts.sum(axis=1)

    def fit(x, s, m):
        def loss(b):
            eta = x @ b
            return (m @ -log_expit(eta) + (m - s) @ eta) / m.sum(), x.T @ (m * expit(eta) - s) / m.sum()

        return minimize(loss, np.zeros(x.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-7}).x

    return loop(data, prepare, fit)


def jax_newton(data, size=200):
    """Newton steps, mapped over 200 data sets at a time (which sit in cache), compiled, until the last has converged.

    Features are laid out with the items last. That, and the 200, were the fastest of those tried.
    """
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def step(beta, x, s, m):
        tau = 1 / (1 + jnp.exp(-beta @ x))
        H = (x * (m * tau * (1 - tau))) @ x.T
        return jax.scipy.linalg.solve(H, x @ (s - m * tau), assume_a="pos")

    @jax.jit
    def fit(x, s, m):
        def advance(state):
            beta, _, n = state
            change = jax.vmap(step)(beta, x, s, m)
            return beta + change, jnp.max(jnp.abs(change)), n + 1

        def unfinished(state):
            return (state[1] > 1e-4) & (state[2] < 25)

        return jax.lax.while_loop(unfinished, advance, (jnp.zeros(x.shape[:2]), jnp.inf, 0))[0]

    x = data.designs.swapaxes(1, 2).copy()
    cases = [(c[..., 0].copy(), c.sum(axis=-1)) for c in data.counts]
    parts = [slice(i, i + size) for i in range(0, len(x), size)]
    return lambda: np.stack([np.concatenate([fit(x[i], s[i], m[i]) for i in parts]) for s, m in cases])


def r_glm_fit(data):
    counts = data.counts
    shape = np.array([*data.X.shape, len(counts)], float)
    problem = np.concatenate([a.ravel() for a in (shape, data.X, counts[..., 0], counts.sum(axis=-1))])

    def run():
        with tempfile.TemporaryDirectory() as folder:
            files = [f"{folder}/problem", f"{folder}/coef"]
            problem.tofile(files[0])
            script = Path(__file__).with_name("glm_fit.R")
            done = subprocess.run(["Rscript", script, *files], check=True, text=True, capture_output=True)
            return np.fromfile(files[1]).reshape(*counts.shape[:2], -1), float(done.stdout)

    return run


PEERS = {  # what it needs, and how it is made
    "statsmodels GLM": ("statsmodels", statsmodels_glm),
    "statsmodels Logit": ("statsmodels", statsmodels_logit),
    "scikit-learn lbfgs": ("sklearn", scikit_learn("lbfgs")),
    "scikit-learn newton-cholesky": ("sklearn", scikit_learn("newton-cholesky")),
    "SciPy minimize (BFGS)": ("scipy", scipy_minimize),
    "R glm.fit": ("Rscript", r_glm_fit),
}


def lazily(make, data):
    """``make(data)()``, made at the first call: a peer that is not installed is never made."""
    made = []
    return lambda: (made or made.append(make(data)) or made)[0]()


def run(all_cores, tiny=False):
    """Rows of the table; with all cores also what is measured but once."""
    warnings.simplefilter("ignore", sl.ConvergenceWarning)
    sets, few, rounds = (8, 4, 1) if tiny else (4000, 16, 5)
    data = Fits(sets)
    step = sets // few
    subset = data.every(step)
    fits = [sl.fit_logistic_batch(data.X, y) for y in (data.labels, *data.votes)]
    iterations = int(sum(fit.n_iter.sum() for fit in fits))
    floor = Floor(data.X[::step][:4], fits[0].coef[::step][:4], iterations)

    contestants = {"softlabel": Contestant(softlabel(data), len(data), lambda coef: coef[:, ::step])}
    contestants["JAX, vmap of Newton"] = Contestant(
        lazily(jax_newton, data), len(data), lambda coef: coef[:, ::step], "jax"
    )
    for name, (needs, make) in PEERS.items():
        contestants[name] = Contestant(lazily(make, subset), len(subset), needs=needs)
    contestants["floor"] = Contestant(floor.compiled, len(data))
    contestants["floor, NumPy's exponential"] = Contestant(floor.numpy_exponentials, len(data))
    rows = compare("Fits of Table 1", "fit", contestants, rounds, TOLERANCE)
    rows += table_1(floor, 20 if tiny else 1000, rounds)
    if all_cores:
        rows += few_at_once(rounds, tiny) + many_features(rounds, tiny) + first_call(tiny)
    for row in rows:
        row["iterations"] = iterations / len(data)  # of a fit, in the mean
    return rows


def table_1(floor, n_sims, rounds):
    """Table 1 as a whole, and its parts."""

    def whole():
        sl.simulate_relative_efficiency(DELTAS, MS, ALPHAS, n_sims=n_sims, rng=1)

    def sampling():
        """What Table 1 samples, in the same blocks, on one core: votes of 5, of 5 more and of 40 more labellers."""
        rng = np.random.default_rng(1)
        for delta in DELTAS:
            model = sl.TwoClassNormal.canonical(delta)
            for _ in range(0, n_sims, 100):
                tau = model.posterior(model.sample(500, rng, size=min(100, n_sims))[0])
                for alpha in ALPHAS:
                    p = sl.sample_probabilities(tau, alpha, rng)
                    for more in (5, 5, 40):
                        sl.sample_votes(p, more, rng=rng)

    parts = {
        "whole": Contestant(whole),
        "sampling, one core": Contestant(sampling),
        "exponentials": Contestant(floor.compiled_exponentials),
        "Gram products": Contestant(floor.compiled_grams),
    }
    return compare("Table 1", "table", parts, min(rounds, 3), None)


def few_at_once(rounds, tiny):
    """One call costs something by itself: the fewer data sets, the more of it falls to each."""
    rows = []
    for sets in [1, 4] if tiny else [1, 10, 100, 1000]:
        data = Fits(sets, ms=[5], alphas=[])
        few = data.every(max(1, sets // 10))
        calls = {
            "softlabel": Contestant(softlabel(data), len(data), lambda coef, sets=sets: coef[:, :: max(1, sets // 10)]),
            "statsmodels GLM": Contestant(lazily(statsmodels_glm, few), len(few), needs="statsmodels"),
        }
        rows += [{**row, "sets": sets} for row in compare(f"R = {sets}", "fit", calls, rounds, TOLERANCE)]
    return rows


def many_features(rounds, tiny):
    """The more features, the more of the time is a Gram product, at which every library is good."""
    rows = []
    for p in [2, 5] if tiny else [2, 10, 50]:
        data = Fits(4 if tiny else 40, n=5000, p=p, ms=[5], alphas=[10])
        few = data.every(1 if tiny else 10)
        step = len(data) // len(few)
        calls = {
            "softlabel": Contestant(softlabel(data), len(data), lambda coef, step=step: coef[:, ::step]),
            "statsmodels GLM": Contestant(lazily(statsmodels_glm, few), len(few), needs="statsmodels"),
        }
        rows += [{**row, "p": p} for row in compare(f"n = 5000, p = {p}", "fit", calls, rounds, TOLERANCE)]
    return rows


FIRST_CALL = """
import time
import numpy as np
import softlabel
X = np.random.default_rng(0).normal(size=(1, 500, 2))
for _ in range(2):
    start = time.perf_counter()
    softlabel.fit_logistic_batch(X, X[..., 0] > X[0, :, 1])
    print(time.perf_counter() - start)
"""


def first_call(tiny):
    """A first call compiles, or loads what an earlier process compiled; a tiny run does not wait for the first."""
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ if tiny else {**os.environ, "NUMBA_CACHE_DIR": folder}
        for name in ("first call, nothing compiled", "first call, compiled before"):
            code = [sys.executable, "-W", "ignore", "-c", FIRST_CALL]
            done = subprocess.run(code, check=True, text=True, capture_output=True, env=environment)
            seconds[name], seconds["later call"] = map(float, done.stdout.split())
    shape = {"case": "First call", "unit": "call", "ratio": None, "difference": None, "tolerance": None}
    return [{**shape, "tool": name, "seconds": [spent]} for name, spent in seconds.items()]
