"""Whatever is in a file: it is read and analysed, or refused in one sentence."""

import json
import math
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.traces import two_steps

from gpu_report.analyse.trace import analyse_trace
from gpu_report.errors import InputError
from gpu_report.load.trace import load_trace
from gpu_report.load.trace.decode import decode_by_json
from gpu_report.load.trace.fastest_decode import FASTEST_DECODE

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["", "7", "-1", "NaN", [], {}, [1], {"a": 1}]),
)
CATEGORIES = ("cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset", "user_annotation", "cuda_sync", "Kernel")
NAMES = ("ProfilerStep#1", "aten::item", "layer 3 C3k2", "cudaStreamSynchronize", "Memcpy DtoH (Device -> Pageable)")
ARGS = ("External id", "external id", "correlation", "Sequence number", "device", "stream", "bytes")
SMALL = st.integers(-2, 12)
EVENTS = st.fixed_dictionaries(
    {"ph": st.just("X"), "cat": st.sampled_from(CATEGORIES), "name": st.sampled_from(NAMES) | ODD},
    optional={
        "ts": SMALL | ODD,
        "dur": SMALL | ODD,
        "pid": SMALL | ODD,
        "tid": SMALL | ODD,
        "args": st.dictionaries(st.sampled_from(ARGS), SMALL | ODD) | ODD,
    },
)
HEADS = st.dictionaries(st.sampled_from(["baseTimeNanoseconds", "deviceProperties", "distributedInfo"]), ODD)


def analysed(data, decode=FASTEST_DECODE):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(data)
        return analyse_trace(load_trace(path, decode))


def comparable(analysis):
    return repr(analysis)


@given(HEADS, st.lists(EVENTS, max_size=15))
def test_values_of_any_kind(head, events):
    data = json.dumps({**head, "traceEvents": events}).encode()
    found = analysed(data)
    assert all(math.isfinite(step.length_s) for step in found.steps)
    assert comparable(found) == comparable(analysed(data, decode_by_json))


@pytest.mark.parametrize("seed", range(40))
def test_bytes_that_were_changed(seed):
    draw = random.Random(seed)
    data = bytearray(two_steps().text().encode())
    for _ in range(draw.choice([1, 5, 50])):
        at = draw.randrange(len(data))
        data[at : at + draw.choice([0, 1, 1, 20])] = draw.choice(
            [b"", b'"', b"}", b"[", b"\xff", b"\0", b"9" * 30, b"{"]
        )
    try:
        found = analysed(bytes(data))
    except InputError:
        return  # the name of the list itself was hit
    assert comparable(found) == comparable(analysed(bytes(data), decode_by_json))
