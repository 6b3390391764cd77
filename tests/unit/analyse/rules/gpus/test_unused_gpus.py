"""A GPU that nobody used while another one trained."""

import dataclasses

import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings
from support.samples import SAMPLES

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.model import InsideRun, RecordedEvent, YoloRun

NAN = float("nan")
BUSY, IDLE = readings((0, 10), (90, 110)), [0.0] * 120
TRAINING = (12.0, 0, 41, "python train.py", 40_000.0, "appeared", "trainer", NAN)
STARTED = RecordedEvent(0.0, "command_started", None, {"pid": 40})


def half_used(series=(BUSY, IDLE), rows=(TRAINING,), events=(STARTED,), device="0", visible=None, **more):
    run = make_run([list(one) for one in series], rows=[(1, 60), (2, 115)], events=events)
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in rows], columns=PROCESSES)
    args = {"epochs": 2, **more} if device is None else {"epochs": 2, "device": device, **more}
    return dataclasses.replace(
        run,
        processes=table,
        yolo_runs=(YoloRun(1, None, args, "recorded", None),),
        recording=dataclasses.replace(run.recording, cuda_visible_devices=visible),
    )


def found(run):
    return [finding for finding in analyse(run).findings if finding.rule == "unused-gpu"]


def test_a_free_gpu_is_a_warning_where_the_training_could_have_had_it():
    (finding,) = found(half_used())
    assert (finding.severity, finding.gpu) == ("warning", 1)
    assert finding.summary == "GPU 1 was free while GPU 0 trained"
    assert finding.cause.name == "unused-gpu"
    assert (finding.start_t_s, finding.end_t_s) == (10.0, 115.0)
    (advice,) = finding.advice
    assert (advice.argument, advice.from_value, advice.to_value) == ("device", "0", "0,1")


def test_several_are_one_finding():
    run = half_used(series=(BUSY, IDLE, IDLE, IDLE))
    (finding,) = found(run)
    assert (finding.gpu, finding.gpus) == (None, (1, 2, 3))
    assert finding.summary == "GPUs 1, 2, 3 were free while GPU 0 trained"
    assert finding.advice[0].to_value == "0,1,2,3"


@pytest.mark.parametrize(
    "run",
    [
        half_used(events=()),
        half_used(visible="0"),
        half_used(rows=()),
        half_used(rows=(TRAINING, (50.0, 1, 77, "serve", 900.0, "appeared", "other", 0.0))),
        half_used(
            series=(BUSY, IDLE, BUSY), rows=(TRAINING, (13.0, 2, 77, "python", 900.0, "appeared", "other", 80.0))
        ),
        half_used(
            events=(STARTED, RecordedEvent(1.0, "nvml_error", 1, {"quantity": "processes", "reason": "not supported"}))
        ),
    ],
    ids=["we did not start it", "not given to it", "processes unknown", "held by another", "shared", "not readable"],
)
def test_where_it_may_not_have_been_free_to_use_it_is_a_note_that_says_so(run):
    (finding,) = found(run)
    assert finding.severity == "info"
    assert finding.cause.explanation.endswith("also those that the job may not use")
    assert finding.advice == ()


@pytest.mark.parametrize(
    "run",
    [
        half_used(series=(BUSY, BUSY), rows=(TRAINING, (13.0, 1, 42, "python", 40_000.0, "appeared", "trainer", NAN))),
        half_used(series=(BUSY, [3.0] * 120)),
        half_used(series=(BUSY, [NAN] * 120)),
        half_used(series=(IDLE, IDLE)),
        half_used(
            series=(BUSY, [*IDLE, *readings((90, 20))]),
            rows=(TRAINING, (13.0, 1, 77, "python", 900.0, "appeared", "other", 80.0)),
        ),
    ],
    ids=["both are used", "somebody works on it", "not recorded", "nothing trains", "others work on it later"],
)
def test_what_is_no_unused_gpu(run):
    assert found(run) == []


def mig(run):
    first, second = run.gpus
    return dataclasses.replace(run, gpus=(first, dataclasses.replace(second, parent_index=0, mig_index=0)))


def test_a_gpu_is_not_unused_while_one_of_its_mig_devices_is():
    on_device = (12.0, 1, 41, "python train.py", 9_000.0, "appeared", "trainer", NAN)
    run = mig(half_used(series=(IDLE, BUSY), rows=(on_device,)))
    assert found(run) == []
    assert "never used" not in analyse(run).verdict.text
    assert found(mig(half_used())) == []  # nor a MIG device: no training uses two


def test_the_device_is_named_only_where_torch_counts_as_we_do():
    (unknown,) = found(half_used(device=None))
    assert unknown.advice == ()
    run = half_used()
    other = dataclasses.replace(run, gpus=(run.gpus[0], dataclasses.replace(run.gpus[1], name="NVIDIA L4")))
    (advice,) = found(other)[0].advice
    assert advice.to_value is None
    assert "torch's numbers" in advice.text
    gpus = tuple(dataclasses.replace(gpu, uuid=f"GPU-{gpu.index}") for gpu in run.gpus)
    for uuid, to_value in (("GPU-0", "0,1"), ("GPU-1", None)):
        told = InsideRun(1, 0, 41, "train", {"device": "cuda:0", "gpu_uuid": uuid}, (), ())
        (advice,) = found(dataclasses.replace(run, gpus=gpus, inside=(told,)))[0].advice
        assert advice.to_value == to_value


def test_no_more_gpus_are_advised_to_a_training_that_waits_for_its_data():
    (finding,) = found(half_used(series=(readings((0, 10), (30, 110)), IDLE)))
    assert (finding.severity, finding.advice) == ("warning", ())


def test_the_sample_run_with_a_gpu_that_was_free_has_a_note():
    (finding,) = found(load_run(SAMPLES / "fed"))
    assert (finding.severity, finding.gpu) == ("info", 1)
    assert analyse(load_run(SAMPLES / "fed")).verdict.text.count("never used") == 1
    assert found(load_run(SAMPLES / "ddp")) == []


@pytest.mark.parametrize(("device", "now"), [([0], "[0]"), ([], None), ("", None), (0, "0")])
def test_devices_may_be_a_list(device, now):
    (advice,) = found(half_used(device=device))[0].advice
    assert (advice.from_value, advice.to_value) == (now, "0,1")


@pytest.mark.parametrize(("batch", "named"), [(16, True), (15, False), (-1, False), (0.7, False), ("16", False)])
def test_a_batch_that_several_gpus_cannot_share_is_not_advised_onto_them(batch, named):
    (advice,) = found(half_used(batch=batch))[0].advice
    assert advice.argument == ("device" if named else None)
    assert named or f"`batch={batch}`" in advice.text


def of_80_gib(run):
    return dataclasses.replace(run, gpus=tuple(dataclasses.replace(g, memory_total_mib=81_920.0) for g in run.gpus))


def test_who_filled_a_gpu_that_did_nothing_is_said():
    notebook = (13.0, 1, 77, "python3 ipykernel_launcher.py", 70_000.0, "appeared", "other", 0.0)
    run = of_80_gib(half_used(rows=(TRAINING, notebook)))
    (finding,) = found(run)
    said = "python3 ipykernel_launcher.py (pid 77) held 68.4 GiB of its memory"
    assert finding.summary == f"GPU 1 did no work while GPU 0 trained: {said}"
    assert finding.severity == "info"
    (sentence,) = [each for each in analyse(run).verdict.sentences if each.kind == "unused GPU"]
    assert (sentence.text, sentence.findings) == (f"GPU 1 was never used, though {said}.", (finding.id,))
    little = of_80_gib(half_used(rows=(TRAINING, (*notebook[:4], 900.0, *notebook[5:]))))
    assert "held" not in found(little)[0].summary
