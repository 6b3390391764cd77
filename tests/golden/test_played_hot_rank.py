"""A played training on four GPUs, one of which heat slows (round 17): in each step the others wait for it."""

import pandas as pd
import pytest
from support.played_folder import write_played
from support.played_training import Played

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.load import load_run

RANKS = Played(epochs=4, train_s=400, validation_s=20, train_pct=98, gpus=4, inside=True, interval_s=2.0)
SW_HEAT = 1 << 5


def test_what_one_rank_lost_all_of_its_training_lost(tmp_path):
    run = tmp_path / "run"
    write_played(run, RANKS)
    rows = pd.read_csv(run / schema.SAMPLES_CSV)
    full_mhz = RANKS.train_clock_mhz
    hot = (rows["gpu"] == 3) & (rows["sm_clock_mhz"] == full_mhz) & (rows["mono_s"] > rows["mono_s"].min() + 300)
    rows.loc[hot, ["sm_clock_mhz", "clock_event_reasons", "temperature_c"]] = (int(0.7 * full_mhz), SW_HEAT, 90)
    rows.to_csv(run / schema.SAMPLES_CSV, index=False)
    found = analyse(load_run(run))
    (heat,) = [each for each in found.findings if each.rule == "thermal"]
    assert heat.summary.endswith("; GPUs 0 to 2 waited for it")
    ledger = {row.name: row.gpu_seconds for row in found.ledger}
    assert ledger["thermal"] == pytest.approx(4 * heat.lost_gpu_s, rel=0.05)  # in validation nobody waits
    assert heat.share_of_training == pytest.approx(ledger["thermal"] / (ledger["thermal"] + ledger["work"]), rel=0.1)
