"""Where a test records to."""

from pathlib import Path

import pytest
from support.run_folder_reader import RunFolder


@pytest.fixture
def recorded(tmp_path: Path) -> RunFolder:
    """Where a test records to: `--output` of its command line."""
    return RunFolder(tmp_path / "run")
