"""What a person can do about a cause that no argument of the training mends: where to look, in a sentence or two."""

from gpu_report.catalogue import CAUSES, GAPS, RULES, UNEXPLAINED, row_words
from gpu_report.model import Analysis, Finding
from gpu_report.wording import every_words, place_words

_STOPPED = "find who paused the training: Ctrl-Z in its terminal, `kill -STOP`, a scheduler that suspends jobs."
_RECORD = "record the next training with `gpu-report record -- COMMAND`: it shows what YOLO did at every second."

_LESS_OFTEN = "Let it run less often, on fewer images, or after the training."

# What helps against a function of the user's that is called in each step, for each image or after the training, by what
# the GPU waits for.
_OWN_STEPS = {
    "main-process": "Make {it} cheaper (no loops in Python, no `.item()`), call it less often, or let another "
    "process do it.",
    "trainer-blocked": "Call {it} less often, or let a background thread wait instead.",
    "input-cpu": "Do {work} once before the training, and store the results.",
    "idle": "Do {work} in a command of its own once this one has freed the GPU, or in several processes. "
    "If it writes files, compress them less.",
    "input-stalled": "Give {it} a time limit, or do its work once before the training.",
    "input-latency": "Let {it} wait for no network or lock, or do its work once before the training.",
}

# Recorded with its command, and yet nothing came from inside it.
_INJECT = (
    "record the next training with callbacks: start it with neither `python -I` nor a cleared environment. "
    "Then the report shows what YOLO did at every second."
)


def next_step(finding: Finding, analysis: Analysis) -> str:
    """Return what to do about a finding beside its advice: the function that the verdict names.

    Without one, where to look into a finding that has no advice; empty where that is not known.
    """
    if finding.rule == "user-code":  # whose summary says where, and which share
        return own_step(finding, analysis)
    if look := _named(finding, analysis):
        how = own_step(finding, analysis)
        return f"{look} {how}" if how else look.removesuffix(".")
    if finding.advice or finding.expected or finding.severity == "info":
        return ""
    if finding.cause is None:
        return _as_foreign(finding)
    return _of_cause(finding, finding.cause.name, analysis)


def own_step(finding: Finding, analysis: Analysis, it: str = "it") -> str:
    """Return what helps against the function of the user's that the verdict names, where no advice says it.

    `it` is how that function is called where the sentence stands by itself.
    """
    is_own = finding.rule == "user-code" or bool(_named(finding, analysis))
    if finding.advice or finding.cause is None or not is_own:
        return ""
    return _OWN_STEPS.get(finding.cause.name, "").format(it=it, work="its work" if it == "it" else f"the work of {it}")


def named_step(finding: Finding, analysis: Analysis) -> str:
    """Return likewise a sentence that stands by itself: it names the function."""
    own = next((at for at in finding.where if not at.is_yolo), None)
    return own_step(finding, analysis, "it" if own is None else f"`{own.function.replace('`', chr(39))}`")


def _named(finding: Finding, analysis: Analysis) -> str:
    """Return the sentence of the verdict that names a function of the user's for a finding, empty without one."""
    named = (each.text for each in analysis.verdict.sentences if each.names_own and finding.id in each.findings)
    return next(named, "")


def _of_cause(finding: Finding, cause: str, analysis: Analysis) -> str:
    if any(evidence.key == "stopped_processes" for evidence in finding.evidence):
        return _STOPPED if cause == "trainer-blocked" else ""
    most = finding.where[0] if finding.where else None
    if most is not None and most.is_most and not most.is_yolo:  # its own lines nobody can change
        time = "the idle time" if analysis.gpus else "that time"
        return f"look at {place_words(most)}: {100 * most.share:.0f} % of {time} was there."
    if finding.every_epochs is not None and (cause == UNEXPLAINED or CAUSES[cause].has_line):
        return f"look at what runs{every_words(finding.every_epochs)}. {_LESS_OFTEN}"
    if cause == UNEXPLAINED:
        return "" if analysis.run.inside else _from_inside(analysis)
    if cause == "memory-pressure":
        return _less_memory(analysis)
    return CAUSES[cause].step


def _less_memory(analysis: Analysis) -> str:
    """Return how to use less host memory; where the images are known not to be cached in it, not by caching none."""
    asked = [str(yolo.args.get("cache")) for yolo in analysis.run.yolo_runs]
    less = "fewer workers" if asked and set(asked) <= {"False", "disk"} else "fewer workers, no cache=ram"
    return f"use less host memory ({less}), or give the machine more."


def _as_foreign(finding: Finding) -> str:
    """Return what to do about a fault that the kernel named of another program, empty where it named none."""
    if not is_anothers(finding):
        return ""
    who = next(near.event.who("the process") for near in finding.kernel_events if near.event.of_another)
    return f"this training continued: nothing to do for it. If {who} is yours, read its own output."


def is_anothers(finding: Finding) -> bool:
    """Tell whether a finding is a fault that the kernel named of another program: the training needs nothing."""
    return finding.rule == "kernel" and any(near.event.of_another for near in finding.kernel_events)


def gaps_step(analysis: Analysis) -> str:
    """Return what to do about short gaps between batches where the verdict calls them the largest loss, else nothing.

    No argument is known to close them; a larger batch has fewer, and epochs of 1.8 and 1.3 s with 64 and 128 images in
    place of 4.7 s with 32 (sample_runs/ab-batch-*). A training that was cut short has other worries.
    """
    is_largest = any(each.kind == "largest loss" and each.about == GAPS for each in analysis.verdict.sentences)
    trained = any(phase.name == "train" for phase in analysis.phases)
    if not is_largest or not trained or any(RULES[finding.rule].ending for finding in analysis.findings):
        return ""
    return (
        f"{row_words(GAPS)}: no setting is known to close them. Look at what runs in the main process between two "
        "steps (callbacks, loggers). A larger batch means fewer gaps."
    )


def _from_inside(analysis: Analysis) -> str:
    return _INJECT if analysis.run.recording.command else _RECORD
