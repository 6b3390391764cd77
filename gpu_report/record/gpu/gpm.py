"""What a GPU really did between two ticks: GPM (GPU performance monitoring), on Hopper and later.

A sample is a snapshot of counters; a metric is the difference of two samples. The one of the tick before is kept, so
that a metric is the mean over the whole interval. One sample and its metrics cost 0.14 ms of CPU (H200).
"""

import time
from collections.abc import Mapping
from typing import Any

import pynvml

from gpu_report.record.gpu.mig import MigPlace

MIN_APART_S = 0.1  # samples closer than this give no metrics (nvml.h)

# Column and metric. Percentages are of cycles; bytes are MiB a second.
METRICS = {
    "sm_active_pct": pynvml.NVML_GPM_METRIC_SM_UTIL,
    "sm_occupancy_pct": pynvml.NVML_GPM_METRIC_SM_OCCUPANCY,
    "tensor_active_pct": pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
    "dram_active_pct": pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
    "pcie_tx_mib_s": pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC,
    "pcie_rx_mib_s": pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC,
    "nvlink_tx_mib_s": pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC,
    "nvlink_rx_mib_s": pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC,
}
# The share of time in which a kernel ran: what NVML's own call tells of a GPU, and of a MIG device only this way.
MIG_METRICS = {"gpu_util_pct": pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL, **METRICS}


class Gpm:
    """The counters of one GPU, or of the GPU instance that a MIG device lies in: `read` returns them since before."""

    def __init__(self, mig: MigPlace | None = None) -> None:
        self._mig = mig
        self.metrics = METRICS if mig is None else MIG_METRICS
        self._before: Any = None
        self._spare: Any = None
        self._taken_s = 0.0

    def read(self, handle: Any) -> Mapping[str, float | None]:
        """Return the metrics since the last read, none at the first one; NVMLError where the GPU has no GPM."""
        now_s = time.monotonic()
        if self._before is None:
            self._begin(handle)
        elif now_s - self._taken_s < MIN_APART_S:
            return {}
        else:
            return self._difference(handle, now_s)
        self._taken_s = now_s
        return {}

    def free(self) -> None:
        """Give the samples back: a process that dies with counters in use has wedged GSP firmware (Xid 119)."""
        for sample in filter(None, (self._before, self._spare)):
            pynvml.nvmlGpmSampleFree(sample)
        self._before = self._spare = None

    def _begin(self, handle: Any) -> None:
        board = handle if self._mig is None else self._mig.board
        if not pynvml.nvmlGpmQueryDeviceSupport(board).isSupportedDevice:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        first, self._spare = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
        self._before = self._take(handle, first)

    def _take(self, handle: Any, sample: Any) -> Any:
        if self._mig is None:
            return pynvml.nvmlGpmSampleGet(handle, sample)
        if self._mig.gpu_instance is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return pynvml.nvmlGpmMigSampleGet(self._mig.board, self._mig.gpu_instance, sample)

    def _difference(self, handle: Any, now_s: float) -> Mapping[str, float | None]:
        after = self._take(handle, self._spare)
        request = pynvml.c_nvmlGpmMetricsGet_t()
        request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(self.metrics)
        request.sample1, request.sample2 = self._before, after
        for place, metric in enumerate(self.metrics.values()):
            request.metrics[place].metricId = metric
        self._before, self._spare, self._taken_s = after, self._before, now_s
        pynvml.nvmlGpmMetricsGet(request)
        return {name: _value(request.metrics[place]) for place, name in enumerate(self.metrics)}


def _value(metric: Any) -> float | None:
    return float(metric.value) if metric.nvmlReturn == pynvml.NVML_SUCCESS else None
