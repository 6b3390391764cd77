"""Throttling: what the driver says held clocks down, and at what cost."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import PROCESSES, make_run

from gpu_report.analyse import analyse
from gpu_report.analyse.causes.gpu import power_cap, thermal
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.signal_table import SignalTable
from gpu_report.model import InsideRun, Phase

NAN = float("nan")
SECONDS, FROM, TO = 120, 40, 80
IDLE, APP_CLOCKS, CAP, HW, SYNC_BOOST, SW_HEAT, HW_HEAT, BRAKE, DISPLAY = (1 << bit for bit in range(9))
FULL_MHZ = 1980.0


def column(typical, within, start=FROM, end=TO):
    values = np.full(SECONDS, float(typical))
    values[start:end] = within
    return values


def run(reasons=CAP, clock=1386.0, start=FROM, end=TO, **quantities):
    """Return a run of 2 minutes, 92 % busy, its clock 30 % down for 40 s of it, at as much power as ever."""
    found = {
        "clock_event_reasons": column(0, reasons, start, end),
        "sm_clock_mhz": column(FULL_MHZ, clock, start, end),
        "power_w": column(600, 600),
        "temperature_c": column(48, 48),
        **quantities,
    }
    made = make_run([92.0] * SECONDS, quantities=found)
    gpus = tuple(dataclasses.replace(gpu, max_sm_clock_mhz=FULL_MHZ, power_limit_w=700.0) for gpu in made.gpus)
    return dataclasses.replace(made, gpus=gpus)


def throttled(given):
    return [f for f in analyse(given).findings if f.rule in {"power-cap", "thermal"}]


def ledger(given):
    return {row.name: row.gpu_seconds for row in analyse(given).ledger}


def evidence(finding):
    return {item.text: item.value for item in finding.evidence}


@pytest.mark.parametrize(
    ("rule", "reasons"),
    [
        ("power-cap", CAP),
        ("power-cap", BRAKE | HW),
        ("power-cap", HW),  # an old driver says no more: power rose too fast, unless it is hot
        ("thermal", SW_HEAT),
        ("thermal", HW_HEAT | HW),
        ("thermal", SW_HEAT | CAP),
    ],
)
def test_a_clock_held_down_is_told_with_its_cause_and_its_cost(rule, reasons):
    (finding,) = throttled(run(reasons))
    assert (finding.rule, finding.id, finding.cause.name) == (rule, f"{rule}-1", rule)
    assert (finding.start_t_s, finding.end_t_s, finding.severity) == (FROM, TO, "warning")
    told = evidence(finding)
    assert told["SM clock meanwhile (mean)"] == pytest.approx(1386)
    assert told["typical"] == FULL_MHZ
    assert told["clock lost"] == pytest.approx(30)
    assert told["of the time in which the GPU worked, slowed"] == pytest.approx(100 / 3)
    assert told["time of work lost, at most"] == pytest.approx(40 * 0.92 * 0.3)
    assert told["its limit when the recording began"] == 700


def test_the_verdict_says_it_and_the_ledger_takes_the_clock_from_the_work():
    analysis = analyse(run(SW_HEAT))
    assert "Heat slowed GPU 0 to 1,386 MHz instead of 1,980 for 40 s." in analysis.verdict.text
    rows = {row.name: row.gpu_seconds for row in analysis.ledger}
    assert rows == {
        "work": pytest.approx(120 * 0.92 - 40 * 0.92 * 0.3),
        "thermal": pytest.approx(40 * 0.92 * 0.3),
        "short gaps": pytest.approx(120 * 0.08),
    }


def test_a_cap_far_below_the_recorded_limit_is_another_limit():
    """Nobody can raise it with nvidia-smi -pl: it was lowered, by a laptop on its battery or by a power manager."""
    lowered = run(power_w=column(600, 250))
    (finding,) = throttled(lowered)
    assert finding.summary.startswith("A power limit that was lowered to about 250 W slowed GPU 0 to 1,386 MHz")
    text = "Find what lowered the power limit from 700 to about 250 W, 40 s into the recording. "
    assert finding.advice[0].text.startswith(text)
    assert analyse(lowered).verdict.text.startswith("Find what lowered the power limit: it cost about ")
    assert "aise the power limit" not in analyse(lowered).verdict.text


def test_a_laptop_with_a_lowered_limit_is_to_be_plugged_in():
    given = run(power_w=column(600, 250))
    gpus = tuple(dataclasses.replace(gpu, name="NVIDIA GeForce RTX 4070 Laptop GPU") for gpu in given.gpus)
    analysis = analyse(dataclasses.replace(given, gpus=gpus))
    assert analysis.verdict.text.startswith(
        "Give the laptop its full power supply, or choose its performance profile: "
    )


@pytest.mark.parametrize(
    "changed", [{"power_w": column(600, 600)}, {"reasons": BRAKE | HW, "power_w": column(600, 250)}]
)
def test_a_cap_near_the_limit_or_by_a_signal_from_outside_is_no_lowered_limit(changed):
    (finding,) = throttled(run(**changed))
    assert "lowered" not in finding.summary
    assert not any("lowered" in each.text for each in finding.advice)


@pytest.mark.parametrize(
    "reasons", [0, IDLE, APP_CLOCKS, SYNC_BOOST, DISPLAY, IDLE | APP_CLOCKS | SYNC_BOOST | DISPLAY]
)
def test_other_reasons_are_no_throttling(reasons):
    assert throttled(run(reasons)) == []


@pytest.mark.parametrize("reasons", [CAP, SW_HEAT, HW_HEAT | HW, BRAKE])
def test_what_is_not_told_is_not_concluded(reasons):
    unknown = np.full(SECONDS, NAN)
    assert throttled(run(reasons, clock_event_reasons=unknown, temperature_c=column(48, 91))) == []
    assert throttled(run(reasons, sm_clock_mhz=unknown)) == []
    assert throttled(run(1e300)) == []  # no bitmask


def test_a_gpu_that_does_no_work_is_not_throttled():
    idle = run(SW_HEAT)
    util = [92.0] * FROM + [3.0] * (TO - FROM) + [92.0] * (SECONDS - TO)
    samples = idle.samples.assign(gpu_util_pct=util)
    assert throttled(dataclasses.replace(idle, samples=samples)) == []


@pytest.mark.parametrize(("seconds", "found"), [(11, 1), (9, 0)])
def test_it_lasts_ten_seconds_at_least(seconds, found):
    assert len(throttled(run(CAP, end=FROM + seconds))) == found


@pytest.mark.parametrize(
    ("clock", "severity"), [(1965, None), (1925, None), (1915, "info"), (1885, "info"), (1875, "warning")]
)
def test_a_loaded_card_touches_its_limit_and_that_costs_next_to_nothing(clock, severity):
    given = run(CAP, clock=clock)
    assert [finding.severity for finding in throttled(given)] == ([severity] if severity else [])
    assert ("power-cap" in ledger(given)) is (severity == "warning")  # a note's cost is not taken from the work


@pytest.mark.parametrize(
    ("clock", "severity"), [(1800, None), (1760, "info"), (1500, "info"), (1470, "warning"), (900, "warning")]
)
def test_a_heavier_load_than_any_at_full_clock_may_be_all_that_the_card_can_do(clock, severity):
    """As matrices beside a training on an H200: 690 W of 700, and the clock 14 % down."""
    given = run(CAP, clock=clock, power_w=column(600, 690))
    assert [finding.severity for finding in throttled(given)] == ([severity] if severity else [])
    unknown = run(CAP, clock=clock, power_w=np.full(SECONDS, NAN))
    assert [finding.severity for finding in throttled(unknown)] == ([severity] if severity else [])


def test_heat_and_an_outside_signal_need_no_work_of_like_power():
    for reasons in (SW_HEAT, BRAKE):
        (finding,) = throttled(run(reasons, clock=1800, power_w=column(600, 690)))
        assert finding.severity == "warning"


@pytest.mark.parametrize(
    ("reasons", "clock", "severity"),
    [
        (HW_HEAT | HW, 990, "critical"),
        (BRAKE, 990, "critical"),
        (HW_HEAT | HW, 1150, "warning"),
        (SW_HEAT, 990, "warning"),
        (CAP, 990, "warning"),
    ],
)
def test_what_the_board_itself_halves_is_critical(reasons, clock, severity):
    (finding,) = throttled(run(reasons, clock=clock))
    assert finding.severity == severity
    assert ("power brake" in finding.summary) is (reasons == BRAKE)


def test_without_reasons_counters_tell():
    unknown = np.full(SECONDS, NAN)
    held_s = np.clip(np.arange(SECONDS) - FROM, 0, TO - FROM).astype(float)
    read = np.arange(SECONDS) % 10 == 0  # as seldom as they are read
    for rule, name in (("power-cap", "power_cap_s"), ("thermal", "hw_thermal_slowdown_s")):
        given = run(clock_event_reasons=unknown, **{name: np.where(read, 79 + held_s, NAN)})
        (finding,) = throttled(given)
        assert (finding.rule, finding.start_t_s, finding.end_t_s) == (rule, FROM, TO)
        assert 40.0 in evidence(finding).values()
        assert throttled(run(clock_event_reasons=unknown, **{name: np.where(read, 79.0, NAN)})) == []


def test_a_counter_that_goes_back_tells_nothing():
    """As when the driver is loaded anew."""
    unknown, counter = np.full(SECONDS, NAN), np.full(SECONDS, NAN)
    counter[[0, FROM, TO, SECONDS - 1]] = [500, 500, 0, 0]
    assert throttled(run(clock_event_reasons=unknown, power_cap_s=counter)) == []


def test_reasons_that_come_and_go_make_one_finding():
    given = run(CAP, clock=1386)
    flickering = np.where(np.arange(SECONDS) % 4 == 1, 0.0, given.samples["clock_event_reasons"])
    clock = np.where(np.arange(SECONDS) % 4 == 1, FULL_MHZ, given.samples["sm_clock_mhz"])
    samples = given.samples.assign(clock_event_reasons=flickering, sm_clock_mhz=clock)
    (finding,) = throttled(dataclasses.replace(given, samples=samples))
    assert (finding.start_t_s, finding.end_t_s) == (FROM, TO)
    assert evidence(finding)["time of work lost, at most"] == pytest.approx(30 * 0.92 * 0.3)
    assert finding.summary.endswith("for 30 s")  # not for the 10 s in between, in which it was not slowed


def test_stretches_far_apart_make_one_finding_of_all_of_them():
    reasons, clock = column(0, CAP, 10, 22), column(FULL_MHZ, 1386, 10, 22)
    reasons[90:110], clock[90:110] = CAP, 1386
    counter = np.arange(SECONDS).astype(float)  # it holds a little back all the time, and enough of it in these
    (finding,) = throttled(run(clock_event_reasons=reasons, sm_clock_mhz=clock, power_cap_s=counter))
    assert (finding.start_t_s, finding.end_t_s, finding.took_s) == (10, 110, 32)
    assert [each.span for each in finding.occurrences] == [(10, 22), (90, 110)]
    assert [seconds for text, seconds in evidence(finding).items() if "by the driver's counter" in text] == [100]
    assert finding.summary.endswith("for 32 s")


def test_short_touches_count_when_they_are_enough_of_the_work():
    often = np.arange(SECONDS) % 10 < 2
    (finding,) = throttled(
        run(clock_event_reasons=np.where(often, CAP, 0), sm_clock_mhz=np.where(often, 1386, FULL_MHZ))
    )
    assert (finding.start_t_s, finding.end_t_s) == (0, 112)
    seldom = np.arange(SECONDS) % 60 < 4
    assert (
        throttled(run(clock_event_reasons=np.where(seldom, CAP, 0), sm_clock_mhz=np.where(seldom, 1386, FULL_MHZ)))
        == []
    )


def test_a_run_held_down_throughout_is_measured_against_the_highest_clock_of_the_card():
    (finding,) = throttled(with_default(1000.0, run(CAP, start=0, end=SECONDS)))
    assert (finding.severity, evidence(finding)["the highest of this card, not seen here"]) == ("warning", FULL_MHZ)
    assert f"instead of at most {FULL_MHZ:,.0f} for" in finding.summary
    assert "under less load" not in finding.cause.explanation


def test_what_a_clock_costs_that_was_lower_all_along_is_bounded_by_the_highest_of_the_card():
    hot = run(SW_HEAT, start=0, end=SECONDS)
    epochs = make_run([92.0] * SECONDS, rows=[(n, 20.0 * n) for n in range(1, 7)])
    limits = analyse(dataclasses.replace(hot, epoch_rows=epochs.epoch_rows, yolo_runs=epochs.yolo_runs)).speedup_limits
    assert [each.basis for each in limits if each.cause == "thermal"] == ["at the highest clock of the card"]
    unknown = run(CAP, start=0, end=SECONDS)
    gpus = tuple(dataclasses.replace(gpu, max_sm_clock_mhz=None) for gpu in unknown.gpus)
    assert throttled(dataclasses.replace(unknown, gpus=gpus)) == []


def with_default(limit_w, given):
    gpus = tuple(dataclasses.replace(gpu, power_limit_default_w=limit_w) for gpu in given.gpus)
    return dataclasses.replace(given, gpus=gpus)


@pytest.mark.parametrize("default_w", [700.0, None])
def test_a_card_at_the_limit_that_it_came_with_does_what_it_can(default_w):
    given = with_default(default_w, run(CAP, start=0, end=SECONDS))
    (finding,) = throttled(given)
    assert (finding.severity, "its full speed" in finding.summary) == ("info", True)
    assert "power-cap" not in ledger(given)
    assert [f.severity for f in throttled(with_default(default_w, run(CAP)))] == ["warning"]  # it has shown more


@pytest.mark.parametrize(
    ("default_w", "clock", "severity"),
    [(700.0, 1850.0, "info"), (700.0, 1386.0, "warning"), (1000.0, 1850.0, "warning"), (None, 1850.0, "warning")],
)
def test_a_small_cost_of_a_limit_that_nobody_lowered_is_a_note(default_w, clock, severity):
    """It cost 2.9 % of a healthy training (slopes, YOLOv8x, H200 at its default of 700 W, 2026-11-28)."""
    given = with_default(default_w, run(CAP, clock))
    (finding,) = throttled(given)
    assert finding.severity == severity
    assert analyse(given).verdict.text.startswith("Raise the power limit") is (severity == "warning")


def test_a_power_brake_leads_to_the_power_supply_by_what_it_costs():
    often = np.arange(SECONDS) % 20 < 8
    given = run(clock_event_reasons=np.where(often, BRAKE | HW, 0), sm_clock_mhz=np.where(often, 600, FULL_MHZ))
    (finding,) = throttled(given)
    assert [each.short for each in finding.advice] == [
        "Check the power supply and its cables, which slowed the GPU (power brake)"
    ]
    lead = "Check the power supply and its cables, which slowed the GPU (power brake): it cost about 31 s of training."
    assert analyse(given).verdict.text.startswith(lead)


def test_what_a_card_can_do_is_judged_by_its_steps_for_a_validation_is_a_lighter_load():
    at_limit = np.arange(SECONDS) % 60 < 40
    given = run(
        clock_event_reasons=np.where(at_limit, CAP, 0),
        sm_clock_mhz=np.where(at_limit, 1386, FULL_MHZ),
        power_w=np.where(at_limit, 700, 400),
    )
    assert [finding.severity for finding in throttled(given)] == ["warning"]
    parts = [("train", 1, 0.0, 40.0), ("validation", 1, 40.0, 60.0), ("train", 2, 60.0, 100.0)]
    phases = tuple(Phase(*part, "inside") for part in (*parts, ("validation", 2, 100.0, 120.0)))
    told = dataclasses.replace(given, inside=(InsideRun(1, 0, 41, "train", {}, phases, (), "finished"),))
    assert [finding.severity for finding in throttled(told)] == ["info"]


@pytest.mark.parametrize(("temperature", "found"), [(85, 1), (84, 0)])
def test_heat_that_costs_nothing_yet_is_a_note(temperature, found):
    given = run(0, clock=FULL_MHZ, temperature_c=column(60, temperature))
    assert [finding.severity for finding in throttled(given)] == ["info"] * found
    assert "without a lower clock" in "".join(finding.summary for finding in throttled(given)) or not found


def test_the_worst_of_each_cause_is_in_the_verdict():
    reasons, clock = column(0, CAP, 10, 40), column(FULL_MHZ, 1386, 10, 40)
    reasons[60:90], clock[60:90] = SW_HEAT, 1500
    verdict = analyse(run(clock_event_reasons=reasons, sm_clock_mhz=clock)).verdict.text
    assert "The power limit slowed GPU 0" in verdict
    assert "Heat slowed GPU 0" in verdict


# --- as a cause of a drop ---------------------------------------------------------------------------------------


def beside(guest_from, guest_to, util_pct=60.0):
    """Return the run with another process on its GPU, from when it was seen to when it was gone."""
    trainer = (2.0, 0, 41, "python", 9000.0, "appeared", "trainer", NAN)
    other = [
        (t_s, 0, 77, "hog", 900.0, what, "other", util_pct)
        for t_s, what in ((guest_from, "appeared"), (guest_to, "gone"))
    ]
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in (trainer, *other)], columns=PROCESSES)
    return dataclasses.replace(run(), processes=table)


def test_what_came_of_a_guest_says_so():
    (finding,) = throttled(beside(FROM, TO + 5))
    assert finding.summary.endswith(", while hog (pid 77) used it, too")
    assert finding.cause.explanation.endswith("it began and ended with hog (pid 77)")


@pytest.mark.parametrize(
    "given",
    [beside(FROM, TO + 5, util_pct=0.0), beside(FROM + 20, TO + 5), beside(5.0, SECONDS - 1)],
    ids=["it only held memory", "for half of it", "all along"],
)
def test_what_may_not_have_come_of_a_guest_is_not_said_to(given):
    (finding,) = throttled(given)
    assert "hog" not in finding.summary + finding.cause.explanation


def signals(reasons, clock):
    t_s = np.arange(1.0, 61.0)
    within = (t_s > 30) & (t_s <= 45)
    own = {
        "clock_event_reasons": np.where(within, float(reasons), 0.0),
        "sm_clock_mhz": np.where(within, float(clock), FULL_MHZ),
        "gpu_util_pct": np.where(within, 40.0, 92.0),
    }
    empty = SignalTable(np.array([]), {}, np.array([], dtype=bool))
    return IntervalSignals(0, 30.0, 45.0, empty, SignalTable(t_s, own, t_s < 25))


@pytest.mark.parametrize(
    ("scorer", "reasons", "name"),
    [(power_cap, CAP, "power-cap"), (power_cap, BRAKE, "power-cap"), (thermal, HW_HEAT | HW, "thermal")],
)
def test_a_drop_is_explained_by_a_clock_that_fell_far(scorer, reasons, name):
    found = scorer(signals(reasons, 990))
    assert found.name == name
    assert {item.text: item.value for item in found.evidence}["SM clock meanwhile"] == 990
    assert scorer(signals(reasons, 1700)) is None  # 14 % explain no utilisation that fell to half
    assert scorer(signals(IDLE, 345)) is None
    assert scorer(signals(NAN, 990)) is None
    assert scorer(signals(reasons, NAN)) is None


@pytest.mark.parametrize("interval_s", [1.0, 20.0, 60.0])
def test_a_gpu_without_any_work_was_not_throttled_however_seldom_it_was_read(interval_s):
    quantities = {"clock_event_reasons": [float(CAP)] * 60, "sm_clock_mhz": [300.0] * 60}
    made = make_run([5.0] * 60, interval_s, quantities=quantities)
    gpus = tuple(dataclasses.replace(gpu, max_sm_clock_mhz=FULL_MHZ) for gpu in made.gpus)
    assert throttled(dataclasses.replace(made, gpus=gpus)) == []


def test_a_reading_that_stands_for_no_time_is_no_throttling():
    seldom = run(start=SECONDS - 1, end=SECONDS)
    recording = dataclasses.replace(seldom.recording, interval_s=60.0)
    assert throttled(dataclasses.replace(seldom, recording=recording, duration_s=SECONDS - 1.0)) == []


def test_a_clock_of_zero_is_no_clock_to_lose():
    for clocks in ({"sm_clock_mhz": np.zeros(SECONDS)}, {"sm_clock_mhz": np.full(SECONDS, NAN)}):
        made = run(SW_HEAT, start=0, end=SECONDS, temperature_c=column(90, 90), **clocks)
        gpus = tuple(dataclasses.replace(gpu, max_sm_clock_mhz=0.0) for gpu in made.gpus)
        assert throttled(dataclasses.replace(made, gpus=gpus)) == []


def on_gpus(given, number):
    """Return a run on so many GPUs, each with the readings of the one."""
    samples = pd.concat([given.samples.assign(gpu=gpu) for gpu in range(number)], ignore_index=True)
    gpus = tuple(dataclasses.replace(given.gpus[0], index=gpu) for gpu in range(number))
    return dataclasses.replace(given, samples=samples, gpus=gpus)


def test_what_holds_several_gpus_down_at_once_is_one_finding_that_names_them():
    (alone,), (finding,) = throttled(run()), throttled(on_gpus(run(), 4))
    assert (finding.gpu, finding.gpus) == (None, (0, 1, 2, 3))
    assert finding.summary == alone.summary.replace("GPU 0", "GPUs 0 to 3")
    assert finding.lost_gpu_s == pytest.approx(4 * alone.lost_gpu_s)


def test_gpus_that_are_held_down_at_different_times_have_a_finding_each():
    later = run(start=90, end=SECONDS)
    both = on_gpus(run(), 2)
    samples = pd.concat([run().samples, later.samples.assign(gpu=1)], ignore_index=True)
    assert [each.gpus for each in throttled(dataclasses.replace(both, samples=samples))] == [(0,), (1,)]


def test_gpus_of_one_training_that_are_held_down_at_once_cost_it_once():
    both = on_gpus(run(), 2)
    assert analyse(both).verdict.text.startswith(
        "Raise the power limit of GPUs 0 and 1, if you may: it cost at most 11 s of training."
    )
    assert "slowed GPU" not in analyse(both).verdict.text  # one of the two alone would contradict it


def test_a_validation_that_draws_as_much_for_a_moment_is_no_work_alike():
    """A small card holds its steps at its own limit; a lighter validation runs at full clock, with peaks."""
    held = np.arange(SECONDS) % 60 < 40
    given = run(
        clock_event_reasons=np.where(held, CAP, 0),
        sm_clock_mhz=np.where(held, 0.91 * FULL_MHZ, FULL_MHZ),
        power_w=np.where(held, 700.0, np.where(np.arange(SECONDS) % 2, 690.0, 560.0)),
    )
    phases = [
        Phase("train" if start % 60 == 0 else "validation", 1 + start // 60, float(start), float(end), "inside")
        for start, end in ((0, 40), (40, 60), (60, 100), (100, 120))
    ]
    given = dataclasses.replace(given, inside=(InsideRun(1, 1, 41, "train", {}, tuple(phases), ()),))
    assert throttled(given) == []


@pytest.mark.parametrize(("waits", "found"), [(True, False), (False, True)])
def test_a_clock_that_a_gpu_reaches_while_it_waits_in_between_is_no_work_alike(waits, found):
    """A T4 at its 70 W while it is busy; later it waits half of the time, and draws as much for moments."""
    half = 600
    later = ([100.0] * 10 + [20.0] * 10) * (half // 20) if waits else [100.0] * half
    watts = ([69.0] * 10 + [52.0] * 10) * (half // 20) if waits else [69.0] * half
    quantities = {
        "clock_event_reasons": [float(CAP)] * half + [0.0] * half,
        "sm_clock_mhz": [1443.0] * half + [1590.0] * half,
        "power_w": [70.0] * half + watts,
        "temperature_c": [60.0] * 2 * half,
    }
    made = make_run([100.0] * half + later, quantities=quantities)
    gpus = tuple(dataclasses.replace(gpu, max_sm_clock_mhz=1590.0, power_limit_w=70.0) for gpu in made.gpus)
    assert bool(throttled(dataclasses.replace(made, gpus=gpus))) == found


def test_waits_in_between_do_not_make_a_card_at_its_own_limit_a_slowed_one():
    """A T4 at its 70 W for half of a training; then it waits for data, reaches its full clock, and reads over 70 W."""
    half = 600
    quantities = {
        "clock_event_reasons": [float(CAP)] * half + [0.0] * half,
        "sm_clock_mhz": [1324.0] * half + [1590.0] * half,
        "power_w": [69.7] * half + ([78.0] * 6 + [69.0] * 4 + [52.0] * 10) * (half // 20),
        "temperature_c": [60.0] * 2 * half,
    }
    made = make_run([98.0] * half + ([100.0] * 10 + [20.0] * 10) * (half // 20), quantities=quantities)
    gpus = tuple(dataclasses.replace(gpu, max_sm_clock_mhz=1590.0, power_limit_w=70.0) for gpu in made.gpus)
    (finding,) = throttled(with_default(70.0, dataclasses.replace(made, gpus=gpus)))
    assert (finding.severity, "its full speed" in finding.summary, finding.lost_gpu_s) == ("info", True, None)
