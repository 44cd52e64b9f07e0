"""Draw readme.svg, the picture of the README: what m votes are worth.

Run it with ``.venv/bin/python book/_static/readme_figure.py``.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from softlabel import relative_efficiency

LINES = [  # alpha0, colour (Okabe-Ito), line style, label at the end
    (np.inf, "#000000", "-", "$\\alpha_0 = \\infty$: no limit"),
    (100, "#0072B2", (0, (6, 2)), "$\\alpha_0 = 100$: at most 101"),
    (10, "#D55E00", (0, (6, 2, 1, 2)), "$\\alpha_0 = 10$: at most 11"),
    (1, "#8C5A7D", (0, (1, 1.5)), "$\\alpha_0 = 1$: at most 2"),
]
TICKS = [1, 2, 5, 10, 20, 50, 100]

plt.rcParams.update(
    {
        "font.family": "DejaVu Sans",
        "font.size": 12,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "svg.fonttype": "path",  # looks the same everywhere
        "svg.hashsalt": "readme",  # and the file the same each time
    }
)

m = np.geomspace(1, 100, 200)
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for alpha0, colour, style, label in LINES:
    worth = relative_efficiency(m, alpha0)
    ax.plot(m, worth, color=colour, linestyle=style, linewidth=2.5)
    ax.annotate(label, (m[-1], worth[-1]), xytext=(8, 0), color=colour, textcoords="offset points", va="center")

ax.set(
    xscale="log",
    yscale="log",
    xlim=(1, 100),
    ylim=(0.95, 110),
    xlabel="votes on each item, $m$",
    ylabel="relative efficiency,\nin true labels per item",
)
ax.set_xticks(TICKS, TICKS)
ax.set_yticks(TICKS, TICKS)
ax.minorticks_off()
ax.grid(color="#DDDDDD", linewidth=0.8)

fig.savefig(
    Path(__file__).with_name("readme.svg"), facecolor="white", bbox_inches="tight", pad_inches=0.2, metadata={"Date": None}
)
