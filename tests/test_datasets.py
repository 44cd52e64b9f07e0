"""Loaders: what is known of the files, the join of votes, truth and features, and files that are missing or wrong."""

import functools
import hashlib
import shutil
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from reference import GASTRO_FEATURES, gastro

import softlabel
from softlabel import datasets

WITH_HISTOGRAM = ["gastroenterology", "bluebirds", "adult_content"]
LOADERS = {name: getattr(softlabel, f"load_{name}") for name in (*WITH_HISTOGRAM, "recidivism", "cifar10h", "imagenet16h")}


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
    rng, counts = np.random.default_rng(0), np.asarray(counts)
    right, *shuffled = (
        softlabel.fit_logistic(X.to_numpy(), counts[order]).log_likelihood
        for order in (np.arange(76), *(rng.permutation(76) for _ in range(50)))
    )
    assert right > max(shuffled) + 20  # the best of 50 says how far chance gets


def test_is_readable_and_fresh():
    data = load("gastroenterology")
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
    assert np.corrcoef(data.y, positive(data))[0, 1] > 0.5  # joined wrongly, the truth would say nothing: 0.1 by chance


def test_adult_content_is_that_of_the_readme_and_shows_no_address_and_no_worker():
    data = load("adult_content")
    check_parts_agree(data)
    assert data.X is None and data.y is None and len(data.votes) == 44373
    m = data.counts.sum(axis=1)
    assert (m.min(), m.max()) == (86, 90)
    assert data.votes.duplicated(["item", "annotator"]).sum() == 9050
    assert set(data.votes.label) == set("GPRXB")
    assert list(data.counts.index) == list(range(1, 497)) and set(data.votes.annotator) == set(range(1, 339))
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


@pytest.mark.parametrize(
    "name, option, words, values",
    [
        ("adult_content", "positive", "positive", ["Q", "rx", "", ["RX"], None]),
        ("adult_content", "repeats", "repeats", ["last"]),
        ("imagenet16h", "noise", "noise must be 80 or 125", [100, 0, "80", None, [80]]),
        ("recidivism", "part", "part must be one of 'voted', 'rest'", ["all", "Voted", None, 1]),
    ],
)
def test_wrong_arguments_are_named(name, option, words, values):
    for bad in values:
        with pytest.raises(ValueError, match=words) as caught:
            LOADERS[name](**{option: bad})
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


# ------------------------------------------------------------------ recidivism, CIFAR-10H, ImageNet-16H


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write small files, which the loaders then read in place of the real ones."""
    monkeypatch.setattr(datasets, "fetch", lambda name: tmp_path / name)

    def write(name, rows, end="\n"):
        (tmp_path / name).write_bytes(end.join(",".join(map(str, row)) for row in rows).encode())

    return write


HEAD = [
    *("id", "race", "sex", "age", "juv_fel_count", "juv_misd_count", "priors_count", "charge_id"),
    *("charge_degree (misd/fel)", "compas_decile_score", "two_year_recid", "compas_guess", "compas_correct", "", "", ""),
]
PEOPLE = [  # sex, age, prior convictions, charge, arrested again, by the number in the files
    *((10, (0, 20, 0, 1, 0)), (20, (1, 31, 3, 0, 1)), (30, (0, 42, 9, 1, 1))),
    *((40, (1, 53, 1, 1, 0)), (50, (0, 64, 2, 0, 1))),
]
WORKERS = [90000001, 90000002, 90000003]


@pytest.fixture
def recidivism(files):
    """Five defendants, three of them with votes, in files of the format of the real ones."""
    rows = [[id, 7, sex, age, 6, 6, priors, 66, charge, 6, again, 6, 6] for id, (sex, age, priors, charge, again) in PEOPLE]
    files("BROWARD_CLEAN.csv", [HEAD, *([*row, "", "", ""] for row in rows)], end="\r")
    votes = [
        ["mTurk", *WORKERS, "", ""],
        ["id", "", "", "", "", ""],
        [40, 1, -1, "", "", ""],  # not arrested again: no, yes
        [10, "", -1, -1, "", ""],  # not: yes, yes
        [20, -1, "", 1, "", ""],  # arrested again: no, yes
        ["", "", "", "", "", ""],
        ["", "", "", "", "", ""],
    ]
    files("MTURK_NO_RACE.csv", votes, end="\r")


def test_recidivism_reads_the_votes_out_of_right_and_wrong(recidivism):
    data = softlabel.load_recidivism()
    check_parts_agree(data)
    assert data.counts.to_dict("list") == {"yes": [1, 2, 1], "no": [1, 0, 1]}
    first, others = {(1, 1, "no"), (1, 2, "yes")}, {(2, 2, "yes"), (2, 3, "yes"), (3, 1, "no"), (3, 3, "yes")}
    assert set(data.votes.itertuples(index=False, name=None)) == first | others


def test_recidivism_joins_by_the_number_of_the_defendant(recidivism):
    """The files list the defendants in different orders, and one has a row of labels and empty rows."""
    voted, rest = softlabel.load_recidivism(), softlabel.load_recidivism("rest")
    assert list(voted.y.index) == list(voted.X.index) == list(voted.counts.index) == [1, 2, 3] and list(voted.y) == [0, 0, 1]
    priors = [np.log(2), 0, np.log(4)]
    assert voted.X.to_dict("list") == {"age": [53, 20, 31], "log_priors": priors, "felony": [1, 1, 0], "female": [1, 0, 1]}
    assert list(rest.y.index) == list(rest.X.index) == [4, 5] and list(rest.y) == [1, 1]
    assert list(rest.X["age"]) == [42, 64] and list(rest.X.columns) == list(voted.X.columns)
    assert rest.counts is None and rest.votes is None and "2 items, no votes" in repr(rest)


def test_recidivism_tells_no_number_of_a_worker_or_defendant(recidivism):
    data = softlabel.load_recidivism()
    assert set(data.votes["annotator"]) == {1, 2, 3} and data.votes["annotator"].dtype.kind == "i"
    kept = f"{data!r} {data.votes.to_dict()} {data.counts.to_dict()} {list(data.X)} {data.y.to_dict()}"
    assert not any(str(number) in kept for number in WORKERS)
    assert not {"id", "race"} & set(data.X)


def test_recidivism_is_that_of_the_readme():
    voted, rest = load("recidivism"), load("recidivism", part="rest")
    check_parts_agree(voted)
    assert (voted.counts.sum(axis=1) == 20).all() and len(voted.counts) == 1000
    assert voted.votes["annotator"].value_counts().eq(50).all() and set(voted.votes["annotator"]) == set(range(1, 401))
    assert not voted.votes.duplicated(["item", "annotator"]).any()
    assert list(voted.y.index) == list(range(1, 1001)) and list(rest.y.index) == list(range(1001, 7215))
    # The two parts are Angwin's 7,214 people, of whom 3,251 were arrested again and 1,395 are women.
    X, y = pd.concat([voted.X, rest.X]), pd.concat([voted.y, rest.y])
    assert y.sum() == 3251 and X["female"].sum() == 1395 and X["felony"].sum() == 4666
    assert not X.isna().any(axis=None) and (X["age"].min(), X["log_priors"].max()) == (18, np.log(39))
    # The mean share of right votes is the 62.1 percent that Dressel and Farid print.
    right = (voted.votes["label"] == "yes") == voted.votes["item"].map(voted.y == 1)
    assert abs(right.mean() - 0.621) < 5e-4


def test_cifar10h_takes_cats_and_dogs_with_thirty_votes_for_the_two(files):
    classes = "airplane automobile bird cat deer dog frog horse ship truck".split()

    def row(label, cats, dogs, ships, **p):
        votes = dict.fromkeys(classes, 0) | {"cat": cats, "dog": dogs, "ship": ships}
        return [*votes.values(), *(dict.fromkeys(classes, 1e-3) | p).values(), label]

    rows = [
        row(9, 40, 10, 0),  # a ship
        row(6, 4, 26, 9, dog=0.5, cat=0.1, horse=1e-12),
        row(4, 20, 9, 25),  # a cat with 29 votes for cat or dog
        row(4, 25, 25, 0, cat=0.9, dog=1e-9, bird=0),
    ]
    files("human_model_truth_cifar10h.csv", rows)
    data = softlabel.load_cifar10h()
    assert data.counts.to_dict("list") == {"cat": [4, 25], "dog": [26, 25]} and list(data.y) == [0, 1]
    assert list(data.counts.index) == list(data.y.index) == list(data.X.index) == [1, 2]
    assert data.votes is None and "2 items, votes without annotators" in repr(data)
    expected = []
    for cat, dog, clipped in ((0.1, 0.5, "horse"), (0.9, 1e-9, "bird")):
        mean = np.log([cat, dog, 1e-9, *[1e-3] * 7]).mean()
        others = {name: np.log(1e-9 if name == clipped else 1e-3) - mean for name in ("bird", "deer", "frog", "horse")}
        expected.append({"cat_dog": np.log(cat / dog), **others})
    pd.testing.assert_frame_equal(data.X, pd.DataFrame(expected, index=data.X.index))


def test_cifar10h_is_that_of_the_readme():
    data = load("cifar10h")
    m = data.counts.sum(axis=1)
    assert len(data.counts) == 1983 and m.min() == 30 and abs(m.mean() - 50) < 0.2
    assert data.X.shape == (1983, 5) and np.isfinite(data.X.to_numpy()).all()
    # Votes and features are of the same photographs: both nearly give the label.
    assert ((data.counts["cat"] > data.counts["dog"]) == data.y).mean() > 0.95
    assert ((data.X["cat_dog"] > 0) == data.y).mean() > 0.85


CLASSES = "knife keyboard elephant bicycle airplane clock oven chair bear boat cat bottle truck car bird dog".split()


def test_imagenet16h_joins_by_the_name_of_the_photograph(files):
    files("imagenet16H.csv", [["image_name", "category"], ["c.png", "bear"], ["a.png", "oven"], ["b.png", "car"]])
    shares = {"a.png": {"oven": 1.0}, "b.png": {"dog": 0.1, "bird": 0.2, "car": 0.7}, "c.png": {"bear": 0.6, "cat": 0.4}}
    network = [[photograph, *(p.get(name, 0.0) for name in CLASSES), 1] for photograph, p in shares.items()]
    files("noise125_alexnet.csv", [["image_name", *CLASSES, "correct"], *network])
    answers = [("b.png", 900, "car"), ("c.png", 901, "dog"), ("a.png", 900, "knife"), ("b.png", 902, "cat")]
    answers += [("c.png", 902, "chair"), ("b.png", 900, "bird"), ("c.png", 900, "elephant")]  # 900 sees b.png again
    files("noise125_predictions.csv", [["image_name", "participant_id", "participant_classification"], *answers])
    data = softlabel.load_imagenet16h(125)
    check_parts_agree(data)
    assert list(data.y) == [1, 0, 0] and list(data.y.index) == list(data.X.index) == [1, 2, 3]
    assert data.counts.to_dict("list") == {"animal": [2, 0, 1], "object": [1, 1, 1]}
    assert data.votes.to_numpy().tolist() == [
        *([3, 1, "object"], [1, 2, "animal"], [2, 1, "object"]),
        *([3, 3, "animal"], [1, 3, "object"], [1, 1, "animal"]),
    ]
    p = np.array([1 - 1e-6, 1e-6, 0.3])  # no animal, and nothing else: clipped
    pd.testing.assert_frame_equal(data.X, pd.DataFrame({"logit_animal": np.log(p / (1 - p))}, index=data.X.index))


@pytest.mark.parametrize("noise, again", [(80, 1), (125, 0)])
def test_imagenet16h_is_that_of_the_readme(noise, again):
    data = load("imagenet16h", noise=noise)
    check_parts_agree(data)
    m = data.counts.sum(axis=1)
    assert len(m) == 1200 and m.median() == 6 and set(m) == {6, 7}
    assert len(data.votes) == {80: 7247, 125: 7239}[noise] - again
    assert set(data.votes["annotator"]) == set(range(1, 146)) and not data.votes.duplicated(["item", "annotator"]).any()
    assert data.y.sum() == 5 * 75  # of 1,200 / 16 photographs each
    assert ((data.counts["animal"] * 2 > m) == data.y).mean() > 0.8
    assert ((data.X["logit_animal"] > 0) == data.y).mean() > 0.8
    assert data.y.equals(load("imagenet16h", noise=205 - noise).y)


@pytest.mark.parametrize(
    "name, options, alpha0, half_a_digit",
    [
        ("recidivism", {}, 20, 0.5),
        ("cifar10h", {}, 0.89, 0.005),
        ("imagenet16h", {"noise": 80}, 0.80, 0.005),
        ("imagenet16h", {"noise": 125}, 2.9, 0.05),
    ],
)
def test_overdispersion_about_the_votes_own_rule(name, options, alpha0, half_a_digit):
    """As computed from the files by another program. A wrong join or feature would leave the votes unexplained."""
    data = load(name, **options)
    X = (data.X - data.X.mean()) / data.X.std()
    tau = softlabel.fit_logistic(X, data.counts).posterior(X)
    assert abs(softlabel.estimate_alpha0(data.counts, tau).alpha0 - alpha0) <= half_a_digit


# ------------------------------------------------------------------ histograms


@pytest.mark.parametrize("name", WITH_HISTOGRAM)
def test_shipped_histogram_is_that_of_the_file(name):
    expected = datasets.histogram_of_votes(load(name).counts)
    pd.testing.assert_frame_equal(datasets.shipped_histograms()[name], expected)


def test_histogram_counts_every_item_once():
    rng = np.random.default_rng(1)
    m = rng.integers(1, 5, size=50)
    s = rng.binomial(m, 0.5)
    table = datasets.histogram_of_votes(pd.DataFrame({"a": s, "b": m - s}))
    assert dict(zip(zip(table["m"], table["positive"]), table["items"])) == Counter(zip(m, s))


# ------------------------------------------------------------------ files that are missing or wrong


NEEDED = [
    ("gastroenterology", {}, "gastrodata.rda"),
    ("bluebirds", {}, "bluebirds_labels.yaml"),
    ("adult_content", {}, "adult_content_labels.txt"),
    ("recidivism", {}, "BROWARD_CLEAN.csv"),
    ("recidivism", {"part": "rest"}, "BROWARD_CLEAN.csv"),
    ("cifar10h", {}, "human_model_truth_cifar10h.csv"),
    ("imagenet16h", {"noise": 80}, "imagenet16H.csv"),
]


@pytest.fixture
def originals():
    """Where the real files are, or skip the test."""
    try:
        return {name: datasets.fetch(name) for name in datasets.FILES}
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


@pytest.mark.parametrize("name, options, file", NEEDED)
def test_a_missing_or_damaged_file_is_one_clear_error(folder, name, options, file):
    for content, word in ((None, "it is not there"), (b"1: {11573: true}\n", "another checksum")):
        if content:
            (folder / file).write_bytes(content)
        with pytest.raises(datasets.DataFileError, match=word) as caught:
            LOADERS[name](**options)
        check_message(caught.value, folder, file)
        assert isinstance(caught.value, OSError)
    assert (folder / file).read_bytes() == content  # nor is it thrown away


def test_a_read_only_folder_serves_without_a_network(originals, folder):
    for path in originals.values():
        shutil.copy(path, folder)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    try:
        items = [len(LOADERS[name](**options).y) for name, options, _ in NEEDED if name != "adult_content"]
        assert items == [76, 108, 1000, 6214, 1983, 1200] and len(softlabel.load_adult_content().counts) == 496
        assert len(softlabel.load_imagenet16h(125).y) == 1200
        assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    finally:
        folder.chmod(0o755)


@pytest.fixture
def one_file(folder, monkeypatch):
    """A data file that nobody has, but for what a test writes."""
    monkeypatch.setitem(datasets.FILES, "a.txt", ("https://example.org/a.txt", hashlib.sha256(b"right").hexdigest()))
    return folder


PLACES = [(place, other) for place in ("", "votes", "votes/set") for other in (None, "", "old") if place != other]


@pytest.mark.parametrize("place, other", PLACES)
def test_a_file_may_lie_in_a_folder_of_the_folder(one_file, place, other):
    """And another file of its name does not hide it."""
    if other is not None:
        (one_file / other).mkdir(exist_ok=True)
        (one_file / other / "a.txt").write_text("wrong")
    (one_file / place).mkdir(parents=True, exist_ok=True)
    (one_file / place / "a.txt").write_text("right")
    assert datasets.fetch("a.txt") == one_file / place / "a.txt"


def test_a_wrong_file_in_a_folder_of_the_folder_is_named_and_kept(one_file):
    (one_file / "votes").mkdir()
    (one_file / "votes" / "a.txt").write_text("wrong")
    with pytest.raises(datasets.DataFileError, match="another checksum"):
        datasets.fetch("a.txt")
    assert (one_file / "votes" / "a.txt").read_text() == "wrong"
