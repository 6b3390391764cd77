"""How a training ended stands among the key numbers, in the recording's facts, in the terminal and in summary.json."""

from dataclasses import replace

from gpu_report import model
from gpu_report.render.page.compose import compose
from gpu_report.render.page.page import render_html
from gpu_report.render.page.views.tables import Fact
from gpu_report.render.redaction.redact import redact
from gpu_report.render.run.summary_json import build_summary
from gpu_report.render.run.terminal import render_markdown, render_text

LAST = (model.Evidence("GPU 0 busy", 84.4, "%"), model.Evidence("host memory in use, at most", 99.0, "%"))
ENDING = model.Ending("early stop", 590.0, 57, 300, LAST)


def plain(text: str) -> str:
    return " ".join(text.replace("\u00a0", " ").split())


def tiles(analysis: model.Analysis) -> list[Fact]:
    return [tile for tile in compose(analysis).tiles if tile.label == "Training"]


def test_a_tile_says_how_the_training_ended_when_and_how_far(analysis: model.Analysis) -> None:
    assert tiles(analysis) == []  # nobody knows
    (tile,) = tiles(replace(analysis, ending=ENDING))
    assert (tile.value, tile.note) == ("stopped early", "epoch 57 of 300, 0:09:50 after the start")
    (bare,) = tiles(replace(analysis, ending=replace(ENDING, name="failed", epoch=None, epochs=None)))
    assert (bare.value, bare.note) == ("failed", "0:09:50 after the start")


def test_the_recording_says_what_the_last_minute_was_like(analysis: model.Analysis) -> None:
    facts = {fact.label: plain(fact.value) for fact in compose(replace(analysis, ending=ENDING)).recording.facts}
    assert facts["End of the training"] == "It stopped early after epoch 57 of 300, 0:09:50 after the start."
    assert facts["Just before its end"] == "GPU 0 busy: 84 %; host memory in use, at most: 99 %"
    without = {
        fact.label for fact in compose(replace(analysis, ending=replace(ENDING, last_minute=()))).recording.facts
    }
    assert "Just before its end" not in without


def test_the_terminal_and_the_summary_say_it_too(analysis: model.Analysis) -> None:
    ended = replace(analysis, ending=ENDING)
    said = "The training stopped early after epoch 57 of 300."
    assert said in plain(render_text(ended, width=200))
    assert said in plain(render_markdown(ended))
    told = build_summary(ended)["ending"]
    assert (told["kind"], told["epoch"], told["epochs"], told["time_s"]) == ("early stop", 57, 300, 590.0)
    assert told["last_minute"][0] == {"text": "GPU 0 busy", "value": 84.4, "unit": "%", "key": None}
    assert build_summary(analysis)["ending"] is None
    assert "The training:" not in render_text(analysis, width=200)


def test_the_terminal_tells_the_last_minute_of_a_training_that_failed_and_names_it_once(
    analysis: model.Analysis,
) -> None:
    failed = replace(ENDING, name="failed", failure="The training ran out of GPU memory", names_epoch=True)
    text = plain(render_text(replace(analysis, ending=failed), width=200))
    said = "The training ran out of GPU memory. Just before: GPU 0 busy: 84 %;"
    assert said in text
    assert f"The training: {said}" not in text
    assert "Just before:" not in render_text(replace(analysis, ending=ENDING), width=200)


def test_the_terminal_lists_no_epoch_that_is_longer_by_its_nature(analysis: model.Analysis) -> None:
    first, other = (replace(epoch, outliers=()) for epoch in analysis.epochs[:2])
    slow = replace(other, outliers=(model.Outlier("train", 9.0, 4.0),))
    nature = replace(first, outliers=(model.Outlier("validation", 9.0, 1.0),), first=True)
    text = plain(render_text(replace(analysis, epochs=(nature, slow)), width=200))
    assert f"Epochs that stand out: {slow.epoch} (training took 9 s, typical 4 s)." in text
    assert "stand out" not in render_text(replace(analysis, epochs=(nature,)), width=200)


def test_an_exception_is_told_by_type_and_message(analysis: model.Analysis) -> None:
    full = replace(ENDING, name="failed", failure="x", type="OSError", message="No space left on device: /data/runs")
    told = build_summary(replace(analysis, ending=full))["ending"]
    assert (told["kind"], told["type"], told["message"]) == ("failed", "OSError", full.message)
    shared = redact(replace(analysis, ending=full)).ending
    assert shared is not None
    assert (shared.type, "/data/runs" in str(shared.message)) == ("OSError", False)


def test_ctrl_c_has_words_of_its_own(analysis: model.Analysis) -> None:
    stopped = replace(ENDING, name="interrupted", failure="Stopped by Ctrl-C in epoch 57 of 300", names_epoch=True)
    (tile,) = tiles(replace(analysis, ending=stopped))
    assert tile.value == "stopped by Ctrl-C"
    text = plain(render_text(replace(analysis, ending=stopped), width=200))
    assert "Stopped by Ctrl-C in epoch 57 of 300." in text
    assert build_summary(replace(analysis, ending=stopped))["ending"]["kind"] == "interrupted"


def test_an_exceptions_name_is_text_and_nothing_else(analysis: model.Analysis) -> None:
    hostile = replace(ENDING, name="failed", failure="</dd><script>window.planted=2</script>")
    assert "<script>window.planted=2" not in render_html(replace(analysis, ending=hostile))


def test_a_training_that_somebody_stopped_needs_no_proof(analysis: model.Analysis) -> None:
    stopped = model.Finding(
        *("ended-1", "run-ended", "info", None, 540.0, 545.0, "Stopped by Ctrl-C in epoch 7"),
        cause=model.Cause("run-ended", 0.95, "Ctrl-C was pressed"),
        evidence=LAST,
        advice=(model.Advice("Resume it"),),
    )
    (card,) = compose(replace(analysis, findings=(stopped,))).findings.cards
    assert (card.summary, [each.text for each in card.advice]) == ("Stopped by Ctrl-C in epoch 7.", ["Resume it."])
    assert (card.chart, card.cause, card.evidence, card.facts) == (None, "", (), ())
    (killed,) = compose(replace(analysis, findings=(replace(stopped, severity="critical"),))).findings.cards
    assert killed.chart
    assert killed.cause
