"""What took the GPU's time: one small function a cause, each scoring the evidence of an interval; the best is named.

To add a cause, write its function in the module of its subject, list it in CAUSES, and give it a test. A function
returns None unless the signals it needs were recorded and speak for it: nothing is concluded from what is missing.
`unexplained` is an honest answer. The order of decision (memory before storage, storage before CPU) and the shapes are
those of measurements on data loaders: a starved loader's workers are busy, a blocked trainer's are not (field
practice).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from gpu_report.analyse.causes.candidate import Candidate, is_in_unusual_place
from gpu_report.analyse.causes.confidence import CERTAIN, LIKELY, POSSIBLE
from gpu_report.analyse.causes.data_loading import (
    WAITED_KEY,
    input_storage,
    loader_asks_process,
    loader_cpu_bound,
    loader_hung,
    loader_idle,
    loader_idle_at_times,
    loader_in_main,
    loader_latency,
    many_tensors,
    mapped_files,
    waited_for_data,
    workers_stuck,
)
from gpu_report.analyse.causes.file_waits import (
    WAITING,
    gil_held,
    main_waits_for_file,
    wait_evidence,
    workers_wait_for_file,
)
from gpu_report.analyse.causes.garbage import garbage_beside, garbage_collected
from gpu_report.analyse.causes.gpu import (
    copies_to_cpu,
    gpu_fault,
    link_fell,
    link_fills_steps,
    other_process,
    power_cap,
    thermal,
)
from gpu_report.analyse.causes.host import (
    capped_by_limit,
    cores_full,
    cores_shared,
    cores_stolen,
    cores_taken,
    cpu_lost_to_new_programs,
    memory_pressure,
    own_cores_full,
    pinned_to_few_cores,
)
from gpu_report.analyse.causes.kernel_log import kernel_log_fault
from gpu_report.analyse.causes.main_process import (
    gil_held_by_thread,
    idles_in_long_steps,
    launch_bound,
    main_process_bound,
    partly_in_call,
    trainer_blocked,
    trainer_stopped,
)
from gpu_report.analyse.causes.slow_modes import searches_kernels, slowed_by_mode
from gpu_report.analyse.causes.yolo_phases import autotuning, phase_needs_no_gpu
from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.timeseries.intervals import Spans
from gpu_report.catalogue import CAUSES as CAUSE_ROWS
from gpu_report.catalogue import UNEXPLAINED
from gpu_report.model import Advice, Cause, Evidence

NOTHING = "the cause is unknown"

Scorer = Callable[[IntervalSignals], Candidate | None]

# What data and the cores for it may have lacked.
DATA: tuple[Scorer, ...] = (
    cores_taken,
    cores_full,
    cores_stolen,
    cores_shared,
    loader_cpu_bound,
    loader_asks_process,
    loader_in_main,
    pinned_to_few_cores,
    own_cores_full,
    capped_by_limit,
    loader_hung,
    loader_idle,
    loader_latency,
    loader_idle_at_times,
)

CAUSES: tuple[Scorer, ...] = (
    gpu_fault,
    kernel_log_fault,
    memory_pressure,
    input_storage,
    workers_stuck,
    mapped_files,
    workers_wait_for_file,
    main_waits_for_file,
    garbage_collected,
    gil_held,
    *DATA,
    many_tensors,
    trainer_stopped,
    trainer_blocked,
    gil_held_by_thread,
    slowed_by_mode,
    searches_kernels,
    copies_to_cpu,
    main_process_bound,
    idles_in_long_steps,
    launch_bound,
    partly_in_call,
    other_process,
    power_cap,
    thermal,
    link_fell,
    link_fills_steps,
    autotuning,
    phase_needs_no_gpu,
)

# What may keep a loader from keeping up.
LOADING: tuple[Scorer, ...] = (
    memory_pressure,
    input_storage,
    workers_stuck,
    mapped_files,
    workers_wait_for_file,
    *DATA,
    many_tensors,
)

# What may be short while the main process stands in a line of its own code: what it does there is the cause then.
WHILE_WAITED_FOR = frozenset({input_storage, workers_stuck, mapped_files, *DATA, slowed_by_mode, launch_bound})


@dataclass(frozen=True)
class Explanation:
    """The cause of an interval, the numbers that speak for it, and what to do where that depends on who caused it.

    `is_launching` says that what takes the time may be to launch kernels (see `Candidate`).
    """

    cause: Cause
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[Advice, ...] = ()
    is_launching: bool = False


def explain(
    signals: IntervalSignals,
    *,
    fell: bool = False,
    expected: Cause | None = None,
    kernel_was_read: bool = True,
    always: Cause | None = None,
) -> Explanation:
    """Return what explains an interval: the strongest candidate, else `expected`, else unexplained.

    `fell` says that utilisation fell in it: batches that are too small were as small before. `expected` is the cause
    that the phase gives (a validation of typical length), which yields only to a stronger one. `kernel_was_read` is
    False when nobody looked. `always` is what holds up all of its training (`lasting_cause`): it may be part of that.
    """
    excluded = WHILE_WAITED_FOR if is_in_unusual_place(signals) else frozenset()
    excluded -= {cores_taken} if cpu_lost_to_new_programs(signals) else frozenset()
    excluded |= {launch_bound} if fell else frozenset()
    scorers = (each for each in CAUSES if each not in excluded)
    found = [candidate for scorer in scorers if (candidate := scorer(signals)) is not None]
    if not found and expected is None:
        rest = _more_of(always, signals) or waited_for_data(signals)
        found = [] if rest is None else [rest]
    ranked = sorted(found, key=lambda candidate: -candidate.confidence)
    if ranked and (expected is None or _outranks(ranked[0], expected)):
        best = ranked[0]
        rival = next((c.name for c in ranked if c.name != best.name), expected.name if expected else None)
        rival = None if best.confidence >= CERTAIN else rival
        numbers = (*best.evidence, *(wait_evidence(signals) if best.name in WAITING else ()))
        cause = Cause(best.name, best.confidence, best.explanation, rival)
        more, do = garbage_beside(signals, best)
        return Explanation(cause, (*numbers, *more), (*best.advice, *do), best.is_launching)
    if expected is not None:
        return Explanation(expected)
    unread = "" if kernel_was_read else "; the kernel log was not read"
    return Explanation(Cause(UNEXPLAINED, 0.0, f"{NOTHING}{unread}"))


def lasting_cause(context: Context, gpu: int, t_s: float) -> Cause | None:
    """Return what holds up a GPU's training at a moment all the time; None where it had no steady state.

    It is the same of all that happens in a training, and worked out once.
    """
    signals = context.lasting_signals(gpu, t_s)
    return None if signals is None else context.cached(_cause_of_all, signals)


def _cause_of_all(_context: Context, signals: IntervalSignals) -> Cause:
    return explain(signals).cause


def _more_of(always: Cause | None, signals: IntervalSignals) -> Candidate | None:
    """Return what holds a loader up all the time, where an interval shows that, too: as much of it as is typical.

    Compared with what is typical nothing is unusual then.
    """
    if always is None or not CAUSE_ROWS[always.name].is_input or always.confidence < LIKELY:
        return None
    nothing: Spans = ()
    alone = replace(signals, host=signals.host.with_steady(nothing), own=signals.own.with_steady(nothing))
    same = explain(alone, fell=True)
    if same.cause.name != always.name or same.cause.confidence < LIKELY:
        return None
    text = f"as in all of the training, {same.cause.explanation}"
    return Candidate(always.name, POSSIBLE, text, same.evidence, same.advice)


def explain_waiting(waiting: IntervalSignals) -> Explanation | None:
    """Return why its loader did not keep up while the trainer waited for it; None where nothing shows that.

    `waiting` are the signals of those moments alone (`IntervalSignals.while_waiting`).
    """
    waiting = replace(waiting, data_wait_share=1.0)
    found = [candidate for scorer in LOADING if (candidate := scorer(waiting)) is not None]
    best = max(found, key=lambda candidate: candidate.confidence, default=None) or waited_for_data(waiting)
    if best is None:
        return None
    numbers = tuple(each for each in best.evidence if each.key != WAITED_KEY)  # here it waited all the time
    return Explanation(Cause(best.name, best.confidence, best.explanation, None), numbers, best.advice)


def _outranks(candidate: Candidate, expected: Cause) -> bool:
    """Tell whether a candidate is more than what happens at the end of every epoch: only a fault of the GPU is."""
    return candidate.name == "gpu-fault" and candidate.confidence >= expected.confidence
