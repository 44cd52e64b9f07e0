"""Loaders of the crowd-labelled data sets, fetched once by pooch and checked against their checksums.

Files are kept in pooch's cache, or in the folder that the environment variable ``SOFTLABEL_DATA`` names: a folder that holds
them already serves without a network.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pooch
import rdata

_EMMIXSSL = "https://raw.githubusercontent.com/cran/EMMIXSSL/cfacc7d02e6d654c0664105ad0a0dbe9573c592d/data/"
FILES = {
    "gastro_label_binary.rda": (_EMMIXSSL, "fda5afe6afe04e4318069979feb2dcee06a0c0816532fe161c63b1c43509b605"),
    "gastrodata.rda": (_EMMIXSSL, "420ca83742ba9c44244709cb0190437ccdd9139197256a5114f45312f6cc8e65"),
}


class DataFileError(OSError):
    """A data file is neither in the cache folder nor to be had from its address."""


@dataclass(frozen=True, eq=False)
class VoteData:
    """Items with the votes of several annotators.

    Attributes
    ----------
    X : (n, p) DataFrame or None
        Features, one row an item.
    counts : (n, g) DataFrame
        Votes for each class, the positive class first.
    y : (n,) Series or None
        Ground-truth labels, 1 for the positive class.
    votes : DataFrame
        One row a vote: item, annotator, label.
    source : str
        Where the data come from.
    """

    X: pd.DataFrame | None
    counts: pd.DataFrame
    y: pd.Series | None
    votes: pd.DataFrame
    source: str

    def __repr__(self) -> str:
        features = "no features" if self.X is None else f"{self.X.shape[1]} features"
        return f"VoteData({len(self.counts)} items, {self.votes.annotator.nunique()} annotators, {features}; {self.source})"


def _fetch(name: str) -> Path:
    """Path of a data file, downloaded at the first use."""
    address, sha256 = FILES[name]
    store = pooch.create(
        path=pooch.os_cache("softlabel"),
        base_url=address,
        registry={name: f"sha256:{sha256}"},
        env="SOFTLABEL_DATA",
    )
    try:
        return Path(store.fetch(name))
    except (OSError, ValueError) as error:  # no network, no such page, no permission to write; a wrong checksum
        raise DataFileError(
            f"the data file {name} could not be had: it was looked for in {store.abspath} and at {address}{name} "
            f"({type(error).__name__}: {error}). To put it in place by hand, download it from that address (its sha256 is "
            f"{sha256}) into a folder, and set the environment variable SOFTLABEL_DATA to that folder."
        ) from error


def _read_rda(name: str) -> pd.DataFrame:
    """The one table in an R data file."""
    path = _fetch(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # R classes of the table that have no counterpart in Python
        (table,) = rdata.read_rda(path).values()
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
    votes = labels.reset_index().melt("item", var_name="annotator", value_name="label")
    positive = (labels == "resection").sum(axis=1)
    counts = pd.DataFrame({"resection": positive, "no-resection": labels.shape[1] - positive})
    source = "Mesejo et al. (2016), doi:10.1109/TMI.2016.2547947, as distributed in the R package EMMIXSSL"
    return VoteData(X, counts, y, votes, source)
