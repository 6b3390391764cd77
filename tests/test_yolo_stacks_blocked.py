"""The line of code where the GPU waited: C code, a lock, a file, and the last line of a training that was killed."""

import pytest
from support.stack_trainings import line_of, record, the_drop

from gpu_report.analyse import analyse
from gpu_report.load import load_run

pytestmark = pytest.mark.yolo


def test_c_code_that_keeps_pythons_lock_is_named_by_the_line_that_called_it(
    run_cli, fake_nvml, yolo_home, offline, tmp_path
):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "in_c")
    drop = the_drop(folder)
    first, *_ = drop.where
    line = line_of("    ctypes.PyDLL(None).sleep(13)  # an extension that does not let go of the interpreter's lock")
    assert (first.process, first.function, first.line) == ("main", "in_c", line)
    assert first.share > 0.8
    (held,) = [number.value for number in drop.evidence if "GIL" in number.text]
    assert held > 9


@pytest.mark.long  # a minute and more; what it adds is held by tests of the parts, too
def test_a_lock_that_another_thread_keeps_is_named_with_who_keeps_it(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "waits")
    run = load_run(folder)
    (drop,) = [f for f in analyse(run).findings if f.rule == "drop" and not f.expected]
    assert (drop.where[0].function, drop.where[0].line) == (
        "waits",
        line_of("    lock.acquire()  # until the exporter is done"),
    )
    (main,) = [process for process in run.stacks if process.role == "main"]
    (exporter,) = [thread for thread in main.threads if thread.name == "exporter"]
    assert main.stacks[exporter.number[0]][0].line == line_of("        time.sleep(seconds)  # keeps the lock meanwhile")
    (wait,) = [wait for wait in run.waits if wait.role == "main" and wait.duration_s > 9]
    assert wait.channel.startswith("futex")


def test_a_file_that_does_not_come_is_named_with_its_path(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "reads")
    drop = the_drop(folder)
    assert drop.where[0].line == line_of('    open("slow.npy", "rb").read()  # as from a slow server')
    assert (drop.cause.name, drop.cause.confidence) == ("trainer-blocked", 0.95)
    assert f"read of {yolo_home / 'slow.npy'}" in drop.cause.explanation
    (waited,) = [number.value for number in drop.evidence if "slow.npy" in number.text]
    assert waited > 9


def test_a_training_that_is_killed_says_where_it_was_last_seen(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "is_killed", code=137)
    (end,) = [finding for finding in analyse(load_run(folder)).findings if finding.rule == "run-ended"]
    line = line_of("    time.sleep(6)  # then the OOM killer comes")
    assert (end.where[0].function, end.where[0].line) == ("is_killed", line)
    assert f"last seen in is_killed (is_killed.py:{line})" in end.summary
