"""Who votes how: annotators beside all votes on the same items, faults that show, and Dawid and Skene's EM."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from softlabel.exchangeable import Panel, standardise
from softlabel.labeller_search import Search, Seen
from softlabel.labeller_words import sentences
from softlabel.tables import VoteTable, by_item, read_votes
from softlabel.validation import Array, as_features, as_pandas, as_rng, listed, places, several

CONTESTED = 10  # items on which an annotator must have voted, and votes differ, for a z value
LEAST = 1e-10  # probability of a class, and mass of a cell of a confusion matrix before it is normalised


def compare_annotators(table: VoteTable, truth: Array | None = None) -> pd.DataFrame:
    """Each annotator beside all votes on the same items.

    Parameters
    ----------
    table : VoteTable
        Votes, as :func:`softlabel.tables.read_votes` returns them.
    truth : (n,) ndarray, optional
        True labels, 1 and 0, of ``table.items``; nan where unknown.

    Returns
    -------
    DataFrame
        A row for each annotator: ``votes``; the shares ``positive`` and ``agreement`` (with other votes on the item); beside
        each what exchangeable annotators would have (``... of all``), and the difference in standard errors (``z ...``, nan
        with fewer than ten items on which votes differ); and ``accuracy`` if there is a truth.

    Notes
    -----
    Of m votes on an item s are positive. Among exchangeable annotators each of the m votes is equally likely to be the one in
    hand: it is positive with probability s / m, and then agrees with (s - 1) / (m - 1) of the others.

    Examples
    --------
    >>> from softlabel.tables import read_votes
    >>> votes = pd.DataFrame({"Ann": ["y", "y"], "Bob": ["y", "n"], "Cem": ["n", "n"]}, index=["p", "q"])
    >>> compare_annotators(read_votes(votes, "y", "first"))[["positive", "positive of all", "agreement"]]
               positive  positive of all  agreement
    annotator
    Ann             1.0              0.5       0.25
    Bob             0.5              0.5       0.50
    Cem             0.0              0.5       0.25
    """
    item, positive = table.item, table.positive
    m, s = (votes[item].astype(float) for votes in table.count())

    def total(values: NDArray[Any]) -> Array:
        return np.asarray(np.bincount(table.annotator, weights=values, minlength=len(table.annotators)), float)

    share, others = s / m, np.maximum(m - 1, 1)  # of a single vote all that is divided by others is zero, or has weight zero
    variance = share * (1 - share)
    agrees = np.where(positive, s - 1, m - s - 1) / others
    expected = (share * (s - 1) + (1 - share) * (m - s - 1)) / others
    step = (2 * s - m) / others  # agreement of a positive vote less that of a negative one
    votes, shared = total(np.ones(len(item))), total(m > 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = {
            "votes": votes.astype(int),
            "positive": total(positive) / votes,
            "positive of all": total(share) / votes,
            "z positive": total(positive - share) / np.sqrt(total(variance)),
            "agreement": total(agrees) / shared,
            "agreement of all": total(expected) / shared,
            "z agreement": total(agrees - expected) / np.sqrt(total(variance * step**2)),
        }
        if truth is not None:
            known = ~np.isnan(truth[item])
            columns["accuracy"] = total(known & (positive == (truth[item] == 1))) / total(known)
    if not len(table.annotators):  # not known
        return pd.DataFrame(columns)[:0].rename_axis("annotator")
    frame = pd.DataFrame(columns, index=table.annotators.rename("annotator"))
    frame.loc[total(variance > 0) < CONTESTED, ["z positive", "z agreement"]] = np.nan
    return frame


class DawidSkene(NamedTuple):
    """Answer of :func:`dawid_skene`.

    Attributes
    ----------
    posterior : (n, g) ndarray
        Probability of each class for each item.
    prior : (g,) ndarray
        Probability of each class.
    confusion : (annotators, g, g) ndarray
        ``confusion[k, i, j]``: probability that annotator k says j of an item of class i.
    log_likelihood : (steps,) ndarray
        Of the votes, at the parameters of each step; it never falls.
    """

    posterior: Array
    prior: Array
    confusion: Array
    log_likelihood: Array


def dawid_skene(
    item: NDArray[Any], annotator: NDArray[Any], label: NDArray[Any], n_classes: int = 2, n_iter: int = 100
) -> DawidSkene:
    """True classes and confusion matrices from votes alone, by the EM algorithm.

    Parameters
    ----------
    item, annotator, label : (votes,) ndarray of int
        Codes from 0; every item and every annotator has a vote.
    n_classes : int
        Number of classes, g.
    n_iter : int
        Number of steps; one takes about a third of a millisecond for 10,000 votes.

    Returns
    -------
    DawidSkene

    Notes
    -----
    Dawid & Skene (1979): given the class of an item, annotators vote independently, each by a confusion matrix of their own.
    The start is the share of votes for each class. Cells of a confusion matrix are kept above 1e-10 before they are
    normalised, except those of a label that the annotator never gives.

    Examples
    --------
    >>> item, annotator = np.repeat(range(4), 3), np.tile(range(3), 4)
    >>> label = np.array([0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1])  # the third guesses
    >>> dawid_skene(item, annotator, label).posterior.round(3)
    array([[1., 0.],
           [1., 0.],
           [0., 1.],
           [0., 1.]])
    """
    from scipy.sparse import csr_array  # takes long to import, and only this needs it

    n, given = item.max() + 1, annotator * n_classes + label
    votes = csr_array((np.ones(len(item)), (item, given)), shape=(n, (annotator.max() + 1) * n_classes))
    ever = np.bincount(given, minlength=votes.shape[1])[:, None] > 0
    posterior = np.bincount(item * n_classes + label, minlength=n * n_classes).reshape(n, n_classes)
    posterior = posterior / posterior.sum(axis=1, keepdims=True)
    log_likelihood = np.empty(n_iter)
    for step in range(n_iter):
        prior = np.maximum(posterior.mean(axis=0), LEAST)
        mass = np.where(ever, np.maximum(votes.T @ posterior, LEAST), 0).reshape(-1, n_classes, n_classes)
        confusion = mass / mass.sum(axis=1, keepdims=True)  # annotator, label, class
        joint = np.log(prior) + votes @ np.log(np.where(ever, confusion.reshape(-1, n_classes), 1))
        log_marginal = logsumexp(joint, axis=1, keepdims=True)
        posterior = np.exp(joint - log_marginal)
        log_likelihood[step] = log_marginal.sum()
    return DawidSkene(posterior, prior, confusion.swapaxes(1, 2), log_likelihood)


# ------------------------------------------------------------------ all faults


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


def _in_words(seen: Seen) -> Finding:
    """With its sentence, in which annotators are listed."""
    facts = {key: listed(fact) if isinstance(fact, tuple) else fact for key, fact in (seen._asdict() | seen.facts).items()}
    return Finding(*seen[:6], sentences()[f"{seen.kind}, {seen.case}" if seen.case else seen.kind].format(**facts))


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
