"""All faults of votes looked for one after the other, and what to make of them together."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import softlabel.labellers.annotator_faults as annotator_faults  # `from ... import` would bring more to a study
import softlabel.labellers.feature_faults as feature_faults
from softlabel.labellers.exchangeable import (
    Panel,
    Prediction,
    Slopes,
    agreement_weights,
    deviation,
    follow,
    of_others,
    predict,
)

SIGN = 0.005  # chance, if labels mean nothing, below which features or agreement are a sign that they do
NOTHING = 0.05  # above which they are none, where a weak sign would have a chance below SHOWN
SHOWN = 0.001
# Chance of each step to accuse anybody, or what was done with the votes, if annotators are interchangeable: .01 together.
LEVELS = {
    "asked again": 0.001,
    "vote as feature": 0.0005,
    "camps": 0.001,
    "crowd": 0.001,  # twice: for agreement and lean
    "agreement": 0.0015,
    "lean": 0.0015,
    "copies": 0.0015,
    "feature of one": 0.0005,
    "consensus": 0.0005,
}
OF_THE_MEAN = 0.005  # the same of each of the two tests of the model of the mean, which accuse nobody


class Seen(NamedTuple):
    """A finding before it is put into words, as a case of its kind and with the facts that these words need."""

    kind: str
    who: tuple[Any, ...]
    feature: str | None
    size: float
    share: float
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

    def add(
        self,
        kind: str,
        pvalue: float,
        who: Iterable[int] = (),
        *,
        case: str = "",
        feature: int | None = None,
        size: float = np.nan,
        share: float = np.nan,
        **facts: Any,
    ) -> None:
        """A finding; ``share`` is that of the annotators whom it is about unless it is another."""
        names, name = self.named(who), None if feature is None else self.names[feature]
        share = len(names) / self.n if names and np.isnan(share) else share
        self.found.append(Seen(kind, names, name, float(size), float(share), float(min(pvalue, 1.0)), case, facts))

    def named(self, who: Iterable[int]) -> tuple[Any, ...]:
        return tuple(self.annotators[list(who)].tolist())

    @property
    def core(self) -> Panel:
        return self.panel.without(list(self.out))

    @property
    def n(self) -> int:
        """Annotators with a vote."""
        return int((self.panel.cast > 0).sum())

    def prediction(self, out: Iterable[int] | None = None) -> Prediction:
        """What features say by the votes of all but some annotators, fitted once."""
        key = frozenset(self.out if out is None else out)
        if key not in self.predicted:
            self.predicted[key] = predict(self.panel.without(key))
        return self.predicted[key]

    def run(self) -> None:
        """Whatever makes votes no longer interchangeable comes first: then nobody is accused for it."""
        self.repeated_items()
        if self.panel.m.max() < 2:
            self.not_looked_at.append("annotators, as no item has two votes")
        elif self.n == 1:  # with two votes on an item
            self.not_looked_at.append("annotators, as votes came counted")
        elif self.asked_again():
            return
        else:
            self.vote_as_feature()
            if self.n > annotator_faults.MOST_PAIRED:
                self.crowd()
            if self.n > annotator_faults.MOST_PAIRED or not self.contradiction():
                self.one_by_one()
                self.copies()
                self.features_of_votes()
        if not self.no_sign():
            self.shape_of_the_mean()

    # -------------------------------------------------------------- steps

    def repeated_items(self) -> None:
        x = self.panel.x
        if share := feature_faults.near_copies(x, self.rng):
            self.add("repeated items", feature_faults.RARE, share=share)
        elif x.shape[1] and not feature_faults.is_continuous(x):
            self.not_looked_at.append(
                "items that are copies, as no two features, unless one is a function of the other, have a value of their own "
                "for nearly each item"
            )

    def asked_again(self) -> bool:
        found = annotator_faults.asked_again(self.panel, self.prediction(), LEVELS["asked again"])
        if found is None:
            return False
        share = float((self.panel.m[self.panel.m > 1] > found.fewest).mean())
        self.add("asked again", found.pvalue, case="" if found.always else "with exceptions", share=share, fewest=found.fewest)
        return True

    def vote_as_feature(self) -> None:
        while (leak := feature_faults.vote_as_feature(self.panel, LEVELS["vote as feature"])) is not None:
            self.add("vote as feature", leak.pvalue, [leak.who], feature=leak.feature, size=leak.correlation)
            self.names.pop(leak.feature)
            self.panel = self.panel.without_feature(leak.feature)
            self.predicted.clear()

    def contradiction(self) -> bool:
        """Whether there are two camps, of which none is clearly the smaller."""
        level = LEVELS["camps"] / 2 if self.n == 2 else LEVELS["camps"]
        camps = annotator_faults.camps(self.panel, level)
        if camps is None and self.n == 2 and (pvalue := annotator_faults.opposed(self.panel)) < level:
            first, second = map(int, np.flatnonzero(self.panel.cast))
            self.contradict([first], [second], 2 * pvalue)
            return True
        if camps is None:
            return False
        one, other = (list(map(int, side)) for side in (camps.one, camps.other))
        if camps.minority >= annotator_faults.MINORITY:
            self.contradict(one, other, camps.pvalue)
            return True
        slopes = self.slopes(other)
        against = [who for who in other if annotator_faults.kind_of(slopes, who) == "reversed"]
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
        phi, _ = annotator_faults.correlations(self.panel)
        self.add(
            "contradiction",
            pvalue,
            [*one, *other],
            case="by a majority" if len(one) > len(other) > 1 else "",
            size=phi[np.ix_(one, other)].mean(),
            share=len(other) / self.n,
            one=self.named(one),
            other=self.named(other),
        )

    def accuse(self, kind: str, who: int, size: float, pvalue: float, case: str = "", **facts: Any) -> None:
        self.out[who] = kind
        self.add(kind, pvalue, [who], case=case, size=size, **facts)

    def crowd(self) -> None:
        """What a crowd is made of does not keep its good workers from being compared."""
        chances = annotator_faults.crowd_differs(self.panel, self.prediction(), self.rng)
        if min(chances) >= LEVELS["crowd"]:
            return
        crowd = annotator_faults.crowd(self.panel)
        kinds = crowd.posterior.argmax(axis=1)
        for column, kind in ((1, "guessing"), (2, "reversed")):
            self.out |= dict.fromkeys(map(int, np.flatnonzero(kinds == column)), kind)
            who, share = crowd.named(column), float(crowd.shares[column])
            if not len(who) and share < annotator_faults.SOME:
                continue
            case = "in a crowd" if len(who) else "in a crowd, nobody surely"
            self.add(kind, min(chances), who, case=case, share=share, named=len(who), all=self.n, sure=annotator_faults.SURELY)
        if not self.out and chances[1] < LEVELS["crowd"]:
            self.add("leans", chances[1], case="in a crowd")

    def one_by_one(self) -> None:
        odd, last = annotator_faults.one_by_one(self.core, self.prediction(), LEVELS["agreement"], LEVELS["lean"])
        self.predicted[frozenset([*self.out, *(o.who for o in odd)])] = last
        against = [*self.against, *(o.who for o in odd if o.kind == "reversed")]
        others = [int(w) for w in np.flatnonzero(self.panel.cast) if w not in self.out and w not in {o.who for o in odd}]
        # Reversed beside whom? Not beside a majority, if they are as many as a camp.
        camps = others and 0 < annotator_faults.MINORITY * len(against + others) <= len(against)
        if camps and self.n <= annotator_faults.MOST_PAIRED:
            self.contradict(others, against, min([o.pvalue for o in odd] + list(self.against.values())))
        else:
            slopes = self.slopes([*self.out, *(o.who for o in odd)])
            for who, pvalue in self.against.items():
                self.accuse("reversed", who, float(slopes.slope[who]), pvalue)
        for o in odd:
            if o.who in self.out:
                continue
            yes, others_yes = self.shares(o.who)
            if o.kind == "leans":
                facts = {"how": "more" if o.lean > 0 else "less", "distance": abs(o.lean), "others": others_yes}
                self.accuse("leans", o.who, o.lean, o.pvalue, "one of two" if self.n == 2 else "", yes=yes, **facts)
            else:
                self.accuse(o.kind, o.who, o.slope, o.pvalue, yes=yes)

    def shares(self, who: int) -> tuple[float, float]:
        """Shares of positive votes of one annotator, and of all others on the same items."""
        panel, mine = self.panel, self.panel.annotator == who
        m, s = panel.m[panel.item] - 1, panel.s[panel.item] - panel.y
        there = mine & (m > 0)
        return float(panel.y[mine].mean()), float((s[there] / m[there]).mean())

    def copies(self) -> None:
        if self.panel.m.max() < 3:
            self.not_looked_at.append("copying, as no item has three votes: of two that differ, each is no surprise")
            return
        for found in annotator_faults.copies(self.core, LEVELS["copies"]):
            self.add("copies", found.pvalue, found.who, size=found.excess)
            self.out |= dict.fromkeys(map(int, found.who[1:]), "copies")  # they count as one

    def features_of_votes(self) -> None:
        if not self.panel.x.shape[1]:
            self.not_looked_at.append("features made of votes, as there are no features")
            return
        core = self.core
        leak = feature_faults.tilted_feature(core, self.prediction(), LEVELS["feature of one"])
        # Votes repel each other because of one's, too; if the feature knows all of them, also those of the others do.
        gone = [*self.out, *([leak.who] if leak else [])]
        others = self.panel.without(gone)
        chance = feature_faults.consensus_as_feature(others, self.prediction(gone), LEVELS["consensus"])
        if chance is not None:
            k, correlation = feature_faults.nearest_to_shares(core)
            self.add("consensus as feature", chance, feature=k, size=correlation)
        elif leak is not None:
            self.add("feature of one", leak.pvalue, [leak.who], feature=leak.feature, size=leak.correlation)

    def no_sign(self) -> bool:
        """Whether neither features nor agreement are a sign that labels mean anything."""
        signal = feature_faults.signal(self.panel)
        seen = [p for p in signal if not np.isnan(p)]
        if not seen or min(seen) < SIGN or {"contradiction", "reversed"} & {f.kind for f in self.found}:
            return False
        if not feature_faults.would_show(self.panel, SHOWN):
            self.not_looked_at.append("whether labels mean anything, as votes are too few to tell")
            return False
        if min(seen) < NOTHING:
            self.not_looked_at.append(f"whether labels mean anything, as signs of it are not clear (p = {min(seen):.2g})")
            return False
        case = "by agreement" if np.isnan(signal.features) else "by features" if np.isnan(signal.agreement) else ""
        self.add("no sign", min(seen), case=case, **signal._asdict())
        return True

    def shape_of_the_mean(self) -> None:
        core = self.core
        if "contradiction" in self.out.values():
            self.not_looked_at.append("guesses by all and missing squares, as long as two sides contradict each other")
        elif "repeated items" in (f.kind for f in self.found):
            self.not_looked_at.append("guesses by all and missing squares, as long as items are there several times")
        elif not feature_faults.can_be_tested(core):
            if self.panel.x.shape[1]:
                self.not_looked_at.append(
                    f"guesses by all and missing squares, as there are fewer than {feature_faults.ENOUGH} items of the rarer "
                    "class for each coefficient"
                )
        else:
            prediction = self.prediction()
            guessed = feature_faults.guesses(core, prediction, OF_THE_MEAN)
            square = feature_faults.missing_square(core, prediction, OF_THE_MEAN)
            if guessed:
                self.add("guesses by all", guessed.pvalue, share=guessed.share, yes=guessed.positive, no=guessed.negative)
            if square:
                case = "or guesses" if guessed else ""
                self.add("square missing", square.pvalue, case=case, feature=square.feature, size=square.size)

    # -------------------------------------------------------------- everybody

    def table(self) -> pd.DataFrame:
        """Each annotator beside the others, those who were accused beside all who were not."""
        panel = self.panel
        slopes = self.slopes(who for who, kind in self.out.items() if kind != "contradiction")
        agreement = deviation(panel, agreement_weights(panel, self.prediction(())))
        return pd.DataFrame(
            {
                "votes": panel.cast.astype(int),
                "positive": panel.total(panel.y) / np.maximum(panel.cast, 1),
                "finding": [", ".join(f.kind for f in self.found if who in f.who) for who in self.annotators],
                "z agreement": agreement.z,
                "z lean": deviation(panel, np.ones(len(panel.y))).z,
                "slope": slopes.slope,
                "slope error": slopes.slope_error,
                "lean": slopes.lean,
                "lean error": slopes.lean_error,
            },
            index=self.annotators.rename("annotator"),
        )
