"""Another process on a GPU, where nobody logged processes: its memory came and went, and the GPU worked no less.

Torch keeps what it once took, so that a training's own memory does not fall back to the very level that it had.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.timeline.thresholds import LOW_PCT
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Run

NEAR_ROWS = 256  # that are looked at first


class MemoryStay(NamedTuple):
    """When memory was higher, and by how much (MiB)."""

    span: Span
    memory_mib: float


def memory_stays(run: Run, series: GpuSeries) -> list[MemoryStay]:
    """Return when a GPU's memory was higher for a while in training, and then at its level of before.

    Not what ends with an epoch, or comes again and again: a validation may take memory that is given back. One that
    was seen to come and go may come again, and stay to the end of the training or of the log. How often it comes, all
    tell, however busy the GPU was: a validation may be as busy as training at times.
    """
    every = list(_rises(run, series))
    rises = [rise for rise in every if rise.works_on]
    gone = [rise.stay for rise in rises if rise.is_over]
    gone_mib, gone_s = _heights_mib(gone), np.array([stay.span[1] for stay in gone])
    rest = [rise.stay for rise in rises if not rise.is_over]
    again = [stay for stay in rest if (_alike(gone_mib, stay) & (gone_s <= stay.span[0])).any()]
    single = {rise.stay for rise in every if rise.readings == 1}
    heights_mib = _heights_mib(_once(every))
    most = {stay: th.COME_AGAIN if stay in single else th.COME_ROUND for stay in (*gone, *again)}
    return [stay for stay in sorted(most) if _alike(heights_mib, stay).sum() < most[stay]]


class _MemoryRise(NamedTuple):
    """Memory that rose and fell, or did not; `is_over` says that it fell to its level of before, in training.

    `works_on` says that the GPU worked as much meanwhile, and that no epoch ended with it. Of a single reading that
    says little: utilisation looks back over a second, however far readings are apart.
    """

    stay: MemoryStay
    is_over: bool
    works_on: bool
    readings: int


def _once(rises: Sequence[_MemoryRise]) -> list[MemoryStay]:
    """Return each time that memory was higher; what came in steps, and fell at once, came once."""
    key = {(rise.stay.span[1], round(rise.stay.memory_mib / th.SAME_MEMORY_MIB)): rise.stay for rise in rises}
    return list(key.values())


def _heights_mib(stays: Sequence[MemoryStay]) -> Floats:
    return np.array([stay.memory_mib for stay in stays], dtype=float)


def _alike(heights_mib: Floats, stay: MemoryStay) -> Bools:
    return np.asarray(np.abs(heights_mib - stay.memory_mib) <= th.SAME_MEMORY_MIB)


def _rises(run: Run, series: GpuSeries) -> Iterator[_MemoryRise]:
    t_s, mib = (series.samples[name].to_numpy(dtype=float) for name in ("t_s", "memory_used_mib"))
    known = np.isfinite(mib)
    t_s, mib, base_s = t_s[known], mib[known], max(th.BASE_S, th.BASE_READINGS * series.tick_s)
    last = 0
    for rise in (np.flatnonzero(np.diff(mib) >= th.CONTEXT_MIB) + 1).tolist():
        before = slice(max(int(np.searchsorted(t_s, t_s[rise] - base_s)), last), rise)
        if before.start >= rise or t_s[rise] - t_s[before.start] < base_s / 2:  # of a gap nobody knows its level
            continue
        base_mib = float(np.median(mib[before]))
        fall = _first_at_most(mib, rise, base_mib + th.SAME_MEMORY_MIB)
        if fall is None and not last:  # what never fell tells nothing where none came and went before
            continue
        if fall == rise:  # it rose from below the level that it had, to no more than that
            continue
        end = len(mib) - 1 if fall is None else fall
        stay = MemoryStay((float(t_s[rise]), float(t_s[end])), float(np.median(mib[rise:fall])) - base_mib)
        if stay.memory_mib < th.CONTEXT_MIB or not _is_level(mib[before], base_mib):
            continue
        after = slice(end, int(np.searchsorted(t_s, t_s[end] + base_s)))
        is_over = fall is not None and _is_level(mib[after], base_mib) and _trains_after(series, stay.span[1], base_s)
        works_on = _works_on(series, stay.span, base_s) and not _ends_epochs(run, t_s, mib, stay, series.tick_s)
        last = end if is_over and works_on else last
        yield _MemoryRise(stay, is_over, works_on, end - rise)


def _first_at_most(values: Floats, start: int, line: float) -> int | None:
    """Return the place of the first value from a start on that is no higher than a line; mostly it is near."""
    size = NEAR_ROWS
    while start < len(values):
        low = np.flatnonzero(values[start : start + size] <= line)
        if len(low):
            return start + int(low[0])
        start, size = start + size, 2 * size
    return None


def _ends_epochs(run: Run, t_s: Floats, mib: Floats, stay: MemoryStay, tick_s: float) -> bool:
    """Tell whether memory that fell at the end of an epoch was as high at the end of others, too, or there are none.

    It is what validations take then.
    """
    (start_s, fall_s), near_s = stay.span, th.LATE_LOOK_TICKS * tick_s
    ends = [row.row_t_s for row in run.epoch_rows]
    if not any(-near_s <= fall_s - end_s <= max(near_s, th.SAVED_WITHIN_S) for end_s in ends):
        return False
    before, after = [e for e in ends if e < start_s], [e for e in ends if e > fall_s + near_s]
    others = np.array(before or after)  # later ones may be higher for good
    at_end = mib[np.maximum(np.searchsorted(t_s, others) - 1, 0)]
    line_mib = float(np.median(mib[(t_s >= start_s) & (t_s < fall_s)])) - stay.memory_mib / 2
    return not len(others) or bool((at_end >= line_mib).any())


def _is_level(mib: Floats, base_mib: float) -> bool:
    """Tell whether memory was at a level, but for a validation that takes more for a while."""
    return bool((mib >= base_mib - th.SAME_MEMORY_MIB).all()) and float(np.median(mib)) <= base_mib + th.SAME_MEMORY_MIB


def _works_on(series: GpuSeries, span: Span, base_s: float) -> bool:
    """Tell whether the GPU trained before, and worked as much or more in between."""
    before = span[0] - base_s, span[0]
    was, then = (series.mean_util_pct(*each) for each in (before, span))
    if not (was >= LOW_PCT and then >= th.AS_MUCH_SHARE * was):  # NaN: not read
        return False
    power_w = series.samples["power_w"].to_numpy(dtype=float)
    was_w, then_w = (_mean(power_w[series.between_rows(*each)]) for each in (before, span))
    return not then_w < th.AS_MUCH_SHARE * was_w  # NaN: not logged


def _trains_after(series: GpuSeries, end_s: float, base_s: float) -> bool:
    return bool(series.mean_util_pct(end_s, end_s + base_s) >= LOW_PCT)  # NaN: not read


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
