"""Sphinx extension: of the theme's style sheets and icons, what the pages use.

The theme brings styles for everything that a site could have, and 2,000 icons. A rule stays unless it asks for a class that
neither a page nor a script names; an icon stays while there is a rule for it.
"""

import re
from itertools import groupby, pairwise
from pathlib import Path

import tinycss2
from fontTools import subset

CLASSES = re.compile(r'\sclass="([^"]*)"')
SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.S)
ICON = re.compile("[\ue000-\uf8ff]")  # icons are the signs that Unicode leaves to private use
SOURCE = re.compile(r'\.woff2\) format\("woff2"\),url\([^)]*\.ttf\) format\("truetype"\)')


def used_classes(pages, scripts):
    """All that are set in a page, and every word of a script.

    >>> sorted(used_classes(['<p class="a b">c</p><script>d.add("e")</script>'], []))
    ['a', 'add', 'b', 'd', 'e']
    """
    words = {name for page in pages for names in CLASSES.findall(page) for name in names.split()}
    scripts = [*scripts, *(body for page in pages for body in SCRIPT.findall(page))]
    return words | {word for script in scripts for word in re.findall(r"[\w-]+", script)}


def cut_sheet(css, used):
    """The style sheet without rules that no element can meet.

    >>> cut_sheet(".a,.b{top:0} .b .c:not(.d){top:1px} @media print{.b{top:2px}.e{top:3px}}", {"a", "e"})
    '.a{top:0}@media print{.e{top:3px}}'
    """
    return "".join(kept(rule, used) for rule in tinycss2.parse_stylesheet(css, skip_whitespace=True))


def kept(rule, used):
    if rule.type == "qualified-rule":
        selectors = [tinycss2.serialize(part).strip() for part in split(rule.prelude) if asks_for(part) <= used]
        return f"{','.join(selectors)}{{{tinycss2.serialize(rule.content).strip()}}}" if selectors else ""
    if rule.type == "at-rule" and rule.lower_at_keyword in ("media", "supports"):
        inner = tinycss2.parse_rule_list(rule.content, skip_whitespace=True)
        body = "".join(kept(one, used) for one in inner)
        return f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{body}}}" if body else ""
    if rule.type == "comment" and not rule.value.startswith("!"):  # such as name a licence stay
        return ""
    if rule.type == "at-rule" and rule.lower_at_keyword == "charset":  # comes first in what is written
        return ""
    return rule.serialize()


def split(prelude):
    """Selectors of a rule; what stands in brackets is in one piece."""
    return [list(part) for is_comma, part in groupby(prelude, lambda token: token == ",") if not is_comma]


def asks_for(selector):
    """Classes that an element, or one around it, must have; those that Bootstrap puts together when asked do not count."""
    pairs = pairwise(selector)
    names = {name.value for dot, name in pairs if dot == "." and name.type == "ident"}
    return {name for name in names if not name.startswith("bs-")}


def cut_font(path, signs):
    """Write the font with these signs alone beside the whole one, which goes."""
    numbers, target = ",".join(f"{ord(sign):x}" for sign in signs), path.with_suffix(".woff")
    subset.main([str(path), f"--unicodes={numbers}", "--flavor=woff", "--layout-features=", f"--output-file={target}"])
    path.unlink()
    path.with_suffix(".woff2").unlink()


def cut(app, exception):
    """After each build, which copies the whole files anew."""
    if exception or app.builder.name != "html":
        return
    site, static = Path(app.outdir), Path(app.outdir) / "_static"
    pages, scripts = ([path.read_text("utf8") for path in sorted(site.rglob(f"*.{kind}"))] for kind in ("html", "js"))
    used, icons = used_classes(pages, scripts), set()
    for path in [*static.glob("*.css"), *static.glob("styles/*.css")]:
        css = SOURCE.sub('.woff) format("woff")', cut_sheet(path.read_text("utf8"), used))
        path.write_text(f'@charset "utf-8";{css}', "utf8")
        icons.update(ICON.findall(css))
    for font in (static / "vendor" / "fontawesome" / "webfonts").glob("*.ttf"):
        cut_font(font, icons)


def setup(app):
    app.connect("build-finished", cut)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
