"""Write the list of works that the chapters cite, from references.bib.

    python book/_ext/references.py     after a chapter cites a new work

A chapter cites by a plain link, `[Efron (1975)](../references.md#cite-efron_1975_efficiency)`, which reads well in
JupyterLab and in a downloaded notebook too. That the words are those of the file, and the list is up to date, is tested.
"""

import html
import re
from pathlib import Path

from pybtex.database import parse_file
from pybtex.plugin import find_plugin

LINK = re.compile(r"\[([^]]*)\]\([./]*references\.md#cite-(\w+)\)")
HEAD = re.compile(r"\A.*?^## Works cited\n", re.S | re.M)


def citations(root):
    """Every link to a work: the page, the words and the key."""
    pages = sorted((root / "book").rglob("*.md"))
    return [(page, " ".join(words.split()), key) for page in pages for words, key in LINK.findall(page.read_text("utf8"))]


def words(entry):
    """Authors and year of a work, as they stand in a sentence and in brackets."""
    names = [str(person.rich_last_names[0]) for person in entry.persons["author"]]
    authors = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return f"{authors} ({entry.fields['year']})", f"{authors}, {entry.fields['year']}"


def listed(root):
    """The page with its list."""
    style, markdown = find_plugin("pybtex.style.formatting", "plain")(), find_plugin("pybtex.backends", "markdown")()
    works = parse_file(root / "book" / "references.bib")
    keys = {key for _, _, key in citations(root)}
    entries = style.format_entries([works.entries[key] for key in keys], works)
    page = HEAD.match((root / "book" / "references.md").read_text("utf8"))[0]
    for entry in entries:
        text = re.sub(r"\\([-.()])", r"\1", html.unescape(entry.text.render(markdown)))
        # An address is its own text.
        page += f"\n(cite-{entry.key})=\n" + re.sub(r"(?:URL: )?\[[^]]*\]\((\S+)\)", r"<\1>", text) + "\n"
    return page


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    (root / "book" / "references.md").write_text(listed(root), encoding="utf8")
