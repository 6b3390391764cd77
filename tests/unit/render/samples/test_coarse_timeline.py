from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from support.packed import Reader

from gpu_report.model import Analysis
from gpu_report.render.page.script_data import chart_data
from gpu_report.render.quantity_labels import HEAT_GPUS
from gpu_report.render.samples import coarse_timeline
from gpu_report.render.samples.quantity_series import QuantitySeries


def brute_force(track: QuantitySeries, edges: np.ndarray) -> list[float]:
    """Return the extremes of each bucket, looked for one bucket at a time."""
    found: list[float] = []
    for begin, end in pairwise(edges):
        part = track.values[(track.t_s >= begin) & (track.t_s < end)]
        part = part[np.isfinite(part)]
        found += [part.min(), part.max()] if len(part) else [np.nan, np.nan]
    return found


def test_an_envelope_has_the_extremes_of_each_bucket_and_nothing_where_nothing_was_read() -> None:
    rng = np.random.default_rng(5)
    t_s = np.sort(rng.uniform(0, 100, 400))
    t_s = t_s[(t_s < 30) | (t_s > 45)]  # a gap of several buckets
    values = rng.integers(0, 100, len(t_s)).astype(float)
    values[rng.integers(0, len(values), 40)] = np.nan
    values[t_s > 90] = np.nan
    edges = np.linspace(0, 101, 50)
    track = QuantitySeries(t_s, values)
    assert coarse_timeline.envelope(track, edges).tolist() == pytest.approx(brute_force(track, edges), nan_ok=True)


def test_means_are_those_of_each_bucket_and_nothing_where_nothing_was_read() -> None:
    t_s = np.array([-1.0, 0, 1, 2, 3, 12, 13, 40])
    track = QuantitySeries(t_s, np.array([99.0, 10, 20, np.nan, 60, 7, np.nan, 99]))
    assert coarse_timeline.means(track, np.array([0.0, 10, 20])).tolist() == pytest.approx(
        [30, np.nan, 7, np.nan], nan_ok=True
    )


@pytest.fixture
def short_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lines of a hundred readings count as long."""
    monkeypatch.setattr(coarse_timeline, "LONG_LINE", 100)
    monkeypatch.setattr(coarse_timeline, "BUCKETS", 20)


@pytest.mark.usefixtures("short_is_long")
def test_each_long_line_that_is_drawn_has_an_overview_with_its_extremes(analysis: Analysis) -> None:
    data, *texts = chart_data(analysis)
    reader = Reader("".join(texts))
    for gpu in data["gpus"]:
        own = analysis.run.samples_of(gpu["index"])
        columns = {packed["name"]: reader.values(packed) for packed in gpu["overview"]}
        assert {"gpu_util_pct", "power_w"} <= set(columns)
        assert "energy_j" not in columns  # no lane draws it
        assert np.nanmax(columns["power_w"]) == pytest.approx(own["power_w"].max(), abs=0.05)
        assert np.nanmin(columns["power_w"]) == pytest.approx(own["power_w"].min(), abs=0.05)
        assert len(columns["power_w"]) == 40
    assert data["span"] == [analysis.run.samples["t_s"].min(), analysis.run.samples["t_s"].max()]


@pytest.mark.usefixtures("short_is_long")
def test_of_what_a_heat_strip_shows_the_overview_has_means(analysis: Analysis) -> None:
    one = analysis.run.samples_of(0)
    gpus = tuple(replace(analysis.run.gpus[0], index=index) for index in range(HEAT_GPUS))
    samples = pd.concat([one.assign(gpu=float(gpu.index)) for gpu in gpus], ignore_index=True)
    data, *texts = chart_data(replace(analysis, run=replace(analysis.run, samples=samples, gpus=gpus)))
    columns = {packed["name"]: Reader("".join(texts)).values(packed) for packed in data["gpus"][1]["overview"]}
    assert len(columns["gpu_util_pct"]) == len(columns["power_w"]) == 40
    assert np.nanmean(columns["gpu_util_pct"]) == pytest.approx(one["gpu_util_pct"].mean(), abs=2)
    assert [lane["title"] for lane in data["lanes"] if lane["heat"]] == ["GPU utilisation", "SM activity"]


def test_a_short_run_has_none(analysis: Analysis) -> None:
    data, *_ = chart_data(analysis)
    assert [gpu["overview"] for gpu in data["gpus"]] == [[]] * len(data["gpus"])
    assert data["host_overview"] == []


@pytest.mark.usefixtures("short_is_long")
def test_a_run_without_a_sample_has_no_overview_and_no_span(analysis: Analysis) -> None:
    run = replace(analysis.run, samples=analysis.run.samples.iloc[:0], host=analysis.run.host.iloc[:0])
    assert coarse_timeline.span_s(run) == (0.0, 0.0)
    edges = coarse_timeline.edges_of(run)
    assert coarse_timeline.gpu_overview(run, 0, edges) == coarse_timeline.host_overview(run, edges) == ()
