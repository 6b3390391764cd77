"""From the options to an exit code: with a command, nothing that goes wrong here may reach it."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable

from gpu_report.errors import NothingToRecordError, UsageError
from gpu_report.record import inject, signals
from gpu_report.record.command import SIGNAL_BASE, Command, Ended, NotStarted
from gpu_report.record.devices import Opened
from gpu_report.record.gpu_watch import GpuWatch
from gpu_report.record.guard import quiet
from gpu_report.record.journal import Say
from gpu_report.record.no_gpu import explain
from gpu_report.record.options import RecordOptions
from gpu_report.record.recording import Recording

OPEN_LIMIT_S = 30.0  # NVML may take seconds to wake GPUs without persistence mode; a hung driver takes for ever
OPEN_GRACE_S = 3.0  # with a command running, readings may begin later than that, but signals must not wait


def record_run(options: RecordOptions, *, say: Say) -> int:
    """Record until the duration, a signal or the command's end, and return the exit code.

    Raises UsageError for a GPU or a folder that cannot be had, NothingToRecordError where there is no GPU and no
    command. When a call of the driver never returns, the process ends here: it could not end otherwise.
    """
    say = quiet(say)
    with signals.blocked() as mask:
        gpus = GpuWatch(options.gpus, options.interval_s, detail=options.detail)
        code = _record_command(options, gpus, say, mask) if options.command else _record_watching(options, gpus, say)
    if not gpus.finish():
        for stream in filter(None, (sys.stdout, sys.stderr)):  # a closed one is None
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    return code


def _record_watching(options: RecordOptions, gpus: GpuWatch, say: Say) -> int:
    opened = _open_gpus(gpus)
    if opened is None:
        return SIGNAL_BASE + signal.SIGINT
    recording = Recording(options, say)
    recording.begin(gpus, opened)
    say(f"recording {len(gpus.devices)} GPU(s) into {recording.folder}; Ctrl-C ends it")
    recording.run(gpus, None)
    say(f"recorded into {recording.folder}")
    return 0


def _open_gpus(gpus: GpuWatch) -> Opened | None:
    """Return NVML's answer, None when a signal came first; NothingToRecordError when there is nothing."""
    answer = gpus.await_open(OPEN_LIMIT_S, lambda: signals.pending(signals.STOPPING))
    if isinstance(answer, Opened):
        return answer
    if answer is not None:
        why = explain(answer.code, answer.error)
        raise NothingToRecordError(f"nothing to record: {why.reason}; {why.advice}")
    if signals.pending(signals.STOPPING):
        return None
    raise NothingToRecordError("nothing to record: the NVIDIA driver does not answer; look into `dmesg`, or reboot")


def _record_command(options: RecordOptions, gpus: GpuWatch, say: Say, mask: Iterable[int]) -> int:
    if options.gpus:
        gpus.await_open(OPEN_LIMIT_S, lambda: signals.pending(signals.FORWARDED))  # an unknown GPU stops us here
    recording = _open_or_say(options, say)
    if (early := signals.first_pending(signals.STOPPING)) is not None:  # the user thought better of it
        if recording is not None:
            recording.discard()
        return SIGNAL_BASE + early
    try:
        folder = recording.folder if recording is not None and options.inject else None
        command = Command(options.command, mask, inject.environment(folder))
    except NotStarted as error:
        say(str(error))
        if recording is not None:
            recording.discard()
        return error.code
    if recording is not None:
        _record_beside(recording, command, gpus, say)
    return _await(command).code


def _open_or_say(options: RecordOptions, say: Say) -> Recording | None:
    """Open the run folder; when that fails the command will run unrecorded, unless the user can mend it at once."""
    try:
        return Recording(options, say)
    except UsageError as error:
        if not isinstance(error.__cause__, OSError) or isinstance(error.__cause__, BlockingIOError):
            raise
        say(f"{error}. The command runs unrecorded")
    except Exception as error:  # noqa: BLE001 - a bug in recording must not keep a training from starting
        say(f"recording failed ({type(error).__name__}: {error}). The command runs unrecorded")
    return None


def _record_beside(recording: Recording, command: Command, gpus: GpuWatch, say: Say) -> None:
    """Record a running command; whatever goes wrong is said, and the command goes on."""

    def grace_over() -> bool:
        return command.poll() is not None or signals.pending(signals.FORWARDED)

    try:
        recording.begin(gpus, gpus.await_open(OPEN_GRACE_S, grace_over))
        recording.run(gpus, command)
        say(f"recorded into {recording.folder}")
    except Exception as error:  # noqa: BLE001 - a bug in recording must never end a training
        say(f"recording failed ({type(error).__name__}: {error}); please report this. The command goes on")


def _await(command: Command) -> Ended:
    """Wait for the command's end, passing signals on."""
    while (ended := command.poll()) is None:
        arrived = signals.wait_until(time.monotonic() + 3600)
        if arrived is not None:
            command.handle(arrived)
    return ended
