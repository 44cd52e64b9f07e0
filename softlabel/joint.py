"""Maximum likelihood of the Dirichlet-multinomial: the coefficients and the overdispersion together."""

import warnings
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, gammaln, log_expit

from softlabel.validation import (
    MOST_VOTES,
    Array,
    ConvergenceWarning,
    SeparationWarning,
    align,
    as_counts,
    as_features,
    as_positive,
    as_whole,
    place,
)
from softlabel._newton import cholesky, inverse, solve, standardised, way_back
from softlabel._parallel import compiled
from softlabel.logistic import fit_logistic, linear_predictor
from softlabel.overdispersion import best_omega, vote_terms

RARE = 1e-100  # probability, so that squares of its reciprocal stay finite


@dataclass(frozen=True, eq=False)
class JointFit:
    """Coefficients and overdispersion fitted together; made by :func:`fit_dirichlet_multinomial`.

    Attributes
    ----------
    coef : (p + 1,) ndarray
        Coefficients, intercept first.
    alpha0 : float
        Overdispersion parameter. ``inf``: the votes vary no more than independent ones would. ``0.0``: every item is
        unanimous, and the likelihood rises as alpha0 falls to 0.
    log_likelihood : float
        Log-likelihood at the estimate, binomial coefficients included; its limit where alpha0 is 0.
    converged : bool
        Whether the iteration reached a maximum of the likelihood.
    n_iter : int
        Number of steps, after a start at the logistic fit.
    separation : {"none", "quasi", "complete"}
        Whether the features separate the labels, so that no maximum exists.
    n_items : int
        Number of items that have a vote.
    n_without_votes : int
        Number of items that have none: they contribute nothing.
    feature_names : list of str
    """

    coef: Array
    alpha0: float
    log_likelihood: float
    converged: bool
    n_iter: int
    separation: Literal["none", "quasi", "complete"]
    n_items: int
    n_without_votes: int
    feature_names: list[str]
    _cov: Array = field(repr=False)

    def cov(self) -> Array:
        """Covariance (p + 1, p + 1) of the coefficients, which allows for the estimation of alpha0.

        A block of the inverse of the observed information on (beta, 1 / alpha0); where alpha0 is ``inf`` or 0, on beta alone.
        Right if the votes are Dirichlet-multinomial, and not otherwise.
        """
        return self._cov.copy()

    def stderr(self) -> Array:
        """Standard errors (p + 1,) of the coefficients."""
        return np.sqrt(np.diag(self._cov))

    def posterior(self, X: ArrayLike) -> Array:
        """Posterior probabilities (n, 2) of new items, column 0 the positive class, each computed without rounding."""
        eta = linear_predictor(self, X)
        return np.column_stack([expit(eta), expit(-eta)])

    def __repr__(self) -> str:
        state = "converged" if self.converged else "NOT converged"
        if self.separation != "none":
            state += f", {self.separation} separation"
        items = f"{self.n_items} items" + (f", {self.n_without_votes} more without votes" if self.n_without_votes else "")
        coefs = ", ".join(f"{n} {c:.4g}" for n, c in zip(["intercept", *self.feature_names], self.coef))
        return f"JointFit({items}; {coefs}; alpha0 = {self.alpha0:.4g}; log-likelihood {self.log_likelihood:.6g}; {state})"


def fit_dirichlet_multinomial(X: ArrayLike, counts: ArrayLike, *, max_iter: int = 100, tol: float = 1e-8) -> JointFit:
    """Fit coefficients and overdispersion to votes by maximum likelihood of the Dirichlet-multinomial.

    Parameters
    ----------
    X : (n, p) array_like or DataFrame
        Features, without a column for the intercept.
    counts : (n, 2) array_like
        Votes for the positive and the negative class. An item without votes contributes nothing; items with one vote tell
        about the coefficients only. Pandas objects are matched to ``X`` by index.
    max_iter : int
        Largest number of steps.
    tol : float
        Largest rise of the log-likelihood that the last step may have promised; what is left after it is far smaller.

    Returns
    -------
    JointFit

    Raises
    ------
    ValueError
        If an argument is not valid, as in :func:`fit_logistic`, or if no item has two votes: then alpha0 cannot be estimated.

    Warns
    -----
    SeparationWarning
        If the features separate the labels: no maximum exists, and ``coef`` is where the logistic fit stopped.
    ConvergenceWarning
        If ``max_iter`` steps were not enough.

    Notes
    -----
    With omega = 1 / alpha0 the log-likelihood of an item is, but for a constant,

        sum_{k < s_1} log(tau_1 + k omega) + sum_{k < s_2} log(tau_2 + k omega) - sum_{k < m} log(1 + k omega),

    the model of Section 2.3 of Ahfock & McLachlan (2021), who estimate alpha0 with beta held fixed at the logistic estimate.
    A maximum exists just when the logistic fit has one. Unlike that fit, this one needs the whole distribution of the votes to
    be right, not only their mean.

    Newton's steps start at the logistic fit; where the likelihood is not concave, squared scores stand in for its curvature
    (Berndt, Hall, Hall & Hausman, 1974).

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> fit = fit_dirichlet_multinomial(X, [[0, 7], [4, 3], [1, 6], [7, 0], [3, 4], [7, 0]])
    >>> fit.coef.round(3), round(fit.alpha0, 3)
    (array([-1.893,  0.875]), 1.617)
    """
    max_iter, tol = as_whole(max_iter, "max_iter", 1), as_positive(tol, "tol")
    counts = align(X, counts, ("X", "counts"))
    X, names = as_features(X)
    counts = _check(X, counts)

    unanimous = not np.any(counts.min(axis=1) > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # repeated below, where the caller is known
        # Of labellers who always agree, the first says it all.
        start = fit_logistic(X, np.minimum(counts, 1) if unanimous else counts)
    coef, cov, alpha0 = start.coef, start.cov("model"), 0.0
    log_likelihood, converged, n_iter = start.log_likelihood, start.converged, 0
    if start.separation != "none":
        warnings.warn(
            f"{start.separation} separation: the features tell the labels apart without error, so the maximum likelihood "
            "estimate does not exist and coef is only where the iteration stopped; use more items or fewer features",
            SeparationWarning,
            stacklevel=2,
        )
    if not unanimous:
        *_, centre, scale = standardised(X, counts)
        x, back = np.column_stack([np.ones(len(X)), (X - centre) / scale]), way_back(centre, scale)
        omega = best_omega(counts, start.posterior(X))
        theta = np.r_[start.coef[0] + centre @ start.coef[1:], scale * start.coef[1:], omega]
        if start.separation == "none":
            theta, log_likelihood, converged, n_iter, cov = _newton(x, counts, theta, max_iter, tol)
            coef, cov = back @ theta[:-1], back @ cov @ back.T
        else:
            log_likelihood = _sums(x, counts, theta)[0]
        alpha0 = 1 / theta[-1] if theta[-1] else np.inf
        ways = gammaln(counts.sum(axis=1) + 1) - gammaln(counts + 1).sum(axis=1)
        log_likelihood += ways.sum()
    if not converged and start.separation == "none":
        warnings.warn(
            f"no convergence after {n_iter} steps (max_iter={max_iter}, tol={tol:g}); raise max_iter",
            ConvergenceWarning,
            stacklevel=2,
        )
    return JointFit(
        coef=coef,
        alpha0=float(alpha0),
        log_likelihood=float(log_likelihood),
        converged=bool(converged),
        n_iter=int(n_iter),
        separation=start.separation,
        n_items=start.n_items,
        n_without_votes=start.n_without_votes,
        feature_names=names,
        _cov=cov,
    )


def _check(X: Array, counts: ArrayLike) -> Array:
    counts = as_counts(counts)
    if counts.shape != (len(X), 2):
        raise ValueError(
            f"counts have shape {counts.shape} but X has {len(X)} items: a row of positive and negative votes for each item"
        )
    if counts.max() > MOST_VOTES:
        at = tuple(np.argwhere(counts > MOST_VOTES)[0])
        raise ValueError(f"{place('counts', at)} is {counts[at]:g}: a likelihood takes {MOST_VOTES:,} votes at most")
    if counts.sum(axis=1).max() < 2:
        raise ValueError("no item has more than one vote: alpha0 cannot be estimated, since it only shows in repeated votes")
    return counts


def _newton(x: Array, counts: Array, theta: Array, max_iter: int, tol: float) -> tuple[Array, float, bool, int, Array]:
    """Maximum over theta = (beta, omega): where, its log-likelihood, whether it is one, steps taken, covariance of beta."""
    q = len(theta) - 1
    value, score, H, squares = _sums(x, counts, theta)
    for n_iter in range(1, max_iter + 1):
        step, concave = _step(score, H, squares)
        if theta[q] == 0 and min(score[q], step[q]) <= 0:  # on the boundary, and not about to leave it: only beta moves
            step, concave = _step(score[:q], H[:q, :q], squares[:q, :q])
            step = np.r_[step, 0.0]
        promise = score @ step / 2
        for _ in range(60):
            trial = theta + step
            trial[q] = max(trial[q], 0.0)
            there = _sums(x, counts, trial)
            if there[0] >= value - 1e-12 * abs(value):  # up to rounding, no fall
                break
            step = step / 2
        theta, (value, score, H, squares) = trial, there
        converged = concave and promise <= tol
        if converged:
            break
    moves = q + (theta[q] > 0)
    return theta, value, converged, n_iter, inverse(*cholesky(H[:moves, :moves]))[:q, :q]


def _step(score: Array, H: Array, squares: Array) -> tuple[Array, bool]:
    """Newton's step, and whether the likelihood is concave here; else a step uphill by the squared scores."""
    d = 1 / np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-200))
    concave = bool(np.linalg.eigvalsh(d[:, None] * H * d).min() > 1e-12)
    return solve(*cholesky(H if concave else squares), score), concave


def _sums(x: Array, counts: Array, theta: Array) -> tuple[float, Array, Array, Array]:
    """Log-likelihood at theta = (beta, omega) without binomial coefficients, score, negative Hessian, squared scores."""
    eta, omega = x @ theta[:-1], theta[-1]
    tau = np.column_stack([expit(eta), expit(-eta)])
    extra, by_omega = vote_terms(counts, tau, omega)
    by_eta, eta_eta, eta_omega, omega_omega = _derivatives(counts, tau, omega)
    independent = counts[:, 0] @ log_expit(eta) + counts[:, 1] @ log_expit(-eta)
    score = np.r_[x.T @ by_eta, by_omega.sum()]
    H = np.empty((len(theta), len(theta)))
    H[:-1, :-1] = (x.T * eta_eta) @ x
    H[:-1, -1] = H[-1, :-1] = x.T @ eta_omega
    H[-1, -1] = omega_omega.sum()
    each = np.column_stack([x * by_eta[:, None], by_omega])
    return float(independent + extra.sum()), score, H, each.T @ each


@compiled
def _derivatives(counts, tau, omega):
    """For each item (n,) the first derivative of the log-likelihood by eta, and the negative second ones by eta and omega.

    A vote for a class with probability t that has k votes already has the term log(t + k omega). With r = t / (t + k omega)
    and eta = logit(t), its derivative is (1 - t) r.
    """
    n = len(counts)
    by_eta, eta_eta, eta_omega, omega_omega = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    for j in range(n):
        for k in range(int(counts[j, 0] + counts[j, 1])):
            omega_omega[j] -= (k / (1 + k * omega)) ** 2
        for i in range(2):
            t, rest, sign = max(tau[j, i], RARE), tau[j, 1 - i], 1.0 - 2.0 * i
            for k in range(int(counts[j, i])):
                inverse = 1 / (t + k * omega)
                r = t * inverse
                by_eta[j] += sign * rest * r
                eta_eta[j] += rest * r * (t * r - (rest - t) * k * omega * inverse)
                eta_omega[j] += sign * rest * r * k * inverse
                omega_omega[j] += (k * inverse) ** 2
    return by_eta, eta_eta, eta_omega, omega_omega
