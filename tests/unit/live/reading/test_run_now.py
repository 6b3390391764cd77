"""What is known of a run at a moment, and what is not known any more."""

import shutil

import pytest
from support.growing import START_S, GrowingRun

from gpu_report.live.alarms import alarms
from gpu_report.live.reading import samples
from gpu_report.live.reading.run_now import RunNow
from gpu_report.live.web.status import status


def said(run, now_s):
    return status(run, now_s, alarms(run, now_s), None, 3.6)


def test_what_was_sampled_last_is_what_is_now(growing, looked_at):
    growing.rows(0, 90, seconds=30)
    run, now_s = looked_at(growing, 30)
    now = said(run, now_s)
    (gpu,) = now["gpus"]
    assert now["state"] == "recording"
    assert (gpu["gpu_util_pct"], gpu["age_s"], gpu["memory_total_mib"]) == (90.0, 1.0, 80_000.0)
    assert gpu["energy_used_j"] == pytest.approx(29 * 300)
    assert now["spent"] == {"seconds": 29.0, "gpu_seconds": 29.0, "energy_j": 8700.0, "money": 0.029}


def test_a_reading_that_failed_is_missing_and_does_not_become_the_one_before(growing, looked_at):
    growing.rows(0, 90, seconds=30)
    growing.rows(30, None, power_w=None)
    (gpu,) = said(*looked_at(growing, 31))["gpus"]
    assert gpu["gpu_util_pct"] is None
    assert gpu["power_w"] is None
    assert gpu["memory_used_mib"] == 8000.0


def test_no_reading_outlives_its_recorder(growing, looked_at):
    growing.rows(0, 90, seconds=30)
    now = said(*looked_at(growing, 300))
    (gpu,) = now["gpus"]
    assert now["state"] == "recorder gone"
    assert gpu["gpu_util_pct"] is None
    assert gpu["idle_s"] is None
    assert gpu["age_s"] == 271.0
    assert now["last_sample"].endswith("Z")
    assert now["alarms"] == []


def test_the_end_of_a_recording_is_no_loss_of_it(growing, looked_at):
    growing.rows(0, 90, seconds=30)
    growing.event("command_ended", 30, exit_code=3)
    growing.event("recording_ended", 30, ended_by="command", signal=None, exit_code=3)
    now = said(*looked_at(growing, 3000))
    assert now["state"] == "ended"
    assert now["run"]["exit_code"] == 3


def test_a_recording_that_goes_on_in_the_same_folder_is_one_again(growing, looked_at):
    growing.rows(0, 90, seconds=30)
    growing.event("recording_ended", 30, ended_by="signal", signal="SIGINT", exit_code=None)
    growing.event("recording_started", 60, segment=2)
    growing.rows(60, 80)
    assert said(*looked_at(growing, 61))["state"] == "recording"


def test_a_folder_that_vanishes_is_said_and_one_in_its_place_is_another_run(growing, looked_at):
    growing.rows(0, 90, seconds=30)
    run, now_s = looked_at(growing, 30)
    shutil.rmtree(growing.folder)
    run.look()
    assert said(run, now_s)["state"] == "folder gone"
    other = GrowingRun(growing.folder, gpus=2)
    other.rows(100, 10)
    run.look()
    now = said(run, START_S + 101)
    assert now["state"] == "recording"
    assert [gpu["gpu_util_pct"] for gpu in now["gpus"]] == [10.0, 10.0]


def test_a_long_run_is_known_at_once_and_its_past_comes_after(growing, monkeypatch):
    growing.rows(0, 90, seconds=500)
    growing.rows(500, 2, seconds=20)
    growing.rows(520, 90, seconds=2000)
    monkeypatch.setattr(samples, "END_BYTES", 20_000)
    run = RunNow(growing.folder)
    run.look()
    (gpu,) = run.gpus
    assert gpu.newest["gpu_util_pct"] == 90.0
    assert gpu.start_s == START_S
    while run.samples.is_behind:
        run.look()
    rows = gpu.drawn["gpu_util_pct"].rows()
    assert min(row[1] for row in rows) == 2.0
    assert rows[0][0] == START_S
    assert gpu.energy_j == pytest.approx(2519 * 300, rel=0.01)  # the row that was cut in two is left out


def test_the_time_between_two_recordings_is_not_spent(growing, looked_at):
    growing.rows(0, 90, seconds=30)
    growing.event("recording_started", 600, segment=2)
    growing.rows(600, 90, seconds=11)
    spent = said(*looked_at(growing, 611))["spent"]
    assert (spent["seconds"], spent["energy_j"]) == (39.0, 39 * 300.0)


def test_garbage_in_every_file_is_survived(growing, looked_at):
    growing.rows(0, 90, seconds=30)
    with (growing.folder / "samples.csv").open("ab") as file:
        file.write(b"\xff\xfe,,,\n1e400,nan,0\n-5,1,99999999999\nx\n,\n" + b"\0" * 1000 + b"\n")
    with (growing.folder / "events.jsonl").open("ab") as file:
        file.write(
            b'{"kind": 5}\n[]\n{"wall_s": 1e99, "kind": "xid"}\n{"wall_s": 1, "kind": "xid", "code": {}}\nnull\n'
        )
    (growing.folder / "inside" / "7.jsonl").write_bytes(b'{"wall_s": 1, "kind": "run", "task": 5, "rank": []}\n\x00\n{')
    (growing.folder / "run.json").write_text('{"gpus": [1, {"index": "x"}], "host": 5, "interval_s": "soon"}')
    growing.rows(30, 88)
    now = said(*looked_at(growing, 31))
    assert now["gpus"][0]["gpu_util_pct"] == 88.0


def test_the_training_is_followed_through_its_epochs(growing, looked_at):
    growing.inside("run", 0, task="train", rank=0)
    growing.inside("settings", 1, model="yolo26n.yaml", epochs=10, batches=50)
    for epoch in (1, 2, 3):
        begin = 10 + 30 * (epoch - 1)
        growing.inside("phase", begin, name="train", detail="", epoch=epoch)
        growing.inside("epoch", begin + 20, epoch=epoch, start_wall_s=START_S + begin, batches=50, data_wait_s=5.0)
        growing.inside("phase", begin + 20, name="validation", detail="", epoch=epoch)
        growing.inside("phase", begin + 28, name="checkpoint", detail="", epoch=epoch)
    growing.inside("phase", 100, name="train", detail="", epoch=4)
    growing.inside("progress", 105, batches=12, data_wait_s=0.1)
    growing.rows(100, 90, seconds=10)
    training = said(*looked_at(growing, 110))["training"]
    assert (training["epoch"], training["epochs"], training["phase"]) == (4, 10, "train")
    assert (training["batch"], training["batches"]) == (12, 50)
    assert training["epoch_s"] == 30.0
    assert training["left_s"] == 6 * 30 + 20
    assert training["data_wait_share"] == 0.25
    assert training["data_wait_s"] == 15.0


def test_settings_that_come_later_take_none_of_the_first_away(growing, looked_at):
    """As those of the first batch do."""
    growing.inside("run", 0, task="train", rank=0)
    growing.inside("settings", 1, model="yolo26n.yaml", epochs=10, batches=50)
    growing.inside("settings", 2, batch_tensors=4, batch_tensors_mib=0.1)
    growing.rows(0, 90, seconds=5)
    training = said(*looked_at(growing, 6))["training"]
    assert (training["model"], training["epochs"], training["batches"]) == ("yolo26n.yaml", 10, 50)


def test_the_first_rank_of_the_newest_training_speaks(growing, looked_at):
    for rank, pid in ((0, 11), (1, 12)):
        growing.inside("run", 5, pid=pid, task="train", rank=rank)
        growing.inside("settings", 6, pid=pid, epochs=3 + rank, model="m")
    growing.inside("run", 1, pid=10, task="train", rank=0)
    growing.inside("settings", 2, pid=10, epochs=99, model="old")
    growing.inside("run", 9, pid=13, task="predict", rank=0)
    growing.rows(5, 90)
    assert said(*looked_at(growing, 6))["training"]["epochs"] == 3
