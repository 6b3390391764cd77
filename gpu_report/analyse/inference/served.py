"""The models that were called, each with its latency, throughput, parts, groups and gaps."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.call_time import MS, PARTS, call_spans, seconds_of
from gpu_report.analyse.inference.gaps import gap_parts, noted_thread
from gpu_report.analyse.inference.groups import groups_of
from gpu_report.analyse.inference.percentiles import latency
from gpu_report.analyse.inference.warm_up import LOOKED_AT, alike, warm_up_calls
from gpu_report.analyse.timeseries.energy import energy
from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, union_of_rows
from gpu_report.model import CallParts, GapPart, ModelCalls, ServedModel

# By which models of one file are told apart.
ARGUMENTS = ("quantize", "half", "device", "imgsz", "nms", "compile", "batch", "mode", "conf", "max_det", "augment")
MOST_NAMED = 2
SAME_AS = {"half": "quantize", "end2end": "nms"}  # follow from these, where there are both
MILLION = 1e6
HOUR_S = 3600.0


def served_models(context: Context) -> tuple[ServedModel, ...]:
    """Return the models that were called, those with the most images first."""
    served = [_served(context, calls) for calls in context.run.calls if len(calls.start_s)]
    named = [replace(each, differs=differing_settings(each, served)) for each in served]
    return tuple(sorted(named, key=lambda each: -each.images))


def differing_settings(served: ServedModel, others: Sequence[ServedModel]) -> str:
    """Return in which arguments a model differs from others of the same file, as they are typed: the first few.

    Those of several processes may have the same: then nothing is returned.
    """
    same = [each.calls.settings for each in others if each.calls.name == served.calls.name]
    mine = served.calls.settings
    differ = [name for name in ARGUMENTS if name in mine and any(mine[name] != each.get(name) for each in same)]
    told = [name for name in differ if SAME_AS.get(name) not in differ]
    return ", ".join(f"{name}={mine[name]}" for name in told[:MOST_NAMED])


def judged_models(context: Context) -> tuple[ServedModel, ...]:
    """Return those whose calls are judged: what a process calls before or after its training is no service."""
    trained = {run.pid for run in context.run.inside if run.task == "train"}
    return tuple(served for served in context.cached(served_models) if served.calls.pid not in trained)


def is_inference(context: Context) -> bool:
    """Tell whether models were called and nothing trained in this run."""
    return bool(context.run.calls) and not context.run.has_training


def _served(context: Context, calls: ModelCalls) -> ServedModel:
    warm_up = warm_up_calls(alike(calls.total_ms[:LOOKED_AT], calls.images[:LOOKED_AT]))
    warm_up = min(warm_up, len(calls.start_s) - 1)
    rows = slice(warm_up, None)
    span = float(calls.start_s[warm_up]), float(calls.end_s[rows].max())
    length_s, in_calls_s = span[1] - span[0], seconds_of(call_spans(calls, rows))
    gap_s, images = max(length_s - in_calls_s, 0.0), int(calls.images[rows].sum())
    series = context.series_if_read(calls.gpu)
    served = ServedModel(
        calls=calls,
        warm_up_calls=warm_up,
        warm_up_s=float(calls.total_ms[:warm_up].sum()) / MS,
        first_ms=float(calls.total_ms[0]),
        start_s=span[0],
        end_s=span[1],
        images=images,
        latency=latency(calls.total_ms[rows]),
        parts=_parts(calls, rows),
        groups=tuple(groups_of(calls, rows, series, _highest_clock(context, series))),
        images_per_s=images / length_s if length_s > 0 else None,
        images_per_s_in_calls=images / in_calls_s if in_calls_s > 0 else None,
        in_calls_share=in_calls_s / length_s if length_s > 0 else 0.0,
        gap_s=gap_s,
        gap_parts=_gap_parts(context, calls.after(warm_up), span, gap_s),
    )
    return served if series is None else _with_gpu(context, served, series)


def _with_gpu(context: Context, served: ServedModel, series: GpuSeries) -> ServedModel:
    """Return a model with what its GPU did, and what that cost."""
    span, length_s = (served.start_s, served.end_s), served.end_s - served.start_s
    share = _share_of_inference(context, served.calls, span)
    util_pct = series.mean_util_pct(*span) if len(series.t_s) else float("nan")
    busy = None if np.isnan(util_pct) else util_pct / 100
    is_alone = share == 1.0 and not any(other.gpu == series.gpu for other in context.used_by_others)
    tells = busy is not None and is_alone and served.in_calls_share >= th.IN_CALLS_AT_LEAST
    joules, price = _joules(context, series.gpu, span), context.options.price_per_hour
    return replace(
        served,
        gpu_busy_share=busy,
        gpu_ms=MS * busy * length_s / served.latency.calls if tells and busy is not None else None,
        joules_per_image=None if joules is None else joules * share / served.images,
        money_per_million=None if price is None else MILLION * price * share * length_s / HOUR_S / served.images,
    )


def _parts(calls: ModelCalls, rows: slice) -> CallParts:
    """Return the means of the parts of those calls that have them."""
    total_ms = calls.total_ms[rows]
    parts = np.array([getattr(calls, f"{name}_ms")[rows] for name in PARTS])
    known = np.isfinite(parts).all(axis=0)
    if not known.any():
        return CallParts(None, None, None, None, float(total_ms.mean()))
    before, model, after = parts[:, known].mean(axis=1).tolist()
    total = float(total_ms[known].mean())
    return CallParts(before, model, after, max(total - before - model - after, 0.0), total)


def _highest_clock(context: Context, series: GpuSeries | None) -> float | None:
    """Return the card's highest SM clock (MHz), else the highest that was seen."""
    if series is None:
        return None
    clock = series.samples["sm_clock_mhz"].to_numpy(dtype=float)
    seen = float(np.nanmax(clock)) if np.isfinite(clock).any() else None
    return context.run.gpu(series.gpu).max_sm_clock_mhz or seen


def _gap_parts(context: Context, calls: ModelCalls, span: Span, gap_s: float) -> tuple[GapPart, ...]:
    notes = noted_thread(context, calls.pid)
    own = [each for each in context.run.calls if each.pid == calls.pid]
    # of a process with several models nobody can say which of them a gap belongs to
    return gap_parts(notes, call_spans(calls), span, gap_s) if notes is not None and len(own) == 1 else ()


def unknown_gap_s(context: Context, served: ServedModel) -> float:
    """Return how long a process was in no call of any model while one was served, and nobody knows what it did."""
    own = [each for each in context.run.calls if each.pid == served.calls.pid]
    spans = np.clip(np.concatenate([call_spans(each) for each in own]), served.start_s, served.end_s)
    called_s = seconds_of(union_of_rows(spans))
    known_s = sum(part.seconds for part in served.gap_parts)
    return max(served.end_s - served.start_s - called_s - known_s, 0.0)


def _share_of_inference(context: Context, calls: ModelCalls, span: Span) -> float:
    """Return which share of the inference time of all models on its GPU was this one's, within a span."""
    mine = _inference_s([calls], span)
    others = _inference_s([each for each in context.run.calls if each is not calls and each.gpu == calls.gpu], span)
    return mine / (mine + others) if mine + others > 0 else 1.0


def _inference_s(all_calls: Sequence[ModelCalls], span: Span) -> float:
    return sum(float(_known(calls)[_within(calls.start_s, span)].sum()) for calls in all_calls) / MS


def _known(calls: ModelCalls) -> Floats:
    return np.where(np.isfinite(calls.inference_ms), calls.inference_ms, calls.total_ms).astype(np.float64)


def _within(t_s: Floats, span: Span) -> slice:
    first, last = np.searchsorted(t_s, span)
    return slice(int(first), int(last))


def _joules(context: Context, gpu: int, span: Span) -> float | None:
    series = context.series_if_read(gpu)
    return None if series is None else energy(series).between(*span)
