"""Rule: a GPU reads as busy, and nobody is on it and it draws no power: the reading is not to be believed."""

import numpy as np

from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeline.process_samples import process_samples_of, samples_by_pid
from gpu_report.analyse.timeline.thresholds import PROCESSES_EVERY_S
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, rows_before, union
from gpu_report.analyse.timeseries.low_stretches import low_stretches
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Cause, Finding, Interval, Run
from gpu_report.wording import length

WHY = (
    "no process was on it, and it drew only idle power. Some drivers report this after a process was killed in the "
    "middle of a kernel, until the GPU is reset"
)


def readings_not_credible(context: Context) -> list[Finding]:
    """Report where a GPU without any process read IMPLAUSIBLE_PCT or more at idle power for IMPLAUSIBLE_S.

    Only where processes were recorded and could be read on this GPU. One that is cut into MIG devices is left out: its
    processes are theirs.
    """
    all_series = [t for t in context.series if t.gpu not in context.cut_gpus and _processes_known(context.run, t.gpu)]
    found = [interval for series in all_series for interval in _stuck(context.run, series)]
    return [_finding(context, interval) for interval in found]


def _processes_known(run: Run, gpu: int) -> bool:
    """Tell whether the processes of a GPU were looked at all along.

    A list that never named anybody anywhere may be that of a container, which sees no process at all.
    """
    failed = [e for e in run.events if e.kind == "nvml_error" and e.fields.get("quantity") == "processes"]
    return len(run.processes) > 0 and all(event.gpu not in {gpu, None} for event in failed)


def _stuck(run: Run, series: GpuSeries) -> list[Interval]:
    """Return where a GPU read as busy at idle power with nobody on it."""
    limit_w = run.gpu(series.gpu).power_limit_w
    alone = np.ones(len(series.t_s), dtype=bool)
    for start, end in _presence(run, series):
        alone[series.between(start, end)] = False
    stuck = alone & (series.util_pct >= th.IMPLAUSIBLE_PCT)
    if not stuck.any():
        return []
    stuck &= _without_work(series, limit_w)
    spans = [(float(series.t_s[a]), series.end_of(b - 1)) for a, b in low_stretches(series, stuck, alone)]
    return [
        Interval(series.gpu, start, end, series.mean_util_pct(start, end))
        for start, end in spans
        if end - start >= th.IMPLAUSIBLE_S
    ]


def _presence(run: Run, series: GpuSeries) -> list[Span]:
    """Return when anybody was on a GPU, from up to one look before the process was seen."""
    spans = []
    for looks in samples_by_pid(process_samples_of(run, series.gpu)).values():
        since_s = looks[0].t_s - PROCESSES_EVERY_S - series.tick_s
        spans.append((since_s, looks[-1].t_s if looks[-1].change == "gone" else run.duration_s))
    return union(spans)


def _without_work(series: GpuSeries, limit_w: float | None) -> Bools:
    """Return at which readings the GPU's power is that of doing nothing; nowhere where power is not known."""
    power, t_s = series.samples["power_w"].to_numpy(dtype=float), series.samples["t_s"].to_numpy(dtype=float)
    known = np.isfinite(power)
    if not known.any():
        return np.zeros(len(series.t_s), dtype=bool)
    power, t_s = power[known], t_s[known]
    at_power: Floats = power[np.minimum(rows_before(t_s, series.t_s), len(power) - 1)]
    line_w = th.NO_WORK_POWER_SHARE * limit_w if limit_w else 0.0
    if power.max() >= th.NO_WORK_POWER_RANGE * power.min():
        line_w = max(line_w, th.NO_WORK_POWER_FACTOR * float(power.min()))
    return at_power <= line_w


def _finding(context: Context, interval: Interval) -> Finding:
    signals = context.signals.of(interval.gpu, *interval.span)
    gpu = context.run.gpu(interval.gpu)
    return context.finding(
        "not-credible",
        "warning",
        interval.span,
        f"{gpu_words(interval.gpu)} showed {interval.mean_pct:.0f} % for {length(interval.duration_s)} with no process "
        "on it: the reading is implausible",
        gpu=interval.gpu,
        evidence=evidence(
            ("utilisation shown (mean)", interval.mean_pct, "%"),
            ("power meanwhile", signals.gpu_within("power_w"), "W"),
            ("its limit", gpu.power_limit_w, "W"),
            ("SM activity meanwhile", signals.gpu_within("sm_active_pct"), "%"),
        ),
        cause=Cause("not-credible", STRONG, WHY),
        kernel_events=tuple(signals.kernel),
    )
