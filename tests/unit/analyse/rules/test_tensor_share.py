"""A busy GPU whose work is mostly not the model's, by the share that tensor cores have in its SM activity."""

from dataclasses import replace

import pytest
from support.runs import make_run, readings
from support.samples import SAMPLES
from support.stacks import TRAINER, process

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.results.verdict.leads.from_settings import set_up
from gpu_report.analyse.signals.code.stack_kinds import runs_network
from gpu_report.analyse.tensor_share import usual_tensor_share
from gpu_report.load import load_run
from gpu_report.model import Frame, Options


@pytest.fixture(scope="module")
def healthy():
    """YOLO26m on an H200, busy nine tenths of the time: 13 % of tensor activity, 78 % of SM activity."""
    return load_run(SAMPLES / "m-healthy")


def found_in(run):
    return [finding for finding in analyse(run).findings if finding.rule == "other-gpu-work"]


def with_tensor_activity(run, factor):
    return replace(run, samples=run.samples.assign(tensor_active_pct=run.samples["tensor_active_pct"] * factor))


def test_the_usual_share_grows_with_the_model():
    assert usual_tensor_share(2.5e6) == pytest.approx(0.071, abs=0.002)
    assert usual_tensor_share(26e6) == pytest.approx(0.157, abs=0.002)


def test_a_share_of_a_third_of_the_usual_is_other_work(healthy):
    assert found_in(healthy) == []
    (finding,) = found_in(with_tensor_activity(healthy, 0.35))
    (advice,) = finding.advice
    usual = usual_tensor_share(21_779_056)
    assert advice.gain_at_most == pytest.approx(0.91 * (1 - 0.35 * 0.17 / usual), abs=0.04)
    assert finding.severity == "warning"
    said = analyse(with_tensor_activity(healthy, 0.35)).verdict.sentences
    assert said[0].findings == (finding.id,)
    assert not any("Nothing to fix" in sentence.text for sentence in said)


@pytest.mark.parametrize(
    ("factor", "told", "words"),
    [
        (1.0, {}, ""),
        (0.02, {}, "TF32 is probably off"),
        (0.02, {"tf32": False}, "TF32 is off"),
        (0.02, {"tf32": True}, ""),
        (0.35, {}, ""),
    ],
)
def test_a_model_in_32_bits_without_tensor_cores_is_no_other_work(healthy, factor, told, words):
    inside = tuple(replace(each, settings={**each.settings, "amp": False, **told}) for each in healthy.inside)
    run = with_tensor_activity(replace(healthy, inside=inside), factor)
    (said,) = [each for each in analyse(run).findings if each.rule == "environment" and "32 bits" in each.summary]
    assert (words in said.summary, "allow_tf32" in said.advice[0].text) == (True, bool(words))
    assert (said.advice[0].gain_at_most or 0.0) == pytest.approx(1 - 1 / 7 if words else 0.0, abs=0.04)
    assert len(found_in(run)) == (factor < 1 and not words)


def test_that_tf32_was_recorded_as_off_is_enough_for_any_task(healthy):
    told = {"amp": False, "tf32": False}
    inside = tuple(replace(each, settings={**each.settings, **told}) for each in healthy.inside)
    runs = tuple(replace(each, args={**each.args, "task": "pose"}) for each in healthy.yolo_runs)
    poses = replace(healthy, inside=inside, yolo_runs=runs)
    (said,) = [each for each in analyse(with_tensor_activity(poses, 0.02)).findings if each.rule == "environment"]
    assert "TF32 is off" in said.summary
    assert said.advice[0].gain_at_most == pytest.approx(1 - 1 / 7, abs=0.04)


def test_how_much_faster_amp_makes_it_at_most_is_told_of_whole_epochs(healthy):
    """Saving and what lies between stays as it is: of half of an epoch six sevenths are won at most."""
    inside = tuple(replace(each, settings={**each.settings, "amp": False, "tf32": False}) for each in healthy.inside)
    run = with_tensor_activity(replace(healthy, inside=inside), 0.01)
    found = analyse(run)
    gain = next(f.advice[0].gain_at_most for f in found.findings if f.rule == "environment" and "32 bits" in f.summary)
    context = build_context(run, Options())
    half = replace(found.epoch_now, seconds=10.0, train_s=4.0, validation_s=1.0)
    for now, ratio in ((half, 1 / (1 - gain / 2)), (None, 1 / (1 - gain))):
        first = set_up(context, found.findings, now)
        assert f"(at most {ratio:.2g}\u00d7 faster)" in next(first).sentence.text


EMPTY = {"sm_active_pct": 5.0, "memory_util_pct": 0.0}
UNREAD = {"sm_active_pct": float("nan"), "memory_util_pct": 0.0}


def with_steps(run, times):
    """Return a run whose steps take so many times as long: of so many fewer batches."""
    fewer = [
        replace(
            each,
            epochs=tuple(replace(epoch, batches=max(epoch.batches // times, 1)) for epoch in each.epochs),
            progress=tuple(replace(said, batches=said.batches // times) for said in each.progress),
        )
        for each in run.inside
    ]
    return replace(run, inside=tuple(fewer))


@pytest.mark.parametrize(
    ("readings", "times", "is_empty"),
    [
        (EMPTY, 8, True),
        ({**UNREAD, "power_w": 136.0}, 8, True),
        ({**UNREAD, "power_w": 500.0}, 8, False),
        ({**EMPTY, "sm_active_pct": 30.0}, 8, False),
        ({**EMPTY, "memory_util_pct": 20.0}, 8, False),
        (EMPTY, 1, False),  # steps so short are of a model that is too small for the GPU
        ({**UNREAD, "power_w": 136.0}, 1, False),
    ],
)
def test_a_busy_gpu_of_which_next_to_nothing_works_is_no_well_used_one(healthy, readings, times, is_empty):
    """A loss that one block of threads sums up: 1.7 s a step at 100 % utilisation (YOLO26m-sem, H200, 2026-11-27)."""
    run = with_steps(replace(healthy, samples=healthy.samples.assign(**readings)), times)
    found = [finding for finding in found_in(run) if "hardly any" in finding.summary]
    assert not any("%" in finding.summary for finding in found)  # the verdict says how busy it was
    assert len(found) == is_empty
    text = analyse(run).verdict.text
    assert text.startswith("Find what the GPU computes so slowly") == is_empty
    assert not (is_empty and "Nothing to fix" in text)


def with_boxes(run, boxes):
    told = {"image_boxes": boxes}
    return replace(run, inside=tuple(replace(each, settings={**each.settings, **told}) for each in run.inside))


@pytest.mark.parametrize(
    ("boxes", "named"),
    [
        ([103.2, 2500], True),
        ([20, 200], True),
        ([7.2, 93], False),  # COCO
        ([300, 2500], False),  # all are full: little of it is padding
        ([0.0, 0], False),
        ([3], False),
        (["3", None], False),
        (None, False),
    ],
)
def test_images_that_are_crowded_beside_the_others_are_named(healthy, boxes, named):
    run = with_boxes(with_tensor_activity(healthy, 0.35), boxes)
    (finding,) = found_in(run)
    (advice,) = finding.advice
    assert (advice.short == "Tile the images with most boxes, or thin out their labels") == named
    assert advice.gain_at_most == found_in(with_tensor_activity(healthy, 0.35))[0].advice[0].gain_at_most
    counts = f"up to {boxes[1]:,} boxes, {boxes[0]:.0f} on average" if named else "went into other kernels"
    assert counts in finding.summary
    first = analyse(run).verdict.sentences[0]
    assert first.findings == (finding.id,)
    assert first.text.startswith(advice.short)
    assert found_in(with_boxes(healthy, boxes)) == []  # full images that cost nothing are none


@pytest.mark.parametrize(
    ("classes", "short", "said"),
    [
        ([1203, 4, 0], "Name only classes with labels in `data.yaml` (4 of 1,203)", "of which 4 have labels"),
        ([1203, 700, 0], "Train with fewer classes, if they may be", "1,203 classes for each prediction: probably"),
        ([1203, 500, 90], "Train with fewer classes, if they may be", "1,203 classes for each prediction: probably"),
        ([80, 4, 0], "Find what else the GPU computes", "other kernels"),
        ([1203], "Find what else the GPU computes", "other kernels"),
        (["1203", 4, 0], "Find what else the GPU computes", "other kernels"),
    ],
)
def test_many_classes_are_what_the_loss_computes(healthy, classes, short, said):
    """1,203 classes, of which 4 had labels, took 44 % of the steps of YOLO26s (H200, 2026-11-28)."""
    settings = {"label_classes": classes}
    inside = tuple(replace(each, settings={**each.settings, **settings}) for each in healthy.inside)
    (finding,) = found_in(with_tensor_activity(replace(healthy, inside=inside), 0.35))
    assert finding.advice[0].short == short
    assert said in finding.summary
    assert found_in(replace(healthy, inside=inside)) == []


@pytest.mark.parametrize(("factor", "mostly"), [(0.35, True), (0.42, False)])
def test_most_of_training_time_is_half_of_it(healthy, factor, mostly):
    (finding,) = found_in(with_tensor_activity(healthy, factor))
    assert (finding.advice[0].gain_at_most >= 0.5, "mostly" in finding.summary) == (mostly, mostly)


LAYER = Frame("/home/u/attention.py", 23, "forward")
MODULE = Frame("/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", 1751, "_wrapped_call_impl")


def test_a_layer_of_ones_own_is_where_to_look(healthy):
    notes = process((0, healthy.duration_s, (LAYER, MODULE, TRAINER)))
    (finding,) = found_in(replace(with_tensor_activity(healthy, 0.35), stacks=(notes,)))
    assert finding.advice[0].short == "Look at what `forward` (attention.py:23) computes on the GPU"


def test_beside_crowded_images_ones_own_layer_comes_second(healthy):
    notes = process((0, healthy.duration_s, (LAYER, MODULE, TRAINER)))
    run = with_boxes(replace(with_tensor_activity(healthy, 0.35), stacks=(notes,)), [12, 2500])
    tile, look = found_in(run)[0].advice
    assert tile.short.startswith("Tile the images")
    assert look.short.startswith("Look at what `forward`")


def test_of_several_gpus_the_one_that_waits_least_is_judged():
    """NCCL's waits are kernels without tensor cores, too."""
    run = load_run(SAMPLES / "m-ddp")
    others = run.samples["gpu"] == run.samples["gpu"].max()
    waits = run.samples["tensor_active_pct"].where(~others, run.samples["tensor_active_pct"] * 0.2)
    busier = run.samples["gpu_util_pct"].where(~others, 100.0)
    assert found_in(replace(run, samples=run.samples.assign(tensor_active_pct=waits, gpu_util_pct=busier))) == []
    assert len(found_in(with_tensor_activity(run, 0.3))) == 1


def test_on_another_gpu_or_task_the_usual_share_is_not_known(healthy):
    run = with_tensor_activity(healthy, 0.35)
    other = replace(run, gpus=tuple(replace(gpu, name="NVIDIA B200") for gpu in run.gpus))
    assert found_in(other) == []
    masks = replace(run.yolo_runs[0], args={**run.yolo_runs[0].args, "task": "segment"})
    assert found_in(replace(run, yolo_runs=(masks, *run.yolo_runs[1:]))) == []


MODULE = Frame("/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1846, "inner")
HOOK = Frame("/home/me/activations.py", 22, "hook")


def with_hook(run, called, *, every_s=1.0, function="hook"):
    """Return a run whose main process is in a forward hook for half of the time, and whose calls it is in."""
    stays = []
    for at in range(int(run.duration_s / every_s)):
        start_s, each_s = at * every_s, 0.5 * every_s / len(called)
        for place, name in enumerate(called):
            hook = HOOK._replace(called=name, function=function)
            stays.append((start_s + place * each_s, start_s + (place + 1) * each_s, (hook, MODULE, TRAINER)))
        stays.append((start_s + 0.5 * every_s, start_s + every_s, (TRAINER,)))
    return replace(run, stacks=(process(*stays),))


def test_a_hook_that_the_main_process_is_in_most_of_the_time_is_named_as_what_the_gpu_computes(healthy):
    """Hooks that a callback added at each batch: 74 % of an H200 went into other kernels (2026-11-28)."""
    run = with_tensor_activity(with_hook(healthy, ("mean", "amax", "abs")), 0.35)
    (finding,) = found_in(run)
    assert finding.advice[0].short == "Look at what `hook` (activations.py:22) computes on the GPU"
    assert finding.where[0].share == pytest.approx(0.5, abs=0.02)
    waits = with_tensor_activity(with_hook(healthy, ("item",)), 0.35)
    assert "hook" not in found_in(waits)[0].advice[0].text


@pytest.mark.parametrize(
    ("called", "function", "is_told"),
    [
        (("mean", "amax", "abs"), "hook", True),
        (("mean", "mean", "mean", "amax"), "hook", False),  # may be a wait for the GPU
        (("item", "cpu", "int"), "hook", False),
        (("mean", "amax", "abs"), "forward", False),  # a layer of the model
    ],
)
def test_a_function_that_keeps_the_main_process_is_told_of_any_busy_gpu(healthy, called, function, is_told):
    """Of another card or task nobody knows which share tensor cores have."""
    runs = tuple(replace(each, args={**each.args, "task": "pose"}) for each in healthy.yolo_runs)
    run = with_hook(replace(healthy, yolo_runs=runs), called, function=function)
    found = found_in(run)
    assert len(found) == is_told
    if is_told:
        assert found[0].summary.startswith("GPU 0 was busy, but `hook` (activations.py:22) took 5")
        assert analyse(run).verdict.text.startswith("Look at `hook` (activations.py:22): up to 5")


TEACHER = Frame("/home/user/distil/teacher.py", 24, "features", "")
CALLS = Frame("/usr/lib/python3.12/site-packages/torch/nn/modules/module.py", 1779, "_wrapped_call_impl", "", True)
CONV = Frame("/usr/lib/python3.12/site-packages/torch/nn/modules/conv.py", 548, "_conv_forward", "conv2d", True)
PREDICT = Frame("/usr/lib/python3.12/site-packages/ultralytics/nn/tasks.py", 202, "predict", "", True)


@pytest.mark.parametrize(
    ("stack", "line"),
    [
        ((CONV, CALLS, TEACHER, CALLS, TRAINER), TEACHER),
        ((CONV, CALLS, TEACHER._replace(function="forward"), CALLS, TEACHER, CALLS, TRAINER), TEACHER),
        ((CONV, CALLS, TEACHER, CALLS, PREDICT, TRAINER), None),  # a layer of the model
        ((CONV, CALLS, PREDICT, TEACHER, CALLS, TRAINER), None),  # an override of the model's own pass
        ((CONV, CALLS, TEACHER), None),  # no training of YOLO's
        ((TEACHER, CALLS, TRAINER), None),  # no network
    ],
)
def test_the_line_that_runs_another_network(stack, line):
    assert runs_network(stack) == line


@pytest.mark.parametrize(("gflops", "found"), [(75.0, False), (15.0, True)])
def test_more_tensor_work_than_the_model_needs_is_another_network(healthy, gflops, found):
    """YOLO26m with its 75 GFLOPs has about as much as it needs; with a fifth another network runs."""
    inside = tuple(
        replace(each, settings={**each.settings, "gflops": gflops, "compute_capability": 9.0})
        for each in healthy.inside
    )
    findings = found_in(replace(healthy, inside=inside))
    assert [finding.summary for finding in findings] == [
        "GPU 0 computed at least 2 times what its model's steps need"
    ] * found
    for finding in findings:
        assert finding.advice[0].short == "Find which other network runs in each step"
        assert finding.advice[0].gain_at_most == pytest.approx(0.91 * (1 - 1 / 2.1), abs=0.05)


@pytest.mark.parametrize(
    ("settings", "facts", "clock_mhz"),
    [
        ({"amp": False, "tf32": True}, {}, 1980.0),  # a product in TF32 takes twice as long
        ({"parameters": 600_000}, {}, 1980.0),  # fills tensor cores less than those that were measured
        ({}, {"name": "NVIDIA H20"}, 1980.0),  # fewer tensor cores, and slower ones
        ({}, {"parent_index": 1, "mig_index": 0}, 1980.0),  # an eighth of a GPU
        ({}, {}, 1400.0),  # fewer cycles for the same work
        ({}, {}, float("nan")),
    ],
)
def test_tensor_work_is_not_judged_but_where_it_takes_as_long_as_was_measured(healthy, settings, facts, clock_mhz):
    said = {"gflops": 15.0, "compute_capability": 9.0}
    inside = tuple(replace(each, settings={**each.settings, **said, **settings}) for each in healthy.inside)
    gpus = tuple(replace(gpu, **facts) for gpu in healthy.gpus)
    run = replace(healthy, inside=inside, gpus=gpus, samples=healthy.samples.assign(sm_clock_mhz=clock_mhz))
    assert not [found for found in found_in(run) if "what its model's steps need" in found.summary]


TORCH_NN = "/venv/lib/python3.12/site-packages/torch/nn/"
WEIGHTS = Frame(TORCH_NN + "functional.py", 6647, "multi_head_attention_forward", "bmm")
ATTENTION = (
    Frame(TORCH_NN + "modules/activation.py", 1492, "forward"),
    Frame(TORCH_NN + "modules/module.py", 1, "_call_impl"),
)
BLOCK, MAIN = Frame("/home/me/model.py", 15, "forward"), Frame("/home/me/train.py", 40, "main")
AIFI = Frame("/venv/lib/python3.12/site-packages/ultralytics/nn/modules/transformer.py", 9, "forward")


def program_with(stack, share, util_pct=95.0):
    """Return a plain program whose main process stands in a stack for a share of each second."""
    run = make_run(readings((util_pct, 60)))
    stays = [(t, t + share, stack) for t in range(60)] + [(t + share, t + 1, (MAIN,)) for t in range(60)]
    return replace(run, stacks=(process(*sorted(stays, key=lambda stay: stay[0])),))


def test_attention_that_computes_its_weights_is_named_with_the_line_that_calls_it():
    """`need_weights=False` made steps 2.6 times as fast (8 layers, 1,536 tokens, H200, 2026-11-29)."""
    (found,) = found_in(program_with((WEIGHTS, *ATTENTION, BLOCK, MAIN), 0.15))
    assert "`need_weights=False`" in found.advice[0].text
    assert (found.where[0].line, found.advice[0].gain_at_most) == (15, None)


@pytest.mark.parametrize(
    ("stack", "share", "util_pct"),
    [
        ((WEIGHTS._replace(called="scaled_dot_product_attention"), *ATTENTION, BLOCK, MAIN), 0.15, 95.0),
        ((WEIGHTS._replace(function="mine", file="/home/me/model.py"), BLOCK, MAIN), 0.15, 95.0),
        ((WEIGHTS, *ATTENTION, AIFI, BLOCK, MAIN), 0.15, 95.0),  # a layer of a package's
        ((WEIGHTS, *ATTENTION, BLOCK, MAIN), 0.02, 95.0),
        ((WEIGHTS, *ATTENTION, BLOCK, MAIN), 0.15, 40.0),
    ],
)
def test_attention_without_weights_or_of_a_package_or_of_an_idle_gpu_is_not(stack, share, util_pct):
    assert not any("need_weights" in each.advice[0].text for each in found_in(program_with(stack, share, util_pct)))
