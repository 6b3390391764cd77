"""Sentences of the verdict: which stand where, in which of them code is our own, and what JSON says of one."""

from gpu_report.model import Analysis, Sentence

# Kinds of sentences that hold code of ours, to be copied.
OWN_CODE = frozenset(
    {"fix", "look", "prevent", "grew", "resume", "guess", "record", "all nodes", "where", "between calls"}
)
# Kinds that belong to the lead: what happened, what prevents it, what it comes to. The rest is small print.
OF_LEAD = OWN_CODE | {"lost", "ended", "work", "starved", "projection", "speed-up", "cost", "fault"}
OF_LEAD |= {"past"}  # what held earlier trainings back
OF_LEAD |= {"why", "speed", "part", "no call"}  # of calls: what is slow, how fast they were, which part took longest


def own_text(sentence: Sentence) -> str:
    """Return a sentence's text; in one that may quote somebody else nothing becomes code, or a command to be copied."""
    return sentence.text if sentence.kind in OWN_CODE else sentence.text.replace("`", "'")


def sentence_json(sentence: Sentence) -> dict[str, object]:
    """Return what JSON says of a sentence."""
    found, about = list(sentence.findings), sentence.about or None
    return {"kind": sentence.kind, "text": sentence.text, "findings": found, "about": about}


def verdict_text(analysis: Analysis) -> str:
    """Return the whole verdict as one text."""
    return " ".join(map(own_text, analysis.verdict.sentences))


def findings_in_lead(analysis: Analysis) -> frozenset[str]:
    """Return the ids of the findings that the first sentence, or one that belongs to it, reports."""
    first, *others = analysis.verdict.sentences or (None,)
    near = [each for each in (first, *others) if each is not None and (each is first or each.kind in OF_LEAD)]
    return frozenset(found for sentence in near for found in sentence.findings)
