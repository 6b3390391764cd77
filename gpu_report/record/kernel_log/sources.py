"""Where kernel messages can be followed on this machine, best first, each as a readable descriptor.

/dev/kmsg, else `dmesg --follow`, else `journalctl -kf`, else a file that the user names. Only lines from the start
of the recording on: each source is opened at its end.
"""

import contextlib
import os
import select
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpu_report.record.kernel_log.lines import KernelLine, parse_dmesg, parse_journal, parse_kmsg, parse_plain
from gpu_report.record.proc_files import container

KMSG = Path("/dev/kmsg")
LINE_BYTES = 65536  # more than that without an end of line is no log
RECORD_BYTES = 16384  # /dev/kmsg answers EINVAL to a read smaller than its record
JOURNAL_DIRS = (Path("/run/log/journal"), Path("/var/log/journal"))
HELPER_SETTLE_S = 0.5  # a dmesg that may not read ends within milliseconds

# Runs a program that ends when we do, however we end: `cat` sees the end of its input and the program is killed.
# (A pipe alone does not do: `dmesg --follow` notices a closed one only at its next line. PR_SET_PDEATHSIG is bound to
# the thread that forked.) The shell gives up its own standard output, so that the program's end is seen as its end.
_LEASH = '"$@" & program=$!; exec >/dev/null 2>&1; cat; kill -KILL "$program"; wait'

Parse = Callable[[bytes], KernelLine | None]


class Refused(Exception):  # noqa: N818 - an answer, not an error
    """A source cannot be followed: `reason` says why, `restricted` that a permission would change it."""

    def __init__(self, reason: str, *, restricted: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.restricted = restricted


@dataclass
class LogSource:
    """A kernel log being followed: `read` gives whole records of bytes that came since, never blocking.

    `path` is that of a file or named pipe, which can neither be waited for nor end.
    """

    name: str
    fd: int
    parse: Parse
    helper: subprocess.Popen[bytes] | None = None
    path: Path | None = None
    is_record_stream: bool = False
    rest: bytes = b""
    early: list[bytes] = field(default_factory=list)
    sequence: int | None = None
    overwritten: int = 0

    def read(self) -> list[bytes] | None:
        """Return new records, empty when there are none just now, None when the source has ended."""
        new = self._read_records() if self.is_record_stream else self._read_lines()
        if new is not None and self._reopen_if_rotated():
            unfinished, self.rest = self.rest, b""
            new += [*filter(None, [unfinished]), *(self._read_lines() or [])]
        early, self.early = self.early, []
        return early + new if new is not None else early or None

    def close(self) -> None:
        """Let the source go, and end its helper."""
        if self.helper is not None and self.helper.stdin is not None:
            with contextlib.suppress(OSError):
                self.helper.stdin.close()
            self.helper.wait()
        os.close(self.fd)

    def _read_records(self) -> list[bytes] | None:
        records: list[bytes] = []
        while True:
            try:
                record = os.read(self.fd, RECORD_BYTES)
            except BlockingIOError:
                return records
            except BrokenPipeError:
                continue  # the ring went round before we read: the next read goes on behind the gap
            if not record:
                return records or None  # what ends is no kernel log: some containers have /dev/null in its place
            self._count_overwritten(record)
            records.append(record)

    def _count_overwritten(self, record: bytes) -> None:
        """Count the records between this one and the one before: their numbers follow each other."""
        _, number, *_ = *record.split(b",", 2), b"", b""
        before, self.sequence = self.sequence, int(number) if number.isdigit() else None
        if before is not None and self.sequence is not None:
            self.overwritten += max(0, self.sequence - before - 1)

    def _read_lines(self) -> list[bytes] | None:
        while True:
            try:
                data = os.read(self.fd, RECORD_BYTES)
            except BlockingIOError:
                break
            if not data:
                if self.path is None and b"\n" not in self.rest:
                    return None
                break
            self.rest += data
        *lines, self.rest = self.rest.split(b"\n")
        self.rest = self.rest[-LINE_BYTES:]
        return lines

    def _reopen_if_rotated(self) -> bool:
        """Follow a log file that was renamed away or emptied: its successor is read from the beginning."""
        opened = os.fstat(self.fd)
        if self.path is None or not stat.S_ISREG(opened.st_mode):
            return False
        try:
            current = self.path.stat()
            if (current.st_ino, current.st_dev) != (opened.st_ino, opened.st_dev):
                successor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                os.close(self.fd)
                self.fd = successor
                return True
        except OSError:
            return False  # between two files, or not ours to read: the one that is open goes on
        if current.st_size < os.lseek(self.fd, 0, os.SEEK_CUR):
            os.lseek(self.fd, 0, os.SEEK_SET)
            return True
        return False


def open_kmsg(path: Path = KMSG) -> LogSource:
    """Follow the kernel's own record stream from its end."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}", restricted=isinstance(error, PermissionError)) from error
    source = LogSource(str(path), fd, parse_kmsg, is_record_stream=True)
    try:
        os.lseek(fd, 0, os.SEEK_END)
        first = source.read()  # some containers let it be opened and then refuse to read it
    except OSError as error:
        source.close()
        raise Refused(f"{path}: {error.strerror}", restricted=isinstance(error, PermissionError)) from error
    if first is None:
        source.close()
        raise Refused(f"{path} is no kernel log here", restricted=False)
    source.early = first
    return source


def open_dmesg() -> LogSource:
    """Follow `dmesg`, from now on."""
    if not _knows("dmesg", "--follow-new"):  # util-linux 2.35 or later; --follow alone would give old lines as new ones
        raise Refused("dmesg is missing or too old to follow new lines only", restricted=False)
    return follow_program("dmesg --follow", ("dmesg", "--follow-new", "--kernel", "--decode"), parse_dmesg)


def open_journal_log() -> LogSource:
    """Follow `journalctl -k`, from now on; refused where no journald runs, since its silence says nothing there."""
    if not shutil.which("journalctl") or not any(path.is_dir() for path in JOURNAL_DIRS):
        raise Refused("no systemd journal here", restricted=False)
    if not any(os.access(journal, os.R_OK) for path in JOURNAL_DIRS for journal in path.glob("*/system.journal")):
        raise Refused("the system journal may not be read", restricted=True)
    return follow_program("journalctl -k", ("journalctl", "-kf", "-n0", "-o", "json"), parse_journal)


def open_file(path: Path) -> LogSource:
    """Follow a log file (or a named pipe, or another kmsg) that the user names, from its end."""
    if path.is_char_device():
        return open_kmsg(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}", restricted=isinstance(error, PermissionError)) from error
    if stat.S_ISREG(os.fstat(fd).st_mode):
        os.lseek(fd, 0, os.SEEK_END)
    return LogSource(str(path), fd, parse_plain, path=path)


def open_best(kernel_log: Path | None) -> LogSource:
    """Open the file that the user names, else the best source there is; Refused says what stood in the way of all."""
    if kernel_log is not None:
        return open_file(kernel_log)
    refusals = []
    for opener in (open_kmsg, open_dmesg, open_journal_log):
        try:
            return opener()
        except Refused as refusal:
            refusals.append(refusal)
    raise Refused("; ".join(refusal.reason for refusal in refusals), restricted=any(r.restricted for r in refusals))


def advice_for(refusal: Refused) -> str:
    """Return the one thing that would let the kernel log be read."""
    if container():
        return "docker run --cap-add SYSLOG --device /dev/kmsg:/dev/kmsg ..."
    if refusal.restricted:
        return "sudo sysctl kernel.dmesg_restrict=0"
    return "gpu-report record --kernel-log FILE, with a log file that you may read"


def _knows(program: str, option: str) -> bool:
    if not shutil.which(program):
        return False
    shown = subprocess.run([program, "--help"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    return option.encode() in shown.stdout + shown.stderr


def follow_program(name: str, command: Sequence[str], parse: Parse) -> LogSource:
    """Follow what a program prints for as long as we live; Refused when it ends at once, with what it said."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    with os.fdopen(writing, "wb") as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _LEASH, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # the terminal's Ctrl-C is for the training, not for this
        )
    os.set_blocking(reading, False)
    source = LogSource(name, reading, parse, helper=process)
    said = _refusal(source)
    if said is not None:
        source.close()
        raise Refused(f"{name}: {said}", restricted="not permitted" in said or "denied" in said)
    return source


def _refusal(source: LogSource) -> str | None:
    """Return what a helper said when it ended at once; None when it goes on. What it has read is kept."""
    poll = select.poll()
    poll.register(source.fd, select.POLLIN)
    deadline = time.monotonic() + HELPER_SETTLE_S
    kept: list[bytes] = []
    while (left := deadline - time.monotonic()) > 0:
        if not poll.poll(left * 1000):
            break
        lines = source.read()
        if lines is None:
            said = b" ".join([*kept, source.rest]).decode("utf-8", "replace")
            return " ".join(said.split()) or "it ended at once"
        kept += lines
    source.early = kept
    return None
