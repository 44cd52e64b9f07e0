"""Reports on votes: right numbers, forms of input, errors that name the row, and a page that stands alone."""

import contextlib
import dataclasses
import functools
import json
import os
import re
import subprocess
import sys
from datetime import date
from html import unescape
from importlib.metadata import version
from itertools import combinations, permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sympy as sp
import yaml
from bs4 import BeautifulSoup
from conftest import ROOT
from matplotlib.figure import Figure
from scipy import integrate, stats
from scipy.special import expit, logit

import softlabel as sl
from softlabel import analyse_votes, belief, estimate_alpha0, fit_logistic, relative_efficiency, sample_probabilities
from softlabel.book.repository import site_address
from softlabel.book.studies import worth_coverage
from softlabel.efficiency import pooled_efficiency
from softlabel.labellers import dawid_skene
from softlabel.report import buying, figures, items, parts, penalised
from softlabel.report.agreement import agreement, without_features
from softlabel.report.command import main
from softlabel.report.html import TITLES
from softlabel.report.parts import CHAPTER, Interval
from softlabel.vote_models import share_in_band
from softlabel.worth import Estimate

COEF = np.array([0.3, 1.0, -0.5])


def simulate(n=120, m=5, alpha0=5.0, seed=0, bias=0.0, coef=COEF):
    """Features, a wide table of votes and the truth; annotators differ by ``bias`` (m,) on the probability of an item."""
    rng = np.random.default_rng(seed)
    items = pd.Index([f"i{j}" for j in range(n)], name="item")
    X = pd.DataFrame(rng.normal(size=(n, len(coef) - 1)), items, ["size", "shape"][: len(coef) - 1])
    tau = expit(coef[0] + X.to_numpy() @ coef[1:])
    p = sample_probabilities(np.column_stack([tau, 1 - tau]), alpha0, rng)[:, :1]
    positive = rng.random((n, m)) < np.clip(p + bias, 0, 1)
    wide = pd.DataFrame(np.where(positive, "yes", "no"), X.index, [f"a{k}" for k in range(m)])
    return X, wide, pd.Series((rng.random(n) < tau).astype(int), X.index, name="truth")


def counted(wide):
    return pd.DataFrame(count(wide).astype(int), wide.index, ["yes", "no"])


def as_long(wide, names=("item", "annotator", "label")):
    long = wide.rename_axis("item").reset_index().melt("item", var_name="annotator", value_name="label")
    return long.set_axis(names, axis=1)


def count(wide):
    return np.column_stack([(wide == "yes").sum(axis=1), (wide == "no").sum(axis=1)]).astype(float)


X, WIDE, TRUTH = simulate()
LONG = as_long(WIDE)
COUNTS = count(WIDE)
SEPARATED = WIDE.apply(lambda votes: np.where(X["size"] > 0, "yes", "no"))


@functools.cache
def the_report():
    return analyse_votes(LONG, X, positive="yes", truth=TRUTH)


def refused(words, votes=WIDE, features=X, positive="yes", **options):
    with pytest.raises(ValueError, match=words):
        analyse_votes(votes, features, positive=positive, **options)


SAVEFIG, COSTLY_DRAWS = Figure.savefig, belief.COSTLY_DRAWS


@pytest.fixture(autouse=True)
def light(monkeypatch):
    """Words and numbers are looked at here: pictures are made and not drawn, and few draws do for equal numbers of labels."""
    monkeypatch.setattr(Figure, "savefig", lambda *args, **options: None)
    monkeypatch.setattr(belief, "COSTLY_DRAWS", 40)


@pytest.fixture
def drawn(light, monkeypatch):
    """As a user has it."""
    monkeypatch.setattr(Figure, "savefig", SAVEFIG)
    monkeypatch.setattr(belief, "COSTLY_DRAWS", COSTLY_DRAWS)


# ------------------------------------------------------------------ Right numbers


def test_numbers_are_those_of_the_package():
    report, fit = the_report(), fit_logistic(X, COUNTS)
    tau = fit.posterior(X)
    np.testing.assert_allclose(report.fit.coef, fit.coef, rtol=1e-12)
    np.testing.assert_allclose(report.fit.stderr(), fit.stderr(), rtol=1e-12)
    assert report.alpha0 == pytest.approx(
        (estimate_alpha0(COUNTS, tau).alpha0, *sl.alpha0_interval(COUNTS, tau, X=X)), rel=1e-9
    )
    assert report.overdispersion == pytest.approx(tuple(sl.overdispersion_test(COUNTS, tau)), rel=1e-9)
    np.testing.assert_allclose(report.efficiency, relative_efficiency(5, np.array(report.alpha0)), rtol=1e-12)
    assert report.goodness_of_fit.share_in_band == share_in_band(COUNTS, tau, report.alpha0.value)
    np.testing.assert_allclose(report.items["posterior"], tau[:, 0], rtol=1e-12)
    s = COUNTS[:, 0].astype(int)
    np.testing.assert_array_equal(report.histogram["observed"], np.bincount(s, minlength=6))
    for name, alpha0 in (("expected", report.alpha0.value), ("independent votes", 1e9)):
        a, b = alpha0 * tau.T
        pmf = [stats.betabinom.pmf(k, 5, a, b).sum() for k in range(6)]
        np.testing.assert_allclose(report.histogram[name], pmf, rtol=1e-6)


@pytest.mark.parametrize("alpha0", [0.3, 5.0, np.inf])
def test_efficiency_of_unequal_votes_against_sandwich_and_fisher_information(alpha0):
    """The factor is that of H G^-1 H to I, item by item, with the Dirichlet-multinomial variance in G."""
    rng = np.random.default_rng(4)
    x = np.column_stack([np.ones(3000), rng.normal(size=(3000, 2))])
    tau = expit(x @ COEF)
    m = rng.permutation(np.repeat([1.0, 2.0, 7.0, 20.0], [1200, 900, 600, 300]))
    inflation = m * ((m + alpha0) / (1 + alpha0) if np.isfinite(alpha0) else 1)
    one, H, G = (x.T @ (x * (w * tau * (1 - tau))[:, None]) for w in (1, m, inflation))
    direct = (np.linalg.det(H @ np.linalg.solve(G, H)) / np.linalg.det(one)) ** (1 / 3)
    assert abs(pooled_efficiency(m, alpha0) / direct - 1) < 0.02
    if alpha0 < np.inf:  # negative: Theorem 2 at the mean number of votes is another number
        assert relative_efficiency(m.mean(), alpha0) / direct > 1.1


def test_no_interval_where_none_can_be_relied_on():
    """Below three items of the rarer class for each of three coefficients."""
    rarer = (COUNTS / 5).cumsum(axis=0).min(axis=1)
    near = [n for n in range(12, 120) if 8 < rarer[n - 1] < 10]
    assert rarer[near[0] - 1] < 9 <= rarer[near[-1] - 1]
    for n in near:
        report = analyse_votes(WIDE[:n], X, positive="yes")
        assert (report.alpha0[1:] != (0, np.inf)) == (rarer[n - 1] >= 9)
        assert any("Few items" in w and "none is given" in w for w in report.warnings)
    assert not any("Few items" in w for w in the_report().warnings)


def test_the_scatter_alone_gives_the_same_efficiency_where_the_model_holds():
    big, wide, _ = simulate(n=20_000, seed=5)
    report = analyse_votes(wide, big, positive="yes")
    assert abs(report.efficiency_direct / relative_efficiency(5, 5.0) - 1) < 0.03
    assert abs(report.efficiency.value / relative_efficiency(5, 5.0) - 1) < 0.03
    shifted = analyse_votes(wide, big * [1000, 0.01] + [5000, -3], positive="yes")
    np.testing.assert_allclose(shifted.efficiency_direct, report.efficiency_direct, rtol=1e-6)


def bought(m, alpha0, cost_item=1.0, cost_vote=1.0, **more):
    return buying.advice(buying.gains(np.full(3, float(m)), Interval(*[alpha0] * 3), cost_item, cost_vote, **more))


def in_favour_of_votes(m, alpha0, c0, c1):
    """One more vote pays as long as this is positive."""
    return alpha0 * c0 - c1 * m * (m + 1)


@pytest.mark.parametrize("alpha0", [1e-9, 0.5, 3.0, 12.0, 1e9])
def test_one_more_vote_pays_as_long_as_the_products_rule_says(alpha0):
    for c0, c1 in ((1, 1), (10, 1), (0.2, 1), (3, 7)):
        for m in range(1, 12):
            rule = in_favour_of_votes(m, alpha0, c0, c1)
            if abs(rule) > 1e-6 * c1:
                assert bought(m, alpha0, c0, c1) == ("more votes" if rule > 0 else "more items")


def test_best_number_of_votes_by_search():
    # The others lie where one more vote begins to pay.
    for alpha0 in [*np.geomspace(0.1, 300, 20), *(k * (k + 1) + 0.1 for k in range(1, 10))]:
        for c0, c1 in ((1.0, 1.0), (3.0, 2.0)):
            m = np.arange(1, 100)
            worth = relative_efficiency(m, alpha0) / (c0 + c1 * m)
            assert buying.best_votes(Interval(*[alpha0] * 3), c0, c1, np.inf) == (np.argmax(worth) + 1,) * 3


def test_one_more_vote_symbolically():
    """The rule, and the factor for any two numbers of votes."""
    m, a, c0, c1 = sp.symbols("m alpha0 c0 c1", positive=True)
    gain = (m + 1) * (m + a) / ((m + 1 + a) * m) - 1
    top = sp.numer(sp.together(gain - c1 / (c0 + c1 * m)))
    assert sp.expand(top - in_favour_of_votes(m, a, c0, c1)) == 0
    one, two, w = sp.symbols("m1 m2 w", positive=True)
    mean, square = ((1 - w) * one**r + w * two**r for r in (1, 2))
    meat = (1 - w) * one * (one + a) / (1 + a) + w * two * (two + a) / (1 + a)
    assert sp.simplify(mean**2 / meat - mean**2 * (1 + a) / (square + a * mean)) == 0


def test_other_rules_for_one_more_vote_fail():
    """Negative: each altered rule gives wrong advice somewhere."""
    cases = [(m, alpha0) for m in range(1, 6) for alpha0 in np.arange(0.25, 40)]
    advice = [bought(m, alpha0) == "more votes" for m, alpha0 in cases]
    assert advice == [m * (m + 1) < alpha0 for m, alpha0 in cases]
    for rule in (lambda m: m**2, lambda m: (m + 1) ** 2, lambda m: m * (m - 1), lambda m: m):
        assert advice != [rule(m) < alpha0 for m, alpha0 in cases]


def test_a_posterior_that_is_no_logistic_curve_breaks_the_condition():
    """Negative: five votes against one true label, by the sandwiches of both fits; one feature, log-odds bent by a square."""
    y = np.linspace(-7, 7, 2801)
    w, x, worth = stats.norm.pdf(y) * 0.005, np.column_stack([np.ones(2801), y]), relative_efficiency(5, 1.0)
    for bend, right in ((0.0, True), (3.0, False)):
        tau, b = expit(bend * (y - 0.5) ** 2 + y - 2), np.zeros(2)
        for _ in range(30):  # Newton's steps to the limit of both
            t = expit(x @ b)
            b = b + np.linalg.solve((x.T * (w * t * (1 - t))) @ x, x.T @ (w * (tau - t)))
        truth, votes = ((x.T * (w * (tau * (1 - tau) / k + (tau - t) ** 2))) @ x for k in (1, worth))
        found = np.linalg.eigvals(np.linalg.solve(votes, truth))
        assert (np.abs(found / worth - 1).max() < 1e-6) == right


def test_votes_asked_for_where_people_disagree_break_the_condition():
    """Negative: a third vote only after two that differ. Pooled votes are then biased; two votes of each item are not."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(200_000, 1))
    tau = expit(2 * x)
    p = sample_probabilities(np.column_stack([tau, 1 - tau]), 1.0, rng)[:, :1]
    votes = rng.random((len(x), 3)) < p
    asked = np.where(votes[:, 0] != votes[:, 1], 3, 2)
    adaptive = np.where(asked == 3, votes.sum(axis=1), 2 * votes[:, 0])
    slopes = {}
    samples = {"adaptive": (adaptive, asked), "two": (votes[:, :2].sum(axis=1), 2), "three": (votes.sum(axis=1), 3)}
    for name, (s, m) in samples.items():
        fit = fit_logistic(x, np.column_stack([s, m - s]))
        slopes[name] = (fit.coef[1] - 2) / fit.stderr()[1]
    assert slopes["adaptive"] < -8 and abs(slopes["two"]) < 4 and abs(slopes["three"]) < 4


@pytest.mark.parametrize("alpha0", [0.5, 5.0, np.inf])
def test_goodness_of_fit_by_enumeration(alpha0):
    """Mean and variance of each item's votes from SciPy's probabilities of all counts, unequal numbers of votes."""
    counts, tau = COUNTS.copy(), the_report().fit.posterior(X)
    counts[::3, 0] += 2
    m = counts.sum(axis=1).astype(int)
    law = [
        stats.binom(k, t) if alpha0 == np.inf else stats.betabinom(k, alpha0 * t, alpha0 - alpha0 * t)
        for k, t in zip(m, tau[:, 0])
    ]
    parted = np.array_split(np.argsort(tau[:, 0], kind="stable"), 10)
    sums = [[counts[g, 0].sum(), sum(law[j].mean() for j in g), sum(law[j].var() for j in g)] for g in parted]
    observed, expected, variance = np.transpose(sums)
    found = parts.goodness_of_fit(counts, tau, alpha0)
    np.testing.assert_allclose(found.calibration["expected"], expected, rtol=1e-9)
    np.testing.assert_allclose(found.calibration["stderr"], variance**0.5, rtol=1e-9)
    assert found.statistic == pytest.approx(((observed - expected) ** 2 / variance).sum(), rel=1e-9)
    assert found.pvalue == pytest.approx(stats.chi2.sf(found.statistic, 8), rel=1e-9)


def test_groups_of_the_goodness_of_fit_hold_their_level_and_see_a_missing_feature():
    pvalues = []
    for seed in range(200):
        x, wide, _ = simulate(seed=seed)
        counts = count(wide)
        tau = fit_logistic(x, counts).posterior(x)
        pvalues.append(parts.goodness_of_fit(counts, tau, estimate_alpha0(counts, tau).alpha0).pvalue)
    for level in (0.05, 0.2):
        assert stats.binomtest(int(np.sum(np.array(pvalues) < level)), 200, level).pvalue > 0.001
    big, wide, _ = simulate(n=2000, seed=1)
    curved = analyse_votes(wide, big.assign(size=np.exp(2 * big["size"])), positive="yes")  # the feature in another form
    assert curved.goodness_of_fit.pvalue < 1e-4 and any("do not follow" in w for w in curved.warnings)


def leaving_one_out(x, counts, coef):
    """Covariance of coefficients from residuals that each item would have in a step from a fit without it."""
    m, tau = counts.sum(axis=1), expit(x @ coef)
    w, residual = m * tau * (1 - tau), counts[:, 0] - m * tau
    scores = []
    for j in range(len(x)):
        others = np.arange(len(x)) != j
        without = np.linalg.inv((x[others].T * w[others]) @ x[others])
        scores.append(x[j] * residual[j] * (1 + w[j] * x[j] @ without @ x[j]))  # 1 / (1 - leverage), by Sherman and Morrison
    bread = np.linalg.inv((x.T * w) @ x)
    return bread @ np.transpose(scores) @ np.array(scores) @ bread


def test_truth_against_votes_as_a_difference_of_two_estimates():
    """A step from the votes' coefficients b by the true labels has covariance I^-1 + C; less what a multiple of b fits of it.

    The score test inverts neither I nor C; and no weighted least squares of the step on b is in it.
    """
    fit, tau = the_report().fit, the_report().fit.posterior(X)
    x, y = np.insert(X.to_numpy(), 0, 1, axis=1), TRUTH.to_numpy(float)
    y[:20] = np.nan
    known, p = ~np.isnan(y), tau[:, 0]
    inverse = np.linalg.inv((x[known].T * (p * (1 - p))[known]) @ x[known])
    step = inverse @ x[known].T @ (y - p)[known]
    root = np.linalg.cholesky(np.linalg.inv(inverse + leaving_one_out(x, COUNTS, fit.coef))).T
    _, statistic, *_ = np.linalg.lstsq((root @ fit.coef)[:, None], root @ step)
    found = parts.against_truth(fit, X, tau, COUNTS, y)
    assert found.statistic == pytest.approx(statistic.item(), rel=1e-8) and found.df == 2
    assert found.pvalue == pytest.approx(stats.f.sf(statistic.item() / 2, 2, 117), rel=1e-8)
    assert (found.n_items, found.accuracy) == (100, np.mean((p > 0.5)[known] == (y == 1)[known]))


def false_alarms(n, p, runs):
    """p-values of true labels from the posterior of the votes, all n of them; ten features matter."""
    pvalues = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        slopes = np.zeros(p)
        slopes[:10] = rng.normal(size=min(p, 10))
        x = pd.DataFrame(rng.normal(size=(n, p)))
        tau = expit(0.3 + x.to_numpy() @ (1.5 * slopes / np.linalg.norm(slopes)))
        counts = sl.sample_votes(np.column_stack([tau, 1 - tau]), 5, 5.0, rng).astype(float)
        fit = fit_logistic(x, counts)
        truth = (rng.random(n) < tau).astype(float)
        pvalues.append(parts.against_truth(fit, x, fit.posterior(x), counts, truth).pvalue)
    return np.array(pvalues)


@pytest.mark.parametrize(("n", "p", "runs"), [(400, 10, 100), (200, 60, 200)])
def test_true_labels_from_the_votes_posterior_seldom_raise_an_alarm(n, p, runs):
    """Nominal 1%. With all of U'V^-1 U and chi-square it was 43% with 60 features of 200 items, and without leverages 6%."""
    found = int((false_alarms(n, p, runs) < 0.01).sum())
    assert stats.binomtest(found, runs, 0.01, alternative="greater").pvalue > 0.005


def test_truth_against_votes():
    """Its level where votes are right or off scale; and a bias that all annotators share, seen by nothing else."""
    assert stats.kstest(false_alarms(400, 2, 100), "uniform").pvalue > 0.001
    x, wide, truth = simulate(n=400, bias=0.2)
    report = analyse_votes(wide, x, positive="yes", truth=truth)
    assert report.truth.pvalue < 1e-4 and any("no number of votes" in w for w in report.warnings)
    assert "leans" not in report.kinds and report.headline.use.startswith("Only together with true labels")
    x, wide, truth = simulate(n=400, seed=2, bias=np.array([0, 0, 0, 0, 0.25]))
    leaning = analyse_votes(wide, x, positive="yes")
    assert any("'a4' says yes more often" in w for w in leaning.warnings) and "Ask 'a4'" in leaning.headline.next


# ------------------------------------------------------------------ What true labels say of the votes


def told(report):
    """What a reader of the console reads, and what one of the page reads."""
    return repr(report), BeautifulSoup(report.to_html(), "html.parser").get_text(" ")


def test_some_true_labels_say_what_the_votes_are_worth():
    some = TRUTH.sample(40, random_state=1)
    report, truth = analyse_votes(LONG, X, positive="yes", truth=some), some.reindex(X.index)
    worth = sl.worth_of_votes(X, COUNTS, truth, level=0.95, rng=0)
    names = ["error", "lean", "scale", "tilt", "floor", "equal_number"]
    for name in names:  # the last rests on interpolation, to which the last digits of a library matter more
        near = pytest.approx(tuple(getattr(worth, name)), rel=1e-6 if name == "equal_number" else 1e-9)
        assert getattr(report.worth, name) == near, name
    assert (report.worth.n_truths, report.worth.n_items, report.worth.level) == (40, 120, 0.95)
    rows = ["error of the votes' rule", "lean", "scale", "tilt", "floor", "equal number of true labels"]
    np.testing.assert_array_equal(report.table().loc[rows], [getattr(report.worth, name) for name in names])
    value, low, high = worth.error
    number = " to ".join(f"{float(f'{x:.2g}'):,.0f}" for x in worth.equal_number[1:])
    for words in ("By 40 true labels", f"wrong on {value:.1%} ({low:.1%} to {high:.1%})"):
        assert words in report.headline.use
    formula = report.headline.worth
    assert f"({number}) true labels" in formula
    np.testing.assert_allclose(report.promised, 120 * relative_efficiency(5, np.array(report.alpha0)), rtol=1e-12)
    assert "If the mean of the votes were right" in formula and str(report.promised) in formula
    assert "do not rule out so much; so few often could not" in formula
    for text in told(report):
        assert "fit_votes_and_truth" in text and "Votes cannot tell" not in text
    assert {f"{CHAPTER}#one-rule", f"{CHAPTER}#lean-scale-tilt"} < set(hrefs(report.to_html()))


def test_ten_annotators_or_more_are_taken_as_a_sample_of_annotators():
    """Each has a taste; each item has three of the twelve, the last ten items have none, and one vote is there twice."""
    rng = np.random.default_rng(3)
    x, wide, truth = simulate(n=200, m=12, bias=rng.uniform(-0.3, 0.3, 12), seed=6)
    wide = wide.where(rng.permuted(np.tile(np.arange(12) < 3, (200, 1)), axis=1))[:190]
    long = as_long(wide).dropna().sample(frac=1, random_state=1)
    truth = truth.where(np.arange(200) % 2 == 0)
    report = analyse_votes(pd.concat([long, long[:1]]), x.sample(frac=1, random_state=2), positive="yes", truth=truth[:60])
    given = x.loc[report.items.index[report.items["status"] == "used"]]
    who, counts = long.assign(label=(long["label"] == "yes").astype(int)), count(wide.loc[given.index])
    common = {"truth": truth[:60].reindex(given.index), "level": 0.95, "rng": 0}
    worth = sl.worth_of_votes(given, counts, votes=who, **common)
    for name in ("error", "lean", "scale", "tilt", "floor", "equal_number"):
        assert getattr(report.worth, name) == pytest.approx(tuple(getattr(worth, name)), rel=1e-6), name
    fixed = sl.worth_of_votes(given, counts, **common)
    assert worth.equal_number.value < fixed.equal_number.value
    fewer = analyse_votes(long[~long["annotator"].isin(["a0", "a1", "a2"])], x, positive="yes", truth=truth[:60])
    assert not any("annotators: how much" in text for text in fewer.warnings)


def test_without_true_labels_the_worth_is_said_to_hold_only_if_the_mean_is_right():
    report = analyse_votes(LONG, X, positive="yes")
    assert report.worth is None and not report.refuted and "lean" not in report.table().index
    for text in told(report):
        assert "If the mean of the votes is right, the votes on an item are worth" in text
        for words in ("three real data sets", "some 50", "from 50 to more than 400", "choose_for_truth", "no sharp worth"):
            assert words in text
    assert f"{CHAPTER}#few-truths" in hrefs(report.to_html())
    assert told(analyse_votes(LONG, X, positive="yes", truth=TRUTH * np.nan))[0].count("Votes cannot tell") == 1


def test_what_is_said_of_three_real_data_sets_is_what_the_study_found():
    """All votes beside votes with the right mean on the same items, which obey the formula; with two standard errors."""
    study = pd.read_csv(ROOT / "book" / "studies" / "real_votes.csv", comment="#").query("not annotators")
    study = study[study["m"] == study.groupby("name")["m"].transform("max")].assign(set=study["name"].str.split(",").str[0])
    study["se"] = np.hypot(study["re_se"], study["re_se_items"])
    real, right = (study[study["simulated"] == kind].set_index(["n", "set", "name"]) for kind in (False, True))
    share = (real["re"] + 2 * real["se"]) / (right["re"] - 2 * right["se"])
    less = share[100].groupby("set").min()
    assert len(less) == 3 and less.max() < 1 and share[400]["recidivism"].min() < 0.1


def test_what_is_said_of_how_many_true_labels_refute_is_what_the_study_found():
    """The fewest, of those tried, by which a false worth was refuted in half of the draws."""
    study = pd.read_csv(ROOT / "book" / "studies" / "worth_coverage.csv", comment="#").query(
        "design == 'random' and not simulated"
    )
    share = study.groupby(["name", "k"])["refuted"].sum() / (study["seed"].nunique() * worth_coverage.DRAWS)
    takes = share[share > 0.5].reset_index("k").groupby("name")["k"].min()
    assert takes.min() == 50 and takes.median() == 200 and share.index.levels[1].max() == 400
    assert len(takes) == 3 and len(share.unstack()) == 4  # on one of the four sets 400 were too few


def hrefs(html):
    return [link["href"] for link in BeautifulSoup(html, "html.parser").find_all("a")]


def test_numbers_in_words_by_hand():
    nothing = dict.fromkeys([(0, np.inf), (np.inf, np.inf)], "no interval")
    for ends, words in {(1.234, 5.678): "1.23 to 5.68", (1.234, np.inf): "at least 1.23", **nothing}.items():
        assert Interval(2, *ends).ends() == words and str(Interval(2, *ends)) == f"2 ({words})"
    assert parts.in_percent((0.1234, 0.0456, 0.3)) == "12.3% (4.6% to 30.0%)"
    assert str(parts.to_decimals((-0.004, -1.236, 0.5))) == "0 (-1.24 to 0.5)"
    for number, rounded, words in (
        ((12.34, 3.21, 456), (12, 3.2, 460), "12 (3.2 to 460)"),
        ((1234, 98.7, 2e6), (1200, 99, np.inf), "1,200 (at least 99)"),
        ((4, 4, 4.04), (4, 4, 4), "at most 4"),
        ((4, 4, 5), (4, 4, 5), "4 (4 to 5)"),
        ((3e7, 2.34e5, 5e7), (np.inf, 2.3e5, np.inf), "at least 230,000"),
    ):
        worth = SimpleNamespace(equal_number=number)
        assert parts.equal_number(worth) == rounded and parts.equal_number_in_words(worth, 3) == words


@functools.cache
def leaning(shift, scale=1, n=3000, k=600, **options):
    """Votes whose log-odds are ``scale`` times the right ones and ``shift``, and k true labels; one feature matters."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(n, 2)), columns=["size", "shape"]).rename_axis("item")
    eta = 1.5 * x["size"].to_numpy()
    yes = rng.random((n, 3)) < expit(scale * eta + shift)[:, None]
    truth = pd.Series((rng.random(n) < expit(eta)).astype(float)).where(np.arange(n) < k)
    return analyse_votes(pd.DataFrame(yes, x.index), x, positive=True, truth=truth, **options)


def test_votes_that_lean_are_found_out_and_no_advice_rests_on_the_formula():
    """Floor and error by quadrature over eta, normal with standard deviation 1.5: the votes' limit says yes above -1."""
    density = stats.norm(scale=1.5).pdf
    floor = integrate.quad(lambda eta: (1 - 2 * expit(eta)) * density(eta), -1, 0)[0]
    bayes = 2 * integrate.quad(lambda eta: expit(eta) * density(eta), -np.inf, 0)[0]
    report = leaning(1.0)
    found = report.worth
    assert found.lean.low < -1 < found.lean.high < 0 and found.scale.low < 1 < found.scale.high
    assert 0 < found.floor.low < floor < found.floor.high and found.error.low < floor + bayes < found.error.high
    assert report.refuted and found.equal_number.high < len(report.used) < report.promised.low
    assert "the mean of the votes leans" in " ".join(report.warnings)
    for text in told(report):
        assert "the true labels, if of items drawn at random, rule out so much" in text
        assert "There is no advice to buy votes or items" in text and "buy more" not in text


def test_votes_whose_mean_is_right_keep_their_promise():
    """Three votes of which each is a true label of its own are worth three."""
    report = leaning(0.0)
    found = report.worth
    assert not report.refuted and found.floor.low == 0 and found.lean.low <= 0 <= found.lean.high
    assert found.equal_number.low < 9000 < found.equal_number.high
    assert "drawn at random, do not rule out so much." in repr(report) and "buy more" in repr(report)


def test_votes_off_scale_alone_are_not_called_wrong():
    """Over-confident votes lead to right decisions; by the score of all coefficients they were "biased", p below 1e-4."""
    report = leaning(0.0, scale=2, n=2000, k=300)
    assert not report.refuted and report.truth.pvalue > 0.01 and report.warnings == ()
    known = report.used[report.used["truth"].notna()]
    calibration = fit_logistic(logit(known[["posterior"]]), known["truth"])
    assert abs(report.worth.scale.value - calibration.coef[1]) < calibration.stderr()[1] and report.worth.scale.high < 1
    assert "too extreme: that spoils probabilities, but by itself" in repr(report) and "do not rule out so much" in repr(
        report
    )


def test_votes_that_go_against_the_true_labels_are_not_called_harmless():
    """A negative factor keeps the direction of the coefficients and turns every decision round."""
    report = analyse_votes(LONG, X, positive="yes", truth=1 - TRUTH)
    assert report.inverted and not report.trusted and report.advice == "none" and not the_report().inverted
    assert report.headline.use.startswith("Not as they are. The votes go against the true labels")
    assert any("go against the true labels" in text for text in report.warnings) and "by itself" not in repr(report)
    few = analyse_votes(LONG, X, positive="yes", truth=(1 - TRUTH)[:40])
    assert few.worth.scale.low < 0 < few.worth.scale.high < 1 and not few.inverted and "by itself" not in repr(few)
    assert "too extreme, or even go against the true labels" in repr(few)


def test_a_truth_that_levels_off_like_the_votes_is_not_called_wrong():
    """Votes and truth of one and the same probability, never near 0 or 1: their mean is right and no logistic regression."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(2000, 2)), columns=["size", "shape"]).rename_axis("item")
    p = 0.15 + 0.7 * expit(x.to_numpy() @ [4.0, 1])
    votes = pd.DataFrame(rng.random((2000, 5)) < p[:, None], x.index)
    truth = pd.Series((rng.random(2000) < p).astype(int), x.index)[:600]
    report, seen = (analyse_votes(votes, x, positive=True, truth=known) for known in (None, truth))
    assert report.mean_doubted and report.trusted and report.advice == "none"
    assert "guess, or see what the features do not. Only true labels tell which" in report.headline.use
    assert report.headline.worth.startswith("If the mean of the votes is right")
    for text in told(report):
        assert "mean is wrong" not in text and "their gains rest on a logistic regression, which" in text
        assert "when the table has been mended" not in text
    assert seen.worth.lean.low <= 0 <= seen.worth.lean.high and not seen.refuted  # no reason to call it wrong


@pytest.mark.parametrize("k", [1, 20, 120])
def test_gains_with_true_labels_take_these_as_in_hand_and_the_votes_for_what_they_say(k):
    report = the_report() if k == 120 else analyse_votes(LONG, X, positive="yes", truth=TRUTH[:k])
    ceiling = {"n_truths": k, "equal": Interval(*report.worth.equal_number)}
    gained = buying.gains(np.full(120, 5.0), report.alpha0, 1.0, 1.0, **ceiling)
    pd.testing.assert_frame_equal(report.spending, buying.spending(gained))
    advice, page = report.headline.next, told(report)[1]
    assert "If the mean is right" not in advice and "if the mean of the votes is right; an" not in page
    assert "For the price" in advice and "as true labels tell the mean of the votes; an item" in page


def test_why_truth_was_not_held_against_the_votes():
    report = analyse_votes(LONG, X, positive="yes", truth=TRUTH[:1])
    assert report.truth.lacks.startswith("one true label, or several")
    assert not re.search(r"\b1 (true labels|items|votes|annotators|coefficients)\b", " ".join(told(report)))


@pytest.mark.parametrize("drawn", ["at random", "by class"])
def test_true_labels_that_are_no_random_sample(drawn):
    """Right votes, a rare class, and as many true labels of either: "these show that the mean is wrong", and nothing else."""
    rng = np.random.default_rng(3)
    x = pd.DataFrame(rng.normal(size=(1500, 2)), columns=["size", "shape"]).rename_axis("item")
    tau = expit(x.to_numpy() @ [1.5, -1] - 3)
    votes = pd.DataFrame(rng.random((1500, 4)) < tau[:, None], x.index)
    truth = pd.Series((rng.random(1500) < tau).astype(int), x.index)
    known = truth.sample(100, random_state=2) if drawn == "at random" else truth.groupby(truth).sample(50, random_state=2)
    report = analyse_votes(votes, x, positive=True, truth=known)
    assert (report.unlike < 0.01) == (drawn == "by class") == any("unlike the others" in text for text in report.warnings)
    assert report.refuted == (drawn == "by class")
    for text in (*told(report), report.to_json(), report.methods):
        assert ", if of items drawn at random," in text
    assert ", if of items drawn at random," not in told(the_report())[0]
    values, some = pd.Series([1.0, 2, 2, 3, 9, 10]), pd.Series([True, False, False, False, True, True])
    means = [values.rank()[list(k)].mean() for k in combinations(range(6), 3)]
    z = (values.rank()[some].mean() - np.mean(means)) / np.std(means)  # of all samples there can be
    assert parts.unlike(values, some) == pytest.approx(2 * stats.norm.sf(abs(z)))


def test_what_is_not_seen_is_not_said_to_be_nothing():
    """Where a lean of 0 has nearly all of the posterior, both ends of its interval are 0."""
    none = Estimate(0.0, 0.0, 0.0)
    report = the_report()
    report = dataclasses.replace(report, worth=dataclasses.replace(report.worth, lean=none, tilt=none, floor=none))
    for text in (*told(report), repr(report.worth)):
        assert "0 to 0)" not in text and "none seen" in text
    assert "What is not seen may still be there" in repr(report) and "may still" not in repr(the_report())


BAD_TRUTH = {
    "few": (WIDE, X, TRUTH[:20], "only 9 true labels of the negative class"),
    "one class": (WIDE, X, TRUTH[TRUTH == 1], "no true label of the negative class"),
    "one": (WIDE, X, TRUTH[:1], "By 1 true label,"),
    "no votes": (WIDE[:60], X, TRUTH[40:], "60 true labels in truth are on items without votes"),
    "separated": (WIDE, X, (X["size"] > 0).astype(int), "the features separate the true labels"),
    "lacking features": (WIDE[:60], X[:70].reindex(X.index), TRUTH[60:], "lack a feature, not used: 50"),
    "nothing left": (WIDE[:60], X[:60].reindex(X.index), TRUTH[60:], "lack a feature, not used: 60"),
    "votes separated": (SEPARATED, X, TRUTH, "not tested, because the features separate the votes"),
    "both separated": (SEPARATED, X, (X["size"] > 0) * 1, "That cannot be told with"),
    "far off": (WIDE, X.assign(far=np.r_[1e6, np.arange(119)]), TRUTH, "too far from all others, for 4 coefficients"),
    "inverted": (WIDE.replace({"yes": "no", "no": "yes"}), X, TRUTH, "worth at most 4 true labels"),
    "one feature": (WIDE, X[["size"]], TRUTH, "as there is one feature"),
    "one vote": (WIDE[["a0"]], X, TRUTH, "votes would be worth one true label each"),
    "more truths than votes": (WIDE[:8], X, TRUTH, "whether labels mean anything, as votes are too few to tell"),
}


@pytest.mark.parametrize("votes, features, truth, words", BAD_TRUTH.values(), ids=list(BAD_TRUTH))
def test_an_answer_from_doubtful_truth_has_its_reservation(votes, features, truth, words):
    """Nor do warnings of the package or of NumPy, here errors, reach the user."""
    report = analyse_votes(votes, features, positive="yes", truth=truth)
    for text in told(report):
        assert words in text
        assert not re.search(r"\b(nan|inf|infinite to|None)\b", text.replace("None found", ""))
    figures.worth(report).figure.draw_without_rendering()
    assert report.worth is None or all(text in " ".join(report.warnings) for text in report.worth.reservations)
    assert not report.refuted or report.worth.reservations == () or "if one sets the reservations aside" in repr(report)
    if report.truth:
        assert np.isnan(report.truth.pvalue) == bool(report.truth.lacks) == ("not tested" in " ".join(report.warnings))
        assert report.truth.lacks in " ".join(report.warnings)


# ------------------------------------------------------------------ Items, features and votes together


def by_quadrature(f, s, m, tau, alpha0):
    """Mean of f(p) given s of m votes: p is beta beforehand."""
    law = stats.beta(alpha0 * tau, alpha0 * (1 - tau)).pdf

    def weight(p):
        return law(p) * p**s * (1 - p) ** (m - s)

    at = sorted({0.5, tau, (s + 1) / (m + 2)})

    def integral(g):
        return sum(integrate.quad(lambda p: g(p) * weight(p), *ends)[0] for ends in zip([0, *at], [*at, 1]))

    return integral(f) / integral(np.ones_like)


@pytest.mark.parametrize("alpha0", [1.5, 5.0, 40.0])
def test_an_item_given_its_votes_by_quadrature(alpha0):
    s, m, tau = (np.array(x, float) for x in zip((0, 1, 0.3), (3, 4, 0.5), (2, 7, 0.8), (9, 10, 0.6), (5, 5, 0.9)))
    counts, both = np.column_stack([s, m - s]), np.column_stack([tau, 1 - tau])
    frame = items.describe(counts, both, Interval(alpha0, alpha0 / 2, 2 * alpha0), pd.RangeIndex(5))
    right = {
        "given votes": [by_quadrature(lambda p: p, *row, alpha0) for row in zip(s, m, tau)],
        "most": [by_quadrature(lambda p: 1.0 * (p > 0.5), *row, alpha0) for row in zip(s, m, tau)],
        "disagreement": [by_quadrature(lambda p: 2 * p * (1 - p), *row, alpha0) for row in zip(s, m, tau)],
    }
    for name, values in right.items():
        np.testing.assert_allclose(frame[name], values, rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(frame["doubt"], np.minimum(right["most"], 1 - np.array(right["most"])), rtol=1e-5)
    ends = np.sort([[(a * t + k) / (a + n) for k, n, t in zip(s, m, tau)] for a in (alpha0 / 2, 2 * alpha0)], axis=0)
    np.testing.assert_allclose(frame[["low", "high"]].T, ends)
    for wrong in (s / m, tau, (alpha0 * tau + s) / (alpha0 + m + 1), (tau + alpha0 * s) / (1 + alpha0 * m)):  # negative
        assert np.abs(wrong - frame["given votes"]).max() > 0.01


def test_items_at_the_ends_of_alpha0():
    counts, tau = np.array([[3.0, 0], [1, 2], [0, 1]]), np.array([[0.3, 0.7], [0.6, 0.4], [0.5, 0.5]])
    independent = items.describe(counts, tau, Interval(np.inf, 5, np.inf), pd.RangeIndex(3))
    np.testing.assert_array_equal(independent["given votes"], tau[:, 0])  # votes say nothing that features do not
    np.testing.assert_allclose(independent["most"][:2], [0, 1], atol=1e-12)
    np.testing.assert_allclose(independent["disagreement"], 2 * tau.prod(axis=1), rtol=1e-6)
    copies = items.describe(counts, tau, Interval(0.0, 0, 1), pd.RangeIndex(3))
    np.testing.assert_allclose(copies["given votes"], [1, 1 / 3, 0], atol=1e-8)
    unknown = items.describe(counts, tau, Interval(np.nan, 0, np.inf), pd.RangeIndex(3))
    assert unknown[["given votes", "doubt", "relabel"]].isna().all(axis=None)
    assert (unknown["high"] - unknown["low"]).max() == 0.7


def test_the_item_to_label_again_first_is_the_one_that_a_vote_would_settle():
    """Of 50 votes 25 to 25 is contested, and another vote settles it less than one at 1 to 1; 4 to 0 needs none."""
    counts, tau = np.array([[25.0, 25], [1, 1], [4, 0], [30, 20]]), np.full((4, 2), 0.5)
    frame = items.describe(counts, tau, Interval(1.0, 0.5, 2), pd.Index(["contested", "open", "settled", "leading"]))
    assert frame.sort_values("relabel").index.tolist() == ["open", "contested", "leading", "settled"]
    assert frame["disagreement"].idxmax() == "contested"


@pytest.mark.parametrize("tau1", [0.5, 0.8])
@pytest.mark.parametrize("votes", [(25, 25), (1, 1), (4, 0), (1, 2), (0, 3), (30, 20)])
def test_what_one_more_vote_is_good_for_by_enumeration(votes, tau1):
    """At tau = .8 with votes 1 to 2 the likelier verdict changes with a yes, and a yes is not as likely as a no."""
    counts, tau = np.array([votes], float), np.array([[tau1, 1 - tau1]])

    def most(s, r):
        return stats.beta.sf(0.5, tau1 + s, 1 - tau1 + r)

    assert items.majority(counts, tau, 1.0)[0] == pytest.approx(most(*votes), rel=1e-9)
    s, r = votes
    yes = (tau1 + s) / (1 + s + r)
    now, if_yes, if_no = (max(p, 1 - p) for p in (most(s, r), most(s + 1, r), most(s, r + 1)))
    expected = yes * if_yes + (1 - yes) * if_no - now
    assert items.gain_of_a_vote(counts, tau, 1.0)[0] == pytest.approx(expected, abs=1e-12)


# ------------------------------------------------------------------ What to do next


UNEQUAL = np.array([1.0] * 9 + [50.0])


def test_weights_make_up_for_unequal_numbers():
    """Nine items in ten have one vote and one has fifty: pooled .257 of a true label an item, weighted 1.00 (alpha0 = 1)."""
    assert buying.weighted_efficiency(np.array([1.0, 9.0]), 2.0) == pytest.approx(3 * (1 / 3 + 9 / 11) / 2)
    assert buying.weighted_efficiency(UNEQUAL, 1.0) == pytest.approx(1.0961, abs=1e-4)
    assert efficiency_of(UNEQUAL, 1.0, np.ones(10)) == pytest.approx(pooled_efficiency(UNEQUAL, 1.0), rel=1e-12)
    rng = np.random.default_rng(0)
    for alpha0 in (0.2, 1.0, 8.0):
        best = efficiency_of(UNEQUAL, alpha0, (1 + alpha0) / (UNEQUAL + alpha0))
        assert best == pytest.approx(buying.weighted_efficiency(UNEQUAL, alpha0), rel=1e-12)
        assert all(efficiency_of(UNEQUAL, alpha0, rng.exponential(size=10)) < best for _ in range(100))
    assert buying.weighted_efficiency(UNEQUAL, np.inf) == 5.9 and buying.weighted_efficiency(UNEQUAL, 0.0) == pytest.approx(1)


def efficiency_of(m, alpha0, weight):
    """Worth of an item with any weights, by the sandwich: E[aM]^2 / E[a^2 phi M]."""
    phi = (m + alpha0) / (1 + alpha0)
    return np.mean(weight * m) ** 2 / np.mean(weight**2 * phi * m)


def test_the_free_remedy_comes_first():
    x, wide, _ = simulate(1000, 50, alpha0=1.0, seed=1)
    m = np.where(np.arange(1000) % 10, 1, 50)
    asked = np.random.default_rng(0).permuted(np.arange(50) < m[:, None], axis=1)  # nobody is the one who votes on all
    report = analyse_votes(wide.where(asked), x, positive="yes")
    assert report.use_weights and report.headline.next.startswith("Weigh items by 1 / phi")
    phi = (m + report.alpha0.value) / (1 + report.alpha0.value)
    np.testing.assert_allclose(report.items["weight"], 1 / phi)
    np.testing.assert_allclose(report.weighted.value, np.mean(m / phi))
    gain = buying.gains(m.astype(float), report.alpha0, 1.0, 1.0, weighted=True)
    pd.testing.assert_frame_equal(report.spending, buying.spending(gain))
    assert not the_report().use_weights and "phi" not in the_report().headline.next


@pytest.mark.parametrize("ceiling", [20.0, 400.0, np.inf])
def test_gains_with_a_ceiling_are_those_of_the_budget_s_chapter(ceiling):
    """Against split_budget: all into votes for the money of so many items is worth W / (1 + W / ceiling)."""
    n, m, alpha0 = 60, 2, 3.0
    promised = n * relative_efficiency(m, alpha0)
    equal = promised / (1 + promised / ceiling)
    known = {"cost_truth": 4.0, "n_truths": 10, "equal": Interval(*[equal] * 3)}
    found = buying.gains(np.full(n, float(m)), Interval(*[alpha0] * 3), 2.0, 1.0, **known)[0]
    kwargs = {"cost_item": 2.0, "cost_vote": 1.0, "cost_truth": 4.0, "alpha0": alpha0, "ceiling": ceiling}
    with_items = sl.split_budget(budget=(n + n / 4) * 4.0, **kwargs).all_votes  # the best design may have other m
    assert 10 + with_items >= (1 + found[buying.ITEMS]) * (10 + equal) * (1 - 1e-12)
    more = n * relative_efficiency(m + 1, alpha0)
    assert found[buying.VOTE] == pytest.approx((10 + 1 / (1 / more + 1 / ceiling)) / (10 + equal) - 1)
    wider = promised * 5 / 4
    assert found[buying.ITEMS] == pytest.approx((10 + 1 / (1 / wider + 1 / ceiling)) / (10 + equal) - 1)
    assert found[buying.LABELS] == pytest.approx((n / 4) / (10 + equal))
    assert bought(m, alpha0, 2.0, 1.0, cost_truth=4.0, equal=Interval(*[equal] * 3)) in ("true labels", "more items")


def test_weights_change_what_votes_promise_and_not_their_ceiling():
    """The equal number is that of pooled votes; if it is all that these promise there is no ceiling."""
    m, alpha0 = np.where(np.arange(400) < 60, 20.0, 1.0), 1.4
    promised = 400 * pooled_efficiency(m, alpha0)
    weighted, more = (400 * (1 + alpha0) * np.mean(k / (k + alpha0)) for k in (m, m + 1))
    for equal, ceiling in ((promised, np.inf), (0.6 * promised, 1.5 * promised)):
        known = {"n_truths": 134, "equal": Interval(*[equal] * 3), "cost_truth": 3.0}
        found = buying.gains(m, Interval(*[alpha0] * 3), 2.0, 1.0, weighted=True, **known)[0]
        now, then = (134 + w / (1 + w / ceiling) for w in (weighted, more))
        assert found[buying.VOTE] == pytest.approx(then / now - 1) and found[buying.LABELS] == pytest.approx(400 / 3 / now)


@pytest.mark.parametrize("known, price, bought", [(120, 1.0, None), (100, 1.0, 20), (0, 0.001, 120), (100, 12.0, 10)])
def test_no_more_true_labels_are_bought_than_items_have_none(known, price, bought):
    truth = TRUTH[:known] if known else None
    report = analyse_votes(LONG, X, positive="yes", truth=truth, cost_truth=price)
    assert (buying.LABELS in report.spending.index) == (bought is not None)
    assert "buy true labels" not in report.headline.next or bought
    if bought:
        now = known + report.worth.equal_number.value if known else report.promised.value
        assert report.spending.loc[buying.LABELS, "gain"] == pytest.approx(bought / now)


def test_true_labels_are_bought_where_votes_have_reached_their_ceiling():
    """Votes that lean are worth at most some tens of true labels: labels at any price beat them, and without a price none."""
    priced = leaning(1.0, cost_truth=3.0)
    assert priced.advice == "true labels" and "buy true labels" in priced.headline.next
    gain = priced.spending["gain"]
    assert gain[buying.LABELS] == pytest.approx(1000 / (600 + priced.worth.equal_number.value))
    assert gain[buying.VOTE] < 0.02 and gain[buying.ITEMS] < 0.02
    assert leaning(1.0).advice == "none" and leaning(0.0, cost_truth=1e6).advice == "more votes"


def test_no_number_of_votes_is_infinite():
    """For independent votes the formula would have ever more votes on ever fewer items, which chapter 8 calls meaningless."""
    alpha0 = Interval(np.inf, 20.0, np.inf)
    assert buying.best_votes(alpha0, 1.0, 1.0, 12.0) == (12, 4, 12)
    assert buying.best_votes(alpha0, 0.0, 1.0, 12.0) == (1, 1, 1)
    x, votes, _ = simulate(400, 3, np.inf, coef=np.array([0, 1.0, -1]))
    report = analyse_votes(votes, x, positive="yes")
    assert report.alpha0.high == np.inf and np.isfinite(report.best_votes).all()
    most, items = report.most_votes
    assert report.best_votes.high == most == np.floor(1600 / items - 1)
    assert f"the most that it pays for on {items} items is {most:.0f}" in report.to_html()
    share = (votes == "yes").to_numpy().mean()
    assert report.min_items == np.ceil(30 / min(share, 1 - share)) and report.best_votes.value <= 1600 / report.min_items


# ------------------------------------------------------------------ Tables that should not be believed


def swapped(wide, *who):
    return wide.assign(**{name: wide[name].map({"yes": "no", "no": "yes"}) for name in who})


def third_vote_on_disagreement():
    x, wide, _ = simulate(n=600, m=3, alpha0=1.0, seed=4)
    return x, wide.assign(a2=wide["a2"].where(wide["a0"] != wide["a1"]))


def coins():
    return simulate(500, alpha0=np.inf, coef=np.zeros(3))[:2]


def one_reversed(m=5):
    x, wide, _ = simulate(600, m)
    return x, swapped(wide, "a1")


def a_vote_among_the_features():
    x, wide, _ = simulate(600)
    return x.assign(leak=(wide["a0"] == "yes") * 1.0), wide


BAD = {
    "one of two reversed": ("contradiction", lambda: one_reversed(2), "contradict"),
    "one of five reversed": ("reversed", one_reversed, "turn those votes round"),
    "third vote on disagreement": ("asked again", third_vote_on_disagreement, "first votes of every item"),
    "coins": ("no sign", coins, "Buy nothing"),
    "a vote among the features": ("vote as feature", a_vote_among_the_features, "Leave out the feature 'leak'"),
}


def test_counted_votes_are_examined_as_far_as_that_goes():
    """The same coins: listed "there is no sign", counted "worth 4 true labels, buy more votes"."""
    features, votes = coins()
    report = analyse_votes(counted(votes), features, positive="yes", count_columns=["yes", "no"])
    truth = (features.iloc[:150, 0] > 0).map({True: "yes", False: "no"})
    listed = analyse_votes(votes, features, positive="yes", truth=truth)
    assert report.kinds == {"no sign"} and report.advice == "none" and report.annotators.empty
    assert report.findings.findings[0].pvalue == pytest.approx(listed.findings.findings[0].pvalue, abs=0.02)
    for text in told(report):
        assert "Buy nothing" in text and "Not looked at: annotators, as votes came counted" in text
    assert repr(report.findings).startswith("2,500 votes on 500 items:") and "Annotators were" not in report.methods
    known = listed.headline.worth
    assert known.startswith("Nothing that votes can show. By 150 true labels, if") and "right" not in known


@pytest.mark.parametrize("kind, make, remedy", BAD.values(), ids=list(BAD))
def test_a_bad_table_is_named_and_nothing_is_advised_to_be_bought(kind, make, remedy):
    """Two annotators of whom one is reversed were worth two true labels each, with "buy more votes"; so were coins."""
    features, votes = make()
    report = analyse_votes(votes, features, positive="yes")
    assert kind in report.kinds and report.advice == "none"
    assert report.headline.use.startswith(("Not as they are", "No: there is no sign"))
    for text in told(report):
        assert "buy more" not in text and remedy in text and "left out of what follows" not in text
    assert ("Nothing that is free" in told(report)[1]) <= (kind != "no sign")
    assert "worth" not in report.headline.worth and "true labels" not in report.headline.worth
    assert any(finding.text in report.warnings for finding in report.findings.findings)


def test_an_honest_table_has_no_doubt():
    x, wide, _ = simulate(n=600, seed=2)
    for votes, columns in ((wide, ()), (counted(wide), ["yes", "no"])):
        report = analyse_votes(votes, x, positive="yes", count_columns=columns)
        assert report.warnings == () and report.trusted and report.advice in ("more items", "more votes", "either")


def test_an_interval_is_never_one_point():
    """A rare class, two votes, alpha0 = 3: "infinite (infinite to infinite)"; four unanimous items: "0 (0 to 0)"."""
    held = []
    for seed in range(40):
        x, votes, _ = simulate(100, 2, 3.0, seed, coef=np.array([-3, 1.0]))
        report = analyse_votes(votes, x, positive="yes")
        assert report.alpha0.low < report.alpha0.high and report.efficiency.low < report.efficiency.high
        assert not report.alpha0_lacks or "no closer interval" in report.headline.worth or report.kinds
        held.append(report.alpha0.low <= 3 <= report.alpha0.high)
    assert stats.binomtest(sum(held), 40, 0.95, alternative="less").pvalue > 0.01
    four = pd.DataFrame({"a": ["yes", "no", "yes", "no"], "b": ["yes", "no", "yes", "no"]}).rename_axis("item")
    report = analyse_votes(four, pd.DataFrame({"size": [1.0, 2, 3, 1.5]}).rename_axis("item"), positive="yes")
    assert report.alpha0[1:] == (0, np.inf) and "fewer than 3 for each" in report.alpha0_lacks and "buy" not in repr(report)


@pytest.mark.parametrize("label", ["yes", "no"])
def test_votes_that_are_all_alike_are_an_error_whatever_their_label(label):
    alike = pd.DataFrame({"a": [label] * 30, "b": [label] * 30}, X.index[:30]).astype(pd.CategoricalDtype(["yes", "no"]))
    refused(r"every vote on the items used is (not )?'yes'|'yes' is not among the labels", alike)
    report = analyse_votes(alike, None)
    assert report.agreement is None and "all votes are alike" in repr(report) and report.to_html()


# ------------------------------------------------------------------ Very many features


@functools.cache
def embedded():
    x, wide, truth = simulate(n=300, seed=9)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(300, 766)) @ np.diag(rng.exponential(size=766))
    more = pd.DataFrame(noise, x.index, [f"e{k}" for k in range(766)])
    return analyse_votes(wide, x.join(more), positive="yes", truth=truth), wide, x, truth


@pytest.mark.parametrize("wrong", [0, 4, 40])
def test_the_interval_of_a_rate_is_scipys(wrong):
    ends = stats.binomtest(wrong, 40).proportion_ci(0.9, method="wilson")
    np.testing.assert_allclose(parts.wilson(wrong / 40, 40, 0.9), (ends.low, ends.high), atol=1e-12)


def test_embeddings_get_a_penalised_fit_that_says_so_and_no_interval():
    report, _, _, truth = embedded()
    assert report.penalised and report.coefficients.shape == (769, 1) and report.worth is None
    assert report.alpha0[1:] == (0, np.inf) and report.efficiency.low == 1 and report.efficiency.high == 5
    wrong = (report.items["posterior"] > 0.5) != (truth == 1)
    ends = stats.binomtest(int(wrong.sum()), 300).proportion_ci(method="wilson")
    assert f"wrong on {wrong.mean():.1%} ({ends.low:.1%} to {ends.high:.1%})" in report.headline.use
    for text in told(report):
        assert "ridge penalty, chosen by cross-validation" in text and "769 coefficients is penalised" in text
        assert "not tested" in text and not re.search(r"\b(nan|inf)\b", text)


def test_the_posterior_of_a_penalised_fit_has_not_seen_the_item_s_votes():
    """In the sample, 768 features fit 300 items perfectly; out of it the votes are predicted worse than that, honestly."""
    report, wide, *_ = embedded()
    honest = report.items["posterior"].to_numpy()
    loss = -(count(wide) * np.log(np.column_stack([honest, 1 - honest]))).sum() / wide.size
    assert 0.55 < loss < np.log(2) + 0.02 and len(report.calibration) == 10


def test_few_features_or_many_items_need_no_penalty():
    assert not penalised.needs_penalty(X, COUNTS)
    wide_x = pd.DataFrame(np.zeros((120, 30)))
    assert penalised.needs_penalty(wide_x, COUNTS) and not penalised.needs_penalty(wide_x, np.tile(COUNTS, (6, 1)))


# ------------------------------------------------------------------ Without features, and more than two classes


KRIPPENDORFF = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""


def test_agreement_is_krippendorffs_example():
    """Four coders, twelve units, five values, gaps: alpha is .743 in Krippendorff (2011), section C."""
    coders = pd.DataFrame([row.split() for row in KRIPPENDORFF.split("\n")[1:-1]]).replace(".", np.nan).T
    counts = np.array([[(row == str(v)).sum() for v in range(1, 6)] for _, row in coders.iterrows()], float)
    assert round(agreement(counts, 0.95, np.random.default_rng(0))[0].value, 3) == 0.743
    pairs = [pair for _, row in coders.iterrows() for pair in permutations(row.dropna(), 2)]
    assert len(pairs) > 100  # without weights 1 / (m - 1) it would be another number
    several = counts[counts.sum(axis=1) > 1]
    totals = several.sum(axis=0)
    alike = (totals * (totals - 1)).sum() / (totals.sum() * (totals.sum() - 1))
    unweighted = 1 - np.mean([a != b for a, b in pairs]) / (1 - alike)
    assert abs(unweighted - 0.743) > 0.003


def test_the_interval_of_agreement_covers():
    """Two classes, beta with mean .4: agreement beyond chance is the correlation, 1 / (1 + alpha0), here one third."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(200):
        s = rng.binomial(4, rng.beta(0.8, 1.2, size=100))
        found, lacks = agreement(np.column_stack([s, 4.0 - s]), 0.95, rng)
        held += found.low <= 1 / 3 <= found.high
        assert not lacks
    assert stats.binomtest(held, 200, 0.93, alternative="less").pvalue > 0.01
    for counts, words in (
        ([[1.0, 0], [0, 1]], "no item has two votes"), ([[3.0, 0]] * 9, "all votes are alike"),
        ([[3.0, 0]] * 9 + [[0.0, 3]] * 9, "no item with two votes is split"),
            ([[1.0, 1]] * 9, "no item with two votes is unanimous"),
            ([[1.0, 1]] * 9 + [[2.0, 0]], "only 1 item with two votes is unanimous"),
    ):  # fmt: skip
        found, lacks = agreement(np.array(counts), 0.95, rng)
        assert words in lacks and (found is None or np.isnan(found.low))


@pytest.mark.parametrize("alpha0", [0.7, 4.0])
def test_alpha0_of_three_classes_without_features(alpha0):
    """With unequal numbers of votes; pooled shares would be those of the items with most votes."""
    rng, held, values = np.random.default_rng(2), 0, []
    share = np.array([0.5, 0.3, 0.2])
    for _ in range(100):
        m = rng.choice([1, 3, 20], size=150, p=[0.5, 0.3, 0.2])
        counts = np.array([rng.multinomial(k, p) for k, p in zip(m, rng.dirichlet(alpha0 * share, size=150))], float)
        found, shares, lacks = without_features(counts, 0.95)
        held += found.low <= alpha0 <= found.high
        values.append([found.value, *shares])
        assert not lacks
    assert stats.binomtest(held, 100, 0.95, alternative="less").pvalue > 0.005
    assert np.median(values, axis=0)[0] == pytest.approx(alpha0, rel=0.12)
    np.testing.assert_allclose(np.mean(values, axis=0)[1:], share, atol=0.01)


def animals(n=200, m=5, seed=0):
    """Three classes: features, votes and the truth in words."""
    rng, words = np.random.default_rng(seed), np.array(["cat", "dog", "fox"])
    x = rng.normal(size=(n, 2))
    eta = np.column_stack([x, np.zeros(n)])
    tau = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    p = rng.dirichlet([1, 1, 1], size=n) * 0.4 + 0.6 * tau
    votes = np.array([rng.choice(3, size=m, p=q) for q in p])
    index = pd.Index([f"i{j}" for j in range(n)], name="item")
    truth = pd.Series(words[[rng.choice(3, p=q) for q in tau]], index)
    return pd.DataFrame(x, index, ["size", "shape"]), pd.DataFrame(words[votes], index, [f"a{k}" for k in range(m)]), truth


def test_three_classes_with_features_are_one_against_the_rest_and_that_is_said():
    x, wide, truth = animals()
    report = analyse_votes(wide, x, positive="dog", truth=truth)
    two = analyse_votes((wide == "dog").map({True: "dog", False: "else"}.get), x, positive="dog", truth=truth == "dog")
    np.testing.assert_array_equal(report.fit.coef, two.fit.coef)
    assert report.worth.error == two.worth.error and report.counted == two.counted and report.classes and not two.classes
    for text in told(report):
        assert re.search(r"Votes have 3 labels \(.*'dog' \d+.*\): this report is on 'dog' against all others together", text)
    long = analyse_votes(as_long(wide).astype("category"), x, positive="dog")
    np.testing.assert_array_equal(long.fit.coef, report.fit.coef)
    refused(r"positive is missing.*'cat'", wide, x, None)
    refused("positive='cow' is not among the labels of votes", wide, x, "cow")
    rare = as_long(wide)
    rare.loc[7:11, "label"] = "wolf"
    for given in (x, None):
        refused(r"4 different labels .*two classes, or at most 50 of 10 votes each. .*'wolf' .*row 7;", rare, given, "dog")


def test_a_report_without_features():
    """Agreement, alpha0 and the model of Dawid and Skene, each as its own function gives it."""
    gaps = animals()[1]
    gaps.iloc[:40, 4] = None
    long = as_long(gaps)
    report = analyse_votes(pd.concat([long, long[:3].replace({"cat": "dog", "dog": "fox", "fox": "cat"})]), None)
    assert report.counted["votes used"] == 960
    assert report.counted["repeated votes"] == report.counted["contradictory repeats"] == 3
    counts = np.column_stack([(gaps == name).sum(axis=1) for name in report.labels]).astype(float)
    assert counts.sum(axis=0)[0] == counts.sum(axis=0).max() and set(report.labels) == {"cat", "dog", "fox"}
    np.testing.assert_array_equal(report.items[[f"votes for {name}" for name in report.labels]], counts)
    assert report.agreement.value == agreement(counts, 0.95, np.random.default_rng(0))[0].value
    found, shares, _ = without_features(counts, 0.95)
    assert report.alpha0 == found and report.shares.tolist() == shares.tolist()
    given, code = long.dropna(), pd.Index(report.labels).get_indexer
    item, annotator = gaps.index.get_indexer(given["item"]), gaps.columns.get_indexer(given["annotator"])
    model = dawid_skene(item, annotator, code(given["label"]), 3)
    mine = report.items[[f"Dawid-Skene {name}" for name in report.labels]]
    np.testing.assert_allclose(mine, model.posterior, atol=1e-9)
    np.testing.assert_allclose(report.items["doubt"], 1 - model.posterior.max(axis=1), atol=1e-9)
    np.testing.assert_allclose(report.confusion.to_numpy().reshape(5, 3, 3), model.confusion, atol=1e-9)
    verdict = code(report.items["verdict"])
    next_vote = (found.value * shares[verdict] + counts[np.arange(200), verdict]) / (found.value + counts.sum(axis=1))
    np.testing.assert_allclose(report.items["next vote"], next_vote)
    assert report.items.loc[report.items["relabel"].idxmin(), "doubt"] == report.items["doubt"].max()
    for text in told(report):
        assert "three real data sets" not in text and "That takes features" in text and not re.search(r"\b(nan|inf)\b", text)


def test_two_labels_without_features_are_examined_and_the_positive_one_comes_first():
    report = analyse_votes(swapped(WIDE, "a0"), None, positive="no")
    assert report.labels == ["no", "yes"] and report.annotators.loc["a0", "finding"] == "reversed"
    assert report.headline.use.startswith("Not as they are. 'a0' votes against")
    refused("positive='maybe' is not among", WIDE, None, "maybe")
    refused("truth needs features", WIDE, None, truth=TRUTH)


def test_of_single_votes_no_item_is_in_doubt_by_the_model():
    """Without a feature or a second vote, the order of the items was an artefact of where the algorithm starts."""
    report = analyse_votes(WIDE.where(np.arange(5) == np.arange(120)[:, None] % 5), None)
    assert report.headline.next.startswith("Have some 50 items, drawn at random, or all, labelled by somebody who knows")
    page = told(report)[1]
    assert "Items in most doubt" not in page and "nothing tells which of them are in doubt" in page
    assert "Items in most doubt" in told(analyse_votes(WIDE, None))[1]


def unanimous(n):
    return pd.DataFrame({name: np.where(np.arange(n) % 3, "yes", "no") for name in ("Ann", "Bob")}).rename_axis("item")


def test_a_small_table_in_which_all_agree_is_not_said_to_mean_nothing():
    report = analyse_votes(unanimous(6), None)
    assert "no sign" not in report.kinds and "whether labels mean anything, as votes are too few" in repr(report)
    assert report.headline.use.startswith("Annotators are not shown to agree") and "Buy nothing" not in report.headline.next
    assert "no sign" not in analyse_votes(unanimous(60), None).kinds
    chance = analyse_votes(unanimous(240).assign(Bob=np.where(np.arange(240) % 2, "yes", "no")), None)
    assert re.search(r"not shown to agree more than by chance \(Krippendorff's alpha .*, p = ", chance.headline.use)
    assert "more items would be needed" in chance.headline.next and "eature" not in chance.warnings[0]
    alike = repr(analyse_votes(unanimous(6).replace("no", "yes"), None))
    assert "single annotators, as all votes are alike" in alike and "of 1 label:" in alike


# ------------------------------------------------------------------ Names, JSON


@pytest.mark.parametrize("name", ["$\\x$", "a$x$ b", "李 小龙", "🙂"])
def test_any_name_can_be_drawn(drawn, name):
    """Dollars are no formula; what the font lacks has a number, that the caption explains."""
    report = analyse_votes(WIDE.rename(columns={"a1": name}), X, positive="yes")
    picture = figures.annotators(report.annotators)
    picture.figure.draw_without_rendering()
    ticks = picture.figure.axes[0].get_yticklabels()
    labels = [tick.get_text() for tick in ticks]
    assert not any(tick.get_parse_math() for tick in ticks)
    assert (name in labels) == ("$" in name) and (f"(1) {name}." in picture.caption) == ("$" not in name)
    assert name in unescape(report.to_html())


def test_pseudonyms_stand_everywhere():
    """In words, tables, items, JSON and the page; in the order of first appearance."""
    named = swapped(WIDE, "a1").rename(columns={f"a{k}": f"Person{k}Secret" for k in range(5)})
    for report in (
        analyse_votes(named, X, positive="yes", truth=TRUTH, pseudonyms=True),
        analyse_votes(as_long(named), None, pseudonyms=True),
    ):
        assert report.annotators.index.tolist() == ["A1", "A2", "A3", "A4", "A5"]
        assert report.annotators.loc["A2", "finding"] == "reversed" and "'A2' votes against" in repr(report)
        for text in (repr(report), report.to_html(), report.to_json(), report.items.to_csv(), report.annotators.to_csv()):
            assert "Secret" not in text
    assert "Person1Secret" in repr(analyse_votes(named, X, positive="yes"))  # negative


@pytest.mark.parametrize("which", ["features", "embeddings", "alone", "one vote"])
def test_json_obeys_its_schema_and_holds_the_numbers(which):
    jsonschema = pytest.importorskip("jsonschema")
    report = {
        "features": the_report, "embeddings": lambda: embedded()[0],
        "alone": lambda: analyse_votes(animals()[1], None), "one vote": lambda: analyse_votes(WIDE[["a0"]], X, positive="yes"),
    }[which]()  # fmt: skip
    schema = json.loads((ROOT / "softlabel" / "report" / "schema.json").read_text("utf8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    written = json.loads(report.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    jsonschema.validate(written, schema)
    assert written == report.to_dict()
    for broken in ({**written, "more": 1}, {k: v for k, v in written.items() if k != "headline"}):  # negative
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)
    numbers = next(row for row in written["numbers"] if row["quantity"] == "alpha0")
    for name, number in report.alpha0._asdict().items():
        assert numbers[name] == (None if np.isnan(number) else "inf" if np.isinf(number) else number)
    assert len(written["tables"]["items"]) == len(report.items) and written["headline"]["use"] == report.headline.use


# ------------------------------------------------------------------ Forms of input


@pytest.mark.parametrize(
    "votes, features, positive, truth",
    [
        (WIDE, X, "yes", TRUTH),
        (WIDE.rename_axis("item").reset_index(), X.reset_index(), "yes", TRUTH),
        (as_long(WIDE, ["task", "worker", "label"]), X.rename_axis("task").reset_index(), "yes", TRUTH),
        (LONG.sample(frac=1, random_state=1), X.sample(frac=1, random_state=2), "yes", TRUTH),
        (LONG.assign(time=1)[["time", "label", "annotator", "item"]], X.assign(truth=TRUTH), "yes", "truth"),
        (LONG.assign(label=LONG["label"] == "yes"), X, True, TRUTH),
        (LONG.assign(label=(LONG["label"] == "yes").astype(int)), X, 1, TRUTH == 1),
        (LONG.astype("category"), X, "yes", TRUTH.map({1: "yes", 0: "no"})),
        (WIDE.astype("category"), X.astype(object), "yes", TRUTH.map({1: "1", 0: "0"})),
    ],
    ids=["wide", "columns", "task", "shuffled", "more columns", "bool", "int", "category", "object"],
)
def test_input_forms_are_equal(votes, features, positive, truth):
    report, usual = analyse_votes(votes, features, positive=positive, truth=truth), the_report()
    np.testing.assert_allclose(report.fit.coef, usual.fit.coef, rtol=1e-9)
    np.testing.assert_allclose(report.alpha0.value, usual.alpha0.value, rtol=1e-6)
    pd.testing.assert_frame_equal(report.annotators.sort_index(), usual.annotators.sort_index())
    mine, theirs = report.items.sort_index(), usual.items.sort_index()
    pd.testing.assert_frame_equal(mine, theirs, check_dtype=False, check_index_type=False)
    if (report.items.index == usual.items.index).all():  # another order of items draws other folds and resamples
        pd.testing.assert_frame_equal(report.table(), usual.table(), rtol=1e-9)


def test_items_may_be_numbers_and_the_other_class_mirrors():
    numbers = {name: k for k, name in enumerate(X.index)}
    report = analyse_votes(LONG.assign(item=LONG["item"].map(numbers)), X.rename(index=numbers), positive="yes")
    np.testing.assert_allclose(report.fit.coef, the_report().fit.coef, rtol=1e-12)
    mirrored = analyse_votes(LONG, X, positive="no")
    np.testing.assert_allclose(mirrored.fit.coef, -the_report().fit.coef, rtol=1e-7)
    np.testing.assert_allclose(mirrored.alpha0, the_report().alpha0, rtol=1e-3)


def test_gaps_repeats_and_items_that_lack_something_are_counted_and_named():
    gaps = WIDE.copy()
    gaps.iloc[:10, 2] = None
    gaps.loc["i20"] = None  # no votes
    features = X.drop("i30")
    features.loc["i40", "shape"] = np.nan
    repeats = pd.concat([as_long(gaps), LONG[:7], LONG[:3].replace({"yes": "no", "no": "yes"})], ignore_index=True)
    report = analyse_votes(repeats, features, positive="yes")
    assert report.counted == {
        "votes read": 610, "missing votes": 15, "repeated votes": 10, "contradictory repeats": 3, "votes used": 575,
        "items": 120, "items used": 117, "items with no votes": 1, "items with no features": 1,
        "items with incomplete features": 1, "annotators": 5, "annotators without a vote": 0,
    }  # fmt: skip
    status = {"i20": "no votes", "i30": "no features", "i40": "incomplete features", "i41": "used"}
    assert report.items["status"].loc[list(status)].to_dict() == status
    said, page = " ".join(report.set_aside), unescape(report.to_html())
    for word in ("not used: 15", "not used: 10", "the first: 3", "not used: 1", "'i20'", "'i30'", "'i40'"):
        assert word in said and word in page, word
    used = report.used.index
    np.testing.assert_allclose(report.fit.coef, fit_logistic(X.loc[used], count(gaps.loc[used])).coef, rtol=1e-9)
    assert report.items.loc["i1", "votes"] == 4 and report.items.loc["i30", "votes"] == 5
    kept = analyse_votes(repeats, features, positive="yes", repeats="keep")
    assert kept.counted["votes used"] == 585 and kept.counted["repeated votes"] == 10


def test_unanimous_votes_and_votes_more_regular_than_chance(drawn):
    every = pd.concat([WIDE["a0"]] * 3, axis=1).set_axis(["a", "b", "c"], axis=1)
    report = analyse_votes(every, X, positive="yes")
    assert report.alpha0.value == 0 and report.efficiency.value == 1 and report.best_votes.value == 1 and report.to_html()
    report = analyse_votes(pd.DataFrame({"a": ["yes"] * 120, "b": ["no"] * 120}, X.index), X, positive="yes")
    assert report.alpha0.value == np.inf and report.efficiency.value == 2 and "infinite" in repr(report) and report.to_html()


@pytest.mark.parametrize("kind", ["quasi", "complete"])
def test_what_separates_is_named_and_is_the_first_step(kind):
    """Quasi: of four items with a rare mark all votes agree, and all other coefficients can be told as without it."""
    alike = WIDE.index[(WIDE == "yes").all(axis=1)][:4]
    votes = WIDE if kind == "quasi" else WIDE.apply(lambda votes: WIDE["a0"])
    mark = X.index.isin(alike) if kind == "quasi" else WIDE["a0"] == "yes"
    report = analyse_votes(votes, X.assign(mark=mark), positive="yes", truth=TRUTH)
    assert report.separation == kind and report.separated.startswith("the feature 'mark' alone tells the labels apart")
    assert report.headline.use.startswith(f"Not with these features: {report.separated}, so that n")
    assert ("on some items" in report.separated) == (kind == "quasi") != ("so that nothing" in report.headline.use)
    assert report.headline.worth.startswith("That cannot be told with these features")
    assert report.headline.next.startswith("Leave out features") and report.warnings[0].startswith(kind.capitalize())
    assert np.isnan(report.efficiency_direct) and not any("However many votes" in text for text in report.details)
    assert report.alpha0[1:] == (0, np.inf)
    assert np.isfinite(report.fit.coef).all() and "separation" in report.to_html()
    assert "z is the signed root" in report.to_html() and "Errors and intervals are over" not in report.to_html()


def test_of_few_items_no_order_is_made_up():
    """18 items, three coefficients: nothing says which item a vote would help, and the first of the file are not named."""
    report = analyse_votes(WIDE[:18], X[:18], positive="yes")
    assert report.alpha0_lacks and np.isnan(report.efficiency_direct)
    page = told(report)[1]
    assert "Label these again first" not in page and "Which items another vote would help most cannot be told" in page
    assert "scatter of the votes alone" not in page and "between 1 and 5" in page
    assert not report.affordable and "the money is not enough for some" in page
    assert the_report().affordable and "it needs some" in told(the_report())[1]


def test_numbers_have_their_level_and_their_number():
    """Levels are not rounded, one is one, bounds that are equal are one number, and no p-value is zero."""
    report = analyse_votes(WIDE[["a0"]], X, positive="yes", level=0.999, truth=TRUTH[:40], rng=np.int64(3))
    text, page = told(report)
    assert "level 99.9%" in text and "99.9% intervals" in page and "100%" not in text + page and report.made["seed"] == "3"
    assert "99.9% intervals" in repr(report.worth) and "of 1 annotator on 120 items" in report.methods
    assert not re.search(r"between (\S+) and (\1|infinite)\b", page)
    assert np.isnan(report.alpha0.value) and report.overdispersion is None and report.efficiency == (1, 1, 1)
    assert "alpha0 cannot be known" in text and "of 1 annotator." in text
    assert [parts.items_worth(x) for x in (0.5, 1, 9.25)] == ["0.5 items' worth", "1 item's worth", "9.25 items' worth"]
    assert parts.p_value(0.0) == "p below 1e-300" and parts.p_value(0.0123) == "p = 0.0123"
    counts = analyse_votes(counted(WIDE), X, positive="yes", count_columns=["yes", "no"])
    assert "votes on 120 items" in counts.methods
    assert analyse_votes(WIDE[["a0"]], X, positive="yes").advice == "either"


# ------------------------------------------------------------------ Errors


NUMBERS = LONG.assign(label=(LONG["label"] == "yes").astype(int))
DISTANT = np.r_[np.sin(np.arange(60)), np.full(60, 1e90)]  # where there are no votes


def edited(frame, row, column, value):
    frame = frame.astype(object)
    frame.iloc[row, frame.columns.get_loc(column)] = value
    return frame


@pytest.mark.parametrize(
    "votes, features, options, words",
    [
        (edited(LONG, 17, "annotator", np.nan), X, {}, "votes, row 17: the annotator is missing"),
        (edited(LONG, 17, "label", "yse"), X, {}, "3 different labels .* 'yse' .*votes, row 17"),
        (edited(WIDE, 17, "a2", "yse"), X, {}, "'yse' .* item 'i17'"),
        (LONG.assign(task=1), X, {}, "'item', 'task', but only one"),
        (LONG.assign(label=None), X, {}, "every one is missing"),
        (LONG[:0], X, {}, "votes has no elements"),
        (LONG, X, {"positive": 10**400}, "positive=10+ is not among"),
        (LONG, edited(X, 3, "shape", "big"), {}, "features, item 'i3', column 'shape' is 'big'"),
        (LONG, X[[]], {}, "no numbers"),
        (LONG, X.set_axis(["a", "a"], axis=1), {}, "more than one column named 'a'"),
        (LONG, X.reset_index(drop=True), {}, "no item of votes is in features.*'i0'"),
        (LONG, X * np.nan, {}, "no item has both"),
        (LONG, X.assign(one=1.0), {}, r"'one'.*constant.*: leave it out by exclude= \(--exclude\), the intercept"),
        (LONG, X.assign(twice=2 * X["size"]), {}, r"'twice'.* as 'size': leave it out by exclude= \(--exclude\)"),
        (LONG, X, {"columns": ["size", "colour"]}, "columns: .*'colour'.*'shape'"),
        (LONG, X, {"truth": [1] * 120}, "truth must be"),
        (NUMBERS, X, {"truth": TRUTH.astype(str), "positive": 0}, "item 'i0' is '1'.* negative class is 1: write truth in"),
        (NUMBERS.astype(str), X, {"truth": TRUTH * 1.0, "positive": "0"}, "item 'i0' is 1.0.* negative class is '1': write"),
        (WIDE[:60], X.assign(d=DISTANT), {"truth": TRUTH}, "columns of X are nearly a linear combination"),
        (LONG, X, {"truth": pd.concat([TRUTH, pd.Series([1], ["new"])])}, "'new'.* not in features"),
        (LONG, X, {"repeats": "last"}, "repeats .*'last'"),
        (LONG, X, {"cost_vote": 0}, "cost_vote .*positive"),
        (LONG, X, {"cost_item": -1}, "cost_item .*positive"),
        (LONG, X, {"level": 95}, "level .*95"),
        (LONG, X.to_numpy(), {}, "features must be a DataFrame"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_errors_name_the_place(votes, features, options, words):
    refused(words, votes, features, **options)


def test_the_callers_tables_are_left_alone():
    votes, features, truth = LONG.copy(), X.assign(truth=TRUTH), TRUTH.copy()
    analyse_votes(votes, features, positive="yes", truth="truth")
    pd.testing.assert_frame_equal(votes, LONG)
    pd.testing.assert_frame_equal(features, X.assign(truth=truth))


# ------------------------------------------------------------------ The page


def outside(html):
    """Addresses that a page would fetch, and scripts, which it must not have."""
    soup = BeautifulSoup(html, "html.parser")
    keys = ("src", "href", "srcset", "data", "poster", "action")
    chapter = re.compile(re.escape(parts.BOOK) + r"[a-z0-9_/]+\.html(#[a-z-]+)?$")
    links = soup.find_all("a", href=chapter)  # a reader may follow them, the page does not
    found = [tag[key] for tag in soup.find_all(True) for key in keys if tag.get(key) and tag not in links]
    css = re.findall(r"@import|url\([^)]*\)", html)
    return [a for a in found + css if not a.startswith("data:")] + soup.find_all(["script", "link", "iframe", "object"])


def test_the_page_stands_alone(drawn):
    html = the_report().to_html()
    assert outside(html) == []
    images = ('<img src="http://a.example/b.png">', f'<img src="{CHAPTER}">', "<style>a { background: url(b.png) }</style>")
    for bad in (*images, '<a href="http://a.example">', "<script>1</script>"):
        assert outside(html.replace("</body>", bad + "</body>"))
    soup = BeautifulSoup(html, "html.parser")
    assert all(len(image["alt"]) > 60 for image in soup.find_all("img")) and len(soup.find_all("img")) == 4
    assert [h.name for h in soup.find_all(["h1", "h2", "h3"])] == ["h1"] + ["h2"] * 11
    assert soup.html["lang"] == "en" and "color-scheme: light dark" in html and "@media print" in html
    assert html == the_report().to_html() and len(html) < 500_000


def test_the_top_of_the_page_says_what_it_is_about_and_answers_three_questions():
    report = dataclasses.replace(the_report(), files={"votes": "my<votes>.csv", "features": "f.csv"})
    soup = BeautifulSoup(report.to_html(), "html.parser")
    top = soup.find(class_="note").get_text()
    for fact in ("votes: my<votes>.csv", "features: f.csv", "positive class: yes", date.today().isoformat(), "seed: 0"):
        assert fact in top
    assert f"softlabel {version('softlabel')}" in top
    assert [dt.get_text() for dt in soup.find_all("dt")] == ["Can I use these votes?", "What are they worth?", "What next?"]
    answers = [dd.get_text() for dd in soup.find_all("dd")]
    plain = [re.sub(r"https://\S+", "", text).split() for text in report.headline]
    assert all(set(words) <= set(answer.split()) for words, answer in zip(plain, answers))
    assert soup.find("blockquote").get_text() == report.methods
    generator = np.random.default_rng(0)
    for seed, said in ((None, "none: other draws each time"), (generator, "a generator of the caller"), (7, "7")):
        assert analyse_votes(WIDE, X, positive="yes", rng=seed).made["seed"] == said


def test_every_chapter_that_is_named_is_there_under_its_title():
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    assert site_address(config["repository"]["url"]) + "book/" == parts.BOOK
    for name, title in TITLES.items():
        assert f"\n# {title}\n" in (ROOT / "book" / f"{name}.md").read_text("utf8")
    folder = ROOT / "softlabel" / "report"
    sources = "".join(path.read_text("utf8") for path in [*folder.glob("*.py"), folder / "texts.yml"])
    named = set(re.findall(r"\{BOOK\}([a-z0-9_/]+)\.html", sources))
    assert named <= set(TITLES) and len(named) > 4
    chapter = CHAPTER.removeprefix(site_address(config["repository"]["url"])).replace(".html", ".md")
    text = (ROOT / chapter).read_text("utf8")
    assert all(f"\n({place})=\n" in text for place in ("lean-scale-tilt", "few-truths", "one-rule"))


def test_terms_are_explained_where_they_stand():
    soup = BeautifulSoup(the_report().to_html(), "html.parser")
    for section, terms in {
        "What the votes are worth": ("Alpha0 says", "Lean:", "Scale:", "Tilt:", "counted in true labels"),
        "Items to look at again": ("Posterior:", "Given votes:", "Doubt:", "Disagreement:"),
        "Annotators": ("interchangeable", "Slope:"),
        "Coefficients": ("Log-odds:",),
        "Does the rule fit the votes?": ("Reliability:",),
    }.items():
        text = soup.find("h2", string=section).parent.get_text(" ")
        assert all(term in text for term in terms), section


def test_methods_say_what_was_done():
    said = the_report().methods
    for words in ("600 votes of 5 annotators on 120 items", "'yes' on 2 features", "maximum likelihood", "Cox and Reid"):
        assert words in said
    assert "level 95%" in said and "120 true labels" in said and "ridge" in embedded()[0].methods
    assert "Firth" in analyse_votes(SEPARATED, X, positive="yes").methods


def test_the_reliability_of_the_true_labels_by_hand():
    frame = figures.true_shares(the_report())
    order = the_report().used["posterior"].sort_values(kind="stable").index
    for k, group in enumerate(np.array_split(order, 5)):
        assert frame.loc[k, "items"] == 24 and frame.loc[k, "positive"] == TRUTH[group].sum()


def test_shares_have_intervals_within_0_and_100():
    """Of true labels Wilson's, which has a length where all are positive."""
    truth = TRUTH.where(the_report().used["posterior"].reindex(TRUTH.index) < 0.5, 1)
    report = analyse_votes(WIDE, X, positive="yes", truth=truth)
    (axes,) = figures.reliability(report).figure.axes
    ends = [np.array([segment[:, 1] for segment in bars[2][0].get_segments()]) for bars in axes.containers]
    assert all(e.min() >= 0 and e.max() <= 100 + 1e-9 for e in ends)
    true = figures.true_shares(report)
    assert true["positive"].iloc[-1] == true["items"].iloc[-1] == 24
    z = stats.norm.ppf(0.975)
    np.testing.assert_allclose(ends[1][-1], [100 * 24 / (24 + z**2), 100])


def test_strings_of_the_tables_are_escaped():
    evil = '<b onmouseover="alert(1)">'
    long = LONG.replace({"label": {"yes": evil}, "annotator": {"a0": evil}}).replace({"item": {"i3": evil}})
    x, wide, _ = simulate(n=300, seed=2, bias=np.array([0, 0, 0, 0, 0.4]))
    report = analyse_votes(pd.concat([long, long[:3]]), X.rename(columns={"size": evil}).drop("i3"), positive=evil)
    biased = analyse_votes(wide.rename(columns={"a4": evil}), x, positive="yes")
    for html in (report.to_html(), report._repr_html_(), biased.to_html()):
        soup = BeautifulSoup(html, "html.parser")
        assert not soup.find_all("b") and evil not in html and evil in soup.get_text()


def test_a_notebook_and_a_console_show_it():
    fragment = the_report()._repr_html_()
    assert fragment in the_report().to_html() and "<html" not in fragment
    text = repr(the_report())
    assert text.startswith("VoteReport\n  Can I use these votes? ")
    assert "120 items with 600 votes" in text and "alpha0 is" in text
    assert list(the_report().table().columns) == ["value", "low", "high"]


# ------------------------------------------------------------------ The comparison


def test_the_comparison_by_hand():
    table = the_report().comparison
    fit = fit_logistic(X, COUNTS)
    eta = fit.coef[0] + X.to_numpy() @ fit.coef[1:]
    in_sample = np.logaddexp(0, np.where(TRUTH == 1, -eta, eta)).mean()
    assert abs(table.loc["pooled votes", "log-loss"] - in_sample) < 0.03 and table.loc["pooled votes", "more than pooled"] == 0
    assert table.loc["majority vote", "labels right"] == ((COUNTS[:, 0] > 2.5) == (TRUTH == 1)).mean()
    item, annotator = np.divmod(np.arange(600), 5)
    theirs = dawid_skene(item, annotator, (WIDE == "yes").to_numpy().ravel().astype(int)).posterior[:, 1]
    assert table.loc["Dawid-Skene", "labels right"] == ((theirs > 0.5) == (TRUTH == 1)).mean()


def test_held_out_means_held_out():
    """Features of noise and as many coefficients as a third of the items: in-sample truth looks good, held out it does not."""
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.normal(size=(120, 20)), X.index)
    report = analyse_votes(LONG, noise, positive="yes", truth=pd.Series(rng.integers(0, 2, 120), X.index))
    assert report.comparison.loc["true labels", "log-loss"] > np.log(2)


@pytest.mark.parametrize(
    "truth, why", [(TRUTH[:30], "50 true labels of items used; there are 30"), (TRUTH * 0, "none is of the positive one")]
)
def test_no_comparison_without_enough_truth_says_why(truth, why):
    report = analyse_votes(LONG, X, positive="yes", truth=truth)
    assert report.comparison is None and why in report.lacking and why in " ".join(report.set_aside) and report.to_html()
    assert report.truth.n_items == len(truth) and analyse_votes(LONG, X, positive="yes").comparison is None


def test_a_missing_crowd_kit_leaves_out_glad_and_is_said(monkeypatch):
    monkeypatch.setattr("softlabel.report.rivals.has_crowd_kit", lambda: False)
    report = analyse_votes(LONG, X, positive="yes", truth=TRUTH)
    assert list(report.comparison.index) == ["pooled votes", "majority vote", "Dawid-Skene", "true labels"]
    assert "crowd-kit is not installed" in report.to_html()


@pytest.mark.filterwarnings("ignore")  # of its libraries
def test_glad_is_that_of_crowd_kit():
    aggregation = pytest.importorskip("crowdkit.aggregation", reason="needs crowd-kit: pip install 'softlabel[crowd]'")
    assert list(the_report().comparison.index) == ["pooled votes", "majority vote", "Dawid-Skene", "GLAD", "true labels"]
    labels = aggregation.GLAD(100).fit_predict(as_long(WIDE, ["task", "worker", "label"]))
    right = ((labels.reindex(TRUTH.index) == "yes") == (TRUTH == 1)).mean()
    assert abs(the_report().comparison.loc["GLAD", "labels right"] - right) < 1e-9


# ------------------------------------------------------------------ The command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    LONG.to_csv(folder / "votes.csv", index=False)
    WIDE.to_csv(folder / "wide.csv")
    X.assign(truth=TRUTH).to_csv(folder / "features.csv")
    X.assign(truth=TRUTH[:40].map({1: "yes", 0: "no"})).to_csv(folder / "some.csv")
    edited(LONG, 6, "label", "yse").to_csv(folder / "typo.csv", index=False)
    edited(X.assign(truth=TRUTH), 3, "size", "wide").to_csv(folder / "words.csv")
    lines = (folder / "typo.csv").read_text().splitlines()
    (folder / "blank.csv").write_text("\n".join([*lines[:3], "", *lines[3:], ""]))
    return folder


GOOD = "report --features features.csv --positive yes --truth truth"


def command(folder, *arguments, stdout=subprocess.PIPE):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = [sys.executable, "-m", "softlabel", *arguments]
    return subprocess.run(done, cwd=folder, env=env, text=True, stdout=stdout, stderr=subprocess.PIPE)


def run(folder, *more, votes="votes.csv", features="features.csv"):
    """The exit status."""
    with contextlib.chdir(folder):
        return main(["report", "--votes", votes, "--features", features, "--positive", "yes", "--truth", "truth", "-q", *more])


def without_pictures(page):
    """In which the last digit of a number may move a line."""
    return re.sub('"data:image[^"]*"', "", page)


def test_the_command_writes_the_report(folder, drawn, capsys):
    done = command(folder, *f"{GOOD} --votes wide.csv -o out.html --items items.csv".split())
    assert done.returncode == 0, done.stderr
    report = analyse_votes(LONG, X, positive="yes", truth=TRUTH)
    assert done.stdout == f"{report!r}\n"
    assert "fitted 3 coefficients to 600 votes on 120 items" in done.stderr and "ms" in done.stderr
    assert len(pd.read_csv(folder / "items.csv")) == 120
    assert run(folder, "-o", "long.html") == 0
    for votes, written in (("wide.csv", "out.html"), ("votes.csv", "long.html")):
        page = dataclasses.replace(report, files={"votes": votes, "features": "features.csv"}).to_html()
        assert without_pictures((folder / written).read_text(encoding="utf-8")) == without_pictures(page)
    capsys.readouterr()
    assert run(folder, "-o", "some.html", votes="wide.csv", features="some.csv") == 0
    said = capsys.readouterr()
    assert said.out == f"{analyse_votes(WIDE, X, positive='yes', truth=TRUTH[:40])!r}\n" and said.err == ""


def test_the_command_asks_for_its_library_before_it_computes(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(folder, "-o", "none.html") == 2
    assert capsys.readouterr() == ("", "error: softlabel report needs matplotlib, which is not installed: pip install "
                                       "'softlabel[report]'\n")  # fmt: skip
    assert not (folder / "none.html").exists()


def test_the_command_in_front_of_head(folder):
    reads, writes = os.pipe()
    os.close(reads)  # as `head` has, once it has seen enough
    done = command(folder, *f"{GOOD} -q --votes votes.csv -o head.html".split(), stdout=writes)
    os.close(writes)
    assert (done.returncode, done.stderr) == (0, "") and (folder / "head.html").exists()


def test_the_command_without_features_with_pseudonyms_and_as_json(folder, capsys):
    with contextlib.chdir(folder):
        assert main("report --votes votes.csv --pseudonyms --json out.json -o alone.html -q".split()) == 0
        assert main("report --votes votes.csv --features features.csv --truth truth -q".split()) == 2
    assert "positive is missing: name the label of the positive class by positive= (--positive)" in capsys.readouterr().err
    written = json.loads((folder / "out.json").read_text("utf8"))
    assert written["kind"] == "votes" and written["made"]["files"] == {"votes": "votes.csv"}
    assert [row["annotator"] for row in written["tables"]["annotators"]] == ["A1", "A2", "A3", "A4", "A5"]


@pytest.mark.parametrize("votes, features, more, words", [
    ("typo.csv", "features.csv", (), ["votes, typo.csv line 8", "'yse'"]),
    ("blank.csv", "features.csv", (), ["blank.csv line 9"]),
    ("votes.csv", "words.csv", (), ["features, words.csv line 5", "'i3'", "'size'", "'wide'"]),
    ("none.csv", "features.csv", (), ["no file none.csv"]),
    ("votes.csv", "features.csv", ("--positive", "bosartig"), ["labels of votes ('yes', 'no'): name one", "(--positive)"]),
    (".", "features.csv", (), ["cannot be read"]),
    ("votes.csv", "votes.csv", (), ["truth: column 'label' holds the votes themselves"]),
])  # fmt: skip
def test_the_command_says_what_is_wrong_with_a_file(folder, capsys, votes, features, more, words):
    truth = ("--truth", "label") if features == "votes.csv" else ()
    assert run(folder, *more, *truth, votes=votes, features=features) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1
    for word in words:
        assert word in said, f"{word} is not in: {said}"


@pytest.mark.parametrize(
    "outputs, words",
    [
        ("-o votes.csv", "--output votes.csv would overwrite the file of --votes: give it another name"),
        ("--json ./features.csv", "--json ./features.csv would overwrite the file of --features"),
        ("--items link.csv", "--items link.csv would overwrite the file of --votes"),
        ("--json same.csv", "--json same.csv would overwrite the file of --votes"),
        ("-o a.html --json a.html", "--json a.html would overwrite the file of --output"),
        ("-o a.html --items nodir/i.csv", "--items nodir/i.csv cannot be written: there is no folder nodir"),
        ("-o a.html --json .", "--json . cannot be written: it is a folder"),
        ("-o shut/a.html", "--output shut/a.html cannot be written: there is no permission to"),
    ],
)
def test_the_command_overwrites_no_file_of_its_own_and_asks_before_it_computes(tmp_path, capsys, monkeypatch, outputs, words):
    LONG.to_csv(tmp_path / "votes.csv", index=False)
    X.assign(truth=TRUTH).to_csv(tmp_path / "features.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "votes.csv")
    (tmp_path / "same.csv").hardlink_to(tmp_path / "votes.csv")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr("softlabel.report.command.analyse_votes", pytest.fail)
    (tmp_path / "shut").mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: path.name != "shut")  # root may write anywhere
    assert run(tmp_path, *outputs.split()) == 2
    assert capsys.readouterr().err.startswith(f"error: {words}")
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_a_bad_seed_is_named_as_an_option(folder, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(folder, "--seed", "-1")
    assert "argument --seed: must be a whole number of at least 0, got -1" in capsys.readouterr().err


def test_a_bad_file_is_exit_status_two_without_a_traceback(folder):
    done = command(folder, *f"{GOOD} --votes typo.csv".split())
    assert done.returncode == 2 and "Traceback" not in done.stderr and "line 8" in done.stderr
    assert not (folder / "report.html").exists()


def test_help_has_an_example(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["softlabel"])  # as a console script is called
    for arguments, status in (((["report"],), 2), ((), 2), ((["report", "--help"],), 0)):
        with pytest.raises(SystemExit) as caught:
            main(*arguments)
        assert caught.value.code == status
    said = capsys.readouterr().out
    assert "softlabel report --votes votes.csv --features features.csv --positive malignant -o report.html" in said


def test_long_tables_are_cut_and_say_so(drawn):
    wide = pd.DataFrame({f"a{k}": WIDE["a0"].where(np.arange(120) % 60 == k % 60) for k in range(90)}).assign(b=WIDE["a1"])
    html = analyse_votes(wide, X, positive="yes").to_html()
    assert "the first 50 of 91" in html
