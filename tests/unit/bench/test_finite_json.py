"""What bench.json keeps."""

import pytest

from gpu_report.bench.finite_json import finite


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_none_is_null_wherever_it_stands(number):
    assert finite({"turns": [{"ms": number}], "size": (number, 640)}) == {
        "turns": [{"ms": None}],
        "size": [None, 640],
    }


def test_what_is_whole_stays_as_it_is():
    fields = {"half": True, "pid": 7, "ms": 2.5, "device": None, "gpu_uuid": "GPU-6d6c1b26-95f0-4d4c-b47e-1dcb1dbbd1a2"}
    assert finite(fields) == fields
    assert finite("n TensorRT FP16, batch 8") == "n TensorRT FP16, batch 8"


def test_secrets_are_hidden_in_every_text():
    assert finite({"models": ("https://bob:hunter2@host/n.pt?sig=abc",)}) == {"models": ["https://***@host/n.pt?***"]}
