"""How numbers stand in `summary.json`."""

import math

import pytest

from gpu_report.render.summary import json_ready


@pytest.mark.parametrize("value", [531.4065, math.nextafter(531.4065, 0), math.nextafter(531.4065, 1000)])
def test_the_side_that_a_middle_is_rounded_to_is_that_of_every_cpu(value: float) -> None:
    assert json_ready(value) == json_ready(531.4065)


def test_a_wall_time_of_today_keeps_its_milliseconds() -> None:
    assert json_ready(1_795_329_288.9734) == 1_795_329_288.973
