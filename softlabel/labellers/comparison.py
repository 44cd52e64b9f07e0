"""Annotators beside all votes on the same items, and Dawid and Skene's EM."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from softlabel.tables import VoteTable
from softlabel.validation import Array

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
