"""What an import of a day of eight GPUs costs, by format: CPU seconds of the whole command, Python's start included.

    python benchmarks/imports.py [FORMAT ...]

Readings are drawn, at the interval that each tool has by default or in its documentation.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

START, DAY, GPUS = 1_795_219_200, 86_400, 8
drawn = np.random.default_rng(0)
WANDB_NAMES = (
    *("gpu", "memory", "memoryAllocated", "memoryAllocatedBytes"),
    *("temp", "powerWatts", "powerPercent", "smClock"),
)


def stamps(interval_s: int) -> Iterator[tuple[int, time.struct_time]]:
    return ((at, time.gmtime(START + at)) for at in range(0, DAY, interval_s))


def nvidia_smi(path: Path) -> None:
    with path.open("w") as file:
        file.write("timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W], temperature.gpu\n")
        for at, clock in stamps(1):
            stamp = time.strftime("%Y/%m/%d %H:%M:%S", clock)
            for gpu in range(GPUS):
                file.write(f"{stamp}.{at % 1000:03d}, {gpu}, {at % 97} %, {40000 + at % 99} MiB, {at % 700}.12 W, 45\n")


def dmon(path: Path) -> None:
    names = (
        "Date Time gpu pwr gtemp mtemp sm mem enc dec jpg ofa mclk pclk pviol tviol fb bar1 ccpm "
        "sbecc dbecc pci rxpci txpci"
    )
    header = "#" + " ".join(f"{name:>6}" for name in names.split()) + "\n#YYYYMMDD HH:MM:SS Idx W\n"
    with path.open("w") as file:
        for at, clock in stamps(1):
            if at % 5 == 0:
                file.write(header)
            stamp = time.strftime(" %Y%m%d    %H:%M:%S", clock)
            for gpu in range(GPUS):
                rest = f"{at % 700:6} {45:6} {50:6} {at % 97:6} {at % 60:6} 0 0 0 0 3201 1980 0 0 {40000 + at % 99:6}"
                file.write(f"{stamp}       {gpu} {rest} 1 0 0 0 0 {at % 300:6} {at % 90:6}\n")


def pmon(path: Path) -> None:
    header = "#Date        Time         gpu         pid   type     sm    mem    enc    dec     fb   command\n"
    with path.open("w") as file:
        for at, clock in stamps(1):
            if at % 5 == 0:
                file.write(header)
            stamp = time.strftime(" %Y%m%d    %H:%M:%S", clock)
            for gpu in range(GPUS):
                file.write(
                    f"{stamp}       {gpu}      {700 + gpu}  C  {at % 97:5}  {at % 60:5}    -    -   40000   python3\n"
                )


def nvidia_smi_table(path: Path) -> None:
    rule = f"+{'-' * 41}+{'-' * 24}+{'-' * 22}+\n"
    head = "| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |\n"
    processes = f"| Processes:{' ' * 78}|\n|  GPU   GI   CI              PID   Type   Process name{' ' * 34}|\n"
    with path.open("w") as file:
        for at, clock in stamps(5):
            file.write(time.strftime("%a %b %d %H:%M:%S %Y\n", clock) + rule + head)
            for gpu in range(GPUS):
                bus = f"0000000{gpu}:01:00.0 Off |                    0"
                power, memory = f"{at % 700:>3}W /  700W", f"{40000 + at % 99:7}MiB / 143771MiB"
                file.write(f"|   {gpu}  NVIDIA H200                    On  |   {bus} |\n")
                file.write(f"| N/A   45C    P0             {power} | {memory} | {at % 97:6}%      Default |\n")
                file.write(rule)
            file.write(rule + processes)
            for gpu in range(GPUS):
                file.write(f"|    {gpu}   N/A  N/A            {4000 + gpu}      C   python3            39000MiB |\n")
            file.write(rule)


def gpustat(path: Path) -> None:
    with path.open("w") as file:
        for at, clock in stamps(5):
            gpus = [
                {
                    "index": gpu,
                    "uuid": f"GPU-{gpu}",
                    "name": "NVIDIA H100",
                    "temperature.gpu": 45,
                    "fan.speed": None,
                    "utilization.gpu": at % 97,
                    "utilization.enc": 0,
                    "utilization.dec": 0,
                    "power.draw": at % 700,
                    "enforced.power.limit": 700,
                    "memory.used": 40000,
                    "memory.total": 81559,
                    "processes": [
                        {
                            "username": "me",
                            "command": "python",
                            "full_command": ["python", "train.py"],
                            "gpu_memory_usage": 40000,
                            "cpu_percent": 100.0,
                            "cpu_memory_usage": 9_000_000_000,
                            "pid": 700 + gpu,
                        }
                    ],
                }
                for gpu in range(GPUS)
            ]
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.123456", clock)
            json.dump({"hostname": "node1", "query_time": stamp, "gpus": gpus}, file, indent=4)
            file.write("\n")


def nvitop(path: Path) -> None:
    names = ("gpu_utilization (%)", "memory_utilization (%)", "memory_used (MiB)", "memory_free (MiB)")
    more = ("memory_percent (%)", "fan_speed (%)", "temperature (C)", "power_usage (W)", "power_limit (W)")
    kinds = ("mean", "min", "max", "last")
    header = [f"t/cuda:{g} (gpu:{g})/{n}/{k}" for g in range(GPUS) for n in (*names, *more) for k in kinds]
    with path.open("w") as file:
        file.write(",".join([*header, "t/duration (s)", "t/timestamp"]) + "\n")
        for at, _ in stamps(5):
            cells = ",".join(f"{value:.6f}" for value in drawn.random(len(header)) * 90)
            file.write(f"{cells},{at + 0.5},{START + at}\n")


def prometheus(path: Path) -> None:
    metrics = ("GPU_UTIL", "FB_USED", "POWER_USAGE", "TOTAL_ENERGY_CONSUMPTION", "GPU_TEMP", "SM_CLOCK", "MEM_CLOCK")
    result = [
        {
            "metric": {"__name__": f"DCGM_FI_DEV_{name}", "gpu": str(gpu), "UUID": f"GPU-{gpu}", "Hostname": "node1"},
            "values": [[START + at, str(at % 97)] for at, _ in stamps(15)],
        }
        for name in (*metrics, "MEM_COPY_UTIL")
        for gpu in range(GPUS)
    ]
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))


def wandb(path: Path) -> None:
    with path.open("w") as file:
        for at, _ in stamps(15):
            row = {f"system.gpu.{gpu}.{name}": at % 97 for gpu in range(GPUS) for name in WANDB_NAMES}
            file.write(json.dumps({"_timestamp": START + at, "_runtime": at, **row}) + "\n")


def wandb_file(path: Path) -> None:
    from gpu_report.tfevents.wire import bytes_field, int_field  # noqa: PLC0415

    data = bytearray(b":W&B\xe1\xbe\x00")
    for at, _ in stamps(15):
        items = [(f"gpu.{gpu}.{name}".encode(), b"%d" % (at % 97)) for gpu in range(GPUS) for name in WANDB_NAMES]
        body = b"".join(bytes_field(3, bytes_field(1, key) + bytes_field(16, value)) for key, value in items)
        record = bytes_field(7, bytes_field(2, int_field(1, START + at)) + body)
        first = True
        while record or first:
            left = 32_768 - len(data) % 32_768
            if left < 7:
                data += bytes(left)
                continue
            part, record = record[: left - 7], record[left - 7 :]
            kind = (1 if first else 4) if not record else (2 if first else 3)
            data += bytes(4) + len(part).to_bytes(2, "little") + bytes([kind]) + part
            first = False
    path.write_bytes(bytes(data))


def mlflow(path: Path) -> None:
    folder = path / "run" / "metrics" / "system"
    folder.mkdir(parents=True)
    for gpu in range(GPUS):
        for name in (
            "utilization_percentage",
            "memory_usage_megabytes",
            "memory_usage_percentage",
            "power_usage_watts",
        ):
            lines = [f"{(START + at) * 1000} {at % 97} {at // 10}" for at, _ in stamps(10)]
            (folder / f"gpu_{gpu}_{name}").write_text("\n".join(lines))


def clearml(path: Path) -> None:
    x = [(START + at) * 1000 for at, _ in stamps(30)]
    series = {
        f"gpu_{gpu}_{name}": {"name": name, "x": x, "y": [at % 97 for at in range(len(x))]}
        for gpu in range(GPUS)
        for name in ("utilization", "temperature", "mem_used_gb", "power_draw")
    }
    path.write_text(json.dumps({":monitor:gpu": series}))


WRITERS = {
    "nvidia-smi, 1 s": nvidia_smi,
    "dmon, 1 s": dmon,
    "pmon, 1 s": pmon,
    "table of nvidia-smi, 5 s": nvidia_smi_table,
    "gpustat, 5 s": gpustat,
    "nvitop, 5 s": nvitop,
    "prometheus, 15 s": prometheus,
    "wandb (history), 15 s": wandb,
    "wandb (file), 15 s": wandb_file,
    "mlflow, 10 s": mlflow,
    "clearml, 30 s": clearml,
}


def main() -> None:
    wanted = sys.argv[1:]
    for name, write in WRITERS.items():
        if wanted and not any(name.startswith(each) for each in wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log"
            write(path)
            size = sum(file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file())
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [sys.executable, "-m", "gpu_report", "import", str(path), "--output", f"{folder}/run"]
            subprocess.run(command, check=True, capture_output=True, env={**os.environ, "TZ": "UTC"})
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            rows = sum(1 for _ in (Path(folder) / "run" / "samples.csv").open()) - 1
            memory = f"{after.ru_maxrss / 1024:6.0f} MiB at most so far"
            print(f"{name:24} {size / 1e6:6.0f} MB  {rows:8,} rows  {cpu_s:5.1f} s CPU  {memory}")


if __name__ == "__main__":
    main()
