"""Guesses: only where nothing explains why the GPU waits, from the arguments, each with what decides it."""

import dataclasses

from support.samples import SAMPLES, analysis_of

from gpu_report.analyse import analyse
from gpu_report.load import load_run


def test_an_imported_log_of_too_few_workers_has_that_guess_first():
    found = analysis_of("starved")
    assert found.hypotheses[0].argument == "workers"
    assert found.verdict.sentences[0].text == "No clear fix found: the GPU was busy only 10 % of training time."
    said = [each.text for each in found.verdict.sentences if each.kind == "guess"]
    assert said == [
        "Guess: 2 data-loader workers may be too few.",
        "To check: watch their CPU in `top`; near 100 % each means yes.",
    ]


def test_the_likeliest_stands_first():
    order = [each.confidence for each in analysis_of("starved").hypotheses]
    assert order == sorted(order, reverse=True)
    assert len(order) == 2


def test_where_a_cause_is_known_or_nothing_waits_nobody_guesses():
    assert [name for name in ("ab-workers-2", "healthy", "m-blocked", "fed") if analysis_of(name).hypotheses] == []


def test_nobody_guesses_without_arguments():
    run = dataclasses.replace(load_run(SAMPLES / "starved"), yolo_runs=())
    assert analyse(run).hypotheses == ()


def test_nobody_guesses_at_the_loader_where_the_next_batch_was_always_there(monkeypatch):
    monkeypatch.setattr("gpu_report.analyse.results.verdict.hypotheses.never_waits_for_data", lambda _: True)
    run = load_run(SAMPLES / "starved")
    assert analyse(run).hypotheses == ()
