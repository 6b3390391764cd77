"""Played trainings whose images come slowly, from where a disk's readings say nothing, or less than before."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.matching import is_alarm
from support.played_folder import write_played
from support.played_training import Low, Played
from support.played_yolo import MONO_S, PID, WALL_S, line

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.rules.drops.slowdowns import slowdowns
from gpu_report.load import load_run
from gpu_report.model import Analysis, Options

Change = Callable[[pd.DataFrame, pd.Series], None]  # of the host's rows, and their time of the run
FOLDER = "/mnt/c/set/images/train"
NINE_P = {"point": "/mnt/c", "type": "9p", "source": "C:\\", "device": None, "rotational": None, "free_mib": None}
NAS = {**NINE_P, "point": "/mnt/nas", "type": "nfs4", "source": "nas:/sets"}
ROOT = {"point": "/", "type": "ext4", "source": "/dev/sdc", "device": "sdc", "rotational": None, "free_mib": 900_000}
WAITS = Played(
    epochs=8,
    train_s=200,
    validation_s=24,
    train_pct=46,
    noise_pct=15,
    main_cpu_pct=54,
    worker_cpu_pct=13,
    data_wait_share=0.52,
    images=8960,
)


def written(folder: Path, played: Played, host: Change, mounts: list[dict[str, object]], data: str = FOLDER) -> Path:
    """Write a played training of images in a folder, with another host."""
    run = folder / "run"
    write_played(run, played)
    rows = pd.read_csv(run / schema.HOST_CSV)
    host(rows, rows["mono_s"] - MONO_S)
    rows.to_csv(run / schema.HOST_CSV, index=False)
    described = json.loads((run / schema.RUN_JSON).read_text())
    described["host"]["mounts"] = mounts
    (run / schema.RUN_JSON).write_text(json.dumps(described))
    if played.inside:
        _add(run, [line(20.0, "settings", data_folder=data)])
    return run


def _add(run: Path, lines: list[dict[str, object]]) -> None:
    with (run / schema.INSIDE_DIR / f"{PID}.jsonl").open("a") as file:
        file.writelines(f"{json.dumps(each)}\n" for each in lines)


def blocked(count: float, pressure_pct: float = 10.0) -> Change:
    """Return a host whose workers are in state D all the time, which counts neither pressure nor bytes."""

    def change(rows: pd.DataFrame, _: pd.Series) -> None:
        rows["workers_blocked"], rows["io_pressure_pct"], rows["trainer_read_mib_s"] = count, pressure_pct, 0.0
        rows["memory_available_mib"] = 12_000  # too little to cache the images

    return change


def _with_waits(run: Path, filesystem: str, file: str) -> None:
    """Add a worker that waits for a file, and another for one that nobody could name, for longer."""
    rows = [
        (WALL_S + t_s, MONO_S + t_s, pid, "worker", seconds, "D", "p9_client_rpc", call, name, kind)
        for t_s in range(60, 4200, 5)
        for pid, seconds, call, name, kind in ((901, 2.0, "read", file, filesystem), (902, 4.0, "openat", "", ""))
    ]
    header = "wall_s,mono_s,pid,role,seconds,state,channel,call,file,filesystem"
    (run / schema.WAITS_CSV).write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")


def read(run: Path) -> Analysis:
    return analyse(load_run(run))


@pytest.mark.parametrize("inside", [True, False])
def test_workers_in_state_d_are_the_cause_though_no_disk_counts_what_they_wait_for(tmp_path, inside):
    run = written(tmp_path, replace(WAITS, inside=inside), blocked(5.6), [NINE_P, ROOT])
    _with_waits(run, "9p", f"{FOLDER}/7.jpg")
    found = read(run)
    assert found.verdict.text.startswith("Copy the images from /mnt/c (9p) to a local disk.")
    (finding,) = [each for each in found.findings if is_alarm(each)]
    assert (finding.rule, finding.cause.name) == ("starved", "input-storage")
    assert finding.summary.endswith("the data-loader workers waited for /mnt/c (9p)")
    assert [each.argument for each in finding.advice] == [None, None]  # no more workers
    assert finding.advice[1].text.startswith("Copy the images to / (ext4 on sdc")


@pytest.mark.parametrize(
    ("more", "of"), [({}, ""), ({"epochs": 40, "train_s": 45, "interval_s": 30.0}, " (validation included)")]
)
def test_a_gpu_that_is_busy_for_most_of_the_time_waits_all_the_same_where_workers_are_in_state_d(tmp_path, more, of):
    """Nobody reports waits for data from outside, and readings may not tell a validation that waits as well."""
    alike = replace(WAITS, train_pct=68, validation_pct=66, train_w=200, validation_w=200)
    alike = replace(alike, **more)
    run = written(tmp_path, alike, blocked(6.0), [NAS, ROOT])
    _with_waits(run, "nfs4", "/mnt/nas/sets/7.jpg")
    found = read(run)
    assert found.verdict.text.startswith("Copy the images from /mnt/nas (nfs4) to a local disk")
    (finding,) = [each for each in found.findings if is_alarm(each)]
    assert f" % of training time{of}: the data-loader workers waited for" in finding.summary


def test_workers_that_wait_for_no_file_are_not_taken_for_storage(tmp_path):
    run = written(tmp_path, replace(WAITS, inside=True), blocked(0.3), [NINE_P, ROOT])
    assert "input-storage" not in {each.cause.name for each in read(run).findings if each.cause}


DISK = {**ROOT, "point": "/data", "source": "/dev/nvme1n1", "device": "nvme1n1", "rotational": False}


@pytest.mark.parametrize("px", [3840, 640])
def test_a_disk_at_its_limit_all_the_time_is_named_with_what_it_gives(tmp_path, px):
    """Smaller images are less to read from any disk: where they are far too large, that comes before a faster one."""

    def reads(rows: pd.DataFrame, t_s: pd.Series) -> None:
        blocked(4.9, pressure_pct=95.0)(rows, t_s)
        rows["trainer_read_mib_s"] = rows["disk_read_mib_s"] = 80.0

    folder = "/data/set/images/train"
    run = written(tmp_path, replace(WAITS, inside=True), reads, [DISK, ROOT], folder)
    _add(run, [line(20.0, "settings", data_folder=folder, image_px=px, scaled_down=[float(px > 640), px, 0.028])])
    text = read(run).verdict.text
    faster = "ut the images on a faster disk than /data (ext4 on nvme1n1)"
    first, second = (
        f"P{faster}. ",
        f"Resize the images once to 640 px (now 3,840). Or p{faster}. It gives 80 MiB/s, and",
    )
    assert text.startswith(second if px > 640 else first)
    assert "waited for /data (ext4 on nvme1n1), which gave 80 MiB/s" in text


def slower_since(disk: float, own: float, at_s: float) -> Change:
    """Return a host whose training reads 60 MiB/s, and from a moment on what is given, with its workers blocked."""

    def change(rows: pd.DataFrame, t_s: pd.Series) -> None:
        then = t_s >= at_s
        rows["trainer_read_mib_s"], rows["disk_read_mib_s"] = np.where(then, own, 60.0), np.where(then, disk, 60.4)
        rows["workers_blocked"], rows["io_pressure_pct"] = np.where(then, 4.0, 0.6), np.where(then, 97.0, 46.0)
        rows.loc[then, "workers_cpu_pct"] = 380.0
        rows.loc[then, "main_cpu_pct"] = 75.0

    return change


LOCAL = {**ROOT, "source": "/dev/nvme0n1p1", "device": "nvme0n1"}
SLOWED = Played(epochs=20, train_s=600, validation_s=40, interval_s=5.0, lows=(Low(6900, 12700, 66),))


def test_reads_that_fell_while_workers_wait_more_are_of_a_disk_that_gives_less(tmp_path):
    """Nobody else reads, and a page cache that lost the images would raise them."""
    found = read(written(tmp_path, SLOWED, slower_since(40.3, 40.0, 6900.0), [LOCAL]))
    assert "became slower" in found.verdict.text
    (finding,) = [each for each in found.findings if is_alarm(each)]
    assert "reads fell from 60 to 40 MiB/s" in finding.advice[0].text
    assert "another program" not in finding.advice[0].text
    assert "memory" not in finding.advice[0].text


def test_who_reads_since_epochs_got_slower_is_named_once(tmp_path):
    """The pressure of io was high before: it cannot triple."""
    slow = replace(
        SLOWED, epochs=16, inside=True, lows=(), train_of=lambda epoch: 600 if epoch < 3 else 1000,
        data_wait_share=0.4, train_pct=58,
    )  # fmt: skip
    disk = {**LOCAL, "rotational": True}
    found = read(written(tmp_path, slow, slower_since(61.0, 16.0, 1300.0), [disk], "/data/images"))
    assert found.verdict.text.startswith("Keep other programs off the disk of the images")
    (finding,) = [each for each in found.findings if is_alarm(each)]
    assert "the rotating disk nvme0n1" in finding.summary
    assert "others read 45 MiB/s" in finding.advice[0].text


def test_a_loader_that_waits_for_a_network_drive_and_keeps_up_costs_nothing(tmp_path):
    fed = replace(WAITS, inside=True, train_pct=97, noise_pct=2, main_cpu_pct=100, data_wait_share=0.002)
    found = read(written(tmp_path, fed, blocked(4.0, 95.0), [NAS, ROOT], "/mnt/nas/sets/images"))
    assert [each for each in found.findings if is_alarm(each)] == []


STALLS = tuple(Low(300 + 500 * n, 300 + 500 * n + (30, 75)[n % 2], 0) for n in range(8))


def test_a_network_drive_that_gives_nothing_for_a_while_is_its_server_and_one_finding(tmp_path):
    def stood(rows: pd.DataFrame, t_s: pd.Series) -> None:
        then = np.any([(t_s >= low.start_s - 6) & (t_s < low.end_s) for low in STALLS], axis=0)
        rows["trainer_read_mib_s"], rows["workers_blocked"] = np.where(then, 0.0, 20.0), np.where(then, 8.0, 0.4)
        rows["io_pressure_pct"] = np.where(then, 96.0, 18.0)
        rows.loc[then, ["workers_cpu_pct", "busiest_worker_cpu_pct"]] = 0.0

    played = Played(epochs=8, train_s=500, validation_s=30, ring=True, lows=STALLS, train_pct=97)
    run = written(tmp_path, played, stood, [NAS, ROOT])
    _with_waits(run, "nfs4", "/mnt/nas/sets/images/7.jpg")
    found = read(run)
    (finding,) = [each for each in found.findings if is_alarm(each)]
    assert (finding.cause.explanation, len(finding.occurrences)) == (
        "the server of /mnt/nas (nfs4) did not answer", len(STALLS),
    )  # fmt: skip
    assert found.verdict.text.startswith("Find why the server of /mnt/nas (nfs4) did not answer")


@pytest.mark.parametrize(("validation_s", "is_shared"), [(40.0, True), (20.0, False)])
def test_more_workers_are_not_advised_where_those_of_validation_load_no_more_images(tmp_path, validation_s, is_shared):
    """Training loads 45 images a second with 8 workers; validation has 16 for 1792 images."""
    played = replace(WAITS, inside=True, validation_s=validation_s, cores=16)
    run = written(tmp_path, played, blocked(0.0, 0.0), [ROOT])
    rows = [json.loads(each) for each in (run / schema.INSIDE_DIR / f"{PID}.jsonl").read_text().splitlines()]
    starts = [each for each in rows if each["kind"] == "phase" and each["name"] == "validation"]
    _add(run, [_validation(each["mono_s"], each["epoch"], validation_s) for each in starts])
    found = read(run)
    (finding,) = [each for each in found.findings if is_alarm(each)]
    assert finding.cause.name == "input-latency"
    assert ("workers" in {each.argument for each in finding.advice}) is not is_shared
    assert found.verdict.text.startswith("Read the data from a local disk" if is_shared else "Set `workers=")
    assert any("16 workers of validation" in each.text for each in finding.advice) is is_shared


def _validation(start_mono_s: float, epoch: int, seconds: float) -> dict[str, object]:
    parts = {"preprocess_s": 0.5, "inference_s": 0.3 * seconds, "loss_s": 0.2, "postprocess_s": 0.5, "metrics_s": 0.5}
    rest = {"plots_s": 0.2, "gather_s": 0.0, "other_s": 0.2}
    told = {"epoch": epoch, "images": 1792, "batch": 32, "workers": 16, "plots": False, "batches": 56}
    waited = {"start_mono_s": start_mono_s, "first_wait_s": 0.2, "data_s": 0.5 * seconds}
    return line(start_mono_s - MONO_S + seconds - 0.01, "validation", **told, **waited, **parts, **rest)


@pytest.mark.parametrize(("level_s", "falls"), [(5, False), (60, True)])
def test_the_first_seconds_of_a_training_are_no_level_that_it_falls_from(tmp_path, level_s, falls):
    """Its first batches lie ready: then each comes as its images do."""
    played = Played(epochs=8, train_s=200, inside=True, lows=(Low(28 + level_s, 228, 55),))

    def taken(rows: pd.DataFrame, t_s: pd.Series) -> None:
        then = (t_s >= 28 + level_s) & (t_s < 228)
        rows.loc[then, ["cpu_pct", "cpu_pressure_pct", "main_cpu_pct", "workers_cpu_pct"]] = 100.0, 99.0, 40.0, 200.0

    run = written(tmp_path, played, taken, [ROOT])
    assert bool(slowdowns(build_context(load_run(run), Options()))) is falls
