"""Each step that looks for a fault, on votes of which the answer is known; and what must not be taken for it."""

from itertools import combinations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from scipy.stats import fisher_exact

from softlabel.labellers import annotator_faults as faults
from softlabel.labellers import feature_faults as features
from softlabel.labellers.exchangeable import Panel, Prediction, Slopes, follow, of_others, predict
from softlabel.labellers.search import LEVELS


def drawn(seed=0, n=500, J=5, m=None, p=2, alpha0=5.0, numbers=None, beta=1.4):
    """Interchangeable annotators, and each item's probability of a positive vote."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    tau = expit(beta * x @ np.ones(p))
    chance = rng.beta(alpha0 * tau, alpha0 * (1 - tau))
    who = rng.permuted(np.tile(np.arange(J), (n, 1)), axis=1)[:, : m or J]
    asked = np.arange(who.shape[1]) < (np.full(n, who.shape[1]) if numbers is None else numbers)[:, None]
    item = np.repeat(np.arange(n), asked.sum(axis=1))
    y = (rng.random(len(item)) < chance[item]).astype(float)
    return Panel(item, who[asked], y, x, J), chance.clip(1e-6, 1 - 1e-6)


def changed(panel, who, y):
    return Panel(panel.item, panel.annotator, np.where(np.isin(panel.annotator, who), y, panel.y), panel.x, panel.n_annotators)


def coins(panel, *who, rate=0.5):
    return changed(panel, who, np.random.default_rng(9).random(len(panel.y)) < rate)


def rng():
    return np.random.default_rng(0)


def test_all_levels_together_are_one_percent():
    assert sum(LEVELS.values()) + LEVELS["crowd"] == pytest.approx(0.01)


# ------------------------------------------------------------------ asked again


def third_votes(seed=0, n=200, share=1.0):
    panel, chance = drawn(seed, n=n, J=6, m=2)
    draw = np.random.default_rng(seed + 1)
    again = np.flatnonzero((panel.s == 1) & (draw.random(n) < share))
    third = np.array([draw.choice(np.setdiff1d(np.arange(6), panel.annotator[panel.item == i])) for i in again])
    y = (draw.random(len(again)) < chance[again]).astype(float)
    return Panel(np.r_[panel.item, again], np.r_[panel.annotator, third], np.r_[panel.y, y], panel.x, 6)


def test_third_votes_on_disagreement():
    panel = third_votes()
    found = faults.asked_again(panel, predict(panel), 0.001)
    assert (found.fewest, found.always) == (2, True)
    assert faults.asked_again(panel, predict(panel), found.pvalue) is None
    some = third_votes(share=0.8)
    assert not faults.asked_again(some, predict(some), 0.001).always


def test_chance_that_all_with_more_votes_are_split_and_no_other():
    """With one probability for all, of k of n items with a third vote: the best q of (1 - 2q)^(n - k) (3q)^k, q below 1/4."""
    panel = third_votes(n=60)
    k = int((panel.m == 3).sum())
    found = faults.asked_again(panel, Prediction(np.full(60, 0.5), 0.3), 0.001)
    best = minimize_scalar(lambda q: -(60 - k) * np.log(1 - 2 * q) - k * np.log(3 * q), bounds=(1e-6, 0.25), method="bounded")
    assert np.log(found.pvalue) == pytest.approx(-best.fun, abs=0.1) and 5 < k < 30
    sure = np.where(panel.m == 3, 0.5, 1e-4)  # features that know which items are hard explain most of it
    assert faults.asked_again(panel, Prediction(sure, 0.3), 1.0).pvalue == pytest.approx(0.75**k, rel=0.2)


def test_further_votes_with_another_reason_too():
    """Some of the further votes are on items on which the first two agree: no rule, but repulsion."""
    panel, more = third_votes(n=1500), third_votes(1, n=1500)
    also = np.flatnonzero((panel.m == 2) & (np.arange(1500) % 40 == 0))
    extra = (np.random.default_rng(2).random(len(also)) < panel.s[also] / 2).astype(float)
    third = np.array([np.setdiff1d(np.arange(6), panel.annotator[panel.item == i])[0] for i in also])
    mixed = Panel(np.r_[panel.item, also], np.r_[panel.annotator, third], np.r_[panel.y, extra], panel.x, 6)
    found = faults.asked_again(mixed, predict(mixed), 0.001)
    assert found is not None and not found.always and found.pvalue < 0.001
    assert faults.asked_again(more, predict(more), 0.001).always


@pytest.mark.parametrize("seed", range(4))
def test_more_votes_for_hard_items_are_no_such_design(seed):
    eta = 1.4 * np.random.default_rng(seed).normal(size=(500, 2)) @ np.ones(2)
    panel, _ = drawn(seed, numbers=np.where(np.abs(eta) < 1, 5, 2))
    assert faults.asked_again(panel, predict(panel), 0.05) is None


def test_camps_are_no_such_design():
    panel, _ = drawn(1, J=3, numbers=np.random.default_rng(0).integers(2, 4, 500), alpha0=1.0)
    against = panel.turned([0])
    assert faults.asked_again(against, predict(against), 0.001) is None


# ------------------------------------------------------------------ contradiction


def test_two_camps_and_one_in_neither():
    panel = coins(drawn(2, J=6)[0].turned([1, 4]), 5)
    found = faults.camps(panel, 0.001)
    assert found.one.tolist() == [0, 2, 3] and found.other.tolist() == [1, 4]
    assert found.minority == 0.4 and found.pvalue < 1e-6


def test_correlations_of_annotators_are_those_of_their_votes():
    panel = drawn(3, n=80, J=4)[0].turned([1])
    votes = np.zeros((4, 80))
    votes[panel.annotator, panel.item] = panel.y
    found, chance = faults.correlations(panel)
    np.testing.assert_allclose(found, np.corrcoef(votes) - np.eye(4), atol=1e-12)
    tables = [[[(a & b).sum(), (a & ~b).sum()], [(~a & b).sum(), (~a & ~b).sum()]] for a, b in combinations(votes > 0, 2)]
    assert chance == pytest.approx(6 * min(fisher_exact(table, "less").pvalue for table in tables))


def test_interchangeable_annotators_are_no_camps():
    """Nor are guessers, whose correlations are zero: of 200 tables of five coins, one in a hundred at most."""
    assert all(faults.camps(drawn(seed, n=100)[0], 0.01) is None for seed in range(50))
    found = [faults.camps(drawn(seed, n=60, beta=0.0, alpha0=1e6)[0], 0.05) for seed in range(200)]
    assert sum(f is not None for f in found) <= 20  # 99.9% quantile of a binomial of 200 with .05


@pytest.mark.parametrize("seed", range(3))
def test_two_are_opposed_if_each_goes_against_the_other(seed):
    panel = drawn(seed, n=400, J=2, alpha0=1e9)[0]
    assert faults.opposed(panel.turned([1])) < 1e-4
    assert faults.opposed(panel) > 0.5
    assert min(faults.opposed(coins(panel, who)) for who in (0, 1)) > 0.01  # whose slope may be anything beside a coin


# ------------------------------------------------------------------ one by one


def odd(panel, level=0.0015, level_lean=0.002):
    return faults.one_by_one(panel, predict(panel), level, level_lean)[0]


def test_a_reversed_one_has_slope_minus_one():
    (found,) = odd(drawn(3)[0].turned([2]))
    assert (found.who, found.kind) == (2, "reversed") and found.slope == pytest.approx(-1, abs=0.35)


def test_guessers_have_slope_zero():
    found = odd(coins(drawn(4, J=7)[0], 1, 5))
    assert sorted(f.who for f in found) == [1, 5] and {f.kind for f in found} == {"guessing"}
    assert all(abs(f.slope) < 0.25 for f in found)


def test_who_always_says_yes_guesses():
    (found,) = odd(coins(drawn(5)[0], 3, rate=1.0))
    assert (found.who, found.kind) == (3, "guessing")


def test_a_lean_has_its_size():
    panel, chance = drawn(6, n=2000, alpha0=1e6)
    more = np.random.default_rng(1).random(len(panel.y)) < expit(logit(chance) + 1)[panel.item]
    (found,) = odd(changed(panel, [4], more))
    assert (found.who, found.kind) == (4, "leans") and found.lean == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("scale", [0.6, 2.0])
def test_timid_and_bold_ones_are_spared(scale):
    panel, chance = drawn(7, n=3000)
    own = np.random.default_rng(1).random(len(panel.y)) < expit(scale * logit(chance))[panel.item]
    assert odd(changed(panel, [0], own)) == []


def test_kinds_by_slope():
    def kind(slope, error):
        return faults.kind_of(Slopes(*np.array([[0.0], [slope], [0.1], [error], [0.0]])), 0)

    assert [kind(-1, 0.3), kind(-0.5, 0.3), kind(0.2, 0.1), kind(0.35, 0.1)] == ["reversed", "guessing", "guessing", None]


# ------------------------------------------------------------------ a crowd


def test_squares_of_z_values_of_a_crowd_as_of_all_deals():
    """The chance is uniform for interchangeable workers, and next to nothing if a quarter of them guess."""
    chances = []
    for seed in range(60):
        panel, _ = drawn(seed, n=120, J=40, m=4)
        chances.append(faults.crowd_differs(panel, predict(panel), np.random.default_rng(seed)))
    low = (np.array(chances) < 0.1).sum(axis=0)
    assert (low <= 15).all() and (low >= 1).all()  # of 60 with .1: .1% and 99.9%
    panel = coins(drawn(0, n=600, J=40, m=5)[0], *range(10))
    assert faults.crowd_differs(panel, predict(panel), rng())[0] < 1e-6


def test_the_parts_of_a_crowd():
    panel = coins(drawn(1, n=2500, J=100, m=5)[0].turned(range(90, 100)), *range(30))
    found = faults.crowd(panel)
    np.testing.assert_allclose(found.shares, [0.6, 0.3, 0.1], atol=0.03)
    assert set(found.named(1)) <= set(range(30)) and len(found.named(1)) > 25
    assert found.named(2).tolist() == list(range(90, 100))
    np.testing.assert_allclose(found.posterior.sum(axis=1), 1)


def test_workers_who_lean_are_no_guessers():
    """A quarter of the crowd lean by two; none is named as guessing, and the guessers are."""
    panel, chance = drawn(3, n=2000, J=80, m=5, alpha0=20.0)
    leans = np.random.default_rng(0).random(len(panel.y)) < expit(logit(chance) + 1.5)[panel.item]
    found = faults.crowd(coins(changed(panel, range(20), leans), *range(20, 30)))
    assert set(found.named(1)) <= set(range(20, 30)) and len(found.named(1)) >= 6
    np.testing.assert_allclose(found.shares, [70 / 80, 10 / 80, 0], atol=0.04)


# ------------------------------------------------------------------ copies


def test_copies_are_found_with_their_size():
    panel, _ = drawn(8, n=600, J=6)
    own = np.zeros((6, 600))
    own[panel.annotator, panel.item] = panel.y
    copied = np.where(np.random.default_rng(0).random(len(panel.y)) < 0.9, own[2, panel.item], panel.y)
    (found,) = faults.copies(changed(panel, [4], copied), 0.002)
    assert found.who.tolist() == [2, 4] and 0.8 < found.excess < 1
    both = changed(changed(panel, [4], copied), [5], copied)
    assert faults.copies(both, 0.002)[0].who.tolist() == [2, 4, 5]
    assert faults.copies(panel, 0.05) == []


# ------------------------------------------------------------------ signal


def test_what_features_explain_is_the_f_test():
    panel, _ = drawn(9, n=60, p=3, beta=0.15)
    fit = sm.OLS(panel.s, sm.add_constant(panel.x)).fit()
    assert features.signal(panel).features == pytest.approx(fit.f_pvalue, rel=1e-8) and fit.f_pvalue > 1e-4


def test_agreement_is_beside_shuffled_votes():
    panel, _ = drawn(10, n=80, J=4, beta=0.25, alpha0=30.0)

    def products(q):
        r = q.y - (q.total(q.y) / q.cast)[q.annotator]
        total = np.bincount(q.item, weights=r)
        return (total**2 - np.bincount(q.item, weights=r**2)).sum() / 2

    draw = np.random.default_rng(0)
    shuffled = []
    for _ in range(4000):
        y = panel.y.copy()
        for who in range(4):
            mine = panel.annotator == who
            y[mine] = draw.permutation(y[mine])
        shuffled.append(products(Panel(panel.item, panel.annotator, y, panel.x, 4)))
    share = (np.array(shuffled) >= products(panel)).mean()
    assert 0.005 < share < 0.5
    assert features.signal(panel).agreement == pytest.approx(share, abs=0.02)


def test_nothing_to_look_at_is_nan():
    panel, _ = drawn(0, n=30, p=1)
    single = panel.only(panel.annotator == 0)
    assert np.isnan(features.signal(single).agreement)
    assert np.isnan(features.signal(Panel(panel.item, panel.annotator, panel.y, np.zeros((30, 0)), 5)).features)


# ------------------------------------------------------------------ leaks


def with_feature(panel, feature):
    feature = (feature - feature.mean()) / feature.std()
    return Panel(panel.item, panel.annotator, panel.y, np.column_stack([panel.x, feature]), panel.n_annotators)


def vote_of(panel, who):
    return np.bincount(panel.item, weights=panel.y * (panel.annotator == who), minlength=panel.n_items)


def test_a_vote_as_feature():
    panel, _ = drawn(11, n=200)
    found = features.vote_as_feature(with_feature(panel, -vote_of(panel, 3)), 0.001)
    assert (found.feature, found.who) == (2, 3) and found.correlation == pytest.approx(-1)
    assert features.vote_as_feature(panel, 0.05) is None


def test_a_feature_that_everybody_follows_is_no_vote():
    """Votes all but equal to a feature, of everybody: it may be what decides."""
    panel, _ = drawn(12, n=300)
    decides = (panel.x[:, 0] > 0).astype(float)
    said = np.where(np.random.default_rng(0).random(len(panel.y)) < 0.002, 1 - decides[panel.item], decides[panel.item])
    clear = with_feature(changed(panel, range(5), said), decides)
    correlation = np.corrcoef(vote_of(clear, 0), clear.x[:, 2])[0, 1]
    assert correlation > features.SAME and features.vote_as_feature(clear, 0.001) is None


def test_a_feature_that_one_annotator_looks_at():
    panel, _ = drawn(13)
    noisy = with_feature(panel, vote_of(panel, 1) + 0.5 * np.random.default_rng(0).normal(size=500))
    found = features.tilted_feature(noisy, predict(noisy), 0.001)
    assert (found.feature, found.who) == (2, 1) and 0.5 < found.correlation < 0.9
    assert features.tilted_feature(panel, predict(panel), 0.001) is None


def test_one_who_is_timid_looks_at_no_other_feature():
    panel, chance = drawn(14, n=3000)
    own = np.random.default_rng(1).random(len(panel.y)) < expit(0.5 * logit(chance))[panel.item]
    timid = changed(panel, [0], own)
    assert features.tilted_feature(timid, predict(timid), 0.001) is None


def test_consensus_as_feature():
    panel, _ = drawn(15)
    leak = with_feature(panel, panel.s / panel.m + 0.1 * np.random.default_rng(0).normal(size=500))
    assert features.consensus_as_feature(leak, predict(leak), 0.0005) < 1e-6
    assert features.nearest_to_shares(leak)[0] == 2
    for alpha0 in (1e9, 5.0):
        honest, _ = drawn(16, alpha0=alpha0)
        assert features.consensus_as_feature(honest, predict(honest), 0.01) is None


def test_those_who_lean_apart_have_seen_no_votes():
    panel, chance = drawn(17, n=1000, J=4, alpha0=1e9)
    lean = np.array([-0.9, 0.9, -0.9, 0.9])[panel.annotator]
    y = np.random.default_rng(0).random(len(panel.y)) < expit(logit(chance)[panel.item] + lean)
    apart = changed(panel, range(4), y)
    assert features.consensus_as_feature(apart, predict(apart), 0.01) is None


# ------------------------------------------------------------------ repeated items


@pytest.mark.parametrize("times, jitter", [(2, 1e-3), (4, 1e-3), (2, 0.0)])
@pytest.mark.parametrize("p", [2, 40])
def test_near_copies(times, jitter, p):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(300, p))
    copies = np.repeat(draw.normal(size=(60, p)), times, axis=0)
    share = features.near_copies(np.concatenate([x, copies + jitter * draw.normal(size=copies.shape)]), rng())
    right = 60 * times / (300 + 60 * times)
    assert 0.75 * right < share < right + 0.03  # of four the second and third are among the neighbours, too


@pytest.mark.parametrize("p", [1, 2, 5, 60, 200])
def test_items_that_lie_close_by_chance(p):
    draw = np.random.default_rng(p)
    plane = draw.normal(size=(500, 2)) @ draw.normal(size=(2, p))
    for x in (draw.normal(size=(1000, p)), draw.standard_t(3, size=(400, p)), plane):
        assert features.near_copies(x, rng()) is None


def test_few_different_values_are_no_copies():
    """Nor are whole numbers, of which some items have the same and others are alone."""
    draw = np.random.default_rng(0)
    ages = np.column_stack([draw.integers(18, 70, 600), draw.poisson(3, 600), draw.integers(0, 2, 600)]).astype(float)
    assert not features.is_continuous(ages) and features.near_copies(ages, rng()) is None
    assert features.is_continuous(np.column_stack([ages, draw.normal(size=(600, 2))]))
    assert features.is_continuous(np.repeat(draw.normal(size=(50, 2)), 4, axis=0))
    assert features.near_copies(draw.integers(0, 2, (500, 5)).astype(float), rng()) is None
    assert features.near_copies(np.column_stack([draw.integers(0, 3, 500), draw.normal(size=500)]), rng()) is None


ROUNDED = {
    "alone": lambda age: [age],
    "with three decimals": lambda age: [(age * 7.919).round(3)],
    "and its square": lambda age: [age, age**2],
    "and its exponential": lambda age: [np.log(age), np.exp(age / 3)],
    "and whether it is large": lambda age: [age, age > 65],
    "and a rare sign": lambda age: [np.log(age), np.arange(len(age)) < 2],
}


@pytest.mark.parametrize("columns", ROUNDED.values(), ids=list(ROUNDED))
@pytest.mark.parametrize("n", [100, 300])
def test_one_rounded_feature_is_no_copy_of_items(columns, n):
    """Its values are all the different items that there can be: they were said to be copies, whatever the votes."""
    age = np.random.default_rng(n).integers(18, 90, n).astype(float)
    assert features.near_copies(np.column_stack(columns(age)), rng()) is None


# ------------------------------------------------------------------ the mean


def test_guesses_have_their_shares():
    panel, _ = drawn(18, n=4000, J=4, alpha0=1e9)
    draw = np.random.default_rng(0)
    for lo, hi in ((0.15, 0.15), (0.0, 0.3)):
        what = draw.choice(3, len(panel.y), p=[lo, hi, 1 - lo - hi])
        y = np.where(what == 0, 1.0, np.where(what == 1, 0.0, panel.y))
        guessed = changed(panel, range(4), y)
        found = features.guesses(guessed, predict(guessed), 0.003)
        assert found.positive == pytest.approx(lo, abs=0.03) and found.negative == pytest.approx(hi, abs=0.03)
    assert features.guesses(panel, predict(panel), 0.003) is None


def test_guesses_far_from_one_end_are_those_of_a_coin():
    """With a rare class nothing is known of a ceiling: two rates are not told apart."""
    panel, _ = drawn(23, n=6000, alpha0=1e9, beta=0.8)
    draw = np.random.default_rng(0)
    rare = draw.random(len(panel.y)) < expit(1.6 * panel.x.sum(axis=1) - 5)[panel.item]
    y = np.where(draw.random(len(panel.y)) < 0.04, draw.random(len(panel.y)) < 0.5, rare)
    guessed = changed(panel, range(5), y)
    found = features.guesses(guessed, predict(guessed), 0.005)
    assert found.positive == found.negative == pytest.approx(0.02, abs=0.006)


def test_a_missing_square():
    panel, _ = drawn(19, n=800, p=3, beta=0.0, alpha0=1e9)
    draw = np.random.default_rng(0)
    eta = panel.x[:, 0] + 0.6 * (panel.x[:, 1] ** 2 - 1)
    bent = changed(panel, range(5), draw.random(len(panel.y)) < expit(eta)[panel.item])
    found = features.missing_square(bent, predict(bent), 0.003)
    assert found.feature == 1 and found.pvalue < 1e-6 and found.size == pytest.approx(0.6, abs=0.12)
    bent = changed(panel, range(5), draw.random(len(panel.y)) < expit(panel.x[:, 0] - 0.3 * panel.x[:, 1] ** 2)[panel.item])
    assert features.missing_square(bent, predict(bent), 0.003).size == pytest.approx(-0.3, abs=0.12)
    straight = changed(panel, range(5), draw.random(len(panel.y)) < expit(panel.x[:, 0])[panel.item])
    assert features.missing_square(straight, predict(straight), 0.003) is None


def test_a_square_of_two_values_is_no_feature():
    panel, _ = drawn(20, n=400, p=1)
    two = with_feature(panel, (np.arange(400) % 2).astype(float))
    assert features.missing_square(two, predict(two), 0.01) is None


def test_twenty_items_of_the_rarer_class_for_each_coefficient():
    panel, _ = drawn(21, n=500, J=1)
    rarer = min(panel.s.sum(), 500 - panel.s.sum())
    enough = int(rarer // features.ENOUGH) - 1
    wide = [Panel(panel.item, panel.annotator, panel.y, np.zeros((500, p)), 1) for p in (enough, enough + 1, 0)]
    assert [features.can_be_tested(q) for q in wide] == [True, False, False]


def test_slopes_of_good_annotators_beside_a_bad_one():
    panel = drawn(22, n=4000)[0].turned([0])
    core = np.arange(5) != 0
    slopes = follow(panel, of_others(panel, predict(panel.without([0])), core))
    np.testing.assert_allclose(slopes.slope, [-1, 1, 1, 1, 1], atol=0.12)
