"""Tables as people have them: whatever a file looks like, the votes in it are the same, and what was done is said."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT

from softlabel import TwoClassNormal, analyse_votes, sample_votes
from softlabel.report.cells import find_label
from softlabel.report.command import main
from softlabel.report.tidy import tidy
from softlabel.tables import read_features, read_truth

TABLES = ROOT / "tests" / "tables"
ROLES = {"item": None, "annotator": None, "label": None}
N = 40


def simulated():
    """Forty items, three annotators, all of whom vote."""
    rng = np.random.default_rng(3)
    model = TwoClassNormal.canonical(2)
    X, _ = model.sample(N, rng)
    s = sample_votes(model.posterior(X), 3, alpha0=5, rng=rng)[:, 0]
    said = np.array([rng.permutation(np.arange(3) < k) for k in s])
    features = pd.DataFrame(X.round(3), columns=["size", "shape"])
    long = pd.DataFrame(
        {"item": np.repeat(np.arange(N), 3), "annotator": np.tile(["w1", "w2", "w3"], N), "label": said.ravel()}
    )
    return long, features


LONG, X = simulated()
S = LONG.groupby("item")["label"].sum().to_numpy()


def in_words(items=lambda k: f"a{k:03d}", labels=("no", "yes"), annotators=str):
    """The same votes and features with other names of items and labels."""
    words = pd.Series(labels)[LONG["label"].astype(int)].to_numpy()
    names = [items(k) for k in range(N)]
    votes = {"item": [names[k] for k in LONG["item"]], "annotator": LONG["annotator"].map(annotators), "label": words}
    return pd.DataFrame(votes), X.set_axis(pd.Index(names, name="item"))


@pytest.fixture
def written(tmp_path):
    """Writes a table as text, with its index where that has a name; the path."""

    def write(table, name="votes", **form):
        table.to_csv(tmp_path / f"{name}.csv", index=table.index.name is not None, **form)
        return tmp_path / f"{name}.csv"

    return write


def widened(votes):
    return votes.pivot(index="item", columns="annotator", values="label")


def refused(words, votes, features, positive="yes", **options):
    """By the function that users call."""
    with pytest.raises(ValueError, match=words):
        analyse_votes(votes, features, positive=positive, **options)


def read(votes, features, positive="yes", **options):
    usual = {"truth": None, "columns": None, "exclude": (), "counts": (), "missing": ()}
    roles = ROLES | {key: options.pop(key) for key in list(options) if key in ROLES}
    return tidy(votes, features, roles, positive=positive, **usual | options)


def counted(tables):
    """Positive votes and votes by item, in the order of the features."""
    votes, items = tables.votes, pd.Index(tables.features.get("item", tables.features.index))
    if "label" not in votes:
        votes = votes.set_index("item") if "item" in votes else votes
        votes = votes.rename_axis("item").reset_index().melt("item", value_name="label")
    votes = votes.dropna(subset="label")
    table = (votes["label"] == tables.positive).groupby(votes["item"], observed=True).agg(["sum", "size"])
    table = table.reindex(items, fill_value=0)
    return table["sum"].to_numpy(), table["size"].to_numpy()


def with_cell(table, row, column, value):
    table = table.astype(object)
    table.loc[row, column] = value
    return table


def is_whole(tables):
    s, m = counted(tables)
    np.testing.assert_array_equal(s, S)
    assert (m == 3).all()
    np.testing.assert_allclose(tables.features[["size", "shape"]].to_numpy(float), X)


# ------------------------------------------------------------------ Labels, items and annotators


LABELS = {
    "0 and 1": ((0, 1), "1"),
    "0 and 1, a number": ((0, 1), 1),
    "True and False": ((False, True), "True"),
    "TRUE and FALSE": (("FALSE", "TRUE"), True),
    "1.0, as after a gap": (("0.0", "1.0"), "1"),
    "words": (("nein, nie", "ja"), "ja"),
    "signs": (("-", "+"), "+"),
}


@pytest.mark.parametrize("labels, positive", LABELS.values(), ids=list(LABELS))
@pytest.mark.parametrize("wide", [False, True], ids=["long", "wide"])
def test_labels_of_any_kind_from_a_file(written, labels, positive, wide):
    votes, features = in_words(labels=labels)
    is_whole(read(written(widened(votes) if wide else votes), written(features, "features"), positive))


@pytest.mark.parametrize(
    "items",
    [lambda k: k + 1, lambda k: f"{k:03d}", lambda k: 10124420001034504343 + k, lambda k: k - 20, lambda k: f"é {k}"],
    ids=["numbers", "leading zeros", "twenty digits", "negative", "accents and blanks"],
)
def test_items_of_any_kind_from_a_file(written, items):
    votes, features = in_words(items)
    tables = read(written(votes), written(features, "features"))
    is_whole(tables)
    assert list(tables.features["item"]) == [str(items(k)) for k in range(N)] and not tables.notes
    assert tables.files == {"votes": "votes.csv", "features": "features.csv"}


def test_annotators_1_and_01_are_two(written):
    votes, features = in_words(annotators={"w1": "1", "w2": "01", "w3": "1.0"}.get)
    assert set(read(written(votes), features).votes["annotator"]) == {"1", "01", "1.0"}


def test_numbers_that_became_decimals_are_numbers_again(written):
    """As where a gap made pandas write 1 as 1.0; both tables then have the same items."""
    votes, features = in_words(lambda k: k + 1)
    votes["item"] = votes["item"].astype(float)
    is_whole(read(votes, features))
    tables = read(written(votes), written(features, "features"))
    is_whole(tables)
    assert tables.notes == ("The items of votes end in .0, which was taken away.",)


def test_decimals_that_have_lost_digits_are_refused():
    votes, features = in_words(lambda k: 10124420001034504343 + k)
    refused("is a number of so many digits", votes.assign(item=votes["item"].astype(float)), features)


def test_numbers_in_one_table_and_text_in_the_other(written):
    votes, features = in_words(lambda k: k + 1)
    is_whole(read(written(votes), features))
    for given in (features, written(features, "features")):  # of the latter, the truth alone has numbers
        tables = read(written(votes), given, truth=pd.Series(1, features.index))
        assert "matched as text" in tables.notes[0] and tables.truth.index[0] == "1"


@pytest.mark.parametrize("digits", [2, 3])
def test_zeros_in_front_that_one_table_has_lost_are_an_error(written, digits):
    """Numbers of two digits are alike in both tables if these write two, and would be used alone."""
    votes, features = in_words(str)
    padded = features.set_axis(features.index.str.zfill(digits).rename("item"))
    zero, many = "0" * digits, N if digits == 3 else 10
    words = f"'{zero}' in features, features.csv line 2 .such items in all: {many}.: write them alike in both"
    for number in (str, int):
        given = votes.assign(item=votes["item"].map(number))
        refused(f"votes, row 0: item '0' is {words}", given, written(padded, "features"))
    refused(f"votes, votes.csv line 2: item '0' is {words}", written(votes), written(padded, "features"))
    given = votes.assign(item=votes["item"].str.zfill(digits))
    refused(f"votes, row 0: item '{zero}' is '0' in features, item '0' ", given, features)
    both = pd.concat([features, padded.drop(features.index, errors="ignore")])  # 1 and 01 are two items
    assert counted(read(votes, both))[1].sum() == 3 * N


@pytest.mark.parametrize("column", ["item", "annotator", "label"])
def test_blanks_are_taken_away_and_said(written, column):
    votes, features = in_words()
    votes.loc[::2, column] += " "
    for given in (written(votes), votes, votes.astype("category")):
        tables = read(given, features)
        is_whole(tables)
        assert tables.votes["annotator"].nunique() == 3
        assert tables.notes == (f"Blanks around {column}s of votes were taken away in 60 cells.",)  # pseudonyms hide names


@pytest.mark.parametrize("mark", ["unsure", "-1", "skip"])
def test_labels_that_are_none(written, mark):
    votes, features = in_words()
    votes.loc[[0, 5], "label"] = mark
    others = ", ".join(repr(other) for other in ("unsure", -1, "skip") if str(other) != mark)
    for given in (written(votes), votes, widened(votes)):
        tables = read(given, features, missing=["unsure", -1, "skip"])
        s, m = counted(tables)
        assert m.sum() == 3 * N - 2 and s.sum() == S.sum() - LONG["label"][[0, 5]].sum()
        assert [text for text in tables.notes if "missing" in text] == [f"No label is {others}, which missing names."]
        tables = read(given, features, missing=[f" {mark.upper()}", np.nan, "NA"])
        assert counted(tables)[1].sum() == 3 * N - 2 and not tables.notes
    refused(f"3 different labels.*{mark}", votes, features)


@pytest.mark.parametrize("word", ["I don't know", "Don’t know", "not sure", "I am not sure.", "cannot say", "-1.0", "??"])
def test_many_votes_do_not_make_a_class_of_no_label(word):
    votes, features = in_words()
    votes.loc[:49, "label"] = word
    for given in (features, None):
        refused(rf"No class is .*\(votes: 50\): leave it out by missing=\[.*{re.escape(word)}.\]", votes, given)


@pytest.mark.parametrize(
    "labels, positive, noted",
    [
        ((0, 1, -1), 1, "-1"),
        (("0", "1", "-1"), None, "'-1'"),
        (("0.0", "-1.0", "1.0"), "-1", ""),
        (("some", "many", "none"), "many", "'none'"),
        (("some", "many", "none"), "none", ""),
        (("low", "high", "unclear"), "unclear", ""),
    ],
)
@pytest.mark.parametrize("given", [X, None], ids=["features", "alone"])
def test_a_class_may_be_called_none_or_minus_one(labels, positive, noted, given):
    if given is not None and positive is None:
        positive = labels[1]
    votes = LONG.assign(label=np.array(labels, object)[np.where(np.arange(3 * N) % 5, LONG["label"], 2)])
    report = analyse_votes(votes, given, positive=positive)
    assert report.counted["missing votes"] == 0
    notes = [text for text in report.set_aside if "if it says that there is none" in text]
    assert len(notes) == bool(noted) and all(f"is {noted} (votes: 24)" in text for text in notes)


def test_a_rare_class_that_was_named_is_no_slip():
    """Of 1,200 votes, 11 or 5 for it: where two others are, as where one is."""
    votes = pd.concat([LONG.assign(item=LONG["item"] + N * k, label=np.arange(3 * N) % 2) for k in range(10)])
    votes["label"] = votes["label"].map({0: "fine", 1: "late"})
    features = pd.concat([X] * 10, ignore_index=True)
    for rare, named in ((11, None), (5, "fraud")):
        some = votes.reset_index(drop=True)
        some.loc[np.arange(rare) * 101, "label"] = "fraud"
        report = analyse_votes(some, None, positive=named)
        assert dict(zip(report.labels, report.items.filter(like="votes for").sum()))["fraud"] == rare
    assert analyse_votes(some, features, positive="fraud").counted["votes used"] == 1200


@pytest.mark.parametrize("labels, positive", [(range(5), 4), (range(5), 0), (list("01234"), "4")])
def test_truth_that_may_be_labels_or_yes_and_no(labels, positive):
    """0 and 1 of the classes 0 to 4: nothing is guessed."""
    votes = LONG.assign(label=np.array(labels, object)[LONG["item"] % 3 + LONG["label"] * 2])
    words = rf"truth of item 0 is .*, and all of truth is 0 or 1: labels .*Write truth as {positive!r} and 'not {positive}'"
    for truth in (np.arange(N) % 2, np.ones(N, int), np.arange(N) % 2 * 1.0):
        refused(words, votes, X, positive, truth=pd.Series(truth))
    meant = [positive if k % 2 else f"not {positive}" for k in range(N)]  # as the error says
    report = analyse_votes(votes, X, truth=pd.Series(meant, dtype=object), positive=positive)
    np.testing.assert_array_equal(report.items["truth"], np.arange(N) % 2)


@pytest.mark.parametrize("labels, others", [(("no", "yes"), ("NO", "Yes")), (("0", "1"), ("0.0", "1.0")), (("b", "a"), "Bb")])
def test_labels_that_read_alike_are_not_two_classes(labels, others):
    votes, features = in_words(labels=labels)
    votes.loc[60:, "label"] = votes["label"][60:].map(dict(zip(labels, others)))
    for given, row in ((votes, r"row \d\d"), (widened(votes), r"item 'a0\d\d'")):
        words = f"votes has the labels .*, which read alike .* is first in votes, {row}"
        refused(words, given, features, labels[1])


@pytest.mark.parametrize("empty", ["", "NA", "N/A", "null", "None", "nan"])
def test_cells_that_hold_nothing(written, empty):
    votes, features = in_words()
    votes.loc[0, "label"] = empty
    assert counted(read(written(votes), features))[1].sum() == 3 * N - 1


def test_the_label_that_is_meant():
    for labels, wanted, meant in (
        (["0", "1"], 1, "1"), (["0.0", "1.0"], "1", "1.0"), (["TRUE", "FALSE"], True, "TRUE"), ([True, False], 1, True),
        (["yes", "Yes"], "Yes", "Yes"), (["Yes", "no"], "yes", "Yes"), (["a", "b"], "c", "c"), (["-1", "1"], -1.0, "-1"),
        (["yes", "Yes"], "YES", "YES"),
    ):  # fmt: skip
        assert find_label(labels, wanted) == meant


@pytest.mark.parametrize(
    "labels, positive, words",
    [
        (("no", "yes"), "yes", (0, 1)),
        (("no", "yes"), "YES", ("No", "Yes")),
        (("no", "yes"), "yes", (False, True)),
        ((0, 1), 1, (0, 1)),
        (("no", "yes", "other"), "yes", ("OTHER", "YES")),
    ],
)
def test_true_labels_of_some_items_from_a_file(written, labels, positive, words):
    """As pandas writes a column with gaps: 1.0 and 0.0, and nothing where it is unknown."""
    votes, features = in_words(labels=labels[:2])
    votes = pd.concat([votes, votes[: len(labels) - 2].assign(annotator="w4", label="other")])
    truth = pd.Series([words[1], None, words[0], *[None] * (N - 3)])
    truth = truth.infer_objects().set_axis(features.index)
    file = written(features.assign(gold=truth), "features")
    assert words != (0, 1) or ",1.0" in file.read_text()
    for given in ({"features": file, "truth": "gold"}, {"features": features, "truth": truth}):
        tables = read(written(votes), positive=positive, **given)
        x, known = read_features(tables.features, tables.truth)
        found = read_truth(known, x.index, list(tables.votes["label"].unique()), tables.positive)
        np.testing.assert_array_equal(found, [1, np.nan, 0, *[np.nan] * (N - 3)])


# ------------------------------------------------------------------ Files


def test_separators_decimal_commas_and_encodings(written):
    votes, features = in_words(lambda k: f"Ä{k}")
    for separator, decimal, encoding in (
        *((";", ",", "utf-8-sig"), (";", ",", "cp1252"), (";", ".", "utf-8"), ("\t", ",", "utf-16"), ("\t", ".", "utf-8")),
        *((",", ".", "utf-8-sig"), ("|", ".", "cp1252")),
    ):
        form = {"sep": separator, "encoding": encoding, "decimal": decimal}
        tables = read(written(votes, **form), written(features, "features", **form))
        is_whole(tables)
        assert any("decimal commas" in note for note in tables.notes) == (decimal == ",")
        assert any("Latin-1" in note for note in tables.notes) == (encoding == "cp1252")


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"'])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_first_line_for_excel_that_says_the_separator(tmp_path, line, encoding):
    votes, features = in_words()
    text = f"{line}\n{votes.to_csv(index=False, sep=';')}"
    (tmp_path / "votes.csv").write_text(text, encoding=encoding)
    is_whole(read(tmp_path / "votes.csv", features))
    (tmp_path / "votes.csv").write_text(f"{text}a000;;yes\n", encoding=encoding)
    refused(f"votes.csv line {3 * N + 3}: the annotator is missing", tmp_path / "votes.csv", features)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs files for pipes")
def test_a_file_may_be_a_pipe():
    votes, features = in_words()
    ends = [os.pipe() for _ in range(2)]
    for (_, into), table in zip(ends, (votes, features.reset_index())):
        with open(into, "w", encoding="utf-8") as pipe:
            table.to_csv(pipe, index=False)
    is_whole(read(*(f"/dev/fd/{out}" for out, _ in ends)))
    for out, _ in ends:
        os.close(out)


@pytest.mark.parametrize("decimal, sign", [(",", "."), (".", ",")])
@pytest.mark.parametrize("whole", [False, True])
def test_thousands_or_decimals(written, decimal, sign, whole):
    """1.234 beside 0,5, or beside 987 without decimals elsewhere, is a guess; beside 0.5, or 2.5 in its own column, not."""
    votes, features = in_words()
    others = pd.DataFrame({"rooms": np.arange(N) % 5}, features.index) if whole else features

    def priced(first, second, rest):
        return written(others.assign(price=[first, second, *[rest] * (N - 2)]), "features", sep=";", decimal=decimal)

    beside = r"features.csv line 3 is '987': thousands or decimals\?" if whole else rf"column 'size' has '.*\{decimal}"
    words = rf"features.csv line 2, column 'price' is '1\{sign}234', and {beside}"
    refused(words, votes, priced(f"1{sign}234", "987", "987"))
    if whole:
        right = {1.234: [f"1{sign}234", *[f"987{sign}000"] * 2], 1.235: [f"1{sign}235", f"2{sign}5", "987"]}
    else:
        is_whole(read(votes, priced(f"1{sign}234", "987", "987"), columns=["size", "shape"]))
        right = {1.234: [f"1{decimal}234", "300", "300"], 0.234: [f"0{sign}234", "300", "300"]}
    for number, cells in {**right, 1234: ["1234", "1234", "1234"]}.items():
        assert float(read(votes, priced(*cells)).features["price"].iloc[0]) == number


@pytest.mark.parametrize("odd", ["0.5", "1.234", "1.234,5", "2,5 cm", "big"])
def test_a_cell_that_is_not_as_the_others_is_the_one_that_is_named(written, odd):
    """One comma among points as well, and in a file with commas, where "1,234" may be a thousand."""
    votes, features = in_words()

    def priced(decimal, cell, sep=";"):
        cells = [*(f"{k}{decimal}5" for k in range(7)), cell, *[f"0{decimal}5"] * (N - 8)]
        return written(features.assign(price=cells), "features", sep=sep, decimal=decimal)

    words = rf"features.csv line 9, column 'price' is '{re.escape(odd)}', where others .* such as '0,5' .such cells in all: 1"
    refused(words, votes, priced(",", odd))
    refused(r"features.csv line 9 .*column 'price' is '7,5'", votes, priced(".", "7,5"))
    refused(r"features.csv line 9 .*'price' is '1,234'", votes, priced(".", "1,234", ","))


def test_records_of_json(tmp_path):
    votes, features = in_words()
    (tmp_path / "votes.json").write_text(votes.assign(tags=[["x"]] * len(votes)).to_json(orient="records"))
    (tmp_path / "votes.jsonl").write_text(votes.to_json(orient="records", lines=True))
    for name in ("votes.json", "votes.jsonl"):
        is_whole(read(tmp_path / name, features))


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("a.json", '{"item": 1}', "list of records"),
        ("a.json", '[{"id": 1, "data": {}, "annotations": []}]', "export JSON-MIN or CSV"),
        ("a.json", '[{"item": 1, "label": "a"}, {"item": 1, "label": ["a", "b"]}]', r"record 2, column 'label' holds several"),
        ("a.json", "[", "cannot be read as JSON"),
        ("a.csv", "", "a.csv cannot be read as a table: its first line, with the names of columns, is empty"),
        ("a.csv", "i\0t\0e\0m\0,\0", "it is no text in UTF-8, nor in UTF-16 with its mark"),
        ("a.csv", "\nitem,label\n1,2\n", "its first line, with the names of columns, is empty"),
        ("a.csv", "item,label\n1,2\n1,2,3\n", "line 3 has 3 cells, where those above have 2"),
        ("a.csv", 'item,label\n1,2\n1,"2\n', "a quotation mark in line 3 is not closed"),
        ("a.csv", "item,label,label\n1,2,3\n", "more than one column named 'label'"),
        ("a.csv", "item,label\n1,2,\n4,5,\n", "a.csv, line 2 has more cells than there are names in line 1: .* ends of lines"),
        ("a.csv", "sep=;\nitem;label\n1;2;\n", "a.csv, line 3 has more cells than there are names in line 2"),
        ("a.csv", "sep=;\nitem;label\n1;2\n1;2;3\n", "line 4 has 3 cells, where those above have 2"),
        ("a.csv", "item,annotator,label\n", "votes: .*a.csv has a line with the names of columns, and no rows"),
        ("a.csv", "item,annotator,label\n,,\n\n", "and no rows"),
        ("a.xlsx", "PK", "workbook: save its sheet as CSV"),
        ("a.csv", "item,annotator,when\n1,2,3\n", r"no column for the label .*label= \(--label\).*'when'"),
        ("a.csv", "item,when,label\n1,2,3\n", r"no column for the annotator .*annotator= \(--annotator\)"),
        ("a.csv", "worker,label,when\n1,2,3\n", r"no column for the item .*item= \(--item\)"),
        ("a.csv", "task,worker,label,answer\n1,2,3,4\n", r"'label', 'answer'.*name it by label= \(--label\)"),
    ],
)
def test_what_cannot_be_read(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=words):
        read(tmp_path / name, X)


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    for table, name in zip(in_words(lambda k: k), ("votes", "features")):
        table.to_parquet(tmp_path / f"{name}.parquet")
    is_whole(read(tmp_path / "votes.parquet", tmp_path / "features.parquet"))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries(library):
    module = pytest.importorskip(library, reason=f"needs {library}")
    make = module.DataFrame if library == "polars" else module.Table.from_pydict
    votes, features = in_words()
    is_whole(read(*(make(frame.to_dict("list")) for frame in (votes, features.reset_index()))))


def test_what_is_no_table():
    for wrong in (5, [1, 2], {"item": [1]}, np.zeros((2, 3))):
        with pytest.raises(ValueError, match="votes must be a DataFrame or the path of a file, got"):
            read(wrong, X)


# ------------------------------------------------------------------ Columns


HEADS = {
    "crowd-kit": "task,worker,label",
    "crowd-kit, older": "task,performer,label",
    "database": "task_id,worker_id,answer",
    "Mechanical Turk": "HITId,WorkerId,Answer.category.label",
    "Toloka": "ASSIGNMENT:task_id,ASSIGNMENT:worker_id,OUTPUT:result",
    "Appen": "_unit_id,_worker_id,response",
    "camel": "itemId,AnnotatorID,Label",
    "raters": "example,rater,judgment",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=list(HEADS))
def test_columns_are_known_by_the_names_that_tools_give_them(written, head):
    votes, features = in_words()
    votes = votes.set_axis(head.split(","), axis=1).assign(Title="Is it?", Reward="$0.05", AssignmentStatus="Approved")
    for given in (written(votes.sample(frac=1, axis=1, random_state=1)), votes):
        tables = read(given, features)
        is_whole(tables)
        for name, role in zip(head.split(","), ROLES):
            usual = name in ("task", "worker", "label")
            assert (f"{name!r} is the {role}" in " ".join(tables.notes)) != usual


def test_columns_by_option():
    votes, features = in_words()
    roles = {"item": "picture", "annotator": "who", "label": "what"}
    tables = read(votes.rename(columns=roles), features.reset_index(names="picture"), **roles)
    is_whole(tables)
    assert not tables.notes


def test_items_may_have_different_columns_in_votes_and_features(written):
    """That of the votes is named, that of the features is known by its name."""
    votes, features = in_words()
    votes = votes.rename(columns={"item": "Fall"})
    for given in (written(features, "features"), features, features.reset_index(names="task_id")):
        is_whole(read(votes, given, item="Fall"))
    words = "item: features has no column 'Fall', as votes has, nor one known for the item: give both tables the same"
    words += "; its columns are 'Nummer', 'size', 'shape'"
    refused(words, votes, features.reset_index(names="Nummer"), item="Fall")
    refused("item: votes has no column 'Fal'", votes, features, item="Fal")


def test_votes_that_were_counted():
    votes, features = in_words()
    counts = pd.crosstab(votes["item"], votes["label"]).reset_index()
    is_whole(read(counts, features, counts=["yes", "no"]))
    report = analyse_votes(counts, features, positive="yes", count_columns=["yes", "no"])
    usual = analyse_votes(votes, features, positive="yes")
    np.testing.assert_allclose(report.fit.coef, usual.fit.coef)
    assert report.alpha0.value == usual.alpha0.value and report.counted["votes used"] == 3 * N
    assert "nothing can be said of annotators" in repr(report) and "annotator" not in report.sentences()[0]
    assert report.annotators.empty and not any("Further votes" in text for text in report.set_aside)
    assert set(read(counts.assign(maybe=1), features, counts=["yes", "no", "maybe"]).votes["label"]) == {"yes", "no", "maybe"}


COUNTED = pd.crosstab(LONG["item"], LONG["label"].map({True: "yes", False: "no"})).reset_index()


@pytest.mark.parametrize(
    "table, options, words",
    [
        *(
            (with_cell(COUNTED, 3, "no", bad), {}, f"votes, row 3, column 'no' is {bad}: numbers of votes must be whole")
            for bad in (-1, 1.5, None)
        ),
        (COUNTED, {"count_columns": ["yes", "nein"]}, "count_columns.*has no column 'nein'"),
        (COUNTED, {"count_columns": ["yes"]}, "count_columns.*for each of at least two labels"),
        (COUNTED, {"count_columns": "yes"}, "count_columns.*list"),
        (COUNTED, {"count_columns": ()}, r"'yes' is no label but a column of votes: .* by count_columns= \(--counts\)"),
        (COUNTED, {"missing": ["no"]}, r"missing is for votes with a label each: .* out of count_columns \(--counts\)"),
        (pd.concat([COUNTED, COUNTED[:1]]), {}, "more than one row of counts for item 0"),
    ],
)
def test_counts_that_cannot_be_read(table, options, words):
    refused(words, table, X, **{"count_columns": ["yes", "no"]} | options)


YES = np.arange(24) % 4  # of three votes, unless said otherwise


@pytest.mark.parametrize(
    "counts, total",
    [
        ({"yes": YES, "no": 3 - YES, "all of them": [3] * 24}, "all of them"),
        ({"yes": YES, "no": YES % 2, "seen": YES + YES % 2}, "seen"),
        ({"yes": YES, "m": [3] * 24}, "m"),
        ({"m": [3] * 24, "yes": YES, "no": YES % 2 * (YES < 3)}, "m"),
        ({"yes": YES[:8], "total": [*YES[:6], 5, 5]}, "total"),
        ({"yes": YES[:6], "n_votes": [3] * 6}, "n_votes"),
        ({"yes": YES, "no": 3 - YES}, None),
        ({"yes": YES // 3, "no": 2 - YES // 3}, None),  # never more yes than no
        ({"yes": YES // 3, "no": [4] * 23 + [5]}, None),
        ({"yes": YES[:4], "no": [3] * 4}, None),
        ({"yes": [1] * 24, "no": [3] * 24}, None),
        ({"n": 3 - YES, "y": YES}, None),
        ({"all": YES, "some": 3 - YES}, None),
        ({"yes": YES[:4], "no": [1] * 4, "maybe": YES[:4] + 1}, None),
    ],
)
def test_the_number_of_all_votes_is_no_label(counts, total):
    votes = pd.DataFrame(counts).rename_axis("item")
    if total is None:
        assert len(read(votes, None, next(iter(counts)), counts=list(counts)).votes) == votes.to_numpy().sum()
    else:
        with pytest.raises(ValueError, match=f"count_columns: column '{total}' is in no row below the sum of the others"):
            read(votes, None, "yes", counts=list(counts))
        rest = [name for name in counts if name != total]
        assert len(rest) < 2 or len(read(votes, None, "yes", counts=rest).votes) == votes[rest].to_numpy().sum()


def test_a_column_of_a_wide_table_that_is_no_annotator():
    votes, features = in_words()
    wide = widened(votes)
    email = wide.assign(email=[f"{k}@example.org" for k in range(N)])
    refused(r"column 'email' holds '0@example.org'.*exclude=\['email'\] \(--exclude email\)", email, features)
    is_whole(read(email, features, exclude=["email"]))
    refused(r"3 different labels .*'yse'", with_cell(wide, "a003", "w2", "yse"), features)  # that is no column of its own
    gold = wide.assign(Gold="yes")
    refused(r"column 'Gold', which looks like true labels .*exclude=\['Gold'\] \(--exclude Gold\)", gold, features)
    is_whole(read(gold, features, exclude=["Gold"]))
    is_whole(read(wide.set_axis(["X", "Y", "GT"], axis=1), features))  # initials


def test_a_column_of_votes_without_a_name(written):
    votes, features = in_words()
    wide = widened(votes)
    file = written(wide.rename(columns={"w2": ""}))
    words = r" has a column without a name .column 3, which holds '.*'yes'.*--exclude 'Unnamed: 2'"
    refused(f"votes, votes.csv{words}", file, features)
    refused(f"votes{words}", pd.read_csv(file), features)
    assert set(read(file, features, exclude=["Unnamed: 2"]).votes.columns) == {"item", "w1", "w3"}
    wide.rename_axis(None).to_csv(file)  # the first column names the items, as pandas and R write them
    is_whole(read(file, features))


@pytest.mark.parametrize("wide", [False, True], ids=["long", "wide"])
def test_commas_at_the_ends_of_all_lines_are_no_columns(written, wide):
    votes, features = in_words()
    files = [written(widened(votes) if wide else votes), written(features, "features")]
    for file in files:
        file.write_text(file.read_text().replace("\n", ",, \n"))
    report = analyse_votes(*files, positive="yes")
    assert report.counted["missing votes"] == report.counted["annotators without a vote"] == 0
    is_whole(read(*files))


def test_numbers_of_rows_and_truth_are_no_features_unless_one_says_so(tmp_path):
    votes, features = in_words()
    features.reset_index().to_csv(tmp_path / "features.csv")  # with a column of row numbers
    words = r"without a name, which begins with '0', '1', '2'.*--exclude 'Unnamed: 0'"
    refused(words, votes, tmp_path / "features.csv")
    for option in ({"exclude": ["Unnamed: 0"]}, {"columns": ["size", "shape"]}):
        is_whole(read(votes, tmp_path / "features.csv", **option))
    for name in ("gold", "truth", "y", "target", "Ground Truth", "true_label", "y_true", "is_gold", "gold_standard", "class"):
        words = rf"column '{name}', which looks like true labels: say truth='{name}'"
        refused(words, votes, features.assign(**{name: 1}))
    assert list(read(votes, features.assign(gold=1), columns=["gold"]).features.columns) == ["gold"]  # said so
    assert read(votes, features.assign(gold=1), truth="gold").truth == "gold"
    for name in ("height", "yards", "goldfish", "classes", "truthiness"):
        assert name in read(votes, features.assign(**{name: 1})).features


def test_what_is_no_feature_and_what_is_no_column_is_named():
    votes, features = in_words()
    words = r"text, not numbers, in 'name', 'city': leave it out by exclude= \(--exclude\)"
    refused(words, votes, features.assign(name="Ann", city="Bonn"))
    words = "there is no column 'Leak'; columns are 'item', 'annotator', 'label', 'size'"
    refused(words, votes, features.assign(leak=1), exclude=["Leak"])
    features["Histologie"] = "yes"  # a truth that is not there is said before its column is text
    words = "truth: features has no column 'Histology'; its columns are 'size', 'shape', 'Histologie'"
    refused(words, votes, features, truth="Histology")
    is_whole(read(votes, features, truth="Histologie"))


def test_features_that_are_true_or_false(written):
    """As pandas, R or JSON write them, and as a frame has them."""
    votes, features = in_words()
    flags = pd.Series(np.arange(N) % 3 == 0, features.index)
    gap = flags.astype(object).where(np.arange(N) != 4)
    file = written(features.assign(r=flags.map({True: "TRUE", False: "FALSE "}), pandas=flags, gap=gap), "features", sep=";")
    for columns in (None, ["size", "shape", "r", "pandas", "gap"]):
        tables = read(votes, file, columns=columns)
        is_whole(tables)
        assert tables.notes == ("TRUE and FALSE were read as 1 and 0 in features 'r', 'pandas', 'gap'.",)
        right = np.column_stack([flags, flags, gap]).astype(float)
        np.testing.assert_array_equal(tables.features[["r", "pandas", "gap"]], right)
    assert read(votes, features.assign(flag=flags)).notes == ()
    both = votes.merge(features.assign(flag=gap).reset_index()).set_index("item")
    assert list(read(both, both).features.columns) == ["size", "shape", "flag"]
    assert list(read(votes, features.set_axis([0, 1], axis=1).assign(flag=gap)).features.columns) == [0, 1, "flag"]
    refused("text, not numbers, in 'flag'", votes, features.assign(flag=["maybe", *flags[1:].map(str)]))


def test_one_file_may_hold_votes_and_features():
    votes, features = in_words()
    both = votes.merge(features.reset_index())
    once = f"Rows of features that repeat one above, counted once: {2 * N}."
    tables = read(both, both.copy(), columns=["size", "shape"])
    is_whole(tables)
    assert tables.notes == (once,)
    tables, parted = read(both, both), "Votes and features are one table; of the votes, and no features, are"
    assert list(tables.features.columns) == ["item", "size", "shape"]
    assert tables.notes == (f"{parted} 'annotator', 'label'.", once)
    counts = pd.crosstab(votes["item"], votes["label"]).join(features).reset_index()
    assert list(read(counts, counts, counts=["no", "yes"]).features.columns) == ["item", "size", "shape"]
    for name, columns in {"truth": "label", "columns": ["size", "label"]}.items():
        refused(f"{name}: column 'label' holds the votes themselves", both, both, **{name: columns})
    refused(r"say truth='label' \(--truth label\), or list", votes, features.assign(label=1))  # to exclude it takes the votes
    other, columns = both.assign(size=np.arange(len(both))), ["size", "shape"]
    words = "item 'a000' has two rows.*differ in 'size': leave out what is not of the item$"
    refused(words, both, other, columns=columns)
    timed = both.assign(duration=np.arange(len(both)))  # a column of the votes
    for given in (timed, timed.set_index("item")):
        words = "item 'a000' has two rows: features, .*, which differ in 'duration': leave out"
        refused(words, given, given.copy())
    assert analyse_votes(timed, timed, positive="yes", exclude=["duration"]).counted["items used"] == N


def test_a_feature_named_like_an_item_in_a_frame_with_items_in_its_index():
    """The index has a name that says so, and a column called task is a feature like any other."""
    votes, features = in_words()
    tables = read(votes, features.assign(task=1))
    is_whole(tables)
    assert "task" in tables.features
    refused("item '1' has two rows", votes, features.reset_index(drop=True).assign(task=1))


def test_votes_with_items_in_the_index_and_an_index_of_several_levels():
    votes, features = in_words()
    is_whole(read(votes.set_index("item"), features))
    refused("votes has an index of several levels", votes.set_index(["item", "annotator"]), features)
    refused("features has an index of several levels", votes, pd.concat({"batch": features}))


# ------------------------------------------------------------------ What a labelling tool writes


def run(folder, *arguments):
    with contextlib.chdir(folder):
        return main(["report", "--positive", "spam", "-q", *arguments])


def test_exports_of_label_studio(tmp_path, capsys):
    """The features are in each row of the votes; both exports are of the same votes."""
    columns = ("--columns", "links", "capitals", "--items", "items.csv")
    for kind in ("csv", "json"):
        file = str(TABLES / f"label_studio.{kind}")
        assert run(tmp_path, "--votes", file, "--features", file, *columns) == 0
        said = capsys.readouterr().out
        assert "100 items with 300 votes, 3 an item, of 3 annotators" in said
        assert "'id' is the item, 'choice' is the label" in said
        items = pd.read_csv(tmp_path / "items.csv")
        records = json.loads((TABLES / "label_studio.json").read_text())
        spam = pd.Series([r["choice"] == "spam" for r in records]).groupby([r["id"] for r in records]).sum()
        np.testing.assert_array_equal(items["positive"], spam)
    assert run(tmp_path, "--votes", file, "--features", file) == 2
    assert "text, not numbers, in 'text', 'created_at', 'updated_at': leave" in capsys.readouterr().err


def test_the_readmes_command_runs(tmp_path):
    readme = (ROOT / "README.md").read_text("utf8")
    command = re.search(r"^softlabel (report (?:.*\\\n)*.*)", readme, re.MULTILINE)[1].replace("\\\n", " ")
    arguments = [str(ROOT / a) if a.startswith("tests/") else a for a in shlex.split(command)]
    with contextlib.chdir(tmp_path):
        assert main(arguments) == 0
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_label_studio_itself_writes_the_same(tmp_path):
    """By its own converter, in an environment of its own."""
    python = tmp_path / "env" / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", tmp_path / "env"],
        [python, "-m", "pip", "install", "--quiet", "label-studio-sdk==2.1.2"],
        [python, TABLES / "label_studio.py", tmp_path],
    ):
        subprocess.run(command, check=True)
    for name in ("label_studio.csv", "label_studio.json"):
        assert Path(tmp_path, name).read_bytes() == (TABLES / name).read_bytes()
