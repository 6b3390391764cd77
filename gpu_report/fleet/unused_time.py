"""GPU time that a run held and did not use: without a process, and after the end of its training."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpu_report.analyse.timeline.device_argument import UUIDS, visible_devices
from gpu_report.analyse.timeline.process_samples import process_samples_of
from gpu_report.analyse.timeline.thresholds import UNUSED_PCT
from gpu_report.analyse.timeseries.intervals import Span, length_s, minus
from gpu_report.model import Analysis, Run

BEFORE_WORK = frozenset({"idle", "startup"})


@dataclass(frozen=True)
class UnusedTime:
    """Seconds of one GPU: in which no process was on it, and after the last training. None is not known."""

    no_process_s: float | None
    after_end_s: float | None


def held_gpus(analysis: Analysis) -> frozenset[int]:
    """Return the GPUs that a run held: those that its command may see, but for those where only others worked.

    What it used it held. Numbers in CUDA_VISIBLE_DEVICES are believed where all GPUs are alike: else CUDA's order may
    be another one than the driver's.
    """
    seen = _visible(analysis.run)
    return frozenset(
        each.gpu.index
        for each in analysis.gpus
        if each.used or (not each.of_others and (seen is None or each.gpu.index in seen))
    )


def _visible(run: Run) -> frozenset[int] | None:
    """Return the GPUs that the command may see, None where that is all of them, or not known."""
    if run.recording.cuda_visible_devices is None:
        return None
    entries = visible_devices(run.recording.cuda_visible_devices)
    if any(entry.startswith(UUIDS) for entry in entries):
        return frozenset(gpu.index for gpu in run.gpus if gpu.uuid and gpu.uuid.startswith(tuple(entries)))
    alike = len({gpu.name for gpu in run.gpus}) == 1 and all(gpu.parent_index is None for gpu in run.gpus)
    return frozenset(int(entry) for entry in entries) if alike else None


def unused_time(analysis: Analysis) -> Mapping[int, UnusedTime]:
    """Return the unused time of each GPU, by device index."""
    run, end_s = analysis.run, _end_of_training(analysis)
    after_s = None if end_s is None else max(run.duration_s - end_s, 0.0)
    saw_processes = _saw_processes(analysis)
    return {
        each.gpu.index: UnusedTime(
            no_process_s=_without_process(run, each.gpu.index) if saw_processes else None,
            after_end_s=after_s if each.used else None,
        )
        for each in analysis.gpus
    }


def _end_of_training(analysis: Analysis) -> float | None:
    """Return when the last phase ended in which YOLO worked, None where none is known: GPUs may still be at work."""
    return max((phase.end_t_s for phase in analysis.phases if phase.name not in BEFORE_WORK), default=None)


def _saw_processes(analysis: Analysis) -> bool:
    """Tell whether the recorder could see processes: none at all are believed only where no GPU did anything.

    In a container the driver may show none although GPUs are at work.
    """
    run = analysis.run
    failed = any(event.kind == "nvml_error" and event.fields.get("quantity") == "processes" for event in run.events)
    if failed or not run.recording.is_ours:
        return False
    means = [each.quantities["gpu_util_pct"].mean for each in analysis.gpus if "gpu_util_pct" in each.quantities]
    return not run.processes.empty or (bool(means) and max(means) < UNUSED_PCT)


def _without_process(run: Run, gpu: int) -> float:
    there: set[int] = set()
    spans: list[Span] = []
    begun_s = 0.0
    for look in process_samples_of(run, gpu):
        if not there:
            begun_s = look.t_s
        (there.discard if look.change == "gone" else there.add)(look.pid)
        if not there:
            spans.append((begun_s, look.t_s))
    if there:
        spans.append((begun_s, run.duration_s))
    return length_s(minus([(0.0, run.duration_s)], spans))
