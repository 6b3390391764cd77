"""The command under `record --`: its signals, its terminal and its exit code, whatever happens to the recorder."""

import errno
import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import clean_environment, cli_command, wait_for

GLIBC_INTERNAL = 0x180000000  # signals 32 and 33: its posix_spawn ignores them, and its threads set them anew
FAST = ("--interval", "0.1")
LOOPS = "import signal, sys, time\n"
EXITS_9_ON_SIGTERM = LOOPS + (
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\nopen('ready', 'w').close()\nwhile True: time.sleep(0.05)\n"
)
COUNTS_SIGINT = LOOPS + (
    "count = []\n"
    "signal.signal(signal.SIGINT, lambda *_: count.append(1))\n"
    "open('ready', 'w').close()\n"
    "time.sleep(1.5)\n"
    "time.sleep(0.5)\n"
    "open('count', 'w').write(str(len(count)))\n"
)


def test_the_exit_code_passes_through(run_cli, fake_nvml, recorded):
    done = run_cli("record", "--output", recorded.path, "--", "sh", "-c", "exit 42", env=fake_nvml.env())
    assert done.returncode == 42
    info = recorded.info()
    assert (info["ended_by"], info["exit_code"], info["exit_signal"]) == ("command", 42, None)
    assert recorded.events("command_ended")[0]["exit_code"] == 42


def test_arguments_streams_and_folder_are_the_commands_own(run_cli, fake_nvml, recorded, tmp_path):
    script = "import os, sys; print(sys.argv[1:], os.getcwd()); print('err', file=sys.stderr)"
    command = (sys.executable, "-c", script, "a b", "--gpus", "")
    done = run_cli("record", "--output", recorded.path, "--", *command, env=fake_nvml.env())
    assert done.stdout == f"['a b', '--gpus', ''] {tmp_path}\n"
    assert "err" in done.stderr


@pytest.mark.parametrize(("mode", "code"), [(None, 127), (0o644, 126), (0o755, 126)])
def test_a_command_that_cannot_be_started_has_the_shells_code(run_cli, fake_nvml, recorded, mode, code):
    program = recorded.path.with_name("program")
    if mode is not None:  # with 0o755 it is the interpreter that is not there
        program.write_text("#!/no/such/interpreter\n")
        program.chmod(mode)
    done = run_cli("record", "--output", recorded.path, "--", program, env=fake_nvml.env())
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == 1
    assert str(program) in done.stderr
    assert not recorded.path.exists()  # an empty run would be taken for the newest one


def test_a_command_killed_by_a_signal_is_137(run_cli, fake_nvml, recorded):
    done = run_cli("record", *FAST, "--output", recorded.path, "--", "sh", "-c", "kill -9 $$", env=fake_nvml.env())
    assert done.returncode == 137
    info = recorded.info()
    assert (info["exit_code"], info["exit_signal"]) == (137, "SIGKILL")
    assert recorded.events("command_ended")[0]["signal"] == "SIGKILL"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_to_the_recorder_is_passed_on(start_cli, fake_nvml, recorded, tmp_path, number):
    script = EXITS_9_ON_SIGTERM.replace("SIGTERM", number.name)
    running = start_cli(
        "record", *FAST, "--output", recorded.path, "--", sys.executable, "-c", script, env=fake_nvml.env()
    )
    wait_for((tmp_path / "ready").exists)
    done = running.stop(number)
    assert done.returncode == 9, done.stderr
    assert recorded.info()["exit_code"] == 9
    assert recorded.events()[-1]["kind"] == "recording_ended"
    (ended,) = recorded.events("command_ended")
    assert ended.get("asked") == (number.name if number in (signal.SIGTERM, signal.SIGINT) else None)
    assert ended.get("asked_before_s", 0.0) < 20


@pytest.mark.parametrize(
    ("number", "said", "severity"),
    [
        (signal.SIGINT, "Stopped by Ctrl-C", "info"),
        (
            signal.SIGTERM,
            "SIGTERM ended the command: its Slurm job was cancelled, preempted or over its time limit",
            "critical",
        ),
    ],
)
def test_who_stopped_a_command_is_said(start_cli, run_cli, fake_nvml, recorded, tmp_path, number, said, severity):
    script = f"{LOOPS}signal.signal(signal.SIGINT, signal.SIG_DFL)\nopen('ready', 'w').close()\ntime.sleep(60)"
    slurm = {"SLURM_JOB_ID": "4711", "SLURM_JOB_COMMENT": "not ours"}
    words = ("record", *FAST, "--output", recorded.path, "--", sys.executable, "-c", script)
    running = start_cli(*words, env={**fake_nvml.env(), **slurm})
    wait_for((tmp_path / "ready").exists)
    time.sleep(0.5)  # a row or two
    assert running.stop(number).returncode == 128 + number
    assert "not ours" not in (recorded.path / "run.json").read_text()
    summary = json.loads(run_cli("summary", recorded.path, "--format", "json").stdout)
    (finding,) = (each for each in summary["findings"] if each["rule"] == "run-ended")
    assert (finding["summary"], finding["severity"]) == (said, severity)
    assert summary["ending"]["kind"] == ("interrupted" if number == signal.SIGINT else "failed")


def test_a_key_on_the_terminal_reaches_the_command_once(fake_nvml, recorded, tmp_path):
    parent, child = pty.openpty()
    words = cli_command("record", *FAST, "--output", recorded.path, "--", sys.executable, "-c", COUNTS_SIGINT)
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *words],
        stdin=child, stdout=child, stderr=child, cwd=tmp_path, env=clean_environment(fake_nvml.env()),
    )  # fmt: skip
    os.close(child)
    try:
        wait_for((tmp_path / "ready").exists)
        os.write(parent, b"\x03")
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
        os.close(parent)
    assert (tmp_path / "count").read_text() == "1"
    assert recorded.events()[-1]["ended_by"] == "command"


def test_the_command_sees_the_terminal(fake_nvml, recorded, tmp_path):
    parent, child = pty.openpty()
    script = (
        "import os, sys; print(os.isatty(0), os.isatty(1), os.isatty(2), os.getpgid(0) == os.getpgid(os.getppid()))"
    )
    words = cli_command("record", "--output", recorded.path, "--", sys.executable, "-c", script)
    process = subprocess.Popen(
        words, stdin=child, stdout=child, stderr=child, cwd=tmp_path, env=clean_environment(fake_nvml.env())
    )
    os.close(child)
    assert process.wait(timeout=20) == 0
    assert b"True True True True" in read_all(parent)


def read_all(fd):
    data = b""
    try:
        while chunk := os.read(fd, 4096):
            data += chunk
    except OSError as error:
        assert error.errno == errno.EIO  # how Linux ends a terminal  # noqa: PT017
    finally:
        os.close(fd)
    return data


def signal_masks(text):
    return [int(line.split()[1], 16) & ~GLIBC_INTERNAL for line in text.splitlines()]


def test_the_command_starts_with_the_signals_it_would_have_without_us(run_cli, fake_nvml, recorded):
    command = ["sh", "-c", "grep -E 'SigBlk|SigIgn' /proc/self/status"]
    done = run_cli("record", "--output", recorded.path, "--", *command, env=fake_nvml.env())
    bare = subprocess.run(command, capture_output=True, text=True, check=True)
    assert signal_masks(done.stdout) == signal_masks(bare.stdout)


def test_the_recorder_holds_nothing_of_the_commands_files(run_cli, fake_nvml, recorded):
    script = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))"
    done = run_cli("record", "--output", recorded.path, "--", sys.executable, "-c", script, env=fake_nvml.env())
    assert done.stdout == "['0', '1', '2', '3']\n"  # 3 is the listing itself


def test_after_its_duration_the_recorder_waits_for_the_command(run_cli, fake_nvml, recorded):
    began = time.monotonic()
    done = run_cli(
        "record", *FAST, "--duration", "0.3", "--output", recorded.path, "--", "sh", "-c", "sleep 1.2; exit 5",
        env=fake_nvml.env(),
    )  # fmt: skip
    assert done.returncode == 5
    assert time.monotonic() - began > 1.2
    assert recorded.info()["ended_by"] == "duration"
    assert len(recorded.samples()) <= 5


def test_killing_the_recorder_leaves_the_command_and_all_but_the_last_tick(start_cli, fake_nvml, recorded, tmp_path):
    script = "import time; open('ready', 'w').close(); time.sleep(1.5); open('done', 'w').close()"
    running = start_cli(
        "record", *FAST, "--output", recorded.path, "--", sys.executable, "-c", script, env=fake_nvml.env()
    )
    wait_for((tmp_path / "ready").exists)
    wait_for(lambda: len(recorded.samples()) >= 5)
    running.process.kill()
    running.process.wait()
    killed_at = time.time()
    wait_for((tmp_path / "done").exists)
    assert killed_at - float(recorded.samples()[-1]["wall_s"]) < 0.5
    assert recorded.info()["end"] is None
    assert recorded.events("recording_ended") == []


def test_processes_that_outlive_the_command_are_named(run_cli, fake_nvml, recorded):
    outlives = "import os, time; os.fork() or (os.setsid(), time.sleep(20)); time.sleep(2.5)"
    command = (sys.executable, "-c", outlives)
    done = run_cli("record", *FAST, "--output", recorded.path, "--", *command, env=fake_nvml.env())
    (left,) = recorded.events("left_behind")
    (pid,) = left["pids"]
    os.kill(pid, signal.SIGKILL)
    assert left["gpus"] == []
    assert f"process {pid} of this command still runs. To stop:\n    kill {pid}\n" in done.stderr


def test_a_process_that_ends_with_the_command_is_not_left(run_cli, fake_nvml, recorded):
    follows = "import os, time; os.fork() or time.sleep(0.8); time.sleep(1.5)"
    command = (sys.executable, "-c", follows)
    run_cli("record", *FAST, "--output", recorded.path, "--", *command, env=fake_nvml.env())
    assert recorded.events("left_behind") == []


def test_secrets_of_the_command_line_do_not_reach_the_disk(run_cli, fake_nvml, recorded):
    words = ("true", "--token", "hunter2hunter2", "api_key=s3cr3ts3cr3t", "https://me:passw0rd@host/data.yaml")
    run_cli("record", "--output", recorded.path, "--", *words, env=fake_nvml.env())
    written = "".join(path.read_text() for path in recorded.path.glob("*") if path.is_file())
    assert "--token" in written
    for secret in ("hunter2", "s3cr3t", "passw0rd"):
        assert secret not in written


def test_versions_of_the_commands_environment_are_noted(run_cli, fake_nvml, recorded, tmp_path):
    binary = tmp_path / "venv" / "bin" / "train"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    (tmp_path / "venv/lib/python3.11/site-packages/ultralytics-8.4.190.dist-info").mkdir(parents=True)
    run_cli("record", "--output", recorded.path, "--", binary, env=fake_nvml.env())
    assert recorded.info()["ultralytics"] == "8.4.190"
    assert recorded.info()["torch"] is None
