"""Served models in summary.json, in the terminal and as Markdown; and redacted."""

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from support.json_schema import errors
from support.served import made_calls, served_model

from gpu_report.model import Analysis, CodeLine, Sentence, Verdict
from gpu_report.render.redaction.redact import redact
from gpu_report.render.run.summary_json import build_summary, render_summary
from gpu_report.render.run.terminal import render_markdown, render_text

SCHEMA = json.loads((Path(__file__).parents[4] / "docs" / "summary.schema.json").read_text())


@pytest.fixture(scope="module")
def analysis(builder: ModuleType) -> Analysis:
    return builder.build_inference_analysis()


def test_the_summary_has_each_model_with_most_calls_first(analysis: Analysis) -> None:
    summary = build_summary(analysis)
    assert errors(summary, SCHEMA) == []
    first, second = summary["calls"]
    assert (first["model"], first["format"], first["calls"], second["calls"]) == ("yolo26n.pt", "pt", 1997, 597)
    assert first["p99_ms"] > first["p95_ms"] > first["p50_ms"] > 0
    assert second["p99_ms"] is None
    assert second["p99_interval_ms"] is None
    assert first["parts"]["inference_ms"] == pytest.approx(first["mean_ms"] - 4.5, abs=0.01)
    assert first["settings"]["imgsz"] == [640, 640]
    assert [group["label"] for group in first["groups"]] == ["1 image", "8 images"]
    assert first["gap_parts"][0]["where"]["function"] == "read"
    assert first["joules_per_image"] == 1.42


def test_a_summary_of_a_training_has_no_calls(builder: ModuleType) -> None:
    assert build_summary(builder.build_analysis())["calls"] == []


def test_terminal_and_markdown_have_a_table_of_models(analysis: Analysis) -> None:
    text = render_text(analysis, width=120)
    row = next(line for line in text.splitlines() if line.startswith("yolo26n.pt"))
    assert row.split()[:2] == ["yolo26n.pt", "1,997"]
    assert "14.0 ms" in row
    (head,) = [line for line in text.splitlines() if " images/s " in line]
    assert head.split("  ")[-1].strip() == "longest part, mean"  # beside the median
    assert row.endswith("inference 10.2 ms (69 %)")
    assert "2,600 calls" in text
    assert "epoch" not in text
    markdown = render_markdown(analysis)
    assert "### Inference, by model" in markdown
    assert "| yolo26n.pt | 1,997 |" in markdown


def test_redacting_hides_models_of_ones_own_and_keeps_what_everybody_has(analysis: Analysis) -> None:
    own = "/home/anna/secret_weights/plates.onnx"
    settings = {"model": own, "format": "onnx", "providers": ["CUDAExecutionProvider"]}
    served = (served_model(made_calls(settings=settings)), served_model())
    line = CodeLine("main", "inference", "/home/anna/serve.py", 7, 3.0, 0.5, "predict")
    said = Verdict((Sentence("part", "Inference takes 87 % of a call."),))
    run = replace(analysis.run, calls=tuple(each.calls for each in served))
    redacted = redact(replace(analysis, served=served, run=run, code_lines=(line,), verdict=said))
    assert redacted.verdict.text == "Inference takes 87 % of a call."  # though a function has that name
    for text in (render_summary(redacted), render_text(redacted), render_markdown(redacted)):
        assert "plates" not in text
        assert "anna" not in text
        assert "serve.py" not in text
    first, second = build_summary(redacted)["calls"]
    assert {first["format"], second["format"]} == {"onnx", "pt"}
    assert {first["model"], second["model"]} >= {"yolo26n.pt"}
    assert first["groups"][0]["label"] == "1 image"
    assert {"CUDAExecutionProvider"} <= {p for each in (first, second) for p in each["settings"].get("providers", ())}
