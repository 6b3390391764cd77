"""The line of code where the GPU waited: a callback, C code, a lock, and where a training was when it was killed."""

import sys

import pytest
from support.stack_trainings import drops, line_of, record

from gpu_report.analyse import analyse

pytestmark = [pytest.mark.yolo, pytest.mark.live]  # it sleeps for most of the time


@pytest.fixture(scope="module")
def killed(fake_library, tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    return record(folder, fake_library, "log_images", "in_c", "is_killed", code=137)


def test_a_callback_that_sleeps_is_named_by_its_line(killed):
    drop, _ = drops(killed)
    assert drop.cause.name == "trainer-blocked"
    first, *_ = drop.where
    line = line_of("    time.sleep(13)  # as a slow server would take")
    assert (first.process, first.function, first.line) == ("main", "log_images", line)
    assert first.file.endswith("train.py")
    innermost = {stack[-1].function for time in analyse(killed).code_time for stack in time.stacks}
    assert ("sleep()" in innermost) is (sys.version_info >= (3, 11))
    assert first.share > 0.9


def test_c_code_that_keeps_pythons_lock_is_named_by_the_line_that_called_it(killed):
    _, drop = drops(killed)
    first, *_ = drop.where
    line = line_of("    ctypes.PyDLL(None).sleep(13)  # an extension that does not let go of the interpreter's lock")
    assert (first.process, first.function, first.line) == ("main", "in_c", line)
    assert first.share > 0.8
    (held,) = [number.value for number in drop.evidence if "GIL" in number.text]
    assert held > 9


def test_a_training_that_is_killed_says_where_it_was_last_seen(killed):
    (end,) = [finding for finding in analyse(killed).findings if finding.rule == "run-ended"]
    line = line_of("    time.sleep(6)  # then the OOM killer comes")
    assert (end.where[0].function, end.where[0].line) == ("is_killed", line)
    assert f"last seen in is_killed (train.py:{line})" in end.summary


@pytest.mark.long  # a minute and more; what it adds is held by tests of the parts, too
def test_a_lock_that_another_thread_keeps_is_named_with_who_keeps_it(fake_library, tmp_path):
    run = record(tmp_path, fake_library, "waits")
    (drop,) = drops(run)
    assert (drop.where[0].function, drop.where[0].line) == (
        "waits",
        line_of("    lock.acquire()  # until the exporter is done"),
    )
    (main,) = [process for process in run.stacks if process.role == "main"]
    (exporter,) = [thread for thread in main.threads if thread.name == "exporter"]
    assert main.stacks[exporter.number[0]][0].line == line_of("        time.sleep(seconds)  # keeps the lock meanwhile")
    (wait,) = [wait for wait in run.waits if wait.role == "main" and wait.duration_s > 9]
    assert wait.channel.startswith("futex")
