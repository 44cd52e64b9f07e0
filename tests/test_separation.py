"""Separated labels: found by find_separation, flagged by the fits, and never a silent success."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import softlabel as sl

LINE = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]


SQUARE = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]


CASES = [
    # features, labels or counts, what a reader sees from a drawing of them
    (LINE, [0, 0, 0, 1, 1, 1], "complete"),
    (LINE, [1, 1, 1, 1, 0, 0], "complete"),
    (LINE, [0, 0, 1, 0, 1, 1], "none"),
    ([[1.0], [2.0], [3.0], [3.0], [4.0], [5.0]], [0, 0, 0, 1, 1, 1], "quasi"),
    ([[0.0], [0.0], [1.0], [1.0]], [0, 0, 0, 1], "quasi"),  # an empty cell of a 2 x 2 table
    (SQUARE, [0, 1, 1, 1], "complete"),
    (SQUARE, [0, 1, 1, 0], "none"),
    ([*SQUARE, [0.5, 0.5], [0.5, 0.5]], [0, 0, 1, 1, 0, 1], "quasi"),
    (LINE, [1] * 6, "complete"),  # one class only: the intercept alone separates
    (LINE, [0] * 6, "complete"),
    (LINE, [[7, 0], [3, 0], [1, 0], [0, 2], [0, 9], [0, 1]], "complete"),
    (LINE, [[7, 0], [3, 0], [1, 1], [0, 2], [0, 9], [0, 1]], "quasi"),  # one item with votes for both
    (LINE, [[7, 0], [3, 0], [1, 1], [1, 1], [0, 9], [0, 1]], "none"),  # two of them, apart
    (LINE, [[7, 0], [3, 0], [0, 0], [0, 2], [0, 9], [0, 1]], "complete"),  # no votes: no obstacle
    (LINE, [[1, 6], [2, 5], [3, 4], [4, 3], [5, 2], [6, 1]], "none"),
    (LINE, [[1, 1], [2, 5], [3, 4], [4, 3], [5, 2], [6, 1]], "none"),
]


SEPARATED = [case for case in CASES if case[2] != "none"]


@pytest.mark.parametrize("X, votes, kind", CASES)
@pytest.mark.parametrize("scale, shift", [(1, 0), (1e-100, 0), (1e100, 0), (1, 2.0**30)])
def test_find_separation_in_any_units_and_for_swapped_classes(X, votes, kind, scale, shift):
    # A power of two, so that the shifted features are exact.
    X, votes = np.array(X) * scale + shift, np.array(votes)
    assert sl.find_separation(X, votes) == kind
    assert sl.find_separation(X, 1 - votes if votes.ndim == 1 else votes[:, ::-1]) == kind


@pytest.mark.parametrize("X, votes, kind", CASES)
def test_fits_are_flagged_where_and_only_where_the_labels_are_separated(X, votes, kind):
    if kind == "none":
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fit = sl.fit_logistic(X, votes)
        assert fit.converged and fit.separation == "none" and "NOT" not in repr(fit)
        return
    for max_iter in (5, 25, 2000):
        with pytest.warns(sl.SeparationWarning, match=f"{kind} separation") as caught:
            fit = sl.fit_logistic(X, votes, max_iter=max_iter)
        assert caught[0].filename == __file__
        assert fit.separation == kind and not fit.converged
        assert np.isfinite(fit.coef).all() and np.isfinite(fit.log_likelihood)
        # A silent success would show here: what a person reads must say it.
        assert kind in repr(fit) and "NOT converged" in repr(fit)
    assert np.isfinite(fit.posterior(X)).all() and len(fit.summary()) == len(fit.coef) == len(fit.cov("model"))
    if kind == "complete" and np.ndim(votes) == 1:
        np.testing.assert_array_equal(fit.predict(X), votes)


def test_the_two_warnings_are_user_warnings_and_not_each_other():
    assert issubclass(sl.SeparationWarning, UserWarning) and issubclass(sl.ConvergenceWarning, UserWarning)
    assert not issubclass(sl.SeparationWarning, sl.ConvergenceWarning)
    assert not issubclass(sl.ConvergenceWarning, sl.SeparationWarning)


@pytest.mark.parametrize("max_iter", [25, 2000])
def test_separated_data_sets_of_a_batch_are_flagged_and_leave_the_others_alone(max_iter):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 40, 2))
    y = (rng.random((30, 40)) < 1 / (1 + np.exp(-X[..., 0]))).astype(int)
    clean = sl.fit_logistic_batch(X, y, max_iter=max_iter)
    assert clean.converged.all()
    separated = [0, 7, 8, 29]
    mixed = y.copy()
    mixed[separated] = X[separated, :, 1] > 0.1
    with pytest.warns(sl.ConvergenceWarning, match="4 of 30"):
        batch = sl.fit_logistic_batch(X, mixed, max_iter=max_iter)
    np.testing.assert_array_equal(np.flatnonzero(~batch.converged), separated)
    others = batch.converged
    # Dropping data sets from the iteration must not reach the others: rounding of the products only.
    np.testing.assert_allclose(batch.coef[others], clean.coef[others], rtol=1e-12, atol=1e-13)
    assert np.isfinite(batch.coef).all()
    assert f"{26} converged" in repr(batch)


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_brute_force_in_one_dimension(seed):
    """With one feature the classes are apart if their ranges are; whole numbers make ties frequent."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 6, 6), rng.integers(0, 2, 6)
    x[0], x[1] = 0, 5
    a, b = x[y == 1], x[y == 0]
    if not len(a) or not len(b) or a.min() > b.max() or b.min() > a.max():
        kind = "complete"
    elif a.min() >= b.max() or b.min() >= a.max():
        kind = "quasi"
    else:
        kind = "none"
    assert sl.find_separation(x[:, None].astype(float), y) == kind


def programme(X, counts):
    """The kind of separation by two linear programmes: some gain on an item, and then a gain on all."""
    x = np.column_stack([np.ones(len(X)), X])
    sides = np.vstack([x[counts[:, 0] > 0], -x[counts[:, 1] > 0]])
    bounds = [(-1, 1)] * x.shape[1]
    some = linprog(-sides.sum(axis=0), A_ub=-sides, b_ub=np.zeros(len(sides)), bounds=bounds)
    if -some.fun < 1e-7:
        return "none"
    every = linprog(
        np.r_[np.zeros(x.shape[1]), -1],
        A_ub=np.column_stack([-sides, np.ones(len(sides))]),
        b_ub=np.zeros(len(sides)),
        bounds=[*bounds, (0, 1)],
    )
    return "complete" if -every.fun > 1e-7 else "quasi"


def test_agrees_with_linear_programmes():
    """Small data sets with ties, repeated items, items without votes, and features that are combinations of others."""
    rng, found = np.random.default_rng(11), []
    for kind in range(500):
        n, p = rng.integers(3, 30), rng.integers(1, 5)
        X = rng.integers(0, 3, (n, p)).astype(float) if kind % 2 else rng.normal(size=(n, p))
        if kind % 5 == 0:
            X[:, -1] = X[:, 0]
        m = rng.integers(kind % 3 > 0, 4, n)  # a third has items without votes
        s = rng.binomial(m, 1 / (1 + np.exp(-np.clip(X @ rng.normal(size=p) * 3.0 ** rng.integers(-2, 4), -700, 700))))
        if m.any():
            found.append(sl.find_separation(X, np.column_stack([s, m - s])))
            assert found[-1] == programme(X, np.column_stack([s, m - s])), (X, s, m)
    assert min(found.count(kind) for kind in ("none", "quasi", "complete")) > 50


def test_separation_across_both_ends():
    """Positives at both ends of a line: no threshold tells them apart, but with a squared feature a parabola does."""
    x = np.arange(-4.0, 5)[:, None]
    y = (np.abs(x[:, 0]) > 2.5).astype(int)
    assert sl.find_separation(x, y) == "none" and sl.fit_logistic(x, y).converged
    both = np.column_stack([x, x**2])
    assert sl.find_separation(both, y) == "complete"
    with pytest.warns(sl.SeparationWarning, match="complete"):
        assert not sl.fit_logistic(both, y).converged
    votes = np.column_stack([9 * y, 9 * (1 - y)])
    votes[[2, 6]] = [1, 8]  # undecided on both sides
    assert sl.find_separation(both, votes) == "quasi"


def test_separation_in_a_bootstrap_resample():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(14, 2))
    y = (x[:, 0] + rng.normal(size=14) > 0).astype(int)
    assert sl.fit_logistic(x, y).converged
    rows = rng.integers(14, size=(60, 14))
    kinds = [sl.find_separation(x[r], y[r]) for r in rows]
    assert 5 < sum(kind != "none" for kind in kinds) < 55
    with pytest.warns(UserWarning, match="did not converge"):
        batch = sl.fit_logistic_batch(x[rows], y[rows])
    np.testing.assert_array_equal(batch.converged, [kind == "none" for kind in kinds])
    for r, kind, coef in zip(rows, kinds, batch.coef):
        if kind == "none":
            np.testing.assert_allclose(sl.fit_logistic(x[r], y[r]).coef, coef, rtol=1e-7, atol=1e-7)
        else:
            with pytest.warns(sl.SeparationWarning, match=kind):
                assert sl.fit_logistic(x[r], y[r]).separation == kind


def gives_up(*args, **kwargs):
    raise RuntimeError("gave up")


@pytest.mark.parametrize("X, votes, kind", CASES)
def test_a_linear_programme_finds_what_least_squares_leave_open(monkeypatch, X, votes, kind):
    monkeypatch.setattr("scipy.optimize.nnls", gives_up)
    assert sl.find_separation(X, votes) == kind


@pytest.mark.parametrize("status", [1, 2, 3, 4])
def test_a_linear_programme_that_fails_is_never_no_separation(monkeypatch, status):
    """HiGHS gives up now and then; what was not found out must not be called "none"."""

    def broken(*args, **kwargs):
        return SimpleNamespace(status=status, message="gave up", fun=None, x=None, success=False)

    monkeypatch.setattr("scipy.optimize.linprog", broken)
    for X, votes, kind in CASES:  # what is proved without a programme is right
        assert sl.find_separation(X, votes) == kind
    monkeypatch.setattr("scipy.optimize.nnls", gives_up)
    for X, votes, _ in SEPARATED[1:4]:
        with pytest.raises(RuntimeError, match="linear programme"):
            sl.find_separation(X, votes)


def test_a_linear_programme_on_which_the_first_solver_gives_up():
    """HiGHS ends here with "Status 0: Not Set". By hand: -1 + 1e9 x1 + 2 x2 - x3 is right on every item."""
    X = np.zeros((9, 3))
    X[[0, 2, 3], 0] = -1, 532, 1e-8
    X[[3, 4], 1] = -3, 1
    X[7, 2] = 1
    y = np.array([0, 0, 1, 1, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(-1 + X @ [1e9, 2, -1] > 0, y)
    assert sl.find_separation(X, y) != "none"
    with pytest.warns(sl.SeparationWarning):
        sl.fit_logistic(X, y)


@pytest.mark.parametrize(
    "X, y",
    [
        ([[-10000, 3, -3], [1, 3, -1], [-1, 3, -1], [1, -1, -1000000]], [0, 0, 1, 0]),  # as many unknowns as items
        (
            [[-3, -3, 100000, 1], [-1, -3, 1, 3], [10000, 3, 3, 2], [1, 1000000, -1, 0], [-3, -3, 2, 3], [-2, -2, 1, 2]],
            [0, 0, 1, 1, 1, 0],
        ),
    ],
)
def test_outliers_do_not_hide_that_a_rule_is_right_on_all(X, y):
    """The hull of the margins comes within 1e-9 of the origin, and does not hold it."""
    assert sl.find_separation(np.array(X, float), y) == "complete"


# ------------------------------------------------------------------ which features separate


NOISE = np.random.default_rng(2).normal(size=(60, 12))
SIGN = (np.arange(60) < 9) * 1.0
MIXED = np.where(SIGN == 1, 1, np.arange(60) % 2)


@pytest.mark.parametrize(
    "columns, y, words",
    [
        (
            {"a": NOISE[:, 0], "sign": SIGN, "b": NOISE[:, 1]},
            MIXED,
            "quasi separation: the feature 'sign' alone tells the labels apart without error on some items, so",
        ),
        (
            {"leak": MIXED + 0.1 * SIGN, "sign": SIGN},
            MIXED,
            "complete separation: the feature 'leak' alone tells the labels apart without error, so",
        ),
        ({"a": NOISE[:, 0], "sign": -SIGN}, MIXED, "the feature 'sign' alone"),
        ({"a": NOISE[:, 0], "sign": SIGN}, 1 - MIXED, "the feature 'sign' alone"),
        ({"a": NOISE[:, 0], "s": SIGN, "t": SIGN * (1 + NOISE[:, 1] ** 2)}, MIXED, "each of the features 's', 't' tells"),
        (
            {"a": NOISE[:, 0], "b": NOISE[:, 1], "c": NOISE[:, 2]},
            (NOISE[:, 0] > NOISE[:, 2]) * 1,
            "complete separation: the features 'a', 'c' together tell the labels apart",
        ),
        (
            {f"x{k}": NOISE[:, k] for k in range(12)},
            (NOISE.sum(axis=1) > 0) * 1,
            "the features together tell the labels apart",
        ),
        ({"a": NOISE[:, 0], "b": NOISE[:, 1]}, np.ones(60), "the intercept alone, since all votes are for one class, tells"),
    ],
)
def test_warnings_name_the_features_that_separate(columns, y, words):
    X = pd.DataFrame(columns)
    with pytest.warns(sl.SeparationWarning, match=words):
        sl.fit_logistic(X, y)
    with pytest.warns(sl.SeparationWarning, match=words):
        sl.fit_dirichlet_multinomial(X, np.column_stack([2 * y, 2 - 2 * y]))


def test_items_without_votes_separate_nothing():
    """Nor does an item with votes for both classes let a feature separate that has it on the wrong side."""
    X = pd.DataFrame({"sign": SIGN, "a": NOISE[:, 0]})
    counts = np.column_stack([MIXED, 1 - MIXED])
    blank, split = counts.copy(), counts.copy()
    blank[[0, 20]], split[0] = 0, [1, 1]
    with pytest.warns(sl.SeparationWarning, match="the feature 'sign' alone"):
        sl.fit_logistic(X, blank)
    assert sl.fit_logistic(X, split).separation == "none"
