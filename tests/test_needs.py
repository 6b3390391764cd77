"""What make report and make test need of the system: installed where that asks nothing, else one command is named."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "needs"
TOOLS = ("bash", "sed")
TEST_PACKAGES = "python3.12-venv gcc libc6-dev nodejs npm chromium-headless-shell"
Machine = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A function that runs the script on a machine with these programs, and the Python version and user it is told."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in TOOLS:
        (programs / name).symlink_to(shutil.which(name) or "")

    def run(what: str, *there: str, uid: int = 0, version: str = "3.12", venv: bool = False, apt: bool = True):
        new_enough = int(version.partition(".")[2]) >= 11
        python = f"*print*) echo {version} ;; *exit*) {str(new_enough).lower()} ;; *) {str(venv).lower()} ;;"
        plays = {
            "id": f"echo {uid}",
            "python3": f'case "$2" in {python} esac',
            **({"apt-get": 'echo "$@" >>"$ASKED"', "apt-cache": "true"} if apt else {}),
            **dict.fromkeys(there, "true"),
        }
        for name, body in plays.items():
            (programs / name).write_text(f"#!{programs / 'bash'}\n{body}\n")
            (programs / name).chmod(0o755)
        env = {"PATH": str(programs), "HOME": str(tmp_path), "ASKED": str(tmp_path / "asked")}
        return subprocess.run([SCRIPT, what], env=env, capture_output=True, text=True, check=False)

    return run


def asked(tmp_path: Path) -> str:
    return (tmp_path / "asked").read_text() if (tmp_path / "asked").exists() else ""


def test_root_gets_what_is_missing(machine: Machine, tmp_path: Path) -> None:
    assert machine("test").returncode == 0
    assert asked(tmp_path).splitlines()[-1].endswith(f"--no-install-recommends {TEST_PACKAGES}")
    assert "-y" in asked(tmp_path)


def test_a_report_needs_no_more_than_an_environment_for_python(machine: Machine, tmp_path: Path) -> None:
    assert machine("venv").returncode == 0
    assert asked(tmp_path).splitlines()[-1].endswith("--no-install-recommends python3.12-venv")


def test_where_nothing_is_missing_nothing_is_asked_or_said(machine: Machine, tmp_path: Path) -> None:
    for chromium in ("chromium", "google-chrome"):
        done = machine("test", "cc", "node", "npm", chromium, venv=True)
        assert (done.returncode, done.stdout, done.stderr, asked(tmp_path)) == (0, "", "", "")


def test_another_user_is_given_one_command(machine: Machine, tmp_path: Path) -> None:
    done = machine("test", "cc", "chromium", uid=1000)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.endswith("sudo apt-get install -y --no-install-recommends python3.12-venv nodejs npm")
    assert asked(tmp_path) == ""


def test_a_machine_without_apt_is_given_the_names(machine: Machine) -> None:
    done = machine("test", apt=False)
    assert done.returncode == 1
    assert "python3.12-venv gcc libc6-dev nodejs npm" in done.stderr


def test_an_old_python_is_named_with_the_way_out(machine: Machine, tmp_path: Path) -> None:
    done = machine("venv", version="3.10")
    assert done.returncode == 1
    assert "3.10" in done.stderr
    assert "make PYTHON=" in done.stderr
    assert asked(tmp_path) == ""
