"""What the profiler's windows lead to: real traces of an H100, cut to one step, each in a run of its own."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.runs import make_run

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.rules import profiler
from gpu_report.analyse.rules.profiler import profiled_findings
from gpu_report.load.trace import load_trace
from gpu_report.model import InsideEpoch, InsideRun, Options, Phase, ProfilerWindow, YoloRun

TRACES = Path(__file__).resolve().parents[3] / "data" / "traces"
NAME = "12-1"


def run_with(trace, settings=None, step_s=None, phase="train"):
    """Return a run of two epochs, in the second of which the profiler ran."""
    window = ProfilerWindow(NAME, phase, 100.0, 104.0, 100.5, 2, 8, "planned")
    epochs = ()
    if step_s is not None:
        epochs = tuple(InsideEpoch(n, 1, 30.0 * n, 30.0 * n + 100 * step_s, 400, 100, 0.0, 0.0, 0.0) for n in (1, 2))
    inside = InsideRun(
        run=None,
        rank=0,
        pid=12,
        task="train",
        settings=settings or {"amp": True},
        phases=(Phase("train", 20.0, 140.0, 1, "callbacks"),),
        epochs=epochs,
        profiled=(window,),
    )
    return replace(make_run([0.0] * 20 + [90.0] * 130), inside=(inside,), traces={} if trace is None else {NAME: trace})


def found_in(name, **more):
    run = run_with(load_trace(TRACES / f"{name}.json.gz"), **more)
    return {finding.rule: finding for finding in profiled_findings(build_context(run, Options()))}


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("n-small", set()),
        ("m-healthy", set()),
        ("n-item", {"gpu-syncs"}),
        ("m-pageable", {"pageable-copies"}),
        ("m-amp-off", {"full-precision"}),
        ("m-nchw", {"layout-changes"}),
        ("m-batch-128", set()),
        ("m-batch-128-nchw", {"layout-changes"}),
        ("m-batch-64-amp-off", {"full-precision"}),
        ("n-compile", set()),
        ("n-ddp-late-rank", {"exposed-communication"}),
    ],
)
def test_each_trace_has_the_finding_of_what_was_done(name, rules):
    assert set(found_in(name)) == rules


def test_a_copy_is_a_larger_share_of_a_step_without_the_profiler():
    assert found_in("m-pageable")["pageable-copies"].severity == "info"
    assert found_in("m-pageable", step_s=0.1)["pageable-copies"].severity == "warning"


def test_a_step_that_is_longer_without_the_profiler_is_not_believed():
    assert found_in("m-pageable", step_s=10.0)["pageable-copies"].severity == "info"


def test_what_amp_would_win_is_what_it_won():
    """On that H100 a step took 252 ms without AMP, and 161 ms in the training with it that followed."""
    finding = found_in("m-batch-64-amp-off", settings={"amp": False}, step_s=0.2519)["full-precision"]
    (advice,) = finding.advice
    assert finding.severity == "warning"
    assert 0.2519 * (1 - advice.gain_estimate) == pytest.approx(0.1613, rel=0.15)
    assert 0.2519 * (1 - advice.gain_at_most) < 0.1613


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (2_400_000, "for another rank"),
        (100_000_000, "not overlapped with computation"),
        (None, "in gradient synchronisation"),
    ],
)
def test_a_late_rank_is_told_from_a_slow_link_by_the_size_of_the_gradients(parameters, words):
    finding = found_in("n-ddp-late-rank", settings={"parameters": parameters}, step_s=0.41)["exposed-communication"]
    assert words in finding.summary
    assert ("batch" in finding.advice[0].text) == (parameters == 100_000_000)


def test_the_layout_to_choose_is_named_where_the_other_one_was_set():
    finding = found_in("m-batch-128-nchw", settings={"amp": True, "channels_last": False}, step_s=0.46)
    (advice,) = finding["layout-changes"].advice
    assert (advice.argument, advice.to_value) == ("channels_last", "True")
    (verdict,) = [s for s in analyse_with("m-batch-128-nchw", 0.46).verdict.sentences if s.kind == "fix"][:1]
    assert verdict.text.startswith("Set `channels_last=True` (now False): changing the layout")


def analyse_with(name, step_s):
    settings = {"amp": True, "channels_last": False}
    return analyse(run_with(load_trace(TRACES / f"{name}.json.gz"), settings=settings, step_s=step_s))


@pytest.mark.parametrize(
    ("window", "rules"),
    [
        ({"graphs_before": 1, "graphs": 1}, set()),
        ({"graphs_before": 1, "graphs": 3}, {"recompiles"}),
        ({"graphs_before": 2, "graphs": 2, "breaks": ("forward at 88",)}, {"graph-breaks"}),
    ],
)
def test_what_torch_compile_had_to_do_in_pieces_or_again_is_said(window, rules):
    run = run_with(load_trace(TRACES / "n-compile.json.gz"))
    (inside,) = run.inside
    (of,) = inside.profiled
    context = build_context(replace(run, inside=(replace(inside, profiled=(replace(of, **window),)),)), Options())
    (profiled,) = context.profiled
    context = build_context(context.run, Options())
    context.__dict__["profiled"] = (replace(profiled, steps=replace(profiled.steps, compiled_per_step=2.0)),)
    found = profiled_findings(context)
    assert {finding.rule for finding in found} == rules
    if "recompiles" in rules:
        assert found[0].advice[0].text.endswith(": `multi_scale=0`, `rect=False`")


def test_non_maximum_suppression_is_told_from_a_share_of_a_validation_on(monkeypatch):
    trace = load_trace(TRACES / "n-validation.json.gz")
    context = build_context(run_with(trace, phase="validation"), Options())
    assert profiled_findings(context) == []
    monkeypatch.setattr(profiler.th, "NMS_SHARE", 0.05)
    (finding,) = profiled_findings(context)
    assert (finding.rule, finding.severity) == ("slow-nms", "info")
    assert finding.evidence[0].value == 8  # a call an image


@pytest.mark.parametrize("trace", ["m-batch-64-amp-off", None])
def test_32_bits_are_said_once(trace):
    settings = {"amp": False, "device": "cuda:0", "torch": "2.13.0+cu130"}
    run = run_with(trace and load_trace(TRACES / f"{trace}.json.gz"), settings=settings, step_s=0.2519)
    analysis = analyse(run)
    said = [finding for finding in analysis.findings if "32 bits" in finding.summary]
    assert [finding.rule for finding in said] == ["full-precision" if trace else "environment"]
    assert analysis.verdict.text.count("`amp=True`") == 1


def test_what_ultralytics_turned_off_is_not_asked_for_again():
    run = run_with(load_trace(TRACES / "m-batch-64-amp-off.json.gz"), settings={"amp": False, "device": "cuda:0"})
    asked = replace(run, yolo_runs=(YoloRun(1, None, {"amp": True}, "recorded", None),))
    asked = replace(asked, inside=(replace(run.inside[0], run=1),))
    said = [finding for finding in analyse(asked).findings if "32 bits" in finding.summary]
    assert {finding.rule for finding in said} == {"full-precision", "environment"}
    assert not any(advice.argument for finding in said for advice in finding.advice)


def test_where_the_gpu_waits_for_the_cpu_amp_is_a_note():
    finding = found_in("m-amp-off", settings={"amp": False}, step_s=0.07)["full-precision"]
    (advice,) = finding.advice
    assert (finding.severity, advice.argument, advice.to_value) == ("info", "amp", "True")
    assert "while the GPU waits for the CPU" in advice.text


def test_amp_that_is_on_is_not_advised():
    (advice,) = found_in("m-amp-off", settings={"amp": True})["full-precision"].advice
    assert advice.argument is None


@pytest.mark.parametrize("trace", [None, "n-item"])
def test_without_a_trace_or_in_a_validation_nothing_is_said(trace):
    run = run_with(trace and load_trace(TRACES / f"{trace}.json.gz"), phase="validation" if trace else "train")
    assert profiled_findings(build_context(run, Options())) == []


def test_the_analysis_has_the_window_with_the_length_of_a_step_beside_it():
    (profiled,) = analyse(run_with(load_trace(TRACES / "n-small.json.gz"), step_s=0.1)).profiled
    assert profiled.typical_step_s == pytest.approx(0.1)
    assert profiled.slowed_by == pytest.approx(profiled.steps.step_s / 0.1)
