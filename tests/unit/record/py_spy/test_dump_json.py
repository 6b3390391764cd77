"""What py-spy answers: right, of another namespace, torn, and made by somebody hostile."""

import json

import pytest
from support.stand_in import thread

from gpu_report.record.py_spy import dump_json
from gpu_report.record.py_spy.dump_json import main_thread_frames
from gpu_report.record.py_spy.program import DumpFailed

SLEEP, TRAIN = ("/home/me/train.py", 9, "upload"), ("/home/me/train.py", 21, "<module>")


def frames(threads, pid=77):
    return main_thread_frames(json.dumps(threads).encode(), pid)


def test_the_main_thread_is_the_one_with_the_number_of_the_process():
    other = thread(("/x.py", 1, "run"), name="MainThread", os_thread_id=78)
    assert frames([other, thread(SLEEP, TRAIN, name=None, os_thread_id=77)]) == (SLEEP, TRAIN)


def test_in_a_container_with_numbers_of_its_own_it_is_known_by_its_name():
    other = thread(("/x.py", 1, "run"), name="Thread-1", os_thread_id=8)
    assert frames([other, thread(SLEEP, os_thread_id=7)]) == (SLEEP,)
    assert frames([other, thread(SLEEP, os_thread_id=None)]) == (SLEEP,)


@pytest.mark.parametrize(
    ("said", "function"),
    [
        ("Queue.get", "get"),
        ("outer.<locals>.inner", "inner"),
        ("main.<locals>.<lambda>", "<lambda>"),
        ("<module>", "<module>"),
    ],
)
def test_functions_are_named_as_our_hook_names_them(said, function):
    assert frames([thread(("/x.py", 1, said), os_thread_id=77)]) == (("/x.py", 1, function),)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"Thread 0x7F (idle)",
        b"\xff\xfe",
        b"[" * 100_000,
        b"{}",
        b"null",
        b"[]",
        b"[1, null]",
        b'[{"os_thread_id": 77}]',
        b'[{"os_thread_id": 77, "frames": "none"}]',
        b'[{"os_thread_id": 77, "frames": [1, {"filename": 1, "name": "f", "line": 2}, {"name": "f"}]}]',
    ],
)
def test_what_says_nothing_is_a_failure(answer):
    with pytest.raises(DumpFailed):
        main_thread_frames(answer, 77)


def test_what_is_absurd_is_bounded_and_secrets_are_hidden():
    deep = [("/x.py" * 9999, -1, "f" * 99_999)] * 999
    found = frames([thread(*deep, os_thread_id=77)])
    assert len(found) == dump_json.DEEPEST
    assert len(found[0][0]) <= dump_json.LONGEST_NAME
    assert len(found[0][2]) <= dump_json.LONGEST_NAME
    assert found[0][1] == 0
    ((file, line, _),) = frames([thread(("/data/api_key=sk-1234567890abcdef/x.py", True, "f"), os_thread_id=77)])
    assert "1234567890abcdef" not in file
    assert line == 0
