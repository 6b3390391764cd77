"""The lines of code in which a training stood while its GPUs were idle: of findings, and of rows of the ledger."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gpu_report.analyse.causes.main_process import CODE_CAUSES
from gpu_report.analyse.context import Context
from gpu_report.analyse.results.dump_locations import dump_locations
from gpu_report.analyse.results.idle_rows import IdleRows, idle_rows
from gpu_report.analyse.results.time_ledger import WHOLE_ROWS
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks, Rows
from gpu_report.analyse.signals.code.stack_kinds import MAIN, THREAD, WORKERS, kind_of
from gpu_report.analyse.signals.thresholds import MUCH_SHARE, OWN_SHARE
from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, intersect, length_s, parts, union
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.catalogue import BUSY_THREAD_KEY, CAUSES, LOADER, RULES, WAITING_FOR_PEER
from gpu_report.model import CodeLocation, Finding, Frame, Interval, LedgerRow

SHOWN = 4  # locations of a finding: what comes after them is seldom what held it up
LEAST_SHARE = 0.05  # of the notes of a process: less is passing by
AT_WORK_SHARE = 0.1  # of the finding, of workers: a loader that is waited for works nearly always
LEAST_NOTED_S = 1.0  # of a process within the finding: less of it may be chance
STEADY = frozenset({"starved", "user-code"})  # rules whose figures are of the steady state
NOT_READ = -1  # in the place of a row's number: before the first reading
NOT_LOST = frozenset({"work", "unmeasured"})  # rows of the ledger in which nothing waited

# A process, some of its pieces, and of each of these the seconds and the idle GPU seconds.
Weighted = tuple[IdleStacks, Rows, Floats, Floats]


def with_locations(context: Context, finding: Finding) -> Finding:
    """Return a finding with the lines of code in which the training stood meanwhile, where that was noted."""
    if not (context.run.stacks or context.run.dumps) or finding.expected or finding.where or not _takes_time(finding):
        return finding
    if finding.cause is not None and CAUSES[finding.cause.name].in_gpu:
        return finding
    spans = _spans(context, finding)
    found = _of_a_thread(context, finding, spans)
    roles = (WORKERS, MAIN) if finding.waited_for == LOADER else _roles(finding.cause_name)
    own_first = finding.cause is not None and finding.cause.name in {*CODE_CAUSES, WAITING_FOR_PEER}
    for role in roles:
        processes = _processes(context, finding, role)
        if role == WORKERS and finding.rule == "slow-start" and not _noted_most(processes, spans):
            continue  # what is known of a worker may be what it did once it had begun at last
        if role == WORKERS and not _at_work(processes, spans):
            continue  # what they did before they ran out of work says nothing of why no batch came
        found += _locations(role, [_weighted(each, spans) for each in processes], own_first=own_first)
    if own_first:
        found = _call_first(context, finding, spans, found)
    where = tuple(found[:SHOWN]) or dump_locations(context, finding, spans, SHOWN)
    return replace(finding, where=where)


def _call_first(
    context: Context, finding: Finding, spans: Sequence[Span], found: list[CodeLocation]
) -> list[CodeLocation]:
    """Return lines with the user's function that YOLO called first, where no line of its callees is most of it.

    A helper that takes half of a callback's time or less is no reason to leave the callback as it is.
    """
    processes = _processes(context, finding, MAIN)
    if len(processes) != 1 or not processes[0].gpus:
        return found
    _, rows, _, idle = _weighted(processes[0], spans)
    calls, call_of = processes[0].calls
    by_call = dict(zip(calls, np.bincount(call_of[rows], idle, minlength=len(calls)).tolist(), strict=True))
    call = max((each for each in by_call if each is not None), key=lambda each: by_call[each], default=None)
    share = by_call[call] / float(idle.sum()) if call is not None and idle.any() else 0.0
    place = context.signals.place_in_call(processes[0].gpus[0], call, spans) if call and share >= MUCH_SHARE else None
    if place is None:
        return found
    of_each = sums_by_key(((each.file, each.function), each.share) for each in found)
    if max((spent for at, spent in of_each.items() if at in _own_places(found)), default=0.0) > share / 2:
        return found
    others = [each for each in found if (each.file, each.function) != (place.file, place.function)]
    return [replace(place, share=share, with_calls=True), *others]


def _own_places(found: Sequence[CodeLocation]) -> set[tuple[str, str]]:
    return {(at.file, at.function) for at in found if kind_of(Frame(at.file, at.line, at.function)) == "own"}


def _of_a_thread(context: Context, finding: Finding, spans: Sequence[Span]) -> list[CodeLocation]:
    """Return the line of the thread that kept Python busy, of a finding that says so."""
    gpus = finding.gpus if finding.gpu is None else (finding.gpu,)
    if not gpus or not any(each.key == BUSY_THREAD_KEY for each in finding.evidence):
        return []
    thread = context.signals.busy_thread(gpus[0], spans)
    if thread is None:
        return []
    return [CodeLocation(THREAD, thread.line.function, thread.line.file, thread.line.line, thread.share)]


def with_row_locations(
    context: Context, rows: Sequence[LedgerRow], findings: Sequence[Finding], low: Sequence[Interval]
) -> tuple[LedgerRow, ...]:
    """Return the ledger with the lines of code in which the training stood in the time of each row, where noted."""
    if not context.run.stacks:
        return tuple(rows)
    processes: list[_RowParts] = []
    rows_of: dict[int, IdleRows] = {}
    for process in context.signals.idle_stacks:
        series = next((each for each in context.series if each.gpu in process.gpus and len(each.t_s)), None)
        if series is not None and series.gpu not in rows_of:
            rows_of[series.gpu] = idle_rows(context, series, findings, low)
        if series is not None:
            processes.append(_RowParts(process, series, rows_of[series.gpu]))
    return tuple(replace(row, where=_where(row.name, processes)) for row in rows)


class _RowParts:
    """The pieces of a process by the ledger's row that the readings of its GPU belong to."""

    def __init__(self, process: IdleStacks, series: GpuSeries, rows: IdleRows) -> None:
        self.process, self._rows = process, rows
        self._numbers = np.full(len(process.number), NOT_READ, dtype=np.int16)
        for part in parts(len(self._numbers)):
            at = np.searchsorted(series.t_s, process.middle_s(part), side="right") - 1
            numbers = rows.numbers[np.maximum(at, 0)].astype(np.int16)
            self._numbers[part] = np.where(at >= 0, numbers, NOT_READ)

    def __call__(self, name: str) -> Weighted:
        """Return the process with the seconds and the lost GPU seconds of each of its pieces in a row."""
        mine = np.flatnonzero(self._numbers == self._rows.number(name))
        seconds = self.process.seconds(mine)
        return self.process, mine, seconds, seconds if name in WHOLE_ROWS else self.process.idle_s[mine]


def _weighted(process: IdleStacks, spans: Sequence[Span]) -> Weighted:
    rows, share = process.within(spans)
    return process, rows, process.seconds(rows) * share, process.idle_s[rows] * share


def _where(row: str, processes: Sequence[_RowParts]) -> tuple[CodeLocation, ...]:
    if row in NOT_LOST:
        return ()
    found = [
        each for role in _roles(row) for each in _locations(role, [p(row) for p in processes if _has(p.process, role)])
    ]
    return tuple(found[:SHOWN])


def _takes_time(finding: Finding) -> bool:
    return (
        RULES[finding.rule].takes_time
        or RULES[finding.rule].takes_epoch_time
        or finding.rule in {*STEADY, "slow-epoch", "slow-start"}
    )


def _roles(cause: str) -> tuple[str, ...]:
    """Return whose lines tell: the workers' before the main process's where data was waited for."""
    return (WORKERS, MAIN) if cause in CAUSES and CAUSES[cause].is_input else (MAIN,)


def _spans(context: Context, finding: Finding) -> list[Span]:
    """Return when a finding took time: of one about a whole training, the steady state that its figure is of."""
    spans = [one.span for one in finding.each]
    return intersect(spans, context.signals.steady) if finding.rule in STEADY else spans


def _processes(context: Context, finding: Finding, role: str) -> list[IdleStacks]:
    """Return the processes of a role; of several ranks those that fed the finding's GPUs, where that is known."""
    mine = [each for each in context.signals.idle_stacks if _has(each, role)]
    gpus = set(finding.gpus) or ({finding.gpu} if finding.gpu is not None else set())
    fed = [each for each in mine if gpus.intersection(each.gpus)] or mine
    if finding.cause is None or finding.cause.name != WAITING_FOR_PEER:
        return fed
    # the line to look at is that of the rank that is late; of ranks that all wait, each one's
    late = set(context.gpus_not_waiting(min(gpus), finding.longest.span)) - gpus if gpus else set()
    return [each for each in mine if late.intersection(each.gpus)] or fed


def _noted_most(processes: Sequence[IdleStacks], spans: Sequence[Span]) -> bool:
    """Tell whether some processes noted, one or another, where they stood for half of some spans or more."""
    noted = union([span for each in processes for span in each.together(each.within(spans)[0]).tolist()])
    return 2 * length_s(intersect(noted, spans)) >= length_s(spans)


def _at_work(processes: Sequence[IdleStacks], spans: Sequence[Span]) -> bool:
    """Tell whether some workers, one or another, were at work for AT_WORK_SHARE of some spans or more."""
    worked: list[Span] = []
    for each in processes:
        rows = each.within(spans)[0]
        lines, line_of = each.lines
        busy = np.array([line is not None for line in lines], dtype=np.bool_)
        worked += each.together(rows[busy[line_of[rows]]]).tolist() if len(rows) else []
    return length_s(intersect(union(worked), spans)) >= AT_WORK_SHARE * length_s(spans)


def workers_line(context: Context, spans: Sequence[Span]) -> CodeLocation | None:
    """Return the line in which the data loader's workers were most of some spans; None without one."""
    workers = [_weighted(each, spans) for each in context.signals.idle_stacks if each.process.is_worker]
    most = next(_locations(WORKERS, workers), None) if workers else None
    return most if most is not None and most.is_most else None


def _has(process: IdleStacks, role: str) -> bool:
    return process.process.is_worker == (role == WORKERS)


def _locations(role: str, weighted: Sequence[Weighted], *, own_first: bool = False) -> Iterator[CodeLocation]:
    """Yield the lines in which some processes stood while GPUs were idle, those of most of the time first.

    With `own_first` those of the user's own come before others, if they have OWN_SHARE: every main process has those of
    its steps.
    Where no GPU was seen idle meanwhile, as one without readings of utilisation, all of their time counts.
    """
    if sum(float(seconds.sum()) for _, _, seconds, _ in weighted) < LEAST_NOTED_S:
        return
    is_idle = sum(float(idle.sum()) for _, _, _, idle in weighted) >= LEAST_NOTED_S
    of_each = (process.by_line(rows, idle if is_idle else seconds) for process, rows, seconds, idle in weighted)
    lines = sums_by_key(pair for lines in of_each for pair in lines.items())
    total, first = sum(lines.values()), weighted[0][0].process
    name = first.role if len(weighted) == 1 and role != WORKERS else role
    own = {frame for frame, spent in lines.items() if kind_of(frame) == "own" and spent >= OWN_SHARE * total}
    much_of_own = own if own_first else set()
    for frame, spent in sorted(lines.items(), key=lambda each: (each[0] not in much_of_own, -each[1]))[:SHOWN]:
        if spent >= LEAST_SHARE * total:
            yield CodeLocation(name, frame.function, frame.file, frame.line, spent / total)
