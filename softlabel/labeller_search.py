"""All faults of votes looked for one after the other, and what to make of them together."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from softlabel import feature_faults, labeller_faults
from softlabel.exchangeable import Panel, Prediction, Slopes, agreement_weights, deviation, follow, of_others, predict

NOTHING = 0.005  # chance, if labels mean nothing, above which neither features nor agreement are a sign that they do
# Chance of each step to accuse anybody, or what was done with the votes, if annotators are interchangeable: .01 together.
LEVELS = {
    "asked again": 0.001,
    "vote as feature": 0.0005,
    "camps": 0.0005,
    "crowd": 0.001,  # twice: for agreement and lean
    "agreement": 0.0015,
    "lean": 0.002,
    "copies": 0.0015,
    "feature of one": 0.0005,
    "consensus": 0.0005,
}
OF_FEATURES = ("vote as feature", "feature of one", "consensus as feature", "square missing")  # whose name comes first
OF_THE_MEAN = 0.003  # the same of each test of the model of the mean, which accuses nobody


class Seen(NamedTuple):
    """A fault: its kind, whom it is about, how large it is, its chance without any, and what else its words need."""

    kind: str
    who: tuple[Any, ...]
    size: float
    pvalue: float
    case: str
    facts: dict[str, Any]


class Search:
    """The steps; ``out`` are annotators who no longer count among the others, each with the kind of its finding."""

    def __init__(self, panel: Panel, annotators: "pd.Index[Any]", names: list[str], rng: np.random.Generator) -> None:
        self.panel, self.annotators, self.names, self.rng = panel, annotators, list(names), rng
        self.found: list[Seen] = []
        self.out: dict[int, str] = {}
        self.against: dict[int, float] = {}
        self.not_looked_at: list[str] = []
        self.predicted: dict[frozenset[int], Prediction] = {}

    def add(self, kind: str, who: Iterable[Any], size: float, pvalue: float, case: str = "", **facts: Any) -> None:
        self.found.append(Seen(kind, tuple(who), float(size), float(min(pvalue, 1.0)), case, facts))

    def add_feature(self, kind: str, feature: int, who: Iterable[int], size: float, pvalue: float) -> None:
        """One about a feature, whose name stands before those of the annotators."""
        name, annotators = self.names[feature], self.named(who)
        self.add(kind, (name, *annotators), size, pvalue, feature=name, annotators=annotators)

    def named(self, who: Iterable[int]) -> tuple[Any, ...]:
        return tuple(self.annotators[list(who)].tolist())

    @property
    def core(self) -> Panel:
        return self.panel.without(list(self.out))

    def prediction(self, out: Iterable[int] | None = None) -> Prediction:
        """What features say by the votes of all but some annotators, fitted once."""
        key = frozenset(self.out if out is None else out)
        if key not in self.predicted:
            self.predicted[key] = predict(self.panel.without(key), self.rng)
        return self.predicted[key]

    @property
    def is_crowd(self) -> bool:
        return int((self.panel.cast > 0).sum()) > labeller_faults.MOST_PAIRED

    def run(self) -> None:
        """Whatever makes votes no longer interchangeable comes first: then nobody is accused for it."""
        self.repeated_items()
        if self.panel.m.max() < 2:
            self.not_looked_at.append("annotators, as no item has two votes")
        elif self.asked_again():
            return
        else:
            self.vote_as_feature()
            if not (self.crowd() if self.is_crowd else self.contradiction()):
                self.one_by_one()
                self.copies()
                self.features_of_votes()
        if self.no_sign():
            return
        self.shape_of_the_mean()

    # -------------------------------------------------------------- steps

    def repeated_items(self) -> None:
        x = self.panel.x
        if share := feature_faults.near_copies(x, self.rng):
            self.add("repeated items", (), share, feature_faults.RARE)
        elif x.shape[1] and not feature_faults.is_continuous(x):
            self.not_looked_at.append("items that are copies, as all features have few values")

    def asked_again(self) -> bool:
        found = labeller_faults.asked_again(self.panel, self.prediction(), LEVELS["asked again"])
        if found is None:
            return False
        share = float((self.panel.m[self.panel.m > 1] > found.fewest).mean())
        case = "" if found.always else "with exceptions"
        self.add("asked again", (), share, found.pvalue, case, fewest=found.fewest)
        return True

    def vote_as_feature(self) -> None:
        while (leak := feature_faults.vote_as_feature(self.panel, LEVELS["vote as feature"])) is not None:
            self.add_feature("vote as feature", leak.feature, [leak.who], leak.correlation, leak.pvalue)
            self.names.pop(leak.feature)
            self.panel = self.panel.without_feature(leak.feature)
            self.predicted.clear()

    def contradiction(self) -> bool:
        """Whether there are two camps, of which none is clearly the smaller."""
        camps = labeller_faults.camps(self.panel, LEVELS["camps"])
        if camps is None:
            return False
        other = list(map(int, camps.other))
        if camps.minority >= labeller_faults.MINORITY:
            self.contradict(list(map(int, camps.one)), other, camps.pvalue)
            return True
        slopes = self.slopes(other)
        against = [who for who in other if labeller_faults.kind_of(slopes, who) == "reversed"]
        self.out |= dict.fromkeys(against, "reversed")
        self.against = dict.fromkeys(against, camps.pvalue)
        return False

    def slopes(self, out: Iterable[int]) -> Slopes:
        """How everybody follows those who are not out."""
        out = list(out)
        core = (self.panel.cast > 0) & np.isin(np.arange(self.panel.n_annotators), out, invert=True)
        return follow(self.panel, of_others(self.panel, self.prediction(out if core.any() else ()), core))

    def contradict(self, one: list[int], other: list[int], pvalue: float) -> None:
        self.out |= dict.fromkeys([*one, *other], "contradiction")
        share = len(other) / (len(one) + len(other))
        case = "by a majority" if len(one) > len(other) > 1 else ""
        sides = {"one": self.named(one), "other": self.named(other)}
        self.add("contradiction", self.named([*one, *other]), share, pvalue, case, **sides)

    def accuse(self, kind: str, who: int, size: float, pvalue: float, case: str = "", **facts: Any) -> None:
        self.out[who] = kind
        self.add(kind, self.named([who]), size, pvalue, case, **facts)

    def crowd(self) -> bool:
        """Always False: what a crowd is made of does not keep its good workers from being compared."""
        chances = labeller_faults.crowd_differs(self.panel, self.prediction(), self.rng)
        if min(chances) >= LEVELS["crowd"]:
            return False
        crowd = labeller_faults.crowd(self.panel, self.rng)
        kinds = crowd.posterior.argmax(axis=1)
        for column, kind in ((1, "guessing"), (2, "reversed")):
            self.out |= dict.fromkeys(map(int, np.flatnonzero(kinds == column)), kind)
            who = self.named(crowd.named(column))
            if not who and crowd.shares[column] < labeller_faults.SOME:
                continue
            facts = {"named": len(who), "all": len(self.annotators), "sure": labeller_faults.SURELY}
            case = "in a crowd" if who else "in a crowd, nobody surely"
            self.add(kind, who, crowd.shares[column], min(chances), case, **facts)
        if not self.out and chances[1] < LEVELS["crowd"]:
            self.add("leans", (), np.nan, chances[1], "in a crowd")
        return False

    def one_by_one(self) -> None:
        start = self.prediction()
        odd, last = labeller_faults.one_by_one(self.core, start, self.rng, LEVELS["agreement"], LEVELS["lean"])
        self.predicted[frozenset([*self.out, *(o.who for o in odd)])] = last
        against = [*self.against, *(o.who for o in odd if o.kind == "reversed")]
        others = [int(w) for w in np.flatnonzero(self.panel.cast) if w not in self.out and w not in {o.who for o in odd}]
        # Reversed beside whom? Not beside a majority, if they are as many as a camp.
        camps = not self.is_crowd and 0 < labeller_faults.MINORITY * len(against + others) <= len(against)
        if camps := camps and bool(others):
            self.contradict(others, against, min([o.pvalue for o in odd] + list(self.against.values())))
        slopes = self.slopes([*self.out, *(o.who for o in odd)]) if self.against and not camps else None
        for who, pvalue in self.against.items() if slopes else ():
            self.accuse("reversed", who, float(slopes.slope[who]), pvalue)
        for o in odd:
            if o.kind == "leans":
                how, alone = "more" if o.lean > 0 else "less", (self.panel.cast > 0).sum() == 2
                facts = {
                    "how": how,
                    "distance": abs(o.lean),
                    "share": self.share(o.who),
                    "others": self.share_of_others(o.who),
                }
                self.accuse("leans", o.who, o.lean, o.pvalue, "one of two" if alone else "", **facts)
            elif o.kind == "guessing":
                self.accuse("guessing", o.who, o.slope, o.pvalue, share=self.share(o.who))
            elif not camps:
                self.accuse("reversed", o.who, o.slope, o.pvalue)

    def share(self, who: int) -> float:
        return float(self.panel.y[self.panel.annotator == who].mean())

    def share_of_others(self, who: int) -> float:
        """Mean share of positive votes of all others on the items of one annotator."""
        panel, mine = self.panel, self.panel.annotator == who
        m, s = panel.m[panel.item] - 1, panel.s[panel.item] - panel.y
        there = mine & (m > 0)
        return float((s[there] / m[there]).mean())

    def copies(self) -> None:
        if self.panel.m.max() < 3:
            self.not_looked_at.append("copying, as no item has three votes: of two that differ, each is no surprise")
            return
        for found in labeller_faults.copies(self.core, LEVELS["copies"]):
            self.add("copies", self.named(found.who), found.excess, found.pvalue)

    def features_of_votes(self) -> None:
        if not self.panel.x.shape[1]:
            self.not_looked_at.append("features made of votes, as there are no features")
            return
        core, prediction = self.core, self.prediction()
        if not len(core.y):
            return
        if (leak := feature_faults.tilted_feature(core, prediction, LEVELS["feature of one"])) is not None:
            self.add_feature("feature of one", leak.feature, [leak.who], leak.correlation, leak.pvalue)
        elif found := feature_faults.consensus_as_feature(core, prediction, LEVELS["consensus"]):
            k, correlation = feature_faults.nearest_to_shares(core)
            self.add_feature("consensus as feature", k, [], correlation, found[1])

    def no_sign(self) -> bool:
        """Whether neither features nor agreement are a sign that labels mean anything."""
        signal = feature_faults.signal(self.panel)
        seen = [p for p in signal if not np.isnan(p)]
        if not seen or min(seen) < NOTHING or {"contradiction", "reversed"} & {f.kind for f in self.found}:
            return False
        case = "by agreement" if np.isnan(signal.features) else "by features" if np.isnan(signal.agreement) else ""
        self.add("no sign", (), min(seen), min(seen), case, **signal._asdict())
        return True

    def shape_of_the_mean(self) -> None:
        core = self.core
        if "contradiction" in self.out.values():
            self.not_looked_at.append("guesses by all and missing squares, as long as two sides contradict each other")
            return
        if not feature_faults.can_be_tested(core):
            if self.panel.x.shape[1]:
                self.not_looked_at.append(
                    f"guesses by all and missing squares, as there are fewer than {feature_faults.ENOUGH} items of the rarer "
                    "class for each coefficient"
                )
            return
        prediction = self.prediction()
        guessed = feature_faults.guesses(core, prediction, OF_THE_MEAN)
        square = feature_faults.missing_square(core, prediction, OF_THE_MEAN)
        if guessed:
            case = "or a square" if square else ""
            shares = {"yes": guessed.positive, "no": guessed.negative}
            self.add("guesses by all", (), guessed.share, guessed.pvalue, case, **shares)
        if square:
            self.add_feature("square missing", square[0], [], square[1], square[1])

    # -------------------------------------------------------------- everybody

    def table(self) -> pd.DataFrame:
        """Each annotator beside the others, those who were accused beside all who were not."""
        panel = self.panel
        slopes = self.slopes(who for who, kind in self.out.items() if kind != "contradiction")
        said = [", ".join(f.kind for f in self.found if who in f.who[f.kind in OF_FEATURES :]) for who in self.annotators]
        agreement = deviation(panel, agreement_weights(panel, self.prediction(())))
        return pd.DataFrame(
            {
                "votes": panel.cast.astype(int),
                "positive": panel.total(panel.y) / np.maximum(panel.cast, 1),
                "finding": said,
                "z agreement": agreement.z,
                "z lean": deviation(panel, np.ones(len(panel.y))).z,
                "slope": slopes.slope,
                "slope error": slopes.slope_error,
                "lean": slopes.lean,
                "lean error": slopes.lean_error,
            },
            index=self.annotators.rename("annotator"),
        )
