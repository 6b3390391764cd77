"""What most of a change of the epoch time comes of: said only where a part of the epoch carries it."""

from dataclasses import replace

import pytest
from support.compared import analysed, slower, with_notes, with_times

from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.epoch_cause import because, epoch_cause
from gpu_report.analyse.compare.thresholds import CAUSES_SHARE
from gpu_report.model import EpochCause, LineChange, MetricComparison

LINE = LineChange("main", "log_images", "/home/me/callbacks.py", 41, 57, 1.0, 9.0)


def metric(name: str, before: float, now: float, judgement: str = "worse", *, sure: bool = True) -> MetricComparison:
    change, share = now - before, (now - before) / before
    return MetricComparison(name, "usual", "s", before, now, change, share, significant=sure, judgement=judgement)


TIME = metric("epoch_time", 10.0, 20.0)


@pytest.mark.parametrize(
    ("others", "lines", "kind"),
    [
        ([metric("data_wait", 0.1, 9.0)], (), "data loading"),
        ([metric("data_wait", 0.1, 6.0)], (), None),
        ([metric("data_wait", 0.1, 9.0, "unknown")], (), None),
        ([metric("data_wait", 9.0, 0.1, "better")], (), None),
        ([], (LINE,), "line of code"),
        ([], (replace(LINE, waits_for="data"),), None),
        ([], (replace(LINE, process="workers"),), None),
        ([], (replace(LINE, run_idle_gpu_s=5.0),), None),
        ([metric("data_wait", 0.1, 9.0)], (LINE,), "data loading"),
        ([metric("gpu_work", 5.0, 9.5, "changed")], (), "GPU work"),
        ([metric("gpu_work", 5.0, 7.0, "changed")], (), None),
        ([metric("gpu_work", 5.0, 9.5, "same", sure=False)], (), None),
        ([], None, None),
    ],
)
def test_the_part_that_carries_most_of_the_change_is_the_cause(others, lines, kind):
    cause = epoch_cause([TIME, *others], lines, gpus=1)
    assert (cause and cause.kind) == kind
    assert cause is None or cause.share >= CAUSES_SHARE


def test_of_an_epoch_time_that_is_not_certain_there_is_no_cause():
    unsure = replace(TIME, judgement="unknown")
    assert epoch_cause([unsure, metric("data_wait", 0.1, 9.0)], (LINE,), gpus=1) is None


def test_the_idle_time_of_several_gpus_is_that_of_each():
    assert epoch_cause([TIME], (LINE,), gpus=2) is None
    (both,) = (epoch_cause([TIME], (replace(LINE, run_idle_gpu_s=17.0),), gpus=2),)
    assert (both.baseline_s, both.run_s, both.share) == (0.5, 8.5, 0.8)


def test_it_is_said_with_what_shows_it():
    assert because(None, slower=True) == "."
    waits = EpochCause("data loading", 0.3, 5.1, 0.9)
    assert because(waits, slower=True) == (
        ", because data loading got slower. Waiting for data: 0.3 s \u2192 5.1 s an epoch."
    )
    line = EpochCause("line of code", 1.0, 9.0, 0.8, LINE)
    assert because(line, slower=True).startswith(", because log_images (callbacks.py:41 \u2192 57) got slower. ")
    assert "takes less time" in because(EpochCause("GPU work", 9.0, 5.0, 1.0), slower=False)


def test_a_real_run_whose_loader_became_slow_leads_with_it():
    worse, better = (compare([analysed(a)], analysed(b)) for a, b in (("n-fed", "n-starved"), ("n-starved", "n-fed")))
    assert (worse.cause.kind, better.cause.kind) == ("data loading", "data loading")
    assert worse.verdict.startswith(
        "Training per epoch 2.9 s \u2192 12.2 s (4.2\u00d7 slower), because data loading got slower. Waiting"
    )
    assert "0.3 % \u2192 77 %" not in worse.verdict
    assert "4.2\u00d7 faster), because data loading got faster" in better.verdict


def test_where_nothing_tells_why_no_cause_is_named():
    run = analysed("s-healthy")
    found = compare([run], slower(run, 1.3))
    assert found.cause is None
    assert "because" not in found.verdict.partition(". ")[0]


def test_a_line_of_the_users_leads_where_it_takes_the_time():
    run = analysed("s-healthy")
    times = [(epoch.train_s or 0.0) for epoch in run.epochs[1:]]
    before = with_notes(with_times(run, times), 0.4)
    after = with_notes(with_times(run, [seconds + 1.3 for seconds in times]), 1.6)
    found = compare([before], after)
    assert (found.cause.kind, found.cause.line.function) == ("line of code", "log_images")
    assert "slower), because log_images (callbacks.py:41) got slower. The GPU was idle in it: " in found.verdict
