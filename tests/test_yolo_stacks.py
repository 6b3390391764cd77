"""The line of code where the GPU waited: a file that does not come, and loaders' workers that sleep or read."""

import pytest
from support.stack_trainings import drops, line_of, record

pytestmark = [pytest.mark.yolo, pytest.mark.live]  # it sleeps for most of the time


@pytest.fixture(scope="module")
def stalled(fake_library, tmp_path_factory):
    return drops(record(tmp_path_factory.mktemp("stalled"), fake_library, "reads", "loader"))


def test_each_stall_is_a_drop_of_its_own(stalled):
    assert [drop.cause.name for drop in stalled] == ["trainer-blocked", "input-stalled"]


def test_a_file_that_does_not_come_is_named_with_its_path(stalled):
    drop = stalled[0]
    assert drop.where[0].line == line_of('    open("slow.npy", "rb").read()  # as from a slow server')
    assert drop.cause.confidence == 0.95
    assert "slow.npy" in drop.cause.explanation
    (waited,) = [number.value for number in drop.evidence if "slow.npy" in number.text]
    assert waited > 9


def test_a_loaders_worker_that_sleeps_is_named_by_its_line(stalled):
    first, *_ = stalled[1].where
    line = line_of("        time.sleep(left)  # one image from a server that hangs")
    assert (first.process, first.function, first.line) == ("workers", "read_slowly", line)


@pytest.mark.long  # a minute and more; what it adds is held by tests of the parts, too
def test_a_loaders_worker_that_reads_is_named_with_its_file(fake_library, tmp_path):
    run = record(tmp_path, fake_library, "reader")
    (drop,) = drops(run)
    line = line_of('    open(path, "rb").read()  # one image from a server that hangs, too')
    assert (drop.where[0].process, drop.where[0].function, drop.where[0].line) == ("workers", "reads_an_image", line)
    longest = max((wait for wait in run.waits if wait.role == "worker" and wait.file), key=lambda wait: wait.duration_s)
    assert longest.duration_s > 9
    assert longest.call == "read"
    assert longest.file.startswith(f"{tmp_path}/Übung-训练/image-")
