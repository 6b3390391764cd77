"""What recorders make of faults: ours, gpustat and nvitop on the same scripted driver, as a Markdown table.

    python benchmarks/faults.py [--only WORD]      (needs gpustat, nvitop and a C compiler; no GPU)

Each scenario of tests/support/scenarios.py is played once to each recorder at 1 Hz, all three at the same time, by the
fake library of tests/fakes. gpustat and nvitop are given the benefit of a loop that outlives a failed query. Verdicts:

    survives         what can be read is recorded throughout; what cannot be read is missing
    misreports       a number where there is none to be had (a zero, or the last one again)
    loses the rest   readings that could be had are missing too: another GPU's, or another quantity's
    loses all        every reading fails while the fault lasts, though there is something to read
    hangs, dies      nothing comes any more, not even an error; the process goes on, or ends
"""

import argparse
import csv
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "tests"))

from support.scenarios import POWER, SCENARIOS, UTILISATION, Scenario  # noqa: E402 - lies beside us, not installed

WARM_UP_S = 3.0  # second 0 of the script: every recorder is up by then
MARGIN_S = 1.6  # a reading every second, asked for up to half a second before it is printed
PATIENCE_S = 3.2  # readings missing for longer than this, though they could be had, are lost

GPUSTAT = """
import json, time
from gpustat import GPUStatCollection
while True:
    try:
        gpus = GPUStatCollection.new_query().jsonify()["gpus"]
        row = {gpu["index"]: [gpu["utilization.gpu"], gpu["power.draw"]] for gpu in gpus}
        print(json.dumps([time.time(), row]), flush=True)
    except Exception as error:
        print(json.dumps([time.time(), {}]), flush=True)
    time.sleep(1)
"""
NVITOP = """
import json, time
from nvitop import Device, ResourceMetricCollector

def row(metrics):
    found = {}
    for name, value in metrics.items():
        parts = name.split("/")
        if len(parts) == 4 and parts[3] == "last" and parts[1].startswith("gpu:"):
            place = {"gpu_utilization (%)": 0, "power_usage (W)": 1}.get(parts[2])
            if place is not None:
                found.setdefault(parts[1][4:], [None, None])[place] = value
    print(json.dumps([time.time(), found]), flush=True)
    return True

ResourceMetricCollector(devices=Device.all(), interval=0.5).daemonize(on_collect=row, interval=1.0, tag="x")
time.sleep(1e6)
"""

Rows = list[tuple[float, int, str, float | None]]  # second of the script, gpu, quantity, value


@dataclass
class Played:
    """What a recorder made of a scenario: its readings, when it was last heard of, its exit code (None: stopped)."""

    rows: Rows
    alive_s: float
    code: int | None


def play(scenario: Scenario, library: Path, folder: Path) -> dict[str, Played]:
    """Play a scenario to all recorders at once."""
    start = time.time() + WARM_UP_S
    state = folder / "state.txt"
    state.write_text("\n".join([f"start={start}", f"count={scenario.gpus}", *scenario.lines]) + "\n")
    env = {**os.environ, "FAKE_NVML_STATE": str(state), "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])}
    env = {**env, "LD_LIBRARY_PATH": str(library.parent)} if scenario.library else env
    seconds = WARM_UP_S + scenario.seconds
    ours = [sys.executable, "-m", "gpu_report", "record", "--duration", str(seconds), "--output", str(folder / "run")]
    commands = {
        "gpu-report": ours,
        "gpustat": [sys.executable, "-c", GPUSTAT],
        "nvitop": [sys.executable, "-c", NVITOP],
    }
    processes = {
        name: subprocess.Popen(
            command, env=env, text=True, cwd=folder, stdout=(folder / name).open("w"), stderr=subprocess.DEVNULL
        )
        for name, command in commands.items()
    }
    time.sleep(seconds)
    codes = {name: _stop(process, patient=name == "gpu-report") for name, process in processes.items()}
    return {
        "gpu-report": _from_csv(folder / "run/samples.csv", start, codes["gpu-report"]),
        **{name: _from_json(folder / name, start, codes[name]) for name in ("gpustat", "nvitop")},
    }


def _stop(process: subprocess.Popen[str], *, patient: bool) -> int | None:
    """Return the exit code of a process that ended by itself (ours does, a little after its duration)."""
    try:
        return process.wait(timeout=30 if patient else 0.1)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _from_csv(path: Path, start: float, code: int | None) -> Played:
    if not path.exists():
        return Played([], -math.inf, code)
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    columns = {UTILISATION: "gpu_util_pct", POWER: "power_w"}
    rows = [
        (float(row["wall_s"]) - start, int(row["gpu"]), quantity, float(row[column]) if row[column] else None)
        for row in found
        for quantity, column in columns.items()
    ]
    return Played(rows, max((t for t, *_ in rows), default=-math.inf), code)


def _from_json(path: Path, start: float, code: int | None) -> Played:
    rows: Rows = []
    alive_s = -math.inf
    for line in path.read_text().splitlines():
        if not line.startswith("["):
            continue
        wall_s, gpus = json.loads(line)
        alive_s = wall_s - start
        for gpu, values in gpus.items():
            for quantity, value in zip((UTILISATION, POWER), values, strict=True):
                number = None if value is None or not math.isfinite(float(value)) else float(value)
                rows.append((wall_s - start, int(gpu), quantity, number))
    return Played(rows, alive_s, code)


def verdict(scenario: Scenario, played: Played) -> str:
    """Return what the recorder made of the scenario, in the words of this module's docstring."""
    if not scenario.opens:
        return _without_nvml(played)
    dark = [value for t, gpu, q, value in played.rows if value is not None and _is_dark(scenario, t, gpu, q)]
    wrong = [] if scenario.late else dark  # a reading that comes late is a true one
    lost = [(gpu, q) for gpu in range(scenario.gpus) for q in (UTILISATION, POWER) if _lost(scenario, played, gpu, q)]
    total = scenario.gpus * 2 - (len(scenario.dark) if scenario.ends_s is None else 0)
    if played.alive_s < scenario.seconds - PATIENCE_S and played.rows:
        return "hangs" if played.code is None else "dies"
    if wrong:
        return f"misreports ({wrong[0]:g})"
    if lost and len(lost) == total:
        return "loses all"
    return f"loses the rest ({len(lost)} of {total})" if lost else "survives"


def _without_nvml(played: Played) -> str:
    if any(value is not None for *_, value in played.rows):
        return "misreports"
    if played.code:
        return "ends, with the reason"
    return "goes on, empty" if math.isfinite(played.alive_s) else "hangs"


def _is_dark(scenario: Scenario, t: float, gpu: int, quantity: str) -> bool:
    ends_s = math.inf if scenario.ends_s is None else scenario.ends_s
    return (gpu, quantity) in scenario.dark and scenario.begins_s + MARGIN_S < t < ends_s - MARGIN_S / 4


def _lost(scenario: Scenario, played: Played, gpu: int, quantity: str) -> bool:
    """Say whether readings that could be had are missing for longer than PATIENCE_S."""
    had = sorted(t for t, g, q, value in played.rows if (g, q) == (gpu, quantity) and value is not None)
    spans = [(0.0, scenario.seconds)]
    if (gpu, quantity) in scenario.dark:
        after = [] if scenario.ends_s is None else [(max(scenario.ends_s, scenario.seconds - 4), scenario.seconds)]
        spans = [(0.0, scenario.begins_s), *after] if scenario.begins_s > 0 else after
    return any(_longest_hole(had, *span) > PATIENCE_S for span in spans)


def _longest_hole(had: Sequence[float], start: float, end: float) -> float:
    inside = [start, *(t for t in had if start <= t <= end), end]
    return max(b - a for a, b in itertools.pairwise(inside))


def compile_fake(folder: Path) -> Path:
    """Compile the fake library."""
    library = folder / "libnvidia-ml.so.1"
    source = REPOSITORY / "tests/fakes/fake_nvml.c"
    options = ["-O2", "-shared", "-fPIC", f"-Wl,-soname,{library.name}"]
    subprocess.run(["cc", *options, "-o", str(library), str(source), "-lm"], check=True)
    return library


def table(results: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table of verdicts."""
    lines = ["| what happens | gpu-report | gpustat | nvitop |", "|---|---|---|---|"]
    lines += [f"| {name} | {row['gpu-report']} | {row['gpustat']} | {row['nvitop']} |" for name, row in results.items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="play the scenarios whose name holds this")
    only = parser.parse_args().only
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        library = compile_fake(Path(scratch))
        for number, scenario in enumerate(s for s in SCENARIOS if only in s.name):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            played = play(scenario, library, folder)
            results[scenario.name] = {name: verdict(scenario, what) for name, what in played.items()}
            print(scenario.name, results[scenario.name], file=sys.stderr, flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
