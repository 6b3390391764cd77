import gc
import gzip
import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import clean_environment
from support.traces import BASE_NS, MAIN, TraceMaker, two_steps

from gpu_report.errors import InputError
from gpu_report.load.trace import load_trace
from gpu_report.load.trace.decode import decode_by_json
from gpu_report.load.trace.fastest_decode import FASTEST_DECODE
from gpu_report.model import CopyKind, TraceDevice, TraceRank

TABLES = ("operators", "calls", "kernels", "copies", "memsets", "syncs", "annotations", "python")


def loaded(tmp_path, data, name="trace.json"):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return load_trace(path)


def names_of(trace, table):
    return [trace.names[each] for each in getattr(trace, table).name]


def same(left, right):
    assert (left.names, left.threads, left.steps, left.problems) == (
        right.names,
        right.threads,
        right.steps,
        right.problems,
    )
    for table in TABLES:
        one, other = getattr(left, table), getattr(right, table)
        for column in one.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(one, column), getattr(other, column), err_msg=f"{table}.{column}")


def test_what_a_trace_holds(tmp_path):
    made = two_steps()
    made.copy("Memcpy HtoD (Pageable -> Device)", 12_100, 30, 4096, launched=12_090)
    made.event("gpu_memset", "Memset (Device)", 12_140, 1, pid=0, tid=7, device=0, stream=7, bytes=8)
    made.event("cuda_sync", "Stream Sync", 12_150, 5, pid=0, tid=7, device=0, stream=7)
    made.event("python_function", "nn.Module: C3k2_0", 12_000, 10)
    info = {"backend": "nccl", "rank": 1, "world_size": 2}
    trace = load_trace(made.write(tmp_path / "trace.json.gz", distributedInfo=info))
    assert trace.problems == ()
    assert trace.start_wall_s == pytest.approx(BASE_NS / 1e9 + 0.01)
    assert trace.duration_s == pytest.approx(0.002155)
    assert trace.devices == (TraceDevice(0, "NVIDIA H100", 80 * 1024),)
    assert trace.rank == TraceRank(1, 2)
    assert trace.threads == (f"pid {MAIN} tid {MAIN}",)
    assert [(step.number, step.start_s, step.end_s) for step in trace.steps] == [
        (3, 0.0, pytest.approx(0.00099)),
        (4, pytest.approx(0.001), pytest.approx(0.00199)),
    ]
    assert names_of(trace, "operators") == ["aten::conv2d", "aten::cudnn_convolution"] * 2
    assert trace.operators.parent.tolist() == [-1, 0, -1, 2]
    assert names_of(trace, "kernels") == ["implicit_gemm", "bias"] * 2
    assert trace.kernels.start_s[0] == pytest.approx(35e-6)
    assert trace.kernels.correlation[0] in trace.calls.correlation
    assert trace.kernels.external_id[0] == trace.operators.external_id[1]
    assert trace.copies.bytes.tolist() == [4096]
    assert trace.copy_kinds == {int(trace.copies.name[0]): CopyKind("HtoD", "pageable")}
    assert [len(getattr(trace, table)) for table in ("memsets", "syncs", "python", "annotations")] == [1, 1, 1, 2]
    assert trace.has_gpu_work


def test_msgspec_and_the_standard_library_come_to_the_same(tmp_path):
    pytest.importorskip("msgspec")
    assert FASTEST_DECODE is not decode_by_json
    made = two_steps()
    made.event("cpu_op", "big number", 1.0, 1, **{"External id": 2**64})
    made.event("cpu_op", "text", "11000.5", "7", **{"External id": "12"}, pid="100", tid="100")
    made.event("cpu_op", "no duration", 11_000, None)
    made.event("cpu_op", "negative", 11_000, -5)
    made.event("cpu_op", "lone \ud800 surrogate", 11_100, 5)
    path = made.write(tmp_path / "trace.json")
    same(load_trace(path), load_trace(path, decode_by_json))


def test_without_msgspec_the_standard_library_decodes():
    code = (
        "import sys; sys.modules['msgspec'] = None\n"
        "from gpu_report.load.trace import fastest_decode as found\n"
        "print(found.FASTEST_DECODE.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "decode_by_json"


def test_a_number_that_is_written_as_text_is_a_number(tmp_path):
    made = two_steps()
    made.event("cpu_op", "text", "11990.5", "7", pid=str(MAIN), tid=str(MAIN), **{"External id": "120"})
    trace = load_trace(made.write(tmp_path / "trace.json"))
    row = names_of(trace, "operators").index("text")
    assert trace.operators.external_id[row] == 120
    assert trace.operators.end_s[row] - trace.operators.start_s[row] == pytest.approx(7e-6)
    assert trace.threads == (f"pid {MAIN} tid {MAIN}",)


@pytest.mark.parametrize(
    "layout",
    [
        {"indent": None},
        {"indent": None, "separators": (",", ":")},
        {"indent": 1},
        {"indent": "\t", "sort_keys": True},
    ],
    ids=str,
)
def test_lines_may_be_laid_out_in_any_way(tmp_path, layout):
    made = two_steps()
    expected = load_trace(made.write(tmp_path / "kineto.json"))
    same(loaded(tmp_path, json.dumps(made.document(), **layout)), expected)


def test_the_root_may_be_a_list(tmp_path):
    trace = loaded(tmp_path, json.dumps(two_steps().events))
    assert len(trace.kernels) == 4
    assert trace.problems == ()
    assert trace.start_wall_s is None  # nothing says when the machine's clock began


def test_an_old_trace_has_other_categories_and_times_since_1970(tmp_path):
    now_us = 1_700_000_000_000_000
    made = TraceMaker()
    made.event("Operator", "ProfilerStep#5", now_us, 1000)
    made.event("Operator", "aten::conv2d", now_us + 10, 100, **{"External id": 3})
    made.event("Operator", "Optimizer.step#SGD.step", now_us + 500, 100)
    made.event("Runtime", "cudaLaunchKernel", now_us + 20, 5, correlation=9, **{"external id": 3})
    more = {"stream": 7, "correlation": 9, "external id": 3}
    made.event("Kernel", "gemm", now_us + 40, 5, pid=0, tid="stream 7", **more)
    made.event("Memcpy", "Memcpy DtoH (Device -> Pinned)", now_us + 60, 5, pid=1, tid=7, bytes=4)
    made.event("Memset", "Memset (Device)", now_us + 80, 5, pid=0, tid=7, bytes=4)
    for event in made.events:
        event["tid"] = str(event["tid"])
    gpu = {"id": 0, "name": "Tesla V100", "totalGlobalMem": 2**34, "multiProcessorCount": 80}
    trace = loaded(tmp_path, json.dumps({"computeProperties": [gpu], "traceEvents": made.events}))
    assert trace.start_wall_s == now_us / 1e6
    assert trace.devices == (TraceDevice(0, "Tesla V100", 16_384),)
    assert trace.threads == (f"pid {MAIN} tid {MAIN}",)
    assert [step.number for step in trace.steps] == [5]
    assert names_of(trace, "operators") == ["aten::conv2d"]
    assert sorted(names_of(trace, "annotations")) == ["Optimizer.step#SGD.step", "ProfilerStep#5"]
    assert (trace.kernels.device.tolist(), trace.kernels.stream.tolist()) == ([0], [7])
    assert trace.copies.device.tolist() == [1]
    assert trace.kernels.external_id.tolist() == trace.operators.external_id.tolist() == [3]
    assert trace.copy_kinds[int(trace.copies.name[0])] == CopyKind("DtoH", "pinned")
    assert len(trace.memsets) == 1


@pytest.mark.parametrize(
    ("damage", "kept"),
    [
        (lambda text: text.replace('"dur": 50', '"dur": 50, "est. achieved occupancy %": inf'), 4),  # kineto#105
        (lambda text: text.replace('"dur": 50', '"dur": 50, "args2": {"x": -nan}'), 4),
        (lambda text: text.replace('"dur": 50', '"dur": NaN'), 2),
        (lambda text: text.replace('"name": "bias"', r'"name": "C:\Users\bias"'), 4),
        (lambda text: text.replace('"name": "bias"', '"name": "a "quoted" bias"'), 2),
        (lambda text: text.replace('"name": "bias"', '"name": "a\tbias\n"'), 4),
        (lambda text: text.replace('"dur": 50', '"dur": 50,, '), 2),
        (lambda text: text.replace("\n  ],", ",\n  ],"), 4),
        (lambda text: text.replace('"stream": 7', '"stream": 99999999999999999999999999'), 4),
        (lambda text: text.replace('"stream": 7', '"stream": [7, {"a": [{}, {}]}]'), 4),
    ],
)
@pytest.mark.parametrize("decode", [FASTEST_DECODE, decode_by_json], ids=["msgspec", "json"])
def test_a_damaged_event_costs_no_other_one(tmp_path, damage, kept, decode):
    text = two_steps().text()
    assert damage(text) != text
    path = tmp_path / "trace.json"
    path.write_text(damage(text))
    trace = load_trace(path, decode)
    assert len(trace.kernels) == kept
    assert len(trace.operators) == 4
    assert [step.number for step in trace.steps] == [3, 4]
    lost = 4 - kept
    assert trace.problems == ((f"trace.json: {lost} events could not be read and are left out",) if lost else ())


def test_invalid_utf8_costs_nothing_but_the_letter(tmp_path):
    trace = loaded(tmp_path, two_steps().text().encode().replace(b'"bias"', b'"bi\xff\xfeas"'))
    assert names_of(trace, "kernels")[1] == "bi��as"
    assert trace.problems == ()


def test_a_file_that_was_cut_keeps_what_came_before(tmp_path):
    text = two_steps().text()
    trace = loaded(tmp_path, text[: text.rindex('"bias"')])
    assert len(trace.kernels) == 3
    assert trace.problems == (
        "trace.json: 1 event could not be read and is left out",
        "trace.json ends in the middle of its events: those before are used",
    )


def test_a_packed_file_that_was_cut_keeps_what_came_before(tmp_path):
    made = TraceMaker()
    for at in range(5000):
        made.op(f"aten::op{at}", at * 10, 5)
    packed = gzip.compress(made.text().encode())
    trace = loaded(tmp_path, packed[: len(packed) // 2], "trace.json.gz")
    assert 1000 < len(trace.operators) < 4000
    assert trace.problems[0] == "trace.json.gz is cut off: only its beginning was read"


def test_a_packed_file_that_is_damaged_keeps_what_came_before(tmp_path):
    packed = bytearray(gzip.compress(two_steps().text().encode()))
    packed[len(packed) // 2 :] = b"\xff" * 100
    trace = loaded(tmp_path, bytes(packed), "trace.json.gz")
    assert "damaged" in trace.problems[0] or "cut off" in trace.problems[0]


def test_members_of_a_packed_file_are_one(tmp_path):
    data = two_steps().text().encode()
    trace = loaded(tmp_path, gzip.compress(data[:700]) + gzip.compress(data[700:]), "trace.bin")
    assert len(trace.kernels) == 4
    assert trace.problems == ()


@pytest.mark.parametrize("data", [b"", b"hello", b'{"a": 1}', b'{"traceEvents"', b"\x1f\x8b\x08", b"\x89PNG\r\n" * 50])
def test_what_is_no_trace_is_refused(tmp_path, data):
    with pytest.raises(InputError, match=r"trace.json is no trace of PyTorch's profiler"):
        loaded(tmp_path, data)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load_trace(tmp_path / "trace.json")


def test_a_trace_without_events_is_one(tmp_path):
    trace = loaded(tmp_path, '{"traceEvents": []}')
    assert (trace.start_wall_s, trace.duration_s, trace.steps, trace.problems) == (None, 0.0, (), ())
    assert not trace.has_gpu_work
    trace = loaded(tmp_path, '{"traceEvents": [{"ph": "M", "name": "process_name", "args": {"name": "python"}}]}')
    assert not len(trace.operators)


def test_events_days_away_do_not_cost_the_others_their_nanoseconds(tmp_path):
    made = two_steps()
    made.event("cpu_op", "stray", 1.7e15, 5)
    trace = load_trace(made.write(tmp_path / "trace.json"))
    assert trace.duration_s < 1
    assert trace.problems == ("trace.json: 1 event could not be read and is left out",)


def test_a_large_file_is_read_in_blocks_with_damage_in_each(tmp_path):
    made = TraceMaker()
    for at in range(12_000):
        made.op("aten::add", at * 10, 5)
    lines = json.dumps(made.document(), indent=1)
    assert len(lines) > 2_000_000
    trace = loaded(tmp_path, lines.replace('"ts": 5550,', '"ts": 5550 oops,').replace('"ts": 99990,', '"ts": "x"'))
    assert len(trace.operators) == 11_998
    assert trace.problems == ("trace.json: 2 events could not be read and are left out",)


def test_a_list_inside_an_event_at_the_end_of_a_block_costs_nothing(tmp_path):
    made = TraceMaker()
    made.op("aten::add", 0, 5)
    made.event("cpu_op", "many inputs", 10, 5, inputs=[{"name": "x" * 50, "size": at} for at in range(10_000)])
    made.op("aten::mul", 20, 5)
    trace = load_trace(made.write(tmp_path / "trace.json"))
    assert names_of(trace, "operators") == ["aten::add", "many inputs", "aten::mul"]


def test_garbage_is_collected_again_afterwards_also_after_an_error(tmp_path):
    load_trace(two_steps().write(tmp_path / "trace.json"))
    assert gc.isenabled()

    def broken(_):
        assert not gc.isenabled()
        raise MemoryError

    with pytest.raises(MemoryError):
        load_trace(tmp_path / "trace.json", broken)
    assert gc.isenabled()
