"""What kinds of work a start-up consists of, by the frames of the main process, and what to do about each."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from gpu_report.analyse.signals.code.stack_kinds import in_yolo, is_loader, is_plumbing
from gpu_report.model import Advice, Frame, Stack


class StartWork(NamedTuple):
    """A kind of work before the first step: in words ("90 % of it ..."), what to do, and which stacks do it."""

    words: str
    advice: Advice
    does: Callable[[Stack], bool]


def _calls(*functions: str) -> Callable[[Stack], bool]:
    """Return what tells whether a stack lies in some functions of YOLO, whose threads the main process waits for."""
    return lambda stack: any(frame.function in functions and in_yolo(frame) for frame in stack)


# Frames that a model enters only to be compiled: those of `eval_frame.py` and of compiled code it enters in each step.
_COMPILER = re.compile(r"[\\/]torch[\\/](?:_dynamo[\\/](?:convert_frame|output_graph)|_inductor[\\/]compile_fx)\.py$")
NO_COMPILING = frozenset({"run", "<module>"})  # what a compiled model runs in each step, and an import of the compiler
_BACKWARD = "_engine_run_backward"
# Of multiprocessing's ways to start a process those in which it begins with an empty interpreter.
_SPAWNS = re.compile(r"[\\/]multiprocessing[\\/]popen_(?:spawn_\w+|forkserver)\.py$")
_BUILD = re.compile(r"[\\/]data[\\/]build\.py$")
_IMPORTS = re.compile(r"^<frozen importlib\._bootstrap")
_CONVOLUTION = re.compile(r"[\\/]torch[\\/]nn[\\/]modules[\\/]conv\.py$")


def _compiles(stack: Stack) -> bool:
    return any(_COMPILER.search(frame.file) and frame.function not in NO_COMPILING for frame in stack)


def runs_backward(stack: Stack) -> bool:
    """Tell whether the main process waits for autograd, on whose thread a compiled model's backward is compiled."""
    return bool(stack) and stack[0].function == _BACKWARD


def resets_loader(frame: Frame) -> bool:
    """Tell whether a frame is YOLO's loader that ends its workers, to start them anew (`InfiniteDataLoader.reset`)."""
    return frame.function == "reset" and in_yolo(frame) and bool(_BUILD.search(frame.file))


def _spawns(stack: Stack) -> bool:
    return any(_SPAWNS.search(frame.file) for frame in stack) and any(map(is_loader, stack))


def _imports(stack: Stack) -> bool:
    """Tell whether a stack imports something: a module that computes while it is imported does that itself."""
    first = next((frame for frame in stack if _is_import(frame) or not is_plumbing(frame)), None)
    return first is not None and _is_import(first)


def _is_import(frame: Frame) -> bool:
    return bool(_IMPORTS.search(frame.file))


def _searches(stack: Stack) -> bool:
    return bool(stack) and stack[0].called.startswith("conv") and bool(_CONVOLUTION.search(stack[0].file))


SCANS = StartWork(
    "checking its images and labels",
    Advice(
        "Let YOLO check the data set once to its end. It saves the result as `*.cache` next to the labels, if it may "
        "write there. The next run reads that file",
        short="Let YOLO check the data set once to its end: the next run reads the result",
    ),
    _calls("cache_labels", "verify_images"),
)
CACHES = StartWork(
    "filling its cache of images",
    Advice(
        "`cache=ram` decodes each image at every start. `cache=disk` writes them once, and later runs read them",
        short="Set `cache=disk`, which later runs read, or leave out `cache`",
    ),
    _calls("cache_images"),
)
COMPILES = StartWork(
    "compiling the model",
    Advice(
        "`torch.compile` compiles the model in its first step, and again for shapes that it has not seen. A short run "
        "is faster without it (`compile=False`); with it keep the image size fixed (no `multi_scale`)",
        short="Leave out `compile` in short runs: each new image size is compiled anew",
    ),
    _compiles,
)
SPAWNS = StartWork(
    "spawning data-loader workers",
    Advice(
        "Look for `multiprocessing_context` where your code makes a `DataLoader`, or for `set_start_method`. With "
        "`spawn` each worker imports everything anew, one after the other. `fork`, the default on Linux, copies the "
        "running process. `persistent_workers=True` keeps workers from epoch to epoch",
        short="Start workers by `fork`, or keep them: `persistent_workers=True`",
    ),
    _spawns,
)
SEARCHES = StartWork(
    "in the first calls of convolutions",
    Advice(
        "Keep the image size fixed. cuDNN loads its kernels at the first call of each convolution and, with "
        "`torch.backends.cudnn.benchmark`, tries several for each image size",
        short="Keep the image size fixed: cuDNN looks for kernels for each size",
    ),
    _searches,
)
IMPORTS = StartWork(
    "importing packages",
    Advice(
        "Python reads thousands of small files to import its packages. Put its environment on a local disk, and leave "
        "out imports that the training does not need",
        short="Put the Python environment on a local disk",
    ),
    _imports,
)
# The first that fits: a compiler imports, and so does a loader's start.
KINDS = (SCANS, CACHES, COMPILES, SPAWNS, IMPORTS, SEARCHES)


@lru_cache(maxsize=8192)
def work_of(stack: Stack) -> StartWork | None:
    """Return which kind of work of a start-up a main process does in a stack, None of any other."""
    return next((kind for kind in KINDS if kind.does(stack)), None)
