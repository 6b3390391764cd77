"""Rule: the driver lost a GPU, or wants it reset: nothing can be read of it any more, with or without a kernel log."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Cause, Finding, Run

EVERYTHING = "all"  # the quantity of an NVML error that concerns the whole GPU
PLAIN_LOSS = "gpu is lost"  # says no more than that it was lost
LOST_WORDS = ("lost", "reset", "restart")  # of nvmlErrorString: GPU is lost; GPU requires reset (restart before 2023)


@dataclass(frozen=True)
class Loss:
    """A GPU of which nothing could be read, what the driver said, and whether it came back."""

    gpu: int
    span: Span
    reason: str
    came_back: bool


def lost_gpus(context: Context) -> list[Finding]:
    """Report every GPU that the driver lost, from then to its return or the end of the recording."""
    return [_finding(context, loss) for loss in losses(context.run)]


def losses(run: Run) -> Iterator[Loss]:
    """Yield the losses in order of time; what the driver says next of a GPU that is lost already is no second one."""
    reported = [(e.gpu, e) for e in run.events if e.gpu is not None and e.fields.get("quantity") == EVERYTHING]
    lost_until_s: dict[int, float] = {}
    for number, (gpu, event) in enumerate(reported):
        reason = str(event.fields.get("reason", ""))
        is_loss = event.kind == "nvml_error" and any(word in reason.lower() for word in LOST_WORDS)
        if is_loss and event.t_s >= lost_until_s.get(gpu, 0.0):
            back = [e.t_s for again, e in reported[number + 1 :] if again == gpu and e.kind == "nvml_recovered"]
            lost_until_s[gpu] = back[0] if back else max(run.duration_s, event.t_s)
            yield Loss(gpu, (event.t_s, lost_until_s[gpu]), reason, came_back=bool(back))


def _finding(context: Context, loss: Loss) -> Finding:
    start_s, end_s = loss.span
    until = "came back" if loss.came_back else "did not come back"
    said = "" if loss.reason.lower() == PLAIN_LOSS else f" ({loss.reason})"
    return context.finding(
        "gpu-lost",
        "critical",
        (start_s, end_s),
        f"The driver lost GPU {loss.gpu}{said} for {end_s - start_s:,.0f} s: it {until}",
        gpu=loss.gpu,
        cause=Cause("gpu-fault", CERTAIN, f"the driver reported: {loss.reason}"),
        kernel_events=tuple(context.signals.of(loss.gpu, start_s, end_s).kernel),
    )
