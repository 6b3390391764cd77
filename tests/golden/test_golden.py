"""The summary of each sample run is as it was; what it must say is held by test_accuracy.py."""

import json
import os
from pathlib import Path

import pytest
from support.samples import NAMES, SAMPLES, analysis_of, labels_of, run_of

from gpu_report.render.run.summary_json import build_summary

HERE = Path(__file__).parent
# Runs whose golden holds the whole summary: one of each way to record or import. Of the others only what is judged, to
# stay small.
IN_FULL = {
    "ddp",
    "faulted",
    "fed",
    "healthy",
    "starved",
    "xid31",
    "yolo26m-detail",
    "yolo26m-stalls",
    "yolo26n-cli",
}
JUDGED = ("verdict", "findings", "kernel", "ledger", "bounds")
# All that these rules find in any of the runs: (run, rule, severity).
FOUND = {
    ("faulted", "memory-growth", "critical"),
    ("m-other-process-leak", "memory-growth", "warning"),
    ("s-leak-oom", "memory-growth", "critical"),
    ("s-memory-steps", "memory-growth", "warning"),
    ("fed", "unused-gpu", "info"),
    ("m-two-gpus-one-used", "unused-gpu", "warning"),
}
FINDERS = {"memory-growth", "memory-near-limit", "not-credible", "unused-gpu", "imbalance"}
CALLBACK_S = 0.015  # one callback after another: at most 12 ms later on a busy machine
WITH_CALLBACKS = [name for name in NAMES if labels_of(name).events and (SAMPLES / name / "inside").exists()]


@pytest.mark.parametrize("name", NAMES)
def test_the_summary_is_as_it_was(name):
    summary = build_summary(analysis_of(name))
    del summary["tool"]["version"]
    summary["run"]["path"] = f"sample_runs/{name}"
    summary = summary if name in IN_FULL else {part: summary[part] for part in JUDGED}
    golden = HERE / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    assert summary == json.loads(golden.read_text())


@pytest.mark.parametrize("name", NAMES)
def test_they_find_nothing_but_what_was_done(name):
    findings = [finding for finding in analysis_of(name).findings if finding.rule in FINDERS]
    assert {(name, f.rule, f.severity) for f in findings} == {each for each in FOUND if each[0] == name}


@pytest.mark.parametrize("name", WITH_CALLBACKS)
def test_the_users_own_callbacks_came_when_ours_did(name):
    (inside,) = run_of(name).inside
    ours = {p.epoch: p.start_t_s for p in inside.phases if p.name == "validation"}
    theirs = {epoch: t_s for t_s, event, epoch in labels_of(name).events if event == "on_train_epoch_end"}
    assert theirs == pytest.approx(ours, abs=CALLBACK_S)


def test_every_sample_run_is_described():
    described = (SAMPLES / "README.md").read_text()
    assert [name for name in NAMES if f"`{name}`" not in described] == []


def test_the_real_xid_was_seen_by_both_routes():
    (event,) = [e for e in run_of("xid31").kernel.events if e.kind == "xid"]
    assert (event.code, event.gpu, event.pid, event.severity) == (31, 0, 803, "warning")
    assert event.source == "/dev/kmsg and NVML"
    assert event.text.startswith("NVRM: Xid (PCI:0000:00:06): 31, pid=803")


def test_the_largest_file_of_the_samples_is_small():
    assert max(p.stat().st_size for p in SAMPLES.rglob("*") if p.is_file()) < 600_000
