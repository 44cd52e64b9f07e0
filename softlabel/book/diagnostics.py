"""Goodness of fit of the vote model: numbers first, and the figures drawn from them; of a whole table, one test."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy import linalg, stats

from softlabel.validation import Array, as_counts_and_tau, as_numbers
from softlabel.vote_models import prediction_band


def average_posterior(counts: ArrayLike, tau: ArrayLike) -> pd.DataFrame:
    """Average posterior probability of the positive class among items with the same number of positive votes.

    Parameters
    ----------
    counts : (n, g) array_like
        Votes, column 0 the positive class; every item must have the same number of votes.
    tau : (n, g) array_like
        Posterior probabilities.

    Returns
    -------
    DataFrame
        One row for each number of positive votes 0 .. m, in the index ``votes``: ``items``, ``mean``, and ``stderr``, the
        standard error of the mean (nan with fewer than two items).

    Raises
    ------
    ValueError
        If arguments are not valid or items have different numbers of votes.

    Notes
    -----
    Column (a) of Figure 3 of Ahfock & McLachlan (2021).

    Examples
    --------
    >>> average_posterior([[0, 2], [2, 0], [2, 0]], [[0.1, 0.9], [0.8, 0.2], [0.9, 0.1]]).round(2)
           items  mean  stderr
    votes
    0          1  0.10     NaN
    1          0   NaN     NaN
    2          2  0.85    0.05
    """
    counts, tau = as_counts_and_tau(counts, tau)
    m = _same_number(counts)
    groups = pd.Series(tau[:, 0]).groupby(counts[:, 0].astype(int))
    table = pd.DataFrame({"items": groups.size(), "mean": groups.mean(), "stderr": groups.sem()})
    table = table.reindex(pd.RangeIndex(m + 1, name="votes"))
    return table.assign(items=table["items"].fillna(0).astype(int))


def _same_number(counts: Array) -> int:
    """The number of votes on every item."""
    m = counts.sum(axis=1)
    if (m != m[0]).any():
        j = int(np.argmax(m != m[0]))
        raise ValueError(f"counts[{j}] has {m[j]:g} votes but counts[0] has {m[0]:g}: all items must have the same number")
    return int(m[0])


def plot_votes_against_expectation(counts: ArrayLike, tau: ArrayLike, alpha0: float, ax: Axes, level: float = 0.95) -> None:
    """Draw observed against expected votes with the prediction band; every item must have the same number of votes."""
    counts, tau = as_counts_and_tau(counts, tau)
    m = _same_number(counts)
    grid = np.linspace(0.001, 0.999, 500)
    low, high = prediction_band(grid, m, alpha0, level)
    ax.plot(m * grid, m * grid, color="C1", linestyle="-", linewidth=1)
    for limit in (low, high):
        ax.plot(m * grid, limit, color="0.4", linestyle="--", linewidth=1)
    ax.plot(m * tau[:, 0], counts[:, 0], "o", color="C0", markersize=4, alpha=0.6, markeredgewidth=0)
    ax.set(xlabel="expected votes", ylabel="observed votes", xticks=range(m + 1), yticks=range(m + 1))


class JointTest(NamedTuple):
    """Chi-square test of several differences at once."""

    statistic: float
    df: int
    pvalue: float


def joint_test(difference: ArrayLike, cov: ArrayLike) -> JointTest:
    """Test whether all differences are zero, when they are normal with a known covariance.

    Parameters
    ----------
    difference : (k,) array_like
        Such as the cells of a recomputed table minus those of the printed one.
    cov : (k, k) array_like
        Their covariance, positive definite. Cells that share training sets or a numerator are correlated, and to count them as
        independent would be wrong in either direction.

    Returns
    -------
    JointTest
        ``statistic``, the squared length of the differences in units of their covariance; ``df``, k; and ``pvalue`` by the
        chi-square distribution.

    Raises
    ------
    ValueError
        If arguments are not finite, their shapes do not fit, or cov is not symmetric and positive definite.

    Notes
    -----
    A covariance that is itself estimated must come from many more replicates than there are differences.

    Examples
    --------
    Two cells that share their noise differ by as much, in opposite directions:

    >>> statistic, df, pvalue = joint_test([1, -1], [[1, 0.8], [0.8, 1]])
    >>> round(statistic, 1), df, round(pvalue, 4)
    (10.0, 2, 0.0067)
    """
    difference = as_numbers(difference, "difference", (1,))
    cov = as_numbers(cov, "cov", (2,))
    if cov.shape != 2 * difference.shape:
        k = difference.size
        raise ValueError(f"cov must be {k} by {k} for {k} differences, got shape {cov.shape}")
    try:
        if not np.allclose(cov, cov.T, rtol=1e-9, atol=0):
            raise linalg.LinAlgError
        whitened = linalg.solve_triangular(linalg.cholesky(cov, lower=True), difference, lower=True)
    except linalg.LinAlgError:
        raise ValueError("cov must be symmetric and positive definite") from None
    statistic = float(whitened @ whitened)
    return JointTest(statistic, difference.size, float(stats.chi2.sf(statistic, difference.size)))
