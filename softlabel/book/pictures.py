"""Items of two normal classes with labels from the posterior, drawn: for chapter 2 and the front page."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from softlabel.normal import TwoClassNormal
from softlabel.validation import Array


def spread_items(delta: float, n: int = 300) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Features (n, 2), truth and labels (n,) of items spread evenly: Richtmyer's sequence in the place of random numbers.

    So the items move with the classes, and nothing else moves, when the distance ``delta`` does.
    """
    u = np.outer(np.arange(1, n + 1), np.sqrt([2, 3, 5, 7])) % 1
    radius, angle = np.sqrt(-2 * np.log(u[:, 1])), 2 * np.pi * u[:, 2]
    y = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    truth = u[:, 0] < 0.5
    y[:, 0] += np.where(truth, delta / 2, -delta / 2)
    return y, truth, u[:, 3] < TwoClassNormal.canonical(delta).posterior(y)[:, 0]


def draw_labels(ax: Axes, y: Array, label: NDArray[Any], truth: NDArray[Any], alpha: float = 0.3) -> None:
    """Items in the colour of their label: triangles and squares, and strong crosses where it is wrong."""
    for value, marker, color in ((1, "^", "C1"), (0, "s", "C0")):
        here, wrong = label == value, (label == value) & (label != truth)
        ax.plot(*y[here & ~wrong].T, marker, color=color, markersize=3.5, alpha=alpha, markeredgewidth=0)
        ax.plot(*y[wrong].T, "x", color=color, markersize=5.5, markeredgewidth=1.4)
    ax.axvline(0, color="0.3", linestyle=":", linewidth=1)


def draw_noise_map(delta: float) -> None:
    """Above, the probability of a wrong label along the line through the means; below, evenly spread items."""
    _, (above, below) = plt.subplots(2, figsize=(6.6, 4.8), sharex=True, height_ratios=[1, 2])
    y = np.linspace(-6, 6, 301)
    chance = 2 * TwoClassNormal.canonical(delta, p=1).posterior(y[:, None]).prod(axis=1)
    above.fill_between(y, chance, color="0.85", linewidth=0)
    above.plot(y, chance, color="0.2")
    above.axvline(0, color="0.3", linestyle=":", linewidth=1)
    above.set(ylabel="P(wrong | $y_1$)", ylim=(0, 0.6), yticks=[0, 0.25, 0.5], title=rf"$\Delta = {delta}$")
    items, truth, label = spread_items(delta)
    draw_labels(below, items, label, truth)
    below.set(xlabel="feature $y_1$", ylabel="feature $y_2$", xlim=(-6, 6))
