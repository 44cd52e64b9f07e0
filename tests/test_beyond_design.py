"""What the chapters on correlated errors, small samples and budgets claim: symbolically, numerically, and negatively."""

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
import sympy as sp
from scipy import special, stats
from test_theorems import is_zero

from softlabel import TwoClassNormal, find_separation, fit_logistic, fit_logistic_batch, relative_efficiency

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
        assert is_zero(sp.diff(price(m), m).subs(m, root)) == (name == "right"), name
    root = ROOTS["right"]
    assert is_zero(price(root) - (r0 + ra * r1) ** 2)
    assert is_zero(price(m) - price(root) - (r1 * sp.sqrt(m) - ra * r0 / sp.sqrt(m)) ** 2)
    change = (price(m + 1) - price(m)) * m * (m + 1)
    assert is_zero(change - C1 * (m * (m + 1) - root**2))
    share = price(root) / price(k * root)
    assert is_zero(share.subs(r0, ra * r1) - 4 * k / (1 + k) ** 2)
    rest = sp.numer(sp.factor(sp.together(share - 4 * k / (1 + k) ** 2)))
    assert sp.simplify(rest / ((k - 1) ** 2 * (r0 - ra * r1) ** 2)).is_positive
    # What one may pay for the truth falls short of the price of a vote by a square.
    limit = price(root) / (1 + A) - C0
    assert is_zero(C1 - limit - (ra * r0 - r1) ** 2 / (1 + A))


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


# ------------------------------------------------------------------ Three rates of correlated errors, and a part that stays


def covariance_of_the_mean(n, labellers, g0, g_item, g_person, g_shared):
    pairs = g0 + (labellers - 1) * g_item + (n - 1) * g_person + (n - 1) * (labellers - 1) * g_shared
    return pairs / (n * labellers)


@cache
def score_covariance(n, labellers, item, person, field, alike):
    """Exact covariance of the mean score, over all outcomes of one latent model; no pairs are counted.

    One feature, y = -1 or 1, and a 1 with probability 1/2 + y/4. It is moved by what misleads all about the item, by a
    person's bias, and by a field over the features that all share: its values at -1 and 1 have the correlation ``alike``.
    """
    total = 0
    for y in product((-1, 1), repeat=n):
        for a in product((-1, 1), repeat=n):
            for b in product((-1, 1), repeat=labellers):
                for low, high in product((-1, 1), repeat=2):
                    chance = (1 + alike * low * high) / (4 * 2 ** (2 * n + labellers))
                    mean = within = 0
                    for y_j, a_j in zip(y, a):
                        x, shared = np.array([1, y_j]), high if y_j == 1 else low
                        shifts = [item * a_j + person * b_who + field * shared for b_who in b]
                        right = [Fraction(2 + y_j, 4) + shift for shift in shifts]
                        mean += x * sum(shifts)
                        within += np.outer(x, x) * sum(p * (1 - p) for p in right)
                    total += chance * (np.outer(mean, mean) + within)
    return total / (n * labellers) ** 2


def parts(item, person, field, alike):
    """The four covariances of that model: of a vote, of two on an item, by a person, and of two that share neither."""
    shared = field**2 * np.diag([(1 + alike) / 2, (1 - alike) / 2])  # E x x~' over two items
    unit = np.diag([Fraction(1)] * 2)
    return Fraction(3, 16) * unit, (item**2 + field**2) * unit, person**2 * np.diag([1, 0]) + shared, shared


EFFECTS = [[*map(Fraction, effects.split())] for effects in ("1/10 1/16 0 0", "1/12 1/20 1/10 0", "1/20 0 1/8 1/3")]


def test_three_rates_symbolically():
    """A sum over all pairs of votes, of any four covariances."""
    g = sp.symbols("g0 gI gL gS")
    n, labellers = sp.symbols("n L", positive=True)
    formula = covariance_of_the_mean(n, labellers, *g)
    altered = {
        "item and labeller swapped": formula.subs({g[1]: g[2], g[2]: g[1]}, simultaneous=True),
        "no fourth term": formula.subs(g[3], 0),
        "all pairs in the fourth term": formula + g[3] * (n * labellers - (n - 1) * (labellers - 1)) / (n * labellers),
        "n for n - 1": formula + (g[2] + (labellers - 1) * g[3]) / (n * labellers),
    }
    for size in ((2, 3), (5, 4), (3, 2)):
        votes = list(product(range(size[0]), range(size[1])))
        covariance = {(True, True): g[0], (True, False): g[1], (False, True): g[2], (False, False): g[3]}
        mean = sum(covariance[a[0] == b[0], a[1] == b[1]] for a in votes for b in votes) / sp.Integer(len(votes)) ** 2
        at = {n: size[0], labellers: size[1]}
        assert is_zero(mean - formula.subs(at))
        for name, wrong in altered.items():
            assert not is_zero(mean - wrong.subs(at)), name
    assert sp.limit(formula.subs(g[3], 0), n, sp.oo) == g[2] / labellers
    assert sp.limit(sp.limit(formula, n, sp.oo), labellers, sp.oo) == g[3]
    # What the two-way sandwich leaves out, in the end, is more than what it shows by a factor that grows with L.
    shown = formula - (n - 1) / n * g[3]
    assert sp.limit(sp.limit(formula / shown, n, sp.oo) / labellers, labellers, sp.oo) == g[3] / (g[2] - g[3])


def efficiency_of_shared_errors(n, labellers, alpha0, share):
    """Dirichlet-multinomial votes whose items share errors; ``share`` is tr(J I^-1 Gamma_S I^-1) / tr(J I^-1)."""
    return 1 / ((labellers + alpha0) / (labellers * (1 + alpha0)) + (n - 1) * share)


def test_shared_errors_make_votes_worthless_symbolically():
    n, labellers, alpha0, share, one = sp.symbols("n L alpha0 share tr", positive=True)
    # Traces against J I^-1: of Gamma_0 one, of Gamma_I the paper's share of it; Gamma_L = Gamma_S.
    shared = share * one
    votes = covariance_of_the_mean(n, labellers, one, one / (1 + alpha0), shared, shared)
    efficiency = efficiency_of_shared_errors(n, labellers, alpha0, share)
    assert is_zero(one / n / votes - efficiency)
    assert sp.limit(efficiency, n, sp.oo) == 0
    assert sp.limit(n * efficiency, n, sp.oo) == 1 / share  # whatever the number of labellers
    theorem_2 = labellers * (1 + alpha0) / (labellers + alpha0)
    assert is_zero(efficiency.subs(share, 0) - theorem_2)  # where nothing is shared the limit is not zero


@pytest.mark.parametrize("n, labellers", [(2, 2), (3, 2), (2, 3)])
def test_three_rates_by_enumeration(n, labellers):
    for effects in EFFECTS:
        assert (score_covariance(n, labellers, *effects) == covariance_of_the_mean(n, labellers, *parts(*effects))).all()


def test_three_rates_need_all_four_parts():
    """Negative: each part left out is missed, so is the third condition of a theorem without the fourth."""
    found, right = score_covariance(3, 2, *EFFECTS[1]), parts(*EFFECTS[1])
    wrong = [[part * int(k != left_out) for k, part in enumerate(right)] for left_out in range(4)]
    g0, g_item, g_person, g_shared = right
    wrong += [[g0, g_person, g_item, g_shared], [g0, g_item, g_person - g_shared, g_shared]]  # Gamma_L has Gamma_S in it
    for k, other in enumerate(wrong):
        assert (found != covariance_of_the_mean(3, 2, *other)).any(), k


PAIR = TwoClassNormal.canonical(2)


def features_of_the_pair():
    """Masses on a grid, features with intercept, posteriors, and x / |x|."""
    y1, y2 = np.meshgrid(np.linspace(-7, 7, 57), np.linspace(-6, 6, 49), indexing="ij")
    Y = np.stack([y1, y2], axis=-1).reshape(-1, 2)
    w = np.exp(-(Y[:, 1] ** 2) / 2) * (np.exp(-((Y[:, 0] - 1) ** 2) / 2) + np.exp(-((Y[:, 0] + 1) ** 2) / 2))
    x = np.insert(Y, 0, 1, axis=1)
    return w / w.sum(), x, special.expit(2 * Y[:, 0]), x / np.linalg.norm(x, axis=1, keepdims=True)


def shared_opinion(share, rng, size=300):
    """One opinion for all: excess errors of the coefficients to which votes tend, and h(F), from the same draws of F.

    A vote at y is 1 with probability Phi[{Phi^-1(tau) - sqrt(share) c'x/|x|} / sqrt(1 - share)], of mean tau over c. The
    coefficients solve E x (q - expit(b'x)) = 0 on a grid of the features.
    """
    w, x, tau, unit = features_of_the_pair()
    excess, h = [], []
    for c in rng.standard_normal((size, 3)):
        for sign in (1, -1):  # antithetic
            q = special.ndtr((special.ndtri(tau) - np.sqrt(share) * sign * unit @ c) / np.sqrt(1 - share))
            b = PAIR.coef.copy()
            step = np.inf
            while np.abs(step).max() > 1e-9:
                fitted = special.expit(x @ b)
                step = np.linalg.solve((x.T * (w * fitted * (1 - fitted))) @ x, x.T @ (w * (q - fitted)))
                b = b + step
            excess.append(float(PAIR.error_rate(b)) - PAIR.bayes_error())
            h.append(x.T @ (w * (q - tau)))
    return np.array(excess), np.array(h)


def floor(gamma_shared):
    """Of the excess error, to first order."""
    inverse = np.linalg.inv(PAIR.fisher_information())
    return np.trace(PAIR.error_curvature() @ inverse @ gamma_shared @ inverse)


def test_floor_of_shared_errors_numerically():
    """As the shared part becomes small, the excess error that stays is the floor; the draws are the same for both."""
    ratio = {}
    for share in (0.002, 0.1):
        excess, h = shared_opinion(share, np.random.default_rng(81))
        ratio[share] = excess.mean() / floor(h.T @ h / len(h))
    assert ratio[0.002] == pytest.approx(1, abs=0.01)
    assert abs(ratio[0.1] - 1) > 0.01  # to first order only


def sandwiches(Y, votes):
    """Of the fits to votes (sets, n, L), the last coefficient and its variances, by item and two-way."""
    labellers = votes.shape[2]
    x, s = np.insert(Y, 0, 1, axis=2), votes.sum(axis=2)
    xt = x.swapaxes(1, 2)
    coef = fit_logistic_batch(Y, np.stack([s, labellers - s], axis=-1)).coef
    tau = special.expit(x @ coef[..., None])
    r = votes - tau
    bread = np.linalg.inv(labellers * xt @ (x * tau * (1 - tau)))
    same_item, same_vote = (xt @ (x * v[..., None]) for v in (r.sum(axis=2) ** 2, (r**2).sum(axis=2)))
    by_person = xt @ r
    both = same_item + by_person @ by_person.swapaxes(1, 2) * labellers / (labellers - 1) - same_vote
    return coef[:, 2], *((bread @ middle @ bread)[:, 2, 2] for middle in (same_item, both))


def parts_of_opinions(own, common):
    """The four covariances where each labeller has an opinion and all share another, by quadrature."""
    w, x, tau, unit = features_of_the_pair()

    def mistakes(opinion, share):
        return special.ndtr((special.ndtri(tau)[:, None] - np.sqrt(share) * opinion) / np.sqrt(1 - share)) - tau[:, None]

    def of_a_person(share):
        node, mass = np.polynomial.hermite_e.hermegauss(8)
        c, mass = (np.array(list(product(v, repeat=3))) for v in (node, mass / mass.sum()))
        h = (x.T * w) @ mistakes(unit @ c.T, share)
        return (h * np.prod(mass, axis=1)) @ h.T

    node, mass = np.polynomial.hermite_e.hermegauss(30)  # on one item, what two share is a normal number
    item = mistakes(node, common) ** 2 @ mass / mass.sum()
    return (x.T * (w * tau * (1 - tau))) @ x, (x.T * (w * item)) @ x, of_a_person(own + common), of_a_person(common)


def votes_by_opinions(own, common, n, labellers, rng, size):
    """Features (sets, n, 2) and votes (sets, n, L)."""
    Y, _ = PAIR.sample(n, rng, size=size)
    x = np.insert(Y, 0, 1, axis=2)
    unit = x / np.linalg.norm(x, axis=2, keepdims=True)
    opinions = np.sqrt(own) * rng.standard_normal((size, 3, labellers)) + np.sqrt(common) * rng.standard_normal((size, 3, 1))
    q = special.ndtr((special.ndtri(PAIR.posterior(Y)[..., :1]) - unit @ opinions) / np.sqrt(1 - own - common))
    return Y, rng.random(q.shape) < q


def shown_by_fits(own, common, n, labellers, rng, size):
    """Of so many fits, in parts of a hundred."""
    samples = (votes_by_opinions(own, common, n, labellers, rng, 100) for _ in range(size // 100))
    return np.concatenate([sandwiches(*sample) for sample in samples], axis=1)


def variance_of_the_last(V):
    """Of the last coefficient, I^-1 V I^-1."""
    inverse = np.linalg.inv(PAIR.fisher_information())
    return (inverse @ V @ inverse)[2, 2]


def counted_by_item(n, labellers, g0, g_item):
    """V as the sandwich by item shows it, where all share nothing: the first two terms."""
    return covariance_of_the_mean(n, labellers, g0, g_item, 0 * g0, 0 * g0)


def test_sandwiches_are_those_of_the_package():
    Y, votes = votes_by_opinions(0.04, 0.02, 200, 6, np.random.default_rng(85), 2)
    for data, kept, *shown in zip(Y, votes, *sandwiches(Y, votes)):
        s = kept.sum(axis=1)
        fit = fit_logistic(data, np.column_stack([s, 6 - s]))
        assert (fit.coef[2], fit.cov()[2, 2]) == pytest.approx(tuple(shown[:2]), rel=1e-9)


def test_covariance_of_the_coefficients_numerically():
    """I^-1 V I^-1, which falls to a floor; the sandwich by item sees two terms, so that its share in it falls like 1 / n."""
    labellers, excess = 15, {}
    g0, g_item, g_person, g_shared = parts_of_opinions(0.04, 0)
    stays = variance_of_the_last(g_person) / labellers
    for n, size in ((100, 1200), (1600, 500)):
        last, by_item, _ = shown_by_fits(0.04, 0, n, labellers, np.random.default_rng(n), size)
        square = last**2
        right = variance_of_the_last(covariance_of_the_mean(n, labellers, g0, g_item, g_person, g_shared))
        counted = variance_of_the_last(counted_by_item(n, labellers, g0, g_item))
        assert abs(square.mean() - right) < 4 * stats.sem(square)
        assert by_item.mean() == pytest.approx(counted, rel=0.04)
        excess[n] = right / counted - 1
        assert right - counted == pytest.approx((1 - 1 / n) * stays)
    assert excess[1600] / excess[100] == pytest.approx(1599 / 99)
    # Negative: at 1,600 items what the sandwich by item shows is far from the variance.
    assert abs(square.mean() - counted) > 8 * stats.sem(square)


def variance_shown(n, labellers, g0, g_item, g_person, g_shared):
    """V as the two-way sandwich shows it: without what all votes share."""
    V = covariance_of_the_mean(n, labellers, g0, g_item, g_person, g_shared) - (n - 1) / n * g_shared
    return variance_of_the_last(V)


def test_the_two_way_sandwich_shows_all_but_the_shared_part():
    """Opinions of each and of all: its mean over studies is V less (n - 1) / n Gamma_S."""
    n, labellers, own, common, rng = 400, 15, 0.04, 0.02, np.random.default_rng(84)
    parts_of_votes = parts_of_opinions(own, common)
    found = shown_by_fits(own, common, n, labellers, rng, 800)[1:]
    mean, se = found.mean(axis=1), stats.sem(found, axis=1)
    right = variance_shown(n, labellers, *parts_of_votes)
    assert mean[1] == pytest.approx(right, rel=0.06)  # it is 3% or so below: the opinions are not small
    # No pair of items is counted by item: less than the first two terms, for the fit takes up some of the shared part.
    first_two = variance_of_the_last(counted_by_item(n, labellers, *parts_of_votes[:2]))
    assert mean[0] < first_two - 4 * se[0]
    # Negative: far from all of V.
    assert mean[1] < variance_of_the_last(covariance_of_the_mean(n, labellers, *parts_of_votes)) - 8 * se[1]


def test_the_floor_needs_a_part_that_stays():
    """Negative: many opinions, one for each of many labellers, leave no floor, where one for all does."""
    rng, n = np.random.default_rng(82), 4000
    found = {}
    for name, opinions in (("one for all", 1), ("of each", 400)):
        rates = []
        for _ in range(40 if name == "one for all" else 10):
            Y, _ = PAIR.sample(n, rng)
            x = np.insert(Y, 0, 1, axis=1)
            u = x @ rng.standard_normal((3, opinions)) / np.linalg.norm(x, axis=1, keepdims=True)
            q = special.ndtr((special.ndtri(PAIR.posterior(Y)[:, :1]) - np.sqrt(0.1) * u) / np.sqrt(0.9)).mean(axis=1)
            s = rng.binomial(400, q)  # given the opinions; each of 400 labellers votes once
            rates.append(float(PAIR.error_rate(fit_logistic(Y, np.column_stack([s, 400 - s])).coef)) - PAIR.bayes_error())
        found[name] = np.array(rates)
    _, h = shared_opinion(0.1, np.random.default_rng(83), size=100)
    stays = floor(h.T @ h / len(h))
    assert found["one for all"].mean() == pytest.approx(stays, abs=4 * found["one for all"].std() / np.sqrt(40) + 0.1 * stays)
    assert found["of each"].mean() < 0.05 * stays


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
    assert is_zero(split - 2 * t * (1 - t) * a0 / (1 + a0))
    assert not is_zero(split - 2 * t * (1 - t))


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
