"""A GPU's PCIe link while it trained: what it ran at, since when, and what it can do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, indices_within, runs_of
from gpu_report.model import Gpu

# Bytes/s of one lane in one direction, by generation, without the line code (PCI-SIG: 8b/10b, from gen 3 on 128b/130b).
LANE_BYTES_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
# Of that what a copy from pinned memory gets beside packet headers: 12 to 13 of the 15.8 GB/s of gen 3 with 16 lanes.
PAYLOAD_SHARE = 0.8
MOST_LANES = 16  # of a GPU's connector; more is no credible reading
WORKED_PCT = 20.0  # utilisation: the link of a GPU with less to do may rest
FAST_STATE = 3  # the P-states from 0 on that compute has; slower ones lower the link to save power
# Of what it can do: two generations less, or a quarter of the lanes. Half is common: two GPUs share 16 lanes.
FAR_BELOW = 0.3
LEAST_READINGS = 6  # a minute of the recorder's: one reading may be of a moment in which the P-state changes
LEAST_S = 45.0
LEAST_SHARE = 0.1  # of the time from its first reading to its last: less is a disturbance, not a link that fell


@dataclass(frozen=True)
class Link:
    """A generation and a number of lanes."""

    generation: int
    lanes: int

    @property
    def bytes_per_s(self) -> float:
        """Return what a copy to the GPU gets at most; NaN for a generation that nobody knows."""
        return LANE_BYTES_S.get(self.generation, float("nan")) * self.lanes * PAYLOAD_SHARE

    @property
    def words(self) -> str:
        """Return it as people write it."""
        return f"gen {self.generation} x{self.lanes}"


@dataclass(frozen=True)
class LinkUsed:
    """What a GPU's link ran at in a stretch of training, most of the time, and what GPU and slot can do together.

    `far_below` says that it was FAR_BELOW of that or less.
    `before` is what it ran at before that, in the same training,
    None for a stretch from its beginning; `recovered` says that it ran faster afterwards.
    """

    gpu: int
    span: Span
    link: Link
    can_do: Link
    far_below: bool
    before: Link | None = None
    recovered: bool = False


def link_used(gpu: Gpu, series: GpuSeries, trained: Sequence[Span]) -> LinkUsed | None:
    """Return the longest stretch of training on a link far below what it can do, else all of it.

    None where the link was not read for long enough while the GPU worked: an idle one lowers its link.
    """
    rows = _rows_at_work(series, trained)
    t_s, *link = (series.samples[name].to_numpy(dtype=float)[rows] for name in _COLUMNS)
    if len(t_s) < LEAST_READINGS or t_s[-1] - t_s[0] < LEAST_S:
        return None
    links = [Link(int(generation), int(lanes)) for generation, lanes in zip(*link, strict=True)]
    can_do = _can_do(gpu, links)
    far_below = np.array([each.bytes_per_s <= FAR_BELOW * can_do.bytes_per_s for each in links])
    first, last = _longest(_bridged(far_below))
    length_s = t_s[last] - t_s[first]
    if last - first + 1 < LEAST_READINGS or length_s < max(LEAST_S, LEAST_SHARE * (t_s[-1] - t_s[0])):
        return LinkUsed(gpu.index, (trained[0][0], trained[-1][1]), _most(links), can_do, far_below=False)
    return LinkUsed(
        gpu.index,
        (
            float(t_s[first]) if first else trained[0][0],
            float(t_s[last]) if last < len(t_s) - 1 else trained[-1][1],
        ),
        _most(links[first : last + 1]),
        can_do,
        far_below=True,
        before=_most([link for link, far in zip(links[:first], far_below, strict=False) if not far]) if first else None,
        recovered=last < len(t_s) - 1,
    )


_COLUMNS = ("t_s", "pcie_link_generation", "pcie_link_width")


def _rows_at_work(series: GpuSeries, trained: Sequence[Span]) -> Bools:
    """Return which rows of the samples have a link that was read in training while the GPU worked."""
    samples = series.samples
    states = samples["performance_state"].to_numpy(dtype=float)
    worked = (samples["gpu_util_pct"].to_numpy(dtype=float) >= WORKED_PCT) & (states <= FAST_STATE)
    generation, lanes = (samples[name].to_numpy(dtype=float) for name in _COLUMNS[1:])
    read = np.isin(generation, list(LANE_BYTES_S)) & (lanes >= 1) & (lanes <= MOST_LANES)
    within = np.zeros(len(samples), dtype=bool)
    within[indices_within(samples["t_s"].to_numpy(dtype=float), list(trained))] = True
    rows: Bools = worked & read & within
    return rows


def _can_do(gpu: Gpu, seen: Sequence[Link]) -> Link:
    """Return the most that GPU and slot can do: as the driver says, and at least what was seen."""
    return Link(
        max(int(gpu.max_pcie_link_generation or 0), *(link.generation for link in seen)),
        max(min(int(gpu.max_pcie_link_width or 0), MOST_LANES), *(link.lanes for link in seen)),
    )


def _most(links: Sequence[Link]) -> Link:
    return Counter(links).most_common(1)[0][0]


def _bridged(marked: Bools) -> Bools:
    """Return marks with gaps of less than LEAST_READINGS filled: a link that recovers stays so for longer."""
    filled, at = marked.copy(), np.flatnonzero(marked)
    for first, next_ in pairwise(at.tolist()):
        if next_ - first <= LEAST_READINGS:
            filled[first:next_] = True
    return filled


def _longest(marked: Bools) -> tuple[int, int]:
    """Return the first and the last of the longest row of marks; (0, -1) without any."""
    starts, ends = runs_of(marked)
    if not len(starts):
        return 0, -1
    longest = int(np.argmax(ends - starts))
    return int(starts[longest]), int(ends[longest]) - 1
