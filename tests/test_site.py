"""The built pages: nothing blank, nothing broken, nothing from outside.

Each `find_*` function takes a page and returns what is wrong with it. Each is
first shown a bad sample.
"""

import re
from collections import Counter
from itertools import chain
from urllib.parse import urlsplit

import pytest
from conftest import ROOT, soup_of

from softlabel.book.repository import site_address

# Text that no reader should see. Code, shown or in an output, is exempt from
# the first kind only: `np.nan` in a cell is as it should be.
IN_PROSE = {
    "nan": re.compile(r"(?<![\w.])nan(?!\w)", re.I),
    "a role or directive": re.compile(r"\{(glue|ref|numref|eq|cite|prf|doc)\b"),
    "an unresolved reference": re.compile(r"\?\?|\[\s*\]\(#|\bundefined\b"),
    "raw Markdown table": re.compile(r"^\s*\|[\s:|-]+\|\s*$", re.M),
}
ANYWHERE = {
    "a NumPy repr": re.compile(r"np\.(float|int|bool|str)\w*\("),
    "an object repr": re.compile(r"<[\w.]+ object(>| at 0x)|<IPython\."),
    "a bare truth value": re.compile(r"^[(\[\s]*(True|False)\s*([,)\]]|$)"),
    "a traceback": re.compile(r"Traceback \(most recent call last\)"),
    "a folder of the machine": re.compile(r"\S*/site-packages/\S*"),
}
FETCHING = dict.fromkeys("script img iframe source video audio embed".split(), "src") | {"object": "data", "link": "href"}
# Relations that make a browser fetch the address.
LINK_RELATIONS = {"stylesheet", "preload", "prefetch", "modulepreload", "icon", "manifest", "preconnect", "dns-prefetch"}
CSS_ADDRESS = re.compile(r"""(?:url\(|@import)\s*['"]?([^'")\s;]+)""")


def article(html):
    return soup_of(html).find("article") or soup_of(html)


def text_outside(page, names):
    """All text but that in tags of these names."""
    inside = {id(text) for tag in page.find_all(names) for text in tag.strings}
    return "".join(text for text in page.strings if id(text) not in inside)


def find_bad_text(html):
    """What stands in the text and should not."""
    page = article(html)
    tags = page.find_all(["p", "td", "th", "li", "figcaption"]) + page.find_all("div", class_="cell_output")
    parts = [tag.get_text() for tag in tags]
    problems = [f"{kind}: {m.group()!r}" for kind, pattern in ANYWHERE.items() for m in map(pattern.search, parts) if m]
    text = text_outside(page, ["pre", "code"])
    return problems + [f"{kind}: {m.group()!r}" for kind, pattern in IN_PROSE.items() for m in pattern.finditer(text)]


def find_raw_formulas(html):
    """TeX that a reader sees, or that is left to a script."""
    soup = soup_of(html)
    problems = [script["src"] for script in soup.find_all("script", src=re.compile("mathjax", re.I))]
    problems += [
        f"not set: {tag.get_text()!r}"
        for tag in soup.find_all(class_=["math", "katex-error"])
        if "katex-error" in tag["class"] or not tag.find("math")
    ]
    text = text_outside(article(html), ["pre", "code", "annotation"])
    return problems + [f"TeX: {m.group()!r}" for m in re.finditer(r"\\[(\[]|\$[^$]*\\[a-z][^$]*\$|\\[a-z]{2,}\b", text)]


def find_blanks(html):
    """Places where a glued value, a table cell or a caption came out empty."""
    page = article(html)
    problems = [
        f"empty {tag.name} {' '.join(tag.get('class', []))}".strip()
        for tag in page.find_all("span", class_="pasted-text") + page.find_all(["figcaption", "caption", "p"])
        if not tag.get_text(strip=True)
        and not tag.find(["img", "svg", "code", "math", "a"])
        and tag.parent.name not in {"td", "th"}  # a cell may be empty
    ]
    problems += ["empty table" for body in page.select("table tbody") if not body.get_text(strip=True)]
    # A value that vanished inside a sentence leaves two blanks, or a blank
    # before the full stop.
    for part in page.find_all(["p", "li", "figcaption"]):
        gap = re.search(r"\w*(?:  +\w| [.,;:](?=\s|$)|(?<=\s)\(\s*\))", part.get_text())
        if gap:
            problems.append(f"a gap in the text: {gap.group()!r}")
    return problems


def find_missing_alt(html):
    """Pictures without a text for those who cannot see them."""
    return [
        f"no alt text: {img.get('src')}"
        for img in article(html).find_all("img")
        if len(img.get("alt", "").strip()) < 15 or "_images/" in img["alt"]
    ]


def find_dead_anchors(html):
    """Links within the page that lead nowhere."""
    soup = soup_of(html)
    ids = {tag["id"] for tag in soup.find_all(id=True)}
    return [
        f"no such place: {a['href']}" for a in article(html).find_all("a", href=re.compile("^#.")) if a["href"][1:] not in ids
    ]


def is_outside(address):
    return bool(urlsplit(address.strip()).netloc)


def find_outside_css(css):
    """Addresses in a style sheet that would be fetched from elsewhere."""
    return [a for a in CSS_ADDRESS.findall(css) if is_outside(a)]


def find_outside(html):
    """Addresses that a browser would fetch from elsewhere on load."""
    found = []
    for tag in soup_of(html).find_all(True):
        if tag.name in FETCHING and (tag.name != "link" or LINK_RELATIONS & set(tag.get("rel", []))):
            addresses = [tag.get(FETCHING[tag.name], "")]
            addresses += [part.split()[0] for part in tag.get("srcset", "").split(",") if part.strip()]
            found += [a for a in addresses if is_outside(a)]
        found += find_outside_css(tag.get_text() if tag.name == "style" else tag.get("style", ""))
    return found


def find_repeated_scripts(html):
    """Inline scripts that stand in the page more than once."""
    soup = soup_of(html)
    bodies = Counter(s.get_text().strip() for s in soup.find_all("script") if not s.get("src"))
    return [body[:60] for body, n in bodies.items() if body and n > 1]


BAD_PAGES = {
    find_bad_text: [
        "<article><p>The share is nan.</p></article>",
        "<article><td>nan</td></article>",
        "<article><p>It is np.float64(2.0).</p></article>",
        "<article><div class='cell_output'><pre>np.float64(2.0)</pre></div></article>",
        "<article><div class='cell_output'><pre>([True, True], False)</pre></div></article>",
        "<article><pre>x</pre><div class='cell_output'><pre>Traceback (most recent call last):</pre></div></article>",
        "<article><div class='cell_output'><pre>/home/a/site-packages/tqdm/auto.py:21: TqdmWarning</pre></div></article>",
        "<article><p>See {numref}fig.</p></article>",
        "<article><p>See {glue:text}.</p></article>",
        "<article><p>See Figure ??.</p></article>",
        "<article><p>&lt;IPython.core.display.Markdown object&gt;</p></article>",
        "<article><p>| a |\n|---|\n</p></article>",
    ],
    find_raw_formulas: [
        "<article><p>to $1.5 \\times 10^{-8}$.</p></article>",
        "<article><p>to \\(x\\).</p></article>",
        "<article><p>the \\alpha of it</p></article>",
        "<article><div class='math'>x</div></article>",
        "<article><p><span class='katex-error'>x</span></p></article>",
        "<script src='../_static/mathjax/tex-chtml.js'></script>",
    ],
    find_blanks: [
        "<article><p>It is <span class='pasted-text'></span>.</p></article>",
        "<article><p>It is .</p></article>",
        "<article><p>It is  or more.</p></article>",
        "<article><p>An interval ().</p></article>",
        "<article><figcaption> </figcaption></article>",
        "<article><table><tbody><tr><td></td></tr></tbody></table></article>",
    ],
    find_missing_alt: [
        "<article><img src='a.svg'></article>",
        "<article><img src='a.svg' alt=''></article>",
        "<article><img src='a.svg' alt='../../_images/0f1e2d3c4b.svg'></article>",
    ],
    find_dead_anchors: ["<article><a href='#nowhere'>x</a></article>"],
    find_outside: [
        "<script src='https://cdn.example/x.js'></script>",
        "<script src='//cdn.example/x.js'></script>",
        "<link rel='stylesheet' href='https://cdn.example/x.css'>",
        "<link rel='preload' as='font' href='https://cdn.example/x.woff2'>",
        "<img src='https://cdn.example/x.png' alt='x'>",
        "<img srcset='a.png 1x, https://cdn.example/x.png 2x' alt='x'>",
        "<iframe src='https://cdn.example/'></iframe>",
        "<style>@font-face {src: url(https://cdn.example/x.woff2)}</style>",
        "<style>@import 'https://cdn.example/x.css';</style>",
        "<p style='background: url(\"//cdn.example/x.png\")'></p>",
    ],
    find_repeated_scripts: ["<script>const a = 1</script><script>const a = 1</script>"],
}
GOOD_PAGE = """
<head><link rel="stylesheet" href="_static/a.css"><script src="a.js"></script>
<link rel="canonical" href="https://book.example/"></head>
<article><p id="here">A share of <span class="pasted-text">0.2248</span>
(see <a href="#here">above</a>, <a href="https://doi.example/">paper</a>).</p>
<div class="cell_input"><pre>x = np.nan; y = {ref}; r"$\\alpha$"</pre></div>
<div class="math"><math><mi>α</mi><annotation>\\alpha</annotation></math></div>
<img src="_images/a.svg" alt="Two curves that cross at zero">
<table><tbody><tr><td>1.0</td><td></td></tr></tbody></table></article>
<script>let a = 1</script>
"""


@pytest.mark.parametrize("find, page", [(find, page) for find, pages in BAD_PAGES.items() for page in pages])
def test_scanner_sees_a_bad_page(find, page):
    assert find(page)


@pytest.mark.parametrize("find", BAD_PAGES)
def test_scanner_passes_a_good_page(find):
    assert find(GOOD_PAGE) == []


def chapter_pages(site):
    """Pages of the table of contents."""
    from sphinx_external_toc.parsing import parse_toc_yaml

    toc = parse_toc_yaml(ROOT / "_toc.yml")
    return {name: site / f"{name}.html" for name in toc}


@pytest.mark.parametrize("find", BAD_PAGES)
def test_chapters(site, find):
    problems = {name: found for name, page in chapter_pages(site).items() if (found := find(page.read_text("utf8")))}
    assert problems == {}


@pytest.mark.parametrize("find", [find_outside, find_repeated_scripts])
def test_all_other_pages(site, find):
    pages = [p for p in site.rglob("*.html") if "_static" not in p.parts]
    problems = {page.name: found for page in pages if (found := find(page.read_text("utf8")))}
    assert problems == {}


def test_only_chapters_number_their_figures_and_tables(site):
    """Elsewhere "Table 2" is the paper's."""
    numbers = {
        page.stem: [tag.get_text().strip() for tag in soup_of(page.read_text("utf8")).select(".caption-number")]
        for page in site.glob("book/**/*.html")
    }
    assert len(numbers["04_information"]) > 3
    assert [n for ns in numbers.values() for n in ns if not re.fullmatch(r"\w+ \d+\.\d+", n)] == []


def test_style_sheets_fetch_nothing_from_outside(site):
    sheets = {sheet.name: find_outside_css(sheet.read_text("utf8", errors="replace")) for sheet in site.rglob("*.css")}
    assert {name: found for name, found in sheets.items() if found} == {}


@pytest.mark.parametrize(
    "of_site, kept_in",
    [(False, ["_config.yml"]), (True, ["README.md", "softlabel/report/parts.py"])],
    ids=["repository", "site"],
)
def test_the_address_is_set_in_one_place_and_that_of_the_site_follows_from_it(of_site, kept_in):
    import yaml

    address = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]["url"]
    address = site_address(address) if of_site else address
    kept = [".md", ".py", ".yml", ".toml", ".cff", ".css", ".txt", ".bib", ""]
    folders = [path for path in ROOT.iterdir() if path.name not in {".venv", ".git", "_build"}]
    places = [
        str(path.relative_to(ROOT))
        for path in chain(folders, *(folder.rglob("*") for folder in folders))
        if path.is_file()
        and path.name != "conf.py"  # which is made from _config.yml
        and path.suffix in kept
        and address.split("//")[1] in path.read_text("utf8", errors="replace")
    ]
    assert sorted(places) == kept_in
