"""What the tests of the chapters and of the built pages share."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# As in the Makefile; test_site.py sees to it that they stay the same.
STRICT = ["-W", "-n", "--keep-going", "--all", "-q"]


@pytest.fixture(scope="session")
def site():
    """Folder of the site, built by the strict command."""
    command = [Path(sys.executable).with_name("jupyter-book"), "build", "."]
    done = subprocess.run(
        [*command, *STRICT], cwd=ROOT, text=True, capture_output=True
    )
    if done.returncode:
        pytest.fail(f"the book does not build:\n{done.stdout}{done.stderr}")
    return ROOT / "_build" / "html"


@pytest.fixture(scope="session")
def executed_chapters():
    """Executed notebooks by name, as `book/paper/02_harmless_noise`."""
    import chapters

    chapters.execute()
    return {
        path.relative_to(ROOT).with_suffix("").as_posix(): chapters.executed(path)
        for path in chapters.chapters()
    }


@pytest.fixture(scope="session")
def chromium():
    """Paths of a browser and its driver."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not (browser and driver):
        pytest.skip("needs Chromium and chromedriver (apt install chromium-driver)")
    return browser, driver
