"""Findings that came, went and stayed between two runs, matched by rule, cause and GPU: their numbers mean nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from gpu_report.catalogue import RULES, SEVERITIES
from gpu_report.model import Analysis, Finding, FindingChange, NotChecked
from gpu_report.wording import length

# The place of the GPU among those used (the same training may get another one), else its index among the unused.
Place = tuple[str, int] | None
Key = tuple[str, str | None, Place]
STATUSES = ("new", "still there", "gone")


@dataclass(frozen=True)
class _Group:
    """The findings of one key in one run."""

    findings: tuple[Finding, ...]

    @property
    def seconds(self) -> float:
        return sum(finding.took_s for finding in self.findings)

    @property
    def longest_s(self) -> float:
        return max((one.duration_s for finding in self.findings for one in finding.each), default=0.0)

    @property
    def count(self) -> int:
        return sum(finding.times for finding in self.findings)

    @property
    def worst(self) -> Finding:
        return min(self.findings, key=lambda f: (SEVERITIES.index(f.severity), -f.duration_s))


NONE = _Group(())


def compare_findings(baselines: Sequence[Analysis], run: Analysis) -> tuple[FindingChange, ...]:
    """Return the findings of either side that no phase explains: new ones first, of each the worst first.

    One is new when no baseline has it, and gone when at least half of the baselines have it and the run has not. What
    the other side could not have seen is neither: a critical one is new all the same.
    """
    before, after = [_groups(baseline) for baseline in baselines], _groups(run)
    keys = dict.fromkeys([*after, *(key for groups in before for key in groups)])
    found = [change for key in keys if (change := _change(key, before, after)) is not None]
    changes = [change for change in found if not _is_unseen(change, baselines, run)]
    order = {status: place for place, status in enumerate(STATUSES)}
    return tuple(sorted(changes, key=lambda c: (order[c.status], SEVERITIES.index(c.severity), -max(c.seconds))))


def drop_time(analysis: Analysis) -> str:
    """Return how many unexpected drops there were, and how long, as a person would write it into a table."""
    falls = (f for f in analysis.findings if RULES[f.rule].fall and not f.expected)
    seen = [one for fall in falls for one in fall.each]
    if not seen:
        unseen = next((each for each in analysis.not_checked if each.rule == "drop"), None)
        return "none" if unseen is None else _none_seen(unseen)
    worst = max(f.duration_s for f in seen)
    return f"{len(seen)}, the longest {worst:.0f} s" if len(seen) > 1 else f"1, of {worst:.0f} s"


def _none_seen(unseen: NotChecked) -> str:
    return "not checked" if unseen.under_s is None else f"none of {length(unseen.under_s)} or longer"


def _is_unseen(change: FindingChange, baselines: Sequence[Analysis], run: Analysis) -> bool:
    """Tell whether a change may be one of what could be seen: rows further apart, or no rows of it."""
    if change.status == "gone":
        return _could_not_see(run, change.rule, change.longest_s)
    may_hide = change.status == "new" and change.severity != "critical"
    return may_hide and all(_could_not_see(each, change.rule, change.longest_s) for each in baselines)


def _could_not_see(analysis: Analysis, rule: str, seconds: float) -> bool:
    hidden = [each.under_s for each in analysis.not_checked if each.rule == rule]
    return any(under_s is None or seconds < under_s for under_s in hidden)


def _groups(analysis: Analysis) -> dict[Key, _Group]:
    places = _places(analysis)
    groups: dict[Key, list[Finding]] = {}
    for finding in analysis.findings:
        if not finding.expected:
            place = None if finding.gpu is None else places.get(finding.gpu, ("unused", finding.gpu))
            groups.setdefault((finding.rule, finding.cause.name if finding.cause else None, place), []).append(finding)
    return {key: _Group(tuple(found)) for key, found in groups.items()}


def _places(analysis: Analysis) -> Mapping[int, tuple[str, int]]:
    used = sorted(summary.gpu.index for summary in analysis.gpus if summary.used)
    return {index: ("used", place) for place, index in enumerate(used)}


def _change(key: Key, before: Sequence[Mapping[Key, _Group]], after: Mapping[Key, _Group]) -> FindingChange | None:
    had = [groups[key] for groups in before if key in groups]
    now = after.get(key, NONE)
    if not now.findings and 2 * len(had) < len(before):
        return None
    worst, each = now.worst if now.findings else had[0].worst, [groups.get(key, NONE) for groups in before]
    status: Literal["new", "gone", "still there"] = "gone" if not now.findings else "still there" if had else "new"
    return FindingChange(
        rule=key[0],
        cause=key[1],
        gpu=worst.gpu,
        severity=worst.severity,
        status=status,
        counts=(_median([group.count for group in each]), now.count),
        seconds=(_median([group.seconds for group in each]), now.seconds),
        summary=worst.summary,
        ids=tuple(finding.id for finding in now.findings),
        each=tuple((group.count, group.seconds) for group in each),
        longest_s=max(group.longest_s for group in [now, *had]),
    )


def _median(values: Sequence[float]) -> float:
    return float(median(values)) if values else 0.0
