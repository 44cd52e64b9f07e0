"""A report on votes as HTML: a fragment for notebooks, or a page that needs no other file."""

from html import escape
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from softlabel.report import figures
from softlabel.report.html import estimates, figure, in_percents, linked, listing, note, table
from softlabel.report.next_steps import no_advice
from softlabel.report.parts import BOOK, QUESTIONS, Interval, equal_number, equal_number_in_words, p_value, shown, to_decimals
from softlabel.report.texts import resource, say
from softlabel.validation import several

if TYPE_CHECKING:
    from softlabel.report.base import Report
    from softlabel.report.result import VoteReport
    from softlabel.report.votes_alone import AgreementReport

FIRST = 10  # items to look at


def page(report: "Report") -> str:
    """A whole document."""
    return resource("page.html").replace("{report}", fragment(report))


def fragment(report: "Report") -> str:
    """What goes into a page or under a cell; every text of the user's is escaped."""
    sections = {
        "In short": _short(report),
        "Reasons for doubt": _doubts(report),
        **(_of_agreement(cast("AgreementReport", report)) if report.kind == "votes" else _of(cast("VoteReport", report))),
        "What was read": _counts(report) + listing(report.set_aside),
        "For the methods section": note("To be pasted into a paper.") + f"<blockquote>{escape(report.methods)}</blockquote>",
    }
    body = "\n".join(f"<section>\n<h2>{title}</h2>\n{content}\n</section>" for title, content in sections.items())
    return f'<style>{resource("report.css")}</style>\n<div class="softlabel-report">\n{_made(report)}\n{body}\n</div>'


def _made(report: "Report") -> str:
    """What this is about, in a line."""
    made = report.made
    facts = [f"{name}: {file}" for name, file in report.files.items()] or ["tables in memory"]
    facts += [] if report.positive is None else [f"positive class: {report.positive}"]
    facts += [f"made on {made['date']}", f"softlabel {made['version']}", f"seed: {made['seed']}"]
    return f'<p class="note">{escape(" · ".join(facts))}</p>'


def _short(report: "Report") -> str:
    """The three answers, and the rest."""
    asked = "".join(f"<dt>{q}</dt><dd>{linked(answer)}</dd>" for q, answer in zip(QUESTIONS, report.headline))
    return f"<dl>{asked}</dl>" + "\n".join(f"<p>{linked(text)}</p>" for text in report.details)


def _doubts(report: "Report") -> str:
    return f'<div class="warnings">{listing(report.warnings)}</div>' if report.warnings else "<p>None found.</p>"


def _of(report: "VoteReport") -> dict[str, str]:
    """Sections of votes with features."""
    return {
        "What to do next": _next(report),
        "What the votes are worth": _worth(report),
        "Items to look at again": _items(report),
        "Annotators": _annotators(report),
        "Does the rule fit the votes?": _fit(report),
        "Coefficients": _coefficients(report),
        **({} if report.comparison is None else {"Other ways to make labels": _comparison(report.comparison)}),
    }


def _of_agreement(report: "AgreementReport") -> dict[str, str]:
    """Sections of votes without features."""
    first = report.items.sort_values("relabel").head(FIRST)
    first = first[[c for c in first if c not in ("votes", "relabel") and not str(c).startswith("Dawid-Skene")]]
    confusion = report.confusion.reset_index("class")
    doubt = note("With one vote an item nothing tells which of them are in doubt.")
    if report.compared:
        doubt = note(say("items by Dawid and Skene")) + figure(figures.doubt(report.items))
        doubt += table(in_percents(first, ["doubt", "next vote"]), "Items in most doubt")
    how = "How often each annotator gives each label (columns) to items of each class, by the model of Dawid and Skene"
    annotators = _annotators(report) + table(in_percents(confusion, report.labels), how)
    return {"Items to look at again": doubt, "Annotators": annotators}


def _counts(report: "Report") -> str:
    items = report.items
    votes = (items[items["status"] == "used"] if "status" in items else items)["votes"]
    spread = {f"votes an item, {name}": shown(votes.agg(name)) for name in ("min", "mean", "max")}
    return table(pd.DataFrame({"number": {**report.counted, **spread}}).rename_axis("what"), "The tables in numbers")


def _in_two(estimate: Interval, lacks: str = "") -> tuple[str, str]:
    """A number and its interval; where there is none, the bounds alone."""
    if lacks:
        low, high = shown(estimate.low), shown(estimate.high)
        if low == high:
            return low, ""
        return "", "unknown" if np.isinf(estimate.high) else f"between {low} and {high}"
    return shown(estimate.value), estimate.ends()


def _next(report: "VoteReport") -> str:
    free = "<p>Nothing was found in the table that is to be mended first.</p>"
    if report.remedies:
        free = f"<p>First what costs nothing:</p>{listing(report.remedies)}"
    if "no sign" in report.kinds:
        return f"<p>{report.headline.next}</p>"
    if not report.trusted:
        return free + "<p>What is best to buy can be told when the table has been mended.</p>"
    if report.mean_doubted:
        return free + f"<p>{no_advice(report)}</p>"
    truth = "" if report.cost_truth is None else f", a true label {shown(report.cost_truth)}"
    prices = f"an item costs {shown(report.cost_item)}, a vote {shown(report.cost_vote)}{truth}"
    given = "as true labels tell the mean of the votes" if report.worth else "if the mean of the votes is right"
    spent = table(
        report.spending.map(lambda x: "unknown" if np.isnan(x) else f"{x:,.1%}"),
        f"Gain of information by the price of one more vote on each item, {given}; {prices}",
    )
    prices_are = say("prices assumed" if report.cost_item == report.cost_vote == 1 else "prices given")
    prices_are += " True labels are at most those of the items that have none." if report.cost_truth is not None else ""
    best = report.best_votes
    number = f"{shown(best.low)} to {shown(best.high)}" if report.alpha0_lacks else str(best)
    most, items = report.most_votes
    limit = f" (the most that it pays for on {items:,} items is {most:,.0f})" if best.high >= most else ""
    some = f"some {report.min_items:,} items, ten of the rarer class for each coefficient"
    needs = f"it needs {some}" if report.affordable else f"the money is not enough for {some}"
    return free + spent + note(prices_are) + note(say("afresh", number=number, limit=limit, needs=needs))


def _worth(report: "VoteReport") -> str:
    lacks, m = report.alpha0_lacks, shown(report.used["votes"].mean())
    rows = {
        "alpha0": _in_two(report.alpha0, lacks),
        f"true labels that the votes on an item are worth, {m} on average": _in_two(report.efficiency, lacks),
        "the same with weights 1 / phi": _in_two(report.weighted, lacks),
        "true labels that all votes are worth": _in_two(report.promised, lacks),
    }
    out = _by_truth(report) + note(say("alpha0"))
    out += estimates(rows, f"If the mean of the votes is right: with {100 * report.level:g}% intervals")
    if lacks:
        out += note(f"No interval can be had for alpha0, because {lacks}. {BOOK}beyond/07_small_samples.html")
    if np.isfinite(report.efficiency_direct):
        out += note(say("scatter alone", value=shown(report.efficiency_direct)))
    if report.overdispersion is not None:
        statistic, p = report.overdispersion
        out += note(say("independence", statistic=shown(statistic), p=p_value(p)))
    return out + figure(figures.worth(report))


def _by_truth(report: "VoteReport") -> str:
    if report.worth is None:
        return ""
    worth = report.worth
    rates = {"error of the votes' rule": worth.error, "floor: excess error with any number of votes": worth.floor}
    mean = {"lean (right: 0)": worth.lean, "scale (right: 1)": worth.scale, "tilt (right: 0)": worth.tilt}
    rows = {name: (f"{x.value:.1%}", f"{x.low:.1%} to {x.high:.1%}" if x.high else "none seen") for name, x in rates.items()}
    number = equal_number_in_words(worth, len(report.fit.coef))
    rows |= {"true labels that all votes are worth": _in_two(equal_number(worth)) if "(" in number else ("", number)}
    rows |= {name: _in_two(to_decimals(estimate)) for name, estimate in mean.items()}
    if len(report.fit.coef) == 2:
        rows["tilt (right: 0)"] = "0", "one feature"
    caption = f"By {several(worth.n_truths, 'true label')}, with {100 * report.level:g}% intervals"
    return estimates(rows, caption) + note(say("lean, scale and tilt"))


def _items(report: "VoteReport") -> str:
    if np.isnan(report.alpha0.value):
        return "<p>With one vote an item it cannot be told how much a vote says beyond the features.</p>"
    if report.used["relabel"].isna().any():
        return note(f"Which items another vote would help most cannot be told, because {report.alpha0_lacks}.")
    columns = ["votes", "positive", "posterior", "given votes", "low", "high", "doubt", "disagreement"]
    by_need = report.used.sort_values("relabel")[columns]
    contested = by_need[FIRST:].sort_values("disagreement", ascending=False, kind="stable")
    chances = columns[2:]
    return (
        note(say("items"))
        + table(in_percents(by_need.head(FIRST), chances), "Label these again first: one more vote tells most about them")
        + table(in_percents(contested.head(FIRST), chances), "The most contested of the others: annotators are divided")
    )


def _annotators(report: "Report") -> str:
    frame, out = report.annotators, ""
    if frame.empty:
        return "<p>Votes came counted: who gave them is not known.</p>"
    if (picture := figures.annotators(frame)) is not None:
        out = figure(picture)
    if "z positive" not in frame:
        return out + table(in_percents(frame, [c for c in frame if str(c).startswith("share")]), "Annotators")
    shares = ["positive", "positive of all", "agreement", "agreement of all", "accuracy"]
    frame = frame.sort_values(["finding", "slope"], ascending=[False, True], kind="stable")
    shown_columns = frame[[c for c in ("finding", "votes", *shares, "slope") if c in frame]].round({"slope": 2})
    caption = "Annotators, those first of whom something was found"
    return out + table(in_percents(shown_columns, shares), caption) + note(say("annotators"))


def _fit(report: "VoteReport") -> str:
    fit = report.goodness_of_fit
    statistic, df, p = shown(fit.statistic), several(fit.df, "degree"), p_value(fit.pvalue)
    groups = note(say("groups", groups=len(fit.calibration), statistic=statistic, df=df, p=p))
    band = note(say("band", share=fit.share_in_band))
    return figure(figures.reliability(report)) + groups + figure(figures.histogram(report)) + band


def _coefficients(report: "VoteReport") -> str:
    if report.penalised:
        largest = report.coefficients.iloc[1:]["coef"].abs().sort_values(ascending=False).index[:FIRST]
        few = report.coefficients.loc[largest]
        return table(few, f"The largest of {len(report.coefficients):,} coefficients, shrunk by a penalty") + note(
            "Without errors and intervals: those of a penalised fit hold nothing."
        )
    over = "over items and annotators" if "t" in report.coefficients else "over items"
    how, name = f"with errors {over}", f"coefficients {over}"
    if report.separation != "none":
        how, name = "by Firth's method", "coefficients by Firth"
    caption = f"Change of the log-odds of {report.positive!r} for one unit of a feature, {how}"
    return table(report.coefficients, caption) + note(say(name))


def _comparison(comparison: pd.DataFrame) -> str:
    caption = "Logistic rules trained on each kind of label, judged by the truth of items held out"
    return table(comparison, caption) + note(say("comparison"))
