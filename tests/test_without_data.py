"""The chapters on real data run where no file can be had, and then check nothing."""

import os
import subprocess
import sys

import pytest

RUN = """
import sys
from pathlib import Path
sys.path.insert(0, "book/_ext")
import chapters
_, notebook, _, message = chapters._run(Path(sys.argv[1]).resolve(), timeout=300)
assert not message, message
verdicts = chapters.verdicts_of(notebook)
assert verdicts, "no claim was recorded"
assert {v["verdict"] for v in verdicts} == {"not checked"}, verdicts
assert all(v["reason"] for v in verdicts)
text = "".join(str(o.get("data", "")) for c in notebook.cells for o in c.get("outputs", []))
assert sys.argv[2] in text, "the page does not say what it was computed from"
"""


@pytest.mark.parametrize(
    ("chapter", "notice"),
    [("book/paper/01_votes.md", "histogram"), ("book/paper/07_gastroenterology.md", "stand-in")],
)
def test_chapter_without_its_data(chapter, notice, tmp_path):
    # A proxy where nothing listens: no network, on any machine.
    nowhere = dict.fromkeys(["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"], "http://127.0.0.1:9")
    environment = {**os.environ, **nowhere, "SOFTLABEL_DATA": str(tmp_path), "NO_PROXY": ""}
    done = subprocess.run([sys.executable, "-c", RUN, chapter, notice], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
