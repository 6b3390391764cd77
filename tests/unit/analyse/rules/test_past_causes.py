"""What held an earlier training back is a note where the last one has another setting, and is without it."""

from dataclasses import replace

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.rules.past_causes import with_past_causes_as_notes
from gpu_report.model import Cause, Evidence, Finding, InsideEpoch, InsideRun, Options, Phase

TWO, TWELVE = {"workers": 2}, {"workers": 12}


def trained(number, start, settings):
    """Return a training of three epochs of 100 s."""
    spans = [(start + 100.0 * n, start + 100.0 * (n + 1)) for n in range(3)]
    phases = tuple(Phase("train", n, a, b, "inside") for n, (a, b) in enumerate(spans, 1))
    epochs = tuple(InsideEpoch(n, 1, a, b, 100, 10, 0.0, 0.0, 0.0) for n, (a, b) in enumerate(spans, 1))
    return InsideRun(number, 0, 40 + number, "train", {"epochs": 3, **settings}, phases, epochs, "finished")


def run_of(*settings):
    """Return trainings with these settings, one after the other, of 300 s each with 10 s between."""
    inside = tuple(trained(n, 10.0 + 310.0 * n, each) for n, each in enumerate(settings))
    return replace(make_run(readings((0, 10), *([(20, 300), (0, 10)] * len(settings)))), inside=inside)


def starved(at, cause="input-cpu"):
    evidence = (Evidence("", 20.0, "%", key="steady_util_pct"),)
    cause = Cause(cause, 0.85, "2 data-loader workers could not keep up")
    return Finding(
        f"starved-{at}", "starved", "warning", 0, 10.0 + 310.0 * at, 300.0, "", evidence=evidence, cause=cause
    )


def past(run, *findings):
    found = with_past_causes_as_notes(build_context(run, Options()), findings)
    return [each.summary for each in found if each.number("past_in_training") and each.severity == "info"]


def test_what_a_later_training_mended_is_over():
    assert past(run_of(TWO, TWELVE), starved(0)) == [
        "In training 1 of 2 the GPU waited about 4 min: 2 data-loader workers could not keep up. "
        "Training 2 has workers=12"
    ]
    assert past(run_of(TWO, TWO, TWELVE), starved(0), starved(1)) != []


@pytest.mark.parametrize(
    ("settings", "findings"),
    [
        ((TWO, TWELVE), (starved(0), starved(1))),  # it still holds
        ((TWO, TWO), (starved(0),)),  # nobody changed anything
        ((TWO, {}), (starved(0),)),  # nobody knows
        ((TWO, TWELVE), (starved(1),)),  # of the last
        ((TWO, TWELVE), (starved(0, "launch-bound"),)),  # workers are nothing against small steps
        ((TWO,), (starved(0),)),
    ],
)
def test_it_is_not_over_where_it_still_holds_or_nothing_changed(settings, findings):
    assert past(run_of(*settings), *findings) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"cache": None}, {"cache": "ram"}, "has cache=ram"),
        ({"data_folder": "/nfs/a"}, {"data_folder": "/ssd/a"}, "reads /ssd/a"),
        ({"image_px": 4000}, {"image_px": 640}, "has images of 640 px"),
    ],
)
def test_images_that_come_from_elsewhere_mend_a_loader(before, after, said):
    (summary,) = past(run_of(before, after), starved(0))
    assert summary.endswith(f". Training 2 {said}")


def test_the_verdict_is_about_the_last_training_then(monkeypatch):
    monkeypatch.setattr("gpu_report.analyse.rules.low_utilisation.starved_gpus", lambda _: [])
    monkeypatch.setattr("gpu_report.analyse.rules.RULES", (lambda _: [starved(0)],))
    run = run_of(TWO, TWELVE)
    busy = make_run(readings((0, 10), (20, 300), (0, 10), (95, 300), (0, 10)))
    said = [sentence.text for sentence in analyse(replace(busy, inside=run.inside)).verdict.sentences]
    assert said[0].startswith("Nothing to fix: the GPU was busy 95 % of the time in training 2 of 2")
    assert said[1].startswith("In training 1 of 2 the GPU waited about 4 min")
