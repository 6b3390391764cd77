"""The names of a YOLO model's layers in the profiler's trace."""

from __future__ import annotations

import contextlib
import sys
from typing import Any


class LayerNames:
    """Names the layers of a YOLO model in the trace, as long as a window is open.

    Hooks of all modules, not of these: what a model carries would be saved and copied with it.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._names: dict[int, str] = {}
        self._mark: Any = None
        self._open: list[tuple[int, Any]] = []
        self._handles: list[Any] = []

    def name(self) -> None:
        """Have each layer say when it begins and ends."""
        torch = sys.modules["torch"]
        self._mark = getattr(torch._C._profiler, "_RecordFunctionFast", None)
        model = getattr(self._model, "module", self._model)  # of DDP
        if self._mark is None or hasattr(model, "_orig_mod"):  # old torch; a compiled model would be compiled anew
            return
        for number, layer in enumerate(getattr(model, "model", ())):
            kind = str(getattr(layer, "type", type(layer).__name__)).rpartition(".")[2]
            self._names[id(layer)] = f"layer {number} {kind}"[:80]
        module = torch.nn.modules.module
        self._handles.append(module.register_module_forward_pre_hook(self._begins))
        self._handles.append(module.register_module_forward_hook(self._ends))

    def forget(self) -> None:
        """Take that back, and end what an exception has left open."""
        while self._handles:
            self._handles.pop().remove()
        while self._open:
            with contextlib.suppress(Exception):
                self._open.pop()[1].__exit__(None, None, None)

    def _begins(self, module: Any, *_: Any) -> None:
        name = self._names.get(id(module))
        if name is not None:
            with contextlib.suppress(Exception):
                mark = self._mark(name)
                mark.__enter__()
                self._open.append((id(module), mark))

    def _ends(self, module: Any, *_: Any) -> None:
        """End a layer, with those within it that an exception has left open."""
        if any(place == id(module) for place, _ in self._open):
            place = None
            while place != id(module):
                place, mark = self._open.pop()
                with contextlib.suppress(Exception):
                    mark.__exit__(None, None, None)
