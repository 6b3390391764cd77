"""An exception that ended a training, in words: what it was, what it said, and what can be done about it."""

from collections.abc import Mapping

from gpu_report.analyse.timeline.exception_kinds import ExceptionKind, exception_kind
from gpu_report.analyse.timeline.trainings import IN_MEMORY, whole
from gpu_report.model import Advice, InsideRun
from gpu_report.wording import exception_words, setting_location_words

WHAT: Mapping[ExceptionKind, str] = {
    "disk full": "a disk was full",
    "gpu memory": "CUDA ran out of memory",
    "cuda": "CUDA failed",
    "communication": "communication between its processes failed",
    "loader worker": "a data-loader worker died",
    "nan": "the loss was NaN and did not recover",
    "nan gradient": "anomaly detection was on and met a NaN gradient",
    "data set": "the data set could not be read",
}
ADVICE: Mapping[ExceptionKind, str] = {
    "disk full": "Free space on that disk (`df -h` shows it), or write elsewhere with `project=`",
    "cuda": "Run it again with `CUDA_LAUNCH_BLOCKING=1`: the traceback then names the operation that failed",
    "communication": "Find the training process (rank) that stopped first: its output says why, `NCCL_DEBUG=INFO` more",
    "loader worker": "Train with `workers=0` once: the error then comes with its own traceback",
    "nan": "Lower the learning rate (`lr0`), or train with `amp=False`; look for broken labels and divisions by zero",
    "data set": "Check the paths in the data set's YAML file, and the image or label that the message names",
}
# ... and where its code says more.
OF_CODE: Mapping[str, str] = {
    "cudaErrorAssert": "Check the labels: usually a class number is not below `nc`. "
    "A run with `device=cpu` shows which operation failed",
    "cudaErrorNoKernelImageForDevice": "Install a PyTorch that was built for this GPU",
    "cudaErrorECCUncorrectable": "The GPU's memory failed: let an administrator look at it, and train on another GPU",
    "cudaErrorDevicesUnavailable": "Another process holds the GPU (exclusive mode): `nvidia-smi` shows which",
}
# torch.amp.GradScaler leaves out a step whose gradients are not finite, and lowers its scale: with it they are usual.
ANOMALY_OFF = "Turn off `torch.autograd.set_detect_anomaly`"
SKIPPED = f"{ANOMALY_OFF}: with AMP, NaN gradients are usual, and such steps are skipped"
NOT_SKIPPED = "Lower the learning rate (`lr0`) and look for broken labels: without AMP, a NaN gradient is a fault"
KILLED = "SIGKILL"
OF_WORKER: Mapping[str, str] = {
    KILLED: "Lower `workers`: mostly the kernel killed it to free host memory",
    "SIGBUS": "Give the container more shared memory (`--shm-size` or `--ipc=host`), or lower `workers`",
}


def exception_summary(process: InsideRun) -> str:
    """Return how an exception ended a training, as what the training did: a sentence without its subject.

    The words of a collective that timed out are numbers of NCCL, which stand in the cause.
    """
    kind = exception_kind(process)
    if kind == "gpu memory":  # its own words are numbers of the allocator; what held memory is evidence
        return "ran out of GPU memory"
    said = exception_words(process.error, "" if kind == "communication" else process.raised.message)
    if kind in WHAT:
        return f"crashed: {WHAT[kind]}{said}"
    return f"crashed{said}"


def exception_cause(process: InsideRun) -> str:
    """Return why a training ended, as a part of a sentence."""
    kind, said = exception_kind(process), exception_words(process.error, process.raised.message)
    if kind == "communication":
        return f"{WHAT[kind]}{said}"
    return WHAT.get(kind, f"an exception{said} ended it")


def exception_advice(process: InsideRun, args: Mapping[str, object], *, gpu_failed: bool) -> tuple[Advice, ...]:
    """Return what can be done about it, nothing where nobody knows; `args` are those of its args.yaml.

    Where a GPU failed just before, its own finding says what to do: no operation of the training is at fault.
    """
    kind = exception_kind(process)
    if kind == "gpu memory":
        return (gpu_memory_advice(process.settings, args),)
    usual = "" if kind == "cuda" and gpu_failed else ADVICE.get(kind, "")
    text = _of_worker(process, args) or _of_nan(process) or OF_CODE.get(process.raised.code or "") or usual
    return (Advice(text, short=text),) if text else ()


def _of_worker(process: InsideRun, args: Mapping[str, object]) -> str:
    """Return what to do about a loader's worker that died; images in host memory are named where they are there."""
    worker, cache = process.raised.loader_worker or "", process.settings.get("cache")
    text = OF_WORKER.get(worker, "")
    cached = str(args.get("cache") if cache is None else cache) in IN_MEMORY
    return text.replace("`workers`", "`workers` or leave out `cache=ram`") if worker == KILLED and cached else text


def _of_nan(process: InsideRun) -> str:
    """Return what to do about a NaN gradient; `amp` is True where its gradients are scaled, else a name or False."""
    if exception_kind(process) != "nan gradient":
        return ""
    amp = process.settings.get("amp")
    place = setting_location_words(process.setting_locations, "detect_anomaly")
    text = ANOMALY_OFF if amp is None else SKIPPED if amp is True else NOT_SKIPPED
    return text.replace(ANOMALY_OFF, f"{ANOMALY_OFF}{place}")


def gpu_memory_advice(settings: Mapping[str, object], args: Mapping[str, object]) -> Advice:
    """Return what needs less GPU memory: half the batch that a training had, as far as its GPUs can share that.

    `settings` were in effect, `args` stand in its args.yaml: nothing else is an argument of the run.
    """
    batch, ranks = whole(settings.get("batch")) or 0, whole(settings.get("world_size")) or 1
    half = batch // 2 // ranks * ranks
    why = "what a step holds grows with `batch`, and with the square of `imgsz`"
    if not half or "batch" not in args:
        return Advice(why, short="Lower `batch` or `imgsz`")
    return Advice(why, "batch", str(batch), str(half), short=f"Set `batch={half}` (now {batch}), or lower `imgsz`")
