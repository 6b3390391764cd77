"""Epochs of minutes: recordings whose epochs get 12 times as many batches still begin with what held them back."""

import pytest
from support.archives import unpacked
from support.longer_epochs import longer
from support.samples import SAMPLES

from gpu_report.analyse import analyse
from gpu_report.load import load_run

TIMES = 12
# What lasts all the time takes the same share of an epoch of any length.
BEGINS = {
    "ab-batch-8": "Set `batch=64` (now 8): epochs drop from",
    "m-two-gpus-one-used": "Set `device=0,1`: GPU 1 was never used",
    "n-cpu-quota": "Raise the CPU limit of 4 cores",
    "n-starved": "Set `workers=1",
    "s-batchwork": "Look at what the main process does between steps",
    "s-latency": "Set `workers=16` (now 8): epochs drop from",
    "s-memory-steps": "Find what keeps GPU memory from batch to batch",
    "l-healthy": "Set `batch=64` (now 32): epochs drop from",
    "m-ddp": "Nothing to fix",
    "m-healthy": "Nothing to fix",
    "n-fed": "Nothing to fix",
    "s-healthy": "Nothing to fix",
    "gears": "Train without a debugger or coverage tool (usage.py:16)",
    "grasping": "Look at `slope` (drift.py:19): this background thread kept Python busy",
    "lanes": "Nothing to fix",
    "retina": "Look at `free_memory` (memory.py:13): it took 7",
    "shelf": "Look at `temperature` (thermal.py:15): it took 3",
}


@pytest.fixture(scope="module")
def unseen(tmp_path_factory):
    return unpacked(tmp_path_factory.mktemp("unseen"), "unseen_h200_four")


@pytest.mark.parametrize("name", sorted(BEGINS))
def test_a_report_of_longer_epochs_begins_with_the_same(unseen, name):
    run = load_run(SAMPLES / name if (SAMPLES / name).is_dir() else unseen / name)
    found = analyse(longer(run, TIMES))
    assert found.verdict.text.startswith(BEGINS[name])
    now, then = (analysis.epoch_now for analysis in (analyse(run), found))
    if now and then and now.train_s and then.train_s:
        assert 0.6 * TIMES < then.train_s / now.train_s < 1.4 * TIMES
