"""The whole public surface under arbitrary input: a right answer, or a ValueError or warning of ours that names the argument.

`attempt` is the only way by which functions are called here. It lets nothing else pass: no other exception, not even a
subclass of ValueError from a library, and no warning of NumPy. What comes back is compared with a value that shares no code.
"""

import functools
import inspect
import re
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reference import exact_logpmf
from scipy import stats
from scipy.special import expit

import softlabel as sl
from softlabel.datasets import DataFileError

GOOD = np.array([[0.0, 1], [1, 0], [2, 5], [3, 1], [4, -1], [2, 2]]), np.array([0, 1, 0, 1, 0, 1])
OURS = (sl.SeparationWarning, sl.ConvergenceWarning)
DRIVEN, ANSWERED = set(), set()
# What else an argument may be called by: its parts.
OTHER_WORDS = {"y_or_counts": ["y", "counts", "votes?"], "counts": ["votes?"], "ms": ["m"], "alphas": ["alpha0"],
               "deltas": ["delta"], "delta": ["mean1"]}


def examples(number):
    return settings(max_examples=number, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def drives(*names):
    """The test drives these names; it fails if one of them never gave an answer, since then nothing was compared."""
    DRIVEN.update(names)

    def mark(test):
        @functools.wraps(test)
        def run(*args, **kwargs):
            test(*args, **kwargs)
            assert ANSWERED.issuperset(names), f"never answered: {set(names) - ANSWERED}"
        return run
    return mark


def attempt(function, *args, **kwargs):
    """The answer, or None after an error of ours that names an argument of the function."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = function(*args, **kwargs)
        except ValueError as error:
            if isinstance(error, DataFileError):
                pytest.skip("needs the data files")
            names = {*inspect.signature(function).parameters}
            for name, words in OTHER_WORDS.items():
                names |= set(words) if name in names else set()
            assert type(error) is ValueError, f"{type(error).__name__} is not ours: {error}"
            assert re.search(rf"\b({'|'.join(names)})\b", str(error)), f"names none of {sorted(names)}: {error}"
            answer = None
    foreign = [w for w in caught if not issubclass(w.category, OURS)]
    assert not foreign, f"{foreign[0].category.__name__} escaped: {foreign[0].message}"
    for w in caught:
        ANSWERED.add(w.category.__name__)
    if answer is not None:
        ANSWERED.add(function.__qualname__)
        ANSWERED.add(type(answer).__name__)
    return answer


# ------------------------------------------------------------------ what callers pass

ODD = st.sampled_from([
    None, "a", "", "1", b"1", np.nan, np.inf, -np.inf, -1, 0, -0.0, 0.5, 1.5, 5e-324, 1e-310, 1e308, 1e300, 10**400, 2**64,
    True, False, 1j, [], [1, 2], [[]], [[1], [1, 2]], {}, {"a": 1}, (), object(), range(3), slice(2), Decimal("0.5"),
    Fraction(3, 2), np.array(3), np.array([1j]), np.float16(3), np.float32(0.5), np.int8(3), np.datetime64("2020-01-01"), pd.NA,
    pd.NaT, pd.Timestamp("2020"), np.array(["mle", "firth"]),
])
DTYPES = st.sampled_from(["?", "i1", "u1", "i8", "u8", "f2", "f4", "f8", "g", ">f8", "c16", "U3", "S3", "M8[D]", "m8[s]"])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


@st.composite
def anything(draw):
    """An array of any type and shape, or something that is none, or one in a pandas object."""
    kind = draw(st.sampled_from(["odd", "array", "object", "frame", "masked"]))
    if kind == "odd":
        return draw(ODD)
    if kind == "object":
        values = draw(st.lists(ODD, max_size=4))
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array if draw(st.booleans()) else values
    array = draw(hnp.arrays(draw(DTYPES), draw(SHAPES)))
    if kind == "masked":
        return np.ma.array(array, mask=draw(hnp.arrays(bool, array.shape)))
    # Half precision: pandas itself warns when it prints such a table.
    framed = kind == "frame" and array.ndim == 2 and array.dtype.kind not in "Mmcg" and array.dtype != np.float16
    return pd.DataFrame(array) if framed else array


@st.composite
def spoilt(draw, array):
    """A good array as it is, in another type or container, or with one bad value, one row less or one axis more."""
    array = np.array(array)
    change = draw(st.sampled_from(["nothing"] * 3 + ["value"] * 4 + ["row", "axis", "type", "container", "order"]))
    if change == "value" and array.size:
        array, bad = array.astype(float), st.sampled_from([-1, -1e-300, 0.5, 2, 1e17, 1e300, np.nan, np.inf])
        array.flat[draw(st.integers(0, array.size - 1))] = draw(bad)
    elif change == "row":
        array = array[: draw(st.integers(0, len(array)))]
    elif change == "axis":
        array = draw(st.sampled_from([array[None], array[..., None], array[..., 0], array.ravel()]))
    elif change == "type":
        with np.errstate(all="ignore"):
            array = array.astype(draw(st.sampled_from(["f4", "f2", "i8", "u1", "?", object, str, complex, "g"])))
    elif change == "container" and array.ndim <= 2:
        return draw(st.sampled_from([pd.DataFrame, np.ndarray.tolist, np.asfortranarray, np.ma.array]))(array)
    elif change == "order":
        return array[::-1]
    return array


NUMBERS = st.one_of(st.integers(-4, 4).map(float), st.floats(-1e3, 1e3),
                    st.sampled_from([0.0, 1e-300, 1e-8, 1e6, 1e8, 1e150, -1e150, 1e300, 1e-310, 1.7e308]))
ALPHA0 = st.one_of(st.floats(1e-12, 1e12), st.sampled_from([5e-324, 1e-310, 1e-300, 1e-12, 1.0, 1e300, 1.7e308, np.inf]))
SEED = st.integers(0, 2**32)


@st.composite
def features(draw, n=None, p=None):
    n, p = n or draw(st.integers(1, 14)), p or draw(st.integers(1, 3))
    if draw(st.booleans()):  # well behaved, in units of any size
        rng = np.random.default_rng(draw(SEED))
        return rng.normal(size=(n, p)) * 10.0 ** draw(st.integers(-9, 9)) + draw(st.sampled_from([0.0, 1.0, 1e6]))
    return draw(hnp.arrays(float, (n, p), elements=draw(st.sampled_from([st.integers(-4, 4).map(float), NUMBERS]))))


@st.composite
def items(draw):
    """Features and labels or votes of as many items."""
    X = draw(features())
    shape = draw(st.sampled_from([(len(X),), (len(X), 2)]))
    most = 1 if len(shape) == 1 else draw(st.sampled_from([1, 5, 200]))
    return X, draw(hnp.arrays(int, shape, elements=st.integers(0, most)))


@st.composite
def probabilities(draw, n=None, g=None):
    """Rows that sum to one, some of them with zeros or with values that are hardly above zero."""
    n, g = n or draw(st.integers(1, 6)), g or draw(st.integers(2, 4))
    tau = draw(hnp.arrays(float, (n, g), elements=st.floats(0.01, 1)))
    tau /= tau.sum(axis=1, keepdims=True)
    for row in range(n):
        if draw(st.integers(0, 3)) == 0:
            tau[row] = 0.0
            tau[row, -1] = draw(st.sampled_from([0.0, 5e-324, 1e-310, 1e-300, 1e-17]))
            tau[row, draw(st.integers(0, g - 2))] = 1.0
    return tau


@st.composite
def tables(draw):
    tau = draw(probabilities())
    return draw(hnp.arrays(int, tau.shape, elements=st.integers(0, draw(st.sampled_from([1, 3, 12]))))), tau


def are_votes(y):
    """Whether labels or counts are what the documentation asks for; an answer to anything else is a wrong one."""
    y = np.asarray(y, dtype=float)
    return np.isin(y, [0, 1]).all() if y.ndim == 1 else np.all((y >= 0) & (y == np.floor(y)) & np.isfinite(y))


def are_probabilities(tau):
    tau = np.asarray(tau, dtype=float)
    return np.all((tau >= 0) & (tau <= 1)) and np.abs(tau.sum(axis=-1) - 1).max() < 1e-8


def log_likelihood(eta, votes):
    return -(votes[:, 0] @ np.logaddexp(0, -eta) + votes[:, 1] @ np.logaddexp(0, eta))


def as_pairs(y):
    y = np.asarray(y, dtype=float)
    return np.column_stack([y, 1 - y]) if y.ndim == 1 else y


def check_fit(fit, X, y, firth=False):
    """What every fit must satisfy, whether or not there is a maximum."""
    X, votes = np.asarray(X, dtype=float), as_pairs(y)
    m = votes.sum(axis=1)
    assert np.isfinite(fit.coef).all() and fit.coef.shape == (X.shape[1] + 1,)
    assert fit.separation in ("none", "quasi", "complete") and fit.n_items == (m > 0).sum()
    assert repr(fit).startswith("LogisticFit(")
    with np.errstate(over="ignore", invalid="ignore"):
        eta = fit.coef[0] + X @ fit.coef[1:]
        size = np.abs(fit.coef[0]) + np.abs(X) @ np.abs(fit.coef[1:])
    assert np.isfinite(fit.log_likelihood) and fit.log_likelihood <= 0 and fit.deviance >= -1e-9 * (1 + m.sum())
    if not np.isfinite(size).all():
        return
    rounding = 1e-14 * size.max()
    assert fit.log_likelihood == pytest.approx(log_likelihood(eta, votes), rel=1e-9, abs=(1e-12 + rounding) * (1 + m.sum()))
    if fit.converged and not firth:
        assert fit.separation == "none"
        # The score vanishes: votes and their expectations have the same sum, and the same products with the features.
        residual = votes[:, 0] - m / (1 + np.exp(-np.clip(eta, -700, 700)))
        z = X - X.mean(axis=0)
        z = np.column_stack([np.ones(len(X)), z / np.maximum(np.abs(z).max(axis=0), 1e-300)])
        assert np.abs(residual @ z).max() <= (1e-6 + rounding) * m.sum()


# ------------------------------------------------------------------ logistic regression


@drives("fit_logistic", "LogisticFit", "find_separation", "SeparationWarning")
@examples(200)
@given(items(), st.data())
def test_fit_of_plausible_data(data, more):
    X, y = data
    kwargs = more.draw(st.sampled_from([{}, {}, {"method": "firth"}, {"max_iter": 3}, {"tol": 1e-12}]))
    fit = attempt(sl.fit_logistic, X, y, **kwargs)
    kind = attempt(sl.find_separation, X, y)
    if fit is not None:
        check_fit(fit, X, y, firth="method" in kwargs)
        assert fit.separation == kind or np.linalg.cond(np.column_stack([np.ones(len(X)), X])) > 1e6
        if kind != "none" and "method" not in kwargs:
            assert not fit.converged


@drives("fit_logistic", "find_separation")
@examples(300)
@given(items(), st.data())
def test_fit_of_spoilt_data(data, more):
    X, y = (more.draw(spoilt(part)) for part in data)
    fit = attempt(sl.fit_logistic, X, y)
    kind = attempt(sl.find_separation, X, y)
    assert kind in (None, "none", "quasi", "complete")
    if fit is not None:
        assert np.shape(X)[0] == np.shape(y)[0] and len(fit.posterior(X)) == len(X) and are_votes(y)
        if np.asarray(X).dtype != object and np.asarray(y).dtype != object:
            check_fit(fit, X, y)


@examples(250)
@given(anything(), anything(), st.data())
def test_fit_of_anything(X, y, more):
    X, y = more.draw(st.sampled_from([(X, y), (X, GOOD[1]), (GOOD[0], y)]))
    for function in (sl.fit_logistic, sl.find_separation, sl.fit_logistic_batch):
        if attempt(function, X, y) is not None and function is not sl.fit_logistic_batch:
            assert are_votes(y) and np.isfinite(np.asarray(X, dtype=float)).all() and len(X) == len(y)
    attempt(sl.fit_logistic_batch, GOOD[0][None], GOOD[1][None], start=y)


@examples(150)
@given(ODD, st.sampled_from(["method", "max_iter", "tol"]))
def test_options_of_the_fits(odd, name):
    X, y = GOOD
    fit = attempt(sl.fit_logistic, X, y, **{name: odd})
    if fit is not None and name != "tol":  # which says how far from the answer it may end
        check_fit(fit, X, y)
    if name != "method":
        attempt(sl.fit_logistic_batch, X[None], y[None], **{name: odd})


@drives("LogisticFit.posterior", "LogisticFit.predict")
@examples(200)
@given(st.one_of(anything(), features(p=2)), st.booleans())
def test_new_items(Z, named):
    X, y = np.random.default_rng(1).normal(size=(30, 2)), np.arange(30) % 2
    fit = sl.fit_logistic(pd.DataFrame(X, columns=["a", "b"]) if named else X, y)
    tau, label = attempt(fit.posterior, Z), attempt(fit.predict, Z)
    assert (tau is None) == (label is None)
    if tau is not None:
        assert tau.shape == (len(Z), 2) and np.all((tau >= 0) & (tau <= 1)) and np.abs(tau.sum(axis=1) - 1).max() < 1e-12
        np.testing.assert_array_equal(label, tau[:, 0] > tau[:, 1])
        with np.errstate(over="ignore", invalid="ignore"):
            eta = fit.coef[0] + np.asarray(Z, dtype=float) @ fit.coef[1:]
        assert np.all((eta > 1e-9) <= (tau[:, 0] > 0.5))


@drives("LogisticFit.cov", "LogisticFit.stderr", "LogisticFit.summary")
@examples(120)
@given(items(), st.one_of(ODD, st.sampled_from(["model", "sandwich"])), st.one_of(ODD, st.floats(0, 1)))
def test_uncertainty_of_a_fit(data, kind, level):
    X, y = data
    fit = attempt(sl.fit_logistic, X, y)
    if fit is None:
        fit = sl.fit_logistic(*GOOD)
    cov, stderr = attempt(fit.cov, kind), attempt(fit.stderr, kind)
    table = attempt(fit.summary, level=level)
    if cov is not None and np.isfinite(cov).all():
        d = np.sqrt(np.maximum(np.diag(cov), 0))  # where every vote is met exactly, zero up to rounding
        np.testing.assert_array_equal(stderr, d)
        scaled = cov / np.where(d > 0, d, 1) / np.where(d > 0, d, 1)[:, None]
        np.testing.assert_allclose(scaled, scaled.T, atol=1e-6)
        if kind == "model" and fit.converged:
            assert np.linalg.eigvalsh(scaled).min() > -1e-6
    if table is not None:
        known = np.isfinite(table["stderr"])
        assert (table["lower"] <= table["coef"])[known].all() and (table["coef"] <= table["upper"])[known].all()
        assert table["pvalue"][known & np.isfinite(table["z"])].between(0, 1).all()


def rounding(X, coef):
    """Error (n,) of linear predictors computed twice: each, and its intercept, is a sum of p + 1 such terms.

    Of features of 1e6 that differ by 1e-5, whose coefficients are near 1e5, five digits are left.
    """
    return 4 * len(coef) * np.finfo(float).eps * (abs(coef[0]) + np.abs(X) @ np.abs(coef[1:]))


@drives("fit_logistic_batch", "BatchFit", "ConvergenceWarning")
@examples(60)
@given(st.data())
def test_a_batch_is_its_single_fits(data):
    X = np.stack([data.draw(features(n=12, p=2)) for _ in range(3)])
    y = data.draw(hnp.arrays(int, (3, 12), elements=st.integers(0, 1)))
    batch = attempt(sl.fit_logistic_batch, X, y)
    single = [attempt(sl.fit_logistic, *pair) for pair in zip(X, y)]
    assert (batch is None) == any(fit is None for fit in single)
    if batch is not None:
        assert repr(batch).startswith("BatchFit(3 data sets")
        for k, fit in enumerate(single):
            assert batch.converged[k] == fit.converged
            if fit.converged:
                tau = 1 / (1 + np.exp(-(batch.coef[k, 0] + X[k] @ batch.coef[k, 1:])))
                error = np.abs(tau - fit.posterior(X[k])[:, 0])
                assert (error <= 1e-6 + rounding(X[k], fit.coef) / 4).all()


@examples(60)
@given(st.lists(st.sampled_from([0.0, 1.0, -3.0, 1e3, 1e12, 1e17, 1e200, 1e308, -1e308]), min_size=3, max_size=3))
def test_any_start_leads_to_the_answer_or_a_warning(start):
    X, y = np.random.default_rng(1).normal(size=(30, 2)), np.arange(30) % 2
    batch = attempt(sl.fit_logistic_batch, X[None], y[None], start=start, max_iter=100)
    if batch is not None and batch.converged[0]:
        np.testing.assert_allclose(batch.coef[0], sl.fit_logistic(X, y).coef, atol=1e-6)


LABELS = st.sampled_from([0, 1, 2, -1, True, False, "a", "b", "", 0.5, np.nan, None, pd.NA, Fraction(1, 2), b"a", {}, 1j])


@examples(200)
@given(st.lists(LABELS, min_size=4, max_size=4), st.one_of(LABELS, ODD), st.booleans())
def test_labels_of_any_kind(labels, positive, as_category):
    y = np.empty(4, dtype=object)
    y[:] = labels
    if as_category:
        try:
            y = pd.Categorical(y)
        except (TypeError, ValueError):  # not hashable, which is for pandas to say
            assume(False)
    X = np.array([[0.0], [1], [2], [2]])
    if positive is None:
        fit = attempt(sl.fit_logistic, X, y)
        expected = [label == 1 for label in labels]
    else:
        fit = attempt(sl.fit_logistic, X, y, positive=positive)
        expected = [bool(np.all(label == positive)) for label in labels] if fit is not None else None
    if fit is not None:
        other = attempt(sl.fit_logistic, X, np.array(expected))
        np.testing.assert_array_equal(fit.coef, other.coef)


# ------------------------------------------------------------------ votes


@drives("dm_logpmf")
@examples(150)
@given(tables(), ALPHA0)
def test_logpmf_is_exact(data, alpha0):
    counts, tau = data
    value = attempt(sl.dm_logpmf, counts, tau, alpha0)
    for v, s, t in zip(value, counts, tau):
        exact = float(exact_logpmf(s, t, alpha0, 400))
        assert v == pytest.approx(exact, rel=1e-12, abs=1e-11)


WITH_COUNTS_AND_TAU = {
    "dm_logpmf": lambda counts, tau: sl.dm_logpmf(counts, tau, 2.0),
    "estimate_alpha0": sl.estimate_alpha0,
    "overdispersion_test": sl.overdispersion_test,
    "bootstrap_alpha0": lambda counts, tau: sl.bootstrap_alpha0(counts, tau, 3, rng=0),
    "alpha0_interval": lambda counts, tau: sl.alpha0_interval(counts, tau, n_resamples=5, rng=0),
    "by likelihood": lambda counts, tau: sl.alpha0_interval(counts, tau, method="likelihood"),
}


@pytest.mark.parametrize("function", WITH_COUNTS_AND_TAU.values(), ids=WITH_COUNTS_AND_TAU)
@examples(80)
@given(st.data())
def test_votes_of_any_kind(function, data):
    counts, tau = data.draw(tables())
    counts, tau = data.draw(st.sampled_from(["both", "both", "counts", "tau", "neither"]).flatmap(lambda which: st.tuples(
        anything() if which in ("counts", "neither") else spoilt(counts),
        anything() if which in ("tau", "neither") else spoilt(tau))))
    # Votes by the billion are no error, but this file must end.
    if type(counts) is np.ndarray and counts.dtype.kind in "iuf":
        with np.errstate(over="ignore"):
            assume(not np.any((counts.astype(float) > 1e4) & (counts.astype(float) < 1e16)))
    if attempt(function, counts, tau) is not None:
        assert are_votes(counts) and are_probabilities(tau) and np.shape(counts) == np.shape(tau)


@drives("estimate_alpha0", "Alpha0Fit", "overdispersion_test", "alpha0_interval", "bootstrap_alpha0")
@examples(100)
@given(tables(), SEED)
def test_estimate_is_the_maximum(data, seed):
    counts, tau = data
    fit = attempt(sl.estimate_alpha0, counts, tau)
    test = attempt(sl.overdispersion_test, counts, tau)
    estimates = attempt(sl.bootstrap_alpha0, counts, tau, 10, seed)
    interval = attempt(sl.alpha0_interval, counts, tau, 0.9, "likelihood")
    ends = attempt(sl.alpha0_interval, counts, tau, 0.9, "bootstrap", 10, seed)
    assert len({answer is None for answer in (fit, test, estimates, interval, ends)}) == 1
    if fit is None:
        return
    others = [sl.dm_logpmf(counts, tau, a).sum() for a in [*np.logspace(-8, 10, 37), np.inf]]
    rounding = 1e-9 + 1e-12 * abs(min(others))
    assert fit.log_likelihood >= max(others) - rounding and 0 <= fit.alpha0 <= np.inf
    assert fit.multinomial_log_likelihood == pytest.approx(others[-1], rel=1e-12)
    assert "alpha0 = " in repr(fit)
    assert test.statistic == pytest.approx(2 * (fit.log_likelihood - others[-1]), abs=2 * rounding) and 0 <= test.pvalue <= 1
    assert estimates.shape == (10,) and np.all(estimates >= 0)
    assert interval[0] <= fit.alpha0 * (1 + 1e-6) and fit.alpha0 <= interval[1] * (1 + 1e-6)
    assert estimates.min() <= ends[0] <= ends[1] <= estimates.max()


@examples(100)
@given(ODD, st.sampled_from(["level", "method", "n_resamples", "rng"]))
def test_options_of_the_interval(odd, name):
    assume(not (name == "n_resamples" and isinstance(odd, float) and 1e4 < odd < 1e16))
    counts, tau = [[7, 0], [6, 1], [2, 5], [0, 7]], [[0.8, 0.2], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8]]
    options = {"n_resamples": 5, "rng": 0} | {name: odd}
    ends = attempt(sl.alpha0_interval, counts, tau, **options)
    if ends is not None:
        assert 0 <= ends[0] <= ends[1]
    if name in ("n_resamples", "rng"):
        attempt(sl.bootstrap_alpha0, counts, tau, **options)
    if name == "level":
        ends = attempt(sl.alpha0_interval, counts, tau, level=odd, method="likelihood")
        assert ends is None or ends[0] <= 1.8506 <= ends[1] or ends[1] - ends[0] < 1


@drives("sample_votes", "sample_probabilities")
@examples(150)
@given(probabilities(), st.integers(1, 30), ALPHA0, SEED)
def test_draws(tau, m, alpha0, seed):
    p = attempt(sl.sample_probabilities, tau, alpha0, seed)
    votes = attempt(sl.sample_votes, tau, m, alpha0, seed)
    assert p.shape == votes.shape == tau.shape
    assert np.all((p >= 0) & (p <= 1)) and np.abs(p.sum(axis=1) - 1).max() < 1e-12
    assert np.all(votes >= 0) and np.all(votes.sum(axis=1) == m)
    assert not votes[tau == 0].any() and not p[tau == 0].any()
    if alpha0 < 1e-200:
        assert np.all(votes.max(axis=1) == m)
    if alpha0 > 1e20:
        np.testing.assert_allclose(p, tau, atol=1e-8)


@examples(200)
@given(st.data(), ODD, st.sampled_from(["tau", "spoilt", "m", "alpha0", "rng"]))
def test_draws_of_any_kind(data, odd, name):
    tau = data.draw(probabilities())
    arguments = {"tau": tau, "m": 3, "alpha0": 2.0, "rng": 0}
    if name in ("tau", "spoilt"):
        arguments["tau"] = data.draw(anything() if name == "tau" else spoilt(tau))
    else:
        arguments[name] = odd if name == "rng" else data.draw(st.one_of(st.just(odd), anything()))
    votes = attempt(sl.sample_votes, **arguments)
    if votes is not None:
        assert np.all(votes.sum(axis=-1) == np.asarray(arguments["m"])) and np.all(votes >= 0)
    arguments.pop("m")
    if attempt(sl.sample_probabilities, **arguments) is not None:
        assert are_probabilities(arguments["tau"])


# ------------------------------------------------------------------ efficiency


@drives("relative_efficiency", "variance_inflation", "godambe_information")
@examples(200)
@given(st.one_of(st.floats(1, 1e6), st.sampled_from([1, 2, 1e15])), ALPHA0)
def test_efficiency_is_exact(m, alpha0):
    """Against rational arithmetic, in which nothing is rounded."""
    if np.isinf(alpha0):
        efficiency, inflation = Fraction(m), Fraction(1)
    else:
        efficiency = Fraction(m) * (1 + Fraction(alpha0)) / (Fraction(m) + Fraction(alpha0))
        inflation = (Fraction(m) + Fraction(alpha0)) / (1 + Fraction(alpha0))
    assert attempt(sl.relative_efficiency, m, alpha0) == pytest.approx(float(efficiency), rel=1e-12)
    assert attempt(sl.variance_inflation, m, alpha0) == pytest.approx(float(inflation), rel=1e-12)
    information = attempt(sl.godambe_information, [[2.0, 1.0], [1.0, 3.0]], m, alpha0)
    if float(efficiency) < 1e300:
        np.testing.assert_allclose(information, float(efficiency) * np.array([[2, 1], [1, 3]]), rtol=1e-12)


@drives("design_votes", "VoteDesign")
@examples(200)
@given(st.fractions(1, 60, max_denominator=20), st.fractions(0, 9, max_denominator=20), st.fractions("1/4", 9, max_denominator=20),
       ALPHA0, st.one_of(st.none(), st.integers(1, 9)))
def test_no_design_is_better(budget, item, vote, alpha0, n_items):
    design = attempt(sl.design_votes, budget=float(budget), cost_item=float(item), cost_vote=float(vote), alpha0=alpha0,
                     n_items=n_items)
    assert (design is None) == (item + vote > budget)
    if design is not None:
        n = [min(n_items or np.inf, budget // (item + m * vote)) for m in range(1, int(budget / vote) + 1)]
        most = max(k * attempt(sl.relative_efficiency, m, alpha0) for m, k in enumerate(n, 1))
        assert design.worth == pytest.approx(most, rel=1e-12)
        assert design.n_items * (item + design.m * vote) <= budget
        assert design.worth == design.n_items * attempt(sl.relative_efficiency, design.m, alpha0)


@examples(250)
@given(st.sampled_from([*inspect.signature(sl.design_votes).parameters]), anything())
def test_design_of_anything(name, odd):
    good = {"budget": 20, "cost_item": 2, "cost_vote": 1, "alpha0": 5}
    attempt(sl.design_votes, **(good | {name: odd}))


@examples(250)
@given(anything(), anything(), anything())
def test_efficiency_of_anything(m, alpha0, fisher):
    for function in (sl.relative_efficiency, sl.variance_inflation):
        for pair in ((m, alpha0), (m, 2.0), (3, alpha0)):
            value = attempt(function, *pair)
            assert value is None or np.all(np.asarray(value) >= 1)
    for arguments in ((fisher, m, alpha0), (fisher, 3, 2.0), (np.eye(2), m, 2.0), (np.eye(2), 3, alpha0)):
        attempt(sl.godambe_information, *arguments)


# ------------------------------------------------------------------ two normal classes


@st.composite
def models(draw):
    p = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(SEED))
    root = rng.normal(size=(p, p)) + 2 * np.eye(p)
    unit = 10.0 ** draw(st.integers(-6, 6))
    prior1 = draw(st.one_of(st.floats(0.01, 0.99), st.sampled_from([1e-12, 0.5])))
    mean1, mean2, cov = unit * rng.normal(size=p), unit * rng.normal(size=p), unit**2 * root @ root.T
    return mean1, mean2, (cov + cov.T) / 2, prior1


@drives("TwoClassNormal", "TwoClassNormal.posterior", "TwoClassNormal.error_rate", "TwoClassNormal.bayes_error",
        "TwoClassNormal.sample", "TwoClassNormal.fisher_information", "TwoClassNormal.error_curvature",
        "TwoClassNormal.excess_error")
@examples(60)
@given(models(), st.integers(1, 20), SEED)
def test_two_normal_classes(parameters, n, seed):
    mean1, mean2, cov, prior1 = parameters
    model = attempt(sl.TwoClassNormal, *parameters)
    assume(model is not None and model.delta < 30)
    Y, z = attempt(model.sample, n, seed)
    assert Y.shape == (n, len(mean1)) and set(z) <= {0, 1}
    tau = attempt(model.posterior, Y)
    logit = (np.log(prior1) - np.log1p(-prior1) + stats.multivariate_normal(mean1, cov).logpdf(Y)
             - stats.multivariate_normal(mean2, cov).logpdf(Y))
    np.testing.assert_allclose(np.log(tau[:, 0]) - np.log(tau[:, 1]), logit, rtol=1e-6, atol=1e-6)
    best = attempt(model.bayes_error)
    cut = np.log(prior1 / (1 - prior1)) / model.delta
    right = prior1 * stats.norm.cdf(-model.delta / 2 - cut) + (1 - prior1) * stats.norm.cdf(-model.delta / 2 + cut)
    assert best == pytest.approx(right, rel=1e-6)
    rng = np.random.default_rng(seed)
    rules = rng.normal(size=(5, len(mean1) + 1)) * 10.0 ** rng.integers(-200, 200)
    errors = attempt(model.error_rate, rules)
    assert np.all((errors >= best * (1 - 1e-9)) & (errors <= 1))
    information, curvature = attempt(model.fisher_information), attempt(model.error_curvature)
    unit = np.sqrt(np.diag(information))
    assert np.linalg.eigvalsh(information / unit / unit[:, None]).min() > 0
    assert np.all(np.abs(curvature @ model.coef) <= 1e-7 * (np.abs(curvature) @ np.abs(model.coef)))
    assert attempt(model.excess_error) >= 0


@examples(200)
@given(anything(), st.integers(0, 7), ODD)
def test_normal_classes_of_any_kind(value, place, odd):
    arguments = [[1.0, 0.0], [0.0, 0.0], np.eye(2), 0.5]
    if place < 4:
        arguments[place] = value
        model = attempt(sl.TwoClassNormal, *arguments)
        assert model is None or 0 <= attempt(model.bayes_error) <= 0.5
    model = sl.TwoClassNormal(*arguments) if place >= 4 else sl.TwoClassNormal.canonical(1.0)
    errors = attempt(model.error_rate, value)
    assert errors is None or np.all((np.asarray(errors) >= model.bayes_error() * (1 - 1e-9)) & (np.asarray(errors) <= 1))
    tau = attempt(model.posterior, value)
    assert tau is None or np.abs(tau.sum(axis=-1) - 1).max() < 1e-12
    if not (isinstance(odd, float) and 1e4 < odd < 1e16):
        for name in ("n", "rng", "size"):
            attempt(model.sample, **({"n": 3} | {name: odd}))


@drives("TwoClassNormal.canonical")
@examples(150)
@given(st.one_of(st.floats(1e-3, 30), ODD, anything()), st.one_of(st.integers(1, 4), ODD), st.one_of(st.floats(0, 1), ODD))
def test_canonical_pair(delta, p, prior1):
    model = attempt(sl.TwoClassNormal.canonical, delta, p, prior1)
    if model is not None:
        assert model.delta == pytest.approx(float(delta), rel=1e-12)
        if float(delta) < 30 and 1e-9 < model.prior1 < 1 - 1e-9:
            assert 0 <= attempt(model.bayes_error) <= min(model.prior1, 1 - model.prior1) * (1 + 1e-9)
            assert attempt(model.excess_error) >= 0


@drives("fit_limit", "FitLimit")
@examples(60)
@example(delta=1.0, p=1, prior1=0.1875, s=0.5, c=-1.5982012364975424e-09, share=0.0)  # a floor of rounding size
@given(st.floats(0.3, 5), st.integers(1, 4), st.floats(0.02, 0.98), st.floats(0.1, 4), st.floats(-2, 2), st.floats(0, 1))
def test_limit_of_a_distorted_response(delta, p, prior1, s, c, share):
    """Votes of log-odds s eta + c have a limit in closed form, and fewer of them a larger variance."""
    model = sl.TwoClassNormal.canonical(delta, p, prior1)

    def mean(eta):
        return expit(s * eta + c)

    limit = attempt(sl.fit_limit, model, mean, lambda eta: share * mean(eta) * (1 - mean(eta)))
    np.testing.assert_allclose(limit.coef, s * model.coef + np.eye(p + 1)[0] * c, rtol=1e-6, atol=1e-6)
    assert limit.floor >= 0 and limit.truth == pytest.approx(attempt(model.excess_error))
    assert np.linalg.eigvalsh(limit.cov).min() >= -1e-9 * np.abs(limit.cov).max()
    assert limit.break_even >= 0 and limit.relative_efficiency >= 0
    if repr(limit):
        ANSWERED.add("FitLimit")


@examples(80)
@given(st.sampled_from(["model", "mean", "variance"]), st.one_of(ODD, anything()), st.booleans())
def test_limit_of_any_parameters(name, odd, wrapped):
    arguments = {"model": sl.TwoClassNormal.canonical(1.0), "mean": expit, "variance": None}
    attempt(sl.fit_limit, **arguments | {name: (lambda eta: odd) if wrapped and name != "model" else odd})


@drives("fit_dirichlet_multinomial", "JointFit", "JointFit.cov", "JointFit.stderr", "JointFit.posterior")
@examples(60)
@given(features(), st.integers(2, 30), SEED)
def test_no_parameters_are_more_likely_than_the_joint_fit(X, m, seed):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, m + 1, len(X))
    counts = np.column_stack([s, m - s])
    fit = attempt(sl.fit_dirichlet_multinomial, X, counts)
    if fit is None or fit.separation != "none" or not fit.converged or fit.alpha0 == 0:
        return
    tau = attempt(fit.posterior, X)
    here = attempt(sl.dm_logpmf, counts, tau, fit.alpha0).sum()
    lost = m * rounding(X, fit.coef).sum()  # no vote's score exceeds 1
    assert fit.log_likelihood == pytest.approx(here, abs=1e-9 + lost)
    pooled = attempt(sl.fit_logistic, X, counts).posterior(X)
    alpha0 = attempt(sl.estimate_alpha0, counts, pooled).alpha0
    if alpha0 > 0:
        assert here >= attempt(sl.dm_logpmf, counts, pooled, alpha0).sum() - 1e-6 - 2 * lost
    cov = attempt(fit.cov)
    np.testing.assert_allclose(attempt(fit.stderr) ** 2, np.diag(cov), rtol=1e-9)


@examples(250)
@given(anything(), anything(), st.data())
def test_joint_fit_of_anything(X, counts, more):
    good = GOOD[0], np.column_stack([2 * GOOD[1] + 1, 3 - 2 * GOOD[1]])
    X, counts = more.draw(st.sampled_from([(X, counts), (X, good[1]), (good[0], counts)]))
    attempt(sl.fit_dirichlet_multinomial, X, counts)
    attempt(sl.fit_dirichlet_multinomial, *good, **{more.draw(st.sampled_from(["max_iter", "tol"])): more.draw(ODD)})


# ------------------------------------------------------------------ reports


@st.composite
def vote_tables(draw):
    """A long table of votes on some of twelve items, with gaps and repeats, and the features of these items."""
    rng = np.random.default_rng(draw(SEED))
    rows = draw(st.integers(1, 80))
    votes = pd.DataFrame({"item": rng.integers(0, 12, rows), "annotator": rng.integers(0, 4, rows).astype(str),
                          "label": rng.choice(np.array(["yes", "no", None], dtype=object), rows, p=[0.5, 0.4, 0.1])})
    return votes, pd.DataFrame({"size": rng.normal(size=12)})


@drives("analyse_votes", "VoteReport", "VoteReport.table", "VoteReport.sentences", "VoteReport.to_html")
@examples(25)
@given(vote_tables())
def test_reports_count_every_vote(tables):
    votes, features = tables
    report = attempt(sl.analyse_votes, votes, features, positive="yes")
    if report is None:
        return
    once = votes.dropna().drop_duplicates(["item", "annotator"])
    assert report.counted["votes used"] == len(once) == report.items["votes"].sum()
    assert report.counted["missing votes"] == votes["label"].isna().sum()
    assert report.counted["repeated votes"] == votes["label"].notna().sum() - len(once)
    positive = once[once["label"] == "yes"].groupby("item").size()
    assert (report.items["positive"] == positive.reindex(report.items.index, fill_value=0)).all()
    assert len(attempt(report.table)) and attempt(report.sentences) and "<html" in attempt(report.to_html)


@drives("VoteReport.save")
def test_a_saved_report_is_the_page(tmp_path):
    votes = pd.DataFrame({"item": [0, 0, 1, 1, 2, 2, 3, 3], "annotator": list("abababab"), "label": list("ynynnyyn")})
    report = attempt(sl.analyse_votes, votes, pd.DataFrame({"size": [1.0, 3.0, 2.0, 5.0]}), positive="y")
    report.save(tmp_path / "report.html")
    ANSWERED.add("VoteReport.save")
    assert (tmp_path / "report.html").read_text("utf8") == attempt(report.to_html)


@examples(150)
@example(name="columns", odd=[[]])
@example(name="cost_vote", odd=1e308)
@given(st.sampled_from([*inspect.signature(sl.analyse_votes).parameters]), st.one_of(ODD, anything()))
def test_reports_of_anything(name, odd):
    votes = pd.DataFrame({"item": np.repeat(range(6), 3), "annotator": list("abc") * 6, "label": list("ynn" * 3 + "yyn" * 3)})
    attempt(sl.analyse_votes, **({"votes": votes, "features": pd.DataFrame({"size": [1, 3, 2, 5, 4, 6]}), "positive": "y"} | {name: odd}))


# ------------------------------------------------------------------ the two studies


@drives("simulate_relative_efficiency")
@examples(25)
@given(st.lists(st.floats(0.5, 3), min_size=1, max_size=2), st.lists(st.integers(1, 9), min_size=1, max_size=2),
       st.lists(ALPHA0, min_size=1, max_size=2), st.integers(20, 80), st.integers(1, 3), SEED)
def test_study_of_two_normal_classes(deltas, ms, alphas, n, p, seed):
    frame = attempt(sl.simulate_relative_efficiency, deltas, ms, alphas, n=n, p=p, n_sims=3, rng=seed, n_jobs=1)
    cells = [(d, m, a) for d in deltas for m in ms for a in alphas]
    assert list(frame[["delta", "m", "alpha0"]].itertuples(index=False, name=None)) == cells
    np.testing.assert_allclose(frame["are"], [sl.relative_efficiency(m, a) for _, m, a in cells])
    assert (frame["re"] > 0).all() and (frame["re_se"] >= 0).all()


@examples(80)
@given(st.sampled_from(["deltas", "ms", "alphas", "n", "p", "n_sims", "rng"]), st.one_of(ODD, anything()))
def test_study_of_any_parameters(name, odd):
    # Large studies are no error, but this file must end.
    assume(name not in ("n", "p", "n_sims") or not isinstance(odd, (int, float)) or not 50 < odd < 1e16)
    arguments = {"deltas": [1.0], "ms": [3], "alphas": [2.0], "n": 30, "n_sims": 2, "rng": 0, "n_jobs": 1} | {name: odd}
    attempt(sl.simulate_relative_efficiency, **arguments)


@drives("simulate_breast_cancer")
@examples(6)
@given(st.integers(1, 9), ALPHA0, SEED, st.sampled_from(["glm", "firth", "ridge"]))
def test_study_of_the_tumours(m, alpha0, seed, method):
    frame = attempt(sl.simulate_breast_cancer, [m], [alpha0], n_train=50, n_splits=2, rng=seed, n_jobs=1, method=method)
    assert len(frame) == 2 and frame["error"].between(0, 1).all() and frame["share_separated"].between(0, 1).all()
    assert frame["are"].tolist() == [1.0, pytest.approx(sl.relative_efficiency(m, alpha0))]


@examples(40)
@given(st.sampled_from(["ms", "alphas", "n_train", "n_splits", "method"]), st.sampled_from(
    [None, "a", np.nan, np.inf, -1, 0, 0.5, [], {}, [None], ["a"], np.array(["glm", "ridge"]), 10**400, 1j, object()]))
def test_study_of_the_tumours_of_any_parameters(name, odd):
    arguments = {"ms": [3], "alphas": [2.0], "n_train": 50, "n_splits": 2, "rng": 0, "n_jobs": 1} | {name: odd}
    assume(not (name == "alphas" and isinstance(odd, float) and odd > 0))
    assert attempt(sl.simulate_breast_cancer, **arguments) is None


# ------------------------------------------------------------------ nothing is left out


def test_every_public_name_is_driven():
    loaders = {name for name in sl.__all__ if name.startswith("load_")}
    classes = [thing for name in sl.__all__ if inspect.isclass(thing := getattr(sl, name)) and not issubclass(thing, Warning)]
    methods = {f"{c.__name__}.{name}" for c in classes for name in vars(c)
               if not name.startswith("_") and callable(getattr(c, name))}
    assert {"LogisticFit.cov", "TwoClassNormal.canonical"} <= methods
    assert DRIVEN == set(sl.__all__) - loaders | methods


def test_what_is_not_ours_does_not_pass():
    """The net itself: each of these must be caught by it."""
    def singular(X):
        raise np.linalg.LinAlgError("X")

    def nameless(X):
        raise ValueError("expected a non-negative integer")

    def noisy(X):
        return np.log(np.array(X))

    for function in (singular, nameless, noisy):
        with pytest.raises(AssertionError):
            attempt(function, 0.0)
    with pytest.raises(TypeError):
        attempt(lambda X: X + "", 0.0)
