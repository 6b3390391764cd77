"""What was not measured, and why."""

from collections.abc import Iterator, Sequence

from gpu_report.analyse.busy_in_training import Busy
from gpu_report.analyse.context import Context
from gpu_report.analyse.results.verdict.work import (
    is_long,
)
from gpu_report.analyse.rules.setup.torch import no_gpu_for_torch
from gpu_report.analyse.timeseries.gpu_series import unsampled_s
from gpu_report.catalogue import SLEPT_KEY
from gpu_report.model import (
    STARVED_PCT,
    WELL_COVERED,
    Finding,
    Sentence,
)
from gpu_report.wording import length


def unsampled_share(context: Context) -> float:
    """Return which share of all GPU time (0 to 1) no tick sampled, whatever the driver kept of it."""
    total_s = context.run.duration_s * len(context.series)
    missing_s = sum(unsampled_s(series, context.run.duration_s) for series in context.series)
    return missing_s / total_s if total_s > 0 else 0.0


def recorder_killed(context: Context) -> Iterator[Sentence]:
    """Yield for how long a training went on that nobody recorded any more, for the recorder was killed."""
    if context.unrecorded_s:
        text = f"The recorder was killed: the last {length(context.unrecorded_s)} of training have no readings."
        yield Sentence("unmeasured", text)


def unmeasured(trained: Busy, unseen: float, unsampled: float) -> Iterator[Sentence]:
    """Yield how much of the time is not known, or of how much the driver kept readings of utilisation alone."""
    if unseen > 1 - WELL_COVERED:
        text = f"{100 * unseen:.0f} % of the time was not measured: what happened then is unknown."
        yield Sentence("unmeasured", text)
    elif trained is not None and unsampled > 1 - WELL_COVERED:
        missing = f"{100 * unsampled:.0f} % of the samples are missing"
        yield Sentence("unmeasured", f"{missing}: there only the driver's own utilisation readings are known.")


def machine_slept(context: Context, findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield for how long the machine slept, from a minute on: nothing ran, and no clock of the recording went on."""
    if context.run.slept_long:
        slept = f"The machine slept for {length(context.run.slept_s)}"
        of_training = tuple(each.id for each in findings if each.number(SLEPT_KEY) is not None)
        yield Sentence("slept", f"{slept}, and nothing ran: prevent its suspend.", of_training)


def no_gpu(context: Context) -> Iterator[Sentence]:
    """Yield that no GPU was recorded, and why, where the recorder said so; a training that missed one has said it."""
    if context.run.gpus or any(no_gpu_for_torch(context, training) for training in context.trainings):
        return
    reason = (context.run.no_gpu or {}).get("reason")
    why = f": {reason}" if isinstance(reason, str) and reason else ""
    yield Sentence("no GPU", f"No GPU was recorded{why}.")


def would_show_drops(trained: Busy, unseen: float) -> bool:
    """Tell whether a drop would have been seen.

    A GPU that never worked has no level to fall from, in too short a time none is known, and where nobody looked
    nothing is seen to fall; where the driver alone did, nothing tells why, nor whether its readings are credible.
    """
    return is_long(trained) and trained[0] >= STARVED_PCT and unseen <= 1 - WELL_COVERED
