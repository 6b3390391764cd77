"""What the loader's workers did while the trainer waited for them, and which setting helps against it."""

import dataclasses

import pytest
from support.samples import run_of
from support.stacks import LOOP, READ, READS, RESTS, TRAINER, TRAINS, WAITS, process, series

from gpu_report.analyse.signals.code.idle_stacks import idle_stacks
from gpu_report.analyse.signals.code.loader_work import loader_work, worker_code, workers_at_work
from gpu_report.analyse.signals.code.stack_kinds import called_by_yolo, launches, line_of, location_of
from gpu_report.model import Frame

YOLO = "/venv/lib/python3.11/site-packages/ultralytics/"
LOADS = (Frame(YOLO + "utils/patches.py", 60, "imread"), Frame(YOLO + "data/base.py", 250, "load_image"), LOOP, TRAINER)
MANAGER = Frame("/usr/lib/python3.11/multiprocessing/managers.py", 821, "_callmethod")
ASKS = (Frame("/usr/lib/python3.11/multiprocessing/connection.py", 395, "_recv"), MANAGER, READ, LOOP, TRAINER)
LOCKED = (Frame("/usr/lib/python3.11/multiprocessing/synchronize.py", 96, "__enter__"), READ, LOOP, TRAINER)


def run_with(*stacks):
    run = run_of("s-loader-stall")
    return dataclasses.replace(run, stacks=stacks, processes=run.processes.iloc[:0])


@pytest.mark.parametrize(
    ("stays", "reading", "in_lock", "asking"),
    [
        (((0, 20, LOADS),), 1, 0, 0),
        (((0, 20, READS),), 0, 0, 0),
        (((0, 10, READS), (10, 20, LOCKED)), 0, 0.5, 0),
        (((0, 10, READS), (10, 20, ASKS)), 0, 0, 0.5),
        (((0, 10, LOADS), (10, 20, RESTS)), 1, 0, 0),
    ],
)
def test_what_the_workers_did(stays, reading, in_lock, asking):
    run = run_with(process((0, 20, WAITS)), process(*stays, role="worker 0", pid=2))
    work = loader_work(idle_stacks(run, [series(*[0] * 20)]))
    assert (work.reading, work.in_lock) == (pytest.approx(reading), pytest.approx(in_lock))
    assert work.asking == pytest.approx(asking)
    assert work.waits_for_shared == (in_lock + asking > 0)


def test_nothing_is_known_of_workers_that_were_not_noted():
    assert loader_work(idle_stacks(run_with(process((0, 20, WAITS))), [series(*[0] * 20)])) is None


def test_the_users_function_that_takes_the_workers_time_is_known_though_nothing_waits_for_them():
    parses = [(Frame("/home/me/coco.py", line, "load_json"), LOOP, TRAINER) for line in (18, 19)]
    stays = (0, 4, parses[0]), (4, 12, parses[1]), (12, 16, LOADS), (16, 20, RESTS)
    run = run_with(process((0, 20, TRAINS)), process(*stays, role="worker 0", pid=2))
    stacks = idle_stacks(run, [series(*[100] * 20)])
    code = worker_code(stacks, [(0, 20)])
    assert (code.line, code.share) == (parses[1][0], pytest.approx(0.75))
    assert worker_code(stacks, [(12, 16)]) is None


def test_how_many_workers_are_at_work_counts_those_that_wait_for_what_they_read():
    """One reads for half of the time and rests, one waits for a lock all the time."""
    main = process((0, 20, TRAINS))
    two = (
        process((0, 10, LOADS), (10, 20, RESTS), role="worker 0", pid=2),
        process((0, 20, LOCKED), role="worker 1", pid=3),
    )
    assert workers_at_work(idle_stacks(run_with(main, *two), [series(*[100] * 20)]), [(0, 20)]) == pytest.approx(1.5)
    assert workers_at_work(idle_stacks(run_with(main), [series(*[100] * 20)]), [(0, 20)]) is None


TORCH = "/venv/lib/python3.11/site-packages/torch/"
CONV = Frame(TORCH + "nn/modules/conv.py", 553, "forward")
CALLS = Frame(TORCH + "nn/modules/module.py", 1798, "_call_impl")
FORWARD = Frame(YOLO + "nn/modules/conv.py", 87, "forward")
BACKWARD = Frame(TORCH + "autograd/graph.py", 869, "_engine_run_backward")
RUNS = Frame(YOLO + "utils/callbacks/base.py", 20, "run_callbacks")
PREDICTS = Frame("/home/me/callbacks.py", 78, "predict")
BLOCK = Frame("/home/me/blocks.py", 12, "forward")
OWN_STEP = Frame("/home/me/optim.py", 40, "step")
STEPS = (Frame(TORCH + "optim/optimizer.py", 526, "wrapper"), Frame(TORCH + "amp/grad_scaler.py", 462, "step"))
SCRIPT = Frame("/home/me/train.py", 9, "<module>")


@pytest.mark.parametrize(
    ("stack", "launching"),
    [
        ((CONV, CALLS, FORWARD, CALLS, TRAINER), True),
        ((CALLS, FORWARD, CALLS, TRAINER), True),
        ((FORWARD, Frame(TORCH + "utils/_contextlib.py", 124, "decorate_context"), CALLS, TRAINER), True),
        ((BLOCK, CALLS, TRAINER), True),
        ((BACKWARD, TRAINER), True),  # a thread of autograd's launches, and the main one sleeps
        ((Frame(TORCH + "optim/adamw.py", 200, "step"), TRAINER), True),
        ((Frame("/home/me/hooks.py", 38, "look"), CALLS, TRAINER), False),  # a hook
        ((CONV, CALLS, Frame("/home/me/hooks.py", 39, "look"), CALLS, TRAINER), False),  # ... that runs a module
        ((OWN_STEP, *STEPS, TRAINER), False),  # an optimizer of the user's
        ((Frame("/home/me/hooks.py", 5, "after_step"), *STEPS, TRAINER), False),
        ((Frame("/venv/lib/python3.11/site-packages/scipy/optimize/_lsap.py", 9, "f"), BLOCK, CALLS, TRAINER), False),
        ((Frame("/home/me/blocks.py", 30, "assign"), BLOCK, CALLS, TRAINER), False),  # what a block does besides
        ((Frame("/home/me/blocks.py", 14, "forward", "cpu"), CALLS, TRAINER), False),  # waits for the GPU
        ((CONV, CALLS, Frame(YOLO + "engine/validator.py", 220, "__call__"), TRAINER), False),
        ((CONV, CALLS, Frame("/venv/lib/python3.11/site-packages/wandb/x.py", 3, "log"), RUNS, TRAINER), False),
        ((CONV, CALLS, FORWARD, CALLS, PREDICTS, RUNS, TRAINER), False),  # what a callback predicts is no step
        ((TRAINER,), False),
        (WAITS, False),
        ((), False),
    ],
)
def test_what_launches_the_kernels_of_a_step(stack, launching):
    assert launches(stack) is launching


def test_what_a_callback_has_yolo_do_is_named_by_the_line_of_the_callback():
    inner = (CONV, CALLS, FORWARD, CALLS)
    assert location_of((*inner, PREDICTS, RUNS, TRAINER)).line == PREDICTS.line
    assert location_of((*inner, TRAINER)).line == FORWARD.line
    logger = Frame(YOLO + "utils/callbacks/wb.py", 150, "on_fit_epoch_end")
    assert location_of((*inner, logger, RUNS, TRAINER, SCRIPT)).line == FORWARD.line  # none of it is the user's


def test_an_optimizer_of_the_users_is_a_call_of_yolos_though_torch_lies_between():
    assert called_by_yolo((OWN_STEP, *STEPS, TRAINER, SCRIPT)).function == "step"
    subclass = Frame("/home/me/trainer.py", 60, "optimizer_step")  # has torch's optimizer do its usual work
    assert called_by_yolo((Frame(TORCH + "optim/adamw.py", 200, "step"), *STEPS, subclass, TRAINER, SCRIPT)) is None


def test_a_callback_is_the_function_that_yolo_called_whatever_it_calls():
    helper, callback = Frame("/home/me/plots.py", 3, "draw"), Frame("/home/me/callbacks.py", 41, "on_end")
    script = Frame("/home/me/train.py", 9, "<module>")
    assert called_by_yolo((helper, callback, TRAINER, script)).function == "on_end"
    assert called_by_yolo((TRAINER, script)) is None
    logger = Frame(YOLO + "utils/callbacks/wb.py", 150, "on_fit_epoch_end")
    sends = Frame("/venv/lib/python3.11/site-packages/wandb/sdk/wandb_run.py", 9, "log")
    runs = Frame(YOLO + "utils/callbacks/base.py", 20, "run_callbacks")
    assert called_by_yolo((sends, logger, TRAINER)).function == "on_fit_epoch_end"
    assert called_by_yolo((runs, TRAINER)) is None
    predicts = Frame(YOLO + "engine/model.py", 500, "predict")
    assert called_by_yolo((predicts, callback, runs, TRAINER, script)).function == "on_end"
    calls = Frame("/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1798, "_call_impl")
    block = Frame("/home/me/blocks.py", 12, "forward")
    loop = Frame("/home/me/trainer.py", 80, "_do_train")
    assert called_by_yolo((calls, loop, TRAINER, script)) is None
    assert called_by_yolo((callback, runs, loop, TRAINER, script)).function == "on_end"
    loss = Frame("/home/me/model.py", 30, "loss")
    assert called_by_yolo((predicts, loss, TRAINER, script)) is None  # an override that has YOLO do its usual work
    assert called_by_yolo((block, calls, loss, TRAINER, script)) is None
    assert called_by_yolo((helper, loss, TRAINER, script)).function == "loss"  # ... and what it adds to that
    assert called_by_yolo((helper, script)) is None


def test_a_model_that_runs_where_yolo_runs_none_is_the_users_own():
    """An old model that weighs the images of a batch, within an override of `preprocess_batch` (YOLO's runs none)."""
    asks, override = Frame("/home/me/old_model.py", 12, "busyness"), Frame("/home/me/tutor.py", 15, "preprocess_batch")
    stack = (CONV, CALLS, FORWARD, CALLS, asks, override, TRAINER, SCRIPT)
    assert called_by_yolo(stack).function == "preprocess_batch"
    assert location_of(stack).line == asks.line
    assert launches(stack) is False
    usual = Frame(YOLO + "models/yolo/detect/train.py", 118, "preprocess_batch")  # super()
    assert called_by_yolo((usual, override, TRAINER, SCRIPT)) is None


def test_an_expression_is_named_by_the_function_that_it_is_written_in():
    inner, outer = Frame("/home/me/callbacks.py", 54, "<genexpr>"), Frame("/home/me/callbacks.py", 54, "rank")
    assert location_of((inner, outer, TRAINER)).function == "rank"
    assert location_of((inner._replace(function="<module>"),)).function == "<module>"
    assert line_of(process((0, 1, (inner, outer))), 1).line == 54
