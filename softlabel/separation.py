"""Data for which logistic regression has no answer: separated labels, and features without full rank."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lstsq
from scipy.optimize import linprog
from scipy.special import expit

from softlabel.validation import Array, align, as_features, as_votes
from softlabel._newton import newton_batch, standardised


def find_separation(
    X: ArrayLike, y_or_counts: ArrayLike, *, positive: object = None
) -> Literal["none", "quasi", "complete"]:
    """Find out whether a linear rule tells the labels apart without error, and prove it.

    Parameters
    ----------
    X, y_or_counts, positive
        As in :func:`fit_logistic`.

    Returns
    -------
    {"none", "quasi", "complete"}
        "complete": some rule is right on every item and undecided on none; an item with votes for both classes excludes it.
        "quasi": some rule is never wrong but undecided (exactly on its boundary) on some items. In both cases the maximum
        likelihood estimate does not exist.

    Raises
    ------
    ValueError
        As :func:`fit_logistic`.

    Notes
    -----
    Albert & Anderson (1984). Newton's method for the likelihood ends at a rule that separates or, where it finds the maximum,
    at weights that exclude one. Where it leaves the answer open, a linear programme decides, that of Konis (2007): maximise
    the sum of the margins of a rule that is never wrong.

    Examples
    --------
    >>> find_separation([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    'complete'
    >>> find_separation([[1.0], [2.0], [2.0], [3.0]], [0, 0, 1, 1])
    'quasi'
    >>> find_separation([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1])
    'none'
    """
    y_or_counts = align(X, y_or_counts, ("X", "y_or_counts"))
    X, _ = as_features(X)
    counts = as_votes(y_or_counts, X.shape[:1], positive)
    x = _design(X)
    return _proved(x, counts) or _programmed(x, counts)


def _proved(x: Array, counts: Array) -> Literal["none", "quasi", "complete"] | None:
    """The answer where an iterate of Newton's method proves it, at a small part of the cost of a programme.

    A rule b that is right, by more than rounding, on every item with votes for one class proves separation; on items with
    votes for both it must be undecided. At a maximum, the residuals r of the votes have x'r = 0: then sum_j r_j b'x_j = 0 for
    any b, and a rule that is never wrong, for which no term is negative, is undecided on every item (Stiemke). The residuals
    found are moved until x'r = 0; the proof holds if none turns round.
    """
    voted = counts.any(axis=1)
    x, counts = x[voted], counts[voted].astype(float)
    s, m = counts[:, 0], counts.sum(axis=1)
    one_sided = (s == 0) | (s == m)
    if not one_sided.any():
        return "none"
    start = np.zeros((1, x.shape[1]))
    (b,), *_ = newton_batch(np.require(x[None, :, 1:], requirements="CW"), counts[None], start, 25, 1e-16, False)
    eta = x @ b
    split = x[~one_sided]
    decided, _, _, singular = np.linalg.lstsq(split, split @ b)
    if len(singular) == len(b) and singular[-1] > 1e-8 * singular[0]:
        return "none"  # only b = 0 is undecided on all items with votes for both
    rule = b - decided
    right = np.where(s > 0, 1, -1) * (x @ rule)
    if right[one_sided].min() > 1e-9 * np.abs(b).sum():
        return "complete" if one_sided.all() else "quasi"
    r = np.where(s == m, m * expit(-eta), s - m * expit(eta))
    q, _ = np.linalg.qr(x)
    moved = q @ (q.T @ r)
    proof = (np.abs(moved) < np.abs(r) / 2) & (np.abs(r) > 1e-12 * m.max())  # smaller ones could be rounding
    return "none" if proof[one_sided].all() else None


def _programmed(x: Array, counts: Array) -> Literal["none", "quasi", "complete"]:
    """The answer by linear programming."""
    positive, negative = counts.T > 0
    split = x[positive & negative]
    margins = np.concatenate([x[positive & ~negative], -x[negative & ~positive]])  # of b: margins @ b, never below 0
    undecided = {"A_eq": split, "b_eq": np.zeros(len(split))} if len(split) else {}
    widest = _programme(-margins.sum(axis=0), A_ub=-margins, b_ub=np.zeros(len(margins)), bounds=(-1, 1), **undecided)
    if -widest.fun <= 1e-7 * len(margins):
        return "none"
    if len(split):
        return "quasi"
    no_aim = np.zeros(x.shape[1])
    strict = _programme(no_aim, (0, 2), A_ub=-margins, b_ub=-np.ones(len(margins)), bounds=(None, None))
    return "complete" if strict.status == 0 else "quasi"


def _design(X: Array) -> Array:
    """Standardised features with an intercept, (n, p + 1)."""
    _, _, centre, scale = standardised(X, X)
    if not np.isfinite(centre + scale).all():
        k = int(np.argmin(np.isfinite(centre + scale)))
        raise ValueError(f"X column {k} has values too large to be added up: change its unit")
    return np.column_stack([np.ones(len(X)), (X - centre) / scale])


def _programme(objective: Array, statuses: tuple[int, ...] = (0,), **constraints: object):
    """A linear programme that was solved (status 0), or shown to be infeasible (2) where that is an answer."""
    for method in ("highs", "highs-ds", "highs-ipm"):  # each gives up on some programmes that another solves
        answer = linprog(objective, method=method, **constraints)
        if answer.status in statuses:
            return answer
    raise RuntimeError(f"the linear programme for separation was not solved: {answer.message}")


def explain_rank(X: Array, counts: Array, names: list[str]) -> str:
    """Say why the features of the items with votes are not of full rank, naming the column."""
    voted = X[counts.any(axis=1)]
    if not len(voted):
        return "y_or_counts has no votes at all: at least one item must have a vote"
    x = _design(voted)
    for k, name in enumerate(names):
        if np.ptp(voted[:, k]) <= 1e-14 * np.abs(voted[:, k]).max():
            return f"X column {k} ({name!r}) is constant over the items with votes: drop it, the intercept is added by itself"
    if len(voted) <= len(names):
        return f"X has {len(names)} columns but only {len(voted)} items with votes: at least {len(names) + 1} are needed"
    for k in range(1, len(names) + 1):
        weights, *_ = lstsq(x[:, :k], x[:, k])
        if np.abs(x[:, k] - x[:, :k] @ weights).max() < 1e-4:
            others = [names[i - 1] for i in range(1, k) if abs(weights[i]) > 1e-6]
            kind = "the same up to shift and scale as" if len(others) == 1 else "a linear combination of"
            return f"X column {k - 1} ({names[k - 1]!r}) is {kind} {', '.join(map(repr, others))}: drop it"
    return "the columns of X are nearly a linear combination of one another: drop some"
