"""With what a training was set up, for the rules that look for a set-up at odds with the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from gpu_report.analyse.columns import mean_within
from gpu_report.analyse.context import Context
from gpu_report.analyse.spans import Span
from gpu_report.model import Advice, Cause, Evidence, InsideRun, Recording, Severity

SHM = "/dev/shm"  # noqa: S108 - only named here
MIB_PER_GIB = 1024


@dataclass(frozen=True)
class TrainingFacts:
    """One training: its effective `settings` and `args` as asked for, when it trained, and how it ended, if told.

    `device` is empty where it is not known.
    """

    context: Context
    settings: Mapping[str, object]
    args: Mapping[str, object]
    span: Span
    trained: tuple[Span, ...]
    ended: str | None
    error: str | None

    @property
    def recording(self) -> Recording:
        """Return what is known of the machine."""
        return self.context.run.recording

    @property
    def device(self) -> str:
        """Return where it trained: cpu, cuda:0, and so on."""
        return self.text("device") or ""

    @property
    def ranks(self) -> int:
        """Return how many processes trained together; all of them on this machine as far as is known."""
        return int(self.number("world_size") or 1)

    def text(self, name: str) -> str | None:
        """Return a setting that is text."""
        value = self.settings.get(name)
        return value if isinstance(value, str) and value else None

    def number(self, name: str) -> float | None:
        """Return a setting that is a number above 0."""
        value = self.settings.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None

    def host_mean(self, name: str) -> float | None:
        """Return the mean of a column of host.csv while it trained."""
        return mean_within(self.context.run.host, name, self.trained)


@dataclass(frozen=True)
class Said:
    """What is wrong with a set-up: in one sentence without its full stop, with the numbers and what to do."""

    severity: Severity
    summary: str
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[Advice, ...] = ()
    cause: Cause | None = None


Check = Callable[[TrainingFacts], Said | None]


def trainings_of(context: Context) -> list[TrainingFacts]:
    """Return the trainings of a run as rank 0 told them; without any the run itself, of which less is known."""
    mine = [process for process in context.run.inside if process.rank == 0 and process.task == "train"]
    asked = {yolo.number: yolo.args for yolo in context.run.yolo_runs}
    known = [_told(context, process, {} if process.run is None else asked.get(process.run, {})) for process in mine]
    return known or [_seen(context)]


def _told(context: Context, process: InsideRun, args: Mapping[str, object]) -> TrainingFacts:
    phases = process.phases
    span = (phases[0].start_t_s, phases[-1].end_t_s) if phases else (0.0, context.run.duration_s)
    trained = tuple((p.start_t_s, p.end_t_s) for p in phases if p.name == "train")
    return TrainingFacts(context, process.settings, args, span, trained, process.ended, process.error)


def _seen(context: Context) -> TrainingFacts:
    """Return what is known without callbacks: where epochs came to their ends and no GPU worked, the CPU trained."""
    run = context.run
    trained = tuple((p.start_t_s, p.end_t_s) for p in context.phases if p.name == "train")
    whole = TrainingFacts(
        context, {}, run.yolo_runs[-1].args if run.yolo_runs else {}, (0.0, run.duration_s), trained, None, None
    )
    on_cpu = bool(run.epoch_rows) and not context.activity.used_gpus
    known = {"torch": run.recording.torch, "device": "cpu" if on_cpu else None}
    return replace(whole, settings={name: value for name, value in known.items() if value is not None})
