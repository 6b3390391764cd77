"""What of a drop is its own: without the validation and the checkpoint that lie at its edges."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.drops import Drop
from gpu_report.analyse.inside import FROM_CALLBACKS
from gpu_report.analyse.spans import Span
from gpu_report.model import Phase

AT_THE_END = ("validation", "checkpoint")  # the phases at the end of an epoch


def trimmed(context: Context, drops: Sequence[Drop], line_share: float) -> list[Drop]:
    """Return drops without the validations and checkpoints at their edges, where they alone do not explain them.

    What remains must still be long enough to be a drop. `line_share` of the level is the line that they fell under.
    """
    usual_s = {name: _usual_s(context, name) for name in AT_THE_END}
    found = [_trimmed(context, drop, usual_s, line_share) for drop in drops]
    return sorted(found, key=lambda drop: (drop.start_t_s, drop.gpu))


def _trimmed(context: Context, drop: Drop, usual_s: Mapping[str, float], line_share: float) -> Drop:
    if context.boundaries.explains(drop.start_t_s, drop.end_t_s):
        return drop
    start_s, end_s = drop.start_t_s, drop.end_t_s
    while (phase := _usual_end(context, start_s, usual_s)) is not None:
        start_s = phase.end_t_s
    while (phase := _usual_end(context, end_s - th.EDGE_S, usual_s)) is not None and phase.start_t_s > start_s:
        end_s = phase.start_t_s
    if (start_s, end_s) == (drop.start_t_s, drop.end_t_s):
        return drop
    start_s, end_s = _low_part(context, drop, (start_s, end_s), line_share)
    enough = end_s - start_s >= context.options.drop_seconds
    return replace(drop, start_t_s=start_s, end_t_s=end_s) if enough else drop


def _usual_s(context: Context, name: str) -> float:
    """Return how long phases of a name usually are in this run, 0 where there are none."""
    lengths = [phase.end_t_s - phase.start_t_s for phase in context.phases if phase.name == name]
    return median(lengths) if lengths else 0.0


def _usual_end(context: Context, t_s: float, usual_s: Mapping[str, float]) -> Phase | None:
    """Return the validation or checkpoint that a moment lies in, if it was told and is about as long as they are here.

    One that is only seen from outside may be made of the very drop.
    """
    phase = context.phase_at(t_s)
    if phase is None or phase.name not in AT_THE_END or phase.source != FROM_CALLBACKS:
        return None
    return phase if phase.end_t_s - phase.start_t_s <= th.SIBLING_FACTOR * usual_s[phase.name] else None


def _low_part(context: Context, drop: Drop, span: Span, line_share: float) -> Span:
    """Return the stretch from the first to the last reading under the drop's line within a span."""
    track = next(track for track in context.tracks if track.gpu == drop.gpu)
    part = track.between(*span)
    low = np.flatnonzero(track.util_pct[part] < line_share * drop.level_pct)
    if not len(low):
        return span
    first, last = part.start + int(low[0]), part.start + int(low[-1])
    return float(track.t_s[first]), min(float(track.ends_s[last]), span[1])
