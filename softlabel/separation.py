"""Data for which logistic regression has no answer: separated labels, and features without full rank."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from softlabel.validation import Array, align, as_features, as_votes, listed

Separation = Literal["none", "quasi", "complete"]
FEW = 10  # features, among which those that are needed to separate the labels are looked for
ROUNDING = 1e-9  # of a margin, relative to the rule


def find_separation(X: ArrayLike, y_or_counts: ArrayLike, *, positive: object = None) -> Separation:
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
    Albert & Anderson (1984). By Stiemke's lemma either some rule is never wrong and somewhere right, or positive weights on
    the items balance their margins. One non-negative least-squares problem finds which, and with it the rule or the weights,
    which are then checked. Where rounding spoils both proofs, a linear programme decides, that of Konis (2007): maximise the
    sum of the margins of a rule that is never wrong.

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
    X, _ = as_features(X, none=True)
    return separation_of(X, as_votes(y_or_counts, X.shape[:1], positive))


def separation_of(X: Array, counts: Array) -> Separation:
    """:func:`find_separation` for arrays that have been checked."""
    x, (positive, negative) = _rows(X), counts.T > 0
    decided = np.concatenate([x[positive & ~negative], -x[negative & ~positive]])
    split = x[positive & negative]
    if not len(decided):
        return "none"
    return _by_least_squares(decided, split) or _by_programme(decided, split)


def explain_separation(kind: Separation, X: Array, counts: Array, names: list[str]) -> str:
    """Words for a warning that there is no fit, naming the features that separate the labels."""
    return (
        f"{kind} separation: {separated_by(kind, X, counts, names)}, so the maximum likelihood estimate does not exist and "
        "coef is only where the iteration stopped"
    )


def separated_by(kind: Separation, X: Array, counts: Array, names: list[str]) -> str:
    """Which features separate the labels: alone, or else those that only do so together. A rule may leave items open."""
    return f"{_separating(kind, X, counts, names)} the labels apart without error{' on some items' * (kind == 'quasi')}"


def _separating(kind: Separation, X: Array, counts: Array, names: list[str]) -> str:
    """The features that separate the labels in this way, and the verb."""
    positive, negative = X[counts[:, 0] > 0], X[counts[:, 1] > 0]
    if not (len(positive) and len(negative)):
        return "the intercept alone, since all votes are for one class, tells"
    beyond = np.greater if kind == "complete" else np.greater_equal
    alone = beyond(positive.min(axis=0), negative.max(axis=0)) | beyond(negative.min(axis=0), positive.max(axis=0))
    if alone.sum() == 1:
        return f"the feature {names[int(alone.argmax())]!r} alone tells"
    if alone.any():
        return f"each of the features {listed(np.array(names, object)[alone])} tells"
    together = list(range(len(names)))
    for k in range(len(names)) if len(names) <= FEW else ():
        fewer = [i for i in together if i != k]
        if separation_of(X[:, fewer], counts) == kind:
            together = fewer
    named = f" {listed([names[i] for i in together])}" if len(together) <= 6 else ""
    return f"the features{named} together tell"


def _rows(X: Array) -> Array:
    """Features with an intercept, (n, p + 1): outliers neither set the units of a column nor outweigh the other items.

    Any invertible change of the columns, and any positive multiple of an item, leaves the answer as it is.
    """
    centre_and_scale(len(X), *column_sums(X.T))  # values too large are an error
    middle = np.median(X, axis=0)
    away = np.abs(X - middle)
    scale = np.median(away, axis=0)
    for fallback in (away.max(axis=0), 1.0):
        scale = np.where(scale > 0, scale, fallback)
    with np.errstate(over="ignore"):
        x = np.column_stack([np.ones(len(X)), np.clip((X - middle) / scale, -1e300, 1e300)])
    x /= np.abs(x).max(axis=1, keepdims=True)
    return x


def _by_least_squares(decided: Array, split: Array) -> Separation | None:
    """The answer where it can be proved; the margins of a rule b are decided @ b, and split @ b must be zero."""
    from scipy.optimize import nnls  # takes as long to import as all of the package

    signed = np.concatenate([decided, split, -split])
    try:
        weights = 1 + nnls(signed.T, -signed.sum(axis=0))[0]  # at least 1, and as nearly balanced as can be
        rule = signed.T @ weights  # what is left: if it is not zero, a rule that is never wrong
        if _is_never_wrong(signed @ rule, rule):
            if len(split):
                return "quasi"
            if (decided @ rule).min() > ROUNDING * np.abs(rule).max():
                return "complete"
            shares = nnls(np.vstack([decided.T, np.ones(len(decided))]), np.eye(decided.shape[1] + 1)[-1])[0]
            widest = decided.T @ shares  # Gordan's lemma: zero, or a rule with a margin everywhere
            if (decided @ widest).min() > ROUNDING * np.abs(widest).max():
                return "complete"
            held = shares > 1e-9 * shares.max()
            return "quasi" if _balance(decided[held], shares[held]) else None
    except RuntimeError:  # too many steps
        return None
    return "none" if _balance(signed, weights) else None


def _balance(signed: Array, weights: Array) -> bool:
    """Whether positive weights balance the margins: moved until they do exactly, they are still positive."""
    moved = signed @ np.linalg.lstsq(signed, weights, rcond=1e-12)[0]
    return bool((np.abs(moved) < weights / 2).all())


def _is_never_wrong(margins: Array, rule: Array) -> bool:
    size = np.abs(rule).max()
    return bool(margins.min() >= -ROUNDING * size and margins.max() > 1e-7 * size > 1e-14 * len(margins))


def _by_programme(decided: Array, split: Array) -> Separation:
    """The answer by linear programming."""
    undecided: dict[str, Any] = {"A_eq": split, "b_eq": np.zeros(len(split))} if len(split) else {}
    widest = _programme(-decided.sum(axis=0), A_ub=-decided, b_ub=np.zeros(len(decided)), bounds=(-1, 1), **undecided)
    if -widest.fun <= 1e-7 * len(decided):
        return "none"
    if len(split):
        return "quasi"
    no_aim = np.zeros(decided.shape[1])
    strict = _programme(no_aim, (0, 2), A_ub=-decided, b_ub=-np.ones(len(decided)), bounds=(None, None))
    return "complete" if strict.status == 0 else "quasi"


def _programme(objective: Array, statuses: tuple[int, ...] = (0,), **constraints: Any) -> Any:
    """A linear programme that was solved (status 0), or shown to be infeasible (2) where that is an answer."""
    from scipy.optimize import linprog

    for method in ("highs", "highs-ds", "highs-ipm"):  # each gives up on some programmes that another solves
        answer = linprog(objective, method=method, **constraints)
        if answer.status in statuses:
            return answer
    raise RuntimeError(f"the linear programme for separation was not solved: {answer.message}")


def column_sums(features: Array) -> tuple[Array, Array, Array]:
    """Sum, least and largest value (..., p) of features (..., p, n) over the items."""
    with np.errstate(over="ignore", invalid="ignore"):  # found by centre_and_scale
        return features.sum(axis=-1, dtype=float), features.min(axis=-1).astype(float), features.max(axis=-1).astype(float)


def centre_and_scale(n: int, total: Array, low: Array, high: Array, first: int = 0) -> tuple[Array, Array]:
    """What brings columns (..., p) of n items, with these sums, to [-1, 1] around a mean of zero.

    In errors, data sets are numbered from ``first``.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        centre = total / n
        scale = np.maximum(high - centre, centre - low)
    if not np.isfinite(scale).all():
        at = np.argwhere(~np.isfinite(scale))[0]
        where = "" if len(at) == 1 else f"data set {first + at[0]}: "
        raise ValueError(f"{where}X column {at[-1]} has values too large to be added up: change its unit")
    # A constant column is left at rounding error, and found by its rank.
    return centre, np.where(scale <= 1e-14 * np.abs(centre), 1.0, scale)


def design(X: Array) -> Array:
    """Standardised features with an intercept, (n, p + 1)."""
    centre, scale = centre_and_scale(len(X), *column_sums(X.T))
    return np.column_stack([np.ones(len(X)), (X - centre) / scale])


def way_back(centre: Array, scale: Array) -> Array:
    """Matrix (q, q) from coefficients of standardised features to coefficients of the features themselves."""
    back = np.diag(np.r_[1.0, 1 / scale])
    back[0, 1:] = -centre / scale
    return back


def explain_rank(X: Array, counts: Array, names: list[str]) -> str:
    """Say why the features of the items with votes are not of full rank, naming the column."""
    voted = X[counts.any(axis=1)]
    if not len(voted):
        return "y_or_counts has no votes at all: at least one item must have a vote"
    x = design(voted)
    for k, name in enumerate(names):
        if np.ptp(voted[:, k]) <= 1e-14 * np.abs(voted[:, k]).max():
            return f"X column {k} ({name!r}) is constant over the items with votes: drop it, the intercept is added by itself"
    if len(voted) <= len(names):
        return f"X has {len(names)} columns but only {len(voted)} items with votes: at least {len(names) + 1} are needed"
    for k in range(1, len(names) + 1):
        weights = np.linalg.lstsq(x[:, :k], x[:, k])[0]
        if np.abs(x[:, k] - x[:, :k] @ weights).max() < 1e-4:
            others = [names[i - 1] for i in range(1, k) if abs(weights[i]) > 1e-6]
            kind = "the same up to shift and scale as" if len(others) == 1 else "a linear combination of"
            return f"X column {k - 1} ({names[k - 1]!r}) is {kind} {', '.join(map(repr, others))}: drop it"
    return "the columns of X are nearly a linear combination of one another: drop some"
