"""What votes are worth: Theorems 1 and 2 of Ahfock & McLachlan (2021) as functions, and what to buy with a budget."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softlabel.validation import Array, as_alpha0, as_labellers, as_labellers_and_alpha0, as_numbers, as_positive, as_whole

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
        m (1 + alpha0) / (m + alpha0): so many ground-truth labels an item carry the same information.

    Raises
    ------
    ValueError
        If m < 1 or alpha0 <= 0.

    Notes
    -----
    Theorem 2 of Ahfock & McLachlan (2021). Computed as 1 + (m - 1) / (1 + m / alpha0), which shows the bounds of their
    Remark 1: 1 as alpha0 -> 0, m as alpha0 -> inf, and 1 + alpha0 as m -> inf.

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
    Theorem 1 of Ahfock & McLachlan (2021).

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
        n_items * relative_efficiency(m, alpha0): so many true labels carry the same information.
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
            raise ValueError(f"budget {budget:g} pays for {budget / price:.3g} {what}: at most {MOST_AFFORDABLE:g} can be planned")
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
    n, m, worth = int(n[best]), int(m[best]), float(worth[best])
    cost = min(budget, n * (cost_item + m * cost_vote))
    root = math.sqrt(alpha0) * math.sqrt(item) if item else 0.0
    n_truth = None
    if cost_truth is not None:
        affordable = math.floor(budget / (cost_item + prices["true labels"]) * (1 + DECIMALS))
        n_truth = min(most, affordable) if affordable >= min_items else 0
    return VoteDesign(n, m, worth, cost, root, n_truth)


def pooled_efficiency(m: Array, alpha0: float) -> float:
    """True labels that the votes on an item are worth where items have different numbers of votes.

    Parameters
    ----------
    m : (n,) ndarray
        Number of votes on each item.
    alpha0 : float
        Overdispersion parameter: 0 and ``inf`` are values like any other.

    Returns
    -------
    float
        E[M]^2 (1 + alpha0) / (E[M^2] + alpha0 E[M]); with equal numbers that is :func:`relative_efficiency`.

    Examples
    --------
    >>> import numpy as np
    >>> pooled_efficiency(np.array([5, 5]), 1), pooled_efficiency(np.array([1, 9]), 0)
    (1.6666666666666667, 0.6097560975609756)
    """
    omega = 1 / alpha0 if alpha0 else np.inf
    mean, square = m.mean(), (m**2).mean()
    return float(mean**2 / square if np.isinf(omega) else mean**2 * (1 + omega) / (mean + square * omega))
