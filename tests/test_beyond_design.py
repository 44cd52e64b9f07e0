"""What the chapters on correlated errors, small samples and budgets claim: symbolically, numerically, and negatively."""

import numpy as np
import pytest
import sympy as sp

from softlabel import find_separation, relative_efficiency

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
            for c0, c1, a in CASES
        )
        assert (misses == 0) == (name == "right"), name
    c1, a, factor = 1.0, 4.0, 2.0
    worth = relative_efficiency(np.array([4.0, 8.0]), a) / (4 + c1 * np.array([4.0, 8.0]))  # c0 = alpha0 c1
    assert worth[1] / worth[0] < 1.001 * 4 * factor / (1 + factor) ** 2


# ------------------------------------------------------------------ Three rates of correlated errors


def score_covariance(n, labellers, rate, rng, size=40_000):
    """Empirical covariance of the mean score over studies, and the three parts of the theorem, from one latent model.

    One feature, -1 or 1, with probability 3/4 of a 1 or a 0 at its place; opinions move these by ``rate``: a person's bias
    and slope, the item's difficulty, and what all people have in common.
    """
    person, item, school = rate
    y = rng.choice([-1.0, 1.0], (size, n, 1))
    x = np.stack([np.ones_like(y), y], axis=-1)
    bias, slope = (rng.choice([-1.0, 1.0], (size, 1, labellers)) for _ in range(2))
    common = rng.choice([-1.0, 1.0], (size, 1, 1))
    shift = person * (bias + slope * y) / 2 + item * rng.choice([-1.0, 1.0], (size, n, 1)) + school * common
    tau = 0.5 + y / 4
    votes = rng.random((size, n, labellers)) < tau + shift
    score = (x * (votes - tau)[..., None]).mean(axis=(1, 2))
    one = np.diag([1.0, 1.0])  # E x x'
    parts = (
        3 / 16 * one,
        item**2 * one,
        person**2 / 4 * one,
    )  # E tau (1 - tau); mean of x x' shift^2; h = person (bias, slope) / 2
    return score, parts


def covariance_of_three_rates(n, labellers, g0, g_item, g_person):
    return (g0 + (labellers - 1) * g_item + (n - 1) * g_person) / (n * labellers)


def departure(score, parts, n, labellers, keep=(1, 1, 1)):
    """Largest distance of the empirical covariance from the formula, in standard errors."""
    right = covariance_of_three_rates(n, labellers, *(k * part for k, part in zip(keep, parts)))
    products = score[:, :, None] * score[:, None, :]
    return (np.abs(products.mean(axis=0) - right) / (products.std(axis=0) / np.sqrt(len(score)))).max()


def test_three_rates_symbolically():
    """A sum over all pairs of votes, of any three covariances."""
    g0, g_item, g_person = sp.symbols("g0 gI gL")
    n, labellers = sp.symbols("n L", positive=True)
    formula = covariance_of_three_rates(n, labellers, g0, g_item, g_person)
    swapped = covariance_of_three_rates(n, labellers, g0, g_person, g_item)
    for size in ((1, 4), (3, 1), (2, 3), (5, 4)):
        votes = [(j, who) for j in range(size[0]) for who in range(size[1])]
        covariance = {(True, True): g0, (True, False): g_item, (False, True): g_person, (False, False): 0}
        mean = sum(covariance[a[0] == b[0], a[1] == b[1]] for a in votes for b in votes) / sp.Integer(len(votes)) ** 2
        assert sp.simplify(mean - formula.subs({n: size[0], labellers: size[1]})) == 0
        assert size[0] == size[1] or sp.simplify(mean - swapped.subs({n: size[0], labellers: size[1]})) != 0
    assert sp.limit(formula, n, sp.oo) == g_person / labellers
    # The paper's model: pairs on one item have covariance I / (1 + alpha0), and no others.
    alpha0 = sp.symbols("alpha0", positive=True)
    paper = formula.subs({g_item: g0 / (1 + alpha0), g_person: 0})
    assert sp.simplify(paper - g0 / n * (labellers + alpha0) / (labellers * (1 + alpha0))) == 0


@pytest.mark.parametrize("n, labellers", [(6, 3), (20, 2), (3, 10)])
def test_three_rates_numerically(n, labellers):
    score, parts = score_covariance(n, labellers, (0.1, 0.1, 0.0), np.random.default_rng(n))
    assert departure(score, parts, n, labellers) < 5


def test_three_rates_need_all_three_and_no_school():
    """Negative: each part left out is missed, and so is what all people have in common (condition 3)."""
    rng = np.random.default_rng(3)
    score, parts = score_covariance(20, 4, (0.15, 0.08, 0.0), rng)
    assert departure(score, parts, 20, 4) < 5
    for keep in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        assert departure(score, parts, 20, 4, keep) > 8, keep
    score, parts = score_covariance(20, 4, (0.1, 0.05, 0.05), rng)
    assert departure(score, parts, 20, 4) > 8


# ------------------------------------------------------------------ Who has an estimate


def cover(n, p):
    """Share of all labellings of n items in p features, and an intercept, that a plane separates."""
    return sp.Rational(sum(sp.binomial(n - 1, j) for j in range(p + 1)), 2 ** (n - 1))


def separated_labellings(n, p, seed):
    """The share, by a linear program for each labelling of points at random."""
    X = np.random.default_rng(seed).standard_normal((n, p))
    labels = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return np.mean([find_separation(X, z) != "none" for z in labels])


def test_cover_symbolically():
    n = sp.symbols("n", integer=True, positive=True)
    for d in range(2, 6):  # C(n + 1, d) = C(n, d) + C(n, d - 1), by Pascal's rule
        count = [2 * sum(sp.binomial(k, j) for j in range(e)) for k, e in ((n, d), (n - 1, d), (n - 1, d - 1))]
        assert sp.simplify(sp.expand_func(count[0] - count[1] - count[2])) == 0
        assert sp.simplify(sp.expand_func(count[0] - 2 * count[1])) != 0
    for p in range(1, 12):
        assert cover(p + 1, p) == 1 and cover(2 * (p + 1), p) == sp.Rational(1, 2)
        assert cover(p + 2, p) < 1
    # Two votes on one item: 1 - P(2) - P(0), from p ~ Beta.
    t, a0 = sp.symbols("tau alpha0", positive=True)
    split = 1 - sum(a0 * s * (a0 * s + 1) / (a0 * (a0 + 1)) for s in (t, 1 - t))
    assert sp.simplify(split - 2 * t * (1 - t) * a0 / (1 + a0)) == 0
    assert sp.simplify(split - 2 * t * (1 - t)) != 0


@pytest.mark.parametrize("n, p", [(4, 1), (6, 1), (5, 2), (8, 2), (7, 3)])
def test_cover_by_counting_all_labellings(n, p):
    for seed in (1, 2, 3):  # general position is enough: the share does not depend on where the points are
        assert separated_labellings(n, p, seed) == pytest.approx(float(cover(n, p)), abs=1e-12)


def with_splits(n, p, splits, rng):
    """Votes of three on random items, as separated as can be but for the items with votes on both sides."""
    X = rng.standard_normal((n, p))
    counts = np.where(X[:, :1] > 0, [[3, 0]], [[0, 3]])
    counts[rng.permutation(n)[:splits]] = [2, 1]
    return X, counts


def test_split_items_give_an_estimate():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(1, 5))
        X, counts = with_splits(15, p, p + 1, rng)
        assert find_separation(X, counts) == "none"


def test_fewer_split_items_or_planes_do_not():
    """Negative: p split items may lie on a separating plane; so may any number without a density; and a wrong dimension."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((15, 3))
    X[:3, 0] = 0  # the p split items, on the plane that separates the others
    counts = np.where(X[:, :1] > 0, [[3, 0]], [[0, 3]])
    counts[:3] = [2, 1]
    assert find_separation(X, counts) == "quasi"
    X[:10, 0], counts[:10] = 0, [2, 1]
    assert find_separation(X, counts) == "quasi"
    assert separated_labellings(7, 2, 1) != pytest.approx(float(cover(7, 1)), abs=1e-3)
    assert separated_labellings(7, 2, 1) != pytest.approx(float(cover(8, 2)), abs=1e-3)
    lattice = np.array([[i, j] for i in range(3) for j in range(2)], dtype=float)
    labels = (np.arange(2**6)[:, None] >> np.arange(6)) & 1
    share = np.mean([find_separation(lattice, z) == "complete" for z in labels])
    assert share < float(cover(6, 2)) - 0.05
