"""Findings held against labels: which faults were found, with which cause, how far off, and what was a false alarm.

Pure functions over values; docs/accuracy.md says the same in prose. Only warnings and critical findings that are not
expected count, for only these call somebody; and the note that Ctrl-C was pressed, who needs no call. A finding
finds at most one fault, the one that it fits best.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu_report.model import Finding
from support.labels import Fault, Labels, Span

EFFECT_AT_LEAST_S = 10.0  # shorter effects are not counted: a drop is one from 10 s on
OVERLAP_AT_LEAST = 0.5  # of the effect
END_WITHIN_S = 2.0  # an end is a moment: its finding must end this near to it
ENDED, GROWTH = "run-ended", "memory-growth"
BY_HAND = "sigint"  # whoever pressed Ctrl-C knows it: a note is what is to be said
OWN_RULE = {ENDED, GROWTH}  # causes that only the rule of the same name finds: they show in no drop


@dataclass(frozen=True)
class Verdict:
    """What became of one fault: the finding that fits it best, and whether its cause was named.

    `start_off_s` and `end_off_s` are the finding's edges less the effect's, None where the effect has no edges.
    """

    fault: Fault
    finding: Finding | None
    is_named: bool
    start_off_s: float | None = None
    end_off_s: float | None = None

    @property
    def is_found(self) -> bool:
        """Tell whether any finding found it."""
        return self.finding is not None


@dataclass(frozen=True)
class Judged:
    """A run's findings held against its labels; `false_alarms` are the findings that no label excuses."""

    labels: Labels
    duration_s: float
    verdicts: tuple[Verdict, ...]
    false_alarms: tuple[Finding, ...]


def judge(labels: Labels, findings: Sequence[Finding], duration_s: float) -> Judged:
    """Hold the findings of a run against its labels."""
    alarms = [each for finding in findings if is_alarm(finding) for each in felt_alone(finding)]
    notes = [finding for finding in findings if finding.rule == ENDED and not is_alarm(finding)]
    claims = [(best_fitting(labels.faults, told), told) for told in (*alarms, *notes)]
    verdicts = tuple(
        verdict(fault, [alarm for claimed, alarm in claims if claimed is fault])
        for fault in labels.faults
        if is_counted(fault)
    )
    false = tuple(alarm for alarm in alarms if not any(excuses(fault, alarm) for fault in labels.faults))
    return Judged(labels, duration_s, verdicts, false)


def felt_alone(finding: Finding) -> list[Finding]:
    """Return a finding once for each time that it happened and each GPU that felt it."""
    alone = [replace(one, gpu=gpu) for one in finding.each for gpu in one.gpus]
    return alone if finding.gpu is None and alone else list(finding.each)


def is_alarm(finding: Finding) -> bool:
    """Tell whether a finding calls somebody."""
    return finding.severity in {"warning", "critical"} and not finding.expected


def is_counted(fault: Fault) -> bool:
    """Tell whether a fault must be found: felt for 10 s or more, standing, played, or found by a rule of its own."""
    if fault.cause is None:
        return False
    if fault.standing or fault.played or fault.cause in OWN_RULE:
        return True
    return fault.effect is not None and length(fault.effect) >= EFFECT_AT_LEAST_S


def verdict(fault: Fault, findings: Sequence[Finding]) -> Verdict:
    """Return what became of a fault, given the findings that found it.

    Where more than one GPU felt it, each may be told in its own way (one was stopped, the other waited for it): it is
    named if the best finding of one of them names it, and as far off as the worst of them.
    """
    ranked = sorted(findings, key=lambda finding: fit(fault, finding))
    if not ranked:
        return Verdict(fault, None, is_named=False)
    best_of_gpu = {finding.gpu: finding for finding in ranked}.values()
    is_named = any(said(finding) == fault.cause for finding in best_of_gpu)
    if fault.effect is None or fault.standing or fault.cause in OWN_RULE:
        return Verdict(fault, ranked[-1], is_named)
    start, end = fault.effect
    start_off_s = max((finding.start_t_s - start for finding in best_of_gpu), key=abs)
    end_off_s = max((finding.end_t_s - end for finding in best_of_gpu), key=abs)
    return Verdict(fault, ranked[-1], is_named, start_off_s, end_off_s)


def best_fitting(faults: Sequence[Fault], finding: Finding) -> Fault | None:
    """Return the fault that a finding finds, None where it finds none."""
    return max((f for f in faults if finds(f, finding)), key=lambda fault: fit(fault, finding), default=None)


def finds(fault: Fault, finding: Finding) -> bool:
    """Tell whether a finding shows a fault: on its GPU, over at least half of its effect."""
    if not is_on(fault, finding) or (fault.cause in OWN_RULE and finding.rule != fault.cause):
        return False
    if fault.cause == ENDED and finding.severity == "info" and fault.kind != BY_HAND:
        return False
    if fault.cause == ENDED:
        return fault.felt[0] - END_WITHIN_S <= finding.end_t_s <= fault.felt[1] + END_WITHIN_S
    common = overlap_s(fault.felt, span(finding))
    return common is not None and common >= OVERLAP_AT_LEAST * length(fault.felt)


def fit(fault: Fault, finding: Finding) -> float:
    """Return how well the two spans fit: what they share over what they cover together, 0 to 1."""
    common = overlap_s(fault.felt, span(finding)) or 0.0
    together = length(fault.felt) + finding.duration_s - common
    return common / together if together > 0 else 1.0


def excuses(fault: Fault, finding: Finding) -> bool:
    """Tell whether a finding lies on a label: then it is no false alarm.

    A label reaches from the command to the end of the effect, for the end of the training END_WITHIN_S further: what a
    fault ended ends a moment after it. A standing one lies under the whole run and would excuse everything: it does so
    only for what finds it or names its cause.
    """
    if not is_on(fault, finding):
        return False
    if fault.standing:
        return finds(fault, finding) or said(finding) == fault.cause
    spans = [fault.command, fault.felt]
    later_s = END_WITHIN_S if finding.rule == ENDED else 0.0
    extent = min(start for start, _ in spans), max(end for _, end in spans) + later_s
    return finds(fault, finding) or overlap_s(extent, span(finding)) is not None


def is_on(fault: Fault, finding: Finding) -> bool:
    """Tell whether the two are of the same GPU; None is all of them."""
    return fault.gpu is None or finding.gpu is None or fault.gpu == finding.gpu


def said(finding: Finding) -> str:
    """Return the cause that a finding names; a rule that knows but one cause may leave it to its own name."""
    return finding.cause.name if finding.cause else finding.rule


def span(finding: Finding) -> Span:
    """Return from when to when a finding lasts."""
    return finding.start_t_s, finding.end_t_s


def length(of: Span) -> float:
    """Return the seconds of a span."""
    return of[1] - of[0]


def overlap_s(a: Span, b: Span) -> float | None:
    """Return the seconds that two spans share, 0 where they only touch (a moment has no length), None where not."""
    start, end = max(a[0], b[0]), min(a[1], b[1])
    return end - start if end >= start else None
