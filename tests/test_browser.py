"""The book in a browser: each page looked at, and the ways a reader takes.

Every page is opened once, as it comes from the server, and seen wide and
narrow, light and dark. Each check is first shown a page that it must not pass.
"""

import json
from urllib.parse import urlsplit

import pytest
from conftest import ROOT, serving
from measures import clipped, parted, weight
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from test_guide import TOLD
from test_site import chapter_pages

WIDTHS = (1400, 768, 360)
THEMES = ("light", "dark")
MODES = [f"{width} px, {theme}" for width in WIDTHS for theme in THEMES]
AXE = (ROOT / "tests" / "axe" / "axe.min.js").read_text("utf8")


def resize(driver, width):
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )


# What can be wrong with a page. Each function returns a list, empty if all is well.


def requested_hosts(driver):
    """Hosts that were asked for anything since the last call."""
    hosts = set()
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            parts = urlsplit(message["params"]["request"]["url"])
            if parts.scheme in {"http", "https", "ws", "wss"}:
                hosts.add(parts.hostname)
    return hosts


def too_wide(driver, within="article"):
    """What is cut off at the right within a place, or makes the whole page scroll."""
    room, needed, wide = driver.execute_script(
        "const page = document.documentElement;"
        "const wide = [...document.querySelectorAll(`${arguments[0]} *`)].filter("
        "  e => e.getBoundingClientRect().right > page.clientWidth + 1"
        "  && !e.closest('pre, .cell_output, .katex-mathml, .katex svg,"
        " .pst-scrollable-table-container, [tabindex]:is(figure, .katex-display)'));"
        "return [page.clientWidth, page.scrollWidth,"
        " wide.slice(0, 3).map(e => e.outerHTML.slice(0, 80))];",
        within,
    )
    problems = [f"{needed} px needed at {room} px"] if needed > room else []
    return problems + [f"sticks out: {e}" for e in wide]


def look(driver, address, width):
    """Open a page at a width; return what is wrong with it."""
    resize(driver, width)
    requested_hosts(driver), driver.get_log("browser")  # what an earlier page has asked for and said
    driver.get(address)
    # Pictures further down are loaded when they come into view, and fonts when
    # a sign asks for them.
    driver.execute_async_script(
        "const done = arguments[0];"
        "const pictures = [...document.querySelectorAll('img')];"
        "pictures.forEach(e => e.loading = 'eager');"
        "const drawn = () => new Promise(next =>"
        "  requestAnimationFrame(() => requestAnimationFrame(next)));"
        "drawn().then(() => document.fonts.ready)"
        ".then(() => Promise.allSettled(pictures.map(e => e.decode())))"
        ".then(drawn).then(done);"
    )
    problems = too_wide(driver) + [
        f"console: {entry['message']}" for entry in driver.get_log("browser") if entry["level"] == "SEVERE"
    ]
    outside = requested_hosts(driver) - {"127.0.0.1"}
    return problems + [f"asked {host}" for host in sorted(outside)]


def lost_pictures(driver):
    """Pictures that did not load, whose lines could vanish in the page's colour, or whose text is too small to read."""
    return driver.execute_script(
        "const dark = document.documentElement.dataset.theme === 'dark';"
        "const wrong = e => e.naturalWidth < 50 || e.clientHeight < 50 ? 'lost'"
        "  : dark && !getComputedStyle(e).filter.startsWith('invert') ? 'not for the dark'"
        "  : e.src.includes('svg') && e.closest('figure') && e.clientWidth < 0.65 * e.naturalWidth ? 'too small' : '';"
        "return [...document.querySelectorAll('article img')]"
        ".filter(e => e.getClientRects().length && wrong(e))"
        ".map(e => `${wrong(e)}: ${e.getAttribute('src')}`)"
    )


def dark_corners(driver):
    """What the keyboard reaches without a ring around it that stands out, and formulas that it need not reach."""
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ARROW_UP)  # no ring is shown to those who use a mouse
    return driver.execute_script(
        "const light = colour => {"
        "  const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);"
        "  const [x, y, z] = [r, g, b].map(v => v / 255)"
        "    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);"
        "  return a ? 0.2126 * x + 0.7152 * y + 0.0722 * z : null;"
        "};"
        "const ground = e => e ? light(getComputedStyle(e).backgroundColor) ?? ground(e.parentElement) : 1;"
        "const contrast = (x, y) => (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);"
        "const found = [...document.querySelectorAll("
        "  'a[href], button, summary, input, select, textarea, [tabindex=\"0\"]')].filter(e => {"
        "  if (!e.checkVisibility({visibilityProperty: true, opacityProperty: true})) return false;"
        "  e.focus({preventScroll: true});"
        "  if (document.activeElement !== e) return false;"
        "  const style = getComputedStyle(e);"
        "  return style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2"
        "    || contrast(light(style.outlineColor), ground(e.parentElement)) < 3;"
        "});"
        "const idle = [...document.querySelectorAll('.katex, .katex-display')].filter("
        "  e => e.tabIndex >= 0 && e.scrollWidth <= e.clientWidth);"
        "document.activeElement.blur();"
        "const name = e => e.outerHTML.slice(0, 100);"
        "return [...found.map(e => `no ring: ${name(e)}`), ...idle.map(e => `a tab stop: ${name(e)}`)];"
    )


def on_paper(driver):
    """What a sheet of A4 cuts off, and what on it answers to nobody."""
    resize(driver, 718)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    found = clipped(driver) + driver.execute_script(
        "const room = document.documentElement.clientWidth;"
        "const seen = places => [...document.querySelectorAll(places)].filter(e => e.checkVisibility());"
        "const dead = seen('article :is(.toggle-button, .copybtn, .headerlink, summary)');"
        "const cut = seen('article :is(table, img, pre, .katex-base)').filter("
        "  e => e.getBoundingClientRect().right > room || e.tagName === 'PRE' && e.scrollWidth > e.clientWidth + 1);"
        "return [...dead, ...cut].map(e => e.outerHTML.slice(0, 80));"
    )
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    return [f"on paper: {line}" for line in found]


def axe(driver, rules=None):
    """Findings of axe-core that are more than minor, as rule and place."""
    return driver.execute_async_script(
        "const [rules, done] = arguments;"
        "const options = {resultTypes: ['violations'], preload: false};"
        "if (rules) options.runOnly = rules;"
        "axe.configure({noHtml: true});"
        "axe.run(document, options).then("
        "  found => done(found.violations.filter(v => v.impact !== 'minor')"
        "    .flatMap(v => v.nodes.map(n => `${v.id}: ${n.target}`))),"
        "  error => done([`axe: ${error}`]));",
        rules,
    )


def in_all_modes(driver):
    """What is wrong with the open page in each of the six modes.

    A theme changes colours and nothing else. What makes up most of a page is
    emptied, or axe would take minutes: formulas (which have a test of their
    own) and code that looks like code before it.
    """
    driver.execute_script(AXE)
    # A colour that is still changing is neither the old nor the new one.
    driver.execute_script(
        "const style = document.createElement('style');"
        "style.textContent = '* {transition: none !important}';"
        "document.head.append(style);"
    )
    problems = []
    for width in WIDTHS:
        resize(driver, width)
        wait_for_tab_stops(driver)
        found = [f"cut off: {line}" for line in clipped(driver)] + parted(driver)
        problems += [f"{width} px: {line}" for line in found]
    problems += on_paper(driver)
    resize(driver, WIDTHS[-1])
    empty_formulas(driver)
    thin_out_code(driver)
    for width in WIDTHS:
        resize(driver, width)
        # Colours first: meanwhile the scripts see what has begun to scroll.
        for theme, rules in [("dark", ["color-contrast", "link-in-text-block"]), ("light", None)]:
            driver.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
            if rules is None:
                wait_for_tab_stops(driver)
            found = lost_pictures(driver) + dark_corners(driver) + axe(driver, rules)
            problems += [f"{width} px, {theme}: {line}" for line in found]
        problems += too_wide(driver)
    return problems


def wait_for_tab_stops(driver):
    """The theme, and our script, see a moment later what has begun to scroll."""
    driver.execute_async_script(
        "const done = arguments[0], late = Date.now() + 600;"
        "const boxes = [...document.querySelectorAll("
        "  'pre, figure, .output, .katex-display, .pst-scrollable-table-container')];"
        "(function look() {"
        "  const missed = boxes.some(e => e.scrollWidth > e.clientWidth && e.tabIndex < 0);"
        "  if (missed && Date.now() < late) setTimeout(look, 20); else done();"
        "})();"
    )


def empty_formulas(driver):
    """Make each formula an empty box of its size."""
    driver.execute_script(
        "const formulas = [...document.querySelectorAll('.katex-html')];"
        "const sizes = formulas.map(e => e.getBoundingClientRect());"
        "formulas.forEach((e, i) => {"
        "  e.style.cssText = 'display: inline-block;'"
        "    + `width: ${sizes[i].width}px; height: ${sizes[i].height}px`;"
        "  e.replaceChildren();"
        "});"
        "document.querySelectorAll('.katex-mathml').forEach(e => e.remove());"
    )


def thin_out_code(driver):
    """Take away the mark-up of code whose colours are those of code before it.

    They depend on the classes and styles of a token and of all around it. Axe
    judges neither a single sign nor what is hidden; what lies beyond the edge
    of its box stands for no other.
    """
    driver.execute_script(
        "const seen = new Set();"
        "const repeated = [...document.querySelectorAll('pre span')].filter(e => {"
        "  if (!e.checkVisibility({visibilityProperty: true})) return true;"
        "  let kind = '';"
        "  for (let p = e; p; p = p.parentElement)"
        "    kind += `${p.className} ${p.style.cssText} < `;"
        "  if (e.textContent.trim().length < 2 || seen.has(kind)) return true;"
        "  const right = [e, e.closest('pre')].map(e => e.getBoundingClientRect().right);"
        "  if (right[0] <= right[1]) seen.add(kind);"
        "});"
        "repeated.forEach(e => e.replaceWith(...e.childNodes));"
        "document.querySelectorAll('pre').forEach(e => e.normalize());"
    )


PICTURE = "<img width='60' src=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='300' height='300'/>\">"
BAD_IN_BROWSER = {
    "px needed": "<p style='width: 2000px'>wide</p>",
    "sticks out": "<article style='overflow: hidden'><p style='width: 2000px'>cut</p></article>",
    "console": "<script>const a = 1</script><script>const a = 2</script>",
    "asked": "<img src='http://outside.invalid/a.png'>",
    "lost: none.png": "<article><img src='none.png' style='width: 60px; height: 60px'></article>",
    "not for the dark": f"<article>{PICTURE}</article>",
    "too small": f"<article><figure>{PICTURE.replace('60', '180')}</figure></article>",
}


@pytest.mark.parametrize("problem", BAD_IN_BROWSER)
def test_browser_sees_a_bad_page(driver, tmp_path, problem):
    page = f"<!doctype html><html lang=en><title>A page</title><main>{BAD_IN_BROWSER[problem]}</main>"
    (tmp_path / "bad.html").write_text(page)
    found = look(driver, (tmp_path / "bad.html").as_uri(), 390) + lost_pictures(driver)
    driver.execute_script("document.documentElement.dataset.theme = 'dark'")
    assert any(problem in line for line in found + lost_pictures(driver))


FORMULA = "<span class='katex'><span class='katex-base' style='display: inline-block; width: 90px'>x</span></span>"
FAULTS = {
    clipped: [
        f"<p style='width: 50px; overflow: hidden'>{FORMULA}</p>",
        f"<p style='width: 50px; overflow: auto'>{FORMULA}</p>",
        f"<div style='overflow: clip'><div style='width: 50px; margin-left: -20px'>{FORMULA}</div></div>",
    ],
    parted: [
        f"<p style='width: 95px'>{FORMULA}. Next</p>",
        f"<p style='width: 95px'>A <b>{FORMULA}</b>, next</p>",
        f"<p style='width: 95px'>{FORMULA}<i></i>) next</p>",
        f"<p style='width: 95px'>so ({FORMULA}</p>",
    ],
}
HARMLESS = [
    f"<p style='width: 100px; overflow: auto'>{FORMULA}</p>",
    f"<p class='says' style='width: 50px; overflow: auto'>{FORMULA}</p>",
    f"<p style='width: 120px'>{FORMULA}. Next</p>",
    f"<p style='width: 95px'>{FORMULA} and more</p>",
    f"<p style='width: 95px'>so <span style='white-space: nowrap'>({FORMULA}),</span> but</p>",
]


def article(driver, tmp_path, text):
    style = "<style>.says::before {content: 'scroll sideways'} p {font: 16px monospace}</style>"
    (tmp_path / "page.html").write_text(f"<!doctype html><title>A page</title>{style}<article>{text}</article>")
    look(driver, (tmp_path / "page.html").as_uri(), 360)


@pytest.mark.parametrize("find, fault", [(find, fault) for find, faults in FAULTS.items() for fault in faults])
def test_browser_sees_a_formula_cut_or_parted(driver, tmp_path, find, fault):
    article(driver, tmp_path, fault)
    assert len(find(driver)) == 1


def test_browser_passes_whole_formulas(driver, tmp_path):
    article(driver, tmp_path, "".join(HARMLESS))
    assert clipped(driver) + parted(driver) == []


EVERYWHERE = MODES[::2]  # the rules without colours run once a width
PLANTED = [  # what is found, in which modes, and what of its place is said
    ("image-alt", EVERYWHERE, "", "<img src='../_static/card.png' style='width: 9rem'>"),
    ("color-contrast", MODES[::2], "new",
     "<style>.new {color: #aaa}</style><pre hidden><span class='new'>unseen</span></pre>"
     "<pre><span class='new'>=</span> <span class='new'>pale</span></pre>"),
    ("color-contrast", MODES[1::2], "dark",
     "<pre><span class='n'>seen</span> <span class='n' id='dark' style='color: #444'>dark</span></pre>"),
    ("scrollable-region-focusable", MODES[4:5], "",
     "<div style='overflow-x: auto'><p style='width: 500px; text-align: right'>wide</p></div>"),
    ("no ring", MODES, "none", "<button style='outline: none !important'>press</button>"),
    ("no ring", MODES[::2], "#eee", "<button style='outline-color: #eee !important'>press</button>"),
    ("a tab stop", MODES, "", "<span class='katex' tabindex='0'>x</span>"),
]  # fmt: skip


def plant(driver, fault):
    driver.execute_script("document.querySelector('article').insertAdjacentHTML('beforeend', arguments[0])", fault)


def test_axe_sees_planted_faults(served, driver):
    """On a page of the book, each in just the modes in which it is one."""
    look(driver, f"{served}/book/changelog.html", 1400)
    plant(driver, "".join(fault for *_, fault in PLANTED))
    found = in_all_modes(driver)
    for rule, modes, place, _ in PLANTED:
        seen = [mode for mode in MODES if any(line.startswith(f"{mode}: {rule}:") and place in line for line in found)]
        assert seen == modes, (rule, place, found)


def test_faults_on_paper_are_seen(served, driver):
    look(driver, f"{served}/book/changelog.html", 1400)
    assert on_paper(driver) == []
    for fault in (
        "<details><summary style='display: block !important'>more</summary>text</details>",
        "<pre style='white-space: pre !important; overflow: auto'>" + 99 * "wide " + "</pre>",
        f"<p style='width: 50px; overflow: auto'>{FORMULA}</p>",
        f"<p style='margin-left: 650px'>{FORMULA}</p>",
    ):
        plant(driver, fault)
        assert len(on_paper(driver)) == 1, fault
        driver.execute_script("document.querySelector('article').lastElementChild.remove()")


# Every page, in all modes.


def all_pages(site):
    """Names of the pages, without those that only lead to another, and without the slides: a deck for a projector."""
    return [
        page.relative_to(site).as_posix()
        for page in sorted(site.rglob("*.html"))
        if not page.relative_to(site).parts[0].startswith(("_", "slides"))
        and 'http-equiv="refresh"' not in page.read_text("utf8").lower()
    ]


LIMITS = (1_300_000, 450_000)  # bytes of a first visit: as stored, and as they are sent


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_pages_in_a_browser(site, served, driver, part):
    problems = {}
    for name in all_pages(site)[part::4]:
        address = f"{served}/{name}"
        resize(driver, WIDTHS[0])
        found = [f"{size:,} bytes" for size, limit in zip(weight(driver, site, address), LIMITS) if size > limit]
        found += look(driver, address, WIDTHS[0])
        found += in_all_modes(driver)
        if found:
            problems[name] = found
    assert problems == {}


def test_formulas_pass_axe(served, driver):
    """All symbols of the book, as KaTeX writes them."""
    look(driver, f"{served}/book/notation.html", 1400)
    assert len(driver.find_elements(By.CSS_SELECTOR, ".katex math")) > 20
    driver.execute_script(AXE)
    assert axe(driver) == []


def test_weight_is_that_of_the_files(driver, tmp_path):
    """Text is sent compressed; a font is not; what is loaded twice is sent once."""
    sizes = {"a.css": b"p {color: red}" * 900, "b.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>", "c.woff2": bytes(5000)}
    for name, content in sizes.items():
        (tmp_path / name).write_bytes(content)
    page = "<link rel=stylesheet href=a.css?v=1><img src=b.svg><style>@font-face {font-family: C; src: url(c.woff2)}</style>"
    text = f"<!doctype html><title>A page</title>{page}<p style='font-family: C'>x <img src=b.svg>"
    (tmp_path / "page.html").write_text(text)
    with serving(tmp_path, []) as address:
        raw, sent = weight(driver, tmp_path, f"{address}/page.html")
    assert raw == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert 5000 < sent < 5000 + 600


def test_code_is_not_cut_off_at_1400_px(site, served, driver):
    """Lines of 79 characters fit beside the two side bars."""
    look(driver, f"{served}/{next(iter(chapter_pages(site)))}.html", 1400)
    room = driver.execute_script(
        "const box = document.createElement('div');"
        "box.className = 'highlight';"
        "box.innerHTML = '<pre><span>' + 'x'.repeat(79) + '</span></pre>';"
        "document.querySelector('article').append(box);"
        "const pre = box.firstChild;"
        "return pre.clientWidth - pre.scrollWidth;"
    )
    assert room >= 0


# The ways of a reader.


def wait(driver, condition):
    return WebDriverWait(driver, 10, 0.05).until(condition)


def test_solutions_open_and_close(site, served, driver):
    """All of one chapter: by a click, and by the keyboard."""
    name = next(name for name, page in chapter_pages(site).items() if "solution dropdown" in page.read_text("utf8"))
    look(driver, f"{served}/{name}.html", 1400)
    solutions = driver.find_elements(By.CSS_SELECTOR, "div.solution.dropdown")
    assert solutions
    for solution in solutions:
        content = solution.find_element(By.CSS_SELECTOR, ":scope > section")
        button = solution.find_element(By.CSS_SELECTOR, "button.toggle-button")
        for act in (button.click, lambda: button.send_keys(Keys.ENTER)):
            shown = content.is_displayed()
            assert button.get_attribute("aria-expanded") == str(shown).lower()
            act()
            wait(driver, lambda _: content.is_displayed() != shown)
        assert not content.is_displayed()  # as at first


def test_wide_figures_on_a_phone_scroll_with_the_keyboard(site, served, driver):
    """Their text keeps its size; what does not scroll takes no part in tabbing."""
    _, first, *_ = chapter_pages(site)
    address = f"{served}/{first}.html"
    look(driver, address, 1400)
    assert not driver.find_elements(By.CSS_SELECTOR, "figure[tabindex]")
    look(driver, address, 390)
    figure = wait(driver, lambda d: d.find_elements(By.CSS_SELECTOR, "figure[tabindex='0']"))[0]
    figure.send_keys(Keys.ARROW_RIGHT)
    wait(driver, lambda _: figure.get_property("scrollLeft") > 0)


def test_the_search_quotes_prose(served, driver):
    """No source of a formula, no code, and no error at a place without text."""
    for words in ("overdispersion", "posterior"):
        assert look(driver, f"{served}/search.html?q={words}", 1400) == []
        found = wait(driver, lambda d: d.find_elements(By.CSS_SELECTOR, "#search-results li p.context"))
        wait(driver, lambda d: "found" in d.find_element(By.CSS_SELECTOR, "#search-results").text)
        assert len(found) > 3
        text = " ".join(e.text for e in found)
        assert words in text.lower() and "\\" not in text and "import " not in text
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.parametrize("words", TOLD["answers"])
def test_the_page_that_answers_is_among_the_first_two(served, driver, words):
    """In the order of a reader's page; the quotations, for which each page found is fetched, are left out."""
    page, _ = TOLD["answers"][words]
    if driver.current_url != f"{served}/search.html":
        driver.get(f"{served}/search.html")
    driver.execute_script(
        "DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;"
        "document.getElementById('search-results').replaceChildren();"
        "Search.performSearch(arguments[0]);",
        words,
    )
    wait(driver, lambda d: "found" in d.find_element(By.CSS_SELECTOR, "#search-results").text)
    links = [link.get_attribute("href") for link in driver.find_elements(By.CSS_SELECTOR, "#search-results li > a")[:2]]
    assert any(f"{page}.html" in link for link in links), links


def test_on_paper_the_theme_is_light(served, driver):
    look(driver, f"{served}/book/notation.html", 1400)
    driver.execute_script("document.documentElement.dataset.theme = 'dark'")
    theme = [
        driver.execute_script(f"dispatchEvent(new Event('{name}')); return document.documentElement.dataset.theme")
        for name in ("beforeprint", "afterprint")
    ]
    assert theme == ["light", "dark"]
