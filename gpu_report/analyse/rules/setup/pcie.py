"""Configuration problem: a PCIe link far below what it can do, or with few lanes, that takes much of a step.

For copies of images, or for the gradients of several GPUs.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.causes.gpu import reseat
from gpu_report.analyse.causes.thresholds import COPIES_SHARE
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import compared_with, evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SetupIssue
from gpu_report.analyse.signals.gpu.pcie_link import LinkUsed, link_used
from gpu_report.analyse.signals.thresholds import BUSY_WAIT_UTIL_PCT
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.analyse.timeseries.intervals import Span, intersect
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice, Gpu
from gpu_report.wording import length

FEWER_EXCHANGES = Advice(
    "Until then try a larger `batch`, which exchanges gradients less often: GPUs that wait for them read as 100 % busy"
)
GIGA = 1e9
BYTES_PER_MIB = 2**20


def pcie_link(context: Context, training: Training) -> SetupIssue | None:
    """Find the slowest PCIe link of a training's GPUs, where it is slow; else one that repeats too many packets."""
    used = [_used(context, training, gpu) for gpu in sorted(training.gpus)]
    slow = [each for each in used if each is not None and _is_slow(context, training, each)]
    if not slow:
        return _repeating(context, training)
    slowest = min(slow, key=lambda each: each.link.bytes_per_s)
    return _slow(context, training, slowest, further=len(slow) - 1)


def _repeating(context: Context, training: Training) -> SetupIssue | None:
    """Find the GPU whose link repeated most packets, where a sound one never repeats so many."""
    counts = {gpu: replays(context.run.gpu(gpu)) for gpu in training.gpus}
    gpu, count = max(counts.items(), key=lambda pair: pair[1], default=(0, 0))
    if count < max(th.REPLAYS_PER_S * context.run.duration_s, th.REPLAYS_LEAST):
        return None
    return SetupIssue(
        "info",
        f"{gpu_words(gpu)}'s PCIe link is poor: {count:,} packets were sent again",
        (gpu,),
        advice=(Advice("Reseat the GPU and its riser or cable; a healthy link repeats a few packets a day"),),
    )


def replays(gpu: Gpu) -> int:
    """Return how many PCIe packets were sent again in the recording; 0 where nobody counted."""
    before, after = ((health or {}).get("pcie_replays") for health in (gpu.health_start, gpu.health_end))
    return max(after - before, 0) if isinstance(before, int) and isinstance(after, int) else 0


def _used(context: Context, training: Training, gpu: int) -> LinkUsed | None:
    series = context.series_if_read(gpu)
    spans = training.train_spans
    return link_used(context.run.gpu(gpu), series, spans) if series is not None and spans else None


def _is_slow(context: Context, training: Training, used: LinkUsed) -> bool:
    """Tell whether a link is far below what it can do, or has few lanes and copies take much of a step.

    One that is said to be slower than what went over it is no credible reading: a virtual machine may have such ones.
    """
    share = _copies_share(context, training, used) or 0.0
    if share > 1 or (_received(context, training, used) or 0.0) > used.link.bytes_per_s:
        return False
    costs = share >= COPIES_SHARE or _waits_for_gradients(context, training, used)
    return used.far_below or (used.link.lanes <= th.FEW_LANES and costs)


def _slow(context: Context, training: Training, used: LinkUsed, further: int) -> SetupIssue:
    share, slower = _copies_share(context, training, used), _slower(context, training, used)
    again, exchange = replays(context.run.gpu(used.gpu)), _exchange_share(context, training, used)
    waits = _waits_for_gradients(context, training, used)
    costs = waits or _costs(training, share, slower)
    by_estimate = _gain(used, exchange if waits else None if training.ranks > 1 else share)
    gain = by_estimate if slower is None else slower or None  # what was measured before and after is no estimate
    summary = _of_gradients(used, exchange, share or 0.0) if waits else _summary(used, share or 0.0)
    return SetupIssue(
        "warning" if costs else "info",
        summary,
        (used.gpu, used.link, used.span[0] if used.before else None),
        evidence(
            ("bandwidth of this PCIe link, about", used.link.bytes_per_s / GIGA, "GB/s"),
            compared_with("capacity", used.can_do.bytes_per_s / GIGA if used.far_below else None, "GB/s"),
            ("copying images to the GPU, estimated, of each step", None if share is None else 100 * share, "%"),
            ("gradient synchronisation, if over this link, of each step", exchange and 100 * exchange, "%"),
            ("power of this GPU in training", _power_w(context, training, used) if waits else None, "W"),
            compared_with("limit", context.run.gpu(used.gpu).power_limit_w if waits else None, "W"),
            ("training without data waits got slower as the link fell", None if slower is None else 100 * slower, "%"),
            ("PCIe packets sent again", float(again) or None, ""),
            ("further GPUs with a slow link", float(further) or None, ""),
        ),
        (replace(_advice(used, again), gain_at_most=gain), *((FEWER_EXCHANGES,) if waits else ()))
        if costs or training.ranks > 1
        else (),
        span=used.span,
    )


def _costs(training: Training, share: float | None, slower: float | None) -> bool:
    """Tell whether a link costs what is worth a warning.

    One GPU's link carries images, and what their copies take is known; gradients of several cross it, too. A laptop
    slows down and lowers its link at once when it goes to its battery: a fall counts only where copies are not all.
    """
    by_fall = slower if share is None or training.ranks > 1 else None
    return max(share or 0.0, by_fall or 0.0) >= COPIES_SHARE


def _gain(used: LinkUsed, share: float | None) -> float | None:
    """Return what share (0 to 1) of training a link as it can be would save, of the share that takes what crosses it.

    None where that is not known.
    """
    return None if share is None else share * (1 - used.link.bytes_per_s / used.can_do.bytes_per_s) or None


def _waits_for_gradients(context: Context, training: Training, used: LinkUsed) -> bool:
    """Tell whether a step is long for the gradients that cross a link, and not for its work.

    What waits in NCCL reads as 100 % busy. It draws no more than its share of the power that work takes.
    """
    share = _exchange_share(context, training, used)
    if not (_may_be_slowest(context, training, used) if share is None else share >= th.EXCHANGE_SHARE):
        return False
    power_w, limit_w = _power_w(context, training, used), context.run.gpu(used.gpu).power_limit_w
    return power_w is None or limit_w is None or power_w < th.FULL_POWER_SHARE * limit_w


def _may_be_slowest(context: Context, training: Training, used: LinkUsed) -> bool:
    """Tell whether gradients may fill a link, where nobody knows how many there are: one slower than a fast network.

    GPUs that wait for them are busy all the time. Where traffic was read, the link was full for half of it or more.
    """
    is_counted = training.quantity("parameters") is not None and context.throughput is not None
    if is_counted or not training.steps_together or _has_nvlink(context, used.gpu):
        return False
    util_pct = column_mean(context.series_of(used.gpu).samples, "gpu_util_pct", _spans(training, used)) or 0.0
    received, speed = _received(context, training, used), used.link.bytes_per_s
    is_full = received is None or received >= th.RECEIVED_SHARE * speed
    return speed < th.SLOWEST_LINK and util_pct >= BUSY_WAIT_UTIL_PCT and is_full


def _power_w(context: Context, training: Training, used: LinkUsed) -> float | None:
    return column_mean(context.series_of(used.gpu).samples, "power_w", _spans(training, used))


def _received(context: Context, training: Training, used: LinkUsed) -> float | None:
    """Return the bytes a second that came over a link, None where the driver does not count them."""
    mib_s = column_mean(context.series_of(used.gpu).samples, "pcie_rx_mib_s", _spans(training, used))
    return None if mib_s is None else mib_s * BYTES_PER_MIB


def _of_gradients(used: LinkUsed, exchange: float | None, share: float) -> str:
    """Return what is wrong with a link for which gradients make steps longer, up to a share `exchange` of each."""
    takes = "" if exchange is None else f" may take up to {100 * exchange:.0f} % of each step"
    if used.far_below:
        crossing = f"where gradients{takes}" if takes else "and gradients cross it"
        return f"{_summary(used, share)}, {crossing}"
    return (
        f"Gradients over {gpu_words(used.gpu)}'s PCIe link, {used.link.words},{takes or ' may be what steps wait for'}"
    )


def _summary(used: LinkUsed, share: float) -> str:
    (start, end), now, link = used.span, used.link.words, f"{gpu_words(used.gpu)}'s PCIe link"
    if not used.far_below:
        return f"Copying images to {gpu_words(used.gpu)} over PCIe {now} takes about {100 * share:.0f} % of each step"
    if used.before is None:
        until = f" until {length(end)} into the recording" if used.recovered else ""
        return f"{link} ran at {now} instead of {used.can_do.words}{until}"
    when = f"for {length(end - start)}" if used.recovered else f"after {length(start)}"
    return f"{link} fell from {used.before.words} to {now} {when}"


def _advice(used: LinkUsed, again: int) -> Advice:
    why = f": it sent {again:,} packets again" if again >= th.REPLAYS_LEAST else ""
    if used.before is not None:
        return reseat(used.gpu, why)
    if used.link.lanes < used.can_do.lanes:
        return reseat(used.gpu, f"{why}; try the slot without a riser")
    if used.far_below:
        text = f"Set the slot of {gpu_words(used.gpu)} to PCIe generation Auto in the BIOS, or check its riser{why}"
        return Advice(text, short="Check the PCIe generation in the BIOS")
    text = (
        f"Put {gpu_words(used.gpu)} into a slot with more lanes, without a riser. `lspci -vv` shows what each slot has"
    )
    return Advice(text, short="Use a wider slot")


def _copies_share(context: Context, training: Training, used: LinkUsed) -> float | None:
    """Return the share of training, 0 to 1, in which a GPU's images crossed its link; None where that is not known.

    YOLO copies each batch before its step, in the order of the GPU's work: the time is part of the step.
    """
    rate = _images_per_s(context, training, used.span)
    if training.image_bytes is None or rate is None:
        return None
    share = training.image_bytes * rate / training.ranks / used.link.bytes_per_s
    return share if math.isfinite(share) else None


def _images_per_s(context: Context, training: Training, span: Span) -> float | None:
    spans = intersect([span], training.train_spans)
    return context.throughput.images_per_s(spans) if context.throughput is not None and spans else None


def _spans(training: Training, used: LinkUsed) -> list[Span]:
    return intersect([used.span], training.train_spans)


def _exchange_share(context: Context, training: Training, used: LinkUsed) -> float | None:
    """Return the share of a step, 0 to 1, that a ring all-reduce takes over the link, None on one GPU or with NVLink.

    Each rank sends 2 (n - 1) / n of the gradients, in 32 bits also with AMP. Part of it runs beside the backward pass.
    Nor is it known where far less came over the link than that.
    """
    ranks, parameters = training.ranks, training.quantity("parameters")
    spans = _spans(training, used)
    if ranks < 2 or not parameters or context.throughput is None or not spans or _has_nvlink(context, used.gpu):
        return None
    steps = context.throughput.batches_per_s(spans)
    sent = 2 * (ranks - 1) / ranks * th.GRADIENT_BYTES * parameters * (steps or 0.0)
    received = _received(context, training, used)
    if steps is None or (received is not None and received < th.RECEIVED_SHARE * sent):
        return None
    return min(sent / used.link.bytes_per_s, 1.0)


def _has_nvlink(context: Context, gpu: int) -> bool:
    return bool((context.series_of(gpu).samples["nvlink_tx_mib_s"] > 0).any())


def _slower(context: Context, training: Training, used: LinkUsed) -> float | None:
    """Return by which share training got slower as the link fell, 0 to 1; None where it did not fall.

    In the time around it, and without what was waited for data: another cause would have to come at the same moment.
    """
    at_s = used.span[0]
    if used.before is None or context.throughput is None:
        return None
    before, after = (
        _speed(context, intersect([span], training.train_spans))
        for span in ((at_s - th.AROUND_S, at_s - th.READ_EVERY_S), (at_s, min(at_s + th.AROUND_S, used.span[1])))
    )
    return max(1 - after / before, 0.0) if before and after is not None else None


def _speed(context: Context, spans: Sequence[Span]) -> float | None:
    """Return images a second of training that did not wait for data."""
    throughput = context.throughput
    rate = throughput.images_per_s(spans) if throughput is not None and spans else None
    waited = throughput.data_wait_share(spans) if throughput is not None and spans else None
    return None if rate is None or waited is None or waited >= 1 else rate / (1 - waited)
