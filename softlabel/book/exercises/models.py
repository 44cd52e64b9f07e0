"""What the exercises of models.yml need beyond a formula: more classes, unequal numbers of votes, the joint likelihood."""

from collections.abc import Callable

import numpy as np
from scipy import optimize, special, stats

from softlabel.book.exercises.marking import Names
from softlabel.book.exercises.quantities import mean_over_items, variance_of_sum, weight, worth
from softlabel.validation import Array

# More classes


def ex_classes_hand(tau1: float, taug: float, m: int, alpha0: float) -> float:
    """Delta method on log(mean S_1 / mean S_g)."""
    cov = np.array([[tau1 * (1 - tau1), -tau1 * taug], [-tau1 * taug, taug * (1 - taug)]])
    slope = np.array([1 / tau1, -1 / taug])
    return float(slope @ cov @ slope / worth(m, alpha0))


def ex_classes_code() -> Names:
    means = np.array([[1.2, 0.2], [-0.8, 1.0], [0.0, -1.0]])
    prior = np.array([0.3, 0.3, 0.4])
    axis = np.linspace(-7, 7, 281)
    x = np.array([(1.0, u, v) for u in axis for v in axis])
    joint = np.exp(-((x[:, None, 1:] - means) ** 2).sum(axis=2) / 2) / (2 * np.pi) * prior
    f = joint.sum(axis=1) * (axis[1] - axis[0]) ** 2
    t = joint / joint.sum(axis=1, keepdims=True)

    def information(weight: Array) -> Array:
        return np.asarray((x.T * (f * weight)) @ x)

    def first(info: Array) -> Array:
        return np.diag(np.linalg.inv(info))[:3]

    blocks = [[information(t[:, i] * ((i == k) - t[:, k])) for k in range(2)] for i in range(2)]
    two = information(t[:, 0] * t[:, 2] / (t[:, 0] + t[:, 2]))
    full, pair = first(np.block(blocks)), first(two)
    share = t[:, 0] / (t[:, 0] + t[:, 2])
    return locals()


def ex_classes_further(tau1: float, alpha0: float) -> Array:
    """The Betas that have the means and variances of the Dirichlet's shares."""
    rest = alpha0 * (1 - tau1)
    first = tau1 * (1 - tau1) / stats.beta(alpha0 * tau1, rest).var() - 1
    second = 0.25 / stats.beta(rest / 2, rest / 2).var() - 1
    return np.array([first, second])


# Unequal numbers of votes


def counted_once(m: Array, prob: Array, alpha0: float) -> float:
    """Worth of an item in a fit in which each vote counts once; 0 if there is never a vote."""
    return float((prob @ m) ** 2 / (prob @ variance_of_sum(m, alpha0))) if prob @ m > 0 else 0.0


def best_weights(m: Array, prob: Array, alpha0: float) -> float:
    return float(prob @ (m * (1 + alpha0) / (m + alpha0)))


def ex_unequal_hand(lam: float, alpha0: float, of: Callable[[Array, Array, float], float] = counted_once) -> float:
    m = np.arange(200.0)
    return of(m, stats.poisson.pmf(m, lam), alpha0)


def keep(m: Array, c: int) -> Array:
    return np.minimum(m, c)


def leave_out(m: Array, c: int) -> Array:
    return np.where(m > c, 0, m)


def ex_unequal_code(
    m: Array,
    prob: Array,
    alpha0: float,
    cap: Callable[[Array, int], Array] = keep,
    of: Callable[[Array, Array, float], float] = counted_once,
) -> Array:
    values = [round(of(cap(m, c), prob, alpha0), 12) for c in range(1, m.max() + 1)]
    return np.array([1 + values.index(max(values)), max(values)])


def after(tau: float, alpha0: float, third: float | None = None) -> float:
    third = (1 + alpha0 * tau) / (2 + alpha0) if third is None else third
    return 2 * alpha0 * tau * (1 - tau) / (1 + alpha0) * (third - tau)


def ex_unequal_further(tau: float, alpha0: float) -> float:  # over p ~ Beta, by quadrature in the quantile
    u, w = special.roots_jacobi(40, alpha0 * (1 - tau) - 1, alpha0 * tau - 1)
    p, w = (u + 1) / 2, w / w.sum()
    split = 2 * p * (1 - p)
    return float(w @ (2 * p + split * p - (2 + split) * tau))


# The joint likelihood


def joint_information(eta: Array, m: int, alpha0: float, h: float = 1e-4) -> Array:
    """Mean square of the derivative of the log-probability by eta, over all counts: by log-gamma functions and differences."""
    s = np.arange(m + 1)[:, None]

    def logpmf(eta: Array) -> Array:
        a, b = alpha0 * special.expit(eta), alpha0 * special.expit(-eta)
        return np.asarray(np.log(special.comb(m, s)) + special.betaln(a + s, b + m - s) - special.betaln(a, b))

    slope = (logpmf(eta + h) - logpmf(eta - h)) / (2 * h)
    return np.asarray((np.exp(logpmf(eta)) * slope**2).sum(axis=0))


def ex_joint_hand(tau: float, alpha0: float) -> float:
    eta = special.logit(np.array([tau]))
    return float(worth(2, alpha0) * weight(eta)[0] / joint_information(eta, 2, alpha0)[0])


def ex_joint_code() -> Names:
    def efficiency(alpha0: float, power: int) -> float:
        votes = mean_over_items(2, lambda eta: eta**power * worth(7, alpha0) * weight(eta))
        return votes / mean_over_items(2, lambda eta: eta**power * joint_information(eta, 7, alpha0))

    def lowest(power: int) -> tuple[float, float]:
        found = optimize.minimize_scalar(
            lambda log: efficiency(np.exp(log), power), bounds=(-2, 3), method="bounded", options={"xatol": 1e-4}
        )
        return float(np.exp(found.x)), float(found.fun)

    alpha0, least = lowest(0)
    return locals()


def ex_joint_further(tau: float, alpha0: float) -> float:
    """By the variance of logit P, by quadrature."""
    z = np.linspace(-60 / (alpha0 * min(tau, 1 - tau)), 60 / (alpha0 * min(tau, 1 - tau)), 20_001)
    p = np.exp(alpha0 * tau * special.log_expit(z) + alpha0 * (1 - tau) * special.log_expit(-z))
    p /= p.sum()
    return float((1 + alpha0) / (alpha0**2 * tau * (1 - tau) * (p @ (z - p @ z) ** 2)))
