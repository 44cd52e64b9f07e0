"""What votes say without features: agreement, alpha0, and the model of Dawid and Skene."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softlabel.labellers import compare_annotators, dawid_skene, examine_labellers
from softlabel.report import words
from softlabel.report.agreement import agreement, without_features
from softlabel.report.base import Report, counted
from softlabel.report.classes import read_classes, with_pseudonyms
from softlabel.report.items import given_votes
from softlabel.report.next_steps import MEND_FIRST, mend
from softlabel.report.parts import Headline, p_value, shown
from softlabel.report.texts import say
from softlabel.report.tidy import Tables
from softlabel.validation import Array, listed, several

OF_FINDINGS = ["finding", "slope", "slope error", "lean", "lean error"]  # columns, of each annotator
FEW_VOTES = 20  # of an annotator, for each class, below which a confusion matrix is mostly chance


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AgreementReport(Report):
    """What votes say without features; made by :func:`analyse_votes` with ``features=None``.

    Attributes
    ----------
    labels : list
        The labels, most frequent first; the positive one first if it was named.
    shares : (g,) ndarray
        Share of each, items weighted by 1 / phi.
    confusion : DataFrame
        How often each annotator gives each label (columns) to items of each class (second level of the index), by the model of
        Dawid and Skene.

    Notes
    -----
    ``items`` has for each item the number of votes for each label; ``Dawid-Skene <label>``, the probability that the label is
    right by the model of Dawid & Skene (1979), which believes annotators the more the better they agree with all; ``verdict``,
    the likeliest label; ``doubt``, the probability that it is wrong; ``next vote``, the probability that one more vote agrees
    with the verdict, from the Dirichlet-multinomial; ``relabel``, items in the order of their doubt.

    The other attributes are those of every report: items, annotators, counted, agreement, alpha0, findings, notes, files,
    made, positive, repeats, level, headline, details, warnings, set_aside and methods.
    """

    kind: ClassVar[str] = "votes"

    labels: list[Any]
    shares: Array
    confusion: pd.DataFrame

    @cached_property
    def headline(self) -> Headline:
        return Headline(self._use(), say("worth of agreement"), self._next())

    def _use(self) -> str:
        if "no sign" in self.kinds:
            (chance,) = (f.pvalue for f in self.found if f.kind == "no sign")
            alpha = f"Krippendorff's alpha {shown(self.agreement.value)}, " if self.agreement else ""
            return say("no sign", chance=f"{alpha}{p_value(chance)}")
        grave = [f.text for f in self.found if f.kind in MEND_FIRST]
        agree = words.agreeing(self.agreement, self.agreement_lacks, self.level)
        return f"Not as they are. {grave[0]}" if grave else f"{agree} Votes cannot tell whether they are right."

    def _next(self) -> str:
        if "no sign" in self.kinds:
            return say("buy nothing")
        doubtful = self.items[(self.items["doubt"] > 0.1) & self.compared].sort_values("relabel").index
        again = say("label again", doubtful=len(doubtful), listed=listed(doubtful)) if len(doubtful) else say("label some")
        return " ".join([*self.remedies[:2], again])

    @property
    def compared(self) -> bool:
        """Whether an item has two votes: without, annotators and the doubts of a model of them are made up."""
        return bool(self.items["votes"].max() > 1)

    @property
    def remedies(self) -> tuple[str, ...]:
        """What improves the table and costs nothing."""
        return mend(self.found)

    @cached_property
    def details(self) -> tuple[str, ...]:
        votes, n, k = self.counted["votes used"], self.counted["items"], len(self.annotators)
        shares = ", ".join(f"{label!r} {share:.1%}" for label, share in zip(self.labels, self.shares))
        used = f"{several(n, 'item')} with {several(votes, 'vote')}, {shown(votes / n)} an item, of {several(k, 'annotator')}"
        said = [f"{used}; of {several(len(self.labels), 'label')}: {shares}. Intervals have level {100 * self.level:g}%."]
        if not np.isnan(self.alpha0.value):
            ends = f"no interval, because {self.alpha0_lacks}" if self.alpha0_lacks else self.alpha0.ends()
            said.append(say("alpha0 without features", value=shown(self.alpha0.value), ends=ends))
        return tuple(said)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        found = [finding.text for finding in self.found]
        few = self.annotators["votes"] < FEW_VOTES * len(self.labels)
        if few.any():
            annotators, names = several(len(few), "annotator"), listed(few.index[few])
            found.append(say("few votes", few=few.sum(), annotators=annotators, least=FEW_VOTES, listed=names))
        return tuple(found)

    @cached_property
    def set_aside(self) -> tuple[str, ...]:
        why = "there are more than two labels" if len(self.labels) > 2 else "all votes are alike"
        looked = self.findings.not_looked_at if self.findings else (f"single annotators, as {why}",)
        return (*super().set_aside, *(f"Not looked at: {text}." for text in looked))

    @property
    def methods(self) -> str:
        return say(
            "methods of agreement",
            votes=several(self.counted["votes used"], "vote"),
            annotators=several(len(self.annotators), "annotator"),
            labels=several(len(self.labels), "label"),
            items=several(self.counted["items"], "item"),
            interval="" if self.agreement_lacks else ", its interval from 2,000 resamples of items",
            level=100 * self.level,
            **self.made,
        )

    def _numbers(self) -> dict[str, Any]:
        return {f"share of {label}": share for label, share in zip(self.labels, self.shares)}

    def _tables(self) -> dict[str, pd.DataFrame]:
        return {**super()._tables(), "confusion": self.confusion.reset_index(names=["annotator", "class"])}


def analyse_agreement(tables: Tables, pseudonyms: bool, rng: np.random.Generator, common: dict[str, Any]) -> AgreementReport:
    """:func:`analyse_votes` without features; ``common`` are fields of the report that are known."""
    if not tables.annotators_known:
        raise ValueError("count_columns needs features: who gave which vote is not known, and agreement alone says little")
    table, code, labels = read_classes(tables.votes, tables.positive, common["repeats"])
    names: list[Any] = labels.tolist()
    table = with_pseudonyms(table) if pseudonyms else table
    n, g = len(table.items), max(len(names), 2)
    counts = np.bincount(table.item * g + code, minlength=n * g).reshape(n, g).astype(float)
    counts = counts[:, : len(names)]
    alpha0, shares, lacks = without_features(counts, common["level"])
    seen, why = agreement(counts, common["level"], rng)
    item, some = pd.factorize(table.item, sort=True)  # items with a vote
    model = dawid_skene(item, table.annotator, code, g)
    posterior = np.full((n, len(names)), np.nan)
    posterior[some] = model.posterior[:, : len(names)]
    findings, annotators = None, _shares(table.annotator, code, table.annotators, names)
    if len(names) == 2:
        two = replace(table, positive=code == 0)
        findings = examine_labellers(two, rng=rng)
        annotators = compare_annotators(two).join(findings.annotators[OF_FINDINGS])
    return AgreementReport(
        items=_items(counts, posterior, shares, alpha0.value, names, table.items),
        annotators=annotators,
        counted=counted(table, len(code), {"items": n, "items with no votes": int((~counts.any(axis=1)).sum())}),
        findings=findings,
        agreement=seen,
        agreement_lacks=why,
        alpha0=alpha0,
        alpha0_lacks=lacks,
        positive=tables.positive,
        labels=names,
        shares=shares,
        confusion=_confusion(model.confusion, table.annotators, names),
        **common,
    )


def _shares(annotator: NDArray[np.intp], code: NDArray[np.intp], who: "pd.Index[Any]", names: list[Any]) -> pd.DataFrame:
    """Votes of each annotator, and the share of each label among them."""
    given = np.bincount(annotator * len(names) + code, minlength=len(who) * len(names)).reshape(len(who), -1)
    votes = given.sum(axis=1)
    shares = {f"share of {name}": given[:, k] / np.maximum(votes, 1) for k, name in enumerate(names)}
    return pd.DataFrame({"votes": votes, **shares}, index=who.rename("annotator"))


def _items(
    counts: Array, posterior: Array, shares: Array, alpha0: float, names: list[Any], items: "pd.Index[Any]"
) -> pd.DataFrame:
    m, verdict = counts.sum(axis=1), np.where(np.isnan(posterior[:, 0]), 0, posterior.argmax(axis=1))
    doubt = 1 - posterior.max(axis=1)
    columns: dict[str, Any] = {"votes": m.astype(int)}
    columns |= {f"votes for {name}": counts[:, k].astype(int) for k, name in enumerate(names)}
    columns |= {f"Dawid-Skene {name}": posterior[:, k] for k, name in enumerate(names)}
    columns["verdict"] = pd.Series([names[k] for k in verdict], dtype=object).where(m > 0).to_numpy()
    columns["doubt"] = doubt
    columns["next vote"] = np.nan
    if not np.isnan(alpha0):
        columns["next vote"] = given_votes(counts, np.tile(shares, (len(counts), 1)), alpha0)[np.arange(len(counts)), verdict]
    columns["relabel"] = pd.Series(-np.round(doubt, 9)).rank(method="first").to_numpy()
    return pd.DataFrame(columns, index=items.rename("item"))


def _confusion(confusion: Array, who: "pd.Index[Any]", names: list[Any]) -> pd.DataFrame:
    index = pd.MultiIndex.from_product([who, names], names=["annotator", "class"])
    g = len(names)
    return pd.DataFrame(confusion[:, :g, :g].reshape(-1, g), index, pd.Index(names, name="label"))
