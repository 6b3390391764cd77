"""Idle GPU time by stack: what each line took of it, and which worker was waited for."""

import dataclasses
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.samples import run_of
from support.stacks import LOG, LOGS, READ, READS, RESTS, STARTS, TRAINER, TRAINS, WAITS, process, series

from gpu_report.analyse.signals.code.idle_stacks import idle_stacks, main_idle_stacks, share_out, worker_idle_stacks
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.model import ProcessStacks


def by_line(stacks):
    return stacks.by_line(np.arange(len(stacks.idle_s)), stacks.idle_s)


def test_each_line_has_the_idle_time_of_the_readings_it_stood_in():
    found = main_idle_stacks(process((0, 6, TRAINS), (6, 9, LOGS), (9, 10, TRAINS)), [series(*[90] * 6, 0, 0, 0, 90)])
    assert by_line(found) == pytest.approx({TRAINER: 0.7, LOG: 3.0})
    assert found.seconds().sum() == pytest.approx(10)


def test_where_readings_mix_lines_the_idle_time_goes_to_those_at_which_a_gpu_is_idle():
    """A reading of a second holds half a second of logging now and then; alone, in steps alike, nobody could say."""
    stays, util = [], []
    for second in range(200):
        logs = 0.5 if second % 4 == 0 else 0.1
        stays += [(second, second + 1 - logs, TRAINS), (second + 1 - logs, second + 1, LOGS)]
        util.append(100 * (1 - logs))
    found = by_line(main_idle_stacks(process(*stays), [series(*util)]))
    assert found[LOG] > 0.9 * 40
    assert found[TRAINER] + found[LOG] == pytest.approx(40)
    alike = [stay for n in range(200) for stay in ((n, n + 0.8, TRAINS), (n + 0.8, n + 1, LOGS))]
    found = by_line(main_idle_stacks(process(*alike), [series(*[80] * 200)]))
    assert found == pytest.approx({TRAINER: 32, LOG: 8})


def test_a_line_that_waits_for_its_gpu_holds_nobody_up_also_where_all_steps_are_alike():
    item = (TRAINER._replace(line=700, called="item"),)
    stays = [stay for n in range(100) for stay in ((n, n + 0.6, item), (n + 0.6, n + 1, TRAINS))]
    found = by_line(main_idle_stacks(process(*stays), [series(*[70] * 100)]))
    assert found[TRAINER] > 0.9 * 30
    assert sum(found.values()) == pytest.approx(30)


def test_two_gpus_count_twice_and_time_without_readings_is_not_idle():
    both = main_idle_stacks(process((0, 4, LOGS)), [series(0, 0), series(50, 50, gpu=1)])
    assert both.idle_s.sum() == pytest.approx(3)
    assert both.seconds().sum() == pytest.approx(4)
    assert main_idle_stacks(process((0, 4, LOGS)), []).idle_s.sum() == 0


def test_the_worker_that_was_at_work_is_the_one_that_was_waited_for():
    main = main_idle_stacks(process((0, 4, TRAINS), (4, 8, WAITS)), [series(*[100] * 4, 0, 0, 0, 0)])
    busy = process((0, 1, STARTS), (1, 6, READS), (6, 8, RESTS), role="worker 0", pid=2)
    late = process((0, 8, READS), role="worker 1", pid=3)
    first, second = worker_idle_stacks([busy, late], [main])
    assert by_line(first) == pytest.approx({READ: 1.0})  # two of the four seconds, shared with the other
    assert by_line(second) == pytest.approx({READ: 3.0})


def test_workers_that_only_wait_for_work_held_nobody_up():
    main = main_idle_stacks(process((0, 8, TRAINS)), [series(*[50] * 8)])
    (rests,) = worker_idle_stacks([process((0, 8, RESTS), role="worker 0")], [main])
    assert by_line(rests) == {}


def test_a_part_of_a_piece_counts_for_that_part():
    found = main_idle_stacks(process((0, 10, LOGS)), [series(*[0] * 10)])
    rows, share = found.within([(2, 4), (3, 5.5)])
    assert (found.seconds(rows) * share).sum() == pytest.approx(3.5)
    assert found.within([])[0].size == found.within([(20, 30)])[0].size == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.floats(0.001, 1), st.floats(0, 1)), min_size=1, max_size=40
    )
)
def test_no_piece_is_idle_for_longer_than_it_is_and_nothing_is_lost(pieces):
    reading, place, length = (np.array([piece[i] for piece in pieces]) for i in range(3))
    idle = np.bincount(reading, length * np.array([piece[3] for piece in pieces]), minlength=6)
    given_s = share_out(reading, place, length, idle)
    assert (given_s >= 0).all()
    assert (given_s <= length + 1e-9).all()
    assert np.bincount(reading, given_s, minlength=6) == pytest.approx(idle, abs=1e-6)


@pytest.fixture
def run():
    return dataclasses.replace(run_of("s-loader-stall"), processes=NO_PROCESSES)


NO_PROCESSES = run_of("s-loader-stall").processes.iloc[:0]


def total_idle(run, stacks, count):
    both = [series(*[50] * 8, gpu=gpu) for gpu in range(count)]
    return [each.idle_s.sum() for each in idle_stacks(dataclasses.replace(run, stacks=tuple(stacks)), both)]


def test_ranks_whose_pids_nobody_knows_feed_a_gpu_each_whatever_their_numbers(run):
    ranks = [process((0, 8, LOGS), role=f"rank {rank}", pid=rank) for rank in (2, 3)]
    launcher = process((0, 8, RESTS), pid=1)
    assert total_idle(run, [launcher, *ranks], 2) == pytest.approx([0, 4, 4])


def test_idle_time_is_counted_once_however_many_processes_may_have_fed_a_gpu(run):
    mains = [process((0, 8, LOGS), pid=pid) for pid in (1, 2)]
    assert total_idle(run, mains, 1) == pytest.approx([2, 2])
    assert total_idle(run, [process((0, 4, LOGS), pid=1), process((4, 8, LOGS), pid=2)], 1) == pytest.approx([2, 2])
    ranks = [process((0, 8, LOGS), role=f"rank {rank}", pid=rank) for rank in range(3)]
    assert sum(total_idle(run, ranks, 2)) == pytest.approx(8)


def test_a_process_that_is_not_on_a_gpu_beside_one_that_is_feeds_none(run):
    known = NO_PROCESSES.reindex([0]).assign(pid=2, gpu=0, t_s=0.0)
    known = dataclasses.replace(run, processes=known)
    assert total_idle(known, [process((0, 8, RESTS), pid=1), process((0, 8, LOGS), pid=2)], 1) == pytest.approx([0, 4])


def test_a_process_that_predicts_beside_a_training_is_none_that_fed_it(run):
    (mine,) = run.inside
    shows = dataclasses.replace(mine, pid=mine.pid + 1, task="predict", phases=(), epochs=())
    both = dataclasses.replace(run, inside=(mine, shows))
    mains = [process((0, 8, LOGS), pid=each.pid) for each in both.inside]
    assert [each.process.pid for each in idle_stacks(dataclasses.replace(both, stacks=tuple(mains)), [])] == [mine.pid]
    alone = dataclasses.replace(run, inside=(shows,), stacks=tuple(mains))
    assert len(idle_stacks(alone, [])) == 2


@pytest.mark.parametrize(("parents", "each"), [((1, 2), [4, 0]), ((1, None), [2, 2]), ((7, 7), [2, 2])])
def test_a_worker_loads_for_the_rank_that_started_it_as_far_as_all_are_known(run, parents, each):
    ranks = [process((0, 4, WAITS), role="rank 0", pid=1), process((0, 4, TRAINS), role="rank 1", pid=2)]
    read = [series(0, 0, 0, 0), series(100, 100, 100, 100, gpu=1)]
    workers = [
        replace(process((0, 4, READS), role="worker 0", pid=10 + n), parent=pid) for n, pid in enumerate(parents)
    ]
    found = idle_stacks(dataclasses.replace(run, stacks=(*ranks, *workers)), read)[2:]
    assert [by_line(worker).get(READ, 0.0) for worker in found] == pytest.approx(each)


def test_a_piece_takes_32_bytes_of_memory_and_not_many_more_while_it_is_looked_at():
    """A day has two million, so that a column of floats has 15 MB."""
    count = 200_000
    edges = np.arange(count + 1) * 0.05
    numbers = np.tile([1, 2, 3, 2], count // 4).astype(np.int32)
    main = ProcessStacks(1, "main", edges[:-1], edges[1:], numbers, {1: TRAINS, 2: LOGS, 3: WAITS})
    read = series(*np.tile([90, 20, 60], count // 60), step_s=1.0)
    tracemalloc.start()
    try:
        found = main_idle_stacks(main, [read])
        held, most = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        rows, share = found.within([(0.0, float(edges[-1]))])
        within = tracemalloc.get_traced_memory()[1] - held
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        interval_cover(found.together(rows[::2]))
        together = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert len(rows) == len(share) == len(found.idle_s) >= count
    assert held / count < 32
    assert most / count < 90
    assert within / count < 50
    assert together / count < 60
