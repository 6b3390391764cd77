"""Rules: what the caller does between two calls, while the GPU has nothing to do."""

from pathlib import PurePath

import numpy as np

from gpu_report.analyse.causes.confidence import CERTAIN, SUPPORTED
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.words import (
    OF_CALLS,
    active_s,
    model_name,
    ms,
    of_calls,
    percent,
    rate,
    severity,
    speed_now,
)
from gpu_report.model import Advice, Cause, Finding, GapPart, ServedModel
from gpu_report.wording import where_it_is

LOADING = "model-loading"
# What a caller does: its cause, in words, and what to do about it.
GAPS = {
    "own code": (
        "own-code",
        "your code",
        "Run {what} in other threads while the model works",
    ),
    "decoding": (
        "decoding",
        "reading and decoding images",
        "Decode the next images in other threads or processes while the model works",
    ),
    "network": ("network", "waiting for the network", "Fetch the next images in another thread while the model works"),
}
# What another thread does, which calls wait for, and what to do about it.
MORE_THREADS = {
    "own code": ("your code", "Run {what} in several threads or processes, since one does not keep up"),
    "decoding": ("images to be decoded", "Decode in several threads or processes, since one does not keep up"),
    "network": ("the network", "Fetch images in several threads, since one does not keep up"),
}


def time_between_calls(context: Context) -> list[Finding]:
    """Report what takes PART_SHARE of a model's time or more between its calls, other than waiting for them."""
    return [
        _between(context, served, part)
        for served in context.cached(judged_models)
        for part in served.gap_parts
        if part.kind in GAPS and part.seconds >= th.PART_SHARE * active_s(served)
    ]


def _between(context: Context, served: ServedModel, part: GapPart) -> Finding:
    cause, what, fix = GAPS[part.kind]
    active = active_s(served)
    share, each_ms = part.seconds / active, MS * part.seconds / served.latency.calls
    line = "" if part.where is None else f": {where_it_is(part.where)}"
    now = served.images / active
    best = served.images / _least_s(active, part)
    summary = f"Before each call {what} takes {ms(each_ms)}, {percent(share)} {OF_CALLS}{line}"
    if part.waited_for:
        what, fix = MORE_THREADS[part.kind]
        summary = f"Calls wait for {what} in another thread, {percent(share)} {OF_CALLS}{line}"
    text = f"{fix.format(what=_named(part))}: from {speed_now(served)} to at most {rate(best)}"
    return context.finding(
        "slow-between-calls",
        severity(share, part.seconds),
        (served.start_s, served.end_s),
        summary,
        gpu=served.calls.gpu,
        evidence=evidence(
            ("between two calls", each_ms, "ms"),
            ("a call (mean)", served.latency.mean_ms, "ms"),
            ("GPU utilisation meanwhile", _percent_or_none(served.gpu_busy_share), "%"),
        ),
        cause=Cause(cause, SUPPORTED, f"by stack samples: {percent(share)} {OF_CALLS}"),
        where=(part.where,) if part.where else (),
        advice=(Advice(text, gain_at_most=1 - now / best, short=text),),
    )


def _least_s(active_s: float, part: GapPart) -> float:
    """Return the least time that the calls take once a part is done by the side: as long as the longer of both.

    What several threads do in the place of one is not waited for any more.
    """
    rest_s = active_s - part.seconds
    return rest_s if part.waited_for else max(rest_s, part.seconds)


def _named(part: GapPart) -> str:
    """Return the function that a part is, or the line where it is in none."""
    if part.where is None:
        return "it"
    in_none = part.where.function.startswith("<")  # <module>
    return f"line {part.where.line} of {PurePath(part.where.file).name}" if in_none else f"`{part.where.function}`"


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


def rare_calls(context: Context) -> list[Finding]:
    """Note each model that waited for calls most of the time: that its GPU was idle then is no fault."""
    found = []
    for served in context.cached(judged_models):
        length_s = served.end_s - served.start_s
        if length_s > 0 and active_s(served) < th.RARE_CALLS_SHARE * length_s:
            found.append(_rare(context, served, 1 - active_s(served) / length_s))
    return found


def _rare(context: Context, served: ServedModel, share: float) -> Finding:
    waits = next(part for part in served.gap_parts if part.kind == "waiting for calls")
    gaps_s = served.calls.gap_ms[served.calls.gap_ms > served.latency.worst_ms] / MS
    then = ": the GPU had nothing to do then" if context.run.gpus else ""
    return context.finding(
        "rare-calls",
        "info",
        (served.start_s, served.end_s),
        f"No call came for {percent(share)} of the time from the first to the last ({model_name(served)}){then}",
        gpu=served.calls.gpu,
        evidence=evidence(
            ("waiting for calls, in all", waits.seconds, "s"),
            ("median pause", float(np.median(gaps_s)) if len(gaps_s) else None, "s"),
            ("calls", served.latency.calls, ""),
        ),
        where=(waits.where,) if waits.where else (),
    )


def _percent_or_none(share: float | None) -> float | None:
    return None if share is None else 100 * share
