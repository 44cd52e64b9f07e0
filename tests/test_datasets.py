"""Loaders: what is known of the files, the join of the two, and what happens without them."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from reference import GASTRO_FEATURES, gastro, load_once

from softlabel import datasets


@pytest.fixture
def data():
    gastro()  # skips where the files cannot be had
    return load_once()


def test_shapes_and_names(data):
    assert data.X.shape == (76, 698) and data.counts.shape == (76, 2) and len(data.y) == 76
    assert list(data.X.columns) == [f"V{k}" for k in range(4, 702)]
    assert set(GASTRO_FEATURES) <= set(data.X.columns)
    assert all(dtype.kind == "f" for dtype in data.X.dtypes) and np.isfinite(data.X.to_numpy()).all()


def test_votes_and_truth_are_those_of_the_paper(data):
    positive = np.asarray(data.counts)[:, 0]
    # Items with 0..7 votes for resection, and 55 malignant of 76.
    np.testing.assert_array_equal(np.bincount(positive, minlength=8), [4, 4, 6, 3, 7, 7, 13, 32])
    np.testing.assert_array_equal(np.asarray(data.counts).sum(axis=1), 7)
    assert data.y.sum() == 55 and set(data.y) == {0, 1}


def test_all_parts_share_one_index(data):
    assert data.X.index.equals(data.counts.index) and data.X.index.equals(data.y.index)
    assert data.X.index.is_unique


def test_long_table_of_votes_adds_up_to_the_counts(data):
    votes = data.votes
    assert list(votes.columns) == ["item", "annotator", "label"] and len(votes) == 76 * 7
    assert votes["annotator"].nunique() == 7 and not votes.duplicated(["item", "annotator"]).any()
    table = pd.crosstab(votes["item"], votes["label"]).reindex(data.counts.index)
    columns = sorted(map(tuple, table.to_numpy().T))
    assert columns == sorted(map(tuple, np.asarray(data.counts).T))


def test_features_and_votes_of_a_lesion_are_joined_by_name(data):
    """Joined by position the features would say nothing: the score of the five would be near one half."""
    from softlabel import fit_logistic
    X, counts, y = gastro()
    right = fit_logistic(X, counts).log_likelihood
    rng = np.random.default_rng(0)
    shuffled = [fit_logistic(X.to_numpy(), np.asarray(counts)[rng.permutation(76)]).log_likelihood for _ in range(50)]
    # The best of 50 shuffles says how far chance gets.
    assert right > max(shuffled) + 20


def test_is_frozen_readable_and_fresh(data):
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.y = None
    assert data.source and len(repr(data)) < 500 and "76" in repr(data)
    fresh, before = datasets.load_gastroenterology(), data.X.copy()
    fresh.X.iloc[0, 0] = -1e9  # a caller's change must not reach the next caller
    pd.testing.assert_frame_equal(datasets.load_gastroenterology().X, before)


def test_a_file_that_cannot_be_had_is_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTLABEL_DATA", str(tmp_path))
    monkeypatch.setattr("socket.socket.connect", lambda *_: (_ for _ in ()).throw(OSError("no network in this test")))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(OSError("no network in this test")))
    with pytest.raises(datasets.DataFileError) as caught:
        datasets.load_gastroenterology()
    message = str(caught.value)
    assert "SOFTLABEL_DATA" in message or str(tmp_path) in message
    assert "gastro" in message and "http" in message and isinstance(caught.value, OSError)


def test_a_damaged_file_is_not_used(tmp_path, monkeypatch):
    for name in ("gastrodata.rda", "gastro_label_binary.rda"):
        (tmp_path / name).write_bytes(b"not the file")
    monkeypatch.setenv("SOFTLABEL_DATA", str(tmp_path))
    monkeypatch.setattr("socket.socket.connect", lambda *_: (_ for _ in ()).throw(OSError("no network in this test")))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(OSError("no network in this test")))
    with pytest.raises(datasets.DataFileError):
        datasets.load_gastroenterology()
