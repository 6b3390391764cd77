"""Imported figures agree with those of the run that was logged, within what their interval allows.

The readings of a real run were played to NVML, which nvitop, wandb and MLflow asked every 5 s, and to an exporter that
Prometheus scraped every 5 s.
"""

import csv
from types import SimpleNamespace

import numpy as np
import pytest
from support.compared_logs import mean_over, span_of

from .conftest import DATA

# What a mean over two minutes may be off by: a third of an interval at each edge of a busy stretch, of which there are
# ten; power and utilisation are between 0 and 600 W, 0 and 100 %.
POWER_OFF, UTIL_OFF = 40.0, 8.0


def test_three_tools_agree_on_the_same_two_minutes(imported):
    runs = {
        name: imported(f"imports/{log}")
        for name, log in (("nvitop", "nvitop.csv"), ("wandb", "run-wandb.wandb"), ("mlflow", "mlflow"))
    }
    spans = [span_of(run) for run in runs.values()]
    shared = max(start for start, _ in spans), min(end for _, end in spans)
    assert shared[1] - shared[0] > 100
    for name, off in (("power_w", POWER_OFF), ("gpu_util_pct", UTIL_OFF)):
        means = [mean_over(run, name, shared) for run in runs.values()]
        assert np.ptp(means) < off, (name, means)


# On an H100, beside our recorder: busy, idle and half busy. A tool that reads a moment every 5 s may be off by 2.5 s at
# each of six edges of 100 s; one that reads means of 1 or 2 s by a second in all.
H100 = {
    "dmon.txt": (10, 2),
    "dmon-gpm.txt": (10, 2),
    "nvidia-smi.csv": (10, 2),
    "nvitop.csv": (15, 4),
    "run.wandb": (45, 8),
}


@pytest.fixture
def recorded():
    """What our recorder wrote."""

    with (DATA / "imports" / "h100" / "recorded.csv").open() as file:
        return SimpleNamespace(rows=list(csv.DictReader(file)))


@pytest.mark.parametrize("log", H100)
def test_an_h100_s_logs_agree_with_our_recording(imported, recorded, log):
    run = imported(f"imports/h100/{log}")
    shared = max(span_of(run)[0], span_of(recorded)[0]), min(span_of(run)[1], span_of(recorded)[1])
    assert shared[1] - shared[0] > 75
    for name, off in zip(("power_w", "gpu_util_pct"), H100[log], strict=True):
        assert mean_over(run, name, shared) == pytest.approx(mean_over(recorded, name, shared), abs=off), name
    assert mean_over(run, "memory_used_mib", shared) == pytest.approx(
        mean_over(recorded, "memory_used_mib", shared), rel=0.05
    )


@pytest.mark.parametrize("log", ["dmon-gpm.txt", "run.wandb"])
def test_activity_of_an_h100_is_in_our_units(imported, recorded, log):
    run = imported(f"imports/h100/{log}")
    for name in ("sm_active_pct", "sm_occupancy_pct", "tensor_active_pct", "dram_active_pct", "pcie_rx_mib_s"):
        theirs, ours = (max(float(row[name]) for row in each.rows if row[name]) for each in (run, recorded))
        assert theirs == pytest.approx(ours, rel=0.12), name


def test_seconds_at_the_power_limit_by_dmon(imported):
    """It was busy for 30 s and half busy for 15 s; all of these were at the limit by the reasons that we recorded."""
    assert imported("imports/h100/dmon.txt").column("power_cap_s")[-1] == pytest.approx(45, abs=3)


def test_pmon_of_an_h100_names_the_process(imported):
    run = imported("imports/h100/dmon.txt", "imports/h100/pmon.txt")
    assert run.facts["source"] == "nvidia-smi dmon"
    assert {row["name"] for row in run.processes} == {"python3"}
    assert run.processes[-1]["change"] == "gone"


def test_times_without_dates_in_a_csv_of_dmon(imported):
    run = imported("imports/h100/dmon-csv.txt")
    assert max(run.column("gpu_util_pct")) == 100
    assert run.facts["interval_s"] == 1.0


PLAYED_LATER_S = 402_435.8  # the exporter began so long after the run that it played


def test_prometheus_agrees_with_nvidia_smi_of_the_run_that_was_played(imported):
    log, answer = imported("nvidia_smi/ddp-60s.csv"), imported("imports/dcgm-answer.json")
    start, end = span_of(log)
    played = start + PLAYED_LATER_S, end + PLAYED_LATER_S
    for gpu in (0, 1):
        for name, off in (("power_w", POWER_OFF), ("gpu_util_pct", UTIL_OFF)):
            theirs, ours = mean_over(answer, name, played, gpu), mean_over(log, name, (start, end), gpu)
            assert theirs == pytest.approx(ours, abs=off), (name, gpu)
