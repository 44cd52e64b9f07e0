"""Sphinx extension: clean pages."""

import re
from pathlib import Path

import imagesize
from docutils import nodes


def index_boxes(app, doctree):
    """Theorems, definitions and the like stand in the general index, under their kind and under their title."""
    entries = app.env.get_domain("index").entries[app.env.docname]
    for node in doctree.findall(lambda node: isinstance(node, nodes.Element) and node.get("realtype")):
        title = node["title"].strip().removeprefix("(").removesuffix(")")  # sphinx-proof puts it in brackets
        title = re.sub(r"\$\\?(.*?)\$", r"\1", title)  # an index has no formulas
        if title:
            entries.append(("pair", f"{node['realtype']}; {title}", node["label"], "", None))


def name_places(app, doctree):
    """Whatever has a name on a page can be reached from another, `[text](page.md#name)`: MyST does it for headings only."""
    places = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    names = {place: place for node in doctree.findall(nodes.Element) for place in node["ids"]} | doctree.nameids
    places.update((name, (0, place, "")) for name, place in names.items() if place and name not in places)


def drop_second_copies(app, pagename, templatename, context, doctree):
    """Each script once, and none of Thebe's.

    Some extensions add theirs twice, and `const` twice is an error. Thebe, which
    starts kernels from a page, does not work with this stack.
    """
    scripts = {script.attributes.get("body") or str(script.filename): script for script in context["script_files"]}
    context["script_files"] = [script for key, script in scripts.items() if "thebe" not in key.lower()]


def mend_body(app, pagename, templatename, context, doctree):
    """Pictures are loaded when the reader comes near; until then, their room is kept. Style sheets know how wide they are."""
    sources = {name: source for source, name in app.builder.images.items()}

    def tag(match):
        has_room = re.search(r" (width|height|style)=", match[0]) or match[1] not in sources
        width, height = (-1, -1) if has_room else imagesize.get(Path(app.srcdir) / sources[match[1]])
        room = f' width="{width:.0f}" height="{height:.0f}" style="--width: {width:.0f}px"' if width > 0 else ""
        return f'<img loading="lazy"{room}{match[0].removeprefix("<img")}'

    if "body" in context:
        body = re.sub(r'<img\b[^>]*?\bsrc="[^"]*_images/([^"/]+)"[^>]*>', tag, context["body"])
        # To those who do not see the page, this name would hide the words of the summary, "Show code cell source".
        context["body"] = re.sub(r'<summary aria-label="[^"]*">', "<summary>", body)


def setup(app):
    app.connect("doctree-read", index_boxes)
    app.connect("doctree-read", name_places)
    # After the extensions that add scripts for one page.
    app.connect("html-page-context", drop_second_copies, priority=900)
    app.connect("html-page-context", mend_body)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
