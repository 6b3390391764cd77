"""Faults that nobody can inject, played on the fake NVML library of tests/fakes and recorded by our own recorder.

    python benchmarks/play.py fake-power-cap|fake-thermal|fake-lost-gpu OUTPUT      (needs a C compiler; no GPU)

The readings are those of a real training (sample_runs/m-healthy), changed only in what the fault changes; where the
fault slows the training down, they and its files come so much later. `gpu-report record` runs in real time, its command
a stand-in for the training that writes args.yaml, results.csv and last.pt when the real one did. OUTPUT becomes a run
folder with labels.json (`played`: true; the rest as benchmarks/labels.py). host.csv is left out: it would tell of the
machine that this was played on. A played run shows what the tool makes of a fault as NVML's documentation has it,
never how a board behaves.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpu_report.load import load_run

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "sample_runs" / "m-healthy"
FAKE = ROOT / "tests" / "fakes" / "fake_nvml.c"
HOME, RUN = "/home/user/yolo", "runs/healthy-m"

STEP_S = 0.1  # of the script: half of the driver's own sampling period
RING_S = 16.0  # the fake is asked for readings up to 14 s old
AHEAD_S = 3.0  # how far ahead of time the script is written
WAITING_W = 118.0  # m-healthy with a process on the GPU that does nothing
WORKING_W = 250.0  # m-healthy draws 450 to 620 W at work, up to 235 in validation
CLOCK_STEP_MHZ = 15  # of an H200's SM clock
SW_POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL = 0x4, 0x8, 0x20, 0x40

# Columns of samples.csv and what the fake calls them. GPM columns are means since the row before.
KEYS = {
    "memory_util_pct": "memory_util",
    "memory_used_mib": "used_mib",
    "power_w": "power_w",
    "temperature_c": "temperature",
    "sm_clock_mhz": "sm_clock",
    "memory_clock_mhz": "memory_clock",
    "clock_event_reasons": "reasons",
    "memory_temperature_c": "memory_temperature",
}
GPM_KEYS = {
    "sm_active_pct": "sm_active",
    "sm_occupancy_pct": "sm_occupancy",
    "tensor_active_pct": "tensor",
    "dram_active_pct": "dram",
    "pcie_tx_mib_s": "pcie_tx",
    "pcie_rx_mib_s": "pcie_rx",
}
STAND_IN = '''"""Stands in for a training: writes what it wrote, when it did (benchmarks/play.py of gpu-report)."""
import json, sys, time
from pathlib import Path

began_s, plan = time.monotonic(), json.loads(Path(sys.argv[1]).read_text())
for at_s, path, text in plan["writes"]:
    time.sleep(max(0.0, began_s + at_s - time.monotonic()))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as file:
        file.write(text)
time.sleep(max(0.0, began_s + plan["ends_s"] - time.monotonic()))
sys.exit(plan["exit_code"])
'''

Floats = npt.NDArray[np.float64]
Values = dict[str, float]


@dataclass
class Counters:
    """What the driver has counted so far: joules, and seconds held down."""

    energy_j: float
    power_cap_s: float
    sw_thermal_s: float = 0.0
    hw_thermal_s: float = 0.0

    def as_lines(self) -> Values:
        """Return them as the fake has them."""
        return {
            "energy_j": round(self.energy_j, 1),
            "power_cap_ns": round(self.power_cap_s * 1e9),
            "sw_thermal_ns": round(self.sw_thermal_s * 1e9),
            "hw_thermal_ns": round(self.hw_thermal_s * 1e9),
        }


@dataclass(frozen=True)
class Play:
    """One fault: its label, its command and its effect (seconds of the script), and what it changes.

    `pace(t_s)` is how fast the training goes on, 1 undisturbed. `change(t_s, values, counters)` changes the readings of
    a moment in place, and what is counted in the STEP_S after it. `lines` are more lines of the script; `kernel` are
    (second, line) of the kernel log. From `stops_s` on the training writes nothing, and it ends at `ends_s` with
    `exit_code`.
    """

    kind: str
    cause: str
    command: tuple[float, float]
    effect: tuple[float, float]
    pace: Callable[[float], float] = lambda _: 1.0
    change: Callable[[float, Values, Counters], None] = lambda *_: None
    lines: tuple[str, ...] = ()
    kernel: tuple[tuple[float, str], ...] = ()
    stops_s: float = np.inf
    ends_s: float = np.inf
    exit_code: int = 0


# --- the three faults -----------------------------------------------------------------------------------------

CAP_FROM_S, CAP_TO_S = 35.0, 75.0
HEAT_FROM_S, SW_FROM_S, HW_FROM_S, HEAT_TO_S = 33.0, 41.0, 48.0, 83.0
LOST_S, GONE_S = 60.0, 72.0
BUS = "0000:00:06"


def _stepped(mhz: float) -> float:
    return round(mhz / CLOCK_STEP_MHZ) * CLOCK_STEP_MHZ


def _less(power_w: float, share: float) -> float:
    """Return the power with a share of what it is over that of waiting."""
    return round(WAITING_W + share * (power_w - WAITING_W), 1) if power_w > WAITING_W else power_w


def capped(t_s: float, values: Values, counters: Counters) -> None:
    """Hold the clock 30 % down with the power at its limit of 700 W, while there is work."""
    if not CAP_FROM_S <= t_s < CAP_TO_S or values["power_w"] < WORKING_W:
        return
    values["sm_clock"] = _stepped(1380 + (values["power_w"] - 605))  # it hunts, as it does on a real board
    values["power_w"] = round(697.5 + (values["power_w"] - 605) / 20, 1)
    values["reasons"] = SW_POWER_CAP
    values["temperature"] += 7
    counters.power_cap_s += STEP_S


def heated(t_s: float, values: Values, counters: Counters) -> None:
    """Let it grow hot: the driver takes the clock back from 85 C on, the board halves it from 88 C on."""
    if t_s < HEAT_FROM_S:
        return
    values["temperature"] = temperature = _temperature(t_s, values["temperature"])
    values["memory_temperature"] = max(values["memory_temperature"], temperature + 4)
    if HW_FROM_S <= t_s < HEAT_TO_S:
        values.update(sm_clock=_stepped(975 + 15 * (round(t_s) % 2)), reasons=HW_SLOWDOWN | HW_THERMAL)
        values["power_w"] = _less(values["power_w"], 0.46)
        values["util"] = round(0.77 * values["util"])  # a board that skips clock cycles
        counters.hw_thermal_s += STEP_S
    elif SW_FROM_S <= t_s < HW_FROM_S:
        values["sm_clock"] = _stepped(1980 - 60 * (t_s - SW_FROM_S + 1))
        values["power_w"] = _less(values["power_w"], 0.85)
        values["reasons"] = SW_THERMAL
        counters.sw_thermal_s += STEP_S


def _temperature(t_s: float, usual_c: float) -> float:
    """Return 85 C when the driver acts, 88 when the board does, up to 90 after, and cooling to what is usual."""
    if t_s >= HEAT_TO_S:
        return round(usual_c + (89 - usual_c) * float(np.exp((HEAT_TO_S - t_s) / 7)))
    climbed = np.interp(t_s, [HEAT_FROM_S, SW_FROM_S, HW_FROM_S, HW_FROM_S + 5], [usual_c, 85, 88, 90])
    return round(float(climbed)) - (round(t_s) % 3 == 0 and t_s > HW_FROM_S + 5)


def _heat_pace(t_s: float) -> float:
    return 0.55 if HW_FROM_S <= t_s < HEAT_TO_S else 0.9 if SW_FROM_S <= t_s < HW_FROM_S else 1.0


PLAYS = {
    "fake-power-cap": Play(
        kind="power-cap",
        cause="power-cap",
        command=(CAP_FROM_S, CAP_TO_S),
        effect=(CAP_FROM_S, CAP_TO_S),
        pace=lambda t_s: 0.74 if CAP_FROM_S <= t_s < CAP_TO_S else 1.0,
        change=capped,
    ),
    "fake-thermal": Play(
        kind="thermal",
        cause="thermal",
        command=(HEAT_FROM_S, HEAT_TO_S),
        effect=(SW_FROM_S, HEAT_TO_S),
        pace=_heat_pace,
        change=heated,
    ),
    "fake-lost-gpu": Play(
        kind="lost-gpu",
        cause="gpu-fault",
        command=(LOST_S, GONE_S),
        effect=(LOST_S, GONE_S),
        lines=(f"at={LOST_S} gpu0.error=15",),
        kernel=(
            (LOST_S, f"NVRM: Xid (PCI:{BUS}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
            (LOST_S, f"NVRM: GPU {BUS}.0: GPU has fallen off the bus."),
        ),
        stops_s=LOST_S,
        ends_s=GONE_S,
        exit_code=1,
    ),
}

# --- the script -------------------------------------------------------------------------------------------------


class Source:
    """The real run: its readings at any second of it, and what its training wrote."""

    def __init__(self, folder: Path) -> None:
        run = json.loads((folder / "run.json").read_text())
        self.zero_s, self.ends_s = run["start"]["mono_s"], run["end"]["mono_s"] - run["start"]["mono_s"]
        self.rows, self.ring = self._table(folder / "samples.csv"), self._table(folder / "ring.csv")
        self.args = (folder / "yolo" / "args.yaml").read_text()
        header, *self.results = (folder / "yolo" / "results.csv").read_text().splitlines(keepends=True)
        self.header = header
        labels = json.loads((folder / "labels.json").read_text())["events"]
        self.begins_s = next(t_s for t_s, name, _ in labels if name == "on_train_start")
        self.args_s = next(t_s for t_s, name, _ in labels if name == "on_pretrain_routine_start")
        self.saves_s = [t_s for t_s, name, _ in labels if name == "on_model_save"]
        events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        self.row_times_s = [event["mono_s"] - self.zero_s for event in events if event["kind"] == "epoch"]

    def at(self, s: float) -> Values:
        """Return what the fake is to answer at a second of the real run; utilisation as the driver's own readings."""
        values = {key: self._nearest(self.rows, name, s) for name, key in KEYS.items()}
        values |= {key: self._next(self.rows, name, s) for name, key in GPM_KEYS.items()}
        return {**values, "util": self._latest(self.ring, "gpu_util_pct", s)}

    def counted(self, name: str, s: float) -> float:
        """Return a counter between its readings."""
        return float(np.interp(s, *self._known(self.rows, name)))

    def _table(self, path: Path) -> Mapping[str, Floats]:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        table = {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]}
        return {**table, "s": table["mono_s"] - self.zero_s}

    @staticmethod
    def _known(table: Mapping[str, Floats], name: str) -> tuple[Floats, Floats]:
        known = np.isfinite(table[name])
        return table["s"][known], table[name][known]

    def _latest(self, table: Mapping[str, Floats], name: str, s: float) -> float:
        at, values = self._known(table, name)
        return float(values[max(int(np.searchsorted(at, s, side="right")) - 1, 0)])

    def _nearest(self, table: Mapping[str, Floats], name: str, s: float) -> float:
        at, values = self._known(table, name)
        return float(values[int(np.searchsorted((at[1:] + at[:-1]) / 2, s))])

    def _next(self, table: Mapping[str, Floats], name: str, s: float) -> float:
        at, values = self._known(table, name)
        return float(values[min(int(np.searchsorted(at, s)), len(values) - 1)])


@dataclass
class Script:
    """What the fake answers and what the training writes, by second of the script."""

    play: Play
    changes: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    writes: list[tuple[float, str, str]] = field(default_factory=list)
    ends_s: float = 0.0

    def lines(self, now_s: float, pid: int | None) -> Iterator[str]:
        """Yield the state for a moment: what was RING_S ago, and what changed and will change around it."""
        for key, changes in self.changes.items():
            known = [value for t_s, value in changes if t_s <= now_s - RING_S]
            yield f"gpu0.{key}={known[-1] if known else changes[0][1]:.15g}"
            for t_s, value in changes:
                if now_s - RING_S < t_s <= now_s + AHEAD_S:
                    yield f"at={t_s:.2f} gpu0.{key}={value:.15g}"
        used = [value for t_s, value in self.changes["used_mib"] if t_s <= now_s]
        if pid is not None and used and used[-1] > 0:
            busy = [value for t_s, value in self.changes["util"] if t_s <= now_s]
            yield f"gpu0.procs={pid}:{used[-1]:.0f}"
            yield f"gpu0.proc_util={pid}:{0.8 * busy[-1]:.0f}"
        yield from self.play.lines


def script_of(play: Play, source: Source) -> Script:
    """Return the script of a fault: the real run at the fault's pace, with its changes."""
    script = Script(play)
    at_s, of_s = [0.0], [0.0]
    counters = Counters(source.counted("energy_j", 0.0), source.counted("power_cap_s", 0.0))
    while of_s[-1] < source.ends_s and at_s[-1] < play.ends_s:
        t_s, s = at_s[-1], of_s[-1]
        values = source.at(s)
        held_s = counters.power_cap_s
        play.change(t_s, values, counters)
        at_s.append(t_s + STEP_S)
        of_s.append(s + STEP_S * play.pace(t_s))
        if counters.power_cap_s == held_s:  # as in the real run
            counters.power_cap_s += source.counted("power_cap_s", of_s[-1]) - source.counted("power_cap_s", s)
        counters.energy_j += values["power_w"] * STEP_S
        for key, value in (values | counters.as_lines()).items():
            known = script.changes.setdefault(key, [])
            if not known or known[-1][1] != value:
                known.append((t_s, value))
    script.ends_s = at_s[-1]
    script.writes = [w for w in _writes(source, np.array(at_s), np.array(of_s)) if w[0] < play.stops_s]
    return script


def _writes(source: Source, at_s: Floats, of_s: Floats) -> list[tuple[float, str, str]]:
    """Return (second of the script, file, text to append) of the training."""

    def when(s: float) -> float:
        return float(np.interp(s, of_s, at_s, right=np.inf))

    begins_s = when(source.begins_s)
    writes = [(when(source.args_s), f"{RUN}/args.yaml", source.args)]
    header = source.header
    for s, row in zip(source.row_times_s, source.results, strict=True):
        epoch, _, rest = row.split(",", 2)
        writes.append((when(s), f"{RUN}/results.csv", f"{header}{epoch},{when(s) - begins_s:.4f},{rest}"))
        header = ""
    writes += [(when(s), f"{RUN}/weights/last.pt", "played") for s in source.saves_s]
    return sorted(writes)


# --- playing ----------------------------------------------------------------------------------------------------


def compile_fake(folder: Path) -> Path:
    """Compile the fake library into a folder."""
    library = folder / "libnvidia-ml.so.1"
    options = ["-O2", "-shared", "-fPIC", f"-Wl,-soname,{library.name}"]
    subprocess.run(["cc", *options, "-o", library, FAKE, "-lm"], check=True)
    return library


def record(script: Script, home: Path, output: Path) -> int:
    """Play a script to our recorder, in real time; return its exit code, which is the training's."""
    library, state, log = compile_fake(home), home / "state.txt", home / "kernel.log"
    (home / "played_train.py").write_text(STAND_IN)
    plan = {"writes": script.writes, "ends_s": script.ends_s, "exit_code": script.play.exit_code}
    (home / "plan.json").write_text(json.dumps(plan))
    log.touch()
    env = {**os.environ, "FAKE_NVML_STATE": str(state), "LD_LIBRARY_PATH": str(library.parent)}
    env["PYTHONPATH"] = str(ROOT)
    words = ["record", "--output", str(output), "--kernel-log", str(log), "--no-inject", "--"]
    command = [sys.executable, "-m", "gpu_report", *words, "python3", "played_train.py", "plan.json"]
    began_s, pid, told = time.time(), None, 0
    _write(state, began_s, script.lines(0.0, None))
    with subprocess.Popen(command, env=env, cwd=home) as recorder:
        while recorder.poll() is None:
            if pid is None and (found := _started(output)) is not None:
                pid, began_s = found
            now_s = time.time() - began_s
            _write(state, began_s, script.lines(now_s, pid))
            for at_s, line in script.play.kernel[told:] if pid is not None else ():
                if at_s <= now_s:
                    with log.open("a") as file:
                        file.write(f"{line}\n")
                    told += 1
            time.sleep(0.1)
    return recorder.returncode


def _started(output: Path) -> tuple[int, float] | None:
    """Return the training's pid and when it was started, None before that."""
    path = output / "events.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    found = [event for event in map(json.loads, lines) if event["kind"] == "command_started"]
    return (found[0]["pid"], found[0]["wall_s"]) if found else None


def _write(state: Path, began_s: float, lines: Iterator[str]) -> None:
    beside = state.with_suffix(".part")
    beside.write_text("\n".join([f"start={began_s:.6f}", *lines]) + "\n")
    beside.replace(state)


def finish(play: Play, home: Path, output: Path) -> None:
    """Take this machine out of the run folder, and write its labels."""
    (output / "host.csv").unlink(missing_ok=True)
    for path in (output / "run.json", output / "events.jsonl"):
        path.write_text(path.read_text().replace(str(home), HOME))
    run = json.loads((output / "run.json").read_text())
    run["host"]["name"] = "played"
    (output / "run.json").write_text(json.dumps(run, indent=1) + "\n")
    started = _started(output)
    if started is None:
        raise SystemExit(f"{output}: the command was never started")
    off_s = started[1] - load_run(output).start_wall_s
    fault = {
        "kind": play.kind,
        "cause": play.cause,
        "gpu": 0,
        "command": [round(t_s + off_s, 2) for t_s in play.command],
        "effect": [round(t_s + off_s, 2) for t_s in play.effect],
    }
    ended = "completed" if play.exit_code == 0 else "gpu-lost"
    text = f' "faults": [{json.dumps(fault)}],\n "events": [],\n "played": true}}\n'
    (output / "labels.json").write_text(f'{{"ended": {json.dumps(ended)},\n{text}')


def main() -> None:
    """Play one of the faults into a run folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=PLAYS)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    play, output = PLAYS[options.name], options.output.absolute()
    if output.exists():
        raise SystemExit(f"{output} exists: name another folder, or remove it")
    home = Path(tempfile.mkdtemp(prefix="play-"))
    try:
        code = record(script_of(play, Source(SOURCE)), home, output)
        if code != play.exit_code:
            raise SystemExit(f"the recorder ended with {code}, not with {play.exit_code}")
        finish(play, home, output)
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
