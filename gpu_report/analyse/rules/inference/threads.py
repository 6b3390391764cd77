"""Rule: threads that are made for a call or two, in which inference takes far longer."""

from gpu_report.analyse.causes.confidence import LIKELY, STRONG
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.new_threads import NewThreads, slow_new_threads
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.words import active_s, ms, of_calls, percent, severity
from gpu_report.model import Advice, Cause, Finding, ServedModel

FIX = "Call the model from threads that stay (a queue or a pool), not from a new one each time"
WHY = "PyTorch plans its convolutions (cuDNN) again in each new thread"


def new_threads(context: Context) -> list[Finding]:
    """Report each model that loses CALLS_LOST_SHARE of its time or more to calls of threads that have made none."""
    found = []
    for served in context.cached(judged_models):
        slow = slow_new_threads(served)
        if slow is not None and slow.lost_s >= th.CALLS_LOST_SHARE * active_s(served):
            found.append(_finding(context, served, slow))
    return found


def _finding(context: Context, served: ServedModel, slow: NewThreads) -> Finding:
    gain = min(slow.lost_s / active_s(served), 1.0)
    than = "" if slow.known_ms is None else f", {ms(slow.known_ms)} in one that called before"
    short = f"{FIX}: at most {percent(gain)} less time for all calls"
    return context.finding(
        "new-threads",
        severity(gain, slow.lost_s),
        (served.start_s, served.end_s),
        f"{slow.calls:,} of {served.latency.calls:,} calls came from a new thread: inference takes {ms(slow.mean_ms)} "
        f"then{than} ({of_calls(served)})",
        gpu=served.calls.gpu,
        evidence=evidence(
            ("calls of a new thread", slow.calls, ""),
            ("their inference (mean)", slow.mean_ms, "ms"),
            ("inference of other threads (median)", slow.known_ms, "ms"),
            ("GPU time per call (mean)", served.gpu_ms, "ms"),
            ("lost to new threads, at most", MS * slow.lost_s / served.latency.calls, "ms"),
        ),
        cause=Cause("new-threads", LIKELY if slow.known_ms is None else STRONG, WHY),
        advice=(Advice(FIX, gain_at_most=gain, short=short),),
    )
