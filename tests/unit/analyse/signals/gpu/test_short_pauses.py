"""Pauses shorter than a drop that come again and again."""

import dataclasses

import pytest
from support.runs import make_run, readings
from support.samples import NAMES, labels_of, run_of

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.signals import thresholds
from gpu_report.model import InsideEpoch, InsideRun, Options, Phase, YoloRun

EPOCH_S, VALIDATION_S = 1200, 20


def training(pause_s, busy_s, low_pct=0.0):
    """Return a training of four epochs that stands still for `pause_s` after each `busy_s`."""
    turns = (EPOCH_S - 60) // (pause_s + busy_s)
    rest_s = EPOCH_S - turns * (pause_s + busy_s)
    epoch = [(95, busy_s), (low_pct, pause_s)] * turns + [(95, rest_s), (30, VALIDATION_S)]
    phases, told = [Phase("startup", None, 0.0, 20.0, "inside")], []
    for number in range(1, 5):
        start_s = 20.0 + (number - 1) * (EPOCH_S + VALIDATION_S)
        phases.append(Phase("train", number, start_s, start_s + EPOCH_S, "inside"))
        phases.append(Phase("validation", number, start_s + EPOCH_S, start_s + EPOCH_S + VALIDATION_S, "inside"))
        told.append(InsideEpoch(number, 1, start_s, start_s + EPOCH_S, 1000, 100, 0.0, 0.0, 0.0))
    inside = InsideRun(1, 0, 41, "train", {}, tuple(phases), tuple(told), "finished")
    run = make_run(readings((0, 20), *(epoch * 4), (0, 5)))
    return dataclasses.replace(run, inside=(inside,), yolo_runs=(YoloRun(1, None, {}, "recorded", None),))


def drops(run):
    return [f for f in analyse(run).findings if f.rule == "drop" and not f.expected]


@pytest.mark.parametrize(("pause_s", "busy_s"), [(6, 54), (8, 230)], ids=["a tenth", "a collection of garbage"])
def test_pauses_of_seconds_are_one_finding_where_they_take_a_fiftieth(pause_s, busy_s):
    (found,) = drops(training(pause_s, busy_s))
    assert found.took_s == pytest.approx(4 * (1140 // (pause_s + busy_s)) * pause_s, rel=0.05)


@pytest.mark.parametrize(
    ("pause_s", "busy_s", "low_pct"), [(6, 594, 0.0), (3, 27, 0.0), (6, 54, 20.0)], ids=["rare", "too short", "at work"]
)
def test_what_is_rare_shorter_or_at_work_is_none(pause_s, busy_s, low_pct):
    assert drops(training(pause_s, busy_s, low_pct)) == []


def test_ordinary_training_has_no_pauses_at_all(monkeypatch):
    """What PAUSES_SHARE is set by: however few would do, none of the sample runs without a fault has one."""
    monkeypatch.setattr(thresholds, "PAUSES_SHARE", 0.0)
    monkeypatch.setattr(thresholds, "PAUSES_S", 1.0)
    healthy = [name for name in NAMES if not labels_of(name).faults]
    assert len(healthy) >= 10
    shorter = {name: [d for d in build_context(run_of(name), Options()).drops if d.duration_s < 10] for name in healthy}
    assert {name: found for name, found in shorter.items() if found} == {}
