"""Where a main process stood in an interval, against where it stands while its GPU works."""

import pytest
from support.stacks import LOG, LOGS, READS, TRAINER, TRAINS, WAITS, process, series

from gpu_report.analyse.signals.idle_stacks import main_idle_stacks
from gpu_report.analyse.signals.stack_habits import StackHabits, stood_of
from gpu_report.model import Phase


def habits(*stays, util, phases=(("train", 0, 1000),), role="main", gpu=0):
    stacks = main_idle_stacks(process(*stays, role=role), [series(*util, gpu=gpu)])
    return StackHabits(stacks, [Phase(name, None, start, end, "callbacks") for name, start, end in phases])


def test_a_line_in_which_it_does_not_stand_while_the_gpu_works_is_unusual():
    stood = habits((0, 20, TRAINS), (20, 30, LOGS), util=[90] * 20 + [0] * 10).within([(20, 30)])
    assert (stood.line, stood.share, stood.in_loader) == (LOG, pytest.approx(1), 0)
    assert stood.usual == 0


def test_a_stall_that_recurs_is_no_habit_for_the_gpu_does_nothing_in_it():
    stays = [stay for n in range(0, 60, 20) for stay in ((n, n + 10, TRAINS), (n + 10, n + 20, LOGS))]
    stood = habits(*stays, util=([90] * 10 + [0] * 10) * 3).within([(30, 40)])
    assert stood.line == LOG
    assert stood.usual < 0.05


def test_a_slow_gpu_leaves_the_trainer_in_its_usual_lines():
    stood = habits((0, 30, TRAINS), util=[90] * 20 + [20] * 10).within([(20, 30)])
    assert (stood.line, stood.share) == (TRAINER, pytest.approx(1))
    assert stood.usual == pytest.approx(1)


def test_waiting_for_the_loader_is_a_share_of_its_own():
    stood = habits((0, 20, TRAINS), (20, 28, WAITS), (28, 30, LOGS), util=[90] * 20 + [0] * 10).within([(20, 30)])
    assert stood.in_loader == pytest.approx(0.8)
    assert (stood.line, stood.share) == (LOG, pytest.approx(0.2))


def test_what_is_usual_is_that_of_the_same_phase_and_unknown_where_it_was_met_but_once():
    phases = (("train", 0, 20), ("validation", 20, 30), ("train", 30, 50), ("validation", 50, 60))
    stays = ((0, 20, TRAINS), (20, 30, LOGS), (30, 50, TRAINS), (50, 60, LOGS))
    util = [90] * 20 + [50] * 10 + [90] * 20 + [0] * 10
    assert habits(*stays, util=util, phases=phases).within([(50, 60)]).usual == pytest.approx(1)
    assert habits(*stays[2:], util=util, phases=phases).within([(50, 60)]).usual is None


def test_too_few_notes_say_nothing():
    assert habits((0, 20, TRAINS), (20, 20.4, LOGS), util=[90] * 20 + [0]).within([(20, 20.4)]) is None


def test_of_several_processes_that_feed_a_gpu_the_one_counts_that_waits_least_for_data():
    waits = habits((0, 20, TRAINS), (20, 30, WAITS), util=[90] * 20 + [0] * 10)
    logs = habits((0, 20, TRAINS), (20, 30, LOGS), util=[90] * 20 + [0] * 10)
    other = habits((0, 30, READS), util=[0] * 30, gpu=1)
    assert stood_of([waits, logs, other], 0, [(20, 30)]).line == LOG
    assert stood_of([other], 0, [(20, 30)]) is None
