"""What the GPUs waited for: time by stack over the run, and the worst lines."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from support.samples import run_of

from gpu_report.analyse import analyse
from gpu_report.analyse.results import code_time as module
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks
from gpu_report.analyse.timeline.phase_index import PhaseIndex
from gpu_report.model import Frame, ProcessStacks
from gpu_report.wording import line_words

YOLO = "/venv/lib/python3.11/site-packages/ultralytics/engine/trainer.py"
MAIN = Frame("/home/me/train.py", 3, "<module>")
STEP, EPOCH = Frame(YOLO, 632, "_do_train"), Frame(YOLO, 600, "_do_train")
CALL = Frame("/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1518, "_call_impl")
CONV = Frame("/venv/lib/python3.11/site-packages/torch/nn/modules/conv.py", 456, "forward")
LOADER = Frame("/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 733, "__next__")
SELECT = Frame("/usr/lib/python3.11/selectors.py", 415, "select")
C10D = "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
BARRIER, OWN = Frame(C10D, 5030, "barrier", called="barrier"), Frame("/home/me/meet.py", 124, "meet")
PICKLE = Frame(C10D, 3234, "_tensor_to_object", called="load")
WRAPPER = Frame("/venv/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", 83, "wrapper")
STACKS = {
    1: (CONV, CALL, STEP, MAIN),
    2: (SELECT, LOADER, EPOCH, MAIN),
    3: (SELECT, STEP, MAIN),
    4: (BARRIER, WRAPPER, OWN, STEP, MAIN),
    5: (PICKLE, WRAPPER, OWN, STEP, MAIN),
    6: (STEP._replace(called="item"), MAIN),
}


def analysed(*stays):
    """Return the analysis of a run whose main process stood in stacks, by number, from one moment to the next."""
    edges = np.array([start for start, _ in stays])
    run = run_of("s-loader-stall")
    ends = np.append(edges[1:], run.duration_s)
    numbers = np.array([number for _, number in stays], dtype=np.int32)
    return analyse(dataclasses.replace(run, stacks=(ProcessStacks(1, "main", edges, ends, numbers, STACKS),)))


def test_idle_time_adds_up_by_stack_phase_and_moment():
    analysis = analysed((0.0, 1), (30.0, 2), (60.0, 3))
    (time,) = analysis.code_time
    lost = sum(row.gpu_seconds for row in analysis.ledger if row.name not in {"work", "unmeasured"})
    assert time.seconds.sum() == pytest.approx(analysis.run.duration_s)
    assert 0 < time.idle_gpu_s.sum() <= lost + 1
    assert set(time.phases) >= {"startup", "train"}
    inside = time.bucket * time.bucket_s
    assert (inside >= 0).all()
    assert (inside <= analysis.run.duration_s).all()
    trains = [time.phases[number] == "train" for number in time.phase]
    phases = sum(phase.duration_s for phase in analysis.phases if phase.name == "train")
    assert time.seconds[trains].sum() == pytest.approx(phases, abs=2 * time.bucket_s)


def test_a_call_that_waits_for_other_ranks_is_no_work_of_a_library():
    analysis = analysed((0.0, 4), (30.0, 5))
    kinds = {stack[-1].function: stack[-1].kind for stack in analysis.code_time[0].stacks}
    assert kinds == {"barrier()": "ranks", "load()": "library"}  # the pickle of what came is none
    waited = {line.waits_for: line_words(line) for line in analysis.code_lines}
    assert waited["ranks"] == "meet (meet.py:124), waiting for other ranks"


def test_a_stack_is_shown_without_what_lies_between_its_own_lines():
    (time,) = analysed((0.0, 1), (30.0, 2), (60.0, 3)).code_time
    shown = {tuple((frame.function, frame.kind) for frame in stack) for stack in time.stacks}
    main, train = ("<module>", "own"), ("_do_train", "yolo")
    assert shown == {
        (main, train, ("forward", "library")),
        (main, train, ("__next__", "loader"), ("select", "library")),
        (main, train, ("select", "library")),
    }


def test_lines_are_the_innermost_of_ones_own_and_waiting_for_data_stands_by_itself():
    lines = analysed((0.0, 1), (30.0, 2), (60.0, 3)).code_lines
    assert {(line.function, line.line, line.waits_for) for line in lines} == {
        ("_do_train", 632, None),
        ("_do_train", 600, "data"),
    }
    assert [line.idle_gpu_s for line in lines] == sorted((line.idle_gpu_s for line in lines), reverse=True)


def test_lines_are_of_the_time_after_start_up_unless_there_is_none():
    analysis = analysed((0.0, 1), (30.0, 2), (60.0, 3))
    (time,) = analysis.code_time
    later = sum(float(time.idle_gpu_s[at]) for at, of in enumerate(time.phase) if time.phases[of] != "startup")
    assert later < time.idle_gpu_s.sum()
    assert sum(line.idle_gpu_s for line in analysis.code_lines) == pytest.approx(later, abs=0.2)
    only = dataclasses.replace(time, phase=np.full(len(time.phase), time.phases.index("startup")))
    assert only.after_startup.all()
    assert dataclasses.replace(time, with_startup=True).after_startup.all()  # where the report begins with it


def test_rare_stacks_count_for_what_they_have_in_common_with_common_ones(monkeypatch):
    monkeypatch.setattr(module, "MOST_STACKS", 1)
    (time,) = analysed((0.0, 1), (30.0, 2), (60.0, 3)).code_time
    ends = {stack[-1].function for stack in time.stacks}
    assert len(time.stacks) < 3 + 1
    assert time.seconds.sum() == pytest.approx(run_of("s-loader-stall").duration_s)
    assert "<module>" in ends or "_do_train" in ends


def test_rows_of_the_ledger_name_their_lines():
    analysis = analysed((0.0, 1), (30.0, 2), (60.0, 3))
    where = {row.name: row.where for row in analysis.ledger}
    assert where["work"] == () == where.get("unmeasured", ())
    assert [place.function for place in where["startup"]] == ["_do_train"]
    assert sum(place.share for place in where["startup"]) == pytest.approx(1)


def test_without_notes_there_is_nothing():
    analysis = analyse(run_of("s-loader-stall"))
    assert (analysis.code_time, analysis.code_lines) == ((), ())
    assert all(row.where == () for row in analysis.ledger)


def test_a_piece_takes_50_bytes_of_memory_while_the_time_of_a_day_is_summed_up():
    count = 400_000
    edges = np.arange(count + 1) * 0.05
    numbers = np.tile([1, 2, 3, 2], count // 4).astype(np.int32)
    process = ProcessStacks(1, "main", edges[:-1], edges[1:], numbers, STACKS)
    pieces = IdleStacks(process, (0,), edges[:-1], edges[1:], numbers, np.full(count, 0.01))
    tracemalloc.start()
    try:
        time = module._of_role("main", [pieces], PhaseIndex([]), 100.0)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(time.seconds) == 600
    assert time.seconds.sum() == pytest.approx(count * 0.05)
    assert time.idle_gpu_s.sum() == pytest.approx(count * 0.01)
    assert most / count < 50


def test_a_call_waits_for_a_gpu_only_where_there_is_one():
    found = (module._frames(STACKS[6][::-1], on_gpu=on_gpu) for on_gpu in (True, False))
    assert [frames[-1].kind for frames in found] == ["gpu", "library"]
    assert [line.waits_for for line in analysed((0.0, 6)).code_lines] == ["gpu"]
