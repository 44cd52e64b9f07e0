"""Behind each mark of a theorem box, and behind each function that states a formula, stand tests that see an altered formula.

The table of altered formulas is a study, `book/studies/mutants.csv`; what is altered says `tests/mutants.yml`.
"""

import importlib
import inspect

import pandas as pd
import pytest
import yaml
from conftest import ROOT

from softlabel.book.studies import mutants

TABLE = pd.read_csv(ROOT / "book" / "studies" / "mutants.csv", comment="#", keep_default_na=False)
TABLE["change"] = pd.to_numeric(TABLE["change"])
BOXES = yaml.safe_load((ROOT / "book" / "_ext" / "box_tests.yml").read_text("utf8"))
FORMULAS = "efficiency budget vote_models normal overdispersion joint separation logistic profiles fits two_way".split()
FORMULAS += ["experiments", "labellers.comparison", "labellers.exchangeable"]

# Functions of these modules that state no formula of their own, and what they do instead.
WITHOUT = {
    "call another": "LogisticFit.cov alpha0_interval coefficients dm_logpmf estimate_alpha0"
    " find_separation overdispersion prediction_band sample_probabilities sample_votes score_and_information two_way_cov",
    "search for the root or the maximum of another": "best_omega newton unexplained",
    "arrange numbers": "describe spending without_features"
    " Panel.cast Panel.m Panel.matrix Panel.n_items Panel.only Panel.s Panel.share Panel.total Panel.turned"
    " Panel.without Panel.without_feature Profile.of VoteTerms.parts centre_and_scale column_sums design later_classes"
    " nested_votes parts_of_votes product split_errors tumours votes_in_order who_voted",
    "check, decide, show": "LogisticRule.describe Profile.by_default advice as_memory explain_rank"
    " explain_separation items_worth need_repeated_votes p_value rarer_items run separated_by separation_of shown",
    "are abstract": "VoteModel.correlation VoteModel.draw_probabilities VoteModel.log_probability",
}


def functions():
    """Public functions and methods of the modules that state formulas."""
    for name in (*FORMULAS, "report.parts", "report.buying", "report.items", "report.agreement"):
        module = importlib.import_module(f"softlabel.{name}")
        for thing in list(vars(module).values()):
            if getattr(thing, "__module__", "") != module.__name__ or getattr(thing, "__name__", "_").startswith("_"):
                continue
            if inspect.isfunction(thing):
                yield thing.__name__
            elif inspect.isclass(thing):
                fields = getattr(thing, "__annotations__", {})
                members = [key for key, value in vars(thing).items() if hasattr(value, "__get__") and key not in fields]
                yield from (f"{thing.__name__}.{key}" for key in members if not key.startswith("_"))


def test_every_function_that_states_a_formula_is_altered():
    altered, without = set(TABLE.loc[TABLE["by"] == "tests", "of"]), " ".join(WITHOUT.values()).split()
    assert sorted([*altered, *without]) == sorted(set(functions()))


def test_nothing_survives():
    assert TABLE.loc[TABLE["killed"] == 0, ["of", "by", "new"]].to_dict("records") == []


def test_three_of_each_and_one_that_is_small():
    """At least three altered formulas of a function and of a box's formula by each mark; one changes it by 10% at most."""
    of_formulas = TABLE[TABLE["by"] != "negative"].groupby(["of", "by"])
    for key, rows in of_formulas:
        assert len(rows) >= 3 and 0 < rows["change"].min() <= 0.1, key
    wanted = {(box, mark) for box, marks in BOXES.items() for mark in marks if mark != "negative"}
    assert wanted == {key for key in of_formulas.groups if key[1] != "tests"}


@pytest.mark.parametrize("box", BOXES)
def test_each_test_behind_a_mark_sees_an_altered_formula_itself(box):
    """Or, if it is a negative one, sees that what it breaks is mended."""
    for mark, tests in BOXES[box].items():
        rows = TABLE[(TABLE["of"] == box) & (TABLE["by"] == mark)]
        seen = {name for names in rows["killers"] for name in names.split()}
        assert {test.partition("::")[2] for test in tests} == seen, mark


ROW = dict(of="variance_inflation", by="tests", place="softlabel/vote_models.py::variance_inflation", kind="", code="")


@pytest.mark.parametrize("new, killed", [("1 * ", 0), ("1.001 * ", 1)])
def test_what_changes_nothing_survives(new, killed):
    assert mutants.cell(**ROW, old="(m - 1) / (1 + alpha0)", new=f"{new}(m - 1) / (1 + alpha0)")["killed"] == killed


def test_a_text_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="0 times"):
        mutants.altered(ROW["place"], "no such text", "")
