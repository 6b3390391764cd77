"""Trainings on an H200 with faults that no rule was written for: what each report begins with.

Designed and recorded by somebody who had not read a rule (2026-11-26). The truth was measured by training without the
fault: 12-megapixel photos 3.6 times, swapped sets 5.3, 32 bits without TF32 6, a tracking server across an ocean 2.6.
"""

import tarfile

import pytest
from conftest import REPOSITORY

from gpu_report.analyse import analyse
from gpu_report.load import load_run

BEGINS = {
    "drone_inspection": "Set `cache=ram` (now False): epochs drop from 4 min 27 s to about 1 min 43 s",
    "fp32_repro": "Restart with `amp=True` (up to 7\u00d7 faster): the training computed in 32 bits",
    "live_dashboard2": "Look at `smooth` (dashboard.py:23): this background thread kept Python busy 53 % of the time",
    "mlflow_remote": "Look at `log_metric` (tracking.py:13)",
    "val_swapped": "Check `train` and `val` in `data.yaml` (400 images train, 4,400 validate)",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    into = tmp_path_factory.mktemp("unseen")
    with tarfile.open(REPOSITORY / "tests" / "data" / "unseen_h200.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return into


@pytest.mark.parametrize("name", sorted(BEGINS))
def test_what_was_wrong_comes_first(folder, name):
    assert analyse(load_run(folder / name)).verdict.text.startswith(BEGINS[name])


def test_a_model_in_32_bits_has_no_other_work_beside_it(folder):
    rules = {finding.rule for finding in analyse(load_run(folder / "fp32_repro")).findings}
    assert "other-gpu-work" not in rules


def test_a_short_fine_tuning_that_was_stopped_late_is_resumed_and_not_begun_anew(folder):
    said = analyse(load_run(folder / "healthy_finetune")).verdict.text
    assert "Resume after epoch 16" in said
    assert "longer epochs" not in said
    assert "larger `batch`" not in said  # 160 images
