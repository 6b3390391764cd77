"""Import of nvitop's collector: its own package wrote the CSV, of a run that was played to NVML."""

import numpy as np
import pytest
from support.compared_logs import mean_over

from gpu_report.errors import InputError
from gpu_report.imports.formats import format_of

from .conftest import DATA

LOG = "imports/nvitop.csv"
GPU = "t/cuda:0 (gpu:3)/{}/mean"
HEADER = ",".join(["t/timestamp", "t/duration (s)", GPU.format("gpu_utilization (%)"), GPU.format("power_usage (W)")])


def test_a_real_log(imported):
    run = imported(LOG)
    assert (run.facts["source"], run.facts["interval_s"]) == ("nvitop", 5.0)
    assert run.facts["gpus"][0]["memory_total_mib"] == 143771
    assert run.facts["gpus"][0]["power_limit_w"] == 700
    assert {row["gpu"] for row in run.rows} == {"0"}
    assert min(float(row["cpu_pct"]) for row in run.host) >= 0


def test_what_happened_between_two_rows_is_seen(imported):
    """A mean since the beginning hides a wait of seconds after two minutes."""
    run = imported(LOG)
    values = np.array([value for value in run.column("gpu_util_pct") if value is not None])
    assert values.min() <= 5
    assert values.max() >= 60
    assert np.abs(np.diff(values[len(values) // 2 :])).max() > 20


def test_means_since_the_beginning_become_means_of_each_period(imported, written):
    rows = ["100,10,50,100", "110,20,25,150", "115,5,80,200"]  # the third after the collector was cleared
    run = imported(written("\n".join([HEADER, *rows, ""]), "log.csv"))
    assert run.column("gpu_util_pct", 3) == [50, 0, 80]
    assert run.column("power_w", 3) == [100, 200, 200]
    assert mean_over(run, "gpu_util_pct", (100, 110), gpu=3) == 25


def test_columns_without_a_place_are_listed_once(imported, written):
    header = (
        HEADER + ",t/pid:7/host/cpu_percent (%)/mean,t/pid:8/host/cpu_percent (%)/mean,t/host/swap_percent (%)/mean"
    )
    (note,) = imported(written(f"{header}\n100,10,50,100,1,2,3\n", "log.csv")).notes
    assert note.endswith("column: host/swap_percent (%), the columns of processes.")


@pytest.mark.parametrize(
    "text",
    [
        "t/timestamp,t/duration (s)\n1,2\n",
        f"t/timestamp,t/duration (s),t/gpu:{'9' * 5000}/power_usage (W)/mean\n1,2,3\n",
        "a,b\n1,2\n",
    ],
)
def test_a_log_without_a_gpu_is_refused(imported, written, text):
    with pytest.raises(InputError, match="ResourceMetricCollector"):
        imported(written(text, "log.csv"), source="nvitop")


def test_an_empty_log_is_refused(imported, written):
    with pytest.raises(InputError, match=r"log.csv is empty: name a log that nvitop wrote"):
        imported(written("", "log.csv"), source="nvitop")


def test_it_is_known_by_its_content():
    assert format_of(DATA / LOG) == "nvitop"


def test_an_idle_gpu_is_at_zero_and_not_missing(imported):
    """The duration is read a moment after the mean: a difference may come out just below zero."""
    values = imported("imports/h100/nvitop.csv").column("gpu_util_pct")
    assert None not in values
    assert values.count(0) > 10
