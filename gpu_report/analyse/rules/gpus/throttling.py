"""Rule: power or heat held a GPU's clock down while it worked, and what that cost in clock."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import compared_with, evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.gpu.clock_fall import LOWER_CLOCK
from gpu_report.analyse.signals.gpu.clock_rows import COUNTERS, THERMAL
from gpu_report.analyse.signals.gpu.clock_throttling import counted_s
from gpu_report.analyse.signals.gpu.throttle import Throttle
from gpu_report.analyse.signals.host.other_processes import OtherProcess
from gpu_report.analyse.signals.thresholds import HOT_C
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, intersect, length_s, mask_in_any, union
from gpu_report.analyse.timeseries.rhythm import period_s
from gpu_report.gpu_words import gpu_words, gpus_words
from gpu_report.model import GPUS, Advice, Cause, Evidence, Finding, Gpu, Occurrence, Reference, recurring
from gpu_report.wording import every_so_often, length, lower_first

COUNTER_TEXTS = {
    "power_cap_s": "at the power limit, by the driver's counter (the clock may hardly fall)",
    "power_brake_s": "limited by an outside power signal, by the driver's counter",
    "sw_thermal_slowdown_s": "limited by the driver for heat, by its counter",
    "hw_thermal_slowdown_s": "limited by the board for heat, by its counter",
}
LAPTOP = "Laptop GPU"  # in the names that the driver gives to those
BRAKE = Advice(
    "Check the power supply and its cables: a signal from outside the GPU (power brake) says that it is overloaded. A "
    "server's management shows why",
    short="Check the power supply and its cables, which slowed the GPU (power brake)",
)


def throttling(context: Context) -> list[Finding]:
    """Report what held clocks down, one finding a GPU and cause: rules `power-cap`, `thermal` and `lower-clock`."""
    found = sorted(context.throttles, key=lambda throttle: (throttle.spans[0][0], throttle.gpu))
    return [_finding(context, throttle) for throttle in found]


def _finding(context: Context, throttle: Throttle) -> Finding:
    series = context.series_of(throttle.gpu)
    start_s, end_s = throttle.spans[0]
    others = _brought_by(context, throttle, series)
    return context.finding(
        throttle.cause,
        throttle.severity,
        _from_first_to_last(throttle),
        f"{_summary(throttle)}{_while(others)}{_waited(context, throttle)}",
        gpu=throttle.gpu,
        of_gpus="" if others else _summary(throttle, GPUS),
        evidence=_evidence(context, throttle, series),
        cause=_cause(throttle, others),
        advice=_advice(throttle, context.run.gpu(throttle.gpu)),
        kernel_events=tuple(context.signals.of(throttle.gpu, start_s, end_s).kernel),
        occurrences=_occurrences(context, throttle),
        lost_gpu_s=throttle.lost_s if throttle.lost.any() and not throttle.by_design else None,
    )


def _occurrences(context: Context, throttle: Throttle) -> tuple[Occurrence, ...]:
    """Return each time that a clock was held down, with its part of what all of it cost; of one time none."""
    t_s = context.series_of(throttle.gpu).samples["t_s"].to_numpy(dtype=float)
    lost = throttle.throttled_s * throttle.lost
    in_all = float(lost.sum())
    share = throttle.lost_s / in_all if in_all > 0 else 0.0
    return tuple(
        replace(one, lost_gpu_s=share * float(lost[mask_in_any(t_s, [one.span])].sum()))
        for one in recurring(sorted(throttle.spans), (throttle.gpu,))
    )


def _from_first_to_last(throttle: Throttle) -> Span:
    """Return from when to when a clock was held down again and again; its `spans` begin with the longest."""
    return min(start for start, _ in throttle.spans), max(end for _, end in throttle.spans)


def _advice(throttle: Throttle, gpu: Gpu) -> tuple[Advice, ...]:
    if throttle.brake:
        return (BRAKE,)
    if throttle.other_limit_w is not None:
        return (_on_lowered_limit(throttle, gpu),)
    if throttle.applied:
        short = "Reset the application clocks"
        how = "`nvidia-smi -rac`. Where they are locked, use `-rgc`. Somebody set them lower"
        return (Advice(f"{short}: {how}", short=short),)
    return ()


def _on_lowered_limit(throttle: Throttle, gpu: Gpu) -> Advice:
    """Return what to do about a limit that was lowered: of a laptop the battery or its power profile did that."""
    start_s = min(throttle.spans)[0]
    lowered = f"{_watts(throttle, gpu)}, {length(start_s)} into the recording"
    if LAPTOP in (gpu.name or ""):
        short = "Give the laptop its full power supply, or choose its performance profile"
        return Advice(
            f"{short}: on battery, on a weak charger, or to save power, it lowered the power limit {lowered}",
            short=short,
        )
    short = "Find what lowered the power limit"
    how = "`nvidia-smi -q -d POWER` shows the limit now; an administrator or a power manager of the machine sets it"
    return Advice(f"{short} {lowered}. {how}", short=short)


def _watts(throttle: Throttle, gpu: Gpu) -> str:
    """Return from which power limit to which it fell, in words."""
    return f"from {gpu.power_limit_w or 0.0:.0f} to about {throttle.other_limit_w or 0.0:.0f} W"


def _fell(throttle: Throttle) -> str:
    """Return from and to which clock, in words."""
    return f"from {throttle.typical_mhz:,.0f} to {(1 - throttle.cost_pct / 100) * throttle.typical_mhz:,.0f} MHz"


def _brought_by(context: Context, throttle: Throttle, series: GpuSeries) -> list[OtherProcess]:
    """Return the other processes that brought it about: nearly all of it came with them, but not all training."""
    t_s = series.samples["t_s"].to_numpy(dtype=float)
    there = [other for other in context.other_processes if other.gpu == throttle.gpu and other.worked]
    others = [other for other in there if throttle.throttled_s[mask_in_any(t_s, [other.span])].any()]
    stays = union([other.span for other in others])
    together_s = float(throttle.throttled_s[mask_in_any(t_s, stays)].sum())
    trained = context.train_spans(throttle.gpu)
    all_along = length_s(intersect(trained, stays)) >= th.THROTTLED_TOGETHER_SHARE * length_s(trained)
    nearly_all = together_s >= th.THROTTLED_TOGETHER_SHARE * float(throttle.throttled_s.sum())
    return others if nearly_all and not all_along else []


def _while(others: Sequence[OtherProcess]) -> str:
    """Return who worked beside the training while a GPU was held down, with a comma before it; empty for nobody."""
    return f", while {_names(others)} used it, too" if others else ""


def _waited(context: Context, throttle: Throttle) -> str:
    """Return which GPUs of its training waited for the only one that was held down, empty for none."""
    training = context.training_at(throttle.spans[0][0], throttle.gpu)
    if training is None or not training.steps_together or throttle.severity == "info" or not throttle.lost.any():
        return ""
    slowed = {each.gpu for each in context.throttles if each.severity != "info"}
    waited = sorted(set(training.gpus) - slowed)
    return f"; {gpus_words(waited)} waited for it" if len(waited) == len(training.gpus) - 1 else ""


def _names(others: Sequence[OtherProcess]) -> str:
    return others[0].who if len(others) == 1 else f"{len(others)} other processes"


def _cause(throttle: Throttle, others: Sequence[OtherProcess]) -> Cause:
    """Return the cause; what another process brought about is its consequence."""
    why = f"; it began and ended with {_names(others)}" if others else ""
    return Cause(throttle.cause, STRONG, f"{_explanation(throttle)}{why}")


def _summary(throttle: Throttle, gpus: str = "") -> str:
    """Return what held a clock down, of its GPU or, with their names, of several."""
    often = every_so_often(period_s([start for start, _ in throttle.spans]))
    in_all = f", {len(throttle.spans)} times{often}" if often else ""
    for_s, which = f"{length(float(throttle.throttled_s.sum()))}{in_all}", gpus or gpu_words(throttle.gpu)
    were, its = ("were", "their") if gpus else ("was", "its")
    if not throttle.lost.any():
        return f"{which} {were} at {HOT_C:.0f} °C or more for {for_s}, without a lower clock so far"
    if throttle.by_design:
        clock = (1 - throttle.cost_pct / 100) * throttle.typical_mhz
        return f"{which} ran at {its} own power limit for {for_s} ({clock:,.0f} MHz): {its} full speed"
    clock = (1 - throttle.cost_pct / 100) * throttle.typical_mhz
    if throttle.cause == LOWER_CLOCK and not throttle.applied:
        return f"The SM clock of {which} fell {_fell(throttle)} for {for_s}"
    most = "at most " if throttle.unseen else ""
    slower = f"to {clock:,.0f} MHz instead of {most}{throttle.typical_mhz:,.0f}"
    return f"{_how(throttle, which)} {slower} for {for_s}"


def _how(throttle: Throttle, what: str) -> str:
    if throttle.cause == THERMAL:
        return f"Heat slowed {what}"
    if throttle.applied:
        return f"Application clocks slowed {what}"
    if throttle.brake:
        return f"An outside power signal (power brake) slowed {what}"
    if throttle.other_limit_w is not None:
        return f"A power limit that was lowered to about {throttle.other_limit_w:.0f} W slowed {what}"
    return f"The power limit slowed {what}"


def _explanation(throttle: Throttle) -> str:
    if not throttle.lost.any():
        return f"it was at {HOT_C:.0f} °C or more, where GPUs begin to slow down"
    if throttle.by_design:
        return "the GPU draws all the power it is made for; only less work per image would make it faster"
    if throttle.cause == LOWER_CLOCK and not throttle.applied:
        why = "; heavier work may lower it, too" if throttle.unsure else ""
        return f"its clock was {throttle.cost_pct:.0f} % lower, though it was as busy; no reason is recorded{why}"
    if throttle.heat_onset_c is not None:
        from_on = f"only at {throttle.heat_onset_c:.0f} °C or more, while the GPU drew less power"
        return f"its clock fell by {throttle.cost_pct:.0f} %, {from_on}; the log has no reasons"
    typical = "typical" if throttle.alike else "what it reaches under less load"
    if throttle.unseen:
        typical = "the highest of this card, which was never reached here"
    return lower_first(f"{_how(throttle, 'the clock')} by {throttle.cost_pct:.0f} %, compared with {typical}")


def _evidence(context: Context, throttle: Throttle, series: GpuSeries) -> tuple[Evidence, ...]:
    throttled, whole = throttle.throttled_s > 0, _from_first_to_last(throttle)
    counted = [
        (COUNTER_TEXTS[name], counted_s(series.samples, name, whole) or None, "s")
        for name in COUNTERS.get(throttle.cause, ())
    ]
    return evidence(
        ("of the time in which the GPU worked, slowed", 100 * throttle.share, "%"),
        *counted,
        ("SM clock meanwhile (mean)", _mean(series, "sm_clock_mhz", throttle.throttled_s), "MHz"),
        compared_with(_reference(throttle), throttle.typical_mhz, "MHz"),
        ("clock lost", throttle.cost_pct, "%"),
        ("time of work lost, at most", throttle.lost_s, "s"),
        ("power meanwhile (mean)", _mean(series, "power_w", throttle.throttled_s), "W"),
        compared_with("limit", context.run.gpu(throttle.gpu).power_limit_w, "W"),
        ("temperature at most", _highest(series, "temperature_c", throttled), "°C"),
        ("memory temperature at most", _highest(series, "memory_temperature_c", throttled), "°C"),
    )


def _reference(throttle: Throttle) -> Reference:
    return "highest" if throttle.unseen else "typical" if throttle.alike else "under less load"


def _mean(series: GpuSeries, name: str, weights: Floats) -> float | None:
    values = series.samples[name].to_numpy(dtype=float)
    known = np.isfinite(values) & (weights > 0)
    return float(np.average(values[known], weights=weights[known])) if known.any() else None


def _highest(series: GpuSeries, name: str, throttled: Bools) -> float | None:
    values = series.samples[name].to_numpy(dtype=float)[throttled]
    return float(np.nanmax(values)) if np.isfinite(values).any() else None
