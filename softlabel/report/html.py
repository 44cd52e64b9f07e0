"""Pieces of HTML: text with links, tables, figures; every text of the user's is escaped."""

import io
import re
from base64 import b64encode
from collections.abc import Iterable
from html import escape

import matplotlib
import numpy as np
import pandas as pd

from softlabel.report import figures
from softlabel.report.figures import Picture
from softlabel.report.parts import BOOK, shown
from softlabel.report.texts import texts

MOST_ROWS = 50  # of a table on the page
TITLES = texts()["chapters"]
LINK = re.compile(re.escape(BOOK) + r"([a-z0-9_/]+)\.html(?:#[a-z-]+)?")


def listing(texts: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{linked(text)}</li>' for text in texts)}</ul>" if texts else ""


def linked(text: str) -> str:
    """Text in which the addresses of chapters are links."""
    return LINK.sub(lambda found: f'<a href="{found[0]}">{TITLES[found[1]]}</a>', escape(text))


def note(text: str) -> str:
    return f'<p class="note">{linked(text)}</p>'


def _cell(value: object) -> str:
    if isinstance(value, float | int | np.number) and not isinstance(value, bool):
        number = float(value)
        return "" if np.isnan(number) else f"{int(number):,}" if number.is_integer() else shown(number)
    return "" if value is None else str(value)


def in_percents(frame: pd.DataFrame, columns: "Iterable[object]") -> pd.DataFrame:
    """A table with probabilities in percent."""
    return frame.assign(**{str(c): frame[c].map(lambda p: "" if np.isnan(p) else f"{p:.0%}") for c in columns if c in frame})


def table(frame: pd.DataFrame, caption: str) -> str:
    """A table in its own box, that scrolls where it is too wide; a keyboard reaches the box."""
    more = f" (the first {MOST_ROWS} of {len(frame):,})" if len(frame) > MOST_ROWS else ""
    frame = frame.head(MOST_ROWS)
    head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in [frame.index.name or "", *frame.columns])
    rows = "".join(
        f'<tr><th scope="row">{escape(str(label))}</th>{"".join(f"<td>{escape(_cell(v))}</td>" for v in row)}</tr>'
        for label, *row in frame.astype(object).itertuples(name=None)
    )
    label = escape(f"{caption}{more}", quote=True)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table><caption>{label}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def estimates(rows: dict[str, tuple[str, str]], caption: str) -> str:
    return table(pd.DataFrame(rows, index=["value", "interval"]).T.rename_axis("quantity"), caption)


def figure(picture: Picture) -> str:
    out = io.StringIO()
    with matplotlib.rc_context(figures.STYLE):
        picture.figure.savefig(out, format="svg", metadata={"Date": None})
    data = b64encode(out.getvalue().encode()).decode()
    return (
        f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{escape(picture.alt, quote=True)}">'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )
