"""The windows of PyTorch's profiler: what each trace shows, beside how long a step takes without the profiler."""

from dataclasses import replace
from statistics import median

from gpu_report.analyse.signals.code.sync_lines import sync_lines
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.trace import analyse_trace
from gpu_report.model import InsideEpoch, InsideRun, ProfiledSteps, ProfilerWindow, Run


def profiled_steps(run: Run) -> tuple[ProfiledSteps, ...]:
    """Return each window that has a trace with a step in it, in order of time."""
    found = [_of_window(run, inside, window) for inside in run.inside for window in inside.profiled]
    found += [_of_window(run, None, window) for window in run.imported_windows]
    known = {each.window.name: each for each in found if each is not None and each.steps.used_steps}
    return tuple(sorted(known.values(), key=lambda each: each.window.start_t_s))


def _of_window(run: Run, inside: InsideRun | None, window: ProfilerWindow) -> ProfiledSteps | None:
    trace = run.traces.get(window.name)
    if trace is None:
        return None
    typical_s = _step_s(inside) if inside is not None and window.phase == "train" else None
    whole = replace(trace, steps=trace.steps[: window.steps])  # one that was cut off is in the trace, too
    steps = analyse_trace(whole)
    return ProfiledSteps(window, steps, typical_s, sync_lines(window.lines, steps) if window.lines is not None else ())


def _step_s(inside: InsideRun) -> float | None:
    """Return how long a step of a training takes (s), by whole epochs without a window; None where there is none.

    The first epoch warms up, and is none of them.
    """
    held_up = interval_cover([window.span for window in inside.profiled])
    lengths = [_per_batch(epoch) for epoch in inside.epochs[1:] if not held_up.touches(_span(epoch))]
    known = [each for each in lengths if each is not None]
    return median(known) if known else None


def _span(epoch: InsideEpoch) -> tuple[float, float]:
    return epoch.start_t_s, epoch.start_t_s if epoch.end_t_s is None else epoch.end_t_s


def _per_batch(epoch: InsideEpoch) -> float | None:
    if epoch.end_t_s is None or not epoch.batches:
        return None
    return (epoch.end_t_s - epoch.start_t_s) / epoch.batches
