"""Whom a search for faults accuses: of honest tables, a hundred in a row, and of tables with faults, twenty in a row."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from softlabel.exchangeable import Panel, standardise
from softlabel.labeller_search import Search
from softlabel.validation import Array
from softlabel.vote_models import sample_probabilities

ACCUSE_NOBODY = {"no sign", "guesses by all", "square missing"}

# Annotators, items' votes ("1 to 5": at random; "harder": more where the probability is near one half), items, features.
HONEST = [
    *[(2, "2", n, 2) for n in (25, 100, 1000)],
    *[(3, "3", n, 2) for n in (25, 100, 1000)],
    *[(5, "5", n, p) for n, p in ((25, 2), (100, 2), (100, 20), (500, 3), (1000, 3), (1000, 200))],
    (8, "1 to 5", 500, 3),
    (8, "harder", 500, 3),
    (30, "5", 500, 3),
    *[(50, "5", n, 3) for n in (100, 1000)],
    *[(300, "5", n, 3) for n in (300, 1000)],
    (300, "1 to 5", 1000, 3),
]
# Fault, annotators, votes an item, items, features, share of the positive class, alpha0.
USUAL = [(n, 3, share, alpha0) for n, share in ((500, 0.5), (1000, 0.05)) for alpha0 in (0.5, 5.0, np.inf)]
SMALL = [(100, 3, 0.5, 5.0)]
FAULTY = {
    "all guess": [(5, "5", *c) for c in (*USUAL[:1], *USUAL[3:4], *SMALL)],
    "one of 5 reversed": [(5, "5", *c) for c in (*USUAL, *SMALL)],
    "one of 5 guesses": [(5, "5", *c) for c in (*USUAL[:3], *SMALL)],
    "one of 5 leans": [(5, "5", *c) for c in (*USUAL[:3], *SMALL)],
    "one of 5 always says yes": [(5, "5", *c) for c in USUAL[:3]],
    "two contradict": [(2, "2", *c) for c in (*USUAL, *SMALL)],
    "two of 4 against two": [(4, "4", *c) for c in USUAL[:3]],
    "three of 5 reversed": [(5, "5", *c) for c in USUAL],
    "one of 5 copies": [(5, "5", *c) for c in (*USUAL[:3], *SMALL)],
    "third vote on disagreement, at random": [(8, "2", *c) for c in (*USUAL[:3], *SMALL)],
    "third vote on disagreement, by one": [(3, "2", *c) for c in (*USUAL[:3], *SMALL)],
    "third vote on most disagreements": [(8, "2", *c) for c in USUAL[:3]],
    "vote as feature": [(5, "5", *c) for c in (*USUAL, *SMALL)],
    "vote and noise as feature": [(5, "5", *c) for c in USUAL[:3]],
    "consensus as feature": [(5, "5", *c) for c in USUAL[:3]],
    "40% of votes guesses": [(5, "5", n, *c[1:]) for n in (500, 1000) for c in USUAL[1:3]],
    "2% of votes guesses": [(5, "5", 4000, 3, 0.012, 5.0)],
    "40% of 300 guess": [(300, "5", 3000, 3, 0.5, alpha0) for alpha0 in (0.5, 5.0, np.inf)],
    "20% of 300 guess, 10% reversed": [(300, "5", 3000, 3, 0.5, alpha0) for alpha0 in (0.5, 5.0, np.inf)],
    "items four times": [(5, "5", *c) for c in USUAL[:3]],
    "square missing": [(5, "5", *c) for c in USUAL[1:3]],
    "all bold": [(5, "5", *c) for c in USUAL[:3]],
    "all timid": [(5, "5", *c) for c in USUAL[:3]],
    "experts": [(5, "5", *USUAL[2]), (5, "5", *USUAL[5])],
    "skills differ": [(5, "5", *c) for c in USUAL[:3]],
    "one reversed, one guesses": [(7, "7", *c) for c in USUAL[:3]],
    "one guesses, one copies": [(7, "7", *c) for c in USUAL[:3]],
    "one reversed, one leans": [(7, "7", *c) for c in USUAL[:3]],
    "one reversed, vote as feature": [(5, "5", *c) for c in USUAL[:3]],
    "one reversed, items four times": [(5, "5", *c) for c in USUAL[:3]],
    "one guesses, 40% of votes guesses": [(5, "5", *c) for c in USUAL[1:3]],
}
HONEST_TABLES, FAULTY_TABLES = 100, 20
NAMES = ("table", "annotators", "votes", "n", "p", "share", "alpha0", "seed")
CELLS = [
    dict(zip(NAMES, ("honest", annotators, m, n, p, share, alpha0, seed)))
    for annotators, m, n, p in HONEST
    for share in (0.5, 0.02)
    for alpha0 in (0.5, 5.0, np.inf)
    for seed in range(3 if p == 200 else 10)
]
CELLS += [dict(zip(NAMES, (name, *kind, seed))) for name, kinds in FAULTY.items() for kind in kinds for seed in range(6)]


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


def draw(annotators: int, votes: str, n: int, p: int, share: float, alpha0: float, rng: np.random.Generator) -> Table:
    """An honest table."""
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    intercept = brentq(lambda b: weight @ expit(b + 2 * z) / weight.sum() - share, -20, 20)
    X = rng.normal(size=(n, p))
    eta = intercept + X @ slopes(p)
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
    table.chance = sample_probabilities(np.column_stack([tau, 1 - tau]), table.alpha0, table.rng)[:, 0]
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


def guess_all(table: Table, share: float) -> None:
    table.y = np.where(table.rng.random(table.y.shape) < share, table.rng.random(table.y.shape) < 0.5, table.y)
    table.kinds.add("guesses by all")


def ask_again(table: Table, by: int | None, always: bool) -> None:
    """A third vote where two disagree, by somebody else."""
    n = len(table.who)
    if by is None:
        third = (table.who.sum(axis=1) + 1 + table.rng.integers(0, table.n_annotators, n)) % table.n_annotators
        for _ in range(2):  # nobody twice
            third = np.where((table.who == third[:, None]).any(axis=1), (third + 1) % table.n_annotators, third)
        third = np.where((table.who == third[:, None]).any(axis=1), (third + 1) % table.n_annotators, third)
    else:
        table.who = np.tile([k for k in range(3) if k != by], (n, 1))
        third = np.full(n, by)
    again = (table.y[:, 0] != table.y[:, 1]) & (always | (table.rng.random(n) < 0.8))
    table.who = np.column_stack([table.who, third])
    table.asked = np.column_stack([table.asked, again])
    table.y = np.column_stack([table.y, table.rng.random(n) < table.chance])
    table.kinds.add("asked again")


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


FAULTS: dict[str, tuple[Callable[[Table], None], ...]] = {
    "honest": (),
    "all guess": (always_guess,),
    "one of 5 reversed": (lambda t: reverse(t, 0),),
    "one of 5 guesses": (lambda t: guess(t, 0),),
    "one of 5 leans": (lambda t: lean(t, 0),),
    "one of 5 always says yes": (lambda t: guess(t, 0, rate=1.0),),
    "two contradict": (lambda t: contradict(t, 0),),
    "two of 4 against two": (lambda t: contradict(t, 0, 1),),
    "three of 5 reversed": (lambda t: contradict(t, 0, 1, 2),),
    "one of 5 copies": (lambda t: copy(t, 0, 1),),
    "third vote on disagreement, at random": (lambda t: ask_again(t, None, True),),
    "third vote on disagreement, by one": (lambda t: ask_again(t, 2, True),),
    "third vote on most disagreements": (lambda t: ask_again(t, None, False),),
    "vote as feature": (vote_as_feature,),
    "vote and noise as feature": (lambda t: vote_as_feature(t, 0.5),),
    "consensus as feature": (consensus,),
    "40% of votes guesses": (lambda t: guess_all(t, 0.4),),
    "2% of votes guesses": (lambda t: guess_all(t, 0.02),),
    "40% of 300 guess": (lambda t: of_crowd(t, 0.4, 0.0),),
    "20% of 300 guess, 10% reversed": (lambda t: of_crowd(t, 0.2, 0.1),),
    "items four times": (four_times,),
    "square missing": (bend,),
    "all bold": (lambda t: cast(t, expit(2 * t.eta)),),
    "all timid": (lambda t: cast(t, expit(t.eta / 2)),),
    "experts": (expert,),
    "skills differ": (differ,),
    "one reversed, one guesses": (lambda t: reverse(t, 0), lambda t: guess(t, 1)),
    "one guesses, one copies": (lambda t: guess(t, 0), lambda t: copy(t, 1, 2)),
    "one reversed, one leans": (lambda t: reverse(t, 0), lambda t: lean(t, 1)),
    "one reversed, vote as feature": (vote_as_feature, lambda t: reverse(t, 1)),
    "one reversed, items four times": (four_times, lambda t: reverse(t, 0)),
    "one guesses, 40% of votes guesses": (lambda t: guess_all(t, 0.4), lambda t: guess(t, 0)),
}


def judge(table: Table, found: Any) -> dict[str, float]:
    """Whether all faults were found, how many good annotators were accused, and what else was said that is not so."""
    bad = {who for names in table.bad.values() for who in names}
    crowd = table.n_annotators > 30
    accusing = [f for f in found if f.kind not in ACCUSE_NOBODY]
    accused = {
        who for f in accusing for who in f.who if f.kind not in ("vote as feature", "feature of one", "consensus as feature")
    }
    said = {(f.kind, who) for f in found for who in f.who}
    wanted = {(kind, who) for kind, names in table.bad.items() for who in names}
    kinds = {f.kind for f in found}
    complete = table.kinds <= kinds and (crowd or wanted <= said) and set(table.bad) <= kinds
    strange = kinds - table.kinds - set(table.bad)
    sizes = {kind: [f.size for f in found if f.kind == kind] for kind in ("guessing", "guesses by all")}
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
    tables = tables or (HONEST_TABLES if table == "honest" else FAULTY_TABLES)
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
