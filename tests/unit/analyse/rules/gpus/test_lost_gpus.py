"""A GPU that the driver lost: told with or without a kernel log, and its time is the fault's."""

import dataclasses

import pytest
from support.runs import make_run

from gpu_report.analyse import analyse
from gpu_report.model import Gpu, RecordedEvent

NAN = float("nan")


def lost(*events):
    made = make_run([92.0] * 60 + [NAN] * 60)
    return dataclasses.replace(made, events=tuple(RecordedEvent(t_s, kind, 0, fields) for t_s, kind, fields in events))


GONE = {"quantity": "all", "reason": "GPU is lost"}


def test_a_lost_gpu_is_told_without_any_kernel_log():
    given = lost((60.0, "nvml_error", GONE), (90.0, "nvml_error", {**GONE, "reason": "GPU requires reset"}))
    (finding,) = [f for f in analyse(given).findings if f.rule == "gpu-lost"]
    assert (finding.start_t_s, finding.end_t_s, finding.severity) == (60.0, 120.0, "critical")
    assert finding.cause.name == "gpu-fault"
    assert "The driver lost GPU 0 after 1 min: it did not come back" in analyse(given).verdict.text
    rows = {row.name: row.gpu_seconds for row in analyse(given).ledger}
    assert rows["gpu-fault"] == pytest.approx(60, abs=0.1)
    assert sum(rows.values()) == pytest.approx(120)


def test_a_gpu_that_came_back_was_lost_until_then():
    given = lost((60.0, "nvml_error", GONE), (100.0, "nvml_recovered", {"quantity": "all"}))
    (finding,) = [f for f in analyse(given).findings if f.rule == "gpu-lost"]
    assert finding.end_t_s == 100.0
    assert finding.summary.endswith("it came back")


def test_a_quantity_that_fails_is_no_lost_gpu():
    for fields in ({"quantity": "power_w", "reason": "GPU is lost"}, {"quantity": "all", "reason": "Unknown Error"}):
        assert [f for f in analyse(lost((60.0, "nvml_error", fields))).findings if f.rule == "gpu-lost"] == []


def test_a_gpu_that_was_lost_before_its_first_reading_is_told_too():
    made = make_run([92.0] * 60)
    gone = RecordedEvent(1.0, "nvml_error", 1, GONE)
    given = dataclasses.replace(made, gpus=(*made.gpus, Gpu(1)), events=(gone,))
    (finding,) = [f for f in analyse(given).findings if f.rule == "gpu-lost"]
    assert (finding.gpu, finding.duration_s) == (1, 59.0)


def test_what_the_last_reading_stands_for_is_not_lost_as_well():
    given = lost((59.4, "nvml_error", GONE))
    rows = {row.name: row.gpu_seconds for row in analyse(given).ledger}
    assert rows["gpu-fault"] == pytest.approx(60.0)
    assert sum(rows.values()) == pytest.approx(120.0)


@pytest.mark.parametrize(("t_s", "gpu"), [(-1.0, 1), (1.0, 5)])
def test_the_ledger_has_no_time_before_the_first_sample_and_none_of_a_gpu_that_is_not_listed(t_s, gpu):
    made = make_run([92.0] * 60)
    given = dataclasses.replace(made, gpus=(*made.gpus, Gpu(1)), events=(RecordedEvent(t_s, "nvml_error", gpu, GONE),))
    assert sum(row.gpu_seconds for row in analyse(given).ledger) == pytest.approx(120.0)
