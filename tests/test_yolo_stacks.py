"""The line of code where the GPU waited: a callback that sleeps, and loaders' workers that do."""

import sys

import pytest
from support.stack_trainings import line_of, record, the_drop

from gpu_report.analyse import analyse
from gpu_report.load import load_run

pytestmark = pytest.mark.yolo


def test_a_callback_that_sleeps_is_named_by_its_line(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "callback")
    drop = the_drop(folder)
    assert drop.cause.name == "trainer-blocked"
    first, *_ = drop.where
    line = line_of("    time.sleep(seconds)  # as a slow server would take")
    assert (first.process, first.function, first.line) == ("main", "log_images", line)
    assert first.file.endswith("callback.py")
    innermost = {stack[-1].function for time in analyse(load_run(folder)).code_time for stack in time.stacks}
    assert ("sleep()" in innermost) is (sys.version_info >= (3, 11))
    assert first.share > 0.9


def test_a_loaders_worker_that_sleeps_is_named_by_its_line(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "loader")
    drop = the_drop(folder)
    assert drop.cause.name == "input-stalled"
    first, *_ = drop.where
    line = line_of("            time.sleep(14)  # one image from a server that hangs")
    assert (first.process, first.function, first.line) == ("workers", "read_slowly", line)


@pytest.mark.long  # a minute and more; what it adds is held by tests of the parts, too
def test_a_loaders_worker_that_reads_is_named_with_its_file(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    run = load_run(record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "reader"))
    (drop,) = [f for f in analyse(run).findings if f.rule == "drop" and not f.expected]
    line = line_of('    open(path, "rb").read()  # one image from a server that hangs, too')
    assert (drop.where[0].process, drop.where[0].function, drop.where[0].line) == ("workers", "reads_an_image", line)
    longest = max((wait for wait in run.waits if wait.role == "worker" and wait.file), key=lambda wait: wait.duration_s)
    assert longest.duration_s > 9
    assert longest.call == "read"
    assert longest.file.startswith(f"{yolo_home}/image-")
