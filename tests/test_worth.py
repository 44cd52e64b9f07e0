"""One rule from votes and true labels, and what votes are worth: known answers, by simulation and by quadrature."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

import softlabel as sl
from softlabel import TruthWarning, TwoClassNormal, belief, fit_logistic, fit_votes_and_truth, worth, worth_of_votes
from softlabel.two_way import coordinates

MODEL = TwoClassNormal.canonical(2.0, p=3)
RULE = np.array([0.0, 2.0, 0.0, 0.0])


@pytest.fixture(autouse=True)
def light(monkeypatch):
    monkeypatch.setattr(belief, "COSTLY_DRAWS", 40)  # for the equal number, of which nothing fine is asked here


def with_votes(n, k, m=5, alpha0=3.0, rule=RULE, seed=0, model=MODEL):
    """Items whose votes have the mean expit(rule'x), k of them with their true label."""
    rng = np.random.default_rng(seed)
    X, y = model.sample(n, rng)
    mean = expit(rule[0] + X @ rule[1:])
    counts = sl.sample_votes(np.column_stack([mean, 1 - mean]), m, alpha0, rng)
    return X, counts, np.where(np.arange(n) < k, y, np.nan)


def best(X, y):
    """Logarithm of the likelihood of true labels, as a function of the coefficients."""
    x = np.column_stack([np.ones(len(X)), X])
    return lambda b: log_expit(np.where(y == 1, 1, -1) * (x @ b)).sum()


# ------------------------------------------------------------------ one rule from both


def test_without_true_labels_it_is_the_rule_of_the_votes():
    X, counts, truth = with_votes(200, 0)
    fit, votes = fit_votes_and_truth(X, counts, truth), fit_logistic(X, counts)
    np.testing.assert_allclose(fit.coef, votes.coef, rtol=0, atol=1e-12)  # rounding
    assert (fit.n_truths, fit.log_likelihood, fit.n_items) == (0, 0, 200)
    # That the mean of the votes may be wrong is part of its uncertainty.
    assert (fit.stderr() > votes.stderr()).all()


def test_without_votes_it_is_firths_rule_of_the_true_labels():
    X, counts, truth = with_votes(200, 40)
    fit, truths = fit_votes_and_truth(X, 0 * counts, truth), fit_logistic(X[:40], truth[:40], method="firth")
    np.testing.assert_array_equal(fit.coef, truths.coef)
    np.testing.assert_array_equal(fit.cov(), truths.cov("model"))
    assert (fit.n_items, fit.n_without_votes, fit.n_truths) == (40, 160, 40)
    assert fit.log_likelihood == pytest.approx(best(X[:40], truth[:40])(fit.coef), rel=1e-12)


def test_where_votes_and_truth_agree_it_is_close_to_the_efficient_fit():
    """Efficient is the maximum of the likelihood of the true labels times the normal density of the votes' estimate."""
    away, excess = [], []
    for seed in range(60):
        X, counts, truth = with_votes(200, 80, seed=seed)
        votes, likelihood = fit_logistic(X, counts), best(X[:80], truth[:80])
        precision = np.linalg.inv(votes.cov())

        def cost(b):
            return (b - votes.coef) @ precision @ (b - votes.coef) / 2 - likelihood(b)

        efficient, combined = minimize(cost, votes.coef, method="BFGS").x, fit_votes_and_truth(X, counts, truth).coef
        truths = fit_logistic(X[:80], truth[:80]).coef
        excess.append([MODEL.error_rate(rule) for rule in (combined, efficient, truths)])
        away.append(combined / np.linalg.norm(combined) - efficient / np.linalg.norm(efficient))
    combined, efficient, truths = np.mean(excess, axis=0)
    assert combined - efficient < (truths - efficient) / 5
    assert np.sqrt(np.mean(np.square(away))) < 0.08  # of directions of length 1


def test_where_they_disagree_it_goes_to_the_truth():
    X, counts, truth = with_votes(4000, 2000, rule=np.array([1.0, 2.0, 1.5, 0.0]), m=20)
    fit, votes, truths = fit_votes_and_truth(X, counts, truth), fit_logistic(X, counts), fit_logistic(X[:2000], truth[:2000])
    assert np.abs(fit.coef - truths.coef).max() < 0.1 < 1 < np.abs(votes.coef - truths.coef).max()


def test_inverted_votes_are_turned_round():
    X, counts, truth = with_votes(500, 200)
    fit = fit_votes_and_truth(X, counts[:, ::-1], truth)
    assert MODEL.error_rate(fit.coef) - MODEL.bayes_error() < 0.02
    answer = worth_of_votes(X, counts[:, ::-1], truth, rng=0)
    assert answer.scale.high < 0 and answer.floor.low > 0.5 and answer.error.low > 0.7


def moved(X, counts, truth, how):
    """The same in another form, and its linear predictors from the former ones."""
    A = np.array([[1, 2, 0], [0, 0.1, 0], [5, 0, 10]])
    order = np.random.default_rng(1).permutation(len(X))
    return {
        "order": ((X[order], counts[order], truth[order]), lambda eta: eta[order]),
        "units": ((X * [1e-4, 1, 1e5] + [7, 0, 1e6], counts, truth), lambda eta: eta),
        "combined features": ((X @ A, counts, truth), lambda eta: eta),
        "classes exchanged": ((X, counts[:, ::-1], 1 - truth), lambda eta: -eta),
        "items that nobody knows": (
            (np.vstack([X, X]), np.vstack([counts, 0 * counts]), np.r_[truth, truth * np.nan]),
            lambda eta: np.r_[eta, eta],
        ),
    }[how]


@pytest.mark.parametrize("how", ["order", "units", "combined features", "classes exchanged", "items that nobody knows"])
def test_what_does_not_change_the_rule(how):
    data = with_votes(150, 50, seed=4)
    new, expected = moved(*data, how)
    eta = fit_votes_and_truth(*new).linear_predictor(new[0])
    right = expected(fit_votes_and_truth(*data).linear_predictor(data[0]))
    np.testing.assert_allclose(eta, right, rtol=1e-6, atol=1e-6)  # cancellation within 1e6 +- 1


def test_pandas_objects_are_matched_and_named():
    X, counts, truth = with_votes(100, 30)
    frame = pd.DataFrame(X, columns=["size", "shape", "age"], index=[f"i{k}" for k in range(100)])
    votes = pd.DataFrame(counts, index=frame.index).sample(frac=1, random_state=0)
    nullable = pd.Series(truth, index=frame.index).astype("Int64")
    for known in (pd.Series(truth, index=frame.index).iloc[::-1], nullable):
        fit = fit_votes_and_truth(frame, votes, known)
        np.testing.assert_allclose(fit.coef, fit_votes_and_truth(X, counts, truth).coef, rtol=1e-12)
    assert fit.feature_names == ["size", "shape", "age"] and "30 true labels" in repr(fit) and "shape" in repr(fit)


def test_modes_and_posterior_are_those_of_a_quadrature():
    """One feature: theta = (a, s), and the mixture of four models on a grid."""
    model = TwoClassNormal.canonical(1.5, p=1)
    X, counts, truth = with_votes(120, 40, rule=np.array([0.4, 1.5]), model=model)
    votes = fit_logistic(X, counts)
    found = belief.Belief.of(X, votes.coef, votes.cov(), truth, (~np.isnan(truth)).astype(float))
    a, s = np.linspace(-2.5, 2.5, 401), np.linspace(-1.5, 5, 401)
    theta = np.stack(np.meshgrid(a, s, indexing="ij"), axis=-1).reshape(-1, 2)
    logit = theta @ np.stack([np.ones(40), votes.linear_predictor(X[:40])])
    likelihood = log_expit(np.where(truth[:40] == 1, logit, -logit)).sum(axis=1)
    prior = {0.0: 0.2, 0.25: 0.35, 0.7: 0.35, 2.0: 0.1}
    densities = []
    for precision, lean in zip(found.precision, belief.LEANS):
        away = theta - [0, 1]
        log_density = likelihood - np.einsum("ni,ij,nj->n", away, precision, away) / 2 + np.linalg.slogdet(precision)[1] / 2
        densities.append(prior[lean] * np.exp(log_density - likelihood.max()))
    weight = np.sum(densities, axis=1) / np.sum(densities)
    np.testing.assert_allclose(np.exp(found.log_weight), weight, atol=0.02)  # Laplace's approximation
    density = np.sum(densities, axis=0) / np.sum(densities)
    expected = density @ theta
    sd = np.sqrt(density @ theta**2 - expected**2)
    drawn = np.concatenate([found.draw(np.random.default_rng(seed))[0] for seed in range(10)])
    np.testing.assert_allclose((drawn.mean(axis=0) - expected) / sd, 0, atol=0.05)  # some three standard errors
    np.testing.assert_allclose(drawn.std(axis=0), sd, rtol=0.05)
    to_theta = coordinates(X, votes.coef)[1]
    coefs = drawn @ found.to_coef
    np.testing.assert_allclose(np.cov(coefs.T), found.coef_and_cov()[1], rtol=0.2)  # Laplace's approximation
    np.testing.assert_allclose(found.sampling, to_theta @ votes.cov() @ to_theta.T, rtol=1e-6)


@pytest.mark.parametrize("q", [2, 5])
def test_probabilities_of_the_models(q):
    drift, log_prior = belief._models(q)
    prior = np.exp(log_prior)
    assert prior.sum() == pytest.approx(1) and prior[0] == pytest.approx(0.2) and (drift[0] == np.eye(1, q, 1) * 0.7).all()
    assert prior[(drift == drift.max(axis=0))[:, [0, *range(2, q)]].any(axis=1)].sum() == pytest.approx(0.1)


def test_votes_twice_too_extreme_are_right_but_for_their_scale():
    X, counts, truth = with_votes(400, 400, m=2, alpha0=np.inf, rule=2 * RULE)
    votes = fit_logistic(X, counts)
    found = belief.Belief.of(X, votes.coef, votes.cov(), truth, np.ones(400))
    assert found.scale == pytest.approx(0.5, abs=0.1)
    # Without lean and tilt, theta is the limit of the votes' estimate on the scale of the truth.
    np.testing.assert_allclose(np.linalg.inv(found.precision[0]), found.scale**2 * found.sampling + np.diag([0, 0.49, 0, 0]))
    theta, error, model = found.draw(np.random.default_rng(0))
    np.testing.assert_allclose(theta[model == 0][:, [0, 2, 3]], error[model == 0][:, [0, 2, 3]], atol=1e-6)
    limit = sl.fit_limit(MODEL, lambda eta: expit(2 * eta), lambda eta: expit(2 * eta) * expit(-2 * eta) / 2)
    answer = worth_of_votes(X, counts, truth, rng=0)
    assert answer.equal_number.low < 400 * limit.relative_efficiency < answer.equal_number.high


def test_new_items_are_not_those_in_hand():
    """Were theta known, the error rate on new items would still be a mean over other ones."""
    X, counts, truth = with_votes(300, 300)
    votes = fit_logistic(X, counts)
    found = belief.Belief.of(X, votes.coef, votes.cov(), truth, np.full(300, 1e4))
    cov = belief.cov_of_votes(found.z, counts, None, np.random.default_rng(0))
    error = found.quantities(cov, 300, np.random.default_rng(0), True)["error"]
    tau = expit(found.z @ found.mode[0])
    of_items = np.where(found.z[:, 1] > 0, 1 - tau, tau)
    assert error.std() == pytest.approx(of_items.std() / np.sqrt(300), rel=0.1)
    assert error.mean() == pytest.approx(of_items.mean(), abs=0.002)


def test_the_votes_rule_has_the_covariance_of_overdispersed_votes_and_of_annotators_who_differ():
    X, counts, who = with_annotators(300, 40, 20)
    votes = fit_logistic(X, counts)
    for given, right in ((None, votes.cov("sandwich")), (who, sl.two_way_cov(votes, X, counts, as_table(who)))):
        coef, cov, _ = worth._votes_rule(X, counts, given)
        np.testing.assert_array_equal(coef, votes.coef)
        np.testing.assert_allclose(cov, right, rtol=1e-12)


def rules_of(X, y):
    """Coefficients from many sets of true labels; of separated ones their direction is as good as another."""
    with warnings.catch_warnings(action="ignore"):
        return sl.fit_logistic_batch(X, y).coef


def test_unequal_probabilities_make_fewer_labels_of_many():
    known, inclusion = np.array([True, True, False, True]), np.array([0.1, 0.2, np.nan, 0.4])
    weight = worth._weights(known, inclusion)
    np.testing.assert_allclose(weight, np.array([4, 2, 0, 1]) * 7 / 21, rtol=1e-12)  # 1 / inclusion; sum^2 / sum of squares


def test_coordinates_are_eta_and_what_is_uncorrelated_with_it():
    X, counts, _ = with_votes(300, 0, rule=np.array([1.0, 2.0, -1.0, 0.5]))
    X = X * [1e-3, 1, 50] + [5, 0, 1e3]
    coef = fit_logistic(X, counts).coef
    to_coef, to_theta = coordinates(X, coef)
    z = to_coef[:, :1].T + X @ to_coef[:, 1:].T
    np.testing.assert_allclose(z[:, 1], coef[0] + X @ coef[1:], rtol=1e-9, atol=1e-9)
    scatter = np.cov(z[:, 1:].T, bias=True)
    np.testing.assert_allclose(scatter[1:, 1:], np.eye(2), atol=1e-8)
    np.testing.assert_allclose(scatter[0, 1:], 0, atol=1e-8)
    np.testing.assert_allclose(z[:, 2:].mean(axis=0), 0, atol=1e-8)
    np.testing.assert_allclose(to_theta @ coef, [0, 1, 0, 0], atol=1e-8)
    np.testing.assert_allclose(to_theta @ to_coef.T, np.eye(4), atol=1e-8)


# ------------------------------------------------------------------ expected errors


def test_signed_roots_are_those_of_the_constrained_maximum():
    rng = np.random.default_rng(0)
    z = np.column_stack([np.ones(150), rng.normal(size=(150, 2))])
    theta = np.array([0.3, 1.2, -0.5])
    tau = expit(z @ theta)
    points = z[:12]
    roots, form = belief.signed_roots(points, z, theta)

    def loss(b):
        return -(tau * log_expit(z @ b) + (1 - tau) * log_expit(-z @ b)).mean()

    for k, point in enumerate(points):
        basis = np.linalg.svd(point[None])[2][1:]
        constrained = minimize(lambda c: loss(c @ basis), basis @ theta, method="BFGS", options={"gtol": 1e-8}).fun
        expected = np.sign(point @ theta) * np.sqrt(2 * (constrained - loss(theta)))
        assert roots[k] == pytest.approx(expected, rel=0.01)  # two Newton steps
    information = (z.T * (tau * (1 - tau))) @ z / len(z)
    np.testing.assert_allclose(form, np.einsum("ni,ij,nj->n", points, np.linalg.inv(information), points), rtol=1e-6)


@pytest.mark.parametrize("n", [60, 200])
def test_expected_error_of_true_labels_is_that_of_simulations(n):
    """Votes as good as one true label: their expected excess is that of true labels, and their number the same."""
    X, _ = MODEL.sample(400, rng=1)
    z = np.column_stack([np.ones(400), X])
    tau = expit(z @ RULE)
    information = (z.T * (tau * (1 - tau))) @ z / len(z)
    excess, number = belief.equal(z, z, RULE, RULE, np.linalg.inv(information), n)
    assert number == pytest.approx(n, rel=0.01)  # interpolation
    half = belief.equal(z, z, RULE, RULE, 2 * np.linalg.inv(information), n)[1]
    assert half - 3 == pytest.approx((n - 3) / 2, rel=0.01)
    items = np.random.default_rng(2).integers(0, 400, (1500, n))
    y = np.random.default_rng(3).random(items.shape) < tau[items]
    wrong = (rules_of(X[items], y) @ z.T > 0) != (tau > 0.5)
    simulated = (wrong * np.abs(2 * tau - 1)).mean(axis=1)
    assert excess == pytest.approx(simulated.mean(), rel=0.06)  # seen: 1 to 3%; one standard error is 1.5%


@pytest.mark.parametrize("m", [1, 3, 20])
def test_covariance_of_votes_for_another_number_of_them(m):
    """That of Theorem 1, from votes of which there are five an item."""
    X, counts, _ = with_votes(6000, 0)
    z = np.column_stack([np.ones(len(X)), fit_logistic(X, counts).linear_predictor(X), X[:, 1:]])
    covs = belief.cov_of_votes(z, counts, m, np.random.default_rng(0))
    tau = expit(z[:, 1])
    fisher = (z.T * (tau * (1 - tau))) @ z / len(z)
    expected = np.linalg.inv(sl.godambe_information(fisher, m, 3.0))
    np.testing.assert_allclose(np.diag(covs.mean(axis=0)), np.diag(expected), rtol=0.08)
    if m == 20:  # unequal numbers
        in_hand = belief.cov_of_votes(z, np.vstack([counts[:3000], 2 * counts[3000:]]), None, np.random.default_rng(0))
        bound = sl.relative_efficiency(5, 3.0)
        assert (np.diag(in_hand.mean(axis=0)) > np.diag(np.linalg.inv(bound * fisher))).all()


# ------------------------------------------------------------------ annotators

OWN = 0.8
NO_VOTE = pd.DataFrame({"item": [53], "annotator": ["nobody"], "label": [np.nan]})


def with_annotators(n, L, m, own=OWN, seed=0):
    """Each item is voted on by m of L annotators, each of whom votes on equally many items. They have tastes c = +-own and say
    yes with probability tau + c tau (1 - tau), so that its mean is tau, and c shifts the intercept, by c to first order."""
    rng = np.random.default_rng(seed)
    X = MODEL.sample(n, rng)[0]
    item, group = np.tile(np.arange(n), m), L // m
    annotator = np.concatenate([k * group + rng.permutation(n) % group for k in range(m)])
    tau = expit(X @ RULE[1:])[item]
    positive = rng.random(n * m) < tau + own * rng.choice([-1, 1], L)[annotator] * tau * (1 - tau)
    who = belief.Who(item, annotator, positive)
    return X, counted(who), who


def counted(who):
    counts = np.zeros((who.item.max() + 1, 2))
    np.add.at(counts, (who.item, 1 - who.positive), 1)
    return counts


def as_table(who):
    return pd.DataFrame({"item": who.item, "annotator": who.annotator + 1, "label": who.positive.astype(int)})


def of_z(X, counts):
    fit = fit_logistic(X, counts)
    to_coef = coordinates(X, fit.coef)[0]
    return to_coef[:, :1].T + X @ to_coef[:, 1:].T


@pytest.mark.parametrize(("m", "size"), [(None, 8000), (None, 6), (1, 8000), (2, 500), (4, 3)])
def test_covariance_of_votes_of_annotators_with_tastes(m, size):
    """For one item A^-1 / m, and for the intercept (v - 1) own^2 / m more, if each votes on v items."""
    X, counts, who = with_annotators(8000, 4000, 5)
    z = of_z(X, counts)
    covs = belief.cov_of_votes(z, counts, m, np.random.default_rng(0), who, size)
    tau = expit(z[:, 1])
    expected = np.diag(np.linalg.inv((z.T * (tau * (1 - tau))) @ z / len(z))) + np.eye(4)[0] * (min(10, size) - 1) * OWN**2
    np.testing.assert_allclose(np.diag(covs.mean(axis=0)) * (m or 5), expected, rtol=0.08)


def test_that_covariance_is_what_estimates_vary_by():
    """Estimates from votes of other annotators on other items, of fewer items with more votes on each."""
    X, counts, who = with_annotators(16000, 1600, 4)  # of 40 items each
    z = of_z(X, counts)
    covs = belief.cov_of_votes(z, counts, 8, np.random.default_rng(0), who, 500)
    data = [with_annotators(500, 100, 8, seed=1000 + k)[:2] for k in range(400)]  # of 40 again
    coefs = sl.fit_logistic_batch(np.array([X for X, _ in data]), np.array([counts for _, counts in data])).coef
    to_theta = coordinates(X, fit_logistic(X, counts).coef)[1]
    simulated = np.var(coefs @ to_theta.T, axis=0) * 500
    np.testing.assert_allclose(np.diag(covs.mean(axis=0)), simulated, rtol=0.25)  # one standard error is 7%, and 500 are few
    assert simulated[0] > 2 * belief.cov_of_votes(z, counts, 8, np.random.default_rng(0)).mean(axis=0)[0, 0]


def test_draws_of_that_covariance_vary_as_it_does_itself():
    """From one set of items and annotators to the next; the fewer of them, the more."""
    means, spreads = [], []
    for seed in range(60):
        X, counts, who = with_annotators(2000, 50, 2, seed=seed)
        covs = belief.cov_of_votes(of_z(X, counts), counts, None, np.random.default_rng(seed), who, 2000)[:, 0, 0]
        means.append(covs.mean())
        spreads.append(covs.std())
    assert np.mean(spreads) == pytest.approx(np.std(means), rel=0.3)  # three standard errors of 60 sets


def some_truths(X, which):
    return np.where(which, np.random.default_rng(0).random(len(X)) < expit(X @ RULE[1:]), np.nan)


@pytest.mark.parametrize("seed", [0, 4])
def test_what_ten_annotators_share_is_not_worth_a_thousand_items(seed):
    """All vote on everything; the intercept is known as well as ten tastes make it, by 2 / sqrt(10)."""
    X, counts, who = with_annotators(1000, 10, 10, own=2, seed=seed)
    truth = some_truths(X, np.arange(1000) < 300)
    alone, known = (worth_of_votes(X, counts, truth, votes=votes, m=10, rng=0) for votes in (None, as_table(who)))
    if abs(fit_logistic(X, counts).coef[0]) < 0.1:  # by luck
        assert known.equal_number.high < alone.equal_number.low and known.error.value > alone.error.value
    else:  # ten others might as well have shifted it the other way: the votes need not lean
        assert alone.lean.high < -0.5 and known.lean.low < -0.5 < 0 <= known.lean.high


def test_annotators_of_tables_in_any_form(monkeypatch):
    def checked(z, counts, m, rng, who, size):
        np.testing.assert_array_equal(counted(who), counts)  # items without votes are left out of both
        return belief.cov_of_votes(z, counts, m, rng, who, size)

    monkeypatch.setattr(worth, "cov_of_votes", checked)
    X, counts, who = with_annotators(300, 100, 5)
    truth, table = some_truths(X, np.arange(300) >= 200), as_table(who)
    counts[:50], table = 0, table[table.item >= 50]
    names = [f"i{k}" for k in range(300)]
    frame = pd.DataFrame(X, index=names)
    words = pd.DataFrame(counts, index=names, columns=["yes", "no"])
    named = table.assign(item=[names[k] for k in table.item], label=np.where(table.label == 1, "yes", "no"))
    shuffled = named.sample(frac=1, random_state=0).rename(columns={"item": "task", "annotator": "worker"})
    expected = worth_of_votes(X, counts, truth, votes=table, rng=0)
    for x, given, votes in (
        (frame, words, shuffled),
        (frame, words.iloc[::-1], named),
        (X, words, named),
        (frame, counts, named.assign(label=named.label == "yes")),
        (X, counts, pd.concat([NO_VOTE, table])),
        (X, counts, table.pivot(index="item", columns="annotator", values="label")),
        (X * [1e-4, 1, 1e5] + [7, 0, 1e6], counts, table),
    ):
        answer = worth_of_votes(x, given, truth, votes=votes, rng=0)
        np.testing.assert_allclose(answer.error, expected.error, rtol=1e-4)
        assert answer.lean.value == pytest.approx(expected.lean.value, abs=1e-4)


def test_votes_that_are_not_those_of_the_counts():
    """What is not in test_validation.py and test_two_way.py: a row without a vote, and words for labels."""
    X, counts, who = with_annotators(200, 50, 5)
    table, truth = as_table(who), (np.arange(200) % 2).astype(float)
    for votes, message in (
        (pd.concat([NO_VOTE, table.assign(annotator="a")]), "votes are all by one annotator"),
        (table.assign(item=table.item + 1), r"votes has item 200, but the items are 0, 1, 2, 3, 4, 5, \.\.\."),
        (table.assign(label="yes"), "positive=1 is not among the labels of votes"),
    ):
        with pytest.raises(ValueError, match=message):
            worth_of_votes(X, counts, truth, votes=votes)


def test_votes_need_items_that_differ_and_annotators_that_are_not_few():
    X, counts, who = with_annotators(200, 6, 3)
    truth, votes = some_truths(X, np.arange(200) < 100), as_table(who)
    with pytest.raises(ValueError, match="the index has item 0 more than once: votes cannot be matched"):
        worth_of_votes(pd.DataFrame(X, index=np.arange(200) // 2), counts, truth, votes=votes)
    with pytest.warns(TruthWarning, match="by only 6 annotators"):
        answer = worth_of_votes(X, counts, truth, votes=votes, rng=0)
    assert "annotators differ is hardly known" in repr(answer)


# ------------------------------------------------------------------ what votes are worth


def test_wrong_mean_is_found_and_taken_apart(monkeypatch):
    """Votes of which lean, scale, tilt, error and floor are known exactly."""
    monkeypatch.setattr(belief, "COSTLY_DRAWS", 200)
    wrong = np.array([0.3, 3.0, 1.0, 0.0])
    X, counts, truth = with_votes(6000, 6000, m=20, alpha0=5.0, rule=wrong, seed=1)
    answer = worth_of_votes(X, counts, truth, rng=0)
    # logit tau = 2 x1 = a + s (0.3 + 3 x1 + x2) + d t, where t is uncorrelated with 3 x1 + x2; the variances are 2 and 1.
    variance = 9 * 2 + 1
    s = 2 * 3 * 2 / variance
    tilt = np.sqrt(4 * 2 - s**2 * variance)
    error = MODEL.error_rate(wrong)
    floor = error - MODEL.bayes_error()
    known = {"lean": (-0.3 * s, 0.15), "scale": (s, 0.08), "tilt": (tilt, 0.12)}
    known |= {"error": (error, 0.012), "floor": (floor, 0.012)}
    for name, (value, off) in known.items():
        estimate = getattr(answer, name)
        assert estimate.low < value < estimate.high, name
        assert estimate.value == pytest.approx(value, abs=off), name
    # As many true labels err as much: the expected error of their rules, by simulation.
    low, _, high = sorted(map(int, answer.equal_number))
    for n, sign in ((low, 1), (high, -1)):
        excess = MODEL.error_rate(rules_of(*MODEL.sample(n, rng=n, size=2000))) - MODEL.bayes_error()
        assert sign * (excess.mean() - floor) > -2 * excess.std() / np.sqrt(2000)
    assert high < 2 * low


def test_votes_of_the_right_mean_have_no_floor_and_the_worth_of_the_formula():
    X, counts, truth = with_votes(1500, 1500)
    answer = worth_of_votes(X, counts, truth, rng=0)
    assert answer.floor.low == answer.lean.low * answer.tilt.low == 0 and answer.floor.high < 0.01
    promised = 1500 * sl.relative_efficiency(5, 3.0)
    assert answer.equal_number.low < promised < answer.equal_number.high


@pytest.mark.parametrize("rule", [RULE, np.array([0.6, 3.0, 1.5, 0.0])])
def test_coverage(rule, monkeypatch):
    monkeypatch.setattr(belief, "COSTLY_DRAWS", 5)  # of the equal number, which is not looked at
    inside = []
    for seed in range(40):
        X, counts, truth = with_votes(300, 60, rule=rule, seed=seed)
        answer = worth_of_votes(X, counts, truth, rng=0)
        error = MODEL.error_rate(fit_logistic(X, counts).coef)
        floor = MODEL.error_rate(rule) - MODEL.bayes_error()
        inside.append([answer.error.low <= error <= answer.error.high, answer.floor.low <= floor <= answer.floor.high])
    assert (np.mean(inside, axis=0) >= 0.8).all()  # nominal 0.9; one standard error of 40 is 0.05


def test_another_number_of_votes_and_items():
    X, counts, truth = with_votes(800, 400)
    few, more, many = (worth_of_votes(X, counts, truth, n_items=100, m=m, rng=0) for m in (1, 5, 50))
    assert few.error.value > more.error.value > many.error.value
    assert few.equal_number.value < more.equal_number.value < many.equal_number.value < 100 * (1 + 3.0) * 1.5
    assert (few.n_items, few.m) == (100, 1)
    with pytest.raises(ValueError, match=r"no item in counts .* another m"):
        worth_of_votes(X, np.eye(2)[np.argmin(counts, axis=1)], truth, m=2)


@pytest.mark.parametrize("how", ["order", "units"])
def test_what_does_not_change_the_worth(how):
    data = with_votes(200, 60, rule=np.array([0.5, 2, 1, 0]))
    expected, answer = (worth_of_votes(*given, rng=0) for given in (data, moved(*data, how)[0]))
    for name in ("error", "lean", "scale", "tilt", "floor"):
        np.testing.assert_allclose(getattr(answer, name), getattr(expected, name), rtol=1e-4, atol=1e-4)


def test_truths_chosen_with_unequal_probabilities(monkeypatch):
    """Labellers see more than the features, and where they disagree the truth is uncertain. Choosing such items for true
    labels makes the error look larger, unless the probabilities are told."""
    monkeypatch.setattr(belief, "COSTLY_DRAWS", 5)
    model = TwoClassNormal([1.0, 0, 1.5], [-1.0, 0, -1.5], np.eye(3))
    seen = TwoClassNormal([1.0, 0], [-1.0, 0], np.eye(2))
    bias = []
    for seed in range(20):
        X, counts, y = with_votes(800, 800, rule=model.coef, seed=seed, m=5, model=model)
        chosen, inclusion = sl.choose_for_truth(np.where(counts.min(axis=1) > 0, 6, 1), 300, rng=1000 + seed)
        truth = np.where(np.isin(np.arange(800), chosen), y, np.nan)
        error = seen.error_rate(fit_logistic(X[:, :2], counts).coef)
        told = (worth_of_votes(X[:, :2], counts, truth, inclusion=known, rng=0) for known in (inclusion, None))
        bias.append([answer.error.value - error for answer in told])
    z = np.mean(bias, axis=0) / np.std(bias, axis=0) * np.sqrt(20)
    assert abs(z[0]) < 3 and z[1] > 5
    X, counts, truth = with_votes(200, 60)
    same = worth_of_votes(X, counts, truth, inclusion=np.full(200, 0.3), rng=0)
    np.testing.assert_allclose(same.error, worth_of_votes(X, counts, truth, rng=0).error, rtol=1e-9)


def test_items_are_chosen_with_the_probabilities_that_are_told():
    weight = np.array([1.0, 2, 3, 4, 50, 60, 0.5])
    rng, counts = np.random.default_rng(0), np.zeros(7)
    for _ in range(4000):
        chosen, inclusion = sl.choose_for_truth(weight, 4, rng)
        assert len(set(chosen)) == 4 and list(chosen) == sorted(chosen)
        counts[chosen] += 1
    np.testing.assert_allclose(inclusion, np.r_[np.array([1, 2, 3, 4]) * 2 / 10.5, 1, 1, 1 / 10.5], rtol=1e-12)
    np.testing.assert_allclose(counts / 4000, inclusion, atol=0.03)  # four standard errors
    assert list(sl.choose_for_truth(weight, 7, rng)[0]) == list(range(7)) and (sl.choose_for_truth(weight, 7)[1] == 1).all()


def test_answer_in_words():
    X, counts, truth = with_votes(200, 60)
    answer = worth_of_votes(X, counts, truth, level=0.8, rng=0)
    text = repr(answer)
    assert "200 items, 5 votes each; 60 true labels; 80% intervals" in text
    for name in ("error", "lean", "scale", "tilt", "floor", "equal_number"):
        estimate = getattr(answer, name)
        assert estimate.low <= estimate.value <= estimate.high and str(estimate) in text
    assert worth_of_votes(X, counts, truth, level=0.95, rng=0).error.high > answer.error.high


# ------------------------------------------------------------------ reservations


def separated_votes(X):
    return np.column_stack([X[:, 0] > 0.1, X[:, 0] <= 0.1]) * 3


def test_doubtful_answers_have_their_reservations():
    X, counts, truth = with_votes(200, 60)
    few, outside = np.where(np.arange(200) < 18, truth, np.nan), (np.arange(200) >= 50) & (np.arange(200) < 120)
    for votes, truths, message, most in (
        (counts, few, "truth has only [1-9] true labels of the positive class", 1),
        (counts, 0 * truth + 1, "truth has no true label of the negative class", 1),
        (counts, 0 * truth + (X[:, 0] > 0), "separate the true labels", 0.3),
        (counts * ~outside[:, None], truth, "10 true labels in truth are on items without votes", 1),
        (separated_votes(X), truth, "separate the votes in counts", 1),
    ):
        with pytest.warns(TruthWarning, match=message) as caught:
            answer = worth_of_votes(X, votes, truths, rng=0)
        assert [str(w.message) for w in caught] == list(answer.reservations) and caught[0].filename == __file__
        assert f"but: {answer.reservations[0]}" in repr(answer)
        assert (answer.n_items, answer.n_truths) == (votes.any(axis=1).sum(), np.isfinite(truths).sum())
        assert 0 < answer.error.low < answer.error.high < most


def test_doubtful_rules_have_theirs():
    X, counts, truth = with_votes(200, 60)
    with pytest.warns(TruthWarning, match="truth are 1"):
        fit = fit_votes_and_truth(X, counts, 0 * truth + 1)
    assert np.isfinite(fit.coef).all() and np.isfinite(fit.stderr()).all()
    with pytest.warns(TruthWarning, match="separate the votes in counts"):
        fit = fit_votes_and_truth(X, separated_votes(X), truth)
    assert MODEL.error_rate(fit.coef) < 0.25
    assert np.abs(fit_votes_and_truth(X, counts, 0 * truth + (X[:, 0] > 0)).coef).max() < 10


def test_votes_of_one_class():
    """Far out no item is in doubt, and the information of a true label is zero but for rounding."""
    X, _, truth = with_votes(30, 12)
    with pytest.warns(TruthWarning):
        answer = worth_of_votes(X * [1, 1, 30], np.tile([0, 7], (30, 1)), np.minimum(truth, 0), rng=1)
    assert answer.error.high < 0.2 and answer.equal_number.low > 5


def test_fits_that_do_not_converge():
    X, y = np.random.default_rng(0).normal(size=(80, 6)), np.arange(80) % 2.0
    X[0] *= 1e6
    with pytest.warns(TruthWarning, match="true labels has not converged after 1000 steps: some column of X has values far"):
        assert not fit_votes_and_truth(X, np.zeros((80, 2)), y).converged
    counts = np.column_stack([X[:, 1] > 0, X[:, 1] <= 0])
    with pytest.raises(ValueError, match="the fit to the votes has not converged after 1000 steps: some column of X"):
        fit_votes_and_truth(X, counts, y)


def test_votes_that_say_nothing():
    X, _, truth = with_votes(200, 100)
    fit = fit_votes_and_truth(X, np.ones((200, 2)), truth)
    assert MODEL.error_rate(fit.coef) < 0.25 and np.isfinite(fit.stderr()).all()
    assert worth_of_votes(X, np.ones((200, 2)), truth, rng=0).error.high <= 1


def test_nothing_to_tell_it_from():
    X, counts, truth = with_votes(200, 60)
    with pytest.raises(ValueError, match="counts has no vote and truth no true label"):
        fit_votes_and_truth(X, 0 * counts, truth * np.nan)
    with pytest.raises(ValueError, match="counts has no votes"):
        worth_of_votes(X, 0 * counts, truth)


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_units_in_which_a_variance_is_no_number(unit):
    X, counts, truth = with_votes(200, 60)
    for function in (fit_votes_and_truth, worth_of_votes):
        with pytest.raises(ValueError, match=r"so small or so large .* change its unit"):
            function(X * unit, counts, truth)
