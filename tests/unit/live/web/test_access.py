"""Who is let in: this machine by its own names, others by a token, and nobody who wants to change anything."""

import pytest
from support.coroutines import finish

from gpu_report.live.web import access
from gpu_report.live.web.access import AccessGuard, is_loopback

TOKEN = "0123456789abcdef"
COOKIE = f"{access.COOKIE}_9000"


async def page(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"in"})


def ask(token=None, *, method="GET", path="/", query="", **headers):
    """Return the status and the headers of an answer."""
    sent = []

    async def send(message):
        sent.append(message)

    raw = [(name.lower().replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": raw,
        "server": ("127.0.0.1", 9000),
    }
    finish(AccessGuard(page, token)(scope, None, send))
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:9000", "127.0.0.1:9000", "127.9.9.9", "[::1]:9000", "LOCALHOST:1"]
)
def test_this_machine_is_let_in_by_its_own_names(host):
    status, headers = ask(host=host)
    assert status == 200
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:9000", "127.0.0.1.evil.example", "192.168.1.5:9000", "localhost.evil"]
)
def test_another_name_for_this_machine_is_refused(host):
    assert ask(host=host)[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_reading_is_answered(method):
    assert ask(method=method, host="localhost")[0] == 405
    assert ask(TOKEN, method=method, authorization=f"Bearer {TOKEN}")[0] == 405


def test_without_the_token_nobody_is_let_in_whatever_the_name():
    assert ask(TOKEN, host="localhost")[0] == 401
    assert ask(TOKEN, host="localhost", query="token=wrong")[0] == 401
    assert ask(TOKEN, host="localhost", authorization="Bearer ")[0] == 401
    assert ask(TOKEN, host="localhost", cookie=f"{COOKIE}=")[0] == 401
    assert ask(TOKEN, host="localhost", cookie="\x00=;;=,")[0] == 401


def test_the_token_lets_in_by_header_and_by_cookie_under_any_name():
    assert ask(TOKEN, host="hub.example.org", authorization=f"Bearer {TOKEN}")[0] == 200
    assert ask(TOKEN, host="hub.example.org", cookie=f"a=b; {COOKIE}={TOKEN}")[0] == 200
    assert ask(TOKEN, host="hub.example.org", cookie=f'x={{"a":"b"}}; c=dark mode; d; {COOKIE}={TOKEN}')[0] == 200


@pytest.mark.parametrize(("path", "to"), [("/", "./"), ("/gpu-status", "gpu-status")])
def test_a_token_in_the_address_becomes_a_cookie_and_leaves_the_address(path, to):
    status, headers = ask(TOKEN, path=path, host="hub.example.org", query=f"x=1&token={TOKEN}")
    assert status == 303
    assert headers["location"] == to  # relative: a proxy may have a prefix
    assert f"{COOKIE}={TOKEN}" in headers["set-cookie"]
    assert "HttpOnly" in headers["set-cookie"]
    assert "samesite=strict" in headers["set-cookie"].lower()


def test_addresses_of_this_machine():
    assert is_loopback("::1")
    assert is_loopback("127.0.0.1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("::")
    assert not is_loopback("node7")
