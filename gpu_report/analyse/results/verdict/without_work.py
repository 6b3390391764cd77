"""The verdict's words where no GPU was seen to work in training: on what it waited, or that nothing is known of it."""

from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.timeline.activity import outside
from gpu_report.analyse.timeline.thresholds import LEVEL_AT_LEAST_S, LOW_PCT
from gpu_report.model import WELL_COVERED
from gpu_report.wording import counted, length

BOUND_WORDS = {
    "launch": ": launch-bound, the CPU is the limit",
    "gpu": ": GPU-bound, the CPU is ahead of it",
    "data": ": most of the rest waits for data",
    "exchange": ": most of the rest waits for gradient synchronisation",
}
HARDLY_WAITED = 0.01  # of its time (0 to 1): 0 % would be no news


def without_work(context: Context, unseen: float) -> str:
    """Return what is known, in a sentence, empty where there is nothing to say.

    `unseen` is the share (0 to 1) of the time that was not measured.
    """
    return _reported_work(context) or _no_work(context, unseen)


def data_wait_share(context: Context) -> float | None:
    """Return the share (0 to 1) of the train phases that waited for data, None where callbacks did not tell."""
    spans = context.all_train_spans
    return context.throughput.data_wait_share(spans) if context.throughput and spans else None


def _reported_work(context: Context) -> str:
    """Return what callbacks reported of a training on GPUs that report no utilisation, empty where that is not so."""
    waited = data_wait_share(context)
    if waited is None or any(len(series.t_s) for series in context.series):
        return ""
    unread = "; the GPU reports no utilisation" if context.run.gpus else ""
    if waited < HARDLY_WAITED:
        return f"The training hardly waited for data{unread}."
    return f"The training waited for data {100 * waited:.0f} % of its time{unread}."


def _in_profiled_steps(context: Context) -> str:
    """Return what PyTorch's profiler saw of steps, empty where it saw none: an imported trace may be all there is."""
    steps = next((each.steps for each in context.profiled if each.steps.worked_s is not None), None)
    if steps is None or steps.worked_s is None or not steps.step_s:
        return ""
    bound = BOUND_WORDS.get(steps.launches.bound, "")
    worked_pct = 100 * steps.worked_s / steps.step_s
    return f"The GPU worked {worked_pct:.0f} % of {counted(len(steps.used_steps), 'profiled step')}{bound}."


def _no_work(context: Context, unseen: float) -> str:
    """Return that no GPU worked, where that is known: of a few readings, or none of utilisation, it is not.

    Nor is it of the share of the time that was not measured (`unseen`, 0 to 1): an idle beginning tells of itself.
    """
    readings = sum(len(series.t_s) for series in context.series)
    if not context.run.gpus:
        return ""
    if not readings:
        return _in_profiled_steps(context) or "Unknown whether a GPU worked: its utilisation was never read."
    longest_s = max(float(series.weight_s.sum()) for series in context.series)
    busiest = max(float(series.util_pct.max()) for series in context.series if len(series.t_s))
    is_whole = unseen <= 1 - WELL_COVERED
    if longest_s < LEVEL_AT_LEAST_S and (busiest >= LOW_PCT or not is_whole):
        held = f"{counted(readings, 'reading')} in {length(longest_s)}, {busiest:.0f} % at most"
        return f"Too little was recorded to say whether a GPU worked: {held}."
    none = "The training used no GPU" if context.gpus_of_others else "No GPU worked"
    if not is_whole:
        return f"{none} in the {length(longest_s)} that were measured."
    return (
        "The GPU worked only during start-up."
        if _worked_at_start(context)
        else _little_work(context) or f"{none} during this recording."
    )


def _little_work(context: Context) -> str:
    """Return how little the GPUs did that were not others' alone, empty for nothing: one step that crashed is some."""
    read = (series for series in context.series if len(series.t_s) and series.gpu not in context.gpus_of_others)
    most_pct = max((float(series.util_pct.max()) for series in read), default=0.0)
    if most_pct >= th.HARDLY_PCT:
        return f"The GPU hardly worked: it was {most_pct:.0f} % busy at most."
    return ""


def _worked_at_start(context: Context) -> bool:
    """Tell whether a GPU of the training worked in its start-up, as in a first batch that was never done."""
    mine = [series for series in context.used_series if len(series.t_s)]
    return any(
        float(series.util_pct[~outside(series, context.activity.startups)].max(initial=0)) >= LOW_PCT for series in mine
    )
