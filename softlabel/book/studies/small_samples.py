"""What votes on few items are worth: cells from which a rule was taken, and cells drawn up after it was fixed."""

import warnings
from itertools import product

import numpy as np
from scipy.stats import sem

from softlabel.efficiency import relative_efficiency
from softlabel.logistic import fit_logistic_batch
from softlabel.normal import TwoClassNormal
from softlabel.validation import ConvergenceWarning
from softlabel.vote_models import sample_votes

USED = product(((1, 0.5), (2, 0.5), (3, 0.5)), (2, 5, 10), (25, 50, 100, 200, 400, 800), ((5, 1), (5, 10), (50, 1000)))
NOT_USED = product(
    ((1.2, 0.5), (2.2, 0.5), (3.5, 0.5), (1.6, 0.7), (2.8, 0.9)), (4, 7, 12), (40, 80, 250, 500), ((2, 5), (20, 30))
)
CELLS = [
    dict(delta=delta, prior1=prior1, p=p, n=n, m=m, alpha0=alpha0, seed=seed)
    for seed, ((delta, prior1), p, n, (m, alpha0)) in enumerate((*USED, *NOT_USED, ((4, 0.5), 3, 60, (10, 100))))
]


def cell(delta: float, prior1: float, p: int, n: int, m: int, alpha0: int, seed: int) -> dict[str, float]:
    """Excess error of the rule from true labels, and relative efficiency with its standard error, over their limits."""
    pair, rng = TwoClassNormal.canonical(delta, p, prior1), np.random.default_rng(seed)
    Y, z = pair.sample(n, rng, size=min(5000, 800_000 // n))
    labels = z, sample_votes(pair.posterior(Y), m, alpha0, rng)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        truth, votes = (np.asarray(pair.error_rate(fit_logistic_batch(Y, c).coef)) - pair.bayes_error() for c in labels)
    ratio, are = truth.mean() / votes.mean(), relative_efficiency(m, alpha0)
    se = sem(truth - ratio * votes) / votes.mean()
    return {"truth": n * truth.mean() / pair.excess_error(), "ratio": ratio / are, "se": se / are}
