"""Three public data sets with votes, features and true labels, and rules learned from samples of them."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softlabel.datasets import load_cifar10h, load_imagenet16h, load_recidivism
from softlabel.logistic import fit_logistic, fit_logistic_batch
from softlabel.overdispersion import estimate_alpha0
from softlabel.validation import Array, ConvergenceWarning
from softlabel.vote_models import sample_votes

LOADERS: dict[str, Callable[[], Any]] = {
    "recidivism": load_recidivism,
    "CIFAR-10H": load_cifar10h,
    "ImageNet-16H, noise 80": lambda: load_imagenet16h(80),
    "ImageNet-16H, noise 125": lambda: load_imagenet16h(125),
}


class Source(NamedTuple):
    """Items of one kind: all have a true label, the first of them have votes."""

    X: Array  # (N, p), standardised
    y: Array  # (N,)
    counts: NDArray[np.int64]  # (n, 2)
    annotator: NDArray[np.int64] | None  # of each vote
    item: NDArray[np.int64] | None
    label: NDArray[np.bool_] | None
    posterior: Array  # (N, 2), fitted to all true labels: what simulated votes obey
    votes_posterior: Array  # (n, 2), fitted to all votes
    alpha0: float  # of the votes about it

    @property
    def m(self) -> int:
        """Votes on an item that has the fewest."""
        return int(self.counts.sum(axis=1).min())


@cache
def load(name: str) -> Source:
    """One of the data sets; those who voted on recidivism did so on 1,000 of 7,214 defendants."""
    data: Any = LOADERS[name]()
    X, y = data.X.to_numpy(), data.y.to_numpy(float)
    if name == "recidivism":
        rest: Any = load_recidivism("rest")
        X, y = np.vstack([X, rest.X]), np.r_[y, rest.y]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    counts = data.counts.to_numpy()
    annotator = item = label = None
    if data.votes is not None:
        annotator, item = (data.votes[column].to_numpy() - 1 for column in ("annotator", "item"))
        label = (data.votes["label"] == data.counts.columns[0]).to_numpy()
    tau = fit_logistic(X[: len(counts)], counts).posterior(X[: len(counts)])
    alpha0 = estimate_alpha0(counts, tau).alpha0
    return Source(X, y, counts, annotator, item, label, fit_logistic(X, y).posterior(X), tau, alpha0)


def votes_of(source: Source, rows: NDArray[np.int64], m: int, simulated: bool, rng: np.random.Generator) -> NDArray[np.int64]:
    """m votes on each of some items: of those in hand, without replacement; or simulated, whose mean is the posterior."""
    if simulated:
        return sample_votes(source.posterior[rows], m, source.alpha0, rng)
    positive = rng.hypergeometric(source.counts[rows, 0], source.counts[rows, 1], m)
    return np.stack([positive, m - positive], axis=-1)


def truths_of(source: Source, rows: NDArray[np.int64], simulated: bool, rng: np.random.Generator) -> Array:
    """True labels of some items: those in hand, or drawn from the posterior."""
    truths: Array = labels_of(source.posterior[rows], rng) if simulated else source.y[rows]
    return truths


def labels_of(posterior: Array, rng: np.random.Generator) -> Array:
    """One label (...) for each item of a posterior (..., 2)."""
    return (rng.random(posterior.shape[:-1]) < posterior[..., 0]).astype(float)


def samples(source: Source, n: int, n_sets: int, n_items: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows (n_sets, n) of different items among the first ones; each feature varies, or the sample is drawn anew."""
    rows = np.empty((0, n), dtype=np.int64)
    while len(rows) < n_sets:
        more = np.array([rng.choice(n_items, n, replace=False) for _ in range(n_sets - len(rows))])
        rows = np.vstack([rows, more[varied(source, more)]])
    return rows


def varied(source: Source, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each feature varies within a sample (..., n)."""
    different: NDArray[np.bool_] = (np.ptp(source.X[rows], axis=-2) > 0).all(axis=-1)
    return different


class Rules(NamedTuple):
    """Rules learned from samples, on items that they have not seen."""

    converged: NDArray[np.bool_]  # (R,); not if the sample is separated: the direction then is that of the last step
    by_set: Array  # (R,) error rate of each
    by_item: Array  # (N,) error rate on each item


def coefficients(source: Source, rows: NDArray[np.int64], targets: NDArray[Any]) -> tuple[Array, NDArray[np.bool_]]:
    """Coefficients (R, p + 1) of rules fitted to targets of some rows, and whether each fit converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = fit_logistic_batch(source.X[rows], targets)
    return fits.coef, fits.converged


def learn(source: Source, rows: NDArray[np.int64], targets: NDArray[Any], simulated: bool) -> Rules:
    """Fit rules to targets of some rows and try them on all other items; by the posterior if true labels are simulated."""
    coef, converged = coefficients(source, rows, targets)
    positive = coef[:, :1] + coef[:, 1:] @ source.X.T > 0
    if simulated:
        wrong, unseen = np.where(positive, source.posterior[:, 1], source.posterior[:, 0]), np.ones(positive.shape)
    else:
        wrong, unseen = (positive != (source.y == 1)).astype(float), np.ones(positive.shape)
        np.put_along_axis(unseen, rows, 0, axis=1)
    wrong *= unseen
    return Rules(converged, wrong.sum(axis=1) / unseen.sum(axis=1), wrong.sum(axis=0) / unseen.sum(axis=0))


@cache
def limit_errors(name: str, of_votes: bool, simulated: bool = False) -> Array:
    """Error rate (N,) on each item of the rule from all true labels, or all votes.

    A rule is better than its limit on the items that it was fitted to and worse on others, by the same to first order: the
    mean of both, the second by fifty-fold cross-validation.
    """
    source = load(name)
    n = len(source.counts) if of_votes else len(source.y)
    X, target = source.X[:n], source.counts if of_votes else source.y
    if simulated:
        bayes: Array = source.posterior.min(axis=1)
        return bayes
    fold = np.random.default_rng(0).permutation(n) % 50

    def wrong(chosen: NDArray[np.bool_], items: NDArray[np.bool_]) -> NDArray[np.bool_]:
        errors: NDArray[np.bool_] = fit_logistic(X[chosen], target[chosen]).predict(source.X[items]) != source.y[items]
        return errors

    everywhere = np.ones(len(source.y), bool)
    inside = wrong(everywhere[:n], everywhere).astype(float)
    outside = inside.copy()  # stands for items that nobody voted on
    for k in range(50):
        held = np.zeros(len(source.y), bool)
        held[:n] = fold == k
        outside[held] = wrong(fold != k, held)
    rates: Array = (inside + outside) / 2
    return rates
