"""Application clocks that hold a GPU far below what it can do."""

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse


def found(mhz, reasons, highest=2040.0):
    util = readings((0, 10), (95, 600))
    columns = {"sm_clock_mhz": [mhz] * len(util), "clock_event_reasons": [reasons] * len(util)}
    run = make_run(util, rows=[(1, 300), (2, 600)], quantities=columns, facts={"max_sm_clock_mhz": highest})
    return [f for f in analyse(run).findings if f.rule == "environment" and "application clocks" in f.summary]


def test_a_clock_that_was_set_low_is_told_with_what_takes_it_back():
    (finding,) = found(1200.0, 0x2)
    assert finding.summary == "GPU 0's clock is set to 1,200 MHz, of 2,040 (application clocks)"
    assert finding.advice[0].short == "Reset the clocks of GPU 0 (`nvidia-smi -rac`)"
    assert finding.advice[0].gain_at_most == pytest.approx(840 / 2040)


@pytest.mark.parametrize(
    ("mhz", "reasons", "highest"),
    [(1200.0, 0x0, 2040.0), (1200.0, 0x4, 2040.0), (1200.0, 0x6, 2040.0), (1312.0, 0x2, 1530.0), (1200.0, 0x2, None)],
    ids=["nobody says so", "power", "power, too", "as a V100 comes", "its highest is not known"],
)
def test_what_else_holds_a_clock_is_none(mhz, reasons, highest):
    assert found(mhz, reasons, highest) == []
