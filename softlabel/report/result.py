"""What a table of votes and one of features say together: numbers; :mod:`softlabel.report.words` puts them in words."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from softlabel.efficiency import pooled_efficiency
from softlabel.fits import LogisticFit
from softlabel.overdispersion import OverdispersionTest
from softlabel.report import buying, next_steps, words
from softlabel.report.base import Report
from softlabel.report.next_steps import MEND_FIRST
from softlabel.report.parts import GoodnessOfFit, Interval, TruthTest, unlike
from softlabel.report.penalised import PenalisedFit
from softlabel.worth import WorthOfVotes

WORTHWHILE = 0.05  # gain of information by weights, from which on they are named


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class VoteReport(Report):
    """What votes on items with features say; made by :func:`analyse_votes`.

    Attributes
    ----------
    fit : LogisticFit or PenalisedFit
        Fit to the pooled votes: by maximum likelihood; by Firth's method if they are separated; with a ridge penalty if there
        are very many features for the items.
    coefficients : DataFrame
        Coefficients of the fit, with standard errors and intervals where there are any.
    separation : {"none", "quasi", "complete"}
        Whether the features separate the votes.
    separated : str
        Which of them do so, in words.
    overdispersion : OverdispersionTest or None
        Test of alpha0 = inf; None where it cannot be made.
    efficiency, weighted : Interval
        How many true labels the votes on an item are worth if their mean is right, by the Dirichlet-multinomial: pooled, and
        with weights 1 / phi.
    efficiency_direct : float
        The same as ``efficiency`` from the scatter of the votes alone: (det I^-1 / det C)^(1 / (p + 1)), where C is the
        sandwich and I the information of one true label on each item; ``nan`` of a penalised fit, and where items are too few
        for an interval of alpha0, or separated.
    promised : Interval
        ``efficiency`` times the number of items.
    goodness_of_fit : GoodnessOfFit
        Statistic, degrees of freedom and p-value of the groups in ``calibration``; share of items in the 95% band.
    calibration, histogram : DataFrame
        Observed and expected votes by group of posterior; items by their number of positive votes.
    truth : TruthTest or None
        None without true labels.
    worth : WorthOfVotes or None
        What the votes are worth by the true labels, by :func:`worth_of_votes`; None without true labels.
    inverted : bool
        Whether the interval of ``worth.scale`` is below 0: the votes go against the true labels.
    refuted : bool
        Whether ``worth`` puts the equal number of true labels below ``promised``, with both intervals.
    remedies : tuple of str
        What improves the answer and costs nothing.
    spending : DataFrame
        What the price of one more vote on each item buys, as votes, as items, and as true labels if they have a price and
        some items have none:
        ``gain`` of information with the ends of its interval, ``low`` and ``high``. Without true labels as if the mean of the
        votes were right; with some, these are in hand, and votes have the ceiling that :func:`split_budget` has.
    advice : {"more votes", "more items", "true labels", "either", "none"}
        What is best at all ends; "either" where they leave it open, and "none" where the numbers cannot be relied on.
    best_votes : Interval
        Best number of votes an item for a study that starts afresh with the same money and ``min_items`` at least, or as many
        items as here if these are fewer.
    comparison : DataFrame or None
        Rules trained on other labels, judged by the truth; None without enough of it.
    lacking : str
        Why there is no comparison, or what it lacks.
    classes : str
        That the positive class is compared with all others together, if there are three labels or more.
    cost_item, cost_vote, cost_truth
        Arguments.

    Notes
    -----
    ``items`` has for each item: ``votes``; ``positive``, the number of those; ``status``, "used" or why not; ``truth`` if
    there is any; ``posterior``, the probability of the positive class by the features alone; ``given votes``, that of one more
    positive vote, by features and votes, with ``low`` and ``high`` over the interval of alpha0; ``most``, the probability that
    most of ever more votes are positive, and ``doubt``, that most are not what now looks likelier; ``disagreement``, the
    probability that two more votes differ; ``relabel``, the order in which one more vote helps most; and ``weight``,
    1 / phi. The model: an item has probabilities of its own, Dirichlet with parameters alpha0 tau before and alpha0 tau + s
    after votes s. ``given votes`` is the posterior probability of the truth only if the truth is like one more vote.

    The other attributes are those of every report: items, annotators, counted, agreement, alpha0, findings, notes, files,
    made, positive, repeats, level, headline, details, warnings, set_aside and methods.
    """

    fit: LogisticFit | PenalisedFit
    coefficients: pd.DataFrame
    overdispersion: OverdispersionTest | None
    efficiency_direct: float
    goodness_of_fit: GoodnessOfFit
    truth: TruthTest | None
    worth: WorthOfVotes | None
    comparison: pd.DataFrame | None
    separated: str
    lacking: str
    classes: str
    cost_item: float
    cost_vote: float
    cost_truth: float | None

    @property
    def used(self) -> pd.DataFrame:
        """The items that were used."""
        return self.items[self.items["status"] == "used"]

    @property
    def separation(self) -> Literal["none", "quasi", "complete"]:
        return self.fit.separation

    @property
    def penalised(self) -> bool:
        """Whether the fit has a ridge penalty."""
        return isinstance(self.fit, PenalisedFit)

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
    def weighted(self) -> Interval:
        m = self.used["votes"].to_numpy(float)
        return Interval(*(buying.weighted_efficiency(m, np.inf if np.isnan(a) else a) for a in self.alpha0))

    @property
    def gain_of_weights(self) -> Interval:
        """Share of information that weights 1 / phi add; its ends in order."""
        value, *ends = (w / p - 1 for w, p in zip(self.weighted, self.efficiency))
        return Interval(value, min(ends), max(ends))

    @property
    def use_weights(self) -> bool:
        """Whether weights are worth naming."""
        return not np.isnan(self.alpha0.value) and self.gain_of_weights.value >= WORTHWHILE

    @property
    def promised(self) -> Interval:
        return Interval(*(len(self.used) * e for e in self.efficiency))

    @property
    def inverted(self) -> bool:
        return self.worth is not None and self.worth.scale.high < 0

    @property
    def refuted(self) -> bool:
        return self.worth is not None and self.worth.equal_number.high < self.promised.low

    @property
    def differs(self) -> bool:
        """Whether the true labels have another direction than the votes: a lean or a tilt."""
        return self.truth is not None and self.truth.pvalue < words.SMALL_P

    @property
    def unlike(self) -> float:
        """Chance, if items were drawn at random for true labels, that these differ so in posterior or share of votes."""
        used, known = self.used, self.used["truth"].notna()
        return min(1.0, 2 * min(unlike(x, known) for x in (used["posterior"], used["positive"] / used["votes"])))

    @property
    def trusted(self) -> bool:
        """Whether nothing was found that must be mended before any number can be relied on."""
        return self.separation == "none" and not self.inverted and not self.kinds & MEND_FIRST

    @property
    def mean_doubted(self) -> bool:
        """Whether the votes show that their mean is no logistic regression: whether it is right they cannot tell."""
        return "guesses by all" in self.kinds

    @cached_property
    def _gained(self) -> pd.DataFrame:
        return buying.gains(
            self.used["votes"].to_numpy(float),
            self.alpha0,
            self.cost_item,
            self.cost_vote,
            weighted=self.use_weights,
            cost_truth=self.cost_truth,
            n_truths=self.worth.n_truths if self.worth else 0,
            n_unknown=int(self.used["truth"].isna().sum()) if "truth" in self.used else len(self.used),
            equal=Interval(*self.worth.equal_number) if self.worth else None,
        )

    @property
    def spending(self) -> pd.DataFrame:
        return buying.spending(self._gained)

    @property
    def advice(self) -> buying.Purchase:
        best = buying.advice(self._gained)
        unsure = not self.trusted or self.mean_doubted or ((self.refuted or self.differs) and best != "true labels")
        return "none" if unsure else best

    @property
    def min_items(self) -> int:
        """Items that a study must have for its intervals to hold: ten of the rarer class for each coefficient."""
        share = self.used["positive"] / self.used["votes"]
        return int(np.ceil(words.FEW * len(self.fit.coef) / max(min(share.mean(), 1 - share.mean()), 1e-3)))

    @property
    def _spent(self) -> float:
        return len(self.used) * self.cost_item + float(self.used["votes"].sum()) * self.cost_vote

    @property
    def affordable(self) -> bool:
        """Whether the same money buys ``min_items`` with the best number of votes."""
        return self.min_items * (self.cost_item + self.best_votes.value * self.cost_vote) <= self._spent

    @property
    def most_votes(self) -> tuple[float, int]:
        """The most votes an item that the same money pays for, on so many items."""
        items = min(self.min_items, len(self.used))
        return float(np.floor((self._spent / items - self.cost_item) / self.cost_vote)), items

    @property
    def best_votes(self) -> Interval:
        return buying.best_votes(self.alpha0, self.cost_item, self.cost_vote, self.most_votes[0])

    remedies = cached_property(next_steps.remedies)
    headline = cached_property(words.headline)
    details = cached_property(words.details)
    warnings = cached_property(words.warnings)
    methods = cached_property(words.methods)

    @cached_property
    def set_aside(self) -> tuple[str, ...]:
        return (*super().set_aside, *words.set_aside(self))

    def _numbers(self) -> dict[str, Any]:
        numbers: dict[str, Any] = {
            "overdispersion, p-value": self.overdispersion.pvalue if self.overdispersion else np.nan,
            "true labels an item is worth, if the mean is right": self.efficiency,
            "the same, with weights": self.weighted,
            "the same, from the scatter alone": self.efficiency_direct,
            "goodness of fit, p-value": self.goodness_of_fit.pvalue,
            "share of items in the 95% band": self.goodness_of_fit.share_in_band,
            "best votes an item, afresh": self.best_votes,
        }
        if self.truth:
            numbers |= {"truth against votes, p-value": self.truth.pvalue}
        if self.worth:
            numbers |= {"error of the votes' rule": self.worth.error, "lean": self.worth.lean, "scale": self.worth.scale}
            numbers |= {"tilt": self.worth.tilt, "floor": self.worth.floor}
            numbers |= {"equal number of true labels": self.worth.equal_number}
        return numbers

    def _tables(self) -> dict[str, pd.DataFrame]:
        tables = {**super()._tables(), "coefficients": self.coefficients, "spending": self.spending}
        tables |= {"calibration": self.calibration, "histogram": self.histogram}
        return tables if self.comparison is None else tables | {"comparison": self.comparison}

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "advice": self.advice, "remedies": list(self.remedies)}
