"""Sphinx extension: pages are read, and so executed, side by side, and anew when what they run has changed."""

import contextlib
import hashlib
import os
import re
from datetime import UTC, datetime, time
from pathlib import Path

import sphinx.builders
from sphinx.util.logging import getLogger
from sphinx_proof.domain import ProofDomain

import publish
import softlabel
from softlabel import datasets
from softlabel.book.repository import repository_file
from softlabel.book.studies import code

JUDGED_LATE = {"claims.py", "claims.yml"}  # the rule and the printed values
FILE = re.compile(r'repository_file\("([^"]+)"\)')


def available():
    """Names of the data files that can be had; missing ones are fetched."""
    for name in sorted(datasets.FILES):
        with contextlib.suppress(datasets.DataFileError):
            datasets.fetch(name)
            yield name


def prepare(app, config):
    os.environ["TQDM_DISABLE"] = "1"  # progress bars would stand in the pages
    # The date in the file of a figure: that of the last commit, and not another one in each build.
    midnight = datetime.combine(publish.released(Path(app.srcdir)), time(), UTC)
    os.environ.setdefault("SOURCE_DATE_EPOCH", f"{midnight.timestamp():.0f}")
    had = list(available())
    if missing := sorted(set(datasets.FILES) - set(had)):
        getLogger(__name__).info(
            f"data files that could not be had: {', '.join(missing)}; claims that rest on them are not checked, unless "
            "SOFTLABEL_DATA names a folder with them"
        )
    digest = hashlib.sha256("\0".join(had).encode())
    extensions = Path(__file__).resolve().parent.glob("*.py")  # however the path was given
    for path in sorted([*Path(softlabel.__file__).parent.rglob("*.*"), *extensions]):
        if path.suffix in (".py", ".yml", ".mplstyle") and path.name not in JUDGED_LATE:
            digest.update(f"{path.name}\0{code(path)}\0".encode())
    config.softlabel_code = digest.hexdigest()
    static = (path for path in sorted(Path(app.srcdir, "book/_static").rglob("*")) if path.is_file())
    config.softlabel_static = hashlib.sha256(b"\0".join(path.read_bytes() for path in static)).hexdigest()
    # `jupyter-book build` would have the whole path, and so the book executed again after `make book`.
    config.external_toc_path = Path(config.external_toc_path).name
    for extension in app.extensions.values():
        if extension.parallel_read_safe is None:
            extension.parallel_read_safe = True


def note_files(app, docname, source):
    """A page that reads a file of the repository depends on it."""
    for name in FILE.findall(source[0]):
        app.env.note_dependency(str(repository_file(name)))


def setup(app):
    # Its data are in env.proof_list, which it merges.
    ProofDomain.merge_domaindata = lambda self, docnames, otherdata: None
    # One page a process: Sphinx would deal them out in equal parts beforehand.
    sphinx.builders.make_chunks = lambda arguments, nproc, maxbatch=10: [[argument] for argument in arguments]
    app.add_config_value("softlabel_code", "", "env", [str])
    app.add_config_value("softlabel_static", "", "html", [str])  # pages name their style sheets with a check sum
    app.connect("config-inited", prepare)
    app.connect("source-read", note_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
