"""What is said of recorded programs that call a model: what was done to each, and the sentences as they were."""

import json
import os
from pathlib import Path

import pytest
from support.samples import SAMPLES, SERVED, analysis_of

from gpu_report.render.run.summary_json import build_summary

HERE = Path(__file__).parent
JUDGED = ("verdict", "findings", "ledger", "calls")


def expected_rule(name):
    return json.loads((SAMPLES / name / "labels.json").read_text())["rule"]


@pytest.mark.parametrize("name", SERVED)
def test_the_summary_is_as_it_was(name):
    summary = {part: build_summary(analysis_of(name))[part] for part in JUDGED}
    golden = HERE / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    assert summary == json.loads(golden.read_text())


@pytest.mark.parametrize("name", SERVED)
def test_what_was_done_is_what_the_report_says_first(name):
    analysis = analysis_of(name)
    rules = [finding.rule for finding in analysis.findings]
    assert expected_rule(name) in rules
    warned = {finding.rule for finding in analysis.findings if finding.severity != "info"}
    led = next((s for s in analysis.verdict.sentences if s.findings), None)
    led_by = {finding.rule for finding in analysis.findings if led and finding.id in led.findings}
    assert led_by == {expected_rule(name)}
    assert warned <= {expected_rule(name), "small-calls"}  # one image a call is launch-bound, whatever else is done


@pytest.mark.parametrize("name", SERVED)
def test_nothing_is_said_of_a_training(name):
    analysis = analysis_of(name)
    assert analysis.is_inference
    assert not {"starved", "drop", "sustained-low", "imbalance"} & {finding.rule for finding in analysis.findings}
    text = analysis.verdict.text.lower()
    assert "training" not in text
    assert "epoch" not in text


@pytest.mark.parametrize(("name", "said"), [("serve-s-pauses", "98 %"), ("serve-m-batch-32", "Pre-processing takes")])
def test_nothing_is_said_twice(name, said):
    assert analysis_of(name).verdict.text.count(said) == 1
