"""The paper's simulation study, in parallel and with progress."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from softlabel._checks import Array, as_alpha0, as_labellers, as_numbers
from softlabel._parallel import run
from softlabel.dirichlet_multinomial import sample_probabilities, sample_votes
from softlabel.efficiency import relative_efficiency
from softlabel.logistic import newton
from softlabel.normal import TwoClassNormal

BLOCK = 50  # training sets simulated together: large enough for NumPy, small enough for a core's cache when n = 500


def simulate_relative_efficiency(
    deltas: Sequence[float],
    ms: Sequence[int],
    alphas: Sequence[float],
    n: int = 500,
    p: int = 2,
    n_sims: int = 1000,
    rng: np.random.Generator | int | None = None,
    n_jobs: int = -1,
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
        Items in a training set, and their features.
    n_sims : int
        Training sets for each delta.
    rng : Generator, int or None
        Source of randomness; seeds are spawned, so that the result does not depend on ``n_jobs``.
    n_jobs : int
        Workers, in joblib's convention: -1 is all cores.

    Returns
    -------
    DataFrame
        One row for each delta, m and alpha0: ``are`` the limit by Theorem 2; ``re`` the mean excess error of the truth-label
        rule divided by that of the votes rule; ``re_se`` its bootstrap standard error.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    Section 4 of Ahfock & McLachlan (2021). Error rates are exact. Within a training set the truth-label fit is shared by all
    cells, and the votes are nested: the first 5 of 50 labellers are the labellers of m = 5. So the cells of one delta are
    correlated; each by itself is as if simulated alone.

    Examples
    --------
    >>> simulate_relative_efficiency([2], [5], [10], n_sims=200, rng=0).round(2)
       delta  m  alpha0   are    re  re_se
    0    2.0  5    10.0  3.67  3.32   0.33
    """
    deltas, ms, alphas = (np.atleast_1d(v) for v in (as_numbers(deltas, "deltas", (0, 1)), as_labellers(ms), as_alpha0(alphas)))
    if n_sims < 2 or n_sims != int(n_sims):
        raise ValueError(f"n_sims must be a whole number of at least 2, got {n_sims}")
    models = [TwoClassNormal.canonical(delta, p) for delta in deltas]
    sizes = [min(BLOCK, n_sims - done) for done in range(0, n_sims, BLOCK)]
    seeds = iter(np.random.default_rng(rng).spawn(len(models) * len(sizes) + 1))
    tasks = [(model, size, n, ms, alphas, next(seeds)) for model in models for size in sizes]
    blocks = run(excess_errors, tasks, "training sets", n_jobs)

    frames = []
    resample = next(seeds)
    for k, (delta, model) in enumerate(zip(deltas, models)):
        truth, votes = (np.concatenate(part) for part in zip(*blocks[k * len(sizes) : (k + 1) * len(sizes)]))
        frame = pd.MultiIndex.from_product([ms.astype(int), alphas], names=["m", "alpha0"]).to_frame(index=False)
        frame.insert(0, "delta", delta)
        frame["are"] = relative_efficiency(frame["m"], frame["alpha0"])
        frame["re"] = truth.mean() / votes.mean(axis=0).ravel()
        frame["re_se"] = _bootstrap_se(truth, votes.reshape(n_sims, -1), resample)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def excess_errors(
    model: TwoClassNormal, size: int, n: int, ms: Array, alphas: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Excess error rates of ``size`` truth-label rules (size,) and of the votes rules (size, m, alpha0)."""
    Y, z = model.sample(n, rng, size=size)
    tau = model.posterior(Y)

    def excess(counts: Array) -> Array:
        coef, *_ = newton(Y, counts, np.zeros(Y.shape[-1] + 1), max_iter=25, tol=1e-8)
        return model.error_rate(coef) - model.bayes_error()

    truth = excess(np.stack([z, 1.0 - z], axis=-1))
    votes = np.empty((size, len(ms), len(alphas)))
    for a, alpha0 in enumerate(alphas):
        p = sample_probabilities(tau, alpha0, rng)
        counts, labellers = np.zeros(tau.shape), 0
        for i in np.argsort(ms):
            if ms[i] > labellers:
                counts = counts + sample_votes(p, ms[i] - labellers, rng=rng)
                labellers = ms[i]
            votes[:, i, a] = excess(counts)
    return truth, votes


def _bootstrap_se(truth: Array, votes: Array, rng: np.random.Generator, n_resamples: int = 1000) -> Array:
    """Standard error of mean(truth) / mean(votes), resampling training sets: weights times errors, not copies of errors."""
    n_sims = len(truth)
    weights = rng.multinomial(n_sims, np.full(n_sims, 1 / n_sims), size=n_resamples)
    return ((weights @ truth)[:, None] / (weights @ votes)).std(axis=0, ddof=1)
