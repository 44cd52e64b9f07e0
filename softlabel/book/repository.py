"""Files of the book's repository that are no part of the package, wherever a chapter runs."""

import json
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from softlabel.datasets import quiet_pooch


def site_address(repository: str) -> str:
    """The address at which GitHub Pages serves the site of a repository.

    Examples
    --------
    >>> site_address("https://github.com/Someone/my-edition")
    'https://someone.github.io/my-edition/'
    """
    url = urlsplit(repository.removesuffix("/").removesuffix(".git"))
    parts = url.path.strip("/").split("/")
    if url.netloc != "github.com" or len(parts) != 2:
        raise ValueError(
            f"repository {repository!r} should be https://github.com/OWNER/NAME; for a site elsewhere, say its address in "
            "_config.yml under html: baseurl"
        )
    return f"https://{parts[0].lower()}.github.io/{parts[1]}/"


def repository_file(path: str) -> Path:
    """A file of the repository: of the checkout that the package is installed from, or else downloaded once.

    Parameters
    ----------
    path : str
        Where it stands in the repository.

    Returns
    -------
    Path

    Raises
    ------
    FileNotFoundError
        If the installation is neither a checkout nor made from an address of the repository, or the file cannot be had from
        there; the message says what to do.

    Notes
    -----
    ``pip install git+URL@TAG`` records the address and the commit (PEP 610). The file is that of the same commit.

    Examples
    --------
    >>> repository_file("benchmarks/results.json").name
    'results.json'
    """
    origin = _origin()
    url = urlsplit(origin.get("url", ""))
    folders = [Path(__file__).resolve().parents[2]]
    if url.scheme == "file":
        folders.append(Path(url2pathname(url.path)))
    for folder in folders:
        if (folder / "pyproject.toml").exists() and (folder / path).exists():
            return folder / path
    if "vcs_info" not in origin or url.scheme not in ("http", "https"):
        raise FileNotFoundError(_advice(path, "this installation does not say from which address it could be downloaded"))
    commit = origin["vcs_info"]["commit_id"]
    address = f"{url.geturl().removesuffix('.git')}/raw/{commit}/{path}"  # the form of GitHub and of GitLab
    name = f"{commit}-{path.replace('/', '-')}"
    try:
        with quiet_pooch() as pooch:
            return Path(pooch.retrieve(address, known_hash=None, fname=name, path=pooch.os_cache("softlabel")))
    except (OSError, ValueError) as error:
        raise FileNotFoundError(_advice(path, f"{address} cannot be had ({type(error).__name__}: {error})")) from None


def _origin() -> dict[str, Any]:
    """What pip has recorded of where the package comes from; nothing, if it was not installed or comes from an index."""
    try:
        text = metadata.distribution("softlabel").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return {}
    return dict(json.loads(text)) if text else {}


def _advice(path: str, reason: str) -> str:
    return (
        f"{path} is a file of the book's repository and not of the package softlabel, and {reason}. Clone the repository, and "
        "install the package from the clone: pip install --editable '.[book]'"
    )
