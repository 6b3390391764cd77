"""A server that has gpu-report imported already, and forks for each command: a second less for each of a hundred.

A command that it runs differs from one of its own process in nothing but its start: arguments, folder, environment,
stdout and stderr are those of the caller. What is decided before Python starts (LD_LIBRARY_PATH: the fake NVML) needs a
process of its own. Client: `client.py SOCKET ARGUMENT...`, written by `write_client`.
"""

import array
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

CLIENT = """\
import array, json, os, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.connect(sys.argv[1])
asked = json.dumps({"argv": sys.argv[2:], "cwd": os.getcwd(), "env": dict(os.environ)}).encode()
ends = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1, 2]))]
server.sendmsg([len(asked).to_bytes(8, "big")], ends)
server.sendall(asked)
sys.exit(server.recv(1)[0])
"""


@contextmanager
def warm_server(environment: dict[str, str], most: Mapping[int, int] | None = None) -> Iterator[list[str]]:
    """Yield the words that run `gpu-report` through a server, which ends with the block.

    `most` limits each command: to so many seconds of a core (`resource.RLIMIT_CPU`), and to so many bytes of address
    space (`RLIMIT_AS`) more than the server has.
    """
    with tempfile.TemporaryDirectory(prefix="warm-") as folder:
        address, client = Path(folder) / "socket", Path(folder) / "client.py"
        client.write_text(CLIENT)
        server = subprocess.Popen(
            [sys.executable, __file__, str(address)], env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            for kind, limit in (most or {}).items():
                more = _address_space(server.pid) if kind == resource.RLIMIT_AS else 0
                resource.prlimit(server.pid, kind, (limit + more, limit + more))
            yield [sys.executable, "-I", "-S", str(client), str(address)]
        finally:
            server.terminate()
            server.wait()


def _address_space(pid: int) -> int:
    """Return the bytes of a process's address space."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()


def serve(address: str) -> None:
    """Answer one command after the other, each in a fork of its own, with its exit code."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(address)
    listening.listen()
    print("ready", flush=True)
    while True:
        caller, _ = listening.accept()
        with caller:
            size, ends = _received(caller)
            asked = json.loads(caller.recv(size, socket.MSG_WAITALL))
            child = os.fork()
            if child == 0:
                _run(asked, ends)
            for end in ends:
                os.close(end)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            caller.sendall(bytes([code if code >= 0 else 128 - code]))


def _received(caller: socket.socket) -> tuple[int, list[int]]:
    """Return how long the message is that follows, and the caller's stdout and stderr."""
    room = array.array("i", [0, 0])
    head, extra, _, _ = caller.recvmsg(8, socket.CMSG_SPACE(room.itemsize * len(room)))
    ends = array.array("i")
    ends.frombytes(extra[0][2])
    return int.from_bytes(head, "big"), list(ends)


def _run(asked: dict[str, object], ends: list[int]) -> None:
    """Run a command as `python -m gpu_report` does, and end this process."""
    from gpu_report.cli import main  # noqa: PLC0415 - imported before the first fork

    code = 1
    try:
        for number, end in enumerate(ends, start=1):
            os.dup2(end, number)
        os.environ.clear()
        os.environ.update(asked["env"])
        os.chdir(asked["cwd"])
        sys.argv = ["gpu-report", *asked["argv"]]
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _import_all() -> None:
    """Import what the commands would import when they are called, as `render` does, and compile the templates."""
    from gpu_report.release_memory import keep_one_heap  # noqa: PLC0415

    keep_one_heap()  # Arrow looks once, when it is loaded
    import gpu_report.analyse.compare  # noqa: PLC0415
    import gpu_report.cli  # noqa: PLC0415
    import gpu_report.load  # noqa: PLC0415
    import gpu_report.render  # noqa: PLC0415
    import gpu_report.render.comparison.benchmark_services  # noqa: PLC0415
    import gpu_report.render.comparison.comparison_json  # noqa: PLC0415
    import gpu_report.render.comparison.github  # noqa: PLC0415
    import gpu_report.render.comparison.junit  # noqa: PLC0415
    import gpu_report.render.comparison.markdown  # noqa: PLC0415
    import gpu_report.render.comparison.page  # noqa: PLC0415
    import gpu_report.render.comparison.terminal  # noqa: F401, PLC0415
    from gpu_report.render.page.blank.skeleton import blank_page  # noqa: PLC0415

    blank_page()


if __name__ == "__main__":
    _import_all()
    serve(sys.argv[1])
