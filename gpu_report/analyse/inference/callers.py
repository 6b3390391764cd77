"""The line of the user's that calls a model, by the stacks within that model's calls."""

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.call_time import call_spans
from gpu_report.analyse.inference.gap_kinds import is_in_call, is_stream
from gpu_report.analyse.inference.gaps import noted_thread
from gpu_report.analyse.inference.thread_seconds import Seconds
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks
from gpu_report.analyse.signals.code.stack_kinds import kind_of
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import CodeLocation, Frame, ServedModel, Stack


def caller_of(context: Context, served: ServedModel) -> CodeLocation | None:
    """Return the line that made most of a model's calls, None where the main thread was noted in too few of them."""
    notes = noted_thread(context, served.calls.pid)
    if notes is None:
        return None
    stacks = notes.process.stacks
    noted = ((_caller(stacks.get(number, ())), spent) for number, spent in _seconds_in_calls(notes, served).items())
    lines = sums_by_key((line, spent) for line, spent in noted if line is not None)
    total = sum(lines.values())
    if total < th.GAP_NOTES_S:
        return None
    most = max(lines, key=lambda line: lines[line])
    return CodeLocation.in_main(most, lines[most] / total)


def _seconds_in_calls(notes: IdleStacks, served: ServedModel) -> Seconds:
    """Return how many seconds the main thread stood in each stack while a model was called."""
    rows, share = notes.within([(served.start_s, served.end_s)])
    spans = notes.spans(rows)
    lengths = spans[:, 1] - spans[:, 0]
    called = interval_cover(call_spans(served.steady_calls)).seconds_in_each(spans)
    inside = np.divide(called, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
    seconds = np.bincount(notes.number[rows], notes.seconds(rows) * np.minimum(share, inside)).tolist()
    return {number: spent for number, spent in enumerate(seconds) if spent > 0}


def _caller(stack: Stack) -> Frame | None:
    """Return the user's line nearest to a call in a stack, None of one that lies in no call."""
    at = next((at for at, frame in enumerate(stack) if is_stream(frame)), len(stack))
    own = next((frame for frame in stack[at:] if kind_of(frame) == "own"), None) if is_in_call(stack) else None
    return own and own._replace(called="")
