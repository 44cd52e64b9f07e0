"""How much the votes on an item vary beyond chance: the overdispersion parameter alpha0, with tau held fixed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from softlabel._checks import Array, align, as_counts, as_tau, place
from softlabel.dirichlet_multinomial import dm_logpmf

# Candidates for omega = 1 / alpha0 between which the root of the score is bracketed.
GRID = np.concatenate([[0.0], np.logspace(-12, 12, 49)])


@dataclass(frozen=True, eq=False)
class Alpha0Fit:
    """Maximum likelihood estimate of alpha0 with the posterior probabilities held fixed.

    Attributes
    ----------
    alpha0 : float
        The estimate. ``inf``: the votes vary no more than independent ones would. ``0.0``: every item is unanimous, and the
        likelihood rises as alpha0 falls to 0.
    log_likelihood : float
        Log-likelihood at the estimate, binomial coefficients included.
    multinomial_log_likelihood : float
        Log-likelihood at alpha0 = inf.
    """

    alpha0: float
    log_likelihood: float
    multinomial_log_likelihood: float

    def __repr__(self) -> str:
        gain = self.log_likelihood - self.multinomial_log_likelihood
        return (
            f"Alpha0Fit(alpha0 = {self.alpha0:.6g}; log-likelihood {self.log_likelihood:.6g}, {gain:.4g} above the multinomial)"
        )


def estimate_alpha0(counts: ArrayLike, tau: ArrayLike) -> Alpha0Fit:
    """Estimate the overdispersion parameter alpha0 by maximum likelihood with tau held fixed.

    Parameters
    ----------
    counts : (n, g) array_like
        Votes of each item for each class, column 0 the positive class. Items with no vote or one carry no information on alpha0.
    tau : (n, g) array_like
        Posterior probabilities of each item, such as ``fit_logistic(...).posterior(X)``.

    Returns
    -------
    Alpha0Fit

    Raises
    ------
    ValueError
        If counts or tau are not valid, their shapes differ, a class with probability zero has a vote, or no item has two votes.

    Notes
    -----
    Section 5.1 of Ahfock & McLachlan (2021). The search is over omega = 1 / alpha0 >= 0, where the multinomial is an ordinary
    boundary point: all roots of the score that a grid over 24 decades separates are compared with both ends.

    Examples
    --------
    >>> counts = [[7, 0], [6, 1], [2, 5], [0, 7], [7, 0], [1, 6]]
    >>> tau = [[0.8, 0.2], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.7, 0.3], [0.5, 0.5]]
    >>> round(estimate_alpha0(counts, tau).alpha0, 3)
    1.364
    """
    tau = align(counts, tau, ("counts", "tau"))
    counts, tau = as_counts(counts), as_tau(tau)
    if counts.shape != tau.shape or counts.ndim != 2:
        raise ValueError(f"counts have shape {counts.shape} but tau has {tau.shape}: both must be (n, g)")
    impossible = (counts > 0) & (tau == 0)
    if impossible.any():
        at = tuple(np.argwhere(impossible)[0])
        raise ValueError(f"{place('counts', at)} is {counts[at]:g} but tau is 0 there: a class with a vote needs tau > 0")
    if counts.sum(axis=1).max() < 2:
        raise ValueError("no item has more than one vote: alpha0 cannot be estimated, since it only shows in repeated votes")

    factors = VoteFactors(counts, tau)
    score = np.array([factors.score(omega) for omega in GRID])
    falls = np.flatnonzero((score[:-1] > 0) & (score[1:] <= 0))  # the score crosses zero from above: a maximum
    peaks = [brentq(factors.score, GRID[i], GRID[i + 1], xtol=1e-300, rtol=1e-14) for i in falls]
    omegas = ([0.0] if score[0] <= 0 else []) + peaks
    candidates = [1 / omega if omega else np.inf for omega in omegas]
    if np.all(counts.max(axis=1) == counts.sum(axis=1)) and score[-1] > 0:
        candidates.append(0.0)
    values = [_log_likelihood(counts, tau, alpha0) for alpha0 in candidates]
    best = int(np.argmax(values))
    return Alpha0Fit(float(candidates[best]), values[best], _log_likelihood(counts, tau, np.inf))


def _log_likelihood(counts: Array, tau: Array, alpha0: float) -> float:
    if alpha0 == 0:  # the labellers of an item agree: the first vote decides, and it is a draw from tau
        return float(np.log(tau[counts > 0]).sum())
    return float(dm_logpmf(counts, tau, alpha0).sum())


class VoteFactors:
    """The factors of the Dirichlet-multinomial likelihood that depend on omega = 1 / alpha0.

    With tau fixed the log-likelihood is sum log(tau_i + k omega) over the second, third, ... vote for class i of each item, less
    sum log(1 + k omega) over the second, third, ... vote on each item; k counts from 1.
    """

    def __init__(self, counts: Array, tau: Array) -> None:
        self.k, self.tau = self._repeats(counts.ravel(), tau.ravel())
        self.k_all, _ = self._repeats(counts.sum(axis=1), np.ones(len(counts)))

    @staticmethod
    def _repeats(votes: Array, tau: Array) -> tuple[Array, Array]:
        extra = np.maximum(votes - 1, 0).astype(int)
        ends = np.cumsum(extra)
        k = np.arange(1, ends[-1] + 1) - np.repeat(ends - extra, extra)
        return k.astype(float), np.repeat(tau, extra)

    def score(self, omega: float) -> float:
        """Derivative of the log-likelihood with respect to omega."""
        return float(np.sum(self.k / (self.tau + self.k * omega)) - np.sum(self.k_all / (1 + self.k_all * omega)))
