"""What people read is plain: no phrase of ours that nobody else uses, and a verdict in short sentences."""

import re
from pathlib import Path

import pytest
from support.plain_words import banned
from support.samples import NAMES, ROOT, analysis_of

from gpu_report.catalogue import CAUSES, RULES, repeats
from gpu_report.render.page.sections import speedup_limits
from gpu_report.render.page.sections.findings import finding_view, first_advice, nothing_found, unexpected_and_expected
from gpu_report.render.run_clock import WallClock
from gpu_report.wording import LONGEST_SENTENCE

TEMPLATES = ROOT / "templates"
PAGE = [TEMPLATES / "report.html.j2", TEMPLATES / "notebook.html.j2", *sorted((TEMPLATES / "partials").glob("*.j2"))]
_NOT_TEXT = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", re.DOTALL)


def texts_of(analysis):
    """Return every sentence and label that an analysis holds for people."""
    yield from (sentence.text for sentence in analysis.verdict.sentences)
    for finding in analysis.findings:
        yield finding.summary
        yield from (each.text for each in (*finding.evidence, *finding.advice))
        yield from (each.short for each in finding.advice)
        yield finding.cause.explanation if finding.cause else ""
    yield from (each.reason for each in analysis.not_checked)
    yield from (limit.basis for limit in analysis.speedup_limits)


def page_texts_of(analysis):
    """Return what the page adds to it in words of its own."""
    clock, (unexpected, expected) = WallClock(analysis.run.start_wall_s), unexpected_and_expected(analysis.findings)
    for finding in (*unexpected, *expected):
        view = finding_view(finding, clock, analysis)
        yield from (view.title, view.cause, view.step, view.runner_up)
        yield from (text for fact in (*view.facts, *view.evidence) for text in (fact.label, fact.note))
    yield from (text for each in first_advice(unexpected, analysis) for text in (each.text, each.gain))
    yield from (cell for row in speedup_limits.limits(analysis).rows for cell in row)
    yield nothing_found(analysis)


def found_in(texts):
    return {text: found for text in texts if (found := banned(text))}


@pytest.mark.parametrize("name", NAMES)
def test_no_report_of_a_sample_run_holds_a_phrase_that_only_we_use(name):
    analysis = analysis_of(name)
    assert found_in((*texts_of(analysis), *page_texts_of(analysis))) == {}


@pytest.mark.parametrize("name", NAMES)
def test_the_sentences_of_a_verdict_are_short(name):
    lengths = {each.text: len(each.text.split()) for each in analysis_of(name).verdict.sentences}
    assert {text: words for text, words in lengths.items() if words > LONGEST_SENTENCE} == {}


@pytest.mark.parametrize("name", ["s-leak-oom", "fake-power-cap", "ddp"])
def test_the_cause_of_a_finding_does_not_say_its_title_again(name):
    analysis = analysis_of(name)
    mine = [each for each in analysis.findings if each.cause and repeats(each.rule, each.cause.name)]
    assert mine
    for finding in mine:
        view = finding_view(finding, WallClock(analysis.run.start_wall_s), analysis)
        assert view.cause in {"", view.title}
        assert CAUSES[finding.cause.name].name not in view.cause_and_length


def test_the_names_of_rules_and_causes_are_the_fields_words():
    rules = (text for rule in RULES.values() for text in (rule.name, rule.title, rule.note_title))
    causes = (
        text
        for cause in CAUSES.values()
        for text in (cause.name, cause.without_training, cause.step, cause.once, cause.always)
    )
    assert found_in((*rules, *causes)) == {}


@pytest.mark.parametrize("path", PAGE, ids=lambda path: Path(path).name)
def test_the_page_says_it_in_the_fields_words(path):
    assert found_in(_NOT_TEXT.sub("\n", path.read_text("utf-8")).splitlines()) == {}


def test_what_leads_the_verdict_about_a_cause_is_short():
    filled = (
        cause.once.format(took="3 h 10 min", probably="probably ", gpu="GPU 0", cost="3 h 10 min")
        for cause in CAUSES.values()
    )
    said = [*filled, *(cause.always for cause in CAUSES.values())]
    assert [text for text in said if len(text.split()) > LONGEST_SENTENCE] == []


def test_the_search_knows_what_it_looks_for():
    assert found_in(["2 drops: the trainer itself stood still"]) == {
        "2 drops: the trainer itself stood still": ["2 drops: the trainer itself stood still"]
    }
    assert found_in(["Spaces between steps, told2"]) == {}
