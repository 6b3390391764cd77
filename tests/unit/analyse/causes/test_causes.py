"""Each cause on the signals that speak for it, and none where they are missing: shapes as measured on H200 runs."""

import dataclasses

import numpy as np
import pytest

from gpu_report.analyse.causes import CAUSES, explain, host, main_process
from gpu_report.analyse.causes.confidence import LIKELY, POSSIBLE, STRONG
from gpu_report.analyse.causes.data_loading import loader_idle_at_times
from gpu_report.analyse.causes.slow_modes import SLOW_MODES
from gpu_report.analyse.signals.code.busy_thread import BusyThread
from gpu_report.analyse.signals.code.loader_work import LoaderWork, WorkerCode
from gpu_report.analyse.signals.code.stack_profile import IdleLocation, OwnLayer
from gpu_report.analyse.signals.host.other_processes import OtherProcess
from gpu_report.analyse.signals.host.process_waits import GilHold
from gpu_report.analyse.signals.interval_signals import NOT_LOADING, IntervalSignals
from gpu_report.analyse.signals.signal_table import SignalTable
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.inside.on_path.gpu_report_inside import facts
from gpu_report.model import Cause, Frame, KernelEvent, NearbyKernelEvent, SettingLocation

START, END, SECONDS = 30.0, 45.0, 60
# What a fed YOLO26m does on 16 cores: its main process spins while it waits for the GPU.
FED = {
    "cpu_pct": 30,
    "main_cores": 16,
    "worker_cores": 16,
    "cpu_pressure_pct": 0,
    "io_pressure_pct": 0,
    "io_full_pressure_pct": 0,
    "memory_pressure_pct": 0,
    "swap_in_mib_s": 0,
    "disk_read_mib_s": 0,
    "main_cpu_pct": 116,
    "busiest_worker_cpu_pct": 48,
    "workers_cpu_pct": 360,
    "workers": 12,
    "workers_blocked": 0,
    "trainer_read_mib_s": 0,
    "workers_major_faults": 0,
    "trainer_stopped": 0,
}
IDLE = {"cpu_pct": 1, "main_cpu_pct": 0, "busiest_worker_cpu_pct": 0, "workers_cpu_pct": 0}
GPU = {"gpu_util_pct": 92, "sm_active_pct": 79}


def signal_table(typical, within, start=START, end=END, after=None):
    t_s = np.arange(1.0, SECONDS + 1)
    columns = {name: np.full(SECONDS, float(value)) for name, value in typical.items()}
    for name, value in within.items():
        columns[name][(t_s > start) & (t_s <= end)] = value
    for name, value in (after or {}).items():
        columns[name][(t_s > end) & (t_s <= end + 3)] = value
    return SignalTable(t_s, columns, t_s < 25)


def signals(within, start=START, after=None, gpu=None, **fields):
    host = signal_table(FED, within, start, after=after)
    own = signal_table(GPU, gpu or {"gpu_util_pct": 1, "sm_active_pct": 0})
    return dataclasses.replace(IntervalSignals(0, START, END, host, own, cores=16), **fields)


def swaps_all_along(within, **fields):
    """Return an interval of a run that is short of memory for most of the time."""
    found = signals(within, **fields)
    return dataclasses.replace(found, host=signal_table({**FED, **SWAPPING}, within, START))


WITHOUT_ANY = IntervalSignals(
    0, START, END, SignalTable(np.array([]), {}, np.array([], dtype=bool)), signal_table(GPU, {})
)

STORAGE = {"io_pressure_pct": 83, "io_full_pressure_pct": 83, "workers_blocked": 7.6, "trainer_read_mib_s": 4}
TAKEN = {"cpu_pct": 100, "cpu_pressure_pct": 99, "main_cpu_pct": 40, "workers_cpu_pct": 200}
SWAPPING = {"memory_pressure_pct": 40, "swap_in_mib_s": 90, "io_pressure_pct": 60, "workers_blocked": 3}
TOO_FEW = {"main_cpu_pct": 26, "busiest_worker_cpu_pct": 106, "workers_cpu_pct": 211, "workers": 2, "cpu_pct": 16}
ONE_CORE = {"main_cpu_pct": 103, "busiest_worker_cpu_pct": 9, "workers_cpu_pct": 55}
SLOW_IMAGES = {"main_cpu_pct": 6, "busiest_worker_cpu_pct": 19, "workers_cpu_pct": 230}
TRICKLE = {"main_cpu_pct": 7, "busiest_worker_cpu_pct": 3, "workers_cpu_pct": 19, "workers": 15}
MAPPED = {**SLOW_IMAGES, "workers_major_faults": 200}
BUSY_CALLBACK = {"main_cpu_pct": 107, "busiest_worker_cpu_pct": 30, "workers_cpu_pct": 120}
LINE = Frame("/home/me/callbacks.py", 41, "log_images")
ELSEWHERE = IdleLocation(
    in_loader=0.0, line=LINE, share=0.95, usual=0.01
)  # in a line where it never stands while a GPU works
# in a function of the user's, at several lines: it stands there in all of a training, so that no line is unusual
IN_CALL = IdleLocation(in_loader=0.1, line=LINE, share=0.3, usual=0.3, call=LINE, call_share=0.8)
AS_USUAL = IdleLocation(in_loader=0.0, line=LINE, share=0.95, usual=0.6)
IN_LOADER = IdleLocation(in_loader=0.9, line=LINE, share=0.1, usual=0.3)
LAUNCHES = IdleLocation(in_loader=0.0, line=LINE, share=0.05, usual=0.1, launching=0.9)
OTHER = OtherProcess(0, 798, "python3", (START, START + 0.9 * (END - START)), 842.0, 50.0)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("trainer-blocked", signals(IDLE)),
        ("trainer-blocked", signals({**IDLE, "trainer_stopped": 1})),
        ("trainer-blocked", signals({"trainer_stopped": 1})),  # one rank of several: the others spin
        ("input-stalled", signals(IDLE, start=START - 4)),
        ("input-stalled", signals(IDLE, after={"workers_cpu_pct": 900})),
        ("input-storage", signals({**IDLE, **STORAGE})),
        ("memory-pressure", signals({**IDLE, **SWAPPING})),  # it raises the pressure of io, too
        ("input-cpu", signals(TAKEN)),
        ("input-cpu", signals(TOO_FEW)),
        ("main-process", signals(ONE_CORE, gpu={"gpu_util_pct": 28, "sm_active_pct": 24})),
        ("launch-bound", signals(ONE_CORE, gpu={"gpu_util_pct": 28, "sm_active_pct": 7})),
        ("main-process", signals(ONE_CORE, gpu={"gpu_util_pct": 2, "sm_active_pct": 0.4})),  # no stream of kernels
        ("main-process", signals(ONE_CORE, gpu={"gpu_util_pct": 2, "sm_active_pct": 2}, data_wait_share=0.001)),
        ("main-process", signals(BUSY_CALLBACK, gpu={"gpu_util_pct": 22, "sm_active_pct": 14}, data_wait_share=0.67)),
        ("input-latency", signals(SLOW_IMAGES, data_wait_share=0.8, loader_workers=12)),
        ("input-storage", signals(MAPPED, data_wait_share=0.8, loader_workers=12)),
        # state D alone: no disk's pressure or bytes count what is waited for
        ("input-storage", signals({**SLOW_IMAGES, "workers_blocked": 4}, data_wait_share=0.8, loader_workers=12)),
        ("input-storage", signals({**SLOW_IMAGES, "workers_blocked": 4, "main_cpu_pct": 60})),
        ("input-latency", signals({**SLOW_IMAGES, "workers_blocked": 2}, data_wait_share=0.8, loader_workers=12)),
        ("memory-pressure", swaps_all_along({**SLOW_IMAGES, **SWAPPING, "workers_blocked": 9}, data_wait_share=0.8)),
        # pages of swap, all of the time, and not of files
        ("memory-pressure", swaps_all_along({**MAPPED, **SWAPPING}, data_wait_share=0.8, loader_workers=12)),
        ("input-latency", signals({**MAPPED, "workers_major_faults": 2}, data_wait_share=0.8, loader_workers=12)),
        ("input-cpu", signals({**TOO_FEW, "workers_major_faults": 200}, data_wait_share=0.8, loader_workers=2)),
        ("input-stalled", signals(IDLE, start=START - 4, data_wait_share=1.0, loader_workers=12)),
        # eight workers asleep in each image: neither idle nor at work
        (
            "input-latency",
            signals(TRICKLE, start=START - 4, data_wait_share=0.9, loader_workers=8, idle_location=IN_LOADER),
        ),
        # what the stacks show counts for more than what was short meanwhile
        ("trainer-blocked", signals({**TAKEN, "main_cpu_pct": 1}, idle_location=ELSEWHERE)),
        ("trainer-blocked", signals({**IDLE, **STORAGE}, idle_location=ELSEWHERE)),
        ("main-process", signals(TOO_FEW, idle_location=ELSEWHERE)),
        ("main-process", signals(ONE_CORE, gpu={"gpu_util_pct": 28, "sm_active_pct": 7}, idle_location=ELSEWHERE)),
        ("main-process", signals(ONE_CORE, gpu={"gpu_util_pct": 28, "sm_active_pct": 7}, idle_location=IN_CALL)),
        ("main-process", signals({"main_cpu_pct": 30}, idle_location=dataclasses.replace(IN_CALL, cpu_pct=95))),
        ("trainer-blocked", signals({"main_cpu_pct": 30}, idle_location=dataclasses.replace(IN_CALL, cpu_pct=2))),
        ("trainer-blocked", signals({"main_cpu_pct": 3}, idle_location=IN_CALL)),
        ("main-process", signals({**ONE_CORE, "main_cpu_pct": 900}, gpu={"gpu_util_pct": 28, "sm_active_pct": 7})),
        ("input-latency", signals(TOO_FEW, data_wait_share=0.7, loader=LoaderWork(0.1, 0.0, 0.4))),
        ("input-cpu", signals(TOO_FEW, data_wait_share=0.7, loader=LoaderWork(0.1, 0.0, 0.1))),
        ("input-cpu", signals(TAKEN, idle_location=AS_USUAL)),
        ("input-cpu", signals(TOO_FEW, idle_location=IN_LOADER)),
        ("input-stalled", signals(IDLE, idle_location=IN_LOADER)),
        ("launch-bound", signals(ONE_CORE, gpu={"gpu_util_pct": 28, "sm_active_pct": 7}, idle_location=AS_USUAL)),
        ("launch-bound", signals(ONE_CORE, gpu={"gpu_util_pct": 8, "sm_active_pct": 7}, idle_location=LAUNCHES)),
        ("other-process", signals({}, other_processes=(OTHER,))),
        ("gpu-fault", signals(IDLE, nvml_lost="GPU is lost")),
    ],
)
def test_a_cause_is_named_by_its_signals(name, given):
    explained = explain(given)
    assert explained.cause.name == name
    assert explained.cause.confidence >= 0.7
    assert all(item.value is not None for item in explained.evidence)


@pytest.mark.parametrize(("name", "workers"), [("input-stalled", IDLE), ("input-latency", SLOW_IMAGES)])
def test_on_a_machine_that_others_keep_busy_a_wait_for_data_is_one(name, workers):
    given = signals({**workers, "cpu_pct": 70, "cpu_pressure_pct": 40}, idle_location=IN_LOADER, loader_workers=12)
    cause = explain(given).cause
    assert (cause.name, cause.confidence) == (name, 0.5)
    assert explain(dataclasses.replace(given, data_wait_share=0.01)).cause.confidence == 0.0


def test_a_fed_gpu_that_fell_is_unexplained():
    assert explain(signals({})).cause.name == "unexplained"


@pytest.mark.parametrize("scorer", CAUSES)
def test_nothing_is_concluded_from_what_was_not_recorded(scorer):
    assert scorer(WITHOUT_ANY) is None
    for missing in FED:
        given = signals({**IDLE, **STORAGE, **SWAPPING})
        columns = {name: column for name, column in given.host.columns.items() if name != missing}
        scorer(dataclasses.replace(given, host=dataclasses.replace(given.host, columns=columns)))


@pytest.mark.parametrize(("cpu_pct", "cause"), [(98, "input-cpu"), (80, "unexplained")])
def test_cores_that_are_full_are_a_cause_where_no_process_of_the_training_was_seen(cpu_pct, cause):
    given = signals({})
    host = signal_table({"cpu_pct": 30}, {"cpu_pct": cpu_pct})
    assert explain(dataclasses.replace(given, host=host)).cause.name == cause


CROWDED = {"cpu_pressure_pct": 60, "main_cpu_pct": 44, "busiest_worker_cpu_pct": 40, "workers_cpu_pct": 180}


def test_others_on_the_few_cores_that_the_training_may_use_took_them():
    """40 busy processes on 16 of 64 cores: of all cores that is little."""
    given = dataclasses.replace(signals({**CROWDED, "cpu_pct": 40}), cores=64, usable_cores=16.0)
    cause = explain(given).cause
    assert (cause.name, cause.explanation) == (
        "input-cpu",
        "other processes ran on the 16 CPU cores that training may use",
    )


@pytest.mark.parametrize(
    "other",
    [
        {"cpu_pressure_pct": 20},
        {"main_cpu_pct": 120, "workers_cpu_pct": 380},  # it fills the cores itself
        {"cpu_pct": 14},  # nobody else uses more: it is held on fewer cores
        {"main_cpu_pct": 5},  # it waits for something
        {"cgroup_cpu_pressure_pct": 0},  # what waits is not in its cgroup: on other cores
    ],
)
def test_a_training_that_got_its_cores_lost_none_to_others(other):
    given = signals({**CROWDED, "cpu_pct": 60, **{name: value for name, value in other.items() if name in FED}})
    own = dataclasses.replace(
        given.host, columns={**given.host.columns, **{name: np.zeros(SECONDS) for name in other if name not in FED}}
    )
    assert host.cores_shared(signals({**CROWDED, "cpu_pct": 60})) is not None
    assert host.cores_shared(dataclasses.replace(given, host=own)) is None


def test_a_pressure_that_is_usual_here_explains_nothing():
    noisy = {**FED, "io_pressure_pct": 60, "workers_blocked": 2}
    given = dataclasses.replace(signals({}), host=signal_table(noisy, {}))
    assert explain(given).cause.name == "unexplained"


def test_an_idle_neighbour_is_no_cause():
    assert (
        explain(signals({}, other_processes=(dataclasses.replace(OTHER, span=(START, START + 3)),))).cause.name
        == "unexplained"
    )


RESTED = Cause("validation", 0.9, "the epoch ended here")


def test_validation_yields_to_a_fault_of_the_gpu_only():
    assert explain(signals({**IDLE, **STORAGE}), expected=RESTED).cause == RESTED
    cause = explain(signals(IDLE, nvml_lost="GPU is lost"), expected=RESTED).cause
    assert (cause.name, cause.runner_up) == ("gpu-fault", None)  # the driver said it


def test_the_second_best_is_named_too():
    xid = KernelEvent(40.0, "xid", "critical", "Xid 79", "the GPU fell off the bus", gpu=0)
    cause = explain(signals({**IDLE, **STORAGE}, kernel=(NearbyKernelEvent(xid, 0.0),))).cause
    assert {cause.name, cause.runner_up} == {"input-storage", "gpu-fault"}


EMPTIED = KernelEvent(
    31.0, "drop-caches", "info", "x (77): drop_caches: 1", "emptied", "", pid=77, process="x", count=9
)


def test_who_emptied_the_page_cache_is_named_and_a_faster_disk_is_not_advised():
    kernel = (NearbyKernelEvent(EMPTIED, 0.0),)
    explained = explain(signals({**IDLE, **STORAGE}, kernel=kernel))
    assert "x (pid 77) emptied the page cache 9 times" in explained.cause.explanation
    (advice,) = explained.advice
    assert "x (pid 77)" in advice.text


def test_a_page_cache_that_was_emptied_explains_nothing_without_a_wait_for_storage_or_at_another_time():
    explained = explain(signals({}, kernel=(NearbyKernelEvent(EMPTIED, 0.0),)))
    assert (explained.cause.name, explained.advice) == ("unexplained", ())
    before = (NearbyKernelEvent(EMPTIED, -20.0),)
    explained = explain(signals({**IDLE, **STORAGE}, kernel=before))
    assert (explained.cause.name, explained.advice) == ("input-storage", ())
    assert "emptied" not in explained.cause.explanation


def test_a_kernel_event_of_another_gpu_or_after_the_drop_is_no_cause():
    xid = KernelEvent(40.0, "xid", "critical", "Xid 79", "the GPU fell off the bus", gpu=1)
    assert explain(signals({}, kernel=(NearbyKernelEvent(xid, 0.0),))).cause.name == "unexplained"
    later = dataclasses.replace(xid, gpu=0)
    assert explain(signals({}, kernel=(NearbyKernelEvent(later, 1.5),))).cause.name == "unexplained"


HALF_BUSY = {"gpu_util_pct": 40, "sm_active_pct": 30}
EIGHT_FULL = {"main_cpu_pct": 119, "busiest_worker_cpu_pct": 107, "workers_cpu_pct": 780, "workers": 8}


def test_a_loader_that_kept_no_one_waiting_is_not_to_blame():
    loaded = signals(EIGHT_FULL, gpu=HALF_BUSY)
    assert explain(loaded).cause.name == "input-cpu"
    assert explain(dataclasses.replace(loaded, data_wait_share=0.3)).cause.name == "input-cpu"
    assert explain(dataclasses.replace(loaded, data_wait_share=0.01)).cause.name == "launch-bound"


@pytest.mark.parametrize(("main_cpu_pct", "name"), [(90, "input-cpu"), (10, "input-latency")])
def test_without_workers_the_main_process_loads_the_data_itself(main_cpu_pct, name):
    alone = signals({"main_cpu_pct": main_cpu_pct, "workers": 0, "workers_cpu_pct": 0, "busiest_worker_cpu_pct": 0})
    alone = dataclasses.replace(alone, data_wait_share=0.8)
    assert explain(dataclasses.replace(alone, loader_workers=0)).cause.explanation.startswith("the main process loaded")
    assert explain(dataclasses.replace(alone, loader_workers=0)).cause.name == name
    assert explain(dataclasses.replace(alone, loader_workers=0, data_wait_share=0.0)).cause.name != name


def test_images_that_come_too_slowly_all_the_time_are_no_stall():
    """80 ms of sleep for each image leaves two workers 5 % of a core: what never was otherwise has not stopped."""
    slow = signals(
        {**IDLE, "workers_cpu_pct": 12, "workers": 12},
        idle_location=IdleLocation(0.9, None, 0.0, None),
        loader_workers=12,
    )
    assert explain(slow).cause.name == "input-stalled"
    assert explain(dataclasses.replace(slow, is_steady=True)).cause.name == "input-latency"


def test_workers_that_share_their_cores_are_the_limit_though_none_has_one_to_itself():
    """84 % of a core each, while the trainer waits for them most of the time: nothing else is left."""
    busy = signals({"main_cpu_pct": 5, "workers": 2, "busiest_worker_cpu_pct": 80, "workers_cpu_pct": 150})
    busy = dataclasses.replace(busy, loader_workers=2)
    assert explain(dataclasses.replace(busy, data_wait_share=0.8)).cause.name == "input-cpu"
    assert explain(dataclasses.replace(busy, data_wait_share=0.2)).cause.name != "input-cpu"


def test_one_image_that_takes_far_longer_holds_up_all_workers():
    one = signals({"main_cpu_pct": 5, "workers": 8, "busiest_worker_cpu_pct": 97, "workers_cpu_pct": 120})
    cause = explain(dataclasses.replace(one, loader_workers=8, data_wait_share=0.8)).cause
    assert (cause.name, cause.explanation) == ("input-cpu", "one data-loader worker at a time was full")


@pytest.mark.parametrize(("part", "said"), [(0.3, False), (0.6, True)])
def test_processes_that_stop_together_stop_for_a_part_of_the_time(part, said):
    """Nine of them for 0.3 of the time are 2.7 on average."""
    given = signals({"main_cpu_pct": 70, "workers_cpu_pct": 210})
    stopped = np.where(np.arange(SECONDS) % 10 < 10 * part, 9.0, 0.0)
    given = dataclasses.replace(given, host=given.host.with_column("trainer_stopped", stopped))
    found = main_process.trainer_stopped(given)
    assert (found is not None) == said
    if found:
        assert found.advice == (main_process.WHO_PAUSED,)


def test_a_stopped_worker_is_no_stopped_training():
    stopped = signals({**IDLE, "main_cpu_pct": 1, "trainer_stopped": 1})
    assert (
        explain(dataclasses.replace(stopped, idle_location=IdleLocation(0.9, None, 0.0, None))).cause.name
        == "input-stalled"
    )
    whole = signals({**IDLE, "trainer_stopped": 13}, idle_location=IdleLocation(0.9, None, 0.0, None))
    assert explain(whole).cause.name == "trainer-blocked"
    assert (
        explain(dataclasses.replace(stopped, idle_location=IdleLocation(0.0, None, 0.0, None))).cause.name
        == "trainer-blocked"
    )


def test_workers_that_wait_for_a_lock_are_said_to():
    slow = signals({**IDLE, "workers_cpu_pct": 12}, idle_location=IdleLocation(0.9, None, 0.0, None), is_steady=True)
    assert "a lock" in explain(dataclasses.replace(slow, loader=LoaderWork(0.0, 0.6))).cause.explanation
    assert "lock" not in explain(dataclasses.replace(slow, loader=LoaderWork(0.0, 0.0))).cause.explanation


@pytest.mark.parametrize(
    ("in_loader", "util", "lasting", "hung"),
    [(1.0, 0.0, True, True), (0.9, 0.0, True, False), (1.0, 4.0, True, False), (1.0, 0.0, False, False)],
)
def test_a_loader_from_which_nothing_comes_hangs_and_is_not_slow(in_loader, util, lasting, hung):
    idle_location = dataclasses.replace(IN_LOADER, in_loader=in_loader)
    gpu = {"gpu_util_pct": util, "sm_active_pct": 0}
    stands = signals({**IDLE, "main_cpu_pct": 1}, gpu=gpu, idle_location=idle_location, is_steady=lasting)
    assert (explain(stands).cause.explanation == "the data-loader workers delivered no more images") == hung
    assert any("a batch never came" in each.short for each in explain(stands).advice) == hung
    at_work = explain(dataclasses.replace(stands, loader=LoaderWork(0.0, 0.0)))
    assert not any("a batch never came" in each.short for each in at_work.advice)


def test_that_the_trainer_waited_is_told_by_its_stacks_before_its_cpu():
    """A main process that waits for its GPU in a sleep uses no CPU either."""
    quiet = signals({"main_cpu_pct": 5})
    assert quiet.while_waiting() is not None
    elsewhere = quiet.host.with_column(NOT_LOADING, np.ones(SECONDS))
    assert dataclasses.replace(quiet, host=elsewhere).while_waiting() is None


def test_a_main_process_that_neither_waits_nor_launches_small_kernels_is_named_itself():
    busy = signals(ONE_CORE, gpu=HALF_BUSY)
    assert explain(busy).cause.name == "main-process"
    assert explain(dataclasses.replace(busy, data_wait_share=0.5)).cause.name == "main-process"
    assert explain(dataclasses.replace(busy, data_wait_share=0.01)).cause.name == "launch-bound"


@pytest.mark.parametrize("sm_active", [7, 24])  # launch-bound without it, and the main process
def test_a_main_process_that_is_late_with_a_profiler_on_is_late_for_it(sm_active):
    late = signals(ONE_CORE, gpu={"gpu_util_pct": 28, "sm_active_pct": sm_active}, is_steady=True)
    slowed = dataclasses.replace(
        late, slow_modes=frozenset({"torch_profiler", "profile_function", "tracemalloc", "of a later version"})
    )
    explained = explain(slowed)
    assert (explained.cause.name, explained.cause.explanation) == ("main-process", "PyTorch's profiler was on")
    assert [advice.text for advice in explained.advice] == [
        "Stop PyTorch's profiler after a few steps",
        "Turn off `tracemalloc`",
    ]
    placed = dataclasses.replace(slowed, setting_locations=(SettingLocation("tracemalloc", "/a/leak.py", 3),))
    assert [each.short for each in explain(placed).advice][1] == "Turn off `tracemalloc` (leak.py:3)"
    assert not explain(dataclasses.replace(slowed, is_steady=False)).advice
    assert explain(dataclasses.replace(slowed, idle_location=IN_CALL)).cause.explanation != explained.cause.explanation
    fed = dataclasses.replace(signals({}), is_steady=True, slow_modes=slowed.slow_modes)
    assert explain(fed).cause.name == "unexplained"


@pytest.mark.parametrize(("step_s", "is_why"), [(26.0, True), (0.2, False)])
def test_what_tries_kernels_for_each_image_size_slows_steps_that_take_far_too_long(step_s, is_why):
    """The first two batches took 43 and 52 s with `multi_scale` (YOLO26m, H200, 2026-11-27)."""
    late = signals(ONE_CORE, gpu={"gpu_util_pct": 3, "sm_active_pct": 2}, step_s=step_s, is_steady=True)
    tried = explain(dataclasses.replace(late, slow_modes=frozenset({"cudnn_benchmark"})))
    assert (SLOW_MODES["cudnn_benchmark"].what in tried.cause.explanation) == is_why


CONVOLVES = dataclasses.replace(LAUNCHES, line=LINE, share=0.98, convolving=0.97)


def test_a_gpu_that_idles_in_calls_of_convolutions_waits_for_a_search_of_kernels():
    """0.99 of the idle time, at 4 % utilisation: 240 image widths with `cudnn.benchmark` (resnet101, H200)."""
    late = signals(ONE_CORE, gpu={"gpu_util_pct": 4, "sm_active_pct": 3}, is_steady=True, idle_location=CONVOLVES)
    unknown = explain(late)
    assert "convolutions" in unknown.cause.explanation
    assert "cudnn.benchmark = False" in unknown.advice[0].short
    place = SettingLocation("cudnn_benchmark", "/a/embed.py", 21)
    known = dataclasses.replace(late, slow_modes=frozenset({"cudnn_benchmark"}), setting_locations=(place,))
    assert explain(known).cause.explanation == SLOW_MODES["cudnn_benchmark"].what
    assert "(embed.py:21)" in explain(known).advice[0].short


@pytest.mark.parametrize(
    ("util_pct", "convolving", "mode"),
    [(28, 0.97, "cudnn_benchmark"), (8, 0.66, "cudnn_benchmark"), (8, 0.66, "tracemalloc")],
)
def test_who_launches_convolutions_searches_for_no_kernels(util_pct, convolving, mode):
    location = dataclasses.replace(CONVOLVES, convolving=convolving)
    gpu = {"gpu_util_pct": util_pct, "sm_active_pct": 3}
    late = signals(ONE_CORE, gpu=gpu, is_steady=True, idle_location=location, slow_modes=frozenset({mode}))
    assert "kernels" not in explain(late).cause.explanation


def test_convolutions_on_many_cores_are_computed_there():
    many = {**ONE_CORE, "main_cpu_pct": 800}
    late = signals(many, gpu={"gpu_util_pct": 4, "sm_active_pct": 3}, is_steady=True, idle_location=CONVOLVES)
    assert "kernels" not in explain(late).cause.explanation


def test_a_program_that_is_not_yolos_may_have_any_image_sizes():
    told = {"slow_modes": ["cudnn_benchmark"]}
    assert Training(None, (0.0, 9.0), settings=told).slow_modes == {"cudnn_benchmark"}


def test_of_one_image_size_kernels_are_tried_once():
    told = {"slow_modes": ["cudnn_benchmark", "tracemalloc"]}
    known = [Training(1, (0.0, 9.0), args=args, settings=told).slow_modes for args in ({}, {"multi_scale": 0.5})]
    assert known == [{"tracemalloc"}, {"cudnn_benchmark", "tracemalloc"}]


def test_each_mode_that_callbacks_tell_has_its_words():
    assert set(SLOW_MODES) == {*facts.SLOW_MODES, "sync_bn"}  # which stacks show


@pytest.mark.parametrize(("share", "is_why"), [(0.6, True), (0.1, False)])
def test_ranks_that_exchange_in_each_norm_are_late_for_that(share, is_why):
    """SyncBatchNorm took 0.58 and 0.67 of forward passes, and doubled steps (YOLO26l, batch 64, two H200)."""
    late = signals(ONE_CORE, gpu={"gpu_util_pct": 47, "sm_active_pct": 24}, is_steady=True, synced_norms=share)
    placed = dataclasses.replace(late, setting_locations=(SettingLocation("sync_bn", "/a/norms.py", 9),))
    explained = explain(placed)
    assert ("SyncBatchNorm" in explained.cause.explanation) == is_why
    assert ("Train without `SyncBatchNorm` (norms.py:9)" in [each.short for each in explained.advice]) == is_why


PARTLY = IdleLocation(in_loader=0.0, line=LINE, share=0.4, usual=0.3, call=LINE, call_share=0.4)


@pytest.mark.parametrize(
    "share", [{"own_share": 0.13}, {"call_share": 0.35}]
)  # hooks in each layer; a logger of YOLO's
def test_a_gpu_with_few_kernels_is_not_called_launch_bound_where_other_code_runs_between_them(share):
    slow = signals(ONE_CORE, gpu={"gpu_util_pct": 8, "sm_active_pct": 7})
    idle_location = dataclasses.replace(LAUNCHES, launching=0.6, **share)
    assert explain(dataclasses.replace(slow, idle_location=idle_location)).cause.name == "main-process"


def test_launching_is_named_where_the_main_process_waits_for_something_else_in_between():
    waits_between = signals({**ONE_CORE, "main_cpu_pct": 62}, gpu={"gpu_util_pct": 24, "sm_active_pct": 16})
    idle_location = dataclasses.replace(LAUNCHES, launching=0.7, call=LINE, call_share=0.24, own_share=0.24)
    assert explain(dataclasses.replace(waits_between, idle_location=idle_location)).cause.name == "launch-bound"
    assert explain(waits_between).cause.name == "unexplained"


PARSES = WorkerCode(Frame("/home/me/coco.py", 19, "load_json"), 0.67)


@pytest.mark.parametrize(
    ("workers_cpu_pct", "code", "cores", "is_named"),
    [
        (1230, PARSES, 16, True),
        (1230, None, 16, False),
        (1230, dataclasses.replace(PARSES, share=0.4), 16, False),
        (1230, PARSES, 64, False),  # most cores are free
    ],
)
def test_code_in_the_workers_that_keeps_most_cores_busy_is_named_beside_launching(
    workers_cpu_pct, code, cores, is_named
):
    crowded = {**ONE_CORE, "busiest_worker_cpu_pct": 92, "workers_cpu_pct": workers_cpu_pct}
    crowded |= {"main_cores": cores, "worker_cores": cores}
    gpu = {"gpu_util_pct": 28, "sm_active_pct": 7}
    told = explain(signals(crowded, gpu=gpu, data_wait_share=0.0, worker_code=code, cores=cores, is_steady=True))
    assert told.cause.name == "launch-bound"
    assert [each.short for each in told.advice] == [
        "Make `load_json` (coco.py:19) cheaper: in data-loader workers it keeps 8 of 16 CPU cores busy"
    ] * is_named


@pytest.mark.parametrize(("at_work", "is_named"), [(9.0, True), (4.0, False), (None, False)])
def test_code_in_the_workers_that_waits_is_named_where_they_are_hardly_ever_free(at_work, is_named):
    """Workers at a lock of a file, 9 of 10 at work on 4 cores (YOLO26n, H200): no larger batch could be fed."""
    waits = {**ONE_CORE, "busiest_worker_cpu_pct": 45, "workers_cpu_pct": 400, "workers": 10}
    code = WorkerCode(Frame("/home/me/usage.py", 10, "count"), 0.7)
    gpu = {"gpu_util_pct": 28, "sm_active_pct": 7}
    given = signals(waits, gpu=gpu, data_wait_share=0.0, worker_code=code, loader_workers=10, is_steady=True)
    told = explain(dataclasses.replace(given, workers_at_work=at_work))
    assert told.cause.name == "launch-bound"
    assert [each.short for each in told.advice] == [
        "Make `count` (usage.py:10) shorter: data-loader workers spend 70 % of their work there"
    ] * is_named


def test_steps_that_fill_more_cores_than_launching_can_are_the_main_process():
    threads = signals(
        {**ONE_CORE, "main_cpu_pct": 400}, gpu={"gpu_util_pct": 8, "sm_active_pct": 7}, idle_location=LAUNCHES
    )
    assert explain(threads).cause.name == "main-process"


def test_a_process_that_only_holds_memory_takes_no_time_of_the_gpu():
    holds = dataclasses.replace(OTHER, util_pct=0.0)
    assert explain(signals({}, other_processes=(holds,))).cause.name == "unexplained"
    unknown = dataclasses.replace(OTHER, util_pct=None)
    assert explain(signals({}, other_processes=(unknown,))).cause.name == "other-process"


def test_a_full_core_is_named_by_the_function_that_much_of_it_goes_to():
    full = signals(ONE_CORE, gpu={"gpu_util_pct": 8}, is_steady=True)
    assert explain(full).cause.explanation == "the main process used one CPU core fully"
    named = explain(dataclasses.replace(full, idle_location=dataclasses.replace(PARTLY, cpu_pct=95))).cause
    assert (named.name, named.explanation) == (
        "main-process",
        "the main process computed in your own code for part of the idle time",
    )


@pytest.mark.parametrize(("util_pct", "waited", "sure"), [(38, 0.0, 0.75), (60, 0.0, 0.7), (38, None, 0.7)])
def test_a_full_main_process_is_surer_where_data_came_and_the_gpu_hardly_worked(util_pct, waited, sure):
    full = signals(ONE_CORE, gpu={"gpu_util_pct": util_pct}, data_wait_share=waited)
    cause = explain(full, fell=True).cause  # batches were as small before
    assert (cause.name, cause.confidence) == ("main-process", sure)


def test_who_computes_in_a_callback_does_not_launch():
    full = signals(ONE_CORE, gpu={"gpu_util_pct": 28, "sm_active_pct": 7}, data_wait_share=0.0)
    assert explain(full).cause.name == "launch-bound"
    assert (
        explain(dataclasses.replace(full, idle_location=dataclasses.replace(PARTLY, cpu_pct=95))).cause.name
        == "main-process"
    )
    assert (
        explain(dataclasses.replace(full, idle_location=dataclasses.replace(PARTLY, cpu_pct=2))).cause.name
        == "launch-bound"
    )


@pytest.mark.parametrize(
    ("idle_location", "name"),
    [
        (dataclasses.replace(PARTLY, cpu_pct=2), "trainer-blocked"),
        (dataclasses.replace(PARTLY, cpu_pct=95), "main-process"),
        (PARTLY, "unexplained"),  # whether it waited there is not known
        (dataclasses.replace(PARTLY, cpu_pct=2, call_share=0.2), "unexplained"),
        (dataclasses.replace(PARTLY, cpu_pct=2, share=0.6), "unexplained"),  # most of the time it stood elsewhere
    ],
)
def test_much_of_the_time_in_one_function_is_a_cause_where_there_is_no_other(idle_location, name):
    given = signals({"main_cpu_pct": 60}, idle_location=idle_location)
    assert explain(given).cause.name == name
    storage = signals({**IDLE, **STORAGE, "main_cpu_pct": 60}, idle_location=idle_location)
    assert explain(storage).cause.name == "input-storage"


HAS_MANY = {"is_steady": True, "loader_workers": 12, "batch_tensors": 900.0, "batch_key": "rowers"}
HAS_MANY["setting_locations"] = (SettingLocation("batch_tensors", "/home/me/dataset.py", 7),)


@pytest.mark.parametrize("waited", [0.02, 0.7])
def test_a_batch_of_many_tensors_is_named_whether_it_comes_late_or_slows_the_steps(waited):
    """The thread that takes them from the workers keeps Python's lock from the one that launches."""
    gpu = {"gpu_util_pct": 28, "sm_active_pct": 7}
    given = signals(ONE_CORE, gpu=gpu, step_s=0.08, data_wait_share=waited, **HAS_MANY)
    explained = explain(given)
    assert (explained.cause.name, explained.cause.confidence) == ("many-tensors", STRONG)
    assert explained.advice[0].short == "Hand over one tensor of 'rowers' for each batch, not 900 (dataset.py:7)"
    longest_s = 0.35 if waited < 0.4 else 0.7  # a wait holds what the worker takes to answer, too
    assert explain(dataclasses.replace(given, step_s=longest_s)).cause.name == "many-tensors"
    for other in (
        {"batch_tensors": 8.0},
        {"batch_tensors": None},
        {"loader_workers": 0},
        {"step_s": None},
        {"step_s": longest_s + 0.1},
        {"is_steady": False},
    ):
        assert explain(dataclasses.replace(given, **other)).cause.name != "many-tensors"


def test_workers_of_the_validation_that_idle_do_not_hide_those_that_are_full():
    kept = signals({**TOO_FEW, "workers": 6})
    assert explain(kept).cause.name == "unexplained"
    assert explain(dataclasses.replace(kept, loader_workers=2)).cause.name == "input-cpu"


@pytest.mark.parametrize(
    ("phase", "name"),
    [
        ("validation", "validation"),
        ("checkpoint", "checkpoint"),
        ("close mosaic", "startup"),
        ("first batch", "startup"),
    ],
)
def test_what_yolo_was_doing_explains_what_nothing_else_does(phase, name):
    quiet = signals({}, phases={phase: 0.9, "train": 0.1})
    explained = explain(quiet)
    cause, proof = explained.cause, explained.evidence
    assert (cause.name, cause.confidence) == (name, 0.5)
    assert proof[0].value == pytest.approx(90)
    assert explain(dataclasses.replace(quiet, phases={phase: 0.7, "train": 0.3})).cause.name == "unexplained"
    waiting = signals({**IDLE, **STORAGE}, phases={phase: 1.0})
    assert (explain(waiting).cause.name, explain(waiting).cause.runner_up) == ("input-storage", name)


def test_a_loader_is_at_its_limit_when_the_cores_that_it_may_use_are_full():
    held = signals({"main_cpu_pct": 30, "busiest_worker_cpu_pct": 95, "workers_cpu_pct": 380, "workers": 12})
    assert explain(held).cause.name == "unexplained"
    assert explain(dataclasses.replace(held, usable_cores=4.0)).cause.name == "cpu-limit"


def test_a_training_that_fills_the_cores_of_its_quota_lacks_cores():
    held = signals({"main_cpu_pct": 52, "busiest_worker_cpu_pct": 49, "workers_cpu_pct": 353, "workers": 8})
    assert explain(held).cause.name == "unexplained"
    explained = explain(dataclasses.replace(held, usable_cores=4.0))
    cause, proof = explained.cause, explained.evidence
    assert (cause.name, cause.explanation) == ("cpu-limit", "training may use only 4 of 16 CPU cores")
    assert [number.value for number in proof[:2]] == [405, 4]
    assert explain(dataclasses.replace(held, usable_cores=4.6)).cause.name == "unexplained"


def stolen(within, usual=0.0, **fields):
    """Return an interval in which a hypervisor takes CPU time, and in which it usually takes so much."""
    return dataclasses.replace(signals({}, **fields), host=signal_table({**FED, "cpu_steal_pct": usual}, within))


STOLEN = {"cpu_pct": 60, "cpu_steal_pct": 25, "main_cpu_pct": 70, "workers_cpu_pct": 300}


def test_cpu_time_that_a_hypervisor_took_is_said_and_is_no_process_of_this_machine():
    (cause, *_), advice = (explain(stolen(STOLEN)).cause,), explain(stolen(STOLEN)).advice
    assert cause.explanation == (
        "the hypervisor gave 42 % of the CPU time that this machine wanted to other virtual machines"
    )
    assert (cause.name, advice) == ("cpu-limit", (host.DEDICATED,))
    assert host.cores_taken(stolen({**STOLEN, "cpu_pct": 100, "cpu_steal_pct": 60})) is None
    assert host.cores_taken(stolen({**STOLEN, "cpu_pct": 100, "cpu_steal_pct": 1})) is not None


@pytest.mark.parametrize(
    ("within", "usual", "fields", "found"),
    [
        ({"cpu_steal_pct": 5}, 0.0, {}, False),  # of 60 % that were wanted
        ({"cpu_steal_pct": 1.5, "cpu_pct": 3}, 0.0, {}, False),  # nobody wanted any
        ({}, 20.0, {}, False),  # as always
        ({}, 20.0, {"is_steady": True}, True),  # all of a training
    ],
)
def test_what_a_hypervisor_always_takes_explains_no_moment(within, usual, fields, found):
    assert (host.cores_stolen(stolen({**STOLEN, **within}, usual, **fields)) is not None) == found


@pytest.mark.parametrize(("used", "pressure", "full"), [(80, 69, True), (80, 20, False), (70, 69, False)])
@pytest.mark.parametrize("whose", ["cpu_pressure_pct", "cgroup_cpu_pressure_pct"])
def test_cores_that_processes_wait_for_are_full_before_the_last_percent(used, pressure, full, whose):
    now = {"main_cpu_pct": 52, "workers_cpu_pct": 4 * used - 52, whose: pressure}
    held = dataclasses.replace(signals({}), host=signal_table({**FED, whose: 0}, now), usable_cores=4.0)
    assert (host.own_cores_full(held) is not None) == full


@pytest.mark.parametrize(
    ("workers", "cpu_pct", "busiest", "text"),
    [
        (14, 1560, 150, "14 multi-threaded data-loader workers filled all 16 CPU cores"),
        (24, 1560, 90, "training may use only 16 of 64 CPU cores"),
        (14, 1390, 103, None),  # one thread each: they and the main process lack no core
    ],
)
def test_who_needs_more_cores_than_there_are_is_asked_first(workers, cpu_pct, busiest, text):
    host_of = {"main_cpu_pct": 100, "workers_cpu_pct": cpu_pct, "busiest_worker_cpu_pct": busiest, "workers": workers}
    full = signals(host_of, is_steady=True)
    found = host.own_cores_full(dataclasses.replace(full, cores=64, usable_cores=16.0))
    assert (found and found.explanation) == text


@pytest.mark.parametrize(("busiest", "threads"), [(140, True), (102, False)])
def test_workers_of_the_validation_that_stay_neither_hide_nor_feign_several_threads(busiest, threads):
    host_of = {"main_cpu_pct": 100, "workers_cpu_pct": 1500, "busiest_worker_cpu_pct": busiest, "workers": 42}
    full = signals(host_of, is_steady=True)
    found = host.own_cores_full(dataclasses.replace(full, cores=64, usable_cores=16.0, loader_workers=14))
    assert bool(found and found.explanation.startswith("14 multi-threaded data-loader workers")) == threads


QUOTA = {"main_cpu_pct": 52, "busiest_worker_cpu_pct": 49, "workers_cpu_pct": 353, "workers": 8, "cpu_pct": 26}


@pytest.mark.parametrize(
    ("pressures", "more", "sure"),
    [
        ((60,), {}, LIKELY),
        ((60, 60), {}, STRONG),
        ((60, 2), {}, None),  # others wait, not the training
        ((5,), {}, None),
        ((60,), {"cpu_pct": 90}, None),  # no core is free
        ((60,), {"workers_cpu_pct": 1100}, None),  # most cores are its own
        ((60, 60), {"main_cpu_pct": 101, "workers_cpu_pct": 58}, None),  # it has a core: others of its cgroup wait
    ],
)
def test_a_limit_that_nobody_recorded_shows_where_processes_wait_for_cores_that_are_free(pressures, more, sure):
    given = signals({**QUOTA, "cpu_pressure_pct": pressures[0], **more})
    own = np.full(SECONDS, float(pressures[1]) if len(pressures) > 1 else np.nan)
    given = dataclasses.replace(given, host=given.host.with_column("cgroup_cpu_pressure_pct", own))
    found = host.capped_by_limit(given)
    assert (found and found.confidence) == sure
    if found:
        words = "something limited the training to 4.0 of 16 CPU cores, though others were free"
        assert (found.name, found.explanation) == ("cpu-limit", words)
    assert host.cores_short(given) == (found is not None or more == {"cpu_pct": 90})  # others have them then


def test_a_training_whose_cpu_comes_and_goes_is_held_by_no_quota():
    steady = signals({**QUOTA, "cpu_pressure_pct": 60})
    workers = steady.host.columns["workers_cpu_pct"] * np.resize([1.0, 0.5, 0.75], SECONDS)
    varying = dataclasses.replace(steady, host=steady.host.with_column("workers_cpu_pct", workers))
    assert host.capped_by_limit(varying) is None


def test_a_process_that_was_held_on_few_cores_lacks_them():
    few = signals({"main_cpu_pct": 60, "workers_cpu_pct": 300, "main_cores": 1})
    cause = explain(few).cause
    assert (cause.name, cause.explanation) == (
        "cpu-limit",
        "a process of the training could use only 1 of 16 CPU cores",
    )
    assert [number.value for number in explain(few).evidence[:2]] == [1, 16]
    assert explain(signals({"main_cpu_pct": 60, "workers_cpu_pct": 300})).cause.name == "unexplained"


def test_an_affinity_from_the_start_is_a_limit_like_a_quota():
    held = {"main_cpu_pct": 52, "busiest_worker_cpu_pct": 49, "workers_cpu_pct": 353, "workers": 8}
    for cores, name in ((4, "cpu-limit"), (16, "unexplained")):
        host = signal_table({**FED, "main_cores": cores, "worker_cores": cores}, held)
        assert explain(dataclasses.replace(signals(held), host=host)).cause.name == name


def test_kernels_are_tuned_in_the_first_epoch_only():
    still = signals({"main_cpu_pct": 80, "workers_cpu_pct": 0, "busiest_worker_cpu_pct": 0})
    assert explain(still).cause.name == "unexplained"
    assert explain(dataclasses.replace(still, in_first_epoch=True)).cause.name == "startup"
    working = signals({"main_cpu_pct": 80, "workers_cpu_pct": 90}, in_first_epoch=True)
    assert explain(working).cause.name == "unexplained"


def test_a_stopped_process_is_a_fact_and_nothing_is_second_to_it():
    beside = {"other_processes": (OTHER,)}
    assert explain(signals(IDLE, **beside)).cause.runner_up == "other-process"
    cause = explain(signals({**IDLE, "trainer_stopped": 1}, **beside)).cause
    assert (cause.name, cause.runner_up) == ("trainer-blocked", None)


@pytest.mark.parametrize(
    ("within", "fields", "said"),
    [
        ({}, {}, "Find why some images took longer to load (large files"),
        ({}, {"is_rect": True}, "in each epoch"),
        ({"cpu_pct": 80}, {}, None),  # others use most of the machine: the words of the cause say so
        ({}, {"is_steady": True}, None),  # nothing kept up before: an argument mends it
    ],
)
def test_other_programs_are_named_for_slow_images_only_where_they_used_the_cpu(within, fields, said):
    explained = explain(signals({**TOO_FEW, **within}, loader_workers=2, data_wait_share=0.9, **fields))
    assert explained.cause.name == "input-cpu"
    assert [said in each.text for each in explained.advice] == ([True] if said else [])


EXPORTER = BusyThread(LINE, 0.97, 0.04)
ONE_FULL_CORE = {**ONE_CORE, "main_cpu_pct": 101}


def test_a_thread_that_kept_pythons_lock_is_why_launching_is_slow():
    found = explain(signals(ONE_FULL_CORE, idle_location=LAUNCHES, step_s=0.3, busy_thread=EXPORTER))
    assert (found.cause.name, found.cause.explanation.split(",")[0]) == (
        "main-process",
        "another thread held the GIL (Python's lock)",
    )
    assert [(each.key, each.value) for each in found.evidence if each.key] == [("busy_thread_pct", 97.0)]
    assert "queue.get()" in found.advice[0].text


def test_beside_such_a_thread_a_long_wait_for_the_lock_is_no_c_code():
    fields = {"idle_location": LAUNCHES, "step_s": 0.3, "gil_held": GilHold(1e6, 0.0)}
    with_thread = explain(signals(ONE_FULL_CORE, busy_thread=EXPORTER, **fields))
    assert with_thread.cause.explanation.startswith("another thread held")
    assert explain(signals(ONE_FULL_CORE, **fields)).cause.explanation.startswith("C code waited")


@pytest.mark.parametrize(
    "fields",
    [
        {"idle_location": ELSEWHERE, "step_s": 9.0},  # a callback of the user's: that is named
        {"idle_location": LAUNCHES, "step_s": 9.0, "data_wait_share": 0.8},
        {"idle_location": LAUNCHES, "step_s": 0.3, "busy_thread": dataclasses.replace(EXPORTER, main_share=None)},
    ],
)
def test_it_is_not_where_the_main_thread_waits_for_something_else(fields):
    found = explain(signals(ONE_FULL_CORE, **{"busy_thread": EXPORTER, **fields}))
    assert not any(each.key == "busy_thread_pct" for each in found.evidence)


def test_without_its_cpu_a_step_that_no_launching_explains_speaks_for_it():
    unmeasured = dataclasses.replace(EXPORTER, main_share=None)
    found = explain(signals(ONE_FULL_CORE, idle_location=LAUNCHES, step_s=23.5, busy_thread=unmeasured))
    assert found.cause.explanation.startswith("another thread held the GIL")


@pytest.mark.parametrize(("call_share", "too_much"), [(0.0, True), (0.4, False)])
def test_the_time_in_a_function_of_the_users_is_no_launching(call_share, too_much):
    idle_location = dataclasses.replace(LAUNCHES, call=LINE, call_share=call_share, cpu_pct=90.0)
    found = signals(
        ONE_CORE,
        gpu={"gpu_util_pct": 10, "sm_active_pct": 5},
        idle_location=idle_location,
        step_s=0.6,
        is_steady=True,
    )
    assert main_process.launches_too_much(found) == too_much
    assert explain(found).cause.explanation.startswith("a step took 0.5 s of CPU work") == too_much


def test_one_batch_of_a_drop_says_nothing_of_all_steps():
    """The last batch of a first epoch, of another size, took 5 s: once, and in each training (H200, 2026-11-27)."""
    fall = signals(ONE_CORE, gpu={"gpu_util_pct": 1, "sm_active_pct": 1}, idle_location=LAUNCHES, step_s=0.6)
    assert "a step took" not in explain(fall).cause.explanation
    in_first = explain(dataclasses.replace(fall, in_first_epoch=True, data_wait_share=0.0))
    assert (in_first.cause.name, in_first.advice) == ("startup", ())


@pytest.mark.parametrize(("share", "leads"), [(0.89, True), (0.3, False)])
def test_a_layer_of_the_users_that_takes_most_of_a_pass_is_why_a_step_takes_long(share, leads):
    """A loop over the windows of a feature map: 1.0 s a step, where YOLO26s takes 0.1 s (H200, 2026-11-27)."""
    layer = OwnLayer(Frame("/home/u/windows.py", 27, "forward"), share)
    slow = signals(
        ONE_CORE, gpu={"gpu_util_pct": 10, "sm_active_pct": 5}, idle_location=LAUNCHES, step_s=1.0, is_steady=True
    )
    (advice,) = explain(dataclasses.replace(slow, own_layer=layer)).advice
    look = "Look at `forward` (windows.py:27): your layer takes 89 % of the model's forward pass"
    assert (advice.short == look) == leads
    assert ("--profile" in advice.short) != leads


@pytest.mark.parametrize("is_steady", [False, True])
def test_a_training_that_fills_all_cores_needs_more_of_them_and_not_more_workers(is_steady):
    filled = {"main_cpu_pct": 55, "busiest_worker_cpu_pct": 88, "workers_cpu_pct": 335, "workers": 4, "cpu_pct": 99}
    given = signals(filled, data_wait_share=0.5, loader_workers=4)
    explained = explain(dataclasses.replace(given, cores=4, is_steady=is_steady))
    assert explained.cause.explanation == "the training used all 4 CPU cores"
    assert [each.short for each in explained.advice] == ["Give the training more CPU cores"]


def test_a_training_on_few_cores_is_given_more_unless_its_own_code_chose_them():
    busy = {"main_cpu_pct": 60, "workers_cpu_pct": 130, "main_cores": 2, "worker_cores": 2, "workers": 8}
    lasting = signals(busy, is_steady=True)
    on_two = dataclasses.replace(lasting, host=signal_table({**FED, "main_cores": 2, "worker_cores": 2}, busy, START))
    short = "Give the training more CPU cores than the 2 that it may use"
    assert [each.short for each in explain(on_two).advice] == [short]
    place = (SettingLocation("affinity", "/home/me/binding.py", 14),)
    short = "Let each process use more CPU cores (binding.py:14)"
    assert [each.short for each in explain(dataclasses.replace(on_two, setting_locations=place)).advice] == [short]


@pytest.mark.parametrize(
    ("cores", "waited", "util", "about"),
    [
        (48, 0.3336, 68, ": about 7 keep up with the GPU"),  # 384 % of a core / (1 - 0.33), and a tenth free
        (6, 0.3336, 68, ""),  # the machine has no more
        (48, None, 68, ""),
        (48, 0.014, 33, ""),  # the main process lacks them, too (8 workers under a quota of 4 cores, H200)
    ],
)
def test_how_many_cores_are_enough_follows_from_what_the_training_waits(cores, waited, util, about):
    full = {"main_cpu_pct": 64, "workers_cpu_pct": 320, "main_cores": 4, "worker_cores": 4, "workers": 8}
    given = signals(full, gpu={"gpu_util_pct": util}, is_steady=True, cores=cores, data_wait_share=waited)
    given = dataclasses.replace(given, host=signal_table({**FED, "main_cores": 4, "worker_cores": 4}, full, START))
    (advice,) = explain(given).advice
    assert advice.short == f"Give the training more CPU cores than the 4 that it may use{about}"


def test_a_rank_on_few_cores_is_given_more_and_the_line_that_binds_it_is_named():
    busy = {"main_cpu_pct": 96, "workers_cpu_pct": 280, "main_cores": 2, "cpu_pressure_pct": 29, "workers": 24}
    place = (SettingLocation("affinity", "/home/me/binding.py", 14),)
    lasting = dataclasses.replace(signals(busy, is_steady=True, cores=32), setting_locations=place)
    lasting = dataclasses.replace(lasting, host=signal_table({**FED, "main_cores": 2}, busy, START))
    explained = explain(dataclasses.replace(lasting, ranks=2))
    assert explained.cause.explanation == "one rank may use only 2 of 32 CPU cores"
    short = "Give each rank its share of the CPU cores (binding.py:14): one may use only 2"
    assert [each.short for each in explained.advice] == [short]
    alone = explain(lasting)
    assert alone.cause.explanation == "a process of the training may use only 2 of 32 CPU cores"
    assert "rank" not in alone.advice[0].text


def test_a_cpu_limit_is_to_be_raised_whatever_ticks_read_over_it():
    """It is of all processes in sum, so that more than it is no other core, and no rank is meant."""
    busy = {"main_cpu_pct": 67, "workers_cpu_pct": 296, "cgroup_cpu_pressure_pct": 62, "workers": 24}
    limited = signals(FED, is_steady=True, cores=64, usable_cores=3.2, cpu_limit=3.2, loader_workers=8)
    explained = explain(
        dataclasses.replace(limited, host=signal_table({**FED, "cgroup_cpu_pressure_pct": 0}, busy, START))
    )
    assert explained.cause.explanation == "training may use only 3.2 of 64 CPU cores (its cgroup's CPU limit)"
    assert [each.short for each in explained.advice] == ["Raise the CPU limit of 3.2 cores (`limits.cpu`, `--cpus`)"]


def test_workers_of_several_ranks_are_counted_once_and_for_each_gpu():
    crowd = {**TOO_FEW, "workers_cpu_pct": 420, "workers": 6}
    given = signals(crowd, data_wait_share=0.8, loader_workers=6)
    of_two = dataclasses.replace(given, ranks=2)
    assert explain(given).cause.explanation == "6 data-loader workers could not keep up"
    assert explain(of_two).cause.explanation == "6 data-loader workers (3 per GPU) could not keep up"


@pytest.mark.parametrize(("cpu_pct", "words"), [(12, "neither CPU nor disk"), (320, "to spare")])
def test_workers_that_fill_cores_are_not_said_to_use_no_cpu(cpu_pct, words):
    slow = signals(
        {**SLOW_IMAGES, "workers_cpu_pct": cpu_pct, "workers": 12}, gpu=HALF_BUSY, loader=LoaderWork(0.0, 0.0)
    )
    cause = explain(dataclasses.replace(slow, data_wait_share=0.8, is_steady=True)).cause
    assert cause.name == "input-latency"
    assert words in cause.explanation


@pytest.mark.parametrize(("cpu_pct", "uses_none"), [(5, True), (500, False)])
def test_blocked_workers_use_no_cpu_only_where_it_was_next_to_none(cpu_pct, uses_none):
    found = loader_idle_at_times(signals({"workers_cpu_pct": cpu_pct, "workers": 12}, loader_workers=12, waits=True))
    assert found is not None
    assert ("no CPU" in found.explanation) is uses_none


def test_workers_that_wait_beside_a_main_process_at_its_limit_are_not_what_it_waits_for():
    full = signals({**SLOW_IMAGES, "workers_blocked": 4, "main_cpu_pct": 100}, gpu={"gpu_util_pct": 70})
    assert explain(full).cause.name == "unexplained"  # without callbacks its core says that it never waits


def _storage_all_along(**within):
    """Return an interval of a training that waits for storage all the time, and the signals of all of it."""
    given = signals({}, gpu=GPU)
    host = signal_table({**FED, **SLOW_IMAGES, **STORAGE}, within, START)
    interval = dataclasses.replace(given, host=host, own=signal_table(GPU, {"gpu_util_pct": 3}))
    return interval, dataclasses.replace(interval, host=host.only_steady(), start_t_s=0.0, end_t_s=25.0, is_steady=True)


def test_what_holds_a_loader_up_all_the_time_explains_a_fall_in_which_it_is_as_usual():
    interval, lasting = _storage_all_along()
    assert explain(lasting).cause.name == "input-storage"
    assert explain(interval, fell=True).cause.name == "unexplained"  # compared with what is typical
    found = explain(interval, fell=True, always=explain(lasting).cause)
    assert (found.cause.name, found.cause.confidence) == ("input-storage", POSSIBLE)
    assert found.cause.explanation == "as in all of the training, the data loader waited for storage"
    assert "time with a process waiting for input or output" in {each.text for each in found.evidence}


def test_it_explains_no_fall_in_which_it_was_not_there():
    interval, lasting = _storage_all_along(io_pressure_pct=0, io_full_pressure_pct=0, workers_blocked=0)
    assert explain(interval, fell=True, always=explain(lasting).cause).cause.name == "unexplained"


SENDS = {"pcie_tx_mib_s": 12_000, "pcie_rx_mib_s": 11_000, "pcie_link_generation": 5, "pcie_link_width": 16}


@pytest.mark.parametrize(
    ("gpu", "fields", "is_found"),
    [
        ({}, {}, True),
        ({"pcie_tx_mib_s": 200}, {}, False),  # what a training sends back
        ({"pcie_tx_mib_s": 600, "pcie_link_generation": 3, "pcie_link_width": 8}, {}, True),  # much of a slow link
        ({"pcie_tx_mib_s": float("nan")}, {}, False),
        ({"pcie_link_width": float("nan")}, {}, False),
        ({"pcie_link_generation": 9}, {}, False),  # of which nobody knows the bandwidth
        ({}, {"all_reduces": True}, False),  # without NVLink ranks send gradients over it
        ({}, {"other_processes": [OtherProcess(0, 7, "other", (0.0, 60.0), 5000.0, None)]}, False),
        ({}, {"is_steady": False}, False),
    ],
)
def test_tensors_that_each_step_sends_to_cpu_memory_are_a_cause(gpu, fields, is_found):
    fields = {"is_steady": True, **fields}
    given = signals({}, gpu={})
    columns = {"gpu_util_pct": 55, "sm_active_pct": 8, **SENDS, **gpu}
    found = explain(dataclasses.replace(given, own=signal_table(columns, {}), **fields))
    assert (found.cause.name == "host-copies") == is_found
    if is_found:
        assert found.advice[0].short == "Keep tensors on the GPU: each step copies them to CPU memory"


def test_the_line_for_which_tensors_are_sent_to_cpu_memory_is_named():
    line = Frame("/home/u/small_cards.py", 12, "loss")
    own = signal_table({"gpu_util_pct": 55, **SENDS}, {})
    given = dataclasses.replace(signals({}, gpu={}), own=own, is_steady=True, copying_line=line)
    assert explain(given).advice[0].short == (
        "Look at `loss` (small_cards.py:12): tensors are copied to CPU memory there, in each step"
    )


@pytest.mark.parametrize(
    ("within", "is_found"),
    [
        ({}, True),
        ({"pcie_link_generation": 3, "pcie_link_width": 16}, False),  # half of it is common
        ({"gpu_util_pct": 5}, False),  # without work a GPU lowers its link
        ({"performance_state": 8}, False),
        ({"performance_state": float("nan")}, False),  # nobody knows whether it was at work
        ({"sm_clock_mhz": 900}, False),  # a laptop on its battery
        ({"pcie_link_width": float("nan")}, False),
    ],
)
def test_a_pcie_link_that_fell_while_the_gpu_worked_is_a_cause(within, is_found):
    typical = {"gpu_util_pct": 96, "sm_clock_mhz": 2700, "performance_state": 2}
    link = {"pcie_link_generation": 4, "pcie_link_width": 16}
    fell = {"gpu_util_pct": 60, "pcie_link_generation": 1, "pcie_link_width": 4, **within}
    given = signals({}, gpu={})
    found = explain(dataclasses.replace(given, own=signal_table(typical | link, fell)), fell=True)
    assert (found.cause.name == "pcie-link") == is_found
    if is_found:
        assert found.cause.explanation == "its PCIe link ran at gen 1 x4 instead of gen 4 x16"
        assert found.advice[0].short == "Reseat GPU 0 and its riser"
        assert found.advice[0].text == "Reseat GPU 0 and its riser or cable"  # as of the link itself: it is listed once


@pytest.mark.parametrize(
    ("within", "name"),
    [
        ({"workers_cpu_pct": 240}, "main-process"),  # images are loaded as slowly as steps are taken
        ({"workers_cpu_pct": 240, "main_cpu_pct": 92}, "unexplained"),  # it waits as much more, for whatever it is
        ({"workers_cpu_pct": 350}, "unexplained"),  # as many images are loaded: the training is as fast
    ],
)
def test_a_main_process_as_busy_as_ever_held_up_a_gpu_that_is_less_busy(within, name):
    found = explain(signals(within, gpu={"gpu_util_pct": 62, "sm_active_pct": 53}), fell=True)
    assert found.cause.name == name
    assert found.cause.confidence < LIKELY


@pytest.mark.parametrize(
    ("util_pct", "images_gb_s", "is_found"),
    [
        (50, 0.09, True),  # of a link of 0.2 GB/s: 45 % of each step, and the GPU is idle half of it
        (50, 0.02, False),  # a tenth explains no half
        (95, 0.009, False),  # too little to matter
        (50, 0.5, False),  # more than the link can carry: it is no credible reading
        (50, None, False),
    ],
)
def test_a_pcie_link_that_is_slow_all_along_is_a_cause_by_what_crosses_it(util_pct, images_gb_s, is_found):
    """Nothing is unusual then, and the main process fills a core while it waits for the copies."""
    own = {"gpu_util_pct": util_pct, "performance_state": 2, "pcie_link_generation": 1, "pcie_link_width": 1}
    given = dataclasses.replace(signals({}), own=signal_table(own, {}), data_wait_share=0.0, is_steady=True)
    carried = None if images_gb_s is None else images_gb_s * 1e9
    found = explain(dataclasses.replace(given, image_bytes_s=carried))
    assert (found.cause.name == "pcie-link") == is_found


@pytest.mark.parametrize(
    ("left", "advised"),
    [(3, "Find why 9 of 12 data-loader workers ended"), (12, "Find why some images took longer to load")],
)
def test_workers_that_are_gone_are_no_slow_images(left, advised):
    """Those that are left are full, as with images that take long."""
    full = {
        "workers": left,
        "busiest_worker_cpu_pct": 99,
        "workers_cpu_pct": 97 * left,
        "main_cpu_pct": 60,
        "cpu_pct": 9 * left,
    }
    given = dataclasses.replace(signals(full), data_wait_share=0.4, loader_workers=12)
    found = explain(given, fell=True)
    assert (found.cause.name, [each.short for each in found.advice]) == ("input-cpu", [advised])


@pytest.mark.parametrize(
    ("own_mib", "fields", "short"),
    [
        (50_000, {"caches_in_memory": True}, "Set `cache=disk` instead of `cache=ram`, or fewer `workers` (now 12)"),
        (50_000, {"caches_in_memory": False}, "Use fewer `workers` (now 12)"),
        (50_000, {"caches_in_memory": None, "loader_workers": 0}, "Use less host memory"),
        (20_000, {"caches_in_memory": True}, None),  # others have most of it
        (50_000, {"caches_in_memory": True, "is_steady": True}, None),  # what lasts has advice of its own
        (float("nan"), {"caches_in_memory": True}, None),
    ],
)
def test_memory_that_is_short_names_the_settings_of_whose_it_is(own_mib, fields, short):
    given = signals(SWAPPING, **{"loader_workers": 12, **fields})
    memory = {"memory_used_mib": 60_000, "trainer_memory_mib": own_mib}
    found = host.memory_pressure(dataclasses.replace(given, host=signal_table({**FED, **memory}, SWAPPING)))
    assert next((each.short for each in found.advice), None) == short
