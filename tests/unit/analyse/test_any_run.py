"""What holds of every run, whatever was recorded of it and however little."""

import math
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.any_run import any_options, any_run
from support.samples import ALL_NAMES, analysis_of

from gpu_report.analyse import analyse
from gpu_report.model import Analysis

SEEDS = st.integers(0, 2**32)


def analysed(seed: int) -> Analysis:
    pick = Random(seed)
    return analyse(any_run(pick), any_options(pick))


def numbers(analysis: Analysis) -> list[float]:
    facts = [fact for finding in analysis.findings for fact in finding.evidence]
    facts += analysis.ending.last_minute if analysis.ending else ()
    spans = [moment for finding in analysis.findings for moment in (finding.start_t_s, finding.end_t_s)]
    return [*spans, *(fact.value for fact in facts if fact.value is not None)]


def left_out(analysis: Analysis) -> list[str]:
    """Return the warnings that a verdict which begins with nothing to change does not report."""
    sentences = analysis.verdict.sentences
    if not sentences or sentences[0].kind not in {"work", "nothing"}:
        return []
    warnings = [f for f in analysis.findings if f.severity != "info" and not f.expected]
    return [finding.summary for finding in warnings if finding.id not in analysis.verdict.findings]


@pytest.mark.parametrize("name", ALL_NAMES)
def test_no_warning_is_missing_where_a_verdict_finds_nothing_to_change(name):
    assert left_out(analysis_of(name)) == []


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(40784146)  # a GPU that only others used is lost
@example(1480866486)  # what filled memory was seen before the epochs began
@example(501213)  # a GPU without utilisation is lost while callbacks report phases
@example(5637)  # others used all GPUs
@given(SEEDS)
def test_an_analysis_never_fails_and_what_it_says_holds_together(seed):
    analysis = analysed(seed)
    run = analysis.run
    assert all(math.isfinite(number) for number in numbers(analysis))
    assert all(finding.start_t_s <= finding.end_t_s for finding in analysis.findings)
    assert len({finding.id for finding in analysis.findings}) == len(analysis.findings)
    assert left_out(analysis) == []
    assert " nan " not in f" {analysis.verdict.text} "
    ours = sum(not gpu.of_others for gpu in analysis.gpus)  # of a run without one nothing is accounted for
    assert sum(row.gpu_seconds for row in analysis.ledger) == pytest.approx(run.duration_s * ours, abs=1e-3)
    named = {advice.argument for finding in analysis.findings for advice in finding.advice} - {None}
    assert named <= {name for yolo in run.yolo_runs for name in yolo.args}
    for bound in analysis.speedup_limits:
        assert 0 < bound.epoch_s_at_best <= (bound.epoch_s_estimate or bound.epoch_s_now) <= bound.epoch_s_now + 1e-9
