"""Who took the CPU cores: programs of others are named where they used most of what others took, and else nobody is."""

import dataclasses

import numpy as np
import pytest

from gpu_report.analyse.causes import explain, host
from gpu_report.analyse.signals.code.stack_profile import IdleLocation
from gpu_report.analyse.signals.host.other_programs import programs_in, typical_programs
from gpu_report.analyse.signals.interval_signals import IntervalSignals, SignalTable
from gpu_report.model import Frame, OtherProgram

START, END = 30.0, 45.0
# 64 cores of which others took 38, and of 64 of which those of the training are 16.
FULL = {"cpu_pct": 97, "cpu_pressure_pct": 60, "main_cpu_pct": 116, "workers_cpu_pct": 2200}
CROWDED = {"cpu_pct": 40, "cpu_pressure_pct": 60, "main_cpu_pct": 44, "workers_cpu_pct": 180}
FED = {"cpu_pct": 30, "cpu_pressure_pct": 0, "main_cpu_pct": 116, "workers_cpu_pct": 360}


def table(values, steady=False):
    t_s = np.arange(START + 1, END + 1) if not steady else np.arange(1.0, END + 1)
    columns = {name: np.full(len(t_s), float(value)) for name, value in {**FED, **({} if steady else values)}.items()}
    if steady:
        for name, value in values.items():
            columns[name][t_s > START] = value
    return SignalTable(t_s, columns, t_s <= START - 5)


def signals(values, looks, **fields):
    given = IntervalSignals(0, START, END, table(values, steady=True), table({}), cores=64, other_programs=looks)
    return dataclasses.replace(given, **fields)


def look(name, cpu_pct, start=START + 3, end=END, user="bob", processes=40, shared=1.0):
    return OtherProgram(start, end, name, user, 4711, processes, cpu_pct, shared)


def test_who_took_all_cores_is_named():
    explained = explain(signals(FULL, (look("stress-ng", 3790),)))
    assert explained.cause.name == "input-cpu"
    lacks = explain(signals(FULL, (look("stress-ng", 3790),), data_wait_share=0.01))
    assert (lacks.cause.name, lacks.advice) == ("cpu-limit", explained.advice)
    assert explained.cause.explanation == "the program stress-ng of user bob (40 processes) used 38 of the 64 CPU cores"
    (number,) = [each for each in explained.evidence if "stress-ng" in each.text]
    assert (number.text, number.value) == ("CPU of stress-ng of user bob, pid 4711", pytest.approx(3790))
    (advice,) = explained.advice
    assert advice.short == "Keep stress-ng of user bob off the CPU cores of the training"
    assert "4711" in advice.text


def test_two_that_took_them_together_are_both_named():
    looks = (look("make", 1500, processes=1), look("mprime", 2000, user="", processes=32), look("sshd", 100))
    cause = explain(signals(FULL, looks)).cause
    assert cause.explanation == (
        "the programs mprime (32 processes) and make of user bob (1 process) used 35 of the 64 CPU cores"
    )


@pytest.mark.parametrize(
    "looks",
    [
        (),  # an older recording, or a container that shows no process of others
        (look("python", 110),),  # all that a container shows of them
        tuple(look(f"p{number}", 400) for number in range(9)),  # none of them alone
        (look("stress-ng", 3790, START - 20, START + 1),),  # nobody looked while the GPU waited
    ],
)
def test_where_nobody_is_known_to_have_taken_most_of_it_nobody_is_named(looks):
    explained = explain(signals(FULL, looks))
    assert (explained.cause.name, explained.advice) == ("input-cpu", (host.KEEP_OFF,))
    assert explained.cause.explanation.startswith("other processes used 61 % of all CPU cores")


def test_who_came_to_the_cores_of_the_training_is_named_and_not_who_was_there_before():
    looks = (look("simulate", 4000, 0.0, END), look("stress-ng", 1300))
    given = signals(CROWDED, looks, usable_cores=16.0, typical_programs=typical_programs(looks, [(0.0, 25.0)]))
    explained = explain(given)
    assert explained.cause.explanation == (
        "the program stress-ng of user bob (40 processes) ran on the 16 CPU cores that training may use"
    )
    (advice,) = explained.advice
    assert "stress-ng" in advice.short


def test_who_may_not_run_on_the_cores_of_the_training_is_not_named():
    given = signals(CROWDED, (look("simulate", 1300, shared=0.0),), usable_cores=16.0)
    explained = explain(given)
    assert explained.cause.explanation == "other processes ran on the 16 CPU cores that training may use"
    assert "`top`" in explained.advice[0].text


@pytest.mark.parametrize("values", [{}, {"cpu_pct": 97, "workers_cpu_pct": 5900}])
def test_others_that_slowed_nothing_are_no_cause(values):
    looks = (look("stress-ng", 1300),)
    assert host.cores_taken(signals(values, looks)) is None
    assert host.cores_shared(signals(values, looks)) is None


def idle_location(**fields):
    """A main process that stood in a line in which it is seldom otherwise."""
    return IdleLocation(
        0.1, Frame("/x/ultralytics/models/yolo/detect/train.py", 119, "preprocess_batch"), 0.7, 0.1, **fields
    )


LESS = {**FULL, "main_cpu_pct": 3, "workers_cpu_pct": 60}


def test_a_main_process_that_got_no_core_stands_anywhere():
    cause = explain(signals(LESS, (look("stress-ng", 5000),), idle_location=idle_location(cpu_pct=94.0))).cause
    assert cause.explanation == "the program stress-ng of user bob (40 processes) used 50 of the 64 CPU cores"


@pytest.mark.parametrize(
    ("values", "looks", "where"),
    [
        (LESS, (), idle_location(cpu_pct=94.0)),  # nobody knows who: what the main process did there is the cause
        (LESS, (look("simulate", 5000, 0.0, END),), idle_location(cpu_pct=94.0)),  # they were there before
        (
            LESS,
            (look("stress-ng", 5000),),
            idle_location(call=Frame("a.py", 1, "log"), call_share=0.9),
        ),  # it may have asked
        (
            {**FULL, "main_cpu_pct": 100, "workers_cpu_pct": 400},
            (look("stress-ng", 5000),),
            idle_location(cpu_pct=94.0),
        ),
    ],
)
def test_a_main_process_that_stands_elsewhere_by_itself_is_not_crowded_out(values, looks, where):
    typical = typical_programs(looks, [(0.0, 25.0)])
    assert not host.cpu_lost_to_new_programs(signals(values, looks, idle_location=where, typical_programs=typical))
    assert (
        "of the 64"
        not in explain(signals(values, looks, idle_location=where, typical_programs=typical)).cause.explanation
    )


def test_a_name_from_outside_becomes_no_code():
    cause = explain(signals(FULL, (look("`rm -rf ~`", 3790, user="`b`"),))).cause
    assert "`" not in cause.explanation


def test_what_a_program_used_is_of_the_time_in_which_somebody_looked():
    looks = (look("a", 1000, 28, 32), look("a", 2000, 32, 38), look("b", 500, 32, 38, shared=None))
    used = {use.most.name: use for use in programs_in(looks, (30.0, 40.0))}
    assert used["a"].cpu_pct == pytest.approx((2 * 1000 + 6 * 2000) / 8)
    assert used["a"].there_pct == used["a"].cpu_pct
    assert used["a"].most == looks[1]
    assert used["b"].shared_pct == used["b"].cpu_pct == pytest.approx(6 * 500 / 8)
    assert programs_in(looks[:1], (30.0, 60.0)) == programs_in((), (30.0, 40.0)) == []


def test_a_program_that_ended_between_two_looks_used_what_it_used_before():
    looks = (look("a", 1000, 30, 36), look("b", 200, 30, 42))
    used = {use.most.name: use for use in programs_in(looks, (30.0, 42.0))}
    assert (used["a"].cpu_pct, used["a"].there_pct) == (pytest.approx(500), pytest.approx(1000))


def test_what_is_typical_is_of_all_the_steady_state():
    looks = (look("a", 1000, 0, 4), look("a", 3000, 8, 20))
    assert typical_programs(looks, [(0.0, 2.0), (10.0, 18.0)]) == {("a", "bob"): pytest.approx((2000 + 24000) / 10)}
    assert typical_programs(looks, []) == typical_programs((), [(0.0, 1.0)]) == {}
