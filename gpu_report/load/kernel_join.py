"""Joining the kernel lines that are one event: a lost GPU in three lines, a kill of the OOM killer in dozens."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gpu_report.load.kernel_match import KernelLine, Told
from gpu_report.load.kernel_prefix import message_of

# Lines of one event are printed within milliseconds; a busy serial console stretches an OOM dump to seconds.
ONE_EVENT_S: Final = 10.0
_LONGEST_JOIN = 3  # the driver's message about a lost GPU has three lines
_HEAD: Final = re.compile(r"NVRM: The NVIDIA GPU ")
_REST: Final = re.compile(r"(?:NVRM:)?\s*(?:\(PCI ID: |installed in this system|fallen off the bus)")


def join_lines(lines: Sequence[KernelLine]) -> list[KernelLine]:
    """Return `lines` (sorted by time) with the driver's message about a lost GPU as one line."""
    joined: list[KernelLine] = []
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


def join_details(items: Sequence[Told]) -> list[Told]:
    """Return one item for each event: the victim's line for a kill, and details folded into what they detail."""
    kept: list[Told] = []
    last_of_kind: dict[str, int] = {}
    for item in items:
        kind = item.match.kind
        killing = _killing(kept, last_of_kind.get("oom"), item)
        parent = last_of_kind.get(kind)
        if killing and kind == "other":
            continue  # the OOM killer's dump of memory and processes
        if parent is not None and ((killing and kind == "oom") or _details(kept[parent], item)):
            kept[parent] = _named(kept[parent], item)
        else:
            last_of_kind[kind] = len(kept)
            kept.append(item)
    return kept


def _killing(kept: Sequence[Told], last: int | None, item: Told) -> bool:
    """Return whether the OOM killer was invoked, and not long ago, without having named its victim yet."""
    return last is not None and kept[last].match.role == "opens" and _near(kept[last], item)


def _details(earlier: Told, item: Told) -> bool:
    """Return whether `item` says more of `earlier`, the last of its kind; a pid that both name must agree."""
    same_process = None in (earlier.match.pid, item.match.pid) or earlier.match.pid == item.match.pid
    return item.match.role in ("detail", "victim") and same_process and _near(earlier, item)


def _near(earlier: Told, item: Told) -> bool:
    return item.line.t_s - earlier.line.t_s <= ONE_EVENT_S


def _named(event: Told, item: Told) -> Told:
    """Return `event` with what `item` adds: the victim of a kill, the process behind a hung ring."""
    if item.match.role in ("victim", "opens") and event.match.role == "opens":
        return item
    pid, process = event.match.pid or item.match.pid, event.match.process or item.match.process
    return replace(event, match=replace(event.match, pid=pid, process=process))
