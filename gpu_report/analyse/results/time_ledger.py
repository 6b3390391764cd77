"""Where all GPU time went: every second of every GPU in one row, adding up to duration x GPUs exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference.served import is_inference
from gpu_report.analyse.results.call_ledger import call_shares
from gpu_report.analyse.results.idle_rows import PHASE_ROWS, IdleRows, idle_rows, starved_by
from gpu_report.analyse.rules.gpus.gpu_imbalance import peer_waits
from gpu_report.analyse.rules.gpus.lost_to_clocks import lost_to_clocks
from gpu_report.analyse.rules.other_processes import lost_to_others
from gpu_report.analyse.timeseries.energy import Energy, energy
from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import (
    Indices,
    Span,
    mask_in_any,
    minus,
    parts,
)
from gpu_report.analyse.timeseries.thresholds import MEASURED_SHARE
from gpu_report.analyse.validations import is_validation
from gpu_report.catalogue import CAUSES, WAITING_FOR_PEER
from gpu_report.model import Finding, Interval, LedgerRow

GPU_LOST = "gpu-lost"
OTHERS = "other-process"
ROUNDING_S = 1e-6  # what rounding leaves of a row
WHOLE_ROWS = (*PHASE_ROWS, WAITING_FOR_PEER)  # which take the seconds of their time whole: what waits spins


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
    numbers: Indices
    names: Sequence[str]
    lost: Mapping[str, Floats]

    @property
    def present(self) -> list[str]:
        """Return the names of the rows that any reading belongs to."""
        return sorted(self.names[number] for number in np.flatnonzero(np.bincount(self.numbers)).tolist())


@dataclass(frozen=True, eq=False)
class _LedgerGpu:
    """What is known of a GPU: its energy, whose its idle time is, and how much of its work was none of the training's.

    `worked` is the share (0 to 1) of each reading's time that was work within a wait for another rank.
    """

    series: GpuSeries
    curve: Energy
    rows: IdleRows
    lost: Mapping[str, Floats]
    worked: Floats

    def account(self, part: slice) -> _Account:
        """Return what is to be booked of some readings: all of a week's at once take hundreds of megabytes."""
        series, rows = self.series, self.rows
        t_s, weight_s, numbers = series.t_s[part], series.weight_s[part], rows.numbers[part]
        whole = np.isin(numbers, [rows.number(name) for name in WHOLE_ROWS])
        waits = numbers == rows.number(WAITING_FOR_PEER)
        work = np.where(waits, self.worked[part], np.where(whole, 0.0, series.util_pct[part].astype(float) / 100))
        used_j, known_s = self.curve.of_each(t_s, t_s + weight_s)
        known = np.divide(known_s, weight_s, out=np.zeros_like(known_s), where=weight_s > 0)
        lost = {cause: share[part] for cause, share in self.lost.items()}
        return _Account(weight_s, np.nan_to_num(used_j), known, work, numbers.astype(np.intp), rows.names, lost)


@dataclass(eq=False)
class _LedgerTotals:
    """What was added to each row so far: GPU seconds, joules, and for how many of the seconds these are known.

    `total_j` and `counted_s` are the joules of all GPUs, and for how many seconds they are known.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    joules: dict[str, float] = field(default_factory=dict)
    known_s: dict[str, float] = field(default_factory=dict)
    total_j: float = 0.0
    counted_s: float = 0.0

    def add(self, row: str, seconds: float, joules: float, known_s: float) -> None:
        """Add to a row."""
        for totals, spent in ((self.seconds, seconds), (self.joules, joules), (self.known_s, known_s)):
            totals[row] = totals.get(row, 0.0) + spent

    def add_unmeasured(self, total_s: float) -> None:
        """Add what is left of so many GPU seconds in all to the row of what was not measured."""
        left_j = max(self.total_j - sum(self.joules.values()), 0.0)  # a sum of parts may come to a hair more
        left_s = total_s - sum(self.seconds.values()), self.counted_s - sum(self.known_s.values())
        self.add("unmeasured", left_s[0], left_j, left_s[1])

    def rows(self, total_s: float, price_per_hour: float | None) -> list[LedgerRow]:
        """Return the rows of so many GPU seconds in all, without what only rounding left."""
        return [
            LedgerRow(
                name=name,
                expected=CAUSES[name].expected,
                gpu_seconds=spent,
                energy_j=self.joules[name] if self.known_s[name] >= MEASURED_SHARE * spent else None,
                money=spent / 3600 * price_per_hour if price_per_hour is not None else None,
                share=spent / total_s if total_s > 0 else 0.0,
            )
            for name, spent in self.seconds.items()
            if spent > ROUNDING_S
        ]


def build_ledger(context: Context, findings: Sequence[Finding], low: Sequence[Interval]) -> tuple[LedgerRow, ...]:
    """Return the ledger, largest first among the expected and among the rest.

    A train second at 70 % is 0.7 s of work and 0.3 s of what held it back: the drop or low interval it lies in, or
    short gaps between batches. Of its work, another process takes what the driver says that it used, and throttling the
    share that the clock lacked (not where that is a note only). Startup, validation, checkpoint, final evaluation and
    idle keep their seconds whole. Seconds without a sample go by the driver's own readings of utilisation; unmeasured
    are those without either. A GPU that reports no utilisation has what YOLO's callbacks reported: phases, and of
    training the wait for data. The time of GPUs on which only others worked is no part of it, nor that of one that is
    cut into MIG devices, or that was idle beside a validation. A run without a GPU of its own has none.
    """
    not_ours, ledger_totals = context.gpus_of_others | context.cut_gpus | _beside_validation(context), _LedgerTotals()
    listed = {gpu.index for gpu in context.run.gpus} - not_ours
    if not listed:
        return ()
    for series in (series for series in context.series if series.gpu not in not_ours):
        _add_gpu(context, series, findings, low, ledger_totals)
    if lost_s := sum(_unread_s(context, each) for each in findings if each.rule == GPU_LOST and each.gpu in listed):
        ledger_totals.add("gpu-fault", lost_s, 0.0, 0.0)
    total_s = context.run.duration_s * len(listed)
    ledger_totals.add_unmeasured(total_s)
    rows = ledger_totals.rows(total_s, context.options.price_per_hour)
    return tuple(sorted(rows, key=lambda row: (row.name == "unmeasured", not row.expected, -row.gpu_seconds)))


def _beside_validation(context: Context) -> frozenset[int]:
    """Return the GPUs that did nothing while models were validated, which takes one: a training could have had them."""
    used = context.activity.used_gpus
    return frozenset(series.gpu for series in context.series) - used if used and is_validation(context) else frozenset()


def _add_gpu(
    context: Context,
    series: GpuSeries,
    findings: Sequence[Finding],
    low: Sequence[Interval],
    ledger_totals: _LedgerTotals,
) -> None:
    """Add all time of a GPU, by calls, by readings, or where it has none by phases."""
    curve = energy(series)  # one after the other: those of a week of eight GPUs take 0.1 GB
    ledger_totals.total_j, ledger_totals.counted_s = (
        ledger_totals.total_j + (curve.total_j or 0.0),
        ledger_totals.counted_s + curve.total_s,
    )
    if not len(series.t_s):
        _add_phases(context, series.gpu, curve, findings, ledger_totals)
    elif is_inference(context):
        _add_calls(context, series, curve, ledger_totals)
    else:
        rows, lost = idle_rows(context, series, findings, low), _lost(context, series)
        gpu = _LedgerGpu(series, curve, rows, lost, context.work_in_waits(series))
        for part in parts(len(series.t_s)):
            _add_account(gpu.account(part), ledger_totals)


def _unread_s(context: Context, finding: Finding) -> float:
    """Return how long nothing could be read of a GPU that was lost: the last reading before stands for some of it.

    What lies before the first sample has no time in the ledger.
    """
    start_s, end_s = max(finding.start_t_s, 0.0), min(finding.end_t_s, context.run.duration_s)
    mine = [series for series in context.series if series.gpu == finding.gpu]
    shared = [np.minimum(t.ends_of(slice(None)), end_s) - np.maximum(t.t_s, start_s) for t in mine]
    return max(end_s - start_s - sum(float(np.maximum(read, 0.0).sum()) for read in shared), 0.0)


def _add_account(account: _Account, ledger_totals: _LedgerTotals) -> None:
    """Add a GPU's seconds to those of each row, its joules, and of how many of the seconds these are known."""
    work = account.work_share
    shares = [(cause, work * lost) for cause, lost in account.lost.items()]
    shares.append(("work", work - sum(share for _, share in shares)))
    spent = account.weight_s, account.joules, account.weight_s * account.known
    for row, share in shares:
        ledger_totals.add(row, *(float((each * share).sum()) for each in spent))
    idle, begins = 1 - work, np.flatnonzero(np.diff(account.numbers, prepend=-1))  # of stretches of one row
    of_stretches = (np.add.reduceat(each * idle, begins) for each in spent)
    sums = [np.bincount(account.numbers[begins], each, minlength=len(account.names)).tolist() for each in of_stretches]
    for row in account.present:
        ledger_totals.add(row, *(of_each[account.names.index(row)] for of_each in sums))


def _add_calls(context: Context, series: GpuSeries, curve: Energy, ledger_totals: _LedgerTotals) -> None:
    """Add a GPU's seconds, joules and the seconds of which these are known, by the parts of calls."""
    used_j, known_s = curve.of_each(series.t_s, series.ends_of(slice(None)))
    spent = series.weight_s[:], np.nan_to_num(used_j), known_s
    for row, share in call_shares(context, series).items():
        ledger_totals.add(row, *(float((each * share).sum()) for each in spent))


def _add_phases(
    context: Context, gpu: int, curve: Energy, findings: Sequence[Finding], ledger_totals: _LedgerTotals
) -> None:
    """Add the phases that callbacks reported of a GPU without utilisation: how busy it was in training is not known.

    What lies after the GPU was lost is not theirs.
    """
    if gpu not in context.activity.used_gpus or not context.callbacks.spans:
        return
    waits = {name for name, _ in starved_by(context, gpu, findings)}
    lost = [finding.span for finding in findings if finding.rule == GPU_LOST and finding.gpu == gpu]
    pieces = [(phase, span) for phase in context.phases for span in minus([phase.span], lost)]
    for phase, span in pieces:
        spent = span[1] - span[0], *_energy_of(curve, span)
        waited = 0.0
        if phase.name == "train" and waits and context.throughput:
            waited = context.throughput.data_wait_share([span]) or 0.0
        row = phase.name if phase.name in PHASE_ROWS else "training"
        for name, share in ((row, 1 - waited), (min(waits, default=row), waited)):
            ledger_totals.add(name, *(each * share for each in spent))


def _energy_of(curve: Energy, span: Span) -> tuple[float, float]:
    """Return the joules in a span, and the seconds of it of which they are known."""
    used_j, known_s = curve.of_each(np.array([span[0]]), np.array([span[1]]))
    return float(np.nan_to_num(used_j)[0]), float(known_s[0])


def _lost(context: Context, series: GpuSeries) -> dict[str, Floats]:
    """Return the share of each reading's work that was none: others' work, what the clock lacked, a wait for a peer.

    Of a wait it counts where the GPU spins for one that is always later.
    """
    others = context.cached(lost_to_others).get(series.gpu)
    lost = {} if others is None else {OTHERS: others}
    ours = 1.0 if others is None else 1 - others
    lost |= {cause: ours * share for cause, share in lost_to_clocks(context, series).items()}
    if (wait := context.cached(peer_waits).get(series.gpu)) is not None:
        spans, share = wait
        left = np.clip(1.0 - sum(lost.values(), np.zeros(len(series.t_s))), 0.0, 1.0)
        lost[WAITING_FOR_PEER] = left * np.where(mask_in_any(series.t_s, spans), share, 0.0)
    return lost
