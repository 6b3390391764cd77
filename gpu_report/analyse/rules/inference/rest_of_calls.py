"""Rules: what lies within calls besides the model's own parts: your hooks and callbacks, tracking, drawing, saving."""

from collections.abc import Mapping
from typing import NamedTuple

from gpu_report.analyse.causes.confidence import SUPPORTED
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference import thresholds as calls_th
from gpu_report.analyse.inference.call_kinds import CallKind
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.in_calls import in_calls
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.words import OF_CALLS, active_s, ms, of_calls, percent, severity
from gpu_report.model import Advice, Cause, CodeLocation, Finding, Frame, ServedModel
from gpu_report.wording import where_it_is


class _Row(NamedTuple):
    """What is said of a kind: the rule, its cause, what takes the time, and what to do about it."""

    rule: str
    cause: str
    what: str
    fix: str


ROWS: Mapping[CallKind, _Row] = {
    "own code": _Row(
        "slow-code-in-calls", "code-in-calls", "your code", "Run `{}` in other threads, or for fewer calls"
    ),
    "tracking": _Row(
        "slow-tracking",
        "tracking",
        "tracking",
        "Use `tracker=bytetrack.yaml`, or `gmc_method: none` in the tracker's YAML if the camera does not move",
    ),
    "cutting out boxes": _Row(
        "slow-saving", "saving", "cutting out boxes", "Set `save_crop=False`, and cut boxes out in other processes"
    ),
    "writing labels": _Row(
        "slow-saving", "saving", "writing labels", "Set `save_txt=False`, and write results in other processes"
    ),
    "drawing and saving": _Row(
        "slow-saving", "saving", "drawing and saving", "Draw and save in other processes, or set `save=False`"
    ),
}


def rest_of_calls(context: Context) -> list[Finding]:
    """Report what takes PART_SHARE of a model's time or more within its calls, as stack notes say."""
    return [finding for served in context.cached(judged_models) for finding in _of_model(context, served)]


def _of_model(context: Context, served: ServedModel) -> list[Finding]:
    least_s = th.PART_SHARE * active_s(served)
    found = in_calls(context, served).items()
    return [_finding(context, served, kind, lines, seconds) for kind, (seconds, lines) in found if seconds >= least_s]


def _finding(
    context: Context, served: ServedModel, kind: CallKind, lines: Mapping[Frame, float], seconds: float
) -> Finding:
    row, share = ROWS[kind], min(seconds / active_s(served), 1.0)
    each_ms = MS * seconds / served.latency.calls
    where = _where(lines)
    line = f": {where_it_is(where[0])}" if kind == "own code" else ""
    fix = row.fix.format(where[0].function)
    return context.finding(
        row.rule,
        severity(share, seconds),
        (served.start_s, served.end_s),
        f"In each call {row.what} takes {ms(each_ms)} of {ms(served.parts.total_ms)} ({of_calls(served)}){line}",
        gpu=served.calls.gpu,
        evidence=evidence(
            (f"{row.what} (mean of a call)", each_ms, "ms"),
            ("a call (mean)", served.latency.mean_ms, "ms"),
            (f"share {OF_CALLS}, with what lies between them", 100 * share, "%"),
        ),
        cause=Cause(row.cause, SUPPORTED, f"by stack samples: {percent(share)} {OF_CALLS}"),
        where=where,
        advice=(Advice(fix, gain_at_most=share, short=f"{fix}: at most {percent(share)} less time for all calls"),),
    )


def _where(lines: Mapping[Frame, float]) -> tuple[CodeLocation, ...]:
    """Return the lines that took most, the longest first."""
    total = sum(lines.values())
    most = sorted(lines.items(), key=lambda each: -each[1])[: calls_th.SHOWN_LINES]
    return tuple(CodeLocation.in_main(line, s / total) for line, s in most)
