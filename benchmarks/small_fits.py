"""Many small fits, as in Table 1: two normal classes at distance 2, labels or votes."""

import subprocess
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import softlabel as sl
from benchmarks.harness import Contestant, aim, available_cores, compare

TOLERANCE = 1e-4  # of a coefficient, relative where it exceeds 1


def make(sets, n, p, m):
    """Data sets X (sets, n, p), and how many of the m votes on each of their items are positive (sets, n)."""
    rng = np.random.default_rng(1)
    model = sl.TwoClassNormal.canonical(2, p)
    X, z = model.sample(n, rng, size=sets)
    return X, (z if m == 1 else sl.sample_votes(model.posterior(X), m, 10, rng)[..., 0]).astype(float), m


# Each contestant gets the data before the clock starts, and returns the function that is timed.


def labels_or_counts(s, m):
    return s if m == 1 else np.stack([s, m - s], axis=-1)


def with_intercept(X):
    return np.concatenate([np.ones_like(X[..., :1]), X], axis=-1)


def softlabel(X, s, m):
    y = labels_or_counts(s, m)
    return lambda: sl.fit_logistic_batch(X, y).coef


def loop(fit, X, y):
    """One fit after the other. On one thread: on so little data more threads only stand in each other's way."""

    def run():
        with threadpool_limits(1):
            return np.array([fit(*one) for one in zip(X, y)])

    return run


def softlabel_one_by_one(X, s, m):
    return loop(lambda x, y: sl.fit_logistic(x, y).coef, X, labels_or_counts(s, m))


def statsmodels_glm(X, s, m):
    import statsmodels.api as sm

    binomial = sm.families.Binomial()
    return loop(lambda x, y: sm.GLM(y, x, family=binomial).fit().params, with_intercept(X), labels_or_counts(s, m))


def scikit_learn(X, s, m):
    from sklearn.linear_model import LogisticRegression

    def fit(x, y):
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-7).fit(x, y)
        return np.r_[model.intercept_, model.coef_[0]]

    return loop(fit, X, s)


def jax_newton(X, s, m, size=200):
    """Newton steps, compiled, on 200 data sets at a time, until the last has converged.

    Features are laid out with the items last. That, and the 200, were the fastest of those tried.
    """
    fit = compiled_by_jax()
    x = with_intercept(X).swapaxes(1, 2).copy()
    parts = [slice(i, i + size) for i in range(0, len(x), size)]
    return lambda: np.concatenate([fit(x[i], s[i], m) for i in parts])


@cache
def compiled_by_jax():
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
            change = jax.vmap(step, (0, 0, 0, None))(beta, x, s, m)
            return beta + change, jnp.max(jnp.abs(change)), n + 1

        def unfinished(state):
            return (state[1] > 1e-4) & (state[2] < 25)

        return jax.lax.while_loop(unfinished, advance, (jnp.zeros(x.shape[:2]), jnp.inf, 0))[0]

    return fit


def r_glm_fit(X, s, m):
    problem = np.concatenate([np.ravel(a) for a in ((*X.shape, m), X, s)])

    def run():
        with tempfile.TemporaryDirectory() as folder:
            files = [f"{folder}/problem", f"{folder}/coef"]
            problem.tofile(files[0])
            script = Path(__file__).with_name("glm_fit.R")
            done = subprocess.run(["Rscript", script, *files], check=True, text=True, capture_output=True)
            return np.fromfile(files[1]).reshape(len(X), -1), float(done.stdout)

    return run


def floor(X, n_iter):
    """In each iteration no fit can do without an exponential an item and a product with those of the features; in cache."""
    sets, n, p = X.shape
    few = min(sets, 32)
    products = np.ones((few, (p + 1) * (p + 2) // 2, n))
    eta, w = -np.abs(X[:few, :, 0]), np.ones((few, n))

    def run():
        for _ in range(round(n_iter * sets / few)):
            np.exp(eta, out=w)
            products @ w[..., None]

    return run


PEERS = {  # what it needs, and how it gets the data
    "softlabel, one call a fit": ("softlabel", softlabel_one_by_one),
    "JAX, vmap of Newton": ("jax", jax_newton),
    "statsmodels GLM": ("statsmodels", statsmodels_glm),
    "R glm.fit": ("Rscript", r_glm_fit),
    "scikit-learn newton-cholesky": ("sklearn", scikit_learn),
}


def compare_fits(case, data, few, rounds, all_cores):
    """Ours and JAX make all fits; those that take one at a time make a few of them."""
    X, s, m = data
    step = len(X) // few
    contestants = {"softlabel": Contestant(softlabel(*data), len(X), lambda coef: coef[::step])}
    for tool, (needs, prepare) in PEERS.items():
        every = 1 if tool.startswith("JAX") else step
        if m == 1 or tool != "scikit-learn newton-cholesky":  # it takes no counts
            made = cache(lambda prepare=prepare, every=every: prepare(X[::every], s[::every], m))  # in the first round
            pick = (lambda coef: coef[::step]) if every == 1 else np.asarray
            contestants[tool] = Contestant(lambda made=made: made()(), len(X[::every]), pick, needs)
    if not all_cores and X.shape[-1] == 2:  # with many features products made beforehand are no floor
        n_iter = sl.fit_logistic_batch(X, labels_or_counts(s, m)).n_iter.mean()
        contestants["floor, in NumPy"] = Contestant(floor(X, n_iter), len(X))
    return compare(case, "fit", contestants, rounds, TOLERANCE)


def run(all_cores, tiny=False):
    """Rows of the table."""
    warnings.simplefilter("ignore", sl.ConvergenceWarning)
    warnings.simplefilter("ignore", sl.SeparationWarning)
    sets, many, few, rounds = (8, 4, 4, 1) if tiny else (4000, 40, 100, 5)
    rows = compare_fits("500 items, 2 features, labels", make(sets, 500, 2, 1), few, rounds, all_cores)
    glm = 80 if available_cores() > 1 else 60
    for tool, times in {"statsmodels GLM": glm, "R glm.fit": 40, "JAX, vmap of Newton": 2}.items():
        aim(rows, tool, at_least=times)
    rows += compare_fits("500 items, 2 features, 50 votes", make(sets, 500, 2, 50), few, rounds, all_cores)
    return rows + compare_fits("5,000 items, 50 features, labels", make(many, 5000, 50, 1), 4, rounds, all_cores)
