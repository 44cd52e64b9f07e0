"""The figures to play with: their formulas, and how they answer a reader.

The formulas in JavaScript are held against softlabel, SciPy and a brute-force
search. Each comparison is shown wrong formulas too, and has to see them.
"""

import hashlib
import json
import re
from itertools import product
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from conftest import ROOT
from scipy import stats
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from test_browser import look, resize
from test_chapters import Chapter

import softlabel as sl

FOLDER = ROOT / "book" / "_static" / "explore"
MODEL = (FOLDER / "model.js").read_text("utf8")
FIGURES = {
    "fig-explore-votes": ["alpha0", "m", "tau"],
    "fig-explore-worth": ["alpha0", "m"],
    "fig-explore-noise": ["delta"],
    "fig-explore-budget": ["alpha0", "price"],
    "fig-explore-split": ["alpha0", "price", "truth", "ceiling", "budget"],
}
SLIDERS = [(figure, name) for figure, names in FIGURES.items() for name in names]


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
    figures = (FOLDER / "figures.js").read_text("utf8")
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
    """The formulas of model.js, in a browser, from a file."""

    def __init__(self, driver, folder, model=MODEL):
        (folder / "model.js").write_text(model, "utf8")
        (folder / "a.html").write_text("<!doctype html><meta charset=utf-8><script src=model.js></script>")
        driver.get((folder / "a.html").as_uri())
        self.driver = driver

    def __call__(self, expression, **grids):
        """The expression over all combinations of values, as an array."""
        for name, values in reversed(grids.items()):
            grid = json.dumps(np.asarray(values).tolist())
            expression = f"{grid}.map({name} => {expression})"
        return np.array(self.driver.execute_script(f"return {expression}"), float)


def check_votes(js):
    """Against SciPy's gamma functions, through softlabel."""
    for m in (1, 2, 7, 30):
        k = np.arange(m + 1)
        pmf = f"softlabel.votePmf(k, {m}, tau, alpha0)"
        ours = js(pmf, alpha0=ALPHAS, tau=TAUS, k=k)
        votes = np.column_stack([k, m - k])
        theirs = [[sl.dm_logpmf(votes, np.tile([t, 1 - t], (m + 1, 1)), a) for t in TAUS] for a in ALPHAS]
        np.testing.assert_allclose(ours, np.exp(theirs), rtol=1e-9)
        np.testing.assert_allclose(ours.sum(axis=-1), 1, rtol=1e-12)


def check_worth(js):
    ms = np.arange(1, 101)
    ours = js("softlabel.relativeEfficiency(m, alpha0)", m=ms, alpha0=ALPHAS)
    theirs = sl.relative_efficiency(ms[:, None], ALPHAS)
    np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def check_normal(js):
    pairs = [sl.TwoClassNormal.canonical(delta, p=1) for delta in DELTAS]
    y = np.linspace(-6, 6, 41)
    ours = js("softlabel.posterior(y, delta)", delta=DELTAS, y=y)
    theirs = [pair.posterior(y[:, None])[:, 0] for pair in pairs]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    ours = js("softlabel.density(y, delta)", delta=DELTAS, y=y)
    theirs = [(stats.norm.pdf(y, d / 2) + stats.norm.pdf(y, -d / 2)) / 2 for d in DELTAS]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    ours = js("softlabel.bayesError(delta)", delta=DELTAS)
    np.testing.assert_allclose(ours, [p.bayes_error() for p in pairs], rtol=1e-12)
    # 2 E(tau_1 tau_2) is twice the intercept's entry of the Fisher information.
    ours = js("softlabel.wrongShare(delta)", delta=DELTAS)
    theirs = [2 * pair.fisher_information()[0, 0] for pair in pairs]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def static_items(delta):
    """Features and wrong labels, from the cell behind the static figure."""
    page = Chapter((ROOT / "book" / "explore.md").read_text("utf8"))
    (cell,) = (c.source for c in page.code if "Richtmyer" in c.source)
    names = {"np": np, "sl": sl}
    assert cell.count("delta, n = 2, 300\n") == 1
    exec(cell.replace("delta, n = 2,", f"delta, n = {delta},"), names)
    return names["Y"], names["wrong"]


def check_items(js):
    for delta in DELTAS:
        items = f"softlabel.items(300, {delta})"
        Y, wrong = static_items(delta)
        ours = js(f"{items}.map(d => [d.y1, d.y2])")
        np.testing.assert_allclose(ours, Y, rtol=1e-10, atol=1e-12)
        assert (js(f"{items}.map(d => d.label !== d.truth)") == wrong).all()
        # Evenly spread, they come close to the expected share.
        assert abs(wrong.mean() - js(f"softlabel.wrongShare({delta})")) < 0.03


def check_budget(js):
    """Against a search over all whole numbers, with costs written out."""
    ms = np.arange(1, 1001)
    alphas = np.array(ALPHAS[:-2])
    items = 1000 / (np.array(PRICES)[:, None] + ms)
    theirs = items[None] * sl.relative_efficiency(ms, alphas[:, None])[:, None]
    ours = js("softlabel.worth(1000, m, alpha0, price)", alpha0=alphas, price=PRICES, m=ms)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    best = js("softlabel.bestWhole(alpha0, price)", alpha0=alphas, price=PRICES)
    found = np.take_along_axis(theirs, best.astype(int)[..., None] - 1, 2)[..., 0]
    np.testing.assert_allclose(found, theirs.max(axis=2), rtol=1e-13)  # ties count
    root = js("softlabel.bestRoot(alpha0, price)", alpha0=alphas, price=PRICES)
    np.testing.assert_allclose(root, np.sqrt(np.outer(alphas, PRICES)), rtol=1e-13)
    assert (np.abs(best - root)[root >= 1] < 1).all()


def check_design(js):
    """Against design_votes, on budgets in which whole numbers matter; 33 pays for 30 at 1.1."""
    budgets, prices = [12, 33, 1000], [*PRICES, 0.3]
    ours = js(
        "(d => [d.n, d.m, d.worth])(softlabel.design(b, alpha0, price))",
        b=budgets,
        alpha0=ALPHAS[1:-1],
        price=[p for p in prices if p < 11],
    )
    theirs = [
        [[sl.design_votes(budget=b, cost_item=p, cost_vote=1, alpha0=a) for p in prices if p < 11] for a in ALPHAS[1:-1]]
        for b in budgets
    ]
    wanted = [[[[d.n_items, d.m, d.worth] for d in row] for row in t] for t in theirs]
    np.testing.assert_allclose(ours, wanted, rtol=1e-12)


# Prices of an item and of a true label, alpha0, ceiling and budget: each order of the prices, each kind of best plan.
SPLITS = list(product([0.5, 2, 10], [1, 7, 50], [0.3, 5, 100], [10, 200, np.inf], [60, 400]))


def check_split(js):
    """Against split_budget; each plan is also one that the budget pays for, and worth what it is said to be."""
    for price, truth, alpha0, ceiling, budget in SPLITS:
        given = f"{budget}, {alpha0}, {price}, {truth}, {ceiling if np.isfinite(ceiling) else 'Infinity'}"
        n, m, k, cost, *worths = js(
            f"(d => [d.n, d.m, d.k, d.cost, d.worth, d.allVotes, d.allTruth])(softlabel.split({given}))"
        )
        theirs = sl.split_budget(budget=budget, cost_item=price, cost_vote=1, cost_truth=truth, alpha0=alpha0, ceiling=ceiling)
        np.testing.assert_allclose(worths, [theirs.worth, theirs.all_votes, theirs.all_truth], rtol=1e-12)
        votes = n * sl.relative_efficiency(max(m, 1), alpha0)
        np.testing.assert_allclose(worths[0], k + votes / (1 + votes / ceiling), rtol=1e-12)
        np.testing.assert_allclose(cost, max(n, k) * price + n * m + k * truth, rtol=1e-12)
        assert cost <= budget * (1 + 1e-12) and {n % 1, m % 1, k % 1} == {0}


def check_curve(js):
    """Against the best of a fine grid of fractions of items and of votes."""
    m = np.geomspace(1, 1e4, 40_001)
    for price, truth, alpha0, ceiling, budget in SPLITS:
        given = f"{budget}, {alpha0}, {price}, {truth}, {ceiling if np.isfinite(ceiling) else 'Infinity'}"
        ks = np.linspace(0, budget / (price + truth), 201)[:-1:33]
        ours = js(f"softlabel.splitWorth(k, {given})", k=ks)
        rest = budget - ks[:, None] * truth
        n = np.where(rest / (price + m) >= ks[:, None], rest / (price + m), (rest - ks[:, None] * price) / m)
        votes = (n * sl.relative_efficiency(m, alpha0)).max(axis=1)
        np.testing.assert_allclose(ours, ks + votes / (1 + votes / ceiling), rtol=1e-4)


def test_curve_drawn_by_the_page():
    """The fractions in the cell behind the drawn figure are those of the script: both against the same grid."""
    page = Chapter((ROOT / "book" / "explore.md").read_text("utf8"))
    (cell,) = (c.source for c in page.code if "split_budget" in c.source)
    first, rest = cell.split("\n", 1)
    assert first.startswith("alpha0, price, truth, ceiling, budget =")

    def drawn(expression, k):
        budget, alpha0, price, truth, ceiling = re.fullmatch(r"softlabel\.splitWorth\(k, (.*)\)", expression)[1].split(", ")
        names = dict(np=np, sl=sl, alpha0=float(alpha0), price=float(price), truth=float(truth), budget=float(budget))
        exec(rest, names | {"ceiling": float(ceiling.replace("Infinity", "inf"))}, found := {})
        return np.interp(k, found["k"], found["labels"])

    check_curve(drawn)


@pytest.mark.parametrize(
    "check", [check_votes, check_worth, check_normal, check_items, check_budget, check_design, check_split, check_curve]
)
def test_formulas_are_those_of_the_package(driver, tmp_path, check):
    check(JavaScript(driver, tmp_path))


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
        (check_normal, "2 * posterior(y", "posterior(y"),
        (check_normal, "normalCdf(-delta / 2)", "normalCdf(-delta)"),
        (check_normal, "delta / 2 + 9", "delta / 2 + 2"),
        (check_normal, "(x * x) / k", "(x * x) / (k + 1)"),
        (check_items, "[2, 3, 5, 7]", "[2, 3, 5, 11]"),
        (check_items, "d < posterior(y1, delta)", "d > posterior(y1, delta)"),
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
def test_checks_see_a_wrong_formula(driver, tmp_path, check, right, wrong):
    assert MODEL.count(right) == 1
    with pytest.raises(AssertionError):
        check(JavaScript(driver, tmp_path, MODEL.replace(right, wrong)))


def test_what_the_page_says_to_look_for():
    """Its surprises, each with a case next to it where it fails."""
    for m in (1, 4, 30):  # all counts equally likely
        k = np.arange(m + 1)
        half = np.full((m + 1, 2), 0.5)
        votes = np.column_stack([k, m - k])
        np.testing.assert_allclose(np.exp(sl.dm_logpmf(votes, half, 2)), 1 / (m + 1))
        assert m == 1 or np.ptp(sl.dm_logpmf(votes, half, 2.1)) > 1e-3
    a = np.array([1, 3, 50])  # half of what can be reached
    np.testing.assert_allclose(sl.relative_efficiency(a, a), (1 + a) / 2)
    alphas, prices = np.geomspace(1e-2, 1e3, 61), np.geomspace(1e-2, 1e3, 61)[:, None]

    def worth(m):  # m need not be whole, nor at least 1
        return m * (1 + alphas) / (m + alphas) / (prices + m)

    root = np.sqrt(alphas * prices)
    for factor in (0.5, 2):
        lost = 1 - worth(factor * root) / worth(root)
        assert lost.min() > 0 and 0.11 < lost.max() < 1 / 9 + 1e-12
    pays = worth(2) > worth(1)
    product = alphas * prices
    assert not pays[product < 2 - 1e-9].any() and pays[product > 2 + 1e-9].all()


# The page, opened as a file.


@pytest.fixture
def page(site, driver):
    """The browser with the page at 1,400 px."""
    resize(driver, 1400)
    driver.get((site / "book" / "explore.html").as_uri())
    return driver


def state(driver, figure):
    """What the reader sees: values, sentence, picture."""
    place = driver.find_element(By.ID, figure)
    return {
        "values": [o.text for o in place.find_elements(By.TAG_NAME, "output")],
        "sentence": place.find_element(By.CLASS_NAME, "explore-sentence").text,
        "picture": place.find_element(By.CLASS_NAME, "explore-picture").get_property("innerHTML"),
    }


def slider(driver, figure, name):
    return driver.find_element(By.ID, f"{figure}-{name}")


def differing(before, after):
    return {key for key in before if before[key] != after[key]}


@pytest.mark.parametrize("figure, name", SLIDERS)
def test_slider_answers_keys(page, figure, name):
    before = state(page, figure)
    control = slider(page, figure, name)
    control.send_keys(Keys.ARROW_RIGHT)
    after = state(page, figure)
    assert differing(before, after) == {"values", "sentence", "picture"}
    control.send_keys(Keys.ARROW_LEFT)
    assert differing(before, state(page, figure)) == set()
    control.send_keys(Keys.END)
    last = state(page, figure)
    control.send_keys(Keys.HOME)
    assert differing(last, state(page, figure)) >= {"values", "picture"}


@pytest.mark.parametrize("figure, name", SLIDERS)
def test_slider_answers_touch(page, figure, name):
    before = state(page, figure)
    control = slider(page, figure, name)
    touch(page, control, 0.1, 0.9)
    assert differing(before, state(page, figure)) == {"values", "sentence", "picture"}


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


def said_votes(alpha0, m, tau):
    share = [f"{unanimous(m, tau, a):.0%}" for a in (alpha0, np.inf)]
    return [f"{m:g} labellers", f"α₀ = {alpha0:g}", f"τ₁ = {tau:g}", *share, f"{m * tau:.3g} positive"]


def said_worth(alpha0, m):
    worth = f"{sl.relative_efficiency(m, alpha0):.3g} true labels"
    limit = f"{1 + alpha0:.3g}" if alpha0 < 99 else half_up(1 + alpha0)
    return [f"{m:g} labellers", f"α₀ = {alpha0:g}", worth, f"below {limit}."]


def said_noise(delta):
    pair = sl.TwoClassNormal.canonical(delta)
    shares = f"{2 * pair.fisher_information()[0, 0]:.0%}", f"{pair.bayes_error():.0%}"
    return [f"Δ = {delta:g}", *shares, f"items {static_items(delta)[1].sum()} are"]


def said_budget(alpha0, price):
    m = np.arange(1, 1001)
    worth = 1000 / (price + m) * sl.relative_efficiency(m, alpha0)
    near = m[worth >= 0.95 * worth.max()]
    whole = sl.design_votes(budget=1000, cost_item=price, cost_vote=1, alpha0=alpha0)
    best = [f"ask {m[worth.argmax()]} labellers", f"worth {worth.max():.0f} true", f"against {worth[0]:.0f} with"]
    flat = f"From {near[0]} to {near[-1]} labellers"
    return [*best, flat, f"{whole.n_items} item", f"with {whole.m} vote", f"worth {whole.worth:.1f} true"]


def half_up(x):
    """As JavaScript rounds."""
    return f"{np.floor(x + 0.5):,.0f}"


def said_split(alpha0, price, truth, ceiling, budget):
    prices = dict(budget=budget, cost_item=price, cost_vote=1, cost_truth=truth, alpha0=alpha0)
    plan = sl.split_budget(**prices, ceiling=ceiling)
    bought = [f"{plan.n_items} item", f"with {plan.m} vote"] if plan.m else []
    labels = [f"{plan.n_truth} true label"] if plan.n_truth else []
    alone = f"Votes alone are worth {half_up(plan.all_votes)}, true labels alone {plan.all_truth:,.0f}."
    promised = f"votes alone would be worth {half_up(sl.design_votes(**prices).worth)}."
    return [f"A budget of {budget:,.0f} votes", *bought, *labels, f"worth {half_up(plan.worth)} true", alone, promised]


SAID = dict(zip(FIGURES, [said_votes, said_worth, said_noise, said_budget, said_split]))


@pytest.mark.parametrize("figure, name", SLIDERS)
def test_sentence_is_true(page, figure, name):
    control = slider(page, figure, name)
    for key in (Keys.NULL, Keys.ARROW_RIGHT, 5 * Keys.ARROW_LEFT):
        control.send_keys(key)
        shown = state(page, figure)
        for words in SAID[figure](*map(float, shown["values"])):
            assert words in shown["sentence"]


def test_ends_that_are_easily_rounded_away(page):
    """The limit at alpha0 = 1000, and whole items whose votes are not those of the best rule for a part of an item."""
    figure = "fig-explore-worth"
    slider(page, figure, "alpha0").send_keys(Keys.END)
    said = state(page, figure)["sentence"]
    assert "α₀ = 1000" in said and said.endswith("stay below 1,001.")
    figure = "fig-explore-budget"
    slider(page, figure, "alpha0").send_keys(Keys.HOME)
    slider(page, figure, "price").send_keys(Keys.END, 4 * Keys.ARROW_LEFT)
    assert state(page, figure)["values"] == ["0.1", "20"]
    said = state(page, figure)["sentence"]
    assert "ask 1 labeller an item" in said and "45 items with 2 votes each" in said
    assert said.endswith("; with 1 vote each some of the budget would be left.")


def numbers(driver, selector, attribute):
    script = "return [...document.querySelectorAll(arguments[0])].map(e => Number(e.getAttribute(arguments[1])))"
    return np.array(driver.execute_script(script, selector, attribute))


def test_bars_and_rings_are_as_high_as_the_probabilities(page):
    figure = "fig-explore-votes"
    slider(page, figure, "alpha0").send_keys(Keys.ARROW_RIGHT)
    alpha0, m, tau = map(float, state(page, figure)["values"])
    k = np.arange(m + 1)
    votes, tau = np.column_stack([k, m - k]), np.tile([tau, 1 - tau], (len(k), 1))
    height = numbers(page, f"#{figure} [aria-label=bar] rect", "height")
    p = np.exp(sl.dm_logpmf(votes, tau, alpha0))
    np.testing.assert_allclose(height / height.sum(), p, atol=1e-6)
    bottom = numbers(page, f"#{figure} [aria-label=rule] line", "y1")
    ring = bottom - numbers(page, f"#{figure} [aria-label=dot] circle", "cy")
    p = np.exp(sl.dm_logpmf(votes, tau, np.inf))
    np.testing.assert_allclose(ring / ring.sum(), p, atol=1e-6)


def test_cursor_and_number_are_where_the_sliders_say(page):
    svg = "document.querySelector('#fig-explore-worth svg')"
    for key in (Keys.NULL, 3 * Keys.ARROW_RIGHT):
        slider(page, "fig-explore-worth", "m").send_keys(key)
        alpha0, m = map(float, state(page, "fig-explore-worth")["values"])
        place = page.execute_script(f"return [{svg}.scale('x').apply({m}), {svg}.scale('y').apply({alpha0})]")
        dot = [numbers(page, "#fig-explore-worth [aria-label=dot] circle", f"c{axis}")[0] for axis in "xy"]
        np.testing.assert_allclose(dot, place, atol=0.01)
        texts = page.find_elements(By.CSS_SELECTOR, "#fig-explore-worth svg text")
        number = f"{sl.relative_efficiency(m, alpha0):.3g}"
        assert number in [text.text for text in texts]


def test_there_are_as_many_crosses_as_wrong_labels(page):
    figure = "fig-explore-noise"
    for key in (Keys.NULL, 5 * Keys.ARROW_LEFT):
        slider(page, figure, "delta").send_keys(key)
        (delta,) = map(float, state(page, figure)["values"])
        marks = f"#{figure} [aria-label=dot]"
        dots, crosses = page.find_elements(By.CSS_SELECTOR, marks)
        wrong = static_items(delta)[1]
        assert len(crosses.find_elements(By.TAG_NAME, "path")) == wrong.sum()
        assert len(dots.find_elements(By.TAG_NAME, "circle")) == (~wrong).sum()


def test_the_dot_is_on_top_of_the_curve(page):
    figure = "fig-explore-budget"
    for key in (Keys.NULL, 2 * Keys.ARROW_LEFT):
        slider(page, figure, "price").send_keys(key)
        line = page.find_element(By.CSS_SELECTOR, f"#{figure} [aria-label=line] path")
        points = re.findall(r"[ML,]([\d.]+),([\d.]+)", line.get_attribute("d"))
        highest = min(np.array(points, float), key=lambda point: point[1])
        dot = [numbers(page, f"#{figure} [aria-label=dot] circle", f"c{axis}")[0] for axis in "xy"]
        np.testing.assert_allclose(dot, highest, atol=0.01)


def test_sentences_at_the_ends(page):
    """One labeller, an infinite alpha0, a second vote that does not pay."""
    slider(page, "fig-explore-votes", "alpha0").send_keys(Keys.END)
    shown = state(page, "fig-explore-votes")
    assert shown["values"][0] == "∞" and "α₀ = ∞" in shown["sentence"]
    infinite = slider(page, "fig-explore-votes", "alpha0")
    assert infinite.get_attribute("aria-valuetext") == "infinite"
    slider(page, "fig-explore-votes", "m").send_keys(Keys.HOME)
    assert "nobody to agree with" in state(page, "fig-explore-votes")["sentence"]
    slider(page, "fig-explore-worth", "m").send_keys(Keys.HOME)
    sentence = state(page, "fig-explore-worth")["sentence"]
    assert sentence.startswith("1 labeller at α₀ = 5 is worth 1 true label. ")
    slider(page, "fig-explore-budget", "price").send_keys(Keys.HOME)
    sentence = state(page, "fig-explore-budget")["sentence"]
    assert "ask 1 labeller an item" in sentence and "against" not in sentence
    for figure, name in SLIDERS:  # nothing undefined anywhere
        for key in (Keys.HOME, Keys.END):
            slider(page, figure, name).send_keys(key)
            shown = state(page, figure)
            assert not re.search("NaN|undefined|Infinity", str(shown))


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


def shows(driver, figure):
    """Which of the two figures is displayed."""
    return driver.execute_script(
        "const place = document.getElementById(arguments[0]);"
        "const seen = e => e !== null && e.getBoundingClientRect().height > 100;"
        "return [seen(place.querySelector('.explore')),"
        " seen(place.querySelector(':scope > img'))];",
        figure,
    )


@pytest.mark.parametrize("figure", FIGURES)
def test_the_drawn_figure_is_printed(page, figure):
    assert shows(page, figure) == [True, False]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert shows(page, figure) == [False, True]
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_without_javascript_the_drawn_figures_stand(site, driver):
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get((site / "book" / "explore.html").as_uri())
        for figure in FIGURES:
            place = driver.find_element(By.ID, figure)
            assert not place.find_elements(By.CLASS_NAME, "explore")
            assert place.find_element(By.TAG_NAME, "img").size["height"] > 100
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("mode", ["light", "dark"])
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
def test_nothing_sticks_out(site, driver, width):
    address = (site / "book" / "explore.html").as_uri()
    assert look(driver, address, width) == []
    for figure, name in SLIDERS:
        for key in (Keys.HOME, Keys.END):
            slider(driver, figure, name).send_keys(key)
            room, needed = driver.execute_script(
                "const page = document.documentElement;return [page.clientWidth, page.scrollWidth];"
            )
            assert needed <= room, (figure, name)


def loaded(driver, site, address):
    """Files that a page loads."""
    driver.get(address)
    names = driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    return {site / unquote(urlsplit(n).path)[1:] for n in names if n[:5] != "data:"}


def test_the_page_is_light_and_others_pay_nothing(site, served, driver):
    here, other = "book/explore.html", "book/references.html"
    explore, plain = (loaded(driver, site, f"{served}/{p}") for p in (here, other))
    extra = {path.name for path in explore - plain if "explore" in path.parts}
    assert extra == {"plot.min.js", "model.js", "figures.js", "explore.css"}
    assert not [path for path in plain if "explore" in path.parts]
    files = {site / here} | explore
    assert sum(p.stat().st_size for p in files) < 1_550_000
    assert sum(p.stat().st_size for p in files - plain) < 680_000
