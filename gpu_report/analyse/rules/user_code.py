"""Rule: a function of the user's own that takes a share of a training's time, beside what holds it back most."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gpu_report.analyse.causes import explain
from gpu_report.analyse.causes import thresholds as causes_th
from gpu_report.analyse.causes.candidate import is_in_unusual_place
from gpu_report.analyse.causes.confidence import CERTAIN, HINTED, LIKELY
from gpu_report.analyse.causes.garbage import against_garbage, is_own_call, took_words
from gpu_report.analyse.causes.main_process import CODE_CAUSES, in_call, launches_too_much, of_growth
from gpu_report.analyse.causes.slow_modes import SLOW_MODES, TRACERS, switch_off
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.code.call_growth import CallGrowth
from gpu_report.analyse.signals.code.garbage import Garbage
from gpu_report.analyse.signals.code.stack_kinds import kind_of
from gpu_report.analyse.signals.code.stack_profile import IdleLocation
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE, OWN_SHARE
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import Span, length_s, union
from gpu_report.catalogue import GARBAGE_KEY, SEEN_IDLE_KEY, USER_CODE_IDLE_KEY, USER_CODE_KEY
from gpu_report.gpu_words import gpu_words
from gpu_report.model import GPUS, HEALTHY_PCT, Advice, Cause, CodeLocation, Evidence, Finding, Frame
from gpu_report.wording import brief_seconds, place_words, where_it_is

CORE = "% of a core"
FEWER_KERNELS = "Call {} in fewer steps or on fewer layers, or compute it in batched operations"


@dataclass(frozen=True)
class _Own:
    """A function of the user's, and its share (0 to 1) of all training time.

    All of that holds training up: while the GPU still works on the step before, the next one is not launched. Besides
    it `waited` for the GPU's work on its step, which has to be done without the function, too. `lost` is the share of
    training time that the GPU was idle because of it, `seen_idle` the part that lies in it.
    """

    function: Frame
    of_all: float
    waited: float
    lost: float
    seen_idle: float
    is_call: bool


def user_code(context: Context) -> list[Finding]:
    """Report what takes USER_CODE_SHARE of the steady state, and OWN_SHARE of the time that the GPU is idle in it.

    A training that nothing holds up spends none of it there. A callback is one, a hook, an optimizer, a loss. Where it
    is why the GPU is under-utilised, it is the cause of that finding and none of its own. Of a training on the CPU, or
    on a GPU of which no utilisation is read, it is what takes most of its time.
    """
    if not any(len(series.t_s) for series in context.series):
        return list(_without_utilisation(context))
    pairs = [(training, gpu) for training in context.trainings for gpu in sorted(training.gpus)]
    return [found for training, gpu in pairs if (found := _of_gpu(context, training, gpu)) is not None]


def _without_utilisation(context: Context) -> Iterator[Finding]:
    """Yield the function of the user's that took most of the time of trainings, unless that is little.

    Where Python's garbage collector took half of that time or more, it is what to change. It may have come by itself.
    """
    spans = union(context.all_train_spans)
    if not spans:
        return
    call, seconds = context.signals.longest_call(None, spans)
    share = seconds / length_s(spans)
    collects = context.signals.garbage(None, spans)
    least_s = max(causes_th.GARBAGE_LEAST_S, length_s(spans) * max(causes_th.GARBAGE_LEAST_SHARE, MOSTLY_SHARE * share))
    if collects is not None and collects.seconds >= least_s:
        yield _collecting(context, spans, collects)
        if is_own_call(collects):
            return
    if call is not None and share >= th.USER_CODE_SHARE:
        yield _calling(context, spans, call, seconds)


def _collecting(context: Context, spans: Sequence[Span], collects: Garbage) -> Finding:
    line = collects.line if is_own_call(collects) else None
    at = () if line is None else (CodeLocation.in_main(line, collects.share),)
    share_pct = 100 * collects.share
    return context.finding(
        "user-code",
        "warning",
        (spans[0][0], spans[-1][1]),
        f"{share_pct:.0f} % of training time went into Python's garbage collector",
        epoch=None,
        phase=None,
        evidence=(Evidence("its share of training time", share_pct, "%", key=GARBAGE_KEY),),
        cause=Cause("main-process", CERTAIN, took_words(collects)),
        advice=(against_garbage(collects),),
        where=at,
    )


def _calling(context: Context, spans: Sequence[Span], call: Frame, seconds: float) -> Finding:
    share = seconds / length_s(spans)
    own = context.signals.own_code(None, call, spans, share)
    return context.finding(
        "user-code",
        "warning",
        (spans[0][0], spans[-1][1]),
        f"{100 * share:.0f} % of training time went into {where_it_is(own.at)}",
        epoch=None,
        phase=None,
        evidence=(
            Evidence("its share of training time", 100 * share, "%", key=USER_CODE_KEY),
            *evidence(("time of training in it", seconds, "s"), ("CPU of the main process there", own.cpu_pct, CORE)),
        ),
        cause=in_call(own, "the training", "was"),
        where=(own.at,),
    )


def _of_gpu(context: Context, training: Training, gpu: int) -> Finding | None:
    signals, spans = context.signals.of_training(gpu, training), context.signals.steady_of(training)
    own = None if signals is None else _own(signals)
    if signals is None or own is None or not spans or _is_reported(signals):
        return None
    span = spans[0][0], spans[-1][1]
    code = context.signals.own_code(gpu, own.function, spans, own.of_all, is_call=own.is_call)
    alone = IdleLocation(0.0, None, 0.0, None, own.function, 1.0, cpu_pct=code.cpu_pct, is_alone=signals.is_alone)
    explained = explain(replace(signals, idle_location=alone))
    if explained.cause.name not in CODE_CAUSES:
        return None
    growth = context.signals.call_growth(gpu, own.function, training, is_call=own.is_call)
    into = f"{where_it_is(code.at)}{_grown_words(growth)}"
    taken = Evidence("its share of training time", 100 * own.of_all, "%", key=USER_CODE_KEY)
    lost = Evidence("training time for which the GPU waits because of it", 100 * own.lost, "%", key=USER_CODE_IDLE_KEY)
    took = f"{100 * own.of_all:.0f} % of training time"
    waits = ("besides, it waited there for the GPU's work", 100 * own.waited or None, "%")
    works = explained.cause.name == "main-process" and (signals.gpu_within("gpu_util_pct") or 0.0) >= HEALTHY_PCT
    of_gpu = _of_its_kernels(training, own, code.at) if works else None
    cause, advice = of_gpu or (explained.cause, explained.advice)
    core, mode = ("CPU of the main process there", code.cpu_pct, CORE), _mode_of(training, code.at)
    numbers = evidence(lost, *_seen_idle(training, own), waits, core)
    return context.finding(
        "user-code",
        "warning",
        span,
        f"{took} on {gpu_words(gpu)} went into {into}",
        gpu=gpu,
        of_gpus=f"Up to {took} on {GPUS} went into {into}",
        epoch=None,
        phase=None,
        evidence=(taken, *numbers, *of_growth(growth)),
        cause=cause if mode is None else replace(explained.cause, explanation=SLOW_MODES[mode].what),
        advice=advice if mode is None else (switch_off(mode, training.setting_locations),),
        where=(code.at,),
    )


def _of_its_kernels(training: Training, own: _Own, at: CodeLocation) -> tuple[Cause, tuple[Advice, ...]] | None:
    """Return that the GPU worked in most of a function's time, and what to do then; None where it waited for Python.

    Of several ranks one that waits for another looks busy.
    """
    if training.ranks > 1 or own.seen_idle >= th.SEEN_IDLE_SHARE * own.of_all:
        return None
    busy_pct = 100 * (1 - own.seen_idle / own.of_all)
    text = f"the GPU worked for {busy_pct:.0f} % of that time: on kernels launched there, or queued before"
    return Cause("own-gpu-work", LIKELY, text), (Advice(FEWER_KERNELS.format(place_words(at))),)


def _seen_idle(training: Training, own: _Own) -> tuple[Evidence, ...]:
    """Return for how long the GPU was seen idle in it; of several ranks one that waits for another looks busy."""
    if training.ranks > 1:
        return ()
    return (Evidence("training time in it with the GPU idle", 100 * own.seen_idle, "%", key=SEEN_IDLE_KEY),)


def without_less_specific(found: Sequence[Finding]) -> list[Finding]:
    """Return findings without GPUs that wait in part for a function, where another finding names it."""
    own = [each for each in found if each.rule == "user-code" and each.phase is None]
    return [each for each in found if not (_is_partly_of_code(each) and any(_names(it, each) for it in own))]


def _is_partly_of_code(finding: Finding) -> bool:
    cause = finding.cause
    return finding.rule == "starved" and cause is not None and cause.confidence <= HINTED and cause.name in CODE_CAUSES


def _names(own: Finding, waits: Finding) -> bool:
    """Tell whether a function was found in the training, and on the GPU, of what waits for one."""
    return own.gpu == waits.gpu and own.start_t_s < waits.end_t_s and own.end_t_s > waits.start_t_s


def _mode_of(training: Training, at: CodeLocation) -> str | None:
    """Return the slow mode that has Python call a function of the user's at each line or call; None for another."""
    mine = (each.name for each in training.setting_locations if each.name in TRACERS and each.file == at.file)
    return next(mine, None)


def _grown_words(growth: CallGrowth | None) -> str:
    """Return how a function grew, as the end of a sentence; empty where it did not."""
    if growth is None:
        return ""
    first, last = brief_seconds(growth.first_s), brief_seconds(growth.last_s)
    return f". It took {first} a batch at first and {last} in the end"


def _own(signals: IntervalSignals) -> _Own | None:
    """Return the function that YOLO called, else the one of the line that most of the time went to, if it is much."""
    idle_location, util_pct = signals.idle_location, signals.gpu_within("gpu_util_pct")
    if idle_location is None or util_pct is None:
        return None
    at = idle_location
    places = [(at.call, at.call_share, at.call_of_all, at.call_waited, True)]
    if at.line is not None and kind_of(at.line) == "own":
        places.append((at.line, at.share, at.line_of_all, at.line_waited, False))
    for function, share, of_all, waited, is_call in places:
        held_up = _held_up(share, of_all - waited, util_pct, at.in_loader)
        if function is not None and held_up >= OWN_SHARE and not (not is_call and _is_in_layer(signals, function)):
            lost, seen_idle = held_up * (1 - util_pct / 100), share * (1 - util_pct / 100)
            own = _Own(function, of_all - waited, waited, lost, seen_idle, is_call)
            return own if lost >= th.USER_CODE_SHARE else None
    return None


def _is_in_layer(signals: IntervalSignals, function: Frame) -> bool:
    """Tell whether a line is of the user's layer that is why steps take long, which is told then."""
    layer = signals.own_layer if launches_too_much(signals) else None
    return layer is not None and layer.share >= MOSTLY_SHARE and layer.line.file == function.file


def _held_up(of_idle: float, of_all: float, util_pct: float, in_loader: float) -> float:
    """Return the share (0 to 1) of its own time that a GPU was idle by a function.

    One that waits for the main process waits as long as that is anywhere, whether it still has work at that moment or
    runs out of it later: it is what the function took of all time, then, but for what the loader held it up.
    """
    return max(of_idle, min(of_all, 1 - in_loader)) if util_pct < HEALTHY_PCT else of_idle


def _is_reported(signals: IntervalSignals) -> bool:
    """Tell whether it is the cause of a GPU that is under-utilised: one of the same name may be another's work."""
    util_pct, idle_location = signals.gpu_within("gpu_util_pct"), signals.idle_location
    if util_pct is None or util_pct >= HEALTHY_PCT or explain(signals).cause.name not in CODE_CAUSES:
        return False
    return idle_location is not None and (is_in_unusual_place(signals) or idle_location.is_partly_in_call)
