"""Covariances where it is known who voted: what an annotator's votes on different items have in common counts as well."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from softlabel.fits import LogisticFit
from softlabel.tables import read_votes
from softlabel.validation import Array, as_features_and_counts, listed


class Who(NamedTuple):
    """Codes of the item and of the annotator of each vote, and whether it is positive."""

    item: NDArray[np.intp]
    annotator: NDArray[np.intp]
    positive: NDArray[np.bool_]


def pairs_of_votes(z: Array, tau: Array, load: Array, who: Who) -> Array:
    """Sums (L, q, q), for each annotator, of products of the scores load z (vote - tau) of two votes, on different items.

    They are the sums by annotator less those by vote: what a sandwich by item leaves out (Cameron, Gelbach & Miller 2011).
    """
    from scipy.sparse import csr_array  # takes long to import, and only this needs it

    L = int(who.annotator.max()) + 1
    residual = csr_array((who.positive - tau[who.item], (who.annotator, who.item)), shape=(L, len(z)))
    z = load[:, None] * z
    sums, squares = residual @ z, residual.power(2) @ (z[:, :, None] * z[:, None]).reshape(len(z), -1)
    # The fitted scores add up to zero: of L sums, L - 1 are free.
    pairs: Array = L / (L - 1) * sums[:, :, None] * sums[:, None] - squares.reshape(L, z.shape[1], -1)
    return pairs


def nearest_cov(matrix: Array) -> Array:
    """The nearest matrix without negative eigenvalues, for each of (..., q, q) symmetric ones."""
    value, vector = np.linalg.eigh(matrix)
    nearest: Array = (vector * np.maximum(value, 0)[..., None, :]) @ vector.swapaxes(-1, -2)
    return nearest


def coordinates(X: Array, coef: Array) -> tuple[Array, Array]:
    """Coefficients (q, p + 1) of 1, eta and each T; and the matrix (q, p + 1) from coefficients to theta."""
    centre = X.mean(axis=0)
    scale = np.abs(X - centre).max(axis=0)
    units = (X - centre) / scale
    R = np.linalg.cholesky(units.T @ units / len(X)).T  # unlike that of a QR decomposition, it has no sign to choose
    along = R @ (coef[1:] * scale)  # slopes on uncorrelated features of unit variance
    length = np.linalg.norm(along)
    T = np.linalg.svd(along[None])[2][1:] if length > 1e-8 else np.eye(len(along))  # votes without slope have no direction
    slopes = np.linalg.solve(R, T.T).T / scale
    to_coef = np.vstack([np.eye(1, len(coef)), coef, np.column_stack([-slopes @ centre, slopes])])
    onto = np.vstack([along / length**2 if length > 1e-8 else 0 * along, T]) @ (R * scale)
    to_theta = np.column_stack([np.zeros(len(to_coef)), np.vstack([0 * along, onto])])
    to_theta[0] = np.r_[1, centre] - (coef[0] + centre @ coef[1:]) * to_theta[1]
    return to_coef, to_theta


def between_annotators(X: Array, coef: Array, counts: Array, who: Who) -> Array:
    """What annotators add to the covariance (p + 1, p + 1) of the coefficients by items."""
    to_coef = coordinates(X, coef)[0]
    z = to_coef[:, :1].T + X @ to_coef[:, 1:].T
    tau = expit(z[:, 1])
    bread = np.linalg.pinv((z.T * (counts.sum(axis=1) * tau * (1 - tau))) @ z, hermitian=True) @ to_coef
    added: Array = bread.T @ nearest_cov(pairs_of_votes(z, tau, np.ones(len(z)), who).sum(axis=0)) @ bread
    return added


def two_way_cov(fit: LogisticFit, X: ArrayLike, counts: ArrayLike, votes: pd.DataFrame) -> Array:
    """Covariance (p + 1, p + 1) of the coefficients of a fit to votes, of which it is known who gave them.

    Parameters
    ----------
    fit : LogisticFit
        ``fit_logistic(X, counts)``, by maximum likelihood.
    X, counts
        As in :func:`fit_logistic`; at least one feature.
    votes : DataFrame
        The votes of ``counts`` one a row, with columns item, annotator and label, as in :func:`worth_of_votes`.

    Returns
    -------
    (p + 1, p + 1) ndarray

    Raises
    ------
    ValueError
        If an argument is not valid, ``votes`` are not those of ``counts`` or all by one annotator, or ``fit`` is not that of
        ``counts`` on ``X``.

    Notes
    -----
    The sandwich by item plus L / (L - 1) times that by L annotators minus that by vote (Cameron, Gelbach & Miller 2011). Where
    an annotator's votes seem to repel each other that counts as chance, so that no variance is less than by item
    alone. With few annotators take quantiles of t with L - 1 degrees of freedom, since their part is estimated from L numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from softlabel import fit_logistic
    >>> rng = np.random.default_rng(0)
    >>> X, lean = rng.normal(size=(200, 1)), rng.normal(size=6)  # six annotators, some of whom say yes more easily
    >>> yes = rng.random((200, 6)) < expit(X + lean)
    >>> item, annotator = np.indices(yes.shape).reshape(2, -1)
    >>> votes = pd.DataFrame({"item": item, "annotator": annotator, "label": yes.ravel().astype(int)})
    >>> counts = np.column_stack([yes.sum(axis=1), (~yes).sum(axis=1)])
    >>> fit = fit_logistic(X, counts)
    >>> fit.stderr().round(3), np.sqrt(np.diag(two_way_cov(fit, X, counts, votes))).round(3)
    (array([0.057, 0.065]), array([0.347, 0.078]))
    """
    if not isinstance(fit, LogisticFit):
        raise ValueError(f"fit must be a LogisticFit, from fit_logistic(X, counts), got {type(fit).__name__}")
    given = X, counts
    X, names, counts = as_features_and_counts(X, counts)
    if names != fit.feature_names:
        raise ValueError(f"X has the columns {listed(names)}, but fit those of {listed(fit.feature_names)}")
    x, m = np.column_stack([np.ones(len(X)), X]), counts.sum(axis=1)
    score = x.T @ (counts[:, 0] - m * fit.posterior(X)[:, 0])
    if not (np.abs(score) <= 1e-4 * (np.abs(x).T @ m)).all():
        raise ValueError("fit is not the maximum likelihood fit of counts on X, whose score is zero")
    return fit.cov() + between_annotators(X, fit.coef, counts, who_voted(votes, counts, *given))


def who_voted(votes: pd.DataFrame, counts: Array, *given: ArrayLike) -> Who:
    """The votes of a long table, which must be those of ``counts``; X and counts as given tell what items are called."""
    frames = [table for table in given if isinstance(table, pd.DataFrame)]
    items = frames[0].index if frames else pd.RangeIndex(len(counts))
    first = given[1].columns[0] if isinstance(given[1], pd.DataFrame) else 1
    table = read_votes(votes, first if isinstance(first, str) else 1, "keep")
    if not items.is_unique:
        raise ValueError(
            f"the index has item {listed(items[items.duplicated()][:1])} more than once: votes cannot be matched to it"
        )
    rows = items.get_indexer(table.items)
    if (rows < 0).any():
        raise ValueError(f"votes has item {listed(table.items[rows < 0][:1])}, but the items are {listed(items)}")
    counted = np.zeros(counts.shape)
    np.add.at(counted, (rows[table.item], 1 - table.positive), 1)
    wrong = (counted != counts).any(axis=1)
    if wrong.any():
        k = int(np.argmax(wrong))
        there, here = (f"{a:g} positive and {b:g} negative" for a, b in (counted[k], counts[k]))
        raise ValueError(f"votes has {there} votes on item {listed(items[[k]])}, but counts has {here} ones")
    annotator = np.unique(table.annotator, return_inverse=True)[1]  # without those who have no vote
    if not annotator.any():
        raise ValueError("votes are all by one annotator: how annotators differ cannot be told from them")
    return Who(rows[table.item], annotator, table.positive)
