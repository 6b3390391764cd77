"""A CPU that got slower: the same images take more CPU time, at a lower clock, or with other work that takes longer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from gpu_report.analyse.causes import Explanation
from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.causes.thresholds import CORES_FREE_PCT
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.changed_signals import Signal, of_host, others_cpu_pct
from gpu_report.analyse.rules.epochs.comparable_epochs import TrainedEpoch
from gpu_report.analyse.signals.code.loader_work import own_worker_code
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.model import Advice, Evidence, Frame, ValidationPart
from gpu_report.wording import place_words

LACKS_CPU = frozenset({"input-cpu", "cpu-limit", "main-process"})  # what a slower CPU looks like
OWN_WORK: tuple[ValidationPart, ...] = ("postprocess", "metrics")  # of a validation: NMS and metrics, no loader
CLOCK, HEAT = of_host("cpu_clock_mhz"), of_host("cpu_heat_throttles_per_s")
CPU_PCT = of_host("cpu_pct")
DO = "Find what slowed the CPU: power profile, governor, heat or battery"


@dataclass(frozen=True)
class _Dearer:
    """A function of the user's at its worst line, and the CPU time (s) an epoch that workers spent in it: then, now."""

    line: Frame
    before_s: float
    since_s: float

    @property
    def more_s(self) -> float:
        """Return what it costs more (s)."""
        return self.since_s - self.before_s

    def explains(self, before_s: float, since_s: float) -> bool:
        """Tell whether it made most of a rise of the workers' CPU time, and grew more than the rest of that."""
        rest_before_s, rest_since_s = before_s - self.before_s, since_s - self.since_s
        rest_grew = rest_since_s / rest_before_s - 1 if rest_before_s > 0 else 0.0
        beyond = self.more_s >= th.GROWS_BEYOND_REST * rest_grew * self.before_s
        return beyond and self.more_s >= th.GROWN_IN_ONE_SHARE * (since_s - before_s)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return what of the workers' CPU time was spent in it."""
        return evidence(
            ("of it in that function, before", self.before_s, "s"),
            ("of it in that function, since then", self.since_s, "s"),
        )


def by_slower_cpu(
    context: Context, found: Explanation, usual: Sequence[TrainedEpoch], slow: Sequence[TrainedEpoch]
) -> Explanation:
    """Return why some epochs were slow: that the CPU was slower, where that is what they lacked, else what was found.

    The same epochs load the same images. That an image takes more CPU time than before is no reason by itself: the
    user's code may do more. A lower clock, or other work that takes longer as well, is of the CPU.
    """
    loaded = _rose(_workers_cpu_s, context, usual, slow)
    if found.cause.name not in LACKS_CPU or loaded is None or _others_took_it(context, usual, slow):
        return found
    is_known = CLOCK(context, usual) is not None and CLOCK(context, slow) is not None
    known = is_known or _own_work_s(context, slow) is not None
    if (slower := slower_cpu(context, found, usual, slow)) is not None:
        return slower
    more = _more_per_image(found, loaded, usual, slow, or_slower="" if known else ", or a CPU that got slower")
    return _in_own_function(context, more, loaded, usual, slow)


def slower_cpu(
    context: Context, found: Explanation, usual: Sequence[TrainedEpoch], slow: Sequence[TrainedEpoch]
) -> Explanation | None:
    """Return that the CPU was slower in some epochs, None where that is not seen, or they lacked no CPU."""
    loaded = _rose(_workers_cpu_s, context, usual, slow)
    if found.cause.name not in LACKS_CPU or loaded is None or _others_took_it(context, usual, slow):
        return None
    before, after = CLOCK(context, usual), CLOCK(context, slow)
    fell = None if before is None or after is None else _fell_enough(before, after, loaded[1] / loaded[0])
    own = _rose(_own_work_s, context, usual, slow)
    if not fell and (fell is not None or own is None):
        return None
    numbers = evidence(
        ("CPU time of the data-loader workers per epoch, before", loaded[0], "s"),
        ("CPU time of the data-loader workers per epoch, since then", loaded[1], "s"),
        ("the CPU's clock, before", before, "MHz"),
        ("the CPU's clock, since then", after, "MHz"),
        ("NMS and metrics of a validation, before", own and own[0], "s"),
        ("NMS and metrics of a validation, since then", own and own[1], "s"),
    )
    heated, heats = ((HEAT(context, epochs) or 0.0) for epochs in (usual, slow))
    proof = f"its clock fell from {before:,.0f} to {after:,.0f} MHz" if fell else "NMS and metrics took longer"
    text = f"the CPU got slower (an image took {loaded[1] / loaded[0]:.1f} times the CPU time, and {proof})"
    cause = replace(found.cause, explanation=text, confidence=max(found.cause.confidence, STRONG if fell else 0.0))
    return replace(found, cause=cause, evidence=(*found.evidence, *numbers), advice=(_advice(heat=heats > heated),))


def _more_per_image(
    found: Explanation,
    loaded: tuple[float, float],
    usual: Sequence[TrainedEpoch],
    slow: Sequence[TrainedEpoch],
    *,
    or_slower: str,
) -> Explanation:
    """Return that workers could not keep up since each image takes more CPU time: not some of them, for all epochs do.

    Since which epoch, where slow ones follow the others at once.
    """
    if found.cause.name != "input-cpu":
        return found
    follows = slow[0].epoch == usual[-1].epoch + 1
    since = f" since epoch {slow[0].epoch}" if follows else ""
    more = f"{loaded[1] / loaded[0]:.1f}\u00d7"
    short = f"Find why each image costs {more} the CPU{since}"
    advice = Advice(
        f"{short}: your own augmentation or its schedule, or images that are larger{or_slower}", short=short
    )
    numbers = evidence(
        ("CPU time of the data-loader workers per epoch, before", loaded[0], "s"),
        ("CPU time of the data-loader workers per epoch, since then", loaded[1], "s"),
    )
    cause = replace(found.cause, explanation=f"{found.cause.explanation} ({more} the CPU time per image)")
    return replace(found, cause=cause, evidence=(*found.evidence, *numbers), advice=(advice,))


def _in_own_function(
    context: Context,
    found: Explanation,
    loaded: tuple[float, float],
    usual: Sequence[TrainedEpoch],
    slow: Sequence[TrainedEpoch],
) -> Explanation:
    """Return an image's higher cost with the user's function that it is spent in, where stacks of workers show one."""
    own = _dearer(context, loaded, usual, slow) if found.cause.name == "input-cpu" else None
    if own is None:
        return found
    short = f"Look at {place_words(own.line)}"
    why = f"workers spend {own.since_s:,.0f} s of CPU time an epoch in it, {own.before_s:,.0f} s before"
    advice = Advice(f"{short}: {why}. {_make_room(context, slow)}", short=short)
    return replace(found, evidence=(*found.evidence, *own.evidence), advice=(advice,))


def _make_room(context: Context, slow: Sequence[TrainedEpoch]) -> str:
    """Return what to do about a function that costs workers too much: more of them only where cores are free."""
    cores, busy_pct = context.run.recording.usable_cores, CPU_PCT(context, slow)
    if not cores or busy_pct is None or busy_pct >= CORES_FREE_PCT:
        return "Make it cheaper, or do less of it"
    free = (1 - busy_pct / 100) * (context.run.recording.cores_online or cores)
    return f"Make it cheaper, or raise `workers`: about {min(free, cores):.0f} of {cores:g} CPU cores were free"


def _dearer(
    context: Context, loaded: tuple[float, float], usual: Sequence[TrainedEpoch], slow: Sequence[TrainedEpoch]
) -> _Dearer | None:
    """Return the function of the user's that explains what workers' CPU time rose by; None without one.

    Of their CPU time a function has the share that it has of the time in which they worked.
    """
    processes = context.signals.idle_stacks
    before, since = (own_worker_code(processes, [epoch.span for epoch in epochs]) for epochs in (usual, slow))
    found = [
        _Dearer(code.line, before[at].share * loaded[0] if at in before else 0.0, code.share * loaded[1])
        for at, code in since.items()
    ]
    most = max(found, key=lambda each: each.more_s, default=None)
    return most if most is not None and most.explains(*loaded) else None


def _fell_enough(before_mhz: float, after_mhz: float, times: float) -> bool:
    """Tell whether a clock fell, and by enough for work that takes so many times the CPU time.

    With more to do on all cores a CPU lowers its clock by itself: then images take far more than the clock explains.
    """
    explained = th.SLOWER_CPU_FACTOR * before_mhz / max(after_mhz, 1.0)
    return after_mhz <= (1 - th.SLOWER_CLOCK_SHARE) * before_mhz and times <= explained


def _advice(*, heat: bool) -> Advice:
    short = "Improve the cooling of the CPU: heat slowed it" if heat else DO
    look = "`cpupower frequency-info` shows its clock and governor, `sensors` its temperature"
    return Advice(f"{short}. {look}", short=short)


def _rose(
    signal: Signal, context: Context, usual: Sequence[TrainedEpoch], slow: Sequence[TrainedEpoch]
) -> tuple[float, float] | None:
    """Return what the same work took before and since, None where it did not rise by SLOWER_CPU_FACTOR."""
    before, after = signal(context, usual), signal(context, slow)
    is_more = before and after is not None and after >= th.SLOWER_CPU_FACTOR * before
    return (before, after) if before and after is not None and is_more else None


def _workers_cpu_s(context: Context, epochs: Sequence[TrainedEpoch]) -> float | None:
    """Return the CPU time of the workers in the training of an epoch, None where it was not read."""
    used_pct = column_mean(context.run.host, "workers_cpu_pct", [epoch.span for epoch in epochs])
    return None if used_pct is None else used_pct / 100 * median(epoch.train_s for epoch in epochs)


def _own_work_s(_: Context, epochs: Sequence[TrainedEpoch]) -> float | None:
    """Return what NMS and metrics took in a validation (median), None where nobody knows, or it was too short."""
    parts = [epoch.validated.seconds for epoch in epochs if epoch.validated is not None]
    known = [sum(seconds.get(part, 0.0) for part in OWN_WORK) for seconds in parts]
    took_s = median(known) if known else 0.0
    return took_s if took_s >= th.OWN_WORK_LEAST_S else None


def _others_took_it(context: Context, usual: Sequence[TrainedEpoch], slow: Sequence[TrainedEpoch]) -> bool:
    """Tell whether others may have made it slower: programs on the same cores, or a hypervisor. Unknown is maybe."""
    before, after = (others_cpu_pct(context, epochs) for epochs in (usual, slow))
    stolen, stole = (of_host("cpu_steal_pct")(context, epochs) or 0.0 for epochs in (usual, slow))
    if before is None or after is None or after - before >= th.OTHERS_ROSE_PCT:
        return True
    return stole - stolen >= th.STEAL_ROSE_PCT
