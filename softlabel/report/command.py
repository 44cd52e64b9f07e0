"""Commands for a terminal: ``python -m softlabel report --help``."""

import argparse
import logging
import sys
from pathlib import Path

import pandas as pd

from softlabel.report.analysis import analyse_votes
from softlabel.tables import ROLES

OPTIONS = ("positive", "truth", "columns", "repeats", "cost_item", "cost_vote", "level")  # handed on
EXAMPLE = """
example:
  python -m softlabel report --votes votes.csv --features features.csv --positive malignant -o report.html

  votes.csv             features.csv
  item,annotator,label  item,size,shape
  a1,Ann,malignant      a1,2.5,0.1
  a1,Bob,benign         a2,1.5,-0.3
  a2,Ann,benign         ...

The names task and worker do as well. A table of votes may also be wide: an item in each row, an annotator in each column.
Empty cells and NA are missing. Lines in error messages count from 1, the header.

exit status: 0 if the report was written, 2 if a file or an argument is not valid.
"""


def read(path: str, name: str) -> pd.DataFrame:
    """A CSV file as text, its rows labelled with their lines in the file."""
    try:
        frame = pd.read_csv(
            path,
            dtype="category" if name == "votes" else str,
            keep_default_na=False,
            na_values=["", "NA", "NaN", "nan"],
            skip_blank_lines=False,
            encoding="utf-8-sig",
            skipinitialspace=True,
        )
    except FileNotFoundError:
        raise ValueError(f"{name}: there is no file {path}") from None
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"{name}: {path} cannot be read as CSV in UTF-8: {error}") from None
    frame.index = pd.RangeIndex(2, len(frame) + 2, name="line")
    frame = frame.dropna(how="all")  # blank lines
    if not any(column in ROLES["item"] for column in frame.columns):
        if name == "votes" and len(set(frame.columns) & {"annotator", "worker", "label"}) > 1:
            return frame  # its lack of items is said by name
        frame = frame.rename(columns={frame.columns[0]: "item"})
    return frame


def report(arguments: argparse.Namespace) -> None:
    """Read two files, write one."""
    votes, features = read(arguments.votes, "votes"), read(arguments.features, "features")
    options = {name: getattr(arguments, name) for name in OPTIONS}
    found = analyse_votes(votes, features, **options, rng=arguments.seed)
    try:
        found.save(arguments.output)
        if arguments.items:
            found.items.to_csv(arguments.items)
    except OSError as error:
        raise ValueError(f"the report cannot be written: {error}") from None
    print(found)
    logging.info("written to %s", Path(arguments.output).resolve())


def parser() -> argparse.ArgumentParser:
    """The arguments and their help."""
    top = argparse.ArgumentParser(prog="softlabel", description="Statistics of noisy votes.")
    command = top.add_subparsers(dest="command", required=True).add_parser(
        "report",
        help="what a table of votes is worth",
        description="From votes and features to a report, one HTML file.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    add("--votes", required=True, metavar="CSV", help="votes: item, annotator, label, or a wide table, item first")
    add("--features", required=True, metavar="CSV", help="features: item (or the first column), and columns of numbers")
    add("--positive", required=True, metavar="LABEL", help="the label of the positive class")
    add("--truth", metavar="COLUMN", help="column of the features: true labels of items drawn at random, else empty")
    add("--columns", nargs="+", metavar="COLUMN", help="columns of the features to use (all)")
    add("--repeats", choices=["first", "keep"], default="first", help="further votes of an annotator on an item (%(default)s)")
    add("--cost-item", type=float, default=1.0, metavar="PRICE", help="price of an item, in the unit of --cost-vote (1)")
    add("--cost-vote", type=float, default=1.0, metavar="PRICE", help="price of a vote (1)")
    add("--level", type=float, default=0.95, help="level of the intervals (%(default)s)")
    add("--seed", type=int, default=0, help="seed of the folds (%(default)s)")
    add("-o", "--output", default="report.html", metavar="HTML", help="where the report goes (%(default)s)")
    add("--items", metavar="CSV", help="write a table of all items here, with the reason where one was not used")
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
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
