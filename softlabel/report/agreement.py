"""How far votes agree, whatever the features: Krippendorff's alpha, and alpha0 without features."""

import numpy as np

from softlabel.overdispersion import alpha0_interval, estimate_alpha0
from softlabel.report.parts import SMALLEST, Interval, items_worth
from softlabel.validation import Array, several
from softlabel.vote_models import variance_inflation

FEWEST_SPLIT = 5  # items on which votes differ, or agree, below which no interval is given
RESAMPLES = 2000


def _alpha(rows: Array, weight: Array) -> Array:
    """Krippendorff's alpha (R,) of nominal labels, of items of which ``weight`` (R, rows) have the votes of each row.

    One minus the share of pairs of votes on one item that differ, over that of pairs of all votes. It is 1 if votes on an item
    always agree, 0 if as often as by chance; nan where all votes are alike.
    """
    m = rows.sum(axis=1)
    differ = (m**2 - (rows**2).sum(axis=1)) / np.maximum(m - 1, 1)  # pairs in order, over m - 1
    classes, votes = weight @ rows, weight @ m
    observed = weight @ differ / votes
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = (votes**2 - (classes**2).sum(axis=1)) / (votes * (votes - 1))
        return np.asarray(np.where(expected > 0, 1 - observed / expected, np.nan))


def agreement(counts: Array, level: float, rng: np.random.Generator) -> tuple[Interval | None, str]:
    """Krippendorff's alpha with the percentiles of resampled items; and why there is no interval, or no number."""
    rows, times = np.unique(counts[counts.sum(axis=1) > 1], axis=0, return_counts=True)
    weight = times.astype(float)  # items with each of the different rows
    if not len(rows):
        return None, "no item has two votes"
    value = float(_alpha(rows, weight[None])[0])
    if np.isnan(value):
        return None, "all votes are alike"
    split = (rows > 0).sum(axis=1) > 1
    few = min(weight[split].sum(), weight[~split].sum())
    if few < FEWEST_SPLIT:
        what = "split" if weight[split].sum() == few else "unanimous"
        number = f"only {several(int(few), 'item')}" if few else "no item"
        return Interval(value, np.nan, np.nan), f"{number} with two votes {'are' if few > 1 else 'is'} {what}"
    drawn = rng.multinomial(int(weight.sum()), weight / weight.sum(), size=RESAMPLES).astype(float)
    low, high = np.nanquantile(_alpha(rows, drawn), [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high)), ""


def without_features(counts: Array, level: float) -> tuple[Interval, Array, str]:
    """alpha0 of votes for g classes whose shares are the same for all items, these shares (g,), and why there is no interval.

    The shares have weights 1 / phi, lest few items with many votes outweigh all others.
    """
    m, weight = counts.sum(axis=1), np.ones(len(counts))
    if m.max() < 2:
        return Interval(np.nan, 0.0, np.inf), counts.sum(axis=0) / counts.sum(), "no item has two votes"
    used = counts.any(axis=0)
    if used.sum() < 2:
        return Interval(np.nan, 0.0, np.inf), counts.sum(axis=0) / counts.sum(), "all votes are alike"
    alpha0 = np.inf
    for _ in range(3):  # a fourth time changes nothing
        share = weight @ counts / (weight @ m)
        tau = np.tile(share[used], (len(counts), 1))
        alpha0 = estimate_alpha0(counts[:, used], tau).alpha0
        weight = np.asarray(1 / variance_inflation(np.maximum(m, 1), max(alpha0, SMALLEST)))
    rarer = float((counts / np.maximum(m, 1)[:, None]).sum(axis=0)[used].min())
    if rarer < FEWEST_SPLIT:
        return Interval(alpha0, 0.0, np.inf), share, f"the rarest class has only {items_worth(rarer)} of votes"
    low, high = alpha0_interval(counts[:, used], tau, level=level, method="likelihood")
    return Interval(alpha0, low, high), share, ""
