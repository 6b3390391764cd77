"""What threads beside the main one did between calls."""

import dataclasses

import numpy as np
import pytest
from support.stacks import process

from gpu_report.analyse.inference.gap_kinds import is_in_call, kind_between_calls
from gpu_report.analyse.inference.gaps import gap_parts
from gpu_report.analyse.inference.locks import queue_of
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
    assert said(found) == [("waiting for calls", 10.0, None, False)]


def test_threads_that_all_wait_between_calls_wait_for_these_at_the_line_of_the_users():
    loop = (*SELECT, Frame("/home/me/serve.py", 29, "<module>"))
    rests = [(0.0, 17.0, RESTS), (17.0, 20.0, CALL)]
    found = parts([(0.0, 20.0, loop)], 17.0, called=[(17.0, 20.0)], asyncio_0=rests)
    assert said(found) == [("waiting for calls", 17.0, "<module>", False)]


def test_threads_of_which_nothing_was_noted_between_calls_are_not_said_to_wait():
    assert parts([(0.0, 20.0, CALL)], 10.0, called=[(0.0, 10.0)], asyncio_0=[(0.0, 20.0, CALL)]) == ()


LINE = (Frame("/home/me/serve.py", 19, "run"),)


def cameras(*turn, cpu_s):
    """Return the parts of three threads; `turn` says which of them work in a second, by turns (a string of numbers)."""
    stays = {
        f"camera_{k}": [
            (at, at + 1.0, (ENCODE, CALL)[at % 2] if str(k) in turn[at % len(turn)] else LINE) for at in range(20)
        ]
        for k in range(3)
    }
    called = [(at, at + 1.0) for at in range(1, 20, 2)]
    return parts([(0.0, 20.0, JOIN)], 10.0, called=called, cpu_s=cpu_s, **stays)


def test_threads_that_stand_in_one_line_while_another_works_wait_for_their_turn():
    """A third of the CPU is each one's own: it is that of the second before, in which it worked."""
    assert said(cameras("0", "1", "2", cpu_s={LINE: 13.0})) == [("own code", 10.0, "annotate", False)]


def test_threads_that_compute_in_one_line_work_two_at_a_time_and_none_now_and_then():
    """As a loop in Python does in each of them, which the interpreter lets run by turns."""
    assert said(cameras("0", "", "12", cpu_s={LINE: 13.0}))[0][2] == "run"


def test_threads_that_enter_a_lock_wait_whoever_else_works():
    """A recorder that knows of `with lock:` names it: one that waits alone is known then, too."""
    line = (Frame("/home/me/serve.py", 19, "run", called="__enter__"),)
    handlers = {"first": turns(ENCODE, CALL), "second": [(0.0, 20.0, line)]}
    found = parts([(0.0, 20.0, JOIN)], 10.0, cpu_s={line: 9.0}, **handlers)
    assert said(found) == [("own code", 10.0, "annotate", False)]


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_a_queue_is_where_one_thread_or_more_waits_on_average(threads):
    line = (Frame("/home/me/serve.py", 19, "run", called="__enter__"),)
    stays = [[(0.0, 20.0, line)]] * threads + [turns(line, ENCODE), turns(ENCODE, CALL)]
    numbers = {stack: number for number, stack in enumerate((line, ENCODE, CALL))}
    each = [
        ThreadStacks(f"t{k}", *(np.array(c) for c in zip(*((s, e, numbers[x]) for s, e, x in of), strict=True)))
        for k, of in enumerate(stays)
    ]
    whole = process((0.0, 20.0, JOIN))
    whole = dataclasses.replace(whole, stacks={n: stack for stack, n in numbers.items()}, threads=tuple(each))
    queue = queue_of(whole, SPAN)
    assert (queue and (queue.where.line, queue.threads)) == (None, (19, 1.5), (19, 2.5))[threads]


PREFETCH = (
    Frame(LIB + "threading.py", 355, "wait", called="acquire"),
    Frame(SITE + "ultralytics/engine/predictor.py", 86, "_prefetch"),
    STREAM,
)
WAITS = Frame(LIB + "threading.py", 355, "wait", called="acquire")
READS = (WAITS, Frame(SITE + "ultralytics/data/loaders.py", 495, "__next__"))


def test_images_that_a_thread_of_ultralytics_reads_are_decoding_with_its_line():
    assert kind_between_calls(PREFETCH) == "decoding"
    assert not is_in_call(PREFETCH)
    found = parts(turns(CALL, PREFETCH, PREFETCH, PREFETCH), 15.0, ThreadPoolExecutor_0=[(0.0, 20.0, READS)])
    assert said(found) == [("decoding", 15.0, "__next__", False)]
    assert found[0].where.line == 495


def test_code_of_the_users_that_has_yolo_draw_is_named_by_its_own_line():
    draws = (Frame(SITE + "ultralytics/utils/plotting.py", 477, "box_label"), Frame("/home/me/serve.py", 24, "show"))
    (found,) = parts(turns(CALL, draws), 10.0)
    assert (found.kind, found.where.function, found.function_s) == ("own code", "show", pytest.approx(10.0))


def test_a_part_is_named_by_the_function_that_took_most_and_not_by_the_longest_line():
    first, second, other = (
        (Frame("/home/me/serve.py", line, function),) for line, function in ((5, "rows"), (8, "rows"), (20, "write"))
    )
    (found,) = parts(turns(CALL, first, second, other, other, first, second, other), 17.0)
    assert (found.where.function, found.function_s) == ("rows", pytest.approx(10.0))


@pytest.mark.parametrize("stack", [GET, JOIN, RESTS, SELECT, (Frame("/home/me/serve.py", 5, "run", called="get"),)])
def test_threads_that_wait_are_known(stack):
    assert kind_between_calls(stack) == "waiting for calls"
