"""Which lines of code a training stood in while its CPU waited for the GPU, in a window of the profiler."""

from collections import Counter
from typing import Final

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.signals.code.stack_kinds import location_of
from gpu_report.model import CodeLocation, Frame, TraceAnalysis, WindowLines

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

LEAST_NOTES: Final = 8  # within waits: of fewer a share means little
LEAST_SHARE: Final = 0.1  # of those notes, of a line that is told
MARGIN_S: Final = 20e-6  # a call lets go of the interpreter's lock so long before its operator begins, or later
CLOCK_AGREES_S: Final = 2e-3  # over the steps of a window: else a clock was set


def sync_lines(lines: WindowLines, steps: TraceAnalysis) -> tuple[CodeLocation, ...]:
    """Return the lines whose calls waited for the GPU, by share of all notes in such waits; none where few are known.

    The profiler marks a step where the training noted that one begins: by these moments the notes are put on the
    trace's clock. A wait in the backward pass is of another thread: its line is the one that asked for that pass.
    """
    offset_s = _offset_s(lines.step_starts_s, np.array([step.start_s for step in steps.steps]))
    if offset_s is None or not len(steps.sync_spans):
        return ()
    waited = _inside(lines.at_s - offset_s, steps.sync_spans)
    total = int(waited.sum())
    if total < LEAST_NOTES:
        return ()
    known: Counter[Frame] = Counter()
    for number, count in Counter(lines.number[waited].tolist()).items():
        place = location_of(lines.stack(number))
        known.update({} if place is None else {place: count})
    most = [(place, count / total) for place, count in known.most_common() if count >= LEAST_SHARE * total]
    return tuple(CodeLocation.in_main(place, share) for place, share in most)


def _offset_s(noted_s: Floats, marked_s: Floats) -> float | None:
    """Return by how much the run's clock is ahead of the trace's, None where they do not agree on the steps."""
    count = min(len(noted_s), len(marked_s))
    if not count:
        return None
    offsets_s = noted_s[:count] - marked_s[:count]
    offset_s = float(np.median(offsets_s))
    return offset_s if float(np.median(np.abs(offsets_s - offset_s))) <= CLOCK_AGREES_S else None


def _inside(at_s: Floats, spans: Floats) -> Bools:
    """Return which moments lie in a span, or within MARGIN_S of one. Spans are in order of their start."""
    before = np.searchsorted(spans[:, 0], at_s + MARGIN_S, side="right") - 1
    ended_s = np.append(np.maximum.accumulate(spans[:, 1]), -np.inf)[before]
    inside: Bools = at_s <= ended_s + MARGIN_S
    return inside
