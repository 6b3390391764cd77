"""Who may look: a server on this machine is for who sits at it, one for others asks for a token."""

import hmac
from ipaddress import ip_address
from urllib.parse import parse_qs

from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "gpu_report_token"  # and the port: browsers give the cookies of one port to all others
READING = {"GET", "HEAD"}
# Nothing from any network but this server; plotly.js makes one empty <style> and fills it by insertRule (the hash).
POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
)
HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-accel-buffering": b"no",  # nginx: events are sent on as they come
}


def is_loopback(host: str) -> bool:
    """Tell whether a name or an address is this machine's own, as others cannot reach it."""
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


class AccessGuard:
    """Refuses what only looks as if it came from this machine (DNS rebinding), who has no token, and all but reading.

    With a token any Host is taken: a proxy has its own, and who was lured here by a name has no token.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *((n, v) for n, v in HEADERS.items() if n not in there)]
            await send(message)

        await self._app(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if scope["method"] not in READING:
            return PlainTextResponse("Only GET is answered here.\n", 405, {"Allow": "GET, HEAD"})
        if self._token is None:
            host = _without_port(headers.get(b"host", ""))
            return None if is_loopback(host) else PlainTextResponse(f"{WRONG_HOST}\n", 403)
        return self._without_token(scope, headers)

    def _without_token(self, scope: Scope, headers: dict[bytes, str]) -> Response | None:
        """Return what to answer who shows the token by neither header nor cookie; one in the address becomes one."""
        scheme, _, given = headers.get(b"authorization", "").partition(" ")
        given = given if scheme.lower() == "bearer" else ""
        if self._is_token(given) or self._is_token(
            cookie_parser(headers.get(b"cookie", "")).get(_cookie_of(scope), "")
        ):
            return None
        in_address = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not self._is_token(in_address):
            return PlainTextResponse(f"{UNKNOWN}\n", 401, {"WWW-Authenticate": "Bearer"})
        answer = RedirectResponse("./" if scope["path"].endswith("/") else scope["path"].rpartition("/")[2], 303)
        answer.set_cookie(_cookie_of(scope), in_address, httponly=True, samesite="strict")
        return answer

    def _is_token(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())


WRONG_HOST = "This page is only shown as localhost. To show it under another name: gpu-report serve --token TOKEN"
UNKNOWN = "This page asks for the token that `gpu-report serve` printed: add ?token=TOKEN to the address"


def _without_port(host: str) -> str:
    if "@" in host:
        return ""  # no host that a browser sends
    if host.startswith("["):
        return host.partition("]")[0][1:]
    return host.partition(":")[0]


def _cookie_of(scope: Scope) -> str:
    return f"{COOKIE}_{(scope.get('server') or ('', 0))[1]}"
