"""What can be found: a row for each rule and each cause, with its name for people and the summaries it counts in.

No other place lists rules or causes by name: what makes one special is a field of its row. A test holds the rows
against every rule and cause that the analysis can emit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

UNEXPLAINED = "unexplained"  # an honest answer
SEVERITIES = ("critical", "warning", "info")  # worst first


@dataclass(frozen=True)
class RuleRow:
    """A kind of finding.

    `id` stands in summary.json, `anchor` begins the ids of its findings (drop-3), `name` is what people read of the
    kind, `title` of one finding, `note_title` of one that is but a note. `numbered` findings have their number said
    even where there is one. `subject` is the column of samples.csv that its chart shows. The rest say in which
    summaries it counts, and may be left out:

    - `drop`, `fall`: utilisation fell below its line, or at least far;
    - `takes_time`: the ledger books the time of its findings to their cause;
    - `takes_epoch_time`: it makes an epoch longer while it lasts, so that limits of speed-up have a row for its cause;
    - `disturbs`: a comparison of two runs sets its time aside, unless it recurs;
    - `explains_slow_epoch`: an epoch that is long because of it is no finding of its own;
    - `harmless`: even a warning of it leaves a run healthy (a note, `info`, always does);
    - `mentioned_once`: the verdict has a sentence on its longest finding; `without_cause`: and adds the cause to it;
    - `ending`: an end that was no good one; `owns_kernel_lines`: what the kernel said of it is part of its finding.
    """

    id: str
    anchor: str
    name: str
    title: str
    note_title: str = ""
    numbered: bool = False
    subject: str = "gpu_util_pct"
    drop: bool = False
    fall: bool = False
    takes_time: bool = False
    takes_epoch_time: bool = False
    disturbs: bool = False
    explains_slow_epoch: bool = False
    harmless: bool = False
    mentioned_once: bool = False
    without_cause: bool = False
    ending: bool = False
    owns_kernel_lines: bool = False


@dataclass(frozen=True)
class CauseRow:
    """What GPU time can go to: the cause of a finding, or another row of the ledger (`of_findings` False).

    `step` is what to do about it, where that depends on nothing else. `coloured` rows have a colour of their own in the
    ledger (templates/report.css, `fill-...`). `untold` is its name where nobody knows of any training. `phase` says
    that it is what YOLO does besides training, `expected` that it is no loss, `paid_once` that a training pays it once,
    however long it is, `is_input` that it is felt as waiting for data.
    """

    id: str
    name: str
    step: str = ""
    coloured: bool = True
    untold: str = ""
    of_findings: bool = True
    phase: bool = False
    expected: bool = False
    paid_once: bool = False
    is_input: bool = False


_fall = partial(RuleRow, numbered=True, fall=True, takes_time=True, takes_epoch_time=True, disturbs=True)
_throttled = partial(RuleRow, subject="sm_clock_mhz", takes_epoch_time=True, explains_slow_epoch=True)
_end = partial(RuleRow, anchor="ended", title="How it ended", ending=True, owns_kernel_lines=True)

# The order is that in which the verdict mentions them.
_RULES = (
    _fall("drop", "drop", "Drop in utilisation", "Drop", drop=True),
    _fall("sustained-low", "drop", "Utilisation low for long", "Drop", drop=True),
    _fall(
        "slowdown",
        "slowdown",
        "Slowdown",
        "Slowdown",
        explains_slow_epoch=True,
        mentioned_once=True,
        without_cause=True,
    ),
    RuleRow("starved", "starved", "Starved", "Starved GPU", note_title="Room to win"),
    RuleRow("kernel", "kernel", "Kernel message", "Kernel event", harmless=True),
    RuleRow("gpu-lost", "gpu-lost", "GPU lost", "GPU lost", owns_kernel_lines=True),
    RuleRow(
        "other-process",
        "other-process",
        "Other process",
        "Other process",
        takes_epoch_time=True,
        disturbs=True,
        mentioned_once=True,
    ),
    RuleRow(
        "waiting-for-peer",
        "waiting",
        "Waiting for peer",
        "Waiting GPU",
        takes_time=True,
        takes_epoch_time=True,
        disturbs=True,
        mentioned_once=True,
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
        "slow-epoch", "slow-epoch", "Slow epoch", "Slow epoch", disturbs=True, mentioned_once=True, without_cause=True
    ),
    RuleRow("epochs-slowing", "epochs-slowing", "Epochs slowing", "Epochs slowing", mentioned_once=True),
    RuleRow("data-wait-growing", "data-wait-growing", "Data wait growing", "Data wait growing", mentioned_once=True),
    RuleRow(
        "memory-growth",
        "memory-growth",
        "Memory growth",
        "Growing memory",
        subject="memory_used_mib",
        mentioned_once=True,
    ),
    RuleRow(
        "memory-near-limit", "memory-near-limit", "Memory near limit", "Memory near limit", subject="memory_used_mib"
    ),
    _throttled("power-cap", "power-cap", "Power cap", "Power cap"),
    _throttled("thermal", "thermal", "Thermal", "Throttling by heat"),
    RuleRow("imbalance", "imbalance", "Imbalance", "Imbalance"),
    RuleRow("unused-gpu", "unused-gpu", "Unused gpu", "Unused GPU", harmless=True),
    RuleRow("not-credible", "not-credible", "Not credible", "Reading not credible"),
    RuleRow("environment", "environment", "Set-up at odds with the machine", "Set-up"),
    _end("run-ended", name="Training cut short"),
    # A signal or an error ended the command after its training had come to its end: nothing was cut short.
    _end("command-ended", name="Command ended badly after its training"),
)

_CAUSES = (
    CauseRow("work", "Work", of_findings=False, expected=True),
    CauseRow("startup", "Start-up", phase=True, expected=True, paid_once=True),
    CauseRow("validation", "Validation", phase=True, expected=True),
    CauseRow("checkpoint", "Saving a checkpoint", phase=True, expected=True),
    CauseRow("final evaluation", "Final evaluation", of_findings=False, phase=True, expected=True, paid_once=True),
    CauseRow("idle", "Idle, outside training", untold="Idle", of_findings=False, phase=True, expected=True),
    CauseRow("training", "Training (how busy is not known)", of_findings=False, expected=True),
    CauseRow("short gaps", "Short gaps between batches", untold="Not busy, in short gaps", of_findings=False),
    CauseRow("unmeasured", "Not measured", of_findings=False),
    CauseRow(
        "input-cpu",
        "Waiting for data: the loader's CPU",
        "keep other programs off these cores while it trains, or give the training more of them.",
        is_input=True,
    ),
    CauseRow(
        "cpu-limit",
        "Too few CPU cores: affinity or quota",
        "let it run on more cores: `taskset`, Slurm's `--cpus-per-task`, Docker's `--cpus` and `--cpuset-cpus`.",
        coloured=False,
        is_input=True,
    ),
    CauseRow(
        "input-storage",
        "Waiting for data: storage",
        "move the data to a faster disk of this machine, or keep other readers off that disk.",
        is_input=True,
    ),
    CauseRow(
        "input-stalled",
        "Waiting for data: the loader stood still",
        "find what the loader's workers waited for then: a network drive, a lock, a download. "
        "A copy of the data on a local disk rules the drive out.",
        is_input=True,
    ),
    CauseRow(
        "input-latency",
        "Waiting for data: each image takes long to come",
        "read the data from a local disk, or cache it (`cache=disk`, `cache=ram`); more workers wait side by side.",
        coloured=False,
        is_input=True,
    ),
    CauseRow("memory-pressure", "Memory pressure", is_input=True),
    CauseRow("main-process", "Waiting for the trainer's main process"),
    CauseRow("launch-bound", "Kernels too small for the GPU"),
    CauseRow(
        "trainer-blocked",
        "The trainer itself stood still",
        "find what the main process waited for then: a callback, a logger, a lock, a remote service. "
        "No argument of YOLO changes it.",
    ),
    CauseRow("other-process", "Another process on the GPU", "keep other programs off this GPU while it trains."),
    CauseRow(
        "power-cap",
        "Power cap",
        "`nvidia-smi -q -d POWER` shows the limit, and how far an administrator may raise it.",
    ),
    CauseRow("thermal", "Throttled by heat", "look at the cooling: fans, dust, the air around the machine."),
    CauseRow("gpu-fault", "GPU fault"),
    CauseRow("waiting-for-peer", "Waiting for another GPU"),
    CauseRow("imbalance", "GPUs of one training far apart", coloured=False),
    CauseRow(
        "memory-growth",
        "GPU memory growing",
        "look for what is kept from batch to batch: a list of losses or predictions, a loss summed up "
        "with its graph, a callback that caches.",
        coloured=False,
    ),
    CauseRow("not-credible", "A reading that is not credible", coloured=False),
    CauseRow("unused-gpu", "A GPU that nobody used", coloured=False),
    CauseRow("run-ended", "The end of the training"),
    CauseRow("command-ended", "The end of the command", coloured=False),
    CauseRow(UNEXPLAINED, "Not explained by anything recorded"),
)

RULES: Mapping[str, RuleRow] = {rule.id: rule for rule in _RULES}
CAUSES: Mapping[str, CauseRow] = {cause.id: cause for cause in _CAUSES}

# Phases that people write otherwise than machines.
PHASES: Mapping[str, str] = {"startup": "start-up"}


def cause_words(name: str) -> str:
    """Return a cause in plain words."""
    return CAUSES[name].name if name in CAUSES else name


def rule_words(name: str) -> str:
    """Return a kind of finding in plain words."""
    return RULES[name].name if name in RULES else name.replace("-", " ").capitalize()


def row_words(name: str, *, is_training: bool = True) -> str:
    """Return a row of the ledger in plain words: a cause, or one of the rest.

    Where no training is known (`is_training` False), nothing is said of its batches.
    """
    untold = CAUSES[name].untold if name in CAUSES and not is_training else ""
    return untold or cause_words(name)


def phase_words(name: str) -> str:
    """Return a phase in plain words, as within a sentence."""
    return PHASES.get(name, name)
