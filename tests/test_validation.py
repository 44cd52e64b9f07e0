"""What functions take: one table of argument, bad value and what the message says; arbitrary values; kinds of good ones.

Valid are: features of finite numbers in columns that are neither constant nor combinations of others; labels 0 and 1, or of
two kinds of which ``positive`` names one; whole numbers of votes; rows of probabilities that sum to one; alpha0 above 0, inf
included; numbers of labellers from 1. Anything else is a ValueError with the argument's name, the place and the value.
"""

import enum
import inspect
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit
from strategies import ODD, answered, anything, attempt, examples, spoilt

import softlabel as sl

nan, inf = np.nan, np.inf
X = np.array([[0.0, 1], [1, 0], [2, 5], [3, 1], [4, -1], [2, 2]])
Y = np.array([0, 1, 0, 1, 0, 1])
C = np.array([[1, 2], [2, 2], [0, 3], [3, 0], [1, 1], [0, 0]])
TAU = np.array([[0.5, 0.5], [0.2, 0.8], [0.7, 0.3]])
VOTES = np.array([[3, 1], [0, 2], [4, 0]])
NAMES = list("uvwxyz")
FRAME = pd.DataFrame(X, columns=["size", "shape"], index=NAMES)
LABELS = pd.Series(Y, index=NAMES)
COUNTS = pd.DataFrame(C, columns=["pos", "neg"], index=NAMES)
MODEL, FIT, JOINT = sl.TwoClassNormal.canonical(1.0), sl.fit_logistic(X, Y), sl.fit_dirichlet_multinomial(X, C)
NAMED = sl.fit_logistic(FRAME, LABELS)
ITEMS = np.random.default_rng(0).normal(size=(50, 2))
MANY = sl.sample_votes(np.column_stack([expit(ITEMS[:, 0]), expit(-ITEMS[:, 0])]), np.tile([1, 4], 25), 2.0, 1)
FITTED = sl.fit_logistic(ITEMS, MANY).posterior(ITEMS)
STUDY = {"ms": [3], "alphas": [2.0], "rng": 0, "n_jobs": 1, "memory": None}
JUDGED, TRUE = np.random.default_rng(0).normal(size=(40, 2)), np.where(np.arange(40) < 30, np.arange(40) % 2, nan)
MARKS = np.random.default_rng(1).integers(0, 4, (40, 2)) + 1
MARKED = pd.DataFrame(
    {"item": np.repeat(np.arange(40), MARKS.sum(axis=1)), "label": np.repeat(np.tile([1, 0], 40), MARKS.ravel())}
)
MARKED["annotator"] = np.arange(len(MARKED)) % 12
REPORT = pd.DataFrame({"item": np.repeat(range(6), 3), "annotator": list("abc") * 6, "label": list("ynn" * 3 + "yyn" * 3)})


def by_bootstrap(counts, tau, level, n_resamples):
    return sl.alpha0_interval(counts, tau, level=level, method="bootstrap", n_resamples=n_resamples, rng=0)


def by_likelihood(counts, tau, level):
    return sl.alpha0_interval(counts, tau, level=level, method="likelihood")


# Every public function, and every method that takes an argument, with arguments that it answers.
ANSWERED = {
    "fit_logistic": dict(X=X, y_or_counts=Y, positive=None, method="mle", max_iter=25, tol=1e-8),
    "fit_logistic_batch": dict(
        X=np.array([X, X]), y_or_counts=np.array([Y, Y]), positive=None, method="mle", max_iter=25, tol=1e-8
    ),
    "find_separation": dict(X=X, y_or_counts=Y, positive=None),
    "LogisticFit.posterior": dict(X=X),
    "LogisticFit.predict": dict(X=X),
    "LogisticFit.linear_predictor": dict(X=X),
    "LogisticFit.cov": dict(kind="model"),
    "LogisticFit.stderr": dict(kind="model"),
    "LogisticFit.summary": dict(kind="model", level=0.9),
    "LogisticFit.conf_int": dict(kind="model", level=0.9),
    "two_way_cov": dict(fit=sl.fit_logistic(JUDGED, MARKS), X=JUDGED, counts=MARKS, votes=MARKED),
    "fit_dirichlet_multinomial": dict(X=X, counts=C, max_iter=100, tol=1e-8),
    "JointFit.posterior": dict(X=X),
    "dm_logpmf": dict(counts=VOTES, tau=TAU, alpha0=2.0),
    "sample_votes": dict(tau=TAU, m=3, alpha0=2.0, rng=0),
    "sample_probabilities": dict(tau=TAU, alpha0=2.0, rng=0),
    "VoteModel.sample": dict(tau=TAU, m=3, rng=0),
    "VoteModel.variance_inflation": dict(m=3),
    "VoteModel.band": dict(probability=TAU[:, 0], m=3, level=0.9),
    "DirichletMultinomial": dict(alpha0=2.0),
    "prediction_band": dict(probability=TAU[:, 0], m=3, alpha0=2.0, level=0.9),
    "share_in_band": dict(counts=VOTES, tau=TAU, alpha0=2.0, level=0.9),
    "pooled_efficiency": dict(m=np.array([1, 3]), alpha0=2.0),
    "variance_inflation": dict(m=3, alpha0=2.0),
    "relative_efficiency": dict(m=3, alpha0=2.0),
    "godambe_information": dict(fisher=np.eye(2), m=3, alpha0=2.0),
    "design_votes": dict(budget=20, cost_item=2, cost_vote=1, alpha0=5, n_items=10, cost_truth=3, min_items=1),
    "split_budget": dict(budget=20, cost_item=2, cost_vote=1, cost_truth=3, alpha0=5, ceiling=10),
    "fit_votes_and_truth": dict(X=JUDGED, counts=MARKS, truth=TRUE),
    "worth_of_votes": dict(
        X=JUDGED, counts=MARKS, truth=TRUE, votes=MARKED, inclusion=np.full(40, 0.5), n_items=50, m=3, level=0.8, rng=0
    ),
    "choose_for_truth": dict(weight=np.array([1.0, 2.0, 3.0]), k=2, rng=0),
    "estimate_alpha0": dict(counts=VOTES, tau=TAU),
    "overdispersion_test": dict(counts=VOTES, tau=TAU),
    "bootstrap_alpha0": dict(counts=VOTES, tau=TAU, n_resamples=5, rng=0),
    "alpha0_interval": dict(counts=MANY, tau=FITTED, X=ITEMS, level=0.9, method="cox-reid", n_resamples=5, rng=0),
    "by bootstrap": dict(counts=VOTES, tau=TAU, level=0.9, n_resamples=5),
    "by likelihood": dict(counts=VOTES, tau=TAU, level=0.9),
    "TwoClassNormal": dict(mean1=[1.0, 0], mean2=[0.0, 0], cov=np.eye(2), prior1=0.5),
    "TwoClassNormal.canonical": dict(delta=1.0, p=2, prior1=0.5),
    "TwoClassNormal.sample": dict(n=3, rng=0, size=2),
    "TwoClassNormal.posterior": dict(Y=X),
    "TwoClassNormal.error_rate": dict(coef=np.ones((4, 3))),
    "fit_limit": dict(model=MODEL, mean=expit, variance=None),
    "simulate_relative_efficiency": dict(deltas=[1.0], n=30, p=2, n_sims=2) | STUDY,
    "simulate_breast_cancer": dict(n_train=50, n_splits=2, method="glm") | STUDY,
    "examine_labellers": dict(votes=REPORT, X=X, positive="y", rng=0),
    "analyse_votes": dict(
        votes=REPORT, features=pd.DataFrame({"size": [1, 3, 2, 5, 4, 6]}), positive="y", truth=None, columns=None
    )
    | dict(repeats="first", cost_item=1.0, cost_vote=1.0, cost_truth=2.0, level=0.9, pseudonyms=False, rng=0),
}
OWNERS = {"LogisticFit": FIT, "JointFit": JOINT, "VoteModel": sl.DirichletMultinomial(2.0), "TwoClassNormal": MODEL}
OURS = {"by bootstrap": by_bootstrap, "by likelihood": by_likelihood}


def called(name):
    owner, _, function = name.rpartition(".")
    return OURS.get(name) or getattr(OWNERS.get(owner, sl), function)


CALLS = {name: (called(name), good) for name, good in ANSWERED.items()}


ARRAYS = [name for name, (_, good) in CALLS.items() if any(isinstance(a, np.ndarray) for a in good.values())]


@pytest.fixture(autouse=True)
def light(monkeypatch):
    monkeypatch.setattr(sl.belief, "COSTLY_DRAWS", 20)  # no number is looked at


def put(array, at, value):
    changed = np.array(array, dtype=float)
    changed[at] = value
    return changed


def refused(words, function, *args, **kwargs):
    with pytest.raises(ValueError, match=f"(?s){words}"):
        function(*args, **kwargs)


def entries(name, right, at, *bad, more=""):
    """Rows for an array with one bad value, which the message names with its place and the value."""
    place = str(at).strip("()")
    return [(put(right, at, value), rf"{name}\[{place}\] is {value}{more}") for value in bad]


def of_floats(name, right):
    """Rows for an array of finite numbers: values, types, shapes."""
    text, words = np.array(right, float).astype(str), f"{name} must be an array of real numbers"
    types = (np.array(right) + 1j, text, text.astype(object), np.array(right, float).astype("m8[s]"))
    shapes = ([[1, 2], [3]], [[{}, 1]] * 6, np.array(right)[None, None], None)
    return [
        *entries(name, right, (2, 1), nan, inf, -inf),
        *((bad, words) for bad in types),
        *((bad, name) for bad in shapes),
    ]


def at_least(least, name, *more):
    return [(bad, rf"{name}.*whole number of at least {least}") for bad in (least - 1, -1, 1.5, nan, inf, "x", *more)]


def positive_number(name):
    return [(bad, rf"{name} must be a positive number") for bad in (0, -1, nan, inf, "x", [1, 2])]


FEATURES = [
    *of_floats("X", X),
    (np.ma.array(X, mask=X == 5), r"X\[2, 1\] is nan"),
    (np.where(X == 5, np.longdouble("1e400"), X), r"X\[2, 1\] is inf"),
    (np.where(X == 5, None, X.astype(object)), r"X\[2, 1\]"),
    (X[:, 0], "X"),
    (np.zeros((0, 2)), r"X.*\((2, )?0, 2\)"),
    (np.zeros((6, 0)), r"X.*\((2, )?6, 0\)|X must have"),
]
RANK = [  # columns without information
    (np.column_stack([X[:, 0], np.full(6, 3.0)]), "column 1.*constant"),
    (np.column_stack([np.full(6, 1e9), X[:, 0]]), "column 0.*constant"),
    (X[:, [0, 0]], "X.*column 1.*same"),
    (np.column_stack([X, X[:, 0] + 2 * X[:, 1] - 7]), "X.*column 2"),
    (np.column_stack([X[:, 0], 1e-100 * X[:, 0]]), "X.*column 1"),
    (np.column_stack([X[:, 0], 1e9 + X[:, 0]]), "X.*column 1"),
    (np.random.default_rng(0).normal(size=(6, 9)), "X has 9 columns but only 6 items"),
]
FRAMES = [
    (FRAME.assign(shape=list("abcdef")), "X.*shape|X must be an array of real"),
    (FRAME.assign(shape=pd.Categorical(list("aabbcc"))), "X.*shape|X must be an array of real"),
    (FRAME.assign(shape=pd.date_range("2020-01-01", periods=6)), "X.*shape|X must be an array of real"),
    (FRAME.assign(shape=[1, 2, 3, 4, 5, nan]), r"X\[5, 1\].*shape.*nan"),
    (FRAME.assign(shape=pd.array([1, 2, None, 4, 5, 6], dtype="Int64")), r"X\[2, 1\].*shape"),
    (pd.DataFrame(X, columns=["a", "a"]), "X has more than one column named 'a'"),
    (pd.DataFrame(X, columns=["1", 1]), "X has more than one column named '1'"),
]
OF_LABELS = [
    *entries("", Y, 3, 2, -1, 0.5, 1e-9, more=".*0 or 1"),
    *entries(r"y(_or_counts)?", Y, 3, nan, inf),
    (Y[:5], "y_or_counts.*X|X.*y_or_counts|5.*6"),
    (Y[:, None], "counts must have a column for each"),
    *(
        (bad, "y_or_counts")
        for bad in (Y + 0j, Y.astype("m8[s]"), Y.astype("M8[s]"), [10**400] * 6, [{}] * 6, [b"0", b"1"] * 3)
    ),
    (list("010101"), "y_or_counts.*positive="),
    (np.array([0, 1, "a", 1, 0, 1], dtype=object), "y_or_counts"),
    (np.ma.array(Y, mask=[1, 0, 0, 0, 0, 0]), "y_or_counts"),
]
OF_VOTES = [
    *entries("counts", C, (1, 0), -1, 2.5, nan, inf),
    (put(C, (1, 0), 2.0**60), r"counts\[1, 0\] is .*at most"),
    (C[:5], "counts.*6"),
    (np.ones((6, 3)), r"counts.*(3|\(6, 3\))"),
    (np.ones((6, 1)), r"counts.*(1|\(6, 1\))"),
    (np.zeros((6, 2)), "no votes|more than one vote"),
]
COUNTED = [
    *entries("counts", VOTES, (1, 0), -1, 1.5, nan, inf),
    (put(VOTES, (1, 0), 1e300), r"counts\[1, 0\] is .*at most"),
    (VOTES[:2], r"counts.*\(2, 2\).*\(3, 2\)"),
    (np.ones((3, 3)), r"counts.*\(3, 3\).*\(3, 2\)"),
    (np.zeros((0, 2)), r"counts.*\(0, 2\)"),
    ([3, 1], "counts"),
    (pd.DataFrame({"pos": pd.array([3, None, 1], dtype="Int64"), "neg": [1, 2, 3]}), r"counts\[1, 0\].*pos"),
    (pd.DataFrame({"pos": [3, -1, 1], "neg": [1, 2, 3]}), r"counts\[1, 0\].*pos.*is -1"),
]
CANNOT_TELL = [([[1, 0], [0, 1], [0, 0]], "no item has more than one vote: alpha0 cannot be estimated")]
DISTRIBUTIONS = [
    *entries("tau", TAU, (1, 0), nan, inf),
    (put(TAU, 1, [1.2, -0.2]), r"tau\[1, 0\] is 1.2.*between 0 and 1"),
    (put(TAU, 1, [-0.2, 1.2]), r"tau\[1, 0\] is -0.2.*between 0 and 1"),
    (put(TAU, 1, [0.2, 0.7]), r"tau\[1\] sums to 0.9"),
    (np.zeros((0, 2)), r"(tau|counts).*\(0, 2\)"),
    (TAU[:, :1], "tau"),
    (TAU[:, 0], "tau"),
]
IMPOSSIBLE = [([[0.0, 1.0], [0.2, 0.8], [0.7, 0.3]], r"counts\[0, 0\] is 3 but tau is 0")]

OF_JUDGED = [
    (np.column_stack([JUDGED[:, 0], np.full(40, 3.0)]), "column 1.*constant"),
    (JUDGED[:, [0, 0]], "X.*column 1.*same"),
    (pd.DataFrame(JUDGED).set_axis(["a", "a"], axis=1), "X has more than one column named 'a'"),
]

OF_MARKS = [
    *entries("counts", MARKS, (1, 0), -1, 2.5, nan, inf),
    (MARKS[:5], r"counts have shape \(5, 2\) but X has 40 items"),
    (MARKS[:, [0, 1, 1]], r"counts have shape \(40, 3\)"),
    (TRUE, "counts must be"),
]

OF_TRUTH = [
    *entries("truth", TRUE, 3, 2, -1, 0.5, inf, more=".*1, 0 or nan"),
    (TRUE[:5], r"truth has shape \(5,\) but X has 40"),
    (TRUE[:, None], r"truth has shape \(40, 1\)"),
    (list("01" * 20), "truth must hold the numbers 1 and 0, .* got list"),
    (np.array(list("01" * 20)), "truth must hold the numbers 1 and 0, .* got ndarray <U1$"),
]
CONCENTRATION = [
    *((bad, f"alpha0 must be positive.*got {bad:g}") for bad in (0, 0.0, -1, -inf, nan)),
    (np.ma.array(np.zeros(0, complex)), "alpha0 must be"),
    *((bad, "alpha0") for bad in ("one", "1", None, 10**400, np.array([1j]))),
]
LABELLERS = [
    *((bad, rf"m, the number of labellers,.*at least 1.*got {bad:g}") for bad in (0, 0.5, -3, nan, -inf)),
    ("3", r"\bm\b"),
]
WHOLE_M = [(bad, r"m, the number of labellers,.*whole") for bad in (1.5, inf, 1e300, 2**60)]

SINGLE = [([1.0, 2.0], r"alpha0 must be a single number.*\(2,\)")]

PRICE_OR_ZERO = [(bad, "cost_item must be a positive number or 0") for bad in (-1, nan, inf, "x")]

FOR_TRUTH, FOR_ALPHA0 = (
    ("fit_votes_and_truth", "worth_of_votes"),
    ("estimate_alpha0", "overdispersion_test", "bootstrap_alpha0"),
)


def same_rows(functions, argument, rows):
    return {(function, argument): rows for function in functions}


# The bad values of an argument, in whatever function it stands; and of one function alone.
BAD = {
    "X": FEATURES,
    "tau": DISTRIBUTIONS,
    "alpha0": CONCENTRATION,
    "m": LABELLERS,
    "rng": [(bad, "rng") for bad in ("seed", -1, 1.5, object())],
    "level": [(bad, rf"level.*between 0 and 1.*{bad}") for bad in (0, 1, -0.5, 95, nan, "0.95", None)],
    "max_iter": at_least(1, "max_iter", 0, 10**400),
    "tol": positive_number("tol"),
    "n_resamples": at_least(1, "n_resamples", -3, 10**400),
    "kind": [(bad, "kind.*HC0|kind") for bad in ("HC0", None, np.array(["model", "model"]))],
    "method": [(bad, "method") for bad in ("wald", "", None, 1, np.array(["mle", "firth"]))],
    "probability": [
        *entries("probability", TAU[:, 0], 1, nan, inf, -0.2, 1.2),
        (TAU, "probability"),
        (np.zeros(0), r"probability.*\(0,\)"),
    ],
    "n_jobs": [(0, "n_jobs")],
    "memory": [(3, "memory must be the name of a folder, a joblib.Memory or None, got 3")],
    "prior1": [(bad, "prior1") for bad in (0, 1, -0.1, 2, nan, "half")],
    "alphas": [
        ([], "alphas has no elements"),
        ([1, -2], r"alpha0.*-2 at \[1\]"),
        ([nan], "alpha0.*positive"),
        ([[1]], "alpha"),
    ],
    "ms": [
        ([], "ms has no elements"),
        ([5, 0], r"m, .*0 at \[1\]"),
        ([2.5], "m, .*whole.*2.5"),
        ([inf], "m, .*whole.*inf"),
        (["five"], "m must be a number.*five"),
        ([[5]], r"\bm"),
    ],
    ("fit_logistic", "X"): RANK + FRAMES,
    ("fit_logistic_batch", "X"): [*RANK, (X, "X must be 3-dimensional")],
    ("fit_dirichlet_multinomial", "X"): RANK[:1],
    ("find_separation", "X"): FRAMES,
    ("fit_logistic", "y_or_counts"): OF_LABELS + OF_VOTES,
    ("fit_logistic_batch", "y_or_counts"): OF_LABELS[:-1] + OF_VOTES,
    ("find_separation", "y_or_counts"): OF_LABELS + OF_VOTES[:-1],
    ("fit_dirichlet_multinomial", "counts"): [
        *OF_VOTES,
        (Y, "counts must be 2-dimensional"),
        (put(C, (5, 0), 1e8), r"counts\[5, 0\].*10,000,000"),
        (np.column_stack([Y, 1 - Y]), "no item has more than one vote: alpha0 cannot be estimated"),
    ],
    **same_rows(FOR_TRUTH, "X", OF_JUDGED),
    **same_rows((*FOR_TRUTH, "two_way_cov"), "counts", OF_MARKS),
    ("fit_votes_and_truth", "truth"): OF_TRUTH,
    ("worth_of_votes", "truth"): [*OF_TRUTH, (np.full(40, nan), "truth has no true label")],
    ("worth_of_votes", "inclusion"): [
        *entries("inclusion", np.full(40, 0.5), 3, 0, -0.5, 1.5, nan, inf),
        (np.full(5, 0.5), r"inclusion has shape \(5,\) but X has 40"),
        (0.5, r"inclusion has shape \(\)"),
        ("all", "inclusion must be"),
    ],
    ("worth_of_votes", "n_items"): at_least(4, "n_items", 3),
    ("worth_of_votes", "votes"): [
        (MARKED.to_numpy(), "votes must be a DataFrame, got ndarray"),
        (MARKED[1:], "votes has . positive and . negative votes on item 0, but counts has"),
        (MARKED.drop(columns="annotator"), "votes has no column for the annotator"),
    ],
    ("two_way_cov", "X"): [(JUDGED[:, ::-1], "fit is not the maximum likelihood fit of counts on X")],
    ("two_way_cov", "fit"): [
        (None, "fit must be a LogisticFit"),
        (sl.fit_logistic(JUDGED[:, :1], MARKS), "X has the columns 'x1', 'x2', but fit those of 'x1'"),
        (sl.fit_logistic(JUDGED, MARKS[:, ::-1]), "fit is not the maximum likelihood fit of counts on X"),
    ],
    ("two_way_cov", "votes"): [(None, "votes must be a DataFrame"), (MARKED.iloc[1:], "votes has .* but counts has")],
    ("examine_labellers", "X"): [*FRAMES, (X[:5], "X has no row for 1 of 6 items of votes .5.")],
    ("examine_labellers", "votes"): [
        (REPORT.to_numpy(), "votes must be a DataFrame, got ndarray"),
        (REPORT.drop(columns="label"), "votes has no column for the label"),
        (REPORT.assign(label=list("ynz" * 6)), "votes has 3 different labels"),
        (REPORT.assign(item=[None, *REPORT["item"][1:]]), "row 0: the item is missing"),
        (REPORT[:0], "votes has no elements"),
    ],
    ("choose_for_truth", "weight"): [
        *entries("weight", np.ones(3), 1, 0, -1, nan, inf),
        (np.ones((3, 2)), "weight must be 1-dimensional"),
        ([], "weight has no elements"),
    ],
    ("choose_for_truth", "k"): [*at_least(1, r"\bk\b", 0), (4, "k is 4, but weight has only 3 items")],
    **same_rows(
        ("LogisticFit.posterior", "LogisticFit.predict", "JointFit.posterior"), "X", [(np.ones((4, 3)), "X.*3 columns")]
    ),
    **same_rows(("dm_logpmf", "share_in_band"), "counts", COUNTED),
    **same_rows((*FOR_ALPHA0, *OURS), "counts", COUNTED + CANNOT_TELL),
    **same_rows((*FOR_ALPHA0, *OURS), "tau", [*IMPOSSIBLE, ([[1, 0], [0, 1], [1, 0]], "counts|alpha0")]),
    **same_rows(("dm_logpmf", "design_votes", "split_budget"), "alpha0", SINGLE),
    ("relative_efficiency", "alpha0"): [([1, nan], r"alpha0.*nan at \[1\]")],
    ("variance_inflation", "m"): [([[3, 0.2]], r"m, .*0.2 at \[0, 1\]")],
    ("sample_votes", "m"): [*WHOLE_M, ([3, 0, 2], r"m, .*got 0 at \[1\]"), ([3, 2], r"m has shape.*\(2,\).*\(3,\)")],
    ("alpha0_interval", "counts"): [
        (np.tile([3, 0, 1], (50, 1)), r"counts have shape \(50, 3\)"),
        (MANY[:, ::-1], "tau is not fit_logistic"),
        (np.where(ITEMS[:, :1] > 0, [3, 0], [0, 3]), "the features separate the votes"),
    ],
    ("alpha0_interval", "tau"): [(FITTED[:, ::-1], "tau is not fit_logistic")],
    ("alpha0_interval", "X"): [
        (ITEMS[:, :1], "tau is not fit_logistic"),
        (ITEMS[:40], "40"),
        (None, "X is missing.*method='cox-reid'.*'likelihood' and 'bootstrap'"),
    ],
    ("alpha0_interval", "method"): [(bad, "method.*cox-reid.*bootstrap.*likelihood") for bad in ("wald", None)],
    ("godambe_information", "fisher"): [
        (np.ones((2, 3)), r"fisher.*\(2, 3\)"),
        ([1, 2], r"fisher.*\(2,\)"),
        ([[1, 2], [3, 4]], "fisher.*symmetric"),
        ([[1, nan], [nan, 1]], r"fisher\[0, 1\] is nan"),
        ([[1e-10, 5e-9], [0, 1e-10]], "fisher"),  # no tolerance in absolute units
    ],
    **same_rows(("design_votes", "split_budget"), "cost_vote", positive_number("cost_vote")),
    **same_rows(("design_votes", "split_budget"), "cost_item", PRICE_OR_ZERO),
    ("design_votes", "budget"): [
        *positive_number("budget"),
        (2, "budget 2 does not pay for min_items = 1 .* which cost 3"),
        (1e13, r"budget 1e\+13 pays for 1e\+13 votes: at most"),
    ],
    ("design_votes", "cost_truth"): [*positive_number("cost_truth"), (1e-12, "2e.13 true labels")],
    ("design_votes", "n_items"): at_least(1, "n_items", 0, 2.5),
    ("design_votes", "min_items"): [
        *at_least(1, "min_items", 0),
        (11, "min_items is 11, but there are only n_items = 10"),
        (9, "budget 20 does not pay for min_items = 9 .* which cost 27"),
    ],
    ("split_budget", "cost_truth"): positive_number("cost_truth"),
    ("split_budget", "budget"): [
        *positive_number("budget"),
        (2, "budget 2 pays for no item with a vote or a true label"),
        (1e7, r"budget 1e\+07 pays for 1e\+07 votes: at most"),
        (1e6, r"budget 1e\+06 pays for 3.33e\+05 true labels: at most 10000"),
    ],
    ("split_budget", "ceiling"): [(bad, "ceiling must be a positive number") for bad in (0, -1, nan, "x")],
    ("TwoClassNormal", "mean1"): [
        ([1, nan], r"mean1\[1\] is nan"),
        ([0, 0], "mean1 and mean2 are equal"),
        ([1e308, -1e308], "mean1"),
        (1.0, "mean1"),
    ],
    ("TwoClassNormal", "mean2"): [([inf, 0], r"mean2\[0\] is inf"), ([0], r"mean1.*mean2.*\(2,\).*\(1,\)")],
    ("TwoClassNormal", "cov"): [
        (np.eye(3), r"cov.*\(3, 3\)"),
        ([[1, 0.5], [0.2, 1]], "cov must be symmetric"),
        ([[1, 2], [2, 1]], "cov must be positive definite"),
        ([[1, 1], [1, 1]], "cov must be positive definite"),
        ([[1, nan], [nan, 1]], r"cov\[0, 1\] is nan"),
    ],
    ("TwoClassNormal.canonical", "delta"): [(bad, rf"delta(?!\[\]).*{bad:g}") for bad in (0, -1, nan, inf)],
    ("TwoClassNormal.canonical", "p"): at_least(1, r"\bp\b", 0),
    ("TwoClassNormal.sample", "n"): at_least(1, r"\bn\b", 0),
    ("TwoClassNormal.sample", "size"): [(-1, "size"), (1.5, "size")],
    ("TwoClassNormal.posterior", "Y"): [*of_floats("Y", X), ([[1, 2, 3]], "Y.*3 features"), ([1.0, 2], "Y")],
    ("TwoClassNormal.error_rate", "coef"): [
        ([1, 2], r"coef.*3 entries.*\(2,\)"),
        ([[1, 2, 0], [1, nan, 0]], r"coef.*\[1, 1\]"),
        *((bad, "coef") for bad in ("abc", ["1", "2", "3"], [1j, 0, 0], [[1], [1, 2]], None)),
    ],
    ("fit_limit", "model"): [("pair", "model must be a TwoClassNormal, got str")],
    ("fit_limit", "mean"): [
        (lambda eta: 2 * expit(eta), "mean must lie in"),
        (lambda eta: nan * eta, r"mean\[0\] is nan"),
        (lambda eta: np.full(3, 0.5), "mean.* one number for each eta.* gave 3|one number for each eta: .* it gave 3"),
        (0.5, "mean must be a function of eta, got float"),
        (lambda eta: (eta > 0).astype(float), "have no limit"),
        (lambda eta: expit(1e6 * eta), "have no limit"),
        (lambda eta: 0.5 + 0 * eta, "must rise with eta"),
        (lambda eta: expit(-eta), "must rise with eta"),
    ],
    ("fit_limit", "variance"): [
        ("v", "variance must be a function of eta, got str"),
        (lambda eta: 0.5 + 0 * eta, "variance must lie in"),
        (lambda eta: -0.1 + 0 * eta, "variance must lie in"),
    ],
    ("simulate_relative_efficiency", "deltas"): [
        ([1, 0], "delta.*0"),
        ([1, nan], r"deltas\[1\] is nan"),
        ([], r"deltas.*\(0,\)"),
    ],
    ("simulate_relative_efficiency", "n"): at_least(3, r"\bn\b", 0, 1, 2.5),
    ("simulate_relative_efficiency", "p"): at_least(1, r"\bp\b", 0),
    ("simulate_relative_efficiency", "n_sims"): at_least(2, "n_sims", 0, 10.5),
    ("simulate_breast_cancer", "n_splits"): at_least(2, "n_splits", 0, 2.5),
    ("simulate_breast_cancer", "n_train"): [
        (bad, rf"n_train, between 11 and 568,.*{bad}") for bad in (0, 10, 569, 1000, nan, 50.5, "x", None)
    ],
    ("simulate_breast_cancer", "method"): [(bad, "method.*'glm', 'firth', 'ridge'") for bad in ("mle", "", None)],
    **same_rows(("simulate_relative_efficiency", "simulate_breast_cancer"), "rng", [(None, "memory needs an rng")]),
}
ELSEWHERE = {"positive", "by likelihood", "by bootstrap", "analyse_votes"}  # labels below; a function thrice; test_report.py


def arguments_of(member):
    function = getattr(member, "__func__", member)
    return inspect.signature(function).parameters if inspect.isfunction(function) else []


INTERCEPT_ALONE = {"fit_logistic", "fit_logistic_batch", "find_separation", "fit_dirichlet_multinomial", "alpha0_interval"}


def rows_of(name, argument):
    if argument == "X" and name in INTERCEPT_ALONE:
        return [row for row in FEATURES if getattr(row[0], "shape", None) != (6, 0)] + BAD.get((name, argument), [])
    if (name, argument) == ("pooled_efficiency", "alpha0"):
        return CONCENTRATION[2:]  # 0 stands for votes that always agree
    if (name, argument) == ("examine_labellers", "X"):  # which it does without
        return [row for row in BAD["X"] if row[0] is not None] + BAD[name, argument]
    if name in ("LogisticFit.summary", "LogisticFit.conf_int") and argument == "kind":
        return [row for row in BAD["kind"] if row[0] is not None] + [("profile", "kind='profile'.*firth")]  # None: the usual
    return BAD.get(argument, []) + BAD.get((name, argument), [])


def second_of_batch(argument, bad, message):
    """The bad value after a good one of the same kind, or twice if it has the shape of none."""
    kinds = (X,) if argument == "X" else (Y, C)
    good = next((good for good in kinds if isinstance(bad, np.ndarray) and good.shape == bad.shape), bad)
    stack = np.ma.stack if isinstance(bad, np.ma.MaskedArray) else list
    return stack([good, bad]), message.replace(r"\[", r"\[(1, )?")


def test_the_table_has_every_function_and_every_argument():
    loaders = {name for name in sl.__all__ if name.startswith("load_")}
    functions = {name for name in sl.__all__ if inspect.isfunction(getattr(sl, name))} - loaders
    classes = [thing for name in sl.__all__ if inspect.isclass(thing := getattr(sl, name))]
    methods = {m for c in classes for m in dir(c) if not m.startswith("_") and len(arguments_of(getattr(c, m))) > 1}
    # A path, a line of text; and what a model of votes brings, for arrays that have been checked.
    methods -= {"save", "describe", "draw_probabilities", "log_probability", "count_probabilities"}
    assert methods | {"canonical"} == {name.split(".")[1] for name in CALLS if "." in name}
    assert functions | {"TwoClassNormal", "DirichletMultinomial", "by likelihood", "by bootstrap"} == {
        name for name in CALLS if "." not in name
    }
    for name, (function, good) in CALLS.items():
        assert set(good) <= set(inspect.signature(function).parameters)
        if name not in ELSEWHERE:
            assert set(good) == set(inspect.signature(function).parameters), name
            assert [a for a in good if not rows_of(name, a) and a not in ELSEWHERE] == [], name


@pytest.mark.parametrize("name", CALLS)
def test_bad_values_are_named(name, tmp_path):
    function, good = CALLS[name]
    function(**good)
    for argument in good:
        for row in rows_of(name, argument):
            batch = name == "fit_logistic_batch" and argument in ("X", "y_or_counts") and row[0] is not X
            bad, message = second_of_batch(argument, *row) if batch else row
            changed = {argument: bad} | ({"memory": tmp_path} if "memory needs" in message else {})
            refused(message, function, **good | changed)


def are_votes(y):
    """Whether labels or counts are what the documentation asks for; an answer to anything else is a wrong one."""
    y = np.asarray(y, dtype=float)
    return np.isin(y, [0, 1]).all() if y.ndim == 1 else np.all((y >= 0) & (y == np.floor(y)) & np.isfinite(y))


def are_probabilities(tau):
    tau = np.asarray(tau, dtype=float)
    return np.all((tau >= 0) & (tau <= 1)) and np.abs(tau.sum(axis=-1) - 1).max() < 1e-8


VALID = {
    "X": lambda X: np.isfinite(np.asarray(X, dtype=float)).all(),
    ("examine_labellers", "X"): lambda X: X is None or np.isfinite(np.asarray(X, dtype=float)).all(),
    "Y": lambda Y: np.isfinite(np.asarray(Y, dtype=float)).all(),
    "y_or_counts": are_votes,
    "counts": are_votes,
    "tau": are_probabilities,
    "alpha0": lambda a: np.all(np.asarray(a, dtype=float) > 0),
    ("pooled_efficiency", "alpha0"): lambda a: a >= 0,
    "m": lambda m: np.all(np.asarray(m, dtype=float) >= 1),
    ("worth_of_votes", "m"): lambda m: m is None or np.asarray(m, dtype=float) >= 1,
    "level": lambda level: 0 < level < 1,
    "prior1": lambda prior1: 0 < prior1 < 1,
}
SIZES = {"n", "p", "size", "n_sims", "n_splits", "n_train", "n_resamples", "max_iter"}


@pytest.mark.parametrize("name", CALLS)
@examples(100)
@given(st.data())
def test_any_value_is_answered_or_named(name, data):
    function, good = CALLS[name]
    argument = data.draw(st.sampled_from(sorted(good)))
    array = isinstance(good[argument], np.ndarray)
    value = data.draw(st.one_of(anything(), ODD, *[spoilt(good[argument])] * (2 * array)))
    if name == "fit_limit" and argument != "model" and data.draw(st.booleans()):
        function, value = CALLS[name][0], lambda eta, constant=value: constant
    # Large studies and votes by the billion are no error, but this file must end.
    if argument in SIZES:
        assume(not isinstance(value, int | float) or not 50 < value < 1e16)
    if argument == "counts" and type(value) is np.ndarray and value.dtype.kind in "iuf":
        with np.errstate(over="ignore", invalid="ignore"):
            assume(not np.any((value.astype(float) > 1e4) & (value.astype(float) < 1e16)))
    assume(argument not in ("memory", "n_jobs"))  # a text is the name of a folder
    if attempt(function, **good | {argument: value}) is not None:
        assert VALID.get((name, argument), VALID.get(argument, lambda value: True))(value)


def test_what_is_not_ours_does_not_pass():
    """The net itself: each of these must be caught by it."""

    def raising(error):
        def function(X):
            raise error

        return function

    nameless = raising(ValueError("expected a non-negative integer"))
    for function in (raising(np.linalg.LinAlgError("X")), nameless, lambda X: np.log(np.array(X))):
        with pytest.raises(AssertionError):
            attempt(function, 0.0)
    with pytest.raises(TypeError):
        attempt(lambda X: X + "", 0.0)


def test_numbers_that_do_not_broadcast():
    for function in (sl.relative_efficiency, sl.variance_inflation):
        refused(r"\bm\b.*\(2,\).*alpha0.*\(3,\)", function, [1, 2], [1, 2, 3])
    refused(r"fits|y_or_counts", sl.fit_logistic_batch, [X, X], [Y])


def test_a_column_that_varies_only_where_there_are_no_votes_is_constant():
    column = np.array([1.0, 1, 1, 1, 1, 5])  # the last item has no votes
    refused("column 1.*constant", sl.fit_logistic, np.column_stack([X[:, 0], column]), C)


def test_more_features_than_items_can_be_told_apart_whatever_the_labels():
    for p in (10, 30):
        Z = np.random.default_rng(0).normal(size=(10, p))
        refused(f"X has {p} columns but only 10 items with votes", sl.fit_logistic, Z, [0, 1] * 5, method="firth")
        assert sl.find_separation(Z, [0, 1] * 5) == "complete"


# ------------------------------------------------------------------ labels of every kind


class Finding(enum.Enum):
    BENIGN = 1
    MALIGNANT = 2


WORDS = np.where(Y == 1, "malignant", "benign")
KINDS = {  # labels, and the positive one
    "list": (list(WORDS), "malignant"),
    "strings": (WORDS, "malignant"),
    "NumPy 2 strings": (WORDS.astype(np.dtypes.StringDType()), "malignant"),
    "bytes": (WORDS.astype("S"), b"malignant"),
    "objects": (WORDS.astype(object), "malignant"),
    "enumeration": (np.array([Finding.MALIGNANT if y else Finding.BENIGN for y in Y], dtype=object), Finding.MALIGNANT),
    "Series of strings": (pd.Series(WORDS, dtype="string"), "malignant"),
    # The order of the categories says nothing about which is positive.
    "Categorical": (pd.Categorical(WORDS, categories=["malignant", "unknown", "benign"], ordered=True), "malignant"),
    "Categorical Series": (pd.Series(WORDS, dtype="category"), "malignant"),
    "text of numbers": ((Y + 1).astype(str), "2"),
    "1 and 2": (Y + 1, 2),
    "-1 and 1": (2 * Y - 1, 1),
    "floats": (Y.astype(float), 1),
    "booleans": (Y.astype(bool), True),
    "nullable booleans": (pd.Series(Y, dtype="boolean"), True),
    "nullable integers": (pd.Series(Y + 1, dtype="Int64"), 2),
    "dates": (np.where(Y == 1, np.datetime64("2020-01-02"), np.datetime64("2020-01-01")), np.datetime64("2020-01-02")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_any_kind_with_positive(kind):
    labels, positive = KINDS[kind]
    np.testing.assert_array_equal(sl.fit_logistic(X, labels, positive=positive).coef, FIT.coef)
    if kind in list(KINDS)[:10]:
        with pytest.raises(ValueError, match=r"y_or_counts has the labels .*not numbers.* positive=") as caught:
            sl.fit_logistic(X, labels)
        assert repr(positive) in str(caught.value) and "np.str_" not in str(caught.value)


@pytest.mark.parametrize(
    "labels, positive, word",
    [
        (WORDS, "malignnt", "positive='malignnt'.*'benign', 'malignant'"),
        (["benign"] * 6, "malignant", "positive='malignant'.*Categorical"),  # a slip, or no positive item?
        ([0] * 6, 1, "positive=1.*pandas.Categorical"),
        (Y, "1", r"positive='1'.*\(0, 1\)"),
        (Y.astype(str), 1, r"positive=1.*\('0', '1'\)"),
        (Y * 0.5, 10**400, "positive=10+ is not among"),
        (Y, [0, 1], r"positive=\[0, 1\]"),
        (Y, nan, "positive=nan"),
        (list("abcabc"), "a", "3 different labels.*'a', 'b', 'c'"),
        (np.array([*WORDS[:5], None], dtype=object), "benign", r"y_or_counts\[5\] is missing"),
        (pd.Categorical([*WORDS[:5], None]), "benign", r"y_or_counts\[5\] is missing"),
        ([0, 1, 0, 1, 0, nan], 1, r"y_or_counts\[5\] is missing"),
        (np.ma.array(Y, mask=[0, 0, 0, 1, 0, 0]), 1, r"y_or_counts\[3\] is missing"),
        (C, 1, r"positive=1 is for labels.*\(6, 2\)"),
        (pd.DataFrame(C), 1, "positive=1 is for labels"),
        ([{}] * 6, 1, "y_or_counts.*labels"),
        (WORDS[:5], "benign", "5.*6|6.*5"),
    ],
)
def test_labels_that_are_rejected_with_positive(labels, positive, word):
    for function in (sl.fit_logistic, sl.find_separation):
        refused(word, function, X, labels, positive=positive)


@pytest.mark.parametrize(
    "labels, positive, sign",
    [
        (pd.Categorical(["benign"] * 6, categories=["benign", "malignant"]), "malignant", -1),
        (np.zeros(6, bool), True, -1),
        (np.ones(6, bool), True, 1),
        (["malignant"] * 6, "malignant", 1),
        ([0] * 6, 0, 1),
        (np.zeros(6, bool), None, -1),
        ([0] * 6, None, -1),
    ],
)
def test_one_class_only_keeps_its_sign(labels, positive, sign):
    fit = sl.fit_logistic(X, labels, positive=positive, method="firth")
    assert np.all(sign * (fit.posterior(X)[:, 0] - 0.5) > 0)
    assert sl.find_separation(X, labels, positive=positive) == "complete"


def test_positive_reaches_every_fit():
    for fit in (
        lambda labels, **positive: sl.fit_logistic(X, labels, method="firth", **positive).coef,
        lambda labels, **positive: sl.fit_logistic_batch([X, X], np.array([labels, labels]), **positive).coef,
    ):
        np.testing.assert_array_equal(fit(WORDS, positive="malignant"), fit(Y))
        np.testing.assert_allclose(fit(WORDS, positive="benign"), -fit(Y), rtol=1e-6, atol=1e-9)
    for labels, separation in (("aaabbb", "complete"), ("ababab", "none")):
        assert sl.find_separation(np.arange(6.0)[:, None], list(labels), positive="b") == separation


LABEL = st.sampled_from([0, 1, 2, -1, True, False, "a", "b", "", 0.5, nan, None, pd.NA, Fraction(1, 2), b"a", {}, 1j])


def labels_of(kinds):
    """Four labels of these kinds, and one that may be the positive one."""
    return st.tuples(st.lists(st.sampled_from(kinds), min_size=4, max_size=4), st.one_of(st.sampled_from(kinds), LABEL, ODD))


@examples(100)
@given(st.lists(LABEL, min_size=2, max_size=3).flatmap(labels_of), st.booleans())
def test_any_labels_are_told_apart_or_named(labels_and_positive, as_category):
    labels, positive = labels_and_positive
    y = np.empty(4, dtype=object)
    y[:] = labels
    if as_category:
        try:
            y = pd.Categorical(y)
        except (TypeError, ValueError):  # not hashable, which is for pandas to say
            assume(False)
    Z = np.array([[0.0], [1], [2], [2]])
    fit = answered(sl.fit_logistic, Z, y, positive=positive)
    right = [label == 1 if positive is None else bool(np.all(label == positive)) for label in labels]
    np.testing.assert_array_equal(fit.coef, attempt(sl.fit_logistic, Z, np.array(right)).coef)


# ------------------------------------------------------------------ good values of every kind


@pytest.mark.parametrize(
    "features",
    [X.tolist(), tuple(map(tuple, X)), X.astype(object), FRAME, FRAME.astype("float32"), FRAME.astype("Int64"), X.astype(int)],
)
def test_features_accepted(features):
    np.testing.assert_allclose(sl.fit_logistic(features, Y).coef, FIT.coef, rtol=1e-12)
    assert sl.find_separation(features, Y) == "none"


def test_labels_and_counts_accepted():
    mixed = np.array([Decimal(0), Fraction(1), False, np.True_, np.float32(0), 1], dtype=object)
    plain = [Y.tolist(), tuple(Y), Y.astype("uint8"), LABELS, LABELS.astype("boolean"), LABELS.astype("Int64"), mixed]
    for labels in (*plain, pd.Categorical(Y, categories=[1, 0])):  # values, not codes
        np.testing.assert_array_equal(sl.fit_logistic(X, labels).coef, FIT.coef)
    for counts in (COUNTS, COUNTS.astype("Int64"), COUNTS.astype(float), C.astype("uint8"), C.tolist()):
        np.testing.assert_allclose(sl.fit_logistic(X, np.array(counts)).coef, sl.fit_logistic(X, C).coef, rtol=1e-12)


def test_whole_numbers_of_any_type():
    """A number that passes the check must work, as a float of three does not in a range."""
    for max_iter in (30.0, np.float16(30), np.int8(30), Fraction(30)):
        fit = sl.fit_logistic(X, Y, max_iter=max_iter, tol=np.float16(1e-6))
        np.testing.assert_allclose(fit.coef, FIT.coef, atol=1e-6)
        np.testing.assert_allclose(sl.fit_logistic_batch([X], [Y], max_iter=max_iter).coef[0], FIT.coef, atol=1e-6)
        assert len(sl.bootstrap_alpha0([[2, 1]], [[0.5, 0.5]], max_iter, rng=0)) == 30


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("order", ["C", "F", "strided", "reversed"])
def test_arguments_are_neither_changed_nor_need_be_writable(name, order):
    """Read-only arrays, as memory-mapped files and pandas give them, in every layout; the answer is that of a plain array."""

    def layout(a):
        if order == "strided":
            a = np.repeat(a, 2, axis=-1)[..., ::2]
        elif order == "reversed":
            a = np.ascontiguousarray(a[::-1])[::-1]
        else:
            a = np.array(a, order=order)
        a.flags.writeable = False
        return a

    function, good = CALLS[name]
    plain = {key: a.astype(float) for key, a in good.items() if isinstance(a, np.ndarray)}
    given = {key: layout(a) for key, a in plain.items()}
    result, expected = function(**good | given), function(**good | plain)
    for key, a in given.items():
        np.testing.assert_array_equal(a, good[key])
    if isinstance(result, np.ndarray):
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)
        assert not any(np.shares_memory(result, a) for a in given.values())
    for key in ("coef", "alpha0"):
        if hasattr(result, key):
            np.testing.assert_allclose(getattr(result, key), getattr(expected, key), rtol=1e-9)


def test_results_do_not_change_with_the_arguments():
    """A result that kept the caller's array would follow its later changes."""
    Z, votes = X.copy(), C.astype(float)
    fit = sl.fit_logistic(Z, votes)
    before = fit.cov("model"), fit.cov("sandwich")
    Z *= 7
    votes += 3
    np.testing.assert_array_equal([fit.cov("model"), fit.cov("sandwich")], before)
    mean, cov = np.array([1.0, 0.0]), np.eye(2)
    model = sl.TwoClassNormal(mean, -mean, cov)
    mean *= 3
    cov *= 5
    assert model.delta == 2 and model.mean1[0] == 1 and model.cov[0, 0] == 1
    fisher = np.eye(2)
    sl.godambe_information(fisher, 1, 2.0)[0, 0] = -1
    sl.sample_probabilities(TAU, inf, rng=0)[:] = -1
    assert fisher[0, 0] == 1 and TAU.min() > 0


@pytest.mark.parametrize("name", ["sample_votes", "sample_probabilities", "bootstrap_alpha0", "TwoClassNormal.sample"])
def test_randomness_comes_from_rng_alone(name):
    function, good = CALLS[name]

    def draw(rng):
        many = {key: np.tile(good[key], (20, 1)) for key in ("counts", "tau") if key in good}
        result = function(**good | many | {"rng": rng})
        return np.hstack([np.ravel(part) for part in (result if isinstance(result, tuple) else [result])])

    np.random.seed(0)  # noqa: NPY002  of old, for all to share: nobody may touch it
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, rng = draw(42), np.random.default_rng(42)
    np.testing.assert_array_equal(draw(42), first)
    np.testing.assert_array_equal(draw(rng), first)
    assert (draw(rng) != first).any()  # a generator moves on
    assert (draw(43) != first).any() and (draw(None) != draw(None)).any()
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# ------------------------------------------------------------------ pandas


def test_rows_are_matched_by_index():
    order = [3, 0, 5, 1, 4, 2]
    for other in (LABELS, COUNTS):
        plain = sl.fit_logistic(FRAME, other)
        np.testing.assert_allclose(sl.fit_logistic(FRAME, other.iloc[order]).coef, plain.coef, rtol=1e-10)
        np.testing.assert_allclose(sl.fit_logistic(FRAME.iloc[order], other).coef, plain.coef, rtol=1e-10)
        assert sl.find_separation(FRAME, other.iloc[order]) == sl.find_separation(FRAME, other)
    joint = sl.fit_dirichlet_multinomial(FRAME, COUNTS.iloc[order])
    np.testing.assert_allclose(joint.coef, JOINT.coef, rtol=1e-8)
    words = LABELS.map({0: "no", 1: "yes"}).astype("category")
    np.testing.assert_allclose(sl.fit_logistic(FRAME, words.iloc[order], positive="yes").coef, FIT.coef)
    # Matched by position the answer would be another one.
    assert np.abs(sl.fit_logistic(X, Y[order]).coef - FIT.coef).max() > 0.1
    counts, tau = (pd.DataFrame(a, index=list("abc")) for a in (VOTES, TAU))
    np.testing.assert_array_equal(sl.dm_logpmf(counts, tau.iloc[::-1], 2.0), sl.dm_logpmf(VOTES, TAU, 2.0))
    assert sl.estimate_alpha0(counts, tau.iloc[::-1]).alpha0 == sl.estimate_alpha0(VOTES, TAU).alpha0


@pytest.mark.parametrize("function", [sl.fit_logistic, sl.find_separation])
def test_indices_that_do_not_match(function):
    for features, labels, word in (
        (FRAME, LABELS.rename({"z": "q"}), "y_or_counts.*'z'"),
        (FRAME, LABELS.drop("z"), "y_or_counts.*'z'"),
        (FRAME.drop("w"), LABELS, "y_or_counts.*'w'"),
        (FRAME.set_axis(list("uuwxyz")), LABELS.set_axis(list("uwuxyz")), "index.*'u' more than once"),
        (FRAME, LABELS.astype("Int64").where(LABELS.index != "w"), r"\[2\]"),
        (FRAME, LABELS.astype("boolean").where(LABELS.index != "w"), r"\[2\]"),
        (FRAME, COUNTS.astype("Int64").where(COUNTS != 3), r"\[2, 1\]"),
    ):
        refused(word, function, features, labels)


def test_indices_of_two_tables_that_do_not_match():
    refused("counts has no row for 'u'", sl.fit_dirichlet_multinomial, FRAME, COUNTS.iloc[1:])
    counts, tau = (pd.DataFrame(a, index=list("abc")) for a in (VOTES, TAU))
    refused("b", sl.estimate_alpha0, counts, tau.drop(index="b"))


@pytest.mark.parametrize("fit, plain", [(NAMED, FIT), (sl.fit_dirichlet_multinomial(FRAME, COUNTS), JOINT)])
def test_columns_are_matched_and_named(fit, plain):
    assert fit.feature_names == ["size", "shape"] and "shape" in repr(fit)
    assert len(set(plain.feature_names)) == 2
    for frame in (FRAME, FRAME[["shape", "size"]], X):
        np.testing.assert_allclose(fit.posterior(frame), plain.posterior(X), rtol=1e-9)
    refused("X.*shape", fit.posterior, FRAME.rename(columns={"shape": "colour"}))


# ------------------------------------------------------------------ names, proportions


def test_a_feature_named_intercept_is_refused():
    for values in (np.ones(6), X[:, 1]):
        words = "X has a column named 'intercept'.*drop the column if it is constant"
        refused(words, sl.fit_logistic, FRAME.assign(intercept=values), Y)
    fit = sl.fit_logistic(FRAME.assign(Intercept=X[:, 0] ** 2), Y, method="firth")
    assert list(fit.summary().index).count("intercept") == 1


def test_proportions_are_sent_where_they_belong():
    for shares, word in (([0.2] * 6, r"y\[0\] is 0.2"), ([[0.2, 0.8]] * 6, r"counts\[0, 0\] is 0.2")):
        refused(f"{word}.*counts of votes .*SoftLabelClassifier, which takes shares with weights", sl.fit_logistic, X, shares)
    words = r"y\[0\] is 2: (?!.*SoftLabelClassifier).*positive= must say which of two labels"
    refused(words, sl.fit_logistic, X, [2, 1] * 3)
