"""What the exercises of harm.yml need beyond a formula: majority votes, harmful noise, votes with a wrong mean."""

from collections.abc import Callable
from math import comb

import numpy as np
from scipy import integrate, optimize, stats
from scipy.special import expit

from softlabel.book.exercises.marking import Names, none_is_infinite
from softlabel.book.exercises.quantities import mean_over_items, weight, worth
from softlabel.normal import TwoClassNormal
from softlabel.validation import Array


def label_worth(delta: float, q: Callable[[Array], Array], label: bool = True) -> float:
    """Worth of a response with odd link: a 0/1 label, or its mean known exactly."""
    c = optimize.brentq(lambda s: mean_over_items(delta, lambda e: e * (q(e) - expit(s * e))), 0.01, 30)
    h = mean_over_items(delta, lambda e: weight(c * e))
    g = mean_over_items(delta, lambda e: (q(e) * (1 - q(e)) if label else 0) + (q(e) - expit(c * e)) ** 2)
    return float((c * h) ** 2 / (mean_over_items(delta, weight) * g))


# A majority vote


def positive(m: int, tie: float = 0.5, t: float = 0.7) -> float:
    p = [comb(m, s) * t**s * (1 - t) ** (m - s) for s in range(m + 1)]
    return sum(p[s] for s in range(m + 1) if 2 * s > m) + (tie * p[m // 2] if m % 2 == 0 else 0)


def ex_majority_code(m: int, delta: float, label: bool = True) -> float:
    return label_worth(delta, lambda eta: np.asarray(stats.binom.sf(m // 2, m, expit(eta))), label)


def ex_majority_further() -> Names:
    w0 = mean_over_items(2, weight)
    stay = mean_over_items(2, lambda e: 1 - 2 * weight(e))
    drop = 4 * mean_over_items(2, lambda e: weight(e) ** 2 / (1 - 2 * weight(e))) / w0
    sharp = 4 * mean_over_items(2, lambda e: weight(2 * e)) / w0
    return locals()


# Harmful noise


def excess(cut: float) -> float:  # by integration of what is lost between the cut and 0
    lost = integrate.quad(lambda y: stats.norm.pdf(y, 1) - stats.norm.pdf(y, -1), 0, cut, epsabs=1e-13)[0]
    return float(lost) / 2


def ex_harm_code() -> Names:
    def right(s: float, alpha0: float, power: int = 2, none: float = np.inf) -> float:
        one = s**power * mean_over_items(2, lambda e: weight(s * e)) / mean_over_items(2, weight)
        m = np.arange(1.0, 400.0)
        enough = m[np.asarray(m if np.isinf(alpha0) else worth(m, alpha0)) * one >= 1]
        return float(enough[0]) if len(enough) else none

    return {"right": right, "read": none_is_infinite}


def ex_harm_further() -> Names:
    def q(eta: Array, g: float = 1 / 5) -> Array:
        return np.asarray(g / 2 + (1 - g) * expit(eta))

    ratio = mean_over_items(2, lambda e: weight(e) ** 2 / (q(e) * (1 - q(e)))) / mean_over_items(2, weight)
    logistic, known = label_worth(2, q), (4 / 5) ** 2 * ratio
    flips = label_worth(2, lambda e: q(e, 2 / 5))
    return locals()


# A wrong mean


def curved(lean: float) -> float:
    return float(TwoClassNormal.canonical(2).error_curvature()[0, 0] * lean**2)


def ex_real_code(n: float, c: float, m: int, alpha0: float) -> float:
    """Mean error rate of normal coefficients, by a product rule of Gauss and Hermite."""
    w0, w1, w2 = (mean_over_items(2, lambda eta, k=k: weight(eta + c) * (eta / 2) ** k) for k in range(3))  # type: ignore[misc]
    are = m if np.isinf(alpha0) else worth(m, alpha0)
    root = np.linalg.cholesky(np.linalg.inv([[w0, w1, 0], [w1, w2, 0], [0, 0, w0]]) / are / n)
    node, mass = np.polynomial.hermite_e.hermegauss(30)
    nodes = np.stack(np.meshgrid(node, node, node, indexing="ij"), axis=-1).reshape(-1, 3)
    masses = np.einsum("i,j,k->ijk", mass, mass, mass).ravel()
    return float(TwoClassNormal.canonical(2).error_rate([c, 2, 0] + nodes @ root.T) @ masses / masses.sum())


def ex_real_further() -> Names:
    model = TwoClassNormal.canonical(2)

    def both(number: int) -> tuple[float, float]:
        aim = model.bayes_error() + model.excess_error() / number
        tilt = optimize.brentq(lambda c: model.error_rate([0, 2, c]) - aim, 0, 2)
        lean = optimize.brentq(lambda c: model.error_rate([c, 2, 0]) - aim, 0, 2)
        return float(tilt), float(lean)

    return locals()
