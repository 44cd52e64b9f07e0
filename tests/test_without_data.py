"""The chapters on real data run where no file can be had, and then check nothing."""

import json

import nbclient
import nbformat
import pytest
from conftest import ROOT
from myst_nb.core.read import myst_nb_reader_plugin

ASK = "import json; from softlabel.book import claims; print(json.dumps(claims.recorded))"


@pytest.mark.parametrize(
    "chapter", ["book/paper/01_votes.md", "book/paper/07_gastroenterology.md", "book/beyond/10_real_votes.md"]
)
def test_chapter_without_its_data(chapter, tmp_path, monkeypatch):
    # A proxy where nothing listens: no network, on any machine. The chapter's own process inherits all of it.
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("SOFTLABEL_DATA", str(tmp_path))
    monkeypatch.setenv("TQDM_DISABLE", "1")
    notebook = myst_nb_reader_plugin(str(ROOT / chapter))
    notebook.cells.append(nbformat.v4.new_code_cell(ASK))
    nbclient.execute(notebook, cwd=str((ROOT / chapter).parent), timeout=300)
    recorded = json.loads(notebook.cells[-1].outputs[0].text)
    assert bool(recorded) == ("/paper/" in chapter), "claims are recorded by the chapters of the paper"
    assert all(set(record) == {"reason"} and record["reason"] for record in recorded.values()), recorded
    text = "".join(str(o.get("data", o.get("text", ""))) for c in notebook.cells for o in c.get("outputs", []))
    assert "could not be had" in text, "the page does not say what it was computed from"
    assert "Warning" not in text, "a warning stands on the page"
