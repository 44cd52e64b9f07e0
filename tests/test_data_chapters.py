"""Figures of the chapters on the paper's data, computed apart: by SciPy, scikit-learn, explicit loops, and R's own values."""

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from numpy.testing import assert_allclose
from reference import gastro, load_once
from scipy import optimize, stats
from scipy.special import betaln, expit
from sklearn.linear_model import LogisticRegression, lasso_path
from sklearn.model_selection import StratifiedKFold
from test_experiments import ALPHAS, BAYES, MS, R_TRUTH, R_VOTES, wisconsin

from softlabel import alpha0_interval, estimate_alpha0, find_separation, fit_logistic, fit_logistic_batch, prediction_band
from softlabel.book import claims
from softlabel.book.diagnostics import joint_test
from softlabel.book.standin import GASTRO_FEATURES
from softlabel.book.studies import breast_cancer_design, breast_cancer_tables
from softlabel.experiments import fit_as_r, nested_votes

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


def largest_five(Z, y):
    """Of the features in a lasso, by coordinate descent, when its penalty first lets five in."""
    varies = np.flatnonzero(Z.std(axis=0))
    Z = (Z[:, varies] - Z[:, varies].mean(axis=0)) / Z[:, varies].std(axis=0)
    largest = np.abs(Z.T @ (y - y.mean())).max() / len(y)
    _, path, _ = lasso_path(Z, y - y.mean(), alphas=largest * np.geomspace(1, 0.3, 300))
    coef = next(coef for coef in path.T if (coef != 0).sum() >= 5)
    return varies[np.argsort(np.abs(coef))[-5:]]


def test_features_that_were_chosen_with_all_true_labels_look_much_better_than_they_are(lesions):
    X, _, y, _ = lesions
    Z = np.asarray(load_once().X, float)
    Z = (Z - Z.mean(axis=0)) / np.where(Z.std(axis=0) > 0, Z.std(axis=0), 1)
    assert set(load_once().X.columns[largest_five(Z, y)]) == set(GASTRO_FEATURES)
    fit = LogisticRegression(C=1e6, max_iter=1000)
    wrong = {"kept": [], "anew": []}
    for seed in range(3):
        for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y):
            five = largest_five(Z[train], y[train])
            for name, features in (("kept", X), ("anew", Z[:, five])):
                wrong[name].extend(fit.fit(features[train], y[train]).predict(features[test]) != y[test])
    assert fit.fit(X, y).score(X, y) == 69 / 76
    assert np.mean(wrong["kept"]) == pytest.approx(0.12, abs=0.025)
    assert np.mean(wrong["anew"]) == pytest.approx(0.20, abs=0.04)


def test_the_two_estimates_of_alpha0_stand_in_an_order_that_the_fitted_model_seldom_gives(lesions):
    X, counts, _, tau = lesions
    alpha0 = {name: estimate_alpha0(counts, t).alpha0 for name, t in tau.items()}
    assert alpha0["truth"] > alpha0["votes"]
    rng, as_here = np.random.default_rng(14), 0
    for _ in range(150):
        p = tau["votes"][:, 0]
        s = rng.binomial(7, rng.beta(alpha0["votes"] * p, alpha0["votes"] * (1 - p)))
        pairs, z = np.column_stack([s, 7 - s]), rng.random(76) < p
        by_truth, by_votes = (estimate_alpha0(pairs, fit_logistic(X, labels).posterior(X)).alpha0 for labels in (z, pairs))
        as_here += by_truth > by_votes
    assert as_here < 10


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


def test_where_r_reports_convergence_on_a_separated_set():
    """R 4.2.2 stops there after 13 steps with the deviance 216.26, three items of 72.09: how many, rounding decides."""
    X, y, labels = wisconsin()
    X = X * np.sqrt(569 / 568)
    rng = np.random.default_rng(50)
    train = [rng.permutation(569)[:50] for _ in range(15)][14]
    signed = (2 * y[train] - 1)[:, None] * np.column_stack([np.ones(50), X[train]])
    # Completely separated: some plane has a margin of one on every item.
    assert optimize.linprog(np.zeros(11), -signed, -np.ones(50), bounds=(None, None)).status == 0
    stopped, longer = (fit_as_r(X[train], labels[train], max_iter=steps) for steps in (14, 25))
    assert_allclose(longer, stopped, rtol=0)
    wrong = signed @ stopped < 0
    assert 1 <= wrong.sum() <= 5 and (signed @ stopped)[wrong].max() < -36.04


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
    errors, total, times = [], np.zeros(569), np.zeros(569)
    for _ in range(120):
        others, train, test = np.split(rng.permutation(569), [285, 335])
        voters = maximum(X[others], labels[others])
        unseen = expit(voters[0] + X[train] @ voters[1:])
        rules = [voters]
        for t in (tau[train], unseen):
            p = rng.beta(1000 * t + 1e-12, 1000 * (1 - t) + 1e-12)
            s = rng.binomial(100, p)
            rules.append(maximum(X[train], np.column_stack([s, 100 - s])))
        ridge = LogisticRegression(C=1).fit(X[train], y[train])
        wrong = [side(b, X[test]) != y[test] for b in rules] + [ridge.predict(X[test]) != y[test]]
        errors.append(np.mean(wrong, axis=1))
        total[test] += wrong[3] * 1 - wrong[2] * 1
        times[test] += 1
    voters, seen, unseen, ridge = np.transpose(errors)
    error = stats.sem(unseen - seen)
    assert np.mean(unseen - seen) > 5 * error and abs(np.mean(unseen - seen) - 0.0141) < 4 * error
    assert voters.mean() > 0.062 and unseen.mean() > voters.mean() - 2 * stats.sem(unseen - voters)
    # More splits would hardly move the lead over a ridge on true labels; other tumours might take it away.
    by_tumour = total / times
    assert stats.sem(ridge - unseen) < 0.0025 and 0.0035 < stats.sem(by_tumour) < 0.0055
    assert by_tumour.mean() < 2 * stats.sem(by_tumour)


def test_the_shares_of_the_shortfall_depend_on_the_order():
    X, _, labels = wisconsin()
    rows = pd.read_csv(ROOT / "book/studies/breast_cancer_design.csv", comment="#")
    mean = rows.query("n == 50 and m == 100 and alpha0 == 1000").mean()
    floor = fit_logistic(X, labels).posterior(X).min(axis=1).mean()
    limit = 100 * 1001 / 1100

    def left(exact, bayes):
        """Logarithm of the efficiency over its limit; the exact error rates are kept as excesses over the model's own."""
        truth, votes = (mean[f"{k}_exact"] + floor if exact else mean[k] for k in ("truth", "votes"))
        return np.log((truth - bayes) / (votes - bayes) / limit)

    corners = {(exact, bayes): left(exact, bayes) for exact in (False, True) for bayes in (BAYES, floor)}
    start = corners[False, BAYES]
    steps = [
        corners[False, floor] - start, corners[True, floor] - corners[False, floor],
        corners[True, BAYES] - start, corners[True, floor] - corners[True, BAYES],
    ]  # fmt: skip
    assert_allclose(np.array(steps) / -start, [0.27, 0.08, 0.04, 0.32], atol=0.006)


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
    # A factor that all cells share: the chi-square of twenty cells seldom sees three of its standard errors.
    mean, cov = moments("r")
    root = np.linalg.cholesky(cov[1:, 1:] * (1 / 100 + 1 / 2000))
    x, z = np.linalg.solve(root, np.column_stack([mean[1:], printed_errors()])).T
    factor, se = x @ z / (x @ x), np.linalg.norm(x) ** -1
    assert abs(factor - 1) < se and se == pytest.approx(0.0088, abs=0.0002)
    assert pvalue(mean[1:] * (1 + 3 * se), "r") > 0.0027
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
