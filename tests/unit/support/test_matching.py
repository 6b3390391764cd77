"""What counts as found, named, off and false (docs/accuracy.md), on invented labels and findings."""

import dataclasses

import pytest
from support.accuracy import EDGE_S, alarms_per_hour, shortfalls
from support.labels import Fault, Labels
from support.matching import judge
from support.shortfalls import CAUSE, EDGES, FALSE_ALARM, MISSED

from gpu_report.model import Cause, Finding

HOUR_S = 3600.0
COMMAND, EFFECT = (96.0, 118.0), (100.0, 120.0)


def fault(cause="input-storage", gpu=0, command=COMMAND, effect=EFFECT, **more):
    return Fault("run", "kind", cause, gpu, command, effect, **more)


def finding(start, end, cause="input-storage", gpu=0, rule="drop", severity="warning", **more):
    told = Cause(cause, 0.9, "") if cause else None
    return Finding(f"{rule}-1", rule, severity, gpu, start, end, "", cause=told, **more)


def judged(faults, findings, duration_s=HOUR_S):
    return judge(Labels("run", "fitted", "completed", tuple(faults)), findings, duration_s)


def verdict(one_fault, *findings):
    (verdict,) = judged([one_fault], findings).verdicts
    return verdict


def false_alarms(one_fault, *findings):
    return list(judged([one_fault], findings).false_alarms)


@pytest.mark.parametrize(
    ("kind", "severity", "is_found"), [("sigint", "info", 1), ("kill", "info", 0), ("kill", "critical", 1)]
)
def test_of_ctrl_c_a_note_is_enough_and_of_no_other_end(kind, severity, is_found):
    ended = dataclasses.replace(fault("run-ended", effect=(100.0, 120.0)), kind=kind)
    told = finding(119.0, 119.0, "run-ended", rule="run-ended", severity=severity)
    assert verdict(ended, told).is_found == is_found


def test_a_finding_over_the_effect_finds_it_names_it_and_is_no_alarm():
    result = judged([fault()], [finding(101, 119.5)])
    (found,) = result.verdicts
    assert found.is_found
    assert found.is_named
    assert (found.start_off_s, found.end_off_s) == (1.0, -0.5)
    assert result.false_alarms == ()
    assert shortfalls([result]) == []


@pytest.mark.parametrize(("end", "is_found"), [(109.8, False), (110.0, True)])
def test_half_of_the_effect_is_found_and_49_percent_are_not(end, is_found):
    assert verdict(fault(), finding(100, end)).is_found is is_found


def test_a_finding_over_too_little_of_the_effect_finds_nothing_and_is_no_alarm_either():
    assert not verdict(fault(), finding(118, 125)).is_found
    assert false_alarms(fault(), finding(118, 125)) == []


def test_two_findings_of_a_third_each_do_not_add_up():
    assert not verdict(fault(), finding(100, 107), finding(110, 117)).is_found


def test_the_effect_counts_and_not_the_command():
    assert not verdict(fault(command=(60, 80), effect=(100, 120)), finding(60, 80)).is_found


def test_what_is_expected_or_only_information_finds_nothing_and_is_no_alarm():
    quiet = [finding(100, 120, expected=True), finding(100, 120, severity="info"), finding(500, 520, severity="info")]
    assert not verdict(fault(), *quiet).is_found
    assert false_alarms(fault(), *quiet, finding(500, 520, expected=True)) == []


def test_a_critical_finding_counts_like_a_warning():
    assert verdict(fault(), finding(100, 120, severity="critical")).is_found


def test_a_finding_on_another_gpu_finds_nothing_and_is_a_false_alarm():
    elsewhere = finding(100, 120, gpu=1)
    assert not verdict(fault(gpu=0), elsewhere).is_found
    assert false_alarms(fault(gpu=0), elsewhere) == [elsewhere]


@pytest.mark.parametrize(("of_fault", "of_finding"), [(None, 1), (1, None)])
def test_what_is_of_all_gpus_is_of_each(of_fault, of_finding):
    assert verdict(fault(gpu=of_fault), finding(100, 120, gpu=of_finding)).is_found


def test_another_cause_is_found_but_not_right():
    result = judged([fault()], [finding(100, 120, cause="unexplained")])
    assert result.verdicts[0].is_found
    assert shortfalls([result]) == [("run: kind at 100 s", CAUSE)]


def test_where_two_gpus_feel_a_fault_one_may_name_it_and_the_worse_edge_counts():
    stopped = finding(94, 120, cause="trainer-blocked", gpu=1)
    waited = finding(101, 120, cause="waiting-for-peer", gpu=0)
    found = verdict(fault("waiting-for-peer", gpu=None), stopped, waited)
    assert found.is_named
    assert (found.start_off_s, found.end_off_s) == (-6.0, 0.0)


def test_on_one_gpu_the_finding_that_fits_best_is_asked_for_the_cause():
    rough, exact = finding(60, 160), finding(100, 120, cause="unexplained")
    assert not verdict(fault(), rough, exact).is_named


def test_one_finding_finds_one_fault_only():
    first, second = fault(command=(100, 120), effect=(100, 120)), fault(command=(130, 145), effect=(130, 145))
    found = judged([first, second], [finding(98, 146)]).verdicts
    assert [one.is_found for one in found] == [True, False]


def test_an_edge_is_off_from_more_than_two_seconds_on():
    inside = judged([fault()], [finding(100 - EDGE_S, 120 + EDGE_S)])
    outside = judged([fault()], [finding(100 - EDGE_S - 0.1, 120)])
    assert shortfalls([inside]) == []
    assert shortfalls([outside]) == [("run: kind at 100 s", EDGES)]


@pytest.mark.parametrize(
    "uncounted", [fault(effect=(100.0, 109.9)), fault(effect=None), fault(cause=None, effect=None)]
)
def test_a_short_effect_none_and_what_has_no_cause_are_not_counted_but_excuse_a_finding(uncounted):
    result = judged([uncounted], [finding(100, 110, rule="kernel", cause=None), finding(99, 99, cause=None)])
    assert result.verdicts == ()
    assert result.false_alarms == ()


def test_a_played_fault_is_counted_however_short():
    assert verdict(fault(effect=(100.0, 104.0), played=True), finding(100, 104)).is_named


def test_what_is_not_found_falls_short():
    assert shortfalls([judged([fault()], [])]) == [("run: kind at 100 s", MISSED)]


class TestAnEnd:
    END = fault("run-ended", command=(99.0, 99.0), effect=(100.0, 101.0))

    @pytest.mark.parametrize(
        ("end", "is_found"), [(97.9, False), (98.0, True), (100.5, True), (103.0, True), (103.1, False)]
    )
    def test_is_found_by_a_finding_that_ends_within_two_seconds_of_it(self, end, is_found):
        ended = finding(end - 5, end, "run-ended", None, "run-ended", "critical")
        assert verdict(self.END, ended).is_found is is_found

    def test_is_not_found_by_a_drop(self):
        assert not verdict(self.END, finding(80, 101, "run-ended")).is_found

    def test_has_no_edges(self):
        found = verdict(self.END, finding(96, 101, "run-ended", rule="run-ended"))
        assert (found.start_off_s, found.end_off_s) == (None, None)


class TestGrowingMemory:
    LEAK = fault("memory-growth", command=(100.0, 130.0), effect=None)

    def test_is_found_over_the_time_that_it_was_done_and_has_no_edges(self):
        found = verdict(self.LEAK, finding(110, 150, cause=None, rule="memory-growth"))
        assert found.is_named
        assert found.start_off_s is None

    def test_is_not_found_by_a_drop(self):
        assert not verdict(self.LEAK, finding(100, 130, "memory-growth")).is_found


class TestAStandingFault:
    STARVED = fault("input-cpu", command=(0.0, 200.0), effect=(20.0, 180.0), standing=True)

    def test_is_found_without_edges(self):
        found = verdict(self.STARVED, finding(30, 150, "input-cpu", rule="starved"))
        assert found.is_named
        assert found.start_off_s is None

    def test_excuses_a_short_finding_only_if_it_names_its_cause(self):
        named, other = finding(50, 65, "input-cpu"), finding(80, 95, "unexplained")
        assert false_alarms(self.STARVED, named, other) == [other]

    def test_leaves_a_drop_to_the_fault_that_it_fits(self):
        stalled = fault("input-stalled")
        found = judged([self.STARVED, stalled], [finding(20, 180, "input-cpu"), finding(100, 120, "input-stalled")])
        assert [one.is_named for one in found.verdicts] == [True, True]
        assert (found.verdicts[1].start_off_s, found.verdicts[1].end_off_s) == (0.0, 0.0)


class TestAFalseAlarm:
    def test_is_a_finding_on_no_label_and_counts_once(self):
        stray = finding(500, 520, gpu=None)
        result = judged([fault(gpu=0), fault(gpu=1)], [finding(100, 120, gpu=None), stray])
        assert result.false_alarms == (stray,)
        assert shortfalls([result])[-1] == ("run: drop-1", FALSE_ALARM)

    def test_is_none_on_the_way_from_command_to_effect(self):
        assert false_alarms(fault(), finding(96.5, 98.0)) == []

    def test_is_counted_per_hour_of_all_runs_together(self):
        noisy = judged([], [finding(1, 20), finding(40, 60)], duration_s=1200)
        calm = judged([], [], duration_s=2400)
        assert alarms_per_hour([noisy, calm]) == pytest.approx(2.0)
        assert alarms_per_hour([noisy]) == pytest.approx(6.0)
