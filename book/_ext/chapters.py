"""Execute the chapters, keep their outputs, collect their verdicts, build.

    python book/_ext/chapters.py build       run what is not in the cache,
                                             and write the pages
    python book/_ext/chapters.py verdicts    run, and list every claim

The Sphinx extension `house` calls the same functions, so that a bare
`jupyter-book build .` gives the same book.
"""

import argparse
import contextlib
import functools
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbclient
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from myst_nb.core.read import is_myst_markdown_notebook, myst_nb_reader_plugin
from nbclient.exceptions import CellExecutionError
from sphinx_external_toc.parsing import parse_toc_yaml

import box_tests
import publish
from softlabel.book.claims import MIME

ROOT = Path(__file__).resolve().parents[2]
# --all: without it a second strict build hides what the first one found.
STRICT = ["-W", "-n", "--keep-going", "--all", "-q"]


class ChapterError(Exception):
    """A chapter did not run to its end, or two chapters check one claim."""


def _pages(root, *, summaries):
    for name in parse_toc_yaml(root / "_toc.yml"):
        path = root / f"{name}.md"
        if not (path.exists() and is_myst_markdown_notebook(path.read_text("utf8"))):
            continue
        notebook = myst_nb_reader_plugin(str(path))
        mode = notebook.metadata.get("mystnb", {}).get("execution_mode")
        has_code = any(cell.cell_type == "code" for cell in notebook.cells)
        if has_code and (mode == "force") == summaries:
            yield path


def chapters(root=ROOT):
    """Files of `_toc.yml` with code cells that are executed and cached."""
    return list(_pages(root, summaries=False))


def summaries(root=ROOT):
    """Files that Sphinx executes in every build, when the verdicts are there.

    Their front matter says `mystnb: {execution_mode: force}`.
    """
    return list(_pages(root, summaries=True))


def cache_key(root=ROOT):
    """Hash of all that a chapter's outputs depend on beside its own cells."""
    digest = hashlib.sha256()
    files = [
        root / "requirements.txt",
        *(path for kind in ("py", "yml", "json", "mplstyle") for path in (root / "softlabel").rglob(f"*.{kind}")),
    ]
    for path in sorted(files):
        digest.update(f"{path.relative_to(root)}\0".encode())
        digest.update(path.read_bytes() + b"\0")
    digest.update("\0".join(data_files()).encode())
    return digest.hexdigest()[:16]


@functools.cache
def data_files():
    """Names of the data files that can be had; missing ones are fetched.

    A chapter whose file could not be had is executed again once it can.
    """
    from softlabel import datasets

    found = []
    for name in sorted(datasets.FILES):
        with contextlib.suppress(datasets.DataFileError):
            datasets.fetch(name)
            found.append(name)
    return found


def cache_folder(root=ROOT):
    """Folder of the executed chapters; those of other keys are removed."""
    parent = root / "_build" / ".jupyter_cache"
    folder = parent / cache_key(root)
    folder.mkdir(parents=True, exist_ok=True)
    for other in parent.iterdir():
        if other.is_dir() and other != folder:
            shutil.rmtree(other)
        elif other.is_file():
            other.unlink()
    return folder


def _run(path, timeout):
    """Run one chapter, in a process of its own.

    Returns the path, the notebook, the seconds it took, and, in place of a page
    of traceback, which cell failed and how.
    """
    notebook, started = myst_nb_reader_plugin(str(path)), []
    start = time.perf_counter()
    message = ""
    try:
        nbclient.execute(
            notebook,
            cwd=str(path.parent),
            timeout=timeout,
            record_timing=False,  # the cache's key covers a cell's metadata
            on_cell_start=lambda cell, cell_index: started.append(cell),
        )
    except CellExecutionError as error:
        message = _explain(started, f"{error.ename}: {error.evalue}")
    except Exception as error:  # a time-out, or a kernel that died
        message = _explain(started, f"{type(error).__name__}: {error}")
    seconds = time.perf_counter() - start
    return path, notebook, seconds, message


def _explain(started, text):
    code = [cell for cell in started if cell.cell_type == "code"]
    source = code[-1].source if code else ""
    lines = "".join(f"    {line}\n" for line in source.splitlines())
    return f"code cell {len(code)}:\n{lines}{text.strip()}"


def is_cached(cache, path):
    try:
        cache.match_cache_notebook(myst_nb_reader_plugin(str(path)))
    except KeyError:
        return False
    return True


def execute(root=ROOT, timeout=600, report=lambda line: None):
    """Run, on all cores, the chapters that are not in the cache.

    Writes `_build/verdicts.json`. Returns the paths of the chapters that were
    run. Raises ChapterError if a cell raises or a claim is checked twice.
    """
    # Progress bars would stand in the pages.
    os.environ["TQDM_DISABLE"] = "1"
    cache = get_cache(cache_folder(root))
    missing = [path for path in chapters(root) if not is_cached(cache, path)]
    failures = []
    if missing:
        # Kernels are processes already; the pool waits for them side by side.
        # jupyter-cache has such a pool too, but there every worker writes into
        # the one database, and now and then a chapter is lost.
        # Spawned: a forked process would share the event loop, and the signal
        # handlers, of a notebook that ran here before.
        spawn = multiprocessing.get_context("spawn")
        with spawn.Pool(min(len(missing), os.cpu_count())) as pool:
            run = functools.partial(_run, timeout=timeout)
            for path, notebook, seconds, message in pool.imap_unordered(run, missing):
                name = path.relative_to(root)
                if message:
                    failures.append(f"{name}, {message}")
                    continue
                bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": seconds})
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
                report(f"{name}: executed in {seconds:.0f} s")
    if failures:
        raise ChapterError("\n\n".join(sorted(failures)))
    collect_verdicts(root)
    return missing


def build(root=ROOT):
    """Write the pages by the strict command, if anything has changed since.

    Raises CalledProcessError where Sphinx finds a fault.
    """
    key, kept = site_key(root), built_key(root)
    if kept.exists() and kept.read_text("utf8") == key:
        return
    command = [Path(sys.executable).with_name("jupyter-book"), "build", "."]
    subprocess.run([*command, *STRICT], cwd=root, check=True)
    kept.write_text(key, "utf8")


def built_key(root):
    """File with the key of the strict build that wrote the pages.

    Every build removes it first (see the extension `house`): pages of a build
    that failed, or was less strict, have none.
    """
    return root / "_build" / "site-key"


def site_key(root):
    """Hash of all that the pages show: of the tests, those behind a theorem;
    the data that can be had; the day of the last commit; all other files but
    those that were made from them."""
    left_out = re.compile(r"\.|(_build|__pycache__|tests)$|.*\.egg-info$")
    digest = hashlib.sha256(f"{cache_key(root)} {publish.released(root)}".encode())
    digest.update(box_tests.key(root, box_tests.names_of(root)).encode())
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not left_out.match(name))
        for path in (Path(folder) / name for name in sorted(files)):
            digest.update(f"{path.relative_to(root)}\0".encode())
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def executed(path, root=ROOT):
    """Return the notebook of one chapter with its cached outputs."""
    cache = get_cache(cache_folder(root))
    return cache.merge_match_into_notebook(myst_nb_reader_plugin(str(path)))[1]


def verdicts_of(notebook):
    """List the verdicts that the cells of an executed notebook published."""
    return [
        output.data[MIME] for cell in notebook.cells for output in cell.get("outputs", []) if MIME in output.get("data", {})
    ]


def collect_verdicts(root=ROOT):
    """Write `_build/verdicts.json`, sorted by claim, and return its path."""
    seen = {}
    for path in chapters(root):
        name = path.relative_to(root).with_suffix("").as_posix()
        for verdict in verdicts_of(executed(path, root)):
            key = verdict["id"]
            if key in seen:
                raise ChapterError(f"{key} is checked twice: in {seen[key]['chapter']} and in {name}")
            seen[key] = {**verdict, "chapter": name}
    target = root / "_build" / "verdicts.json"
    entries = [seen[key] for key in sorted(seen)]
    text = json.dumps(entries, indent=1, sort_keys=True, ensure_ascii=False)
    target.write_text(text + "\n", encoding="utf8")
    return target


def table(root=ROOT):
    """Return the table of all claims, the unchecked ones too."""
    from softlabel.book import claims

    return claims.verdict_table(root / "_build" / "verdicts.json")


def count(frame):
    """Say in one line how many claims agree, differ, were not checked."""
    n = frame["verdict"].value_counts()
    agree, differ, rest = (int(n.get(kind, 0)) for kind in ("agrees", "differs", "not checked"))
    return (
        f"claims: {agree} {'agrees' if agree == 1 else 'agree'}, "
        f"{differ} {'differs' if differ == 1 else 'differ'}, "
        f"{rest} not checked"
    )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["build", "verdicts"])
    command = parser.parse_args(argv).command
    start = time.perf_counter()
    try:
        ran = execute(report=print)
    except ChapterError as error:
        sys.exit(f"A chapter failed.\n{error}")
    spent = time.perf_counter() - start
    print(
        f"chapters: {len(ran)} executed in {spent:.0f} s, {len(chapters()) - len(ran)} taken from the cache",
        flush=True,
    )
    if command == "build":
        try:
            build()
        except subprocess.CalledProcessError as error:
            sys.exit(error.returncode)
        print(f"The book: {ROOT / '_build' / 'html' / 'index.html'}")
    else:
        columns = ["id", "where", "printed", "book", "verdict", "chapter", "reason"]
        print(table()[columns].set_index("id").to_string())
        print(f"JSON: {ROOT / '_build' / 'verdicts.json'}")
    print(count(table()))


if __name__ == "__main__":
    main()
