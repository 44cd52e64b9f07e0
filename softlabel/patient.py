"""Logistic fits with patience and without warnings, for functions that have words of their own on what goes wrong."""

import warnings
from typing import Literal

from numpy.typing import ArrayLike

from softlabel.fits import LogisticFit
from softlabel.logistic import fit_logistic


def fit_patiently(X: ArrayLike, votes: ArrayLike, method: Literal["mle", "firth"] = "mle") -> LogisticFit:
    """As :func:`fit_logistic`; whether there is a maximum, and whether it was found, the caller must look at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_logistic(X, votes, method=method, max_iter=100)


def fit_that_exists(X: ArrayLike, votes: ArrayLike) -> LogisticFit:
    """Maximum likelihood; Firth's method, whose estimate exists, where the features separate the votes."""
    fit = fit_patiently(X, votes)
    return fit if fit.separation == "none" else fit_patiently(X, votes, "firth")


def explain_no_convergence(fit: LogisticFit, votes: str) -> str:
    """Words on what keeps a fit with patience from converging."""
    return (
        f"the fit to {votes} has not converged after {fit.n_iter} steps: some column of X has values far from all others; "
        "transform it, such as by a logarithm or ranks"
    )
