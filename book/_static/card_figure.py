"""Draws card.png, the picture on the social cards: what m votes are worth.

python book/_static/card_figure.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from softlabel import relative_efficiency

HERE = Path(__file__).parent

plt.style.use("softlabel.book.style")
fig, ax = plt.subplots(figsize=(3, 3))
m = np.geomspace(1, 100, 200)
for alpha0 in (np.inf, 100, 10, 1):
    ax.plot(m, relative_efficiency(m, alpha0), linewidth=3)
ax.set(xscale="log", yscale="log", xticks=[], yticks=[])
ax.minorticks_off()
fig.savefig(HERE / "card.png", dpi=150)
