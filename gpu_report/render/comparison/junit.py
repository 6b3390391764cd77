"""A comparison as JUnit XML: a test case a gate. What cannot be said is skipped, a warning is reported and passes."""

import re
from pathlib import PurePath
from xml.etree import ElementTree as ET

from gpu_report.model import Comparison, GateResult
from gpu_report.render.comparison.rows import code_line_sentences, gate_word, ordered

SUITE = "gpu-report"
# What XML 1.0 can hold (its production 2): no other control characters, no surrogates, no non-characters.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(comparison: Comparison) -> str:
    """Return the gates as one test suite, those that failed first; the verdict and slower lines are its output."""
    results = ordered(comparison)
    words = [gate_word(result) for result in results]
    counts = {
        "tests": str(len(results)),
        "failures": str(words.count("failed")),
        "errors": "0",
        "skipped": str(sum(result.outcome == "not measured" for result in results)),
    }
    suites = ET.Element("testsuites", {"name": SUITE, **counts})
    path = comparison.run.run.path  # as it lies on disk, so that a CI's history of a suite goes on
    suite = ET.SubElement(suites, "testsuite", {"name": f"{SUITE} {_text(PurePath(path).name or path)}", **counts})
    for result, word in zip(results, words, strict=True):
        _case(suite, result, word)
    ET.SubElement(suite, "system-out").text = _text("\n".join((comparison.verdict, *code_line_sentences(comparison))))
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, result: GateResult, word: str) -> None:
    name, summary = _text(result.gate.text), _text(result.summary)
    case = ET.SubElement(suite, "testcase", {"classname": SUITE, "name": name, "time": "0"})
    if word == "failed":
        ET.SubElement(case, "failure", {"message": summary, "type": "regression"}).text = summary
    elif result.outcome == "not measured":
        ET.SubElement(case, "skipped", {"message": summary})
    else:
        ET.SubElement(case, "system-out").text = summary if word == "passed" else f"{word}: {summary}"


def _text(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)
