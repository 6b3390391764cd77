"""NCCL's own log (`NCCL_DEBUG_FILE`): its version, how ranks are connected, and its warnings.

A line is `host:pid:tid [gpu] NCCL INFO ...`, or `[time] host:pid:tid [gpu] file.cc:1 NCCL WARN ...` (debug.cc of NCCL;
without the time up to 2.25). Lines of several processes may stand in one file.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gpu_report import schema
from gpu_report.load.problems import too_large
from gpu_report.load.process_files import read_head
from gpu_report.load.run_clock import RunClock
from gpu_report.model import NcclProcess, NcclWarning

MOST_BYTES: Final = 4 << 20  # of a file; what the recorder keeps has 2 MiB at most
MOST_PROCESSES: Final = 256
MOST_WARNINGS: Final = 50  # of a process
MOST_NAMES: Final = 16  # adapters, transports and settings of a process
LONGEST_LINE: Final = 2000
LONGEST_TEXT: Final = 300  # of a warning

_LINE = re.compile(
    r"(?:\[(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\] )?(?P<host>[^\s:]{1,255}):(?P<pid>\d{1,10}):\d{1,10} "
    r"\[-?\d{1,4}\] (?:(?P<source>[\w./]{1,80}:\d{1,6}) )?NCCL (?P<level>INFO|WARN) (?P<text>.*)"
)
_VERSION = re.compile(r"NCCL version (?P<version>[\w.+\-]{1,40})")
_NETWORK = re.compile(r"Using network (?P<network>[\w .\-]{1,40})$")
_RANK = re.compile(r"(?:^|\s)comm 0x[0-9a-f]{1,16} rank (?P<rank>\d{1,7}) n[rR]anks (?P<ranks>\d{1,7})")
_NODES = re.compile(r" nNodes (?P<nodes>\d{1,7})")
_VIA = re.compile(r"^(?:Channel|Ring) \d.* via (?P<via>[\w/ ().\-]{1,60}?)(?: comm .*)?$")
_DEVICE = re.compile(r"/\d{1,4}(?:\(\d{1,4}\))?(?=/|$)")
_ADAPTERS = re.compile(r"^NET/(?P<net>\w{1,30}) ?: Using (?P<list>\[\d.*)$")
_ADAPTER = re.compile(r"\[\d{1,3}\](?P<name>[\w.\-]{1,40})")
_SETTING = re.compile(
    rf"^(?P<name>{schema.NCCL_SETTINGS}) set(?: by environment)? to "
    r"(?P<value>[\w.,^=:\-]{1,60}?)\.?$"
)
_ZONE = re.compile(rf"^{re.escape(schema.NCCL_ZONE)}(?P<sign>[+-])(?P<hours>\d\d):(?P<minutes>\d\d)$")


@dataclass
class _NcclLines:
    """What the lines of a process said so far."""

    pid: int
    host: str
    rank: int | None = None
    ranks: int | None = None
    nodes: int | None = None
    version: str | None = None
    network: str | None = None
    adapters: dict[tuple[str, str], None] = field(default_factory=dict)
    transports: dict[str, None] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    warnings: list[NcclWarning] = field(default_factory=list)

    def take(self, text: str) -> None:
        """Take what a line of information says."""
        if found := _VERSION.search(text):
            self.version = found["version"]
        elif found := _NETWORK.search(text):
            self.network = found["network"]
        elif found := _VIA.search(text):
            _keep(self.transports, _DEVICE.sub("", found["via"]))
        elif found := _ADAPTERS.search(text):
            for each in _ADAPTER.finditer(found["list"].partition("; OOB")[0]):
                _keep(self.adapters, (found["net"], each["name"]))
        elif found := _SETTING.search(text):
            if len(self.settings) < MOST_NAMES:
                self.settings[found["name"]] = found["value"]
        elif found := _RANK.search(text):
            self._take_rank(int(found["rank"]), int(found["ranks"]), text)

    def _take_rank(self, rank: int, ranks: int, text: str) -> None:
        """Take a rank, where its communicator is the largest so far: that of the whole training."""
        if self.ranks is not None and ranks < self.ranks:
            return
        self.rank, self.ranks = rank, ranks
        if found := _NODES.search(text):
            self.nodes = int(found["nodes"])

    def done(self) -> NcclProcess:
        """Return all of it."""
        return NcclProcess(
            pid=self.pid,
            host=self.host,
            rank=self.rank,
            ranks=self.ranks,
            nodes=self.nodes,
            version=self.version,
            network=self.network,
            adapters=tuple(name for net, name in self.adapters if net == self.network),
            transports=tuple(self.transports),
            settings=tuple(self.settings.items()),
            warnings=tuple(self.warnings),
        )


def _keep(names: dict, name: object) -> None:  # type: ignore[type-arg] # an ordered set of either kind of name
    if len(names) < MOST_NAMES:
        names.setdefault(name)


def read_debug_files(
    paths: Sequence[Path], clock: RunClock, duration_s: float
) -> tuple[tuple[NcclProcess, ...], list[str]]:
    """Return the processes that wrote files, by rank, and what of them could not be read."""
    found: dict[tuple[str, int], _NcclLines] = {}
    problems = []
    for path in paths:
        data, left_out = read_head(path, MOST_BYTES)
        name = f"{schema.NCCL_DIR}/{path.name}"
        if left_out:
            problems.append(too_large(name, len(data)) if data else f"{name} {left_out}")
        _read(data.decode("utf-8", "replace"), found, clock, duration_s)
    processes = sorted(found.values(), key=lambda each: (each.rank is None, each.rank or 0, each.host, each.pid))
    return tuple(each.done() for each in processes), problems


def _read(text: str, found: dict[tuple[str, int], _NcclLines], clock: RunClock, duration_s: float) -> None:
    zone_s: float | None = None
    for line in text.splitlines():
        if match := _LINE.fullmatch(line[:LONGEST_LINE]):
            who = match["host"], int(match["pid"])
            if who not in found and len(found) >= MOST_PROCESSES:
                continue
            process = found.setdefault(who, _NcclLines(who[1], who[0]))
            if match["level"] == "INFO":
                process.take(match["text"])
            elif len(process.warnings) < MOST_WARNINGS:
                t_s = _time(match["when"], zone_s, clock, duration_s)
                process.warnings.append(NcclWarning(match["text"][:LONGEST_TEXT], match["source"] or "", t_s))
        elif zone := _ZONE.fullmatch(line):
            seconds = 3600 * int(zone["hours"]) + 60 * int(zone["minutes"])
            zone_s = -seconds if zone["sign"] == "-" else seconds


def _time(when: str | None, zone_s: float | None, clock: RunClock, duration_s: float) -> float | None:
    """Return a time of NCCL's, in the zone of its machine, on the run's clock; None where it is not of this run."""
    if when is None or zone_s is None:
        return None
    try:
        wall_s = datetime.strptime(when, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp() - zone_s
    except ValueError:
        return None
    t_s = clock.t(wall_s, None)
    return min(max(t_s, 0.0), duration_s) if -1 <= t_s <= duration_s + 1 else None  # it has whole seconds
