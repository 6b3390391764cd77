"""The verdict of a comparison in a few sentences: what decided first, then what else changed, and what was set up so.

Worse comes before better, and what is certain before what is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpu_report.analyse.compare.comparability import barring
from gpu_report.analyse.compare.epoch_cause import CERTAIN, because
from gpu_report.analyse.compare.metrics import DATA_WAIT, EPOCH_TIME, METRICS, UTILISATION, WAIT_SHARE, WORK, name_of
from gpu_report.analyse.compare.slower_host import (
    SAME_EPOCH,
    HostSlowdown,
    is_explained_by_cores,
    is_in_band,
    slowdown_words,
)
from gpu_report.model import Difference, EpochCause, GateResult, MetricComparison, Obstacle
from gpu_report.wording import amount, between, brief_seconds, counted, speed_change, upper_first

Whole = Literal["better", "worse", "same", "mixed"]

AS_THE_CORES = {True: "because the machine was slower", False: "because the machine was faster"}
ARGUMENTS_SHOWN = 5  # the table of differences has all of them
METRICS_SHOWN = 3  # the table has all of them
# Said with the epoch time or the cores, or another view of the same.
SAID_APART = frozenset({EPOCH_TIME, "images_per_s", DATA_WAIT, *WORK})


@dataclass(frozen=True)
class Reasons:
    """What may have changed a run: its set-up, its cores, and what disturbed it.

    Of that there are sentences, empty where there is nothing to say: what the run as a whole took (`whole`), and that
    disturbances are the likely reason (`disturbances`). `cause` is the part of an epoch that changed.
    """

    unlike: Sequence[Difference]
    cores: HostSlowdown | None = None
    whole: str = ""
    disturbances: str = ""
    cause: EpochCause | None = None


def judgement_of(metrics: Sequence[MetricComparison]) -> Whole | None:
    """Return what a run comes to: by its epoch time where that changed, else by all else together.

    None where the epoch time changed by no more than the baselines differ by, or takes more epochs to tell, and nothing
    else is certain.
    """
    judged = {metric.metric: metric.judgement for metric in metrics}
    time = judged.get(EPOCH_TIME)
    if time == "better":
        return "better"
    if time == "worse":
        return "worse"
    rest = {judgement for name, judgement in judged.items() if name != "first_epoch_time"} & {"better", "worse"}
    if not rest and any(metric.metric == EPOCH_TIME and _is_open(metric) for metric in metrics):
        return None
    return "mixed" if len(rest) == 2 else rest.pop() if rest else "same"  # type: ignore[return-value]


def verdict_of(
    obstacles: Sequence[Obstacle],
    metrics: Sequence[MetricComparison],
    reasons: Reasons,
    *,
    baselines: int,
    gates: Sequence[GateResult] = (),
) -> str:
    """Return the verdict of a comparison: how a run was cut short, what failed besides metrics, and what these became.

    With obstacles it says in place of that why it is unknown.
    """
    barred = barring(obstacles)
    cut_short = [f"{each.text}." for each in obstacles if each not in barred]
    untold = [result for result in gates if not (cut_short and result.of_ending)]
    failed = fails_without_metric(untold, "" if cut_short else "Failed: ")
    became = _barred(barred, metrics, reasons, baselines) if barred else _of_metrics(metrics, reasons, baselines)
    return " ".join(filter(None, (*cut_short, failed, became)))


def _barred(barred: Sequence[Obstacle], metrics: Sequence[MetricComparison], reasons: Reasons, baselines: int) -> str:
    """Return why nothing can be said of the metrics, and which way the epoch time went where too few epochs say so."""
    only_short = all(obstacle.kind == "too little data" for obstacle in barred)
    if baselines and only_short and (way := _although_short(metrics)):
        changed = settings_words([each for each in reasons.unlike if each.name not in SAME_EPOCH], likely=False)
        return f"{way}: {barred[0].particulars}. {changed}".strip()
    why = ". ".join(obstacle.text for obstacle in barred)
    return f"{'Not comparable. ' if baselines and not only_short else ''}{why}."


def _of_metrics(metrics: Sequence[MetricComparison], reasons: Reasons, baselines: int) -> str:
    """Return what became of the metrics since the baselines, without one what they are."""
    if not baselines:
        return _alone(metrics)
    time = next((metric for metric in metrics if metric.metric == EPOCH_TIME), None)
    cores = reasons.cores
    alone = cores is not None and is_explained_by_cores(cores, time)
    why = slowdown_words(cores, time) if cores else ""
    changed = "" if alone else _changed(reasons, metrics)
    parts = [*_in_order(metrics, time, why, reasons.cause, as_the_cores=alone), reasons.whole, changed]
    return " ".join(sentence for sentence in parts if sentence)


def _although_short(metrics: Sequence[MetricComparison]) -> str:
    """Return which way the epoch time went although too few epochs say so; empty where it is not known."""
    time = next((metric for metric in metrics if metric.metric == EPOCH_TIME), None)
    if time is None or time.change_share is None:
        return ""
    return f"{_values(time)}, but too few epochs to decide"


def _is_open(time: MetricComparison) -> bool:
    """Tell whether the epoch time changed in a way that may be chance, or the baselines' own range."""
    return is_in_band(time) or _takes_more(time)


def _takes_more(time: MetricComparison) -> bool:
    """Tell whether a change that is worth a word takes more epochs to tell from chance."""
    return time.judgement == "unknown" and time.enough is not None


def fails_without_metric(gates: Sequence[GateResult], lead: str = "Failed: ") -> str:
    """Return in a sentence what failed that is no change of a metric, such as an Xid; empty where nothing did.

    It comes before the verdict, which knows of changes alone.
    """
    failed = "; ".join(result.summary for result in gates if result.fails_without_metric)
    return upper_first(f"{lead}{failed}.") if failed else ""


def _in_order(
    metrics: Sequence[MetricComparison],
    time: MetricComparison | None,
    cores: str,
    cause: EpochCause | None,
    *,
    as_the_cores: bool,
) -> list[str]:
    """Return what changed: the epoch time first where that is certain or all there is, else what is certain."""
    apart = {WAIT_SHARE} if cause is not None and cause.kind == "data loading" else set()  # said with the epoch time
    mentioned = [metric for metric in metrics if metric.metric not in SAID_APART | apart]
    groups = {judgement: mentions(mentioned, judgement) for judgement in ("worse", "better", "changed")}
    decides = time is not None and (time.judgement in CERTAIN or as_the_cores)
    epochs = _epochs(
        time, cause, as_the_cores=as_the_cores, is_first=decides or not (groups["worse"] or groups["better"])
    )
    words = {"worse": "Worse", "better": "Better", "changed": "Also changed"}
    if decides and time is not None and time.judgement in CERTAIN:
        words[time.judgement] = f"Also {time.judgement}"
    rest = {judgement: f"{words[judgement]}: {said}." if said else "" for judgement, said in groups.items()}
    if decides:
        return [epochs, cores, rest["worse"], rest["better"], rest["changed"]]
    return [rest["worse"], rest["better"], epochs, cores, rest["changed"]]


def _alone(metrics: Sequence[MetricComparison]) -> str:
    """Return a run's own figures, for gates without a baseline."""
    known = {metric.metric: metric for metric in metrics if metric.run is not None}
    if EPOCH_TIME not in known:
        return "No training epoch after warm-up is known."
    others = [known[name] for name in (UTILISATION, WAIT_SHARE) if name in known]
    parts = [f"{METRICS[metric.metric].label} {amount(metric.run, metric.unit)}" for metric in others]
    return ", ".join([f"Training per epoch {brief_seconds(known[EPOCH_TIME].run)}", *parts]) + "."


def _epochs(time: MetricComparison | None, cause: EpochCause | None, *, as_the_cores: bool, is_first: bool) -> str:
    """Return what became of the epoch time, in sentences that begin the verdict or go on with it."""
    if time is None or time.change_share is None:
        return "No change in anything that is known." if is_first else ""
    slower = time.change_share > 0
    if as_the_cores:
        return f"{_values(time)}, {AS_THE_CORES[slower]}.{_differ(time, slower=slower)}"
    if time.judgement in CERTAIN:
        return f"{_values(time)}{because(cause, slower=slower)}"
    if is_in_band(time):
        return f"{_values(time)}, but the baselines differ by as much.{_differ(time, slower=slower)}"
    return _unsure(time) or f"{'No change: training' if is_first else 'Training'} per epoch {_from_to(time)}."


def _unsure(time: MetricComparison) -> str:
    """Return a change that may be chance, with what would show it; empty where it is sure, or too small to matter."""
    if _takes_more(time):
        enough = f"About {time.enough} epochs of each run would be enough"
        return f"{_values(time)}, but there are too few epochs to be sure. {enough}."
    return f"{_values(time)}, but that is within the noise: no certain change." if time.in_noise else ""


def _values(time: MetricComparison) -> str:
    """Return from what to what the epoch time changed, and by how much."""
    return f"Training per epoch {_from_to(time)} ({speed_change(time.change_share or 0.0)})"


def _from_to(time: MetricComparison) -> str:
    several = f" (median of {counted(len(time.each), 'baseline')})" if time.each else ""
    is_short = all(each is not None and each < 1 for each in (time.baseline, time.run))  # tenths are too coarse then
    before, after = (amount(each, "s") if is_short else brief_seconds(each) for each in (time.baseline, time.run))
    return f"{before}{several} \u2192 {after}"


def _differ(time: MetricComparison, *, slower: bool) -> str:
    """Return what several baselines took, and from where on one more like them would stand out; empty without a band.

    From the band's lower end on down nothing stands out where a run would have to train in no time at all.
    """
    if not is_in_band(time) or time.band is None:
        return ""
    low, high = time.band
    far = f"less than {brief_seconds(low)}" if not slower else f"more than {brief_seconds(high)}"
    until = f"only {far} would stand out (95 %)" if slower or low > 0 else "no time would stand out"
    return f" The baselines took {between((min(time.each), max(time.each)), 's')}: {until}."


def mentions(metrics: Sequence[MetricComparison], judgement: str) -> str:
    """Return the metrics of a judgement in a line, and how many more there are than anybody reads."""
    named = [_mention(metric) for metric in metrics if metric.judgement == judgement]
    more = len(named) - METRICS_SHOWN
    return ", ".join([*named[:METRICS_SHOWN], *([f"{more} more"] if more > 0 else [])])


def _mention(metric: MetricComparison) -> str:
    values = f"{amount(metric.baseline, metric.unit)} \u2192 {amount(metric.run, metric.unit)}"
    return f"{name_of(metric)} {values}"


def _changed(reasons: Reasons, metrics: Sequence[MetricComparison]) -> str:
    """Return the likely reason where the epoch time changed: what disturbed a run, else changed arguments."""
    reason = reasons.disturbances
    judged = {metric.metric: metric.judgement for metric in metrics}
    told = [d for d in reasons.unlike if d.name not in SAME_EPOCH]
    likely = judged.get(EPOCH_TIME) in {"better", "worse"}
    said = settings_words(told, likely=likely, beside=bool(reason))
    changed = any(judgement in {"better", "worse"} for judgement in judged.values())
    if not said and (changed or reason):
        said = "No training argument was changed."
    return f"{reason} {said}".strip()


def settings_words(unlike: Sequence[Difference], *, likely: bool, beside: bool = False) -> str:
    """Return which arguments were changed, as the likely reason or `beside` another one; empty where none was."""
    arguments = [d for d in unlike if d.kind == "argument"]
    if not arguments:
        return ""
    parts = [
        f"{d.name} {d.baseline} \u2192 {d.run}" for d in sorted(arguments, key=_by_influence_on_speed)[:ARGUMENTS_SHOWN]
    ]
    more = f" and {len(arguments) - len(parts)} more" if len(arguments) > len(parts) else ""
    start = "Also changed" if beside else "Likely reason" if likely else "Changed"
    return f"{start}: {', '.join(parts)}{more}."


def _by_influence_on_speed(difference: Difference) -> tuple[bool, str]:
    """Return a key that puts the arguments first that most often decide how fast an epoch is."""
    return difference.name not in {"batch", "workers", "cache", "data", "amp", "fraction", "rect"}, difference.name
