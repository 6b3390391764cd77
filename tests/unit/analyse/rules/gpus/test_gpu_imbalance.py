"""GPUs of one training that are far apart, and which of them is late."""

import dataclasses

import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings
from support.samples import SAMPLES

from gpu_report.analyse import analyse
from gpu_report.analyse.timeline.ranks import RankGroup
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.load import load_run
from gpu_report.model import InsideRun, YoloRun

NAN = float("nan")
SECONDS = 200


def pair(first=90.0, second=70.0, device="0,1", **second_gpu):
    """Return a run on two GPUs of so much utilisation; `second_gpu` are quantities that differ there."""
    series = [readings((0, 10), (util, 190)) if isinstance(util, float) else util for util in (first, second)]
    run = make_run(series, rows=[(n, 10 + 38 * n) for n in range(1, 6)])
    samples = run.samples.copy()
    for name, values in {
        "power_w": 400.0,
        "tensor_active_pct": 10.0,
        "memory_used_mib": 40_000.0,
        **second_gpu,
    }.items():
        samples.loc[samples["gpu"] == 0, name] = {"power_w": 400.0, "memory_used_mib": 40_000.0}.get(name, 10.0)
        samples.loc[samples["gpu"] == 1, name] = values
    yolo = (YoloRun(1, None, {"epochs": 5, "device": device}, "recorded", None),)
    return dataclasses.replace(run, samples=samples, yolo_runs=yolo)


def without(run, *names):
    return dataclasses.replace(run, samples=run.samples.assign(**dict.fromkeys(names, NAN)))


def found(run):
    return [finding for finding in analyse(run).findings if finding.rule == "imbalance"]


def test_gpus_far_apart_are_told_and_the_idler_one_is_late_where_the_other_does_no_more_work():
    (finding,) = found(pair())
    assert (finding.severity, finding.gpu) == ("warning", None)
    assert finding.summary == "GPU 0 waits for GPU 1: nvidia-smi shows GPU 0 as 90 % busy, GPU 1 as 70 %"
    assert ("utilisation of GPU 1 (mean)", 70.0) in {(e.text, e.value) for e in finding.evidence}


def test_what_a_gpu_is_busy_with_while_it_waits_is_no_work():
    waits = {row.name: row.gpu_seconds for row in analyse(pair()).ledger}
    works = {row.name: row.gpu_seconds for row in analyse(pair(tensor_active_pct=8.0)).ledger}
    assert "waiting-for-peer" not in works
    assert waits["waiting-for-peer"] > 0.05 * works["work"]
    assert waits["waiting-for-peer"] + waits["work"] == pytest.approx(works["work"])


def test_one_that_does_more_work_does_not_wait():
    (finding,) = found(pair(tensor_active_pct=8.0))
    assert finding.summary.endswith("GPU 0 does more of the work")


def test_power_tells_where_tensor_activity_was_not_recorded_and_else_nothing_does():
    (by_power,) = found(without(pair(power_w=300.0), "tensor_active_pct"))
    assert by_power.summary.endswith("GPU 0 does more of the work")
    (unknown,) = found(without(pair(), "tensor_active_pct", "power_w"))
    assert unknown.summary.endswith("utilisation alone does not show which of them is late")


@pytest.mark.parametrize(
    "run",
    [
        pair(second=76.0),
        pair(device="0"),
        pair(device=""),
        pair(second=[NAN] * SECONDS),
        pair(second=readings((0, 10), (90, 130), (47, 60))),  # by 17 points on average
        dataclasses.replace(pair(), yolo_runs=()),
    ],
    ids=["just under", "two trainings", "device not said", "not recorded", "not throughout", "no training known"],
)
def test_what_is_no_imbalance(run):
    assert found(run) == []


def test_a_guest_and_a_wait_for_a_peer_explain_themselves():
    rows = [
        (12.0, 0, 41, "python", 40_000.0, "appeared", "trainer", NAN),
        (12.0, 1, 42, "python", 40_000.0, "appeared", "trainer", NAN),
        (13.0, 1, 77, "serve", 900.0, "appeared", "other", 60.0),
    ]
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in rows], columns=PROCESSES)
    assert found(dataclasses.replace(pair(first=70.0, second=95.0), processes=table)) == []
    spins = readings((0, 10), (85, 60), (100, 70), (85, 60))
    power = [400.0] * 70 + [100.0] * 70 + [400.0] * 60
    late = readings((0, 10), (85, 60), (0, 70), (85, 60))
    waits = pair(first=late, second=spins, power_w=power)
    assert {f.rule for f in analyse(waits).findings} >= {"waiting-for-peer"}
    assert found(waits) == []


def with_neighbour(run, util_pct=60.0):
    """Return the run with another process on GPU 1 from the first reading on, which uses so much of it."""
    rows = [
        (1.0, 0, 41, "python", 20_000.0, "appeared", "trainer", 30.0),
        (1.0, 1, 42, "python", 20_000.0, "appeared", "trainer", 30.0),
        (1.0, 1, 77, "serve", 900.0, "appeared", "other", util_pct),
    ]
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in rows], columns=PROCESSES)
    return dataclasses.replace(run, processes=table)


def test_what_another_process_takes_of_one_gpu_all_gpus_of_the_training_lose():
    together, apart = (analyse(with_neighbour(pair(first=70.0, second=90.0, device=device))) for device in ("0,1", "0"))
    lost = [next(row.gpu_seconds for row in each.ledger if row.name == "other-process") for each in (together, apart)]
    # 60 of 90 % of 190 s on GPU 1; of GPU 0, which is busy 70 % and waits for it, as large a share
    assert lost[1] == pytest.approx(190 * 0.6, rel=0.05)
    assert lost[0] == pytest.approx(lost[1] + 190 * 0.7 * 60 / 90, rel=0.05)


def test_another_process_in_each_epoch_costs_what_it_took_of_the_gpu():
    analysis = analyse(with_neighbour(pair(first=70.0, second=90.0)))
    (limit,) = [limit for limit in analysis.speedup_limits if limit.cause == "other-process"]
    assert limit.epoch_s_at_best == pytest.approx(limit.epoch_s_now * (1 - 0.6), rel=0.05)
    assert "(epochs up to 2.5\u00d7 faster without)" in analysis.verdict.text
    (finding,) = [finding for finding in analysis.findings if finding.rule == "other-process"]
    assert finding.summary.endswith(": it took 60 % of training time")


def test_what_a_gpu_spins_for_a_late_one_is_no_work_that_an_epoch_is_bound_to():
    late = pair(first=90.0, second=30.0)
    (limit,) = analyse(late).speedup_limits
    assert limit.epoch_s_at_best == pytest.approx(0.3 * limit.epoch_s_now, rel=0.05)
    (limit,) = analyse(pair(first=90.0, second=30.0, tensor_active_pct=1.0)).speedup_limits  # it has more work
    assert limit.epoch_s_at_best == pytest.approx(0.9 * limit.epoch_s_now, rel=0.05)


def test_memory_far_apart_is_a_note():
    (finding,) = found(pair(second=90.0, memory_used_mib=27_000.0))
    assert finding.severity == "info"
    assert finding.summary.startswith("The training holds 39.1 GiB on GPU 0 and 26.4 GiB on GPU 1")
    assert found(pair(second=90.0, memory_used_mib=29_000.0)) == []
    assert found(pair(second=90.0, memory_used_mib=NAN)) == []


@pytest.mark.parametrize(
    ("device", "size"),
    [("0,1", 2), ([0, 1, 2], 3), ("[0, 1]", 2), ("cuda:0,1", 2), (0, 1), ("-1,-1", 2), ("", None), ("cpu", None)],
)
def test_the_number_of_gpus_is_read_from_the_device(device, size):
    asked = Training(1, (0.0, 10.0), args={"device": device})
    assert asked.world_size == size
    told = InsideRun(1, 0, 41, "train", {"world_size": 4}, (), ())
    assert dataclasses.replace(asked, rank_group=RankGroup((told,))).world_size == 4


@pytest.mark.parametrize("name", ["m-ddp", "s-ddp-hog", "m-ddp-stopped", "ddp"])
def test_the_sample_runs_on_two_gpus_are_even(name):
    assert found(load_run(SAMPLES / name)) == []


def test_the_verdict_says_which_gpu_waits_also_beside_what_leads():
    analysis = analyse(pair(60.0, 30.0))
    (finding,) = (each for each in analysis.findings if each.rule == "imbalance")
    assert finding.id in analysis.verdict.findings
    assert f"{finding.summary}." in analysis.verdict.text


def test_gpus_that_come_apart_later_are_apart_since_then():
    (finding,) = found(pair(readings((0, 10), (97, 190)), readings((0, 10), (97, 60), (60, 130)), power_w=300.0))
    assert finding.start_t_s == pytest.approx(70.0, abs=10.0)
    assert found(pair())[0].start_t_s <= 50.0  # from the steady state on
