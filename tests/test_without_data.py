"""The chapters on real data run where no file can be had, and then check nothing."""

import pytest
from conftest import ROOT

import chapters


@pytest.mark.parametrize(
    ("chapter", "notice"), [("book/paper/01_votes.md", "histogram"), ("book/paper/07_gastroenterology.md", "stand-in")]
)
def test_chapter_without_its_data(chapter, notice, tmp_path, monkeypatch):
    # A proxy where nothing listens: no network, on any machine. The chapter's own process inherits all of it.
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("SOFTLABEL_DATA", str(tmp_path))
    _, notebook, _, message = chapters._run(ROOT / chapter, timeout=300)
    assert not message, message
    verdicts = chapters.verdicts_of(notebook)
    assert verdicts, "no claim was recorded"
    assert {v["verdict"] for v in verdicts} == {"not checked"}, verdicts
    assert all(v["reason"] for v in verdicts)
    text = "".join(str(o.get("data", "")) for c in notebook.cells for o in c.get("outputs", []))
    assert notice in text, "the page does not say what it was computed from"
