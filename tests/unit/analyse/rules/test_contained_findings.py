"""A validation that is slow in a time of slow data loading is a part of that."""

import pytest

from gpu_report.analyse.rules.contained_findings import without_contained
from gpu_report.model import Cause, Finding


def finding(rule, cause, start_s, end_s):
    return Finding(f"{rule}-1", rule, "warning", 0, start_s, end_s, "", cause=Cause(cause, 0.9, ""))


def kept(fall, validation):
    return [each.rule for each in without_contained([fall, validation])]


@pytest.mark.parametrize("cause", ["input-storage", "main-process", "validation"])
@pytest.mark.parametrize("start_s", [70.0, 1000.0, 3950.0])
def test_it_belongs_to_the_time_in_which_images_came_slowly(cause, start_s):
    spell = finding("slowdown", "input-storage", 100.0, 4000.0)
    assert kept(spell, finding("slow-validation", cause, start_s, start_s + 80.0)) == ["slowdown"]


@pytest.mark.parametrize(
    ("fall", "cause", "span"),
    [
        ("input-storage", "main-process", (4000.0, 4080.0)),  # after it
        ("input-storage", "main-process", (3970.0, 4080.0)),  # most of it after it
        ("input-storage", "gpu-fault", (1000.0, 1080.0)),  # a cause of its own
        ("other-process", "main-process", (1000.0, 1080.0)),
    ],
)
def test_others_are_findings_of_their_own(fall, cause, span):
    spell = finding("slowdown", fall, 100.0, 4000.0)
    assert kept(spell, finding("slow-validation", cause, *span)) == ["slowdown", "slow-validation"]


def test_neither_is_a_checkpoint_that_loads_no_data():
    spell = finding("slowdown", "input-storage", 100.0, 4000.0)
    assert kept(spell, finding("slow-checkpoint", "main-process", 1000.0, 1080.0)) == ["slowdown", "slow-checkpoint"]
