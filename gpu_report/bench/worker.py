"""A process that holds one variant's model and serves when asked: `python -m gpu_report.bench.worker FD`.

It reads a request a line from its standard input and answers each with a line of JSON on the file descriptor FD; what
ultralytics prints goes to its log. It ends when its input does. torch and ultralytics are imported here alone.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from gpu_report.bench.host_speed import loop_ms, waited_s
from gpu_report.bench.sources import Images, read_images
from gpu_report.inside.on_path.gpu_report_inside import facts
from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_and_cut
from gpu_report.without_secrets import safe_text

# Libraries that an export or a latency may depend on; those that are installed.
LIBRARIES = ("ultralytics", "torch", "onnx", "onnxruntime", "onnxruntime-gpu", "openvino", "tensorrt", "numpy")
# Of an image that are compared, those with the highest scores: COCO has 7 on average, and with the lowest score of 0 a
# model finds hundreds that mean nothing.
MOST_BOXES = 50
SEED = 0  # of the weights of a model that is a YAML
MIB = 2**20


def main() -> None:
    """Answer requests until there are none."""
    worker = Worker()
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as answers:
        for line in sys.stdin:
            answers.write(json.dumps(_answer(worker, json.loads(line))) + "\n")
            answers.flush()


def _answer(worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
    """Return what a request leads to; an exception is an answer, with its type and first line."""
    try:
        answer: dict[str, Any] = getattr(worker, f"do_{request.pop('do')}")(**request)
    except Exception as error:  # noqa: BLE001 - whatever a library raises is why the variant has no figures
        sys.stderr.write(safe_text(traceback.format_exc()))
        return {"error": reason_of(error)}
    return answer


def reason_of(error: BaseException) -> str:
    """Return an exception in a line, without secrets, and how a library is installed that a format needs."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    said = hide_and_cut(f"{type(error).__name__}: {first}").rstrip(": ")
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return f"{said}. Install it: `pip install {missing}`" if missing in LIBRARIES else said


class Worker:
    """One model; `do_NAME` answers the request NAME."""

    def __init__(self) -> None:
        self._model: Any = None
        self._images: Images = []
        self._arguments: dict[str, Any] = {}
        self._batch = 1
        self._next = 0
        self._gpu: int | None = None

    def do_hello(self, device: str | None) -> dict[str, Any]:
        """Import what is needed; return versions, and the device that is meant: the first GPU, else the CPU."""
        torch = import_module("torch")
        import_module("ultralytics")
        has_gpu = bool(torch.cuda.is_available())
        used = device or ("0" if has_gpu else "cpu")
        index = _index(used)
        if index is not None and (not has_gpu or index >= torch.cuda.device_count()):
            raise ValueError(f"device {used} is not there: torch sees {torch.cuda.device_count()} GPUs")
        name = None if index is None else str(torch.cuda.get_device_name(index))
        return {
            "device": used,
            "gpu": name,
            "gpu_uuid": _uuid(torch, index),
            "versions": _versions(),
            "pid": os.getpid(),
        }

    def do_weights(self, model: str, folder: str) -> dict[str, Any]:
        """Return the file of a model's weights, and its task; a model that is a YAML gets weights at random, once."""
        if Path(model).suffix not in {".yaml", ".yml"}:
            loaded = _yolo()(model)
            return {"file": str(Path(loaded.ckpt_path or model).resolve()), "task": loaded.task, "random": False}
        versions = _versions()
        home = Path(folder) / f"{Path(model).stem}-random-{versions['ultralytics']}-{versions['torch']}"
        file = home / f"{Path(model).stem}.pt"
        if not file.exists():
            import_module("torch").manual_seed(SEED)
            loaded = _yolo()(model)
            home.mkdir(parents=True, exist_ok=True)
            loaded.ckpt = loaded.ckpt or {}  # 8.3 takes it for granted
            loaded.save(str(file.with_suffix(".part")))
            file.with_suffix(".part").replace(file)
        return {"file": str(file.resolve()), "task": _yolo()(str(file)).task, "random": True}

    def do_build(self, weights: str, half: bool, **arguments: Any) -> dict[str, Any]:  # noqa: FBT001 - a JSON value
        """Export weights beside themselves; return the file, and how long it took without the imports."""
        began_s = time.monotonic()
        made = _yolo()(weights).export(**arguments, **_precision(half=half))
        if not made or not Path(str(made)).exists():
            raise RuntimeError("the export made no file")
        return {"file": str(made), "build_s": time.monotonic() - began_s}

    def do_load(  # noqa: PLR0913, PLR0917 - the fields of a JSON object
        self,
        file: str,
        task: str,
        device: str,
        batch: int,
        imgsz: int,
        half: bool,  # noqa: FBT001 - a JSON value
        source: str,
    ) -> dict[str, Any]:
        """Load the model and make its first call; return how long both took, and what is in use."""
        self._images, unreadable = read_images(source, imgsz)
        self._batch = batch
        self._arguments = {"imgsz": imgsz, "device": device, "verbose": False, "save": False, **_precision(half=half)}
        # All variants get the same work: without it PyTorch alone pads an image to less than a square.
        self._arguments["rect"] = False
        began_s = time.monotonic()
        self._model = _yolo()(file, task=task)
        self._call()
        load_s = time.monotonic() - began_s
        self._gpu = _index(device)
        settings = facts.read(facts.MODEL, self._model.predictor)
        return {"load_s": load_s, "settings": settings, "unreadable_images": unreadable}

    def do_serve(self, seconds: float, settle_s: float = 0.0) -> dict[str, Any]:
        """Make calls one after the other; return their median, and from when to when they count (monotonic clock)."""
        self._call_for(settle_s)
        loop_before_ms = loop_ms(self._gpu)
        before_s, start_s = waited_s(), time.monotonic()
        took_s = self._call_for(seconds)
        turn: dict[str, Any] = {"start_mono_s": start_s, "end_mono_s": time.monotonic(), "calls": len(took_s)}
        turn |= {"waited_s": _difference(before_s, waited_s()), "median_ms": 1000 * median(took_s)}
        return turn | {"loop_ms": loop_before_ms, "loop_after_ms": loop_ms(self._gpu)}

    def do_boxes(self, images: int, lowest_score: float) -> dict[str, Any]:
        """Return what is found on the first images: rows of x1, y1, x2, y2, score and class, the surest first."""
        found: list[list[list[float]]] = []
        self._next = 0
        while len(found) < images:
            found += [_rows(result) for result in self._call(conf=lowest_score)]
        return {"boxes": found[:images]}

    def do_val(self, data: str, folder: str) -> dict[str, Any]:
        """Validate on a data set; return mAP50-95. What ultralytics writes goes into a folder of ours."""
        kept = {name: self._arguments[name] for name in self._arguments if name not in {"save", "rect"}}
        ours = {"project": folder, "plots": False, "rect": False, "workers": 0}
        metrics = self._model.val(data=data, batch=self._batch, **ours, **kept)
        return {"map50_95": float(metrics.box.map)}

    def do_memory(self) -> dict[str, Any]:
        """Return the peak of this process's memory, and of what torch reserved on its GPU, in MiB."""
        torch = import_module("torch")
        reserved = torch.cuda.max_memory_reserved() / MIB if torch.cuda.is_initialized() else None
        return {
            "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "gpu_memory_mib": reserved,
        }

    def _call_for(self, seconds: float) -> list[float]:
        """Make calls, of a time that is not over one at least; return how long each took, in seconds."""
        took_s: list[float] = []
        now_s = time.monotonic()
        until_s = now_s + seconds
        while now_s < until_s:
            began_s = now_s
            self._call()
            now_s = time.monotonic()
            took_s.append(now_s - began_s)
        return took_s

    def _call(self, **more: Any) -> Any:
        """Predict the next batch."""
        batch = [self._images[(self._next + place) % len(self._images)] for place in range(self._batch)]
        self._next += self._batch
        return self._model.predict(batch, batch=self._batch, **self._arguments, **more)


def _yolo() -> Callable[..., Any]:
    made: Callable[..., Any] = import_module("ultralytics").YOLO
    return made


def _precision(*, half: bool) -> dict[str, Any]:
    """Return the argument that asks for FP16 in this version of ultralytics: `quantize` since 8.4, `half` before."""
    if not half:
        return {}
    known = import_module("ultralytics.utils").DEFAULT_CFG_DICT
    return {"quantize": 16} if "quantize" in known else {"half": True}


def _versions() -> dict[str, str]:
    """Return versions of what is installed; of what is imported its own, for a container may have no metadata."""
    found = {name: str(import_module(name).__version__) for name in ("ultralytics", "torch")}
    for name in LIBRARIES:
        try:
            found.setdefault(name, metadata.version(name))
        except metadata.PackageNotFoundError:
            continue
    return found


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _index(device: str) -> int | None:
    """Return the number of the GPU that ultralytics calls so, None of a CPU or several."""
    number = device.removeprefix("cuda:")
    return int(number) if number.isdigit() else None


def _uuid(torch: Any, index: int | None) -> str | None:
    """Return a GPU's UUID as NVML has it (torch from 2.4 on)."""
    uuid = None if index is None else getattr(torch.cuda.get_device_properties(index), "uuid", None)
    return None if uuid is None else f"GPU-{uuid}"


def _rows(result: Any) -> list[list[float]]:
    """Return an image's boxes; of a classification its class, as a box around everything."""
    boxes = result.boxes if result.boxes is not None else getattr(result, "obb", None)
    if boxes is None:
        probs = getattr(result, "probs", None)
        return [] if probs is None else [[0.0, 0.0, 1.0, 1.0, float(probs.top1conf), float(probs.top1)]]
    rows = np.column_stack([tensor.cpu().numpy() for tensor in (boxes.xyxy, boxes.conf, boxes.cls)]).astype(float)
    best: list[list[float]] = rows[np.argsort(-rows[:, 4], kind="stable")][:MOST_BOXES].tolist()
    return best


if __name__ == "__main__":
    main()
