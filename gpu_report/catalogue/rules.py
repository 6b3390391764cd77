"""A row for each rule: its id, its name for people, and the summaries in which its findings count."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from gpu_report.catalogue.shared_ids import SLOW_RANK, WAITING_FOR_PEER

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
    - `lowers_clock`: a GPU ran at a lower clock, which costs its share of the time at most;
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
    lowers_clock: bool = False


_fall = partial(RuleRow, fall=True, takes_time=True, takes_epoch_time=True, disturbs=True)
_throttled = partial(
    RuleRow, subject="sm_clock_mhz", lowers_clock=True, takes_epoch_time=True, explains_slow_epoch=True
)
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
    _of_calls("new-threads", "new-threads", "Slow calls of new threads", "Slow calls of new threads"),
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

RULES: Mapping[str, RuleRow] = {rule.id: rule for rule in _RULES}
