"""Marks on theorems; what a page says of itself; redirects; the offline and the printed edition."""

import json
import os
import re
import subprocess
import sys
import zipfile
from types import SimpleNamespace
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
import yaml
from conftest import ROOT, soup_of
from selenium.webdriver.common.by import By
from sphinx_external_toc.parsing import parse_toc_yaml
from test_browser import look, wait
from test_chapters import copied, make  # noqa: F401  # a fixture
from test_site import chapter_pages

import box_tests
import offline
import printed
import publish
import softlabel
from softlabel.book.repository import site_address

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
REPOSITORY = CONFIG["repository"]["url"]
BASE = site_address(REPOSITORY)


# ------------------------------------------------------------------ Three marks on each theorem box


def boxes():
    """Labels of the boxes in the chapters that state something to be proved."""
    directive = re.compile(rf"\{{prf:({'|'.join(box_tests.BOXES)})\}}.*\n(?::label: (\S+))?")
    return [
        label or f"{name}: a {kind} without label"
        for name in parse_toc_yaml(ROOT / "_toc.yml")
        for kind, label in directive.findall((ROOT / f"{name}.md").read_text("utf8"))
    ]


def test_each_box_names_its_three_tests():
    named = box_tests.tests_by_box(ROOT)
    assert sorted(named) == sorted(boxes())
    for label, kinds in named.items():
        assert list(kinds) == list(box_tests.KINDS), label
        assert all(kinds.values()), label


def test_the_tests_named_exist():
    for label, kinds in box_tests.tests_by_box(ROOT).items():
        for name in (name for names in kinds.values() for name in names):
            path, _, function = name.partition("::")
            assert function in box_tests.lines_of(ROOT / path), (label, name)


def test_marks_on_the_pages(site):
    found = {}
    for page in chapter_pages(site).values():
        for box in soup_of(page.read_text("utf8")).find_all("div", class_=box_tests.BOXES):
            found[box["id"]] = box.find("p", class_="box-tests", recursive=False).find_all(class_="box-test")
    assert sorted(found) == sorted(boxes())
    for label, marks in found.items():
        assert [m.get_text() for m in marks] == list(box_tests.KINDS), label
        for mark in marks:
            path, line = mark["href"].removeprefix(f"{REPOSITORY}/blob/main/").split("#L")
            function = mark["title"].split(",")[0]
            text = (ROOT / path).read_text("utf8").splitlines()[int(line) - 1]
            assert text.startswith(f"def {function}("), label


# ------------------------------------------------------------------ Version, citation


def test_one_version():
    version = publish.version(ROOT)
    assert softlabel.__version__ == version
    assert publish.citation(ROOT)["version"] == version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text("utf8")


def fields(bibtex, key):
    """One entry of a BibTeX file as a dictionary."""
    entry = re.search(rf"@\w+\{{{key},\n(.*?)\n\}}", bibtex, re.S)[1]
    pairs = re.findall(r"^\s*(\w+)\s*=\s*\{(.*?)\},?$", entry, re.M | re.S)
    return {k.lower(): re.sub(r"[{}]|\s(?=\s)", "", v).replace("--", "-") for k, v in pairs}


def test_the_paper_is_cited_alike_everywhere():
    config = SimpleNamespace(html_baseurl=BASE)
    page = fields(publish.bibtex(ROOT, config), "ahfock_2021_harmless")
    for other in ("book/references.bib", "README.md"):
        entry = fields((ROOT / other).read_text("utf8"), "ahfock_2021_harmless")
        for name in ("author", "title", "year", "volume", "doi"):
            assert page[name] == entry[name], (other, name)
    book = fields(publish.bibtex(ROOT, config), "harmless_label_noise_book")
    assert book["version"] == publish.version(ROOT) and book["url"] == BASE


def test_version_and_date_at_the_foot(site):
    for name, page in chapter_pages(site).items():
        foot = soup_of(page.read_text("utf8")).find(class_="extra_footer")
        assert re.fullmatch(rf"Version {publish.version(ROOT)}, \d{{4}}-\d\d-\d\d", foot.get_text(strip=False).strip()), name
        assert foot.a["href"] == "#" or (page.parent / foot.a["href"]).exists(), name


# ------------------------------------------------------------------ What a page says of itself


def frontmatter(name):
    return yaml.safe_load((ROOT / f"{name}.md").read_text("utf8").split("---\n")[1])


def test_each_page_describes_itself(site):
    seen = set()
    for name, page in chapter_pages(site).items():
        soup = soup_of(page.read_text("utf8"))
        tags = {m.get("property") or m.get("name"): m["content"] for m in soup.find_all("meta", content=True)}
        description = tags["description"]
        assert 40 < len(description) <= 200 and not re.search(r"[\\${}]|;,", description), name
        seen.add(description)
        assert tags["og:description"] == description
        assert tags["og:site_name"] == CONFIG["title"]
        assert tags["og:url"] == f"{BASE}{name}.html" == soup.find("link", rel="canonical")["href"]
        card = site / tags["og:image"].removeprefix(BASE)
        assert card.read_bytes().startswith(b"\x89PNG") and card.stat().st_size < 300_000, name
        assert description == frontmatter(name)["description"], name
        (script,) = soup.find_all("script", type="application/ld+json")
        data = json.loads(script.string)
        book = data if name == "book/index" else data["isPartOf"]
        assert data["@type"] == ("Book" if name == "book/index" else "Chapter")
        assert book["citation"]["sameAs"].endswith(publish.citation(ROOT)["references"][0]["doi"])
        assert data["description"] == description and data["name"], name
    assert len(seen) == len(chapter_pages(site))


def test_sitemap(site):
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    found = [e.text for e in ElementTree.parse(site / "sitemap.xml").iter(f"{space}loc")]
    assert sorted(found) == sorted(f"{BASE}{name}.html" for name in chapter_pages(site))


# ------------------------------------------------------------------ Old addresses


def test_redirect_of_a_page_that_moved(tmp_path, driver):
    """A made-up move, with the settings of the book."""
    (tmp_path / "new.rst").write_text("New\n===\n\nPart\n----\n\nText.\n")
    (tmp_path / "index.rst").write_text("Home\n====\n\n.. toctree::\n\n   new\n")
    template = ROOT / CONFIG["sphinx"]["config"]["redirect_html_template_file"]
    (tmp_path / "conf.py").write_text(
        "extensions = ['sphinx_reredirects']\n"
        "redirects = {'old/place': '../new.html'}\n"
        f"redirect_html_template_file = {str(template)!r}\n"
    )
    command = [sys.executable, "-m", "sphinx", "-W", "-q", tmp_path, tmp_path / "out"]
    subprocess.run(command, check=True)
    driver.get((tmp_path / "out" / "old" / "place.html").as_uri() + "#part")
    wait(driver, lambda d: d.title.startswith("New"))
    assert driver.current_url == (tmp_path / "out" / "new.html").as_uri() + "#part"


def published():
    """Every page that _toc.yml has named in a commit of the branch `main`; nothing, where its history is not to be had."""

    def git(*command):
        return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    try:
        branches = git("for-each-ref", "--format=%(refname)", "refs/heads/main", "refs/remotes/origin/main").split()
        if not branches or git("rev-parse", "--is-shallow-repository") == "true\n":
            return set()
        log = git("log", "--first-parent", "-m", "--patch", "--format=", *branches, "--", "_toc.yml")
    except (FileNotFoundError, subprocess.CalledProcessError):
        return set()
    return set(re.findall(r"^\+ *(?:- )?(?:file|root): (\S+)", log, re.M))


def test_addresses_work_for_ever(site):
    """Every page that was ever published is there, or leads to one that is."""
    moved = CONFIG["sphinx"]["config"]["redirects"]
    pages = set(parse_toc_yaml(ROOT / "_toc.yml"))
    for old, new in moved.items():
        assert old not in pages
        assert (site / old).parent.joinpath(new).resolve().exists(), old
    if not (before := published()):
        pytest.skip("the pages that were published before are named in the history of the branch main, which is not here")
    assert sorted(before - pages - set(moved)) == [], "name the new places under redirects in _config.yml"


# ------------------------------------------------------------------ The offline edition


@pytest.fixture(scope="module")
def folder(site, tmp_path_factory):
    """The site, packed and unpacked."""
    place = tmp_path_factory.mktemp("a folder")
    archive = offline.pack(site, place / "book-1.zip")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(place)
    return place / "book-1"


def test_offline_edition_is_the_site(site, folder):
    def files(root):
        return {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}

    lacking = files(site) - files(folder)
    assert files(folder) <= files(site)
    assert all(offline.is_online(name) for name in lacking) and "sitemap.xml" in lacking


@pytest.mark.slow
def test_offline_edition_in_a_browser(folder, driver):
    problems = {}
    for name in chapter_pages(folder):
        found = look(driver, (folder / f"{name}.html").as_uri(), 1400)
        # Their fonts come from the folder, too.
        loaded = "[...document.fonts].some(f => f.family === 'KaTeX_Main' && f.status === 'loaded')"
        if driver.execute_script(f"return document.querySelector('.katex') && !{loaded}"):
            found.append("no font for formulas")
        if found:
            problems[name] = found
    assert problems == {}


# ------------------------------------------------------------------ The printed edition


def test_date_without_a_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # no git either
    assert publish.released(tmp_path).year >= 2026
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert publish.released(tmp_path).isoformat() == "1970-01-02"


def test_pdf_names_what_is_missing(tmp_path):
    command, env = [sys.executable, ROOT / "book" / "_ext" / "printed.py"], {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    line = re.search(r"^ *apt-get install (.*)$", done.stderr, re.M)[1].split()
    assert line == [*printed.PROGRAMS.values(), *printed.FILES.values()]


def test_pdf_names_only_what_is_missing(tmp_path, monkeypatch):
    found = " ".join(f"/usr/share/{name}" for name in printed.FILES if name != "tabulary.sty")
    for name in {*printed.PROGRAMS, "kpsewhich"} - {"xindy"}:
        (tmp_path / name).write_text(f"#!/bin/sh\nfor f in {found}; do echo $f; done\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert printed.missing() == ["xindy", "texlive-latex-extra"]


IN_PRINT = """
See {numref}`Exercise %s <ex-new-hand>`.

## Exercises

:::{exercise} Draw
:label: ex-new-hand

Draw.
:::

:::{solution-start} ex-new-hand
:class: dropdown
:::

```{code-cell} ipython3
---
mystnb:
  figure:
    caption: A line.
    name: fig-line
---
import matplotlib.pyplot as plt
plt.plot([0, 1]);
```

:::{solution-end}
:::
"""


@pytest.mark.slow
def test_print_takes_what_the_site_has_executed(copied):  # noqa: F811
    page = copied / "book" / "new.md"
    page.write_text(page.read_text("utf8") + IN_PRINT, "utf8")
    parts = "".join(
        f"- {{caption: {name}, numbered: true, chapters: [{{file: book/{name}}}]}}\n" for name in ("verdicts", "new")
    )
    (copied / "_toc.yml").write_text(f"format: jb-book\nroot: book/notation\nparts:\n{parts}", "utf8")
    assert make(copied) == ["new", "verdicts"]
    assert make(copied, "latex") == []
    text = (copied / "_build" / "latex" / "harmless-label-noise.tex").read_text("utf8")
    assert f"\\title{{{CONFIG['title']}}}" in text
    assert "{jupyterBook}" in text and "numfigreset=1" in text
    solution = text.partition("{note}{Solution}")[2].partition("\\end{sphinxadmonition}")[0]
    assert "\\begin{figure}[H]" in solution
    number = re.search(r"\\hyperref\[exercise:ex-new-hand\]\{Exercise ([\d.]+)\}", text)[1]
    assert f"{{note}}{{Exercise {number} (Draw)}}" in text
    assert make(copied) == []


def test_formulas_in_print_are_those_on_screen():
    macros = CONFIG["sphinx"]["config"]["mathjax3_config"]["tex"]["macros"]
    for name, value in macros.items():
        body = value[0] if isinstance(value, list) else value
        line = printed.macro(name, value)
        assert line.endswith(f"{{{body.replace('boldsymbol', 'symbf')}}}") and f"\\{name}}}" in line
        assert ("[1]" in line) == ("#1" in body)


def test_offline_edition_opens_leads_on_and_searches(folder, driver):
    driver.get((folder / "index.html").as_uri())
    wait(driver, lambda d: d.current_url.endswith("book/index.html"))
    wait(driver, lambda d: d.find_elements(By.CSS_SELECTOR, "a.right-next"))[0].click()
    wait(driver, lambda d: d.current_url.endswith("paper/01_votes.html"))
    found = look(driver, (folder / "search.html").as_uri() + "?q=" + quote("overdispersion"), 1400)
    wait(driver, lambda d: len(d.find_elements(By.CSS_SELECTOR, "ul.search li a")) > 2)
    found += [e["message"] for e in driver.get_log("browser") if e["level"] == "SEVERE"]
    assert found == []


# ------------------------------------------------------------------ An edition of somebody's own


@pytest.mark.parametrize("inherited, changed, warned", [(False, True, False), (True, False, False), (True, True, True)])
def test_an_inherited_tag_with_another_package_is_warned_of(tmp_path, inherited, changed, warned):
    """Notebooks install the package of the tag; the workflow sets it, if there is none."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text("utf8"))["jobs"]
    script = next(step["run"] for step in jobs["publish"]["steps"] if "git tag" in step.get("run", ""))
    script = script.partition("cd notebooks")[0]

    def git(*arguments):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        subprocess.run(command, cwd=fork, check=True, capture_output=True)

    fork, origin = tmp_path / "fork", tmp_path / "origin.git"
    subprocess.run(["git", "init", "--quiet", "--bare", origin], check=True)
    subprocess.run(["git", "clone", "--quiet", origin, fork], check=True, capture_output=True)
    (fork / "softlabel").mkdir()
    (fork / "softlabel" / "a.py").write_text("a = 1\n")
    (fork / "pyproject.toml").write_text('version = "1.2.3"\n')
    git("add", "--all")
    git("commit", "--message", "as it was")
    if inherited:
        git("tag", "v1.2.3")
        git("push", "origin", "v1.2.3")
        git("tag", "--delete", "v1.2.3")  # a checkout without its history has none
    if changed:
        (fork / "softlabel" / "a.py").write_text("a = 2\n")
        git("commit", "--all", "--message", "as it is")
    done = subprocess.run(["bash", "-e", "-c", script], cwd=fork, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("::warning::" in done.stdout) == warned
    tags = subprocess.run(["git", "ls-remote", "--tags", origin], capture_output=True, text=True).stdout
    assert tags.endswith("refs/tags/v1.2.3\n")


def test_the_address_of_a_fork_follows_from_one_line():
    other = "https://github.com/Someone/my-edition"
    text = (ROOT / "_config.yml").read_text("utf8")
    assert text.count(REPOSITORY) == 1 and BASE not in text
    config = yaml.safe_load(text.replace(REPOSITORY, other))
    app = SimpleNamespace(srcdir=str(ROOT))
    seen = SimpleNamespace(
        html_baseurl=config["html"]["baseurl"], html_title="", myst_substitutions={},
        html_theme_options={"repository_url": config["repository"]["url"]},
    )  # fmt: skip
    publish.set_addresses(app, seen)
    assert seen.html_baseurl == seen.ogp_site_url == "https://someone.github.io/my-edition/"
    assert REPOSITORY not in str(seen.myst_substitutions) and BASE not in str(seen.myst_substitutions)
    with pytest.raises(ValueError, match="html: baseurl"):
        site_address("https://gitlab.com/someone/my-edition")
