"""What is found in votes of annotators, in words: what was seen, how large it is, and what votes cannot tell."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from softlabel.labellers.exchangeable import Panel, standardise
from softlabel.labellers.search import Search, Seen
from softlabel.tables import VoteTable, by_item, read_votes
from softlabel.validation import Array, as_features, as_pandas, as_rng, listed, places, several


class Finding(NamedTuple):
    """One thing that :func:`~softlabel.examine_labellers` has found.

    Attributes
    ----------
    kind : str
        What it is, as in the notes of :func:`~softlabel.examine_labellers`.
    who : tuple
        Annotators whom it is about.
    feature : str or None
        The feature that it is about.
    size, share : float
        How large it is, and how much of the table it is about: see the notes of :func:`~softlabel.examine_labellers`.
    pvalue : float
        Chance of anything as strange by this step, if annotators are interchangeable (of the two for "no sign": the smaller).
    text : str
        A sentence or two, with what cannot be known.
    """

    kind: str
    who: tuple[Any, ...]
    feature: str | None
    size: float
    share: float
    pvalue: float
    text: str


@cache
def _sentences() -> dict[str, str]:
    """By kind, or by kind and case; to be formatted with the names, the fields of the finding and facts of its own."""
    import yaml  # takes a while, and only findings need it

    table = yaml.safe_load(files("softlabel.labellers").joinpath("words.yml").read_text(encoding="utf-8"))
    return {case: " ".join(parts) for case, parts in table.items()}


def _in_words(seen: Seen) -> Finding:
    """With its sentence, in which annotators are listed."""
    facts = {key: listed(fact) if isinstance(fact, tuple) else fact for key, fact in (seen._asdict() | seen.facts).items()}
    return Finding(*seen[:6], _sentences()[f"{seen.kind}, {seen.case}" if seen.case else seen.kind].format(**facts))


@dataclass(frozen=True, eq=False, repr=False)
class LabellerFindings:
    """Answer of :func:`examine_labellers`.

    Attributes
    ----------
    findings : tuple of Finding
        In the order in which they were looked for.
    annotators : DataFrame
        A row for each annotator: ``votes``; ``positive``, the share; ``finding``, its kind or "", ``z agreement`` and
        ``z lean`` beside the others; ``slope`` and ``lean`` of its votes in the log-odds of what the others predict, about 1
        and 0 of an interchangeable one, each with its standard error.
    not_looked_at : tuple of str
        What could not be examined, and why.
    n_items, n_votes : int
    """

    findings: tuple[Finding, ...]
    annotators: pd.DataFrame
    not_looked_at: tuple[str, ...]
    n_items: int
    n_votes: int

    def kinds(self) -> list[str]:
        """What was found."""
        return [finding.kind for finding in self.findings]

    def __repr__(self) -> str:
        votes, annotators = several(self.n_votes, "vote"), several(len(self.annotators), "annotator")
        head = f"{votes}{f' of {annotators}' * (len(self.annotators) > 0)} on {several(self.n_items, 'item')}:"
        unseen = any(reason.startswith("annotators,") for reason in self.not_looked_at)
        nothing = "nothing was found" if unseen else "nothing was found that interchangeable annotators would not do"
        lines = [head if self.findings else f"{head} {nothing}."]
        lines += [f"- {finding.text}" for finding in self.findings]
        return "\n".join(lines + [f"Not looked at: {reason}." for reason in self.not_looked_at])


def examine_labellers(
    votes: pd.DataFrame | VoteTable,
    X: ArrayLike | None = None,
    *,
    positive: object = None,
    rng: np.random.Generator | int | None = None,
) -> LabellerFindings:
    """Find annotators who guess, reverse, lean or copy, and votes or features that were made in a way that spoils them.

    No true labels are needed. What votes cannot tell is said, and not guessed.

    Parameters
    ----------
    votes : DataFrame or VoteTable
        Long, with the columns item (or task), annotator (or worker) and label; wide, with the items in the index or in a
        column item (or task) and an annotator in each other column; or what ``softlabel.tables.read_votes`` has made of it.
        A VoteTable without annotators has counted votes: then nothing is looked for in single annotators.
        There are two labels, or gaps; :func:`analyse_votes` also reads files, columns of other names and further labels. Of
        repeated votes of an annotator on an item the first counts.
    X : (n, p) DataFrame or array_like, optional
        Features, with the items in the index or in a column ``item``; in an array, the items are 0, 1, ..., or those of a
        VoteTable in its order. Every item with votes must be there. Without features less can be seen, and nothing from single
        votes.
    positive : object
        The label of the positive class, as it stands in ``votes``; a VoteTable knows it.
    rng : Generator, int or None
        For the permutations of a crowd's votes, and the items of very large tables whose neighbours are looked for.

    Returns
    -------
    LabellerFindings

    Raises
    ------
    ValueError
        If a table cannot be read, naming row and column, if an item has no features, or if a feature is not a finite number.

    Notes
    -----
    Of m votes on an item s are positive. If annotators are interchangeable each vote is one of the s with probability s / m,
    whatever the features are and whatever they leave out. So sums of weights times (vote - s / m) have a distribution known
    given the counts, from which come the chances here, by saddlepoint. They hold however badly a fit of the features does.
    All steps that accuse somebody have a chance of 1% together to do so falsely.

    Kinds of findings, with their ``size`` (``nan`` where there is none):

    - "reversed", "guessing": an annotator; slope of the votes on what the others predict, where theirs is 1.
    - "leans": an annotator; distance from the others in log-odds.
    - "copies": two or more annotators; the share of the disagreements to be expected that has gone.
    - "contradiction": two sides, ``who`` lists the larger first; mean correlation of votes across. ``share`` is the smaller.
    - "asked again", "repeated items": ``share`` of the items with more votes, with a near copy.
    - "vote as feature", "feature of one", "consensus as feature": correlation of feature and votes. What is the vote of one
      is left out of all later steps.
    - "no sign": of a meaning of labels. "guesses by all": ``share`` of the votes.
    - "square missing": the coefficient of the square of a feature of standard deviation 1.

    Else ``share`` is that of the annotators whom the finding is about; in a crowd it is estimated, whoever can be named.

    More than 30 annotators are a crowd: whether it is of one kind is tested by all together, and if not, a mixture of
    workers who follow the others, guess at any rate, or reverse says how many there are of each, and names those that are
    with a probability above .95.

    Examples
    --------
    >>> import numpy as np
    >>> from softlabel import TwoClassNormal, sample_votes
    >>> model = TwoClassNormal.canonical(2)
    >>> X, _ = model.sample(500, rng=1)
    >>> s = sample_votes(model.posterior(X), 4, alpha0=5, rng=2)[:, :1]
    >>> dealt = np.random.default_rng(3).permuted(np.arange(4) < s, axis=1)
    >>> wide = pd.DataFrame(dealt, columns=["Ann", "Bob", "Cem", "Dee"])
    >>> examine_labellers(wide, X, positive=True, rng=0)
    2,000 votes of 4 annotators on 500 items: nothing was found that interchangeable annotators would not do.
    >>> examine_labellers(wide.assign(Bob=~wide["Bob"]), X, positive=True, rng=0).findings[0].text
    "'Bob' votes against the others: the labels are reversed, or answer another question. (Slope -1.1 on what the others
    predict, where theirs is 1.)"
    """
    rng = as_rng(rng)
    table = votes if isinstance(votes, VoteTable) else read_votes(votes, positive, "first")
    x, names = _features(X, table.items, in_order=table is votes)
    n, who = len(table.annotators), table.annotators if len(table.annotators) else pd.Index([None])  # counted: all are one's
    first = np.sort(np.unique(table.item * n + table.annotator, return_index=True)[1]) if n else np.arange(len(table.item))
    y = table.positive[first].astype(float)
    panel = Panel(table.item[first], table.annotator[first], y, standardise(x), len(who))
    search = Search(panel, who, names, rng)
    search.run()
    return LabellerFindings(
        tuple(map(_in_words, search.found)), search.table()[:n], tuple(search.not_looked_at), panel.n_items, len(panel.y)
    )


def _features(X: ArrayLike | None, items: "pd.Index[Any]", in_order: bool) -> tuple[Array, list[str]]:
    """Features in the order of the items, and their names; rows of an array may be in that order."""
    if X is None:
        return np.zeros((len(items), 0)), []
    X = as_pandas(X)
    X = by_item(X, "X") if isinstance(X, pd.DataFrame) else X
    x, names = as_features(X)
    index = X.index if isinstance(X, pd.DataFrame) else items if in_order and len(x) == len(items) else pd.RangeIndex(len(x))
    if not index.is_unique:
        raise ValueError(f"X has item {index[index.duplicated()][0]!r} more than once")
    row = places(index, items)
    if (row < 0).any():
        few, missing = listed(index[:3]), items[row < 0]
        raise ValueError(
            f"X has no row for {len(missing)} of {len(items)} items of votes ({listed(missing)}); it has rows for {few}"
        )
    return x[row], names
