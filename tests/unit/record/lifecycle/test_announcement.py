"""What a recording says at its beginning of a folder that holds one already."""

import pytest

from gpu_report.record.lifecycle.announcement import ending, other_command


@pytest.mark.parametrize(
    ("earlier", "command", "says"),
    [
        (["python", "a.py"], ("python", "b.py"), "another command, python a.py. If this is not the same training"),
        (["python", "a b.py"], ("python", "b.py"), "another command, python 'a b.py'."),
        (["python", "a.py"], ("python", "a.py"), ""),
        (["python", "a.py"], (), ""),  # a recording of what this machine does
        ([], ("python", "b.py"), ""),
        (None, ("python", "b.py"), ""),
        (["python", "x" * 200], ("python", "b.py"), "xxx ..."),
    ],
)
def test_a_folder_of_another_command_is_said(earlier, command, says):
    said = other_command(earlier, command)
    assert says in said
    assert bool(said) is bool(says)


@pytest.mark.parametrize(("name", "typed"), [("-r", "./-r"), ("a b", "'a b'"), ("run", "run")])
def test_the_command_that_renders_can_be_pasted(monkeypatch, tmp_path, name, typed):
    monkeypatch.chdir(tmp_path)
    assert ending(tmp_path / name, lossy=False).endswith(f"Next: `gpu-report render report.html {typed}`")
