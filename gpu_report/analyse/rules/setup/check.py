"""What a rule for a set-up that does not fit its machine looks at, and what it says."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import ceil

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Advice, Cause, Evidence, Severity
from gpu_report.wording import MIB_PER_GIB

SHM = "/dev/shm"  # noqa: S108 - only named here


@dataclass(frozen=True)
class SetupIssue:
    """What is wrong with a set-up: in one sentence without its full stop, with the numbers and what to do.

    `span` is when, None for the whole
    training. Of several trainings that a check finds with the same `about` the first stands for all.
    """

    severity: Severity
    summary: str
    about: tuple[Hashable, ...]
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[Advice, ...] = ()
    cause: Cause | None = None
    span: Span | None = None


def host_mean(context: Context, training: Training, name: str) -> float | None:
    """Return the mean of a column of host.csv while a training trained, None where nothing of it is known."""
    return column_mean(context.run.host, name, training.train_spans)


Check = Callable[[Context, Training], SetupIssue | None]


def shm_room_gib(need_mib: float) -> int:
    """Return which size (GiB) to ask for where loaders may leave so much in /dev/shm."""
    return max(ceil(th.SHM_ROOM * need_mib / MIB_PER_GIB), 1)
