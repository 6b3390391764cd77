"""The trainings of a recording, which every rule asks for: what is known of each, and on which GPUs it ran."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.timeline.activity import Activity
from gpu_report.analyse.timeline.device_argument import devices_named
from gpu_report.analyse.timeline.epoch_ends import Boundaries
from gpu_report.analyse.timeline.phases import mosaic_closes
from gpu_report.analyse.timeline.ranks import Told, each_told
from gpu_report.analyse.timeline.training_epochs import Part, Parts, parts_apart, parts_of
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, intersect, minus, rows_in_any, union
from gpu_report.model import Phase, Run, YoloRun

CPU = "cpu"


@dataclass(frozen=True)
class Training:
    """One training: a process of YOLO with its other ranks, from its beginning to its end (`span`).

    `number` is that of its YoloRun, None where that is not known. `told` is what its processes told of themselves, None
    where files and readings alone tell of it. `parts` is when it trained, None where it did not come to that. `args`
    is what was asked for (args.yaml), `settings` what was in effect, as far as it is known. `gpus` are those it used.
    """

    number: int | None
    span: Span
    told: Told | None = None
    parts: Parts | None = None
    args: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    gpus: frozenset[int] = frozenset()

    @property
    def trained(self) -> list[Span]:
        """Return when it trained, in order; empty where it did not come to that."""
        return self.parts.spans if self.parts else []

    def within(self, spans: Sequence[Span]) -> list[Span]:
        """Return what of some spans, which are in order and apart, lies in it."""
        return intersect([self.span], spans)

    @property
    def device(self) -> str:
        """Return where it trained: cpu, cuda:0, and so on; empty where it is not known."""
        return self.text("device") or ""

    @property
    def world_size(self) -> int | None:
        """Return how many processes trained together, a GPU each: as told, else as asked for; None where neither is."""
        ranks = self.told.ranks if self.told else ()
        told = [size for rank in ranks if (size := whole(rank.settings.get("world_size")))]
        return max(told) if told else devices_named(self.args.get("device"))

    @property
    def ranks(self) -> int:
        """Return how many processes trained together; where nothing says, one on each GPU that it used."""
        return self.world_size or max(len(self.gpus), 1)

    @property
    def workers(self) -> int | None:
        """Return how many workers load for it, over all its ranks: as told, else as asked for."""
        told = whole(self.settings.get("workers"))
        each = whole(self.args.get("workers")) if told is None else told
        return None if each is None else each * self.ranks

    @property
    def mosaic_closes(self) -> int | None:
        """Return its first epoch without mosaic, None where there is none."""
        return mosaic_closes(self.args)

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
    run: Run, all_series: Sequence[GpuSeries], activity: Activity, boundaries: Boundaries, phases: Sequence[Phase]
) -> tuple[Training, ...]:
    """Return the trainings in order of time.

    Where no phase tells of any: all time outside startup and idle, without work on a GPU what came to ends of epochs.
    """
    told = [_told(run, each) for each in each_told(run)]
    outside = _without(phases, [training.span for training in told])
    found = [*told, *(_seen(run, activity, boundaries, parts) for parts in parts_apart(outside))]
    found = found or (_awake(run, activity, boundaries) if activity.used_gpus else _by_rows(run, activity))
    found.sort(key=lambda training: training.span)
    alone = len(found) == 1
    return tuple(replace(each, gpus=_gpus_of(run, all_series, activity, each, alone=alone)) for each in found)


def training_at(trainings: Sequence[Training], t_s: float, gpu: int | None = None) -> Training | None:
    """Return the training that a moment lies in, else the last before it, else the first; None without any.

    Of several at once the one that used a GPU, and of these the one that began last.
    """
    begun = [each for each in trainings if each.span[0] <= t_s] or list(trainings[:1])
    going = [each for each in begun if t_s <= each.span[1]]
    mine = [each for each in going if gpu in each.gpus]
    best = mine or going or begun
    return best[-1] if best else None


def away(trainings: Sequence[Training], gpu: int) -> list[Span]:
    """Return when trainings were going on that did not use a GPU, and none that did."""
    theirs = union([training.span for training in trainings if gpu not in training.gpus])
    return minus(theirs, [training.span for training in trainings if gpu in training.gpus])


def begun_later(trainings: Sequence[Training], gpu: int) -> list[float]:
    """Return when trainings began on a GPU after the first one there."""
    return [training.span[0] for training in trainings if gpu in training.gpus][1:]


def _told(run: Run, told: Told) -> Training:
    """Return a training of which callbacks told."""
    main = told.main
    args = next((yolo.args for yolo in run.yolo_runs if yolo.number == main.run), {})
    phases = [phase for phase in main.phases if phase.end_t_s > phase.start_t_s]
    return Training(main.run, (told.start_t_s, told.end_t_s), told, parts_of(phases), args, main.settings)


def _seen(run: Run, activity: Activity, boundaries: Boundaries, parts: Parts) -> Training:
    """Return a training that told nothing."""
    yolo = _yolo_run_of(run, boundaries, parts)
    number, args = (yolo.number, yolo.args) if yolo else (None, {})
    return Training(number, (parts.start_s, parts.end_s), None, parts, args, _settings(run, activity))


def _awake(run: Run, activity: Activity, boundaries: Boundaries) -> list[Training]:
    """Return one training of all time outside startup and idle."""
    awake = minus([(0.0, run.duration_s)], [*activity.startups, *activity.idle])
    return [_seen(run, activity, boundaries, Parts((Part(None, tuple(awake)),)))] if awake else []


def _by_rows(run: Run, activity: Activity) -> list[Training]:
    """Return the trainings of which nothing is known but when their epochs had ended."""
    settings, ends = _settings(run, activity), {row.run: row.row_t_s for row in run.epoch_rows}
    return [
        Training(yolo.number, (0.0, ends[yolo.number]), args=yolo.args, settings=settings)
        for yolo in run.yolo_runs
        if yolo.number in ends
    ]


def _settings(run: Run, activity: Activity) -> dict[str, object]:
    """Return what is known of the settings of a training that told none: without work on a GPU the CPU trained."""
    on_cpu = bool(run.epoch_rows) and not activity.used_gpus
    known = {"torch": run.recording.torch, "device": CPU if on_cpu else None}
    return {name: value for name, value in known.items() if value is not None}


def _yolo_run_of(run: Run, boundaries: Boundaries, parts: Parts) -> YoloRun | None:
    """Return the YOLO run that parts belong to: that of their first row, else the only one there is."""
    rows, runs = boundaries.all, run.yolo_runs
    at = bisect_left(rows, parts.start_s, key=lambda boundary: boundary.row.row_t_s)
    number = rows[at].row.run if at < len(rows) and rows[at].row.start_t_s <= parts.end_s else None
    named = next((yolo for yolo in runs if yolo.number == number), None)
    return named or (runs[0] if len(runs) == 1 else None)


def _without(phases: Sequence[Phase], spans: Sequence[Span]) -> list[Phase]:
    """Return the phases that begin in none of some spans."""
    starts = np.array([phase.start_t_s for phase in phases])
    inside = rows_in_any(starts, union(spans))
    return [phase for phase, within in zip(phases, inside.tolist(), strict=True) if not within]


def _gpus_of(
    run: Run, all_series: Sequence[GpuSeries], activity: Activity, training: Training, *, alone: bool
) -> frozenset[int]:
    """Return the GPUs that a training used: as all its ranks told, else those that worked while it trained.

    The only one of a recording has all that were used, also those that worked too little to count.
    """
    numbers = {gpu.uuid: gpu.index for gpu in run.gpus if gpu.uuid is not None}
    ranks = training.told.ranks if training.told else ()
    named = {numbers.get(str(rank.settings.get("gpu_uuid"))) for rank in ranks}
    known = frozenset(gpu for gpu in named if gpu in activity.used_gpus)
    if known and len(known) == training.world_size:
        return known
    if alone:
        return activity.used_gpus
    used = [series for series in all_series if series.gpu in activity.used_gpus]
    return frozenset(t.gpu for t in used if t.mean_util_in(training.trained)[0] >= th.UNUSED_PCT)
