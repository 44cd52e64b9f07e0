"""Two simulation studies, of two normal classes and of real features with simulated votes: in parallel and with progress."""

import warnings
from collections.abc import Callable, Iterable
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit, logit, rel_entr

from softlabel.datasets import load_breast_cancer
from softlabel.efficiency import relative_efficiency
from softlabel.logistic import fit_logistic, fit_logistic_batch
from softlabel.normal import TwoClassNormal
from softlabel.separation import separation_of
from softlabel.threads import inside_worker, one_thread_of_algebra
from softlabel.validation import (
    Array,
    ConvergenceWarning,
    as_alpha0,
    as_choice,
    as_labellers,
    as_numbers,
    as_rng,
    as_whole,
    optional,
)
from softlabel.vote_models import sample_probabilities, sample_votes

if TYPE_CHECKING:
    import joblib

SETS = 100  # training sets simulated together: large enough for NumPy to work most of the time, small enough for a cache


def simulate_relative_efficiency(
    deltas: ArrayLike,
    ms: ArrayLike,
    alphas: ArrayLike,
    n: int = 500,
    p: int = 2,
    n_sims: int = 1000,
    rng: np.random.Generator | int | None = None,
    n_jobs: int = -1,
    memory: "joblib.Memory | str | Path | None" = None,
) -> pd.DataFrame:
    """Simulate the relative efficiency of votes to ground-truth labels for two normal classes (Table 1 of the paper).

    Parameters
    ----------
    deltas : sequence of float
        Mahalanobis distances between the classes.
    ms : sequence of int
        Numbers of labellers.
    alphas : sequence of float
        Values of alpha0; ``inf`` is the multinomial.
    n, p : int
        Items in a training set, at least p + 1, and their features.
    n_sims : int
        Training sets for each delta.
    rng : Generator, int or None
        Source of randomness; seeds are spawned, so that the result does not depend on ``n_jobs``.
    n_jobs : int
        Workers, in joblib's convention: -1 is all cores.
    memory : Memory, str, Path or None
        A folder, or a ``joblib.Memory``, that keeps every 100 training sets once they are done: the same call made again goes
        on from there. All that a result depends on is part of its key, so studies of any kind may share a folder. With workers
        on several machines all of them must see it. A folder's files are compressed, so that a damaged one is noticed and
        computed again; a ``Memory`` of your own should have ``compress`` for that.

    Returns
    -------
    DataFrame
        One row for each delta, m and alpha0: ``are`` the limit by Theorem 2; ``re`` the mean excess error of the truth-label
        rule divided by that of the votes rule; ``re_se`` its bootstrap standard error.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or ``memory`` comes without an ``rng`` to know a study again by.

    Notes
    -----
    Section 4 of Ahfock & McLachlan (2021). Error rates are exact. Within a training set the truth-label fit is shared by all
    cells, and the votes are nested: the first 5 of 50 labellers are the labellers of m = 5. So the cells of one delta are
    correlated; each by itself is as if simulated alone.

    Examples
    --------
    >>> simulate_relative_efficiency([2], [5], [10], n_sims=200, rng=0).round(2)
       delta  m  alpha0   are    re  re_se
    0    2.0  5    10.0  3.67  4.45   0.45
    """
    deltas = np.atleast_1d(as_numbers(deltas, "deltas", (0, 1)))
    ms, alphas = _grid(ms, alphas)
    n_sims, p = as_whole(n_sims, "n_sims", 2), as_whole(p, "p, the number of features,", 1)
    n = as_whole(n, f"n, the number of items with p = {p} features,", p + 1)
    for delta in deltas:
        TwoClassNormal.canonical(delta, p)  # before any work, an error for a bad one
    sizes = [min(SETS, n_sims - done) for done in range(0, n_sims, SETS)]
    seeds = iter(_seeds(rng, len(deltas) * len(sizes) + 1, memory))
    tasks = [(float(delta), p, size, n, ms, alphas, next(seeds)) for delta in deltas for size in sizes]
    blocks = run(_canonical_excess_errors, tasks, "blocks of training sets", n_jobs, as_memory(memory))

    if failed := sum(block[2] for block in blocks):
        total = len(deltas) * n_sims * (1 + len(ms) * len(alphas))
        warnings.warn(
            f"{failed} of {total} fits did not converge, most often because the labels are separated; their rules are where "
            "the iteration stopped, and count as they are: use more items",
            ConvergenceWarning,
            stacklevel=2,
        )

    frames = []
    resample = np.random.default_rng(next(seeds))
    for k, delta in enumerate(deltas):
        of_delta = blocks[k * len(sizes) : (k + 1) * len(sizes)]
        truth, votes = (np.concatenate([block[i] for block in of_delta]) for i in (0, 1))
        frame = pd.MultiIndex.from_product([ms.astype(int), alphas], names=["m", "alpha0"]).to_frame(index=False)
        frame.insert(0, "delta", delta)
        frame["are"] = relative_efficiency(frame["m"], frame["alpha0"])
        frame["re"] = truth.mean() / votes.mean(axis=0).ravel()
        frame["re_se"] = bootstrap_se(truth, votes.reshape(n_sims, -1), resample)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _grid(ms: ArrayLike, alphas: ArrayLike) -> tuple[Array, Array]:
    """The cells of a study, checked."""
    ms, alphas = np.atleast_1d(as_labellers(ms)), np.atleast_1d(as_alpha0(alphas))
    for name, values in (("ms", ms), ("alphas", alphas)):
        if values.ndim > 1:
            raise ValueError(f"{name} must be a number or a sequence of numbers, got shape {values.shape}")
    for name, values in (("ms", ms), ("alphas", alphas)):
        if not values.size:
            raise ValueError(f"{name} has no elements")
    return ms, alphas


def _seeds(rng: np.random.Generator | int | None, count: int, memory: object) -> list[np.random.SeedSequence]:
    """Seeds, not generators: a task is known again by its seed, and a generator changes as it is used."""
    if memory is not None and rng is None:
        raise ValueError("memory needs an rng, such as a whole number: without one every call is another study")
    source: np.random.SeedSequence = as_rng(rng).bit_generator.seed_seq  # type: ignore[assignment]  # NumPy's have no other
    return source.spawn(count)


def _canonical_excess_errors(
    delta: float, p: int, size: int, n: int, ms: Array, alphas: Array, seed: np.random.SeedSequence
) -> tuple[Array, Array, int]:
    """A task of plain numbers, since a model object changes as it is used."""
    return excess_errors(TwoClassNormal.canonical(delta, p), size, n, ms, alphas, np.random.default_rng(seed))


def excess_errors(
    model: TwoClassNormal, size: int, n: int, ms: Array, alphas: Array, rng: np.random.Generator
) -> tuple[Array, Array, int]:
    """Excess error rates of ``size`` truth-label rules (size,) and of the votes rules (size, m, alpha0); fits that failed."""
    failed = 0
    Y, z = model.sample(n, rng, size=size)
    tau = model.posterior(Y)

    def excess(counts: Array) -> Array:
        nonlocal failed
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # counted
            fit = fit_logistic_batch(Y, counts)
        failed += int((~fit.converged).sum())
        return np.asarray(model.error_rate(fit.coef)) - model.bayes_error()

    truth = excess(np.stack([z, 1.0 - z], axis=-1))
    votes = np.empty((size, len(ms), len(alphas)))
    for a, alpha0 in enumerate(alphas):
        for i, counts in enumerate(nested_votes(tau, ms, alpha0, rng)):
            votes[:, i, a] = excess(counts)
    return truth, votes, failed


def bootstrap_se(truth: Array, votes: Array, rng: np.random.Generator, n_resamples: int = 1000) -> Array:
    """Standard error of mean(truth) / mean(votes), resampling training sets: weights times errors, not copies of errors."""
    n = len(truth)
    weights = np.array([np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(n_resamples)], float)
    se: Array = ((weights @ truth)[:, None] / (weights @ votes)).std(axis=0, ddof=1)
    return se


def simulate_breast_cancer(
    ms: ArrayLike,
    alphas: ArrayLike,
    n_train: int = 50,
    n_splits: int = 100,
    rng: np.random.Generator | int | None = None,
    n_jobs: int = -1,
    method: Literal["glm", "firth", "ridge"] = "glm",
    memory: "joblib.Memory | str | Path | None" = None,
) -> pd.DataFrame:
    """Test errors on the Wisconsin breast cancer data with simulated votes (Tables 2 and 3 of the paper).

    Parameters
    ----------
    ms : sequence of int
        Numbers of labellers.
    alphas : sequence of float
        Values of alpha0; ``inf`` is the multinomial.
    n_train : int
        Items in a training set; the others are the test set.
    n_splits : int
        Random splits.
    rng : Generator, int or None
        Source of randomness; seeds are spawned, so that the result does not depend on ``n_jobs``.
    n_jobs : int
        Workers, in joblib's convention.
    method : {"glm", "firth", "ridge"}
        How rules are fitted: as R's ``glm`` does, which stops even if no maximum exists; with Firth's penalty; or with the
        penalty ``sum(beta**2) / 2`` on standardised features.
    memory : Memory, str, Path or None
        Keeps every split, as in :func:`simulate_relative_efficiency`.

    Returns
    -------
    DataFrame
        First a row for the truth-label rule, with ``m`` and ``alpha0`` missing; then one for each m and alpha0. ``are`` is the
        limit by Theorem 2; ``error`` and ``error_se`` the mean test error and its standard error over splits; ``re`` the
        excess of the truth-label rule over the Bayes error divided by that of the votes rule, ``re_se`` its bootstrap standard
        error; ``share_separated`` the share of training sets that are linearly separable.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or ``memory`` comes without an ``rng`` to know a study again by.

    Notes
    -----
    Section 5.2 of Ahfock & McLachlan (2021). The fit to all 569 items is taken for the truth from which votes are drawn, and
    its apparent error, 29 / 569, for the Bayes error. Votes are nested as in :func:`simulate_relative_efficiency`.

    Examples
    --------
    >>> frame = simulate_breast_cancer([5], [1, 1000], n_splits=20, rng=0)
    >>> frame[["m", "alpha0", "are", "error", "share_separated"]].round(2)
          m  alpha0   are  error  share_separated
    0  <NA>     NaN  1.00   0.13             0.90
    1     5     1.0  1.67   0.12             0.55
    2     5  1000.0  4.98   0.09             0.30
    """
    ms, alphas = _grid(ms, alphas)
    as_choice(method, "method", list(FITS))
    n_splits = as_whole(n_splits, "n_splits", 2)
    X, y = tumours()
    span = f"n_train, between {X.shape[1] + 1} and {len(X) - 1},"
    n_train = as_whole(n_train, span, X.shape[1] + 1)
    if n_train >= len(X):
        raise ValueError(f"{span} must leave items for the test set, got {n_train}")
    full = fit_logistic(X, y)
    bayes = float(np.mean(full.predict(X) != y))

    seeds = _seeds(rng, n_splits + 1, memory)
    tasks = [(X, y, full.posterior(X), n_train, ms, alphas, method, seed) for seed in seeds[1:]]
    results = run(split_errors, tasks, "splits", n_jobs, as_memory(memory))
    error, separated = (np.array(part) for part in zip(*results))

    cells = pd.MultiIndex.from_product([ms.astype(int), alphas], names=["m", "alpha0"]).to_frame(index=False)
    frame = pd.concat([pd.DataFrame({"m": [pd.NA], "alpha0": [np.nan]}), cells], ignore_index=True).astype({"m": "Int64"})
    excess = error - bayes
    frame["are"] = np.r_[1.0, relative_efficiency(cells["m"], cells["alpha0"])]
    frame["re"] = excess[:, 0].mean() / excess.mean(axis=0)
    frame["re_se"] = np.r_[0.0, bootstrap_se(excess[:, 0], excess[:, 1:], np.random.default_rng(seeds[0]))]
    frame["error"], frame["error_se"] = error.mean(axis=0), error.std(axis=0, ddof=1) / np.sqrt(n_splits)
    frame["share_separated"] = separated.mean(axis=0)
    return frame


def tumours() -> tuple[Array, Array]:
    """The ten means of the breast cancer data (569, 10), standardised, and the labels (569,)."""
    data = load_breast_cancer()
    assert data.X is not None and data.y is not None  # nothing but votes is missing there
    X = data.X.filter(like="mean ").to_numpy()
    return (X - X.mean(axis=0)) / X.std(axis=0), data.y.to_numpy()


def split_errors(
    X: Array, y: Array, tau: Array, n_train: int, ms: Array, alphas: Array, method: str, seed: np.random.SeedSequence
) -> tuple[Array, Array]:
    """Test errors of one split, and which training sets were separated: true labels first, then each m and alpha0."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    train, test = order[:n_train], order[n_train:]
    counts = [np.column_stack([y[train], 1 - y[train]])]
    nested = [nested_votes(tau[train], ms, alpha0, rng) for alpha0 in alphas]
    counts += [nested[a][i] for i in range(len(ms)) for a in range(len(alphas))]
    coef = np.array([FITS[method](X[train], c) for c in counts])
    wrong = (coef[:, :1] + coef[:, 1:] @ X[test].T > 0) != y[test]
    return wrong.mean(axis=1), np.array([separation_of(X[train], c) != "none" for c in counts])


def nested_votes(tau: Array, ms: Array, alpha0: float, rng: np.random.Generator) -> list[Array]:
    """Votes for each m; the labellers of a smaller group are the first of a larger one."""
    p = sample_probabilities(tau, alpha0, rng)
    counts: list[Array] = [np.empty(0)] * len(ms)
    total, labellers = np.zeros(tau.shape), 0
    for i in np.argsort(ms):
        if ms[i] > labellers:
            total, labellers = total + sample_votes(p, ms[i] - labellers, rng=rng), ms[i]
        counts[i] = total
    return counts


def fit_as_r(X: Array, counts: Array, max_iter: int = 25, epsilon: float = 1e-8) -> Array:
    """Coefficients at which R's ``glm.fit(family = binomial())`` stops, whether or not a maximum exists.

    R starts from probabilities (s + 1/2) / (m + 1), iterates weighted least squares, keeps probabilities at least a rounding
    error from 0 and 1, and stops when the deviance changes by less than ``epsilon`` relatively, or after 25 steps.
    """
    from scipy.linalg.lapack import dgels  # by Householder reflections, as R; only this needs it

    x = np.column_stack([np.ones(len(X)), X])
    m = counts.sum(axis=1)
    y = counts[:, 0] / m
    mu = (counts[:, 0] + 0.5) / (m + 1)
    eta, deviance = logit(mu), np.inf
    for _ in range(max_iter):
        weight = np.sqrt(m * mu * (1 - mu))
        coef: Array = dgels(x * weight[:, None], weight * (eta + (y - mu) / (mu * (1 - mu))))[1][: x.shape[1]]
        eta = x @ coef
        mu = np.clip(expit(eta), np.finfo(float).eps, 1 - np.finfo(float).eps)
        last, deviance = deviance, 2 * float(m @ (rel_entr(y, mu) + rel_entr(1 - y, 1 - mu)))
        if abs(deviance - last) < epsilon * (abs(deviance) + 0.1):
            break
    return coef


def _fit_firth(X: Array, counts: Array) -> Array:
    return fit_logistic_batch(X[None], counts[None], method="firth", max_iter=1000, tol=1e-6).coef.ravel()


def _fit_ridge(X: Array, counts: Array) -> Array:
    """scikit-learn takes weighted labels: each item once as positive and once as negative, weighted by its votes."""
    LogisticRegression = optional("sklearn.linear_model", "sklearn", "simulate_breast_cancer").LogisticRegression
    labels = np.repeat([1, 0], len(X))
    ridge = LogisticRegression(C=1.0, solver="newton-cholesky").fit(np.vstack([X, X]), labels, counts.T.ravel())
    coef: Array = np.r_[ridge.intercept_, ridge.coef_[0]]
    return coef


FITS = {"glm": fit_as_r, "firth": _fit_firth, "ridge": _fit_ridge}


def run(
    function: Callable[..., Any],
    tasks: Iterable[tuple[Any, ...]],
    title: str,
    n_jobs: int = -1,
    memory: "joblib.Memory | None" = None,
) -> list[Any]:
    """``[function(*task) for task in tasks]`` on ``n_jobs`` threads; a bar appears when the work takes over two seconds.

    Threads, because NumPy releases the lock where the time goes. ``joblib.parallel_config`` overrides the choice: its backend
    "loky" is processes, "dask" a cluster. A call that is itself a task of joblib or Dask works alone and without a bar.
    With a ``memory``, a result that is in its folder is not computed again.
    """
    import joblib
    from tqdm import tqdm

    tasks = list(tasks)
    if memory is not None:
        function = partial(_recall, memory, function)
    alone = inside_worker()
    if alone or joblib.effective_n_jobs(n_jobs) == 1 or len(tasks) == 1:
        results = (function(*task) for task in tasks)
    else:
        workers = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
        results = workers(joblib.delayed(_apply)(function, task) for task in tasks)
    with one_thread_of_algebra:
        return list(results if alone else tqdm(results, total=len(tasks), desc=title, delay=2, leave=False))


def _apply(function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    """The task travels as one tuple: Dask places a large array on one worker, and when that dies, all who need it fail."""
    return function(*task)


def _recall(memory: "joblib.Memory", function: Callable[..., Any], *task: Any) -> Any:
    """``function(*task)``, from the memory if it is there; what it depends on beside its arguments is part of the key."""
    return memory.cache(_call)(_version(), function, task)


def _call(version: str, function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    return function(*task)


@cache
def _version() -> str:
    """Hash of the package's sources, because they change more often than a version does, and the libraries' versions."""
    sources = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    libraries = [
        version(library) for library in ("numpy", "scipy", "scikit-learn") if find_spec(library.replace("scikit-", "sk"))
    ]
    return sha256(sources + repr(libraries).encode()).hexdigest()


def as_memory(memory: "joblib.Memory | str | Path | None") -> "joblib.Memory | None":
    """A joblib.Memory for a folder, compressed, so that its checksums find damage; the path absolute, as workers need it."""
    if memory is None:
        return None
    import joblib

    if isinstance(memory, str | Path):
        return joblib.Memory(str(Path(memory).absolute()), verbose=0, compress=("zlib", 1))
    if not isinstance(memory, joblib.Memory):
        raise ValueError(f"memory must be the name of a folder, a joblib.Memory or None, got {memory!r}")
    return memory
