"""What a stack says: the line of code that a process stood in, and whether it waited for its loader."""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import takewhile

from gpu_report.model import CodeKind, Frame, ProcessStacks, Stack

# Whose lines: the processes that train, those that load their data, and another thread of a process that trains.
MAIN, WORKERS, THREAD = "main", "workers", "thread"

# Where a loader's worker begins: what lies further out is of the process that it was forked from.
WORKER_LOOP = "_worker_loop"
# Frames that say nothing of what is done: the interpreter's own, the standard library's and ours.
RECORDER = re.compile(r"[\\/]gpu_report_inside[\\/]")
INTERPRETER = re.compile(
    r"^<(?!ipython)|[\\/]lib(?:64)?[\\/]python3[^\\/]*[\\/](?!site-packages|dist-packages)|" + RECORDER.pattern,
    re.IGNORECASE,
)
# What an installed package does is named by the line that calls it; YOLO's own lines its users can look up.
INTEGRATIONS = re.compile(r"[\\/]ultralytics[\\/]utils[\\/]callbacks[\\/](?!base\.py)")
# YOLO's progress bar passes on what another loop yields: who loops over it says more.
PROGRESS_BAR = re.compile(r"[\\/]ultralytics[\\/]utils[\\/]tqdm\.py$")
YOLO = re.compile(r"[\\/]ultralytics[\\/]")
# What `torch.compile` writes itself is nobody's own code either: a file is named by 256 bits, as `c` and base 32, and
# its folder by the first two of those letters (torch's codecache.py), wherever the cache lies.
PACKAGE = re.compile(
    r"[\\/](?:(?:site|dist)-packages[\\/](?!ultralytics[\\/])|torchinductor_[^\\/]*[\\/]"
    r"|([a-z2-7]{2})[\\/]c\1[a-z2-7]{49}\.py$)",
    re.IGNORECASE,
)

# Frames of the main process while it waits for the loader's workers.
LOADER = re.compile(r"[\\/]torch[\\/]utils[\\/]data[\\/]dataloader\.py$")
DRAWS = "_next_index"  # its function that asks the sampler which images come next
# Calls a user's callbacks; what else of the user's YOLO calls is an override, or was put in a function's place.
CALLBACKS = "run_callbacks"
# Where torch launches the kernels of a step: the model, forwards and backwards, and its optimizer. In `backward` a
# thread of autograd's does so, and the main one sleeps meanwhile.
STEP = re.compile(r"[\\/]torch[\\/](?:nn[\\/]modules[\\/]module|autograd[\\/][^\\/]*|optim[\\/][^\\/]*)\.py$")
STEPS = re.compile(r"[\\/]torch[\\/](?:optim[\\/]|(?:cuda[\\/])?amp[\\/]grad_scaler|utils[\\/]_contextlib)")
SCALER = re.compile(r"[\\/]torch[\\/](?:cuda[\\/])?amp[\\/]grad_scaler\.py$")  # once a step, before the optimizer
TORCH = re.compile(r"[\\/](?:torch|ultralytics)[\\/]")
OPTIMIZER_STEP = (
    "optimizer_step"  # of YOLO's trainer, or an override: what it does between the passes and the loss shown
)
FORWARD = "forward"  # what torch calls of a module: another function of the user's there is a hook, or a helper
# What YOLO does besides steps has a model run, too.
# YOLO's functions (ultralytics 8.4) that run no model: one that runs within an override of them is the user's own work.
WITHOUT_MODEL = frozenset({"preprocess_batch", "preprocess", "postprocess", "update_metrics"})
NO_STEP = re.compile(
    r"[\\/]ultralytics[\\/](?:utils[\\/]callbacks[\\/]|engine[\\/](?:validator|predictor|exporter)\.py$)"
)
VALIDATOR = re.compile(r"[\\/]ultralytics[\\/](?:engine[\\/]validator|models[\\/]\w+[\\/](?:\w+[\\/])?val)\.py$")

MOST_FILES = 4096  # whose kind is kept: a process that imports everything has 2,000
MOST_FRAMES = 8192  # likewise: the notes of a day have 3,000


def _of_files(pattern: re.Pattern[str]) -> Callable[[Frame], bool]:
    """Return what tells whether a frame's file is of a kind, looked up once: many stacks share few files."""
    is_of = lru_cache(MOST_FILES)(lambda file: pattern.search(file) is not None)
    return lambda frame: is_of(frame.file)


in_interpreter, in_known_package, in_yolo, in_torch = map(_of_files, (INTERPRETER, PACKAGE, YOLO, TORCH))
in_integration, in_loader, in_step, in_no_step = map(_of_files, (INTEGRATIONS, LOADER, STEP, NO_STEP))
in_progress_bar, in_scaler, in_validator = map(_of_files, (PROGRESS_BAR, SCALER, VALIDATOR))
# is torch's between YOLO and an optimizer that it steps, or ours, which times what YOLO calls
passes_on = _of_files(re.compile(f"{STEPS.pattern}|{RECORDER.pattern}"))


def in_package(frame: Frame) -> bool:
    """Tell whether a frame is an installed package's other than YOLO."""
    return in_known_package(frame) or (frame.installed and not in_yolo(frame))


def stacks_waiting_for_loader(process: ProcessStacks) -> list[int]:
    """Return the numbers of a main process's stacks in which it waits for its loader's next batch."""
    return [number for number, stack in process.stacks.items() if _waits_for_loader(stack)]


def _waits_for_loader(stack: Stack) -> bool:
    """Tell whether a stack lies in the loader; to draw the next samples the main process works itself."""
    return any(map(is_loader, stack)) and not any(frame.function == DRAWS and is_loader(frame) for frame in stack)


# Calls that return once a GPU has done all that was asked of it: they give a number on the host. A tensor is one
# of few things that `int`, `float` and `bool` take so long for that a note falls into them. Names that NumPy has, too,
# such as `unique`, are none of these: there they compute.
NUMBERS = frozenset({"item", "int", "float", "bool", "is_nonzero"})  # of these one a call
WAIT_FOR_GPU = NUMBERS | {"cpu", "masked_select", "synchronize", "_cuda_synchronize"}


# Functions of torch in which a rank waits until the others have come to the same call. Those that take any Python
# object pickle it besides, and call one of these.
DISTRIBUTED = re.compile(r"[\\/]torch[\\/]distributed[\\/]distributed_c10d\.py$")
COLLECTIVES = frozenset(
    {"barrier", "monitored_barrier", "broadcast", "all_reduce", "reduce", "all_gather", "all_gather_into_tensor"}
    | {"gather", "scatter", "reduce_scatter", "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "recv"}
)


CONVOLUTIONS = frozenset({"conv1d", "conv2d", "conv3d", "conv_transpose2d"})  # functions of C


def calls_convolution(stack: Stack) -> bool:
    """Tell whether a stack stands in the call of a convolution: launched, or while cuDNN looks for a kernel."""
    return bool(stack) and stack[0].called in CONVOLUTIONS


def waits_for_gpu(stack: Stack) -> bool:
    """Tell whether a main process that stands in this stack waits for what it asked of its GPU."""
    return bool(stack) and stack[0].called in WAIT_FOR_GPU


def waits_for_step(stack: Stack) -> bool:
    """Tell whether a main process waits for its GPU after a step's passes, which YOLO does itself a moment later.

    YOLO shows the loss of each batch (ultralytics 8.4), which waits for all that the GPU has to do in the step.
    Anywhere else the GPU has done that already, or could be given more to do meanwhile.
    """
    return waits_for_gpu(stack) and any(frame.function == OPTIMIZER_STEP for frame in stack)


@lru_cache(maxsize=8192)
def location_of(stack: Stack, *, of_worker: bool = False) -> Frame | None:
    """Return the innermost frame of the user's or YOLO's own code; of a worker that waits for work None.

    Where there is none it is the innermost frame of a package, of an interpreter that does nothing else its innermost.
    """
    inner = of_worker_alone(stack) if of_worker else stack
    call = _call_of_yolo(inner)
    # what a callback has YOLO do, such as a prediction, is named by the line of the callback
    theirs = [] if call is None else [frame for frame in inner[: call + 1] if kind_of(frame) == "own"]
    own = next((frame for frame in (*theirs, *inner) if not is_plumbing(frame)), None)
    package = next((frame for frame in inner if not in_interpreter(frame)), None)
    line = own or package or (inner[0] if inner and not of_worker else None)
    return line and line._replace(called="", function=_named(line, inner))  # a line is one, whatever it calls


def _named(line: Frame, stack: Stack) -> str:
    """Return the function that a line is in: of an expression such as `<genexpr>` the one that it is written in."""
    outer = takewhile(lambda frame: frame.file == line.file, stack[stack.index(line) :])
    return next((frame.function for frame in outer if not frame.function.startswith("<")), line.function)


def called_by_yolo(stack: Stack) -> Frame | None:
    """Return the frame of the user's function that YOLO called and has not come back from, None where there is none.

    A callback is one however many functions it calls itself, YOLO's among them; so is one of YOLO's for a logger, such
    as W&B, and an optimizer of the user's, which torch calls for YOLO. An override is none while it has YOLO, a model
    or an optimizer do its usual work (`super().validate()`): to run a model is none where YOLO runs none. A block of
    the user's model is none either.
    """
    at = _call_of_yolo(stack)
    return None if at is None else stack[at]._replace(line=0, called="")


def serves_validation(stack: Stack) -> bool:
    """Tell whether a validator called the user's function that `called_by_yolo` returns, and needs what it gives."""
    at = _call_of_yolo(stack)
    outer = () if at is None else stack[at + 1 :]
    return any(map(in_validator, outer)) and all(frame.function != CALLBACKS for frame in outer)


def _call_of_yolo(stack: Stack) -> int | None:
    """Return where in a stack the function lies that `called_by_yolo` returns."""
    outer = stack[-1] if stack else None
    for at in range(len(stack) - 2, -1, -1):
        outer = outer if outer and passes_on(stack[at + 1]) else stack[at + 1]
        if not in_yolo(outer) or in_integration(outer):
            continue
        if not (kind_of(stack[at]) == "own" or in_integration(stack[at])):
            continue
        if outer.function == CALLBACKS or not _is_usual_work(stack[at].function, stack[:at]):
            return at
    return None


def _is_usual_work(function: str, inner: Stack) -> bool:
    """Tell whether what a function of the user's calls is what YOLO, a model or an optimizer does in its place."""
    runs = any(map(in_step, inner)) or any(map(in_scaler, inner))
    return not runs and any(map(in_yolo, inner)) if function in WITHOUT_MODEL else runs or any(map(in_yolo, inner))


def own_within_call(stack: Stack) -> Stack:
    """Return the lines of the user's functions within the one that `called_by_yolo` returns, that one first."""
    call = _call_of_yolo(stack)
    inner = () if call is None else stack[: call + 1]
    own = (frame for at, frame in enumerate(inner) if at == call or kind_of(frame) == "own")
    return tuple(frame._replace(called="") for frame in own if not frame.function.startswith("<"))[::-1]


@lru_cache(maxsize=8192)
def launches(stack: Stack) -> bool:
    """Tell whether a main process launches the kernels of a training step in a stack.

    It does in no callback, hook or optimizer of the user's, and not where it waits for the GPU, or another package
    computes.
    """
    outermost = next((at for at in range(len(stack) - 1, -1, -1) if in_step(stack[at])), None)
    if outermost is None or waits_for_gpu(stack) or any(map(in_no_step, stack)):
        return False
    own = [frame for frame in stack[:outermost] if kind_of(frame) == "own"]
    inner = next((frame for frame in stack if not in_interpreter(frame)), stack[0])
    ours = inner in own or in_torch(inner)
    return ours and called_by_yolo(stack) is None and all(frame.function == FORWARD for frame in own)


# YOLO's functions that do their work image by image, as loops in Python (ultralytics 8.4's utils/loss.py).
BY_IMAGE = frozenset({"calculate_segmentation_loss"})


def works_by_image(stack: Stack) -> bool:
    """Tell whether what a main process does in a stack grows with the images of a batch, besides a user's own code."""
    return any(frame.function in BY_IMAGE and in_yolo(frame) for frame in stack)


@lru_cache(maxsize=8192)
def own_layer(stack: Stack) -> Frame | None:
    """Return the line of the user's own layer (`forward` of a module) that a stack lies in, else None."""
    if not any(map(in_step, stack)):
        return None
    mine = (frame for frame in stack if frame.function == FORWARD and kind_of(frame) == "own")
    found = next(mine, None)
    return found and found._replace(called="")


# torch's calls that copy a tensor between GPU and CPU memory, and its functions that do so for the backward pass
COPY_CALLS = frozenset({"copy_", "to", "cpu"})
SAVED_ON_CPU = frozenset({"pack_to_cpu", "unpack_from_cpu"})


@lru_cache(maxsize=8192)
def copies_for(stack: Stack) -> Frame | None:
    """Return the user's innermost line, within YOLO, for which torch copies a tensor in a stack; else None."""
    if not stack or not (stack[0].called in COPY_CALLS or stack[0].function in SAVED_ON_CPU):
        return None
    outer = max((at for at, frame in enumerate(stack) if in_yolo(frame)), default=0)
    found = next((frame for frame in stack[:outer] if kind_of(frame) == "own"), None)
    return found and found._replace(called="")


MODEL = re.compile(r"[\\/]ultralytics[\\/]nn[\\/]tasks\.py$")


@lru_cache(maxsize=8192)
def in_forward_pass(stack: Stack) -> bool:
    """Tell whether a stack lies in the forward pass of YOLO's model, without its loss."""
    return any(frame.function == "predict" and MODEL.search(frame.file) for frame in stack)


LAYER_CALL = re.compile(
    r"[\\/]torch[\\/]nn[\\/]modules[\\/]module\.py$"
)  # every call of a layer or a network passes here


@lru_cache(maxsize=8192)
def runs_network(stack: Stack) -> Frame | None:
    """Return the user's line, within YOLO, that calls a layer of another network than the one that trains; else None.

    Of several the outermost. What lies within the forward pass of YOLO's model are layers of its own.
    """
    for at in range(len(stack) - 1, 0, -1):
        frame = stack[at]
        if frame.function == "predict" and MODEL.search(frame.file):
            return None
        is_call = LAYER_CALL.search(stack[at - 1].file) is not None
        if is_call and kind_of(frame) == "own" and any(map(in_yolo, stack[at + 1 :])):
            return frame._replace(called="")
    return None


IN_TORCH = re.compile(r"[\\/]torch[\\/](?:nn|autograd|amp|utils)[\\/]")
FUNCTIONAL = re.compile(r"[\\/]torch[\\/]nn[\\/]functional\.py$")
ATTENTION = "multi_head_attention_forward"  # torch's; without weights it calls `scaled_dot_product_attention`
OF_WEIGHTS = frozenset({"bmm", "baddbmm"})  # functions of C that it calls for weights alone (torch 1.9 to 2.11)


def computes_weights(stack: Stack) -> Frame | None:
    """Return the user's line whose call of attention computes its weights in a stack (`need_weights`); else None.

    Then each head's whole matrix of weights lies in memory, which PyTorch's fused kernels never write. Of a call by a
    package's layer no line of the user's can be changed.
    """
    if not stack or stack[0].function != ATTENTION or stack[0].called not in OF_WEIGHTS:
        return None
    if not FUNCTIONAL.search(stack[0].file):
        return None
    caller = next((frame for frame in stack if not IN_TORCH.search(frame.file)), None)
    return caller._replace(called="") if caller is not None and kind_of(caller) == "own" else None


BATCH_NORM = re.compile(r"[\\/]torch[\\/]nn[\\/]modules[\\/]batchnorm\.py$")
EXCHANGES = re.compile(r"[\\/]torch[\\/]nn[\\/]modules[\\/]_functions\.py$")  # what it calls where ranks are several


@lru_cache(maxsize=8192)
def in_synced_norm(stack: Stack) -> bool:
    """Tell whether a stack lies in a `SyncBatchNorm`, in which ranks exchange what they saw of a batch."""
    return any(EXCHANGES.search(each.file) for each in stack) and any(BATCH_NORM.search(each.file) for each in stack)


def line_of(process: ProcessStacks, number: int) -> Frame | None:
    """Return the line of code of one of a process's stacks, None of a worker that waits for work."""
    return location_of(process.stacks.get(number, ()), of_worker=process.is_worker)


@lru_cache(maxsize=8192)
def shown_frames(stack: Stack, *, of_worker: bool = False) -> Stack:
    """Return what a flame graph shows of a stack, outermost frame first.

    Of plumbing that is the innermost frame, and where a main process asks its loader for a batch. Of a worker that
    waits for work nothing.
    """
    line = location_of(stack, of_worker=of_worker)
    if line is None:
        return ()
    inner = of_worker_alone(stack) if of_worker else stack
    asks = next((frame for frame in reversed(inner) if is_loader(frame)), None)
    return tuple(
        frame for at, frame in enumerate(inner) if at == 0 or frame == line or frame is asks or not is_plumbing(frame)
    )[::-1]


# YOLO's functions that read, decode and resize an image: what is cached is not read again.
READING = frozenset({"load_image", "imread", "imread_unicode", "verify_image_label"})
NPY = re.compile(r"[\\/]numpy[\\/]lib[\\/]_?(?:npyio|format)")  # of NumPy: what `np.load` reads with
ENTERS = "__enter__"  # of `with`: of what C does there only a lock's takes time
# C functions that only wait.
WAITING_CALLS = frozenset({"sleep", "select", "poll", "accept", "wait", "acquire", ENTERS})
# A socket's functions, in Python and in C, each of which waits for another machine or process.
SOCKETS = re.compile(r"[\\/](?:socket|ssl)\.py$")
READS_SOCKET = frozenset({"recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "recvmsg_into", "_accept"})
LOCKS = re.compile(r"[\\/](?:threading|synchronize)\.py$")
MANAGERS = re.compile(r"[\\/]multiprocessing[\\/]managers\.py$")
CONNECTION = re.compile(r"[\\/]multiprocessing[\\/]connection\.py$")


def reads_image(stack: Stack) -> bool:
    """Tell whether YOLO reads an image in a stack."""
    return any(frame.function in READING and in_yolo(frame) for frame in stack)


def reads_npy(stack: Stack) -> bool:
    """Tell whether YOLO reads an image from the .npy file that `cache=disk` wrote, which any later training reads."""
    at = next((at for at, frame in enumerate(stack) if frame.function == "load_image" and in_yolo(frame)), 0)
    return any(NPY.search(frame.file) for frame in stack[:at])


def waits_for_lock(stack: Stack) -> bool:
    """Tell whether the innermost frame of a stack is a lock's."""
    return bool(stack) and (stack[0].called in {"acquire", ENTERS} or bool(LOCKS.search(stack[0].file)))


def waits_for_socket(stack: Stack) -> bool:
    """Tell whether a thread that uses no CPU in a stack waits there for what comes over a socket."""
    return bool(stack) and (SOCKETS.search(stack[0].file) is not None or stack[0].called in READS_SOCKET)


def waits_for_process(stack: Stack) -> bool:
    """Tell whether a stack waits for the process of a `multiprocessing` manager to answer."""
    return bool(stack) and bool(CONNECTION.search(stack[0].file)) and any(MANAGERS.search(each.file) for each in stack)


def is_loader(frame: Frame) -> bool:
    """Tell whether a frame is torch's loader, in the process that asks it for batches."""
    return in_loader(frame)


@lru_cache(MOST_FRAMES)
def is_plumbing(frame: Frame) -> bool:
    """Tell whether a frame is the interpreter's, YOLO's progress bar's, or an installed package's other than YOLO."""
    return in_interpreter(frame) or in_package(frame) or in_progress_bar(frame)


@lru_cache(MOST_FRAMES)
def kind_of(frame: Frame) -> CodeKind:
    """Return whose code a frame is."""
    if is_loader(frame):
        return "loader"
    if frame.function in COLLECTIVES and DISTRIBUTED.search(frame.file):
        return "ranks"
    if is_plumbing(frame):
        return "library"
    return "yolo" if in_yolo(frame) else "own"


def of_worker_alone(stack: Stack) -> Stack:
    """Return the frames of what a worker does, without those of the process that it was forked from.

    They are none before its loop begins, and those of torch's own worker file while it waits for work.
    """
    inner = next((at for at, frame in enumerate(stack) if frame.function == WORKER_LOOP), 0)
    return () if _asks_for_work(stack[:inner]) else stack[:inner]


def _asks_for_work(inner: Stack) -> bool:
    """Tell whether a worker stands in its queue: nothing but the standard library lies within its loop."""
    return all(map(in_interpreter, inner))
