"""The chapters on real data run where no file can be had, and then check nothing: make test-without-data."""

import json
import re

import pytest
from conftest import ROOT
from reference import load_once

from softlabel.datasets import DataFileError

read = pytest.importorskip("myst_nb.core.read")
nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")

CHAPTERS = ["book/paper/01_votes.md", "book/paper/07_gastroenterology.md", "book/beyond/10_real_votes.md"]
ASK = "import json; from softlabel.book import claims; print(json.dumps(claims.recorded)); claims.recorded.clear()"


def test_chapters_without_their_data(tmp_path, monkeypatch):
    """One after the other in one process, with a tenth of the draws: what is said, and not how precisely, is looked at."""
    if not isinstance(load_once(), DataFileError):
        pytest.skip("the data are there: make test-without-data")
    # A proxy where nothing listens: no network, on any machine. The chapters' process inherits all of it.
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("SOFTLABEL_DATA", str(tmp_path))
    monkeypatch.setenv("TQDM_DISABLE", "1")
    notebooks = {chapter: read.myst_nb_reader_plugin(str(ROOT / chapter)) for chapter in CHAPTERS}
    for notebook in notebooks.values():
        notebook.cells.append(nbformat.v4.new_code_cell(ASK))
    cells = [cell for notebook in notebooks.values() for cell in notebook.cells]
    for cell in cells:
        cell.source = re.sub(r"\b(\d+)_000\b", r"\g<1>00", cell.source).replace("B, rng = 1000", "B, rng = 100")
    nbclient.execute(nbformat.v4.new_notebook(cells=cells), cwd=str(ROOT / "book" / "paper"), timeout=300)
    for chapter, notebook in notebooks.items():
        recorded = json.loads(notebook.cells[-1].outputs[0].text)
        assert bool(recorded) == ("/paper/" in chapter), "claims are recorded by the chapters of the paper"
        assert all(set(record) == {"reason"} and record["reason"] for record in recorded.values()), recorded
        text = "".join(str(o.get("data", o.get("text", ""))) for c in notebook.cells for o in c.get("outputs", []))
        assert "could not be had" in text, "the page does not say what it was computed from"
        assert "Warning" not in text, "a warning stands on the page"
