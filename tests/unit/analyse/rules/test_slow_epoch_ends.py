"""A validation or checkpoint far longer than its siblings is a finding; one in which the loader stalls is, too."""

import dataclasses

import pandas as pd
import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import InsideEpoch, InsideRun, Phase, Validation

TRAIN_S, VALIDATION_S, SAVE_S, EPOCHS = 60.0, 40.0, 2.0, 6
BUSY, VALIDATES = 90, 50
NAN = float("nan")


def run_with(longer_s=0.0, at_epoch=4, part="validation", stalled_s=0.0, cut=False):
    """Return a run by callbacks in which one epoch's validation or checkpoint takes longer, some of it in a stall."""
    phases, epochs, util, host, at = [], [], [(0, 20)], [(50, 0, 20)], 20.0
    for epoch in range(1, EPOCHS + 1):
        more = {part: longer_s} if epoch == at_epoch else {}
        lengths = (
            ("train", TRAIN_S),
            ("validation", VALIDATION_S + more.get("validation", 0.0)),
            ("checkpoint", SAVE_S + more.get("checkpoint", 0.0)),
        )
        epochs.append(InsideEpoch(epoch, 1, at, at + TRAIN_S, 1000, 10, 0.1, 0.1, 0.1, 1.0, 0.01))
        for name, seconds in lengths:
            phases.append(Phase(name, epoch, at, at + seconds, "inside"))
            stall_s = stalled_s if name == part and epoch == at_epoch else 0.0
            util += [({"train": BUSY, "validation": VALIDATES}.get(name, 0), seconds - stall_s), (0, stall_s)]
            workers = {"train": 500, "validation": 200}.get(name, 0)
            host += [(100, workers, seconds - stall_s), (0, 0, stall_s)]
            at += seconds
        if cut and epoch == at_epoch:
            phases.pop()
            break
    made = make_run(readings(*util), duration_s=at)
    rows = [row for *row, seconds in host for _ in range(round(seconds))]
    table = pd.DataFrame(rows, columns=["main_cpu_pct", "workers_cpu_pct"], dtype=float).assign(
        cpu_pct=30.0, workers=8.0
    )
    table.insert(0, "t_s", [float(second) for second in range(1, len(rows) + 1)])
    inside = InsideRun(1, 0, 1, "train", {}, tuple(phases), tuple(epochs))
    return dataclasses.replace(made, inside=(inside,), host=table)


def slow(run):
    return [f for f in analyse(run).findings if f.rule.startswith("slow-")]


@pytest.mark.parametrize(("longer_s", "found"), [(0.0, 0), (4.0, 0), (28.0, 1)])
def test_a_validation_is_held_against_its_siblings(longer_s, found):
    findings = slow(run_with(longer_s))
    assert [f.rule for f in findings] == ["slow-validation"] * found
    assert all((f.epoch, f.phase, f.expected) == (4, "validation", False) for f in findings)


def test_a_stall_in_it_is_where_the_finding_lies_and_has_the_cause_of_a_stall():
    (finding,) = slow(run_with(20.0, stalled_s=20.0))
    begun = 20 + 3 * (TRAIN_S + VALIDATION_S + SAVE_S) + TRAIN_S + VALIDATION_S
    assert finding.span == pytest.approx((begun, begun + 20.0), abs=1.5)
    assert finding.cause.name in {"trainer-blocked", "input-stalled"}


def test_a_stall_is_found_in_a_validation_that_is_no_longer_than_others():
    """It took 40 s as ever; for 15 s of it no worker did anything, which none of its siblings shows."""
    (finding,) = slow(run_with(0.0, stalled_s=15.0))
    assert finding.duration_s == pytest.approx(15.0, abs=1.5)


@pytest.mark.parametrize(("workers", "found"), [(NAN, []), (0.0, ["slow-validation"])])
def test_a_look_at_the_workers_that_failed_is_no_stall(workers, found):
    """Their CPU is missing for the 15 s, too, where there are none of them: they do nothing then."""
    run = run_with(0.0, stalled_s=15.0)
    is_stall = run.host["main_cpu_pct"] == 0
    columns = {"main_cpu_pct": 100.0, "workers_cpu_pct": NAN, "workers": workers}
    failed = run.host.assign(**{name: run.host[name].mask(is_stall, value) for name, value in columns.items()})
    assert [finding.rule for finding in slow(dataclasses.replace(run, host=failed))] == found


@pytest.mark.parametrize(("epoch", "main_cpu_pct", "found"), [(4, 100.0, 1), (EPOCHS, 100.0, 0), (EPOCHS, 0.0, 1)])
def test_workers_have_nothing_to_load_at_the_end_of_the_last_epoch(epoch, main_cpu_pct, found):
    run = run_with(0.0, at_epoch=epoch, stalled_s=15.0)
    host = run.host.assign(main_cpu_pct=run.host["main_cpu_pct"].where(run.host["main_cpu_pct"] > 0, main_cpu_pct))
    assert len(slow(dataclasses.replace(run, host=host))) == found


def test_a_slow_checkpoint_is_one():
    (finding,) = slow(run_with(30.0, part="checkpoint"))
    assert (finding.rule, finding.epoch) == ("slow-checkpoint", 4)
    assert "took 32 s (typical: 2 s)" in finding.summary


def test_a_validation_that_the_end_of_the_training_cut_short_is_no_sibling():
    run = run_with(-35.0, at_epoch=3, cut=True)
    assert slow(run) == []


def first_takes(parts):
    """Return a run whose first validation took 40 s longer, and had these parts."""
    run = run_with(40.0, at_epoch=1)
    usual = {"data": 1.0, "inference": 20.0, "metrics": 19.0}

    def told(phase):
        seconds = parts if phase.epoch == 1 else usual
        validated = Validation(*phase.span, phase.epoch, 200, 10, seconds, 0.0, 20, 8)
        return dataclasses.replace(phase, validated=validated) if phase.name == "validation" else phase

    (inside,) = run.inside
    return dataclasses.replace(run, inside=(dataclasses.replace(inside, phases=tuple(map(told, inside.phases))),))


def test_a_first_validation_that_loads_and_starts_is_expected_and_says_so():
    run = first_takes({"data": 25.0, "inference": 34.0, "metrics": 21.0})
    (finding,) = slow(run)
    assert (finding.expected, finding.epoch, finding.severity) == (True, 1, "info")
    assert finding.summary.endswith(
        ": the first one starts its workers, reads its images for the first time and loads kernels"
    )
    assert "slow validation" not in analyse(run).verdict.text.lower()


def test_a_first_validation_that_is_slow_in_what_comes_each_time_is_a_warning():
    (finding,) = slow(first_takes({"data": 2.0, "inference": 20.0, "metrics": 58.0}))
    assert (finding.expected, finding.severity) == (False, "warning")


@pytest.mark.parametrize(("mhz", "found"), [(1000.0, 0), (1600.0, 1)])
def test_a_validation_at_a_lower_clock_that_is_told_is_longer_by_that(mhz, found):
    run = run_with(28.0)
    begun = 20 + 3 * (TRAIN_S + VALIDATION_S + SAVE_S)
    hot = run.samples["t_s"].between(begun, begun + TRAIN_S + VALIDATION_S + 28)
    samples = run.samples.assign(
        sm_clock_mhz=hot.map({True: mhz, False: 1700.0}), clock_event_reasons=hot.map({True: 0x20, False: 0})
    )
    assert len(slow(dataclasses.replace(run, samples=samples))) == found
