"""What is said of a training on the CPU: which function of the user's took its time, and how many cores it used."""

import dataclasses
import re
from dataclasses import replace

import numpy as np
import pytest
from support.runs import make_run
from support.stacks import LOG, TRAINER, process

from gpu_report.analyse import analyse
from gpu_report.model import (
    CodeLocation,
    CollectionCounts,
    Finding,
    Frame,
    InsideEpoch,
    InsideRun,
    LongCollections,
    Phase,
    YoloRun,
)
from gpu_report.render.page.page import render_html
from gpu_report.render.run.terminal import render_text

CALLS = Frame("/venv/lib/python3.11/site-packages/ultralytics/engine/trainer.py", 234, "run_callbacks")
EPOCHS, EPOCH_S = 3, 20.0
OVER_S = EPOCHS * EPOCH_S


def on_cpu(logs_share=0.25, main_pct=150.0, every_pct=40.0, epoch_s=EPOCH_S):
    """Return a training on 4 cores without a GPU, whose callback takes a share of each second."""
    over_s = EPOCHS * epoch_s
    spans = [(n * epoch_s, (n + 1) * epoch_s) for n in range(EPOCHS)]
    phases = tuple(Phase("train", n, *span, "callbacks") for n, span in enumerate(spans, 1))
    epochs = tuple(InsideEpoch(n, 1, *span, 100, 10, 1.0, 0.1, 0.1) for n, span in enumerate(spans, 1))
    stays = []
    for second in np.arange(0.0, over_s):
        stays += [(second, second + logs_share, (LOG, CALLS, TRAINER)), (second + logs_share, second + 1, (TRAINER,))]
    run = make_run([0.0] * round(over_s))
    host = run.host.reindex(range(round(over_s)))
    host["t_s"], host["main_cpu_pct"], host["cpu_pct"] = np.arange(1.0, over_s + 1), main_pct, every_pct
    inside = InsideRun(1, 0, 1, "train", {"device": "cpu"}, phases, epochs, "finished")
    return dataclasses.replace(
        run,
        gpus=(),
        samples=run.samples.iloc[:0],
        host=host,
        inside=(inside,),
        stacks=(process(*[stay for stay in stays if stay[1] > stay[0]]),),
        recording=dataclasses.replace(run.recording, cores=4, cores_online=4),
    )


def beside_a_gpu(util, args, main_pct=150.0):
    """Return the same on a machine with a GPU, which was so busy (%)."""
    run, gpu = on_cpu(main_pct=main_pct), make_run([util] * round(OVER_S))
    yolo = YoloRun(1, None, args, "recorded", 0.0)
    return dataclasses.replace(run, gpus=gpu.gpus, samples=gpu.samples, yolo_runs=(yolo,))


def said_of(run):
    return " ".join(each.text for each in analyse(run).verdict.sentences if each.kind == "work")


@pytest.mark.parametrize(
    ("main_pct", "used"), [(150.0, ": it used 1.5 of 4 cores"), (float("nan"), "")], ids=["measured", "not measured"]
)
def test_who_asked_for_the_cpu_beside_an_idle_gpu_is_reminded_of_it(main_pct, used):
    said = said_of(beside_a_gpu(0.0, {"device": "cpu"}, main_pct))
    assert said == f"The training ran on the CPU, as `device=cpu` asks{used}. No GPU worked during this recording."


def test_who_did_not_ask_is_not_said_to_have():
    assert said_of(beside_a_gpu(0.0, {"device": None})) == "No GPU worked during this recording."


def test_the_time_of_a_gpu_that_was_others_is_measured_and_none_of_the_trainings():
    analysis = analyse(beside_a_gpu(97.0, {"device": "cpu"}))
    assert [gpu.of_others for gpu in analysis.gpus] == [True]
    assert analysis.ledger == ()
    assert "The training used no GPU during this recording." in said_of(beside_a_gpu(97.0, {"device": "cpu"}))
    assert not [each for each in analysis.verdict.sentences if each.kind == "unmeasured"]
    assert "Where the GPU time went" not in render_text(analysis)


def test_the_function_that_took_time_and_the_cores_are_named():
    said = [each.text for each in analyse(on_cpu()).verdict.sentences]
    assert said[:3] == [
        "Look at `log_images` (callbacks.py:41): it took 25 % of training time.",
        "Without it an epoch takes about 15.0 s instead of 20.0 s.",
        "The training ran on the CPU: it used 1.5 of 4 cores.",
    ]
    assert "The training waited for data 5 % of its time." in said
    assert not any("Other programs" in each for each in said)


def collecting(run, share, called):
    """Return the training with a run of the garbage collector in each call of its callback, for a share of a second."""
    (made,) = run.stacks
    over_s = run.inside[0].phases[-1].end_t_s
    calls = (LOG._replace(called=called), CALLS, TRAINER)
    seconds = np.arange(0.0, over_s)
    long = LongCollections(seconds, seconds + share, np.full(len(seconds), 9), np.ones(len(seconds), dtype=bool))
    all_s = [np.array([each]) for each in (0.0, over_s, float(len(seconds)), share * len(seconds))]
    made = dataclasses.replace(made, stacks={**made.stacks, 9: calls}, collections=CollectionCounts(*all_s, long))
    return dataclasses.replace(run, stacks=(made,))


def test_a_function_that_calls_the_garbage_collector_is_told_what_to_remove():
    said = [each.text for each in analyse(collecting(on_cpu(logs_share=0.3), 0.2, "collect")).verdict.sentences]
    remove = "Remove `gc.collect()` in `log_images` (callbacks.py:41), or call it once an epoch"
    assert said[0] == f"{remove}: Python's garbage collector took 20 % of training time."
    assert not any(each.startswith("Look at") for each in said)


def test_a_garbage_collector_that_came_by_itself_leads_beside_the_function_that_it_met():
    said = [each.text for each in analyse(collecting(on_cpu(logs_share=0.3), 0.2, "")).verdict.sentences]
    assert said[0] == "Look at `log_images` (callbacks.py:41): it took 30 % of training time."
    text = analyse(collecting(on_cpu(logs_share=0.3), 0.25, "")).verdict.text
    assert "it took 30 % of training time" in text
    said = analyse(collecting(on_cpu(logs_share=0.0), 0.2, "")).verdict.sentences
    assert said[0].text.startswith("Call `gc.freeze()` once your data are loaded: Python's garbage collector took 20 %")
    little = analyse(collecting(on_cpu(logs_share=0.3), 0.02, "collect")).verdict.text
    assert little.startswith("Look at `log_images`")
    assert "garbage" not in little


def test_a_garbage_collector_that_took_less_than_a_second_is_no_finding():
    """YOLO calls it after each epoch: of a training that is over in 3 s that is much, and says nothing."""
    short = analyse(collecting(on_cpu(logs_share=0.0, epoch_s=1.0), 0.2, ""))
    assert "garbage" not in short.verdict.text
    assert not any("garbage" in finding.summary for finding in short.findings)


def test_who_used_the_other_cores_is_said_where_it_is_felt():
    text = analyse(on_cpu(every_pct=90.0)).verdict.text
    assert "Other programs used 2.1 cores meanwhile." in text


@pytest.mark.parametrize(("every_pct", "felt"), [(80.0, False), (99.5, True)])
def test_who_uses_cores_that_the_training_may_not_use_is_not_felt(every_pct, felt):
    run = on_cpu(every_pct=every_pct)
    run = dataclasses.replace(run, recording=dataclasses.replace(run.recording, cores_online=128))
    assert ("Other programs used" in analyse(run).verdict.text) == felt


@pytest.mark.parametrize("share", [0.0, 0.04])
def test_a_function_that_takes_little_does_not_lead(share):
    assert analyse(on_cpu(share)).verdict.text.startswith("The training ran on the CPU")


def test_lines_of_code_are_listed_by_all_their_time():
    analysis = analyse(on_cpu())
    lines = {line.function: line.seconds for line in analysis.code_lines}
    assert lines["log_images"] == pytest.approx(0.25 * OVER_S, rel=0.05)
    assert "Lines of code with the most time" in render_text(analysis, colour=False)
    whole = replace(analysis, code_lines=tuple(replace(line, seconds=1.0) for line in analysis.code_lines))
    assert re.search(r"log_images \(.*\)  1\.0 s ", render_text(whole))  # as the others of its column
    page = render_html(analysis)
    assert "Where the time went, by line of code" in page
    assert 'value="idle_gpu_s"' not in page


@pytest.mark.parametrize(("every_pct", "leads"), [(97.0, True), (60.0, False)])
def test_others_that_took_most_of_the_cores_lead(every_pct, leads):
    said = analyse(on_cpu(main_pct=60.0, every_pct=every_pct)).verdict.sentences
    assert (said[0].text == "Keep other programs off the CPU: they used 3.3 of 4 cores.") is leads
    assert sum("Other programs" in each.text for each in said) <= 1


def test_others_on_the_cores_are_said_where_a_function_leads_and_they_could():
    said = [each.text for each in analyse(on_cpu(logs_share=0.95, main_pct=60.0, every_pct=99.0)).verdict.sentences]
    assert said[0].startswith("Look at `log_images`")
    assert "Other programs used 3.4 cores meanwhile." in said
    led = [each.text for each in analyse(on_cpu(logs_share=0.0, main_pct=60.0, every_pct=99.0)).verdict.sentences]
    assert led[0] == "Keep other programs off the CPU: they used 3.4 of 4 cores."
    assert "Other programs used 3.4 cores meanwhile." not in led


def test_a_function_that_sleeps_most_of_the_time_leads_before_others_on_the_cores():
    text = analyse(on_cpu(logs_share=0.6, main_pct=10.0, every_pct=99.0)).verdict.text
    assert text.startswith("Look at `log_images` (callbacks.py:41): it took 60 % of training time.")
    assert "Other programs used 3.9 cores meanwhile." in text


def test_the_function_that_leads_has_a_card_with_its_proof():
    analysis = analyse(on_cpu())
    (finding,) = [each for each in analysis.findings if each.rule == "user-code"]
    assert finding.id in analysis.verdict.sentences[0].findings
    assert finding.summary == "25 % of training time went into log_images (callbacks.py:41)"
    numbers = {each.text: each.value for each in finding.evidence}
    assert numbers["time of training in it"] == pytest.approx(0.25 * OVER_S, rel=0.05)
    page = render_html(analysis)
    assert "Time of training in it" in page
    assert "Make <code>log_images</code> cheaper" in page
    at, line = analysis.speedup_limits[0].location, finding.where[0]
    assert at is not None
    assert (at.file, at.function, at.line) == (line.file, "log_images", 41)


def test_nothing_is_said_of_an_idle_gpu_where_there_is_none():
    found = Finding("slow-start-1", "slow-start", "warning", None, 0.0, 40.0, "The training was set up for 40 s")
    lines = tuple(CodeLocation(process, "f", "/home/me/a.py", 3, 0.9) for process in ("main", "workers"))
    analysis = analyse(on_cpu())
    page = render_html(dataclasses.replace(analysis, findings=(dataclasses.replace(found, where=lines),)))
    assert "The main process, of that time" in page
    assert "Data-loader workers, of that time" in page
    assert "while the GPU was idle" not in page
