"""What became of a run, in one or two sentences: better, worse or the same, by how much, and what was changed."""

from collections.abc import Mapping, Sequence
from typing import Literal

from gpu_report.amounts import amount, change, interval, share_change
from gpu_report.analyse.compare_cores import SAME_EPOCH, Cores, cores_words, is_all
from gpu_report.analyse.compare_judge import NOISE
from gpu_report.analyse.compare_metrics import DATA_WAIT, EPOCH_TIME, METRICS, UTILISATION, WAIT_SHARE, WORK
from gpu_report.model import Difference, MetricComparison

Whole = Literal["better", "worse", "same", "mixed"]

WORDS: Mapping[Whole, str] = {
    "better": "Better",
    "worse": "Worse",
    "same": "The same",
    "mixed": "Better in part, worse in part",
}
AS_THE_CORES = {"better": "Faster, as are the cores", "worse": "Slower, as are the cores"}
ARGUMENTS_TOLD = 5
# Told with the epoch time or the cores, or another view of the same.
TOLD_APART = frozenset({EPOCH_TIME, "images_per_s", DATA_WAIT, *WORK})


def judgement_of(metrics: Sequence[MetricComparison]) -> Whole:
    """Return what a run comes to: by its epoch time where that changed, else by all else together."""
    judged = {metric.metric: metric.judgement for metric in metrics}
    time = judged.get(EPOCH_TIME)
    if time == "better":
        return "better"
    if time == "worse":
        return "worse"
    rest = {judgement for name, judgement in judged.items() if name != "first_epoch_time"} & {"better", "worse"}
    return "mixed" if len(rest) == 2 else rest.pop() if rest else "same"  # type: ignore[return-value]


def verdict_of(
    obstacles: Sequence[str],
    metrics: Sequence[MetricComparison],
    unlike: Sequence[Difference],
    cores: Cores | None,
    *,
    baselines: int,
) -> str:
    """Return the verdict of a comparison; with obstacles why there is none."""
    if obstacles:
        only_short = all(obstacle.startswith("Too little") for obstacle in obstacles)
        return f"{'Not comparable. ' if baselines and not only_short else ''}{'. '.join(obstacles)}."
    if not baselines:
        return _alone(metrics)
    whole = judgement_of(metrics)
    time = next((metric for metric in metrics if metric.metric == EPOCH_TIME), None)
    alone = cores is not None and is_all(cores, time)
    why = cores_words(cores, time) if cores else ""
    changed = "" if alone else _changed(unlike, metrics)
    sentences = [_headline(whole, metrics, as_the_cores=alone), why, _also(metrics), changed]
    return " ".join(sentence for sentence in sentences if sentence)


def _alone(metrics: Sequence[MetricComparison]) -> str:
    """Return a run's own figures, for gates without a baseline."""
    known = {metric.metric: metric for metric in metrics if metric.run is not None}
    if EPOCH_TIME not in known:
        return "No epoch of a training is known."
    beside = [known[name] for name in (UTILISATION, WAIT_SHARE) if name in known]
    told = [f"{METRICS[metric.metric].label} {amount(metric.run, metric.unit)}" for metric in beside]
    return "; ".join([f"An epoch trains in {amount(known[EPOCH_TIME].run, 's')}", *told]) + "."


def _headline(whole: Whole, metrics: Sequence[MetricComparison], *, as_the_cores: bool) -> str:
    """Return what became of the epoch time, which the whole goes by where it changed."""
    time = next((metric for metric in metrics if metric.metric == EPOCH_TIME), None)
    if time is None or time.change_share is None:
        return f"{WORDS[whole]}."
    values = f"{amount(time.run, 's')}, {amount(time.baseline, 's')} before"
    change_told, sure = share_change(time.change_share), f", 99 % interval {interval(time.interval_share)}"
    if time.judgement in {"better", "worse"}:
        word = AS_THE_CORES[whole] if as_the_cores else WORDS[whole]
        return f"{word}: an epoch trains in {values} ({change_told}{sure})."
    if time.note == NOISE:
        return f"No certain change in epoch time: {values} ({change_told}{sure})."
    start = "The same: an epoch" if whole == "same" else "Epochs are as fast as before: one"
    return f"{start} trains in {values} ({change_told})."


def _also(metrics: Sequence[MetricComparison]) -> str:
    """Return what else changed: with an epoch time that changed all together, else by what it comes to."""
    changed = [m for m in metrics if m.metric not in TOLD_APART and m.judgement in {"better", "worse", "changed"}]
    if any(m.metric == EPOCH_TIME and m.judgement in {"better", "worse"} for m in metrics):
        groups = [("Also", changed)]
    else:
        named = (("Worse", "worse"), ("Better", "better"), ("Also", "changed"))
        groups = [(word, [m for m in changed if m.judgement == judgement]) for word, judgement in named]
    return " ".join(f"{word}: {'; '.join(map(_told, some))}." for word, some in groups if some)


def _told(metric: MetricComparison) -> str:
    by = change(metric.change, "%") if metric.unit == "%" else share_change(metric.change_share)
    values = f"{amount(metric.baseline, metric.unit)} \u2192 {amount(metric.run, metric.unit)}"
    return f"{METRICS[metric.metric].label} {values} ({by})"


def _changed(unlike: Sequence[Difference], metrics: Sequence[MetricComparison]) -> str:
    """Return the changed arguments, the likely reason where the epoch time changed."""
    judged = {metric.metric: metric.judgement for metric in metrics}
    arguments = [d for d in unlike if d.kind == "argument" and d.name not in SAME_EPOCH]
    if not arguments:
        changed = any(judgement in {"better", "worse"} for judgement in judged.values())
        return "No argument of the training was changed." if changed else ""
    told = [f"{d.name} {d.baseline} \u2192 {d.run}" for d in sorted(arguments, key=_telling)[:ARGUMENTS_TOLD]]
    more = f" and {len(arguments) - len(told)} more" if len(arguments) > len(told) else ""
    likely = judged.get(EPOCH_TIME) in {"better", "worse"}
    return f"{'Likely reason, changed' if likely else 'Changed'}: {', '.join(told)}{more}."


def _telling(difference: Difference) -> tuple[bool, str]:
    """Return a key that puts the arguments first that most often decide how fast an epoch is."""
    return difference.name not in {"batch", "workers", "cache", "data", "amp", "fraction", "rect"}, difference.name
