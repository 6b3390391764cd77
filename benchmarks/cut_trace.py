"""Cut a few steps out of a trace of PyTorch's profiler, so that it can be kept beside a test.

    python benchmarks/cut_trace.py TRACE.json.gz OUTPUT.json.gz [--first N] [--steps N]

What stays are the events that begin within the steps, the GPU work that they launched, and the head of the file. Names
of hosts and users go, as do flow arrows, operators that took next to no time, and what no reader of ours asks for. Long
names of kernels are cut, each so that it stays different from the others.
"""

import argparse
import gzip
import hashlib
import json
import re
from pathlib import Path

KEPT_KEYS = ("schemaVersion", "deviceProperties", "cupti_version", "cuda_runtime_version", "cuda_driver_version")
KEPT_TOO = ("baseTimeNanoseconds", "displayTimeUnit", "distributedInfo")
KEPT_ARGS = ("External id", "Sequence number", "correlation", "device", "stream", "bytes")
NUMBERS = ("External id", "correlation")  # count from 1 in a cut trace, which makes it a fifth smaller
# Calls that neither give the GPU work nor wait for it: a third of all.
IDLE_CALLS = re.compile(r"cuda(?:Get|Peek|Func|Device(?!Sync)|Occupancy|StreamIs|Pointer|EventQuery|EventRecord)")
SHORTEST_US = 2.5  # of an operator that launched nothing: views are a fifth of all, and take a hundredth of the time
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync")
USELESS = ("gpu_user_annotation", "overhead", "Trace", "ac2g", "fwdbwd")
LONGEST = 160  # characters of a name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--first", type=int, default=1, help="the first step that stays, counted from 0")
    parser.add_argument("--steps", type=int, default=1, help="how many stay")
    parser.add_argument("--shortest", type=float, default=SHORTEST_US, help="operators under so many µs go")
    options = parser.parse_args()
    document = json.loads(gzip.decompress(options.trace.read_bytes()))
    cut = cut_steps(document, options.first, options.steps, options.shortest)
    data = json.dumps(cut, separators=(",", ":")).replace("},{", "},\n{").encode()
    options.output.write_bytes(gzip.compress(data, mtime=0))
    print(f"{len(cut['traceEvents']):,} events, {options.output.stat().st_size:,} bytes")


def cut_steps(document, first, steps, shortest_us=SHORTEST_US):
    """Return a trace with so many steps of another one."""
    events = [event for event in document["traceEvents"] if event["ph"] == "X" and event.get("cat") not in USELESS]
    marks = sorted(event["ts"] for event in events if event["name"].startswith("ProfilerStep#"))
    starts = [*marks, float("inf")]
    start, end = starts[first], starts[first + steps]
    within = [event for event in events if event["cat"] not in ON_GPU and start <= event["ts"] < end]
    calling = {e["args"].get("External id") for e in within if e["cat"] in ("cuda_runtime", "cuda_driver")}
    on_cpu = [
        event for event in within if not IDLE_CALLS.match(event["name"]) and not is_trifle(event, calling, shortest_us)
    ]
    launched = {event["args"]["correlation"] for event in on_cpu if "correlation" in event.get("args", {})}
    on_gpu = [e for e in events if e["cat"] in ON_GPU and e["args"].get("correlation") in launched]
    head = {key: document[key] for key in (*KEPT_KEYS, *KEPT_TOO) if key in document}
    whole_us = int(start)
    head["baseTimeNanoseconds"] = document.get("baseTimeNanoseconds", 0) + whole_us * 1000
    numbers = {key: {} for key in NUMBERS}
    return {**head, "traceEvents": [small(event, whole_us, numbers) for event in (*on_cpu, *on_gpu)]}


def is_trifle(event, calling, shortest_us):
    """Return whether an operator did next to nothing."""
    return event["cat"] == "cpu_op" and event["dur"] < shortest_us and event["args"]["External id"] not in calling


def small(event, whole_us, numbers):
    """Return an event with what is read of it; its time counts from `whole_us`."""
    args = {key: value for key, value in event.get("args", {}).items() if key in KEPT_ARGS}
    for key in NUMBERS:
        if key in args:
            args[key] = numbers[key].setdefault(args[key], len(numbers[key]) + 1)
    name = event["name"]
    if len(name) > LONGEST:
        name = f"{name[:LONGEST]} {hashlib.sha256(name.encode()).hexdigest()[:6]}"
    fields = {key: event[key] for key in ("ph", "cat", "name", "pid", "tid", "ts", "dur")}
    return {**fields, "name": name, "ts": round(event["ts"] - whole_us, 3), **({"args": args} if args else {})}


if __name__ == "__main__":
    main()
