"""What the chapters on correlated errors, small samples and budgets claim: symbolically, numerically, and negatively."""

import numpy as np
import pytest
import sympy as sp

from softlabel import relative_efficiency

# ------------------------------------------------------------------ Dividing a budget

r0, r1, ra, k, m = sp.symbols("r0 r1 ra k m", positive=True)
C0, C1, A = r0**2, r1**2, ra**2  # squares, so that roots are symbols


def price(votes):
    """(1 + alpha0) B / W, from the worth as Theorem 2 has it."""
    worth = votes * (1 + A) / (votes + A) / (C0 + C1 * votes)
    return sp.simplify((1 + A) / worth)


ROOTS = {
    "right": ra * r0 / r1,
    "prices swapped": ra * r1 / r0,
    "no root": A * C0 / C1,
    "correlation for alpha0": r0 / r1 / ra,
    "design effect of independent votes": r0 / r1,
}


def test_budget_symbolically():
    for name, root in ROOTS.items():
        slope = sp.simplify(sp.diff(price(m), m).subs(m, root))
        assert (slope == 0) == (name == "right"), name
    root = ROOTS["right"]
    assert sp.simplify(price(root) - (r0 + ra * r1) ** 2) == 0
    assert sp.simplify(price(m) - price(root) - (r1 * sp.sqrt(m) - ra * r0 / sp.sqrt(m)) ** 2) == 0
    change = sp.simplify(price(m + 1) - price(m)) * m * (m + 1)
    assert sp.simplify(change - C1 * (m * (m + 1) - root**2)) == 0
    share = price(root) / price(k * root)
    assert sp.simplify(share.subs(r0, ra * r1) - 4 * k / (1 + k) ** 2) == 0
    rest = sp.numer(sp.factor(sp.together(share - 4 * k / (1 + k) ** 2)))
    assert sp.simplify(rest / ((k - 1) ** 2 * (r0 - ra * r1) ** 2)).is_positive
    # What one may pay for the truth falls short of the price of a vote by a square.
    limit = price(root) / (1 + A) - C0
    assert sp.simplify(C1 - limit - (ra * r0 - r1) ** 2 / (1 + A)) == 0


def best_on_a_grid(c0, c1, alpha0, pool=np.inf, budget=1.0):
    """The best m of a fine grid and its worth, by the definition alone."""
    votes = np.geomspace(1, 1e4, 40_001)
    worth = np.minimum(pool, budget / (c0 + c1 * votes)) * relative_efficiency(votes, alpha0)
    return votes[worth.argmax()], worth.max()


CASES = [(c0, c1, a) for c0 in (0.2, 1.0, 8.0, 90.0) for c1 in (0.5, 2.0) for a in (0.1, 1.0, 5.0, 60.0)]


@pytest.mark.parametrize("c0, c1, a", CASES)
def test_budget_numerically(c0, c1, a):
    root = np.sqrt(a * c0 / c1)
    found, worth = best_on_a_grid(c0, c1, a)
    assert found == pytest.approx(max(1, root), rel=3e-4)
    limit = (np.sqrt(c0) + np.sqrt(a * c1)) ** 2 / (1 + a) - c0 if root >= 1 else c1
    assert worth == pytest.approx(1 / (c0 + limit), rel=1e-6)
    assert limit <= c1 * (1 + 1e-12)
    for m_n in (0.4, 3.0, 50.0):  # votes an item on the whole pool
        pool = 1 / (c0 + c1 * m_n)
        assert best_on_a_grid(c0, c1, a, pool)[0] == pytest.approx(max(1, root, m_n), rel=3e-4)
    for factor in (0.25, 0.5, 2, 4):
        votes = factor * root
        if votes >= 1 and root >= 1:
            assert relative_efficiency(votes, a) / (c0 + c1 * votes) >= 4 * factor / (1 + factor) ** 2 * worth * (1 - 1e-12)


def test_budget_needs_its_formula():
    """Negative: the wrong roots are wrong on the grid too, and a tighter bound on the flat top does not hold."""
    for name, root in ROOTS.items():
        misses = sum(
            abs(max(1, float(root.subs({r0: c0**0.5, r1: c1**0.5, ra: a**0.5}))) / best_on_a_grid(c0, c1, a)[0] - 1) > 0.01
            for c0, c1, a in CASES)
        assert (misses == 0) == (name == "right"), name
    c1, a, factor = 1.0, 4.0, 2.0
    worth = relative_efficiency(np.array([4.0, 8.0]), a) / (4 + c1 * np.array([4.0, 8.0]))  # c0 = alpha0 c1
    assert worth[1] / worth[0] < 1.001 * 4 * factor / (1 + factor) ** 2
