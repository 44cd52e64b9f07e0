"""Links of the chapters: to works, to pages, to the package's functions, from the index; plain enough for JupyterLab."""

import re
from functools import cache
from urllib.parse import unquote, urljoin, urlsplit

import references
from conftest import ROOT, soup_of
from pybtex.database import parse_file

import softlabel

WORKS = parse_file(ROOT / "book" / "references.bib").entries
PAGES = {page.relative_to(ROOT).as_posix(): page.read_text("utf8") for page in sorted((ROOT / "book").rglob("*.md"))}
PAGE_LINK = re.compile(r"\[([^]]+)\]\(([\w./]+\.md)\)")


@cache  # a name is looked for among all that is installed, each time
def words_of(key):
    return references.words(WORKS[key])


def is_right(words, key):
    return words in words_of(key)


def test_words_of_a_citation_are_those_of_the_file():
    assert is_right("Efron (1975)", "efron_1975_efficiency") and is_right("Efron, 1975", "efron_1975_efficiency")
    assert is_right("Sur and Candès (2019)", "sur_2019_modern") and is_right("Sheng et al. (2008)", "sheng_2008_get")
    assert not is_right("Efron (1976)", "efron_1975_efficiency") and not is_right("Bi (2010)", "bi_2010_efficiency")
    assert not is_right("Sheng and Provost (2008)", "sheng_2008_get")
    found = references.citations(ROOT)
    assert len(found) > 50
    assert [(page.name, words, key) for page, words, key in found if not is_right(words, key)] == []


def test_works_cited_stand_in_the_list_once():
    page = PAGES["book/references.md"]
    listed = re.findall(r"^\(cite-(\w+)\)=$", page, re.M)
    assert sorted(listed) == sorted({key for _, _, key in references.citations(ROOT)})
    # The words above, and no other link that looks like one.
    assert sum(text.count("#cite-") for text in PAGES.values()) == len(references.citations(ROOT))
    assert page == references.listed(ROOT), "python book/_ext/references.py writes the list"


def find_uncited(works, cited):
    return sorted(set(works) - set(cited))


def test_every_work_is_cited_and_every_citation_has_its_work():
    assert find_uncited(["a", "b"], ["b", "b"]) == ["a"]
    cited = [key for _, _, key in references.citations(ROOT)]
    assert find_uncited(WORKS, cited) == []
    assert find_uncited(cited, WORKS) == []


BOX = re.compile(r"^:::\{prf:(?:theorem|proposition|lemma|corollary)\} (.*?)\n:label: (\S+)\n(.*?)^:::$", re.S | re.M)
ORIGIN = re.compile(r"ours, not refereed\.|\bknown: .*references\.md#cite-", re.S | re.I)


def find_boxes_without_origin(text):
    """Theorems that do not say whose they are: the paper's, the book's own, or known from another work."""
    return [
        label
        for title, label, body in BOX.findall(text)
        if not re.search(r"of the paper$|\bours\b", title) and not ORIGIN.search(body)
    ]


def test_theorems_say_whose_they_are():
    box = ":::{prf:theorem} A\n:label: thm-a\n\nB.\n%s\n:::\n"
    assert find_boxes_without_origin(box % "") == find_boxes_without_origin(box % "Ours.") == ["thm-a"]
    assert find_boxes_without_origin(box % "Known: of old.") == ["thm-a"]
    for origin in ("Ours, not refereed.", "The rest: ours, not refereed.", "Known: [A (1900)](../references.md#cite-a)."):
        assert find_boxes_without_origin(box % origin) == []
    for title in ("A; Theorem 1 of the paper", "A; ours"):
        assert find_boxes_without_origin((box % "").replace("} A", "} " + title)) == []
    chapters = {name: text for name, text in PAGES.items() if name.startswith(("book/beyond/", "book/practice/"))}
    assert sum(len(BOX.findall(text)) for text in chapters.values()) > 8
    assert {name: found for name, text in chapters.items() if (found := find_boxes_without_origin(text))} == {}


def find_unreadable(text):
    """Roles that show a path, a key or a target in JupyterLab."""
    return re.findall(r"\{(?:doc|cite[:\w]*|py:\w+|term|download)\}`[^`]*`|\{index\}`[^`]*<[^`]*`", text)


def test_no_link_shows_its_target_in_jupyterlab():
    for bad in ("{doc}`../notation`", "{cite:t}`kish_1965_survey`", "{py:func}`~softlabel.fit_logistic`", "{index}`a <b; a>`"):
        assert find_unreadable(f"See {bad}.") == [bad]
    assert find_unreadable("{ref}`chapter 2 <sec-a>`, {eq}`eq-dm`, {prf:ref}`thm-moments`, {index}`score`") == []
    assert {name: found for name, text in PAGES.items() if (found := find_unreadable(text))} == {}


def find_old_titles(name, text):
    """Links that begin with a capital and do not give the title of their page."""
    found = []
    for words, path in PAGE_LINK.findall(text):
        page = PAGES[urljoin(name, path)]
        title = re.search(r"^# (.*)$", page, re.M)[1] if "\n# " in page else "Changelog"  # an included file
        if words[0].isupper() and " ".join(words.split()) != title:
            found.append(words)
    return found


def test_links_give_the_titles_of_pages():
    assert find_old_titles("book/paper/01_votes.md", "[Notations](../notation.md), [symbols](../notation.md)") == ["Notations"]
    found = [words for name, text in PAGES.items() for words in find_old_titles(name, text)]
    assert sorted(found) == ["A later chapter"]


def find_missing_functions(text):
    """Public names of the package that a page mentions before it links to their entry."""
    prose = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.S | re.M)
    missing = []
    for name in softlabel.__all__:
        mention = re.search(rf"`(?:softlabel\.|sl\.)?{name}(?:\(\))?`", prose)
        link = re.search(rf"\[[^]]+\]\([./]*package\.md#softlabel\.{name}\)", prose)
        if mention and (not link or mention.start() < link.start()):
            missing.append(name)
    return missing


def test_functions_lead_to_the_reference_at_first_use():
    link = "[`softlabel.fit_limit`](../package.md#softlabel.fit_limit)"
    assert find_missing_functions(f"Use `fit_limit`, {link}") == ["fit_limit"]
    assert find_missing_functions(link.replace("#softlabel.fit_limit", "#softlabel.fit_logistic")) == ["fit_limit"]
    assert find_missing_functions(f"```{{code-cell}}\n`fit_limit`\n```\n{link}, `fit_limit`") == []
    chapters = {name: text for name, text in PAGES.items() if name.count("/") == 2}
    assert sum(text.count("package.md#softlabel.") for text in chapters.values()) > 30
    assert {name: found for name, text in chapters.items() if (found := find_missing_functions(text))} == {}


def find_dead_links(site):
    """Links of the pages to pages, files or places that do not exist."""
    dead = []
    for page in sorted(site.rglob("*.html")):
        if {"_static", "slides"} & set(page.relative_to(site).parts):  # the slides are looked at in test_teaching
            continue
        here = page.relative_to(site).as_posix()
        for address in {a["href"] for a in soup_of(page.read_text("utf8")).find_all("a", href=True)}:
            parts = urlsplit(urljoin(here, address))
            if parts.scheme or parts.netloc or address == "#":
                continue
            target, place = site / unquote(parts.path), unquote(parts.fragment)
            if not (target.is_file() and (not place or place in places(target))):
                dead.append(f"{here}: {address}")
    return dead


@cache
def places(page):
    return {tag["id"] for tag in soup_of(page.read_text("utf8")).find_all(id=True)}


def test_no_link_is_dead(site, tmp_path):
    (tmp_path / "a.html").write_text('<p id="x"><a href="b.html">1</a> <a href="#y">2</a> <a href="c/d.html#z">3</a></p>')
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "d.html").write_text('<a href="../a.html#x">4</a> <a href="https://a.example/e#f">5</a>')
    assert sorted(find_dead_links(tmp_path)) == ["a.html: #y", "a.html: b.html", "a.html: c/d.html#z"]
    assert find_dead_links(site) == []


# Terms that a reader looks up, and the page that defines them.
TERMS = {
    "paper/01_votes": "soft label, unanimous items, spread ratio, vote counts, data: bluebirds, data: gastroenterology",
    "paper/02_harmless_noise": "posterior probability, Bayes error, excess error, tempered posterior, wrong labels: share of, "
    "two normal classes, label noise: harmless",
    "paper/03_group_labels": "Dirichlet-multinomial, overdispersion parameter, variance inflation, correlation of two votes, "
    "beta-binomial distribution",
    "paper/04_information": "Fisher information, sandwich covariance, Godambe information, score, design effect, "
    "effective number of labellers",
    "paper/05_relative_efficiency": "decision boundary, curvature of the error rate, uniform integrability, "
    "asymptotic relative efficiency",
    "paper/06_simulation": "relative efficiency, nested votes",
    "paper/07_gastroenterology": "alpha0: estimate of, alpha0: intervals for, goodness of fit, prediction band, "
    "dispersion (Pearson)",
    "paper/08_breast_cancer": "separation, working response, iterated weighted least squares, Firth's penalty, ridge penalty",
    "beyond/01_more_classes": "multinomial logistic model",
    "beyond/02_unequal_votes": "weights of items",
    "beyond/03_joint_likelihood": "joint likelihood",
    "beyond/04_majority_vote": "majority vote, stretch, worth of a response",
    "beyond/05_harmful_noise": "distorter, copyist, guesser, break-even, overconfidence",
    "beyond/06_correlated_errors": "copula, two-way clustering",
    "beyond/07_small_samples": "undecided items per coefficient, split items",
    "beyond/08_budget": "budget, price: of a vote",
    "beyond/09_limits_of_the_formula": "converse of Theorem 1, linear discriminant analysis, Efron's comparison",
    "beyond/10_real_votes": "lean, scale, tilt, equal number of true labels, prediction-powered inference",
    "practice/own_votes": "long table, wide table",
    "practice/labellers": "interchangeable annotators",
    "practice/large_runs": "scheduler",
}


def entries(index):
    """Addresses by entry, a sub-entry as `entry: sub-entry`."""
    found = {}
    for item in index.select("table.genindextable > tr > td > ul > li"):
        main = heading(item)
        for line, name in [(item, main), *((sub, f"{main}: {heading(sub)}") for sub in item.select("ul > li"))]:
            links = line.find_all("a", recursive=False)
            found.setdefault(name, set()).update(a["href"] for a in links)
    return found


def heading(item):
    """The words of a line without its further links and sub-entries."""
    first = next(child for child in item.children if child.get_text(strip=True))
    return " ".join(first.get_text().split()).replace("\u2019", "'")


def test_index_leads_from_terms_to_chapters(site):
    sample = '<table class="genindextable"><tr><td><ul><li>a<ul><li><a href="p#x">b</a></li></ul></li></ul></td></tr></table>'
    assert entries(soup_of(sample)) == {"a": set(), "a: b": {"p#x"}}
    found = entries(soup_of((site / "genindex.html").read_text("utf8")))
    for page, terms in TERMS.items():
        for term in terms.split(", "):
            assert any(place.startswith(f"book/{page}.html#") for place in found.get(term, ())), (page, term)
