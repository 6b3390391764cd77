"""Where a test records to; all tests of this folder are live, but for those that only read, or simulate."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.run_folder_reader import RunFolder

READING = ("test_fuzz.py", "test_hostile_folders.py")
SIMULATED = ("test_recorder_states.py",)  # time, too


@pytest.fixture
def recorded(tmp_path: Path) -> RunFolder:
    """Where a test records to: `--output` of its command line."""
    return RunFolder(tmp_path / "run")


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark the tests of this folder that record; the hook is given those of all."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.path.name not in (*READING, *SIMULATED):
            item.add_marker("live")
