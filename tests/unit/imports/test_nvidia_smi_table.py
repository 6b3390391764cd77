"""Import of `nvidia-smi -l`, the table for people: as drivers of several years print it, with real readings."""

import csv

import pytest

from gpu_report.errors import InputError
from gpu_report.imports.formats import format_of

from .conftest import DATA

QUERY = DATA / "nvidia_smi" / "ddp-60s.csv"
WIDE = """\
{stamp}
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
{gpus}
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
{processes}
+-----------------------------------------------------------------------------------------+
"""
WIDE_GPU = """\
|   {index}  NVIDIA H200                    On  |   0000000{index}:01:00.0 Off |                    0 |
| N/A   {temp}C    P0            {power:>4}W /  700W | {memory:>7}MiB / 143771MiB | {util:>6}%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+"""
WIDE_PROCESS = "|    {index}   N/A  N/A         {pid:>7}      C   .../bin/my python           {memory:>6}MiB |"
V418 = """\
Tue Mar  9 08:01:{second:02d} 2021
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 418.67       Driver Version: 418.67       CUDA Version: 10.1     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla V100-PCIE...  Off  | 00000000:04:00.0 Off |                    0 |
| 31%   33C    P0    28W / 250W |    512MiB / 16130MiB |      7%      Default |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                       GPU Memory |
|  GPU       PID   Type   Process name                             Usage      |
|=============================================================================|
|    0      1234      C   python                                       501MiB |
+-----------------------------------------------------------------------------+
"""
V450_MIG = """\
Tue Mar  9 08:01:{second:02d} 2021
| NVIDIA-SMI 450.80.02    Driver Version: 450.80.02    CUDA Version: 11.0     |
|   0  A100-SXM4-40GB      Off  | 00000000:0F:00.0 Off |                   On |
| N/A   36C    P0    61W / 400W |     25MiB / 40537MiB |     N/A      Default |
|                               |                      |              Enabled |
+-------------------------------+----------------------+----------------------+
| MIG devices:                                                                |
| GPU  GI  CI  MIG |         Memory-Usage |        Vol|         Shared        |
|  0    7   0   0  |      3MiB /  4864MiB | 14      0 |  1   0    0    0    0 |
+------------------+----------------------+-----------+-----------------------+
"""
WINDOWS = """\
Sat Nov 21 01:00:{second:02d} 2026
| NVIDIA-SMI 591.86                 Driver Version: 591.86         CUDA Version: 13.1     |
|   0  NVIDIA GeForce RTX 3080      WDDM  |   00000000:0B:00.0  On |                  N/A |
|  0%   45C    P8             ERR! /  320W |    1277MiB /  10240MiB |      3%      Default |
|                                         |                        |                  N/A |
"""


@pytest.fixture
def of_real_readings(written):
    rows = list(csv.DictReader(QUERY.read_text().splitlines(), skipinitialspace=True))
    moments = {}
    for row in rows:
        moments.setdefault(row["timestamp"][:19], []).append({name.split(" [")[0]: row[name] for name in row})
    text = "".join(table(stamp, gpus) for stamp, gpus in moments.items())
    return written(text, "smi.txt"), moments


def table(stamp, gpus):
    def values(row):
        whole = {name: row[name].split()[0] for name in ("memory.used", "utilization.gpu", "temperature.gpu")}
        power = f"{float(row['power.draw'].split()[0]):.0f}"
        memory, util, temp = whole.values()
        return {"index": row["index"], "power": power, "memory": memory, "util": util, "temp": temp}

    known = [values(row) for row in gpus]
    working = [each for each in known if int(each["memory"]) > 0]
    none = "|  No running processes found                                                             |"
    processes = [WIDE_PROCESS.format(pid=4000 + int(each["index"]), **each) for each in working] or [none]
    year, month, day = stamp[:10].split("/")
    assert (year, month) == ("2026", "11")
    return WIDE.format(
        stamp=f"Sat Nov {day} {stamp[11:]} {year}",
        gpus="\n".join(WIDE_GPU.format(**each) for each in known),
        processes="\n".join(processes),
    )


def test_readings_are_those_of_a_query(imported, of_real_readings):
    log, moments = of_real_readings
    run, query = imported(log), imported(QUERY)
    assert format_of(log) == "nvidia-smi-table"
    assert (run.facts["source"], run.facts["driver"], run.facts["interval_s"]) == ("nvidia-smi table", "580.159.04", 1)
    assert len(run.rows) == sum(map(len, moments.values()))
    for gpu in (0, 1):
        for column in ("gpu_util_pct", "memory_used_mib", "temperature_c"):
            assert run.column(column, gpu) == query.column(column, gpu)[: len(run.rows) // 2]
        assert run.column("power_w", gpu) == pytest.approx(query.column("power_w", gpu), abs=0.51)
    assert run.facts["gpus"][1]["memory_total_mib"] == 143771
    assert (run.facts["gpus"][1]["power_limit_w"], run.facts["gpus"][1]["name"]) == (700, "NVIDIA H200")


def test_processes_appear_when_they_are_listed(imported, of_real_readings):
    log, _ = of_real_readings
    first = {row["gpu"]: row for row in reversed(imported(log).processes)}
    assert {gpu: (row["pid"], row["name"], row["change"]) for gpu, row in first.items()} == {
        "0": ("4000", ".../bin/my python", "appeared"),
        "1": ("4001", ".../bin/my python", "appeared"),
    }


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        (V418, {"gpu_util_pct": 7, "memory_used_mib": 512, "power_w": 28, "temperature_c": 33, "performance_state": 0}),
        (V450_MIG, {"gpu_util_pct": None, "memory_used_mib": 25, "power_w": 61, "temperature_c": 36}),
        (WINDOWS, {"gpu_util_pct": 3, "memory_used_mib": 1277, "power_w": None, "performance_state": 8}),
    ],
)
def test_tables_of_other_years_and_systems(imported, written, text, cells):
    run = imported(written("".join(text.format(second=second) for second in (0, 5, 10))))
    assert (len(run.rows), run.facts["interval_s"]) == (3, 5)
    for column, value in cells.items():
        assert run.column(column) == [value] * 3


def test_a_process_of_an_old_driver(imported, written):
    (row,) = imported(written(V418.format(second=0) + V418.format(second=5))).processes
    assert (row["pid"], row["name"], row["memory_used_mib"]) == ("1234", "python", "501")


def test_what_has_no_place_is_listed(imported, written):
    (note,) = imported(written(V450_MIG.format(second=0) + V450_MIG.format(second=5))).notes
    assert note == (
        "Not imported of nvidia-smi table, for a run has no such column: "
        "Compute M., Fan, MIG devices, Volatile Uncorr. ECC."
    )


@pytest.mark.parametrize("cut", [0.3, 0.5, 0.8, 0.98])
def test_of_a_table_that_is_cut_nothing_is_made_up(imported, written, cut):
    whole = V418.format(second=0) + V418.format(second=5)
    last = V418.format(second=10)
    run = imported(written(whole + last[: int(len(last) * cut)]))
    assert set(run.column("gpu_util_pct")) == {7}
    assert [row["change"] for row in run.processes] == ["appeared"]


def test_a_gpu_that_is_lost_is_lost(imported, written):
    said = "Unable to determine the device handle for GPU 0000:04:00.0: Unknown Error\n"
    events = imported(written(V418.format(second=0) + V418.format(second=5) + said)).of_kind("nvml_error")
    (gone,) = [event for event in events if event["quantity"] == "all"]
    assert (gone["gpu"], gone["mono_s"]) == (0, 5)
    assert gone["reason"].startswith("GPU is lost: nvidia-smi wrote Unable to determine")


def test_one_table_is_of_one_moment(imported, written):
    with pytest.raises(InputError, match="of one moment"):
        imported(written(V418.format(second=0)))
