"""Served models in words: their names, settings, latencies, and which part of a call is the longest."""

from gpu_report.model import Analysis, CallParts, Quantile, ServedModel
from gpu_report.render.formatting import clean, energy, known, number, share, step_time
from gpu_report.wording import MISSING, amount, ends_of_change

MS = 1000.0

# Formats as ultralytics names them, where people write them otherwise.
_FORMATS = {
    "pt": "PyTorch",
    "torchscript": "TorchScript",
    "onnx": "ONNX",
    "engine": "TensorRT",
    "openvino": "OpenVINO",
    "coreml": "CoreML",
    "saved_model": "TensorFlow SavedModel",
    "pb": "TensorFlow GraphDef",
    "tflite": "TensorFlow Lite",
    "paddle": "PaddlePaddle",
    "ncnn": "NCNN",
    "mnn": "MNN",
    "rknn": "RKNN",
    "executorch": "ExecuTorch",
}
PARTS = ("preprocess", "inference", "postprocess", "other")
PART_WORDS = {
    "preprocess": "Pre-processing",
    "inference": "Inference",
    "postprocess": "Post-processing",
    "other": "Everything else",
}


def calls_in_all(analysis: Analysis) -> int:
    """Return how many calls of all models there were, those of warming up included."""
    return sum(len(each.calls.start_s) for each in analysis.served)


def milliseconds(value: float | None) -> str:
    """Return a latency given in milliseconds, or n/a."""
    return MISSING if known(value) is None else step_time((value or 0.0) / MS)


def interval_words(quantile: Quantile) -> str:
    """Return the interval of a quantile, empty where there is none or both ends read the same."""
    if known(quantile.low_ms) is None or known(quantile.high_ms) is None:
        return ""
    low, high = (milliseconds(end).replace("\u00a0", " ") for end in (quantile.low_ms, quantile.high_ms))
    return "" if low == high else ends_of_change(low, high).replace(" ms", "\u00a0ms")


def format_words(served: ServedModel) -> str:
    """Return the format of a model, empty where it is not known."""
    name = served.calls.settings.get("format")
    return _FORMATS.get(name, clean(name)) if isinstance(name, str) else ""


def precision_words(served: ServedModel) -> str:
    """Return FP16 or FP32, empty where it is not known."""
    half = served.calls.settings.get("half")
    return "" if half is None else "FP16" if half else "FP32"


def speed_words(images_per_s: float | None) -> str:
    """Return images a second as a bare number: tenths below a hundred."""
    return MISSING if known(images_per_s) is None else amount(images_per_s, "")


def parts_ms(parts: CallParts) -> dict[str, float]:
    """Return the mean milliseconds of the parts of a call that are known, by their names, in order."""
    values = {part: known(getattr(parts, f"{part}_ms")) for part in PARTS}
    return {part: value for part, value in values.items() if value is not None}


def longest_part(parts: CallParts) -> str:
    """Return the longest part of a call: inference 13.0 ms (88 %); empty where no part is known."""
    found = parts_ms(parts)
    if not found or parts.total_ms <= 0:
        return ""
    part = max(found, key=lambda name: found[name])
    return f"{PART_WORDS[part].lower()} {milliseconds(found[part])} ({share(found[part] / parts.total_ms)})"


def energy_per_million(served: ServedModel) -> str:
    """Return the energy of a million images, or n/a."""
    joules = known(served.joules_per_image)
    return energy(None if joules is None else joules * 1e6)


def money_per_million(served: ServedModel) -> str:
    """Return what a million images cost, empty where no price was given."""
    money = known(served.money_per_million)
    return "" if money is None else number(money, 2)
