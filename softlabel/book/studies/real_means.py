"""In which of three ways the mean of real votes is wrong, and what error that leaves."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from softlabel.book.real_votes import LOADERS, limit_errors, load
from softlabel.logistic import fit_logistic
from softlabel.overdispersion import estimate_alpha0
from softlabel.two_way import coordinates
from softlabel.validation import Array

RESAMPLES = 1000
CELLS = [dict(name=name) for name in LOADERS]


def cell(name: str, resamples: int = RESAMPLES) -> dict[str, float]:
    """Lean, scale, tilt, seen from all votes and all true labels, with standard errors by resampling items; and floors.

    ``floor`` is that of the fits, ``excess`` the error rate of the votes' limit less that of the truths' limit.
    """
    source = load(name)
    n, N = len(source.counts), len(source.y)
    mean, cov = source.X[:n].mean(axis=0), np.atleast_2d(np.cov(source.X[:n].T, bias=True))

    def parts(voted: NDArray[np.int64], others: NDArray[np.int64]) -> tuple[Array, Array, Array]:
        """Coefficients of votes and truth; lean, scale and what is left of the truth's slopes."""
        known = np.r_[voted, others]
        votes = fit_logistic(source.X[voted], source.counts[voted]).coef
        truth = fit_logistic(source.X[known], source.y[known]).coef
        scale = (truth[1:] @ cov @ votes[1:]) / (votes[1:] @ cov @ votes[1:])
        rest = truth - scale * votes
        return votes, truth, np.r_[rest[0] + rest[1:] @ mean, scale, rest[1:]]

    votes, truth, (lean, scale, *rest) = parts(np.arange(n), np.arange(n, N))
    rng = np.random.default_rng(0)
    again = [parts(rng.integers(n, size=n), rng.integers(n, max(N, n + 1), size=N - n))[2] for _ in range(resamples)]
    across = coordinates(source.X[:n], votes)[1][2:, 1:]  # to the tilt's entries
    tilts, tilt_p = across @ rest, np.nan
    if len(tilts):
        scatter = np.cov(across @ np.transpose(again)[2:])
        tilt_p = float(chi2.sf(tilts @ np.linalg.solve(scatter, tilts), len(tilts)))
    x = np.insert(source.X, 0, 1, axis=1)
    tau = source.posterior[:, 0]
    against = np.where(x @ votes > 0, 1 - tau, tau) - np.minimum(tau, 1 - tau)
    limits = [limit_errors(name, of_votes) for of_votes in (True, False)]
    correct = np.where(source.y[:n] == 1, source.counts[:, 0], source.counts[:, 1])
    return {
        "items": n,
        "features": source.X.shape[1],
        "votes": source.counts.sum() / n,
        "positive": source.y[:n].mean(),
        "said_positive": source.counts[:, 0].sum() / source.counts.sum(),
        "correct": correct.sum() / source.counts.sum(),
        "alpha0": source.alpha0,
        "alpha0_truth": estimate_alpha0(source.counts, source.posterior[:n]).alpha0,
        "lean": lean,
        "lean_se": np.std([row[0] for row in again]),
        "scale": scale,
        "scale_se": np.std([row[1] for row in again]),
        "tilt": float(np.linalg.norm(tilts)),
        "tilt_p": tilt_p,
        "correlation": float(np.corrcoef(x @ votes, x @ truth)[0, 1]),
        "votes_limit": limits[0].mean(),
        "truths_limit": limits[1].mean(),
        "excess": (limits[0] - limits[1]).mean(),
        "excess_se": (limits[0] - limits[1]).std() / np.sqrt(N),
        "floor": against.mean(),
    }
