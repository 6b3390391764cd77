"""Defaults of the YOLO arguments that decide how a training goes, so that what was changed can stand first.

They are equal in ultralytics 8.3.0, 8.4.0, 8.4.100 and 8.4.190 (a test holds them against the installed one). An
argument that is not here has another default in another version, or no say in how a training goes: it is reported as
recorded.
"""

from typing import Final

SAME_SINCE: Final = "8.3.0"

# A model and a data set have no default: they are always the user's.
DEFAULTS: Final[dict[str, object]] = {
    "model": None,
    "data": None,
    "epochs": 100,
    "time": None,
    "patience": 100,
    "batch": 16,
    "imgsz": 640,
    "save": True,
    "save_period": -1,
    "cache": False,
    "device": None,
    "workers": 8,
    "pretrained": True,
    "optimizer": "auto",
    "seed": 0,
    "deterministic": True,
    "single_cls": False,
    "rect": False,
    "cos_lr": False,
    "close_mosaic": 10,
    "resume": False,
    "amp": True,
    "fraction": 1.0,
    "profile": False,
    "dropout": 0.0,
    "val": True,
    "plots": True,
    "nbs": 64,
    "lr0": 0.01,
    "lrf": 0.01,
    "momentum": 0.937,
    "weight_decay": 0.0005,
    "warmup_epochs": 3.0,
    "mosaic": 1.0,
    "mixup": 0.0,
    "copy_paste": 0.0,
    "hsv_h": 0.015,
    "hsv_s": 0.7,
    "hsv_v": 0.4,
    "degrees": 0.0,
    "translate": 0.1,
    "scale": 0.5,
    "shear": 0.0,
    "perspective": 0.0,
    "flipud": 0.0,
    "fliplr": 0.5,
    "erasing": 0.4,
}


def is_changed(name: str, value: object) -> bool:
    """Tell whether an argument is another than its default; False for one whose default is not known."""
    if name not in DEFAULTS:
        return False
    default = DEFAULTS[name]
    # True equals 1 in Python, but cache=1 is not cache=True to a reader
    return default != value or isinstance(default, bool) != isinstance(value, bool)
