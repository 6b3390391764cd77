"""The action and the snippets for CI: parsed, and their shell steps run as the services run them."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import clean_environment

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_runs"
CI = ROOT / "docs" / "ci"
ACTION = yaml.safe_load((CI / "github-action" / "action.yml").read_text())
WORKFLOW = yaml.safe_load((CI / "github-workflow.yml").read_text())
GITLAB = yaml.safe_load((CI / "gitlab-ci.yml").read_text())
JENKINS = (CI / "Jenkinsfile").read_text()
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
BASH = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]  # as GitHub calls `shell: bash`


@pytest.fixture
def shell(tmp_path):
    """A function that runs a step in an empty folder, where `gpu-report` is this checkout's."""
    tools = tmp_path / "tools"
    tools.mkdir()
    words = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gpu_report "$@"\n'
    (tools / "gpu-report").write_text(words)
    (tools / "gpu-report").chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()

    def run(script, **env):
        path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        files = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
        return subprocess.run(
            [*BASH, script],
            cwd=work,
            env=clean_environment({"PATH": path, "GITHUB_ACTIONS": "true", **files, **env}),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    run.work = work
    run.output = tmp_path / "output"
    run.summary = tmp_path / "summary.md"
    return run


def inputs(**given):
    """Return every input of the action: its default, or what a workflow gives."""
    known = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
    assert set(given) <= {name.replace("-", "_") for name in known}
    return {**known, "key": "main", **{name.replace("_", "-"): value for name, value in given.items()}}


def environment(step, values, code=""):
    """Return a step's environment as GitHub fills it in."""
    texts = {**{f"inputs.{name}": value for name, value in values.items()}, "steps.gate.outputs.exit-code": code}
    return {name: texts[re.fullmatch(r"\$\{\{ (\S+) \}\}", text)[1]] for name, text in step["env"].items()}


def act(shell, machine=None, **given):
    """Run the action's steps of shell after the installation, on a machine; return their exit codes by name."""
    values, codes, code = inputs(**given), {}, ""
    for name in ("Record", "Report", "Compare", "Keep as a baseline"):
        step = STEPS[name]
        if not wanted(step, values):
            continue
        done = shell(step["run"], **environment(step, values, code), **(machine or {}))
        codes[name] = done.returncode
        if name == "Compare" and shell.output.exists():
            code = re.findall(r"^exit-code=(\d)$", shell.output.read_text(), re.MULTILINE)[-1]
    return codes


def wanted(step, values):
    """Evaluate the conditions that the action uses, and fail on any other."""
    parts = re.fullmatch(r"\$\{\{ (.+) \}\}", step.get("if", "${{ !cancelled() }}"))[1].split(" && ")
    results = []
    for part in parts:
        if part in {"!cancelled()", "always()"}:
            results.append(True)
            continue
        name, sign, text = re.fullmatch(r"inputs\.(\S+) (==|!=) '(.*)'", part).groups()
        results.append((values[name] == text) == (sign == "=="))
    return all(results)


# --- the action -----------------------------------------------------------------------------------------------


def test_nothing_from_a_workflow_is_pasted_into_a_script():
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        assert step.get("shell", "bash") == "bash"
        assert "shell" in step or "uses" in step


def test_every_expression_names_an_input_that_there_is():
    text = (CI / "github-action" / "action.yml").read_text()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])


def test_reports_and_artifact_come_also_when_the_training_or_the_gate_failed():
    assert STEPS["Upload"]["if"] == "${{ always() }}"
    assert STEPS["Upload"]["uses"].startswith("actions/upload-artifact@")
    assert {STEPS[name]["if"] for name in ("Report", "Compare")} == {"${{ !cancelled() }}"}


def test_the_action_installs_the_checkout_that_it_lies_in():
    line = STEPS["Install gpu-report"]["run"]
    assert (CI / "github-action" / "../../.." / "setup.cfg").resolve() == ROOT / "setup.cfg"
    assert "$ACTION_PATH/../../.." in line


def test_the_action_fails_on_a_regression_and_leaves_its_reports(shell):
    codes = act(shell, run=str(SAMPLES / "n-starved"), baseline=str(SAMPLES / "n-fed"))
    assert codes == {"Report": 0, "Compare": 1}
    found = {path.name for path in (shell.work / "gpu-report").iterdir()}
    assert found == {"report.html", "summary.json", "compare.html", "compare.json", "junit.xml", "summary.md"}
    assert json.loads((shell.work / "gpu-report" / "compare.json").read_text())["outcome"] == "failed"
    assert "## GPU report: the gate failed" in shell.summary.read_text()


def test_the_action_passes_an_improvement_with_gates_of_its_own(shell):
    gates = "epoch_time:+5%\n\nxid.fatal:0\n"
    given = {
        "run": str(SAMPLES / "n-fed"),
        "baseline": str(SAMPLES / "n-starved"),
        "fail_on": gates,
        "warn_on": "util:-1%",
    }
    assert act(shell, **given) == {"Report": 0, "Compare": 0}
    made = json.loads((shell.work / "gpu-report" / "compare.json").read_text())["gates"]
    assert [(gate["gate"], gate["level"]) for gate in made] == [
        ("epoch_time:+5%", "fail"),
        ("xid.fatal:0", "fail"),
        ("util:-1%", "warn"),
    ]


@pytest.mark.parametrize(("undecided", "code"), [("fail", 3), ("pass", 0)])
def test_the_action_makes_of_what_cannot_be_compared_what_it_is_told(shell, undecided, code):
    given = {"run": str(SAMPLES / "m-ddp"), "baseline": str(SAMPLES / "m-healthy"), "undecided": undecided}
    assert act(shell, **given)["Compare"] == code
    assert shell.output.read_text().endswith("exit-code=3\n")


def test_the_action_keeps_the_first_run_as_a_baseline_and_then_what_passes(shell):
    given = {"baseline_dir": "baselines", "accept": "true", "undecided": "pass"}
    first = act(shell, run=str(SAMPLES / "n-fed"), **given)
    assert (first["Compare"], first["Keep as a baseline"]) == (0, 0)
    kept = list((shell.work / "baselines" / "main").glob("*/*"))
    assert len(kept) == 1
    assert act(shell, run=str(SAMPLES / "n-starved"), **given)["Compare"] == 1
    assert list((shell.work / "baselines" / "main").glob("*/*")) == kept


def test_the_action_records_a_command_and_tells_its_failure(shell, fake_nvml):
    codes = act(shell, fake_nvml.env(), command="echo training; sleep 2; exit 7")
    assert codes["Record"] == 7
    assert codes["Report"] == 0
    assert codes["Compare"] == 1  # the command failed: a critical finding


# --- the workflow ---------------------------------------------------------------------------------------------


def test_the_workflow_gives_the_action_inputs_that_it_has():
    steps = WORKFLOW["jobs"]["gate"]["steps"]
    (used,) = [step for step in steps if "docs/ci/github-action" in step.get("uses", "")]
    assert set(used["with"]) <= set(ACTION["inputs"])
    from gpu_report.analyse.gates import parse_gate  # noqa: PLC0415 - one test needs it

    for gate in [*used["with"]["fail-on"].splitlines(), *used["with"]["warn-on"].splitlines()]:
        parse_gate(gate)


# --- GitLab ---------------------------------------------------------------------------------------------------


def expanded(variables, **given):
    return {**{name: str(value) for name, value in variables.items()}, **given}


def test_gitlab_compares_keeps_its_junit_and_warns_on_exit_3(shell):
    job = GITLAB["gpu-gate"]
    assert job["artifacts"]["when"] == "always"
    assert job["allow_failure"] == {"exit_codes": [3]}
    assert job["artifacts"]["reports"]["junit"] == f"{job['variables']['OUT']}/junit.xml"
    env = expanded(job["variables"], RUN=str(SAMPLES / "n-fed"), KEY="main")
    compare, accept = job["script"][1], GITLAB["gpu-baseline"]["script"][2]
    assert shell(compare, **env).returncode == 3  # no baseline yet
    assert shell(accept, **env).returncode == 0
    assert shell(compare, **env).returncode == 0
    assert (shell.work / job["artifacts"]["reports"]["junit"]).is_file()
    assert shell(compare, **{**env, "RUN": str(SAMPLES / "n-starved")}).returncode == 1
    assert shell(job["after_script"][0], **env).returncode == 0
    assert (shell.work / "gpu-report" / "report.html").is_file()


def test_gitlab_records_what_it_later_compares(shell, fake_nvml):
    job = GITLAB["gpu-gate"]
    env = expanded(job["variables"], TRAIN="sleep 2", KEY="main", **fake_nvml.env())
    assert shell(job["script"][0], **env).returncode == 0
    assert (shell.work / job["variables"]["RUN"] / "samples.csv").is_file()
    assert GITLAB["gpu-baseline"]["script"][0] == job["script"][0]


# --- Jenkins --------------------------------------------------------------------------------------------------


def jenkins_scripts():
    return [re.sub(r"\\\n", " ", text).strip() for text in re.findall(r"'''(.*?)'''", JENKINS, re.DOTALL)]


def test_the_jenkinsfile_is_balanced_and_its_environment_is_all_that_its_steps_use():
    bare = re.sub(r"'''.*?'''|'[^'\n]*'|\"[^\"\n]*\"|//[^\n]*", "", JENKINS, flags=re.DOTALL)
    for left, right in ("{}", "()"):
        depth = 0
        for letter in bare:
            depth += (letter == left) - (letter == right)
            assert depth >= 0
        assert depth == 0
    declared = set(re.findall(r"^    (\w+) = '", JENKINS, re.MULTILINE))
    assert {name for text in jenkins_scripts() for name in re.findall(r"\$(\w+)", text)} == declared


def test_the_steps_of_the_jenkinsfile_run(shell, fake_nvml):
    install, record, compare, accept, render = jenkins_scripts()
    values = dict(re.findall(r"^    (\w+) = '(.*)'$", JENKINS, re.MULTILINE))
    env = {**values, "BASELINES": "baselines", "TRAIN": "sleep 2", **fake_nvml.env()}
    assert install.startswith("python3 -m pip install")
    assert shell(record, **env).returncode == 0
    assert shell(render, **env).returncode == 0
    real = {**env, "RUN": str(SAMPLES / "n-fed")}
    assert [shell(step, **real).returncode for step in (compare, accept, compare)] == [3, 0, 0]
    assert shell(compare, **{**real, "RUN": str(SAMPLES / "n-starved")}).returncode == 1
    assert "code == 3) { unstable(" in JENKINS
    shutil.rmtree(shell.work)
