"""How numbers stand in `summary.json`."""

import math

import pytest

from gpu_report.render.machine_values import json_ready


@pytest.mark.parametrize("value", [531.4065, math.nextafter(531.4065, 0), math.nextafter(531.4065, 1000)])
def test_the_side_that_a_middle_is_rounded_to_is_that_of_every_cpu(value: float) -> None:
    assert json_ready(value) == json_ready(531.4065)


def test_a_wall_time_of_today_keeps_its_milliseconds() -> None:
    assert json_ready(1_795_329_288.9734) == 1_795_329_288.973


def test_a_learning_rate_keeps_its_digits_however_small() -> None:
    assert json_ready({"epochs": [{"lr": 0.000413123456}, {"lr": 1e-9}, {"lr": math.nan}]}) == {
        "epochs": [{"lr": 0.000413123}, {"lr": 1e-9}, {"lr": None}]
    }


def test_what_the_user_wrote_stands_as_he_wrote_it() -> None:
    given = {
        "environment": {"args": {"weight_decay": 0.0005, "lr0": 1e-9}, "effective": {"warmup_bias_lr": 0.00012345}}
    }
    assert json_ready(given) == given
    assert json_ready({"gates": [{"limit": 0.0025}]}) == {"gates": [{"limit": 0.0025}]}


@pytest.mark.parametrize(
    ("value", "said"), [(0.18649, 0.186), (0.016449, 0.0164), (0.00043211, 0.000432), (3e-7, 0.0), (0.0, 0.0)]
)
def test_a_small_share_is_no_zero(value: float, said: float) -> None:
    assert json_ready({"ledger": [{"share": value, "seconds": value}]}) == {
        "ledger": [{"share": said, "seconds": round(value, 3)}]
    }
