"""What comes through a pipe of another process: copied by a thread that computes, or waited for by one that sleeps."""

import dataclasses

import numpy as np
import pytest
from support.calls import make_calls, make_served
from support.stacks import process

from gpu_report.analyse import analyse
from gpu_report.model import Frame, Probes

LIB = "/usr/lib/python3.12/"
MAIN = Frame("/home/me/serve.py", 12, "<module>")
BATCH = Frame("/home/me/cameras.py", 22, "batch")
CALL = (Frame("/venv/lib/python3.12/site-packages/ultralytics/engine/predictor.py", 395, "stream_inference"), MAIN)
GET = Frame(LIB + "multiprocessing/queues.py", 103, "get")
READS = (Frame(LIB + "multiprocessing/connection.py", 395, "_recv"), GET, BATCH, MAIN)
LOADS = (GET._replace(called="loads"), BATCH, MAIN)
RECV = (Frame("/home/me/wire.py", 13, "receive", called="recv"), MAIN)
SOCKET = Frame(LIB + "socket.py", 707, "readinto", called="recv_into")
EVENTS = (Frame(LIB + "selectors.py", 468, "select", called="poll"), Frame("/home/me/wire.py", 20, "serve"), MAIN)
LOCKED = (GET._replace(called="acquire"), BATCH, MAIN)


def served(between, ran, image_px=None):
    """Return calls of 13 ms with 30 ms between them, each of which was looked at: a share of these looks `ran`."""
    calls = dataclasses.replace(make_calls(600, gap_ms=30.0, noise=0.0), image_px=image_px)
    stays = []
    for start, end, after in zip(calls.start_s, calls.end_s, calls.start_s[1:], strict=False):
        stays += [(start, end, CALL), (end, after, between)]
    at_s = calls.end_s[:-1:5] + 0.015
    probes = Probes(at_s, np.arange(len(at_s)) < ran * len(at_s))
    stacks = dataclasses.replace(process(*stays, pid=calls.pid), probes=probes)
    return analyse(dataclasses.replace(make_served(calls, util_pct=20.0), stacks=(stacks,)))


def seconds(analysis):
    return {part.kind: round(part.seconds) for part in analysis.served[0].gap_parts}


@pytest.mark.parametrize("stack", [READS, LOADS])
def test_who_computes_in_a_pipe_copies(stack):
    analysis = served(stack, ran=1.0)
    assert seconds(analysis) == {"receiving from a process": 18}
    assert [row.gpu_seconds > 10 for row in analysis.ledger if row.name == "receiving"] == [True]
    (finding,) = (each for each in analysis.findings if each.rule == "slow-between-calls")
    assert (finding.cause.name, finding.where[0].line) == ("receiving", 22)
    assert analysis.verdict.text.startswith(
        "Put the images that `batch` (cameras.py:22) receives in shared memory, and send their places alone: "
        "23 images/s become 77 at most"
    )


def test_images_far_larger_than_the_model_sees_are_to_be_shrunk_before_they_are_sent():
    text = served(READS, ran=1.0, image_px=2560).verdict.text
    assert text.startswith("Shrink images before `batch` (cameras.py:22) receives them (now up to 2,560 px), or put")


@pytest.mark.parametrize(("stack", "ran"), [(READS, 0.0), (LOCKED, 1.0)])
def test_who_sleeps_in_a_pipe_or_stands_before_it_waits(stack, ran):
    assert seconds(served(stack, ran)) == {"waiting for calls": 18}


def test_who_sleeps_for_some_of_the_time_copies_in_the_rest():
    assert seconds(served(READS, ran=0.4)) == {"waiting for calls": 11, "receiving from a process": 7}


@pytest.mark.parametrize("stack", [RECV, (SOCKET, RECV[0]._replace(called=""), MAIN)])
def test_who_computes_around_a_line_that_reads_a_socket_is_own_code_and_the_line_is_not_sure(stack):
    """As `data += link.recv(8192)` in a loop: notes fall on the call that lets go of the interpreter's lock."""
    analysis = served(stack, ran=1.0)
    assert seconds(analysis) == {"own code": 18}
    (finding,) = (each for each in analysis.findings if each.rule == "slow-between-calls")
    line = f"wire.py:{finding.where[0].line} or a line near it"
    assert finding.summary.endswith(f"of the time for all calls: receive ({line})")
    led = f"Look at `receive` ({line}): without it 23 images/s become about 77"
    assert analysis.verdict.text.startswith(led)


@pytest.mark.parametrize(("stack", "ran"), [("RECV", 0.3), ("EVENTS", 1.0)])
def test_who_mostly_sleeps_in_a_socket_waits_and_so_does_a_loop_of_events(stack, ran):
    """A loop of events runs whatever it is told to: its line says nothing of that."""
    assert seconds(served({"RECV": RECV, "EVENTS": EVENTS}[stack], ran)) == {"waiting for calls": 18}


def test_without_looks_it_is_waiting():
    analysis = served(READS, ran=0.0)
    stacks = tuple(dataclasses.replace(each, probes=None) for each in analysis.run.stacks)
    assert seconds(analyse(dataclasses.replace(analysis.run, stacks=stacks))) == {"waiting for calls": 18}
