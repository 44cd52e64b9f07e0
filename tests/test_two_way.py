"""Covariances of fits whose annotators are known: by definition, by simulation, and what they must agree with."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from softlabel import fit_logistic, two_way_cov
from softlabel.two_way import nearest_cov


def study(n=150, annotators=12, lean=1.0, seed=0, each=None):
    """Annotators who say yes more or less easily, of whom each votes on all items, or ``each`` of them on an item."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"size": rng.normal(3, 2, size=n)}, index=[f"i{k}" for k in range(n)])
    leans = lean * rng.normal(size=annotators)
    who = np.array([rng.permutation(annotators)[: each or annotators] for _ in range(n)])
    yes = rng.random(who.shape) < expit(X.to_numpy() - 3 + leans[who])
    votes = pd.DataFrame(
        {"item": np.repeat(X.index, who.shape[1]), "annotator": who.ravel(), "label": np.where(yes, "yes", "no").ravel()}
    )
    counts = pd.DataFrame({"yes": yes.sum(axis=1), "no": (~yes).sum(axis=1)}, index=X.index)
    return X, counts, votes.sample(frac=1, random_state=seed)


def by_definition(fit, X, votes):
    """Sandwiches of clustered scores, from a row for each vote: by item + L / (L - 1) (by annotator - by vote)."""
    x = np.column_stack([np.ones(len(votes)), X.loc[votes["item"]]])
    tau = expit(x @ fit.coef)
    scores = x * ((votes["label"] == "yes").to_numpy() - tau)[:, None]
    bread = np.linalg.inv((x.T * (tau * (1 - tau))) @ x)

    def meat(names):
        sums = pd.DataFrame(scores).groupby(np.asarray(names)).sum().to_numpy()
        return sums.T @ sums

    L = votes["annotator"].nunique()
    pairs = L / (L - 1) * meat(votes["annotator"]) - meat(np.arange(len(votes)))
    return bread @ (meat(votes["item"]) + pairs) @ bread, bread @ meat(votes["item"]) @ bread


@pytest.mark.parametrize("each", [None, 5])
def test_is_by_item_plus_by_annotator_minus_by_vote(each):
    X, counts, votes = study(each=each)
    fit = fit_logistic(X, counts)
    cov, (expected, by_item) = two_way_cov(fit, X, counts, votes), by_definition(fit, X, votes)
    np.testing.assert_allclose(fit.cov(), by_item, rtol=1e-6)
    # Where no pair of votes by one annotator repels the other, nothing is set to none; the least eigenvalue says so.
    if np.linalg.eigvalsh(expected - by_item)[0] > 0:
        np.testing.assert_allclose(cov, expected, rtol=1e-6)
    else:
        assert cov[0, 0] == pytest.approx(expected[0, 0], rel=0.05)
    at = np.array([1, 3])  # the mean of the feature, where leans count
    assert at @ cov @ at > 2 * at @ fit.cov() @ at


def test_is_the_spread_of_estimates_over_annotators():
    """Of the mean log-odds, at the mean of the feature, where leans count: the sandwich by item is far too small there."""
    at, means, two_way, by_item = np.array([1.0, 3.0]), [], [], []
    for seed in range(150):
        X, counts, votes = study(n=60, annotators=20, seed=seed)
        fit = fit_logistic(X, counts)
        means.append(at @ fit.coef)
        two_way.append(at @ two_way_cov(fit, X, counts, votes) @ at)
        by_item.append(at @ fit.cov() @ at)
    spread = np.std(means)
    assert np.sqrt(np.mean(two_way)) == pytest.approx(spread, rel=0.18)  # three standard errors of 150 studies
    assert np.sqrt(np.mean(by_item)) < 0.7 * spread


def test_nothing_is_taken_away_and_order_does_not_matter():
    X, counts, votes = study(lean=0.0, annotators=40, each=4)
    fit = fit_logistic(X, counts)
    cov = two_way_cov(fit, X, counts, votes)
    assert np.linalg.eigvalsh(cov - fit.cov()).min() > -1e-12
    np.testing.assert_allclose(two_way_cov(fit, X, counts.iloc[::-1], votes.iloc[::-1]), cov, rtol=1e-8)


def test_votes_of_one_annotator_or_of_other_items_are_refused():
    X, counts, votes = study()
    fit = fit_logistic(X, counts)
    for changed, words in (
        (votes.assign(annotator="Ann"), "all by one annotator"),
        (votes.replace({"item": {"i3": "elsewhere"}}), "votes has item 'elsewhere', but the items are 'i0'"),
        (votes.iloc[1:], "votes has .* positive and .* negative votes on item"),
    ):
        with pytest.raises(ValueError, match=words):
            two_way_cov(fit, X, counts, changed)


def test_the_nearest_covariance_has_no_negative_eigenvalue():
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    for values, nearest in (([2, -1], [2, 0]), ([3, 0.5], [3, 0.5]), ([-1, -2], [0, 0])):
        matrix, expected = (turn @ np.diag(v) @ turn.T for v in (values, nearest))
        np.testing.assert_allclose(nearest_cov(np.stack([matrix] * 2)), np.stack([expected] * 2), atol=1e-12)
