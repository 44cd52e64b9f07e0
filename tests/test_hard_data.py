"""Hard data: few items, separated or unanimous votes, far-off values, any units. Each answer, error and warning is ours."""

import numpy as np
import pandas as pd
import pytest
from strategies import attempt

import softlabel as sl
from softlabel.classifier import SoftLabelClassifier


def hard(rng):
    """Features (n, p), votes (n, 2) and true labels (n,) such that something is amiss, most often."""
    n, p = rng.choice([6, 12, 30, 80]), rng.choice([1, 2, 3, 6])
    X = rng.normal(size=(n, p))
    eta = X @ (rng.normal(size=p) * rng.choice([0, 1, 4, 30])) + rng.choice([0, 3, -6])
    tau = 1 / (1 + np.exp(-np.clip(eta, -700, 700)))
    counts = sl.sample_votes(
        np.column_stack([tau, 1 - tau]), rng.choice([1, 2, 3, 7, 40]), rng.choice([1e-3, 0.3, 2, np.inf]), rng
    )
    if rng.random() < 0.3:
        counts[rng.integers(n)] = 0
    if rng.random() < 0.2:
        X[:, 0] = np.round(X[:, 0])
    if rng.random() < 0.2:
        X[0] *= 1e6
    truth = np.where(rng.random(n) < rng.choice([0.1, 0.5, 1]), rng.random(n) < tau, np.nan)
    return X * 10.0 ** rng.choice([-8, 0, 0, 8]), counts, truth


def tables(X, counts, rng):
    """The same as people have it: a row a vote, at most seven votes an item, mostly of the same annotators."""
    rows = []
    for item, (s, f) in enumerate(counts):
        labels = rng.permutation(np.repeat(["yes", "no"], [s, f]))[:7]
        rows += [(item, f"A{k}" if rng.random() < 0.9 else f"B{k}{rng.integers(3)}", label) for k, label in enumerate(labels)]
    votes = pd.DataFrame(rows, columns=["item", "annotator", "label"])
    return votes, pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])]).rename_axis("item")


DAILY = {4, 11, 14, 15, 17, 22, 75, 122, 288, 291}  # each was once answered by somebody else, and each in another way


@pytest.mark.parametrize("seed", [pytest.param(k, marks=() if k in DAILY else pytest.mark.slow) for k in range(300)])
def test_every_answer_is_ours(seed):
    rng = np.random.default_rng(seed)
    X, counts, truth = hard(rng)
    for method in ("mle", "firth"):
        if fit := attempt(sl.fit_logistic, X, counts, method=method):
            attempt(fit.summary, "profile")
            for interval in ("cox-reid", "likelihood", "bootstrap"):
                attempt(sl.alpha0_interval, counts, fit.posterior(X), X=X, method=interval, n_resamples=50, rng=rng)
        attempt(sl.fit_logistic_batch, np.stack([X, 2 * X]), np.stack([counts, counts[::-1]]), method=method)
    attempt(sl.find_separation, X, counts)
    attempt(sl.fit_dirichlet_multinomial, X, counts)
    attempt(sl.fit_votes_and_truth, X, counts, truth)
    attempt(sl.worth_of_votes, X, counts, truth, rng=rng)
    attempt(SoftLabelClassifier(rng.choice([0, 0.01, 1])).fit, X, counts)
    votes, features = tables(X, counts, rng)
    if len(votes):
        attempt(sl.examine_labellers, votes, features, positive="yes", rng=rng)
        known = pd.Series(truth, features.index) if rng.random() < 0.5 else None
        if report := attempt(sl.analyse_votes, votes, features, positive="yes", truth=known):
            report.to_json()
