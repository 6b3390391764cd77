"""The folder of baselines: what is kept, what is dropped, and that nothing leaves it."""

import json

import pytest

from gpu_report.baseline_store import FACTS, BaselineSet, digest_of, one_run, runs_in
from gpu_report.errors import InputError, NotComparableError, UsageError


def make_run(folder, content="row\n"):
    (folder / "yolo").mkdir(parents=True)
    (folder / "samples.csv").write_text(content)
    (folder / "run.json").write_text("{}")
    (folder / "yolo" / "args.yaml").write_text("batch: 4\n")
    return folder


def test_a_run_is_copied_with_its_facts(tmp_path):
    run = make_run(tmp_path / "run")
    target = BaselineSet(tmp_path / "shelf", "main").accept(run, "H200-x1", {"fingerprint": {"a": 1}})
    assert target.parent == tmp_path / "shelf" / "main" / "H200-x1"
    assert (target / "yolo" / "args.yaml").read_text() == "batch: 4\n"
    assert json.loads((target / FACTS).read_text())["fingerprint"] == {"a": 1}
    assert [p.name for p in target.parent.iterdir()] == [target.name]


def test_the_newest_are_kept_and_each_once(tmp_path, monkeypatch):
    shelf = BaselineSet(tmp_path / "shelf", "main")
    clock = iter(range(1000, 1010))
    monkeypatch.setattr("time.time", lambda: float(next(clock)))
    targets = [shelf.accept(make_run(tmp_path / f"{n}", f"{n}\n"), "set-up", {}, keep=3) for n in (1, 2, 3, 4)]
    assert [each.path for each in shelf.accepted()] == targets[:0:-1]
    shelf.accept(tmp_path / "2", "set-up", {}, keep=3)
    assert [each.path for each in shelf.accepted()] == [targets[1], targets[3], targets[2]]


def test_a_baseline_is_called_by_when_it_began_and_is_kept_once_whatever_it_was_called_before(tmp_path):
    shelf, run = BaselineSet(tmp_path / "shelf", "main"), make_run(tmp_path / "run")
    old = shelf.accept(run, "set-up", {})
    new = shelf.accept(run, "set-up", {}, began="20261121-010551")
    assert new.name == f"20261121-010551-{old.name}"
    assert [each.path for each in shelf.accepted()] == [new]


def test_a_recording_is_told_from_others_wherever_it_lies(tmp_path):
    run, other = make_run(tmp_path / "run"), make_run(tmp_path / "other", "another row\n")
    copy = BaselineSet(tmp_path / "shelf", "main").accept(run, "set-up", {})
    assert digest_of(copy) == digest_of(run) != digest_of(other)


def test_set_ups_do_not_push_each_other_out(tmp_path):
    shelf = BaselineSet(tmp_path / "shelf", "main")
    for name in ("a", "b", "c"):
        shelf.accept(make_run(tmp_path / name, name), f"set-up-{name}", {}, keep=1)
    assert len(shelf.accepted()) == 3


@pytest.mark.parametrize("key", ["feature/x", "../../escape", "/absolute", "a b", "ü"])
def test_whatever_a_key_is_called_it_is_one_folder_inside(tmp_path, key):
    shelf = BaselineSet(tmp_path / "shelf", key)
    target = shelf.accept(make_run(tmp_path / "run"), "set-up", {})
    assert target.resolve().is_relative_to((tmp_path / "shelf").resolve())
    assert len(target.relative_to(tmp_path / "shelf").parts) == 3
    assert len(BaselineSet(tmp_path / "shelf", key).accepted()) == 1


@pytest.mark.parametrize("key", ["", ".", ".."])
def test_a_key_that_is_no_name_is_refused(tmp_path, key):
    with pytest.raises(UsageError, match="is no name"):
        BaselineSet(tmp_path, key).accepted()


def test_links_are_not_followed_out_of_the_run(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("password")
    run = make_run(tmp_path / "run")
    (run / "host.csv").symlink_to(secret)
    (run / "yolo" / "results.csv").symlink_to(secret)
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("password")
    (run / "inside").symlink_to(tmp_path / "private")
    target = BaselineSet(tmp_path / "shelf", "main").accept(run, "set-up", {})
    assert not (target / "host.csv").exists()
    assert not (target / "yolo" / "results.csv").exists()
    assert not (target / "inside").exists()


def test_other_files_of_a_run_stay_behind(tmp_path):
    run = make_run(tmp_path / "run")
    (run / "weights.pt").write_text("large")
    assert not (BaselineSet(tmp_path / "shelf", "main").accept(run, "set-up", {}) / "weights.pt").exists()


def test_a_bare_samples_csv_becomes_a_run_folder(tmp_path):
    (tmp_path / "smi.csv").write_text("row\n")
    target = BaselineSet(tmp_path / "shelf", "main").accept(tmp_path / "smi.csv", "set-up", {})
    assert (target / "samples.csv").read_text() == "row\n"


def test_a_folder_that_cannot_be_written_is_wrong_use(tmp_path):
    (tmp_path / "shelf").write_text("a file")
    with pytest.raises(UsageError, match="cannot keep a baseline"):
        BaselineSet(tmp_path / "shelf", "main").accept(make_run(tmp_path / "run"), "set-up", {})


def test_what_has_no_facts_is_no_baseline(tmp_path):
    shelf = BaselineSet(tmp_path / "shelf", "main")
    target = shelf.accept(make_run(tmp_path / "run"), "set-up", {})
    (target / FACTS).write_text("not JSON")
    make_run(target.parent / "copied-by-hand")
    with pytest.raises(NotComparableError, match="has none of key main"):
        shelf.accepted()


def test_a_key_without_baselines_names_those_there_are(tmp_path):
    BaselineSet(tmp_path / "shelf", "feature/x").accept(make_run(tmp_path / "run"), "set-up", {})
    with pytest.raises(NotComparableError, match="has none of key main, and has feature/x"):
        BaselineSet(tmp_path / "shelf", "main").accepted()


def test_a_run_that_lost_its_samples_is_still_known_by_its_run_json(tmp_path):
    run = make_run(tmp_path / "run")
    (run / "run.json").write_text("{}")
    (run / "samples.csv").unlink()
    assert runs_in(run) == [one_run(run)] == [run]


def test_a_folder_of_runs_is_several_runs(tmp_path):
    runs = [make_run(tmp_path / "runs" / name) for name in ("a", "b")]
    assert runs_in(tmp_path / "runs") == runs
    assert runs_in(runs[0]) == runs[:1]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no run"):
        runs_in(tmp_path / "empty")
    with pytest.raises(InputError, match="yolo is YOLO's folder, not a recording"):
        runs_in(tmp_path / "runs" / "a" / "yolo")
    with pytest.raises(InputError, match="does not exist"):
        runs_in(tmp_path / "nowhere")
