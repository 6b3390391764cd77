"""A played training of which no recorder saw the end of an epoch (round 17): its length is known, its parts are not."""

import pandas as pd
from support.played_folder import write_played
from support.played_training import Played
from support.played_yolo import MONO_S

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.analyse.timeline.phases import FROM_BOTH
from gpu_report.load import load_run

EPOCHS = Played(epochs=8, train_s=200, validation_s=24, interval_s=2.0)


def test_a_hole_in_the_readings_tells_nothing_of_a_validation_or_a_checkpoint(tmp_path):
    run = tmp_path / "run"
    write_played(run, EPOCHS)
    events = (run / schema.EVENTS_JSONL).read_text().splitlines()
    kept = [line for line in events if '"checkpoint"' not in line]
    (run / schema.EVENTS_JSONL).write_text("\n".join(kept) + "\n")
    ended = [row.row_t_s for row in load_run(run).epoch_rows]
    rows = pd.read_csv(run / schema.SAMPLES_CSV)
    t_s = rows["mono_s"] - MONO_S
    rows[(t_s < ended[3] - 100) | (t_s > ended[3] + 100)].to_csv(run / schema.SAMPLES_CSV, index=False)
    found = analyse(load_run(run))
    by_utilisation = {(phase.epoch, phase.name) for phase in found.phases if phase.source == FROM_BOTH}
    assert {(3, "validation"), (3, "checkpoint")} <= by_utilisation
    assert by_utilisation.isdisjoint({(4, "validation"), (4, "checkpoint")})
