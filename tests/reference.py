"""What the tests compare with: numbers from R, exact log-probabilities, the real data."""

import functools

import mpmath
import numpy as np
import pytest

from softlabel.datasets import DataFileError, load_gastroenterology

GASTRO_FEATURES = ["V113", "V173", "V475", "V489", "V603"]

# R 4.2.2: glm(z ~ X, binomial) and glm(cbind(s, 7 - s) ~ X, binomial), epsilon 1e-14, on the
# five features standardised with the sample standard deviation; intercept first.
R_TRUTH = {
    "coef": [2.639666162032, 0.647543155398, 2.232236471619, 0.767212842121, -0.321483310062, -0.613253148719],
    "stderr": [0.912301149651, 0.423791578275, 1.239249154727, 0.567937675330, 0.479342940659, 0.531448401954],
    "deviance": 35.8641547982,
}
R_VOTES = {
    "coef": [1.431749388895, 0.295479348042, 0.661685564486, 0.509694237788, -0.329822640378, -0.254698758848],
    "stderr": [0.140509908307, 0.121333360107, 0.214396862201, 0.157112453934, 0.139958297474, 0.144382088553],
    "deviance": 142.011561824,
}
# R 4.2.2: optimize() over log(alpha0), beta-binomial log-likelihood with lbeta and lchoose.
R_ALPHA0 = {
    "truth": {"alpha0": 5.47393576263, "log_likelihood": -132.892933085},
    "votes": {"alpha0": 5.16785793774, "log_likelihood": -102.064208896},
}


@functools.cache
def load_once():
    try:
        return load_gastroenterology()
    except DataFileError as error:
        return error


def gastro():
    """Features, vote counts and true labels of the gastroenterology data, or skip the test."""
    data = load_once()
    if isinstance(data, DataFileError):
        pytest.skip(f"needs the gastroenterology files: {data}")
    X = data.X[GASTRO_FEATURES]
    return (X - X.mean()) / X.std(ddof=1), data.counts, data.y


def exact_logpmf(counts, tau, alpha0, digits=60):
    """Dirichlet-multinomial log-probability of one item, as products, with many digits.

    P(s) = m! / (s_1! ... s_g!) prod_i prod_{k < s_i} (a tau_i + k) / prod_{k < m} (a + k).
    """
    with mpmath.workdps(digits):
        m = int(sum(counts))
        value = mpmath.factorial(m)
        for s, t in zip(counts, tau):
            value /= mpmath.factorial(int(s))
            for k in range(int(s)):
                value *= mpmath.mpf(t) if np.isinf(alpha0) else mpmath.mpf(alpha0) * mpmath.mpf(t) + k
        if not np.isinf(alpha0):
            for k in range(m):
                value /= mpmath.mpf(alpha0) + k
        return mpmath.log(value) if value else mpmath.mpf("-inf")


def all_counts(m, g):
    """Every vector of g whole numbers that sum to m, one a row."""
    if g == 1:
        return np.array([[m]])
    return np.array([[s, *rest] for s in range(m + 1) for rest in all_counts(m - s, g - 1)])


def logistic_data(seed=0, n=60, p=2, labels=True, m=6):
    """Features with labels, or with unequal numbers of votes of which some items have none."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    tau = 1 / (1 + np.exp(-(0.4 + X @ np.linspace(1, -0.5, p))))
    if labels:
        return X, (rng.random(n) < tau).astype(int)
    total = rng.integers(0, m + 1, n)
    s = rng.binomial(total, tau)
    return X, np.column_stack([s, total - s])
