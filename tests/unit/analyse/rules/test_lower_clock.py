"""A clock that fell in training though the driver gives no reason, and what is none."""

import dataclasses

import numpy as np
import pytest
from support.runs import make_run

from gpu_report.analyse import analyse
from gpu_report.model import InsideEpoch, InsideRun, Phase, Progress
from gpu_report.render.what_to_change import listed_changes

FULL_MHZ, LOW_MHZ, LIMIT_W = 2700.0, 1500.0, 450.0
SECONDS, FELL_S = 2400, 1230
APPLICATION_CLOCKS, SW_POWER_CAP, SW_THERMAL = 0x2, 0x4, 0x20


def trained(clock=LOW_MHZ, util=95.0, reasons=0.0, watts=(330.0, 180.0), celsius=(65.0, 60.0), fell_s=FELL_S):
    """Return 40 minutes of training, in whose second half the clock was lower, seen from outside."""
    later = np.arange(SECONDS) >= fell_s
    quantities = {
        "sm_clock_mhz": np.where(later, clock, FULL_MHZ),
        "clock_event_reasons": np.where(later, reasons, 0.0) if reasons is not None else np.full(SECONDS, np.nan),
        "power_w": np.where(later, watts[1], watts[0]),
        "temperature_c": np.where(later, celsius[1], celsius[0]),
    }
    facts = {"power_limit_w": LIMIT_W, "max_sm_clock_mhz": 3105.0}
    return make_run(np.where(later, util, 95.0).tolist(), quantities=quantities, facts=facts)


def found(run):
    return [f for f in analyse(run).findings if f.rule in {"lower-clock", "thermal", "power-cap"}]


@pytest.mark.parametrize("reasons", [0.0, None])
def test_it_is_dated_by_its_readings_and_booked_without_epochs(reasons):
    analysis = analyse(trained(reasons=reasons))
    (finding,) = [f for f in analysis.findings if f.rule == "lower-clock"]
    assert (finding.start_t_s, finding.end_t_s) == (FELL_S, SECONDS)
    lost_s = 0.95 * (SECONDS - FELL_S) * (1 - LOW_MHZ / FULL_MHZ)
    assert finding.lost_gpu_s == pytest.approx(lost_s)
    assert {row.name: row.gpu_seconds for row in analysis.ledger}["lower-clock"] == pytest.approx(lost_s)


def test_gpus_whose_clocks_fell_at_once_are_named_in_one_finding():
    later = np.arange(SECONDS) >= FELL_S
    quantities = {"sm_clock_mhz": np.where(later, LOW_MHZ, FULL_MHZ), "clock_event_reasons": np.zeros(SECONDS)}
    run = make_run([[95.0] * SECONDS] * 2, quantities=quantities)
    analysis = analyse(run)
    (finding,) = [f for f in analysis.findings if f.rule == "lower-clock"]
    assert finding.summary == "The SM clock of GPUs 0 and 1 fell from 2,700 to 1,500 MHz for 19 min 30 s"
    assert analysis.verdict.text.startswith("Find what lowered the clock of GPUs 0 and 1: it cost at most 8 min 15 s")
    (step,) = listed_changes(analysis)
    assert step.text.startswith("Find what lowered the clock: `nvidia-smi -q")


def test_clocks_that_somebody_set_are_to_be_reset():
    (finding,) = found(trained(reasons=APPLICATION_CLOCKS))
    assert finding.summary.startswith("Application clocks slowed GPU 0 to 1,500 MHz")
    assert finding.advice[0].short == "Reset the application clocks"


def test_a_hot_gpu_whose_log_has_no_reasons_is_slowed_by_heat():
    (finding,) = found(trained(reasons=None, celsius=(70.0, 88.0)))
    assert finding.rule == "thermal"


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize(("reason", "rule"), [(SW_POWER_CAP, "power-cap"), (SW_THERMAL, "thermal")])
def test_what_the_driver_gives_a_reason_for_is_that_alone(reason, rule, every):
    """It is read at a tick: where it comes and goes, some ticks have none."""
    (finding,) = found(trained(reasons=np.where(np.arange(SECONDS) % every == 0, reason, 0)))
    assert finding.rule == rule
    assert (finding.start_t_s, finding.end_t_s) == (pytest.approx(FELL_S, abs=3), pytest.approx(SECONDS, abs=3))


def test_a_reason_that_is_given_at_full_clock_as_well_explains_no_fall():
    run = trained()
    always = run.samples.assign(clock_event_reasons=np.where(np.arange(SECONDS) % 3 == 0, SW_POWER_CAP, 0))
    assert [f.rule for f in found(dataclasses.replace(run, samples=always)) if f.rule == "lower-clock"] == []


@pytest.mark.parametrize(
    "run",
    [
        trained(clock=2500.0),
        trained(util=70.0),
        trained(reasons=None, watts=(440.0, 440.0)),
        trained(fell_s=60),
        trained(fell_s=SECONDS - 60),
        trained(clock=np.where(np.arange(SECONDS) % 2 > 0, FULL_MHZ + 300, LOW_MHZ), fell_s=0),
    ],
    ids=["little", "it waits", "at its limit, no reasons", "from the start", "short", "from second to second"],
)
def test_what_is_no_fall(run):
    assert found(run) == []


def test_epochs_that_all_ran_at_the_lower_clock_could_be_as_fast_as_before_it():
    run = make_run(
        [0.0] * 10 + [95.0] * 3600,
        rows=[(number, 10 + 900 * number) for number in (1, 2, 3, 4)],
        quantities={
            "sm_clock_mhz": np.where(np.arange(3610) >= 700, LOW_MHZ, FULL_MHZ),
            "clock_event_reasons": np.zeros(3610),
        },
    )
    limit = next(each for each in analyse(run).speedup_limits if each.cause == "lower-clock")
    assert limit.epoch_s_at_best == pytest.approx(900 * (1 - 0.95 * (1 - LOW_MHZ / FULL_MHZ)), rel=0.01)


@pytest.mark.parametrize(
    ("watts", "severity"),
    [((330.0, 180.0), "warning"), ((np.nan, np.nan), "info")],
    ids=["with its power", "power not read"],
)
def test_a_bare_log_warns_where_power_shows_the_same_work(watts, severity):
    """A card at its limit lowers its clock for heavier work, and then draws as much."""
    run = trained(reasons=None, watts=watts)
    run = dataclasses.replace(run, gpus=tuple(dataclasses.replace(gpu, power_limit_w=None) for gpu in run.gpus))
    (finding,) = found(run)
    assert (finding.rule, finding.severity) == ("lower-clock", severity)
    assert ("heavier work may lower it" in finding.cause.explanation) is (severity == "info")


@pytest.mark.parametrize(("longer", "severity"), [(1.0, "info"), (1.6, "critical")])
@pytest.mark.parametrize("reasons", [True, False])
def test_epochs_that_are_no_longer_at_the_lower_clock_lost_nothing(longer, severity, reasons):
    """Each trains for 300 s at the full clock: what waits for the CPU, or for memory, is not slowed by a lower one."""
    lengths = [300] * 4 + [round(300 * longer)] * 4
    ends = np.cumsum([10, *lengths])
    seconds = int(ends[-1]) + 10
    quantities = {
        "sm_clock_mhz": np.where(np.arange(seconds) >= ends[4], LOW_MHZ, FULL_MHZ),
        "clock_event_reasons": np.zeros(seconds) if reasons else np.full(seconds, np.nan),
    }
    rows = [(number, float(end)) for number, end in enumerate(ends[1:], 1)]
    run = make_run([0.0] * 10 + [95.0] * (seconds - 10), rows=rows, quantities=quantities)
    assert [finding.severity for finding in found(run) if finding.rule == "lower-clock"] == [severity]


@pytest.mark.parametrize(("later_s", "severity"), [(0.5, "info"), (0.8, "warning")])
def test_batches_say_it_where_one_epoch_ran_at_both_clocks(later_s, severity):
    """The driver gives reasons, and has none: it knows nothing of what batches took."""
    told, t_s, batches = [], 10.0, 0
    while t_s < SECONDS:
        t_s, batches = t_s + 4 * (later_s if t_s >= FELL_S else 0.5), batches + 4
        told.append(Progress(t_s, batches, 0.0))
    phases = Phase("startup", None, 0.0, 10.0, "inside"), Phase("train", 1, 10.0, t_s, "inside")
    epochs = (InsideEpoch(1, 1, 10.0, t_s, 32 * batches, batches, 0.0, 0.0, 0.0),)
    inside = InsideRun(1, 0, 41, "train", {"batch": 32}, phases, epochs, "finished", progress=tuple(told))
    run = dataclasses.replace(trained(reasons=0.0), inside=(inside,))
    assert [finding.severity for finding in found(run)] == [severity]
    uncounted = dataclasses.replace(run, inside=(dataclasses.replace(inside, progress=()),))
    assert [finding.severity for finding in found(uncounted)] == ["warning"]


@pytest.mark.parametrize(("watts", "is_found"), [((69.0, 67.0), False), ((69.0, 55.0), True)])
def test_a_clock_that_falls_at_the_same_power_is_at_a_limit_that_was_not_logged(watts, is_found):
    """Larger images draw more; the same work at a lower clock draws less."""
    run = trained(clock=0.88 * FULL_MHZ, reasons=None, watts=watts)
    unknown = dataclasses.replace(run, gpus=tuple(dataclasses.replace(gpu, power_limit_w=None) for gpu in run.gpus))
    assert bool(found(unknown)) == is_found


def in_spells(celsius, watts, minutes=12, every=60, hours=4):
    """Return hours of training by a log without reasons: each hour the clock is lower for some minutes."""
    t_s = np.arange(3600 * hours)
    down = (t_s % (60 * every) >= 1800) & (t_s % (60 * every) < 1800 + 60 * minutes)
    quantities = {
        "sm_clock_mhz": np.where(down, 1050.0, 1380.0),
        "clock_event_reasons": np.full(len(t_s), np.nan),
        "power_w": np.where(down, watts[1], watts[0]),
        "temperature_c": np.where(down, celsius[1], celsius[0]),
    }
    return make_run([99.0] * len(t_s), quantities=quantities, facts={"power_limit_w": 300.0})


def test_a_clock_that_falls_only_when_hot_though_less_power_is_drawn_is_slowed_by_heat_each_hour():
    (finding,) = found(in_spells(celsius=(64.0, 83.0), watts=(230.0, 140.0)))
    assert finding.rule == "thermal"
    assert [round(one.duration_s / 60) for one in finding.each] == [12] * 4
    assert finding.summary == "Heat slowed GPU 0 to 1,050 MHz instead of 1,380 for 48 min, 4 times, every hour"
    assert sum(one.lost_gpu_s for one in finding.each) == pytest.approx(finding.lost_gpu_s)


@pytest.mark.parametrize(
    ("celsius", "watts"),
    [((83.0, 64.0), (230.0, 140.0)), ((83.0, 83.0), (230.0, 140.0)), ((45.0, 64.0), (230.0, 140.0))],
)
def test_a_lower_clock_that_a_gpu_has_at_no_higher_temperature_is_set(celsius, watts):
    (finding,) = found(in_spells(celsius, watts))
    assert finding.rule == "lower-clock"


def test_a_validation_does_not_end_a_fall_of_the_clock():
    """Each 5 min the GPU is validating at its full clock for 20 s."""
    run = in_spells(celsius=(64.0, 83.0), watts=(230.0, 140.0), minutes=22)
    rows = [(number, 300.0 * number) for number in range(1, 49)]
    t_s = run.samples["t_s"].to_numpy()
    validating = (t_s % 300 >= 280) & (t_s > 300)
    clock = np.where(validating, 1380.0, run.samples["sm_clock_mhz"])
    util = np.where(validating, 60.0, 99.0)
    phases = tuple(
        phase
        for number in range(1, 49)
        for phase in (
            Phase("train", number, 300.0 * (number - 1), 300.0 * number - 20, "inside"),
            Phase("validation", number, 300.0 * number - 20, 300.0 * number, "inside"),
        )
    )
    epochs = tuple(InsideEpoch(n, 1, 300.0 * (n - 1), 300.0 * n - 20, 3200, 100, 0.0, 0.0, 0.0) for n, _ in rows)
    inside = InsideRun(1, 0, 41, "train", {"batch": 32}, phases, epochs, "finished")
    samples = run.samples.assign(sm_clock_mhz=clock, gpu_util_pct=util)
    (finding,) = found(dataclasses.replace(run, samples=samples, inside=(inside,)))
    assert [one.duration_s / 60 for one in finding.each] == [pytest.approx(22, abs=1)] * 4
