"""Whose a process on a GPU is: the trainer's, another's, or none that can be seen from here."""

import os
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from gpu_report.record.proc_files import stat_fields
from gpu_report.record.yolo.find_run_dir import MAX_DEPTH, roots_of

TRAINER, OTHER, NOT_VISIBLE, UNKNOWN = "trainer", "other", "not visible", "unknown"
MAX_ANCESTORS = 64  # a launcher under a launcher under a shell is five; a loop would be a broken /proc


@dataclass(frozen=True)
class TrainerHints:
    """What tells the trainer: the command that was started, or the folder of the YOLO run that is watched."""

    command_pid: int | None = None
    run: Path | None = None


@dataclass(frozen=True)
class Stat:
    """A process's parent, its process group, and when it began (clock ticks since boot), from /proc/PID/stat."""

    parent: int
    group: int
    started: int


@dataclass
class Owners:
    """Told by the scheduler what is known, asked by NVML's thread; replacing `known` whole needs no lock."""

    proc: Path = Path("/proc")
    known: TrainerHints = field(default_factory=TrainerHints)
    _on_gpus: dict[int, frozenset[int]] = field(default_factory=dict)

    def learn(self, command_pid: int | None, run: Path | None) -> None:
        """Take what is known by now of the training."""
        if self.known != (known := TrainerHints(command_pid, run)):
            self.known = known

    def of(self, pids: Collection[int], gpu: int = 0) -> dict[int, str]:
        """Return the owner of each process that is on a GPU: schema.PROCESS_OWNERS; all GPUs' are weighed together."""
        self._on_gpus[gpu] = frozenset(pids)
        everywhere = frozenset().union(*self._on_gpus.values())
        known, visible = self.known, {pid for pid in everywhere if self._visible(pid)}
        if known.command_pid is not None:
            inside = {pid for pid in visible if self._descends(pid, known.command_pid)}
            owners = {pid: TRAINER if pid in inside else OTHER for pid in visible}
        else:
            owners = self._by_run(visible, known.run)
        return {pid: owners.get(pid, NOT_VISIBLE) for pid in pids}

    def _descends(self, pid: int, command_pid: int) -> bool:
        lineage = self._lineage(pid)
        return command_pid in lineage or self._left_behind(lineage, command_pid)

    def _left_behind(self, lineage: list[int], command_pid: int) -> bool:
        """Say whether a process lost the parent that it had from the command: it keeps the command's process group.

        What else is in that group began before the command, or descends from what is above it (a script, us).
        """
        begun = self._stat(command_pid)
        root = None if begun is None else self._root(lineage, begun.group)
        if begun is None or root is None or root in self._lineage(command_pid):
            return False
        stat = self._stat(root)
        return stat is not None and stat.started >= begun.started

    def _root(self, lineage: list[int], group: int) -> int | None:
        """Return the last process upwards that still is in a process group, None when the first is not."""
        root = None
        for pid in lineage:
            stat = self._stat(pid)
            if stat is None or stat.group != group:
                break
            root = pid
        return root

    def _by_run(self, pids: set[int], run: Path | None) -> dict[int, str]:
        """Tell by the watched run: its folder lies under a process's own. Several trainings there leave it unknown."""
        owning = {pid for pid in pids if run is not None and _owns(pid, run, self.proc)}
        if not owning or len({self._family(pid, owning) for pid in owning}) > 1:
            return dict.fromkeys(pids, UNKNOWN)
        return {pid: TRAINER if pid in owning else OTHER for pid in pids}

    def _family(self, pid: int, owning: set[int]) -> int:
        """Return what the ranks of one training share: the topmost Python, or process on the GPU, above them."""
        top = pid
        for above in self._lineage(pid)[1:]:
            if above not in owning and not self._is_python(above):
                break  # a shell or an init, under which other trainings may run
            top = above
        return top

    def _is_python(self, pid: int) -> bool:
        try:
            return (self.proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").startswith("python")
        except OSError:
            return False

    def _lineage(self, pid: int) -> list[int]:
        """Return the process, its parent, and so on."""
        line = [pid]
        while len(line) < MAX_ANCESTORS and (stat := self._stat(line[-1])) and stat.parent not in (0, *line):
            line.append(stat.parent)
        return line

    def _stat(self, pid: int) -> Stat | None:
        try:
            fields = stat_fields(pid, self.proc)
            return Stat(int(fields[1]), int(fields[2]), int(fields[19]))
        except (ValueError, IndexError):
            return None

    def _visible(self, pid: int) -> bool:
        """Say whether a pid means a process here. Where /proc hides other users' ones, a refused signal tells them."""
        if (self.proc / str(pid)).exists():
            return True
        try:
            os.kill(pid, 0)
        except PermissionError:
            return True
        except (OSError, OverflowError):
            pass
        return False


def _owns(pid: int, run: Path, proc: Path) -> bool:
    """Say whether a run's folder lies where this process would put one: not too far below its own folder or project."""
    roots = (root for root in roots_of(pid, proc) if run.is_relative_to(root))
    return any(len(run.relative_to(root).parts) <= MAX_DEPTH for root in roots)
