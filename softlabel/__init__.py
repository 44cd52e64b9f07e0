"""Statistics of noisy votes: logistic regression on votes, overdispersion, error rates and relative efficiency.

The companion package of the book *Harmless Label Noise*.
"""

from softlabel.validation import ConvergenceWarning, SeparationWarning
from softlabel.datasets import load_adult_content, load_bluebirds, load_breast_cancer, load_gastroenterology
from softlabel.vote_models import dm_logpmf, sample_probabilities, sample_votes, variance_inflation
from softlabel.efficiency import VoteDesign, design_votes, godambe_information, relative_efficiency
from softlabel.experiments import simulate_breast_cancer, simulate_relative_efficiency
from softlabel.joint import JointFit, fit_dirichlet_multinomial
from softlabel.logistic import BatchFit, LogisticFit, fit_logistic, fit_logistic_batch
from softlabel.misspecified import FitLimit, fit_limit
from softlabel.normal import TwoClassNormal
from softlabel.overdispersion import Alpha0Fit, alpha0_interval, bootstrap_alpha0, estimate_alpha0, overdispersion_test
from softlabel.report import VoteReport, analyse_votes
from softlabel.separation import find_separation

__version__ = "0.1.0"

__all__ = [
    "Alpha0Fit",
    "BatchFit",
    "ConvergenceWarning",
    "FitLimit",
    "JointFit",
    "LogisticFit",
    "SeparationWarning",
    "TwoClassNormal",
    "VoteDesign",
    "VoteReport",
    "alpha0_interval",
    "analyse_votes",
    "bootstrap_alpha0",
    "design_votes",
    "dm_logpmf",
    "estimate_alpha0",
    "find_separation",
    "fit_dirichlet_multinomial",
    "fit_limit",
    "fit_logistic",
    "fit_logistic_batch",
    "godambe_information",
    "load_adult_content",
    "load_bluebirds",
    "load_breast_cancer",
    "load_gastroenterology",
    "overdispersion_test",
    "relative_efficiency",
    "sample_probabilities",
    "sample_votes",
    "simulate_breast_cancer",
    "simulate_relative_efficiency",
    "variance_inflation",
]
