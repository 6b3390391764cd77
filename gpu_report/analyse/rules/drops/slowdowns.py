"""Rule: utilisation fell, though not as far as a drop, and what happened beside it explains why."""

from dataclasses import replace

from gpu_report.analyse.causes import explain
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.drops import fall_evidence
from gpu_report.analyse.rules.drops.at_epoch_end import drop_parts
from gpu_report.analyse.signals.utilisation_drops import Drop, find_drops
from gpu_report.analyse.timeline.trainings import begun_later
from gpu_report.analyse.timeseries.intervals import IntervalIndex
from gpu_report.model import Finding
from gpu_report.wording import fall_words


def slowdowns(context: Context) -> list[Finding]:
    """Report where utilisation fell by SLOWED_PERCENT or more, for as long as a drop, with a cause beyond doubt.

    Cores that others take leave a training half of its throughput, and so no drop. Without a cause beside it,
    utilisation that is a third lower is what a change of work looks like, too.
    """
    return [finding for fall in context.cached(_falls) if (finding := _finding(context, fall)) is not None]


def _falls(context: Context) -> list[Drop]:
    """Return the falls that are not drops and lie in none, and that no validation explains.

    They take a search of their own: what is in a fall is kept out of later levels, and where strays end one depends on
    its line, so that the search for drops, under another line, says neither where falls begin nor which there are.
    """
    options = replace(context.options, drop_percent=th.SLOWED_PERCENT)
    if context.options.drop_percent <= options.drop_percent:
        return []
    falls = [
        fall
        for series, usable, trains in zip(context.series, context.usable, context.trains, strict=True)
        for fall in find_drops(series, usable, trains, options, begun_later(context.trainings, series.gpu))
    ]
    near = IntervalIndex([*context.drops, *context.between_bursts], lambda drop: drop.span)
    own = [fall for fall in falls if not any(_meet(fall, drop) for drop in near(*fall.span))]
    return [
        part.drop for part in drop_parts(context, own, options.line_share, options.drop_seconds) if not part.explained
    ]


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
        advice=explained.advice,
    )
