"""The work that no fit can avoid: one exponential a row, one Gram product a data set, in each iteration."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit

from benchmarks.harness import available_cores


@njit(nogil=True, cache=True, fastmath=True)
def exponentials(eta, w, first, last):
    for i in range(first, last):
        r = i % len(eta)
        for j in range(eta.shape[1]):
            w[r, j] = math.exp(-abs(eta[r, j]))


@njit(nogil=True, cache=True, fastmath=True)
def grams(x, w, H, first, last):
    sets, q, n = x.shape
    for i in range(first, last):
        r = i % sets
        for a in range(q):
            for b in range(a + 1):
                total = 0.0
                for j in range(n):
                    total += w[r, j] * x[r, a, j] * x[r, b, j]
                H[a, b] += total


class Floor:
    """``iterations`` of the unavoidable work on the data sets X (sets, n, p): few, so that they sit in a core's cache.

    Both loops are compiled, and all cores share the iterations. NumPy's exponential takes several numbers at a time.
    """

    def __init__(self, X, coef, iterations):
        self.x = np.concatenate([np.ones_like(X[..., :1]), X], axis=-1).swapaxes(1, 2).copy()
        self.eta = np.einsum("sq,sqn->sn", coef, self.x)
        self.iterations = iterations

    def compiled(self):
        self._share(lambda w, H, first, last: (exponentials(self.eta, w, first, last), grams(self.x, w, H, first, last)))

    def compiled_exponentials(self):
        self._share(lambda w, H, first, last: exponentials(self.eta, w, first, last))

    def compiled_grams(self):
        self._share(lambda w, H, first, last: grams(self.x, w, H, first, last))

    def numpy_exponentials(self):
        def work(w, H, first, last):
            negative = -np.abs(self.eta)
            for _ in range(first, last, len(w)):
                np.exp(negative, out=w)
            grams(self.x, w, H, first, last)

        self._share(work)

    def _share(self, work):
        cores, q = available_cores(), self.x.shape[1]
        ends = np.linspace(0, self.iterations, cores + 1).astype(int)
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(lambda k: work(np.ones(self.eta.shape), np.zeros((q, q)), ends[k], ends[k + 1]), range(cores)))
