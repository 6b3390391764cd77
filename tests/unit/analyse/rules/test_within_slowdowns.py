"""Validations in a slowdown of the training: they have its cause."""

from dataclasses import replace

import pytest

from gpu_report.analyse.rules.drops.within_slowdowns import with_cause_of_slowdown
from gpu_report.model import Advice, Cause, Finding

AGAINST = (Advice("Keep other programs off the disk"),)
SLOW = Finding(
    "s", "slowdown", "critical", 0, 100.0, 900.0, "", cause=Cause("input-storage", 0.9, "the disk"), advice=AGAINST
)


def validation(start_s, confidence=0.7, gpu=0):
    cause = Cause("main-process", confidence, "one core")
    return Finding("v", "slow-validation", "warning", gpu, start_s, start_s + 30, "", cause=cause)


@pytest.mark.parametrize("start_s", [80.0, 400.0, 880.0])
def test_a_validation_in_a_slowdown_or_at_its_edge_has_its_cause(start_s):
    _, found = with_cause_of_slowdown([SLOW, validation(start_s)])
    assert (found.cause.name, found.cause.confidence) == ("input-storage", 0.9)
    assert found.advice == AGAINST
    assert found.cause.explanation == "the training was slowed then as well: the disk"


@pytest.mark.parametrize(
    "own", [validation(40.0), validation(950.0), validation(400.0, 0.95), validation(400.0, gpu=1)]
)
def test_one_outside_of_it_or_with_a_surer_cause_keeps_its_own(own):
    assert with_cause_of_slowdown([SLOW, own]) == [SLOW, own]


def test_a_checkpoint_that_loads_no_data_keeps_its_own_cause():
    own = replace(validation(400.0), rule="slow-checkpoint")
    assert with_cause_of_slowdown([SLOW, own]) == [SLOW, own]


def test_a_slowdown_of_the_gpu_says_nothing_of_a_validation():
    clock = Finding("s", "slowdown", "critical", 0, 100.0, 900.0, "", cause=Cause("lower-clock", 0.9, ""))
    assert with_cause_of_slowdown([clock, validation(400.0)]) == [clock, validation(400.0)]
