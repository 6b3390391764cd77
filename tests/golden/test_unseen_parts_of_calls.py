"""Inference on an H200 with faults that no rule was written for: what lies within calls, or beside the program.

Designed and recorded by people who had not read a rule (2026-11-28). The truth was measured without the fault: a pinned
core 5.2 times as many images/s, another process on the GPU 2.5, a new shape in each call with cuDNN's autotuner 18.
"""

import tarfile

import pytest
from conftest import REPOSITORY

from gpu_report.analyse import analyse
from gpu_report.load import load_run


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    into = tmp_path_factory.mktemp("served")
    with tarfile.open(REPOSITORY / "tests" / "data" / "unseen_h200_served.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return lambda name: analyse(load_run(into / name))


def rules(analysis, severity="warning"):
    return {finding.rule for finding in analysis.findings if finding.severity == severity}


@pytest.mark.parametrize("name", ["foundry", "duet"])
def test_full_load_from_two_threads_is_no_fault_of_its_parts(analysed, name):
    """Each part contains waiting for the other thread's work on the GPU: there is no post-processing to shorten."""
    found = analysed(name)
    assert not rules(found)
    assert found.verdict.text.startswith("Nothing to fix was found in the calls of large.pt.")
    assert "Post-processing takes" not in found.verdict.text
