"""What was done to a recorded run and when the GPU felt it: labels.json from the injector's log and a 10 Hz recording.

    python benchmarks/labels.py RUN TRUTH.json RECORDING.csv [--table] > RUN/labels.json

RUN is the run folder. TRUTH.json is what the injector wrote: `faults` and `outer` (kind, start and end of the command
in UTC wall seconds), `events` (the user's own callbacks: wall seconds, name, epoch counted from 0) and `error`; where
the script let the error end it, when it was `raised`; and by hand `set` and `standing` (kind, cause and GPU of how the
training was set up, where by the recording the GPU was busy for under 40 % of all epochs but the first, or where the
same work set up otherwise took about half the time).
RECORDING.csv is an independent recording of the same GPUs, ten times a second. Times of labels.json are seconds from
the start of the run as `load_run` has it; epochs count from 1. With --table readings by the second around each fault
are printed instead, to check the effects by eye.

Work is tensor activity: it falls with what the training does, also where a rank spins at 100 % utilisation. It is taken
as a mean of one second around each reading, so that a step crosses the middle where it happened, and rests between
batches vanish. A fault is felt in the longest stretch below `LOW` of what was usual before it; another process in the
longest one above `HIGH` of it; an end, from the last work on.
"""

import argparse
import csv
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from gpu_report.load import load_run

# Kind of fault: the cause that a perfect report would name, None where the training has nothing to show.
CAUSES = {
    "stall": "input-stalled",
    "storage": "input-storage",
    "cpu": "input-cpu",
    "stop": "trainer-blocked",
    "sigstop": "trainer-blocked",
    "hog": "other-process",
    "hog1": "other-process",
    "leak": "memory-growth",
    "epoch-leak": "memory-growth",
    "host-leak": None,
    "stop-rank0": "waiting-for-peer",
    "stop-rank1": "waiting-for-peer",
    "oom": "run-ended",
    "oom-kill": "run-ended",
    "kill": "run-ended",
    "sigterm": "run-ended",
    "reaped": None,
    "xid": None,
}
# Memory, of the GPU or the host, grows beside the work; the Xid and the reaped memory are another process's.
UNFELT = {"leak", "epoch-leak", "host-leak", "reaped", "xid"}
FELT_ON = {"hog1": 1}  # the GPU's index where it is not the run's only one
BEFORE_S = 15.0  # how long before a command its usual work is taken: over an epoch, mostly
LATE_S = 10.0  # an effect may begin this long after the command: prefetched batches are used up first
HALF_S = 0.5  # half of the second that a mean is taken over
JOIN_S = 1.0  # two stretches this near are one, while a command lasts: a burst of work after a batch that came late
NEXT_S = 0.25  # likewise once it is over, when what comes next is the run's own: readings 0.1 s apart, give or take
LOW = 0.6  # of the usual work: all cores taken leave 0.3 to 0.55 of it
ENDED = 0.1  # of the usual work: less is none
HIGH = 2.0  # of the usual work: a loop of large matrices has over 4 times the training's tensor activity
TAKEN_MIB = 4096  # memory that grows by this within a second is the injected exhaustion
SHOWN = ("util", "sm_active", "tensor", "power_w", "cpu_pct", "mem_used_mib")


class Reading(NamedTuple):
    """One row of the 10 Hz recording: seconds from the run's start, work (mean of 1 s around) and memory."""

    t_s: float
    work: float
    memory_mib: float
    has_processes: bool


Span = tuple[float, float]


def readings(path: Path, gpu: int, start_wall_s: float) -> list[Reading]:
    """Return a GPU's readings, their work smoothed."""
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["gpu"]) == gpu]
    raw = [(float(row["wall"]) - start_wall_s, float(row["tensor"] or "nan"), row) for row in rows]
    return [
        Reading(t_s, around(raw, n), float(row["mem_used_mib"]), bool(row["procs"]))
        for n, (t_s, _, row) in enumerate(raw)
    ]


def around(raw: Sequence[tuple[float, float, dict]], at: int) -> float:
    """Return the mean work of the second around a reading; readings come ten times a second."""
    t_s = raw[at][0]
    near = [w for t, w, _ in raw[max(0, at - 10) : at + 11] if abs(t - t_s) <= HALF_S and not math.isnan(w)]
    return statistics.fmean(near) if near else math.nan


def usual(found: Sequence[Reading], before_t_s: float) -> float:
    """Return the work of full training before a moment: the ninth decile, as validations lie between."""
    return statistics.quantiles((r.work for r in found if before_t_s - BEFORE_S <= r.t_s < before_t_s), n=10)[-1]


def longest(found: Sequence[Reading], command: Span, felt: Callable[[float], bool]) -> Span | None:
    """Return the longest stretch of felt work that begins with a command or soon after, None where there is none."""
    stretches: list[Span] = []
    for reading in (r for r in found if r.t_s >= command[0] and felt(r.work)):
        join_s = JOIN_S if reading.t_s <= command[1] else NEXT_S
        if stretches and reading.t_s - stretches[-1][1] <= join_s:
            stretches[-1] = (stretches[-1][0], reading.t_s)
        elif reading.t_s <= command[1] + LATE_S:
            stretches.append((reading.t_s, reading.t_s))
    return max(stretches, key=lambda span: span[1] - span[0], default=None)


def effect(kind: str, command: Span, found: Sequence[Reading], end_t_s: float) -> Span | None:
    """Return when the GPU felt a fault, None where it did not."""
    if kind in UNFELT:
        return None
    before = usual(found, command[0])
    if CAUSES[kind] == "run-ended":
        last = max(command[0], *(r.t_s for r in found if r.work > before * ENDED))
        return min(last, end_t_s), end_t_s  # a mean over half a second trails the end
    if CAUSES[kind] == "other-process":
        return longest(found, command, lambda work: work > before * HIGH)
    return longest(found, command, lambda work: work < before * LOW)


def cut(felt: Span | None, command: Span, epoch_ends: Sequence[float]) -> Span | None:
    """Return an effect without the validation that it runs into: the first takes seconds by itself."""
    if felt is None:
        return None
    return felt[0], min([felt[1], *(t_s for t_s in epoch_ends if command[1] <= t_s and felt[0] < t_s)])


def exhaustion(found: Sequence[Reading]) -> Span:
    """Return from when memory was taken to when the process that took it was gone."""
    pairs = zip(found, found[10:], strict=False)
    grown = [new.t_s for old, new in pairs if old.has_processes and new.memory_mib - old.memory_mib > TAKEN_MIB]
    jumps = [t_s for before, t_s in zip([-math.inf, *grown], grown, strict=False) if t_s - before > JOIN_S]
    taken = jumps[-1]  # those before it are the model's own first batches
    return taken, gone(found, taken)


def gone(found: Sequence[Reading], from_t_s: float) -> float:
    """Return when the training's process had left the GPU."""
    return next((r.t_s for r in found if r.t_s > from_t_s and not r.has_processes), found[-1].t_s)


def commands(truth: dict, start_wall_s: float, found: Sequence[Reading]) -> list[tuple[str, Span]]:
    """Return kind and time of each fault.

    An exhausted memory is told by when its error was raised, else, where the script caught it, by the memory itself.
    """
    logged = [*truth["faults"], *truth.get("outer", [])]
    spans = [(f["kind"], (f["start"] - start_wall_s, f["end"] - start_wall_s)) for f in logged]
    if "OutOfMemoryError" in (truth.get("error") or ""):
        raised = truth.get("raised")
        at_t_s = None if raised is None else raised - start_wall_s
        spans.append(("oom", exhaustion(found) if at_t_s is None else (at_t_s, gone(found, at_t_s))))
    return sorted(spans, key=lambda one: one[1])


def ending(run: dict, truth: dict) -> str:
    """Return how the training ended: a signal, an exception's name, before its last epoch, or as it should."""
    error = truth.get("error") or ""
    if run["exit_signal"] or error:
        return run["exit_signal"] or ("OutOfMemoryError" if "OutOfMemoryError" in error else "completed")
    trained = sum(name == "on_train_epoch_end" for _, name, _ in truth["events"])
    return "early stop" if 0 < trained < truth["kwargs"]["epochs"] else "completed"


def rounded(span: Span | None) -> list[float] | None:
    """Return a span as the file has it, to 10 ms: the recording has one reading each 100 ms."""
    return None if span is None else [round(t_s, 2) for t_s in span]


def labels(folder: Path, truth: dict, recording: Path) -> dict:
    """Return what labels.json holds."""
    run = json.loads((folder / "run.json").read_text())
    start_wall_s = load_run(folder).start_wall_s  # the first tick, which all of a run's times are counted from
    end_t_s = run["end"]["wall_s"] - start_wall_s
    of = {gpu["index"]: readings(recording, gpu["index"], start_wall_s) for gpu in run["gpus"]}
    faults = []
    epoch_ends = [t - start_wall_s for t, name, _ in truth["events"] if name == "on_train_epoch_end"]
    for kind, command in commands(truth, start_wall_s, of[0]):
        felt = cut(effect(kind, command, of[FELT_ON.get(kind, 0)], end_t_s), command, epoch_ends)
        gpu = FELT_ON.get(kind, 0 if len(of) == 1 else None)
        fault = {"kind": kind, "cause": CAUSES[kind], "gpu": gpu}
        faults.append({**fault, "command": rounded(command), "effect": rounded(felt)})
    trained = [t - start_wall_s for t, name, _ in truth["events"] if name.startswith("on_train_epoch")]
    for one in truth.get("standing", []):
        spans = {"command": rounded((0.0, end_t_s)), "effect": rounded((trained[0], trained[-1]))}
        faults.append({**one, "standing": True, **spans})
    events = [
        [round(wall_s - start_wall_s, 3), name, None if epoch is None else epoch + 1]
        for wall_s, name, epoch in truth["events"]
    ]
    of_set = {"set": truth["set"]} if "set" in truth else {}
    return {**of_set, "ended": ending(run, truth), "faults": faults, "events": events}


def table(recording: Path, gpu: int, span: Span, start_wall_s: float) -> str:
    """Return means by the second around a span."""
    seconds: dict[int, list[dict[str, str]]] = defaultdict(list)
    with recording.open(newline="") as file:
        for row in csv.DictReader(file):
            t_s = float(row["wall"]) - start_wall_s
            if int(row["gpu"]) == gpu and span[0] - 5 <= t_s <= span[1] + LATE_S:
                seconds[math.floor(t_s)].append(row)
    lines = ["        " + " ".join(f"{name:>12}" for name in SHOWN)]
    for second, rows in sorted(seconds.items()):
        means = (statistics.fmean(float(row[name] or "nan") for row in rows) for name in SHOWN)
        lines.append(f"{second:8d}" + " ".join(f"{mean:12.1f}" for mean in means))
    return "\n".join(lines)


def laid_out(found: dict) -> str:
    """Return the file's text: one fault and one event a line."""
    faults, events = (",\n  ".join(json.dumps(one) for one in found[key]) for key in ("faults", "events"))
    head = "".join(f"{json.dumps(key)}: {json.dumps(found[key])},\n " for key in ("set", "ended") if key in found)
    return f'{{{head}"faults": [{faults}],\n "events": [{events}]}}\n'


def main() -> None:
    """Print labels.json, or the readings around each of its faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("truth", type=Path)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    found = labels(options.run, json.loads(options.truth.read_text()), options.recording)
    if not options.table:
        print(laid_out(found), end="")
        return
    start_wall_s = load_run(options.run).start_wall_s
    for fault in found["faults"]:
        print(json.dumps(fault))
        for gpu in sorted({0, fault["gpu"] or 0}):
            print(f"GPU {gpu}\n{table(options.recording, gpu, fault['command'], start_wall_s)}")


if __name__ == "__main__":
    main()
