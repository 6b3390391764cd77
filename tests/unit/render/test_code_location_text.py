"""Each share of a line of code says of what time it is."""

from dataclasses import replace

import pytest

from gpu_report.catalogue import GROWN_TO_KEY
from gpu_report.model import Analysis, CodeLocation, Evidence, Finding
from gpu_report.render.code_location_text import first_location_text, location_texts
from gpu_report.render.run.terminal import render_text

AT = CodeLocation("main", "log_metric", "/home/me/tracking.py", 13, 0.4)
PLACE = "log_metric (tracking.py:13)"


def found(rule: str, *where: CodeLocation) -> Finding:
    return Finding(f"{rule}-1", rule, "warning", 0, 50.0, 60.0, "It took long", where=where)


@pytest.mark.parametrize(
    ("rule", "shown", "who"),
    [
        ("starved", "40 % of the idle time", "The main process, while the GPU was idle"),
        ("slow-exit", "40 % of that time", "The main process, of that time"),
        ("gpu-syncs", "40 % of the waits for the GPU", "The main process, of the waits for the GPU"),
        ("other-gpu-work", "40 % of training in steady state", "The main process, of training in steady state"),
        ("missing-rank", "40 % of the ranks", "The main process, of the ranks"),
        ("slow-tracking", "40 % of that time", "The main thread, of that time"),
        ("slow-between-calls", "40 % between calls", "The main thread, between calls"),
    ],
)
def test_a_share_says_of_what_it_is(analysis: Analysis, rule: str, shown: str, who: str) -> None:
    assert first_location_text(found(rule, AT), analysis) == f"{PLACE} {shown}"
    assert list(location_texts(found(rule, AT), analysis)) == [(who, f"{PLACE} 40 %")]


def test_the_share_of_a_function_that_grows_with_the_steps_is_of_the_last_third(analysis: Analysis) -> None:
    grown = replace(found("epochs-slowing", AT), evidence=(Evidence("at last", 0.28, "s", key=GROWN_TO_KEY),))
    assert first_location_text(grown, analysis) == f"{PLACE} 40 % of the last third of training"
    assert first_location_text(found("epochs-slowing", AT), analysis) == f"{PLACE} 40 % of the idle time"


def test_where_an_end_was_there_is_no_share(analysis: Analysis) -> None:
    ended = found("run-ended", replace(AT, share=1.0))
    assert first_location_text(ended, analysis) == PLACE
    assert list(location_texts(ended, analysis)) == [("The main process", PLACE)]


def test_of_a_rank_and_of_a_thread(analysis: Analysis) -> None:
    both = found("starved", replace(AT, process="rank 1"), replace(AT, process="thread"))
    said = [who for who, _ in location_texts(both, analysis)]
    assert said == ["Rank 1 (the process of a GPU), while that was idle", "Another thread, of that time"]
    assert first_location_text(found("starved", AT), replace(analysis, gpus=())) == f"{PLACE} 40 % of that time"


def test_the_terminal_says_of_what_a_share_is(analysis: Analysis) -> None:
    shown = render_text(replace(analysis, findings=(found("starved", AT),)))
    assert f"{PLACE} 40 % of the idle time" in " ".join(shown.split())
