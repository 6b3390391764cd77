import pytest
from support.growing import START_S, GrowingRun

from gpu_report.live.reading.run_now import RunNow


@pytest.fixture
def growing(tmp_path):
    return GrowingRun(tmp_path / "run")


@pytest.fixture
def pair(tmp_path):
    return GrowingRun(tmp_path / "run", gpus=2)


@pytest.fixture
def looked_at():
    """A function that looks at a run folder anew, and returns it with the wall time so long after its start."""

    def look(growing, at_s):
        run = RunNow(growing.folder)
        run.look()
        while run.samples.is_behind:
            run.look()
        return run, START_S + at_s

    return look
