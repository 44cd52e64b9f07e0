"""How well ``worth_of_votes`` predicts from k true labels: errors and coverage of its 90% intervals, ten draws in a row."""

import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softlabel.book.real_votes import LOADERS, Source, learn, load, samples, truths_of
from softlabel.logistic import fit_logistic
from softlabel.two_way import coordinates
from softlabel.validation import Array
from softlabel.vote_models import sample_votes
from softlabel.worth import Estimate, TruthWarning, WorthOfVotes, choose_for_truth, worth_of_votes

PARTS = ("lean", "scale", "tilt")

DRAWS = 10
ITEMS = 100  # to whose votes an equal number of true labels is asked for
CELLS = [
    dict(name=name, simulated=simulated, design="random", k=k, seed=seed)
    for name in LOADERS
    for simulated in (False, True)
    for k in (50, 100, 200, 400)
    for seed in range(200 // DRAWS)
]
CELLS += [
    dict(name=name, simulated=False, design=design, k=200, seed=seed)
    for name in ("recidivism", "CIFAR-10H")
    for design in ("contested", "weighted")
    for seed in range(200 // DRAWS)
]


@cache
def equal_number(name: str, simulated: bool, n_sets: int = 2000) -> float:
    """Number of true labels that give the expected error rate of the votes on a hundred items, by simulation of both."""
    source, rng = load(name), np.random.default_rng([*name.encode(), simulated])

    def error(n: int, of_votes: bool) -> float:
        rows = samples(source, n, n_sets, len(source.counts) if of_votes else len(source.y), rng)
        target: Any
        if of_votes:
            target = np.take(source.counts, rows, axis=0)
            target = sample_votes(source.posterior[rows], target.sum(axis=-1), source.alpha0, rng) if simulated else target
        else:
            target = truths_of(source, rows, simulated, rng)
        return float(learn(source, rows, target, simulated).by_set.mean())

    numbers = np.geomspace(30, 1100, 14).astype(int)
    errors = np.array([error(n, False) for n in numbers])
    return float(np.exp(np.interp(-error(ITEMS, True), -errors, np.log(numbers))))


def choose(source: Source, design: str, k: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], Array | None]:
    """Rows of k items for true labels: at random, those whose votes are closest to a tie, or more of these than of others."""
    if design == "random":
        return rng.choice(len(source.y), k, replace=False), None
    share = source.counts[:, 0] / source.counts.sum(axis=1)
    contested = share * (1 - share)
    if design == "contested":
        return np.lexsort([rng.random(len(share)), -contested])[:k], None
    rows, inclusion = choose_for_truth(0.05 + contested, k, rng)
    return rows, np.r_[inclusion, np.full(len(source.y) - len(inclusion), np.nan)]


def predict(
    name: str, simulated: bool, design: str, k: int, rng: np.random.Generator
) -> tuple[dict[str, float], WorthOfVotes, WorthOfVotes]:
    """What is true, and what one draw of k true labels predicts: of the votes in hand, and of those on a hundred items."""
    source = load(name)
    n = len(source.counts)
    rows, inclusion = choose(source, design, k, rng)
    counts, y = source.counts, source.y
    if simulated:
        counts = sample_votes(source.posterior[:n], counts.sum(axis=1), source.alpha0, rng)
        y = truths_of(source, np.arange(len(y)), True, rng)
    rule = fit_logistic(source.X[:n], counts)
    positive = rule.predict(source.X) == 1
    if simulated:
        error = float(np.where(positive, source.posterior[:, 1], source.posterior[:, 0]).mean())
        floor, parts = 0.0, (0.0, 1.0, 0.0)
    else:
        error = float((positive != y).mean())
        chance = np.where(positive, source.posterior[:, 1], source.posterior[:, 0])
        floor = float((chance - source.posterior.min(axis=1)).mean())
        lean, scale, *tilts = coordinates(source.X[:n], rule.coef)[1] @ fit_logistic(source.X, source.y).coef
        parts = float(lean), float(scale), float(np.linalg.norm(tilts))
    items = np.union1d(np.arange(n), rows)
    counts = np.vstack([counts, np.zeros((len(y) - n, 2))])
    truth = np.full(len(y), np.nan)
    truth[rows] = y[rows]
    inclusion = None if inclusion is None else inclusion[items]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruthWarning)
        arguments = source.X[items], counts[items], truth[items]
        in_hand = worth_of_votes(*arguments, inclusion=inclusion, rng=rng)
        hundred = worth_of_votes(*arguments, inclusion=inclusion, n_items=ITEMS, rng=rng)
    return (
        {
            "error": error,
            "floor": floor,
            "number": equal_number(name, simulated),
            "counted": float((positive[rows] != y[rows]).mean()),
            **dict(zip(PARTS, parts, strict=True)),
        },
        in_hand,
        hundred,
    )


def cell(name: str, simulated: bool, design: str, k: int, seed: int) -> dict[str, float]:
    """Sums over the draws: intervals that hold the truth, squared errors in points, and ends of the equal number, in logs."""
    rng = np.random.default_rng([*f"{name} {design}".encode(), simulated, k, seed])
    found = [predict(name, simulated, design, k, rng) for _ in range(DRAWS)]
    m, alpha0 = load(name).counts.sum(axis=1).mean(), load(name).alpha0
    promised = ITEMS * m * (1 + alpha0) / (m + alpha0)

    def held(pairs: list[tuple[float, Estimate]]) -> int:
        return sum(low - 1e-12 <= truth <= high + 1e-12 for truth, (_, low, high) in pairs)

    numbers = [hundred.equal_number for _, _, hundred in found]
    return {
        "error": float(np.mean([truth["error"] for truth, _, _ in found])),
        "error_held": held([(truth["error"], told.error) for truth, told, _ in found]),
        "error_square": sum(1e4 * (told.error.value - truth["error"]) ** 2 for truth, told, _ in found),
        "counted_square": sum(1e4 * (truth["counted"] - truth["error"]) ** 2 for truth, _, _ in found),
        "floor": found[0][0]["floor"],
        "floor_held": held([(truth["floor"], told.floor) for truth, told, _ in found]),
        "floor_value": sum(told.floor.value for _, told, _ in found),
        **{f"{part}_held": held([(truth[part], getattr(told, part)) for truth, told, _ in found]) for part in PARTS},
        "number": found[0][0]["number"],
        "number_held": held([(truth["number"], hundred.equal_number) for truth, _, hundred in found]),
        "log_low": float(np.sum(np.log([number.low for number in numbers]))),
        "log_high": float(np.sum(np.log([number.high for number in numbers]))),
        "refuted": sum(number.high < promised for number in numbers),
    }
