"""Epochs that take longer than their siblings, that get slower, and that wait ever longer for data."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run, readings
from support.stacks import READS, process
from support.trained_epochs import VALIDATION_S, findings, start_of, texts, trained

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.causes.confidence import WEAK
from gpu_report.analyse.causes.slower_storage import advice_on_remote, advice_on_storage
from gpu_report.analyse.rules.epochs.comparable_epochs import KnownSlowdowns, trained_epochs
from gpu_report.analyse.rules.epochs.data_wait import data_wait_growing
from gpu_report.analyse.signals.host.process_waits import FileWait
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.signal_table import NO_SIGNALS, SignalTable
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.model import Frame, KernelEvent, KernelLog, Options, ProcessWait, Progress, RecordedEvent
from gpu_report.render.speedup_rows import speedup_rows

NAN = float("nan")


# --- an epoch that stands out

SLOW = [20.0, 20.0, 20.2, 19.9, 31.0, 20.1, 20.0]


def test_an_epoch_that_takes_far_longer_is_told_with_what_else_was_another_way():
    begin = start_of(5, SLOW)
    clock = lambda t: np.where((t >= begin) & (t < begin + 31), 1000.0, 1900.0)  # noqa: E731
    busy = lambda t: np.where((t >= begin) & (t < begin + 31), 80.0, 20.0)  # noqa: E731
    steady = lambda t: np.full(len(t), 60.0)  # noqa: E731
    run = trained(SLOW, quantities={"sm_clock_mhz": clock, "temperature_c": steady})
    host = run.host.assign(cpu_pct=busy(run.host["t_s"]), main_cpu_pct=100.0, workers_cpu_pct=50.0)
    run = dataclasses.replace(run, host=host)
    (finding,) = findings(run, "slow-epoch")
    assert finding.summary == "Training in epoch 5 took 31.0 s (typical: 20.0 s)"
    assert (finding.start_t_s, finding.end_t_s, finding.epoch, finding.severity) == (begin, begin + 31, 5, "warning")
    numbers = texts(finding)
    assert (numbers["SM clock typical"], numbers["SM clock then"]) == (1900, 1000)
    assert (numbers["CPU of others typical"], numbers["CPU of others then"]) == (pytest.approx(5), pytest.approx(65))
    assert (numbers["utilisation typical"], numbers["utilisation then"]) == (90, 90)  # told though it is the same
    assert tuple(numbers[f"waiting for data per epoch {when}"] for when in ("typical", "then")) == (0, 0)
    assert "GPU temperature then" not in numbers


@pytest.mark.parametrize(
    "lengths",
    [
        [20.0, 20.0, 20.0, 20.0, 29.9, 20.0, 20.0],  # under 10 s
        [60.0, 60.0, 60.0, 60.0, 89.0, 60.0, 60.0],  # under a half
        [40.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0],  # the first of its process
        [20.0, 20.0, 40.0, 20.0],  # too few to know what is usual
        [10.0, 50.0, 20.0, 40.0, 15.0, 45.0, 12.0, 33.0],  # as uneven as its siblings
    ],
)
def test_no_epoch_stands_out_that_took_less_or_has_no_equals(lengths):
    assert findings(trained(lengths), "slow-epoch") == []


def test_the_epoch_that_closes_the_mosaic_is_expected_to_take_longer():
    run = trained(SLOW, args={"epochs": 7, "close_mosaic": 3})  # from epoch 5 on
    assert findings(run, "slow-epoch") == []


def test_epochs_without_mosaic_are_not_held_against_those_with_it():
    lengths = [20.0, 40.0, 40.0, 40.0, 40.0, *[20.0] * 7]
    assert len(findings(trained(lengths), "slow-epoch")) == 1
    assert findings(trained(lengths, args={"epochs": 12, "close_mosaic": 7}), "slow-epoch") == []


def test_what_slows_all_epochs_after_the_mosaic_is_held_against_those_before_it():
    """Without mosaics a loader has less to do: that makes no epoch longer."""
    few = trained([22.0, *[20.0] * 20, *[33.0] * 3], args={"epochs": 24, "close_mosaic": 3})
    (finding,) = findings(few, "slow-epoch")
    assert finding.summary == "Training in each of epochs 23 to 24 took 33.0 s (typical: 20.0 s)"
    half = trained([22.0, *[20.0] * 7, *[33.0] * 7], args={"epochs": 15, "close_mosaic": 6})
    (growing,) = findings(half, "epochs-slowing")
    summary = "Epochs got slower from epoch 9 on: training went from 20.0 s to 33.0 s an epoch"
    assert (growing.summary, growing.start_t_s) == (summary, 10 + 22 + 7 * 20 + 8 * VALIDATION_S)


def test_what_the_kernel_said_as_epochs_got_slower_is_told_with_them():
    lengths = [22.0, *[20.0] * 8, *[33.0] * 6]
    run = trained(lengths)
    times = (start_of(4, lengths), start_of(9, lengths) + 15)  # long before, and near the end of the last usual epoch
    lines = tuple(KernelEvent(t_s, "aer", "info", f"AER {t_s}", "PCIe repaired errors", gpu=0) for t_s in times)
    (finding,) = findings(dataclasses.replace(run, kernel=KernelLog("read", events=lines)), "epochs-slowing")
    assert [near.event for near in finding.kernel_events] == [lines[1]]


def test_slow_epochs_are_those_of_the_rise_and_are_not_told_twice():
    lengths = [40.0, *[20.0] * 8, *[40.0] * 5]
    assert len(findings(trained(lengths), "epochs-slowing")) == 1
    assert findings(trained(lengths), "slow-epoch") == []
    (finding,) = findings(trained([*lengths, 90.0, 40.0]), "slow-epoch")  # far longer than the last ones
    assert finding.epoch == 15


@pytest.mark.parametrize(("slow", "found"), [(3, 1), (2, 0)])
def test_a_few_epochs_in_a_row_stand_out_by_less(slow, found):
    lengths = [65.0, *[60.0, 60.4] * 4, *[78.0] * slow, *[60.0, 60.4] * 4]
    assert len(findings(trained(lengths), "slow-epoch")) == found


@pytest.mark.parametrize(
    ("then_mhz", "then_util", "rule"), [(1000.0, 60.0, "slow-epoch"), (1000.0, 95.0, "lower-clock")]
)
def test_a_clock_that_fell_while_the_gpu_was_as_busy_explains_slow_epochs(then_mhz, then_util, rule):
    lengths = [65.0, *[60.0] * 5, *[80.0] * 4, *[60.0] * 5]
    begin, end = start_of(7, lengths), start_of(11, lengths)
    clock = lambda t: np.where((t >= begin) & (t < end), then_mhz, 1410.0)  # noqa: E731
    run = trained(lengths, util=95.0, busy=[(begin, end, then_util)], quantities={"sm_clock_mhz": clock})
    (finding,) = [f for f in analyse(run).findings if f.rule in {"slow-epoch", "lower-clock"}]
    assert finding.rule == rule
    assert (finding.start_t_s, finding.end_t_s) == (pytest.approx(begin, abs=5), pytest.approx(end, abs=5))


def test_a_memory_clock_that_nothing_explains_is_what_to_look_for():
    lengths = [65.0, *[60.0] * 5, *[80.0] * 4, *[60.0] * 5]
    clock = lambda t: np.where((t >= start_of(7, lengths)) & (t < start_of(11, lengths)), 800.0, 1410.0)  # noqa: E731
    (finding,) = findings(trained(lengths, util=95.0, quantities={"memory_clock_mhz": clock}), "slow-epoch")
    assert finding.advice[0].short == "Find what lowered the memory clock from 1,410 to 800 MHz"


def test_slow_epochs_that_follow_each_other_are_one_finding():
    lengths = [20.0, 20.0, 20.0, 35.0, 37.0, 20.0, 20.0, 20.0, 33.0, 20.0]
    one, two = sorted(findings(trained(lengths), "slow-epoch"), key=lambda finding: finding.start_t_s)
    assert one.summary == "Training in each of epochs 4 to 5 took 35.0 to 37.0 s (typical: 20.0 s)"
    assert (one.id, two.id, two.epoch) == ("slow-epoch-1", "slow-epoch-2", 9)


def test_two_stretches_of_one_cause_lead_with_what_both_cost():
    lengths = [60.0, *[60.0] * 6, *[150.0] * 3, *[60.0] * 6, *[150.0] * 3, *[60.0] * 6]
    analysis = analyse(trained(lengths, util=95.0, quantities={"sm_clock_mhz": 1700.0}))
    first = analysis.verdict.sentences[0]
    assert first.text == "Keep other programs off the GPU: they probably cost the training 9 min."
    assert first.findings == ("slow-epoch-1", "slow-epoch-2")


def test_many_short_epochs_in_a_row_that_are_seconds_longer_are_slow():
    lengths = [6.5, *[6.0] * 20, *[10.0] * 12, *[6.0] * 20]
    (finding,) = findings(trained(lengths), "slow-epoch")
    assert finding.summary.startswith("Training in each of epochs 22 to 33 took 10.0 s (typical: 6.0 s)")
    assert findings(trained([6.5, *[6.0] * 20, *[10.0] * 4, *[6.0] * 20]), "slow-epoch") == []  # 16 s in all
    assert findings(trained([6.5, *[6.0] * 20, *[7.0] * 12, *[6.0] * 20]), "slow-epoch") == []  # a sixth


def test_what_another_finding_explains_is_not_told_twice():
    begin = start_of(5, SLOW)
    dropped = trained(SLOW, busy=[(begin + 5, begin + 17, 0.0)])
    assert len(findings(dropped, "drop")) == 1
    assert findings(dropped, "slow-epoch") == []
    other = (
        (begin + 3, 0, 77, "x", 900.0, "appeared", "other", 80.0),
        (begin + 25, 0, 77, "x", NAN, "gone", "other", NAN),
    )
    beside = trained(SLOW, processes=other)
    assert len(findings(beside, "other-process")) == 1
    assert findings(beside, "slow-epoch") == []
    gap = RecordedEvent(begin + 20, "gap", None, {"seconds": 11.0})
    assert findings(trained(SLOW, events=(gap,)), "slow-epoch") == []
    elsewhere = RecordedEvent(begin - 5, "gap", None, {"seconds": 11.0})
    assert len(findings(trained(SLOW, events=(elsewhere,)), "slow-epoch")) == 1


@pytest.mark.parametrize(
    ("then_mhz", "then_util", "gpus", "cause"),
    [
        (1900.0, 90.0, 1, "other-process"),  # busy 28 s for work that takes 18 s
        (1200.0, 90.0, 1, None),  # its clock accounts for that
        (NAN, 90.0, 1, None),  # nobody knows
        (1900.0, 80.0, 1, None),  # busy 25 s
        (1900.0, 90.0, 2, None),  # it may have spun for the other one
    ],
)
def test_a_gpu_that_is_busy_longer_for_the_same_work_does_something_else_too(then_mhz, then_util, gpus, cause):
    begin = start_of(5, SLOW)
    clock = lambda t: np.where((t >= begin) & (t < begin + 31), then_mhz, 1900.0)  # noqa: E731
    run = trained(SLOW, busy=[(begin, begin + 31, then_util)], quantities={"sm_clock_mhz": clock})
    samples = pd.concat([run.samples.assign(gpu=gpu) for gpu in range(gpus)], ignore_index=True)
    alike = tuple(dataclasses.replace(run.gpus[0], index=gpu) for gpu in range(gpus))
    (finding,) = findings(dataclasses.replace(run, samples=samples, gpus=alike), "slow-epoch")
    assert (finding.cause.name if finding.cause else None) == cause


@pytest.mark.parametrize(("then_util", "cause"), [(3.0, None), (60.0, "other-process")])
def test_a_gpu_that_waited_for_most_of_a_long_epoch_does_nothing_else(then_util, cause):
    lengths = [*SLOW[:4], 200.0, *SLOW[5:]]
    begin = start_of(5, lengths)
    busy, clock = [(begin, begin + 200, then_util)], lambda t: 0 * t + 1900.0
    run = trained(lengths, util=18.0, busy=busy, quantities={"sm_clock_mhz": clock})  # no level to fall from
    (finding,) = findings(run, "slow-epoch")
    assert (finding.cause.name if finding.cause else None) == cause


def test_a_slowdown_with_its_cause_says_it_all():
    begin = start_of(5, SLOW)
    taken = trained(SLOW, busy=[(begin, begin + 31, 50.0)])
    t_s = taken.host["t_s"]
    host = taken.host.assign(cpu_pct=20.0, main_cpu_pct=90.0, workers_cpu_pct=100.0)
    host.loc[(t_s >= begin) & (t_s <= begin + 31), "cpu_pct"] = 100.0
    taken = dataclasses.replace(taken, host=host)
    assert len(findings(taken, "slowdown")) == 1
    assert findings(taken, "slow-epoch") == []


def test_throttling_that_matters_says_it_all():
    begin = start_of(5, SLOW)
    then = lambda t: (t >= begin) & (t < begin + 31)  # noqa: E731
    clock = lambda t: np.where(then(t), 900.0, 1900.0)  # noqa: E731
    heat = lambda t: np.where(then(t), 0x20, 0x0)  # noqa: E731
    power = lambda t: np.where(then(t), 300.0, 500.0)  # noqa: E731
    columns = {"sm_clock_mhz": clock, "clock_event_reasons": heat, "power_w": power}
    hot = trained(SLOW, quantities=columns)
    assert [finding.severity for finding in findings(hot, "thermal")] == ["warning"]
    assert findings(hot, "slow-epoch") == []


def test_without_phases_nothing_is_said_of_epochs():
    run = make_run([0.0] * 10 + [90.0] * 290)
    assert [f for f in analyse(run).findings if "epoch" in f.rule or "wait" in f.rule] == []


# --- epochs that get slower

SLOWING = [25.0, *(20.0 + 0.7 * n + 0.3 * (n % 2) for n in range(12))]


def test_epochs_that_get_slower_are_told_with_what_changed():
    warmer = lambda t: 50.0 + t / 20  # noqa: E731
    (finding,) = findings(trained(SLOWING, quantities={"temperature_c": warmer}), "epochs-slowing")
    assert finding.summary == ("Epochs got slower: training went from 21.2 s to 26.8 s an epoch")
    numbers = texts(finding)
    assert numbers["GPU temperature at last"] > 1.1 * numbers["GPU temperature at first"]
    assert "SM clock at first" not in numbers


@pytest.mark.parametrize(
    "lengths",
    [
        [25.0, *(20.0 + 0.4 * n for n in range(12))],  # 17 % more
        [3.0, *(2.0 + 0.1 * n for n in range(12))],  # 7 s in all
        SLOWING[:10],
        [25.0, *([20.0, 28.0] * 6)],
        SLOWING[::-1],
        [25.0, 26.0, *([20.0] * 11)],  # what comes after the first epoch may still be warming up
    ],
)
def test_epochs_that_hardly_get_slower_are_not_spoken_of(lengths):
    assert findings(trained(lengths), "epochs-slowing") == []


def test_disturbed_epochs_tell_nothing_of_a_trend():
    lengths = [20.0] * 8 + [30.0] * 6
    assert len(findings(trained(lengths), "epochs-slowing")) == 1
    gaps = [RecordedEvent(start_of(n, lengths) + 15, "gap", None, {"seconds": 10.0}) for n in range(9, 15)]
    assert findings(trained(lengths, events=gaps), "epochs-slowing") == []


# --- data waits that grow

WAITS = [3.0, *(1.0 + 0.5 * n for n in range(12))]


def test_data_waits_that_grow_are_told_instead_of_the_epochs_that_they_slow():
    lengths = [20.0 + wait for wait in WAITS]
    run = trained(lengths, WAITS)
    (finding,) = findings(run, "data-wait-growing")
    assert finding.summary == "Waiting for data grew from 1.8 s to 5.8 s an epoch"
    assert (
        texts(finding)["lost, compared with the first third"]
        == finding.lost_gpu_s
        == pytest.approx(sum(WAITS[1:]) - 12 * 1.75)
    )
    assert findings(run, "epochs-slowing") == []
    steep = trained([length + 1.2 * n for n, length in enumerate(lengths)], WAITS)  # and half of it is not waiting
    assert len(findings(steep, "epochs-slowing")) == len(findings(steep, "data-wait-growing")) == 1


WAITED_STORAGE = {"io_full_pressure_pct": 90.0, "workers_blocked": 7.0, "trainer_read_mib_s": 40.0, "workers": 8.0}


def storage_from(number, lengths, until=None):
    """Return host columns of a disk that is waited for from an epoch on; in most of a run, it is usual then."""
    t_s = np.arange(round(sum(lengths) + VALIDATION_S * len(lengths) + 10) + 5)
    slow = (t_s >= start_of(number, lengths)) & (t_s < (np.inf if until is None else start_of(until, lengths)))
    return {
        "io_pressure_pct": np.where(slow, 95.0, 2.0),
        **{k: np.where(slow, v, 0.0) for k, v in WAITED_STORAGE.items()},
    }


def test_what_the_loader_waits_for_since_an_epoch_is_told_with_it():
    waits = [3.0, *[1.0] * 5, *[9.0] * 7]
    lengths = [60.0 + wait for wait in waits]
    analysis = analyse(trained(lengths, waits, host=storage_from(7, lengths)))
    (finding,) = (each for each in analysis.findings if each.rule == "data-wait-growing")
    summary = "Waiting for data rose from 1.0 s to 9.0 s an epoch, from epoch 7 on: the data loader waited for storage"
    assert (finding.summary, finding.cause.name, finding.start_t_s) == (summary, "input-storage", start_of(7, lengths))
    assert [advice.short for advice in finding.advice] == ["Find what changed for the storage of the images"]
    idle = {row.name: row.gpu_seconds for row in analysis.ledger}
    assert idle["input-storage"] == pytest.approx(0.1 * 7 * 69, rel=0.05)  # the idle tenth of the last seven


def test_a_rise_begins_with_the_epochs_whose_fall_of_utilisation_it_began_with():
    waits = [3.0, *[1.0] * 5, *[30.0] * 7]
    context = build_context(trained([60.0 + wait for wait in waits], waits), Options())
    epochs = trained_epochs(context)
    fell = KnownSlowdowns(drops=interval_cover([]), others=interval_cover(epochs[at].span for at in (6, 7)))
    (finding,) = data_wait_growing(context, epochs, fell)
    assert (finding.start_t_s, finding.lost_gpu_s) == (epochs[6].span[0], 7 * 29.0)


def test_where_pages_are_waited_for_no_line_that_touches_them_is_to_blame():
    waits = [3.0, *[1.0] * 5, *[9.0] * 7]
    lengths = [60.0 + wait for wait in waits]
    swaps = {"memory_pressure_pct": 40.0, "swap_in_mib_s": 90.0}
    slow = storage_from(7, lengths)["io_pressure_pct"] > 50
    columns = {name: np.where(slow, value, 0.0) for name, value in swaps.items()}
    run = trained(lengths, waits, host=columns)
    touched = Frame("/v/ultralytics/data/augment.py", 690, "_mosaic4")
    worker = process((0, start_of(7, lengths), READS), (start_of(7, lengths), 1000, (touched,)), role="worker 0")
    (finding,) = findings(dataclasses.replace(run, stacks=(worker,)), "data-wait-growing")
    assert finding.cause.name == "memory-pressure"
    assert [each.text for each in finding.advice] == ["Free host memory: the training waits for it"]


KEEP_OFF = "Keep other programs off the disk of the images: others read 52 MiB/s, the training 38 MiB/s. "
AGAIN = "Leave memory for the images, which are read from disk again: reads grew from 1 to 40 MiB/s. "


@pytest.mark.parametrize(
    ("disk", "own", "before", "words"),
    [
        (90, 38, 36, KEEP_OFF),
        (40.5, 40.1, 1.3, AGAIN),
        (38.0, 38.0, 36.0, "Find what changed for the storage: "),
        (30.5, 30.0, 60.0, "Find why reads from the disk of the images became slower: "),
    ],
)
def test_who_made_the_storage_slow_is_told_by_who_reads(disk, own, before, words):
    rows, then = np.arange(40.0), np.arange(40) >= 20
    columns = {"disk_read_mib_s": np.where(then, disk, before), "trainer_read_mib_s": np.where(then, own, before)}
    host = SignalTable(rows, columns, ~then)
    assert advice_on_storage(IntervalSignals(0, 20.0, 40.0, host, host)).text.startswith(words)


MEMORY = {"memory_available_mib": (20_000.0, 5_000.0), "trainer_memory_mib": (12_000.0, 26_000.0)}


def outside(lengths, from_s, columns):
    """Return a run seen from outside whose epochs take so long, the GPU idle for what they take over a minute.

    `columns` of the host are (before, from then on).
    """
    util = readings((0, 10), *((90.0 * 60 / length, int(length)) for length in lengths))
    ends = [10.0 + sum(lengths[: n + 1]) for n in range(len(lengths))]
    run = make_run(util, rows=list(enumerate(ends, 1)), quantities={"sm_clock_mhz": [1800.0] * len(util)})
    t_s = np.arange(len(util)).astype(float)
    told = {name: np.where(t_s >= from_s, now, was) for name, (was, now) in columns.items()}
    empty = {c.name: np.nan for c in schema.HOST_QUANTITIES}
    recording = dataclasses.replace(run.recording, cores=10)
    return dataclasses.replace(run, host=pd.DataFrame({"t_s": t_s, **empty, **told}), recording=recording)


def slowed_outside(lengths=(*[60.0] * 6, *[75.0] * 6), **columns):
    """Return the advice on epochs seen from outside that take longer from the seventh on."""
    (finding,) = findings(outside(lengths, 370, columns), "epochs-slowing")
    return finding.advice[0].text


@pytest.mark.parametrize(("blocked", "cause"), [((2.0, 5.0), "input-storage"), ((2.0, 1.0), None)])
def test_a_loader_that_waits_for_storage_as_ever_holds_up_a_gpu_that_idles_now(blocked, cause):
    """It was ahead before; workers that are ahead rest."""
    columns = {"io_pressure_pct": (74.0, 98.0), "io_full_pressure_pct": (9.0, 60.0), "workers_blocked": blocked}
    columns |= {"trainer_read_mib_s": (6.0, 9.0), "main_cpu_pct": (70.0, 40.0), "workers": (8.0, 8.0), **MEMORY}
    columns |= {"workers_cpu_pct": (250.0, 200.0), "busiest_worker_cpu_pct": (40.0, 30.0)}
    run = outside([60.0] * 12 + [90.0], 730, columns)
    (finding,) = findings(run, "slow-epoch")
    assert (finding.cause.name if finding.cause else None) == cause
    grows = "Find what grows in the training's memory, which leaves no room for the images"
    assert [each.short for each in finding.advice] == ([grows] if cause else [])


QUIET = {
    "cpu_pct": (20.0, 21.0),
    "main_cpu_pct": (50.0, 50.0),
    "io_pressure_pct": (0.0, 1.0),
    "workers_blocked": (0.0, 0.1),
    "memory_available_mib": (20_000.0, 19_500.0),
}


def test_what_may_have_slowed_epochs_is_what_no_reading_excludes():
    assert slowed_outside().endswith(": another program, slower storage or less free memory")  # the clock was read
    assert slowed_outside(**QUIET).endswith("were as before; your code or data may have changed")
    fell = {**QUIET, "memory_available_mib": (20_000.0, 9_000.0)}
    assert slowed_outside(**fell).endswith(": less free memory")
    assert slowed_outside(**{**QUIET, "workers_blocked": (0.0, 3.0)}).endswith(": slower storage")
    assert slowed_outside(**{**QUIET, "cpu_pct": (20.0, 30.0)}).endswith(": another program")


def test_epochs_seen_from_outside_that_slow_for_storage_say_what_to_do_about_it():
    """Nothing of it needs callbacks: the cause that was found comes before guesses."""
    columns = {name: (0.0, value) for name, value in WAITED_STORAGE.items()}
    columns |= {"io_pressure_pct": (2.0, 95.0), "main_cpu_pct": (50.0, 10.0), "disk_read_mib_s": (1.0, 40.0)}
    columns |= {"trainer_read_mib_s": (1.0, 40.0)}
    slower = [60.0 + 3 * n for n in range(14)]
    assert slowed_outside(slower, **columns).startswith("Leave memory for the images, which are read from disk again")
    own_grew = slowed_outside(slower, **columns, **MEMORY)
    assert own_grew.startswith("Find what grows in the training's memory, which leaves no room for the images: ")


def test_slow_epochs_that_waited_for_storage_say_so():
    waits = [3.0, *[1.0] * 5, *[41.0] * 2, *[1.0] * 7]
    lengths = [60.0 + wait for wait in waits]
    host = storage_from(7, lengths, 9)
    (finding,) = findings(trained(lengths, waits, host=host), "slow-epoch")
    assert (finding.cause.name, len(finding.advice)) == ("input-storage", 1)
    assert analyse(trained(lengths, waits, host=host)).verdict.text.count(finding.summary) == 1


UNTIL_CACHED = "A faster disk helps only until memory holds the images, as it did"


def read_until(number, lengths, later_mib_s):
    """Return host columns of a disk that is waited for, and read at 200 MiB/s, until an epoch."""
    host = storage_from(1, lengths, number)
    return {**host, "trainer_read_mib_s": np.where(host["workers_blocked"] > 0, 200.0, later_mib_s)}


@pytest.mark.parametrize(
    ("later_mib_s", "short"), [(1.0, f"{UNTIL_CACHED} in epochs 3 to 4"), (100.0, None), (180.0, None), (np.nan, None)]
)
def test_a_faster_disk_is_not_what_later_epochs_that_read_from_memory_need(later_mib_s, short):
    lengths, waits = [200.0, 200.0, 62.0, 62.0], [140.0, 140.0, 1.0, 1.0]
    falls = [(10.0, start_of(3, lengths), 30.0)]
    (finding,) = findings(trained(lengths, waits, busy=falls, host=read_until(3, lengths, later_mib_s)), "starved")
    assert (finding.cause.name, [each.short for each in finding.advice]) == ("input-storage", [short] if short else [])


@pytest.mark.parametrize(("later_mib_s", "advised"), [(1.0, [f"{UNTIL_CACHED} later"]), (60.0, []), (180.0, [])])
def test_a_drop_of_the_first_reads_needs_no_faster_disk(later_mib_s, advised):
    lengths = [200.0, *[140.0] * 6]
    host = read_until(2, lengths, later_mib_s)
    t_s = np.arange(len(host["workers_blocked"]))
    host = {name: np.where((t_s >= 100) & (t_s < 160), values, values[-1]) for name, values in host.items()}
    run = trained(lengths, [60.0, *[1.0] * 6], busy=[(100.0, 160.0, 5.0)], host=host)
    (finding,) = findings(run, "drop")
    assert (finding.cause.name, [each.short for each in finding.advice]) == ("input-storage", advised)


@pytest.mark.parametrize(("later_mib_s", "short"), [(1.0, f"{UNTIL_CACHED} later"), (180.0, None)])
def test_images_that_are_read_for_the_first_time_are_not_read_again(later_mib_s, short):
    lengths, waits = [200.0, 200.0, *[60.0] * 8], [140.0, 140.0, *[1.0] * 8]
    found = findings(trained(lengths, waits, host=read_until(3, lengths, later_mib_s)), "slow-epoch")
    (finding,) = (each for each in found if each.severity != "info")
    assert finding.cause.name == "input-storage"
    assert finding.advice[0].short == (short or "Find what changed for the storage of the images")


def test_slow_epochs_that_waited_for_data_are_not_to_be_mended_by_a_clock():
    """A clock that fell with them may account for them as well, but that they waited was measured."""
    waits = [3.0, *[1.0] * 5, *[41.0] * 2, *[1.0] * 7]
    lengths = [60.0 + wait for wait in waits]
    host, begin, end = storage_from(7, lengths, 9), start_of(7, lengths), start_of(9, lengths)
    memory = lambda t: np.where((t >= begin) & (t < end), 5000.0, 8001.0)  # noqa: E731
    quantities = {"sm_clock_mhz": 1700.0, "memory_clock_mhz": memory}
    (finding,) = findings(trained(lengths, waits, host=host, quantities=quantities), "slow-epoch")
    assert finding.cause.name == "input-storage"
    assert [advice.short for advice in finding.advice] == ["Find what changed for the storage of the images"]


def test_slow_epochs_that_waited_for_data_say_so_where_no_process_was_seen():
    waits = [3.0, *[1.0] * 5, *[41.0] * 2, *[1.0] * 7]
    lengths = [60.0 + wait for wait in waits]
    falls = [(start_of(7, lengths), start_of(9, lengths), 66.0)]
    analysis = analyse(trained(lengths, waits, busy=falls))
    (finding,) = (each for each in analysis.findings if each.rule == "slow-epoch")
    assert (finding.cause.name, finding.cause.confidence) == ("input-latency", WEAK)
    assert analysis.verdict.text.startswith("Find what the data-loader workers wait for (`top` shows their CPU): ")


@pytest.mark.parametrize(
    ("columns", "util_pct", "cause"),
    [
        ({"main_cpu_pct": 100.0, "workers_cpu_pct": 50.0}, 66.0, "main-process"),
        ({"main_cpu_pct": 0.0, "workers_cpu_pct": 0.0, "trainer_stopped": 9.0}, 66.0, "trainer-blocked"),
        ({"main_cpu_pct": 100.0, "workers_cpu_pct": 50.0}, 90.0, None),
    ],
    ids=["main process", "paused", "the GPU was as busy"],
)
def test_slow_epochs_that_waited_for_no_data_name_what_held_them_up(columns, util_pct, cause):
    lengths = [65.0, *[60.0] * 5, *[80.0] * 4, *[60.0] * 5]
    begin, end = start_of(7, lengths), start_of(11, lengths)
    run = trained(lengths, [0.1] * len(lengths), busy=[(begin, end, util_pct)])
    then = (run.host["t_s"] >= begin) & (run.host["t_s"] < end)
    usual = {"main_cpu_pct": 80.0, "workers_cpu_pct": 150.0, "trainer_stopped": 0.0, "workers": 8.0, "cpu_pct": 20.0}
    columns = {name: np.where(then, columns.get(name, value), value) for name, value in usual.items()}
    (finding,) = findings(dataclasses.replace(run, host=run.host.assign(**columns)), "slow-epoch")
    assert (finding.cause.name if finding.cause else None) == cause


def test_a_memory_clock_that_fell_is_what_to_look_for_and_no_other_process():
    lengths = [65.0, *[60.0] * 5, *[150.0] * 4, *[60.0] * 5]
    begin, end = start_of(7, lengths), start_of(11, lengths)
    memory = lambda t: np.where((t >= begin) & (t < end), 810.0, 8001.0)  # noqa: E731
    quantities = {"sm_clock_mhz": 1700.0, "memory_clock_mhz": memory}
    (finding,) = findings(trained(lengths, util=95.0, quantities=quantities), "slow-epoch")
    assert finding.cause is None
    assert finding.advice[0].short == "Find what lowered the memory clock from 8,001 to 810 MHz"
    (finding,) = findings(trained(lengths, util=95.0, quantities={"sm_clock_mhz": 1700.0}), "slow-epoch")
    assert finding.cause.name == "other-process"


@pytest.mark.parametrize(
    ("waits", "length"),
    [
        ([3.0, *(1.0 + 0.1 * n for n in range(12))], 20.0),  # by 0.8 s an epoch
        ([3.0, *(1.0 + 0.5 * n for n in range(12))], 200.0),  # 2 % of it
        (WAITS[:5], 20.0),
        (WAITS[::-1], 20.0),
        ([3.0, *([1.0, 5.0] * 6)], 20.0),
    ],
)
def test_data_waits_that_hardly_grow_are_not_spoken_of(waits, length):
    assert findings(trained([length] * len(waits), waits), "data-wait-growing") == []


def test_data_waits_that_nobody_told_are_not_known():
    rows = [(number, 10.0 + 22 * number) for number in range(1, 14)]
    run = make_run([0.0] * 10 + [90.0] * 290, rows=rows)
    assert findings(run, "data-wait-growing") == []


# --- what grows leads

GROWING = [40.0, *(20.0 + 4.0 * n for n in range(12))]  # 20 s to 64 s, as a list that is searched in each step makes it


def grown(lengths, waits=None):
    """Return a run whose GPU works as much in each epoch: it is used less and less."""
    starts = [start_of(n, lengths) for n in range(1, len(lengths) + 1)]
    util = [(start, start + length, 90.0 * 20 / length) for start, length in zip(starts, lengths, strict=True)]
    return analyse(trained(lengths, waits, busy=util))


def test_what_grows_leads_even_where_the_gpu_falls_below_its_level_in_the_end():
    analysis = grown(GROWING)
    text = "Find what grows in the main process: it cost about 3 min 10 s of training."
    assert analysis.verdict.text.startswith(text)
    assert analysis.verdict.text.count("Epochs got slower: training went from 26.0 s to 58.0 s an epoch") == 1
    assert "because" not in analysis.verdict.text  # what was as it is from the beginning is not why


def test_where_nobody_reported_waits_for_data_either_may_grow():
    ends = [10.0 + sum(GROWING[: n + 1]) for n in range(len(GROWING))]
    util = readings((0, 10), *((90.0 * 20 / length, length) for length in GROWING))
    (finding,) = findings(make_run(util, rows=list(enumerate(ends, 1))), "epochs-slowing")
    assert finding.advice[0].text.startswith("Find what grows in the data loader or the main process")


def test_waits_for_data_that_grow_lead():
    waits = [length - 20.0 for length in GROWING]
    assert grown(GROWING, waits).verdict.text.startswith(
        "Find what grows in the data loader: it cost about 3 min 10 s of training."
    )


def test_what_changed_once_is_no_growth():
    text = grown([40.0, *[20.0] * 6, *[50.0] * 6]).verdict.text
    assert "Find what grows" not in text


def test_a_full_main_process_is_why_a_gpu_that_waits_for_no_data_works_less_from_an_epoch_on():
    lengths = [20.0] * 6 + [36.0] * 9
    starts = [start_of(n, lengths) for n in range(1, len(lengths) + 1)]
    busy = [(start, start + length, 1800 / length) for start, length in zip(starts, lengths, strict=True)]
    count = round(sum(lengths) + VALIDATION_S * len(lengths) + 10) + 5
    columns = {"main_cpu_pct": [100.0] * count, "workers_cpu_pct": [40.0] * count, "cpu_pct": [12.0] * count}
    columns |= {"busiest_worker_cpu_pct": [5.0] * count, "workers": [8.0] * count}
    (finding,) = findings(trained(lengths, [0.0] * 15, busy=busy, host=columns), "epochs-slowing")
    assert finding.cause.name == "main-process"
    assert finding.advice[0].short == "Find what slowed the main process from epoch 7 on"


def began_without(lengths, first_s):
    """Return a run whose epochs, but the first, each begin with seconds without data, in which its workers compute."""
    starts = [start_of(number, lengths) for number in range(1, len(lengths) + 1)]
    busy = [(start, start + first_s, 2.0) for start in starts[1:]]
    t_s = np.arange(round(sum(lengths) + VALIDATION_S * len(lengths) + 10) + 5)
    late = np.any([(t_s >= a) & (t_s < b) for a, b, _ in busy], axis=0)
    columns = {"main_cpu_pct": np.where(late, 1.0, 100.0), "workers_cpu_pct": np.where(late, 790.0, 200.0)}
    columns |= {"busiest_worker_cpu_pct": np.where(late, 100.0, 30.0), "workers": 8.0, "cpu_pct": 60.0}
    run = trained(lengths, busy=busy, host=columns)
    (process,) = run.inside
    firsts = [0.1, *[first_s] * (len(lengths) - 1)]
    epochs = [
        dataclasses.replace(epoch, data_wait_s=first + 0.2, first_wait_s=first, longest_wait_s=first)
        for epoch, first in zip(process.epochs, firsts, strict=True)
    ]
    return dataclasses.replace(run, inside=(dataclasses.replace(process, epochs=tuple(epochs)),))


def test_epochs_that_each_begin_without_data_lack_workers_that_stay():
    (finding,) = findings(began_without([60.0] * 8, 14.0), "drop")
    assert (finding.cause.name, len(finding.occurrences)) == ("input-start", 7)
    assert finding.cause.explanation.startswith("epochs began without data")
    assert finding.advice[0].short == "Keep the data-loader workers alive from epoch to epoch"


def test_few_epochs_that_begin_without_data_are_stalls_like_any_other():
    falls = findings(began_without([60.0] * 3, 14.0), "drop")  # two of them
    assert falls
    assert all("began without data" not in each.cause.explanation for each in falls)


def paged(power_w, memory_mib=24_100.0):
    """Return epochs that take three times as long from the fifth on, with the power and the memory of the GPU then."""
    lengths = [40.0] * 4 + [120.0] * 8
    slow_s = start_of(5, lengths)
    run = trained(
        lengths,
        quantities={
            "power_w": lambda t_s: np.where(t_s < slow_s, 300.0, power_w),
            "memory_used_mib": lambda t_s: np.where(t_s < slow_s, 20_000.0, memory_mib),
        },
    )
    gpus = tuple(dataclasses.replace(gpu, memory_total_mib=24_564.0) for gpu in run.gpus)
    return dataclasses.replace(run, gpus=gpus)


def test_a_full_card_whose_busy_gpu_draws_less_is_paged_to_host_memory():
    (finding,) = findings(paged(110.0), "epochs-slowing")
    assert finding.advice[0].short == "Lower `batch`: GPU memory is full, and the busy GPU draws 110 W instead of 300"
    assert finding.summary.startswith("Epochs got slower from epoch 5 on: training went from 40.0 s to 2 min")


@pytest.mark.parametrize(
    ("own_mib", "last_mib", "short"),
    [
        (8_000.0, 20_000.0, "Close what else uses the GPU's memory, or lower `batch`"),
        (11_900.0, 20_000.0, "Lower `batch`: GPU memory is full"),  # its tensors took more
        (8_000.0, 24_100.0, "Lower `batch`: GPU memory is full"),  # PyTorch may have kept more, and keeps it
        (None, 20_000.0, "Lower `batch`: GPU memory is full"),  # nobody reported it
    ],
)
def test_memory_that_is_none_of_the_trainings_is_somebody_elses(own_mib, last_mib, short):
    lengths = [40.0] * 8 + [80.0] * 4 + [40.0] * 6
    full_s, free_s = start_of(9, lengths), start_of(13, lengths)
    level = lambda is_slow, then, rest, last: lambda t: np.where(is_slow(t), then, np.where(t < full_s, rest, last))  # noqa: E731
    is_slow = lambda t: (t >= full_s) & (t < free_s)  # noqa: E731
    memory, power = level(is_slow, 24_100.0, 20_000.0, last_mib), level(is_slow, 110.0, 300.0, 300.0)
    run = trained(lengths, quantities={"power_w": power, "memory_used_mib": memory})
    gpus = tuple(dataclasses.replace(gpu, memory_total_mib=24_564.0) for gpu in run.gpus)
    at_s = np.arange(10.0, free_s + 200, 5)
    mib = [8_010.0 if own_mib is not None and not is_slow(t) else own_mib for t in at_s]
    progress = tuple(Progress(t, 1, 0.0, each) for t, each in zip(at_s.tolist(), mib, strict=True))
    inside = (dataclasses.replace(run.inside[0], progress=progress),)
    (finding,) = findings(dataclasses.replace(run, gpus=gpus, inside=inside), "slow-epoch")
    assert finding.advice[0].short.startswith(short)


@pytest.mark.parametrize("run", [paged(290.0), paged(110.0, memory_mib=20_500.0)])
def test_a_card_that_is_full_or_draws_less_alone_is_not_paged(run):
    (finding,) = findings(run, "epochs-slowing")
    assert finding.advice[0].short == "Find what slowed the GPU's work from epoch 5 on"


def first_waits(lengths, later_s):
    """Return a run whose first epoch waited for its first batch for 2 s, and so long for later ones."""
    run = trained(lengths, [2.0 + later_s, *[0.5] * (len(lengths) - 1)])
    (process,) = run.inside
    first, *rest = process.epochs
    epochs = (dataclasses.replace(first, first_wait_s=2.0), *rest)
    return dataclasses.replace(run, inside=(dataclasses.replace(process, epochs=epochs),))


def test_a_first_epoch_that_waited_for_data_is_a_note():
    (finding,) = findings(first_waits([100.0, *[40.0] * 6], later_s=55.0), "slow-epoch")
    summary = "Training in epoch 1 took 1 min 40 s (typical: 40.0 s)"
    assert (finding.severity, finding.summary, finding.advice) == ("info", summary, ())


@pytest.mark.parametrize(
    ("lengths", "later_s"),
    [
        ([100.0, *[40.0] * 6], 1.0),  # kernels were searched for, or the like
        ([55.0, *[40.0] * 6], 14.0),  # not half as long again
        ([62.0, *[40.0] * 60], 20.0),  # under a hundredth of all
        ([100.0, *[40.0] * 3], 55.0),  # too few others
    ],
)
def test_a_first_epoch_is_longer_by_its_nature_where_it_did_not_wait_or_lost_little(lengths, later_s):
    assert findings(first_waits(lengths, later_s), "slow-epoch") == []


# --- what slower epochs cost


def test_epochs_that_are_slower_from_one_on_have_a_row_of_their_possible_speed_up():
    analysis = analyse(trained([40.0, *[20.0] * 8, *[30.0] * 8]))
    (row,) = [row for row in speedup_rows(analysis) if row.limit.in_epochs is not None]
    assert row.name == "Slower epochs (unknown cause), from epoch 10 on"
    assert (row.limit.epoch_s_now, row.limit.epoch_s_at_best) == (30.0, 20.0)  # as they are now
    assert (analysis.epoch_now.train_s, analysis.epoch_now.now_is) == (30.0, "mean of epochs 10 to 17")
    (slow,) = [row for row in speedup_rows(analyse(trained([*[20.0] * 8, 60.0, *[20.0] * 8]))) if row.limit.in_epochs]
    assert slow.name == "Slower epochs (unknown cause), in epoch 9"


@pytest.mark.parametrize(("longer_s", "severity"), [(20.0, "warning"), (180.0, "critical")])
def test_slower_epochs_are_critical_where_they_took_a_twentieth_of_the_training_and_ten_minutes(longer_s, severity):
    (finding,) = findings(trained([60.0, *[60.0] * 8, *[60.0 + longer_s] * 8]), "epochs-slowing")
    assert (finding.severity, finding.lost_gpu_s) == (severity, 8 * longer_s)
    assert finding.share_of_training == pytest.approx(8 * longer_s / (17 * 60 + 8 * longer_s))


def test_slow_epochs_that_come_again_are_one_finding_with_what_all_of_them_cost():
    lengths = [40.0, *[20.0] * 6, 40.0, 20.0, 45.0, 20.0, 40.0, 20.0, 40.0, 20.0]
    analysis = analyse(trained(lengths))
    (finding,) = [each for each in analysis.findings if each.rule == "slow-epoch"]
    assert finding.summary == "Training was slow 4 times, first in epoch 8 (typical: 20.0 s an epoch)"
    assert [one.lost_gpu_s for one in finding.occurrences] == [20.0, 25.0, 20.0, 20.0]
    assert (finding.lost_gpu_s, finding.gpus) == (85.0, ())
    assert finding.took_s == sum(length for length in lengths[1:] if length > 20)
    (row,) = [row for row in speedup_rows(analysis) if row.limit.in_epochs is not None]
    assert row.limit.saves_at_most_s == pytest.approx(85 / 14, abs=0.01)
    assert len(findings(trained([*lengths[:9], 20.0, *lengths[10:12], 20.0, 20.0, 20.0]), "slow-epoch")) == 2


def test_epochs_of_a_gpu_that_reports_nothing_are_compared_with_their_validation():
    ends = np.cumsum([30.0, *[60.0] * 6, *[100.0] * 3, *[60.0] * 6])
    run = make_run([NAN] * round(ends[-1] + 10), rows=[(n, float(end)) for n, end in enumerate(ends, 1)])
    (finding,) = findings(run, "slow-epoch")
    assert (finding.epoch, finding.summary) == (8, "Training in each of epochs 8 to 10 took 1 min 40 s (typical: 60 s)")


@pytest.mark.parametrize(("own_mib", "says"), [(24_000, True), (12_200, False)])
def test_images_that_are_read_again_say_where_the_training_itself_took_their_memory(own_mib, says):
    rows, then = np.arange(40.0), np.arange(40) >= 20
    of = {"disk_read_mib_s": (1.3, 40.5), "trainer_read_mib_s": (1.3, 40.1), "memory_available_mib": (16_000, 3_000)}
    of["trainer_memory_mib"] = 12_000, own_mib
    host = SignalTable(rows, {name: np.where(then, now, before) for name, (before, now) in of.items()}, ~then)
    text = advice_on_storage(IntervalSignals(0, 20.0, 40.0, host, host)).text
    assert text.startswith("Find what grows in the training's memory") is says
    assert ("it grew from 12 to 23 GiB" in text) is says


@pytest.mark.parametrize(("filesystem", "words"), [("nfs4", "Copy the images to a local disk"), ("ext4", "Find what")])
def test_a_network_drive_that_workers_waited_for_is_named(filesystem, words):
    """Others that use it are on other machines."""
    wait = FileWait(
        12.0, ProcessWait(20.0, 32.0, 77, "worker", "D", call="read", file="/n/a.jpg", filesystem=filesystem)
    )
    given = IntervalSignals(0, 20.0, 50.0, NO_SIGNALS, NO_SIGNALS, named_file_wait=wait, worker_file_wait=wait)
    advice = (*advice_on_remote(given), advice_on_storage(given))
    assert advice[0].text.startswith(words)


@pytest.mark.parametrize(("after_s", "apart_s", "every"), [(0.0, 60.0, 3), (0.0, 62.0, None), (-8.0, 60.0, None)])
def test_what_does_not_begin_with_the_ends_of_epochs_is_not_planned(after_s, apart_s, every):
    """Of epochs of 20 s, a pause of 12 s touches the end of one wherever it lies: every 62 s it drifts."""
    lengths = [18.0] * 20
    begins = [start_of(3, lengths) - VALIDATION_S + after_s + apart_s * number for number in range(5)]
    (finding,) = findings(trained(lengths, busy=[(t_s, t_s + 12.0, 0.0) for t_s in begins]), "drop")
    assert (len(finding.occurrences), finding.every_epochs) == (5, every)
