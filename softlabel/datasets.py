"""Loaders of the crowd-labelled data sets, fetched once by pooch and checked against their checksums.

Files are kept in pooch's cache, or in the folder that the environment variable ``SOFTLABEL_DATA`` names: a folder that holds
them already serves without a network. The histograms of the vote counts ship with the package.
"""

import csv
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from softlabel.validation import optional

_EMMIXSSL = "https://raw.githubusercontent.com/cran/EMMIXSSL/cfacc7d02e6d654c0664105ad0a0dbe9573c592d/data"
_CUBAM = "https://raw.githubusercontent.com/welinder/cubam/fe5ba700f1adbb489c69af311558d64370d73d36/demo/bluebirds"
_GAL = "https://raw.githubusercontent.com/ipeirotis/Get-Another-Label/9fe6c56a7a157dba1a12018f696bad56806125b7/data"
FILES = {  # name in the cache folder: address, sha256
    "gastro_label_binary.rda": (
        f"{_EMMIXSSL}/gastro_label_binary.rda",
        "fda5afe6afe04e4318069979feb2dcee06a0c0816532fe161c63b1c43509b605",
    ),
    "gastrodata.rda": (
        f"{_EMMIXSSL}/gastrodata.rda",
        "420ca83742ba9c44244709cb0190437ccdd9139197256a5114f45312f6cc8e65",
    ),
    "bluebirds_labels.yaml": (
        f"{_CUBAM}/labels.yaml",
        "8b1b28e4b869b19bb03beac476c7073149cef784f9524ebe17380a1292a6126c",
    ),
    "bluebirds_gt.yaml": (
        f"{_CUBAM}/gt.yaml",
        "c9eb769c845ca99495a07b5c28c4290c78436fd8eac65c0747736c4ef8126340",
    ),
    "adult_content_labels.txt": (
        f"{_GAL}/AdultContent3-HCOMP2010/labels.txt",
        "df8c8a1f9ed83c1d1cdb6e5b8beef3e20e08c4cdd086fcf86b0655c8241b8bd7",
    ),
}


class DataFileError(OSError):
    """A data file is neither in the cache folder nor to be had from its address."""


@dataclass(frozen=True, eq=False)
class VoteData:
    """Items with features, with the votes of several annotators, or with both. What a data set does not have is None.

    Attributes
    ----------
    X : (n, p) DataFrame or None
        Features, one row an item.
    counts : (n, g) DataFrame or None
        Votes for each class, the positive class first. None if nobody voted.
    y : (n,) Series or None
        Ground-truth labels, 1 for the positive class.
    votes : DataFrame or None
        One row a vote: item, annotator, label. None if nobody voted.
    source : str
        Where the data come from.
    """

    X: pd.DataFrame | None
    counts: pd.DataFrame | None
    y: pd.Series | None
    votes: pd.DataFrame | None
    source: str

    def __repr__(self) -> str:
        n = next(len(part) for part in (self.counts, self.X, self.y) if part is not None)
        annotators = "no votes" if self.votes is None else f"{self.votes.annotator.nunique()} annotators"
        features = "no features" if self.X is None else f"{self.X.shape[1]} features"
        return f"VoteData({n} items, {annotators}, {features}; {self.source})"


def fetch(name: str) -> Path:
    """Path of a data file, downloaded at the first use and checked against its SHA-256.

    Parameters
    ----------
    name : str
        A key of ``FILES``.

    Returns
    -------
    Path

    Raises
    ------
    DataFileError
        If the file is neither in the cache folder nor to be had; the message says how to put it in place by hand.
    """
    with warnings.catch_warnings():  # in a notebook pooch's import asks for ipywidgets, which nothing here needs
        warnings.simplefilter("ignore")
        import pooch

    address, sha256 = FILES[name]
    store = pooch.create(
        path=pooch.os_cache("softlabel"),
        base_url="",
        urls={name: address},
        registry={name: f"sha256:{sha256}"},
        env="SOFTLABEL_DATA",
    )
    logger, level = pooch.get_logger(), pooch.get_logger().level
    logger.setLevel("WARNING")  # else the address and folder of a download end up among the outputs of a chapter
    try:
        return Path(store.fetch(name))
    except (OSError, ValueError) as error:  # no network, no such page, no permission to write; a wrong checksum
        there = (store.abspath / name).exists()
        found = "a file of that name is there, but has another checksum and is not used" if there else "it is not there"
        raise DataFileError(
            f"the data file {name} could not be had: it was looked for in {store.abspath} ({found}) and at {address} "
            f"({type(error).__name__}: {error}). To put it in place by hand, download it from that address (its sha256 is "
            f"{sha256}) into a folder, under the name {name}, and set the environment variable SOFTLABEL_DATA to that folder."
        ) from None
    finally:
        logger.setLevel(level)


def _read_rda(name: str) -> pd.DataFrame:
    """The one table in an R data file."""
    rdata = optional("rdata", "book", "load_gastroenterology")
    return _parse_rda(rdata.read_rda, fetch(name)).copy()


@cache  # takes a second; the checksum in fetch says that a file at this path is the same
def _parse_rda(read: Callable[[Path], dict[str, pd.DataFrame]], path: Path) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # R classes of the table that have no counterpart in Python
        (table,) = read(path).values()
    return table


def load_gastroenterology() -> VoteData:
    """Colonoscopic videos of 76 lesions, each judged by seven clinicians (Mesejo et al. 2016).

    Returns
    -------
    VoteData
        ``counts`` are votes for "resection" (malignant, the positive class) and "no-resection"; ``y`` is the ground truth from
        histology; ``X`` holds the 698 features of the white-light videos as they are, named as in the paper: V4 .. V701.

    Raises
    ------
    DataFileError
        If a file cannot be had; the message says how to put it in place by hand.
    ImportError
        If rdata is not installed (extra ``book``), which reads R's files.

    Notes
    -----
    The two files list the lesions in different orders and capitals: they are joined on the lower-cased name.
    """
    table = _read_rda("gastrodata.rda")  # one column a video: lesion, class, light, 698 features
    table.index = [f"V{row}" for row in range(1, len(table) + 1)]
    videos = table.T[lambda t: t["V3"].astype(int) == 1].set_index("V1")
    X = videos.drop(columns=["V2", "V3"]).astype(float)
    X.index = X.index.astype(str).str.lower().rename("item")

    labels = _read_rda("gastro_label_binary.rda").astype(str)
    labels.index = labels.pop("LESION").str.lower().rename("item")
    labels = labels.loc[X.index]
    y = (labels.pop("GROUND TRUTH") == "resection").astype(int).rename("y")
    source = "Mesejo et al. (2016), doi:10.1109/TMI.2016.2547947, as distributed in the R package EMMIXSSL"
    return vote_data(X, labels, y, source)


def load_bluebirds() -> VoteData:
    """108 images of birds, each judged by 39 people (Welinder et al. 2010).

    The annotators told one of two blue species, Indigo Bunting and Blue Grosbeak, from the other. The files answer true or
    false and do not say which species is which.

    Returns
    -------
    VoteData
        ``counts`` are answers "yes" (true, the positive class) and "no"; ``y`` is the truth; there are no features. Items and
        annotators keep the numbers of the files.

    Raises
    ------
    DataFileError
        If a file cannot be had; the message says how to put it in place by hand.
    """
    answers = pd.DataFrame(_read_yaml("bluebirds_labels.yaml")).rename_axis("item").sort_index()
    labels = answers.astype(bool).replace({True: "yes", False: "no"})
    y = pd.Series(_read_yaml("bluebirds_gt.yaml"), name="y").rename_axis("item").loc[labels.index].astype(int)
    source = "Welinder et al. (2010), as distributed with the software cubam"
    return vote_data(None, labels, y, source, classes=("yes", "no"))


ADULT_LABELS = "GPRXB"  # general, parental guidance, restricted, pornographic; B is not on that scale, and explained nowhere


def load_adult_content(positive: Iterable[str] = "RX", repeats: str = "keep") -> VoteData:
    """496 web sites, each rated 86 to 90 times by workers of Amazon Mechanical Turk (Ipeirotis et al. 2010).

    The labels are G (general), P (parental guidance), R (restricted), X (pornographic) and, rarely, B, which the files do not
    explain. Ahfock and McLachlan count votes for "adult material" and do not say what they did about either argument.

    Parameters
    ----------
    positive : iterable of str
        Labels that count as positive; all others, B included, count as negative. The default is R and X, the two ratings that
        keep minors out, which is also the middle of the four-step scale.
    repeats : "keep" or "first"
        What to do with a worker's second and third label of the same site, about a fifth of the rows. "keep" counts each, as
        the file does; "first" counts the first in the order of the file, so that nobody votes twice.

    Returns
    -------
    VoteData
        ``counts`` are "positive" and "negative" votes; their sum is not the same on every site. ``votes`` has the labels as
        they are, in the order of the file. There are no features and there is no ground truth. Sites and workers are running
        numbers in the order of the file: neither addresses nor worker names are given.

    Raises
    ------
    ValueError
        If ``positive`` is empty or has an unknown label, or ``repeats`` is neither word.
    DataFileError
        If the file cannot be had; the message says how to put it in place by hand.

    Examples
    --------
    >>> load_adult_content(positive="Q")
    Traceback (most recent call last):
    ValueError: positive must name some of the labels G, P, R, X, B, got 'Q'
    """
    chosen = set(positive) if isinstance(positive, Iterable) else set()
    if not chosen or not chosen <= set(ADULT_LABELS):
        raise ValueError(f"positive must name some of the labels {', '.join(ADULT_LABELS)}, got {positive!r}")
    if repeats not in ("keep", "first"):
        raise ValueError(f'repeats must be "keep" or "first", got {repeats!r}')
    votes = pd.read_csv(
        fetch("adult_content_labels.txt"),
        sep="\t",
        names=["annotator", "item", "label"],
        dtype=str,
        keep_default_na=False,
        quoting=csv.QUOTE_NONE,
    )[["item", "annotator", "label"]]
    for column in ("item", "annotator"):
        votes[column] = pd.factorize(votes[column])[0] + 1
    if repeats == "first":
        votes = votes.drop_duplicates(["item", "annotator"], ignore_index=True)
    by_site = votes["label"].isin(chosen).groupby(votes["item"])
    counts = pd.DataFrame({"positive": by_site.sum(), "negative": by_site.size() - by_site.sum()})
    choices = f"{', '.join(sorted(chosen))} positive, repeats: {repeats}"
    source = f"Ipeirotis et al. (2010), as distributed with Get-Another-Label; {choices}"
    return VoteData(None, counts, None, votes, source)


def load_breast_cancer() -> VoteData:
    """The Wisconsin diagnostic breast cancer data, 569 cell samples with 30 features, from scikit-learn.

    Returns
    -------
    VoteData
        ``y`` is 1 for a malignant sample (scikit-learn has 0). ``X`` has all 30 features; Ahfock and McLachlan use the ten
        means, ``X.filter(regex="^mean ")``. Nobody voted: ``counts`` and ``votes`` are None.

    Raises
    ------
    ImportError
        If scikit-learn is not installed (extra ``sklearn``). No network is needed: the data are part of it.

    Examples
    --------
    >>> data = load_breast_cancer()
    >>> data
    VoteData(569 items, no votes, 30 features; UCI data set 17, as distributed in scikit-learn)
    >>> data.X.filter(regex="^mean ").shape, int(data.y.sum())
    ((569, 10), 212)
    """
    table = optional("sklearn.datasets", "sklearn", "load_breast_cancer").load_breast_cancer(as_frame=True)
    y = (table.target == 0).astype(int).rename("y").rename_axis("item")
    return VoteData(table.data.rename_axis("item"), None, y, None, "UCI data set 17, as distributed in scikit-learn")


def histogram_of_votes(counts: pd.DataFrame) -> pd.DataFrame:
    """Number of items for each number of votes and of positive votes.

    Parameters
    ----------
    counts : (n, g) DataFrame
        Votes for each class, the positive class first.

    Returns
    -------
    DataFrame
        Columns m, positive, items, sorted; combinations that no item has are left out.

    Examples
    --------
    >>> histogram_of_votes(pd.DataFrame({"yes": [3, 0, 3], "no": [0, 2, 0]}))
       m  positive  items
    0  2         0      1
    1  3         3      2
    """
    table = pd.DataFrame({"m": counts.sum(axis=1), "positive": counts.iloc[:, 0]})
    return table.groupby(["m", "positive"]).size().rename("items").reset_index()


def shipped_histograms() -> dict[str, pd.DataFrame]:
    """The histograms of the three data sets with votes, from a file of the package: no network is needed.

    Returns
    -------
    dict of DataFrame
        As from :func:`histogram_of_votes`, for "gastroenterology", "bluebirds" and "adult_content" (its loader's defaults).

    Examples
    --------
    >>> shipped_histograms()["gastroenterology"].tail(2)
       m  positive  items
    6  7         6     13
    7  7         7     32
    """
    import yaml

    content = yaml.safe_load(files("softlabel").joinpath("vote_histograms.yml").read_text(encoding="utf-8"))
    return {
        name: pd.DataFrame(
            [(m, positive, n) for m, items in by_m.items() for positive, n in enumerate(items) if n],
            columns=["m", "positive", "items"],
        )
        for name, by_m in content.items()
    }


def _read_yaml(name: str) -> dict[str, Any]:
    import yaml

    content: dict[str, Any] = yaml.safe_load(fetch(name).read_text(encoding="utf-8"))
    return content


def vote_data(
    X: pd.DataFrame | None,
    labels: pd.DataFrame,
    y: pd.Series,
    source: str,
    classes: tuple[str, str] = ("resection", "no-resection"),
) -> VoteData:
    """Put together a data set whose labels stand in one column an annotator; the first class is the positive one."""
    votes = labels.reset_index().melt("item", var_name="annotator", value_name="label")
    positive = (labels == classes[0]).sum(axis=1)
    counts = pd.DataFrame({classes[0]: positive, classes[1]: labels.shape[1] - positive})
    return VoteData(X, counts, y, votes, source)
