"""Whom a search for faults accuses: of honest tables, up to 250 in a row, and of tables with faults, up to 25 in a row."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from softlabel.labellers.exchangeable import Array, Panel, standardise
from softlabel.labellers.search import Search

ACCUSE_NOBODY = {"no sign", "guesses by all", "square missing"}


@dataclass
class Table:
    """Votes before they are counted: who votes on which item (n, m), the probability of a positive vote, and features."""

    X: Array
    eta: Array
    who: NDArray[np.int64]
    asked: NDArray[np.bool_]
    share: float
    alpha0: float
    rng: np.random.Generator
    chance: Array = field(default_factory=lambda: np.zeros(0))  # (n,) of a positive vote
    y: Any = None  # (n, m)
    bad: dict[str, list[int]] = field(default_factory=dict)  # annotators by what they are to be called
    kinds: set[str] = field(default_factory=set)  # what else is to be found
    side: set[int] = field(default_factory=set)  # of two who contradict each other, one

    @property
    def n_annotators(self) -> int:
        return int(self.who.max()) + 1

    def by(self, annotators: Any) -> NDArray[np.bool_]:
        return np.isin(self.who, annotators)

    def search(self) -> Any:
        """All findings."""
        names = [f"x{k + 1}" for k in range(self.X.shape[1])]
        item = np.broadcast_to(np.arange(len(self.who))[:, None], self.who.shape)[self.asked]
        y = np.asarray(self.y[self.asked], float)
        panel = Panel(item, self.who[self.asked], y, standardise(self.X), self.n_annotators)
        search = Search(panel, pd.Index(range(self.n_annotators)), names, self.rng)
        search.run()
        return search.found

    def frames(self) -> tuple[pd.DataFrame, Array]:
        """Votes and features for :func:`examine_labellers`."""
        item = np.broadcast_to(np.arange(len(self.who))[:, None], self.who.shape)
        votes = pd.DataFrame({"item": item[self.asked], "annotator": self.who[self.asked], "label": self.y[self.asked]})
        return votes, self.X


def slopes(p: int) -> Array:
    """Of length 2, in the first three directions."""
    beta = np.zeros(p)
    beta[:3] = np.array([1.0, -1.0, 0.5])[:p]
    return 2 * beta / np.linalg.norm(beta)


@cache
def intercept(share: float) -> float:
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    return float(brentq(lambda b: weight @ expit(b + 2 * z) / weight.sum() - share, -20, 20))


def draw(annotators: int, votes: str, n: int, p: int, share: float, alpha0: float, rng: np.random.Generator) -> Table:
    """An honest table."""
    X = rng.normal(size=(n, p))
    eta = intercept(share) + X @ slopes(p)
    m = int(votes) if votes.isdigit() else 5
    who = rng.permuted(np.tile(np.arange(annotators), (n, 1)), axis=1)[:, :m]
    numbers = np.full(n, m)
    if votes == "1 to 5":
        numbers = rng.integers(1, 6, n)
    elif votes == "harder":
        numbers = np.where(np.abs(eta) < np.median(np.abs(eta)), 5, 2)
    table = Table(X, eta, who, np.arange(m) < numbers[:, None], share, alpha0, rng)
    cast(table, expit(eta))
    return table


def cast(table: Table, tau: Array) -> None:
    alpha0 = min(table.alpha0, 1e12)
    table.chance = table.rng.beta(alpha0 * tau, alpha0 * (1 - tau))
    table.y = table.rng.random(table.who.shape) < table.chance[:, None]


def reverse(table: Table, *who: int) -> None:
    table.y ^= table.by(who)
    table.bad.setdefault("reversed", []).extend(who)


def guess(table: Table, *who: int, rate: float = 0.5) -> None:
    table.y = np.where(table.by(who), table.rng.random(table.y.shape) < rate, table.y)
    table.bad.setdefault("guessing", []).extend(who)


def lean(table: Table, who: int) -> None:
    with np.errstate(divide="ignore"):
        chance = expit(logit(table.chance) + 1)[:, None]
    table.y = np.where(table.by(who), np.asarray(table.rng.random(table.y.shape) < chance), table.y)
    table.bad.setdefault("leans", []).append(who)


def copy(table: Table, who: int, of: int) -> None:
    """Nine votes in ten are those of another."""
    original = np.any(np.asarray(table.by(of) & table.y), axis=1)[:, None]
    table.y = np.where(table.by(who) & (table.rng.random(table.y.shape) < 0.9), original, table.y)
    table.bad.setdefault("copies", []).extend([who, of])


def contradict(table: Table, *who: int) -> None:
    table.y ^= table.by(who)
    table.bad["contradiction"] = list(range(table.n_annotators))
    table.side = set(who)


def guess_all(table: Table, share: float) -> None:
    table.y = np.where(table.rng.random(table.y.shape) < share, table.rng.random(table.y.shape) < 0.5, table.y)
    table.kinds.add("guesses by all")


def ask_again(table: Table, by: int | None, always: bool) -> None:
    """A third vote where two disagree, by somebody else."""
    n = len(table.who)
    if by is None:
        third = (table.who.sum(axis=1) + 1 + table.rng.integers(0, table.n_annotators, n)) % table.n_annotators
        for _ in range(3):  # nobody twice
            third = np.where((table.who == third[:, None]).any(axis=1), (third + 1) % table.n_annotators, third)
    else:
        table.who = np.tile([k for k in range(3) if k != by], (n, 1))
        third = np.full(n, by)
    again = (table.y[:, 0] != table.y[:, 1]) & (always | (table.rng.random(n) < 0.8))
    table.who = np.column_stack([table.who, third])
    table.asked = np.column_stack([table.asked, again])
    table.y = np.column_stack([table.y, (table.rng.random(n) < table.chance) ^ np.isin(third, table.bad.pop("reversed", []))])
    table.kinds.add("asked again")  # and nobody is to be accused


def vote_as_feature(table: Table, noise: float = 0.0) -> None:
    vote = (table.y & table.by(0)).any(axis=1)
    table.X = np.column_stack([table.X, vote + noise * table.rng.normal(size=len(vote))])
    table.kinds.add("feature of one" if noise else "vote as feature")


def consensus(table: Table) -> None:
    share = table.y.mean(axis=1)
    table.X = np.column_stack([table.X, share + 0.1 * table.rng.normal(size=len(share))])
    table.kinds.add("consensus as feature")


def four_times(table: Table) -> None:
    """A quarter of the items, four times each, hardly changed."""
    n = len(table.who) // 4
    of = np.repeat(np.arange(n), 4)
    table.X = table.X[of] + 0.001 * table.rng.normal(size=(4 * n, table.X.shape[1]))
    table.chance = table.chance[of]
    table.who, table.asked = table.who[: 4 * n], table.asked[: 4 * n]
    table.y = table.rng.random(table.who.shape) < table.chance[:, None]
    table.kinds.add("repeated items")


def miss(table: Table) -> None:
    table.X = table.X[:, 1:]


def embed(table: Table) -> None:
    """Many features that are mixtures of ten, with noise."""
    p = table.X.shape[1]
    table.X = table.X[:, :10] @ table.rng.normal(size=(10, p)) + table.rng.normal(size=table.X.shape)


def bend(table: Table) -> None:
    cast(table, expit(table.eta + 0.7 * (table.X[:, 0] ** 2 - 1)))
    table.kinds.add("square missing")


def expert(table: Table) -> None:
    truth = table.rng.random(len(table.eta)) < expit(table.eta)
    table.y = truth[:, None] ^ (table.rng.random(table.who.shape) < 0.03)


def differ(table: Table) -> None:
    """From half as bold as the item's own log-odds to twice as bold."""
    with np.errstate(divide="ignore"):
        eta = logit(table.chance)[:, None] * np.array([0.5, 0.75, 1.0, 1.5, 2.0])[table.who]
    table.y = table.rng.random(table.y.shape) < expit(eta)


def of_crowd(table: Table, guessing: float, reversed_: float) -> None:
    order = table.rng.permutation(table.n_annotators)
    a, b = (round(share * len(order)) for share in (guessing, guessing + reversed_))
    guess(table, *map(int, order[:a]))
    if b > a:
        reverse(table, *map(int, order[a:b]))


def always_guess(table: Table) -> None:
    """All votes by guess, at the rate of the positive class."""
    guess(table, *range(table.n_annotators), rate=table.share)
    table.bad.clear()
    table.kinds.add("no sign")


# Annotators, items' votes ("1 to 5": at random; "harder": more where the probability is near one half), items, features.
ALL = [(share, alpha0) for share in (0.5, 0.02) for alpha0 in (0.5, 5.0, np.inf)]
HONEST: list[tuple[tuple[Any, ...], list[tuple[float, float]]]] = [
    ((2, "1", 500, 3), ALL),
    *[((2, "2", n, 2), ALL) for n in (25, 100)],
    *[((3, "3", n, 2), ALL) for n in (25, 100)],
    *[((5, "5", n, p), ALL) for n, p in ((25, 2), (100, 2), (100, 20), (500, 3))],
    *[((J, f"{J}", 1000, 3), ALL[k::2]) for J, k in ((2, 0), (3, 1), (5, 0))],
    ((8, "1 to 5", 500, 3), ALL[1::2]),
    ((8, "harder", 500, 3), ALL[::2]),
    ((30, "5", 500, 3), ALL[::2]),
    ((50, "5", 100, 3), [ALL[2], ALL[4]]),
    ((50, "5", 1000, 3), [ALL[1], ALL[5]]),
    ((300, "5", 300, 3), [ALL[1]]),
    ((300, "5", 1000, 3), [ALL[2], ALL[3]]),
    ((300, "1 to 5", 1000, 3), [ALL[0]]),
    ((5, "5", 1000, 200), [ALL[1], ALL[5]]),
]
# Items, features, share of the positive class, alpha0.
USUAL = [(n, 3, share, alpha0) for n, share in ((500, 0.5), (1000, 0.05)) for alpha0 in (0.5, 5.0, np.inf)]
EVEN, SMALL, WIDE = USUAL[:3], [(100, 3, 0.5, 5.0)], [(1000, 200, 0.5, 5.0)]
IN_CROWDS = [(3000, 3, 0.5, alpha0) for alpha0 in (0.5, 5.0, np.inf)]
WITH_FAULTS: dict[str, tuple[int, str, list[Any], list[Callable[[Table], None]]]] = {
    "all guess": (5, "5", [*EVEN[:1], *USUAL[3:4], *SMALL, *WIDE], [always_guess]),
    "one of 5 reversed": (5, "5", USUAL + SMALL + WIDE, [lambda t: reverse(t, 0)]),
    "one of 5 guesses": (5, "5", EVEN + SMALL + WIDE, [lambda t: guess(t, 0)]),
    "one of 5 leans": (5, "5", EVEN + SMALL, [lambda t: lean(t, 0)]),
    "one of 5 always says yes": (5, "5", EVEN, [lambda t: guess(t, 0, rate=1.0)]),
    "two contradict": (2, "2", USUAL + SMALL, [lambda t: contradict(t, 0)]),
    "two of 4 against two": (4, "4", EVEN, [lambda t: contradict(t, 0, 1)]),
    "three of 5 reversed": (5, "5", USUAL, [lambda t: contradict(t, 0, 1, 2)]),
    "one of 5 copies": (5, "5", EVEN + SMALL, [lambda t: copy(t, 0, 1)]),
    "third vote on disagreement, at random": (8, "2", EVEN + SMALL, [lambda t: ask_again(t, None, True)]),
    "third vote on disagreement, by one": (3, "2", EVEN + SMALL, [lambda t: ask_again(t, 2, True)]),
    "third vote on most disagreements": (8, "2", EVEN, [lambda t: ask_again(t, None, False)]),
    "vote as feature": (5, "5", USUAL + SMALL, [vote_as_feature]),
    "vote and noise as feature": (5, "5", EVEN, [lambda t: vote_as_feature(t, 0.5)]),
    "consensus as feature": (5, "5", EVEN, [consensus]),
    "40% of votes guesses": (5, "5", [(n, *c[1:]) for n in (500, 1000) for c in EVEN[1:]], [lambda t: guess_all(t, 0.4)]),
    "2% of votes guesses": (5, "5", [(5000, 3, 0.012, 5.0)], [lambda t: guess_all(t, 0.02)]),
    "40% of 300 guess": (300, "5", IN_CROWDS, [lambda t: of_crowd(t, 0.4, 0.0)]),
    "20% of 300 guess, 10% reversed": (300, "5", IN_CROWDS, [lambda t: of_crowd(t, 0.2, 0.1)]),
    "items four times": (5, "5", EVEN, [four_times]),
    "square missing": (5, "5", EVEN[1:], [bend]),
    "all bold": (5, "5", EVEN, [lambda t: cast(t, expit(2 * t.eta))]),
    "all timid": (5, "5", EVEN, [lambda t: cast(t, expit(t.eta / 2))]),
    "experts": (5, "5", [EVEN[2], USUAL[5]], [expert]),
    "skills differ": (5, "5", EVEN, [differ]),
    "one reversed, one guesses": (7, "7", EVEN, [lambda t: reverse(t, 0), lambda t: guess(t, 1)]),
    "one guesses, one copies": (7, "7", EVEN, [lambda t: guess(t, 0), lambda t: copy(t, 1, 2)]),
    "one reversed, one leans": (7, "7", EVEN, [lambda t: reverse(t, 0), lambda t: lean(t, 1)]),
    "one reversed, one guesses, one copies": (
        7,
        "7",
        EVEN,
        [lambda t: reverse(t, 0), lambda t: guess(t, 1), lambda t: copy(t, 2, 3)],
    ),
    "one reversed, vote as feature": (5, "5", EVEN, [vote_as_feature, lambda t: reverse(t, 1)]),
    "one reversed, items four times": (5, "5", EVEN, [four_times, lambda t: reverse(t, 0)]),
    "one copies, consensus as feature": (5, "5", EVEN, [lambda t: copy(t, 0, 1), consensus]),
    "one reversed, third vote on disagreement": (8, "2", EVEN, [lambda t: reverse(t, 0), lambda t: ask_again(t, None, True)]),
    "all guess, vote as feature": (5, "5", EVEN[:1], [always_guess, vote_as_feature]),
    "one guesses, 40% of votes guesses": (5, "5", EVEN[1:], [lambda t: guess_all(t, 0.4), lambda t: guess(t, 0)]),
}
FAULTY = {name: [(J, votes, *kind) for kind in kinds] for name, (J, votes, kinds, _) in WITH_FAULTS.items()}
FAULTS = {name: faults for name, (*_, faults) in WITH_FAULTS.items()}
FAULTS |= {"honest": [], "honest, a feature missing": [miss], "honest, embeddings": [embed]}
NAMES = ("table", "annotators", "votes", "n", "p", "share", "alpha0", "seed")
KINDS = [("honest", *kind, *more) for kind, several in HONEST for more in several]
KINDS += [("honest, a feature missing", 5, "5", 500, 3, *ALL[k]) for k in (1, 5)]
KINDS += [("honest, embeddings", 5, "5", 1000, 200, *ALL[k]) for k in (1, 3)]
KINDS += [(name, *kind) for name, kinds in FAULTY.items() for kind in kinds]
CELLS = [dict(zip(NAMES, (*kind, seed))) for kind in KINDS for seed in range(3 if kind[4] == 200 else 4)]


def tables_of(table: str, annotators: int, p: int) -> int:
    """How many are drawn for a row."""
    if table.startswith("honest"):
        return 100 if p == 200 else 250
    return 10 if annotators == 300 else 25


def judge(table: Table, found: Any) -> dict[str, float]:
    """Whether all faults were found (without any: nothing), how many good annotators were accused, and what else was said."""
    bad = {who for names in table.bad.values() for who in names}
    crowd = table.n_annotators > 30
    accusing = [f for f in found if f.kind not in ACCUSE_NOBODY]
    accused = {who for f in accusing for who in f.who if f.feature is None}
    said = {(f.kind, who) for f in found for who in f.who}
    wanted = {(kind, who) for kind, names in table.bad.items() for who in names}
    kinds = {f.kind for f in found}
    complete = table.kinds | set(table.bad) <= kinds and (crowd or wanted <= said)
    for f in found:
        smaller = set(f.who[len(f.who) - round(f.share * table.n_annotators) :]) if f.kind == "contradiction" else set()
        complete &= f.kind != "contradiction" or table.side in (smaller, set(f.who) - smaller)
        complete &= f.kind != "leans" or f.size > 0
    strange = kinds - table.kinds - set(table.bad)
    complete &= bool(table.kinds or table.bad) or not strange - ACCUSE_NOBODY
    sizes = {kind: [f.share for f in found if f.kind == kind] for kind in ("guessing", "guesses by all")}
    size = sizes["guessing" if crowd else "guesses by all"]
    named = len(wanted & said) / len(wanted) if crowd and wanted else float("nan")
    return {
        "right": complete,
        "good_accused": len(accused - bad),
        "accused": bool(strange - ACCUSE_NOBODY),
        "guesses": "guesses by all" in strange,
        "squares": "square missing" in strange,
        "no_sign": "no sign" in kinds,
        "named": named,
        "size": size[0] if size else float("nan"),
    }


def cell(
    table: str, annotators: int, votes: str, n: int, p: int, share: float, alpha0: float, seed: int, tables: int | None = None
) -> dict[str, float]:
    """Sums over the tables of what :func:`judge` says; ``named`` and ``size`` are means where there is one."""
    tables = tables or tables_of(table, annotators, p)
    kind = [*table.encode(), annotators, *votes.encode(), n, p, *np.array([share, alpha0]).view(np.uint64), seed]
    rng = np.random.default_rng(kind)
    answers: list[dict[str, float]] = []
    while len(answers) < tables:
        drawn = draw(annotators, votes, n, p, share, alpha0, rng)
        for fault in FAULTS[table]:
            fault(drawn)
        if drawn.y[drawn.asked].any():
            answers.append(judge(drawn, drawn.search()))
    answer = pd.DataFrame(answers).astype(float)
    means = {name: float(answer.pop(name).mean()) for name in ("named", "size")}
    return {"tables": tables, **{str(name): int(total) for name, total in answer.sum().items()}, **means}
