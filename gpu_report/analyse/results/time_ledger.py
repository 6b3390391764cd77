"""Where all GPU time went: every second of every GPU in one row, adding up to duration x GPUs exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference.served import is_inference
from gpu_report.analyse.results.call_ledger import call_shares
from gpu_report.analyse.rules.gpu_imbalance import peer_waits
from gpu_report.analyse.rules.other_processes import lost_to_others
from gpu_report.analyse.timeline.trainings import unused_intervals
from gpu_report.analyse.timeseries.energy import Energy, energy
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import (
    Span,
    Spans,
    as_array,
    mask_in_any,
    minus,
    parts,
    row_ranges,
    rows_before,
    slices,
)
from gpu_report.analyse.timeseries.thresholds import MEASURED_SHARE
from gpu_report.catalogue import CAUSES, RULES, UNEXPLAINED
from gpu_report.model import Finding, Interval, LedgerRow

PHASE_ROWS = tuple(name for name, cause in CAUSES.items() if cause.phase)

WAITED_SHARE = 0.5  # of a reading's idle time
GPU_LOST = "gpu-lost"
OTHERS, CPU_LIMIT = "other-process", "cpu-limit"
BUSY_WAIT = "waiting-for-peer"  # full utilisation that is no work
WHOLE_ROWS = (*PHASE_ROWS, BUSY_WAIT)  # which take the seconds of their time whole, busy or not


@dataclass(frozen=True, eq=False)
class _Account:
    """Some readings of one GPU: seconds and joules of each, and which row (its number) takes the idle part.

    `known` is for which share of each reading's time its joules are known. `lost` is, by cause, the share of each one's
    work that was none of the training's (0 to 1): another process's, or what the clock lacked.
    """

    weight_s: Floats
    joules: Floats
    known: Floats
    work_share: Floats
    numbers: npt.NDArray[np.uint8]
    names: Sequence[str]
    lost: Mapping[str, Floats]

    @property
    def present(self) -> list[str]:
        """Return the names of the rows that any reading belongs to."""
        return sorted(self.names[number] for number in np.flatnonzero(np.bincount(self.numbers)).tolist())


def build_ledger(context: Context, findings: Sequence[Finding], low: Sequence[Interval]) -> tuple[LedgerRow, ...]:
    """Return the ledger, largest first among the expected and among the rest.

    A train second at 70 % is 0.7 s of work and 0.3 s of what held it back: the drop or low interval it lies in, or
    short gaps between batches. Of its work, another process takes what the driver says that it used, and throttling the
    share that the clock lacked (not where that is a note only). Startup, validation, checkpoint, final evaluation and
    idle keep their seconds whole. Seconds without a sample go by the driver's own readings of utilisation; unmeasured
    are those without either. A GPU that reports no utilisation has what YOLO's callbacks reported: phases, and of
    training the wait for data. The time of GPUs on which only others worked is no part of it, nor that of one that is
    cut into MIG devices. A run without a GPU has none.
    """
    seconds: dict[str, float] = {}
    joules: dict[str, float] = {}
    known_s: dict[str, float] = {}
    not_ours = context.gpus_of_others | context.cut_gpus
    total_j = counted_s = 0.0
    for series in (series for series in context.series if series.gpu not in not_ours):
        curve = energy(series)  # one after the other: those of a week of eight GPUs take 0.1 GB
        total_j, counted_s = total_j + (curve.total_j or 0.0), counted_s + curve.total_s
        if len(series.t_s) and is_inference(context):
            _book_calls(context, series, curve, (seconds, joules, known_s))
        elif len(series.t_s):
            idle, lost = idle_rows(context, series, findings, low), _lost(context, series)
            for part in parts(len(series.t_s)):
                worked = context.work_in_waits(series)[part]
                _book(_account(series, curve, idle, lost, worked, part), seconds, joules, known_s)
        else:
            _book_phases(context, series.gpu, curve, findings, (seconds, joules, known_s))
    if not context.run.gpus:
        return ()
    listed = {gpu.index for gpu in context.run.gpus} - not_ours
    if lost_s := sum(_unread_s(context, each) for each in findings if each.rule == GPU_LOST and each.gpu in listed):
        seconds["gpu-fault"] = seconds.get("gpu-fault", 0.0) + lost_s
    total = context.run.duration_s * max(len(listed), 1)
    seconds["unmeasured"] = total - sum(seconds.values())
    joules["unmeasured"] = max(total_j - sum(joules.values()), 0.0)  # a sum of parts may come to a hair more
    known_s["unmeasured"] = counted_s - sum(known_s.values())
    price = context.options.price_per_hour
    rows = [
        LedgerRow(
            name=name,
            expected=CAUSES[name].expected,
            gpu_seconds=spent,
            energy_j=joules[name] if known_s.get(name, 0.0) >= MEASURED_SHARE * spent else None,
            money=spent / 3600 * price if price is not None else None,
            share=spent / total if total > 0 else 0.0,
        )
        for name, spent in seconds.items()
        if spent > 1e-6  # float dust of the subtraction above is no row
    ]
    return tuple(sorted(rows, key=lambda row: (row.name == "unmeasured", not row.expected, -row.gpu_seconds)))


def _unread_s(context: Context, finding: Finding) -> float:
    """Return how long nothing could be read of a GPU that was lost: the last reading before stands for some of it.

    What lies before the first sample has no time in the ledger.
    """
    start_s, end_s = max(finding.start_t_s, 0.0), min(finding.end_t_s, context.run.duration_s)
    mine = [series for series in context.series if series.gpu == finding.gpu]
    shared = [np.minimum(t.ends_of(slice(None)), end_s) - np.maximum(t.t_s, start_s) for t in mine]
    return max(end_s - start_s - sum(float(np.maximum(read, 0.0).sum()) for read in shared), 0.0)


def _book(account: _Account, seconds: dict[str, float], joules: dict[str, float], known_s: dict[str, float]) -> None:
    """Add a GPU's seconds to those of each row, its joules, and of how many of the seconds these are known."""
    work = account.work_share
    shares = [(cause, work * lost) for cause, lost in account.lost.items()]
    shares.append(("work", work - sum(share for _, share in shares)))
    sums = ((seconds, account.weight_s), (joules, account.joules), (known_s, account.weight_s * account.known))
    for row, share in shares:
        for totals, spent in sums:
            totals[row] = totals.get(row, 0.0) + float((spent * share).sum())
    for totals, spent in sums:
        of_each = np.bincount(account.numbers, spent * (1 - work), minlength=len(account.names)).tolist()
        for row in account.present:
            totals[row] = totals.get(row, 0.0) + of_each[account.names.index(row)]


def _book_calls(context: Context, series: GpuSeries, curve: Energy, sums: Sequence[dict[str, float]]) -> None:
    """Add a GPU's seconds, joules and the seconds of which these are known, by the parts of calls."""
    used_j, known_s = curve.of_each(series.t_s, series.ends_of(slice(None)))
    for row, share in call_shares(context, series).items():
        for totals, spent in zip(sums, (series.weight_s[:], np.nan_to_num(used_j), known_s), strict=True):
            totals[row] = totals.get(row, 0.0) + float((spent * share).sum())


def _book_phases(
    context: Context, gpu: int, curve: Energy, findings: Sequence[Finding], sums: Sequence[dict[str, float]]
) -> None:
    """Add the phases that callbacks reported of a GPU without utilisation: how busy it was in training is not known.

    What lies after the GPU was lost is not theirs.
    """
    if gpu not in context.activity.used_gpus or not context.callbacks.spans:
        return
    waits = {name for name, _ in _starved_by(context, gpu, findings)}
    lost = [finding.span for finding in findings if finding.rule == GPU_LOST and finding.gpu == gpu]
    pieces = [(phase, span) for phase in context.phases for span in minus([phase.span], lost)]
    for phase, span in pieces:
        length_s, (used_j, known_s) = span[1] - span[0], _energy_of(curve, span)
        waited = 0.0
        if phase.name == "train" and waits and context.throughput:
            waited = context.throughput.data_wait_share([span]) or 0.0
        row = phase.name if phase.name in PHASE_ROWS else "training"
        for name, share in ((row, 1 - waited), (min(waits, default=row), waited)):
            for totals, spent in zip(sums, (length_s, used_j, known_s), strict=True):
                totals[name] = totals.get(name, 0.0) + spent * share


def _energy_of(curve: Energy, span: Span) -> tuple[float, float]:
    """Return the joules in a span, and the seconds of it of which they are known."""
    used_j, known_s = curve.of_each(np.array([span[0]]), np.array([span[1]]))
    return float(np.nan_to_num(used_j)[0]), float(known_s[0])


def _account(  # noqa: PLR0913, PLR0917 - what is known of a GPU, and which part of it
    series: GpuSeries, curve: Energy, rows: IdleRows, lost: Mapping[str, Floats], worked: Floats, part: slice
) -> _Account:
    """Return what is to be booked of some readings: all of a week's at once take hundreds of megabytes.

    `worked` is the share of each one's time that was work within a wait for another rank.
    """
    t_s, weight_s, numbers = series.t_s[part], series.weight_s[part], rows.numbers[part]
    whole = np.isin(numbers, [rows.number(name) for name in WHOLE_ROWS])
    waits = numbers == rows.number(BUSY_WAIT)
    work = np.where(waits, worked, np.where(whole, 0.0, series.util_pct[part].astype(float) / 100))
    used_j, known_s = curve.of_each(t_s, t_s + weight_s)
    known = np.divide(known_s, weight_s, out=np.zeros_like(known_s), where=weight_s > 0)
    lost = {cause: share[part] for cause, share in lost.items()}
    return _Account(weight_s, np.nan_to_num(used_j), known, work, numbers, rows.names, lost)


def idle_rows(context: Context, series: GpuSeries, findings: Sequence[Finding], low: Sequence[Interval]) -> IdleRows:
    """Return which row of the ledger the idle part of each reading of a GPU belongs to."""
    rows = IdleRows(series, "short gaps")
    rows.give(UNEXPLAINED, [i.span for i in low if i.gpu == series.gpu])
    if cause := _data_cause(findings, series.gpu):
        rows.give_where(cause, _waited(context, series))
    sees_waits = len(context.signals.loading(series.gpu).edges_s) > 0
    for name, span in _starved_by(context, series.gpu, findings):
        in_waits = CAUSES[name].is_input and name != CPU_LIMIT  # too few cores slow the main process, too
        if not (sees_waits and in_waits):  # else its moments are known, and others are gaps of steps
            rows.give(name, [span])
    for name, spans in context.cached(_phase_spans).items():
        rows.give(name, spans)
    knows_epochs = bool(context.epoch_ends.all)  # else only findings tell where validations probably were
    for finding in findings:
        is_told = not (finding.expected and knows_epochs)
        if finding.gpu == series.gpu and RULES[finding.rule].takes_time and finding.cause and is_told:
            rows.give(finding.cause.name, [finding.span])
    if series.gpu not in context.activity.used_gpus:
        rows.give("idle", [(-np.inf, np.inf)])
    rows.give("idle", unused_intervals(context.trainings, series.gpu))
    return rows


def _data_cause(findings: Sequence[Finding], gpu: int) -> str:
    """Return for what data a GPU's training was seen to wait longest, empty where it was not."""
    mine = [f for f in findings if f.gpu == gpu and f.cause and CAUSES[f.cause.name].is_input and not f.expected]
    longest = max(mine, key=lambda finding: finding.duration_s, default=None)
    return longest.cause.name if longest is not None and longest.cause else ""


def _waited(context: Context, series: GpuSeries) -> Bools:
    """Tell of which readings most of the idle time is a wait for the loader, by where the main process stood."""
    waits, is_wait = context.signals.loading(series.gpu), np.zeros(len(series.t_s), dtype=bool)
    for part in parts(len(series.t_s) if len(waits.edges_s) else 0):
        t_s, weight_s = series.t_s[part], series.weight_s[part]
        waited_s = waits.seconds_in_each(np.column_stack([t_s - weight_s, t_s]))
        idle_s = weight_s * (1 - series.util_pct[part].astype(float) / 100)
        is_wait[part] = (waited_s > 0) & (waited_s >= WAITED_SHARE * idle_s)
    return is_wait


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

    def give(self, name: str, spans: Spans) -> None:
        """Give the readings in some spans to a row."""
        if len(spans):
            number = self.number(name)
            for part in slices(*row_ranges(self.series.t_s, spans)):
                self.numbers[part] = number

    def give_where(self, name: str, mine: Bools) -> None:
        """Give some readings to a row."""
        if mine.any():
            self.numbers[mine] = self.number(name)


def _lost(context: Context, series: GpuSeries) -> dict[str, Floats]:
    """Return the share of each reading's work that was none: others' work, what the clock lacked, a wait for a peer.

    Of a clock it counts only where that is no mere note; of a wait where the GPU spins for one that is always later.
    """
    others = context.cached(lost_to_others).get(series.gpu)
    lost = {} if others is None else {OTHERS: others}
    ours = 1.0 if others is None else 1 - others
    mine = [t for t in context.throttles if t.gpu == series.gpu and t.severity != "info"]
    if mine:
        row = rows_before(series.samples["t_s"].to_numpy(dtype=float), series.t_s, "right") - 1
        lost |= {throttle.cause: ours * np.where(row >= 0, throttle.lost[row], 0.0) for throttle in mine}
    if (wait := context.cached(peer_waits).get(series.gpu)) is not None:
        spans, share = wait
        left = np.clip(1.0 - sum(lost.values(), np.zeros(len(series.t_s))), 0.0, 1.0)
        lost[BUSY_WAIT] = left * np.where(mask_in_any(series.t_s, spans), share, 0.0)
    return lost


def _starved_by(context: Context, gpu: int, findings: Sequence[Finding]) -> list[tuple[str, Span]]:
    """Return what holds a starved GPU back all the time, which its idle moments go to, and in which trainings' time.

    What waits for data grew by is so from a moment on, and what slowed some epochs is so in them.
    """
    rules = {"data-wait-growing", "slow-epoch"}
    grew = [f for f in findings if f.rule in rules and f.cause and CAUSES[f.cause.name].is_input]
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
