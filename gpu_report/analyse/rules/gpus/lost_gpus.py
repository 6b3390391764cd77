"""Rule: the driver lost a GPU, or wants it reset: nothing can be read of it any more, with or without a kernel log."""

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.gpu.gpu_losses import GpuLoss, losses
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Cause, Finding
from gpu_report.wording import length

PLAIN_LOSS = "gpu is lost"  # says no more than that it was lost


def lost_gpus(context: Context) -> list[Finding]:
    """Report every GPU that the driver lost, from then to its return or the end of the recording."""
    return [_finding(context, loss) for loss in losses(context.run)]


def _finding(context: Context, loss: GpuLoss) -> Finding:
    start_s, end_s = loss.span
    when = f"for {length(end_s - start_s)}: it came" if loss.came_back else f"after {length(start_s)}: it did not come"
    said = "" if loss.reason.lower() == PLAIN_LOSS else f" ({loss.reason})"
    return context.finding(
        "gpu-lost",
        "critical",
        (start_s, end_s),
        f"The driver lost {gpu_words(loss.gpu)}{said} {when} back",
        gpu=loss.gpu,
        cause=Cause("gpu-fault", CERTAIN, f"the driver reported: {loss.reason}"),
        kernel_events=tuple(context.signals.of(loss.gpu, start_s, end_s).kernel),
    )
