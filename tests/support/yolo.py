"""A tiny data set, the ultralytics under test, and scripts that trainings are started from."""

import os
from importlib import metadata
from pathlib import Path

import numpy as np
from PIL import Image

# `make test-yolo` names a folder with another ultralytics than that of .venv, which child processes then import.
ULTRALYTICS_DIR = os.environ.get("ULTRALYTICS_UNDER_TEST", "")
IMAGES = 16


def version() -> tuple[int, ...]:
    """Return the version of ultralytics that the trainings use."""
    found = metadata.distributions(name="ultralytics", path=[ULTRALYTICS_DIR]) if ULTRALYTICS_DIR else ()
    text = next((each.version for each in found), None) or metadata.version("ultralytics")
    return tuple(int(part) for part in text.split("."))


# A detector of six layers, which make_data_set writes: for trainings of which only the order of things is looked at. An
# epoch of it takes a fifth of what one of yolo26n takes.
SMALL_MODEL = "small.yaml"
SMALL_LAYERS = """\
nc: 2
end2end: True
reg_max: 1
backbone:
  - [-1, 1, Conv, [8, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
  - [-1, 1, Conv, [16, 3, 2]]
  - [-1, 1, Conv, [32, 3, 2]]
  - [-1, 1, Conv, [32, 3, 2]]
head:
  - [[2, 3, 4], 1, Detect, [nc]]
"""
MODEL = "yolo26n.yaml" if version() >= (8, 4) else "yolo11n.yaml"  # 8.3 has no YOLO26


def make_data_set(home: Path) -> None:
    """Write `data.yaml`, noise with one box each, and a small model into a new folder."""
    rng = np.random.default_rng(0)
    for split, count in (("train", IMAGES), ("val", 8)):
        (home / "images" / split).mkdir(parents=True)
        (home / "labels" / split).mkdir(parents=True)
        for i in range(count):
            image = rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)
            Image.fromarray(image).save(home / "images" / split / f"{i}.jpg")
            (home / "labels" / split / f"{i}.txt").write_text(f"{i % 2} 0.5 0.5 0.4 0.4\n")
    (home / "data.yaml").write_text(f"path: {home}\ntrain: images/train\nval: images/val\nnames: {{0: a, 1: b}}\n")
    (home / SMALL_MODEL).write_text(SMALL_LAYERS)
