"""Memory that grows over epochs, and what looks like it: a step, an allocator that settles, other processes."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import PROCESSES, make_run
from support.samples import SAMPLES

from gpu_report.analyse import analyse
from gpu_report.analyse.signals.gpu.gpu_memory import GpuMemory
from gpu_report.analyse.signals.gpu.memory_growth import find_growth
from gpu_report.analyse.signals.thresholds import GROWTH_SHARE
from gpu_report.analyse.timeline.training_epochs import TrainingEpoch, TrainingEpochs
from gpu_report.analyse.timeseries.growth_fit import fit_growth, theil_sen
from gpu_report.load import load_run
from gpu_report.model import InsideEpoch, InsideRun, MemoryHolder, Phase, Progress, YoloRun
from gpu_report.render.sentence_kinds import verdict_text

NAN = float("nan")
EPOCH_S, EPOCHS, STARTUP_S = 20, 10, 10
SECONDS = STARTUP_S + EPOCH_S * EPOCHS
BASE_MIB = 20_000.0


def leak_mib(each=1000.0, first=5, last=EPOCHS):
    """Return memory that is taken anew in the middle of every epoch from `first` to `last`, on top of BASE_MIB."""
    epoch = np.clip((np.arange(SECONDS) - STARTUP_S + EPOCH_S // 2) // EPOCH_S, 0, EPOCHS)
    return BASE_MIB + each * np.clip(np.minimum(epoch, last) - first + 1, 0, None)


def training(memory, epochs_asked=EPOCHS, **changes):
    rows = [(n + 1, STARTUP_S + EPOCH_S * (n + 1)) for n in range(EPOCHS)]
    util = [0] * STARTUP_S + [85] * (SECONDS - STARTUP_S)
    run = make_run(util, rows=rows, quantities={"memory_used_mib": list(memory)}, epochs_asked=epochs_asked)
    return dataclasses.replace(run, **changes)


def with_processes(run, *rows):
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in rows], columns=PROCESSES)
    return dataclasses.replace(run, processes=table)


def grown(run):
    return [finding for finding in analyse(run).findings if finding.rule == "memory-growth"]


def value(finding, text):
    return next(e.value for e in finding.evidence if e.text == text)


def test_a_leak_is_told_with_its_rate_and_when_the_card_would_be_full():
    (finding,) = grown(training(leak_mib(), epochs_asked=12))
    assert finding.severity == "warning"
    assert finding.cause.name == "memory-growth"
    assert (finding.gpu, finding.epoch) == (0, 5)
    first_s, last_s = STARTUP_S + 4.5 * EPOCH_S, STARTUP_S + 9.5 * EPOCH_S
    assert (finding.start_t_s, finding.end_t_s) == (pytest.approx(first_s), pytest.approx(last_s))
    assert value(finding, "growth per epoch (median slope)") == pytest.approx(1000 / 1024, rel=0.02)
    left = (143_771 - BASE_MIB - 6000) / 1000
    assert value(finding, "epochs until it is full at this rate") == pytest.approx(left, rel=0.02)
    assert "grew 1000 MiB an epoch: full after about 118 more epochs" in finding.summary
    assert "UTC" not in finding.summary  # nobody knows that it still goes on
    assert "grew 1000 MiB an epoch" in analyse(training(leak_mib())).verdict.text


def test_it_is_critical_where_the_card_would_be_full_within_the_epochs_to_come():
    assert [f.severity for f in grown(training(leak_mib(), epochs_asked=400))] == ["critical"]
    assert [f.severity for f in grown(training(leak_mib(), epochs_asked=None))] == ["warning"]


def test_it_is_critical_where_it_ran_out():
    end_s = float(SECONDS)
    told = InsideRun(
        1, 0, 7, "train", {}, (Phase("startup", None, 0.0, STARTUP_S, ""), *phases(end_s)), (), "exception"
    )
    run = training(leak_mib())
    (finding,) = grown(dataclasses.replace(run, inside=(dataclasses.replace(told, error="OutOfMemoryError"),)))
    assert finding.severity == "critical"
    assert finding.summary.endswith("until memory ran out")  # most of the card was free
    filled = dataclasses.replace(run, samples=run.samples.assign(memory_used_mib=leak_mib(each=20_500)))
    (none_left,) = grown(dataclasses.replace(filled, inside=(dataclasses.replace(told, error="OutOfMemoryError"),)))
    assert none_left.summary.endswith("until none was left")
    (other,) = grown(dataclasses.replace(run, inside=(dataclasses.replace(told, error="ValueError"),)))
    assert other.summary.endswith("more epochs")  # its epochs are over: no time of day
    (full,) = grown(training(leak_mib(each=20_500)))
    assert (full.severity, full.summary.endswith("until the card was full")) == ("critical", True)


def test_memory_that_grew_until_yolo_halved_the_batch_is_no_batch_that_is_too_large():
    """A trainer that keeps its batches: 224 GiB a minute, and YOLO went on with half the batch (H200, 2026-11-27)."""
    again_s = SECONDS - 12.0
    epochs = tuple(
        InsideEpoch(1, attempt, start_s, None, None, 100, 0.1, 0.1, 0.1)
        for attempt, start_s in ((1, float(STARTUP_S)), (2, again_s))
    )
    begin, train = Phase("startup", None, 0.0, STARTUP_S, ""), Phase("train", 1, STARTUP_S, SECONDS, "callbacks")
    told = InsideRun(1, 0, 7, "train", {"batch": 32}, (begin, train), epochs)
    memory = BASE_MIB + 500.0 * np.clip(np.arange(SECONDS) - STARTUP_S, 0, again_s - STARTUP_S)
    run = make_run(
        [0] * STARTUP_S + [85] * (SECONDS - STARTUP_S),
        quantities={"memory_used_mib": memory.tolist()},
        epochs_asked=EPOCHS,
    )
    yolo = YoloRun(1, None, {"batch": 64, "epochs": EPOCHS}, "recorded", None)
    found = analyse(dataclasses.replace(run, inside=(told,), yolo_runs=(yolo,)))
    (finding,) = [each for each in found.findings if each.rule == "memory-growth"]
    assert finding.severity == "critical"
    assert finding.summary.endswith(", until YOLO lowered `batch` from 64 to 32")
    assert [each for each in found.findings if each.rule == "environment"] == []
    assert found.verdict.sentences[0].findings == (finding.id,)


def phases(end_s):
    starts = [float(STARTUP_S + EPOCH_S * n) for n in range(EPOCHS)]
    ends = [*starts[1:], end_s]
    return [Phase("train", n + 1, a, b, "") for n, (a, b) in enumerate(zip(starts, ends, strict=True))]


def test_growth_that_came_to_an_end_has_no_forecast():
    (finding,) = grown(training(leak_mib(first=2, last=6), epochs_asked=400))
    assert finding.severity == "warning"
    assert finding.summary.endswith("then stopped")


def counted(run, tensors_mib):
    """Return the run with what tensors had, by PyTorch's counter, every 3 s."""
    progress = tuple(Progress(float(t_s), 1, 0.0, tensors_mib(t_s)) for t_s in range(STARTUP_S, SECONDS, 3))
    told = InsideRun(1, 0, 7, "train", {}, tuple(phases(SECONDS)), (), "finished", progress=progress)
    return dataclasses.replace(run, inside=(told,))


@pytest.mark.parametrize(
    ("each_mib", "multi_scale", "last", "is_leak"),
    [
        (50.0, 0.0, 6, True),  # 5,000 MiB in all
        (0.0, 0.0, 6, False),
        (None, 0.0, 6, True),  # nobody counted
        (None, 0.5, 6, False),
        (0.0, 0.5, EPOCHS, False),
        (50.0, 0.5, EPOCHS, True),
        (0.0, 0.0, EPOCHS, True),  # goes on, though not in PyTorch's tensors: another library's
    ],
)
def test_what_the_allocator_keeps_for_its_largest_batch_is_no_leak(each_mib, multi_scale, last, is_leak):
    run = training(leak_mib(first=2, last=last), epochs_asked=10)
    args = {"epochs": 10, "imgsz": 640, "multi_scale": multi_scale}
    run = dataclasses.replace(run, yolo_runs=(dataclasses.replace(run.yolo_runs[0], args=args),))
    run = counted(run, lambda t_s: None if each_mib is None else 3000.0 + each_mib * t_s)
    (finding,) = grown(run)
    assert (finding.expected, finding.severity) == ((False, "warning") if is_leak else (True, "info"))
    assert analyse(run).verdict.text.startswith("Find what keeps GPU memory") == is_leak


def test_what_is_smaller_than_the_least_growth_is_none():
    share = GROWTH_SHARE * BASE_MIB
    assert len(grown(training(leak_mib(each=1.1 * share / 6)))) == 1
    assert grown(training(leak_mib(each=0.9 * share / 6))) == []


@pytest.mark.parametrize("epoch", [2, 5, 8])
def test_a_step_that_stays_is_none(epoch):
    assert grown(training(leak_mib(each=9000, first=epoch, last=epoch))) == []


def test_two_steps_are_none():
    memory = leak_mib(each=4000, first=4, last=4) + leak_mib(each=5000, first=8, last=8) - BASE_MIB
    assert grown(training(memory)) == []


def test_what_is_taken_and_given_back_is_none():
    memory = leak_mib(first=4, last=4, each=6000)
    memory[STARTUP_S + 7 * EPOCH_S :] = BASE_MIB
    assert grown(training(memory)) == []


def test_the_first_epoch_and_validations_own_peak_are_none():
    memory = np.full(SECONDS, BASE_MIB)
    memory[: STARTUP_S + EPOCH_S] = np.linspace(500, BASE_MIB, STARTUP_S + EPOCH_S)
    for n in range(1, EPOCHS + 1):
        memory[STARTUP_S + EPOCH_S * n - 3 : STARTUP_S + EPOCH_S * n] += 4000
    assert grown(training(memory)) == []


def test_a_missing_reading_is_no_growth():
    assert grown(training([NAN] * SECONDS)) == []
    run = training(leak_mib())
    gpus = tuple(dataclasses.replace(gpu, memory_total_mib=None) for gpu in run.gpus)
    (unknown,) = grown(dataclasses.replace(run, gpus=gpus))
    assert "at this rate" not in unknown.summary  # how large the card is is not known


def test_where_epochs_are_not_known_it_is_told_by_the_minute():
    run = dataclasses.replace(training(leak_mib()), epoch_rows=(), yolo_runs=())
    (finding,) = grown(run)
    assert " a minute" in finding.summary
    assert value(finding, "growth per minute") == pytest.approx(3000 / 1024, rel=0.05)


def test_a_leak_within_two_epochs_is_seen_by_the_second():
    memory = np.full(SECONDS, BASE_MIB)
    for step in range(6):
        memory[150 + 5 * step :] += 3072
    (finding,) = grown(training(memory))
    assert (finding.start_t_s, finding.end_t_s) == (pytest.approx(150, abs=1), pytest.approx(175, abs=1))


def test_a_leak_from_the_start_begins_in_the_second_epoch_and_ends_with_its_last_step():
    step_s = 6
    memory = BASE_MIB + 400.0 * (np.clip(np.arange(SECONDS) - STARTUP_S, 0, None) // step_s)
    (finding,) = grown(training(memory))
    second_s = STARTUP_S + EPOCH_S
    assert second_s < finding.start_t_s <= second_s + step_s
    assert SECONDS - step_s <= finding.end_t_s < SECONDS


OTHER = (
    (12.0, 0, 41, "python train.py", BASE_MIB, "appeared", "trainer", NAN),
    *(
        (95.0 + 20 * n, 0, 77, "serve", 1000.0 * (n + 1), "changed" if n else "appeared", "other", 0.0)
        for n in range(6)
    ),
)


@pytest.mark.parametrize("owner", ["other", "not visible", "unknown"])
def test_what_grows_is_another_process(owner):
    rows = [(*row[:6], owner if row[2] == 77 else row[6], row[7]) for row in OTHER]
    memory = np.full(SECONDS, BASE_MIB)
    for n in range(6):
        memory[92 + 20 * n :] += 1000.0  # seen 3 s later
    assert grown(with_processes(training(memory), *rows)) == []
    assert len(grown(training(memory))) == 1  # nobody recorded whose it was


def test_a_leak_beside_another_process_is_its_own_and_the_other_is_told():
    memory = leak_mib()
    memory[97:] += 842
    run = with_processes(training(memory), OTHER[0], (100.0, 0, 77, "serve", 842.0, "appeared", "other", 0.0))
    (finding,) = grown(run)
    assert finding.summary.startswith("The training's memory on GPU 0 grew 1000 MiB an epoch")
    assert value(finding, "held by other processes, at most (not counted)") == pytest.approx(842 / 1024)


def test_a_process_whose_memory_the_driver_does_not_tell_leaves_nothing_to_judge():
    run = with_processes(training(leak_mib()), OTHER[0], (13.0, 0, 77, "serve", NAN, "appeared", "other", 0.0))
    assert grown(run) == []


MOSAIC = {"epochs": EPOCHS, "close_mosaic": 4}  # the first epoch without is 7


def test_the_step_where_the_mosaic_closes_is_named_as_that():
    yolo = (YoloRun(1, None, MOSAIC, "recorded", None),)
    memory = leak_mib(each=3000, first=7, last=7)
    (finding,) = grown(training(memory, yolo_runs=yolo))
    assert (finding.severity, finding.expected, finding.epoch) == ("info", True, 7)
    assert "rose by 2.9 GiB when the mosaic closed" in finding.summary
    assert grown(training(memory, yolo_runs=())) == []
    assert grown(training(leak_mib(each=700, first=7, last=7), yolo_runs=yolo)) == []


def test_a_leak_is_one_also_where_the_mosaic_closes():
    run = training(leak_mib(), yolo_runs=(YoloRun(1, None, MOSAIC, "recorded", None),))
    assert [f.severity for f in grown(run)] == ["warning"]


def test_two_trainings_of_one_recording_are_judged_each():
    """The second takes more than the first: that is no growth."""
    util = ([0] * STARTUP_S + [85] * 5 * EPOCH_S) * 2
    used = ([500.0] * STARTUP_S + [BASE_MIB] * 5 * EPOCH_S) + ([500.0] * STARTUP_S + [2 * BASE_MIB] * 5 * EPOCH_S)
    half = STARTUP_S + 5 * EPOCH_S
    rows = [(n + 1, STARTUP_S + EPOCH_S * (n + 1)) for n in range(5)]
    run = make_run(util, rows=rows, quantities={"memory_used_mib": used})
    second = [
        dataclasses.replace(row, run=2, start_t_s=row.start_t_s + half, row_t_s=row.row_t_s + half)
        for row in run.epoch_rows
    ]
    assert grown(dataclasses.replace(run, epoch_rows=(*run.epoch_rows, *second))) == []


def allocator_mib(random, epochs, epoch_s, spread):
    """Return an allocator's reserve: of the batches so far the most that one needed, in blocks of 20 MiB."""
    need = BASE_MIB * (1 + spread * random.normal(size=(epochs * epoch_s, 3)).max(axis=1))
    return np.round(np.maximum.accumulate(need) / 20) * 20


@pytest.mark.parametrize(("epochs", "epoch_s"), [(8, 10), (30, 30), (4, 150), (1, 600)])
def test_an_allocator_that_settles_is_none_and_a_leak_on_top_of_it_is_one(epochs, epoch_s):
    random = np.random.default_rng(20261121)
    parts = tuple(TrainingEpoch(n + 1, ((n * epoch_s, (n + 1) * epoch_s - 2.0),)) for n in range(epochs))
    t_s = np.arange(epochs * epoch_s, dtype=float)
    false = missed = 0
    for _ in range(20):
        own = allocator_mib(random, epochs, epoch_s, 0.05)
        leak = 0.3 * BASE_MIB * np.clip(t_s / t_s[-1] - 0.4, 0, None)
        false += find_growth(GpuMemory(0, t_s, own, None, None), TrainingEpochs(parts), None) is not None
        missed += find_growth(GpuMemory(0, t_s, own + leak, None, None), TrainingEpochs(parts), None) is None
    assert (false, missed) == (0, 0)


def test_a_ramp_is_found_between_its_levels_and_a_fall_is_none():
    y = np.array([1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 4.0])
    ramp = fit_growth(np.arange(7.0), y)
    assert (ramp.first, ramp.last, ramp.fit) == (2, 5, pytest.approx(1.0))
    assert (ramp.before, ramp.rise) == (pytest.approx(1.0), pytest.approx(3.0))
    assert fit_growth(np.arange(7.0), y[::-1]) is None
    assert fit_growth(np.arange(7.0), np.ones(7)) is None


def test_the_median_slope_bears_an_outlier():
    x = np.arange(9.0)
    y = 5.0 * x
    y[4] = 1000.0
    assert theil_sen(x, y) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("name", "severity", "start_s", "end_s"),
    # the command came at 76.1 and 161.5; memory was taken with the next batches, every 5 s
    [("m-other-process-leak", "warning", 82, 103), ("faulted", "critical", 167, 198)],
)
def test_the_leaks_of_the_sample_runs_are_found(name, severity, start_s, end_s):
    (finding,) = grown(load_run(SAMPLES / name))
    assert finding.severity == severity
    assert (finding.start_t_s, finding.end_t_s) == (pytest.approx(start_s, abs=1), pytest.approx(end_s, abs=1))
    grown_gib = value(finding, "memory after it") - value(finding, "memory before it (peak in training)")
    assert grown_gib == pytest.approx(19.3, abs=0.1)
    told = name == "m-other-process-leak"  # nvidia-smi's log names no processes
    assert finding.summary.startswith("The training's memory on GPU 0" if told else "Memory on GPU 0")


def told_of(holder, error=None):
    end_s = float(SECONDS)
    startup = Phase("startup", None, 0.0, STARTUP_S, "")
    told = InsideRun(1, 0, 7, "train", {}, (startup, *phases(end_s)), (), "exception" if error else "finished", error)
    return dataclasses.replace(training(leak_mib(), 400), inside=(dataclasses.replace(told, memory_holders=holder),))


HOLDER = MemoryHolder(150.0, "Sheet.seen", "class", "/a/train.py", "keep", 12, 100, 3000.0, 30, 900.0, 0, 1000.0)


def test_what_holds_the_tensors_is_named_in_the_headline_with_the_line_that_adds_to_it():
    run = told_of((dataclasses.replace(HOLDER, name="Sheet.older", t_s=100.0), HOLDER))
    (finding,) = grown(run)
    assert "grew 1000 MiB an epoch in `Sheet.seen`: full after" in finding.summary
    assert finding.advice[0].short == "Clear `Sheet.seen`, filled in `keep` (train.py:12): it keeps 2.9 GiB of tensors"
    assert value(finding, "tensors that it holds (last reading)") == 100
    said = [each.text for each in analyse(run).verdict.sentences]
    assert said[:2] == [f"{finding.advice[0].short}.", f"{finding.summary}."]
    sentences = analyse(told_of((HOLDER,), "OutOfMemoryError")).verdict.sentences
    assert (sentences[0].kind, sentences[0].text) == ("prevent", f"{finding.advice[0].short}.")
    assert sentences[1].kind == "ended"


def test_losses_with_their_graphs_are_named_by_their_number_and_a_small_holder_is_not():
    graphs = dataclasses.replace(HOLDER, with_graph=100, mib=0.1, new_mib=0.1)
    (finding,) = grown(told_of((graphs,)))
    assert finding.advice[0].short.startswith("Add `loss.item()` to `Sheet.seen`, filled in `keep` (train.py:12): ")
    assert finding.advice[0].short.endswith(" keeps 100 losses with their autograd graphs")
    (other,) = grown(told_of((dataclasses.replace(HOLDER, new_mib=100.0),)))
    assert (other.advice, "Sheet" in other.summary) == ((), False)


def test_memory_that_grows_on_each_of_several_gpus_is_one_finding():
    given = training(leak_mib())
    samples = pd.concat([given.samples, given.samples.assign(gpu=1)], ignore_index=True)
    gpus = (*given.gpus, dataclasses.replace(given.gpus[0], index=1))
    (alone,) = [each for each in analyse(given).findings if each.rule == "memory-growth"]
    both = analyse(dataclasses.replace(given, samples=samples, gpus=gpus))
    (finding,) = [each for each in both.findings if each.rule == "memory-growth"]
    assert finding.gpus == (0, 1)
    assert finding.summary == alone.summary.replace("on GPU 0", "on each of GPUs 0 and 1")
    assert "GPU 0 grew" not in both.verdict.text


def test_what_filled_the_memory_within_an_epoch_or_two_is_named_though_readings_are_too_few():
    """A bank of examples: 150 MiB a batch, and a process that may use 36 GB was full after 147 (H200, 2026-11-28)."""
    end_s, startup = 40.0, Phase("startup", None, 0.0, 10.0, "")
    train = (Phase("train", 1, 10.0, 25.0, "inside"), Phase("train", 2, 25.0, end_s, "inside"))
    epochs = (InsideEpoch(1, 1, 10.0, 25.0, 2400, 75, 0.1, 0.1, 0.1), InsideEpoch(2, 1, 25.0, None, 0, 71, 0, 0, 0))
    bank = MemoryHolder(39.0, "Bank.items", "instance", "/a/bank.py", "add", 7, 147, 22_050.0, 54, 8_100.0, 0)
    told = InsideRun(1, 0, 7, "train", {"batch": 32}, (startup, *train), epochs, "exception", "OutOfMemoryError")
    run = make_run([0] * 10 + [85] * 30, quantities={"memory_used_mib": [700.0] * 10 + [34_000.0] * 30})

    def filled(holder):
        return dataclasses.replace(run, inside=(dataclasses.replace(told, memory_holders=(holder,)),))

    (finding,) = grown(filled(bank))
    assert finding.summary == "`Bank.items` kept 21.5 GiB (150 MiB a batch) on GPU 0, until memory ran out"
    assert value(finding, "batches trained by then") == 147
    analysis = analyse(filled(bank))
    clear = "Clear `Bank.items`, filled in `add` (bank.py:7): it keeps 21.5 GiB of tensors."
    assert verdict_text(analysis).startswith(f"{clear} The training ran out")  # its name stays code there
    assert grown(filled(dataclasses.replace(bank, mib=5_000.0))) == []

    def reported(mib):
        points = ((12.0 + 3 * n, 10 * n % 75, mib(10 * n)) for n in range(1, 10))
        progress = tuple(Progress(t_s, batches, 0.0, allocated) for t_s, batches, allocated in points)
        return dataclasses.replace(run, inside=(dataclasses.replace(told, progress=progress),))

    (unnamed,) = grown(reported(lambda batches: 700.0 + 150 * batches))
    assert " a batch (" in unnamed.summary
    assert unnamed.summary.endswith(" in all), until memory ran out")
    assert analyse(reported(lambda batches: 700.0 + 150 * batches)).verdict.text.startswith("Find what")
    assert grown(reported(lambda _: 700.0)) == []
    assert grown(reported(lambda batches: 7000.0 + 3 * batches)) == []  # a small part of what was in use
    assert grown(reported(lambda batches: 700.0 if batches < 40 else 9000.0)) == []  # once
    assert grown(reported(lambda _: None)) == []
    assert grown(dataclasses.replace(run, inside=(dataclasses.replace(told, error="ValueError"),))) == []
