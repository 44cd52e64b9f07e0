"""Tables of votes: every vote is used, or counted among those that are not."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from strategies import SEED, answered, attempt, examples

from softlabel import analyse_votes


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
    assert len(attempt(report.table)) and attempt(report.sentences) and "<html" in attempt(report.to_html)
