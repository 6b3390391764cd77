"""The trainings of a recording, which every rule asks for: what is known of each, and on which GPUs it ran."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from gpu_report.analyse.timeline import thresholds as th
from gpu_report.analyse.timeline.activity import Activity
from gpu_report.analyse.timeline.device_argument import CPU, devices_named
from gpu_report.analyse.timeline.epoch_ends import EpochEnds
from gpu_report.analyse.timeline.exception_kinds import exception_kind
from gpu_report.analyse.timeline.phases import mosaic_closes
from gpu_report.analyse.timeline.ranks import RankGroup, rank_groups
from gpu_report.analyse.timeline.training_epochs import (
    TrainingEpoch,
    TrainingEpochs,
    epochs_of_each_training,
    training_epochs,
)
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, intersect, length_s, mask_in_any, minus, union
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import EpochSummary, JobPart, Phase, ProcessStacks, Run, SettingLocation, YoloRun

BYTES_PER_PIXEL = 3  # of an image that was loaded, in a cache or on its way to the GPU: 8 bits of each colour
FLOAT_BYTES = 4  # of each colour, where the data loader itself makes numbers of 32 bits of an image
LOADS_FLOATS = ("classify",)  # tasks whose loader does: torchvision's ToTensor and Normalize
# Values of the argument `cache` that keep the images in the memory of the main process, and those that do not.
IN_MEMORY, NOT_IN_MEMORY = frozenset({"ram", "True"}), frozenset({"disk", "False"})
STRIDE_PX = 32  # imgsz is a multiple of it: the coarsest cell of YOLO's models


@dataclass(frozen=True)
class Training:
    """One training: a process of YOLO with its other ranks, from its beginning to its end (`span`).

    `number` is that of its YoloRun, None where that is not known. `rank_group` is what its processes reported by
    callbacks, None where only files and readings are known. `epochs` is when it trained, None where it did not come to
    that. `args` is what was asked for (args.yaml), `settings` what was in effect, as far as it is known. `gpus` are
    those it used. `set_in` are lines of code that switched on what slows it, where no callbacks say so.
    `of_this_node` is how many of a job's ranks ran here, None where it is not of several nodes.
    """

    number: int | None
    span: Span
    rank_group: RankGroup | None = None
    epochs: TrainingEpochs | None = None
    args: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    gpus: frozenset[int] = frozenset()
    of_this_node: int | None = None
    set_in: tuple[SettingLocation, ...] = ()

    @property
    def train_spans(self) -> list[Span]:
        """Return when it trained, in order; empty where it did not come to that."""
        return self.epochs.spans if self.epochs else []

    def within(self, spans: Sequence[Span]) -> list[Span]:
        """Return what of some spans, which are in order and apart, lies in it."""
        return intersect([self.span], spans)

    @property
    def device(self) -> str:
        """Return where it trained: cpu, cuda:0, and so on; empty where it is not known."""
        return self.text("device") or ""

    @property
    def world_size(self) -> int | None:
        """Return how many processes trained together, a GPU each: as reported, else as asked for, else None."""
        ranks = self.rank_group.ranks if self.rank_group else ()
        reported = [size for rank in ranks if (size := whole(rank.settings.get("world_size")))]
        return max(reported) if reported else devices_named(self.args.get("device"))

    @property
    def ranks(self) -> int:
        """Return how many processes trained together; where nothing says, one on each GPU that it used."""
        return self.world_size or max(len(self.gpus), 1)

    @property
    def ranks_here(self) -> int:
        """Return how many of them ran on this machine: they share its cores and its memory."""
        return self.ranks if self.of_this_node is None else min(self.ranks, self.of_this_node)

    @property
    def steps_together(self) -> bool:
        """Tell whether it is one training that ran on all the GPUs that it used, two or more: none steps alone."""
        return len(self.gpus) > 1 and self.world_size == len(self.gpus)

    @property
    def workers(self) -> int | None:
        """Return how many workers load for it, over all its ranks here: as reported, else as asked for."""
        reported = whole(self.settings.get("workers"))
        each = whole(self.args.get("workers")) if reported is None else reported
        return None if each is None else each * self.ranks_here

    @property
    def begun_again(self) -> Span | None:
        """Return the time from the beginning of the first epoch to its last one, None where it was begun but once."""
        main = self.rank_group.main if self.rank_group else None
        first = [epoch for epoch in main.epochs if epoch.epoch == main.epochs[0].epoch] if main else []
        return (first[0].start_t_s, first[-1].start_t_s) if len(first) > 1 else None

    @property
    def lowered_batch(self) -> tuple[int, int] | None:
        """Return the batch asked for and the smaller one with which YOLO began its first epoch again, None without.

        In its first epoch, on one GPU, ultralytics answers an error for want of GPU memory so: half the batch, up to
        three times (8.4, `BaseTrainer._do_train`). It takes some errors of cuDNN for that, too.
        """
        asked, had = whole(self.args.get("batch")), whole(self.settings.get("batch"))
        lowered = self.begun_again is not None and asked is not None and had is not None and had < asked
        return (asked, had) if lowered and asked is not None and had is not None else None

    @property
    def ran_out_of_gpu_memory(self) -> bool:
        """Tell whether an exception ended it that says that CUDA was out of memory."""
        culprit = self.rank_group.crashed if self.rank_group else None
        return culprit is not None and exception_kind(culprit) == "gpu memory"

    @property
    def filled_gpu_memory(self) -> bool:
        """Tell whether GPU memory was too small for it at any time, so that nobody should give it a larger batch."""
        return self.ran_out_of_gpu_memory or self.lowered_batch is not None

    @property
    def memory_fraction(self) -> float:
        """Return which share (0 to 1) of a GPU's memory each of its processes may have: all where nothing says less."""
        return min(self.quantity("memory_fraction") or 1.0, 1.0)

    @property
    def mosaic_closes(self) -> int | None:
        """Return its first epoch without mosaic, None where there is none."""
        return mosaic_closes(self.args)

    @property
    def image_sizes(self) -> int:
        """Return how many sizes `multi_scale` gives its images, which each step draws anew: 1 without it.

        It is a share of imgsz up and down; True, in older versions, was half.
        """
        share, imgsz = self.args.get("multi_scale"), whole(self.args.get("imgsz"))
        if not isinstance(share, int | float) or not share or not imgsz:
            return 1
        return 1 + 2 * int((0.5 if share is True else share) * imgsz / STRIDE_PX)

    @property
    def slow_modes(self) -> frozenset[str]:
        """Return what was switched on in its main process that slows it, such as a profiler, as far as it is told.

        It was on at every look, or for SLOW_MODE_SHARE of the training or more. What tries kernels for each image size
        does so once where there is but one; of a program that is not YOLO's nobody knows how many there are.
        """
        told = self.settings.get("slow_modes")
        always = frozenset(mode for mode in told if isinstance(mode, str)) if isinstance(told, list) else frozenset()
        known = always | frozenset(
            mode
            for mode, spans in self._modes_on.items()
            if length_s(intersect(self.train_spans, spans)) >= th.SLOW_MODE_SHARE * length_s(self.train_spans) > 0
        )
        is_yolo = self.number is not None or self.rank_group is not None
        varies = not is_yolo or bool(self.args.get("multi_scale")) or self.args.get("rect") is True
        return known if varies else known - {"cudnn_benchmark"}

    @cached_property
    def slower_since_first_epoch(self) -> float:
        """Return how many times longer than in the first epoch steps took in each later one, at least; 1 if not known.

        Waits for data are none of it. The first epoch counts from its first report on: its first batch warms up.
        """
        main = self.rank_group.main if self.rank_group else None
        whole_ones = [e for e in main.epochs if e.end_t_s is not None and e.batches] if main else []
        if main is None or len(whole_ones) < th.SLOWER_EPOCHS + 1 or whole_ones[0].epoch != main.epochs[0].epoch:
            return 1.0
        first, *later = whole_ones
        warm = next((p for p in main.progress if first.start_t_s < p.t_s < (first.end_t_s or 0.0)), None)
        batches = first.batches - warm.batches if warm else 0
        if warm is None or warm.batches > th.WARM_BATCHES or batches < th.SLOWER_BATCHES:
            return 1.0
        at_first_s = ((first.end_t_s or 0.0) - warm.t_s - (first.data_wait_s - warm.data_wait_s)) / batches
        later_s = min(((e.end_t_s or 0.0) - e.start_t_s - e.data_wait_s) / e.batches for e in later)
        return max(later_s / at_first_s, 1.0) if at_first_s > 0 else 1.0

    @property
    def _modes_on(self) -> Mapping[str, list[Span]]:
        """Return when each slow mode was on in its main process, in order."""
        told = self.rank_group.main.slow_modes_now if self.rank_group else ()
        ends = [*(t_s for t_s, _ in told[1:]), self.span[1]]
        on: dict[str, list[Span]] = {}
        for (start_s, modes), end_s in zip(told, ends, strict=False):
            for mode in modes:
                on.setdefault(mode, []).append((start_s, max(start_s, end_s)))
        return on

    @property
    def setting_locations(self) -> tuple[SettingLocation, ...]:
        """Return the lines of the user's code that switched on what slows it, in whichever of its processes."""
        ranks = self.rank_group.ranks if self.rank_group else ()
        return tuple(dict.fromkeys([*(each for rank in ranks for each in rank.setting_locations), *self.set_in]))

    @property
    def thread_binding(self) -> tuple[str, ...] | None:
        """Return which variables bind its threads to CPU cores, None where nobody looked."""
        told = self.settings.get("thread_binding")
        return tuple(map(str, told)) if isinstance(told, list) else None

    @property
    def boxes(self) -> tuple[float, float] | None:
        """Return how many boxes a training image has, the mean and the most, None where it is not known."""
        told = self.settings.get("image_boxes")
        known = [each for each in told if isinstance(each, int | float) and each > 0] if isinstance(told, list) else []
        return (known[0], known[1]) if len(known) == 2 else None

    @property
    def label_classes(self) -> tuple[int, int, int] | None:
        """Return how many classes its data set names, how many have labels, and how many one label; None if not known.

        The labels are those of the images that were looked at.
        """
        told = self.settings.get("label_classes")
        known = [each for each in map(whole, told) if each is not None] if isinstance(told, list) else []
        return (known[0], known[1], known[2]) if len(known) == 3 and known[1] else None

    def memory_retries(self, span: Span) -> int | None:
        """Return how often rank 0 emptied PyTorch's cache within a span to get GPU memory; None where nobody told."""
        told = self.rank_group.main.memory_retries if self.rank_group else ()
        by_start, by_end = (max((n for t_s, n in told if t_s <= at_s), default=0) for at_s in span)
        return by_end - by_start if told else None

    @property
    def image_bytes(self) -> float | None:
        """Return what an image takes on its way to the GPU: RGB, `imgsz` square; None where that is not known.

        So it is in ultralytics 8.4 (preprocess_batch): 8 bits of each colour, 32 of a classification.
        """
        size = self.quantity("imgsz") or whole(self.args.get("imgsz"))
        of_colour = FLOAT_BYTES if self.args.get("task") in LOADS_FLOATS else 1
        return of_colour * BYTES_PER_PIXEL * size**2 if size else None

    @property
    def batch_mib(self) -> float | None:
        """Return what a batch of all its ranks on this machine takes in /dev/shm (MiB); None where that is not known.

        `batch` is of the ranks of all machines.
        """
        batch = self.quantity("batch") or whole(self.args.get("batch"))
        if not batch or self.image_bytes is None:
            return None
        return batch * self.ranks_here / self.ranks * self.image_bytes / 2**20

    @property
    def caches_in_memory(self) -> bool | None:
        """Return whether it keeps its images in host memory, None where that is not known."""
        reported, asked = self.settings.get("cache"), self.args.get("cache")
        value = str(asked if reported is None else reported)
        return True if value in IN_MEMORY else False if value in NOT_IN_MEMORY else None

    def text(self, name: str) -> str | None:
        """Return a setting that is text."""
        value = self.settings.get(name)
        return value if isinstance(value, str) and value else None

    def quantity(self, name: str) -> float | None:
        """Return a setting that is a number above 0."""
        value = self.settings.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def whole(value: object) -> int | None:
    """Return a setting that is a whole number from 0 up."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def find_trainings(
    run: Run, all_series: Sequence[GpuSeries], activity: Activity, epoch_ends: EpochEnds, phases: Sequence[Phase]
) -> tuple[Training, ...]:
    """Return the trainings in order of time.

    Where no phase tells of any: all time outside startup and idle, without work on a GPU what came to ends of epochs.
    """
    reported = [_reported(run, each) for each in rank_groups(run)]
    outside = _without(phases, [training.span for training in reported])
    found = [*reported, *(_seen(run, activity, epoch_ends, epochs) for epochs in epochs_of_each_training(outside))]
    found = found or (_awake(run, activity, epoch_ends) if activity.used_gpus else _by_rows(run, activity))
    found.sort(key=lambda training: training.span)
    alone = len(found) == 1
    here = _ranks_of_node(run.job)
    return tuple(
        replace(each, gpus=_gpus_of(run, all_series, activity, each, alone=alone), of_this_node=here) for each in found
    )


def _ranks_of_node(job: JobPart) -> int | None:
    """Return how many of a job's ranks run on this node, None where there is one node, or nobody knows."""
    if not job.is_of_several_nodes:
        return None
    each = (job.world_size or 0) // (job.nodes or 1)
    return len(job.ranks) or each or None


def longest_run(epochs: Sequence[EpochSummary]) -> int | None:
    """Return the number of the YOLO run that trained longest, None without any."""
    trained = sums_by_key((epoch.run, epoch.train_s or 0.0) for epoch in epochs)
    return max(trained, key=lambda number: trained[number], default=None)


def training_at(trainings: Sequence[Training], t_s: float, gpu: int | None = None) -> Training | None:
    """Return the training that a moment lies in, else the last before it, else the first; None without any.

    Of several at once the one that used a GPU, and of these the one that began last.
    """
    begun = [each for each in trainings if each.span[0] <= t_s] or list(trainings[:1])
    going = [each for each in begun if t_s <= each.span[1]]
    mine = [each for each in going if gpu in each.gpus]
    best = mine or going or begun
    return best[-1] if best else None


def unused_intervals(trainings: Sequence[Training], gpu: int) -> list[Span]:
    """Return when trainings were going on that did not use a GPU, and none that did."""
    theirs = union([training.span for training in trainings if gpu not in training.gpus])
    return minus(theirs, [training.span for training in trainings if gpu in training.gpus])


def later_starts(trainings: Sequence[Training], gpu: int) -> list[float]:
    """Return when trainings began on a GPU after the first one there."""
    return [training.span[0] for training in trainings if gpu in training.gpus][1:]


def _reported(run: Run, group: RankGroup) -> Training:
    """Return a training that callbacks reported."""
    main = group.main
    args = next((yolo.args for yolo in run.yolo_runs if yolo.number == main.run), {})
    phases = [phase for phase in main.phases if phase.end_t_s > phase.start_t_s]
    return Training(main.run, (group.start_t_s, group.end_t_s), group, training_epochs(phases), args, main.settings)


def _seen(run: Run, activity: Activity, epoch_ends: EpochEnds, epochs: TrainingEpochs) -> Training:
    """Return a training that reported nothing."""
    yolo = _yolo_run_of(run, epoch_ends, epochs)
    number, args = (yolo.number, yolo.args) if yolo else (None, {})
    span = epochs.start_s, epochs.end_s
    main = _main_process(run, span)
    settings = _settings(run, activity) | ({"slow_modes": sorted(main.slow_modes)} if main else {})
    set_in = main.setting_locations if main else ()
    return Training(number, span, None, epochs, args, settings, set_in=set_in)


def _main_process(run: Run, span: Span) -> ProcessStacks | None:
    """Return the main process that noted most of a span: what is known of a training that reported nothing."""
    mains = [each for each in run.stacks if not each.is_worker and len(each.start_s)]
    noted = [min(float(each.end_s[-1]), span[1]) - max(float(each.start_s[0]), span[0]) for each in mains]
    return mains[int(np.argmax(noted))] if noted and max(noted) > 0 else None


def _awake(run: Run, activity: Activity, epoch_ends: EpochEnds) -> list[Training]:
    """Return one training of all time outside startup and idle."""
    awake = minus([(0.0, run.duration_s)], [*activity.startups, *activity.idle])
    return [_seen(run, activity, epoch_ends, TrainingEpochs((TrainingEpoch(None, tuple(awake)),)))] if awake else []


def _by_rows(run: Run, activity: Activity) -> list[Training]:
    """Return the trainings of which nothing is known but when their epochs had ended."""
    settings, ends = _settings(run, activity), {row.run: row.row_t_s for row in run.epoch_rows}
    return [
        Training(yolo.number, (0.0, ends[yolo.number]), args=yolo.args, settings=settings)
        for yolo in run.yolo_runs
        if yolo.number in ends
    ]


def _settings(run: Run, activity: Activity) -> dict[str, object]:
    """Return what is known of the settings of a training that reported none: without work on a GPU the CPU trained."""
    on_cpu = bool(run.epoch_rows) and not activity.used_gpus
    known = {"torch": run.recording.torch, "device": CPU if on_cpu else None}
    return {name: value for name, value in known.items() if value is not None}


def _yolo_run_of(run: Run, epoch_ends: EpochEnds, epochs: TrainingEpochs) -> YoloRun | None:
    """Return the YOLO run that epochs belong to: that of their first row, else the only one there is."""
    rows, runs = epoch_ends.all, run.yolo_runs
    at = bisect_left(rows, epochs.start_s, key=lambda epoch_end: epoch_end.row.row_t_s)
    number = rows[at].row.run if at < len(rows) and rows[at].row.start_t_s <= epochs.end_s else None
    named = next((yolo for yolo in runs if yolo.number == number), None)
    return named or (runs[0] if len(runs) == 1 else None)


def _without(phases: Sequence[Phase], spans: Sequence[Span]) -> list[Phase]:
    """Return the phases that begin in none of some spans."""
    starts = np.array([phase.start_t_s for phase in phases])
    inside = mask_in_any(starts, union(spans))
    return [phase for phase, within in zip(phases, inside.tolist(), strict=True) if not within]


def _gpus_of(
    run: Run, all_series: Sequence[GpuSeries], activity: Activity, training: Training, *, alone: bool
) -> frozenset[int]:
    """Return the GPUs that a training used: as all its ranks reported, else those that worked while it trained.

    The only one of a recording has all that were used, also those that worked too little to count. One that reported
    the CPU as its device has none, whoever else uses them.
    """
    if training.rank_group and training.device == CPU:
        return frozenset()
    ranks = training.rank_group.ranks if training.rank_group else ()
    named = {run.gpu_of_uuid(rank.settings.get("gpu_uuid")) for rank in ranks}
    known = frozenset(gpu for gpu in named if gpu in activity.used_gpus)
    if known and len(known) == training.world_size:
        return known
    if alone:
        return activity.used_gpus
    used = [series for series in all_series if series.gpu in activity.used_gpus]
    return frozenset(t.gpu for t in used if t.mean_util_in(training.train_spans)[0] >= th.UNUSED_PCT)
