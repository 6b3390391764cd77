"""Two runs held against each other: what changed, whether that is more than chance, and what cannot be compared."""

from dataclasses import replace

import pytest
from support.compared import analysed, on_gpu, slower, with_findings, with_settings, with_times

from gpu_report.analyse import analyse
from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.gate_syntax import parse_gates
from gpu_report.model import Cause, Ending, Finding, NotChecked, RecordedEvent

HEALTHY = "m-healthy"
TIMES = [7.4, 7.5, 7.45, 7.55, 7.42, 7.48, 7.52, 7.47, 7.5]


def metric(comparison, name):
    return next(each for each in comparison.metrics if each.metric == name)


def finding(number, rule="drop", cause="input-stalled", gpu=0, seconds=12.0, severity="warning", expected=False):
    return Finding(
        f"{rule}-{number}", rule, severity, gpu, 0.0, seconds, "", expected=expected, cause=Cause(cause, 0.9, "")
    )


# --- real pairs ------------------------------------------------------------------------------------------------


def test_the_repair_of_a_starved_run_reads_as_the_improvement_that_it_is():
    found = compare([analysed("n-starved")], analysed("n-fed"))
    assert found.judgement == "better"
    assert metric(found, "epoch_time").change_share == pytest.approx(-0.76, abs=0.02)
    assert metric(found, "data_wait_share").judgement == "better"
    arguments = {d.name: (d.baseline, d.run) for d in found.differences if d.kind == "argument"}
    assert arguments == {"workers": ("2", "14"), "cache": ("off", "ram"), "epochs": ("3", "12")}
    assert "cache off → ram, workers 2 → 14" in found.verdict
    assert [(c.rule, c.cause) for c in found.findings if c.status == "gone"] == [("starved", "input-cpu")]


def test_a_callback_at_the_end_of_epochs_is_seen_though_their_training_is_as_fast():
    def with_ends(seconds):
        made = with_times(analysed(HEALTHY), TIMES)
        first, *rest = made.epochs
        ends = [replace(each, checkpoint_s=seconds and seconds + 0.01 * (n % 3)) for n, each in enumerate(rest)]
        return replace(made, epochs=(first, *ends))

    found = compare([with_ends(0.3)], with_ends(3.0), gates=parse_gates(["checkpoint_time:+50%"], []))
    assert metric(found, "epoch_time").judgement == "same"
    assert metric(found, "checkpoint_time").judgement == "worse"
    assert [gate.outcome for gate in found.gates] == ["failed"]
    none = compare([with_ends(0.0)], with_ends(0.0))
    assert all(each.metric != "checkpoint_time" or each.judgement == "unknown" for each in none.metrics)


def test_with_few_epochs_windows_of_training_are_compared():
    found = compare([analysed("n-starved")], analysed("n-fed"))
    assert {metric(found, name).basis for name in ("epoch_time", "data_wait_share", "util")} == {"windows"}
    assert min(metric(found, "epoch_time").counts) >= 5
    assert metric(found, "validation_time").judgement == "unknown"
    assert "too few" in metric(found, "validation_time").note
    assert any("windows of about 2.5 s of training are compared" in note for note in found.notes)
    assert any(note.startswith("There are too few epochs to compare") and "windows" in note for note in found.notes)
    by_epochs = compare([analysed("s-healthy")], analysed("s-healthy"))
    assert not any("windows" in text for text in (by_epochs.verdict, *by_epochs.notes))


def test_windows_of_an_epoch_make_up_the_epoch():
    found = compare([analysed("n-starved")], analysed("n-fed"))
    epochs = [epoch.train_s for epoch in analysed("n-starved").epochs[1:]]
    low, high = min(epochs), max(epochs)
    assert low <= metric(found, "epoch_time").baseline <= high


@pytest.mark.parametrize(
    ("baseline", "run"),
    [
        ("s-loader-stall", "s-storage"),
        ("s-storage", "s-loader-stall"),
        ("s-cpu-taken", "s-storage"),
        ("s-storage", "s-cpu-taken"),
        ("s-cpu-taken", "s-loader-stall"),
        ("m-ddp", "m-ddp-stopped"),
        ("m-healthy", "m-healthy"),
    ],
)
def test_one_set_up_run_twice_has_the_same_epoch_time_whatever_happened_in_single_epochs(baseline, run):
    assert metric(compare([analysed(baseline)], analysed(run)), "epoch_time").judgement == "same"


def test_swapped_sides_say_the_opposite():
    found = compare([analysed("n-fed")], analysed("n-starved"))
    assert found.judgement == "worse"
    assert [(c.rule, c.cause) for c in found.findings if c.status == "new"] == [("starved", "input-cpu")]


# --- significance and size -------------------------------------------------------------------------------------


def test_a_change_is_told_when_it_is_both_certain_and_large_enough():
    baseline = with_times(analysed(HEALTHY), TIMES)
    found = compare([baseline], with_times(analysed(HEALTHY), [1.1 * t for t in TIMES]))
    time = metric(found, "epoch_time")
    assert (found.judgement, time.judgement, time.significant) == ("worse", "worse", True)
    assert time.interval_share[0] < 0.1 < time.interval_share[1]
    assert "No training argument was changed." in found.verdict


def test_a_certain_change_that_is_small_is_the_same():
    baseline = with_times(analysed(HEALTHY), TIMES)
    time = metric(compare([baseline], with_times(analysed(HEALTHY), [1.02 * t for t in TIMES])), "epoch_time")
    assert (time.significant, time.judgement, time.note) == (True, "same", "")


def test_a_large_change_that_may_be_chance_is_the_same_and_says_so():
    uneven = [5.0, 10.0, 6.0, 9.0, 5.5, 9.5, 6.5, 8.5, 7.0]
    baseline = with_times(analysed(HEALTHY), uneven)
    found = compare([baseline], with_times(analysed(HEALTHY), [1.08 * t for t in uneven]))
    time = metric(found, "epoch_time")
    assert (time.significant, time.judgement) == (False, "same")
    assert "within the noise" in time.note
    assert "within the noise" in found.verdict


def test_one_stalled_epoch_neither_alarms_nor_hides_a_slowdown():
    baseline = with_times(analysed(HEALTHY), TIMES)
    stalled = with_times(analysed(HEALTHY), [*TIMES[:4], 30.0, *TIMES[5:]])
    assert metric(compare([baseline], stalled), "epoch_time").judgement == "same"
    slow = compare([stalled], with_times(analysed(HEALTHY), [1.1 * t for t in TIMES]))
    assert metric(slow, "epoch_time").judgement == "worse"
    assert metric(slow, "epoch_time").outliers == (1, 0)
    assert any(note.endswith("unusual time are left out: 1 of the baseline.") for note in slow.notes)


def test_a_stall_in_every_epoch_is_worse_in_epoch_time_and_in_data_wait():
    baseline = with_times(analysed(HEALTHY), TIMES)
    stalled = with_times(analysed(HEALTHY), [t + 3 for t in TIMES], [3.0 + 0.01 * n for n in range(9)])
    found = compare([baseline], stalled)
    judged = {name: metric(found, name).judgement for name in ("epoch_time", "data_wait", "data_wait_share")}
    assert set(judged.values()) == {"worse"}
    assert metric(found, "data_wait_share").change == pytest.approx(28.7, abs=0.5)


def test_several_baselines_give_a_band_that_a_run_must_leave():
    several = [slower(analysed("s-healthy"), factor) for factor in (0.9, 1.0, 1.1)]
    run = slower(analysed("s-healthy"), 1.08)
    found = compare(several, run)
    time = metric(found, "epoch_time")
    assert (time.judgement, time.in_band, time.significant, found.judgement) == ("unknown", True, False, None)
    assert metric(compare(several[1:2], run), "epoch_time").judgement == "worse"
    low, high = time.band
    assert low < 3.9 * 0.9 < 3.9 * 1.1 < high
    assert time.each == pytest.approx([3.51, 3.9, 4.29], abs=0.03)
    far = metric(compare(several, slower(analysed("s-healthy"), 1.9)), "epoch_time")
    assert far.judgement == "worse"


def test_a_change_that_baselines_differ_by_is_told_as_certain_and_not_judged():
    several = [slower(analysed("s-healthy"), factor) for factor in (0.9, 1.0, 1.1)]
    verdict = compare(several, slower(analysed("s-healthy"), 1.08)).verdict
    start = "Training per epoch 3.9 s (median of 3 baselines) \u2192 4.2 s (8.0 % slower), but the baselines differ by"
    assert verdict.startswith(start)
    assert "The baselines took 3.53 to 4.32 s: only more than 5.9 s would stand out (95 %)." in verdict
    faster = compare(several, slower(analysed("s-healthy"), 0.92)).verdict
    assert "(8.0 % faster), but the baselines differ by as much" in faster
    assert "only less than 2.0 s would stand out" in faster


def test_what_a_band_keeps_a_gate_from_deciding_is_a_note():
    several = [slower(analysed("s-healthy"), factor) for factor in (0.9, 1.0, 1.1)]
    notes = compare(several, analysed("s-healthy"), parse_gates(["epoch_time:+5%"], ())).notes
    assert any("3 baselines: 3.53 to 4.32 s. One more may take 1.97 to 5.87 s (95 %)." in n for n in notes)
    assert any(n.startswith("epoch_time:+5% cannot decide between +5.0 % and +50 %") for n in notes)
    wide = compare(several, analysed("s-healthy"), parse_gates(["epoch_time:+60%"], ())).notes
    assert not any("cannot decide" in n for n in wide)


def test_two_baselines_have_no_band():
    pair = [analysed("s-healthy"), slower(analysed("s-healthy"), 1.01)]
    found = compare(pair, analysed("s-healthy"))
    assert metric(found, "epoch_time").band is None
    assert any("With 3 or more" in note for note in found.notes)


def test_the_same_runs_give_the_same_comparison():
    pair = ([analysed("n-starved")], analysed("n-fed"))
    assert compare(*pair).metrics == compare(*pair).metrics


# --- utilisation has no direction of its own -------------------------------------------------------------------


def utilisation_of(util_factor, time_factor):
    run = analysed("s-healthy").run
    idler = run.ring.assign(gpu_util_pct=run.ring["gpu_util_pct"] * util_factor)
    samples = run.samples.assign(gpu_util_pct=run.samples["gpu_util_pct"] * util_factor)
    changed = replace(slower(analysed("s-healthy"), time_factor), run=replace(run, ring=idler, samples=samples))
    return metric(compare([analysed("s-healthy")], changed), "util")


@pytest.mark.parametrize(
    ("time_factor", "judgement", "note"),
    [(0.8, "better", "an improvement"), (1.2, "worse", "slower"), (1.0, "changed", "neither better nor worse")],
)
def test_utilisation_that_falls_is_judged_by_the_epoch_time(time_factor, judgement, note):
    found = utilisation_of(0.86, time_factor)
    assert found.judgement == judgement
    assert note in found.note


def test_percent_and_percentage_points_are_two_things():
    found = utilisation_of(0.86, 1.0)
    assert found.change_share == pytest.approx(-0.14, abs=0.005)
    assert found.change == pytest.approx(-0.14 * found.baseline, abs=0.5)


# --- which epochs ----------------------------------------------------------------------------------------------


def test_the_first_epoch_is_told_apart():
    found = compare([analysed(HEALTHY)], analysed(HEALTHY))
    assert found.first_epochs.baseline == pytest.approx(9.24, abs=0.01)
    assert metric(found, "epoch_time").counts == (5, 5)


def test_the_epoch_that_closes_the_mosaic_is_left_out():
    found = compare([analysed("n-fed")], analysed("n-fed"))
    assert metric(found, "epoch_time").counts[0] == 10  # of 12: without the first and the third
    assert any("Epoch 3 of each run is left out" in note for note in found.notes)


def test_epochs_with_and_without_mosaic_are_not_mixed():
    closes_late = with_settings(analysed("n-fed"), close_mosaic=2)
    found = compare([analysed("n-fed")], closes_late)
    assert any("without mosaic" in note for note in found.notes)


def test_only_numbers_that_both_have_are_compared():
    found = compare([analysed("yolo26n-cli")], with_settings(analysed("n-fed"), close_mosaic=0))
    assert max(metric(found, "epoch_time").counts) <= 12
    assert any("because every run has them" in note for note in found.notes)


# --- what cannot be compared -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (lambda run: on_gpu(run, "NVIDIA A100-SXM4-80GB"), "GPU model"),
        (lambda run: with_settings(run, imgsz=320), "imgsz"),
        (lambda run: with_settings(run, images=8000), "training images"),
        (lambda run: with_settings(run, model="yolo26x.yaml", parameters=60_000_000), "model"),
    ],
)
def test_another_set_up_is_not_comparable_and_is_named(changed, named):
    found = compare([analysed(HEALTHY)], changed(analysed(HEALTHY)))
    assert [d.name for d in found.differences if d.kind == "hard"] == [named]
    assert any(obstacle.text.startswith(named) for obstacle in found.obstacles)
    assert (found.judgement, found.outcome) == (None, "not measured")
    assert all(each.judgement == "unknown" and each.change is None for each in found.metrics)
    assert found.verdict.startswith("Not comparable.")


def test_another_number_of_gpus_is_not_comparable():
    found = compare([analysed(HEALTHY)], analysed("m-ddp"))
    assert "GPUs used: 1 in the baseline, 2 in the run" in [obstacle.text for obstacle in found.obstacles]


def on_cpu(analysis):
    """Return the analysis of a training on the CPU of a machine without a GPU."""
    return with_settings(replace(analysis, gpus=(), findings=()), device="cpu")


def test_two_trainings_on_the_cpu_have_the_same_gpu_none():
    cpu = on_cpu(analysed("s-healthy"))
    assert [each.name for each in compare([cpu], cpu).differences if "GPU" in each.name] == []
    found = compare([analysed("s-healthy")], cpu)
    assert found.obstacles[0].text == "GPU model: NVIDIA H200 in the baseline, none in the run"


def test_weights_and_architecture_of_the_same_model_are_comparable():
    found = compare([analysed(HEALTHY)], with_settings(analysed(HEALTHY), model="runs/train/weights/last.pt"))
    assert found.obstacles == ()


def test_a_few_images_more_are_still_the_same_data_set():
    assert compare([analysed(HEALTHY)], with_settings(analysed(HEALTHY), images=4020)).obstacles == ()


@pytest.mark.parametrize("name", ["s-killed", "s-oom", "s-leak-oom", "n-oom-killed", "starved"])
def test_a_run_cut_short_is_not_comparable(name):
    found = compare([analysed(name)], analysed(name))
    assert any("baseline was cut short" in obstacle.text for obstacle in found.obstacles)
    assert any("run was cut short" in obstacle.text for obstacle in found.obstacles)


def going_on(whole, ended_by):
    """Return the analysis of a recording that ended before its training."""
    recording = replace(whole.run.recording, ended_by=ended_by, exit_code=None)
    ending = Ending("going on", whole.run.duration_s)
    return replace(whole, run=replace(whole.run, recording=recording), ending=ending)


def test_a_recording_without_an_end_is_not_comparable():
    cut = going_on(analysed(HEALTHY), ended_by=None)
    assert [o for o in compare([analysed(HEALTHY)], cut).obstacles if o.text.startswith("The run was cut short")]


def test_a_recording_that_was_to_last_a_time_is_comparable():
    part = going_on(analysed("s-healthy"), ended_by="duration")
    assert compare([analysed("s-healthy")], part).obstacles == ()


def test_too_few_epochs_are_too_little_data():
    few = analysed("fed")
    found = compare([few], few)
    assert [o for o in found.obstacles if o.kind == "too little data"]
    assert "has no callbacks, so it has none" in found.verdict
    assert found.outcome == "not measured"


@pytest.mark.parametrize(("baseline", "run", "whose"), [(8, 14, "the baseline"), (4, 14, "the run")])
def test_of_short_epochs_there_are_few_windows_and_it_is_said_what_to_do(baseline, run, whose):
    gates = parse_gates(["epoch_time:+5%", "xid.fatal:0", "findings.critical:0"], ["findings.new:0"])
    found = compare([analysed(f"ab-workers-{baseline}")], analysed(f"ab-workers-{run}"), gates)
    way = "3.7 s \u2192 3.4 s (8.9 % faster)" if whose == "the baseline" else "6.9 s \u2192 3.4 s (2.0\u00d7 faster)"
    assert found.verdict == (
        f"Training per epoch {way}, but too few epochs to decide: 2 epochs after warm-up in the run, 2 in the "
        f"baseline. At least 5 each are needed, or 5 windows of 2.5 s: {whose} has 2. Train at least 6 epochs. "
        f"Changed: workers {baseline} → {run}."
    )
    # what needs no epoch is counted; nothing passes by it
    assert [gate.outcome for gate in found.gates] == ["not measured", "passed", "passed", "not measured"]
    assert (found.gates[0].why, found.outcome) == ("too few epochs", "not measured")


FEW_GATES = parse_gates(["epoch_time:+5%", "xid.fatal:0", "findings.critical:0"], ["data_wait_share:+5pp"])


@pytest.mark.parametrize(
    ("baseline", "run", "says", "outcomes"),
    [
        (8, 2, "3.7 s \u2192 17.0 s (4.6\u00d7 slower)", ["failed", "passed", "passed", "not measured"]),
        (2, 8, "17.0 s \u2192 3.7 s (4.6\u00d7 faster)", ["passed", "passed", "passed", "not measured"]),
    ],
)
def test_two_epochs_that_are_far_apart_are_enough(baseline, run, says, outcomes):
    found = compare([analysed(f"ab-workers-{baseline}")], analysed(f"ab-workers-{run}"), FEW_GATES)
    assert found.obstacles == ()
    assert found.verdict == f"Training per epoch {says}. Likely reason: workers {baseline} \u2192 {run}."
    assert [gate.outcome for gate in found.gates] == outcomes
    assert "took 2 times as long" in metric(found, "epoch_time").note
    assert "too few epochs to judge" in metric(found, "data_wait_share").note


@pytest.mark.parametrize(
    ("before", "after", "is_judged"),
    [
        ([4.0, 4.2], [8.5, 9.0], True),
        ([8.5, 9.0], [4.0, 4.2], True),
        ([4.0, 4.2], [8.3, 9.0], False),  # not all are twice as long as any
        ([4.0, 4.2], [9.0], False),  # one epoch may hold a stall that comes once
        ([4.0], [9.0, 9.1], False),
        ([0.4, 0.4, 0.4], [1.0, 1.1, 1.0], False),  # seconds in all: a hiccup of the machine takes as long
    ],
)
def test_few_epochs_are_judged_only_where_all_are_twice_as_long(before, after, is_judged):
    whole = replace(analysed("ab-workers-14"), findings=())
    found = compare([with_times(whole, before)], with_times(whole, after), FEW_GATES)
    assert [o.kind for o in found.obstacles] == ([] if is_judged else ["too little data"])
    assert (found.outcome == "not measured") is not is_judged


def test_few_epochs_with_mosaic_and_without_are_not_judged():
    whole = replace(analysed("ab-workers-14"), findings=())
    yolo = tuple(replace(y, args={**y.args, "close_mosaic": 2}) for y in whole.run.yolo_runs)
    closed = replace(whole, run=replace(whole.run, yolo_runs=yolo))
    found = compare([with_times(whole, [9.0, 9.0])], with_times(closed, [4.0, 4.0, 4.0]))
    assert found.obstacles


def test_baselines_that_cannot_be_compared_are_left_out_and_counted():
    found = compare([on_gpu(analysed(HEALTHY), "NVIDIA L4"), analysed(HEALTHY)], analysed(HEALTHY))
    assert len(found.baselines) == 1
    assert found.obstacles == ()
    assert "1 of 2 baselines cannot be compared and are left out." in found.notes


# --- what may explain ------------------------------------------------------------------------------------------


def test_soft_differences_are_named():
    run = analysed(HEALTHY).run
    other = replace(run.recording, driver="600.1", torch="2.15.0")
    found = compare([analysed(HEALTHY)], replace(analysed(HEALTHY), run=replace(run, recording=other)))
    assert {(d.name, d.baseline, d.run) for d in found.differences} == {
        ("driver", run.recording.driver, "600.1"),
        ("torch", run.recording.torch, "2.15.0"),
    }


def test_what_neither_run_knows_of_the_hard_set_is_said():
    found = compare([analysed("healthy")], analysed("healthy"))
    assert [(d.name, d.baseline, d.run, d.kind) for d in found.differences] == [("training images", None, None, "soft")]


# --- findings --------------------------------------------------------------------------------------------------


def test_findings_are_matched_by_rule_cause_and_gpu():
    before = with_findings(analysed(HEALTHY), finding(1), finding(2), finding(3, cause="trainer-blocked"))
    after = with_findings(analysed(HEALTHY), finding(9), finding(1, cause="unexplained"), finding(4, expected=True))
    changes = {(c.status, c.rule, c.cause): c.counts for c in compare([before], after).findings}
    assert changes == {
        ("new", "drop", "unexplained"): (0.0, 1),
        ("still there", "drop", "input-stalled"): (2.0, 1),
        ("gone", "drop", "trainer-blocked"): (1.0, 0),
    }


def test_the_same_training_on_another_gpu_of_the_machine_has_the_same_findings():
    before = with_findings(analysed(HEALTHY), finding(1))
    moved = with_findings(analysed(HEALTHY), finding(1, gpu=3))
    gpus = tuple(replace(s, gpu=replace(s.gpu, index=3)) for s in moved.gpus)
    assert [c.status for c in compare([before], replace(moved, gpus=gpus)).findings] == ["still there"]


def unable(analysis, rule="drop", under_s=None):
    return replace(analysis, not_checked=(NotChecked(rule, "the log cannot show it", under_s),))


@pytest.mark.parametrize(
    ("under_s", "statuses", "drops"),
    [(None, set(), "not checked"), (30.0, set(), "none of 30 s or longer"), (5.0, {"gone"}, "none of 5 s or longer")],
)
def test_what_the_run_could_not_see_is_not_gone(under_s, statuses, drops):
    before = with_findings(analysed(HEALTHY), finding(1))
    found = compare([before], unable(with_findings(analysed(HEALTHY)), under_s=under_s))
    assert {change.status for change in found.findings} == statuses
    assert found.drop_time == ("1, of 12 s", drops)


@pytest.mark.parametrize(("severity", "statuses"), [("warning", set()), ("critical", {"new"})])
def test_what_the_baseline_could_not_see_is_new_where_it_is_critical(severity, statuses):
    after = with_findings(analysed(HEALTHY), finding(1, severity=severity))
    found = compare([unable(with_findings(analysed(HEALTHY)))], after)
    assert {change.status for change in found.findings} == statuses


def test_a_finding_of_some_baselines_is_neither_new_nor_gone():
    with_one, without = with_findings(analysed(HEALTHY), finding(1)), with_findings(analysed(HEALTHY))
    (change,) = compare([without, without, with_one], with_one).findings
    assert (change.status, change.counts[0], change.each) == ("still there", 0, ((0, 0), (0, 0), (1, 12)))
    assert compare([without, without, with_one], without).findings == ()


def test_stutter_says_how_often_and_how_long():
    before = with_findings(analysed(HEALTHY))
    after = with_findings(analysed(HEALTHY), finding(1), finding(2, seconds=20.4))
    assert compare([before], after).drop_time == ("none", "2, the longest 20 s")


def test_events_do_not_disturb_a_comparison():
    run = analysed(HEALTHY).run
    noisy = replace(run, events=(*run.events, RecordedEvent(1.0, "marker", None, {})))
    assert compare([analysed(HEALTHY)], replace(analysed(HEALTHY), run=noisy)).obstacles == ()


def test_a_baseline_with_too_few_epochs_does_not_stand_in_the_way_of_others():
    few = replace(analysed(HEALTHY), epochs=analysed(HEALTHY).epochs[:3])
    found = compare([few, analysed(HEALTHY)], analysed(HEALTHY))
    assert (found.obstacles, len(found.baselines)) == ((), 1)


def test_of_a_recording_with_several_trainings_the_longest_is_compared():
    first = tuple(replace(epoch, run=0) for epoch in analysed(HEALTHY).epochs[:2])
    several = replace(analysed(HEALTHY), epochs=(*first, *analysed(HEALTHY).epochs))
    found = compare([analysed(HEALTHY)], several)
    assert "The run holds 2 trainings. The longest one is compared." in found.notes
    assert metric(found, "epoch_time").change == pytest.approx(0)


# --- words ------------------------------------------------------------------------------------------------------


def test_a_large_change_that_may_be_chance_is_not_called_the_same_speed():
    uneven = [5.0, 10.0, 6.0, 9.0, 5.5, 9.5, 6.5, 8.5, 7.0]
    pair = [with_times(analysed(HEALTHY), [factor * t for t in uneven]) for factor in (1.0, 1.1)]
    verdict = compare(pair[:1], pair[1]).verdict
    assert verdict.startswith("Training per epoch 7.4 s \u2192 8.2 s (10 % slower), but that is within the noise")


def test_what_only_changed_is_not_listed_under_what_is_worse():
    found = compare([analysed("m-healthy")], analysed("m-other-process-leak"))
    assert "Worse: peak memory" in found.verdict
    changed = compare([analysed("n-healthy-disk")], analysed("ab-workers-2")).verdict
    assert "Also changed: steady-state GPU utilisation" in changed
    assert "Worse: GPU utilisation" not in changed


def same_setup(name):
    return analysed(f"../tests/data/same_setup/{name}")


def test_what_is_certain_comes_first_and_what_is_better_is_never_listed_as_worse():
    several = [same_setup(name) for name in ("run-1", "run-3", "run-6")]
    stalled = compare(several, same_setup("stalls-1"))
    assert stalled.verdict.startswith("Worse: waiting for data 0.3 % → 26 %. Training per epoch ")
    waits, times = [2.0 + 0.01 * n for n in range(9)], [t + 3 for t in TIMES]
    worse = compare([with_times(analysed(HEALTHY), TIMES, waits)], with_times(analysed(HEALTHY), times))
    assert "slower)" in worse.verdict.partition(". ")[0]
    assert "Better: waiting for data" in worse.verdict
    better = compare([with_times(analysed(HEALTHY), times)], with_times(analysed(HEALTHY), TIMES, waits))
    assert "faster)" in better.verdict.partition(". ")[0]
    assert "Worse: waiting for data" in better.verdict


def test_what_failed_beside_the_metrics_comes_before_the_verdict():
    gates = parse_gates(["epoch_time:+5%", "findings.warning:0", "util:99%"], ())
    found = compare([analysed("s-storage")], analysed("s-loader-stall"), gates)
    assert found.verdict.startswith(
        "Failed: warnings and critical findings: 2 (Drop in GPU utilisation [drop-1], "
        "Drop in GPU utilisation [drop-2]), limit: at most 0; steady-state GPU util"
    )
    assert "No change: training per epoch" in found.verdict


def test_one_ordinary_epoch_is_one():
    short = with_times(analysed(HEALTHY), TIMES[:1])
    found = compare([analysed(HEALTHY)], replace(short, run=replace(short.run, inside=())))
    assert "1 epoch after warm-up in the run, 5 in the baseline. At least 5 each are needed" in found.verdict


def killed(whole):
    return replace(whole, ending=Ending("failed", whole.run.duration_s))


def test_of_a_run_cut_short_what_failed_has_failed_and_what_passed_might_not_have():
    gates = parse_gates(["epoch_time:+5%", "xid.fatal:0"], ["data_wait_share:+5pp"])
    found = compare([analysed(HEALTHY)], killed(slower(analysed(HEALTHY), 1.5)), gates)
    assert [gate.outcome for gate in found.gates[:2]] == ["failed", "not measured"]
    assert found.gates[1].summary == "fatal Xids: 0, limit: at most 0, but the run was cut short"
    assert (found.outcome, metric(found, "epoch_time").judgement) == ("failed", "worse")
    assert "(1.5\u00d7 slower)" in found.verdict
    assert "Not comparable" not in found.verdict
    same = compare([analysed(HEALTHY)], killed(slower(analysed(HEALTHY), 1.001)), gates)
    assert (same.outcome, same.judgement) == ("not measured", None)


def test_a_run_that_was_stopped_by_hand_does_not_pass_alone_either():
    by_hand = Ending("interrupted", 545.0, 6, 50, failure="Stopped by Ctrl-C in epoch 6 of 50", names_epoch=True)
    gates = parse_gates(["findings.critical:0"], ["util:40%"])
    found = compare([], replace(analysed(HEALTHY), ending=by_hand), gates)
    assert (found.outcome, found.gates[0].why) == ("not measured", "the run was cut short")
    assert found.verdict.startswith("The run was cut short: stopped by Ctrl-C in epoch 6 of 50. Training per epoch ")


@pytest.mark.parametrize("baselines", [(), ("s-healthy",)])
def test_a_crash_is_said_once_where_its_end_is_all_that_failed(baselines):
    gates = parse_gates(["findings.critical:0"], ["findings.warning:0"])
    found = compare([analysed(name) for name in baselines], analysed("s-killed"), gates)
    assert found.outcome == "failed"
    assert "findings" not in found.verdict
    assert "Training cut short" in found.gates[0].summary
    beside = replace(found.run.findings[0], rule="drop", id="drop-1", severity="critical")
    two = replace(analysed("s-killed"), findings=(*found.run.findings, beside))
    assert " Critical findings: 2 (" in compare([], two, gates).verdict


def test_epochs_under_a_second_have_two_digits_so_that_a_third_more_is_seen():
    before, after = (with_times(analysed(HEALTHY), [base + 0.001 * at for at in range(10)]) for base in (0.366, 0.486))
    assert "0.37 s \u2192 0.49 s (32 % slower)" in compare([before], after).verdict


def test_a_baseline_cut_short_leaves_open_only_what_needs_it():
    gates = parse_gates(["epoch_time:+5%", "xid.fatal:0"], [])
    found = compare([killed(analysed(HEALTHY))], slower(analysed(HEALTHY), 1.001), gates)
    assert [gate.outcome for gate in found.gates[:2]] == ["not measured", "passed"]
    assert found.gates[0].why == "the baseline was cut short"
    assert found.outcome == "not measured"


def test_validation_that_was_seen_from_outside_is_not_held_against_one_told_from_inside():
    found = compare([analysed("yolo26m-detail")], analysed("m-healthy"))
    assert metric(found, "validation_time").judgement == "unknown"
    assert "has no callbacks" in metric(found, "validation_time").note
    assert any("to about a second" in note for note in found.notes)


@pytest.mark.parametrize("swapped", [False, True])
def test_what_a_phase_holds_is_not_judged_where_one_run_is_seen_from_outside(swapped):
    inside = analysed("../tests/data/same_setup/run-1")
    outside = analyse(replace(inside.run, inside=()))
    pair = [outside, inside] if swapped else [inside, outside]
    found = compare(pair[:1], pair[1], parse_gates(["epoch_time:+5%", "util:-1%"], ["energy:+1%"]))
    for name in ("util", "energy", "workers_cpu", "main_cpu", "gpu_work", "validation_time"):
        assert (metric(found, name).judgement, metric(found, name).significant) == ("unknown", None)
        assert "one of the runs has no callbacks" in metric(found, name).note
    assert [(g.outcome, g.undecided) for g in found.gates[1:]] == [("not measured", False)] * 2
    assert found.gates[0].outcome == "passed"
    alike = compare([inside], inside, parse_gates(["util:-1%"], ()))
    assert alike.gates[0].outcome == "passed"


def test_a_stalled_epoch_is_left_out_of_the_windows_too():
    found = compare([analysed("s-loader-stall")], analysed("ab-s-workers-3"))
    assert metric(found, "epoch_time").basis == "windows"
    assert metric(found, "epoch_time").baseline == pytest.approx(4.9, abs=0.1)


def test_epochs_that_are_left_out_are_told_with_their_run():
    found = compare([analysed("n-starved")], analysed("n-fed"))
    assert any(note.startswith("Epoch 3 of the run is left out: YOLO closed the mosaic") for note in found.notes)
    turned = compare([analysed("n-fed")], analysed("n-starved"))
    assert any(note.startswith("Epoch 3 of the baseline is left out") for note in turned.notes)
    both = compare([analysed("n-fed")], analysed("n-fed"))
    assert any(note.startswith("Epoch 3 of each run is left out") for note in both.notes)
    assert any(note.startswith("Epoch 3 is left out") for note in compare((), analysed("n-fed")).notes)


def test_an_imported_log_without_epochs_asks_for_them():
    analysis = analysed("healthy")
    bare = replace(analysis, epochs=())
    assert not analysis.run.recording.is_ours
    found = compare([bare], bare)
    assert next(each.text for each in found.obstacles if each.kind == "too little data") == (
        "No epochs are known: the run was imported without them. Import its log again with --yolo FOLDER, where YOLO "
        "wrote results.csv"
    )


def test_training_that_holds_validations_unseen_is_not_compared_with_one_that_does_not():
    seen = analysed("healthy")
    hidden = replace(seen, epochs=tuple(replace(e, validation_s=None, train_s=e.train_s + 2) for e in seen.epochs))
    assert metric(compare([seen], seen), "epoch_time").judgement == "same"
    assert metric(compare([hidden], hidden), "epoch_time").judgement == "same"
    time = metric(compare([seen], hidden), "epoch_time")
    assert (time.judgement, time.change_share) == ("unknown", None)
    assert "holds its validations" in time.note
