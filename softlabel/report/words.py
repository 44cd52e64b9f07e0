"""The findings of a report in words: three answers first, then details, doubts and methods."""

from typing import TYPE_CHECKING

import numpy as np

from softlabel.overdispersion import FEWEST, rarer_items
from softlabel.report import parts
from softlabel.report.next_steps import MEND_FIRST, if_drawn, next_steps
from softlabel.report.parts import CHAPTER, Headline, Interval, in_percent, items_worth, p_value, shown
from softlabel.report.texts import texts
from softlabel.validation import listed, several
from softlabel.worth import WorthOfVotes

if TYPE_CHECKING:
    from softlabel.report.result import VoteReport

SMALL_P = 0.01  # below which a test is worth a warning
FEW = 10  # items of the rarer class for each coefficient
MANY = 400  # true labels; with fewer a false promise is often not refuted
TELL = (
    "Some 50 true labels of items drawn at random tell how often the rule from the votes is wrong; to refute a worth that "
    f"was false took from 50 to more than {MANY} of them on four sets of real votes. Even they give no sharp worth. "
    f"{CHAPTER}#few-truths"
)


def headline(report: "VoteReport") -> Headline:
    """Can I use these votes, what are they worth, and what next?"""
    return Headline(_use(report), _worth(report), next_steps(report))


def agreeing(agreement: Interval | None, lacks: str, level: float) -> str:
    """Krippendorff's alpha in words."""
    if agreement is None:
        return f"Whether annotators agree cannot be told: {lacks}."
    ends = f"no interval: {lacks}" if lacks else f"{shown(agreement.low)} to {shown(agreement.high)}"
    beyond = (
        "Annotators are not shown to agree more than by chance"
        if lacks or agreement.low <= 0
        else "Annotators agree more than by chance"
    )
    return f"{beyond} (Krippendorff's alpha {shown(agreement.value)}, {ends}; 0 is chance, 1 always)."


def _use(report: "VoteReport") -> str:
    if report.separation != "none":
        what = "nothing" if report.separation == "complete" else "not every coefficient"
        return f"Not with these features: {report.separated}, so that {what} can be estimated."
    if "no sign" in report.kinds:
        text = next(f.text for f in report.found if f.kind == "no sign")
        return f"No: t{text.partition(':')[0][1:]}."
    if report.inverted:
        return f"Not as they are. {texts()['inverted']}"
    agree = agreeing(report.agreement, report.agreement_lacks, report.level)
    if not report.trusted:
        grave = next(f.text for f in report.found if f.kind in MEND_FIRST)
        return f"Not as they are. {grave}"
    if report.worth:
        wrong = (
            f"By {several(report.worth.n_truths, 'true label')}{if_drawn(report) or ','} the rule from the votes is wrong on "
            f"{in_percent(report.worth.error)} of new items."
        )
        if report.differs or report.refuted:
            return f"Only together with true labels: these show{if_drawn(report)} that the mean of the votes is wrong. {wrong}"
        return f"{wrong} {agree}"
    if report.truth:
        return f"{_counted_error(report)} {agree}"
    if report.mean_doubted:
        return (
            f"{agree} But the votes do not follow a logistic regression: annotators guess, or see what the features do not. "
            "Only true labels tell which."
        )
    return f"{agree} Votes cannot tell whether their mean is right."


def _counted_error(report: "VoteReport") -> str:
    truth = report.truth
    assert truth is not None
    low, high = parts.wilson(1 - truth.accuracy, truth.n_items, report.level)
    wrong = in_percent((1 - truth.accuracy, low, high))
    return f"On {several(truth.n_items, 'item')} with a true label the rule is wrong on {wrong}."


def if_right(report: "VoteReport", verb: str = "are") -> str:
    """What the votes are worth if their mean is right: with an interval, or between bounds."""
    if np.isnan(report.alpha0.value):
        return f"votes {verb} worth one true label each"
    if report.alpha0_lacks:
        (_, low, high), n = report.efficiency, len(report.used)
        return (
            f"the votes on an item {verb} worth somewhere from {shown(low)} to {shown(high)} true labels, all votes "
            f"{shown(n * low)} to {shown(n * high)}; no closer interval can be had, because {report.alpha0_lacks}"
        )
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
        return f"If the mean of the votes is right, {if_right(report)}. {texts()['on real data']}{guessed}"
    worth = report.worth
    number = parts.equal_number_in_words(worth, len(report.fit.coef))
    if "no sign" in report.kinds:
        by = f"{several(worth.n_truths, 'true label')}{if_drawn(report) or ','}"
        return f"Nothing that votes can show. By {by} all votes are worth {number} of these."
    few = "; so few often could not" if worth.n_truths < MANY else ""
    told = "rule out so much" if report.refuted else f"do not rule out so much{few}"
    told += ", if one sets the reservations aside" if report.refuted and worth.reservations else ""
    return (
        f"All votes are worth {number} true labels. If the mean of the votes were right, {if_right(report, 'would be')}: the "
        f"true labels{if_drawn(report)} {told}."
    )


def details(report: "VoteReport") -> tuple[str, ...]:
    """More findings in words."""
    n, votes, k = report.counted["items used"], report.counted["votes used"], len(report.annotators)
    of = f", of {several(k, 'annotator')}" if k else ""
    said = [
        f"Used: {several(n, 'item')} with {several(votes, 'vote')}, {shown(votes / n)} an item{of}. Intervals have level "
        f"{100 * report.level:g}%."
    ]
    if report.classes:
        said.append(report.classes)
    if report.worth and report.separation == "none":
        said += _lean_and_floor(report, report.worth)
    elif report.trusted and not report.truth:
        said.append(TELL)
    if "no sign" not in report.kinds:
        said += _alpha0_and_items(report)
    if report.penalised:
        said.append(
            f"There are {len(report.fit.coef)} coefficients and {items_worth(_rarer(report))} of votes for the rarer "
            "class: the fit has a ridge penalty, chosen by cross-validation, and each item's posterior is by the rule from "
            "other items. Coefficients have no intervals: what a penalty does to them no standard error tells."
        )
    return tuple(said)


def _alpha0_and_items(report: "VoteReport") -> list[str]:
    if np.isnan(report.alpha0.value):
        return ["No item has two votes, so alpha0 cannot be known."]
    used, said = report.used, []
    if report.alpha0_lacks:
        said.append(
            "How far votes on an item hang together beyond the features cannot be told: the best guess of alpha0 is "
            f"{shown(report.alpha0.value)}, but no interval can be had, because {report.alpha0_lacks}."
        )
    else:
        shown_to = report.overdispersion is not None and report.overdispersion.pvalue < 0.05
        hang = "hang together" if shown_to else "are not shown to hang together"
        said.append(f"Beyond what the features explain, votes on an item {hang}: alpha0 is {report.alpha0}.")
    if used["doubt"].notna().all():
        unsure = int((used["doubt"] > 0.1).sum())
        crossed = int(((used["given votes"] > 0.5) != (used["posterior"] > 0.5)).sum())
        said.append(
            f"On {unsure:,} of the items it is open, with a doubt of more than one in ten, what most of ever more votes would "
            f"say; on {crossed:,}, votes and features together say something else than the features alone."
        )
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
        found.append(
            f"{report.separation.capitalize()} separation: {report.separated}, so no maximum likelihood estimate exists. All "
            f"numbers rest on Firth's penalised fit{' and say little' * (report.separation == 'complete')}."
        )
    if report.inverted:
        found.append(texts()["inverted"])
    found += [finding.text for finding in report.found]
    if not report.fit.converged:
        found.append("The fit did not converge.")
    if report.truth and report.differs:
        found.append(
            f"The true labels do not have the direction of the votes' coefficients ({p_value(report.truth.pvalue)}). That "
            f"shows{if_drawn(report)} that the mean of the votes leans or is tilted, and no number of votes mends that."
        )
    if report.truth and report.unlike < SMALL_P:
        found.append(
            f"The items with a true label are unlike the others, by posterior or votes ({p_value(report.unlike)}). What is "
            "said by true labels holds for items drawn at random, each with the same chance."
        )
    if report.worth:
        found.extend(f"What true labels say is less certain than it looks: {text}." for text in report.worth.reservations)
    if report.truth and report.truth.lacks:
        found.append(f"Whether true labels and votes have the same coefficients was not tested, because {report.truth.lacks}.")
    if rarer < FEW * q and not report.penalised:
        found.append(
            f"Few items: {items_worth(rarer)} of votes for the rarer class and {q} coefficients. Below {FEW} for "
            "each coefficient, standard errors are too small and alpha0 tends to be too high; its interval allows for "
            f"that, less and less well, and below {FEWEST} none is given."
        )
    if report.goodness_of_fit.pvalue < SMALL_P:
        found.append(
            f"The votes do not follow the fitted posterior ({p_value(report.goodness_of_fit.pvalue)}): a feature may be "
            "missing, or enter in another form, and alpha0 is then too low; or some votes are guesses, and it is too high."
        )
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
    fit = (
        "with a ridge penalty chosen by five-fold cross-validation; alpha0 and the posteriors of items rest on predictions "
        "from other folds"
        if report.penalised
        else "by Firth's penalised likelihood, as the features separate the votes"
        if report.separation != "none"
        else f"by maximum likelihood, with sandwich standard errors over items{annotators}"
    )
    said = [
        f"We analysed {several(counted['votes used'], 'vote')}{of} on {several(counted['items used'], 'item')} with softlabel "
        f"{report.made['version']} (seed {report.made['seed']}).",
        f"A logistic regression of the class {report.positive!r}{against} on {several(p, 'feature')} was fitted to the "
        f"pooled votes {fit}.",
    ]
    if not np.isnan(report.alpha0.value):
        interval = "" if report.alpha0_lacks else ", with an interval from the likelihood adjusted as by Cox and Reid (1987)"
        said.append(
            "The overdispersion parameter alpha0 was estimated by the Dirichlet-multinomial likelihood with the coefficients "
            f"held fixed (Ahfock and McLachlan, 2021){interval}."
        )
    if report.agreement and not report.agreement_lacks:
        said.append("Agreement is Krippendorff's alpha, its interval from 2,000 resamples of items.")
    if k:
        said.append(
            "Annotators were examined given the counts of their items, with a chance of 1% in all to accuse anyone falsely."
        )
    if report.worth:
        said.append(
            f"From {several(report.worth.n_truths, 'true label')}{if_drawn(report) or ','} the error of the votes' rule, the "
            "lean, scale and tilt of the votes' mean and the equal number of true labels were predicted by the posterior of a "
            "normal prior over these (importance sampling)."
        )
    said.append(f"Intervals have level {100 * report.level:g}%.")
    return " ".join(said)
