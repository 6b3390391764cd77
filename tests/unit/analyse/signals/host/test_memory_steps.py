"""Another process that only the memory of its GPU tells of."""

import dataclasses

import pandas as pd
import pytest
from support.runs import PROCESSES, make_run

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.signals.host import memory_steps
from gpu_report.analyse.signals.host.memory_steps import memory_stays
from gpu_report.model import Options

OWN, GUEST = 14_000.0, 900.0


def log(memory=(OWN, OWN + GUEST, OWN), util=(80, 100, 80), watts=(400, 600, 400), middle_s=60):
    """Return five minutes of training in a log without processes: before, while and after memory was higher."""
    seconds = (120, middle_s, 180 - middle_s)
    util_pct, mib, power = (
        [v for v, s in zip(of, seconds, strict=True) for _ in range(s)] for of in (util, memory, watts)
    )
    return make_run(util_pct, quantities={"memory_used_mib": mib, "power_w": power})


def stays(run):
    return list(memory_stays(run, build_context(run, Options()).series[0]))


def test_memory_that_comes_and_goes_while_the_gpu_works_no_less_is_another_process():
    run = log()
    assert stays(run) == [((120.0, 180.0), GUEST)]
    (finding,) = [f for f in analyse(run).findings if f.rule == "other-process"]
    assert finding.summary == "Another process shared GPU 0 for 1 min"
    assert analyse(run).verdict.text.startswith("Keep other processes off GPU 0")


@pytest.mark.parametrize(
    "changed",
    [
        {"memory": (OWN, OWN + GUEST, OWN + GUEST)},  # it stays: the training's own
        {"memory": (OWN, OWN + GUEST, OWN - 500)},  # an allocator that gave back what it kept
        {"memory": (OWN, OWN + 100, OWN)},  # less than a process holds
        {"util": (80, 60, 80)},  # a validation, of other shapes
        {"watts": (400, 300, 400)},
        {"util": (2, 100, 2), "watts": (100, 400, 100)},  # no training beside it
        {"util": (80, 100, float("nan"))},  # nobody knows whether it trained on
    ],
)
def test_other_changes_of_memory_are_none(changed):
    assert stays(log(**changed)) == []


@pytest.mark.filterwarnings("error")
def test_memory_that_comes_back_to_its_level_after_a_moment_is_none():
    run = log(memory=(OWN, OWN, OWN))
    run.samples.loc[100:104, "memory_used_mib"] = OWN - 1000.0
    assert stays(run) == []


@pytest.mark.filterwarnings("error")
def test_memory_that_rose_in_a_gap_of_the_readings_has_no_level_before_it():
    run = log()
    gap = run.samples["t_s"].between(60.0, 119.0)
    assert stays(dataclasses.replace(run, samples=run.samples[~gap].reset_index(drop=True))) == []


@pytest.mark.parametrize(("rows", "found"), [([(1, 180), (2, 290)], 1), ([(1, 180)], 0), ([(1, 110), (2, 290)], 1)])
def test_what_ends_with_an_epoch_is_another_process_where_other_epochs_end_without(rows, found):
    run = log(util=(80, 82, 80), watts=(400, 400, 400))
    with_rows = dataclasses.replace(run, epoch_rows=make_run([80] * 300, rows=rows).epoch_rows)
    assert len(stays(with_rows)) == found


def test_validations_that_take_memory_are_none():
    """They are longer than the training, and the last one is followed by the final evaluation."""
    parts = [(OWN, 80, 400, 100), (OWN + GUEST, 82, 400, 120), (OWN, 80, 400, 100), (OWN + GUEST, 82, 400, 120)]
    mib, util, watts = ([part[at] for part in parts for _ in range(part[3])] for at in range(3))
    run = make_run(util, quantities={"memory_used_mib": mib, "power_w": watts}, rows=[(1, 219), (2, 439)])
    assert stays(run) == []


def test_where_processes_were_logged_they_say_who_was_there():
    looks = pd.DataFrame([(12.0, 0, 41, "python train.py", OWN, "appeared", "trainer", 90.0)], columns=PROCESSES)
    assert build_context(dataclasses.replace(log(), processes=looks), Options()).other_processes == ()


def test_a_validation_just_before_it_that_takes_more_memory_hides_none():
    run = log()
    mib = run.samples["memory_used_mib"].where(~run.samples["t_s"].between(104, 109), OWN + 150)
    assert stays(dataclasses.replace(run, samples=run.samples.assign(memory_used_mib=mib))) == [((120.0, 180.0), GUEST)]


@pytest.mark.parametrize(("times", "found"), [(2, 2), (4, 0)])
def test_what_comes_again_and_again_is_the_trainings_own(times, found):
    """Such as validations that take more memory, and keep the GPU busier than training does."""
    parts = [
        (OWN, 80, 400, 120),
        *[each for _ in range(times) for each in ((OWN + GUEST, 90, 450, 60), (OWN, 80, 400, 90))],
    ]
    mib, util, watts = ([part[at] for part in parts for _ in range(part[3])] for at in range(3))
    assert len(stays(make_run(util, quantities={"memory_used_mib": mib, "power_w": watts}))) == found


@pytest.mark.parametrize(
    ("height_mib", "after", "found"),
    [
        (GUEST, [], True),  # to the end of the log
        (GUEST, [(0.0, 40, 0.0)], True),  # the training ends first
        (GUEST, [(GUEST, 40, 60.0)], True),  # and it goes on
        (GUEST + 100, [], False),  # nobody knows whose that is
    ],
)
def test_who_came_and_went_may_come_again_and_stay_to_the_end(height_mib, after, found):
    parts = [(OWN, 120, 80.0), (OWN + GUEST, 60, 95.0), (OWN, 120, 80.0), (OWN + height_mib, 60, 95.0), *after]
    mib, util = ([part[n] for part in parts for _ in range(part[1])] for n in (0, 2))
    run = make_run(util, quantities={"memory_used_mib": mib})
    assert [round(start) for (start, _), _ in stays(run)] == ([120, 300] if found else [120])
    assert [round(end) for (_, end), _ in stays(run)][1:] == [360 if after else 359] * found


def coarse(*validations_pct):
    """Return a log of a reading each 15 s: five of training and one of a validation in turn, so busy each time."""
    util_pct = [pct for each in validations_pct for pct in (99, 99, 99, 99, 99, each)] + [99] * 5
    mib = [OWN + 320 if at % 6 == 5 else OWN for at in range(len(util_pct))]
    watts = [204.0 if pct >= 97 else 120.0 for pct in util_pct]
    return make_run(util_pct, interval_s=15.0, quantities={"memory_used_mib": mib, "power_w": watts})


@pytest.mark.parametrize(("validations_pct", "found"), [((40, 100, 43, 0), 0), ((100, 40), 0), ((100,), 1)])
def test_one_busy_reading_of_validations_that_take_memory_is_none(validations_pct, found):
    """Utilisation looks back over a second: of a validation that has just begun it is training's."""
    assert len(stays(coarse(*validations_pct))) == found


def test_memory_that_only_grows_is_not_looked_at_to_the_end_of_the_log_at_each_step(monkeypatch):
    """A month with 200 steps would take ten seconds."""
    looked = []
    monkeypatch.setattr(memory_steps, "_works_on", lambda *what: looked.append(what))
    seconds = 1200
    growing = [OWN + 300.0 * (second // 120) for second in range(seconds)]
    assert stays(make_run([90.0] * seconds, quantities={"memory_used_mib": growing})) == []
    assert looked == []
