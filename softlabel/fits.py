"""What a fitted logistic regression can do: probabilities of new items, covariances, a summary."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtr, ndtri

from softlabel.profiles import Profile
from softlabel.separation import Separation
from softlabel.validation import Array, as_choice, as_features, as_level, as_pandas

Kind = Literal["sandwich", "model", "profile"]


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
        X = as_pandas(X)
        if isinstance(X, pd.DataFrame) and set(map(str, X.columns)) >= set(self.feature_names):
            X = X.rename(columns=str)[self.feature_names]
        elif isinstance(X, pd.DataFrame) and self.feature_names != [f"x{k + 1}" for k in range(len(self.feature_names))]:
            missing = [name for name in self.feature_names if name not in map(str, X.columns)]
            raise ValueError(f"X has no column {missing[0]!r}, to which the model was fitted")
        X, _ = as_features(X, none=not self.feature_names)
        if X.shape[1] != len(self.feature_names):
            raise ValueError(f"X has {X.shape[1]} columns but the model was fitted to {self.feature_names}")
        return self.coef[:1] + X @ self.coef[1:]

    def posterior(self, X: ArrayLike) -> Array:
        """Posterior probabilities (n, 2) of new items, column 0 the positive class, each computed without rounding."""
        eta = self.linear_predictor(X)
        return np.column_stack([expit(eta), expit(-eta)])

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """1 or 0 (n,) for new items: 1 where the positive class, whatever its label, has a posterior probability above 1/2.

        The words of ``positive=`` do not come back; those of :class:`softlabel.classifier.SoftLabelClassifier` do.
        """
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

    The attributes of :class:`~softlabel.fits.LogisticRule`; the log-likelihood is
    sum_j s_j1 log tau_1(y_j) + s_j2 log tau_2(y_j), without binomial coefficients, as in the paper.

    Attributes
    ----------
    deviance : float
        Twice the log-likelihood ratio of a model with one probability an item to this one.
    dispersion : float
        Pearson's statistic divided by its degrees of freedom; above 1 for overdispersed votes, ``nan`` without any degree.
    """

    deviance: float
    dispersion: float
    _cov: dict[str, Array] = field(repr=False)
    _profile: Profile | None = field(repr=False)

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
        H and G of Theorem 1 of Ahfock & McLachlan (2021), as sums over the items. Of separated labels, which Firth's estimate
        fits all too well, G is far too small, and no covariance describes the coefficients: see :meth:`conf_int`.
        """
        return self._cov[as_choice(kind, "kind", ("sandwich", "model"))].copy()

    def stderr(self, kind: Literal["sandwich", "model"] = "sandwich") -> Array:
        """Standard errors (p + 1,) of the coefficients; ``kind`` as in :meth:`cov`."""
        return np.sqrt(np.maximum(np.diag(self.cov(kind)), 0))  # rounding, where every vote is met exactly

    def conf_int(self, kind: Kind | None = None, level: float = 0.95) -> Array:
        """Confidence intervals (p + 1, 2) of the coefficients.

        Parameters
        ----------
        kind : {"sandwich", "model", "profile"}, optional
            Estimate and standard errors, as in :meth:`cov`; or all values of a coefficient that the penalised likelihood of a
            fit by ``method="firth"``, with the other coefficients at their best, holds possible. That is the default of such
            a fit up to n (p + 1)^3 of two million, beyond which it takes longer than seconds; there "model" is the default if
            the labels are separated, whose intervals are rather too wide. Otherwise it is the sandwich.
        level : float
            Coverage, strictly between 0 and 1.

        Raises
        ------
        ValueError
            If ``kind`` or ``level`` is not valid.

        Notes
        -----
        Heinze & Schemper (2002): twice the fall of the penalised log-likelihood is compared with chi-square. If an item has
        several votes, it is first divided by ``dispersion`` where that is above 1 (McCullagh & Nelder 1989, section 4.5). An
        end is infinite where the likelihood falls so slowly that rounding hides it.

        Examples
        --------
        >>> from softlabel import fit_logistic
        >>> fit = fit_logistic([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 1, 1, 1], method="firth")
        >>> fit.conf_int().round(2)
        array([[-15.63,   0.41],
               [  0.  ,   6.07]])
        """
        level, kind = as_level(level), self._kind(kind)
        if kind == "profile" and self._profile:
            return self._profile.intervals(level)
        reach = -ndtri((1 - level) / 2) * self.stderr(kind)  # type: ignore[arg-type]
        return np.column_stack([self.coef - reach, self.coef + reach])

    def _kind(self, kind: Kind | None) -> Kind:
        if kind is None:
            if self._profile and self._profile.by_default:
                return "profile"
            return "model" if self._profile and self._profile.separated else "sandwich"
        as_choice(kind, "kind", ("sandwich", "model", "profile"))
        if kind == "profile" and not self._profile:
            raise ValueError("kind='profile' is for fits by method='firth' that converged; here take 'sandwich' or 'model'")
        return kind

    def summary(self, kind: Kind | None = None, level: float = 0.95) -> pd.DataFrame:
        """Table of coefficients with standard errors, tests and intervals.

        ``kind`` and ``level`` are as in :meth:`conf_int`. Tests are Wald's; with "profile", z is the signed root of the
        penalised likelihood ratio (of labels, its square is the chi-square of R's logistf), and standard errors are those of
        "model".
        """
        interval, kind = self.conf_int(kind, level), self._kind(kind)
        stderr = self.stderr("model" if kind == "profile" else kind)
        with np.errstate(divide="ignore", invalid="ignore"):  # no residual at all: a sandwich of zero
            z = self._profile.roots() if kind == "profile" and self._profile else self.coef / stderr
        columns = {
            "coef": self.coef,
            "stderr": stderr,
            "z": z,
            "pvalue": 2 * ndtr(-np.abs(z)),
            "lower": interval[:, 0],
            "upper": interval[:, 1],
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
