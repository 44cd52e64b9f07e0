"""The findings of a report in words: three answers first, then details, doubts and methods."""

from typing import TYPE_CHECKING

import numpy as np

from softlabel.overdispersion import FEWEST, rarer_items
from softlabel.report import parts
from softlabel.report.next_steps import MEND_FIRST, if_drawn, next_steps
from softlabel.report.parts import Headline, Interval, in_percent, items_worth, p_value, shown
from softlabel.report.texts import say
from softlabel.validation import listed, several
from softlabel.worth import WorthOfVotes

if TYPE_CHECKING:
    from softlabel.report.result import VoteReport

SMALL_P = 0.01  # below which a test is worth a warning
FEW = 10  # items of the rarer class for each coefficient
MANY = 400  # true labels; with fewer a false promise is often not refuted


def headline(report: "VoteReport") -> Headline:
    """Can I use these votes, what are they worth, and what next?"""
    return Headline(_use(report), _worth(report), next_steps(report))


def agreeing(agreement: Interval | None, lacks: str, level: float) -> str:
    """Krippendorff's alpha in words."""
    if agreement is None:
        return f"Whether annotators agree cannot be told: {lacks}."
    ends = f"no interval: {lacks}" if lacks else f"{shown(agreement.low)} to {shown(agreement.high)}"
    do = "are not shown to agree" if lacks or agreement.low <= 0 else "agree"
    return (
        f"Annotators {do} more than by chance (Krippendorff's alpha {shown(agreement.value)}, {ends}; 0 is chance, 1 always)."
    )


def _use(report: "VoteReport") -> str:
    if report.separation != "none":
        what = "nothing" if report.separation == "complete" else "not every coefficient"
        return f"Not with these features: {report.separated}, so that {what} can be estimated."
    if "no sign" in report.kinds:
        text = next(f.text for f in report.found if f.kind == "no sign")
        return f"No: t{text.partition(':')[0][1:]}."
    if report.inverted:
        return f"Not as they are. {say('inverted')}"
    agree = agreeing(report.agreement, report.agreement_lacks, report.level)
    if not report.trusted:
        grave = next(f.text for f in report.found if f.kind in MEND_FIRST)
        return f"Not as they are. {grave}"
    if report.worth:
        error = in_percent(report.worth.error)
        wrong = f"By {_truths(report.worth, report)} the rule from the votes is wrong on {error} of new items."
        if report.differs or report.refuted:
            return f"Only together with true labels: these show{if_drawn(report)} that the mean of the votes is wrong. {wrong}"
        return f"{wrong} {agree}"
    if report.truth:
        return f"{_counted_error(report)} {agree}"
    if report.mean_doubted:
        return f"{agree} {say('mean doubted')}"
    return f"{agree} Votes cannot tell whether their mean is right."


def _counted_error(report: "VoteReport") -> str:
    truth = report.truth
    assert truth is not None
    low, high = parts.wilson(1 - truth.accuracy, truth.n_items, report.level)
    wrong = in_percent((1 - truth.accuracy, low, high))
    return f"On {several(truth.n_items, 'item')} with a true label the rule is wrong on {wrong}."


def _truths(worth: WorthOfVotes, report: "VoteReport") -> str:
    return f"{several(worth.n_truths, 'true label')}{if_drawn(report) or ','}"


def if_right(report: "VoteReport", verb: str = "are") -> str:
    """What the votes are worth if their mean is right: with an interval, or between bounds."""
    if np.isnan(report.alpha0.value):
        return f"votes {verb} worth one true label each"
    if report.alpha0_lacks:
        (_, *item), n = report.efficiency, len(report.used)
        each, all_votes = (f"{shown(low)} to {shown(high)}" for low, high in (item, [n * end for end in item]))
        return say("worth between bounds", verb=verb, each=each, all_votes=all_votes, why=report.alpha0_lacks)
    return f"the votes on an item {verb} worth {report.efficiency} true labels, all votes {report.promised}"


def _worth(report: "VoteReport") -> str:
    if report.separation != "none":
        return "That cannot be told with these features: the numbers below rest on a penalised fit."
    if "no sign" in report.kinds and not report.worth:
        return "Nothing that can be shown."
    if not report.trusted and not report.worth:
        return "That cannot be told before the table has been mended: the numbers below count every vote as it is."
    if not report.worth:
        guessed = " If annotators guess, alpha0 is too high, and so is this." if report.mean_doubted else ""
        return f"If the mean of the votes is right, {if_right(report)}. {say('on real data')}{guessed}"
    worth = report.worth
    number = parts.equal_number_in_words(worth, len(report.fit.coef))
    if "no sign" in report.kinds:
        return f"Nothing that votes can show. By {_truths(worth, report)} all votes are worth {number} of these."
    few = "; so few often could not" if worth.n_truths < MANY else ""
    told = "rule out so much" if report.refuted else f"do not rule out so much{few}"
    told += ", if one sets the reservations aside" if report.refuted and worth.reservations else ""
    return say("worth by truth", number=number, if_right=if_right(report, "would be"), drawn=if_drawn(report), told=told)


def details(report: "VoteReport") -> tuple[str, ...]:
    """More findings in words."""
    n, votes, k = report.counted["items used"], report.counted["votes used"], len(report.annotators)
    of = f", of {several(k, 'annotator')}" if k else ""
    used = f"Used: {several(n, 'item')} with {several(votes, 'vote')}, {shown(votes / n)} an item{of}."
    said = [f"{used} Intervals have level {100 * report.level:g}%."]
    if report.classes:
        said.append(report.classes)
    if report.worth and report.separation == "none":
        said += _lean_and_floor(report, report.worth)
    elif report.trusted and not report.truth:
        said.append(say("few truths", many=MANY))
    if "no sign" not in report.kinds:
        said += _alpha0_and_items(report)
    if report.penalised:
        said.append(say("penalised", q=len(report.fit.coef), rarer=items_worth(_rarer(report))))
    return tuple(said)


def _alpha0_and_items(report: "VoteReport") -> list[str]:
    if np.isnan(report.alpha0.value):
        return ["No item has two votes, so alpha0 cannot be known."]
    used, said = report.used, []
    if report.alpha0_lacks:
        said.append(say("guess of alpha0", value=shown(report.alpha0.value), why=report.alpha0_lacks))
    else:
        shown_to = report.overdispersion is not None and report.overdispersion.pvalue < 0.05
        hang = "hang together" if shown_to else "are not shown to hang together"
        said.append(f"Beyond what the features explain, votes on an item {hang}: alpha0 is {report.alpha0}.")
    if used["doubt"].notna().all():
        unsure = int((used["doubt"] > 0.1).sum())
        crossed = int(((used["given votes"] > 0.5) != (used["posterior"] > 0.5)).sum())
        said.append(say("unsure and crossed", unsure=unsure, crossed=crossed))
    return said


def _lean_and_floor(report: "VoteReport", worth: WorthOfVotes) -> list[str]:
    floor = Interval(*(100 * x for x in worth.floor))
    lean, scale, tilt, floor = (parts.to_decimals(x) for x in (worth.lean, worth.scale, worth.tilt, floor))
    unseen = " What is not seen may still be there, too small for these true labels." if "none seen" in f"{lean}{tilt}" else ""
    tilted = str(tilt) if len(report.fit.coef) > 2 else "0, as there is one feature"
    off = ""
    if not scale.low <= 1 <= scale.high and not report.inverted:
        off = f" Votes are too {'extreme' if scale.high < 1 else 'timid'}"
        if scale.low > 0:
            off += ": that spoils probabilities, but by itself moves no decision at one half."
        else:
            off += ", or even go against the true labels."
    return [
        f"However many votes, the error stays {floor} percentage points above that of the best rule on these features.",
        f"The mean of the votes has lean {lean}, scale {scale} and tilt {tilted}; the right one has 0, 1 and 0.{unseen}{off}",
    ]


def _rarer(report: "VoteReport") -> float:
    m, s = report.used["votes"].to_numpy(float), report.used["positive"].to_numpy(float)
    return rarer_items(np.column_stack([s, m - s]))


def warnings(report: "VoteReport") -> tuple[str, ...]:
    """Reasons not to believe a number, gravest first."""
    found, q, rarer = [], len(report.fit.coef), _rarer(report)
    if report.separation != "none":
        little = " and say little" * (report.separation == "complete")
        found.append(say("separation", kind=report.separation.capitalize(), separated=report.separated, little=little))
    if report.inverted:
        found.append(say("inverted"))
    found += [finding.text for finding in report.found]
    if not report.fit.converged:
        found.append("The fit did not converge.")
    if report.truth and report.differs:
        found.append(say("differs", p=p_value(report.truth.pvalue), drawn=if_drawn(report)))
    if report.truth and report.unlike < SMALL_P:
        found.append(say("unlike", p=p_value(report.unlike)))
    if report.worth:
        found.extend(f"What true labels say is less certain than it looks: {text}." for text in report.worth.reservations)
    if report.truth and report.truth.lacks:
        found.append(f"Whether true labels and votes have the same coefficients was not tested, because {report.truth.lacks}.")
    if rarer < FEW * q and not report.penalised:
        found.append(say("few items", rarer=items_worth(rarer), q=q, few=FEW, fewest=FEWEST))
    if report.goodness_of_fit.pvalue < SMALL_P:
        found.append(say("bad fit", p=p_value(report.goodness_of_fit.pvalue)))
    return tuple(found)


def set_aside(report: "VoteReport") -> tuple[str, ...]:
    """Items and true labels that were not used."""
    found, known = [], report.items.get("truth", report.items["votes"] * np.nan).notna()
    for what in ("no votes", "no features", "incomplete features"):
        which = report.items["status"] == what
        if which.any():
            but = " but for true labels" if what == "no votes" and report.worth and known[which].any() else ""
            found.append(f"Items with {what}, not used{but}: {which.sum():,} ({listed(report.items.index[which])}).")
    used = report.worth.n_truths if report.worth else report.truth.n_items if report.truth else 0
    if lost := int(known.sum()) - used:
        found.append(f"True labels of items that lack a feature, not used: {lost:,}.")
    if report.lacking:
        found.append(f"{report.lacking[0].upper()}{report.lacking[1:]}.")
    return (*found, *(f"Not looked at: {text}." for text in (report.findings.not_looked_at if report.findings else ())))


def methods(report: "VoteReport") -> str:
    """A paragraph for a paper."""
    counted, p, k = report.counted, len(report.fit.coef) - 1, len(report.annotators)
    of = f" of {several(k, 'annotator')}" if k else ""
    annotators = " and annotators (Cameron, Gelbach and Miller, 2011)" if "t" in report.coefficients else ""
    against = " against all others" if report.classes else ""
    how = "ridge" if report.penalised else "Firth" if report.separation != "none" else "maximum likelihood"
    fit = say(f"methods: {how}", annotators=annotators)
    votes, items = several(counted["votes used"], "vote"), several(counted["items used"], "item")
    said = [
        say("methods: data", votes=votes, of=of, items=items, **report.made),
        say("methods: regression", positive=report.positive, against=against, features=several(p, "feature"), fit=fit),
    ]
    if not np.isnan(report.alpha0.value):
        interval = "" if report.alpha0_lacks else ", with an interval from the likelihood adjusted as by Cox and Reid (1987)"
        said.append(say("methods: alpha0", interval=interval))
    if report.agreement and not report.agreement_lacks:
        said.append("Agreement is Krippendorff's alpha, its interval from 2,000 resamples of items.")
    if k:
        said.append(say("methods: annotators"))
    if report.worth:
        said.append(say("methods: worth", truths=_truths(report.worth, report)))
    said.append(f"Intervals have level {100 * report.level:g}%.")
    return " ".join(said)
