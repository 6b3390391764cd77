import os
import time

from gpu_report.record.proc_files import descendants
from gpu_report.record.yolo import find_run_dir
from gpu_report.record.yolo.find_run_dir import find_newest, search_roots, walk


def make_run(folder, age_s=0.0):
    folder.mkdir(parents=True)
    for name in ("args.yaml", "results.csv"):
        (folder / name).write_text("x\n")
        os.utime(folder / name, (time.time() - age_s,) * 2)
    return folder


def test_the_run_written_to_last_is_found(tmp_path):
    make_run(tmp_path / "runs/detect/train", age_s=50)
    newest = make_run(tmp_path / "runs/detect/träin 2", age_s=10)
    assert find_newest([tmp_path], time.time() - 100) == newest


def test_a_run_from_before_the_recording_is_not_taken(tmp_path):
    make_run(tmp_path / "runs/detect/train", age_s=50)
    assert find_newest([tmp_path], time.time() - 20) is None


def test_a_known_run_is_not_found_again_while_it_is_the_newest(tmp_path):
    first = make_run(tmp_path / "a", age_s=5)
    assert find_newest([tmp_path], 0, [first]) is None
    second = make_run(tmp_path / "b")
    assert find_newest([tmp_path], 0, [first]) == second


def test_a_run_that_began_before_a_command_is_none_of_it_however_new_its_rows_are(tmp_path):
    other = make_run(tmp_path / "other", age_s=50)
    os.utime(other / "results.csv")
    since_s = time.time() - 20
    assert find_newest([tmp_path], since_s) == other
    assert find_newest([tmp_path], since_s, begun_since=True) is None
    mine = make_run(tmp_path / "mine", age_s=10)
    assert find_newest([tmp_path], since_s, begun_since=True) == mine


def test_args_alone_are_enough_for_a_run_that_has_just_begun(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train/args.yaml").write_text("epochs: 3\n")
    assert find_newest([tmp_path], time.time() - 5) == tmp_path / "train"


def test_data_hidden_and_deep_folders_are_not_entered(tmp_path):
    for folder in ("images/a", ".hidden/a", "lib/site-packages/a", "/".join("abcdefgh")):
        make_run(tmp_path / folder)
    assert list(walk(tmp_path)) == []


def test_a_walk_over_a_great_many_files_ends_soon(tmp_path):
    for folder in range(6):
        (tmp_path / str(folder)).mkdir()
        for number in range(find_run_dir.MAX_FOLDER_ENTRIES):
            (tmp_path / str(folder) / f"{number}.txt").touch()
    make_run(tmp_path / "runs/detect/train")
    began = time.monotonic()
    assert [found.path for found in walk(tmp_path)] in ([], [tmp_path / "runs/detect/train"])
    assert time.monotonic() - began < 0.5


def test_a_folder_full_of_data_does_not_hide_the_runs_beside_it(tmp_path):
    for number in range(find_run_dir.MAX_FOLDER_ENTRIES + 500):
        (tmp_path / f"{number}.txt").touch()
    runs = make_run(tmp_path / "work/runs/detect/train")
    (tmp_path / "work/frames").mkdir()
    for number in range(find_run_dir.MAX_FOLDER_ENTRIES + 500):
        (tmp_path / f"work/frames/{number}.png").touch()
    assert [found.path for found in walk(tmp_path / "work")] == [runs]


def test_links_are_not_followed_in_circles(tmp_path):
    make_run(tmp_path / "runs/train")
    (tmp_path / "runs/loop").symlink_to(tmp_path)
    assert [found.path for found in walk(tmp_path)] == [tmp_path / "runs/train"]


def test_roots_come_from_the_command_yolos_settings_and_the_processes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path / "config"))
    settings = tmp_path / "config/Ultralytics/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"runs_dir": "/elsewhere/runs"}')
    roots = search_roots(("yolo", "train", "project=/data/p", "--project", "q"), [1, 999999])
    found = [str(root) for root in roots]
    assert found[:4] == [str(tmp_path), "/data/p", str(tmp_path / "q"), "/elsewhere/runs"]


def test_the_processes_that_a_command_started_are_found():
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    try:
        assert child in descendants(os.getpid())
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
