"""The variants of a benchmark: each model in each format, precision and batch size."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

# The formats that can be asked for, with their names for people, and how the names of such files end.
FORMATS = {"pt": "PyTorch", "torchscript": "TorchScript", "onnx": "ONNX", "openvino": "OpenVINO", "engine": "TensorRT"}
SUFFIXES = {".torchscript": "torchscript", ".onnx": "onnx", "_openvino_model": "openvino", ".engine": "engine"}
_UNSAFE = re.compile(r"[^\w.+-]+")


@dataclass(frozen=True)
class Variant:
    """A model in a format, a precision (`half`: FP16) and a batch size.

    `model` is what the user named, `short` how it is called. `given`: the model is a file of that format itself, which
    nobody has to build, and whose precision is its own.
    """

    model: str
    short: str
    format: str
    half: bool
    batch: int
    given: bool = False

    @property
    def name(self) -> str:
        """Return how people call it: yolo26n ONNX FP16, batch 8."""
        precision = "" if self.given else " FP16" if self.half else " FP32"
        return f"{self.short} {FORMATS[self.format]}{precision}, batch {self.batch}"

    @property
    def file_name(self) -> str:
        """Return a name for a file that is about it."""
        parts = (self.short, self.format, "" if self.given else "fp16" if self.half else "fp32", f"b{self.batch}")
        return _UNSAFE.sub("_", "-".join(filter(None, parts)))

    def as_fields(self) -> dict[str, Any]:
        """Return its fields and its name, as bench.json has them."""
        return {"name": self.name, **asdict(self)}


def grid(models: Sequence[str], formats: Sequence[str], batches: Sequence[int], *, half: bool) -> tuple[Variant, ...]:
    """Return each model in each format, in FP32 and with `half` in FP16 as well, at each batch size.

    A model that is an exported file stays in its format: others cannot be made of it.
    """
    shorts = _shorts(models)
    found = []
    for model in dict.fromkeys(models):
        of_file = format_of(model)
        for name in formats if of_file is None else (of_file,):
            for fp16 in (False, True) if half and of_file is None else (False,):
                found += [Variant(model, shorts[model], name, fp16, batch, of_file is not None) for batch in batches]
    return tuple(found)


def format_of(model: str) -> str | None:
    """Return the format of an exported file, None for weights or a model's YAML."""
    name = model.rstrip("/")
    return next((format_ for suffix, format_ in SUFFIXES.items() if name.endswith(suffix)), None)


def _shorts(models: Sequence[str]) -> dict[str, str]:
    """Return how each model is called: by its file's stem, or in full where several have the same."""
    stems = {model: PurePath(model).stem.removesuffix("_openvino_model") for model in models}
    times = Counter(stems.values())
    return {model: stem if times[stem] == 1 else model for model, stem in stems.items()}
