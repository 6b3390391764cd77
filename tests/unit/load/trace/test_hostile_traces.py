"""Files made to fill a reader's memory, or to keep it busy."""

import gzip
import time

import pytest
from support.traces import TraceMaker

from gpu_report.load.trace import blocks, load_trace
from gpu_report.load.trace.limits import MOST_BAD
from gpu_report.load.trace.names import Names, Threads
from gpu_report.load.trace.tables import Tables


def test_more_events_than_a_trace_has_are_left_out(tmp_path, monkeypatch):
    made = TraceMaker()
    for at in range(10_000):
        made.op("aten::add", at * 10, 5)
    monkeypatch.setattr("gpu_report.load.trace.trace_file.Tables", lambda: Tables(most_rows=3_000))
    trace = load_trace(made.write(tmp_path / "trace.json"))
    assert 3_000 <= len(trace.operators) < 10_000
    assert "events: those after the first" in trace.problems[0]


def test_a_packed_bomb_is_read_up_to_a_limit(tmp_path):
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * 50_000_000))
    pieces = blocks.Blocks(path, most_bytes=3_000_000)
    assert sum(map(len, pieces)) == 3_000_000
    assert "only its first 3,000,000 bytes are read" in pieces.problems[0]


@pytest.mark.parametrize(
    "junk",
    [
        b'{"ph":' * 200_000,
        b'{"ph":[' * 200_000,
        b'{"ph":"X"},{"ph":' * 60_000,
        b"{" * 1_500_000,
        b'"' * 1_500_000,
        b"[" * 1_500_000,
        b"," * 1_500_000,
        b"\\" * 1_500_000,
        b'{"ph":"' + b"x" * 6_000_000,
    ],
    ids=lambda junk: junk[:12].decode(),
)
def test_junk_takes_no_time_to_speak_of(tmp_path, junk):
    path = tmp_path / "trace.json"
    path.write_bytes(b'{"traceEvents": [' + junk)
    before = time.process_time()
    trace = load_trace(path)
    assert time.process_time() - before < 10
    assert len(trace.problems) >= 1
    assert not trace.has_gpu_work


def test_reading_ends_where_too_much_is_damaged(tmp_path):
    path = tmp_path / "trace.json"
    path.write_bytes(b'{"traceEvents": [' + b'{"ph": oops},\n' * (3 * MOST_BAD))
    assert load_trace(path).problems[-1] == "trace.json: too much is damaged, and only its beginning was read"


def test_names_past_the_limit_share_one(monkeypatch):
    monkeypatch.setattr("gpu_report.load.trace.names.MOST_NAMES", 3)
    names = Names()
    found = [names[name] for name in ("a", "b", "a", "c", "d", "e", "b")]
    assert found[:4] == [0, 1, 0, 2]
    assert found[4] == found[5] == 3
    assert found[6] == 1
    assert names.left_out


def test_a_long_name_is_cut():
    names = Names()
    assert len(names.texts[names["x" * 100_000]]) == 4_096


def test_threads_past_the_limit_share_one(monkeypatch):
    monkeypatch.setattr("gpu_report.load.trace.names.MOST_THREADS", 2)
    threads = Threads()
    assert [threads[1, at] for at in (1, 2, 3, "2", 1)] == [0, 1, 1, 1, 0]
    assert len(threads.texts) == 2
