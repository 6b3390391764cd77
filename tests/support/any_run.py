"""Runs that nobody would make up: any mix of what a loader may hand on, for what must hold of every one of them."""

import dataclasses
from random import Random

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.model import (
    VALIDATION_PARTS,
    EpochRow,
    Frame,
    Gpu,
    InsideEpoch,
    InsideRun,
    KernelEvent,
    KernelLog,
    MemoryHolder,
    OomReport,
    Options,
    OtherProgram,
    Phase,
    ProcessDumps,
    ProcessWait,
    Progress,
    Raised,
    RecordedEvent,
    Recording,
    Run,
    SettingLocation,
    Validation,
    YoloRun,
)
from support.runs import PROCESSES, make_run

NAN = float("nan")
ODD = (None, "", "abc", "None", -1, 0, 1, 8, 0.7, True, False, [0, 1], [], "0,1", "cpu", "disk", NAN, float("inf"))
ARGS = {"epochs": 10, "close_mosaic": 3, "patience": 5, "time": None, "workers": 2, "batch": 16, "nbs": 64}
ARGS |= {"cache": False, "task": "detect", "device": 0, "val": True, "save": True, "imgsz": 640}
OF_VALIDATION = {"conf": None, "plots": True, "max_det": 300}
SETTINGS = {
    "workers": 2,
    "batch": 16,
    "world_size": 1,
    "images": 1000,
    "imgsz": 640,
    "device": "cuda:0",
    "cuda": "13.0",
}
SETTINGS |= {
    "cache": "ram",
    "epochs": 10,
    "torch": "2.9+cpu",
    "prefetch": 2,
    "data_folder": "/data",
    "data_mib": 100,
    "npy_mib": 700,
    "image_px": 4000,
    "scaled_down": [0.3, 4000, 0.05],
    "image_boxes": [12.5, 2500],
    "label_classes": [1203, 4, 0],
    "omp_num_threads": 64,
    "nccl_disabled": ["p2p", "shm"],
}


def any_options(pick: Random) -> Options:
    """Return options, the most extreme among them."""
    return Options(pick.choice([0, 0.001, 30, 50, 99, 100]), pick.choice([0, 0.001, 10, 1000]), pick.choice([None, 3]))


def any_run(pick: Random) -> Run:
    """Return a run of up to 8 GPUs at any interval, with or without whatever else can be recorded."""
    interval_s, count = pick.choice([0.1, 1.0, 1.0, 10.0, 30.0, 3600.0]), pick.choice([1, 2, 10, 60, 300])
    gpus = pick.choice([1, 1, 2, 8])
    quantities = {c.name: _column(pick, c.name, count) for c in schema.GPU_QUANTITIES if c.name != "gpu_util_pct"}
    run = make_run([_utilisation(pick, count) for _ in range(gpus)], interval_s, quantities=quantities)
    end_s = pick.choice([run.duration_s, run.duration_s - interval_s])
    yolo, rows, inside = _trainings(pick, end_s)
    host = {c.name: _column(pick, c.name, count) for c in schema.HOST_QUANTITIES}
    return dataclasses.replace(
        run,
        duration_s=end_s,
        recording=_recording(pick, interval_s),
        gpus=tuple(_gpu(pick, index) for index in range(gpus + pick.choice([0, 0, 1]))),
        samples=run.samples[run.samples["gpu"] >= pick.choice([0, 0, gpus - 1])].reset_index(drop=True),
        host=pd.DataFrame({"t_s": np.arange(count) * interval_s, **host}) if pick.random() < 0.7 else run.host,
        processes=_processes(pick, gpus, end_s),
        yolo_runs=yolo,
        epoch_rows=rows,
        inside=inside,
        kernel=KernelLog(pick.choice(["read", "restricted"]), events=_kernel(pick, end_s)),
        events=_events(pick, gpus, end_s),
        waits=_waits(pick, end_s),
        other_programs=_other_programs(pick, end_s),
        dumps=_dumps(pick, end_s),
    )


def _waits(pick: Random, end_s: float) -> tuple[ProcessWait, ...]:
    """Return waits of processes, for files with and without names."""
    waits = []
    for _ in range(pick.choice([0, 1, 30])):
        start_s = pick.random() * end_s
        file, filesystem = pick.choice([("/mnt/x y/`a`.npy", "nfs4"), ("/data/1.jpg", "ext4"), ("pipe", ""), ("", "")])
        who = pick.choice([10, 11]), pick.choice(["main", "worker"]), pick.choice(["S", "D"])
        end = min(start_s + pick.choice([0.0, 1.0, 20.0, end_s]), end_s)
        waits.append(
            ProcessWait(start_s, end, *who, pick.choice(["", "w"]), pick.choice(["read", ""]), file, filesystem)
        )
    return tuple(sorted(waits, key=lambda wait: wait.start_t_s))


def _other_programs(pick: Random, end_s: float) -> tuple[OtherProgram, ...]:
    """Return looks at programs of others, some of them with odd names."""
    looks = []
    for _ in range(pick.choice([0, 1, 100])):
        start_s = pick.random() * end_s
        end = min(start_s + pick.choice([1.0, 6.0, end_s]), end_s)
        who = pick.choice(["stress-ng", "`x` </b>", ""]), pick.choice(["bob", "1002", ""])
        used = pick.choice([1, 40]), pick.choice([10.0, 500.0, 1e6]), pick.choice([None, 0.0, 0.5, 1.0])
        looks.append(OtherProgram(start_s, end, *who, 4711, *used))
    return tuple(sorted(looks, key=lambda look: look.start_t_s))


def _dumps(pick: Random, end_s: float) -> tuple[ProcessDumps, ...]:
    """Return what py-spy saw of processes, some of it of nothing known."""
    frames = [Frame("/home/me/a `b`.py", 9, "f"), Frame("/x/torch/utils/data/dataloader.py", 1, "__next__")]
    frames += [Frame("/x/torch/utils/data/_utils/worker.py", 0, "_worker_loop"), Frame("", 0, "")]
    found = []
    for pid, role in ((10, "main"), (11, "main"), (12, "worker")):
        at_s = np.sort([pick.random() * end_s for _ in range(pick.choice([0, 1, 3, 40]))]).astype(float)
        stacks = tuple(tuple(pick.sample(frames, pick.choice([0, 1, 3]))) for _ in at_s)
        found += [ProcessDumps(pid, role, at_s, stacks, pick.choice([None, 10]))] if len(at_s) else []
    return tuple(found)


def _utilisation(pick: Random, count: int) -> list[float]:
    values: list[float] = []
    while len(values) < count:
        values += [pick.choice([0.0, 5.0, 30.0, 50.0, 90.0, 97.0, 100.0, NAN])] * pick.choice([1, 3, 10, 40])
    return values[:count]


def _column(pick: Random, name: str, count: int) -> list[float]:
    """Return a column of steps, a ramp or nothing; a counter only grows."""
    level = pick.choice([0.0, 1.0, 20.0, 85.0, 100.0, 1000.0, 100_000.0])
    values = level + np.arange(count) * pick.choice([0.0, 0.0, 1.0, 50.0])
    if not name.endswith(("_s", "energy_j")):
        values[pick.randrange(count) :] += pick.choice([0.0, 1.0, 4.0, 64.0]) * max(level, 1.0)
    values[np.array([pick.random() for _ in range(count)]) < pick.choice([0.0, 0.0, 0.2, 1.0])] = NAN
    return np.minimum(values, 100.0 if name.endswith("_pct") else np.inf).tolist()


def _gpu(pick: Random, index: int) -> Gpu:
    parent = pick.choice([None, None, None, 0])
    size_mib, limit_w, clock = pick.choice([None, 0, 24_000, 143_771]), pick.choice([None, 700]), pick.choice([None, 0])
    return Gpu(
        index,
        uuid=f"GPU-{index}",
        name=pick.choice([None, "H200"]),
        memory_total_mib=size_mib,
        power_limit_w=limit_w,
        max_sm_clock_mhz=clock,
        max_memory_clock_mhz=clock,
        parent_index=parent,
    )


def _recording(pick: Random, interval_s: float) -> Recording:
    return Recording(
        cores=pick.choice([None, 0, 1, 16]),
        cores_online=pick.choice([None, 1, 64]),
        cpu_limit=pick.choice([None, 0.5]),
        memory_mib=pick.choice([None, 0, 64_000]),
        memory_limit_mib=pick.choice([None, 0]),
        shm_total_mib=pick.choice([None, 0, 64]),
        cuda=pick.choice([None, "12.8", "x"]),
        interval_s=pick.choice([interval_s, None]),
        ended_by=pick.choice([None, "command"]),
        exit_code=pick.choice([None, 0, 1]),
        cuda_visible_devices=pick.choice([None, "", "0,1"]),
        slurm_job_id=pick.choice([None, "4711"]),
    )


def _mixed(pick: Random, usual: dict[str, object]) -> dict[str, object]:
    """Return settings of which some are missing and some are not what they should be."""
    kept = {name: value for name, value in usual.items() if pick.random() < 0.9}
    return {name: pick.choice(ODD) if pick.random() < 0.1 else value for name, value in kept.items()}


def _trainings(pick: Random, end_s: float) -> tuple[tuple[YoloRun, ...], tuple[EpochRow, ...], tuple[InsideRun, ...]]:
    """Return up to three YOLO runs one after the other, or at once, as results.csv and callbacks tell of them."""
    yolo, rows, inside, begin_s = [], [], [], pick.choice([-20.0, 0.0, 5.0])
    for number in range(1, pick.choice([1, 2, 2, 3, 4])):
        asked, length_s = pick.choice([0, 1, 5, 30]), pick.choice([0.5, 6.0, 20.0, max(end_s / 8, 0.1)])
        ends = [begin_s + 5 + length_s * (n + 1) for n in range(asked) if begin_s + length_s * (n + 1) < end_s]
        metrics = {"train/box_loss": pick.choice([1.0, NAN]), "metrics/mAP50-95(B)": 0.5}
        saved = [pick.choice([None, end]) for end in ends]
        mine = [
            EpochRow(number, 1, n, end - 0.1, end - length_s, metrics, at)
            for n, (end, at) in enumerate(zip(ends, saved, strict=True), 1)
        ]
        anchor, args = (
            "recorded" if mine else "no-epoch",
            {**_mixed(Random(begin_s), OF_VALIDATION), **_mixed(pick, ARGS)},
        )
        yolo.append(YoloRun(number, "/x", args, anchor, None, started_t_s=pick.choice([None, begin_s])))
        rows += mine
        ranks = pick.choice([0, 1, 8])
        inside += [_process(pick, number, rank, begin_s, length_s, ends) for rank in range(ranks)]
        begin_s = pick.choice([begin_s, (ends or [begin_s])[-1] + 3.0])
    return tuple(yolo), tuple(rows), tuple(inside)


def _process(pick: Random, number: int, rank: int, begin_s: float, length_s: float, ends: list[float]) -> InsideRun:
    phases, epochs, told = [Phase("startup", None, begin_s, begin_s + 5, "inside", "first batch")], [], []
    for n, end in enumerate(ends, 1):
        start, trained = end - length_s, end - 0.2 * length_s
        phases.append(Phase("train", n, start, trained, "inside"))
        phases.append(Phase("validation", n, trained, end, "inside", validated=_validated(trained, end)))
        wait_s = pick.choice([0.0, 0.1, 0.9, 1.2]) * length_s
        over = pick.choice([trained, trained, None])
        epochs.append(InsideEpoch(n, pick.choice([1, 1, 2]), start, over, pick.choice([None, 900]), 9, wait_s, 0, 0))
        told.append(Progress(start + length_s / 2, pick.choice([0, 4, 90]), wait_s / 2))
    ended = pick.choice([None, "finished", "early stop", "exception"])
    error = (
        pick.choice([None, "OutOfMemoryError", "RuntimeError", "KeyboardInterrupt"]) if ended == "exception" else None
    )
    seen = tuple(phases[: pick.choice([0, len(phases), len(phases)])])
    settings = {name: None if isinstance(value, float) else value for name, value in _mixed(pick, SETTINGS).items()}
    of = pick.choice([number, None])
    run = InsideRun(
        of, rank, 100 + rank, "train", settings, seen, tuple(epochs), ended, error, tuple(told), _raised(pick)
    )
    return _with_memory(Random(f"{begin_s} {rank} {ends}"), run)


def _with_memory(pick: Random, run: InsideRun) -> InsideRun:
    """Return a process that reports closely how far it is, and what its tensors take; seeds make the same runs."""
    told = run.progress
    if pick.random() < 0.5:
        told = tuple(
            Progress(e.start_t_s + (n / 12) ** 0.7 * 5, n, 0.0, pick.choice([None, 50.0, 900.0 * n * e.epoch]))
            for e in run.epochs
            for n in range(12)
        )
    held = MemoryHolder(
        pick.choice([0.0, 30.0, 1e6]),
        "Bank.items",
        "instance",
        pick.choice(["", "/a.py"]),
        pick.choice(["", "add"]),
        pick.choice([0, 7]),
        pick.choice([0, 1, 147]),
        pick.choice([0.0, 5.0, 30_000.0]),
        pick.choice([0, 54]),
        pick.choice([0.0, 9_000.0]),
        pick.choice([0, 147]),
        pick.choice([None, 0.0, 9_000.0]),
    )
    settings = {**run.settings, "memory_fraction": pick.choice([None, 0.0, 0.24, 1.0, 7, "x"]), "batches": 9}
    places = (SettingLocation("memory_fraction", "/a.py", 13),)
    return dataclasses.replace(
        run,
        progress=told,
        settings=settings,
        memory_holders=pick.choice([(), (held,), (held, held)]),
        memory_retries=pick.choice([(), ((20.0, 40), (30.0, 400))]),
        setting_locations=pick.choice([(), places]),
    )


def _validated(start: float, end: float) -> Validation | None:
    """Return the parts of a validation, as far as the loader lets any through; seeds make the same runs with it."""
    pick = Random(end)
    parts = {part: pick.choice([0.0, 0.1, 0.5]) * (end - start) / 5 for part in pick.sample(VALIDATION_PARTS, 5)}
    images, workers = pick.choice([None, 0, 900]), pick.choice([None, 0, 8])
    seen = Validation(start, end, 1, images, 9, pick.choice([parts, {}]), 0.0, 8, workers)
    return pick.choice([None, seen, seen])


def _raised(pick: Random) -> Raised:
    """Return what an exception said, of whatever kind."""
    return Raised(
        pick.choice(["", "x", "x" * 300]),
        pick.choice([(), ("DistError",)]),
        pick.choice([None, "ENOSPC", "cudaErrorAssert", "cudaErrorMemoryAllocation", "x"]),
        pick.choice([None, "SIGKILL", "exited"]),
        pick.choice([None, "ultralytics.engine.trainer:get_dataset", "x"]),
    )


def _processes(pick: Random, gpus: int, end_s: float) -> pd.DataFrame:
    rows = []
    for pid in range(99, 99 + pick.choice([0, 1, 4])):
        gpu, owner, mib = (
            pick.randrange(gpus + 1),
            pick.choice(sorted(schema.PROCESS_OWNERS)),
            pick.choice([NAN, 900.0]),
        )
        since_s = pick.random() * end_s
        rows.append((since_s, gpu, pid, "python", mib, "appeared", owner, pick.choice([NAN, 0.0, 50.0])))
        if pick.random() < 0.5:
            rows.append((pick.uniform(since_s, end_s), gpu, pid, "python", NAN, "gone", owner, NAN))
    return pd.DataFrame(sorted(rows, key=lambda row: row[0]), columns=PROCESSES)


def _events(pick: Random, gpus: int, end_s: float) -> tuple[RecordedEvent, ...]:
    lost = {"quantity": pick.choice(["all", "processes"]), "reason": pick.choice(["GPU is lost", None])}
    ended = {
        "exit_code": pick.choice([0, 1, 137, None, "x"]),
        "signal": pick.choice([None, "SIGKILL", "SIGINT", "SIGTERM", 5]),
    }
    kinds = [
        ("command_started", None, {"pid": pick.choice([100, None, "x"])}),
        ("command_ended", None, ended),
        ("nvml_error", pick.randrange(gpus + 1), lost),
        ("gap", None, {"seconds": pick.choice([5, "x", None])}),
        ("oom_kill", None, {"where": pick.choice(["cgroup", "machine", None])}),
    ]
    known = [RecordedEvent(pick.uniform(-1, end_s), *each) for each in kinds if pick.random() < 0.4]
    return tuple(sorted(known, key=lambda event: event.t_s))


def _kernel(pick: Random, end_s: float) -> tuple[KernelEvent, ...]:
    kinds = ["xid", "oom", "thermal", "gpu-lost", "nvme", "drop-caches"]
    return tuple(_kernel_event(pick, pick.choice(kinds), end_s) for _ in range(pick.choice([0, 0, 5])))


def _kernel_event(pick: Random, kind: str, end_s: float) -> KernelEvent:
    t_s, sizes = pick.uniform(-60, end_s), [None, 0.0, 100.0, 30_000.0]
    return KernelEvent(
        t_s,
        kind,
        "info" if kind == "drop-caches" else "warning",
        "x",
        "x",
        gpu=pick.choice([None, 0]),
        pid=pick.choice([100, 100, None, 7]),
        process=pick.choice(["x", None]),
        count=pick.choice([1, 9]),
        last_t_s=pick.choice([None, t_s + 20.0]),
        oom=OomReport(*(pick.choice(sizes) for _ in range(5))) if kind == "oom" and pick.random() < 0.7 else None,
        at_limit=kind == "oom" and pick.random() < 0.5,
    )
