"""Sphinx extension: the first mention of a word of the glossary, on each page that counts as a chapter, leads to it."""

import re

from docutils import nodes
from sphinx.domains.std import StandardDomain

PAGES = ("book/paper/", "book/beyond/", "book/practice/", "book/closing")
GLOSSARY = "book/glossary"
# Of these nothing is a plain sentence.
APART = (
    nodes.reference,
    nodes.title,
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.table,
    nodes.caption,
    nodes.Admonition,
)
# Words that are too common to be marked, or that mean other things as well; they are in the glossary and in the index.
PLAIN = set("item vote rule posterior worth scale lean tilt floor ceiling labeller annotator".split())
PLAIN |= set("copyist guesser spammer distorter".split())


def words(env):
    """The words to mark, the longest first, and where the glossary has them."""
    domain: StandardDomain = env.get_domain("std")
    found = {name: place for (kind, name), (page, place) in domain.objects.items() if kind == "term" and page == GLOSSARY}
    return {name: found[name] for name in sorted(found, key=len, reverse=True) if name.lower() not in PLAIN}


def pattern(name):
    """A word with any space between its parts, in the plural too.

    >>> bool(pattern("soft label").search("two soft\\nlabels"))
    True
    """
    return re.compile(r"(?<![\w-])" + r"\s+".join(map(re.escape, name.split())) + r"s?(?![\w-])", re.I)


def mark(app, doctree, page):
    if app.builder.format != "html" or not page.startswith(PAGES):
        return
    left = {name: (pattern(name), place) for name, place in words(app.env).items()}
    address = app.builder.get_relative_uri(page, GLOSSARY) if left else ""
    for paragraph in list(doctree.findall(nodes.paragraph)):
        for text in list(paragraph.findall(nodes.Text)):
            above = text.parent
            while above is not None and not isinstance(above, APART):
                above = above.parent
            if above is None:
                mark_text(text, left, address)


def mark_text(text, left, address):
    """The first word of the glossary in a text; what follows it is looked at next."""
    found = [(name, match) for name, (word, _) in left.items() if (match := word.search(text.astext()))]
    if not found:
        return
    name, match = min(found, key=lambda one: (one[1].start(), -len(one[1][0])))
    place = left.pop(name)[1]
    for other in [key for key, (_, same) in left.items() if same == place]:  # another word for it
        del left[other]
    link = nodes.reference("", match[0], internal=True, refuri=f"{address}#{place}", classes=["term"])
    rest = nodes.Text(text.astext()[match.end() :])
    text.parent.replace(text, [nodes.Text(text.astext()[: match.start()]), link, rest])
    mark_text(rest, left, address)


def setup(app):
    app.connect("doctree-resolved", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
