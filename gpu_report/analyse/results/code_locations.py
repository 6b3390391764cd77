"""The lines of code in which a training stood while a finding took its GPU's time."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.stack_notes import Seconds, stood
from gpu_report.analyse.timeseries.intervals import Span, intersect, union
from gpu_report.catalogue import CAUSES, RULES
from gpu_report.model import CodeLocation, Finding, ProcessStacks

SHOWN = 4  # locations of a finding: what comes after them is seldom what held it up
LEAST_SHARE = 0.05  # of the notes of a process: less is passing by
LEAST_NOTED_S = 1.0  # of a process within the finding: less of it may be chance
IDLE_PCT = 50.0  # utilisation under which a GPU is taken to wait, where a finding is of the whole training
MAIN, WORKERS = "main", "workers"


def with_locations(context: Context, finding: Finding) -> Finding:
    """Return a finding with the lines of code in which the training stood meanwhile, where that was noted."""
    if not context.run.stacks or finding.expected or not _takes_time(finding):
        return finding
    spans = _spans(context, finding)
    roles = _roles(finding)
    found = [location for role in roles for location in _locations(_processes(context, finding, role), role, spans)]
    return replace(finding, where=tuple(found[:SHOWN]))


def _takes_time(finding: Finding) -> bool:
    return (
        RULES[finding.rule].takes_time
        or RULES[finding.rule].takes_epoch_time
        or finding.rule in {"starved", "slow-epoch"}
    )


def _roles(finding: Finding) -> tuple[str, ...]:
    """Return whose lines tell: the workers' before the main process's where data was waited for."""
    is_input = finding.cause is not None and finding.cause.name in CAUSES and CAUSES[finding.cause.name].is_input
    return (WORKERS, MAIN) if is_input else (MAIN,)


def _spans(context: Context, finding: Finding) -> list[Span]:
    """Return when a finding took time: of one about a whole training, the moments in which its GPU was idle."""
    spans = [one.span for one in finding.each]
    if finding.rule != "starved":
        return spans
    trained = [phase.span for phase in context.phases if phase.name == "train"]
    idle = [
        (float(start), float(end))
        for series in context.series
        if series.gpu in (finding.gpus or [finding.gpu])
        for start, end in zip(
            series.t_s[series.util_pct < IDLE_PCT], series.ends_s[series.util_pct < IDLE_PCT], strict=True
        )
    ]
    return intersect(union(idle), intersect(spans, trained) if trained else spans)


def _processes(context: Context, finding: Finding, role: str) -> list[ProcessStacks]:
    """Return the processes of a role; of several ranks those on the finding's GPUs, where that is known."""
    stacks = context.run.stacks
    if role == WORKERS:
        return [each for each in stacks if each.is_worker]
    mains = [each for each in stacks if not each.is_worker]
    table = context.run.processes
    gpus = set(finding.gpus) or ({finding.gpu} if finding.gpu is not None else set())
    mine = set(table[table["gpu"].isin(gpus)]["pid"].tolist())
    return [each for each in mains if each.pid in mine] or mains


def _locations(processes: Sequence[ProcessStacks], role: str, spans: Sequence[Span]) -> Iterator[CodeLocation]:
    """Yield the lines in which some processes stood in some spans, those of most of the time first."""
    seconds: Seconds = {}
    for process in processes:
        for frame, spent in stood(process, spans, of_worker=role == WORKERS).items():
            seconds[frame] = seconds.get(frame, 0.0) + spent
    total = sum(seconds.values())
    if total < LEAST_NOTED_S:
        return
    name = processes[0].role if len(processes) == 1 and role != WORKERS else role
    for frame, spent in sorted(seconds.items(), key=lambda each: -each[1])[:SHOWN]:
        if spent >= LEAST_SHARE * total:
            yield CodeLocation(name, frame.function, frame.file, frame.line, spent / total)
