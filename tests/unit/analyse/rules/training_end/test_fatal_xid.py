"""The fault of a GPU that ended a training: the driver names its process just before its end."""

import dataclasses

import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import InsideRun, KernelEvent, KernelLog, Phase, Raised, RecordedEvent

END, PID = 110.0, 41
MEMORY, OWN = (94, "memory"), (31, "application")
ON_GPU = (12.0, 0, PID, "python train.py", 40_000.0, "appeared", "trainer", float("nan"))


def xid(t_s=END - 0.2, code=MEMORY, pid=PID, severity="warning"):
    return KernelEvent(t_s, "xid", severity, "NVRM: Xid", "a fault", "Restart.", 0, code[0], pid, xid_kind=code[1])


def ended(*events, code=1, signal=None, health=None, rows=(), inside=()):
    how = {"signal": signal} if signal else {"exit_code": code}
    commands = [
        RecordedEvent(0.5, "command_started", None, {"pid": PID}),
        RecordedEvent(END, "command_ended", None, how),
    ]
    facts = {"health_end": health} if health else None
    run = make_run(readings((0, 10), (95, 110)), rows=[(1, 60), (2, 100)], events=commands, epochs_asked=9, facts=facts)
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in rows], columns=PROCESSES)
    kernel = KernelLog("read", "kmsg", events=events)
    return analyse(dataclasses.replace(run, kernel=kernel, processes=table, inside=inside))


def end(found):
    (finding,) = (each for each in found.findings if each.rule == "run-ended")
    return finding


def test_an_xid_of_the_trainer_is_what_ended_it():
    found = ended(xid(), health={"recovery_action": "reset the GPU"})
    assert (
        found.verdict.sentences[0].text == "A memory error of GPU 0 (Xid 94) ended the training (after epoch 2 of 9)."
    )
    assert end(found).cause.explanation.startswith("the command ended with exit code 1 right after")
    assert end(found).advice[0].short == "Reset the GPU first, as the driver of GPU 0 asks"
    assert not [each for each in found.findings if each.rule == "kernel"]


def test_a_process_of_the_trainer_on_the_gpu_is_one_of_it():
    assert "Xid 94" in end(ended(xid(pid=77), rows=[(*ON_GPU[:2], 77, *ON_GPU[3:])])).summary


def test_of_several_the_first_is_the_cause_and_without_a_word_of_the_driver_its_own_advice():
    finding = end(ended(xid(END - 0.4), xid(END - 0.2, (43, "application"))))
    assert (finding.summary, finding.advice[0].short) == (
        "A memory error of GPU 0 (Xid 94) ended the training",
        "Restart",
    )


def test_a_row_to_be_remapped_asks_for_a_reset():
    finding = end(ended(xid(), health={"row_remap_pending": 1}))
    assert finding.advice[0].short == "Reset GPU 0 first: a bad memory row is remapped then"


@pytest.mark.parametrize(
    "event", [xid(pid=77), xid(pid=None), xid(END - 90), xid(END + 9), xid(code=(45, "application"), severity="info")]
)
def test_another_process_or_time_or_only_a_notice_is_none(event):
    assert end(ended(event)).summary == "The command ended with exit code 1"


def test_who_was_asked_to_end_did_not_end_by_a_gpu():
    assert end(ended(xid(), signal="SIGTERM")).summary == "SIGTERM ended the command"


@pytest.mark.parametrize(("code", "names_gpu"), [(MEMORY, True), (OWN, False)])
def test_an_exception_of_cuda_has_the_gpus_fault_as_its_cause(code, names_gpu):
    phases = (Phase("train", 1, 10.0, 60.0, "inside"), Phase("train", 2, 60.0, END, "inside"))
    process = InsideRun(1, 0, PID, "train", {}, phases, (), "exception", "RuntimeError", ())
    process = dataclasses.replace(process, raised=Raised(message="CUDA error: x", code="cudaErrorUnknown"))
    assert end(ended(xid(code=code), inside=(process,))).summary.startswith("A memory error of GPU 0") is names_gpu
