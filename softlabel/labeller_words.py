"""The words for each finding, from ``labeller_words.yml``: what was seen, how large it is, and what votes cannot tell."""

from functools import cache
from importlib.resources import files


@cache
def sentences() -> dict[str, str]:
    """By kind, or by kind and case; to be formatted with the names, the fields of the finding and facts of its own."""
    import yaml  # takes a while, and only findings need it

    table = yaml.safe_load(files("softlabel").joinpath("labeller_words.yml").read_text(encoding="utf-8"))
    return {case: " ".join(parts) for case, parts in table.items()}
