"""What unfolds beneath a finding: the documentation of its rule and of its cause, in words of the page."""

import re

import pytest

from gpu_report import model
from gpu_report.catalogue import CAUSES, RULES
from gpu_report.render.page.page import render_html
from gpu_report.render.page.sections import learn_more
from gpu_report.render.page.sections.learn_more import sections

STARVED = model.Finding(
    "starved-1", "starved", "warning", 0, 0.0, 60.0, "low", cause=model.Cause("input-cpu", 0.9, "busy", None)
)


@pytest.mark.parametrize("name", [*RULES, *(name for name, row in CAUSES.items() if row.of_findings)])
def test_each_rule_and_cause_of_findings_has_a_text(name):
    section = sections()[name]
    assert section.paragraphs or section.points
    for text in (*section.paragraphs, *(text for _, text in section.points)):
        assert not set("*[|#") & set(text)
        assert text == text.strip() != ""


def test_a_cause_says_what_speaks_for_it_and_against():
    assert {"Evidence for", "Evidence against", "Easily confused with", "What to do"} <= {
        name for name, _ in sections()["main-process"].points
    }


def test_other_causes_are_named_as_on_the_page():
    confused = dict(sections()["launch-bound"].points)["Easily confused with"]
    assert f"\u201c{CAUSES['main-process'].name}\u201d" in confused
    assert "main-process" not in confused


def test_no_text_of_the_page_has_an_id_of_ours():
    names = {name for name in (*RULES, *CAUSES) if "-" in name} - {"launch-bound"}  # which is a word of the field
    ids = re.compile("|".join(rf"(?<![\w-]){name}(?![\w-])" for name in names))
    texts = [text for each in sections().values() for text in (*each.paragraphs, *(text for _, text in each.points))]
    assert [text for text in texts if ids.search(text)] == []


def test_a_finding_has_the_text_of_its_rule_then_of_its_cause():
    assert [each.name for each in learn_more.learn_more(STARVED)] == ["starved", "input-cpu"]


def test_a_page_has_it_folded_beneath_its_finding(analysis):
    html = render_html(analysis)
    assert html.count('<details class="learn">') >= 1
    assert "Easily confused with" in html


def test_where_it_is_not_installed_nothing_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(learn_more, "files", lambda _: tmp_path / "gpu_report")
    sections.cache_clear()
    try:
        assert learn_more.learn_more(STARVED) == ()
    finally:
        sections.cache_clear()
