"""Asking a Prometheus server for ranges, in pieces that it answers. Nothing of its address or of a token is kept."""

import base64
import json
import math
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from itertools import pairwise, product
from statistics import median
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from gpu_report.errors import InputError, UsageError
from gpu_report.imports.asked import Asked
from gpu_report.imports.dcgm_names import WANTED, names_of
from gpu_report.ordinary_file import MIB

MOST_POINTS: Final = 11_000  # of a series in one answer: Prometheus refuses more
TIMEOUT_S: Final = 60.0  # Prometheus itself gives up after two minutes
LARGEST_ANSWER: Final = 1024 * MIB
TOKEN: Final = "PROMETHEUS_TOKEN"  # noqa: S105 (the name of a variable of the environment)
LEAST_STEP_S: Final = 1.0
DEFAULT_STEP_S: Final = 30.0  # dcgm-exporter's own interval
_LOOKED_AT: Final = "10m"  # raw samples at the end, from which the interval is seen
_UTILISATION: Final = "DCGM_FI_DEV_GPU_UTIL"
_LONGEST_REASON: Final = 200  # characters


def fetch(asked: Asked) -> Iterator[Mapping[str, Any]]:
    """Yield a server's answers for all wanted metrics; InputError where it answers none, UsageError without a span.

    An address of /api/v1/query_range may have start, end, step and a query of its own.
    """
    base, given = _parts(asked.server or "")
    start_s, end_s = (_moment(given, name, value) for name, value in (("start", asked.start_s), ("end", asked.end_s)))
    if start_s is None or end_s is None or not start_s < end_s:
        raise UsageError(
            "say of which time: --start and --end (ISO 8601, or seconds since 1970), the end after the start"
        )
    step_s = asked.step_s or _moment(given, "step", None) or _interval_s(base, asked, end_s)
    query = given.get("query") or " or ".join(_selectors('__name__=~"' + "|".join(WANTED) + '"', asked))
    for begin_s, until_s in pieces(start_s, end_s, step_s):
        yield _get(base, "query_range", {"query": query, "start": begin_s, "end": until_s, "step": step_s})


def pieces(start_s: float, end_s: float, step_s: float) -> Iterator[tuple[float, float]]:
    """Yield spans (s) of at most MOST_POINTS points, all on one grid, that cover what was asked for."""
    points = math.floor((end_s - start_s) / step_s) + 1
    for first in range(0, points, MOST_POINTS):
        last = min(first + MOST_POINTS, points) - 1
        yield start_s + first * step_s, start_s + last * step_s


def _parts(address: str) -> tuple[str, dict[str, str]]:
    """Return the server's address up to its API, and the parameters that an address of query_range has."""
    split = urlsplit(address)
    base = f"{split.scheme}://{split.netloc}{split.path.partition('/api/v1/')[0].rstrip('/')}"
    return base, {name: values[-1] for name, values in parse_qs(split.query).items()}


def _moment(given: Mapping[str, str], name: str, asked: float | None) -> float | None:
    """Return what an option says, else the address, in seconds; UsageError where that is no number of seconds."""
    if asked is not None or name not in given:
        return asked
    try:
        return float(given[name])
    except ValueError as error:
        raise UsageError(f"{name}= of the address is no number of seconds: say it with --{name}") from error


def _selectors(first: str, asked: Asked) -> list[str]:
    """Return selectors that together have what was asked for, under any name that its labels go by."""
    names = [[(name, value) for name in names_of(label)] for label, value in asked.labels]
    return [
        "{" + ",".join([first, *(f"{name}={json.dumps(value)}" for name, value in chosen)]) + "}"
        for chosen in product(*names)
    ]


def _interval_s(base: str, asked: Asked, end_s: float) -> float:
    """Return how far a series' own samples are apart at the end of what is asked for (s)."""
    for selector in _selectors(f'__name__="{_UTILISATION}"', asked):
        answer = _get(base, "query", {"query": f"{selector}[{_LOOKED_AT}]", "time": end_s})
        for series in answer.get("data", {}).get("result", []):
            steps = [float(after[0]) - float(before[0]) for before, after in pairwise(series.get("values", []))]
            if steps:
                return max(LEAST_STEP_S, round(median(steps)))
    return DEFAULT_STEP_S


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none: it becomes the error that it is."""


def _get(base: str, what: str, parameters: Mapping[str, object]) -> Mapping[str, Any]:
    """Return what a server answers; InputError, in which no part of a token is, where it answers nothing of use."""
    split = urlsplit(base)
    host = split.netloc.rpartition("@")[2]
    address = f"{split.scheme}://{host}{split.path}/api/v1/{what}"
    data = urlencode(parameters).encode()  # as a POST: a query may be longer than an address
    request = urllib.request.Request(address, data, _authorization(split.username, split.password))  # noqa: S310
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as answered:
            answer = json.loads(answered.read(LARGEST_ANSWER))
    except urllib.error.HTTPError as error:
        raise InputError(
            f"{host} answered {error.code} {_reason(error)}: check the address, labels and {TOKEN}"
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{host} did not answer as Prometheus does ({_short(error)}): check the address") from error
    if not isinstance(answer, dict) or answer.get("status") != "success":
        raise InputError(f"{host} did not answer as Prometheus does: check the address")
    return answer


def _authorization(user: str | None, password: str | None) -> dict[str, str]:
    if user is not None:
        pair = f"{unquote(user)}:{unquote(password or '')}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    token = os.environ.get(TOKEN)
    return {"Authorization": f"Bearer {token}"} if token else {}


def _reason(error: urllib.error.HTTPError) -> str:
    """Return what Prometheus says of a query that it refused, else what HTTP says."""
    try:
        return _short(json.loads(error.read(_LONGEST_REASON * 10))["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return _short(error.reason)


def _short(reason: object) -> str:
    return " ".join(str(reason).split())[:_LONGEST_REASON]
