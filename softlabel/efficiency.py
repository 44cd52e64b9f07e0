"""What votes are worth: Theorems 1 and 2 of Ahfock & McLachlan (2021), designs for a budget, limits under a wrong model."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from softlabel.normal import TwoClassNormal
from softlabel.validation import (
    Array,
    as_alpha0,
    as_labellers,
    as_labellers_and_alpha0,
    as_numbers,
    as_parameter,
    as_positive,
    as_whole,
)

MOST_AFFORDABLE = 10**12  # votes: some two million designs are compared then
DECIMALS = 4e-15  # a budget of 0.3 pays for three votes at 0.1, though 0.1 is a little more than a tenth in binary


def relative_efficiency(m: ArrayLike, alpha0: ArrayLike) -> Array | float:
    """Asymptotic relative efficiency of the votes of m labellers to one set of ground-truth labels.

    Parameters
    ----------
    m : array_like
        Number of labellers of each item, at least 1.
    alpha0 : array_like
        Overdispersion parameter, positive; ``inf`` is the multinomial. Broadcast against ``m``.

    Returns
    -------
    float or ndarray
        m (1 + alpha0) / (m + alpha0): so many ground-truth labels an item carry the same information, if the mean of the
        votes is the posterior probability, and that a logistic regression.

    Raises
    ------
    ValueError
        If m < 1 or alpha0 <= 0.

    Notes
    -----
    Theorem 2 of Ahfock & McLachlan (2021). Computed as 1 + (m - 1) / (1 + m / alpha0), which shows the bounds of their
    Remark 1: 1 as alpha0 -> 0, m as alpha0 -> inf, and 1 + alpha0 as m -> inf.

    ``alpha0`` does not tell whether the mean of the votes is right. True labels of some items do: :func:`worth_of_votes`.

    Examples
    --------
    >>> round(relative_efficiency(5, 1), 4)
    1.6667
    >>> relative_efficiency([1, 5, 50], float("inf"))
    array([ 1.,  5., 50.])
    """
    m, alpha0 = as_labellers_and_alpha0(m, alpha0)
    with np.errstate(over="ignore"):  # m / alpha0 = inf is right: then the efficiency is 1
        efficiency = 1 + (m - 1) / (1 + m / alpha0)
    return efficiency if efficiency.ndim else float(efficiency)


def pooled_efficiency(m: ArrayLike, alpha0: float) -> float:
    """What unequal numbers of votes are worth when they are pooled, as true labels an item.

    Parameters
    ----------
    m : (n,) array_like
        Number of votes on each item.
    alpha0 : float
        Overdispersion parameter; ``inf`` is the multinomial, 0 stands for votes that always agree.

    Returns
    -------
    float
        E[M]^2 (1 + alpha0) / (E[M^2] + alpha0 E[M]), which for equal numbers is :func:`relative_efficiency`, and holds under
        the same conditions: the mean of the votes is the posterior probability, and that a logistic regression. The number of
        votes on an item must not depend on its features.

    Raises
    ------
    ValueError
        If a number of votes is not a whole number of at least 1, or alpha0 is negative.

    Notes
    -----
    E[M] is the information of the pooled fit over that of a true label, and E[M (M + alpha0) / (1 + alpha0)] the variance of
    its score over that of a true label: Theorem 1 of Ahfock & McLachlan (2021) with a random number of votes.

    Examples
    --------
    >>> pooled_efficiency([5, 5, 5], 1.0), relative_efficiency(5, 1.0)
    (1.6666666666666667, 1.6666666666666665)
    >>> round(pooled_efficiency([1, 9], 1.0), 4)
    1.087
    """
    m = as_numbers(as_labellers(m), "m", (0, 1))
    mean, square = m.mean(), (m**2).mean()
    if as_parameter(alpha0, "alpha0", scalar=True) == 0:
        return float(mean**2 / square)
    rho = 1 / (1 + float(as_alpha0(alpha0, scalar=True)))
    return float(mean**2 / (mean * (1 - rho) + square * rho))


def godambe_information(fisher: ArrayLike, m: ArrayLike, alpha0: ArrayLike) -> Array:
    """Godambe information of one item with the votes of m labellers, from the Fisher information of one true label.

    Parameters
    ----------
    fisher : (q, q) array_like
        Fisher information of one item with its ground-truth label, such as ``TwoClassNormal.fisher_information()``.
    m, alpha0 : float
        Number of labellers and overdispersion parameter.

    Returns
    -------
    (q, q) ndarray
        I_M = m (1 + alpha0) / (m + alpha0) I_LR. The estimate from n items has covariance near inverse(I_M) / n.

    Raises
    ------
    ValueError
        If ``fisher`` is not a symmetric matrix, m < 1 or alpha0 <= 0.

    Notes
    -----
    Theorem 1 of Ahfock & McLachlan (2021), for votes whose mean is the posterior probability.

    Examples
    --------
    >>> import numpy as np
    >>> godambe_information(np.eye(2), m=10, alpha0=10)
    array([[5.5, 0. ],
           [0. , 5.5]])
    """
    fisher = as_numbers(fisher, "fisher", (2,))
    if fisher.shape[0] != fisher.shape[1] or not np.allclose(fisher, fisher.T, rtol=1e-8, atol=0):
        raise ValueError(f"fisher must be a symmetric matrix, got shape {fisher.shape}")
    as_alpha0(alpha0, scalar=True)
    as_labellers(m, whole=False, scalar=True)
    return relative_efficiency(m, alpha0) * fisher


@dataclass(frozen=True)
class VoteDesign:
    """What to buy: how many items, and how many votes on each.

    Attributes
    ----------
    n_items : int
        Number of items to have labelled.
    m : int
        Number of votes on each of them.
    worth : float
        n_items * relative_efficiency(m, alpha0): so many true labels carry the same information, if the mean of the votes is
        the posterior probability.
    cost : float
        n_items * (cost_item + m * cost_vote).
    root : float
        sqrt(alpha0 * cost_item / cost_vote), the best m if parts of votes and of items were for sale and items had no end.
    n_truth : int or None
        Number of true labels, one an item, that the budget buys instead; 0 if fewer than ``min_items``. None without a price.
    """

    n_items: int
    m: int
    worth: float
    cost: float
    root: float
    n_truth: int | None = None

    def __repr__(self) -> str:
        items, votes = ("" if k == 1 else "s" for k in (self.n_items, self.m))
        truth = "" if self.n_truth is None else f"; true labels for the money: {self.n_truth:,}"
        return (
            f"VoteDesign({self.n_items:,} item{items} with {self.m:,} vote{votes} each, worth {self.worth:,.6g} true labels; "
            f"cost {self.cost:,.6g}; root {self.root:.4g}{truth})"
        )


def design_votes(
    *,
    budget: float,
    cost_item: float,
    cost_vote: float,
    alpha0: float,
    n_items: int | None = None,
    cost_truth: float | None = None,
    min_items: int = 1,
) -> VoteDesign:
    """Numbers of items and of votes an item that make a budget worth the most true labels.

    Parameters
    ----------
    budget : float
        What may be spent, in any unit of money or time.
    cost_item : float
        Price of an item before anybody votes on it: finding it, measuring its features. May be 0.
    cost_vote : float
        Price of a vote.
    alpha0 : float
        Overdispersion parameter, such as ``estimate_alpha0(...).alpha0``; ``inf`` is the multinomial.
    n_items : int, optional
        Number of items there are, if there is no end of them otherwise. ``cost_item`` is what each one used still costs.
    cost_truth : float, optional
        Price of a true label, to see how many of them the budget buys.
    min_items : int
        Least number of items to accept. The worth of votes is a limit for many items: on few of them it means nothing.

    Returns
    -------
    VoteDesign

    Raises
    ------
    ValueError
        If an argument is not valid, the budget does not pay for ``min_items`` items with a vote each, ``min_items`` exceeds
        ``n_items``, or the budget pays for more than 10**12 votes or true labels.

    Notes
    -----
    Maximises n * relative_efficiency(m, alpha0) over whole numbers n and m with n * (cost_item + m * cost_vote) <= budget,
    the chapter *How many labellers, how many items?* Between whole numbers, and with no end of items, the best m is
    sqrt(alpha0 * cost_item / cost_vote), or 1 if that is less; without ``min_items`` it is infinite for alpha0 = inf. The
    search is complete: of two whole numbers with n * m <= budget / cost_vote one is at most the root of that; with each n up
    to it only the largest m can be best, and with each such m only the largest n. Of designs worth the same the cheapest is
    taken, and then that with the fewest votes an item.

    Examples
    --------
    >>> design_votes(budget=1000, cost_item=20, cost_vote=1, alpha0=5, cost_truth=40)
    VoteDesign(33 items with 10 votes each, worth 132 true labels; cost 990; root 10; true labels for the money: 16)
    >>> design_votes(budget=1000, cost_item=0, cost_vote=1, alpha0=5, n_items=100).m
    10
    """
    budget, cost_vote = as_positive(budget, "budget"), as_positive(cost_vote, "cost_vote")
    cost_item = as_positive(cost_item, "cost_item", or_zero=True)
    alpha0, min_items = float(as_alpha0(alpha0, scalar=True)), as_whole(min_items, "min_items", 1)
    most = math.inf if n_items is None else as_whole(n_items, "n_items", 1)
    if min_items > most:
        raise ValueError(f"min_items is {min_items}, but there are only n_items = {n_items}")
    prices = {"votes": cost_vote}
    if cost_truth is not None:
        prices["true labels"] = as_positive(cost_truth, "cost_truth")
    for what, price in prices.items():
        if budget / price > MOST_AFFORDABLE:
            raise ValueError(
                f"budget {budget:g} pays for {budget / price:.3g} {what}: at most {MOST_AFFORDABLE:g} can be planned"
            )
    item, room = cost_item / cost_vote, budget / cost_vote * (1 + DECIMALS)  # in votes
    if min_items * (item + 1) > room:
        raise ValueError(
            f"budget {budget:g} does not pay for min_items = {min_items} with one vote each, which cost "
            f"{min_items * (cost_item + cost_vote):g}"
        )
    few = np.arange(1.0, math.isqrt(int(room)) + 2)
    n = np.concatenate([few, np.minimum(most, np.floor(room / (item + few)))])
    m = np.concatenate([np.floor((room - few * item) / few), few])
    possible = (n >= min_items) & (n <= most) & (m >= 1)
    n, m = n[possible], m[possible]
    worth = n * relative_efficiency(m, alpha0)
    best = np.flatnonzero(worth >= worth.max() * (1 - 1e-12))  # equal but for rounding
    best = best[np.lexsort((m[best], (n * (item + m))[best]))[0]]
    items, votes = int(n[best]), int(m[best])
    cost = min(budget, items * (cost_item + votes * cost_vote))
    root = math.sqrt(alpha0) * math.sqrt(item) if item else 0.0
    n_truth = None
    if cost_truth is not None:
        affordable = math.floor(budget / (cost_item + prices["true labels"]) * (1 + DECIMALS))
        n_truth = int(min(most, affordable)) if affordable >= min_items else 0
    return VoteDesign(items, votes, float(worth[best]), cost, root, n_truth)


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
    back = np.linalg.inv(model.from_canonical).T  # b' (1, t) = (back b)' (1, y)
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
    density: Array = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    return density


def _along_discriminant(model: TwoClassNormal) -> tuple[Array, Array, Array]:
    """First canonical coordinate t, its probabilities, and eta: the trapezoid rule, exact to rounding if all is smooth."""
    half = model.delta / 2
    t = np.linspace(-half - 10, half + 10, 6001)
    weight = model.prior1 * _density(t - half) + (1 - model.prior1) * _density(t + half)
    return t, weight / weight.sum(), model.prior_logit + model.delta * t


def _solve(t: Array, weight: Array, q: Array) -> Array:
    """Limit (2,) of the coefficients of (1, t): the minimum of a convex function."""
    from scipy.optimize import minimize  # takes as long to import as all of the package

    x = np.stack([np.ones_like(t), t])

    def loss(b: Array) -> float:
        return float(weight @ (np.logaddexp(0, b @ x) - q * (b @ x)))

    def gradient(b: Array) -> Array:
        error: Array = expit(b @ x) - q
        return x @ (weight * error)

    def hessian(b: Array) -> Array:
        curved: Array = weight * expit(b @ x) * expit(-b @ x)
        return (x * curved) @ x.T

    found = minimize(loss, np.zeros(2), jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-7})
    b: Array = found.x
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

    def second_moment(weights: Array) -> Array:
        M: Array = weights.sum() * np.eye(p + 1)
        M[:2, :2] = (x * weights) @ x.T
        return M

    def third_moment(weights: Array, A: NDArray[np.floating]) -> Array:
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
    half, cut, best = model.delta / 2, -b[0] / b[1], -model.prior_logit / model.delta
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
