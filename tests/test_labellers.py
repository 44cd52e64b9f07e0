"""Who votes how: z values against exchangeable annotators, faults that are drawn, Dawid and Skene's EM beside crowd-kit."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, ndtri
from scipy.stats import binom

from softlabel.book.studies import labellers as study
from softlabel.labellers import Finding, compare_annotators, dawid_skene, examine_labellers
from softlabel.tables import read_votes


def vote_table(seed, n=200, m=5, missing=0.0, bias=0.0):
    """Annotators who vote with an item's own probability, plus a bias of theirs."""
    rng = np.random.default_rng(seed)
    votes = np.where(rng.random((n, m)) < np.clip(rng.beta(0.5, 0.5, (n, 1)) + bias, 0, 1), "yes", "no").astype(object)
    votes[rng.random((n, m)) < missing] = None
    return pd.DataFrame(votes, columns=[f"a{k}" for k in range(m)])


def compared(votes):
    return compare_annotators(read_votes(votes, "yes", "first"))


# ------------------------------------------------------------------ Annotators beside each other


def test_z_values_of_exchangeable_annotators_are_standard_normal():
    tables = [compared(vote_table(seed)) for seed in range(700)]
    for column in ("z positive", "z agreement"):
        first = np.array([table[column].iloc[0] for table in tables])  # annotators of one table are not independent
        assert abs(first.mean()) < 4 / np.sqrt(700) and abs(first.var() - 1) < 4 * np.sqrt(2 / 700)
    assert np.mean([len(differing(t, 0.05)) > 0 for t in tables]) < 0.05 + 4 * np.sqrt(0.05 / 700)


def differing(frame, p):
    """Annotators with a z value too large for chance, by Bonferroni, the largest first."""
    z = frame[["z positive", "z agreement"]].abs()
    largest = z.max(axis=1).dropna()
    return list(largest[largest > -ndtri(p / z.count().sum() / 2)].sort_values(ascending=False).index)


def test_the_table_item_by_item():
    votes = vote_table(1, missing=0.3)
    table = compared(votes)
    assert (table["votes"] == votes.notna().sum()).all()
    for who in votes:
        sums = np.zeros(4)
        shares = []
        for _, row in votes[votes[who].notna()].iterrows():
            yes, m, s = row[who] == "yes", row.notna().sum(), (row == "yes").sum()
            q, others = s / m, max(m - 1, 1)
            as_yes, as_no = (s - 1) / others, (m - s - 1) / others  # share of the others that agree
            mean = q * as_yes + (1 - q) * as_no
            shares.append((yes, q, *([np.nan] * 2 if m == 1 else [as_yes if yes else as_no, mean])))
            variance = q * (as_yes - mean) ** 2 + (1 - q) * (as_no - mean) ** 2
            sums += yes - q, q * (1 - q), (as_yes if yes else as_no) - mean, variance
        d, v, da, va = sums
        np.testing.assert_allclose(table.loc[who, ["z positive", "z agreement"]], [d / v**0.5, da / va**0.5], rtol=1e-10)
        found = table.loc[who, ["positive", "positive of all", "agreement", "agreement of all"]]
        np.testing.assert_allclose(found, np.nanmean(shares, axis=0), rtol=1e-10)


def test_few_contested_items_have_no_z_value():
    votes = pd.DataFrame({"a": ["yes"] * 9 + ["no"], "b": ["no"] * 10})
    assert compared(votes)["z positive"].isna().all()  # nine items on which votes differ
    votes.loc[10] = "yes", "no"
    assert compared(votes)["z positive"].notna().all()


def test_accuracy_is_over_known_truths():
    votes = pd.DataFrame({"a": ["yes", "yes", "no"], "b": ["no", None, "no"]})
    table = compare_annotators(read_votes(votes, "yes", "first"), np.array([1.0, 0.0, np.nan]))
    assert table["accuracy"].tolist() == [0.5, 0.0]


def test_biased_annotators_and_guessers_are_named():
    assert differing(compared(vote_table(2, n=400, bias=np.array([0, 0, 0, 0, 0.25]))), 0.01)[0] == "a4"
    votes = vote_table(2, n=600)
    assert not differing(compared(votes), 0.01)
    votes["a2"] = np.random.default_rng(1).permutation(votes["a2"])  # the right share, at random
    assert differing(compared(votes), 0.01)[0] == "a2" and compared(votes).loc["a2", "z agreement"] < -4
    everybody = compared(vote_table(2, n=400, bias=0.25))  # negative: a bias that all share is not seen
    assert not differing(everybody, 0.01)


# ------------------------------------------------------------------ Dawid and Skene


def simulate(n_classes, seed, n=200, m=6, missing=0.3, inverted=False):
    """Codes of items, annotators and labels, true classes and confusion matrices."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(n_classes, size=n)
    skill = rng.uniform(0.4, 0.8, (m, 1, 1))
    confusion = skill * np.eye(n_classes) + (1 - skill) / n_classes
    if inverted:
        confusion[0] = np.roll(confusion[0], 1, axis=1)
    voted = rng.random((n, m)) >= missing
    voted[range(n), rng.integers(m, size=n)] = True  # every item has a vote
    item, annotator = np.nonzero(voted)
    label = (confusion[annotator, classes[item]].cumsum(axis=1) < rng.random((len(item), 1))).sum(axis=1)
    return item, annotator, label, classes, confusion


CASES = [(g, seed, missing, inverted) for g in (2, 3) for seed, missing in ((0, 0.0), (1, 0.5)) for inverted in (False, True)]


@pytest.mark.filterwarnings("ignore")  # of its libraries
@pytest.mark.parametrize("g, seed, missing, inverted", CASES)
def test_dawid_skene_is_that_of_crowd_kit(g, seed, missing, inverted):
    aggregation = pytest.importorskip("crowdkit.aggregation", reason="needs crowd-kit: pip install 'softlabel[crowd]'")
    item, annotator, label, _, _ = simulate(g, seed, missing=missing, inverted=inverted)
    votes = pd.DataFrame({"task": item, "worker": annotator, "label": label})
    ours = dawid_skene(item, annotator, label, g)
    theirs = aggregation.DawidSkene(n_iter=100, tol=-np.inf).fit(votes)
    np.testing.assert_allclose(ours.posterior, theirs.probas_.sort_index()[range(g)], atol=1e-8)
    after = dawid_skene(item, annotator, label, g, n_iter=101)  # crowd-kit's parameters are those after its last step
    np.testing.assert_allclose(after.prior, theirs.priors_[range(g)], atol=1e-8)
    for (who, said), row in theirs.errors_.iterrows():
        np.testing.assert_allclose(after.confusion[who, :, said], row[range(g)], atol=1e-8)
    stopped = aggregation.DawidSkene(n_iter=100).fit_predict_proba(votes).sort_index()[range(g)]  # after a dozen steps
    assert np.mean(stopped.to_numpy().argmax(axis=1) == ours.posterior.argmax(axis=1)) > 0.97


@pytest.mark.parametrize("g, seed, missing, inverted", CASES)
def test_the_likelihood_never_falls(g, seed, missing, inverted):
    item, annotator, label, _, _ = simulate(g, seed, missing=missing, inverted=inverted)
    found = dawid_skene(item, annotator, label, g)
    assert np.diff(found.log_likelihood).min() > -1e-9 * abs(found.log_likelihood[0])
    assert found.log_likelihood[-1] > found.log_likelihood[0] + 1
    parts = found.prior * np.ones((item.max() + 1, g))
    for j, k, said in zip(item, annotator, label):
        parts[j] *= found.confusion[k, :, said]
    np.testing.assert_allclose(np.log(parts.sum(axis=1)).sum(), found.log_likelihood[-1], rtol=1e-12)
    np.testing.assert_allclose(parts / parts.sum(axis=1, keepdims=True), found.posterior, atol=1e-12)


@pytest.mark.parametrize("g", [2, 3])
def test_confusion_matrices_are_recovered(g):
    n = 20_000
    item, annotator, label, classes, confusion = simulate(g, 5, n=n, m=7, inverted=True)
    found = dawid_skene(item, annotator, label, g)
    error = 0.5 / np.sqrt(0.7 * n / g)  # standard error, at most, of a share of votes on items of known class
    assert np.abs(found.confusion - confusion).max() < 5 * error
    right = (found.posterior.argmax(axis=1) == classes).mean()
    majority = np.bincount(item * g + label, minlength=n * g).reshape(n, g).argmax(axis=1)
    assert right > (majority == classes).mean() + 0.02
    assert found.confusion[0, 0, 1] > 0.5  # negative: the inverted annotator is not taken at their word


def test_a_case_by_hand():
    """Ann says 0 of both items, Bob 0 and 1, Cem 0 of the first: that one is of class 0, the other of either, and EM stays."""
    found = dawid_skene(np.array([0, 0, 1, 1, 0]), np.array([0, 1, 0, 1, 2]), np.array([0, 0, 0, 1, 0]))
    np.testing.assert_allclose(found.posterior, [[1, 0], [0.5, 0.5]], atol=1e-8)
    np.testing.assert_allclose(found.prior, [0.75, 0.25], atol=1e-8)
    np.testing.assert_allclose(found.confusion, [[[1, 0]] * 2, [[2 / 3, 1 / 3], [0, 1]], [[1, 0]] * 2], atol=1e-8)
    np.testing.assert_allclose(found.log_likelihood, 2 * np.log(0.5), atol=1e-8)


# ------------------------------------------------------------------ all faults


def examined(name, kind, seed):
    """A table of the study with a fault, and what is found in it."""
    table = study.draw(*kind, np.random.default_rng(seed))
    for fault in study.FAULTS[name]:
        fault(table)
    frame, X = table.frames()
    return table, examine_labellers(frame, X, positive=True, rng=seed)


@pytest.mark.parametrize("name", sorted(set(study.FAULTY) - {"one copies, consensus as feature"}))
def test_a_fault_is_named_and_nobody_else(name):
    """One table of each kind of the study: alpha0 is 5 where there is a choice."""
    kind = next((k for k in study.FAULTY[name] if k[5] == 5), study.FAULTY[name][0])
    table, found = examined(name, kind, 1)
    verdict = study.judge(table, found.findings)
    assert verdict["right"] and not verdict["accused"] and not verdict["good_accused"], found
    if kind[0] == 300:
        assert verdict["named"] > 0.8 and verdict["size"] == pytest.approx(len(table.bad["guessing"]) / 300, abs=0.05)
    assert all(f.text in repr(found) for f in found.findings)


@pytest.mark.parametrize("seed", range(3))
def test_a_consensus_of_which_one_vote_counts_twice(seed):
    """The feature is named, as made of all votes or, as it holds more of theirs, of one of the two who copy."""
    _, found = examined("one copies, consensus as feature", (5, "5", 500, 3, 0.5, 5.0), seed)
    (leak,) = (f for f in found.findings if f.feature)
    assert leak.feature == "x4" and leak.kind in ("consensus as feature", "feature of one") and set(leak.who) <= {0, 1}
    assert {f.who for f in found.findings if f.kind == "copies"} <= {(0, 1), (1, 0)} and "copies" in found.kinds()


def test_the_judge_of_the_study():
    """It wants all who are bad, on the right side and with the right sign, and nobody else."""
    table = study.draw(4, "4", 40, 3, 0.5, 5.0, np.random.default_rng(0))
    study.contradict(table, 0, 1)

    def judged(kind, who, size=1.0, share=0.5):
        return study.judge(table, [Finding(kind, who, None, size, share, 0.0, "")])

    assert judged("contradiction", (0, 1, 2, 3))["right"] and judged("contradiction", (3, 2, 1, 0))["right"]
    assert not judged("contradiction", (0, 2, 1, 3))["right"] and not judged("contradiction", (0, 1, 2))["right"]
    table = study.draw(4, "4", 40, 3, 0.5, 5.0, np.random.default_rng(0))
    assert study.judge(table, [])["right"] and not judged("reversed", (1,))["right"] and judged("reversed", (1,))["accused"]
    study.lean(table, 2)
    assert judged("leans", (2,))["right"] and not judged("leans", (2,), size=-1.0)["right"]
    assert judged("leans", (1, 2))["good_accused"] == 1 and not judged("leans", (1,))["right"]
    assert not judged("no sign", ())["accused"] and judged("no sign", ())["no_sign"]


def test_honest_tables_are_left_alone():
    """At most what a binomial of 1% has in 99.9% of cases; and those who are named are so by chance, not by the features."""
    kinds = [(5, "5", 100, 20), (2, "2", 100, 2), (3, "3", 25, 2), (8, "harder", 100, 3), (40, "5", 200, 3)]
    seeds = [(kind, share, seed) for kind in kinds for share in (0.5, 0.1) for seed in range(20)]
    found = [examined("honest", (*kind, share, 5.0), seed)[1] for kind, share, seed in seeds]
    accused = sum(bool(set(f.kinds()) - study.ACCUSE_NOBODY) for f in found)
    assert accused <= binom.ppf(0.999, len(seeds), 0.01)


@pytest.fixture(scope="module")
def reversed_table():
    """Votes of which one annotator's are turned round, features, and what is found."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(200, 2)), [f"i{k:03}" for k in range(200)], ["size", "shape"])
    y = rng.random((200, 4)) < expit(2 * X["size"].to_numpy())[:, None]
    y[:, 2] = ~y[:, 2]
    wide = pd.DataFrame(y, X.index, ["Ann", "Bob", "Cem", "Dee"])
    return wide, X, examine_labellers(wide, X, positive=True, rng=0)


def lengthened(wide, names=("item", "annotator", "label")):
    return wide.rename_axis(names[0]).reset_index().melt(names[0], var_name=names[1], value_name=names[2])


def answer(found):
    return [(f.kind, f.who, round(f.size, 6)) for f in found.findings]


def test_a_table_that_has_been_read(reversed_table):
    """Features of an array are those of its items in their order; of repeated votes the first counts, kept or not."""
    wide, X, found = reversed_table
    read = read_votes(wide, True, "first")
    assert answer(examine_labellers(read, X.sample(frac=1), rng=0)) == answer(found)
    assert answer(examine_labellers(read, X.loc[read.items].to_numpy(), rng=0)) == answer(found)
    long = lengthened(wide)
    again = long[:300].assign(label=True)
    kept = read_votes(pd.concat([long, again]), True, "keep")
    assert kept.n_repeats == 300 and answer(examine_labellers(kept, X, rng=0)) == answer(found)


def test_items_are_matched_by_name(reversed_table):
    wide, X, found = reversed_table
    assert [(f.kind, f.who) for f in found.findings] == [("reversed", ("Cem",))]
    assert found.annotators.loc["Cem", "finding"] == "reversed" and (found.annotators["finding"] == "").sum() == 3
    mixed = X.sample(frac=1, random_state=0).rename_axis("item").reset_index()
    assert answer(examine_labellers(wide, mixed, positive=True, rng=0)) == answer(found)
    assert (found.n_items, found.n_votes) == (200, 800)
    np.testing.assert_allclose(found.annotators["positive"], wide.mean())
    slope = found.annotators["slope"].to_numpy()
    assert slope[2] < -0.6 and (np.delete(slope, 2) > 0.6).all()
    shuffled = lengthened(wide).sample(frac=1, random_state=1)
    assert [f[:2] for f in answer(examine_labellers(shuffled, X, positive=True, rng=0))] == [("reversed", ("Cem",))]


def test_the_other_class_as_positive_one(reversed_table):
    """Nothing changes but the sign of a lean."""
    wide, X, found = reversed_table
    other = examine_labellers(wide, X, positive=False, rng=0)
    assert [(f.kind, f.who) for f in other.findings] == [(f.kind, f.who) for f in found.findings]
    assert other.findings[0].size == pytest.approx(found.findings[0].size, rel=1e-3)
    np.testing.assert_allclose(other.annotators["z lean"], -found.annotators["z lean"], rtol=1e-9)


def test_without_features(reversed_table):
    wide, *_ = reversed_table
    found = examine_labellers(wide, positive=True, rng=0)
    assert [(f.kind, f.who) for f in found.findings] == [("reversed", ("Cem",))]
    assert "features made of votes, as there are no features" in found.not_looked_at


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("n, kinds", [(152, []), (156, ["no sign"])])
def test_no_sign_is_found_only_where_a_quarter_of_the_agreement_that_can_be_would_show(n, kinds, features):
    """Two who agree on half of the items: had they agreed on all n, z would be (n - 1) / sqrt(n); a quarter is to be 3.09."""
    k = np.arange(n)
    X = np.random.default_rng(4).normal(size=(n, 5)) if features else None
    found = examine_labellers(pd.DataFrame({"Ann": k % 2, "Bob": k // 2 % 2}), X, positive=1, rng=0)
    assert found.kinds() == kinds and 151 / np.sqrt(152) / 4 < -ndtri(0.001) < 155 / np.sqrt(156) / 4
    assert ("whether labels mean anything, as votes are too few to tell" in found.not_looked_at) == (not kinds)


@pytest.mark.parametrize("n, m", [(12, 3), (20, 2), (60, 2), (60, 1)])
def test_honest_votes_on_few_items_are_not_said_to_mean_nothing(n, m):
    """Of twelve items with three votes half were, with p from .005 up."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 2))
        chance = expit(X @ [1, -1])
        wide = pd.DataFrame(rng.random((n, m)) < rng.beta(2 * chance, 2 - 2 * chance)[:, None])
        assert "no sign" not in examine_labellers(wide, X, positive=True, rng=0).kinds()


@pytest.mark.parametrize("rarer, kinds", [(9, []), (10, ["no sign"])])
def test_rare_labels_are_not_said_to_mean_nothing_by_features_that_could_hardly_explain_them(rarer, kinds):
    """Of 500 honest single votes with one in 500 positive, a quarter of the tables were."""
    x, y = np.arange(600.0) % 7, np.arange(600) % (600 // rarer) == 0
    y[rarer * (600 // rarer) :] = False
    found = examine_labellers(pd.DataFrame({"Ann": y}), x[:, None], positive=True, rng=0)
    assert y.sum() == rarer and found.kinds() == kinds


@pytest.mark.parametrize("rarer, kinds", [(19, []), (21, ["no sign"])])
def test_rare_labels_are_not_said_to_mean_nothing_by_pairs_of_which_hardly_one_could_be(rarer, kinds):
    """Three who each give a share of the rarer labels, no two on one item: a quarter of those pairs that could be are five."""
    wide = pd.DataFrame(0, range(400), ["Ann", "Bob", "Cem"])
    for k in range(rarer):
        wide.iloc[11 * k, k % 3] = 1
    assert examine_labellers(wide, None, positive=1, rng=0).kinds() == kinds


def test_who_never_gives_one_of_the_labels_cannot_agree():
    """Two annotators, 25 items, one positive vote: what cannot be looked at was taken for what would show."""
    wide = pd.DataFrame({"Ann": np.arange(25) == 3, "Bob": False})
    found = examine_labellers(wide, np.random.default_rng(0).normal(size=(25, 2)), positive=True, rng=0)
    assert found.kinds() == [] and "whether labels mean anything, as votes are too few to tell" in found.not_looked_at


def test_a_sign_that_is_not_clear_is_no_finding():
    """Between .005 and .05 nothing can be said; single votes are senseless if features would explain a tenth of them."""
    k, x = np.arange(400), np.random.default_rng(0).normal(size=400)
    x -= np.polyval(np.polyfit(k % 2, x, 1), k % 2)
    for r, kinds, said in ((0.0, ["no sign"], ""), (0.12, [], "signs of it are not clear (p = 0.016)"), (0.2, [], "")):
        feature = r * (2 * (k % 2) - 1) + np.sqrt(1 - r**2) * x / x.std()
        found = examine_labellers(pd.DataFrame({"Ann": k % 2}), feature[:, None], positive=1, rng=0)
        assert found.kinds() == kinds and ("whether labels mean" in repr(found)) == bool(said) and said in repr(found)


def test_single_votes(reversed_table):
    wide, X, _ = reversed_table
    found = examine_labellers(wide[["Ann"]], X, positive=True, rng=0)
    assert found.findings == () and "annotators, as no item has two votes" in found.not_looked_at
    head = f"{wide['Ann'].count():,} votes of 1 annotator on {wide['Ann'].count():,} items: nothing was found.\n"
    assert repr(found).startswith(head) and "Not looked at: annotators" in repr(found)


def test_votes_that_are_all_alike():
    votes = pd.DataFrame([["y", "y"]] * 5, columns=["a", "b"])
    assert examine_labellers(votes, np.arange(5.0)[:, None], positive="y", rng=0).findings == ()


def test_two_who_contradict_each_other_on_a_rare_class():
    """The votes are hardly correlated, as both say nearly always the same; what features say to each is."""
    for seed in range(4):
        _, found = examined("two contradict", (2, "2", 1000, 3, 0.05, np.inf), seed)
        assert found.kinds() == ["contradiction"] and found.findings[0].size < 0


def test_findings_in_numbers():
    kind = (7, "7", 500, 3, 0.5, 5.0)
    _, found = examined("one reversed, one guesses, one copies", kind, 2)
    f = {finding.kind: finding for finding in found.findings}
    assert f["reversed"].who == (0,) and f["guessing"].who == (1,) and set(f["copies"].who) == {2, 3}
    assert f["reversed"].size == pytest.approx(-1, abs=0.3) and f["guessing"].size == pytest.approx(0, abs=0.2)
    assert f["copies"].size == pytest.approx(0.9, abs=0.15)
    assert [f[k].share for k in ("reversed", "guessing", "copies")] == pytest.approx([1 / 7, 1 / 7, 2 / 7])
    _, third = examined("third vote on disagreement, at random", (8, "2", 500, 3, 0.5, 5.0), 1)
    table = study.draw(8, "2", 500, 3, 0.5, 5.0, np.random.default_rng(1))
    study.ask_again(table, None, True)
    assert third.findings[0].share == table.asked[:, 2].mean()
    _, three = examined("three of 5 reversed", (5, "5", 500, 3, 0.5, 5.0), 1)
    assert set(three.findings[0].who[:3]) == {0, 1, 2} and three.findings[0].share == 0.4 and three.findings[0].size < -0.1


def test_items_that_are_there_several_times_are_no_test_of_the_mean():
    """Votes on copies of an item hang together, and seem to say that the mean is bent."""
    _, found = examined("items four times", (5, "5", 500, 3, 0.5, 0.5), 3)
    assert found.kinds() == ["repeated items"] and any("several times" in reason for reason in found.not_looked_at)


def test_words_for_what_cannot_be_known():
    kind = (5, "5", 400, 3, 0.5, 5.0)
    _, three = examined("three of 5 reversed", kind, 0)
    assert "the votes cannot say which: a few true labels would. The majority is not evidence of being right." in repr(three)
    _, two = examined("two contradict", (2, "2", *kind[2:]), 0)
    assert "The majority" not in repr(two) and "cannot say which" in repr(two)
    _, copied = examined("one of 5 copies", kind, 0)
    assert "who copied whom the votes cannot say" in repr(copied)
    _, coins = examined("all guess", kind, 0)
    assert "There is no sign in votes or features that the labels mean anything" in repr(coins)


def test_an_item_without_features_is_an_error(reversed_table):
    wide, X, _ = reversed_table
    long = lengthened(wide, ("task_id", "worker_id", "answer"))
    lacking = r"X has no row for 2 of 200 items of votes \('i003', 'i004'\); it has rows for 'i000'"
    for votes, features, positive, words in (
        (wide, X.drop(["i003", "i004"]), True, lacking),
        (wide, pd.concat([X, X[:1]]), True, "X has item 'i000' more than once"),
        (wide, X.to_numpy(), True, r"X has no row for 200 of 200 items of votes .*; it has rows for 0, 1, 2"),
        (wide, X, None, "positive is missing: name the label of the positive class"),
        (long, X, True, "if each row is a vote, name its columns item, annotator and label"),
    ):
        with pytest.raises(ValueError, match=words):
            examine_labellers(votes, features, positive=positive)


def odd_table(seed):
    """Few items or annotators, few votes, votes that are all alike, features that are votes, constant or of two values."""
    rng = np.random.default_rng(seed)
    n, J, p = (60, 40, 2) if seed % 30 == 0 else (int(rng.integers(1, top)) for top in (40, 8, 6))
    y = rng.random((n, J)) < rng.choice([0.02, 0.5, rng.random()])
    if kind := rng.integers(4):
        y = (y, np.tile(y[:, :1], J), np.tile(y[:1], (n, 1)), np.column_stack([~y[:, -1], y[:, 1:]]))[kind]
    X = rng.normal(size=(n, p)) if seed % 3 else rng.integers(0, 2, (n, p)).astype(float)
    X[:, 0] = (X[:, 0], y[:, 0], np.full(n, 1e8))[rng.integers(3)]
    asked = rng.random((n, J)) < rng.choice([0.2, 0.6, 1])
    asked[0, 0] = y[0, 0] = True
    item, who = np.nonzero(asked)
    return pd.DataFrame({"item": item, "annotator": who, "label": y[asked]}), X


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("start", [0, 100])
def test_odd_tables_are_no_errors(start):
    for seed in range(start, start + 100):
        votes, X = odd_table(seed)
        for features in (X, None):
            found = examine_labellers(votes, features, positive=True, rng=0)
            assert len(found.annotators) == votes["annotator"].nunique()
            numbers = found.annotators.drop(columns="finding").to_numpy(float)
            assert np.isfinite(numbers).all() and "nan" not in repr(found)
            assert all(0 <= f.pvalue <= 1 for f in found.findings)
