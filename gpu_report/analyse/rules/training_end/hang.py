"""Whether a training had hung before it ended: it reported nothing for far longer than it ever does at work."""

from dataclasses import dataclass
from statistics import median

from gpu_report.analyse.causes.thresholds import STOPPED_SHARE
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence, stopped_processes
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeline.ranks import RankGroup
from gpu_report.analyse.timeseries.columns import column_mean, column_values
from gpu_report.catalogue import HUNG_KEY
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Evidence

FIRST_BATCH = "first batch"


@dataclass(frozen=True)
class Hang:
    """How long a training reported nothing before its end, in which phase, and what the GPUs did meanwhile.

    `where` says in which phase, with the epoch where `names_epoch`. `stopped` says that a signal had stopped its
    processes (SIGSTOP, Ctrl-Z), as far as that was recorded. `doing` is what it did meanwhile, where that is known, as
    a part of a sentence after a comma.
    """

    start_t_s: float
    end_t_s: float
    where: str
    names_epoch: bool
    stopped: bool
    evidence: tuple[Evidence, ...]
    doing: str = ""

    @property
    def seconds(self) -> float:
        """Return its length."""
        return self.end_t_s - self.start_t_s

    @property
    def how(self) -> str:
        """Return what the training did."""
        return "was paused by a signal" if self.stopped else "hung"


def find_hang(context: Context, training: RankGroup, end_s: float) -> Hang | None:
    """Return a training's silence up to its end, None where it is no longer than work may be silent."""
    longest_s = _longest_s(training)
    if training.is_good or longest_s is None or end_s - training.last_message_t_s <= longest_s:
        return None
    span = training.last_message_t_s, end_s
    used = context.used_series
    stopped = column_values(context.run.host, "trainer_stopped", [span])
    return Hang(
        *span,
        _where(training),
        training.phase.name != "startup",
        len(stopped) > 0 and float((stopped >= 1).mean()) >= STOPPED_SHARE,
        evidence(
            Evidence("it reported nothing for", end_s - training.last_message_t_s, "s", key=HUNG_KEY),
            *(
                (f"utilisation of {gpu_words(series.gpu)} meanwhile", series.mean_util_pct(*span), "%")
                for series in used
            ),
            ("CPU of the main process meanwhile", column_mean(context.run.host, "main_cpu_pct", [span]), "% of a core"),
            stopped_processes((float(stopped.mean()) if len(stopped) else None) or None),
        ),
    )


def find_endless_wait(context: Context, training: RankGroup, end_s: float) -> Hang | None:
    """Return a wait for the data loader that lasted until somebody stopped the training, by its stacks.

    Callbacks report a wait once it is over: of one that never was they know nothing. It counts where it is as long as a
    drop in utilisation, and far longer than any wait before it.
    """
    edges = context.signals.loading(None).edges_s
    waits = [(float(start), float(end)) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end_s]
    if not waits or training.phase.name != "train" or end_s - waits[-1][1] > th.WAITED_TO_END_S:
        return None
    start_s = max(waits[-1][0], training.phase.start_t_s)
    longest_s = max((end - start for start, end in waits[:-1]), default=0.0)
    if end_s - start_s < max(context.options.drop_seconds, th.HANG_LINES * longest_s):
        return None
    waited = evidence(Evidence("it waited for the data loader for", end_s - start_s, "s", key=HUNG_KEY))
    doing = ", waiting for the data loader"
    return Hang(start_s, end_s, _where(training), names_epoch=True, stopped=False, evidence=waited, doing=doing)


def _longest_s(training: RankGroup) -> float | None:
    """Return how long the phase that a training came to last may be silent; None where nobody can tell.

    Of its batches it tells every 3 s and, the longer it lasts, ever more seldom. A validation is silent throughout:
    only its siblings tell how long one takes.
    """
    phase = training.phase
    if phase.name == "train" and training.main.progress:
        return th.HANG_S + th.HANG_LINES * (training.last_message_t_s - training.start_t_s) * th.PROGRESS_SHARE
    if phase.name == "startup" and phase.detail == FIRST_BATCH:
        return th.HANG_FIRST_S
    before = training.main.phases[:-1]
    siblings = [p.end_t_s - p.start_t_s for p in before if (p.name, p.detail) == (phase.name, phase.detail)]
    if phase.name not in {"validation", "checkpoint"} or not siblings:
        return None
    return max(th.HANG_S, th.HANG_SIBLINGS * median(siblings))


def _where(training: RankGroup) -> str:
    phase = training.phase
    if phase.name == "startup":
        return "at its first batch"
    what = "" if phase.name == "train" else f"the {phase.name} of "
    return f"in {what}epoch {phase.epoch}"
