"""Logistic regression on labels or vote counts: one data set, or thousands at once, by one Newton iteration."""

import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr, ndtri

from softlabel.validation import (
    Array,
    ConvergenceWarning,
    SeparationWarning,
    align,
    as_features,
    as_level,
    as_numbers,
    as_positive,
    as_votes,
    as_whole,
)
from softlabel._newton import cholesky, inverse, newton, newton_batch, standardised, statistics, way_back
from softlabel._parallel import over_parts
from softlabel.separation import explain_rank, find_separation


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """A logistic regression fitted to labels or vote counts; made by :func:`fit_logistic`.

    Attributes
    ----------
    coef : (p + 1,) ndarray
        Coefficients, intercept first.
    converged : bool
        Whether the iteration reached the maximum of the likelihood.
    n_iter : int
        Number of Newton steps.
    separation : {"none", "quasi", "complete"}
        Whether the features separate the labels, so that no maximum exists.
    log_likelihood : float
        sum_j s_j1 log tau_1(y_j) + s_j2 log tau_2(y_j): no binomial coefficients, as in the paper.
    deviance : float
        Twice the log-likelihood ratio of a model with one probability an item to this one.
    dispersion : float
        Pearson's statistic divided by its degrees of freedom; above 1 for overdispersed votes, nan without any degree.
    n_items : int
        Number of items that have a vote.
    n_without_votes : int
        Number of items that have none: they contribute nothing.
    feature_names : list of str
    """

    coef: Array
    converged: bool
    n_iter: int
    separation: Literal["none", "quasi", "complete"]
    log_likelihood: float
    deviance: float
    dispersion: float
    n_items: int
    n_without_votes: int
    feature_names: list[str]
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

    def posterior(self, X: ArrayLike) -> Array:
        """Posterior probabilities (n, 2) of new items, column 0 the positive class, each computed without rounding."""
        eta = linear_predictor(self, X)
        return np.column_stack([expit(eta), expit(-eta)])

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Labels (n,) of new items: 1 where the positive class has a posterior probability above one half."""
        return (linear_predictor(self, X) > 0).astype(np.int64)

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
        state = "converged" if self.converged else "NOT converged"
        if self.separation != "none":
            state += f", {self.separation} separation"
        items = f"{self.n_items} items" + (f", {self.n_without_votes} more without votes" if self.n_without_votes else "")
        coefs = ", ".join(f"{n} {c:.4g}" for n, c in zip(["intercept", *self.feature_names], self.coef))
        return f"LogisticFit({items}; {coefs}; log-likelihood {self.log_likelihood:.6g}; {state})"


def linear_predictor(fit: Any, X: ArrayLike) -> Array:
    """beta'x (n,) of new items; columns of a DataFrame are found by their names."""
    if isinstance(X, pd.DataFrame) and set(map(str, X.columns)) >= set(fit.feature_names):
        X = X.rename(columns=str)[fit.feature_names]
    elif isinstance(X, pd.DataFrame) and fit.feature_names != [f"x{k + 1}" for k in range(len(fit.feature_names))]:
        missing = [name for name in fit.feature_names if name not in map(str, X.columns)]
        raise ValueError(f"X has no column {missing[0]!r}, to which the model was fitted")
    X, _ = as_features(X)
    if X.shape[1] != len(fit.feature_names):
        raise ValueError(f"X has {X.shape[1]} columns but the model was fitted to {fit.feature_names}")
    return fit.coef[0] + X @ fit.coef[1:]


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
    converged: np.ndarray
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
    if not isinstance(method, str) or method not in ("mle", "firth"):
        raise ValueError(f"method must be 'mle' or 'firth', got {method!r}")
    max_iter, tol = as_whole(max_iter, "max_iter", 1), as_positive(tol, "tol")
    y_or_counts = align(X, y_or_counts, ("X", "y_or_counts"))
    X, names = as_features(X, keep_float32=True)
    counts = as_votes(y_or_counts, X.shape[:1], positive)
    firth = method == "firth"
    steps = max_iter * (10 if firth else 1)
    data, start = standardised(X, counts), np.zeros(len(names) + 1)
    beta, converged, n_iter, full_rank = newton(data, start, steps, tol, firth)
    if not full_rank:
        raise ValueError(explain_rank(X, counts, names))
    scale = data[3]
    if scale.min() < 1e-300:
        k = int(np.argmin(scale))
        raise ValueError(f"X column {k} ({names[k]!r}) varies by less than 1e-300: change its unit")

    # A programme only for suspicious data: those without a maximum of the unpenalised likelihood.
    has_maximum = newton(data, start, max_iter, tol, False)[1] if firth else converged
    separation = "none" if has_maximum else find_separation(X, counts)
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

    log_likelihood, saturated, pearson, H, G = statistics(data, beta)
    back, bread = way_back(*data[2:]), inverse(*cholesky(H))
    with np.errstate(over="ignore", invalid="ignore"):  # features of 1e-300 have coefficients of infinite variance
        cov = {kind: back @ middle @ back.T for kind, middle in (("model", bread), ("sandwich", bread @ G @ bread))}
    if not (has_maximum or converged):  # no maximum, no curvature at it
        cov = {kind: np.full_like(H, np.nan) for kind in cov}
    n_items = int(np.count_nonzero(counts.any(axis=1)))
    freedom = n_items - len(beta)
    return LogisticFit(
        coef=back @ beta,
        converged=bool(converged),
        n_iter=int(n_iter),
        separation=separation,
        log_likelihood=float(log_likelihood),
        deviance=float(2 * (saturated - log_likelihood)),
        dispersion=float(pearson / freedom) if freedom > 0 else float("nan"),
        n_items=n_items,
        n_without_votes=len(counts) - n_items,
        feature_names=names,
        _cov=cov,
    )


def fit_logistic_batch(
    X: ArrayLike,
    y_or_counts: ArrayLike,
    *,
    positive: object = None,
    start: ArrayLike | None = None,
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
    positive
        As in :func:`fit_logistic`.
    start : (p + 1,) or (R, p + 1) array_like, optional
        Coefficients to start from; zero by default.
    max_iter, tol
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
    X, names = as_features(X, ndim=(3,), keep_float32=True)
    counts = as_votes(y_or_counts, X.shape[:2], positive)
    start = np.zeros(len(names) + 1) if start is None else as_numbers(start, "start", (1, 2))
    if start.shape not in ((len(names) + 1,), (len(X), len(names) + 1)):
        raise ValueError(f"start must have shape (p + 1,) or (R, p + 1), here {(len(X), len(names) + 1)}, got {start.shape}")
    start = np.broadcast_to(start, (len(X), len(names) + 1))

    def fit(*part: Array) -> tuple[Array, ...]:
        # One compiled form for all: arrays in C order that may be written to, copied where they are not.
        return newton_batch(*(np.require(array, requirements="CW") for array in part), max_iter, tol, False)

    results = over_parts(fit, X, counts, start)
    coef, converged, n_iter, full_rank = (np.concatenate(part) for part in zip(*results))
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
