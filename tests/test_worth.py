"""One rule from votes and true labels, and what votes are worth: known answers, by simulation and by quadrature."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit

from softlabel import (
    TruthWarning,
    TwoClassNormal,
    fit_logistic,
    fit_logistic_batch,
    fit_votes_and_truth,
    godambe_information,
    relative_efficiency,
    sample_votes,
    worth,
    worth_of_votes,
)

MODEL = TwoClassNormal.canonical(2.0, p=3)
RULE = np.array([0.0, 2.0, 0.0, 0.0])


def with_votes(n, k, m=5, alpha0=3.0, rule=RULE, seed=0, model=MODEL):
    """Items whose votes have the mean expit(rule'x), k of them with their true label."""
    rng = np.random.default_rng(seed)
    X, y = model.sample(n, rng)
    mean = expit(rule[0] + X @ rule[1:])
    counts = sample_votes(np.column_stack([mean, 1 - mean]), m, alpha0, rng)
    return X, counts, np.where(np.arange(n) < k, y, np.nan)


def best(X, y):
    """Logarithm of the likelihood of true labels, as a function of the coefficients."""
    x = np.column_stack([np.ones(len(X)), X])
    return lambda b: log_expit(np.where(y == 1, 1, -1) * (x @ b)).sum()


# ------------------------------------------------------------------ one rule from both


def test_without_true_labels_it_is_the_rule_of_the_votes():
    X, counts, truth = with_votes(200, 0)
    fit, votes = fit_votes_and_truth(X, counts, truth), fit_logistic(X, counts)
    np.testing.assert_allclose(fit.coef, votes.coef, rtol=0, atol=1e-12)  # rounding
    assert fit.n_truths == 0 and fit.log_likelihood == 0 and fit.n_items == 200
    # That the mean of the votes may be wrong is part of its uncertainty.
    assert (fit.stderr() > votes.stderr()).all()


def test_without_votes_it_is_firths_rule_of_the_true_labels():
    X, counts, truth = with_votes(200, 40)
    fit, truths = fit_votes_and_truth(X, 0 * counts, truth), fit_logistic(X[:40], truth[:40], method="firth")
    np.testing.assert_array_equal(fit.coef, truths.coef)
    np.testing.assert_array_equal(fit.cov(), truths.cov("model"))
    assert (fit.n_items, fit.n_without_votes, fit.n_truths) == (40, 160, 40)
    assert fit.log_likelihood == pytest.approx(best(X[:40], truth[:40])(fit.coef), rel=1e-12)


def test_where_votes_and_truth_agree_it_is_close_to_the_efficient_fit():
    """Efficient is the maximum of the likelihood of the true labels times the normal density of the votes' estimate."""
    away, excess = [], {"combined": [], "efficient": [], "truths": []}
    for seed in range(60):
        X, counts, truth = with_votes(200, 80, seed=seed)
        votes, likelihood = fit_logistic(X, counts), best(X[:80], truth[:80])
        precision = np.linalg.inv(votes.cov())
        efficient = minimize(
            lambda b: (b - votes.coef) @ precision @ (b - votes.coef) / 2 - likelihood(b), votes.coef, method="BFGS"
        ).x
        rules = {
            "combined": fit_votes_and_truth(X, counts, truth).coef,
            "efficient": efficient,
            "truths": fit_logistic(X[:80], truth[:80]).coef,
        }
        for name, coef in rules.items():
            excess[name].append(MODEL.error_rate(coef) - MODEL.bayes_error())
        away.append(rules["combined"] / np.linalg.norm(rules["combined"]) - efficient / np.linalg.norm(efficient))
    mean = {name: np.mean(values) for name, values in excess.items()}
    assert mean["combined"] < 1.5 * mean["efficient"] < 0.6 * mean["truths"]
    assert np.sqrt(np.mean(np.square(away))) < 0.06  # of directions of length 1


def test_where_they_disagree_it_goes_to_the_truth():
    X, counts, truth = with_votes(4000, 2000, rule=np.array([1.0, 2.0, 1.5, 0.0]), m=20)
    fit, votes, truths = fit_votes_and_truth(X, counts, truth), fit_logistic(X, counts), fit_logistic(X[:2000], truth[:2000])
    assert np.abs(fit.coef - truths.coef).max() < 0.1 < 1 < np.abs(votes.coef - truths.coef).max()


def test_inverted_votes_are_turned_round():
    X, counts, truth = with_votes(500, 200)
    fit = fit_votes_and_truth(X, counts[:, ::-1], truth)
    assert MODEL.error_rate(fit.coef) - MODEL.bayes_error() < 0.02
    assert worth_of_votes(X, counts[:, ::-1], truth, rng=0).scale.high < 0


def moved(X, counts, truth, how):
    A = np.array([[1, 2, 0], [0, 1e-3, 0], [5, 0, 1e3]])
    order = np.random.default_rng(1).permutation(len(X))
    return {
        "order": (X[order], counts[order], truth[order]),
        "units": (X * [1e-4, 1, 1e5] + [7, 0, 1e6], counts, truth),
        "combined features": (X @ A, counts, truth),
        "classes exchanged": (X, counts[:, ::-1], 1 - truth),
        "items that nobody knows": (np.vstack([X, X]), np.vstack([counts, 0 * counts]), np.r_[truth, truth * np.nan]),
    }[how], order


@pytest.mark.parametrize("how", ["order", "units", "combined features", "classes exchanged", "items that nobody knows"])
def test_what_does_not_change_the_rule(how):
    data = with_votes(150, 50, seed=4)
    (X, counts, truth), order = moved(*data, how)
    expected = fit_votes_and_truth(*data).linear_predictor(data[0])
    eta = fit_votes_and_truth(X, counts, truth).linear_predictor(X)[:150]
    expected = {"order": expected[order], "classes exchanged": -expected}.get(how, expected)
    np.testing.assert_allclose(eta, expected, rtol=1e-6, atol=1e-6)  # cancellation within 1e6 +- 1


def test_pandas_objects_are_matched_and_named():
    X, counts, truth = with_votes(100, 30)
    frame = pd.DataFrame(X, columns=["size", "shape", "age"], index=[f"i{k}" for k in range(100)])
    series = pd.Series(truth, index=frame.index).iloc[::-1]
    votes = pd.DataFrame(counts, index=frame.index).sample(frac=1, random_state=0)
    fit = fit_votes_and_truth(frame, votes, series)
    np.testing.assert_array_equal(fit.coef, fit_votes_and_truth(X, counts, truth).coef)
    assert fit.feature_names == ["size", "shape", "age"] and "30 true labels" in repr(fit) and "shape" in repr(fit)
    nullable = pd.Series(pd.array([None if np.isnan(t) else int(t) for t in truth], dtype="Int64"), index=frame.index)
    np.testing.assert_array_equal(fit_votes_and_truth(frame, votes, nullable).coef, fit.coef)
