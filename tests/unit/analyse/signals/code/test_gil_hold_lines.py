"""The line in which C code kept Python's lock: that of other holds, where the recorder could not see it."""

import dataclasses

import numpy as np
import pytest
from support.runs import make_run
from support.stacks import LOG, TRAINER, TRAINS, process

from gpu_report.analyse.signals.code.gil_hold_lines import with_gil_hold_lines
from gpu_report.model import BusyThreads, CollectionCounts, LockHeld, LongCollections, Phase

DUMPS, SORTS = (LOG._replace(called="dumps"), TRAINER), (LOG._replace(line=50, called="sort"), TRAINER)
HELD_S = 0.4


def placed(stacks, *, held_s=HELD_S, cpu=1.0, busy=None, phases=()):
    """Return a process whose holds, one a second, were seen in these stacks; None where another thread may have come.

    `held_s` is what a hold lasts whose stack is not known, `cpu` the share of it that the main thread used.
    """
    stays, holds = [], []
    for second, stack in enumerate(stacks):
        until_s = second + 0.5 + (HELD_S if stack else held_s)
        stays += [(second, second + 0.5, TRAINS), (second + 0.5, until_s, stack or ()), (until_s, second + 1, TRAINS)]
        holds.append(LockHeld(second + 0.5, until_s, (until_s - second - 0.5) * (1.0 if stack else cpu)))
    made = process(*stays)
    unknown = [number for number, stack in made.stacks.items() if not stack]
    number = np.where(np.isin(made.number, unknown), 0, made.number)
    known = {each: stack for each, stack in made.stacks.items() if stack}
    made = dataclasses.replace(made, number=number, stacks=known, lock_held=tuple(holds), busy_threads=busy)
    (found,) = with_gil_hold_lines(dataclasses.replace(make_run([90.0] * 10), stacks=(made,)), phases).stacks
    return found


def lines(found):
    return [found.stacks.get(held.number, (None,))[0] for held in found.lock_held]


def test_holds_whose_line_is_not_known_are_of_the_line_of_the_others():
    found = placed([DUMPS, None, DUMPS, None, None, DUMPS])
    assert lines(found) == [DUMPS[0]] * 6
    assert [(held.seen, held.alike) for held in found.lock_held] == [(0, 0), (3, 6), (0, 0), (3, 6), (3, 6), (0, 0)]
    assert 0 not in found.number
    spent = (found.end_s - found.start_s)[[found.stacks[each] == DUMPS for each in found.number]]
    assert spent.sum() == pytest.approx(6 * HELD_S)


@pytest.mark.parametrize("seen", [[DUMPS, DUMPS], [DUMPS, DUMPS, SORTS, SORTS], [DUMPS] * 8 + [SORTS]])
def test_of_few_holds_and_of_several_lines_nothing_is_concluded(seen):
    assert lines(placed([*seen, None]))[-1] is None


def test_one_line_in_ten_may_be_another():
    assert lines(placed([*[DUMPS] * 9, SORTS, None]))[-2:] == [SORTS[0], DUMPS[0]]


@pytest.mark.parametrize(("held_s", "cpu"), [(2.5 * HELD_S, 1.0), (HELD_S, 0.1)])
def test_a_hold_of_another_kind_stays_open(held_s, cpu):
    """One that is far longer, or in which the main thread did not compute, is of other work."""
    assert lines(placed([DUMPS, DUMPS, DUMPS, None], held_s=held_s, cpu=cpu))[-1] is None


def test_a_thread_that_computed_meanwhile_may_have_kept_the_lock_itself():
    look = [np.array([each]) for each in (3.0, 4.0, 0.35, 0.35)]
    busy = BusyThreads(*look, np.array([0], dtype=np.int32))
    assert lines(placed([DUMPS, DUMPS, DUMPS, None], busy=busy))[-1] is None
    idle = dataclasses.replace(busy, cpu_s=np.array([0.1]))
    assert lines(placed([DUMPS, DUMPS, DUMPS, None], busy=idle))[-1] == DUMPS[0]


def test_each_phase_has_lines_of_its_own():
    phases = [Phase("train", 1, 0.0, 4.0, "callbacks"), Phase("validation", 1, 4.0, 9.0, "callbacks")]
    found = placed([DUMPS] * 3 + [None] + [SORTS] * 3 + [None], phases=phases)
    assert lines(found) == [DUMPS[0]] * 4 + [SORTS[0]] * 4


CLEANS = (LOG._replace(called="collect"), TRAINER)


def collecting(*runs):
    """Return a process that trained for 10 s, with long runs of the garbage collector: (start_s, end_s, in_main)."""
    made = process((0, 4, TRAINS), (4, 4.5, DUMPS), (4.5, 10, TRAINS), (10, 11, CLEANS))
    number = next(number for number, stack in made.stacks.items() if stack == CLEANS)
    start_s, end_s, in_main = (np.array(column) for column in zip(*runs, strict=True))
    long = LongCollections(start_s, end_s, np.full(len(runs), number), in_main)
    ends = [np.array([each]) for each in (0.0, 11.0, 9.0, 3.0)]
    return dataclasses.replace(made, collections=CollectionCounts(*ends, long))


def stood(run):
    (found,) = run.stacks
    rows = zip(found.start_s.tolist(), found.end_s.tolist(), found.number.tolist(), strict=True)
    return [(start, end, found.stacks[number][0].called) for start, end, number in rows]


def test_the_main_thread_is_where_the_garbage_collector_began_while_it_runs():
    run = dataclasses.replace(make_run([90.0] * 10), stacks=(collecting((1, 2, True), (4.2, 4.7, True)),))
    found = stood(with_gil_hold_lines(run, ()))
    assert [each for each in found if each[2] == "collect"] == [
        (1, 2, "collect"),
        (4.2, 4.5, "collect"),
        (4.5, 4.7, "collect"),
        (10, 11, "collect"),
    ]
    assert [each for each in found if each[2] == "dumps"] == [(4, 4.2, "dumps")]
    assert sum(end - start for start, end, _ in found) == pytest.approx(11)
    run = dataclasses.replace(run, stacks=(collecting((1, 2, False)),))
    assert with_gil_hold_lines(run, ()).stacks[0] is run.stacks[0]


def test_a_hold_in_which_the_garbage_collector_ran_is_of_its_line():
    made = dataclasses.replace(collecting((1.1, 2, True)), lock_held=(LockHeld(1.0, 2.0, 0.9),))
    (found,) = with_gil_hold_lines(dataclasses.replace(make_run([90.0] * 10), stacks=(made,)), ()).stacks
    assert found.stacks[found.lock_held[0].number] == CLEANS


def test_a_run_without_holds_is_as_it_was():
    run = dataclasses.replace(make_run([90.0] * 10), stacks=(process((0, 5, TRAINS)),))
    assert with_gil_hold_lines(run, ()).stacks[0] is run.stacks[0]
