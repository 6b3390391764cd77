"""GPUs of two models in one training."""

import dataclasses

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import RecordedEvent, YoloRun

STARTED = RecordedEvent(0.0, "command_started", None, {"pid": 40})


def unlike(watts, names=("NVIDIA RTX A6000", "Quadro RTX 8000"), memory_mib=20_000.0):
    util = readings((0, 10), (98, 600))
    quantities = {"memory_used_mib": [memory_mib] * len(util)}
    facts = {"power_limit_w": 300.0, "memory_total_mib": 49_140}
    rows = [(1, 300), (2, 600)]
    run = make_run([util] * len(watts), rows=rows, facts=facts, quantities=quantities, events=(STARTED,))
    samples = run.samples.assign(power_w=run.samples["gpu"].map(dict(enumerate(watts))))
    gpus = tuple(dataclasses.replace(gpu, name=name) for gpu, name in zip(run.gpus, names, strict=True))
    args = {"epochs": 2, "device": list(range(len(watts))), "batch": 32}
    yolo = (YoloRun(1, None, args, "recorded", None),)
    return dataclasses.replace(run, samples=samples, gpus=gpus, yolo_runs=yolo)


def found(*of, **more):
    return [f for f in analyse(unlike(*of, **more)).findings if "is the slower one" in f.summary]


def test_the_faster_of_two_models_waits_at_less_power():
    (finding,) = found((170.0, 285.0))
    slow = "GPU 1 (Quadro RTX 8000) is the slower one in each step"
    words = f"{slow}; GPU 0 (NVIDIA RTX A6000) waits for it, and reads as busy"
    assert (finding.severity, finding.summary) == ("warning", words)


def test_the_slower_gpu_leads_with_a_trial_of_the_faster_one():
    lead = analyse(unlike((170.0, 285.0))).verdict.sentences[0]
    assert lead.text.startswith("Try `device=0` for one epoch: GPU 1 (Quadro RTX 8000) is the slower one")
    assert (lead.advice.argument, lead.advice.from_value, lead.advice.to_value) == ("device", "0,1", "0")


def test_two_faster_ones_are_tried_together():
    (finding,) = found((170.0, 170.0, 285.0), ("A", "A", "B"))
    assert finding.advice[0].to_value == "0,1"
    assert "less than 67 % of each step" in finding.advice[0].text


def test_a_faster_gpu_that_torch_may_number_otherwise_is_named():
    (finding,) = found((285.0, 170.0), ("B", "A"))
    assert (finding.advice[0].short, finding.advice[0].argument) == ("Try GPU 1 alone for one epoch", None)


@pytest.mark.parametrize("memory_mib", [26_000.0, float("nan")])
def test_a_gpu_that_cannot_hold_the_batch_is_not_tried_alone(memory_mib):
    (finding,) = found((170.0, 285.0), memory_mib=memory_mib)
    assert finding.advice[0].short == "Train on GPUs of one model"


@pytest.mark.parametrize(
    ("watts", "names"),
    [((250.0, 285.0), ("A", "B")), ((170.0, 285.0), ("A", "A")), ((170.0, 285.0), ("A", None))],
)
def test_like_power_or_one_model_or_one_unknown_is_none(watts, names):
    assert found(watts, names) == []
