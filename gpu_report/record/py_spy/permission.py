"""Whether py-spy may read other processes here: tried on a process of our own, as a recording would."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gpu_report.record.proc_files import container, read_text
from gpu_report.record.py_spy.dump_json import main_thread_frames
from gpu_report.record.py_spy.program import DumpFailed, PySpy

CAP_SYS_PTRACE = 19  # its bit, include/uapi/linux/capability.h
PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
STATUS = Path("/proc/self/status")
FIXED_SCOPE = 3  # Yama's highest: only a reboot changes it
# py-spy and a training both descend from the recorder, as this process and py-spy do from us; it says when it is there.
SLEEPER = "import sys, time; print(flush=True); time.sleep(60)"


@dataclass(frozen=True)
class Refusal:
    """Why py-spy could not read a process, in its words, and the command that would change it."""

    reason: str
    remedy: str


def refusal(program: str) -> Refusal | None:
    """Return why py-spy cannot read processes of this user, None where it can; it takes a tenth of a second."""
    sleeper = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", SLEEPER], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    try:
        if sleeper.stdout is not None:
            sleeper.stdout.readline()
        main_thread_frames(PySpy(program).dump(sleeper.pid), sleeper.pid)
    except DumpFailed as failed:
        return Refusal(str(failed), _remedy(_scope(PTRACE_SCOPE), is_allowed=may_trace(), inside=container()))
    finally:
        sleeper.kill()
        sleeper.communicate()
    return None


def _remedy(scope: int | None, *, is_allowed: bool, inside: str | None) -> str:
    """Return what would let py-spy read processes: by what the kernel says, not by what py-spy does."""
    if is_allowed:
        return "`pip install --upgrade py-spy`: an old one does not know this version of Python"
    if inside is not None:
        return f"give the container the right to trace: `docker run --cap-add SYS_PTRACE ...` (here: {inside})"
    if scope == FIXED_SCOPE:
        return "set kernel.yama.ptrace_scope=0 in /etc/sysctl.conf, and reboot: nothing else changes it from 3"
    if scope:
        return "sudo sysctl kernel.yama.ptrace_scope=0"
    return "run `gpu-report record` as root"


def _scope(path: Path) -> int | None:
    """Return Yama's ptrace_scope (0: own processes may be read), None where there is no Yama."""
    text = read_text(path).strip()
    return int(text) if text.isdecimal() else None


def may_trace(status: Path = STATUS) -> bool:
    """Tell whether this process has CAP_SYS_PTRACE: then it may read other users' processes, too."""
    line = next((line for line in read_text(status).splitlines() if line.startswith("CapEff:")), "")
    try:
        return bool(int(line.removeprefix("CapEff:"), 16) >> CAP_SYS_PTRACE & 1)
    except ValueError:
        return False
