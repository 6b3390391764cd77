"""Words that nothing of ours says to people (the field has others): on a terminal, in `--help`, in what CI shows."""

import re
from collections.abc import Iterable, Iterator

from gpu_report.catalogue import CAUSES, RULES
from gpu_report.model import Analysis
from gpu_report.render.markdown_text import words
from gpu_report.wording import ending_words, lower_first

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


def without(text: str, analyses: Iterable[Analysis]) -> str:
    """Return a text without what runs and their findings are called, and what was found in them.

    These words are held where they are made: in the analysis, and in the catalogue.
    """
    names = [row.name for row in (*RULES.values(), *CAUSES.values())]
    names += [row.untold for row in CAUSES.values() if row.untold]
    found = [sentence for each in analyses for sentence in _of_analysis(each)]
    every = {*names, *map(lower_first, names), *found, *map(lower_first, found), *map(words, found)}
    for each in sorted(filter(None, every), key=len, reverse=True):
        text = text.replace(each, "")
    return text


def _of_analysis(analysis: Analysis) -> Iterator[str]:
    yield from (each.text for each in analysis.verdict.sentences)
    yield analysis.run.path
    for finding in analysis.findings:
        yield from (finding.summary, finding.summary.rstrip("."), *(advice.text for advice in finding.advice))
    if analysis.ending is not None:
        yield ending_words(analysis.ending)
        yield from (each.text for each in analysis.ending.last_minute)
