"""Commands for a terminal: ``python -m softlabel report --help``."""

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import Any

from softlabel.report.analysis import analyse_votes
from softlabel.report.texts import resource
from softlabel.validation import optional

OWN = {"command", "run", "quiet", "votes", "features", "seed", "output", "items", "json"}  # all other options are handed on


def report(arguments: argparse.Namespace) -> None:
    """Read two files, write one."""
    optional("matplotlib", "report", "softlabel report")  # before anything is computed
    _must_be_writable(arguments)
    options = {name: value for name, value in vars(arguments).items() if name not in OWN}
    found = analyse_votes(arguments.votes, arguments.features, **options, rng=arguments.seed)
    try:
        found.save(arguments.output)
        if arguments.items:
            found.items.to_csv(arguments.items)
        if arguments.json:
            Path(arguments.json).write_text(found.to_json(), encoding="utf-8")
    except OSError as error:
        raise ValueError(f"the report cannot be written: {error}") from None
    logging.info("written to %s", Path(arguments.output).resolve())
    print(found, flush=True)


def _must_be_writable(arguments: argparse.Namespace) -> None:
    """Before anything is computed: folders that are there, and no file twice."""
    given = {option: Path(path).resolve() for option in ("votes", "features") if (path := getattr(arguments, option))}
    for option in ("output", "items", "json"):
        if not (name := getattr(arguments, option)):
            continue
        path = Path(name)
        if not path.parent.is_dir():
            raise ValueError(f"--{option} {name} cannot be written: there is no folder {path.parent}")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise ValueError(f"--{option} {name} cannot be written: there is no permission to")
        if path.is_dir():
            raise ValueError(f"--{option} {name} cannot be written: it is a folder")
        for other, taken in given.items():
            if path.resolve() == taken or (path.exists() and taken.exists() and path.samefile(taken)):
                raise ValueError(f"--{option} {name} would overwrite the file of --{other}: give it another name")
        given[option] = path.resolve()


def whole_number(text: str) -> int:
    seed = int(text)
    if seed < 0:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text}")
    return seed


def parser() -> argparse.ArgumentParser:
    """The arguments and their help."""
    top = argparse.ArgumentParser(prog="softlabel", description="Statistics of noisy votes.")
    command = top.add_subparsers(dest="command", required=True).add_parser(
        "report",
        help="what a table of votes is worth",
        description="From votes and features to a report, one HTML file.",
        epilog=resource("command.txt"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    several: dict[str, Any] = {"nargs": "+", "default": ()}
    add("--votes", required=True, metavar="FILE", help="votes: item, annotator, label, or a wide table, item first")
    add(
        "--features",
        metavar="FILE",
        help="features: item (or the first column), and columns of numbers; agreement alone without",
    )
    add("--positive", metavar="LABEL", help="the label of the positive class; needed with features")
    add("--truth", metavar="COLUMN", help="column of the features: true labels of items drawn at random, else empty")
    add("--columns", nargs="+", metavar="COLUMN", help="columns of the features to use (all)")
    add("--exclude", **several, metavar="COLUMN", help="columns of either file to leave out")
    add("--item", metavar="COLUMN", help="column of the items (item, task_id, ...)")
    add("--annotator", metavar="COLUMN", help="column of the annotators (annotator, worker_id, ...)")
    add("--label", metavar="COLUMN", help="column of the labels (label, answer, ...)")
    add("--counts", **several, metavar="LABEL", dest="count_columns", help="columns that count the votes for a label")
    add("--missing", **several, metavar="LABEL", help="labels that say that there is none, such as unsure")
    add("--repeats", choices=["first", "keep"], default="first", help="further votes of an annotator on an item (%(default)s)")
    add("--cost-item", type=float, default=1.0, metavar="PRICE", help="price of an item, in the unit of --cost-vote (1)")
    add("--cost-vote", type=float, default=1.0, metavar="PRICE", help="price of a vote (1)")
    add("--cost-truth", type=float, metavar="PRICE", help="price of a true label, to weigh it against votes and items")
    add("--pseudonyms", action="store_true", help="call annotators A1, A2, ... everywhere")
    add("--level", type=float, default=0.95, help="level of the intervals (%(default)s)")
    add("--seed", type=whole_number, default=0, help="seed of the folds (%(default)s)")
    add("-o", "--output", default="report.html", metavar="HTML", help="where the report goes (%(default)s)")
    add("--items", metavar="CSV", help="write a table of all items here, with the reason where one was not used")
    add("--json", metavar="JSON", help="write all numbers and texts of the report here")
    add("-q", "--quiet", action="store_true", help="no progress")
    command.set_defaults(run=report)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit status."""
    chosen = parser().parse_args(arguments)
    level = logging.WARNING if chosen.quiet else logging.INFO
    logging.basicConfig(level=level, format="%(relativeCreated)6.0f ms  %(message)s", stream=sys.stderr)
    try:
        chosen.run(chosen)
    except (ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `softlabel report ... | head`: all files are written
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
