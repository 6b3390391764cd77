"""Import of TensorBoard's event files: what stands in the run folder, and what the report says of it."""

import csv
import json
import os
import struct
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner
from support.runs import START, make_run, readings
from support.tensorboard import START_S, image_record, scalar_event, write_by_torch, yolo_scalars

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.cli import cli
from gpu_report.errors import InputError, UsageError
from gpu_report.imports.formats.tensorboard_tags import gpu_tag
from gpu_report.imports.import_logs import import_logs
from gpu_report.load import load_run
from gpu_report.model import Options
from gpu_report.render.tensorboard import render_event_file
from gpu_report.tfevents.framing import pack_record

ENDS = [20 + 36 * epoch + 34.5 for epoch in range(5)]  # of rows of results.csv: 1.5 s of checkpoint follow
UTIL, MEMORY = "GPU/Utilization (%)", "GPU/Memory Used (GB)"
TRAINING = yolo_scalars(range(1, 6), START_S + 20)
# A callback that many tutorials have: at the start of each epoch, which it counts from 0.
AT_EPOCH_STARTS = [
    (tag, value, epoch, START_S + 20 + 36 * epoch + later)
    for epoch in range(5)
    for tag, value, later in ((UTIL, 0.0, 0.01), (MEMORY, 3.5, 0.02))
]


@pytest.fixture
def output(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def yolo(tmp_path):
    """The folder of a YOLO run with its events in it."""
    folder = tmp_path / "train"
    write_by_torch(folder, TRAINING)
    (folder / "args.yaml").write_text("epochs: 5\nmodel: yolo26n.pt\n")
    return folder


def rows(folder):
    return list(csv.DictReader((folder / schema.SAMPLES_CSV).read_text().splitlines()))


def phases(folder):
    return [(p.name, p.epoch, round(p.start_t_s, 3), round(p.end_t_s, 3), p.source) for p in report(folder).phases]


def report(folder):
    return analyse(load_run(folder), Options())


def test_epochs_end_when_their_events_were_written(yolo, output):
    note, missing = import_logs([yolo], output)
    assert note == "The events have no readings of a GPU: the report has epochs alone."
    assert missing.endswith("train holds no results.csv.")
    found = [phase for phase in phases(output) if phase[0] in {"train", "validation"}]
    assert found[2:4] == [("train", 2, 56, 86, "TensorBoard"), ("validation", 2, 86, 92, "TensorBoard")]
    assert found[-1] == ("validation", 5, 194, 200, "TensorBoard")
    run = load_run(output)
    assert (run.yolo_runs[0].anchor, run.yolo_runs[0].args["epochs"]) == ("tensorboard", 5)
    assert [row.epoch for row in run.epoch_rows] == [1, 2, 3, 4, 5]
    assert run.epoch_rows[3].metrics["train/box_loss"] == 0.25
    assert run.epoch_rows[3].metrics["metrics/mAP50-95(B)"] == 0.4
    assert run.problems == (note.removesuffix("."),)
    assert report(output).findings == ()


def test_a_file_alone_will_do(tmp_path, output):
    path = write_by_torch(tmp_path / "logs", TRAINING)
    import_logs([path], output)
    assert len(load_run(output).epoch_rows) == 5


def test_a_results_csv_separates_validation_from_checkpoint(yolo, output):
    ends = [
        20 + 36 * epoch + 34.5 for epoch in range(5)
    ]  # 1.5 s of checkpoint; `time` counts from the training's start
    text = "epoch,time,train/box_loss\n" + "".join(f"{epoch},{end_s},1\n" for epoch, end_s in enumerate(ends, 1))
    (yolo / "results.csv").write_text(text)
    os.utime(yolo / "results.csv", (START_S + 1e6,) * 2)  # copied later: its time says nothing
    import_logs([yolo], output)
    run = load_run(output)
    assert run.yolo_runs[0].anchor == "tensorboard"
    second = [phase for phase in phases(output) if phase[1] == 2]
    assert [name for name, *_ in second] == ["train", "validation"]  # as late as can be: the shortest checkpoint is 0
    write_results(yolo, ENDS, START_S + ENDS[-1])
    import_logs([yolo], output.with_name("by-file-time"))
    assert load_run(output.with_name("by-file-time")).yolo_runs[0].anchor == "file-time"
    second = [phase[:4] for phase in phases(output.with_name("by-file-time")) if phase[1] == 2]
    assert second == [("train", 2, 56, 86), ("validation", 2, 86, 90.5), ("checkpoint", 2, 90.5, 92)]


def test_one_reading_an_epoch_is_imported_and_said_to_be_no_more(tmp_path, output):
    write_by_torch(tmp_path / "logs", sorted([*TRAINING, *AT_EPOCH_STARTS], key=lambda each: each[3]))
    notes = import_logs([tmp_path / "logs"], output)
    assert "one reading about every 36 s" in notes[0]
    assert "nearly always idle" in notes[0]
    read = [row for row in rows(output) if row["gpu_util_pct"]]
    assert [(row["gpu_util_pct"], row["memory_used_mib"]) for row in read] == [("0", "3584")] * 5
    run = load_run(output)
    assert notes[0].removesuffix(".") in run.problems
    assert run.recording.interval_s == 1
    found = analyse(run, Options())
    assert not [finding for finding in found.findings if finding.severity != "info"]  # idle readings prove nothing
    assert found.coverage < 0.1


def test_readings_every_second_are_a_recording(tmp_path, output):
    values = [(UTIL, 80.0, at, START_S + at) for at in range(120)]
    write_by_torch(tmp_path / "logs", values)
    assert import_logs([tmp_path / "logs"], output) == ()
    assert report(output).gpus[0].quantities["gpu_util_pct"].mean == 80
    assert load_run(output).recording.interval_s == 1


def test_what_export_writes_comes_back(tmp_path, output):
    util = [readings((80, 60)), readings((40, 60))]
    (tmp_path / "events.out.tfevents.gpu-report").write_bytes(render_event_file(analyse(make_run(util), Options())))
    import_logs([tmp_path / "events.out.tfevents.gpu-report"], output)
    run = load_run(output)
    assert run.start_wall_s == START
    assert [run.samples_of(gpu)["gpu_util_pct"].mean() for gpu in (0, 1)] == [80, 40]


def test_resumed_trainings_are_one_run(tmp_path, output):
    write_by_torch(tmp_path / "train", yolo_scalars([1, 2, 3], START_S + 20))
    write_by_torch(tmp_path / "train", yolo_scalars([3, 4], START_S + 500), begun_s=START_S + 490)
    import_logs([tmp_path / "train"], output)
    found = load_run(output).epoch_rows
    assert [(row.segment, row.epoch) for row in found] == [(1, 1), (1, 2), (1, 3), (2, 3), (2, 4)]
    assert found[3].start_t_s == 490


def test_the_same_file_twice_counts_once(yolo, output):
    (path,) = yolo.glob("*tfevents*")
    import_logs([yolo, path], output)
    assert len(load_run(output).epoch_rows) == 5


def test_a_file_full_of_images_that_is_damaged_and_cut_has_its_epochs(yolo, output):
    (path,) = yolo.glob("*tfevents*")
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(data[:middle] + image_record(3_000_000) + data[middle:-5])
    notes = import_logs([yolo], output)
    assert any("damaged" in note for note in notes)
    assert any("cut in its last record" in note for note in notes)
    assert len(load_run(output).epoch_rows) >= 4


@pytest.mark.parametrize("hostile", ["nan times", "steps", "many gpus", "long tags"])
def test_hostile_values_do_no_harm(tmp_path, output, hostile):
    one = struct.pack("<f", 50.0)
    events = {
        "nan times": [scalar_event(UTIL, one, 1, wall_s) for wall_s in (float("nan"), -1e300, 1e300, START_S)],
        "steps": [scalar_event("train/box_loss", one, step, START_S + 1) for step in (-(2**62), 2**62, 0, 1)],
        "many gpus": [scalar_event(f"gpu{gpu}/power_w/mean", one, 1, START_S) for gpu in range(0, 65_000, 100)],
        "long tags": [scalar_event("train/" + "x" * length, one, 1, START_S) for length in (10, 100_000)],
    }[hostile]
    (tmp_path / "events.out.tfevents.1").write_bytes(b"".join(map(pack_record, events)))
    import_logs([tmp_path / "events.out.tfevents.1"], output)
    assert len(load_run(output).gpus) <= 256
    report(output)


def test_what_holds_nothing_for_us_is_refused(tmp_path, output):
    path = write_by_torch(tmp_path / "logs", [("accuracy", 0.5, 1, START_S)])
    for named in (path, tmp_path / "logs"):
        with pytest.raises(InputError, match="neither epochs of YOLO nor readings of a GPU"):
            import_logs([named], output)
    with pytest.raises(InputError, match=r"not-there cannot be read \(No such file"):
        import_logs([tmp_path / "not-there"], output)
    assert not output.exists()


def test_a_run_folder_of_our_own_is_to_be_rendered(tmp_path, output):
    ours = tmp_path / "my run"
    ours.mkdir()
    (ours / schema.RUN_JSON).write_text("{}")
    with pytest.raises(InputError, match=f"needs no import: run `gpu-report render report.html '{ours}'`"):
        import_logs([ours], output)


def test_an_output_that_is_taken_is_refused(yolo, output):
    import_logs([yolo], output)
    with pytest.raises(UsageError, match="holds a run already"):
        import_logs([yolo], output)


@pytest.mark.parametrize(
    ("tag", "gpu", "column", "value"),
    [
        (UTIL, 0, "gpu_util_pct", 2.0),
        (MEMORY, 0, "memory_used_mib", 2048.0),
        ("GPU1/Memory Used (MiB)", 1, "memory_used_mib", 2.0),
        ("gpu 3/power (W)", 3, "power_w", 2.0),
        ("gpu0/sm_clock_mhz/mean", 0, "sm_clock_mhz", 2.0),
    ],
)
def test_tags_of_a_gpu(tag, gpu, column, value):
    found = gpu_tag(tag)
    assert (found.gpu, found.column, found.converted(2.0)) == (gpu, column, value)


@pytest.mark.parametrize(
    "tag", ["", "GPU/", "GPU/Utilization", "gpu99999/power (W)", "gpu0/loss/mean", "CPU/Utilization (%)"]
)
def test_tags_of_something_else(tag):
    assert gpu_tag(tag) is None


def smi_log(folder, seconds=240):
    """Write a log of one GPU that works from second 20 on."""
    begin = datetime.fromtimestamp(START_S, UTC)
    stamps = [f"{begin + timedelta(seconds=at):%Y/%m/%d %H:%M:%S}.000" for at in range(seconds)]
    rows = [f"{stamp}, 0, {90 if at > 20 else 0} %, 5000 MiB\n" for at, stamp in enumerate(stamps)]
    (folder / "smi.csv").write_text("timestamp, index, utilization.gpu [%], memory.used [MiB]\n" + "".join(rows))
    return folder / "smi.csv"


def write_results(yolo, ends, mtime_s):
    """Write results.csv with its rows at these seconds of the training, and the file's time."""
    rows = [f"{epoch},{end_s},1\n" for epoch, end_s in enumerate(ends, 1)]
    (yolo / "results.csv").write_text("epoch,time,train/box_loss\n" + "".join(rows))
    os.utime(yolo / "results.csv", (mtime_s,) * 2)


def test_beside_a_log_the_events_in_yolo_s_folder_place_its_epochs(yolo, tmp_path, output):
    times = [20 + 36 * epoch + 34.5 for epoch in range(5)]
    (yolo / "results.csv").write_text(
        "epoch,time,train/box_loss\n" + "".join(f"{e},{t},1\n" for e, t in enumerate(times, 1))
    )
    os.utime(yolo / "results.csv", (START_S + 1e7,) * 2)  # its file time was lost when it was copied
    assert not [note for note in import_logs([smi_log(tmp_path)], output, timezone="UTC", yolo=yolo) if "fit" in note]
    run = load_run(output)
    assert run.yolo_runs[0].anchor == "tensorboard"
    assert run.yolo_runs[0].uncertainty_s is None
    assert ("train", 2, 56, 86, "TensorBoard") in phases(output)


def test_events_of_another_day_place_nothing(yolo, tmp_path, output):
    (yolo / "results.csv").write_text("epoch,time,train/box_loss\n1,50,1\n2,86,1\n")
    (path,) = yolo.glob("*tfevents*")
    path.unlink()
    write_by_torch(yolo, yolo_scalars([1, 2], START_S + 86_400 * 3), begun_s=START_S + 86_400 * 3)
    import_logs([smi_log(tmp_path)], output, timezone="UTC", yolo=yolo)
    assert load_run(output).yolo_runs[0].anchor != "tensorboard"


def test_events_that_cannot_be_read_are_left_out_and_said(yolo, tmp_path, output):
    (path,) = yolo.glob("*tfevents*")
    path.write_bytes(b"no events")
    notes = import_logs([smi_log(tmp_path)], output, timezone="UTC", yolo=yolo)
    assert any(note.startswith("Left out: ") and "no event of TensorBoard" in note for note in notes)


class TestCommand:
    def run(self, *arguments):
        return CliRunner().invoke(cli, ["import", *map(str, arguments)])

    @pytest.mark.parametrize("flags", [[], ["--from", "auto"], ["--from", "tensorboard"]])
    def test_events_are_known_by_their_name_or_their_folder(self, yolo, output, flags):
        assert self.run(yolo, "--output", output, *flags).exit_code == 0
        (path,) = yolo.glob("*tfevents*")
        assert self.run(path, "--output", output.with_name("other"), *flags).exit_code == 0
        assert len(load_run(output).epoch_rows) == len(load_run(output.with_name("other")).epoch_rows) == 5

    def test_events_among_other_logs_are_one_run(self, yolo, tmp_path, output):
        done = self.run(yolo, smi_log(tmp_path), "--output", output)
        assert done.exit_code == 0, done.output
        assert json.loads((output / schema.RUN_JSON).read_text())["source"] == "nvidia-smi and TensorBoard"
        assert [phase for phase in phases(output) if phase[0] == "train"]

    def test_a_training_s_start_is_in_the_events(self, yolo, output):
        done = self.run(yolo, "--output", output, "--train-start", "1")
        assert "leave out --train-start" in str(done.exception)

    def test_run_json_names_the_source(self, yolo, output):
        self.run(yolo, "--output", output)
        assert json.loads((output / schema.RUN_JSON).read_text())["source"] == "TensorBoard"
