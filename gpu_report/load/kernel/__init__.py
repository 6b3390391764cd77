"""From lines of the kernel log to events: what each says, lines of one event joined, repeats folded."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from gpu_report.catalogue import SEVERITIES
from gpu_report.load.kernel.host_patterns import RULES
from gpu_report.load.kernel.join import ONE_EVENT_S, join_details, join_lines
from gpu_report.load.kernel.log_prefix import message_of
from gpu_report.load.kernel.match import UNKNOWN, Match, MatchedLine, PciAddress, RawLine, first_match, parse_pci
from gpu_report.load.kernel.nvidia_patterns import match_nvidia, xid_match
from gpu_report.load.kernel.xid_catalogue import describe
from gpu_report.model import Gpu, KernelEvent, Severity

__all__ = ["RawLine", "classify", "kernel_events"]

FOLD_SILENCE_S: Final = 180.0  # repeats are one event until 3 min of silence (practice of NVIDIA's fleet tools)
NVML_WINDOW_S: Final = 5.0  # NVML's Xid event and the log's line of the same fault lie closer than this
MOST_EVENTS: Final = 1000  # different ones of a recording; a poor machine has dozens, and nobody reads more
MOST_XIDS: Final = 2000  # of NVML; the log's own are folded, these are not yet
_LASTING_KINDS: Final = frozenset({"nfs", "suspend"})  # these last until the line that ends them, however long
# A sound PCIe link repairs a handful of errors a day; one that repairs this many (1/s) for a minute is poor.
POOR_LINK_PER_S: Final = 1.0
_RATED_FROM_S: Final = 60.0
_NVML: Final = "NVML"
_LOST_XID: Final = 79
_NOT_IN_LOG: Final = "; the kernel log has no line of it"
_Fault = tuple[object, ...]
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+|\d+")


def classify(line: RawLine, gpus: Sequence[Gpu], run_pids: frozenset[int]) -> KernelEvent:
    """Return what one line says; one that we do not know is of kind `other`, severity info."""
    return _event(MatchedLine(line, _match(line.text)), _pci_to_index(gpus, ()), run_pids)


def kernel_events(
    lines: Sequence[RawLine],
    gpus: Sequence[Gpu],
    run_pids: frozenset[int],
    xid_codes: Sequence[tuple[float, int | None, int]],
    *,
    log_was_read: bool = True,
) -> tuple[KernelEvent, ...]:
    """Return the events in `lines`, sorted by time; nothing is missing in a log that was not read.

    `xid_codes` are NVML's own Xid events (t_s, gpu, code): each joins the log's event of the same fault where
    there is one. Lines of one event are joined, and repeats folded until 3 min of silence. Of more than MOST_EVENTS the
    worst, and of those the first, are returned.
    """
    ordered = join_lines(sorted(lines, key=lambda line: line.t_s))
    items = [MatchedLine(line, _match(line.text)) for line in ordered]
    indices = _pci_to_index(gpus, items)
    matched = [item for item in join_details(items) if item.match.role != "introduction"]
    folded = _worst(_fold([(_event(item, indices, run_pids), item.match) for item in matched]))
    events = _unplugged([_rated(event) for event in folded])
    all_events = _with_nvml(events, xid_codes[:MOST_XIDS], _NOT_IN_LOG if log_was_read else "")
    return tuple(sorted(all_events, key=lambda event: event.t_s))


def _match(text: str) -> Match:
    message = message_of(text)
    return match_nvidia(message) or first_match(RULES, message) or UNKNOWN


def _pci_to_index(gpus: Sequence[Gpu], items: Sequence[MatchedLine]) -> dict[PciAddress, int]:
    """Return each PCI address's device index, from the devices themselves and from lines that pair it with a UUID."""
    by_uuid = {gpu.uuid: gpu.index for gpu in gpus if gpu.uuid}
    indices: dict[PciAddress, int] = {}
    for item in items:
        if item.match.pci and item.match.uuid in by_uuid:
            indices[item.match.pci] = by_uuid[item.match.uuid]
    for gpu in gpus:
        if gpu.pci_bus_id and (address := parse_pci(gpu.pci_bus_id)):
            indices[address] = gpu.index
    return indices


def _event(item: MatchedLine, indices: Mapping[PciAddress, int], run_pids: frozenset[int]) -> KernelEvent:
    line, match = item.line, item.match
    severity: Severity = "critical" if match.critical_in_run and match.pid in run_pids else match.severity
    return KernelEvent(
        t_s=line.t_s,
        kind=match.kind,
        severity=severity,
        text=line.text,
        meaning=match.meaning,
        action=match.action,
        gpu=indices.get(match.pci) if match.pci else None,
        code=match.code,
        pid=match.pid,
        process=match.process,
        source=line.source,
        oom=match.oom,
        at_limit=match.at_limit,
        subject=match.subject,
        xid_kind=describe(match.code).kind if match.kind == "xid" and match.code is not None else None,
    )


def _fold(matched: Sequence[tuple[KernelEvent, Match]]) -> list[KernelEvent]:
    """Return the events with repeats of one fault counted in the first of them (`count`, `last_t_s`)."""
    events: list[KernelEvent] = []
    still_open: dict[_Fault, dict[tuple[object, ...], int]] = {}
    for event, match in matched:
        of_fault = still_open.setdefault(_fault(event, match), {})
        if match.role == "resolved" and _resolve(events, of_fault, event):
            continue
        key = event.severity, event.code, event.pid
        index = of_fault.get(key)
        if index is not None and _lasts(events[index], event):
            events[index] = replace(events[index], count=events[index].count + 1, last_t_s=event.t_s)
        else:
            of_fault[key] = len(events)
            events.append(event)
    return events


def _worst(events: Sequence[KernelEvent]) -> Sequence[KernelEvent]:
    if len(events) <= MOST_EVENTS:
        return events
    worst = sorted(events, key=lambda event: SEVERITIES.index(event.severity))[:MOST_EVENTS]
    return sorted(worst, key=lambda event: event.t_s)


def _fault(event: KernelEvent, match: Match) -> _Fault:
    """Return what a fault sticks to; lines of no known fault are the same when they differ in numbers only."""
    if event.kind in ("other", "driver") and not match.subject:
        return event.kind, event.gpu, match.pci, _NUMBER.sub("#", message_of(event.text))
    return event.kind, event.gpu, match.pci, match.subject


def _lasts(first: KernelEvent, event: KernelEvent) -> bool:
    last = first.t_s if first.last_t_s is None else first.last_t_s
    return event.kind in _LASTING_KINDS or event.t_s - last <= FOLD_SILENCE_S


def _resolve(events: list[KernelEvent], of_fault: dict[tuple[object, ...], int], event: KernelEvent) -> bool:
    """Let the open events of a fault, which `event` ends, last until now; False where there are none."""
    ended = [key for key, index in of_fault.items() if _lasts(events[index], event)]
    for key in ended:
        index = of_fault.pop(key)
        events[index] = replace(events[index], last_t_s=event.t_s)
    return bool(ended)


def _rated(event: KernelEvent) -> KernelEvent:
    """Return `event`, a warning where PCIe repairs errors at a rate that a sound link does not have."""
    lasted_s = 0.0 if event.last_t_s is None else event.last_t_s - event.t_s
    if event.kind != "aer" or event.severity != "info" or event.count < POOR_LINK_PER_S * max(lasted_s, _RATED_FROM_S):
        return event
    return replace(event, severity="warning", meaning=f"{event.meaning}: {event.count} in {lasted_s:.0f} s")


def _unplugged(events: Sequence[KernelEvent]) -> list[KernelEvent]:
    """Return `events`, an empty slot as critical where it is a GPU's: by its address, or as one is lost just then."""
    lost_s = [event.t_s for event in events if event.kind == "gpu-lost" or event.code == _LOST_XID]
    return [
        replace(event, severity="critical", meaning=f"{event.meaning}: a GPU is gone")
        if event.kind == "hotplug" and (event.gpu is not None or _one_is_near(lost_s, event.t_s))
        else event
        for event in events
    ]


def _one_is_near(times: Sequence[float], t_s: float) -> bool:
    return any(abs(each - t_s) <= ONE_EVENT_S for each in times)


def _with_nvml(
    events: Sequence[KernelEvent], xid_codes: Sequence[tuple[float, int | None, int]], unlogged: str
) -> list[KernelEvent]:
    """Return `events` with NVML's own Xid events: joined to the log's where both saw one, else beside them."""
    merged = list(events)
    for t_s, gpu, code in sorted(xid_codes, key=lambda xid: xid[0]):
        index = _same_xid(merged, t_s, gpu, code)
        if index is None:
            merged.append(_nvml_event(t_s, gpu, code, unlogged))
        else:
            merged[index] = _seen_by_nvml(merged[index], t_s, gpu)
    return merged


def _same_xid(events: Sequence[KernelEvent], t_s: float, gpu: int | None, code: int) -> int | None:
    for index, event in enumerate(events):
        window_s = FOLD_SILENCE_S if event.source == _NVML else NVML_WINDOW_S
        last_t_s = event.t_s if event.last_t_s is None else event.last_t_s
        same = event.kind == "xid" and event.code == code and (event.gpu == gpu or None in (event.gpu, gpu))
        if same and event.t_s - NVML_WINDOW_S <= t_s <= last_t_s + window_s:
            return index
    return None


def _seen_by_nvml(event: KernelEvent, t_s: float, gpu: int | None) -> KernelEvent:
    if event.source == _NVML:
        return replace(event, count=event.count + 1, last_t_s=t_s)
    source = event.source if _NVML in event.source else f"{event.source or 'kernel log'} and {_NVML}"
    return replace(event, gpu=gpu if event.gpu is None else event.gpu, source=source)


def _nvml_event(t_s: float, gpu: int | None, code: int, unlogged: str) -> KernelEvent:
    match = xid_match(code, "")
    return KernelEvent(
        t_s=t_s,
        kind=match.kind,
        severity=match.severity,
        text=f"NVML reported Xid {code}{unlogged}",
        meaning=match.meaning,
        action=match.action,
        gpu=gpu,
        code=code,
        source=_NVML,
    )
