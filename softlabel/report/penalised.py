"""A rule for features too many for maximum likelihood, such as embeddings: ridge, its penalty by cross-validation."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from softlabel.fits import LogisticRule
from softlabel.overdispersion import rarer_items
from softlabel.validation import Array, optional

MANY = 30  # features, from which on a penalty takes over where items are few
ENOUGH = 10  # items of the rarer class for each coefficient, with which none is needed
PENALTIES = (1 / 16, 1 / 4, 1.0, 4.0)  # for each feature
FOLDS = 5


@dataclass(frozen=True, eq=False)
class PenalisedFit(LogisticRule):
    """A logistic regression on votes with a ridge penalty.

    The attributes of :class:`~softlabel.fits.LogisticRule`. There are no standard errors: shrunk coefficients have a bias that
    none of them would tell.

    Attributes
    ----------
    penalty : float
        Of the squared coefficients of standardised features, halved and summed.
    """

    penalty: float

    def __repr__(self) -> str:
        return self.describe(f"penalty {self.penalty:.3g}")


def needs_penalty(X: pd.DataFrame, counts: Array) -> bool:
    """Are there many features, and few items for them?"""
    return X.shape[1] >= MANY and rarer_items(counts) < ENOUGH * (X.shape[1] + 1)


def fit_penalised(X: pd.DataFrame, counts: Array, rng: np.random.Generator) -> tuple[PenalisedFit, Array]:
    """The rule, and the posterior (n, 2) of each item by the rule from the other folds, which its own votes have not seen."""
    optional("sklearn", "sklearn", "analyse_votes with so many features")
    from softlabel.classifier import SoftLabelClassifier

    mean, sd = X.mean().to_numpy(), X.std(ddof=0).to_numpy()
    sd = np.where(sd > 0, sd, 1.0)
    x, fold = (X.to_numpy() - mean) / sd, rng.permutation(len(X)) % FOLDS
    best, best_loss, posterior = 0.0, np.inf, np.empty((len(X), 2))
    for penalty in np.array(PENALTIES) * X.shape[1]:
        out = np.empty((len(X), 2))
        for k in range(FOLDS):
            fitted = SoftLabelClassifier(penalty).fit(x[fold != k], counts[fold != k])
            out[fold == k] = fitted.predict_proba(x[fold == k])[:, ::-1]
        loss = -float((counts * np.log(np.maximum(out, 1e-300))).sum())
        if loss < best_loss:
            best, best_loss, posterior = float(penalty), loss, out
    fitted = SoftLabelClassifier(best).fit(x, counts)
    slopes = fitted.coef_[0] / sd
    fit = PenalisedFit(
        coef=np.r_[fitted.intercept_[0] - slopes @ mean, slopes],
        converged=True,
        n_iter=0,
        separation="none",
        log_likelihood=float((counts * fitted.predict_log_proba(x)[:, ::-1]).sum()),
        n_items=len(X),
        n_without_votes=0,
        feature_names=[str(name) for name in X.columns],
        penalty=best,
    )
    return fit, posterior
