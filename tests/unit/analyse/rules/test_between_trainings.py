"""Time between the trainings of one command: the user's function that it went to."""

import dataclasses

import pytest
from support.runs import make_run, readings
from support.stacks import TRAINER, process

from gpu_report.analyse import analyse
from gpu_report.model import Frame, InsideEpoch, InsideRun, Phase, RecordedEvent

MAIN = Frame("/home/me/folds.py", 15, "<module>")
MAKE = Frame("/home/me/folds.py", 27, "make_fold")
CLEAN = (Frame("/home/me/picture.py", 8, "clean", called="bilateralFilter"), MAKE, MAIN)
COPY = (MAKE, MAIN)
PAUSE = (Frame("/home/me/jobs.py", 8, "next_job", called="sleep"), MAIN)  # looks for a job now and then
BUILD = (Frame("/venv/lib/python3.12/site-packages/ultralytics/engine/model.py", 99, "__init__"), MAIN)
TRAINED_S = 20.0


def folds(count, *between, after_s=0.0, asked=None):
    """Return trainings one after the other in one process; `between` is what it did before each, with its seconds."""
    inside, stays, t_s = [], [], 0.0
    for at in range(count):
        epochs = (InsideEpoch(1, 1, t_s + 2, t_s + TRAINED_S, 400, 10, 0.0, 0.0, 0.0),)
        phases = (
            Phase("startup", None, t_s, t_s + 2, "callbacks"),
            Phase("train", 1, t_s + 2, t_s + TRAINED_S, "callbacks"),
        )
        inside.append(InsideRun(at + 1, 0, 7, "train", {}, phases, epochs, "finished"))
        stays.append((t_s, t_s + TRAINED_S, (TRAINER,)))
        t_s += TRAINED_S
        for stack, seconds in between if at < count - 1 else ():
            stays.append((t_s, t_s + seconds, stack))
            t_s += seconds
    stays += [(t_s, t_s + after_s, CLEAN)] if after_s else []
    end = RecordedEvent(t_s + after_s, "command_ended", None, {"exit_code": 1 if asked else 0, "asked": asked})
    run = make_run([readings((90.0, t_s), (0.0, after_s + 1))], events=[end])
    return dataclasses.replace(run, inside=tuple(inside), stacks=(process(*stays, pid=7),))


def found_in(run, rule="between-trainings"):
    return next((each for each in analyse(run).findings if each.rule == rule), None)


def test_a_data_set_that_is_made_anew_for_each_training_leads_with_all_its_time():
    run = folds(3, (CLEAN, 6.0), (COPY, 1.0))
    found = found_in(run)
    assert (found.where[0].function, found.where[0].line, len(found.each)) == ("clean", 8, 2)
    assert found.where[0].share == pytest.approx(6 / 7, abs=0.05)
    lead = analyse(run).verdict.sentences[0].text
    assert lead == "Look at `clean` (picture.py:8): 12 s went there between trainings, 2 times. Once may be enough."


def test_what_is_more_than_the_work_of_one_function_is_its_callers():
    found = found_in(folds(3, (CLEAN, 5.0), (COPY, 3.0)))
    assert (found.where[0].function, found.where[0].line) == ("make_fold", 27)


@pytest.mark.parametrize("between", [((CLEAN, 1.0),), ((BUILD, 9.0),), ((BUILD, 6.0), (CLEAN, 4.0)), ((PAUSE, 60.0),)])
def test_a_second_a_pause_or_what_yolo_does_is_no_finding(between):
    assert found_in(folds(3, *between)) is None


@pytest.mark.parametrize(("asked", "rule"), [("SIGINT", None), (None, "slow-exit")])
def test_after_ctrl_c_the_work_in_progress_is_that_before_the_next_training(asked, rule):
    """A time limit came 7 s into the fold of training 4 (seeds, YOLOv8n-seg, H200, 2026-11-28)."""
    run = folds(3, (CLEAN, 6.0), after_s=9.0, asked=asked)
    assert len(found_in(run).each) == 3
    found = found_in(run, "slow-exit")
    assert (found and found.rule) == rule


LIB = "/usr/lib/python3.12"
NEXT_JOB = Frame("/home/me/jobs.py", 12, "next_job")
FROM_QUEUE = (
    Frame(f"{LIB}/multiprocessing/connection.py", 395, "_recv", called="read"),
    Frame(f"{LIB}/multiprocessing/queues.py", 103, "get"),
    NEXT_JOB,
    MAIN,
)
FROM_SOCKET = (Frame("/home/me/jobs.py", 14, "next_job", called="recv"), MAIN)
FROM_BROKER = (
    Frame(f"{LIB}/socket.py", 720, "readinto", called="recv_into"),
    Frame("/venv/lib/python3.12/site-packages/redis/client.py", 900, "blpop"),
    NEXT_JOB,
    MAIN,
)
RUNS = (
    Frame(f"{LIB}/selectors.py", 415, "select", called="poll"),
    Frame(f"{LIB}/subprocess.py", 2021, "_communicate"),
    MAKE,
    MAIN,
)


def with_cpu(run, **pct):
    host = run.host.iloc[:0].reindex(range(int(run.duration_s)))
    return dataclasses.replace(run, host=host.assign(t_s=[at + 1.0 for at in range(len(host))], **pct))


@pytest.mark.parametrize("stack", [FROM_QUEUE, FROM_SOCKET, FROM_BROKER])
def test_to_wait_for_the_next_training_is_no_work(stack):
    assert found_in(folds(3, (stack, 60.0))) is None
    assert found_in(with_cpu(folds(3, (stack, 60.0)), main_cpu_pct=2.0, workers_cpu_pct=0.0)) is None
    mixed = found_in(with_cpu(folds(3, (CLEAN, 7.0), (stack, 6.0)), main_cpu_pct=30.0))
    assert mixed.where[0].function == "clean"


def test_to_wait_for_workers_of_its_own_or_for_a_program_is_work():
    pool = with_cpu(folds(3, (FROM_QUEUE, 60.0)), main_cpu_pct=3.0, workers_cpu_pct=700.0)
    assert found_in(pool).where[0].function == "next_job"
    assert found_in(folds(3, (RUNS, 9.0))).where[0].function == "make_fold"
