"""Predictors that take the place of another one of the same YOLO object, by which arguments, and in which line.

ultralytics builds a predictor anew (copies the model, fuses its layers, warms up) whenever an argument that its set-up
takes is another than at the call before. Looked at only when a predictor makes its first call.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from .secrets.hide import hide_and_cut

MODEL_FILE = "ultralytics/engine/model.py"
CALLS = frozenset({"predict", "track"})  # of YOLO's, `self` of which is the YOLO object
MOST_FRAMES = 64  # from a call up to the user's line: it has seven
# Of ultralytics 8.4.190; earlier ones have fewer, or `half` in the place of `quantize`.
SETUP_KEYS = (
    *("device", "dnn", "data", "nms", "compile", "channels_last", "quantize", "tracker"),
    *("half", "end2end"),
)


class Predictors:
    """The last predictor of each YOLO object: its arguments, and the number of its model."""

    def __init__(self) -> None:
        self._last: Any = weakref.WeakKeyDictionary()

    def comes(self, predictor: Any, number: int) -> dict[str, Any] | None:
        """Take a predictor that calls for the first time; return what is known if it takes another one's place.

        Nothing is known where results are streamed: then the user's loop, and no YOLO object, calls the predictor.
        """
        yolo, place = _caller(sys._getframe(1))
        if yolo is None:
            return None
        args = {key: getattr(predictor.args, key, None) for key in SETUP_KEYS}
        before = self._last.get(yolo)
        self._last[yolo] = args, number
        if before is None:
            return None
        changed = [key for key in SETUP_KEYS if before[0][key] != args[key]]
        return {"number": number, "before": before[1], "changed": changed, **place}


def _caller(frame: Any) -> tuple[Any, dict[str, Any]]:
    """Return the YOLO object in whose call a frame lies, None of none, and the user's line that made the call."""
    yolo, package = None, ""
    for _ in range(MOST_FRAMES):
        if frame is None:
            break
        code = frame.f_code
        file = code.co_filename.replace("\\", "/")
        if yolo is None and code.co_name in CALLS and file.endswith(MODEL_FILE):
            yolo, package = frame.f_locals.get("self"), file[: -len("engine/model.py")]
        elif yolo is not None and not file.startswith(package):
            place = {"file": hide_and_cut(code.co_filename), "line": frame.f_lineno, "function": code.co_name}
            return yolo, place
        frame = frame.f_back
    return yolo, {}
