"""The whole chain in subprocesses: a fake GPU plays a script, record records it, render says what happened."""

import json
import time

import pytest

pytestmark = pytest.mark.live

XID_LINE = "[ 4371.4] NVRM: Xid (PCI:0000:01:00): 79, pid=4242, name=python3, GPU has fallen off the bus.\n"


@pytest.fixture(scope="module")
def played(fake_library, tmp_path_factory):
    """Record 48 s of a GPU that drops for 12 s (14 to 26), then for 8 s (36 to 44), with a kernel line at 15."""
    import subprocess  # noqa: PLC0415

    from conftest import FakeNvml, clean_environment, cli_command  # noqa: PLC0415 - fixtures of function scope

    folder = tmp_path_factory.mktemp("chain")
    fake = FakeNvml(fake_library, folder / "state.txt", folder / "trace.txt")
    log = folder / "kern.log"
    log.write_text("")
    script = [
        "count=2",
        "gpu1.util=88",
        "gpu0.bus=00000000:01:00.0",
        "at=0 gpu0.util=92",
        "at=14 gpu0.util=4",
        "at=26 gpu0.util=91",
        "at=36 gpu0.util=3",
        "at=44 gpu0.util=90",
        "at=15.5 gpu0.xid=79",
        "gpu0.procs=4242:30000",
    ]
    start = fake.script(*script)
    command = cli_command("record", "--duration", "48", "--interval", "0.5", "--output", "r", "--kernel-log", log)
    recorder = subprocess.Popen(command, cwd=folder, env=clean_environment(fake.env()))
    time.sleep(max(0.0, start + 15 - time.time()))
    with log.open("a") as file:
        file.write(XID_LINE)
    assert recorder.wait(60) == 0
    command = cli_command("render", "report.html", "--run", "r", "--json", "s.json")
    done = subprocess.run(command, cwd=folder, env=clean_environment(), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    summary = json.loads((folder / "s.json").read_text())
    begun = json.loads((folder / "r" / "run.json").read_text())["start"]["wall_s"]
    return summary, start - begun, (folder / "report.html").read_text()


def test_the_drop_of_12_s_is_found_at_its_second_and_that_of_8_s_is_not(played):
    summary, offset, _ = played
    (drop,) = [f for f in summary["findings"] if f["rule"] == "drop"]
    assert drop["gpus"] == [0]
    assert drop["start_s"] == pytest.approx(14 + offset, abs=0.7)
    assert drop["end_s"] == pytest.approx(26 + offset, abs=0.7)
    assert drop["level_pct"] == 92
    assert drop["low_pct"] == pytest.approx(4, abs=0.5)


def test_the_kernel_event_stands_beside_it(played):
    summary, offset, page = played
    (drop,) = [f for f in summary["findings"] if f["rule"] == "drop"]
    assert drop["cause"]["name"] == "gpu-fault"
    (event,) = [e for e in drop["kernel_events"] if e["code"] == 79]
    assert event["gpu"] == 0
    assert event["t_s"] == pytest.approx(15 + offset, abs=0.7)
    assert XID_LINE.strip() in event["text"]
    assert "NVRM: Xid (PCI:0000:01:00): 79" in page


def test_nvmls_own_event_and_the_log_line_are_one(played):
    summary, _, _ = played
    xids = [e for e in summary["kernel"]["events"] if e["kind"] == "xid"]
    assert len(xids) == 1
    assert "NVML" in xids[0]["source"]
    assert summary["kernel"]["xid_events"] == "listening"


def test_every_tick_is_there_and_the_recorder_knows_its_own_cost(played):
    summary, _, _ = played
    assert summary["run"]["coverage_pct"] > 99
    assert [gpu["samples"] for gpu in summary["gpus"]] == [pytest.approx(97, abs=2)] * 2
    assert summary["recorder"]["cpu_pct"] < 10
    assert summary["run"]["ended_by"] == "duration"


def test_the_ledger_books_the_drop_on_the_fault(played):
    summary, _, _ = played
    ledger = {row["name"]: row["gpu_seconds"] for row in summary["ledger"]}
    assert ledger["gpu-fault"] == pytest.approx(12 * 0.96, abs=1)
    # GPU 1 was busy without a process of the run: it is not in the ledger
    assert sum(ledger.values()) == pytest.approx(summary["run"]["duration_s"], abs=0.01)
