"""Joules of any span of one GPU's time, from the energy counter where there is one, else from power."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries, is_well_sampled
from gpu_report.analyse.timeseries.intervals import Indices, rows_before

Source = Literal["counter", "power", "none"]
TOUCHING_S = 1e-6  # apart: what rounding leaves between the end of a row's time and the next row


@dataclass(frozen=True, eq=False)
class Energy:
    """Running totals: `joules[i]` have been used by `t_s[i]`; for `sampled_s[i]` seconds until then power was read.

    They are of the beginnings of rows, and of the ends of those that do not last to the next one.

    `counted_s` are these and those of gaps that the counter tells the joules of: all of a gap together, not of a part.
    Nothing is known where there is neither counter nor power; a sum over time of which little is known would be low.
    """

    t_s: Floats
    joules: Floats
    sampled_s: Floats
    counted_s: Floats
    source: Source

    @property
    def total_j(self) -> float | None:
        """Return all joules that are known, None where nothing is."""
        return None if self.source == "none" else float(self.joules[-1])

    @property
    def total_s(self) -> float:
        """Return how many seconds all the known joules are of."""
        return 0.0 if self.source == "none" else float(self.counted_s[-1])

    def between(self, start_s: float, end_s: float) -> float | None:
        """Return the joules of a span, None where less than MEASURED_SHARE of it was sampled (see `of_spans`)."""
        (joules,) = self.of_spans(np.array([start_s]), np.array([end_s])).tolist()
        return joules if np.isfinite(joules) else None

    def of_spans(self, starts: Floats, ends: Floats) -> Floats:
        """Return the joules of many spans: NaN where less than MEASURED_SHARE was sampled, else of all of it."""
        used, sampled, counted = self._known(starts, ends)
        length = ends - starts
        enough = is_well_sampled(sampled, length)
        whole: Floats = np.where(enough, used * length / np.where(enough, counted, 1.0), np.nan)
        return whole

    def of_each(self, starts: Floats, ends: Floats) -> tuple[Floats, Floats]:
        """Return the joules that are known of many spans, NaN where nothing is, and the seconds that were sampled."""
        used, sampled, counted = self._known(starts, ends)
        return np.where(counted > 0, used, np.nan), sampled

    def _known(self, starts: Floats, ends: Floats) -> tuple[Floats, Floats, Floats]:
        """Return by how much each total grows in many spans, by nothing where nothing is known."""
        if self.source == "none":
            nothing = np.zeros(len(starts))
            return nothing, nothing, nothing
        used, sampled = self._grown(self.joules, starts, ends), self._grown(self.sampled_s, starts, ends)
        is_all = self.counted_s is self.sampled_s
        return used, sampled, sampled if is_all else self._grown(self.counted_s, starts, ends)

    def _grown(self, total: Floats, starts: Floats, ends: Floats) -> Floats:
        """Return by how much a total grows in many spans; most end where the next begins, as readings do."""
        before = np.interp(starts, self.t_s, total)
        apart = np.flatnonzero(np.append(ends[:-1] != starts[1:], np.ones(len(ends[-1:]), dtype=bool)))
        after = np.append(before[1:], before[:1])
        after[apart] = np.interp(ends[apart], self.t_s, total)
        grown: Floats = after - before
        return grown


def energy(series: GpuSeries) -> Energy:
    """Return the running total of a GPU's energy.

    Power is integrated over its readings. The counter is read seldom, because a read takes 3 ms
    (nvmlDeviceGetTotalEnergyConsumption); between two of its readings the integral is scaled to their difference, and
    what was used in a gap, or while power could not be read, counts at the mean power beside it. A counter that went
    back (driver reload) is not believed.
    """
    times = series.samples["t_s"].to_numpy(dtype=float)
    power = series.samples["power_w"].to_numpy(dtype=float)
    known = np.isfinite(power)
    joules, seconds = np.where(known, power, 0.0) * series.sample_weight_s, known * series.sample_weight_s
    rates_w = _scale_to_counter(series, times, joules, seconds)
    if rates_w is None and not known.any():
        return Energy(times, times, times, times, "none")
    mean_w = np.zeros(len(times)) if rates_w is None else np.nan_to_num(rates_w)
    gaps = np.append(np.diff(times) - series.sample_weight_s[:-1], 0.0)
    gaps *= (mean_w > 0) & (gaps > TOUCHING_S)
    counted = np.where(mean_w > 0, series.sample_weight_s, seconds)
    joules += mean_w * (counted - seconds)
    apart = _apart(times, series.sample_weight_s)
    t = np.insert(times, apart + 1, times[apart] + series.sample_weight_s[apart])
    sampled_s = _running(seconds, np.zeros(len(times)), apart)
    is_all = not gaps.any() and bool((counted == seconds).all())
    counted_s = sampled_s if is_all else _running(counted, gaps, apart)
    source: Source = "power" if rates_w is None else "counter"
    return Energy(t, _running(joules, mean_w * gaps, apart), sampled_s, counted_s, source)


def _apart(times: Floats, weight_s: Floats) -> Indices:
    """Return the rows whose time does not last to the next row, and the last one."""
    return np.append(np.flatnonzero(np.diff(times) - weight_s[:-1] > TOUCHING_S), len(times) - 1)


def _running(of_rows: Floats, after_rows: Floats, apart: Indices) -> Floats:
    """Return the running total where each row's time begins, and where it ends before the next begins.

    In between it grows evenly.
    """
    before = np.concatenate([[0.0], np.cumsum(of_rows + after_rows)[:-1]])
    return np.insert(before, apart + 1, before[apart] + of_rows[apart])


def _scale_to_counter(series: GpuSeries, times: Floats, joules: Floats, seconds: Floats) -> Floats | None:
    """Scale `joules` in place between the counter's readings; None where there is no counter.

    Returns the mean power (W) that the counter tells of each row's time, NaN before its first and after its last
    reading: none of it is reported there.
    """
    counter = series.samples["energy_j"].to_numpy(dtype=float)
    read = np.flatnonzero(np.isfinite(counter))
    if len(read) < 2 or (np.diff(counter[read]) < 0).any():
        return None
    used, length = np.diff(counter[read]), np.diff(times[read])
    measured_j = np.add.reduceat(joules, read)[:-1]
    measured_s = np.add.reduceat(seconds, read)[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_w = np.where(measured_s > 0, measured_j / measured_s, np.nan)
        scale = np.where(measured_j > 0, used / (mean_w * length), 1.0)
    interval = np.clip(rows_before(read, np.arange(len(times)), "right") - 1, 0, len(used) - 1)
    joules *= scale[interval]  # before the first and after the last reading as beside it
    rates_w = np.full(len(times), np.nan)
    inside = slice(read[0], read[-1])
    # Where no power was read between two readings, the counter's own mean is all that is known.
    rates_w[inside] = np.where(measured_s > 0, mean_w * scale, used / length)[interval][inside]
    return rates_w
