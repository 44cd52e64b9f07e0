"""From tables of votes and features to answers: what the votes are worth, whether to believe it, what to buy next."""

import logging
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from softlabel.report import parts
from softlabel.report import rivals
from softlabel.validation import Array, ConvergenceWarning, SeparationWarning, listed, single, as_level, as_positive, as_rng
from softlabel.report.parts import GoodnessOfFit, Interval, TruthTest, shown
from softlabel.tables import VoteTable, read_features, read_truth, read_votes
from softlabel.logistic import LogisticFit, fit_logistic
from softlabel.overdispersion import OverdispersionTest

log = logging.getLogger(__name__)
FEW = 10  # items of the rarer class for each coefficient
SMALL_P = 0.01  # below which a test is worth a warning
KNOWN = 50  # true labels for a comparison


@dataclass(frozen=True, eq=False)
class VoteReport:
    """What a table of votes says; made by :func:`analyse_votes`.

    Attributes
    ----------
    fit : LogisticFit
        Fit to the pooled votes; by Firth's method if they are separated.
    separation : {"none", "quasi", "complete"}
        Whether the features separate the votes.
    alpha0 : Interval
        Overdispersion parameter: value, low, high; nan, 0 and infinity where no item has two votes.
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
    counted : dict
        Rows, items, votes, missing votes, repeats and so on, as they were found.
    warnings, set_aside : tuple of str
        Reasons not to believe a number, gravest first; what was not used.
    positive, level, cost_item, cost_vote
        Arguments.
    """

    fit: LogisticFit
    separation: Literal["none", "quasi", "complete"]
    alpha0: Interval
    overdispersion: OverdispersionTest | None
    efficiency: Interval
    efficiency_direct: float
    goodness_of_fit: GoodnessOfFit
    calibration: pd.DataFrame
    histogram: pd.DataFrame
    spending: pd.DataFrame
    advice: Literal["more votes", "more items", "either"]
    best_votes: Interval
    annotators: pd.DataFrame
    items: pd.DataFrame
    truth: TruthTest | None
    comparison: pd.DataFrame | None
    counted: dict[str, int]
    warnings: tuple[str, ...]
    set_aside: tuple[str, ...]
    positive: object
    level: float
    cost_item: float
    cost_vote: float

    def table(self) -> pd.DataFrame:
        """The main numbers: a row each, with the ends of the interval where there is one."""
        value, low, high = self.alpha0
        rows = {
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
        rows = {name: row if isinstance(row, tuple) else (row, np.nan, np.nan) for name, row in rows.items()}
        return pd.DataFrame(rows, index=["value", "low", "high"]).T.rename_axis("quantity")

    def sentences(self) -> list[str]:
        """The findings in words."""
        n, votes = self.counted["items used"], self.counted["votes used"]
        out = [
            f"{n:,} items with {votes:,} votes were used, {shown(votes / n)} an item, of {len(self.annotators):,} annotators."
        ]
        if self.overdispersion is None:
            out.append(
                "No item has two votes, so alpha0 cannot be known; a single vote is worth one true label whatever it is."
            )
        else:
            hang = "hang together" if self.overdispersion.pvalue < 0.05 else "are not shown to hang together"
            out.append(f"Beyond what the features explain, votes on an item {hang}: alpha0 is {self.alpha0}.")
            out.append(f"If the model holds, the votes on an item are worth {self.efficiency} true labels.")
        item = self.spending["gain"].iloc[1]
        low, high = self.spending.loc["one more vote an item", ["low", "high"]]
        out.append(
            f"One more vote on each item would add {low:.1%} to {high:.1%} of information, the same money on new items "
            f"{item:.1%}: " + {"either": "the data leave open which is better."}.get(self.advice, f"buy {self.advice}.")
        )
        if self.truth:
            out.append(f"The rule from the votes is right on {self.truth.accuracy:.1%} of {self.truth.n_items:,} true labels.")
        return out

    def __repr__(self) -> str:
        return "\n  ".join(["VoteReport", *self.sentences(), *self.set_aside, *(f"WARNING: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        from softlabel.report.page import fragment  # matplotlib takes longer to import than the rest of the package

        return fragment(self)

    def to_html(self) -> str:
        """The whole report as one page that needs no other file and no network."""
        from softlabel.report.page import page

        return page(self)

    def save(self, path: str | Path) -> None:
        """Write :meth:`to_html` to a file."""
        Path(path).write_text(self.to_html(), encoding="utf-8")


def analyse_votes(
    votes: pd.DataFrame,
    features: pd.DataFrame,
    *,
    positive: object,
    truth: Hashable | pd.Series | None = None,
    columns: Sequence[Hashable] | None = None,
    repeats: Literal["first", "keep"] = "first",
    cost_item: float = 1.0,
    cost_vote: float = 1.0,
    level: float = 0.95,
    rng: np.random.Generator | int | None = 0,
) -> VoteReport:
    """Analyse the votes of several annotators on items with features.

    Parameters
    ----------
    votes : DataFrame
        Long, a row a vote, with the columns item, annotator and label (or task, worker and label); or wide, an item in each
        row (by a column item or task, or the index) and an annotator in each column. A missing label is a missing vote.
    features : DataFrame
        An item in each row (by a column item or task, or the index), and numbers. An item that lacks one is set aside and
        named.
    positive : object
        The label of the positive class. There must be two labels.
    truth : str or Series, optional
        True labels where they are known: a column of ``features``, or a Series by item. In the words of the votes, or 1 and 0.
    columns : sequence of str, optional
        The columns of ``features`` to use; all by default.
    repeats : {"first", "keep"}
        What to do with further votes of an annotator on the same item. "first" counts the first, "keep" each.
    cost_item, cost_vote : float
        Price of an item (with its features) and of a vote, in any unit; ``cost_item`` may be 0.
    level : float
        Of the intervals.
    rng : Generator, int or None
        For the bootstrap and the choice of folds; by default always the same.

    Returns
    -------
    VoteReport

    Raises
    ------
    ValueError
        If a table cannot be read, naming row and column; if the items do not match; or as :func:`fit_logistic`.

    Notes
    -----
    With M votes on an item, independent of the rest, the pooled fit carries E[M]^2 (1 + alpha0) / (E[M^2] + alpha0 E[M])
    times the information of one true label an item; equal numbers give Theorem 2 of Ahfock & McLachlan (2021). The factor
    rises with alpha0, so that the ends of one interval give those of the other. Intervals of alpha0 hold the coefficients
    fixed: percentiles of 2000 estimates by :func:`bootstrap_alpha0` up to 5000 items, its normal limit on the scale of log
    alpha0 above.

    Annotators are compared with all votes on the same items. If they are exchangeable, one of them gives a positive vote with
    probability s / m where s of m votes are positive, whatever the item is; the z values need no other assumption.

    Examples
    --------
    >>> import numpy as np
    >>> from softlabel import TwoClassNormal, sample_votes
    >>> model = TwoClassNormal.canonical(2)
    >>> X, _ = model.sample(200, rng=1)
    >>> features = pd.DataFrame(X, columns=["size", "shape"]).rename_axis("item")
    >>> s = sample_votes(model.posterior(X), 3, alpha0=5, rng=2)[:, :1]
    >>> wide = pd.DataFrame(np.arange(3) < s, columns=["Ann", "Bob", "Cem"]).rename_axis("item")
    >>> report = analyse_votes(wide, features, positive=True)
    >>> report.counted["votes used"], report.separation
    (600, 'none')
    """
    level, cost_vote, rng = as_level(level), as_positive(cost_vote, "cost_vote"), as_rng(rng)
    cost_item = 0.0 if single(cost_item) == 0 else as_positive(cost_item, "cost_item")
    table = read_votes(votes, positive, repeats)
    log.info("votes: %s rows, %s items, %s annotators", *(f"{len(x):,}" for x in (table.item, table.items, table.annotators)))
    X, truth = read_features(features, columns, truth)
    log.info("features: %s items, %s columns", f"{len(X):,}", X.shape[1])
    y = None if truth is None else read_truth(truth, X.index, table.labels, positive)
    items, at = _items(table, X, y)
    X = X[(items["status"] == "used").to_numpy()[: len(X)]]
    if not len(X):
        raise ValueError(_nothing_to_use(table, items))
    used = items.loc[X.index]
    counts = np.column_stack([used["positive"], used["votes"] - used["positive"]]).astype(float)

    fit, separation = _fit(X, counts)
    log.info("fitted %s coefficients to %s votes on %s items", len(fit.coef), f"{counts.sum():,.0f}", f"{len(X):,}")
    tau = fit.posterior(X)
    items["posterior"] = pd.Series(tau[:, 0], X.index).reindex(items.index)
    alpha0, test = parts.overdispersion(counts, tau, level, rng)
    log.info("alpha0 is %s", alpha0)
    m, omegas = counts.sum(axis=1), np.array([1 / a if a else np.inf for a in alpha0])
    omega = 0.0 if np.isnan(omegas[0]) else omegas[0]  # of single votes any value does
    calibration, *fits = parts.calibration(counts, tau, omega)
    histogram, share = parts.spread_of_votes(counts, tau, omega)
    spending, advice, best = parts.spending(m, omegas, cost_item, cost_vote)
    truth_by_item = None if y is None else items["truth"].to_numpy()[at]
    truth_test = None if y is None else parts.against_truth(fit, X, tau, used["truth"].to_numpy())
    comparison, why = _comparison(table, at, X, items, rng)
    log.info("%s", why if comparison is None else "compared with other ways to make labels")
    report = VoteReport(
        fit,
        separation,
        alpha0,
        test,
        Interval(*(parts.pooled_efficiency(m, w) for w in (omega, *np.where(np.isnan(omegas), 0, omegas)[1:]))),
        parts.direct_efficiency(fit, X, tau),
        GoodnessOfFit(*fits, share),
        calibration,
        histogram,
        spending,
        advice,
        best,
        parts.annotators(table, truth_by_item),
        items,
        truth_test,
        comparison,
        _counted(table, items),
        (),
        (),
        positive,
        level,
        cost_item,
        cost_vote,
    )
    return replace(report, warnings=tuple(_warnings(report, counts)), set_aside=tuple(_set_aside(report, repeats, why)))


def _items(table: VoteTable, X: pd.DataFrame, y: Array | None) -> tuple[pd.DataFrame, np.ndarray]:
    """One row an item, those with features first, and the row of each item of the votes."""
    extra = X.index.get_indexer(table.items) < 0
    index = X.index.append(table.items[extra]).rename("item")
    at = index.get_indexer(table.items)
    m, s = (np.bincount(at, weights=c, minlength=len(index)).astype(int) for c in table.count())
    incomplete = np.r_[X.isna().any(axis=1).to_numpy(), np.zeros(extra.sum(), bool)]
    no_features = np.arange(len(index)) >= len(X)
    status = np.select([m == 0, no_features, incomplete], ["no votes", "no features", "incomplete features"], "used")
    items = pd.DataFrame({"votes": m, "positive": s, "status": status}, index=index)
    if y is not None:
        items["truth"] = np.r_[y, np.full(extra.sum(), np.nan)]
    return items, at


def _nothing_to_use(table: VoteTable, items: pd.DataFrame) -> str:
    if not (items["status"][items["votes"] > 0] != "no features").any():
        there = items.index[items["status"] == "no votes"]
        return (
            f"no item of votes is in features: votes have items {listed(table.items[:3])}, features {listed(there[:3])}; "
            "they must be the same and of the same type"
        )
    return "no item has both a vote and all its features"


def _fit(X: pd.DataFrame, counts: Array) -> tuple[LogisticFit, str]:
    """Maximum likelihood; Firth's method, whose estimate exists, where the features separate the votes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeparationWarning)  # both are said in the report
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = fit_logistic(X, counts)
        return (fit if fit.separation == "none" else fit_logistic(X, counts, method="firth")), fit.separation


def _comparison(table: VoteTable, at: np.ndarray, X: pd.DataFrame, items: pd.DataFrame, rng: np.random.Generator):
    """The comparison, or None and the reason."""
    if "truth" not in items:
        return None, "no true labels, so no comparison with other ways to make labels"
    known = items.index.get_indexer(X.index[items.loc[X.index, "truth"].notna()])
    if len(known) < KNOWN or items["truth"].iloc[known].nunique() < 2:
        return None, f"{len(known)} true labels on items used: a comparison takes {KNOWN}, of both classes"
    known = np.sort(rng.permutation(known)[: rivals.MOST_ITEMS])
    place = np.full(len(items), -1)
    place[known] = np.arange(len(known))
    item = place[at[table.item]]
    here = item >= 0
    y = items["truth"].to_numpy()[known]
    try:
        answer = rivals.compare(X.loc[items.index[known]], y, item[here], table.annotator[here], table.positive[here], rng)
    except ValueError as error:
        return None, f"no comparison with other ways to make labels: on part of the items {error}"
    return answer, "" if rivals.has_crowd_kit() else (
        "Dawid-Skene and GLAD are not compared, because crowd-kit is not installed: pip install 'softlabel[crowd]'"
    )


def _counted(table: VoteTable, items: pd.DataFrame) -> dict[str, int]:
    status = items["status"].value_counts()
    return {
        "votes read": table.n_rows,
        "missing votes": table.n_missing,
        "repeated votes": table.n_repeats,
        "votes used": int(items.loc[items["status"] == "used", "votes"].sum()),
        "items": len(items),
        "items used": int(status["used"]),
        **{f"items with {what}": int(status.get(what, 0)) for what in ("no votes", "no features", "incomplete features")},
        "annotators": len(table.annotators),
        "contradictory repeats": table.n_contradictions,
    }


def _warnings(report: VoteReport, counts: Array) -> list[str]:
    """Why not to believe it."""
    out, q = [], len(report.fit.coef)
    if report.separation != "none":
        out.append(
            f"{report.separation} separation: the features tell the votes apart without error, so no maximum likelihood "
            "estimate exists. All numbers rest on Firth's penalised fit and say little: use fewer features or more items."
        )
    if not report.fit.converged:
        out.append("The fit did not converge.")
    if report.truth and report.truth.pvalue < SMALL_P:
        out.append(
            f"The true labels do not have the coefficients of the votes (p = {shown(report.truth.pvalue)}): the annotators, "
            "taken together, are biased, and no number of votes makes up for that."
        )
    rarer = (counts / counts.sum(axis=1, keepdims=True)).sum(axis=0).min()
    if rarer < FEW * q:
        out.append(
            f"Few items: {shown(rarer)} items' worth of votes for the rarer class and {q} coefficients. Below {FEW} for each "
            "coefficient, standard errors are too small and alpha0 tends to be too high."
        )
    if report.goodness_of_fit.pvalue < SMALL_P:
        out.append(
            f"The votes do not follow the fitted posterior (p = {shown(report.goodness_of_fit.pvalue)}): a feature may be "
            "missing, or enter in another form. alpha0 then takes the blame and is too low."
        )
    who = parts.differing(report.annotators, SMALL_P)
    if who:
        out.append(
            f"Annotators who differ from the others on the same items, by their share of positive votes or by how often they "
            f"agree: {len(who)} of {len(report.annotators)} ({listed(who)})."
        )
    return out


def _set_aside(report: VoteReport, repeats: str, why: str) -> list[str]:
    """What was not used, and the first few names."""
    out, counted = [], report.counted
    if counted["missing votes"]:
        out.append(f"Votes without a label, not used: {counted['missing votes']:,}.")
    if counted["repeated votes"]:
        what = "not used" if repeats == "first" else "used like any other"
        out.append(
            f"Further votes of an annotator on the same item, {what}: {counted['repeated votes']:,}; "
            f"of them contradict the first: {counted['contradictory repeats']:,}."
        )
    for what in ("no votes", "no features", "incomplete features"):
        names = report.items.index[report.items["status"] == what]
        if len(names):
            out.append(f"Items with {what}, not used: {len(names):,} ({listed(names)}).")
    return [*out, *([f"{why[0].upper()}{why[1:]}."] if why else [])]
