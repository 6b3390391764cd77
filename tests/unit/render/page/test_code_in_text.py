"""Code within a sentence stands between backticks: the page shows it as code, and no backtick."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser

from gpu_report.model import Analysis
from gpu_report.render.page.blank.skeleton import blank_page
from gpu_report.render.page.compose import compose
from gpu_report.render.page.page import page_parts

# What is a sentence of ours, by the class of the view that has it. Other text is a name, a number, or from outside.
SENTENCES: Mapping[str, frozenset[str]] = {
    "VerdictView": frozenset({"lead", "rest", "more"}),
    "FindingView": frozenset({"summary", "cause_and_length", "explanation", "step"}),
    "AdviceView": frozenset({"text", "now"}),
    "KernelRow": frozenset({"meaning", "action"}),
    "KernelView": frozenset({"statement", "command"}),
    "GpuView": frozenset({"throttled", "alarms"}),
    "RecorderEvent": frozenset({"detail"}),
    "RecordingView": frozenset({"not_checked", "problems"}),
    "YoloView": frozenset({"placement"}),
    "ProfilerView": frozenset({"lead", "sentences"}),
    "NamedTable": frozenset({"note"}),
    "CodeTimeView": frozenset({"note"}),
    "EpochRowView": frozenset({"outliers"}),
    "ServedView": frozenset({"warning", "parts_note", "warm_up", "between"}),
    "InferenceView": frozenset({"note"}),
    "LedgerView": frozenset({"note"}),
    "EpochsView": frozenset({"outliers_note", "unknown_note"}),
    "ReportView": frozenset({"phases_note"}),
}
HIDDEN = frozenset({"script", "style", "title"})  # the last: what the pointer shows of a shape


class Shown(HTMLParser):
    """Text that a reader sees as it stands, and what is shown as code."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.inside: list[str] = []
        self.text: list[str] = []
        self.code: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.inside += [tag] if tag in HIDDEN | {"code"} else []

    def handle_endtag(self, tag: str) -> None:
        if tag in self.inside:
            self.inside.remove(tag)

    def handle_data(self, data: str) -> None:
        if "code" in self.inside:
            self.code.add(data)
        elif not self.inside:
            self.text.append(data)


def with_code(value: object, mark: str = "") -> object:
    """Return a view in which each sentence ends with the name of its field, as code."""
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__name__
        marks = {f.name: f"{kind}.{f.name}" if f.name in SENTENCES.get(kind, ()) else "" for f in fields(value)}
        return replace(value, **{name: with_code(getattr(value, name), m) for name, m in marks.items()})
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(with_code(each, mark) for each in value)
    return f"{value} Run `{mark}`." if isinstance(value, str) and value and mark else value


def marks_of(value: object, mark: str = "") -> set[str]:
    return set(re.findall(r"Run `([A-Za-z]+\.[a-z_]+)`", repr(value)))


def test_every_sentence_of_the_page_shows_its_code_as_code(analysis: Analysis) -> None:
    view, blank = with_code(compose(analysis)), blank_page()
    shown = Shown(blank.template.render(report=view, page=page_parts(analysis, blank)[0]))
    assert {mark for text in shown.text for mark in re.findall(r"`(.*?)`", text)} == set()
    assert marks_of(view) <= shown.code
