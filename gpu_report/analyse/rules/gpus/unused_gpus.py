"""Rule: a GPU that the recording saw did nothing while another one trained."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.causes.confidence import STRONG, WEAK
from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.host.other_processes import other_processes_on
from gpu_report.analyse.timeline.device_argument import known_order
from gpu_report.analyse.timeline.steady_state import is_settled
from gpu_report.analyse.timeline.thresholds import UNUSED_PCT
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, mask_in_any
from gpu_report.analyse.timeseries.weighted_stats import weighted_stats
from gpu_report.gpu_words import gpu_number, gpu_words
from gpu_report.model import HEALTHY_PCT, Advice, Cause, Evidence, Finding
from gpu_report.wording import memory_words

NOT_OURS = "it did no work; the recording sees every GPU of the machine, also those that the job may not use"
FREE = "no other process was on it, and nothing kept the training from using it"
MOST_OF_IT = 0.5  # of a GPU's memory: what another process leaves is too little for the share of a batch
BY_ORDER = "YOLO's device ids count the GPUs that torch sees, which here are those of the machine in their order"


def unused_gpus(context: Context) -> list[Finding]:
    """Report the GPUs that did nothing while a training ran on others: what several trainings share, once.

    A warning where the training, recorded on its own machine, could have had them; else a note.
    """
    found: dict[tuple[object, ...], list[_Unused]] = {}
    for training in context.trainings:
        unused = _unused_in(context, training)
        if unused is not None:
            found.setdefault(unused.said, []).append(unused)
    return [_finding(context, alike) for alike in found.values()]


@dataclass(frozen=True, eq=False)
class _Unused:
    """The GPUs that did nothing while a training ran, from when to when it trained, and what to do about it."""

    training: Training
    idle: Sequence[GpuSeries]
    span: Span
    could: bool
    advice: tuple[Advice, ...]

    @property
    def said(self) -> tuple[object, ...]:
        """Return what is said of it: trainings of which the same is said are one finding."""
        return tuple(series.gpu for series in self.idle), self.training.gpus, self.could, self.advice


def _unused_in(context: Context, training: Training) -> _Unused | None:
    """Return the GPUs that did nothing in a training, None without any."""
    if training.epochs is None or not training.gpus:
        return None
    span = training.epochs.start_s, training.epochs.end_s
    taken = training.gpus | context.gpus_of_others  # others' were not free, though they may have been idle for a while
    idle = [series for series in _idle_series(context, span) if series.gpu not in taken]
    could = all(_could_have_had(context, series) for series in idle)
    advice = _advice(context, training, idle) if could and idle else ()
    return _Unused(training, idle, span, could, advice) if idle else None


def idle_gpus(context: Context) -> list[GpuSeries]:
    """Return the GPUs that were measured and did nothing in all of the recording, with others that did.

    One that others used for a moment is theirs.
    """
    used = context.activity.used_gpus
    taken = used | context.gpus_of_others
    return [series for series in _idle_series(context, (0.0, np.inf)) if used and series.gpu not in taken]


def held_by(context: Context, series: GpuSeries, span: Span = (0.0, np.inf)) -> str:
    """Return who held most of the memory of a GPU that did nothing in a span, as a clause; empty where nobody did."""
    capacity_mib = context.gpu_memory(series).capacity_mib
    stays = other_processes_on(context.run, series)
    there = [stay for stay in stays if stay.span[0] < span[1] and span[0] < stay.span[1]]
    most = max(there, key=lambda each: each.memory_mib or 0.0, default=None)
    if most is None or not most.memory_mib or not capacity_mib or most.memory_mib < MOST_OF_IT * capacity_mib:
        return ""
    return f"{most.who} held {memory_words(most.memory_mib)} of its memory"


def _idle_series(context: Context, span: Span) -> list[GpuSeries]:
    """Return the GPUs that were measured in a span and did nothing.

    No MIG device is one of them, since a training uses no two, nor a GPU that is cut into MIG devices.
    """
    devices = {gpu.index: gpu.parent_index for gpu in context.run.gpus if gpu.parent_index is not None}
    whole = [t for t in context.series if t.gpu not in devices and t.gpu not in devices.values()]
    return [series for series in whole if series.mean_util_pct(*span) < UNUSED_PCT]


def _could_have_had(context: Context, series: GpuSeries) -> bool:
    """Tell whether nothing speaks against it that the training might have used a GPU.

    That is known where we started the command, with no CUDA_VISIBLE_DEVICES to restrict it, and where processes were
    recorded and nobody was on the GPU. On a machine whose other GPUs others use, a free one may be theirs.
    """
    run = context.run
    ours = run.began_command and len(run.processes) > 0
    alone = not (run.processes["gpu"] == series.gpu).any()
    failed = any(e.kind == "nvml_error" and e.fields.get("quantity") == "processes" for e in run.events)
    shared = bool(context.gpus_of_others)
    return ours and alone and not failed and not shared and run.recording.cuda_visible_devices is None


def _finding(context: Context, alike: Sequence[_Unused]) -> Finding:
    idle, could = alike[0].idle, alike[0].could
    names, used = _named([series.gpu for series in idle]), _named(sorted(alike[0].training.gpus))
    spans = [each.span for each in alike]
    span = min(start for start, _ in spans), max(end for _, end in spans)
    taken = held_by(context, idle[0], span) if len(idle) == 1 else ""
    free = f"{'was' if len(idle) == 1 else 'were'} free while {used} trained"
    how = f"did no work while {used} trained: {taken}" if taken else free
    return context.finding(
        "unused-gpu",
        "warning" if could else "info",
        span,
        f"{names} {how}",
        gpu=idle[0].gpu if len(idle) == 1 else None,
        gpus=tuple(series.gpu for series in idle),
        evidence=tuple(fact for series in idle for fact in _facts(series, spans)),
        cause=Cause("unused-gpu", STRONG, FREE) if could else Cause("unused-gpu", WEAK, NOT_OURS),
        advice=alike[0].advice,
        epoch=None,
        phase=None,
    )


def _named(gpus: Sequence[int]) -> str:
    return f"GPU{'s' if len(gpus) > 1 else ''} {', '.join(map(gpu_number, gpus))}"


def _facts(series: GpuSeries, spans: Sequence[Span]) -> list[Evidence]:
    rows = mask_in_any(series.samples["t_s"].to_numpy(dtype=float), spans)
    power = weighted_stats(series.samples["power_w"].to_numpy(dtype=float)[rows], series.sample_weight_s[rows])
    util, _ = series.mean_util_in(spans)
    found = (
        [Evidence(f"utilisation of {gpu_words(series.gpu)} meanwhile (mean)", util, "%")] if np.isfinite(util) else []
    )
    return found + ([Evidence(f"power of {gpu_words(series.gpu)} meanwhile (mean)", power.mean, "W")] if power else [])


def _advice(context: Context, training: Training, idle: Sequence[GpuSeries]) -> tuple[Advice, ...]:
    """Return the device argument that would have used all GPUs, where it has one and they did not wait for data."""
    args = training.args
    if "device" not in args or _waits(context, training):
        return ()
    text = "Train on the free GPUs, too: they share the batch, which must be a multiple of their number"
    if not known_order(context.run):
        return (Advice(f"{text}; name them by torch's numbers, which may differ from those of this report"),)
    if not _shares_out(args.get("batch"), len(training.gpus) + len(idle)):
        return (Advice(f"{text}, which `batch={args['batch']}` is not: name both. {BY_ORDER}"),)
    every = ",".join(str(gpu) for gpu in sorted({*training.gpus, *(series.gpu for series in idle)}))
    now = str(args["device"]) if args["device"] not in (None, "", []) else None
    return (Advice(f"{text}. {BY_ORDER}", "device", now, every),)


def _shares_out(batch: object, gpus: int) -> bool:
    """Tell whether a batch can be shared out among GPUs: ultralytics refuses AutoBatch (-1) and fractions on several.

    One that is not known is not objected to.
    """
    return batch is None or (isinstance(batch, int) and batch > 0 and batch % gpus == 0)


def _waits(context: Context, training: Training) -> bool:
    """Tell whether a GPU that trained mostly waited: more of them would wait, too."""
    all_series = [series for series in context.series if series.gpu in training.gpus]
    steady = context.signals.steady_of(training)
    means = [(*series.mean_util_in(steady), series.interval_s) for series in all_series]
    return any(mean < HEALTHY_PCT and is_settled(seconds, reading_s) for mean, seconds, reading_s in means)
