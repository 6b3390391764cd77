"""What kind of exception ended a process of YOLO: by its types, its codes, and the function that it came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from gpu_report.model import NAN_GRADIENT, InsideRun, Raised

ExceptionKind = Literal[
    "interrupted",
    "disk full",
    "gpu memory",
    "cuda",
    "communication",
    "loader worker",
    "nan",
    "nan gradient",
    "data set",
    "other",
]
INTERRUPTED = "KeyboardInterrupt"
OUT_OF_MEMORY = "OutOfMemoryError"  # torch's exception for a GPU that has no more
NO_MEMORY_CODES = frozenset({"cudaErrorMemoryAllocation", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED"})
NO_SPACE_CODES = frozenset({"ENOSPC", "EDQUOT"})
# torch.distributed's, of which DistError is the base from 2.1 on
COMMUNICATION = frozenset({"DistError", "DistBackendError", "DistNetworkError", "DistStoreError"})
CUDA_TYPES = frozenset({"AcceleratorError", "CudaError"})
CUDA_CODES = ("cuda", "CUDNN", "CUBLAS", "CUFFT", "CUSPARSE", "CUSOLVER")
OF_DATA = frozenset({"AssertionError", "FileNotFoundError"})  # what ultralytics raises of images and labels ...
DATA_MODULES = "ultralytics.data."  # ... in these modules
GET_DATASET = "ultralytics.engine.trainer:get_dataset"
NAN_RECOVERY = "ultralytics.engine.trainer:_handle_nan_recovery"

Types = frozenset[str | None]


def exception_kind(process: InsideRun) -> ExceptionKind:
    """Return what kind of exception ended a process; `other` where it is none of those that are known."""
    types = frozenset({process.error, *process.raised.bases})
    return next((kind for kind, is_it in _KINDS if is_it(types, process.raised)), "other")


def _is_cuda(types: Types, raised: Raised) -> bool:
    return bool(types & CUDA_TYPES) or (raised.code or "").startswith(CUDA_CODES)


def _is_of_data(types: Types, raised: Raised) -> bool:
    place = raised.raised_in or ""
    return place == GET_DATASET or (place.startswith(DATA_MODULES) and bool(types & OF_DATA))


# The first that fits: what says why stands before where it was felt.
_KINDS: tuple[tuple[ExceptionKind, Callable[[Types, Raised], bool]], ...] = (
    ("interrupted", lambda types, _: INTERRUPTED in types),
    ("disk full", lambda _, raised: raised.code in NO_SPACE_CODES),
    ("gpu memory", lambda types, raised: OUT_OF_MEMORY in types or raised.code in NO_MEMORY_CODES),
    ("communication", lambda types, _: bool(types & COMMUNICATION)),
    ("loader worker", lambda _, raised: raised.loader_worker is not None),
    ("cuda", _is_cuda),
    ("nan", lambda _, raised: raised.raised_in == NAN_RECOVERY),
    ("nan gradient", lambda _, raised: raised.code == NAN_GRADIENT),
    ("data set", _is_of_data),
)
