"""A busy GPU of a program that is no YOLO: what it computed nobody saw, so that nothing is called fine."""

import dataclasses

import pytest
from support.runs import make_run, readings
from support.stacks import TRAINER, process

from gpu_report.analyse import analyse
from gpu_report.model import Frame

MAIN = Frame("/home/me/train.py", 40, "main")


def verdict(frame, util_pct=97.0, sm=(93.0, 7.0, 58.0)):
    names = ("sm_active_pct", "tensor_active_pct", "dram_active_pct")
    run = make_run(readings((util_pct, 100)), quantities={name: [at] * 100 for name, at in zip(names, sm, strict=True)})
    return analyse(dataclasses.replace(run, stacks=(process((0, 100, (frame,))),))).verdict.text


def test_the_model_is_the_limit_only_where_it_is_yolos():
    assert "the model itself is the limit" in verdict(TRAINER)
    other = verdict(MAIN)
    assert other.startswith("No fault found: the GPU was busy 97 %")
    assert "what it computed was not seen" in other
    assert "gpu-report import trace.json" in other


@pytest.mark.parametrize(
    ("sm", "hints"),
    [((93.0, 7.0, 58.0), True), ((93.0, 40.0, 58.0), False), ((93.0, 7.0, 20.0), False), ((float("nan"),) * 3, False)],
)
def test_hardly_any_products_and_much_memory_traffic_hint_at_memory_bound_work(sm, hints):
    text = verdict(MAIN, sm=sm)
    assert ("memory-bound" in text) == hints
    assert ("tensor cores" in text) == (sm[0] > 0)


def test_a_gpu_that_mostly_waits_is_said_as_ever():
    assert "what it computed" not in verdict(MAIN, util_pct=30.0)
