"""The numbers beside a finding. One that was not recorded (None, NaN) is left out: it is missing, never zero."""

import math
from collections.abc import Mapping

from gpu_report.model import Evidence, Reference

# How a number is worded that says what the one before it is to be compared with.
_WORDS: Mapping[Reference, str] = {
    "typical": "typical",
    "under less load": "under less load",
    "highest": "the highest of this card, not seen here",
    "limit": "its limit when the recording began",
    "capacity": "capacity",
    "allowance": "limit",
    "before the end": "that long before the end",
}


def evidence(*numbers: tuple[str, float | None, str] | Evidence) -> tuple[Evidence, ...]:
    """Return numbers, as evidence or (text, value, unit), as evidence, without those that were not recorded."""
    found = (each if isinstance(each, Evidence) else Evidence(*each) for each in numbers)
    return tuple(each for each in found if each.value is not None and math.isfinite(each.value))


def compared_with(reference: Reference, value: float | None, unit: str) -> Evidence:
    """Return the number that the one before it is to be compared with."""
    return Evidence(_WORDS[reference], value, unit, reference=reference)


def usually(value: float | None, unit: str) -> Evidence:
    """Return what the number before it is in the steady state."""
    return compared_with("typical", value, unit)


def stopped_processes(mean: float | None) -> Evidence:
    """Return how many processes of the training a signal had stopped (mean)."""
    return Evidence("processes paused by a signal", mean, "", key="stopped_processes")
