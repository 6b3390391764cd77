"""Where the data came from: the recording and what of it is missing, and the kernel log."""

from gpu_report.catalogue import rule_words
from gpu_report.model import Analysis, Gap, KernelLog, Recording
from gpu_report.render.formatting import (
    duration,
    elapsed,
    gibibytes,
    kernel_log_counts,
    known,
    number,
    numbers,
    sentence,
    share,
    with_code,
)
from gpu_report.render.nccl_words import nccl_words
from gpu_report.render.page.sections.findings import kernel_line
from gpu_report.render.page.views.report import KernelView, RecorderEvent, RecordingView
from gpu_report.render.page.views.tables import Fact
from gpu_report.render.recorder_events import WHAT, detail, gpu_name
from gpu_report.render.run_clock import WallClock
from gpu_report.wording import counted, ending_words, upper_first

HAPPENINGS_SHOWN = 200  # rows: a run with a gap at every minute must not bury the page; the rest is counted


def kernel(log: KernelLog, clock: WallClock) -> KernelView:
    """Return what is known of the kernel log; where it was not read, unknown and what would help."""
    lines = tuple(kernel_line(event, clock) for event in log.events)
    if log.status == "read":
        found = kernel_log_counts(log.events) if lines else "No event about GPUs, memory or storage"
        return KernelView(read=True, statement=f"{found}{_from(log)}.", command="", lines=lines)
    reason = f" ({log.reason.rstrip('.')})" if log.reason else ""
    statement = f"Unknown: the kernel log could not be read{reason}, so errors may have gone unseen."
    if log.xid_events == "listening":
        statement += " Xid errors were read through NVML, which needs no log."
    return KernelView(read=False, statement=statement, command=with_code(log.advice), lines=lines)


def recording(analysis: Analysis, clock: WallClock) -> RecordingView:
    """Return how this was recorded, and everything that went wrong with it."""
    happenings = sorted((*_gaps(analysis, clock), *_events(analysis, clock)), key=lambda h: h.moment.t_s)
    left_out = len(happenings) - HAPPENINGS_SHOWN
    return RecordingView(
        facts=tuple(fact for fact in _facts(analysis) if fact.value),
        not_checked=tuple(f"{rule_words(each.rule)}: {each.reason}" for each in analysis.not_checked),
        problems=analysis.run.problems,
        happenings=tuple(happenings[:HAPPENINGS_SHOWN]),
        happenings_left_out=f"{left_out:,} more not shown." if left_out > 0 else "",
    )


def _from(log: KernelLog) -> str:
    return f" (read from {log.source})" if log.source else ""


def _facts(analysis: Analysis) -> tuple[Fact, ...]:
    source = analysis.run.recording
    host = (
        source.os,
        source.cores and counted(source.cores, "core"),
        source.memory_mib and gibibytes(source.memory_mib),
    )
    return (
        Fact("Recorded by", _recorder(source)),
        Fact("Run folder", analysis.run.path),
        Fact("Command", " ".join(source.command)),
        *_ending(analysis),
        Fact("One sample every", duration(source.interval_s) if source.interval_s else ""),
        Fact("Coverage", f"{share(analysis.coverage)} of the expected samples"),
        Fact("Longest gap", duration(analysis.longest_gap_s)),
        Fact("Host", ", ".join(str(part) for part in (source.host, *host) if part)),
        _driver(source),
        Fact("Python", source.python or ""),
        Fact("PyTorch", source.torch or ""),
        Fact("NCCL", nccl_words(analysis.run.nccl)),
        Fact("Ultralytics", source.ultralytics or ""),
        Fact("The recorder itself", _cost(analysis)),
    )


def _driver(source: Recording) -> Fact:
    """Return the driver and the CUDA that it supports; where no driver is known, the CUDA may be PyTorch's alone."""
    if source.driver is None:
        return Fact("CUDA", source.cuda or "")
    return Fact("Driver", ", ".join(p for p in (source.driver, source.cuda and f"CUDA {source.cuda}") if p))


def _ending(analysis: Analysis) -> tuple[Fact, ...]:
    """Return how the training ended (of inference, the run), and what it was like just before."""
    ending = analysis.ending
    if ending is None:
        return ()
    what = "the training" if analysis.is_training else "the run"
    when = sentence(f"{ending_words(ending)}, {elapsed(ending.t_s)} after the start")
    if ending.still_recorded:
        return Fact(upper_first(f"{what} so far"), when), Fact("In its last minute", numbers(ending.last_minute))
    return Fact(f"End of {what}", when), Fact("Just before its end", numbers(ending.last_minute))


def _recorder(source: Recording) -> str:
    version = f" {source.tool_version}" if source.tool_version else ""
    is_ours = source.is_ours
    return source.source + version if is_ours else f"{source.source}, imported by gpu-report{version}"


def _cost(analysis: Analysis) -> str:
    cost = analysis.run.recording.cost
    parts = (
        None if known(cost.cpu_pct) is None else f"{number(cost.cpu_pct, 1)} % of one core",
        None if known(cost.rss_mib) is None else f"{number(cost.rss_mib)} MiB",
        None if known(cost.tick_p50_ms) is None else f"p50 {number(cost.tick_p50_ms, 1)} ms a sample",
        None if known(cost.tick_p99_ms) is None else f"p99 {number(cost.tick_p99_ms, 1)} ms",
        None if cost.late_ticks is None else counted(cost.late_ticks, "late sample"),
    )
    return ", ".join(part for part in parts if part)


def _gaps(analysis: Analysis, clock: WallClock) -> list[RecorderEvent]:
    return [RecorderEvent(clock.moment(gap.start_t_s), WHAT["gap"], _gap_detail(gap)) for gap in analysis.gaps]


def _gap_detail(gap: Gap) -> str:
    length = f"{duration(gap.end_t_s - gap.start_t_s)}, {gpu_name(gap.gpu) or 'every GPU'}"
    return f"{length}: {gap.reason}" if gap.reason else length


def _events(analysis: Analysis, clock: WallClock) -> list[RecorderEvent]:
    return [
        RecorderEvent(clock.moment(event.t_s), WHAT.get(event.kind, event.kind), detail(event))
        for event in analysis.run.events
        if event.kind != "gap"
    ]
