"""Your own votes: from tables of votes and features to a report."""

from softlabel.report.analysis import analyse_votes
from softlabel.report.result import VoteReport
from softlabel.report.votes_alone import AgreementReport

__all__ = ["AgreementReport", "VoteReport", "analyse_votes"]
