"""The command line: exit codes, one line of error, whole files or none."""

import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from support.stderr import one_line

from gpu_report import __version__
from tests.conftest import clean_environment, cli_command

SAMPLES = Path(__file__).resolve().parent.parent / "sample_runs"
STALLS = SAMPLES / "yolo26m-stalls"


def test_version_and_help(run_cli):
    assert __version__ in run_cli("--version").stdout
    said = run_cli("--help").stdout
    assert all(command in said for command in ("record", "render", "summary", "import", "doctor", "demo"))


@pytest.mark.parametrize("command", ["record", "render", "summary", "import", "doctor", "demo"])
def test_every_command_has_help(run_warm, command):
    done = run_warm(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: gpu-report {command}")


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["render"],
        ["render", "r.html", "--drop-percent", "0"],
        ["render", "r.html", "--drop-seconds", "-1"],
        ["record", "--interval", "0"],
        ["record", "--typo", "--", "true"],
        ["record", "--interval", "nan", "--", "true"],
        ["record", "--duration", "inf"],
        ["summary", STALLS, "--price-per-hour", "nan"],
        ["summary", STALLS, "--drop-seconds", "nan"],
        ["summary", STALLS, "--drop-seconds", "1e308"],
        ["summary", STALLS, "--price-per-hour", "1e308"],
        ["summary", ""],
        ["render", "r.html", ""],
        ["record", "--output", "", "--", "true"],
        ["import", "--output", "", STALLS / "samples.csv"],
    ],
)
def test_wrong_usage_is_exit_2(run_warm, arguments):
    done = run_warm(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_render_writes_the_report_and_the_summary(run_cli, tmp_path):
    done = run_cli("render", "out/r.html", "--run", STALLS, "--json", "out/s.json")
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads((tmp_path / "out" / "s.json").read_text())
    assert " ".join(said["text"] for said in summary["verdict"]) in done.stdout
    assert "<html" in (tmp_path / "out" / "r.html").read_text()
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["r.html", "s.json"]


@pytest.mark.parametrize("command", [["render", "r.html"], ["summary"], ["check"]])
def test_a_run_is_named_either_way(run_warm, tmp_path, command):
    as_argument, as_option = run_warm(*command, STALLS), run_warm(*command, "--run", STALLS)
    assert (as_argument.returncode, as_argument.stdout) == (as_option.returncode, as_option.stdout)
    assert as_argument.returncode == 0, as_argument.stderr
    twice = run_warm(*command, STALLS, "--run", SAMPLES / "healthy")
    assert twice.returncode == 2
    assert "two runs are named" in one_line(twice.stderr)


def test_a_run_in_the_place_of_the_report_is_told_the_way_out(run_warm, tmp_path):
    shutil.copy(STALLS / "samples.csv", tmp_path / "mine.csv")
    kept = (tmp_path / "mine.csv").read_bytes()
    for run in (STALLS, "mine.csv"):
        done = run_warm("render", run)
        assert done.returncode == 2
        assert f"gpu-report render report.html {run}" in done.stderr
    assert (tmp_path / "mine.csv").read_bytes() == kept
    assert "name a file to write" in run_warm("demo", tmp_path).stderr


def test_render_takes_out_what_says_whose_run_it_was(run_warm, tmp_path):
    secrets = ("m-blocked", "/home/user", "train.py", "00000000-0000-4000-8000", ">vm<")
    run = SAMPLES / "m-blocked"
    for redacted in ([], ["--redact"]):
        done = run_warm("render", "r.html", "--run", run, "--json", "s.json", *redacted)
        assert done.returncode == 0, done.stderr
        html = (tmp_path / "r.html").read_text()
        written = html + (tmp_path / "s.json").read_text()
        assert [secret in written for secret in secrets] == [not redacted] * len(secrets)
    assert "[host 1]" in html


def test_render_takes_the_newest_run(run_warm, tmp_path):
    for name, source in (("20260101-000000", "healthy"), ("20260102-000000", "yolo26m-stalls")):
        shutil.copytree(SAMPLES / source, tmp_path / "gpu-runs" / name)
    done = run_warm("summary", "--format", "json")
    assert json.loads(done.stdout)["run"]["path"].endswith("20260102-000000")


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ("nowhere", "does not exist"),
        ("empty", "no table"),
        ("header", "not one valid row"),
        ("folder", "folder holds no run: name a run folder"),
    ],
)
def test_a_run_that_cannot_be_read_is_exit_4_and_leaves_no_file(run_warm, tmp_path, run, says):
    (tmp_path / "empty").write_text("")
    (tmp_path / "header").write_text("wall_s,mono_s,gpu,gpu_util_pct\n")
    (tmp_path / "folder").mkdir()
    done = run_warm("render", "r.html", "--run", run)
    assert done.returncode == 4
    assert says in one_line(done.stderr)
    assert not (tmp_path / "r.html").exists()


def test_without_any_run_the_error_says_how_to_make_one(run_warm):
    done = run_warm("summary")
    assert done.returncode == 4
    assert "gpu-report record" in one_line(done.stderr)


def test_an_output_that_cannot_be_written_is_exit_4(run_warm, tmp_path):
    (tmp_path / "file").write_text("x")
    done = run_warm("render", "file/r.html", "--run", STALLS)
    assert done.returncode == 4
    assert "cannot be written" in one_line(done.stderr)


def test_a_read_only_folder_is_exit_4(run_warm, tmp_path):
    if os.geteuid() == 0:
        done = run_warm("render", "/proc/r.html", "--run", STALLS)  # root may write everywhere but here
    else:
        (tmp_path / "locked").mkdir()
        (tmp_path / "locked").chmod(stat.S_IREAD | stat.S_IEXEC)
        done = run_warm("render", "locked/r.html", "--run", STALLS)
    assert done.returncode == 4
    assert "cannot be written" in one_line(done.stderr)


def test_an_output_to_a_link_goes_to_its_target_and_one_to_a_device_or_a_pipe_leaves_it_what_it_is(run_warm, tmp_path):
    (tmp_path / "target.json").write_text("x")
    (tmp_path / "link.json").symlink_to("target.json")
    assert run_warm("render", "r.html", "--run", STALLS, "--json", "link.json").returncode == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "target.json").read_text())["verdict"]
    (tmp_path / "full").symlink_to("/dev/full")
    done = run_warm("render", "full", "--run", STALLS)
    assert done.returncode == 4
    assert "No space left" in one_line(done.stderr)
    assert stat.S_ISCHR((tmp_path / "full").stat().st_mode)
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True) as reader:
        assert run_warm("render", "r.html", "--run", STALLS, "--json", "pipe").returncode == 0
        assert json.loads(reader.communicate()[0])["verdict"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("render", "r.html", "--run", "run", "--json", "run/samples.csv"), "would be lost"),
        (("render", "run/yolo/args.yaml", "--run", "run"), "would be lost"),
        (("render", "r.html", "--run", "run", "--json", "./r.html"), "two outputs"),
        (("check", "run", "--json", "same", "--junit", "same"), "two outputs"),
        (("compare", "run", "run", "--json", "-"), "no file"),
    ],
)
def test_an_output_that_would_be_lost_or_lose_something_is_exit_2(run_warm, tmp_path, arguments, says):
    shutil.copytree(STALLS, tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    done = run_warm(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_an_old_report_is_replaced_whole(run_warm, tmp_path):
    (tmp_path / "r.html").write_text("old")
    assert run_warm("render", "r.html", "--run", STALLS).returncode == 0
    assert (tmp_path / "r.html").read_text()[:3] != "old"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["summary", "x" * 5000], "File name too long"),
        (["render", f"{'x' * 300}.html", STALLS], "File name too long"),
        (["summary", STALLS], "No space left on device"),
        (["render", "r.html", STALLS], "No space left on device"),
    ],
)
def test_what_the_system_refuses_is_one_line_and_exit_4(tmp_path, words, says):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            cli_command(*words), env=clean_environment(), cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 4
    line = one_line(done.stderr.decode())
    assert says in line
    assert "internal error" not in line


@pytest.mark.parametrize("words", [["summary", STALLS], ["compare", STALLS, STALLS]])
def test_a_closed_stdout_is_no_error(tmp_path, words):
    shell = ["sh", "-c", '"$@" >&-', "sh", *cli_command(*words)]
    done = subprocess.run(shell, env=clean_environment(), cwd=tmp_path, stderr=subprocess.PIPE, check=False)
    assert done.returncode in {0, 3}
    assert done.stderr == b""


def test_debug_shows_the_traceback(run_warm):
    done = run_warm("--debug", "summary", "nowhere")
    assert done.returncode == 4
    assert "Traceback" in done.stderr


def test_summary_for_a_terminal_names_the_drop_its_second_and_its_epoch(run_warm):
    done = run_warm("summary", STALLS, env={"COLUMNS": "200"})
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("drop-1 "))
    assert re.fullmatch(r"drop-1   \w+   07:00:12 UTC   epoch \d+", lines[at])
    assert "13 s" in lines[at + 1]
    assert lines[at + 2].strip().startswith("Cause: ")


def test_summary_as_markdown_is_a_table(run_warm):
    done = run_warm("summary", STALLS, "--format", "markdown")
    assert "### Findings" in done.stdout
    assert "| drop-1 |" in done.stdout


def test_drop_options_reach_the_analysis(run_warm):
    done = run_warm("summary", STALLS, "--format", "json", "--drop-seconds", "14", "--price-per-hour", "4")
    summary = json.loads(done.stdout)
    assert [f for f in summary["findings"] if f["rule"] == "drop"] == []
    assert sum(row["money"] for row in summary["ledger"]) == pytest.approx(
        4 * summary["run"]["duration_s"] / 3600, rel=1e-2
    )


def test_a_hostile_name_reaches_a_terminal_without_its_controls(run_warm, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(STALLS, folder)
    info = json.loads((folder / "run.json").read_text())
    info["gpus"][0]["name"] = "\x1b[2J[bold]H200\u202e"
    (folder / "run.json").write_text(json.dumps(info))
    for form in ("text", "markdown"):
        out = run_warm("summary", folder, "--format", form).stdout
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "bold" in out


@pytest.mark.parametrize(
    ("encoding", "form"), [("ascii", "text"), ("ascii", "json"), ("iso8859-5", "markdown"), ("utf-8", "text")]
)
def test_no_name_and_no_encoding_of_the_terminal_ends_the_summary(run_cli, tmp_path, encoding, form):
    folder = tmp_path / "run"
    shutil.copytree(STALLS, folder)
    info = json.loads((folder / "run.json").read_text())
    info["gpus"][0]["name"] = "H200 \ud800 \u4e2d"
    (folder / "run.json").write_text(json.dumps(info))
    done = run_cli("summary", folder, "--format", form, env={"PYTHONIOENCODING": encoding, "LC_ALL": "C"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "H200 " in done.stdout


def test_the_summary_has_every_quantity_of_a_gpu_and_null_where_nothing_is_known(run_warm, tmp_path):
    (tmp_path / "mine.csv").write_text("wall_s,gpu,gpu_util_pct\n" + "".join(f"{1.8e9 + t},0,90\n" for t in range(20)))
    summary = json.loads(run_warm("summary", "mine.csv", "--format", "json").stdout)
    assert summary["environment"]["args"] is None
    (gpu,) = summary["gpus"]
    assert gpu["gpu_util_pct"]["mean"] == 90
    unknown = ("memory_used_mib", "power_w", "temperature_c", "sm_clock_mhz", "sm_active_pct", "tensor_active_pct")
    assert [gpu[name] for name in (*unknown, "dram_active_pct")] == [None] * 7


def test_demo_renders_the_shipped_run(run_cli, tmp_path):
    done = run_cli("demo")
    assert done.returncode == 0
    assert "workers=11" in done.stdout  # what to change
    assert "explain" not in done.stdout
    assert (tmp_path / "demo.html").stat().st_size > 100_000


def test_doctor_says_what_is_missing_and_what_would_help(run_cli):
    done = run_cli("doctor", env={"LD_LIBRARY_PATH": "/nonexistent"})
    assert done.returncode == 0
    assert "NVIDIA driver" in done.stdout
    assert "->" in done.stdout


def test_doctor_lists_what_a_gpu_can_tell(run_cli, fake_nvml):
    fake_nvml.write("count=1\nerror.nvmlDeviceGetPowerUsage=3\n")
    done = run_cli("doctor", env=fake_nvml.env())
    assert "GPU 0" in done.stdout
    assert "power" in done.stdout
