"""Masks for training that are finer than those that are predicted: the loss computes more pixels for nothing."""

import pytest

from tests.unit.analyse.rules.setup.test_setup import FITTING, odds, trained


@pytest.mark.parametrize(
    ("args", "util", "severity"),
    [
        ({"task": "segment", "mask_ratio": 1}, 74.0, "warning"),
        ({"task": "segment", "mask_ratio": 1}, 40.0, "info"),  # the GPU waits
        ({"task": "segment", "mask_ratio": 2}, 90.0, "info"),
        ({"task": "segment", "mask_ratio": 4}, 90.0, None),
        ({"task": "segment"}, 90.0, None),
        ({"task": "detect", "mask_ratio": 1}, 90.0, None),
    ],
)
def test_finer_masks_are_worth_a_trial_where_the_gpu_is_the_limit(args, util, severity):
    found = [each for each in odds(trained(FITTING, args=args, util=util)) if "mask loss" in each.summary]
    assert [each.severity for each in found] == ([severity] if severity else [])
    assert all(each.advice[0].typed == "mask_ratio=4" for each in found)
