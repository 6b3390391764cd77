"""Folders that were made to hang a reader are rendered, or refused in a line, in seconds and with little memory.

`HOSTILE=full` makes them ten times as large, as `make fuzz` does.
"""

import resource
import subprocess

import pytest
from conftest import clean_environment
from support.hostile_folders import HOSTILE, hostile_folder
from support.warm import warm_server

MOST = {
    resource.RLIMIT_CPU: 25,
    resource.RLIMIT_AS: 2**30,
}  # seconds (6 to 11 by the machine), bytes more than without any run
# Of twenty thousand GPUs as many are read and rendered: what makes them fewer and what renders so many is tried there.
AT_THE_EDGE = {"as many gpus as are read": pytest.mark.long}
LARGEST_PAGE = 8 * 2**20
LONGEST_LINE = 1200


@pytest.fixture(scope="module")
def limited_command():
    with warm_server(clean_environment(), MOST) as words:
        yield words


@pytest.mark.parametrize("name", [pytest.param(name, marks=AT_THE_EDGE.get(name, ())) for name in HOSTILE])
def test_a_hostile_folder_is_rendered_or_refused_within_limits(tmp_path, limited_command, name):
    page = tmp_path / "page.html"
    words = ["render", page, hostile_folder(name, tmp_path / "run"), "--json", tmp_path / "summary.json"]
    done = subprocess.run(
        [*limited_command, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if not line.startswith("gpu-report: note: ")]
    assert (done.returncode, len(said)) in {(0, 0), (4, 1)}, done.stderr[-2000:]
    assert all(len(line) < LONGEST_LINE for line in done.stderr.splitlines())
    assert not page.exists() or page.stat().st_size < LARGEST_PAGE
