"""The verdict of a comparison in a few sentences: what decided first, then what else changed, and what was set up so.

Worse comes before better, and what is certain before what cannot be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.metrics import DATA_WAIT, EPOCH_TIME, METRICS, UTILISATION, WAIT_SHARE, WORK
from gpu_report.analyse.compare.significance import NOISE
from gpu_report.analyse.compare.slower_host import SAME_EPOCH, HostSlowdown, is_all, is_in_band, slowdown_words
from gpu_report.model import Difference, GateResult, MetricComparison, Obstacle
from gpu_report.wording import amount, between, change, counted, interval, share_change

Whole = Literal["better", "worse", "same", "mixed"]

WORDS = {"better": "Better", "worse": "Worse"}
AS_THE_CORES = {True: "Slower, as are the cores", False: "Faster, as are the cores"}
ARGUMENTS_SHOWN = 5
# Told with the epoch time or the cores, or another view of the same.
SAID_APART = frozenset({EPOCH_TIME, "images_per_s", DATA_WAIT, *WORK})


@dataclass(frozen=True)
class Reasons:
    """What may have changed a run: its set-up, its cores, and what disturbed it.

    Of that there are sentences, empty where there is nothing to say: what the run as a whole took (`whole`), and that
    disturbances are the likely reason (`disturbances`).
    """

    unlike: Sequence[Difference]
    cores: HostSlowdown | None = None
    whole: str = ""
    disturbances: str = ""


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
) -> str:
    """Return the verdict of a comparison; with obstacles why there is none."""
    if obstacles:
        only_short = all(obstacle.kind == "too little data" for obstacle in obstacles)
        why = ". ".join(obstacle.text for obstacle in obstacles)
        return f"{'Not comparable. ' if baselines and not only_short else ''}{why}."
    if not baselines:
        return _alone(metrics)
    time = next((metric for metric in metrics if metric.metric == EPOCH_TIME), None)
    cores = reasons.cores
    alone = cores is not None and is_all(cores, time)
    why = slowdown_words(cores, time) if cores else ""
    changed = "" if alone else _changed(reasons, metrics)
    parts = [*_in_order(metrics, time, why, as_the_cores=alone), reasons.whole, changed]
    return " ".join(sentence for sentence in parts if sentence)


def _is_open(time: MetricComparison) -> bool:
    """Tell whether the epoch time changed in a way that nobody can tell from chance, or from the baselines' range."""
    return is_in_band(time) or _takes_more(time)


def _takes_more(time: MetricComparison) -> bool:
    """Tell whether a change that is worth a word takes more epochs to tell from chance."""
    return time.judgement == "unknown" and time.enough_epochs is not None


def failed_by_itself(gates: Sequence[GateResult]) -> str:
    """Return in a sentence what failed that is no change of a metric, such as an Xid; empty where nothing did.

    It comes before the verdict, which knows of changes alone.
    """
    failed = [result for result in gates if result.failed_by_itself]
    return f"Failed: {'; '.join(result.summary for result in failed)}." if failed else ""


def _in_order(
    metrics: Sequence[MetricComparison], time: MetricComparison | None, cores: str, *, as_the_cores: bool
) -> list[str]:
    """Return what changed: the epoch time first where that is certain or all there is, else what is certain."""
    groups = {
        judgement: "; ".join(_mention(m) for m in metrics if m.metric not in SAID_APART and m.judgement == judgement)
        for judgement in ("worse", "better", "changed")
    }
    decides = time is not None and (time.judgement in WORDS or as_the_cores)
    epochs = _epochs(time, as_the_cores=as_the_cores, is_first=decides or not (groups["worse"] or groups["better"]))
    words = {"worse": "Worse", "better": "Better", "changed": "Also changed"}
    if decides and time is not None and time.judgement in WORDS:
        words[time.judgement] = f"Also {time.judgement}"
    rest = {judgement: f"{words[judgement]}: {said}." if said else "" for judgement, said in groups.items()}
    if decides:
        return [epochs, cores, rest["worse"], rest["better"], rest["changed"]]
    return [rest["worse"], rest["better"], epochs, cores, rest["changed"]]


def _alone(metrics: Sequence[MetricComparison]) -> str:
    """Return a run's own figures, for gates without a baseline."""
    known = {metric.metric: metric for metric in metrics if metric.run is not None}
    if EPOCH_TIME not in known:
        return "No epoch of a training is known."
    others = [known[name] for name in (UTILISATION, WAIT_SHARE) if name in known]
    parts = [f"{METRICS[metric.metric].label} {amount(metric.run, metric.unit)}" for metric in others]
    return "; ".join([f"An epoch trains in {amount(known[EPOCH_TIME].run, 's')}", *parts]) + "."


def _epochs(time: MetricComparison | None, *, as_the_cores: bool, is_first: bool) -> str:
    """Return what became of the epoch time, in sentences that begin the verdict or go on with it."""
    if time is None or time.change_share is None:
        return "The same in all that is known." if is_first else ""
    before = f"in the median of {counted(len(time.each), 'baseline')}" if time.each else "before"
    values = f"{amount(time.run, 's')}, {amount(time.baseline, 's')} {before}"
    by = share_change(time.change_share)
    windows = f", by windows of {th.WINDOW_S:g} s" if time.basis == "windows" else ""
    sure = f"{values} ({by}, 99 % interval {interval(time.interval_share)}{windows})"
    slower = time.change_share > 0
    if as_the_cores:
        return f"{AS_THE_CORES[slower]}: an epoch trains in {sure}.{_differ(time, slower=slower)}"
    if time.judgement in WORDS:
        return f"{WORDS[time.judgement]}: an epoch trains in {sure}."
    if is_in_band(time):
        how = f"{'Slower' if slower else 'Faster'} than the median baseline"
        return f"{how}, but the baselines differ by as much: an epoch trains in {sure}.{_differ(time, slower=slower)}"
    if unsure := _unsure(time, sure):
        return unsure
    start = "The same: an epoch" if is_first else "Epochs are as fast as before: one"
    return f"{start} trains in {values} ({by}{windows})."


def _unsure(time: MetricComparison, sure: str) -> str:
    """Return a change that may be chance, with what would show it; empty where it is sure, or too small to matter."""
    if _takes_more(time):
        way = "slower" if (time.change or 0) > 0 else "faster"
        enough = f"About {time.enough_epochs} epochs of each run would show it"
        return f"Not enough data, but it points to {way}: an epoch trains in {sure}. {enough}."
    return f"No certain change in epoch time: {sure}." if time.note == NOISE else ""


def _differ(time: MetricComparison, *, slower: bool) -> str:
    """Return what several baselines took, and from where on one more like them would stand out; empty without a band.

    From the band's lower end on down nothing stands out where a run would have to train in no time at all.
    """
    if not is_in_band(time) or time.band is None:
        return ""
    low, high = time.band
    far = f"less than {amount(low, 's')}" if not slower else f"more than {amount(high, 's')}"
    until = (
        f"only {far} would be out of their range (95 %)" if slower or low > 0 else "no time would be out of their range"
    )
    return f" The baselines took {between((min(time.each), max(time.each)), 's')}: {until}."


def _mention(metric: MetricComparison) -> str:
    by = change(metric.change, "%") if metric.unit == "%" else share_change(metric.change_share)
    values = f"{amount(metric.baseline, metric.unit)} \u2192 {amount(metric.run, metric.unit)}"
    return f"{METRICS[metric.metric].label} {values} ({by})"


def _changed(reasons: Reasons, metrics: Sequence[MetricComparison]) -> str:
    """Return the likely reason where the epoch time changed: what disturbed a run, else changed arguments."""
    reason = reasons.disturbances
    judged = {metric.metric: metric.judgement for metric in metrics}
    arguments = [d for d in reasons.unlike if d.kind == "argument" and d.name not in SAME_EPOCH]
    if not arguments:
        changed = any(judgement in {"better", "worse"} for judgement in judged.values())
        return f"{reason} No argument of the training was changed.".strip() if changed or reason else ""
    parts = [f"{d.name} {d.baseline} \u2192 {d.run}" for d in sorted(arguments, key=_telling)[:ARGUMENTS_SHOWN]]
    more = f" and {len(arguments) - len(parts)} more" if len(arguments) > len(parts) else ""
    likely = judged.get(EPOCH_TIME) in {"better", "worse"}
    start = "Also changed" if reason else "Likely reason, changed" if likely else "Changed"
    return f"{reason} {start}: {', '.join(parts)}{more}.".strip()


def _telling(difference: Difference) -> tuple[bool, str]:
    """Return a key that puts the arguments first that most often decide how fast an epoch is."""
    return difference.name not in {"batch", "workers", "cache", "data", "amp", "fraction", "rect"}, difference.name
