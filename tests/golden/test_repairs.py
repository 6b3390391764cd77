"""What the report says could be won, held against repairs that were made and recorded (docs/bounds.md)."""

import re
from pathlib import Path
from statistics import median

import pytest
from support.samples import analysis_of

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "bounds.md"
ESTIMATE_OFF = 0.25  # the limit
# (run, its cause, the argument advised, the recorded repair that is nearest to it)
REPAIRED = (
    ("n-starved", "input-cpu", "workers", "n-fed"),
    ("ab-workers-2", "input-cpu", "workers", "ab-workers-14"),
    ("ab-workers-2-ram", "input-cpu", "workers", "ab-workers-14"),
    ("ab-workers-4", "input-cpu", "workers", "ab-workers-14"),
    ("ab-s-workers-3", "input-cpu", "workers", "ab-s-workers-10"),
    ("n-small-batch", "launch-bound", "batch", "ab-batch-64"),
    ("ab-batch-8", "launch-bound", "batch", "ab-batch-64"),
)


def trained_s(name):
    """Return how long the training part of each epoch took, but for the first and those a new loader made longer."""
    epochs = analysis_of(name).epochs[1:]
    return [epoch.train_s for epoch in epochs if not any("mosaic" in why for why in epoch.odd)]


@pytest.fixture(params=REPAIRED, ids=lambda pair: pair[0])
def pair(request):
    name, cause, argument, repair = request.param
    (bound,) = [bound for bound in analysis_of(name).bounds if bound.cause == cause]
    assert bound.repair.startswith(f"{argument}=")
    return name, bound, repair


def test_no_repair_beats_the_bound(pair):
    _, bound, repair = pair
    assert bound.epoch_s_at_best <= min(trained_s(repair))


def test_the_estimate_is_what_the_repair_reached(pair):
    _, bound, repair = pair
    assert bound.epoch_s_estimate == pytest.approx(median(trained_s(repair)), rel=ESTIMATE_OFF)


def test_the_document_says_what_the_code_predicts(pair):
    name, bound, repair = pair
    row = next(line for line in DOCUMENT.read_text().splitlines() if line.startswith(f"| `{name}` |"))
    cells = [cell.strip(" `") for cell in row.strip("|").split("|")]
    assert cells[1:] == [
        f"{bound.epoch_s_now:.1f}",
        f"{bound.epoch_s_at_best:.1f}",
        bound.repair,
        f"{bound.epoch_s_estimate:.1f}",
        repair,
        f"{median(trained_s(repair)):.1f}",
    ]


def test_each_repair_was_advised_by_an_argument_of_the_run():
    for name, _, argument, _ in REPAIRED:
        analysis = analysis_of(name)
        assert argument in analysis.run.yolo_runs[-1].args
        advised = [advice for finding in analysis.findings for advice in finding.advice if advice.argument]
        assert [advice.argument for advice in advised] == [argument]
        assert re.fullmatch(r"\d+", advised[0].to_value)
