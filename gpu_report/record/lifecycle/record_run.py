"""From the options to an exit code: with a command, nothing that goes wrong here may reach it.

This thread starts the command, waits for signals and passes them on; it touches neither NVML nor the disk, either of
which may hang.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path

from gpu_report.errors import NothingToRecordError, UsageError
from gpu_report.record.gpu.devices import Opened
from gpu_report.record.gpu.no_gpu import NO_ANSWER, Unavailable, explain, none_answers
from gpu_report.record.gpu.sampler import GpuWatch
from gpu_report.record.guard import quiet
from gpu_report.record.lifecycle import signals
from gpu_report.record.lifecycle.command import SIGNAL_BASE, Ended, NotStarted, TrainingCommand
from gpu_report.record.lifecycle.first_result import first_result
from gpu_report.record.lifecycle.recording import StartedCommand
from gpu_report.record.lifecycle.recording_thread import RecordingThread, refusal
from gpu_report.record.lifecycle.stop_request import RecordingEnd
from gpu_report.record.options import RecordOptions
from gpu_report.record.run_folder_writer import Say
from gpu_report.record.yolo import inject
from gpu_report.terminal import ProgressLine, is_terminal, takes_text

OPEN_LIMIT_S = 30.0  # NVML may take seconds to wake GPUs without persistence mode; a hung driver takes for ever
OPEN_GRACE_S = 3.0  # with a command, readings may begin later than that, but it must not wait for the driver
FOLDER_LIMIT_S = 5.0  # claiming a folder takes milliseconds; a disk that hangs must not keep a command from starting
REPEAT_S = 1.0  # a signal again so soon is the same wish: `timeout` sends it to a process and then to its group
CLOSE_LIMIT_S = 15.0  # the last readings, kernel log, NVML and files take at most 10 s when one of them hangs
HURRYING = frozenset({signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
A_LONG_TIME_S = 3600.0  # between two looks when nothing happens: everything that matters is a signal


Begun = Callable[[Path], None]  # is told the run folder once it is claimed


def record_run(options: RecordOptions, *, say: Say, begun: Begun | None = None) -> int:
    """Record until the duration, a signal or the command's end, and return the exit code.

    `begun` is called with the run folder before the command starts; whatever it raises is said, and nothing else.

    Raises UsageError for a GPU, a file or a folder that cannot be had, NothingToRecordError where there is no GPU, no
    command and no training that is attached. When a call of the driver or the disk never returns, the process ends
    here: it could not otherwise.
    """
    say = quiet(say)
    with signals.blocked() as mask:
        gpus = GpuWatch(options.gpus, options.interval_s, detail=options.detail)
        run = _RecordCall(options, gpus, say, begun)
        code = run.with_command(mask) if options.command else run.watching()
        clean = run.closed and gpus.finish()
        if clean:
            run.say_result()
    if not clean:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # a closed one is None
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    return code


class _RecordCall:
    """One call of `record`."""

    def __init__(self, options: RecordOptions, gpus: GpuWatch, say: Say, begun: Begun | None) -> None:
        self._begun = begun
        self._options = options
        self._gpus = gpus
        self._say = say
        self._recording: RecordingThread | None = None
        self._is_hurried = False  # somebody wants us gone: by SIGTERM, a closed terminal, or Ctrl-C again
        self.closed = True

    def say_result(self) -> None:
        """Say what the verdict begins with, to whoever sits at the terminal."""
        folder = self._recording.recorded if self._recording is not None else None
        if (
            folder is None
            or self._options.own_report
            or self._is_hurried
            or not (is_terminal(sys.stderr) and takes_text(sys.stderr))
        ):
            return
        if sentence := first_result(folder):
            self._say(sentence)

    def watching(self) -> int:
        """Record without a command, until the duration or a signal."""
        _refuse_missing(self._options.kernel_log, "--kernel-log")
        if self._options.is_attached:
            self._gpus.await_open(OPEN_LIMIT_S, _stopping)
        elif isinstance(opened := _open_gpus(self._gpus), int):
            return SIGNAL_BASE + opened
        self._recording = recording = RecordingThread(self._options, self._gpus, self._say)
        folder = recording.await_folder(OPEN_LIMIT_S, _stopping)
        if folder is None:
            recording.discard()
            return self._not_begun(recording)
        self._tell_begun(folder)
        recording.begin(None)
        stopping = self._stopping_signals()
        with ProgressLine(self._so_far(time.monotonic())):  # its thread begins here, where signals are blocked already
            while not recording.done:
                arrived = signals.wait_until(time.monotonic() + A_LONG_TIME_S)
                if arrived is not None and arrived.number in stopping:
                    self._note(arrived)
                    recording.end(RecordingEnd("signal", arrived.name))
                    break
        again = self._close(recording)
        if recording.error is not None:
            raise recording.error
        return 0 if self.closed else SIGNAL_BASE + (again or signal.SIGTERM)

    def with_command(self, mask: Iterable[int]) -> int:
        """Start the command, record beside it, and return its exit code."""
        if self._options.gpus:  # an unknown GPU stops us here
            self._gpus.await_open(OPEN_LIMIT_S, lambda: signals.pending(signals.FORWARDED))
        self._recording = recording = RecordingThread(self._options, self._gpus, self._say)
        folder = self._await_folder(recording)
        if (early := signals.first_pending(signals.STOPPING)) is not None:  # the user thought better of it
            return self._take_back(recording, SIGNAL_BASE + early)
        if folder is not None:
            self._tell_begun(folder)
        try:
            plan = self._options.profile.for_the_command if self._options.profile is not None else None
            folder = folder if self._options.inject else None
            environment = inject.environment(folder, stacks=self._options.stacks, profile=plan)
            command = TrainingCommand(self._options.command, mask, environment)
        except NotStarted as error:
            self._say(str(error))
            return self._take_back(recording, error.code)
        self._await_gpus(command)
        recording.begin(StartedCommand(command.pid, command.started))
        ended = self._await(command)
        recording.end(RecordingEnd("command", command=ended))
        self._close(recording)
        return ended.code

    def _tell_begun(self, folder: Path) -> None:
        """Tell who asked that the recording begins; what goes wrong there is no reason not to record."""
        try:
            if self._begun is not None:
                self._begun(folder)
        except Exception as error:  # noqa: BLE001 - whoever it is, the recording goes on
            self._say(f"what was to begin with the recording did not: {error!r}")

    def _await(self, command: TrainingCommand) -> Ended:
        """Wait for the command's end, passing signals on."""
        while (ended := command.poll()) is None:
            arrived = signals.wait_until(time.monotonic() + A_LONG_TIME_S)
            if arrived is not None:
                self._note(arrived)
                command.handle(arrived)
        return ended

    def _note(self, arrived: signals.ArrivedSignal) -> None:
        """Note a signal that asks for more than Ctrl-C does."""
        self._is_hurried |= arrived.number in HURRYING

    def _stopping_signals(self) -> tuple[signal.Signals, ...]:
        """Return what ends a recording: a key, and without a duration its terminal's end, too, unless under `nohup`."""
        bound = self._options.duration_s is None and signals.has_terminal() and not signals.ignored(signal.SIGHUP)
        keys = (*signals.STOPPING, signal.SIGQUIT)
        return (*keys, signal.SIGHUP) if bound else keys

    def _so_far(self, began_s: float) -> Callable[[], str]:
        """Return what says on a terminal how long was recorded; a command has the terminal to itself."""
        limit_s = self._options.duration_s
        of = "" if limit_s is None else f" of {timedelta(seconds=round(limit_s))}"
        return lambda: f"{timedelta(seconds=round(time.monotonic() - began_s))}{of} recorded"

    def _await_folder(self, recording: RecordingThread) -> Path | None:
        """Return the run folder, None without one: only what the user can mend keeps the command from starting."""
        try:
            folder = recording.await_folder(FOLDER_LIMIT_S, _stopping)
        except Exception as error:
            if (refused := refusal(error)) is not None:
                raise refused from error
            what = str(error) if isinstance(error, UsageError) else f"recording failed ({error!r})"
            self._say(f"{what}. The command runs unrecorded")
            return None
        if folder is None and not _stopping():
            self._say("the disk of the run folder does not answer. The command starts, and is recorded once it does")
        return folder

    def _await_gpus(self, command: TrainingCommand) -> None:
        """Give NVML a moment, so that the first row is not an empty one. The command runs: nothing may be raised."""
        with contextlib.suppress(UsageError):  # known too late to refuse it; the recording says so
            self._gpus.await_open(
                OPEN_GRACE_S, lambda: command.poll() is not None or signals.pending(signals.FORWARDED)
            )

    def _take_back(self, recording: RecordingThread, code: int) -> int:
        recording.discard()
        self._close(recording)
        return code

    def _not_begun(self, recording: RecordingThread) -> int:
        early = signals.first_pending(signals.STOPPING)
        self._close(recording)
        if early is not None:
            return SIGNAL_BASE + early
        raise UsageError("the disk of the run folder does not answer: name a folder on another one with --output")

    def _close(self, recording: RecordingThread) -> int | None:
        """Wait until the recording is closed, but not for ever, and not against a second signal, which is returned."""
        began_s = time.monotonic()
        again = None
        while not recording.done and again is None and time.monotonic() < began_s + CLOSE_LIMIT_S:
            arrived = signals.wait_until(began_s + CLOSE_LIMIT_S)
            late = time.monotonic() - began_s > REPEAT_S
            again = arrived.number if arrived is not None and late and arrived.number in signals.STOPPING else None
        self.closed = recording.done
        self._is_hurried |= again is not None
        if not self.closed:
            self._say("the recording was given up before it was closed: it ends with its last row")
        return again


def _open_gpus(gpus: GpuWatch) -> Opened | int:
    """Return NVML's answer, or the signal that came first; NothingToRecordError when there is nothing."""
    answer = gpus.await_open(OPEN_LIMIT_S, _stopping)
    if isinstance(answer, Opened):
        if not answer.devices:
            raise _nothing(none_answers(answer.unusable))
        return answer
    if answer is not None:
        raise _nothing(explain(answer.code, answer.error))
    early = signals.first_pending(signals.STOPPING)
    if early is not None:
        return early
    raise _nothing(NO_ANSWER)


def _nothing(why: Unavailable) -> NothingToRecordError:
    return NothingToRecordError(f"nothing to record: there is no COMMAND, and {why.reason}; {why.advice}")


def _stopping() -> bool:
    return signals.pending(signals.STOPPING)


def _refuse_missing(path: Path | None, option: str) -> None:
    if path is not None and not path.exists():
        raise UsageError(f"{option}: {path} does not exist")
