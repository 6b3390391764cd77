"""Which lines of the user's own code switched on what slows a training, found in the sources that it has imported.

Only what is known to be on is looked for, and only files that name it are parsed: a training that sets nothing pays for
a look at the names of its modules. Nothing is executed. A file is one that Python has compiled in this process already,
or the script that started it, and of those only such as a person writes: MOST_BYTES each.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from .statements import Statement, steps
from .user_files import ancestors, has_variable, own_files, source_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_FILES = 200
MOST_READ = 2**21  # bytes in all
MOST_PARSED = 2**17  # bytes of those that name a setting: half a second of CPU
MOST_PLACES = 3  # of one setting; where there are more, nobody knows which one it was
OFF = frozenset({None, False, "", "0"})  # values by which code switches off


class SettingPattern(NamedTuple):
    """How code switches something on: by a call, or an assignment, of a name that ends so, or by a variable."""

    calls: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()
    variable: str = ""
    slow_at: bool = False  # the value of what is assigned that slows
    any_value: bool = False  # of the variable switches on, an empty one, too

    @property
    def words(self) -> tuple[str, ...]:
        """Return what a file contains that does it, one of these at least."""
        named = (name.rpartition(".")[2] for name in (*self.calls, *self.assigned))
        return (*named, *([self.variable] if self.variable else []))


PATTERNS: Mapping[str, SettingPattern] = {
    "no_gpu": SettingPattern(variable="CUDA_VISIBLE_DEVICES", any_value=True),
    "launch_blocking": SettingPattern(variable="CUDA_LAUNCH_BLOCKING"),
    "no_memory_caching": SettingPattern(variable="PYTORCH_NO_CUDA_MEMORY_CACHING"),
    "p2p": SettingPattern(variable="NCCL_P2P_DISABLE"),
    "shm": SettingPattern(variable="NCCL_SHM_DISABLE"),
    "torch_profiler": SettingPattern(
        calls=("torch.profiler.profile", "autograd.profiler.profile", "profiler.emit_nvtx")
    ),
    "cudnn_off": SettingPattern(assigned=("cudnn.enabled",)),
    "cudnn_benchmark": SettingPattern(assigned=("cudnn.benchmark",), slow_at=True),
    "tf32": SettingPattern(assigned=("cudnn.allow_tf32",)),
    "detect_anomaly": SettingPattern(calls=("autograd.set_detect_anomaly", "autograd.detect_anomaly")),
    "memory_history": SettingPattern(calls=("memory._record_memory_history",)),
    "trace_function": SettingPattern(calls=("sys.settrace", "threading.settrace")),
    "profile_function": SettingPattern(calls=("sys.setprofile", "threading.setprofile", "cProfile.Profile")),
    "tracemalloc": SettingPattern(calls=("tracemalloc.start",), variable="PYTHONTRACEMALLOC"),
    "frequent_gc": SettingPattern(calls=("gc.set_threshold",)),
    "memory_fraction": SettingPattern(
        calls=("cuda.set_per_process_memory_fraction", "memory.set_per_process_memory_fraction")
    ),
    "sync_bn": SettingPattern(calls=("SyncBatchNorm.convert_sync_batchnorm",)),
    "affinity": SettingPattern(calls=("os.sched_setaffinity", "Process.cpu_affinity")),
    "OMP_PROC_BIND": SettingPattern(variable="OMP_PROC_BIND"),
    "OMP_PLACES": SettingPattern(variable="OMP_PLACES"),
    "GOMP_CPU_AFFINITY": SettingPattern(variable="GOMP_CPU_AFFINITY", any_value=True),  # "0" is a core
    "KMP_AFFINITY": SettingPattern(variable="KMP_AFFINITY"),
    "start_method": SettingPattern(calls=("set_start_method",), assigned=("multiprocessing_context",)),
    "threads": SettingPattern(calls=("torch.set_num_threads",), variable="OMP_NUM_THREADS"),
}


def switched_on(told: Mapping[str, Any]) -> list[str]:
    """Return what of PATTERNS the settings of a training say is on, and which fewer cores it may use than there are."""
    ways = told.get("nccl_disabled") or []
    in_32_bits = told.get("amp") is False and told.get("tf32") is False
    threads = told.get("torch_threads") or 1
    no_gpu = told.get("device") == "cpu" and told.get("gpus_hidden")
    return [
        *(["no_gpu"] if no_gpu else []),
        *ways,
        *(["tf32"] if in_32_bits else []),
        *(["sync_bn"] if told.get("synced_norms") else []),
        *(["threads"] if threads > 1 else []),
        *(["memory_fraction"] if (told.get("memory_fraction") or 1) < 1 else []),
        *(["start_method"] if told.get("start_method") in {"spawn", "forkserver"} else []),
        *([*affinity, *(told.get("thread_binding") or [])] if (affinity := _affinity()) else []),
    ]


def _affinity() -> list[str]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return ["affinity"] if 0 < usable < (os.cpu_count() or 1) else []


def found(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return `places` as the fields of lines."""
    return [{"name": name, "file": file, "line": line} for name, file, line in places(names)]


def places(names: Sequence[str]) -> list[tuple[str, str, int]]:
    """Return which lines switch on what is on: (name, file, line), in order; never more than MOST_PLACES of a name."""
    wanted = {name: PATTERNS[name] for name in names if name in PATTERNS}
    if not wanted:
        return []
    above = ancestors()
    given = {
        name: SettingPattern(variable=each.variable) for name, each in wanted.items() if _is_given(os.getpid(), each)
    }
    mine = {name: each._replace(variable="") if name in given else each for name, each in wanted.items()}
    told = _in_files(own_files([os.path.dirname(script) for _, script in above if script]), mine)  # noqa: PTH120
    for pid, script in above:  # who was not started with a variable that this process was is where it was set
        theirs = {name: each for name, each in given.items() if not _is_given(pid, each)}
        told += _in_files([script] if script else [], theirs)
        given = {name: each for name, each in given.items() if name not in theirs}
    count = Counter(name for name, _, _ in told)
    return [each for each in told if count[each[0]] <= MOST_PLACES]


def _in_files(files: Sequence[str], wanted: Mapping[str, SettingPattern]) -> list[tuple[str, str, int]]:
    found, read, parsed = [], 0, 0
    for file in files[:MOST_FILES]:
        source = source_of(file) if read < MOST_READ else ""
        read += len(source)
        asked = {name: each for name, each in wanted.items() if any(word in source for word in each.words)}
        if asked and parsed + len(source) <= MOST_PARSED:
            parsed += len(source)
            lines = _lines(source, asked)
            found += [(name, file, line) for name, line in sorted(lines, key=lambda each: each[1])]
    return found


def _lines(source: str, wanted: Mapping[str, SettingPattern]) -> set[tuple[str, int]]:
    """Return the names of what is switched on, and the lines that do it."""
    return {(name, line) for line, step in steps(source) for name, each in wanted.items() if _switches_on(step, each)}


def _is_given(pid: int, pattern: SettingPattern) -> bool:
    return bool(pattern.variable) and has_variable(pid, pattern.variable)


def _switches_on(step: Statement, pattern: SettingPattern) -> bool:
    if step.kind == "environ":
        is_on = pattern.any_value or step.value not in OFF
        return bool(pattern.variable) and step.name == pattern.variable and is_on
    if step.kind == "call":
        is_off = step.value in OFF and type(step.value) is not int  # 0 is the first of many things, such as a pid
        return _ends(step.name, pattern.calls) and not is_off
    return _ends(step.name, pattern.assigned) and step.value is not (not pattern.slow_at)


def _ends(name: str, endings: Sequence[str]) -> bool:
    return any(name == each or name.endswith(f".{each}") for each in endings)
