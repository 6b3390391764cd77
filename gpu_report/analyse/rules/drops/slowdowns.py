"""Rule: utilisation fell, though not as far as a drop, and what happened beside it explains why."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gpu_report.analyse.causes import explain, lasting_cause
from gpu_report.analyse.causes.slower_storage import advice_on_storage
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.drops import fall_evidence, of_first_reads
from gpu_report.analyse.rules.drops.at_epoch_end import drop_parts
from gpu_report.analyse.rules.drops.lasting_falls import made_epochs_longer, to_its_end, to_their_ends
from gpu_report.analyse.signals.gpu.chance_drops import drops_by_chance
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop, find_drops
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import CHANCE_READINGS, LOW_READINGS
from gpu_report.analyse.timeline.thresholds import LEVEL_AT_LEAST_S
from gpu_report.analyse.timeline.trainings import later_starts
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries, Percents, in_blocks
from gpu_report.analyse.timeseries.intervals import (
    IntervalIndex,
    Span,
    as_array,
    intersect,
    length_s,
    minus,
    parts,
    union,
)
from gpu_report.analyse.timeseries.robust_outliers import tolerance
from gpu_report.analyse.timeseries.thresholds import OUTLIER_SIBLINGS
from gpu_report.catalogue import CAUSES
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice, Cause, Finding, Options
from gpu_report.wording import fall_words, length

MEANS_OF = 12  # readings, at least: a driver reads 0 or 100 % of a GPU that waits for seconds, and four are no mean
PIECES_SHARE = 0.67  # of a fall: drops that make up more of it are the event
MEANS_S = 20.0  # three of them are a minute, and a GPU that waits for data has had dozens of batches in each
HALF = 0.5  # of training: a fall for its loader that came and went is less
SCATTERS_OVER_S = 300.0  # of means before a fall: fewer do not say how far they scatter ...
SCATTERS_OVER = 6  # ... and so many, where they are of minutes
# Of a fall that is reported though nothing explains it, if it lasts SLOWDOWN_LASTS_S: by a fifth, as epochs are.
LASTED_PERCENT = 20.0
SLIGHT_PERCENT = 10.0  # ... where epochs took longer by it as well, and a cause began with it
STORAGE = "input-storage"


def slowdowns(context: Context) -> list[Finding]:
    """Report where utilisation fell by SLOWED_PERCENT or more, for as long as a drop, with a cause beyond doubt.

    Cores that others take leave a training half of its throughput, and so no drop. Without a cause beside it,
    utilisation that is a third lower is what a change of work looks like, too. One that holds drops is told anyway:
    they are pieces of it (`contained_findings.py`). So is one that came and went, for a change of work stays.
    """
    found: list[Finding] = []
    kinds = (_lasting, 0.0), (_falls, th.SLOWED_CONFIDENCE), (_around_drops, 0.0), (_slight, th.SLOWED_CONFIDENCE)
    for falls, least in kinds:
        apart = [fall for fall in context.cached(falls) if not any(_overlap(fall, each) for each in found)]
        each = [_finding(context, fall, least) for fall in apart]
        found += [finding for finding in each if finding is not None]
    return sorted(found, key=lambda finding: finding.start_t_s)


def without_slow_loading(context: Context) -> Context:
    """Return a run without falls for its loader in its steady state, where they are less than half of a training.

    What it waits for all the time is another matter: a short training would be judged by the one that came and went.
    One that lasts to the end may be more of it: what was before is then what the training can do.
    """
    spans = union([f.span for f in context.cached(slowdowns) if f.cause is not None and CAUSES[f.cause.name].is_input])
    trained = union([span for training in context.trainings for span in training.train_spans])
    if not spans or not trained:
        return context
    goes_on = spans[-1][1] >= trained[-1][1] - th.ABUTS_S
    most = th.FALL_THAT_GOES_ON_SHARE if goes_on else HALF
    return context.without(spans) if length_s(intersect(trained, spans)) < most * length_s(trained) else context


def _falls(context: Context) -> list[Drop]:
    """Return the falls that are not drops and lie in none, and that no validation explains.

    They take a search of their own: what is in a fall is kept out of later levels, and where strays end one depends on
    its line, so that the search for drops, under another line, says neither where falls begin nor which there are. It
    is one of means: a GPU that waits between batches is busy off and on. They are over a third of what a drop lasts,
    and over MEANS_S: what scatters from one of the former to the next may last for an hour.
    """
    options = _options(context)
    if context.options.drop_percent <= options.drop_percent:
        return []
    fine_s = options.drop_seconds / LOW_READINGS
    long, short = (_beside_drops(context, options, each_s) for each_s in (max(MEANS_S, fine_s), fine_s))
    own = [*long, *(fall for fall in short if not any(_overlap(fall, each) for each in long))]
    own += [fall for fall in context.cached(_of_many_readings) if not any(_overlap(fall, each) for each in own)]
    return _unexplained(context, own)


def _around_drops(context: Context) -> list[Drop]:
    """Return the falls in which drops lie, and between these utilisation was low as well: they are one event.

    Where no epochs are known it may be a validation.
    """
    seconds = max(_many_readings_s(context), MEANS_S)
    falls = _unexplained(context, context.cached(_falls_of_means, _options(context), seconds))
    kept = [fall for fall in falls if _trains(context, fall) and _goes_beyond_drops(context, fall)]
    return [fall for fall in kept if not _ends_with_row(context, fall)]  # looks at all epochs


def _lasting(context: Context) -> list[Drop]:
    """Return the falls of LASTED_PERCENT or more that came and went, or made epochs longer, without callbacks.

    Where batches are counted, `slow_parts` tells of them; where training and validation look alike, nothing does.
    """
    falls = _long_falls(context, LASTED_PERCENT)
    longer = [fall for fall in falls if made_epochs_longer(context, fall)]
    gone = [fall for fall in _unexplained(context, falls) if _came_and_went(context, fall)]
    gone = [fall for fall in gone if not any(_overlap(fall, each) for each in longer)]
    found = [*longer, *(fall for fall in gone if not _is_of_epochs(context, fall))]
    return [
        each
        for each in found
        if each.duration_s >= th.SLOWDOWN_LASTS_S and not _is_of_drops(context, each, LASTED_PERCENT)
    ]


def _slight(context: Context) -> list[Drop]:
    """Return the falls of SLIGHT_PERCENT or more that made epochs longer: told where their cause is beyond doubt."""
    falls = [fall for fall in _long_falls(context, SLIGHT_PERCENT) if made_epochs_longer(context, fall)]
    return [
        each
        for each in falls
        if each.duration_s >= th.SLOWDOWN_LASTS_S and not _is_of_drops(context, each, SLIGHT_PERCENT)
    ]


def _long_falls(context: Context, percent: float) -> list[Drop]:
    """Return the falls of so much in a training without callbacks, each to its end."""
    if context.throughput is not None or context.too_coarse:
        return []
    seconds = _long_means_s(context)
    falls = _falls_of_means(context, replace(context.options, drop_percent=percent), seconds)
    return [fall for fall in to_their_ends(context, falls, seconds) if _is_beyond_scatter(context, fall, seconds)]


def _is_beyond_scatter(context: Context, fall: Drop, seconds: float) -> bool:
    """Tell whether a fall is far from the means of all training beside it: a GPU that waits has any at some time."""
    series = context.series_of(fall.gpu)
    trains = context.trains[context.series.index(series)]
    means, (in_training,) = in_blocks(series, seconds, trains)
    beside = in_training & ((means.t_s < fall.start_t_s) | (means.t_s >= fall.end_t_s))
    typical, far = tolerance(means.util_pct[beside].astype(float), 0.0, 0.0)
    return fall.mean_pct <= typical - far


def _came_and_went(context: Context, fall: Drop) -> bool:
    """Tell whether utilisation was about as before for SLOWDOWN_LASTS_S after a fall.

    One that ends with a row of results.csv may be a validation that readings did not tell from training, and any may
    be one where no epochs are known.
    """
    if not _trains(context, fall) or _ends_with_row(context, fall):
        return False
    series = context.series_of(fall.gpu)
    trains = context.trains[context.series.index(series)]
    after = series.between(fall.end_t_s, np.inf)
    seconds = series.weight_s[after] * trains[after]
    seconds = np.where(np.cumsum(seconds) <= th.SLOWDOWN_LASTS_S, seconds, 0.0)
    if seconds.sum() < th.SLOWDOWN_LASTS_S / 2:
        return False
    return float(np.average(series.util_pct[after], weights=seconds)) >= (fall.level_pct + fall.mean_pct) / 2


def _is_of_drops(context: Context, fall: Drop, percent: float) -> bool:
    """Tell whether one drop makes up so much of a fall that it is the event, or without drops there is no such fall.

    Where readings are coarse, means over many of them spread what a drop took.
    """
    pieces = _drops_in(context, fall)
    inside = [length_s(intersect([fall.span], [piece])) for piece in pieces]
    rest = minus([fall.span], union(pieces))
    if not pieces or max(inside) >= PIECES_SHARE * fall.duration_s or not rest:
        return bool(pieces)
    rest_pct, seconds = context.series_of(fall.gpu).mean_util_in(as_array(rest))
    return not seconds or rest_pct > (1 - percent / 100) * fall.level_pct


def _is_of_epochs(context: Context, fall: Drop) -> bool:
    """Tell whether a fall holds so many of many epochs that these stand out beside the others."""
    rows = [each.row for each in context.epoch_ends.all]
    held = sum(fall.start_t_s <= (row.start_t_s + row.row_t_s) / 2 < fall.end_t_s for row in rows)
    return held >= th.LASTING_EPOCHS and len(rows) - held >= OUTLIER_SIBLINGS


def _ends_with_row(context: Context, fall: Drop) -> bool:
    """Tell whether a fall within an epoch ends with its row, or with the checkpoint after it."""
    edge_s = context.epoch_ends.edge_s
    over = [each for each in context.epoch_ends.all if each.row.row_t_s - edge_s <= fall.end_t_s]
    if not over or fall.start_t_s <= over[-1].row.start_t_s:
        return False
    return fall.end_t_s - over[-1].row.row_t_s <= (over[-1].checkpoint_s or 0.0) + edge_s


def _trains(context: Context, fall: Drop) -> bool:
    return length_s(intersect([fall.span], context.all_train_spans)) > fall.duration_s / 2


def _goes_beyond_drops(context: Context, fall: Drop) -> bool:
    """Tell whether a fall has several drops, and is one without them as well, for longer than they took."""
    series = context.series_of(fall.gpu)
    pieces = _drops_in(context, fall)
    rest = minus([fall.span], union(pieces))
    rest_s = length_s(rest)
    if len(pieces) <= 1 or rest_s < fall.duration_s * (1 - PIECES_SHARE):
        return False
    mean_pct = sum((end - start) * series.mean_util_pct(start, end) for start, end in rest) / rest_s
    return mean_pct < _options(context).line_share * fall.level_pct


def _drops_in(context: Context, fall: Drop) -> list[Span]:
    return [drop.span for drop in context.cached(_drops)(*fall.span) if _overlap(fall, drop)]


def _drops(context: Context) -> IntervalIndex[Drop]:
    return IntervalIndex(context.drops, lambda drop: drop.span)


def _options(context: Context) -> Options:
    return replace(context.options, drop_percent=th.SLOWED_PERCENT)


def _unexplained(context: Context, falls: Sequence[Drop]) -> list[Drop]:
    """Return falls without the validations and checkpoints at their edges, and without those that are such."""
    options = _options(context)
    parts = drop_parts(context, falls, options.line_share, options.drop_seconds)
    return [part.drop for part in parts if not part.explained]


def _of_many_readings(context: Context) -> list[Drop]:
    """Return the falls of means over MEANS_OF readings, where MEANS_S have fewer."""
    seconds = _many_readings_s(context)
    return _beside_drops(context, _options(context), seconds) if seconds > MEANS_S else []


def _many_readings_s(context: Context) -> float:
    return MEANS_OF * max((series.interval_s for series in context.series), default=0.0)


def _long_means_s(context: Context) -> float:
    """Return over how many seconds means tell what lasts, at its level, for as long as a new state does."""
    return max(_many_readings_s(context), th.SLOWDOWN_LASTS_S / LOW_READINGS)


def _beside_drops(context: Context, options: Options, seconds: float) -> list[Drop]:
    near = IntervalIndex([*context.drops, *context.between_bursts], lambda drop: drop.span)
    falls = context.cached(_falls_of_means, options, seconds)
    beside = [fall for fall in falls if not any(_overlap(fall, drop) for drop in near(*fall.span))]
    by_chance = _by_chance(context, beside, options.line_share)
    return [fall for fall in beside if fall not in by_chance]


def _falls_of_means(context: Context, options: Options, seconds: float) -> list[Drop]:
    """Return the falls of means over so many seconds that last as long as a drop, and are no scatter."""
    found = [
        _with_edges(each, masks[1], fall, series.interval_s)
        for each, *masks in zip(context.series, context.usable, context.trains, strict=True)
        for series, (usable, trains) in [_of_training(each, seconds, *masks)]
        for fall in find_drops(series, usable, trains, options, later_starts(context.trainings, series.gpu))
        if _stands_out(series, trains, fall)
    ]
    return [fall for fall in found if fall.duration_s >= options.drop_seconds and _has_level(context, fall)]


def _has_level(context: Context, fall: Drop) -> bool:
    """Tell whether a training went on for as long as a level takes before a fall: its first batches lie ready."""
    begun_s = max((s for s in later_starts(context.trainings, fall.gpu) if s <= fall.start_t_s), default=-np.inf)
    return fall.start_t_s > context.cached(_level_since_s, fall.gpu, begun_s)


def _level_since_s(context: Context, gpu: int, begun_s: float) -> float:
    """Return the reading with which a training that began then had gone on for as long as a level takes.

    It is asked of each of thousands of falls, and lies near the beginning: what comes after is not looked at.
    """
    series = context.series_of(gpu)
    first, trains = series.between(begun_s, np.inf).start, context.trains[context.series.index(series)]
    seconds = 0.0
    for part in parts(len(trains) - first):
        rows = slice(first + part.start, first + part.stop)
        so_far = seconds + np.cumsum(series.weight_s[rows] * trains[rows])
        reached = int(np.searchsorted(so_far, LEVEL_AT_LEAST_S))
        if reached < len(so_far):
            return float(series.t_s[rows][reached])
        seconds = float(so_far[-1]) if len(so_far) else seconds
    return np.inf


def _by_chance(context: Context, falls: Sequence[Drop], line_share: float) -> set[Drop]:
    """Return the falls in which low readings, far apart, follow each other by chance, as they do of drops.

    Where most readings are 100 %, the few others scatter none of the means by their median. A fall as long as what
    would say how often a reading is low is none of chance.
    """
    stretches = max(sum(int(np.count_nonzero(trains)) for trains in context.trains) / (2 * CHANCE_READINGS), 1.0)
    return {
        fall
        for series, trains in zip(context.series, context.trains, strict=True)
        for short_s in [CHANCE_READINGS * series.interval_s]
        for mine in [[fall for fall in falls if fall.gpu == series.gpu and fall.duration_s < short_s]]
        for fall in drops_by_chance(series, trains, mine, line_share, stretches)
    }


def _of_training(series: GpuSeries, seconds: float, *masks: Bools) -> tuple[GpuSeries, list[Bools]]:
    """Return means over so many seconds, which of them are usable and which of training, and no others' values.

    For a validation holds the less of what training had before and after it: it makes no fall, and ends none.
    """
    means, (usable, trains) = in_blocks(series, seconds, *masks)
    at = np.flatnonzero(trains)
    if not len(at):
        return means, [usable, trains]
    so_far = np.cumsum(trains)
    around = [means.util_pct[at[np.clip(each, 0, len(at) - 1)]] for each in (so_far - 1, so_far - trains)]
    return replace(means, util_pct=np.minimum(*around)), [usable, trains]


def _stands_out(series: GpuSeries, trains: Bools, fall: Drop) -> bool:
    """Tell whether a fall is far from the means before it, by their spread: where a GPU waits, they scatter a lot."""
    edge_s = fall.start_t_s - series.interval_s  # the mean before may hold the beginning
    before = series.between(edge_s - max(SCATTERS_OVER_S, SCATTERS_OVER * series.interval_s), edge_s)
    means = series.util_pct[before][trains[before]].astype(float)
    if not len(means):
        return True
    typical, far = tolerance(means, 0.0, 0.0)
    return fall.mean_pct <= typical - far


def _with_edges(series: GpuSeries, trains: Bools, fall: Drop, within_s: float) -> Drop:
    """Return a fall from its first to its last reading: where these part best in two levels near the edges of means.

    Sums of what is over the middle of two known levels are highest where the first ends (least squares).
    """
    middle = (fall.level_pct + fall.mean_pct) / 2
    start_s = _change_point(series, trains, fall.start_t_s, within_s, lambda pct: pct - middle)
    end_s = _change_point(series, trains, fall.end_t_s, within_s, lambda pct: middle - pct)
    return replace(fall, start_t_s=start_s, end_t_s=end_s) if start_s < end_s else fall


def _change_point(
    series: GpuSeries, trains: Bools, t_s: float, within_s: float, over: Callable[[Percents], Percents]
) -> float:
    """Return where sums of `over` are highest near a time; that time itself where a validation is near."""
    near = series.between(t_s - within_s, t_s + within_s)
    if not trains[near].all() or near.stop - near.start <= 1:
        return t_s
    sums = np.concatenate([[0.0], np.cumsum(over(series.util_pct[near]) * series.weight_s[near])])
    ends = np.append(series.t_s[near], series.end_of(near.stop - 1))
    return float(ends[int(np.argmax(sums))])


def _overlap(fall: Drop, other: Drop | Finding) -> bool:
    """Tell whether a fall and something else of the same GPU overlap."""
    return fall.gpu == other.gpu and fall.start_t_s < other.end_t_s and other.start_t_s < fall.end_t_s


def _finding(context: Context, fall: Drop, least_confidence: float) -> Finding | None:
    """Return what a fall came to, None where its cause is not as sure as asked for."""
    whole = to_its_end(context, fall, _long_means_s(context))
    beside = context.cached(_beside, whole.span) if whole.duration_s >= th.SLOWDOWN_LASTS_S else context
    signals = beside.signals.of(fall.gpu, *fall.span)
    explained = explain(signals, fell=True, always=lasting_cause(context, fall.gpu, fall.start_t_s))
    if explained.cause.confidence < least_confidence:
        return None
    return context.finding(
        "slowdown",
        "warning",
        fall.span,
        f"{fall_words(gpu_words(fall.gpu), fall.level_pct, fall.mean_pct)} for {length(fall.duration_s)}",
        gpu=fall.gpu,
        level_pct=fall.level_pct,
        low_pct=fall.mean_pct,
        evidence=(*fall_evidence(context, fall), *explained.evidence),
        cause=explained.cause,
        kernel_events=tuple(signals.kernel),
        advice=explained.advice or _advice(context, signals, explained.cause),
    )


def _beside(context: Context, fall: Span) -> Context:
    """Return a run without a fall in its steady state: where it lasts for most of a training, it would be typical.

    So would what a fall begins: training that is as slow since then.
    """
    return context.without([fall])


def _advice(context: Context, signals: IntervalSignals, cause: Cause) -> tuple[Advice, ...]:
    """Return what to do about storage that kept up before, and in later epochs: a faster disk may not be what it takes.

    In the first epoch files come from the disk for the first time.
    """
    slower = cause.name == STORAGE and not signals.in_first_epoch
    return (advice_on_storage(signals),) if slower else of_first_reads(context, signals, cause)
