"""Which sentences of the verdict stand where on the page."""

from gpu_report.model import Analysis

# Kinds of sentences that hold code of ours, to be copied.
OWN_CODE = frozenset({"fix", "look", "prevent", "resume", "guess", "record"})
# Kinds that belong to the lead: what happened, what prevents it, what it comes to. The rest is small print.
NEAR = OWN_CODE | {"lost", "ended", "work", "starved", "projection", "speed-up", "cost", "fault"}


def told(analysis: Analysis) -> frozenset[str]:
    """Return the ids of the findings that the first sentence, or one that belongs to it, reports."""
    first, *others = analysis.verdict.sentences or (None,)
    near = [each for each in (first, *others) if each is not None and (each is first or each.kind in NEAR)]
    return frozenset(found for sentence in near for found in sentence.findings)
