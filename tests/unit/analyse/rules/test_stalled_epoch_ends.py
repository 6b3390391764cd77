"""What the end of every epoch waits for is a finding, where lines of code or the kernel tell of it."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run, readings
from support.stacks import LOADER, LOGS, READS, SELECT, TRAINER, TRAINS, process

from gpu_report.analyse import analyse
from gpu_report.analyse.rules.drops.stalled_epoch_ends import _with_a_row
from gpu_report.model import Frame, InsideEpoch, InsideRun, Phase, ProcessWait, YoloRun
from gpu_report.render.what_to_change import listed_changes

STARTUP_S, TRAIN_S, EPOCHS = 20.0, 60.0, 6
FILE = "/mnt/x/last.pt"


def run_with(stack, part="checkpoint", end_s=15.0, main_cpu_pct=100.0, beside=(), wait=False, train_s=TRAIN_S):
    """Return a run in which the main process stands in a stack at the end of every epoch.

    All last for `end_s`; where that is a list, each for its own.
    """
    phases, epochs, stays, util, host, waits = [], [], [], [(0, STARTUP_S)], [(50, STARTUP_S)], []
    at = STARTUP_S
    each_s = end_s if isinstance(end_s, list) else [end_s] * EPOCHS
    for epoch, lasts_s in enumerate(each_s, 1):
        ends = at + train_s
        epochs.append(InsideEpoch(epoch, 1, at, ends, 1000, 10, 0.1, 0.1, 0.1, 1.0, 0.01))
        phases += [Phase("train", epoch, at, ends, "inside"), Phase(part, epoch, ends, ends + lasts_s, "inside")]
        stays += [(at, ends, TRAINS), (ends, ends + lasts_s, stack)]
        util += [(90, train_s), (0, lasts_s)]
        host += [(100, train_s), (main_cpu_pct, lasts_s)]
        if wait:
            waits.append(ProcessWait(ends, ends + lasts_s, 1, "main", "D", "folio_wait", "write", FILE, "nfs4"))
        at = ends + lasts_s
    table = pd.DataFrame(
        [(cpu, 0.0) for cpu, seconds in host for _ in range(round(seconds))],
        columns=["main_cpu_pct", "workers_cpu_pct"],
    ).assign(cpu_pct=30.0, workers=8.0, busiest_worker_cpu_pct=0.0)
    table.insert(0, "t_s", [float(second) for second in range(1, len(table) + 1)])
    inside = InsideRun(1, 0, 1, "train", {}, tuple(phases), tuple(epochs))
    made = make_run(readings(*util), duration_s=at)
    stacks = (process(*stays), *beside)
    return dataclasses.replace(made, inside=(inside,), host=table, stacks=stacks, waits=tuple(waits))


def held(run):
    return [f for f in analyse(run).findings if f.rule == "held-epoch-end"]


@pytest.mark.parametrize("part", ["checkpoint", "validation"])
@pytest.mark.parametrize(("cpu_pct", "cause"), [(100.0, "main-process"), (1.0, "trainer-blocked")])
def test_a_callback_at_the_end_of_every_epoch_is_one_finding_with_its_line(part, cpu_pct, cause):
    analysis = analyse(run_with(LOGS, part, main_cpu_pct=cpu_pct))
    (finding,) = [f for f in analysis.findings if f.rule == "held-epoch-end"]
    assert (finding.cause.name, len(finding.each)) == (cause, EPOCHS)
    assert (finding.where[0].function, finding.where[0].line) == ("log_images", 41)
    assert "Look at `log_images` (callbacks.py:41): the GPU was idle" in analysis.verdict.text
    assert {row.name: round(row.gpu_seconds) for row in analysis.ledger}[cause] == 15 * EPOCHS
    assert "(epochs up to 1.2\u00d7 faster without)" in analysis.verdict.sentences[0].text
    assert "Waiting at the ends of epochs took 20 % of the epochs' time" in analysis.verdict.text
    assert finding.share_of_training == pytest.approx(0.2, abs=0.005)  # of the same: no training step waited
    assert "% of training time, not counting the ends of epochs." in analysis.verdict.text
    how = "a background thread or process" if cause == "trainer-blocked" else "another process, less often"
    assert how in finding.advice[0].text
    assert listed_changes(analysis)[0].short.startswith("Run `log_images` (callbacks.py:41) in ")
    limit = next(each for each in analysis.speedup_limits if each.cause == cause)
    assert limit.epoch_s_now == pytest.approx(75, abs=1)
    assert limit.epoch_s_at_best == pytest.approx(60, abs=1.5)


def test_a_callback_that_grows_is_looked_for_once_with_all_that_it_took():
    analysis = analyse(run_with(LOGS, end_s=[5.0 + 12 * epoch for epoch in range(9)]))
    assert {finding.rule for finding in analysis.findings} >= {"held-epoch-end", "epochs-slowing"}
    looks = [each.text for each in analysis.verdict.sentences if "Look at" in each.text]
    assert looks[0].startswith("Look at `log_images` (callbacks.py:41): the GPU was idle for 7 min 55 s")
    assert len(looks) == 1


def test_what_yolo_does_itself_is_what_the_end_of_an_epoch_is_made_of():
    assert held(run_with(TRAINS)) == []


def test_a_callback_between_the_batches_of_a_validation_takes_its_own_time_alone():
    """4 s at the beginning and 4 s at the end of a validation of 40 s, in which the GPU works."""
    run = run_with(TRAINS, "validation", end_s=40.0)
    (main,) = run.stacks
    stays = []
    for start, end in zip(main.start_s.tolist(), main.end_s.tolist(), strict=True):
        if end - start == 40.0:
            stays += [(start, start + 4, LOGS), (start + 4, end - 4, TRAINS), (end - 4, end, LOGS)]
        else:
            stays.append((start, end, TRAINS))
    (finding,) = held(dataclasses.replace(run, stacks=(process(*stays),)))
    assert finding.took_s == pytest.approx(8 * EPOCHS, rel=0.05)


def test_a_short_span_is_drawn_out_until_a_reading_lies_in_it():
    context = SimpleNamespace(run=SimpleNamespace(recording=SimpleNamespace(interval_s=1.0)))
    assert _with_a_row(context, (8.0, 9.0)) == (7.5, 9.5)
    assert _with_a_row(context, (8.0, 20.0)) == (8.0, 20.0)


def test_two_callbacks_are_two_findings():
    run = run_with(LOGS, end_s=16.0)
    (main,) = run.stacks
    other = (LOGS[0]._replace(function="upload", line=60), *LOGS[1:])
    stays = []
    for start, end in zip(main.start_s.tolist(), main.end_s.tolist(), strict=True):
        half = (start + end) / 2
        stays += [(start, half, LOGS), (half, end, other)] if end - start == 16.0 else [(start, end, TRAINS)]
    found = held(dataclasses.replace(run, stacks=(process(*stays),)))
    assert {finding.where[0].function for finding in found} == {"log_images", "upload"}
    assert {len(finding.each) for finding in found} == {EPOCHS}


def test_a_wait_for_a_pipe_or_for_what_is_read_is_no_slow_disk_of_the_project():
    run = run_with(TRAINS, main_cpu_pct=1.0, wait=True)
    pipes = tuple(dataclasses.replace(wait, file="pipe", filesystem="") for wait in run.waits)
    assert held(dataclasses.replace(run, waits=pipes)) == []
    reads = tuple(dataclasses.replace(wait, call="openat") for wait in run.waits)
    (finding,) = held(dataclasses.replace(run, waits=reads))
    assert finding.advice == ()


def test_what_comes_once_is_no_habit():
    run = run_with(LOGS, end_s=40.0)
    (main,) = run.stacks
    often = main.number == main.number[1]
    often[1] = False
    once = dataclasses.replace(main, number=np.where(often, main.number[0], main.number))
    assert held(dataclasses.replace(run, stacks=(once,))) == []


def test_little_of_all_epochs_is_not_worth_a_change():
    assert held(run_with(LOGS, end_s=2.0)) == []


def test_a_disk_that_takes_long_to_write_to_is_told_with_the_file():
    analysis = analyse(run_with(TRAINS, main_cpu_pct=1.0, wait=True))
    (finding,) = [f for f in analysis.findings if f.rule == "held-epoch-end"]
    assert finding.cause.name == "trainer-blocked"
    assert FILE in finding.cause.explanation
    assert analysis.verdict.text.startswith("Save to a local disk (set `project`): the GPU was idle")


@pytest.mark.parametrize(("period", "shorts"), [(1, ["Leave out `save_period=1`"]), (10, []), (-1, []), (None, [])])
def test_a_file_of_its_own_for_each_epoch_is_named_beside_where_to_save(period, shorts):
    run = dataclasses.replace(
        run_with(TRAINS, main_cpu_pct=1.0, wait=True),
        yolo_runs=(YoloRun(1, None, {} if period is None else {"save_period": period}, "recorded", None),),
    )
    (finding,) = held(run)
    assert [each.short for each in finding.advice] == ["Save to a local disk (set `project`)", *shorts]


def test_a_callback_that_writes_to_such_a_disk_is_told_once_and_as_a_callback():
    (finding,) = held(run_with(LOGS, main_cpu_pct=1.0, wait=True))
    assert finding.where[0].function == "log_images"
    assert [each.argument for each in finding.advice] == [None]  # nothing of where to save to


def test_a_validation_that_waits_for_its_workers_has_their_cause():
    workers = process((0, 1000, READS), role="worker 0", pid=2)
    waits = (SELECT, LOADER, TRAINER)
    (finding,) = held(run_with(waits, "validation", main_cpu_pct=1.0, beside=(workers,)))
    assert finding.cause.name == "input-latency"
    assert finding.where[0].function == "read_slowly"


def test_a_validation_that_waits_for_its_first_batch_alone_is_no_finding():
    waits = (SELECT, LOADER, TRAINER)
    workers = process((0, 1000, READS), role="worker 0", pid=2)
    assert held(run_with(waits, "validation", end_s=2.0, main_cpu_pct=1.0, train_s=20.0, beside=(workers,))) == []
    assert held(run_with(waits, "validation", end_s=4.0, main_cpu_pct=1.0, train_s=20.0, beside=(workers,))) != []


def test_without_stacks_nobody_knows():
    assert held(dataclasses.replace(run_with(LOGS), stacks=())) == []


VALIDATOR = Frame("/venv/lib/python3.11/site-packages/ultralytics/engine/validator.py", 228, "__call__")
CALLS = Frame("/venv/lib/python3.11/site-packages/ultralytics/engine/validator.py", 380, "run_callbacks")
POSTPROCESS = Frame("/home/me/validator.py", 20, "postprocess")


@pytest.mark.parametrize(("called", "how"), [((), "for all images at once"), ((CALLS,), "in another process")])
def test_what_a_validation_needs_cannot_be_done_in_another_process(called, how):
    """A callback can be, for YOLO uses nothing that it gives."""
    analysis = analyse(run_with((POSTPROCESS, *called, VALIDATOR, TRAINER), "validation", main_cpu_pct=100.0))
    (finding,) = [f for f in analysis.findings if f.rule == "held-epoch-end"]
    assert how in finding.advice[0].text
