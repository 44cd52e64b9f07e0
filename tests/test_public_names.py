"""The names and signatures that chapters and readers rely on; a change here is a change of the interface."""

import inspect
import os
import subprocess
import sys

import pytest

import softlabel
from softlabel import datasets
from softlabel.book import claims
from softlabel.classifier import SoftLabelClassifier, neg_log_loss_of_votes

NAMES = set(
    """
    AgreementReport Alpha0Fit BatchFit BudgetSplit CombinedFit ConvergenceWarning DirichletMultinomial Estimate
    FitLimit JointFit LabellerFindings LogisticFit SeparationWarning TruthWarning TwoClassNormal VoteDesign VoteModel
    VoteReport WorthOfVotes alpha0_interval analyse_votes bootstrap_alpha0 choose_for_truth design_votes dm_logpmf
    estimate_alpha0 examine_labellers find_separation fit_dirichlet_multinomial fit_limit fit_logistic
    fit_logistic_batch fit_votes_and_truth godambe_information load_adult_content load_bluebirds load_breast_cancer
    load_cifar10h load_gastroenterology load_imagenet16h load_recidivism overdispersion_test pooled_efficiency
    prediction_band relative_efficiency sample_probabilities sample_votes share_in_band simulate_breast_cancer
    simulate_relative_efficiency split_budget two_way_cov variance_inflation worth_of_votes
""".split()
)
SIGNATURES = {
    softlabel.fit_logistic: "X, y_or_counts, *, positive=None, method='mle', max_iter=25, tol=1e-08",
    softlabel.fit_logistic_batch: "X, y_or_counts, *, positive=None, method='mle', max_iter=25, tol=1e-08",
    softlabel.fit_dirichlet_multinomial: "X, counts, *, max_iter=100, tol=1e-08",
    softlabel.fit_votes_and_truth: "X, counts, truth",
    softlabel.CombinedFit.cov: "self",
    softlabel.CombinedFit.stderr: "self",
    softlabel.worth_of_votes: "X, counts, truth, *, votes=None, inclusion=None, n_items=None, m=None, level=0.9, rng=None",
    softlabel.choose_for_truth: "weight, k, rng=None",
    softlabel.JointFit.cov: "self",
    softlabel.JointFit.stderr: "self",
    softlabel.JointFit.posterior: "self, X",
    softlabel.find_separation: "X, y_or_counts, *, positive=None",
    softlabel.fit_limit: "model, mean, variance=None",
    softlabel.dm_logpmf: "counts, tau, alpha0",
    softlabel.sample_votes: "tau, m, alpha0=inf, rng=None",
    softlabel.sample_probabilities: "tau, alpha0=inf, rng=None",
    softlabel.variance_inflation: "m, alpha0",
    softlabel.prediction_band: "probability, m, alpha0, level=0.95",
    softlabel.share_in_band: "counts, tau, alpha0, level=0.95",
    softlabel.DirichletMultinomial: "alpha0=inf",
    softlabel.VoteModel.draw_probabilities: "self, tau, rng",
    softlabel.VoteModel.log_probability: "self, counts, tau",
    softlabel.VoteModel.variance_inflation: "self, m",
    softlabel.VoteModel.sample: "self, tau, m, rng=None",
    softlabel.VoteModel.band: "self, probability, m, level=0.95",
    softlabel.estimate_alpha0: "counts, tau",
    softlabel.bootstrap_alpha0: "counts, tau, n_resamples=500, rng=None",
    softlabel.alpha0_interval: "counts, tau, *, X=None, level=0.95, method='cox-reid', n_resamples=500, rng=None",
    softlabel.overdispersion_test: "counts, tau",
    softlabel.relative_efficiency: "m, alpha0",
    softlabel.pooled_efficiency: "m, alpha0",
    softlabel.godambe_information: "fisher, m, alpha0",
    softlabel.design_votes: "*, budget, cost_item, cost_vote, alpha0, n_items=None, cost_truth=None, min_items=1",
    softlabel.split_budget: "*, budget, cost_item, cost_vote, cost_truth, alpha0, ceiling",
    softlabel.simulate_relative_efficiency: "deltas, ms, alphas, n=500, p=2, n_sims=1000, rng=None, n_jobs=-1, memory=None",
    softlabel.simulate_breast_cancer: "ms, alphas, n_train=50, n_splits=100, rng=None, n_jobs=-1, method='glm', memory=None",
    softlabel.analyse_votes: "votes, features, *, positive=None, truth=None, columns=None, exclude=(), item=None, "
    "annotator=None, label=None, count_columns=(), missing=(), repeats='first', cost_item=1.0, cost_vote=1.0, "
    "cost_truth=None, level=0.95, pseudonyms=False, rng=0",
    softlabel.examine_labellers: "votes, X=None, *, positive=None, rng=None",
    softlabel.TwoClassNormal: "mean1, mean2, cov, prior1=0.5",
    softlabel.TwoClassNormal.canonical: "delta, p=2, prior1=0.5",
    softlabel.TwoClassNormal.sample: "self, n, rng=None, size=None",
    softlabel.TwoClassNormal.posterior: "self, Y",
    softlabel.TwoClassNormal.bayes_error: "self",
    softlabel.TwoClassNormal.error_rate: "self, coef",
    softlabel.TwoClassNormal.fisher_information: "self",
    softlabel.TwoClassNormal.error_curvature: "self",
    softlabel.TwoClassNormal.excess_error: "self",
    softlabel.LogisticFit.cov: "self, kind='sandwich'",
    softlabel.LogisticFit.stderr: "self, kind='sandwich'",
    softlabel.LogisticFit.posterior: "self, X",
    softlabel.LogisticFit.predict: "self, X",
    softlabel.LogisticFit.summary: "self, kind=None, level=0.95",
    softlabel.LogisticFit.conf_int: "self, kind=None, level=0.95",
    softlabel.two_way_cov: "fit, X, counts, votes",
    SoftLabelClassifier: "penalty=0.0",
    SoftLabelClassifier.fit: "self, X, y, sample_weight=None, truth=None",
    SoftLabelClassifier.score: "self, X, y, sample_weight=None",
    neg_log_loss_of_votes: "estimator, X, y",
    claims.check: "values, data=None",
    datasets.load_gastroenterology: "",
    datasets.load_bluebirds: "",
    datasets.load_breast_cancer: "",
    datasets.load_adult_content: "positive='RX', repeats='keep'",
    datasets.load_recidivism: "part='voted'",
    datasets.load_cifar10h: "",
    datasets.load_imagenet16h: "noise",
}
RULE = "coef converged n_iter separation log_likelihood n_items n_without_votes feature_names".split()
REPORT = "items annotators counted agreement agreement_lacks alpha0 alpha0_lacks findings notes files made positive".split()
REPORT += ["repeats", "level"]
MORE = "fit coefficients overdispersion efficiency_direct goodness_of_fit truth worth comparison separated lacking".split()
MORE += "classes cost_item cost_vote cost_truth".split()
FIELDS = {
    softlabel.LogisticFit: [*RULE, "deviance", "dispersion"],
    softlabel.BatchFit: ["coef", "converged", "n_iter"],
    softlabel.JointFit: [*RULE, "alpha0"],
    softlabel.CombinedFit: [*RULE, "n_truths"],
    softlabel.LabellerFindings: ["findings", "annotators", "not_looked_at", "n_items", "n_votes"],
    softlabel.Estimate: ["value", "low", "high"],
    softlabel.WorthOfVotes: "error lean scale tilt floor equal_number level n_items m n_truths reservations".split(),
    softlabel.BudgetSplit: ["n_items", "m", "n_truth", "worth", "cost", "all_votes", "all_truth"],
    softlabel.VoteDesign: ["n_items", "m", "worth", "cost", "root", "n_truth"],
    softlabel.Alpha0Fit: ["alpha0", "log_likelihood", "multinomial_log_likelihood"],
    softlabel.VoteReport: [*REPORT, *MORE],
    softlabel.AgreementReport: [*REPORT, "labels", "shares", "confusion"],
    datasets.VoteData: ["X", "counts", "y", "votes", "source"],
}


def test_public_names():
    assert set(softlabel.__all__) == NAMES and len(softlabel.__all__) == len(NAMES)
    assert all(hasattr(softlabel, name) for name in NAMES)


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda f: f.__qualname__)
def test_signatures(function):
    parts, starred = [], False
    for name, p in inspect.signature(function).parameters.items():
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        parts.append(name if p.default is p.empty else f"{name}={p.default!r}")
    assert ", ".join(parts) == SIGNATURES[function]


def test_every_public_function_has_its_signature_here():
    assert {f for name in NAMES if inspect.isfunction(f := getattr(softlabel, name))} <= set(SIGNATURES)


@pytest.mark.parametrize("result", FIELDS, ids=lambda c: c.__name__)
def test_fields_of_results(result):
    public = [name for name in inspect.signature(result).parameters if not name.startswith("_")]
    assert public == FIELDS[result]


@pytest.mark.parametrize("thing", [getattr(softlabel, name) for name in sorted(NAMES)], ids=sorted(NAMES))
def test_docstrings_say_what_is_returned_and_raised(thing):
    text = inspect.getdoc(thing)
    assert text
    if inspect.isfunction(thing):
        hints = {k: p.annotation for k, p in inspect.signature(thing).parameters.items()}
        assert inspect.Parameter.empty not in hints.values()
        for part in ("Returns\n", "Raises\n", *(("Parameters\n", "Examples\n") if hints else ())):
            assert part in text, part


STATE = """
import random, sys, warnings
import matplotlib, numpy as np, pandas as pd
def state():
    return (np.geterr(), np.get_printoptions(), [str(f) for f in warnings.filters], np.random.get_state()[1].tolist(),
            random.getstate(), dict(matplotlib.rcParams), pd.get_option("display.width"), pd.get_option("display.precision"),
            sys.getrecursionlimit())
before = state()
import softlabel, softlabel.book.claims, softlabel.datasets
names = ("err", "print options", "warnings", "numpy.random", "random", "matplotlib", "width", "precision", "recursion")
print([name for name, a, b in zip(names, before, state()) if a != b])
fit = softlabel.fit_logistic([[0.0], [1.0], [2.0], [3.0]], [[1, 6], [3, 4], [3, 4], [6, 1]])
fit.summary()
softlabel.estimate_alpha0([[7, 0], [6, 1], [2, 5]], [[0.8, 0.2], [0.6, 0.4], [0.5, 0.5]])
softlabel.simulate_relative_efficiency([2], [5], [10], n=100, n_sims=20, rng=0, n_jobs=1)
print([name for name, a, b in zip(names, before, state()) if a != b])
"""


def test_importing_and_using_it_changes_no_global_state():
    # SciPy and others may set filters of their own on import: they are imported first.
    first = "import scipy.optimize, scipy.stats, joblib, tqdm, yaml, pooch, rdata, sklearn.linear_model\n"
    done = subprocess.run(
        [sys.executable, "-c", first + STATE],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]
    assert done.stderr == ""
