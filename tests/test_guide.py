"""The short path, the map, the glossary and the list of theorems say what the chapters have; searches lead to an answer."""

import json
import re
import types

import glossary
import guide
import pytest
import yaml
from conftest import ROOT
from docutils import nodes
from docutils.utils import new_document
from sphinx_external_toc.parsing import parse_toc_yaml

from softlabel.book import reading

TOLD = yaml.safe_load((ROOT / "book" / "_ext" / "guide.yml").read_text("utf8"))
PAGES = {page: (ROOT / f"{page}.md").read_text("utf8") for page in parse_toc_yaml(ROOT / "_toc.yml")}
CHAPTERS = [page for page in PAGES if page.startswith(("book/paper/", "book/beyond/"))]


def test_a_minute_is_150_words():
    cell = "```{code-cell} ipython3\n%s" + "x = 1\n\n" * 15 + "```\n"
    assert reading.minutes("word " * 150) == 1
    assert reading.minutes(cell % "") == 1 and reading.minutes(cell % ":tags: [hide-input]\n\n") == 0
    assert reading.minutes("$a + b$ {eval}`num(x, 2)` [a](b.md)\n$$\na\n$$\n") == pytest.approx(4 / 150)
    assert reading.minutes(":::{admonition} Proof\n:class: proof dropdown\n\n" + "word " * 99 + "\n:::\n") == 0


def test_sections_are_those_of_the_chapter():
    text = "---\na: b\n---\n\n# A\n\nb\n\n## C\n\nd\n\n**You will be able to** e.\n\n## F\n\n```\n# g\n```\n\n## Exercises\n"
    found = reading.sections(text)
    assert {key: " ".join(part.split()) for key, part in found.items() if part.strip()} == {
        "A": "# A b",
        "C": "## C d",
        "You will be able to": "**You will be able to** e.",
        "F": "## F ``` # g ```",
    }
    found = reading.steps("a\n\n**Step 1. B.** c\n\n**Step 2. D.** e")
    assert [part[:8] for part in found] == ["a\n\n", "**Step 1", "**Step 2"]


def test_the_short_path_takes_an_hour_and_its_parts_exist():
    path = reading.short_path()
    assert all(time > 0 for parts in path.values() for *_, time in parts)
    assert 45 < reading.minutes_of_path() <= 60
    assert list(path) == [page for page in PAGES if page in path]  # in the order of the book


def needs(page):
    """Chapters that a page says one needs."""
    line = re.search(r"^\*\*You need\*\* .*?^$", PAGES[page], re.S | re.M)
    links = re.findall(r"\(([\w./]*\.md)", line[0]) if line else []
    folder = page.rpartition("/")[0]
    found = [f"book/{link[3:-3]}" if link.startswith("../") else f"{folder}/{link[:-3]}" for link in links]
    return {name for name in found if name in CHAPTERS}


def test_every_chapter_is_on_the_map_once_and_after_what_it_needs():
    beside = [page for rows in TOLD["beside"].values() for row in rows for page in row]
    assert len(beside) == len(set(beside)) and not set(beside) & set(TOLD["path"])
    assert set(CHAPTERS) <= {*beside, *TOLD["path"]} <= set(PAGES)
    assert set(TOLD["names"]) == {*beside, *TOLD["path"]}
    stops = list(TOLD["path"])
    for stop, rows in TOLD["beside"].items():
        for row in rows:
            for k, page in enumerate(row):
                if page.startswith(("book/paper/", "book/beyond/")):
                    assert needs(page) <= {*stops[: stops.index(stop) + 1], *row[:k]}, page


def test_the_map_shows_all_of_it():
    everything = set(PAGES)
    env = types.SimpleNamespace(found_docs=everything, toc_secnumbers={page: {"": (k,)} for k, page in enumerate(PAGES)})
    builder = types.SimpleNamespace(get_relative_uri=lambda here, page: f"{page}.html")
    drawn = guide.draw(types.SimpleNamespace(srcdir=ROOT, env=env, builder=builder), "book/index")
    for page, name in TOLD["names"].items():
        assert f'href="{page}.html"' in drawn and f" {name}</text>" in drawn
    assert drawn.count("<circle") == len(TOLD["path"])
    widest = max(int(x) + 7.4 * len(words) for x, words in re.findall(r'class="side" x="(\d+)"[^>]*>([^<]*)', drawn))
    assert widest <= 396, "a name does not fit"


def test_answers_are_headings():
    for words, (page, heading) in TOLD["answers"].items():
        assert re.search(rf"^#+ {re.escape(heading)}$", PAGES[page], re.M), words


def test_searches_lead_to_answers(site):
    """The first result of a search is the main entry of the index with the same words."""
    text = (site / "searchindex.js").read_text("utf8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    for words, (page, _) in TOLD["answers"].items():
        main = [index["docnames"][k] for k, _, is_main in index["indexentries"][words.lower()] if is_main]
        assert page in main, words


def test_a_build_of_few_pages_keeps_the_entries_of_the_others():
    entries = {"a": [("single", "bias; of votes", "here", "main", None)], "b": [("pair", "tie; break", "", "", None)]}
    env = types.SimpleNamespace(get_domain=lambda _: types.SimpleNamespace(entries=entries))
    indexer = types.SimpleNamespace(_index_entries={"a": []})
    guide.keep_entries(types.SimpleNamespace(env=env, builder=types.SimpleNamespace(indexer=indexer)))
    assert indexer._index_entries["a"] == [("bias", "here", "main"), ("of votes", "here", "main")]
    assert indexer._index_entries["b"] == [("break", "", ""), ("tie", "", "")]


BOX = re.compile(r"^:::\{prf:(?:theorem|proposition|lemma|corollary)\} (.*?)\n:label: (\S+)", re.M)


def test_the_list_of_theorems_has_each_once():
    boxes = {label: title.partition(";")[0] for page in CHAPTERS for title, label in BOX.findall(PAGES[page])}
    boxes |= {label: title for title, label in BOX.findall(PAGES["book/practice/own_votes"])}
    listed = re.findall(r"^- \{prf:ref\}`(\S+)`, \*\*(.*?)\*\*", " ".join(PAGES["book/theorems"].split(" ")), re.M | re.S)
    assert len(listed) == len(boxes)
    assert {label: " ".join(title.split()) for label, title in listed} == boxes


def test_the_first_mention_of_a_word_leads_to_the_glossary():
    document = new_document("a")
    document += nodes.paragraph("", "", nodes.Text("The soft\nlabels, and a soft label; Firth's penalty."))
    left = {name: (glossary.pattern(name), f"term-{k}") for k, name in enumerate(["Firth's penalty", "soft label", "label"])}
    glossary.mark_text(document[0][0], left, "glossary.html")
    assert [(link.astext(), link["refuri"]) for link in document.findall(nodes.reference)] == [
        ("soft\nlabels", "glossary.html#term-1"),
        ("label", "glossary.html#term-2"),
        ("Firth's penalty", "glossary.html#term-0"),
    ]
    assert document.astext() == "The soft\nlabels, and a soft label; Firth's penalty."


def test_the_glossary_leads_to_chapters_that_exist():
    links = re.findall(r"\]\((\w[\w/]*)\.md\)", PAGES["book/glossary"])
    assert len(links) > 10 and {f"book/{link}" for link in links} <= set(PAGES)
    terms = re.findall(r"^(?=\S)(?!```|#|---|\w+:)(.+)$", PAGES["book/glossary"].partition("```{glossary}")[2], re.M)
    assert {term.lower() for term in terms} >= glossary.PLAIN
