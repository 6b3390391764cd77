"""A run folder of somebody else's: files that never end, that name thousands, or that no arithmetic can bear."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpu_report import ordinary_file
from gpu_report.analyse import analyse
from gpu_report.errors import InputError
from gpu_report.load import load_run
from gpu_report.ordinary_file import refuse_special

SAMPLE = Path(__file__).parents[3] / "sample_runs" / "s-healthy"
FILES = ("run.json", "samples.csv", "ring.csv", "host.csv", "processes.csv", "events.jsonl", "yolo/args.yaml")


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(SAMPLE, tmp_path / "run")


@pytest.mark.parametrize("kind", ["a named pipe", "a device"])
@pytest.mark.parametrize("name", [*FILES, "yolo/results.csv"])
def test_what_never_ends_is_refused_at_once_by_name(folder, name, kind):
    (folder / name).unlink()
    if kind == "a device":
        (folder / name).symlink_to("/dev/zero")
    else:
        os.mkfifo(folder / name)
    began = time.monotonic()
    with pytest.raises(InputError, match=f"{name} is {kind}, and not read"):
        load_run(folder)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("name", [*FILES, "yolo/results.csv", "yolo", "inside", "inside/1.jsonl"])
@pytest.mark.parametrize("relative", [False, True])
def test_a_link_out_of_the_run_folder_is_refused(folder, tmp_path, name, relative):
    path, other = folder / name, tmp_path / "other"
    if path.exists():
        shutil.move(path, other)
    else:
        other.write_text("root:x:0:0:secret\n")
    path.symlink_to(os.path.relpath(other, path.parent) if relative else other)
    with pytest.raises(InputError, match=f"{name}(/args.yaml)? leads out of .*/run by a link, and is not read"):
        load_run(folder)


def test_a_link_within_the_run_folder_and_one_to_it_are_read(folder, tmp_path):
    (folder / "inside").rename(folder / "told")
    (folder / "inside").symlink_to("told")
    (folder / "kept.csv").hardlink_to(folder / "samples.csv")
    (folder / "samples.csv").unlink()
    (folder / "samples.csv").symlink_to(folder / "kept.csv")
    (tmp_path / "latest").symlink_to(folder)
    (tmp_path / "smi.csv").symlink_to(folder / "samples.csv")
    assert load_run(tmp_path / "latest").inside
    assert len(load_run(tmp_path / "smi.csv").samples) == len(load_run(folder).samples)


def test_a_pipe_among_what_callbacks_wrote_is_left_out(folder):
    (path,) = (folder / "inside").glob("*.jsonl")
    path.unlink()
    os.mkfifo(path)
    assert any("is no file and is left out" in problem for problem in load_run(folder).problems)


def test_a_file_larger_than_any_real_one_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    path.write_text(" " * 100)
    with pytest.raises(InputError, match="has 100 bytes, and is not read: a real one has 99 at most"):
        refuse_special(path, 99)
    refuse_special(path, 100)
    assert ordinary_file.LARGEST_JSON > 2**20


@pytest.mark.parametrize("name", ["samples.csv", "host.csv"])
def test_a_header_of_ten_megabytes_takes_no_time(folder, name):
    (folder / name).write_text("," * 10_000_000 + "\n")
    began = time.monotonic()
    if name == "samples.csv":
        with pytest.raises(InputError, match="a first line of more than 65,536 bytes"):
            load_run(folder)
    else:
        assert any("a first line of more than 65,536 bytes" in problem for problem in load_run(folder).problems)
    assert time.monotonic() - began < 5


def test_of_thousands_of_gpus_the_first_few_are_looked_at(folder):
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**info, "gpus": [{"index": index} for index in range(20_000)]}))
    header, *rows = (folder / "samples.csv").read_text().splitlines()
    at = header.split(",").index("gpu")
    named = (row.split(",") for row in rows for _ in range(10))
    lines = (",".join([*cells[:at], str(number), *cells[at + 1 :]]) for number, cells in enumerate(named))
    (folder / "samples.csv").write_text("\n".join([header, *lines]) + "\n")
    run = load_run(folder)
    assert len(run.gpus) == 256
    assert {"run.json lists 20,000 GPUs: those after the first 256 are left out"} <= set(run.problems)
    assert any(problem.startswith("samples.csv has rows of ") for problem in run.problems)


@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_a_clock_of_another_unit_is_survived(folder, factor):
    header, *rows = (folder / "samples.csv").read_text().splitlines()
    at = header.split(",").index("mono_s")
    cells = [row.split(",") for row in rows]
    lines = [",".join([*row[:at], str(float(row[at]) * factor), *row[at + 1 :]]) for row in cells]
    (folder / "samples.csv").write_text("\n".join([header, *lines]) + "\n")
    assert analyse(load_run(folder)).verdict.text


def test_a_working_directory_that_is_gone_is_said_in_a_line(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && {sys.executable} -m gpu_report render report.html {SAMPLE}"
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr.splitlines() == ["gpu-report: the working directory no longer exists: change into another one"]
