"""Import of nvidia-smi logs: what stands in the run folder afterwards, and what is said about the rest."""

import csv
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.errors import InputError, UsageError
from gpu_report.imports.formats.nvidia_smi.file import read_log
from gpu_report.imports.import_logs import import_logs
from gpu_report.load import load_run

TESTS = Path(__file__).parents[2]
DATA = TESTS / "data" / "nvidia_smi"
KERNEL = TESTS / "data" / "kernel"
HEADER = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]"
NO_PLACE = ("Not imported of nvidia-smi, for a run has no such column: fan.speed.",)
START = datetime(2026, 11, 21, 1, 0, tzinfo=UTC).timestamp()


def log(tmp_path, *rows, header=HEADER, name="log.csv", end="\n"):
    path = tmp_path / name
    path.write_bytes(("\n".join([*([header] if header else []), *rows]) + end).encode())
    return path


def row(second, gpu=0, util=50, hour=1):
    clock = f"{hour + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000"
    return f"2026/11/21 {clock}, {gpu}, {util} %, 1000 MiB, 200.00 W"


class Imported:
    """What an import wrote."""

    def __init__(self, logs, tmp_path, timezone="UTC", **options):
        self.folder = tmp_path / "run"
        self.problems = import_logs([*logs], self.folder, timezone=timezone, **options)
        text = (self.folder / schema.SAMPLES_CSV).read_text()
        self.rows = list(csv.DictReader(text.splitlines()))
        self.facts = json.loads((self.folder / schema.RUN_JSON).read_text())
        self.events = [json.loads(line) for line in (self.folder / schema.EVENTS_JSONL).read_text().splitlines()]

    def column(self, name, gpu=0):
        return [each[name] for each in self.rows if each["gpu"] == str(gpu)]

    def of_kind(self, kind):
        return [event for event in self.events if event["kind"] == kind]


@pytest.mark.parametrize("header", [HEADER, "name, pci.bus_id, " + HEADER])
def test_a_header_without_rows_among_others_does_no_harm(tmp_path, header):
    run = Imported([log(tmp_path, "a, b, " + header, HEADER, *(row(second) for second in range(5)), header)], tmp_path)
    assert len(run.rows) == 5


def test_a_real_log_of_one_gpu(tmp_path):
    run = Imported([DATA / "healthy-60s.csv"], tmp_path)
    assert run.problems == NO_PLACE
    source = [line.split(", ") for line in (DATA / "healthy-60s.csv").read_text().splitlines()[1:]]
    assert len(run.rows) == len(source) == 60
    for ours, theirs in zip(run.rows, source, strict=True):
        moment = datetime.strptime(theirs[0], "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp()
        assert ours["wall_s"] == f"{moment:.3f}"
        assert float(ours["mono_s"]) == pytest.approx(moment - 1795223151.287, abs=6e-4)
        assert f"{ours['gpu_util_pct']} %" == theirs[4]
        assert f"{ours['memory_util_pct']} %" == theirs[5]
        assert f"{ours['memory_used_mib']} MiB" == theirs[6]
        assert float(ours["power_w"]) == pytest.approx(float(theirs[8].removesuffix(" W")), abs=0.051)
        assert ours["temperature_c"] == theirs[10]
        assert f"{ours['sm_clock_mhz']} MHz" == theirs[11]
        assert f"{ours['memory_clock_mhz']} MHz" == theirs[12]
        assert f"P{ours['performance_state']}" == theirs[13]
        assert int(ours["clock_event_reasons"]) == int(theirs[14], 16)
        assert ours["memory_reserved_mib"] == ours["energy_j"] == ""
    (gpu,) = run.facts["gpus"]
    assert (gpu["index"], gpu["name"], gpu["memory_total_mib"], gpu["power_limit_w"]) == (0, "NVIDIA H200", 143771, 700)
    assert gpu["uuid"] == "GPU-00000000-0000-4000-8000-000000000001"


def test_a_real_log_of_two_gpus(tmp_path):
    run = Imported([DATA / "ddp-60s.csv"], tmp_path)
    assert run.problems == NO_PLACE
    assert len(run.rows) == 120
    assert {each["gpu"] for each in run.rows} == {"0", "1"}
    monos = [float(each["mono_s"]) for each in run.rows]
    assert monos == sorted(monos)
    assert [gpu["index"] for gpu in run.facts["gpus"]] == [0, 1]
    assert run.facts["interval_s"] == pytest.approx(1.0, abs=0.01)


def test_run_json_says_where_it_comes_from_and_leaves_the_rest_unknown(tmp_path):
    facts = Imported([log(tmp_path, row(0), row(2), row(4))], tmp_path).facts
    assert (facts["format"], facts["source"], facts["ended_by"], facts["interval_s"]) == (
        1,
        "nvidia-smi",
        "import",
        2.0,
    )
    assert facts["start"] == {"wall_s": START, "mono_s": 0.0, "boot_s": None}
    assert facts["end"] == {"wall_s": START + 4, "mono_s": 4.0, "boot_s": None}
    assert set(facts["host"].values()) == {None}
    expected = {
        "tool",
        "start",
        "end",
        "host",
        "gpus",
        "yolo",
        "recorder",
        "command",
        "working_directory",
        "exit_signal",
    }
    expected |= {
        "driver",
        "nvml",
        "cuda",
        "python",
        "torch",
        "ultralytics",
        "exit_code",
        "format",
        "source",
        "ended_by",
    }
    assert set(facts) == expected | {"interval_s"}


def test_the_events_frame_the_recording(tmp_path):
    run = Imported([log(tmp_path, row(0), row(1))], tmp_path)
    assert [event["kind"] for event in run.events] == [
        "recording_started",
        "xid_events",
        "kernel_log",
        "recording_ended",
    ]
    assert run.of_kind("recording_ended")[0]["ended_by"] == "import"
    (status,) = run.of_kind("kernel_log")
    assert status["status"] == "unavailable"
    assert status["reason"] == "no kernel log was given with the import"
    assert "--kernel-log" in status["advice"]


@pytest.mark.parametrize(
    "header",
    [
        "utilization.gpu [%], timestamp, pstate, index",
        "pstate, index, utilization.gpu, timestamp",
        "index, pstate, timestamp, utilization.gpu [%]",
    ],
)
@pytest.mark.parametrize("units", [True, False])
def test_columns_in_any_order_with_or_without_units(tmp_path, header, units):
    cells = {
        "timestamp": "2026/11/21 01:00:00.500",
        "utilization.gpu": "37 %" if units else "37",
        "pstate": "P2",
        "index": "4",
    }
    names = [name.split(" [")[0] for name in header.split(", ")]
    run = Imported([log(tmp_path, ", ".join(cells[name] for name in names), header=header)], tmp_path)
    (only,) = run.rows
    assert (only["gpu"], only["gpu_util_pct"], only["performance_state"], only["wall_s"]) == (
        "4",
        "37",
        "2",
        f"{START + 0.5:.3f}",
    )


def test_the_link_and_what_it_can_do(tmp_path):
    asked = ("gen.current", "width.current", "gen.max", "width.max", "gen.gpumax")
    names = ", ".join(f"pcie.link.{name}" for name in asked)
    rows = [f"{row(second)}, {1 if second < 3 else '[N/A]'}, 4, 3, 16, 4" for second in range(5)]
    run = Imported([log(tmp_path, *rows, header=f"{HEADER}, {names}")], tmp_path)
    assert run.column("pcie_link_generation") == ["1", "1", "1", "", ""]
    assert run.column("pcie_link_width") == ["4"] * 5
    gpu = run.facts["gpus"][0]
    can_do = ("max_pcie_link_generation", "max_pcie_link_width", "gpu_max_pcie_link_generation")
    assert [gpu[name] for name in can_do] == [3, 16, 4]


def test_a_link_of_no_lanes_is_no_reading(tmp_path):
    names = ", ".join(f"pcie.link.{name}" for name in ("gen.current", "width.current", "gen.max", "width.max"))
    run = Imported(
        [log(tmp_path, *(f"{row(second)}, 0, 0, 0, 0" for second in range(5)), header=f"{HEADER}, {names}")], tmp_path
    )
    assert run.column("pcie_link_generation") == run.column("pcie_link_width") == [""] * 5
    gpu = run.facts["gpus"][0]
    assert gpu["max_pcie_link_generation"] is gpu["max_pcie_link_width"] is None


def test_older_names_of_columns(tmp_path):
    clocks = "clocks.sm [MHz], clocks.mem [MHz], clocks_throttle_reasons.active"
    header = f"timestamp, utilization.gpu [%], {clocks}, enforced.power.limit [W]"
    run = Imported(
        [
            log(
                tmp_path,
                "2026/11/21 01:00:00.000, 1 %, 1410 MHz, 1593 MHz, 0x0000000000000024, 400.00 W",
                header=header,
            )
        ],
        tmp_path,
    )
    (only,) = run.rows
    assert (only["sm_clock_mhz"], only["memory_clock_mhz"], only["clock_event_reasons"]) == ("1410", "1593", "36")
    assert run.facts["gpus"][0]["power_limit_w"] == 400


@pytest.mark.parametrize(
    "cell",
    [
        "[N/A]",
        "N/A",
        "[Not Supported]",
        "[Unknown Error]",
        "[GPU is lost]",
        "ERR!",
        "",
        "nan",
        "-1 %",
        "101 %",
        "1e9",
        "½",
    ],
)
def test_a_reading_that_is_none_is_an_empty_cell_and_said_once(tmp_path, cell):
    rows = [row(0), *(row(second).replace("50 %", cell) for second in (1, 2)), row(3, util=0)]
    run = Imported([log(tmp_path, *rows)], tmp_path)
    assert run.column("gpu_util_pct") == ["50", "", "", "0"]
    (error,) = run.of_kind("nvml_error")
    assert (error["gpu"], error["quantity"], error["mono_s"]) == (0, "gpu_util_pct", 1.0)
    assert (cell.strip("[]") or "empty") in error["reason"]
    (again,) = run.of_kind("nvml_recovered")
    assert (again["gpu"], again["quantity"], again["mono_s"]) == (0, "gpu_util_pct", 3.0)


@pytest.mark.parametrize("cell", ["50 quux", "50 W"])
def test_a_reading_in_another_unit_is_missing(tmp_path, cell):
    run = Imported([log(tmp_path, row(0), row(1).replace("50 %", cell), row(2))], tmp_path)
    assert run.column("gpu_util_pct") == ["50", "", "50"]


def test_a_column_in_another_unit_is_left_out_and_said(tmp_path):
    header = HEADER.replace("[MiB]", "[GiB]").replace("[W]", "[mW]")
    rows = ["2026/11/21 01:00:00.000, 0, 50, 10, 7000", "2026/11/21 01:00:01.000, 0, 60, 10, 7000"]
    run = Imported([log(tmp_path, *rows, header=header)], tmp_path)
    assert (run.column("gpu_util_pct"), run.column("memory_used_mib"), run.column("power_w")) == (
        ["50", "60"],
        ["", ""],
        ["", ""],
    )
    (said,) = [note for note in run.problems if "unit" in note]
    assert said.endswith("for the unit is not that of nvidia-smi: memory.used [gib], power.draw [mw].")


def test_utilisation_in_an_unknown_unit_is_no_log_and_that_is_said(tmp_path):
    header = HEADER.replace("[%]", "[quux]")
    with pytest.raises(
        InputError, match=r"has utilization.gpu \[quux\], whose unit is not known: log with `nvidia-smi"
    ):
        Imported([log(tmp_path, row(0), header=header)], tmp_path)


@pytest.mark.parametrize(("bad", "notes"), [(2, 0), (3, 1), (60, 0)])
def test_utilisation_that_is_no_number_is_said_where_it_is_much_and_not_all(tmp_path, bad, notes):
    """Of the rows after it, in which nothing can be read, the GPU was lost: that is another thing."""
    rows = [row(second).replace("50 %", "ab##c") if second < bad else row(second) for second in range(60)]
    gone = [f"2026/11/21 01:01:{second:02d}.000, 0, [GPU is lost], [GPU is lost], [GPU is lost]" for second in range(9)]
    said = Imported([log(tmp_path, *rows, *gone)], tmp_path).facts.get("notes", [])
    assert said == ["Utilisation of GPU 0 is no number in 3 of 60 rows. These are missing."] * notes


@pytest.mark.parametrize("cell", ["[GPU is lost]", "[Unknown Error]", "ERR!"])
def test_a_gpu_of_which_every_cell_is_the_drivers_error_was_lost(tmp_path, cell):
    gone = [f"2026/11/21 01:00:{second:02d}.000, 0, {cell}, {cell}, {cell}" for second in range(5, 9)]
    folder = Imported([log(tmp_path, *(row(second) for second in range(5)), *gone)], tmp_path).folder
    (lost,) = [finding for finding in analyse(load_run(folder)).findings if finding.rule == "gpu-lost"]
    assert (lost.gpu, lost.start_t_s, lost.severity) == (0, 5.0, "critical")


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("Unable to determine the device handle for GPU0000:01:00.0: Unknown Error", {0: 4.0}),
        ("Unable to determine the device handle for GPU 00000000:41:00.0: GPU is lost.", {1: 4.0}),
        ("Unable to determine the device handle for GPU0000:99:00.0: Unknown Error", {}),  # of none that was logged
        ("No devices were found", {0: 4.0, 1: 4.0}),
        ("Failed to write the log", {}),
    ],
)
def test_what_is_printed_in_place_of_rows_tells_which_gpu_was_lost(tmp_path, line, lost):
    buses = ("00000000:01:00.0", "00000000:41:00.0")
    rows = [f"{row(second, gpu)}, {bus}" for second in range(5) for gpu, bus in enumerate(buses)]
    run = Imported([log(tmp_path, *rows, *([line] * 60), header=f"{HEADER}, pci.bus_id")], tmp_path)
    assert {event["gpu"]: event["mono_s"] for event in run.of_kind("nvml_error")} == lost
    assert "60 lines" in " ".join(run.problems)
    found = analyse(load_run(run.folder)).findings
    assert sorted(finding.gpu for finding in found if finding.rule == "gpu-lost") == sorted(lost)


def test_power_of_two_meanings_is_never_mixed(tmp_path):
    average = log(
        tmp_path,
        "2026/11/21 01:00:00.000, 0, 1 %, 100.0 W, 110.0 W",
        header="timestamp, index, utilization.gpu [%], power.draw [W], power.draw.instant [W]",
        name="a.csv",
    )
    instant = log(
        tmp_path,
        "2026/11/21 01:00:01.000, 0, 1 %, 120.0 W",
        header="timestamp, index, utilization.gpu [%], power.draw.instant [W]",
        name="b.csv",
    )
    run = Imported([average, instant], tmp_path)
    assert run.column("power_w") == ["110", "120"]


def test_average_power_is_preferred_where_it_has_readings(tmp_path):
    header = "timestamp, utilization.gpu [%], power.draw [W], power.draw.average [W]"
    run = Imported([log(tmp_path, "2026/11/21 01:00:00.000, 1 %, 100.0 W, 90.0 W", header=header)], tmp_path)
    assert run.column("power_w") == ["90"]
    (tmp_path / "other").mkdir()
    run = Imported([log(tmp_path, "2026/11/21 01:00:00.000, 1 %, 100.0 W, [N/A]", header=header)], tmp_path / "other")
    assert run.column("power_w") == ["100"]


def test_a_part_without_the_power_that_was_chosen_is_said(tmp_path):
    with_power = log(tmp_path, row(0), row(1), name="a.csv")
    without = log(
        tmp_path, "2026/11/21 01:00:02.000, 0, 1 %", header="timestamp, index, utilization.gpu [%]", name="b.csv"
    )
    run = Imported([with_power, without], tmp_path)
    assert run.column("power_w") == ["200", "200", ""]
    assert any("power.draw" in problem for problem in run.problems)


def test_a_byte_order_mark_crlf_blank_lines_and_repeated_headers(tmp_path):
    path = tmp_path / "log.csv"
    lines = [HEADER, row(0), "", HEADER, row(1), "   ", row(2)]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*lines, ""]).encode())
    run = Imported([path], tmp_path)
    assert (run.column("mono_s"), run.problems) == (["0.000", "1.000", "2.000"], ())


def test_a_log_that_powershell_wrote(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(("\r\n".join([HEADER, row(0), ""])).encode("utf-16"))
    assert Imported([path], tmp_path).column("gpu_util_pct") == ["50"]


@pytest.mark.parametrize("cut", [1, 3, 20, 40])
def test_a_torn_last_row_is_left_out_and_said(tmp_path, cut):
    run = Imported([log(tmp_path, row(0), row(1), row(2)[:-cut], end="")], tmp_path)
    assert len(run.rows) == 2
    assert any("cut short" in problem for problem in run.problems)


def test_rows_torn_in_the_middle_and_messages_are_left_out_and_said(tmp_path):
    run = Imported(
        [log(tmp_path, row(0), row(1)[:30], "Unable to determine the device handle: GPU is lost.", "\0\0\0\0", row(4))],
        tmp_path,
    )
    assert run.column("mono_s") == ["0.000", "4.000"]
    (problem,) = run.problems
    assert problem.startswith("3 lines of ")


def test_rows_without_a_time_or_gpu_are_left_out_and_said(tmp_path):
    rows = [row(0), row(1).replace("2026/11/21", "never"), row(2).replace(", 0,", ", [N/A],"), row(3)]
    run = Imported([log(tmp_path, *rows)], tmp_path)
    assert run.column("mono_s") == ["0.000", "3.000"]
    assert run.problems == ("2 rows without a readable time or GPU were left out.",)


@pytest.mark.parametrize(
    ("header", "missing"),
    [("index, utilization.gpu [%]", "timestamp"), ("timestamp, index", "utilization.gpu")],
)
def test_a_needed_column_that_is_missing_is_named_with_the_query_to_use(tmp_path, header, missing):
    with pytest.raises(InputError) as error:
        Imported([log(tmp_path, "1, 2", header=header)], tmp_path)
    assert f"no column {missing}:" in str(error.value)
    assert "nvidia-smi --query-gpu=timestamp," in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content", ["", "\n", row(0) + "\n", "hello\n", "\0" * 100, HEADER + "\n", HEADER, HEADER + "\n" + row(0)]
)
def test_nothing_valid_is_an_error_of_one_line_and_leaves_nothing_behind(tmp_path, content):
    path = tmp_path / "log.csv"
    path.write_text(content)
    with pytest.raises(InputError) as error:
        Imported([path], tmp_path)
    assert "\n" not in str(error.value)
    assert [each.name for each in tmp_path.iterdir()] == ["log.csv"]


def test_a_log_that_does_not_exist(tmp_path):
    with pytest.raises(InputError, match=r"missing\.csv cannot be read"):
        Imported([tmp_path / "missing.csv"], tmp_path)


@pytest.mark.parametrize("in_run", [True, False], ids=["of a run folder", "alone"])
def test_readings_of_our_own_are_to_be_rendered(in_run, tmp_path):
    names = ",".join(column.name for column in schema.SAMPLES_COLUMNS)
    samples = log(tmp_path, header=names, name="samples.csv")
    if in_run:
        (tmp_path / schema.RUN_JSON).write_text("{}")
    with pytest.raises(InputError) as error:
        Imported([samples], tmp_path / "out")
    assert str(error.value).endswith(f"`gpu-report render report.html {tmp_path if in_run else samples}`")


def test_one_bad_log_of_two_is_said_and_the_other_taken(tmp_path):
    bad = log(tmp_path, row(0), header=None, name="bad.csv")
    run = Imported([bad, log(tmp_path, row(0))], tmp_path)
    assert len(run.rows) == 1
    assert any("bad.csv" in problem and "noheader" in problem for problem in run.problems)


def test_files_in_any_order_one_after_another(tmp_path):
    first, second = log(tmp_path, row(0), row(1), name="a.csv"), log(tmp_path, row(2), row(3), name="b.csv")
    run = Imported([second, first], tmp_path)
    assert run.column("mono_s") == ["0.000", "1.000", "2.000", "3.000"]
    assert run.problems == ()
    assert run.of_kind("clock_step") == []


def test_a_file_for_each_gpu_and_rows_by_gpu(tmp_path):
    by_gpu = [row(second, gpu, util=10 * gpu + second) for gpu in (1, 0) for second in range(3)]
    run = Imported([log(tmp_path, *by_gpu), log(tmp_path, row(0, gpu=2), row(1, gpu=2), name="b.csv")], tmp_path)
    assert [(each["mono_s"], each["gpu"]) for each in run.rows[:4]] == [
        ("0.000", "0"),
        ("0.000", "1"),
        ("0.000", "2"),
        ("1.000", "0"),
    ]
    assert run.column("gpu_util_pct", gpu=1) == ["10", "11", "12"]
    assert run.of_kind("clock_step") == []


def test_a_log_given_twice_counts_once(tmp_path):
    path = log(tmp_path, row(0), row(1))
    run = Imported([path, path], tmp_path)
    assert len(run.rows) == 2
    assert run.problems == ("2 rows stand in the logs twice and were taken once.",)


@pytest.mark.parametrize("name", ["uuid", "pci.bus_id"])
def test_without_an_index_gpus_are_told_apart_by_uuid_or_bus(tmp_path, name):
    rows = [
        f"2026/11/21 01:00:0{second}.000, {gpu}, {util} %"
        for second in range(2)
        for gpu, util in (("X-1", 1), ("X-2", 2))
    ]
    run = Imported([log(tmp_path, *rows, header=f"timestamp, {name}, utilization.gpu [%]")], tmp_path)
    assert run.column("gpu_util_pct", gpu=0) == ["1", "1"]
    assert run.column("gpu_util_pct", gpu=1) == ["2", "2"]


def test_a_log_without_an_index_takes_it_from_one_that_has_it(tmp_path):
    named = log(
        tmp_path,
        "2026/11/21 01:00:05.000, 3, GPU-b, 5 %",
        header="timestamp, index, uuid, utilization.gpu [%]",
        name="b.csv",
    )
    unnamed = log(
        tmp_path, "2026/11/21 01:00:00.000, GPU-b, 4 %", header="timestamp, uuid, utilization.gpu [%]", name="a.csv"
    )
    assert Imported([unnamed, named], tmp_path).column("gpu_util_pct", gpu=3) == ["4", "5"]


def test_logs_of_two_machines_are_said(tmp_path):
    header = "timestamp, index, uuid, utilization.gpu [%]"
    logs = [
        log(tmp_path, f"2026/11/21 01:00:0{n}.000, 0, GPU-{n}, 5 %", header=header, name=f"{n}.csv") for n in range(2)
    ]
    assert Imported(logs, tmp_path).problems == ("GPU 0 has more than one UUID: are these logs of different machines?",)


def test_the_local_zone_is_assumed_and_said(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        run = Imported([log(tmp_path, row(0))], tmp_path, timezone=None)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert run.rows[0]["wall_s"] == f"{START - 9 * 3600:.3f}"
    assert run.problems == (
        "nvidia-smi's times carry no zone: JST, this machine's, was assumed; --timezone sets another.",
    )


def test_the_zone_that_is_given_is_used(tmp_path):
    run = Imported([log(tmp_path, row(0))], tmp_path, timezone="Europe/Berlin")
    assert (run.rows[0]["wall_s"], run.problems) == (f"{START - 3600:.3f}", ())


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../../etc/passwd", "/etc/localtime", "Europe"])
def test_an_unknown_zone_is_a_usage_error(tmp_path, name):
    with pytest.raises(UsageError, match="--timezone"):
        Imported([log(tmp_path, row(0))], tmp_path, timezone=name)


def test_the_hour_that_autumn_repeats_is_no_clock_step(tmp_path):
    clocks = [f"2026/10/25 02:{minute:02d}:00.000" for minute in range(60)]
    rows = [f"{clock}, {gpu}, 5 %, 1 MiB, 1 W" for clock in [*clocks, *clocks] for gpu in (0, 1)]
    run = Imported([log(tmp_path, *rows)], tmp_path, timezone="Europe/Berlin")
    assert run.column("mono_s") == [f"{60 * minute}.000" for minute in range(120)]
    assert run.column("mono_s", gpu=1) == run.column("mono_s")
    assert (run.problems, run.of_kind("clock_step")) == ((), [])


def test_a_clock_that_steps_back_an_hour_does_not_stop_time(tmp_path):
    rows = [row(second, gpu, hour=9) for second in range(3600, 3700) for gpu in (0, 1)]
    rows += [row(second, gpu, hour=9) for second in range(100, 200) for gpu in (0, 1)]
    run = Imported([log(tmp_path, *rows)], tmp_path)
    for gpu in (0, 1):
        monos = [float(value) for value in run.column("mono_s", gpu)]
        assert monos == pytest.approx(range(200), abs=1e-6)
    walls = [float(value) for value in run.column("wall_s")]
    assert walls[100] - walls[99] == -3599.0
    (step,) = run.of_kind("clock_step")
    assert (step["seconds"], step["mono_s"]) == (-3599.0, 100.0)
    assert [problem for problem in run.problems if "set back by 3599 s" in problem]


def test_rows_in_no_order_are_sorted_and_said(tmp_path):
    rows = [row(second) for second in range(60)]
    run = Imported([log(tmp_path, *reversed(rows))], tmp_path)
    assert [float(value) for value in run.column("mono_s")] == list(range(60))
    assert run.problems == ("The rows are not in order of time; they were sorted.",)


def test_a_hundred_gpus(tmp_path):
    run = Imported([log(tmp_path, *(row(second, gpu) for second in range(3) for gpu in range(100)))], tmp_path)
    assert len(run.facts["gpus"]) == 100
    assert len(run.rows) == 300


@pytest.fixture
def yolo(tmp_path):
    folder = tmp_path / "train"
    folder.mkdir()
    (folder / "args.yaml").write_text("model: yolo26n.pt\n")
    (folder / "results.csv").write_text("epoch,time\n1,9.5\n")
    return folder


def test_the_files_of_the_yolo_run_are_kept_with_their_time(tmp_path, yolo):
    run = Imported([log(tmp_path, row(0))], tmp_path, yolo=yolo, train_start="2026-11-21T01:00:05Z")
    assert (run.folder / "yolo" / "args.yaml").read_text() == "model: yolo26n.pt\n"
    assert (run.folder / "yolo" / "results.csv").read_text() == "epoch,time\n1,9.5\n"
    (facts,) = run.facts["yolo"]
    assert facts == {
        "number": 1,
        "path": str(yolo),
        "results_mtime_s": round((yolo / "results.csv").stat().st_mtime, 3),
        "args_mtime_s": round((yolo / "args.yaml").stat().st_mtime, 3),
        "weights_mtime_s": None,
        "train_start_s": START + 5,
    }
    assert run.of_kind("yolo_run")[0]["path"] == str(yolo)


def test_a_yolo_run_without_results_is_said(tmp_path, yolo):
    (yolo / "results.csv").unlink()
    run = Imported([log(tmp_path, row(0))], tmp_path, yolo=yolo)
    assert run.problems == (f"{yolo} holds no results.csv.",)
    assert run.facts["yolo"][0]["results_mtime_s"] is None


def test_a_link_out_of_the_yolo_run_is_no_setting_of_it(tmp_path, yolo):
    (yolo / "args.yaml").rename(tmp_path / "key")
    (yolo / "args.yaml").symlink_to(tmp_path / "key")
    with pytest.raises(InputError, match=r"args.yaml leads out of .* by a link"):
        Imported([log(tmp_path, row(0))], tmp_path, yolo=yolo)


def test_a_folder_that_is_no_yolo_run(tmp_path):
    with pytest.raises(InputError, match="--yolo"):
        Imported([log(tmp_path, row(0))], tmp_path, yolo=tmp_path)


@pytest.mark.parametrize(
    "value",
    ["1795222805", 1795222805.0, "2026-11-21T01:00:05+00:00", "2026-11-21 02:00:05+01:00", "2026-11-21T01:00:05"],
)
def test_moments_may_be_seconds_or_iso(tmp_path, yolo, value):
    run = Imported([log(tmp_path, row(0))], tmp_path, yolo=yolo, train_start=value)
    assert run.facts["yolo"][0]["train_start_s"] == START + 5


@pytest.mark.parametrize("option", ["train_start", "boot_time"])
@pytest.mark.parametrize("value", ["yesterday", "", "-5", "1e99", "nan"])
def test_a_moment_that_is_none_is_a_usage_error(tmp_path, option, value):
    with pytest.raises(UsageError, match="--" + option.replace("_", "-")):
        Imported([log(tmp_path, row(0))], tmp_path, **{option: value})


def at_the_real_xid(tmp_path):
    """Return a log of one minute around the real Xid 31 of 01:23:01."""
    return log(tmp_path, *(row(second) for second in range(22 * 60 + 30, 23 * 60 + 30)))


@pytest.mark.parametrize("name", ["xid-dmesg-T.txt", "xid-dmesg.txt", "xid-dmesg.json", "kmsg.txt"])
def test_kernel_lines_around_the_recording_become_events(tmp_path, name):
    boot = datetime(2026, 11, 21, 1, 23, 1, tzinfo=UTC).timestamp() - 438.285308
    run = Imported([at_the_real_xid(tmp_path)], tmp_path, kernel_log=KERNEL / name, boot_time=boot)
    assert run.of_kind("kernel_log")[0]["status"] == "read"
    xid = run.of_kind("kernel")[-1]
    assert xid["text"].startswith("NVRM: Xid (PCI:0000:00:07): 31, pid=2090")
    assert (xid["source"], xid["mono_s"]) == (name, pytest.approx(31.0, abs=0.01))
    assert run.problems == ()


def test_a_kernel_log_that_needs_a_boot_time_is_unavailable_and_says_so(tmp_path):
    run = Imported([at_the_real_xid(tmp_path)], tmp_path, kernel_log=KERNEL / "xid-dmesg.txt")
    assert run.of_kind("kernel_log")[0]["status"] == "unavailable"
    assert run.of_kind("kernel") == []
    assert [problem for problem in run.problems if "--boot-time" in problem]


def test_a_kernel_log_of_another_time_is_unavailable_and_says_so(tmp_path):
    run = Imported([log(tmp_path, row(0, hour=20))], tmp_path, kernel_log=KERNEL / "dmesg-iso-tail.txt")
    (status,) = run.of_kind("kernel_log")
    assert status["status"] == "unavailable"
    assert "before the recording began" in status["reason"]
    assert [problem for problem in run.problems if "--timezone" in problem]


def test_a_quiet_kernel_log_that_spans_the_recording_was_read(tmp_path):
    path = tmp_path / "kern.log"
    path.write_text("2026-11-20T01:00:00,000000+00:00 early\n2026-11-22T01:00:00,000000+00:00 late\n")
    run = Imported([log(tmp_path, row(0), row(1))], tmp_path, kernel_log=path)
    assert run.of_kind("kernel_log")[0]["status"] == "read"
    assert run.of_kind("kernel") == []


def test_a_kernel_log_that_does_not_exist(tmp_path):
    with pytest.raises(InputError, match="name a saved kernel log"):
        Imported([log(tmp_path, row(0))], tmp_path, kernel_log=tmp_path / "missing")


@pytest.mark.parametrize("name", [schema.RUN_JSON, schema.SAMPLES_CSV, "anything"])
def test_an_output_that_is_taken_is_refused_and_left_alone(tmp_path, name):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).write_text("mine")
    with pytest.raises(UsageError, match="--output"):
        Imported([log(tmp_path, row(0))], tmp_path)
    assert (tmp_path / "run" / name).read_text() == "mine"


def test_an_output_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(UsageError, match="--output"):
        Imported([log(tmp_path, row(0))], tmp_path)


def test_an_output_in_folders_that_do_not_exist_yet(tmp_path):
    output = tmp_path / "läufe" / "一" / "run"
    import_logs([log(tmp_path, row(0))], output, timezone="UTC")
    assert (output / schema.SAMPLES_CSV).exists()
    assert [each.name for each in output.parent.iterdir()] == ["run"]


def test_an_empty_output_folder_is_used(tmp_path):
    (tmp_path / "run").mkdir()
    assert len(Imported([log(tmp_path, row(0))], tmp_path).rows) == 1


def test_an_empty_folder_that_one_stands_in_is_used(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    import_logs([log(tmp_path, row(0))], Path(), timezone="UTC")
    assert (tmp_path / "run" / schema.SAMPLES_CSV).exists()


def test_a_failure_on_the_way_leaves_nothing_behind(tmp_path, monkeypatch):
    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpu_report.imports.run_writer.write_run_json", fails)
    with pytest.raises(UsageError, match="No space left"):
        Imported([log(tmp_path, row(0))], tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["log.csv"]


def test_an_output_that_cannot_be_written_is_a_usage_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be"):
        import_logs([log(tmp_path, row(0))], tmp_path / "file" / "run", timezone="UTC")


class TestGpusWithoutAnIndex:
    """Rows of several GPUs follow each other within milliseconds, each with a stamp of its own."""

    def two(self, tmp_path, apart_ms=1, columns="", first="", second=""):
        def line(t, ms, name, util):
            return f"2026/11/21 01:00:{t:02d}.{ms:03d}, {name}{util} %"

        rows = [(line(t, 120, first, 90), line(t, 120 + apart_ms, second, 5)) for t in range(30)]
        header = f"timestamp, {columns}utilization.gpu [%]"
        return log(tmp_path, *(each for pair in rows for each in pair), header=header)

    @pytest.mark.parametrize("apart_ms", [0, 1, 40])
    def test_they_are_refused_where_nothing_tells_them_apart(self, tmp_path, apart_ms):
        with pytest.raises(InputError, match=r"rows of several GPUs.*add index \(or uuid, or pci.bus_id\)"):
            Imported([self.two(tmp_path, apart_ms)], tmp_path)

    def test_so_they_are_where_all_are_of_one_model(self, tmp_path):
        with pytest.raises(InputError, match="which is whose"):
            Imported([self.two(tmp_path, 1, "name, ", "NVIDIA H200, ", "NVIDIA H200, ")], tmp_path)

    @pytest.mark.parametrize(
        ("columns", "first", "second"),
        [
            ("name, ", "NVIDIA H200, ", "NVIDIA A100, "),
            ("pci.bus_id, ", "00000000:01:00.0, ", "00000000:02:00.0, "),
            ("uuid, ", "GPU-1, ", "GPU-2, "),
        ],
    )
    def test_else_each_gpu_keeps_its_rows(self, tmp_path, columns, first, second):
        run = Imported([self.two(tmp_path, 0, columns, first, second)], tmp_path)
        assert (run.column("gpu_util_pct", 0), run.column("gpu_util_pct", 1)) == (["90"] * 30, ["5"] * 30)
        assert run.problems == ()

    def test_one_gpu_needs_none(self, tmp_path):
        rows = [f"2026/11/21 01:00:{t:02d}.{(37 * t) % 60:03d}, 90 %" for t in range(30)]
        run = Imported([log(tmp_path, *rows, header="timestamp, utilization.gpu [%]")], tmp_path)
        assert len(run.rows) == 30

    @pytest.mark.parametrize("stamp", ["{}", "{}.000"])
    def test_stamps_in_whole_seconds_of_one_gpu_are_no_sign_of_several(self, tmp_path, stamp):
        rows = [f"{stamp.format(f'2026/11/21 01:00:{n // 2:02d}')}, {50 + n % 7} %" for n in range(60)]
        run = Imported([log(tmp_path, *rows, header="timestamp, utilization.gpu [%]")], tmp_path)
        assert len(run.rows) == 30
        assert any(problem.startswith("30 rows have the time stamp of another row") for problem in run.problems)

    def test_rows_that_stand_side_by_side_twice_are_of_one_gpu(self, tmp_path):
        rows = [f"2026/11/21 01:00:{t:02d}.{(37 * t) % 60:03d}, {50 + t % 7} %" for t in range(30)]
        doubled = [each for row in rows for each in (row, row)]
        run = Imported([log(tmp_path, *doubled, header="timestamp, utilization.gpu [%]")], tmp_path)
        assert len(run.rows) == 30
        assert "30 rows stand in the logs twice and were taken once." in run.problems

    def test_logs_of_one_time_that_name_none_are_said_to_be_mixed(self, tmp_path):
        header = "timestamp, utilization.gpu [%]"
        logs = [
            log(tmp_path, *(f"2026/11/21 01:00:{t:02d}.{n}00, 90 %" for t in range(30)), header=header, name=f"{n}.csv")
            for n in (1, 6)
        ]
        assert any("are mixed: import each" in problem for problem in Imported(logs, tmp_path).problems)
        again = Imported([logs[0], logs[0]], tmp_path / "twice").problems
        assert not any("mixed" in problem for problem in again)


@pytest.mark.parametrize(("full_mib", "found"), [(79_500, 1), (60_000, 0)])
def test_a_log_that_ends_with_a_full_card_and_nothing_on_it_says_out_of_memory(tmp_path, full_mib, found):
    header = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"
    states = [(0, 4)] * 10 + [(95, full_mib)] * 80 + [(0, 4)] * 10
    rows = [
        f"2026/11/21 01:{n // 60:02d}:{n % 60:02d}.000, 0, {util} %, {mib} MiB, 81559 MiB"
        for n, (util, mib) in enumerate(states)
    ]
    imported = Imported([log(tmp_path, *rows, header=header)], tmp_path)
    ends = [each for each in analyse(load_run(imported.folder)).findings if each.rule == "run-ended"]
    assert [(each.severity, each.end_t_s) for each in ends] == [("warning", 90.0)] * found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "Fri Nov 27 10:00:00 2026\n+-----+\n| NVIDIA-SMI 570.86.15   |\n+-----+\n",
            "the table that nvidia-smi prints",
        ),
        ("\n==============NVSMI LOG==============\n\nTimestamp : now\n", "the table that nvidia-smi prints"),
        ("2026/11/27 10:00:00.123, 0, 45 %\n2026/11/27 10:00:01.123, 0, 55 %\n", "put the names that --query-gpu"),
        ("something else\n", "no header with nvidia-smi's columns"),
    ],
)
def test_what_nvidia_smi_wrote_for_people_is_known_and_how_to_log_is_said(tmp_path, text, says):
    log = tmp_path / "smi.txt"
    log.write_text(text)
    with pytest.raises(InputError, match=says) as raised:
        read_log(log)
    assert "--format=csv -l 1" in str(raised.value)


@pytest.mark.parametrize(("cell", "is_lost"), [("[Unknown Error]", False), ("[GPU is lost]", True)])
def test_an_only_cell_that_failed_is_a_lost_gpu_where_it_says_so(tmp_path, cell, is_lost):
    header = "timestamp, index, utilization.gpu [%]"
    cells = ["95 %"] * 30 + [cell] + ["95 %"] * 30
    rows = [f"2026/11/21 01:{n // 60:02d}:{n % 60:02d}.000, 0, {each}" for n, each in enumerate(cells)]
    imported = Imported([log(tmp_path, *rows, header=header)], tmp_path)
    rules = {each.rule for each in analyse(load_run(imported.folder)).findings}
    assert ("gpu-lost" in rules) == is_lost
