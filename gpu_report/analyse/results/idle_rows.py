"""Which row of the ledger the idle part of each reading of a GPU belongs to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.trainings import unused_intervals
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, Spans, as_array, minus, parts, row_ranges, slices
from gpu_report.catalogue import CAUSES, GAPS, PAUSES_KEY, RULES, UNEXPLAINED
from gpu_report.model import Finding, Interval

PHASE_ROWS = tuple(name for name, cause in CAUSES.items() if cause.phase)
WAITED_SHARE = 0.5  # of a reading's idle time
CPU_LIMIT = "cpu-limit"
SLOWDOWN = "slowdown"
OF_SOME_EPOCHS = frozenset({"data-wait-growing", "slow-epoch"})  # rules of whole epochs: they name no GPU


def idle_rows(context: Context, series: GpuSeries, findings: Sequence[Finding], low: Sequence[Interval]) -> IdleRows:
    """Return which row of the ledger the idle part of each reading of a GPU belongs to."""
    rows = IdleRows(series, GAPS)
    rows.assign(UNEXPLAINED, [i.span for i in low if i.gpu == series.gpu])
    if cause := _data_cause(findings, series.gpu):
        rows.assign_readings(cause, _waited(context, series))
    sees_waits = len(context.signals.loading(series.gpu).edges_s) > 0
    for name, span in starved_by(context, series.gpu, findings):
        in_waits = CAUSES[name].is_input and name != CPU_LIMIT  # too few cores slow the main process, too
        if not (sees_waits and in_waits):
            rows.assign(name, [span])
        else:  # its moments are known, and others are gaps of steps: nothing is unknown there
            rows.reassign(UNEXPLAINED, GAPS, span)
    for name, spans in context.cached(_phase_spans).items():
        rows.assign(name, spans)
    knows_epochs = bool(context.epoch_ends.all)  # else only findings tell where validations probably were
    for finding in findings:
        is_told = not (finding.expected and knows_epochs)
        is_felt = finding.gpu in {series.gpu, None}  # None: of whatever the program uses
        takes_time = RULES[finding.rule].takes_time or finding.number(PAUSES_KEY) is not None
        if is_felt and takes_time and finding.cause and is_told:
            rows.assign(finding.cause.name, _spans_of(context, finding))
    if series.gpu not in context.activity.used_gpus:
        rows.assign("idle", [(-np.inf, np.inf)])
    rows.assign("idle", unused_intervals(context.trainings, series.gpu))
    return rows


def _data_cause(findings: Sequence[Finding], gpu: int) -> str:
    """Return for what data a GPU's training was seen to wait longest, empty where it was not."""
    felt = [f for f in findings if f.gpu == gpu or f.rule in OF_SOME_EPOCHS]
    mine = [f for f in felt if f.cause and CAUSES[f.cause.name].is_input and not f.expected]
    longest = max(mine, key=lambda finding: finding.duration_s, default=None)
    return longest.cause_name if longest is not None else ""


def _waited(context: Context, series: GpuSeries) -> Bools:
    """Tell of which readings most of the idle time is a wait for the loader, by where the main process stood."""
    waits, is_wait = context.signals.loading(series.gpu), np.zeros(len(series.t_s), dtype=bool)
    for part in parts(len(series.t_s) if len(waits.edges_s) else 0):
        t_s, weight_s = series.t_s[part], series.weight_s[part]
        waited_s = waits.seconds_in_each(np.column_stack([t_s - weight_s, t_s]))
        idle_s = weight_s * (1 - series.util_pct[part].astype(float) / 100)
        is_wait[part] = (waited_s > 0) & (waited_s >= WAITED_SHARE * idle_s)
    return is_wait


def _spans_of(context: Context, finding: Finding) -> list[Span]:
    """Return when a finding was: a slowdown of training without the phases that lie whole within it, as of epochs."""
    spans = [each.span for each in finding.each]
    if finding.rule != SLOWDOWN:
        return spans
    phases = [phase.span for phase in context.phases if phase.name in PHASE_ROWS]
    return minus(spans, [one for one in phases if any(start <= one[0] and one[1] <= end for start, end in spans)])


def _phase_spans(context: Context) -> dict[str, Floats]:
    """Return the spans of the phases that have a row of their own, by name."""
    spans: dict[str, list[Span]] = {name: [] for name in PHASE_ROWS}
    for phase in context.phases:
        if phase.name in spans:
            spans[phase.name].append(phase.span)
    return {name: as_array(mine) for name, mine in spans.items()}


class IdleRows:
    """Which row of the ledger the idle part of each reading of a series belongs to, as the number of a name."""

    def __init__(self, series: GpuSeries, name: str) -> None:
        self.series, self.names = series, [name]
        self.numbers = np.zeros(len(series.t_s), dtype=np.uint8)

    def number(self, name: str) -> int:
        """Return the number of a name, a new one where it has none yet."""
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def assign(self, name: str, spans: Spans) -> None:
        """Assign the readings in some spans to a row."""
        if len(spans):
            number = self.number(name)
            for part in slices(*row_ranges(self.series.t_s, spans)):
                self.numbers[part] = number

    def reassign(self, name: str, to: str, span: Span) -> None:
        """Assign the readings in a span that one row has to another row."""
        for part in slices(*row_ranges(self.series.t_s, [span])):
            mine = self.numbers[part]
            mine[mine == self.number(name)] = self.number(to)

    def assign_readings(self, name: str, mine: Bools) -> None:
        """Assign some readings to a row."""
        if mine.any():
            self.numbers[mine] = self.number(name)


def starved_by(context: Context, gpu: int, findings: Sequence[Finding]) -> list[tuple[str, Span]]:
    """Return what holds a starved GPU back all the time, which its idle moments go to, and in which trainings' time.

    What waits for data grew by is so from a moment on, and what slowed some epochs is so in them.
    """
    grew = [f for f in findings if f.rule in OF_SOME_EPOCHS and f.cause and CAUSES[f.cause.name].is_input]
    there = [(f.cause.name, f) for f in grew if f.cause and _trains(context, gpu, f.start_t_s)]
    later = [(name, one.span) for name, finding in there for one in finding.each]
    starved = [f for f in findings if f.rule == "starved" and f.gpu == gpu and f.cause]
    known = [(f.cause.name, context.training_at(f.start_t_s, gpu)) for f in starved if f.cause]
    alone = len(context.trainings) == 1
    return later + [
        (name, (-np.inf, np.inf) if alone else training.span)
        for name, training in known
        if training is not None and name != UNEXPLAINED
    ]


def _trains(context: Context, gpu: int, t_s: float) -> bool:
    training = context.training_at(t_s)
    return training is not None and gpu in training.gpus
