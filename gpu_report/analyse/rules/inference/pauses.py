"""Rule: the first calls after a pause are slower: clocks have fallen, caches and connections gone cold."""

from collections.abc import Iterator

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.reloaded_models import is_rebuilt
from gpu_report.analyse.rules.inference.words import ms, of_calls
from gpu_report.model import Advice, CallGroup, Finding, ServedModel

KEEP_AWAKE = "Call the model now and then while nobody asks, so that clocks and caches stay up"
LOCK_CLOCKS = "An administrator may hold the clocks: `nvidia-smi --lock-gpu-clocks`"


def slow_after_pauses(context: Context) -> list[Finding]:
    """Report each model whose median is SLOWER_AFTER_PAUSE times as long after its longest pauses as back to back.

    Where its predictor is set up anew the pauses are that, and what follows them is a first call.
    """
    found = []
    for served in context.cached(judged_models):
        groups = served.groups_by("gap")
        if groups and _is_slower(groups[-1], groups[0]) and not is_rebuilt(context, served):
            found.append(_finding(context, served, groups[-1], groups[0]))
    return found


def _is_slower(after: CallGroup, before: CallGroup) -> bool:
    """Tell whether one group's median is longer by more than chance."""
    long, short = after.latency.p50, before.latency.p50
    if long.value_ms is None or long.low_ms is None or short.value_ms is None or short.high_ms is None:
        return False
    return long.value_ms >= th.SLOWER_AFTER_PAUSE * short.value_ms and long.low_ms > short.high_ms


def _finding(context: Context, served: ServedModel, after: CallGroup, before: CallGroup) -> Finding:
    long, short = after.latency.p50.value_ms or 0.0, before.latency.p50.value_ms or 1.0
    clocks = served.groups_by("sm-clock")
    advice = [Advice(KEEP_AWAKE, short=KEEP_AWAKE)]
    advice += [Advice(LOCK_CLOCKS, short=LOCK_CLOCKS)] if clocks else []
    return context.finding(
        "slow-after-pause",
        "info",
        (served.start_s, served.end_s),
        f"After a pause of {after.label} a call takes {ms(long)} instead of {ms(short)} ({of_calls(served)})",
        gpu=served.calls.gpu,
        evidence=evidence(
            (f"median after a pause of {after.label}", long, "ms"),
            (f"median after a pause of {before.label}", short, "ms"),
            *_clocks(clocks),
        ),
        advice=tuple(advice),
    )


def _clocks(groups: tuple[CallGroup, ...]) -> Iterator[tuple[str, float | None, str]]:
    for group in groups:
        yield f"median with the SM clock at {group.label}", group.latency.p50.value_ms, "ms"
