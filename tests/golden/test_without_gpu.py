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


@pytest.mark.parametrize("gone", [schema.INSIDE_DIR, schema.HOST_CSV])
def test_without_callbacks_or_a_clock_it_is_no_run(tmp_path, gone):
    folder = _copy(tmp_path)
    path = folder / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(InputError):
        load_run(folder)


def test_samples_that_were_lost_are_not_taken_for_a_machine_without_a_gpu(tmp_path):
    folder = _copy(tmp_path)
    info = json.loads((folder / schema.RUN_JSON).read_text())
    (folder / schema.RUN_JSON).write_text(json.dumps({**info, "gpus": [{"index": 0}]}))
    with pytest.raises(InputError, match="not one valid row"):
        load_run(folder)
