"""Rule: utilisation fell, though not as far as a drop, and what happened beside it explains why."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.causes import explain
from gpu_report.analyse.causes.slower_storage import advice_on_storage
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.drops import fall_evidence
from gpu_report.analyse.rules.drops.at_epoch_end import drop_parts
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import LEVEL_OVER_S, LOW_READINGS
from gpu_report.analyse.signals.utilisation_drops import Drop, find_drops
from gpu_report.analyse.timeline.trainings import begun_later
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries, in_blocks
from gpu_report.analyse.timeseries.intervals import IntervalIndex
from gpu_report.analyse.timeseries.robust_outliers import tolerance
from gpu_report.model import Advice, Cause, Finding
from gpu_report.wording import fall_words


def slowdowns(context: Context, found: Sequence[Finding]) -> list[Finding]:
    """Report where utilisation fell by SLOWED_PERCENT or more, for as long as a drop, with a cause beyond doubt.

    Cores that others take leave a training half of its throughput, and so no drop. Without a cause beside it,
    utilisation that is a third lower is what a change of work looks like, too. Nor is there more to say where it fell
    for what was `found` to hold back all of the training.
    """
    lasting = [each for each in found if each.rule == "starved"]
    slowed = [finding for fall in context.cached(_falls) if (finding := _finding(context, fall)) is not None]
    return [finding for finding in slowed if not any(_is_part(finding, each) for each in lasting)]


def _is_part(slowed: Finding, lasting: Finding) -> bool:
    """Tell whether a fall has the cause of what lasts, on its GPU, and lies in it."""
    if slowed.gpu != lasting.gpu or slowed.cause is None or lasting.cause is None:
        return False
    within = lasting.start_t_s <= slowed.start_t_s and slowed.end_t_s <= lasting.end_t_s
    return within and slowed.cause.name == lasting.cause.name


def _falls(context: Context) -> list[Drop]:
    """Return the falls that are not drops and lie in none, and that no validation explains.

    They take a search of their own: what is in a fall is kept out of later levels, and where strays end one depends on
    its line, so that the search for drops, under another line, says neither where falls begin nor which there are. It
    is one of means over a third of what a drop lasts: a GPU that waits between batches is busy off and on.
    """
    options = replace(context.options, drop_percent=th.SLOWED_PERCENT)
    if context.options.drop_percent <= options.drop_percent:
        return []
    falls = [
        fall
        for each, *masks in zip(context.series, context.usable, context.trains, strict=True)
        for series, (usable, trains) in [in_blocks(each, options.drop_seconds / LOW_READINGS, *masks)]
        for fall in find_drops(series, usable, trains, options, begun_later(context.trainings, series.gpu))
        if _stands_out(series, trains, fall)
    ]
    near = IntervalIndex([*context.drops, *context.between_bursts], lambda drop: drop.span)
    own = [fall for fall in falls if not any(_meet(fall, drop) for drop in near(*fall.span))]
    return [
        part.drop for part in drop_parts(context, own, options.line_share, options.drop_seconds) if not part.explained
    ]


def _stands_out(series: GpuSeries, trains: Bools, fall: Drop) -> bool:
    """Tell whether a fall is far from the means before it, by their spread: where a GPU waits, they scatter a lot."""
    before = series.between(fall.start_t_s - LEVEL_OVER_S, fall.start_t_s)
    means = series.util_pct[before][trains[before]].astype(float)
    if not len(means):
        return True
    typical, far = tolerance(means, 0.0, 0.0)
    return fall.mean_pct <= typical - far


def _meet(fall: Drop, drop: Drop) -> bool:
    return fall.gpu == drop.gpu and fall.start_t_s < drop.end_t_s and drop.start_t_s < fall.end_t_s


def _finding(context: Context, fall: Drop) -> Finding | None:
    signals = context.signals.of(fall.gpu, *fall.span)
    explained = explain(signals)
    if explained.cause.confidence < th.SLOWED_CONFIDENCE:
        return None
    return context.finding(
        "slowdown",
        "warning",
        fall.span,
        f"{fall_words(f'GPU {fall.gpu}', fall.level_pct, fall.mean_pct)} for {fall.duration_s:.0f} s",
        gpu=fall.gpu,
        level_pct=fall.level_pct,
        low_pct=fall.mean_pct,
        evidence=(*fall_evidence(context, fall), *explained.evidence),
        cause=explained.cause,
        kernel_events=tuple(signals.kernel),
        advice=explained.advice or _advice(signals, explained.cause),
    )


def _advice(signals: IntervalSignals, cause: Cause) -> tuple[Advice, ...]:
    """Return what to do about storage that kept up before, and in later epochs: a faster disk may not be what it takes.

    In the first epoch files come from the disk for the first time.
    """
    slower = cause.name == "input-storage" and not signals.in_first_epoch
    return (advice_on_storage(signals),) if slower else ()
