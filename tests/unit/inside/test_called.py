"""Which function of C a line calls, read from a thread that stands in it."""

import sys
import threading
import time

import pytest

from gpu_report.inside.on_path.gpu_report_inside.called import called

HERE = __file__
NEW = sys.version_info >= (3, 11)
SLEEPS_S = 0.3


class Holder:
    class Inner:
        sleep = staticmethod(time.sleep)


LOCK = threading.Lock()


def plain() -> None:
    time.sleep(SLEEPS_S)


def within_arguments() -> None:
    str([1, 2, time.sleep(SLEEPS_S)])


def after_a_chain() -> None:
    print(Holder().Inner.sleep(SLEEPS_S) or "", end="")


def over_several_lines() -> None:
    (
        Holder()
        .Inner
        .sleep(
            SLEEPS_S
        )
    )  # fmt: skip


def after_many_calls() -> None:
    sleeps = [0.0] * 100 + [SLEEPS_S]
    for seconds in sleeps:
        time.sleep(seconds)


def of_a_method() -> None:
    LOCK.acquire(timeout=SLEEPS_S)


def by_with() -> None:
    with LOCK:
        pass


def by_a_local_name() -> None:
    sleeps = time.sleep
    sleeps(SLEEPS_S)


def noted(stands) -> str:
    """Return what is noted of the main thread while it stands in a function."""
    found = []

    def look() -> None:
        time.sleep(SLEEPS_S / 2)
        frame = sys._current_frames()[threading.main_thread().ident]
        while frame.f_code.co_filename != HERE:
            frame = frame.f_back
        found.append((frame.f_code.co_name, called(frame.f_code, frame.f_lasti)))

    thread = threading.Thread(target=look)
    thread.start()
    with LOCK:
        stands()
    thread.join()
    assert found[0][0] == stands.__name__
    return found[0][1]


@pytest.mark.skipif(not NEW, reason="code knows its columns since Python 3.11")
@pytest.mark.parametrize("stands", [plain, within_arguments, after_a_chain, over_several_lines, after_many_calls])
def test_a_call_is_named_by_the_last_part_of_what_is_called(stands):
    assert noted(stands) == "sleep"


@pytest.mark.skipif(not NEW, reason="code knows its columns since Python 3.11")
def test_a_method_and_a_name_that_nobody_can_say():
    assert noted(of_a_method) == "acquire"
    assert noted(by_a_local_name) == ""


class Slow:
    """Converts itself, slowly: a class of Python would have frames of its own."""

    float = time.sleep


def of_another_type():
    Slow.float(SLEEPS_S)


@pytest.mark.skipif(not NEW, reason="code knows its columns since Python 3.11")
def test_a_tensor_of_another_type_is_no_number_that_is_waited_for():
    assert noted(of_another_type) == ".float"


def test_what_calls_nothing_or_is_no_instruction_has_no_name():
    code = noted.__code__
    assert called(code, -1) == called(code, 10**6) == ""
    assert all(isinstance(called(code, at), str) for at in range(len(code.co_code)))


@pytest.mark.skipif(not NEW, reason="code knows its columns since Python 3.11")
def test_a_lock_that_a_with_block_enters_has_a_name():
    found = []

    def look() -> None:
        time.sleep(SLEEPS_S / 2)
        frame = sys._current_frames()[threading.main_thread().ident]
        found.append((frame.f_code.co_name, called(frame.f_code, frame.f_lasti)))
        LOCK.release()

    LOCK.acquire()
    thread = threading.Thread(target=look)
    thread.start()
    by_with()
    thread.join()
    assert found == [("by_with", "__enter__")]
