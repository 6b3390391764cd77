"""Programs that call a model on an H200, each with a fault that no rule was written for, or with none (2026-11-28).

Designed and recorded by people who had not read a rule, as the trainings of `test_unseen_runs.py`. The truth was
measured without the fault: images a second, in the same 20 s on the same machine.
"""

import dataclasses
import re

import pytest
from support.archives import unpacked

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.render.run.terminal import render_text
from gpu_report.render.what_to_change import listed_changes

# The second: what people complain of in public; the third: other tasks and models; the fourth: two things are wrong.
ARCHIVES = "unseen_h200_served", "unseen_h200_calls", "unseen_h200_programs", "unseen_h200_two_served"
ARCHIVES = *ARCHIVES, "unseen_h200_again", "unseen_h200_reported"
BEGINS = {
    "chorus": "Pass `need_weights=False` to the attention in `forward` (model.py:15)",  # 2.6 times faster
    "switchyard": "Keep one YOLO object for each setting of `quantize`: `find` (detector.py:12) changes it",  # 2.2
    "tailor": "With image sizes that vary, remove `torch.backends.cudnn.benchmark = True` (embed.py:22)",  # 11 times
    "turnstile": "Call the model from threads that stay (a queue or a pool)",  # 122 ms a call, 9 in a thread that stays
    "pavement_again": "List each image once: 5.58 s a validation become about 2.03 s",
    "emporium": "Look at `nearest` (gallery.py:16): without it 18 images/s become about",
    "funicular": "Look at `receive` (wire.py:13 or a line near it): without it 4.4 images/s become about",
    "reservoir": "Look at `run_lengths` (archive.py:11): without it 13 images/s become",
    "kelp": "Nothing to fix",
    "lantern": "Look at `brightness` (light.py:7): 10.0 s a validation become about 3.55 s",  # first: 6.8 s measured
    "film": "Look at `next` (film.py:13): without it 34 images/s become about",
    "coastline": "Nothing to fix: GPU 1 was busy 97 %",
    "aviary": "Set `save_crop=False`, and cut boxes out in other processes: at most 62 %",
    "crossing": "Put the images of all threads into one call (lists of 8): from 112 images/s to about",
    "ferry": "Use `tracker=bytetrack.yaml`, or `gmc_method: none`",
    "frontdesk": "Nothing to fix was found in the calls of parts.pt: it mostly waits for the next request",
    "gallery": "Nothing to fix was found in the calls of large.pt",
    "market": "Look at `show` (board.py:14): without it 15 images/s become about",
    "pantry": "Install `onnxruntime-gpu` in place of `onnxruntime`",
    "rollcall": "Give each list of images a folder of its own: 4.57 s a validation become 2.00 s at least",
    "skylight": "Look at `straighten` (lens.py:24): without it 7.7 images/s become about",
    "dock": "Shrink images before `batch` (cameras.py:22) receives them (now up to 2,560 px), or put them in shared",
    "herbarium": "Call SAM once for each image in `outline` (leaves.py:10), with all boxes",
    "apiary": "Look at `write` (diary.py:15): without it 19 images/s become about",
    "archive": "Shrink the images once (now up to 6,000 px, `imgsz=640`)",
    "beacon": "Nothing to fix was found in the calls",
    "census": "Nothing to fix was found in the validations. Validated 1,800 images in 11.1 s (163 images/s)",
    "glacier": "If images are collected before each call, wait shorter, or for fewer of them",
    "metro": "Hold the lock of `run` (platform.py:19) for the call alone",
    "terrace": "Nothing to fix",
    "tollgate": "Look at `to_records` (lanes.py:5): without it 55 images/s become about",
    "vineyard": "Look at `tidy` (memory.py:7): without it 21 images/s become about",
}
# images a second
WITHOUT = {
    "apiary": 104.3,
    "film": 91.2,
    "funicular": 87.0,
    "glacier": 132.6,
    "market": 53.7,
    "tollgate": 87.0,
    "vineyard": 191.2,
}
LIMITS = {"archive": 47.4, "metro": 39.6}  # likewise, of threads that share the cores with what they wait for


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return unpacked(tmp_path_factory.mktemp("served"), *ARCHIVES)


@pytest.mark.parametrize("name", sorted(BEGINS))
def test_what_was_wrong_comes_first(folder, name):
    assert analyse(load_run(folder / name)).verdict.text.startswith(BEGINS[name])


@pytest.mark.parametrize("name", ["beacon", "terrace"])
def test_where_hardly_any_call_came_nothing_is_to_change(folder, name):
    assert not listed_changes(analyse(load_run(folder / name)))


def test_pauses_that_are_set_ups_ask_for_no_calls_in_between(folder):
    assert "slow-after-pause" not in {each.rule for each in analyse(load_run(folder / "switchyard")).findings}


def becomes(analysis):
    """Return how many images a second the first advice promises."""
    said = next(each.text for each in analysis.verdict.sentences if each.kind == "look")
    return float(re.findall(r"become (?:about )?([\d.]+)", said)[0])


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_the_speed_without_it_is_what_was_measured_without_it(folder, name):
    assert becomes(analyse(load_run(folder / name))) == pytest.approx(WITHOUT[name], rel=0.25)


def test_the_second_function_between_calls_is_to_be_looked_at_too(folder):
    """Its YAML took 12.9 of 76 ms: 13.1 become 15.8 images/s."""
    changes = [each.short for each in listed_changes(analyse(load_run(folder / "reservoir")))]
    assert changes[1] == "Look at `load_zones` (zones.py:19): without it 13 images/s become about 16"
    assert [each for each in changes if each.startswith("Or ")] == []


def test_what_each_call_copies_to_the_gpu_is_to_be_kept_there(folder):
    """A gallery of 244 MiB."""
    analysis = analyse(load_run(folder / "emporium"))
    assert "nearest copies about 260 MiB to the GPU for each call." in analysis.verdict.text
    assert listed_changes(analysis)[1].short.startswith("Keep on the GPU what `nearest` copies there")


@pytest.mark.parametrize("name", sorted(LIMITS))
def test_a_limit_is_above_what_was_measured(folder, name):
    assert becomes(analyse(load_run(folder / name))) >= LIMITS[name]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "apiary",
            "78 % of the time for all calls, mostly in write (diary.py:15). It grew from 8.6 ms to 97 ms a call.",
        ),
        (
            "archive",
            "73 % of the time for all calls: __next__ (loaders.py:495), for detections (scans.py:3)",
        ),
        ("glacier", "Each wait lasted 122 ms: it ends by a time-out, not by an arrival."),
        ("tollgate", "to_records (lanes.py:5), which copies numbers from the GPU one by one."),
        ("metro", "Meanwhile 5 threads wait in run (platform.py:19), as for a lock."),
    ],
)
def test_why_is_said_with_it(folder, name, said):
    assert said in analyse(load_run(folder / name)).verdict.text


@pytest.mark.parametrize("name", ["beacon", "census", "terrace"])
def test_a_healthy_service_gets_no_warning(folder, name):
    assert {finding.severity for finding in analyse(load_run(folder / name)).findings} <= {"info"}


def test_waiting_for_calls_and_decoding_account_for_all_the_time_between_calls(folder):
    for name in ("archive", "glacier", "metro", "vineyard"):
        (served,) = analyse(load_run(folder / name)).served
        assert sum(part.seconds for part in served.gap_parts) == pytest.approx(served.gap_s, rel=0.01)


def test_a_model_that_is_fused_for_each_call_is_being_loaded(folder):
    """`model.fuse()` counts the operations of the model it made: that runs it, and is no code of the user's."""
    rules = [finding.rule for finding in analyse(load_run(folder / "kiosk")).findings]
    assert "slow-between-calls" not in rules
    assert "model-reloaded" in rules


def test_a_list_that_names_images_several_times_leads_where_the_different_ones_were_counted(folder):
    """300 of 1,050 are different; the recording is older than the count. Each once took half as long or less."""
    run = load_run(folder / "pavement")
    counted = [dataclasses.replace(each, settings={**each.settings, "distinct_images": 300}) for each in run.inside]
    text = analyse(dataclasses.replace(run, inside=tuple(counted))).verdict.text
    assert text.startswith("List each image once: 4.49 s a validation become about 1.74 s")


@pytest.mark.parametrize(
    "name", ["census", "coastline", "dock", "duet", "film", "herbarium", "lagoon", "metro", "pavement"]
)
def test_nothing_is_said_of_a_training_where_nothing_trained(folder, name):
    """Another GPU of the machine had nothing to do meanwhile, or was another program's."""
    analysis = analyse(load_run(folder / name))
    assert "unused-gpu" not in {finding.rule for finding in analysis.findings}
    printed = render_text(analysis, width=200).lower()
    assert "train" not in printed
    assert "epoch" not in printed
