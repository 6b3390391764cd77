"""The code of data-loader workers that would hold a training back once its steps are faster."""

import dataclasses
from types import SimpleNamespace

import pytest
from support.samples import run_of
from support.stacks import LOOP, RESTS, TRAINER, process, series

from gpu_report.analyse.advice.next_limit import next_limit
from gpu_report.analyse.signals.code.idle_stacks import idle_stacks
from gpu_report.model import Frame

YOLO = "/venv/lib/python3.11/site-packages/ultralytics/"
OWN = Frame("/home/me/balanced.py", 15, "get_image_and_label")
DECODE = Frame(YOLO + "utils/patches.py", 60, "imread")
POLYGONS = Frame(YOLO + "utils/ops.py", 500, "resample_segments")


def offered(*stacks, at_work=3.6, epoch_s=2.5, task="detect"):
    """Return what is offered of 4 workers in epochs of 4 s, each stack of which was a worker's for 10 s."""
    stays = [(10.0 * at, 10.0 * at + 10, stack) for at, stack in enumerate(stacks)]
    run = dataclasses.replace(run_of("s-loader-stall"), stacks=(process(*stays, role="worker 0", pid=2),))
    noted = idle_stacks(run, [series(*[100] * 100)])
    signals = SimpleNamespace(idle_stacks=noted, steady_of=lambda _: [(0.0, 10.0 * len(stacks))])
    batches = SimpleNamespace(
        settings=SimpleNamespace(workers=4, ranks=1), workers_at_work=at_work, limit=SimpleNamespace(epoch_s_now=4.0)
    )
    return next_limit(SimpleNamespace(signals=signals), SimpleNamespace(args={"task": task}), batches, epoch_s)


def test_a_function_of_the_users_is_named_with_what_it_has_yolo_do():
    advice = offered((DECODE, OWN, LOOP, TRAINER), (DECODE, OWN, LOOP, TRAINER), RESTS)
    assert advice.short == (
        "Then look at `get_image_and_label` (balanced.py:15): data-loader workers will be the next limit"
    )
    assert advice.text.endswith(
        "4 workers are at work 90 % of the time, 100 % of it in `get_image_and_label` (balanced.py:15), "
        "mostly in `imread` (patches.py:60)"
    )


def test_polygons_that_detection_makes_boxes_of_are_named():
    assert offered((POLYGONS, LOOP, TRAINER)).short.startswith("Then turn polygon labels into boxes: ")
    assert offered((POLYGONS, LOOP, TRAINER), task="segment") is None


@pytest.mark.parametrize("known", [{"at_work": 2.4}, {"epoch_s": 3.7}, {"at_work": 0.0}])
def test_workers_that_would_keep_up_are_no_limit(known):
    assert offered((DECODE, OWN, LOOP, TRAINER), **known) is None


def test_code_of_yolo_alone_nobody_can_change():
    assert offered((DECODE, LOOP, TRAINER)) is None
