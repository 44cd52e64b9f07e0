"""Sphinx extension: formulas are set by KaTeX when the pages are written, with MathML inside; a page needs no script.

KaTeX is JavaScript and runs here in mini-racer, a Python package. Where that is missing, the pages come with MathJax, which
sets them in the browser.
"""

import hashlib
import json
import os
import re
from functools import cache
from itertools import groupby
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.console import colorize
from sphinx.util.logging import getLogger
from sphinx.util.math import get_node_equation_number

try:
    from py_mini_racer import JSEvalException, MiniRacer
except ModuleNotFoundError:
    MiniRacer = None

KATEX = Path(__file__).with_name("katex.min.js")
# Beside those of TeX, a formula too long for its line may be broken after wide space.
BREAKS = {r"\quad": r"\allowbreak\hskip1em\relax", r"\qquad": r"\allowbreak\hskip2em\relax"}


@cache
def engine(process):
    """One a process: Sphinx writes pages in several, and a fork has no engine of its own."""
    context = MiniRacer()
    context.eval(KATEX.read_text("utf8"))
    return context


@cache
def html(tex, display, macros):
    r"""A formula as HTML and MathML.

    >>> "<mi>α</mi>" in html(r"\a", False, '{"\\\\a": "\\\\alpha"}')
    True
    """
    options = {"displayMode": display, "macros": json.loads(macros), "strict": "error"}
    found = engine(os.getpid()).call("katex.renderToString", tex, options)
    return found.replace('</span><span class="katex-base">', '</span><wbr><span class="katex-base">')  # a line may end here


def macros(translator):
    """The book's macros, and those with which the page begins."""
    found = translator.config.mathjax3_config["tex"]["macros"]
    book = {"\\" + name: body[0] if isinstance(body, list) else body for name, body in found.items()}
    page = translator.builder.env.metadata[translator.builder.current_docname].get("math", {})
    return json.dumps(BREAKS | (book or {}) | (page or {}))


def rendered(translator, node, tex, display):
    try:
        return html(tex, display, macros(translator))
    except JSEvalException as error:
        reason = re.search(r"ParseError: (.*)", str(error))
        getLogger(__name__).warning("%s", reason[1] if reason else error, location=node)
        return f"<code>{translator.encode(tex)}</code>"


def visit_inline(translator, node):
    translator.body.append(rendered(translator, node, node.astext(), False))
    raise nodes.SkipNode


def visit_block(translator, node):
    tex = node.astext()
    if r"\\" in tex and not node["nowrap"]:
        tex = rf"\begin{{split}}{tex}\end{{split}}"
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append(rendered(translator, node, tex, True) + "</div>\n")
    raise nodes.SkipNode


class PageMacros(SphinxTransform):
    """The block of macros with which a chapter begins, as JupyterLab reads it, is no part of the page."""

    default_priority = 400

    def apply(self):
        for block in list(self.document.findall(nodes.literal_block)):
            if block.get("language") == "yaml" and block.astext().startswith("math:"):
                self.env.metadata[self.env.docname].update(yaml.safe_load(block.astext()))
                block.parent.remove(block)


def is_formula(node):
    """A formula, or one in bold type, or as a link."""
    alone = isinstance(node, nodes.TextElement) and len(node.children) == 1
    return isinstance(node, nodes.math) or (alone and is_formula(node[0]))


class Together(SphinxPostTransform):
    """No line ends between a formula and what touches it: a full stop, a bracket, the rest of a word."""

    default_priority = 900  # after the values in sentences have come
    formats = ("html",)

    def run(self):
        for parent in {id(node.parent): node.parent for node in self.document.findall(is_formula)}.values():
            if isinstance(parent, nodes.TextElement) and not is_formula(parent):
                children, parent.children = parent.children, []
                for run in runs(children):
                    touched = len(run) > 1 and any(map(is_formula, run))
                    parent.extend([nodes.inline("", "", *run, classes=["together"])] if touched else run)


def runs(children):
    """Children of a paragraph, where no space parts them, and the spaces."""
    parts = []
    for child in children:
        words = re.split(r"(\s+)", child) if isinstance(child, nodes.Text) else []
        parts += [nodes.Text(word) for word in words if word] if words else [child]
    return [list(run) for _, run in groupby(parts, lambda part: isinstance(part, nodes.Text) and part.isspace())]


def add_style(app, pagename, templatename, context, doctree):
    if "katex" in context.get("body", ""):
        app.add_css_file("katex/katex.min.css")


def say_what_is_missing(app, exception):
    if app.builder.format == "html":
        words = "mini-racer (see requirements.txt) is not installed: formulas are left to MathJax, 1.1 MB more on each page"
        getLogger(__name__).info(colorize("yellow", words))


def setup(app):
    app.add_transform(PageMacros)
    app.add_post_transform(Together)
    # Pages are written again when formulas would look otherwise.
    app.add_config_value("katex", hashlib.sha256(KATEX.read_bytes()).hexdigest() if MiniRacer else "", "html", [str])
    if MiniRacer:
        app.add_html_math_renderer("katex", (visit_inline, None), (visit_block, None))
        app.connect("html-page-context", add_style)
    else:
        app.setup_extension("sphinx-mathjax-offline")
        app.connect("build-finished", say_what_is_missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
