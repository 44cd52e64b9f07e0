"""What votes are worth, given some true labels; one rule from votes and truths."""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit

from softlabel.belief import Belief, cov_of_votes
from softlabel.fits import LogisticRule
from softlabel.patient import explain_no_convergence, fit_patiently, fit_that_exists
from softlabel.separation import separation_of
from softlabel.two_way import Who, between_annotators, who_voted
from softlabel.validation import (
    Array,
    align,
    as_features_and_counts,
    as_labellers,
    as_level,
    as_numbers,
    as_parameter,
    as_rng,
    as_whole,
    several,
)

FEW = 10  # true labels of a class, below which an answer has a reservation


class TruthWarning(UserWarning):
    """The true labels, or the votes, say too little for an answer without reservation."""


@dataclass(frozen=True, eq=False)
class CombinedFit(LogisticRule):
    """A rule from votes and true labels; made by :func:`fit_votes_and_truth`.

    The attributes of :class:`~softlabel.fits.LogisticRule`; the log-likelihood is that of the true labels.

    Attributes
    ----------
    n_truths : int
        Number of true labels.
    """

    n_truths: int
    _cov: Array

    def cov(self) -> Array:
        """Covariance (p + 1, p + 1) of the coefficients: what votes, true labels and priors leave open."""
        return self._cov.copy()

    def stderr(self) -> Array:
        """Standard errors (p + 1,) of the coefficients."""
        return np.sqrt(np.diag(self._cov))

    def __repr__(self) -> str:
        return self.describe(several(self.n_truths, "true label"))


def fit_votes_and_truth(X: ArrayLike, counts: ArrayLike, truth: ArrayLike) -> CombinedFit:
    """Fit one rule to votes and to the true labels of some items: the truths' rule, shrunk towards that of the votes.

    Parameters
    ----------
    X : (n, p) array_like or DataFrame
        Features, without a column for the intercept.
    counts : (n, 2) array_like
        Votes for the positive and the negative class.
    truth : (n,) array_like
        True labels, 1 for the positive class and 0; ``np.nan`` where unknown. They may be on items with or without votes.

    Returns
    -------
    CombinedFit

    Raises
    ------
    ValueError
        If an argument is not valid, there are neither votes nor true labels, or the fit to the votes does not converge.

    Warns
    -----
    TruthWarning
        If all true labels are of one class; if the features separate the votes, whose maximum likelihood estimate then does
        not exist: Firth's takes its place; or if a fit to true labels alone does not converge.

    Notes
    -----
    The true labels follow logit tau = a + s eta + d'T, where eta is the linear predictor of the votes' rule and T are the
    other directions of the features. Beforehand (a, s, d) is normal with mean (0, 1, 0). Its covariance is that of the
    votes' estimate, plus squared amounts by which the votes' mean may be wrong: 0, 0.25 or 0.7 for a, 0.7 for s, and 0, 0.15
    or 0.4 for each entry of d. The coefficients are averaged over these nine models, with weights by their marginal
    likelihood (Laplace's approximation); that with neither lean nor tilt has probability 0.2 beforehand.

    Without true labels this is the votes' rule; without votes it is Firth's estimate from the true labels alone.

    Examples
    --------
    >>> import numpy as np
    >>> from softlabel import TwoClassNormal, sample_votes
    >>> model = TwoClassNormal.canonical(2.0)
    >>> X, y = model.sample(300, rng=0)
    >>> counts = sample_votes(model.posterior(X), 5, 3.0, rng=1)
    >>> truth = np.where(np.arange(300) < 50, y, np.nan)
    >>> fit_votes_and_truth(X, counts, truth)
    CombinedFit(300 items; ...; 50 true labels; converged)
    """
    X, counts, truth, names = _arguments(X, counts, truth)
    known = ~np.isnan(truth)
    converged = True
    if counts.any():
        if known.any() and np.ptp(truth[known]) == 0:
            _warn(f"all true labels in truth are {truth[known][0]:g}: the rule is that of the votes, moved by its prior")
        rule, rule_cov, doubts = _votes_rule(X, counts)
        for text in doubts:
            _warn(text)
        coef, cov = Belief.of(X, rule, rule_cov, truth, known.astype(float)).coef_and_cov()
    elif known.any():
        fit = fit_patiently(X[known], truth[known], "firth")
        coef, cov, converged = fit.coef, fit.cov("model"), fit.converged
        if not converged:
            _warn(explain_no_convergence(fit, "the true labels"))
    else:
        raise ValueError("counts has no vote and truth no true label: there is nothing to fit")
    eta = coef[0] + X[known] @ coef[1:]
    n_items = int(np.count_nonzero(counts.any(axis=1) | known))
    return CombinedFit(
        coef=coef,
        converged=converged,
        n_iter=0,
        separation="none",
        log_likelihood=float(log_expit(np.where(truth[known] == 1, eta, -eta)).sum()),
        n_items=n_items,
        n_without_votes=len(X) - n_items,
        feature_names=names,
        n_truths=int(known.sum()),
        _cov=cov,
    )


class Estimate(NamedTuple):
    """A number and its interval.

    Attributes
    ----------
    value : float
        Median of what is known about it.
    low, high : float
        Ends of the interval.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        value, low, high = (f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}" for x in self)
        if self.low == self.high == 0:
            return f"{value} (none seen)"
        return f"{value} ({low} to {high})"


@dataclass(frozen=True, eq=False)
class WorthOfVotes:
    """What votes are worth; made by :func:`worth_of_votes`.

    Attributes
    ----------
    error : Estimate
        Error rate of the votes' rule on new items.
    lean : Estimate
        How much the logit of the truth exceeds that of the votes at their rule's boundary, whatever the number of votes.
    scale : Estimate
        Slope of the truth's logit on that of the votes: below 1 votes are too extreme, above 1 too timid, below 0 inverted.
    tilt : Estimate
        Standard deviation, over the items, of the part of the truth's logit that is uncorrelated with that of the votes.
    floor : Estimate
        Excess of the error rate that remains with any number of votes.
    equal_number : Estimate
        Number of true labels that give the same expected error as the votes.
    level : float
        Of the intervals.
    n_items : int
        Number of items voted on.
    m : float
        Number of votes an item, on average.
    n_truths : int
        Number of true labels.
    reservations : tuple of str
        What makes the answer less certain than it looks.
    """

    error: Estimate
    lean: Estimate
    scale: Estimate
    tilt: Estimate
    floor: Estimate
    equal_number: Estimate
    level: float
    n_items: int
    m: float
    n_truths: int
    reservations: tuple[str, ...]

    def __repr__(self) -> str:
        head = f"{several(self.n_items, 'item')}, {self.m:.3g} vote{'s' * (self.m != 1)} each; "
        head += f"{several(self.n_truths, 'true label')}; {100 * self.level:g}% intervals"
        names = {
            "error of the votes' rule": self.error,
            "lean (0: none)": self.lean,
            "scale (1: right)": self.scale,
            "tilt (0: none)": self.tilt,
            "floor of the excess error": self.floor,
            "equal number of true labels": self.equal_number,
        }
        lines = [f"  {name:<28} {estimate}" for name, estimate in names.items()]
        return "\n".join([f"WorthOfVotes({head}", *lines, *(f"  but: {text}" for text in self.reservations)]) + ")"


def worth_of_votes(
    X: ArrayLike,
    counts: ArrayLike,
    truth: ArrayLike,
    *,
    votes: pd.DataFrame | None = None,
    inclusion: ArrayLike | None = None,
    n_items: int | None = None,
    m: float | None = None,
    level: float = 0.9,
    rng: np.random.Generator | int | None = None,
) -> WorthOfVotes:
    """Predict, from votes and the true labels of some items, how well the votes' rule does and what the votes are worth.

    Parameters
    ----------
    X : (n, p) array_like or DataFrame
        Features, without a column for the intercept.
    counts : (n, 2) array_like
        Votes for the positive and the negative class.
    truth : (n,) array_like
        True labels, 1 for the positive class and 0; ``np.nan`` where unknown. Items must have been chosen for them at random.
    votes : DataFrame, optional
        Who voted how: the votes of ``counts`` one a row, with columns item, annotator and label, as loaders have them. Items
        are named as in the index of ``X`` or ``counts``, or numbered from 0; the positive label is the name of the first
        column of ``counts`` if that is text, and otherwise 1.
    inclusion : (n,) array_like, optional
        Probability of each item to be chosen for a true label, if they differ, as from :func:`choose_for_truth`; read where
        ``truth`` is known.
    n_items, m : int and float, optional
        Number of items, and of votes on each, to predict for. By default those in hand; ``error`` is then that of the votes'
        rule in hand, and otherwise the mean over such samples.
    level : float
        Of the intervals.
    rng : Generator, int or None
        Source of randomness.

    Returns
    -------
    WorthOfVotes

    Raises
    ------
    ValueError
        If an argument is not valid, ``votes`` are not those of ``counts`` or all by one annotator, there is no vote or no
        true label, the fit to the votes does not converge, or another ``m`` is asked for while no item has two votes.

    Warns
    -----
    TruthWarning
        With each of the ``reservations``: fewer than ten true labels of a class, true labels that the features separate, or
        that are on items without votes; votes that the features separate, and votes of fewer than ten annotators.

    Notes
    -----
    The model of :func:`fit_votes_and_truth`; its posterior by importance sampling. A rule that is estimated from n true
    labels and tends to coefficients b answers yes at x with a probability of about Phi(sqrt(n - p) r), where r is the signed
    root of twice the mean log-likelihood ratio of b to the best rule with x'b = 0. For votes r is multiplied by the
    standard error of x'b from as many true labels over that from the votes, a sandwich; for another m that is made of
    the variances between items and within them. Floor and equal number follow, draw by draw. Lean, scale, tilt and floor
    are those of the votes' limit: what their sampling error adds is taken off. While it has a chance of (1 - level) / 2 that
    votes neither lean nor are tilted, the interval of the equal number reaches to where that alone would put its upper end.

    Counts do not tell who voted: what the votes of one annotator have in common is left out. With ``votes`` the sandwich is
    two-way, by item plus by annotator minus by vote (Cameron, Gelbach & Miller 2011). Where an annotator's votes seem to
    repel each other that counts as chance, so the variance is never less than without, and with few annotators rather too
    large. Each is to vote on as many items as now on average, though at most on all, whatever ``n_items`` and ``m``.

    The intervals hold on average over what the priors expect. For one given kind of votes they may cover less.

    Examples
    --------
    >>> from softlabel import TwoClassNormal, sample_votes
    >>> model = TwoClassNormal.canonical(2.0)
    >>> X, y = model.sample(500, rng=0)
    >>> counts = sample_votes(model.posterior(X), 5, 3.0, rng=1)
    >>> truth = np.where(np.arange(500) < 200, y, np.nan)
    >>> worth_of_votes(X, counts, truth, rng=2)
    WorthOfVotes(500 items, 5 votes each; 200 true labels; 90% intervals
      error of the votes' rule     0.15... (0.12... to 0.18...)
      lean (0: none)               -0.1... (-0.6... to 0)
      scale (1: right)             1.0... (0.8... to 1.3...)
      tilt (0: none)               0.1... (0 to 0.6...)
      floor of the excess error    0.00... (0 to 0.0...)
      equal number of true labels  ... (... to 1,...))
    """
    given = X, counts
    X, counts, truth, _ = _arguments(X, counts, truth)
    who = None if votes is None else who_voted(votes, counts, *given)
    level, rng = as_level(level), as_rng(rng)
    known, voted = ~np.isnan(truth), counts.sum(axis=1) > 0
    if not known.any():
        raise ValueError("truth has no true label: without one, nothing tells what the votes are worth")
    if not voted.any():
        raise ValueError("counts has no votes: there is nothing whose worth could be told")
    weight = _weights(known, inclusion)
    size = int(voted.sum()) if n_items is None else as_whole(n_items, "n_items", X.shape[1] + 2)
    m = None if m is None else float(as_labellers(m, whole=False, scalar=True))
    coef, cov, doubts = _votes_rule(X, counts, who)
    reservations = (*_reservations(X, truth, known, voted, who), *doubts)
    for text in reservations:
        _warn(text)
    belief = Belief.of(X, coef, cov, truth, weight)
    if who is not None:
        who = who._replace(item=np.cumsum(voted)[who.item] - 1)
    covs = cov_of_votes(belief.z[voted], counts[voted], m, rng, who, size)
    draws = belief.quantities(covs, size, rng, in_hand=n_items is None and m is None)
    tails = [0.5, (1 - level) / 2, (1 + level) / 2]
    right = draws.pop("right") == 1
    estimates = {name: Estimate(*map(float, np.quantile(values, tails))) for name, values in draws.items()}
    if right.mean() >= tails[1]:
        number, most = estimates["equal_number"], float(np.quantile(draws["equal_number"][right], tails[2]))
        estimates["equal_number"] = number._replace(high=max(number.high, most))
    average = counts[voted].sum() / voted.sum() if m is None else m
    return WorthOfVotes(
        **estimates, level=level, n_items=size, m=float(average), n_truths=int(known.sum()), reservations=reservations
    )


def choose_for_truth(
    weight: ArrayLike, k: int, rng: np.random.Generator | int | None = None
) -> tuple[NDArray[np.int64], Array]:
    """Choose k items at random for true labels, some with a larger probability than others if that is wanted.

    Parameters
    ----------
    weight : (n,) array_like
        How much each item is wanted, positive: all the same, or more where labellers disagree.
    k : int
        Number of items to choose.
    rng : Generator, int or None
        Source of randomness.

    Returns
    -------
    chosen : (k,) ndarray of int
        Rows of the items, in their order.
    inclusion : (n,) ndarray
        Probability of each item to be chosen, for :func:`worth_of_votes`: proportional to its weight, but at most 1.

    Raises
    ------
    ValueError
        If a weight is not positive, or there are fewer than ``k`` items.

    Notes
    -----
    Systematic sampling in random order (Madow 1949): the number of items is exactly ``k``, and the probabilities are met.

    Examples
    --------
    >>> chosen, inclusion = choose_for_truth([1.0, 1.0, 2.0, 8.0], 2, rng=0)
    >>> len(chosen), inclusion
    (2, array([0.25, 0.25, 0.5 , 1.  ]))
    """
    weight, k, rng = as_numbers(weight, "weight", (1,)), as_whole(k, "k", 1), as_rng(rng)
    if weight.min() <= 0:
        row = int(np.argmin(weight))
        raise ValueError(f"weight[{row}] is {weight[row]:g}: an item with no chance to be chosen cannot be spoken for")
    if k > len(weight):
        raise ValueError(f"k is {k}, but weight has only {len(weight)} items")
    inclusion, certain = weight / weight.max(), np.zeros(len(weight), bool)
    while True:
        inclusion[~certain] *= (k - certain.sum()) / inclusion[~certain].sum()
        if not (more := ~certain & (inclusion >= 1)).any():
            break
        inclusion[more], certain = 1, certain | more
        if certain.all():
            break
    order = rng.permutation(len(weight))
    ends = np.cumsum(inclusion[order])
    chosen = order[np.searchsorted(ends / ends[-1] * k, rng.random() + np.arange(k), side="right")]
    return np.sort(chosen), inclusion


def _arguments(X: ArrayLike, counts: ArrayLike, truth: ArrayLike) -> tuple[Array, Array, Array, list[str]]:
    truth = align(X, truth, ("X", "truth"))
    X, names, counts = as_features_and_counts(X, counts)
    return X, counts, _check_truth(truth, len(X)), names


def _check_truth(truth: ArrayLike, n: int) -> Array:
    try:
        array = as_parameter(truth, "truth", scalar=False)
    except ValueError:
        kind = f"{type(truth).__name__} {getattr(truth, 'dtype', '')}".strip()
        raise ValueError(f"truth must hold the numbers 1 and 0, and nan where unknown, got {kind}") from None
    if array.shape != (n,):
        raise ValueError(f"truth has shape {array.shape} but X has {n} items: one true label an item, nan where unknown")
    wrong = ~((array == 0) | (array == 1) | np.isnan(array))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(f"truth[{k}] is {array[k]:g}: true labels must be 1, 0 or nan")
    return array


def _warn(text: str) -> None:
    warnings.warn(text, TruthWarning, stacklevel=3)


def _weights(known: NDArray[np.bool_], inclusion: ArrayLike | None) -> Array:
    """Weights of the true labels (n,): inverse probabilities, in all as much as equal labels of the same precision."""
    weight = known.astype(float)
    if inclusion is None:
        return weight
    array = as_parameter(inclusion, "inclusion", scalar=False)
    if array.shape != known.shape:
        raise ValueError(f"inclusion has shape {array.shape} but X has {len(known)} items: one probability an item")
    wrong = known & ~((array > 0) & (array <= 1))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(f"inclusion[{k}] is {array[k]:g}, but truth[{k}] is known: it must be above 0 and at most 1")
    weight[known] = array[known].min() / array[known]
    weight *= weight.sum() / (weight**2).sum()
    return weight


def _reservations(
    X: Array, truth: Array, known: NDArray[np.bool_], voted: NDArray[np.bool_], who: Who | None
) -> tuple[str, ...]:
    y = truth[known]
    classes = {"positive": int(np.sum(y == 1)), "negative": int(np.sum(y == 0))}
    number = {c: f"only {several(k, 'true label')}" if k else "no true label" for c, k in classes.items()}
    found = [f"truth has {number[c]} of the {c} class" for c, k in classes.items() if k < FEW]
    if 0 < y.sum() < len(y) and separation_of(X[known], np.column_stack([y, 1 - y])) != "none":
        found.append("the features separate the true labels in truth: the scale is known by its prior alone")
    if outside := int(np.sum(known & ~voted)):
        are = "is on an item without votes: it counts" if outside == 1 else "are on items without votes: they count"
        found.append(f"{several(outside, 'true label')} in truth {are} as if chosen like the others")
    if who is not None and (k := int(who.annotator.max()) + 1) < FEW:
        found.append(f"votes are by only {k} annotators: how much annotators differ is hardly known")
    return tuple(found)


def _votes_rule(X: Array, counts: Array, who: Who | None = None) -> tuple[Array, Array, list[str]]:
    """Coefficients (p + 1,) of the votes' rule, their covariance, and what is doubtful about them."""
    fit, doubts = fit_that_exists(X, counts), []
    cov = fit.cov()
    if fit.separation != "none":
        cov = fit.cov("model")
        doubts.append("the features separate the votes in counts: Firth's estimate takes the place of the votes' rule")
    if not fit.converged:
        raise ValueError(explain_no_convergence(fit, "the votes"))
    if not (np.isfinite(cov).all() and (np.diag(fit.cov("model")) > 0).all()):
        raise ValueError(
            "X has a column so small or so large that the variance of its coefficient is no number: change its unit"
        )
    if who is not None:
        cov = cov + between_annotators(X, fit.coef, counts, who)
    return fit.coef, cov, doubts
