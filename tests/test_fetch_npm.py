""".ci/fetch-npm takes a package only when it is the one that was pinned. npm itself is played: it packs what we say."""

import base64
import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "fetch-npm"
NPM = """#!/bin/sh
echo asked >>"$ASKED"
while [ "$1" != --pack-destination ]; do shift; done
cp "$PACKED" "$2/some-1.0.0.tgz"
"""


@pytest.fixture
def fetch(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A function that fetches into tmp_path/npm/some from an npm that packs tmp_path/packed.tgz."""
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(NPM)
    npm.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{npm.parent}:{os.environ['PATH']}",
        "PACKED": str(tmp_path / "packed.tgz"),
        "ASKED": str(tmp_path / "asked"),
    }

    def run(integrity: str) -> subprocess.CompletedProcess[str]:
        command = [SCRIPT, "some", "1.0.0", integrity, tmp_path / "npm" / "some"]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    return run


def pack(tmp_path: Path, text: str) -> str:
    """Write a package of one file, and return its integrity as npm prints it."""
    archive = tmp_path / "packed.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        member = tarfile.TarInfo("package/index.js")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text.encode()))
    return f"sha512-{base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()}"


def test_the_pinned_package_is_unpacked_and_asked_for_once(tmp_path: Path, fetch) -> None:
    integrity = pack(tmp_path, "one")
    assert fetch(integrity).returncode == 0
    assert (tmp_path / "npm" / "some" / "index.js").read_text() == "one"
    assert fetch(integrity).returncode == 0
    assert (tmp_path / "asked").read_text().count("asked") == 1


def test_another_pin_replaces_the_folder(tmp_path: Path, fetch) -> None:
    fetch(pack(tmp_path, "one"))
    assert fetch(pack(tmp_path, "two")).returncode == 0
    assert (tmp_path / "npm" / "some" / "index.js").read_text() == "two"


def test_a_package_of_another_hash_is_refused_and_leaves_nothing(tmp_path: Path, fetch) -> None:
    wanted = pack(tmp_path, "one")
    pack(tmp_path, "other")
    refused = fetch(wanted)
    assert refused.returncode == 1
    assert "not what was pinned" in refused.stderr
    assert list((tmp_path / "npm").iterdir()) == []
