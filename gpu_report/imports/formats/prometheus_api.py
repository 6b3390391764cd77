"""Asking a Prometheus server for ranges, in pieces that it answers. Nothing of its address or of a token is kept."""

import base64
import json
import math
import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from http.client import HTTPException
from itertools import pairwise, product
from statistics import median
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from gpu_report.errors import InputError, UsageError
from gpu_report.imports.formats import dcgm_names, nvidia_gpu_exporter_names
from gpu_report.imports.formats.dcgm_names import names_of
from gpu_report.imports.parsing.json_documents import number
from gpu_report.imports.selection import Selection
from gpu_report.imports.times import moment
from gpu_report.ordinary_file import MIB

MOST_POINTS: Final = 11_000  # of a series in one answer: Prometheus refuses more
TIMEOUT_S: Final = 60.0  # Prometheus itself gives up after two minutes
LARGEST_ANSWER: Final = 1024 * MIB
TOKEN: Final = "PROMETHEUS_TOKEN"  # noqa: S105 (the name of a variable of the environment)
LEAST_STEP_S: Final = 1.0
DEFAULT_STEP_S: Final = 30.0  # dcgm-exporter's own interval
_LOOKED_AT: Final = "10m"  # raw samples at the end, from which the interval is seen
_WANTED: Final = (*dcgm_names.WANTED, *nvidia_gpu_exporter_names.WANTED)
_UTILISATION: Final = "DCGM_FI_DEV_GPU_UTIL|nvidia_smi_utilization_gpu_ratio"
_LONGEST_REASON: Final = 200  # characters
_MS_PER_S: Final = 1000.0
_API: Final = "/api/v1/"
_HOW: Final = "write http://HOST:PORT, and in a password %3F for ?, %23 for #, %2F for /, %40 for @, %5B for ["


def fetch(selection: Selection) -> Iterator[Mapping[str, Any]]:
    """Yield a server's answers for all wanted metrics; InputError where it answers none, UsageError without a span.

    An address of /api/v1/query_range may have start, end, step and a query of its own.
    """
    base, given = _parts(selection.server or "")
    start_s = _moment(given, "start") if selection.start_s is None else selection.start_s
    end_s = _moment(given, "end") if selection.end_s is None else selection.end_s
    if start_s is None or end_s is None or not start_s < end_s:
        raise UsageError(
            "say of which time: --start and --end (ISO 8601, or seconds since 1970), the end after the start"
        )
    step_s = selection.step_s or _step_s(given) or _interval_s(base, selection, end_s)
    query = given.get("query") or " or ".join(_selectors('__name__=~"' + "|".join(_WANTED) + '"', selection))
    for begin_s, until_s in pieces(start_s, end_s, step_s):
        yield _get(base, "query_range", {"query": query, "start": begin_s, "end": until_s, "step": step_s})


def pieces(start_s: float, end_s: float, step_s: float) -> Iterator[tuple[float, float]]:
    """Yield spans (s) of at most MOST_POINTS points, all on one grid, that cover what was asked for."""
    points = math.floor((end_s - start_s) / step_s) + 1
    for first in range(0, points, MOST_POINTS):
        last = min(first + MOST_POINTS, points) - 1
        yield start_s + first * step_s, start_s + last * step_s


def _parts(address: str) -> tuple[str, dict[str, str]]:
    """Return the server's address up to its API, and the parameters that an address of query_range has.

    UsageError, in which nothing of the address is, where it is none: a part of a password may stand anywhere in it.
    """
    try:
        server, given = urlsplit(address.partition(_API)[0]), parse_qs(urlsplit(address).query)
        has_host = bool(server.hostname) and server.port != 0
    except ValueError:
        has_host = False
    if not has_host or "@" in f"{server.path}{server.query}{server.fragment}":  # what is before it is cut at / ? or #
        raise UsageError(f"this is no address of a server: {_HOW}")
    base = f"{server.scheme}://{server.netloc}{server.path.rstrip('/')}"
    return base, {name: values[-1] for name, values in given.items()}


def _moment(given: Mapping[str, str], name: str) -> float | None:
    """Return a time (s since 1970) that the address has; UsageError where it is none."""
    return moment(given.get(name), f"{name}= of the address", UTC)


def _step_s(given: Mapping[str, str]) -> float | None:
    """Return the step that the address has, in seconds; UsageError where it is no number, or below LEAST_STEP_S."""
    step_s = number(given["step"]) if "step" in given else None
    if step_s is not None and not LEAST_STEP_S <= step_s < math.inf:
        raise UsageError(f"step= of the address is no number of {LEAST_STEP_S:.0f} s or more: say it with --step")
    return step_s


def _selectors(first: str, selection: Selection) -> list[str]:
    """Return selectors that together have what was asked for, under any name that its labels go by."""
    names = [[(name, value) for name in names_of(label)] for label, value in selection.labels]
    return [
        "{" + ",".join([first, *(f"{name}={json.dumps(value)}" for name, value in chosen)]) + "}"
        for chosen in product(*names)
    ]


def _interval_s(base: str, selection: Selection, end_s: float) -> float:
    """Return how far a series' own samples are apart at the end of what is asked for (s)."""
    for selector in _selectors(f'__name__=~"{_UTILISATION}"', selection):
        answer = _get(base, "query", {"query": f"{selector}[{_LOOKED_AT}]", "time": end_s})
        for _, values in series_in(answer):
            steps = [after - before for (before, _), (after, _) in pairwise(values)]
            if known := [step for step in steps if math.isfinite(step)]:
                return max(LEAST_STEP_S, round(median(known)))
    return DEFAULT_STEP_S


def series_in(answer: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], list[tuple[float, float]]]]:
    """Yield the labels of each series of an answer, and its points (s since 1970, value), NaN for what is no number."""
    for series in _results(answer):
        labels = series.get("metric") if isinstance(series, dict) else None
        if isinstance(labels, dict) and isinstance(series.get("values"), list):
            points = (each for each in _pairs(series) if isinstance(each, list | tuple) and len(each) == 2)
            yield labels, [(number(at), number(value)) for at, value in points]


def _results(answer: Mapping[str, Any]) -> list[Any]:
    """Return the series of an answer, of its data, or of what is a series itself: promtool and VictoriaMetrics."""
    if "metric" in answer:
        return [answer]
    data = answer.get("data", answer)
    result = data.get("result") if isinstance(data, dict) else None
    return result if isinstance(result, list) else []


def _pairs(series: Mapping[str, Any]) -> Iterable[object]:
    """Return pairs of seconds and value; VictoriaMetrics exports lists of values and of milliseconds."""
    stamps = series.get("timestamps")
    if not isinstance(stamps, list):
        return list(series["values"])
    return zip((number(stamp) / _MS_PER_S for stamp in stamps), series["values"], strict=False)


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
    except OSError as error:
        raise InputError(f"{host} did not answer as Prometheus does ({short(error)}): check the address") from error
    except (HTTPException, ValueError, RecursionError):  # they may repeat the token, or what the other side sent
        raise InputError(
            f"{host} did not answer as Prometheus does (no whole JSON over HTTP): check the address and {TOKEN}"
        ) from None
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
        return short(json.loads(error.read(_LONGEST_REASON * 10))["error"])
    except (OSError, HTTPException, ValueError, RecursionError, KeyError, TypeError):
        return short(error.reason)


def short(reason: object) -> str:
    """Return what the other side said on one line, no longer than anybody reads."""
    return " ".join(str(reason).split())[:_LONGEST_REASON]
