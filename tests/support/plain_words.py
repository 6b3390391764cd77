"""Words that nothing of ours says to people (the field has others): on a terminal, in `--help`, in what CI shows."""

import re

# Not of a reader: "tell" is what a person does, "told" and "tells" are what a program did to them.
BANNED = (
    *("told", "tells", "stood still", "stands? still", "standing still", "room to win", "could be won", "held against"),
    *("at odds", "beside the training", "stood beside", "calm", "undisturbed", "pace", "guest", "neighbou?rs?"),
    *("nothing recorded explains", "anything recorded", "gone on", "go(?:es)? on from", "short gaps", "starved"),
    *("times faster", "at best", "what came of it", "set up otherwise", "ledger", "repairs"),
)
_ANY = re.compile(rf"\b(?:{'|'.join(BANNED)})\b", re.IGNORECASE)


def banned(text: str) -> list[str]:
    """Return what of a text is in words that nobody else uses, each with a little of what stands around it."""
    flat = " ".join(text.split())
    return [flat[max(found.start() - 30, 0) : found.end() + 30] for found in _ANY.finditer(flat)]
