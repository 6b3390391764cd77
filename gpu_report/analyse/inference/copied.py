"""What each call copies to a GPU, where that is far more than its images: what could stay there."""

from typing import Final

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.served import served_models
from gpu_report.analyse.timeseries.columns import column_values
from gpu_report.model import ServedModel, Stack

COPIES: Final = frozenset({"to", "cuda", "copy_"})  # of a tensor
BYTES: Final = 3 * 4  # of a pixel: three colours, each a float
MIB: Final = 2**20


def copies_tensor(stack: Stack) -> bool:
    """Tell whether a stack stands in a call that may copy a tensor to a GPU."""
    return bool(stack) and stack[0].called in COPIES


def copied_mib(context: Context, served: ServedModel) -> float | None:
    """Return how many MiB each call sent to the GPU, None where that is not known, or no more than images may need."""
    series = context.series_if_read(served.calls.gpu)
    if series is None or not _is_alone(context, served):
        return None
    mib_s = column_values(series.samples, "pcie_rx_mib_s", [(served.start_s, served.end_s)])
    if len(mib_s) < th.COPIED_READINGS:
        return None
    each = float(mib_s.mean()) * (served.end_s - served.start_s) / served.latency.calls
    return each if each >= th.COPIED_TIMES * _images_mib(served) else None


def _is_alone(context: Context, served: ServedModel) -> bool:
    """Tell whether all that its GPU is sent is of this model's calls."""
    models = [each for each in context.cached(served_models) if each.calls.gpu == served.calls.gpu]
    return len(models) == 1 and not any(other.gpu == served.calls.gpu for other in context.used_by_others)


def _images_mib(served: ServedModel) -> float:
    """Return what the images of a call take at most, in their own size or in that of the model."""
    calls = served.calls
    longest = max(float(np.nanmax([*calls.height, *calls.width, 0.0])), calls.image_px or 0)
    return served.batch * longest**2 * BYTES / MIB
