"""How wrong the mean of votes may be: what is known of it beforehand, and after some true labels.

Items are points z = (1, eta, T): eta is the linear predictor of the votes' rule, T are combinations of the features that are
uncorrelated with it and with each other, of unit variance. The truth is modelled by logit tau = theta'z with
theta = (a, s, d): votes lean by a, are off scale by s, are tilted by d. Votes whose mean is right have theta = (0, 1, 0).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp, ndtr

from softlabel.two_way import Who, coordinates, nearest_cov, pairs_of_votes
from softlabel.validation import Array

# Standard deviations, beforehand, of a, of s - 1 and of each entry of d, beside the sampling error of the votes. Each
# combination is a model. With probability RIGHT there is neither lean nor tilt, with RARE one of them is the largest.
LEANS, SCALE, TILTS = (0.0, 0.25, 0.7, 2.0), 0.7, (0.0, 0.15, 0.4, 1.0)
RIGHT, RARE = 0.2, 0.1
DRAWS, COSTLY_DRAWS = 2000, 200  # from the posterior; of which so many are used where each one costs
AVERAGED, POINTS, REFERENCES = 2000, 200, 150  # items, at most, over which averages are taken; the last two costly ones
TAIL = 8  # degrees of freedom of the proposals, whose tails are to be no lighter than those of the posterior


def cov_of_votes(
    z: Array, counts: Array, m: float | None, rng: np.random.Generator, who: Who | None = None, size: int = 1
) -> Array:
    """Covariances (COSTLY_DRAWS, q, q) of the votes' estimate of theta from one item, as uncertain as items make them.

    With ``m`` votes an item, from the variances between items and within them; else with the votes in hand. If it is known
    who voted, annotators are drawn as well, each for as many items as now, but at most ``size``.
    """
    votes = counts.sum(axis=1)
    share, tau = counts[:, 0] / votes, expit(z[:, 1])
    squared, several = (share - tau) ** 2, votes > 1
    shared = np.zeros((COSTLY_DRAWS, 1, 1))
    if who is not None:
        pairs = pairs_of_votes(z, tau, 1 / (np.full(len(z), votes.mean()) if m is None else votes), who)
        each, others = np.bincount(who.annotator), size - 1
        fewer = others / max(others, each @ each / each.sum() - 1)  # an annotator votes on no more items than there are
        pairs *= fewer * votes.mean() / (m or votes.mean()) * len(pairs) / len(z)
        shared = nearest_cov(np.tensordot(rng.dirichlet(np.ones(len(pairs)), COSTLY_DRAWS), pairs, 1))
    if m is None:
        load = votes / votes.mean()  # a vote counts the same on any item
        between, within = (load * (share - tau)) ** 2, 0 * load
    elif several.any():
        z, share, votes, tau = z[several], share[several], votes[several], tau[several]
        load, variance = np.ones(len(z)), share * (1 - share) / (votes - 1)  # of the share, about the item's own probability
        between, within = squared[several] - variance, variance * votes / m
    elif m == 1:
        load, between, within = np.ones(len(z)), squared, 0 * squared
    else:
        raise ValueError("no item in counts has more than one vote: what another m is worth cannot be told")
    covs = np.empty((COSTLY_DRAWS, z.shape[1], z.shape[1]))
    for cov, of_annotators in zip(covs, shared):
        weight = rng.standard_exponential(len(z))  # the Bayesian bootstrap
        weight /= weight.sum()
        bread = np.linalg.pinv((z.T * (weight * load * tau * (1 - tau))) @ z, hermitian=True)
        meat = nearest_cov((z.T * (weight * between)) @ z) + (z.T * (weight * within)) @ z + of_annotators
        cov[:] = bread @ meat @ bread + 1e-12 * np.eye(len(cov))  # not singular, even if each vote is met exactly
    return covs


@dataclass(frozen=True)
class Belief:
    """What is known of theta: a normal distribution in each of H models, and the weights of the models."""

    z: Array  # (n, q), the items
    to_coef: Array  # (q, p + 1)
    sampling: Array  # (q, q), covariance of the votes' estimate, on their scale
    scale: float  # on the scale of the truth their error is so many times as large
    precision: Array  # (H, q, q), beforehand
    labels: tuple[Array, Array, Array]  # items (k, q) with true labels (k,), which count so many times (k,)
    mode: Array  # (H, q)
    hessian: Array  # (H, q, q)
    log_weight: Array  # (H,)

    @classmethod
    def of(cls, X: Array, coef: Array, cov: Array, truth: Array, weight: Array) -> "Belief":
        """From the votes' rule with its covariance, and true labels (n,) with their weights, 0 where unknown."""
        to_coef, to_theta = coordinates(X, coef)
        z = to_coef[:, :1].T + X @ to_coef[:, 1:].T
        q = z.shape[1]
        half = to_theta @ _root(cov)
        sampling = half @ half.T + 1e-12 * np.eye(q)  # not singular, even if the rule meets each vote exactly
        known = weight > 0
        labels = z[known], truth[known], np.asarray(weight[known], float)
        drift, log_prior = _models(q)
        scale = 1.0
        for last in (False, True):  # the scale is found in the first round
            precision = np.asarray(np.linalg.inv(drift[:, :, None] ** 2 * np.eye(q) + scale**2 * sampling), float)
            mode, hessian, peak = _modes(*labels, precision)
            log_weight = log_prior + peak + (np.linalg.slogdet(precision)[1] - np.linalg.slogdet(hessian)[1]) / 2
            log_weight = log_weight - logsumexp(log_weight)
            if not last:
                scale = max(0.1, abs(float(np.exp(log_weight) @ mode[:, 1])))
        return cls(z, to_coef, sampling, scale, precision, labels, mode, hessian, log_weight)

    def coef_and_cov(self) -> tuple[Array, Array]:
        """Mean (p + 1,) of the coefficients and their covariance."""
        weight = np.exp(self.log_weight)
        coefs = self.mode @ self.to_coef
        coef = weight @ coefs
        within = self.to_coef.T @ np.tensordot(weight, np.linalg.inv(self.hessian), 1) @ self.to_coef
        return coef, within + (coefs - coef).T @ ((coefs - coef) * weight[:, None])

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array, NDArray[np.intp]]:
        """Draws of theta, of the part of theta that is the error of the votes' estimate, both (DRAWS, q), and their models."""
        H, q = self.mode.shape
        grid = (np.arange(DRAWS) + 0.5) / DRAWS
        of_model = np.searchsorted(np.cumsum(np.exp(self.log_weight)), grid).clip(max=H - 1)
        root = np.linalg.inv(np.linalg.cholesky(self.hessian)).swapaxes(1, 2)
        steps = rng.standard_normal((DRAWS, q)) / np.sqrt(rng.chisquare(TAIL, DRAWS) / TAIL)[:, None]
        theta = self.mode[of_model] + (root[of_model] @ steps[..., None])[..., 0]
        # Importance sampling: the proposals are a mixture of t distributions, the posterior one of products.
        form, det = _forms(theta[:, None] - self.mode, self.hessian), np.linalg.slogdet(self.hessian)[1]
        proposal = logsumexp(self.log_weight + det / 2 - (TAIL + q) / 2 * np.log1p(form / TAIL), axis=1)
        prior = _models(q)[1] + np.linalg.slogdet(self.precision)[1] / 2
        prior = prior - _forms((theta - _right(q))[:, None], self.precision) / 2
        z, y, w = self.labels
        weight = _log_likelihood(theta, z, y, w) + logsumexp(prior, axis=1) - proposal
        weight = np.exp(weight - weight.max())
        weight = np.minimum(weight, np.sqrt(DRAWS) * weight.mean())  # no draw alone decides (Ionides 2008)
        kept = rng.permutation(np.searchsorted(np.cumsum(weight / weight.sum()), grid).clip(max=DRAWS - 1))
        theta, prior = theta[kept], prior[kept]
        chance = np.exp(prior - logsumexp(prior, axis=1, keepdims=True)).cumsum(axis=1)
        model = (chance < rng.random((DRAWS, 1))).sum(axis=1).clip(max=H - 1)
        # theta is a sum of drift and error, both normal: the error given the sum.
        spread = self.sampling * self.scale**2
        gain = spread @ self.precision
        value, vector = np.linalg.eigh(spread - gain @ spread)
        root = (vector * np.sqrt(np.maximum(value, 0))[:, None]) @ vector.swapaxes(1, 2)
        error = gain[model] @ (theta - _right(q))[..., None] + root[model] @ rng.standard_normal((DRAWS, q, 1))
        return theta, error[..., 0], model

    def quantities(self, cov: Array, size: int, rng: np.random.Generator, in_hand: bool) -> dict[str, Array]:
        """Draws of what ``WorthOfVotes`` reports, for ``size`` items, each as informative as ``cov`` says.

        Beside each draw of the equal number "right" is 1 if it is one of votes that neither lean nor are tilted.
        """
        theta, error, model = self.draw(rng)
        q = theta.shape[1]
        none = _models(q)[0][model] == 0
        drift = np.where(none, 0, theta - error)
        limit = error / np.maximum(np.abs(theta[:, 1:2]), 0.1)  # of the votes' estimate, on their own scale
        limit[:, 1] = 1  # a multiple of it is the same rule
        order = np.lexsort(self.z[:, :0:-1].T)  # by eta: neither the order of the items nor chance decides which are used
        z, points, references = (
            self.z[order[np.linspace(0, len(order) - 1, min(len(order), k)).astype(int)]]
            for k in (AVERAGED, POINTS, REFERENCES)
        )
        tau = expit(theta @ z.T)
        share = rng.standard_exponential(tau.shape)  # of each item among new ones: the Bayesian bootstrap (Rubin 1981)
        share /= share.sum(axis=1, keepdims=True)
        bayes = (np.minimum(tau, 1 - tau) * share).sum(axis=1)
        floor = _error(limit @ z.T > 0, tau, share) - bayes
        costly = np.linspace(0, DRAWS - 1, COSTLY_DRAWS).astype(int)
        excess, number = np.transpose([equal(points, references, theta[k], limit[k], c, size) for k, c in zip(costly, cov)])
        return {
            "error": _error(z[:, 1] > 0, tau, share) if in_hand else bayes[costly] + excess,
            "lean": drift[:, 0],
            "scale": drift[:, 1],
            "tilt": np.linalg.norm(drift[:, 2:], axis=1),
            "floor": floor,
            "equal_number": number,
            "right": none[costly][:, [0, *range(2, q)]].all(axis=1).astype(float),
        }


def _root(cov: Array) -> Array:
    """Matrix of which the square is a covariance, in any units; transformed, it stays one whatever is lost to rounding."""
    sd = np.sqrt(np.maximum(np.diag(cov), 1e-300))
    value, vector = np.linalg.eigh(cov / sd[:, None] / sd)
    root: Array = sd[:, None] * vector * np.sqrt(np.maximum(value, 0))
    return root


def _models(q: int) -> tuple[Array, Array]:
    """Standard deviations (H, q) of theta in each model, and the logarithms of the models' probabilities."""
    lean, tilt = (a.ravel() for a in np.meshgrid(LEANS, TILTS if q > 2 else TILTS[:1]))
    right, rare = (lean == 0) & (tilt == 0), (lean == LEANS[-1]) | (tilt == TILTS[-1])
    other = ~(right | rare)
    prior = RIGHT * right + RARE * rare / rare.sum() + (1 - RIGHT - RARE) * other / other.sum()
    return np.column_stack([lean, np.full(len(lean), SCALE), np.tile(tilt[:, None], q - 2)]), np.log(prior)


def _right(q: int) -> Array:
    """The theta of votes whose mean is right."""
    right: Array = np.eye(1, q, 1)[0]
    return right


def _forms(x: Array, matrices: Array) -> Array:
    """x' M x (n, H) of points (n, H, q) or (n, 1, q) and matrices (H, q, q)."""
    x = x.swapaxes(0, 1)
    forms: Array = ((x @ matrices) * x).sum(axis=-1)
    return forms.T


def _log_likelihood(theta: Array, z: Array, y: Array, w: Array) -> Array:
    eta = theta @ z.T
    log_likelihood: Array = log_expit(np.where(y == 1, eta, -eta)) @ w
    return log_likelihood


def _error(positive: NDArray[np.bool_], tau: Array, share: Array) -> Array:
    """Error rates of rules that say which items are positive."""
    rates: Array = (np.where(positive, 1 - tau, tau) * share).sum(axis=-1)
    return rates


def _modes(z: Array, y: Array, w: Array, precision: Array, max_iter: int = 100) -> tuple[Array, Array, Array]:
    """Posterior modes (H, q) of theta, minus the second derivatives (H, q, q) there, and the log posteriors (H,)."""
    right = _right(z.shape[1])
    theta = np.tile(right, (len(precision), 1))

    def log_posterior(theta: Array) -> Array:
        away = theta - right
        value: Array = _log_likelihood(theta, z, y, w) - np.einsum("hi,hij,hj->h", away, precision, away) / 2
        return value

    value = log_posterior(theta)
    for _ in range(max_iter):
        eta = theta @ z.T
        gradient = (w * (y - expit(eta))) @ z - (precision @ (theta - right)[..., None])[..., 0]
        curved = w * expit(eta) * expit(-eta)
        hessian = (z.T * curved[:, None]) @ z + precision
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        rise = np.einsum("hi,hi->h", gradient, step)
        moved = log_posterior(theta + step)
        for _ in range(30):  # half the step where it leads down
            down = moved < value - 1e-9 * (1 + np.abs(value))
            if not down.any():
                break
            step[down] /= 2
            moved = log_posterior(theta + step)
        theta, value = theta + step, moved
        if rise.max() < 1e-12:
            break
    return theta, hessian, value


def signed_roots(points: Array, references: Array, theta: Array) -> tuple[Array, Array]:
    """Signed root (n,) of twice the mean log-likelihood ratio of theta to the best rule with z'theta = 0, at each point.

    Also z' A^-1 z, where A is the information of one true label. The constrained maximum is found by two Newton steps.
    """
    odds = np.exp(np.clip(references @ theta, -700, 700))
    tau, n = odds / (1 + odds), len(references)
    A = _regular((references.T * (tau / (1 + odds))) @ references / n)
    steepest = points @ np.linalg.inv(A)
    form = np.sum(steepest * points, axis=1)
    along = points @ theta
    rules = theta - (along / form)[:, None] * steepest
    target = tau @ references / n  # the mean log-likelihood of rule b is target'b less the mean of log(1 + odds)
    best = target @ theta - np.log1p(odds).mean()
    products = (references[:, :, None] * references[:, None]).reshape(n, -1) / n
    odds = np.exp(np.clip(rules @ references.T, -700, 700))
    ratio = best - rules @ target + np.log1p(odds).mean(axis=1)
    probability = odds / (1 + odds)
    hessian = _regular(((probability / (1 + odds)) @ products).reshape(len(rules), *A.shape))
    gradient = probability @ references / n - target
    by_gradient, by_point = np.moveaxis(np.linalg.solve(hessian, np.stack([gradient, points], axis=-1)), -1, 0)
    multiplier = np.sum(points * by_gradient, axis=1) / np.sum(points * by_point, axis=1)
    rules = rules - by_gradient + multiplier[:, None] * by_point
    second = best - rules @ target + np.log1p(np.exp(np.clip(rules @ references.T, -700, 700))).mean(axis=1)
    return np.sign(along) * np.sqrt(2 * np.maximum(np.minimum(ratio, second), 0)), form


def _regular(A: Array) -> Array:
    """Matrices (..., q, q) with a billionth of their trace: far out, where no item is in doubt, they are rounding error."""
    regular: Array = A + 1e-9 * np.maximum(np.trace(A, axis1=-2, axis2=-1), 1e-200)[..., None, None] * np.eye(A.shape[-1])
    return regular


def equal(points: Array, references: Array, theta: Array, limit: Array, cov: Array, size: int) -> tuple[float, float]:
    """Expected excess error of votes on ``size`` items, and the number of true labels with the same."""
    tau, p = expit(points @ theta), len(theta) - 1
    loss = np.abs(2 * tau - 1)  # of a wrong decision
    votes, form = signed_roots(points, references, limit)
    votes *= np.sqrt(form / np.sum(points @ cov * points, axis=1))
    excess = float((loss * ndtr(-np.sign(tau - 0.5) * votes * np.sqrt(size - p))).mean())
    truths = np.abs(signed_roots(points, references, theta)[0])
    n = np.geomspace(p + 2, 1e7, 60)
    of_truths = (loss * ndtr(-truths * np.sqrt(n - p)[:, None])).mean(axis=1)
    log = np.log(np.maximum([excess, *of_truths], 1e-300))
    return excess, float(np.exp(np.interp(-log[0], -log[1:], np.log(n))))
