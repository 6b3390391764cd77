"""What can be found: a row for each rule and each cause, with its name for people and the summaries it counts in.

No other place lists rules or causes by name: what makes one special is a field of its row. A test holds the rows
against every rule and cause that the analysis can emit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

UNEXPLAINED = "unexplained"  # an honest answer
GAPS = "short gaps"  # what is left of training where nothing explains it: nobody can act on it
LOADER, OTHER_NODE = "the data loader", "a rank on another node"  # what a finding waited for
WAITING_FOR_PEER = "waiting-for-peer"  # a rule and its cause
SLOW_RANK = "slow-rank"  # a rule: why the rank was late that others waited for
LAUNCH_BOUND = "launch-bound"  # a cause: nobody is to blame for a model whose steps are small
ENDS_SHARE_KEY = "epoch_ends_pct"  # of evidence: the share of an epoch that its end takes
STEADY_KEY = "steady_util_pct"  # of evidence: mean utilisation in the steady state
SWAPPED_KEY = "validated_images"  # of evidence: so many images validate for each that trains, and may be swapped
ENLARGED_KEY = "enlarged_pixels"  # of evidence: how many times the pixels of the images on disk YOLO trains with
SLOW_IMAGES_KEY = "waited_for_images_s"  # of evidence: how long training waited for images on slow storage
SLEPT_KEY = "slept_s"  # of evidence: how long the machine slept in a training
ENDS_EPOCHS_KEY = "epochs_compared"  # of evidence: how many epochs tell what their ends take
SINCE_EPOCH_KEY = "since_epoch"  # of evidence: the first epoch of those that are slower than the first ones
SLOW_COST_KEY = "slow_cost_s"  # of evidence: what slow epochs took longer in all
HUNG_KEY = "hung_s"  # of evidence: how long a training reported nothing before its end
OCCURRED_KEY = "occurred"  # of evidence: how often something happened
GREW_COST_KEY = "grew_cost_s"  # of evidence: what epochs took longer in all since they grew
GROWTH_KEY = "grown_by_the_end_s"  # of evidence: what an epoch takes longer by the end than at the beginning
# Of evidence: what a function of the user's cost a batch at first and in the end, and what it adds to each epoch.
GROWN_FROM_KEY, GROWN_TO_KEY, GROWS_ON_KEY = "grown_from_s", "grown_to_s", "grows_on_s"
BUSY_THREAD_KEY = "busy_thread_pct"  # of evidence: the share of time that a thread beside the main one ran Python
GARBAGE_KEY = "garbage_pct"  # of evidence: the share of time that Python's garbage collector took
USER_CODE_IDLE_KEY = "user_code_idle_pct"  # of evidence: the share of the time that the GPU was idle because of it
SEEN_IDLE_KEY = "seen_idle_pct"  # of evidence: the share of training time in which a GPU was seen idle in it
START_WORK_KEY = "start_work_s"  # of evidence: what a kind of work took of the start-up, with its words
START_AGAIN_KEY = "start_again_s"  # of evidence: what each later epoch takes for the same
ON_CPU_KEY = "main_cpu_of_training"  # of evidence: the CPU of a training that ran on it, as the finding says
USER_CODE_KEY = "user_code_pct"  # of evidence: the share of training time that a function of the user's takes
BESIDES_LAYERS = "GPU work besides the model's layers"
SEVERITIES = ("critical", "warning", "info")  # worst first


@dataclass(frozen=True)
class RuleRow:
    """A kind of finding.

    `id` stands in summary.json, `anchor` begins the ids of its findings (drop-3), `name` is what people read of the
    kind, `title` of one finding, `note_title` of one that is but a note. `subject` is the column of samples.csv that
    its chart shows. The rest say in which summaries it counts, and may be left out:

    - `drop`, `fall`: utilisation fell below its line, or at least far;
    - `at_epoch_ends`: it makes the ends of epochs longer, all of them, and the GPU has nothing to do meanwhile;
    - `takes_time`: the ledger books the time of its findings to their cause;
    - `takes_epoch_time`: it makes an epoch longer while it lasts, so that limits of speed-up have a row for its cause;
    - `disturbs`: a comparison of two runs sets its time aside, unless it recurs;
    - `explains_slow_epoch`: an epoch that is long because of it is no finding of its own;
    - `harmless`: even a warning of it leaves a run healthy (a note, `info`, always does);
    - `mentioned_once`: the verdict has a sentence on its longest finding; `without_cause`: and adds the cause to it;
    - `in_steps`: it takes its part of each step, so that it lasts as long as the training does;
    - `of_calls`: it is about the calls of a model, not about a training;
    - `ending`: an end that was no good one; `owns_kernel_lines`: what the kernel said of it is part of its finding.
    """

    id: str
    anchor: str
    name: str
    title: str
    note_title: str = ""
    subject: str = "gpu_util_pct"
    drop: bool = False
    fall: bool = False
    at_epoch_ends: bool = False
    takes_time: bool = False
    takes_epoch_time: bool = False
    disturbs: bool = False
    explains_slow_epoch: bool = False
    harmless: bool = False
    mentioned_once: bool = False
    without_cause: bool = False
    ending: bool = False
    owns_kernel_lines: bool = False
    of_calls: bool = False
    in_steps: bool = False


@dataclass(frozen=True)
class CauseRow:
    """What GPU time can go to: the cause of a finding, or another row of the ledger (`of_findings` False).

    `step` is what to do about it, where that depends on nothing else. `once` and `always` are the same as the verdict
    leads with it, where it took time at moments (`{took}`, `{cost}`, `{probably}`, `{gpu}` are filled in) and where it
    lasts; without their full stop, empty where nothing can be said. `coloured` rows have a look of their own on the
    page (templates/report.css, `fill-...`, `over-...`). `without_training` is its name where no training is known.
    `phase` says that it is what YOLO does besides training, `expected` that it is no loss, `paid_once` that a training
    pays it once, however long it is, `is_input` that it is felt as waiting for data, `has_line` that a line of code
    is to blame.
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


_fall = partial(RuleRow, fall=True, takes_time=True, takes_epoch_time=True, disturbs=True)
_throttled = partial(RuleRow, subject="sm_clock_mhz", takes_epoch_time=True, explains_slow_epoch=True)
_profiled = partial(RuleRow, anchor="step", name="Seen by PyTorch's profiler", in_steps=True)
_of_calls = partial(RuleRow, of_calls=True)
_end = partial(RuleRow, anchor="ended", title="Training cut short", ending=True, owns_kernel_lines=True)

# The order is that in which the verdict mentions them.
_RULES = (
    _fall("drop", "drop", "Drop in GPU utilisation", "Drop in GPU utilisation", drop=True),
    _fall("sustained-low", "drop", "Low GPU utilisation for long", "Low GPU utilisation for long", drop=True),
    _fall(
        "slowdown",
        "slowdown",
        "Slowdown",
        "Slowdown",
        explains_slow_epoch=True,
        mentioned_once=True,
        without_cause=True,
    ),
    RuleRow("starved", "starved", "Under-utilised GPU", "Under-utilised GPU", note_title="Partly idle GPU"),
    RuleRow("user-code", "user-code", "Slow callback or own code", "Slow callback or own code"),
    RuleRow("other-gpu-work", "other-work", BESIDES_LAYERS, BESIDES_LAYERS, in_steps=True),
    _profiled("pageable-copies", title="Copies from pageable memory"),
    _profiled("full-precision", title="Convolutions in 32 bits (FP32)"),
    _profiled("layout-changes", title="Conversions of tensor layout in each step"),
    _profiled("allocator-churn", title="GPU memory allocated (cudaMalloc) in each step"),
    _profiled("slow-optimizer", title="Slow optimizer"),
    _profiled("gpu-syncs", title="GPU synchronisation in each step"),
    _profiled("exposed-communication", title="GPU waits for gradient synchronisation (all-reduce)"),
    _profiled("graph-breaks", title="Graph breaks in torch.compile"),
    _profiled("recompiles", title="Recompilation in training"),
    _profiled("slow-nms", title="Slow non-maximum suppression"),
    _of_calls("slow-between-calls", "between-calls", "Slow code between calls", "Slow code between calls"),
    _of_calls("few-cores", "few-cores", "Too few CPU cores", "Too few CPU cores"),
    _of_calls("other-process-in-calls", "other-in-calls", "Another process on the GPU", "Another process on the GPU"),
    _of_calls("rare-calls", "rare-calls", "Mostly idle between calls", "Mostly idle between calls"),
    _of_calls("slow-preprocessing", "preprocessing", "Slow pre-processing", "Slow pre-processing"),
    _of_calls("slow-postprocessing", "postprocessing", "Slow post-processing", "Slow post-processing"),
    _of_calls("slow-code-in-calls", "code-in-calls", "Slow code in calls", "Slow code in calls"),
    _of_calls("slow-tracking", "tracking", "Slow tracking", "Slow tracking"),
    _of_calls("slow-saving", "saving", "Slow drawing and saving", "Slow drawing and saving"),
    _of_calls("augmented-calls", "augment", "Images in three sizes", "Images in three sizes"),
    _of_calls("enlarged-images", "enlarged", "Images enlarged", "Images enlarged"),
    _of_calls("new-shapes", "new-shapes", "Slow calls of a new shape", "Slow calls of a new shape"),
    _of_calls("repeated-images", "repeated-images", "Several calls for one image", "Several calls for one image"),
    _of_calls("small-calls", "small-calls", "Calls too small for the GPU", "Calls too small for the GPU"),
    _of_calls("model-reloaded", "model-reloaded", "Model loaded again and again", "Model loaded again and again"),
    _of_calls("full-precision-calls", "fp32", "Inference in 32 bits (FP32)", "Inference in 32 bits (FP32)"),
    _of_calls("slow-after-pause", "after-pause", "Slow calls after a pause", "Slow calls after a pause"),
    _of_calls("cpu-inference", "cpu-inference", "Inference on the CPU", "Inference on the CPU"),
    _of_calls("pytorch-on-cpu", "pytorch-on-cpu", "PyTorch on the CPU", "PyTorch on the CPU"),
    _of_calls("shared-gpu", "shared-gpu", "Several calls at once", "Several calls at once"),
    RuleRow("kernel", "kernel", "Kernel message", "Kernel message", harmless=True),
    RuleRow("gpu-lost", "gpu-lost", "GPU lost", "GPU lost", owns_kernel_lines=True),
    RuleRow(
        "other-process",
        "other-process",
        "Another process on the GPU",
        "Another process on the GPU",
        takes_epoch_time=True,
        disturbs=True,
        mentioned_once=True,
    ),
    RuleRow(
        WAITING_FOR_PEER,
        "waiting",
        "Waiting for another GPU",
        "Waiting for another GPU",
        takes_time=True,
        takes_epoch_time=True,
        disturbs=True,
        mentioned_once=True,
    ),
    RuleRow(
        SLOW_RANK,
        SLOW_RANK,
        "Slow rank (training process of a GPU)",
        "Slow rank (training process of a GPU)",
        takes_time=True,
        takes_epoch_time=True,
        disturbs=True,
    ),
    RuleRow(
        "slow-validation",
        "slow-validation",
        "Slow validation",
        "Slow validation",
        takes_time=True,
        disturbs=True,
        mentioned_once=True,
    ),
    RuleRow(
        "slow-checkpoint", "slow-checkpoint", "Slow checkpoint", "Slow checkpoint", takes_time=True, mentioned_once=True
    ),
    RuleRow(
        "held-epoch-end",
        "epoch-end",
        "Time lost at the end of epochs",
        "Time lost at the end of epochs",
        at_epoch_ends=True,
        takes_time=True,
    ),
    RuleRow("slow-start", "slow-start", "Slow start-up", "Slow start-up"),
    RuleRow(
        "between-validations",
        "between-validations",
        "Time between validations",
        "Time between validations",
        takes_time=True,
    ),
    RuleRow("repeated-data", "repeated-data", "Images validated several times", "Images validated several times"),
    RuleRow("between-trainings", "between-trainings", "Time between trainings", "Time between trainings"),
    RuleRow("slow-exit", "slow-exit", "Slow end of the command", "Slow end of the command"),
    RuleRow("long-epoch-ends", "long-epoch-ends", "Long validation and saving", "Long validation and saving"),
    RuleRow(
        "slow-epoch", "slow-epoch", "Slow epoch", "Slow epoch", disturbs=True, mentioned_once=True, without_cause=True
    ),
    RuleRow("epochs-slowing", "epochs-slowing", "Epochs get slower", "Epochs get slower", mentioned_once=True),
    RuleRow(
        "data-wait-growing",
        "data-wait-growing",
        "Longer waits for data",
        "Longer waits for data",
        mentioned_once=True,
    ),
    RuleRow(
        "memory-growth",
        "memory-growth",
        "GPU memory keeps growing",
        "GPU memory keeps growing",
        subject="memory_used_mib",
        mentioned_once=True,
    ),
    RuleRow(
        "host-memory-growth",
        "host-memory-growth",
        "Host memory keeps growing",
        "Host memory keeps growing",
        subject="host:memory_used_mib",
        mentioned_once=True,
    ),
    RuleRow(
        "memory-near-limit",
        "memory-near-limit",
        "GPU memory nearly full",
        "GPU memory nearly full",
        subject="memory_used_mib",
    ),
    _throttled("power-cap", "power-cap", "Slowed by the power limit", "Slowed by the power limit"),
    _throttled("thermal", "thermal", "Throttled by heat", "Throttled by heat"),
    _throttled("lower-clock", "lower-clock", "Lower GPU clock", "Lower GPU clock"),
    RuleRow("imbalance", "imbalance", "Uneven load on GPUs", "Uneven load on GPUs", mentioned_once=True),
    RuleRow("unused-gpu", "unused-gpu", "Unused GPU", "Unused GPU", harmless=True),
    RuleRow("not-credible", "not-credible", "Implausible reading", "Implausible reading"),
    RuleRow("environment", "environment", "Configuration problem", "Configuration problem"),
    _end("run-ended", name="Training cut short"),
    RuleRow(
        "missing-rank",
        "missing-rank",
        "Rank missing from a collective",
        "Rank missing from a collective",
        mentioned_once=True,
    ),
    RuleRow("nccl-warning", "nccl", "NCCL warning", "NCCL warning", harmless=True),
    RuleRow("left-behind", "left-behind", "Processes left running", "Processes left running"),
    # A signal or an error ended the command after its training, or its last call: nothing was cut short.
    _end("command-ended", name="Command cut short after its work", title="Command cut short after its work"),
)

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
        "No argument of YOLO changes it.",
        "Find what blocked the main process (callback, logger, lock): the GPU was {probably}idle for {took}",
        "Find what blocks the main process: a callback, a logger, a lock or a remote service",
        has_line=True,
    ),
    CauseRow(
        "other-process",
        "Another process on the GPU",
        "keep other programs off this GPU while it trains.",
        "Keep other programs off {gpu}: they {probably}cost the training {took}",
        "Keep other programs off this GPU while it trains",
    ),
    CauseRow(
        "power-cap",
        "Power limit",
        "raise the power limit, if you may: `nvidia-smi -q -d POWER` shows how far an administrator can.",
        "Raise the power limit of {gpu}, if you may: it cost at most {cost} of training",
    ),
    CauseRow(
        "thermal",
        "Throttled by heat",
        "look at the cooling: fans, dust, the air around the machine.",
        "Improve the cooling of {gpu}: heat cost at most {cost} of training",
    ),
    CauseRow(
        "lower-clock",
        "Lower GPU clock",
        "find what lowered the clock: `nvidia-smi -q -d CLOCK,PERFORMANCE` shows limits that somebody set.",
        "Find what lowered the clock of {gpu}: it cost at most {cost} of training",
        coloured=False,
    ),
    CauseRow(
        "pcie-link",
        "Slow PCIe link",
        "reseat the GPU and its riser or cable: its PCIe link is slow.",
        "Reseat {gpu} and its riser: its slow PCIe link {probably}cost {took}",
        coloured=False,
    ),
    CauseRow(
        "host-copies",
        "Copies to CPU memory",
        "keep tensors on the GPU: each step copies them to CPU memory.",
        always="Keep tensors on the GPU: each step copies them to CPU memory",
        coloured=False,
        has_line=True,
    ),
    CauseRow("gpu-fault", "GPU fault", once="Check {gpu}: a fault of it {probably}cost {took}"),
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
        always="Find what keeps GPU memory from batch to batch: a list of losses, or a callback that caches",
        coloured=False,
    ),
    CauseRow("not-credible", "Implausible reading", coloured=False),
    CauseRow("unused-gpu", "Unused GPU", coloured=False),
    CauseRow("run-ended", "Training ended"),
    CauseRow("command-ended", "Command ended", coloured=False),
    CauseRow(UNEXPLAINED, "Unknown cause"),
)

MEMORY_GROWS = frozenset({"memory-growth", "host-memory-growth"})  # what ends a program sooner or later

RULES: Mapping[str, RuleRow] = {rule.id: rule for rule in _RULES}
CAUSES: Mapping[str, CauseRow] = {cause.id: cause for cause in _CAUSES}

# Phases that people write otherwise than machines.
PHASES: Mapping[str, str] = {"startup": "start-up"}


def cause_words(name: str) -> str:
    """Return a cause in plain words."""
    return CAUSES[name].name if name in CAUSES else name


def cause_look(name: str) -> str:
    """Return how the page's classes name a cause: `fill-...` is its colour, `over-...` its texture."""
    return name.replace(" ", "-") if name in CAUSES and CAUSES[name].coloured else "other"


def repeats(rule: str, cause: str) -> bool:
    """Tell whether the name of a cause says again what the title of a finding of this rule says."""
    return cause == rule or {rule, cause} <= MEMORY_GROWS


def rule_words(name: str) -> str:
    """Return a kind of finding in plain words."""
    return RULES[name].name if name in RULES else name.replace("-", " ").capitalize()


def row_words(name: str, *, is_training: bool = True) -> str:
    """Return a row of the ledger in plain words: a cause, or one of the rest.

    Where no training is known (`is_training` False), nothing is said of its batches.
    """
    without_training = CAUSES[name].without_training if name in CAUSES and not is_training else ""
    return without_training or cause_words(name)


def phase_words(name: str) -> str:
    """Return a phase in plain words, as within a sentence."""
    return PHASES.get(name, name)
