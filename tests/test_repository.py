"""Files of the repository, from a checkout, from the address that an installation records, or not at all."""

import json

import pytest
from conftest import ROOT, serving

from softlabel.book import repository
from softlabel.book.repository import repository_file

COMMIT = "0123456789abcdef"
GIT = {"vcs": "git", "requested_revision": "v9", "commit_id": COMMIT}
FILE = "benchmarks/results.json"


def test_a_checkout_has_its_own():
    assert repository_file(FILE) == ROOT / FILE


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Makes the package one that was installed so, in a folder that is no checkout."""
    place = tmp_path / "site-packages"
    record = place / "softlabel-9.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: softlabel\nVersion: 9\n")
    monkeypatch.syspath_prepend(place)
    monkeypatch.setattr(repository, "__file__", str(place / "softlabel" / "book" / "repository.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def install(**origin):
        (record / "direct_url.json").write_text(json.dumps(origin))

    return install


@pytest.fixture
def host(tmp_path):
    """Address of a host of repositories that has the file, and the requests that it got."""
    requests = []
    folder = tmp_path / "host" / "owner" / "book" / "raw" / COMMIT / "benchmarks"
    folder.mkdir(parents=True)
    (folder / "results.json").write_text('{"rows": []}')
    with serving(tmp_path / "host", requests) as address:
        yield address, requests


@pytest.mark.parametrize("suffix", ["", ".git"])
def test_an_installation_from_an_address_downloads_it_once(installed, host, suffix, capfd):
    address, requests = host
    installed(url=f"{address}/owner/book{suffix}", vcs_info=GIT)
    for _ in range(2):
        assert repository_file(FILE).read_text() == '{"rows": []}'
    assert requests == [f"/owner/book/raw/{COMMIT}/{FILE}"]
    assert capfd.readouterr() == ("", "")


def test_an_installation_from_a_folder_looks_there(installed):
    installed(url=ROOT.as_uri(), dir_info={})
    assert repository_file(FILE) == ROOT / FILE


@pytest.mark.parametrize("origin, reason", [
    ({}, "does not say from which address"),
    ({"url": "https://host.example/softlabel-9.whl", "archive_info": {}}, "does not say from which address"),
    ({"url": "ssh://git@host.example/book", "vcs_info": GIT}, "does not say from which address"),
    ({"url": "HOST/owner/none", "vcs_info": GIT}, "cannot be had .*404"),
    ({"url": "http://127.0.0.1:9/owner/book", "vcs_info": GIT}, "cannot be had .*Connection"),
], ids=["index", "wheel", "ssh", "no such file", "no network"])  # fmt: skip
def test_otherwise_the_error_says_what_to_do(installed, host, origin, reason):
    installed(**{name: value.replace("HOST", host[0]) if name == "url" else value for name, value in origin.items()})
    with pytest.raises(FileNotFoundError, match=rf"{FILE} is a file of the book's repo.*{reason}.*pip install --editable"):
        repository_file(FILE)
