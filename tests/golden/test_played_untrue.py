"""Played trainings of which a report said what was not so: limits, waits, ends and what they cost."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from support.played_folder import write_played
from support.played_training import Card, Played
from support.played_yolo import MONO_S

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.model import Analysis

LAPTOP = Card("NVIDIA GeForce RTX 4070 Laptop GPU", memory_mib=8188, limit_w=100.0, idle_w=10.0, clock_mhz=2490)
AT_LIMIT = Played(
    epochs=6, train_s=200, card=LAPTOP, train_clock_mhz=2350, train_clock_reasons=4, validation_w=60, noise_pct=8
)
ChangeSamples = Callable[[pd.DataFrame], None]


def _said_of(folder: Path, played: Played, change: ChangeSamples) -> Analysis:
    """Return what is said of a training whose readings of GPUs were changed."""
    write_played(folder, played)
    path = folder / schema.SAMPLES_CSV
    samples = pd.read_csv(path)
    change(samples)
    samples.to_csv(path, index=False)
    return analyse(load_run(folder))


def _free_each_20th(samples: pd.DataFrame) -> None:
    """Let each 20th reading of training be at full clock, with no reason: work alike."""
    samples.loc[(samples.clock_event_reasons == 4) & (samples.index % 20 == 0), "sm_clock_mhz"] = 2490
    samples.loc[samples.sm_clock_mhz == 2490, "clock_event_reasons"] = 0


@pytest.mark.parametrize("waits_pct", [35, 20])
def test_power_that_waits_for_data_lower_is_no_lowered_limit(tmp_path, waits_pct):
    """A reading is a mean of work at the limit and of waits."""
    busy = 100 - waits_pct
    played = replace(AT_LIMIT, train_pct=busy, train_w=busy, data_wait_share=waits_pct / 100, inside=True)
    said = _said_of(tmp_path / "run", played, _free_each_20th)
    assert "lowered" not in "".join(each.summary for each in said.findings)


def test_a_busy_gpu_far_below_its_limit_has_a_lowered_one(tmp_path):
    said = _said_of(tmp_path / "run", replace(AT_LIMIT, train_pct=96, train_w=60), _free_each_20th)
    (finding,) = (each for each in said.findings if each.rule == "power-cap")
    assert "lowered to about 6" in finding.summary


def _without_memory(folder: Path, epochs: int, interval_s: float) -> Analysis:
    """Return what is said of a training seen from outside whose host is short of memory from its fourth epoch on."""
    played = Played(
        epochs=epochs, train_s=130, validation_s=10, interval_s=interval_s, train_of=lambda n: 130 + 60 * (n > 3)
    )
    training = write_played(folder, played)
    slow = [(each.train_s, each.validation_s) for each in training.epochs if each.number > 3]
    for name, values in (
        (schema.SAMPLES_CSV, {"gpu_util_pct": 62}),
        (schema.HOST_CSV, {"memory_pressure_pct": 90, "memory_full_pressure_pct": 60, "swap_in_mib_s": 110}),
    ):
        rows = pd.read_csv(folder / name)
        for start_s, end_s in slow:
            rows.loc[rows.mono_s.between(MONO_S + start_s, MONO_S + end_s), list(values)] = list(values.values())
        rows.to_csv(folder / name, index=False)
    return analyse(load_run(folder))


@pytest.mark.parametrize(("epochs", "interval_s"), [(16, 5.0), (12, 1.0)])
def test_validations_within_a_slowdown_keep_their_time(tmp_path, epochs, interval_s):
    said = _without_memory(tmp_path / "run", epochs, interval_s)
    (slowed,) = (each for each in said.findings if each.rule == "slowdown")
    assert slowed.cause.name == "memory-pressure"
    rows = {each.name: each.gpu_seconds for each in said.ledger}
    assert rows["validation"] == pytest.approx(10 * epochs, rel=0.25)
    assert rows["memory-pressure"] == pytest.approx(0.38 * 190 * (epochs - 3), rel=0.1)
