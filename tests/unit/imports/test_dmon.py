"""Import of `nvidia-smi dmon` and `pmon`: real logs of the same minutes as nvidia-smi's CSV."""

import os
from datetime import UTC, datetime

import numpy as np
import pytest
from support.compared_logs import mean_over, nearest_differences, span_of

from gpu_report.analyse import analyse
from gpu_report.errors import InputError
from gpu_report.imports.formats import format_of
from gpu_report.load import load_run

DMON, PMON, QUERY = "imports/healthy-dmon.txt", "imports/healthy-pmon.txt", "nvidia_smi/healthy-60s.csv"
DDP = ("imports/ddp-dmon.txt", "imports/ddp-pmon.txt", "nvidia_smi/ddp-60s.csv")
HEADER = "#Date        Time         gpu    pwr  gtemp     sm\n#YYYYMMDD    HH:MM:SS     Idx      W      C      %\n"
START = datetime(2026, 11, 21, 1, 0, tzinfo=UTC).timestamp()


def mean(values):
    return np.mean([value for value in values if value is not None])


def test_a_real_log_with_a_header_each_screenful(imported):
    run = imported(DMON)
    assert [run.facts["source"], run.facts["interval_s"], len(run.rows)] == ["nvidia-smi dmon", 1.0, 59]
    row = next(each for each in run.rows if each["wall_s"].startswith("1795223187"))  # 01:06:27
    assert (row["gpu_util_pct"], row["memory_util_pct"], row["power_w"], row["sm_clock_mhz"]) == (
        "92",
        "55",
        "562",
        "1950",
    )
    assert (row["temperature_c"], row["memory_temperature_c"], row["memory_used_mib"]) == ("48", "44", "35069")
    assert (row["memory_clock_mhz"], row["pcie_rx_mib_s"], row["pcie_tx_mib_s"]) == ("3201", "78", "15")


def test_dmon_agrees_with_a_query_of_the_same_minute(imported):
    """Utilisation is of a second with dmon, of a shorter period with a query: readings differ, means do not."""
    dmon, query = imported(DMON), imported(QUERY)
    for name, most in (("memory_used_mib", 60), ("temperature_c", 1), ("memory_clock_mhz", 0)):
        assert np.median(np.abs(nearest_differences(dmon, query, name))) <= most, name
    assert mean_over(dmon, "gpu_util_pct", span_of(query)) == pytest.approx(
        mean_over(query, "gpu_util_pct", span_of(query)), abs=3
    )
    assert mean_over(dmon, "power_w", span_of(query)) == pytest.approx(
        mean_over(query, "power_w", span_of(query)), rel=0.05
    )


def test_the_power_limit_s_share_of_each_second_is_counted(imported):
    seconds = imported(DMON).column("power_cap_s")
    assert seconds == sorted(seconds)
    assert seconds[0] == 0
    assert 10 < seconds[-1] < 30  # the sum of pviol is 18 s


def test_columns_without_a_place_are_listed(imported):
    note = next(note for note in imported(DMON).notes if note.startswith("Not imported"))
    assert all(name in note for name in ("bar1", "enc", "jpg", "ofa", "sbecc"))
    assert "pwr" not in note


def test_a_zone_that_nobody_named_is_said(imported):
    assert any("carry no zone" in note for note in imported(DMON, timezone=None).notes)


def test_another_driver_s_columns_within_a_log(imported, written):
    more = HEADER.replace("sm\n", "sm    jpg\n", 1).replace("%\n", "%      %\n")
    rows = [
        " 20261121    01:00:00       0     79     34      5\n",
        " 20261121    01:00:01       0     80     35      6      0\n",
    ]
    run = imported(written(HEADER + rows[0] + more + rows[1]))
    assert run.column("gpu_util_pct") == [5, 6]
    assert run.column("power_w") == [79, 80]


def test_rows_before_the_first_header_of_a_cut_log_are_read(imported, written):
    rows = [f" 20261121    01:05:0{n}       0     79     34      {n}\n" for n in range(6)]
    cut = f"21    01:04:59       0     79     34      5\n{rows[0]}{rows[1]}{HEADER}{''.join(rows[2:])}"
    assert imported(written(cut)).column("gpu_util_pct") == [0, 1, 2, 3, 4, 5]


def test_the_one_temperature_of_old_drivers(imported, written):
    text = HEADER.replace("gtemp", " temp") + " 20261121    01:05:00       0     79     34      5\n"
    assert imported(written(text)).column("temperature_c") == [34]


@pytest.mark.parametrize(
    ("cells", "reason"), [("", "the log has no utilisation; log it as well"), ("   -", "does not report utilisation")]
)
def test_a_report_without_utilisation_says_whether_it_was_logged(imported, written, cells, reason):
    header = HEADER if cells else HEADER.replace("     sm", "").replace("      %", "")
    rows = [f" 20261121    01:05:{n:02d}       0    379     34{cells}\n" for n in range(30)]
    analysis = analyse(load_run(imported(written(header + "".join(rows))).folder))
    assert next(each.reason for each in analysis.not_checked if each.rule == "drop").endswith(reason)


def test_dashes_are_missing_and_said_once(imported, written):
    rows = [f" 20261121    01:00:0{second}       0      -     34      {second}" for second in range(5)]
    run = imported(written(HEADER + "\n".join(rows) + "\n"))
    assert run.column("power_w") == [None] * 5
    (event,) = run.of_kind("nvml_error")
    assert (event["quantity"], event["reason"]) == ("power_w", "nvidia-smi dmon wrote -")


def test_times_without_dates_are_of_the_days_before_the_log_was_written(imported, written, monkeypatch):
    path = written(
        "#Time         gpu    pwr     sm\n 23:59:59       0     79      5\n 00:00:00       0     80      6\n"
    )
    midnight = datetime(2026, 11, 22).timestamp()  # noqa: DTZ001 (local, as the log)
    os.utime(path, (midnight + 2, midnight + 2))
    run = imported(path, timezone=None)
    assert [float(row["wall_s"]) - midnight for row in run.rows] == [-1, 0]
    assert any("without dates" in note for note in run.notes)


def test_a_log_with_commas(imported, written):
    run = imported(written("#Date, Time, gpu, pwr, sm\n#YYYYMMDD, HH:MM:SS, Idx, W, %\n20261121, 01:00:00, 0, 79, -\n"))
    assert run.column("power_w") == [79]
    assert run.column("gpu_util_pct") == [None]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#gpu    pwr     sm\n#Idx      W      %\n   0     79      5\n", "does not say when"),
        (HEADER, "has no rows"),
        (HEADER + " 20261121    01:00:00       x     79     34      5\n", "no row of the log has a time and a GPU"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_way_out(imported, written, text, reason):
    with pytest.raises(InputError, match=reason) as raised:
        imported(written(text))
    assert "-o DT" in str(raised.value)


def test_a_row_that_was_being_written_is_left_out(imported, written):
    whole = " 20261121    01:00:00       0     79     34      5\n"
    run = imported(written(HEADER + whole + " 20261121    01:00:01       0     7"))
    assert len(run.rows) == 1
    assert any("cut short" in note for note in run.notes)


def test_logs_are_known_by_their_content(tmp_path):
    from .conftest import DATA  # noqa: PLC0415

    assert [format_of(DATA / log) for log in (DMON, PMON, QUERY)] == ["dmon", "pmon", "nvidia-smi"]


class TestProcesses:
    def test_pmon_alone_gives_sums_and_says_so(self, imported):
        run = imported(PMON)
        assert any("sums over its processes" in note for note in run.facts["notes"])
        assert max(run.column("gpu_util_pct")) > 80
        assert run.column("gpu_util_pct")[:5] == [0] * 5  # nothing ran there yet

    def test_processes_appear_and_change(self, imported):
        run = imported(PMON)
        first = run.processes[0]
        assert (first["pid"], first["name"], first["change"], first["owner"]) == (
            "499",
            "python3",
            "appeared",
            "unknown",
        )
        assert {row["change"] for row in run.processes} == {"appeared", "changed"}

    def test_a_process_that_a_look_does_not_see_is_gone(self, imported, written):
        header = "#Date        Time         gpu         pid   type     sm     fb    command\n"
        looks = ["7     C      5    100    my tool", "7     C      5    100    my tool", "-     -      -      -    -"]
        lines = [f" 20261121    01:00:0{second}       0          {look}\n" for second, look in enumerate(looks)]
        run = imported(written(header + "".join(lines)))
        assert [(row["change"], row["name"], row["mono_s"]) for row in run.processes] == [
            ("appeared", "my tool", "0.000"),
            ("gone", "my tool", "2.000"),
        ]


class TestSeveralLogs:
    def test_logs_of_the_same_minute_are_one_run(self, imported):
        run = imported(DMON, PMON, QUERY)
        alone = imported(QUERY)
        assert run.facts["source"] == "nvidia-smi and nvidia-smi dmon"
        assert run.column("gpu_util_pct")[:60] == alone.column("gpu_util_pct")
        assert run.column("memory_temperature_c")[0] == 35
        assert run.column("performance_state")[0] == 0
        assert run.processes
        assert any("memory_temperature_c" in note and "nvidia-smi dmon" in note for note in run.facts["notes"])

    def test_each_gpu_has_its_own_readings(self, imported):
        run, dmon = imported(*DDP), imported(DDP[0])
        for gpu in (0, 1):
            assert mean(run.column("memory_temperature_c", gpu)) == pytest.approx(
                mean(dmon.column("memory_temperature_c", gpu)), abs=0.5
            )
        assert len(run.facts["gpus"]) == 2

    def test_one_after_the_other_is_one_run_too(self, imported, written):
        dmon = written(HEADER + " 20261121    01:05:00       0     79     34      5\n")
        run = imported(dmon, QUERY)
        assert len(run.rows) == 61
        assert run.rows[0]["gpu_util_pct"] == "5"

    def test_logs_of_other_times_are_said(self, imported, written):
        dmon = written(HEADER + " 20261121    03:05:00       0     79     34      5\n")
        (note,) = [note for note in imported(dmon, QUERY).notes if "different times" in note]
        assert "--timezone" in note

    def test_the_report_of_joined_logs(self, imported):
        analysis = analyse(load_run(imported(DMON, PMON, QUERY).folder))
        assert not [problem for problem in analysis.run.problems if "processes" in problem]
        assert analysis.gpus[0].quantities["memory_temperature_c"].mean > 30
