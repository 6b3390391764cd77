"""The page's JavaScript on Node.js, by its own test runner: tests/unit/js/ has a file for each subject."""

import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = sorted((Path(__file__).parent / "js").glob("*.test.mjs"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_javascript(path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.fail("Node.js is missing: apt-get install nodejs", pytrace=False)
    done = subprocess.run([node, "--test", path], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        pytest.fail(f"{done.stdout}\n{done.stderr}", pytrace=False)
    assert "\n# pass 0\n" not in done.stdout  # a file without a test would pass, too
