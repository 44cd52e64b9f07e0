"""Sphinx extension: numbers in sentences; and what the chapters have checked, judged whenever pages are written.

    python book/_ext/verdicts.py     lists every claim with its verdict, as the last build left it in _build/verdicts.json

{eval}`claims.printed(id)`, {eval}`claims.count(verdict, patterns ...)`, the tables of `claims.check(...)` and the directive
`{verdicts}` wait for the writing of the page. Any other {eval} is evaluated while the page is read, with the values that its
names have at that place.
"""

import ast
import json
import re
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path

from docutils import nodes
from myst_nb.core.execute.inline import NotebookClientInline
from myst_nb.ext.eval import EvalRoleAny
from myst_nb.sphinx_ import SphinxNbRenderer
from softlabel.book import claims
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.logging import getLogger

ASK = "import json; from softlabel.book import claims; print(json.dumps([claims.recorded, claims.looked_up]))"
HEAD = ["Claim", "Paper", "Book", "Verdict"]
WIDTHS = [40, 12, 14, 20, 10]
LATE = re.compile(r"claims\.(printed|count)\((.*)\)")


class verdict_word(nodes.Inline, nodes.Element):
    """A printed value or a count, until the page is written."""


class Eval(EvalRoleAny):
    def run(self):
        if not (late := LATE.fullmatch(self.text)):
            return super().run()
        self.document.settings.env.verdict_pages.add(self.document.settings.env.docname)
        return [verdict_word(name=late[1], arguments=list(ast.literal_eval(f"({late[2]},)")))], []


class VerdictTable(SphinxDirective):
    """All claims whose ids fit a pattern; the content is the caption."""

    has_content, option_spec = True, {"name": str, "only": str.split}

    def run(self):
        self.env.verdict_pages.add(self.env.docname)
        table = nodes.table(only=self.options.get("only", ["*"]))
        caption = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, caption)
        table += nodes.title("", "", *caption[0].children)
        self.add_name(table)
        return [table]


def evaluate(self, expression):
    """Displayed, for a bare value is silent after a cell that ends with a semicolon."""
    outputs = self._client.eval_expression(f"display({expression})")
    vars(self).setdefault("evaluated", []).append((expression, [output.get("data") for output in outputs]))
    return outputs


def record(self, token, finalise=SphinxNbRenderer.render_nb_finalise):
    """The last cell has run and the kernel is still there: ask it what it has checked, and whether names kept their values,
    for JupyterLab evaluates all expressions at the end."""
    client, env = self.nb_client, self.sphinx_env
    if isinstance(client, NotebookClientInline) and "claims" in str(client.notebook.cells):
        answer = json.loads("".join(o["text"] for o in client._client.eval_expression(ASK)))
        env.verdicts[env.docname], env.looked_up[env.docname] = answer
    for expression, found in vars(client).get("evaluated", []):
        if [o.get("data") for o in client._client.eval_expression(f"display({expression})")] != found:
            client.logger.warning(f"{expression!r} has another value at the end of the chapter", subtype="eval")
    finalise(self, token)


def start(app, env, docnames):
    for name, empty in (("verdicts", dict), ("looked_up", dict), ("verdict_pages", set), ("verdicts_shown", str)):
        setattr(env, name, getattr(env, name, empty()))


def is_comparison(table):
    return "only" in table or [entry.astext() for entry in next(table.findall(nodes.row)).children] == HEAD


def note(app, doctree):
    if any(map(is_comparison, doctree.findall(nodes.table))):
        app.env.verdict_pages.add(app.env.docname)


def purge(app, env, docname):
    for found in (getattr(env, "verdicts", {}), getattr(env, "looked_up", {})):
        found.pop(docname, None)
    getattr(env, "verdict_pages", set()).discard(docname)


def merge(app, env, docnames, other):
    for name in docnames:
        for mine, theirs in ((env.verdicts, other.verdicts), (env.looked_up, other.looked_up)):
            mine.update({name: theirs[name]} if name in theirs else {})
    env.verdict_pages.update(other.verdict_pages & set(docnames))


def changed(app, env, *_):
    """Chapters whose cells computed with a printed value that is another one now."""
    now = {id: f"{entry.printed} {entry.se}" for id, entry in claims.ledger().items()}
    found = getattr(env, "looked_up", {}).items()
    return [page for page, values in found if any(now.get(id) != value for id, value in values.items())]


def outdated(app, env):
    """Pages that show verdicts are written anew, not read, when a value, the ledger or the rule has changed."""
    pages = {}
    for page, values in env.verdicts.items():
        for id in values:
            if pages.setdefault(id, page) != page:
                getLogger(__name__).warning("%s is checked twice: in %s and in %s", id, pages[id], page)
    sources = [files(claims.__package__).joinpath(name).read_text("utf8") for name in ("claims.yml", "claims.py")]
    state = json.dumps([env.verdicts, sources], sort_keys=True)
    if state != env.verdicts_shown:
        env.verdicts_shown = state
        return sorted(env.verdict_pages)


class Judge(SphinxPostTransform):
    """Before references are resolved, and before LaTeX looks into tables."""

    default_priority = 5  # MyST-NB has chosen among the outputs at 4

    def run(self):
        checked = {id: (page, values[id]) for page, values in self.env.verdicts.items() for id in values}
        found = {id: values for id, (_, values) in checked.items()}
        for node in list(self.document.findall(verdict_word)):
            extra = {"found": found} if node["name"] == "count" else {}
            node.replace_self(nodes.Text(str(getattr(claims, node["name"])(*node["arguments"], **extra))))
        for table in filter(is_comparison, list(self.document.findall(nodes.table))):
            # In a table from the kernel the claims are named by literals.
            here = [name.astext() for name in table.findall(nodes.literal)]
            ids = here or [id for id in claims.ledger() if any(fnmatch(id, pattern) for pattern in table["only"])]
            verdicts = [claims.judge(id, **found.get(id, {})) for id in ids]
            frame = claims.comparison(verdicts)
            lines = [HEAD, *frame[HEAD].to_numpy().tolist()]
            if "only" in table:
                lines[0] = [*HEAD, "Chapter"]
                for id, line in zip(ids, lines[1:], strict=True):
                    line[0] += f"; {claims.ledger()[id].where}"
                    line.append(link(checked[id][0]) if id in checked else "")
            table[:] = [*table.findall(nodes.title), body(lines)]


def body(lines):
    """Rows of a table; numbers stand right."""
    rows = []
    for line in lines:
        cells = [nodes.entry("", nodes.paragraph("", "", *inline(cell))) for cell in line]
        for cell in cells[1:3]:
            cell["classes"].append("text-right")
        rows.append(nodes.row("", *cells))
    specs = [nodes.colspec(colwidth=width) for width in WIDTHS[: len(lines[0])]]
    return nodes.tgroup("", *specs, nodes.thead("", rows[0]), nodes.tbody("", *rows[1:]), cols=len(specs))


def inline(cell):
    if isinstance(cell, nodes.Node):
        return [cell]
    return [nodes.math("", part) if k % 2 else nodes.Text(part) for k, part in enumerate(cell.split("$"))]


def link(page):
    return pending_xref("", nodes.inline(), refdomain="std", reftype="doc", reftarget=f"/{page}", refdoc=page, refexplicit=False)


def keep(app, exception):
    """Write what the chapters have recorded, for the command and for the tests."""
    if exception or app.builder.name != "html":
        return
    found = {id: {**value, "chapter": page} for page, values in app.env.verdicts.items() for id, value in values.items()}
    path = Path(app.outdir).parent / "verdicts.json"
    path.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", encoding="utf8")
    getLogger(__name__).info(summary(found))


def summary(found):
    counts = {kind: claims.count(kind, found=found) for kind in ("agrees", "differs", "not checked")}
    return "claims: " + ", ".join(f"{count} {kind}" for kind, count in counts.items())


def main():
    found = json.loads((Path(__file__).resolve().parents[2] / "_build" / "verdicts.json").read_text("utf8"))
    frame = claims.comparison(claims.judge(id, **found.get(id, {})) for id in claims.ledger())
    frame["Claim"] = list(claims.ledger())
    print(frame.to_string(index=False), summary(found), sep="\n")


def setup(app):
    NotebookClientInline.eval_variable = evaluate
    SphinxNbRenderer.render_nb_finalise = record
    app.add_node(verdict_word)
    app.add_role("eval", Eval(), override=True)
    app.add_directive("verdicts", VerdictTable)
    app.add_post_transform(Judge)
    app.connect("env-before-read-docs", start)
    app.connect("env-get-outdated", changed)
    app.connect("doctree-read", note)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", outdated)
    app.connect("build-finished", keep)
    return {"env_version": 3, "parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    main()
