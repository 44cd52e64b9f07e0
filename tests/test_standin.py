"""The stand-in for the gastroenterology table, drawn from the fitted model, and the shipped histograms, without a network."""

import numpy as np
import pandas as pd
import pytest
from reference import GASTRO_FEATURES, R_ALPHA0, R_VOTES, gastro
from scipy.special import expit

from softlabel import estimate_alpha0, fit_logistic
from softlabel.book.standin import gastroenterology_stand_in
from softlabel.datasets import histogram_of_votes, shipped_histograms


@pytest.fixture(autouse=True)
def no_file_and_no_network(monkeypatch, request, tmp_path):
    """But for the one comparison with the real file."""
    if "real_five" not in request.node.name:
        monkeypatch.setenv("SOFTLABEL_DATA", str(tmp_path))
        monkeypatch.setattr("socket.socket.connect", lambda *_: (_ for _ in ()).throw(OSError("no network in this test")))


@pytest.fixture(scope="module")
def many():
    """300 stand-ins, and one table of all their items."""
    tables = [gastroenterology_stand_in(rng=seed) for seed in range(300)]
    X, counts, y = (pd.concat([getattr(t, name) for t in tables], ignore_index=True) for name in ("X", "counts", "y"))
    return tables, X, counts, y


def test_has_the_shape_of_the_real_table_and_says_that_it_is_simulated():
    data = gastroenterology_stand_in()
    assert data.X.shape == (76, 5) and list(data.X.columns) == GASTRO_FEATURES
    assert list(data.counts.columns) == ["resection", "no-resection"] and (data.counts.sum(axis=1) == 7).all()
    assert set(data.y) == {0, 1} and data.X.index.is_unique
    assert data.X.index.equals(data.counts.index) and data.X.index.equals(data.y.index)
    assert data.X.index.str.startswith("simulated").all()  # so that no row passes for a lesion
    assert "simulated" in data.source and "simulated" in repr(data) and "76" in repr(data)
    # The long table of votes adds up to the counts.
    assert list(data.votes.columns) == ["item", "annotator", "label"] and len(data.votes) == 76 * 7
    assert data.votes["annotator"].nunique() == 7 and not data.votes.duplicated(["item", "annotator"]).any()
    table = pd.crosstab(data.votes["item"], data.votes["label"]).reindex(data.counts.index)[list(data.counts.columns)]
    np.testing.assert_array_equal(table, data.counts)


def test_is_always_the_same_table_unless_asked():
    one, two = gastroenterology_stand_in(), gastroenterology_stand_in()
    for name in ("X", "counts", "y", "votes"):
        assert getattr(one, name).equals(getattr(two, name))
    one.X.iloc[0, 0] = -1e9  # a caller's change must not reach the next caller
    assert gastroenterology_stand_in().X.equals(two.X)
    assert gastroenterology_stand_in(rng=1).X.equals(gastroenterology_stand_in(rng=np.random.default_rng(1)).X)
    assert not gastroenterology_stand_in(rng=1).X.equals(two.X)


def test_the_chapter_runs_on_it():
    """Both fits converge without a warning and alpha0 is inside its range."""
    data = gastroenterology_stand_in()
    X = (data.X - data.X.mean()) / data.X.std(ddof=1)
    for labels in (data.y, data.counts):
        fit = fit_logistic(X, labels)
        assert fit.converged and fit.separation == "none"
        assert 1 < estimate_alpha0(data.counts, fit.posterior(X)).alpha0 < 30


def test_votes_are_drawn_from_the_fitted_model(many):
    """R's coefficients and alpha0 come back from 22,800 items, within the two digits kept and the sampling error."""
    _, X, counts, _ = many
    fit = fit_logistic(X, counts)
    # Half a unit of the digits kept, and four standard errors.
    assert np.all(np.abs(fit.coef - R_VOTES["coef"]) < 0.0051 + 4 * fit.stderr())
    assert fit.stderr().max() < 0.03
    alpha0 = estimate_alpha0(counts, fit.posterior(X)).alpha0
    # The estimate of 76 items has a standard error of a third of it (likelihood interval 3.3 to 11): a fiftieth of it here.
    assert alpha0 == pytest.approx(R_ALPHA0["votes"]["alpha0"], rel=4 * 0.33 / np.sqrt(300))


def test_true_labels_are_drawn_from_the_same_posterior(many):
    _, X, counts, y = many
    fit = fit_logistic(X, y)
    assert np.all(np.abs(fit.coef - R_VOTES["coef"]) < 0.0051 + 4 * fit.stderr())
    # Given the features, labels and votes have nothing more in common.
    tau = expit(R_VOTES["coef"][0] + X.to_numpy() @ R_VOTES["coef"][1:])
    residual = np.corrcoef(y - tau, counts["resection"] - 7 * tau)[0, 1]
    assert abs(residual) < 4 / np.sqrt(len(X))


def test_annotators_are_exchangeable(many):
    """Each gives the same share of positive votes, and each pair agrees equally often."""
    tables = many[0]
    votes = np.concatenate(
        [t.votes.pivot(index="item", columns="annotator", values="label").eq("resection").to_numpy() for t in tables]
    )
    share = votes.mean(axis=0)
    assert np.ptp(share) < 5 * np.sqrt(0.25 / len(votes))
    agree = [(votes[:, i] == votes[:, k]).mean() for i in range(7) for k in range(i)]
    assert np.ptp(agree) < 5 * np.sqrt(0.25 / len(votes))  # the range of 21 correlated shares


def test_features_have_the_moments_of_the_real_five(many):
    X = many[1]
    error = 4 / np.sqrt(len(X))  # four standard errors
    np.testing.assert_allclose(X.mean(), 0, atol=error)
    np.testing.assert_allclose(X.std(), 1, atol=error)
    real, *_ = gastro()
    # Two digits kept, and four standard errors.
    np.testing.assert_allclose(X.corr(), real.corr(), atol=0.0051 + error)
    assert np.abs(real.corr().to_numpy() - np.eye(5)).max() > 0.5  # so that independent features would fail


def test_shipped_histograms_are_those_in_the_data_readme():
    histograms = shipped_histograms()
    computed = histogram_of_votes(gastroenterology_stand_in().counts)
    totals = {}
    for name, h in histograms.items():
        assert list(h.columns) == list(computed.columns) == ["m", "positive", "items"]
        assert (h["items"] > 0).all() and (h["positive"] <= h["m"]).all() and not h.duplicated(["m", "positive"]).any()
        totals[name] = (h["items"].sum(), (h["m"] * h["items"]).sum(), h["m"].min(), h["m"].max())
    assert totals == {
        "gastroenterology": (76, 532, 7, 7), "bluebirds": (108, 4212, 39, 39), "adult_content": (496, 44_373, 86, 90)
    }  # fmt: skip
    assert list(histograms["gastroenterology"]["items"]) == [4, 4, 6, 3, 7, 7, 13, 32]
    birds = histograms["bluebirds"]
    assert (birds["positive"] * birds["items"]).sum() == 1597
    assert (birds["positive"].min(), birds["positive"].max()) == (3, 29)
    birds["items"] = 0
    assert shipped_histograms()["bluebirds"]["items"].sum() == 108  # a caller's change stays with the caller
