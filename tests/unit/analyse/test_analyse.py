import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runs import make_run, readings
from support.samples import analysis_of, run_of

from gpu_report.analyse import analyse
from gpu_report.analyse.signals.host.kernel_events import kernel_events_near
from gpu_report.analyse.timeseries.weighted_stats import weighted_stats
from gpu_report.model import KernelEvent, KernelLog, Options, RecordedEvent

NAN = float("nan")


def xid(t_s, code=79, severity="critical", gpu=0):
    return KernelEvent(t_s, "xid", severity, f"NVRM: Xid: {code}", "fell off the bus", gpu=gpu, code=code)


def four_epochs(first_dip=2, last_dip=2):
    """Four epochs of 30 s whose validation dips end at rows at 40, 70, 100 and 130 s; startup takes 10 s."""
    util = readings((0, 10))
    for dip in (first_dip, 2, 2, last_dip):
        util += readings((90, 30 - dip), (0, dip))
    return make_run([*util, *readings((90, 20))], rows=[(1, 40), (2, 70), (3, 100), (4, 130)])


class TestOrder:
    def test_findings_stand_in_the_order_of_what_a_reader_wins(self):
        util = readings((90, 60), (0, 14), (90, 60), (20, 40), (90, 60))
        found = analyse(make_run(util))
        assert [(f.start_t_s, f.id) for f in found.findings] == [(134, "drop-2"), (60, "drop-1")]
        assert found.verdict.order == ("drop-2", "drop-1")

    def test_what_failed_the_run_stands_before_what_is_worth_more(self):
        util = readings((90, 60), (0, 40), (90, 60))
        found = analyse(make_run(util, kernel=[xid(150)]))
        assert [f.rule for f in found.findings] == ["kernel", "drop"]

    def test_every_sample_run_lists_what_leads_before_what_the_verdict_says_later(self):
        for name in ("n-mixed", "s-storage", "m-mixed", "n-starved"):
            found = analysis_of(name)
            unexpected = [f.id for f in found.findings if not f.expected and f.id in found.verdict.order]
            assert unexpected == list(found.verdict.order), name


class TestFindings:
    def test_a_kernel_event_beside_a_drop_is_its_cause(self):
        run = make_run(readings((90, 60), (0, 20), (90, 30)), kernel=[xid(61)])
        drop = next(f for f in analyse(run).findings if f.rule == "drop")
        assert drop.cause.name == "gpu-fault"
        assert [n.event.code for n in drop.kernel_events] == [79]

    def test_nothing_beside_a_drop_leaves_it_unexplained(self):
        (drop,) = analyse(make_run(readings((90, 60), (0, 20), (90, 30)))).findings
        assert drop.cause.name == "unexplained"
        assert (drop.start_t_s, drop.end_t_s, drop.level_pct, drop.low_pct) == (60, 80, 90, 0)

    def test_a_kernel_log_that_was_not_read_is_said_and_how_to_read_it(self):
        run = make_run(readings((90, 60), (0, 20), (90, 30)))
        blind = type(run)(**{**vars(run), "kernel": KernelLog("restricted", advice="allow it")})
        (drop,) = analyse(blind).findings
        assert "not read" in drop.cause.explanation
        assert [advice.text for advice in drop.advice] == ["allow it"]

    def test_a_fault_without_a_drop_is_a_finding_and_opens_the_verdict(self):
        found = analyse(make_run(readings((90, 60)), kernel=[xid(30)]))
        assert [f.id for f in found.findings] == ["kernel-1"]
        assert found.verdict.text.startswith("GPU 0: fell off the bus.")

    def test_a_harmless_message_is_no_finding(self):
        assert analyse(make_run(readings((90, 60)), kernel=[xid(30, severity="info")])).findings == ()

    def test_a_drop_at_the_end_of_an_epoch_as_long_as_its_siblings_is_expected(self):
        long_dips = four_epochs()
        stretched = analyse(
            make_run(
                [*readings((0, 10)), *(readings((90, 40), (0, 12)) * 3), *readings((90, 20))],
                rows=[(1, 61), (2, 113), (3, 165)],
            )
        )
        assert [f.expected for f in stretched.findings] == [True, True, True]
        assert analyse(long_dips).findings == ()

    def test_a_drop_at_the_end_of_an_epoch_much_longer_than_its_siblings_is_not_expected(self):
        (drop,) = analyse(four_epochs(last_dip=15)).findings
        assert (drop.expected, drop.at_boundary, drop.epoch) == (False, True, 4)
        assert drop.cause.name == "unexplained"

    def test_the_first_validation_may_warm_up(self):
        (drop,) = analyse(four_epochs(first_dip=12)).findings
        assert (drop.expected, drop.severity) == (True, "info")

    def test_a_drop_in_mid_epoch_names_its_epoch_and_no_boundary(self):
        util = [*readings((0, 10), (90, 50), (0, 15), (90, 40), (0, 2), (90, 20))]
        (drop,) = analyse(make_run(util, rows=[(1, 116)])).findings
        assert (drop.epoch, drop.at_boundary, drop.expected) == (1, False, False)

    def test_drops_are_numbered_in_time_and_listed_worst_first(self):
        run = make_run(readings((90, 60), (0, 12), (90, 60), (0, 30), (90, 30)))
        assert [f.id for f in analyse(run).findings] == ["drop-2", "drop-1"]

    def test_idle_time_after_the_command_is_no_drop(self):
        ended = RecordedEvent(60, "command_ended", None, {"exit_code": 0})
        assert analyse(make_run(readings((90, 60), (0, 60)), events=[ended])).findings == ()

    def test_idle_time_after_the_process_left_the_gpu_is_no_drop_and_a_hang_is_one(self):
        memory = {"memory_used_mib": [40_000.0] * 60 + [4.0] * 60}
        assert analyse(make_run(readings((90, 60), (0, 60)), quantities=memory)).findings == ()
        hung = {"memory_used_mib": [40_000.0] * 120}
        assert len(analyse(make_run(readings((90, 60), (0, 60)), quantities=hung)).findings) == 1

    def test_startup_is_no_drop_and_does_not_sink_the_level(self):
        (drop,) = analyse(make_run(readings((0, 120), (90, 15), (0, 12), (90, 30)))).findings
        assert (drop.start_t_s, drop.level_pct) == (135, 90)


class TestKernelEventsNear:
    def test_nearest_come_first_and_far_ones_not_at_all(self):
        events = [xid(t, code=t) for t in (10, 95, 105, 121, 200)]
        near = kernel_events_near(events, 100, 120, 0)
        assert [(n.event.code, n.offset_s) for n in near] == [(105, 0), (121, 1), (95, -5)]

    def test_an_event_that_went_on_into_the_window_counts(self):
        lasting = KernelEvent(10, "nfs", "warning", "nfs: server not responding", "gone", last_t_s=110, count=9)
        assert len(kernel_events_near([lasting], 100, 120, 0)) == 1


class TestStats:
    def test_weights_are_the_time_each_reading_stands_for(self):
        stats = weighted_stats(np.array([0.0, 100.0]), np.array([3.0, 1.0]))
        assert stats.mean == 25
        assert (stats.min, stats.max) == (0, 100)

    def test_missing_readings_are_not_zero(self):
        assert weighted_stats(np.array([NAN, 80.0, NAN]), np.ones(3)).mean == 80
        assert weighted_stats(np.array([NAN]), np.ones(1)) is None

    @given(st.lists(st.floats(0, 100), min_size=1, max_size=50))
    def test_percentiles_are_ordered(self, values):
        s = weighted_stats(np.array(values), np.ones(len(values)))
        assert s.min <= s.p5 <= s.p50 <= s.p95 <= s.max
        assert s.min - 1e-9 <= s.mean <= s.max + 1e-9

    def test_energy_is_the_counter_where_there_is_one(self):
        power = {"power_w": [100.0] * 60, "energy_j": [1000.0, *([NAN] * 58), 1000.0 + 59 * 110]}
        (gpu,) = analyse(make_run(readings((90, 60)), quantities=power)).gpus
        assert gpu.energy_source == "counter"
        assert gpu.energy_j == pytest.approx(60 * 110)

    def test_a_counter_that_went_back_is_not_believed(self):
        power = {"power_w": [100.0] * 60, "energy_j": [1000.0, *([NAN] * 58), 5.0]}
        (gpu,) = analyse(make_run(readings((90, 60)), quantities=power)).gpus
        assert (gpu.energy_j, gpu.energy_source) == (pytest.approx(6000), "power")

    @pytest.mark.parametrize("unread", [range(5, 35), range(60)])
    def test_the_counter_tells_the_total_where_power_could_not_be_read(self, unread):
        power_w = [NAN if at in unread else 100.0 for at in range(60)]
        counter = [1000.0 + 110 * at if at % 10 == 0 or at == 59 else NAN for at in range(60)]
        run = make_run(readings((90, 60)), quantities={"power_w": power_w, "energy_j": counter})
        analysis = analyse(run)
        (gpu,) = analysis.gpus
        assert gpu.energy_source == "counter"
        assert gpu.energy_j == pytest.approx(60 * 110, abs=111)  # the last second is told by power alone
        assert all(row.energy_j is None for row in analysis.ledger)  # whose it was is not known

    def test_joules_of_a_reading_without_power_are_in_the_row_of_its_time(self):
        power_w = [NAN if at == 30 else 100.0 for at in range(60)]
        power = {"power_w": power_w, "energy_j": [1000.0, *([NAN] * 58), 1000.0 + 59 * 110]}
        analysis = analyse(make_run(readings((90, 60)), quantities=power))
        assert analysis.gpus[0].energy_j == pytest.approx(60 * 110)
        assert sum(row.energy_j for row in analysis.ledger) == pytest.approx(60 * 110)

    def test_energy_that_is_not_known_of_the_whole_run_still_has_its_source(self):
        power = {"power_w": [NAN if at > 30 else 100.0 for at in range(60)]}
        (gpu,) = analyse(make_run(readings((90, 60)), quantities=power)).gpus
        assert (gpu.energy_j, gpu.energy_source) == (None, "power")

    def test_a_quantity_that_was_never_read_is_absent(self):
        (gpu,) = analyse(make_run(readings((90, 60)))).gpus
        assert "power_w" not in gpu.quantities
        assert (gpu.energy_j, gpu.energy_source) == (None, "none")


class TestEpochs:
    @pytest.mark.parametrize("second", ["used", "nothing read", "idle"])
    def test_energy_is_not_known_where_that_of_a_gpu_that_may_have_worked_is_not(self, second):
        util = [(90 if second == "used" else 0, 60)]
        run = make_run([readings((90, 60)), readings(*util)], rows=[(1, 30), (2, 60)])
        samples = run.samples.assign(power_w=np.where(run.samples["gpu"] == 0, 100.0, NAN))
        samples = samples[samples["gpu"] == 0] if second == "nothing read" else samples
        joules = [epoch.energy_j for epoch in analyse(dataclasses.replace(run, samples=samples)).epochs]
        assert joules == ([3000, 3000] if second == "idle" else [None, None])

    def test_energy_and_memory_are_without_a_gpu_on_which_only_others_worked(self):
        run = run_of("s-shared-gpu")
        analysis = analyse(dataclasses.replace(run, processes=run.processes[:0]))
        assert [gpu.of_others for gpu in analysis.gpus] == [False, True]
        for epoch in analysis.epochs:
            mine = epoch.gpus[0]
            assert epoch.memory_peak_mib == mine["memory_used_mib"].max
            assert epoch.energy_j == pytest.approx(mine["power_w"].mean * epoch.duration_s, rel=0.1)

    def test_each_epoch_has_its_own_mean(self):
        run = make_run(readings((0, 10), (80, 30), (40, 30), (40, 10)), rows=[(1, 40), (2, 70)])
        first, second = analyse(run).epochs
        assert (first.epoch, first.start_t_s, first.end_t_s) == (1, 0, 40)
        assert first.gpu_util_pct == pytest.approx(60)
        assert second.gpu_util_pct == pytest.approx(40)
        assert (first.loss, first.lr) == (3.0, 0.01)

    def test_phases_do_not_overlap_and_stay_inside_the_run(self):
        found = analyse(four_epochs()).phases
        assert all(a.end_t_s <= b.start_t_s for a, b in itertools.pairwise(found))
        assert found[0].start_t_s >= 0
        assert found[-1].end_t_s <= 150
        assert [p.name for p in found[:4]] == ["startup", "train", "validation", "train"]

    def test_what_follows_the_last_of_all_epochs_is_the_final_evaluation(self):
        run = make_run(readings((0, 10), (90, 60), (0, 3), (50, 7)), rows=[(1, 72)], epochs_asked=1)
        assert analyse(run).phases[-1].name == "final evaluation"


class TestLedger:
    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(st.tuples(st.sampled_from([0, 5, 60, 100, NAN]), st.integers(1, 60)), min_size=1, max_size=8),
        st.integers(1, 3),
        st.floats(0, 30),
    )
    def test_gpu_seconds_add_up_exactly(self, parts, gpus, tail_s):
        values = readings(*parts)
        run = make_run([values] * gpus, rows=[(1, len(values) / 2)], duration_s=len(values) + tail_s)
        ledger = analyse(run).ledger
        assert sum(row.gpu_seconds for row in ledger) == pytest.approx(run.duration_s * gpus, abs=1e-5)
        assert sum(row.share for row in ledger) == pytest.approx(1, abs=1e-6)
        assert all(row.gpu_seconds > 0 for row in ledger)

    def test_a_train_second_is_split_by_utilisation(self):
        ledger = {row.name: row.gpu_seconds for row in analyse(make_run(readings((70, 100)))).ledger}
        assert ledger == {"work": pytest.approx(70), "short gaps": pytest.approx(30)}

    def test_missing_readings_are_unmeasured_not_idle(self):
        ledger = {row.name: row.gpu_seconds for row in analyse(make_run(readings((100, 50), (NAN, 50)))).ledger}
        assert ledger == {"work": pytest.approx(51, abs=1), "unmeasured": pytest.approx(49, abs=1)}

    def test_money_is_gpu_hours_times_the_price(self):
        analysis = analyse(make_run(readings((100, 60))), Options(price_per_hour=6))
        assert sum(row.money for row in analysis.ledger) == pytest.approx(0.1)

    def test_energy_of_the_rows_adds_up_to_that_of_the_gpus(self):
        power = {"power_w": [300.0] * 100}
        analysis = analyse(make_run(readings((70, 50), (0, 50)), quantities=power))
        assert sum(row.energy_j for row in analysis.ledger) == pytest.approx(analysis.gpus[0].energy_j)


class TestVerdict:
    @pytest.mark.parametrize(
        ("util", "says"),
        [
            (10, "No clear fix found: the GPU was busy only 10 %"),
            (50, "busy only 50 %"),
            (80, "Nothing to fix"),
            (99, "the model itself is the limit"),
        ],
    )
    def test_it_reads_the_mean(self, util, says):
        assert says in analyse(make_run(readings((util, 100)))).verdict.text

    def test_an_unused_gpu_is_named(self):
        assert "GPU 1 was never used" in analyse(make_run([readings((90, 60)), readings((0, 60))])).verdict.text

    def test_a_recording_without_work_says_so(self):
        found = analyse(make_run(readings((0, 60))))
        assert found.verdict.text.startswith("No GPU worked")
        assert found.findings == ()


def test_coverage_of_mig_devices_whose_gpu_was_not_recorded_is_theirs():
    run = make_run([readings((90, 40)), readings((90, 40))], duration_s=80.0)
    devices = tuple(dataclasses.replace(gpu, parent_index=7, mig_index=gpu.index) for gpu in run.gpus)
    assert analyse(dataclasses.replace(run, gpus=devices)).coverage == pytest.approx(0.5, abs=0.02)


def test_coverage_counts_what_was_measured():
    found = analyse(make_run(readings((90, 50), (NAN, 50))))
    assert found.coverage == pytest.approx(0.5, abs=0.02)
    assert found.longest_gap_s == pytest.approx(49, abs=1.1)
    assert not math.isnan(found.gaps[0].start_t_s)
    assert found.gaps[0].reason == "readings failed"
