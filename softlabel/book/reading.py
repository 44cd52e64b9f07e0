"""How long the text of a chapter takes to read, and the short path through the book."""

import re

CELL = re.compile(r"^```\{code-cell\}.*?\n(---\n.*?\n---\n|(?::.*?\n)*)(.*?)^```$", re.S | re.M)
ONE_WORD = re.compile(r"\$\$.*?\$\$|^```\{math\}.*?^```$|\$.*?\$|\{eval\}`.*?`", re.S | re.M)
FOLDED = re.compile(r"^:::\{admonition\}[^\n]*\n:class: [^\n]*dropdown\n.*?^:::$", re.S | re.M)
NO_WORDS = re.compile(r"^```(?:\{index\}|yaml).*?^```$|^\([\w-]+\)=$|^:\w+:[^\n]*$|\]\([^)]*\)", re.S | re.M)
HEADING = re.compile(r"^(#{1,4}) +(.*)$")
STEP = re.compile(r"^(?=\*\*Step \d+\.)", re.M)


def minutes(text):
    """To read it at 150 words a minute: a formula is a word, a line of code in view is ten, what is folded is left out."""
    code = "".join(source for options, source in CELL.findall(text) if "hide-input" not in options)
    text = NO_WORDS.sub(" ", FOLDED.sub("", CELL.sub("", text)))
    return (len(ONE_WORD.sub("x", text).split()) + 10 * len(code.splitlines())) / 150


def body(text):
    """A chapter without its front matter and its exercises."""
    return text.split("\n---\n", 1)[1].partition("\n## Exercises\n")[0]


def sections(text):
    """The parts of a chapter by their headings; before the first heading but the title, under the title."""
    found, name, inside = {}, "", False
    for line in body(text).splitlines(keepends=True):
        inside ^= line.startswith("```")
        heading = None if inside else HEADING.match(line)
        name = heading[2] if heading else name
        found[name] = found.get(name, "") + line
    return found


def steps(text):
    """What stands before the first step of a derivation, and its steps: the first at 1."""
    return STEP.split(text)
