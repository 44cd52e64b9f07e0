"""Statistics of noisy votes: logistic regression on votes, overdispersion, error rates and relative efficiency.

The companion package of the book *Harmless Label Noise*.
"""

from softlabel.budget import BudgetSplit, split_budget
from softlabel.datasets import (
    load_adult_content,
    load_bluebirds,
    load_breast_cancer,
    load_cifar10h,
    load_gastroenterology,
    load_imagenet16h,
    load_recidivism,
)
from softlabel.efficiency import (
    FitLimit,
    VoteDesign,
    design_votes,
    fit_limit,
    godambe_information,
    pooled_efficiency,
    relative_efficiency,
)
from softlabel.experiments import simulate_breast_cancer, simulate_relative_efficiency
from softlabel.fits import BatchFit, LogisticFit
from softlabel.joint import JointFit, fit_dirichlet_multinomial
from softlabel.labellers import LabellerFindings, examine_labellers
from softlabel.logistic import fit_logistic, fit_logistic_batch
from softlabel.normal import TwoClassNormal
from softlabel.overdispersion import Alpha0Fit, alpha0_interval, bootstrap_alpha0, estimate_alpha0, overdispersion_test
from softlabel.report import VoteReport, analyse_votes
from softlabel.separation import find_separation
from softlabel.two_way import two_way_cov
from softlabel.validation import ConvergenceWarning, SeparationWarning
from softlabel.vote_models import (
    DirichletMultinomial,
    VoteModel,
    dm_logpmf,
    prediction_band,
    sample_probabilities,
    sample_votes,
    share_in_band,
    variance_inflation,
)
from softlabel.worth import (
    CombinedFit,
    Estimate,
    TruthWarning,
    WorthOfVotes,
    choose_for_truth,
    fit_votes_and_truth,
    worth_of_votes,
)

__version__ = "0.2.0"

__all__ = [
    "Alpha0Fit",
    "BatchFit",
    "BudgetSplit",
    "CombinedFit",
    "ConvergenceWarning",
    "DirichletMultinomial",
    "Estimate",
    "FitLimit",
    "JointFit",
    "LabellerFindings",
    "LogisticFit",
    "SeparationWarning",
    "TruthWarning",
    "TwoClassNormal",
    "VoteDesign",
    "VoteModel",
    "VoteReport",
    "WorthOfVotes",
    "alpha0_interval",
    "analyse_votes",
    "bootstrap_alpha0",
    "choose_for_truth",
    "design_votes",
    "dm_logpmf",
    "estimate_alpha0",
    "examine_labellers",
    "find_separation",
    "fit_dirichlet_multinomial",
    "fit_limit",
    "fit_logistic",
    "fit_logistic_batch",
    "fit_votes_and_truth",
    "godambe_information",
    "load_adult_content",
    "load_bluebirds",
    "load_breast_cancer",
    "load_cifar10h",
    "load_gastroenterology",
    "load_imagenet16h",
    "load_recidivism",
    "overdispersion_test",
    "pooled_efficiency",
    "prediction_band",
    "relative_efficiency",
    "sample_probabilities",
    "sample_votes",
    "share_in_band",
    "simulate_breast_cancer",
    "simulate_relative_efficiency",
    "split_budget",
    "two_way_cov",
    "variance_inflation",
    "worth_of_votes",
]
