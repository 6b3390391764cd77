"""Words that nothing of ours says to people (the field has others): on the page, on a terminal, in what CI shows."""

import re
from collections.abc import Iterable

from support.prose import banned_phrases

# Beside the phrases that documents must not hold either: names of ours for what has one in the field.
OURS = (
    *(
        "short gaps between",
        "starved",
        "times faster",
        "at best",
        "what came of it",
        "set up otherwise",
        "ledger",
        "repairs",
    ),
    *("went on", "made anew", "held down", "worked beside", "rested", "ordinary training"),
    # two names for idle GPU time, and sentences whose "that" or "it" a reader has to guess
    *(
        "time that the GPU waited",
        "notes of where",
        "takes that once",
        "pays that once",
        "within idle",
        "never had one",
    ),
    *("shows it as", "more of them", "are none of"),
)
AROUND = 30  # characters that are shown on either side
_OURS = [re.compile(rf"\b{phrase}\b", re.IGNORECASE) for phrase in OURS]
_ID = re.compile(r"\b[a-z]+(?:-[a-z]+)*-\d+\b")  # of a finding: `starved-1`


def banned(text: str, names: Iterable[str] = ()) -> list[str]:
    """Return what of a text is in words that nobody else uses, each with a little of what stands around it.

    `names` are those of runs and the like, which somebody else gave.
    """
    flat = _ID.sub("", " ".join(text.split()))
    for name in names:
        flat = flat.replace(name, "")
    found = (match for phrase in (*banned_phrases(), *_OURS) for match in phrase.finditer(flat))
    return [flat[max(match.start() - AROUND, 0) : match.end() + AROUND] for match in found]
