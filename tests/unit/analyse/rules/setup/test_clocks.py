"""Application clocks that hold a GPU far below what it can do."""

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse


def found(mhz, reasons, highest=2040.0, power_w=None):
    """Return what is found, of `power_w` at idle and at work; the limit is 150 W."""
    util = readings((0, 10), (95, 600))
    columns = {"sm_clock_mhz": [mhz] * len(util), "clock_event_reasons": [reasons] * len(util)}
    if power_w is not None:
        columns["power_w"] = [power_w[pct > 0] for pct in util]
    facts = {"max_sm_clock_mhz": highest, "power_limit_w": 150.0}
    run = make_run(util, rows=[(1, 300), (2, 600)], quantities=columns, facts=facts)
    return [f for f in analyse(run).findings if f.rule == "environment" and "application clocks" in f.summary]


def test_a_clock_that_was_set_low_is_told_with_what_takes_it_back():
    (finding,) = found(1200.0, 0x2)
    assert finding.summary == "GPU 0's clock is set to 1,200 MHz, of 2,040 (application clocks)"
    assert finding.advice[0].short == "Reset the clocks of GPU 0"
    assert finding.advice[0].gain_at_most == pytest.approx(840 / 2040)


@pytest.mark.parametrize(
    ("mhz", "reasons", "highest"),
    [(1200.0, 0x0, 2040.0), (1200.0, 0x4, 2040.0), (1200.0, 0x6, 2040.0), (1312.0, 0x2, 1530.0), (1200.0, 0x2, None)],
    ids=["nobody says so", "power", "power, too", "as a V100 comes", "its highest is not known"],
)
def test_what_else_holds_a_clock_is_none(mhz, reasons, highest):
    assert found(mhz, reasons, highest) == []


@pytest.mark.parametrize(
    ("power_w", "times"), [((50.0, 100.0), 1.7), ((50.0, 130.0), 1.25), ((50.0, 160.0), 1.0), ((50.0, 40.0), 1.7)]
)
def test_the_power_limit_bounds_what_a_higher_clock_brings(power_w, times):
    """A step takes no less energy at a higher clock; power that says nothing bounds nothing."""
    (finding,) = found(1200.0, 0x2, power_w=power_w)
    assert finding.advice[0].gain_at_most == pytest.approx(1 - 1 / times)


def test_the_verdict_names_no_command_in_a_sentence_that_goes_on():
    util = readings((0, 10), (95, 600))
    columns = {"sm_clock_mhz": [1200.0] * len(util), "clock_event_reasons": [0x2] * len(util)}
    run = make_run(util, rows=[(1, 300), (2, 600)], quantities=columns, facts={"max_sm_clock_mhz": 2040.0})
    assert analyse(run).verdict.text.startswith("Reset the clocks of GPU 0 (at most 1.7\u00d7 faster): GPU 0's clock")
