"""What a recording keeps of the files of NCCL and torch's flight recorder."""

import json
import os
import socket
from pathlib import Path

import pytest

from gpu_report.record.job.nccl_files import keep_nccl_files

DATA = Path(__file__).parents[3] / "data" / "nccl"
HOST = socket.gethostname().partition(".")[0]
SINCE_WALL_S = 1000.0


@pytest.fixture
def folders(tmp_path):
    run, out = tmp_path / "run", tmp_path / "o[u]t"
    run.mkdir()
    out.mkdir()
    return run, out


def kept(run):
    return {path.name: path.read_text() for path in (run / "nccl").glob("*")} if (run / "nccl").exists() else {}


def test_lines_that_say_something_are_kept_each_connection_once(folders):
    run, out = folders
    (out / f"n.{HOST}.1214.log").write_bytes((DATA / "sockets_rank_0.log").read_bytes())
    (out / f"n.{HOST}.x.log").write_text("h:1:1 [0] NCCL WARN of another name\n")
    keep_nccl_files(run, SINCE_WALL_S, (), {"NCCL_DEBUG_FILE": f"{out}/n.%h.%p.log"})
    (name, text) = next(iter(kept(run).items()))
    assert list(kept(run)) == [f"n.{HOST}.1214.log"] == [name]
    lines = text.splitlines()
    assert lines[0].startswith("# kept by gpu-report; times are UTC")
    assert sum(" via NET/Socket/0" in line for line in lines) == 2  # of four
    assert sum("NCCL WARN" in line for line in lines) == 2
    assert not any("Trees" in line for line in lines)


def test_the_command_itself_may_name_the_file(folders):
    run, out = folders
    (out / "log").write_text("NCCL version 2.28.9\n")
    keep_nccl_files(run, SINCE_WALL_S, ("env", "A=b", f"NCCL_DEBUG_FILE={out}/log", "train", "NCCL_DEBUG_FILE=x"), {})
    assert list(kept(run)) == ["log.log"]


def test_secrets_are_hidden_and_floods_cut(folders):
    run, out = folders
    secret = "h:1:2 [0] NCCL WARN NET/X : https://me:hunter2pass@example.org/ failed\n"
    flood = "".join(f"h:1:2 [0] NCCL WARN {number}\n" for number in range(100_000))
    (out / "log").write_text(secret + flood + "h:1:2 [0] NCCL WARN the last\n")
    keep_nccl_files(run, SINCE_WALL_S, (), {"NCCL_DEBUG_FILE": f"{out}/log"})
    text = kept(run)["log.log"]
    assert "hunter2pass" not in text
    assert "the last" in text
    assert len(text.splitlines()) <= 2001


def test_links_pipes_old_files_and_other_folders_are_left_alone(folders):
    run, out = folders
    (out / "log.1").symlink_to("/etc/passwd")
    os.mkfifo(out / "log.2")
    (out / "log.3").write_text("NCCL version 2.28.9\n")
    os.utime(out / "log.3", (1.0, 1.0))
    (out / "log.4").mkdir()
    for name in (f"{out}/log.%p", "", "/nonesuch/%h", "\0", "%"):
        keep_nccl_files(run, SINCE_WALL_S, (), {"NCCL_DEBUG_FILE": name, "TORCH_FR_DUMP_TEMP_FILE": name})
    assert kept(run) == {}


def test_traces_in_json_are_kept_and_pickles_only_counted(folders):
    run, out = folders
    (out / "fr_0").write_bytes((DATA / "pickled_rank_0.json").read_bytes())
    (out / "fr_1").write_bytes(b"\x80\x02cos\nsystem\n(S'exit 1'\ntR.")
    (out / "fr_2").write_text('{"entries": [' + "[" * 100_000)
    keep_nccl_files(run, SINCE_WALL_S, (), {"TORCH_FR_DUMP_TEMP_FILE": f"{out}/fr_"})
    assert set(kept(run)) == {"fr_0.json", "pickles.txt"}
    trace = json.loads(kept(run)["fr_0.json"])
    assert trace["entries"][-1]["collective_seq_id"] == 13
    assert trace["entries"][-1]["frames"][2] == {"name": "train_step", "filename": "/tmp/t.py", "line": 10}


def test_files_of_earlier_runs_take_no_place_of_this_ones(folders):
    run, out = folders
    for number in range(70):
        (out / f"log.{number}").write_text("NCCL version 2.27.3\n")
        os.utime(out / f"log.{number}", (SINCE_WALL_S - 1, SINCE_WALL_S - 1))
    (out / "log.99").write_text("NCCL version 2.28.9\n")
    keep_nccl_files(run, SINCE_WALL_S, (), {"NCCL_DEBUG_FILE": f"{out}/log.%p"})
    assert list(kept(run)) == ["log.99.log"]


def test_a_warning_is_kept_as_often_as_it_was_given(folders):
    run, out = folders
    (out / "log").write_text("h:1:2 [0] NCCL WARN the same\n" * 5)
    keep_nccl_files(run, SINCE_WALL_S, (), {"NCCL_DEBUG_FILE": f"{out}/log"})
    assert kept(run)["log.log"].count("the same") == 5


def test_a_trace_that_nests_too_deep_costs_no_other(folders):
    run, out = folders
    (out / "fr_0").write_text('{"version": "2.10", "pg_config": ' + "[" * 900 + "]" * 900 + "}")
    (out / "fr_1").write_text('{"version": "2.10", "entries": []}')
    keep_nccl_files(run, SINCE_WALL_S, (), {"TORCH_FR_DUMP_TEMP_FILE": f"{out}/fr_"})
    assert "fr_1.json" in kept(run)
