"""Stage 3: a `Run` becomes an `Analysis`. Pure functions over typed values; nothing here touches a disk."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

from gpu_report.analyse.advice import advise
from gpu_report.analyse.advice.epoch_now import epoch_now
from gpu_report.analyse.advice.judged_epochs import training_of_limits, without_past_trainings
from gpu_report.analyse.advice.projection import as_recorded, project
from gpu_report.analyse.advice.resume_or_restart import keep_faster_option
from gpu_report.analyse.advice.speedup_limits import find_speedup_limits
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.context import Context
from gpu_report.analyse.inference.served import is_inference, served_models
from gpu_report.analyse.results.call_ledger import with_lines
from gpu_report.analyse.results.code_locations import with_locations, with_row_locations
from gpu_report.analyse.results.code_time import code_lines, code_time
from gpu_report.analyse.results.epoch_summaries import summarise_epochs
from gpu_report.analyse.results.gpu_summary import summarise_gpu
from gpu_report.analyse.results.not_checked import not_checked
from gpu_report.analyse.results.occurrences import group_findings, groups_of, ids_of, joined
from gpu_report.analyse.results.saved_in_run import with_savings
from gpu_report.analyse.results.time_ledger import build_ledger
from gpu_report.analyse.results.training_outcome import training_outcome
from gpu_report.analyse.results.verdict.hypotheses import hypotheses
from gpu_report.analyse.results.verdict.sentences import verdict
from gpu_report.analyse.results.verdict.which_training import which_training
from gpu_report.analyse.rules import find_all
from gpu_report.analyse.rules.drops.slowdowns import without_slow_loading
from gpu_report.analyse.signals.gpu.utilisation_drops import find_low_intervals
from gpu_report.analyse.signals.host.kernel_event_owner import mark_foreign_kernel_events
from gpu_report.analyse.timeseries.gpu_series import gaps, measured_s
from gpu_report.analyse.validations import is_validation
from gpu_report.catalogue import SEVERITIES
from gpu_report.model import (
    Analysis,
    CodeTime,
    Ending,
    EpochNow,
    EpochSummary,
    Finding,
    GpuSummary,
    Hypothesis,
    Interval,
    LedgerRow,
    Options,
    Projection,
    Run,
    SpeedupLimit,
    Verdict,
)

__all__ = ["analyse"]


@dataclass(frozen=True, eq=False)
class _Judged:
    """What is said of a run: its findings as they are reported, where its time went, and what would be faster."""

    findings: tuple[Finding, ...]
    verdict: Verdict
    ending: Ending | None
    low_intervals: tuple[Interval, ...]
    ledger: tuple[LedgerRow, ...]
    epochs: tuple[EpochSummary, ...]
    speedup_limits: tuple[SpeedupLimit, ...]
    projection: Projection | None
    epoch_now: EpochNow | None
    hypotheses: tuple[Hypothesis, ...]


def analyse(
    run: Run, options: Options | None = None, *, with_code_time: bool = True, meanwhile: Executor | None = None
) -> Analysis:
    """Return what is to be said about a run: findings in the order of what a reader wins; expected ones last.

    `code_time` and `code_lines` are of the run's own report alone: whoever makes none asks without them. So are the
    statistics of the GPUs, which other threads work out `meanwhile`; without these, whoever asks for them does.
    """
    options, run = options or Options(), mark_foreign_kernel_events(run)
    context = without_slow_loading(build_context(run, options))
    gpus = _gpu_summaries(context, meanwhile)
    judged = _judged(context)
    where = _code_time(context, judged) if run.stacks and with_code_time else ()
    return Analysis(
        run=context.run,
        options=options,
        verdict=judged.verdict,
        gpus=gpus,
        epochs=judged.epochs,
        phases=context.phases,
        low_intervals=judged.low_intervals,
        gaps=tuple(gap for series in context.series for gap in gaps(series, run.duration_s)),
        findings=judged.findings,
        ledger=judged.ledger,
        speedup_limits=judged.speedup_limits,
        coverage=_coverage(context),
        ending=judged.ending,
        not_checked=context.cached(not_checked),
        code_time=where,
        code_lines=code_lines(where, by_idle=bool(run.gpus)),
        projection=judged.projection,
        hypotheses=judged.hypotheses,
        profiled=context.profiled,
        epoch_now=judged.epoch_now,
        served=context.cached(served_models),
        is_inference=is_inference(context),
        is_validation=is_validation(context),
    )


def _judged(context: Context) -> _Judged:
    """Return what the rules find in a run, what could be won by that, and both in the verdict's words."""
    groups = group_findings(context, find_all(context))
    found = sorted((finding for group in groups for finding in group), key=_badness)
    low, ending = _low_intervals(context), training_outcome(context, found)
    ledger, epochs = build_ledger(context, found, low), summarise_epochs(context, found)
    current = without_past_trainings(context, epochs, found)
    advised, limits = advise(context, current, found, find_speedup_limits(context, current, found))
    limits = with_savings(context, limits, current, found)
    projected = project(context, training_of_limits(context, current), limits, ending, advised)
    projection = as_recorded(projected, current)
    findings = keep_faster_option(context, advised, ending, projection)
    now = epoch_now(current, limits)
    words = partial(verdict, context, ledger=ledger, limits=limits, ending=ending, projection=projection, now=now)
    reported, said = _reported(context, groups, findings, words)
    return _Judged(
        findings=reported,
        verdict=said,
        ending=ending,
        low_intervals=tuple(low),
        ledger=_with_places(context, ledger, found, low),
        epochs=epochs,
        speedup_limits=limits,
        projection=projection,
        epoch_now=now,
        hypotheses=() if is_inference(context) or is_validation(context) else hypotheses(context, findings),
    )


def _reported(
    context: Context,
    groups: Sequence[list[Finding]],
    findings: Sequence[Finding],
    words: Callable[[Sequence[Finding]], Verdict],
) -> tuple[tuple[Finding, ...], Verdict]:
    """Return the findings as they are reported, what happened often as one, and the verdict with their ids."""
    together = groups_of(groups, findings)
    ids = ids_of(together)
    reported = [with_locations(context, joined(context, group)) for group in together]
    reported = [replace(each, which_training=which_training(context, [each])) for each in reported]
    said = _renamed(words(_located(findings, reported, ids)), ids)
    return tuple(sorted(reported, key=partial(_place, said))), said


def _code_time(context: Context, judged: _Judged) -> tuple[CodeTime, ...]:
    """Return in which code each process was; with the start-up's where that leads, for it is to be found there."""
    where = code_time(context)
    first = judged.verdict.sentences[0].findings if judged.verdict.sentences else ()
    if any(finding.rule == "slow-start" and finding.id in first for finding in judged.findings):
        return tuple(replace(time, with_startup=True) for time in where)
    return where


def _with_places(
    context: Context, ledger: Sequence[LedgerRow], findings: Sequence[Finding], low: Sequence[Interval]
) -> tuple[LedgerRow, ...]:
    """Return the ledger, each row with the lines of code in which its time went."""
    if is_inference(context):
        return with_lines(context, ledger)
    return with_row_locations(context, ledger, findings, low)


def _low_intervals(context: Context) -> list[Interval]:
    """Return when the GPUs of a training were hardly used; a model that is called now and then has no such times."""
    if is_inference(context):
        return []
    pairs = zip(context.series, context.usable, strict=True)
    return [interval for series, usable in pairs for interval in find_low_intervals(series, usable)]


def _gpu_summaries(context: Context, meanwhile: Executor | None) -> tuple[GpuSummary, ...]:
    """Return the figures of each GPU of the recording."""
    run, by_gpu = context.run, {series.gpu: series for series in context.series}
    used, of_others = context.activity.used_gpus, context.gpus_of_others | context.cut_gpus
    return tuple(
        replace(
            summarise_gpu(gpu, by_gpu.get(gpu.index), run.duration_s, used=gpu.index in used, meanwhile=meanwhile),
            of_others=gpu.index in of_others,
        )
        for gpu in run.gpus
    )


def _coverage(context: Context) -> float:
    """Return the share of the expected samples that are there, 0 to 1: without a GPU, of the host's.

    Those are expected, too, that a recorder which was killed left out of a training that went on.
    """
    run, cut = context.run, context.cut_gpus
    whole = sum(gpu.index not in cut for gpu in run.gpus)
    if run.gpus:
        in_all_s = sum(measured_s(each, run.duration_s) for each in context.series if each.gpu not in cut)
    else:
        in_all_s = len(run.host) * (run.recording.interval_s or 0.0)
    expected_s = (run.duration_s + context.unrecorded_s) * max(whole, 1)
    return min(in_all_s / expected_s, 1.0) if expected_s > 0 else 0.0


def _badness(finding: Finding) -> tuple[bool, int, float, float]:
    return finding.expected, SEVERITIES.index(finding.severity), -finding.duration_s, finding.start_t_s


def _place(said: Verdict, finding: Finding) -> tuple[bool, bool, bool, int, int, float, float]:
    """Return where a finding stands: what leads, what failed the run, then by what a reader wins, then by its cost.

    Expected ones stand last, in order of time.
    """
    first = said.sentences[0].findings if said.sentences else ()
    wins = said.order.index(finding.id) if finding.id in said.order else len(said.order)
    severity = SEVERITIES.index(finding.severity)
    costs_s = 0.0 if finding.expected else finding.costs_s
    return finding.expected, finding.id not in first, severity > 0, wins, severity, -costs_s, finding.start_t_s


def _located(findings: Sequence[Finding], reported: Sequence[Finding], ids: Mapping[str, str]) -> list[Finding]:
    """Return the findings, each with the lines of code that are known of the one under which it is reported.

    What several GPUs felt, or what happened several times, has that one's summary, too: it names them all.
    """
    of = {finding.id: finding for finding in reported}
    pairs = ((finding, of[ids[finding.id]]) for finding in findings)
    return [
        replace(
            finding, where=one.where, summary=one.summary if len(one.gpus) > 1 or one.occurrences else finding.summary
        )
        for finding, one in pairs
    ]


def _renamed(said: Verdict, ids: Mapping[str, str]) -> Verdict:
    """Return the verdict with the ids under which its findings are reported."""
    sentences = (
        replace(sentence, findings=tuple(dict.fromkeys(ids[found] for found in sentence.findings)))
        for sentence in said.sentences
    )
    order = tuple(dict.fromkeys(ids[found] for found in said.order))
    return replace(said, sentences=tuple(sentences), order=order)
