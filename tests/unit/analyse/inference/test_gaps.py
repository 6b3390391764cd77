"""What a process does between its calls, by the stack of the thread that makes them."""

import numpy as np
import pytest
from support.stacks import process

from gpu_report.analyse.inference.gap_kinds import kind_between_calls
from gpu_report.analyse.inference.gaps import gap_parts, lines_within
from gpu_report.analyse.signals.code.idle_stacks import main_idle_stacks
from gpu_report.model import Frame

SITE = "/venv/lib/python3.11/site-packages/"
MAIN = Frame("/home/me/serve.py", 12, "<module>")
OWN = Frame("/home/me/serve.py", 7, "prepare", called="GaussianBlur")
STREAM = Frame(SITE + "ultralytics/engine/predictor.py", 382, "stream_inference")
PREPROCESS = Frame(SITE + "ultralytics/engine/predictor.py", 190, "preprocess")
FORWARD = Frame(SITE + "ultralytics/nn/modules/conv.py", 98, "forward_fuse")
LOADER = Frame(SITE + "ultralytics/data/loaders.py", 400, "__next__", called="read")
BUILD = Frame(SITE + "ultralytics/engine/model.py", 219, "_new")
SETUP = Frame(SITE + "ultralytics/engine/predictor.py", 465, "setup_model")
SLEEP = Frame("/home/me/serve.py", 9, "<module>", called="sleep")
GET = Frame(SITE + "requests/api.py", 73, "get")
SELECT = Frame("/usr/lib/python3.11/selectors.py", 415, "select")
LIB = "/usr/lib/python3.12/"
READINTO = Frame(LIB + "socket.py", 707, "readinto", called="recv_into")
ACCEPT = Frame(LIB + "socket.py", 295, "accept", called="_accept")
HEADERS = Frame(LIB + "http/client.py", 236, "parse_headers")
BEGIN = Frame(LIB + "http/client.py", 300, "begin")
REQUEST = Frame(LIB + "http/server.py", 404, "handle_one_request")
POST = Frame("/home/me/server.py", 30, "do_POST")
RECV = Frame("/home/me/server.py", 40, "answer", called="recv")
PARSER = Frame(SITE + "redis/_parsers/socket.py", 54, "_read_from_socket", called="recv")
BLPOP = Frame(SITE + "redis/commands/core.py", 2700, "blpop")
HGET = Frame(SITE + "redis/commands/core.py", 4900, "hget")
UNREADER = Frame(SITE + "gunicorn/http/unreader.py", 64, "chunk", called="recv")
PLOT = Frame(SITE + "ultralytics/engine/results.py", 549, "plot")
FROMARRAY = Frame(SITE + "PIL/Image.py", 3462, "fromarray", called="decode")
OPEN = Frame(SITE + "PIL/Image.py", 3500, "open", called="read")
LOAD = Frame(SITE + "PIL/ImageFile.py", 300, "load", called="decode")
SAVE = Frame(SITE + "PIL/ImageFile.py", 500, "_save", called="encode")
CONVERT = Frame(SITE + "PIL/Image.py", 1000, "convert")
LOOP = Frame(SITE + "uvicorn/_compat.py", 60, "asyncio_run", called="run_until_complete")  # uvloop's
NO_CALLS = np.empty((0, 2))
IMREAD = Frame("/home/me/serve.py", 5, "load", called="imread")


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        ((OWN, MAIN), "own code"),
        ((IMREAD, MAIN), "decoding"),
        ((LOADER, STREAM, MAIN), "decoding"),
        ((GET, MAIN), "network"),
        ((SLEEP,), "waiting for calls"),
        ((SELECT, MAIN), "waiting for calls"),
        ((BUILD, MAIN), "loading the model"),
        ((SETUP, STREAM, MAIN), "loading the model"),
        ((FORWARD, STREAM, MAIN), None),
        ((), None),
        # a socket is read for a request, by whoever serves, or for an answer, by whoever asked
        ((READINTO, REQUEST), "waiting for calls"),
        ((READINTO, HEADERS, REQUEST), "waiting for calls"),
        ((READINTO, POST, REQUEST), "waiting for calls"),
        ((READINTO, BEGIN, POST, REQUEST), "network"),
        ((READINTO, BEGIN, GET, MAIN), "network"),
        ((ACCEPT, MAIN), "waiting for calls"),
        ((RECV, MAIN), "waiting for calls"),
        ((UNREADER,), "waiting for calls"),
        ((PARSER, HGET, MAIN), "network"),
        ((PARSER, BLPOP, MAIN), "waiting for calls"),
        ((SELECT, BLPOP, MAIN), "waiting for calls"),
        ((LOOP, MAIN), "waiting for calls"),
        # PIL decodes what it reads; what it draws, converts or writes is work of who asked for that
        ((OPEN, OWN), "decoding"),
        ((LOAD, CONVERT, OWN), "decoding"),
        ((CONVERT, OWN), "own code"),
        ((FROMARRAY, PLOT, OWN), "own code"),
        ((SAVE, OWN), "own code"),
    ],
)
def test_each_stack_is_of_a_call_or_of_a_kind_of_gap(stack, kind):
    assert kind_between_calls(stack) == kind


def stacks(*stays):
    return main_idle_stacks(process(*stays), [])


def test_the_gap_is_shared_out_by_the_notes_and_names_its_line():
    noted = stacks((0, 6, (OWN, MAIN)), (6, 8, (IMREAD, MAIN)), (8, 12, (FORWARD, STREAM, MAIN)))
    first, second = gap_parts(noted, NO_CALLS, (0.0, 12.0), 9.0)  # notes of 8 s stand for 9 s by the calls' own clock
    assert (first.kind, second.kind) == ("own code", "decoding")
    assert (first.seconds, second.seconds) == pytest.approx((6.75, 2.25))
    assert (first.where.function, first.where.line, first.where.share) == ("prepare", 7, 1.0)


def test_nothing_is_said_where_another_thread_makes_the_calls():
    assert gap_parts(stacks((0, 12, (SELECT, MAIN))), NO_CALLS, (0.0, 12.0), 1.0) == ()


def test_nothing_is_said_of_a_moment():
    noted = stacks((0, 0.5, (OWN, MAIN)), (0.5, 12, (FORWARD, STREAM, MAIN)))
    assert gap_parts(noted, NO_CALLS, (0.0, 12.0), 0.5) == ()


def test_the_lines_of_a_part_of_calls_are_those_within_its_function():
    resize = Frame(SITE + "ultralytics/data/augment.py", 1848, "apply_image")
    noted = stacks((0, 3, (resize, PREPROCESS, STREAM)), (3, 4, (PREPROCESS, STREAM)), (4, 9, (FORWARD, STREAM)))
    lines = lines_within(noted, (0.0, 9.0), "preprocess")
    assert [(each.function, each.share) for each in lines] == [("apply_image", 0.75), ("preprocess", 0.25)]


def test_calls_that_overlap_all_the_time_have_no_gap():
    noted = stacks((0, 4, (OWN, MAIN)), (4, 12, (FORWARD, STREAM, MAIN)))
    assert gap_parts(noted, NO_CALLS, (0.0, 12.0), 0.0) == ()
