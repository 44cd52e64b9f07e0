"""What a table of votes says: numbers, and the same in words."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from softlabel.efficiency import pooled_efficiency
from softlabel.fits import LogisticFit
from softlabel.labellers import differing_annotators
from softlabel.overdispersion import FEWEST, OverdispersionTest, rarer_items
from softlabel.report import parts
from softlabel.report.parts import CHAPTER, GoodnessOfFit, Interval, TruthTest, in_percent, shown
from softlabel.validation import listed, optional
from softlabel.worth import WorthOfVotes

FEW = 10  # items of the rarer class for each coefficient
SMALL_P = 0.01  # below which a test is worth a warning
MANY = 400  # true labels; somewhere from here to twice as many the false promise for defendants is refuted half of the time
WITHOUT_TRUTH = (
    "Votes cannot tell whether their mean is right. On three real data sets that have true labels as well it was not, and "
    "votes were worth less than this, once less than a tenth. True labels of items drawn at random (choose_for_truth) would "
    f"tell: some 50 how often the rule from the votes is wrong; to refute this worth, where it is false, takes {MANY} to "
    f"{2 * MANY}. Even they give no sharp worth. {CHAPTER}#few-truths"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class VoteReport:
    """What a table of votes says; made by :func:`analyse_votes`.

    Attributes
    ----------
    fit : LogisticFit
        Fit to the pooled votes; by Firth's method if they are separated.
    separation : {"none", "quasi", "complete"}
        Whether the features separate the votes.
    alpha0 : Interval
        Overdispersion parameter: value, low, high; ``nan``, 0 and ``inf`` where no item has two votes.
    overdispersion : OverdispersionTest or None
        Test of alpha0 = inf; None where no item has two votes.
    efficiency : Interval
        How many true labels the votes on an item are worth if their mean is right, by the Dirichlet-multinomial.
    efficiency_direct : float
        The same from the scatter of the votes alone: (det I^-1 / det C)^(1 / (p + 1)), where C is the sandwich and I the
        information of one true label on each item.
    goodness_of_fit : GoodnessOfFit
        Statistic, degrees of freedom and p-value of the groups in ``calibration``; share of items in the 95% band.
    calibration, histogram : DataFrame
        Observed and expected votes by group of posterior; items by their number of positive votes.
    spending : DataFrame
        What the same money buys if the mean of the votes is right: ``gain`` of information with the ends of its interval,
        ``low`` and ``high``.
    advice : {"more votes", "more items", "either"}
        If the mean of the votes is right; "either" where the interval leaves it open.
    best_votes : Interval
        Best number of votes an item for a study that starts afresh.
    annotators, items : DataFrame
        One row each. ``items["status"]`` says whether an item was used, and why not.
    promised : Interval
        ``efficiency`` times the number of items.
    worth : WorthOfVotes or None
        What the votes are worth by the true labels, by :func:`worth_of_votes`; None without true labels.
    refuted : bool
        Whether ``worth`` puts the equal number of true labels below ``promised``, with both intervals.
    truth : TruthTest or None
        None without true labels.
    comparison : DataFrame or None
        Rules trained on other labels, judged by the truth; None without enough of it.
    lacking : str
        Why there is no comparison, or what it lacks.
    counted : dict
        Rows, items, votes, missing votes, repeats and so on, as they were found.
    warnings, set_aside : tuple of str
        Reasons not to believe a number, gravest first; what was not used.
    notes : tuple of str
        What was guessed or mended where the tables were read.
    files : dict
        Names of the files of votes and features, where they came from files.
    positive, repeats, level, cost_item, cost_vote
        Arguments.
    """

    items: pd.DataFrame
    annotators: pd.DataFrame
    counted: dict[str, int]
    fit: LogisticFit
    alpha0: Interval
    overdispersion: OverdispersionTest | None
    efficiency_direct: float
    goodness_of_fit: GoodnessOfFit
    truth: TruthTest | None
    worth: WorthOfVotes | None
    comparison: pd.DataFrame | None
    lacking: str
    notes: tuple[str, ...]
    files: dict[str, str]
    positive: object
    repeats: Literal["first", "keep"]
    level: float
    cost_item: float
    cost_vote: float

    @property
    def used(self) -> pd.DataFrame:
        """The items that were used."""
        return self.items[self.items["status"] == "used"]

    @property
    def separation(self) -> Literal["none", "quasi", "complete"]:
        return self.fit.separation

    @property
    def calibration(self) -> pd.DataFrame:
        return self.goodness_of_fit.calibration

    @property
    def histogram(self) -> pd.DataFrame:
        return self.goodness_of_fit.histogram

    @cached_property
    def efficiency(self) -> Interval:
        m = self.used["votes"].to_numpy(float)
        return Interval(*(pooled_efficiency(m, np.inf if np.isnan(a) else a) for a in self.alpha0))

    @property
    def promised(self) -> Interval:
        return Interval(*(len(self.used) * e for e in self.efficiency))

    @property
    def refuted(self) -> bool:
        return self.worth is not None and self.worth.equal_number.high < self.promised.low

    @property
    def _differs(self) -> bool:
        """Whether the true labels have other coefficients than the votes."""
        return self.truth is not None and self.truth.pvalue < SMALL_P

    @cached_property
    def spending(self) -> pd.DataFrame:
        return parts.spending(self.used["votes"].to_numpy(float), self.alpha0, self.cost_item, self.cost_vote)

    @property
    def advice(self) -> Literal["more votes", "more items", "either"]:
        return parts.advice(self.spending)

    @property
    def best_votes(self) -> Interval:
        return parts.best_votes(self.alpha0, self.cost_item, self.cost_vote)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        found, q = [], len(self.fit.coef)
        if self.separation != "none":
            found.append(
                f"{self.separation} separation: the features tell the votes apart without error, so no maximum likelihood "
                "estimate exists. All numbers rest on Firth's penalised fit and say little: use fewer features or more items."
            )
        if not self.fit.converged:
            found.append("The fit did not converge.")
        if self.truth and self._differs:
            found.append(
                f"The true labels do not have the coefficients of the votes (p = {shown(self.truth.pvalue)}): their mean "
                "leans, is off scale or is tilted, and no number of votes mends that. (Off scale alone, decisions stay right.)"
            )
        if self.worth:
            found.extend(f"What true labels say is less certain than it looks: {text}." for text in self.worth.reservations)
        m, s = self.used["votes"], self.used["positive"]
        rarer = rarer_items(np.column_stack([s, m - s]))
        if rarer < FEW * q:
            found.append(
                f"Few items: {shown(rarer)} items' worth of votes for the rarer class and {q} coefficients. Below {FEW} for "
                "each coefficient, standard errors are too small and alpha0 tends to be too high; its interval allows for "
                f"that, less and less well, and below {FEWEST} none is given."
            )
        if self.goodness_of_fit.pvalue < SMALL_P:
            found.append(
                f"The votes do not follow the fitted posterior (p = {shown(self.goodness_of_fit.pvalue)}): a feature may be "
                "missing, or enter in another form. alpha0 then takes the blame and is too low."
            )
        if who := differing_annotators(self.annotators, SMALL_P):
            found.append(
                "Annotators who differ from the others on the same items, by their share of positive votes or by how often "
                f"they agree: {len(who)} of {len(self.annotators)} ({listed(who)})."
            )
        return tuple(found)

    @cached_property
    def set_aside(self) -> tuple[str, ...]:
        found, known = [*self.notes], self.items.get("truth", self.items["votes"] * np.nan).notna()
        if missing := self.counted["missing votes"]:
            found.append(f"Votes without a label, not used: {missing:,}.")
        if repeated := self.counted["repeated votes"]:
            what = "not used" if self.repeats == "first" else "used like any other"
            found.append(
                f"Further votes of an annotator on the same item, {what}: {repeated:,}; "
                f"of them contradict the first: {self.counted['contradictory repeats']:,}."
            )
        for what in ("no votes", "no features", "incomplete features"):
            which = self.items["status"] == what
            if which.any():
                but = " but for true labels" if what == "no votes" and self.worth and known[which].any() else ""
                found.append(f"Items with {what}, not used{but}: {which.sum():,} ({listed(self.items.index[which])}).")
        if lost := int(known.sum()) - (self.worth.n_truths if self.worth else 0):
            found.append(f"True labels of items that lack a feature, not used: {lost:,}.")
        return (*found, f"{self.lacking[0].upper()}{self.lacking[1:]}.") if self.lacking else tuple(found)

    def table(self) -> pd.DataFrame:
        """The main numbers: a row each, with the ends of the interval where there is one."""
        value, low, high = self.alpha0
        rows: dict[str, float | tuple[float, float, float]] = {
            **self.counted,
            "votes an item": self.counted["votes used"] / self.counted["items used"],
            "alpha0": self.alpha0,
            "correlation of two votes": (1 / (1 + value), 1 / (1 + high), 1 / (1 + low)),
            "overdispersion, p-value": self.overdispersion.pvalue if self.overdispersion else np.nan,
            "true labels an item is worth, if the mean is right": self.efficiency,
            "the same, from the scatter alone": self.efficiency_direct,
            "goodness of fit, p-value": self.goodness_of_fit.pvalue,
            "share of items in the 95% band": self.goodness_of_fit.share_in_band,
            "best votes an item, afresh": self.best_votes,
        }
        if self.truth:
            rows |= {"truth against votes, p-value": self.truth.pvalue}
        if self.worth:
            rows |= {"error of the votes' rule": self.worth.error, "lean": self.worth.lean, "scale": self.worth.scale}
            rows |= {"tilt": self.worth.tilt, "floor": self.worth.floor}
            rows |= {"equal number of true labels": self.worth.equal_number}
        ends = {name: row if isinstance(row, tuple) else (row, np.nan, np.nan) for name, row in rows.items()}
        return pd.DataFrame(ends, index=["value", "low", "high"]).T.rename_axis("quantity")

    def sentences(self) -> list[str]:
        """The findings in words."""
        n, votes, k = self.counted["items used"], self.counted["votes used"], len(self.annotators)
        of = f", of {k:,} annotator{'s' * (k > 1)}" if k else ""
        said = [f"{n:,} items with {votes:,} votes were used, {shown(votes / n)} an item{of}."]
        if self.worth:
            said += self._by_truth(self.worth)
        if self.overdispersion:
            hang = "hang together" if self.overdispersion.pvalue < 0.05 else "are not shown to hang together"
            said.append(f"Beyond what the features explain, votes on an item {hang}: alpha0 is {self.alpha0}.")
        else:
            said.append("No item has two votes, so alpha0 cannot be known.")
        said += self._by_formula()
        (_, low, high), (item, _, _) = self.spending.to_numpy()
        better = "the data leave open which is better" if self.advice == "either" else f"buy {self.advice}"
        said.append(
            "There is no advice to buy votes or items: their gains are computed as if the mean of the votes were right."
            if self.refuted or self._differs
            else f"If the mean is right, one more vote on each item adds {low:.1%} to {high:.1%} of information, the same "
            f"money on new items {item:.1%}: {better}."
        )
        if self.worth:
            said.append(f"One rule from votes and true labels: fit_votes_and_truth. {CHAPTER}#one-rule")
        return said

    def _by_truth(self, worth: WorthOfVotes) -> list[str]:
        """What the true labels say of the votes, in words."""
        floor = Interval(*(100 * x for x in worth.floor))
        lean, scale, tilt, floor = (parts.to_decimals(x) for x in (worth.lean, worth.scale, worth.tilt, floor))
        tilted = str(tilt) if len(self.fit.coef) > 2 else "0, as there is one feature"
        return [
            f"By {worth.n_truths:,} true label{'s' * (worth.n_truths > 1)}, the rule from the votes is wrong on "
            f"{in_percent(worth.error)} of new items; all votes are worth "
            f"{parts.equal_number_in_words(worth, len(self.fit.coef))} true labels.",
            f"However many votes, the error stays {floor} percentage points above that of the best rule on these features.",
            f"The mean of the votes has lean {lean}, scale {scale} and tilt {tilted}; the right one has 0, 1 and 0.",
        ]

    def _by_formula(self) -> list[str]:
        """What the votes are worth if their mean is right, in words, and whether it is."""
        if_right, are = ("were right", "would be") if self.worth else ("is right", "are")
        one = f"the votes on an item {are} worth {self.efficiency} true labels, all votes {self.promised}"
        one = one if self.overdispersion else f"votes {are} worth one true label each"
        if not self.worth:
            return [f"If the mean of the votes {if_right}, {one}.", WITHOUT_TRUTH]
        few = "; so few seldom could" if self.worth.n_truths < MANY else ""
        told = "rule out so much" if self.refuted else f"do not rule out so much{few}"
        told += ", if one sets the reservations aside" if self.refuted and self.worth.reservations else ""
        return [f"If the mean of the votes {if_right}, {one}: the true labels {told}."]

    def __repr__(self) -> str:
        return "\n  ".join(["VoteReport", *self.sentences(), *self.set_aside, *(f"WARNING: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        optional("matplotlib", "report", "VoteReport.to_html")
        from softlabel.report.page import fragment  # matplotlib takes longer to import than the rest of the package

        return fragment(self)

    def to_html(self) -> str:
        """The whole report as one page that needs no other file and no network."""
        optional("matplotlib", "report", "VoteReport.to_html")
        from softlabel.report.page import page

        return page(self)

    def save(self, path: str | Path) -> None:
        """Write :meth:`to_html` to a file."""
        Path(path).write_text(self.to_html(), encoding="utf-8")
