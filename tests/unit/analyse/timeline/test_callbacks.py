"""What callbacks told is taken as it is; what they did not tell is filled from outside."""

import dataclasses
import time
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from support.inside import inside_of
from support.runs import make_run, readings
from support.samples import analysis_of, labels_of, run_of

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.analyse.compare.metrics import DATA_WAIT
from gpu_report.analyse.compare.samples import of_epochs, of_windows, run_sample
from gpu_report.catalogue import RULES
from gpu_report.model import InsideEpoch, InsideRun, Options, Outlier, Phase, RecordedEvent

LABELLED = ("faulted", "fed", "healthy", "starved")


def told(name):
    return dataclasses.replace(run_of(name), inside=(inside_of(labels_of(name)),))


@pytest.fixture(scope="module", params=LABELLED)
def labelled(request):
    run = told(request.param)
    return request.param, run, analyse(run)


def process(*parts, number=1, first_epoch=1, attempt=1, task="train"):
    """Return a process that told (name, start, end) phases, of which each train begins an epoch."""
    phases, epochs, epoch = [], [], first_epoch - 1
    for name, start, end in parts:
        epoch += name == "train"
        of = epoch if name in {"train", "validation", "checkpoint"} and task == "train" else None
        phases.append(Phase(name, of, start, end, "inside"))
        if name == "train":
            epochs.append(InsideEpoch(epoch, attempt, start, end, 1000, 10, 1.5, 0.5, 0.7, 2.5, 0.01))
    return InsideRun(number, 0, 1, task, {}, tuple(phases), tuple(epochs))


EPOCHS = [
    part
    for n in range(6)
    for part in (
        ("train", 20 + n * 30, 44 + n * 30),
        ("validation", 44 + n * 30, 49 + n * 30),
        ("checkpoint", 49 + n * 30, 50 + n * 30),
    )
]


def test_every_second_of_a_told_run_is_as_it_was_told(labelled):
    _, run, analysis = labelled
    (inside,) = run.inside
    mine = [p for p in analysis.phases if p.name != "idle"]
    expected = [dataclasses.replace(p, source="callbacks") for p in inside.phases if p.end_t_s > p.start_t_s]
    assert mine == expected
    assert {p.source for p in analysis.phases} == {"callbacks"}
    assert analysis.phases[0].name == analysis.phases[-1].name == "idle"


def test_the_ledger_adds_up_and_phases_keep_their_seconds(labelled):
    _, run, analysis = labelled
    assert sum(row.gpu_seconds for row in analysis.ledger) == pytest.approx(run.duration_s * len(run.gpus))


def test_a_told_run_has_the_drops_that_were_injected(labelled):
    name, _, analysis = labelled
    found = Counter(f.rule for f in analysis.findings if RULES[f.rule].takes_time and not f.expected)
    # a stall of the loader from the last batches on, and another process, each made a validation of 1 s one of 12 s
    assert found == ({"drop": 2, "slow-validation": 2} if name == "faulted" else {})


def test_an_epoch_has_what_was_counted_in_it():
    analysis = analyse(told("healthy"))
    epoch = analysis.epochs[1]
    assert (epoch.train_s, epoch.validation_s, epoch.checkpoint_s) == pytest.approx((8.63, 1.38, 0.8), abs=0.02)
    assert epoch.end_t_s - epoch.start_t_s == pytest.approx(10.81, abs=0.02)
    assert epoch.images_per_s == pytest.approx(4000 / 8.63, rel=0.01)
    assert (epoch.data_wait_s, epoch.longest_wait_s, epoch.source) == (0.5, 0.2, "callbacks")
    assert epoch.data_wait_share == pytest.approx(0.5 / 8.63, rel=0.01)
    assert epoch.loss == pytest.approx(1.3748 + 1.67367 + 0.01067)  # as results.csv has it


def test_the_first_batch_of_a_process_is_warm_up_and_no_part_of_what_is_said_of_training():
    inside = process(*EPOCHS[:6])
    startup = Phase("startup", 1, 10, 20, "inside", "first batch")
    first = dataclasses.replace(inside.epochs[0], start_t_s=10, data_wait_s=3.5, first_wait_s=2.5, longest_wait_s=2.5)
    inside = dataclasses.replace(inside, phases=(startup, *inside.phases), epochs=(first, *inside.epochs[1:]))
    run = dataclasses.replace(make_run(readings((0, 20), (90, 60))), inside=(inside,))
    first, second = analyse(run).epochs
    assert (first.warm_up_s, first.train_s, second.warm_up_s) == (10, 24, 0)
    parts = (first.warm_up_s, first.train_s, first.validation_s, first.checkpoint_s)
    assert sum(parts) == first.end_t_s - first.start_t_s
    assert first.images_per_s == pytest.approx(900 / 24)  # the first of ten batches was warm-up
    assert (first.data_wait_s, first.longest_wait_s) == (1.0, None)
    assert first.data_wait_share == pytest.approx(1 / 24)


def test_a_run_from_outside_knows_no_images_and_no_waits():
    epochs = analysis_of("healthy").epochs
    assert {(e.images_per_s, e.data_wait_s, e.longest_wait_s) for e in epochs} == {(None, None, None)}
    assert all(e.source for e in epochs)


def test_a_long_validation_that_keeps_the_gpu_idle_is_expected_however_far_its_end_is():
    util = readings((0, 20), *([(90, 24), (0, 6)] * 6))
    rests = [("train", 20, 44), ("validation", 44, 49), ("checkpoint", 49, 50)]
    run = dataclasses.replace(make_run(util), inside=(process(*rests, *EPOCHS[3:]),))
    assert [f for f in analyse(run).findings if not f.expected] == []


def test_a_validation_far_longer_than_its_siblings_is_a_finding_of_its_own():
    parts = [*EPOCHS[:9], ("train", 110, 134), ("validation", 134, 150), ("checkpoint", 150, 151), ("train", 151, 200)]
    util = readings((0, 20), *([(90, 24), (0, 6)] * 3), (90, 24), (0, 17), (90, 49))
    run = dataclasses.replace(make_run(util), inside=(process(*parts),))
    (slow,) = [f for f in analyse(run).findings if not f.expected and f.rule != "slow-epoch"]
    assert (slow.rule, slow.start_t_s, slow.phase, slow.epoch) == ("slow-validation", 134, "validation", 4)
    assert slow.summary.startswith("The validation of epoch 4 took 16 s (typical: 5 s)")


def test_a_stall_of_training_is_not_explained_by_a_validation_beside_it():
    util = readings((0, 20), *([(90, 24), (0, 6)] * 3), (90, 10), (0, 20), (90, 60))
    run = dataclasses.replace(make_run(util), inside=(process(*EPOCHS),))
    (drop,) = [f for f in analyse(run).findings if not f.expected]
    assert drop.start_t_s == 120


def after_the_first_validation(stalled_s, drop_seconds=10.0):
    """Return the drop at the first validation of a run that stands still for so long after it."""
    util = readings((0, 20), (90, 24), (0, 6 + stalled_s), (90, 24 - stalled_s), *([(0, 6), (90, 24)] * 3))
    run = dataclasses.replace(make_run(util), inside=(process(*EPOCHS),))
    options = Options(drop_seconds=drop_seconds)
    return min((f for f in analyse(run, options).findings if f.rule == "drop"), key=lambda f: f.start_t_s)


def test_a_stall_after_a_validation_is_told_though_it_alone_is_shorter_than_a_drop():
    drop = after_the_first_validation(stalled_s=7)
    assert (drop.start_t_s, drop.end_t_s, drop.expected, drop.phase) == (50, 57, False, "train")
    assert drop.summary.endswith("for 7 s")
    assert {e.text: e.value for e in drop.evidence}["length with the validation or checkpoint next to it"] == 13


def test_the_ramp_of_a_validation_is_no_drop_where_short_ones_are_asked_for():
    assert after_the_first_validation(stalled_s=4, drop_seconds=6.0).expected
    assert not after_the_first_validation(stalled_s=4, drop_seconds=3.5).expected


def test_an_expected_drop_says_what_of_it_was_validation_and_checkpoint_and_what_was_not():
    drop = after_the_first_validation(stalled_s=4)
    assert (drop.start_t_s, drop.end_t_s, drop.expected) == (44, 54, True)
    assert drop.cause.explanation == (
        "the epoch ended here: validation and checkpoint took 6.0 s of it, typical 6.0 s; "
        "4.0 s of it are training just before or after"
    )
    told = {e.text: e.value for e in drop.evidence}
    assert (told["of it, validation and checkpoint"], told["of it, training after them"]) == (6, 4)
    assert "of it, training before them" not in told


def test_a_first_validation_that_takes_longer_is_not_told_to_be_as_long_as_others():
    parts = [("train", 20, 40), ("validation", 40, 49), ("checkpoint", 49, 50), *EPOCHS[3:]]
    util = readings((0, 20), (90, 20), (0, 10), (90, 24), *([(0, 6), (90, 24)] * 3))
    run = dataclasses.replace(make_run(util), inside=(process(*parts),))
    (drop,) = [f for f in analyse(run).findings if f.rule == "drop"]
    assert drop.expected
    assert "took 10.0 s of it, typical 6.0 s (the first takes longer" in drop.cause.explanation


def standing_still(main_pct, workers_pct, wait_s=15.0, longest_s=15.0):
    """Return six epochs, in the third of which the training fell idle for 15 s, waiting for data as callbacks count."""
    parts = [(90, 24), (0, 6)]
    util = readings((0, 20), *(parts * 2), (90, 5), (0, 15), (90, 4), (0, 6), *(parts * 3))
    inside = process(*EPOCHS)
    ordinary = [dataclasses.replace(e, data_wait_s=0.1, longest_wait_s=0.1) for e in inside.epochs]
    ordinary[2] = dataclasses.replace(ordinary[2], data_wait_s=wait_s, longest_wait_s=min(wait_s, longest_s))
    inside = dataclasses.replace(inside, epochs=tuple(ordinary))
    still = np.arange(200)
    still = (still >= 86) & (still < 101)
    host = {"main_cpu_pct": (100.0, main_pct), "workers_cpu_pct": (400.0, workers_pct), "workers": (8.0, 8.0)}
    host |= {"busiest_worker_cpu_pct": (50.0, workers_pct / 8)}
    columns = {c.name: np.where(still, *host.get(c.name, (0.0, 0.0))[::-1]) for c in schema.HOST_QUANTITIES}
    table = pd.DataFrame({"t_s": np.arange(200.0), **columns})
    run = dataclasses.replace(make_run(util), inside=(inside,), host=table)
    return analyse(run)


def test_a_trainer_that_stands_still_between_batches_is_no_wait_for_data():
    found = standing_still(main_pct=0.0, workers_pct=0.0)
    (drop,) = [f for f in found.findings if f.rule == "drop" and not f.expected]
    epoch = found.epochs[2]
    assert drop.cause.name == epoch.stall_cause == "trainer-blocked"
    assert (epoch.stall_s, epoch.data_wait_s, epoch.data_wait_share) == pytest.approx((15, 0, 0), abs=0.5)
    assert [each for each in epoch.outliers if each.part == "data wait"] == []
    assert any(each.cause == "trainer-blocked" and 10 <= each.seconds < 20 for each in epoch.outliers)


def test_a_wait_whose_drop_is_the_loaders_or_was_none_stays_what_it_is():
    loader = standing_still(main_pct=0.0, workers_pct=790.0)
    (drop,) = [f for f in loader.findings if f.rule == "drop" and not f.expected]
    assert drop.cause.name == "input-cpu"
    assert (loader.epochs[2].stall_s, loader.epochs[2].data_wait_s) == (None, 15)
    within_a_batch = standing_still(main_pct=0.0, workers_pct=0.0, wait_s=2.0)
    assert (within_a_batch.epochs[2].stall_s, within_a_batch.epochs[2].data_wait_s) == (None, 2)


def test_the_ordinary_waits_of_an_epoch_are_not_the_one_in_which_the_trainer_stood_still():
    many_short = standing_still(main_pct=0.0, workers_pct=0.0, wait_s=8.0, longest_s=0.9)
    assert (many_short.epochs[2].stall_s, many_short.epochs[2].data_wait_s) == (None, 8)
    beside_them = standing_still(main_pct=0.0, workers_pct=0.0, wait_s=16.0, longest_s=12.0)
    assert (beside_them.epochs[2].stall_s, beside_them.epochs[2].data_wait_s) == (12, 4)


@pytest.mark.parametrize("longest_s", [0.9, 12.0])
def test_windows_wait_for_data_as_long_as_their_epochs_do(longest_s):
    training = run_sample(standing_still(main_pct=0.0, workers_pct=0.0, wait_s=16.0, longest_s=longest_s))
    by_epochs, by_windows = of_epochs(training), of_windows(training)
    assert len(by_windows[DATA_WAIT]) > len(by_epochs[DATA_WAIT])
    assert by_windows[DATA_WAIT].mean() == pytest.approx(by_epochs[DATA_WAIT].mean())


def test_an_epoch_that_was_begun_anew_counts_its_attempts_and_the_broken_one_is_no_epoch():
    parts = [*EPOCHS[:6], ("train", 80, 90), ("train", 90, 114), ("validation", 114, 119), ("checkpoint", 119, 120)]
    inside = process(*parts)
    broken = dataclasses.replace(inside.epochs[2], end_t_s=None)
    again = dataclasses.replace(inside.epochs[3], epoch=3, attempt=2)
    phases = tuple(dataclasses.replace(p, epoch=3) if p.epoch == 4 else p for p in inside.phases)
    inside = dataclasses.replace(inside, epochs=(*inside.epochs[:2], broken, again), phases=phases)
    found = analyse(dataclasses.replace(make_run(readings((0, 20), (90, 110))), inside=(inside,)))
    assert [(e.epoch, e.attempt) for e in found.epochs] == [(1, 1), (2, 1), (3, 2)]
    assert found.epochs[2].train_s == 24


def test_a_resume_and_a_second_run_keep_their_numbers():
    first, resumed = process(*EPOCHS[:3]), process(*EPOCHS[6:9], first_epoch=2)
    other = process(*EPOCHS[12:15], number=None)
    run = make_run(readings((0, 20), (90, 180)), rows=[(1, 49)])
    found = analyse(dataclasses.replace(run, inside=(other, resumed, first)))
    assert [(e.run, e.epoch) for e in found.epochs] == [(1, 1), (1, 2), (2, 1)]
    assert [p.name for p in found.phases if p.start_t_s >= 50][:2] == ["idle", "train"]


def test_a_run_that_told_nothing_is_seen_from_outside_beside_one_that_told():
    run = make_run(readings((0, 20), (90, 30), (0, 30), (90, 60)), rows=[(1, 49)])
    run = dataclasses.replace(run, inside=(process(("train", 90, 130), number=None),))
    sources = {(p.name, p.source) for p in analyse(run).phases}
    assert ("train", "callbacks") in sources
    assert any(name == "train" and source.startswith("results.csv") for name, source in sources)


def test_predictions_are_work_and_validation_runs_are_validation():
    run = make_run(readings((0, 10), (60, 40), (0, 10)))
    predicted = dataclasses.replace(run, inside=(process(("startup", 2, 10), ("predict", 10, 50), task="predict"),))
    rows = {row.name: row.gpu_seconds for row in analyse(predicted).ledger}
    assert rows["work"] == pytest.approx(24)
    validated = dataclasses.replace(run, inside=(process(("validation", 10, 50), task="val"),))
    assert {row.name: row.gpu_seconds for row in analyse(validated).ledger}["validation"] == 40


def test_other_ranks_do_not_double_the_phases():
    rank0 = process(*EPOCHS)
    rank1 = dataclasses.replace(rank0, rank=1, phases=(Phase("train", 1, 0.0, 500.0, "inside"),))
    run = dataclasses.replace(make_run(readings((0, 20), (90, 180))), inside=(rank1, rank0))
    assert len(analyse(run).epochs) == 6


def test_an_epoch_far_from_its_siblings_is_odd_and_it_is_said_why():
    parts = [*EPOCHS[:9], ("train", 110, 150), ("validation", 150, 155), ("checkpoint", 155, 156), ("train", 156, 180)]
    run = dataclasses.replace(make_run(readings((0, 20), (90, 180))), inside=(process(*parts),))
    assert [e.outliers for e in analyse(run).epochs if e.outliers] == [(Outlier("train", 40.0, 24.0),)]


def test_eight_thousand_epochs_are_summed_up_in_time():
    parts = [p for n in range(8_000) for p in (("train", n * 4, n * 4 + 3), ("validation", n * 4 + 3, n * 4 + 4))]
    util = readings((80, 32_000), interval_s=2.0)
    run = dataclasses.replace(make_run([util] * 8, 2.0), inside=(process(*parts),))
    began = time.perf_counter()
    assert len(analyse(run).epochs) == 8_000
    assert time.perf_counter() - began < 30


def test_startup_begins_with_the_command_and_not_with_its_first_callback():
    phases = (Phase("startup", None, 8.0, 12.0, "inside"), Phase("train", 1, 12.0, 60.0, "inside"))
    told = InsideRun(1, 0, 41, "train", {}, phases, ())
    events = (RecordedEvent(2.0, "command_started", None, {}),)
    run = dataclasses.replace(make_run(readings((0, 12), (90, 48))), inside=(told,), events=events)
    first, second, *_ = [phase for phase in analyse(run).phases if phase.name == "startup"]
    assert (first.start_t_s, first.end_t_s, first.detail) == (2.0, 8.0, "imports")
    assert (second.start_t_s, second.end_t_s) == (8.0, 12.0)
    failed = (*events, RecordedEvent(3.0, "command_ended", None, {"exit_code": 2}))
    later = analyse(dataclasses.replace(run, events=failed))
    assert [phase.start_t_s for phase in later.phases if phase.name == "startup"] == [8.0]


def test_the_end_of_an_earlier_command_does_not_make_a_later_recording_idle():
    kinds = ((0.0, "recording_started"), (5.0, "command_ended"), (10.0, "recording_started"))
    events = tuple(RecordedEvent(t_s, kind, None, {"exit_code": 0}) for t_s, kind in kinds)
    run = dataclasses.replace(make_run(readings((0, 10), (97, 50))), events=events)
    assert {row.name: row.gpu_seconds for row in analyse(run).ledger}["work"] == pytest.approx(48.5, abs=1.5)


def test_an_epoch_has_the_wait_of_the_rank_that_waited_longest():
    main = process(("train", 10, 30), ("checkpoint", 30, 31), ("train", 31, 50), ("checkpoint", 50, 51))
    waits = dataclasses.replace(main.epochs[0], data_wait_s=12.0, longest_wait_s=3.0)
    other = dataclasses.replace(main, rank=1, pid=2, epochs=(waits,))
    run = dataclasses.replace(make_run(readings((0, 10), (90, 60))), inside=(main, other))
    assert [(epoch.data_wait_s, epoch.longest_wait_s) for epoch in analyse(run).epochs] == [(12.0, 3.0), (1.5, 0.7)]


PROCESSES = ["t_s", "gpu", "pid", "name", "memory_used_mib", "change", "owner", "gpu_util_pct"]


def on_gpu(inside, uuid="GPU-1"):
    return dataclasses.replace(inside, settings={**inside.settings, "gpu_uuid": uuid})


def test_a_gpu_that_a_training_worked_on_is_used_however_idle_it_reads():
    idle = make_run(readings((0, 200)), facts={"uuid": "GPU-1"})
    waits = [dataclasses.replace(epoch, data_wait_s=20.0) for epoch in process(*EPOCHS).epochs]
    inside = dataclasses.replace(on_gpu(process(*EPOCHS)), epochs=tuple(waits))
    analysis = analyse(dataclasses.replace(idle, inside=(inside,)))
    assert "No GPU worked" not in analysis.verdict.text
    assert {row.name for row in analysis.ledger if row.share > 0.05} >= {"validation"}
    of_gpu_1 = pd.DataFrame([(5.0, 1, 41, "python3", 900.0, "appeared", "trainer", None)], columns=PROCESSES)
    assert "No GPU worked" not in analyse(dataclasses.replace(idle, inside=(inside,), processes=of_gpu_1)).verdict.text
    elsewhere = dataclasses.replace(idle, inside=(on_gpu(inside, "GPU-of-another-machine"),))
    assert "No GPU worked" in analyse(elsewhere).verdict.text


def test_validations_without_training_are_not_judged_as_training():
    parts = [("startup", 0, 20), ("validation", 20, 50), ("checkpoint", 50, 52), ("final evaluation", 52, 90)]
    run = make_run(readings((50, 20), (5, 70)), facts={"uuid": "GPU-1"})
    analysis = analyse(dataclasses.replace(run, inside=(on_gpu(process(*parts)),)))
    assert [finding for finding in analysis.findings if finding.rule == "starved"] == []
    assert "busy only" not in analysis.verdict.text


def seen_from_outside(*ends, spread=10.0):
    """Return drops of a run without callbacks that ends each epoch of 600 s with some readings, `spread` s apart."""
    util, rows, t_s = [0.0] * 4, [], 40.0
    for number, end in enumerate(ends, 1):
        util += [99.0] * (60 - len(end)) + list(end)
        t_s += 600.0
        rows.append((number, t_s - 2.0))
    run = make_run([*util, *[99.0] * 20], interval_s=spread, rows=rows, epochs_asked=40)
    run = dataclasses.replace(run, yolo_runs=(dataclasses.replace(run.yolo_runs[0], checkpoint_s=2.0),))
    return [f for f in analyse(run).findings if f.rule == "drop" and f.expected]


def test_where_no_validation_could_be_told_from_training_none_of_a_drop_is_said_to_be_training():
    """Of 35 s of validation readings 10 s apart show 0 to 100 % each (V100, a log of nvidia-smi, 2026-11-28)."""
    ends = ((38, 84, 55, 99), (62, 95), (0, 34, 9, 9), (17, 68), (84, 75, 99, 91), (0, 14, 48), (99, 73, 3), (22, 34))
    found = seen_from_outside(*ends * 2)
    assert found
    assert {each.cause.explanation for each in found} == {"the epoch ended here: validation and checkpoint"}
    assert not [e.text for each in found for e in each.evidence if e.text.startswith("of it, training")]


def test_training_within_a_reading_and_a_half_of_a_validation_is_not_told_from_it():
    found = seen_from_outside(*[(20, 22, 20), (20, 21, 20, 22), (20, 22, 20)] * 5)
    assert found
    assert any("validation and checkpoint took" in each.cause.explanation for each in found)
    assert not [each for each in found if "of it are training" in each.cause.explanation]
