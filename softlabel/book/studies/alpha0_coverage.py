"""How often an interval for alpha0 holds it: three methods on a thousand tables of each kind, 25 in a row of the file."""

import warnings

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from softlabel.logistic import fit_logistic
from softlabel.overdispersion import VoteTerms, adjusted_likelihood, alpha0_interval, estimate_alpha0, likelihood_interval
from softlabel.validation import Array, SeparationWarning
from softlabel.vote_models import sample_votes

TABLES = 25
# Items, features, votes on an item, votes on one item in ten, share of the positive class; and alpha0.
KINDS = {
    (25, 1, 2, 2, 0.5): (0.5, 5, np.inf),
    (30, 3, 5, 5, 0.5): (5,),
    (80, 3, 5, 5, 0.5): (0.5, 5, np.inf),
    (300, 3, 2, 2, 0.5): (0.5, 5, np.inf),
    (300, 3, 5, 5, 0.5): (5,),
    (300, 3, 20, 20, 0.5): (0.5, 5, np.inf),
    (200, 20, 5, 5, 0.5): (0.5, 5),
    (440, 20, 5, 5, 0.5): (0.5, 5, np.inf),
    (840, 40, 5, 5, 0.5): (0.5, 5, np.inf),
    (250, 50, 5, 5, 0.5): (0.5, 5),
    (500, 3, 5, 5, 0.04): (0.5, 5, np.inf),
    (1500, 3, 5, 5, 0.04): (0.5, 5, np.inf),
    (500, 10, 1, 20, 0.5): (0.5, 5, np.inf),
    (1050, 100, 5, 5, 0.5): (0.5, 5),
}
CELLS = [
    dict(zip(("n", "p", "m", "m_tenth", "share", "alpha0", "seed"), (*kind, alpha0, seed)))
    for kind, alphas in KINDS.items()
    for alpha0 in alphas
    for seed in range(1000 // TABLES)
]


def draw(n: int, p: int, m: int, m_tenth: int, share: float, alpha0: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Normal features, of which the first three matter, and votes."""
    slopes = np.r_[1.0, -1.0, 0.5, np.zeros(max(p - 3, 0))][:p]
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    eta = np.linalg.norm(slopes) * z
    intercept = brentq(lambda b: weight @ expit(b + eta) / weight.sum() - share, -20, 20)
    X = rng.normal(size=(n, p))
    eta = intercept + X @ slopes
    numbers = np.where(np.arange(n) < n // 10, m_tenth, m)
    return X, sample_votes(np.column_stack([expit(eta), expit(-eta)]), numbers, alpha0, rng).astype(float)


def by_bootstrap(counts: Array, tau: Array, rng: np.random.Generator) -> tuple[float, float]:
    try:
        return alpha0_interval(counts, tau, method="bootstrap", n_resamples=200, rng=rng)
    except ValueError:
        return np.nan, np.nan


def cell(n: int, p: int, m: int, m_tenth: int, share: float, alpha0: float, seed: int) -> dict[str, float]:
    """Tables whose interval holds alpha0, by method, and whose estimate is above it; tables without a fit are drawn anew.

    The bootstrap has 200 resamples, and no interval where nearly all give the same; "fixed" is the likelihood that takes the
    fitted coefficients as known.
    """
    rng = np.random.default_rng([n, p, m_tenth, *np.array([share, alpha0]).view(np.uint64), seed])
    held: list[list[bool]] = []
    estimates, drawn = [], 0
    while len(held) < TABLES:
        X, counts = draw(n, p, m, m_tenth, share, alpha0, rng)
        drawn += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeparationWarning)
            fit = fit_logistic(X, counts)
        if fit.separation != "none":
            continue
        tau = fit.posterior(X)
        ends = (
            by_bootstrap(counts, tau, rng),
            likelihood_interval(VoteTerms(counts, tau).log_likelihood, 0.95),
            likelihood_interval(adjusted_likelihood(counts, tau, X), 0.95),
        )
        held.append([low <= alpha0 <= high for low, high in ends])
        estimates.append(estimate_alpha0(counts, tau).alpha0)
    bootstrap, fixed, cox_reid = (int(k) for k in np.sum(held, axis=0))
    above = int(np.sum(np.array(estimates) > alpha0))
    return {"drawn": drawn, "bootstrap": bootstrap, "fixed": fixed, "cox_reid": cox_reid, "above": above}
