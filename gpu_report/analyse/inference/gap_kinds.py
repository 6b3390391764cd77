"""What a thread does between calls, by its stack; and the lines of code that most of it went to."""

import re
from collections.abc import Container, Mapping
from functools import lru_cache
from itertools import takewhile
from typing import Final

from gpu_report.analyse.signals.code.stack_kinds import ENTERS, WAITING_CALLS, kind_of, location_of
from gpu_report.model import CodeLocation, Frame, GapKind, GapPart, ProcessStacks, Stack

Lines = Mapping[Frame | None, float]  # seconds
PREDICTOR: Final = re.compile(r"[\\/]ultralytics[\\/]engine[\\/]predictor\.py$")
STREAM: Final = "stream_inference"  # its function in which all of a call lies
LOADERS: Final = re.compile(r"[\\/]ultralytics[\\/]data[\\/]loaders\.py$")
PREFETCH: Final = "_prefetch"  # its function that waits for the thread in which a loader makes the next images
# Functions of C and files that make an image of bytes.
DECODES: Final = frozenset({"imread", "imdecode", "imdecodemulti", "VideoCapture", "grab", "retrieve", "fromfile"})
DECODERS: Final = re.compile(
    r"[\\/](?:imageio|av|decord|torchcodec)[\\/]|[\\/]torchvision[\\/]io[\\/]|[\\/]PIL[\\/](?:ImageFile|\w+Plugin)\.py$"
)
IN_PIL: Final = re.compile(r"[\\/]PIL[\\/]")
PIL: Final = re.compile(r"[\\/]PIL[\\/]Image\.py$")  # reads in `open`; all else in it works with what was read
# Functions of those files, and of ultralytics, in which images are written or drawn.
WRITES: Final = frozenset({"save", "_save", "imwrite", "mimwrite", "imsave", "append_data", "write", "encode", "mux"})
DRAWS: Final = re.compile(r"[\\/]ultralytics[\\/](?:engine[\\/]results|utils[\\/]plotting)\.py$")
# Clients of a network; servers wait in `selectors`, `socketserver` and queues.
NETWORK: Final = re.compile(
    r"[\\/](?:http[\\/]client|ssl|urllib[\\/]request|ftplib)\.py$|[\\/](?:urllib3|requests|httpx|httpcore|botocore|aiohttp[\\/]client\w*"
    r"|redis|pika|paramiko|grpc[\\/]_channel)(?:[\\/]|\.py$)"
)
# Of these what a client does in Python until work comes: an answer to no question.
AWAITS: Final = frozenset(
    {"blpop", "brpop", "blmove", "brpoplpush", "xread", "xreadgroup", "listen", "get_message"}
    | {"start_consuming", "consume", "process_data_events"}
)
# Functions of C that read what comes over a socket, those of Python around them, and servers that call these.
READS: Final = frozenset({"recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "recvmsg_into", "_accept"})
SOCKETS: Final = re.compile(r"[\\/](?:socket|ssl)\.py$")
READ_IN_SOCKETS: Final = frozenset({"readinto", "accept", "read", "recv_into"})
SERVES: Final = re.compile(
    r"[\\/](?:socketserver|http[\\/]server|xmlrpc[\\/]server|wsgiref[\\/]\w+)\.py$"
    r"|[\\/](?:werkzeug|gunicorn|waitress|cheroot|uvicorn|hypercorn|daphne|websockets[\\/]\w*[\\/]?server)(?:[\\/]|\.py$)"
)
SERVERS: Final = re.compile(
    r"[\\/](?:selectors|socketserver|queue|threading|asyncio[\\/]\w+|concurrent[\\/]futures[\\/]\w+"
    r"|multiprocessing[\\/](?:queues|connection|popen_\w+))\.py$"
)
# Functions of C that wait: for another thread, as a lock or a `SimpleQueue` does, or for anything.
FOR_THREADS: Final = frozenset({"acquire", "wait", "get", ENTERS})
LOOPS: Final = frozenset({"run_until_complete", "run_forever", "zmq_poll"})  # an event loop in C; in Python it selects
WAITS: Final = WAITING_CALLS | FOR_THREADS | LOOPS
LOADS_MODEL: Final = re.compile(
    r"[\\/]ultralytics[\\/](?:nn[\\/](?:tasks|autobackend|backends[\\/]\w+)|engine[\\/](?:model|predictor))\.py$"
)
BUILDS: Final = frozenset({"_new", "_load", "__init__", "setup_model", "load_checkpoint", "parse_model", "fuse"})


@lru_cache(maxsize=8192)
def kind_between_calls(stack: Stack) -> GapKind | None:
    """Return what a thread does in a stack if it is in no call, else None; a stack has its innermost frame first."""
    at = next((at for at, frame in enumerate(stack) if is_stream(frame)), None)
    if at is not None and not _loads_images(stack[:at]):
        return "loading the model" if _builds(stack[:at]) else None
    return _kind_outside(stack) if stack else None


def _kind_outside(stack: Stack) -> GapKind:
    """Return what a thread does in a stack that lies in no call."""
    if waits_for_loader(stack) or is_loader(stack) or _decodes(stack):
        return "decoding"
    if _waits_for_request(stack):
        return "waiting for calls"
    if any(NETWORK.search(frame.file) for frame in stack):
        return "network"
    if _called(stack) in WAITS or SERVERS.search(stack[0].file):
        return "waiting for calls"
    return "loading the model" if _builds(stack) else "own code"


def _decodes(stack: Stack) -> bool:
    """Tell whether an image is made of a file, of bytes or of a video in a stack: not one drawn, or written."""
    inner = _library(stack)
    if any(DRAWS.search(frame.file) for frame in stack) or any(frame.function in WRITES for frame in inner):
        return False
    reads = any(DECODERS.search(each.file) or (each.function == "open" and PIL.search(each.file)) for each in inner)
    return reads or _called(stack) in DECODES


def draws_by_pil(stack: Stack) -> bool:
    """Tell whether ultralytics draws by PIL in a stack, as it does where a class has a name that is not ASCII."""
    return any(DRAWS.search(frame.file) for frame in stack) and any(IN_PIL.search(frame.file) for frame in stack)


def _waits_for_request(stack: Stack) -> bool:
    """Tell whether a stack waits for work, or reads of a socket what nobody in the program asked for.

    Who asked is the code nearest to the user's own: a server's loop asks nobody, a client does. Where there is neither,
    as with a socket of the user's, what comes may be a request: that it is an answer nobody can say.
    """
    inner = _library(stack)
    clients = [frame for frame in inner if NETWORK.search(frame.file)]
    if any(frame.function in AWAITS for frame in clients):
        return True
    reads = _called(stack) in READS or _in_socket(stack[0])
    return reads and (not clients or any(SERVES.search(frame.file) for frame in inner))


def _in_socket(frame: Frame) -> bool:
    return frame.function in READ_IN_SOCKETS and SOCKETS.search(frame.file) is not None


def _library(stack: Stack) -> Stack:
    """Return the frames of a stack that lie within the user's innermost line."""
    return tuple(takewhile(lambda frame: kind_of(frame) != "own", stack))


def waits_for_thread(stack: Stack) -> bool:
    """Tell whether a thread waits for another one in a stack: not for time to pass, and not for a request."""
    return _called(stack) in FOR_THREADS and kind_between_calls(stack) == "waiting for calls"


def waits_in_own(stack: Stack) -> bool:
    """Tell whether code of the user's waits for calls in a stack itself, or reads a socket: no server's, or queue's."""
    inner = [frame for frame in _library(stack) if not SOCKETS.search(frame.file)]
    return not inner and len(_library(stack)) < len(stack) and kind_between_calls(stack) == "waiting for calls"


def waits_for_loader(stack: Stack) -> bool:
    """Tell whether a stack waits for the thread in which ultralytics reads the next images."""
    return any(frame.function == PREFETCH and PREDICTOR.search(frame.file) for frame in stack)


def is_loader(stack: Stack) -> bool:
    """Tell whether ultralytics reads images in a stack, or has them read."""
    return any(LOADERS.search(frame.file) for frame in stack)


def is_in_call(stack: Stack) -> bool:
    """Tell whether a stack lies within ultralytics' function that makes the calls, and does not wait for images."""
    at = next((at for at, frame in enumerate(stack) if is_stream(frame)), None)
    return at is not None and not _loads_images(stack[:at])


def _loads_images(stack: Stack) -> bool:
    return waits_for_loader(stack) or is_loader(stack)


def lines_of(process: ProcessStacks, seconds: Mapping[int, float]) -> dict[GapKind, Lines]:
    """Return how long a thread stood in each line between its calls, by kind; `seconds` by the number of a stack."""
    lines: dict[GapKind, dict[Frame | None, float]] = {}
    for number, spent in seconds.items():
        stack = process.stacks.get(number, ())
        kind = kind_between_calls(stack)
        if kind is not None:
            of = lines.setdefault(kind, {})
            line = line_between_calls(stack)
            of[line] = of.get(line, 0.0) + spent
    return dict(lines)


def line_between_calls(stack: Stack) -> Frame | None:
    """Return the line that a stack is named by, None in a call: of code of the user's that has YOLO draw the user's."""
    kind = kind_between_calls(stack)
    if kind is None:
        return None
    own = (at for at, frame in enumerate(stack) if kind == "own code" and kind_of(frame) == "own")
    return location_of(stack[next(own, 0) :])


def part_of(kind: GapKind, lines: Lines, scale: float, role: str, near: Container[Frame | None] = ()) -> GapPart:
    """Return a part with the line that most of it went to; `scale` makes its seconds of those that were noted.

    The line is one of the function that most of it went to. At lines in `near` the work may lie in one beside them.
    """
    total = sum(lines.values())
    functions = _by_function(lines)
    (where, most_s), *others = [
        (line and CodeLocation(role, line.function, line.file, line.line, lines[line] / total), spent * scale)
        for line, spent in functions
    ]
    if where is None:
        return GapPart(kind, total * scale)
    known = tuple((place, spent) for place, spent in others if place is not None)
    is_near = functions[0][0] in near
    return GapPart(kind, total * scale, where, function_s=most_s, others=known, is_near=is_near)


def _by_function(lines: Lines) -> list[tuple[Frame | None, float]]:
    """Return the line that most of each function's time went to, with the seconds of all its lines, most first."""
    functions: dict[tuple[str, ...] | None, dict[Frame | None, float]] = {}
    for line, spent in lines.items():
        functions.setdefault(_function(line), {})[line] = spent
    most = [(max(each, key=lambda line: lines[line]), sum(each.values())) for each in functions.values()]
    return sorted(most, key=lambda each: -each[1])


def _function(line: Frame | None) -> tuple[str, ...] | None:
    """Return what lines of one function have in common: of code in none (`<module>`) each line stands for itself."""
    if line is None:
        return None
    in_none = line.function.startswith("<")
    return (line.file, line.function, str(line.line)) if in_none else (line.file, line.function)


def is_stream(frame: Frame) -> bool:
    """Tell whether a frame is ultralytics' function in which all of a call lies."""
    return frame.function == STREAM and PREDICTOR.search(frame.file) is not None


def _builds(stack: Stack) -> bool:
    return any(frame.function in BUILDS and LOADS_MODEL.search(frame.file) for frame in stack)


def _called(stack: Stack) -> str:
    return stack[0].called if stack else ""
