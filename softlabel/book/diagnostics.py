"""Goodness of fit of the vote model: numbers first, and the figures drawn from them."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from softlabel.validation import Array, as_alpha0, as_counts_and_tau, as_labellers, as_level, as_numbers, place


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


def prediction_band(
    probability: ArrayLike, m: int, alpha0: float, level: float = 0.95
) -> tuple[Array, Array]:
    """Limits between which the number of positive votes lies with at least the given probability.

    Parameters
    ----------
    probability : (n,) array_like
        Posterior probability of the positive class.
    m : int
        Number of labellers.
    alpha0 : float
        Overdispersion parameter; ``inf`` is the binomial.
    level : float
        Strictly between 0 and 1.

    Returns
    -------
    low, high : (n,) ndarray
        Quantiles of the beta-binomial at (1 - level) / 2 and (1 + level) / 2. Counts are whole numbers, so the band holds more than
        ``level``: it is conservative.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Notes
    -----
    Dashed lines in column (b) of Figure 3 of Ahfock & McLachlan (2021).

    Examples
    --------
    >>> prediction_band([0.5, 0.99], m=7, alpha0=5.0)
    (array([0., 6.]), array([7., 7.]))
    """
    probability = as_numbers(probability, "probability", (1,))
    wrong = (probability < 0) | (probability > 1)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise ValueError(f"{place('probability', at)} is {probability[at]:g}: probabilities must lie between 0 and 1")
    from scipy.stats import betabinom, binom  # a quarter of the time that the package would take to import

    m, alpha0, level = int(as_labellers(m, scalar=True)), float(as_alpha0(alpha0, scalar=True)), as_level(level)
    tails = (1 - level) / 2, (1 + level) / 2
    if np.isinf(alpha0):
        return tuple(binom.ppf(tail, m, probability) for tail in tails)
    inside = np.clip(probability, 1e-12, 1 - 1e-12)  # the beta distribution needs two positive parameters
    return tuple(betabinom.ppf(tail, m, alpha0 * inside, alpha0 * (1 - inside)) for tail in tails)


def share_in_band(counts: ArrayLike, tau: ArrayLike, alpha0: float, level: float = 0.95) -> float:
    """Share of the items whose positive votes lie within :func:`prediction_band`."""
    counts, tau = as_counts_and_tau(counts, tau)
    if not counts.any():
        raise ValueError("no item has a vote: counts are all 0")
    inside = []
    for votes in np.unique(counts.sum(axis=1)[counts.sum(axis=1) > 0]):
        at = counts.sum(axis=1) == votes
        low, high = prediction_band(tau[at, 0], int(votes), alpha0, level)
        inside.append((counts[at, 0] >= low) & (counts[at, 0] <= high))
    return float(np.concatenate(inside).mean())


def plot_average_posterior(counts: ArrayLike, tau: ArrayLike, ax: Axes) -> None:
    """Draw :func:`average_posterior` with one standard error to each side."""
    table = average_posterior(counts, tau)
    ax.errorbar(table.index, table["mean"], table["stderr"].fillna(0), fmt="o", color="C0")
    ax.set(xlabel="positive votes", ylabel="average posterior", ylim=(-0.05, 1.05), xticks=table.index)


def plot_votes_against_expectation(
    counts: ArrayLike, tau: ArrayLike, alpha0: float, ax: Axes, level: float = 0.95
) -> None:
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
