"""Trainings with two causes, or one that comes by the clock, played (round 16): which is named, and what it costs."""

from dataclasses import replace

import pandas as pd
import pytest
from support.played_folder import write_played
from support.played_training import Played
from support.played_yolo import MONO_S

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


@pytest.mark.parametrize(("waited", "worker_pct", "is_said"), [(0.12, 97, True), (0.02, 97, False), (0.12, 40, False)])
def test_the_loader_that_a_lower_clock_hides_is_the_next_limit(tmp_path, waited, worker_pct, is_said):
    """The clock is down in the last five of twelve epochs, whose steps take half as long again."""
    played = replace(STEPS, train_pct=92, data_wait_share=waited, worker_cpu_pct=worker_pct)
    played = replace(played, train_of=lambda epoch: 450 if epoch > 7 else 300)
    training = write_played(tmp_path / "run", played)
    path = tmp_path / "run" / "samples.csv"
    rows = pd.read_csv(path)
    down = (rows["mono_s"] - MONO_S >= training.epochs[7].start_s) & (rows["gpu_util_pct"] > 60)
    rows.loc[down, ["sm_clock_mhz", "power_w"]] = 1700, 150
    rows.to_csv(path, index=False)
    analysis = analyse(load_run(tmp_path / "run"))
    (finding,) = (each for each in analysis.findings if each.rule == "lower-clock")
    assert [each.is_next for each in finding.advice] == [True] * is_said
    then = "Then give the loader more workers, or CPU cores: at the full clock 8 data-loader workers could not keep up"
    assert (then in analysis.verdict.text) is is_said
