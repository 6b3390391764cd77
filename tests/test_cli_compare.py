"""The gate in CI as it is called: its exit codes, its baselines, its gates from files."""

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support.stderr import one_line

SAMPLES = Path(__file__).resolve().parent.parent / "sample_runs"
ALIKE = Path(__file__).resolve().parent / "data" / "same_setup"


ONLY_WARN = [
    word for gate in ("epoch_time:+5%", "data_wait_share:+5pp", "findings.critical:0") for word in ("--warn-on", gate)
]


def test_an_improvement_passes_and_says_why(run_warm):
    done = run_warm("compare", SAMPLES / "n-starved", SAMPLES / "n-fed", env={"COLUMNS": "200"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "Passed. Training per epoch 12.2 s \u2192 2.9 s (4.2\u00d7 faster), because data loading got faster. "
    )
    assert "Likely reason: cache off \u2192 ram, workers 2 \u2192 14." in " ".join(done.stdout.split())
    assert "Passed:" in done.stdout.splitlines()[-1]


def test_a_regression_is_exit_1_and_names_the_gates(run_warm):
    done = run_warm("compare", SAMPLES / "n-fed", SAMPLES / "n-starved", env={"COLUMNS": "200"})
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("Failed: epoch_time:+5%, data_wait_share:+5pp")


@pytest.mark.parametrize(
    ("baseline", "run"),
    [("m-healthy", "m-ddp"), ("s-killed", "s-healthy"), ("fed", "xid31")],
)
def test_what_cannot_be_compared_is_exit_3(run_warm, baseline, run):
    done = run_warm("compare", SAMPLES / baseline, SAMPLES / run)
    assert done.returncode == 3
    assert "regressed" not in done.stdout
    assert "Not decided:" in done.stdout


def test_a_crash_fails_a_comparison_and_is_named(run_warm):
    done = run_warm("compare", SAMPLES / "s-healthy", SAMPLES / "s-killed", env={"COLUMNS": "400"})
    assert done.returncode == 1
    assert done.stdout.startswith("Failed. The run was cut short: SIGKILL ended the command")
    assert "in epoch 5 of 30. Training per epoch" in done.stdout  # that it failed for its end is not said once more
    assert done.stdout.splitlines()[-1] == "Failed: findings.critical:0."


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare"],
        ["compare", SAMPLES / "m-ddp", SAMPLES / "m-ddp", "--fail-on", "epoch:5"],
        ["compare", SAMPLES / "m-ddp", SAMPLES / "m-ddp", "--baseline-dir", "shelf"],
        ["compare", SAMPLES / "m-ddp", SAMPLES / "m-ddp", "--config", "not-there.toml"],
        ["check", SAMPLES / "m-ddp", "--fail-on", "xid.fatal"],
        ["baseline", "accept", SAMPLES / "m-ddp"],
        ["baseline", "accept", SAMPLES / "m-ddp", "--baseline-dir", "shelf", "--keep", "0"],
    ],
)
def test_wrong_use_is_exit_2(run_warm, arguments):
    done = run_warm(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_what_is_not_there_is_exit_4(run_warm):
    done = run_warm("compare", SAMPLES / "m-ddp", "nowhere")
    assert done.returncode == 4
    assert "nowhere does not exist" in one_line(done.stderr)


def test_all_that_is_not_there_is_named(run_warm):
    done = run_warm("compare", "a", "b")
    assert done.returncode == 4
    assert one_line(done.stderr) == "gpu-report: a and b do not exist: name run folders or samples CSVs"
    assert "a does not exist" in one_line(run_warm("compare", "a").stderr)
    assert "a, b and c do not exist" in one_line(run_warm("render", "x.html", "a", "b", "c").stderr)


@pytest.mark.parametrize("command", [["compare", ALIKE / "run-1"], ["check"]])
def test_a_folder_of_runs_is_no_run_and_that_is_said(run_warm, tmp_path, command):
    done = run_warm(*command, ALIKE)
    assert done.returncode == 4
    assert "same_setup is a folder of runs (run-1, run-2, run-3 and 6 more): name one of them" in one_line(done.stderr)
    (tmp_path / "empty").mkdir()
    assert "empty holds no run: name a run folder or a samples CSV" in one_line(run_warm(*command, "empty").stderr)
    (tmp_path / "empty" / "args.yaml").write_text("epochs: 3\n")
    said = one_line(run_warm(*command, "empty").stderr)
    assert "empty is YOLO's folder, not a recording: `gpu-report record` writes those, under gpu-runs/" in said


def test_gates_come_from_the_folders_file_and_the_command_line_wins(run_warm, tmp_path):
    (tmp_path / "setup.cfg").write_text("[gpu-report]\nfail_on = util:95%\n")
    assert run_warm("check", SAMPLES / "s-healthy").returncode == 1
    assert run_warm("check", SAMPLES / "s-healthy", "--fail-on", "util:50%").returncode == 0
    (tmp_path / "gates.toml").write_text('fail_on = ["util:50%", "epoch_time:+5%"]\n')
    assert run_warm("check", SAMPLES / "s-healthy", "--config", "gates.toml").returncode == 0


def test_gates_that_warn_never_change_the_exit_code(run_warm):
    done = run_warm("check", SAMPLES / "n-starved", "--warn-on", "util:40%", env={"COLUMNS": "200"})
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "Passed: 3 gates measured. 1 warning."


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("", ["--warn-on", "util:-10%"]),
        ('warn_on = ["util:-10%"]\n', []),
        ('fail_on = []\nwarn_on = ["util:-1pp"]\n', []),
    ],
)
def test_a_warning_that_is_named_switches_no_failure_off(run_warm, tmp_path, file, options):
    (tmp_path / "gpu-report.toml").write_text(file)
    done = run_warm("compare", ALIKE / "run-1", ALIKE / "stalls-1", *options, env={"COLUMNS": "200"})
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("Failed: epoch_time:+5%, data_wait_share:+5pp")


def test_the_command_line_replaces_one_level_of_the_file(run_warm, tmp_path):
    (tmp_path / "gpu-report.toml").write_text('fail_on = ["util:95%"]\nwarn_on = ["coverage:99%"]\n')
    done = run_warm("check", SAMPLES / "s-healthy", "--warn-on", "energy:1J", "--json", "check.json")
    made = json.loads((tmp_path / "check.json").read_text())["gates"]
    assert done.returncode == 1
    assert [(gate["gate"], gate["level"]) for gate in made] == [
        *(("util:95%", "fail"), ("findings.critical:0", "fail"), ("xid.fatal:0", "fail")),
        ("energy:1J", "warn"),
    ]


def test_check_leaves_a_files_gates_on_changes_out_names_them_and_takes_its_defaults(run_warm, tmp_path):
    (tmp_path / "gpu-report.toml").write_text('fail_on = ["epoch_time:+5%", "findings.new:0"]\n')
    done = run_warm("check", SAMPLES / "m-healthy", env={"COLUMNS": "200"})
    assert done.returncode == 0
    assert "findings.critical:0" in done.stdout
    said = one_line(done.stderr)
    assert "gpu-report.toml: epoch_time:+5%, findings.new:0 left out, because `check` has no baseline" in said


@pytest.mark.parametrize("gate", ["epoch_time:+5%", "util:-10pp", "findings.new:0"])
def test_a_gate_that_needs_a_baseline_is_wrong_use_for_check(run_warm, gate):
    for option in ("--fail-on", "--warn-on"):
        done = run_warm("check", SAMPLES / "m-healthy", option, gate)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"gate '{gate}' needs a baseline" in one_line(done.stderr)


def test_a_pass_that_is_unsure_says_so_in_its_last_line(run_warm):
    done = run_warm("compare", ALIKE / "run-5", ALIKE / "run-7", env={"COLUMNS": "200"})
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("Passed: ")
    assert "unsure (epoch_time:+5%" in done.stdout.splitlines()[-1]
    assert re.match(r"Passed \((\d warnings?, )?\d unsure\)\. ", done.stdout)


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["check", ALIKE / "run-1"], "Passed. Training per epoch"),
        (["check", SAMPLES / "n-starved"], "Passed (2 warnings). Training per epoch"),
        (["check", SAMPLES / "s-oom"], "Failed (1 warning). The run was cut short: the training ran out of GPU memory"),
        (["check", ALIKE / "run-1", "--fail-on", "data_wait:1ms"], "Failed: waiting for data per epoch 17 ms"),
        (
            ["compare", ALIKE / "run-1", ALIKE / "stalls-1"],
            "Failed (2 warnings). Training per epoch 5.9 s \u2192 8.1 s (37 % slower), because",
        ),
        (["compare", ALIKE / "run-1", ALIKE / "stalls-1", *ONLY_WARN], "Passed (2 warnings). Training per epoch 5.9 s"),
        (["compare", SAMPLES / "m-healthy", SAMPLES / "m-ddp"], "Not decided. Not comparable. GPUs used"),
    ],
)
def test_the_first_line_is_the_gates_answer(run_warm, arguments, first):
    done = run_warm(*arguments, env={"COLUMNS": "200"})
    assert done.stdout.startswith(first)
    answers = {0: "Passed", 1: "Failed", 3: "Not decided"}
    assert done.stdout.startswith(answers[done.returncode])
    assert f"\n{answers[done.returncode]}: " in done.stdout


def test_the_last_line_tells_gates_that_failed_from_warnings_and_counts_what_was_not_measured(run_warm):
    failed = run_warm("compare", ALIKE / "run-1", ALIKE / "stalls-1", env={"COLUMNS": "200"})
    assert failed.stdout.splitlines()[-1] == "Failed: epoch_time:+5%, data_wait_share:+5pp. 2 warnings."
    passed = run_warm("compare", SAMPLES / "n-starved", SAMPLES / "n-fed", env={"COLUMNS": "200"})
    assert passed.stdout.splitlines()[-1] == "Passed: 8 gates measured, 1 not measured."


def test_check_fails_on_a_crash_and_tells_what_it_could_not_say(run_warm):
    assert run_warm("check", SAMPLES / "s-healthy").returncode == 0
    assert run_warm("check", SAMPLES / "s-oom").returncode == 1
    assert run_warm("check", SAMPLES / "healthy", "--fail-on", "xid.fatal:0").returncode == 3


def test_baselines_are_found_by_set_up_and_moved_on(run_warm, tmp_path):
    for name in ("m-healthy", "n-fed"):
        done = run_warm("baseline", "accept", SAMPLES / name, "--baseline-dir", "shelf", "--key", "feature/x")
        assert done.returncode == 0
        assert (tmp_path / done.stdout.strip() / "samples.csv").is_file()
    shelf = ["--baseline-dir", "shelf", "--key", "feature/x"]
    worse = run_warm("compare", SAMPLES / "n-starved", *shelf)
    assert worse.returncode == 1
    # by when it began, whatever its folder was called
    assert re.search(r"^baseline  20261121-\d{6}-[0-9a-f]{8}  2026-11-21 ", worse.stdout, re.MULTILINE)
    # what was worse is what is wanted from now on
    run_warm("baseline", "accept", SAMPLES / "ab-workers-2", *shelf)
    assert run_warm("compare", SAMPLES / "n-starved", *shelf).returncode == 0


def test_baselines_are_listed_by_set_up_the_newest_first(run_warm, tmp_path):
    kept = {}
    for name, key in (("m-healthy", "main"), ("n-fed", "feature/x"), ("n-starved", "feature/x")):
        done = run_warm("baseline", "accept", SAMPLES / name, "--baseline-dir", "shelf", "--key", key)
        kept[name] = Path(done.stdout.strip())
    every = run_warm("baseline", "list", "--baseline-dir", "shelf")
    assert (every.returncode, every.stderr) == (0, "")
    lines = [line.split("  accepted ")[0].strip() for line in every.stdout.splitlines()]
    folder = kept["n-fed"].parent
    assert lines == [
        *(str(folder), kept["n-starved"].name, kept["n-fed"].name),
        *(str(kept["m-healthy"].parent), kept["m-healthy"].name),
    ]
    assert re.search(r"  accepted 2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", every.stdout, re.MULTILINE)
    one = run_warm("baseline", "list", "--baseline-dir", "shelf", "--key", "main")
    assert one.stdout.splitlines()[0] == str(kept["m-healthy"].parent)
    none = run_warm("baseline", "list", "--baseline-dir", "shelf", "--key", "other")
    assert (none.returncode, none.stdout) == (0, "")
    assert "no baseline of key other" in one_line(none.stderr)
    assert run_warm("baseline", "list", "--baseline-dir", "nowhere").returncode == 4


def test_a_first_baseline_is_accepted_only_where_there_is_none(run_warm, tmp_path):
    accept = ["baseline", "accept", "--baseline-dir", "shelf", "--if-none"]
    first = run_warm(*accept, ALIKE / "run-1")
    assert (first.returncode, first.stderr) == (0, "")
    second = run_warm(*accept, ALIKE / "run-2")
    assert (second.returncode, second.stdout) == (0, "")
    assert f"{first.stdout.strip()} is a baseline of this set-up already" in one_line(second.stderr)
    assert run_warm(*accept, SAMPLES / "m-ddp").stdout.startswith("shelf")
    assert len(list((tmp_path / "shelf").glob("default/*/*"))) == 2


NO_BASELINE = {
    "nowhere": "nowhere does not exist: either this is the first run, or the path is wrong",
    "empty": "empty is empty",
    "other-key": "other-key has none of key default, and has main",
    "other-set-up": "No baseline of this set-up under key default in other-set-up (GPUs used is 1 there, 2 here",
    "runs": "runs holds runs that were not accepted",
}


@pytest.mark.parametrize("where", NO_BASELINE)
def test_without_a_baseline_all_outputs_say_why_and_nothing_is_measured(run_warm, tmp_path, where):
    (tmp_path / "empty").mkdir()
    shutil.copytree(SAMPLES / "m-healthy", tmp_path / "runs" / "one")
    if where.startswith("other"):
        key = ["--key", "main"] if where == "other-key" else []
        run_warm("baseline", "accept", SAMPLES / "m-healthy", "--baseline-dir", where, *key)
    options = [word for option, name in OUTPUTS.items() for word in (option, f"out/{name}")]
    done = run_warm("compare", SAMPLES / "m-ddp", "--baseline-dir", where, *options, env={"COLUMNS": "400"})
    assert (done.returncode, done.stderr) == (3, "")
    assert NO_BASELINE[where] in done.stdout.splitlines()[0]
    accept = f"gpu-report baseline accept {SAMPLES / 'm-ddp'} --baseline-dir {where}"
    assert f". To make this run one:\n    {accept}\n" in done.stdout
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(OUTPUTS.values())
    made = json.loads((tmp_path / "out" / "c.json").read_text())
    assert (made["exit_code"], made["outcome"], made["baselines"]) == (3, "not measured", [])
    skipped = ET.parse(tmp_path / "out" / "c.xml").findall(".//testcase/skipped")
    assert len(skipped) == len(made["gates"]) == 9
    assert all(NO_BASELINE[where] in each.get("message") for each in skipped)
    assert "m-ddp, without a baseline" in (tmp_path / "out" / "c.html").read_text()


def test_a_run_held_against_itself_says_nothing_wherever_it_was_copied_to(run_warm, tmp_path):
    shutil.copytree(SAMPLES / "m-ddp", tmp_path / "copy")
    done = run_warm("compare", "copy", SAMPLES / "m-ddp", env={"COLUMNS": "200"})
    assert done.returncode == 3
    assert done.stdout.startswith("Not decided. The baseline is the run itself (copy)")


def test_a_single_name_is_the_baseline_and_that_is_said(run_warm, tmp_path):
    alone = run_warm("compare", SAMPLES / "n-starved")
    assert alone.returncode == 4
    assert "n-starved alone is a baseline, and no run is named: gpu-report compare BASELINE RUN" in one_line(
        alone.stderr
    )
    shutil.copytree(SAMPLES / "n-fed", tmp_path / "gpu-runs" / "20261121-010000")
    newest = run_warm("compare", "gpu-runs/20261121-010000")
    assert newest.returncode == 2
    assert "is the newest run itself" in one_line(newest.stderr)


def test_baselines_that_differ_as_much_are_named_and_too_few_epochs_decide_nothing(run_warm, tmp_path):
    for name in ("run-1", "run-2", "run-3"):
        shutil.copytree(ALIKE / name, tmp_path / "several" / name)
    options = ["--html", "c.html", "--markdown", "c.md"]
    done = run_warm("compare", "several", ALIKE / "run-4", *options, env={"COLUMNS": "400"})
    assert done.returncode == 3
    assert done.stdout.startswith(
        "Not decided. Training per epoch 5.9 s (median of 3 baselines) \u2192 6.8 s (16 % slower), but"
    )
    assert "too few epochs to be sure" in done.stdout
    band = "5.88 to 6.34 s. One more may take 4.75 to 7.32 s"
    assert f"Training per epoch of 3 baselines: {band} (95 %)." in done.stdout
    assert done.stdout.splitlines()[-1] == "Not decided: epoch_time:+5% (too few epochs)."
    for name in ("c.html", "c.md"):
        words = (tmp_path / name).read_text().replace("<br>", " ")
        assert "5.88 to 6.34 s (4.75 to 7.32 s)" in words


def test_a_run_cut_short_becomes_no_baseline(run_warm, tmp_path):
    done = run_warm("baseline", "accept", SAMPLES / "s-killed", "--baseline-dir", "shelf")
    assert done.returncode == 3
    assert "SIGKILL" in one_line(done.stderr)
    assert not (tmp_path / "shelf").exists()


def test_the_newest_run_is_compared_when_none_is_named(run_warm, tmp_path):
    shutil.copytree(SAMPLES / "n-fed", tmp_path / "gpu-runs" / "20261121-010000")
    done = run_warm("compare", SAMPLES / "n-starved")
    assert done.returncode == 0
    assert "the newest run, gpu-runs/20261121-010000, is compared with the baseline" in one_line(done.stderr)
    assert run_warm("check").returncode == 0


def test_a_folder_of_runs_is_several_baselines(run_warm, tmp_path):
    for name in ("s-cpu-taken", "s-loader-stall", "s-storage"):
        shutil.copytree(SAMPLES / name, tmp_path / "several" / name)
    done = run_warm("compare", "several", SAMPLES / "s-storage", env={"COLUMNS": "200"})
    assert done.returncode == 0
    assert "2 baselines" in done.stdout
    assert "one baseline is the run itself, and is left out" in one_line(done.stderr)


OUTPUTS = {
    "--html": "c.html",
    "--json": "c.json",
    "--markdown": "c.md",
    "--junit": "c.xml",
    "--bencher": "b.json",
    "--smaller-is-better": "s.json",
    "--bigger-is-better": "l.json",
}


def test_every_output_is_written_also_when_the_gate_fails(run_warm, tmp_path):
    options = [word for option, name in OUTPUTS.items() for word in (option, f"out/{name}")]
    done = run_warm("compare", SAMPLES / "n-fed", SAMPLES / "n-starved", *options)
    assert done.returncode == 1
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(OUTPUTS.values())
    assert json.loads((tmp_path / "out" / "c.json").read_text())["exit_code"] == 1
    assert (tmp_path / "out" / "c.html").read_text().startswith("<!doctype html>")


def test_check_writes_what_needs_no_baseline(run_warm, tmp_path):
    done = run_warm("check", SAMPLES / "n-fed", "--json", "c.json", "--junit", "c.xml", "--markdown", "c.md")
    assert done.returncode == 0
    assert json.loads((tmp_path / "c.json").read_text())["baselines"] == []


def test_on_github_there_are_annotations_and_a_summary_and_no_command_from_a_run(run_warm, tmp_path):
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    done = run_warm("compare", SAMPLES / "n-fed", SAMPLES / "n-starved", env=github)
    lines = done.stdout.splitlines()
    assert [line.split(" ")[0] for line in lines if line.startswith("::")] == ["::error"] * 2 + ["::warning"] * 3
    run_warm("check", SAMPLES / "n-fed", env=github)
    assert (tmp_path / "summary.md").read_text().count("## GPU report") == 2


def test_a_summary_that_cannot_be_written_is_a_note(run_warm, tmp_path):
    done = run_warm("check", SAMPLES / "n-fed", env={"GITHUB_STEP_SUMMARY": str(tmp_path)})
    assert done.returncode == 0
    assert "cannot be written" in one_line(done.stderr)


def test_a_file_that_cannot_be_written_is_exit_4(run_warm, tmp_path):
    (tmp_path / "file").write_text("")
    done = run_warm("check", SAMPLES / "n-fed", "--json", "file/c.json")
    assert done.returncode == 4
    assert "cannot be written" in one_line(done.stderr)


def test_another_gpu_model_is_exit_3_and_named(run_warm, tmp_path):
    shutil.copytree(SAMPLES / "m-healthy", tmp_path / "other")
    text = (tmp_path / "other" / "run.json").read_text()
    (tmp_path / "other" / "run.json").write_text(text.replace('"NVIDIA H200"', '"NVIDIA A100-SXM4-80GB"'))
    done = run_warm("compare", SAMPLES / "m-healthy", "other", env={"COLUMNS": "200"})
    assert done.returncode == 3
    assert "GPU model: NVIDIA H200 in the baseline, NVIDIA A100-SXM4-80GB in the run" in done.stdout


def test_a_recording_that_broke_off_is_exit_3(run_warm, tmp_path):
    """The files as they lie when the machine goes down: no end anywhere, and a torn last row."""
    shutil.copytree(SAMPLES / "s-healthy", tmp_path / "cut")
    for path in [*(tmp_path / "cut").glob("*.csv"), *(tmp_path / "cut").rglob("*.jsonl")]:
        whole = path.read_bytes()
        path.write_bytes(whole[: int(0.8 * len(whole))])
    info = json.loads((tmp_path / "cut" / "run.json").read_text())
    kept = {name: value for name, value in info.items() if name not in {"end", "ended_by", "exit_code", "exit_signal"}}
    (tmp_path / "cut" / "run.json").write_text(json.dumps(kept))
    done = run_warm("compare", SAMPLES / "s-healthy", "cut", env={"COLUMNS": "200"})
    assert done.returncode == 3
    assert "The run was cut short" in done.stdout


def test_a_run_is_not_its_own_baseline_and_a_broken_one_is_left_out(run_warm, tmp_path):
    runs = tmp_path / "gpu-runs"
    for number, name in enumerate(("s-cpu-taken", "s-loader-stall", "s-storage")):
        shutil.copytree(SAMPLES / name, runs / f"20261121-01000{number}")
    (runs / "20261121-000000").mkdir()
    (runs / "20261121-000000" / "samples.csv").write_text("wall_s,mono_s,gpu\n")
    done = run_warm("compare", "gpu-runs", runs / "20261121-010002", env={"COLUMNS": "200"})
    assert done.returncode == 0
    assert "20261121-000000/samples.csv has not one valid row" in done.stderr
    assert "2 baselines" in done.stdout
