"""Shapes that real runs have: short epochs, resumes, early stops, neighbours on the GPU, gaps."""

import dataclasses

import pandas as pd
import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import EpochRow, KernelEvent, RecordedEvent

NAN = float("nan")


def epochs(*lengths, start=10.0):
    """Return rows of epochs of these lengths after a startup of `start` seconds."""
    at, rows = start, []
    for number, length in enumerate(lengths, 1):
        at += length
        rows.append((number, at))
    return rows


def with_rows(run, rows):
    return dataclasses.replace(run, epoch_rows=tuple(rows))


def processes(*rows):
    """Processes as a recording tells them that does not know whose they are."""
    table = pd.DataFrame(rows, columns=["t_s", "gpu", "pid", "name", "memory_used_mib", "change"])
    return table.assign(owner="unknown", gpu_util_pct=NAN)


def unexpected(run):
    return [(f.start_t_s, f.end_t_s) for f in analyse(run).findings if not f.expected]


def seconds(run):
    return {row.name: row.gpu_seconds for row in analyse(run).ledger}


def test_many_short_epochs_stay_training():
    util = readings((0, 10), *([(80, 2.5), (0, 1.5)] * 60), interval_s=0.5)
    run = make_run(util, 0.5, rows=epochs(*[4.0] * 60))
    assert seconds(run)["work"] == pytest.approx(60 * 2.5 * 0.8, rel=0.1)
    rest = seconds(run).get("checkpoint", 0) + seconds(run).get("validation", 0)
    assert rest <= 60 * 2.0  # 1.5 s each, whose edges are known to one reading of 0.5 s
    assert analyse(run).low_intervals == ()


def test_a_stall_among_short_epochs_is_found():
    parts = [*([(80, 2.5), (0, 1.5)] * 20), (0, 20), *([(80, 2.5), (0, 1.5)] * 20)]
    run = make_run(readings((0, 10), *parts, interval_s=0.5), 0.5, rows=epochs(*[4.0] * 20, 24.0, *[4.0] * 19))
    ((start, end),) = unexpected(run)
    assert (start, end) == (pytest.approx(90, abs=2), pytest.approx(110, abs=1))


def test_a_hang_after_the_only_epoch_is_no_validation():
    run = make_run(readings((0, 10), (90, 60), (0, 600)), rows=[(1, 72)])
    ((start, _),) = unexpected(run)
    assert start == 70


def test_the_validation_of_a_single_epoch_is_expected():
    run = make_run(readings((0, 10), (90, 60), (5, 40), (90, 30)), rows=[(1, 109)])
    assert unexpected(run) == []


def test_a_stall_right_before_a_validation_is_not_excused_by_it():
    epoch = [(90, 100), (0, 60)]
    run = make_run(readings((0, 10), *epoch, *epoch, (90, 100), (0, 110), *epoch), rows=epochs(160, 160, 210, 160))
    ((start, end),) = unexpected(run)
    assert (start, end) == (430, 540)


def test_only_a_process_that_has_just_begun_may_warm_up():
    parts = [(90, 40), (0, 14), *([(90, 40), (0, 2)] * 3)]
    rows = epochs(54, 42, 42, 42)
    assert unexpected(make_run(readings((0, 10), *parts), rows=rows)) == []
    later = [(epoch + 56, at) for epoch, at in rows]
    assert len(unexpected(make_run(readings((0, 10), *parts), rows=later))) == 1


def test_a_blip_does_not_make_a_gpu_part_of_the_run():
    idle = [0.0] * 70 + [3.0] + [0.0] * 29
    found = analyse(make_run([readings((0, 10), (90, 90)), idle, idle]))
    assert "GPUs 1, 2 were never used" in found.verdict.text
    assert [summary.used for summary in found.gpus] == [True, False, False]


def test_means_of_an_epoch_are_over_the_gpus_that_were_used():
    run = make_run([readings((0, 10), (90, 50)), [0.0] * 60], rows=[(1, 60)])
    assert analyse(run).epochs[0].gpu_util_pct == pytest.approx(75, abs=1)


def test_somebody_elses_gpu_is_not_this_runs():
    run = make_run([readings((0, 20), (90, 60), (0, 60)), readings((95, 140))])
    table = processes(
        (0.1, 1, 7, "theirs", 9e4, "appeared"),
        (15.0, 0, 42, "python", 3e4, "appeared"),
        (80.0, 0, 42, "python", NAN, "gone"),
    )
    found = analyse(dataclasses.replace(run, processes=table))
    assert found.findings == ()
    assert [summary.used for summary in found.gpus] == [True, False]


def test_memory_of_a_neighbour_does_not_hide_the_end_of_the_run():
    run = make_run(
        readings((0, 20), (90, 60), (0, 60)),
        quantities={"memory_used_mib": [30_000] * 15 + [50_000] * 66 + [30_000] * 59},
    )
    table = processes(
        (0.1, 0, 7, "theirs", 3e4, "appeared"),
        (15.0, 0, 42, "python", 2e4, "appeared"),
        (81.0, 0, 42, "python", NAN, "gone"),
    )
    assert unexpected(dataclasses.replace(run, processes=table)) == []


def test_a_recording_begun_in_mid_training_has_no_startup():
    row = EpochRow(1, 1, 7, 90.0, -30.0)
    run = with_rows(make_run(readings((0, 40), (90, 60)), rows=[(1, 90)]), [row])
    assert "startup" not in seconds(run)
    assert analyse(run).low_intervals != ()


def test_a_resume_has_a_startup_of_its_own():
    rows = [EpochRow(1, 1, 1, 60.0, 10.0), EpochRow(1, 2, 2, 130.0, 80.0)]
    run = with_rows(make_run(readings((0, 10), (90, 50), (0, 30), (90, 50)), rows=[(1, 60)]), rows)
    assert unexpected(run) == []
    assert seconds(run)["startup"] == pytest.approx(40, abs=2)


def test_two_runs_that_overlap_do_not_stop_the_report():
    rows = [EpochRow(1, 1, 1, 60.0, 10.0), EpochRow(2, 1, 1, 50.0, -5.0)]
    run = with_rows(make_run(readings((0, 10), (90, 90)), rows=[(1, 60)]), rows)
    analyse(dataclasses.replace(run, yolo_runs=(run.yolo_runs[0], dataclasses.replace(run.yolo_runs[0], number=2))))


def test_an_early_stop_ends_in_its_final_evaluation_not_in_another_epoch():
    run = make_run(readings((0, 10), *([(90, 38), (0, 2)] * 3), (0, 15)), rows=epochs(40, 40, 40), epochs_asked=100)
    done = dataclasses.replace(run, recording=dataclasses.replace(run.recording, exit_code=0))
    assert analyse(done).phases[-1].name == "final evaluation"
    assert unexpected(done) == []


class TestEnergy:
    def test_what_was_used_in_a_gap_belongs_to_no_epoch(self):
        watts = [100.0] * 60 + [NAN] * 60 + [100.0] * 60
        counter = [1000.0, *([NAN] * 178), 1000.0 + 179 * 100]
        util = readings((90, 60)) + [NAN] * 60 + readings((90, 60))
        run = make_run(util, quantities={"power_w": watts, "energy_j": counter}, rows=[(1, 60), (2, 180)])
        found = analyse(run)
        assert found.epochs[0].energy_j == pytest.approx(6000, rel=0.01)
        assert found.gpus[0].energy_j == pytest.approx(18000, rel=0.01)
        assert {r.name: r.energy_j for r in found.ledger}["unmeasured"] == pytest.approx(6000, rel=0.03)

    def test_energy_without_utilisation_is_in_the_ledger(self):
        util = readings((90, 50)) + [NAN] * 50
        found = analyse(make_run(util, quantities={"power_w": [300.0] * 100}))
        assert sum(row.energy_j for row in found.ledger) == pytest.approx(found.gpus[0].energy_j)


class TestKernelEvents:
    def fault(self, t_s, gpu=0, last=None, severity="critical"):
        return KernelEvent(t_s, "xid", severity, "NVRM: Xid", "fell", gpu=gpu, code=79, last_t_s=last)

    def drop(self, event):
        run = make_run([readings((90, 60), (0, 20), (90, 30)), readings((90, 110))], kernel=[event])
        return next(f for f in analyse(run).findings if f.rule == "drop")

    def test_a_fault_of_another_gpu_is_listed_and_is_not_the_cause(self):
        drop = self.drop(self.fault(61, gpu=1))
        assert (len(drop.kernel_events), drop.cause.name) == (1, "unexplained")

    def test_a_fault_after_the_drop_is_not_its_cause(self):
        assert self.drop(self.fault(81)).cause.name == "unexplained"

    def test_an_event_that_went_on_into_the_drop_lies_within_it(self):
        drop = self.drop(self.fault(30, last=70))
        assert [n.offset_s for n in drop.kernel_events] == [0]

    def test_the_same_gpus_events_come_first(self):
        events = [self.fault(62, gpu=1), self.fault(63, gpu=0)]
        run = make_run([readings((90, 60), (0, 20), (90, 30)), readings((90, 110))], kernel=events)
        drop = next(f for f in analyse(run).findings if f.rule == "drop")
        assert [n.event.gpu for n in drop.kernel_events] == [0, 1]


def test_where_little_was_measured_the_verdict_says_so_and_promises_nothing():
    verdict = analyse(make_run(readings((90, 60)) + [NAN] * 540)).verdict.text
    assert "not measured" in verdict
    assert "never dropped unexpectedly" not in verdict


def test_a_command_that_ended_leaves_idle_time_on_every_gpu():
    ended = RecordedEvent(60, "command_ended", None, {"exit_code": 0})
    run = make_run([readings((90, 60), (0, 60))] * 2, events=[ended])
    assert seconds(run)["idle"] == pytest.approx(120, abs=2)


def test_the_verdict_names_a_warning_of_the_kernel():
    event = KernelEvent(30, "xid", "warning", "NVRM: Xid: 31", "a program touched what it may not", gpu=0, code=31)
    assert analyse(make_run(readings((90, 60)), kernel=[event])).verdict.text.startswith("GPU 0: a program touched")
