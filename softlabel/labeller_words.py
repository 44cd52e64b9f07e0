"""The words for each finding: what was seen, how large it is, and what votes cannot tell."""

CANNOT_SAY = (
    "One side uses the labels reversed, or answers another question; the votes cannot say which: a few true labels would."
)
NOTHING_ADDED = (
    "More votes of this kind add nothing that can be seen. Annotators may guess, features may have nothing to do with the "
    "question, or items be too few to tell."
)
SQUARE = (
    "The log-odds of the votes are not linear in {feature!r}: add its square (with a coefficient of about {size:z.2f}, if "
    "the feature has standard deviation 1)."
)
AGAINST = "About {share:.0%} of the annotators vote against the others."
LIKE_GUESSERS = "About {share:.0%} of the annotators vote like guessers."
SURELY = "That has a probability above {sure:.0%} for {named} of {all} ({who})."
NOBODY_SURELY = "That has a probability above {sure:.0%} for none of {all}."
# By kind, or by kind and case; ``who`` are the names, the rest are fields of the finding and facts of its own.
SENTENCES = {
    "repeated items": "{share:.0%} of the items are nearly the same as another in all features, far nearer than neighbours "
    "are. Copies of an item count as one: all standard errors are too small as long as they count as several.",
    "asked again": "More votes were asked for where the first {fewest} disagreed: of the items with {fewest} hardly any is "
    "split, of the {share:.0%} with more every one is. Such votes are not interchangeable, and pooled votes are then too near "
    "to one half. Annotators cannot be compared by them.",
    "asked again, with exceptions": "More votes were asked for where the first {fewest} disagreed, though not there alone: on "
    "the {share:.0%} of items with more than {fewest} votes disagree more than chance would have it. Such votes are not "
    "interchangeable, and pooled votes are then too near to one half. Annotators cannot be compared by them.",
    "vote as feature": "The feature {feature!r} is the vote of {who} (correlation {size:.2f}): leave it out.",
    "contradiction": f"{{one}} and {{other}} contradict each other on what the items show. {CANNOT_SAY}",
    "contradiction, by a majority": f"{{one}} and {{other}} contradict each other on what the items show. {CANNOT_SAY} The "
    "majority is not evidence of being right.",
    "reversed": "{who} votes against the others: the labels are reversed, or answer another question. (Slope {size:z.1f} on "
    "what the others predict, where theirs is 1.)",
    "reversed, in a crowd": f"{AGAINST} {SURELY}",
    "reversed, in a crowd, nobody surely": f"{AGAINST} {NOBODY_SURELY}",
    "guessing": "{who} shows next to nothing of what the others see (slope {size:z.1f}, theirs is 1): far weaker, or "
    "guessing, and says yes to {yes:.0%}.",
    "guessing, in a crowd": f"{LIKE_GUESSERS} {SURELY}",
    "guessing, in a crowd, nobody surely": f"{LIKE_GUESSERS} {NOBODY_SURELY}",
    "leans": "{who} says yes {how} often than the others on the same items, by {distance:.1f} in log-odds ({yes:.0%} of "
    "votes, where the others have {others:.0%}).",
    "leans, one of two": "{who} says yes {how} often than the other on the same items, by {distance:.1f} in log-odds "
    "({yes:.0%} of votes, where the other has {others:.0%}). Which of the two is off the votes cannot say.",
    "leans, in a crowd": "Annotators say yes at different rates, on the same items, more than chance would have it; there are "
    "too few votes of each to say who.",
    "copies": "{who} vote alike where the others differ: {size:.0%} of the disagreements to be expected are missing. They "
    "copy, confer, are one person, or see what the others do not; who copied whom the votes cannot say. Count them as one.",
    "feature of one": "The feature {feature!r} goes with the votes of {who} (correlation {size:.2f}) and less with those of "
    "the others on the same items: it was made of these votes, or this annotator alone looks at it.",
    "consensus as feature": "The features know of the votes what no feature of an item can: votes on an item repel each other "
    "beyond them. Nearest to the shares of votes is {feature!r} (correlation {size:.2f}): a score made of these votes, or a "
    "model fitted to them, must be left out.",
    "no sign": "There is no sign in votes or features that the labels mean anything: neither do features explain more "
    "of the votes than chance might (p = {features:.2g}), nor do votes agree more than chance might have them "
    f"(p = {{agreement:.2g}}). {NOTHING_ADDED}",
    "no sign, by features": "There is no sign in the features that the labels mean anything: they explain no more of the "
    f"votes than chance might (p = {{features:.2g}}), and no item has two votes to compare. {NOTHING_ADDED}",
    "no sign, by agreement": "There is no sign in the votes that the labels mean anything: they agree no more than chance "
    "might have them (p = {agreement:.2g}). More votes of this kind add nothing that can be seen. Annotators may guess, or "
    "items be too few to tell.",
    "guesses by all": "About {share:.1%} of all votes take no account of the features ({yes:.1%} of all say yes and {no:.1%} "
    "no, whatever the item): everybody guesses now and then, or sees what the features do not.",
    "square missing": SQUARE,
    "square missing, or guesses": f"{SQUARE} Guesses by all may look the same, and votes cannot tell the two apart.",
}
