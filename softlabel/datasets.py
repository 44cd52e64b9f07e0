"""Loaders of the crowd-labelled data sets, fetched once by pooch and checked against their checksums.

Files are kept in pooch's cache, or in the folder that the environment variable ``SOFTLABEL_DATA`` names: a folder that holds
them already serves without a network.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import rdata
from scipy.special import expit

from softlabel.dirichlet_multinomial import sample_probabilities

with warnings.catch_warnings():  # in a notebook pooch's import asks for ipywidgets, which nothing here needs
    warnings.simplefilter("ignore")
    import pooch

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
    logger, level = pooch.get_logger(), pooch.get_logger().level
    logger.setLevel("WARNING")  # else the address and folder of a download end up among the outputs of a chapter
    try:
        return Path(store.fetch(name))
    except (OSError, ValueError) as error:  # no network, no such page, no permission to write; a wrong checksum
        raise DataFileError(
            f"the data file {name} could not be had: it was looked for in {store.abspath} and at {address}{name} "
            f"({type(error).__name__}: {error}). To put it in place by hand, download it from that address (its sha256 is "
            f"{sha256}) into a folder, and set the environment variable SOFTLABEL_DATA to that folder."
        ) from error
    finally:
        logger.setLevel(level)


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
    return _vote_data(
        X, labels, y, "Mesejo et al. (2016), doi:10.1109/TMI.2016.2547947, as distributed in the R package EMMIXSSL"
    )


GASTRO_FEATURES = ["V113", "V173", "V475", "V489", "V603"]  # the five that the paper selects
_STAND_IN = {  # estimates on the real files, from which the stand-in is drawn
    "coef": [1.43, 0.30, 0.66, 0.51, -0.33, -0.25],  # of the fit to the votes, intercept first
    "alpha0": 5.17,
    "correlation": [
        [1.00, 0.21, 0.27, -0.24, -0.16],
        [0.21, 1.00, 0.57, -0.51, -0.46],
        [0.27, 0.57, 1.00, -0.63, -0.33],
        [-0.24, -0.51, -0.63, 1.00, 0.27],
        [-0.16, -0.46, -0.33, 0.27, 1.00],
    ],
}


def gastroenterology_stand_in(rng: np.random.Generator | int | None = 408) -> VoteData:
    """A *simulated* table of the size of the gastroenterology data, for readers who cannot get the files.

    Features are normal with the correlations of the real five; true labels and the votes of seven clinicians are drawn from the
    model fitted to the real votes. Nothing computed from it says anything about the real data.

    Parameters
    ----------
    rng : Generator, int or None
        Source of randomness; by default always the same table.

    Returns
    -------
    VoteData

    Examples
    --------
    >>> gastroenterology_stand_in()
    VoteData(76 items, 7 annotators, 5 features; simulated stand-in for the gastroenterology data)
    """
    rng = np.random.default_rng(rng)
    items = pd.Index([f"simulated_{j + 1}" for j in range(76)], name="item")
    X = rng.multivariate_normal(np.zeros(5), _STAND_IN["correlation"], size=76)
    eta = _STAND_IN["coef"][0] + X @ _STAND_IN["coef"][1:]
    tau = np.column_stack([expit(eta), expit(-eta)])
    p = sample_probabilities(tau, _STAND_IN["alpha0"], rng)[:, :1]
    annotators = [f"CLINICIAN {k}" for k in range(1, 8)]
    labels = pd.DataFrame(rng.random((76, 7)) < p, items, annotators).replace({True: "resection", False: "no-resection"})
    y = pd.Series((rng.random(76) < tau[:, 0]).astype(int), items, name="y")
    features = pd.DataFrame(X, items, GASTRO_FEATURES)
    return _vote_data(features, labels, y, "simulated stand-in for the gastroenterology data")


def _vote_data(X: pd.DataFrame, labels: pd.DataFrame, y: pd.Series, source: str) -> VoteData:
    """Put together a data set whose labels stand in one column an annotator; "resection" is the positive class."""
    votes = labels.reset_index().melt("item", var_name="annotator", value_name="label")
    positive = (labels == "resection").sum(axis=1)
    counts = pd.DataFrame({"resection": positive, "no-resection": labels.shape[1] - positive})
    return VoteData(X, counts, y, votes, source)
