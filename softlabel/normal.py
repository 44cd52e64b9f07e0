"""Two normal classes with a common covariance: everything about them in closed form or by one-dimensional quadrature."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr

from softlabel.validation import Array, as_features, as_numbers, as_parameter, as_rng, as_whole


@dataclass(frozen=True, eq=False)
class TwoClassNormal:
    """Two normal classes with means ``mean1``, ``mean2``, common covariance ``cov`` and prior ``prior1`` of class 1.

    Class 1 is the positive class, label 1. The posterior is then exactly a logistic regression.

    Parameters
    ----------
    mean1, mean2 : (p,) array_like
        Means of the positive and the negative class; they must differ.
    cov : (p, p) array_like
        Covariance of both classes, symmetric positive definite.
    prior1 : float
        Probability of the positive class, strictly between 0 and 1.

    Raises
    ------
    ValueError
        If shapes differ, the means are equal, ``cov`` is not symmetric positive definite, or the prior is not in (0, 1).

    Notes
    -----
    Section 4 of Ahfock & McLachlan (2021); Efron (1975).

    Examples
    --------
    >>> pair = TwoClassNormal.canonical(delta=2.0)
    >>> pair.coef
    array([0., 2., 0.])
    >>> round(pair.bayes_error(), 4)
    0.1587
    >>> round(pair.excess_error(), 6)
    0.538192
    """

    mean1: Array
    mean2: Array
    cov: Array
    prior1: float = 0.5

    def __post_init__(self) -> None:
        mean1, mean2 = as_numbers(self.mean1, "mean1", (1,)), as_numbers(self.mean2, "mean2", (1,))
        cov = as_numbers(self.cov, "cov", (2,))
        if mean1.shape != mean2.shape or cov.shape != (mean1.size, mean1.size):
            raise ValueError(
                f"mean1, mean2 and cov must have shapes (p,), (p,) and (p, p), got {mean1.shape}, {mean2.shape}, {cov.shape}"
            )
        if np.array_equal(mean1, mean2):
            raise ValueError("mean1 and mean2 are equal: the features say nothing about the class")
        if not np.allclose(cov, cov.T, rtol=1e-12, atol=0):
            raise ValueError("cov must be symmetric")
        prior1 = float(as_numbers(self.prior1, "prior1", (0,)))
        if not 0 < prior1 < 1:
            raise ValueError(f"prior1 must lie strictly between 0 and 1, got {prior1:g}")
        for name, value in {"mean1": mean1, "mean2": mean2, "cov": cov, "prior1": prior1}.items():
            object.__setattr__(self, name, value)
        with np.errstate(over="ignore", invalid="ignore"):
            delta = self.delta  # raises if cov is not positive definite
        if not 1e-100 < delta < 75:
            raise ValueError(
                f"mean1 and mean2 are delta = {delta:g} standard deviations apart: probabilities are floats from 1e-100 to 75"
            )

    @classmethod
    def canonical(cls, delta: float, p: int = 2, prior1: float = 0.5) -> "TwoClassNormal":
        """Means (delta / 2, 0, ..., 0) and (-delta / 2, 0, ..., 0), covariance the identity: Section 4 of the paper."""
        delta = float(as_numbers(delta, "delta", (0,)))
        if delta <= 0:
            raise ValueError(f"delta, the distance between the means, must be positive, got {delta:g}")
        p = as_whole(p, "p, the number of features,", 1)
        mean = np.zeros(p)
        mean[0] = delta / 2
        return cls(mean, -mean, np.eye(p), prior1)

    @cached_property
    def _root(self) -> Array:
        """Lower Cholesky factor of the covariance."""
        try:
            return np.asarray(np.linalg.cholesky(self.cov), float)
        except np.linalg.LinAlgError:
            raise ValueError("cov must be positive definite") from None

    @cached_property
    def _apart(self) -> Array:
        """Difference of the means of uncorrelated features of unit variance."""
        return np.asarray(np.linalg.solve(self._root, self.mean1 - self.mean2), float)

    @cached_property
    def delta(self) -> float:
        """Mahalanobis distance between the classes."""
        return float(np.linalg.norm(self._apart))

    @cached_property
    def coef(self) -> Array:
        """Coefficients (p + 1,) of the posterior, intercept first: logit tau_1(y) = coef[0] + coef[1:] @ y."""
        slope = np.linalg.solve(self._root.T, self._apart)
        middle = (self.mean1 + self.mean2) / 2
        return np.concatenate([[self.prior_logit - middle @ slope], slope])

    @property
    def prior_logit(self) -> float:
        """Log-odds of the positive class before any feature is seen."""
        return float(np.log(self.prior1) - np.log1p(-self.prior1))

    def sample(
        self, n: int, rng: np.random.Generator | int | None = None, size: int | None = None
    ) -> tuple[Array, np.ndarray]:
        """Draw n items with their ground-truth labels.

        Parameters
        ----------
        n : int
            Number of items.
        rng : Generator, int or None
            Source of randomness.
        size : int, optional
            Number of independent data sets; adds a leading axis to both results.

        Returns
        -------
        Y : (n, p) or (size, n, p) ndarray
            Features.
        z : (n,) or (size, n) ndarray of int
            Labels, 1 for the positive class.
        """
        n = as_whole(n, "n, the number of items,", 1)
        shape = (n,) if size is None else (as_whole(size, "size, the number of data sets,", 0), n)
        rng = as_rng(rng)
        z = (rng.random(shape) < self.prior1).astype(np.int64)
        Y = rng.standard_normal((*shape, self.mean1.size)) @ self._root.T
        Y += self.mean2
        Y += z[..., None] * (self.mean1 - self.mean2)
        return Y, z

    def posterior(self, Y: ArrayLike) -> Array:
        """Posterior probabilities (..., 2) of the classes, column 0 the positive class, each computed without rounding."""
        eta = self._linear_predictor(Y)
        return np.stack([expit(eta), expit(-eta)], axis=-1)

    def _linear_predictor(self, Y: ArrayLike) -> Array:
        Y, _ = as_features(Y, "Y", (2, 3))
        if Y.shape[-1] != self.mean1.size:
            raise ValueError(f"Y has {Y.shape[-1]} features but the model has {self.mean1.size}")
        return self.coef[:1] + Y @ self.coef[1:]

    def error_rate(self, coef: ArrayLike) -> Array | float:
        """Exact probability that the rule "positive if coef[0] + coef[1:] @ y > 0" errs on a new item.

        Parameters
        ----------
        coef : (..., p + 1) array_like
            Coefficients of one rule or of many. With all slopes zero the rule always gives the same answer.

        Returns
        -------
        float or ndarray (...,)

        Notes
        -----
        err(coef; beta) of Section 3 of Ahfock & McLachlan (2021): a weighted sum of two normal probabilities.
        """
        coef = as_parameter(coef, "coef", scalar=False)
        if coef.ndim == 0 or coef.shape[-1] != self.mean1.size + 1:
            raise ValueError(f"coef must have {self.mean1.size + 1} entries in its last axis, got shape {coef.shape}")
        if not np.isfinite(coef).all():
            raise ValueError(f"coef must be finite, but the entry at {np.argwhere(~np.isfinite(coef))[0].tolist()} is not")
        length = np.abs(coef).max(axis=-1, keepdims=True)
        coef = coef / np.where(length > 0, length, 1)  # the same rule, and its squares neither underflow nor overflow
        spread = np.linalg.norm(coef[..., 1:] @ self._root, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):  # without slopes the rule depends on the intercept's sign
            z1 = (coef[..., 0] + coef[..., 1:] @ self.mean1) / spread
            z2 = (coef[..., 0] + coef[..., 1:] @ self.mean2) / spread
        z1, z2 = (np.where(np.isnan(z), -np.inf, z) for z in (z1, z2))  # all coefficients zero: never positive
        error = self.prior1 * ndtr(-z1) + (1 - self.prior1) * ndtr(z2)
        return error if error.ndim else float(error)

    def bayes_error(self) -> float:
        """Error rate of the best rule, Phi(-delta / 2) for equal priors."""
        return float(self.error_rate(self.coef))

    @cached_property
    def from_canonical(self) -> Array:
        """B with (1, y) = B (1, t), where t has identity covariance and class means (+-delta / 2, 0, ..., 0)."""
        direction = self._apart / self.delta
        # The first column of an orthogonal matrix completed from the direction of the discriminant.
        basis, _ = np.linalg.qr(np.column_stack([direction, np.eye(direction.size)]))
        basis[:, 0] = direction
        B = np.zeros((direction.size + 1, direction.size + 1))
        B[0, 0] = 1
        B[1:, 0] = (self.mean1 + self.mean2) / 2
        B[1:, 1:] = self._root @ basis
        return B

    def fisher_information(self) -> Array:
        """Fisher information (p + 1, p + 1) of one item with its ground-truth label, by quadrature.

        Notes
        -----
        I_LR = E[tau_1 (1 - tau_1) x x'] with x = (1, y). Along the discriminant direction t the integrand is
        prior1 phi(t - delta/2) tau_2(t) times 1, t, t^2; all other directions are standard normal and independent of it.
        """
        from scipy.integrate import quad_vec  # takes longer to import than the rest of the package

        half = self.delta / 2

        def moments(t: float) -> Array:
            density = np.exp(-((t - half) ** 2) / 2) / np.sqrt(2 * np.pi)
            weight = self.prior1 * density * expit(-(self.prior_logit + self.delta * t))
            moment: Array = weight * np.array([1, t, t * t])
            return moment

        (w0, w1, w2), _ = quad_vec(
            moments, -half - 12, half + 12, epsabs=0, epsrel=1e-10, points=[-self.prior_logit / self.delta]
        )
        information: Array = w0 * np.eye(self.mean1.size + 1)
        information[:2, :2] = [[w0, w1], [w1, w2]]
        return self.from_canonical @ information @ self.from_canonical.T

    def error_curvature(self) -> Array:
        """Half the second derivative J (p + 1, p + 1) of the error rate at the best rule, in closed form.

        Notes
        -----
        J of Theorem 2 of Ahfock & McLachlan (2021). Near the boundary a rule with coefficients beta + d errs more by
        (1/4) f(0) E[(d' x)^2 | eta = 0], where f is the density of eta = beta' x: hence J = f(0) / 4 E[x x' | eta = 0].
        J beta = 0, since a rule does not change when its coefficients are multiplied by a positive number.
        """
        cut = -self.prior_logit / self.delta
        density: float = (
            self.prior1 * np.exp(-((cut - self.delta / 2) ** 2) / 2)
            + (1 - self.prior1) * np.exp(-((cut + self.delta / 2) ** 2) / 2)
        ) / (np.sqrt(2 * np.pi) * self.delta)
        second_moment = np.eye(self.mean1.size + 1)
        second_moment[:2, :2] = [[1, cut], [cut, cut * cut]]
        return density / 4 * self.from_canonical @ second_moment @ self.from_canonical.T

    def excess_error(self) -> float:
        """Limit of n times (expected error rate - Bayes error) of logistic regression on n true labels: trace(J I^-1)."""
        return float(np.trace(np.linalg.solve(self.fisher_information(), self.error_curvature())))
