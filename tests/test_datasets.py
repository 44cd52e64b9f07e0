"""Loaders: what is known of the files, the join of votes, truth and features, and files that are missing or wrong."""

import dataclasses
import functools
import shutil

import numpy as np
import pandas as pd
import pytest
from reference import GASTRO_FEATURES, gastro

import softlabel
from softlabel import datasets

LOADERS = {name: getattr(softlabel, f"load_{name}") for name in ("gastroenterology", "bluebirds", "adult_content")}


@functools.cache
def load_once(name, **options):
    try:
        return LOADERS[name](**options)
    except datasets.DataFileError as error:
        return error


def load(name, **options):
    """The data set, or skip the test."""
    data = load_once(name, **options)
    if isinstance(data, datasets.DataFileError):
        pytest.skip(f"needs the files of {name}: {data}")
    return data


def positive(data):
    return data.counts.iloc[:, 0].to_numpy()


def check_parts_agree(data):
    """The long table of votes, the counts and the truth are of the same items."""
    assert list(data.votes.columns) == ["item", "annotator", "label"] and not data.votes.isna().any(axis=None)
    assert data.counts.index.is_unique and data.counts.index.name == "item"
    m = data.votes.groupby("item").size().reindex(data.counts.index)
    np.testing.assert_array_equal(data.counts.sum(axis=1), m)
    assert data.y is None or data.y.index.equals(data.counts.index)


# ------------------------------------------------------------------ gastroenterology


def test_gastroenterology_is_that_of_the_paper():
    data = load("gastroenterology")
    check_parts_agree(data)
    assert data.X.shape == (76, 698) and data.counts.shape == (76, 2) and len(data.votes) == 76 * 7
    assert list(data.X.columns) == [f"V{k}" for k in range(4, 702)] and set(GASTRO_FEATURES) <= set(data.X.columns)
    assert all(dtype.kind == "f" for dtype in data.X.dtypes) and np.isfinite(data.X.to_numpy()).all()
    # Items with 0..7 votes for resection, and 55 malignant of 76.
    np.testing.assert_array_equal(np.bincount(positive(data), minlength=8), [4, 4, 6, 3, 7, 7, 13, 32])
    np.testing.assert_array_equal(np.asarray(data.counts).sum(axis=1), 7)
    assert data.y.sum() == 55 and set(data.y) == {0, 1} and data.X.index.equals(data.counts.index)
    assert data.votes["annotator"].nunique() == 7 and not data.votes.duplicated(["item", "annotator"]).any()
    table = pd.crosstab(data.votes["item"], data.votes["label"]).reindex(data.counts.index)
    assert sorted(map(tuple, table.to_numpy().T)) == sorted(map(tuple, np.asarray(data.counts).T))


def test_features_and_votes_of_a_lesion_are_joined_by_name():
    """Joined by position the features would say nothing: the score of the five would be near one half."""
    X, counts, _ = gastro()
    right = softlabel.fit_logistic(X, counts).log_likelihood
    rng = np.random.default_rng(0)
    shuffled = [
        softlabel.fit_logistic(X.to_numpy(), np.asarray(counts)[rng.permutation(76)]).log_likelihood for _ in range(50)
    ]
    # The best of 50 shuffles says how far chance gets.
    assert right > max(shuffled) + 20


def test_is_frozen_readable_and_fresh():
    data = load("gastroenterology")
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.y = None
    assert data.source and len(repr(data)) < 500 and "76" in repr(data)
    fresh, before = datasets.load_gastroenterology(), data.X.copy()
    fresh.X.iloc[0, 0] = -1e9  # a caller's change must not reach the next caller
    pd.testing.assert_frame_equal(datasets.load_gastroenterology().X, before)


# ------------------------------------------------------------------ bluebirds, adult content, breast cancer


def test_bluebirds_are_those_of_the_readme():
    data = load("bluebirds")
    check_parts_agree(data)
    assert data.X is None and data.counts.shape == (108, 2) and list(data.counts.columns) == ["yes", "no"]
    assert data.votes.annotator.nunique() == 39 and len(data.votes) == 4212
    assert not data.votes.duplicated(["item", "annotator"]).any()
    assert positive(data).sum() == 1597 and (positive(data).min(), positive(data).max()) == (3, 29)
    assert data.y.sum() == 48 and (data.y == 0).sum() == 60
    assert "108 items" in repr(data) and "39 annotators" in repr(data)


def test_bluebirds_truth_and_votes_are_of_the_same_images():
    """Joined wrongly, the truth would say nothing about the votes."""
    data = load("bluebirds")
    right = np.corrcoef(data.y, positive(data))[0, 1]
    rng = np.random.default_rng(0)
    shuffled = [np.corrcoef(rng.permutation(data.y), positive(data))[0, 1] for _ in range(200)]
    assert right > max(np.abs(shuffled)) + 0.2


def test_adult_content_is_that_of_the_readme():
    data = load("adult_content")
    check_parts_agree(data)
    assert data.X is None and data.y is None
    assert len(data.counts) == 496 and data.votes.annotator.nunique() == 338 and len(data.votes) == 44373
    m = data.counts.sum(axis=1)
    assert (m.min(), m.max()) == (86, 90)
    assert data.votes.duplicated(["item", "annotator"]).sum() == 9050
    assert set(data.votes.label) == set("GPRXB")


def test_adult_content_shows_no_address_and_no_worker():
    data = load("adult_content")
    assert list(data.counts.index) == list(range(1, 497))
    assert set(data.votes.annotator) == set(range(1, 339))
    assert "http" not in data.votes.head().to_string() + repr(data)


@pytest.mark.parametrize("chosen", ["X", "RX", "PRX", "GPRXB"])
@pytest.mark.parametrize("repeats", ["keep", "first"])
def test_adult_content_choices(chosen, repeats):
    data = load("adult_content", positive=chosen, repeats=repeats)
    check_parts_agree(data)
    votes = load("adult_content").votes
    if repeats == "first":
        votes = votes.groupby(["item", "annotator"], sort=False).label.first().reset_index()
        assert not data.votes.duplicated(["item", "annotator"]).any() and len(data.votes) == 35323
    expected = pd.crosstab(votes["item"], votes["label"])[list(chosen)].sum(axis=1)
    np.testing.assert_array_equal(positive(data), expected)


def test_adult_content_labels_may_be_any_collection():
    expected = load("adult_content").counts
    for chosen in (["R", "X"], {"X", "R"}, ("R", "X", "X"), "XR"):
        pd.testing.assert_frame_equal(load_once.__wrapped__("adult_content", positive=chosen).counts, expected)


@pytest.mark.parametrize("options", [{"positive": bad} for bad in ("Q", "rx", "", ["RX"], None)] + [{"repeats": "last"}])
def test_adult_content_wrong_arguments(options):
    ((name, bad),) = options.items()
    with pytest.raises(ValueError, match=name) as caught:
        softlabel.load_adult_content(**options)
    assert repr(bad) in str(caught.value)


def test_breast_cancer_is_that_of_the_readme():
    data = softlabel.load_breast_cancer()
    assert data.X.shape == (569, 30) and data.y.sum() == 212 and set(data.y) == {0, 1}
    assert data.counts is None and data.votes is None and "no votes" in repr(data)
    assert data.X.index.equals(data.y.index)
    means = data.X.filter(regex="^mean ")
    assert means.shape == (569, 10)
    # Malignant is 1: these samples have the larger cells. The full fit errs on 29 of the 569.
    assert means["mean radius"][data.y == 1].mean() > means["mean radius"][data.y == 0].mean() + 4
    fit = softlabel.fit_logistic((means - means.mean()) / means.std(), data.y)
    assert (fit.predict((means - means.mean()) / means.std()) != data.y).sum() == 29


# ------------------------------------------------------------------ histograms


@pytest.mark.parametrize("name", LOADERS)
def test_shipped_histogram_is_that_of_the_file(name):
    expected = datasets.histogram_of_votes(load(name).counts)
    pd.testing.assert_frame_equal(datasets.shipped_histograms()[name], expected)


def test_histogram_counts_every_item_once():
    rng = np.random.default_rng(1)
    m = rng.integers(1, 5, size=50)
    s = rng.binomial(m, 0.5)
    table = datasets.histogram_of_votes(pd.DataFrame({"a": s, "b": m - s}))
    assert table["items"].sum() == 50
    for row in table.itertuples():
        assert row.items == ((m == row.m) & (s == row.positive)).sum()


# ------------------------------------------------------------------ files that are missing or wrong


NEEDED = dict(zip(LOADERS, ["gastrodata.rda", "bluebirds_labels.yaml", "adult_content_labels.txt"]))


@pytest.fixture
def originals():
    """The folder where the real files are, or skip the test."""
    try:
        return next(iter([datasets.fetch(name).parent for name in datasets.FILES]))
    except datasets.DataFileError as error:
        pytest.skip(f"needs all data files: {error}")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder, and no network."""

    def refuse(*args, **kwargs):
        raise OSError("no network in this test")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    monkeypatch.setenv("SOFTLABEL_DATA", str(tmp_path))
    return tmp_path


def check_message(error, folder, file):
    address, sha256 = datasets.FILES[file]
    for words in (file, str(folder), address, sha256, "by hand", "SOFTLABEL_DATA"):
        assert words in str(error), words


@pytest.mark.parametrize("name, file", NEEDED.items())
def test_a_missing_or_damaged_file_is_one_clear_error(folder, name, file):
    for content, word in ((None, "it is not there"), (b"1: {11573: true}\n", "another checksum")):
        if content:
            (folder / file).write_bytes(content)
        with pytest.raises(datasets.DataFileError, match=word) as caught:
            LOADERS[name]()
        check_message(caught.value, folder, file)
        assert isinstance(caught.value, OSError)
    assert (folder / file).read_bytes() == content  # nor is it thrown away


def test_one_changed_byte_is_seen(originals, folder):
    content = bytearray((originals / "bluebirds_gt.yaml").read_bytes())
    content[0] ^= 1
    (folder / "bluebirds_gt.yaml").write_bytes(content)
    shutil.copy(originals / "bluebirds_labels.yaml", folder)
    with pytest.raises(datasets.DataFileError, match=r"bluebirds_gt\.yaml"):
        softlabel.load_bluebirds()


def test_a_read_only_folder_serves_without_a_network(originals, folder):
    for name in datasets.FILES:
        shutil.copy(originals / name, folder)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    try:
        assert [len(LOADERS[name]().counts) for name in LOADERS] == [76, 108, 496]
        assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    finally:
        folder.chmod(0o755)
