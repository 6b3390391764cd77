"""When the driver lost a GPU, or wanted it reset, by NVML's answers; with or without a kernel log."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Run

EVERYTHING = "all"  # the quantity of an NVML error that concerns the whole GPU
LOST_WORDS = ("lost", "reset", "restart")  # of nvmlErrorString: GPU is lost; GPU requires reset (restart before 2023)


@dataclass(frozen=True)
class GpuLoss:
    """A GPU of which nothing could be read, what the driver said, and whether it came back."""

    gpu: int
    span: Span
    reason: str
    came_back: bool


def losses(run: Run) -> Iterator[GpuLoss]:
    """Yield the losses in order of time; what the driver says next of a GPU that is lost already is no second one."""
    reported = [(e.gpu, e) for e in run.events if e.gpu is not None and e.fields.get("quantity") == EVERYTHING]
    lost_until_s: dict[int, float] = {}
    for number, (gpu, event) in enumerate(reported):
        reason = str(event.fields.get("reason", ""))
        is_loss = event.kind == "nvml_error" and any(word in reason.lower() for word in LOST_WORDS)
        if is_loss and event.t_s >= lost_until_s.get(gpu, 0.0):
            back = [e.t_s for again, e in reported[number + 1 :] if again == gpu and e.kind == "nvml_recovered"]
            lost_until_s[gpu] = back[0] if back else max(run.duration_s, event.t_s)
            yield GpuLoss(gpu, (event.t_s, lost_until_s[gpu]), reason, came_back=bool(back))
