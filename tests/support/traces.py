"""Traces of PyTorch's profiler, made by hand: times in µs, as Kineto writes them."""

import gzip
import json
import tempfile
from itertools import count
from pathlib import Path

from gpu_report.load.trace import load_trace

BASE_NS = 1_790_000_000_000_000_000
MAIN = 100  # pid and tid of the training


class TraceMaker:
    """Collect events; each method returns what others refer to (an operator's or a call's number)."""

    def __init__(self):
        self.events = []
        self._numbers = count(1)

    def event(self, cat, name, ts, dur, pid=MAIN, tid=MAIN, **args):
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
        self.events.append(event | ({"args": args} if args else {}))

    def step(self, number, ts, dur):
        self.event("user_annotation", f"ProfilerStep#{number}", ts, dur)
        # Its twin on the GPU overlaps everything, and must count for nothing.
        self.event("gpu_user_annotation", f"ProfilerStep#{number}", ts, dur * 2, pid=0, tid=7)

    def mark(self, name, ts, dur):
        self.event("user_annotation", name, ts, dur)

    def op(self, name, ts, dur, tid=MAIN, sequence=None):
        number = next(self._numbers)
        more = {} if sequence is None else {"Sequence number": sequence, "Fwd thread id": 0}
        self.event("cpu_op", name, ts, dur, tid=tid, **{"External id": number}, **more)
        return number

    def call(self, name, ts, dur, op=None, tid=MAIN):
        number = next(self._numbers)
        more = {} if op is None else {"External id": op}
        self.event("cuda_runtime", name, ts, dur, tid=tid, correlation=number, cbid=1, **more)
        return number

    def kernel(self, name, ts, dur, launched=None, op=None, stream=7, device=0):
        """Add a kernel, and the call that launched it at `launched`."""
        more = {} if op is None else {"External id": op}
        if launched is not None:
            more["correlation"] = self.call("cudaLaunchKernel", launched, 2, op)
        self.event("kernel", name, ts, dur, pid=device, tid=stream, device=device, stream=stream, **more)

    def copy(self, name, ts, dur, size, launched=None, took=2, op=None):
        more = {} if op is None else {"External id": op}
        if launched is not None:
            more["correlation"] = self.call("cudaMemcpyAsync", launched, took, op)
        self.event("gpu_memcpy", name, ts, dur, pid=0, tid=7, device=0, stream=7, bytes=size, **more)

    def document(self, **more):
        gpu = {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 80 * 2**30, "numSms": 132}
        return {
            "schemaVersion": 1,
            "deviceProperties": [gpu],
            "baseTimeNanoseconds": BASE_NS,
            **more,
            "traceEvents": self.events,
            "traceName": "trace.json",
        }

    def text(self, **more):
        return json.dumps(self.document(**more), indent=2)

    def write(self, path, **more):
        data = self.text(**more).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path


def two_steps():
    """Return two steps of 1,000 µs, each with a convolution of two kernels."""
    made = TraceMaker()
    for step in range(2):
        at = 10_000 + 1_000 * step
        made.step(step + 3, at, 990)
        outer = made.op("aten::conv2d", at + 10, 100)
        inner = made.op("aten::cudnn_convolution", at + 20, 60)
        made.kernel("implicit_gemm", at + 35, 50, launched=at + 25, op=inner)
        made.kernel("bias", at + 120, 20, launched=at + 90, op=outer)
    return made


def loaded(made):
    """Return the trace that a maker made."""
    with tempfile.TemporaryDirectory() as folder:
        return load_trace(made.write(Path(folder) / "trace.json"))
