"""Figures of a report: each with a text that says what to see, and a caption."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font

from softlabel.efficiency import pooled_efficiency
from softlabel.report.parts import equal_number, shown, wilson
from softlabel.report.texts import say
from softlabel.validation import Array

if TYPE_CHECKING:
    from softlabel.report.result import VoteReport

STYLE: Any = matplotlib.rc_params_from_file(str(files("softlabel.report") / "figures.mplstyle"), use_default_template=False)
BLUE, RED, GREEN = "#0072B2", "#D55E00", "#009E73"
WIDTH = 5.0  # inches: on a telephone its text can still be read
MOST_ANNOTATORS = 30
Z = 1.96


class Picture(NamedTuple):
    """A figure, what it shows for who cannot see it, and its caption."""

    figure: Figure
    alt: str
    caption: str


@contextmanager
def _axes(height: float) -> Iterator[tuple[Figure, Axes]]:
    """A figure to draw in, in the style of all."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure, figure.subplots()


def worth(report: "VoteReport") -> Picture:
    """True labels an item is worth against votes an item."""
    m, n = report.used["votes"].mean(), len(report.used)
    grid = np.arange(1, max(2 * m, 10) + 1)
    unknown = bool(report.alpha0_lacks)
    value, low, high = ([pooled_efficiency(np.array([k]), np.inf if np.isnan(a) else a) for k in grid] for a in report.alpha0)
    with _axes(3.4) as (figure, ax):
        label = "whatever alpha0 is" if unknown else f"{100 * report.level:g}% interval"
        ax.fill_between(grid, low, high, color=BLUE, alpha=0.2, linewidth=0, label=label)
        if not unknown:
            ax.plot(grid, value, color=BLUE, label="estimate")
        ax.plot(grid, grid, color="0.4", linestyle=":", label="independent votes")
        if not unknown:
            ax.plot(m, report.efficiency.value, "o", color=RED, label="your votes, if their mean is right")
        top = 1.3 * high[-1]
        if report.worth:
            here, low_end, high_end = (min(x / n, 2 * grid[-1]) for x in equal_number(report.worth))
            bars = [[here - low_end], [high_end - here]]
            ax.errorbar(m, here, bars, fmt="s", color=GREEN, capsize=3, label="your votes, by true labels")
            top = max(top, 1.1 * min(high_end, 2 * here))
        ax.set(xlabel="votes an item", ylabel="true labels it is worth", ylim=(0, min(grid[-1], top)))
        figure.legend(loc="outside upper left", ncols=2, fontsize=8)
    dot = f"a dot marks these votes, {shown(m)} an item, worth {shown(report.efficiency.value)}"
    dot = "the worth of an item cannot be told more closely" if unknown else dot
    square = f"; a square what they are worth by true labels, {shown(here)}" if report.worth else ""
    alt = say("worth, unseen", most=grid[-1], low=shown(low[-1]), high=shown(high[-1]), dot=dot, square=square)
    truth = " Square: what the true labels say of these votes, with its interval." if report.worth else ""
    return Picture(figure, alt, say("figure of worth", truth=truth))


def reliability(report: "VoteReport") -> Picture:
    """Shares of positive votes, and of positive truths, in groups of items with similar posterior."""
    groups = report.calibration
    expected, observed, error = (groups[c] / groups["votes"] for c in ("expected", "observed", "stderr"))
    ends = np.clip([observed - Z * error, observed + Z * error], 0, 1)
    with _axes(3.2) as (figure, ax):
        ax.axline((0, 0), slope=1, color="0.4", linestyle=":")
        _bars(ax, expected, observed, ends, "o", BLUE, "votes")
        true = true_shares(report)
        if len(true):
            by_chance = [wilson(k / n, n, 0.95) for k, n in zip(true["positive"], true["items"])]
            _bars(ax, true["expected"], true["positive"] / true["items"], np.transpose(by_chance), "s", RED, "true labels")
            ax.legend(loc="upper left")
        ax.set(xlabel="probability by the features, %", ylabel="share positive, %", xlim=(-3, 103), ylim=(-5, 105))
    gap = float((observed - expected).abs().max())
    also = f" Squares for the true labels of {int(true['items'].sum()):,} items." if len(true) else ""
    alt = say("reliability, unseen", groups=len(groups), gap=gap, truth=also)
    return Picture(figure, alt, say("reliability", truth=" Squares: the same of true labels." if len(true) else ""))


def _bars(ax: Axes, x: "pd.Series[float]", y: "pd.Series[float]", ends: Array, marker: str, color: str, label: str) -> None:
    """Shares with their intervals, in per cent."""
    reach = 100 * np.abs(ends - y.to_numpy())
    ax.errorbar(100 * x, 100 * y, reach, fmt=marker, color=color, markersize=4, capsize=2, linestyle="none", label=label)


def true_shares(report: "VoteReport") -> pd.DataFrame:
    """Positive truths in up to five groups of posterior, of items used."""
    known = report.used.dropna(subset=["truth"]) if "truth" in report.items else report.used[:0]
    if not len(known):
        return known
    group = known["posterior"].rank(method="first").sub(1) * min(5, max(1, len(known) // 10)) // len(known)
    by = known.groupby(group)
    return pd.DataFrame({"items": by.size(), "expected": by["posterior"].mean(), "positive": by["truth"].sum()})


def histogram(report: "VoteReport") -> Picture:
    """Items by their positive votes, beside two models."""
    table = report.histogram
    with _axes(2.8) as (figure, ax):
        ax.bar(table.index, table["observed"], width=0.7, color="0.85", edgecolor="0.5", label="your items")
        ax.plot(table.index, table["expected"], "o-", color=BLUE, markersize=4, label="the model")
        ax.plot(table.index, table["independent votes"], "s--", color=RED, markersize=4, label="independent votes")
        ax.set(xlabel=f"positive votes of {table.index[-1]}", ylabel="items")
        ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
        ax.set_ylim(0, 1.35 * table.to_numpy().max())
        ax.legend(loc="upper center", ncols=3, fontsize=8)
    off = float((table["expected"] - table["observed"]).abs().max())
    return Picture(figure, say("histogram, unseen", most=table.index[-1], off=shown(off)), say("histogram"))


def annotators(frame: pd.DataFrame) -> Picture | None:
    """How each annotator follows the others, with intervals; those first who do so least. None without any."""
    if "slope" not in frame:
        return None
    frame = frame[frame["votes"] > 0].dropna(subset=["slope"]).sort_values("slope", kind="stable")
    if len(frame) < 2:
        return None
    shown_rows = frame if len(frame) <= MOST_ANNOTATORS else pd.concat([frame[: MOST_ANNOTATORS - 10], frame[-10:]])
    accused = (shown_rows["finding"] != "").to_numpy()
    y, x, reach = np.arange(len(shown_rows))[::-1], shown_rows["slope"].to_numpy(), Z * shown_rows["slope error"].to_numpy()
    drawable = get_font(findfont(STYLE["font.family"][0])).get_charmap()
    strange = [str(name) for name in shown_rows.index if not {ord(letter) for letter in str(name)} <= drawable.keys()]
    with _axes(1.1 + 0.21 * len(shown_rows)) as (figure, ax):
        for at, mark in ((0, ":"), (1, "-")):
            ax.axvline(at, color="0.5", linestyle=mark, linewidth=1)
        for which, colour, marker, label in (
            (~accused, BLUE, "o", "nothing found"),
            (accused, RED, "D", "something found"),
        ):
            if which.any():
                ax.errorbar(
                    x[which], y[which], xerr=reach[which], fmt=marker, color=colour, markersize=4.5, capsize=2, label=label
                )
        ax.set_yticks(y, [_short(name, strange) for name in shown_rows.index], parse_math=False)
        ax.set(xlabel="follows the others (0: not at all, 1: like them all)", ylim=(-0.8, len(y) - 0.2))
        if accused.any():
            figure.legend(loc="outside upper right", ncols=2, fontsize=8)
    few = f" The lowest {MOST_ANNOTATORS - 10} and the highest 10 of {len(frame):,}." if len(frame) > len(shown_rows) else ""
    alt = say("slopes, unseen", shown=len(x), low=x.min(), high=x.max(), accused=accused.sum(), few=few)
    caption = say("slopes", few=few)
    if strange:
        caption += f" Names in a script that the figure lacks: {'; '.join(f'({k}) {x}' for k, x in enumerate(strange, 1))}."
    return Picture(figure, alt, caption)


def _short(name: object, strange: list[str]) -> str:
    """A name for the figure; of a strange one its number."""
    text = f"({strange.index(str(name)) + 1})" if str(name) in strange else str(name)
    return text if len(text) <= 20 else f"{text[:19]}…"


def doubt(items: pd.DataFrame) -> Picture:
    """How sure the model of Dawid and Skene is of items."""
    values = 100 * items["doubt"].dropna()
    with _axes(2.6) as (figure, ax):
        ax.hist(values, bins=list(np.arange(0, 101, 5)), color="0.85", edgecolor="0.5")
        ax.set(xlabel="doubt about an item, %", ylabel="items", xlim=(0, max([55.0, *(values + 5)])))
    alt = say("doubt, unseen", items=len(values), sure=(values <= 5).mean(), doubtful=(values > 10).sum())
    return Picture(figure, alt, say("doubt"))
