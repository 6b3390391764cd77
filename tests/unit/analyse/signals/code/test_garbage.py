"""What Python's garbage collector took of a process in some stretches, and in which line."""

import dataclasses

import numpy as np
import pytest
from support.stacks import LOG, LOGS, TRAINER, TRAINS, process

from gpu_report.analyse.signals.code.garbage import garbage_in, garbage_of_all, most_garbage
from gpu_report.model import CollectionCounts, LongCollections

CLEANS = (LOG._replace(called="collect"), TRAINER)
BLOCK_S = 20.0


def collecting(*runs, blocks=((0, 0.0), (0, 0.0)), stacks=(TRAINS, LOGS, CLEANS)):
    """Return a process with long runs of the collector, (start_s, seconds, stack), and short ones in blocks of 20 s.

    Of these it is told how many there were, and how long they took.
    """
    made = process(*((at, at + 1, stack) for at, stack in enumerate(stacks)))
    number = {stack: number for number, stack in made.stacks.items()}
    begun, took = (np.array([run[i] for run in runs], dtype=float) for i in (0, 1))
    numbers = np.array([number.get(stack, 0) for _, _, stack in runs], dtype=np.int32)
    long = LongCollections(begun, begun + took, numbers, np.ones(len(runs), dtype=bool))
    starts = BLOCK_S * np.arange(len(blocks))
    inside = [(begun >= start) & (begun < start + BLOCK_S) for start in starts]
    short = zip(blocks, inside, strict=True)
    all_ = np.array([(times + mine.sum(), short_s + took[mine].sum()) for (times, short_s), mine in short], dtype=float)
    return dataclasses.replace(made, collections=CollectionCounts(starts, starts + BLOCK_S, *all_.T, long))


def test_long_runs_count_where_they_are_and_their_line_is_the_one_that_asked_for_them():
    made = collecting((1.0, 0.5, CLEANS), (2.0, 0.5, CLEANS), (3.0, 0.25, LOGS), (30.0, 5.0, CLEANS))
    found = garbage_in(made, [(0.0, 2.25), (2.75, 10.0)])
    assert (found.times, found.seconds, found.of_s) == (3, pytest.approx(1.0), 9.5)
    assert (found.line, found.is_called) == (LOG, True)
    assert found.share == pytest.approx(1 / 9.5)


def test_short_runs_are_spread_over_their_block():
    found = garbage_in(collecting(blocks=((1000, 4.0), (0, 0.0))), [(5.0, 15.0), (20.0, 30.0)])
    assert (found.times, found.seconds, found.line, found.is_called) == (500, pytest.approx(2.0), None, False)


def test_where_long_runs_take_the_time_the_short_ones_are_not_counted():
    made = collecting((1.0, 2.0, LOGS), (4.0, 2.0, ()), blocks=((1000, 1.0), (0, 0.0)))
    found = garbage_in(made, [(0.0, 20.0)])
    assert (found.times, found.seconds, found.line, found.is_called) == (2, pytest.approx(5.0), LOG, False)


def test_nothing_is_said_of_a_process_that_told_nothing():
    assert garbage_in(process((0, 5, TRAINS)), [(0.0, 5.0)]) is None
    assert garbage_in(collecting(), [(0.0, 5.0)]) is None
    assert garbage_in(collecting((30.0, 1.0, LOGS)), [(0.0, 5.0)]) is None


def test_of_several_processes_it_is_the_one_that_it_held_up_longest():
    few, much = collecting((1.0, 0.5, LOGS)), collecting((1.0, 2.5, CLEANS))
    assert most_garbage([few, process((0, 5, TRAINS)), much], [(0.0, 10.0)]).seconds == 2.5
    assert most_garbage([], [(0.0, 10.0)]) is None


def test_of_workers_it_is_what_it_takes_of_all_of_them():
    workers = [collecting((1.0, 2.0, CLEANS)), collecting((1.0, 1.0, LOGS)), collecting()]
    found = garbage_of_all(workers, [(0.0, 10.0)])
    assert (found.times, found.seconds, found.of_s, found.share) == (2, 3.0, 30.0, pytest.approx(0.1))
    assert garbage_of_all([], [(0.0, 10.0)]) is None
