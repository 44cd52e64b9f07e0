"""Sphinx extension: the short path through the book, its map, and what people search for.

`guide.yml` says which sections are on the path, what stands on the map, and which section answers which search.
"""

import html
from pathlib import Path

import glossary
import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.index_entries import split_index_msg
from sphinx.util.logging import getLogger

from softlabel.book import reading

GUIDE = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text("utf8"))


def by_heading(doctree):
    """Sections of a page by their titles."""
    titled = [(section.next_node(nodes.title), section) for section in doctree.findall(nodes.section)]
    return {" ".join(title.astext().split()): section for title, section in titled if title}


def answer(app, doctree):
    """What people search for, as an entry of the index that counts as the main one, at the section that answers."""
    env = app.env
    for words, (page, heading) in GUIDE["answers"].items():
        if page != env.docname:
            continue
        if (section := by_heading(doctree).get(heading)) is None:
            getLogger(__name__).warning("guide.yml: no heading %r in %s", heading, page)
            continue
        entry = ("single", words, section["ids"][0], "main", None)
        env.get_domain("index").entries[page].append(entry)
        section.insert(1, addnodes.index("", entries=[entry], inline=False))  # after the title


def keep_entries(app):
    """The search forgets the entries of pages that are not written anew: give it those of the whole index."""
    for page, entries in app.env.get_domain("index").entries.items():
        found = {(words, id or "", main) for kind, value, id, main, _ in entries for words in split_index_msg(kind, value)}
        app.builder.indexer._index_entries[page] = sorted(found)
    return ()


def number_of(env, page, place=""):
    return ".".join(map(str, env.toc_secnumbers.get(page, {}).get(place, ())))


def link(app, here, page, words, place=""):
    address = app.builder.get_relative_uri(here, page) + place
    return nodes.reference("", words, internal=True, refuri=place if page == here and place else address)


def head_line(app, doctree, page):
    """Below the title: how long the chapter takes to read, and what of it is on the short path."""
    env, path = app.env, GUIDE["path"]
    text = Path(app.srcdir, f"{page}.md").read_text("utf8")
    line = nodes.paragraph("", f"About {max(5, 5 * round(reading.minutes(reading.body(text)) / 5))} minutes to read. ")
    line["classes"] = ["reading-line"]
    home = link(app, page, env.config.root_doc, "short path", "#short-path")
    if page not in path:
        return [line, nodes.Text("Not on the "), home, nodes.Text(".")]
    names, headings = list(path), by_heading(doctree)
    line += [nodes.strong("", "On the "), nodes.strong("", "", home), nodes.Text(": ")]
    for k, (heading, chosen, _) in enumerate(reading.short_path()[page]):
        section = headings[heading]
        section["classes"].append("on-path")
        place = "#" + section["ids"][0]
        top = section.parent is doctree
        whole = "all of it" if len(path[page]) == 1 else "the beginning"
        words = whole if top else number_of(env, page, place) or heading
        steps = f" (Steps {', '.join(map(str, chosen[:-1]))} and {chosen[-1]})" if chosen else ""
        line += [nodes.Text(", " if k else ""), link(app, page, page, words, place), nodes.Text(steps)]
    line += nodes.Text(f"; {round(reading.minutes_of_path(page))} minutes")
    following = names[names.index(page) + 1 :]
    if following and following[0] in env.found_docs:
        title = env.titles[following[0]].astext()
        line += [nodes.Text(", then "), link(app, page, following[0], title)]
    line += nodes.Text(".")
    return [line]


def add_lines(app, doctree, page):
    on_screen = app.builder.format == "html"
    for place in list(doctree.findall(map_place)):
        place.replace_self([*place.children, nodes.raw("", draw(app, page), format="html")] if on_screen else [])
    if not (on_screen and page.startswith(glossary.PAGES)):
        return
    for paragraph in doctree.findall(nodes.paragraph):
        bold = paragraph.next_node(nodes.strong)
        if bold and bold.astext() in ("You will be able to", "You need") and paragraph.astext().startswith(bold.astext()):
            paragraph["classes"].append("objectives")
    top = doctree.next_node(nodes.section)
    first, *rest = head_line(app, doctree, page)
    top.insert(top.index(top.next_node(nodes.title)) + 1, first)
    first += rest


class map_place(nodes.General, nodes.Element):
    """Where the map stands, until the page is written."""


class Map(SphinxDirective):
    """The map, below a sentence on it; in print there is neither."""

    has_content = True

    def run(self):
        return [map_place("", *self.parse_content_to_nodes())]


ROW, GAP, LEFT, RIGHT = 25, 13, 16, 190


def draw(app, here):
    """The map: the short path as a line, the other chapters to its right. Colours are those of the page, light or dark."""
    env, times = app.env, reading.short_path()

    def word(page, x, y, kind):
        words = html.escape(f"{number_of(env, page)} {GUIDE['names'][page]}".strip())
        address = html.escape(app.builder.get_relative_uri(here, page))
        return f'<a href="{address}"><text class="{kind}" x="{x}" y="{y + 5}">{words}</text></a>'

    lines, marks, y = [], [], 18
    pages = [page for page in GUIDE["path"] if page in env.found_docs]
    for page in pages:
        rows = [row for row in GUIDE["beside"].get(page, []) if set(row) <= env.found_docs]
        marks += [f'<circle cx="{LEFT}" cy="{y}" r="6"/>', word(page, LEFT + 15, y, "stop")]
        marks.append(f'<text class="time" x="{LEFT + 15}" y="{y + 21}">{round(sum(t for *_, t in times[page]))} min</text>')
        for k, row in enumerate(rows):
            at = y + k * ROW
            marks.append(f'<path class="branch" d="M{RIGHT - 12} {y} V{at} H{RIGHT - 6}"/>')
            x = RIGHT
            for j, name in enumerate(row):
                if j:
                    marks.append(f'<text class="then" x="{x}" y="{at + 5}">›</text>')
                    x += 13
                marks.append(word(name, x, at, "side"))
                x += round(7.3 * len(f"{number_of(env, name)} {GUIDE['names'][name]}")) + 6
        lines.append(y)
        y += max(ROW * len(rows), 2 * ROW - 6) + GAP
    height = lines[-1] + 32
    spine = f'<path class="spine" d="M{LEFT} {lines[0]} V{lines[-1]}"/>'
    words = (
        f"Map of the chapters. Down the left side runs the short path, {len(pages)} stops. Beside a stop stand the chapters "
        "that need it, and in a row those that need one another."
    )
    head = f'<svg viewBox="0 0 396 {height}" role="group" aria-label="{words}" xmlns="http://www.w3.org/2000/svg">'
    return f'<div class="roadmap">{head}{spine}{"".join(marks)}</svg></div>'


def mark_contents(app, pagename, templatename, context, doctree):
    """A dot in the contents at the chapters of the short path."""
    pages = [page.rpartition("/")[2] for page in GUIDE["path"]]
    places = ", ".join(f'.bd-links a[href$="/{page}.html"]::after, .bd-links a[href="{page}.html"]::after' for page in pages)
    if pagename.rpartition("/")[2] in pages:
        places += ', .bd-links a.current[href="#"]::after'
    dot = 'content: " \\25CF" / " (on the short path)"; font-size: 0.6em; color: var(--book-accent)'
    context["metatags"] = context.get("metatags", "") + f"\n<style>{places} {{ {dot} }}</style>\n"


def note(app, config):
    """If what is said here changes, pages are written anew."""
    pages = [Path(app.srcdir, f"{page}.md") for page in GUIDE["path"]]
    texts = [page.read_text("utf8") for page in pages if page.exists()]
    times = [round(reading.minutes(reading.body(text))) for text in texts]
    config.guide = repr((GUIDE, times))


def setup(app):
    app.add_config_value("guide", "", "html", [str])
    app.add_node(map_place)
    app.add_directive("roadmap", Map)
    app.connect("config-inited", note)
    app.connect("doctree-read", answer)
    app.connect("doctree-resolved", add_lines)
    app.connect("html-page-context", mark_contents)
    app.connect("html-collect-pages", keep_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
