"""Memory near its limit, and what is told of memory when a training ran out of it."""

import dataclasses

import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings
from support.samples import SAMPLES

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.rules.gpus.memory_limit import near_limit
from gpu_report.analyse.rules.thresholds import NEAR_LIMIT_PCT
from gpu_report.analyse.timeseries.gpu_series import gpu_series
from gpu_report.load import load_run
from gpu_report.model import InsideRun, Options, Phase, Raised, RefusedAllocation, SettingLocation

NAN = float("nan")
SECONDS = 120
CARD_MIB = 143_771.0
RESERVED_MIB = 615.0
CAPACITY_MIB = CARD_MIB - RESERVED_MIB
LINE_MIB = NEAR_LIMIT_PCT / 100 * CAPACITY_MIB


def filled(*parts, reserved_mib=RESERVED_MIB, util=None):
    """Return a run whose memory is (MiB, seconds) parts, after 10 s of startup."""
    memory = [500.0] * 10 + [mib for mib, seconds in parts for _ in range(seconds)]
    quantities = {"memory_used_mib": memory, "memory_reserved_mib": [reserved_mib] * len(memory)}
    return make_run(util or readings((0, 10), (90, len(memory) - 10)), rows=[(1, 60)], quantities=quantities)


def with_processes(run, *rows):
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in rows], columns=PROCESSES)
    return dataclasses.replace(run, processes=table)


def found(run, rule="memory-near-limit"):
    return [finding for finding in analyse(run).findings if finding.rule == rule]


def facts(finding):
    return {e.text: e.value for e in finding.evidence}


def test_a_full_card_is_told_with_how_full_and_how_long():
    (finding,) = found(filled((40_000, 30), (LINE_MIB + 100, 40), (40_000, 40)))
    assert (finding.severity, finding.gpu) == ("warning", 0)
    assert (finding.start_t_s, finding.end_t_s) == (40.0, 80.0)
    assert finding.summary == "GPU 0's memory was 95 % full for 40 s: 132.9 of 139.8 GiB"
    assert facts(finding)["capacity of the GPU"] == pytest.approx(CAPACITY_MIB / 1024)
    assert "of it the training's" not in facts(finding)  # nobody recorded whose it is


@pytest.mark.parametrize(
    "run",
    [
        filled((40_000, 30), (LINE_MIB - 10, 40), (40_000, 40)),
        filled((40_000, 30), (LINE_MIB + 100, 9), (40_000, 71)),
        filled((40_000, 30), (NAN, 80)),
        filled((LINE_MIB + 100, 110), util=[0.0] * SECONDS),
        filled((40_000, 30), (2 * CARD_MIB, 40), (40_000, 40)),
    ],
    ids=["just under", "not for long", "not recorded", "on a GPU that nobody used", "more than it holds"],
)
def test_what_is_no_full_card(run):
    assert found(run) == []


def test_it_may_go_down_for_a_moment():
    (finding,) = found(filled((40_000, 30), (LINE_MIB + 100, 8), (40_000, 2), (LINE_MIB + 100, 8), (40_000, 62)))
    assert (finding.start_t_s, finding.end_t_s) == (40.0, 58.0)


def test_a_card_of_unknown_size_is_never_full():
    run = filled((40_000, 30), (LINE_MIB + 100, 80))
    gpus = tuple(dataclasses.replace(gpu, memory_total_mib=None) for gpu in run.gpus)
    assert found(dataclasses.replace(run, gpus=gpus)) == []


def test_what_the_driver_reserves_cannot_be_had():
    memory = 0.951 * CAPACITY_MIB
    assert len(found(filled((memory, 110)))) == 1
    assert found(filled((memory, 110), reserved_mib=NAN)) == []  # 0.947 of all that the card has


def test_whose_it_is_is_told():
    run = with_processes(
        filled((20_000, 40), (137_000, 70)),
        (12.0, 0, 41, "python train.py", 20_000.0, "appeared", "trainer", NAN),
        (53.0, 0, 77, "serve", 117_000.0, "appeared", "other", 0.0),
    )
    (finding,) = found(run)
    assert finding.summary.endswith("133.8 of 139.8 GiB, 114.3 GiB used by other processes")
    assert facts(finding)["of it the training's"] == pytest.approx(20_000 / 1024)
    assert facts(finding)["the largest of them: serve (pid 77)"] == pytest.approx(117_000 / 1024)


@pytest.mark.parametrize(("settings", "times"), [({"memory_retries": 41}, [41.0]), ({}, [])])
def test_a_nearly_full_card_says_how_often_torch_freed_memory_to_get_more(settings, times):
    trains = InsideRun(1, 0, 41, "train", settings, (Phase("train", 1, 10.0, 110.0, "inside"),), ())
    (finding,) = found(dataclasses.replace(filled((LINE_MIB + 1, 100)), inside=(trains,)))
    assert [e.value for e in finding.evidence if e.text.startswith("times PyTorch")] == times


def ran_out(memory, *processes, error="OutOfMemoryError"):
    phases = (Phase("startup", None, 0.0, 10.0, ""), Phase("train", 1, 10.0, 110.0, "inside"))
    oom = InsideRun(1, 0, 41, "train", {}, phases, (), "exception", error)
    run = dataclasses.replace(filled(*memory), inside=(oom,))
    return with_processes(run, *processes) if processes else run


OWN = (12.0, 0, 41, "python train.py", 40_000.0, "appeared", "trainer", NAN)


def test_out_of_memory_tells_who_held_it_and_what_it_last_grew_by():
    run = ran_out([(40_000, 60), (41_000, 20), (61_000, 15), (141_000, 15)], OWN)
    (finding,) = found(run, "run-ended")
    told = [(e.text, round(e.value, 1)) for e in finding.evidence]
    assert told == [
        ("memory of GPU 0 in use just before", 98.5),
        ("memory of GPU 0 in use just before", 137.7),
        ("capacity", 139.8),
        ("of it used by the training", 137.7),
        ("its largest increase in the last minute", 78.1),
        ("that long before the end", 5.0),
    ]


def test_out_of_memory_on_a_card_that_was_mostly_free_is_a_limit_of_the_process():
    """`set_per_process_memory_fraction(0.24)` of an H200: CUDA was out of memory with 106 of 140 GiB free."""
    run = ran_out([(34_000, 110)], OWN)
    (finding,) = found(run, "run-ended")
    assert finding.summary == "The training ran out of GPU memory with 106.6 GiB of 139.8 GiB free"
    assert [each.text for each in finding.advice][1].startswith("Look for what limits this process")
    capped = dataclasses.replace(run.inside[0], settings={"memory_fraction": 0.24})
    capped = dataclasses.replace(capped, setting_locations=(SettingLocation("memory_fraction", "/a/plankton.py", 13),))
    (finding,) = found(dataclasses.replace(run, inside=(capped,)), "run-ended")
    assert finding.summary.endswith(": its process may have 33.6 GiB of 139.8 GiB (plankton.py:13)")
    assert facts(finding)["memory that the process may have (memory_fraction)"] == pytest.approx(33.55, abs=0.1)
    assert finding.advice[1].text.endswith("`torch.cuda.set_per_process_memory_fraction` (plankton.py:13)")
    (full,) = found(ran_out([(141_000, 110)], OWN), "run-ended")
    assert (full.summary, len(full.advice)) == ("The training ran out of GPU memory", 1)


@pytest.mark.parametrize(
    ("refused", "summary", "advice"),
    [
        (
            RefusedAllocation(150_000.0, 109_000.0),
            ": it asked for 146.5 GiB at once, with 106.4 GiB of 139.8 GiB free",
            1,
        ),
        (RefusedAllocation(400.0, 109_000.0), " with 106.4 GiB of 139.8 GiB free", 2),
        (RefusedAllocation(400.0, 109_000.0, 34_300.0), ": its process may have 33.5 GiB of 139.8 GiB", 2),
    ],
)
def test_an_allocation_larger_than_what_is_free_needs_no_limit_to_fail(refused, summary, advice):
    run = ran_out([(34_000, 110)], OWN)
    told = dataclasses.replace(run.inside[0], raised=Raised(refused=refused))
    (finding,) = found(dataclasses.replace(run, inside=(told,)), "run-ended")
    assert finding.summary == f"The training ran out of GPU memory{summary}"
    assert len(finding.advice) == advice
    assert not any("larger than what is free" in each.text for each in finding.advice)
    assert facts(finding)["memory that it asked for at once"] == pytest.approx(refused.asked_mib / 1024)


def test_out_of_memory_beside_another_process_names_it():
    run = ran_out(
        [(40_000, 60), (100_000, 35), (101_000, 15)],
        OWN,
        (73.0, 0, 77, "serve", 60_000.0, "appeared", "other", 0.0),
    )
    (finding,) = found(run, "run-ended")
    told = facts(finding)
    assert told["of it used by the training"] == pytest.approx(41_000 / 1024)
    assert told["of it used by other processes"] == pytest.approx(60_000 / 1024)
    assert told["memory of serve (pid 77), at most"] == pytest.approx(60_000 / 1024)
    assert told["its largest increase in the last minute"] == pytest.approx(60_000 / 1024)
    assert told["its last step"] == pytest.approx(1000 / 1024)


def test_another_end_and_an_unknown_memory_say_nothing_of_who_held_it():
    (other,) = found(ran_out([(141_000, 110)], OWN, error="ValueError"), "run-ended")
    assert list(facts(other)) == ["memory of GPU 0 in use just before"]
    (unknown,) = found(ran_out([(NAN, 110)], OWN), "run-ended")
    assert unknown.evidence == ()


def test_the_sample_run_that_ran_out_says_how():
    run = load_run(SAMPLES / "s-oom")
    (finding,) = found(run, "run-ended")
    told = facts(finding)
    assert told["of it used by the training"] == pytest.approx(138.8, abs=0.1)
    assert told["its largest increase in the last minute"] == pytest.approx(116.0, abs=0.1)
    assert told["that long before the end"] < 1.5  # the next tick after the command (labels.json: 44.85)
    assert found(run) == []  # 2 s of it are no state of the card


@pytest.mark.parametrize(
    ("full_from_s", "settings", "ended", "severity"),
    [
        (60, {}, None, "info"),
        (60, {"memory_retries": 2}, None, "warning"),
        (40, {}, None, "warning"),
        (40, {}, "exception", "warning"),
        (40, {}, "finished", "info"),
        (40, {"memory_retries": 2}, "finished", "warning"),
    ],
)
def test_what_only_a_validation_fills_or_ended_well_is_a_note(full_from_s, settings, ended, severity):
    phases = (Phase("train", 1, 10.0, 70.0, "inside"), Phase("validation", 1, 70.0, 110.0, "inside"))
    trains = InsideRun(1, 0, 41, "train", settings, phases, (), ended)
    full = filled((40_000, full_from_s), (LINE_MIB + 100, 100 - full_from_s))
    (finding,) = found(dataclasses.replace(full, inside=(trains,)))
    assert finding.severity == severity


def test_what_idle_time_leaves_of_one_reading_is_no_full_card():
    quantities = {"memory_used_mib": [LINE_MIB + 100], "memory_reserved_mib": [RESERVED_MIB]}
    given = make_run([90.0], 60.0, quantities=quantities)
    series = gpu_series(given)[0]
    memory = build_context(given, Options()).gpu_memory(series)
    assert near_limit(memory, series, ()) == [(0.0, 60.0)]
    assert near_limit(memory, series, ((0.0, 30.0),)) == []
