"""What a GPU's last reading must hold, whatever was due."""

from types import SimpleNamespace

from gpu_report.record import clocks
from gpu_report.record.gpu import reader
from gpu_report.record.gpu.process_owners import Owners
from gpu_report.record.gpu.reader import GpuReader


def test_the_last_look_sees_which_processes_have_gone(monkeypatch):
    looks = [{7: 100.0}, {}]
    inner = SimpleNamespace(index=0, handle=None, mig=None, lost_reason=None, read=lambda *_, **__: ({}, []))
    monkeypatch.setattr(reader, "DeviceReader", lambda *_: inner)
    monkeypatch.setattr(reader, "read_processes", lambda _: looks.pop(0))
    monkeypatch.setattr(reader, "read_health", lambda _: None)
    device = SimpleNamespace(index=0, handle=None, mig=None, divided=False)
    gpu = GpuReader(device, clocks.now(), Owners(), detail=False)
    first, between, last = (gpu.read(everything=everything) for everything in (False, False, True))
    told = [[(change.pid, change.change) for change in reading.processes] for reading in (first, between, last)]
    assert told == [[(7, "appeared")], [], [(7, "gone")]]
