"""Where a main process stood in an interval, against where it stands while its GPU works."""

import dataclasses

import numpy as np
import pytest
from support.samples import run_of
from support.stacks import LOG, LOGS, READS, TRAINER, TRAINS, WAITS, process, series

from gpu_report.analyse.signals.code.idle_stacks import main_idle_stacks
from gpu_report.analyse.signals.code.stack_profile import StackProfile, idle_location_of
from gpu_report.analyse.signals.host.cpu_in_place import cpu_in_place
from gpu_report.analyse.signals.signal_table import NO_SIGNALS, SignalTable
from gpu_report.analyse.signals.signals_index import SignalsIndex
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.model import Frame, Phase, Probes


def profile(*stays, util, phases=(("train", 0, 1000),), role="main", gpu=0, cpu=None):
    stacks = main_idle_stacks(process(*stays, role=role), [series(*util, gpu=gpu)])
    host = NO_SIGNALS if cpu is None else readings(np.arange(1.0, len(cpu) + 1), cpu)
    return StackProfile(stacks, [Phase(name, None, start, end, "callbacks") for name, start, end in phases], host)


def readings(t_s, cpu):
    return SignalTable(t_s, {"main_cpu_pct": np.array(cpu, dtype=float)}, np.zeros(len(t_s), dtype=bool))


def test_a_line_in_which_it_does_not_stand_while_the_gpu_works_is_unusual():
    found = profile((0, 20, TRAINS), (20, 30, LOGS), util=[90] * 20 + [0] * 10).within([(20, 30)])
    assert (found.line, found.share, found.in_loader) == (LOG, pytest.approx(1), 0)
    assert found.usual == 0


PASS = Frame("/venv/lib/python3.11/site-packages/ultralytics/nn/tasks.py", 140, "predict")
CONV = Frame("/venv/lib/python3.11/site-packages/ultralytics/nn/modules/conv.py", 87, "forward")
MODULE = Frame("/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1751, "_call_impl")
MIXES, ATTENDS = Frame("/home/u/windows.py", 27, "forward"), Frame("/home/u/windows.py", 17, "attend")


def test_a_layer_of_the_users_has_a_share_of_the_forward_pass_with_all_that_it_calls():
    layer, other = ((*inner, MODULE, PASS, MODULE, TRAINER) for inner in ((ATTENDS, MIXES), (CONV,)))
    again = (MIXES._replace(line=28), MODULE, PASS, MODULE, TRAINER)
    found = profile((0, 6, layer), (6, 8, again), (8, 10, other), (10, 20, TRAINS), util=[20] * 20)
    longest = found.longest_layer([(0, 20)])
    assert (longest.line, longest.share) == (MIXES, pytest.approx(0.8))
    assert found.longest_line([(0, 20)]) == (TRAINER, pytest.approx(0.5))
    assert profile((0, 10, other), util=[20] * 10).longest_layer([(0, 10)]) is None


NORMS = tuple(
    Frame(f"/venv/lib/python3.11/site-packages/torch/nn/modules/{file}.py", line, "forward")
    for file, line in (("_functions", 98), ("batchnorm", 832))
)


def test_norms_that_ranks_exchange_in_have_a_share_of_the_forward_pass():
    synced = (*NORMS, MODULE, CONV, MODULE, PASS, MODULE, TRAINER)
    plain, computes = (NORMS[1], *synced[2:]), (CONV, MODULE, PASS, MODULE, TRAINER)
    found = profile((0, 6, synced), (6, 7, plain), (7, 10, computes), (10, 20, TRAINS), util=[20] * 20)
    assert found.synced_share([(0, 20)]) == pytest.approx(0.6)
    assert found.synced_share([(10, 20)]) == 0


CALLS = Frame("/venv/lib/python3.11/site-packages/ultralytics/engine/trainer.py", 234, "run_callbacks")
WRAPPER, FIRST, SECOND = (
    Frame("/home/u/extras.py", line, name) for line, name in ((14, "inner"), (30, "a"), (40, "b"))
)
WITHIN = Frame("/home/u/extras.py", 41, "<genexpr>")


@pytest.mark.parametrize(
    ("within", "named"),
    [
        ({(FIRST, WRAPPER): 9, (WRAPPER,): 1}, "a"),
        ({(SECOND, FIRST, WRAPPER): 5, (FIRST, WRAPPER): 5}, "a"),
        ({(WITHIN, SECOND, FIRST, WRAPPER): 9, (FIRST, WRAPPER): 1}, "b"),
        ({(FIRST, WRAPPER): 5, (SECOND, WRAPPER): 5}, "inner"),
        ({(WRAPPER,): 10}, "inner"),
    ],
)
def test_of_a_decorated_function_the_one_that_takes_the_time_is_named(within, named):
    edges = np.cumsum([0, *within.values()]).tolist()
    stays = [(*edges[at : at + 2], (*inner, CALLS, TRAINER)) for at, inner in enumerate(within)]
    stays.append((10, 20, (SECOND, CALLS, TRAINER)))  # another callback
    call, _ = profile(*stays, util=[0] * 20).longest_call([(0, 9.9)])
    assert call.function == "inner"
    at = profile(*stays, util=[0] * 20).place_in_call(call, [(0, 20)])
    assert (at.function, at.line) == (named, {"inner": 14, "a": 30, "b": 40}[named])


def test_a_stall_that_recurs_is_no_habit_for_the_gpu_does_nothing_in_it():
    stays = [stay for n in range(0, 60, 20) for stay in ((n, n + 10, TRAINS), (n + 10, n + 20, LOGS))]
    found = profile(*stays, util=([90] * 10 + [0] * 10) * 3).within([(30, 40)])
    assert found.line == LOG
    assert found.usual < 0.05


def test_a_slow_gpu_leaves_the_trainer_in_its_usual_lines():
    found = profile((0, 30, TRAINS), util=[90] * 20 + [20] * 10).within([(20, 30)])
    assert (found.line, found.share) == (TRAINER, pytest.approx(1))
    assert found.usual == pytest.approx(1)


def test_waiting_for_the_loader_is_a_share_of_its_own():
    found = profile((0, 20, TRAINS), (20, 28, WAITS), (28, 30, LOGS), util=[90] * 20 + [0] * 10).within([(20, 30)])
    assert found.in_loader == pytest.approx(0.8)
    assert (found.line, found.share) == (LOG, pytest.approx(0.2))


def test_what_is_usual_is_that_of_the_same_phase_and_unknown_where_it_was_met_but_once():
    phases = (("train", 0, 20), ("validation", 20, 30), ("train", 30, 50), ("validation", 50, 60))
    stays = ((0, 20, TRAINS), (20, 30, LOGS), (30, 50, TRAINS), (50, 60, LOGS))
    util = [90] * 20 + [50] * 10 + [90] * 20 + [0] * 10
    assert profile(*stays, util=util, phases=phases).within([(50, 60)]).usual == pytest.approx(1)
    assert profile(*stays[2:], util=util, phases=phases).within([(50, 60)]).usual is None


BACKWARD = (Frame("/venv/lib/python3.11/site-packages/torch/autograd/graph.py", 869, "_engine_run_backward"), TRAINER)


@pytest.mark.parametrize(
    ("cpu", "line", "launching"),
    [([100] * 10, LOG, 0.6), (None, LOG, 0.6), ([3] * 10, TRAINER, 0.0)],  # the last one hangs there
)
def test_a_steps_launching_is_a_share_of_its_own_as_long_as_the_process_uses_the_cpu(cpu, line, launching):
    found = profile((0, 6, BACKWARD), (6, 10, LOGS), util=[0] * 10, cpu=cpu).within([(0, 10)])
    assert found.launching == pytest.approx(launching)
    assert found.line == line
    assert found.own_share == pytest.approx(0.4)


def test_too_few_notes_say_nothing():
    assert profile((0, 20, TRAINS), (20, 20.4, LOGS), util=[90] * 20 + [0]).within([(20, 20.4)]) is None


def test_of_several_processes_that_feed_a_gpu_the_one_counts_that_waits_least_for_data():
    waits = profile((0, 20, TRAINS), (20, 30, WAITS), util=[90] * 20 + [0] * 10)
    logs = profile((0, 20, TRAINS), (20, 30, LOGS), util=[90] * 20 + [0] * 10)
    other = profile((0, 30, READS), util=[0] * 30, gpu=1)
    assert idle_location_of([waits, logs, other], 0, [(20, 30)]).line == LOG
    assert idle_location_of([other], 0, [(20, 30)]) is None


def test_a_function_of_the_users_counts_as_one_wherever_it_stands_in_it():
    draws, sends = (Frame("/home/me/log.py", n, "send") for n in (10, 11))
    stays = [(n, n + 3, (line, *LOGS)) for n, line in zip(range(0, 30, 3), [draws, sends] * 5, strict=True)]
    found = profile(*stays, util=[0] * 30, cpu=[2] * 30).within([(0, 30)])
    assert (found.call.function, found.call_share) == (LOG.function, pytest.approx(1))
    assert found.share == pytest.approx(0.5)
    assert found.is_in_call
    assert found.cpu_pct == pytest.approx(2)


def test_a_training_that_stands_in_no_function_of_the_users_has_no_call():
    found = profile((0, 30, TRAINS), util=[20] * 30, cpu=[100] * 30).within([(0, 30)])
    assert (found.call, found.call_share, found.is_in_call) == (None, 0, False)


@pytest.mark.parametrize("waits_pct", [0.0, 8.0, 75.0, 100.0])
@pytest.mark.parametrize("steps_pct", [5.0, 100.0])
def test_cpu_in_a_place_is_told_from_that_beside_it(waits_pct, steps_pct):
    """A callback of 0.7 s that comes every 2.3 s, in rows of a second."""
    starts = np.arange(0.4, 60, 2.3)
    cover = interval_cover([(start, start + 0.7) for start in starts])
    t_s = np.arange(1.0, 61)
    share = cover.seconds_in_each(np.column_stack([t_s - 1, t_s]))
    noise = np.random.default_rng(0).normal(0, 3, len(t_s))
    cpu = share * waits_pct + (1 - share) * steps_pct + noise
    assert cpu_in_place(readings(t_s, cpu), [(0, 61)], cover) == pytest.approx(waits_pct, abs=8)


def test_cpu_of_rows_that_all_hold_as_much_of_a_place_is_not_told():
    t_s = np.arange(1.0, 61)
    cover = interval_cover([(n / 10, n / 10 + 0.04) for n in range(600)])
    assert cpu_in_place(readings(t_s, 60 + np.arange(60) % 2), [(0, 61)], cover) is None


def test_what_a_place_can_have_taken_at_most_says_that_it_waits_there():
    t_s = np.arange(1.0, 61)
    cover = interval_cover([(n / 10, n / 10 + 0.08) for n in range(600)])
    at_most = cpu_in_place(readings(t_s, 20 + np.arange(60) % 2), [(0, 61)], cover)
    assert at_most == pytest.approx(20.5 / 0.8, abs=0.5)


@pytest.mark.parametrize("host", [NO_SIGNALS, readings(np.arange(1.0, 3), [5, 5])])
def test_cpu_in_a_place_takes_more_than_a_few_readings(host):
    assert cpu_in_place(host, [(0, 61)], interval_cover([(0, 61)])) is None


def test_cpu_that_jumps_about_tells_nothing_of_a_place():
    t_s = np.arange(1.0, 21)
    cpu = np.random.default_rng(1).choice([0.0, 400.0], len(t_s))
    assert cpu_in_place(readings(t_s, cpu), [(0, 21)], interval_cover([(0, 9.5)])) is None


def test_of_several_ranks_no_cpu_is_known_for_the_host_tells_of_the_busiest():
    """Rank 0 sleeps in a callback while rank 1 spins at 100 % in NCCL."""
    of = run_of("s-loader-stall")
    seconds = np.arange(1.0, 31)
    host = of.host.reindex(range(30)).assign(t_s=seconds, main_cpu_pct=100.0)
    sleeps = process((0, 30, LOGS), role="rank 0", pid=1)
    for stacks, known in (((sleeps,), True), ((sleeps, process((0, 30, TRAINS), role="rank 1", pid=2)), False)):
        run = dataclasses.replace(of, host=host, stacks=stacks, processes=of.processes.iloc[:0])
        found = SignalsIndex(run, [series(*[0] * 30)], []).of(0, 0.0, 30.0).idle_location
        assert (found.is_alone, found.cpu_pct is not None) == (known, known)


def test_what_workers_did_is_that_of_the_interval():
    """A first training asks a manager, a second one in the same recording reads images."""
    of = run_of("s-loader-stall")
    manager = Frame("/usr/lib/python3.11/multiprocessing/managers.py", 821, "_callmethod")
    asks = (Frame("/usr/lib/python3.11/multiprocessing/connection.py", 395, "_recv"), manager, *READS)
    worker = process((0, 20, asks), (20, 40, READS), role="worker 0", pid=2)
    run = dataclasses.replace(of, stacks=(process((0, 40, WAITS)), worker), processes=of.processes.iloc[:0])
    index = SignalsIndex(run, [series(*[0] * 40)], [])
    assert index.of(0, 0.0, 20.0).loader.waits_for_process
    assert not index.of(0, 20.0, 40.0).loader.waits_for_process


@pytest.mark.parametrize(("ran", "cpu_pct"), [([False] * 12, 0), ([True] * 12, 100), ([True] * 9, 40)])
def test_looks_at_the_cpu_in_a_place_say_more_than_readings_of_the_host(ran, cpu_pct):
    """Too few of them leave it to the host, whose readings here hold nothing else."""
    at_s = np.arange(1.0, len(ran) + 1)
    stacks = main_idle_stacks(
        dataclasses.replace(process((0, 30, LOGS)), probes=Probes(at_s, np.array(ran))), [series(*[0] * 30)]
    )
    host = readings(np.arange(1.0, 31), [40] * 30)
    found = StackProfile(stacks, [Phase("train", None, 0, 1000, "callbacks")], host).within([(0, 30)])
    assert found.cpu_pct == pytest.approx(cpu_pct)


SENDS = (Frame("/usr/lib/python3.12/socket.py", 707, "readinto", "recv_into"), *LOGS)


@pytest.mark.parametrize(
    ("stack", "ran", "cpu_pct"), [(SENDS, [0, 0, 1, 0], 25), (SENDS, [0, 0, 0], 40), (LOGS, [0] * 4, 40)]
)
def test_few_looks_confirm_that_who_reads_a_socket_waits(stack, ran, cpu_pct):
    at_s = np.arange(1.0, len(ran) + 1)
    notes = dataclasses.replace(process((0, 30, stack)), probes=Probes(at_s, np.array(ran, dtype=bool)))
    host = readings(np.arange(1.0, 31), [40] * 30)
    found = StackProfile(main_idle_stacks(notes, [series(*[0] * 30)]), [Phase("train", None, 0, 99, "callbacks")], host)
    assert found.within([(0, 30)]).cpu_pct == pytest.approx(cpu_pct)


PACKS = Frame("/venv/lib/python3.12/site-packages/torch/autograd/graph.py", 400, "pack_to_cpu", "copy_")
LOSS = Frame("/home/u/small_cards.py", 12, "loss")
SCRIPT = Frame("/home/u/train.py", 9, "<module>")


def test_the_line_for_which_tensors_are_copied_is_the_users_within_yolo():
    stays = [(0, 2, (PACKS, CONV, LOSS, PASS, SCRIPT)), (2, 10, (CONV, LOSS, PASS, SCRIPT))]
    assert profile(*stays, util=[50] * 10).copying_line([(0, 10)]) == LOSS
    assert profile(stays[1], util=[50] * 10).copying_line([(2, 10)]) is None  # there it computes
    batches = Frame(PASS.file, 77, "preprocess_batch", "to")
    assert profile((0, 10, (batches, PASS, SCRIPT)), util=[50] * 10).copying_line([(0, 10)]) is None  # YOLO's own copy
