"""What a person is told to do next is something that they have not done already."""

from dataclasses import replace

import pytest

from gpu_report import model
from gpu_report.render.next_steps import gaps_step, next_step
from gpu_report.render.page.sections.findings import advice_title, first_advice

UNEXPLAINED = model.Finding(
    "drop-1", "drop", "warning", 0, 1.0, 20.0, "It fell.", cause=model.Cause("unexplained", 0.0, "")
)


@pytest.mark.parametrize(
    ("command", "told", "not_told"),
    [((), "gpu-report record -- COMMAND", "python -I"), (("yolo", "train"), "python -I", "record -- COMMAND")],
)
def test_a_recording_that_had_its_command_is_not_told_to_have_one(
    analysis: model.Analysis, command: tuple[str, ...], told: str, not_told: str
) -> None:
    recording = replace(analysis.run.recording, command=command)
    step = next_step(UNEXPLAINED, replace(analysis, run=replace(analysis.run, recording=recording, inside=())))
    assert told in step
    assert not_told not in step


@pytest.mark.parametrize(("cache", "is_named"), [(False, False), ("disk", False), ("ram", True), (None, True)])
def test_a_cache_in_memory_is_advised_against_only_where_there_may_be_one(
    analysis: model.Analysis, cache: object, *, is_named: bool
) -> None:
    short = replace(UNEXPLAINED, cause=model.Cause("memory-pressure", 0.8, ""))
    runs = (model.YoloRun(1, None, {"cache": cache}, "recorded", None),)
    step = next_step(short, replace(analysis, run=replace(analysis.run, yolo_runs=runs)))
    assert ("cache=ram" in step) is is_named


CHEAPER = "cheaper (no loops in Python, no `.item()`), call it less often, or let another process do it."
PLANNED = "look at what runs every 10 epochs. Let it run less often, on fewer images"
GAPS = "The largest loss is short idle gaps in training: 23 s, 18 % of all GPU time."


def test_the_largest_loss_is_told_what_to_look_at_where_no_finding_is_of_it(analysis: model.Analysis) -> None:
    told = replace(
        analysis,
        verdict=model.Verdict((model.Sentence("largest loss", GAPS, about="short gaps"),)),
        findings=(UNEXPLAINED,),
    )
    assert "no setting is known to close them" in gaps_step(told)
    assert first_advice((UNEXPLAINED,), told)[0].text == gaps_step(told)
    assert gaps_step(replace(told, verdict=model.Verdict((model.Sentence("work", "The GPU was busy 54 %."),)))) == ""
    unseen = tuple(phase for phase in told.phases if phase.name != "train")  # nobody knows of any batches
    assert gaps_step(replace(told, phases=unseen)) == ""
    ended = model.Finding("ended-1", "run-ended", "critical", None, 9.0, 9.0, "CUDA was out of memory")
    assert gaps_step(replace(told, findings=(ended,))) == ""


def test_the_function_that_the_verdict_names_is_what_to_do_whatever_its_share(analysis: model.Analysis) -> None:
    at = model.CodeLocation("main", "log_metric", "/home/me/tracking.py", 13, 0.4)
    waits = replace(UNEXPLAINED, cause=model.Cause("main-process", 0.8, ""), where=(at,))
    look = "Look at `log_metric` (tracking.py:13): it took 40 % of the time that the GPU waited."
    lead = model.Sentence("look", look, ("drop-1",), "main-process", names_own=True)
    named = replace(analysis, verdict=model.Verdict((lead,)))
    assert next_step(waits, named) == f"{look} Make it {CHEAPER}"
    (first, *_) = first_advice((waits,), replace(named, findings=(waits,)))
    assert first.text == f"Make `log_metric` {CHEAPER}"
    assert advice_title(replace(named, findings=(waits,))) == "What to do"
    assert next_step(replace(waits, advice=(model.Advice("profile it"),)), named) == look.removesuffix(".")
    assert "tracking.py" not in next_step(replace(waits, id="drop-2"), named)


@pytest.mark.parametrize(
    ("cause", "begins"),
    [("unexplained", PLANNED), ("main-process", PLANNED), ("input-storage", "move the data to a faster disk")],
)
def test_what_somebody_planned_is_to_run_less_often(analysis: model.Analysis, cause: str, begins: str) -> None:
    planned = replace(UNEXPLAINED, cause=model.Cause(cause, 0.8, ""), every_epochs=10)
    assert next_step(planned, analysis).startswith(begins)
