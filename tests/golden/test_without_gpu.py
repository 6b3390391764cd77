"""A real recording of `model.track` on a machine without a GPU: its report, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.errors import InputError
from gpu_report.load import load_run
from gpu_report.model import Analysis
from gpu_report.render.page.page import render_html
from gpu_report.render.run.summary_json import render_summary

TRACKED = Path(__file__).parent.parent / "data" / "track_cpu"  # a video of 120 frames by ByteTrack, stream=True


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return analyse(load_run(TRACKED))


def test_each_frame_is_a_call_whose_tracking_is_no_part_of_ultralytics_own_times(analysis):
    (served,) = analysis.served
    assert (len(served.calls.start_s), served.calls.settings["mode"], served.calls.gpu) == (120, "track", None)
    parts = served.parts
    assert parts.other_ms == pytest.approx(
        parts.total_ms - parts.preprocess_ms - parts.inference_ms - parts.postprocess_ms
    )
    assert 0.1 < parts.other_ms < parts.inference_ms


def test_it_is_said_that_no_gpu_was_recorded_and_nothing_of_one_is(analysis):
    assert analysis.is_inference
    assert "No GPU was recorded: this container has no access to a GPU." in analysis.verdict.text
    assert (analysis.gpus, analysis.ledger, analysis.gaps) == ((), (), ())
    assert analysis.coverage > 0.95  # of the host's readings
    page = render_html(analysis)
    assert "Host memory, peak" in page
    assert not [
        words for words in ("Where the GPU time went", "GPU utilisation, mean", 'id="processes"') if words in page
    ]
    assert json.loads(render_summary(analysis))["gpus"] == []


def test_the_model_in_pytorch_on_the_cpu_is_told_to_be_exported(analysis):
    assert analysis.verdict.text.startswith("Export the model for the CPU")


def _copy(to: Path) -> Path:
    return Path(shutil.copytree(TRACKED, to / "run"))


def test_without_callbacks_it_is_no_run(tmp_path):
    folder = _copy(tmp_path)
    shutil.rmtree(folder / schema.INSIDE_DIR)
    with pytest.raises(InputError):
        load_run(folder)


def _cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize("size", [0, 100, 850])
@pytest.mark.parametrize("cut", [schema.HOST_CSV, schema.RUN_JSON])
def test_a_file_that_was_cut_is_said_to_be_and_the_calls_are_there(tmp_path, cut, size):
    folder = _copy(tmp_path)
    _cut(folder / cut, size)
    run = load_run(folder)
    assert len(run.calls[0].start_s) == 120
    assert run.duration_s == pytest.approx(load_run(TRACKED).duration_s, abs=1.5)
    assert any(cut in problem for problem in run.problems)


def test_without_a_row_of_the_host_its_clock_is_that_of_events_and_of_run_json(tmp_path, analysis):
    folder = _copy(tmp_path)
    (folder / schema.HOST_CSV).unlink()
    run = load_run(folder)
    assert run.problems == ("host.csv is missing: CPU and host memory are not known",)
    assert run.duration_s == pytest.approx(analysis.run.duration_s, abs=0.1)
    (folder / schema.EVENTS_JSONL).unlink()
    assert load_run(folder).duration_s == pytest.approx(analysis.run.duration_s, abs=0.1)
    assert analyse(run).coverage == 0
    assert analyse(run).verdict.text == analysis.verdict.text


def test_without_run_json_and_any_row_the_run_lasts_as_long_as_its_events(tmp_path, analysis):
    folder = _copy(tmp_path)
    for name in (schema.RUN_JSON, schema.HOST_CSV):
        _cut(folder / name, 0)
    assert load_run(folder).duration_s == pytest.approx(analysis.run.duration_s, abs=0.1)


def test_neither_run_json_nor_an_event_says_that_there_was_no_gpu(tmp_path):
    folder = _copy(tmp_path)
    (folder / schema.RUN_JSON).unlink()
    (folder / schema.EVENTS_JSONL).unlink()
    with pytest.raises(InputError, match="not one valid row"):
        load_run(folder)


def test_samples_that_were_lost_are_not_taken_for_a_machine_without_a_gpu(tmp_path):
    folder = _copy(tmp_path)
    info = json.loads((folder / schema.RUN_JSON).read_text())
    (folder / schema.RUN_JSON).write_text(json.dumps({**info, "gpus": [{"index": 0}]}))
    with pytest.raises(InputError, match="not one valid row"):
        load_run(folder)
