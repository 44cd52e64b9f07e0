"""Rules on the breast cancer data, in blocks of 25 splits: three methods, at fifty items."""

from itertools import product
from typing import Literal

from softlabel.experiments import simulate_breast_cancer

CELLS = [
    dict(method=method, n=50, m=m, alpha0=alpha0, seed=seed)
    for method, m, alpha0, seed in product(("glm", "firth", "ridge"), (5, 20, 100), (1, 10, 100, 1000), range(20))
]


def cell(method: Literal["glm", "firth", "ridge"], n: int, m: int, alpha0: int, seed: int) -> dict[str, float]:
    """Mean test errors of the rules from true labels and from votes; share of true labels that are separated."""
    truth, votes = simulate_breast_cancer([m], [alpha0], n, 25, seed, method=method).to_dict("records")
    return {"truth": truth["error"], "votes": votes["error"], "separated": truth["share_separated"]}
