"""Falls of several ranks that wait for their loaders in turn are one."""

import dataclasses

import pytest
from support.runs import make_run

from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.rules.drops.merged_over_ranks import merged_over_ranks
from gpu_report.model import Advice, Cause, Finding, InsideEpoch, InsideRun, Options, Phase, YoloRun

AGAINST = (Advice("Keep cp2k off the CPU cores of the training"),)
LENGTHS = [100.0, 100.0, 160.0, 150.0, 100.0, 100.0]  # the ranks waited 30 s each in the third, 25 in the fourth


WAITS = [2.0, 1.0, 31.0, 26.0, 1.0, 1.0]


def two_ranks(lengths=LENGTHS, waits=WAITS):
    starts = [10.0 + sum(lengths[:n]) for n in range(len(lengths))]
    spans = [(start, start + length) for start, length in zip(starts, lengths, strict=True)]
    phases = tuple(Phase("train", n, *span, "inside") for n, span in enumerate(spans, 1))
    epochs = tuple(
        InsideEpoch(n, 1, *span, 3200, 100, wait, 0.0, 0.0)
        for n, (span, wait) in enumerate(zip(spans, waits, strict=True), 1)
    )
    ranks = tuple(
        InsideRun(1, rank, 41 + rank, "train", {"world_size": 2, "device": f"cuda:{rank}"}, phases, epochs, "finished")
        for rank in (0, 1)
    )
    run = make_run([[95.0] * 730] * 2)
    return build_context(
        dataclasses.replace(run, inside=ranks, yolo_runs=(YoloRun(1, None, {}, "recorded", None),)), Options()
    )


def fall(gpu, start_s, seconds=15.0, cause="input-cpu", confidence=0.9, advice=AGAINST):
    why = Cause(cause, confidence, "other programs took the cores")
    return Finding(
        f"{gpu}-{start_s}",
        "drop",
        "warning",
        gpu,
        start_s,
        start_s + seconds,
        "",
        level_pct=95.0,
        low_pct=20.0,
        cause=why,
        advice=advice,
    )


FALLS = [fall(0, 230.0), fall(1, 260.0), fall(0, 300.0, 40.0), fall(1, 450.0)]


def test_falls_of_ranks_in_turn_are_one_that_cost_what_all_of_them_waited():
    (found,) = merged_over_ranks(two_ranks(), FALLS)
    assert (found.rule, found.gpu, found.gpus, found.span) == ("slowdown", None, (0, 1), (230.0, 465.0))
    assert found.lost_gpu_s == pytest.approx(2 * 110)  # of each second that one waits, both lose it
    assert found.summary == "GPUs 0 and 1 waited for data in turn, 1 min 50 s in all within 3 min 55 s"
    assert found.advice == AGAINST


def test_ranks_that_wait_at_the_same_time_wait_once():
    (found,) = merged_over_ranks(two_ranks([100.0, 100.0, 130.0, 125.0, 100.0, 100.0]), FALLS[:3])
    assert found.summary == "GPUs 0 and 1 waited for data in turn, 30 s in all within 1 min 50 s"


def test_falls_in_epochs_that_waited_less_than_others_are_not_joined():
    falls = FALLS[:3]
    assert merged_over_ranks(two_ranks(waits=[2.0, 9.0, 1.0, 1.0, 9.0, 9.0]), falls) == falls


@pytest.mark.parametrize(
    "falls",
    [
        FALLS[:2],  # may be one that both felt
        [each for each in FALLS if each.gpu == 0],
        [fall(gpu, 230.0 + 60 * n, advice=()) for n, gpu in enumerate([0, 1, 0])],
        [fall(gpu, 230.0 + 60 * n, cause="main-process") for n, gpu in enumerate([0, 1, 0])],
        [fall(gpu, 230.0 + 60 * n, confidence=0.7) for n, gpu in enumerate([0, 1, 0])],
    ],
)
def test_other_falls_stay_what_they_are(falls):
    assert merged_over_ranks(two_ranks(), falls) == falls
