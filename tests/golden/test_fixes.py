"""What the report says could be won, held against repairs that were made and recorded (docs/speedup-limits.md)."""

import re
from pathlib import Path
from statistics import median

import pytest
from support.samples import analysis_of

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "speedup-limits.md"
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
    return [epoch.train_s for epoch in epochs if not (epoch.outliers and epoch.closing)]


@pytest.fixture(params=REPAIRED, ids=lambda pair: pair[0])
def pair(request):
    name, cause, argument, find_fix = request.param
    (limit,) = [limit for limit in analysis_of(name).speedup_limits if limit.cause == cause]
    assert limit.fix.startswith(f"{argument}=")
    return name, limit, find_fix


def test_no_repair_beats_the_bound(pair):
    _, limit, find_fix = pair
    assert limit.epoch_s_at_best <= min(trained_s(find_fix))


def test_the_estimate_is_what_the_repair_reached(pair):
    _, limit, find_fix = pair
    assert limit.epoch_s_estimate == pytest.approx(median(trained_s(find_fix)), rel=ESTIMATE_OFF)


def test_the_document_says_what_the_code_predicts(pair):
    name, limit, find_fix = pair
    row = next(line for line in DOCUMENT.read_text().splitlines() if line.startswith(f"| `{name}` |"))
    cells = [cell.strip(" `") for cell in row.strip("|").split("|")]
    assert cells[1:] == [
        f"{limit.epoch_s_now:.1f}",
        f"{limit.epoch_s_at_best:.1f}",
        limit.fix,
        f"{limit.epoch_s_estimate:.1f}",
        find_fix,
        f"{median(trained_s(find_fix)):.1f}",
    ]


def test_each_repair_was_advised_by_an_argument_of_the_run():
    for name, _, argument, _ in REPAIRED:
        analysis = analysis_of(name)
        assert argument in analysis.run.yolo_runs[-1].args
        advised = [advice for finding in analysis.findings for advice in finding.advice if advice.argument]
        assert [advice.argument for advice in advised] == [argument]
        assert re.fullmatch(r"\d+", advised[0].to_value)
