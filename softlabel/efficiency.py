"""What votes are worth: Theorems 1 and 2 of Ahfock & McLachlan (2021) as functions."""

import numpy as np
from numpy.typing import ArrayLike

from softlabel._checks import Array, as_alpha0, as_labellers, as_labellers_and_alpha0, as_numbers


def relative_efficiency(m: ArrayLike, alpha0: ArrayLike) -> Array | float:
    """Asymptotic relative efficiency of the votes of m labellers to one set of ground-truth labels.

    Parameters
    ----------
    m : array_like
        Number of labellers of each item, at least 1.
    alpha0 : array_like
        Overdispersion parameter, positive; ``inf`` is the multinomial. Broadcast against ``m``.

    Returns
    -------
    float or ndarray
        m (1 + alpha0) / (m + alpha0): so many ground-truth labels an item carry the same information.

    Raises
    ------
    ValueError
        If m < 1 or alpha0 <= 0.

    Notes
    -----
    Theorem 2 of Ahfock & McLachlan (2021). Computed as 1 + (m - 1) / (1 + m / alpha0), which shows the bounds of their
    Remark 1: 1 as alpha0 -> 0, m as alpha0 -> inf, and 1 + alpha0 as m -> inf.

    Examples
    --------
    >>> round(relative_efficiency(5, 1), 4)
    1.6667
    >>> relative_efficiency([1, 5, 50], float("inf"))
    array([ 1.,  5., 50.])
    """
    m, alpha0 = as_labellers_and_alpha0(m, alpha0)
    with np.errstate(over="ignore"):  # m / alpha0 = inf is right: then the efficiency is 1
        efficiency = 1 + (m - 1) / (1 + m / alpha0)
    return efficiency if efficiency.ndim else float(efficiency)


def godambe_information(fisher: ArrayLike, m: ArrayLike, alpha0: ArrayLike) -> Array:
    """Godambe information of one item with the votes of m labellers, from the Fisher information of one true label.

    Parameters
    ----------
    fisher : (q, q) array_like
        Fisher information of one item with its ground-truth label, such as ``TwoClassNormal.fisher_information()``.
    m, alpha0 : float
        Number of labellers and overdispersion parameter.

    Returns
    -------
    (q, q) ndarray
        I_M = m (1 + alpha0) / (m + alpha0) I_LR. The estimate from n items has covariance near inverse(I_M) / n.

    Raises
    ------
    ValueError
        If ``fisher`` is not a symmetric matrix, m < 1 or alpha0 <= 0.

    Notes
    -----
    Theorem 1 of Ahfock & McLachlan (2021).

    Examples
    --------
    >>> import numpy as np
    >>> godambe_information(np.eye(2), m=10, alpha0=10)
    array([[5.5, 0. ],
           [0. , 5.5]])
    """
    fisher = as_numbers(fisher, "fisher", (2,))
    if fisher.shape[0] != fisher.shape[1] or not np.allclose(fisher, fisher.T, rtol=1e-8, atol=0):
        raise ValueError(f"fisher must be a symmetric matrix, got shape {fisher.shape}")
    as_alpha0(alpha0, scalar=True)
    as_labellers(m, whole=False, scalar=True)
    return relative_efficiency(m, alpha0) * fisher
