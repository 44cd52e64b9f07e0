"""Edges at which statistics packages are known to go wrong, each with its right value.

Labels of every kind, units of the features, extreme votes and parameters, and arguments that stay as they were.
"""

import enum
import inspect
import sys
import warnings
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from reference import exact_logpmf, logistic_data
from scipy import stats
from sklearn.linear_model import LogisticRegression

from softlabel import (SeparationWarning, TwoClassNormal, alpha0_interval, bootstrap_alpha0, dm_logpmf, estimate_alpha0,
                       find_separation, fit_logistic, fit_logistic_batch, godambe_information, overdispersion_test,
                       relative_efficiency, sample_probabilities, sample_votes, simulate_relative_efficiency,
                       variance_inflation)
from softlabel.validation import as_features, as_numbers, as_rng, as_tau, as_votes

EXACT = {"tol": 1e-14, "max_iter": 100}
X6 = np.array([[0.0, 1], [1, 0], [2, 5], [3, 1], [4, -1], [2, 2]])
Y6 = np.array([0, 1, 0, 1, 0, 1])
C6 = np.array([[1, 2], [2, 2], [0, 3], [3, 0], [1, 1], [0, 0]])

# ------------------------------------------------------------------ labels of every kind


class Finding(enum.Enum):
    BENIGN = 1
    MALIGNANT = 2


WORDS = np.where(Y6 == 1, "malignant", "benign")
FINDINGS = np.array([Finding.MALIGNANT if y else Finding.BENIGN for y in Y6], dtype=object)
LABELS = {
    "list": (list(WORDS), "malignant"),
    "strings": (WORDS, "malignant"),
    "NumPy 2 strings": (WORDS.astype(np.dtypes.StringDType()), "malignant"),
    "bytes": (WORDS.astype("S"), b"malignant"),
    "objects": (WORDS.astype(object), "malignant"),
    "enumeration": (FINDINGS, Finding.MALIGNANT),
    "Series": (pd.Series(WORDS), "malignant"),
    "Series of strings": (pd.Series(WORDS, dtype="string"), "malignant"),
    "Categorical": (pd.Categorical(WORDS), "malignant"),
    # The order of the categories says nothing about which is positive.
    "reversed Categorical": (pd.Categorical(WORDS, categories=["malignant", "benign"], ordered=True), "malignant"),
    "Categorical Series": (pd.Series(WORDS, dtype="category"), "malignant"),
    "unused category": (pd.Categorical(WORDS, categories=["benign", "unknown", "malignant"]), "malignant"),
    "1 and 2": (Y6 + 1, 2),
    "-1 and 1": (2 * Y6 - 1, 1),
    "text of numbers": ((Y6 + 1).astype(str), "2"),
    "0 and 1": (Y6, 1),
    "0.0 and 1.0": (Y6.astype(float), 1),
    "booleans": (Y6.astype(bool), True),
    "nullable booleans": (pd.Series(Y6, dtype="boolean"), True),
    "nullable integers": (pd.Series(Y6 + 1, dtype="Int64"), 2),
    "dates": (np.where(Y6 == 1, np.datetime64("2020-01-02"), np.datetime64("2020-01-01")), np.datetime64("2020-01-02")),
}
NOT_NUMBERS = [kind for kind, (labels, _) in LABELS.items() if np.asarray(labels).dtype.kind in "OUST"
               and not isinstance(np.asarray(labels).flat[0], (bool, int))]


def votes_of(y_or_counts, positive=None):
    return as_votes(y_or_counts, (6,), positive)


@pytest.mark.parametrize("labels, positive", LABELS.values(), ids=LABELS)
def test_labels_of_any_kind_with_positive(labels, positive):
    np.testing.assert_array_equal(votes_of(labels, positive), np.column_stack([Y6, 1 - Y6]))
    other = next(label for label in np.asarray(labels).tolist() if label != positive)
    if not isinstance(positive, np.datetime64):  # whose .tolist() is another type
        np.testing.assert_array_equal(votes_of(labels, other), np.column_stack([1 - Y6, Y6]))


@pytest.mark.parametrize("kind", NOT_NUMBERS)
def test_labels_that_are_not_numbers_need_positive(kind):
    labels, positive = LABELS[kind]
    with pytest.raises(ValueError, match="y_or_counts has the labels .*not numbers.* positive=") as caught:
        votes_of(labels)
    assert repr(positive) in str(caught.value) and "np.str_" not in str(caught.value)


def test_the_kinds_that_need_positive():
    assert len(NOT_NUMBERS) == 13  # or the test above would be empty


@pytest.mark.parametrize("labels, positive, words", [
    (WORDS, "malignnt", ["positive='malignnt'", "'benign', 'malignant'"]),
    (["benign"] * 6, "malignant", ["positive='malignant'", "'benign'", "Categorical"]),  # a slip, or no positive item?
    (pd.Categorical(["benign"] * 6), "malignant", ["positive='malignant'"]),
    ([0] * 6, 1, ["positive=1", "labels 0"]),
    (Y6, "1", ["positive='1'", "(0, 1)"]),
    (Y6.astype(str), 1, ["positive=1", "('0', '1')"]),
    (Y6, [0, 1], ["positive=[0, 1]"]),
    (Y6, np.array([0, 1]), ["positive=array([0, 1])"]),
    (Y6, np.nan, ["positive=nan"]),
    (list("abcabc"), "a", ["3 different labels", "'a', 'b', 'c'"]),
    (np.arange(6), 2, ["6 different labels"]),
    (np.array([*WORDS[:5], None], dtype=object), "benign", ["y_or_counts[5] is missing"]),
    (pd.Categorical([*WORDS[:5], None]), "benign", ["y_or_counts[5] is missing"]),
    ([0, 1, 0, 1, 0, np.nan], 1, ["y_or_counts[5] is missing"]),
    (np.ma.array(Y6, mask=[0, 0, 0, 1, 0, 0]), 1, ["y_or_counts[3] is missing"]),
    (C6, 1, ["positive=1 is for labels", "(6, 2)", "column 0"]),
    (pd.DataFrame(C6), 1, ["positive=1 is for labels"]),
    ([{}] * 6, 1, ["y_or_counts", "labels"]),
    (WORDS[:5], "benign", ["5", "6"]),
])
def test_labels_that_are_rejected_with_positive(labels, positive, words):
    with pytest.raises(ValueError) as caught:
        votes_of(labels, positive)
    for word in words:
        assert word in str(caught.value), f"{word} is not in: {caught.value}"


@pytest.mark.parametrize("labels, positive, expected", [
    (pd.Categorical(["benign"] * 6, categories=["benign", "malignant"]), "malignant", 0),
    (pd.Series(["benign"] * 6, dtype=pd.CategoricalDtype(["malignant", "benign"])), "malignant", 0),
    (np.zeros(6, bool), True, 0),
    (np.ones(6, bool), True, 1),
    (["malignant"] * 6, "malignant", 1),
    ([0] * 6, 0, 1),
    (np.zeros(6, bool), None, 0),
    ([0] * 6, None, 0),
])
def test_one_class_only_keeps_its_sign(labels, positive, expected):
    np.testing.assert_array_equal(votes_of(labels, positive), [[expected, 1 - expected]] * 6)


@pytest.mark.parametrize("labels", [
    np.array(["0", "1", "0", "1", "0", "1"]), list("010101"), np.array(list("010101"), dtype=object), [b"0", b"1"] * 3,
    Y6.astype("m8[s]"), Y6.astype("M8[s]"), Y6 + 0j, np.ma.array(Y6, mask=[1] + 5 * [0]), [10**400] * 6,
    np.array([0, 1, "a", 1, 0, 1], dtype=object),
])
def test_what_only_looks_like_numbers_is_rejected(labels):
    with pytest.raises(ValueError, match="y_or_counts"):
        votes_of(labels)


def test_numbers_of_every_type_are_labels():
    mixed = np.array([Decimal(0), Fraction(1), False, np.True_, np.float32(0), 1], dtype=object)
    np.testing.assert_array_equal(votes_of(mixed)[:, 0], Y6)
    np.testing.assert_array_equal(votes_of(pd.Categorical(Y6))[:, 0], Y6)  # values, not codes
    np.testing.assert_array_equal(votes_of(pd.Categorical(Y6, categories=[1, 0]))[:, 0], Y6)


FITS = {
    "fit_logistic": lambda labels, **positive: fit_logistic(X6, labels, **positive).coef,
    "firth": lambda labels, **positive: fit_logistic(X6, labels, method="firth", **positive).coef,
    "batch": lambda labels, **positive: fit_logistic_batch([X6, X6], np.array([labels, labels]), **positive).coef,
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_positive_reaches_the_fits(fit):
    plain = fit(Y6)
    np.testing.assert_array_equal(fit(WORDS, positive="malignant"), plain)
    np.testing.assert_array_equal(fit(Y6 + 1, positive=2), plain)
    np.testing.assert_allclose(fit(WORDS, positive="benign"), -plain, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="positive="):
        fit(WORDS)
    with pytest.raises(ValueError, match="positive='malignnt'"):
        fit(WORDS, positive="malignnt")


def test_positive_reaches_find_separation():
    x = np.arange(6.0)[:, None]
    assert find_separation(x, list("aaabbb"), positive="b") == "complete"
    assert find_separation(x, list("ababab"), positive="b") == "none"
    assert find_separation(x, pd.Categorical(list("aaaaaa"), categories=["a", "b"]), positive="b") == "complete"
    with pytest.raises(ValueError, match="positive="):
        find_separation(x, list("aaabbb"))


def test_labels_are_matched_by_index_with_positive():
    frame = pd.DataFrame(X6, index=list("uvwxyz"))
    labels = pd.Series(pd.Categorical(WORDS), index=list("uvwxyz"))
    np.testing.assert_allclose(fit_logistic(frame, labels.iloc[::-1], positive="malignant").coef, fit_logistic(X6, Y6).coef)


def test_positive_of_counts_is_an_error():
    for function in (fit_logistic, find_separation):
        with pytest.raises(ValueError, match="positive=1 is for labels"):
            function(X6, C6, positive=1)


# ------------------------------------------------------------------ separation


def test_separation_across_both_ends():
    """Positives at both ends of a line: no threshold tells them apart, but with a squared feature a parabola does."""
    x = np.arange(-4.0, 5)[:, None]
    y = (np.abs(x[:, 0]) > 2.5).astype(int)
    assert find_separation(x, y) == "none" and fit_logistic(x, y).converged
    both = np.column_stack([x, x**2])
    assert find_separation(both, y) == "complete"
    with pytest.warns(SeparationWarning, match="complete"):
        assert not fit_logistic(both, y).converged
    votes = np.column_stack([9 * y, 9 * (1 - y)])
    votes[[2, 6]] = [1, 8]  # undecided on both sides
    assert find_separation(both, votes) == "quasi"


def test_separation_in_a_bootstrap_resample():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(14, 2))
    y = (x[:, 0] + rng.normal(size=14) > 0).astype(int)
    assert fit_logistic(x, y).converged
    rows = rng.integers(14, size=(60, 14))
    kinds = [find_separation(x[r], y[r]) for r in rows]
    assert 5 < sum(kind != "none" for kind in kinds) < 55
    with pytest.warns(UserWarning, match="did not converge"):
        batch = fit_logistic_batch(x[rows], y[rows])
    np.testing.assert_array_equal(batch.converged, [kind == "none" for kind in kinds])
    for r, kind, coef in zip(rows, kinds, batch.coef):
        if kind == "none":
            np.testing.assert_allclose(fit_logistic(x[r], y[r]).coef, coef, rtol=1e-7, atol=1e-7)
        else:
            with pytest.warns(SeparationWarning, match=kind):
                assert fit_logistic(x[r], y[r]).separation == kind


def test_one_class_only_in_one_data_set_of_a_batch():
    X = np.random.default_rng(4).normal(size=(3, 40, 2))
    y = np.random.default_rng(5).integers(0, 2, (3, 40))
    clean = fit_logistic_batch(X, y)
    y[1] = 0
    with pytest.warns(UserWarning, match="1 of 3 fits did not converge .the first is data set 1"):
        batch = fit_logistic_batch(X, y)
    np.testing.assert_array_equal(batch.converged, [True, False, True])
    np.testing.assert_allclose(batch.coef[[0, 2]], clean.coef[[0, 2]], rtol=1e-12)


@pytest.mark.parametrize("status", [1, 2, 3, 4])
def test_a_linear_programme_that_fails_is_never_no_separation(monkeypatch, status):
    """HiGHS gives up now and then; what was not found out must not be called "none"."""
    def broken(*args, **kwargs):
        return SimpleNamespace(status=status, message="gave up", fun=None, x=None, success=False)

    modules = [module for name, module in sys.modules.items() if name.startswith("softlabel") and hasattr(module, "linprog")]
    assert modules
    for module in modules:
        monkeypatch.setattr(module, "linprog", broken)
    # Undecided at the items in the middle, which no iterate of Newton's method proves; and a far item, whose residual is lost.
    for x, y in (([0.0, 1, 2, 2, 3, 4], [0, 0, 0, 1, 1, 1]), ([0.0, 1, 2, 3, 4, 999], [0, 0, 1, 0, 1, 1])):
        with pytest.raises(RuntimeError, match="linear programme"):
            find_separation(np.array(x)[:, None], y)
    with pytest.raises(RuntimeError, match="linear programme"):
        fit_logistic(np.array([0.0, 1, 2, 2, 3, 4])[:, None], [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("X, y", [
    (np.random.default_rng(0).normal(size=(10, 10)), [0, 1] * 5),
    (np.random.default_rng(0).normal(size=(10, 30)), [0, 1] * 5),
])
def test_more_features_than_items_say_so(X, y):
    for fit in (lambda: fit_logistic(X, y), lambda: fit_logistic(X, y, method="firth"), lambda: fit_logistic_batch([X], [y])):
        with pytest.raises(ValueError, match=f"X has {X.shape[1]} columns but only 10 items with votes"):
            fit()
    assert find_separation(X, y) == "complete"  # as many unknowns as items: any labels can be met


# ------------------------------------------------------------------ units of the features

UNITS = [
    ([1e8, 1e8, 1e8], 0.0),
    ([1e-8, 1e-8, 1e-8], 0.0),
    ([1.0, 1.0, 1.0], 1e6),
    ([1e8, 1e-8, 1.0], 0.0),
    ([1e8, 1e-8, 1.0], 1e6),
]


@pytest.mark.parametrize("method", ["mle", "firth"])
@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("scale, shift", UNITS)
def test_probabilities_do_not_depend_on_units(scale, shift, labels, method):
    X, votes = logistic_data(12, n=200, p=3, labels=labels)
    Z = (X + shift) * scale
    fit, other = fit_logistic(X, votes, method=method, **EXACT), fit_logistic(Z, votes, method=method, **EXACT)
    assert other.converged and other.separation == "none"
    np.testing.assert_allclose(other.posterior(Z), fit.posterior(X), atol=1e-8)
    # 1e-6: the slopes of features shifted by 1e6 have lost six digits when they were shifted.
    np.testing.assert_allclose(other.stderr()[1:] * scale, fit.stderr()[1:], rtol=1e-6)
    if method == "mle":
        batch = fit_logistic_batch(Z[None], np.asarray(votes)[None], **EXACT)
        eta = batch.coef[0, 0] + Z @ batch.coef[0, 1:]
        np.testing.assert_allclose(1 / (1 + np.exp(-eta)), fit.posterior(X)[:, 0], atol=1e-8)


def test_the_tolerance_would_catch_the_peers():
    """On the same features L-BFGS stops early in silence, and a pseudo-inverse drops columns."""
    X, y = logistic_data(12, n=200, p=3)
    right = fit_logistic(X, y).posterior(X)[:, 0]
    for scale, shift in UNITS:
        Z = (X + shift) * scale
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lbfgs = LogisticRegression(C=np.inf, max_iter=1000).fit(Z, y).predict_proba(Z)[:, 1]
            glm = sm.GLM(y, sm.add_constant(Z), family=sm.families.Binomial()).fit().fittedvalues
        assert np.abs(lbfgs - right).max() > 0.01
        assert (np.abs(glm - right).max() > 0.01) == (scale[0] != scale[1])


def test_linear_predictors_of_ten_thousand():
    fit = fit_logistic(np.linspace(-1, 1, 40)[:, None], [0, 1] * 20)
    for X in ([[1e4 / fit.coef[1]], [-1e4 / fit.coef[1]]], [[1e300], [-1e300]], [[1e308], [-1e308]]):
        tau = fit.posterior(X)
        np.testing.assert_array_equal(tau, [[1, 0], [0, 1]])
        assert fit.predict(X).tolist() == [1, 0]


def test_an_outlier_far_against_the_rule_has_a_finite_likelihood():
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=400), [-4e3]])[:, None]
    votes = np.column_stack([np.where(x[:, 0] > 0, 990, 10), np.where(x[:, 0] > 0, 10, 990)])
    votes[-1] = [1, 0]
    fit = fit_logistic(x, votes, max_iter=200)
    eta = fit.coef[0] + x[:, 0] * fit.coef[1]
    assert fit.converged and np.isfinite([fit.log_likelihood, fit.deviance, fit.dispersion]).all()
    exact = votes[:, 0] @ -np.logaddexp(0, -eta) + votes[:, 1] @ -np.logaddexp(0, eta)
    assert fit.log_likelihood == pytest.approx(exact, rel=1e-12)
    assert np.abs(eta).max() > 1e3  # or nothing was extreme
    assert np.isfinite(fit.stderr()).all()


def test_a_start_at_linear_predictors_of_ten_thousand():
    """Where every weight has underflowed, Newton's step means nothing, and the answer is found all the same."""
    x, y = np.linspace(-1, 1, 40)[:, None], np.array([0, 1] * 20)
    batch = fit_logistic_batch([x], [y], start=[[0.0, 1e4]], max_iter=200)
    np.testing.assert_allclose(batch.coef[0], fit_logistic(x, y).coef, atol=1e-7)


@pytest.mark.parametrize("start", [[1e17, 0, 0], [0, 1e17, -1e17], [1e12, 1e12, 1e12]])
def test_a_far_start_is_no_wrong_answer(start):
    """Digits lost far out must not stay lost: the right answer, or words about the start or the convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            batch = fit_logistic_batch([X6], [Y6], start=start, max_iter=200)
        except ValueError as error:
            assert "start" in str(error)
            return
    if batch.converged[0]:
        np.testing.assert_allclose(batch.coef[0], fit_logistic(X6, Y6).coef, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-320, 1e-310, 1e307, 3e307])
def test_units_at_the_ends_of_the_float_range(scale):
    try:
        fit = fit_logistic(X6 * scale, Y6)
    except ValueError as error:
        assert "X" in str(error)
    else:
        np.testing.assert_allclose(fit.posterior(X6 * scale), fit_logistic(X6, Y6).posterior(X6), atol=1e-6)


# ------------------------------------------------------------------ votes


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "uint64", "float32"])
def test_small_and_unsigned_counts_do_not_wrap(dtype):
    """m - s and s - m tau must not be taken in the type of the counts."""
    most = 120 if dtype == "int8" else 250
    votes = np.array([[most, 100], [50, most], [120, 90], [0, 3], [7, 0]])
    x = np.array([[0.0], [1.0], [3.0], [2.0], [5.0]])
    tau = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    small = votes.astype(dtype)
    ours, right = fit_logistic(x, small), fit_logistic(x, votes)
    for name in ("coef", "log_likelihood", "deviance", "dispersion", "n_items"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(right, name))
    np.testing.assert_array_equal(ours.cov(), right.cov())
    np.testing.assert_array_equal(fit_logistic_batch([x], [small]).coef, fit_logistic_batch([x], [votes]).coef)
    assert find_separation(x, small) == find_separation(x, votes) == "none"
    assert estimate_alpha0(small, tau).alpha0 == estimate_alpha0(votes, tau).alpha0
    np.testing.assert_array_equal(dm_logpmf(small, tau, 2.0), dm_logpmf(votes, tau, 2.0))
    np.testing.assert_array_equal(bootstrap_alpha0(small, tau, 5, rng=0), bootstrap_alpha0(votes, tau, 5, rng=0))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_small_integers_as_labels_numbers_of_labellers_and_features(dtype):
    np.testing.assert_array_equal(fit_logistic(X6, Y6.astype(dtype)).coef, fit_logistic(X6, Y6).coef)
    np.testing.assert_array_equal(fit_logistic((X6 + 1).astype(dtype), Y6).coef, fit_logistic(X6 + 1, Y6).coef)
    m = np.array([100, 120], dtype=dtype)
    np.testing.assert_array_equal(sample_votes([[0.5, 0.5]] * 2, m, 1.0, rng=0).sum(axis=1), [100, 120])
    assert relative_efficiency(m, 100)[1] == pytest.approx(120 * 101 / 220)
    assert variance_inflation(m, 100)[1] == pytest.approx(220 / 101)


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_labels_clustered_by_item(seed):
    """The sandwich of votes, item by item, is statsmodels' cluster-robust covariance of the single labels."""
    X, votes = logistic_data(seed, n=50, labels=False)
    item = np.repeat(np.arange(len(X)), votes.sum(axis=1))
    labels = np.concatenate([[1.0] * s + [0.0] * f for s, f in votes])
    design = sm.add_constant(X[item])
    model = sm.GLM(labels, design, family=sm.families.Binomial())
    clustered = model.fit(cov_type="cluster", cov_kwds={"groups": item, "use_correction": False}, tol=1e-14)
    fit = fit_logistic(X, votes)
    np.testing.assert_allclose(fit.coef, clustered.params, atol=1e-8)
    np.testing.assert_allclose(fit.cov(), clustered.cov_params(), rtol=1e-7, atol=1e-12)
    # Taken for separate items the same labels have another sandwich: the test can tell.
    separate = fit_logistic(X[item], labels).cov()
    np.testing.assert_allclose(separate, model.fit(cov_type="HC0").cov_params(), rtol=1e-6)
    assert np.abs(separate / fit.cov() - 1).max() > 0.1


def test_overdispersion_does_not_need_the_number_of_trials():
    """statsmodels with shares and weights divides Pearson's statistic by the votes instead of the items."""
    rng = np.random.default_rng(6)
    X, m = rng.normal(size=(400, 2)), 10
    tau = 1 / (1 + np.exp(-X[:, 0]))
    votes = sample_votes(np.column_stack([tau, 1 - tau]), m, 4.0, rng=rng)
    fit = fit_logistic(X, votes)
    design = sm.add_constant(X)
    right = sm.GLM(votes, design, family=sm.families.Binomial()).fit()
    assert fit.dispersion == pytest.approx(right.pearson_chi2 / right.df_resid, rel=1e-8)
    # (m + alpha0) / (1 + alpha0) = 2.8; its standard error is near sqrt(2 / 400) = 0.07 of it.
    assert fit.dispersion == pytest.approx(variance_inflation(m, 4.0), rel=0.25)
    wrong = sm.GLM(votes[:, 0] / m, design, family=sm.families.Binomial()).fit(scale="X2").scale
    assert fit.dispersion == pytest.approx(m * wrong, rel=1e-6)  # wrong by the factor m


def test_unequal_numbers_of_votes_in_every_function():
    X, votes = logistic_data(8, labels=False)
    tau = fit_logistic(X, votes).posterior(X)
    assert {0, 1, 2} <= set(votes.sum(axis=1))
    few = votes.sum(axis=1) < 2
    for function in (lambda c, t: estimate_alpha0(c, t).alpha0, lambda c, t: overdispersion_test(c, t).statistic,
                     lambda c, t: alpha0_interval(c, t, method="likelihood")):
        # Items with no vote or one say nothing about alpha0.
        np.testing.assert_allclose(function(votes, tau), function(votes[~few], tau[~few]), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(dm_logpmf(votes, tau, 2.0)[votes.sum(axis=1) == 0], 0)


def test_items_without_votes_are_counted():
    fit = fit_logistic(X6, C6)
    assert (fit.n_items, fit.n_without_votes) == (5, 1)
    assert (fit_logistic(X6, Y6).n_items, fit_logistic(X6, Y6).n_without_votes) == (6, 0)


@pytest.mark.parametrize("function", [estimate_alpha0, bootstrap_alpha0, alpha0_interval, overdispersion_test])
def test_one_vote_an_item_cannot_tell_alpha0(function):
    with pytest.raises(ValueError, match="no item has more than one vote: alpha0 cannot be estimated"):
        function([[1, 0], [0, 1], [1, 0]], [[0.5, 0.5], [0.3, 0.7], [0.6, 0.4]])


def test_unanimous_votes_in_every_function():
    counts, tau = [[9, 0], [0, 9], [9, 0], [4, 0]], [[0.7, 0.3], [0.4, 0.6], [0.5, 0.5], [0.9, 0.1]]
    assert estimate_alpha0(counts, tau).alpha0 == 0
    np.testing.assert_array_equal(bootstrap_alpha0(counts, tau, 20, rng=0), 0)
    low, high = alpha0_interval(counts, tau, method="likelihood")
    assert low == 0 < high < np.inf
    statistic, pvalue = overdispersion_test(counts, tau)
    # At alpha0 = 0 one vote of an item stands for all: 8, 8, 8 and 3 factors less.
    assert statistic == pytest.approx(-2 * np.log(0.7**8 * 0.6**8 * 0.5**8 * 0.9**3), rel=1e-10) and pvalue < 1e-5


def test_votes_less_dispersed_than_multinomial_in_every_function():
    counts, tau = [[5, 5], [5, 5], [5, 5], [2, 8]] * 5, ([[0.5, 0.5]] * 3 + [[0.2, 0.8]]) * 5
    assert estimate_alpha0(counts, tau).alpha0 == np.inf
    assert np.isinf(bootstrap_alpha0(counts, tau, 20, rng=0)).all()
    assert alpha0_interval(counts, tau, rng=0) == (np.inf, np.inf)
    low, high = alpha0_interval(counts, tau, method="likelihood")
    assert 0 < low < high == np.inf
    assert overdispersion_test(counts, tau) == (0.0, 1.0)


@pytest.mark.parametrize("alpha0", [1e-12, 1e300])
def test_extreme_alpha0_in_likelihood_and_sampler(alpha0):
    tau = np.array([[0.7, 0.3], [1e-300, 1.0], [1.0, 0.0]])
    for counts in ([7, 0], [3, 4]):
        value = dm_logpmf([counts], tau[:1], alpha0)[0]
        assert value == pytest.approx(float(exact_logpmf(counts, tau[0], alpha0)), rel=1e-13)
    votes = sample_votes(np.tile(tau[0], (20_000, 1)), 7, alpha0, rng=1)
    assert abs(votes[:, 0].mean() / 7 - 0.7) < 5 * np.sqrt(0.21 / 20_000)  # at most one draw an item
    if alpha0 < 1:
        assert np.all(votes.max(axis=1) == 7)
    else:
        expected = 20_000 * stats.binom.pmf(range(8), 7, 0.7)
        observed = np.bincount(votes[:, 0], minlength=8)
        assert stats.chisquare(observed[1:], expected[1:] * observed[1:].sum() / expected[1:].sum()).pvalue > 1e-3
    np.testing.assert_array_equal(sample_votes(tau[1:], 7, alpha0, rng=1), [[0, 7], [7, 0]])


def test_numpy_fails_where_the_sampler_does_not():
    """The reason for the care: NumPy's beta rejects a parameter that has underflowed."""
    with pytest.raises(ValueError, match="a <= 0"):
        np.random.default_rng(0).beta(1e-300 * 1e-300, 1.0)


@pytest.mark.parametrize("alpha0", [5e-324, 1e-310, 1e-307])
def test_alpha0_below_the_normal_floats_still_draws_from_tau(alpha0):
    p = sample_probabilities(np.tile([0.7, 0.2, 0.1], (5_000, 1)), alpha0, rng=1)
    assert np.all(p.max(axis=1) > 1 - 1e-12)
    share = p.mean(axis=0)
    assert np.all(np.abs(share - [0.7, 0.2, 0.1]) < 5 * np.sqrt(0.21 / 5_000))


@pytest.mark.parametrize("alpha0", [1e-12, 1.0, 1e300, np.inf])
def test_a_vote_against_certainty(alpha0):
    assert dm_logpmf([[1, 6], [0, 7]], [[0.0, 1.0]] * 2, alpha0).tolist() == [-np.inf, 0]
    assert "-inf" in inspect.getdoc(dm_logpmf)
    for function in (estimate_alpha0, bootstrap_alpha0, alpha0_interval, overdispersion_test):
        with pytest.raises(ValueError, match=r"counts\[0, 0\] is 1 but tau is 0 there"):
            function([[1, 6], [3, 4]], [[0.0, 1.0], [0.5, 0.5]])


@pytest.mark.parametrize("tiny", [5e-324, 1e-310])
def test_probabilities_below_the_normal_floats(tiny):
    """No warning of NumPy, and the value at 1e-300, from which the estimate of alpha0 no longer depends on tau."""
    counts = [[2, 1], [0, 2], [4, 0]]
    tau, near = ([[small, 1.0], [0.5, 0.5], [1.0, small]] for small in (tiny, 1e-300))
    assert estimate_alpha0(counts, tau).alpha0 == pytest.approx(estimate_alpha0(counts, near).alpha0, rel=1e-9)
    for method in ("bootstrap", "likelihood"):
        ends = (alpha0_interval(counts, t, method=method, n_resamples=50, rng=0) for t in (tau, near))
        np.testing.assert_allclose(*ends, rtol=1e-9)


def test_counts_and_labellers_beyond_whole_floats():
    """Above 2^53 not every whole number is a float, and 1e300 as an integer would wrap."""
    for function in (lambda: dm_logpmf([[1e300, 1]], [[0.5, 0.5]], 1.0),
                     lambda: fit_logistic([[0.0], [1.0]], [[2.0**60, 1], [1, 1]])):
        with pytest.raises(ValueError, match=r"counts\[0, 0\] is .*at most 9007199254740992"):
            function()
    for bad in (1e300, 2**60):
        with pytest.raises(ValueError, match="m, the number of labellers, .*at most 9007199254740992"):
            sample_votes([[0.5, 0.5]], bad, 1.0)
    assert relative_efficiency(1e300, 1) == 2  # a formula that needs no whole m
    with pytest.raises(ValueError, match="n_resamples must be a whole number"):
        bootstrap_alpha0([[2, 1]], [[0.5, 0.5]], n_resamples=10**400)


# ------------------------------------------------------------------ the normal model


@pytest.mark.parametrize("factor", [5e-324, 1e-310, 1e-200, 1e-160, 1e160, 1e200, 1e300])
def test_error_rate_of_rules_of_any_length(factor):
    """A rule multiplied by a positive number is the same rule, also where its squares underflow or overflow."""
    model = TwoClassNormal([2.0, 0.5], [-1.0, 0.0], [[2.0, 0.3], [0.3, 1.0]], prior1=0.3)
    for rule in ([1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [-2.0, 1.0, 3.0]):
        assert model.error_rate(np.array(rule) * factor) == pytest.approx(model.error_rate(rule), rel=1e-12)


def test_error_rate_of_what_is_no_rule():
    model = TwoClassNormal.canonical(2.0)
    for bad in ("abc", ["1", "2", "3"], [1j, 0, 0], [[1], [1, 2]], None):
        with pytest.raises(ValueError, match="coef"):
            model.error_rate(bad)


@pytest.mark.parametrize("delta", [1e-300, 1e-160, 100, 1e3, 1e200, 1e308])
def test_classes_almost_equal_or_far_apart(delta):
    """Right values, or an error that names delta: no division by zero and no singular matrix."""
    half_error = stats.norm.cdf(-delta / 2)
    try:
        model = TwoClassNormal.canonical(delta)
        assert model.delta == pytest.approx(delta, rel=1e-12)
        assert model.bayes_error() == pytest.approx(half_error, rel=1e-9)
        assert model.excess_error() >= 0
    except ValueError as error:
        assert "delta" in str(error) or "mean" in str(error)


# ------------------------------------------------------------------ randomness


@pytest.mark.parametrize("function", [
    lambda rng: as_rng(rng),
    lambda rng: sample_votes([[0.5, 0.5]], 3, 1.0, rng=rng),
    lambda rng: sample_probabilities([[0.5, 0.5]], 1.0, rng=rng),
    lambda rng: bootstrap_alpha0([[2, 1]], [[0.5, 0.5]], 5, rng=rng),
    lambda rng: alpha0_interval([[2, 1]], [[0.5, 0.5]], rng=rng),
    lambda rng: TwoClassNormal.canonical(1).sample(3, rng=rng),
    lambda rng: simulate_relative_efficiency([1], [5], [1], n=50, n_sims=2, rng=rng),
], ids=["as_rng", "sample_votes", "sample_probabilities", "bootstrap_alpha0", "alpha0_interval", "sample", "simulate"])
@pytest.mark.parametrize("bad", ["seed", -1, 1.5, object()])
def test_rng_that_is_none(function, bad):
    with pytest.raises(ValueError, match="rng"):
        function(bad)


# ------------------------------------------------------------------ parameters that are of the wrong kind


@pytest.mark.parametrize("call, name", [
    (lambda: fit_logistic(X6, Y6, tol="small"), "tol"),
    (lambda: fit_logistic(X6, Y6, tol=None), "tol"),
    (lambda: fit_logistic(X6, Y6, tol=np.array([1e-8, 1e-8])), "tol"),
    (lambda: fit_logistic(X6, Y6, tol=np.inf), "tol"),  # any answer would be good enough
    (lambda: fit_logistic(X6, Y6, method=np.array(["mle", "firth"])), "method"),
    (lambda: fit_logistic(X6, Y6, max_iter="5"), "max_iter"),
    (lambda: fit_logistic(X6, Y6, max_iter=10**400), "max_iter"),
    (lambda: fit_logistic(X6, Y6).cov(kind=np.array(["model", "model"])), "kind"),
    (lambda: fit_logistic(X6, Y6).summary(level="0.95"), "level"),
    (lambda: alpha0_interval([[2, 1]], [[0.5, 0.5]], method=np.array(["bootstrap"] * 2)), "method"),
    (lambda: variance_inflation("3", 1), "m"),
    (lambda: relative_efficiency(3, "1"), "alpha0"),
    (lambda: relative_efficiency(3, np.array([1j])), "alpha0"),
    (lambda: relative_efficiency(3, 10**400), "alpha0"),
    (lambda: godambe_information(np.eye(2), "3", 1), "m"),
    (lambda: godambe_information([[1e-10, 5e-9], [0, 1e-10]], 3, 1), "fisher"),  # no tolerance in absolute units
    (lambda: TwoClassNormal([1], [-1], [[1]], prior1="half"), "prior1"),
    (lambda: TwoClassNormal([1e308], [-1e308], [[1]]), "mean1"),
    (lambda: simulate_relative_efficiency([1], [[5]], [1], n=50, n_sims=2, rng=0), "m"),
    (lambda: simulate_relative_efficiency([1], [5], [[1]], n=50, n_sims=2, rng=0), "alpha"),
    (lambda: fit_logistic(pd.DataFrame(X6, columns=["a", "a"]), Y6), "X has more than one column named 'a'"),
    (lambda: fit_logistic(pd.DataFrame(X6, columns=["1", 1]), Y6), "X has more than one column named '1'"),
    (lambda: fit_logistic(np.ma.array(X6, mask=X6 == 5), Y6), r"X\[2, 1\] is nan"),
    (lambda: fit_logistic(X6.astype(str), Y6), "X must be an array of real numbers"),
    (lambda: fit_logistic(X6.astype(str).astype(object), Y6), "X must be an array of real numbers"),
    (lambda: fit_logistic(X6.astype("m8[s]"), Y6), "X must be an array of real numbers"),
    (lambda: fit_logistic(np.where(X6 == 5, np.longdouble("1e400"), X6), Y6), r"X\[2, 1\] is inf"),
    (lambda: fit_logistic(X6, Y6[:, None]), "counts must have a column for each"),
])
def test_wrong_parameters_are_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()


def test_whole_numbers_of_any_type():
    """A number that passes the check must work, as a float of three does not in a range."""
    expected = fit_logistic(X6, Y6, max_iter=30)
    for max_iter in (30.0, np.float16(30), np.int8(30), Fraction(30)):
        fit = fit_logistic(X6, Y6, max_iter=max_iter, tol=np.float16(1e-6))
        np.testing.assert_allclose(fit.coef, expected.coef, atol=1e-6)
        np.testing.assert_allclose(fit_logistic_batch([X6], [Y6], max_iter=max_iter).coef[0], expected.coef, atol=1e-6)
        assert len(bootstrap_alpha0([[2, 1]], [[0.5, 0.5]], max_iter, rng=0)) == 30


def test_a_fit_that_meets_every_vote_has_a_sandwich_of_zero_and_a_summary():
    """Every item at its expectation: no residual, and no warning of NumPy about 0 / 0 or the root of a rounding error."""
    rare = np.zeros((12, 1))
    rare[[4, 8]] = 1e6
    split = np.ones((12, 2), int)
    split[8] = [0, 1]
    for X, votes in (([[0.0], [1.0]], [[1, 1], [1, 1]]), (rare, split)):
        fit = fit_logistic(X, votes)
        assert np.all(fit.stderr() >= 0) and (fit.stderr() < 1e-6).any()
        assert list(fit.summary().index) == ["intercept", "x1"]


def test_a_linear_programme_on_which_the_first_solver_gives_up():
    """HiGHS ends here with "Status 0: Not Set". By hand: -1 + 1e9 x1 + 2 x2 - x3 is right on every item."""
    X = np.zeros((9, 3))
    X[[0, 2, 3], 0] = -1, 532, 1e-8
    X[[3, 4], 1] = -3, 1
    X[7, 2] = 1
    y = np.array([0, 0, 1, 1, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(-1 + X @ [1e9, 2, -1] > 0, y)
    assert find_separation(X, y) != "none"
    with pytest.warns(SeparationWarning):
        fit_logistic(X, y)


def test_a_tiny_level_is_an_interval_around_the_estimate():
    counts, tau = [[7, 0], [6, 1], [2, 5], [0, 7]], [[0.8, 0.2], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8]]
    estimate = estimate_alpha0(counts, tau).alpha0
    for level in (1e-300, 1e-12):
        low, high = alpha0_interval(counts, tau, level=level, method="likelihood")
        assert low == pytest.approx(estimate, rel=1e-4) and high == pytest.approx(estimate, rel=1e-4) and low <= high


# ------------------------------------------------------------------ arguments stay as they were

TAU = np.array([[0.5, 0.5], [0.2, 0.8], [0.7, 0.3]])
VOTES = np.array([[3.0, 1], [0, 2], [4, 0]])
MODEL = TwoClassNormal.canonical(2.0)
FIT = fit_logistic(X6, Y6)
KEEP = {
    "fit_logistic": (fit_logistic, X6, Y6.astype(float)),
    "fit_logistic counts": (fit_logistic, X6, C6.astype(float)),
    "firth": (lambda X, c: fit_logistic(X, c, method="firth").summary(), X6, C6.astype(float)),
    "cov": (lambda X, c: fit_logistic(X, c).cov(), X6, C6.astype(float)),
    "fit_logistic_batch": (lambda X, c, s: fit_logistic_batch(X, c, start=s), np.array([X6] * 9), np.array([C6] * 9),
                           np.ones(3)),
    "find_separation": (find_separation, X6, C6.astype(float)),
    "posterior": (FIT.posterior, X6),
    "predict": (FIT.predict, X6),
    "dm_logpmf": (lambda c, t: dm_logpmf(c, t, 2.0), VOTES, TAU),
    "dm_logpmf inf": (lambda c, t: dm_logpmf(c, t, np.inf), VOTES, TAU),
    "sample_votes": (lambda t, m: sample_votes(t, m, 2.0, rng=0), TAU, np.array([1.0, 2, 3])),
    "sample_probabilities": (lambda t: sample_probabilities(t, 2.0, rng=0), TAU),
    "estimate_alpha0": (estimate_alpha0, VOTES, TAU),
    "bootstrap_alpha0": (lambda c, t: bootstrap_alpha0(c, t, 5, rng=0), VOTES, TAU),
    "alpha0_interval": (lambda c, t: alpha0_interval(c, t, method="likelihood"), VOTES, TAU),
    "overdispersion_test": (overdispersion_test, VOTES, TAU),
    "relative_efficiency": (relative_efficiency, np.array([1.0, 5]), np.array([1.0, np.inf])),
    "variance_inflation": (variance_inflation, np.array([1.0, 5]), np.array([1.0, np.inf])),
    "godambe_information": (lambda f: godambe_information(f, 3, 1), np.eye(2)),
    "TwoClassNormal": (lambda a, b, c: TwoClassNormal(a, b, c).excess_error(), np.ones(2), np.zeros(2), np.eye(2)),
    "TwoClassNormal.posterior": (MODEL.posterior, X6),
    "TwoClassNormal.error_rate": (MODEL.error_rate, np.ones((4, 3))),
    "simulate": (lambda d, m, a: simulate_relative_efficiency(d, m, a, n=60, n_sims=3, rng=0, n_jobs=1), np.array([1.0]),
                 np.array([5.0, 3.0]), np.array([1.0, 10.0])),
}


@pytest.mark.parametrize("call", KEEP.values(), ids=KEEP)
@pytest.mark.parametrize("order", ["C", "F", "strided", "reversed"])
def test_arguments_are_neither_changed_nor_need_be_writable(call, order):
    """Read-only arrays, as memory-mapped files and pandas give them, in every layout; the answer is that of a plain array."""
    def layout(a):
        if order == "strided":
            wide = np.full((*a.shape[:-1], 2 * a.shape[-1]), -1.0)
            wide[..., ::2] = a
            return wide[..., ::2]
        if order == "reversed":
            return np.ascontiguousarray(a[::-1])[::-1]
        return np.array(a, order=order)

    function, *arguments = call
    given = [layout(a.astype(float)) for a in arguments]
    for a in given:
        a.flags.writeable = False
    result = function(*given)
    for a, before in zip(given, arguments):
        np.testing.assert_array_equal(a, before)
    plain = function(*[np.array(a, dtype=float) for a in arguments])
    if isinstance(result, np.ndarray):
        np.testing.assert_allclose(result, plain, rtol=1e-9, atol=1e-12)
        assert not any(np.shares_memory(result, a) for a in given)
    for name in ("coef", "alpha0"):
        if hasattr(result, name):
            np.testing.assert_allclose(getattr(result, name), getattr(plain, name), rtol=1e-9)


def test_results_do_not_change_with_the_arguments():
    """A result that kept the caller's array would follow its later changes."""
    X, votes = X6.copy(), C6.astype(float)
    fit = fit_logistic(X, votes)
    before = fit.cov("model"), fit.cov("sandwich")
    X *= 7
    votes += 3
    np.testing.assert_array_equal([fit.cov("model"), fit.cov("sandwich")], before)
    mean, cov = np.array([1.0, 0.0]), np.eye(2)
    model = TwoClassNormal(mean, -mean, cov)
    mean *= 3
    cov *= 5
    assert model.delta == 2 and model.mean1[0] == 1 and model.cov[0, 0] == 1


def test_checks_do_not_copy_what_is_right_already():
    X = np.random.default_rng(0).normal(size=(5, 2))
    assert as_features(X)[0] is X and as_numbers(X, "X", (2,), copy=False) is X and as_tau(TAU) is TAU
    assert as_numbers(X, "X", (2,)) is not X
    single = X.astype(np.float32)
    assert as_features(single, keep_float32=True)[0] is single
    assert as_features(single)[0].dtype == np.float64
    for other in (X, X.astype("f2"), X.astype(">f4"), X.astype(int), X.astype(object), X.tolist(), pd.DataFrame(X)):
        assert as_features(other, keep_float32=True)[0].dtype == np.float64
    assert as_features(pd.DataFrame(single), keep_float32=True)[0].dtype == np.float32
    votes = C6.astype(float)
    assert as_votes(votes, (6,)) is votes
    huge = np.full((4, 2), 1e308)  # whose sum overflows, though every value is finite
    assert as_features(huge)[0] is huge
    assert np.isfinite(as_features(np.full((4, 2), 3e38, np.float32), keep_float32=True)[0]).all()
