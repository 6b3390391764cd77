"""A validation that took longer while all of the training was slowed: for the same reason."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.catalogue import CAUSES
from gpu_report.model import Finding

VALIDATION = "slow-validation"


def with_cause_of_slowdown(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings, validations within a slowdown with its cause, where that is surer than their own.

    What holds up a loader holds it up in a validation, too, but in no checkpoint. What a few seconds of one show may be
    anything.
    """
    slowed = [each for each in findings if each.rule == "slowdown" and each.cause and CAUSES[each.cause.name].is_input]
    return [_of_its_time(each, slowed) if each.rule == VALIDATION else each for each in findings]


def _of_its_time(part: Finding, slowed: Sequence[Finding]) -> Finding:
    around = next((each for each in slowed if each.gpu == part.gpu and _lies_in(part, each)), None)
    cause = None if around is None else around.cause
    if part.expected or part.cause is None or around is None or cause is None:
        return part
    if part.cause.confidence >= cause.confidence:
        return part
    text = f"the training was slowed then as well: {cause.explanation}"
    return replace(part, cause=replace(cause, explanation=text), advice=around.advice)


def _lies_in(part: Finding, slowdown: Finding) -> bool:
    """Tell whether some of a part lies in a slowdown: steps, by which that is dated, begin and end beside it."""
    return min(part.end_t_s, slowdown.end_t_s) > max(part.start_t_s, slowdown.start_t_s)
