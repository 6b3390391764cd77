"""GPUs of two models in one training."""

import dataclasses

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse


def found(watts, names=("NVIDIA RTX A6000", "Quadro RTX 8000")):
    util = readings((0, 10), (98, 600))
    run = make_run([util, util], rows=[(1, 300), (2, 600)], facts={"power_limit_w": 300.0})
    samples = run.samples.assign(power_w=run.samples["gpu"].map(dict(enumerate(watts))))
    gpus = tuple(dataclasses.replace(gpu, name=name) for gpu, name in zip(run.gpus, names, strict=True))
    run = dataclasses.replace(run, samples=samples, gpus=gpus)
    return [f for f in analyse(run).findings if "is the slower one" in f.summary]


def test_the_faster_of_two_models_waits_at_less_power():
    (finding,) = found((170.0, 285.0))
    words = "GPU 1 (Quadro RTX 8000) is the slower one in each step: GPU 0 (NVIDIA RTX A6000) waits for it"
    assert (finding.severity, finding.summary) == ("warning", words)


@pytest.mark.parametrize(
    ("watts", "names"), [((250.0, 285.0), ("A", "B")), ((170.0, 285.0), ("A", "A")), ((170.0, 285.0), ("A", None))]
)
def test_like_power_or_one_model_or_one_unknown_is_none(watts, names):
    assert found(watts, names) == []
