"""Rule: a model that is loaded again for nearly each call."""

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.words import OF_CALLS, active_s, model_name, ms, of_calls, percent
from gpu_report.model import Advice, Cause, Finding, ServedModel

LOADING = "model-loading"


def reloaded_models(context: Context) -> list[Finding]:
    """Report a process that makes a model object for nearly each call."""
    found = []
    for served in context.cached(judged_models):
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
