"""How the book is found, cited and dated: one place for each fact.

The version is that of pyproject.toml, authors and title of the citation those
of CITATION.cff, the addresses those of _config.yml.
"""

import html
import json
import os
import re
import subprocess
import textwrap
import tomllib
from datetime import UTC, date, datetime
from pathlib import Path

import yaml
from docutils import nodes

OFFLINE = 'if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;'


def version(root):
    text = (root / "pyproject.toml").read_text("utf8")
    return tomllib.loads(text)["project"]["version"]


def released(root):
    """Day of the last commit; without a repository, today."""
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        return datetime.fromtimestamp(int(epoch), UTC).date()
    git = ["git", "log", "-1", "--format=%cs"]
    try:
        found = subprocess.run(git, cwd=root, capture_output=True, text=True)
    except FileNotFoundError:
        return date.today()
    return date.fromisoformat(found.stdout.strip()) if found.stdout else date.today()


def citation(root):
    return yaml.safe_load((root / "CITATION.cff").read_text("utf8"))


def names(people):
    """Authors of CITATION.cff, each as one name."""
    return [p.get("name") or f"{p['given-names']} {p['family-names']}" for p in people]


def bibtex(root, config):
    """The book's entry, and the paper's."""
    cff = citation(root)
    paper = cff["references"][0]
    people = " and ".join(f"{p['family-names']}, {p['given-names']}" for p in paper["authors"])
    return f"""@misc{{harmless_label_noise_book,
  author  = {{{{{" and ".join(names(cff["authors"]))}}}}},
  title   = {{{cff["title"]}}},
  year    = {{{released(root).year}}},
  version = {{{version(root)}}},
  url     = {{{config.html_baseurl}}}
}}

@article{{ahfock_2021_harmless,
  author  = {{{people}}},
  title   = {{{paper["title"]}}},
  journal = {{{paper["journal"].replace("&", chr(92) + "&")}}},
  year    = {{{paper["year"]}}},
  volume  = {{{paper["volume"]}}},
  pages   = {{{paper["start"]}}},
  doi     = {{{paper["doi"]}}}
}}"""


def structured(root, config, page, title, description):
    """What the page is, in the words of schema.org."""
    cff = citation(root)
    paper = cff["references"][0]
    people = [{"@type": "Person", "name": n} for n in names(paper["authors"])]
    book = {
        "@type": "Book",
        "@id": config.html_baseurl + "#book",
        "name": cff["title"],
        "url": config.html_baseurl,
        "author": [{"@type": "Organization", "name": n} for n in names(cff["authors"])],
        "version": version(root),
        "dateModified": released(root).isoformat(),
        "inLanguage": "en",
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "citation": {
            "@type": "ScholarlyArticle",
            "name": paper["title"],
            "author": people,
            "datePublished": str(paper["year"]),
            "isPartOf": {"@type": "Periodical", "name": paper["journal"]},
            "sameAs": f"https://doi.org/{paper['doi']}",
        },
    }
    if page == config.root_doc:
        return {"@context": "https://schema.org", **book, "description": description}
    return {
        "@context": "https://schema.org",
        "@type": "Chapter",
        "name": title,
        "url": f"{config.html_baseurl}{page}.html",
        "description": description,
        "isPartOf": book,
    }


def describe(doctree, length, titles=()):
    """What a page is about, in whole sentences or items of at most so many signs.

    A chapter says so in its first list; any other page in its first paragraphs.
    """
    headings = list(doctree.findall(nodes.title))[1:2]
    chapter = headings and headings[0].astext() == "What you will be able to do"
    if chapter:
        parts = [plain(i) for i in next(doctree.findall(nodes.bullet_list)).children]
    else:
        parts = [
            sentence
            for p in doctree.findall(nodes.paragraph)
            if isinstance(p.parent, nodes.section | nodes.container)
            for sentence in re.split(r"(?<=[.?!])\s+", plain(p))
        ]
    text = ""
    for part in filter(None, parts):
        if text and len(text) + len(part) > length - 20:
            break
        text += f" {part}"
    lead = "You will be able to" if chapter else ""
    text = (lead + text).strip().rstrip(";")
    return html.escape(textwrap.shorten(text, length, placeholder=" …"))


def plain(node):
    """Text of a node; none if it holds more TeX than a letter or two."""
    text = re.sub(r"\[ (\d+)\]", r"(\1)", " ".join(node.astext().split()))
    for tex, sign in {r"\alpha_0": "α₀", r"\Delta": "Δ", r"\tau": "τ"}.items():
        text = text.replace(tex, sign)
    return "" if re.search(r"[\\{}^_]", text) else text


def set_addresses(app, config):
    """All that follows from the one address of the site."""
    root = Path(app.srcdir)
    config.html_baseurl = config.html_baseurl.rstrip("/") + "/"
    config.ogp_site_url = config.html_baseurl
    config.ogp_site_name = config.html_title
    config.myst_substitutions = {
        **(config.myst_substitutions or {}),
        "bibtex": f"```bibtex\n{bibtex(root, config)}\n```",
        "version": version(root),
    }


def add_to_page(app, pagename, templatename, context, doctree):
    """Structured data in the head, version and date in the footer."""
    root = Path(app.srcdir)
    changes = context["pathto"]("book/changelog")
    context["theme_extra_footer"] = f'<p>Version <a href="{changes}">{version(root)}</a>, {released(root)}</p>'
    if doctree is None:
        return
    tags = context["metatags"]
    found = re.search(r'<meta name="description" content="([^"]*)"', tags)
    data = structured(
        root,
        app.config,
        pagename,
        html.unescape(re.sub(r"^\d+\. |<[^>]+>", "", context["title"])),
        html.unescape(found[1]) if found else "",
    )
    text = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    context["metatags"] = f'{tags}<script type="application/ld+json">{text}</script>\n'


def setup(app):
    from sphinxext import opengraph  # imports matplotlib, and only the build of the pages needs it

    # The extension would take the page's first words as they come, TeX and all.
    opengraph.get_description = describe
    app.connect("config-inited", set_addresses)
    # A browser lets no page read the others from a folder: results of a search
    # in the offline edition come without the sentences around the words.
    app.add_js_file(None, body=OFFLINE)
    # After sphinxext.opengraph, which writes the description.
    app.connect("html-page-context", add_to_page, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
