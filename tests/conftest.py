"""What the tests of the chapters and of the built pages share."""

import ast
import contextlib
import functools
import gc
import http.server
import shutil
import subprocess
import tempfile
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# What these look at needs the tools of the book (requirements.txt); all others need no more than `pip install '.[test]'`.
BOOK = {
    f"test_{name}.py"
    for name in (
        "browser",
        "chapters",
        "exercises",
        "explore",
        "formulas",
        "guide",
        "links",
        "notebooks",
        "publish",
        "site",
        "teaching",
    )
}
collect_ignore = ["tables", *([] if find_spec("jupyter_book") else sorted(BOOK))]

# Thousands of tests are a million objects that stay. To look through them for
# garbage as often as Python does would take an eighth of the time.
gc.set_threshold(100_000)


def pytest_report_header():
    left_out = collect_ignore[1:]
    return f"left out, because Jupyter Book is not installed: {', '.join(left_out)}" if left_out else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.name in BOOK or {"site", "executed_chapters"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("book")


@functools.cache
def soup_of(html):
    """A page, read once for all that look at it: they change nothing in it."""
    from bs4 import BeautifulSoup

    return BeautifulSoup(html, "html.parser")


def run(source, names):
    """Execute a cell of a notebook; the value of its last line, if that is an expression."""
    body = ast.parse(source).body
    last = ast.unparse(body.pop().value) if body and isinstance(body[-1], ast.Expr) else "None"
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return eval(last, names)


def run_all(sources):
    """Execute the cells of a notebook; how each shows its value."""
    names = {}
    shown = [repr(run(source, names)) for source in sources]
    names.clear()  # functions refer to them: without it, a temporary folder would stay
    return shown


def build():
    """The site, by the command of the Makefile, and the slides if there are none: pages link to them, they take a while."""
    target = "site" if (ROOT / "_build" / "html" / "slides" / "index.html").exists() else "book"
    subprocess.run(["make", "--no-print-directory", target], cwd=ROOT, check=True)


@pytest.fixture(scope="session")
def site(once):
    """Folder of the site."""
    once("site", build)
    return ROOT / "_build" / "html"


@pytest.fixture(scope="session")
def executed_chapters(site):
    """Notebooks as the build has executed them, by page, as `book/paper/02_harmless_noise`."""
    import nbformat

    folder = ROOT / "_build" / "jupyter_execute"
    pages = {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.ipynb"))}
    return {page: nbformat.read(path, 4) for page, path in pages.items() if (ROOT / f"{page}.md").exists()}


@pytest.fixture(scope="session")
def shared(tmp_path_factory, request):
    """Folder of all processes that share the tests."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if hasattr(request.config, "workerinput") else own  # pytest -n


@pytest.fixture(scope="session")
def once(shared):
    """Does a thing in one of the processes that share the tests, while the others wait for it."""
    from filelock import FileLock

    def do(name, action):
        with FileLock(shared / f"{name}.lock"):
            if not (shared / f"{name}.done").exists():
                action()
                (shared / f"{name}.done").touch()

    return do


@contextlib.contextmanager
def serving(folder, requests):
    """Address on localhost of a folder; the paths asked for are noted."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            requests.append(self.path)

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def served(site):
    """Address of the site on localhost."""
    with serving(site, []) as address:
        yield address


@contextlib.contextmanager
def browser():
    """A Chromium without a window, and with a new profile."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    flags = (
        "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
        "--disable-background-networking --disable-component-update "
        "--disable-sync --disable-dev-shm-usage "
        "--js-flags=--no-turbofan"  # no script runs long enough to earn what its optimisation costs
    )
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in [*flags.split(), f"--user-data-dir={profile}"]:
            options.add_argument(flag)
        running = webdriver.Chrome(options=options, service=service)
        yield running
        running.quit()


@pytest.fixture(scope="session")
def driver():
    """The one browser of all tests; each opens its own page in it."""
    if not ((shutil.which("chromium") or shutil.which("google-chrome")) and shutil.which("chromedriver")):
        pytest.skip(
            "no Chromium and chromedriver on the path: the pages are not opened in a browser (README.md says how to get them)"
        )
    with browser() as running:
        yield running
