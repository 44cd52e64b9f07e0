"""Rules on the breast cancer data, in blocks of 25 splits: three methods at fifty items, and R's with more of them."""

from itertools import product
from typing import Literal

from softlabel.experiments import simulate_breast_cancer

DESIGNS = [
    *product(("glm", "firth", "ridge"), (50,), (5, 20, 100), (1, 10, 100, 1000)),
    *product(("glm",), (75, 100, 150, 200), (5,), (1, 10, 1000)),
]
CELLS = [
    dict(method=method, n=n, m=m, alpha0=alpha0, seed=seed) for (method, n, m, alpha0), seed in product(DESIGNS, range(20))
]


def cell(method: Literal["glm", "firth", "ridge"], n: int, m: int, alpha0: int, seed: int) -> dict[str, float]:
    """Mean test errors of the rules from true labels and from votes; share of true labels that are separated."""
    truth, votes = simulate_breast_cancer([m], [alpha0], n, 25, seed, method=method).to_dict("records")
    return {"truth": truth["error"], "votes": votes["error"], "separated": truth["share_separated"]}
