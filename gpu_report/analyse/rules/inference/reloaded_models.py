"""Rules: a model that is loaded again for nearly each call; one set up anew as calls change an argument."""

from gpu_report.analyse.causes.confidence import CERTAIN, LIKELY
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.rebuilt import Rebuilt, rebuilt_predictors
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.words import (
    OF_CALLS,
    active_s,
    file_name,
    model_name,
    ms,
    of_calls,
    percent,
    severity,
)
from gpu_report.model import Advice, Cause, Finding, ServedModel
from gpu_report.wording import and_words, counted, place_words

LOADING = "model-loading"


def reloaded_models(context: Context) -> list[Finding]:
    """Report a process that makes a model object for nearly each call."""
    found = []
    for served in context.cached(judged_models):
        if is_rebuilt(context, served):
            continue
        calls, made = len(served.calls.start_s), served.calls.predictors or 0
        if made >= th.RELOADED_CALLS and made >= th.RELOADED_SHARE * calls:
            found.append(_reloaded(context, served, made, calls))
    return found


def _reloaded(context: Context, served: ServedModel, made: int, calls: int) -> Finding:
    loading = next((part for part in served.gap_parts if part.kind == "loading the model"), None)
    active, seconds = active_s(served), 0.0 if loading is None else loading.seconds
    share = seconds / active if active else 0.0
    took = f": {ms(MS * seconds / made)} each time, {percent(share)} {OF_CALLS}" if seconds else ""
    fix = "Make the model once, and call it for all images"
    return context.finding(
        "model-reloaded",
        "warning",
        (served.start_s, served.end_s),
        f"The model {model_name(served)} was loaded {made:,} times for {calls:,} calls{took}",
        gpu=served.calls.gpu,
        evidence=evidence(("model objects made", made, ""), ("calls", calls, ""), ("loading, in all", seconds, "s")),
        cause=Cause(LOADING, CERTAIN, f"{made:,} model objects made {calls:,} calls"),
        where=(loading.where,) if loading and loading.where else (),
        advice=(Advice(f"{fix}: {of_calls(served)}", gain_at_most=share or None, short=fix),),
    )


def rebuilt_models(context: Context) -> list[Finding]:
    """Report a YOLO object whose predictor is set up anew again and again, because calls change an argument."""
    return [_set_up_anew(context, each) for each in _worth_it(context)]


def is_rebuilt(context: Context, served: ServedModel) -> bool:
    """Tell whether a model's predictor is set up anew often enough to be reported."""
    return any(served is model for each in _worth_it(context) for model in each.models)


def _worth_it(context: Context) -> list[Rebuilt]:
    return [each for each in context.cached(rebuilt_predictors) if _is_worth_it(each)]


def _is_worth_it(rebuilt: Rebuilt) -> bool:
    """Tell whether set-ups took enough; where pauses do not say it, whether nearly each call had one."""
    if rebuilt.times < th.RELOADED_CALLS:
        return False
    if rebuilt.seconds is None:
        return rebuilt.times >= th.RELOADED_SHARE * rebuilt.calls
    return rebuilt.seconds >= th.REBUILT_SHARE * _length_s(rebuilt)


def _length_s(rebuilt: Rebuilt) -> float:
    return max(each.end_s for each in rebuilt.models) - min(each.start_s for each in rebuilt.models)


def _set_up_anew(context: Context, rebuilt: Rebuilt) -> Finding:
    first, seconds = rebuilt.models[0], rebuilt.seconds or 0.0
    share = min(seconds / _length_s(rebuilt), 1.0) if seconds else 0.0
    named = and_words([f"`{name}`" for name in rebuilt.changed])
    anew, calls = counted(rebuilt.times, "time"), counted(rebuilt.calls, "call")
    took = f", {ms(MS * seconds / rebuilt.times)} each time, {percent(share)} {OF_CALLS}" if seconds else ""
    fix = f"Keep one YOLO object for each setting of {named}"
    place = f": {place_words(rebuilt.where)} changes it" if rebuilt.where else ""
    span = min(each.start_s for each in rebuilt.models), max(each.end_s for each in rebuilt.models)
    why = f"ultralytics sets a predictor up anew when {named} changes between calls of one YOLO object"
    return context.finding(
        "model-reloaded",
        severity(share, seconds) if seconds else "warning",
        span,
        f"The predictor of {file_name(first)} was set up anew {anew} in {calls}{took}",
        gpu=first.calls.gpu,
        evidence=evidence(
            ("set up anew", rebuilt.times, "times"), ("calls", rebuilt.calls, ""), ("setting up, in all", seconds, "s")
        ),
        cause=Cause(LOADING, CERTAIN if rebuilt.is_reported else LIKELY, why),
        where=(rebuilt.where,) if rebuilt.where else (),
        advice=(Advice(f"{fix}{place}", gain_at_most=share or None, short=f"{fix}{place}"),),
    )
