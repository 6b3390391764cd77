"""Where an export for TensorBoard may go: never into YOLO's own folder, nor among somebody else's events."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpu_report.cli import cli
from gpu_report.cli.tensorboard_folder import EVENT_FILE, file_in, write_event_file
from gpu_report.errors import InputError, UsageError

RUN = Path(__file__).parents[3] / "sample_runs" / "n-starved"


@pytest.fixture
def yolo(tmp_path):
    folder = tmp_path / "runs/detect/train"
    (folder / "weights").mkdir(parents=True)
    (folder / "args.yaml").write_text("epochs: 3\n")
    return folder


def test_a_folder_that_is_new_empty_or_ours_is_taken(tmp_path):
    assert file_in(tmp_path / "tb/run1") == tmp_path / "tb/run1" / EVENT_FILE
    assert file_in(tmp_path).parent == tmp_path
    write_event_file(tmp_path / "tb" / EVENT_FILE, b"one")
    write_event_file(file_in(tmp_path / "tb"), b"two")
    assert [path.read_bytes() for path in (tmp_path / "tb").iterdir()] == [b"two"]


@pytest.mark.parametrize("place", [".", "weights", "tb/run1", "..", "../..", "../../.."])
def test_yolo_s_own_folder_is_refused_and_what_lies_in_it_or_holds_it(yolo, place):
    with pytest.raises(UsageError, match=r"YOLO's own folder: name a folder of its own, such as tensorboard/run1"):
        file_in(yolo / place)


@pytest.mark.parametrize("name", ["args.yaml", "weights/last.pt", "weights/best.pt"])
def test_each_of_yolo_s_files_says_whose_folder_it_is(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(UsageError):
        file_in(tmp_path)


def test_results_are_yolo_s_by_their_columns(tmp_path):
    (tmp_path / "results.csv").write_text("name,score\na,1\n")
    assert file_in(tmp_path)
    (tmp_path / "results.csv").write_text("                  epoch,    time, train/box_loss\n")  # ultralytics 8.3 pads
    with pytest.raises(UsageError):
        file_in(tmp_path)


def test_a_link_to_yolo_s_folder_is_that_folder(yolo, tmp_path):
    (tmp_path / "link").symlink_to(yolo)
    with pytest.raises(UsageError, match="train is YOLO's own folder"):
        file_in(tmp_path / "link")


def test_a_folder_beside_yolo_s_is_taken(yolo):
    assert file_in(yolo.parent / "tensorboard")


def test_a_run_folder_of_ours_and_events_of_others_are_refused(tmp_path):
    shutil.copytree(RUN, tmp_path / "run")
    for folder in (tmp_path / "run", tmp_path / "run/tb", tmp_path):
        with pytest.raises(UsageError, match="a run folder of gpu-report"):
            file_in(folder)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/events.out.tfevents.1.host.2.0").touch()
    with pytest.raises(UsageError, match="events of another program"):
        file_in(tmp_path / "other")
    with pytest.raises(UsageError, match="is a file"):
        file_in(tmp_path / "other/events.out.tfevents.1.host.2.0")


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        write_event_file(tmp_path / "file" / EVENT_FILE, b"")


def test_export_writes_one_file_and_says_how_to_look_at_it(tmp_path):
    done = CliRunner().invoke(cli, ["export", str(RUN), "--to", "tensorboard", str(tmp_path / "tb")])
    assert done.exit_code == 0
    assert "tensorboard --logdir" in done.output
    assert [path.name for path in (tmp_path / "tb").iterdir()] == [EVENT_FILE]


def test_export_redacts_and_names_the_report(tmp_path):
    for flags in ([], ["--redact"]):
        folder = tmp_path / f"tb{len(flags)}"
        arguments = ["export", "--run", str(RUN), "--to", "tensorboard", str(folder), "--report", "r.html", *flags]
        assert CliRunner().invoke(cli, arguments).exit_code == 0
    open_one, redacted = ((tmp_path / name / EVENT_FILE).read_bytes() for name in ("tb0", "tb1"))
    assert b"The report: `r.html`" in open_one
    assert open_one != redacted


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export", str(RUN)], "Missing option '--to'"),
        (["export", str(RUN), "--to", "wandb", "x"], "'wandb' is not 'tensorboard'"),
        (["export", str(RUN), "--to", "tensorboard", str(RUN / "yolo/tb")], "name a folder of its own"),
    ],
)
def test_wrong_use_is_said(arguments, said):
    done = CliRunner().invoke(cli, arguments)
    assert said in f"{done.output}{done.exception}"
    assert (done.exit_code == 2) or isinstance(done.exception, UsageError)
