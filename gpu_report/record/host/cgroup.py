"""What the trainer's own control group waits for: pressure without the neighbours', and the memory it may use.

Only cgroup v2 tells it, but for a limit of CPU time, which v1 has, too. The root group has nothing that /proc does not
tell, so for it the columns stay empty.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from gpu_report.record.host.psi_disk import capped, rate, total_of
from gpu_report.record.proc_files import read_text

MIB = 2**20
ROOT = Path("/sys/fs/cgroup")
LOOK_EVERY_S = 30.0  # a process is moved to another group once, by what launched it, if at all
NOT_ROOT = "cgroup.type"  # a file that every group has but the root, also where a namespace shows ours as the root
MEMORY_EVERY_S = 10.0  # it grows over minutes, and a cell a second would add 6 bytes to each row
V1_QUOTA, V1_PERIOD = "cpu.cfs_quota_us", "cpu.cfs_period_us"
PRESSURES = {
    "cgroup_cpu_pressure_pct": "cpu.pressure",
    "cgroup_io_pressure_pct": "io.pressure",
    "cgroup_memory_pressure_pct": "memory.pressure",
}


class CgroupSampler:
    """Turns the running totals of one process's group into rates, and reads the memory it uses."""

    def __init__(self, proc: Path = Path("/proc"), root: Path = ROOT) -> None:
        self._proc, self._root = proc, root
        self._pid: int | None = None
        self._due_s = 0.0
        self._memory_due_s = 0.0
        self._folder: Path | None = None
        self._files: Mapping[str, Path] = {}
        self._before: Mapping[str, float] = {}
        self._before_s = 0.0

    @property
    def folder(self) -> Path | None:
        """Return the folder of the group that was found last; None where there is none."""
        return self._folder

    def sample(self, mono_s: float, pid: int | None) -> dict[str, float | None]:
        """Return the cgroup columns of schema.HOST_QUANTITIES for a process; empty without it, or without a group."""
        self._look(mono_s, pid)
        if self._folder is None:
            return {}
        totals = {name: t for name, file in self._files.items() if (t := total_of(read_text(file))) is not None}
        before, elapsed_s = self._before, mono_s - self._before_s
        self._before, self._before_s = totals, mono_s
        rates = {name: capped(name, rate(before.get(name), total, elapsed_s)) for name, total in totals.items()}
        return {**rates, "cgroup_memory_used_mib": self._memory_mib(mono_s, self._folder)}

    def _look(self, mono_s: float, pid: int | None) -> None:
        """Find the group of `pid` when that is due; totals of another group are no beginning for its rates."""
        if pid == self._pid and mono_s < self._due_s:
            return
        folder = None if pid is None else group_of(pid, self._proc, self._root)
        if folder is not None and folder != self._folder:
            self._files = {name: folder / file for name, file in PRESSURES.items()}
            self._before, self._memory_due_s = {}, 0.0
        self._pid, self._folder, self._due_s = pid, folder, mono_s + LOOK_EVERY_S

    def _memory_mib(self, mono_s: float, folder: Path) -> float | None:
        if mono_s < self._memory_due_s:
            return None
        self._memory_due_s = mono_s + MEMORY_EVERY_S
        return _mib(read_text(folder / "memory.current"))


def group_of(pid: int | str, proc: Path = Path("/proc"), root: Path = ROOT) -> Path | None:
    """Return the folder of a process's cgroup; None for the root group, for v1, and where it is not mounted here."""
    lines = read_text(proc / str(pid) / "cgroup").splitlines()
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    if path is None or ".." in Path(path).parts:  # one of another namespace, which cannot be seen from here
        return None
    folder = root / path.lstrip("/")
    return folder if (folder / NOT_ROOT).exists() else None


def memory_limit_mib(proc: Path = Path("/proc"), root: Path = ROOT) -> float | None:
    """Return the least memory in MiB that our own group, or one above it, may use; None where nothing limits it."""
    return _least("memory.max", _mib, proc, root)


def cpu_limit(proc: Path = Path("/proc"), root: Path = ROOT) -> float | None:
    """Return the least CPU time, in cores, that our own group or one above it may use; None where nothing limits it.

    A container sees all cores of its machine; this is what `docker run --cpus 4` and Kubernetes' limits set.
    """
    limits = _least("cpu.max", _cores, proc, root), _least_of_v1(proc, root)
    return min((limit for limit in limits if limit is not None), default=None)


def oom_kills(folder: Path) -> int | None:
    """Return how many processes of a group, and of those below it, the kernel has killed for want of memory."""
    words = (line.split() for line in read_text(folder / "memory.events").splitlines())
    return next((int(w[1]) for w in words if len(w) == 2 and w[0] == "oom_kill" and w[1].isdigit()), None)


def _least(name: str, read: Callable[[str], float | None], proc: Path, root: Path) -> float | None:
    """Return the least of a limit over our own group and those above it."""
    group = group_of("self", proc, root)
    if group is None:
        return None
    above = [folder for folder in (group, *group.parents) if folder.is_relative_to(root)]
    limits = [read(read_text(folder / name)) for folder in above]
    return min((limit for limit in limits if limit is not None), default=None)


def _least_of_v1(proc: Path, root: Path) -> float | None:
    """Return the least CPU time, in cores, of our own group of cgroup v1 and of those above it.

    In a container the mount may begin at that group, whose path is that of the machine: then the mount itself is it.
    """
    for line in read_text(proc / "self" / "cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if "cpu" not in controllers.split(",") or ".." in Path(path).parts:
            continue
        mount = root / controllers if (root / controllers).is_dir() else root / "cpu"
        group = mount / path.lstrip("/")
        above = [folder for folder in (group, *group.parents) if folder.is_relative_to(mount)]
        found = [
            _cores(f"{read_text(each / V1_QUOTA).strip()} {read_text(each / V1_PERIOD).strip()}") for each in above
        ]
        return min((limit for limit in found if limit is not None), default=None)
    return None


def _cores(text: str) -> float | None:
    """Return cpu.max (`400000 100000`: microseconds in each period) as cores; None for `max` and for none."""
    words = text.split()
    if len(words) != 2 or not all(word.isdigit() for word in words) or int(words[1]) == 0:
        return None
    return int(words[0]) / int(words[1])


def _mib(text: str) -> float | None:
    """Return a file of bytes in MiB; None for `max` and for none."""
    return int(text) / MIB if text.strip().isdigit() else None
