"""Whatever a samples CSV looks like: what can be read is, the rest is said, or one InputError names the matter."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_report.analyse import analyse
from gpu_report.errors import InputError
from gpu_report.load import load_run
from gpu_report.load.run_clock import Boot, RunClock
from gpu_report.load.samples import load_ring
from gpu_report.render import render_html
from gpu_report.render.run.summary_json import build_summary

HEADER = "wall_s,mono_s,gpu,gpu_util_pct,memory_used_mib,power_w"
START = 1_800_000_000


def row(t, util=90, gpu=0, wall=None):
    return f"{START + t if wall is None else wall},{100 + t},{gpu},{util},1000,300.0"


def lines(*rows, header=HEADER):
    return "\n".join([header, *rows]) + "\n"


@pytest.fixture
def load(tmp_path):
    def loaded(content, **files):
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode()
        (folder / "samples.csv").write_bytes(data)
        for name, text in files.items():
            (folder / name.replace("_", ".")).write_text(text)
        run = load_run(folder)
        analysis = analyse(run)
        json.dumps(build_summary(analysis), allow_nan=False)
        assert "<html" in render_html(analysis)
        return run

    return loaded


STEADY = [row(t) for t in range(30)]
HOST = "\n".join(["wall_s,mono_s,cpu_pct", *(f"{START + t},{100 + t},5" for t in range(60))]) + "\n"


def test_a_row_cut_short_is_dropped_and_said(load):
    run = load(lines(*STEADY) + "1800000030,130,0,9")
    assert run.samples["t_s"].max() == 29
    assert any("cut short" in problem for problem in run.problems)


def test_a_row_beside_the_samples_that_was_cut_in_its_stamp_is_not_placed_by_a_clock_that_was_set(load):
    run = load(lines(*STEADY), host_csv=HOST.replace(f"{START + 20},120,5", f"{START + 7000},12?"))
    assert run.host["t_s"].max() == 59
    assert run.duration_s < 61
    assert "host.csv: 1 row has no usable time stamp or GPU and is left out" in run.problems


def test_samples_that_end_before_the_recording_did_are_told(load):
    end = json.dumps({"format": 1, "interval_s": 1, "end": {"wall_s": START + 60, "mono_s": 160}})
    run = load(lines(*STEADY), run_json=end)
    (problem,) = [problem for problem in run.problems if "samples.csv" in problem]
    assert problem == "samples.csv ends 31 s before the recording did: what follows is missing, not zero"
    assert load(lines(*STEADY), run_json=end.replace("60", "32")).duration_s == 32
    assert not [problem for problem in load(lines(*STEADY)).problems if "before the recording" in problem]


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        (STEADY[:10] + STEADY[18:], "has no rows for 8 s after 9 s"),
        (STEADY[:5] + STEADY[11:15] + STEADY[25:], "has no rows for 16 s in 2 gaps, the longest for 10 s after 14 s"),
        (STEADY[:10] + STEADY[13:], ""),  # a busy host missed three ticks
    ],
)
def test_holes_in_the_samples_are_told(load, kept, says):
    (*problem,) = [problem for problem in load(lines(*kept)).problems if "samples.csv" in problem]
    assert problem == ([f"samples.csv {says}: what happened then is missing, not zero"] if says else [])


def started(*starts):
    began = [{"wall_s": START + t, "mono_s": 100 + t, "kind": "recording_started"} for t in starts]
    return "".join(json.dumps({**each, "segment": number}) + "\n" for number, each in enumerate(began, 1))


@pytest.mark.parametrize(
    ("kept", "starts", "says"),
    [
        (STEADY[:5] + STEADY[25:], (-1, 24), ["twice: no recorder ran for 20 s after 4 s"]),
        (STEADY[:5] + STEADY[11:15] + STEADY[25:], (0.5, 10, 24), ["3 times: no recorder ran for 16 s in 2 gaps"]),
        (STEADY[:5] + STEADY[11:15] + STEADY[25:], (0, 24), ["twice: no recorder ran for 10 s", "for 6 s after 4 s"]),
    ],
)
def test_a_folder_that_was_used_again_has_no_rows_between_and_says_why(load, kept, starts, says):
    problems = load(lines(*kept), events_jsonl=started(*starts)).problems
    told = [problem for problem in problems if "json" not in problem]
    assert len(told) == len(says)
    assert all(words in problem for words, problem in zip(says, told, strict=True))
    assert [problem.startswith("this folder was recorded into") for problem in told] == [True, False][: len(told)]


def test_without_an_end_marker_the_recording_lasts_as_long_as_any_of_its_files(load):
    run = load(lines(*STEADY), host_csv=HOST)
    assert run.duration_s == 60
    assert any("samples.csv ends 31 s before" in problem for problem in run.problems)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\xff\xfe\x00", HEADER.encode(), (HEADER + "\n").encode(), b"\0" * 4096]
)
def test_no_valid_row_is_one_error(load, content):
    with pytest.raises(InputError):
        load(content)


def test_one_row_is_a_run(load):
    run = load(lines(row(0)))
    assert len(run.samples) == 1
    assert run.recording.interval_s is None


def test_a_byte_order_mark_and_crlf_change_nothing(load):
    plain = load(lines(*STEADY))
    windows = load(b"\xef\xbb\xbf" + lines(*STEADY).replace("\n", "\r\n").encode())
    assert plain.samples.equals(windows.samples)


def test_rows_out_of_order_are_sorted(load):
    assert load(lines(*reversed(STEADY))).samples.equals(load(lines(*STEADY)).samples)


def test_of_rows_with_the_same_time_the_last_counts_and_it_is_said(load):
    run = load(lines(*STEADY, row(5, util=7)))
    assert run.samples.loc[run.samples["t_s"] == 5, "gpu_util_pct"].tolist() == [7]
    assert run.problems[0] == "samples.csv: 1 row repeats the time stamp of another and is left out"
    twice = load(lines(*STEADY, row(5, util=7), row(6, util=7)))
    assert twice.problems[0] == "samples.csv: 2 rows repeat the time stamp of another and are left out"


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "[N/A]", "fast", "1e400", "-5", "900", "∞"])
def test_what_is_no_reading_is_missing_not_zero(load, cell):
    run = load(lines(*STEADY, row(30, util=cell), row(31)))
    assert run.samples.loc[run.samples["t_s"] == 30, "gpu_util_pct"].isna().all()
    assert len(run.samples) == 32


def test_a_pressure_a_little_over_all_of_the_time_is_all_of_it_and_much_over_is_none(load):
    pressures = (99, 104, 150, 151, 900)
    rows = [f"{START + t},{100 + t},{pressure},50" for t, pressure in enumerate(pressures)]
    host = lines(*rows, header="wall_s,mono_s,cpu_pressure_pct,cpu_pct")
    run = load(lines(*(row(t) for t in range(5))), host_csv=host)
    known = run.host["cpu_pressure_pct"]
    assert known.dropna().tolist() == [99, 100, 100]
    assert any("2 readings of cpu_pressure_pct are impossible" in problem for problem in run.problems)


def test_text_where_a_number_belongs_is_counted(load):
    run = load(lines(*STEADY, row(30, util="fast"), row(31, util="slow")))
    assert any("2 cells of gpu_util_pct hold no number" in problem for problem in run.problems)


def test_cells_beyond_the_header_are_ignored(load):
    run = load(lines(*STEADY, row(30, util=7) + ",1,2,3,4", row(31)))
    assert run.samples["gpu_util_pct"].tolist() == [*[90] * 30, 7, 90]


def test_a_row_without_a_time_is_left_out_and_said(load):
    run = load(lines(*STEADY, ",,0,90,1000,300", "0,,0,90,1000,300", "text,text,0,1,1,1"))
    assert len(run.samples) == 30
    assert any("no usable time stamp" in problem for problem in run.problems)


def test_an_unknown_column_is_ignored_and_a_missing_one_is_unknown(load):
    run = load("wall_s,colour,gpu,gpu_util_pct\n" + "".join(f"{START + t},red,0,90\n" for t in range(20)))
    assert run.samples["power_w"].isna().all()
    assert "power_w" not in analyse(run).gpus[0].quantities


def test_without_a_gpu_column_there_is_one_gpu_and_it_is_said(load):
    run = load("wall_s,gpu_util_pct\n" + "".join(f"{START + t},90\n" for t in range(20)))
    assert [gpu.index for gpu in run.gpus] == [0]
    assert any("GPU 0" in problem for problem in run.problems)


def test_a_hundred_gpus(load):
    run = load(lines(*(row(t, gpu=gpu) for t in range(20) for gpu in range(100))))
    assert len(run.gpus) == 100


def test_a_clock_that_steps_back_an_hour_does_not_matter(load):
    stepped = [row(t) if t < 15 else row(t, wall=START + t - 3600) for t in range(30)]
    assert load(lines(*stepped)).samples.equals(load(lines(*STEADY)).samples)


def test_a_wall_clock_alone_that_steps_back_an_hour_is_straightened_and_said(load):
    walls = [START + t if t < 15 else START + t - 3600 for t in range(30)]
    run = load("wall_s,gpu,gpu_util_pct\n" + "".join(f"{wall},0,90\n" for wall in walls))
    assert run.duration_s < 40
    assert any("set back" in problem for problem in run.problems)


def test_a_restart_of_the_machine_is_a_gap_between_two_segments(load):
    before = [f"{START + t},{500 + t},0,90,1000,300" for t in range(20)]
    after = [f"{START + 120 + t},{7 + t},0,90,1000,300" for t in range(20)]
    run = load(lines(*before, *after))
    assert run.samples["t_s"].tolist() == [*range(20), *range(120, 140)]
    assert analyse(run).longest_gap_s == pytest.approx(100, abs=1)


def test_a_run_without_run_json_says_what_is_unknown(load):
    run = load(lines(*STEADY))
    assert any("run.json is missing" in problem for problem in run.problems)
    assert run.recording.ended_by is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"gpus": 5, "yolo": 7, "host": [], "start": 3, "end": "now"}', "null"]
)
def test_a_broken_run_json_does_not_stop_the_report(load, text):
    assert len(load(lines(*STEADY), run_json=text).samples) == 30


def test_a_newer_format_is_refused_in_one_sentence(load):
    with pytest.raises(InputError, match="format 99"):
        load(lines(*STEADY), run_json='{"format": 99}')


def test_broken_events_are_counted(load):
    events = (
        '{"wall_s": 1800000003, "mono_s": 103, "kind": "marker", "text": "x"}\n{"wall_s":\nnull\n[1]\n{"kind": "gap"}\n'
    )
    run = load(lines(*STEADY), events_jsonl=events)
    assert [(event.kind, event.t_s) for event in run.events] == [("marker", 3)]
    assert any("4 lines" in problem for problem in run.problems)


@pytest.mark.parametrize(
    "field", ['"epoch": "x"', '"epoch": null', '"time_s": "y", "epoch": 1', '"epoch": 1, "metrics": 5']
)
def test_an_epoch_event_that_makes_no_sense_does_not_stop_the_report(load, field):
    load(lines(*STEADY), events_jsonl=f'{{"wall_s": 1800000003, "mono_s": 103, "kind": "epoch", "run": 1, {field}}}\n')


@pytest.mark.parametrize("name", ["wall_s", "mono_s"])
@pytest.mark.parametrize("value", ["{}", "[1]", '"1800000003"', "NaN", "Infinity", "-Infinity", "true", "9" * 400])
def test_an_event_with_a_time_that_is_none_is_left_out_and_counted(load, name, value):
    times = {"wall_s": "1800000003", "mono_s": "103", name: value}
    event = f'{{"wall_s": {times["wall_s"]}, "mono_s": {times["mono_s"]}, "kind": "marker", "text": "x"}}\n'
    run = load(lines(*STEADY), events_jsonl=event)
    assert run.events == ()
    assert any("1 line could" in problem for problem in run.problems)


def test_an_event_without_the_monotonic_clock_is_placed_by_the_wall(load):
    event = '{"wall_s": 1800000003, "mono_s": null, "kind": "marker", "text": "x"}\n'
    assert [event.t_s for event in load(lines(*STEADY), events_jsonl=event).events] == [3]


@pytest.mark.parametrize("kind", ["5", "null", "[]", "{}"])
def test_an_event_of_no_kind_is_left_out(load, kind):
    assert load(lines(*STEADY), events_jsonl=f'{{"wall_s": 1800000003, "mono_s": 103, "kind": {kind}}}\n').events == ()


@pytest.mark.parametrize("name", ["events_jsonl", "run_json"])
def test_json_that_is_nested_without_end_does_not_stop_the_report(load, name):
    run = load(lines(*STEADY), **{name: '{"wall_s": ' + "[" * 200_000})
    assert len(run.samples) == 30
    assert any(name.split("_")[0] in problem for problem in run.problems)


@pytest.mark.parametrize(
    "name", ["epoch", "time_s", "run", "metrics", "path", "code", "gpu", "status", "text", "training", "part"]
)
def test_a_field_of_another_type_does_not_stop_the_report(load, name):
    kinds = ("epoch", "yolo_run", "xid", "kernel", "kernel_log", "xid_events", "nvml_error", "gap", "tensorboard")
    events = []
    for value in ("NaN", "Infinity", "1e308", "9" * 400, "{}", '["x"]', '"\\ud800"', "true", "-5"):
        fields = {"epoch": "1", "time_s": "3", "code": "31", "training": "1", "part": '"epoch"', name: value}
        said = ", ".join(f'"{key}": {each}' for key, each in fields.items())
        events += [f'{{"wall_s": 1800000003, "mono_s": 103, "kind": "{kind}", {said}}}\n' for kind in kinds]
    load(lines(*STEADY), events_jsonl="".join(events))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "0", "-1", "1e300", "9" * 400, '"1"', "true", "{}"])
def test_an_interval_that_cannot_be_is_measured(load, value):
    assert load(lines(*STEADY), run_json=f'{{"interval_s": {value}}}').recording.interval_s == 1


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1", "1e300", "9" * 400, '"8"', "true"])
def test_an_amount_that_cannot_be_is_unknown(load, value):
    facts = f'{{"host": {{"cores": {value}, "memory_mib": {value}}}, "gpus": [{{"index": {value}}}]}}'
    run = load(lines(*STEADY), run_json=facts)
    assert (run.recording.cores, run.recording.memory_mib) == (None, None)
    assert [gpu.index for gpu in run.gpus] == [0]


@pytest.mark.parametrize("end", ['{"wall_s": NaN}', '{"wall_s": 1e300}', '{"wall_s": 1800000040, "mono_s": {}}'])
def test_an_end_that_cannot_be_does_not_stretch_the_run(load, end):
    assert load(lines(*STEADY), run_json=f'{{"end": {end}}}').duration_s <= 40


@pytest.mark.parametrize("gpu", ["-1", "0.5", "1e300", "70000"])
def test_a_row_of_no_possible_gpu_is_left_out_and_said(load, gpu):
    run = load(lines(*STEADY, row(30, gpu=gpu)))
    assert [gpu.index for gpu in run.gpus] == [0]
    assert run.problems[0] == "samples.csv: 1 row has no usable time stamp or GPU and is left out"
    several = load(lines(*STEADY, row(30, gpu=gpu), row(31, gpu=gpu)))
    assert several.problems[0] == "samples.csv: 2 rows have no usable time stamp or GPU and are left out"


RING = "wall_s,mono_s,gpu,gpu_util_pct,power_w\n"


@pytest.mark.parametrize("gpu", ["", "-1"])
def test_a_file_whose_rows_have_no_possible_gpu_is_one_error(load, gpu):
    with pytest.raises(InputError, match="not one valid row"):
        load(lines(row(0, gpu=-1), row(1, gpu=gpu)))


def test_ring_rows_of_one_moment_are_one_reading(load):
    rows = ["1800000002,102,0,50,", "1800000001,101,0,40,", "1800000001,101,0,,300", "1800000001,101,1,60,"]
    ring = load(lines(*STEADY), ring_csv=RING + "\n".join([*rows, ""])).ring
    assert ring.fillna(-1).to_numpy().tolist() == [[1, 0, 40, 300], [2, 0, 50, -1], [1, 1, 60, -1]]


@pytest.mark.filterwarnings("error")
def test_ring_rows_that_are_all_impossible_alike_are_left_out_without_a_word_of_numpy(load):
    run = load(lines(*STEADY), ring_csv=RING + "1e+300,1e+300,1e+300,40,\n" * 100)
    assert len(run.ring) == 0
    assert "ring.csv: 100 rows have no usable time stamp or GPU and are left out" in run.problems


def test_what_the_driver_kept_from_before_the_recording_holds_at_its_start(load):
    before = [f"{START - 0.6},99.4,0,10,", f"{START - 0.4},99.6,0,20,", f"{START + 0.2},100.2,0,40,"]
    ring = load(lines(*STEADY), ring_csv=RING + "\n".join([*before, ""])).ring
    assert ring[["t_s", "gpu_util_pct"]].to_numpy().tolist() == [[0, 20], [pytest.approx(0.2), 40]]


def test_what_was_read_ahead_is_placed_by_the_clock_of_its_boot(load):
    again = [f"{START + 1000 + t},{5 + t},0,50,1000,300.0" for t in range(10)]  # the machine was started anew
    ring = RING + f"{START + 2},102,0,40,\n{START + 1003},8,0,60,\n"
    host = lines(f"{START + 4},104,50", f"{START + 1004},9,60", header="wall_s,mono_s,cpu_pct")
    run = load(lines(*STEADY, *again), ring_csv=ring, host_csv=host)
    assert run.samples["t_s"].max() == 1009
    assert run.ring["t_s"].tolist() == [2, 1003]
    assert run.host["t_s"].tolist() == [4, 1004]
    (hole,) = [problem for problem in run.problems if ".csv" in problem]
    assert hole.startswith("samples.csv has no rows for 16 min 10 s after 29 s")  # between the boots, and nothing else


def test_files_that_are_not_there_are_no_problem_and_a_folder_in_their_place_is_said(load, tmp_path):
    (about_run_json,) = load(lines(*STEADY)).problems
    (tmp_path / "run" / "ring.csv").mkdir()
    (problem,) = set(load(lines(*STEADY)).problems) - {about_run_json}
    assert "ring.csv: Is a directory" in problem


def test_a_ring_of_a_million_readings_loads_in_seconds(tmp_path):
    path = tmp_path / "ring.csv"
    path.write_text(RING + "".join(f"{START + t / 8:.3f},{100 + t / 8:.3f},{t % 8},50,\n" for t in range(1_000_000)))
    began = time.perf_counter()
    frame, problems = load_ring(path, RunClock((Boot(START, 100.0, 0.0),)))
    assert (len(frame), problems) == (1_000_000, ())
    assert time.perf_counter() - began < 15.0  # 0.9 s on two cores


def test_a_missing_path_is_one_error(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        load_run(tmp_path / "nowhere")


def test_a_bare_samples_csv_is_a_run(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(lines(*STEADY))
    assert len(load_run(path).samples) == 30


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=400) | st.text(st.sampled_from(list('0123456789.,\n"\r-eE nan')), max_size=400).map(str.encode)
)
def test_no_content_whatever_is_anything_but_a_run_or_one_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "samples.csv"
    path.write_bytes(HEADER.encode() + b"\n" + content)
    try:
        run = load_run(path)
    except InputError:
        return
    analyse(run)


def test_a_temperature_a_power_and_a_clock_that_no_gpu_has_are_missing(tmp_path):
    rows = "".join(f"{1000 + n},{n},0,50,5000,1000000,9e9\n" for n in range(5))
    header = "wall_s,mono_s,gpu,gpu_util_pct,temperature_c,power_w,sm_clock_mhz\n"
    (tmp_path / "samples.csv").write_text(header + rows)
    run = load_run(tmp_path)
    assert run.samples[["temperature_c", "power_w", "sm_clock_mhz"]].isna().all(axis=None)
    assert any("5 readings of temperature_c are impossible" in problem for problem in run.problems)


def test_of_a_log_of_another_tool_it_is_said_how_it_becomes_a_run(tmp_path):
    log = tmp_path / "smi.csv"
    log.write_text("timestamp, index, utilization.gpu [%]\n2026/11/28 05:30:11.000, 0, 45 %\n")
    with pytest.raises(InputError, match="becomes a run by `gpu-report import LOG --output run`"):
        load_run(log)
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text("{}")
    (run / "samples.csv").write_text(HEADER + "\n")
    with pytest.raises(InputError, match=r"it is no samples CSV$"):
        load_run(run)
