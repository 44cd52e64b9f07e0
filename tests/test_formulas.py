"""How formulas, heads of tables and style sheets come to the pages, on a small book of their own."""

import hashlib
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, soup_of

EXT = ROOT / "book" / "_ext"
CONF = """
extensions = ["myst_parser", "formulas", "captions"]
myst_enable_extensions = ["dollarmath"]
mathjax3_config = {"tex": {"macros": {"vect": [r"\\boldsymbol{#1}", 1], "T": r"^{\\mathsf{T}}"}}}
"""
PAGE = r"""# Formulas

```yaml
math:
  '\own': '\operatorname{own}'
```

A vector ($\vect{x}\T$), the $m$-th, $a$–$b$, **$y$**: and $z$ alone.

$$
\own(x) = 1
$$ (there)

$$
a &= b \\
c &= d
$$

By {eq}`there`.
"""


def build(folder, text, *options, **environment):
    (folder / "conf.py").write_text(CONF)
    (folder / "index.md").write_text(text, "utf8")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-E", *options, str(folder), str(folder / "out")]
    paths = os.pathsep.join([*environment.get("first", []), str(EXT)])
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths})
    return done, (folder / "out" / "index.html").read_text("utf8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    done, html = build(tmp_path_factory.mktemp("book"), PAGE)
    assert done.returncode == 0, done.stderr
    return soup_of(html)


def read(formula):
    """A formula as it is read aloud, without its source."""
    return "".join(t for t in formula.find("math").strings if not t.find_parent("annotation")).replace("\u2061", "").strip()


def test_formulas_by_the_macros_of_book_and_page(page):
    assert [read(e) for e in page.select("p .katex")] == ["xT", "m", "a", "b", "y", "z"]
    first = page.select_one(".katex")
    assert first.find("mi", mathvariant="bold-italic") and first.find("mi", mathvariant="sans-serif")
    assert [read(e) for e in page.select(".katex-display")] == ["own(x)=1", "a=bc=d"]
    assert page.select_one("annotation").get_text() == r"\vect{x}\T"  # as the notebooks take it
    assert "math:" not in page.get_text()
    assert page.find("link", href=re.compile("katex.min.css")) and not page.find("script", src=re.compile("mathjax"))


def test_equations_have_numbers_and_are_referred_to(page):
    number = page.select_one(".math .eqno")
    assert number.get_text().startswith("(1)") and number.parent["id"] == "equation-there"
    assert page.find("a", href="#equation-there", string="(1)")


def test_what_touches_a_formula_stays_with_it(page):
    for formula in page.select("annotation"):
        formula.parent.find_parent(class_="katex").find(class_="katex-html").string = ""
    shown = [
        "".join(t for t in e.strings if not t.find_parent(["semantics"]) or t.find_parent("annotation"))
        for e in page.select(".together")
    ]
    assert shown == [r"(\vect{x}\T),", "m-th,", "a–b,", "y:"]


def test_a_formula_that_cannot_be_set_fails_the_build_and_says_where(tmp_path):
    bad = {r"\foo": "Undefined control sequence", r"\frac{1": "end of input", "ü": "Unicode"}
    done, html = build(tmp_path, "# Title\n\nText.\n\n" + "".join(f"A ${tex}$.\n\n" for tex in bad), "-q")
    assert done.returncode == 1
    for line, (tex, reason) in zip((5, 7, 9), bad.items()):
        assert re.search(rf"index\.md:{line}: WARNING: .*{reason}", done.stderr), done.stderr
        assert f"<code>{tex}</code>" in html


def test_without_the_engine_mathjax_sets_them_and_the_build_says_so(tmp_path):
    (tmp_path / "py_mini_racer.py").write_text("raise ModuleNotFoundError")
    done, html = build(tmp_path, PAGE.replace(r"\own", r"\T"), first=[str(tmp_path)])
    assert done.returncode == 0, done.stderr
    assert "formulas are left to MathJax" in done.stdout
    soup = soup_of(html)
    assert soup.find("script", src=re.compile("mathjax/tex-chtml.js")) and not soup.select(".katex")
    assert soup.select_one("span.math").get_text() == r"\(\vect{x}\T\)"
    assert (tmp_path / "out" / "_static" / "mathjax" / "tex-chtml.js").exists()


def heads(*columns):
    line = " | ".join
    return f"| {line(columns)} |\n|{'--|' * len(columns)}\n| {line('x' * len(columns))} |\n\n"


CROSSED = [
    ["$m$", "few, paper", "few, book", "many, paper", "many, book"],
    ["$m$", "few: paper", "few: book", "many: paper", "many: book"],
    ["$m$", "paper, few", "book, few", "paper, many", "book, many"],
    ["$m$", "se, sandwich, few", "se, few", "se, sandwich, many", "se, many"],
    ["$m$, known", "few: paper", "few: book", "many: theory", "many: book, known", "many: guess"],
]
PLAIN = [
    ["$m$", "Floor, points", "Rate, points"],
    ["$m$", "few, paper", "few, book"],
    ["few, paper", "few, book", "many, paper", "many, book", "$m$"],
    ["few, paper", "few, book", "many, paper", "many, se"],
    ["few, paper", "few, book", "many, paper"],
    ["few: paper", "few: book", "many: paper"],
    ["few: paper", "few: book"],
]


def test_groups_of_columns_have_a_head_above(tmp_path):
    done, html = build(tmp_path, "# Tables\n\n" + "".join(heads(*columns) for columns in CROSSED + PLAIN))
    assert done.returncode == 0, done.stderr

    def cells(row):
        return [(th.get_text().strip(), th.get("colspan"), th.get("rowspan")) for th in row.select("th")]

    tables = [[cells(row) for row in head.select("tr")] for head in soup_of(html).select("thead")]
    inner = [2 * ["paper", "book"]] * 3 + [2 * ["se, sandwich", "se"], ["paper", "book", "theory", "book, known", "guess"]]
    for table, names in zip(tables, inner, strict=False):
        assert table[0][0][1:] == (None, "2") and table[0][1:] == [("few", "2", None), ("many", str(len(names) - 2), None)]
        assert [name for name, *_ in table[1]] == names
    assert [len(table) for table in tables[len(CROSSED) :]] == [1] * len(PLAIN)


def test_style_sheets_keep_what_can_be_met(monkeypatch):
    monkeypatch.syspath_prepend(str(EXT))
    import slim

    page = "<b class='n'><p class=\"a b-1\">x</p><script>e.classList.add('shown')</script>"
    used = slim.used_classes([page], ["go('open')"])
    assert {"a", "b-1", "shown", "open"} <= used
    kept = [
        ".a{top:0}", "p.b-1>.a:hover{top:0}", "p:not(.never){top:0}", ":is(.a,.never) p{top:0}", "#never{top:0}",
        '[class="never"]{top:0}', ".bs-tooltip-top{top:0}", "@media print{.open{top:0}}", "@font-face{src:url(a.woff)}",
        "@keyframes never{to{top:0}}", "/*! MIT */", '.a:before{content:"\uf002"}',
    ]  # fmt: skip
    gone = [
        "/* MIT */", ".never{top:0}", ".a.never{top:0}", ".never .a{top:0}", "@media print{.never{top:0}}",
        '.never:before{content:"\\f003"}',
    ]  # fmt: skip
    assert slim.cut_sheet("".join(kept) + "".join(gone), used) == "".join(kept)
    assert slim.cut_sheet(".a,.never{top:0}", used) == ".a{top:0}"


def test_vendored_files_are_as_their_table_says():
    table = (ROOT / "book" / "_static" / "katex" / "README.md").read_text("utf8")
    rows = re.findall(r"^\| `(\S+)` \| `([0-9a-f]{64})` \|$", table, re.M)
    assert len(rows) == 3
    for name, digest in rows:
        content = b"".join(path.read_bytes() for path in sorted(ROOT.glob(name)))
        assert hashlib.sha256(content).hexdigest() == digest
