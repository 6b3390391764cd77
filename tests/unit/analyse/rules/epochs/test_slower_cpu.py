"""A CPU that got slower by itself: its power profile, governor, heat or battery."""

import dataclasses

import numpy as np
import pytest
from support.stacks import LOOP, READ, TRAINER, TRAINS, process
from support.trained_epochs import VALIDATION_S, findings, start_of, trained

from gpu_report.model import Frame, Validation

BEFORE, SINCE = 10, 10
THEN_S = start_of(BEFORE + 1, [22.0, *[20.0] * (BEFORE - 1), *[30.0] * SINCE])
LOADS = {"workers_cpu_pct": (300.0, 590.0), "busiest_worker_cpu_pct": (55.0, 98.0), "workers": 6.0}
CALM = {"main_cpu_pct": (60.0, 60.0), "cpu_pct": (36.0, 65.0), "cpu_steal_pct": 0.0, "io_pressure_pct": 0.0}
NMS_S = 0.8, 1.7
SLOWER = "the CPU got slower"


def slowed(*, nms_s=NMS_S, before=BEFORE, settings=None, **host):
    """Return a training that waits for data after some epochs; signals of the host are (before, since) or one value."""
    lengths = [22.0, *[20.0] * (before - 1), *[30.0] * (BEFORE + SINCE - before)]
    run = trained(lengths, [0.0] * before + [10.0] * (BEFORE + SINCE - before))
    since = run.host["t_s"].to_numpy() > start_of(before + 1, lengths)
    columns = {
        name: np.where(since, of[1], of[0]) if isinstance(of, tuple) else of
        for name, of in {**LOADS, **CALM, **host}.items()
    }
    (inside,) = run.inside
    phases = tuple(
        dataclasses.replace(phase, validated=_validated(phase, nms_s)) if phase.name == "validation" else phase
        for phase in inside.phases
    )
    inside = dataclasses.replace(inside, phases=phases, settings={"workers": 6, **(settings or {})})
    return dataclasses.replace(run, host=run.host.assign(**columns), inside=(inside,))


def _validated(phase, nms_s):
    took_s = nms_s[int(phase.start_t_s > THEN_S)] if nms_s else 0.0
    parts = {"postprocess": took_s, "inference": VALIDATION_S - took_s}
    return Validation(phase.start_t_s, phase.end_t_s, phase.epoch, 100, 10, parts)


def found(**given):
    (finding,) = findings(slowed(**given), "data-wait-growing")
    return finding


def test_images_and_work_without_a_loader_that_take_more_cpu_time_are_a_slower_cpu():
    finding = found()
    words = "(an image took 3.0 times the CPU time, and NMS and metrics took longer)"
    assert finding.summary.endswith(f"from epoch 11 on: {SLOWER} {words}")
    assert finding.advice[0].short == "Find what slowed the CPU: power profile, governor, heat or battery"


def test_a_clock_that_fell_says_so_without_a_validation():
    finding = found(nms_s=None, cpu_clock_mhz=(4200.0, 1400.0))
    assert "and its clock fell from 4,200 to 1,400 MHz" in finding.summary
    assert finding.cause.confidence == pytest.approx(0.9)
    hot = found(nms_s=None, cpu_clock_mhz=(4200.0, 1400.0), cpu_heat_throttles_per_s=(0.0, 1.5))
    assert hot.advice[0].short == "Improve the cooling of the CPU: heat slowed it"


@pytest.mark.parametrize(
    "given",
    [
        {"nms_s": None},  # nothing but the loader tells: the user's own augmentation may do more
        {"nms_s": (0.8, 0.85)},
        {"cpu_clock_mhz": (4200.0, 4150.0)},  # it kept its clock
        {"cpu_clock_mhz": (4200.0, 3400.0), "nms_s": None},  # three times the work on all cores: its clock follows
        {"workers_cpu_pct": (590.0, 390.0), "cpu_clock_mhz": (4200.0, 1400.0), "nms_s": None, "cpu_pct": 65.0},
        {"cpu_pct": (36.0, 90.0)},  # others ran on the same cores
        {"cpu_pct": (36.0, 75.0), "cpu_steal_pct": (0.0, 10.0)},
        {"cpu_pct": np.nan, "nms_s": None},  # nobody knows whether others ran
    ],
    ids=["one", "same NMS", "clock", "busy cores", "same CPU", "others", "steal", "unknown"],
)
def test_it_is_none_where_something_else_may_have_done_it(given):
    assert all(SLOWER not in each.summary for each in findings(slowed(**given), "data-wait-growing"))


@pytest.mark.parametrize(
    ("nms_s", "or_slower"), [((0.8, 0.8), ""), (None, ", or a CPU that got slower")], ids=["as before", "unknown"]
)
def test_images_that_all_cost_more_cpu_since_an_epoch_are_not_some_that_take_longer(nms_s, or_slower):
    finding = found(nms_s=nms_s)
    assert finding.summary.endswith("could not keep up (3.0\u00d7 the CPU time per image)")
    short = "Find why each image costs 3.0\u00d7 the CPU since epoch 11"
    why = "your own augmentation or its schedule, or images that are larger"
    assert [each.text for each in finding.advice] == [f"{short}: {why}{or_slower}"]
    assert finding.advice[0].short == short


PASTE = Frame("/home/me/curriculum.py", 52, "paste_objects")


def with_workers(run, before, since):
    """Return the run with a worker that is in `paste_objects` for these shares of each second of its work."""
    stays = []
    for second in range(int(run.duration_s)):
        pastes_s = before if second < THEN_S else since
        stays += [(second, second + pastes_s, (PASTE, LOOP, TRAINER)), (second + pastes_s, second + 1, (READ, LOOP))]
    worker = process(*(stay for stay in stays if stay[0] < stay[1]), role="worker", pid=2)
    return dataclasses.replace(run, stacks=(process((0, run.duration_s, TRAINS)), worker))


@pytest.mark.parametrize(
    ("before", "since", "is_named"),
    [(0.1, 0.65, True), (0.0, 0.6, True), (0.8, 0.8, False), (0.1, 0.3, False)],  # all of an image cost more
)
def test_the_function_that_took_up_the_difference_is_named(before, since, is_named):
    (finding,) = findings(with_workers(slowed(nms_s=(0.8, 0.8)), before, since), "data-wait-growing")
    named, unnamed = (
        "Look at `paste_objects` (curriculum.py:52)",
        "Find why each image costs 3.0\u00d7 the CPU since epoch 11",
    )
    assert finding.advice[0].short == (named if is_named else unnamed)


@pytest.mark.parametrize(("cpu_pct", "are_free"), [((36.0, 55.0), True), ((36.0, 65.0), False)])
def test_more_workers_are_offered_where_cores_are_free(cpu_pct, are_free):
    run = with_workers(slowed(nms_s=(0.8, 0.8), cpu_pct=cpu_pct), 0.0, 0.6)
    run = dataclasses.replace(run, recording=dataclasses.replace(run.recording, cores=20))
    (finding,) = findings(run, "data-wait-growing")
    assert ("raise `workers`: about 9 of 20 CPU cores were free" in finding.advice[0].text) == are_free


def test_images_that_came_in_time_before_are_not_to_be_resized():
    large = {"imgsz": 640, "image_px": 4000, "scaled_down": [1.0, 4000, 0.0256]}
    since_9 = slowed(before=8, nms_s=(0.8, 0.8), settings=large)
    always = slowed(before=1, nms_s=(0.8, 0.8), settings=large)
    offered = [[each.images_px for f in findings(run, "starved") for each in f.advice] for run in (since_9, always)]
    assert offered == [[], [640]]
