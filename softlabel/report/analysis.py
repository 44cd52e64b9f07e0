"""From tables of votes and features to answers: what the votes are worth, whether to believe it, what to buy next."""

import logging
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softlabel.fits import LogisticFit, LogisticRule
from softlabel.labellers import compare_annotators, examine_labellers
from softlabel.patient import fit_that_exists
from softlabel.report import parts, rivals
from softlabel.report.agreement import agreement
from softlabel.report.base import counted, made_today
from softlabel.report.classes import (
    are_several,
    doubtful,
    labels_of,
    one_against_the_rest,
    rest_of,
    truth_against_the_rest,
    what_it_is_on,
    with_pseudonyms,
)
from softlabel.report.items import describe
from softlabel.report.parts import SMALLEST, Interval
from softlabel.report.penalised import PenalisedFit, fit_penalised, needs_penalty
from softlabel.report.result import VoteReport
from softlabel.report.tidy import Tables, tidy
from softlabel.report.votes_alone import OF_FINDINGS, AgreementReport, analyse_agreement
from softlabel.separation import separated_by
from softlabel.tables import VoteTable, read_features, read_truth, read_votes
from softlabel.two_way import Who
from softlabel.validation import Array, as_level, as_positive, as_rng, listed
from softlabel.vote_models import variance_inflation
from softlabel.worth import FEW

log = logging.getLogger(__name__)
KNOWN = 50  # true labels for a comparison


def analyse_votes(
    votes: "pd.DataFrame | str | PathLike[str] | Any",
    features: "pd.DataFrame | str | PathLike[str] | Any | None",
    *,
    positive: object = None,
    truth: "Hashable | pd.Series[Any] | None" = None,
    columns: Sequence[Hashable] | None = None,
    exclude: Sequence[Hashable] = (),
    item: Hashable = None,
    annotator: Hashable = None,
    label: Hashable = None,
    count_columns: Sequence[Hashable] = (),
    missing: Iterable[object] = (),
    repeats: Literal["first", "keep"] = "first",
    cost_item: float = 1.0,
    cost_vote: float = 1.0,
    cost_truth: float | None = None,
    level: float = 0.95,
    pseudonyms: bool = False,
    rng: np.random.Generator | int | None = 0,
) -> VoteReport | AgreementReport:
    """Analyse the votes of several annotators on items, with features or without.

    Parameters
    ----------
    votes : DataFrame or path
        Long, a row a vote, with a column for each of item, annotator and label; or wide, an item in each row (by a column of
        theirs, or the index) and an annotator in each column; or ``count_columns``. A missing label is a missing vote. A file
        may be CSV with any separator and decimal sign, in UTF-8, UTF-16 or Latin-1, JSON (a list of records) or Parquet (needs
        pyarrow); its cells are text, and ``NA``, ``NaN``, ``null`` and ``None`` stand for nothing. Tables of
        Polars and of Arrow will do.
    features : DataFrame or path
        An item in each row (by a column of theirs, or the index), and numbers. An item that lacks one is set aside and
        named. Rows of an item that are alike count once, so that one file may hold votes and features: then the columns of the
        votes are no features.
        None if there are no features: then the report is on agreement alone.
    positive : object
        The label of the positive class; for labels that are text, 1 and True mean "1" and "True". If there are three labels or
        more, it is compared with all others together, and the report says so; each of these must have 10 votes, lest it be a
        slip of the pen. Without features it may be left out.
    truth : str or Series, optional
        True labels of some items, drawn at random (:func:`choose_for_truth`), or of all: a column of ``features``, or a Series
        by item. In the words of the votes, or 1 and 0. The items need no votes. With true labels the report says what the
        votes are worth by :func:`worth_of_votes`; without, what they would be worth if their mean were right.
    columns : sequence of str, optional
        The columns of ``features`` to use; all by default.
    exclude : sequence of str, optional
        Columns of either table to leave out; each must be in one of them.
    item, annotator, label : str, optional
        The columns of ``votes`` (and, of the items, of ``features`` if it is there) that hold these. By default they are known
        by their names: item, annotator and label, or those of common tools, such as task_id, worker_id and answer; which, is
        said.
    count_columns : sequence of str, optional
        Two columns of ``votes``, or more, with the numbers of votes for the labels that are their names, an item in each row;
        none of all votes.
    missing : sequence, optional
        Labels that say that there is none, such as "unsure", in any capitals; not for votes that are counted.
    repeats : {"first", "keep"}
        What to do with further votes of an annotator on the same item. "first" counts the first, "keep" each.
    cost_item, cost_vote : float
        Price of an item (with its features) and of a vote, in any unit; ``cost_item`` may be 0.
    cost_truth : float, optional
        Price of a true label of an item that is there, to be weighed against votes and items.
    level : float
        Of the intervals.
    pseudonyms : bool
        Whether annotators are to be called A1, A2, ... everywhere in the report, in the order in which they first appear in
        ``votes``: who has the votes can tell who is who, and who has the report cannot.
    rng : Generator, int or None
        For the choice of folds and the draws of :func:`worth_of_votes`; by default always the same.

    Returns
    -------
    VoteReport
        Or, without features, an :class:`AgreementReport`.

    Raises
    ------
    ValueError
        If a table cannot be read, naming row and column; if the items do not match; or as :func:`fit_logistic`.

    Notes
    -----
    With M votes on an item, independent of the rest and with the right mean, the pooled fit carries E[M]^2 (1 + alpha0) /
    (E[M^2] + alpha0 E[M]) times the information of one true label an item; equal numbers give Theorem 2 of Ahfock & McLachlan
    (2021). Votes alone cannot tell whether their mean is right. The factor
    rises with alpha0, so that the ends of one interval give those of the other. The estimate of alpha0 takes the fitted
    coefficients as known, and tends to be too high; its interval, the default of :func:`alpha0_interval`, allows for their
    error. There is none (0 to infinity) below 3 items of the rarer class for each coefficient, if the features separate the
    votes, if no item has two votes, or if a penalty takes over because features are many and items few.

    What true labels say allows for differences of annotators from ten of them on, as :func:`worth_of_votes` with ``votes``;
    with fewer, as everything else here, it is about these annotators.

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
    made = made_today(rng)
    level, rng = as_level(level), as_rng(rng)
    cost_item, cost_vote = as_positive(cost_item, "cost_item", or_zero=True), as_positive(cost_vote, "cost_vote")
    cost_truth = None if cost_truth is None else as_positive(cost_truth, "cost_truth")
    if features is None and truth is not None:
        raise ValueError("truth needs features: without them nothing is predicted that it could be held against")
    tables = tidy(
        votes,
        features,
        {"item": item, "annotator": annotator, "label": label},
        positive=positive,
        truth=truth,
        columns=columns,
        exclude=exclude,
        counts=count_columns,
        missing=missing,
    )
    positive, given = tables.positive, labels_of(tables.votes)
    notes = tables.notes + doubtful(given, positive)
    common: dict[str, Any] = {"repeats": repeats, "level": level, "made": made, "files": tables.files, "notes": notes}
    if tables.features is None:
        return analyse_agreement(tables, pseudonyms, rng, common)
    if positive is None:
        raise ValueError(
            "positive is missing: name the label of the positive class by positive= (--positive), one of "
            f"{listed(given.index)}"
        )
    several = are_several(tables.votes, given, positive)
    data = _join(tables, repeats, rest_of(given, positive) if several else None, pseudonyms)
    X, counts = data.X, data.counts
    if not counts.any(axis=0).all():
        raise ValueError(
            f"every vote on the items used is {'' if counts[:, 0].any() else 'not '}{positive!r}: features cannot tell apart "
            "what is all alike"
        )
    fit, tau = _fit(X, counts, rng)
    log.info("fitted %s coefficients to %s votes on %s items", len(fit.coef), f"{counts.sum():,.0f}", f"{len(X):,}")
    alpha0, test, lacks = parts.overdispersion(fit, X, counts, tau, level)
    log.info("alpha0 is %s", alpha0)
    told = data.told()
    worth = None if told is None or isinstance(fit, PenalisedFit) else parts.worth(*told, level, rng)
    comparison, lacking = _comparison(data, fit, rng)
    log.info("%s", lacking if comparison is None else "compared with other ways to make labels")
    who = data.votes_on(data.used)
    findings = examine_labellers(replace(data.table, items=X.index, **who._asdict()), X, rng=rng)
    annotators = compare_annotators(data.table, None if data.truth is None else data.truth[data.row])
    annotators = annotators.join(findings.annotators[OF_FINDINGS])
    log.info("examined %s annotators", f"{len(annotators):,}")
    seen, why = agreement(counts, level, rng)
    m = counts.sum(axis=1)
    enough = not lacks or m.max() < 2  # items for an interval
    known_alpha0 = not np.isnan(alpha0.value) and (not lacks or isinstance(fit, PenalisedFit))
    more = describe(counts, tau, alpha0 if known_alpha0 else Interval(np.nan, 0.0, np.inf), X.index)
    if known_alpha0:
        more["weight"] = 1 / variance_inflation(m, max(alpha0.value, SMALLEST))
    return VoteReport(
        items=data.items.join(more),
        annotators=annotators,
        counted=_counted(data),
        findings=findings,
        agreement=seen,
        agreement_lacks=why,
        fit=fit,
        coefficients=parts.coefficients(fit, X, counts, who, level),
        alpha0=alpha0,
        alpha0_lacks=lacks,
        overdispersion=test,
        efficiency_direct=parts.direct_efficiency(fit, X, tau) if isinstance(fit, LogisticFit) and enough else np.nan,
        goodness_of_fit=parts.goodness_of_fit(counts, tau, alpha0.value if m.max() > 1 else np.inf),  # any, of single votes
        truth=None if told is None else parts.against_truth(fit, told[0], _posterior(fit, told[0], tau, X), *told[1:3]),
        worth=worth,
        comparison=comparison,
        separated="" if fit.separation == "none" else separated_by(fit.separation, X.to_numpy(), counts, fit.feature_names),
        lacking=lacking,
        positive=positive,
        cost_item=cost_item,
        cost_vote=cost_vote,
        cost_truth=cost_truth,
        classes=what_it_is_on(given, positive) if several else "",
        **common,
    )


def _posterior(fit: LogisticFit | PenalisedFit, items: pd.DataFrame, tau: Array, X: pd.DataFrame) -> Array:
    """Of the items of :meth:`_Joined.told`: of those with votes, which are all of X in its order, ``tau``."""
    posterior = fit.posterior(items)
    posterior[items.index.isin(X.index)] = tau
    return posterior


@dataclass(frozen=True, eq=False)
class _Joined:
    """Votes and features: ``items`` has a row for each item of either table, ``row`` is that of each of ``table.items``."""

    table: VoteTable
    items: pd.DataFrame
    row: NDArray[np.intp]
    features: pd.DataFrame  # of the first items

    @property
    def X(self) -> pd.DataFrame:
        return self.features[self.used[: len(self.features)]]

    @property
    def used(self) -> NDArray[np.bool_]:
        return np.asarray(self.items["status"] == "used", bool)

    @property
    def counts(self) -> Array:
        return self._count(self.used)

    def _count(self, which: NDArray[np.bool_]) -> Array:
        m, s = self.items.loc[which, ["votes", "positive"]].to_numpy(float).T
        return np.column_stack([s, m - s])

    @property
    def truth(self) -> Array | None:
        return np.asarray(self.items["truth"], float) if "truth" in self.items else None

    def votes_on(self, which: NDArray[np.bool_]) -> Who:
        """The votes on some of the items, these numbered in their order."""
        item = np.where(which, np.cumsum(which) - 1, -1)[self.row[self.table.item]]
        here = item >= 0
        return Who(item[here], self.table.annotator[here], self.table.positive[here])

    def told(self) -> tuple[pd.DataFrame, Array, Array, pd.DataFrame | None] | None:
        """Features, votes and truth of the items used, and of those that have all features, a true label and no vote.

        And who voted how, items numbered in that order; None if annotators are few: how much they differ is then not known.
        """
        if self.truth is None:
            return None
        n = len(self.features)
        which = self.used | ((self.items["status"] == "no votes").to_numpy() & ~np.isnan(self.truth))
        which[:n] &= ~self.features.isna().any(axis=1).to_numpy()
        item, annotator, positive = self.votes_on(which)
        votes = pd.DataFrame({"item": item, "annotator": annotator, "label": positive.astype(int)})
        several = len(np.unique(annotator)) >= FEW and positive.any()
        return self.features[which[:n]], self._count(which), self.truth[which], votes if several else None


def _join(tables: Tables, repeats: str, rest: str | None, pseudonyms: bool) -> _Joined:
    """Items with features first, each with its status; all labels but the positive one are ``rest`` if that is a word."""
    positive, votes, features = tables.positive, tables.votes, tables.features
    assert features is not None
    X, labels = read_features(features, tables.truth)
    if rest is not None:
        labels = None if labels is None else truth_against_the_rest(labels, labels_of(votes).index, positive, rest)
        votes = one_against_the_rest(votes, positive, rest)
    table = read_votes(votes, positive, repeats if tables.annotators_known else "keep")
    if not tables.annotators_known:
        table = replace(table, annotators=table.annotators[:0], n_repeats=0, n_contradictions=0)
    table = with_pseudonyms(table) if pseudonyms else table
    log.info("votes: %s rows, %s items, %s annotators", *(f"{len(x):,}" for x in (table.item, table.items, table.annotators)))
    log.info("features: %s items, %s columns", f"{len(X):,}", X.shape[1])
    extra = table.items[X.index.get_indexer(table.items) < 0]
    index = (X.index.append(extra) if len(extra) else X.index).rename("item")
    row = index.get_indexer(table.items)
    m, s = (np.bincount(row, weights=votes, minlength=len(index)).astype(int) for votes in table.count())
    incomplete = np.r_[X.isna().any(axis=1).to_numpy(), np.zeros(len(extra), bool)]
    no_features = np.arange(len(index)) >= len(X)
    status = np.select([m == 0, no_features, incomplete], ["no votes", "no features", "incomplete features"], "used")
    items = pd.DataFrame({"votes": m, "positive": s, "status": status}, index=index)
    if labels is not None:
        items["truth"] = np.r_[read_truth(labels, X.index, table.labels, positive), np.full(len(extra), np.nan)]
    if (status[m > 0] == "no features").all():
        raise ValueError(
            f"no item of votes is in features: votes have items {listed(table.items[:3])}, features "
            f"{listed(index[m == 0][:3])}; they must be the same and of the same type"
        )
    if not (status == "used").any():
        raise ValueError("no item has both a vote and all its features")
    return _Joined(table, items, row, X)


def _fit(X: pd.DataFrame, counts: Array, rng: np.random.Generator) -> tuple[LogisticFit | PenalisedFit, Array]:
    """The fit, and the posterior of each item."""
    if needs_penalty(X, counts):
        return fit_penalised(X, counts, rng)
    try:
        fit = fit_that_exists(X, counts)
    except ValueError as error:  # in words of the arguments that it was called by
        words = re.sub(r"\bX\b", "features", str(error))
        raise ValueError(re.sub(r"\bdrop (it|some)\b", r"leave \1 out by exclude= (--exclude)", words)) from None
    with np.errstate(all="ignore"):
        known = np.isfinite(fit.cov()).all()
    if not known:
        name = ((X - X.mean()) / X.std()).abs().max().idxmax()
        raise ValueError(
            "features: the variance of the coefficients is no number. Values farthest from all others has column "
            f"{name!r}: transform it, such as by a logarithm or ranks"
        )
    return fit, fit.posterior(X)


def _comparison(data: _Joined, fit: LogisticRule, rng: np.random.Generator) -> tuple[pd.DataFrame | None, str]:
    """The comparison, and why there is none or what it lacks."""
    if isinstance(fit, PenalisedFit):
        return None, "penalised fits are not compared with other ways to make labels"
    if data.truth is None:
        return None, "no true labels, so no comparison with other ways to make labels"
    known = np.flatnonzero(data.used & ~np.isnan(data.truth))
    if len(known) < KNOWN:
        return None, f"a comparison takes {KNOWN} true labels of items used; there are {len(known)}"
    if np.ptp(data.truth[known]) == 0:
        lacks = "negative" if data.truth[known[0]] else "positive"
        return None, f"a comparison takes true labels of both classes; of items used none is of the {lacks} one"
    chosen = np.zeros(len(data.items), bool)
    chosen[rng.permutation(known)[: rivals.MOST_ITEMS]] = True
    try:
        answer = rivals.compare(data.X.loc[data.items.index[chosen]], data.truth[chosen], data.votes_on(chosen), rng)
    except ValueError as error:
        return None, f"no comparison with other ways to make labels: on part of the items {error}"
    return answer, "" if rivals.has_crowd_kit() else (
        "GLAD is not compared, because crowd-kit is not installed: pip install 'softlabel[crowd]'"
    )


def _counted(data: _Joined) -> dict[str, int]:
    status = data.items["status"].value_counts()
    items = {"items": len(data.items), "items used": len(data.X)}
    items |= {f"items with {what}": int(status.get(what, 0)) for what in ("no votes", "no features", "incomplete features")}
    return counted(data.table, int(data.counts.sum()), items)
