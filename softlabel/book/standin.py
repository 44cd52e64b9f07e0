"""A simulated table in place of the gastroenterology data, so that chapters run where the files cannot be had."""

import numpy as np
import pandas as pd
from scipy.special import expit

from softlabel.book import numbers
from softlabel.datasets import DataFileError, VoteData, load_gastroenterology, vote_data
from softlabel.vote_models import sample_probabilities

GASTRO_FEATURES = ["V113", "V173", "V475", "V489", "V603"]  # the five that the paper selects
# Estimates on the real files, from which the stand-in is drawn: the fit to the votes, intercept first, and the features.
COEF = np.array([1.43, 0.30, 0.66, 0.51, -0.33, -0.25])
ALPHA0 = 5.17
CORRELATION = [
    [1.00, 0.21, 0.27, -0.24, -0.16],
    [0.21, 1.00, 0.57, -0.51, -0.46],
    [0.27, 0.57, 1.00, -0.63, -0.33],
    [-0.24, -0.51, -0.63, 1.00, 0.27],
    [-0.16, -0.46, -0.33, 0.27, 1.00],
]


def gastroenterology_stand_in(rng: np.random.Generator | int | None = 408) -> VoteData:
    """A *simulated* table of the size of the gastroenterology data, for readers who cannot get the files.

    Features are normal with the correlations of the real five; true labels and the votes of seven clinicians are drawn from
    the model fitted to the real votes. Nothing computed from it says anything about the real data.

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
    X = rng.multivariate_normal(np.zeros(5), CORRELATION, size=76)
    eta = COEF[0] + X @ COEF[1:]
    tau = np.column_stack([expit(eta), expit(-eta)])
    p = sample_probabilities(tau, ALPHA0, rng)[:, :1]
    annotators = [f"CLINICIAN {k}" for k in range(1, 8)]
    labels = pd.DataFrame(rng.random((76, 7)) < p, items, annotators).replace({True: "resection", False: "no-resection"})
    y = pd.Series((rng.random(76) < tau[:, 0]).astype(int), items, name="y")
    features = pd.DataFrame(X, items, GASTRO_FEATURES)
    return vote_data(features, labels, y, "simulated stand-in for the gastroenterology data")


def gastroenterology() -> VoteData:
    """The gastroenterology data; where the files cannot be had, the reason, and the stand-in, whose numbers carry a dagger."""
    try:
        return load_gastroenterology()
    except DataFileError as error:
        print(error)
        numbers.mark = "†"
        return gastroenterology_stand_in()
