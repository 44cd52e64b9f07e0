"""The figures to play with: their formulas, and how they answer a reader.

The formulas in JavaScript are held against softlabel, SciPy and a brute-force
search. Each comparison is shown wrong formulas too, and has to see them.
"""

import hashlib
import json
import re
from collections import defaultdict
from contextlib import contextmanager
from functools import cache
from itertools import product
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from conftest import ROOT
from measures import LOADED
from numpy.testing import assert_allclose, assert_array_equal
from py_mini_racer import MiniRacer
from scipy import special, stats
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from test_browser import in_all_modes, resize, too_wide, wait
from test_chapters import Chapter

import softlabel as sl
from softlabel.book import claims, pictures

FOLDER = ROOT / "book" / "_static" / "explore"
MODEL = (FOLDER / "model.js").read_text("utf8")
FIGURES = {
    "fig-explore-votes": ["alpha0", "m", "tau"],
    "fig-explore-worth": ["alpha0", "m"],
    "fig-explore-noise": ["delta"],
    "fig-explore-noise-front": ["delta"],
    "fig-explore-budget": ["alpha0", "price"],
    "fig-explore-split": ["alpha0", "price", "truth", "ceiling", "budget"],
    "fig-explore-clouds": ["alpha0", "m"],
    "fig-explore-flips": ["e1", "e2", "prior1", "delta"],
    "fig-explore-sampling": ["alpha0", "m", "n"],
    "fig-explore-majority": ["alpha0", "m", "delta"],
    "fig-explore-tempering": ["s", "delta", "m", "alpha0"],
}
SLIDERS = [(figure, name) for figure, names in FIGURES.items() for name in names]
PLACES = {
    "index": ["fig-explore-noise-front"],
    "paper/02_harmless_noise": ["fig-explore-noise"],
    "paper/03_group_labels": ["fig-explore-votes"],
    "paper/04_information": ["fig-explore-clouds"],
    "paper/05_relative_efficiency": ["fig-explore-worth"],
    "paper/06_simulation": ["fig-explore-sampling"],
    "beyond/04_majority_vote": ["fig-explore-majority"],
    "beyond/05_harmful_noise": ["fig-explore-flips", "fig-explore-tempering"],
    "practice/how_many": ["fig-explore-budget", "fig-explore-split"],
}


@cache
def chapter(page):
    return Chapter((ROOT / "book" / f"{page}.md").read_text("utf8"))


def test_each_figure_has_its_page_and_its_file():
    named = {page: re.findall(r"name: (fig-explore-\S+)", chapter(page).text) for page in PLACES}
    assert named == PLACES
    assert sorted(figure for figures in PLACES.values() for figure in figures) == sorted(FIGURES)
    assert {path.stem for path in (FOLDER / "figures").glob("*.js")} == {figure.split("-")[2] for figure in FIGURES}


VENDOR = FOLDER / "vendor"


def test_vendored_files_are_as_their_table_says():
    row = re.compile(r"^\| `(\S+)` \| `([0-9a-f]{64})` \|$", re.M)
    table = dict(row.findall((VENDOR / "README.md").read_text("utf8")))
    assert set(table) == {"plot.min.js", "package-lock.json"}
    for name, digest in table.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest


def test_licences_of_the_versions_that_were_bundled():
    wanted = json.loads((VENDOR / "package.json").read_text("utf8"))["devDependencies"]
    locked = json.loads((VENDOR / "package-lock.json").read_text("utf8"))["packages"]
    rule = re.compile(r"\n-{72}\n\n")
    parts = rule.split((VENDOR / "LICENSES").read_text("utf8"))
    licences = {part.split("\n")[0]: part for part in parts}
    for name, version in wanted.items():
        assert f"{name} {version}" in licences or name == "esbuild"
    for title, text in licences.items():
        name, version = title.split(" ")
        assert locked[f"node_modules/{name}"]["version"] == version
        assert re.search("Permission|public domain", text), name


def test_libraries_hold_what_is_used_and_nothing_else():
    entry = (VENDOR / "entry.js").read_text("utf8")
    figures = "".join(path.read_text("utf8") for path in [FOLDER / "explore.js", *(FOLDER / "figures").glob("*.js")])
    for library in ("d3", "Plot"):
        (listed,) = re.findall(rf"globalThis\.{library} = {{ (.*) }};", entry)
        used = set(re.findall(rf"\b{library}\.(\w+)\(", figures))
        assert set(listed.split(", ")) == used


# The formulas.

ALPHAS = [0.01, 0.1, 0.7, 1, 2, 5.5, 100, 1e4, np.inf]
TAUS = [0.02, 0.3, 0.5, 0.77, 0.98]
DELTAS = [0.2, 0.5, 1, 2, 3.3, 5]
PRICES = [0.1, 0.5, 1, 2, 3, 7, 20, 100]


class JavaScript:
    """The formulas of model.js, in the engine of a browser without the browser."""

    def __init__(self, model=MODEL):
        self.engine = MiniRacer()
        self.engine.eval(model)

    def __call__(self, expression, **grids):
        """The expression over all combinations of values, as an array."""
        for name, values in reversed(grids.items()):
            grid = json.dumps(np.asarray(values).tolist())
            expression = f"{grid}.map({name} => {expression})"
        return np.array(json.loads(self.engine.eval(f"JSON.stringify({expression})")), float)


def check_votes(js):
    """Against SciPy's gamma functions, through softlabel."""
    for m in (1, 2, 7, 30):
        k = np.arange(m + 1)
        pmf = f"softlabel.votePmf(k, {m}, tau, alpha0)"
        ours = js(pmf, alpha0=ALPHAS, tau=TAUS, k=k)
        votes = np.column_stack([k, m - k])
        theirs = [[sl.dm_logpmf(votes, np.tile([t, 1 - t], (m + 1, 1)), a) for t in TAUS] for a in ALPHAS]
        assert_allclose(ours, np.exp(theirs), rtol=1e-9)
        assert_allclose(ours.sum(axis=-1), 1, rtol=1e-12)
    p = np.linspace(0.002, 0.998, 41)
    ours = js("softlabel.sharedDensity(p, tau, alpha0)", alpha0=ALPHAS[1:-2], tau=TAUS, p=p)
    theirs = [[stats.beta.pdf(p, a * t, a * (1 - t)) for t in TAUS] for a in ALPHAS[1:-2]]
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-300)


def check_worth(js):
    ms = np.arange(1, 101)
    ours = js("softlabel.relativeEfficiency(m, alpha0)", m=ms, alpha0=ALPHAS)
    assert_allclose(ours, sl.relative_efficiency(ms[:, None], ALPHAS), rtol=1e-13)


def check_normal(js):
    pairs = [sl.TwoClassNormal.canonical(delta, p=1) for delta in DELTAS]
    y = np.linspace(-6, 6, 41)
    ours = js("softlabel.posterior(y, delta)", delta=DELTAS, y=y)
    assert_allclose(ours, [pair.posterior(y[:, None])[:, 0] for pair in pairs], rtol=1e-12)
    ours = js("softlabel.wrongAt(y, delta)", delta=DELTAS, y=y)
    assert_allclose(ours, [2 * pair.posterior(y[:, None]).prod(axis=1) for pair in pairs], rtol=1e-12)
    ours = js("softlabel.density(y, delta)", delta=DELTAS, y=y)
    assert_allclose(ours, [(stats.norm.pdf(y, d / 2) + stats.norm.pdf(y, -d / 2)) / 2 for d in DELTAS], rtol=1e-12)
    assert_allclose(js("softlabel.bayesError(delta)", delta=DELTAS), [p.bayes_error() for p in pairs], rtol=1e-12)
    # 2 E(tau_1 tau_2) is twice the intercept's entry of the Fisher information.
    ours = js("softlabel.wrongShare(delta)", delta=DELTAS)
    assert_allclose(ours, [2 * pair.fisher_information()[0, 0] for pair in pairs], rtol=1e-9)


def wrong_items(delta):
    _, truth, label = pictures.spread_items(delta)
    return truth != label


def check_items(js):
    for delta in DELTAS:
        items = f"softlabel.items(300, {delta})"
        Y, wrong = pictures.spread_items(delta)[0], wrong_items(delta)
        assert_allclose(js(f"{items}.map(d => [d.y1, d.y2])"), Y, rtol=1e-10, atol=1e-12)
        assert (js(f"{items}.map(d => d.label !== d.truth)") == wrong).all()
        # Evenly spread, they come close to the expected share.
        assert abs(wrong.mean() - js(f"softlabel.wrongShare({delta})")) < 0.03


MODELS = [  # that of the chapter first
    dict(mean1=[1.5, 0.5], mean2=[-0.5, 0.0], cov=[[1.0, 0.3], [0.3, 1.0]], prior1=0.4),
    dict(mean1=[1.0, -0.5], mean2=[0.2, 0.7], cov=[[2.0, -0.4], [-0.4, 0.7]], prior1=0.8),
]


def check_clouds(js):
    """Against the package's two kinds of information; the root of a covariance has it as its square."""
    for given in MODELS:
        fisher = sl.TwoClassNormal(**given).fisher_information()
        information = f"softlabel.fisherInformation({json.dumps(given)})"
        assert_allclose(js(information), fisher, rtol=1e-9)
        for m, alpha0 in product([1, 7, 30], [0.1, 2, 100]):
            worth = f"softlabel.relativeEfficiency({m}, {alpha0})"
            ours = js(f"softlabel.slopeCovariance({information}, {worth}, 1500)")
            assert_allclose(ours, np.linalg.inv(sl.godambe_information(fisher, m, alpha0))[1:, 1:] / 1500, rtol=1e-9)
            root = js(f"softlabel.spread({json.dumps(ours.tolist())}, [[1, 0], [0, 1]])").T
            assert_allclose(root @ root.T, ours, rtol=1e-12)
            assert_allclose(js(f"softlabel.solve({json.dumps(ours.tolist())}, [2, -1])"), np.linalg.solve(ours, [2, -1]))


FLIPS = list(product([0.5, 2, 4], [0.05, 0.5, 0.8], [0, 0.1, 0.4], [0, 0.3, 0.4]))


def copies(e1, e2):
    return lambda eta: e2 + (1 - e1 - e2) * special.expit(eta)


def check_flips(js):
    """The limit of the fit, and the error that it leaves."""
    for delta, prior1, e1, e2 in FLIPS:
        pair = sl.TwoClassNormal.canonical(delta, 1, prior1)
        limit = sl.fit_limit(pair, copies(e1, e2))
        line = f"softlabel.flippedLine({delta}, {prior1}, {e1}, {e2})"
        assert_allclose(js(line), limit.coef, rtol=1e-6, atol=1e-8)
        assert_allclose(js(f"softlabel.trueLine({delta}, {prior1})"), pair.coef, atol=1e-12)
        assert_allclose(js(f"softlabel.lineError({line}, {delta}, {prior1})"), pair.error_rate(limit.coef), rtol=1e-7)
        eta = np.array([-3, 0, 1.5])
        assert_allclose(js(f"softlabel.flipped(tau, {e1}, {e2})", tau=special.expit(eta)), copies(e1, e2)(eta), rtol=1e-12)


@cache
def majority(m, alpha0):
    """Mean of a majority label, by the function of the chapter."""
    (cell,) = (c.source for c in chapter("beyond/04_majority_vote").code if "def majority(" in c.source)
    exec(cell, names := {"np": np, "sl": sl, "special": special})
    return names["majority"](m, alpha0)


@cache
def majority_limit(m, alpha0, delta):
    return sl.fit_limit(sl.TwoClassNormal.canonical(delta), majority(int(m), alpha0))


def check_limits(js, worth, response, grid, limits):
    """Worth and stretch of each response on a grid."""
    assert_allclose(js(worth, **grid).ravel(), [limit.relative_efficiency for limit in limits], rtol=1e-6)
    stretch = js(f"softlabel.responseLimit({response}).stretch", **grid)
    assert_allclose(stretch.ravel(), [limit.stretch for limit in limits], rtol=1e-6)


def check_majority(js):
    grid, eta = dict(m=[1, 2, 3, 8, 25], alpha0=[0.1, 1, 10, np.inf]), np.array([-6, -1, 0, 0.3, 2])
    ours = js("softlabel.majority(m, tau, alpha0)", **grid, tau=special.expit(eta))
    assert_allclose(ours, [[majority(m, a)(eta) for a in grid["alpha0"]] for m in grid["m"]], rtol=1e-9)
    grid["delta"] = [0.5, 2, 4]
    limits = [majority_limit(*given) for given in product(*grid.values())]
    mean = "eta => softlabel.majority(m, softlabel.posterior(eta, 1), alpha0)"
    check_limits(js, "softlabel.majorityWorth(m, alpha0, delta)", f"{mean}, 1, delta", grid, limits)


@cache
def tempered(s, delta, m, alpha0):
    """The limit from the shares of m votes whose log-odds are multiplied by s; any two have correlation 1 / (1 + alpha0)."""
    share = 1 / (1 + alpha0)

    def variance(eta):
        return (share + (1 - share) / m) * special.expit(s * eta) * special.expit(-s * eta)

    return sl.fit_limit(sl.TwoClassNormal.canonical(delta), lambda eta: special.expit(s * eta), variance)


def check_tempering(js):
    grid = dict(s=[0.25, 0.7, 1, 4], delta=[0.5, 2, 6], m=[1, 5, 30], alpha0=[0.1, 10, np.inf])
    limits = [tempered(*given) for given in product(*grid.values())]
    limit = "eta => softlabel.posterior(eta, s), softlabel.relativeEfficiency(m, alpha0), delta"
    check_limits(js, "softlabel.temperedWorth(s, delta, m, alpha0)", limit, grid, limits)


def listed(*numbers):
    """As arguments of a function in JavaScript."""
    return json.dumps(numbers)[1:-1]


def data_sets(js, size, n, delta, m, alpha0, seed=1):
    """Features, truth and votes of the data sets that the browser draws one after the other."""
    numbers = js(
        f"(random => Array.from({{length: {size}}}, () => softlabel.draw(random, {listed(n, delta, m, alpha0)})"
        f".map(d => [d.y1, d.y2, d.truth, d.votes])))(softlabel.generator({seed}))"
    )
    return numbers[..., :2], numbers[..., 2], np.stack([numbers[..., 3], m - numbers[..., 3]], -1)


def excesses(Y, truth, votes, delta):
    """What the package says of the same data: excess errors of both rules."""
    pair = sl.TwoClassNormal.canonical(delta)
    coef = [sl.fit_logistic_batch(Y, labels).coef for labels in (truth, votes)]
    return np.stack([pair.error_rate(b) - pair.bayes_error() for b in coef], -1)


def check_fits(js):
    """Newton's method on the same numbers, the error rates of the rules, and the limit of their mean."""
    for n, delta, m, alpha0 in [(60, 2, 1, 1), (100, 1, 5, 10), (500, 2, 30, np.inf)]:
        Y, truth, votes = data_sets(js, 3, n, delta, m, alpha0)
        for sample, z, counts in zip(Y, truth, votes):
            items = json.dumps([dict(y1=y[0], y2=y[1], truth=t, votes=c[0]) for y, t, c in zip(sample.tolist(), z, counts)])
            for count, of, labels in (("truth", 1, z), ("votes", m, counts)):
                ours = js(f"softlabel.fit({items}, d => d.{count}, {of})")
                assert_allclose(ours, sl.fit_logistic(sample, labels).coef, rtol=1e-7, atol=1e-9)
        given = listed(n, delta, m, alpha0)
        ours = js(f"(random => [0, 1, 2].map(() => softlabel.bothExcesses(random, {given})))(softlabel.generator(1))")
        assert_allclose(ours, excesses(Y, truth, votes, delta), rtol=1e-6)
    limits = [sl.TwoClassNormal.canonical(delta).excess_error() for delta in DELTAS]
    assert_allclose(js("softlabel.excessLimit(delta)", delta=DELTAS), limits, rtol=1e-9)
    pairs = np.random.default_rng(1).exponential(size=(50, 2))
    ours = js(f"(r => [r.first, r.second, r.ratio, r.se])(softlabel.ratioOfMeans({json.dumps(pairs.tolist())}))")
    first, second = pairs.mean(axis=0)
    se = stats.sem(pairs[:, 0] - first / second * pairs[:, 1]) / second
    assert_allclose(ours, [first, second, first / second, se], rtol=1e-12)


def check_draws(js):
    """The generator, the features, and the votes, against what they should be distributed as."""
    uniform = js("(random => Array.from({length: 20000}, random))(softlabel.generator(5))")
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(uniform[1:], uniform[:-1])[0, 1]) < 0.03
    for m, alpha0 in [(4, 0.5), (5, 10), (3, np.inf)]:
        Y, truth, votes = (part[0] for part in data_sets(js, 1, 6000, 1.5, m, alpha0))
        tau = sl.TwoClassNormal.canonical(1.5).posterior(Y)
        away = Y - np.outer(truth - 0.5, [1.5, 0])
        assert min(stats.kstest(away[:, k], "norm").pvalue for k in (0, 1)) > 1e-3
        assert abs(truth.mean() - 0.5) < 0.03 and abs(np.corrcoef(away.T)[0, 1]) < 0.05
        p = np.exp([sl.dm_logpmf(np.tile([k, m - k], (len(Y), 1)), tau, alpha0) for k in range(m + 1)]).T
        hard = np.abs(tau[:, 0] - 0.5) < 0.25
        for some in (hard, ~hard):
            seen, wanted = np.bincount(votes[some, 0].astype(int), minlength=m + 1), p[some].sum(axis=0)
            assert stats.chi2.sf(((seen - wanted) ** 2 / wanted).sum(), m) > 1e-4, (m, alpha0)


def check_budget(js):
    """Against a search over all whole numbers, with costs written out."""
    ms = np.arange(1, 1001)
    alphas = np.array(ALPHAS[:-2])
    items = 1000 / (np.array(PRICES)[:, None] + ms)
    theirs = items[None] * sl.relative_efficiency(ms, alphas[:, None])[:, None]
    assert_allclose(js("softlabel.worth(1000, m, alpha0, price)", alpha0=alphas, price=PRICES, m=ms), theirs, rtol=1e-12)
    best = js("softlabel.bestWhole(alpha0, price)", alpha0=alphas, price=PRICES)
    found = np.take_along_axis(theirs, best.astype(int)[..., None] - 1, 2)[..., 0]
    assert_allclose(found, theirs.max(axis=2), rtol=1e-13)  # ties count
    root = js("softlabel.bestRoot(alpha0, price)", alpha0=alphas, price=PRICES)
    assert_allclose(root, np.sqrt(np.outer(alphas, PRICES)), rtol=1e-13)
    assert (np.abs(best - root)[root >= 1] < 1).all()


def check_design(js):
    """Against design_votes, on budgets in which whole numbers matter; 33 pays for 30 at 1.1."""
    grid = dict(b=[12, 33, 1000], alpha0=ALPHAS[1:-1], price=[0.3, *PRICES[:-2]])
    ours = js("(d => [d.n, d.m, d.worth])(softlabel.design(b, alpha0, price))", **grid).reshape(-1, 3)
    plans = [sl.design_votes(budget=b, cost_item=p, cost_vote=1, alpha0=a) for b, a, p in product(*grid.values())]
    assert_allclose(ours, [[d.n_items, d.m, d.worth] for d in plans], rtol=1e-12)


# Prices of an item and of a true label, alpha0, ceiling and budget: each order of the prices, each kind of best plan.
SPLITS = list(product([0.5, 2, 10], [1, 7, 50], [0.3, 5, 100], [10, 200, np.inf], [60, 400]))


def check_split(js):
    """Against split_budget; each plan is also one that the budget pays for, and worth what it is said to be."""
    for price, truth, alpha0, ceiling, budget in SPLITS:
        given = listed(budget, alpha0, price, truth, ceiling)
        n, m, k, cost, *worths = js(
            f"(d => [d.n, d.m, d.k, d.cost, d.worth, d.allVotes, d.allTruth])(softlabel.split({given}))"
        )
        theirs = sl.split_budget(budget=budget, cost_item=price, cost_vote=1, cost_truth=truth, alpha0=alpha0, ceiling=ceiling)
        assert_allclose(worths, [theirs.worth, theirs.all_votes, theirs.all_truth], rtol=1e-12)
        votes = n * sl.relative_efficiency(max(m, 1), alpha0)
        assert_allclose(worths[0], k + votes / (1 + votes / ceiling), rtol=1e-12)
        assert_allclose(cost, max(n, k) * price + n * m + k * truth, rtol=1e-12)
        assert cost <= budget * (1 + 1e-12) and {n % 1, m % 1, k % 1} == {0}


@cache
def curves():
    """For each of SPLITS numbers of true labels, and the most they are worth with votes: by a fine grid of votes an item."""
    m = np.geomspace(1, 1e4, 40_001)
    found = []
    for price, truth, alpha0, ceiling, budget in SPLITS:
        ks = np.linspace(0, budget / (price + truth), 201)[:-1:33]
        rest = budget - ks[:, None] * truth
        n = np.where(rest / (price + m) >= ks[:, None], rest / (price + m), (rest - ks[:, None] * price) / m)
        votes = (n * sl.relative_efficiency(m, alpha0)).max(axis=1)
        found.append((ks, ks + votes / (1 + votes / ceiling)))
    return found


def check_curve(js):
    """Against the best of a fine grid of fractions of items and of votes."""
    for (price, truth, alpha0, ceiling, budget), (ks, worth) in zip(SPLITS, curves(), strict=True):
        ours = js(f"softlabel.splitWorth(k, {listed(budget, alpha0, price, truth, ceiling)})", k=ks)
        assert_allclose(ours, worth, rtol=1e-4)


def test_curve_drawn_by_the_page():
    """The fractions in the cell behind the drawn figure are those of the script: both against the same grid."""
    (cell,) = (c.source for c in chapter("practice/how_many").code if "split_budget" in c.source)
    first, rest = cell.split("\n", 1)
    assert first.startswith("alpha0, price, truth, ceiling, budget =")

    def drawn(expression, k):
        given = re.fullmatch(r"softlabel\.splitWorth\(k, (.*)\)", expression)[1].split(", ")
        names = dict(zip(("budget", "alpha0", "price", "truth", "ceiling"), map(float, given), strict=True))
        exec(rest, names | {"np": np, "sl": sl}, found := {})
        return np.interp(k, found["k"], found["labels"])

    check_curve(drawn)


CHECKS = [check_votes, check_worth, check_normal, check_items, check_clouds, check_flips, check_fits, check_draws]
CHECKS += [check_majority, check_tempering, check_budget, check_design, check_split, check_curve]


@pytest.mark.parametrize("check", CHECKS)
def test_formulas_are_those_of_the_package(check):
    check(JavaScript())


@pytest.mark.parametrize(
    "check, right, wrong",
    [
        (check_votes, "tau + i * omega", "tau"),
        (check_votes, "(i - k) * omega", "i * omega"),
        (check_votes, "(m - i)) / (i + 1)", "(m - i)) / (m - i)"),
        (check_votes, "omega = 1 / alpha0", "omega = 1 / (1 + alpha0)"),
        (check_worth, "(m - 1) / (1 + m / alpha0)", "(m - 1) / (1 + (m - 1) / alpha0)"),
        (check_worth, "1 + (m - 1)", "(m - 1)"),
        (check_normal, "expit(delta * y)", "expit(delta * y / 2)"),
        (check_votes, "(b - 1) * Math.log1p(-p)", "b * Math.log1p(-p)"),
        (check_votes, "logGamma(a) + logGamma(b)", "logGamma(a + b)"),
        (check_normal, "2 * posterior(y", "posterior(y"),
        (check_normal, "normalCdf(-delta / 2)", "normalCdf(-delta)"),
        (check_normal, "delta / 2 + 9", "delta / 2 + 2"),
        (check_normal, "(x * x) / k", "(x * x) / (k + 1)"),
        (check_items, "[2, 3, 5, 7]", "[2, 3, 5, 11]"),
        (check_items, "d < posterior(y1, delta)", "d > posterior(y1, delta)"),
        (check_clouds, "(f1 * f2) / (f1 + f2)", "f1 * f2"),
        (check_clouds, "inverse[i][j] / (factor * n)", "inverse[i][j] / n"),
        (check_clouds, "inverse[i][j] / (factor * n)", "inverse[i - 1][j - 1] / (factor * n)"),
        (check_clouds, "d - (b * b) / a", "d"),
        (check_flips, "(1 - e1 - e2) * tau", "(1 - e1) * tau"),
        (check_flips, "prior1 * miss(-1) + (1 - prior1) * miss(1)", "(miss(-1) + miss(1)) / 2"),
        (check_flips, "Math.log(prior1 / (1 - prior1))", "Math.log((1 - prior1) / prior1)"),
        (check_flips, "g1 += f * (q - t) * y", "g1 += f * (q - t)"),
        (check_flips, "round < 50", "round < 2"),
        (check_majority, "m, tau, alpha0) / 2", "m, tau, alpha0)"),
        (check_majority, "k = Math.floor(m / 2) + 1;", "k = Math.ceil(m / 2) + 1;"),
        (check_majority, "(i ? 1 : 0.5)", "1"),
        (check_majority, "turn < 50", "turn < 3"),
        (check_majority, "d.eta * (d.q - expit(stretch * d.eta))", "d.q - expit(stretch * d.eta)"),
        (check_majority, " + (d.q - expit(stretch * d.eta)) ** 2", ""),
        (check_majority, "expit(eta), alpha0), 1, delta)", "expit(eta), alpha0), relativeEfficiency(m, alpha0), delta)"),
        (check_tempering, "(d.q * (1 - d.q)) / votes", "d.q * (1 - d.q)"),
        (check_tempering, "(stretch * h) ** 2", "h ** 2"),
        (check_tempering, "expit(s * eta), relative", "expit(eta / s), relative"),
        (check_tempering, "wrongAt(y, delta) / 2", "wrongAt(y, delta)"),
        (check_fits, "count(item) - m * t", "count(item) / m - t"),
        (check_fits, "w = m * t * (1 - t);\n        const rest", "w = m * t;\n        const rest"),
        (check_fits, "round < 30", "round < 3"),
        (check_fits, "normalPdf(delta / 2) / delta", "normalPdf(delta) / delta"),
        (check_fits, "(side * b0 - (b1 * delta) / 2) / size", "(side * b0 - b1 * delta) / size"),
        (check_fits, "fit(items, (d) => d.votes, m)", "fit(items, (d) => d.votes, m + 1)"),
        (check_fits, "(p[0] - ratio * p[1]) ** 2", "(p[0] - p[1]) ** 2"),
        (check_draws, "(1 + i * repeat) < tau", "(1 + m * repeat) < tau"),
        (check_draws, "tau + votes * repeat)", "tau)"),
        (check_draws, "radius * Math.sin(angle)]", "radius * Math.cos(angle)]"),
        (check_draws, "4294967296", "8589934592"),
        (check_budget, "Math.sqrt(alpha0 * price)", "Math.sqrt(alpha0 / price)"),
        (check_budget, "? m + 1 : m", "? m : m"),
        (check_budget, "budget / (price + m)", "budget / (price * m)"),
        (check_design, "Math.floor((budget", "Math.round((budget"),
        (check_design, "(1 + 4e-15)", "1"),
        (check_design, "found.cost < best.cost", "found.cost > best.cost"),
        (check_split, "k + votes / (1 + votes / ceiling)", "k + votes / (1 + votes / (1.05 * ceiling))"),
        (check_split, "worth, cost: n * (price + m) }", "worth, cost: n * price + m }"),
        (check_split, "Math.max(k, 1))", "1)"),
        (check_split, "alpha0, 0, 1, k)", "alpha0, 0, 1)"),
        (check_split, "[1, -1]", "[1]"),
        (check_split, "bound(k) < best.worth", "bound(k) > best.worth"),
        (check_curve, "k + votes / (1 + votes / ceiling)", "k + votes / (1 + votes / (1.05 * ceiling))"),
        (check_curve, "rest - k * price;", "rest;"),
        (check_curve, "rest >= k * (price + m)", "rest >= k * price"),
        (check_curve, "free > k ? k * relativeEfficiency(free / k, alpha0) : free", "free"),
    ],
)
def test_checks_see_a_wrong_formula(check, right, wrong):
    assert MODEL.count(right) == 1
    with pytest.raises(AssertionError):
        check(JavaScript(MODEL.replace(right, wrong)))


# All figures on one page, which is opened as a file, and stays open from test to test.


@pytest.fixture(scope="module")
def together(site, tmp_path_factory):
    """A page of the site with nothing in its article but the figures of all pages."""
    pages = {place: (site / "book" / f"{place}.html").read_text("utf8") for place in PLACES}
    drawn = "".join(
        re.search(rf'<figure\b[^>]* id="{figure}".*?</figure>', pages[place], re.S)[0]
        for place, figures in PLACES.items() for figure in figures
    )  # fmt: skip
    head, rest = pages["practice/how_many"].split("<head>", 1)
    base = f'<head><base href="{(site / "book" / "practice").as_uri()}/">'
    before, after = re.fullmatch(r"(.*<article\b[^>]*>).*(</article>.*)", rest, re.S).groups()
    path = tmp_path_factory.mktemp("together") / "all.html"
    path.write_text(head + base + before + drawn + after, "utf8")
    return path.as_uri()


def wake_all(driver, address, width):
    """Open the page and wake its figures: the focus does that as well as their coming near."""
    resize(driver, width)
    driver.get(address)
    driver.execute_script("for (const e of document.querySelectorAll('figure')) e.dispatchEvent(new FocusEvent('focusin'));")
    wait(driver, lambda d: len(d.find_elements(By.CSS_SELECTOR, "figure.explore-on")) == len(FIGURES))
    # Where each slider begins.
    driver.execute_script("for (const e of document.querySelectorAll('figure input')) e.dataset.start = e.value")


@pytest.fixture
def page(together, driver):
    """The browser with that page at 1,400 px, and all sliders where they begin: one that is moved and back redraws all."""
    if driver.current_url != together:
        wake_all(driver, together, 1400)
    driver.execute_script(
        "for (const e of document.querySelectorAll('figure input'))"
        "  for (const value of [e.id.includes('sampling') && e.dataset.start - 1, e.dataset.start])"
        "    if (value !== false && e.value !== String(value)) {"
        "      e.value = value;"
        "      e.dispatchEvent(new Event('input'));"
        "    }"
    )
    return driver


@contextmanager
def for_now(driver, command, setting, usual):
    """A setting of the browser, and afterwards the usual one."""
    driver.execute_cdp_cmd(command, setting)
    try:
        yield
    finally:
        driver.execute_cdp_cmd(command, usual)


def state(driver, figure):
    """What the reader sees: values, sentence, picture."""
    return driver.execute_script(
        "const place = document.getElementById(arguments[0]);"
        "return {values: [...place.querySelectorAll('output')].map(e => e.innerText),"
        " sentence: place.querySelector('.explore-sentence').innerText,"
        " picture: place.querySelector('.explore-picture').innerHTML};",
        figure,
    )


def texts(driver, figure):
    """Words in the picture."""
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
    return driver.execute_script(script, f"#{figure} svg text")


def number(text):
    """What stands beside a slider."""
    return np.inf if text == "∞" else float(text[:-1]) / 100 if text.endswith("%") else float(text)


def values(driver, figure):
    return list(map(number, state(driver, figure)["values"]))


def slider(driver, figure, name):
    return driver.find_element(By.ID, f"{figure}-{name}")


def after(driver, figure, *moves):
    """Values beside the sliders, as they begin and after each key that is sent to one of them."""
    yield values(driver, figure)
    for name, key in moves:
        slider(driver, figure, name).send_keys(key)
        yield values(driver, figure)


def differing(before, after):
    return {key for key in before if before[key] != after[key]}


@pytest.mark.parametrize("figure", FIGURES)
def test_sliders_answer_and_sentences_are_true(page, figure):
    """By keys and by touch; what is said is computed anew from the values beside the sliders."""

    def told(name):
        shown = state(page, figure)
        for words in SAID[figure.split("-")[2]](page, *values(page, figure)):
            assert words in shown["sentence"], (name, shown["sentence"])
        return shown

    for name in FIGURES[figure]:
        control, before = slider(page, figure, name), told(name)
        control.send_keys(Keys.ARROW_RIGHT)
        assert differing(before, told(name)) == {"values", "sentence", "picture"}, name
        control.send_keys(Keys.ARROW_LEFT)
        assert differing(before, state(page, figure)) == set()
        if name == FIGURES[figure][0]:  # a finger does to all what it does to one
            touch(page, control, 0.1, 0.9)
            assert differing(before, state(page, figure)) == {"values", "sentence", "picture"}, name
        put(page, figure, name, "start")
        control.send_keys(3 * Keys.ARROW_LEFT)
        told(name)


def put(driver, figure, name, place):
    """Move a slider by a script: to `min`, to `max`, or to its `start`; what in the figure is no number."""
    script = (
        "const [figure, name, place] = arguments, control = document.getElementById(`${figure}-${name}`);"
        "control.value = control[place] ?? control.dataset[place];"
        "control.dispatchEvent(new Event('input'));"
        "return document.getElementById(figure).outerHTML.match(/.{0,20}(NaN|undefined|Infinity)/)?.[0];"
    )
    return driver.execute_script(script, figure, name, place)


def touch(driver, element, *xs, y=0.5):
    """A finger put on an element at a share of its width, and moved on."""
    box = driver.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'});"
        "return arguments[0].getBoundingClientRect().toJSON()",
        element,
    )

    def send(kind, points):
        driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    kinds = ["touchStart"] + ["touchMove"] * (len(xs) - 1)
    for kind, x in zip(kinds, xs):
        point = {"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"]}
        send(kind, [point])
    send("touchEnd", [])


def test_surface_answers_touch_and_mouse(page):
    figure = "fig-explore-worth"
    svg = page.find_element(By.CSS_SELECTOR, f"#{figure} svg")
    before = state(page, figure)
    touch(page, svg, 0.3, 0.6, 0.8, y=0.2)
    after = state(page, figure)
    assert differing(before, after) == {"values", "sentence", "picture"}
    alpha0, m = map(float, after["values"])
    assert alpha0 > 50 and 20 < m < 100
    svg = page.find_element(By.CSS_SELECTOR, f"#{figure} svg")
    ActionChains(page).move_to_element(svg).click().perform()  # its middle
    alpha0, m = map(float, state(page, figure)["values"])
    assert 5 <= alpha0 <= 20 and 8 <= m <= 14


# What is said, computed anew from the values beside the sliders.


def unanimous(m, tau, alpha0):
    votes, tau = [[0, m], [m, 0]], [[tau, 1 - tau]] * 2
    return np.exp(sl.dm_logpmf(votes, tau, alpha0)).sum()


def said_votes(driver, alpha0, m, tau):
    share = [f"{unanimous(m, tau, a):.0%}" for a in (alpha0, np.inf)]
    return [f"{m:g} labellers", f"α₀ = {alpha0:g}", f"τ₁ = {tau:g}", *share, f"{m * tau:.3g} positive"]


def said_worth(driver, alpha0, m):
    worth = f"{sl.relative_efficiency(m, alpha0):.3g} true labels"
    limit = f"{1 + alpha0:.3g}" if alpha0 < 99 else half_up(1 + alpha0)
    return [f"{m:g} labellers", f"α₀ = {alpha0:g}", worth, f"below {limit}."]


def said_noise(driver, delta):
    pair = sl.TwoClassNormal.canonical(delta)
    shares = f"{2 * pair.fisher_information()[0, 0]:.0%}", f"{pair.bayes_error():.0%}"
    return [f"Δ = {delta:g}", *shares, f"items {wrong_items(delta).sum()} are"]


def said_budget(driver, alpha0, price):
    m = np.arange(1, 1001)
    worth = 1000 / (price + m) * sl.relative_efficiency(m, alpha0)
    near = m[worth >= 0.95 * worth.max()]
    whole = sl.design_votes(budget=1000, cost_item=price, cost_vote=1, alpha0=alpha0)
    best = [f"ask {m[worth.argmax()]} labellers", f"worth {worth.max():.0f} true", f"against {worth[0]:.0f} with"]
    flat = f"From {near[0]} to {near[-1]} labellers"
    rounded = f"worth {np.floor(10 * whole.worth + 0.5) / 10:.1f} true"
    return [*best, flat, f"{whole.n_items} item", f"with {whole.m} vote", rounded]


def half_up(x):
    """As JavaScript rounds."""
    return f"{np.floor(x + 0.5):,.0f}"


def said_split(driver, alpha0, price, truth, ceiling, budget):
    prices = dict(budget=budget, cost_item=price, cost_vote=1, cost_truth=truth, alpha0=alpha0)
    plan = sl.split_budget(**prices, ceiling=ceiling)
    bought = [f"{plan.n_items} item", f"with {plan.m} vote"] if plan.m else []
    labels = [f"{plan.n_truth} true label"] if plan.n_truth else []
    alone = f"Votes alone are worth {half_up(plan.all_votes)}, true labels alone {plan.all_truth:,.0f}."
    promised = f"votes alone would be worth {half_up(sl.design_votes(**prices).worth)}."
    return [f"A budget of {budget:,.0f} votes", *bought, *labels, f"worth {half_up(plan.worth)} true", alone, promised]


def slopes_of(alpha0, m):
    """Covariances of the two slopes in the chapter, from true labels and from votes."""
    fisher = sl.TwoClassNormal(**MODELS[0]).fisher_information()
    information = fisher, sl.godambe_information(fisher, m, alpha0)
    return [np.linalg.inv(info)[1:, 1:] / 1500 for info in information]


def said_clouds(driver, alpha0, m):
    truth, votes = (cov[0, 0] for cov in slopes_of(alpha0, m))
    errors = f"{truth**0.5:.4f} from 1,500 true labels and {votes**0.5:.4f} from votes"
    return [f"{m:g} labellers at α₀ = {alpha0:g}", f"leave {truth / votes:.3g} times the variance", errors]


def said_flips(driver, e1, e2, prior1, delta):
    pair = sl.TwoClassNormal.canonical(delta, 1, prior1)
    limit = sl.fit_limit(pair, copies(e1, e2))
    wrong = f"{prior1 * e1 + (1 - prior1) * e2 + 1e-9:.0%} of the labels are wrong"
    best, fit = (-b[0] / b[1] + 1e-9 for b in (pair.coef, limit.coef))
    moved = f"stays at {best:.2f}" if abs(fit - best) < 0.005 else f"moves from {best:.2f} to {fit:.2f}"
    left = "no error is left." if limit.floor < 5e-5 else f"{100 * limit.floor:.2f} points of error are left."
    return [wrong, f"comes to {limit.coef[1]:.2f} (the true one is {delta:g})", moved.replace("-", "−"), left]


def said_majority(driver, alpha0, m, delta):
    pooled, one = sl.relative_efficiency(m, alpha0), majority_limit(m, alpha0, delta).relative_efficiency
    lost = f"throws away {significant(pooled - one)} of them, which is {1 - one / pooled:.0%}."
    given = f"{m:g} labellers at α₀ = {alpha0:g}".replace("inf", "∞")
    last = [] if m % 2 else ["the same without the last labeller."]
    worths = [f"are worth {significant(pooled)} true labels", f"their majority {significant(one)}."]
    return [given, f"Δ = {delta:g}", *worths, lost, *last]


def said_tempering(driver, s, delta, m, alpha0):
    limit, honest = tempered(s, delta, m, alpha0), significant(sl.relative_efficiency(m, alpha0))
    if s == 1:
        return [f"tends to the true one, {delta:g}.", f"{m:g} honest votes are worth {honest} true label"]
    sure = special.expit(limit.coef[1] / delta * special.logit(0.8))
    sure = "over 99%" if sure > 0.99 else f"{sure:.0%}"
    slopes = f"{s:g} times the true one, {significant(limit.coef[1])} in place of {delta:g}"
    votes, ones = ("vote is", "one") if m == 1 else ("votes are", "ones")
    worth = f"{m:g} such {votes} worth {significant(limit.relative_efficiency)} true label"
    return [slopes, f"the fit tends to {sure}.", worth, f"{m:g} honest {ones} {honest}."]


def significant(x):
    return f"{x + 1e-9:.3g}"


def seen_excesses(driver, alpha0, m, n, size):
    """The excess errors of the data sets that the page has drawn, by the package."""
    return excesses(*data_sets(JavaScript(), size, int(n), 2, int(m), alpha0), 2)


def said_sampling(driver, alpha0, m, n):
    said = state(driver, "fig-explore-sampling")["sentence"]
    size = int(said.split()[0])
    found = seen_excesses(driver, alpha0, m, n, size)
    first, second = found.mean(axis=0)
    se = stats.sem(found[:, 0] - first / second * found[:, 1]) / second
    losses = f"lose {100 * first:.3f} points", f"an item {100 * second:.3f}."
    ratio = f"ratio is {first / second:.2f}, with standard error {se:.2f};"
    promised = f"promises {sl.relative_efficiency(m, alpha0):.3g}."
    return [f"{size} data sets of {n:,.0f} items", *losses, ratio, promised]


SAID = {
    "votes": said_votes, "worth": said_worth, "noise": said_noise, "budget": said_budget, "split": said_split,
    "clouds": said_clouds, "flips": said_flips, "sampling": said_sampling,
    "majority": said_majority, "tempering": said_tempering,
}  # fmt: skip


# What is drawn.


def numbers(driver, selector, attribute):
    script = "return [...document.querySelectorAll(arguments[0])].map(e => Number(e.getAttribute(arguments[1])))"
    return np.array(driver.execute_script(script, selector, attribute))


def data(driver, figure, selector, svg=1):
    """Points of paths, or centres of marks, in the units of the axes."""
    found = driver.execute_script(
        "const [place, mark] = arguments, svg = document.querySelector(place);"
        "const back = ([x, y]) => [svg.scale('x').invert(x), svg.scale('y').invert(y)];"
        "const pairs = text => [...text.matchAll(/(-?[\\d.]+),(-?[\\d.]+)/g)].map(m => [+m[1], +m[2]]);"
        "const at = e => e.tagName === 'path' ? pairs(e.getAttribute('transform') ?? e.getAttribute('d'))"
        "  : e.tagName === 'line' ? [[+e.getAttribute('x1'), +e.getAttribute('y1')]]"
        "  : [[+e.getAttribute('cx'), +e.getAttribute('cy')]];"
        "return [...svg.querySelectorAll(mark)].map(e => at(e).map(back));",
        f"#{figure} .explore-picture > svg:nth-of-type({svg})",
        selector,
    )
    return [np.array(points, float) for points in found]


def groups(driver, figure, kind, svg=1):
    """Marks of one kind, group by group."""
    place = f"#{figure} .explore-picture > svg:nth-of-type({svg}) [aria-label={kind}]"
    tags = driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(e => [...e.querySelectorAll('path, circle, line')].length)",
        place,
    )
    found = data(driver, figure, f"[aria-label={kind}] :is(path, circle, line)", svg)
    return [np.concatenate(found[sum(tags[:k]) : sum(tags[: k + 1])]) if n else np.empty((0, 2)) for k, n in enumerate(tags)]


def test_bars_and_rings_are_as_high_as_the_probabilities(page):
    figure = "fig-explore-votes"
    slider(page, figure, "alpha0").send_keys(3 * Keys.ARROW_RIGHT)
    alpha0, m, tau1 = values(page, figure)
    k = np.arange(m + 1)
    votes, tau = np.column_stack([k, m - k]), np.tile([tau1, 1 - tau1], (len(k), 1))
    height = numbers(page, f"#{figure} [aria-label=bar] rect", "height")
    p = np.exp(sl.dm_logpmf(votes, tau, alpha0))
    assert_allclose(height / height.sum(), p, atol=1e-6)
    bottom = numbers(page, f"#{figure} svg:nth-of-type(2) [aria-label=rule] line", "y1")
    ring = bottom - numbers(page, f"#{figure} [aria-label=dot] circle", "cy")
    p = np.exp(sl.dm_logpmf(votes, tau, np.inf))
    assert_allclose(ring / ring.sum(), p, atol=1e-6)
    (area,) = groups(page, figure, "area")
    top = area[:997]
    assert_allclose(top[:, 1], np.minimum(stats.beta.pdf(top[:, 0], alpha0 * tau1, alpha0 * (1 - tau1)), 5), atol=0.02)
    slider(page, figure, "alpha0").send_keys(Keys.END)
    assert [rule[0, 0] for rule in groups(page, figure, "rule")[:2]] == pytest.approx([tau1] * 2)


def test_cursor_and_number_are_where_the_sliders_say(page):
    figure = "fig-explore-worth"
    for alpha0, m in after(page, figure, ("m", 3 * Keys.ARROW_RIGHT)):
        table, star, cursor = groups(page, figure, "dot")
        assert_allclose(cursor, [[m, alpha0]], rtol=1e-3)
        assert_allclose(table, [[m, a] for m in (5, 10, 50) for a in (1, 10, 100, 1000)], rtol=1e-3)
        assert_allclose(star, [[7, claims.claim("gastro.alpha0.truth").value]], rtol=1e-3)
        assert f"{sl.relative_efficiency(m, alpha0):.3g}" in texts(page, figure)


@pytest.mark.parametrize("figure", ["fig-explore-noise", "fig-explore-noise-front"])
def test_marks_are_the_items_by_label_and_truth(page, figure):
    for (delta,) in after(page, figure, ("delta", 5 * Keys.ARROW_LEFT)):
        Y, _, label = pictures.spread_items(delta)
        wrong = wrong_items(delta)
        marks = groups(page, figure, "dot", svg=2)
        wanted = [Y[(label == value) & (wrong == false)] for false in (False, True) for value in (True, False)]
        for ours, theirs in zip(marks, wanted, strict=True):
            assert_allclose(ours, theirs, atol=0.01)
        (curve,) = groups(page, figure, "line")
        tau = sl.TwoClassNormal.canonical(delta, 1).posterior(curve[:, :1])
        assert_allclose(curve[:, 1], 2 * tau.prod(axis=1), atol=0.002)


def test_the_dot_is_on_top_of_the_curve(page):
    figure = "fig-explore-budget"
    for _ in after(page, figure, ("price", 2 * Keys.ARROW_LEFT)):
        (curve,), (dot,) = groups(page, figure, "line"), groups(page, figure, "dot")
        assert_allclose(dot[0], curve[curve[:, 1].argmax()], rtol=1e-3)


def test_ellipses_hold_what_the_information_says(page):
    figure = "fig-explore-clouds"
    slopes = sl.TwoClassNormal(**MODELS[0]).coef[1:]
    for alpha0, m in after(page, figure, ("m", 5 * Keys.ARROW_LEFT)):
        covariances = slopes_of(alpha0, m)
        *clouds, cross = groups(page, figure, "dot")
        assert_allclose(cross, [slopes], atol=1e-3)
        for cov, points, edge in zip(covariances, clouds, groups(page, figure, "line"), strict=True):
            distance = [(d * np.linalg.solve(cov, d.T).T).sum(axis=1) for d in (edge - slopes, points - slopes)]
            assert_allclose(distance[0], stats.chi2.ppf(0.95, 2), rtol=0.02)
            assert len(points) == 300 and 0.92 < (distance[1] < stats.chi2.ppf(0.95, 2)).mean() < 0.98
            assert stats.kstest(distance[1], "chi2", (2,)).pvalue > 0.01


def test_curves_and_boundaries_are_those_of_the_limit(page):
    figure = "fig-explore-flips"
    for e1, e2, prior1, delta in after(page, figure, ("e2", Keys.HOME), ("prior1", 6 * Keys.ARROW_RIGHT)):
        pair = sl.TwoClassNormal.canonical(delta, 1, prior1)
        fit = sl.fit_limit(pair, copies(e1, e2)).coef
        share, truth, fitted = groups(page, figure, "line")
        eta = pair.coef[0] + pair.coef[1] * share[:, 0]
        assert_allclose(share[:, 1], copies(e1, e2)(eta), atol=0.003)
        assert_allclose(truth[:, 1], special.expit(eta), atol=0.003)
        assert_allclose(fitted[:, 1], special.expit(fit[0] + fit[1] * fitted[:, 0]), atol=0.003)
        cuts = [-b[0] / b[1] for b in (pair.coef, fit)]
        assert_allclose([rule[0, 0] for rule in groups(page, figure, "rule")[1:]], cuts, atol=0.01)
        assert_allclose([dot[0, 0] for dot in groups(page, figure, "dot")], cuts, atol=0.01)


def test_worths_of_pooled_votes_and_majorities(page):
    figure = "fig-explore-majority"
    for alpha0, m, delta in after(page, figure, ("delta", 5 * Keys.ARROW_LEFT), ("alpha0", Keys.END)):
        root, pooled = groups(page, figure, "line")
        worths = sl.relative_efficiency(pooled[:, 0], alpha0)
        assert_allclose(pooled[:, 1], worths, rtol=3e-3)
        assert_allclose(root[:, 1] ** 2, sl.relative_efficiency(root[:, 0], alpha0), rtol=6e-3)
        dots, *ends = groups(page, figure, "dot")
        wanted = [[k, majority_limit(k, alpha0, delta).relative_efficiency] for k in range(1, 26)]
        assert_allclose(dots, wanted, rtol=1e-3)
        both = [[m, sl.relative_efficiency(m, alpha0)], wanted[int(m) - 1]]
        assert_allclose(np.concatenate(ends), both, rtol=1e-3)
        (rule,) = groups(page, figure, "rule")
        assert_allclose(rule[0, 0], m, rtol=1e-3)
        assert {significant(worth) for _, worth in both} <= set(texts(page, figure))


def test_curves_and_worths_of_tempered_votes(page):
    figure = "fig-explore-tempering"
    moves = ("s", 10 * Keys.ARROW_LEFT), ("delta", Keys.END), ("alpha0", Keys.END)
    for s, delta, m, alpha0 in after(page, figure, *moves):
        limit = tempered(s, delta, m, alpha0)
        for curve, slope, dot in zip(groups(page, figure, "line"), (delta, limit.coef[1]), groups(page, figure, "dot")):
            assert_allclose(curve[:, 1], special.expit(slope * curve[:, 0]), atol=0.005)
            assert_allclose(dot, [[special.logit(0.8) / delta, special.expit(special.logit(0.8) * slope / delta)]], atol=0.005)
        (curve,), (honest, here) = groups(page, figure, "line", 2), groups(page, figure, "dot", 2)
        some = curve[::20]
        assert_allclose(some[:, 1], [tempered(t, delta, m, alpha0).relative_efficiency for t in some[:, 0]], rtol=0.01)
        assert_allclose(honest, [[1, sl.relative_efficiency(m, alpha0)]], rtol=2e-3)
        assert_allclose(here, [[s, limit.relative_efficiency]], rtol=2e-3)
        assert significant(limit.relative_efficiency) in texts(page, figure)


# The sampling distribution, and its buttons.

SAMPLING = "fig-explore-sampling"


def press(driver, name):
    (button,) = (b for b in driver.find_elements(By.CSS_SELECTOR, f"#{SAMPLING} button") if b.text == name)
    button.send_keys(Keys.ENTER)


def drawn(driver):
    return [sum(map(len, groups(driver, SAMPLING, "dot", svg))) for svg in (1, 2)]


def test_dots_and_means_are_those_of_the_data(page):
    press(page, "draw 20 data sets")
    found = seen_excesses(page, *values(page, SAMPLING), 40)
    limit = sl.TwoClassNormal.canonical(2).excess_error() / 500
    for svg, limits in ((1, limit), (2, limit / sl.relative_efficiency(5, 10))):
        dots = groups(page, SAMPLING, "dot", svg)[0]
        bins = np.clip(np.floor(10 * np.log10(100 * found[:, svg - 1])), -35, 9)
        assert_array_equal(sorted(np.floor(10 * np.log10(dots[:, 0]))), sorted(bins))
        rows = defaultdict(list)  # at one place, one dot above the other
        for x, y in dots.round(4):
            rows[x].append(y)
        steps = np.concatenate([np.diff(sorted(ys)) for ys in rows.values()] + [[min(dots[:, 1])] * 2])
        assert np.ptp(steps[:-2]) < 0.05 and abs(steps[0] - 2 * steps[-1]) < 0.05
        rules = [rule[0, 0] for rule in groups(page, SAMPLING, "rule", svg)[:2]]
        assert_allclose(rules, [100 * limits, 100 * found[:, svg - 1].mean()], rtol=1e-3)


def test_buttons_draw_run_stop_and_clear(page):
    assert drawn(page) == [20, 20]
    first = state(page, SAMPLING)
    (once, run, clear) = page.find_elements(By.CSS_SELECTOR, f"#{SAMPLING} button")
    touch(page, once, 0.5)
    assert drawn(page) == [40, 40]
    press(page, "run")
    sentence = page.find_element(By.CSS_SELECTOR, f"#{SAMPLING} .explore-sentence")
    assert run.text == "stop" and sentence.get_attribute("aria-live") == "off"
    wait(page, lambda d: drawn(d)[0] >= 100)
    press(page, "stop")
    stopped = drawn(page)
    assert run.text == "run" and sentence.get_attribute("aria-live") == "polite" and stopped[0] < 400
    press(page, "clear")
    assert drawn(page) == [0, 0] and "No data set" in sentence.text and "NaN" not in str(state(page, SAMPLING))
    once.send_keys(Keys.SPACE)
    assert state(page, SAMPLING) == first  # the same seed
    page.execute_script("const slow = setInterval; setInterval = (act, time) => slow(act, time / 10)")
    press(page, "run")
    wait(page, lambda d: not once.is_enabled())
    page.execute_script("delete globalThis.setInterval")
    assert drawn(page) == [400, 400] and run.text == "run" and clear.is_enabled()
    ratio, se = map(float, re.search(r"ratio is ([\d.]+), with standard error ([\d.]+);", sentence.text).groups())
    assert abs(ratio - sl.relative_efficiency(5, 10)) < 4 * se < 1.5
    slider(page, SAMPLING, "n").send_keys(Keys.ARROW_LEFT)
    assert drawn(page) == [20, 20] and once.is_enabled()


def test_less_motion_shows_the_end_at_once(page):
    less = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    with for_now(page, "Emulation.setEmulatedMedia", {"features": less}, {"features": []}):
        press(page, "run")
        assert drawn(page) == [400, 400]


@pytest.mark.parametrize("name, keys, said", [
    ("votes", {"alpha0": Keys.END}, "α₀ = ∞"),
    ("votes", {"alpha0": Keys.END, "m": Keys.HOME}, "nobody to agree with"),
    ("worth", {"m": Keys.HOME}, r"^1 labeller at α₀ = 3 is worth 1 true label\. "),
    ("worth", {"alpha0": Keys.END}, r"α₀ = 1000.*stay below 1,001\.$"),
    ("budget", {"price": Keys.HOME}, "^(?!.*against).*ask 1 labeller an item"),
    # Whole items whose votes are not those of the best rule for a part of an item.
    ("budget", {"alpha0": Keys.HOME, "price": Keys.END + 4 * Keys.ARROW_LEFT},
     r"ask 1 labeller an item.*45 items with 2 votes each.*; with 1 vote each some of the budget would be left\.$"),
    ("clouds", {"m": Keys.HOME}, r"their ratio is 1\."),
    ("majority", {"m": Keys.HOME}, "nothing to throw away"),
    ("tempering", {"m": Keys.HOME}, r"1 such vote is worth 2\.13 true labels, 1 honest one 1\."),
    ("flips", {"e1": Keys.HOME, "e2": Keys.HOME}, "^No label is flipped"),
])  # fmt: skip
def test_sentences_at_the_ends(page, name, keys, said):
    """One labeller, an infinite alpha0, a second vote that does not pay; ends that are easily rounded away."""
    for which, key in keys.items():
        slider(page, f"fig-explore-{name}", which).send_keys(key)
    assert re.search(said, state(page, f"fig-explore-{name}")["sentence"])


def test_infinity_is_shown_and_read_aloud(page):
    slider(page, "fig-explore-votes", "alpha0").send_keys(Keys.END)
    assert state(page, "fig-explore-votes")["values"][0] == "∞"
    assert slider(page, "fig-explore-votes", "alpha0").get_attribute("aria-valuetext") == "infinite"


def test_a_screen_reader_finds_names_values_and_news(page):
    for figure, names in FIGURES.items():
        place = page.find_element(By.ID, figure)
        sentence = place.find_element(By.CLASS_NAME, "explore-sentence")
        assert sentence.get_attribute("aria-live") == "polite"
        picture = place.find_element(By.CLASS_NAME, "explore-picture")
        assert picture.aria_role == "image" and len(picture.accessible_name) > 15
        for name in names:
            control = slider(page, figure, name)
            assert control.aria_role == "slider" and len(control.accessible_name) > 5
            own = f"output[for={figure}-{name}]"
            output = place.find_element(By.CSS_SELECTOR, own)
            assert control.get_attribute("aria-valuetext") == output.text
        for button in place.find_elements(By.CSS_SELECTOR, ".explore button"):
            assert button.aria_role == "button" and len(button.accessible_name) >= 3


def test_axe_finds_nothing(page):
    # What is around the article is looked at on other pages.
    page.execute_script("for (const e of document.querySelectorAll('.bd-sidebar, .bd-header, footer')) e.replaceChildren()")
    assert [line for line in in_all_modes(page) if "explore" in line] == []
    page.get("about:blank")  # formulas and code have been taken away


@pytest.mark.parametrize("mode", ["dark", "light"])
def test_everything_drawn_can_be_seen(page, mode):
    """Lines, dots and text stand out from the page at 3 to 1."""
    page.execute_script("document.documentElement.dataset.theme = arguments[0]", mode)
    ground, colours = page.execute_script(
        "const paint = new Set();"
        "for (const e of document.querySelectorAll('.explore svg *'))"
        "  for (const c of [getComputedStyle(e).stroke, getComputedStyle(e).fill])"
        "    if (c.startsWith('rgb')) paint.add(c);"
        "const body = getComputedStyle(document.body).backgroundColor;"
        "return [body, [...paint]];"
    )

    def luminance(colour):
        c = np.array(re.findall(r"[\d.]+", colour)[:3], float) / 255
        c = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        return c @ [0.2126, 0.7152, 0.0722]

    def contrast(colour):
        low, high = sorted([luminance(colour), luminance(ground)])
        return (high + 0.05) / (low + 0.05)

    contrasts = {c: contrast(c) for c in colours if contrast(c) > 1.001}
    assert len(contrasts) >= 3  # blue, orange, ink
    assert min(contrasts.values()) > 3, contrasts


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_undefined_or_sticks_out(together, driver, width):
    """One slider at an end after the other, so that all are there in the end."""
    wake_all(driver, together, width)
    for place, (figure, name) in product(["min", "max"], SLIDERS):
        assert put(driver, figure, name, place) is None, (figure, name)
        assert too_wide(driver, f"#{figure}") == [], (figure, name)
    driver.get("about:blank")


# The pages themselves, each opened as a file.


def come_near(driver, figure):
    driver.execute_script("document.getElementById(arguments[0]).scrollIntoView({behavior: 'instant'})", figure)
    wait(driver, lambda d: d.find_elements(By.CSS_SELECTOR, f"#{figure}.explore-on"))
    driver.execute_async_script(
        "requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(arguments[0])))"
    )


def shows(driver, figure):
    """Which of the two figures is displayed."""
    return driver.execute_script(
        "const place = document.getElementById(arguments[0]);"
        "const seen = e => e !== null && e.getBoundingClientRect().height > 100;"
        "return [seen(place.querySelector('.explore')),"
        " seen(place.querySelector(':scope > img'))];",
        figure,
    )


def fetched(driver):
    """Files of the figures with sliders that a page has asked for."""
    names = driver.execute_script("return [...document.querySelectorAll('script[src], link')].map(e => e.src ?? e.href)")
    return {name.rpartition("_static/explore/")[2] for name in names if "_static/explore/" in name}


COMMON = {"explore.css", "vendor/plot.min.js", "model.js", "explore.js"}
TOP = "return document.getElementById(arguments[0]).getBoundingClientRect().top"
FAR = ("paper/04", "paper/05", "beyond")


# Daily: the front page, a figure that is far down, and two on one page; each page in the slow tier.
DAILY = ("index", "paper/05_relative_efficiency", "beyond/05_harmful_noise")


@pytest.mark.parametrize("place", [pytest.param(place, marks=() if place in DAILY else pytest.mark.slow) for place in PLACES])
def test_a_figure_wakes_near_the_reader_and_is_printed_as_drawn(site, served, driver, place):
    """What is in view does not move meanwhile. A first visit loads nothing for what is two screens away or more."""
    resize(driver, 1400)
    driver.get_log("browser")
    if place.startswith(FAR):
        driver.get(f"{served}/book/{place}.html")
        driver.execute_async_script("setTimeout(arguments[0], 300)")
        assert fetched(driver) == set()
    else:
        driver.get((site / "book" / f"{place}.html").as_uri())
    for figure in PLACES[place]:
        height, top = driver.execute_script(f"{TOP.replace('return', 'return [innerHeight,')} + scrollY]", figure)
        if top > 2.2 * height and not fetched(driver):
            assert shows(driver, figure) == [False, True]
            driver.execute_script("scrollTo({top: arguments[0], behavior: 'instant'})", top - 1.9 * height)
            marked = "return document.elementFromPoint(600, 300).getBoundingClientRect().top"
            before = driver.execute_script(marked)
            wait(driver, lambda d: d.find_elements(By.CSS_SELECTOR, f"#{figure}.explore-on"))
            assert driver.execute_script(marked) == before
        come_near(driver, figure)
        assert shows(driver, figure) == [True, False]
        assert -1 < driver.execute_script(TOP, figure) < 150
        assert len(driver.find_elements(By.CSS_SELECTOR, f"#{figure} .explore")) == 1
    assert fetched(driver) == COMMON | {f"figures/{figure.split('-')[2]}.js" for figure in PLACES[place]}
    with for_now(driver, "Emulation.setEmulatedMedia", {"media": "print"}, {"media": ""}):
        assert [shows(driver, figure) for figure in PLACES[place]] == [[False, True]] * len(PLACES[place])
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_without_javascript_the_drawn_figures_stand(together, driver):
    with for_now(driver, "Emulation.setScriptExecutionDisabled", {"value": True}, {"value": False}):
        driver.get(together)
        for figure in FIGURES:
            place = driver.find_element(By.ID, figure)
            assert not place.find_elements(By.CLASS_NAME, "explore")
            drawn = place.find_element(By.TAG_NAME, "img")
            assert drawn.is_displayed() and drawn.size["height"] > 100
        driver.get("about:blank")


def test_a_file_that_does_not_come_leaves_the_drawn_figure(site, served, driver):
    driver.execute_cdp_cmd("Network.enable", {})
    with for_now(driver, "Network.setBlockedURLs", {"urls": ["*/model.js"]}, {"urls": []}):
        driver.get(f"{served}/book/practice/how_many.html")
        driver.execute_async_script("setTimeout(arguments[0], 500)")
        assert shows(driver, "fig-explore-budget") == [False, True]


def loaded(driver, site, address):
    """Files that a page loads."""
    driver.get(address)
    names = driver.execute_async_script(LOADED)
    return {site / unquote(urlsplit(n).path)[1:] for n in names}


def test_the_figures_are_light_and_other_pages_pay_nothing(site, served, driver):
    resize(driver, 1400)
    plain = loaded(driver, site, f"{served}/book/references.html")
    folder = site / "_static" / "explore"
    assert not [path for path in plain if folder in path.parents]
    extra = [path for path in loaded(driver, site, f"{served}/book/practice/how_many.html") if folder in path.parents]
    assert len(extra) == len(COMMON) + 1  # the second is not near
    assert sum(p.stat().st_size for p in extra) < 360_000


def test_the_old_address_leads_to_the_calculators(site, driver):
    driver.get((site / "book" / "explore.html").as_uri() + "#fig-explore-budget")
    wait(driver, lambda d: d.current_url == (site / "book" / "practice" / "how_many.html").as_uri() + "#fig-explore-budget")
