"""What recorders cost, side by side on the same GPU: CPU, peak memory, quantities, readings a second.

    python benchmarks/recorders.py --seconds 90 --json out.json     (start a training first, and let it get going)

Needs gpustat and nvitop. All run at the same time; CPU is counted from SETTLE_S after the start to the end, from
/proc, so that imports do not count; memory is the peak of the process.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SETTLE_S = 8.0
KEYS = {"wall_s", "mono_s", "gpu"}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SMI_FIELDS = "timestamp,index,utilization.gpu,utilization.memory,memory.used,power.draw,temperature.gpu,clocks.sm"
BARE_LOOP = """
import sys, time
import pynvml as n
n.nvmlInit()
handles = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
due = time.monotonic()
while True:
    for h in handles:
        u, m = n.nvmlDeviceGetUtilizationRates(h), n.nvmlDeviceGetMemoryInfo(h)
        power, heat = n.nvmlDeviceGetPowerUsage(h), n.nvmlDeviceGetTemperature(h, 0)
        print(time.time(), u.gpu, u.memory, m.used, power, heat, n.nvmlDeviceGetClockInfo(h, 1), flush=True)
    due += 1.0
    time.sleep(max(0.0, due - time.monotonic()))
"""
NVITOP = """
import time
from nvitop import Device, ResourceMetricCollector
collector = ResourceMetricCollector(devices=Device.all(), interval=1.0)
collector.daemonize(on_collect=lambda metrics: print(metrics, flush=True) or True, interval=1.0, tag="x")
time.sleep(1e6)
"""


@dataclass(frozen=True)
class Recorder:
    """One recorder: its command, and what it writes; of our own the run folder, in which that is counted."""

    name: str
    command: list[str]
    quantities: int = 0
    readings_per_s: float = 0
    folder: Path | None = None


def recorders(folder: Path) -> list[Recorder]:
    python = sys.executable
    return [
        _ours(folder / "1hz", "gpu-report, 1 Hz"),
        _ours(folder / "detail", "gpu-report --detail, 1 Hz", "--detail"),
        _ours(folder / "10hz", "gpu-report, 10 Hz", "--interval", "0.1"),
        Recorder(
            "nvidia-smi --query-gpu, 1 Hz", ["nvidia-smi", f"--query-gpu={SMI_FIELDS}", "--format=csv", "-l", "1"], 6, 6
        ),
        Recorder("nvidia-smi dmon, 1 Hz", ["nvidia-smi", "dmon", "-s", "pucvmet", "-d", "1"], 20, 20),
        Recorder("gpustat -i 1", [python, "-m", "gpustat", "-i", "1", "--no-header"], 6, 6),
        Recorder("nvitop collector, 1 Hz", [python, "-c", NVITOP], 12, 12),
        Recorder("bare pynvml loop, 1 Hz", [python, "-c", BARE_LOOP], 6, 6),
    ]


def _ours(folder: Path, name: str, *options: str) -> Recorder:
    command = [sys.executable, "-m", "gpu_report", "record", "--output", str(folder), *options]
    return Recorder(name, command, folder=folder)


def counted(folder: Path, gpus: int = 1) -> tuple[int, float]:
    """Return how many quantities of a GPU a run folder holds, and how many readings a second and GPU."""
    quantities, readings, seconds = set(), 0, 1.0
    for name in ("samples.csv", "ring.csv"):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        cells = [(name, key) for row in rows for key, value in row.items() if key not in KEYS and value]
        quantities |= set(cells)
        readings += len(cells)
        if name == "samples.csv" and len(rows) > 1:
            seconds = float(rows[-1]["mono_s"]) - float(rows[0]["mono_s"])
            gpus = len({row["gpu"] for row in rows})
    return len(quantities), readings / seconds / gpus


def measure(seconds: float, folder: Path) -> list[dict[str, object]]:
    running = []
    for recorder in recorders(folder):
        out = (folder / f"{recorder.name.replace(' ', '_').replace(',', '')}.out").open("wb")
        running.append(
            (
                recorder,
                subprocess.Popen(
                    recorder.command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "TERM": "xterm"}
                ),
            )
        )
    time.sleep(SETTLE_S)
    before = {process.pid: cpu_s(process.pid) for _, process in running}
    began = time.monotonic()
    time.sleep(seconds)
    elapsed = time.monotonic() - began
    rows = [row(recorder, process, before[process.pid], elapsed) for recorder, process in running]
    for _, process in running:
        process.terminate()
    for _, process in running:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
    for (recorder, _), line in zip(running, rows, strict=True):
        if recorder.folder is not None:
            line["quantities"], line["readings_per_s"] = counted(recorder.folder)
    return rows


def row(
    recorder: Recorder, process: subprocess.Popen[bytes], before_s: float | None, elapsed_s: float
) -> dict[str, object]:
    after_s = cpu_s(process.pid)
    alive = before_s is not None and after_s is not None and process.poll() is None
    return {
        "recorder": recorder.name,
        "cpu_pct": round(100 * (after_s - before_s) / elapsed_s, 3) if alive else None,
        "peak_mib": peak_mib(process.pid),
        "quantities": recorder.quantities,
        "readings_per_s": recorder.readings_per_s,
    }


def cpu_s(pid: int) -> float | None:
    """CPU seconds of a process; schedstat counts nanoseconds where jiffies of 10 ms would hide a light recorder."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def peak_mib(pid: int) -> float | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((round(int(line.split()[1]) / 1024, 1) for line in lines if line.startswith("VmHWM")), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(options.seconds, Path(folder))
    print("| recorder | CPU, % of a core | peak memory, MiB | quantities | readings a second |\n|---|---|---|---|---|")
    for r in rows:
        print(f"| {r['recorder']} | {r['cpu_pct']} | {r['peak_mib']} | {r['quantities']} | {r['readings_per_s']:.0f} |")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
