"""Whether each call waits about as long as the others: such a wait ends by a time-out, and not by an arrival."""

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.gap_kinds import is_in_call
from gpu_report.analyse.inference.gaps import noted_thread
from gpu_report.analyse.inference.thread_seconds import Seconds, seconds_in
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.model import ProcessStacks, ServedModel, calls_needed

LOW_PCT, HIGH_PCT = 5.0, 95.0


def constant_wait_ms(context: Context, served: ServedModel) -> float | None:
    """Return how long each call waits, None where waits differ, or are no more even than the beat of calls.

    A paced camera's calls come at an even beat, its waits are what calls leave of it. Who sleeps knows how long.
    """
    calls = served.steady_calls
    known = np.isfinite(calls.gap_ms)
    if int(known.sum()) < calls_needed(0.5) or _sleeps(context, served):
        return None
    median_ms, spread_ms = float(np.median(calls.gap_ms[known])), _spread(calls.gap_ms[known])
    beat_ms = _spread(MS * np.diff(calls.start_s))
    is_even = spread_ms <= th.EVEN_WAITS * median_ms and beat_ms >= max(2 * spread_ms, th.TIMER_MS)
    return median_ms if is_even and median_ms <= th.WINDOW_MOST_MS else None


def _spread(values: Floats) -> float:
    low, high = np.percentile(values, [LOW_PCT, HIGH_PCT])
    return float(high - low)


def _sleeps(context: Context, served: ServedModel) -> bool:
    """Tell whether the thread that makes calls slept between them for most of the time."""
    notes, span = noted_thread(context, served.calls.pid), (served.start_s, served.end_s)
    if notes is None:
        return False
    stacks = notes.process.stacks
    threads = [seconds_in(thread, span) for thread in notes.process.threads]
    makers = [each for each in threads if any(is_in_call(stacks.get(number, ())) for number in each)]
    slept_s = (_slept_s(notes.process, each) for each in (notes.seconds_by_stack([span]), *makers))
    return max(slept_s) >= served.gap_s / 2


def _slept_s(process: ProcessStacks, seconds: Seconds) -> float:
    """Return for how long of what was noted of a thread it slept."""
    asleep = {number for number, stack in process.stacks.items() if stack and stack[0].called == "sleep"}
    return sum(spent for number, spent in seconds.items() if number in asleep)
