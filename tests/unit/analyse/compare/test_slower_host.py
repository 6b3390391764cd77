"""Slower cores are told from a slower training: real runs of one set-up, and what speaks against it."""

from dataclasses import replace
from functools import cache

import pandas as pd
import pytest
from support.compared import analysed, slower, with_settings
from support.samples import SAME_SETUP

from gpu_report.analyse import analyse
from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.gate_syntax import default_gates, parse_gates
from gpu_report.analyse.compare.resource_use import RunningTotal, work_of
from gpu_report.analyse.compare.slower_host import HostSlowdown, host_slowdown, slowdown_words
from gpu_report.load import load_run
from gpu_report.model import Analysis, Comparison, Difference, MetricComparison

HEALTHY = tuple(f"run-{number}" for number in range(1, 8))
STALLED = ("stalls-1", "stalls-2")
BASELINES = ("run-1", "run-3", "run-7")  # docs/compare.md has them all; a comparison takes half a second
GATES = default_gates(baseline=True)


@cache
def run(name: str) -> Analysis:
    return analyse(load_run(SAME_SETUP / name))


@cache
def held(baseline: str, name: str) -> Comparison:
    return compare([run(baseline)], run(name), GATES)


def failed(found: Comparison) -> set[str]:
    return {result.gate.metric for result in found.gates if result.outcome == "failed" and result.gate.level == "fail"}


# --- real runs of one set-up -----------------------------------------------------------------------------------


def test_healthy_runs_of_one_set_up_pass_or_are_told_to_have_had_slower_cores():
    outcomes = {(before, after): held(before, after).outcome for before in BASELINES for after in HEALTHY}
    outcomes = {pair: outcome for pair, outcome in outcomes.items() if pair[0] != pair[1]}
    assert sum(outcome == "passed" for outcome in outcomes.values()) == 9
    assert "failed" not in outcomes.values()


@pytest.mark.parametrize(("baseline", "name"), [("run-1", "run-6"), ("run-3", "run-6")])
def test_slower_cores_are_named_and_decide_nothing(baseline, name):
    found = held(baseline, name)
    assert (found.exit_code, found.judgement) == (3, "worse")
    assert "slower), because the machine was slower." in found.verdict
    assert "The reason is the machine" in found.verdict
    (time,) = [result for result in found.gates if result.gate.metric == "epoch_time"]
    assert (time.outcome, "the machine was slower" in time.summary) == ("not measured", True)


@pytest.mark.parametrize("name", STALLED)
@pytest.mark.parametrize("baseline", ["run-1", "run-4", "run-6"])
def test_a_loader_stall_in_every_epoch_fails_whatever_the_cores(baseline, name):
    found = held(baseline, name)
    assert found.exit_code == 1
    slow = baseline != "run-1"  # run-6 took as long, and the epochs of run-4 wander by as much
    assert failed(found) == {"data_wait_share"} | (set() if slow else {"epoch_time"})
    assert slow or found.verdict.startswith("Training per epoch 5.9 s")  # what is certain comes first
    assert "not the training" not in found.verdict


def test_slower_cores_that_are_only_a_part_of_it_are_told_as_that():
    time = next(metric for metric in held("run-1", "stalls-2").metrics if metric.metric == "epoch_time")
    said = slowdown_words(HostSlowdown(0.15, 0.17), time)
    assert said == (
        "Part of it is the machine (a busy host or a lower clock): "
        "the same work took 15 % more CPU time in the main process, 17 % in workers."
    )


def test_faster_cores_are_named_too_and_pass():
    found = held("run-6", "run-1")
    assert found.exit_code == 0
    assert found.verdict.startswith(
        "Training per epoch 8.4 s \u2192 5.9 s (30 % faster), because the machine was faster."
    )
    assert "less CPU time" in found.verdict


def test_other_arguments_or_versions_may_be_what_costs():
    before, after = run("run-1"), run("run-6")
    for changed in (with_settings(after, workers=9), replace_torch(after)):
        found = compare([before], changed, GATES)
        assert (found.exit_code, "The reason is the machine" in found.verdict) == (1, False)
    told = compare([before], with_settings(after, seed=7, patience=9), GATES)
    assert told.exit_code == 3


def replace_torch(analysis: Analysis) -> Analysis:
    recording = replace(analysis.run.recording, torch="2.12.0")
    return replace(analysis, run=replace(analysis.run, recording=recording))


def test_epochs_that_take_longer_for_the_same_cores_fail():
    found = compare([analysed("m-healthy")], slower(analysed("m-healthy"), 1.3), GATES)
    assert failed(found) == {"epoch_time"}


def test_epochs_cost_what_the_host_says():
    found = {metric.metric: metric for metric in held("run-1", "run-2").metrics}
    # 115 % of a core in 5.9 s, and 680 %; the SMs were half busy
    assert found["main_cpu"].baseline == pytest.approx(6.9, abs=0.1)
    assert found["workers_cpu"].baseline == pytest.approx(40, abs=1)
    assert found["gpu_work"].baseline == pytest.approx(2.95, abs=0.1)
    assert {found[name].judgement for name in ("main_cpu", "workers_cpu", "gpu_work")} == {"same"}


# --- the rule --------------------------------------------------------------------------------------------------


def changed(metric: str, share: float | None, *, sure: bool = True) -> MetricComparison:
    change = None if share is None else 10 * share
    judgement = "changed" if sure and share and abs(share) >= 0.05 else "same"
    after = None if change is None else 10 + change
    return MetricComparison(
        metric, "usual", "s", 10.0, after, change, share, least_change=0.5, significant=sure, judgement=judgement
    )


def three(main: float | None, workers: float | None, gpu: float | None, **sure: bool) -> list[MetricComparison]:
    shares = {"main_cpu": main, "workers_cpu": workers, "gpu_work": gpu}
    return [changed(name, share, sure=sure.get(name, True)) for name, share in shares.items()]


@pytest.mark.parametrize(
    ("main", "workers", "gpu", "is_cores"),
    [
        (0.30, 0.33, 0.02, True),
        (-0.30, -0.28, 0.0, True),
        (0.30, 0.00, 0.0, False),  # a callback of the user's
        (0.00, 0.30, 0.0, False),  # a transform of the user's
        (0.30, 0.50, 0.0, False),  # not alike
        (0.30, -0.30, 0.0, False),
        (0.30, 0.30, 0.30, False),  # a training that does more of everything
        (0.04, 0.04, 0.0, False),  # too little to be worth a word
        (0.30, None, 0.0, False),
        (0.30, 0.33, None, False),
    ],
)
def test_both_take_longer_alike_and_the_gpu_does_not(main, workers, gpu, is_cores):
    assert (host_slowdown(three(main, workers, gpu), ()) is not None) == is_cores


def test_one_of_the_two_must_be_certain():
    assert host_slowdown(three(0.3, 0.33, 0.0, main_cpu=False), ()) == HostSlowdown(0.3, 0.33)
    assert host_slowdown(three(0.3, 0.33, 0.0, main_cpu=False, workers_cpu=False), ()) is None


@pytest.mark.parametrize(
    ("name", "kind", "is_cores"),
    [("host", "soft", True), ("epochs", "argument", True), ("batch", "argument", False), ("torch", "soft", False)],
)
def test_what_may_cost_cpu_time_speaks_against_it(name, kind, is_cores):
    unlike = [Difference(name, "1", "2", kind)]
    assert (host_slowdown(three(0.3, 0.33, 0.0), unlike) is not None) == is_cores


@pytest.mark.parametrize(
    ("share", "alone"),
    [(0.30, True), (0.10, True), (0.45, False), (-0.20, False)],
)
def test_slower_cores_alone_leave_no_rest_that_is_worth_a_word(share, alone):
    assert HostSlowdown(0.3, 0.28).account_for(share) == alone


@pytest.mark.parametrize(("share", "alone"), [(-0.23, True), (-0.05, True), (-0.35, False), (0.1, False)])
def test_so_do_faster_cores(share, alone):
    assert HostSlowdown(-0.23, -0.22).account_for(share) == alone


@pytest.mark.parametrize(
    ("metric", "limit", "share", "explained"),
    [
        ("epoch_time", 0.05, 0.30, True),
        ("epoch_time", 0.05, 0.45, False),  # 12 % over what the cores take longer
        ("validation_time", 0.25, 0.40, True),
        ("util", -0.10, -0.24, True),
        ("util", -0.10, -0.50, False),
        ("images_per_s", -0.05, -0.22, True),
        ("util", 0.05, 0.20, False),  # a rise is not what slower cores make
        ("epoch_time", -0.05, -0.20, False),
        ("energy", 0.10, 0.30, False),
        ("data_wait_share", 0.05, 0.30, False),
    ],
)
def test_only_what_is_within_the_limit_for_such_cores_is_explained(metric, limit, share, explained):
    assert HostSlowdown(0.3, 0.28).explain(metric, limit, share) == explained


@pytest.mark.parametrize(
    ("metric", "share", "hidden"),
    [("epoch_time", 0.0, True), ("epoch_time", -0.25, False), ("images_per_s", 0.0, True), ("util", 0.0, False)],
)
def test_faster_cores_may_hide_a_slower_training(metric, share, hidden):
    limit = 0.05 if metric == "epoch_time" else -0.05
    assert HostSlowdown(-0.27, -0.29).hide(metric, limit, share) == hidden
    assert not HostSlowdown(0.27, 0.29).hide(metric, limit, share)


def time_of(share: float, judgement: str) -> MetricComparison:
    return MetricComparison("epoch_time", "usual", "s", 10.0, 10 * (1 + share), 10 * share, share, judgement=judgement)


@pytest.mark.parametrize(
    ("cores", "share", "judgement", "words"),
    [
        (0.3, 0.3, "worse", "not the training"),
        (0.3, 0.6, "worse", "Part of it is the machine (a busy host or a lower clock)"),
        (0.3, 0.0, "same", "The machine was slower (a busy host or a lower clock)"),
        (0.3, -0.2, "better", "The machine was slower"),
        (-0.3, 0.2, "worse", "The machine was faster (a host with less load or a higher clock)"),
    ],
)
def test_the_sentence_on_the_cores_goes_with_what_became_of_the_time(cores, share, judgement, words):
    assert words in slowdown_words(HostSlowdown(cores, cores), time_of(share, judgement))


def test_a_run_without_any_cpu_time_says_nothing_of_its_cores():
    assert host_slowdown(three(-1.0, -1.0, 0.0), ()) is None
    assert host_slowdown(three(-1.0, -0.5, 0.0), ()) is None


def test_gates_on_the_tail_of_the_epochs_are_not_excused_by_the_cores():
    gates = parse_gates(["epoch_time:+5%", "epoch_time.p95:+5%", "epoch_time:+0.1s", "epoch_time:7s"], [])
    found = compare([run("run-3")], run("run-6"), gates)
    assert [result.outcome for result in found.gates] == ["not measured", "not measured", "not measured", "failed"]
    assert ["the machine was slower" in result.summary for result in found.gates] == [True, False, True, False]
    assert found.gates[1].why == "too few epochs"


def test_every_baseline_must_speak_for_the_cores():
    older = [replace_torch(run("run-1")), replace_torch(run("run-2"))]
    found = compare([run("run-5"), *older], run("run-6"), GATES)
    assert found.exit_code == 1
    assert "the machine" not in found.verdict


def test_a_limit_on_what_an_epoch_costs_is_its_most():
    (gate,) = parse_gates(["main_cpu:30s"], [])
    assert (gate.kind, gate.limit) == ("most", 30.0)


# --- what an epoch costs ---------------------------------------------------------------------------------------


def test_a_running_total_is_worked_out_within_rows_and_scaled_over_what_is_not_known():
    host = pd.DataFrame({"t_s": [0.0, 1.0, 2.0, 3.0], "main_cpu_pct": [900.0, 100.0, 50.0, float("nan")]})
    (total,) = work_of(host, ()).host.values()
    assert isinstance(total, RunningTotal)
    assert total.within((0.0, 2.0)) == pytest.approx(1.5)  # the first row is of the time before it
    assert total.within((0.5, 1.5)) == pytest.approx(0.75)
    assert total.within((1.8, 2.2)) is None  # half of it is not known
    assert total.within((1.0, 2.2)) == pytest.approx(0.5 * 1.2)


def test_nothing_is_known_without_rows():
    work = work_of(pd.DataFrame({"t_s": [], "main_cpu_pct": []}), ())
    assert work.within((0.0, 1.0)) == {"gpu_work": None}
