"""Rules: inference on the CPU, beside an idle GPU or in PyTorch."""

from collections.abc import Iterator, Sequence
from shlex import quote

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules.inference.words import active_s, model_name, of_calls, severity
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Advice, Evidence, Finding, ServedModel, asked_for_cpu, fell_back_to_cpu
from gpu_report.wording import counted

NAMED = 2  # models, in a sentence
ON_GPU = "Use the GPU: `device=0`"
EXPORT = "Export the model for the CPU: OpenVINO or ONNX"
# One image of 640 pixels a call, p50 on two cores of an AMD EPYC (2026-11-26, `gpu-report bench`): 110, 42 and 27 ms.
MEASURE_EXPORT = (
    EXPORT + ". `gpu-report bench {} --device cpu --formats pt,onnx,openvino` measures what that wins. "
    "On two cores yolo26n took 38 % of the time in ONNX, 25 % in OpenVINO"
)
ON_GPU_ONNX = "Install `onnxruntime-gpu` in place of `onnxruntime`, as new as the CUDA that is there"


def on_the_cpu(context: Context) -> list[Finding]:
    """Report models that ran on the CPU of a machine that has a GPU, or though a GPU was asked for.

    It is a note where that was asked for, and inference is not the largest part of a call or takes little time.
    """
    is_there = bool(context.run.gpus)
    models = [each for each in context.cached(judged_models) if _is_on_cpu(each)]
    alike: dict[tuple[bool, bool], list[ServedModel]] = {}
    for each in models:
        if is_there or _asked_for_gpu(each):
            settings = each.calls.settings
            alike.setdefault((asked_for_cpu(settings), fell_back_to_cpu(settings)), []).append(each)
    return [_on_cpu(context, mine, *how) for how, mine in alike.items()]


def _asked_for_gpu(served: ServedModel) -> bool:
    """Tell whether the user named a GPU: without a device ultralytics takes the CPU where there is none."""
    asked = served.calls.settings.get("asked_device")
    return asked not in {None, "", "None"} and fell_back_to_cpu(served.calls.settings)


def _is_on_cpu(served: ServedModel) -> bool:
    settings = served.calls.settings
    return str(settings.get("device", "")).startswith("cpu") or fell_back_to_cpu(settings)


def _on_cpu(context: Context, models: Sequence[ServedModel], asked: bool, fell_back: bool) -> Finding:  # noqa: FBT001
    """Return what is to be said of models for which the CPU was `asked`, or to which ONNX Runtime `fell_back`."""
    fix = ON_GPU_ONNX if fell_back else ON_GPU
    why = "ONNX Runtime fell back to it" if fell_back else "the device was set to cpu" if asked else "no GPU was used"
    though = "this machine has a GPU" if context.run.gpus else "a GPU was asked for"
    of_time, took_s = _took(models)
    return context.finding(
        "cpu-inference",
        severity(of_time, took_s) if asked else "warning",
        _span(models),
        f"Inference ran on the CPU though {though}: {why} ({_of_all(models)})",
        evidence=_medians(models),
        advice=(
            Advice(fix, None if fell_back else "device", "cpu" if asked else None, None, of_time or None, short=fix),
        ),
    )


def _took(models: Sequence[ServedModel]) -> tuple[float, float]:
    """Return the share (0 to 1) of the time of the model that inference takes most of, and its seconds of all."""
    of_each = [min(_largest_part_s(each) / active_s(each), 1.0) if active_s(each) else 0.0 for each in models]
    return max(of_each), sum(map(_largest_part_s, models))


def _span(models: Sequence[ServedModel]) -> Span:
    return min(each.start_s for each in models), max(each.end_s for each in models)


def _of_all(models: Sequence[ServedModel]) -> str:
    """Return of which calls something is said, the first models named."""
    more = [counted(len(models) - NAMED, "more model")] if len(models) > NAMED else []
    return "; ".join([*map(of_calls, models[:NAMED]), *more])


def _medians(models: Sequence[ServedModel]) -> tuple[Evidence, ...]:
    """Return the median of a call of each model, which is named where there are several."""
    named = [f" ({model_name(each)})" if len(models) > 1 else "" for each in models]
    pairs = zip(models, named, strict=True)
    return evidence(*((f"median of a call{name}", each.latency.p50.value_ms, "ms") for each, name in pairs))


def _largest_part_s(served: ServedModel) -> float:
    """Return the seconds of all calls' inference where that is the largest part of a call, else 0."""
    parts = served.parts
    others = [part or 0.0 for part in (parts.preprocess_ms, parts.postprocess_ms, parts.other_ms)]
    inference_ms = parts.inference_ms or 0.0
    return inference_ms / MS * served.latency.calls if inference_ms > max(others) else 0.0


def pytorch_on_the_cpu(context: Context) -> list[Finding]:
    """Report models that PyTorch runs on the CPU of a machine without a GPU, where that takes most of their time."""
    models = () if context.run.gpus else context.cached(judged_models)
    mine = sorted(filter(_is_in_pytorch, models), key=_largest_part_s, reverse=True)
    return [_in_pytorch(context, mine)] if mine else []


def _is_in_pytorch(served: ServedModel) -> bool:
    settings = served.calls.settings
    is_plain = settings.get("format") == "pt" and not settings.get("compile")
    return is_plain and _is_on_cpu(served) and not _asked_for_gpu(served) and _largest_part_s(served) > 0


def _in_pytorch(context: Context, models: Sequence[ServedModel]) -> Finding:
    """Return what is to be said of models in PyTorch, the one that takes longest first."""
    of_time, took_s = _took(models)
    most, several = models[0], len(models) > 1
    return context.finding(
        "pytorch-on-cpu",
        severity(of_time, took_s),
        _span(models),
        f"PyTorch runs the {'models' if several else 'model'} on the CPU ({_of_all(models)})",
        evidence=(
            *evidence((f"inference (mean{f', {model_name(most)}' if several else ''})", most.parts.inference_ms, "ms")),
            *_medians(models),
        ),
        advice=(
            Advice(MEASURE_EXPORT.format(quote(most.calls.name)), short=EXPORT),
            *_to_have_a_gpu(context, most),
        ),
    )


def _to_have_a_gpu(context: Context, served: ServedModel) -> Iterator[Advice]:
    """Yield what the recorder said to do about the GPU that it could not read, unless the CPU was asked for."""
    told = (context.run.no_gpu or {}).get("advice")
    if told and not asked_for_cpu(served.calls.settings):
        yield Advice(f"If there is a GPU: {told}")
