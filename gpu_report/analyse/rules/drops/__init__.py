"""Rule: utilisation fell under half of its level and stayed there, with what happened beside it."""

from gpu_report.analyse.causes import explain, lasting_cause
from gpu_report.analyse.causes.confidence import POSSIBLE
from gpu_report.analyse.causes.late_first_batches import with_late_first_batch
from gpu_report.analyse.causes.slower_storage import until_cached
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.drops.at_epoch_end import DropPart, drop_parts
from gpu_report.analyse.rules.drops.cause_at_epoch_end import EpochEndCause, epoch_end_cause
from gpu_report.analyse.rules.drops.kept_speed import kept_speed
from gpu_report.analyse.rules.drops.periodic_drops import ends_a_training, periodic_drops
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import PHASE_EDGE_S
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice, Cause, Evidence, Finding
from gpu_report.wording import fall_words, length

COMES_ROUND = Cause("validation", POSSIBLE, "it comes round as the validations of epochs do; no epochs are known here")
ENDS_SO = Cause("validation", POSSIBLE, "no training came after it, as after an evaluation; no epochs are known here")


def drops(context: Context) -> list[Finding]:
    """Report every drop of utilisation, numbered in order of time.

    What is left of one without the validation and checkpoint in it counts from REMAINS_SHARE of a drop's least length
    on: utilisation was low for as long as a drop asks for, and what the end of the epoch explains is not in it.
    """
    options = context.options
    least_s = max(th.REMAINS_SHARE * options.drop_seconds, min(th.REMAINS_AT_LEAST_S, options.drop_seconds))
    found = drop_parts(context, context.drops, options.line_share, least_s)
    return [_finding(context, part) for part in found]


def _finding(context: Context, part: DropPart) -> Finding:
    drop = part.drop
    at_end = epoch_end_cause(context, drop) if part.explained else None
    signals = context.signals.of(drop.gpu, *drop.span)
    kernel_was_read = context.run.kernel.status == "read"
    kept = None if at_end else kept_speed(context, drop)
    expects = at_end.cause if at_end else kept[0] if kept else _without_epochs(context, drop)
    always = lasting_cause(context, drop.gpu, drop.start_t_s)
    explained = explain(signals, fell=True, expected=expects, kernel_was_read=kernel_was_read, always=always)
    explained = with_late_first_batch(context, drop, explained)
    cause = explained.cause
    first_reads = of_first_reads(context, signals, cause)
    expected = (
        expects is not None and cause == expects
    ) or cause.name == "startup"  # which comes once, and to every training
    return context.finding(
        "sustained-low" if drop.sustained else "drop",
        "info" if expected else "warning",
        drop.span,
        f"{fall_words(gpu_words(drop.gpu), drop.level_pct, drop.mean_pct)} for {length(drop.duration_s)}",
        gpu=drop.gpu,
        expected=expected,
        at_boundary=context.epoch_ends.touching(*drop.span) is not None,
        level_pct=drop.level_pct,
        low_pct=drop.mean_pct,
        evidence=(
            *fall_evidence(context, drop),
            *_fall_context(context, part, at_end),
            *(kept[1] if kept else ()),
            *explained.evidence,
        ),
        cause=cause,
        kernel_events=tuple(signals.kernel),
        advice=_kernel_advice(context) if cause.name == "unexplained" else explained.advice or first_reads,
    )


def of_first_reads(context: Context, signals: IntervalSignals, cause: Cause) -> tuple[Advice, ...]:
    """Return that images of a first epoch came from the disk, where those of later ones came from memory.

    All of the first epoch is compared: what is read at once after a wait says nothing of what an epoch reads.
    """
    if cause.name != "input-storage" or not signals.in_first_epoch:
        return ()
    training = context.training_at(signals.start_t_s, signals.gpu)
    spans = training.train_spans if training is not None else ()
    first = [each for each in spans if each[0] < signals.end_t_s]
    later = [each for each in spans if each[0] >= signals.end_t_s]
    return until_cached(context.run.host, first, later)


def _without_epochs(context: Context, drop: Drop) -> Cause | None:
    """Return what a drop may be in a training of which no epochs are known, None where nothing speaks for it."""
    if drop in context.cached(periodic_drops):
        return COMES_ROUND
    return ENDS_SO if ends_a_training(context, drop) else None


def _fall_context(context: Context, part: DropPart, at_end: EpochEndCause | None) -> tuple[Evidence, ...]:
    """Return what the end of an epoch had to do with it: its part of an expected drop, else why one is so short."""
    if at_end is not None:
        return at_end.evidence
    if part.drop.duration_s >= context.options.drop_seconds or part.whole_s - part.drop.duration_s < PHASE_EDGE_S:
        return ()
    return (Evidence("length with the validation or checkpoint next to it", part.whole_s, "s"),)


def fall_evidence(context: Context, drop: Drop) -> tuple[Evidence, ...]:
    """Return how far, how long and how much it cost."""
    lost = drop.duration_s * (1 - drop.mean_pct / drop.level_pct)
    found = [
        Evidence("utilisation before it (median)", drop.level_pct, "%"),
        Evidence("utilisation within it (mean)", drop.mean_pct, "%"),
        Evidence("length", drop.duration_s, "s"),
        Evidence("GPU time lost, compared with before", lost, "s"),
    ]
    epoch_end = context.epoch_ends.touching(*drop.span)
    typical = context.epoch_ends.typical_s(epoch_end) if epoch_end else None
    if typical:
        found.append(Evidence("validation and checkpoint of other epochs (median)", sum(typical), "s"))
    return tuple(found)


def _kernel_advice(context: Context) -> tuple[Advice, ...]:
    """Return how to see the kernel log next time, where it was not read this time."""
    kernel = context.run.kernel
    return (Advice(kernel.advice, reads_kernel_log=True),) if kernel.status != "read" and kernel.advice else ()
