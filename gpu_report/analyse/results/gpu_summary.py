"""One GPU over the whole run: the statistics of all that was recorded of it, and its energy."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor

from gpu_report import schema
from gpu_report.analyse.timeseries.energy import energy
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.weighted_stats import weighted_stats
from gpu_report.model import WELL_COVERED, Gpu, GpuSummary, Stats

# Counters and codes have no mean.
NOT_AVERAGED = frozenset(
    {
        "energy_j",
        "performance_state",
        "clock_event_reasons",
        "memory_reserved_mib",
        "pcie_link_generation",
        "pcie_link_width",
    }
)
COUNTERS = frozenset({"power_cap_s", "sw_thermal_slowdown_s", "hw_thermal_slowdown_s", "power_brake_s"})
AVERAGED = tuple(c.name for c in schema.GPU_QUANTITIES if c.name not in NOT_AVERAGED | COUNTERS)


def summarise_gpu(
    gpu: Gpu, series: GpuSeries | None, duration_s: float, *, used: bool, meanwhile: Executor | None = None
) -> GpuSummary:
    """Return one GPU over the whole run, its statistics begun `meanwhile`; a GPU without rows has no quantities.

    Its energy is a sum, which would be low by all that was not measured: below WELL_COVERED it is not known.
    """
    if series is None:
        return GpuSummary(gpu, 0, {}, None, "none", used=False)
    curve = energy(series)
    is_known = curve.total_s > 0 and curve.total_s >= WELL_COVERED * duration_s
    joules = curve.total_j if is_known else None  # `source` stays: it was read from there, if not enough of it
    return GpuSummary(gpu, len(series.samples), Statistics(series, meanwhile), joules, curve.source, used=used)


class Statistics(Mapping[str, Stats]):
    """The statistics of what was recorded of a GPU, by quantity, each worked out when it is asked for: most seldom are.

    Those that are sure to be asked for are begun `meanwhile`, by other threads. Utilisation is by its finest readings,
    which the rows of the samples table are not.
    """

    def __init__(self, series: GpuSeries, meanwhile: Executor | None = None) -> None:
        self._series = series
        self._begun = {name: meanwhile.submit(self._work_out, name) for name in AVERAGED} if meanwhile else {}
        self._found: dict[str, Stats | None] = {}

    def _of(self, name: str) -> Stats | None:
        if name not in self._found:
            begun = self._begun.pop(name, None)
            self._found[name] = self._work_out(name) if begun is None or begun.cancel() else begun.result()
        return self._found[name]

    def _work_out(self, name: str) -> Stats | None:
        # as they are kept: of float32 few readings differ, as they were written, which makes them quick to rank
        series = self._series
        fine = weighted_stats(series.util_pct, series.weight_s[:]) if name == "gpu_util_pct" else None
        return fine or weighted_stats(series.samples[name].to_numpy(), series.sample_weight_s)

    def __getitem__(self, name: str) -> Stats:
        """Return the statistics of a quantity; KeyError where it was not recorded, or has none."""
        stats = self._of(name) if name in AVERAGED else None
        if stats is None:
            raise KeyError(name)
        return stats

    def __iter__(self) -> Iterator[str]:
        """Iterate over the quantities that were recorded."""
        return (name for name in AVERAGED if self._of(name) is not None)

    def __len__(self) -> int:
        """Return how many were recorded."""
        return sum(1 for _ in self)
