"""What people are told: causes, other rows of the ledger, and lengths of time in plain words."""

from collections.abc import Mapping

# The rule of a command that a signal or an error ended after its training had come to its end: nothing was cut short.
COMMAND_ENDED = "command-ended"
SEVERITIES = ("critical", "warning", "info")  # worst first
ENDINGS = frozenset({"run-ended", COMMAND_ENDED})  # rules of an end that was no good one

CAUSES: Mapping[str, str] = {
    "validation": "Validation",
    "checkpoint": "Saving a checkpoint",
    "startup": "Start-up",
    "input-cpu": "Waiting for data: the loader's CPU",
    "input-storage": "Waiting for data: storage",
    "input-stalled": "Waiting for data: the loader stood still",
    "main-process": "Waiting for the trainer's main process",
    "launch-bound": "Kernels too small for the GPU",
    "memory-pressure": "Memory pressure",
    "trainer-blocked": "The trainer itself stood still",
    "other-process": "Another process on the GPU",
    "power-cap": "Power cap",
    "thermal": "Throttled by heat",
    "gpu-fault": "GPU fault",
    "waiting-for-peer": "Waiting for another GPU",
    "imbalance": "GPUs of one training far apart",
    "memory-growth": "GPU memory growing",
    "not-credible": "A reading that is not credible",
    "unused-gpu": "A GPU that nobody used",
    "run-ended": "The end of the training",
    COMMAND_ENDED: "The end of the command",
    "unexplained": "Not explained by anything recorded",
}

# Kinds of findings whose rule says little by its name.
RULES: Mapping[str, str] = {
    "run-ended": "Training cut short",
    COMMAND_ENDED: "Command ended badly after its training",
    "drop": "Drop in utilisation",
    "kernel": "Kernel message",
    "environment": "Set-up at odds with the machine",
    "gpu-lost": "GPU lost",
    "sustained-low": "Utilisation low for long",
}

# Rows of the ledger that are no cause of a finding.
LEDGER: Mapping[str, str] = {
    "work": "Work",
    "short gaps": "Short gaps between batches",
    "idle": "Idle, outside training",
    "final evaluation": "Final evaluation",
    "unmeasured": "Not measured",
}

# The same where nobody knows of any training, as in an imported log alone.
UNTOLD: Mapping[str, str] = {"short gaps": "Not busy, in short gaps", "idle": "Idle"}

# Phases that people write otherwise than machines.
PHASES: Mapping[str, str] = {"startup": "start-up"}

# What makes an epoch longer by its nature: told with one that stands out, and no cause for concern.
FIRST_EPOCH = "the first epoch of its process"
MOSAIC_CLOSED = "the mosaic was closed and the loader made anew"
LONGER_BY_NATURE = frozenset({FIRST_EPOCH, MOSAIC_CLOSED})


def cause_words(name: str) -> str:
    """Return a cause in plain words."""
    return CAUSES.get(name, name)


def rule_words(name: str) -> str:
    """Return a kind of finding in plain words."""
    return RULES.get(name, name.replace("-", " ").capitalize())


def row_words(name: str, *, is_training: bool = True) -> str:
    """Return a row of the ledger in plain words: a cause, or one of the rest.

    Where no training is known (`is_training` False), nothing is said of its batches.
    """
    return (None if is_training else UNTOLD.get(name)) or LEDGER.get(name) or cause_words(name)


def phase_words(name: str) -> str:
    """Return a phase in plain words, as within a sentence."""
    return PHASES.get(name, name)


def lower_first(words: str) -> str:
    """Return words as they stand within a sentence; an abbreviation stays as it is."""
    return words if words[:2].isupper() else words[:1].lower() + words[1:]


def length(seconds: float) -> str:
    """Return a duration as a person says it: 44 s, 2 min 5 s, 3 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
