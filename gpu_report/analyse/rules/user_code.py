"""Rule: a function of the user's own that takes a share of a training's time, beside what holds it back most."""

from dataclasses import dataclass, replace

from gpu_report.analyse.causes import explain
from gpu_report.analyse.causes.candidate import stood_elsewhere
from gpu_report.analyse.causes.main_process import OF_A_CALL
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.stack_habits import Stood
from gpu_report.analyse.signals.stack_notes import kind_of
from gpu_report.analyse.signals.thresholds import OWN_SHARE
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.catalogue import USER_CODE_KEY
from gpu_report.model import HEALTHY_PCT, Evidence, Finding, Frame


@dataclass(frozen=True)
class _Own:
    """A function of the user's, and its shares (0 to 1) of the time that the GPU was idle and of all of it."""

    function: Frame
    of_idle: float
    of_all: float


def user_code(context: Context) -> list[Finding]:
    """Report what takes USER_CODE_SHARE of the steady state, and OWN_SHARE of the time that the GPU is idle in it.

    A training that nothing holds up spends none of it there. A callback is one, a hook, an optimizer, a loss. Where it
    is why the GPU is under-utilised, it is the cause of that finding and none of its own.
    """
    pairs = [(training, gpu) for training in context.trainings for gpu in sorted(training.gpus)]
    return [found for training, gpu in pairs if (found := _of_gpu(context, training, gpu)) is not None]


def _of_gpu(context: Context, training: Training, gpu: int) -> Finding | None:
    signals, spans = context.signals.of_training(gpu, training), context.signals.steady_of(training)
    own = None if signals is None else _own(signals)
    if signals is None or own is None or not spans or _is_told(signals):
        return None
    span = spans[0][0], spans[-1][1]
    cpu_pct = context.signals.cpu_in_call(gpu, own.function, spans)
    alone = Stood(0.0, None, 0.0, None, own.function, 1.0, cpu_pct=cpu_pct, is_alone=signals.is_alone)
    explained = explain(replace(signals, stood=alone))
    if explained.cause.name not in OF_A_CALL:
        return None
    taken = Evidence("of training time, it took", 100 * own.of_all, "%", key=USER_CODE_KEY)
    idle = ("of the time that the GPU was idle, it took", 100 * own.of_idle, "%")
    return context.finding(
        "user-code",
        "warning",
        span,
        f"{100 * own.of_all:.0f} % of training time on GPU {gpu} went into {own.function.function}",
        gpu=gpu,
        epoch=None,
        phase=None,
        evidence=(taken, *evidence(idle, ("CPU of the main process there", cpu_pct, "% of a core"))),
        cause=explained.cause,
        advice=explained.advice,
    )


def _own(signals: IntervalSignals) -> _Own | None:
    """Return the function that YOLO called, else the one of the line that most of the time went to, if it is much."""
    stood, util_pct = signals.stood, signals.gpu_within("gpu_util_pct")
    if stood is None or util_pct is None:
        return None
    function, share = stood.call, stood.call_share
    if share < OWN_SHARE and stood.line is not None and kind_of(stood.line) == "own":
        function, share = stood.line, stood.share
    of_all = share * (1 - util_pct / 100)
    is_much = share >= OWN_SHARE and of_all >= th.USER_CODE_SHARE
    return _Own(function, share, of_all) if function is not None and is_much else None


def _is_told(signals: IntervalSignals) -> bool:
    """Tell whether it is the cause of a GPU that is under-utilised: one of the same name may be another's work."""
    util_pct, stood = signals.gpu_within("gpu_util_pct"), signals.stood
    if util_pct is None or util_pct >= HEALTHY_PCT or explain(signals).cause.name not in OF_A_CALL:
        return False
    return stood is not None and (stood_elsewhere(signals) or stood.is_partly_in_call)
