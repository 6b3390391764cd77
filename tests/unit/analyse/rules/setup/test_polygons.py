"""Labels that are polygons, where a detect model has no use for them."""

import dataclasses

import pytest
from support.runs import make_run
from support.stacks import LOOP, READS, RESTS, TRAINER, TRAINS, process

from gpu_report.analyse import analyse
from gpu_report.model import Frame, InsideEpoch, InsideRun, Phase, YoloRun

AUGMENT = Frame("/venv/lib/python3.11/site-packages/ultralytics/data/augment.py", 1290, "apply_segments")
MINE = Frame("/home/me/augment.py", 12, "apply_segments")


def trained(segments, *, innermost=AUGMENT, args=None, waited_s=0.0):
    """Return a training of 100 s whose worker was at work in half of it, in `segments` (0 to 1) of that on polygons."""
    end_s = 110.0
    phases = (Phase("startup", None, 0.0, 10.0, "callbacks"), Phase("train", 1, 10.0, end_s, "callbacks"))
    epochs = (InsideEpoch(1, 1, 10.0, end_s, 640, 100, waited_s, 0.0, 0.0),)
    inside = InsideRun(1, 0, 1, "train", {"workers": 1}, phases, epochs, "finished")
    from_s = 10.0 + 50 * segments
    stays = [(10.0, from_s, (innermost, LOOP, TRAINER))] if segments else []
    worker = process(*stays, (from_s, 60.0, READS), (60.0, end_s, RESTS), role="worker 0", pid=2)
    main = process((0.0, end_s, TRAINS))
    yolo = YoloRun(1, None, {"task": "detect", **(args or {})}, "recorded", None)
    run = make_run([0.0] * 10 + [80.0] * 100)
    return dataclasses.replace(run, inside=(inside,), yolo_runs=(yolo,), stacks=(main, worker))


def found(run):
    return [each for each in analyse(run).findings if "polygons" in each.summary]


@pytest.mark.parametrize(("waited_s", "severity"), [(0.0, "info"), (40.0, "warning")])
def test_polygons_of_a_detect_training_are_a_note_unless_it_waits_for_data(waited_s, severity):
    (finding,) = found(trained(0.48, waited_s=waited_s))
    assert finding.severity == severity
    assert finding.summary == "Data-loader workers spent 48 % of their work on polygons (`resample_segments`)"
    assert finding.advice[0].short.startswith("Convert the labels from polygons to boxes")


@pytest.mark.parametrize(
    ("segments", "fields"),
    [
        (0.1, {}),
        (0.0, {}),
        (0.5, {"args": {"task": "segment"}}),
        (0.5, {"args": {"copy_paste": 0.3}}),
        (0.5, {"innermost": MINE}),  # a function of the user's that is called so
    ],
)
def test_polygons_that_are_used_or_cost_little_are_no_problem(segments, fields):
    assert found(trained(segments, **fields)) == []
