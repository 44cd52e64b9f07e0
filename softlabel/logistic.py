"""Logistic regression on labels or vote counts by Newton's method: one data set of any size, or thousands at once.

Inside, features are standardised: an intercept and p columns centred and scaled to [-1, 1], so that no linear predictor
exceeds the sum of the absolute coefficients, and units do not matter. They are kept as x (R, q, n): R data sets, q = p + 1,
items along memory. Newton's method is written once, for R data sets; a large one is R = 1, summed block by block.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, reduce
from operator import add
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, ndtr, ndtri, xlogy
from threadpoolctl import ThreadpoolController

from softlabel.separation import Separation, centre_and_scale, column_sums, explain_rank, separation_of
from softlabel.validation import (
    Array,
    ConvergenceWarning,
    SeparationWarning,
    align,
    as_features,
    as_level,
    as_positive,
    as_votes,
    as_whole,
)

CACHE = 1 << 16  # numbers in an array that a core keeps at hand
FEW = 4  # coefficients: with so few, products of features are worth their memory
COLLINEAR = 1e10  # variance inflation factor from which a column counts as a combination of the others
LOST_INFORMATION = 1e12  # trace(H^-1 H_0) above this: the labels say nothing about some direction, and H is rounding error


@dataclass(frozen=True, eq=False)
class LogisticRule:
    """What any fit of a logistic regression can do for new items, whatever its likelihood was.

    Attributes
    ----------
    coef : (p + 1,) ndarray
        Coefficients, intercept first.
    converged : bool
        Whether the iteration reached a maximum of the likelihood.
    n_iter : int
        Number of steps.
    separation : {"none", "quasi", "complete"}
        Whether the features separate the labels, so that no maximum exists.
    log_likelihood : float
        Logarithm of the likelihood at ``coef``.
    n_items : int
        Number of items that have a vote.
    n_without_votes : int
        Number of items that have none: they contribute nothing.
    feature_names : list of str
    """

    coef: Array
    converged: bool
    n_iter: int
    separation: Separation
    log_likelihood: float
    n_items: int
    n_without_votes: int
    feature_names: list[str]

    def linear_predictor(self, X: ArrayLike) -> Array:
        """beta'x (n,) of new items; columns of a DataFrame are found by their names."""
        if isinstance(X, pd.DataFrame) and set(map(str, X.columns)) >= set(self.feature_names):
            X = X.rename(columns=str)[self.feature_names]
        elif isinstance(X, pd.DataFrame) and self.feature_names != [f"x{k + 1}" for k in range(len(self.feature_names))]:
            missing = [name for name in self.feature_names if name not in map(str, X.columns)]
            raise ValueError(f"X has no column {missing[0]!r}, to which the model was fitted")
        X, _ = as_features(X)
        if X.shape[1] != len(self.feature_names):
            raise ValueError(f"X has {X.shape[1]} columns but the model was fitted to {self.feature_names}")
        return self.coef[0] + X @ self.coef[1:]

    def posterior(self, X: ArrayLike) -> Array:
        """Posterior probabilities (n, 2) of new items, column 0 the positive class, each computed without rounding."""
        eta = self.linear_predictor(X)
        return np.column_stack([expit(eta), expit(-eta)])

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Labels (n,) of new items: 1 where the positive class has a posterior probability above one half."""
        return (self.linear_predictor(X) > 0).astype(np.int64)

    def describe(self, *numbers: str) -> str:
        """The fit in a line, after its items and coefficients the numbers given."""
        state = "converged" if self.converged else "NOT converged"
        if self.separation != "none":
            state += f", {self.separation} separation"
        items = f"{self.n_items} items" + (f", {self.n_without_votes} more without votes" if self.n_without_votes else "")
        coefs = ", ".join(f"{n} {c:.4g}" for n, c in zip(["intercept", *self.feature_names], self.coef))
        return f"{type(self).__name__}({'; '.join([items, coefs, *numbers, state])})"


@dataclass(frozen=True, eq=False)
class LogisticFit(LogisticRule):
    """A logistic regression fitted to labels or vote counts; made by :func:`fit_logistic`.

    The attributes of :class:`LogisticRule`; the log-likelihood is sum_j s_j1 log tau_1(y_j) + s_j2 log tau_2(y_j), without
    binomial coefficients, as in the paper.

    Attributes
    ----------
    deviance : float
        Twice the log-likelihood ratio of a model with one probability an item to this one.
    dispersion : float
        Pearson's statistic divided by its degrees of freedom; above 1 for overdispersed votes, nan without any degree.
    """

    deviance: float
    dispersion: float
    _cov: dict[str, Array] = field(repr=False)

    def cov(self, kind: Literal["sandwich", "model"] = "sandwich") -> Array:
        """Covariance (p + 1, p + 1) of the coefficients.

        Parameters
        ----------
        kind : {"sandwich", "model"}
            "model" is the inverse of H, right if all votes are independent draws from tau. "sandwich" is H^-1 G H^-1, where G
            sums the squared scores of the items: right also if the votes on an item are correlated.

        Raises
        ------
        ValueError
            If ``kind`` is neither.

        Notes
        -----
        H and G of Theorem 1 of Ahfock & McLachlan (2021), as sums over the items.
        """
        if not isinstance(kind, str) or kind not in ("sandwich", "model"):
            raise ValueError(f"kind must be 'sandwich' or 'model', got {kind!r}")
        return self._cov[kind].copy()

    def stderr(self, kind: Literal["sandwich", "model"] = "sandwich") -> Array:
        """Standard errors (p + 1,) of the coefficients; ``kind`` as in :meth:`cov`."""
        return np.sqrt(np.maximum(np.diag(self.cov(kind)), 0))  # rounding, where every vote is met exactly

    def summary(self, kind: Literal["sandwich", "model"] = "sandwich", level: float = 0.95) -> pd.DataFrame:
        """Table of coefficients with standard errors, Wald tests and intervals; ``kind`` as in :meth:`cov`."""
        level = as_level(level)
        stderr = self.stderr(kind)
        with np.errstate(divide="ignore", invalid="ignore"):  # no residual at all: a sandwich of zero
            z = self.coef / stderr
        reach = -ndtri((1 - level) / 2) * stderr
        columns = {
            "coef": self.coef,
            "stderr": stderr,
            "z": z,
            "pvalue": 2 * ndtr(-np.abs(z)),
            "lower": self.coef - reach,
            "upper": self.coef + reach,
        }
        return pd.DataFrame(columns, index=pd.Index(["intercept", *self.feature_names], name="feature"))

    def __repr__(self) -> str:
        return self.describe(f"log-likelihood {self.log_likelihood:.6g}")


@dataclass(frozen=True, eq=False)
class BatchFit:
    """Logistic regressions fitted to R data sets; made by :func:`fit_logistic_batch`.

    Attributes
    ----------
    coef : (R, p + 1) ndarray
        Coefficients of each data set, intercept first.
    converged : (R,) ndarray of bool
        False where the iteration did not end, most often because the labels are separated.
    n_iter : (R,) ndarray of int
        Number of Newton steps.
    """

    coef: Array
    converged: NDArray[np.bool_]
    n_iter: np.ndarray

    def __repr__(self) -> str:
        return f"BatchFit({len(self.coef)} data sets, {int(self.converged.sum())} converged; coef {self.coef.shape})"


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
        Features, without a column for the intercept. They may be single precision; sums are in double precision.
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
    Firth (1993) is log det(H) / 2, by which Heinze & Schemper (2002) solve separation.

    Examples
    --------
    >>> fit = fit_logistic([[0.0], [1.0], [2.0], [3.0]], [[1, 6], [3, 4], [3, 4], [6, 1]])
    >>> fit.coef.round(3)
    array([-1.691,  1.003])
    >>> fit.predict([[1.0], [2.0]])
    array([0, 1])
    """
    max_iter, tol, firth = as_whole(max_iter, "max_iter", 1), as_positive(tol, "tol"), as_method(method)
    y_or_counts = align(X, y_or_counts, ("X", "y_or_counts"))
    X, names = as_features(X, keep_float32=True)
    counts = as_votes(y_or_counts, X.shape[:1], positive)
    centre, scale = _centre_and_scale(X)
    data, zero = _Blocks(X, counts, centre, scale), np.zeros((1, len(names) + 1))
    beta, (converged,), (n_iter,), (full_rank,) = newton(data, zero.copy(), max_iter * (10 if firth else 1), tol, firth)
    if not full_rank:
        raise ValueError(explain_rank(X, counts, names))
    if scale.min() < 1e-300:
        k = int(np.argmin(scale))
        raise ValueError(f"X column {k} ({names[k]!r}) varies by less than 1e-300: change its unit")

    # Only data are suspicious that have no maximum of the unpenalised likelihood.
    has_maximum = bool(newton(data, zero, max_iter, tol)[1][0] if firth else converged)
    separation = "none" if has_maximum else separation_of(X, counts)
    if separation != "none" and not firth:
        warnings.warn(
            f"{separation} separation: the features tell the labels apart without error, so the maximum likelihood estimate "
            "does not exist and coef is only where the iteration stopped; use more items, fewer features, or method='firth'",
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
        dispersion=float(pearson / freedom) if freedom > 0 else float("nan"),
        _cov=cov,
    )


def as_method(method: str) -> bool:
    """Whether the method is Firth's."""
    if not isinstance(method, str) or method not in ("mle", "firth"):
        raise ValueError(f"method must be 'mle' or 'firth', got {method!r}")
    return method == "firth"


def _centre_and_scale(X: Array) -> tuple[Array, Array]:
    """Of features (n, p), block by block."""
    total, low, high = zip(*in_threads(lambda rows: column_sums(X[rows].T), blocks(*X.shape)))
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
    max_iter, tol, firth = as_whole(max_iter, "max_iter", 1), as_positive(tol, "tol"), as_method(method)
    X, names = as_features(X, ndim=(3,), keep_float32=True)
    counts = as_votes(y_or_counts, X.shape[:2], positive)

    def fit(sets: slice) -> tuple[Array, ...]:
        features = np.ascontiguousarray(X[sets].transpose(0, 2, 1), dtype=float)
        centre, scale = centre_and_scale(X.shape[1], *column_sums(features))
        x = standardised(features, centre, scale)
        data = _DataSets(x, *split(counts[sets]), products_of_features(x) if x.shape[1] <= FEW else None)
        zero = np.zeros(x.shape[:2])
        beta, *rest = newton(data, zero, max_iter * (10 if firth else 1), tol, firth)
        coef = beta / np.c_[np.ones(len(beta)), scale]
        coef[:, 0] -= (coef[:, 1:] * centre).sum(axis=1)
        return coef, *rest

    parts = in_threads(fit, blocks(len(X), X.shape[1]))
    coef, converged, n_iter, full_rank = (np.concatenate(part) for part in zip(*parts))
    if not full_rank.all():
        r = int(np.argmin(full_rank))
        raise ValueError(f"data set {r}: {explain_rank(X[r], counts[r], names)}")
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
    """R data sets of n items: standardised features x (R, q, n), row 0 the intercept, and votes for each class (R, n)."""

    x: Array
    positive: Array
    negative: Array
    products: Array | None = None  # of each two features, (R, q (q + 1) / 2, n)

    def total(self, statistic: Callable[..., Any], *args: Array) -> Any:
        """A statistic that sums over the items."""
        return statistic(self, *args)

    def keep(self, which: NDArray[np.bool_]) -> "_DataSets":
        products = None if self.products is None else self.products[which]
        return _DataSets(self.x[which], self.positive[which], self.negative[which], products)


@dataclass(frozen=True)
class _Blocks:
    """One data set (n, p) of any size as R = 1, standardised block by block, so that it is never in memory twice."""

    X: Array
    counts: Array
    centre: Array
    scale: Array

    def total(self, statistic: Callable[..., Any], *args: Array) -> Any:
        def of_block(rows: slice) -> Any:
            x = standardised(self.X[rows].T[None], self.centre, self.scale)
            return statistic(_DataSets(x, *split(self.counts[None, rows])), *args)

        return reduce(lambda sums, more: tuple(map(add, sums, more)), in_threads(of_block, blocks(*self.X.shape)))


def newton(data: Any, beta: Array, max_iter: int, tol: float, firth: bool = False) -> tuple[Array, Array, Array, Array]:
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
        else:  # far out the weights vanish and a full step means nothing: it may at most turn the linear predictors round
            newton_step *= np.minimum(1, (5 + np.abs(here).sum(axis=1)) / np.maximum(reach, 5))[:, None]
        # If the log-likelihood now falls steeply along the last step, that step was too long: take half of it back.
        too_long = (gradient * step).sum(axis=1) < -rise / 2
        back_off = np.where(too_long, back_off / 2, 1.0)
        move = np.where(too_long[:, None], -back_off[:, None] * step, newton_step)
        step = np.where(too_long[:, None], step, newton_step)
        rise = np.where(too_long, rise, (gradient * newton_step).sum(axis=1))
        beta[left[moving]] += move[moving]
        n_iter[left[moving]] = iteration

        ends = moving & ~too_long & (reach <= (tol if firth else tol**0.5))
        information = np.einsum("rij,rji->r", H_inverse, H_0[left])
        converged[left[ends]] = firth | (information[ends] < LOST_INFORMATION)
        moving = moving & ~ends
        if not moving.any():
            break
        if moving.mean() < 0.5:  # the others are no longer carried along
            data, left, step, rise, back_off = data.keep(moving), left[moving], step[moving], rise[moving], back_off[moving]
            moving = moving[moving]
    return beta, converged & full_rank, n_iter, full_rank


def score_and_information(data: _DataSets, beta: Array) -> tuple[Array, Array]:
    """Gradient (R, q) of the log-likelihood, and H (R, q, q)."""
    _, residual, weight = residuals_and_weights(data, beta)
    return product(data.x, residual), weighted_products(data, weight)


def residuals_and_weights(data: _DataSets, beta: Array) -> tuple[Array, Array, Array]:
    """eta, s - m tau and m tau (1 - tau) of the items (R, n), without a difference of nearly equal numbers."""
    s, f = data.positive, data.negative
    if not beta.any():
        return np.zeros_like(s), (s - f) / 2, (s + f) / 4
    eta = np.clip((beta[:, None] @ data.x)[:, 0], -700, 700)
    odds = np.exp(eta)
    tau_2 = 1 / (1 + odds)
    tau_1 = np.multiply(odds, tau_2, out=odds)
    residual = s * tau_2
    residual -= f * tau_1
    tau_1 *= tau_2
    tau_1 *= s + f
    return eta, residual, tau_1


def weighted_products(data: _DataSets, weight: Array) -> Array:
    """sum_j weight_j x_j x_j' (R, q, q)."""
    q = data.x.shape[1]
    if data.products is None:
        return (data.x * weight[:, None]) @ data.x.transpose(0, 2, 1)
    H = np.empty((len(weight), q, q))
    i, k = np.triu_indices(q)
    H[:, i, k] = H[:, k, i] = product(data.products, weight)
    return H


def firth_score(data: _DataSets, beta: Array, H_inverse: Array) -> tuple[Array]:
    """Gradient (R, q) of Firth's penalty: the leverage of each item times 1/2 - tau."""
    eta, _, weight = residuals_and_weights(data, beta)
    leverage = weight * (data.x * (H_inverse @ data.x)).sum(axis=1)
    return (product(data.x, -leverage * np.tanh(eta / 2) / 2),)


def fit_statistics(data: _DataSets, beta: Array) -> tuple[Array, ...]:
    """Log-likelihood, that of one probability an item, Pearson's statistic, H, and G, the sum of squared scores."""
    s, f = data.positive, data.negative
    eta = (beta[:, None] @ data.x)[:, 0]
    _, residual, weight = residuals_and_weights(data, beta)
    log_likelihood = (s * log_expit(eta) + f * log_expit(-eta)).sum(axis=1)
    share = s / np.maximum(s + f, 1)
    saturated = (xlogy(s, share) + xlogy(f, 1 - share)).sum(axis=1)
    pearson = np.divide(residual**2, weight, out=np.zeros_like(weight), where=weight > 0).sum(axis=1)
    return log_likelihood, saturated, pearson, weighted_products(data, weight), weighted_products(data, residual**2)


def inverse(H: Array) -> tuple[Array, Array]:
    """H^-1 (R, q, q), and the largest variance inflation factor (R,): 1 for orthogonal columns, beyond bounds for collinear ones."""
    d = 1 / np.sqrt(np.maximum(np.einsum("rii->ri", H), 1e-200))
    # With 1e-14 on a diagonal of ones, a singular H does not fail.
    unit = np.linalg.inv(d[:, :, None] * H * d[:, None] + 1e-14 * np.eye(H.shape[-1]))
    return d[:, :, None] * unit * d[:, None], np.einsum("rii->ri", unit).max(axis=1)


def unexplained(gradient: Array, step: Array, H: Array) -> Array:
    """1 - R^2 (R,) of the least-squares regression of the votes, of which Newton's step from zero is a multiple.

    Divided by it, the slopes are those of Fisher's linear discriminant if the classes have the same number of votes, which
    saves up to four steps. It is at least 1/10, since a discriminant of separated classes has no end.
    """
    total = 4 * H[:, 0, 0] - gradient[:, 0] ** 2 / np.maximum(H[:, 0, 0], 1e-200)
    rest = 4 * H[:, 0, 0] - (gradient * step).sum(axis=1)
    return np.maximum(np.divide(rest, total, out=np.ones_like(rest), where=total > 0), 0.1)


def product(A: Array, v: Array) -> Array:
    """Matrices times vectors, (R, i, j) and (R, j)."""
    return (A @ v[..., None])[..., 0]


def standardised(features: Array, centre: Array, scale: Array) -> Array:
    """x (R, q, n) from features (R, p, n)."""
    R, p, n = features.shape
    x = np.empty((R, p + 1, n))
    x[:, 0] = 1
    np.subtract(features, centre[..., None], out=x[:, 1:])
    x[:, 1:] /= scale[..., None]
    return x


def split(counts: Array) -> tuple[Array, Array]:
    """Votes for each class (R, n), each along memory."""
    return tuple(np.ascontiguousarray(counts[..., k], dtype=float) for k in (0, 1))


def products_of_features(x: Array) -> Array:
    """Each two rows of x multiplied, (R, q (q + 1) / 2, n): then H is one matrix times the weights."""
    i, k = np.triu_indices(x.shape[1])
    out = np.empty((len(x), len(i), x.shape[2]))
    for row in range(len(i)):
        np.multiply(x[:, i[row]], x[:, k[row]], out=out[:, row])
    return out


def way_back(centre: Array, scale: Array) -> Array:
    """Matrix (q, q) from coefficients of standardised features to coefficients of the features themselves."""
    back = np.diag(np.r_[1.0, 1 / scale])
    back[0, 1:] = -centre / scale
    return back


def blocks(n: int, width: int) -> list[slice]:
    """Rows of an array in parts that stay in a core's cache. They do not depend on the machine, nor do sums over them."""
    size = max(1, CACHE // width)
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def in_threads(function: Callable[[Any], Any], parts: Sequence[Any]) -> Iterator[Any]:
    """``function`` of each part in order, on all cores, unless this is a worker's task already."""
    if len(parts) == 1 or inside_worker():
        yield from map(function, parts)
    else:  # threads of linear algebra within these would stand in each other's way
        with _linear_algebra().limit(limits=1, user_api="blas"), ThreadPoolExecutor(os.cpu_count()) as threads:
            yield from threads.map(function, parts)


@cache
def _linear_algebra() -> ThreadpoolController:
    return ThreadpoolController()


def inside_worker() -> bool:
    """Whether this code runs in a worker of joblib or of Dask; where neither is imported, it does not."""
    if "joblib" in sys.modules and sys.modules["joblib"].parallel.get_active_backend()[0].nesting_level:
        return True
    if "distributed" in sys.modules:
        try:
            sys.modules["distributed"].get_worker()
        except ValueError:
            return False
        return True
    return False
