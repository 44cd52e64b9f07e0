"""Error rates of rules from m votes on many items and k true labels: four hundred draws of both in a row."""

import contextlib
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from softlabel.book.real_votes import LOADERS, Source, load, truths_of, varied, votes_of
from softlabel.logistic import fit_logistic
from softlabel.separation import find_separation
from softlabel.validation import Array
from softlabel.worth import fit_votes_and_truth

DRAWS = 400
POOL = {"recidivism": 1000, "CIFAR-10H": 1000, "ImageNet-16H, noise 80": 700, "ImageNet-16H, noise 125": 700}
MS = dict(zip(LOADERS, ((1, 5, 20), (1, 5, 30), (1, 6), (1, 6)), strict=True))
KS = (25, 50, 100, 200, 400)
CELLS = [dict(name=name, simulated=False, m=m, k=k) for name in LOADERS for m in MS[name] for k in KS]
CELLS += [dict(name=name, simulated=True, m=5, k=k) for name in ("recidivism", "CIFAR-10H") for k in KS]
PENALTIES = np.geomspace(0.1, 1000, 9)
Fit = Callable[[Array, NDArray[np.int64], Array], dict[str, Array]]


def cell(name: str, simulated: bool, m: int, k: int, draws: int = DRAWS, fit: Fit | None = None) -> dict[str, float]:
    """Mean error rates on items outside the pool; the SE of what ``fit_votes_and_truth`` loses to the best other rule.

    ``fit`` makes the rules: by default all of them, with ``fit_rules`` those that need no other program.
    """
    rng = np.random.default_rng([*name.encode(), simulated, m, k])
    source = load(name)
    found = [errors(source, simulated, m, k, POOL[name], rng, fit or all_rules) for _ in range(draws)]
    by_rule = {rule: np.array([each[rule] for each in found]) for rule in found[0]}
    mean = {rule: float(values.mean()) for rule, values in by_rule.items()}
    best = min((rule for rule in mean if rule != "both"), key=mean.__getitem__)
    return {
        **mean,
        "both_less_best_se": float((by_rule["both"] - by_rule[best]).std() / np.sqrt(draws)),
        "both_of_ten": float(by_rule["both"][:10].mean()),  # a chapter has the time for so many draws
    }


def errors(source: Source, simulated: bool, m: int, k: int, pool: int, rng: np.random.Generator, fit: Fit) -> dict[str, float]:
    """Error rate of each rule, from one draw of the pool, its votes and its true labels."""
    rows = rng.permutation(len(source.counts))[:pool]
    while not varied(source, rows[:k]):
        rows = rng.permutation(len(source.counts))[:pool]
    tried = np.setdiff1d(np.arange(len(source.y)), rows)
    X, counts = source.X[rows], votes_of(source, rows, m, simulated, rng)
    y = truths_of(source, rows[:k], simulated, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of separation, by whichever library
        rules = fit(X, counts, y)
    probability = source.posterior[tried, 0] if simulated else source.y[tried]
    positive = {rule: coef[0] + source.X[tried] @ coef[1:] > 0 for rule, coef in rules.items()}
    return {rule: float(np.where(says, 1 - probability, probability).mean()) for rule, says in positive.items()}


def all_rules(X: Array, counts: NDArray[np.int64], y: Array) -> dict[str, Array]:
    """Those of ``fit_rules``, and the peer; it starts at the truths' estimate, and stays there if it finds no other."""
    rules, k = fit_rules(X, counts, y), len(y)
    rules["prediction_powered"] = rules["truths"]
    if find_separation(X[:k], y) == "none":
        with contextlib.suppress(np.linalg.LinAlgError):  # where they are nearly separated
            rules["prediction_powered"] = prediction_powered(X, counts, y)
    return rules


def fit_rules(X: Array, counts: NDArray[np.int64], y: Array) -> dict[str, Array]:
    """Coefficients of rules from votes on all items of X and true labels y of the first."""
    k = len(y)
    votes = fit_logistic(X, counts)
    eta = votes.linear_predictor(X[:k])
    shift = penalised(np.ones((k, 1)), y, eta, np.full(1, 1e-4))[0, 0]
    a, s = fit_logistic(eta[:, None], y, method="firth").coef
    return {
        "truths": fit_logistic(X[:k], y).coef,
        "votes": votes.coef,
        "intercept": votes.coef + np.eye(1, len(votes.coef))[0] * shift,
        "intercept_and_slope": s * votes.coef + np.eye(1, len(votes.coef))[0] * a,
        "cross_validated": cross_validated(X[:k], y, votes.coef),
        "both": fit_votes_and_truth(X, counts, np.r_[y, np.full(len(X) - k, np.nan)]).coef,
    }


def penalised(x: Array, y: Array, offset: Array, penalties: Array) -> Array:
    """Coefficients (penalties, p) beside an offset that maximise the log-likelihood less penalty / 2 times their squares."""
    b = np.zeros((len(penalties), x.shape[1]))
    for _ in range(50):
        p = expit(offset + b @ x.T)
        gradient = (y - p) @ x - penalties[:, None] * b
        hessian = (x.T * (p * (1 - p))[:, None]) @ x + penalties[:, None, None] * np.eye(x.shape[1])
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        step /= np.maximum(1, np.abs(step).max(axis=1, keepdims=True) / 2)
        b += step
        if np.abs(step).max() < 1e-8:
            break
    return b


def cross_validated(X: Array, y: Array, coef: Array, folds: int = 10) -> Array:
    """The truths' rule, shrunk towards the votes' rule by the ridge penalty that is best in ten-fold cross-validation."""
    x = np.insert(X, 0, 1, axis=1)  # features have unit variance
    offset, fold = x @ coef, np.arange(len(y)) % folds
    score = np.zeros(len(PENALTIES))
    for held in (fold == f for f in range(folds)):
        eta = offset[held] + penalised(x[~held], y[~held], offset[~held], PENALTIES) @ x[held].T
        score += log_expit(np.where(y[held] == 1, eta, -eta)).sum(axis=1)
    shrunken: Array = coef + penalised(x, y, offset, PENALTIES[[score.argmax()]])[0]
    return shrunken


def prediction_powered(X: Array, counts: NDArray[np.int64], y: Array) -> Array:
    """PPI++ with the shares of votes for predictions, its tuning parameter estimated (Angelopoulos, Duchi & Zrnic 2023)."""
    from ppi_py import ppi_logistic_pointestimate

    x, share, k = np.insert(X, 0, 1, axis=1), counts[:, 0] / counts.sum(axis=1), len(y)
    coef: Array = ppi_logistic_pointestimate(x[:k], y, share[:k], x[k:], share[k:])
    return coef
