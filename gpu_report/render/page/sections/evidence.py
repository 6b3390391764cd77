"""The numbers that speak for a finding: each with its label, and beside it what it is to be compared with."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from gpu_report.catalogue import (
    GROWN_FROM_KEY,
    GROWN_TO_KEY,
    GROWTH_KEY,
    OCCURRED_KEY,
    RULES,
    USER_CODE_IDLE_KEY,
    USER_CODE_KEY,
)
from gpu_report.model import Evidence, Finding, Reference
from gpu_report.render.formatting import duration, known, number, step_time, with_amounts_unbroken
from gpu_report.render.page.views.tables import Fact
from gpu_report.wording import MIB_PER_GIB, memory_words, step_words, upper_first

# What ranks a finding, or is said in its summary.
NOT_SHOWN = frozenset({GROWTH_KEY, OCCURRED_KEY, USER_CODE_IDLE_KEY, USER_CODE_KEY})
# How the two numbers of a rise came about, by the reference of the first.
RISES: Mapping[Reference, str] = {
    "first of next": "first third of training \u2192 last third",
    "before of next": "before \u2192 since then",
}
GROWN = "In that function, per batch"
MS_UNDER_S = 0.1  # shorter times are said in milliseconds

# How a number is shown that is no fact of its own: it says what the one before it is to be compared with.
_COMPARED: Mapping[Reference, str] = {
    "typical": "typical {}",
    "under less load": "{} under less load",
    "highest": "{} is the highest of this card, not seen here",
    "limit": "limit {} when the recording began",
    "capacity": "of {}",
    "allowance": "limit {}",
    "before the end": "{} before the end",
}


def evidence(finding: Finding) -> tuple[Fact, ...]:
    """Return the evidence of a finding, each number once, without what stands among its facts already."""
    facts: list[Fact] = []
    rises: list[Fact] = []
    first: Evidence | None = None
    rose = ""
    for each in _typical_last([each for each in finding.evidence if not _is_fact(each, finding)]):
        label, value = upper_first(each.text), _value(each)
        if each.reference in RISES or each.key == GROWN_FROM_KEY:
            first, rose = each, RISES.get(each.reference, rose)
            continue
        if first is not None and first.key == each.key:
            rises.append(Fact(upper_first(each.key), f"{_value(first)} \u2192 {value}"))
            facts.append(rises[-1])
        elif first is not None and each.key == GROWN_TO_KEY:
            facts.append(Fact(GROWN, f"{step_words(first.value or 0.0)} \u2192 {step_words(each.value or 0.0)}"))
        elif facts and each.reference in _COMPARED:
            facts[-1] = replace(facts[-1], note=_joined(facts[-1].note, _COMPARED[each.reference].format(value)))
        elif facts and facts[-1].label == label:  # the same in another unit
            facts[-1] = replace(facts[-1], value=_joined(facts[-1].value, value))
        else:
            facts.append(Fact(label, value))
        first = None
    noted = [replace(fact, note=rose) if fact in rises[:1] else fact for fact in dict.fromkeys(facts)]
    return tuple(noted)


def _typical_last(shown: list[Evidence]) -> list[Evidence]:
    """Return evidence in which what is typical of the number after it stands after that one, where both are shown."""
    ordered = list(shown)
    for at, (typical, then) in enumerate(pairwise(shown)):
        if typical.reference == "typical of next" and then.key == typical.key:
            ordered[at : at + 2] = [replace(then, text=then.key), replace(typical, reference="typical")]
    return ordered


def _is_fact(evidence: Evidence, finding: Finding) -> bool:
    """Return whether evidence only repeats a number that stands among the finding's facts.

    Of falls that are one finding their sums do: the length of one, and what it lost, would contradict them.
    """
    if evidence.key in NOT_SHOWN:
        return True
    each = finding.each if RULES[finding.rule].fall else (finding,)
    seconds = [seconds for one in (finding, *each) for seconds in (one.duration_s, one.lost_gpu_s)]
    facts = (finding.level_pct, finding.low_pct) if evidence.unit == "%" else seconds if evidence.unit == "s" else ()
    return evidence.value is not None and evidence.value in facts


def _value(evidence: Evidence) -> str:
    """Return an evidence's number with its unit, empty where it has none."""
    value = known(evidence.value)
    if value is None:
        return ""
    if evidence.unit == "s":
        return step_time(value) if 0 < value < MS_UNDER_S else duration(value)
    if evidence.unit == "MiB":
        return with_amounts_unbroken(memory_words(value))
    if evidence.unit == "GiB" and abs(value) < 1:  # 44 MiB an epoch would read 0.0
        return with_amounts_unbroken(memory_words(value * MIB_PER_GIB))
    shown = number(value, 0 if abs(value) >= 100 or value == round(value) else 1)
    return f"{shown}\u00a0{evidence.unit}".rstrip("\u00a0")


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
