"""What the callbacks tell of an exception: types, one line of words without secrets, an error number, and no fault."""

import errno
import os
from types import SimpleNamespace as Some

import pytest

from gpu_report.inside.on_path.gpu_report_inside.exceptions import LONGEST_MESSAGE, described

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


def raised(error, cause=None):
    """Return an exception as it is caught."""
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def test_type_bases_and_words_are_told():
    told = described(raised(DistBackendError("NCCL error in: x.cpp\n  ncclSystemError: 5")), None)
    assert told == {
        "error": "DistBackendError",
        "bases": ["DistError", "RuntimeError"],
        "message": "NCCL error in: x.cpp ncclSystemError: 5",
    }
    assert described(None, None) == {"error": None}
    assert described(raised(AcceleratorError("CUDA error: x")), None)["cuda_error"] == 710


def test_secrets_are_hidden_and_a_long_message_is_cut():
    told = described(raised(ValueError("https://me:hunter2@host/x?sig=abc password=hunter2 " + "x" * 10**6)), None)
    assert "hunter2" not in told["message"]
    assert "sig" not in told["message"]
    assert len(told["message"]) == LONGEST_MESSAGE


def test_an_exception_that_cannot_be_put_into_words_still_has_a_type():
    assert described(raised(UnspeakableError()), None) == {"error": "UnspeakableError"}


def test_a_disk_without_room_is_named_where_it_is_known(monkeypatch):
    monkeypatch.setattr(os, "statvfs", lambda _: FULL)
    opened = OSError(errno.ENOSPC, "No space left on device", "/data/cache.npy")
    assert described(opened, "/data/runs") == {
        "error": "OSError",
        "errno": "ENOSPC",
        "message": "No space left on device: /data/cache.npy",
    }
    written = OSError(errno.ENOSPC, "No space left on device")  # a write does not tell to which file
    assert described(written, "/data/runs")["message"] == "No space left on device: /data/runs"
    assert described(OSError(errno.EIO, "Input/output error"), "/data/runs")["message"] == "Input/output error"
    assert described(written, None)["message"] == "No space left on device"
    monkeypatch.setattr(os, "statvfs", lambda _: ROOMY)
    assert described(written, "/data/runs")["message"] == "No space left on device"  # another disk is full


def test_a_folder_that_is_gone_is_no_fault_of_ours():
    told = described(OSError(errno.ENOSPC, "No space left on device"), "/nowhere/at/all")
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
    told = described(error, None)
    known = {"ENOSPC": "No space left on device: 'x'"}.get(number, "no labels found in a.txt")
    assert (told["message"], told.get("errno")) == (message or known, number)


def test_the_signal_that_ended_a_worker_is_told_rather_than_that_it_exited():
    first = RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. ")
    told = described(raised(RuntimeError("DataLoader worker (pid(s) 7) exited unexpectedly"), first), None)
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
    assert described(caught.value, None) == {"error": "KeyboardInterrupt"}


def test_the_last_function_of_ultralytics_is_named():
    place = {"__name__": "ultralytics.data.base"}
    exec("def load_image(): assert False, 'corrupt'", place)  # a frame that is of another module
    with pytest.raises(AssertionError) as caught:
        place["load_image"]()
    assert described(caught.value, None)["raised_in"] == "ultralytics.data.base:load_image"
    assert "raised_in" not in described(raised(ValueError("x")), None)
