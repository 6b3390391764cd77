import numpy as np
import pandas as pd
import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.analyse.track import tracks


def ring_of(util, start=0.0, step=0.2):
    return pd.DataFrame({"t_s": start + np.arange(len(util)) * step, "gpu": 0, "gpu_util_pct": util, "power_w": np.nan})


def test_the_drivers_own_readings_stand_for_utilisation_where_they_are():
    fine = [float(90 if i % 2 else 0) for i in range(500)]
    (track,) = tracks(make_run(readings((90, 100)), ring=ring_of(fine)))
    assert track.interval_s == pytest.approx(0.2)
    assert track.mean_pct(0, 99) == pytest.approx(45, abs=1)
    assert analyse(make_run(readings((90, 100)), ring=ring_of(fine))).gpus[0].quantities[
        "gpu_util_pct"
    ].mean == pytest.approx(45, abs=1)


def test_ticks_fill_in_where_the_ring_has_nothing():
    (track,) = tracks(make_run(readings((90, 100)), ring=ring_of([50.0] * 250)))  # the first 50 s
    assert track.mean_pct(0, 49) == pytest.approx(50)
    assert track.mean_pct(51, 100) == pytest.approx(90)
    assert track.hold_s.sum() == pytest.approx(100, abs=1.2)


def test_what_the_driver_kept_from_before_the_recording_counts_from_its_beginning_on():
    run = make_run(readings((90, 100)), ring=ring_of([90.0] * 503, start=-0.55))
    (track,) = tracks(run)
    assert track.t_s.min() == 0.0
    found = analyse(run)
    assert sum(row.gpu_seconds for row in found.ledger) == pytest.approx(run.duration_s, abs=1e-6)
    assert all(row.name != "unmeasured" for row in found.ledger)


def test_a_track_holds_the_runs_own_arrays_where_nothing_had_to_be_changed():
    run = make_run(readings((90, 100)), ring=ring_of([90.0] * 500))
    (track,) = tracks(run)
    assert np.shares_memory(track.t_s, run.ring["t_s"].to_numpy())
    assert np.shares_memory(track.util_pct, run.ring["gpu_util_pct"].to_numpy())


def test_the_edges_of_a_drop_are_as_fine_as_the_ring():
    fine = readings((90, 60.4), (5, 11.8), (90, 27.8), interval_s=0.2)
    (drop,) = analyse(make_run(readings((90, 61), (5, 12), (90, 27)), ring=ring_of([float(v) for v in fine]))).findings
    assert (drop.start_t_s, drop.end_t_s) == (pytest.approx(60.4, abs=0.01), pytest.approx(72.2, abs=0.01))


def test_the_ledger_still_adds_up_and_keeps_the_energy():
    run = make_run(readings((70, 100)), quantities={"power_w": [200.0] * 100}, ring=ring_of([70.0] * 500))
    found = analyse(run)
    assert sum(row.gpu_seconds for row in found.ledger) == pytest.approx(100, abs=1e-6)
    assert sum(row.energy_j for row in found.ledger) == pytest.approx(found.gpus[0].energy_j, rel=1e-6)
