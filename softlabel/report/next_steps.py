"""What to do next, in words: first what is free, then what is best to buy."""

from typing import TYPE_CHECKING

from softlabel.labellers import Finding
from softlabel.report.parts import CHAPTER, shown
from softlabel.report.texts import say, texts
from softlabel.validation import listed

if TYPE_CHECKING:
    from softlabel.report.result import VoteReport

# After these no advice to buy anything can be relied on, until the table has been mended.
MEND_FIRST = {"no sign", "contradiction", "reversed", "guessing", "copies", "asked again", "repeated items"}
MEND_FIRST |= {"vote as feature", "consensus as feature", "feature of one"}


def next_steps(report: "VoteReport") -> str:
    if "no sign" in report.kinds:
        return say("buy nothing")
    steps = list(report.remedies[:2])
    if not report.trusted:
        return " ".join([*steps, "Then make the report again; until then there is no advice to buy anything."])
    if report.worth:
        steps.append(f"Make one rule of votes and true labels: fit_votes_and_truth. {CHAPTER}#one-rule")
    elif not report.truth:
        steps.append(say("ask"))
    return " ".join([*steps, _buy(report)])


def _buy(report: "VoteReport") -> str:
    """What the next money is best spent on."""
    frame = report.spending
    if report.advice == "none":
        return no_advice(report)
    by = zip(("votes add", "new items", "true labels"), frame.to_numpy())
    said = ", ".join(f"{how} {_gain(low, high)}{' of information' * (how == 'votes add')}" for how, (_, low, high) in by)
    best = f"at all ends of the intervals it is best to buy {report.advice}"
    if report.advice == "either":
        best = f"the data leave open which is {'best' if len(frame) > 2 else 'better'}"
    start = "For" if report.worth else "If the mean is right, for"
    return f"{start} the price of one more vote on each item {said}: {best}."


def if_drawn(report: "VoteReport") -> str:
    """What true labels of some of the items take for granted."""
    return ", if of items drawn at random," if report.used["truth"].isna().any() else ""


def no_advice(report: "VoteReport") -> str:
    """Why there is none, of a table that may be trusted."""
    why = say("advice, doubted") if report.mean_doubted else say("advice, refuted", drawn=if_drawn(report))
    return f"There is no advice to buy votes or items: {why}."


def _gain(low: float, high: float) -> str:
    return f"{low:,.1%} to {high:,.1%}" if f"{low:.1%}" != f"{high:.1%}" else f"{low:,.1%}"


def mend(found: tuple[Finding, ...]) -> tuple[str, ...]:
    """What to do about what was found of annotators and features, in a sentence for each kind, or each set of copyists."""
    said, advice = [], texts()["mend"]
    for one in found:
        alike = [one] if one.kind == "copies" else [other for other in found if other.kind == one.kind]
        who = [name for finding in alike for name in finding.who]
        if one.kind in advice and (who or "{who}" not in advice[one.kind]):
            said.append(advice[one.kind].format(who=listed(who), feature=listed([finding.feature for finding in alike])))
    return tuple(dict.fromkeys(said))


def remedies(report: "VoteReport") -> tuple[str, ...]:
    """What costs nothing, gravest first."""
    found = []
    if report.separation != "none":
        found.append(say("separated"))
    if report.inverted:
        found.append(say("look at truths"))
    found += mend(report.found)
    if report.use_weights:
        gain = report.gain_of_weights
        ends = "" if report.alpha0_lacks else f" ({gain.low:.0%} to {gain.high:.0%})"
        worth = shown(report.weighted.value) if report.alpha0_lacks else report.weighted
        found.append(say("weigh", gain=f"{gain.value:.0%}{ends}", worth=worth))
    return tuple(found)
