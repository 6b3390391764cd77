"""What the callbacks tell of an exception: types, one line of words without secrets, an error number, and no fault."""

import errno
import os
from types import SimpleNamespace as Some

import pytest

from gpu_report.inside.on_path.gpu_report_inside.exceptions import FRAMES_KEPT, LONGEST_MESSAGE, described

FULL = Some(f_bavail=3, f_frsize=4096)
ROOMY = Some(f_bavail=10**9, f_frsize=4096)
WORKER = "Caught {0} in DataLoader worker process 2.\nOriginal Traceback (most recent call last):\n  File x\n{1}: {2}\n"


class DistError(RuntimeError):
    """As torch.distributed has it."""


class DistBackendError(DistError):
    """Likewise."""


class AcceleratorError(RuntimeError):
    """As torch has it from 2.8 on."""

    error_code = 710


class UnspeakableError(Exception):
    """One whose words cannot be had."""

    def __str__(self):
        raise ValueError


def words_of(error, folder):
    """Return what is told of an exception, but where it was raised."""
    return {name: value for name, value in described(error, folder).items() if name != "frames"}


def raised(error, cause=None):
    """Return an exception as it is caught."""
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def test_type_bases_and_words_are_told():
    told = words_of(raised(DistBackendError("NCCL error in: x.cpp\n  ncclSystemError: 5")), None)
    assert told == {
        "error": "DistBackendError",
        "bases": ["DistError", "RuntimeError"],
        "message": "NCCL error in: x.cpp ncclSystemError: 5",
    }
    assert words_of(None, None) == {"error": None}
    assert words_of(raised(AcceleratorError("CUDA error: x")), None)["cuda_error"] == 710


def test_secrets_are_hidden_and_a_long_message_is_cut():
    told = words_of(raised(ValueError("https://me:hunter2@host/x?sig=abc password=hunter2 " + "x" * 10**6)), None)
    assert "hunter2" not in told["message"]
    assert "sig" not in told["message"]
    assert len(told["message"]) == LONGEST_MESSAGE


def test_an_exception_that_cannot_be_put_into_words_still_has_a_type():
    assert words_of(raised(UnspeakableError()), None) == {"error": "UnspeakableError"}


def test_a_disk_without_room_is_named_where_it_is_known(monkeypatch):
    monkeypatch.setattr(os, "statvfs", lambda _: FULL)
    opened = OSError(errno.ENOSPC, "No space left on device", "/data/cache.npy")
    assert words_of(opened, "/data/runs") == {
        "error": "OSError",
        "errno": "ENOSPC",
        "message": "No space left on device: /data/cache.npy",
    }
    written = OSError(errno.ENOSPC, "No space left on device")  # a write does not tell to which file
    assert words_of(written, "/data/runs")["message"] == "No space left on device: /data/runs"
    assert words_of(OSError(errno.EIO, "Input/output error"), "/data/runs")["message"] == "Input/output error"
    assert words_of(written, None)["message"] == "No space left on device"
    monkeypatch.setattr(os, "statvfs", lambda _: ROOMY)
    assert words_of(written, "/data/runs")["message"] == "No space left on device"  # another disk is full


def test_a_folder_that_is_gone_is_no_fault_of_ours():
    told = words_of(OSError(errno.ENOSPC, "No space left on device"), "/nowhere/at/all")
    assert told["message"] == "No space left on device"


@pytest.mark.parametrize(
    ("error", "message", "number"),
    [
        (AssertionError(WORKER.format("AssertionError", "AssertionError", "no labels found\nin a.txt")), None, None),
        (OSError(WORKER.format("OSError", "OSError", "[Errno 28] No space left on device: 'x'")), None, "ENOSPC"),
        (RuntimeError(WORKER.format("RuntimeError", "torch.RuntimeError", "twice\nRuntimeError: x")), "x", None),
        (RuntimeError(WORKER.format("RuntimeError", "Other", "last line")), "Other: last line", None),
    ],
)
def test_of_an_exception_in_a_worker_its_own_words_are_told(error, message, number):
    told = words_of(error, None)
    known = {"ENOSPC": "No space left on device: 'x'"}.get(number, "no labels found in a.txt")
    assert (told["message"], told.get("errno")) == (message or known, number)


def test_the_signal_that_ended_a_worker_is_told_rather_than_that_it_exited():
    first = RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. ")
    told = words_of(raised(RuntimeError("DataLoader worker (pid(s) 7) exited unexpectedly"), first), None)
    assert told["message"] == "DataLoader worker (pid 7) is killed by signal: Killed."


def test_what_is_raised_while_ctrl_c_is_dealt_with_is_ctrl_c():
    def interrupt():
        raise KeyboardInterrupt

    def cleaning_up():
        try:
            interrupt()
        except KeyboardInterrupt:
            raise RuntimeError("too late")  # noqa: B904 - as user code does

    with pytest.raises(RuntimeError) as caught:
        cleaning_up()
    assert words_of(caught.value, None) == {"error": "KeyboardInterrupt"}
    assert described(caught.value, None)["frames"][0][2] == "interrupt"


def test_the_last_function_of_ultralytics_is_named():
    place = {"__name__": "ultralytics.data.base"}
    exec("def load_image(): assert False, 'corrupt'", place)  # a frame that is of another module
    with pytest.raises(AssertionError) as caught:
        place["load_image"]()
    assert words_of(caught.value, None)["raised_in"] == "ultralytics.data.base:load_image"
    assert "raised_in" not in words_of(raised(ValueError("x")), None)


def test_the_frames_that_it_came_through_are_told_innermost_first():
    def parse():
        return int("x")

    with pytest.raises(ValueError, match="invalid") as caught:
        parse()
    frames = described(caught.value, None)["frames"]
    assert [(file, function) for file, _, function in frames[:2]] == [
        (__file__, "parse"),
        (__file__, "test_the_frames_that_it_came_through_are_told_innermost_first"),
    ]
    assert frames[0][1] == parse.__code__.co_firstlineno + 1


def test_of_one_that_goes_deep_the_innermost_frames_are_told():
    def deep(left):
        return deep(left - 1) if left else int("x")

    with pytest.raises(ValueError, match="invalid") as caught:
        deep(10 * FRAMES_KEPT)
    frames = described(caught.value, None)["frames"]
    assert [function for _, _, function in frames[:-1]] == ["deep"] * (FRAMES_KEPT - 1)
    assert frames[-1][2].startswith("test_of_one_that_goes_deep")  # whose they are


def test_one_of_a_loaders_worker_has_the_frames_of_that():
    lines = (
        '  File "/torch/_utils/worker.py", line 349, in _worker_loop\n    data = fetch()\n'
        '  File "/me/a b.py", line 7, in read\n    x'
    )
    words = WORKER.format("ValueError", "ValueError", "no box").replace("  File x", lines)
    assert described(raised(ValueError(words)), None)["frames"] == [
        ["/me/a b.py", 7, "read"],
        ["/torch/_utils/worker.py", 349, "_worker_loop"],
    ]
