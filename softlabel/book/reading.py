"""How long the text of a chapter takes to read, and the short path through the book."""

import re

import pandas as pd
import yaml

from softlabel.book.repository import repository_file

CELL = re.compile(r"^```\{code-cell\}.*?\n(---\n.*?\n---\n|(?::.*?\n)*)(.*?)^```$", re.S | re.M)
ONE_WORD = re.compile(r"\$\$.*?\$\$|^```\{math\}.*?^```$|\$.*?\$|\{eval\}`.*?`", re.S | re.M)
FOLDED = re.compile(r"^:::\{admonition\}[^\n]*\n:class: [^\n]*dropdown\n.*?^:::$", re.S | re.M)
NO_WORDS = re.compile(r"^```(?:\{index\}|yaml).*?^```$|^\([\w-]+\)=$|^:\w+:[^\n]*$|\]\([^)]*\)", re.S | re.M)
HEADING = re.compile(r"^(?:#{1,4} +(.*)|\*\*(You will be able to)\*\*.*)$")
STEP = re.compile(r"^(?=\*\*Step \d+\.)", re.M)
TITLE = re.compile(r"^# (.*)$", re.M)
Part = tuple[str, list[int] | None, float]  # heading, steps, minutes


def minutes(text: str) -> float:
    """To read it at 150 words a minute: a formula is a word, a line of code in view is ten, what is folded is left out."""
    code = "".join(source for options, source in CELL.findall(text) if "hide-input" not in options)
    text = NO_WORDS.sub(" ", FOLDED.sub("", CELL.sub("", text)))
    lines = [line for line in code.splitlines() if line.strip()]
    return (len(ONE_WORD.sub("x", text).split()) + 10 * len(lines)) / 150


def body(text: str) -> str:
    """A chapter without its front matter and its exercises."""
    return text.split("\n---\n", 1)[1].partition("\n## Exercises\n")[0]


def sections(text: str) -> dict[str, str]:
    """The parts of a chapter by their headings, what it is good for and what it needs apart."""
    found: dict[str, str] = {}
    name, inside = "", False
    for line in body(text).splitlines(keepends=True):
        inside ^= line.startswith("```")
        heading = None if inside else HEADING.match(line)
        name = heading[1] or heading[2] if heading else name
        found[name] = found.get(name, "") + line
    return found


def steps(text: str) -> list[str]:
    """What stands before the first step of a derivation, and its steps: the first at 1."""
    return STEP.split(text)


def short_path() -> dict[str, list[Part]]:
    """Of each chapter on the short path what is read: heading, steps of it or none, and minutes."""
    guide = yaml.safe_load(repository_file("book/_ext/guide.yml").read_text("utf8"))
    found: dict[str, list[Part]] = {}
    for page, parts in guide["path"].items():
        texts = sections(repository_file(f"{page}.md").read_text("utf8"))
        found[page] = []
        for part in parts:
            heading, chosen = next(iter(part.items())) if isinstance(part, dict) else (part, None)
            read = [steps(texts[heading])[k] for k in chosen] if chosen else [texts[heading]]
            found[page].append((heading, chosen, sum(map(minutes, read))))
    return found


def minutes_of_path(page: str | None = None) -> float:
    """To read the short path, or what of one chapter is on it."""
    path = short_path()
    return sum(time for name in ([page] if page else path) for *_, time in path[name])


def table_of_path() -> pd.DataFrame:
    """The short path, a chapter in each row, as the front page shows it."""
    rows = []
    for page, parts in short_path().items():
        title = TITLE.findall(repository_file(f"{page}.md").read_text("utf8"))[0]
        whole = "all of it" if len(parts) == 1 else "the beginning"
        words = [
            (whole if heading == title else heading) + (f" (Steps {', '.join(map(str, chosen))})" if chosen else "")
            for heading, chosen, _ in parts
        ]
        name = page.removeprefix("book/")
        rows.append((f"[{title}]({name}.md)", "; ".join(words), f"{sum(time for *_, time in parts):.0f}"))
    return pd.DataFrame(rows, columns=["Chapter", "Sections", "Min."])
