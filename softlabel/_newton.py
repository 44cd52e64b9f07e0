"""Newton's method for many logistic regressions at once, on arrays that have been checked.

Shapes: c data sets of n items with q = p + 1 columns (the first is the intercept) are kept as x (c, q, n), items last, so that
sums over items run along memory.
"""

import numpy as np

from softlabel._checks import Array

LOST_INFORMATION = 1e12  # trace(H^-1 H_0) above this: the labels say nothing about some direction, and H is rounding error
COLLINEAR = 1e10  # variance inflation factor from which a column counts as a combination of the others


def newton(
    X: Array, counts: Array, start: Array, max_iter: int, tol: float, firth: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Newton's method for c logistic regressions at once; X (c, n, p), counts (c, n, 2), start (c, p + 1), unchecked.

    Returns coefficients (c, p + 1), whether each fit converged, its number of steps, and whether its features have full rank.

    A fit has converged when a full step moves no linear predictor by more than sqrt(tol): since the weights
    w = tau (1 - tau) satisfy |w'| <= w, a step of size d leaves an error of about d^2 / 2. With Firth's penalty, log det(H) / 2,
    the steps still use H alone and shrink only linearly, so that they must fall below tol. Fits leave the iteration as they
    converge.
    """
    x, back = standardise(X)
    s = np.ascontiguousarray(counts[..., 0])
    m = s + counts[..., 1]
    beta = np.linalg.solve(back, np.broadcast_to(start, (len(x), back.shape[-1]))[..., None])[..., 0]
    coef, converged, n_iter = beta.copy(), np.zeros(len(x), bool), np.full(len(x), max_iter)
    H0 = information(x, m / 4)
    rank = inflation(H0) < COLLINEAR

    running = np.arange(len(x))
    eta = linear_predictor(beta, x)
    direction, slope, back_off = np.zeros_like(beta), np.zeros(len(x)), np.ones(len(x))
    for iteration in range(1, max_iter + 1):
        residual, weight = residual_and_weight(s, m, eta)
        H = information(x, weight)
        if firth:  # each item's vote is corrected by its leverage times (1/2 - tau)
            leverage = weight * np.sum(x * solve(H, x), axis=1)
            residual = residual - leverage * np.tanh(eta / 2) / 2
        gradient = (x @ residual[..., None])[..., 0]
        # If the log-likelihood now falls steeply along the last step, that step was too long: take half of it back.
        overshot = np.sum(gradient * direction, axis=1) < -slope / 2
        back_off = np.where(overshot, back_off / 2, 1.0)
        direction = np.where(overshot[:, None], direction, solve(H, gradient))
        slope = np.where(overshot, slope, np.sum(gradient * direction, axis=1))
        step = np.where(overshot, -back_off, 1.0)[:, None] * direction
        change = linear_predictor(step, x)
        # Far out the weights vanish and a full step means nothing: it may at most turn the linear predictors round.
        reach, most = np.abs(change).max(axis=1), 5 + np.abs(eta).max(axis=1)
        if (reach > most).any():
            shrink = np.minimum(1, most / np.maximum(reach, most))
            direction, slope = direction * shrink[:, None], slope * shrink
            step, change = step * shrink[:, None], change * shrink[:, None]
        beta, eta = beta + step, eta + change

        done = (np.abs(change).max(axis=1) <= (tol if firth else np.sqrt(tol))) & ~overshot
        if done.any():
            at = running[done]
            coef[at], n_iter[at] = beta[done], iteration
            converged[at] = firth | (np.trace(solve(H[done], H0[at]), axis1=1, axis2=2) < LOST_INFORMATION)
            keep = ~done
            running, x, s, m, eta, beta = (a[keep] for a in (running, x, s, m, eta, beta))
            direction, slope, back_off = direction[keep], slope[keep], back_off[keep]
            if not len(running):
                break
    coef[running] = beta
    return (back @ coef[..., None])[..., 0], converged & rank, n_iter, rank


def standardise(X: Array) -> tuple[Array, Array]:
    """Features (c, n, p) as x (c, p + 1, n), an intercept and columns centred and scaled to [-1, 1], and the way back.

    The way back is a matrix (c, p + 1, p + 1) from coefficients of x to coefficients of X.
    """
    c, n, p = X.shape
    x = np.empty((c, p + 1, n))
    x[:, 0] = 1
    x[:, 1:] = X.transpose(0, 2, 1)
    shift = x[:, 1:].mean(axis=2)
    x[:, 1:] -= shift[..., None]
    scale = np.maximum(x[:, 1:].max(axis=2), -x[:, 1:].min(axis=2))
    scale[scale <= 1e-14 * np.abs(shift)] = 1  # a constant column is left at rounding error, and found by its rank
    x[:, 1:] /= scale[..., None]
    back = np.zeros((c, p + 1, p + 1))
    back[:, range(1, p + 1), range(1, p + 1)] = 1 / scale
    back[:, 0, 0] = 1
    back[:, 0, 1:] = -shift / scale
    return x, back


def linear_predictor(beta: Array, x: Array) -> Array:
    return (beta[:, None, :] @ x)[:, 0]


def residual_and_weight(s: Array, m: Array, eta: Array) -> tuple[Array, Array]:
    """s - m tau and m tau (1 - tau), from one exponential and without subtracting nearly equal numbers."""
    odds = np.exp(-np.abs(eta))
    expected = m * odds / (1 + odds)  # votes for the less likely class
    return np.where(eta >= 0, s - m + expected, s - expected), expected / (1 + odds)


def information(x: Array, weight: Array) -> Array:
    """sum_j weight_j x_j x_j' for each data set: (c, p + 1, p + 1)."""
    weighted = x * weight[:, None, :]
    c, q, _ = x.shape
    if q > 12:
        return weighted @ x.transpose(0, 2, 1)
    H = np.empty((c, q, q))  # for a small matrix the inner products of its lower half are faster
    for i in range(q):
        H[:, i:, i] = H[:, i, i:] = np.vecdot(weighted[:, i : i + 1], x[:, i:])
    return H


def unit_diagonal(H: Array) -> tuple[Array, Array]:
    """H with unit diagonal, and the scale; a ridge of rounding size keeps a singular matrix from raising."""
    d = 1 / np.sqrt(np.maximum(np.einsum("cqq->cq", H), 1e-200))
    return H * d[:, :, None] * d[:, None, :] + 1e-14 * np.eye(H.shape[-1]), d


def solve(H: Array, b: Array) -> Array:
    """H^-1 b for vectors b (c, q) or matrices b (c, q, k)."""
    scaled, d = unit_diagonal(H)
    columns = b[..., None] if b.ndim == 2 else b
    answer = d[..., None] * np.linalg.solve(scaled, d[..., None] * columns)
    return answer[..., 0] if b.ndim == 2 else answer


def inflation(H: Array) -> Array:
    """Largest variance inflation factor of each data set: 1 for orthogonal columns, beyond bounds for collinear ones."""
    return np.einsum("cqq->cq", np.linalg.inv(unit_diagonal(H)[0])).max(axis=1)
