"""Newton's method for logistic regression, on arrays that have been checked.

Inside, features are standardised: an intercept and p columns centred and scaled to [-1, 1], so that no linear predictor
exceeds the sum of the absolute coefficients. They are kept in blocks of 512 items, x (blocks, q, 512) with q = p + 1: a block
stays in cache, and sums over its items run along memory.

What touches every item is compiled. Newton's steps are written once and used twice: compiled, for many small data sets, whose
x stays in a core's cache; interpreted, for one data set of any size, whose x is made anew slice by slice, on all cores, so
that it is never in memory as a whole.
"""

import math

import numba
import numpy as np

from softlabel._parallel import PART, compiled, over_parts

LOST_INFORMATION = 1e12  # trace(H^-1 H_0) above this: the labels say nothing about some direction, and H is rounding error
COLLINEAR = 1e10  # variance inflation factor from which a column counts as a combination of the others
BLOCK = 512
TAYLOR = tuple(1 / math.factorial(k) for k in range(13, -1, -1))  # of exp, highest power first
LOG2, LOG2_HIGH, LOG2_LOW = math.log(2), 0.6931471803691238, 1.9082149292705877e-10  # high + low has 20 digits more
ROUND = 1.5 * 2.0**52  # adding it rounds to a whole number, which is then in the last bits


def _newton(sums, penalty):
    """Newton's method, given the functions that sum over the items of ``data``."""

    def newton(data, start, max_iter, tol, firth):
        """Coefficients (q,), whether the fit converged, its number of steps, and whether its features have full rank.

        A fit has converged when a full step moves no linear predictor by more than sqrt(tol): since the weights
        w = tau (1 - tau) satisfy |w'| <= w, a step of size d leaves an error of about d^2 / 2. With Firth's penalty,
        log det(H) / 2, the steps still use H alone and shrink only linearly, so that they must fall below tol.

        A first step from zero is stretched to the length of Fisher's linear discriminant, which saves up to four steps.
        """
        gradient, H = sums(data, np.zeros(len(start)))
        H0, full_rank = H, inflation(H) < COLLINEAR
        beta, direction, slope, back_off = start.copy(), np.zeros(len(start)), 0.0, 1.0
        for iteration in range(1, max_iter + 1):
            from_zero = iteration == 1 and not np.any(start != 0)
            if not from_zero:
                gradient, H = sums(data, beta)
            L, d = cholesky(H)
            if firth:
                gradient = gradient + penalty(data, beta, L, d)
            # If the log-likelihood now falls steeply along the last step, that step was too long: take half of it back.
            if np.sum(gradient * direction) < -slope / 2:
                back_off /= 2
                beta = beta - back_off * direction
                continue
            direction, back_off = solve(L, d, gradient), 1.0
            if from_zero:
                direction = direction / unexplained(gradient, direction, H)
            # Far out the weights vanish and a full step means nothing: it may at most turn the linear predictors round.
            reach, most = np.sum(np.abs(direction)), 5 + np.sum(np.abs(beta))
            if reach > most and not from_zero:
                direction = direction * (most / reach)
            slope = np.sum(gradient * direction)
            beta = beta + direction
            if reach <= (tol if firth else math.sqrt(tol)):
                converged = firth or np.sum(inverse(L, d) * H0) < LOST_INFORMATION
                return beta, converged and full_rank, iteration, full_rank
        return beta, False, max_iter, full_rank

    return newton


@compiled
def spread(X):
    """Sum, smallest and largest value of each column."""
    n, p = X.shape
    total, low, high = np.empty(p), np.empty(p), np.empty(p)
    for k in range(p):
        add, least, most = 0.0, np.inf, -np.inf
        for j in range(n):
            value = float(X[j, k])
            add += value
            least, most = min(least, value), max(most, value)
        total[k], low[k], high[k] = add, least, most
    return total, low, high


@compiled
def split(counts, s, m):
    """Write positive votes and all votes of each item into s and m."""
    for j in range(len(counts)):
        s[j], m[j] = counts[j, 0], counts[j, 0] + counts[j, 1]


@compiled
def centre_and_scale(n, total, low, high):
    """What standardises the columns."""
    centre, scale = np.empty(len(total)), np.empty(len(total))
    for k in range(len(total)):
        centre[k] = total[k] / n
        scale[k] = max(high[k] - centre[k], centre[k] - low[k])
        if scale[k] <= 1e-14 * abs(centre[k]):
            scale[k] = 1  # a constant column is left at rounding error, and found by its rank
    return centre, scale


@compiled
def standardise(X, centre, scale, x):
    """Write standardised features into x; its row 0, the intercept, is left alone."""
    for i in range(blocks(len(X))):
        first = i * BLOCK
        for k in range(X.shape[1]):
            for j in range(min(BLOCK, len(X) - first)):
                x[i, k + 1, j] = (X[first + j, k] - centre[k]) / scale[k]


@compiled
def blocks(n):
    """Number of blocks of n items."""
    return (n + BLOCK - 1) // BLOCK


@compiled
def score_and_information(data, beta):
    """Gradient of the log-likelihood, and H."""
    x, s, m = data
    gradient, H = np.zeros(len(beta)), np.zeros((len(beta), len(beta)))
    for i in range(blocks(len(s))):
        here = slice(i * BLOCK, (i + 1) * BLOCK)
        _, residual, weight = residuals_and_weights(x[i], s[here], m[here], beta)
        add_combination(x[i], residual, gradient)
        add_products(x[i], weight, H)
    return gradient, H


@compiled
def firth_score(data, beta, L, d):
    """Gradient of Firth's penalty: the leverage of each item times 1/2 - tau."""
    x, s, m = data
    gradient, u = np.zeros(len(beta)), np.empty(len(beta))
    for i in range(blocks(len(s))):
        here = slice(i * BLOCK, (i + 1) * BLOCK)
        eta, _, weight = residuals_and_weights(x[i], s[here], m[here], beta)
        for j in range(len(eta)):
            leverage = 0.0
            for a in range(len(beta)):
                u[a] = d[a] * x[i, a, j]
                for k in range(a):
                    u[a] -= L[a, k] * u[k]
                u[a] /= L[a, a]
                leverage += weight[j] * u[a] ** 2
            weight[j] = -leverage * math.tanh(eta[j] / 2) / 2
        add_combination(x[i], weight, gradient)
    return gradient


@compiled
def fit_statistics(data, beta):
    """Log-likelihood, that of one probability an item, Pearson's statistic, H, and G, the sum of squared scores."""
    x, s, m = data
    log_likelihood = saturated = pearson = 0.0
    H, G = np.zeros((len(beta), len(beta))), np.zeros((len(beta), len(beta)))
    for i in range(blocks(len(s))):
        here = slice(i * BLOCK, (i + 1) * BLOCK)
        eta, residual, weight = residuals_and_weights(x[i], s[here], m[here], beta)
        for j in range(len(eta)):
            yes, no = s[i * BLOCK + j], m[i * BLOCK + j] - s[i * BLOCK + j]
            log_likelihood += yes * min(eta[j], 0.0) + no * min(-eta[j], 0.0) - (yes + no) * math.log1p(math.exp(-abs(eta[j])))
            if yes > 0 and no > 0:
                saturated += yes * math.log(yes / (yes + no)) + no * math.log(no / (yes + no))
            if weight[j] > 0:
                pearson += residual[j] ** 2 / weight[j]
        add_products(x[i], weight, H)
        add_products(x[i], residual**2, G)
    return log_likelihood, saturated, pearson, H, G


@compiled
def residuals_and_weights(x, s, m, beta):
    """eta, s - m tau and m tau (1 - tau) in a block, from one exponential and without subtracting nearly equal numbers."""
    n = len(s)
    eta, residual, weight = np.empty(n), np.empty(n), np.empty(n)
    for j in range(n):
        eta[j] = beta[0]
    for k in range(1, len(beta)):
        for j in range(n):
            eta[j] += beta[k] * x[k, j]
    decay(eta, weight)
    for j in range(n):
        more_likely = 1 / (1 + weight[j])
        expected = m[j] * weight[j] * more_likely  # votes for the less likely class
        weight[j] = expected * more_likely
        residual[j] = s[j] - m[j] + expected if eta[j] >= 0 else s[j] - expected
    return eta, residual, weight


# Rounding matters here: nothing is reordered.
@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, forceinline=True)
def decay(eta, out):
    """exp(-abs(eta)), at least exp(-708), to the last digit.

    Half the time of a small fit would go into a library's exponential, which takes one number at a time. This one runs in vector
    registers: exp(-abs(eta)) = 2^k exp(r), where |r| <= log(2) / 2 and exp(r) is a polynomial.
    """
    power = np.empty(len(eta))
    bits = power.view(np.int64)
    for j in range(len(eta)):
        x = max(-abs(eta[j]), -708.0)
        power[j] = x / LOG2 + ROUND
        k = power[j] - ROUND
        r = x - k * LOG2_HIGH - k * LOG2_LOW
        out[j] = 0.0
        for coefficient in TAYLOR:
            out[j] = out[j] * r + coefficient
    for j in range(len(eta)):
        bits[j] = (bits[j] << 52) + (1023 << 52)  # the float 2^k
    for j in range(len(eta)):
        out[j] *= power[j]


@compiled
def add_combination(x, weight, sums):
    """Add sum_j weight_j x_j."""
    for a in range(len(sums)):
        total = 0.0
        for j in range(len(weight)):
            total += weight[j] * x[a, j]
        sums[a] += total


@compiled
def add_products(x, weight, H):
    """Add sum_j weight_j x_j x_j'. Two rows at a time: every x_b is then read half as often."""
    q, n = len(H), len(weight)
    u, v = np.empty(n), np.empty(n)
    if q % 2:
        for j in range(n):
            H[0, 0] += weight[j] * x[0, j] ** 2
    for a in range(q % 2, q, 2):
        for j in range(n):
            u[j], v[j] = weight[j] * x[a, j], weight[j] * x[a + 1, j]
        for b in range(a + 2):
            first = second = 0.0
            for j in range(n):
                first += u[j] * x[b, j]
                second += v[j] * x[b, j]
            H[a, b] += first
            H[a + 1, b] += second
    for a in range(q):
        for b in range(a):
            H[b, a] = H[a, b]


@compiled
def cholesky(H):
    """L and d with L L' = d H d of unit diagonal; pivots stay at rounding size, so that a singular H does not fail."""
    q = len(H)
    L, d = np.zeros((q, q)), np.empty(q)
    for a in range(q):
        d[a] = 1 / math.sqrt(max(H[a, a], 1e-200))
    for a in range(q):
        for b in range(a + 1):
            rest = H[a, b] * d[a] * d[b]
            for k in range(b):
                rest -= L[a, k] * L[b, k]
            L[a, b] = math.sqrt(max(rest, 1e-14)) if a == b else rest / L[b, b]
    return L, d


@compiled
def unexplained(gradient, direction, H):
    """1 - R^2 of the least-squares regression of the votes, of which Newton's step from zero is a multiple.

    Divided by it, the slopes are those of Fisher's linear discriminant if the classes have the same number of votes. It is at
    least 1/10, since a discriminant of separated classes has no end.
    """
    total = 4 * H[0, 0] - gradient[0] ** 2 / H[0, 0]
    rest = 4 * H[0, 0] - np.sum(gradient * direction)
    return max(rest / total, 0.1) if total > 0 else 1.0


@compiled
def solve(L, d, v):
    """H^-1 v."""
    q = len(v)
    u = d * v
    for a in range(q):
        for k in range(a):
            u[a] -= L[a, k] * u[k]
        u[a] /= L[a, a]
    for a in range(q - 1, -1, -1):
        u[a] /= L[a, a]
        for k in range(a):
            u[k] -= L[a, k] * u[a]
    return d * u


@compiled
def inverse(L, d):
    """H^-1."""
    q = len(d)
    columns = np.empty((q, q))
    for a in range(q):
        unit = np.zeros(q)
        unit[a] = 1
        column = solve(L, d, unit)
        for b in range(q):  # assigned as a whole, Numba would compile an error message for other lengths, for a second
            columns[a, b] = column[b]
    return columns


@compiled
def inflation(H):
    """Largest variance inflation factor: 1 for orthogonal columns, beyond bounds for collinear ones."""
    L, d = cholesky(H)
    return np.max(np.diag(inverse(L, np.ones(len(d)))))


# Compiled as a part of newton_batch, its only caller: alone as well, it would take two seconds more.
_compiled_newton = numba.njit(inline="always")(_newton(score_and_information, firth_score))


@compiled
def newton_batch(X, counts, start, max_iter, tol, firth):
    """Fit c data sets: X (c, n, p), counts (c, n, 2), start (c, p + 1); coefficients of X, and the rest as of ``newton``."""
    c, n, p = X.shape
    coef, n_iter = np.empty((c, p + 1)), np.empty(c, np.int64)
    converged, full_rank = np.empty(c, np.bool_), np.empty(c, np.bool_)
    x, beta, s, m = np.ones((blocks(n), p + 1, BLOCK)), np.empty(p + 1), np.empty(n), np.empty(n)
    for r in range(c):
        total, low, high = spread(X[r])
        centre, scale = centre_and_scale(n, total, low, high)
        standardise(X[r], centre, scale, x)
        split(counts[r], s, m)
        inward(start[r], centre, scale, beta)
        beta, converged[r], n_iter[r], full_rank[r] = _compiled_newton((x, s, m), beta, max_iter, tol, firth)
        outward(beta, centre, scale, coef[r])
    return coef, converged, n_iter, full_rank


@compiled
def inward(coef, centre, scale, beta):
    """Write coefficients of standardised features into beta."""
    beta[0] = coef[0]
    for k in range(len(centre)):
        beta[0] += centre[k] * coef[k + 1]
        beta[k + 1] = scale[k] * coef[k + 1]


@compiled
def outward(beta, centre, scale, coef):
    """Write coefficients of the features themselves into coef."""
    coef[0] = beta[0]
    for k in range(len(centre)):
        coef[k + 1] = beta[k + 1] / scale[k]
        coef[0] -= centre[k] * coef[k + 1]


def standardised(X, counts):
    """One data set (n, p) as ``data`` for the functions below, whose coefficients are those of standardised features."""
    total, low, high = zip(*over_parts(spread, X))
    return X, counts, *centre_and_scale(len(X), sum(total), np.min(low, axis=0), np.max(high, axis=0))


def way_back(centre, scale):
    """Matrix (q, q) from coefficients of standardised features to coefficients of the features themselves."""
    back = np.diag(np.r_[1.0, 1 / scale])
    back[0, 1:] = -centre / scale
    return back


def over_items(function):
    """``function((x, s, m), ...)``, which returns sums over items, for a data set of any size."""

    def one_part(X, counts, centre, scale, *args):
        n, p = X.shape
        rows = min(n, BLOCK * (1 + PART // (BLOCK * p)))
        x, s, m = np.ones((blocks(rows), p + 1, BLOCK)), np.empty(rows), np.empty(rows)
        sums = []
        for first in range(0, n, rows):
            here = slice(first, min(first + rows, n))
            size = here.stop - first
            standardise(X[here], centre, scale, x)
            split(counts[here], s, m)
            sums.append(function((x, s[:size], m[:size]), *args))
        return add(sums)

    def add(sums):
        return tuple(map(sum, zip(*sums))) if isinstance(sums[0], tuple) else sum(sums)

    def all_parts(data, *args):
        X, counts, centre, scale = data
        return add(over_parts(lambda X, counts: one_part(X, counts, centre, scale, *args), X, counts))

    return all_parts


newton = _newton(over_items(score_and_information), over_items(firth_score))
statistics = over_items(fit_statistics)
