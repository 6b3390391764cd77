"""What could be won, and what to change for it: held against invented runs, and against a repair that was made."""

import dataclasses
import math
from statistics import fmean, median
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings
from support.samples import SAMPLES, analysis_of
from support.stacks import LOGS, TRAINS, WAITS, process

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.analyse.advice import lasting_limits, temporary_limits
from gpu_report.analyse.advice.fixes import cache_in_memory, epoch_without_data_wait_s
from gpu_report.analyse.advice.larger_batches import LargerBatches, outweighed_by
from gpu_report.analyse.advice.run_settings import run_settings_of
from gpu_report.analyse.build_context import build_context
from gpu_report.load import load_run
from gpu_report.model import (
    Advice,
    CollectionCounts,
    EpochRow,
    Frame,
    Gpu,
    InsideEpoch,
    InsideRun,
    LockHeld,
    LongCollections,
    Options,
    Phase,
    Progress,
    Setting,
    SettingLocation,
    SpeedupLimit,
)
from gpu_report.render.page.sections.speedup_limits import note
from gpu_report.render.run.summary_json import build_summary
from gpu_report.render.run.terminal import render_markdown, render_text
from gpu_report.render.speedup_rows import not_listed, shown_rows

NAN = float("nan")
MASKS = Frame("/venv/lib/python3.11/site-packages/ultralytics/utils/loss.py", 659, "calculate_segmentation_loss")
ARGS = {"workers": 2, "batch": 128, "cache": False, "imgsz": 640, "nbs": 64, "epochs": 6, "close_mosaic": 0}
SETTINGS = {"workers": 2, "batch": 128, "images": 4000, "imgsz": 640, "cache": None, "world_size": 1}
STARVED = {  # host columns of a loader that cannot keep up
    "cpu_pct": 15.0,
    "main_cpu_pct": 30.0,
    "workers_cpu_pct": 198.0,
    "busiest_worker_cpu_pct": 99.0,
    "workers": 2.0,
    "memory_available_mib": 100_000.0,
    "io_pressure_pct": 0.0,
    "cpu_pressure_pct": 0.0,
    "memory_pressure_pct": 0.0,
}
LINK = ("generation", "width")
STARTS_S, EPOCHS = 10.0, (20.0,) * 6
LASTS_S = int(STARTS_S + sum(EPOCHS))


def starved_run(
    wait_s=15.0, util=20.0, args=ARGS, settings=SETTINGS, host=STARVED, cores=16, quantities=None, lengths_s=EPOCHS
):
    """Return six epochs of 20 s, of which the trainer waited `wait_s` for data, on a machine of 16 cores."""
    ends = [STARTS_S + sum(lengths_s[: n + 1]) for n in range(len(lengths_s))]
    spans = [(end - length, end) for end, length in zip(ends, lengths_s, strict=True)]
    phases = [Phase("startup", None, 0.0, STARTS_S, "inside")]
    phases += [Phase("train", n, start, end, "inside") for n, (start, end) in enumerate(spans, 1)]
    batches = math.ceil(4000 / settings["batch"])
    epochs = [InsideEpoch(n, 1, start, end, 4000, batches, wait_s, 0.1, 1.0) for n, (start, end) in enumerate(spans, 1)]
    inside = InsideRun(1, 0, 1, "train", settings, tuple(phases), tuple(epochs), "finished")
    memory = {"memory_used_mib": [20_000.0] * LASTS_S, **(quantities or {})}
    rows = [(n + 1, end) for n, end in enumerate(ends)]
    run = make_run(readings((0, STARTS_S), (util, sum(EPOCHS))), rows=rows, quantities=memory)
    table = pd.DataFrame({c.name: np.full(LASTS_S, host.get(c.name, np.nan)) for c in schema.HOST_QUANTITIES})
    table.insert(0, "t_s", np.arange(LASTS_S, dtype=float))
    return dataclasses.replace(
        run,
        inside=(inside,),
        host=table,
        recording=dataclasses.replace(run.recording, cores=cores),
        yolo_runs=(dataclasses.replace(run.yolo_runs[0], args=args),),
    )


def bound_of(run, cause):
    return next((limit for limit in analyse(run).speedup_limits if limit.cause == cause), None)


def changes(run):
    advice = [advice for finding in analyse(run).findings for advice in finding.advice]
    return {each.argument: each.to_value for each in advice if each.argument}


def test_an_epoch_that_waits_for_data_is_at_best_as_long_as_without_the_wait():
    limit = bound_of(starved_run(), "input-cpu")
    assert (limit.epoch_s_now, limit.epoch_s_at_best) == (20.0, 5.0)
    assert limit.speed_up_at_most == pytest.approx(4.0)


def test_without_callbacks_the_bound_is_what_the_gpu_was_busy():
    run = dataclasses.replace(starved_run(), inside=())
    limit = bound_of(run, "input-cpu")
    assert limit.epoch_s_at_best == pytest.approx(0.2 * limit.epoch_s_now, rel=0.01)


@pytest.mark.parametrize(("busy", "known"), [(0.12, True), (0.03, False)])
def test_a_gpu_that_is_hardly_busy_says_nothing_of_the_best_case(busy, known):
    assert (lasting_limits._by_utilisation("input-cpu", 50.0, [busy], None) is not None) == known


def test_workers_are_as_many_as_keep_up_and_no_more_than_the_cores_allow():
    assert changes(starved_run(wait_s=12.0))["workers"] == "6"  # 20 s become 8: 2 x 2.5 x 1.2
    assert changes(starved_run())["workers"] == "10"
    assert changes(starved_run(cores=8))["workers"] == "6"  # two cores are left to the rest of the training
    assert "workers" not in changes(starved_run(cores=4))
    assert "workers" not in changes(starved_run(cores=None))


def test_the_estimate_is_the_loaders_pace_or_the_bound():
    assert bound_of(starved_run(cores=8), "input-cpu").epoch_s_estimate == pytest.approx(20 * 2 / 6)
    assert bound_of(starved_run(), "input-cpu").epoch_s_estimate == pytest.approx(5.0, rel=0.1)


def test_cores_that_others_take_are_not_offered():
    crowded = {**STARVED, "cpu_pct": 15.0 + 50.0}  # 8 of 16 cores are others'
    assert changes(starved_run(host=crowded))["workers"] == "6"


@pytest.mark.parametrize(("argument", "cores"), [("workers", 16), ("cache", 4)])
def test_an_argument_that_this_version_does_not_have_is_not_named(argument, cores):
    args = {name: value for name, value in ARGS.items() if name != argument}
    assert argument in changes(starved_run(cores=cores))
    assert argument not in changes(starved_run(args=args, cores=cores))


def test_images_in_memory_are_what_is_left_where_the_cores_are_used_up():
    assert changes(starved_run()) == {"workers": "10"}
    assert changes(starved_run(cores=4)) == {"cache": "ram"}


def test_images_are_kept_in_memory_only_where_they_fit_twice():
    images_mib = 4000 * 640 * 640 * 3 / 2**20
    for free_mib, fits in ((2.01 * images_mib, True), (1.99 * images_mib, False)):
        host = {**STARVED, "memory_available_mib": free_mib}
        assert changes(starved_run(host=host, cores=4)) == ({"cache": "ram"} if fits else {})
    assert changes(starved_run(cores=4, settings={**SETTINGS, "cache": "ram"})) == {}
    assert changes(starved_run(cores=4, settings={**SETTINGS, "images": None})) == {}


@pytest.mark.parametrize(("ranks", "epoch_s"), [(1, 3.0), (2, 1.5)])
def test_images_in_memory_leave_the_cpu_of_the_workers_of_all_ranks(ranks, epoch_s):
    cpu = {"workers_cpu_pct": 60.0, "busiest_worker_cpu_pct": 20.0}
    signals = SimpleNamespace(within=cpu.get, loader=SimpleNamespace(reading=0.9))
    settings = SimpleNamespace(
        args={"cache": False}, cache_that_fits_mib=100.0, memory_free_mib=10_000.0, cached=False, ranks=ranks, workers=4
    )
    settings.has = settings.args.__contains__
    fix = cache_in_memory(settings, SpeedupLimit("input-storage", 20.0, 1.0, ""), signals)
    assert fix.epoch_s == pytest.approx(epoch_s)


READS = Frame("/venv/lib/python3.12/site-packages/ultralytics/utils/patches.py", 60, "imread")
LOOP = Frame("/venv/lib/python3.12/site-packages/torch/utils/data/_utils/worker.py", 300, "_worker_loop")


def test_workers_that_fill_the_cores_with_decoding_get_a_cache():
    full = {**STARVED, "workers_cpu_pct": 390.0, "workers": 4.0}
    run = starved_run(host=full, cores=4, settings={**SETTINGS, "workers": 4})
    assert "workers" not in changes(run)
    notes = [process((0, LASTS_S, (READS, LOOP)), role="worker", pid=pid) for pid in (2, 3)]
    run = dataclasses.replace(run, stacks=(process((0, LASTS_S, WAITS)), *notes))
    assert changes(run) == {"cache": "ram"}
    (limit,) = [limit for limit in analyse(run).speedup_limits if limit.fix == "cache=ram"]
    assert limit.epoch_s_estimate == pytest.approx(1.08 * 5.0)  # of 20 s, of which 15 are waits


def oversized(image_px, *, reading=True, **more):
    """Return a run whose images are so large on disk; its workers read (or compute) whenever they are waited for."""
    run = starved_run(settings={**SETTINGS, "image_px": image_px, **more})
    if reading is None:
        return run
    notes = [process((0, LASTS_S, (READS if reading else COMPUTES, LOOP)), role="worker", pid=pid) for pid in (2, 3)]
    return dataclasses.replace(run, stacks=(process((0, LASTS_S, WAITS)), *notes))


COMPUTES = Frame("/home/u/augment.py", 12, "rain")
RESIZE = "Resize the images once to 640 px (now 4,000)"


def resizing(run):
    return [a for finding in analyse(run).findings for a in finding.advice if a.short.startswith("Resize ")]


def test_images_far_larger_than_training_uses_are_resized_once():
    run = oversized(4000)
    (advice,) = resizing(run)
    assert advice.short == RESIZE
    assert "one of 39 pixels. Reading and decoding takes 100 % of the workers' time" in advice.text
    assert advice.gain_estimate == pytest.approx(1 - 1.08 * (1 - advice.gain_at_most))  # nothing else took their time
    kinds = [(each.kind, each.text.partition(":")[0]) for each in analyse(run).verdict.sentences]
    assert kinds[0] == ("fix", "Set `workers=10` (now 2)")  # as fast, and sooner done
    assert ("fix", f"Or {RESIZE.replace('R', 'r', 1)}") in kinds


def test_resizing_leads_where_it_reaches_far_more_than_an_argument():
    no_memory = {**STARVED, "memory_available_mib": 1000.0, "cpu_pct": 85.0}  # others leave cores for 3 workers
    sentences = analyse(dataclasses.replace(oversized(4000), host=starved_run(host=no_memory).host)).verdict.sentences
    assert sentences[0].text == f"{RESIZE}: epochs drop from 20.0 s to about 5.4 s, 3.7\u00d7 faster."
    assert [each.text[:18] for each in sentences if each.kind == "fix"][1:] == ["Set `workers=3` (n"]
    assert "projection" not in [each.kind for each in sentences]  # it would be of the argument


@pytest.mark.parametrize(
    ("run", "offered"),
    [
        (oversized(1280), True),
        (oversized(1279), False),
        (oversized(640), False),
        (oversized(None), False),
        (oversized(4000, cache="ram"), False),  # they are cached as large as training uses them
        (oversized(4000, reading=False), False),  # the workers do something else
        (oversized(4000, reading=None), True),  # nobody knows what they do
    ],
)
def test_which_images_are_resized(run, offered):
    assert len(resizing(run)) == offered


@pytest.mark.parametrize(
    ("told", "short"),
    [
        ([0.3, 4000, 0.1], "Resize images of over 640 px once (30 % of them, mostly 4,000 px)"),
        ([1.0, 4000, 0.025], RESIZE),
        ([0.3, 4000, 0.26], None),  # most of the pixels are of images that fit
        ([0.0, 640, 1.0], None),
        ([0.3, "4000"], None),
        (["x", None, []], None),
    ],
)
def test_of_images_of_many_sizes_the_larger_ones_are_resized(told, short):
    assert [each.short for each in resizing(oversized(640, scaled_down=told))] == ([short] if short else [])


def test_images_that_took_longer_for_a_while_are_resized_where_training_uses_few_of_their_pixels():
    run = oversized(640, scaled_down=[0.3, 4000, 0.1])
    busy = readings((0, STARTS_S), (90, 60), (10, sum(EPOCHS) - 60))
    samples = make_run(busy, rows=[(n + 1, row.row_t_s) for n, row in enumerate(run.epoch_rows)])
    momentary = dataclasses.replace(run, samples=samples.samples)
    (drop,) = [finding for finding in analyse(momentary).findings if finding.rule in {"drop", "sustained-low"}]
    assert drop.cause.name == "input-cpu"
    assert drop.advice[0].short == "Resize images of over 640 px once (30 % of them, mostly 4,000 px)"


IN_MIB = 640 * 640 * 3 * 2**2 / 2**20  # of 1,280 px without any compression


@pytest.mark.parametrize(("mib", "offered"), [(1.01 * IN_MIB, True), (0.99 * IN_MIB, False), (None, False)])
def test_images_of_unknown_size_are_resized_where_no_smaller_ones_take_so_many_bytes(mib, offered):
    """Photos of classification: 1 MiB each for imgsz=224 (H200, 2026-11-27)."""
    found = resizing(oversized(None, data_mib=mib and mib * SETTINGS["images"]))
    assert [each.gain_estimate for each in found] == ([None] if offered else [])
    assert all(" MiB each, for imgsz=640)" in each.short for each in found)


def test_without_stacks_nobody_says_what_resizing_wins():
    (advice,) = resizing(oversized(4000, reading=None))
    assert advice.gain_estimate is None
    first = analyse(oversized(4000, reading=None)).verdict.sentences[0]
    assert first.text.startswith("Set `workers=10`")


QUIET = {**STARVED, "workers_cpu_pct": 0.0, "busiest_worker_cpu_pct": 0.0, "main_cpu_pct": 0.0}


def test_images_that_take_long_to_come_are_asked_for_by_more_workers():
    assert changes(starved_run(host=QUIET)) == {"workers": "8"}


def test_workers_that_wait_need_no_core_each():
    waiting = {**STARVED, "workers_cpu_pct": 10.0, "busiest_worker_cpu_pct": 8.0, "main_cpu_pct": 0.0}
    assert changes(starved_run(host=waiting, cores=4))["workers"] == "4"  # ultralytics' own limit
    run = starved_run(host=waiting, cores=4)
    run = dataclasses.replace(run, recording=dataclasses.replace(run.recording, cores_online=64))
    assert changes(run)["workers"] == "8"


def test_nothing_is_advised_against_what_no_argument_removes():
    assert changes(starved_run(host=QUIET, wait_s=0.1)) == {}


def launch_bound_run(
    batch=4, quantities=None, peak_mib=2_000.0, util=28.0, workers_pct=50.0, wait_s=0.1, workers=8, cores=16, **settings
):
    host = {**STARVED, "main_cpu_pct": 103.0, "busiest_worker_cpu_pct": 10.0, "workers": float(workers)}
    host["workers_cpu_pct"] = workers_pct
    active = {"sm_active_pct": [7.0] * LASTS_S, "sm_occupancy_pct": [3.0] * LASTS_S}
    return starved_run(
        wait_s=wait_s,
        util=util,
        host=host,
        cores=cores,
        args={**ARGS, "batch": batch, "workers": workers},
        settings={**SETTINGS, "batch": batch, "workers": workers, **settings},
        quantities={**active, "memory_used_mib": [peak_mib] * LASTS_S, **(quantities or {})},
    )


def test_steps_that_launch_for_longer_than_a_model_takes_are_not_too_small():
    run = launch_bound_run(batch=64)  # 0.3 s a step
    assert bound_of(run, "launch-bound") is not None
    run = launch_bound_run(batch=128)  # 0.6 s, of which the GPU idles 0.45: something else is launched, too
    (found,) = [finding for finding in analyse(run).findings if finding.rule == "starved"]
    assert (found.cause.name, changes(run)) == ("main-process", {})
    assert "a step took 0.4 s of CPU work" in found.cause.explanation
    assert "--profile" in found.advice[0].short


@pytest.mark.parametrize(("batch", "unsure"), [(8, False), (64, True)])
def test_steps_that_launch_for_longer_than_with_a_fast_cpu_may_hold_other_code(batch, unsure):
    """The GPU idles for 0.03 or 0.2 s of a step, and no stacks say what the main process did."""
    run = launch_bound_run(batch=batch, peak_mib=100_000.0)
    (found,) = [finding for finding in analyse(run).findings if finding.rule == "starved"]
    assert (found.cause.name, "other code" in found.cause.explanation) == ("launch-bound", unsure)
    verdict = analyse(run).verdict.text
    assert ("record --profile" in verdict) == unsure
    assert "twice as large may not fit into GPU memory" in verdict


@pytest.mark.parametrize(
    ("batch", "multi_scale", "trains_on"), [(512, 0.5, True), (128, 0.5, False), (512, 0.0, False)]
)
def test_steps_of_which_each_has_a_new_image_size_are_to_train_on(batch, multi_scale, trains_on):
    """Of 21 sizes that are drawn at random, 48 steps do not meet each; 192 do, so that something else is slow."""
    run = launch_bound_run(batch=batch)
    (yolo,) = run.yolo_runs
    run = dataclasses.replace(
        run, yolo_runs=(dataclasses.replace(yolo, args={**yolo.args, "multi_scale": multi_scale}),)
    )
    (found,) = [finding for finding in analyse(run).findings if finding.rule == "starved"]
    advice = [each for each in found.advice if each.short.startswith("Let it train on: each of 21 image sizes")]
    assert [each.settings for each in advice] == [(Setting("multi_scale", None, "0.0"),)] * trains_on
    assert ("for each of 21 image sizes once" in found.summary) == trains_on


def test_a_batch_too_small_for_the_gpu_grows_to_what_the_optimiser_sees_anyway():
    run = launch_bound_run()
    assert changes(run) == {"batch": "64"}
    limit = bound_of(run, "launch-bound")
    assert limit.epoch_s_at_best == pytest.approx(20 * 3 / 60)
    slower = 1.45 / (1 + 0.45 / 16)  # the optimiser steps in each, not in every 16th
    backward = 2 / 3 * 0.28 * (16 * (7 / 28) / 0.85) ** 0.75  # longer on the GPU than it takes to launch
    assert limit.epoch_s_estimate == pytest.approx(20 / 16 * (0.6 * slower + backward))
    active = {"sm_active_pct": [13.0] * LASTS_S}  # kernels that fill more of the GPU take longer in a larger batch
    backward = 2 / 3 * 0.28 * (16 * (13 / 28) / 0.85) ** 0.75
    dense = bound_of(launch_bound_run(quantities=active), "launch-bound")
    assert dense.epoch_s_estimate == pytest.approx(20 / 16 * (0.6 * slower + backward))
    assert changes(launch_bound_run(peak_mib=15_000.0)) == {"batch": "16"}  # 60 % of 140 GiB hold 5.7 times of it
    assert changes(launch_bound_run(batch=64)) == {}


def test_a_larger_batch_is_no_larger_than_the_loader_can_feed():
    """Eight workers that are busy for 30 % of the time load for an epoch in 6 of its 20 s, and no faster."""
    run = launch_bound_run(workers_pct=240.0, cores=10)  # which leave the loader eight
    assert changes(run) == {"batch": "16"}
    assert bound_of(run, "launch-bound").epoch_s_estimate == pytest.approx(20 * 0.3)
    busy = launch_bound_run(
        workers_pct=400.0, cores=10
    )  # half of the time: more than a batch twice as large would leave
    assert changes(busy) == {"batch": "8"}
    assert changes(launch_bound_run(workers_pct=470.0, batch=32, cores=10)) == {"batch": "64"}


def test_a_larger_batch_gets_the_workers_that_feed_it():
    """Two workers that are busy for 80 % of the time: 64 images a step need about eight times of them."""
    few = launch_bound_run(workers_pct=160.0, workers=2)
    assert changes(few)["batch"] == "64"
    found = analyse(few)
    (advice,) = [a for finding in found.findings for a in finding.advice if a.argument == "batch"]
    assert advice.also == (Setting("workers", "2", "14"),)
    assert advice.text.endswith("2 data-loader workers could not feed it: 14 would")
    assert found.verdict.text.startswith(
        "Set `batch=64 workers=14` (now 4 and 2): epochs drop from 20.0 s to about 2.3 s"
    )
    assert found.projection.fix == "batch=64 workers=14"
    told = build_summary(found)["projection"]
    assert told["sets"] == [{"argument": "batch", "to": "64"}, {"argument": "workers", "to": "14"}]
    (limit,) = [limit for limit in found.speedup_limits if limit.cause == "launch-bound"]
    assert limit.epoch_s_estimate == pytest.approx(20 * 1.6 / 14, rel=0.01)
    enough = launch_bound_run(workers_pct=10.0, workers=2)
    assert all(not a.also for finding in analyse(enough).findings for a in finding.advice)


def test_workers_that_wait_for_files_can_feed_no_more_than_those_that_compute():
    """Two of eight workers compute half of the time, and wait for files in the rest of it."""
    reads = [process((0, LASTS_S, (READS, LOOP)), role="worker", pid=pid) for pid in (2, 3)]
    run = launch_bound_run(batch=32, workers_pct=100.0)
    plain, waiting = (
        loading_of(each, 0.0)
        for each in (run, dataclasses.replace(run, stacks=(process((0, LASTS_S, TRAINS)), *reads)))
    )
    assert LargerBatches(*plain, 32, 64).loader_s(64) == pytest.approx(20 * 1 / 8)
    assert LargerBatches(*waiting, 32, 64).loader_s(64) == pytest.approx(20 * 2 / 8)
    assert (LargerBatches(*plain, 32, 64).workers_compute, LargerBatches(*waiting, 32, 64).workers_compute) == (
        True,
        False,
    )


def loading_of(run, rest_s=20.0):
    """Return what larger batches are worked out from: the settings, epochs of 20 s, and the signals."""
    context = build_context(run, Options())
    settings = run_settings_of(context, context.trainings[0])
    limit = SpeedupLimit("launch-bound", 20.0, 1.0, "", rest_s=rest_s)
    return settings, limit, context.signals.of_training(0, context.trainings[0])


@pytest.mark.parametrize(("prefetch", "batches"), [(4, 4), (None, 2)])
def test_what_is_ready_when_an_epoch_begins_need_not_be_loaded_in_it(prefetch, batches):
    """Workers that are busy for 30 % of the time: of 63 batches of 64 they have 8 times as many ready as each has."""
    run = launch_bound_run(workers_pct=240.0, prefetch=prefetch)
    assert LargerBatches(*loading_of(run), 4, 64).loader_s(64) == pytest.approx(
        20 * 0.3 * (1 - batches * 8 * 64 / 4000)
    )


def test_a_validation_that_is_a_single_batch_then_is_loaded_without_workers():
    """An image takes 20 ms of a core: 4,000 of them half of the time of eight workers, in 20 s."""
    plain = bound_of(launch_bound_run(batch=32, workers_pct=400.0), "launch-bound")
    single = bound_of(launch_bound_run(batch=32, workers_pct=400.0, val_images=100), "launch-bound")
    image_s = 4.0 * 20 / 4000 * (1 + 3) / (1 + 6)  # decoded, and hardly augmented
    assert single.epoch_s_estimate == pytest.approx(plain.epoch_s_estimate + 100 * image_s)
    large = launch_bound_run(batch=32, workers_pct=400.0, val_images=20, scaled_down=[1.0, 4000, 1 / 39])
    assert LargerBatches(*loading_of(large, 8), 8, 64).validation_s(64) == pytest.approx(20 * 0.02 * 42 / 45)
    assert changes(launch_bound_run(batch=32, workers_pct=400.0, val_images=128)) == {"batch": "64"}
    for images in (50, 129, 1000):  # a single batch now, too; still more than one
        run = launch_bound_run(batch=32, workers_pct=400.0, val_images=images)
        assert bound_of(run, "launch-bound").epoch_s_estimate == pytest.approx(plain.epoch_s_estimate)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"workers_pct": 790.0, "cores": 10}, "the data-loader workers could not feed it"),
        ({"workers_pct": 400.0, "val_images": 100, "images": 480}, "validation would be a single batch"),
    ],
)
def test_a_larger_batch_that_wins_nothing_is_not_asked_for(more, why):
    run = launch_bound_run(batch=32, util=30.0, **more)
    assert changes(run) == {}
    told = " ".join(sentence.text for sentence in analyse(run).verdict.sentences)
    assert why in told
    assert "Try a larger" not in told


def test_a_larger_batch_that_wins_no_more_than_its_estimate_may_be_off_is_not_asked_for():
    settings, limit, signals = loading_of(launch_bound_run(batch=32), rest_s=0.0)
    (larger, train_s) = LargerBatches(settings, limit, signals, 32, 64).worth_trying(64.0)
    assert (larger, 20 / train_s > 1.5) == (64, True)
    most_of_an_epoch = dataclasses.replace(limit, rest_s=60.0)
    assert (60 + 20) / (60 + train_s) > 1.05  # which is worth a person's time, if it is so
    assert LargerBatches(settings, most_of_an_epoch, signals, 32, 64).worth_trying(64.0) is None
    assert outweighed_by(settings, signals, rest=0.0) == ""
    assert outweighed_by(settings, signals, rest=3.0) == "epochs would be hardly faster"
    slow_loader = loading_of(launch_bound_run(batch=32, workers_pct=750.0), rest_s=0.0)
    assert outweighed_by(slow_loader[0], slow_loader[2], rest=0.0) == "the data-loader workers could not feed it"


def test_small_steps_that_wait_for_data_besides_get_more_workers():
    """Of 20 s the trainer waits for 4: in 16 s two workers load as much as 2.5 of them, and a little more."""
    waits = launch_bound_run(batch=64, wait_s=4.0, workers=2, images=8000, util=30.0)
    assert changes(waits) == {"workers": "3"}
    limit = bound_of(waits, "launch-bound")
    assert (limit.waits_s, limit.epoch_s_estimate) == (4.0, 16.0)
    assert analyse(waits).verdict.text.startswith("Set `workers=3` (now 2): epochs drop from 20.0 s to about 16.0 s")
    assert changes(launch_bound_run(batch=64, wait_s=1.0, workers=2, images=8000, util=30.0)) == {}


def test_waits_for_data_are_as_long_in_a_larger_batch():
    plain, waits = (LargerBatches(*loading_of(launch_bound_run(wait_s=s)), 4, 64).steps_s(64) for s in (0.1, 2.0))
    assert waits == pytest.approx(2.0 + 0.9 * plain)


def test_a_larger_batch_is_not_promised_where_the_training_waits_for_idle_workers():
    """What keeps them is not known: they would deliver no faster. More of them are what is left."""
    waits = launch_bound_run(wait_s=2.0, workers=2, images=8000)
    assert changes(waits) == {"workers": "3"}
    assert "`batch" not in analyse(waits).verdict.text
    settings, _, signals = loading_of(waits)
    assert outweighed_by(settings, signals, rest=0.0) == "the training already waits for data"
    assert changes(launch_bound_run(wait_s=0.5, workers=2, images=8000))["batch"] == "64"  # 2.5 %: hardly
    known = dataclasses.replace(signals, workers_at_work=0.4)  # by their stacks
    assert outweighed_by(settings, known, rest=0.0) == ""


def test_what_the_main_process_does_image_by_image_takes_as_long_in_a_larger_batch():
    seconds = range(LASTS_S)
    halves = [
        (second + at, second + at + 0.5, stack)
        for second in seconds
        for at, stack in ((0, TRAINS), (0.5, (MASKS, *TRAINS)))
    ]
    run = dataclasses.replace(launch_bound_run(), stacks=(process(*halves),))
    limit, plain = bound_of(run, "launch-bound"), bound_of(launch_bound_run(), "launch-bound")
    assert limit.epoch_s_at_best == pytest.approx(20 / 2, rel=0.01)
    assert limit.epoch_s_estimate == pytest.approx(20 / 2 + plain.epoch_s_estimate / 2, rel=0.01)


@pytest.mark.parametrize(("stack", "batch"), [(TRAINS, {"batch": "64"}), (WAITS, {}), (LOGS, {})])
def test_a_full_main_process_gets_a_larger_batch_only_where_it_can_have_been_launching(stack, batch):
    run = launch_bound_run(util=10.0)
    assert bound_of(run, "main-process") is not None
    assert changes(dataclasses.replace(run, stacks=(process((0, 1000, stack)),))) == batch


def held_run(seen):
    """Return a run in which C code keeps Python's lock for 0.7 s of each second, in a line seen so often at first."""
    stays, holds = [], []
    for second in range(LASTS_S):
        stack = LOGS if second < 20 + seen else (LOGS[0]._replace(function="unseen"), *LOGS)
        stays += [
            (second, second + 0.2, TRAINS),
            (second + 0.2, second + 0.9, stack),
            (second + 0.9, second + 1, TRAINS),
        ]
        holds += [LockHeld(second + 0.2, second + 0.9, 0.69)] if second >= 20 else []
    made = process(*stays)
    unseen = [number for number, stack in made.stacks.items() if stack[0].function == "unseen"]
    number = np.where(np.isin(made.number, unseen), 0, made.number)
    stacks = {each: stack for each, stack in made.stacks.items() if each not in unseen}
    made = dataclasses.replace(made, number=number, stacks=stacks, lock_held=tuple(holds))
    return dataclasses.replace(launch_bound_run(util=10.0), stacks=(made,))


def test_a_larger_batch_is_no_answer_to_code_that_keeps_pythons_lock():
    (found,) = [finding for finding in analyse(held_run(seen=0)).findings if finding.rule == "starved"]
    assert "without releasing the GIL" in found.cause.explanation
    assert changes(held_run(seen=0)) == {}


def test_the_line_of_a_few_holds_is_that_of_all_and_leads_the_verdict():
    analysis = analyse(held_run(seen=5))
    assert analysis.verdict.text.startswith("Look at `log_images` (callbacks.py:41)")
    (found,) = [finding for finding in analysis.findings if finding.rule == "starved"]
    (number,) = [each for each in found.evidence if "called it was seen" in each.text]
    assert number.value == 5
    limit = bound_of(held_run(seen=5), "main-process")
    assert (limit.basis, limit.epoch_s_at_best) == ("without that function", pytest.approx(0.3 * 20, rel=0.05))


def test_a_call_of_the_garbage_collector_in_each_step_is_what_to_remove():
    run = held_run(seen=LASTS_S)
    (made,) = run.stacks
    cleans = (LOGS[0]._replace(called="collect"), *LOGS[1:])
    begun = np.arange(20.0, LASTS_S) + 0.2
    long = LongCollections(begun, begun + 0.69, np.full(len(begun), 99), np.ones(len(begun), dtype=bool))
    all_s = [np.array([each]) for each in (0.0, float(LASTS_S), 9.0 * len(begun), 0.7 * len(begun))]
    made = dataclasses.replace(made, stacks={**made.stacks, 99: cleans}, collections=CollectionCounts(*all_s, long))
    run = dataclasses.replace(run, stacks=(made,))
    said = [each.text for each in analyse(run).verdict.sentences]
    assert said[0] == "Remove `gc.collect()` in `log_images` (callbacks.py:41), or call it once an epoch."
    assert said[1].startswith("Without log_images (callbacks.py:41) an epoch takes about")
    assert said[3] == "Python's garbage collector ran 90 times, 1 min 3 s of 1 min 30 s."

    assert said[3] == "Python's garbage collector ran 90 times, 1 min 3 s of 1 min 30 s."
    assert any(each.startswith("Without log_images (callbacks.py:41) an epoch takes about") for each in said)


def test_without_pythons_garbage_collector_an_epoch_is_shorter_by_what_that_took():
    run = launch_bound_run(util=10.0)
    seconds = np.arange(float(LASTS_S))
    long = LongCollections(*np.zeros((2, 0)), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=bool))
    collections = CollectionCounts(seconds, seconds + 1, np.full(LASTS_S, 50.0), np.full(LASTS_S, 0.6), long)
    run = dataclasses.replace(
        run, stacks=(dataclasses.replace(process((0, LASTS_S, TRAINS)), collections=collections),)
    )
    limit = bound_of(run, "main-process")
    assert (limit.basis, limit.epoch_s_at_best) == ("without Python's garbage collector", pytest.approx(0.4 * 20))
    assert analyse(run).verdict.text.startswith("Call `gc.freeze()` once your data are loaded.")
    assert changes(run) == {}


def test_what_a_moment_cost_is_held_against_epochs_that_nothing_disturbed():
    run = starved_run(wait_s=0.1, util=90.0, host={}, lengths_s=(20.0, 15.0, 40.0, 15.0, 15.0, 15.0))
    slow = bound_of(run, "unexplained")  # nothing says why the third epoch took longer
    assert (slow.epoch_s_now, slow.epoch_s_at_best, slow.in_epochs) == (20.0, 15.0, (3, 3))
    util = run.samples["gpu_util_pct"].to_numpy().copy()
    util[52:76] = 0.0  # in the third epoch, which is 25 s longer
    limit = bound_of(dataclasses.replace(run, samples=run.samples.assign(gpu_util_pct=util)), "unexplained")
    assert limit.in_epochs is None
    assert (limit.epoch_s_now, limit.epoch_s_at_best) == (20.0, 15.0)  # means of five: the first is not judged
    assert limit.epoch_s_estimate is None


def test_what_a_neighbour_cost_is_of_its_stays_alone():
    run = starved_run(wait_s=0.1, util=90.0, host={}, lengths_s=(20.0, 20.0, 15.0, 30.0, 15.0, 20.0))
    looks = [
        (seconds, 0, 77, "python3", 900.0, change, "other", 50.0)
        for came, went in ((36.0, 49.0), (116.0, 129.0))  # in the second epoch and the sixth, of 20 s
        for seconds, change in ((came, "appeared"), (went, "gone"))
    ]
    limit = bound_of(dataclasses.replace(run, processes=pd.DataFrame(looks, columns=PROCESSES)), "other-process")
    assert (limit.epoch_s_now, limit.epoch_s_at_best) == (20.0, 18.0)  # the fourth was long by itself


def test_a_healthy_run_is_told_how_little_is_left():
    run = starved_run(wait_s=0.1, util=80.0, host={})
    (limit,) = analyse(run).speedup_limits
    assert (limit.cause, limit.speed_up_at_most) == ("short gaps", pytest.approx(1.25))
    assert analyse(starved_run(wait_s=0.1, util=97.0, host={})).speedup_limits == ()


def test_a_run_without_epochs_has_no_bounds():
    assert analyse(make_run(readings((0, 10), (30, 100)))).speedup_limits == ()


def trained_s(name):
    """Return how long the training part of each epoch but the first took."""
    return [epoch.train_s for epoch in analyse(load_run(SAMPLES / name)).epochs[1:]]


def test_a_starved_run_is_held_against_the_same_work_repaired():
    (limit,) = [b for b in analyse(load_run(SAMPLES / "n-starved")).speedup_limits if b.cause == "input-cpu"]
    repaired = trained_s("n-fed")
    assert limit.epoch_s_at_best <= min(repaired)
    assert limit.epoch_s_estimate == pytest.approx(median(repaired), rel=0.25)


def test_what_is_seen_from_outside_alone_is_not_beaten_by_the_repair():
    (limit,) = [b for b in analyse(load_run(SAMPLES / "starved")).speedup_limits if b.cause == "unexplained"]
    assert limit.epoch_s_at_best <= min(trained_s("fed"))


@pytest.mark.parametrize(
    ("name", "cause", "undisturbed"),
    [
        ("m-blocked", "trainer-blocked", (3, 5, 6, 7)),
        ("s-loader-stall", "input-stalled", (2, 4, 5, 6, 8, 9)),
    ],
)
def test_a_fault_costs_what_disturbed_epochs_took_longer(name, cause, undisturbed):
    analysis = analyse(load_run(SAMPLES / name))
    (limit,) = [b for b in analysis.speedup_limits if b.cause == cause]
    typical = median(epoch.train_s for epoch in analysis.epochs if epoch.epoch in undisturbed)
    assert limit.epoch_s_at_best == pytest.approx(typical, rel=0.05)
    assert limit.speed_up_at_most > 1.4


def test_a_bound_says_which_epoch_it_calls_the_one_now():
    analysis = analyse(load_run(SAMPLES / "m-blocked"))
    trained = [epoch.train_s for epoch in analysis.epochs if not epoch.first]
    moment = next(limit for limit in analysis.speedup_limits if limit.cause == "trainer-blocked")
    assert moment.now_is.endswith("mean of all epochs, without the first")
    assert moment.epoch_s_now == pytest.approx(fmean(trained))
    gaps = next(limit for limit in analysis.speedup_limits if limit.cause == "short gaps")
    assert gaps.now_is.endswith("median of the steady-state epochs, without the first")
    assert gaps.epoch_s_now == median(epoch.train_s for epoch in analysis.epochs if epoch.epoch in {3, 5, 6, 7})
    standing = bound_of(starved_run(lengths_s=(20.0, 14.0, 22.0, 30.0, 16.0, 18.0), wait_s=8.0), "input-cpu")
    assert standing.now_is.endswith("median of all epochs, without the first")
    assert standing.epoch_s_now == median((14.0, 22.0, 30.0, 16.0, 18.0))
    closing = bound_of(starved_run(args={**ARGS, "close_mosaic": 2}), "input-cpu")
    assert closing.now_is.endswith(", without the first and the one that turns mosaic off")


def test_a_bound_has_the_name_of_the_ledgers_row_also_where_its_cause_is_but_a_note():
    analysis = analyse(launch_bound_run(util=55.0))
    (starved,) = [finding for finding in analysis.findings if finding.rule == "starved"]
    assert (starved.severity, starved.cause.name) == ("info", "launch-bound")
    names = {row.name for row in analysis.ledger}
    assert {limit.cause for limit in analysis.speedup_limits} == {"launch-bound"} <= names
    assert analysis.speedup_limits[0].epoch_s_at_best == pytest.approx(20 * 0.55)
    assert [each.argument for each in starved.advice] == ["batch"]  # a note, and yet a win


@pytest.mark.parametrize(("util", "active", "measured"), [(0.59, 0.49, 1.39), (0.35, 0.2, 1.62), (0.2, 0.1, 1.69)])
def test_a_batch_of_64_in_place_of_32_wins_what_was_measured(util, active, measured):
    """YOLO26m, s and n on an H100 (2026-11-27), whose launches one slow core made."""
    quantities = {"sm_active_pct": [100 * active] * LASTS_S}
    limit = bound_of(launch_bound_run(batch=32, util=100 * util, quantities=quantities), "launch-bound")
    assert limit.epoch_s_now / limit.epoch_s_estimate == pytest.approx(measured, rel=0.1)


@pytest.mark.parametrize("name", ["n-starved", "n-small-batch"])
def test_what_advice_wins_is_of_the_whole_epochs_that_the_verdict_gives(name):
    found = analyse(load_run(SAMPLES / name))
    (advice,) = [a for finding in found.findings for a in finding.advice if a.gain_estimate]
    expected = found.projection.epoch_s_expected / found.projection.epoch_s_now
    assert advice.of_epoch
    assert advice.gain_estimate == pytest.approx(1 - expected)


def test_what_is_known_of_steps_alone_is_told_of_whole_epochs():
    found = analyse(load_run(SAMPLES / "n-starved"))
    of_steps = Advice("look at the loss", gain_at_most=0.5)
    now = found.epoch_now
    runs_s = now.train_s + (now.validation_s or 0.0)  # validation runs the model, too: at most it wins as much there
    assert found.gains_of(of_steps) == (pytest.approx(0.5 * runs_s / now.seconds), None)
    likely = dataclasses.replace(of_steps, gain_estimate=0.4)
    assert found.gains_of(likely)[1] == pytest.approx(0.4 * now.train_s / now.seconds)
    assert found.gains_of(dataclasses.replace(of_steps, of_epoch=True)) == (0.5, None)
    assert dataclasses.replace(found, epoch_now=None).gains_of(of_steps) == (0.5, None)


def test_a_training_on_the_cpu_has_no_bound_by_a_gpu():
    assert analyse(starved_run(util=0.0)).speedup_limits == ()


def on_gpus(run, count):
    """Return a run on a machine that has further GPUs, which it did not use."""
    return dataclasses.replace(run, gpus=(*run.gpus, *(Gpu(index) for index in range(1, count))))


def test_no_more_workers_are_advised_than_ultralytics_takes():
    run = on_gpus(starved_run(cores=64), 8)
    assert changes(run)["workers"] == "8"  # 64 cores shared out among 8 GPUs
    (advice,) = [a for f in analyse(run).findings for a in f.advice if a.argument == "workers"]
    assert "10 would keep up, ultralytics allows 8, its share of all cores" in advice.text
    alone = dataclasses.replace(run.recording, cuda_visible_devices="3")
    assert changes(dataclasses.replace(run, recording=alone))["workers"] == "10"
    assert changes(on_gpus(starved_run(cores=16), 8)) == {"cache": "ram"}  # it has the two that it may have


@pytest.mark.parametrize(("device", "workers"), [("0", "10"), ("0,7", "8"), ([3, 7], "8"), (None, "10")])
def test_a_recording_of_one_gpu_is_not_taken_for_the_machine(device, workers):
    """Of 64 cores GPU 7 leaves a rank 8: torch sees eight GPUs at least, though `--gpus 0` recorded one."""
    run = starved_run(cores=64, args={**ARGS, "device": device})
    assert changes(run)["workers"] == workers


def test_the_highest_gpu_recorded_says_how_many_there_are():
    run = starved_run(cores=64)
    samples = run.samples.assign(gpu=7)
    assert changes(dataclasses.replace(run, gpus=(Gpu(7),), samples=samples))["workers"] == "8"


def test_workers_that_were_cut_are_all_that_ultralytics_allows():
    assert changes(starved_run(args={**ARGS, "workers": 9})) == {"cache": "ram"}  # it has 2
    assert changes(starved_run(args={**ARGS, "workers": 2})) == {"workers": "10"}


def test_images_are_not_advised_into_memory_that_a_container_does_not_have():
    images_mib = 4000 * 640 * 640 * 3 / 2**20
    for limit_mib, used_mib, fits in ((50_000.0, 1000.0, True), (50_000.0, 49_000.0, False), (images_mib, NAN, False)):
        run = starved_run(cores=4, host={**STARVED, "cgroup_memory_used_mib": used_mib})
        recording = dataclasses.replace(run.recording, memory_limit_mib=limit_mib)
        assert changes(dataclasses.replace(run, recording=recording)) == ({"cache": "ram"} if fits else {})


def test_advice_is_of_the_run_that_the_bound_is_of():
    run = starved_run()
    later = dataclasses.replace(run.yolo_runs[0], number=2, args={**ARGS, "workers": 7})
    row = EpochRow(2, 1, 1, LASTS_S + 0.5, LASTS_S, {})
    both = dataclasses.replace(run, inside=(), yolo_runs=(*run.yolo_runs, later), epoch_rows=(*run.epoch_rows, row))
    (advice,) = [a for f in analyse(both).findings for a in f.advice if a.argument == "workers"]
    assert advice.from_value == "2"


def test_a_slow_link_stands_behind_workers_that_win_more():
    read = [1.0 if second % 10 == 0 else NAN for second in range(LASTS_S)]
    settings = {**SETTINGS, "imgsz": 256}  # copies take 20 % of a step, the wait for data half of it
    link = {**{f"pcie_link_{of}": read for of in LINK}, "performance_state": 2.0}
    run = starved_run(10.0, 45.0, settings=settings, quantities=link)
    able = tuple(dataclasses.replace(gpu, **{f"max_pcie_link_{of}": 4.0 for of in LINK}) for gpu in run.gpus)
    first, *others = analyse(dataclasses.replace(run, gpus=able)).verdict.sentences
    assert first.text.startswith("Set `workers=5`")
    assert any("PCIe link ran at gen 1 x1 instead of gen 4 x4" in each.text for each in others)


def test_no_workers_at_all_are_named_as_none():
    run = starved_run(settings={**SETTINGS, "workers": 0}, args={**ARGS, "workers": 0})
    (advice,) = [a for f in analyse(run).findings for a in f.advice if a.argument == "workers"]
    assert (advice.from_value, advice.text[:16]) == ("0", "0 data-loader wo")


def test_each_epoch_is_held_against_the_findings_near_it_only(monkeypatch):
    compared = []
    shared_s = temporary_limits._shared_s
    monkeypatch.setattr(temporary_limits, "_shared_s", lambda *both: compared.append(both) or shared_s(*both))
    epochs = 200
    util = readings((0, 10), *[part for _ in range(epochs // 2) for part in ((90, 28), (0, 12))])
    run = make_run(util, rows=[(n, 10.0 + 20 * n) for n in range(1, epochs + 1)])
    drops = [finding for finding in analyse(run).findings if finding.rule == "drop"]
    assert len(drops) == epochs // 2
    assert len(compared) < 10 * epochs


@pytest.mark.parametrize(("batches", "now_s"), [(32, 15.0), (10, 20.0)])
def test_an_epoch_that_time_cut_says_nothing_of_how_long_one_takes(batches, now_s):
    """Of the two after the first the last took half as long, with all its batches (32) or a third of them."""
    run = starved_run(settings={**SETTINGS, "batches": 32}, lengths_s=(20.0, 20.0, 10.0), wait_s=5.0)
    *others, last = run.inside[0].epochs
    epochs = (*others, dataclasses.replace(last, batches=batches))
    analysis = analyse(dataclasses.replace(run, inside=(dataclasses.replace(run.inside[0], epochs=epochs),)))
    assert analysis.epoch_now.seconds == pytest.approx(now_s)
    assert [epoch.partial for epoch in analysis.epochs] == [False, False, batches == 10]
    assert ("cut short" in analysis.epoch_now.now_is) is (batches == 10)


def test_what_unsetting_a_debugging_mode_wins_has_no_limit():
    run = launch_bound_run()
    settings = {**run.inside[0].settings, "slow_modes": ["launch_blocking"]}
    analysis = analyse(dataclasses.replace(run, inside=(dataclasses.replace(run.inside[0], settings=settings),)))
    assert [f.cause.name for f in analysis.findings if f.rule == "starved"] == ["main-process"]
    assert analysis.speedup_limits == ()
    assert "Unset `CUDA_LAUNCH_BLOCKING`" in analysis.verdict.text


@pytest.mark.parametrize(("share", "is_why"), [(0.2, True), (0.8, False)])
def test_what_a_callback_switched_on_after_the_first_epoch_is_why_steps_are_slow(share, is_why):
    """Tracemalloc, on since the end of epoch 1 of 6 (bakery, yolo11s-cls, H200, 2026-11-28); a glance is not."""
    run = launch_bound_run()
    epochs = run.inside[0].epochs
    start_s, end_s = epochs[0].start_t_s, epochs[-1].end_t_s
    from_s = start_s + share * (end_s - start_s)
    inside = dataclasses.replace(
        run.inside[0],
        slow_modes_now=((from_s, frozenset({"tracemalloc"})),),
        setting_locations=(SettingLocation("tracemalloc", "/a/memory.py", 10),),
    )
    text = analyse(dataclasses.replace(run, inside=(inside,))).verdict.text
    assert text.startswith("Turn off `tracemalloc` (memory.py:10)") is is_why


@pytest.mark.parametrize(("warm_share", "is_why"), [(0.5, True), (0.2, False)])
def test_steps_that_were_faster_in_the_first_epoch_have_no_batch_that_is_too_small(warm_share, is_why):
    """Steps of the first epoch took 53 ms, later ones 91 and more (bakery, yolo11s-cls, H200, 2026-11-28)."""
    run = launch_bound_run()
    (inside,) = run.inside
    first = inside.epochs[0]
    warm_s = first.start_t_s + warm_share * (first.end_t_s - first.start_t_s)
    inside = dataclasses.replace(inside, progress=(Progress(warm_s, 1, 0.0), *inside.progress))
    text = analyse(dataclasses.replace(run, inside=(inside,))).verdict.text
    assert text.startswith("Find what slowed each step after the first epoch") is is_why
    assert ("batch" in text) is not is_why


SWAPS = {**STARVED, "workers_cpu_pct": 60.0, "busiest_worker_cpu_pct": 40.0, "memory_pressure_pct": 30.0}
SWAPS |= {"swap_in_mib_s": 80.0, "io_pressure_pct": 60.0, "memory_available_mib": 500.0}


@pytest.mark.parametrize(
    ("cache", "begins"),
    [("ram", "Set `cache=False` (now ram): host memory is short"), (False, "Free host memory"), ("disk", "Free host")],
)
def test_images_that_are_kept_in_memory_that_is_short_are_named(cache, begins):
    run = starved_run(args={**ARGS, "cache": cache}, settings={**SETTINGS, "cache": cache or None}, host=SWAPS)
    assert analyse(run).verdict.text.startswith(begins)


def test_what_validation_takes_of_each_epoch_has_a_limit_where_it_leads():
    """The median of validations is 45 s, of training 29 s."""
    analysis = analysis_of("m-long-stall")
    (row,) = shown_rows(analysis)
    parts = [(epoch.validation_s, epoch.duration_s) for epoch in analysis.epochs if not epoch.first]
    assert row.name == "Validation, at the ends of epochs"
    assert row.now_s == pytest.approx(analysis.epoch_now.seconds)
    assert row.now_s - row.limit_s == pytest.approx(median(seconds for seconds, _ in parts), rel=0.05)
    assert "Without validation an epoch takes 29.7 s instead of 1 min 15 s." in analysis.verdict.text
    assert not_listed(analysis) == ""


def test_what_a_note_without_advice_takes_of_epochs_has_no_limit():
    """No fault was found, and the validation of a few seconds has nothing that would make it shorter."""
    analysis = analysis_of("ab-workers-8")
    assert [finding.rule for finding in analysis.findings] == ["long-epoch-ends"]
    assert shown_rows(analysis) == []


def test_what_disturbs_each_epoch_has_a_limit_too():
    """Utilisation falls from 90 to 9 % for 12 of the 60 s of each: so the GPU works for 10.8 s less."""
    parts = [(90, 30), (9, 12), (90, 18)] * 6
    rows = [(n, 10 + 60 * n) for n in range(1, 7)]
    found = analyse(make_run(readings((0, 10), *parts), rows=rows))
    (limit,) = [each for each in found.speedup_limits if each.cause == "unexplained"]
    assert limit.saves_at_most_s == pytest.approx(12 * (1 - 9 / 90), rel=0.1)


def test_heat_that_lowers_clock_and_utilisation_in_each_epoch_has_one_limit():
    """For 12 of the 60 s of each: the clock falls to a fifth, utilisation from 90 to 45 %."""
    parts, rows = [(90, 30), (45, 12), (90, 18)] * 6, [(n, 10 + 60 * n) for n in range(1, 7)]
    clocks = readings((1980, 10), *[(1980 if util == 90 else 400, seconds) for util, seconds in parts])
    reasons = [0x40 if clock == 400 else 0 for clock in clocks]
    quantities = {"sm_clock_mhz": clocks, "clock_event_reasons": reasons}
    found = analyse(make_run(readings((0, 10), *parts), rows=rows, quantities=quantities))
    assert {f.rule for f in found.findings if f.cause and f.cause.name == "thermal"} == {"slowdown", "thermal"}
    (limit,) = [each for each in found.speedup_limits if each.cause == "thermal"]
    assert limit.saves_at_most_s == pytest.approx(12 * (1 - 45 / 90), rel=0.1)


def saved_at_half_clock_s(failed):
    """Return what a clock is said to take that is halved for 20 of the 60 s of each epoch, after the first."""
    seconds, rows = 10 + 60 * 8, [(n, 10 + 60 * n) for n in range(1, 9)]
    clocks = [990.0 if t >= 70 and (t - 10) % 60 >= 40 else 1980.0 for t in range(seconds)]
    columns = {"sm_clock_mhz": clocks, "clock_event_reasons": [0x20 if clock < 1000 else 0 for clock in clocks]}
    quantities = {name: [NAN if t in failed else x for t, x in enumerate(of)] for name, of in columns.items()}
    found = analyse(make_run(readings((0, 10), (90, seconds - 10)), rows=rows, quantities=quantities))
    return [limit.saves_at_most_s for limit in found.speedup_limits if limit.cause == "thermal"]


def test_a_clock_that_falls_in_each_epoch_leaves_none_undisturbed():
    """Its finding is of the longest stretch alone, in one epoch."""
    assert saved_at_half_clock_s(failed=()) == [pytest.approx(10, rel=0.1)]


def test_what_a_lower_clock_takes_is_the_same_where_every_other_reading_failed():
    assert saved_at_half_clock_s(failed=range(71, 500, 2)) == [pytest.approx(10, rel=0.1)]


def test_what_leads_and_took_next_to_nothing_of_usual_epochs_is_said_beside_the_others():
    analysis = analysis_of("m-mixed")
    (lead, *_) = analysis.verdict.sentences
    others = tuple(each for each in analysis.speedup_limits if each.cause != lead.about)
    assert not_listed(analysis) == ""
    without = dataclasses.replace(analysis, speedup_limits=others)
    assert not_listed(without) == ""  # it took a fifth of them
    first = {"start_t_s": 11.0, "end_t_s": 22.0}  # in the first epoch, which is not judged
    moved = [dataclasses.replace(f, **first) if f.id in lead.findings else f for f in analysis.findings]
    without = dataclasses.replace(without, findings=tuple(moved))
    said = "Main process blocked took under 5 % of these epochs: it is not listed."
    assert not_listed(without) == said
    assert said in render_text(without, width=200)
    assert said in render_markdown(without)
    assert said in note(without)


def test_an_argument_that_the_end_asks_to_lower_is_raised_nowhere():
    """A process that may use a part of its card ran out of memory, with small steps: `batch=16`, and `batch=64`."""
    run = launch_bound_run(batch=32)
    assert changes(run) == {"batch": "64"}
    crashed = dataclasses.replace(run.inside[0], ended="exception", error="OutOfMemoryError")
    found = analyse(dataclasses.replace(run, inside=(crashed,)))
    sets = [(one.argument, one.to_value) for f in found.findings for each in f.advice for one in each.settings]
    assert sets == [("batch", "16")]
    assert (found.projection, [limit.fix for limit in found.speedup_limits if "batch" in limit.fix]) == (None, [])
    assert "larger `batch`" not in found.verdict.text
    assert "`batch=64`" not in found.verdict.text


def test_a_batch_that_yolo_lowered_for_want_of_memory_is_not_raised_again():
    run = launch_bound_run(batch=32)
    (told,), (yolo,) = run.inside, run.yolo_runs
    again = (dataclasses.replace(told.epochs[0], end_t_s=None, start_t_s=STARTS_S - 1), *told.epochs)
    yolo = dataclasses.replace(yolo, args={**yolo.args, "batch": 64})
    run = dataclasses.replace(run, inside=(dataclasses.replace(told, epochs=again),), yolo_runs=(yolo,))
    assert "launch-bound" not in changes(run)
    found = analyse(run)
    advised = [each for f in found.findings if f.rule == "starved" for each in f.advice]
    assert [one for each in advised for one in each.settings if one.argument == "batch"] == []


def test_a_larger_batch_has_to_fit_what_the_process_may_have():
    run = launch_bound_run(batch=32, peak_mib=15_000.0)
    assert changes(run) == {"batch": "64"}
    assert changes(launch_bound_run(batch=32, peak_mib=15_000.0, memory_fraction=0.24)) == {}


@pytest.mark.parametrize(("shm_mib", "is_said"), [(64.0, True), (16_000.0, False), (None, False)])
def test_workers_that_docker_has_no_shared_memory_for_need_that_as_well(shm_mib, is_said):
    run = starved_run(settings={**SETTINGS, "workers": 0, "imgsz": 640}, args={**ARGS, "workers": 0})
    run = dataclasses.replace(run, recording=dataclasses.replace(run.recording, shm_total_mib=shm_mib))
    (advice,) = [a for f in analyse(run).findings for a in f.advice if a.argument == "workers"]
    assert ("/dev/shm has only 64 MiB: start the container with `--shm-size=3g`, too" in advice.text) == is_said


def test_steps_too_small_for_the_gpu_win_nothing_of_what_drops_took():
    """Of each epoch of 20 s a drop takes 11, for which there is a limit of its own."""
    run = launch_bound_run()
    alone = bound_of(run, "launch-bound")
    second = np.arange(LASTS_S) - STARTS_S
    util = np.where((second >= 0) & (second % 20 >= 4) & (second % 20 < 15), 0.0, run.samples["gpu_util_pct"])
    limits = analyse(dataclasses.replace(run, samples=run.samples.assign(gpu_util_pct=util))).speedup_limits
    saved = {limit.cause: limit.saves_at_most_s for limit in limits}
    assert saved == {"main-process": 11.0, "launch-bound": pytest.approx(9 / 20 * alone.saves_at_most_s)}


def test_more_workers_promise_a_typical_epoch_without_its_waits_not_the_shortest():
    """On a noisy host epochs differ without their waits, too: 5, 7 and 8 s of it. The shortest one stays the limit."""
    run = starved_run(lengths_s=(20.0,) * 4)
    (inside,) = run.inside
    waits = (15.0, 12.0, 13.0, 15.0)
    epochs = tuple(dataclasses.replace(e, data_wait_s=s) for e, s in zip(inside.epochs, waits, strict=True))
    limit = bound_of(dataclasses.replace(run, inside=(dataclasses.replace(inside, epochs=epochs),)), "input-cpu")
    assert limit.epoch_s_at_best == pytest.approx(5.0)
    assert limit.epoch_s_estimate == pytest.approx(1.08 * 7.0)


@pytest.mark.parametrize(("waits_s", "fed_s"), [(12.0, 8.64), (0.0, 5.4), (1.0, 20.0)])
def test_an_epoch_whose_loader_keeps_up_takes_no_longer_than_now(waits_s, fed_s):
    """Where waits are not known there is but the limit to go by."""
    assert epoch_without_data_wait_s(SpeedupLimit("input-cpu", 20.0, 5.0, "", waits_s=waits_s)) == pytest.approx(fed_s)
