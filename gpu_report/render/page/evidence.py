"""The numbers that speak for a finding: each with its label, and beside it what it is to be compared with."""

from dataclasses import replace
from itertools import pairwise

from gpu_report.model import Evidence, Finding
from gpu_report.render.formatting import duration, known, number
from gpu_report.render.page.view import Fact

# Evidence whose text begins so is no fact of its own: it says what the one before it usually is, or is measured by.
_BESIDE = {
    "usually": "usually {}",
    "under less load": "{} under less load",
    "its limit when the recording began": "limit {} when the recording began",
    "it can hold": "of {} that it can hold",
    "it may hold": "of {} that it may hold",
    "that long before the end": "{} before the end",
}
_THEN, _USUALLY = " then", " usually"


def evidence(finding: Finding) -> tuple[Fact, ...]:
    """Return the evidence of a finding, without what stands among its facts already."""
    facts: list[Fact] = []
    told = [each for each in finding.evidence if not _is_fact(each, finding)]
    for each in _usual_last(told):
        text, value = each.text, _value(each)
        beside = next((words for start, words in _BESIDE.items() if text.startswith(start)), "")
        if facts and beside:
            facts[-1] = replace(facts[-1], note=_joined(facts[-1].note, beside.format(value)))
        elif facts and facts[-1].label == _label(text):  # the same in another unit
            facts[-1] = replace(facts[-1], value=_joined(facts[-1].value, value))
        else:
            facts.append(Fact(_label(text), value))
    return tuple(facts)


def _usual_last(told: list[Evidence]) -> list[Evidence]:
    """Return evidence in which what was usual stands after what was then, as "usually", where both are told."""
    ordered = list(told)
    for at, (usual, then) in enumerate(pairwise(told)):
        name = usual.text.removesuffix(_USUALLY)
        if name != usual.text and then.text == name + _THEN:
            ordered[at : at + 2] = [replace(then, text=name), replace(usual, text="usually")]
    return ordered


def _is_fact(evidence: Evidence, finding: Finding) -> bool:
    """Return whether evidence only repeats a number that stands among the finding's facts."""
    fact = finding.duration_s if evidence.unit == "s" else None
    facts = (finding.level_pct, finding.low_pct) if evidence.unit == "%" else (fact,)
    return evidence.value is not None and evidence.value in facts


def _label(text: str) -> str:
    return text[:1].upper() + text[1:]


def _value(evidence: Evidence) -> str:
    """Return an evidence's number with its unit, empty where it has none."""
    value = known(evidence.value)
    if value is None:
        return ""
    if evidence.unit == "s":
        return duration(value)
    shown = number(value, 0 if abs(value) >= 100 or value == round(value) else 1)
    return f"{shown}\u00a0{evidence.unit}".rstrip("\u00a0")


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
