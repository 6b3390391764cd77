"""What the names of kernels say, and how many there are: layouts, tensor cores, compiled code."""

from typing import Final

import numpy as np

from gpu_report.analyse.trace import thresholds as th
from gpu_report.analyse.trace.families import NAMES, Families
from gpu_report.analyse.trace.gpu_work import KERNEL
from gpu_report.analyse.trace.name_masks import names_that
from gpu_report.analyse.trace.time_tables import share
from gpu_report.analyse.trace.window import TraceWindow
from gpu_report.model import TensorCores

# cuDNN's and cuBLAS's names of what runs on tensor cores: instructions (hmma, wgmma), their shapes (s1688, s16816), the
# libraries that have nothing else (nvjet), and number formats that nothing else multiplies.
TENSOR_CORE: Final = (
    r"hmma|w?gmma_|wgmma|tensorop|tensor(?:1688|16816)|s1688|s16816|s161616|nvjet|tf32"
    r"|xmma_(?!.*depthwise).*(?:f16f16|bf16bf16|i8i8|e4m3|e5m2)"
)
# ... and of what does not: depthwise convolutions, direct ones, and matrix products by ordinary cores.
ORDINARY: Final = (
    r"depthwise|_c1_k1_|c1_k1|grouped_direct|shmem_tiling|sgemm|dgemm|simt|ffma|gemv|f32f32_f32f32|implicit_convolve"
)
HALF: Final = r"f16|__half|bfloat|nvjet_(?:sm\d+_)?[ht]"
REGION: Final = r"^Torch-Compiled Region"


def layout_share(window: TraceWindow, families: Families) -> float | None:
    """Return the share of GPU time in kernels that change layouts (`nchwToNhwc`), None without GPU work.

    `aten::contiguous` is in the family of layout changes, too, but copies for other reasons as well.
    """
    if not len(window.work):
        return None
    changes = families.kernel_name[window.work.name] == NAMES.index("layout changes")
    return share(window.work.length_s[changes].sum(), window.work.length_s.sum())


def tensor_cores(window: TraceWindow, families: Families) -> TensorCores | None:
    """Return whether convolutions and matrix products used tensor cores, None where there were none.

    Names of neither kind (cuDNN's bookkeeping, sums over a batch) count in the time, and for no side.
    """
    work = window.work
    multiplies = np.isin(families.work, [NAMES.index("convolution"), NAMES.index("matrix products")])
    part = work.where(multiplies & (work.kind == KERNEL))
    if not len(part):
        return None
    total_s = float(part.length_s.sum())
    named = names_that(window.trace, TENSOR_CORE)
    with_share, without_share, half_share = (
        share(part.length_s[mask[part.name]].sum(), total_s)
        for mask in (named, names_that(window.trace, ORDINARY) & ~named, names_that(window.trace, HALF))
    )
    used = True if with_share >= th.TENSOR_CORES_USED else False if without_share >= th.TENSOR_CORES_UNUSED else None
    return TensorCores(used, with_share, half_share, total_s)


def kernels_per_step(window: TraceWindow) -> float:
    """Return how many kernels a used step has."""
    return float((window.work.kind == KERNEL).sum()) / window.used_count if window.used_count else 0.0


def compiled_per_step(window: TraceWindow) -> float:
    """Return how many regions of torch.compile a used step enters, 0 where nothing was compiled."""
    trace = window.trace
    region = names_that(trace, REGION)
    entered = sum(
        int((region[table.name] & window.in_used(table.start_s)).sum())
        for table in (trace.operators, trace.annotations)
    )
    return entered / window.used_count if window.used_count else 0.0
