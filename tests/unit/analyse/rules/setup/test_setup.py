"""A set-up at odds with its machine: each check fires, not just under its line, and not where a signal is missing."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run, readings
from support.samples import analysis_of
from support.stacks import LOOP, READ, TRAINER, TRAINS, WAITS, process

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.analyse.causes.image_storage import faster_place
from gpu_report.analyse.signals.host.filesystems import mount_of
from gpu_report.catalogue import SLOW_IMAGES_KEY
from gpu_report.model import (
    Frame,
    InsideEpoch,
    InsideRun,
    JobPart,
    Mount,
    Phase,
    Progress,
    Rank,
    RecordedEvent,
    SettingLocation,
    YoloRun,
)

SECONDS = 120
FITTING = {"torch": "2.11.0+cu130", "cuda": "13.0", "device": "cuda:0"}
LOADER = {"workers": 8, "batch": 16, "imgsz": 640, "prefetch": 4, "world_size": 1}  # 600 MiB of full queues
NVME = Mount("/scratch", "ext4", "/dev/nvme0n1", "nvme0n1", False, 900_000.0)
NFS = Mount("/data", "nfs4", "server:/export")
DISK = Mount("/data", "xfs", "/dev/sda1", "sda", True, 900_000.0)
VIRTUAL = Mount("/", "ext4", "/dev/vda", "vda", None, 99_000.0)
ROOT = Mount("/", "overlay", "overlay")
SHM = Mount("/dev/shm", "tmpfs", "tmpfs", free_mib=64_000.0)


def trained(settings, *, args=None, host=None, ended="finished", error=None, util=90.0, **recording):
    """Return a run of two minutes that trained from 10 to 110 s with these settings, on this machine."""
    run = make_run(readings((0, 10), (util, 100), (0, 10)))
    phases = (Phase("train", 1, 10.0, 110.0, "inside"),)
    inside = InsideRun(1, 0, 41, "train", settings, phases, (), ended, error)
    table = pd.DataFrame({"t_s": np.arange(float(SECONDS)), **{c.name: np.nan for c in schema.HOST_QUANTITIES}})
    return dataclasses.replace(
        run,
        recording=dataclasses.replace(run.recording, driver="580.1", **recording),
        inside=(inside,),
        yolo_runs=(YoloRun(1, None, args or {}, "recorded", None),),
        host=table.assign(**(host or {})),
    )


def odds(run):
    return [finding for finding in analyse(run).findings if finding.rule == "environment"]


def said(run):
    return [(finding.severity, finding.summary) for finding in odds(run)]


# --- torch and the driver


@pytest.mark.parametrize("cuda", [{}, {"cuda": None}])
def test_a_torch_without_cuda_beside_a_gpu(cuda):
    (finding,) = odds(trained({"torch": "2.13.0+cpu", "device": "cpu", **cuda}, util=0.0, cuda="13.0"))
    assert finding.severity == "critical"
    assert "torch 2.13.0+cpu has no CUDA" in finding.summary
    assert "CUDA, 13.0 at most" in finding.advice[0].text
    assert (finding.start_t_s, finding.end_t_s) == (10.0, 110.0)
    assert [(e.text, e.value) for e in finding.evidence] == [("utilisation of GPU 0 meanwhile", 0.0)]


@pytest.mark.parametrize(
    "settings",
    [
        {"torch": "2.13.0+cpu", "device": "cuda:0"},  # cannot be, and says nothing of a training on the CPU
        {"torch": "2.13.0", "device": "cpu"},  # nobody said what CUDA it has
        {"torch": None, "cuda": None, "device": "cpu"},
        {"torch": "2.13.0+rocm6.2", "cuda": None, "device": "cpu"},
        {"torch": "2.13.0+cpu"},
        {},
    ],
)
def test_no_word_on_torch_where_it_is_not_known(settings):
    assert odds(trained(settings, util=0.0, cuda="13.0")) == []


def test_the_cpu_that_was_asked_for_is_only_a_note():
    (finding,) = odds(trained({"torch": "2.13.0+cpu", "device": "cpu"}, args={"device": "cpu"}, util=0.0))
    assert (finding.severity, finding.duration_s) == ("info", 0.0)


def test_without_a_gpu_there_is_none_to_use():
    run = trained({"torch": "2.13.0+cpu", "device": "cpu"}, util=0.0)
    assert odds(dataclasses.replace(run, gpus=(), samples=run.samples.iloc[:0])) == []


def without_gpu(args, torch="2.11.0+cu130", **recording):
    run = trained({**FITTING, "torch": torch, "device": "cpu"}, args=args, util=0.0, **recording)
    told = RecordedEvent(0.0, "nvml_unavailable", None, {"reason": "no driver", "advice": "install it"})
    return dataclasses.replace(run, gpus=(), samples=run.samples.iloc[:0], events=(told,))


def test_a_training_that_went_to_the_cpu_unasked_is_given_a_gpu():
    run = without_gpu({"device": None})
    (found,) = odds(run)
    assert (found.severity, found.advice[0].text) == ("warning", "Install it")
    assert found.summary == "PyTorch found no GPU and trained on the CPU (no driver)"
    assert analyse(run).verdict.text.startswith("Give the training a GPU: PyTorch found no GPU")


def test_a_training_on_the_cpu_has_its_proof_and_is_said_once():
    run = without_gpu({"device": None}, cores=4, cores_online=4)
    host = run.host.reindex(range(SECONDS))
    host["t_s"], host["main_cpu_pct"], host["cpu_pct"] = np.arange(1.0, SECONDS + 1), 150.0, 40.0
    analysis = analyse(dataclasses.replace(run, host=host))
    (found,) = odds(dataclasses.replace(run, host=host))
    assert {each.text: each.value for each in found.evidence} == {"CPU of the training's main process": 150.0}
    assert analysis.verdict.text.count("the CPU") == 1
    assert "The training used 1.5 of 4 cores." in analysis.verdict.text


@pytest.mark.parametrize(
    "run",
    [
        without_gpu({"device": "cpu"}),
        without_gpu({"device": ["cpu"]}),
        without_gpu({}),  # nobody knows what was asked for
        without_gpu({"device": None}, torch="2.11.0+cpu"),
        without_gpu({"device": None}, cuda_visible_devices="-1"),
    ],
)
def test_the_cpu_that_may_have_been_asked_for_is_not_spoken_of(run):
    assert odds(run) == []


def test_a_run_that_told_nothing_trained_on_the_cpu_when_its_epochs_came_and_no_gpu_worked():
    run = make_run([0.0] * SECONDS, rows=[(1, 60), (2, 115)])
    bare = dataclasses.replace(run, recording=dataclasses.replace(run.recording, torch="2.13.0+cpu"))
    assert [finding.severity for finding in odds(bare)] == ["critical"]
    working = make_run(readings((0, 10), (90, 110)), rows=[(1, 60), (2, 115)])
    assert odds(dataclasses.replace(working, recording=bare.recording)) == []


def test_a_torch_for_a_newer_cuda_than_the_driver_serves():
    told = {"torch": "2.15.0+cu132", "cuda": "13.2", "device": "cpu"}
    (finding,) = odds(trained(told, util=0.0, cuda="12.4"))
    assert finding.severity == "critical"
    assert finding.summary.endswith("torch needs CUDA 13.2, the driver 580.1 has 12.4")
    assert finding.advice[0].text == "Update the NVIDIA driver, or install torch and torchvision for CUDA 12"
    assert odds(trained(told, util=0.0)) == []  # nobody knows what the driver serves


@pytest.mark.parametrize(("served", "severities"), [("13.0", ["info"]), ("13.2", []), ("13.4", []), (None, [])])
def test_a_later_minor_version_works_and_is_only_a_note(served, severities):
    told = {**FITTING, "cuda": "13.2"}
    assert [finding.severity for finding in odds(trained(told, cuda=served))] == severities


@pytest.mark.parametrize(
    ("args", "devices", "words"),
    [
        ({}, None, ["could have used"]),
        ({"device": None}, "", ["CUDA_VISIBLE_DEVICES hides it"]),
        ({"device": None}, "0", ["could have used"]),
        ({"device": "cpu"}, None, []),
    ],
)
def test_a_gpu_that_was_not_taken(args, devices, words):
    run = trained({**FITTING, "device": "cpu"}, args=args, util=0.0, cuda="13.0", cuda_visible_devices=devices)
    found = odds(run)
    assert [finding.severity for finding in found] == ["critical"] * len(words)
    assert all(word in finding.summary for word, finding in zip(words, found, strict=True))


def test_a_gpu_that_the_users_own_code_hides_is_named_with_its_line():
    told = {**FITTING, "device": "cpu", "gpus_hidden": True}
    run = trained(told, args={}, util=0.0, cuda="13.0", cuda_visible_devices="2")  # what it was started with
    (mine,) = run.inside
    hidden = dataclasses.replace(mine, setting_locations=(SettingLocation("no_gpu", "/home/me/environment.py", 4),))
    (finding,) = odds(dataclasses.replace(run, inside=(hidden,)))
    assert finding.advice[0].short == "Leave CUDA_VISIBLE_DEVICES as it is (environment.py:4)"


@pytest.mark.parametrize(
    ("before", "commanded", "do"),
    [
        ("0", True, "Find what sets CUDA_VISIBLE_DEVICES within the command: its code, a script, or an .env file"),
        (None, True, "Find what sets CUDA_VISIBLE_DEVICES within the command: its code, a script, or an .env file"),
        ("-1", True, "Unset CUDA_VISIBLE_DEVICES"),
        (None, False, "Unset CUDA_VISIBLE_DEVICES"),  # a process that was attached to: nobody saw it begin
    ],
)
def test_who_hides_the_gpu_is_known_by_what_the_command_was_given(before, commanded, do):
    told = {**FITTING, "device": "cpu", "gpus_hidden": True}
    run = trained(told, args={}, util=0.0, cuda="13.0", cuda_visible_devices=before)
    began = (RecordedEvent(0.0, "command_started", None, {}),) * commanded
    (finding,) = odds(dataclasses.replace(run, events=began))
    assert finding.advice[0].text.startswith(do)


def test_a_gpu_that_was_busy_beside_a_training_on_the_cpu_is_anothers():
    told = {**FITTING, "device": "cpu", "gpus_hidden": True}
    run = trained(told, args={}, util=90.0, cuda="13.0")
    found = analyse(run)
    assert "The training used no GPU" in found.verdict.text
    assert "hardly worked" not in found.verdict.text


# --- size of the images


SIZES = {**FITTING, "imgsz": 1280, "image_px": 640}


def test_images_that_are_enlarged_lead_where_the_gpu_is_the_limit():
    run = trained(SIZES, args={"imgsz": 1280})
    (finding,) = odds(run)
    (advice,) = finding.advice
    assert (finding.severity, finding.summary) == ("warning", "Images of 640 px are enlarged to 4 times the pixels")
    assert (advice.argument, advice.from_value, advice.to_value) == ("imgsz", "1280", "640")
    assert advice.gain_at_most == pytest.approx(0.9 * 0.75, abs=0.01)  # 90 % busy, three quarters of the pixels
    first, *others = analyse(run).verdict.sentences
    assert (first.kind, first.findings) == ("fix", (finding.id,))
    assert first.text.startswith("Try `imgsz=640` (now 1280): images of 640 px")
    assert "3.1\u00d7 faster; compare mAP" in first.text
    assert not any("Nothing to fix" in sentence.text for sentence in others)


def test_enlarged_images_are_a_note_where_the_gpu_waits():
    (finding,) = odds(trained(SIZES, util=40.0))
    assert (finding.severity, finding.advice[0].gain_at_most) == ("info", None)


@pytest.mark.parametrize(
    ("image_px", "imgsz", "fits"),
    [
        (640, 960, "640"),
        (500, 1000, "512"),  # a multiple of the stride
        (640, 928, ""),  # under half more
        (4000, 640, ""),
        (28, 640, "320"),  # tiny images need cells to be found in
        (28, 448, ""),
        (None, 1280, ""),  # not known, or of classification
        (640, None, ""),
        (0, 1280, ""),
        (1e-300, 1280, ""),
        ("640", 1280, ""),
        (640, [1280, 960], ""),
    ],
)
def test_which_images_are_enlarged(image_px, imgsz, fits):
    found = odds(trained({**FITTING, "image_px": image_px, "imgsz": imgsz}))
    assert [each.advice[0].to_value for each in found] == ([fits] if fits else [])


@pytest.mark.parametrize("args", [{"rect": True}, {"multi_scale": True}, {"multi_scale": 0.5}])
def test_neither_shapes_nor_several_sizes_change_what_is_said_of_enlarged_images(args):
    assert said(trained(SIZES, args={"imgsz": 1280, **args})) == said(trained(SIZES))
    assert odds(trained({**SIZES, "imgsz": 640}, args={"imgsz": 640, **args})) == []


@pytest.mark.parametrize(
    ("counts", "names"),
    [
        ({"images": 900, "distinct_images": 300}, "The training list names 900 images, of which 300 are different"),
        (
            {"val_images": 90, "val_distinct_images": 30},
            "The validation list names 90 images, of which 30 are different",
        ),
        ({"images": 900, "distinct_images": 880}, ""),
        ({"images": 900, "distinct_images": None}, ""),
    ],
)
def test_images_that_a_list_names_several_times_are_a_note_in_training(counts, names):
    found = odds(trained({**FITTING, **counts}))
    assert [(each.severity, each.summary) for each in found] == ([("info", names)] if names else [])


# --- shared memory


def begun_again(asked, had, *, attempts=2, **given):
    """Return a run whose first epoch was begun so often, each time after 10 s, from a batch that was asked for."""
    run = trained({**FITTING, "batch": had}, args={"batch": asked}, **given)
    last = attempts - 1
    epochs = tuple(
        InsideEpoch(1, n + 1, 10.0 * (n + 1), 110.0 if n == last else None, 100, 9, 0.0, 0.0, 0.0)
        for n in range(attempts)
    )
    return dataclasses.replace(run, inside=(dataclasses.replace(run.inside[0], epochs=epochs),))


@pytest.mark.parametrize(
    ("settings", "args", "util", "severity"),
    [
        ({"amp": False}, {"amp": False}, 90.0, "warning"),
        ({"amp": False, "compute_capability": 9.0}, {}, 90.0, "warning"),
        ({"amp": False}, {"amp": False}, 30.0, "info"),  # something else is the limit
        ({"amp": False}, {"amp": True}, 90.0, "info"),  # ultralytics' own check turned it off
        ({"amp": False, "compute_capability": 6.1}, {}, 90.0, None),  # no tensor cores
        ({"amp": False, "compute_capability": 8.0, "tf32": False}, {"amp": True}, 50.0, "warning"),
        ({"amp": False, "compute_capability": 8.0, "tf32": False}, {"amp": True}, 30.0, "info"),  # the GPU waits
        ({"amp": False, "compute_capability": 7.5, "tf32": False}, {"amp": True}, 50.0, "info"),  # it has no TF32
        ({"amp": True}, {}, 90.0, None),
        ({}, {"amp": False}, 90.0, None),  # nobody said what it was
    ],
)
def test_a_training_in_32_bits_is_worth_a_word_where_the_gpu_is_the_limit(settings, args, util, severity):
    found = [each for each in odds(trained({**FITTING, **settings}, args=args, util=util)) if "32 bits" in each.summary]
    assert [each.severity for each in found] == ([severity] if severity else [])


@pytest.mark.parametrize(("tf32", "most"), [(True, 0.45), (None, None)])
def test_beside_tf32_amp_wins_half_of_what_the_gpu_is_busy_at_most(tf32, most):
    run = trained({**FITTING, "amp": False, "compute_capability": 8.0, "tf32": tf32}, args={"amp": False})
    (advice,) = [each.advice[0] for each in odds(run) if "32 bits" in each.summary]
    assert advice.gain_at_most == (most and pytest.approx(most, abs=0.01))
    assert ("at most 1.8\u00d7 faster" in analyse(run).verdict.text) == bool(most)


def test_without_cudnn_convolutions_are_slow_however_busy_the_gpu_is():
    run = trained({**FITTING, "slow_modes": ["cudnn_off"]})
    assert said(run) == [("warning", "Convolutions were slow: cuDNN was switched off")]
    assert "torch.backends.cudnn.enabled = False" in analyse(run).verdict.text


BLOCKING = {**FITTING, "slow_modes": ["launch_blocking"]}


def test_a_debugging_mode_is_named_where_a_training_is_too_short_to_be_judged():
    run = trained(BLOCKING, util=30.0)  # its only epoch, of which a drop leaves too little
    util = run.samples["gpu_util_pct"].to_numpy().copy()
    util[52:98] = 2.0
    inside = dataclasses.replace(run.inside[0], phases=(Phase("train", 1, 46.0, 104.0, "inside"),))
    run = dataclasses.replace(run, samples=run.samples.assign(gpu_util_pct=util), inside=(inside,))
    assert [finding.rule for finding in analyse(run).findings if finding.rule == "starved"] == []
    assert said(run) == [("warning", "Python waited for each operation of the GPU")]
    assert analyse(run).verdict.sentences[0].text.startswith("Unset `CUDA_LAUNCH_BLOCKING`, which is for debugging: ")


def setting_locations(run, *names):
    """Return the run with lines that set these: the first in train.py:7, the next in train.py:8."""
    places = tuple(SettingLocation(name, "/home/me/train.py", 7 + number) for number, name in enumerate(names))
    return dataclasses.replace(
        run, inside=tuple(dataclasses.replace(each, setting_locations=places) for each in run.inside)
    )


def test_the_line_that_sets_something_stands_in_what_to_do():
    run = setting_locations(trained({**FITTING, "slow_modes": ["cudnn_off"]}), "cudnn_off", "tf32")
    assert odds(run)[0].advice[0].short == "Remove `torch.backends.cudnn.enabled = False` (train.py:7)"
    settings = {**FITTING, "amp": False, "tf32": False, "compute_capability": 9.0}
    run = setting_locations(trained(settings, args={"amp": False}), "cudnn_off", "tf32")
    assert "`torch.backends.cudnn.allow_tf32 = True` (train.py:8)" in odds(run)[0].advice[0].text
    settings = {**FITTING, "omp_num_threads": 64, "torch_threads": 64}
    (finding,) = odds(setting_locations(trained(settings, cores=8, cores_online=8), "threads"))
    assert "Set OMP_NUM_THREADS=8 (train.py:7)" in finding.advice[0].text


def test_a_debugging_mode_of_a_busy_gpu_or_of_a_training_that_is_judged_is_no_odd_set_up():
    assert said(trained(BLOCKING)) == []
    assert said(trained(BLOCKING, util=30.0)) == []  # the cause of the GPU that waits


def test_a_batch_that_yolo_halved_for_want_of_memory():
    (finding,) = odds(begun_again(32, 8, attempts=3))
    assert finding.severity == "warning"
    assert finding.summary == "YOLO lowered `batch` from 32 to 8, probably because GPU memory ran out"
    assert [(e.value, e.unit) for e in finding.evidence] == [(20.0, "s")]
    (advice,) = finding.advice
    assert (advice.argument, advice.from_value, advice.to_value) == ("batch", "32", "8")


@pytest.mark.parametrize(
    ("asked", "had", "attempts"), [(32, 32, 2), (32, 16, 1), (-1, 57, 2), (None, 16, 2), (0.7, 16, 2)]
)
def test_no_word_on_a_batch_that_fits_or_was_left_to_yolo_or_is_not_known(asked, had, attempts):
    assert odds(begun_again(asked, had, attempts=attempts)) == []


@pytest.mark.parametrize(
    ("held_mib", "later_mib", "used_mib", "is_named"),
    [
        (60_000, 60_000, 70_000.0, True),  # twice the 9.8 GiB that half the batch took has room alone
        (600, 600, 11_000.0, False),
        (np.nan, np.nan, 11_000.0, False),
        (20_000, 20_000, 130_000.0, False),  # twice 107 GiB has none, whoever is there
        (600, 60_000, 70_000.0, False),  # it grew long afterwards
    ],
)
def test_somebody_else_who_held_the_memory_that_a_batch_needed_is_named(held_mib, later_mib, used_mib, is_named):
    run = begun_again(32, 16)
    rows = [(8.0, 41, "trainer", 9000.0), (15.0, 798, "other", held_mib), (90.0, 798, "other", later_mib)]
    looks = pd.DataFrame(rows, columns=["t_s", "pid", "owner", "memory_used_mib"])
    looks = looks.assign(gpu=0, name="py`th`on3", gpu_util_pct=0.0, change=["appeared", "appeared", "changed"])
    samples = run.samples.assign(memory_used_mib=used_mib)
    (finding,) = odds(dataclasses.replace(run, processes=looks, samples=samples))
    assert finding.advice[0].text.startswith("Keep py'th'on3 (pid 798) off GPU 0") is is_named
    assert (finding.advice[0].argument == "batch") is not is_named


def test_a_small_dev_shm_is_a_note_as_long_as_nothing_came_of_it():
    ((severity, summary),) = said(trained(LOADER, shm_total_mib=64.0))
    assert (severity, summary) == ("info", "/dev/shm has 64 MiB; the batches of 8 workers may need 600 MiB")


def test_batches_of_other_nodes_are_in_their_own_dev_shm():
    """Two ranks on each of two nodes: 16 images of the 32 in a batch, and 16 workers, are here."""
    run = trained({**LOADER, "batch": 32, "world_size": 4}, shm_total_mib=64.0)
    job = JobPart(nodes=2, world_size=4, ranks=(Rank(0), Rank(1)))
    ((_, summary),) = said(dataclasses.replace(run, job=job))
    assert summary == "/dev/shm has 64 MiB; the batches of 16 workers may need 600 MiB"


@pytest.mark.parametrize(
    ("ended", "error", "severity"),
    [("exception", "RuntimeError", "warning"), ("exception", "KeyboardInterrupt", "info"), ("finished", None, "info")],
)
def test_a_worker_without_room_dies_of_a_bus_error(ended, error, severity):
    (finding,) = odds(trained(LOADER, shm_total_mib=64.0, ended=ended, error=error))
    assert finding.severity == severity
    assert ("bus error" in finding.summary) is (severity == "warning")
    assert "`--shm-size=2g`" in finding.advice[0].text


@pytest.mark.parametrize(("free", "severities"), [(99.0, ["warning"]), (101.0, [])])
def test_a_dev_shm_that_ran_full_is_told_however_large(free, severities):
    run = trained(LOADER, shm_total_mib=1000.0, host={"shm_free_mib": [1000.0] * 60 + [free] * 60})
    assert [finding.severity for finding in odds(run)] == severities


@pytest.mark.parametrize(
    ("settings", "total"),
    [
        (LOADER, 601.0),
        (LOADER, None),
        ({**LOADER, "workers": 0}, 64.0),
        ({name: value for name, value in LOADER.items() if name != "prefetch"}, 64.0),  # an older recording
        ({**LOADER, "imgsz": [640, 480]}, 64.0),
    ],
)
def test_no_word_on_shared_memory_that_suffices_or_is_not_known(settings, total):
    assert odds(trained(settings, shm_total_mib=total)) == []


# --- threads and cores


@pytest.mark.parametrize(
    ("threads", "ranks", "machine", "found"),
    [
        (64, 1, {"cores": 16}, True),
        (16, 1, {"cores": 16}, False),
        (8, 4, {"cores": 16}, True),
        (4, 4, {"cores": 16}, False),
        (8, 1, {"cores": 16, "cpu_limit": 4.0}, True),
        (1, 8, {"cores": 4}, False),  # torchrun's and ultralytics' own: no fault
        (64, 1, {}, False),
    ],
)
def test_more_threads_than_cores(threads, ranks, machine, found):
    run = trained({"omp_num_threads": threads, "world_size": ranks}, **machine)
    assert [finding.severity for finding in odds(run)] == ["info"] * found


@pytest.mark.parametrize(
    ("main", "waited", "severity"), [(400.0, 50.0, "warning"), (400.0, 5.0, "info"), (99.0, 50.0, "info")]
)
def test_threads_that_are_used_and_wait_for_cores_are_more_than_a_note(main, waited, severity):
    host = {"main_cpu_pct": main, "cgroup_cpu_pressure_pct": waited, "cpu_pressure_pct": 0.0}
    (finding,) = odds(trained({"omp_num_threads": 64}, cores=16, host=host))
    assert finding.severity == severity
    assert "OMP_NUM_THREADS=16" in finding.advice[0].text


QUOTA = {"cores": 16, "cores_online": 16, "cpu_limit": 4.0}
BUSY = {"main_cpu_pct": 60.0, "workers_cpu_pct": 300.0, "cgroup_cpu_pressure_pct": 60.0}


def test_workers_at_the_limit_of_a_quota_that_ultralytics_does_not_see():
    (finding,) = odds(trained({"workers": 8}, args={"workers": 8}, host=BUSY, **QUOTA))
    assert finding.summary == "8 data-loader workers shared 4 cores (of 16 in the machine) and needed more"
    assert (finding.severity, finding.cause.name) == ("warning", "cpu-limit")
    (advice,) = finding.advice  # fewer workers would load no more images
    assert advice.text.startswith("Raise the CPU limit of 4 cores (`limits.cpu`, `--cpus`)")
    assert advice.argument is None


@pytest.mark.parametrize(
    ("host", "machine", "workers"),
    [
        ({**BUSY, "workers_cpu_pct": 270.0}, QUOTA, 8),  # 83 % of what may be used
        ({**BUSY, "cgroup_cpu_pressure_pct": 19.0}, QUOTA, 8),
        ({**BUSY, "cgroup_cpu_pressure_pct": np.nan}, QUOTA, 8),
        ({**BUSY, "workers_cpu_pct": np.nan}, QUOTA, 8),
        (BUSY, QUOTA, 4),
        (BUSY, {"cores": 4, "cores_online": 4}, 8),  # ultralytics sees as much itself
        (BUSY, {"cores": 16, "cpu_limit": 4.0}, 8),  # an older recording
    ],
)
def test_no_word_on_cores_that_suffice_or_are_not_known(host, machine, workers):
    assert odds(trained({"workers": workers}, host=host, **machine)) == []


# --- where the images lie

WAITING = {"cgroup_io_pressure_pct": [0.0] * 20 + [40.0] * 30 + [0.0] * 70, "trainer_read_mib_s": 12.0}


def test_rows_that_failed_do_not_make_waits_for_reads_shorter():
    """Two of three rows are missing: of the third, a third says that processes waited."""
    seconds = np.arange(SECONDS)
    pressure = np.where(seconds % 3, np.nan, np.where(seconds % 9 == 0, 50.0, 0.0))
    settings = {**FITTING, "data_folder": "/data/coco/images/train"}
    (finding,) = odds(trained(settings, host={"io_pressure_pct": pressure}, mounts=(ROOT, NFS)))
    assert "processes waited for reads during 33 s" in finding.summary


@pytest.mark.parametrize(
    ("mount", "words"),
    [(NFS, "a network filesystem (nfs4, server:/export)"), (DISK, "a rotating disk (xfs on sda)")],
)
def test_images_on_a_slow_disk_while_reads_are_waited_for(mount, words):
    settings = {"data_folder": "/data/coco/images/train", "data_mib": 20_480.0}
    (finding,) = odds(trained(settings, host=WAITING, mounts=(ROOT, mount, NVME, SHM)))
    assert (
        finding.summary
        == f"The images are in /data/coco/images/train on {words}: processes waited for reads during 30 s"
    )
    assert (finding.severity, finding.cause.name) == ("warning", "input-storage")
    assert finding.advice[0].text.startswith("Copy the images (20.0 GiB) to /scratch (ext4 on nvme0n1, 879 GiB free)")
    assert ("read by the training, mean", 12.0) in {(e.text, e.value) for e in finding.evidence}


@pytest.mark.parametrize(
    ("folder", "mounts", "host"),
    [
        ("/data/x", (ROOT, NVME), WAITING),
        ("/data/x", (Mount("/data", "fuse.fuse-overlayfs", "overlay"),), WAITING),  # a container's own
        ("/scratch/x", (ROOT, NFS, NVME), WAITING),
        ("/data/x", (), WAITING),
        (None, (ROOT, NFS), WAITING),
        ("/data/x", (ROOT, NFS), {"cgroup_io_pressure_pct": [29.0] * SECONDS}),
        ("/data/x", (ROOT, NFS), {"cgroup_io_pressure_pct": [0.0] * 20 + [40.0] * 9 + [0.0] * 91}),
        ("/data/x", (ROOT, NFS), {}),
    ],
)
def test_no_word_on_a_disk_that_is_fast_or_not_waited_for_or_not_known(folder, mounts, host):
    assert odds(trained({"data_folder": folder}, host=host, mounts=mounts)) == []


NUMPY = Frame("/venv/lib/python3.11/site-packages/numpy/lib/_npyio_impl.py", 454, "load", "open")
LOAD = Frame("/venv/lib/python3.11/site-packages/ultralytics/data/base.py", 278, "load_image")
FROM_NPY, FROM_JPEG = (NUMPY, LOAD, LOOP, TRAINER), (LOAD, LOOP, TRAINER)


def waited_for_images(stack, *, seconds=20, cpu_pct=15, cpu_pressure_pct=0.0, settings=None, args=None, **more):
    """Return a training that waited for a worker in this stack, from 20 s on, and computed after it."""
    end_s = 20 + seconds
    settings = {**FITTING, "cache": "disk", "data_folder": "/data/x", **(settings or {})}
    run = trained(
        settings,
        util=5.0,
        args=args,
        host={"busiest_worker_cpu_pct": cpu_pct, "cpu_pressure_pct": cpu_pressure_pct},
        **more,
    )
    main = process((10, 20, TRAINS), (20, end_s, WAITS), (end_s, 110, TRAINS), pid=41)
    return dataclasses.replace(run, stacks=(main, process((20, end_s, stack), role="worker 0", pid=2)))


def before_steps(run, waited_s=1.0):
    """Return the run as one that waited for its first batch until 40 s; its steps waited for so many seconds then."""
    phases = (Phase("startup", None, 10.0, 40.0, "inside", "first batch"), Phase("train", 1, 40.0, 110.0, "inside"))
    epochs = (InsideEpoch(1, 1, 40.0, 110.0, 3200, 100, waited_s, 1.0, 1.0),)
    inside = tuple(dataclasses.replace(each, phases=phases, epochs=epochs) for each in run.inside)
    return dataclasses.replace(run, inside=inside)


def npy_finding(run):
    return next((finding for finding in odds(run) if finding.number(SLOW_IMAGES_KEY)), None)


def test_npy_images_on_slow_storage():
    settings = {"data_mib": 1024.0, "npy_mib": 7168.0}
    run = waited_for_images(FROM_NPY, settings=settings, args={"cache": "disk"}, mounts=(ROOT, NFS, NVME))
    found = npy_finding(run)
    assert found.summary == "Training waited 19 s for .npy images on slow storage"
    assert (found.severity, found.cause.name) == ("warning", "input-storage")
    assert ("size of the .npy images, against the images", 7.0) in {(e.text, e.value) for e in found.evidence}
    first, second = found.advice
    assert (first.argument, first.to_value) == ("cache", "False")
    assert second.text.startswith("Copy the images (1.0 GiB) to /scratch")
    said = analyse(run).verdict.text
    assert said.startswith("Delete the .npy images (`cache=False`), or use a local disk: training waited 19 s for .npy")


def test_npy_images_of_an_earlier_run_are_read_with_any_cache():
    found = npy_finding(waited_for_images(FROM_NPY, settings={"cache": False}, args={"cache": False}))
    assert (found.advice[0].short, found.advice[0].argument) == ("Delete the .npy images, or use a local disk", None)


@pytest.mark.parametrize(
    ("stack", "more"),
    [
        (FROM_JPEG, {}),
        (FROM_NPY, {"seconds": 3}),  # as long as workers take to start
        (FROM_NPY, {"cpu_pct": 90}),  # from memory: they compute
        (FROM_NPY, {"cpu_pct": np.nan}),
    ],
)
def test_npy_images_are_no_finding_where_they_are_not_what_is_waited_for(stack, more):
    assert npy_finding(waited_for_images(stack, **more)) is None


@pytest.mark.parametrize(
    ("mount", "do"),
    [(NFS, "Copy the data set to a local disk"), (DISK, "Move the data set to a faster disk")],
)
def test_images_that_come_slowly_to_what_is_not_hidden_by_steps(mount, do):
    run = before_steps(waited_for_images(FROM_JPEG, settings={"cache": False}, mounts=(ROOT, mount)))
    found = npy_finding(run)
    assert found.summary == "Training waited 19 s for images on slow storage"
    assert analyse(run).verdict.text.startswith(f"{do}: training waited 19 s for images on slow storage.")


@pytest.mark.parametrize(
    ("later_mib_s", "validated_s", "advised"),
    [
        (1.0, 15.0, "A faster disk helps only until"),
        (90.0, 15.0, "Move the data"),
        (90.0, 4.0, "Move the data"),  # a checkpoint after it reads nothing
    ],
)
def test_images_that_later_validations_read_from_memory_need_no_faster_disk(later_mib_s, validated_s, advised):
    t_s, ends_s = np.arange(SECONDS), 95.0 + validated_s
    read = np.where(t_s < 70, 90.0, np.where((t_s >= 95) & (t_s <= ends_s), later_mib_s, 0.0))
    run = waited_for_images(FROM_JPEG, settings={"cache": False}, mounts=(ROOT, DISK))
    run = before_steps(dataclasses.replace(run, host=run.host.assign(trainer_read_mib_s=read)))
    parts = [("train", 1, 40.0, 60.0), ("validation", 1, 60.0, 65.0), ("train", 2, 65.0, 95.0)]
    parts += [("validation", 2, 95.0, ends_s), ("checkpoint", 2, ends_s, 115.0)]
    phases = tuple(Phase(*part, "inside") for part in parts)
    inside = tuple(dataclasses.replace(each, phases=(each.phases[0], *phases)) for each in run.inside)
    found = npy_finding(dataclasses.replace(run, inside=inside))
    assert found.advice[0].short.startswith(advised)


def test_code_of_the_users_that_reads_images_is_named_where_they_come_slowly():
    """A function in the place of YOLO's `imread` got each image by HTTP (H200, 2026-11-27)."""
    run = before_steps(waited_for_images((READ, *FROM_JPEG), settings={"cache": False}, mounts=(ROOT, DISK)))
    assert npy_finding(run).advice[0].short == "Have `read_slowly` (data.py:29) read from a local copy of the images"


@pytest.mark.parametrize(
    "run",
    [
        waited_for_images(FROM_JPEG),  # in steps
        before_steps(waited_for_images(FROM_JPEG), waited_s=50.0),  # in steps, too: the steady state says why
        before_steps(waited_for_images(FROM_JPEG, cpu_pct=80)),  # they decode
        before_steps(waited_for_images(FROM_JPEG, cpu_pressure_pct=40.0)),  # cores are short
        before_steps(waited_for_images((LOOP, TRAINER))),
    ],
)
def test_images_are_not_slow_where_they_are_not_what_is_waited_for(run):
    assert npy_finding(run) is None


def test_a_folder_lies_on_the_filesystem_that_is_mounted_nearest_above_it():
    inner = Mount("/data/local", "ext4", "/dev/sdb", "sdb")
    mounts = (ROOT, NFS, inner)
    assert mount_of("/data/local/coco", mounts) == inner
    assert mount_of("/data/localized", mounts) == NFS  # not by its letters
    assert mount_of("/database", mounts) == ROOT
    assert mount_of("/database", (NFS,)) is None


@pytest.mark.parametrize(
    ("slow", "mounts", "size_mib", "place"),
    [
        (NFS, (NVME, SHM), 700_000.0, NVME),
        (NFS, (NVME, SHM), 800_000.0, None),  # too full with it
        (NFS, (SHM,), 20_000.0, SHM),
        (NFS, (SHM,), 30_000.0, None),  # it would take half the memory
        (
            NFS,
            (Mount("/", "ext4", "/dev/vda", "vda", None, 99_000.0),),
            None,
            Mount("/", "ext4", "/dev/vda", "vda", None, 99_000.0),
        ),
        (DISK, (Mount("/", "ext4", "/dev/vda", "vda", None, 99_000.0),), 1.0, None),  # of unknown kind
        (NFS, (ROOT, DISK), 1.0, None),
    ],
)
def test_a_place_is_faster_only_where_that_is_known_and_it_has_room(slow, mounts, size_mib, place):
    assert faster_place(slow, (slow, *mounts), size_mib) == place


# --- all of them


def test_what_two_trainings_share_is_said_once():
    run = trained(LOADER, shm_total_mib=64.0)
    (inside,) = run.inside
    again = dataclasses.replace(inside, pid=42, run=2)
    assert len(odds(dataclasses.replace(run, inside=(inside, again)))) == 1
    other = dataclasses.replace(again, settings={**LOADER, "batch": 32})
    assert [f.id for f in odds(dataclasses.replace(run, inside=(inside, other)))] == ["environment-1", "environment-2"]


def test_a_set_up_that_fits_is_not_spoken_of():
    machine = {"cores": 16, "cores_online": 16, "shm_total_mib": 64_000.0, "mounts": (ROOT, NVME), "cuda": "13.0"}
    settings = {**FITTING, **LOADER, "omp_num_threads": 1, "torch_threads": 1, "data_folder": "/scratch/coco"}
    assert odds(trained(settings, host={**WAITING, **BUSY}, **machine)) == []


@pytest.mark.parametrize(
    "settings", [{"workers": "8", "omp_num_threads": True, "device": 3, "torch": 2.1, "cuda": "x.y"}]
)
def test_settings_that_make_no_sense_are_not_known(settings):
    assert odds(trained(settings, shm_total_mib=64.0, cores=1, cuda="thirteen")) == []


def test_a_gpu_that_was_not_read_meanwhile_has_no_utilisation():
    run = trained({**FITTING, "torch": "2.9.0+cpu", "cuda": None, "device": "cpu"}, util=0.0)
    unread = dataclasses.replace(run, samples=run.samples.assign(gpu_util_pct=np.nan))
    (finding,) = odds(unread)
    assert finding.evidence == ()


# --- ways of NCCL


@pytest.mark.parametrize(
    ("off", "gpus", "severity"),
    [
        (["p2p", "shm"], 2, "warning"),
        (["p2p"], 2, "info"),
        (["shm"], 2, None),  # P2P is the faster way anyway
        ([], 2, None),
        (["p2p", "shm"], 1, None),
        ("p2p shm", 2, None),
        (None, 2, None),
    ],
)
def test_gradients_that_may_not_go_the_direct_way(off, gpus, severity):
    run = make_run([readings((0, 10), (90, 100), (0, 10))] * gpus)
    inside = trained({**FITTING, "nccl_disabled": off, "world_size": gpus}).inside
    found = odds(dataclasses.replace(run, inside=inside, yolo_runs=(YoloRun(1, None, {}, "recorded", None),)))
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    assert all("NCCL_P2P_DISABLE" in finding.advice[0].text for finding in found)


@pytest.mark.parametrize(
    ("millions", "card", "severity"),
    [
        (62.1, "NVIDIA A100-PCIE-40GB", "warning"),
        (2.6, "NVIDIA A100-PCIE-40GB", "info"),
        (62.1, "GeForce RTX 4090", "info"),
    ],
)
def test_gradients_that_take_much_of_a_step_through_the_hosts_memory_are_worth_a_trial(millions, card, severity):
    """Four ranks send 1.5 times 62.1 million gradients of 4 bytes: 355 MiB in a step of 0.4 s."""
    told = tuple(Progress(10.0 + 4 * n, 10 * n, 0.0) for n in range(1, 100))
    settings = {**FITTING, "nccl_disabled": ["p2p"], "world_size": 4, "parameters": round(millions * 1e6)}
    phases = Phase("startup", None, 0.0, 10.0, "inside"), Phase("train", 1, 10.0, 410.0, "inside")
    epochs = (InsideEpoch(1, 1, 10.0, 410.0, 64_000, 1000, 0.0, 0.0, 0.0),)
    inside = InsideRun(1, 0, 41, "train", settings, phases, epochs, "finished", progress=told)
    run = make_run([readings((0, 10), (99, 400), (0, 10))] * 4, facts={"name": card})
    run = dataclasses.replace(run, inside=(inside,), yolo_runs=(YoloRun(1, None, {}, "recorded", None),))
    (finding,) = odds(run)
    assert finding.severity == severity
    assert finding.advice[0].gain_at_most == (None if severity == "info" else pytest.approx(355 / 3000 / 0.4, rel=0.01))
    assert ("Compare one epoch without it" in finding.advice[0].text) is (severity == "warning")


def test_an_argument_that_stands_beside_its_advice_is_not_in_the_sentence_too():
    advice = [each for finding in analysis_of("two-nodes-0").findings for each in finding.advice if each.argument]
    assert [each.argument for each in advice] == ["amp"]
    assert "amp=" not in advice[0].text


@pytest.mark.parametrize(
    ("capability", "end"),
    [(7.0, "(amp=False), for which this GPU has no tensor cores"), (8.0, "(amp=False)"), (None, "(amp=False)")],
)
def test_a_gpu_without_tf32_has_no_tensor_cores_for_32_bits(capability, end):
    run = trained({**FITTING, "amp": False, "compute_capability": capability}, args={"amp": False})
    assert [each.summary for each in odds(run) if "32 bits" in each.summary] == [
        f"The training computed in 32 bits {end}"
    ]
