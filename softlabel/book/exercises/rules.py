"""What the exercises of rules.yml need beyond a formula: chapters 5 to 8, and the rule that knows the classes are normal."""

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from scipy import optimize, special, stats

from softlabel import datasets
from softlabel.book import standin
from softlabel.book.exercises.marking import Names, Unfit, floats, none_is_infinite, numbers
from softlabel.book.exercises.quantities import mean_over_items, newton, votes_pmf, weight
from softlabel.experiments import tumours
from softlabel.logistic import fit_logistic
from softlabel.normal import TwoClassNormal
from softlabel.separation import find_separation
from softlabel.validation import Array
from softlabel.vote_models import dm_logpmf


def ex_05_hand() -> Names:
    def phi(eta: Array) -> Array:
        return 1 + 9 * (4 * weight(eta)) ** 2

    def moment(power: int, inflated: bool) -> float:  # of eta; the feature is eta / 2
        return mean_over_items(2, lambda eta: weight(eta) * (phi(eta) if inflated else 1) * (eta / 2) ** power)

    def middle(inflated: bool) -> Array:  # of x = (1, y, y2), where y2 is independent with variance 1
        return np.diag([moment(0, inflated), moment(2, inflated), moment(0, inflated)])

    J, bread = TwoClassNormal.canonical(2).error_curvature(), np.linalg.inv(middle(False))
    votes = bread @ middle(True) @ bread / 10
    rule, slope = np.trace(J @ bread) / np.trace(J @ votes), bread[1, 1] / votes[1, 1]
    plain = mean_over_items(2, phi)
    inverse = mean_over_items(2, lambda eta: weight(eta) / phi(eta)) / moment(0, False)
    return locals()


def ex_05_code(delta: float, prior1: float, weighted: str = "both") -> float:
    model = TwoClassNormal.canonical(delta, 2, prior1)
    J, info = model.error_curvature(), model.fisher_information()
    weights = np.linalg.eigvals(J @ (info if weighted == "upside down" else np.linalg.inv(info))).real
    first, second = sorted(weights)[1:] / np.sum(weights)
    z, step = np.linspace(-12, 12, 4801, retstep=True)

    def above(c: float) -> float:
        return float(stats.norm.pdf(z) @ stats.chi2.sf(np.maximum(c - first * z**2, 0) / second, 1) * step)

    return float(optimize.brentq(lambda c: above(c) - 1 / 2, 0, 1))


def ex_05_further(n: int, m: int, tie: float = 0.5, cost: float = 1 / 5, share: int = 2) -> float:
    votes = m * n // share
    positive = np.arange(votes + 1)
    p = stats.binom.pmf(positive, votes, 3 / 5)
    return float(cost * (p[2 * positive < votes].sum() + tie * p[2 * positive == votes].sum()))


def ex_06_hand() -> Names:
    chi2 = stats.chi2(2)
    return {"chi2": chi2, "c": chi2.std() / chi2.mean() / np.sqrt(1000)}


def ex_06_code() -> Names:
    limit = 5 * 11 / 15

    def se(p: int = 6, runs: int = 2000) -> float:  # of a ratio of two chi-squared means
        return float(limit * np.sqrt(2 * stats.chi2(p).var() / runs) / p)

    def measure(answer: object) -> Array:
        re, error, z = numbers(range(3))(answer)
        distance = abs(re - limit)
        rounded = abs(abs(z) * error - distance) < 0.006 + 0.02 * distance  # three digits of each
        return np.array([re, error, 1 if rounded else abs(z) * error / max(distance, 1e-9)])

    return locals()


def ex_06_further() -> Names:
    deltas, cells, runs = 4, 12, 1000
    shared, separate = deltas * runs * (cells + 1), deltas * runs * cells * 2
    factor = float(np.sqrt(4 / 2))  # four means vary, not two
    return locals()


def ex_07_hand(m: int, tau1: float, alpha0: float) -> float:
    k = np.arange(m + 1)
    score = special.comb(k, 2) / tau1 + special.comb(m - k, 2) / (1 - tau1) - comb(m, 2)
    return float(votes_pmf(m, tau1, alpha0) @ score)


def ex_07_code() -> Names:
    data: Any
    try:
        data = datasets.load_gastroenterology()
    except datasets.DataFileError:
        data = standin.gastroenterology_stand_in()
    X = data.X[standin.GASTRO_FEATURES]
    X = (X - X.mean()) / X.std()
    labels = data.votes.pivot(index="item", columns="annotator", values="label").loc[X.index] == "resection"
    groups = [np.column_stack([k := part.sum(axis=1), part.shape[1] - k]) for part in (labels.iloc[:, :3], labels.iloc[:, 3:])]

    def alpha0(counts: Array, tau: Array) -> float:
        found = optimize.minimize_scalar(
            lambda log: -dm_logpmf(counts, tau, np.exp(log)).sum(), bounds=(-4, 12), method="bounded", options={"xatol": 1e-8}
        )
        return float(np.exp(found.x))

    def both(tau: Array) -> list[float]:
        return [alpha0(counts, tau) for counts in groups]

    votes = fit_logistic(X, data.counts).posterior(X)
    truth = fit_logistic(X, data.y).posterior(X)
    own = [alpha0(counts, fit_logistic(X, counts).posterior(X)) for counts in groups]
    return locals()


def two_arrays(answer: object) -> tuple[Array, Array]:
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise Unfit("There are not two arrays.")
    return floats(answer[0]), floats(answer[1])


def ex_07_further() -> Names:
    def measure(answer: object) -> Array:
        counts, tau = two_arrays(answer)
        tau = tau.ravel()
        if counts.ndim != 2 or counts.shape[1] != 2 or tau.shape != (len(counts),):
            raise Unfit(f"The shapes are {counts.shape} and {tau.shape}.")
        if not ((tau > 0) & (tau < 1)).all() or not (counts >= 0).all() or not (counts.sum(axis=1) > 0).all():
            raise Unfit("Posteriors lie between 0 and 1, and each item needs votes that are not negative.")
        omega = np.geomspace(1e-5, 1e3, 4001)
        slope = np.zeros_like(omega)
        for s, t in zip(counts, tau):
            for sign, v, p in ((-1, s.sum(), 1), (1, s[0], t), (1, s[1], 1 - t)):
                k = np.arange(1, v)[:, None]
                slope += sign * (k / (p + k * omega)).sum(axis=0)
        if np.abs(slope).max() < 1e-9:
            raise Unfit("Single votes say nothing about alpha0.")
        changes = np.count_nonzero(np.diff(np.sign(slope)))
        return np.array([float(changes > 1), float(changes == 1), float(changes == 0 and slope[0] < 0)])

    return locals()


def ex_08_hand() -> Names:
    def measure(answer: object) -> Array:
        X, counts = two_arrays(answer)
        if X.ndim != 2 or X.shape[1] != 2 or counts.shape != X.shape:
            raise Unfit(f"The shapes are {X.shape} and {counts.shape}.")
        try:
            kind = find_separation(X, counts)
        except ValueError as error:
            raise Unfit(f"{error}.") from None
        rank = np.linalg.matrix_rank(np.column_stack([np.ones(len(X)), X]))
        return np.array([["none", "quasi", "complete"].index(kind), 3 - rank, len(X)], dtype=float)

    corners, line = np.array([[0.0, 0.0], [1, 0], [0, 1]]), np.array([[0.0, 0.0], [1, 1], [2, 2]])
    split, pure = np.ones((3, 2)), np.array([[2, 0], [0, 2], [2, 0]])
    square = np.array([[0.0, 0.0], [1, 1], [0, 1], [1, 0]])
    return locals()


def ex_08_code() -> Names:
    X, y = tumours()
    rng = np.random.default_rng(52)
    sets = [rng.permutation(len(X))[:50] for _ in range(200)]

    def apart(x: Array, sign: Array) -> bool:  # by a linear program: is there a b with sign * (x b) >= 1?
        rows = -sign[:, None] * np.column_stack([np.ones(len(x)), x])
        found = optimize.linprog(np.zeros(rows.shape[1]), rows, -np.ones(len(x)), bounds=(None, None))
        return bool(found.status == 0)

    shares = [float(np.mean([apart(X[s, :k], 2 * y[s] - 1) for s in sets])) for k in (4, 6, 10)]
    return locals()


def ex_08_further() -> Names:
    X, y = tumours()
    rng = np.random.default_rng(50)
    splits = [np.split(rng.permutation(len(X)), [50]) for _ in range(100)]
    bayes = (fit_logistic(X, y).predict(X) != y).mean()

    def error(strength: float) -> float:
        wrong = []
        for train, test in splits:
            b = newton(X[train], y[train], 12, strength)
            wrong.append(((b[0] + X[test] @ b[1:] > 0) != y[test]).mean())
        return float(np.mean(wrong))

    tuned = {strength: error(strength) for strength in np.geomspace(0.1, 100, 7)}
    best = min(tuned.values())

    def measure(answer: object) -> Array:
        truth, votes, re = numbers(range(3))(answer)
        return np.array([truth, float(bayes < votes < truth), re * (votes - bayes) / (truth - bayes)])

    def excess(votes: float) -> float:
        return float((best - bayes) / (votes - bayes))

    return locals()


def ex_limits_code() -> Names:
    def right(loss: float, alpha0: float, none: float = np.inf) -> float:
        if np.isinf(alpha0):
            return float(np.ceil(1 / loss))
        a, least = Fraction(alpha0), Fraction(loss)
        return next((m for m in range(1, 2000) if m * (1 + a) * least >= m + a), none)

    def solved(loss: float, alpha0: float) -> float:
        """The real number of labellers; infinite where none are enough."""
        if np.isinf(alpha0):
            return 1 / loss
        excess = (1 + alpha0) * loss - 1
        return alpha0 / excess if excess > 0 else np.inf

    return locals() | {"read": none_is_infinite}
