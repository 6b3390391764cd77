"""What the live output knows: read from the ends of files that grow, are torn, cut, or not there at all."""

import json
import time

import pytest

from gpu_report import run_folder, schema
from gpu_report.notebook import tail
from gpu_report.notebook.live_state import LastEpoch, LiveReader
from gpu_report.notebook.tail import BoundedTail


class Recorder:
    """Writes what a recorder and our callbacks write, and holds the folder's lock."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "inside").mkdir()
        self.samples = run_folder.csv_appender(folder, schema.SAMPLES_CSV, schema.SAMPLES_COLUMNS, claim=True)
        run_folder.write_json(folder / schema.RUN_JSON, {"pid": 4321, "interval_s": 1.0})
        self.now = time.time(), time.monotonic()

    def sample(self, ago_s, pct, gpu=0, mib=2048.0):
        wall_s, mono_s = (clock - ago_s for clock in self.now)
        row = {"wall_s": wall_s, "mono_s": mono_s, "gpu": gpu, "gpu_util_pct": pct, "memory_used_mib": mib}
        self.samples.write(run_folder.format_row(schema.SAMPLES_COLUMNS, row))

    def line(self, kind, file="7.jsonl", ago_s=0.0, **fields):
        stamps = {"wall_s": self.now[0] - ago_s, "mono_s": self.now[1] - ago_s}
        with (self.folder / "inside" / file).open("a") as out:
            out.write(json.dumps({**stamps, "kind": kind, **fields}) + "\n")


@pytest.fixture
def recorder(tmp_path):
    made = Recorder(tmp_path)
    yield made
    made.samples.close()


def test_busy_is_a_mean_of_the_last_half_minute_of_each_gpu(recorder):
    for ago_s in range(60, -1, -1):
        recorder.sample(ago_s, 100 if ago_s > 30 else 50)
        recorder.sample(ago_s, None if ago_s < 5 else 80, gpu=1, mib=None)
    state = LiveReader(recorder.folder, recorder.now[1]).state()
    assert [(gpu.index, gpu.busy_pct, gpu.memory_used_mib) for gpu in state.gpus] == [
        (0, 50.0, 2048.0),
        (1, 80.0, None),
    ]
    assert (state.is_recorded, state.is_old) == (True, False)
    assert state.read_wall_s == pytest.approx(recorder.now[0], abs=0.01)


def test_since_when_a_gpu_is_nearly_idle_is_known_after_ten_seconds(recorder):
    for ago_s in range(20, 8, -1):
        recorder.sample(ago_s, 90)
    for ago_s in range(8, -1, -1):
        recorder.sample(ago_s, 3)
    reader = LiveReader(recorder.folder, recorder.now[1])
    assert reader.state().gpus[0].low_since_wall_s is None
    for later_s in range(1, 6):
        recorder.sample(-later_s, 3)
    assert reader.state().gpus[0].low_since_wall_s == pytest.approx(recorder.now[0] - 8, abs=0.01)
    recorder.sample(-6, 60)
    assert reader.state().gpus[0].low_since_wall_s is None


def test_a_reading_of_some_time_ago_is_old_by_the_interval_of_the_recording(recorder):
    recorder.sample(20, 90)
    assert LiveReader(recorder.folder, recorder.now[1]).state().is_old
    run_folder.write_json(recorder.folder / schema.RUN_JSON, {"pid": 4321, "interval_s": 30.0})
    assert not LiveReader(recorder.folder, recorder.now[1]).state().is_old


def test_that_nobody_records_any_more_is_seen(recorder):
    recorder.sample(1, 90)
    reader = LiveReader(recorder.folder, recorder.now[1])
    assert reader.state().is_recorded
    recorder.samples.close()
    assert not reader.state().is_recorded
    recorder.samples = run_folder.csv_appender(recorder.folder, schema.SAMPLES_CSV, schema.SAMPLES_COLUMNS)


def test_epochs_are_those_of_the_main_process_of_this_training(recorder):
    recorder.line("run", "0.jsonl", ago_s=60, task="train", rank=0)
    recorder.line("settings", "0.jsonl", ago_s=60, epochs=99)  # of a training before, in the same process
    reader = LiveReader(recorder.folder, recorder.now[1] - 1)
    assert (reader.state().epochs, reader.state().phase) == (None, "")
    for rank in (0, 1):
        recorder.line("run", f"{rank}.jsonl", task="train", rank=rank)
        recorder.line("settings", f"{rank}.jsonl", epochs=12 + rank)
        recorder.line("phase", f"{rank}.jsonl", name="train", epoch=3 + rank)
    recorder.line("epoch", "0.jsonl", epoch=2, start_mono_s=recorder.now[1] - 10, data_wait_s=4.0)
    state = reader.state()
    assert (state.epoch, state.epochs, state.phase) == (3, 12, "train")
    assert state.last_epoch == LastEpoch(2, pytest.approx(10.0), 4.0)
    recorder.line("run", "0.jsonl", task="predict", rank=0)
    recorder.line("phase", "0.jsonl", name="predict", epoch=None)
    assert reader.state().phase == "train"


def test_why_no_gpu_is_read_is_known(recorder):
    event = {"wall_s": 1.0, "mono_s": 1.0, "kind": "nvml_unavailable", "reason": "no driver"}
    (recorder.folder / schema.EVENTS_JSONL).write_text(json.dumps(event) + "\n")
    assert LiveReader(recorder.folder, recorder.now[1]).state().no_gpu == "no driver"


def test_what_cannot_be_read_is_left_out(recorder):
    recorder.sample(1, 70)
    (recorder.folder / schema.SAMPLES_CSV).open("ab").write(
        b"nan,1,2\n,,,\n\xff\xfe,\n1e999,1,0" + b"," * 24 + b"\n12,3"
    )
    (recorder.folder / "inside" / "1.jsonl").write_bytes(b'[1]\nnull\n{"kind": 3}\n' + b"[" * 9999 + b"\n{")
    (recorder.folder / schema.EVENTS_JSONL).mkdir()
    assert [gpu.busy_pct for gpu in LiveReader(recorder.folder, recorder.now[1]).state().gpus] == [70.0]
    assert LiveReader(recorder.folder / "nowhere", 0.0).state().gpus == ()


def test_a_tail_reads_whole_lines_once_and_of_a_long_file_the_newest(tmp_path, monkeypatch):
    monkeypatch.setattr(tail, "MOST_BYTES", 20)
    path = tmp_path / "f"
    lines = BoundedTail(path)
    assert lines.lines() == []
    path.write_bytes(b"one\ntw")
    assert lines.lines() == [b"one"]
    assert lines.lines() == []
    path.open("ab").write(b"o\nthree\n")
    assert lines.lines() == [b"two", b"three"]
    path.open("ab").write(b"\n".join(b"%04d" % n for n in range(100)) + b"\n")
    assert lines.lines() == [b"0097", b"0098", b"0099"]
    path.write_bytes(b"anew\n")
    assert lines.lines() == [b"anew"]
