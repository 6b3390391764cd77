"""What a GPU's last reading must hold, whatever was due."""

from types import SimpleNamespace

from gpu_report.record import clocks, gpu_reader
from gpu_report.record.gpu_reader import GpuReader
from gpu_report.record.owners import Owners


def test_the_last_look_sees_which_processes_have_gone(monkeypatch):
    looks = [{7: 100.0}, {}]
    inner = SimpleNamespace(index=0, handle=None, mig=None, lost_reason=None, read=lambda *_, **__: ({}, []))
    monkeypatch.setattr(gpu_reader, "DeviceReader", lambda *_: inner)
    monkeypatch.setattr(gpu_reader, "read_processes", lambda _: looks.pop(0))
    monkeypatch.setattr(gpu_reader, "read_health", lambda _: None)
    device = SimpleNamespace(index=0, handle=None, mig=None, divided=False)
    reader = GpuReader(device, clocks.now(), Owners(), detail=False)
    first, between, last = (reader.read(everything=everything) for everything in (False, False, True))
    told = [[(change.pid, change.change) for change in reading.processes] for reading in (first, between, last)]
    assert told == [[(7, "appeared")], [], [(7, "gone")]]
