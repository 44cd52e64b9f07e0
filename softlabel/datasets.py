"""Loaders of the crowd-labelled data sets, fetched once by pooch and checked against their checksums.

Files are kept in pooch's cache, or in the folder that the environment variable ``SOFTLABEL_DATA`` names: a folder that holds
them already, itself or up to two folders down, serves without a network. Histograms of vote counts ship with the package.
"""

import csv
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softlabel.validation import as_choice, optional

# Name in the cache folder, SHA-256 and address of each, as in a registry of pooch.
_LINES = files("softlabel").joinpath("data_files.txt").read_text(encoding="utf-8").splitlines()
FILES = {name: (address, sha256) for name, sha256, address in map(str.split, _LINES)}


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
        One row a vote: item, annotator, label. None if nobody voted, or if it is not known who voted how.
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
        if self.votes is not None:
            annotators = f"{self.votes.annotator.nunique()} annotators"
        else:
            annotators = "no votes" if self.counts is None else "votes without annotators"
        features = "no features" if self.X is None else f"{self.X.shape[1]} features"
        return f"VoteData({n} items, {annotators}, {features}; {self.source})"


@contextmanager
def quiet_pooch() -> Iterator[Any]:
    """The library pooch, without words that would end up among the outputs of a chapter."""
    with warnings.catch_warnings(action="ignore"):  # in a notebook its import asks for ipywidgets, which nothing here needs
        import pooch
    logger, level = pooch.get_logger(), pooch.get_logger().level
    logger.setLevel("WARNING")  # no address and no folder of a download
    try:
        yield pooch
    finally:
        logger.setLevel(level)


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
    address, sha256 = FILES[name]
    with quiet_pooch() as pooch:
        store = pooch.create(
            path=pooch.os_cache("softlabel"),
            base_url="",
            urls={name: address},
            registry={name: f"sha256:{sha256}"},
            env="SOFTLABEL_DATA",
        )
        copies = [path for place in (name, f"*/{name}", f"*/*/{name}") for path in sorted(store.abspath.glob(place))]
        try:
            right = next((path for path in copies if pooch.file_hash(str(path)) == sha256), None)
            return right or Path(store.fetch(name))
        except (OSError, ValueError) as error:  # no network, no such page, no permission to write; a wrong checksum
            found = "a file of that name is there, but has another checksum and is not used" if copies else "it is not there"
            raise DataFileError(
                f"the data file {name} could not be had: it was looked for in {store.abspath} ({found}) and at {address} "
                f"({type(error).__name__}: {error}). To put it in place by hand, download it from that address (its sha256 is "
                f"{sha256}) into a folder, under the name {name}, and set the environment variable SOFTLABEL_DATA to that "
                "folder."
            ) from None


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
    counts = _count(votes, chosen, ("positive", "negative"))
    choices = f"{', '.join(sorted(chosen))} positive, repeats: {repeats}"
    source = f"Ipeirotis et al. (2010), as distributed with Get-Another-Label; {choices}"
    return VoteData(None, counts, None, votes, source)


def load_recidivism(part: str = "voted") -> VoteData:
    """7,214 criminal defendants; on 1,000 of them, 20 lay people each said who would offend again (Dressel & Farid 2018).

    Parameters
    ----------
    part : "voted" or "rest"
        "voted" gives the 1,000 defendants with votes, "rest" the 6,214 others, on whom to test a rule.

    Returns
    -------
    VoteData
        ``counts`` are votes for "yes" (the positive class) and "no", and ``votes`` has the 400 annotators, each with 50
        defendants; of the rest both are None. ``y`` is 1 for a defendant whom the records show **arrested again** within two
        years: that is neither guilt nor an offence. ``X`` has four features of the same records: ``age`` in years,
        ``log_priors``, the log of 1 + the number of prior convictions, ``felony``, 1 if the charge is one and 0 if it is a
        misdemeanour, and ``female``. Defendants and annotators are running numbers: 1 to 1,000 with votes, 1,001 to 7,214
        the rest.

    Raises
    ------
    ValueError
        If ``part`` is neither word.
    DataFileError
        If a file cannot be had; the message says how to put it in place by hand.

    Notes
    -----
    The annotators, workers of Amazon Mechanical Turk, did not see the race of a defendant; it is not read here either. The
    rows are people. Their records, from Broward County, Florida, say what police and courts did, and carry their biases; what
    follows from them about risk scores is disputed since Angwin et al. (2016), "Machine bias", who collected them. Barenstein
    (2019), arXiv:1906.04711, shows that those who were arrested again were followed up by another rule than the others, so
    that 45% of the defendants have ``y`` = 1, and not the 36% that he finds with one rule for all.

    Examples
    --------
    >>> load_recidivism(part="all")
    Traceback (most recent call last):
    ValueError: part must be one of 'voted', 'rest', got 'all'
    """
    as_choice(part, "part", ("voted", "rest"))
    columns = ["id", "sex", "age", "priors_count", "charge_degree (misd/fel)", "two_year_recid"]
    people = pd.read_csv(fetch("BROWARD_CLEAN.csv"), lineterminator="\r", usecols=columns).set_index("id")
    # A row below the head only says "id", and the last rows are empty; so are columns, which hold no vote.
    right = pd.read_csv(fetch("MTURK_NO_RACE.csv"), lineterminator="\r", index_col=0, low_memory=False).dropna(how="all")
    right.index = right.index.astype(int)
    right.columns = pd.RangeIndex(1, right.shape[1] + 1)

    people = pd.concat([people.loc[right.index], people.drop(right.index)])
    people.index = pd.RangeIndex(1, len(people) + 1, name="item")
    people = people.iloc[: len(right)] if part == "voted" else people.iloc[len(right) :]
    X = pd.DataFrame(
        {
            "age": people["age"],
            "log_priors": np.log1p(people["priors_count"]),
            "felony": people["charge_degree (misd/fel)"],
            "female": people["sex"],
        }
    ).astype(float)
    y = people["two_year_recid"].rename("y")
    source = "Dressel & Farid (2018), doi:10.1126/sciadv.aao5580, as distributed in polinapolina/sicss18_fairml"
    if part == "rest":
        return VoteData(X, None, y, None, source)
    right.index = people.index
    # 1 says that the annotator was right, -1 that not; where there is neither, nobody was asked.
    labels = right.eq(1).eq(y == 1, axis="index").replace({True: "yes", False: "no"}).where(right.notna())
    return vote_data(X, labels, y, source, classes=("yes", "no"))


CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck".split()


def load_cifar10h() -> VoteData:
    """1,983 photographs of cats and dogs, with some 50 votes each and a network's probabilities (Peterson et al. 2019).

    The annotators chose one of the ten classes of CIFAR-10. These are the photographs of its test set that are of a cat or of
    a dog and have at least 30 votes for the two.

    Returns
    -------
    VoteData
        ``counts`` are votes for "cat" (the positive class) and "dog"; votes for other classes are left out. It is not known
        who gave which: ``votes`` is None. ``y`` is the label of CIFAR-10. ``X`` has five features made of the network's
        probabilities of the ten classes, which count as 1e-9 where they are smaller: ``cat_dog`` is the log of the ratio of
        the two, and ``bird``, ``deer``, ``frog`` and ``horse`` are logs less the mean of all ten logs.

    Raises
    ------
    DataFileError
        If the file cannot be had; the message says how to put it in place by hand.
    """
    table = pd.read_csv(fetch("human_model_truth_cifar10h.csv"), header=None)  # 10 counts, 10 probabilities, label 1..10
    counts = table.iloc[:, :10].set_axis(CIFAR10, axis="columns")[["cat", "dog"]]
    label = table[20].map(dict(enumerate(CIFAR10, start=1)))
    logs = pd.DataFrame(np.log(table.iloc[:, 10:20].clip(lower=1e-9).to_numpy()), columns=CIFAR10)
    others = ["bird", "deer", "frog", "horse"]
    X = logs[others].sub(logs.mean(axis="columns"), axis="index")
    X.insert(0, "cat_dog", logs["cat"] - logs["dog"])
    chosen = label.isin(["cat", "dog"]) & (counts.sum(axis="columns") >= 30)
    index = pd.RangeIndex(1, chosen.sum() + 1, name="item")
    y = (label == "cat").astype(int).rename("y")
    source = "Peterson et al. (2019), doi:10.1109/ICCV.2019.00971, as distributed in GavinKerrigan/conf_matrix_and_calibration"
    return VoteData(X[chosen].set_axis(index), counts[chosen].set_axis(index), y[chosen].set_axis(index), None, source)


NOISES = (80, 125)
ANIMALS = ["elephant", "bear", "cat", "bird", "dog"]


def load_imagenet16h(noise: int) -> VoteData:
    """1,200 photographs under noise, six or seven votes each: an animal or an object? (Steyvers et al. 2022).

    The annotators chose one of sixteen classes. Five of them, elephant, bear, cat, bird and dog, count as animals here, and
    all others as objects.

    Parameters
    ----------
    noise : 80 or 125
        How much noise was added to the photographs; with 125 they are hard to tell.

    Returns
    -------
    VoteData
        ``counts`` are votes for "animal" (the positive class) and "object", ``votes`` has the 145 annotators, and ``y`` is the
        truth. ``X`` has one feature, ``logit_animal``: the logit of the probability of an animal by a network (AlexNet) that
        saw the same noisy photograph, the probability kept between 1e-6 and 1 - 1e-6. Photographs and annotators are running
        numbers; a photograph has the same at both levels. If somebody voted on one again, the first vote counts.

    Raises
    ------
    ValueError
        If ``noise`` is neither level.
    DataFileError
        If a file cannot be had; the message says how to put it in place by hand.

    Examples
    --------
    >>> load_imagenet16h(100)
    Traceback (most recent call last):
    ValueError: noise must be 80 or 125, got 100
    """
    if noise not in NOISES:
        raise ValueError(f"noise must be {' or '.join(map(str, NOISES))}, got {noise!r}")
    truth = pd.read_csv(fetch("imagenet16H.csv"), index_col="image_name")["category"]
    network = pd.read_csv(fetch(f"noise{noise:.0f}_alexnet.csv"), index_col="image_name").loc[truth.index]
    answers = pd.read_csv(fetch(f"noise{noise:.0f}_predictions.csv")).drop_duplicates(["image_name", "participant_id"])
    index = pd.RangeIndex(1, len(truth) + 1, name="item")
    votes = pd.DataFrame(
        {
            "item": truth.index.get_indexer(pd.Index(answers["image_name"])) + 1,
            "annotator": pd.factorize(answers["participant_id"])[0] + 1,
            "label": np.where(answers["participant_classification"].isin(ANIMALS), "animal", "object"),
        }
    )
    p = network[ANIMALS].sum(axis="columns").clip(1e-6, 1 - 1e-6)
    X = (np.log(p) - np.log1p(-p)).set_axis(index).to_frame("logit_animal")
    y = truth.isin(ANIMALS).astype(int).set_axis(index).rename("y")
    copy = "nooranisima/Human-AI-Collaborative-UQ"
    source = f"Steyvers et al. (2022), doi:10.1073/pnas.2111547119, noise {noise}, as distributed in {copy}"
    return VoteData(X, _count(votes, ["animal"], ("animal", "object")), y, votes, source)


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
    """Put together a data set whose labels stand in one column an annotator; the first class is the positive one.

    A missing label is no vote.
    """
    votes = labels.reset_index().melt("item", var_name="annotator", value_name="label").dropna(ignore_index=True)
    votes = votes.infer_objects()  # numbers of annotators are of type object as long as they stand beside the column "item"
    return VoteData(X, _count(votes, classes[:1], classes).loc[labels.index], y, votes, source)


def _count(votes: pd.DataFrame, positive: Collection[str], names: tuple[str, str]) -> pd.DataFrame:
    """Votes on each item that have a positive label, and the others."""
    by_item = votes["label"].isin(positive).groupby(votes["item"])
    return pd.DataFrame({names[0]: by_item.sum(), names[1]: by_item.size() - by_item.sum()})
