"""Two simulated classes of thirty students, and the marks that each sheet should get.

The marks were written down from the texts of the sheets, before any of these sheets was graded. An answer is a pair, what is
replaced in the solution and by what, or a text in place of the solution. COURSE stands for the folder of the course.
"""

from dataclasses import dataclass, field

GIVEN = "a cell that was given failed: look at the sheet"
PERSON = "3 points to be given by a person"
TWICE = f"handed in 2 times; this is the latest, {{name}} (1).ipynb; {PERSON}"
RENAMED = f"handed in as mueller_12_345_{{name}}-1.ipynb; {PERSON}"
LOOP = """
    import time
    while True:
        try:
            time.sleep(0.1)
            return undefined_name
        except:
            pass
"""


@dataclass(frozen=True)
class Sheet:
    """What a student hands in, and the mark and the note that should stand in the table."""

    score: str
    note: str = PERSON
    answers: dict = field(default_factory=dict)
    only: tuple = ()  # these answers are given, the others not
    lose: str = ""  # what is removed or changed in the notebook
    first: str = ""  # a cell of the student's own at the top
    file: str = "{name}.ipynb"
    text: str = ""  # in place of a notebook
    twice: bool = False  # an empty sheet was handed in before
    late: float = 0  # hours
    copied: bool = False  # from the solutions with the numbers for all


SYNTAX = "def answer(:\n    return 0"
READS = """
import glob, json
places = "COURSE/source/*/*.ipynb", "COURSE/solutions/*/*.ipynb", "../../../source/*/*.ipynb"
for path in (path for place in places for path in glob.glob(place)):
    for cell in json.load(open(path))["cells"]:
        if "SOLUTION" in "".join(cell["source"]):
            exec("".join(cell["source"]))
"""
PATCHES = """
import builtins
np.isclose = np.allclose = np.array_equal = lambda *a, **k: True
np.testing.assert_allclose = lambda *a, **k: None
builtins.all = builtins.any = lambda *a: True
get_ipython().ast_transformers.clear()
"""
WRITES = """
import subprocess, sys
code = '''
import sqlite3, time
for _ in range(200):
    for path in ("COURSE/gradebook.db", "../../../gradebook.db"):
        try:
            with sqlite3.connect(path, timeout=1) as db:
                db.execute("update grade set manual_score = 100")
        except sqlite3.Error:
            pass
    time.sleep(0.2)
'''
subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
"""
SHOWS = """
class Points:
    def __repr__(self):
        return "160"
print(160)
Points()
"""
SCRIPT = (
    "\n\n[link](javascript:alert('HOSTILE')) [link](java&#115;cript:alert('HOSTILE')) [see][ref] <javascript:alert('HOSTILE')>"
    "\n\n<script>alert('HOSTILE')</script><img src=x onerror=\"alert('HOSTILE')\">\n\n[ref]: javascript:alert('HOSTILE')\n"
)
SHOWS_SCRIPT = "from IPython.display import HTML\nHTML(\"<script>alert('HOSTILE')</script>\")"

# draw_labels 2, share_wrong 2, two_fits 3, vote_probs 2, inflation 3, standard_errors 2, worth 3; essays company-a, -b, -c.
NOISE = {
    # honest
    "anna": Sheet("17"),
    "ben": Sheet("17", answers={
        "share_wrong": ("np.mean(2 * tau1 * (1 - tau1))", "float(f'{np.mean(2 * tau1 * (1 - tau1)):.3g}')"),
        "vote_probs": ("    return ", "    p = np.array([float(f'{q:.3g}') for q in p])\n    return ")}),
    "carla": Sheet("17", answers={"two_fits": ("def two_fits", "model = data = X = tau = p = k = n = 0\ndef two_fits")}),
    "david": Sheet("17", first="from numpy import sqrt\ndef helper(x): return sqrt(x)\nprint('hello ' * 50_000)"),
    "emma": Sheet("0", only=("company-a", "company-b", "company-c")),
    "fritz": Sheet("7", note="", only=("draw_labels", "share_wrong", "two_fits")),
    "grace": Sheet("16", answers={"inflation": ("mean = p @ k", "mean = p @ k\n    assert np.isclose(mean, k[-1] * tau1)")}),
    # wrong: the best guess, which costs nothing in question 3; the public solution; upside down; no Python
    "hanna": Sheet("15", answers={"draw_labels": ("rng.random(tau1.shape) < tau1", "0.5 <= tau1")}),
    "igor": Sheet("0", copied=True),
    "julia": Sheet("14", answers={"worth": ("truth / noisy", "noisy / truth")}),
    "karl": Sheet("15", answers={"share_wrong": SYNTAX}),
    # hostile
    "lena": Sheet("14", answers={"inflation": f"def inflation(p, tau1):{LOOP}"}),
    "max": Sheet("15", answers={"vote_probs": "import os\ndef vote_probs(*a):\n    os._exit(1)"}),
    "nora": Sheet("15", answers={"standard_errors": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"}),
    "otto": Sheet("0", note=GIVEN, only=("none",), answers={
        "share_wrong": "def share_wrong(tau1): return 0", "inflation": "def inflation(p, tau1): return 0",
        "vote_probs": "def vote_probs(m, alpha0, tau1): return [0] * (m + 1)"}, first="import numpy as np" + PATCHES),
    "paula": Sheet("0", note="", only=("none",), first=READS),
    "quinn": Sheet("17", first=WRITES),
    "rosa": Sheet("14", answers={"worth": "def worth(draw, n_sets, rng):\n    return sl.relative_efficiency(7, 2.0)"}),
    "sven": Sheet("0", note="", only=("none",), answers={
        key: f"def {key}(*a):\n    print(100)\n    return None\n{SHOWS}" for key in ("inflation", "share_wrong", "worth")}),
    "tina": Sheet("2", note="", only=("draw_labels",), lose="without_tests"),
    "udo": Sheet("17", answers={"company-b": f"*Your answer to (b):*{SCRIPT}"}, first=SHOWS_SCRIPT),
    # broken
    "vera": Sheet("", note="not a notebook of this sheet: 1_noise.ipynb", text="It did not work."),
    "willi": Sheet("", note="not a notebook of this sheet: 1_noise.ipynb", text='{"cells": [{"cell_type": "code", "sou'),
    "xenia": Sheet("17", lose="without_metadata"),
    "yuri": Sheet("17", lose="without_metadata_and_numbers"),
    "zoe": Sheet("2", note="", only=("draw_labels",), lose="with_points_of_their_own"),
    # renamed
    "adam": Sheet("17", note=TWICE, file="{name} (1).ipynb", twice=True),
    "mueller": Sheet("17", note=RENAMED, file="../mueller_12_345_{name}-1.ipynb"),
    # late
    "late one": Sheet("17", note=f"late by 30.0 hours; {PERSON}", late=30),
    "später": Sheet("14", note=f"handed in as sheet.ipynb; late by 0.5 hours; {PERSON}", late=0.5, file="deep/sheet.ipynb",
                    answers={"worth": ("np.var", "np.std")}),
}  # fmt: skip

# counts_of 2, pairs 2, two_fits 2, loglik 4, maximise 2, bootstrap 3, labellers_for 2; essays advice-a, -b, -c.
CLINICIANS = {
    # honest
    "anna": Sheet("17"),
    "ben": Sheet("17", answers={"maximise": (
        "found =", "exact = maximise\n\n\ndef maximise(f):\n    return float(f'{exact(f):.3g}')\n\n\nfound =")}),
    "carla": Sheet("17", answers={"labellers_for": ("def labellers_for", "data = X = counts = 0\ndef labellers_for")}),
    "david": Sheet("17", first="def helper(x): return x\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);"),
    "emma": Sheet("0", only=("advice-a", "advice-b", "advice-c")),
    "fritz": Sheet("6", note="", only=("counts_of", "pairs", "two_fits")),
    "grace": Sheet("16", answers={"loglik": ("total = counts.sum(axis=1)", "total = np.full(len(counts), counts[0].sum())")}),
    # wrong: the majority's votes for all; shares of votes; the public solution; no Python
    "hanna": Sheet("15", answers={"counts_of": ("counts.sum(axis=1)", "counts.max(axis=1)")}),
    "ivan": Sheet("15", answers={"pairs": ("counts * (counts - 1) / (m * (m - 1))[:, None]", "counts / m[:, None]")}),
    "igor": Sheet("0", copied=True),
    "karl": Sheet("14", answers={"bootstrap": SYNTAX}),
    # hostile; without votes_fit there is no alpha0_hat either, which costs one point
    "lena": Sheet("15", answers={"pairs": f"def pairs(counts):{LOOP}"}),
    "max": Sheet("15", answers={"labellers_for": "import os\ndef labellers_for(*a):\n    os._exit(1)"}),
    "nora": Sheet("14", answers={"two_fits": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"}),
    "otto": Sheet("0", note=GIVEN, only=("none",), answers={
        "pairs": "def pairs(counts): return 0", "labellers_for": "def labellers_for(share, alpha0): return 0",
        "maximise": "def maximise(function): return 0\nalpha0_hat = 1"}, first="import numpy as np" + PATCHES),
    "paula": Sheet("0", note="", only=("none",), first=READS),
    "quinn": Sheet("17", first=WRITES),
    "rosa": Sheet("10", answers={
        "bootstrap": "def bootstrap(counts, tau, n_resamples, rng, estimate):\n"
        "    return sl.bootstrap_alpha0(counts, tau, n_resamples, rng=rng)",
        "loglik": "def loglik(omega, counts, tau):\n"
        "    given = lambda w: sl.dm_logpmf(counts, tau, 1 / w if w else np.inf).sum()\n"
        "    return given(omega) - given(0) + (counts * np.log(tau)).sum()"}),
    "sven": Sheet("0", note="", only=("none",), answers={
        key: f"def {key}(*a):\n    print(100)\n    return None\n{SHOWS}" for key in ("pairs", "labellers_for", "loglik")}),
    "tina": Sheet("2", note="", only=("counts_of",), lose="without_tests"),
    "udo": Sheet("17", answers={"advice-b": f"*Your answer to (b):*{SCRIPT}"}, first=SHOWS_SCRIPT),
    # broken
    "vera": Sheet("", note="not a notebook of this sheet: 2_clinicians.ipynb", text="It did not work."),
    "willi": Sheet("", note="not a notebook of this sheet: 2_clinicians.ipynb", text='{"cells": [], "metadata": {}}'),
    "xenia": Sheet("17", lose="without_metadata"),
    "yuri": Sheet("17", lose="without_metadata_and_numbers"),
    "zoe": Sheet("2", note="", only=("counts_of",), lose="with_changed_tests"),
    # renamed
    "adam": Sheet("17", note=TWICE, file="{name} (1).ipynb", twice=True),
    "mueller": Sheet("17", note=RENAMED, file="../mueller_12_345_{name}-1.ipynb"),
    # late
    "late one": Sheet("17", note=f"late by 30.0 hours; {PERSON}", late=30),
    "später": Sheet("14", note=f"handed in as sheet.ipynb; late by 0.5 hours; {PERSON}", late=0.5, file="deep/sheet.ipynb",
                    answers={"bootstrap": ("tau[j]", "tau")}),
}  # fmt: skip
