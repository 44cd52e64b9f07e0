"""Your own votes: from tables of votes and features to a report."""

from softlabel.report.analysis import analyse_votes
from softlabel.report.result import VoteReport

__all__ = ["VoteReport", "analyse_votes"]
