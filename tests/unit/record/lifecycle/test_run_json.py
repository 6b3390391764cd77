import os
import pwd

import pytest

from gpu_report import schema
from gpu_report.record.clocks import Clocks
from gpu_report.record.lifecycle import user_and_project
from gpu_report.record.lifecycle.run_json import at_start
from gpu_report.record.options import RecordOptions

START = Clocks(1000.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("ours", "command", "found"),
    [
        ("2,3", ("yolo", "train"), "2,3"),
        ("2,3", (), "2,3"),
        ("2", ("env", "A=b", "CUDA_VISIBLE_DEVICES=1", "yolo", "CUDA_VISIBLE_DEVICES=9"), "1"),
        (None, ("yolo", "CUDA_VISIBLE_DEVICES=9"), None),
        ("", (), ""),
    ],
)
def test_the_devices_that_cuda_may_see_are_those_of_the_command(monkeypatch, ours, command, found):
    if ours is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ours)
    assert at_start(RecordOptions(command=command), START, {})["cuda_visible_devices"] == found


@pytest.mark.parametrize(("found", "kept"), [("4711", "4711"), ("$(x)", None), (None, None)])
def test_of_slurm_the_jobs_number_is_kept_and_not_its_partition(monkeypatch, found, kept):
    monkeypatch.setenv("SLURM_JOB_PARTITION", "secret-partition")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if found is not None:
        monkeypatch.setenv("SLURM_JOB_ID", found)
    written = at_start(RecordOptions(), START, {})
    assert written["slurm_job_id"] == kept
    assert "secret-partition" not in str(written)


@pytest.mark.parametrize(
    ("variables", "user", "project"),
    [
        ({"GPU_REPORT_USER": "ann", "SLURM_JOB_USER": "bob", "GPU_REPORT_PROJECT": " cars "}, "ann", "cars"),
        ({"SLURM_JOB_USER": "bob", "SLURM_JOB_ACCOUNT": "vision"}, "bob", "vision"),
        ({"GPU_REPORT_USER": "x" * 300}, "x" * 200, None),
        ({"GPU_REPORT_PROJECT": "token=hunter22222"}, None, "token=***"),
        ({}, None, None),
    ],
)
def test_whose_it_is_is_what_variables_say_else_whom_the_machine_knows(monkeypatch, variables, user, project):
    for name in (*user_and_project.USER_VARIABLES, *user_and_project.PROJECT_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    written = at_start(RecordOptions(), START, {})
    assert written["user"] == (user or pwd.getpwuid(os.getuid()).pw_name)
    assert written["project"] == project


def test_a_user_without_a_name_is_not_known(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 987654)
    monkeypatch.delenv("GPU_REPORT_USER", raising=False)
    monkeypatch.delenv("SLURM_JOB_USER", raising=False)
    assert at_start(RecordOptions(), START, {})["user"] is None


def test_the_machine_is_described_by_exactly_the_fields_of_the_format():
    host = at_start(RecordOptions(), START, {})["host"]
    assert set(host) == {c.name for c in schema.RUN_HOST}
    assert 1 <= host["cores"] <= host["cores_online"]
