"""Trainings with two causes, or one that comes by the clock, played (round 16): which is named, and what it costs."""

from dataclasses import replace

import pytest
from support.played_folder import write_played
from support.played_training import Played

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.render.speedup_rows import shown_rows

# 1,000 batches of 0.3 s an epoch.
STEPS = Played(epochs=12, train_s=300, validation_s=20, inside=True, interval_s=2.0, images=32_000, batch=32)
STEPS = replace(STEPS, train_w=250.0, noise_pct=2.0)


def analysed(folder, played):
    write_played(folder, played)
    return analyse(load_run(folder))


def test_what_fills_a_fifth_of_each_long_step_is_other_code_of_the_main_process(tmp_path):
    found = analysed(tmp_path / "run", replace(STEPS, train_pct=76))
    assert found.verdict.text.startswith("Look at what the main process does between steps (callbacks, loggers)")
    (row,) = shown_rows(found)
    assert (row.limit.cause, row.limit.costs_in_run_s) == ("main-process", pytest.approx(12 * 300 * 0.24, rel=0.1))


@pytest.mark.parametrize(
    "healthy",
    [{"train_pct": 92}, {"train_pct": 76, "images": 128_000}, {"train_pct": 76, "data_wait_share": 0.15}],
    ids=["it hardly idles", "short steps", "it waits for data"],
)
def test_other_gaps_are_no_finding(tmp_path, healthy):
    assert [f.rule for f in analysed(tmp_path / "run", replace(STEPS, **healthy)).findings if not f.expected] == []
