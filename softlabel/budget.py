"""A budget divided between votes and true labels, when the mean of the votes may be wrong."""

import math
from dataclasses import dataclass

from softlabel.efficiency import DECIMALS, design_votes
from softlabel.validation import as_alpha0, as_positive, single


@dataclass(frozen=True)
class BudgetSplit:
    """How a budget is divided between votes and true labels; made by :func:`split_budget`.

    Attributes
    ----------
    n_items : int
        Number of items to have voted on.
    m : int
        Number of votes on each of them; 0 if there are none.
    n_truth : int
        Number of true labels: on the items that have votes, as far as these go, and then on new ones.
    worth : float
        So many true labels lead to the same excess error as votes and true labels together.
    cost : float
        What both cost, and ``max(n_items, n_truth)`` items.
    all_votes, all_truth : float
        What the budget is worth if it all goes into votes, or into true labels.
    """

    n_items: int
    m: int
    n_truth: int
    worth: float
    cost: float
    all_votes: float
    all_truth: float

    def __repr__(self) -> str:
        items, votes, labels = ("" if k == 1 else "s" for k in (self.n_items, self.m, self.n_truth))
        return (
            f"BudgetSplit({self.n_items:,} item{items} with {self.m:,} vote{votes} each, {self.n_truth:,} true label{labels}: "
            f"worth {self.worth:,.6g}; all votes {self.all_votes:,.6g}; all truth {self.all_truth:,.6g}; "
            f"cost {self.cost:,.6g})"
        )


def split_budget(
    *, budget: float, cost_item: float, cost_vote: float, cost_truth: float, alpha0: float, ceiling: float
) -> BudgetSplit:
    """Numbers of items, of votes an item and of true labels that are worth the most when the mean of votes may be wrong.

    Parameters
    ----------
    budget, cost_item, cost_vote, alpha0 : float
        As for :func:`design_votes`.
    cost_truth : float
        Price of a true label, on top of that of its item.
    ceiling : float
        Number of true labels that votes never reach, however many there are, since their mean is not the posterior; ``inf``
        if it is. Votes worth v true labels by Theorem 2, and in fact e, as ``worth_of_votes(...).equal_number`` predicts, have
        the ceiling 1 / (1 / e - 1 / v).

    Returns
    -------
    BudgetSplit

    Raises
    ------
    ValueError
        If an argument is not valid, or the budget pays for nothing, for more than 10**6 votes or for more than 10**4 true
        labels.

    Notes
    -----
    Maximises n_truth + v / (1 + v / ceiling) over whole numbers, with v = n_items * relative_efficiency(m, alpha0): the worth
    of votes and true labels weighted by their squared errors, if the truth is independent of the votes given the features;
    the chapter *How many labellers, how many items?* The search is complete: each n_truth, with votes on at least or on at
    most so many items. Of plans worth the same the cheapest is taken, and then that with the most true labels.

    Examples
    --------
    >>> split_budget(budget=1000, cost_item=20, cost_vote=1, cost_truth=40, alpha0=5, ceiling=50)
    BudgetSplit(16 items with 10 votes each, 13 true labels: worth 41.0702; all votes 36.2637; all truth 16; cost 1,000)
    """
    budget, cost_vote = as_positive(budget, "budget"), as_positive(cost_vote, "cost_vote")
    cost_item, cost_truth = as_positive(cost_item, "cost_item", or_zero=True), as_positive(cost_truth, "cost_truth")
    alpha0 = float(as_alpha0(alpha0, scalar=True))
    ceiling = math.inf if single(ceiling) == math.inf else as_positive(ceiling, "ceiling")
    for what, price, limit in ("votes", cost_vote, 10**6), ("true labels", cost_truth, 10**4):
        if budget / price > limit:
            raise ValueError(f"budget {budget:g} pays for {budget / price:.3g} {what}: at most {limit:g} can be planned")
    money = budget * (1 + DECIMALS)
    if money < cost_item + min(cost_vote, cost_truth):
        raise ValueError(f"budget {budget:g} pays for no item with a vote or a true label")

    all_truth = math.floor(money / (cost_item + cost_truth))
    plans = []  # worth, minus the cost, true labels, items and votes an item
    for k in range(all_truth + 1):
        paid = k * (cost_item + cost_truth)
        plans.append((float(k), -paid, k, 0, 0))
        # Votes on at least k items, all of them to be paid for; or on at most k, whose true labels have paid for them.
        ways: list[tuple[float, float, int, int | None]] = [(k * cost_truth, cost_item, max(k, 1), None), (paid, 0.0, 1, k)]
        for spent, item, least, most in ways:
            if most != 0 and money - spent >= least * (item + cost_vote):
                votes = design_votes(
                    budget=money - spent, cost_item=item, cost_vote=cost_vote, alpha0=alpha0, min_items=least, n_items=most
                )
                worth = k + votes.worth / (1 + votes.worth / ceiling)
                plans.append((worth, -spent - votes.cost, k, votes.n_items, votes.m))
    top = max(plans)[0] * (1 - 1e-12)  # equal but for rounding
    cost, k, items, m, worth = max((*plan[1:], plan[0]) for plan in plans if plan[0] >= top)
    all_votes = max(worth for worth, _, k, *_ in plans if k == 0)
    return BudgetSplit(items, m, k, worth, min(budget, -cost), all_votes, float(all_truth))
