"""Tables of votes: every vote is used, or counted among those that are not."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SEED, answered, attempt, examples

from softlabel import analyse_votes
from softlabel.tables import read_truth, read_votes


@st.composite
def vote_tables(draw):
    """A long table of votes on some of twelve items, with gaps and repeats, and the features of these items."""
    rng = np.random.default_rng(draw(SEED))
    rows = draw(st.integers(1, 80))
    votes = pd.DataFrame(
        {
            "item": rng.integers(0, 12, rows),
            "annotator": rng.integers(0, 4, rows).astype(str),
            "label": rng.choice(np.array(["yes", "no", None], dtype=object), rows, p=[0.5, 0.4, 0.1]),
        }
    )
    return votes, pd.DataFrame({"size": rng.normal(size=12)})


@examples(25)
@given(vote_tables())
def test_reports_count_every_vote(tables):
    votes, features = tables
    report = answered(analyse_votes, votes, features, positive="yes")
    once = votes.dropna().drop_duplicates(["item", "annotator"])
    assert report.counted["votes used"] == len(once) == report.items["votes"].sum()
    assert report.counted["missing votes"] == votes["label"].isna().sum()
    assert report.counted["repeated votes"] == votes["label"].notna().sum() - len(once)
    positive = once[once["label"] == "yes"].groupby("item").size()
    assert (report.items["positive"] == positive.reindex(report.items.index, fill_value=0)).all()
    assert len(attempt(report.table)) and attempt(report.sentences)


@examples(5)
@given(vote_tables())
def test_reports_of_any_table_have_a_page(tables):
    assert "<html" in attempt(answered(analyse_votes, *tables, positive="yes").to_html)


# ------------------------------------------------------------------ items, ids, annotators

ITEMS = pd.Index(list("pqrstu"), name="item")
SIZE = pd.DataFrame({"size": [1, 3, 2, 5, 4, 6.0]}, ITEMS)
WIDE = pd.DataFrame({"Ann": list("ynynyn"), "Bob": list("yynyyn")}, ITEMS)


def refused(votes=WIDE, features=SIZE, positive="y", **kwargs):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        analyse_votes(votes, features, positive=positive, **kwargs)
    assert "np." not in str(error.value)
    return str(error.value)


def test_an_index_named_item_is_not_overruled_by_a_column_task():
    features = SIZE.assign(task=[3.0, 1, 2, 2, 1, 1])
    report = analyse_votes(WIDE, features, positive="y")
    assert list(report.fit.feature_names) == ["size", "task"] and list(report.items.index) == list(ITEMS)
    assert "has two rows" in (words := refused(features=features.rename_axis(None))) and "name the index 'item'" in words
    both = refused(features=SIZE.assign(item=range(6)))
    assert both == "features has both an index and a column named 'item': drop or rename one"
    by_column = SIZE.reset_index().assign(task=[3.0, 1, 2, 2, 1, 1])
    pd.testing.assert_frame_equal(analyse_votes(WIDE, by_column, positive="y").table(), report.table())


def test_ids_that_are_rounded_or_of_several_levels():
    ids = np.arange(6, dtype="uint64") + np.uint64(10124420001034504343)
    words = refused(WIDE.set_axis(ids.astype(float)).rename_axis("item"))
    assert "votes, item 1.01" in words and "as text" in words and "(6 such rows in all)" in words
    assert "read the column of the item as text" in refused(features=SIZE.set_axis(ids.astype(float)))
    levels = pd.concat({1: SIZE}, names=["batch"])
    assert "features has an index of several levels ('batch', 'item')" in refused(features=levels)
    whole = analyse_votes(WIDE.set_axis(np.arange(6.0)), SIZE.set_axis(range(6)), positive="y")  # 3.0 is 3
    assert whole.counted["items used"] == 6


DAYS = pd.Series(pd.date_range("2024-01-01", periods=6), ITEMS).where(np.arange(6) != 2)


@pytest.mark.parametrize(
    "column, kind",
    [
        *((DAYS, "datetime64"), (DAYS - DAYS.iloc[0], "timedelta64"), (DAYS.dt.to_period("M"), "period")),
        *((SIZE["size"] * 1j, "c"), (DAYS.astype("category"), "category")),
    ],
)
def test_dates_and_durations_are_no_numbers(column, kind):
    """As nanoseconds they would be, and a missing one the smallest."""
    words = refused(features=SIZE.assign(day=column))
    assert words.startswith(f"features, column 'day' is of type {kind}") and words.endswith("such as of days for dates")


@pytest.mark.parametrize("power, size", [(-200, "e-200"), (155, "e+155"), (200, "e+200"), (-90, ""), (90, "")])
def test_numbers_whose_squares_are_none(power, size):
    rng = np.random.default_rng(1)
    features = pd.DataFrame(rng.normal(size=(60, 2)), columns=["size", "x"])
    votes = pd.DataFrame(rng.random((60, 2)) < 0.5).astype(int)
    scaled = features.assign(x=features["x"] * 10.0**power)
    if size:
        words = refused(votes, scaled, positive=1)
        assert words.startswith("features, column 'x' holds numbers of at most ") and words.endswith("change its unit")
        assert f"{size}, with squares" in words
    else:
        usual = analyse_votes(votes, features, positive=1)
        assert analyse_votes(votes, scaled, positive=1).fit.coef[1] == pytest.approx(usual.fit.coef[1])


def test_values_so_far_from_all_others_that_there_is_no_variance(monkeypatch):
    monkeypatch.setattr("softlabel.fits.LogisticFit.cov", lambda fit: np.full((3, 3), np.nan))
    rng = np.random.default_rng(1)
    features = pd.DataFrame(rng.normal(size=(60, 2)), columns=["size", "x"])
    features.loc[7, "x"] = 1e5
    votes = pd.DataFrame(rng.integers(0, 2, (60, 2)))
    assert "Values farthest from all others has column 'x'" in refused(votes, features, positive=1)


def test_an_item_is_named_once_where_a_feature_is_not_finite():
    """It was "item 'i3' (item 'i3')"."""
    by_index = SIZE.rename_axis("item").astype(float).copy()
    by_index.iloc[3, 0] = np.inf
    item = by_index.index[3]
    assert f"features, item {item!r}, column 'size' is inf" in refused(WIDE, by_index, positive="y")
    words = refused(WIDE, by_index.reset_index(), positive="y")
    assert f"features, row 3 (item {item!r}), column 'size' is inf: features must be finite numbers" in words


def test_annotators_without_votes_are_not_counted():
    silent = WIDE.assign(Aaron=None, Zoe=None)[["Aaron", "Ann", "Zoe", "Bob"]]
    table = read_votes(silent, "y", "first")
    assert list(table.annotators) == ["Ann", "Bob"] and table.n_silent == 2 and table.n_missing == 12
    np.testing.assert_array_equal(table.annotator, [0, 1] * 6)
    np.testing.assert_array_equal(table.positive, (WIDE == "y").to_numpy().ravel())
    report = analyse_votes(silent, SIZE, positive="y")
    assert report.counted["annotators"] == 2
    pd.testing.assert_frame_equal(report.annotators, analyse_votes(WIDE, SIZE, positive="y").annotators)


# ------------------------------------------------------------------ labels

DECLARED = pd.CategoricalDtype(["no", "yes"])
NONE = WIDE.replace({"y": "no", "n": "no"})
LONG_NONE = NONE.reset_index().melt("item").set_axis(["item", "annotator", "label"], axis=1)


@pytest.mark.parametrize(
    "votes, positive",
    [(NONE.astype(DECLARED), "yes"), (LONG_NONE, "no"), (WIDE == "x", True), ((WIDE == "x").astype("boolean"), True)],
)
def test_votes_of_one_class_where_the_other_is_declared(votes, positive):
    table = read_votes(votes, positive, "first")
    assert len(table.positive) == 12 and table.positive.sum() == (12 if positive == "no" else 0)
    with pytest.raises(ValueError, match=r"every vote on the items used is (not )?.*: features cannot tell apart what is all"):
        analyse_votes(votes, SIZE, positive=positive)


def test_a_long_column_declares_as_well_and_truth_may_use_the_word():
    table = read_votes(LONG_NONE.astype({"label": DECLARED}), "yes", "first")
    assert sorted(table.labels) == ["no", "yes"] and not table.positive.any()
    truth = read_truth(pd.Series(["yes", "no"], list("pq")), ITEMS, table.labels, "yes")
    np.testing.assert_array_equal(truth, [1, 0, *[np.nan] * 4])
    # Declared, but the items' names are no labels.
    wide = WIDE.reset_index().astype({"item": pd.CategoricalDtype(["yes", *ITEMS])})
    assert "positive='yes' is not among the labels of votes ('y', 'n')" in refused(wide, positive="yes")


def test_a_positive_class_that_is_not_there():
    assert refused(WIDE.replace({"y": "n"}), positive="y") == (
        "positive='y' is not among the labels of votes ('n'); if truly none is positive, give a pandas.Categorical that has "
        "it as a category"
    )
    numbers = (WIDE == "y").astype(int)
    for table, label in ((numbers, "1"), (numbers.astype(str), 1)):  # a report knows which is meant
        with pytest.raises(ValueError, match=r"label(s| not)? text|the label text"):
            read_votes(table, label, "first")
        assert analyse_votes(table, SIZE, positive=label).items["positive"].sum() == 7
    assert analyse_votes(numbers, SIZE, positive=0).items["positive"].sum() == 5


# ------------------------------------------------------------------ truth


def series(*values):
    return pd.Series(values, ITEMS[: len(values)], dtype=object)


@pytest.mark.parametrize(
    "truth, labels, positive, expected",
    [
        (series("y", None, "n"), ["y", "n"], "y", [1, np.nan, 0]),
        (series(1, 0, "1", "0"), ["y", "n"], "n", [1, 0, 1, 0]),
        (series("1.0", None, "0.0", 0), ["y", "n"], "n", [1, np.nan, 0, 0]),  # decimals, as after a gap
        (series("TRUE", "False"), ["y", "n"], "y", [1, 0]),
        (series(1, 0), [0, 1], 0, [0, 1]),  # in the words of the votes
        (series(True, False), [True, False], False, [0, 1]),
    ],
)
def test_truth_in_the_words_of_the_votes_or_numbers(truth, labels, positive, expected):
    answer = read_truth(truth, ITEMS, labels, positive)
    np.testing.assert_array_equal(answer, expected + [np.nan] * (6 - len(expected)))


@pytest.mark.parametrize(
    "truth, words",
    [
        (series(1, -1), "truth of item 'q' is -1: "),  # not the 1, which is valid
        (series("y", ""), "truth of item 'q' is '' (a text without a letter, which is not missing): "),
        (series("y", "maybe"), "truth of item 'q' is 'maybe': each must be one of the labels of the votes ('y', 'n'), or"),
        (series("y", 1), "truth of item 'q' is 1 and that of item 'p' 'y': each must be"),
        (pd.Series("y", ["z", "x"]), "truth has item 'z', which is not in features (2 such items in all); its items are 'p',"),
    ],
)
def test_truth_that_cannot_be_read(truth, words):
    assert words in refused(truth=truth)


@pytest.mark.parametrize(
    "labels, positive, word", [(["0", "1"], "0", "'0'"), (["false", "x"], "false", "'false'"), ([True, 5], 5, "True")]
)
def test_numbers_must_not_mean_the_opposite_of_the_votes(labels, positive, word):
    words = f"1 would stand for the positive class, but the votes' label of the .* class is {word}"
    with pytest.raises(ValueError, match=words):
        read_truth(series(1, 0.0, "0"), ITEMS, labels, positive)
