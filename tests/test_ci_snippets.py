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
ALIKE = ROOT / "tests" / "data" / "same_setup"
CI = ROOT / "docs" / "ci"
ACTION = yaml.safe_load((CI / "github-action" / "action.yml").read_text())
WORKFLOW = yaml.safe_load((CI / "github-workflow.yml").read_text())
GITLAB = yaml.safe_load((CI / "gitlab-ci.yml").read_text())
JENKINS = (CI / "Jenkinsfile").read_text()
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
BASH = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]  # as GitHub calls `shell: bash`


@pytest.fixture
def shell(tmp_path, warm_command):
    """A function that runs a step in an empty folder, where `gpu-report` is this checkout's.

    It has a process of its own where it is to find the fake NVML, which is the case from the start of a process on.
    """
    tools = tmp_path / "tools"
    tools.mkdir()
    own, warm = (shlex.join(words) for words in ([sys.executable, "-m", "gpu_report"], warm_command))
    words = f'#!/bin/sh\nif [ -n "$FAKE_NVML_STATE" ]; then exec {own} "$@"; fi\nexec {warm} "$@"\n'
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
    reports = {"report.html", "summary.json", "compare.html", "compare.json", "junit.xml", "summary.md"}
    assert found == {*reports, "check.json", "check.xml"}
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
        ("findings.critical:0", "fail"),
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


def test_the_action_keeps_nothing_that_could_not_be_decided_where_there_is_a_baseline(shell):
    given = {"baseline_dir": "baselines", "accept": "true", "undecided": "pass"}
    act(shell, run=str(ALIKE / "run-1"), **given)
    kept = list((shell.work / "baselines" / "main").glob("*/*"))
    assert act(shell, run=str(ALIKE / "run-4"), **given) == {"Report": 0, "Compare": 0, "Keep as a baseline": 0}
    assert shell.output.read_text().endswith("exit-code=3\n")
    assert list((shell.work / "baselines" / "main").glob("*/*")) == kept
    # of another set-up it is the first
    act(shell, run=str(SAMPLES / "m-ddp"), **given)
    assert len(list((shell.work / "baselines" / "main").glob("*/*"))) == 2


@pytest.mark.parametrize("baseline", [{"baseline": str(SAMPLES / "s-healthy")}, {"baseline_dir": "baselines"}])
def test_the_action_fails_on_a_crash_also_without_a_baseline(shell, baseline):
    codes = act(shell, run=str(SAMPLES / "s-oom"), undecided="pass", accept="true", **baseline)
    assert codes["Compare"] == 1
    assert shell.output.read_text().endswith("exit-code=1\n")
    compared = 1 if "baseline" in baseline else 3  # in an empty folder there is none
    assert json.loads((shell.work / "gpu-report" / "compare.json").read_text())["exit_code"] == compared
    assert json.loads((shell.work / "gpu-report" / "check.json").read_text())["exit_code"] == 1
    assert shell.summary.read_text().count("## GPU report") == 1
    assert not (shell.work / "baselines").exists()


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
    from gpu_report.analyse.compare.gate_syntax import parse_gate  # noqa: PLC0415 - one test needs it

    for gate in [*used["with"]["fail-on"].splitlines(), *used["with"]["warn-on"].splitlines()]:
        parse_gate(gate)


# --- GitLab ---------------------------------------------------------------------------------------------------


def expanded(variables, **given):
    return {**{name: str(value) for name, value in variables.items()}, **given}


def lines(script, trained=0):
    """Return a job's lines as GitLab runs them, in one shell; in place of a recording that has been made, its end."""
    return "\n".join(f"trained={trained}" if "gpu-report record" in line else line for line in script)


def test_gitlab_checks_and_compares_keeps_its_junit_and_warns_on_exit_3(shell):
    job = GITLAB["gpu-gate"]
    assert job["artifacts"]["when"] == "always"
    assert job["allow_failure"] == {"exit_codes": [3]}
    reports = job["artifacts"]["reports"]["junit"]
    assert reports == [f"{job['variables']['OUT']}/{name}.xml" for name in ("junit", "check")]
    env = expanded(job["variables"], RUN=str(ALIKE / "run-1"), KEY="main")
    gate, accept = lines(job["script"]), lines(GITLAB["gpu-baseline"]["script"])
    assert shell(gate, **env).returncode == 3  # no baseline yet
    assert all((shell.work / name).is_file() for name in reports)
    assert shell(accept, **env).returncode == 0
    assert shell(gate, **{**env, "RUN": str(ALIKE / "run-2")}).returncode == 0
    assert shell(gate, **{**env, "RUN": str(ALIKE / "stalls-1")}).returncode == 1
    assert shell(gate, **{**env, "RUN": str(SAMPLES / "s-oom")}).returncode == 1
    assert shell(accept, **{**env, "RUN": str(SAMPLES / "s-oom")}).returncode == 1
    # a training that failed is no warning, whatever its exit code
    assert shell(lines(job["script"], trained=3), **{**env, "RUN": str(ALIKE / "run-2")}).returncode == 1
    assert shell(job["after_script"][0], **env).returncode == 0
    assert (shell.work / "gpu-report" / "report.html").is_file()


def test_gitlab_records_what_it_later_compares(shell, fake_nvml):
    job = GITLAB["gpu-gate"]
    env = expanded(job["variables"], TRAIN="sleep 2; exit 3", KEY="main", **fake_nvml.env())
    assert shell(f"{job['script'][0]}; exit $trained", **env).returncode == 3
    assert (shell.work / job["variables"]["RUN"] / "samples.csv").is_file()
    assert GITLAB["gpu-baseline"]["script"][0] in job["script"][0]


def test_on_gitlab_a_merge_request_sees_the_baselines_of_a_protected_branch():
    gate, baseline = GITLAB["gpu-gate"], GITLAB["gpu-baseline"]
    assert gate["cache"] == {"key": "gpu-baselines", "paths": ["gpu-baselines"], "policy": "pull", "unprotect": True}
    assert baseline["cache"] == {"policy": "pull-push"}  # extends merges what is within
    assert [rule["if"] for rule in (*gate["rules"], *baseline["rules"])] == [
        "$CI_COMMIT_BRANCH != $CI_DEFAULT_BRANCH",
        "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH",
    ]


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
    used = {name for text in jenkins_scripts() for name in re.findall(r"\$(\w+)", text)}
    made = {name for text in jenkins_scripts() for name in re.findall(r"(?:^|for )\s*([a-z]\w*)(?:=| in )", text, re.M)}
    assert used - made == declared


def test_the_steps_of_the_jenkinsfile_run(shell, fake_nvml):
    install, record, compare, accept, first, render = jenkins_scripts()
    values = dict(re.findall(r"^    (\w+) = '(.*)'$", JENKINS, re.MULTILINE))
    env = {**values, "BASELINES": "baselines", "TRAIN": "sleep 2", **fake_nvml.env()}
    assert install.startswith("python3 -m pip install")
    assert shell(record, **env).returncode == 0
    assert shell(render, **env).returncode == 0
    shutil.rmtree(shell.work / "gpu-report")
    env = {**values, "BASELINES": "baselines"}

    def gate(run):
        return shell(compare, **{**env, "RUN": str(run)}).returncode

    assert gate(ALIKE / "run-1") == 3
    assert shell(first, **{**env, "RUN": str(ALIKE / "run-1")}).returncode == 0
    kept = list((shell.work / "baselines").glob("*/*/*"))
    assert [gate(ALIKE / "run-2"), gate(ALIKE / "stalls-1"), gate(SAMPLES / "s-oom")] == [0, 1, 1]
    # what could not be decided is no first one
    assert gate(ALIKE / "run-4") == 3
    assert shell(first, **{**env, "RUN": str(ALIKE / "run-4")}).returncode == 0
    assert list((shell.work / "baselines").glob("*/*/*")) == kept
    assert shell(accept, **{**env, "RUN": str(ALIKE / "run-2")}).returncode == 0
    assert len(list((shell.work / "baselines").glob("*/*/*"))) == 2


def test_jenkins_keeps_a_baseline_only_after_a_pass_or_as_the_first():
    stages = dict(re.findall(r"stage\('(Keep[^']*)'\) \{\s+when \{ (.*) \}\n", JENKINS))
    result = "branch 'main'; expression { currentBuild.currentResult == '%s' }"
    assert stages == {"Keep as a baseline": result % "SUCCESS", "Keep the first as a baseline": result % "UNSTABLE"}
    assert "code == 3) { unstable(" in JENKINS
    assert "code != 0) { error(" in JENKINS
