"""Phases from outside: what rows, files and the GPU's own readings tell, and what they do not."""

import dataclasses

import numpy as np
import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.model import Options, RecordedEvent


def run_of(epochs=6, train=20, validation=4, checkpoint=2, startup=10, args=None, interval_s=1.0, **more):
    """Return a run whose GPU works in training only; rows appear between validation and checkpoint."""
    util = readings((0, startup), *([(90, train), (0, validation + checkpoint)] * epochs), interval_s=interval_s)
    length = train + validation + checkpoint
    rows = [(n + 1, startup + n * length + train + validation) for n in range(epochs)]
    run = make_run(util, interval_s, rows=rows, **more)
    return dataclasses.replace(run, yolo_runs=(dataclasses.replace(run.yolo_runs[0], args=args or {"epochs": epochs}),))


def part_at(t_s):
    """Return which part of an epoch of 21.3 s of training, 3.4 s of validation and 1.6 s of checkpoint this is."""
    if t_s < 10:
        return "startup"
    within = (t_s - 10) % 26.3
    return "train" if within < 21.3 else "validation" if within < 24.7 else "checkpoint"


def drawn(util, interval_s=1.0, power=None):
    """Return a run of 12 such epochs; `power` is of a part, and is read as the mean of the last second."""
    times = np.arange(0, 10 + 12 * 26.3, interval_s)
    parts = [part_at(t) for t in times]
    rows = [(n + 1, 10 + 26.3 * n + 24.7) for n in range(12)]
    quantities = None
    if power:
        watts = [np.mean([power[part_at(t - back / 10)] for back in range(10)]) for t in times]
        quantities = {"power_w": watts}
    return make_run([util(part) for part in parts], interval_s, rows=rows, quantities=quantities)


def lengths(run, name):
    return [p.end_t_s - p.start_t_s for p in analyse(run).phases if p.name == name]


def test_validation_and_checkpoint_are_found_beside_the_row():
    run = run_of(epochs=8)
    assert lengths(run, "validation")[1:] == pytest.approx([4] * 7, abs=0.8)
    assert lengths(run, "checkpoint")[:-1] == pytest.approx([2] * 7, abs=0.8)


def test_training_that_reads_like_a_validation_before_it_is_no_part_of_it():
    """Epoch 4 waits for data in its later part, and is as busy then as a validation is."""
    trained = [[(90, 200)], [(90, 200)], [(90, 200)], [(90, 110), (41, 150)], [(90, 200)], [(90, 200)]]
    epochs = [[*train, (40, 20), (0, 2)] for train in trained]
    ends = np.cumsum([10, *(sum(seconds for _, seconds in epoch) for epoch in epochs)]).tolist()
    run = make_run(
        readings((0, 10), *(part for epoch in epochs for part in epoch)),
        rows=[(number + 1, end - 2) for number, end in enumerate(ends[1:])],
    )
    assert lengths(run, "validation")[1:] == pytest.approx([20] * 5, abs=2)


@pytest.mark.parametrize("interval_s", [0.2, 0.5, 1.0])
def test_the_edges_are_known_to_less_than_a_reading(interval_s):
    run = drawn(lambda part: 90 if part == "train" else 0, interval_s)
    assert np.median(lengths(run, "validation")) == pytest.approx(3.4, abs=0.5)
    assert np.median(lengths(run, "checkpoint")[:-1]) == pytest.approx(1.6, abs=0.5)


def test_without_validation_there_is_a_checkpoint_only_until_the_last_epoch():
    run = run_of(epochs=6, validation=0, checkpoint=3, args={"epochs": 6, "val": False})
    names = [(p.name, p.epoch) for p in analyse(run).phases]
    assert [epoch for name, epoch in names if name == "validation"] in ([], [6])
    assert [epoch for name, epoch in names if name == "checkpoint"][:5] == [1, 2, 3, 4, 5]


def test_a_run_that_saves_nothing_has_no_checkpoint_but_the_last():
    run = run_of(epochs=6, args={"epochs": 6, "save": False})
    assert {p.epoch for p in analyse(run).phases if p.name == "checkpoint"} <= {6}


def test_a_stall_after_a_checkpoint_is_not_taken_for_it():
    parts = [part for n in range(8) for part in ((90, 20), (0, 6 if n != 3 else 36))]
    rows, at = [], 10
    for n in range(8):
        rows.append((n + 1, at + 24))
        at += 26 if n != 3 else 56
    checkpoints = lengths(make_run(readings((0, 10), *parts), rows=rows), "checkpoint")
    assert max(checkpoints) <= 5.5


def test_the_time_of_a_checkpoint_is_believed_where_it_was_recorded():
    run = run_of()
    rows = tuple(dataclasses.replace(row, saved_t_s=row.row_t_s + 1.25) for row in run.epoch_rows)
    phases = [p for p in analyse(dataclasses.replace(run, epoch_rows=rows)).phases if p.name == "checkpoint"]
    assert [p.end_t_s - p.start_t_s for p in phases] == pytest.approx([1.25] * 6)
    assert {p.source for p in phases} == {"results.csv and file times"}


def test_startup_begins_with_args_yaml_and_before_it_is_idle():
    run = run_of(startup=60)
    run = dataclasses.replace(run, yolo_runs=(dataclasses.replace(run.yolo_runs[0], started_t_s=42.0),))
    rows = tuple(dataclasses.replace(row, start_t_s=max(row.start_t_s, 55.0)) for row in run.epoch_rows)
    first, second = analyse(dataclasses.replace(run, epoch_rows=rows)).phases[:2]
    assert (first.name, first.start_t_s, first.end_t_s) == ("idle", 0.0, 42.0)
    assert (second.name, second.end_t_s, second.source) == ("startup", 60.0, "args.yaml, end from utilisation")


def test_with_a_command_startup_begins_with_the_command():
    started = RecordedEvent(0.0, "command_started", None, {})
    run = run_of(startup=60, events=[started])
    run = dataclasses.replace(run, yolo_runs=(dataclasses.replace(run.yolo_runs[0], started_t_s=42.0),))
    assert (analyse(run).phases[0].name, analyse(run).phases[0].start_t_s) == ("startup", 0.0)


def test_a_run_killed_in_its_first_epoch_has_startup_and_training():
    run = make_run(readings((0, 30), (90, 60)), rows=[(1, 80)])
    killed = dataclasses.replace(run.yolo_runs[0], anchor="no-epoch", started_t_s=12.0)
    phases = analyse(dataclasses.replace(run, yolo_runs=(killed,), epoch_rows=())).phases
    assert [(p.name, p.epoch, p.start_t_s) for p in phases] == [
        ("idle", None, 0),
        ("startup", None, 12),
        ("train", 1, 30),
    ]


def test_a_single_epoch_ends_in_its_final_evaluation():
    run = run_of(epochs=1, train=40)
    names = [p.name for p in analyse(run).phases]
    assert names[:2] == ["startup", "train"]
    assert names[-1] == "final evaluation"


def test_a_run_without_power_or_memory_traffic_is_fitted_to_utilisation():
    run = run_of(epochs=8)
    assert not run.samples["power_w"].notna().any()
    assert {p.source for p in analyse(run).phases if p.name == "validation"} == {"results.csv, edges from utilisation"}


def test_power_tells_a_validation_whose_bursts_read_as_work():
    bursts = iter([90, 10, 95, 40] * 100)
    power = {"startup": 80.0, "train": 500.0, "validation": 220.0, "checkpoint": 120.0}
    run = drawn(lambda part: {"train": 90, "validation": next(bursts)}.get(part, 0), power=power)
    assert np.median(lengths(run, "validation")) == pytest.approx(3.4, abs=0.6)


def test_a_rank_that_spins_for_the_other_is_not_at_work_yet():
    util = readings((0, 10), (100, 6), *([(90, 20), (0, 6)] * 6))
    rows = [(n + 1, 16 + 26 * n + 24) for n in range(6)]
    watts = [*[120.0] * 16, *([500.0] * 20 + [150.0] * 6) * 6]
    run = make_run(util, rows=rows, quantities={"power_w": watts[: len(util)]})
    began = dataclasses.replace(
        run, epoch_rows=(dataclasses.replace(run.epoch_rows[0], start_t_s=8.0), *run.epoch_rows[1:])
    )
    (startup,) = [p for p in analyse(began).phases if p.name == "startup"]
    assert startup.end_t_s == pytest.approx(16, abs=1)


def test_a_validation_beside_another_process_begins_when_training_usually_ends():
    power = {"startup": 80.0, "train": 400.0, "validation": 180.0, "checkpoint": 110.0, "hog": 690.0}
    rows = [(n + 1, 10 + 26.3 * n + 24.7 + 10 * (n >= 4)) for n in range(12)]
    hog = (10 + 26.3 * 4 + 18, 10 + 26.3 * 4 + 34)  # the validation of epoch 5 takes 13.4 s beside it

    def part(t_s):
        if hog[0] <= t_s < hog[1]:
            return "hog"
        return part_at(t_s if t_s < hog[0] else t_s - 10)

    times = np.arange(0, 20 + 12 * 26.3, 1.0)
    watts = [np.mean([power[part(t - back / 10)] for back in range(10)]) for t in times]
    util = [{"train": 90, "hog": 100, "validation": 40}.get(part(t), 0) for t in times]
    run = make_run(util, rows=rows, quantities={"power_w": watts})
    found = lengths(run, "validation")
    assert found[4] == pytest.approx(13.4, abs=1.5)
    assert np.median(found) == pytest.approx(3.4, abs=0.6)


@pytest.mark.parametrize(
    ("args", "best", "ends"),
    [
        ({"epochs": 300, "patience": 3}, 3, True),
        ({"epochs": 300, "patience": 4}, 3, False),
        ({"epochs": 300, "patience": 0}, 3, False),
        ({"epochs": 300, "time": 156 / 3600}, 6, False),
        ({"epochs": 300, "time": 152 / 3600}, 6, True),
        ({"epochs": 6, "time": None, "patience": 100}, 6, True),
    ],
)
def test_patience_and_time_end_a_run_like_its_last_epoch(args, best, ends):
    run = run_of(epochs=6, args=args)
    rows = tuple(
        dataclasses.replace(row, metrics={"metrics/mAP50-95(B)": 0.9 - abs(row.epoch - best) / 10})
        for row in run.epoch_rows
    )
    rows = (dataclasses.replace(rows[0], start_t_s=10.0), *rows[1:])
    names = {p.name for p in analyse(dataclasses.replace(run, epoch_rows=rows)).phases}
    assert ("final evaluation" in names) == ends


CLASSIFIED = {"metrics/accuracy_top1": [0.3, 0.6, 0.5, 0.5, 0.5, 0.5], "metrics/accuracy_top5": [0.9] * 6}
BOXES = {"metrics/mAP50-95(B)": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}


@pytest.mark.parametrize(
    ("metrics", "ends"),
    [
        (CLASSIFIED, True),
        (BOXES, False),
        ({**BOXES, "metrics/mAP50-95(M)": [0.1, 0.9, 0.1, 0.1, 0.1, 0.1]}, True),
        ({**BOXES, "metrics/mAP50-95(P)": [0.1, 0.2, 0.1, 0.1, 0.1, 0.1]}, False),
        ({"metrics/mIoU": [0.1, 0.9, 0.8, 0.8, 0.8, 0.8]}, True),
        ({"metrics/mAP50-95(B)": [0.0] * 6}, False),
        ({"metrics/mAP50(B)": [0.1, 0.9, 0.8, 0.8, 0.8, 0.8]}, False),
    ],
    ids=["classes", "boxes", "masks", "poses", "semantic", "nothing found yet", "no metric of fitness"],
)
def test_patience_is_counted_by_the_fitness_of_the_task(metrics, ends):
    run = run_of(epochs=6, args={"epochs": 300, "patience": 4})
    rows = tuple(
        dataclasses.replace(row, metrics={name: values[row.epoch - 1] for name, values in metrics.items()})
        for row in run.epoch_rows
    )
    rows = (dataclasses.replace(rows[0], start_t_s=10.0), *rows[1:])
    names = {p.name for p in analyse(dataclasses.replace(run, epoch_rows=rows)).phases}
    assert ("final evaluation" in names) == ends


def test_every_phase_says_where_it_is_known_from():
    assert all(phase.source for phase in analyse(run_of()).phases)


def two_runs(resumed):
    """Return 3 epochs, half a minute without any process on the GPU, and 3 more of another run or of a resume."""
    cached = [*readings((0, 10)), *readings(*([(90, 20), (0, 6)] * 3))]
    memory = [*[500.0] * 5, *[20_000.0] * 83]
    util, used = [*cached, *readings((0, 30)), *cached], [*memory, *[0.0] * 30, *memory]
    rows = [(n + 1, 34 + 26 * n) for n in range(3)]
    run = make_run(util, rows=rows, quantities={"memory_used_mib": used})
    first, at = run.epoch_rows, 118
    later = tuple(
        dataclasses.replace(
            row,
            run=1 if resumed else 2,
            segment=2 if resumed else 1,
            epoch=row.epoch + 3 * resumed,
            row_t_s=row.row_t_s + at,
            start_t_s=at + 8 if n == 0 else row.start_t_s + at,
        )
        for n, row in enumerate(first)
    )
    yolo = dataclasses.replace(run.yolo_runs[0], args={"epochs": 6 if resumed else 3})
    first = (dataclasses.replace(first[0], start_t_s=8.0), *first[1:])
    second = dataclasses.replace(yolo, number=2, started_t_s=121.0)
    runs = (yolo,) if resumed else (yolo, second)
    return dataclasses.replace(run, epoch_rows=(*first, *later), yolo_runs=runs)


@pytest.mark.parametrize("resumed", [False, True])
def test_a_second_process_has_its_own_startup_after_the_idle_between(resumed):
    phases = analyse(two_runs(resumed)).phases
    startups = [p for p in phases if p.name == "startup"]
    assert [round(p.end_t_s) for p in startups] == [10, 128]
    assert startups[1].start_t_s == pytest.approx(118, abs=3)
    assert any(p.name == "idle" and p.start_t_s <= 90 and p.end_t_s >= 117 for p in phases)
    epochs = [p.epoch for p in phases if p.name == "train"]
    assert epochs == ([1, 2, 3, 4, 5, 6] if resumed else [1, 2, 3, 1, 2, 3])


def test_a_run_that_stopped_early_ends_in_its_final_evaluation():
    run = run_of(epochs=6, args={"epochs": 300, "time": None})
    stopped = dataclasses.replace(run, recording=dataclasses.replace(run.recording, exit_code=0))
    assert analyse(stopped).phases[-1].name == "final evaluation"
    assert analyse(run).phases[-1].name in {"train", "checkpoint"}


def test_validations_that_shrink_are_as_long_as_power_tells_where_utilisation_is_of_moments():
    """Their batches take seconds: a reading each 5 s is 0 or 100 %, and their power is even."""
    random, util, power, rows, lengths = np.random.default_rng(3), [0.0] * 6, [40.0] * 6, [], []
    for number in range(1, 21):
        lengths.append(5.0 * round((40 + 160 * 0.8**number) / 5))
        validated = round(lengths[-1] / 5)
        util += [95.0] * 100 + [100.0 * (value < 0.4) for value in random.random(validated)]
        power += [250.0] * 100 + [150.0] * validated
        rows.append((number, 5.0 * len(util)))
    run = make_run(util + [95.0] * 20, interval_s=5.0, rows=rows, quantities={"power_w": power + [250.0] * 20})
    ends = build_context(run, Options()).epoch_ends.all[1:]
    assert [end.validation_s for end in ends] == pytest.approx(lengths[1:], abs=12)


def test_an_epoch_that_would_be_validation_throughout_is_none():
    """Utilisation is 100 % for 15 s in the middle of each epoch, and 80 % before and after."""
    parts = [(80, 20), (100, 15), (80, 25)] * 6
    run = make_run(readings((0, 10), *parts), rows=[(n, 10 + 60 * n) for n in range(1, 7)])
    analysis = analyse(run)
    assert {phase.name for phase in analysis.phases} == {"startup", "train"}
    assert "Validate on fewer images" not in analysis.verdict.text
