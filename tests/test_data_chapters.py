"""Figures of the chapters on the paper's data, computed apart: by SciPy, scikit-learn, explicit loops, and R's own values."""

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from numpy.testing import assert_allclose
from reference import gastro
from scipy import optimize, stats
from scipy.special import betaln, expit
from sklearn.linear_model import LogisticRegression
from test_experiments import ALPHAS, BAYES, MS, R_TRUTH, R_VOTES, wisconsin

from softlabel import alpha0_interval, estimate_alpha0, find_separation, fit_logistic, fit_logistic_batch, prediction_band
from softlabel.book import claims
from softlabel.book.diagnostics import joint_test
from softlabel.book.studies import breast_cancer_design, breast_cancer_tables
from softlabel.experiments import nested_votes

# ------------------------------------------------------------------ lesions


@pytest.fixture(scope="module")
def lesions():
    X, counts, y = (np.asarray(part, float) for part in gastro())
    tau = {"truth": fit_logistic(X, y).posterior(X), "votes": fit_logistic(X, counts).posterior(X)}
    return X, counts, y, tau


def outside(counts, tau):
    """Lesions outside the band by SciPy's beta-binomial: posterior, votes, probability of as few or as many."""
    s, p, a = counts[:, 0], tau[:, 0], estimate_alpha0(counts, tau).alpha0
    few, many = stats.betabinom(7, a * p, a * (1 - p)).cdf(s), stats.betabinom(7, a * p, a * (1 - p)).sf(s - 1)
    tail = np.minimum(few, many)
    found = sorted((p[j], s[j], tail[j]) for j in np.flatnonzero(tail < 1 / 40))
    low, high = prediction_band(p, 7, a)
    assert len(found) == np.sum((s < low) | (s > high))  # the package's band
    return found


def test_exceptions_of_figure_3(lesions):
    _, counts, _, tau = lesions
    truth, votes = outside(counts, tau["truth"]), outside(counts, tau["votes"])
    assert len(truth) == 8 and truth[0][1] == 6 and truth[0][0] == pytest.approx(0.178, abs=0.001)  # not a large posterior
    assert len(votes) == 2 and votes[1][1] == 5 and votes[1][0] == pytest.approx(0.984, abs=0.001)  # a large one
    assert 0.0235 < votes[1][2] < 0.025  # by a hair


def test_averages_of_figure_3_fall_here_and_there_though_the_relation_is_positive(lesions):
    _, counts, _, tau = lesions
    falls = {"truth": [(1, 0.318, 0.146)], "votes": [(1, 0.464, 0.349), (5, 0.758, 0.744)]}
    for name, expected in falls.items():
        p = tau[name][:, 0]
        means = [p[counts[:, 0] == v].mean() for v in range(8)]
        found = [(v, means[v], means[v + 1]) for v in range(7) if means[v + 1] < means[v]]
        assert_allclose(found, expected, atol=0.0006)
        # Kendall's test, another coefficient than the chapter's: nothing but a positive relation.
        assert stats.kendalltau(counts[:, 0], p, alternative="greater").pvalue < 1e-6


def test_refitting_is_excluded_and_the_likelihood_interval_is_near(lesions):
    X, counts, _, tau = lesions
    printed = {
        (k, i): claims.claim(f"gastro.interval.{k}.{end}").value for k in tau for i, end in enumerate(("lower", "upper"))
    }
    rng = np.random.default_rng(11)
    rows = rng.integers(76, size=(600, 76))
    coef = fit_logistic_batch(X[rows], counts[rows]).coef
    estimates = []
    for s, p in zip(counts[rows, 0], expit(coef[:, :1] + np.einsum("rnp,rp->rn", X[rows], coef[:, 1:]))):

        def loss(log_a, s=s, p=p):
            a, b = np.exp(log_a) * p, np.exp(log_a) * (1 - p)
            return (betaln(a, b) - betaln(s + a, 7 - s + b)).sum()

        estimates.append(np.exp(optimize.minimize_scalar(loss, bounds=(-1, 7), method="bounded").x))
    lower = np.quantile(estimates, 0.025)
    error = np.quantile(rng.choice(estimates, (200, 600)), 0.025, axis=1).std()
    # Both the paper's end and this one have that error: the rule's three of them.
    assert lower - printed["votes", 0] > 0.005 + 3 * np.sqrt(2) * error
    # The likelihood interval: within the bootstrap's tolerance, and not to the digits.
    scatter = {"truth": (0.09, 0.55), "votes": (0.11, 0.55)}
    for (k, i), value in printed.items():
        away = abs(alpha0_interval(counts, tau[k], method="likelihood")[i] - value)
        assert 0.005 < away < 0.005 + 3 * scatter[k][i]


# ------------------------------------------------------------------ separation


def test_separation_depends_on_the_distance_of_the_classes():
    """By linear programming: the largest margin in a box of coefficients is zero, or it is not."""
    rng = np.random.default_rng(12)
    shares = {}
    for delta in (1, 2, 3):
        found = []
        for _ in range(150):
            z = rng.integers(2, size=50)
            Y = rng.normal(size=(50, 10))
            Y[:, 0] += delta * z
            signed = (2 * z - 1)[:, None] * np.column_stack([np.ones(50), Y])
            best = optimize.linprog(-signed.sum(axis=0), -signed, np.zeros(50), bounds=(-1, 1))
            found.append(-best.fun > 1e-8)
            assert found[-1] == (find_separation(Y, z) != "none")
        shares[delta] = np.mean(found)
    # The chapter draws 0.4%, 30% and 93%: four standard errors of 150 sets and its 500.
    for delta, printed in ((1, 0.004), (2, 0.304), (3, 0.932)):
        assert abs(shares[delta] - printed) < 4 * np.sqrt(printed * (1 - printed) * (1 / 150 + 1 / 500))


# ------------------------------------------------------------------ leakage and design


def maximum(X, counts):
    """By scikit-learn: coefficients of a logistic regression with hardly any penalty, since it may not have a maximum."""
    labels = np.repeat([1, 0], len(X))
    fit = LogisticRegression(C=1e6, solver="newton-cholesky", max_iter=200, tol=1e-8)
    fit.fit(np.vstack([X, X]), labels, counts.T.ravel())
    return np.r_[fit.intercept_, fit.coef_[0]]


def side(coef, X):
    return coef[0] + X @ coef[1:] > 0


def test_votes_of_voters_who_have_not_seen_the_test_labels_are_worse():
    X, y, labels = wisconsin()
    eta = np.column_stack([np.ones(569), X]) @ maximum(X, labels)
    tau = expit(eta)
    assert np.mean((eta > 0) != y) == BAYES
    # The penalty of 1e-6 changes the fourth digit.
    assert np.minimum(tau, 1 - tau).mean() == pytest.approx(0.0531, abs=0.0002)
    rng = np.random.default_rng(13)
    errors = []
    for _ in range(120):
        others, train, test = np.split(rng.permutation(569), [285, 335])
        voters = maximum(X[others], labels[others])
        unseen = expit(voters[0] + X[train] @ voters[1:])
        rules = [voters]
        for t in (tau[train], unseen):
            p = rng.beta(1000 * t + 1e-12, 1000 * (1 - t) + 1e-12)
            s = rng.binomial(100, p)
            rules.append(maximum(X[train], np.column_stack([s, 100 - s])))
        errors.append([np.mean(side(b, X[test]) != y[test]) for b in rules])
    voters, seen, unseen = np.transpose(errors)
    error = stats.sem(unseen - seen)
    assert np.mean(unseen - seen) > 5 * error and abs(np.mean(unseen - seen) - 0.0141) < 4 * error
    assert voters.mean() > 0.062 and unseen.mean() > voters.mean() - 2 * stats.sem(unseen - voters)


def test_a_block_of_the_design_study_by_hand(monkeypatch):
    """At 400 items maxima exist: another program finds them, and error rates are sums over both classes."""
    monkeypatch.setattr(breast_cancer_design, "RUNS", 2)
    found = breast_cancer_design.cell(400, 5, 1000, 3)
    data = wisconsin()
    X, y = data[0] * np.sqrt(569 / 568), data[1]
    tau = fit_logistic(X, y).posterior(X)
    expected = []
    for child in np.random.SeedSequence([400, 5, 1000, 3]).spawn(2):
        rng = np.random.default_rng(child)
        order, again = rng.permutation(569), rng.integers(569, size=400)
        train, test, everything = order[:400], order[400:], np.arange(569)

        def rule(items, votes, alpha, rng=rng):
            return fit_logistic(X[items], nested_votes(tau[items], np.array([votes]), alpha, rng)[0]).predict(X)

        truth = fit_logistic(X[train], y[train]).predict(X)
        votes, drawn = rule(train, 5, 1000), rule(train, 1, np.inf)
        again_truth, again_votes = rule(again, 1, np.inf), rule(again, 5, 1000)

        def excess(predicted, items):
            error = np.where(predicted == 1, tau[:, 1], tau[:, 0])
            return np.mean(error[items]) - np.mean(tau.min(axis=1)[items])

        expected.append([
            np.mean((truth != y)[test]), np.mean((votes != y)[test]), excess(truth, test), excess(votes, test),
            excess(drawn, test), excess(again_truth, everything), excess(again_votes, everything)])  # fmt: skip
    assert_allclose([found[name] for name in breast_cancer_design.NAMES], np.mean(expected, axis=0), atol=1e-9)


# ------------------------------------------------------------------ joint tests of Tables 2 and 3


def moments(made_by):
    rows = pd.read_csv(ROOT / "book/studies/breast_cancer_tables.csv", comment="#").query("made_by == @made_by")
    cov = np.zeros((21, 21))
    for i, j in zip(*np.triu_indices(21)):
        cov[i, j] = cov[j, i] = rows[f"cov{i}_{j}"].mean()
    return rows.filter(regex="^mean").mean().to_numpy(), cov


def printed_errors():
    return np.array([claims.claim(f"table2.m{m}.alpha{a}").value for a in ALPHAS for m in MS])


def pvalue(errors, made_by):
    mean, cov = moments(made_by)
    return joint_test(errors - mean[1:], cov[1:, 1:] * (1 / 100 + 1 / 2000)).pvalue


def test_what_the_joint_test_of_table_2_rejects():
    paper = {name: pvalue(printed_errors(), name) for name in breast_cancer_tables.MADE_BY}
    assert all(paper[name] > 0.2 for name in ("r", "r_10_steps", "r_100_steps"))
    assert all(paper[name] < 0.05 for name in ("r_5_steps", "firth", "alpha0_half", "alpha0_double"))
    # Another order of the same numbers is no table of this study.
    assert pvalue(printed_errors()[::-1], "r") < 1e-10


def test_tables_made_by_r_itself_pass_the_joint_test():
    table = np.array([R_VOTES[a] for a in ALPHAS]).ravel() / 100
    assert pvalue(table, "r") > 0.01 and pvalue(table, "r_5_steps") < 1e-6
    mean, cov = moments("r")
    assert abs(R_TRUTH - mean[0]) < 4 * np.sqrt(cov[0, 0] / 100)


def test_a_block_of_the_tables_study_by_hand(monkeypatch):
    monkeypatch.setattr(breast_cancer_tables, "SPLITS", 4)
    found = breast_cancer_tables.cell("alpha0_double", 5)
    data = wisconsin()
    X, y, labels = data[0] * np.sqrt(569 / 568), data[1], data[2]
    tau = fit_logistic(X, y).posterior(X)
    errors = []
    for child in np.random.SeedSequence(5).spawn(4):
        rng = np.random.default_rng(child)
        order = rng.permutation(569)
        train, test = order[:50], order[50:]
        row = [labels[train]]
        for alpha0 in (2, 20, 200, 2000):
            row += nested_votes(tau[train], np.array(MS), alpha0, rng)
        fits = [breast_cancer_tables.fit_as_r(X[train], counts) for counts in row]
        errors.append([np.mean(side(b, X[test]) != y[test]) for b in fits])
    assert [found[f"mean{i}"] for i in range(21)] == pytest.approx(np.mean(errors, axis=0), rel=1e-12)
    a, b = np.transpose(errors)[[0, 20]]
    assert found["cov0_20"] == pytest.approx(((a - a.mean()) * (b - b.mean())).sum() / 3, abs=1e-15)
    assert found["cov20_20"] == pytest.approx(b.var(ddof=1), abs=1e-15) and "cov20_0" not in found
