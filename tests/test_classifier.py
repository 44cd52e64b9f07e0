"""The estimator among scikit-learn's: its own checks, the same numbers as fits on one row a vote, and bad input."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning as NotConverged
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from strategies import ODD, anything, attempt, examples, spoilt

import softlabel as sl
from softlabel.classifier import SoftLabelClassifier, neg_log_loss_of_votes

RNG = np.random.default_rng(0)
X = RNG.normal([5.0, -3.0, 100.0], [1.0, 2.0, 4.0], (200, 3))
TAU = expit((X - [5, -3, 100]) @ [1.0, -0.5, 0.1] + 0.3)
M = RNG.integers(0, 6, 200)  # some items have no votes
COUNTS = np.column_stack([(yes := RNG.binomial(M, TAU)), M - yes])
LABELS = np.where(RNG.random(200) < TAU, "yes", "no")
NAMED = pd.DataFrame(COUNTS, columns=["yes", "no"])
THREE = pd.DataFrame(RNG.multinomial(3, [0.2, 0.3, 0.5], 200), columns=["b", "c", "a"])
THREE["b"] += X[:, 0] > 5
TRUTH = np.where(np.arange(200) < 60, LABELS, None)

# Without a penalty the inputs of one check have no answer: 27 rows in 30 columns.
INEVITABLE = {"check_sample_weight_equivalence_on_dense_data": "X has 30 columns but only 27 items"}


@pytest.mark.filterwarnings("ignore::softlabel.SeparationWarning")
@pytest.mark.parametrize(("penalty", "excused"), [(0, INEVITABLE), (1, {})])
def test_scikit_learn_checks(penalty, excused):
    """Nothing fails but what is excused, and that for its reason."""
    results = check_estimator(SoftLabelClassifier(penalty), on_fail=None, on_skip=None)
    assert sum(result["status"] == "passed" for result in results) > 45
    failed = {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"}
    assert set(failed) == set(excused), failed
    assert all(reason in failed[name] for name, reason in excused.items()), failed


# ------------------------------------------------------------------ the same numbers


def expanded(counts, labels=(1, 0)):
    """A row for each vote: its item's features and its label."""
    rows = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
    return X[rows], np.concatenate([np.repeat(labels, row) for row in counts])


def reference(penalty, counts=COUNTS, labels=(1, 0)):
    """Scikit-learn's own fit to one row a vote, of centred features: coefficients and intercept."""
    rows, y = expanded(counts, labels)
    model = LogisticRegression(C=1 / penalty if penalty else np.inf, solver="newton-cg", tol=1e-12, max_iter=1000)
    model.fit(rows - X.mean(axis=0), y)
    return model.coef_, model.intercept_ - model.coef_ @ X.mean(axis=0)


def same_rule(model, other, rtol=1e-9):
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=rtol)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=rtol)


def test_without_penalty_it_is_fit_logistic():
    fit, model = sl.fit_logistic(X, COUNTS), SoftLabelClassifier().fit(X, COUNTS)
    np.testing.assert_array_equal(np.r_[model.intercept_, model.coef_[0]], fit.coef)
    np.testing.assert_allclose(model.predict_proba(X)[:, ::-1], fit.posterior(X), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), fit.predict(X))
    of_labels = SoftLabelClassifier().fit(X, LABELS)
    np.testing.assert_array_equal(of_labels.coef_[0], sl.fit_logistic(X, LABELS, positive="yes").coef[1:])


@pytest.mark.parametrize("penalty", [0, 0.1, 3, 1000])
def test_it_is_a_fit_to_one_row_a_vote(penalty):
    model, (coef, intercept) = SoftLabelClassifier(penalty).fit(X, COUNTS), reference(penalty)
    assert model.coef_.shape == (1, 3) and model.intercept_.shape == (1,)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e3, 1e9])
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 1e6])
def test_units_do_not_matter_to_the_solver(unit, penalty):
    one, other = SoftLabelClassifier(penalty).fit(X, COUNTS), SoftLabelClassifier(penalty * unit**2).fit(X * unit, COUNTS)
    np.testing.assert_allclose(other.coef_ * unit, one.coef_, rtol=1e-5)


@pytest.mark.parametrize("penalty", [0, 2])
def test_proportions_with_weights_are_counts(penalty):
    share = COUNTS / np.maximum(M, 1)[:, None]
    share[M == 0] = [0.9, 0.1]  # of no votes
    counts = SoftLabelClassifier(penalty).fit(X, COUNTS)
    same_rule(SoftLabelClassifier(penalty).fit(X, share, sample_weight=M), counts)
    same_rule(SoftLabelClassifier(penalty).fit(X, COUNTS * np.pi / 10, sample_weight=np.full(200, 10 / np.pi)), counts)
    same_rule(SoftLabelClassifier(penalty).fit(X, NAMED, sample_weight=np.ones(200)), counts)


def test_weights_of_labels():
    weight = RNG.random(200) * 1e-3
    model = SoftLabelClassifier().fit(X, LABELS, sample_weight=weight)
    peer = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12).fit(X - X.mean(axis=0), LABELS, weight)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-6)


@pytest.mark.parametrize("penalty", [1, 30])
def test_three_classes_are_multinomial(penalty):
    model = SoftLabelClassifier(penalty).fit(X, THREE)
    coef, _ = reference(penalty, THREE.to_numpy(), labels=("b", "c", "a"))
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-5, atol=1e-7)
    assert list(model.classes_) == ["a", "b", "c"]
    shares = model.predict_proba(X).T @ THREE.sum(axis=1)
    np.testing.assert_allclose(shares, THREE[["a", "b", "c"]].sum(), rtol=1e-6)  # the intercepts have no penalty
    assert set(model.predict(X)) <= set("abc") and model.decision_function(X).shape == (200, 3)


@pytest.mark.parametrize("truth", [TRUTH, np.where(pd.isna(TRUTH), np.nan, TRUTH == "yes").astype(float)])
def test_truth_shrinks_towards_the_votes(truth):
    numbers = np.where(pd.isna(TRUTH), np.nan, TRUTH == "yes").astype(float)
    model = SoftLabelClassifier().fit(X, COUNTS if truth.dtype == float else NAMED, truth=truth)
    np.testing.assert_array_equal(np.r_[model.intercept_, model.coef_[0]], sl.fit_votes_and_truth(X, COUNTS, numbers).coef)
    assert np.abs(model.coef_ - SoftLabelClassifier().fit(X, COUNTS).coef_).max() > 0.01


# ------------------------------------------------------------------ which column is which


def test_columns_go_by_their_names():
    plain, named = SoftLabelClassifier().fit(X, COUNTS), SoftLabelClassifier().fit(X, NAMED)
    assert list(plain.classes_) == [0, 1] and list(named.classes_) == ["no", "yes"]
    same_rule(named, plain)
    same_rule(SoftLabelClassifier().fit(X, NAMED[["no", "yes"]]), plain)
    likely = COUNTS[:, 0] > COUNTS[:, 1] + 1
    assert named.decision_function(X)[likely].mean() > 0.5 > named.decision_function(X)[~likely].mean()
    np.testing.assert_array_equal(named.predict(X), np.where(named.predict_proba(X)[:, 1] > 0.5, "yes", "no"))
    np.testing.assert_allclose(np.exp(named.predict_log_proba(X)), named.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(named.predict(X) == "yes", plain.predict(X) == 1)


def test_labels_are_votes_one_each():
    table = pd.crosstab(np.arange(200), LABELS)
    for penalty in (0, 1):
        same_rule(SoftLabelClassifier(penalty).fit(X, table), SoftLabelClassifier(penalty).fit(X, LABELS))


def test_far_from_the_boundary_both_probabilities_are_exact():
    model = SoftLabelClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [[1, 6], [3, 4], [3, 4], [6, 1]])
    far = [[100.0], [-100.0]]
    eta = model.decision_function(far)
    assert np.abs(eta).min() > 90
    np.testing.assert_allclose(model.predict_proba(far), np.column_stack([expit(-eta), expit(eta)]), rtol=1e-12)


def test_tables_are_matched_by_index():
    frame, order = pd.DataFrame(X, columns=list("uvw")), RNG.permutation(200)
    weight = pd.Series(RNG.random(200))
    straight = SoftLabelClassifier(1).fit(frame, NAMED, sample_weight=weight)
    same_rule(SoftLabelClassifier(1).fit(frame, NAMED.iloc[order], sample_weight=weight.iloc[order]), straight)
    assert list(straight.feature_names_in_) == ["u", "v", "w"] and straight.n_features_in_ == 3
    truth = pd.Series(TRUTH)
    same_rule(fit(frame, truth=truth.iloc[order]), fit(truth=TRUTH))
    with pytest.raises(ValueError, match="y has no row for"):  # split by rows, the two would not meet
        cross_val_score(SoftLabelClassifier(1), frame, NAMED.iloc[order], error_score="raise")
    assert straight.score(frame, NAMED.iloc[order]) == straight.score(frame, NAMED)
    assert neg_log_loss_of_votes(straight, frame, NAMED.iloc[order]) == neg_log_loss_of_votes(straight, frame, NAMED)


# ------------------------------------------------------------------ scores, pipelines, searches


def test_scores_are_those_of_one_row_a_vote():
    model = SoftLabelClassifier().fit(X, NAMED)
    rows, labels = expanded(COUNTS, ("yes", "no"))
    assert model.score(X, NAMED) == pytest.approx(accuracy_score(labels, model.predict(rows)), rel=1e-12)
    loss = log_loss(labels, model.predict_proba(rows))
    assert neg_log_loss_of_votes(model, X, NAMED) == pytest.approx(-loss, rel=1e-12)
    assert neg_log_loss_of_votes(model, X, LABELS) == pytest.approx(-log_loss(LABELS, model.predict_proba(X)), rel=1e-12)
    weight = RNG.random(200)
    for y in (LABELS, np.where(np.arange(200) < 9, "maybe", LABELS)):  # a label that was never seen is missed
        expected = accuracy_score(y, model.predict(X), sample_weight=weight)
        assert model.score(X, y, sample_weight=weight) == pytest.approx(expected, rel=1e-12)
    three = SoftLabelClassifier(1).fit(X, THREE)
    rows, labels = expanded(THREE.to_numpy(), ("b", "c", "a"))
    assert neg_log_loss_of_votes(three, X, THREE) == pytest.approx(-log_loss(labels, three.predict_proba(rows)), rel=1e-12)


@pytest.mark.parametrize("votes", [COUNTS, NAMED, THREE], ids=["array", "frame", "three classes"])
def test_cross_validation_splits_votes_in_order(votes):
    """Five folds as KFold makes them: not stratified, not shuffled."""
    model = make_pipeline(StandardScaler(), SoftLabelClassifier(penalty=2))
    scores = cross_val_score(model, X, votes, cv=5, scoring=neg_log_loss_of_votes)
    take = votes.iloc if isinstance(votes, pd.DataFrame) else votes
    folds = KFold(5).split(X)
    by_hand = [neg_log_loss_of_votes(model.fit(X[train], take[train]), X[test], take[test]) for train, test in folds]
    np.testing.assert_allclose(scores, by_hand, rtol=1e-12)
    assert cross_val_score(model, X, votes).shape == (5,)
    strata = list(StratifiedKFold(4).split(X, np.asarray(votes).argmax(axis=1)))
    assert len(cross_val_score(model, X, votes, cv=strata, scoring=neg_log_loss_of_votes)) == 4


def test_a_search_finds_the_penalty():
    model = make_pipeline(StandardScaler(), SoftLabelClassifier())
    grid, folds = {"softlabelclassifier__penalty": [10, 1e9]}, KFold(4, shuffle=True, random_state=0)
    search = GridSearchCV(model, grid, scoring=neg_log_loss_of_votes, cv=folds).fit(X[:60], NAMED[:60])
    assert search.best_params_ == {"softlabelclassifier__penalty": 10} and set(search.predict(X)) == {"yes", "no"}
    assert search.score(X, NAMED) == neg_log_loss_of_votes(search.best_estimator_, X, NAMED)


def test_truth_and_weights_go_through_a_pipeline():
    model = make_pipeline(StandardScaler(), SoftLabelClassifier())
    truth = np.where(np.arange(200) % 3 == 0, LABELS, None)
    params = {"softlabelclassifier__truth": truth}
    scores = cross_val_score(model, X, NAMED, cv=3, scoring=neg_log_loss_of_votes, params=params)
    train, test = next(KFold(3).split(X))
    scaled = StandardScaler().fit(X[train])
    first = SoftLabelClassifier().fit(scaled.transform(X[train]), NAMED.iloc[train], truth=truth[train])
    assert scores[0] == pytest.approx(neg_log_loss_of_votes(first, scaled.transform(X[test]), NAMED.iloc[test]), rel=1e-9)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = SoftLabelClassifier(1).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        weight = RNG.random(200)
        found = cross_validate(routed, X, LABELS, cv=KFold(3), params={"sample_weight": weight}, return_estimator=True)
    same_rule(found["estimator"][0], SoftLabelClassifier(1).fit(X[train], LABELS[train], sample_weight=weight[train]))


# ------------------------------------------------------------------ warnings and errors


def test_separated_votes_are_said():
    y = np.where(X[:, 0] > 5, "big", "small")
    with pytest.warns(sl.SeparationWarning, match="complete separation.*penalty above 0") as caught:
        SoftLabelClassifier().fit(X, y)
    assert len(caught) == 1 and caught[0].filename == __file__
    SoftLabelClassifier(0.01).fit(X, y)  # has an answer


def test_few_truths_are_said():
    with pytest.warns(sl.TruthWarning, match="all true labels"):
        SoftLabelClassifier().fit(X, COUNTS, truth=np.where(np.arange(200) < 3, 1, np.nan))


def put(array, at, value):
    array = np.array(array, dtype=object if isinstance(value, str) else float)
    array[at] = value
    return array


BAD = [
    ({"y": put(COUNTS, (3, 1), -1)}, r"y\[3, 1\] is -1: votes and proportions must be at least 0"),
    ({"y": NAMED.assign(no=-NAMED["no"])}, r"y\[\d+, 1\] \(column 'no'\) is -\d"),
    ({"y": put(COUNTS, (3, 1), np.nan)}, r"y\[3, 1\] is nan"),
    ({"y": np.ma.array(COUNTS, mask=COUNTS == 5)}, r"y\[\d+, \d\] is nan"),
    ({"y": COUNTS.astype(str)}, "y must be an array of real numbers"),
    ({"y": COUNTS[:9]}, "X has 200 items but y has 9"),
    ({"y": LABELS[:9]}, "X has 200 items but y has 9"),
    ({"y": 0 * COUNTS}, "y has no votes at all"),
    ({"y": COUNTS * [1, 0]}, "y has no votes for the class 0:"),
    ({"y": THREE.assign(c=0)}, "y has no votes for the class 'c':"),
    ({"y": np.full(200, "no")}, "y has only one class, 'no'"),
    ({"y": THREE.to_numpy()}, "y has 3 columns without names: give a DataFrame"),
    ({"y": pd.DataFrame(COUNTS)}, "y has 2 columns without names: give a DataFrame"),
    ({"y": pd.DataFrame(COUNTS, columns=["a", "a"])}, "y has more than one column of the same name: 'a', 'a'"),
    ({"y": pd.DataFrame(COUNTS, columns=["a", 1])}, r"y has columns that cannot be sorted \('a', 1\)"),
    ({"y": TAU}, r"Unknown label type: y\[0\] is 0\.\d+\. .* proportions, y has a column for each class"),
    ({"y": put(LABELS == "yes", 4, np.nan)}, r"y\[4\] is missing"),
    ({"y": np.ma.array(LABELS, mask=np.arange(200) == 4)}, r"y\[4\] is missing"),
    ({"y": NAMED.set_axis(np.arange(1, 201)), "X": pd.DataFrame(X)}, "y has no row for 0"),
    ({"y": THREE}, "Only binary classification is supported, unless penalty is above 0: y has the classes 'a', 'b', 'c'"),
    ({"sample_weight": put(M, 7, -2)}, r"sample_weight\[7\] is -2: weights must be at least 0"),
    ({"sample_weight": put(M, 7, np.nan)}, r"sample_weight\[7\] is nan"),
    ({"sample_weight": np.zeros(200)}, "every sample_weight is zero"),
    ({"sample_weight": M[:9]}, "sample_weight has 9 values but y has 200"),
    ({"truth": TRUTH[:9]}, r"truth has shape \(9,\) but y has 200 items"),
    ({"truth": put(TRUTH, 5, "maybe")}, r"truth\[5\] is 'maybe': it must be among 'no', 'yes'"),
    ({"truth": LABELS == "yes"}, r"truth\[0\] is (True|False): it must be among 'no', 'yes'"),
    ({"truth": [[]] + 199 * [None]}, r"truth\[0\] is \[\]: it must be among"),
    ({"truth": TRUTH, "penalty": 1}, "truth goes with .* penalty=0"),
    ({"truth": TRUTH, "sample_weight": M}, "truth goes with .* no sample_weight"),
    ({"truth": TRUTH, "y": NAMED / 2}, "truth goes with .* whole numbers"),
    ({"truth": TRUTH, "y": THREE, "penalty": 1}, "truth goes with .* two classes"),
    ({"X": np.c_[X, X[:, 0] - X[:, 1]]}, "X column 3.*linear combination.*drop it; or give a penalty above 0"),
    ({"X": pd.DataFrame({"a": X[:, 0], "b": 1.0})}, "X column 1 .'b'. is constant"),
    ({"X": pd.DataFrame({"a": X[:, 0], "b": "c"})}, "X has column 'b' of type (str|object): features must be real numbers"),
    ({"X": pd.DataFrame({"day": pd.to_timedelta(M, "D")})}, r"X has column 'day' of type timedelta64\[.*real numbers"),
    *(({"penalty": bad}, "penalty must be a positive number or 0") for bad in (-1, np.nan, np.inf, "l2", None)),
]


def fit(X=X, y=NAMED, sample_weight=None, truth=None, penalty=0):
    warnings.simplefilter("ignore", DataConversionWarning)  # which scikit-learn wants for labels in one column
    return SoftLabelClassifier(penalty).fit(X, y, sample_weight=sample_weight, truth=truth)


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_values_are_named(wrong, message):
    with pytest.raises(ValueError, match=f"(?s)^{message}"):
        fit(**wrong)


def test_votes_of_other_classes_cannot_be_scored():
    with pytest.raises(ValueError, match="y has the class 0, 1, but the classifier was fitted to 'no', 'yes'"):
        neg_log_loss_of_votes(fit(), X, COUNTS)
    with pytest.raises(ValueError, match="y has no votes at all"):
        fit().score(X, 0 * NAMED)


KNOWN = np.where(np.arange(50) < 30, LABELS[:50] == "yes", np.nan)
GOOD = {"y": COUNTS[:50], "sample_weight": M[:50] + 1.0, "truth": KNOWN, "penalty": 1.0}


@examples(150)
@given(st.data())
def test_any_value_is_answered_or_named(data):
    argument = data.draw(st.sampled_from(sorted(GOOD)))
    value = data.draw(st.one_of(anything(), ODD, *[spoilt(GOOD[argument])] * (2 * isinstance(GOOD[argument], np.ndarray))))
    model = attempt(fit, **{"X": X[:50], "y": COUNTS[:50], argument: value})
    if model is not None:
        assert np.isfinite(model.coef_).all()
        again = np.asarray(value)
        assert argument != "y" or again.ndim < 2 or (again.astype(float) >= 0).all()


def test_a_solver_that_gives_up_is_a_warning_of_ours(monkeypatch):
    """Its own words recommend what is not offered here; when it gives up depends on its version."""

    def give_up(*args, **kwargs):
        warnings.warn("Linear algebra failed", LinAlgWarning, stacklevel=2)
        warnings.warn("Increase max_iter", NotConverged, stacklevel=2)
        return solve(*args, **kwargs)

    solve = LogisticRegression.fit
    monkeypatch.setattr(LogisticRegression, "fit", give_up)
    words = r"penalty=1 is small beside features as large as .*; scale the features"
    with pytest.warns(sl.ConvergenceWarning, match=words) as seen:
        fit(X[:50], COUNTS[:50], penalty=1)
    assert len(seen) == 1


def test_arguments_are_left_as_they_are():
    arrays = {name: np.array(GOOD[name]) for name in ("y", "sample_weight")}
    for a in arrays.values():
        a.flags.writeable = False  # to write in it is an error
    fit(X[:50], **arrays)
