"""The reference of the package in the book, and the general index."""

import re
from collections import Counter

import pytest
from conftest import ROOT, soup_of

import softlabel

ENTRY = re.compile(r"^\.\. auto(?:function|class|exception):: softlabel\.(\w+)(?:\(|$)", re.M)
CHAPTERS = ("paper/", "beyond/", "practice/")


def test_each_public_name_stands_once_in_the_source():
    names = ENTRY.findall((ROOT / "book" / "package.md").read_text("utf8"))
    assert Counter(names) == Counter(softlabel.__all__)


@pytest.fixture(scope="module")
def entries(site):
    """The entries of the built page by name: the line of the name, and what stands below it."""
    page = soup_of((site / "book" / "package.html").read_text("utf8"))
    return {name: page.find("dt", id=f"softlabel.{name}").parent for name in softlabel.__all__}


@pytest.mark.parametrize("name", softlabel.__all__)
def test_entry_leads_to_a_chapter(entries, name):
    links = [a["href"] for a in entries[name].select("dd a[href]")]
    assert any(link.startswith(CHAPTERS) for link in links), links


@pytest.mark.parametrize("name", softlabel.__all__)
def test_entry_has_the_words_of_the_docstring(entries, name):
    first = getattr(softlabel, name).__doc__.strip().partition("\n")[0].replace("``", "")
    first = re.sub(r":\w+:`(\w+)`", r"\1()", first)
    # Sphinx makes quotes and dots typographic.
    plain = entries[name].get_text(" ").translate(str.maketrans("\u2018\u2019\u201c\u201d", "''\"\""))
    assert re.sub(r"\W+", " ", first) in re.sub(r"\W+", " ", plain)


def test_index_leads_to_functions_and_theorems(site):
    index = soup_of((site / "genindex.html").read_text("utf8"))
    places = {a["href"] for a in index.select("table.genindextable a[href]")}
    boxes = re.compile(r"\{prf:(?:theorem|definition)\} *\S.*\n:label: (\S+)")
    theorems = {
        f"{page.relative_to(ROOT).with_suffix('.html').as_posix()}#{label}"
        for part in CHAPTERS
        for page in (ROOT / "book" / part).glob("*.md")
        for label in boxes.findall(page.read_text("utf8"))
    }
    assert theorems
    assert theorems | {f"book/package.html#softlabel.{name}" for name in softlabel.__all__} <= places
    for place in places:
        page, _, anchor = place.partition("#")
        assert soup_of((site / page).read_text("utf8")).find(id=anchor), place
