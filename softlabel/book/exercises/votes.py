"""What the exercises of votes.yml need beyond a formula."""

from math import comb

import numpy as np
from scipy import optimize, stats

from softlabel import datasets
from softlabel.book.exercises.marking import Names, Unfit, call, numbers
from softlabel.book.exercises.quantities import moments, votes_pmf
from softlabel.validation import Array


def ex_01_hand() -> Names:
    top = {2: 1, 3: 2 / 3}  # the largest value of U
    cases = {}
    for rates in ([0.2], [0.0, 0.5], [0.05, 0.1, 0.4]):
        for m in (2, 3):
            w = np.arange(m + 1)
            p = stats.binom.pmf(w, m, np.array(rates)[:, None]).mean(axis=0)
            D, variance = moments(p, w * (m - w) / comb(m, 2))
            cases[D, m] = variance
    return {"top": top, "grid": list(cases), "right": lambda D, m: cases[D, m]}


def ex_01_code() -> Names:
    h = datasets.shipped_histograms()["bluebirds"]
    s = np.repeat(h["positive"].to_numpy(), h["items"].to_numpy())

    def ratio(U: Array, m: int, within: float = 0.0) -> float:
        D = U.mean()
        one_rate = (D * (1 - D) + (m - 2) * D * (1 - 2 * D)) / comb(m, 2)
        return float((within + U.var(ddof=1)) / one_rate)

    k = np.arange(8)
    p = stats.hypergeom.pmf(k, 39, s[:, None], 7)  # exact: no votes are drawn here
    U = k * (7 - k) / 21
    mean = p @ U
    full = s * (39 - s) / comb(39, 2)
    return locals()


def root(D: float) -> float:
    return float(1 - np.sqrt(1 - 2 * D)) / 2


def ex_01_further(mean: float, v: float) -> float:
    rates = mean + np.sqrt(v) * np.array([-1, 1])  # half of the items each
    return float(np.roots([2, -2, np.mean(2 * rates * (1 - rates))]).real.min())


def ex_02_hand() -> Names:
    share, tau, answer = np.array([0.6, 0.4]), np.array([0.9, 0.5]), np.array([1.0, 0.5])  # easy, hard
    wrong = tau * (1 - answer) + (1 - tau) * answer
    harmless = np.allclose(answer, tau)
    return locals()


def ex_02_code() -> Names:
    taus, n = np.array([0.1, 0.3, 0.5, 0.8]), 40_000
    tau = np.repeat(taus[:, None], n, axis=1)
    z = (np.random.default_rng(1).random(tau.shape) < tau).astype(int)

    def measure(draw: object) -> Array:
        labels = np.asarray(call(draw, tau, z, np.random.default_rng(2)))
        if labels.shape != tau.shape:
            raise Unfit(f"Your function returns shape {labels.shape} for tau of shape {tau.shape}.")
        if not np.isin(labels, [0, 1]).all():
            raise Unfit("Your function returns labels other than 0 and 1.")
        wrong = labels != z
        off = wrong[2] - wrong[2].mean()
        apart = [off[k:] @ off[:-k] / max(off @ off, 1) for k in range(1, 13)]
        return np.array([*labels.mean(axis=1), *wrong.mean(axis=1), apart[0], max(apart[1:], key=abs)])

    right = np.array([*taus, *taus * (1 - taus), 0, 0])
    names = [f"the share of {what} labels where tau = {t}" for what in ("positive", "wrong") for t in taus]
    names += [
        f"the correlation of errors on items {far}, which should be none" for far in ("next to each other", "farther apart")
    ]
    return locals()


def ex_02_further(r: float) -> float:
    p = [1 - r, r]
    return sum(p[i] * p[k] for i in range(2) for k in range(2) if i != k) / min(p)


def agree(tau: Array, rho: float, rest: bool = True) -> float:
    q = float(tau @ tau)
    return q + rho * (1 - q if rest else 1)


def ex_03_hand(tau: Array, alpha0: float) -> float:  # two votes for one class, of each class in turn
    return float(sum(votes_pmf(2, t, alpha0)[2] for t in tau))


def ex_03_code() -> Names:
    def measure(drawn: object) -> Array:
        row = numbers(range(8))(drawn)
        if row.min() < 0 or row.sum() < 20_000:
            many = f"There are {row.sum():.0f} items; draw at least 20,000, so that chance does not decide."
            raise Unfit("These are shares and not numbers of items." if 0.99 < row.sum() < 1.01 else many)
        return np.asarray(row / row.sum())

    right = votes_pmf(7, 0.7, 2.0)
    names = [f"the share of items with {k} positive votes" for k in range(8)]
    return locals()


def ex_03_further(kept: int, tau1: float, alpha0: float) -> float:
    s = np.arange(8)  # seven votes, of which some are kept at random
    keep = stats.hypergeom.pmf(np.arange(kept + 1), 7, s[:, None], kept)
    return moments(votes_pmf(7, tau1, alpha0) @ keep)[1]


def ex_04_hand(r: float, alpha0: float) -> float:
    return float(optimize.brentq(lambda m: m * (1 + alpha0) / (m + alpha0) - r * (1 + alpha0), 1e-9, 1e6, xtol=1e-12))


def ex_04_code() -> Names:
    n = np.array([50, 400])  # the distance to the normal comes from the skewness, which is that of a mean of n
    return {"power": float(np.polyfit(np.log(n), np.log(stats.gamma(n).stats("s")), 1)[0])}


def phi(m: Array, alpha0: float) -> Array:
    return (m + alpha0) / (1 + alpha0)


def ex_04_further(m: Array, prob: Array, alpha0: float) -> Array:
    inflation = np.array([moments(votes_pmf(k, 0.3, alpha0))[1] / (k * 0.3 * 0.7) for k in m])
    H, G = prob * m, np.diag(prob * inflation * m)
    return np.array([H.sum() ** 2 / G.sum(), H @ np.linalg.solve(G, H)])  # all weights one, and the best ones


def ex_limits_hand(m: int, tau: float) -> float:  # of all counts with two values: the mean is that of the items
    mean = m * tau
    pairs = [(a, b) for a in range(m + 1) for b in range(a + 1, m + 1) if a <= mean <= b]
    return min((mean - a) * (b - mean) for a, b in pairs) / (mean * (1 - tau))


def ex_limits_further() -> Names:
    return {"worth": 0.3 * 0.7 / stats.beta(2 * 0.3, 2 * 0.7).var()}
