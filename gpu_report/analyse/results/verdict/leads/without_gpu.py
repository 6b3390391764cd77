"""The verdict's words on a training on the CPU, or of which no GPU's utilisation is known, as on a MIG device."""

from collections.abc import Iterator, Sequence

from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.verdict.leads.lead import LOOK, Lead, seconds_trained
from gpu_report.analyse.timeline.device_argument import CPU
from gpu_report.analyse.timeseries.columns import column_values
from gpu_report.analyse.timeseries.intervals import Span, length_s, union
from gpu_report.model import Frame, Sentence


def no_utilisation(context: Context) -> bool:
    """Tell whether something trained, and no GPU's utilisation was read meanwhile."""
    return bool(_trained(context)) and not any(len(series.t_s) for series in context.series)


def _longest_call(context: Context) -> tuple[Frame | None, float]:
    """Return the function of the user's that took most of a training's time, and its share of it, 0 to 1."""
    spans = _trained(context)
    call, seconds = context.signals.longest_call(None, spans)
    return call, seconds / length_s(spans)


def others_on_cpu(context: Context) -> Iterator[Lead]:
    """Yield that other programs took most of the cores of a training on the CPU, which then has no others to use."""
    recording, used = context.run.recording, _cores_used(context)
    cores = recording.usable_cores
    if used is None or not cores or (recording.cores_online or cores) != cores:
        return
    ours, others = used
    if others >= th.OTHERS_MOST_CORES * cores and ours + others >= th.ALL_CORES * cores:
        text = f"Keep other programs off the CPU: they used {others:.1f} of {cores:g} cores."
        _, own = _longest_call(context)  # what is spent there is its own: it may well sleep
        saves_s = others / cores * (1 - own) * seconds_trained(context)
        yield Lead(Sentence(LOOK, text), saves_s, names_others_on_cpu=True)


def on_cpu(context: Context, *, others_said: bool, cpu_said: bool) -> Iterator[Sentence]:
    """Yield how many cores a training on the CPU used, and who used the others.

    What leads may have said that (`others_said`), or that it was on the CPU (`cpu_said`).
    """
    recording, used = context.run.recording, _cores_used(context)
    cores = recording.usable_cores
    asked = f", as `device={CPU}` asks" if context.run.gpus and _asked_for_cpu(context) else ""
    if asked and used is None:
        yield Sentence("work", f"The training ran on the CPU{asked}.")
    if used is None or not cores:
        return
    ours, others = used
    ran = "The training" if cpu_said else f"The training ran on the CPU{asked}: it"
    yield Sentence("work", f"{ran} used {ours:.1f} of {cores:g} cores.")
    online = recording.cores_online or cores
    felt = others >= online - cores + th.OTHERS_CORES_SHARE * cores  # on more than those that the training may not use
    if felt and not others_said:
        yield Sentence("work", f"Other programs used {others:.1f} cores meanwhile.")


def _cores_used(context: Context) -> tuple[float, float] | None:
    """Return how many cores a training on the CPU used, and how many other programs; None of any other training."""
    recording, spans = context.run.recording, _trained(context)
    cores = recording.usable_cores
    is_on_cpu = _asked_for_cpu(context) if context.run.gpus else no_utilisation(context)
    if not cores or not is_on_cpu:
        return None
    every, main, workers = (_mean(context, name, spans) for name in ("cpu_pct", "main_cpu_pct", "workers_cpu_pct"))
    if main is None:
        return None
    ours = (main + (workers or 0.0)) / 100
    return ours, 0.0 if every is None else every / 100 * (recording.cores_online or cores) - ours


def _asked_for_cpu(context: Context) -> bool:
    """Tell whether all trainings were on the CPU, and asked for it: of others the setup says why they were."""
    return bool(_trained(context)) and all(each.device == each.args.get("device") == CPU for each in context.trainings)


def _trained(context: Context) -> list[Span]:
    return union(context.all_train_spans)


def _mean(context: Context, name: str, spans: Sequence[Span]) -> float | None:
    values = column_values(context.run.host, name, spans)
    return float(values.mean()) if len(values) else None
