"""What can be found: a row for each rule and each cause, with its name for people and the summaries it counts in.

No other place lists rules or causes by name: what makes one special is a field of its row. A test holds the rows
against every rule and cause that the analysis can emit.
"""

from collections.abc import Mapping
from dataclasses import dataclass

UNEXPLAINED = "unexplained"  # an honest answer
SEVERITIES = ("critical", "warning", "info")  # worst first


@dataclass(frozen=True)
class Rule:
    """A kind of finding.

    `id` stands in summary.json, `anchor` begins the ids of its findings (drop-3), `name` is what people read of the
    kind, `title` of one finding, `note_title` of one that is but a note. `numbered` findings have their number said
    even where there is one. `subject` is the quantity that its chart shows. The rest say in which summaries it counts:

    - `drop`, `fall`: utilisation fell below its line, or at least far;
    - `takes_time`: the ledger books the time of its findings to their cause;
    - `takes_epoch_time`: it makes an epoch longer while it lasts, so that limits of speed-up have a row for its cause;
    - `explains_slow_epoch`: an epoch that is long because of it is no finding of its own;
    - `harmless`: a run that has it may still be called healthy;
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
    explains_slow_epoch: bool = False
    harmless: bool = False
    mentioned_once: bool = False
    without_cause: bool = False
    ending: bool = False
    owns_kernel_lines: bool = False


@dataclass(frozen=True)
class Cause:
    """What GPU time can go to: the cause of a finding, or another row of the ledger (`of_findings` False).

    `step` is what to do about it, where that depends on nothing else. `coloured` rows have a colour of their own in the
    ledger (templates/report.css, `kind-...`). `untold` is its name where nobody knows of any training. `phase` says
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


# The order is that in which the verdict mentions them.
_RULES = (
    Rule(
        "drop",
        "drop",
        "Drop in utilisation",
        "Drop",
        numbered=True,
        drop=True,
        fall=True,
        takes_time=True,
        takes_epoch_time=True,
    ),
    Rule(
        "sustained-low",
        "drop",
        "Utilisation low for long",
        "Drop",
        numbered=True,
        drop=True,
        fall=True,
        takes_time=True,
        takes_epoch_time=True,
    ),
    Rule(
        "slowdown",
        "slowdown",
        "Slowdown",
        "Slowdown",
        numbered=True,
        fall=True,
        takes_time=True,
        takes_epoch_time=True,
        explains_slow_epoch=True,
        mentioned_once=True,
        without_cause=True,
    ),
    Rule("starved", "starved", "Starved", "Starved GPU", note_title="Room to win"),
    Rule("kernel", "kernel", "Kernel message", "Kernel event", harmless=True),
    Rule("gpu-lost", "gpu-lost", "GPU lost", "GPU lost", owns_kernel_lines=True),
    Rule(
        "other-process", "other-process", "Other process", "Other process", takes_epoch_time=True, mentioned_once=True
    ),
    Rule(
        "waiting-for-peer",
        "waiting",
        "Waiting for peer",
        "Waiting GPU",
        takes_time=True,
        takes_epoch_time=True,
        mentioned_once=True,
    ),
    Rule("slow-epoch", "slow-epoch", "Slow epoch", "Slow epoch", mentioned_once=True, without_cause=True),
    Rule("epochs-slowing", "epochs-slowing", "Epochs slowing", "Epochs slowing", mentioned_once=True),
    Rule("data-wait-growing", "data-wait-growing", "Data wait growing", "Data wait growing", mentioned_once=True),
    Rule(
        "memory-growth",
        "memory-growth",
        "Memory growth",
        "Growing memory",
        subject="memory_used_mib",
        mentioned_once=True,
    ),
    Rule("memory-near-limit", "memory-near-limit", "Memory near limit", "Memory near limit", subject="memory_used_mib"),
    Rule(
        "power-cap",
        "power-cap",
        "Power cap",
        "Power cap",
        subject="sm_clock_mhz",
        takes_epoch_time=True,
        explains_slow_epoch=True,
    ),
    Rule(
        "thermal",
        "thermal",
        "Thermal",
        "Throttling by heat",
        subject="sm_clock_mhz",
        takes_epoch_time=True,
        explains_slow_epoch=True,
    ),
    Rule("imbalance", "imbalance", "Imbalance", "Imbalance"),
    Rule("unused-gpu", "unused-gpu", "Unused gpu", "Unused GPU", harmless=True),
    Rule("not-credible", "not-credible", "Not credible", "Reading not credible"),
    Rule("environment", "environment", "Set-up at odds with the machine", "Set-up"),
    Rule("run-ended", "ended", "Training cut short", "How it ended", ending=True, owns_kernel_lines=True),
    # A signal or an error ended the command after its training had come to its end: nothing was cut short.
    Rule(
        "command-ended",
        "ended",
        "Command ended badly after its training",
        "How it ended",
        ending=True,
        owns_kernel_lines=True,
    ),
)

_CAUSES = (
    Cause("work", "Work", of_findings=False, expected=True),
    Cause("startup", "Start-up", phase=True, expected=True, paid_once=True),
    Cause("validation", "Validation", phase=True, expected=True),
    Cause("checkpoint", "Saving a checkpoint", phase=True, expected=True),
    Cause("final evaluation", "Final evaluation", of_findings=False, phase=True, expected=True, paid_once=True),
    Cause("idle", "Idle, outside training", untold="Idle", of_findings=False, phase=True, expected=True),
    Cause("short gaps", "Short gaps between batches", untold="Not busy, in short gaps", of_findings=False),
    Cause("unmeasured", "Not measured", of_findings=False),
    Cause(
        "input-cpu",
        "Waiting for data: the loader's CPU",
        "keep other programs off these cores while it trains, or give the training more of them.",
        is_input=True,
    ),
    Cause(
        "input-storage",
        "Waiting for data: storage",
        "move the data to a faster disk of this machine, or keep other readers off that disk.",
        is_input=True,
    ),
    Cause(
        "input-stalled",
        "Waiting for data: the loader stood still",
        "find what the loader's workers waited for then: a network drive, a lock, a download. "
        "A copy of the data on a local disk rules the drive out.",
        is_input=True,
    ),
    Cause("memory-pressure", "Memory pressure", is_input=True),
    Cause("main-process", "Waiting for the trainer's main process"),
    Cause("launch-bound", "Kernels too small for the GPU"),
    Cause(
        "trainer-blocked",
        "The trainer itself stood still",
        "find what the main process waited for then: a callback, a logger, a lock, a remote service. "
        "No argument of YOLO changes it.",
    ),
    Cause("other-process", "Another process on the GPU", "keep other programs off this GPU while it trains."),
    Cause(
        "power-cap",
        "Power cap",
        "`nvidia-smi -q -d POWER` shows the limit, and how far an administrator may raise it.",
    ),
    Cause("thermal", "Throttled by heat", "look at the cooling: fans, dust, the air around the machine."),
    Cause("gpu-fault", "GPU fault"),
    Cause("waiting-for-peer", "Waiting for another GPU"),
    Cause("imbalance", "GPUs of one training far apart", coloured=False),
    Cause(
        "memory-growth",
        "GPU memory growing",
        "look for what is kept from batch to batch: a list of losses or predictions, a loss summed up "
        "with its graph, a callback that caches.",
        coloured=False,
    ),
    Cause("not-credible", "A reading that is not credible", coloured=False),
    Cause("unused-gpu", "A GPU that nobody used", coloured=False),
    Cause("run-ended", "The end of the training"),
    Cause("command-ended", "The end of the command", coloured=False),
    Cause(UNEXPLAINED, "Not explained by anything recorded"),
)

RULES: Mapping[str, Rule] = {rule.id: rule for rule in _RULES}
CAUSES: Mapping[str, Cause] = {cause.id: cause for cause in _CAUSES}

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
