"""Sphinx extension: numbers in sentences; and what the chapters have checked, judged whenever pages are written.

    python book/_ext/verdicts.py     lists every claim with its verdict, as the last build left it in _build/verdicts.json

{eval}`claims.printed(id)`, {eval}`claims.count(verdict, patterns ...)`, {eval}`claims.count_results(kind)`, the tables of
`claims.check(...)` and the directives `{verdicts}` and `{verdict-strip}` wait for the writing of the page. Any other {eval} is
evaluated while the page is read, with the values that its names have at that place.
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
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.logging import getLogger

from softlabel.book import claims

ASK = "import json; from softlabel.book import claims; print(json.dumps([claims.recorded, claims.looked_up]))"
HEAD = ["Verdict", "Claim", "Paper", "Book", "Power"]
WIDTHS = [16, 46, 12, 14, 8, 4]
LATE = re.compile(r"claims\.(printed|count|count_results)\((.*)\)")


class verdict_word(nodes.Inline, nodes.Element):
    """A printed value or a count, until the page is written."""


class Eval(EvalRoleAny):
    def run(self):
        if not (late := LATE.fullmatch(self.text)):
            return super().run()
        note_page(self.document.settings.env)
        return [verdict_word(name=late[1], arguments=list(ast.literal_eval(f"({late[2]},)")))], []


class strip(nodes.General, nodes.Element):
    """A picture of all verdicts, until the page is written."""


class VerdictTable(SphinxDirective):
    """All claims whose ids fit a pattern; the content is the caption."""

    has_content, option_spec = True, {"name": str, "only": str.split}

    def run(self):
        note_page(self.env)
        (caption,) = self.parse_content_to_nodes()
        table = nodes.table("", nodes.title("", "", *caption.children), only=self.options.get("only", ["*"]))
        self.add_name(table)
        return [table]


class Strip(SphinxDirective):
    """Where all claims with numbers stand within their tolerance, and how wide that is; the content is the caption."""

    has_content, option_spec = True, {"name": str, "alt": str}

    def run(self):
        note_page(self.env)
        (caption,) = self.parse_content_to_nodes()
        figure = nodes.figure("", strip(alt=self.options["alt"]), nodes.caption("", "", *caption.children))
        self.add_name(figure)
        return [figure]


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
        env.metadata[env.docname].update(zip(("verdicts", "looked_up"), answer, strict=True))
    for expression, found in vars(client).get("evaluated", []):
        now = [o.get("data") for o in client._client.eval_expression(f"display({expression})")]
        # Data that could not be had put their mark on all numbers from then on.
        if str(now).replace("†", "") != str(found).replace("†", ""):
            client.logger.warning(f"{expression!r} has another value at the end of the chapter", subtype="eval")
    finalise(self, token)


def note_page(env):
    """The page that is read shows verdicts. Sphinx keeps what a page says of itself, and forgets it with the page."""
    env.metadata[env.docname]["shows_verdicts"] = True


def recorded(env):
    """What the chapters have recorded, by the id of the claim, each with its chapter."""
    pages = env.metadata.items()
    return {id: {**value, "chapter": page} for page, said in pages for id, value in said.get("verdicts", {}).items()}


def is_comparison(table):
    return "only" in table or [entry.astext() for entry in next(table.findall(nodes.row)).children] == HEAD


def note(app, doctree):
    if any(map(is_comparison, doctree.findall(nodes.table))):
        note_page(app.env)


def changed(app, env, *_):
    """Chapters whose cells computed with a printed value that is another one now."""
    now = {id: f"{entry.printed} {entry.se}" for id, entry in claims.ledger().items()}
    found = {page: said.get("looked_up", {}) for page, said in env.metadata.items()}
    return [page for page, values in found.items() if any(now.get(id) != value for id, value in values.items())]


def outdated(app, env):
    """Pages that show verdicts are written anew, not read, when a value, the ledger or the rule has changed."""
    found = recorded(env)
    for page, said in env.metadata.items():
        for id in said.get("verdicts", {}):
            if found[id]["chapter"] != page:
                getLogger(__name__).warning("%s is checked twice: in %s and in %s", id, page, found[id]["chapter"])
    sources = [files(claims.__package__).joinpath(name).read_text("utf8") for name in ("claims.yml", "claims.py")]
    state = json.dumps([found, sources], sort_keys=True)
    if state == getattr(env, "verdicts_shown", ""):
        return []
    env.verdicts_shown = state
    return sorted(page for page, said in env.metadata.items() if "shows_verdicts" in said)


class Judge(SphinxPostTransform):
    """Before references are resolved, and before LaTeX looks into tables."""

    default_priority = 5  # MyST-NB has chosen among the outputs at 4

    def run(self):
        found = recorded(self.env)
        for node in list(self.document.findall(verdict_word)):
            extra = {} if node["name"] == "printed" else {"found": found}
            node.replace_self(nodes.Text(str(getattr(claims, node["name"])(*node["arguments"], **extra))))
        for node in list(self.document.findall(strip)):
            verdicts = [claims.judge(id, **found[id]) for id in claims.ledger() if id in found]
            path = draw_strip(verdicts, Path(self.app.outdir).parent)
            node.replace_self(nodes.image(uri=path, candidates={"*": path}, alt=node["alt"]))
            self.env.images.add_file(self.env.docname, path)
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
                    line[1] += f"; {claims.ledger()[id].where}"
                    line.append(self.link(found[id]["chapter"]) if id in found else "")
            table[:] = [*table.findall(nodes.title), body(lines)]

    def link(self, page):
        """To a chapter, by its number."""
        number = nodes.inline("", ".".join(map(str, self.env.toc_secnumbers[page][""])))
        target = {"refdomain": "std", "reftype": "doc", "reftarget": f"/{page}", "refexplicit": True}
        return pending_xref("", number, refdoc=self.env.docname, **target)


def body(lines):
    """Rows of a table; numbers stand right."""
    rows = []
    for line in lines:
        cells = [nodes.entry("", nodes.paragraph("", "", *inline(cell))) for cell in line]
        for cell in cells[2:5]:
            cell["classes"].append("text-right")
        rows.append(nodes.row("", *cells))
    specs = [nodes.colspec(colwidth=width) for width in WIDTHS[: len(lines[0])]]
    return nodes.tgroup("", *specs, nodes.thead("", rows[0]), nodes.tbody("", *rows[1:]), cols=len(specs))


def inline(cell):
    if isinstance(cell, nodes.Node):
        return [cell]
    return [nodes.math("", part) if k % 2 else nodes.Text(part) for k, part in enumerate(cell.split("$"))]


def draw_strip(verdicts, folder):
    """Where the numbers stand within their tolerance, and how wide that is: a picture, and its path."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    numbers = [v for v in verdicts if v.tolerance is not None and v.power is not None]
    rows = list(dict.fromkeys(map(row_of, numbers)))
    with plt.style.context("softlabel.book.style"):
        fig, (left, right) = plt.subplots(1, 2, sharey=True, figsize=(6.6, 0.4 * len(rows) + 1))
        for v in numbers:
            # Claims of one row spread over its height.
            row = [other for other in numbers if row_of(other) == row_of(v)]
            y = rows.index(row_of(v)) + 0.6 * (row.index(v) + 0.5) / len(row) - 0.3
            marker = {"marker": "x", "color": "C1"} if v.verdict == "differs" else {"marker": "o", "color": "C0"}
            position = (v.value - claims.ledger()[v.id].value) / v.tolerance
            left.plot(max(-1.5, min(1.5, position)), y, markersize=4, clip_on=False, **marker)
            right.plot(100 * v.power, y, markersize=4, clip_on=False, **marker)
        for ax, lines in ((left, (-1, 1)), (right, (100 * claims.WEAK,))):
            for x in lines:
                ax.axvline(x, color="0.4", linestyle=":", linewidth=1)
        left.set(xlim=(-1.5, 1.5), xlabel="(book − paper) / tolerance", ylim=(len(rows) - 0.5, -0.5))
        left.set_yticks(range(len(rows)), rows)
        right.set(xscale="log", xlabel="tolerance, % of the printed value")
        right.xaxis.set_major_formatter("{x:g}")
        path = folder / "verdicts.png"
        fig.savefig(path, dpi=200)
        plt.close(fig)
    return str(path)


def row_of(verdict):
    """Claims of a table together, limits apart, and those of the text by their section."""
    where = claims.ledger()[verdict.id].where
    return "limits (ARE)" if verdict.id.endswith(".are") else where


def keep(app, exception):
    """Write what the chapters have recorded, for the command and for the tests."""
    if exception or app.builder.name != "html":
        return
    found = recorded(app.env)
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
    app.add_node(strip)
    app.add_role("eval", Eval(), override=True)
    app.add_directive("verdicts", VerdictTable)
    app.add_directive("verdict-strip", Strip)
    app.add_post_transform(Judge)
    app.connect("env-get-outdated", changed)
    app.connect("doctree-read", note)
    app.connect("env-updated", outdated)
    app.connect("build-finished", keep)
    return {"env_version": 4, "parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    main()
