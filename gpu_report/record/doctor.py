"""What can be recorded on this machine, what cannot, why, and the command that would change it."""

import dataclasses
import queue
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_report import schema
from gpu_report.extras import command_for
from gpu_report.gpu_words import gpu_words
from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.gpu.devices import NvmlDevice, Opened
from gpu_report.record.gpu.gpm import METRICS, MIN_APART_S
from gpu_report.record.gpu.no_gpu import explain
from gpu_report.record.gpu.nvml_quantities import ALL_QUANTITIES, GPM
from gpu_report.record.gpu.nvml_thread import OpenFailed, OpenThread, ReadThread, shut_down
from gpu_report.record.gpu.process_owners import Owners
from gpu_report.record.gpu.reader import GpuReader, GpuReading
from gpu_report.record.gpu.xid_events import XidThread
from gpu_report.record.kernel_log import sources
from gpu_report.record.proc_files import read_text
from gpu_report.record.py_spy import permission
from gpu_report.record.py_spy.program import find_program

OPEN_LIMIT_S = 15.0  # a driver that has to wake GPUs takes seconds
READ_LIMIT_S = 5.0  # a look takes milliseconds: what takes seconds waits for a driver or disk that hangs
FINISH_S = 2.0  # a thread that hangs is left behind: the command ends soon whatever it finds
PRESSURE = Path("/proc/pressure/cpu")
HUNG = "look into `dmesg` for the driver's errors, or reboot"


@dataclass(frozen=True)
class DoctorCheck:
    """One thing looked at: what was found, and where that is not well, what to do."""

    name: str
    ok: bool
    finding: str
    remedy: str = ""


def examine() -> tuple[DoctorCheck, ...]:
    """Look at everything that a recording needs; it only reads, and takes about a second."""
    return (*_gpu_checks(), _kernel_log(), _pressure(), _stack_dumps(), _package("ultralytics"), _package("torch"))


def _gpu_checks() -> list[DoctorCheck]:
    answer = OpenThread(()).answer(OPEN_LIMIT_S)
    if not isinstance(answer, Opened):
        return [_no_nvml(answer)]
    gpus = f"{len(answer.devices)} GPU{'s' * (len(answer.devices) > 1)}"
    found = f"driver {answer.driver}, NVML {answer.nvml}, CUDA {answer.cuda}, {gpus}"
    checks = [DoctorCheck("NVIDIA driver", ok=True, finding=found)]
    checks += [_unusable(index, reason) for index, reason in answer.unusable]
    readers = [GpuReader(device, clocks.now(), Owners(), detail=False) for device in answer.devices]
    nvml = ReadThread(readers)
    first, second = _read(nvml), _read_again(nvml)
    readings = {gpu: _both(reading, second.get(gpu)) for gpu, reading in first.items()}
    checks += [_gpu(device, readings.get(device.index)) for device in answer.devices]
    checks.append(_xid_events(answer.devices))
    if nvml.finish(FINISH_S):
        shut_down(readers, FINISH_S)
    return checks


def _read(nvml: ReadThread) -> dict[int, GpuReading]:
    nvml.ask("all")
    return {reading.gpu: reading for reading in nvml.collect(time.monotonic() + READ_LIMIT_S)}


def _read_again(nvml: ReadThread) -> dict[int, GpuReading]:
    """Read a second time: what is a difference of two looks (GPM) is not known at the first."""
    if nvml.busy:
        return {}
    time.sleep(2 * MIN_APART_S)
    return _read(nvml)


def _both(first: GpuReading, second: GpuReading | None) -> GpuReading:
    if second is None:
        return first
    return dataclasses.replace(second, changes=(*first.changes, *second.changes))


def _no_nvml(answer: OpenFailed | None) -> DoctorCheck:
    if answer is None:
        return DoctorCheck("NVIDIA driver", ok=False, finding="the driver does not answer", remedy=HUNG)
    why = explain(answer.code, answer.error)
    return DoctorCheck("NVIDIA driver", ok=False, finding=why.reason, remedy=why.advice)


def _unusable(index: int, reason: str) -> DoctorCheck:
    return DoctorCheck(
        gpu_words(index), ok=False, finding=f"it cannot be opened: {reason}", remedy="reset it, or reboot"
    )


def _gpu(device: NvmlDevice, reading: GpuReading | None) -> DoctorCheck:
    name = gpu_words(device.index)
    what = f"{device.description['name']}, {device.description['uuid']}"
    if reading is None:
        return DoctorCheck(name, ok=False, finding=f"{what}: it does not answer", remedy=HUNG)
    missing = {change.quantity: change.reason for change in reading.changes if change.reason}
    if ALL_QUANTITIES in missing:
        return DoctorCheck(name, ok=False, finding=f"{what}: {missing[ALL_QUANTITIES]}", remedy="reset it, or reboot")
    mig = device.mig is not None or device.description["mig_enabled"] is True
    return _quantities(name, what, reading, missing, mig=mig)


def _quantities(
    name: str, what: str, reading: GpuReading, missing: Mapping[str, str | None], *, mig: bool
) -> DoctorCheck:
    columns = [column.name for column in schema.GPU_QUANTITIES]
    read = [column for column in columns if reading.values.get(column) is not None]
    reasons = {**dict.fromkeys(METRICS, missing.get(GPM)), **missing}
    absent = [f"{column} ({reasons.get(column) or 'not given'})" for column in columns if column not in read]
    absent += [f"processes ({reason})" for quantity, reason in missing.items() if quantity == "processes"]
    finding = f"{what}: {len(read)} of {len(columns)} quantities can be read"
    if absent:
        finding += f". Not available: {', '.join(absent)}"
    remedy = (
        "in MIG mode NVML gives utilisation only through GPM (Hopper and later); the other quantities are recorded"
        if mig
        else ""
    )
    return DoctorCheck(name, ok="gpu_util_pct" in read, finding=finding, remedy=remedy)


def _xid_events(devices: Sequence[NvmlDevice]) -> DoctorCheck:
    answers: queue.SimpleQueue[Mapping[str, object]] = queue.SimpleQueue()

    def note(_kind: str, _at: Clocks, fields: Mapping[str, object]) -> None:
        answers.put(fields)

    thread = XidThread(devices, note)
    try:
        status = answers.get(timeout=READ_LIMIT_S)
    except queue.Empty:
        status = {"status": "unavailable", "reason": "the driver does not answer"}
    thread.finish(FINISH_S)
    ok = status["status"] == "listening"
    finding = "NVML reports them as they happen" if ok else f"not available: {status['reason']}"
    return DoctorCheck(
        "Xid events", ok=ok, finding=finding, remedy="" if ok else "the kernel log has them too, where it can be read"
    )


def _kernel_log() -> DoctorCheck:
    try:
        source = sources.open_best(None)
    except sources.Refused as refusal:
        return DoctorCheck("kernel log", ok=False, finding=refusal.reason, remedy=sources.advice_for(refusal))
    source.close()
    return DoctorCheck("kernel log", ok=True, finding=f"can be followed through {source.name}")


def _pressure() -> DoctorCheck:
    if read_text(PRESSURE):
        return DoctorCheck(
            "pressure stall information (PSI)", ok=True, finding="the kernel reports waits for CPU, memory and I/O"
        )
    remedy = "start the kernel with `psi=1`; without it, it is harder to say why a GPU waits for data"
    missing = "this kernel does not report waits for CPU, memory and I/O"
    return DoctorCheck("pressure stall information (PSI)", ok=False, finding=missing, remedy=remedy)


def _stack_dumps() -> DoctorCheck:
    """Say whether lines of code can be had where our hook is not loaded: when watching, with `--no-inject`."""
    name, program = "stack dumps (py-spy)", find_program()
    if program is None:
        finding = "py-spy is not installed; without it a training that is only watched shows no lines of code"
        return DoctorCheck(name, ok=False, finding=finding, remedy="to have them: `pip install py-spy`")
    refused = permission.refusal(program)
    if refused is not None:
        return DoctorCheck(name, ok=False, finding=f"{program} failed: {refused.reason}", remedy=refused.remedy)
    whose = "any user's" if permission.may_trace() else "your own"
    return DoctorCheck(name, ok=True, finding=f"{program} can read {whose} Python processes")


def _package(name: str) -> DoctorCheck:
    from importlib import metadata  # noqa: PLC0415 - 15 ms that `record` need not pay

    try:
        return DoctorCheck(name, ok=True, finding=f"version {metadata.version(name)}")
    except metadata.PackageNotFoundError:
        finding = "not in the environment of gpu-report; a training in another environment is recorded all the same"
        return DoctorCheck(name, ok=False, finding=finding, remedy=f"to have it here: {command_for('yolo')}")
