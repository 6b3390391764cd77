"""summary.json against docs/summary.schema.json, for every sample run."""

import dataclasses
import json
from pathlib import Path

import pytest
from support.json_schema import errors
from support.samples import NAMES, analysis_of

from gpu_report.model import Validation
from gpu_report.render.run.summary_json import SCHEMA_VERSION, build_summary

SCHEMA = json.loads((Path(__file__).parents[4] / "docs" / "summary.schema.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_the_summary_of_a_run_is_as_the_schema_says(name):
    assert errors(build_summary(analysis_of(name)), SCHEMA) == []


def test_a_validation_has_its_parts():
    analysis = analysis_of("healthy")
    seen = Validation(10.0, 14.0, 1, 80, 5, {"data": 1.0, "inference": 3.0})
    first = dataclasses.replace(analysis.phases[0], validated=seen)
    summary = build_summary(dataclasses.replace(analysis, phases=(first, *analysis.phases[1:])))
    assert errors(summary, SCHEMA) == []
    told = summary["phases"][0]
    assert (told["images"], told["images_per_s"]) == (80, 20.0)
    assert {name: s for name, s in told["parts"].items() if s is not None} == {"data_s": 1.0, "inference_s": 3.0}


def test_a_summary_that_is_otherwise_is_told_from_one_that_is_right():
    summary = build_summary(analysis_of("healthy"))
    assert errors({**summary, "schema_version": 1}, SCHEMA)
    assert errors({key: value for key, value in summary.items() if key != "findings"}, SCHEMA)
    assert errors({**summary, "another": 1}, SCHEMA)
    assert errors({**summary, "ledger": [{**summary["ledger"][0], "share": "all"}]}, SCHEMA)


def test_the_schema_is_of_the_version_that_is_written():
    assert SCHEMA["properties"]["schema_version"]["const"] == SCHEMA_VERSION
