"""Rules: a GPU that could do more of each call's inference, or the same work in fewer bits."""

import numpy as np

from gpu_report.analyse.causes.confidence import SUPPORTED
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference import thresholds as calls_th
from gpu_report.analyse.inference.call_time import MS, seconds_of
from gpu_report.analyse.inference.in_calls import own_code_in_inference_s
from gpu_report.analyse.inference.new_shapes import mostly_new_shapes, slow_new_shapes
from gpu_report.analyse.inference.new_threads import slow_new_threads
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.contention import calls_at_once, full_cores, parts_are_its_own
from gpu_report.analyse.rules.inference.words import active_s, ms, of_calls, percent, rate, severity, speed_now
from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import union_of_rows
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice, Cause, Finding, ServedModel
from gpu_report.wording import counted

ONE_BY_ONE = frozenset({"stream", "screenshot"})  # sources whose images come when they come
FORMATS_OF_HALF = frozenset({"pt", "torchscript", "onnx"})


def small_calls(context: Context) -> list[Finding]:
    """Report each GPU that works less than GPU_OF_INFERENCE of the time in which its models' inference goes on.

    It then waits for the CPU to launch its work. Where another process worked on it, the program has no core left to
    launch on, new shapes or new threads take the time, or calls are seldom, nobody knows.
    """
    shared = {other.gpu for other in context.used_by_others}
    found = []
    for series in context.series:
        mine = [each for each in context.cached(judged_models) if each.calls.gpu == series.gpu]
        if any(_waits_otherwise(context, each) for each in mine):
            continue
        if mine and series.gpu not in shared and len(series.t_s):
            found += _small(context, series, mine)
    return found


def _waits_otherwise(context: Context, served: ServedModel) -> bool:
    """Tell whether something else than launching is known to keep the GPU idle in a model's inference."""
    if slow_new_threads(served) is not None:
        return True
    return any(context.cached(found, served) is not None for found in (full_cores, slow_new_shapes))


def _small(context: Context, series: GpuSeries, mine: list[ServedModel]) -> list[Finding]:
    spans = _inference_spans(mine)
    start_s, end_s = min(each.start_s for each in mine), max(each.end_s for each in mine)
    own_s, length_s = sum(own_code_in_inference_s(context, each) for each in mine), end_s - start_s
    inference_s = seconds_of(spans) - own_s  # a hook of the user's keeps the CPU from launching: that is told of it
    busy_s = series.mean_util_pct(start_s, end_s) / 100 * length_s
    known = np.isfinite(busy_s) and inference_s >= calls_th.IN_CALLS_AT_LEAST * length_s
    if not known or busy_s >= th.GPU_OF_INFERENCE * inference_s:
        return []
    first, idle_s = mine[0], inference_s - busy_s
    calls = sum(each.latency.calls for each in mine)
    besides = ", your own code left out," if own_s else ""
    works = f"During inference{besides} {gpu_words(series.gpu)} is busy {percent(busy_s / inference_s)} of the time"
    return [
        context.finding(
            "small-calls",
            severity(idle_s / length_s, idle_s),
            (start_s, end_s),
            f"{works}: with {_sizes(mine)} the CPU launches kernels too slowly",
            gpu=series.gpu,
            evidence=evidence(
                ("GPU time per call (mean)", MS * busy_s / calls, "ms"),
                ("inference time per call (mean)", first.parts.inference_ms, "ms"),
                ("images per call", first.batch, ""),
                ("models called", len(mine) if len(mine) > 1 else None, ""),
                ("calls at once (mean)", _at_once(context, mine) if len(mine) > 1 else None, ""),
            ),
            cause=Cause("small-calls", SUPPORTED, "the GPU idles while inference goes on, and nobody else used it"),
            advice=(
                *_batch(context, first, MS * own_s / calls),
                *_gathered(context, mine, MS * own_s / calls),
                *_faster_launch(context, mine),
            ),
        )
    ]


def _inference_spans(mine: list[ServedModel]) -> Floats:
    """Return when any of some models was in its inference, as rows of (start, end) that do not overlap."""
    rows = []
    for each in mine:
        calls = each.steady_calls
        known = np.isfinite(calls.inference_ms)
        begin = (calls.start_s + calls.preprocess_ms / MS)[known]
        rows.append(np.column_stack([begin, begin + calls.inference_ms[known] / MS]))
    return union_of_rows(np.concatenate(rows))


def _sizes(mine: list[ServedModel]) -> str:
    batch = counted(max(round(mine[0].batch), 1), "image")
    return f"{batch} a call" if len(mine) == 1 else f"{len(mine)} models and {batch} a call"


def _batch(context: Context, served: ServedModel, own_ms: float) -> tuple[Advice, ...]:
    """Return what more images a call would make of it: the launching stays, and all else grows with the images.

    So does the user's code (`own_ms`) that runs within inference. Where calls overlap launching waits for the others,
    and images of shapes that change make no batch.
    """
    if context.cached(calls_at_once, served.calls.pid, served) >= th.CALLS_AT_ONCE or mostly_new_shapes(served):
        return ()
    parts, batch = served.parts, max(round(served.batch), 1)
    source = served.calls.settings.get("source")
    if source in ONE_BY_ONE or served.gpu_ms is None or parts.inference_ms is None or parts.preprocess_ms is None:
        return ()
    larger, launch_ms = batch, parts.inference_ms - own_ms
    while larger * 2 <= th.LARGEST_BATCH and larger * 2 * served.gpu_ms / batch <= launch_ms:
        larger *= 2
    if larger == batch:
        return ()
    gap_ms = MS * active_s(served) / served.latency.calls - parts.total_ms
    grown = larger / batch * (parts.total_ms - launch_ms + max(gap_ms, 0.0)) + launch_ms
    now, then = served.images / active_s(served), MS * larger / grown
    wins, gain = f"from {speed_now(served)} to about {rate(then)}", 1 - now / then
    if source == "files":
        short = f"Set `batch={larger}`: {wins}"
        return (Advice(short, "batch", str(batch), str(larger), gain_estimate=gain, short=short),)
    # `batch` has no effect on images that a program passes: a list is one call, however long it is.
    more = "" if larger == th.LARGEST_BATCH else " or more"  # a GPU takes less for each image of a larger batch
    short = f"Pass lists of {larger} images{more} where latency allows: {wins}"
    text = short if source else f"{short}. For a folder or a video: `batch={larger}`"
    return (Advice(text, gain_estimate=gain, short=short),)


def _gathered(context: Context, mine: list[ServedModel], own_ms: float) -> tuple[Advice, ...]:
    """Return what one call with the images of all threads would make of it, where threads call one model.

    Threads take turns to launch, so that a call takes its share of the time of all. One launch is then for all images;
    what is not launching stays as long for each, and so does the GPU's work.
    """
    first = mine[0]
    at_once = context.cached(calls_at_once, first.calls.pid, first)
    parts, by_one = first.parts, first.calls.settings.get("source") in ONE_BY_ONE
    if len(mine) > 1 or at_once < th.CALLS_AT_ONCE or by_one or mostly_new_shapes(first):
        return ()
    if first.gpu_ms is None or parts.inference_ms is None or parts.total_ms <= 0:
        return ()
    together, each_ms = round(at_once), MS * active_s(first) / first.latency.calls
    launch_ms = each_ms * max(parts.inference_ms - own_ms, 0.0) / parts.total_ms
    grown_ms = together * (each_ms - launch_ms) + max(launch_ms, together * first.gpu_ms)
    gain = 1 - grown_ms / (together * each_ms)
    if gain < th.CALLS_LOST_SHARE:
        return ()
    then = rate(first.images / active_s(first) / (1 - gain))
    images = together * max(round(first.batch), 1)
    what = f"Put the images of all threads into one call (lists of {images})"
    text = f"{what}: from {speed_now(first)} to about {then}"
    return (Advice(text, gain_estimate=gain, short=text),)


def _at_once(context: Context, mine: list[ServedModel]) -> float:
    """Return how many calls of one process went on at once, on average, while one of some models was called."""
    return max(context.cached(calls_at_once, each.calls.pid, each) for each in mine)


def _faster_launch(context: Context, mine: list[ServedModel]) -> tuple[Advice, ...]:
    """Return what launches faster: processes for threads that were seen to call at once, else another format.

    One thread that calls one model after the other gains nothing by processes.
    """
    if _at_once(context, mine) >= th.CALLS_AT_ONCE and len({each.calls.pid for each in mine}) == 1:
        whom = "model" if len(mine) > 1 else "thread"
        text = f"Give each {whom} a process of its own: threads of one Python process take turns to launch GPU work"
        return (Advice(text, short=text),)
    if mine[0].calls.settings.get("format") != "pt":
        return ()
    text = "For one image at a time: export the model (TensorRT, TorchScript), which launches faster; "
    text += "`gpu-report bench` measures the gain"
    return (Advice(text, short="For low latency, export the model (TensorRT, TorchScript)"),)


def full_precision(context: Context) -> list[Finding]:
    """Report models whose inference is the GPU's own work of GPU_BOUND or more, in 32 bits."""
    full = [served for served in context.cached(judged_models) if _is_full(served)]
    return [_full(context, served) for served in full if parts_are_its_own(context, served)]


def _is_full(served: ServedModel) -> bool:
    settings, inference_ms = served.calls.settings, served.parts.inference_ms
    if served.gpu_ms is None or inference_ms is None or settings.get("half") is not False:
        return False
    large = inference_ms >= th.PART_SHARE * served.parts.total_ms
    return large and settings.get("format") in FORMATS_OF_HALF and served.gpu_ms >= th.GPU_BOUND * inference_ms


def _full(context: Context, served: ServedModel) -> Finding:
    inference_ms = served.parts.inference_ms or 0.0
    share = inference_ms / MS * served.latency.calls / active_s(served)
    is_new = "quantize" in served.calls.settings  # the name of `half` since some 8.4
    argument, before, after = ("quantize", "None", "16") if is_new else ("half", "False", "True")
    text = f"Try half precision (`{argument}={after}`), and compare what it detects"
    return context.finding(
        "full-precision-calls",
        "info",
        (served.start_s, served.end_s),
        f"Inference runs in 32 bits and takes {ms(inference_ms)} of a call of {ms(served.parts.total_ms)} "
        f"({of_calls(served)})",
        gpu=served.calls.gpu,
        evidence=evidence(("GPU time per call (mean)", served.gpu_ms, "ms"), ("inference", inference_ms, "ms")),
        advice=(
            Advice(
                text,
                argument,
                before,
                after,
                gain_at_most=th.HALF_AT_MOST * share,
                gain_estimate=th.HALF_SAVES * share,
                short=text,
            ),
        ),
    )
