"""Texts of reports, from ``texts.yml``, and what a page is made of."""

from functools import cache
from importlib.resources import files
from typing import Any

from softlabel.report.parts import BOOK


def resource(name: str) -> str:
    """A file of this folder."""
    return files("softlabel.report").joinpath(name).read_text(encoding="utf-8")


@cache
def texts() -> dict[str, Any]:
    """By their names; those of ``mend`` are by kind of finding."""
    import yaml  # takes a while, and only reports need it

    table: dict[str, Any] = yaml.safe_load(resource("texts.yml").replace("{BOOK}", BOOK))
    return table


def say(name: str, **fields: object) -> str:
    """A text, its fields filled in."""
    return str(texts()[name]).format(**fields)
