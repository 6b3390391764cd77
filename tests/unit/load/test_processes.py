"""processes.csv: with owners and utilisation, from before there were any, and with nonsense in it."""

import pytest

from gpu_report.load.run_clock import Boot, RunClock
from gpu_report.load.samples import load_processes

CLOCK = RunClock((Boot(0.0, 1000.0, 0.0),))


@pytest.fixture
def load(tmp_path):
    def loaded(*lines):
        path = tmp_path / "processes.csv"
        path.write_text("\n".join(lines) + "\n")
        return load_processes(path, CLOCK)

    return loaded


def test_owner_and_utilisation_are_read(load):
    frame, problems = load(
        "wall_s,mono_s,gpu,pid,name,memory_used_mib,change,owner,gpu_util_pct",
        "1001,1,0,41,python,4000,appeared,trainer,24",
        "1002,2,0,42,,,appeared,not visible,",
    )
    assert frame["owner"].tolist() == ["trainer", "not visible"]
    assert frame["gpu_util_pct"].tolist() == pytest.approx([24, float("nan")], nan_ok=True)
    assert frame["name"].tolist() == ["python", ""]
    assert problems == ()


def test_a_file_from_before_there_were_owners_still_loads(load):
    frame, problems = load("wall_s,mono_s,gpu,pid,name,memory_used_mib,change", "1001,1,0,41,python,4000,appeared")
    assert frame["owner"].tolist() == ["unknown"]
    assert frame["gpu_util_pct"].isna().all()
    assert problems == ()


def test_what_cannot_be_is_unknown(load):
    frame, problems = load(
        "wall_s,mono_s,gpu,pid,name,memory_used_mib,change,owner,gpu_util_pct",
        "1001,1,0,41,python,4000,appeared,<script>,400",
    )
    assert frame["owner"].tolist() == ["unknown"]
    assert frame["gpu_util_pct"].isna().all()
    assert problems == ("processes.csv: 1 reading of gpu_util_pct is impossible and counts as missing",)
