"""Benchmarks that nobody has to run: a variant whose calls take what a test says, and workers that answer at once."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpu_report.model import BenchRun, BenchVariant, ModelCalls

TURN_S = 10.0  # of each of the turns that `served` has
HELLO = {"device": "0", "gpu": "NVIDIA H100", "gpu_uuid": "GPU-1", "versions": {"ultralytics": "8.4", "torch": "2.9"}}
BOX = [10.0, 10.0, 50.0, 50.0, 0.9, 3.0]


def served(
    name: str = "n", ms: float = 10.0, batch: int = 1, turns: int = 4, gap_ms: float = 0.0, **more: Any
) -> BenchVariant:
    """Return a variant whose calls take `ms`, with `gap_ms` between, one after the other in turns of TURN_S."""
    count = int(TURN_S * 1000 / (ms + gap_ms))
    starts = np.concatenate([2 * TURN_S * turn + np.arange(count) * (ms + gap_ms) / 1000 for turn in range(turns)])
    spans = tuple((2 * TURN_S * turn, 2 * TURN_S * turn + TURN_S + 1e-6) for turn in range(turns))
    fields: dict[str, Any] = {"format": "pt", "half": False, "given": False, "pid": 7, "settings": {"device": "cuda:0"}}
    calls = (model_calls(starts, np.full(len(starts), ms), batch),)
    return BenchVariant(
        **{"name": name, "short": name, "batch": batch, "turns": spans, "calls": calls, **fields, **more}
    )


def model_calls(start_s: Any, total_ms: Any, images: int = 1, *, side: float = 640.0) -> ModelCalls:
    """Return calls of one model; nine tenths of each are inference."""
    each = np.ones(len(start_s))
    parts = {
        "preprocess_ms": 0.05 * total_ms,
        "inference_ms": 0.9 * total_ms,
        "postprocess_ms": 0.05 * total_ms,
        "gap_ms": 0 * each,
    }
    shape = {"images": images * each, "height": side * each, "width": side * each}
    return ModelCalls(
        pid=7,
        number=1,
        settings={},
        gpu=0,
        start_s=np.asarray(start_s),
        total_ms=np.asarray(total_ms),
        **shape,
        **parts,
    )


def failed(name: str, stage: str = "load", reason: str = "RuntimeError: no", **more: Any) -> BenchVariant:
    """Return a variant that has failed before it served."""
    fields: dict[str, Any] = {"short": name, "format": "engine", "half": True, "batch": 1, "given": False}
    return BenchVariant(name=name, failed_in=stage, reason=reason, **{**fields, **more})


def benchmark(*variants: BenchVariant, device: str = "0", gpu: str | None = "NVIDIA H100", **more: Any) -> BenchRun:
    """Return a benchmark of such variants."""
    power: dict[str, Any] = {"power_t_s": np.empty(0), "power_w": np.empty(0)}
    fields = {"path": "run", "start_wall_s": 1.7e9, "versions": {"torch": "2.9"}, "plan": {}, **power, **more}
    return BenchRun(device=device, gpu=gpu, variants=variants, **fields)


class FakeChild:
    """A worker that answers from a table of requests by name: a dict, a function of the request, or an exception."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.asked: list[dict[str, Any]] = []
        self.ended = 0
        self.interrupted = False
        self._answers = answers
        self._sent: list[dict[str, Any]] = []

    def send(self, request: Mapping[str, Any]) -> None:
        self.asked.append(dict(request))
        self._sent.append(dict(request))

    def answer(self, limit_s: float) -> dict[str, Any]:
        request = self._sent.pop(0)
        found = self._answers.get(request["do"], {})
        found = found(request) if callable(found) else found
        if isinstance(found, Exception):
            raise found
        return found

    def ask(self, request: Mapping[str, Any], limit_s: float) -> dict[str, Any]:
        self.send(request)
        return self.answer(limit_s)

    def close(self) -> None:
        """Nothing has to be done."""

    def interrupt(self) -> None:
        self.interrupted = True

    def end(self) -> None:
        self.ended += 1

    def requests(self, name: str) -> list[dict[str, Any]]:
        """Return all requests of a name."""
        return [request for request in self.asked if request["do"] == name]
