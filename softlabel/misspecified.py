"""What logistic regression estimates when the mean of its response is not the posterior: between two normal classes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from softlabel.validation import Array, as_numbers
from softlabel.normal import TwoClassNormal


@dataclass(frozen=True, eq=False)
class FitLimit:
    """Where a logistic regression tends to, and how fast; made by :func:`fit_limit`.

    Attributes
    ----------
    coef : (p + 1,) ndarray
        Limit of the coefficients, intercept first.
    cov : (p + 1, p + 1) ndarray
        Limit of n times their covariance, H^-1 G H^-1.
    bias : (p + 1,) ndarray
        Limit of n times (their mean - ``coef``).
    stretch : float
        The limiting slopes are this multiple of the true ones.
    floor : float
        Limit of the excess error: what remains with any number of items. Zero if the rule is consistent.
    rate : float
        Limit of n times (expected excess error - ``floor``).
    truth : float
        The same for true labels, where ``floor`` is zero: ``TwoClassNormal.excess_error()``.
    """

    coef: Array
    cov: Array
    bias: Array
    stretch: float
    floor: float
    rate: float
    truth: float

    @property
    def relative_efficiency(self) -> float:
        """Limit of the excess error from true labels over that from the response; 0 if the rule is not consistent.

        Infinite if the response has no variance and the right mean.
        """
        if self.floor > 0:
            return 0.0
        return self.truth / self.rate if self.rate > 0 else float("inf")

    @property
    def break_even(self) -> float:
        """The n from which on true labels give the smaller expected error, to order 1 / n: 0 if always, inf if never."""
        gain = self.truth - self.rate
        if gain <= 0:
            return 0.0
        return gain / self.floor if self.floor > 0 else float("inf")

    def __repr__(self) -> str:
        coef = ", ".join(f"{round(c, 10) + 0.0:.4g}" for c in self.coef)
        return f"FitLimit(coef {coef}; excess error {self.floor:.4g} + {self.rate:.4g} / n; true labels {self.truth:.4g} / n)"


def fit_limit(
    model: TwoClassNormal, mean: Callable[[Array], Array], variance: Callable[[Array], Array] | None = None
) -> FitLimit:
    """Limit of a logistic regression whose response depends on the features through eta, their true log-odds, only.

    Parameters
    ----------
    model : TwoClassNormal
        Distribution of the features.
    mean : callable
        Mean of the response, a number in [0, 1], at each eta (k,). ``scipy.special.expit`` is the true posterior.
    variance : callable, optional
        Its variance at each eta; by default mean (1 - mean), that of a single label.

    Returns
    -------
    FitLimit

    Raises
    ------
    ValueError
        If a mean is not in [0, 1], a variance not in [0, mean (1 - mean)], or no limit exists: the mean jumps from 0 to 1, or
        on the whole does not rise with eta.

    Notes
    -----
    The limit b solves E x {mean(eta) - expit(b' x)} = 0 (White 1982). As the features have a linear regression on eta, it has
    the direction of the true slopes (Li and Duan 1989), so all integrals are over eta alone. The term of order 1 / n adds
    to the variance the bias of the estimate, which matters where the error rate is not at its minimum.

    Examples
    --------
    >>> from scipy.special import expit
    >>> model = TwoClassNormal.canonical(2)
    >>> round(fit_limit(model, lambda eta: expit(2 * eta)).relative_efficiency, 4)
    2.1319
    >>> fit_limit(model, lambda eta: 0.1 + 0.8 * expit(eta))
    FitLimit(coef 0, 1.127, 0; excess error 0 + 1.115 / n; true labels 0.5382 / n)
    """
    if not isinstance(model, TwoClassNormal):
        raise ValueError(f"model must be a TwoClassNormal, got {type(model).__name__}")
    t, weight, eta = _along_discriminant(model)
    q = _values(mean, "mean", eta)
    if not ((q >= -1e-9) & (q <= 1 + 1e-9)).all():
        raise ValueError("mean must lie in [0, 1] at each eta")
    q = np.clip(q, 0, 1)  # a sum of probabilities may round to just above 1
    v = q * (1 - q) if variance is None else _values(variance, "variance", eta)
    if not ((v >= -1e-9) & (v <= q * (1 - q) + 1e-9)).all():
        raise ValueError("variance must lie in [0, mean (1 - mean)] at each eta")
    b = _solve(t, weight, q)
    cov, bias = _expand(b, t, weight, q, v, model.mean1.size)
    floor, rate = _excess(model, b, cov, bias)
    back = np.linalg.inv(model._from_canonical).T  # b' (1, t) = (back b)' (1, y)
    coef = back[:, :2] @ b
    return FitLimit(coef, back @ cov @ back.T, back @ bias, b[1] / model.delta, floor, rate, model.excess_error())


def _values(function: object, name: str, eta: Array) -> Array:
    """The function at each eta; it may be a constant."""
    if not callable(function):
        raise ValueError(f"{name} must be a function of eta, got {type(function).__name__}")
    values = as_numbers(function(eta.copy()), name, (0, 1))
    if values.shape not in ((), eta.shape):
        raise ValueError(f"{name} must give one number for each eta: for {eta.size} it gave {values.size}")
    return np.broadcast_to(values, eta.shape)


def _density(t: Array) -> Array:
    """Of the standard normal distribution."""
    return np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)


def _along_discriminant(model: TwoClassNormal) -> tuple[Array, Array, Array]:
    """First canonical coordinate t, its probabilities, and eta: the trapezoid rule, exact to rounding if all is smooth."""
    half = model.delta / 2
    t = np.linspace(-half - 10, half + 10, 6001)
    weight = model.prior1 * _density(t - half) + (1 - model.prior1) * _density(t + half)
    return t, weight / weight.sum(), model._prior_logit + model.delta * t


def _solve(t: Array, weight: Array, q: Array) -> Array:
    """Limit (2,) of the coefficients of (1, t): the minimum of a convex function."""
    x = np.stack([np.ones_like(t), t])

    def loss(b):
        return weight @ (np.logaddexp(0, b @ x) - q * (b @ x))

    def gradient(b):
        return x @ (weight * (expit(b @ x) - q))

    def hessian(b):
        return (x * (weight * expit(b @ x) * expit(-b @ x))) @ x.T

    found = minimize(loss, np.zeros(2), jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-7})
    b = found.x
    if not b[1] > 1e-6:
        raise ValueError("mean must rise with eta: on the whole it does not")
    for _ in range(50):  # to rounding
        H = hessian(b)
        if np.abs(b).max() > 1e4 or H[0, 0] < 1e-10:
            break
        step = np.linalg.solve(H, gradient(b))
        b = b - step
        if np.abs(step).max() < 1e-10 * np.abs(b).max():
            return b
    raise ValueError("mean jumps from 0 to 1, or next to no items are of uncertain class: the coefficients have no limit")


def _expand(b: Array, t: Array, weight: Array, q: Array, v: Array, p: int) -> tuple[Array, Array]:
    """Limits of n cov and n bias of the estimate, in canonical coordinates: all but the first are independent of t."""
    x = np.stack([np.ones_like(t), t])
    tau = expit(b @ x)
    w = tau * expit(-b @ x)

    def second_moment(weights):
        M = weights.sum() * np.eye(p + 1)
        M[:2, :2] = (x * weights) @ x.T
        return M

    def third_moment(weights, A):
        """E weights x (x' A x)"""
        form = np.einsum("ik,ij,jk->k", x, A[:2, :2], x) + np.trace(A[2:, 2:])
        return np.append(x @ (weights * form), np.zeros(p - 1))

    inverse = np.linalg.inv(second_moment(weight * w))
    cov = inverse @ second_moment(weight * (v + (q - tau) ** 2)) @ inverse
    # The mean of the score's expansion to second order is zero.
    curved = third_moment(weight * w * (q - tau), inverse) + third_moment(weight * w * (1 - 2 * tau), cov) / 2
    return cov, -inverse @ curved


def _excess(model: TwoClassNormal, b: Array, cov: Array, bias: Array) -> tuple[float, float]:
    """Floor of the excess error, and the limit of n times what lies above it."""
    half, cut, best = model.delta / 2, -b[0] / b[1], -model._prior_logit / model.delta
    f1, f2 = model.prior1 * _density(cut - half), (1 - model.prior1) * _density(cut + half)
    slope, curvature = f1 - f2, (half - cut) * f1 + (half + cut) * f2  # of the error rate as a function of the cut
    gradient = np.array([-1, -cut]) / b[1]
    hessian = np.array([[0, 1], [1, 2 * cut]]) / b[1] ** 2
    moved = gradient @ bias[:2] + np.sum(hessian * cov[:2, :2]) / 2
    tilted = np.trace(cov[2:, 2:]) / b[1] ** 2
    scatter = curvature * (gradient @ cov[:2, :2] @ gradient + tilted) / 2
    if abs(cut - best) < 1e-9:  # slope and floor are below rounding
        return 0.0, float(scatter)
    rule = model.coef + 0.0
    rule[0] += (best - cut) * model.delta
    floor = max(0.0, float(model.error_rate(rule) - model.bayes_error()))  # rounding, where the two cuts nearly agree
    return floor, float(slope * moved + scatter)
