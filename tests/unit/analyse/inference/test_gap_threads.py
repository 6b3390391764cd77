"""What threads beside the main one did between calls."""

import dataclasses

import numpy as np
import pytest
from support.stacks import process

from gpu_report.analyse.inference.gap_kinds import kind_between_calls
from gpu_report.analyse.inference.gaps import gap_parts
from gpu_report.analyse.signals.code.idle_stacks import main_idle_stacks
from gpu_report.model import BusyThreads, Frame, ThreadStacks

SITE, LIB = "/venv/lib/python3.11/site-packages/", "/usr/lib/python3.11/"
STREAM = Frame(SITE + "ultralytics/engine/predictor.py", 382, "stream_inference")
CALL = (Frame(SITE + "ultralytics/nn/modules/conv.py", 98, "forward_fuse"), STREAM)
GET = (Frame(LIB + "threading.py", 327, "wait", called="acquire"), Frame(LIB + "queue.py", 171, "get"))
JOIN = (Frame(LIB + "multiprocessing/popen_fork.py", 27, "poll", called="waitpid"),)
RESTS = (Frame(LIB + "concurrent/futures/thread.py", 81, "_worker", called="get"),)
SELECT = (Frame(LIB + "selectors.py", 468, "select", called="poll"), Frame(LIB + "asyncio/base_events.py", 1, "run"))
ENHANCE = (Frame("/home/me/serve.py", 6, "enhance", called="medianBlur"),)
ENCODE = (Frame("/home/me/serve.py", 8, "annotate", called="imencode"),)
SPAN = (0.0, 20.0)


def parts(main, gap_s, called=(), cpu_s=None, **threads):
    """Return the parts of the gaps; a thread, as the main one, has stays of (start_s, end_s, stack).

    `cpu_s` is what threads used while they stood in a stack.
    """
    stays = [stay for each in (main, *threads.values()) for stay in each]
    whole = process(*stays)
    numbers = {stack: number for number, stack in whole.stacks.items()}
    columns = {
        name: tuple(np.array(column) for column in zip(*((s, e, numbers[stack]) for s, e, stack in each), strict=True))
        for name, each in (("", main), *threads.items())
    }
    others = tuple(ThreadStacks(name, *columns[name]) for name in threads)
    start_s, end_s, number = columns[""]
    fields = {"start_s": start_s.astype(float), "end_s": end_s.astype(float), "number": number, "threads": others}
    if cpu_s is not None:
        at, rows = np.arange(len(cpu_s)), np.array([numbers[stack] for stack in cpu_s])
        fields["busy_threads"] = BusyThreads(at, at + 1.0, np.array(list(cpu_s.values())), 0.0 * at, rows)
    noted = main_idle_stacks(dataclasses.replace(whole, **fields), [])
    return gap_parts(noted, np.array(called, dtype=float).reshape(-1, 2), SPAN, gap_s)


def said(found):
    return [(part.kind, round(part.seconds, 2), part.where and part.where.function, part.waited_for) for part in found]


def turns(*stacks, each_s=1.0):
    """Return stays in some stacks by turns, over all of the span."""
    count = int(SPAN[1] / each_s)
    return [(at * each_s, (at + 1) * each_s, stacks[at % len(stacks)]) for at in range(count)]


def test_calls_that_wait_for_a_thread_which_is_always_busy_wait_for_it():
    found = parts(turns(CALL, GET, GET, GET), 15.0, producer=[(0.0, 20.0, ENHANCE)])
    assert said(found)[0] == ("own code", 15.0, "enhance", True)
    assert sum(part.seconds for part in found) == pytest.approx(15.0)


@pytest.mark.parametrize("busy_s", [0.0, 2.0, 5.0])
def test_a_thread_that_is_done_in_time_is_not_waited_for(busy_s):
    producer = [(0.0, busy_s, ENHANCE), (busy_s, 20.0, GET)]
    found = parts(turns(CALL, GET, GET, GET), 15.0, producer=producer)
    assert said(found) == [("waiting for calls", 15.0, "wait", False)]


@pytest.mark.parametrize("called", ["sleep", "select"])
def test_a_thread_beside_calls_that_wait_for_time_or_requests_is_not_waited_for(called):
    rests = (Frame("/home/me/serve.py", 9, "pace", called=called),)
    found = parts(turns(CALL, rests, rests, rests), 15.0, writer=[(0.0, 20.0, ENHANCE)])
    assert said(found) == [("waiting for calls", 15.0, "pace", False)]


def test_of_calls_that_threads_make_it_is_what_these_do_besides():
    handler = turns(ENCODE, ENCODE, ENCODE, CALL)
    found = parts([(0.0, 20.0, JOIN)], 16.0, handler=handler, background=[(0.0, 20.0, ENHANCE)])
    assert said(found) == [("own code", 15.0, "annotate", False), ("waiting for calls", 1.0, None, False)]


def test_a_thread_that_waits_for_a_lock_is_no_work():
    lock = (Frame("/home/me/serve.py", 13, "do_POST"),)
    handlers = {"first": turns(ENCODE, ENCODE, ENCODE, CALL), "second": [(0.0, 20.0, lock)]}
    found = parts([(0.0, 20.0, JOIN)], 15.0, cpu_s={ENCODE: 12.0, CALL: 5.0}, **handlers)
    assert said(found) == [("own code", 15.0, "annotate", False)]
    python = parts([(0.0, 20.0, JOIN)], 15.0, cpu_s={lock: 9.0}, first=[(0.0, 20.0, lock)])
    assert said(python)[0][2] == "do_POST"


def test_a_main_thread_that_works_while_no_call_goes_on_keeps_calls_waiting():
    loop = turns(ENHANCE, SELECT)  # calls are made by a thread while the loop waits
    calls = [(at + 1.0, at + 2.0) for at in np.arange(0.0, 20.0, 2.0)]
    found = parts(loop, 10.0, called=calls, asyncio_0=[(0.0, 12.0, RESTS), (12.0, 13.0, CALL), (13.0, 20.0, RESTS)])
    assert said(found) == [("own code", 10.0, "enhance", False)]


def test_a_main_thread_that_works_during_calls_of_others_keeps_nobody_waiting():
    calls = [(at, at + 1.0) for at in np.arange(0.0, 20.0, 2.0)]
    found = parts(turns(ENHANCE, SELECT), 10.0, called=calls, asyncio_0=[(0.0, 20.0, RESTS)])
    assert found == ()


@pytest.mark.parametrize("stack", [GET, JOIN, RESTS, SELECT, (Frame("/home/me/serve.py", 5, "run", called="get"),)])
def test_threads_that_wait_are_known(stack):
    assert kind_between_calls(stack) == "waiting for calls"
