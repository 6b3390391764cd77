import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.analyse.timeseries.gpu_series import gaps, gpu_series, running_total
from gpu_report.analyse.timeseries.intervals import ROWS_AT_ONCE


def ring_of(util, start=0.0, step=0.2):
    return pd.DataFrame({"t_s": start + np.arange(len(util)) * step, "gpu": 0, "gpu_util_pct": util, "power_w": np.nan})


def test_the_drivers_own_readings_stand_for_utilisation_where_they_are():
    fine = [float(90 if i % 2 else 0) for i in range(500)]
    (series,) = gpu_series(make_run(readings((90, 100)), ring=ring_of(fine)))
    assert series.interval_s == pytest.approx(0.2)
    assert series.mean_util_pct(0, 99) == pytest.approx(45, abs=1)
    assert analyse(make_run(readings((90, 100)), ring=ring_of(fine))).gpus[0].quantities[
        "gpu_util_pct"
    ].mean == pytest.approx(45, abs=1)


def test_ticks_fill_in_where_the_ring_has_nothing():
    (series,) = gpu_series(make_run(readings((90, 100)), ring=ring_of([50.0] * 250)))  # the first 50 s
    assert series.mean_util_pct(0, 49) == pytest.approx(50)
    assert series.mean_util_pct(51, 100) == pytest.approx(90)
    assert series.weight_s.sum() == pytest.approx(100, abs=1.2)


def test_the_mean_of_a_long_stretch_is_that_of_all_its_parts():
    util = np.random.default_rng(1).integers(0, 101, ROWS_AT_ONCE + 5000).astype(float)
    (series,) = gpu_series(make_run(readings((90, 14_200)), ring=ring_of(util)))
    first, last = 777, ROWS_AT_ONCE + 3000
    mean = np.average(series.util_pct[first:last], weights=series.weight_s[first:last])
    between = float(series.t_s[first]), float(series.t_s[last])
    assert series.mean_util_pct(*between) == pytest.approx(mean, rel=1e-12)
    assert np.isnan(series.mean_util_pct(1e9, 2e9))


def test_a_track_holds_the_runs_own_arrays_where_nothing_had_to_be_changed():
    run = make_run(readings((90, 100)), ring=ring_of([90.0] * 500))
    (series,) = gpu_series(run)
    assert np.shares_memory(series.t_s, run.ring["t_s"].to_numpy())
    assert np.shares_memory(series.util_pct, run.ring["gpu_util_pct"].to_numpy())


def test_the_edges_of_a_drop_are_as_fine_as_the_ring():
    fine = readings((90, 60.4), (5, 11.8), (90, 27.8), interval_s=0.2)
    (drop,) = analyse(make_run(readings((90, 61), (5, 12), (90, 27)), ring=ring_of([float(v) for v in fine]))).findings
    assert (drop.start_t_s, drop.end_t_s) == (pytest.approx(60.4, abs=0.01), pytest.approx(72.2, abs=0.01))


def test_the_ledger_still_adds_up_and_keeps_the_energy():
    run = make_run(readings((70, 100)), quantities={"power_w": [200.0] * 100}, ring=ring_of([70.0] * 500))
    found = analyse(run)
    assert sum(row.gpu_seconds for row in found.ledger) == pytest.approx(100, abs=1e-6)
    assert sum(row.energy_j for row in found.ledger) == pytest.approx(found.gpus[0].energy_j, rel=1e-6)


class TestSamplesThatWereCut:
    """The driver's own readings (ring.csv) go on where samples.csv was cut: they are no samples."""

    def cut(self, at=60, power=200.0):
        run = make_run(
            readings((70, at)),
            quantities={"power_w": [power] * at, "memory_used_mib": [1000.0] * at},
            ring=ring_of([70.0] * 500),
            rows=[(1, 40.0), (2, 80.0), (3, 100.0)],
            duration_s=100.0,
        )
        return analyse(run)

    def test_coverage_counts_ticks_and_the_rest_is_a_gap(self):
        found = self.cut()
        assert found.coverage == pytest.approx(0.6, abs=0.01)
        assert [(gap.start_t_s, gap.end_t_s, gap.reason) for gap in found.gaps] == [(60.0, 100.0, "no rows")]
        assert found.longest_gap_s == pytest.approx(40)

    def test_the_verdict_says_so_and_does_not_tell_that_nothing_fell(self):
        found, whole = self.cut().verdict.text, self.cut(at=100).verdict.text
        assert "40 % of the samples are missing: there only the driver's own utilisation readings are known" in found
        assert "never dropped unexpectedly" not in found
        assert "never dropped unexpectedly" in whole
        assert "missing" not in whole

    def test_sums_and_means_of_what_was_not_sampled_are_missing_and_not_low(self):
        found = self.cut()
        assert [epoch.energy_j for epoch in found.epochs] == [pytest.approx(8000), None, None]
        assert [epoch.memory_peak_mib for epoch in found.epochs] == [1000.0, None, None]
        assert "power_w" not in found.epochs[1].gpus[0]
        assert found.epochs[2].gpu_util_pct == pytest.approx(70)  # which the driver kept
        assert found.gpus[0].energy_j is None

    def test_an_epoch_of_which_most_was_sampled_has_the_energy_of_all_of_it(self):
        assert self.cut(at=75).epochs[1].energy_j == pytest.approx(8000)

    def test_one_reading_is_of_no_time_and_has_no_energy(self):
        found = analyse(make_run([95.0], quantities={"power_w": [300.0]}, duration_s=0.0))
        assert found.gpus[0].energy_j is None

    def test_of_a_hole_the_counter_tells_the_whole_and_no_part(self):
        counter = [1000.0 + 200.0 * t if t % 10 == 0 else float("nan") for t in range(100)]
        run = make_run(
            readings((70, 100)),
            quantities={"power_w": [200.0] * 100, "energy_j": counter},
            ring=ring_of([70.0] * 500),
            rows=[(1, 40.0), (2, 60.0), (3, 100.0)],
        )
        holed = run.samples[~run.samples["t_s"].between(38, 59)].reset_index(drop=True)
        found = analyse(dataclasses.replace(run, samples=holed))
        assert [epoch.energy_j for epoch in found.epochs] == [pytest.approx(8000), None, pytest.approx(8000)]
        assert found.gpus[0].energy_j == pytest.approx(20000)

    def test_rows_of_the_ledger_have_no_energy_where_that_of_much_of_them_is_not_known(self):
        rows = {row.name: row.energy_j for row in self.cut().ledger}
        assert rows["work"] is None
        whole = {row.name: row.energy_j for row in self.cut(at=100).ledger}
        assert whole["work"] == pytest.approx(0.7 * 20000, rel=0.01)


def test_a_series_worked_out_in_parts_is_that_of_all_at_once(monkeypatch):
    ring = ring_of([90.0] * 500).drop(index=[*range(31, 60), 64, *range(127, 129)])
    run = make_run(readings((90, 100)), ring=ring)
    (whole,) = gpu_series(run)
    monkeypatch.setattr("gpu_report.analyse.timeseries.intervals.ROWS_AT_ONCE", 32)
    (parts,) = gpu_series(run)
    np.testing.assert_array_equal(parts.weight_s[:], whole.weight_s[:])
    np.testing.assert_array_equal(parts.after_gap, np.append(True, np.diff(whole.t_s) - whole.weight_s[:-1] > 1e-6))
    assert gaps(parts, run.duration_s) == gaps(whole, run.duration_s)
    assert running_total(parts.weight_s[:], parts.after_gap)[-1] == pytest.approx(parts.weight_s[parts.after_gap].sum())


def test_the_gpus_that_have_rows_are_told_in_the_order_of_these():
    assert make_run([[90.0, 90.0], [80.0], [70.0]]).sampled_gpus == [0, 1, 2]
    apart = make_run([[90.0], [80.0, 70.0]])
    assert dataclasses.replace(apart, samples=apart.samples.iloc[[1, 0, 2]]).sampled_gpus == [1, 0]
    assert dataclasses.replace(apart, samples=apart.samples.iloc[:0]).sampled_gpus == []
