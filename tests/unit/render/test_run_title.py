"""A run is called by its folder, or by its training where any folder may be called so."""

from dataclasses import replace

import pytest

from gpu_report.model import Analysis, YoloRun
from gpu_report.render.run_title import run_title

ARGS = {"model": "yolo26l.pt", "data": "/data/coco128.yaml"}


@pytest.mark.parametrize(
    ("folder", "args", "title"),
    [
        ("/home/me/first-try", {"name": "bees"}, "first-try"),
        ("/home/me/log", {"project": "/runs/bees", "name": "train"}, "bees"),
        ("gpu-runs/20261121-103501", {"project": "runs/detect", "name": "bees-2"}, "bees-2"),
        ("/home/me/run", {**ARGS, "project": "runs/detect", "name": "train2"}, "yolo26l on coco128"),
        ("/home/me/run", {**ARGS, "data": "/data/bees/data.yaml"}, "yolo26l"),
        ("/home/me/run", {"model": "runs/detect/train/weights/best.pt", "name": "train"}, "run"),
        ("/home/me/run", {}, "run"),
    ],
)
def test_a_folder_whose_name_says_nothing_is_not_the_title(
    analysis: Analysis, folder: str, args: dict[str, object], title: str
) -> None:
    runs = (YoloRun(1, None, args, "recorded", None),)
    assert run_title(replace(analysis.run, path=folder, yolo_runs=runs)) == title


def test_a_folder_of_several_trainings_has_its_own_name(analysis: Analysis) -> None:
    runs = tuple(YoloRun(number, None, {"name": "bees"}, "recorded", None) for number in (1, 2))
    assert run_title(replace(analysis.run, path="/home/me/log", yolo_runs=runs)) == "log"
