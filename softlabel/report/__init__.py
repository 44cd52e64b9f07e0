"""Your own votes: from tables of votes and features to a report."""

from softlabel.report.analysis import VoteReport, analyse_votes

__all__ = ["VoteReport", "analyse_votes"]
