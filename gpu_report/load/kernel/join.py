"""Joining the kernel lines that are one event: a lost GPU in three lines, a kill of the OOM killer in dozens."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gpu_report.load.kernel.host_patterns import at_a_limit
from gpu_report.load.kernel.log_prefix import message_of
from gpu_report.load.kernel.match import UNKNOWN, MatchedLine, RawLine
from gpu_report.load.kernel.oom_report import joined, report_in

# Lines of one event are printed within milliseconds; a busy serial console stretches an OOM dump to seconds.
ONE_EVENT_S: Final = 10.0
_LONGEST_JOIN = 3  # the driver's message about a lost GPU has three lines
_HEAD: Final = re.compile(r"NVRM: The NVIDIA GPU ")
_REST: Final = re.compile(r"(?:NVRM:)?\s*(?:\(PCI ID: |installed in this system|fallen off the bus)")


def join_lines(lines: Sequence[RawLine]) -> list[RawLine]:
    """Return `lines` (sorted by time) with the driver's message about a lost GPU as one line."""
    joined: list[RawLine] = []
    parts = 0
    for line in lines:
        message = message_of(line.text)
        if parts and joined[-1].t_s + ONE_EVENT_S >= line.t_s and _REST.match(message):
            joined[-1] = replace(joined[-1], text=f"{joined[-1].text}\n{line.text}")
            parts = parts + 1 if parts < _LONGEST_JOIN else 0
        else:
            joined.append(line)
            parts = 1 if _HEAD.match(message) else 0
    return joined


def join_details(items: Sequence[MatchedLine]) -> list[MatchedLine]:
    """Return one item for each event: the victim's line for a kill, and details folded into what they detail."""
    kept: list[MatchedLine] = []
    last_of_kind: dict[str, int] = {}
    for matched in items:
        opened, parent = last_of_kind.get("oom"), last_of_kind.get(matched.match.kind)
        if matched.match.role == "aside" and parent is not None and _near(kept[parent], matched):
            continue
        item = _read_alone(matched)
        kind, killing = item.match.kind, _killing(kept, opened, item)
        if opened is not None and killing:
            kept[opened] = _reporting(kept[opened], item)
        if killing and kind == "other":
            continue  # the OOM killer's dump of memory and processes
        if parent is not None and ((killing and kind == "oom") or _details(kept[parent], item)):
            kept[parent] = _named(kept[parent], item)
        else:
            last_of_kind[kind] = len(kept)
            kept.append(item)
    return kept


def _read_alone(item: MatchedLine) -> MatchedLine:
    """Return what a line says by itself: a kill what its process held, an aside nothing."""
    if item.match.role == "aside":
        return replace(item, match=UNKNOWN)
    if item.match.kind != "oom":
        return item
    return replace(item, match=replace(item.match, oom=report_in(message_of(item.line.text))))


def _reporting(opened: MatchedLine, item: MatchedLine) -> MatchedLine:
    """Return a kill with what a line of its dump says of memory; one at a cgroup's limit says so."""
    report = report_in(message_of(item.line.text))
    if report is None:
        return opened
    match = replace(opened.match, oom=joined(opened.match.oom, report))
    return replace(opened, match=at_a_limit(match))


def _killing(kept: Sequence[MatchedLine], last: int | None, item: MatchedLine) -> bool:
    """Return whether the OOM killer was invoked, and not long ago, without having named its victim yet."""
    return last is not None and kept[last].match.role == "opens" and _near(kept[last], item)


def _details(earlier: MatchedLine, item: MatchedLine) -> bool:
    """Return whether `item` says more of `earlier`, the last of its kind; a pid that both name must agree."""
    same_process = None in (earlier.match.pid, item.match.pid) or earlier.match.pid == item.match.pid
    return item.match.role in ("detail", "victim") and same_process and _near(earlier, item)


def _near(earlier: MatchedLine, item: MatchedLine) -> bool:
    return item.line.t_s - earlier.line.t_s <= ONE_EVENT_S


def _named(event: MatchedLine, item: MatchedLine) -> MatchedLine:
    """Return `event` with what `item` adds: the victim of a kill, the process behind a hung ring."""
    report = joined(event.match.oom, item.match.oom)
    if item.match.role in ("victim", "opens") and event.match.role == "opens":
        return replace(item, match=replace(item.match, oom=report))
    pid, process = event.match.pid or item.match.pid, event.match.process or item.match.process
    return replace(event, match=replace(event.match, pid=pid, process=process, oom=report))
