"""What can be read off ultralytics' objects; what cannot, in this version or ever, is left out."""

from __future__ import annotations

import gc
import importlib
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .secrets.hide import hide_and_cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Scalar = Any  # None, bool, int, float or str: what JSON holds
    Reader = Callable[[Any], Any]


MIB = 2**20
SIZES_ASKED = 20  # images; a network filesystem answers for each within a millisecond or two
BOXES_ASKED = 100  # of an image whose classes are counted
LABELS_ASKED = 2_000  # images: 3 ms of 100,000, 30 of a million (all: 26 and 257); what is rarer pads few batches


def rank() -> int:
    """Return this process's rank in a DDP training, 0 outside one (ultralytics says -1 then)."""
    return max(int(getattr(sys.modules.get("ultralytics.utils"), "RANK", 0)), 0)


def of_process() -> dict[str, Scalar]:
    """Return pid, rank and versions."""
    torch = sys.modules.get("torch")
    return {
        "pid": os.getpid(),
        "rank": rank(),
        "python": sys.version.split()[0],
        "torch": _text(getattr(torch, "__version__", None)),
        "cuda": _text(getattr(getattr(torch, "version", None), "cuda", None)),
        "ultralytics": _text(getattr(sys.modules.get("ultralytics"), "__version__", None)),
    }


# What torchrun tells each rank, by the names that we give it: of the whole job, not of this node.
OF_JOB = {
    "local_rank": "LOCAL_RANK",
    "node_rank": "GROUP_RANK",
    "nodes": "GROUP_WORLD_SIZE",
    "ranks": "WORLD_SIZE",
    "restarts": "TORCHELASTIC_RESTART_COUNT",
}
RUN_ID, NO_RUN_ID = "TORCHELASTIC_RUN_ID", "none"


def of_job() -> dict[str, Scalar]:
    """Return what this process knows of the job that it is a rank of; nothing where it is none."""
    if not os.environ.get("RANK", "").isdigit():
        return {}
    given = {name: os.environ.get(variable, "") for name, variable in OF_JOB.items()}
    known: dict[str, Scalar] = {name: int(text) for name, text in given.items() if text.isdigit() and len(text) < 8}
    run_id = os.environ.get(RUN_ID, NO_RUN_ID)
    return known if run_id == NO_RUN_ID else {**known, "run_id": hide_and_cut(run_id)[:64]}


def save_dir(instance: Any) -> str | None:
    """Return where a trainer, validator, predictor or exporter writes, absolute."""
    folder = getattr(instance, "save_dir", None)
    return os.path.abspath(str(folder)) if folder else None  # noqa: PTH100 - os.path suffices here


def source(predictor: Any) -> str:
    """Return what a predictor gets: ultralytics' stream, screenshot, from_img or tensor; or files, or one image file.

    `batch` has an effect on files alone, which it reads by itself.
    """
    kinds = [kind for kind, is_it in vars(predictor.source_type).items() if is_it]
    if kinds:
        return str(kinds[0])
    files = predictor.dataset
    return "files" if files.nf > 1 or any(files.video_flag) else "file"


TRAINING: Mapping[str, Reader] = {
    "world_size": lambda t: max(t.world_size, 1) if hasattr(t, "world_size") else _world_size(),
    "model": lambda t: t.args.model,
    "data": lambda t: t.args.data,
    "epochs": lambda t: t.epochs,
    "start_epoch": lambda t: t.start_epoch + 1,
    "resumed": lambda t: bool(t.resume),
    "batch": lambda t: t.batch_size,
    "accumulate": lambda t: t.accumulate,
    "workers": lambda t: t.train_loader.num_workers,
    "prefetch": lambda t: t.train_loader.prefetch_factor,
    "start_method": lambda t: _start_method(t.train_loader),
    "omp_num_threads": lambda _: int(os.environ["OMP_NUM_THREADS"].split(",")[0]),
    "thread_binding": lambda _: [variable for variable in THREAD_BINDING if _binds(variable)],
    "nccl_disabled": lambda _: [way for way, variable in NCCL_WAYS.items() if _is_set(variable)],
    "torch_threads": lambda _: sys.modules["torch"].get_num_threads(),
    "imgsz": lambda t: t.args.imgsz,
    "images": lambda t: len(t.train_loader.dataset),
    "distinct_images": lambda t: _distinct(t.train_loader.dataset) if rank() == 0 else None,
    "data_folder": lambda t: os.path.realpath(os.path.dirname(_image(t.train_loader.dataset, 0))),  # noqa: PTH120
    "data_mib": lambda t: _mib_of_images(t.train_loader.dataset) if rank() == 0 else None,
    "npy_mib": lambda t: _mib_of_npy(t.train_loader.dataset) if rank() == 0 else None,
    "image_px": lambda t: _longer_side_px(_labels(t.train_loader.dataset)) if rank() == 0 else None,
    "scaled_down": lambda t: _scaled_down(_labels(t.train_loader.dataset), t.args.imgsz) if rank() == 0 else None,
    "image_boxes": lambda t: _mean_and_most_boxes(_labels(t.train_loader.dataset)) if rank() == 0 else None,
    "label_classes": lambda t: _classes(t.data["nc"], _labels(t.train_loader.dataset)) if rank() == 0 else None,
    "batches": lambda t: len(t.train_loader),
    "val_images": lambda t: len(t.test_loader.dataset),
    "val_distinct_images": lambda t: _distinct(t.test_loader.dataset) if rank() == 0 else None,
    "cache": lambda t: getattr(t.train_loader.dataset, "cache", t.args.cache),
    "amp": lambda t: t.args.amp if isinstance(t.args.amp, str) and t.amp else bool(t.amp),
    "tf32": lambda _: bool(sys.modules["torch"].backends.cudnn.allow_tf32),  # of convolutions
    "compile": lambda t: t.args.compile,
    "channels_last": lambda t: t.args.channels_last,
    "val": lambda t: t.args.val,
    "plots": lambda t: t.args.plots,
    "close_mosaic": lambda t: t.args.close_mosaic,
    "patience": lambda t: t.args.patience,
    "time": lambda t: t.args.time,
    "optimizer": lambda t: type(t.optimizer).__name__,
    "synced_norms": lambda t: any(type(each).__name__ == "SyncBatchNorm" for each in t.model.modules()),
    "parameters": lambda t: sum(p.numel() for p in t.model.parameters()),
    "device": lambda t: str(t.device),
    "gpus_hidden": lambda _: os.environ["CUDA_VISIBLE_DEVICES"].strip() in {"", "-1"},
    "gpu_uuid": lambda t: _gpu_uuid(t.device),
    "compute_capability": lambda t: _capability(t.device),
    "memory_fraction": lambda t: _memory_fraction(t.device),
}
# Variables by which the OpenMP library that torch loads binds threads to CPU cores: the one that imports it, too.
THREAD_BINDING: tuple[str, ...] = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
BINDS_NOT = frozenset({"", "false", "none", "disabled"})
# The ways between GPUs of one machine that NCCL may be told not to take.
NCCL_WAYS: Mapping[str, str] = {"p2p": "NCCL_P2P_DISABLE", "shm": "NCCL_SHM_DISABLE"}
# What makes each line of Python, or each launch of a kernel, slower where it is switched on.
SLOW_MODES: Mapping[str, Callable[[], Any]] = {
    "launch_blocking": lambda: _is_set("CUDA_LAUNCH_BLOCKING"),
    "no_memory_caching": lambda: "PYTORCH_NO_CUDA_MEMORY_CACHING" in os.environ,  # whatever its value
    "torch_profiler": lambda: _imported("torch.autograd")._profiler_enabled(),
    "cudnn_off": lambda: not _imported("torch.backends.cudnn").enabled,
    "cudnn_benchmark": lambda: _imported("torch.backends.cudnn").benchmark,  # slow where image sizes vary
    "detect_anomaly": lambda: _imported("torch").is_anomaly_enabled(),
    "memory_history": lambda: _cuda_is_initialized() and _imported("torch")._C._cuda_isHistoryEnabled(),
    "trace_function": lambda: sys.gettrace() or _monitored(0, 1),  # the numbers of a debugger and of coverage
    "profile_function": lambda: sys.getprofile() or _monitored(2),  # of a profiler: cProfile from Python 3.12 on
    "tracemalloc": lambda: importlib.import_module("_tracemalloc").is_tracing(),  # also by PYTHONTRACEMALLOC
    "frequent_gc": lambda: gc.isenabled() and 0 < gc.get_threshold()[0] < GC_THRESHOLD,
}
GC_THRESHOLD = 700  # new objects until Python looks for garbage: its default up to 3.12, 2,000 since
VALIDATION: Mapping[str, Reader] = {
    "model": lambda v: v.args.model,
    "data": lambda v: v.args.data,
    "batch": lambda v: v.dataloader.batch_size,
    "workers": lambda v: v.dataloader.num_workers,
    "imgsz": lambda v: v.args.imgsz,
    "images": lambda v: len(v.dataloader.dataset),
    "distinct_images": lambda v: _distinct(v.dataloader.dataset),
    "device": lambda v: str(v.device),
    "gpu_uuid": lambda v: _gpu_uuid(v.device),
}
PREDICTION: Mapping[str, Reader] = {
    "model": lambda p: p.args.model,
    "batch": lambda p: p.args.batch,
    "imgsz": lambda p: p.args.imgsz,
    "device": lambda p: str(p.device),
    "gpu_uuid": lambda p: _gpu_uuid(p.device),
}
MODEL: Mapping[str, Reader] = {
    "model": lambda p: p.args.model,
    "task": lambda p: p.args.task,
    "mode": lambda p: p.args.mode,
    "format": lambda p: p.model.format,
    "half": lambda p: bool(p.model.fp16),
    "compile": lambda p: p.args.compile,
    "end2end": lambda p: bool(p.model.end2end),
    "imgsz": lambda p: p.imgsz,
    "batch": lambda p: p.args.batch,
    "quantize": lambda p: p.args.quantize,
    "conf": lambda p: p.args.conf,
    "max_det": lambda p: p.args.max_det,
    "nms": lambda p: p.args.nms,
    "augment": lambda p: bool(p.args.augment),
    "dnn": lambda p: bool(p.args.dnn),
    "channels_last": lambda p: p.args.channels_last,
    "tracker": lambda p: p.args.tracker if p.args.mode == "track" else None,
    "asked_device": lambda p: p.args.device,
    "source": source,
    "providers": lambda p: p.model.session.get_providers(),
    "device": lambda p: str(p.device),
    "gpu_uuid": lambda p: _gpu_uuid(p.device),
}
EXPORT: Mapping[str, Reader] = {
    "model": lambda e: e.args.model,
    "format": lambda e: e.args.format,
    "batch": lambda e: e.args.batch,
    "imgsz": lambda e: e.args.imgsz,
    "device": lambda e: str(e.device),
}


def read(readers: Mapping[str, Reader], instance: Any) -> dict[str, Scalar]:
    """Return what the readers get; an attribute that this version of ultralytics lacks is left out."""
    facts = {}
    for name, reader in readers.items():
        try:
            facts[name] = plain(reader(instance))
        except Exception:  # noqa: BLE001, S112 - another version, another task: the fact is not known
            continue
    return facts


def slow_modes(names: Iterable[str] = SLOW_MODES) -> list[str]:
    """Return what is switched on in this process that slows it; of a version that does not tell, nothing."""
    return [name for name in names if _true(SLOW_MODES[name])]


def memory_retries() -> int | None:
    """Return how often torch had to free what it kept of this GPU's memory to get more, None where nobody tells."""
    try:
        return int(_imported("torch").cuda.memory_stats()["num_alloc_retries"])
    except Exception:  # noqa: BLE001 - no CUDA, or another version
        return None


HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")  # of a module of torch


def registered(trainer: Any) -> dict[str, int]:
    """Return how many hooks the model's modules have, and how many callbacks the trainer: code that runs each batch.

    Whoever registers one more at each batch makes each batch longer than the one before.
    """
    found = {}
    for name, count in REGISTERED.items():
        try:
            found[name] = count(trainer)
        except Exception:  # noqa: BLE001, S112 - another version, or a trainer of another kind
            continue
    return found


REGISTERED: Mapping[str, Callable[[Any], int]] = {
    "hooks": lambda t: sum(len(vars(each).get(kind) or ()) for each in t.model.modules() for kind in HOOKS),
    "callbacks": lambda t: sum(len(each) for each in t.callbacks.values()),
}


def plain(value: Any) -> Scalar:
    """Return a value as JSON holds it; what is not finite is not known."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, (list, tuple)) and len(value) <= 8:
        return [plain(item) for item in value]
    return hide_and_cut(str(value))


def loss(trainer: Any) -> float | None:
    """Return the sum of the epoch's mean losses; the GPU has just been waited for, so reading them waits for nothing.

    Up to some 8.4 `tloss` is a tensor of one value a loss, then a mapping.
    """
    losses = getattr(trainer, "tloss", None)
    if losses is None:
        return None
    return float(sum(losses.values())) if isinstance(losses, dict) else float(losses.sum())


def lr(trainer: Any) -> float | None:
    """Return the learning rate of the first parameter group."""
    rates = getattr(trainer, "lr", None)
    return float(next(iter(rates.values()))) if isinstance(rates, dict) and rates else None


def _image(dataset: Any, number: int) -> str:
    """Return the path of a training image; that of a data set for classification stands first in its sample."""
    files = getattr(dataset, "im_files", None)
    return str(files[number] if files else dataset.samples[number][0])


def _distinct(dataset: Any) -> int | None:
    """Return how many files a data set has, each counted once: 10 ms of 100,000. None where it may use but some."""
    files = dataset.im_files
    return len(set(files)) if len(files) == len(dataset) else None


def _mib_of_images(dataset: Any) -> float:
    """Return what all images take on disk, by the sizes of a few of them: to ask for each would take a while."""
    count = len(dataset)
    asked = range(0, count, max(count // SIZES_ASKED, 1))
    sizes = [os.path.getsize(_image(dataset, number)) for number in asked]  # noqa: PTH202 - os.path suffices here
    return round(sum(sizes) / len(sizes) * count / MIB, 3)


def _mib_of_npy(dataset: Any) -> float | None:
    """Return what all .npy images beside the training images take on disk, by a few of them; None without any.

    YOLO reads those that exist with any `cache`. Most must be there: the first alone may be a file of the user's.
    """
    files = dataset.npy_files
    asked = range(0, len(files), max(len(files) // SIZES_ASKED, 1))
    sizes = [os.path.getsize(files[number]) for number in asked if os.path.exists(files[number])]  # noqa: PTH110, PTH202
    return round(sum(sizes) / len(asked) * len(files) / MIB, 3) if 2 * len(sizes) > len(asked) else None


def _labels(dataset: Any) -> list[dict[str, Any]]:
    """Return the labels that lie in memory; what a data set of the user's reads when it is asked is not asked for."""
    labels = vars(dataset)["labels"]
    if type(labels) is not list:
        raise TypeError(labels.__class__)
    return labels


def _longer_side_px(labels: list[dict[str, Any]]) -> int:
    """Return the median of the longer sides of images as they lie on disk; ultralytics' `shape` is height and width."""
    sides = sorted(max(label["shape"]) for label in _evenly_spread(labels))
    return int(sides[len(sides) // 2])


def _scaled_down(labels: list[dict[str, Any]], imgsz: int) -> list[float]:
    """Return which share of the images is larger than imgsz, the median of their longer sides, and what training uses.

    That is the share of all images' pixels which is left once the larger ones are scaled to imgsz.
    """
    shapes = [label["shape"] for label in _evenly_spread(labels)]
    larger = sorted(max(shape) for shape in shapes if max(shape) > imgsz)
    pixels = sum(height * width for height, width in shapes)
    used = sum(height * width * min(imgsz / max(height, width), 1.0) ** 2 for height, width in shapes)
    middle = int(larger[len(larger) // 2]) if larger else imgsz
    return [round(len(larger) / len(shapes), 3), middle, round(used / pixels, 4)]


def _mean_and_most_boxes(labels: list[dict[str, Any]]) -> list[float]:
    """Return how many boxes an image has, mean and most, before augmentation."""
    counts = [len(label["bboxes"]) for label in _evenly_spread(labels)]
    return [round(sum(counts) / len(counts), 2), max(counts)]


def _classes(named: int, labels: list[dict[str, Any]]) -> list[int]:
    """Return how many classes a data set names, how many have labels, and how many of these only one.

    Of a full image the first boxes count. Where many were met but once, others have labels in images that were not.
    """
    numpy = sys.modules["numpy"]
    firsts = [label["cls"][:BOXES_ASKED].ravel() for label in _evenly_spread(labels)]
    _, counts = numpy.unique(numpy.concatenate(firsts), return_counts=True)
    return [int(named), len(counts), int((counts == 1).sum())]


def _evenly_spread(labels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the labels of LABELS_ASKED images at most."""
    return labels[:: -(-len(labels) // LABELS_ASKED)]


def _true(question: Callable[[], Any]) -> bool:
    try:
        return bool(question())
    except Exception:  # noqa: BLE001 - not known in this version, or not imported
        return False


def _cuda_is_initialized() -> bool:
    """Tell whether torch may be asked about its memory: without an allocator it would end the process (SIGSEGV)."""
    return bool(_imported("torch").cuda.is_initialized())


def _monitored(*tools: int) -> bool:
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    return monitoring is not None and any(monitoring.get_tool(tool) and monitoring.get_events(tool) for tool in tools)


def _imported(module: str) -> Any:
    return sys.modules[module]


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "0").strip() not in {"", "0"}


def _binds(variable: str) -> bool:
    """Tell whether a variable binds threads; OpenMP looks at its places only where it may bind."""
    if variable == "OMP_PLACES" and os.environ.get("OMP_PROC_BIND", "").strip().lower() == "false":
        return False
    if variable == "KMP_AFFINITY" and not _has_intel_openmp():
        return False
    return os.environ.get(variable, "").strip().lower() not in BINDS_NOT


def _has_intel_openmp() -> bool:
    """Tell whether Intel's or LLVM's OpenMP is loaded, which alone reads KMP_AFFINITY: torch's wheels have GNU's."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return "libiomp5" in maps or "libomp." in maps


def _world_size() -> int:
    return max(int(os.environ.get("WORLD_SIZE", "1")), 1)


def _gpu_uuid(device: Any) -> str | None:
    """Return the UUID by which NVML knows the device (torch from 2.4 on)."""
    if device.type != "cuda":
        return None
    return "GPU-" + str(sys.modules["torch"].cuda.get_device_properties(device).uuid)


def _memory_fraction(device: Any) -> float | None:
    """Return which share of a GPU's memory this process may have, 1 without a limit (newer versions of torch)."""
    if device.type != "cuda":
        return None
    return round(float(sys.modules["torch"].cuda.get_per_process_memory_fraction(device)), 4)


def _capability(device: Any) -> float | None:
    """Return what the GPU can do, as CUDA numbers it: tensor cores from 7.0 on."""
    if device.type != "cuda":
        return None
    major, minor = sys.modules["torch"].cuda.get_device_capability(device)
    return float(f"{major}.{minor}")


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _start_method(loader: Any) -> str | None:
    """Return how a loader starts its workers, None without any, or where nobody has said it yet."""
    of_loader = loader.multiprocessing_context if loader.num_workers else None
    return (
        (of_loader or sys.modules["multiprocessing"]).get_start_method(allow_none=True) if loader.num_workers else None
    )
