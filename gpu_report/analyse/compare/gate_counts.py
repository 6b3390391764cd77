"""What gates count of a run as a whole: Xids, findings, coverage. None is not measured, and never zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_report.catalogue import cause_words, rule_words
from gpu_report.model import Analysis, Finding, FindingChange
from gpu_report.wording import lower_first


@dataclass(frozen=True)
class Count:
    """A figure of a run, None where it was not measured; `what` says what it is, or why there is none.

    `which` names what was counted. `of_ending`: it was nothing but how the run was cut short, which the verdict says.
    """

    value: float | None
    what: str
    which: str = ""
    of_ending: bool = False


def count(metric: str, statistic: str, run: Analysis, changes: Sequence[FindingChange] | None) -> Count:
    """Return a figure; `changes` are the findings compared with baselines, None without one."""
    if metric == "xid":
        return _xids(run, fatal=statistic == "fatal")
    if metric == "coverage":
        return Count(100 * run.coverage, "time with samples")
    if statistic == "new":
        return _new(changes)
    severities = {"critical"} if statistic == "critical" else {"critical", "warning"}
    return _findings([f for f in run.findings if f.severity in severities and not f.expected], statistic)


def _xids(run: Analysis, *, fatal: bool) -> Count:
    """Return how many Xids there were; none counts as none only where somebody listened."""
    kernel = run.run.kernel
    seen = [event for event in kernel.events if event.kind in {"xid", "gpu-lost"} and event.t_s >= 0]
    mine = [event for event in seen if event.severity == "critical" or not fatal]
    if not mine and kernel.status != "read" and kernel.xid_events != "listening":
        why = f": {kernel.reason}" if kernel.reason else ""
        return Count(None, f"the kernel log and Xid events are unknown{why}")
    codes = sorted({f"Xid {event.code}" if event.code is not None else "GPU lost" for event in mine})
    return Count(float(sum(event.count for event in mine)), "fatal Xids" if fatal else "Xids", ", ".join(codes))


def _named(change: FindingChange) -> str:
    """Return a kind of finding by its rule, and by its cause where that says more."""
    cause = lower_first(cause_words(change.cause)) if change.cause and change.cause != change.rule else ""
    return f"{rule_words(change.rule)}{f': {cause}' if cause else ''}"


def _findings(findings: Sequence[Finding], statistic: str) -> Count:
    by_id = {finding.id: finding for finding in findings}
    of_ending = {finding.rule for finding in findings} == {"run-ended"}
    is_told = len(by_id) != 1 or of_ending
    kinds = [f"{rule_words(finding.rule)} [{id_}]" for id_, finding in by_id.items()]
    named = ", ".join(kinds) if is_told else f"{findings[0].summary.rstrip('.')} [{findings[0].id}]"
    what = "critical findings" if statistic == "critical" else "warnings and critical findings"
    return Count(float(len(findings)), what, named, of_ending)


def _new(changes: Sequence[FindingChange] | None) -> Count:
    """Return how many kinds of findings, warnings or worse, no baseline has."""
    if changes is None:
        return Count(None, "there is no baseline to compare with")
    new = [change for change in changes if change.status == "new" and change.severity != "info"]
    named = ", ".join(_named(change) for change in new)
    return Count(float(len(new)), "new kinds of findings", named)
