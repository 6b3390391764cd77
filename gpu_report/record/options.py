"""What the user asked `record` to do."""

from dataclasses import dataclass
from pathlib import Path

from gpu_report.record.profile_plan import ProfilePlan


@dataclass(frozen=True)
class RecordOptions:
    """What to record and for how long.

    `gpus` holds indices or UUIDs; empty means every GPU of the machine. `detail` adds power every 20 ms.
    `inject` loads our callbacks into a command that trains with ultralytics; `stacks` has them note the line of code
    that each of its processes stands in, and py-spy that of processes without our callbacks while a GPU is idle.
    `profile` says which steps PyTorch's profiler takes, None for none. `own_report` says that whoever records makes a
    report of its own: the end names the run folder alone. `is_attached` says that a process that trains has started the
    recorder, and notes its epochs in the run folder: they are worth it also without a GPU.
    """

    command: tuple[str, ...] = ()
    duration_s: float | None = None
    interval_s: float = 1.0
    gpus: tuple[str, ...] = ()
    output: Path | None = None
    yolo: Path | None = None
    kernel_log: Path | None = None
    detail: bool = False
    inject: bool = True
    stacks: bool = True
    profile: ProfilePlan | None = None
    own_report: bool = False
    is_attached: bool = False
