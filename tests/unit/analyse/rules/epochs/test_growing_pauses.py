"""Pauses between the last batch of an epoch and its validation that grow are one finding, and none of them a drop."""

import dataclasses

import pytest
from support.runs import make_run

from gpu_report.analyse import analyse
from gpu_report.model import InsideEpoch, InsideRun, Phase, YoloRun


def trained(*pauses_s, train_s=100.0, validation_s=10.0):
    """Return a training whose epochs pause for so long after their last batch, while the main process is busy."""
    phases, epochs, busy, t_s = [Phase("startup", None, 0.0, 10.0, "inside")], [], [0.0] * 10, 10.0
    for number, pause_s in enumerate(pauses_s, 1):
        last_s = t_s + train_s
        end_s = last_s + pause_s
        phases += [Phase("train", number, t_s, end_s, "inside")]
        phases += [Phase("validation", number, end_s, end_s + validation_s, "inside")]
        epochs.append(InsideEpoch(number, 1, t_s, last_s, 160, 10, 0.0, 0.0, 0.0))
        busy += [95.0] * round(train_s) + [0.0] * round(pause_s) + [50.0] * round(validation_s)
        t_s = end_s + validation_s
    inside = InsideRun(1, 0, 41, "train", {}, tuple(phases), tuple(epochs), "finished")
    yolo = YoloRun(1, None, {"epochs": len(pauses_s)}, "recorded", None)
    return dataclasses.replace(make_run(busy), inside=(inside,), yolo_runs=(yolo,))


GROWS = trained(*(11.0 + 9.0 * n for n in range(12)))


def test_pauses_that_grow_are_one_finding_with_what_each_epoch_adds():
    analysis = analyse(GROWS)
    (grew,) = [f for f in analysis.findings if f.rule == "epochs-slowing"]
    assert grew.summary == (
        "A pause after each epoch's training grew from 11 s to 1 min 50 s, 12 min in all. "
        "Each is about 9 s longer than the one before"
    )
    assert [f for f in analysis.findings if f.rule == "drop" and not f.expected] == []
    assert analysis.verdict.sentences[0].text.startswith("Find what grows at the end of each epoch's training")


def test_its_time_is_that_of_its_cause_and_no_gap_of_steps():
    shares = {row.name: row.share for row in analyse(GROWS).ledger}
    assert shares.get("short gaps", 0.0) < 0.05


@pytest.mark.parametrize(
    "pauses_s",
    [
        [20.0] * 12,  # as long each time: its drops say so
        [0.1 + 0.01 * n for n in range(12)],  # next to nothing
        [20.0, 60.0, 15.0, 70.0, 22.0, 40.0, 65.0, 18.0, 30.0, 50.0, 20.0, 35.0],  # by chance
    ],
)
def test_pauses_that_do_not_grow_are_none(pauses_s):
    assert [f for f in analyse(trained(*pauses_s)).findings if f.rule == "epochs-slowing"] == []
