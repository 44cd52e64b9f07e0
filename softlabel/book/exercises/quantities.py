"""Quantities that several exercises need, each by a route that a solution hardly takes: sums over all outcomes, quadrature."""

from collections.abc import Callable

import numpy as np
from scipy import special, stats

from softlabel.validation import Array
from softlabel.vote_models import dm_logpmf


def votes_pmf(m: int, tau: float, alpha0: float) -> Array:
    """Probabilities of 0 to m positive votes."""
    k = np.arange(m + 1)
    return np.exp(dm_logpmf(np.column_stack([k, m - k]), np.tile([tau, 1 - tau], (m + 1, 1)), alpha0))


def moments(p: Array, values: Array | None = None) -> tuple[float, float]:
    """Mean and variance of a variable that takes these values (0, 1, ...) with probabilities p."""
    x = np.arange(float(len(p))) if values is None else values
    mean = float(p @ x)
    return mean, float(p @ x**2) - mean**2


def variance_of_sum(m: Array | float, alpha0: float) -> Array | float:
    """Of m votes, in units of tau (1 - tau): pair by pair."""
    return m + m * (m - 1) / (1 + alpha0)


def worth(m: Array | float, alpha0: float) -> Array | float:
    """True labels that m votes are worth; m need not be whole."""
    return m * m / variance_of_sum(m, alpha0)


def mean_over_items(delta: float, function: Callable[[Array], Array]) -> float:
    """E function(eta) for two normal classes with equal priors, by the trapezoidal rule: for these it is near exact."""
    y, step = np.linspace(-delta / 2 - 9, delta / 2 + 9, 2001, retstep=True)
    f = (stats.norm.pdf(y, delta / 2) + stats.norm.pdf(y, -delta / 2)) / 2
    return float(f @ function(delta * y) * step)


def weight(eta: Array) -> Array:
    """tau1 tau2, the information of a label about eta."""
    return np.asarray(special.expit(eta) * special.expit(-eta))


def newton(X: Array, y: Array, steps: int, ridge: float = 0.0) -> Array:
    """Plain Newton from zero for a logistic regression; the ridge leaves the intercept alone."""
    x = np.column_stack([np.ones(len(X)), X])
    penalty = np.diag([0.0] + [ridge] * X.shape[1])
    b = np.zeros(x.shape[1])
    for _ in range(steps):
        gradient = x.T @ (y - special.expit(x @ b)) - penalty @ b
        b += np.linalg.solve((x.T * weight(x @ b)) @ x + penalty, gradient)
    return b
