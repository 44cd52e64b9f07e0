"""Logistic regression on labels or vote counts by Newton's method: one data set of any size, or thousands at once.

Inside, features are standardised: an intercept and p columns centred and scaled to [-1, 1], so that no linear predictor
exceeds the sum of the absolute coefficients, and units do not matter. They are kept as x (R, q, n): R data sets, q = p + 1,
items along memory. Newton's method is written once, for R data sets; a large one is R = 1, summed block by block.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from operator import add
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, xlogy

from softlabel.fits import BatchFit, LogisticFit
from softlabel.profiles import Profile
from softlabel.separation import centre_and_scale, column_sums, explain_rank, explain_separation, separation_of, way_back
from softlabel.threads import blocks, in_threads, one_thread_of_algebra
from softlabel.validation import (
    Array,
    ConvergenceWarning,
    SeparationWarning,
    align,
    as_choice,
    as_features,
    as_labels_or_counts,
    as_positive,
    as_votes,
    as_whole,
)

METHODS = ("mle", "firth")
NewtonResult = tuple[Array, NDArray[np.bool_], NDArray[np.int64], NDArray[np.bool_]]
FEW = 4  # coefficients: with so few, products of features are worth their memory
COLLINEAR = 1e10  # variance inflation factor from which a column counts as a combination of the others
LOST_INFORMATION = 1e12  # trace(H^-1 H_0) above this: the labels say nothing about some direction, and H is rounding error


def fit_logistic(
    X: ArrayLike,
    y_or_counts: ArrayLike,
    *,
    positive: object = None,
    method: Literal["mle", "firth"] = "mle",
    max_iter: int = 25,
    tol: float = 1e-8,
) -> LogisticFit:
    """Fit a logistic regression to labels, or to vote counts as if all votes were independent.

    Parameters
    ----------
    X : (n, p) array_like or DataFrame
        Features, without a column for the intercept; of no column, only the intercept is fitted. They may be single
        precision; sums are in double precision.
    y_or_counts : (n,) or (n, 2) array_like
        Labels, or votes for the positive and the negative class. An item without votes contributes nothing. Pandas
        objects are matched to ``X`` by index.
    positive : optional
        The label of the positive class. Without it, labels must be 0 and 1.
    method : {"mle", "firth"}
        Maximum likelihood, or Firth's penalised likelihood: its estimate is finite even if the labels are separated, and its
        bias is smaller.
    max_iter : int
        Largest number of Newton steps; ten times as many for "firth", whose steps are more and smaller.
    tol : float
        Largest error left in a linear predictor.

    Returns
    -------
    LogisticFit

    Raises
    ------
    ValueError
        If shapes do not match, a value is not finite, labels are not 0/1, counts are not whole or are negative, no item has a
        vote, or a column is constant or a linear combination of others.

    Warns
    -----
    SeparationWarning
        If the features separate the labels (method "mle"): no maximum exists, and ``coef`` is where the iteration stopped.
    ConvergenceWarning
        If ``max_iter`` steps were not enough.

    Notes
    -----
    Maximises log L_LR of Section 3 of Ahfock & McLachlan (2021). By their Theorem 1 the estimate is consistent for
    Dirichlet-multinomial votes although the likelihood treats them as independent; use the sandwich covariance. The penalty of
    Firth (1993) is log det(H) / 2, by which Heinze & Schemper (2002) solve separation; a fit with it keeps a copy of the data,
    for the profiles of :meth:`LogisticFit.conf_int`.

    Examples
    --------
    >>> fit = fit_logistic([[0.0], [1.0], [2.0], [3.0]], [[1, 6], [3, 4], [3, 4], [6, 1]])
    >>> fit.coef.round(3)
    array([-1.691,  1.003])
    >>> fit.predict([[1.0], [2.0]])
    array([0, 1])
    """
    max_iter, tol = as_whole(max_iter, "max_iter", 1), as_positive(tol, "tol")
    firth = as_choice(method, "method", METHODS) == "firth"
    y_or_counts = align(X, y_or_counts, ("X", "y_or_counts"))
    X, names = as_features(X, keep_float32=True, none=True)
    counts = as_votes(y_or_counts, X.shape[:1], positive)
    centre, scale = _centre_and_scale(X)
    data, zero = _Blocks(X, counts, centre, scale), np.zeros((1, len(names) + 1))
    beta, (converged,), (n_iter,), (full_rank,) = newton(data, zero.copy(), max_iter * (10 if firth else 1), tol, firth)
    if not full_rank:
        raise ValueError(explain_rank(X, counts, names))
    if scale.min(initial=1) < 1e-300:
        k = int(np.argmin(scale))
        raise ValueError(f"X column {k} ({names[k]!r}) varies by less than 1e-300: change its unit")

    # Only data are suspicious that have no maximum of the unpenalised likelihood.
    has_maximum = bool(newton(data, zero, max_iter, tol)[1][0] if firth else converged)
    separation = "none" if has_maximum else separation_of(X, counts)
    if separation != "none" and not firth:
        warnings.warn(
            f"{explain_separation(separation, X, counts, names)}; use more items, fewer features, or method='firth'",
            SeparationWarning,
            stacklevel=2,
        )
    elif not converged:
        warnings.warn(
            f"no convergence after {n_iter} steps (max_iter={max_iter}, tol={tol:g}); raise max_iter",
            ConvergenceWarning,
            stacklevel=2,
        )

    log_likelihood, saturated, pearson, H, G = (total[0] for total in data.total(fit_statistics, beta))
    back, bread = way_back(centre, scale), inverse(H[None])[0][0]
    with np.errstate(over="ignore", invalid="ignore"):  # features of 1e-300 have coefficients of infinite variance
        cov = {kind: back @ middle @ back.T for kind, middle in (("model", bread), ("sandwich", bread @ G @ bread))}
    if not (has_maximum or converged):  # no maximum, no curvature at it
        cov = {kind: np.full_like(H, np.nan) for kind in cov}
    n_items = int(np.count_nonzero(counts.any(axis=1)))
    freedom = n_items - len(names) - 1
    dispersion = float(pearson / freedom) if freedom > 0 else float("nan")
    profile = Profile.of(X, counts, beta[0], centre, scale, separation != "none", dispersion) if firth and converged else None
    return LogisticFit(
        coef=back @ beta[0],
        converged=bool(converged),
        n_iter=int(n_iter),
        separation=separation,
        log_likelihood=float(log_likelihood),
        n_items=n_items,
        n_without_votes=len(counts) - n_items,
        feature_names=names,
        deviance=float(2 * (saturated - log_likelihood)),
        dispersion=dispersion,
        _cov=cov,
        _profile=profile,
    )


def _centre_and_scale(X: Array) -> tuple[Array, Array]:
    """Of features (n, p), block by block."""
    total, low, high = zip(*in_threads(lambda rows: column_sums(X[rows].T), blocks(*X.shape)))
    with np.errstate(over="ignore", invalid="ignore"):  # found by centre_and_scale
        return centre_and_scale(len(X), sum(total), np.min(low, axis=0), np.max(high, axis=0))


def fit_logistic_batch(
    X: ArrayLike,
    y_or_counts: ArrayLike,
    *,
    positive: object = None,
    method: Literal["mle", "firth"] = "mle",
    max_iter: int = 25,
    tol: float = 1e-8,
) -> BatchFit:
    """Fit a logistic regression to each of R data sets of the same size, on all cores.

    Parameters
    ----------
    X : (R, n, p) array_like
        Features, without a column for the intercept.
    y_or_counts : (R, n) or (R, n, 2) array_like
        Labels, or votes for the positive and the negative class.
    positive, method, max_iter, tol
        As in :func:`fit_logistic`.

    Returns
    -------
    BatchFit

    Raises
    ------
    ValueError
        As :func:`fit_logistic`; the message names the data set.

    Warns
    -----
    ConvergenceWarning
        If some data sets did not converge, with their number; :func:`fit_logistic` on one of them tells why.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 200, 2))
    >>> y = rng.random((100, 200)) < 1 / (1 + np.exp(-X[..., 0]))
    >>> fit_logistic_batch(X, y)
    BatchFit(100 data sets, 100 converged; coef (100, 3))
    """
    max_iter, tol = as_whole(max_iter, "max_iter", 1), as_positive(tol, "tol")
    firth = as_choice(method, "method", METHODS) == "firth"
    X, names = as_features(X, ndim=(3,), keep_float32=True, none=True)
    votes = as_labels_or_counts(y_or_counts, X.shape[:2], positive)

    def fit(sets: slice) -> NewtonResult:
        data, centre, scale = _data_sets(X[sets], votes[sets], first=sets.start)
        beta, *rest = newton(data, np.zeros((len(centre), len(names) + 1)), max_iter * (10 if firth else 1), tol, firth)
        coef = beta / np.c_[np.ones(len(beta)), scale]
        coef[:, 0] -= (coef[:, 1:] * centre).sum(axis=1)
        return coef, *rest

    parts = in_threads(fit, blocks(len(X), X.shape[1]))
    coef, converged, n_iter, full_rank = (np.concatenate(part) for part in zip(*parts))
    if not full_rank.all():
        r = int(np.argmin(full_rank))
        raise ValueError(f"data set {r}: {explain_rank(X[r], as_votes(votes[r], X.shape[1:2]), names)}")
    if not np.isfinite(coef).all():
        r = int(np.argmin(np.isfinite(coef).all(axis=1)))
        raise ValueError(f"data set {r}: a column of X varies by less than 1e-300: change its unit")
    if not converged.all():
        warnings.warn(
            f"{np.sum(~converged)} of {len(X)} fits did not converge (the first is data set {np.argmin(converged)}), most "
            "often because of separation; see .converged, and fit_logistic on one of them for the reason",
            ConvergenceWarning,
            stacklevel=2,
        )
    return BatchFit(coef, converged, n_iter)


@dataclass(frozen=True)
class _DataSets:
    """R data sets of n items: standardised features and votes."""

    features: Array  # (R, k, n): the intercept, p columns, and products of each two of them if q = p + 1 is small
    q: int
    positive: Array  # votes (R, n) for the positive class
    votes: Array  # and in all

    @property
    def x(self) -> Array:
        return self.features[:, : self.q]

    def total(self, statistic: Callable[..., Any], *args: Array) -> Any:
        """A statistic that sums over the items."""
        return statistic(self, *args)

    def keep(self, which: NDArray[np.bool_]) -> "_DataSets":
        return _DataSets(self.features[which], self.q, self.positive[which], self.votes[which])


def _data_sets(
    X: Array, votes: Array, centre: Array | None = None, scale: Array | None = None, first: int = 0
) -> tuple[_DataSets, Array, Array]:
    """From X (R, n, p), which is standardised, and labels (R, n) or counts (R, n, 2); also what standardises it.

    In errors, data sets are numbered from ``first``.
    """
    R, n, p = X.shape
    pairs = list(zip(*np.triu_indices(p))) if p < FEW and centre is None else []
    # In memory a feature of all data sets lies together: NumPy passes what is not in one piece through a buffer.
    features = np.empty((1 + p + len(pairs), R, n)).transpose(1, 0, 2)
    features[:, 0], columns = 1, features[:, 1 : p + 1]
    columns[...] = X.transpose(0, 2, 1)
    if centre is None or scale is None:
        centre, scale = centre_and_scale(n, *column_sums(columns), first)
    columns -= centre[..., None]
    columns /= scale[..., None]
    for row, (i, k) in enumerate(pairs, p + 1):
        np.multiply(columns[:, i], columns[:, k], out=features[:, row])
    if votes.ndim == 2:
        return _DataSets(features, p + 1, votes, np.broadcast_to(1.0, votes.shape)), centre, scale
    return _DataSets(features, p + 1, votes[..., 0].copy(), votes[..., 0] + votes[..., 1]), centre, scale


@dataclass(frozen=True)
class _Blocks:
    """One data set (n, p) of any size as R = 1, standardised block by block, so that it is never in memory twice."""

    X: Array
    counts: Array
    centre: Array
    scale: Array

    @one_thread_of_algebra
    def total(self, statistic: Callable[..., Any], *args: Array) -> Any:
        def of_block(rows: slice) -> Any:
            return statistic(_data_sets(self.X[None, rows], self.counts[None, rows], self.centre, self.scale)[0], *args)

        n, p = self.X.shape
        parts = blocks(n, p, least=4 * p)  # of fewer items, the sums would be as large as the block
        return reduce(lambda sums, more: tuple(map(add, sums, more)), in_threads(of_block, parts))


@one_thread_of_algebra
def newton(data: _DataSets | _Blocks, beta: Array, max_iter: int, tol: float, firth: bool = False) -> NewtonResult:
    """Coefficients (R, q), whether each fit converged, its number of steps, and whether its features have full rank.

    A fit has converged when a full step moves no linear predictor by more than sqrt(tol): since the weights w = tau (1 - tau)
    satisfy |w'| <= w, a step of size d leaves an error of about d^2 / 2. With Firth's penalty, log det(H) / 2, the steps still
    use H alone and shrink only linearly, so that they must fall below tol.
    """
    n_iter, converged = np.zeros(len(beta), np.int64), np.zeros(len(beta), np.bool_)
    left, moving = np.arange(len(beta)), np.ones(len(beta), np.bool_)
    step, rise, back_off = np.zeros_like(beta), np.zeros(len(beta)), np.ones(len(beta))
    for iteration in range(1, max_iter + 1):
        here = beta[left]
        gradient, H = data.total(score_and_information, here)
        H_inverse, inflation = inverse(H)
        if iteration == 1:
            H_0, full_rank = H, inflation < COLLINEAR
        if firth:
            gradient = gradient + data.total(firth_score, here, H_inverse)[0]
        newton_step = product(H_inverse, gradient)
        reach = np.abs(newton_step).sum(axis=1)
        if iteration == 1:
            newton_step /= unexplained(gradient, newton_step, H)[:, None]
        elif reach.max() > 5:  # far out the weights vanish and a full step means nothing: it may at most turn all eta round
            newton_step *= np.minimum(1, (5 + np.abs(here).sum(axis=1)) / np.maximum(reach, 5))[:, None]
        # If the log-likelihood now falls steeply along the last step, that step was too long: take half of it back.
        too_long = np.einsum("rq,rq->r", gradient, step) < -rise / 2
        new_rise = np.einsum("rq,rq->r", gradient, newton_step)
        if too_long.any():
            back_off = np.where(too_long, back_off / 2, 1.0)
            move = np.where(too_long[:, None], -back_off[:, None] * step, newton_step)
            step, rise = np.where(too_long[:, None], step, newton_step), np.where(too_long, rise, new_rise)
        else:
            move, step, rise, back_off = newton_step, newton_step, new_rise, np.ones(len(here))
        beta[left[moving]] += move[moving]
        n_iter[left[moving]] = iteration

        ends = moving & ~too_long & (reach <= (tol if firth else tol**0.5))
        information = np.einsum("rij,rji->r", H_inverse[ends], H_0[left[ends]])
        converged[left[ends]] = firth | (information < LOST_INFORMATION)
        moving = moving & ~ends
        if not moving.any():
            break
        if isinstance(data, _DataSets) and moving.mean() < 0.5:  # the others are no longer carried along
            data, left, step, rise, back_off = data.keep(moving), left[moving], step[moving], rise[moving], back_off[moving]
            moving = moving[moving]
    return beta, converged & full_rank, n_iter, full_rank


def score_and_information(data: _DataSets, beta: Array) -> tuple[Array, Array]:
    """Gradient (R, q) of the log-likelihood, and H (R, q, q)."""
    q, (residual, weight) = data.q, (both := residuals_and_weights(data, beta))
    if data.features.shape[1] > q:  # the sums of both in one reading of the features
        sums = data.features @ both.transpose(1, 2, 0)
        return sums[:, :q, 0], sums[:, _row_of_product(q), 1]
    return product(data.x, residual), weighted_products(data, weight)


def residuals_and_weights(data: _DataSets, beta: Array) -> Array:
    """s - m tau and m tau (1 - tau) of the items, (2, R, n)."""
    residual, weight = both = np.empty((2, *data.votes.shape))
    if not beta.any():
        np.subtract(data.positive, data.votes / 2, out=residual)
        np.divide(data.votes, 4, out=weight)
        return both
    eta, bound = linear_predictors(data, beta), np.abs(beta).sum(axis=1).max()  # no eta is larger
    if bound > 700:
        np.clip(eta, -700, 700, out=eta)
    odds = np.exp(eta, out=eta)
    tau_2 = np.divide(1, np.add(odds, 1, out=weight), out=weight)  # twice as fast as np.reciprocal
    tau_1 = np.multiply(odds, tau_2, out=odds)
    m_tau = data.votes * tau_1
    np.subtract(data.positive, m_tau, out=residual)
    if bound > 16:  # this may be a difference of nearly equal numbers
        np.subtract(data.positive * tau_2, (data.votes - data.positive) * tau_1, out=residual)
    weight *= m_tau
    return both


def linear_predictors(data: _DataSets, beta: Array) -> Array:
    """beta' x of the items (R, n)."""
    return (beta[:, None] @ data.x)[:, 0]


def weighted_products(data: _DataSets, weight: Array) -> Array:
    """sum_j weight_j x_j x_j' (R, q, q), for weights that are not negative."""
    root = data.x * np.sqrt(weight)[:, None]
    return root @ root.transpose(0, 2, 1)  # NumPy sees that both are one, and computes half of it


@cache
def _row_of_product(q: int) -> NDArray[np.int64]:
    """Row (q, q) of the features that holds the product of each two: with the intercept, a feature is its own."""
    row = np.empty((q, q), np.int64)
    i, k = np.triu_indices(q)
    row[i, k] = row[k, i] = np.arange(len(i))
    return row


def firth_score(data: _DataSets, beta: Array, H_inverse: Array) -> tuple[Array]:
    """Gradient (R, q) of Firth's penalty: the leverage of each item times 1/2 - tau."""
    _, weight = residuals_and_weights(data, beta)
    leverage = weight * (data.x * (H_inverse @ data.x)).sum(axis=1)
    return (product(data.x, -leverage * np.tanh(linear_predictors(data, beta) / 2) / 2),)


def fit_statistics(data: _DataSets, beta: Array) -> tuple[Array, ...]:
    """Log-likelihood, that of one probability an item, Pearson's statistic, H, and G, the sum of squared scores."""
    s, f, eta = data.positive, data.votes - data.positive, linear_predictors(data, beta)
    residual, weight = residuals_and_weights(data, beta)
    log_likelihood = (s * log_expit(eta) + f * log_expit(-eta)).sum(axis=1)
    share = s / np.maximum(data.votes, 1)
    saturated = (xlogy(s, share) + xlogy(f, f / np.maximum(data.votes, 1))).sum(axis=1)
    pearson = np.divide(residual**2, weight, out=np.zeros_like(weight), where=weight > 0).sum(axis=1)
    return log_likelihood, saturated, pearson, weighted_products(data, weight), weighted_products(data, residual**2)


def inverse(H: Array) -> tuple[Array, Array]:
    """H^-1 (R, q, q), and the largest variance inflation factor (R,): 1 for orthogonal columns, huge for collinear ones."""
    d = 1 / np.sqrt(np.maximum(np.einsum("rii->ri", H), 1e-200))
    units = d[:, :, None] * d[:, None]
    # With 1e-14 on a diagonal of ones, a singular H does not fail.
    inverse_of_unit = np.linalg.inv(units * H + 1e-14 * np.eye(H.shape[-1]))
    return units * inverse_of_unit, np.einsum("rii->ri", inverse_of_unit).max(axis=1)


def unexplained(gradient: Array, step: Array, H: Array) -> Array:
    """1 - R^2 (R,) of the least-squares regression of the votes, of which Newton's step from zero is a multiple.

    Divided by it, the slopes are those of Fisher's linear discriminant if the classes have the same number of votes, which
    saves up to four steps. It is at least 1/10, since a discriminant of separated classes has no end.
    """
    total = 4 * H[:, 0, 0] - gradient[:, 0] ** 2 / np.maximum(H[:, 0, 0], 1e-200)
    rest = 4 * H[:, 0, 0] - (gradient * step).sum(axis=1)
    share: Array = np.divide(rest, total, out=np.ones_like(rest), where=total > 0)
    return share.clip(0.1)


def product(A: Array, v: Array) -> Array:
    """Matrices times vectors, (R, i, j) and (R, j)."""
    return (A @ v[..., None]).squeeze(-1)
