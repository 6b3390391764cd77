"""Indexing: each run once, again when it changed, out when it is gone; nothing else is touched."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.fleet import at_once, copied, indexed, tables_of

from gpu_report.errors import InputError, UsageError
from gpu_report.fleet import index as index_module
from gpu_report.fleet import store
from gpu_report.fleet.places import find_runs, root_of, shown
from gpu_report.fleet.store import Shard, live_folders
from gpu_report.fleet.workers import KILLED


def parts(fleet):
    return {path.name: path.stat().st_ino for path in live_folders(fleet)}


def column(fleet, table, name):
    return [row[name] for row in tables_of(fleet)[table]]


def test_a_run_has_its_rows_in_every_table_and_one_that_cannot_be_read_its_reason(kept_fleet):
    runs, fleet = kept_fleet
    tables = tables_of(fleet)
    assert {row["path"] for row in tables["runs"]} == {str(runs / "half"), str(runs / "starved")}
    assert [row["epoch"] for row in tables["epochs"]].count(1) == 2
    by_status = {row["status"]: row for row in tables["manifest"] if row["path"] != str(runs / "half")}
    assert by_status["failed"]["error"].startswith(f"{runs / 'damaged'}/samples.csv has not one valid row")
    assert by_status["ok"]["error"] is None


def test_the_ledger_of_a_run_adds_up_to_its_gpu_hours(kept_fleet):
    tables = tables_of(kept_fleet[1])
    for run in tables["runs"]:
        seconds = sum(row["gpu_seconds"] for row in tables["ledger"] if row["run"] == run["run"])
        assert seconds / 3600 == pytest.approx(run["gpu_hours"])
        assert run["gpu_hours"] * 3600 == pytest.approx(run["duration_s"] * run["gpus"])


def test_a_gpu_that_was_held_without_a_process_is_told_from_one_at_work(kept_fleet):
    tables = tables_of(kept_fleet[1])
    (run,) = [row for row in tables["runs"] if row["path"].endswith("half")]
    used, unused = sorted((row for row in tables["gpus"] if row["run"] == run["run"]), key=lambda row: not row["used"])
    assert unused["no_process_s"] == pytest.approx(run["duration_s"])
    assert 0 < used["no_process_s"] < 20
    assert run["no_process_gpu_s"] == pytest.approx(used["no_process_s"] + unused["no_process_s"])


def test_what_is_unchanged_is_neither_read_nor_written_again(tmp_path):
    runs, fleet = copied(tmp_path / "runs", a="n-starved"), tmp_path / "fleet"
    assert indexed(runs, fleet).read == 1
    before = parts(fleet)
    assert indexed(runs, fleet, workers=at_once(dies=lambda _: True)).read == 0
    assert parts(fleet) == before


def test_nothing_is_imported_that_the_call_does_not_need(kept_fleet):
    runs, fleet = kept_fleet
    code = f"""import sys
from gpu_report.cli import cli
try:
    cli(["fleet", "index", {str(runs)!r}, "--output", {str(fleet)!r}])
finally:
    print("MODULES", *({{"pyarrow", "pandas", "fsspec", "distributed", "dask", "duckdb"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "3 runs, 0 analysed now" in done.stdout
    assert done.stdout.splitlines()[-1] == "MODULES pyarrow"


def test_a_changed_run_is_read_again_and_a_removed_one_goes(tmp_path):
    runs, fleet = copied(tmp_path / "runs", a="n-starved", b="xid31", c="fed"), tmp_path / "fleet"
    indexed(runs, fleet)
    info = json.loads((runs / "a" / "run.json").read_text())
    (runs / "a" / "run.json").write_text(json.dumps({**info, "user": "ann", "project": "cars"}))
    shutil.rmtree(runs / "c")
    done = indexed(runs, fleet)
    assert (done.runs, done.read, done.removed) == (2, 1, 1)
    assert {row["user"]: row["project"] for row in tables_of(fleet)["runs"]}["ann"] == "cars"
    fresh = indexed(runs, tmp_path / "fresh")
    assert fresh.read == 2
    assert tables_of(fleet) == tables_of(tmp_path / "fresh")


def test_another_version_reads_all_runs_again(tmp_path, monkeypatch):
    runs, fleet = copied(tmp_path / "runs", a="xid31"), tmp_path / "fleet"
    indexed(runs, fleet)
    monkeypatch.setattr(index_module, "__version__", "99.0")
    assert indexed(runs, fleet).read == 1


def test_runs_below_another_folder_stay(tmp_path):
    fleet = tmp_path / "fleet"
    indexed(copied(tmp_path / "runs", a="xid31"), fleet)
    assert indexed(copied(tmp_path / "runs-2", a="xid31"), fleet).runs == 2


def test_full_parts_are_never_written_again_and_others_are_filled(tmp_path, monkeypatch):
    for module in (index_module, store):
        monkeypatch.setattr(module, "PART_RUNS", 2)
    runs, fleet = copied(tmp_path / "runs", a="xid31", b="xid31", c="xid31"), tmp_path / "fleet"
    indexed(runs, fleet)
    first = parts(fleet)
    assert len(first) == 2
    indexed(copied(runs, d="xid31"), fleet)
    assert len(parts(fleet)) == 2
    assert len(parts(fleet).items() & first.items()) == 1


def test_four_shards_have_the_rows_of_one(tmp_path):
    names = {f"r{number}": "xid31" for number in range(6)}
    runs = copied(tmp_path / "runs", **names)
    indexed(runs, tmp_path / "whole")
    for number in (2, 4, 1, 3):
        indexed(runs, tmp_path / "shards", Shard(number, 4))
    assert tables_of(tmp_path / "shards") == tables_of(tmp_path / "whole")
    shutil.rmtree(runs / "r0")
    for number in (1, 2, 3, 4):
        indexed(runs, tmp_path / "shards", Shard(number, 4))
    assert len(column(tmp_path / "shards", "runs", "run")) == 5
    with pytest.raises(UsageError, match="has parts of 4 shards, not of 1: name another folder"):
        indexed(runs, tmp_path / "shards")


def test_an_indexing_that_is_cut_off_leaves_a_fleet_that_is_read_and_finished(tmp_path, monkeypatch):
    runs, fleet = copied(tmp_path / "runs", a="xid31", b="xid31"), tmp_path / "fleet"
    indexed(runs, fleet)
    whole = tables_of(fleet)
    os.utime(runs / "a" / "samples.csv")
    with monkeypatch.context() as patch:
        patch.setattr(store.Store, "_remove", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            indexed(runs, fleet)
    assert len(list((fleet / "parts").iterdir())) == 2  # the new one, and the one that it replaces
    assert column(fleet, "runs", "path") == [row["path"] for row in whole["runs"]]
    (fleet / "parts" / ".1-of-1-000007-00000000.part").mkdir()
    indexed(runs, fleet)
    assert len(list((fleet / "parts").iterdir())) == 1


def test_a_damaged_part_costs_no_more_than_its_time(tmp_path):
    runs, fleet = copied(tmp_path / "runs", a="xid31"), tmp_path / "fleet"
    indexed(runs, fleet)
    whole = tables_of(fleet)
    (live_folders(fleet)[0] / "manifest.parquet").write_bytes(b"PAR1")
    assert indexed(runs, fleet).read == 1
    assert tables_of(fleet) == whole


def test_a_part_of_a_newer_gpu_report_is_refused(tmp_path):
    runs, fleet = copied(tmp_path / "runs", a="xid31"), tmp_path / "fleet"
    indexed(runs, fleet)
    (live_folders(fleet)[0] / "part.json").write_text('{"format": 2}')
    with pytest.raises(InputError, match=r"was indexed by a newer gpu-report \(format 2\): update this one"):
        indexed(runs, fleet)


def test_a_worker_that_is_killed_once_costs_nothing(tmp_path):
    runs = copied(tmp_path / "runs", a="xid31", b="xid31", c="xid31")
    killed = []

    def dies(address):
        killed.append(address)
        return len(killed) == 1

    assert indexed(runs, tmp_path / "fleet", workers=at_once(dies)).failed == 0


def test_a_run_that_kills_its_worker_each_time_is_the_only_one_that_is_lost(tmp_path):
    runs = copied(tmp_path / "runs", **{f"r{number}": "xid31" for number in range(5)})
    done = indexed(runs, tmp_path / "fleet", workers=at_once(lambda address: address.endswith("r3")))
    assert done.reasons == ((str(runs / "r3"), KILLED),)
    assert len(column(tmp_path / "fleet", "runs", "run")) == 4


def test_two_indexers_of_one_shard_are_not_let_in(tmp_path):
    with store.Store(tmp_path / "fleet").claimed(), pytest.raises(UsageError, match="being indexed by another command"):
        indexed(copied(tmp_path / "runs", a="xid31"), tmp_path / "fleet")


@pytest.mark.parametrize("other", [Shard(1, 4), Shard(3, 4)])
def test_indexers_of_different_shard_counts_are_kept_apart_before_there_is_a_part(tmp_path, other):
    runs, fleet = copied(tmp_path / "runs", a="xid31"), tmp_path / "fleet"
    with store.Store(fleet, other).claimed(), pytest.raises(UsageError, match="is being indexed in 4 shards, not in 1"):
        indexed(runs, fleet)
    assert indexed(runs, fleet).read == 1  # what was left of the other one keeps nobody away


def test_a_folder_that_is_empty_among_others_keeps_its_runs_until_it_goes(tmp_path):
    runs, fleet = damaged(tmp_path / "runs" / "a", 1).parent, tmp_path / "fleet"
    damaged(runs / "disk", 1)
    (runs / "never-used").mkdir()
    assert indexed(runs, fleet).empty == ()
    shutil.rmtree(runs / "disk")
    (runs / "disk").mkdir()  # as a disk leaves it that is not mounted
    done = indexed(runs, fleet)
    assert (done.runs, done.removed, done.empty) == (2, 0, (str(runs / "disk"),))
    (runs / "disk").rmdir()
    done = indexed(runs, fleet)
    assert (done.runs, done.removed, done.empty) == (1, 1, ())


def test_a_folder_that_is_no_fleet_is_refused(tmp_path):
    runs = copied(tmp_path / "runs", a="xid31")
    with pytest.raises(UsageError, match="is no fleet, and not empty"):
        indexed(runs, runs)


def test_a_folder_without_a_run_removes_nothing(tmp_path):
    runs, fleet = copied(tmp_path / "runs", a="xid31"), tmp_path / "fleet"
    indexed(runs, fleet)
    shutil.rmtree(runs / "a")  # a mount that is not there looks the same
    with pytest.raises(InputError, match="no run below"):
        indexed(runs, fleet)
    assert len(column(fleet, "runs", "run")) == 1


def test_runs_are_found_below_but_not_in_each_other_in_hidden_folders_or_behind_links(tmp_path):
    copied(tmp_path / "deep" / "er", a="xid31")
    copied(tmp_path / "deep" / "er" / "a" / "inside", b="xid31")
    copied(tmp_path / ".hidden", c="xid31")
    (tmp_path / "link").symlink_to(tmp_path / "deep")
    assert [place.address for place in find_runs(root_of(str(tmp_path)))] == [str(tmp_path / "deep" / "er" / "a")]


def test_runs_behind_urls_are_those_of_the_folder(tmp_path):
    runs = copied(tmp_path / "runs", a="n-starved", b="xid31")
    indexed(runs, tmp_path / "here")
    assert indexed(runs.as_uri(), tmp_path / "there").failed == 0
    here, there = tables_of(tmp_path / "here"), tables_of(tmp_path / "there")
    assert sorted(row["path"] for row in there["runs"]) == sorted(Path(row["path"]).as_uri() for row in here["runs"])
    seconds = [sorted(row["gpu_seconds"] for row in tables["ledger"]) for tables in (here, there)]
    assert seconds[0] == seconds[1]


def test_what_is_wrong_with_a_run_behind_a_url_is_said_of_its_url(tmp_path):
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "samples.csv").write_text("hello\n")
    address = (tmp_path / "runs").as_uri()
    ((_, reason),) = indexed(address, tmp_path / "fleet").reasons
    assert reason.startswith(f"{address}/a/samples.csv has not one valid row")


def test_what_a_bucket_calls_its_keys_leads_nowhere(tmp_path):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.put(str(copied(tmp_path / "runs", a="xid31") / "a"), "/bucket/a", recursive=True)
    memory.pipe_file("/bucket/a/inside/../../../escaped.txt", b"x")
    assert indexed("memory://bucket", tmp_path / "fleet").failed == 0
    assert not list(tmp_path.rglob("escaped.txt"))


def test_hostile_names_and_secrets_break_nothing_and_reach_no_table(tmp_path):
    runs, fleet = copied(tmp_path / "runs", **{"a\x1b[31m<script>": "xid31"}), tmp_path / "fleet"
    run = (runs / "a\x1b[31m<script>").rename(runs / os.fsdecode(b"\xff\xfe"))
    info = json.loads((run / "run.json").read_text())
    command = ["python", "train.py", "--api-key", "hunter2hunter2", "\ud800", "'; drop table runs"]
    (run / "run.json").write_text(json.dumps({**info, "command": command, "user": "\ud800\u202e=cmd()"}))
    assert indexed(runs, fleet).failed == 0
    (row,) = tables_of(fleet)["runs"]
    assert "hunter2" not in str(tables_of(fleet))
    assert row["user"] == "\\ud800\u202e=cmd()"
    assert row["path"].endswith("\\udcff\\udcfe")


def damaged(folder, count):
    for number in range(count):
        (folder / f"run-{number}").mkdir(parents=True)
        (folder / f"run-{number}" / "samples.csv").write_text("hello\n")
    return folder


def test_a_write_of_several_parts_that_is_cut_off_loses_no_run(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PART_RUNS", 2)
    monkeypatch.setattr(index_module, "PART_RUNS", 2)
    runs, fleet = damaged(tmp_path / "runs", 6), tmp_path / "fleet"
    indexed(runs, fleet)
    before, write_part, written = tables_of(fleet), store.Store._write_part, []
    for part in store.read_parts(iter(live_folders(fleet))):  # one run of each: a write of two takes both parts up
        (Path(part.manifest["path"][0]) / "samples.csv").write_text("changed\n")

    def killed(self, name, *arguments):
        if written:
            raise KeyboardInterrupt
        written.append(name)
        write_part(self, name, *arguments)

    monkeypatch.setattr(store.Store, "_write_part", killed)
    with pytest.raises(KeyboardInterrupt):
        indexed(runs, fleet)
    assert written
    assert tables_of(fleet) == before
    monkeypatch.setattr(store.Store, "_write_part", write_part)
    indexed(runs, fleet)
    assert sorted(column(fleet, "manifest", "path")) == sorted(row["path"] for row in before["manifest"])
    assert len({row["fingerprint"] for row in before["manifest"]} & set(column(fleet, "manifest", "fingerprint"))) == 3
    assert not [path for path in (fleet / "parts").iterdir() if path not in live_folders(fleet)]


def test_a_run_that_could_not_be_read_is_tried_again(tmp_path):
    runs, fleet = damaged(tmp_path / "runs", 1), tmp_path / "fleet"
    assert indexed(runs, fleet, workers=at_once(dies=lambda _: True)).reasons[0][1] == KILLED
    (done,) = [indexed(runs, fleet)]
    assert (done.read, done.failed) == (1, 1)
    assert done.reasons[0][1] != KILLED


def test_runs_in_a_folder_that_cannot_be_listed_stay(tmp_path, monkeypatch):
    runs, fleet = damaged(tmp_path / "runs" / "a", 1).parent, tmp_path / "fleet"
    damaged(runs / "b", 1)
    indexed(runs, fleet)
    listed = os.scandir

    def refused(path):
        if str(path).endswith("/b"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    done = indexed(runs, fleet)
    assert (done.runs, done.removed, done.unread) == (2, 0, (str(runs / "b"),))


def test_one_folder_has_one_name_however_it_is_given(tmp_path, monkeypatch):
    runs = damaged(tmp_path / "runs", 1)
    (tmp_path / "link").symlink_to(runs)
    monkeypatch.chdir(runs)
    assert {root_of(name) for name in (str(runs), ".", "../runs", str(tmp_path / "link"))} == {str(runs)}
    assert root_of("s3://bucket//runs/") == "s3://bucket/runs"


def test_an_address_shows_no_password_whatever_is_in_it():
    assert shown("s3://user:p@ss@bucket/x") == "s3://bucket/x"
