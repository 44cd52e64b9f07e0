"""How the book is found, cited and dated: one place for each fact.

The version is that of pyproject.toml, authors and title of the citation those
of CITATION.cff, the addresses those of _config.yml.
"""

import html
import json
import os
import re
import subprocess
import tomllib
from datetime import UTC, date, datetime
from pathlib import Path

import yaml
from sphinx.util.logging import getLogger

from softlabel.book.repository import site_address

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


def structured(app, page, title, description):
    """What the page is, in the words of schema.org: the book, which structured.json describes, or a chapter of it."""
    root, cff = Path(app.srcdir), citation(Path(app.srcdir))
    facts = {"cff": cff, "paper": cff["references"][0], "names": names, "version": version(root), "date": released(root)}
    book = json.loads(app.builder.templates.render("structured.json", {**facts, "url": app.config.html_baseurl}))
    if page == app.config.root_doc:
        return {"@context": "https://schema.org", **book, "description": description}
    chapter = {"@type": "Chapter", "name": title, "url": f"{app.config.html_baseurl}{page}.html"}
    return {"@context": "https://schema.org", **chapter, "description": description, "isPartOf": book}


def set_addresses(app, config):
    """All that follows from the one address of the site."""
    root = Path(app.srcdir)
    address = config.html_baseurl or site_address(config.html_theme_options["repository_url"])
    config.html_baseurl = address.rstrip("/") + "/"
    config.ogp_site_url = config.html_baseurl
    config.ogp_site_name = config.html_title
    config.myst_substitutions = {
        **(config.myst_substitutions or {}),
        "bibtex": f"```bibtex\n{bibtex(root, config)}\n```",
        "version": version(root),
    }


def add_to_page(app, pagename, templatename, context, doctree):
    """Description and structured data in the head, version and date in the footer."""
    root = Path(app.srcdir)
    changes = context["pathto"]("book/changelog")
    context["theme_extra_footer"] = f'<p>Version <a href="{changes}">{version(root)}</a>, {released(root)}</p>'
    if doctree is None:
        return
    description = (context["meta"] or {}).get("description", "")
    if not description:
        getLogger(__name__).warning("no description in the front matter", location=pagename)
    context["meta"] = {**(context["meta"] or {}), "og:description": description}
    title = html.unescape(re.sub(r"^\d+\. |<[^>]+>", "", context["title"]))
    data = json.dumps(structured(app, pagename, title, description), ensure_ascii=False).replace("</", "<\\/")
    context["metatags"] += f'<meta name="description" content="{html.escape(description)}"/>\n'
    context["metatags"] += f'<script type="application/ld+json">{data}</script>\n'


def write_sitemap(app, exception):
    """Of all pages, also of those that this build had no need to write."""
    if exception or app.builder.name != "html":
        return
    pages = [f"<url><loc>{app.config.html_baseurl}{name}.html</loc></url>" for name in sorted(app.env.found_docs)]
    head = '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    (Path(app.outdir) / "sitemap.xml").write_text("\n".join([head, *pages, "</urlset>\n"]), encoding="utf8")


def setup(app):
    app.connect("config-inited", set_addresses)
    app.connect("build-finished", write_sitemap)
    # A browser lets no page read the others from a folder: results of a search
    # in the offline edition come without the sentences around the words.
    app.add_js_file(None, body=OFFLINE)
    # Before sphinxext.opengraph, which repeats the description.
    app.connect("html-page-context", add_to_page, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
