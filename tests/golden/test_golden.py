"""The summary of each sample run, and what it found held against what was done to the run."""

import json
import os
from pathlib import Path

import pytest

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.render.summary import build_summary

HERE = Path(__file__).parent
SAMPLES = HERE.parent.parent / "sample_runs"
RUNS = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())

# Faults whose effect on utilisation lasts 10 s or more, as (GPU, start, end) of the effect, seconds from the run's
# start. From the labels of the injections and the 10 Hz recording beside them; the analysis never sees these.
FELT = {
    "yolo26m-stalls": [(0, 66, 79)],
    "yolo26m-detail": [(0, 139, 155), (0, 209, 223)],
    "faulted": [(0, 42, 58), (0, 107, 120), (0, 134, 149)],
    "ddp": [(1, 64, 84)],
    "healthy": [],
    "starved": [],
    "fed": [],
    "yolo26n-cli": [],
    "xid31": [],
}
EDGE_S = 2.0
# Runs whose labels.json says what was done and when it was felt (benchmarks/labels.py).
LABELLED = ("m-", "n-", "s-", "fake-")
LABELS = {name: json.loads((SAMPLES / name / "labels.json").read_text()) for name in RUNS if name.startswith(LABELLED)}
UNNAMED = {"memory-growth"}  # 18 GiB in 30 s within a run of 2 minutes is not reported
RESTS = {"input-stalled", "input-storage", "input-cpu", "trainer-blocked", "waiting-for-peer"}  # causes that cost work
CALLBACK_S = 0.01  # one callback after another
BESIDE_S = 4.0  # a validation or a late first batch beside a fault may be taken into its drop
JUDGED = ("verdict", "findings", "kernel", "ledger", "bounds")  # what the goldens of labelled runs hold, to stay small


@pytest.fixture(scope="module", params=RUNS)
def run(request):
    return request.param, load_run(SAMPLES / request.param)


def test_the_summary_is_as_it_was(run):
    name, loaded = run
    summary = build_summary(analyse(loaded))
    del summary["tool"]["version"]
    summary["run"]["path"] = f"sample_runs/{name}"
    summary = {part: summary[part] for part in JUDGED} if name in LABELS else summary
    golden = HERE / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    assert summary == json.loads(golden.read_text())


@pytest.mark.parametrize("name", sorted(FELT))
def test_the_unexpected_drops_are_those_that_were_injected(name):
    drops = unexpected(load_run(SAMPLES / name))
    assert len(drops) == len(FELT[name])
    for (gpu, start, end), (true_gpu, true_start, true_end) in zip(drops, FELT[name], strict=True):
        assert gpu == true_gpu
        assert start == pytest.approx(true_start, abs=EDGE_S)
        assert end == pytest.approx(true_end, abs=EDGE_S)


@pytest.mark.parametrize("name", sorted(LABELS))
def test_the_unexpected_drops_are_those_that_were_felt(name):
    rests = [fault for fault in LABELS[name]["faults"] if fault["cause"] in RESTS]
    drops = sorted(unexpected(load_run(SAMPLES / name)), key=lambda drop: drop[1])
    assert len(drops) == len(rests)
    for (gpu, start, end), fault in zip(drops, rests, strict=True):
        assert fault["gpu"] in {gpu, None}
        assert fault["effect"][0] - BESIDE_S <= start <= fault["effect"][0] + EDGE_S
        assert fault["effect"][1] - EDGE_S <= end <= fault["effect"][1] + BESIDE_S


@pytest.mark.parametrize("name", sorted(LABELS))
def test_what_was_done_is_named(name):
    found = [f for f in analyse(load_run(SAMPLES / name)).findings if f.cause is not None]
    for fault in LABELS[name]["faults"]:
        start, end = fault["effect"] or fault["command"]
        beside = [f for f in found if f.start_t_s < end and f.end_t_s > start]
        named = {f.cause.name for f in beside if fault["gpu"] is None or f.gpu in {fault["gpu"], None}}
        assert (fault["cause"] in named) is (fault["cause"] not in {*UNNAMED, None})


@pytest.mark.parametrize("name", sorted(name for name, labels in LABELS.items() if labels.get("played")))
def test_what_was_played_is_told_where_it_was_played(name):
    (fault,) = LABELS[name]["faults"]
    (finding,) = [f for f in analyse(load_run(SAMPLES / name)).findings if f.cause and f.cause.name == fault["cause"]]
    assert (finding.start_t_s, finding.end_t_s) == pytest.approx(fault["effect"], abs=EDGE_S)


@pytest.mark.parametrize("name", ["m-healthy", "s-healthy", "n-fed", "m-ddp"])
def test_nothing_is_found_where_nothing_was_done(name):
    assert [f for f in analyse(load_run(SAMPLES / name)).findings if not f.expected] == []


@pytest.mark.parametrize("name", sorted(name for name, labels in LABELS.items() if labels["events"]))
def test_the_users_own_callbacks_came_when_ours_did(name):
    (inside,) = load_run(SAMPLES / name).inside
    ours = {p.epoch: p.start_t_s for p in inside.phases if p.name == "validation"}
    theirs = {epoch: t_s for t_s, event, epoch in LABELS[name]["events"] if event == "on_train_epoch_end"}
    assert theirs == pytest.approx(ours, abs=CALLBACK_S)


def unexpected(run):
    found = [f for f in analyse(run).findings if f.rule in {"drop", "sustained-low"} and not f.expected]
    return sorted((f.gpu, f.start_t_s, f.end_t_s) for f in found)


def test_every_sample_run_is_described():
    described = (SAMPLES / "README.md").read_text()
    assert [name for name in RUNS if f"`{name}`" not in described] == []
    assert set(FELT) | set(LABELS) == set(RUNS)


def test_the_real_xid_was_seen_by_both_routes():
    (event,) = [e for e in load_run(SAMPLES / "xid31").kernel.events if e.kind == "xid"]
    assert (event.code, event.gpu, event.pid, event.severity) == (31, 0, 803, "warning")
    assert event.source == "/dev/kmsg and NVML"
    assert event.text.startswith("NVRM: Xid (PCI:0000:00:06): 31, pid=803")


def test_the_largest_file_of_the_samples_is_small():
    assert max(p.stat().st_size for p in SAMPLES.rglob("*") if p.is_file()) < 600_000
