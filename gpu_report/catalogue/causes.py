"""A row for each cause, and for each other row of the time ledger: its id, its name for people, what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpu_report.catalogue.shared_ids import GAPS, LAUNCH_BOUND, UNEXPLAINED, WAITING_FOR_PEER


@dataclass(frozen=True)
class CauseRow:
    """What GPU time can go to: the cause of a finding, or another row of the ledger (`of_findings` False).

    `step` is what to do about it, where that depends on nothing else. `once` and `always` are the same as the verdict
    leads with it, where it took time at moments (`{took}`, `{cost}`, `{probably}`, `{gpu}` are filled in) and where it
    lasts; without their full stop, empty where nothing can be said. `coloured` rows have a look of their own on the
    page (templates/report.css, `fill-...`, `over-...`). `without_training` is its name where no training is known.
    `phase` says that it is what YOLO does besides training, `expected` that it is no loss, `paid_once` that a training
    pays it once, however long it is, `is_input` that it is felt as waiting for data, `has_line` that a line of code
    is to blame, `in_gpu` that it lies in the GPU itself, whatever the training's code did meanwhile.
    """

    id: str
    name: str
    step: str = ""
    once: str = ""
    always: str = ""
    coloured: bool = True
    without_training: str = ""
    of_findings: bool = True
    phase: bool = False
    expected: bool = False
    paid_once: bool = False
    is_input: bool = False
    has_line: bool = False
    in_gpu: bool = False


_CAUSES = (
    CauseRow("work", "Work", of_findings=False, expected=True),
    CauseRow("startup", "Start-up", without_training="Start-up and warm-up", phase=True, expected=True, paid_once=True),
    CauseRow("validation", "Validation", phase=True, expected=True),
    CauseRow("checkpoint", "Saving a checkpoint", phase=True, expected=True),
    CauseRow("final evaluation", "Final evaluation", of_findings=False, phase=True, expected=True, paid_once=True),
    CauseRow("idle", "Idle, outside training", without_training="Idle", phase=True, expected=True),
    CauseRow("kept-speed", "Training kept its speed", expected=True, coloured=False),
    CauseRow("training", "Training (GPU utilisation unknown)", of_findings=False, expected=True),
    CauseRow(
        GAPS,
        "Short idle gaps in training",
        without_training="Short idle gaps",
        of_findings=False,
    ),
    CauseRow("unmeasured", "Not measured", of_findings=False),
    CauseRow(
        "input-cpu",
        "Waiting for data (CPU)",
        "make loading cheaper (`cache`, smaller images, a faster format), or give it more workers and cores.",
        "Speed up the data loader: the GPU {probably}waited {took} for data",
        "Speed up the data loader (more workers, more CPU cores): it is the limit",
        is_input=True,
    ),
    CauseRow(
        "cpu-limit",
        "Too few CPU cores",
        "let it run on more cores: `taskset`, Slurm's `--cpus-per-task`, Docker's `--cpus` and `--cpuset-cpus`.",
        "Give the training more CPU cores: it {probably}lost {took} for lack of them",
        "Give the training more CPU cores: it already uses all it is allowed",
        is_input=True,
    ),
    CauseRow(
        "input-storage",
        "Waiting for data (storage)",
        "move the data to a faster disk of this machine, or keep other programs off that disk.",
        "Move the data to a faster disk: the GPU {probably}waited {took} for storage",
        "Move the data to a faster disk: the GPU waits for storage",
        is_input=True,
    ),
    CauseRow(
        "input-stalled",
        "Waiting for data (workers blocked)",
        "find what the data-loader workers waited for: a network drive, a lock, a download. "
        "Try with a copy of the data on a local disk.",
        "Check what blocked the data-loader workers (network drive, lock): the GPU {probably}waited {took} for them",
        "Check what blocks the data-loader workers again and again (network drive, lock)",
        is_input=True,
        has_line=True,
    ),
    CauseRow(
        "input-latency",
        "Waiting for data (slow to arrive)",
        "read the data from a local disk, or cache it (`cache=disk`, `cache=ram`). More workers read side by side.",
        "Read the data from a local disk: the GPU {probably}waited {took} for images",
        "Read the data from a local disk, or cache it: each image takes long to arrive",
        is_input=True,
        has_line=True,
    ),
    CauseRow(
        "input-start",
        "Waiting for data (workers restart)",
        "keep the data-loader workers alive from epoch to epoch.",
        "Keep the data-loader workers alive from epoch to epoch: the GPU {probably}waited {took} for them",
        "Keep the data-loader workers alive from epoch to epoch",
        is_input=True,
    ),
    CauseRow(
        "memory-pressure",
        "Too little host memory",
        "",
        "Free host memory: the training {probably}waited {took} for it",
        "Free host memory: the training waits for it",
        is_input=True,
    ),
    CauseRow(
        "main-process",
        "Waiting for Python code (main process)",
        "look at what runs in the main process between two steps: callbacks, loggers, your own code.",
        "Look at what the main process did (callbacks, loggers): the GPU {probably}waited {took} for it",
        "Look at what the main process does between steps (callbacks, loggers): the GPU waits for it",
        has_line=True,
    ),
    CauseRow("own-gpu-work", "Your code's work on the GPU", coloured=False, has_line=True),
    CauseRow(
        LAUNCH_BOUND,
        "Steps too small for the GPU (launch-bound)",
        "",
        "",
        "Try a larger `batch`: it keeps this GPU busier",
    ),
    CauseRow(
        "many-tensors",
        "Batches of many small tensors",
        "hand over one tensor for each batch: stack them in `collate_fn`.",
        always="Hand over one tensor for each batch: the data set returns many small ones",
        coloured=False,
    ),
    CauseRow("preprocessing", "Pre-processing (CPU)", has_line=True),
    CauseRow("postprocessing", "Post-processing (NMS, results)", has_line=True),
    CauseRow("code-in-calls", "Your code in calls", coloured=False, has_line=True),
    CauseRow("tracking", "Tracking objects", coloured=False, has_line=True),
    CauseRow("saving", "Drawing and saving results", coloured=False, has_line=True),
    CauseRow("augmented-calls", "Images in three sizes (augment)", coloured=False),
    CauseRow("enlarged-images", "Images enlarged (imgsz)", coloured=False),
    CauseRow("new-shapes", "Kernels chosen anew for a new shape", coloured=False),
    CauseRow("new-threads", "Convolutions planned anew for a new thread", coloured=False),
    CauseRow("repeated-images", "Several calls for one image", coloured=False, has_line=True),
    CauseRow("small-calls", "Calls too small for the GPU (launch-bound)"),
    CauseRow("repeated-data", "Images validated several times", coloured=False),
    CauseRow("between-validations", "Work between validations", coloured=False),
    CauseRow("own-code", "Your code between calls", has_line=True),
    CauseRow("decoding", "Reading and decoding images", has_line=True),
    CauseRow("network", "Waiting for the network", has_line=True),
    CauseRow("receiving", "Copying from another process", has_line=True),
    CauseRow("model-loading", "Loading the model again", has_line=True),
    CauseRow(
        "trainer-blocked",
        "Main process blocked",
        "find what the main process waited for: a callback, a logger, a lock, a remote service. "
        "No YOLO argument changes this.",
        "Find what blocked the main process (callback, logger, lock): the GPU {probably}waited {took} for it",
        "Find what blocks the main process: a callback, a logger, a lock or a remote service",
        has_line=True,
    ),
    CauseRow(
        "other-process",
        "Another process on the GPU",
        "keep other programs off this GPU while it trains.",
        "Keep other programs off {gpu}: they {probably}cost the training {took}",
        "Keep other programs off this GPU while it trains",
        in_gpu=True,
    ),
    CauseRow(
        "power-cap",
        "Power limit",
        "raise the power limit, if you may: `nvidia-smi -q -d POWER` shows how far an administrator can.",
        "Raise the power limit of {gpu}, if you may: it cost at most {cost} of training",
        in_gpu=True,
    ),
    CauseRow(
        "thermal",
        "Throttled by heat",
        "look at the cooling: fans, dust, the air around the machine.",
        "Improve the cooling of {gpu}: heat cost at most {cost} of training",
        in_gpu=True,
    ),
    CauseRow(
        "lower-clock",
        "Lower GPU clock",
        "find what lowered the clock: `nvidia-smi -q -d CLOCK,PERFORMANCE` shows limits that somebody set.",
        "Find what lowered the clock of {gpu}: it cost at most {cost} of training",
        coloured=False,
        in_gpu=True,
    ),
    CauseRow(
        "pcie-link",
        "Slow PCIe link",
        "reseat the GPU and its riser or cable: its PCIe link is slow.",
        "Reseat {gpu} and its riser: its slow PCIe link {probably}cost {took}",
        coloured=False,
        in_gpu=True,
    ),
    CauseRow(
        "host-copies",
        "Copies to CPU memory",
        "keep tensors on the GPU: each step copies them to CPU memory.",
        always="Keep tensors on the GPU: each step copies them to CPU memory",
        coloured=False,
        has_line=True,
    ),
    CauseRow("gpu-fault", "GPU fault", once="Check {gpu}: a fault of it {probably}cost {took}", in_gpu=True),
    CauseRow(
        WAITING_FOR_PEER,
        "Waiting for another GPU",
        "find what held up the slower GPU: every step takes as long as the slowest one.",
        "Find what held up the slower GPU: {gpu} waited {took} for it",
    ),
    CauseRow("imbalance", "Uneven GPUs of one training", coloured=False),
    CauseRow(
        "memory-growth",
        "Memory growing",
        "look for what is kept from batch to batch: a list of losses or predictions, a loss summed up with its "
        "autograd graph, a cache.",
        always="Find what keeps GPU memory from batch to batch, such as a list of losses or a callback's cache",
        coloured=False,
    ),
    CauseRow("not-credible", "Implausible reading", coloured=False),
    CauseRow("unused-gpu", "Unused GPU", coloured=False),
    CauseRow("run-ended", "Training ended"),
    CauseRow("command-ended", "Command ended", coloured=False),
    CauseRow(UNEXPLAINED, "Unknown cause"),
)

CAUSES: Mapping[str, CauseRow] = {cause.id: cause for cause in _CAUSES}
