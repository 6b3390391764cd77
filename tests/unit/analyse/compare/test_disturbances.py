"""Runs that something disturbed: compared in the steady state, by the same epochs, and what disturbed them is named."""

from dataclasses import replace

import pytest
from support.compared import analysed, slower, with_findings, with_times

from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.disturbances import rare_disturbances
from gpu_report.analyse.compare.gate_syntax import parse_gates
from gpu_report.analyse.compare.samples import run_sample
from gpu_report.model import Analysis, Comparison, Finding


def metric(found: Comparison, name: str):
    return next(each for each in found.metrics if each.metric == name)


@pytest.fixture(scope="module")
def mixed() -> Comparison:
    return compare([analysed("m-healthy")], analysed("m-mixed"))


def test_epoch_time_and_images_a_second_are_of_the_same_time(mixed):
    time, images = metric(mixed, "epoch_time"), metric(mixed, "images_per_s")
    assert (time.judgement, images.judgement) == ("worse", "worse")
    assert images.change_share == pytest.approx(1 / (1 + time.change_share) - 1, abs=0.01)
    assert time.change_share == pytest.approx(0.49, abs=0.03)


def test_the_likely_reason_is_what_the_findings_name_and_not_the_arguments(mixed):
    reason = mixed.verdict.split("Likely reason: ")[1].split(".")[0]
    assert reason.startswith("main process blocked (18")
    assert "another process on the GPU (14" in mixed.verdict
    assert "Also changed: batch 64 → 32" in mixed.verdict
    assert mixed.verdict.count("Likely reason") == 1


def test_how_much_was_set_aside_is_said_and_the_whole_run_stays_visible(mixed):
    assert sum("Interruptions are left out: 38.2 s of 1 min 17 s" in note for note in mixed.notes) == 1
    assert mixed.all_epochs is not None
    assert (mixed.all_epochs.baseline, mixed.all_epochs.run) == pytest.approx((7.47, 19.23), abs=0.01)
    assert "With interruptions, training per epoch 7.5 s \u2192 19.2 s (2.6\u00d7 slower)" in mixed.verdict


def test_where_nothing_disturbed_either_run_nothing_is_said_of_it():
    found = compare([analysed("m-healthy")], slower(analysed("m-healthy"), 1.2))
    assert found.all_epochs is None
    assert "disturbed" not in found.verdict
    assert not any("disturbed" in note for note in found.notes)


# --- what recurs is no disturbance --------------------------------------------------------------------------------


def stalled(*epochs: int, count: int = 9, expected: bool = False) -> Analysis:
    """Return a run of ordinary epochs of 10 s; in the given ones the loader stalls for 5 s more."""
    times = [15.0 + 0.01 * n if n in epochs else 10.0 + 0.01 * (n % 3) for n in range(count)]
    starts = [100.0 + 20 * n for n in range(count)]
    run = with_times(analysed("m-healthy"), times)
    first, *rest = run.epochs
    run = replace(run, epochs=(first, *(replace(e, start_t_s=s) for e, s in zip(rest, starts, strict=True))))
    return with_findings(run, *(drop(starts[n], 5.0, expected=expected) for n in epochs))


def drop(start_s: float, seconds: float, *, expected: bool) -> Finding:
    return Finding("drop-1", "drop", "warning", 0, start_s, start_s + seconds, "It fell.", expected=expected)


@pytest.mark.parametrize(("epochs", "count"), [((0,), 1), ((0, 1, 2), 3), ((0, 1, 2, 3), 0), (tuple(range(9)), 0)])
def test_what_lies_in_more_than_a_third_of_the_epochs_is_how_the_run_trains(epochs, count):
    assert len(rare_disturbances(run_sample(stalled(*epochs)))) == count


def test_a_single_epoch_that_is_disturbed_is_no_habit_however_few_there_are():
    assert len(rare_disturbances(run_sample(stalled(0, count=2)))) == 1


def test_what_a_phase_explains_disturbs_nothing():
    assert rare_disturbances(run_sample(stalled(0, expected=True))) == ()


def test_a_loader_that_stalls_in_most_epochs_still_fails_the_gate():
    found = compare([stalled()], stalled(*range(8)), parse_gates(["epoch_time:+5%"], []))
    assert found.outcome == "failed"
    assert found.all_epochs is None


def test_a_gate_on_the_mean_counts_all_epochs_and_one_on_the_usual_value_the_steady_ones():
    found = compare([stalled()], stalled(0, 3, 6), parse_gates(["epoch_time:11s", "epoch_time.mean:11s"], []))
    assert [gate.outcome for gate in found.gates] == ["passed", "failed"]
    assert metric(found, "epoch_time").counts == (9, 6)


def test_where_too_little_is_left_nothing_is_set_aside_and_that_is_said():
    found = compare([without_callbacks(stalled(count=6))], without_callbacks(stalled(0, 3, count=6)))
    assert found.all_epochs is None
    assert any(note.startswith("Interruptions are compared, too") for note in found.notes)
    assert metric(found, "epoch_time").counts[0] == 6


def without_callbacks(analysis: Analysis) -> Analysis:
    """Return an analysis of a run whose batches nobody reported, so that it has no windows."""
    return replace(analysis, run=replace(analysis.run, inside=()))
