"""Rule: a model that mostly waits for calls: that its GPU is idle then is no fault."""

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.constant_waits import constant_wait_ms
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules.inference.words import BECOMES, active_s, is_rare, model_name, ms, percent, rate
from gpu_report.model import Advice, Finding, ServedModel


def rare_calls(context: Context) -> list[Finding]:
    """Note each model that waited for calls most of the time: that its GPU was idle then is no fault."""
    return [_rare(context, served) for served in context.cached(judged_models) if is_rare(served)]


def _rare(context: Context, served: ServedModel) -> Finding:
    share = 1 - active_s(served) / (served.end_s - served.start_s)
    waits = next(part for part in served.gap_parts if part.kind == "waiting for calls")
    gaps_s = served.calls.gap_ms[served.calls.gap_ms > served.latency.worst_ms] / MS
    when = f"from the first to the last ({model_name(served)})"
    then = ": the GPU had nothing to do then" if context.run.gpus else ""
    even_ms = constant_wait_ms(context, served)
    always = "" if even_ms is None else f". Each wait lasted {ms(even_ms)}: it ends by a time-out, not by an arrival"
    return context.finding(
        "rare-calls",
        "info",
        (served.start_s, served.end_s),
        f"No call came for {percent(share)} of the time {when}{then}{always}",
        gpu=served.calls.gpu,
        evidence=evidence(
            ("waiting for calls, in all", waits.seconds, "s"),
            ("median pause", float(np.median(gaps_s)) if len(gaps_s) else None, "s"),
            ("calls", served.latency.calls, ""),
        ),
        where=(waits.where,) if waits.where else (),
        advice=() if even_ms is None else _shorter_window(served),
    )


def _shorter_window(served: ServedModel) -> tuple[Advice, ...]:
    """Return what to do about waits that are all as long, as those for more images to come."""
    now, then = served.images_per_s, served.images_per_s_in_calls
    if not now or not then:
        return ()
    what = "If images are collected before each call, wait shorter, or for fewer of them"
    text = f"{what}: {BECOMES.format(now=f'{rate(now)} images/s', then=rate(then), limit='at most')}"
    return (Advice(text, gain_at_most=1 - now / then, short=text),)
