"""`bench` on the command line: what it refuses before anything begins, and a page of what was recorded before."""

import json
import sys

import pytest
from click.testing import CliRunner
from PIL import Image

from gpu_report import schema
from gpu_report.bench import known_names
from gpu_report.cli.commands.bench import bench
from gpu_report.errors import GpuReportError, InputError, NotComparableError, UsageError

START = {"wall_s": 1.7e9, "mono_s": 100.0}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(known_names, "_no_assets", lambda names: [name for name in names if name == "nope.pt"])
    return tmp_path


def run(*words):
    """Run it; what it raises is raised here."""
    done = CliRunner().invoke(bench, [str(word) for word in words], standalone_mode=False, catch_exceptions=True)
    if done.exception is not None:
        raise done.exception
    return done.output


def recorded(folder, *, fails=False, calls=1000):
    """Write the run folder of a benchmark of one variant, which served for ten seconds or failed."""
    (folder / schema.INSIDE_DIR).mkdir(parents=True)
    (folder / schema.RUN_JSON).write_text(json.dumps({"start": START}))
    variant = {"name": "n ONNX FP32, batch 1", "short": "n", "format": "onnx", "half": False, "batch": 1, "pid": 9}
    served = {"turns": [{"start_mono_s": 110.0, "end_mono_s": 120.1}]}
    failed = {"failed": {"stage": "load", "reason": "ModuleNotFoundError: No module named 'onnxruntime'"}}
    fields = {"device": "cpu", "gpu": None, "versions": {}, "variants": [{**variant, **(failed if fails else served)}]}
    (folder / schema.BENCH_JSON).write_text(json.dumps(fields))
    header = ",".join(column.name for column in schema.CALLS_COLUMNS)
    rows = "\n".join(f"{110 + i / 100},1,1,640,640,1,7,1,9.5,0.5" for i in range(calls))
    (folder / schema.INSIDE_DIR / f"9{schema.CALLS_SUFFIX}").write_text(f"{header}\n{rows}\n")
    return folder


def test_a_run_folder_in_the_place_of_a_model_is_rendered_once_more(here):
    folder = recorded(here / "earlier")
    said = run(folder, "--limit", "p99:10ms", "--json", "b.json", "--markdown", "b.md", "pages/b.html")
    assert said.startswith("Choose n ONNX FP32, batch 1: 99.0 images/s at full speed, p99 of all calls 9.50 ")
    assert "<h1>Benchmark of n</h1>" in (here / "pages" / "b.html").read_text()
    assert json.loads((here / "b.json").read_text())["choice_is_sure"] is True
    assert (here / "b.md").read_text().startswith("## GPU report: benchmark")


def test_where_nothing_was_measured_the_page_is_written_and_the_exit_code_says_so(here):
    with pytest.raises(NotComparableError) as raised:
        run(recorded(here / "earlier", fails=True))
    assert raised.value.exit_code == 3
    page = (here / "bench.html").read_text()
    assert "it could not be loaded: ModuleNotFoundError: No module named &#39;onnxruntime&#39;" in page


def test_where_nothing_was_measured_an_earlier_page_stays(here):
    for name in ("bench.html", "b.md", "b.json"):
        (here / name).write_text("figures of yesterday")
    with pytest.raises(NotComparableError):
        run(recorded(here / "earlier", fails=True), "--markdown", "b.md", "--json", "b.json")
    assert {(here / name).read_text() for name in ("bench.html", "b.md")} == {"figures of yesterday"}
    assert json.loads((here / "b.json").read_text())["choice"] is None


@pytest.mark.parametrize("words", [["taken/b.html"], ["--json", "taken/b.json"], ["--markdown", "taken/deep/b.md"]])
def test_what_cannot_be_written_is_found_before_anything_is_measured(here, words):
    (here / "taken").write_text("a file, and no folder")
    with pytest.raises(InputError, match="cannot be written: Not a directory; name another place"):
        run("n.pt", *words)
    assert [path.name for path in here.iterdir()] == ["taken"]


def test_a_recording_without_a_benchmark_is_no_model(here):
    (here / "training").mkdir()
    (here / "training" / schema.RUN_JSON).write_text("{}")
    with pytest.raises(UsageError, match="training is a recording without a benchmark: gpu-report render"):
        run("training")


@pytest.mark.parametrize("fails", [False, True])
def test_a_benchmark_that_was_interrupted_is_rendered_as_far_as_it_came(here, monkeypatch, fails):
    def interrupted(options, *, say, begun):
        begun(recorded(here / "run", fails=fails))
        return 143

    monkeypatch.setattr("gpu_report.record.record_run", interrupted)
    with pytest.raises(SystemExit) as stopped:
        run("n.pt", "--json", "b.json")
    assert stopped.value.code == 143
    assert (json.loads((here / "b.json").read_text())["choice"] is None) == fails
    assert (here / "bench.html").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["out.html"], "no model is named"),
        (["n.pt", "--formats", "pt,coffee"], "--formats coffee: there are pt, torchscript, onnx"),
        (["n.pt", "--batch", "1,0"], "whole numbers from 1"),
        (["n.pt", "--batch", "x"], "whole numbers from 1"),
        (["n.pt", "--data", "coc8.yaml"], "--data coc8.yaml does not exist, and ultralytics has no data set"),
        (["n.pt", "--source", "nowhere"], "is no folder with images"),
        (["n.pt", "--limit", "10ms"], "--limit p95:10ms"),
        (["n.pt", "--json", "a", "--markdown", "a"], "named for two outputs"),
    ],
)
def test_wrong_use_is_refused_before_anything_begins(here, words, says):
    with pytest.raises(UsageError, match=says):
        run(*words)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("model", ["nope.pt", "runs/best.pt", "yolo27n.yaml"])
def test_a_model_that_is_nowhere_is_refused_before_anything_begins(here, model):
    with pytest.raises(InputError, match=f"{model} does not exist, and ultralytics has no model of that name"):
        run("yolo26n.yaml", model, "--data", "coco8.yaml")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("words", [["--batch", "8"], ["--half"], ["--data", "coco8.yaml"], ["--output", "x"]])
def test_a_stored_benchmark_takes_no_option_of_a_measurement(here, words):
    folder = recorded(here / "earlier")
    with pytest.raises(UsageError, match=f"{words[0]} is for a new measurement, and .*earlier is a stored one"):
        run(folder, *words)
    assert not (here / "bench.html").exists()


def test_of_a_folder_of_a_training_the_best_weights_are_measured(here, monkeypatch):
    best = here / "runs" / "train" / "weights" / "best.pt"
    best.parent.mkdir(parents=True)
    best.touch()
    plans = []

    def record(plan, _output):
        plans.append(plan)
        return recorded(here / "new"), 0

    monkeypatch.setattr(sys.modules[bench.callback.__module__], "_record", record)
    run("runs/train", "yolo26n.yaml")
    assert plans[0].models == ("runs/train/weights/best.pt", "yolo26n.yaml")


def test_too_few_calls_for_a_limit_end_with_the_code_of_too_little_data(here):
    folder = recorded(here / "earlier", calls=150)
    with pytest.raises(NotComparableError, match="too few calls"):
        run(folder, "--limit", "p95:10ms")
    assert "p95 is unknown: it needs 200 calls" in (here / "bench.html").read_text().replace("\u00a0", " ")
    assert run(folder, "--limit", "p50:1ms").startswith("No variant keeps p50 within 1 ms")  # known, and no failure


def test_a_folder_that_holds_a_recording_is_not_written_into(here):
    folder = recorded(here / "earlier")
    with pytest.raises(UsageError, match="holds a recording"):
        run("n.pt", "--output", folder)
    with pytest.raises(UsageError, match="named for two outputs"):
        run(folder, "--json", folder / schema.BENCH_JSON)
    with pytest.raises(UsageError, match="name it alone"):
        run("n.pt", folder)


def test_without_ultralytics_it_says_what_to_install(here, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(GpuReportError, match=r"pip install '\.\[yolo\]'` in a checkout"):
        run("n.pt")


def test_what_was_asked_reaches_the_recorded_command(here, monkeypatch):
    options = []
    monkeypatch.setattr("gpu_report.record.record_run", lambda asked, **_: options.append(asked) or 130)
    Image.new("RGB", (8, 8)).save(here / "a.jpg")
    with pytest.raises(SystemExit) as stopped:
        run("n.pt", "--batch", "8,1,8", "--half", "--source", here, "--formats", "onnx", "--device", "1")
    assert stopped.value.code == 130
    (asked,) = options
    assert (asked.stacks, asked.own_report, asked.detail) == (False, True, True)
    plan = json.loads(asked.command[-1])
    assert (plan["batches"], plan["half"], plan["formats"], plan["device"]) == ([8, 1], True, ["onnx"], "1")
