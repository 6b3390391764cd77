"""Trainings that take long to begin, or never do."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run
from support.stacks import LOG, LOGS, READ, READS, RESTS, TRAINER, TRAINS, WAITS, process

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.causes import start_work
from gpu_report.model import (
    Frame,
    InsideEpoch,
    InsideRun,
    Mount,
    Options,
    Phase,
    RecordedEvent,
    Setting,
    SettingLocation,
    YoloRun,
)


def started(parts, *, train_s=0.0, stacks=(), ended="interrupted"):
    """Return a run whose start-up had these parts (detail, seconds), one after the other."""
    phases, t_s = [], 5.0
    for detail, seconds in parts:
        phases.append(Phase("startup", None, t_s, t_s + seconds, "callbacks", detail))
        t_s += seconds
    first_s = t_s
    if train_s:
        phases.append(Phase("train", 1, t_s, t_s + train_s, "callbacks"))
    epochs = (InsideEpoch(1, 1, first_s, None, 100, 10, 0.0, 0.0, 0.0),) if train_s else ()
    run = make_run([0.0] * round(first_s) + [60.0] * round(train_s))
    inside = InsideRun(
        1,
        0,
        1,
        "train",
        {},
        tuple(phases),
        epochs,
        "exception" if ended else None,
        error="KeyboardInterrupt" if ended == "interrupted" else "ValueError",
    )
    return dataclasses.replace(
        run, inside=(inside,), yolo_runs=(YoloRun(1, None, {}, "recorded", None),), stacks=tuple(stacks)
    )


def slow(run):
    return [finding for finding in analyse(run).findings if finding.rule == "slow-start"]


def test_a_training_that_never_had_a_batch_says_what_the_workers_did():
    stacks = (process((0, 40, WAITS)), process((10, 40, READS), role="worker 0", pid=2))
    run = started([("data set", 2.0), ("first batch", 30.0)], stacks=stacks)
    (finding,) = slow(run)
    assert finding.severity == "warning"
    assert finding.summary == "The training never began: it waited for its first batch for 30 s"
    assert (finding.where[0].function, finding.where[0].process) == (READ.function, "workers")
    first = analyse(run).verdict.sentences[0].text
    assert first.startswith(f"Look at `{READ.function}` (data.py:{READ.line}). The training never began")


def test_a_first_batch_that_the_main_process_works_on_is_not_waited_for():
    stacks = (process((0, 40, LOGS)), process((10, 40, RESTS), role="worker 0", pid=2))
    (finding,) = slow(started([("first batch", 30.0)], stacks=stacks))
    assert finding.summary == "The training never began: it worked on its first batch for 30 s"
    assert (finding.where[0].function, finding.where[0].process) == (LOG.function, "main")


def test_a_slow_part_of_a_start_is_a_note_of_a_training_that_began():
    (finding,) = slow(started([("data set", 60.0), ("first batch", 8.0)], train_s=100.0))
    assert (finding.severity, finding.summary) == ("info", "The training prepared its data set for 60 s")


@pytest.mark.parametrize(("seconds", "train_s"), [(14.0, 10.0), (30.0, 900.0), (8.0, 0.0)])
def test_a_start_that_is_short_or_little_of_the_training_is_none(seconds, train_s):
    assert slow(started([("first batch", seconds)], train_s=train_s)) == []


def test_the_parts_of_a_start_are_added_up_and_the_longest_is_told():
    run = started([("set-up", 1.0), ("data set", 12.0), ("model", 15.0), ("data set", 14.0)], train_s=50.0)
    (finding,) = slow(run)
    assert "prepared its data set for 26 s" in finding.summary


def test_what_ended_a_training_before_its_first_batch_says_more():
    crashed = started([("first batch", 30.0)], stacks=(process((0, 40, TRAINS)),), ended="exception")
    assert slow(crashed) == []


def test_a_first_batch_that_goes_on_is_no_alarm():
    """It may be compiling the model, for minutes."""
    (finding,) = slow(started([("first batch", 30.0)], ended=None))
    assert (finding.severity, finding.summary) == (
        "info",
        "The training has not begun: it was at its first batch for 30 s",
    )
    (finding,) = slow(started([("first batch", 700.0)], ended=None))
    assert finding.severity == "warning"


IMPORT = Frame("/home/me/tables.py", 8, "<module>")


@pytest.mark.parametrize(("seconds", "util", "found"), [(40.0, 0.0, 1), (25.0, 0.0, 0), (40.0, 90.0, 0)])
def test_what_comes_before_yolo_is_a_part_of_a_start(seconds, util, found):
    notes = process((0, seconds, (IMPORT,)), (seconds, seconds + 60, TRAINS))
    run = started([("first batch", 5.0)], train_s=60.0, stacks=(notes,))
    moved = [
        dataclasses.replace(p, start_t_s=p.start_t_s + seconds - 5, end_t_s=p.end_t_s + seconds - 5)
        for p in run.inside[0].phases
    ]
    used = [util] * round(seconds) + [0.0] * 5 + [60.0] * 60
    started_at = RecordedEvent(0.0, "command_started", None, {"pid": 1})
    run = dataclasses.replace(
        make_run(used, events=[started_at]),
        inside=(dataclasses.replace(run.inside[0], phases=tuple(moved)),),
        yolo_runs=run.yolo_runs,
        stacks=run.stacks,
    )
    mine = slow(run)
    assert len(mine) == found
    for finding in mine:
        assert finding.summary == f"The training ran imports and other code before YOLO for {seconds:.0f} s"
        assert (finding.severity, finding.where[0].file) == ("info", IMPORT.file)


BAR = Frame("/site-packages/ultralytics/utils/tqdm.py", 379, "__iter__")
WAIT = Frame("/usr/lib/python3.12/threading.py", 355, "wait")


@pytest.mark.parametrize(
    ("file", "function", "words", "advice"),
    [
        ("dataset.py", "cache_labels", ", 100 % of it checking its images and labels", "Let YOLO check the data set"),
        ("base.py", "cache_images", ", 100 % of it filling its cache of images", "Set `cache=disk`"),
        ("base.py", "other", "", "Look at `other` (base.py:144)"),
    ],
)
def test_what_a_slow_start_did_with_the_data_set_is_named_by_who_waits_for_it(file, function, words, advice):
    caller = Frame(f"/site-packages/ultralytics/data/{file}", 144, function)
    run = started([("data set", 30.0)], stacks=(process((0, 40, (WAIT, BAR, caller))),))
    (finding,) = slow(run)
    assert finding.summary == f"The training never began: it prepared its data set for 30 s{words}"
    assert finding.where[0].function == function
    assert analyse(run).verdict.sentences[0].text.startswith(f"{advice}")


SSD = Mount("/data", "xfs", "/dev/nvme0n1", "nvme0n1", False, 900_000.0)


@pytest.mark.parametrize(
    ("cpu_pct", "pressure_pct", "mounts", "is_slow"),
    [
        (6.0, 0.0, (), True),
        (180.0, 0.0, (), False),
        (float("nan"), 0.0, (), False),
        (30.0, 95.0, (), False),  # other programs had the cores
        (6.0, 0.0, (SSD,), False),
    ],
)
def test_a_check_of_images_without_cpu_waited_for_the_storage(cpu_pct, pressure_pct, mounts, is_slow):
    caller = Frame("/site-packages/ultralytics/data/dataset.py", 144, "cache_labels")
    run = started([("data set", 30.0)], stacks=(process((0, 40, (WAIT, BAR, caller))),))
    columns = {column.name: np.nan for column in schema.HOST_QUANTITIES}
    columns |= {"main_cpu_pct": cpu_pct, "cpu_pressure_pct": pressure_pct, "cpu_pct": 100.0 if pressure_pct else 10.0}
    inside = tuple(dataclasses.replace(each, settings={"data_folder": "/data/images"}) for each in run.inside)
    recording = dataclasses.replace(run.recording, mounts=mounts)
    host = pd.DataFrame({"t_s": np.arange(35.0), **columns})
    (finding,) = slow(dataclasses.replace(run, host=host, inside=inside, recording=recording))
    assert finding.advice[0].short.startswith("Copy the data set") is is_slow
    assert [advice.of_slow_scan for advice in finding.advice] == [True, False][not is_slow :]
    assert all(each.unit for each in finding.evidence)  # measured, each of it


@pytest.mark.parametrize(("cache", "count"), [("ram", 1), ("disk", 0)])
def test_a_cache_on_disk_is_not_advised_where_it_is_being_filled(cache, count):
    caller = Frame("/site-packages/ultralytics/data/base.py", 335, "cache_images")
    run = started([("data set", 30.0)], stacks=(process((0, 40, (WAIT, BAR, caller))),))
    (finding,) = slow(dataclasses.replace(run, yolo_runs=(YoloRun(1, None, {"cache": cache}, "recorded", None),)))
    assert len(finding.advice) == count


TORCH = "/venv/lib/python3.12/site-packages/torch/"
LIBRARY = "/usr/lib/python3.12/"
LAUNCH = Frame(LIBRARY + "multiprocessing/popen_spawn_posix.py", 62, "_launch", "write")
SPAWNS = (LAUNCH, Frame(TORCH + "utils/data/dataloader.py", 1192, "__init__"), TRAINER)
COMPILE = (Frame(TORCH + "_inductor/ir.py", 379, "x"), Frame(TORCH + "_inductor/compile_fx.py", 1485, "f"), TRAINER)
BACKWARD = (Frame(TORCH + "autograd/graph.py", 869, "_engine_run_backward", "run_backward"), TRAINER)
IMPORTS_IT = (Frame(TORCH + "_dynamo/convert_frame.py", 9, "<module>"), TRAINER)
RUNS_COMPILED = (Frame(TORCH + "_dynamo/eval_frame.py", 4, "_fn"), TRAINER)
IMPORTING = (Frame("<frozen importlib._bootstrap_external>", 9, "get_data"), Frame(TORCH + "fx.py", 1, "<module>"))
CONVOLUTION = (Frame(TORCH + "nn/modules/conv.py", 548, "_conv_forward", "conv2d"), TRAINER)


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        (SPAWNS, start_work.SPAWNS),
        (SPAWNS[:1], None),  # no loader's
        (COMPILE, start_work.COMPILES),
        (RUNS_COMPILED, None),
        (IMPORTS_IT, None),
        (IMPORTING, start_work.IMPORTS),
        ((IMPORT, *IMPORTING), None),  # a module of the user's that computes while it is imported
        (CONVOLUTION, start_work.SEARCHES),
        (TRAINS, None),
    ],
)
def test_the_frames_of_the_main_process_say_what_kind_of_work_it_does(stack, kind):
    assert start_work.work_of(stack) is kind


def first_sentence(run):
    return analyse(run).verdict.sentences[0].text


def test_workers_that_are_spawned_lead_where_they_took_most_of_a_recording():
    worker = process((33, 35, READS), role="worker 0", pid=2)  # once it had begun: no line of it is named
    run = started([("first batch", 30.0)], train_s=10.0, stacks=(process((5, 35, SPAWNS)), worker))
    (finding,) = slow(run)
    assert finding.summary.endswith("for 30 s, 100 % of it spawning data-loader workers")
    assert finding.severity == "info"
    assert all(at.process == "main" for at in finding.where)
    assert first_sentence(run).startswith("Start workers by `fork`, or keep them")


def test_a_model_that_is_compiled_leads_with_its_backward():
    run = started([("first batch", 30.0)], train_s=2.0, stacks=(process((5, 19, COMPILE), (19, 35, BACKWARD)),))
    first, then, *_ = (each.text for each in analyse(run).verdict.sentences)
    assert first.startswith("Leave out `compile` in short runs")
    assert then == "Start-up spent 30 s compiling the model."
    assert slow(run)[0].advice[0].settings == ()  # by code of the user's: no argument does it
    asked = dataclasses.replace(run, yolo_runs=(YoloRun(1, None, {"compile": True}, "recorded", None),))
    assert slow(asked)[0].advice[0].settings == (Setting("compile", "True", "False"),)
    no_compiler = started([("first batch", 30.0)], train_s=2.0, stacks=(process((5, 35, BACKWARD)),))
    assert slow(no_compiler)[0].advice == ()


SEARCHES = process((5, 15, CONVOLUTION), (15, 35, BACKWARD))


def first_batch_with(args, settings=None):
    """Return a training that did no more than its first batch, in convolutions and their backward."""
    run = started([("first batch", 30.0)], train_s=0.0, stacks=(SEARCHES,))
    (rank,) = run.inside
    phases = (*rank.phases, Phase("validation", 1, 35.0, 39.0, "callbacks"))
    places = (SettingLocation("cudnn_benchmark", "/home/me/train.py", 8),)
    rank = dataclasses.replace(rank, run=1, phases=phases, settings=settings or {}, setting_locations=places)
    return dataclasses.replace(run, inside=(rank,), yolo_runs=(YoloRun(1, None, args, "recorded", None),))


def test_image_sizes_that_vary_are_named_where_the_first_batch_is_all_that_was_trained():
    run = first_batch_with({"multi_scale": 0.25, "imgsz": 640})
    (finding,) = slow(run)
    assert finding.summary.endswith("for 30 s, 100 % of it in the first calls of convolutions")
    assert finding.advice[0].text.endswith("Each of 11 sizes (`multi_scale`) needs this once")
    assert finding.advice[0].settings == (Setting("multi_scale", None, "0.0"),)
    assert first_sentence(run).startswith("Keep the image size fixed")
    assert build_context(run, Options()).undisturbed == ()  # its validation is no training


def test_a_search_that_code_of_the_users_switched_on_is_named_with_its_line():
    run = first_batch_with({"multi_scale": 0.25, "imgsz": 640}, {"slow_modes": ["cudnn_benchmark"]})
    assert first_sentence(run).endswith("remove `torch.backends.cudnn.benchmark = True` (train.py:8).")


def test_of_a_size_that_never_changes_nothing_is_advised():
    assert slow(first_batch_with({"imgsz": 640}))[0].advice == ()


def test_a_known_start_up_of_a_long_training_is_a_note_that_leads_nothing():
    run = started([("first batch", 30.0)], train_s=300.0, stacks=(process((5, 35, SPAWNS)),))
    assert slow(run)[0].severity == "info"
    assert not any("Start-up spent" in each.text for each in analyse(run).verdict.sentences[:2])


def anew(stack):
    """Return a training whose main process stands in a stack before its first batch, and in each later epoch."""
    again = ((5, 15, stack), (15, 40, TRAINS), (40, 50, stack), (50, 75, TRAINS), (75, 85, stack), (85, 110, TRAINS))
    run = started([("first batch", 10.0)], train_s=95.0, stacks=(process(*again),))
    phases = [*run.inside[0].phases[:1], *(Phase("train", n + 1, *span, "callbacks") for n, span in enumerate(EPOCHS))]
    return dataclasses.replace(run, inside=(dataclasses.replace(run.inside[0], phases=tuple(phases)),))


def test_what_each_epoch_starts_anew_is_a_warning_that_says_so():
    run = anew(SPAWNS)
    (finding,) = slow(run)
    assert finding.severity == "warning"
    says = [sentence.text for sentence in analyse(run).verdict.sentences]
    assert any(text.endswith("spawning data-loader workers, and each later epoch 10 s.") for text in says)


RESETS = (
    Frame("/site-packages/ultralytics/data/build.py", 106, "reset"),
    Frame("/home/me/seasons.py", 10, "__call__"),
    TRAINER,
)


def test_who_resets_the_loader_and_who_sets_the_method_are_named():
    run = anew(SPAWNS)
    (main,), (rank,) = run.stacks, run.inside
    stacks = {**main.stacks, max(main.stacks) + 1: RESETS}
    places = (SettingLocation("start_method", "/home/me/train.py", 12),)
    run = dataclasses.replace(
        run,
        stacks=(dataclasses.replace(main, stacks=stacks),),
        inside=(dataclasses.replace(rank, setting_locations=places),),
    )
    said = "Start workers by `fork` (train.py:12), or do not reset the loader in `__call__` (seasons.py:10)"
    assert slow(run)[0].advice[0].short == said
    assert slow(anew(SPAWNS))[0].advice[0].short == "Start workers by `fork`, or keep them: `persistent_workers=True`"


def test_convolutions_of_later_epochs_are_their_steps():
    assert [finding.severity for finding in slow(anew(CONVOLUTION))] in ([], ["info"])


EPOCHS = ((15.0, 40.0), (40.0, 75.0), (75.0, 110.0))


PINNED = {"cpu_pct": 6.3, "cpu_pressure_pct": 98, "main_cpu_pct": 10, "workers_cpu_pct": 90, "workers": 12}


def on_cores(run, cores, used, binding=None, places=()):
    """Return a run on a machine of 16 cores of which its processes may use some, with what the host read throughout."""
    t_s = run.samples["t_s"]
    host = pd.DataFrame({"t_s": t_s, "main_cores": cores, "worker_cores": cores, **used, "busiest_worker_cpu_pct": 9})
    settings = {"workers": 12} if binding is None else {"workers": 12, "thread_binding": binding}
    inside = dataclasses.replace(run.inside[0], settings=settings, setting_locations=tuple(places))
    recording = dataclasses.replace(run.recording, cores=16, cores_online=16)
    return dataclasses.replace(run, host=host, inside=(inside,), recording=recording)


@pytest.mark.parametrize(
    ("binding", "places", "lead"),
    [
        (
            ["OMP_PROC_BIND", "OMP_PLACES"],
            [("OMP_PROC_BIND", "env.py", 3), ("OMP_PLACES", "env.py", 4)],
            "Unset `OMP_PROC_BIND` and `OMP_PLACES` (env.py:3 and 4): they leave training 1 of 16 CPU cores.",
        ),
        (
            None,
            [],
            "Remove what pins training to 1 of 16 CPU cores: "
            "`OMP_PROC_BIND`, `OMP_PLACES`, `taskset` or `sched_setaffinity`.",
        ),
        ([], [], "Remove what pins training to 1 of 16 CPU cores: `taskset` or `sched_setaffinity`."),
        (
            ["OMP_PLACES"],
            [("affinity", "env.py", 7)],
            "Let each process use more CPU cores (env.py:7).",
        ),
    ],
)
def test_a_training_that_never_began_on_one_core_says_what_pins_it(binding, places, lead):
    """12 workers and the main process on one of 16 cores (H200, `OMP_PROC_BIND=close`): no batch in 51 s."""
    run = started([("data set", 2.0), ("first batch", 50.0)], stacks=(process((0, 60, LOGS)),))
    run = on_cores(run, 1, PINNED, binding, [SettingLocation(*each) for each in places])
    (finding,) = slow(run)
    assert finding.summary.endswith("for 50 s; training may use only 1 of 16 CPU cores")
    assert (finding.severity, finding.cause_name) == ("warning", "cpu-limit")
    assert analyse(run).verdict.sentences[0].text == lead


@pytest.mark.parametrize(
    ("cores", "more", "train_s", "cause"),
    [
        (1, {}, 30.0, "cpu-limit"),  # it began, and is pinned still
        (1, {"cpu_pressure_pct": 2, "workers_cpu_pct": 0, "main_cpu_pct": 100}, 0.0, "startup"),  # one thread alone
        (16, {}, 0.0, "cpu-limit"),  # what it may use was not recorded: 15 cores are free, and it never has more
        (16, {}, 30.0, "startup"),
        (16, {"cpu_pressure_pct": 0}, 0.0, "startup"),
        (4, {}, 0.0, "startup"),  # those that it may use are free
    ],
)
def test_a_start_on_few_cores_is_one_that_fills_them_while_processes_wait(cores, more, train_s, cause):
    run = started([("first batch", 50.0)], train_s=train_s, stacks=(process((0, 60, LOGS)),))
    (finding,) = slow(on_cores(run, cores, PINNED | more))
    assert finding.cause_name == cause
