"""The address of the live page. No library is needed for it: `record` opens the socket before the training starts."""

import os
import socket
from importlib.util import find_spec

from gpu_report.errors import UsageError
from gpu_report.extras import command_for

PORT, HOST = 9000, "127.0.0.1"
MORE_PORTS = 20  # that are tried where nobody asked for a certain one
NEEDED = ("starlette", "uvicorn", "prometheus_client")
INSTALL = f"the live page needs the extra [live]: {command_for('live')}"
WAITING = 128
TOKEN_VARIABLE = "GPU_REPORT_TOKEN"  # noqa: S105 - the name of it


def environment_without_token() -> dict[str, str]:
    """Return this process's environment for others: who starts a page says what it asks for."""
    return {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}


def check_installed() -> None:
    """Raise UsageError where the extra is missing."""
    if any(find_spec(name) is None for name in NEEDED):
        raise UsageError(INSTALL)


def listen(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens, without a port on the first free one from 9000 on; UsageError where none is."""
    ports = range(PORT, PORT + MORE_PORTS) if port is None else (port,)
    problem = ""
    for each in ports:
        try:
            family, _, _, _, address = socket.getaddrinfo(host, each, type=socket.SOCK_STREAM)[0]
            listening = socket.create_server(address[:2], family=family, backlog=WAITING)
        except OSError as error:
            problem = error.strerror or str(error)
            continue
        listening.setblocking(False)  # noqa: FBT003 - the standard library's own
        return listening
    where = f"{host} port {ports[0]}" + (f" to {ports[-1]}" if len(ports) > 1 else "")
    raise UsageError(f"cannot listen on {where} ({problem}): choose another with --port")


def address_of(listening: socket.socket, token: str | None) -> str:
    """Return the address to open in a browser."""
    host, port = listening.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")
