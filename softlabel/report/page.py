"""A report on votes as HTML: a fragment for notebooks, or a page that needs no other file; its figures."""

import io
import re
from base64 import b64encode
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from softlabel.efficiency import pooled_efficiency
from softlabel.report.parts import CHAPTER, Interval, equal_number, equal_number_in_words, shown, to_decimals

if TYPE_CHECKING:
    from softlabel.report.result import VoteReport

MOST_ROWS = 50  # of a table on the page
STYLE: Any = {
    "svg.fonttype": "path",
    "svg.hashsalt": "softlabel",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}
BLUE, RED, GREEN = "#0072B2", "#D55E00", "#009E73"
LINK, TITLE = re.compile(re.escape(CHAPTER) + "#[a-z-]+"), r'<a href="\g<0>">Do real votes obey the formula?</a>'


def page(report: "VoteReport") -> str:
    """A whole document."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>Report on votes</title>\n'
        "<style>:root { color-scheme: light dark; } body { margin: 1.5rem auto; max-width: 52rem; padding: 0 1rem; }\n"
        "h1 { font-family: Charter, Cambria, 'DejaVu Serif', Georgia, serif; }</style>\n"
        f"</head>\n<body>\n<main>\n<h1>Report on votes</h1>\n{fragment(report)}\n</main>\n</body>\n</html>\n"
    )


def fragment(report: "VoteReport") -> str:
    """What goes into a page or under a cell; every text of the user's is escaped."""
    css = files("softlabel.report").joinpath("report.css").read_text(encoding="utf-8")
    fit = report.goodness_of_fit
    doubts = f'<div class="warnings">{_list(report.warnings)}</div>' if report.warnings else "<p>None found.</p>"
    sections = {
        "In short": "\n".join(f"<p>{_linked(text)}</p>" for text in report.sentences()),
        "Reasons for doubt": doubts,
        "What was read": _table(_counts(report), "The tables in numbers") + _list(report.set_aside),
        "Coefficients": _table(report.fit.summary(level=report.level), "Log-odds of the positive class, sandwich errors")
        + _note("Errors and intervals are over items. They say nothing about annotators other than these."),
        "What the votes are worth": _worth(report) + _figure(*_efficiency_figure(report)),
        "Does the model fit?": _note(
            f"Observed against expected votes in {len(fit.calibration)} groups of items: statistic {shown(fit.statistic)} on "
            f"{fit.df} degrees of freedom, p = {shown(fit.pvalue)}. In the 95% band of the model lie {fit.share_in_band:.1%} "
            "of the items; the band holds at least 95%, because votes are whole numbers."
        )
        + _figure(*_fit_figure(report)),
        "Annotators": _annotators(report),
        "The next spending": _table(
            report.spending.map(lambda x: "unknown" if np.isnan(x) else f"{x:.1%}"),
            f"Gain of information for the same money if the mean of the votes is right; an item costs "
            f"{shown(report.cost_item)}, a vote {shown(report.cost_vote)}",
        )
        + _note(f"For a study that starts afresh the best number of votes an item is {report.best_votes}."),
        "Other ways to make labels": _comparison(report),
    }
    body = "\n".join(f"<section>\n<h2>{title}</h2>\n{content}\n</section>" for title, content in sections.items())
    return f'<style>{css}</style>\n<div class="softlabel-report">\n{body}\n</div>'


def _list(texts: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>" if texts else ""


def _linked(text: str) -> str:
    """Text in which the addresses of places in the chapter are links."""
    return LINK.sub(TITLE, escape(text))


def _note(text: str) -> str:
    return f'<p class="note">{_linked(text)}</p>'


def _cell(value: object) -> str:
    if isinstance(value, float | int | np.number):
        number = float(value)
        return "" if np.isnan(number) else f"{int(number):,}" if number.is_integer() else shown(number)
    return str(value)


def _table(frame: pd.DataFrame, caption: str) -> str:
    """A table in its own box, that scrolls where it is too wide; a keyboard reaches the box."""
    more = f" (the first {MOST_ROWS} of {len(frame):,})" if len(frame) > MOST_ROWS else ""
    frame = frame.head(MOST_ROWS)
    head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in [frame.index.name or "", *frame.columns])
    rows = "".join(
        f'<tr><th scope="row">{escape(str(label))}</th>{"".join(f"<td>{escape(_cell(v))}</td>" for v in row)}</tr>'
        for label, *row in frame.astype(object).itertuples(name=None)
    )
    label = escape(f"{caption}{more}", quote=True)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table><caption>{label}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _counts(report: "VoteReport") -> pd.DataFrame:
    votes = report.used["votes"]
    spread = {f"votes an item, {name}": shown(votes.agg(name)) for name in ("min", "mean", "max")}
    return pd.DataFrame({"number": {**report.counted, **spread}}).rename_axis("what")


def _estimates(rows: dict[str, tuple[str, str]], caption: str) -> str:
    return _table(pd.DataFrame(rows, index=["value", "interval"]).T.rename_axis("quantity"), caption)


def _in_two(estimate: Interval) -> tuple[str, str]:
    return shown(estimate.value), estimate.ends()


def _worth(report: "VoteReport") -> str:
    formula = {"alpha0": report.alpha0, "true labels an item is worth": report.efficiency, "all votes": report.promised}
    rows = {name: _in_two(estimate) for name, estimate in formula.items()}
    out = _by_truth(report) + _estimates(rows, f"If the mean of the votes is right: with {report.level:.0%} intervals")
    out += _note(
        "If so, the scatter of the votes alone, without the Dirichlet-multinomial, makes an item worth "
        f"{shown(report.efficiency_direct)} true labels. The estimates take the fitted coefficients as known, which makes "
        "them too high where items are few; the intervals allow for that."
    )
    if report.overdispersion is None:
        return out
    statistic, p = map(shown, report.overdispersion)
    return out + _note(f"Test that votes are independent given the features: statistic {statistic}, p = {p}.")


def _by_truth(report: "VoteReport") -> str:
    if report.worth is None:
        return ""
    worth = report.worth
    rates = {"error of the votes' rule": worth.error, "floor: excess error with any number of votes": worth.floor}
    mean = {"lean (right: 0)": worth.lean, "scale (right: 1)": worth.scale, "tilt (right: 0)": worth.tilt}
    rows = {name: (f"{x.value:.1%}", f"{x.low:.1%} to {x.high:.1%}") for name, x in rates.items()}
    number = equal_number_in_words(worth, len(report.fit.coef))
    rows |= {"true labels that all votes are worth": _in_two(equal_number(worth)) if "(" in number else ("", number)}
    rows |= {name: _in_two(to_decimals(estimate)) for name, estimate in mean.items()}
    if len(report.fit.coef) == 2:
        rows["tilt (right: 0)"] = "0", "one feature"
    return _estimates(rows, f"By {worth.n_truths:,} true labels, with {report.level:.0%} intervals") + _note(
        "Lean: how much larger the log-odds of the truth are than those of the votes, where votes are in doubt. Scale: below "
        "1 votes are too extreme, above 1 too timid. Tilt: how differently nature and annotators weigh the features. Lean "
        "and tilt make the floor, which no number of votes takes away. True labels must be those of items drawn at random. "
        f"{CHAPTER}#lean-scale-tilt"
    )


def _annotators(report: "VoteReport") -> str:
    frame = report.annotators
    if frame.empty:
        return "<p>Votes came counted: who gave them is not known.</p>"
    worst = frame[["z positive", "z agreement"]].abs().max(axis=1).fillna(-1).sort_values(ascending=False, kind="stable").index
    return _table(frame.loc[worst], "Annotators, those first who differ most from all on the same items") + _note(
        "Shares of positive votes, and of the other votes on the same items that agree; beside each what exchangeable "
        "annotators would have there, and the difference in standard errors."
    )


def _comparison(report: "VoteReport") -> str:
    if report.comparison is None:
        return "<p>Not compared; the reason is under what was read.</p>"
    return _table(
        report.comparison, "Logistic rules trained on each kind of label, judged by the truth of items held out"
    ) + _note(
        "More than pooled: the log-loss beyond that of pooled votes, with the standard error of the difference. Labels right: "
        "how many of the made labels themselves are true."
    )


def _figure(figure: Figure, alt: str, caption: str) -> str:
    out = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(out, format="svg", metadata={"Date": None})
    data = b64encode(out.getvalue().encode()).decode()
    return (
        f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{escape(alt, quote=True)}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _efficiency_figure(report: "VoteReport") -> tuple[Figure, str, str]:
    m = report.used["votes"].mean()
    grid = np.arange(1, max(2 * m, 10) + 1)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 2.8), layout="constrained")
        ax = figure.subplots()
        ends = report.alpha0 if report.overdispersion else (np.inf, 0.0, np.inf)
        value, low, high = ([pooled_efficiency(np.array([k]), a) for k in grid] for a in ends)
        ax.fill_between(grid, low, high, color=BLUE, alpha=0.2, linewidth=0, label=f"{report.level:.0%} interval")
        if report.overdispersion:
            ax.plot(grid, value, color=BLUE, label="estimate")
        ax.plot(grid, grid, color="0.4", linestyle=":", label="independent votes")
        ax.plot(m, report.efficiency.value, "o", color=RED, label="by the formula")
        top = 1.3 * high[-1]
        if report.worth:
            worth, low_end, high_end = (min(x / len(report.used), 2 * grid[-1]) for x in equal_number(report.worth))
            ax.errorbar(m, worth, [[worth - low_end], [high_end - worth]], fmt="s", color=GREEN, label="by true labels")
            top = max(top, 1.1 * min(high_end, 2 * worth))
        ax.set(xlabel="votes an item", ylabel="true labels it is worth", ylim=(0, min(grid[-1], top)))
        ax.legend(loc="upper left")
    alt = (
        f"Curve of true labels an item is worth against votes an item, from 1 to {shown(value[-1])} at {grid[-1]:.0f} votes, "
        f"with a band. A dot marks these votes: {shown(m)} an item, worth {shown(report.efficiency.value)}"
        + (f"; a square what they are worth by true labels, {shown(worth)}." if report.worth else ".")
    )
    caption = (
        "What equal numbers of votes on each item are worth if their mean is right. The dot lies below the line where numbers "
        "are unequal." + (" Square: what the true labels say of these votes, with its interval." if report.worth else "")
    )
    return figure, alt, caption


def _fit_figure(report: "VoteReport") -> tuple[Figure, str, str]:
    table, groups = report.histogram, report.calibration
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.8, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.bar(table.index, table["observed"], width=0.7, color="0.85", edgecolor="0.5", label="observed")
        left.plot(table.index, table["expected"], "o-", color=BLUE, markersize=4, label="model")
        left.plot(table.index, table["independent votes"], "s--", color=RED, markersize=3, label="independent")
        left.set(xlabel=f"positive votes of {table.index[-1]}", ylabel="items")
        left.legend()
        right.axline((0, 0), slope=1, color="0.4", linestyle=":")
        expected, observed, error = (groups[c] / groups["votes"] for c in ("expected", "observed", "stderr"))
        right.errorbar(expected, observed, 1.96 * error, fmt="o", color=BLUE, markersize=4, capsize=2)
        right.set(xlabel="expected share of positive votes", ylabel="observed share", xlim=(-0.03, 1.03), ylim=(-0.05, 1.05))
    gap = (observed - expected).abs().max()
    alt = (
        f"Left: bars of the number of items by positive votes, beside the model's and independent votes' expectation. Right: "
        f"observed against expected share of positive votes in {len(groups)} groups, at most {shown(gap)} apart."
    )
    caption = "Left: items by their positive votes, at the commonest number of votes. Right: groups of items, with 95% bars."
    return figure, alt, caption
