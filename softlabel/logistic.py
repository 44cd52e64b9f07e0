"""Logistic regression on labels or vote counts: one data set, or thousands at once, by one Newton iteration."""

import warnings
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.linalg import lstsq
from scipy.optimize import linprog
from scipy.special import expit, log_expit, xlogy
from scipy.stats import norm

from softlabel._checks import Array, ConvergenceWarning, SeparationWarning, align, as_features, as_level, as_numbers, as_votes, as_whole
from softlabel._newton import information, linear_predictor, newton, residual_and_weight, standardise
from softlabel._parallel import run

CHUNK = 1 << 18  # bytes of features worked on at once, so that a chunk and its work arrays stay in a core's cache


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
    feature_names: list[str]
    _X: Array = field(repr=False)
    _counts: Array = field(repr=False)

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
        if kind not in ("sandwich", "model"):
            raise ValueError(f"kind must be 'sandwich' or 'model', got {kind!r}")
        if self.separation != "none" and not self.converged:
            return np.full((self.coef.size, self.coef.size), np.nan)  # no maximum, no curvature at it
        x, back = standardise(self._X[None])
        eta = linear_predictor(np.linalg.solve(back[0], self.coef)[None], x)
        residual, weight = residual_and_weight(self._counts[None, :, 0], self._counts[None].sum(axis=-1), eta)
        bread = np.linalg.inv(information(x, weight)[0])
        if kind == "sandwich":
            bread = bread @ information(x, residual**2)[0] @ bread
        return back[0] @ bread @ back[0].T

    def stderr(self, kind: Literal["sandwich", "model"] = "sandwich") -> Array:
        """Standard errors (p + 1,) of the coefficients; ``kind`` as in :meth:`cov`."""
        return np.sqrt(np.diag(self.cov(kind)))

    def posterior(self, X: ArrayLike) -> Array:
        """Posterior probabilities (n, 2) of new items, column 0 the positive class, each computed without rounding."""
        eta = self._linear_predictor(X)
        return np.column_stack([expit(eta), expit(-eta)])

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Labels (n,) of new items: 1 where the positive class has a posterior probability above one half."""
        return (self._linear_predictor(X) > 0).astype(np.int64)

    def _linear_predictor(self, X: ArrayLike) -> Array:
        if isinstance(X, pd.DataFrame) and set(map(str, X.columns)) >= set(self.feature_names):
            X = X.rename(columns=str)[self.feature_names]
        elif isinstance(X, pd.DataFrame) and self.feature_names != [f"x{k + 1}" for k in range(len(self.feature_names))]:
            missing = [name for name in self.feature_names if name not in map(str, X.columns)]
            raise ValueError(f"X has no column {missing[0]!r}, to which the model was fitted")
        X, _ = as_features(X)
        if X.shape[1] != len(self.feature_names):
            raise ValueError(f"X has {X.shape[1]} columns but the model was fitted to {self.feature_names}")
        return self.coef[0] + X @ self.coef[1:]

    def summary(self, kind: Literal["sandwich", "model"] = "sandwich", level: float = 0.95) -> pd.DataFrame:
        """Table of coefficients with standard errors, Wald tests and intervals; ``kind`` as in :meth:`cov`."""
        level = as_level(level)
        stderr = self.stderr(kind)
        z = self.coef / stderr
        reach = norm.isf((1 - level) / 2) * stderr
        columns = {
            "coef": self.coef,
            "stderr": stderr,
            "z": z,
            "pvalue": 2 * norm.sf(np.abs(z)),
            "lower": self.coef - reach,
            "upper": self.coef + reach,
        }
        return pd.DataFrame(columns, index=pd.Index(["intercept", *self.feature_names], name="feature"))

    def __repr__(self) -> str:
        state = "converged" if self.converged else "NOT converged"
        if self.separation != "none":
            state += f", {self.separation} separation"
        coefs = ", ".join(f"{n} {c:.4g}" for n, c in zip(["intercept", *self.feature_names], self.coef))
        return f"LogisticFit({self.n_items} items; {coefs}; log-likelihood {self.log_likelihood:.6g}; {state})"


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
    method: Literal["mle", "firth"] = "mle",
    max_iter: int = 25,
    tol: float = 1e-8,
) -> LogisticFit:
    """Fit a logistic regression to labels, or to vote counts as if all votes were independent.

    Parameters
    ----------
    X : (n, p) array_like or DataFrame
        Features, without a column for the intercept.
    y_or_counts : (n,) or (n, 2) array_like
        Labels 0/1, or votes for the positive and the negative class. An item without votes contributes nothing. Pandas
        objects are matched to ``X`` by index.
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
    if method not in ("mle", "firth"):
        raise ValueError(f"method must be 'mle' or 'firth', got {method!r}")
    _check_iteration(max_iter, tol)
    y_or_counts = align(X, y_or_counts, ("X", "y_or_counts"))
    X, names = as_features(X)
    counts = as_votes(y_or_counts, X.shape[:1])
    firth = method == "firth"
    steps = max_iter * (10 if firth else 1)
    coef, converged, n_iter, rank = (
        a[0] for a in newton(X[None], counts[None], np.zeros(len(names) + 1), steps, tol, firth)
    )
    if not rank:
        raise ValueError(_explain_rank(X, counts, names))

    # A programme only for suspicious data: those without a maximum of the unpenalised likelihood.
    if firth:
        _, (has_maximum,), *_ = newton(X[None], counts[None], np.zeros(len(names) + 1), max_iter, tol)
    else:
        has_maximum = converged
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

    s, m = counts[:, 0], counts.sum(axis=1)
    eta = coef[0] + X @ coef[1:]
    log_likelihood = float(s @ log_expit(eta) + (m - s) @ log_expit(-eta))
    best = float((xlogy(counts, counts).sum(axis=1) - xlogy(m, m)).sum())
    residual, weight = residual_and_weight(s, m, eta)
    pearson = float(np.sum(residual**2 / np.where(weight > 0, weight, np.inf)))
    n_items = int((m > 0).sum())
    freedom = n_items - len(coef)
    return LogisticFit(
        coef=coef,
        converged=bool(converged),
        n_iter=int(n_iter),
        separation=separation,
        log_likelihood=log_likelihood,
        deviance=2 * (best - log_likelihood),
        dispersion=pearson / freedom if freedom > 0 else float("nan"),
        n_items=n_items,
        feature_names=names,
        _X=X,
        _counts=counts,
    )


def fit_logistic_batch(
    X: ArrayLike, y_or_counts: ArrayLike, *, start: ArrayLike | None = None, max_iter: int = 25, tol: float = 1e-8
) -> BatchFit:
    """Fit a logistic regression to each of R data sets of the same size, on all cores.

    Parameters
    ----------
    X : (R, n, p) array_like
        Features, without a column for the intercept.
    y_or_counts : (R, n) or (R, n, 2) array_like
        Labels 0/1, or votes for the positive and the negative class.
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
    _check_iteration(max_iter, tol)
    X, names = as_features(X, ndim=(3,))
    counts = as_votes(y_or_counts, X.shape[:2])
    start = np.zeros(len(names) + 1) if start is None else as_numbers(start, "start", (1, 2))
    if start.shape not in ((len(names) + 1,), (len(X), len(names) + 1)):
        raise ValueError(f"start must have shape (p + 1,) or (R, p + 1), here {(len(X), len(names) + 1)}, got {start.shape}")
    start = np.broadcast_to(start, (len(X), len(names) + 1))

    size = max(1, CHUNK // (8 * X[0].size))
    chunks = [slice(i, i + size) for i in range(0, len(X), size)]
    results = run(
        newton, [(X[c], counts[c], start[c], max_iter, tol) for c in chunks], "logistic fits", 1 if len(chunks) < 4 else -1
    )
    coef, converged, n_iter, rank = (np.concatenate(part) for part in zip(*results))
    if not rank.all():
        r = int(np.argmin(rank))
        raise ValueError(f"data set {r}: {_explain_rank(X[r], counts[r], names)}")
    if not converged.all():
        warnings.warn(
            f"{np.sum(~converged)} of {len(X)} fits did not converge (the first is data set {np.argmin(converged)}), most "
            "often because of separation; see .converged, and fit_logistic on one of them for the reason",
            ConvergenceWarning,
            stacklevel=2,
        )
    return BatchFit(coef, converged, n_iter)


def find_separation(X: ArrayLike, y_or_counts: ArrayLike) -> Literal["none", "quasi", "complete"]:
    """Find out whether a linear rule tells the labels apart without error, by linear programming.

    Parameters
    ----------
    X, y_or_counts
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
    Albert & Anderson (1984); the programme is Konis's (2007): maximise the sum of the margins of a rule that is never wrong.

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
    counts = as_votes(y_or_counts, X.shape[:1])
    x = standardise(X[None])[0][0].T
    positive, negative = counts.T > 0
    split = x[positive & negative]
    margins = np.concatenate([x[positive & ~negative], -x[negative & ~positive]])  # of b: margins @ b, never below 0
    if not len(margins):
        return "none"
    undecided = {"A_eq": split, "b_eq": np.zeros(len(split))} if len(split) else {}
    widest = _programme(-margins.sum(axis=0), A_ub=-margins, b_ub=np.zeros(len(margins)), bounds=(-1, 1), **undecided)
    if -widest.fun <= 1e-7 * len(margins):
        return "none"
    if len(split):
        return "quasi"
    strict = _programme(np.zeros(x.shape[1]), A_ub=-margins, b_ub=-np.ones(len(margins)), bounds=(None, None))
    return "complete" if strict.status == 0 else "quasi"


def _programme(objective: Array, **constraints: object):
    """A linear programme that was solved (status 0) or shown to be infeasible (2); anything else is an error."""
    answer = linprog(objective, method="highs", **constraints)
    if answer.status not in (0, 2):
        raise RuntimeError(f"the linear programme for separation was not solved: {answer.message}")
    return answer


def _check_iteration(max_iter: int, tol: float) -> None:
    as_whole(max_iter, "max_iter", 1)
    if not tol > 0:
        raise ValueError(f"tol must be positive, got {tol}")


def _explain_rank(X: Array, counts: Array, names: list[str]) -> str:
    """Say why the features of the items with votes are not of full rank, naming the column."""
    voted = X[counts.sum(axis=1) > 0]
    if not len(voted):
        return "y_or_counts has no votes at all: at least one item must have a vote"
    for k, name in enumerate(names):
        if np.ptp(voted[:, k]) <= 1e-14 * np.abs(voted[:, k]).max():
            return f"X column {k} ({name!r}) is constant over the items with votes: drop it, the intercept is added by itself"
    if len(voted) <= len(names):
        return f"X has {len(names)} columns but only {len(voted)} items with votes: at least {len(names) + 1} are needed"
    x = standardise(voted[None])[0][0].T
    for k in range(1, len(names) + 1):
        weights, *_ = lstsq(x[:, :k], x[:, k])
        if np.abs(x[:, k] - x[:, :k] @ weights).max() < 1e-4:
            others = [names[i - 1] for i in range(1, k) if abs(weights[i]) > 1e-6]
            kind = "the same up to shift and scale as" if len(others) == 1 else "a linear combination of"
            return f"X column {k - 1} ({names[k - 1]!r}) is {kind} {', '.join(map(repr, others))}: drop it"
    return "the columns of X are nearly a linear combination of one another: drop some"
