"""Rules: a model that is called several times for one image."""

from collections.abc import Iterator

import numpy as np

from gpu_report.analyse.causes.confidence import CERTAIN, POSSIBLE
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.callers import caller_of
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.words import model_name, percent, severity
from gpu_report.model import Advice, Cause, CodeLocation, Finding, ServedModel
from gpu_report.wording import place_words, where_it_is

SAM = "sam"  # the format of models that are asked for some objects of an image


def repeated_images(context: Context) -> list[Finding]:
    """Report each model of which many calls have the image of the call before: one call would do.

    Not of a stream that stood still, of which one picture comes again and again among many that come once.
    Of a SAM in older recordings, which compare no images, calls in a row count: that they are of one image is a guess.
    """
    return [finding for served in context.cached(judged_models) for finding in _found(context, served)]


def _found(context: Context, served: ServedModel) -> Iterator[Finding]:
    calls, known = len(served.calls.start_s), served.calls.repeated is not None
    again = served.calls.repeated if known else calls - _turns(context, served)
    if again is None or again < th.REPEATED_SHARE * calls or calls - again < th.REPEATED_IMAGES:
        return
    came_again = served.calls.repeated_images
    if came_again is not None and came_again < th.REPEATED_OF_IMAGES * (calls - again):
        return
    if known or served.calls.settings.get("format") == SAM:
        yield _finding(context, served, again / calls, known=known)


def _turns(context: Context, served: ServedModel) -> int:
    """Return how often a model's turn came in its process, where it is called by turns with others; else each call."""
    own = [each for each in context.run.calls if each.pid == served.calls.pid]
    if len(own) == 1:
        return len(served.calls.start_s)
    order = np.argsort(np.concatenate([each.start_s for each in own]), kind="stable")
    mine = np.concatenate([np.full(len(each.start_s), each is served.calls) for each in own])[order]
    return int(mine[0]) + int((mine[1:] & ~mine[:-1]).sum())


def _finding(context: Context, served: ServedModel, share: float, *, known: bool) -> Finding:
    length_s, line = served.end_s - served.start_s, caller_of(context, served)
    saved_s = share * served.latency.mean_ms / MS * served.latency.calls
    gain, times = saved_s / length_s, 1 / (1 - share)
    whom = model_name(served) if served.calls.settings.get("model") else "The SAM model"
    what = f"is called {times:.0f} times" if times >= th.MANY_TIMES else f"is called {times:.1f} times"
    summary = f"{whom} {what} for each image" if known else f"{whom} {what} in a row, perhaps for one image"
    return context.finding(
        "repeated-images",
        severity(gain, saved_s),
        (served.start_s, served.end_s),
        summary + (f": {where_it_is(line)}" if line else ""),
        gpu=served.calls.gpu,
        evidence=evidence(
            ("calls", served.latency.calls, ""),
            ("with the image of the call before" if known else "right after another call of it", 100 * share, "%"),
            ("a call (mean)", served.latency.mean_ms, "ms"),
        ),
        cause=Cause("repeated-images", CERTAIN if known else POSSIBLE, f"{percent(share)} of its calls"),
        where=(line,) if line else (),
        advice=(_once(served, line, gain),),
    )


def _once(served: ServedModel, line: CodeLocation | None, gain: float) -> Advice:
    """Return to make one call of several; a SAM takes all boxes at once, for most of its work is the image's."""
    at = f" in {place_words(line)}" if line else ""
    text = f"Call the model once for each image{at}, and keep its results"
    if served.calls.settings.get("format") == SAM:
        text = f"Call SAM once for each image{at}, with all boxes (`bboxes=`)"
    text += f": at most {percent(gain)} less time"
    return Advice(text, gain_at_most=gain, short=text)
