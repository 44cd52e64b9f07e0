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
from softlabel.report.parts import GoodnessOfFit, Interval, TruthTest, shown
from softlabel.validation import listed, optional

FEW = 10  # items of the rarer class for each coefficient
SMALL_P = 0.01  # below which a test is worth a warning


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
        How many true labels the votes on an item are worth, by the Dirichlet-multinomial.
    efficiency_direct : float
        The same from the scatter of the votes alone: (det I^-1 / det C)^(1 / (p + 1)), where C is the sandwich and I the
        information of one true label on each item.
    goodness_of_fit : GoodnessOfFit
        Statistic, degrees of freedom and p-value of the groups in ``calibration``; share of items in the 95% band.
    calibration, histogram : DataFrame
        Observed and expected votes by group of posterior; items by their number of positive votes.
    spending : DataFrame
        What the same money buys: ``gain`` of information with the ends of its interval, ``low`` and ``high``.
    advice : {"more votes", "more items", "either"}
        "either" where the interval leaves it open.
    best_votes : Interval
        Best number of votes an item for a study that starts afresh.
    annotators, items : DataFrame
        One row each. ``items["status"]`` says whether an item was used, and why not.
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
    comparison: pd.DataFrame | None
    lacking: str
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
        if self.truth and self.truth.pvalue < SMALL_P:
            found.append(
                f"The true labels do not have the coefficients of the votes (p = {shown(self.truth.pvalue)}): the annotators, "
                "taken together, are biased, and no number of votes makes up for that."
            )
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
        found = []
        if missing := self.counted["missing votes"]:
            found.append(f"Votes without a label, not used: {missing:,}.")
        if repeated := self.counted["repeated votes"]:
            what = "not used" if self.repeats == "first" else "used like any other"
            found.append(
                f"Further votes of an annotator on the same item, {what}: {repeated:,}; "
                f"of them contradict the first: {self.counted['contradictory repeats']:,}."
            )
        for what in ("no votes", "no features", "incomplete features"):
            names = self.items.index[self.items["status"] == what]
            if len(names):
                found.append(f"Items with {what}, not used: {len(names):,} ({listed(names)}).")
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
            "true labels an item is worth": self.efficiency,
            "the same, from the scatter alone": self.efficiency_direct,
            "goodness of fit, p-value": self.goodness_of_fit.pvalue,
            "share of items in the 95% band": self.goodness_of_fit.share_in_band,
            "best votes an item, afresh": self.best_votes,
        }
        if self.truth:
            rows |= {"truth against votes, p-value": self.truth.pvalue, "accuracy of the rule": self.truth.accuracy}
        ends = {name: row if isinstance(row, tuple) else (row, np.nan, np.nan) for name, row in rows.items()}
        return pd.DataFrame(ends, index=["value", "low", "high"]).T.rename_axis("quantity")

    def sentences(self) -> list[str]:
        """The findings in words."""
        n, votes = self.counted["items used"], self.counted["votes used"]
        said = [
            f"{n:,} items with {votes:,} votes were used, {shown(votes / n)} an item, of {len(self.annotators):,} annotators."
        ]
        if self.overdispersion is None:
            said.append(
                "No item has two votes, so alpha0 cannot be known; a single vote is worth one true label whatever it is."
            )
        else:
            hang = "hang together" if self.overdispersion.pvalue < 0.05 else "are not shown to hang together"
            said.append(f"Beyond what the features explain, votes on an item {hang}: alpha0 is {self.alpha0}.")
            said.append(f"If the model holds, the votes on an item are worth {self.efficiency} true labels.")
        (_, low, high), (item, _, _) = self.spending.to_numpy()
        said.append(
            f"One more vote on each item would add {low:.1%} to {high:.1%} of information, the same money on new items "
            f"{item:.1%}: " + ("the data leave open which is better." if self.advice == "either" else f"buy {self.advice}.")
        )
        if self.truth:
            said.append(
                f"The rule from the votes is right on {self.truth.accuracy:.1%} of {self.truth.n_items:,} true labels."
            )
        return said

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
