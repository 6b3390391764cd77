"""Of a training that was cut short one way on is offered: to resume it, or to start it again."""

from dataclasses import replace

import pytest
from support.samples import analysis_of, run_of

from gpu_report.analyse.advice.resume_or_restart import NEXT_TIME, RESTART, keep_faster_option
from gpu_report.analyse.build_context import build_context
from gpu_report.catalogue import ENDS_EPOCHS_KEY
from gpu_report.model import Advice, Cause, Ending, Evidence, Finding, Options, Projection

CONTEXT = build_context(run_of("m-long-stall"), Options())
RESUME = "yolo detect train resume model=a/last.pt"
ENDED = Finding(
    *("ended-1", "run-ended", "info", None, 540.0, 545.0, "stopped"),
    advice=(Advice(f"Resume after epoch 6: `{RESUME}`", resume=RESUME),),
)
LONGER = Finding(
    *("long-epoch-ends-1", "long-epoch-ends", "info", 0, 131.0, 520.0, "ends take 62 %"),
    advice=(
        Advice("List the images 4 times", gain_estimate=0.5, short="Validate less often, in epochs 4 times as long"),
    ),
)
STARVED = Finding(
    *("starved-1", "starved", "warning", 0, 131.0, 520.0, "waits"),
    cause=Cause("input-cpu", 0.9, "too few"),
    advice=(Advice("more would keep up", "workers", "2", "11", gain_estimate=0.7),),
)
FIX = Projection("workers=11", "input-cpu", 12.0, 3.0)


def resume_or_restart(
    *findings: Finding, ending: Ending | None = None, projection: Projection | None = None
) -> dict[str, Finding]:
    return {found.id: found for found in keep_faster_option(CONTEXT, findings, ending, projection)}


@pytest.mark.parametrize(
    ("ending", "anew"),
    [
        (Ending("interrupted", 545.0, 7, 20), True),  # 14 epochs are left, 20 take as long as 10 do now
        (Ending("interrupted", 545.0, 9, 20), False),  # 12 are left: too little is won for what was trained
        (Ending("interrupted", 545.0, 12, 20), False),
        (Ending("interrupted", 545.0, 10, 20, whole_epochs=True), False),
        (Ending("interrupted", 545.0, None, 20), False),
        (None, False),
    ],
)
def test_the_way_that_is_over_sooner_is_the_only_one(ending, anew):
    found = resume_or_restart(ENDED, LONGER, ending=ending)
    assert [bool(each.resume) for each in found["ended-1"].advice] == ([] if anew else [True])
    (longer,) = found["long-epoch-ends-1"].advice
    assert longer.short == (RESTART if anew else NEXT_TIME)
    assert (longer.gain_estimate is not None) == anew
    assert anew or longer.text == "In the next training: list the images 4 times"


def test_longer_epochs_are_not_worth_it_in_a_training_of_a_minute():
    brief = replace(LONGER, end_t_s=131.0 + 16 * 1.8, evidence=(Evidence("", 16, key=ENDS_EPOCHS_KEY),))
    at_once = {
        epochs: resume_or_restart(ENDED, brief, ending=Ending("interrupted", 545.0, 39, epochs)) for epochs in (40, 400)
    }
    assert at_once[40]["long-epoch-ends-1"].advice == ()
    assert at_once[400]["long-epoch-ends-1"].advice


def test_what_a_resumed_training_takes_anew_is_advised_for_it_and_the_rest_for_the_next():
    seldom = Advice("YOLO then validates last", "val", "True", "False", gain_at_most=0.4)
    workers = Advice("Validation waits", "workers", "4", "8", gain_at_most=0.1)
    slow = replace(LONGER, advice=(*LONGER.advice, seldom, workers))
    anew = resume_or_restart(ENDED, slow, ending=Ending("interrupted", 545.0, 7, 20))["long-epoch-ends-1"]
    assert anew.advice == (replace(LONGER.advice[0], short=RESTART), seldom, workers)
    *later, kept = resume_or_restart(ENDED, slow)["long-epoch-ends-1"].advice
    assert [each.text for each in later] == [
        "In the next training: list the images 4 times",
        "In the next training: YOLO then validates last",
    ]
    assert (later[1].argument, kept) == ("val", workers)


def test_a_training_is_resumed_with_the_setting_that_makes_it_faster():
    (advice,) = resume_or_restart(ENDED, STARVED, projection=FIX)["ended-1"].advice
    assert advice.resume == f"{RESUME} workers=11"
    assert advice.text == f"Resume after epoch 6: `{RESUME} workers=11`"
    (kept,) = resume_or_restart(ENDED, STARVED)["ended-1"].advice
    assert kept.resume == RESUME


def test_what_the_command_sets_already_is_not_set_twice():
    half = Advice("less", "workers", "8", "4")
    ended = replace(ENDED, advice=(half, *ENDED.advice))
    assert resume_or_restart(ended, STARVED, projection=FIX)["ended-1"] == ended


SLOW = Finding(
    *("environment-1", "environment", "warning", None, 0.0, 520.0, "computed in 32 bits"),
    advice=(Advice("Set it", "amp", "False", "True", gain_at_most=0.8, short="Set `amp=True`"),),
)


def test_a_setting_that_resuming_keeps_is_set_in_a_new_start_where_that_is_over_sooner():
    found = resume_or_restart(ENDED, SLOW, ending=Ending("interrupted", 545.0, 2, 4))
    assert found["ended-1"].advice == ()
    assert found["environment-1"].advice[0].short == "Restart with `amp=True`"
    (kept,) = resume_or_restart(ENDED, SLOW, ending=Ending("interrupted", 545.0, 20, 20))["ended-1"].advice
    assert kept.text == f"Resume after epoch 6: `{RESUME}`. It keeps `amp=False`: only a new start changes that"
    note = replace(SLOW, severity="info")
    assert resume_or_restart(ENDED, note, ending=Ending("interrupted", 545.0, 2, 4))["ended-1"] == ENDED


def test_what_cannot_be_resumed_is_left_as_it_is():
    gone = replace(ENDED, advice=())
    assert resume_or_restart(gone, LONGER, ending=Ending("interrupted", 545.0, 7, 20)) == {
        "ended-1": gone,
        "long-epoch-ends-1": LONGER,
    }


def test_a_real_run_offers_one_of_them():
    analysis = analysis_of("m-long-stall")
    assert analysis.verdict.text.startswith(f"{RESTART}: about 1.9\u00d7 faster. ")
    assert "resume" not in analysis.verdict.text.lower()
    assert not any(advice.resume for finding in analysis.findings for advice in finding.advice)
    assert ".train(resume=True, workers=16)`" in analysis_of("s-latency").verdict.text
