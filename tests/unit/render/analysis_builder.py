"""A made-up but lifelike Analysis: 2 GPUs, 10 minutes at 1 Hz, with everything in it that a report can hold."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from support.served import made_calls, served_model

from gpu_report import model, schema

START_WALL_S = 1_795_223_424.286
DURATION_S = 600.0
STARTUP_S = 22.0
EPOCH_S = 44.0
VERDICT = "The GPUs worked 71 % of training. Three drops took 51 s: the data loader stood still in two of them."
VALIDATION_S = 5.0
CHECKPOINT_S = 1.5
GAP = (430.0, 446.0)
DROPS = ((0, 100.0, 116.0), (1, 250.0, 271.0), (0, 375.0, 389.0))
DIP_T_S = 305  # one sample of GPU 0 reads 3 % here, between two of more than 70 %
MISSING_POWER_T_S = 150  # GPU 0's power could not be read here
RINGLESS = (500.0, 520.0)  # the driver gave no readings of its own
RING_DIP_T_S = 210.211  # one of them reads 2 % here
HOSTILE = '</script><script>window.planted="run"</script><img src=x onerror="window.planted=1">'


@dataclass(frozen=True)
class Ticks:
    """The seconds of one GPU's samples and the random source that its readings come from."""

    t_s: NDArray[np.float64]
    random: np.random.Generator


def build_analysis() -> model.Analysis:
    """Return the whole made-up analysis, with hostile text in every field that comes from outside."""
    run = build_run()
    return model.Analysis(
        run=run,
        options=model.Options(),
        verdict=model.Verdict((model.Sentence("work", VERDICT),)),
        gpus=tuple(_summary(run, gpu) for gpu in run.gpus),
        epochs=_epochs(),
        phases=_phases(),
        low_intervals=tuple(model.Interval(gpu, start, end, 4.0) for gpu, start, end in DROPS),
        gaps=(model.Gap(None, *GAP, "the machine was too busy to record"),),
        findings=_findings(run),
        ledger=_ledger(),
        speedup_limits=_bounds(),
        coverage=0.973,
    )


def build_detailed_analysis() -> model.Analysis:
    """Return the made-up run as newer hardware records it: GPU 0 with the driver's own readings, GPM and counters."""
    analysis = build_analysis()
    run = analysis.run
    samples, host = run.samples.copy(), run.host.copy()
    own = samples["gpu"] == 0
    samples.loc[own, "sm_active_pct"] = samples["gpu_util_pct"] * 0.5
    samples.loc[own, ["tensor_active_pct", "dram_active_pct", "memory_temperature_c"]] = [12.5, 41.5, 60.0]
    samples.loc[own & (samples["t_s"].astype(int) == MISSING_POWER_T_S), "sm_active_pct"] = np.nan
    tenth = samples[own].index[::10]
    samples.loc[tenth, "power_cap_s"] = 5000.0 + np.arange(len(tenth)) * 1.5
    samples.loc[tenth, "power_brake_s"] = 0.0
    host["cpu_pressure_pct"], host["io_pressure_pct"], host["main_cpu_pct"], host["workers"] = 12.5, 3.0, 291.0, 8.0
    return replace(analysis, run=replace(run, samples=samples, ring=_ring(), host=host))


def _ring() -> pd.DataFrame:
    """Return utilisation of GPU 0 every 0.2 s and power every 20 ms of one minute, but none in `RINGLESS`."""
    util_t = np.round(np.arange(0, DURATION_S, 0.2) + 0.011, 3)
    util_t = util_t[((util_t < GAP[0]) | (util_t > GAP[1])) & ((util_t < RINGLESS[0]) | (util_t > RINGLESS[1]))]
    util = np.where(util_t == RING_DIP_T_S, 2.0, 80 + np.arange(len(util_t)) % 7)
    power_t = np.round(np.arange(0, 60, 0.02) + 0.017, 3)
    power = np.round(400 + 300 * np.sin(power_t), 1)
    parts = [
        pd.DataFrame({"t_s": util_t, "gpu": 0, "gpu_util_pct": util, "power_w": np.nan}),
        pd.DataFrame({"t_s": power_t, "gpu": 0, "gpu_util_pct": np.nan, "power_w": power}),
    ]
    return pd.concat(parts).sort_values("t_s", kind="stable", ignore_index=True)


def build_quiet_analysis() -> model.Analysis:
    """Return a run of one GPU in which nothing happened and nothing beside the samples is known."""
    analysis = build_analysis()
    run = analysis.run
    quiet = replace(
        run,
        gpus=run.gpus[:1],
        samples=run.samples[run.samples["gpu"] == 0],
        host=run.host.iloc[:0],
        processes=run.processes.iloc[:0],
        recording=model.Recording(),
        yolo_runs=(),
        epoch_rows=(),
        events=(),
        problems=(),
        kernel=model.KernelLog("restricted", reason="only root may read it here", advice="sudo dmesg --follow"),
    )
    return replace(
        analysis,
        run=quiet,
        gpus=analysis.gpus[:1],
        verdict=model.Verdict((model.Sentence("work", "GPU 0 was busy throughout."),)),
        epochs=(),
        phases=(),
        low_intervals=(),
        gaps=(),
        findings=(),
        ledger=(),
        coverage=1.0,
    )


def build_empty_analysis() -> model.Analysis:
    """Return a run in which not one sample was recorded."""
    analysis = build_quiet_analysis()
    empty = replace(analysis.run, samples=analysis.run.samples.iloc[:0], gpus=(), duration_s=0.0)
    return replace(
        analysis,
        run=empty,
        gpus=(),
        verdict=model.Verdict((model.Sentence("work", "There is nothing to judge."),)),
        coverage=0.0,
    )


def build_inference_analysis() -> model.Analysis:
    """Return a run of one GPU in which two models were called, the second one from a file with a hostile name."""
    quiet = build_quiet_analysis()
    calls = made_calls(600, settings={"model": f"/home/me/{HOSTILE}.onnx", "format": "onnx"}, pid=511)
    predict = model.Phase("predict", None, 30.0, 62.0, "callbacks")
    work = model.LedgerRow("work", expected=True, gpu_seconds=480.0, energy_j=None, money=None, share=0.8)
    idle = model.LedgerRow("idle", expected=True, gpu_seconds=120.0, energy_j=None, money=None, share=0.2)
    served = (served_model(), served_model(calls))
    known = {"phases": (predict,), "ledger": (work, idle), "speedup_limits": ()}
    return replace(quiet, served=served, is_inference=True, **known)


def build_run() -> model.Run:
    """Return the recorded run alone."""
    samples = pd.concat([_samples(0), _samples(1)], ignore_index=True)
    return model.Run(
        path="gpu-runs/20261121-010344",
        start_wall_s=START_WALL_S,
        duration_s=DURATION_S,
        recording=_recording(),
        gpus=tuple(_gpu(index) for index in (0, 1)),
        samples=samples,
        ring=pd.DataFrame({"t_s": [], "gpu": [], **{c.name: [] for c in schema.RING_QUANTITIES}}),
        host=_host(),
        processes=_processes(),
        yolo_runs=(_yolo(),),
        epoch_rows=(),
        kernel=_kernel(),
        events=(
            model.RecordedEvent(GAP[0], "gap", None, {"seconds": 16.0, "reason": "too busy"}),
            model.RecordedEvent(150.0, "nvml_error", 0, {"quantity": "power_w", "reason": f"GPU is lost {HOSTILE}"}),
            model.RecordedEvent(200.0, "marker", None, {"text": "changed the fan curve"}),
        ),
        problems=(f"samples.csv: 2 rows could not be read {HOSTILE}",),
    )


def _ticks(seed: int) -> Ticks:
    random = np.random.default_rng(seed)
    t_s = np.round(np.arange(0, DURATION_S) + random.uniform(0.0, 0.004, int(DURATION_S)), 3)
    return Ticks(t_s[(t_s < GAP[0]) | (t_s >= GAP[1])], random)


def _samples(gpu: int) -> pd.DataFrame:
    ticks = _ticks(gpu)
    util = _utilisation(ticks, gpu)
    busy = util / 100
    columns = {
        "gpu_util_pct": util,
        "memory_util_pct": np.round(util * 0.55),
        "memory_used_mib": np.where(ticks.t_s < 8, 615, 41_230 + np.floor(ticks.t_s / EPOCH_S) * 312),
        "memory_reserved_mib": np.full(len(util), 612.0),
        "power_w": np.round(118 + busy * 480 + ticks.random.normal(0, 6, len(util)), 1),
        "energy_j": np.where(np.arange(len(util)) % 60 == 0, 75_583.6 + ticks.t_s * 410.5, np.nan).round(1),
        "temperature_c": np.round(36 + 22 * (1 - np.exp(-ticks.t_s / 90)) + busy * 4),
        "sm_clock_mhz": np.where(util > 10, 1965 - 15 * ticks.random.integers(0, 8, len(util)), 345),
        "memory_clock_mhz": np.full(len(util), 3201.0),
        "clock_event_reasons": np.where(util > 60, 0x4, np.where(util < 5, 0x1, 0x0)),
        "performance_state": np.zeros(len(util)),
    }
    frame = pd.DataFrame({"t_s": ticks.t_s, "gpu": gpu, **columns}).astype(float)
    if gpu == 0:
        frame.loc[frame["t_s"].astype(int) == MISSING_POWER_T_S, "power_w"] = np.nan
        frame.loc[frame["t_s"].astype(int) == DIP_T_S, "gpu_util_pct"] = 3.0
    return frame.reindex(columns=["t_s", "gpu", *(column.name for column in schema.GPU_QUANTITIES)])


def _utilisation(ticks: Ticks, gpu: int) -> NDArray[np.float64]:
    util = np.clip(ticks.random.normal(84 - 6 * gpu, 5, len(ticks.t_s)), 70, 100)
    into_epoch = (ticks.t_s - STARTUP_S) % EPOCH_S
    util[into_epoch > EPOCH_S - VALIDATION_S - CHECKPOINT_S] = 46
    util[into_epoch > EPOCH_S - CHECKPOINT_S] = 8
    util[ticks.t_s < STARTUP_S] = 0
    util[ticks.t_s > 580] = 0
    for index, start, end in DROPS:
        if index == gpu:
            util[(ticks.t_s >= start) & (ticks.t_s < end)] = 4
    return np.round(util)


def _host() -> pd.DataFrame:
    ticks = _ticks(7)
    count = len(ticks.t_s)
    cpu = np.clip(ticks.random.normal(47, 6, count), 1, 100)
    frame = pd.DataFrame(
        {
            "t_s": ticks.t_s,
            "cpu_pct": cpu.round(1),
            "cpu_busiest_core_pct": np.clip(cpu * 1.9, 0, 100).round(1),
            "iowait_pct": ticks.random.uniform(0, 2, count).round(1),
            "memory_used_mib": np.full(count, 21_560.0),
            "memory_available_mib": np.full(count, 107_204.0),
        }
    )
    return frame.reindex(columns=["t_s", *(column.name for column in schema.HOST_QUANTITIES)])


def _processes() -> pd.DataFrame:
    rows = [
        (9.0, 0, 2090, "python3", 612.0, "appeared", "unknown", np.nan),
        (12.0, 0, 2090, "python3", 41_100.0, "changed", "trainer", 71.0),
        (9.0, 1, 2091, "python3", 41_060.0, "appeared", "trainer", 24.0),
        (250.0, 1, 3177, HOSTILE, 9_216.0, "appeared", "other", np.nan),
        (270.0, 1, 3177, HOSTILE, 9_216.0, "gone", "other", np.nan),
        (300.0, 0, 4242, None, np.nan, "appeared", "not visible", np.nan),
        (585.0, 0, 2090, "python3", np.nan, "gone", "trainer", np.nan),
    ]
    columns = ["t_s", "gpu", "pid", "name", "memory_used_mib", "change", "owner", "gpu_util_pct"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values("t_s", kind="stable", ignore_index=True)


def _kernel() -> model.KernelLog:
    xid = model.KernelEvent(
        t_s=248.4,
        kind="xid",
        severity="critical",
        text="NVRM: Xid (PCI:0000:00:07): 31, pid=2091, name=python3, channel 0x0000000a, intr 00000000. MMU Fault: "
        "ENGINE GRAPHICS GPC0 GPCCLIENT_T1_8 faulted @ 0x7dea_d0000000. "
        "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE",
        meaning="A program on the GPU wrote to an address that is not its own.",
        action="Look for an out-of-bounds access in custom CUDA code.",
        gpu=1,
        code=31,
        pid=2091,
        process="python3",
        count=3,
        last_t_s=249.1,
        source="/dev/kmsg",
    )
    storage = model.KernelEvent(
        t_s=96.0,
        kind="nvme",
        severity="warning",
        text="nvme nvme0: I/O tag 512 (1000) QID 4 timeout, aborting",
        meaning="A disk did not answer in time.",
        source="/dev/kmsg",
    )
    other = model.KernelEvent(
        t_s=501.0, kind="segfault", severity="info", text=f"python3[2090]: segfault {HOSTILE}", meaning="A crash."
    )
    return model.KernelLog("read", source="/dev/kmsg", events=(storage, xid, other), xid_events="listening")


def _recording() -> model.Recording:
    return model.Recording(
        tool_version="0.1.0",
        host="trainer-7",
        os="Debian GNU/Linux 12",
        cores=16,
        memory_mib=131_072,
        driver="580.159.04",
        cuda="13.0",
        python="3.11.7",
        torch="2.11.0+cu130",
        ultralytics="8.4.190",
        command=("yolo", "detect", "train", f"name={HOSTILE}"),
        interval_s=1.0,
        ended_by="command",
        exit_code=0,
        cost=model.RecorderCost(cpu_pct=0.6, rss_mib=24.0, tick_p50_ms=1.9, tick_p99_ms=6.2, late_ticks=2),
    )


def _gpu(index: int) -> model.Gpu:
    return model.Gpu(
        index=index,
        uuid=f"GPU-00000000-0000-4000-8000-00000000000{index}",
        name="NVIDIA H200",
        pci_bus_id=f"00000000:0{index + 7}:00.0",
        memory_total_mib=143_771.0,
        power_limit_w=700.0,
        max_sm_clock_mhz=1980.0,
    )


def _yolo() -> model.YoloRun:
    args = {"model": "yolo26m.yaml", "batch": 64, "workers": 14, "cache": "ram", "device": "0,1", "name": HOSTILE}
    more = {"epochs": 400, "imgsz": 640, "optimizer": "auto", "amp": True, "resume": False, "time": None, "lr0": 0.01}
    return model.YoloRun(1, f"runs/{HOSTILE}", {**args, **more}, "file-time", 0.4, "results.csv kept its file time.")


def _epochs() -> tuple[model.EpochSummary, ...]:
    count = int((DURATION_S - STARTUP_S) // EPOCH_S)
    return tuple(
        model.EpochSummary(
            run=1,
            epoch=number + 1,
            attempt=1,
            start_t_s=STARTUP_S + number * EPOCH_S,
            end_t_s=STARTUP_S + (number + 1) * EPOCH_S,
            gpu_util_pct=74.0 - number,
            memory_peak_mib=41_230.0 + 312 * number,
            energy_j=float("nan") if number == 9 else 36_100.0,
            gpus={0: {"gpu_util_pct": _stats(76.0)}, 1: {"gpu_util_pct": _stats(72.0)}},
            gpu_utils_pct={0: 76.0, 1: 72.0},
            loss=3.25 / (number + 1),
            lr=0.0098,
        )
        for number in range(count)
    )


def _phases() -> tuple[model.Phase, ...]:
    phases = [model.Phase("startup", None, 0.0, STARTUP_S, "results.csv")]
    for epoch in _epochs():
        ends = epoch.end_t_s - VALIDATION_S - CHECKPOINT_S, epoch.end_t_s - CHECKPOINT_S, epoch.end_t_s
        starts = epoch.start_t_s, *ends[:2]
        names: tuple[model.PhaseName, ...] = ("train", "validation", "checkpoint")
        phases += [
            model.Phase(name, epoch.epoch, start, end, "results.csv")
            for name, start, end in zip(names, starts, ends, strict=True)
        ]
    return (*phases, model.Phase("idle", None, phases[-1].end_t_s, DURATION_S, "results.csv"))


def _stats(mean: float) -> model.Stats:
    return model.Stats(mean, mean - 40, mean - 30, mean, mean + 20, mean + 24)


def _summary(run: model.Run, gpu: model.Gpu) -> model.GpuSummary:
    samples = run.samples[run.samples["gpu"] == gpu.index]
    quantities = {}
    for column in schema.GPU_QUANTITIES:
        values = samples[column.name].dropna()
        if values.empty:
            continue
        p5, p50, p95 = (float(values.quantile(q)) for q in (0.05, 0.5, 0.95))
        quantities[column.name] = model.Stats(values.mean(), values.min(), p5, p50, p95, values.max())
    return model.GpuSummary(gpu, len(samples), quantities, 246_300.0, "counter")


def _findings(run: model.Run) -> tuple[model.Finding, ...]:
    near = model.NearbyKernelEvent(run.kernel.events[1], -1.6)
    drops = tuple(
        model.Finding(
            id=f"drop-{number}",
            rule="drop",
            severity="critical" if number == 2 else "warning",
            gpu=gpu,
            start_t_s=start,
            end_t_s=end,
            summary=f"Utilisation of GPU {gpu} fell from 83 % to 4 % for {end - start:.0f} s.",
            epoch=int((start - STARTUP_S) // EPOCH_S) + 1,
            phase="train",
            at_boundary=number == 3,
            level_pct=83.0,
            low_pct=4.0,
            evidence=(model.Evidence("Loader processes", 2.0, "cores"), model.Evidence(f"seen beside it {HOSTILE}")),
            cause=model.Cause(
                "input-cpu", 0.74, "No batch was ready, and the loader's processes slept.", "trainer-blocked"
            ),
            kernel_events=(near,) if number == 2 else (),
            advice=(model.Advice("Give the loader more workers.", "workers", "14", "16", 0.06),),
        )
        for number, (gpu, start, end) in enumerate(DROPS, start=1)
    )
    expected = model.Finding(
        id="drop-4",
        rule="drop",
        severity="info",
        gpu=0,
        start_t_s=104.0,
        end_t_s=110.0,
        expected=True,
        epoch=2,
        summary="Utilisation fell during validation.",
        phase="validation",
        level_pct=80.0,
        low_pct=38.0,
        at_boundary=True,
        cause=model.Cause("validation", 0.95, "It began with the validation and ended with it."),
    )
    memory = model.Finding(
        id="memory-growth-1",
        rule="memory-growth",
        severity="info",
        gpu=None,
        start_t_s=22.0,
        end_t_s=580.0,
        summary="Memory in use grew by 312 MiB with each epoch.",
    )
    first, second, third = drops
    return (second, first, third, memory, expected)  # as `analyse` orders them: what is critical first, expected last


def _bounds() -> tuple[model.SpeedupLimit, ...]:
    return (
        model.SpeedupLimit("input-stalled", 27.0, 9.0, "its other epochs", 12.0, "workers=14"),
        model.SpeedupLimit("short gaps", 9.0, 8.0, "the GPU at 100 % utilisation throughout"),
    )


def _ledger() -> tuple[model.LedgerRow, ...]:
    seconds = {
        "work": 852.0,
        "short gaps": 148.0,
        "validation": 96.0,
        "input-cpu": 51.0,
        "startup": 44.0,
        "unmeasured": 9.0,
    }
    return tuple(
        model.LedgerRow(name, name == "validation", value, value * 300, None, value / 1200)
        for name, value in seconds.items()
    )
