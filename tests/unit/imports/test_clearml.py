"""Import of ClearML's scalars, in the form that its documentation gives for `get_reported_scalars`."""

import json

import pytest

from gpu_report.errors import InputError
from gpu_report.imports.formats import format_of

START_MS = 1_795_223_151_000


def scalars(x=None, **series):
    stamps = x or [START_MS, START_MS + 30_000, START_MS + 60_000]
    return json.dumps({":monitor:gpu": {name: {"name": name, "x": stamps, "y": y} for name, y in series.items()}})


@pytest.fixture
def run(imported, written):
    return lambda text: imported(written(text, "scalars.json"))


def test_units(run):
    made = run(scalars(gpu_0_utilization=[5, 6, 7], gpu_0_mem_used_gb=[1, 1.5, 2], gpu_0_power_draw=[70, 80, 90]))
    assert (made.facts["source"], made.facts["interval_s"]) == ("ClearML", 30.0)
    assert made.column("memory_used_mib") == [1024, 1536, 2048]
    assert made.column("power_w") == [70, 80, 90]


def test_a_hundred_without_power_was_not_read(run):
    made = run(scalars(gpu_0_utilization=[100, 100, 50], gpu_0_power_draw=[0, 300, 200]))
    assert made.column("gpu_util_pct") == [None, 100, 50]


def test_nothing_but_a_hundred_where_power_is_unknown_was_not_read(run):
    made = run(scalars(gpu_0_utilization=[100, 100, 100], gpu_1_utilization=[100, 90, 100]))
    assert made.column("gpu_util_pct", 0) == [None] * 3
    assert made.column("gpu_util_pct", 1) == [100, 90, 100]


def test_iterations_are_no_times(run):
    with pytest.raises(InputError, match='x_axis="timestamp"'):
        run(scalars(x=[1, 2, 3], gpu_0_utilization=[1, 2, 3]))


def test_what_has_no_place_is_listed(run):
    (note,) = run(scalars(gpu_0_utilization=[1, 2, 3], gpu_0_mem_usage=[1, 2, 3])).notes
    assert "gpu_N_mem_usage" in note


def test_it_is_known_by_its_content(written):
    assert format_of(written(scalars(gpu_0_utilization=[1, 2, 3]), "scalars.json")) == "clearml"


def test_it_is_known_behind_many_losses(written):
    loss = {"loss": {str(n): {"name": str(n), "x": [START_MS] * 500, "y": [1.0] * 500} for n in range(20)}}
    text = json.dumps({**loss, **json.loads(scalars(gpu_0_utilization=[1, 2, 3]))})
    assert format_of(written(text, "scalars.json")) == "clearml"
