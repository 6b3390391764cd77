"""What notes on lines of code add to a day: bytes of the run folder and the page, CPU and memory of each step.

    python benchmarks/noted_day.py --work DIR [--hours 24] [--workers 8] [--repeats 3]

The day is one GPU's by benchmarks/tiles.py, without notes and with those of a main process and its workers. Each note
is drawn from those of real trainings in the same phase, so that they compress no better than real ones, and all are
written by the code that notes. The main process has one every 50 ms. Each worker has one every 200 ms, and is always at
work: a training that waits for its data has the most of them. Runs stay in DIR.
A fresh process makes the report. The CPU seconds of a step are its own (the least of the repeats), the memory is the
most that was resident until the step was done.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from tiles import START_MONO_S, START_WALL_S, Shape, Tiling, make_run

from gpu_report import schema
from gpu_report.analyse.signals.code.stack_kinds import of_worker_alone
from gpu_report.inside.on_path.gpu_report_inside import notes
from gpu_report.inside.on_path.gpu_report_inside.stacks import BLOCK_S, PERIOD_S, PROBE_EVERY, WORKER_PERIOD_S
from gpu_report.load import load_run
from gpu_report.model import ProcessStacks, Run, Stack

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT / "tests" / "data" / "line_faults_h200.tar.xz"
TRAINS, VALIDATES = "healthy", "val-files"  # of these recordings; the first has no validation
EPOCH_S = 300.0
MAIN_PID = 4000  # that of benchmarks/tiles.py
LOOKED_EVERY = 20  # notes of the main process: its other threads are looked at once a second
RAN_SHARE = 0.6  # of the looks at the CPU
WAYS = {"bare": "without notes", "noted": "with notes"}
STEPS = ("load", "analyse", "render")
MEGA = 1e6

Pool = Sequence[Stack]


# --- the day ------------------------------------------------------------------------------------------------------


def make_days(work: Path, hours: float, workers: int) -> None:
    """Write the run folder without notes, and the one with them."""
    shape = Shape(hours, 1, ring=True, epoch_s=EPOCH_S)
    make_run(shape, work / "bare")
    shutil.copytree(work / "bare", work / "noted")
    with tarfile.open(RECORDINGS) as archive:
        archive.extractall(work / "recordings", filter="data")
    trains, validates = (load_run(work / "recordings" / name) for name in (TRAINS, VALIDATES))
    at_work = [s for each in trains.stacks if each.is_worker for s in _stood(each) if of_worker_alone(s)]
    (work / "noted" / schema.STACKS_DIR).mkdir()
    moments = phase_of_each(Tiling(shape), PERIOD_S)
    _Process(work / "noted", "main", MAIN_PID).write(moments, _main_pools(trains, validates), trains.stacks[0])
    for number in range(workers):
        moments = np.zeros(int(Tiling(shape).end_s / WORKER_PERIOD_S), dtype=np.int64)
        _Process(work / "noted", f"worker {number}", MAIN_PID + 1 + number).write(moments, [at_work])


def phase_of_each(tiling: Tiling, period_s: float) -> np.ndarray:
    """Return for each moment whether it starts up or ends (0), trains (1) or validates (2)."""
    edges = [(0.0, 0)]
    for piece in tiling.epochs:
        edges += [(piece.start_s, 1), (piece.start_s + piece.train_s + piece.longer_s, 2)]
    edges.append((tiling.pieces[-1].start_s, 0))
    starts, phases = zip(*edges, strict=True)
    at = np.searchsorted(np.array(starts), period_s * np.arange(int(tiling.end_s / period_s)), side="right") - 1
    return np.array(phases)[at]


def _main_pools(trains: Run, validates: Run) -> list[Pool]:
    """Return the stacks of main processes while they start, train and validate."""
    training, validation = (
        [phase.span for phase in run.inside[0].phases if phase.name == name]
        for run, name in ((trains, "train"), (validates, "validation"))
    )
    starting = [(0.0, training[0][0])]
    main, other = trains.stacks[0], validates.stacks[0]
    return [_stood(main, starting), _stood(main, training), _stood(other, validation)]


def _stood(process: ProcessStacks, spans: Sequence[tuple[float, float]] = ((0.0, np.inf),)) -> Pool:
    """Return the stack of each note of a process in some spans."""
    inside = np.any([(process.start_s >= start) & (process.start_s < end) for start, end in spans], axis=0)
    return [process.stacks[number] for number in process.number[inside].tolist() if number]


class _Process:
    """One process that notes, at a pace of its own, as long as the run is."""

    def __init__(self, folder: Path, role: str, pid: int) -> None:
        self._path, self._role = folder / schema.STACKS_DIR / f"{pid}.jsonl", role
        self._is_main, self._parent = role == "main", None if role == "main" else MAIN_PID
        self._notes, self._random = notes.Notes(PERIOD_S), np.random.default_rng(pid)
        self._numbers: dict[Stack, int] = {}

    def write(self, phases: np.ndarray, pools: Sequence[Pool], threads_of: ProcessStacks | None = None) -> None:
        """Write a note for each moment, drawn from the pool of its phase."""
        period_s = PERIOD_S if self._is_main else WORKER_PERIOD_S
        drawn = self._random.random(len(phases))
        with self._path.open("wb") as file:
            for at, (phase, share) in enumerate(zip(phases.tolist(), drawn.tolist(), strict=True)):
                now_s = START_MONO_S + at * period_s
                notes.time = SimpleNamespace(time=lambda now_s=now_s: now_s - START_MONO_S + START_WALL_S)
                pool = pools[phase]
                self._notes.note(self._number(pool[int(share * len(pool))]), now_s)
                if self._is_main and at % PROBE_EVERY == 0:
                    self._notes.probed(now_s, ran=self._random.random() < RAN_SHARE)
                if threads_of is not None and at % LOOKED_EVERY == 0:
                    self._notes.threads(dict(self._threads(threads_of)), now_s)
                if self._notes.seconds(now_s) >= BLOCK_S:
                    file.write(self._notes.block(self._role, now_s, self._parent))
                    self._notes.end(now_s)
            file.write(self._notes.block(self._role, now_s, self._parent))

    def _threads(self, of: ProcessStacks) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield where each other thread is: in any stack that it was seen in."""
        for place, thread in enumerate(of.threads):
            number = int(self._random.choice(thread.number))
            yield place, (self._notes.known.thread(thread.name), self._number(of.stacks.get(number, ())))

    def _number(self, stack: Stack) -> int:
        """Return the number of a stack, under which all that lies outside of its innermost frame has one, too."""
        if stack not in self._numbers:
            known, number = self._notes.known, 0
            for frame in reversed(stack):
                told = known.files.find(frame.file), frame.line, frame.function
                line = known.frames.find((*told, frame.called) if frame.called else told)
                found = known.stacks.number((number, line))
                number = known._stack((number, line)) if found is None else found
            self._numbers[stack] = number
        return self._numbers[stack]


# --- what is measured ---------------------------------------------------------------------------------------------


def report(folder: Path) -> dict[str, float]:
    """Make a report in this process, and return what each step took."""
    from gpu_report.analyse import analyse  # noqa: PLC0415 - what a step imports is part of it
    from gpu_report.render import begin_blank_page, render_html  # noqa: PLC0415 - likewise

    blank = begin_blank_page()
    blank.result()
    found: dict[str, float] = {}
    run = _measured(found, "load", lambda: load_run(folder))
    analysis = _measured(found, "analyse", lambda: analyse(run))
    page = _measured(found, "render", lambda: render_html(analysis, blank=blank.result()))
    return {**found, "page": len(page.encode())}


def _measured(found: dict[str, float], step: str, act: Callable[[], Any]) -> Any:
    began_s = time.process_time()
    result = act()
    found[f"{step}_cpu_s"] = time.process_time() - began_s
    found[f"{step}_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGA
    return result


def least(folder: Path, repeats: int) -> dict[str, float]:
    """Return the least that each step took in fresh processes."""
    command = [sys.executable, __file__, "--report", str(folder)]
    each = [json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout) for _ in range(repeats)]
    return {name: min(found[name] for found in each) for name in each[0]}


def table(figures: dict[str, dict[str, float]], folder_bytes: dict[str, int]) -> Iterable[str]:
    """Yield the lines of a Markdown table."""
    yield "| run | folder MB | page MB | load s | analyse s | render s | MB: loaded | analysed | rendered |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for way, words in WAYS.items():
        found = figures[way]
        seconds = " | ".join(f"{found[f'{step}_cpu_s']:.2f}" for step in STEPS)
        memory = " | ".join(f"{found[f'{step}_mb']:.0f}" for step in STEPS)
        yield f"| {words} | {folder_bytes[way] / MEGA:.1f} | {found['page'] / MEGA:.2f} | {seconds} | {memory} |"


def main() -> None:
    """Make the days where they are missing, and print what their reports take."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.report:
        print(json.dumps(report(asked.report)))
        return
    if not (asked.work / "noted").exists():
        asked.work.mkdir(parents=True, exist_ok=True)
        make_days(asked.work, asked.hours, asked.workers)
    sizes = {way: sum(p.stat().st_size for p in (asked.work / way).rglob("*") if p.is_file()) for way in WAYS}
    print("\n".join(table({way: least(asked.work / way, asked.repeats) for way in WAYS}, sizes)))


if __name__ == "__main__":
    main()
