"""Profiles of the penalised likelihood of Firth (1993): intervals and tests where no covariance can be relied on."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import chdtri, expit, log_expit

from softlabel.separation import way_back
from softlabel.validation import Array

STEPS = 200  # at most, of Newton's method
RIDGE = 1e-14  # of the trace of H, lest it be singular
MANY = 2e6  # n q^3, beyond which profiles take many seconds and second derivatives of the penalty are not worth it


@dataclass(frozen=True, eq=False)
class Profile:
    """A fit by Firth's method with its data, from which it is fitted again with one coefficient held.

    The features have been standardised, with a column of ones, so that each coefficient of the features themselves is a linear
    function, a row of ``back``, of the coefficients here.
    """

    x: Array  # (n, q)
    counts: Array  # (n, 2)
    beta: Array  # (q,)
    back: Array  # (q, q)
    separated: bool
    dispersion: float  # by which twice the fall of the log-likelihood is divided

    @classmethod
    def of(
        cls, X: Array, counts: Array, beta: Array, centre: Array, scale: Array, separated: bool, dispersion: float
    ) -> "Profile":
        """From features and votes, of which copies are kept, and the coefficients of the standardised features."""
        x = np.column_stack([np.ones(len(X)), (X - centre) / scale])
        several = counts.sum(axis=1).max() > 1 and dispersion > 1  # of single votes it says nothing
        return cls(x, np.array(counts), beta, way_back(centre, scale), separated, dispersion if several else 1.0)

    def intervals(self, level: float) -> Array:
        """Ends (q, 2) of the values whose penalised likelihood ratio to the best is within a quantile of chi-square."""
        limit = float(np.sqrt(chdtri(1, 1 - level)))
        ends: Array = np.array([[self._end(row, side, limit) for side in (-1, 1)] for row in self._rows])
        return ends * self._units[:, None]

    @property
    def by_default(self) -> bool:
        """Whether it takes seconds at most."""
        n, q = self.x.shape
        return bool(n * q**3 <= MANY)

    def roots(self) -> Array:
        """Signed roots (q,) of the penalised likelihood ratio of each coefficient to zero."""
        return np.array([self._root(row, 0.0, self.beta)[0] for row in self._rows])

    @property
    def _units(self) -> Array:
        units: Array = np.abs(self.back).max(axis=1)
        return units

    @property
    def _rows(self) -> Array:
        """Of ``back``, in units in which the largest entry is 1."""
        return self.back / self._units[:, None]

    def _end(self, row: Array, side: int, limit: float) -> float:
        """The value of a coefficient below the estimate (-1) or above (1) at which the signed root is ``limit`` in size.

        Infinite if it lies so far out that the penalty is rounding error there.
        """
        from scipy.optimize import brentq  # takes as long to import as all of the package

        beta, width = self.beta, row @ np.linalg.solve(self._terms(self.beta)[2], row)
        near, step = float(row @ beta), side * limit * float(np.sqrt(self.dispersion * width))

        @cache  # a second search from elsewhere may end on another top, and the ends no longer enclose a root
        def beyond(value: float) -> float:
            nonlocal beta
            root, beta = self._root(row, value, beta)
            return -side * root - limit

        for _ in range(60):
            if beyond(near + step) > 0:
                return float(brentq(beyond, near, near + step, xtol=1e-6 * abs(step)))
            H = self._terms(beta)[2]
            if np.linalg.eigvalsh(H)[0] < 2 * RIDGE * np.trace(H):
                break  # what falls further out is hidden by rounding
            near, step = near + step, 2 * step
        return side * np.inf

    def _root(self, row: Array, value: float, beta: Array) -> tuple[float, Array]:
        """Signed root of the penalised likelihood ratio of a value held to the best, positive below it; and where it is.

        The search starts at ``beta``; of separated labels, whose likelihood may have several tops, at the estimate as well.
        """
        starts = [beta, self.beta] if self.separated and beta is not self.beta else [beta]
        height, beta = max((self._climb(row, value, start) for start in starts), key=lambda found: found[0])
        fall = max(self._terms(self.beta)[0] - height, 0.0)
        return float(np.sign(row @ self.beta - value) * np.sqrt(2 * fall / self.dispersion)), beta

    def _climb(self, row: Array, value: float, beta: Array) -> tuple[float, Array]:
        """The largest penalised log-likelihood with a value held, and where it is."""
        aim = np.linalg.solve(self._terms(beta)[2], row)
        beta = beta - aim * (row @ beta - value) / (row @ aim)
        here, gradient, H = self._terms(beta)
        free = np.linalg.svd(row[None])[2][1:].T  # directions that do not change the value
        for _ in range(STEPS):
            step = free @ np.linalg.solve(self._curvature(beta, H, free), free.T @ gradient)
            there = self._terms(beta + step)
            for _ in range(40):
                if there[0] >= here - 1e-12 * abs(here):
                    break
                step = step / 2
                there = self._terms(beta + step)
            else:
                break
            gain = there[0] - here
            beta, (here, gradient, H) = beta + step, there
            if gain < 1e-9:  # far out, where the ridge shows, the gradient may promise more
                break
        return here, beta

    def _terms(self, beta: Array) -> tuple[float, Array, Array]:
        """Penalised log-likelihood, its gradient, and H with a trace of a ridge, so far out that it is rounding error."""
        eta = self.x @ beta
        tau, rest = expit(eta), expit(-eta)
        weight = self.counts.sum(axis=1) * tau * rest
        H = (self.x.T * weight) @ self.x
        H = H + RIDGE * max(np.trace(H), 1e-280) * np.eye(len(H))
        leverage = weight * ((self.x @ np.linalg.inv(H)) * self.x).sum(axis=1)
        score = self.counts[:, 0] * rest - self.counts[:, 1] * tau + leverage * (rest - tau) / 2
        penalised = self.counts[:, 0] @ log_expit(eta) + self.counts[:, 1] @ log_expit(-eta) + np.linalg.slogdet(H)[1] / 2
        return float(penalised), self.x.T @ score, H

    def _curvature(self, beta: Array, H: Array, free: Array) -> Array:
        """Negative second derivatives of the penalised log-likelihood in the free directions.

        Without those of the penalty where they cost too much, or are not those of a maximum.
        """
        (n, q), usual = self.x.shape, free.T @ H @ free
        if n * q**3 > MANY:
            return usual
        eta = self.x @ beta
        tau, rest = expit(eta), expit(-eta)
        weight = self.counts.sum(axis=1) * tau * rest
        value, vector = np.linalg.eigh(H)
        y = self.x @ (vector / np.sqrt(value))
        slope = (weight * (rest - tau))[:, None] * self.x
        third = (slope[:, :, None] * y[:, None]).reshape(n, -1).T @ y  # slopes of H, between the directions of y
        leverage = weight * (y**2).sum(axis=1) * (1 - 6 * tau * rest)
        exact = H - (self.x.T * leverage) @ self.x / 2 + third.reshape(q, -1) @ third.reshape(q, -1).T / 2
        exact = free.T @ exact @ free
        return exact if q == 1 or np.linalg.eigvalsh(exact)[0] > RIDGE * value.sum() else usual
