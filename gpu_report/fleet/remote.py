"""Runs behind URLs (s3://, gs://, https:// ...): listed and fetched by fsspec, which is imported only for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from gpu_report.errors import InputError
from gpu_report.fleet.extra import need

_URL = re.compile(r"[A-Za-z][\w+.-]*(?:::[\w+.-]+)*://")
_USER = re.compile(r"(?<=://)[^/]*@")
STAMPS = (
    "ETag",
    "etag",
    "mtime",
    "LastModified",
    "last_modified",
    "updated",
    "created",
)  # what says that a file changed


def is_url(address: str) -> bool:
    """Tell whether an address is a URL."""
    return _URL.match(address) is not None


def without_user(address: str) -> str:
    """Return a URL without the user and password in it."""
    return _USER.sub("", address) if is_url(address) else address


def remote_files(root: str) -> Iterator[tuple[str, str, int, str]]:
    """Yield every file below a URL: its folder's URL, name, size and what says when it changed; InputError if none."""
    files, path = _opened(root)
    try:
        found = files.find(path, detail=True)
    except Exception as error:  # each protocol raises its own
        raise InputError(f"{without_user(root)} cannot be listed: {_said(error)}") from error
    for name, info in sorted(found.items()):
        inner, _, last = str(name).removeprefix(path).lstrip("/").rpartition("/")
        stamp = next((str(info[key]) for key in STAMPS if info.get(key) is not None), "")
        yield f"{root}/{inner}".rstrip("/"), last, int(info.get("size") or 0), stamp


def fetch(address: str, names: tuple[str, ...], target: Path) -> None:
    """Copy the files of a run with these names into a folder; InputError where that fails."""
    files, path = _opened(address)
    try:
        for name in filter(_stays_inside, names):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            files.get_file(f"{path}/{name}", str(target / name))
    except Exception as error:  # each protocol raises its own
        raise InputError(f"{without_user(address)} cannot be fetched: {_said(error)}") from error


def _stays_inside(name: str) -> bool:
    """Tell whether a name leads into the folder: a key of S3 may hold `..`."""
    parts = PurePosixPath(name).parts
    return bool(parts) and ".." not in parts and not name.startswith("/") and "\\" not in name


def _opened(address: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it; UsageError without fsspec or the protocol's package."""
    need("fsspec")
    import fsspec  # noqa: PLC0415 - the extra [fleet]

    try:
        files, path = fsspec.core.url_to_fs(address)
    except Exception as error:
        raise InputError(f"{without_user(address)} cannot be opened: {_said(error)}") from error
    return files, str(path).rstrip("/")


def _said(error: Exception) -> str:
    return " ".join((str(error) or type(error).__name__).split())[:300]
