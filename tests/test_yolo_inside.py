"""What our callbacks tell of real trainings on the CPU, recorded with no change to the training's own code."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.yolo import IMAGES, MODEL, SMALL_MODEL, version

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.inference.rebuilt import rebuilt_predictors
from gpu_report.analyse.timeline.exception_kinds import exception_kind
from gpu_report.load import load_run
from gpu_report.model import Options, SettingLocation
from tests.conftest import REPOSITORY, clean_environment, wait_for

pytestmark = pytest.mark.yolo

STARTUP_DETAILS = {"setup", "data set", "model", "first batch"}
PREAMBLE = f"""
import json, sys, time
from ultralytics import YOLO
from ultralytics.data import build, dataset
args = dict(data="data.yaml", imgsz=64, batch=8, workers=0, device="cpu", plots=False, project=sys.argv[1],
            close_mosaic=0)

def model():
    return YOLO("{SMALL_MODEL}")
"""
FREQUENT_GC = "gc.set_threshold(500, 10, 10)"
MANY = (
    PREAMBLE
    + f"""
import gc
{FREQUENT_GC}
"""
    + """
sleep_s, waited = 0.0, []
get = dataset.YOLODataset.__getitem__
iterate = build.InfiniteDataLoader.__iter__

def slow(self, index):
    time.sleep(sleep_s)
    return get(self, index)

def timed(self):
    batches, waited_s = iterate(self), 0.0
    while True:
        began = time.perf_counter()
        try:
            batch = next(batches)
        except StopIteration:
            break
        waited_s += time.perf_counter() - began
        yield batch
    if self.dataset.augment:
        waited.append(waited_s)

dataset.YOLODataset.__getitem__ = slow
build.InfiniteDataLoader.__iter__ = timed
truth = {}

sleep_s = 0.03
model().train(**args, epochs=2, name="slow0")
truth["slow0"], waited[:] = list(waited), []

sleep_s = 0.1
with_workers = model()
with_workers.add_callback("on_pretrain_routine_start", lambda trainer: setattr(trainer.args, "workers", 2))
with_workers.train(**{**args, "batch": 4}, epochs=2, name="slow2")
truth["slow2"] = list(waited)

sleep_s = 0.0
raising = model()
def fail(trainer):
    if trainer.epoch == 1:
        raise KeyError("theirs")
raising.add_callback("on_train_epoch_start", fail)
try:
    raising.train(**args, epochs=3, name="raised")
except KeyError:
    truth["raised"] = True

last = sys.argv[1] + "/raised/weights/last.pt"
YOLO(last).train(resume=True)

stopping = model()
stopping.add_callback("on_train_epoch_end", lambda trainer: setattr(trainer, "stop", trainer.epoch == 1))
stopping.train(**args, epochs=9, name="stopped", val=False)
json.dump(truth, open("truth.json", "w"))

trained = YOLO(last)
trained.val(data="data.yaml", imgsz=64, device="cpu", plots=False, project=sys.argv[1])
for _ in range(3):
    trained.predict("images/val/0.jpg", imgsz=64, device="cpu", project=sys.argv[1], verbose=False)
trained.export(format="torchscript", imgsz=64, device="cpu")

import gpu_report_inside.training as ours
def bug(*args):
    raise ZeroDivisionError("ours")
ours.ReportedTraining.epoch_trained = bug
ours.ReportedTraining.settings = bug
model().train(**args, epochs=1, name="bug")
print("all done")
"""
)
SLOW = (
    PREAMBLE
    + """
get = dataset.YOLODataset.__getitem__
dataset.YOLODataset.__getitem__ = lambda self, index: (time.sleep(0.2), get(self, index))[1]
model().train(**args, epochs=9, name="killed")
"""
)
ENDED = (
    PREAMBLE
    + """
import inspect, os
from ultralytics.engine.trainer import BaseTrainer
print("told", "teardown" in inspect.getsource(BaseTrainer.train), hasattr(BaseTrainer, "_handle_nan_recovery"))

def ended(name, event, callback, **more):
    mine = model()
    mine.add_callback(event, callback)
    try:
        mine.train(**{**args, **more}, epochs=9, name=name)
    except Exception as error:
        print(name, error)

def full(trainer):
    with open("/dev/full", "wb", buffering=0) as file:
        file.write(b"x" * 4096)

def broken(trainer):
    trainer.loss = trainer.loss * float("nan")

get = dataset.YOLODataset.__getitem__
ended("full", "on_train_epoch_start", full)
ended("nan", "on_train_batch_end", broken, val=False)
with_worker = model()
with_worker.add_callback("on_pretrain_routine_start", lambda trainer: setattr(trainer.args, "workers", 1))
dataset.YOLODataset.__getitem__ = lambda self, index: os.kill(os.getpid(), 9)
try:
    with_worker.train(**args, epochs=1, name="killed")
except RuntimeError as error:
    print("killed", error)
dataset.YOLODataset.__getitem__ = get
model().train(**{**args, "data": "not-here.yaml"}, epochs=1, name="data")
"""
)
TINY_TENSORS = (
    PREAMBLE
    + """
import torch
get = dataset.YOLODataset.__getitem__

def with_parts(self, index):
    sample = get(self, index)
    sample["parts"] = [{"a": torch.zeros(3), "b": torch.zeros(1)} for _ in range(20)]
    return sample

dataset.YOLODataset.__getitem__ = with_parts
mine = model()
mine.add_callback("on_pretrain_routine_start", lambda trainer: setattr(trainer.args, "workers", 1))
mine.train(**args, epochs=2, name="tiny")
"""
)
LOOK = """
import sys
sys.path[:0] = sys.argv[1:]
import ultralytics.utils.callbacks as c
print("seen", c.default_callbacks)
"""


def record(run_cli, run, *command, **options):
    return run_cli("record", "--interval", "0.2", "--output", run, "--", *command, timeout=250, **options)


def assert_gapless(inside):
    """From the first moment on, each phase ends where the next one begins."""
    assert [p.end_t_s for p in inside.phases[:-1]] == [p.start_t_s for p in inside.phases[1:]]
    assert inside.phases[-1].end_t_s >= inside.phases[-1].start_t_s


def names(inside):
    """Return the phases in order, the parts of one as one."""
    found = [(p.name, p.epoch if p.name != "startup" else None) for p in inside.phases]
    return [phase for phase, before in zip(found, [None, *found], strict=False) if phase != before]


def epoch_of(number):
    return [("train", number), ("validation", number), ("checkpoint", number)]


def assert_agrees(inside, epoch, row):
    """Our callbacks and the row of results.csv say the same of an epoch."""
    losses = [value for name, value in row.metrics.items() if name.startswith("train/")]
    assert epoch.loss == pytest.approx(sum(losses), abs=1e-3)
    assert epoch.lr == pytest.approx(row.metrics["lr/pg0"], rel=1e-4)
    (validation,) = [p for p in inside.phases if (p.name, p.epoch) == ("validation", epoch.epoch)]
    assert epoch.end_t_s <= validation.end_t_s == pytest.approx(row.row_t_s, abs=0.1)  # its row follows right after


def assert_has_parts(phase):
    """Each second of a validation is of one part, and of those that ultralytics counts inference took some."""
    validated = phase.validated
    assert (validated.images, sum(validated.seconds.values())) == (8, pytest.approx(validated.duration_s, abs=1e-3))
    assert phase.start_t_s - 0.01 <= validated.start_t_s < validated.end_t_s <= phase.end_t_s + 0.01
    assert min(validated.seconds[part] for part in ("data", "inference", "metrics")) > 0


def test_the_yolo_command_line_tells_every_phase(run_cli, yolo_home, offline, tmp_path):
    shadowed = tmp_path / "theirs"
    shadowed.mkdir()
    (shadowed / "sitecustomize.py").write_text("import os\nos.environ['THEIRS_RAN'] = __file__\n")
    path = os.pathsep.join(filter(None, [str(shadowed), os.environ.get("ULTRALYTICS_UNDER_TEST"), str(REPOSITORY)]))
    yolo = shutil.which("yolo", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    arguments = [f"model={MODEL}", "data=data.yaml", "epochs=3", "imgsz=64", "batch=8", "workers=0", "device=cpu"]
    arguments += ["plots=False", "close_mosaic=1", f"project={yolo_home / 'läufe'}"]
    script = 'printenv THEIRS_RAN; exec "$@"'
    done = record(
        run_cli, tmp_path / "run", "sh", "-c", script, "sh", yolo, "detect", "train", *arguments,
        env={**offline, "PYTHONPATH": path}, cwd=yolo_home,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "3 epochs completed" in done.stdout
    run = load_run(tmp_path / "run")
    assert run.recording.exit_code == 0
    assert [epoch.epoch for epoch in analyse(run).epochs] == [1, 2, 3]
    (inside,) = run.inside
    assert (inside.run, inside.rank, inside.task, inside.ended) == (1, 0, "train", "finished")
    assert_gapless(inside)
    assert names(inside) == [
        ("startup", None), *epoch_of(1), *epoch_of(2), *epoch_of(3), ("final evaluation", None),
    ]  # fmt: skip
    assert {p.detail for p in inside.phases if p.name == "startup"} == STARTUP_DETAILS
    assert [p.epoch for p in inside.phases if p.detail == "close mosaic"] == [3]
    assert inside.settings["save_dir"] == run.yolo_runs[0].path == str(yolo_home / "läufe" / "train")
    known = {"images": IMAGES, "val_images": 8, "batch": 8, "epochs": 3, "workers": 0, "imgsz": 64, "amp": False}
    assert {name: inside.settings[name] for name in known} == known
    assert inside.settings["parameters"] > 2e6
    assert inside.settings["data_folder"] == str(yolo_home / "images" / "train")
    assert inside.settings["data_mib"] > 0
    assert inside.settings["image_px"] == 64
    assert inside.settings["image_boxes"] == [1.0, 1]
    assert inside.settings["label_classes"][:2] == [2, 2]
    assert inside.settings["omp_num_threads"] >= 1
    assert version() < (8, 4) or inside.settings["gflops"] > 1  # 8.3 builds the model before it calls us
    assert run.recording.ultralytics == ".".join(map(str, version()))
    rows = {row.epoch: row for row in run.epoch_rows}
    assert version() < (8, 4) or len(rows) == 3  # 8.3.0 wrote no times, by which rows are placed that come at once
    for epoch in inside.epochs:
        assert (epoch.attempt, epoch.images, epoch.batches) == (1, IMAGES, 2)
        if epoch.epoch in rows:
            assert_agrees(inside, epoch, rows[epoch.epoch])
    validations = [phase for phase in inside.phases if phase.name in {"validation", "final evaluation"}]
    assert [phase.validated.epoch for phase in validations] == [1, 2, 3, None]
    for phase in validations:
        assert_has_parts(phase)
    assert run.problems == ()
    assert "jsonl" not in " ".join(str(path) for path in (yolo_home / "läufe").rglob("*"))


def test_a_script_with_everything_that_can_happen(run_cli, yolo_home, offline, tmp_path):
    (yolo_home / "many.py").write_text(MANY)
    done = record(run_cli, tmp_path / "run", sys.executable, "many.py", yolo_home / "runs", env=offline, cwd=yolo_home)
    assert done.returncode == 0, done.stderr
    assert "all done" in done.stdout
    truth = json.loads((yolo_home / "truth.json").read_text())
    assert truth["raised"]
    run = load_run(tmp_path / "run")
    slow0, slow2, raised, resumed, stopped, val, predict, export, bug = run.inside
    assert [r.task for r in run.inside] == ["train"] * 5 + ["val", "predict", "export", "train"]
    for each in run.inside:
        assert_gapless(each)
    assert [epoch.data_wait_s for epoch in slow0.epochs] == pytest.approx(truth["slow0"], rel=0.1)
    assert min(epoch.data_wait_s for epoch in slow0.epochs) >= 0.03 * IMAGES
    assert [epoch.data_wait_s for epoch in slow2.epochs] == pytest.approx(truth["slow2"], rel=0.1, abs=0.15)
    assert slow2.settings["workers"] == 2
    sets = SettingLocation("frequent_gc", str(yolo_home / "many.py"), 1 + MANY.splitlines().index(FREQUENT_GC))
    assert slow0.setting_locations == slow2.setting_locations == (sets,)
    assert (slow0.ended, raised.ended, stopped.ended) == ("finished", "exception", "early stop")
    assert names(raised)[-1] in [("checkpoint", 1), ("train", 2)]
    assert (raised.error, raised.raised.message) in [("KeyError", "'theirs'"), (None, "")]  # told from some 8.4 on
    assert (resumed.settings["resumed"], resumed.settings["start_epoch"]) == (True, 2)
    assert [epoch.epoch for epoch in resumed.epochs] == [2, 3]
    assert resumed.settings["save_dir"] == raised.settings["save_dir"]
    assert names(stopped)[1:3] == [("train", 1), ("checkpoint", 1)]  # val=False
    assert names(val) == [("validation", None)]
    assert val.settings["images"] == 8
    assert_has_parts(val.phases[0])
    assert (names(predict), names(export)) == ([("predict", None)], [("export", None)])
    assert {val.ended, predict.ended, export.ended} == {"finished"}
    (calls,) = run.calls
    assert (calls.images.tolist(), calls.width.tolist(), calls.settings["format"]) == ([1] * 3, [64] * 3, "pt")
    assert calls.settings["source"] == "file"
    parts_ms = calls.preprocess_ms + calls.inference_ms + calls.postprocess_ms
    assert ((parts_ms > 0) & (parts_ms <= calls.total_ms)).all()
    assert bug.ended == "finished"
    assert [(epoch.batches, epoch.end_t_s) for epoch in bug.epochs] == [(2, None)]  # as far as it was told
    assert any("ZeroDivisionError" in problem for problem in run.problems)
    folders = {known.path: known.number for known in run.yolo_runs}
    for each in (slow0, slow2, raised, resumed, stopped, bug):
        assert each.run == folders.get(each.settings["save_dir"])


def test_how_many_tensors_a_batch_comes_as(run_cli, yolo_home, offline, tmp_path):
    (yolo_home / "tiny.py").write_text(TINY_TENSORS)
    done = record(run_cli, tmp_path / "run", sys.executable, "tiny.py", yolo_home / "runs", env=offline, cwd=yolo_home)
    assert done.returncode == 0, done.stderr
    run = load_run(tmp_path / "run")
    (inside,) = run.inside
    assert inside.settings["batch_tensors"] == pytest.approx(8 * 20 * 2, abs=8)  # and those of YOLO
    assert inside.settings["batch_tensors_key"] == "parts"
    line = 1 + TINY_TENSORS.splitlines().index("def with_parts(self, index):")
    assert inside.setting_locations == (SettingLocation("batch_tensors", str(yolo_home / "tiny.py"), line),)
    assert inside.settings["batch_tensors_mib"] == pytest.approx(8 * 3 * 64 * 64 / 2**20, rel=0.1)
    assert [epoch.batches for epoch in inside.epochs] == [2, 2]
    assert run.problems == ()


def test_a_training_killed_in_its_first_epoch_leaves_what_it_did(start_cli, yolo_home, offline, tmp_path):
    (yolo_home / "slow.py").write_text(SLOW)
    run = tmp_path / "run"
    running = start_cli(
        "record", "--interval", "0.2", "--output", run, "--", sys.executable, "slow.py", yolo_home / "runs",
        env=offline, cwd=yolo_home,
    )  # fmt: skip
    inside = run / "inside"
    wait_for(lambda: any('"kind": "batches"' in path.read_text() for path in inside.glob("*")), 60)
    (file,) = inside.glob("*")
    os.kill(int(file.stem), signal.SIGKILL)
    assert running.wait().returncode == 128 + signal.SIGKILL
    loaded = load_run(run)
    (killed,) = loaded.inside
    assert killed.ended is None
    assert_gapless(killed)
    assert names(killed) == [("startup", None), ("train", 1)]
    assert killed.phases[-1].end_t_s == pytest.approx(loaded.duration_s, abs=1)
    (epoch,) = killed.epochs
    assert (epoch.end_t_s, epoch.batches) == (None, 1)
    assert epoch.data_wait_s > 0.2 * 8


def test_what_ended_a_training_is_told_with_its_words(run_cli, yolo_home, offline, tmp_path):
    (yolo_home / "ended.py").write_text(ENDED)
    run = tmp_path / "run"
    done = record(run_cli, run, sys.executable, "ended.py", yolo_home / "runs", env=offline, cwd=yolo_home)
    assert done.returncode == 1, done.stderr  # of the data set that is not there
    loaded = load_run(run)
    *caught, last = loaded.inside
    assert (last.error, exception_kind(last)) == ("RuntimeError", "data set")
    assert "not-here.yaml" in last.raised.message
    if "told True" in done.stdout:  # older versions tell of no exception that is caught
        full, *_, killed = caught
        assert (full.error, full.raised.code) == ("OSError", "ENOSPC")
        assert full.raised.message == "No space left on device"  # the disk of its folder is not the one that was full
        assert (killed.error, killed.raised.loader_worker) == ("RuntimeError", "SIGKILL")
    if "told True True" in done.stdout:
        assert exception_kind(caught[1]) == "nan", caught[1].raised


PAIR = """import os, sys
os.environ["NCCL_P2P_DISABLE"] = "1"
from cpu_ddp import launch
launch(*sys.argv[1:])
"""


def launched(yolo_home, offline):
    """Return the arguments of a training of two ranks (tests/fakes/cpu_ddp.py), and its environment."""
    shutil.copy(REPOSITORY / "tests" / "fakes" / "cpu_ddp.py", yolo_home)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    others = [str(yolo_home), os.environ.get("ULTRALYTICS_UNDER_TEST"), str(REPOSITORY)]  # the ranks import our trainer
    env = {**offline, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, others))}
    return [yolo_home / "data.yaml", yolo_home / "runs", str(port), SMALL_MODEL], env


def assert_both_ranks_told_theirs(run):
    zero, one = sorted(run.inside, key=lambda inside: inside.rank)
    assert (zero.rank, one.rank) == (0, 1)
    assert (zero.run, one.run) == (1, 1)
    assert (zero.ended, one.ended) == ("finished", "finished")
    assert zero.settings["world_size"] == one.settings["world_size"] == 2
    assert names(zero)[:4] == [("startup", None), *epoch_of(1)]
    assert [epoch.epoch for epoch in zero.epochs] == [epoch.epoch for epoch in one.epochs] == [1, 2]
    assert {epoch.batches for epoch in (*zero.epochs, *one.epochs)} == {2}  # each rank has half of each batch of 8
    assert all(epoch.loss is not None for epoch in zero.epochs)
    assert all(epoch.loss is None for epoch in one.epochs)
    assert_gapless(zero)
    assert_gapless(one)
    assert all((phase.validated is not None) == (phase.name == "validation") for phase in zero.phases[:-1])
    assert [phase.validated for phase in one.phases if phase.validated] == []


def test_both_ranks_of_a_ddp_training_tell_theirs(run_cli, yolo_home, offline, tmp_path):
    arguments, env = launched(yolo_home, offline)
    (yolo_home / "pair.py").write_text(PAIR)
    done = record(run_cli, tmp_path / "run", sys.executable, "pair.py", *arguments, env=env, cwd=yolo_home)
    assert done.returncode == 0, done.stderr
    run = load_run(tmp_path / "run")
    assert_both_ranks_told_theirs(run)
    sets = SettingLocation("p2p", str(yolo_home / "pair.py"), 2)  # in the process that launched them
    assert [each.setting_locations for each in run.inside] == [(sets,), (sets,)]


@pytest.mark.long  # ranks, and a notebook that attaches, are each tried by themselves
def test_both_ranks_tell_theirs_when_a_notebook_attached_and_its_recorder_ends_with_them(yolo_home, offline):
    arguments, env = launched(yolo_home, offline)
    (yolo_home / "attach.py").write_text(
        "import os, sys\nfrom cpu_ddp import TwoRanks\nimport gpu_report\n"
        "mine = TwoRanks(sys.argv[-1])\nfolder = gpu_report.attach(mine, live=True)\n"
        "assert gpu_report.attach(mine, live=True) == folder\nbefore = os.environ['PYTHONPATH']\n"
        "mine.train(*sys.argv[1:])\nassert os.environ['PYTHONPATH'] == before\n"
        "print(folder, os.environ.get('GPU_REPORT_RUN_FOLDER'))\n"
    )
    command = [sys.executable, "attach.py", *map(str, arguments)]
    env = clean_environment(env)
    done = subprocess.run(command, env=env, cwd=yolo_home, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    (folder,) = (yolo_home / "gpu-runs").iterdir()
    assert done.stdout.splitlines()[-1] == f"{folder} None"
    assert "live=True needs a notebook" in done.stdout
    run = load_run(folder)
    assert run.recording.ended_by == "signal"
    assert run.problems == ()
    assert_both_ranks_told_theirs(run)


def test_without_injection_ultralytics_is_as_it_was(run_cli, yolo_home, offline, tmp_path):
    path = [os.environ[name] for name in ("ULTRALYTICS_UNDER_TEST",) if os.environ.get(name)]
    done = run_cli(
        "record", "--no-inject", "--output", tmp_path / "run", "--", sys.executable, "-c", LOOK, *path,
        env=offline, cwd=yolo_home,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "seen" in done.stdout
    assert "gpu_report" not in done.stdout
    assert not (tmp_path / "run" / "inside").exists()


SWITCHES = f"""
import sys
import numpy as np
from ultralytics import YOLO
model, image = YOLO("{SMALL_MODEL}"), np.zeros((64, 64, 3), dtype=np.uint8)

def find(**changed):
    return model.predict(image, imgsz=64, device="cpu", verbose=False, **changed)

for times in range(6):
    find(conf=0.5, dnn=False)
    find(conf=0.6, dnn=True)
for _ in range(3):
    YOLO("{SMALL_MODEL}").predict(image, imgsz=64, device="cpu", verbose=False)
"""


@pytest.mark.skipif(version() < (8, 4), reason="earlier versions set a predictor up anew for `device` alone")
def test_a_predictor_set_up_anew_by_a_changed_argument_is_known_with_its_line(run_cli, yolo_home, offline, tmp_path):
    script = yolo_home / "switches.py"
    script.write_text(SWITCHES)
    done = record(run_cli, tmp_path / "run", sys.executable, script, env=offline, cwd=yolo_home)
    assert done.returncode == 0, done.stderr
    run = load_run(tmp_path / "run")
    (inside,) = run.inside
    assert inside.rebuilt == {1: 5, 2: 6}  # not the three objects that were made for one call each
    assert inside.objects == {1: 6, 2: 6, 3: 3}
    assert {(way.changed, Path(way.file).name, way.line, way.function) for way in inside.rebuilds} == {
        (("dnn",), "switches.py", SWITCHES[: SWITCHES.index("    return")].count("\n") + 1, "find")
    }
    (rebuilt,) = rebuilt_predictors(build_context(run, Options()))
    assert (rebuilt.times, rebuilt.changed, rebuilt.is_reported) == (11, ("dnn",), True)
