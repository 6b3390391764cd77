"""Whether py-spy may look, tried for real; and the command that would change it, by what the kernel says."""

import pytest
from support.stand_in import REFUSED, answers, stand_in, thread

from gpu_report.record import doctor
from gpu_report.record.py_spy import permission


def test_what_py_spy_can_read_is_tried_on_a_process_of_our_own(tmp_path):
    sleeps = thread(("<string>", 1, "<module>"))
    assert permission.refusal(str(stand_in(tmp_path / "good", answers(tmp_path, [sleeps])))) is None
    refused = permission.refusal(str(stand_in(tmp_path / "bad", REFUSED)))
    assert refused.reason == "Permission Denied: Try running again with elevated permissions"
    assert refused.remedy


@pytest.mark.parametrize(
    ("scope", "is_allowed", "inside", "remedy"),
    [
        (1, False, None, "sudo sysctl kernel.yama.ptrace_scope=0"),
        (2, False, None, "sudo sysctl kernel.yama.ptrace_scope=0"),
        (3, False, None, "reboot"),
        (1, False, "docker", "--cap-add SYS_PTRACE"),
        (None, False, "kubernetes", "SYS_PTRACE"),
        (0, False, None, "as root"),
        (1, True, "docker", "pip install --upgrade py-spy"),
    ],
)
def test_the_command_that_would_change_it(scope, is_allowed, inside, remedy):
    assert remedy in permission._remedy(scope, is_allowed=is_allowed, inside=inside)


@pytest.mark.parametrize(
    ("status", "may"),
    [
        ("CapEff:\t000001ffffffffff\n", True),
        ("CapEff:\t00000000a80425fb\n", False),
        ("CapEff:\tnone", False),
        ("", False),
    ],
)
def test_the_capability_is_read_from_the_kernel(tmp_path, status, may):
    (tmp_path / "status").write_text(status)
    assert permission.may_trace(tmp_path / "status") is may


def test_the_scope_of_a_kernel_without_yama_is_not_known(tmp_path):
    assert permission._scope(tmp_path / "none") is None
    (tmp_path / "scope").write_text("1\n")
    assert permission._scope(tmp_path / "scope") == 1


def test_doctor_says_whether_it_is_there_and_why_it_may_not_look(tmp_path, monkeypatch):
    program: list[str | None] = [None]
    monkeypatch.setattr(doctor, "find_program", lambda: program[0])
    missing = doctor._stack_dumps()
    assert (missing.ok, missing.remedy) == (False, "to have them: `pip install py-spy`")
    program[0] = str(stand_in(tmp_path, REFUSED))
    refused = doctor._stack_dumps()
    assert not refused.ok
    assert "Permission Denied" in refused.finding
    assert refused.remedy
    stand_in(tmp_path, answers(tmp_path, [thread(("<string>", 1, "<module>"))]))
    assert doctor._stack_dumps().ok
